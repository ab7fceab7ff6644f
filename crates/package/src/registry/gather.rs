//! Resolves versions from registries and installed skills, and fetches them.

mod order;
mod shop;

use std::collections::BTreeMap;

use savoir_skill::version::VersionRange;
use semver::Version;
use thiserror::Error;

use self::{order::GatherInputs, shop::GatherIndex};
use super::{
    KnownPackages, Name, Registries, RegistryError,
    concurrency::run_concurrently,
    error::plain,
    known_packages::Unanswered,
    registries::{Lookup, unchanged},
    wire::IndexLine,
};
use crate::{
    Tree,
    install::{CheckedSkill, FetchReason, FetchedSkill, State},
    lock::LockedSource,
    resolve::{self, Request, Resolution, ResolveError, Update, resolve},
    trust::Tier,
};

/// The inputs of [`gather`]: installed, newly fetched and requested skills.
#[derive(Clone, Debug)]
pub struct GatherRequest<'a> {
    /// The installed skills, and the requirements of `savoir.toml`.
    pub state: &'a State,
    /// Skills just fetched from other sources, which may depend on skills of registries.
    pub arrived: &'a [CheckedSkill],
    /// The skills that the user requests by name.
    pub asked: Vec<RequestedSkill>,
    /// The installed skills whose version may change, by the names of their folders.
    pub update: Update,
}

impl<'a> GatherRequest<'a> {
    /// A request for the skills of `savoir.toml` only.
    pub fn new(state: &'a State) -> Self {
        Self { state, arrived: &[], asked: Vec::new(), update: Update::Nothing }
    }
}

/// A skill that the user requests by name.
#[derive(Clone, Debug)]
pub struct RequestedSkill {
    pub name: Name,
    /// The acceptable versions.
    pub range: VersionRange,
    /// The registry that the skill must come from: its name or its address.
    pub registry: Option<String>,
}

/// The result of [`gather`]: the chosen versions and the newly fetched skills.
#[derive(Debug)]
pub struct GatheredSkills {
    /// The fetched skills that are not installed yet, each after its dependencies. If a skill set
    /// installs these together with [`GatherRequest::arrived`], it resolves to the same versions.
    pub arrivals: Vec<FetchedSkill>,
    /// The tier that the registry states for each fetched skill, by the name of its folder. It is
    /// only a claim: Savoir uses the tier that the signatures attest under the keys that the user
    /// trusts.
    pub registry_tiers: BTreeMap<String, Tier>,
    /// Notes about the chosen versions to show to the user.
    pub notes: Vec<GatherNote>,
    /// All chosen versions, by the names under which they are published.
    pub resolution: Resolution,
}

/// A note about a chosen version to show to the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GatherNote {
    /// The authors deprecated the version.
    Deprecated {
        name: String,
        version: Version,
        /// The message of the authors.
        message: String,
    },
    /// The version was yanked, and stays only because it is installed.
    Withdrawn {
        name: String,
        version: Version,
        /// The reason, if the person who yanked the version stated one.
        reason: Option<String>,
    },
    /// The registry took the version down: it can no longer be downloaded, and stays only because
    /// it is installed.
    TakenDown {
        name: String,
        version: Version,
        /// The reason, if the registry stated one.
        reason: Option<String>,
    },
    /// A registry did not answer about skills whose version does not change.
    Unanswered {
        /// The address of the registry.
        registry: String,
        /// The skills that the registry was asked about.
        names: Vec<String>,
        /// The reason why the request failed.
        why: String,
    },
}

impl From<&Unanswered> for GatherNote {
    fn from(one: &Unanswered) -> Self {
        let names = one.names.iter().map(ToString::to_string).collect();
        Self::Unanswered { registry: one.registry.clone(), names, why: one.why.clone() }
    }
}

/// An error of [`gather`].
#[derive(Debug, Error)]
pub enum GatherError {
    /// A registry did not answer, or its answer was rejected.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// No set of versions satisfies all requirements.
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    /// Two chosen skills would be installed into the same folder.
    #[error("`{first}` and `{second}` are both installed as `{folder}`, so that only one can be")]
    SameFolder { folder: String, first: String, second: String },
}

impl GatherError {
    /// A stable error code for programs.
    pub fn code(&self) -> &str {
        match self {
            Self::Registry(error) => error.code(),
            Self::Resolve(error) => error.code(),
            Self::SameFolder { .. } => "same_folder",
        }
    }

    /// Suggestions to solve the error.
    pub fn hints(&self) -> Vec<String> {
        match self {
            Self::Registry(_) => Vec::new(),
            Self::Resolve(error) => error.hints().to_vec(),
            Self::SameFolder { first, second, .. } => {
                vec![format!("remove what needs `{first}`, or what needs `{second}`")]
            }
        }
    }
}

