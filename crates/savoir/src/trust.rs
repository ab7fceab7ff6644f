//! Keys and trusted sources of the user, and the trust in skills that are verified or run.

use std::path::{Path, PathBuf};

use savoir_engine::{
    Home, RunError,
    approval::{Trust, printable},
    loaded_skill::LoadedSkill,
    run_environment::RunEnvironment,
    secrets::Secrets,
};
use savoir_package::{
    Store, Tree, TreeError,
    lock::LockedSource,
    path::PathProblem,
    policy::SkillFacts,
    source::PinnedSource,
    trust::{KeyError, KeyStore, SignatureKind, TrustStore, TrustStoreError, TrustedSources},
};
use savoir_skill::{Dialect, Reading, convert::with_tools_of_original};

use crate::{
    config,
    error::CommandError,
    evaluations, install_context,
    installed::{Installed, Locked, locked_for},
    load::{self, Loaded},
    output, skill_archive,
};

/// The folder of keys and trusted keys: the settings folder, which skills cannot change.
#[derive(Debug)]
pub(crate) struct Keyring {
    folder: PathBuf,
}

impl Keyring {
    pub(crate) fn of_user() -> Result<Self, CommandError> {
        let folder = config::user_folder().ok_or_else(|| {
            CommandError::input("no home folder was found to store keys in")
                .hint("set HOME or XDG_CONFIG_HOME")
        })?;
        Ok(Self { folder })
    }

    /// The signing keys.
    pub(crate) fn own_keys(&self) -> KeyStore {
        KeyStore::new(self.keys())
    }

    /// The folder of the signing keys.
    pub(crate) fn keys(&self) -> PathBuf {
        self.folder.join("keys")
    }

    /// The file that lists trusted and revoked keys.
    pub(crate) fn list(&self) -> PathBuf {
        self.folder.join("trusted-keys.json")
    }

    /// Reads the trusted and revoked keys.
    pub(crate) fn trusted(&self) -> Result<TrustStore, CommandError> {
        Ok(TrustStore::read(&self.list())?)
    }

    /// The file that lists trusted sources.
    pub(crate) fn sources_file(&self) -> PathBuf {
        self.folder.join(TrustedSources::FILE)
    }

    /// Sources whose skills are installed without confirmation.
    pub(crate) fn sources(&self) -> Result<TrustedSources, CommandError> {
        Ok(TrustedSources::read(&self.sources_file())?)
    }
}

/// The trusted and revoked keys for a run. Without a home folder there are none; an unreadable list is
/// an error, because it may revoke a key.
pub(crate) fn trust_store_for_run() -> Result<TrustStore, CommandError> {
    match config::user_folder() {
        Some(folder) => Keyring { folder }.trusted(),
        None => Ok(TrustStore::default()),
    }
}

/// A loaded skill with its signatures and trust.
pub(crate) fn load_skill(
    loaded: &Loaded,
    how: Trust,
    store: &TrustStore,
) -> Result<LoadedSkill, RunError> {
    let folder = loaded.folder.as_ref().map(savoir_skill::Folder::root);
    let mut loaded_skill = match with_tools_of_original(&loaded.reading, loaded.folder.as_ref()) {
        None => LoadedSkill::new(&loaded.reading, &loaded.path, folder, how, store)?,
        Some(skill) => {
            let reading = Reading { skill, ..loaded.reading.clone() };
            LoadedSkill::new(&reading, &loaded.path, folder, how, store)?
        }
    };
    if how == Trust::User {
        loaded_skill.trust = of_origin(&loaded_skill);
    }
    Ok(loaded_skill)
}

