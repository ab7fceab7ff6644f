//! Resolves and fetches skills from registries.

use std::{collections::BTreeSet, path::Path};

use savoir_package::{
    install::{CheckedSkill, State},
    lock::{LockedSkill, LockedSource},
    manifest::SkillRequirement,
    registry::{
        GatherError, GatherNote, GatherRequest, Name, NameError, Network, Registries,
        RegistryError, RequestedSkill, Settings, check_still_available, gather,
    },
    resolve::Update,
    source::{Source, SourceError, is_range, is_shorthand},
    trust::Tier,
};

use semver::Version;

use super::{InstallContext, progress};
use crate::{
    error::CommandError,
    evaluations, offline, output,
    remote::{Remote, registry_hint},
};

/// Options that choose registries and network access.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct RegistryArgs {
    #[command(flatten)]
    remote: Remote,
    /// Use only downloaded data, without network access
    #[arg(long)]
    offline: bool,
}

impl RegistryArgs {
    /// Whether the network may be used.
    pub(crate) fn network(&self) -> Network {
        offline::network(self.offline)
    }

    /// Resolves a shorthand such as `acme/pdf`. It is a skill of the registry from --registry, of the
    /// one that the namespace belongs to, or of one that has it. It is a GitHub repository only if no
    /// registry is configured: otherwise anyone could take the name, or a similar one, on GitHub.
    pub(crate) fn full_source(
        &self,
        text: &str,
        context: &InstallContext,
    ) -> Result<String, CommandError> {
        let text = text.trim();
        let as_typed = || Ok(text.to_owned());
        if !is_shorthand(text) {
            return as_typed();
        }
        let state = context.skill_set.state()?;
        let registries = context.registries(&state, self)?;
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
            // The text may name a branch or a tag, which registries do not have, or a mistyped
            // range.
            (Ok(_), Some(reference)) if !is_range(reference) => {
                return Err(unclear(text, "a registry has versions, not branches or tags"));
            }
            (Ok(name), None)
                if !typed && registries.owner_of(name).is_none() && !has_home(&state, name) =>
            {
                must_be_known(&registries, name, context)?;
            }
            _ => {}
        }
        Ok(format!("registry:{text}"))
    }

    /// The requested skill, if a source is the name of a published one.
    pub(crate) fn named(&self, source: &Source) -> Result<Option<RequestedSkill>, CommandError> {
        let Source::Registry { namespace, name, range } = source else { return Ok(None) };
        let full = match namespace {
            Some(namespace) => format!("{namespace}/{name}"),
            None => name.clone(),
        };
        let name =
            Name::parse(&full).map_err(|error| CommandError::from(RegistryError::from(error)))?;
        Ok(Some(RequestedSkill {
            name,
            range: range.clone(),
            registry: self.remote.registry.clone(),
        }))
    }
}

/// Whether a project uses any skill from a registry.
fn has_published(state: &State) -> bool {
    let wants = |wanted: &SkillRequirement| {
        matches!(wanted, SkillRequirement::Version { registry: Some(_), .. })
    };
    state.manifest.skills.values().any(wants) || published(state).next().is_some()
}

/// Whether a skill of the same namespace is already installed from a registry.
fn has_home(state: &State, name: &Name) -> bool {
    published(state)
        .any(|known| Name::parse(known).is_ok_and(|known| known.namespace() == name.namespace()))
}

/// The names of locked skills from registries.
fn published(state: &State) -> impl Iterator<Item = &str> {
    let locked = state.lock.skills.iter();
    locked.filter_map(|(installed, locked)| Some(locked.source.published(installed)?.1))
}