/// Chooses compatible versions for the requirements of `savoir.toml` and of the request, and
/// fetches the versions that are not installed yet. All index requests to registries finish before
/// versions are chosen.
pub async fn gather(
    registries: &Registries,
    wish: &GatherRequest<'_>,
) -> Result<GatheredSkills, GatherError> {
    let mut registries = registries.clone();
    let order = GatherInputs::new(&mut registries, wish)?;
    let (bound, homes) = (&order.bound, &order.homes);
    let (local, held) = (&order.local, &order.held_names().cloned().collect());
    let settled = &order.settled(&wish.update);
    let lookup = Lookup { names: order.names(), bound, homes, local, held, settled };
    let known = registries.look_up(lookup).await?;
    let shop = GatherIndex { known: &known, order: &order, network: registries.network() };
    let resolution = choose(&registries, &shop, wish)?;
    check_folders(&resolution)?;
    check_homes(&registries, &shop, &resolution).await?;
    let lines = to_fetch(&registries, &shop, &resolution)?;
    let mut trees = fetch(&registries, lines).await?;
    let (mut arrivals, mut registry_tiers) = (Vec::new(), BTreeMap::new());
    for name in &resolution.order {
        if let Some((line, at, tree)) = trees.remove(name) {
            registry_tiers.insert(line.name.last().to_owned(), line.earned());
            arrivals.push(FetchedSkill {
                tree,
                called: line.name.last().to_owned(),
                source: LockedSource::registry(&registries.at(at).address(), &line.name),
                why: why(&order, wish, &line),
                counted: Some(line.version),
            });
        }
    }
    let notes = notes(&shop, &resolution);
    Ok(GatheredSkills { arrivals, registry_tiers, notes, resolution })
}

fn choose(
    registries: &Registries,
    shop: &GatherIndex<'_>,
    wish: &GatherRequest<'_>,
) -> Result<Resolution, GatherError> {
    let (roots, locked) = (shop.order.roots.clone(), shop.order.locked());
    let mut request = Request { roots, locked, update: shop.order.freed(&wish.update) };
    let mut chosen = resolve(shop, &request);
    // A yanked version that cannot be replaced stays installed, and a note reports it.
    if chosen.is_err()
        && let Some(update) = shop.update_of_the_rest(&request.update)
    {
        request.update = update;
        chosen = resolve(shop, &request);
    }
    chosen.map_err(|error| explained(registries, shop, error))
}

/// Adds hints from the registries to a resolver error.
fn explained(registries: &Registries, shop: &GatherIndex<'_>, error: ResolveError) -> GatherError {
    let unasked: Vec<String> =
        shop.known.unasked().iter().map(|name| format!("`{name}`")).collect();
    match error {
        // An unknown skill may exist in a registry that was not asked because Savoir is offline.
        ResolveError::Unknown(_) if !unasked.is_empty() => {
            RegistryError::Offline(unasked.join(", ")).into()
        }
        ResolveError::Unknown(mut why) => {
            if let Some((gone, at)) = shop.all_gone_of(&why) {
                return RegistryError::taken_down(gone, registries.at(at).address()).into();
            }
            why.hints.extend(registries.silent().map(|address| {
                format!("`{address}` was not asked: {}", Registries::WAY_TO_THE_SILENT)
            }));
            why.hints.extend(shop.hints(&why));
            ResolveError::Unknown(why).into()
        }
        ResolveError::Conflict(mut why) => {
            why.hints.extend(shop.hints(&why));
            ResolveError::Conflict(why).into()
        }
        error => error.into(),
    }
}

