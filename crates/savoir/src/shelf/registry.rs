//! Skills that are asked for by name.

use std::{collections::BTreeSet, path::Path};

use savoir_package::{
    lock::{LockedSkill, LockedSource},
    manifest::Wanted,
    registry::{
        Asked, GatherError, Name, NameError, Network, Note, Registries, RegistryError, Settings,
        Wish, gather, still_given,
    },
    resolve::Update,
    shelf::{Ready, State},
    source::{Source, SourceError, is_range, is_shorthand},
    trust::Tier,
};

use super::{Door, progress};
use crate::{error::CommandError, offline, output, remote::Remote};

/// Which registries are asked.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Ask {
    #[command(flatten)]
    remote: Remote,
    /// Use only what was downloaded before, and ask no server
    #[arg(long)]
    offline: bool,
}

impl Ask {
    /// Whether anybody is asked.
    pub(crate) fn network(&self) -> Network {
        offline::network(self.offline)
    }

    /// A source as it is meant: `acme/pdf` is a skill of the registry that was typed, that the
    /// namespace belongs to, or that knows it. It is a repository only where nobody has a registry:
    /// else whoever takes the name on GitHub, or one that differs by a slip, could give people
    /// something else than they mean.
    pub(crate) fn meant(&self, text: &str, door: &Door) -> Result<String, CommandError> {
        let text = text.trim();
        let as_typed = || Ok(text.to_owned());
        if !is_shorthand(text) {
            return as_typed();
        }
        let state = door.shelf.state()?;
        let registries = door.registries(&state, self)?;
        let typed = self.remote.registry.is_some();
        if !typed && registries.is_empty() && !has_published(&state) {
            return as_typed();
        }
        let (full, reference) = match text.split_once('@') {
            Some((full, reference)) if !full.is_empty() => (full, Some(reference)),
            _ => (text, None),
        };
        let name = Name::parse(full);
        match (&name, reference) {
            (Err(_), _) if Path::new(text).exists() => return as_typed(),
            (Err(error), _) => return Err(no_name(text, error)),
            (Ok(_), None) if Path::new(text).exists() => {
                return Err(two_ways(text, format!("./{text}"), format!("registry:{text}")));
            }
            // A branch or a tag, perhaps, which no registry has; or a slip in a range.
            (Ok(_), Some(reference)) if !is_range(reference) => {
                return Err(unclear(text, "a registry has versions and no branches or tags"));
            }
            (Ok(name), None)
                if !typed && registries.owner_of(name).is_none() && !has_home(&state, name) =>
            {
                must_be_known(&registries, name, door)?;
            }
            _ => {}
        }
        Ok(format!("registry:{text}"))
    }

    /// What is asked for, if a source is the name of a published skill.
    pub(crate) fn named(&self, source: &Source) -> Result<Option<Asked>, CommandError> {
        let Source::Registry { namespace, name, range } = source else { return Ok(None) };
        let full = match namespace {
            Some(namespace) => format!("{namespace}/{name}"),
            None => name.clone(),
        };
        let name =
            Name::parse(&full).map_err(|error| CommandError::from(RegistryError::from(error)))?;
        Ok(Some(Asked { name, range: range.clone(), registry: self.remote.registry.clone() }))
    }
}

/// Whether a project has anything of a registry, whoever set that.
fn has_published(state: &State) -> bool {
    let wants = |wanted: &Wanted| matches!(wanted, Wanted::Version { registry: Some(_), .. });
    state.manifest.skills.values().any(wants) || published(state).next().is_some()
}

/// Whether something of a namespace came from a registry before, which is asked about the rest of it.
fn has_home(state: &State, name: &Name) -> bool {
    published(state)
        .any(|known| Name::parse(known).is_ok_and(|known| known.namespace() == name.namespace()))
}

/// The names of what the lock has from registries.
fn published(state: &State) -> impl Iterator<Item = &str> {
    let locked = state.lock.skills.iter();
    locked.filter_map(|(installed, locked)| Some(locked.source.published(installed)?.1))
}