/// Fails for a name that no registry has.
fn must_be_known(
    registries: &Registries,
    name: &Name,
    context: &InstallContext,
) -> Result<(), CommandError> {
    context.doing("asking the registry");
    let found = context.wait(registries.find(name));
    context.done();
    let why = match found {
        Ok(Some(_)) => return Ok(()),
        Ok(None) if registries.clients().next().is_none() => {
            "registries are known here, but none of them is set".to_owned()
        }
        Ok(None) => "none of the queried registries has it".to_owned(),
        Err(error) => format!("could not check whether a registry has it: {error}"),
    };
    let way = Registries::UNUSED_REGISTRY_HINT;
    let silent = registries.unused().map(|address| format!("{address} was not asked: {way}"));
    Err(silent.fold(unclear(&name.to_string(), &why), CommandError::hint))
}

fn unclear(text: &str, why: &str) -> CommandError {
    let refused = two_ways(text, format!("registry:{text}"), format!("github:{text}"));
    refused.hint(why).hint("to choose the registry: --registry URL")
}

fn two_ways(text: &str, first: String, second: String) -> CommandError {
    SourceError::Ambiguous { text: text.to_owned(), first, second }.into()
}

/// If a registry is configured, a mistyped name must not become a GitHub repository.
fn no_name(text: &str, error: &NameError) -> CommandError {
    let why = format!("{error}; for a repository write `github:{text}`");
    SourceError::Text { text: text.to_owned(), why }.into()
}

impl InstallContext {
    /// Applies `--offline` to sources.
    pub(crate) fn with_registry_args(self, ask: &RegistryArgs) -> Self {
        Self { fetcher: self.fetcher.with_network(ask.network()), ..self }
    }

    /// The registries in the order of their use.
    pub(crate) fn registries(
        &self,
        state: &State,
        ask: &RegistryArgs,
    ) -> Result<Registries, CommandError> {
        let mut settings = Settings::new(self.cache.join("registry"));
        settings.watcher = Some(progress::watcher(&self.progress));
        settings.network = ask.network();
        ask.remote.registries(&state.manifest.registries, settings)
    }

    /// Resolves, fetches and checks the requested skills and their dependencies.
    pub(crate) fn gather(
        &self,
        state: &State,
        arrived: &[CheckedSkill],
        requested_skills: Vec<RequestedSkill>,
        update: Update,
        ask: &RegistryArgs,
    ) -> Result<Vec<CheckedSkill>, CommandError> {
        self.doing("asking the registry");
        let registries = self.registries(state, ask)?;
        let trust = Some(&self.trust);
        let request = GatherRequest { state, arrived, asked: requested_skills, update, trust };
        let gathered = self.wait(gather(&registries, &request))?;
        self.done();
        for note in &gathered.notes {
            output::note(&note_text(note));
        }
        let checked = self.check_all(gathered.arrivals).into_iter();
        let ready: Vec<CheckedSkill> = checked.collect::<Result<_, _>>()?;
        for one in &ready {
            if let Some(found) = gathered.attestations.get(&one.summary.name) {
                evaluations::store_published(&one.tree.integrity(), found, &self.trust);
            }
            if let Some(said) = gathered.registry_tiers.get(&one.summary.name)
                && one.attestation.tier < *said
            {
                output::note(&not_attested_here(one, *said));
            }
        }
        Ok(ready)
    }

