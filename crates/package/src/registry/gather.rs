//! Resolves versions from registries and installed skills, and fetches them.

mod index;
mod inputs;

use std::{collections::BTreeMap, sync::Arc};

use savoir_skill::version::VersionRange;
use semver::Version;
use thiserror::Error;

use self::{index::GatherIndex, inputs::GatherInputs};
use super::{
    KnownPackages, Name, Registries, RegistryError,
    concurrency::run_concurrently,
    error::printable,
    known_packages::UnansweredLookup,
    registries::{Lookup, check_integrity},
    wire::{Attestations, IndexLine},
};
use crate::{
    Tree,
    install::{CheckedSkill, FetchReason, FetchedSkill, State},
    lock::LockedSource,
    resolve::{self, Request, Resolution, ResolveError, Update, resolve},
    trust::{Tier, TrustStore},
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
    /// The keys whose evaluations are fetched if a version has many.
    pub trust: Option<&'a TrustStore>,
}

impl<'a> GatherRequest<'a> {
    /// A request for the skills of `savoir.toml` only.
    pub fn new(state: &'a State) -> Self {
        Self { state, arrived: &[], asked: Vec::new(), update: Update::Nothing, trust: None }
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
    /// The signed evaluations that the registry has of each fetched skill, by the name of its
    /// folder. They are not checked.
    pub attestations: BTreeMap<String, Attestations>,
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
    /// The signed evaluations of a version could not be fetched.
    NoEvaluations {
        name: String,
        version: Version,
        /// The reason why the request failed.
        why: String,
    },
}

impl From<&UnansweredLookup> for GatherNote {
    fn from(one: &UnansweredLookup) -> Self {
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
    request: &GatherRequest<'_>,
) -> Result<GatheredSkills, GatherError> {
    let mut registries = registries.clone();
    let inputs = GatherInputs::new(&mut registries, request)?;
    let lookup = Lookup {
        names: inputs.names(),
        required_registries: &inputs.required_registries,
        namespace_registries: &inputs.namespace_registries,
        names_without_registry: &inputs.names_without_registry,
        available: &inputs.names_with_copies().cloned().collect(),
        unchanged: &inputs.names_that_stay(&request.update),
    };
    let known = registries.look_up(lookup).await?;
    let index = GatherIndex { known: &known, inputs: &inputs, network: registries.network() };
    let resolution = choose_versions(&registries, &index, request)?;
    check_folders_differ(&resolution)?;
    check_dependency_registries(&registries, &index, &resolution).await?;
    let lines = versions_to_fetch(&registries, &index, &resolution)?;
    let trust = Arc::new(request.trust.cloned().unwrap_or_default());
    let mut trees = fetch_versions(&registries, lines, &trust).await?;
    let mut notes = collect_notes(&index, &resolution);
    let (mut arrivals, mut registry_tiers) = (Vec::new(), BTreeMap::new());
    let mut attestations = BTreeMap::new();
    for name in &resolution.order {
        if let Some((line, at, tree, attested)) = trees.remove(name) {
            registry_tiers.insert(line.name.last().to_owned(), line.earned());
            match attested {
                Ok(attested) => {
                    attestations.insert(line.name.last().to_owned(), attested);
                }
                Err(error) => notes.push(GatherNote::NoEvaluations {
                    name: line.name.to_string(),
                    version: line.version.clone(),
                    why: error.to_string(),
                }),
            }
            arrivals.push(FetchedSkill {
                tree,
                called: line.name.last().to_owned(),
                source: LockedSource::registry(&registries.at(at).address(), &line.name),
                why: fetch_reason(&inputs, request, &line),
                counted: Some(line.version),
            });
        }
    }
    Ok(GatheredSkills { arrivals, registry_tiers, attestations, notes, resolution })
}

fn choose_versions(
    registries: &Registries,
    index: &GatherIndex<'_>,
    request: &GatherRequest<'_>,
) -> Result<Resolution, GatherError> {
    let (roots, locked) = (index.inputs.roots.clone(), index.inputs.locked_versions());
    let mut resolve_request =
        Request { roots, locked, update: index.inputs.with_published_names(&request.update) };
    let mut chosen = resolve(index, &resolve_request);
    // A yanked version that cannot be replaced stays installed, and a note reports it.
    if chosen.is_err()
        && let Some(update) = index.update_without_withdrawn(&resolve_request.update)
    {
        resolve_request.update = update;
        chosen = resolve(index, &resolve_request);
    }
    chosen.map_err(|error| add_registry_hints(registries, index, error))
}

/// Adds hints from the registries to a resolver error.
fn add_registry_hints(
    registries: &Registries,
    index: &GatherIndex<'_>,
    error: ResolveError,
) -> GatherError {
    let unasked: Vec<String> =
        index.known.unasked().iter().map(|name| format!("`{name}`")).collect();
    match error {
        // An unknown skill may exist in a registry that was not asked because Savoir is offline.
        ResolveError::Unknown(_) if !unasked.is_empty() => {
            RegistryError::Offline(unasked.join(", ")).into()
        }
        ResolveError::Unknown(mut why) => {
            if let Some((gone, at)) = index.find_fully_taken_down(&why) {
                return RegistryError::taken_down(gone, registries.at(at).address()).into();
            }
            why.hints.extend(registries.unused().map(|address| {
                format!("`{address}` was not asked: {}", Registries::UNUSED_REGISTRY_HINT)
            }));
            why.hints.extend(index.hints(&why));
            ResolveError::Unknown(why).into()
        }
        ResolveError::Conflict(mut why) => {
            why.hints.extend(index.hints(&why));
            ResolveError::Conflict(why).into()
        }
        error => error.into(),
    }
}

/// Returns the folder name of a skill: the last part of its published name.
fn folder_name(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

fn check_folders_differ(resolution: &Resolution) -> Result<(), GatherError> {
    let mut folders: BTreeMap<&str, &str> = BTreeMap::new();
    for name in resolution.chosen.keys() {
        if let Some(first) = folders.insert(folder_name(name), name) {
            let (folder, first, second) = (folder_name(name).into(), first.into(), name.clone());
            return Err(GatherError::SameFolder { folder, first, second });
        }
    }
    Ok(())
}

/// Rejects a dependency of a new skill that was chosen from another registry although the registry
/// of the new skill has a skill of that name. It is ambiguous which of the two is meant, unless the
/// user named the registry or the name has an owner.
async fn check_dependency_registries(
    registries: &Registries,
    index: &GatherIndex<'_>,
    resolution: &Resolution,
) -> Result<(), RegistryError> {
    for (needing, chosen) in &resolution.chosen {
        let Some((line, home)) = index.find_published(needing, &chosen.version) else { continue };
        if index.inputs.find_copy(needing, &chosen.version).is_some() {
            continue;
        }
        for need in line.needs().unwrap_or_default() {
            let (Some(needed), Ok(name)) =
                (resolution.chosen.get(&need.name), Name::parse(&need.name))
            else {
                continue;
            };
            let from = index.find_published(&need.name, &needed.version).map(|(_, from)| from);
            let is_unambiguous = index.inputs.names_registry(&need.name)
                || registries.owner_of(&name).is_some()
                || from.is_none_or(|from| from == home);
            if is_unambiguous || registries.at(home).index(&name).await?.is_none() {
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

type VersionAndRegistry = (IndexLine, usize);

/// Returns the chosen versions that are not installed, or that the user requested by name again.
fn versions_to_fetch(
    registries: &Registries,
    index: &GatherIndex<'_>,
    resolution: &Resolution,
) -> Result<Vec<VersionAndRegistry>, RegistryError> {
    let mut lines = Vec::new();
    for (name, chosen) in &resolution.chosen {
        let line = index.find_published(name, &chosen.version);
        let installed = index.inputs.find_copy(name, &chosen.version);
        if let (Some(installed), Some((line, at))) = (installed, line)
            && installed.registry.as_ref() == Some(&registries.at(at).address())
        {
            check_integrity(registries.at(at), line, &installed.integrity)?;
        }
        if installed.is_some() && !index.inputs.requested.contains_key(name) {
            continue;
        }
        match line {
            Some((line, at)) => lines.push((line.clone(), at)),
            None => return Err(not_published_error(registries, name, chosen)),
        }
    }
    Ok(lines)
}

/// The error for a version that is installed, requested again, and no longer published.
fn not_published_error(
    registries: &Registries,
    name: &str,
    chosen: &resolve::Chosen,
) -> RegistryError {
    let parsed = match Name::parse(name) {
        Ok(parsed) => parsed,
        Err(error) => return error.into(),
    };
    match registries.client_of(&parsed) {
        Ok(client) => RegistryError::no_version(&parsed, &chosen.version, client.address()),
        Err(error) => error,
    }
}

/// A version works without its evaluations, so that an error of these is not one of the version.
type FetchedEvaluations = Result<Attestations, RegistryError>;
type FetchedVersions = BTreeMap<String, (IndexLine, usize, Tree, FetchedEvaluations)>;

async fn fetch_versions(
    registries: &Registries,
    lines: Vec<VersionAndRegistry>,
    trust: &Arc<TrustStore>,
) -> Result<FetchedVersions, RegistryError> {
    let fetched = run_concurrently(lines, |(line, at)| {
        let (client, trust) = (registries.at(at).clone(), Arc::clone(trust));
        async move {
            let tree = client.download_signed(&line).await?;
            let attestations = client.attestations_of(&line, &trust).await;
            Ok::<_, RegistryError>((line.name.to_string(), (line, at, tree, attestations)))
        }
    });
    Ok(fetched.await?.into_iter().collect())
}

/// Returns the reason of a fetch such that [`crate::install`] resolves to the same versions.
fn fetch_reason(
    inputs: &GatherInputs,
    request: &GatherRequest<'_>,
    line: &IndexLine,
) -> FetchReason {
    let name = line.name.to_string();
    let has_locked_copy = inputs.has_locked_copy(&name);
    if let Some(requirement) = inputs.requested.get(&name) {
        return FetchReason::Requested(requirement.clone());
    }
    match inputs.requirements.get(&name) {
        // `savoir.toml` requires the skill, and the lock has no copy of it from that source.
        Some(requirement) if !has_locked_copy => FetchReason::Requested(requirement.clone()),
        _ if request.state.lock.skills.contains_key(line.name.last()) => FetchReason::Update,
        _ => FetchReason::IfNeeded,
    }
}

fn collect_notes(index: &GatherIndex<'_>, resolution: &Resolution) -> Vec<GatherNote> {
    let mut notes: Vec<GatherNote> =
        index.known.unanswered().iter().map(GatherNote::from).collect();
    for (name, chosen) in &resolution.chosen {
        if let Some(gone) = index.find_taken_down(name, &chosen.version) {
            let (name, version) = (name.clone(), chosen.version.clone());
            let reason = gone.withdrawn_reason.as_deref().map(printable);
            notes.push(GatherNote::TakenDown { name, version, reason });
            continue;
        }
        let Some((line, _)) = index.find_published(name, &chosen.version) else { continue };
        let (name, version) = (name.clone(), chosen.version.clone());
        if line.yanked {
            let reason = line.yanked_reason.as_deref().map(printable);
            let (name, version) = (name.clone(), version.clone());
            notes.push(GatherNote::Withdrawn { name, version, reason });
        }
        if let Some(message) = &line.deprecated {
            notes.push(GatherNote::Deprecated { name, version, message: printable(message) });
        }
    }
    notes
}