/// Refuses a name that no registry knows.
fn must_be_known(registries: &Registries, name: &Name, door: &Door) -> Result<(), CommandError> {
    door.doing("asking the registry");
    let found = door.wait(registries.find(name));
    door.done();
    let why = match found {
        Ok(Some(_)) => return Ok(()),
        Ok(None) if registries.clients().next().is_none() => {
            "registries are known here, and none of them is set".to_owned()
        }
        Ok(None) => "none of the registries that were asked has it".to_owned(),
        Err(error) => format!("could not check whether a registry has it: {error}"),
    };
    let way = Registries::WAY_TO_THE_SILENT;
    let silent = registries.silent().map(|address| format!("{address} was not asked: {way}"));
    Err(silent.fold(unclear(&name.to_string(), &why), CommandError::hint))
}

fn unclear(text: &str, why: &str) -> CommandError {
    let refused = two_ways(text, format!("registry:{text}"), format!("github:{text}"));
    refused.hint(why).hint("to name the registry that is meant: --registry URL")
}

fn two_ways(text: &str, first: String, second: String) -> CommandError {
    SourceError::Ambiguous { text: text.to_owned(), first, second }.into()
}

/// With a registry, a name with a slip is no repository of a stranger.
fn no_name(text: &str, error: &NameError) -> CommandError {
    let why = format!("{error}; for a repository write `github:{text}`");
    SourceError::Text { text: text.to_owned(), why }.into()
}

impl Door {
    /// The same, with sources that are asked as `--offline` says.
    pub(crate) fn asking(self, ask: &Ask) -> Self {
        Self { fetcher: self.fetcher.with_network(ask.network()), ..self }
    }

    /// The registries in the order in which they are asked.
    pub(crate) fn registries(&self, state: &State, ask: &Ask) -> Result<Registries, CommandError> {
        let mut settings = Settings::new(self.cache.join("registry"));
        settings.watcher = Some(progress::watcher(&self.progress));
        settings.network = ask.network();
        ask.remote.registries(&state.manifest.registries, settings)
    }

    /// Chooses versions of what is asked for and of what it needs, fetches and checks them.
    pub(crate) fn gather(
        &self,
        state: &State,
        arrived: &[Ready],
        asked: Vec<Asked>,
        update: Update,
        ask: &Ask,
    ) -> Result<Vec<Ready>, CommandError> {
        self.doing("asking the registry");
        let registries = self.registries(state, ask)?;
        let wish = Wish { state, arrived, asked, update };
        let gathered = self.wait(gather(&registries, &wish))?;
        self.done();
        for note in &gathered.notes {
            output::note(&told(note));
        }
        let checked = Ready::check_all(gathered.arrivals, &self.trust).into_iter();
        let ready: Vec<Ready> = checked.collect::<Result<_, _>>()?;
        for one in &ready {
            if let Some(said) = gathered.registry_tiers.get(&one.card.name)
                && one.attestation.tier < *said
            {
                output::note(&not_attested_here(one, *said));
            }
        }
        Ok(ready)
    }

    /// Refuses to lay out skills, of which there is a copy on this machine, that their registries took
    /// down meanwhile.
    pub(crate) fn must_be_given(
        &self,
        state: &State,
        mut names: BTreeSet<String>,
        ask: &Ask,
    ) -> Result<(), CommandError> {
        let skills = &state.lock.skills;
        let is_published = |name: &String| {
            let source = skills.get(name).map(|locked| &locked.source);
            matches!(source, Some(LockedSource::Registry(_)))
        };
        names.retain(is_published);
        if names.is_empty() {
            return Ok(());
        }
        self.doing("asking the registry");
        let registries = self.registries(state, ask)?;
        let untold = self.wait(still_given(&registries, state, &names)).map_err(ways_out)?;
        for (name, why) in untold.iter().filter(|_| ask.network() == Network::Online) {
            output::note(&format!("could not check whether `{name}` was taken down: {why}"));
        }
        Ok(())
    }

