//! Which registries are asked, in which order, and as whom.

use std::{fs, io, sync::Arc};

use savoir_engine::Home;
use savoir_package::{
    manifest::{self, Manifest},
    registry::{
        Client, Entry, Name, Network, Plain, Registries, RegistryError, Settings, canonical,
    },
    source::{Progress, Watcher},
};

use crate::{
    config::{self, PROJECT_FILE},
    credentials::{self, REGISTRY, TOKEN},
    error::CommandError,
    installed, offline, output, runtime,
};

/// The registry that is meant.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Remote {
    /// A registry: its address, or its name in `[registries]` [default: `SAVOIR_REGISTRY`, those of
    /// savoir.toml, then of your settings]
    #[arg(long, value_name = "URL|NAME")]
    pub(crate) registry: Option<String>,
    /// Ask it without encryption, though it is not on this machine: who is on the way can read and
    /// change everything
    #[arg(long)]
    pub(crate) allow_http: bool,
}

impl Remote {
    /// The registries in the order in which they are asked: the one that was typed, that of the
    /// environment, those of the project, and those of the person.
    pub(crate) fn registries(
        &self,
        of_project: &[manifest::Registry],
        settings: Settings,
    ) -> Result<Registries, CommandError> {
        self.among(of_project.iter().map(Entry::from).collect(), settings)
    }

    fn among(
        &self,
        project: Vec<Entry>,
        mut settings: Settings,
    ) -> Result<Registries, CommandError> {
        let mut set = project;
        set.extend(of_user()?.iter().map(Entry::from));
        let typed = self.registry.as_deref().map(|text| address(text, &set)).transpose()?;
        let mut entries = Vec::new();
        if let Some(typed) = &typed {
            let plain = if self.allow_http { Plain::Anyone } else { Plain::ThisMachine };
            entries.push(Entry { plain, passing: true, ..Entry::at(typed) });
        } else if self.allow_http {
            settings.plain = Plain::Anyone;
        }
        if let Some(url) = credentials::variable(REGISTRY) {
            // Those that are set are asked as they are set, if one of them is for all names.
            let is_for_all = |entry: &Entry| entry.namespaces.is_empty() || entry.fallback;
            let is_it = |entry: &Entry| is_same(&entry.address, &url);
            let passing = set.iter().any(|entry| is_for_all(entry) || is_it(entry));
            entries.push(Entry { passing, ..Entry::at(&url) });
        }
        entries.extend(set);
        let known = credentials::all()?;
        // Who logged in to one registry means that one.
        if let (true, 1) = (entries.is_empty(), known.len()) {
            entries.extend(known.keys().map(|address| Entry::at(address)));
        }
        let mut registries = Registries::new(settings, entries)?;
        for (address, kept) in known {
            registries.log_in(&address, kept.token()?)?;
        }
        match credentials::of_environment(typed.as_deref())? {
            Some((address, token)) => registries.log_in(&address, token)?,
            None if credentials::variable(TOKEN).is_some() => output::note(&format!(
                "{TOKEN} goes to nobody: say in {REGISTRY} which registry it is for"
            )),
            None => {}
        }
        Ok(registries)
    }

    /// All registries, for commands that have no shelf.
    pub(crate) fn all(&self, network: Network) -> Result<Registries, CommandError> {
        let mut settings = Settings::new(Home::from_environment()?.cache().join("registry"));
        settings.watcher = Some(watcher());
        settings.network = network;
        self.registries(&of_project()?, settings)
    }

    /// The registry that is meant where no skill is named.
    pub(crate) fn client(&self) -> Result<Client, CommandError> {
        let registries = self.all(offline::network(false))?;
        registries.clients().next().cloned().ok_or_else(none)
    }

    /// The registry that a skill belongs to, unless another was typed.
    pub(crate) fn client_of(&self, name: &Name) -> Result<Client, CommandError> {
        self.client_on(offline::network(false), name)
    }

    /// The same, with or without a network.
    pub(crate) fn client_on(&self, network: Network, name: &Name) -> Result<Client, CommandError> {
        let registries = self.all(network)?;
        if self.registry.is_some() {
            return registries.clients().next().cloned().ok_or_else(none);
        }
        home_of(&registries, name)
    }

    /// The registry that a person trusts with a password. A project cannot name it: whoever wrote
    /// the project would get the password.
    pub(crate) fn trusted(&self) -> Result<Client, CommandError> {
        self.own()?.clients().next().cloned().ok_or_else(|| {
            none().hint("that of a project gets no password unless you name it: --registry URL")
        })
    }

    /// The same for one that a skill belongs to.
    pub(crate) fn trusted_of(&self, name: &Name) -> Result<Client, CommandError> {
        if self.registry.is_some() {
            return self.trusted();
        }
        home_of(&self.own()?, name)
    }

    /// The registries of the person alone.
    fn own(&self) -> Result<Registries, CommandError> {
        let mut settings = Settings::new(Home::from_environment()?.cache().join("registry"));
        settings.watcher = Some(watcher());
        settings.network = offline::network(false);
        // A name that was typed may be one of the project: the person chose it.
        let project = if self.registry.is_some() { of_project()? } else { Vec::new() };
        self.registries(&project, settings)
    }
}

fn is_same(address: &str, other: &str) -> bool {
    address == other || matches!((canonical(address), canonical(other)), (Ok(a), Ok(b)) if a == b)
}

fn home_of(registries: &Registries, name: &Name) -> Result<Client, CommandError> {
    runtime::block_on(async { Ok(registries.home_of(name).await?) })
}

fn none() -> CommandError {
    CommandError::input("no registry is set").named("no_registry").hint(
        "name one with --registry URL, or write [registries] with default = \"https://…\" into \
         config.toml of your settings",
    )
}

/// The address of a registry that was typed.
fn address(text: &str, set: &[Entry]) -> Result<String, CommandError> {
    if text.contains("://") {
        return Ok(text.to_owned());
    }
    if let Some(entry) = set.iter().find(|entry| entry.name.as_deref() == Some(text)) {
        return Ok(entry.address.clone());
    }
    let known = set.iter().filter_map(|entry| entry.name.clone()).collect();
    Err(RegistryError::NoSuchRegistry { name: text.to_owned(), known }.into())
}

/// Tells what is left out, and nothing else.
fn watcher() -> Watcher {
    Arc::new(|event| {
        if let Progress::Skipped { name, why } = event {
            output::note(&format!("`{name}` is left out: {why}"));
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

/// The registries of the person's own settings.
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
