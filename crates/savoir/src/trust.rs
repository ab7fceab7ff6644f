//! The keys of the person who runs the program, whom that person believes, and skills as signatures
//! see them, also when they run.

use std::path::{Path, PathBuf};

use savoir_engine::{Home, RunError, approval::Trust, ground::Ground, subject::Subject};
use savoir_package::{
    Store, Tree, TreeError,
    lock::LockedSource,
    policy::SkillFacts,
    trust::{KeyError, KeyStore, SignatureKind, StoreError, TrustStore, TrustedSources},
};
use savoir_skill::{Reading, convert::with_tools_of_original};

use crate::{
    config,
    error::CommandError,
    installed::Installed,
    load::{self, Loaded},
    shelf,
};

/// Where keys and the list of trusted ones are: with the settings, which no skill may change.
#[derive(Debug)]
pub(crate) struct Keyring {
    folder: PathBuf,
}

impl Keyring {
    pub(crate) fn of_user() -> Result<Self, CommandError> {
        let folder = config::user_folder().ok_or_else(|| {
            CommandError::input("there is no home folder to keep keys in")
                .hint("set HOME or XDG_CONFIG_HOME")
        })?;
        Ok(Self { folder })
    }

    /// The keys that sign.
    pub(crate) fn own(&self) -> KeyStore {
        KeyStore::new(self.keys())
    }

    /// The folder of the keys that sign.
    pub(crate) fn keys(&self) -> PathBuf {
        self.folder.join("keys")
    }

    /// The file that lists trusted and revoked keys.
    pub(crate) fn list(&self) -> PathBuf {
        self.folder.join("trusted-keys.json")
    }

    /// Trusted and revoked keys, as they are now.
    pub(crate) fn trusted(&self) -> Result<TrustStore, CommandError> {
        Ok(TrustStore::read(&self.list())?)
    }

    /// The file that lists trusted sources.
    pub(crate) fn sources_file(&self) -> PathBuf {
        self.folder.join(TrustedSources::FILE)
    }

    /// Sources whose skills are installed without a question.
    pub(crate) fn sources(&self) -> Result<TrustedSources, CommandError> {
        Ok(TrustedSources::read(&self.sources_file())?)
    }
}

/// The keys that count when a skill runs. Who has no home trusts nobody; a list that cannot be read
/// is an error, since it may revoke a key.
pub(crate) fn believed() -> Result<TrustStore, CommandError> {
    match config::user_folder() {
        Some(folder) => Keyring { folder }.trusted(),
        None => Ok(TrustStore::default()),
    }
}

/// A skill that was loaded, with who vouches for it.
pub(crate) fn subject(
    loaded: &Loaded,
    how: Trust,
    store: &TrustStore,
) -> Result<Subject, RunError> {
    let folder = loaded.folder.as_ref().map(savoir_skill::Folder::root);
    let Some(skill) = with_tools_of_original(&loaded.reading, loaded.folder.as_ref()) else {
        return Ok(Subject::new(&loaded.reading, &loaded.path, folder, how, store)?);
    };
    let reading = Reading { skill, ..loaded.reading.clone() };
    Ok(Subject::new(&reading, &loaded.path, folder, how, store)?)
}

/// Refuses to run a skill that the policy of the organization, the user or the project forbids.
/// `origin` is where it was just fetched from; for an installed one the lock says it.
pub(crate) fn refuse_forbidden(
    subject: &Subject,
    origin: Option<&str>,
) -> Result<(), CommandError> {
    let policy = config::policy_here()?;
    if policy.is_empty() {
        return Ok(());
    }
    let source = match origin {
        Some(text) => Some(text.parse::<LockedSource>().map_err(CommandError::findings)?),
        None => locked_source(subject)?,
    };
    // A skill is called by its folder and by what its file says; both may be forbidden.
    let folder = subject.folder.as_deref().and_then(Path::file_name);
    let folder = folder.map(|name| name.to_string_lossy().into_owned());
    for name in [Some(subject.skill.name.clone()), folder].into_iter().flatten() {
        policy.check(&SkillFacts {
            name: &name,
            source: source.as_ref(),
            tier: subject.tier,
            attestation: &subject.vouching.attestation,
        })?;
    }
    Ok(())
}

