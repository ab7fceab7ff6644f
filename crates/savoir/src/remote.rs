//! Decides which registries are used, in which order, and with which tokens.

use std::{fs, io, sync::Arc};

use savoir_engine::Home;
use savoir_package::{
    manifest::{self, Manifest},
    registry::{
        Client, Name, Network, PlainHttp, Registries, RegistryEntry, RegistryError, Settings,
        canonical,
    },
    source::{Progress, Watcher},
};

use crate::{
    config::{self, PROJECT_FILE},
    credentials::{self, REGISTRY, TOKEN},
    error::CommandError,
    installed, offline, output, runtime,
};

/// Options that choose a registry.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Remote {
    /// Registry, by URL or by name in `[registries]` [default: `SAVOIR_REGISTRY`, then those of
    /// savoir.toml, then those of your settings]
    #[arg(long, value_name = "URL|NAME")]
    pub(crate) registry: Option<String>,
    /// Allow unencrypted HTTP to other machines: anyone on the network can read and change all data
    #[arg(long)]
    pub(crate) allow_http: bool,
}

impl Remote {
    /// The registries in the order of their use: from --registry, from the environment, from the
    /// project, and from the user's settings.
    pub(crate) fn registries(
        &self,
        of_project: &[manifest::Registry],
        settings: Settings,
    ) -> Result<Registries, CommandError> {
        self.among(of_project.iter().map(RegistryEntry::from).collect(), settings)
    }

    fn among(
        &self,
        project: Vec<RegistryEntry>,
        mut settings: Settings,
    ) -> Result<Registries, CommandError> {
        let mut set = project;
        set.extend(of_user()?.iter().map(RegistryEntry::from));
        let typed = self.registry.as_deref().map(|text| address(text, &set)).transpose()?;
        let mut entries = Vec::new();
        if let Some(typed) = &typed {
            let plain = if self.allow_http { PlainHttp::Anyone } else { PlainHttp::ThisMachine };
            entries.push(RegistryEntry { plain, for_one_skill: true, ..RegistryEntry::at(typed) });
        } else if self.allow_http {
            settings.plain = PlainHttp::Anyone;
        }
        if let Some(url) = credentials::variable(REGISTRY) {
            // A configured registry that serves all names keeps its place in the order.
            let is_for_all = |entry: &RegistryEntry| entry.namespaces.is_empty() || entry.fallback;
            let is_it = |entry: &RegistryEntry| is_same(&entry.address, &url);
            let for_one_skill = set.iter().any(|entry| is_for_all(entry) || is_it(entry));
            entries.push(RegistryEntry { for_one_skill, ..RegistryEntry::at(&url) });
        }
        entries.extend(set);
        let known = credentials::all()?;
        // Without other settings, the only registry with a login is used.
        if let (true, 1) = (entries.is_empty(), known.len()) {
            entries.extend(known.keys().map(|address| RegistryEntry::at(address)));
        }
        let mut registries = Registries::new(settings, entries)?;
        for (address, stored) in known {
            registries.log_in(&address, stored.token()?)?;
        }
        match credentials::of_environment(typed.as_deref())? {
            Some((address, token)) => registries.log_in(&address, token)?,
            None if credentials::variable(TOKEN).is_some() => output::note(&format!(
                "{TOKEN} is ignored: set {REGISTRY} to the registry that it is for"
            )),
            None => {}
        }
        Ok(registries)
    }

    /// All registries, for commands that install nothing.
    pub(crate) fn all(&self, network: Network) -> Result<Registries, CommandError> {
        let mut settings = Settings::new(Home::from_environment()?.cache().join("registry"));
        settings.watcher = Some(watcher());
        settings.network = network;
        self.registries(&of_project()?, settings)
    }

    /// The first registry, for commands that are not about a skill.
    pub(crate) fn client(&self) -> Result<Client, CommandError> {
        let registries = self.all(offline::network(false))?;
        registries.clients().next().cloned().ok_or_else(none)
    }

    /// The registry that a skill belongs to, unless --registry names another.
    pub(crate) fn client_of(&self, name: &Name) -> Result<Client, CommandError> {
        self.client_on(offline::network(false), name)
    }

