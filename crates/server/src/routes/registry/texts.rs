//! The texts of skills as other tools read them: skillrt's addresses, and the well-known index.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    sync::Arc,
};

use axum::{
    Router,
    extract::State,
    http::{HeaderMap, HeaderValue, Method, Uri, header},
    response::Response,
    routing::get,
};
use savoir_package::archive;
use savoir_store::registry::{Facts, Filter, Findable, Order, PackageName, PackageVersion};
use semver::Version;
use serde_json::{Value, json};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    artefacts::{PIECE, Parcel, lost},
    asked::{At, Reading, package, registry, version},
    docs,
    refused::{Given, Refused},
    remembered,
};
use crate::{
    app::App,
    registry::{Answer, Caching, PLAIN, has_already},
};

/// Skills in the well-known index: those that changed last.
const MOST_LISTED: u64 = 1000;
/// Bytes of that index: what other tools read.
const LARGEST_INDEX: usize = 1_500_000;
/// Skills of it that are read at once.
const READ_AT_ONCE: usize = 50;
/// Files of a skill that it names.
const MOST_FILES: usize = 100;
/// Where other tools look.
pub(super) const WELL_KNOWN: &str = "/.well-known/agent-skills/index.json";
const MANIFEST: &str = "SKILL.md";
/// Letters of a name as the specification of skills has it.
const LONGEST_NAME: usize = 64;
const MARKDOWN: &str = "text/markdown; charset=utf-8";

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(flat))
        .routes(routes!(in_namespace))
        .routes(routes!(plain_flat))
        .routes(routes!(plain_in_namespace))
}

/// At the root of the server, where other tools look.
pub(in crate::routes) fn well_known() -> Router<App> {
    Router::new()
        .route(WELL_KNOWN, get(index))
        .route("/registry/.well-known/agent-skills/index.json", get(index))
}

/// Show the SKILL.md of a version.
#[utoipa::path(
    get, path = "/{name}/{version}/SKILL.md", tag = "registry", operation_id = "text",
    params(
        ("name" = String, Path, description = "The skill"),
        ("version" = String, Path, description = "The version"),
    ),
    responses(docs::Markdown, docs::Invalid, docs::Unauthorized, docs::Missing, docs::Unavailable)
)]
async fn flat(
    State(app): State<App>,
    _: Reading,
    At((name, version)): At<(String, String)>,
    (method, uri, headers): (Method, Uri, HeaderMap),
) -> Given<Response> {
    let answer = text(&app, &package(None, &name)?, &version, &uri).await?;
    Ok(answer.respond(&method, &headers))
}

/// Show the SKILL.md of a version of a skill of a namespace. Prose without one is in `anon`.
#[utoipa::path(
    get, path = "/{namespace}/{name}/{version}/SKILL.md", tag = "registry",
    operation_id = "text_in",
    params(
        ("namespace" = String, Path, description = "The namespace"),
        ("name" = String, Path, description = "The skill"),
        ("version" = String, Path, description = "The version"),
    ),
    responses(docs::Markdown, docs::Invalid, docs::Unauthorized, docs::Missing, docs::Unavailable)
)]
async fn in_namespace(
    State(app): State<App>,
    _: Reading,
    At((namespace, name, version)): At<(String, String, String)>,
    (method, uri, headers): (Method, Uri, HeaderMap),
) -> Given<Response> {
    let answer = text(&app, &package(Some(&namespace), &name)?, &version, &uri).await?;
    Ok(answer.respond(&method, &headers))
}

async fn text(app: &App, name: &PackageName, number: &str, uri: &Uri) -> Given<Answer> {
    let number = version(number)?;
    remembered(app, uri, name, None, async {
        let known = given(app, name, &number).await?;
        let bytes = registry(app).blob(&known.skill_md).await?;
        let lost = || Refused::failed(&format!("the SKILL.md of {name} {number} is lost"));
        let bytes = bytes.ok_or_else(lost)?;
        Ok(Answer::tagged(MARKDOWN, Caching::Immutable, &known.skill_md, bytes))
    })
    .await
}

