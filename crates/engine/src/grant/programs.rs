//! Programs: which file a name leads to, and `shell:execute`.

use std::{
    env, fs,
    io::Read as _,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::{Component, Path, PathBuf},
};

use savoir_sandbox::{Closure, TRUSTED_PATH, Userland};
use savoir_skill::{
    digest::hex,
    permission::{Domain, Level, Permission},
};
use sha2::{Digest as _, Sha256};
use thiserror::Error;

use super::Refusal;
use crate::{
    approval::{ExtraGrants, Program},
    loaded_skill::HISTORY,
};

/// Why a program cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ProgramError {
    /// No folder has it.
    #[error("program '{0}' was not found")]
    NotFound(String),
    /// It is there but may not be executed.
    #[error("{} is not executable", .0.display())]
    NotExecutable(PathBuf),
    /// It leads out of the skill's folder.
    #[error("program '{0}' is not inside the skill's folder")]
    Outside(String),
    /// It is where nobody looks before agreeing.
    #[error("program '{0}' is in the history of version control, which is no part of the skill")]
    History(String),
    /// It cannot be read.
    #[error("{} cannot be read: {reason}", path.display())]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
}

impl ProgramError {
    /// The stable name of the error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotFound(_) => "program-not-found",
            Self::NotExecutable(_) => "program-not-executable",
            Self::Outside(_) | Self::History(_) => "program-outside-skill",
            Self::Unreadable { .. } => "program-unreadable",
        }
    }
}

/// Folders that programs are looked for in: the system's, then those of the user's own `PATH` that
/// nobody else can write to.
pub fn search_path() -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = TRUSTED_PATH.iter().map(PathBuf::from).collect();
    let path = env::var_os("PATH").unwrap_or_default();
    for folder in env::split_paths(&path) {
        if folder.is_absolute() && !folders.contains(&folder) && only_owner_writes(&folder) {
            folders.push(folder);
        }
    }
    folders
}

/// Whether the folder is the user's or the system's, and nobody else can write to it.
fn only_owner_writes(folder: &Path) -> bool {
    let own = fs::metadata("/proc/self").map(|metadata| metadata.uid()).ok();
    fs::metadata(folder).is_ok_and(|metadata| {
        metadata.mode() & 0o022 == 0 && (metadata.uid() == 0 || Some(metadata.uid()) == own)
    })
}

/// Finds a program: a bare name on the search path, a path with a slash inside the skill's folder.
pub fn resolve(name: &str, folder: Option<&Path>) -> Result<Program, ProgramError> {
    let path = if name.starts_with('/') && !is_in(name, folder) {
        of_the_system(name)?
    } else if name.contains('/') {
        in_folder(name, folder)?
    } else {
        on_path(name)?
    };
    let sha256 = digest(&path)?;
    Ok(Program { name: name.to_owned(), path, sha256 })
}

/// The program at a path.
pub fn at(path: &Path) -> Result<Program, ProgramError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(Program { name, path: path.to_owned(), sha256: digest(path)? })
}

fn on_path(name: &str) -> Result<PathBuf, ProgramError> {
    let mut refused = None;
    for folder in search_path() {
        let path = folder.join(name);
        match fs::metadata(&path) {
            Ok(metadata) if metadata.is_file() && metadata.permissions().mode() & 0o111 != 0 => {
                return Ok(path);
            }
            Ok(metadata) if metadata.is_file() => refused = Some(path),
            _ => {}
        }
    }
    Err(refused
        .map_or_else(|| ProgramError::NotFound(name.to_owned()), ProgramError::NotExecutable))
}

fn is_in(name: &str, folder: Option<&Path>) -> bool {
    folder.is_some_and(|folder| Path::new(name).starts_with(folder))
}

/// An absolute path of a program that a bare name would find, too.
fn of_the_system(name: &str) -> Result<PathBuf, ProgramError> {
    let path = Path::new(name);
    let is_known = path.parent().is_some_and(|parent| search_path().iter().any(|it| it == parent));
    match fs::metadata(path) {
        Err(_) => Err(ProgramError::NotFound(name.to_owned())),
        Ok(_) if !is_known => Err(ProgramError::Outside(name.to_owned())),
        Ok(found) if !found.is_file() || found.permissions().mode() & 0o111 == 0 => {
            Err(ProgramError::NotExecutable(path.to_owned()))
        }
        Ok(_) => Ok(path.to_owned()),
    }
}