    /// As [`Self::client_of`], with or without a network.
    pub(crate) fn client_on(&self, network: Network, name: &Name) -> Result<Client, CommandError> {
        let registries = self.all(network)?;
        if self.registry.is_some() {
            return registries.clients().next().cloned().ok_or_else(none);
        }
        registry_of(&registries, name)
    }

    /// The registry that may get the user's password. It must not come from a project, whose author
    /// could then get the password.
    pub(crate) fn trusted(&self) -> Result<Client, CommandError> {
        self.user_registries()?.clients().next().cloned().ok_or_else(|| {
            none()
                .hint("passwords go to a registry of a project only if you name it: --registry URL")
        })
    }

    /// As [`Self::trusted`], for the registry that a skill belongs to.
    pub(crate) fn trusted_of(&self, name: &Name) -> Result<Client, CommandError> {
        if self.registry.is_some() {
            return self.trusted();
        }
        registry_of(&self.user_registries()?, name)
    }

    /// The registries without those of the project.
    fn user_registries(&self) -> Result<Registries, CommandError> {
        let mut settings = Settings::new(Home::from_environment()?.cache().join("registry"));
        settings.watcher = Some(watcher());
        settings.network = offline::network(false);
        // --registry may name a registry of the project, since the user chose it.
        let project = if self.registry.is_some() { of_project()? } else { Vec::new() };
        self.registries(&project, settings)
    }
}

fn is_same(address: &str, other: &str) -> bool {
    address == other || matches!((canonical(address), canonical(other)), (Ok(a), Ok(b)) if a == b)
}

fn registry_of(registries: &Registries, name: &Name) -> Result<Client, CommandError> {
    runtime::block_on(async {
        match registries.registry_of(name).await {
            Err(error) => Err(without_install_hints(error)),
            Ok(found) => Ok(found),
        }
    })
}

fn none() -> CommandError {
    none_for("no registry is set")
}

fn none_for(message: &str) -> CommandError {
    CommandError::input(message).with_code("no_registry").hint(registry_hint())
}

/// The hint that says where a registry is configured.
pub(crate) fn registry_hint() -> String {
    let file = config::shown_user_file();
    format!("to use a registry: --registry URL, or in {file}: [registries] default = \"https://…\"")
}

/// The error of a command that needs a registry, without the hints for an install from other
/// sources.
pub(crate) fn without_install_hints(error: RegistryError) -> CommandError {
    match error {
        RegistryError::None(_) => none_for(&error.to_string()),
        error => error.into(),
    }
}

/// The address of the registry from --registry.
fn address(text: &str, set: &[RegistryEntry]) -> Result<String, CommandError> {
    if text.contains("://") {
        return Ok(text.to_owned());
    }
    if let Some(entry) = set.iter().find(|entry| entry.name.as_deref() == Some(text)) {
        return Ok(entry.address.clone());
    }
    let known = set.iter().filter_map(|entry| entry.name.clone()).collect();
    Err(RegistryError::NoSuchRegistry { name: text.to_owned(), known }.into())
}

/// Prints skipped skills, and no other progress.
fn watcher() -> Watcher {
    Arc::new(|event| {
        if let Progress::Skipped { name, why } = event {
            output::note(&format!("skipped `{name}`: {why}"));
        }
    })
}

/// The registries of the project around this folder.
fn of_project() -> Result<Vec<manifest::Registry>, CommandError> {
    let Ok(home) = installed::home() else { return Ok(Vec::new()) };
    let Some(project) = installed::project_around(&home) else { return Ok(Vec::new()) };
    let manifest = Manifest::read(&project.join(PROJECT_FILE)).map_err(CommandError::input)?;
    Ok(manifest.map(|manifest| manifest.registries).unwrap_or_default())
}

/// The registries of the user's settings.
fn of_user() -> Result<Vec<manifest::Registry>, CommandError> {
    let Some(path) = config::user_folder().map(|folder| folder.join("config.toml")) else {
        return Ok(Vec::new());
    };
    match fs::read_to_string(&path) {
        Ok(text) => {
            let file = path.display().to_string();
            manifest::registries(&file, &text).map_err(CommandError::input)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(CommandError::input(format!("{}: {error}", path.display()))),
    }
}