    /// Fetches a locked skill again from its registry.
    pub(crate) fn fetch_published(
        &self,
        state: &State,
        name: &str,
        locked: &LockedSkill,
        ask: &Ask,
    ) -> Result<savoir_package::Tree, CommandError> {
        let registries = self.registries(state, ask)?;
        self.wait(registries.fetch_locked(name, locked)).map_err(ways_out)
    }
}

/// What a registry says of a skill, and what is true under the user's own keys.
fn not_attested_here(ready: &Ready, said: Tier) -> String {
    let name = &ready.card.name;
    let (address, published) = ready.source.published(name).unwrap_or_default();
    let here = ready.attestation.tier;
    if here != Tier::Experimental {
        return format!(
            "`{published}`: the registry says {said}; the keys that you trust make it {here} here"
        );
    }
    let owner = published.split('/').next().unwrap_or(published);
    format!(
        "`{published}`: the registry says {said}; no key that you trust signed it, so it is {here} \
         here. To trust the keys of its publisher: savoir keys trust --from-registry {owner} \
         --registry {address}"
    )
}

/// What can be done about a locked skill that is not given any more.
fn ways_out(error: RegistryError) -> CommandError {
    let name = match &error {
        RegistryError::TakenDown { of, .. } | RegistryError::NoVersion(of) => {
            Some(of.name.last().to_owned())
        }
        _ => None,
    };
    let failed = CommandError::from(error);
    match name {
        Some(name) => failed
            .hint(format!("to have another version: savoir update {name}"))
            .hint(format!("to do without it: savoir remove {name}")),
        None => failed,
    }
}

fn told(note: &Note) -> String {
    match note {
        Note::Deprecated { name, version, message } => {
            format!("`{name}` {version} is deprecated: {message}")
        }
        Note::Withdrawn { name, version, reason } => {
            withdrawn(&format!("`{name}` {version}"), reason.as_deref())
        }
        Note::TakenDown { name, version, reason } => {
            let reason = reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
            format!(
                "`{name}` {version} was taken down by its registry{reason}; remove it, or update it"
            )
        }
        Note::Unanswered { registry, names, why } => {
            let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
            let names = names.join(", ");
            format!("{registry} gave no answer about {names}, which stay as they are: {why}")
        }
    }
}

/// What is said of an installed version that nobody else gets any more, and why.
pub(crate) fn withdrawn(what: &str, reason: Option<&str>) -> String {
    let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
    format!("{what} was withdrawn, and stays because it is installed{reason}")
}

impl From<RegistryError> for CommandError {
    fn from(error: RegistryError) -> Self {
        let failed = match error.code() {
            "digest_mismatch" | "content_mismatch" | "version_changed" | "wrong_registry"
            | "taken_down" => Self::refused(&error),
            "invalid_registry" | "invalid_token" | "unknown_registry" | "namespace_conflict" => {
                Self::input(&error)
            }
            _ => Self::findings(&error),
        };
        let failed = failed.named(error.code().to_owned());
        match error {
            RegistryError::None(_) => {
                failed.hint("name one with --registry URL, or in [registries] of savoir.toml")
            }
            RegistryError::NotARegistry { instead: Some(instead), .. } => {
                failed.hint(format!("there is one at {instead}: --registry {instead}"))
            }
            RegistryError::Source(SourceError::Address { address, .. })
                if address.starts_with("http://") =>
            {
                failed.hint("if nobody on the way can do harm, such as at home: --allow-http")
            }
            _ => failed,
        }
    }
}

impl From<GatherError> for CommandError {
    fn from(error: GatherError) -> Self {
        let hints = error.hints();
        match error {
            GatherError::Registry(error) => Self::from(error),
            GatherError::Resolve(error) => Self::from(savoir_package::ShelfError::Resolve(error)),
            GatherError::SameFolder { .. } => {
                let code = error.code().to_owned();
                hints.iter().fold(Self::findings(&error).named(code), Self::hint)
            }
        }
    }
}