    /// Fails if a registry has removed one of these stored skills.
    pub(crate) fn must_be_given(
        &self,
        state: &State,
        mut names: BTreeSet<String>,
        ask: &RegistryArgs,
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
        let unchecked = self
            .wait(check_still_available(&registries, state, &names))
            .map_err(with_locked_skill_hints)?;
        for (name, why) in unchecked.iter().filter(|_| ask.network() == Network::Online) {
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
        ask: &RegistryArgs,
    ) -> Result<savoir_package::Tree, CommandError> {
        let registries = self.registries(state, ask)?;
        let tree =
            self.wait(registries.fetch_locked(name, locked)).map_err(with_locked_skill_hints)?;
        match self.wait(registries.fetch_attestations(name, locked, &self.trust)) {
            Ok(found) => evaluations::store_published(&locked.integrity, &found, &self.trust),
            Err(why) => output::note(&no_evaluations(name, &locked.version, &why)),
        }
        Ok(tree)
    }
}

/// The note that the tier in the registry is higher than the user's own trusted keys confirm.
fn not_attested_here(ready: &CheckedSkill, said: Tier) -> String {
    let name = &ready.summary.name;
    let (address, published) = ready.source.published(name).unwrap_or_default();
    let here = ready.attestation.tier;
    if here != Tier::Experimental {
        return format!(
            "`{published}` is {said} in the registry, and {here} with the keys that you trust"
        );
    }
    let owner = published.split('/').next().unwrap_or(published);
    format!(
        "`{published}` is {said} in the registry, and {here} here, because no key that you trust \
         signed it. To trust the keys of its publisher: savoir keys trust --from-registry {owner} \
         --registry {address}"
    )
}

/// Adds hints for a locked skill that its registry no longer provides.
fn with_locked_skill_hints(error: RegistryError) -> CommandError {
    let name = match &error {
        RegistryError::TakenDown { of, .. } | RegistryError::NoVersion(of) => {
            Some(of.name.last().to_owned())
        }
        _ => None,
    };
    let failed = CommandError::from(error);
    match name {
        Some(name) => failed
            .hint(format!("to install another version: savoir update {name}"))
            .hint(format!("to remove it: savoir remove {name}")),
        None => failed,
    }
}

fn note_text(note: &GatherNote) -> String {
    match note {
        GatherNote::Deprecated { name, version, message } => {
            format!("`{name}` {version} is deprecated: {message}")
        }
        GatherNote::Withdrawn { name, version, reason } => {
            withdrawn(&format!("`{name}` {version}"), reason.as_deref())
        }
        GatherNote::TakenDown { name, version, reason } => {
            let reason = reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
            format!(
                "`{name}` {version} was taken down by its registry{reason}; remove it, or update it"
            )
        }
        GatherNote::Unanswered { registry, names, why } => {
            let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
            let names = names.join(", ");
            format!("{registry} did not answer about {names}, which stay unchanged: {why}")
        }
        GatherNote::NoEvaluations { name, version, why } => no_evaluations(name, version, why),
    }
}

fn no_evaluations(name: &str, version: &Version, why: &dyn std::fmt::Display) -> String {
    format!("could not fetch the evaluations of `{name}` {version}: {why}")
}

/// The note that an installed version was yanked.
pub(crate) fn withdrawn(what: &str, reason: Option<&str>) -> String {
    let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
    format!("{what} was yanked, and stays installed{reason}")
}

impl From<RegistryError> for CommandError {
    fn from(error: RegistryError) -> Self {
        let failed = match error.code() {
            "digest_mismatch" | "content_mismatch" | "version_changed" | "wrong_registry"
            | "taken_down" => Self::refused(&error),
            "no_registry" | "invalid_registry" | "invalid_token" | "unknown_registry"
            | "namespace_conflict" => Self::input(&error),
            _ => Self::findings(&error),
        };
        let failed = failed.with_code(error.code().to_owned());
        match error {
            RegistryError::None(_) => failed
                .hint("for a folder, give its path: ./NAME; for a repository: OWNER/REPO")
                .hint(registry_hint()),
            RegistryError::NotARegistry { instead: Some(instead), .. } => {
                failed.hint(format!("the registry is at {instead}: --registry {instead}"))
            }
            RegistryError::Source(SourceError::Address { address, .. })
                if address.starts_with("http://") =>
            {
                failed.hint("if you trust the network, for example at home: --allow-http")
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
            GatherError::Resolve(error) => {
                Self::from(savoir_package::InstallFailure::Resolve(error))
            }
            GatherError::SameFolder { .. } => {
                let code = error.code().to_owned();
                hints.iter().fold(Self::findings(&error).with_code(code), Self::hint)
            }
        }
    }
}