fn locked_source(subject: &Subject) -> Result<Option<LockedSource>, CommandError> {
    let folder = subject.folder.as_ref().and_then(|folder| folder.canonicalize().ok());
    let Some(folder) = folder else { return Ok(None) };
    let installed = Installed::open(None)?;
    let Some(locked) = installed.locked_in(&folder) else { return Ok(None) };
    // A lock that came with a clone is anybody's word: only what this machine installed counts.
    let store = Home::from_environment()?.data().join(shelf::FOLDER).join("store");
    let integrity = &locked.skill.integrity;
    let is_known = Store::new(store).has(integrity)
        && Tree::read(&folder).is_ok_and(|tree| tree.integrity() == *integrity);
    Ok(is_known.then(|| locked.skill.source.clone()))
}

/// Where a skill runs. What decides about the next run is out of its reach: answers and keys.
pub(crate) fn ground(home: &Home) -> Result<Ground, CommandError> {
    let ground = Ground::here()
        .map_err(|error| CommandError::input(format!("this folder cannot be used: {error}")))?
        .keeping(home);
    Ok(match config::user_folder() {
        Some(folder) => ground.keeping_folder(&folder),
        None => ground,
    })
}

/// A skill with all its files, which is what a signature is about.
#[derive(Debug)]
pub(crate) struct Whole {
    pub(crate) loaded: Loaded,
    pub(crate) folder: PathBuf,
    pub(crate) tree: Tree,
}

impl Whole {
    /// Reads the skill in a folder, named by the folder or by its SKILL.md.
    pub(crate) fn read(path: &Path) -> Result<Self, CommandError> {
        let loaded = load::load(path, None)?;
        let Some(folder) = loaded.folder.as_ref().map(|folder| folder.root().to_owned()) else {
            let message = format!("{} is a file, and signatures are for folders", path.display());
            return Err(CommandError::input(message).hint("name a folder with a SKILL.md"));
        };
        let tree = Tree::read(&folder).map_err(|error| unfit(&folder, &error))?;
        let name = loaded.path.file_name().map(|name| name.to_string_lossy().into_owned());
        let file = name.and_then(|name| tree.get(&name).cloned());
        let text = loaded.reading.document.source().text();
        // What is shown must be what is signed.
        if file.is_none_or(|file| file.bytes != text.as_bytes()) {
            let message = format!("{} changed while it was read", loaded.path.display());
            return Err(CommandError::input(message).hint("try again"));
        }
        Ok(Self { loaded, folder, tree })
    }

    pub(crate) fn name(&self) -> &str {
        &self.loaded.reading.skill.name
    }

    pub(crate) fn version(&self) -> Option<&str> {
        self.loaded.reading.skill.version.as_deref()
    }

    /// Name and version in one line.
    pub(crate) fn title(&self) -> String {
        format!("{} {}", self.name(), self.version().unwrap_or_default()).trim_end().to_owned()
    }
}

/// A folder that is there, and cannot be a skill's.
fn unfit(folder: &Path, error: &TreeError) -> CommandError {
    if let TreeError::Io { .. } = error {
        return CommandError::input(error).named(error.code());
    }
    CommandError::findings(format!("{}: {error}", folder.display()))
        .named(error.code())
        .hint("a skill has files with plain paths, and no links that lead out of its folder")
}

/// `ed25519 key 21fe…`; most identifiers say themselves what they are.
pub(crate) fn kind_and_key(kind: SignatureKind, key_id: &str) -> String {
    let kind = if key_id.starts_with(kind.as_str()) { "" } else { kind.as_str() };
    format!("{kind} key {key_id}").trim_start().to_owned()
}

impl From<KeyError> for CommandError {
    fn from(error: KeyError) -> Self {
        let failed = match error {
            KeyError::Readable(_) => Self::refused(&error),
            _ => Self::input(&error),
        };
        let failed = failed.named(error.code());
        match error {
            KeyError::NotFound { .. } => failed
                .hint("`savoir keys list` shows your keys, and `savoir keys new NAME` makes one"),
            _ => failed,
        }
    }
}

impl From<StoreError> for CommandError {
    fn from(error: StoreError) -> Self {
        let failed = match error {
            StoreError::Revoked { .. } => Self::refused(&error),
            _ => Self::input(&error),
        };
        failed.named(error.code())
    }
}