/// The trust in an installed skill. A skill from elsewhere is untrusted unless it is signed with a
/// trusted key or its source is trusted.
fn of_origin(loaded_skill: &LoadedSkill) -> Trust {
    let Some(folder) = &loaded_skill.folder else { return Trust::User };
    let Some(locked) = locked_for(folder) else { return Trust::User };
    if !is_from_elsewhere(&locked) || is_signed(loaded_skill) {
        return Trust::User;
    }
    let sources = Keyring::of_user().and_then(|keyring| keyring.sources()).unwrap_or_default();
    if sources.covers(&locked.skill.source).is_some() && is_as_installed(folder, &locked) {
        return Trust::User;
    }
    // The specification of gibb.eri.sh asks before every run; for other dialects the answer is stored.
    if loaded_skill.skill.dialect == Dialect::GIBBERISH {
        Trust::Untrusted
    } else {
        Trust::Downloaded
    }
}

/// Whether a trusted key signed every file that a run can see.
fn is_signed(loaded_skill: &LoadedSkill) -> bool {
    let signer = loaded_skill.signers.attestation.signed.as_ref();
    let is_trusted = signer.is_some_and(|signer| signer.role.is_some());
    is_trusted && loaded_skill.signers.uncovered.is_empty()
}

/// Whether a locked skill does not come from a folder of the user. Archives count as downloads.
fn is_from_elsewhere(locked: &Locked) -> bool {
    match &locked.skill.source {
        source @ LockedSource::Path(_) => {
            let base = locked.file.parent().unwrap_or(Path::new("."));
            match PinnedSource::parse(&source.to_string(), base) {
                // The archive may have been deleted since, so the name is checked first.
                Ok(PinnedSource::Path { path, .. }) => {
                    skill_archive::has_archive_name(&path) || skill_archive::is_archive(&path)
                }
                Ok(_) | Err(_) => true,
            }
        }
        LockedSource::Adopted { from, .. } => from.is_some(),
        LockedSource::Registry(_)
        | LockedSource::Git { .. }
        | LockedSource::Url(_)
        | LockedSource::WellKnown(_) => true,
    }
}

/// Whether this machine installed these files. A lockfile in a cloned repository can contain false
/// claims.
fn is_as_installed(folder: &Path, locked: &Locked) -> bool {
    let Ok(home) = Home::from_environment() else { return false };
    let integrity = &locked.skill.integrity;
    Store::new(home.data().join(install_context::STORE_FOLDER).join("store")).has(integrity)
        && Tree::read(folder).is_ok_and(|tree| tree.integrity() == *integrity)
}

/// Prints the warning that the specification of gibb.eri.sh requires before untrusted skills run.
pub(crate) fn show_banner(trust: Trust) {
    if let Some(banner) = trust.banner() {
        output::note(&format!("warning: {banner}"));
    }
}

/// Warns before the text of an untrusted skill is shown or sent to a model.
pub(crate) fn warn_of_text(trust: Trust) {
    if trust.banner().is_some() {
        show_banner(trust);
        output::note("a model may follow its text: read it first, or trust its source");
    }
}

/// Refuses to run a skill that the policy of the organization, the user or the project forbids.
/// `origin` is the source of a skill that was just fetched; for an installed skill the lock names it.
pub(crate) fn refuse_forbidden(
    loaded_skill: &LoadedSkill,
    origin: Option<&str>,
) -> Result<(), CommandError> {
    let policy = config::policy_here()?;
    if policy.is_empty() {
        return Ok(());
    }
    let source = match origin {
        Some(text) => Some(text.parse::<LockedSource>().map_err(CommandError::findings)?),
        None => locked_source(loaded_skill)?,
    };
    let evaluations = match &loaded_skill.folder {
        Some(folder) if policy.requires_evaluation() => {
            let integrity = Tree::read(folder).map_err(|error| unfit(folder, &error))?.integrity();
            evaluations::current(Some(folder), &integrity, &trust_store_for_run()?)
        }
        _ => Vec::new(),
    };
    // The name in the file and the name of the folder may differ; both are checked.
    let folder = loaded_skill.folder.as_deref().and_then(Path::file_name);
    let folder = folder.map(|name| name.to_string_lossy().into_owned());
    for name in [Some(loaded_skill.skill.name.clone()), folder].into_iter().flatten() {
        policy.check(&SkillFacts {
            name: &name,
            source: source.as_ref(),
            tier: loaded_skill.tier,
            attestation: &loaded_skill.signers.attestation,
            evaluations: &evaluations,
        })?;
    }
    Ok(())
}