/// Returns the folder name of a skill: the last part of its published name.
fn folder(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

fn check_folders(resolution: &Resolution) -> Result<(), GatherError> {
    let mut folders: BTreeMap<&str, &str> = BTreeMap::new();
    for name in resolution.chosen.keys() {
        if let Some(first) = folders.insert(folder(name), name) {
            let (folder, first, second) = (folder(name).into(), first.into(), name.clone());
            return Err(GatherError::SameFolder { folder, first, second });
        }
    }
    Ok(())
}

/// Rejects a dependency of a new skill that was chosen from another registry although the registry
/// of the new skill has a skill of that name. It is ambiguous which of the two is meant, unless the
/// user named the registry or the name has an owner.
async fn check_homes(
    registries: &Registries,
    shop: &GatherIndex<'_>,
    resolution: &Resolution,
) -> Result<(), RegistryError> {
    for (needing, chosen) in &resolution.chosen {
        let Some((line, home)) = shop.published(needing, &chosen.version) else { continue };
        if shop.order.copy(needing, &chosen.version).is_some() {
            continue;
        }
        for need in line.needs().unwrap_or_default() {
            let (Some(needed), Ok(name)) =
                (resolution.chosen.get(&need.name), Name::parse(&need.name))
            else {
                continue;
            };
            let from = shop.published(&need.name, &needed.version).map(|(_, from)| from);
            let is_settled = shop.order.is_named(&need.name)
                || registries.owner_of(&name).is_some()
                || from.is_none_or(|from| from == home);
            if is_settled || registries.at(home).index(&name).await?.is_none() {
                continue;
            }
            return Err(RegistryError::TwoHomes {
                name,
                needing: line.name.clone(),
                home: registries.at(home).address(),
                other: from.map(|from| registries.at(from).address()).unwrap_or_default(),
            });
        }
    }
    Ok(())
}

type ToFetch = (IndexLine, usize);

/// Returns the chosen versions that are not installed, or that the user requested by name again.
fn to_fetch(
    registries: &Registries,
    shop: &GatherIndex<'_>,
    resolution: &Resolution,
) -> Result<Vec<ToFetch>, RegistryError> {
    let mut lines = Vec::new();
    for (name, chosen) in &resolution.chosen {
        let line = shop.published(name, &chosen.version);
        let held = shop.order.copy(name, &chosen.version);
        if let (Some(held), Some((line, at))) = (held, line)
            && held.registry.as_ref() == Some(&registries.at(at).address())
        {
            unchanged(registries.at(at), line, &held.integrity)?;
        }
        if held.is_some() && !shop.order.asked.contains_key(name) {
            continue;
        }
        match line {
            Some((line, at)) => lines.push((line.clone(), at)),
            None => return Err(gone(registries, name, chosen)),
        }
    }
    Ok(lines)
}

/// The error for a version that is installed, requested again, and no longer published.
fn gone(registries: &Registries, name: &str, chosen: &resolve::Chosen) -> RegistryError {
    let parsed = match Name::parse(name) {
        Ok(parsed) => parsed,
        Err(error) => return error.into(),
    };
    match registries.client_of(&parsed) {
        Ok(client) => RegistryError::no_version(&parsed, &chosen.version, client.address()),
        Err(error) => error,
    }
}

type Fetched = BTreeMap<String, (IndexLine, usize, Tree)>;

async fn fetch(registries: &Registries, lines: Vec<ToFetch>) -> Result<Fetched, RegistryError> {
    let fetched = run_concurrently(lines, |(line, at)| {
        let client = registries.at(at).clone();
        async move {
            let tree = client.download_signed(&line).await?;
            Ok::<_, RegistryError>((line.name.to_string(), (line, at, tree)))
        }
    });
    Ok(fetched.await?.into_iter().collect())
}

/// Returns the reason of a fetch such that [`crate::install`] resolves to the same versions.
fn why(order: &GatherInputs, wish: &GatherRequest<'_>, line: &IndexLine) -> FetchReason {
    let name = line.name.to_string();
    let is_held = order.is_held(&name);
    if let Some(wanted) = order.asked.get(&name) {
        return FetchReason::Requested(wanted.clone());
    }
    match order.wanted.get(&name) {
        // `savoir.toml` requires the skill, and the lock has no copy of it from that source.
        Some(wanted) if !is_held => FetchReason::Requested(wanted.clone()),
        _ if wish.state.lock.skills.contains_key(line.name.last()) => FetchReason::Update,
        _ => FetchReason::IfNeeded,
    }
}

fn notes(shop: &GatherIndex<'_>, resolution: &Resolution) -> Vec<GatherNote> {
    let mut notes: Vec<GatherNote> = shop.known.unanswered().iter().map(GatherNote::from).collect();
    for (name, chosen) in &resolution.chosen {
        if let Some(gone) = shop.gone(name, &chosen.version) {
            let (name, version) = (name.clone(), chosen.version.clone());
            let reason = gone.withdrawn_reason.as_deref().map(plain);
            notes.push(GatherNote::TakenDown { name, version, reason });
            continue;
        }
        let Some((line, _)) = shop.published(name, &chosen.version) else { continue };
        let (name, version) = (name.clone(), chosen.version.clone());
        if line.yanked {
            let reason = line.yanked_reason.as_deref().map(plain);
            let (name, version) = (name.clone(), version.clone());
            notes.push(GatherNote::Withdrawn { name, version, reason });
        }
        if let Some(message) = &line.deprecated {
            notes.push(GatherNote::Deprecated { name, version, message: plain(message) });
        }
    }
    notes
}
