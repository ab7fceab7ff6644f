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

/// What somebody wants.
#[derive(Clone, Debug)]
pub struct GatherRequest<'a> {
    /// What is installed, and what `savoir.toml` asks for.
    pub state: &'a State,
    /// What came from other sources just now, and may need skills of registries.
    pub arrived: &'a [CheckedSkill],
    /// What is asked for by name.
    pub asked: Vec<RequestedSkill>,
    /// Which installed skills may change their version, by the names of their folders.
    pub update: Update,
}

impl<'a> GatherRequest<'a> {
    /// To have what `savoir.toml` asks for.
    pub fn new(state: &'a State) -> Self {
        Self { state, arrived: &[], asked: Vec::new(), update: Update::Nothing }
    }
}

/// A skill that is asked for by name.
#[derive(Clone, Debug)]
pub struct RequestedSkill {
    /// Its name.
    pub name: Name,
    /// The versions that will do.
    pub range: VersionRange,
    /// The registry that it must come from: its name or its address.
    pub registry: Option<String>,
}

/// What was chosen, and what had to be fetched for it.
#[derive(Debug)]
pub struct GatheredSkills {
    /// What is not installed yet: each after what it needs. A shelf that installs these, together
    /// with what had arrived, chooses the same versions.
    pub arrivals: Vec<FetchedSkill>,
    /// The tier that its registry gives each of them, by the name of its folder. It is the registry's
    /// word: what counts here is what their signatures attest under the keys that the user trusts.
    pub registry_tiers: BTreeMap<String, Tier>,
    /// What people should know about what was chosen.
    pub notes: Vec<GatherNote>,
    /// All versions that were chosen, by the names under which they are published.
    pub resolution: Resolution,
}

/// Something that people should know about a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GatherNote {
    /// Its authors want people to use something else.
    Deprecated {
        /// Which skill.
        name: String,
        /// Which version.
        version: Version,
        /// What they say.
        message: String,
    },
    /// It was withdrawn, and only stays because it is installed.
    Withdrawn {
        /// Which skill.
        name: String,
        /// Which version.
        version: Version,
        /// Why, if who withdrew it said so.
        reason: Option<String>,
    },
    /// The registry took it down: nobody gets it any more, and it only stays because it is installed.
    TakenDown {
        /// Which skill.
        name: String,
        /// Which version.
        version: Version,
        /// Why, if who did it said so.
        reason: Option<String>,
    },
    /// A registry gave no answer about skills that stay as they are.
    Unanswered {
        /// The address of the registry.
        registry: String,
        /// Which skills.
        names: Vec<String>,
        /// Why it gave none.
        why: String,
    },
}

impl From<&Unanswered> for GatherNote {
    fn from(one: &Unanswered) -> Self {
        let names = one.names.iter().map(ToString::to_string).collect();
        Self::Unanswered { registry: one.registry.clone(), names, why: one.why.clone() }
    }
}

/// Why nothing was gathered.
#[derive(Debug, Error)]
pub enum GatherError {
    /// A registry gave no answer, or none that is taken.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// No versions go together.
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    /// Two skills would have the same folder.
    #[error("`{first}` and `{second}` are both installed as `{folder}`, so that only one can be")]
    SameFolder {
        /// The folder.
        folder: String,
        /// One skill.
        first: String,
        /// The other.
        second: String,
    },
}

impl GatherError {
    /// A stable word for programs.
    pub fn code(&self) -> &str {
        match self {
            Self::Registry(error) => error.code(),
            Self::Resolve(error) => error.code(),
            Self::SameFolder { .. } => "same_folder",
        }
    }

    /// What could be done about it.
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

/// Chooses versions that go together for what `savoir.toml` and somebody ask for, and fetches those
/// that are not installed yet. All questions are asked before anything is chosen.
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
    // What was withdrawn and cannot be replaced stays where it is, and is told.
    if chosen.is_err()
        && let Some(update) = shop.update_of_the_rest(&request.update)
    {
        request.update = update;
        chosen = resolve(shop, &request);
    }
    chosen.map_err(|error| explained(registries, shop, error))
}

/// Why nothing goes together, with what registries said that has to do with it.
fn explained(registries: &Registries, shop: &GatherIndex<'_>, error: ResolveError) -> GatherError {
    let unasked: Vec<String> =
        shop.known.unasked().iter().map(|name| format!("`{name}`")).collect();
    match error {
        // Nobody can say that there is no such skill without having asked.
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

/// The folder of a skill: the last part of its name.
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

/// What a new skill needs does not come from another registry if its own has a skill of that name:
/// nobody can tell which of them is meant, unless somebody said where the name belongs.
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

/// What is chosen and not there, or asked for by name once more.
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

/// Something that is installed, asked for once more, and not published any more.
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

/// Why a skill was fetched, such that the shelf comes to the same choice.
fn why(order: &GatherInputs, wish: &GatherRequest<'_>, line: &IndexLine) -> FetchReason {
    let name = line.name.to_string();
    let is_held = order.is_held(&name);
    if let Some(wanted) = order.asked.get(&name) {
        return FetchReason::Requested(wanted.clone());
    }
    match order.wanted.get(&name) {
        // It is in `savoir.toml`, and not installed, or from elsewhere.
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
