//! The keys of the person who runs the program, whom that person believes, and skills as signatures
//! see them, also when they run.

use std::path::{Path, PathBuf};

use savoir_engine::{
    Home, RunError, approval::Trust, ground::Ground, secrets::Secrets, subject::Subject,
};
use savoir_package::{
    Store, Tree, TreeError,
    lock::LockedSource,
    policy::SkillFacts,
    trust::{KeyError, KeyStore, SignatureKind, StoreError, TrustStore, TrustedSources},
};
use savoir_skill::{Dialect, Reading, convert::with_tools_of_original};

use crate::{
    config,
    error::CommandError,
    installed::{Installed, Locked, locked_for},
    load::{self, Loaded},
    output, shelf,
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
    let mut subject = match with_tools_of_original(&loaded.reading, loaded.folder.as_ref()) {
        None => Subject::new(&loaded.reading, &loaded.path, folder, how, store)?,
        Some(skill) => {
            let reading = Reading { skill, ..loaded.reading.clone() };
            Subject::new(&reading, &loaded.path, folder, how, store)?
        }
    };
    if how == Trust::User {
        subject.trust = of_origin(&subject);
    }
    Ok(subject)
}

/// How far a skill is trusted that is in its place for good: what was installed from elsewhere is
/// untrusted until somebody signed it whose key is trusted, or its source is trusted.
fn of_origin(subject: &Subject) -> Trust {
    let Some(folder) = &subject.folder else { return Trust::User };
    let Some(locked) = locked_for(folder) else { return Trust::User };
    if !is_from_elsewhere(&locked.skill.source) || is_signed(subject) {
        return Trust::User;
    }
    let sources = Keyring::of_user().and_then(|keyring| keyring.sources()).unwrap_or_default();
    if sources.covers(&locked.skill.source).is_some() && is_as_installed(folder, &locked) {
        return Trust::User;
    }
    // Its specification asks for a question before every run; for the others an answer is kept.
    if subject.skill.dialect == Dialect::GIBBERISH { Trust::Untrusted } else { Trust::Downloaded }
}

/// Whether a trusted key signed every file that a run can see.
fn is_signed(subject: &Subject) -> bool {
    let signer = subject.vouching.attestation.signed.as_ref();
    let is_trusted = signer.is_some_and(|signer| signer.role.is_some());
    is_trusted && subject.vouching.uncovered.is_empty()
}

/// How the names of archives end, which people download.
const ARCHIVES: [&str; 5] = [".zip", ".tar.gz", ".tgz", ".tar", ".skill"];

/// Whether a source is not the user's own folder.
fn is_from_elsewhere(source: &LockedSource) -> bool {
    match source {
        LockedSource::Path(path) => {
            let path = path.to_ascii_lowercase();
            ARCHIVES.iter().any(|end| path.ends_with(end))
        }
        LockedSource::Adopted { from, .. } => from.is_some(),
        LockedSource::Registry(_)
        | LockedSource::Git { .. }
        | LockedSource::Url(_)
        | LockedSource::WellKnown(_) => true,
    }
}

/// Whether a folder has what this machine installed: a lock that came with a clone is anybody's word.
fn is_as_installed(folder: &Path, locked: &Locked) -> bool {
    let Ok(home) = Home::from_environment() else { return false };
    let integrity = &locked.skill.integrity;
    Store::new(home.data().join(shelf::FOLDER).join("store")).has(integrity)
        && Tree::read(folder).is_ok_and(|tree| tree.integrity() == *integrity)
}

/// Shows what the specification of gibb.eri.sh asks for before a skill from elsewhere runs.
pub(crate) fn show_banner(trust: Trust) {
    if let Some(banner) = trust.banner() {
        output::note(&format!("warning: {banner}"));
    }
}

/// Warns before the text of a skill from elsewhere is shown or given to a model.
pub(crate) fn warn_of_text(trust: Trust) {
    if trust.banner().is_some() {
        show_banner(trust);
        output::note("a model may follow what its text says: read it first, or trust its source");
    }
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
    Ok(is_as_installed(&folder, locked).then(|| locked.skill.source.clone()))
}

/// Where a skill runs. What decides about the next run is out of its reach: answers and keys.
pub(crate) fn ground(home: &Home) -> Result<Ground, CommandError> {
    let ground = Ground::here()
        .map_err(|error| CommandError::input(format!("this folder cannot be used: {error}")))?
        .keeping(home)
        .with_secrets(Secrets::new(home).list()?);
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