fn locked_source(loaded_skill: &LoadedSkill) -> Result<Option<LockedSource>, CommandError> {
    let folder = loaded_skill.folder.as_ref().and_then(|folder| folder.canonicalize().ok());
    let Some(folder) = folder else { return Ok(None) };
    let installed = Installed::open(None)?;
    let Some(locked) = installed.locked_in(&folder) else { return Ok(None) };
    Ok(is_as_installed(&folder, locked).then(|| locked.skill.source.clone()))
}

/// The environment of a run. Skills cannot reach approvals and keys, which decide about later runs.
pub(crate) fn run_env(home: &Home) -> Result<RunEnvironment, CommandError> {
    let run_env = RunEnvironment::here()
        .map_err(|error| CommandError::input(format!("this folder cannot be used: {error}")))?
        .keeping(home)
        .with_secrets(Secrets::new(home).list()?);
    Ok(match config::user_folder() {
        Some(folder) => run_env.keeping_folder(&folder),
        None => run_env,
    })
}

/// A skill with all its files, which a signature covers.
#[derive(Debug)]
pub(crate) struct SignedFolder {
    pub(crate) loaded: Loaded,
    pub(crate) folder: PathBuf,
    pub(crate) tree: Tree,
}

impl SignedFolder {
    /// Reads the skill in a folder, named by the folder or by its SKILL.md.
    pub(crate) fn read(path: &Path) -> Result<Self, CommandError> {
        let loaded = load::load(path, None)?;
        let Some(folder) = loaded.folder.as_ref().map(|folder| folder.root().to_owned()) else {
            let message = format!("{} is a file, and only folders can be signed", path.display());
            return Err(CommandError::input(message).hint("name a folder with a SKILL.md"));
        };
        let tree = Tree::read(&folder).map_err(|error| unfit(&folder, &error))?;
        let name = loaded.path.file_name().map(|name| name.to_string_lossy().into_owned());
        let file = name.and_then(|name| tree.get(&name).cloned());
        let text = loaded.reading.document.source().text();
        // The text that is shown must be the same as the signed one.
        if file.is_none_or(|file| file.bytes != text.as_bytes()) {
            let message = format!("{} changed while it was being read", loaded.path.display());
            return Err(CommandError::input(message).hint("run the command again"));
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

/// The error for a folder that cannot be a skill.
fn unfit(folder: &Path, error: &TreeError) -> CommandError {
    if let TreeError::Io { .. } = error {
        return CommandError::input(error).with_code(error.code());
    }
    let hint = match error {
        TreeError::Path { path, problem: PathProblem::Collision(other) } => {
            format!(
                "remove or rename one of the two files: {}, {}",
                printable(path),
                printable(other)
            )
        }
        _ => "use plain file names, and no symlinks that lead out of the folder".to_owned(),
    };
    CommandError::findings(format!("{}: {error}", folder.display()))
        .with_code(error.code())
        .hint(hint)
}

/// `ed25519 key 21fe…`; the kind is omitted if the identifier includes it.
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
        let failed = failed.with_code(error.code());
        match error {
            KeyError::NotFound { .. } => {
                failed.hint("list your keys: savoir keys list; create one: savoir keys new NAME")
            }
            _ => failed,
        }
    }
}

impl From<TrustStoreError> for CommandError {
    fn from(error: TrustStoreError) -> Self {
        let failed = match error {
            TrustStoreError::Revoked { .. } => Self::refused(&error),
            _ => Self::input(&error),
        };
        failed.with_code(error.code())
    }
}