fn in_folder(name: &str, folder: Option<&Path>) -> Result<PathBuf, ProgramError> {
    let outside = || ProgramError::Outside(name.to_owned());
    let folder = folder.ok_or_else(outside)?;
    let path = folder.join(name);
    let real = path.canonicalize().map_err(|_| ProgramError::NotFound(name.to_owned()))?;
    if !real.starts_with(folder) {
        return Err(outside());
    }
    if HISTORY.iter().any(|history| real.starts_with(folder.join(history))) {
        return Err(ProgramError::History(name.to_owned()));
    }
    let metadata = fs::metadata(&real).map_err(|_| ProgramError::NotFound(name.to_owned()))?;
    if !metadata.is_file() || metadata.permissions().mode() & 0o111 == 0 {
        return Err(ProgramError::NotExecutable(real));
    }
    Ok(real)
}

fn digest(path: &Path) -> Result<String, ProgramError> {
    let unreadable = |error: std::io::Error| ProgramError::Unreadable {
        path: path.to_owned(),
        reason: error.to_string(),
    };
    let mut file = fs::File::open(path).map_err(unreadable)?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 64 << 10];
    loop {
        match file.read(&mut buffer).map_err(unreadable)? {
            0 => break,
            length => hash.update(&buffer[..length]),
        }
    }
    Ok(hex(&hash.finalize()))
}

/// Names of programs that `shell:execute` lists.
pub fn granted_names(permissions: &[Permission]) -> Vec<String> {
    let lists = lists(permissions).flat_map(|list| list.split(','));
    lists.map(|name| name.trim().to_owned()).collect()
}

/// What follows `shell:execute:` in each permission that lists programs.
fn lists(permissions: &[Permission]) -> impl Iterator<Item = &str> {
    shell(permissions).filter_map(|permission| permission.scope.as_deref())
}

fn shell(permissions: &[Permission]) -> impl Iterator<Item = &Permission> {
    permissions.iter().filter(|permission| {
        permission.domain == Domain::Shell && permission.level == Level::Execute
    })
}

/// Programs grant nothing by themselves, so those of the system are there. A skill that lists
/// programs is limited to its list.
pub(super) fn userland(permissions: &[Permission], runs_programs: bool) -> Userland {
    let is_any = || shell(permissions).next().is_some();
    let is_listed = lists(permissions).next().is_some();
    if !is_listed && (runs_programs || is_any()) { Userland::System } else { Userland::Listed }
}

/// Names that people give to virtual environments; an empty one is the granted folder itself.
const ENVIRONMENTS: [&str; 3] = ["", ".venv", "venv"];

/// Interpreters that virtual environments in granted folders lead to, if they are not the system's.
/// Their own files are shown with the folder; without the interpreter they would be of no use.
pub(super) fn of_environments(granted: &[PathBuf]) -> Vec<PathBuf> {
    let folders = granted.iter().flat_map(|path| ENVIRONMENTS.map(|name| path.join(name)));
    let found = folders.filter(|folder| folder.join("pyvenv.cfg").is_file());
    let mut programs: Vec<PathBuf> = found.filter_map(|folder| outside(&folder)).collect();
    programs.sort();
    programs.dedup();
    // A broken environment must not keep a tool from starting.
    programs.retain(|path| Closure::of(std::slice::from_ref(path)).is_ok());
    programs
}

/// The interpreter that an environment was made with.
fn outside(environment: &Path) -> Option<PathBuf> {
    /// As many links in a row as the kernel follows.
    const MAX_LINKS: usize = 40;
    let environment = environment.canonicalize().ok()?;
    let mut path = environment.join("bin/python");
    for _ in 0..MAX_LINKS {
        if !path.starts_with(&environment) {
            break;
        }
        path = path.parent()?.join(fs::read_link(&path).ok()?);
    }
    let real = path.canonicalize().ok()?;
    let name = real.file_name()?.to_str()?;
    let version = name.strip_prefix("python")?;
    let is_python = version.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    // The system's are there.
    let is_other = is_python && !path.starts_with(&environment) && !real.starts_with("/usr");
    let is_plain = path.components().all(|part| part != Component::ParentDir);
    is_other.then_some(if is_plain { path } else { real })
}

/// Files of the programs that are granted beside the tool's own. One that is not installed is
/// simply not there.
pub(super) fn granted(
    permissions: &[Permission],
    extra: &ExtraGrants,
) -> Result<Vec<PathBuf>, Refusal> {
    let mut paths = Vec::new();
    for name in granted_names(permissions).iter().chain(&extra.programs) {
        match on_path(name) {
            Ok(path) => paths.push(path),
            Err(ProgramError::NotFound(_)) => {}
            Err(error) => {
                return Err(Refusal::new(name, error.to_string(), "make it executable"));
            }
        }
    }
    Ok(paths)
}