/// A version, unless it is blocked: nobody is given it anew, as with a download. Whoever has it in a lock
/// gets its artefact.
async fn given(app: &App, name: &PackageName, number: &Version) -> Given<PackageVersion> {
    let known = registry(app).version(name, number).await?;
    match known.why_blocked() {
        None => Ok(known),
        Some(why) => Err(Refused::not_found(format!("{name} {number} is blocked: {why}"))),
    }
}

/// Download a version as an archive without a folder, as the well-known index promises it.
#[utoipa::path(
    get, path = "/{name}/{version}/skill.zip", tag = "registry",
    params(
        ("name" = String, Path, description = "The skill"),
        ("version" = String, Path, description = "The version"),
    ),
    responses(docs::Archive, docs::Invalid, docs::Unauthorized, docs::Missing, docs::Unavailable)
)]
async fn plain_flat(
    State(app): State<App>,
    _: Reading,
    At((name, version)): At<(String, String)>,
    (method, uri, headers): (Method, Uri, HeaderMap),
) -> Given<Response> {
    plain(&app, &package(None, &name)?, &version, (method, uri, headers)).await
}

/// Download a version of a skill of a namespace as an archive without a folder.
#[utoipa::path(
    get, path = "/{namespace}/{name}/{version}/skill.zip", tag = "registry",
    params(
        ("namespace" = String, Path, description = "The namespace"),
        ("name" = String, Path, description = "The skill"),
        ("version" = String, Path, description = "The version"),
    ),
    responses(docs::Archive, docs::Invalid, docs::Unauthorized, docs::Missing, docs::Unavailable)
)]
async fn plain_in_namespace(
    State(app): State<App>,
    _: Reading,
    At((namespace, name, version)): At<(String, String, String)>,
    (method, uri, headers): (Method, Uri, HeaderMap),
) -> Given<Response> {
    plain(&app, &package(Some(&namespace), &name)?, &version, (method, uri, headers)).await
}

async fn plain(
    app: &App,
    name: &PackageName,
    number: &str,
    (method, uri, headers): (Method, Uri, HeaderMap),
) -> Given<Response> {
    let number = version(number)?;
    let known = given(app, name, &number).await?;
    let digest = known.facts.more.get(PLAIN).and_then(Value::as_str).map(str::to_owned);
    let large = known.facts.files.iter().map(|file| file.size).sum::<u64>() > PIECE;
    let counts = method == Method::GET && !headers.contains_key(header::RANGE);
    let response = if let Some(sha256) = digest.filter(|_| large) {
        let size = if has_tag(&headers, &sha256) {
            0
        } else {
            laid_out(app, &known.sha256, &sha256).await?
        };
        let parcel = Parcel { sha256: &sha256, size, caching: Caching::Immutable };
        parcel.send(app.clone(), &method, &headers).await?
    } else {
        let packing = async {
            // What is remembered was there after the last change that is known.
            let known = given(app, name, &number).await?;
            let packed = packed(app, &known.sha256).await?;
            Ok(Answer::new("application/zip", Caching::Immutable, packed).in_parts())
        };
        let answer = remembered(app, &uri, name, Some(&number), packing).await?;
        answer.respond(&method, &headers)
    };
    if counts && response.status().is_success() {
        app.desk.downloads.count(name, &number);
    }
    Ok(response)
}

/// The artefact as an archive without a folder.
async fn packed(app: &App, artefact: &str) -> Given<Vec<u8>> {
    let bytes = registry(app).blob(artefact).await?.ok_or_else(|| lost(artefact))?;
    let packed = tokio::task::spawn_blocking(move || {
        let (_, skill) = archive::one_skill(archive::unpack(&bytes)?)?;
        archive::pack_plain(&skill)
    });
    let packed = packed.await.map_err(|error| Refused::failed(&error))?;
    packed.map_err(|error| Refused::failed(&error))
}

/// Whether the client has it already.
fn has_tag(headers: &HeaderMap, sha256: &str) -> bool {
    let tag = HeaderValue::from_str(&format!("\"{sha256}\""));
    tag.is_ok_and(|tag| has_already(headers, &tag))
}

/// Puts a large one where it can be sent from in pieces; tells how large it is. It stays there.
async fn laid_out(app: &App, artefact: &str, sha256: &str) -> Given<u64> {
    if let Some(size) = registry(app).blob_size(sha256).await? {
        return Ok(size);
    }
    // One at a time, also if whoever asked went away: each is held in memory twice.
    let alone = Arc::clone(&app.desk.packing).lock_owned().await;
    let (app, artefact, sha256) = (app.clone(), artefact.to_owned(), sha256.to_owned());
    let laying = tokio::spawn(async move {
        let _alone = alone;
        if let Some(size) = registry(&app).blob_size(&sha256).await? {
            return Ok(size);
        }
        let packed = packed(&app, &artefact).await?;
        let size = packed.len() as u64;
        if registry(&app).put_blob(packed.into()).await? != sha256 {
            return Err(Refused::failed(&format!("{artefact} is packed otherwise than it was")));
        }
        Ok(size)
    });
    laying.await.map_err(|error| Refused::failed(&error))?
}

/// The index of draft 0.2.0, with the files that clients of draft 0.1 ask for.
async fn index(
    State(app): State<App>,
    _: Reading,
    (method, headers): (Method, HeaderMap),
) -> Given<Response> {
    let recent = Order::Recent { since: None };
    let page = registry(&app).list(&Filter::default(), recent, None, MOST_LISTED).await?;
    let names: Vec<PackageName> = page.items.into_iter().map(|item| item.package).collect();
    let (mut skills, mut bytes) = (BTreeMap::new(), 0);
    let base = super::base(&app);
    for some in names.chunks(READ_AT_ONCE) {
        for found in registry(&app).findable(some).await? {
            let Some(entry) = entry(&base, &found) else { continue };
            bytes += entry.to_string().len();
            if bytes > LARGEST_INDEX {
                break;
            }
            // Those of an import may share one: then that of a namespace has it, whoever came last.
            let package = found.summary.package;
            let rank = (package.namespace().is_default(), package.to_string());
            match skills.entry(package.short()) {
                Entry::Vacant(free) => drop(free.insert((rank, entry))),
                Entry::Occupied(mut taken) if rank < taken.get().0 => {
                    taken.insert((rank, entry));
                }
                Entry::Occupied(_) => {}
            }
        }
    }
    let skills: Vec<Value> = skills.into_values().map(|(_, entry)| entry).collect();
    let index = json!({
        "$schema": "https://schemas.agentskills.io/discovery/0.2.0/schema.json",
        "skills": skills,
    });
    let answer = Answer::new("application/json", Caching::Minute, index.to_string());
    Ok(answer.respond(&method, &headers))
}

/// How others get a skill: the text alone if there is nothing else, else an archive.
fn what(facts: &Facts) -> Option<(&'static str, &'static str, &str)> {
    match facts.files.as_slice() {
        [file] if file.path == MANIFEST => Some(("skill-md", MANIFEST, &file.sha256)),
        _ => Some(("archive", "skill.zip", facts.more.get(PLAIN)?.as_str()?)),
    }
}

/// A skill for other tools.
fn entry(base: &str, found: &Findable) -> Option<Value> {
    let (package, latest) = (&found.summary.package, found.summary.latest.as_ref()?);
    // Other tools refuse the whole list for the sake of one.
    if package.short().len() > LONGEST_NAME {
        return None;
    }
    let (kind, file, digest) = what(&found.facts)?;
    let mut entry = json!({
        "name": package.short(),
        "type": kind,
        "description": found.summary.description,
        "url": format!("{base}/{package}/{latest}/{file}"),
        "digest": format!("sha256:{digest}"),
        "version": latest.to_string(),
    });
    if found.facts.files.len() <= MOST_FILES {
        let files = found.facts.files.iter().map(|file| file.path.as_str());
        entry["files"] = files.collect::<Vec<_>>().into();
    }
    Some(entry)
}
