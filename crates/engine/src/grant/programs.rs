//! Finds the file of a program name, and handles `shell:execute` permissions.

use std::{
    env, fs,
    io::Read as _,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::{Component, Path, PathBuf},
};

use savoir_sandbox::{ExtraPrograms, ProgramFiles, TRUSTED_PATH};
use savoir_skill::{
    digest::hex,
    permission::{Domain, Level, Permission},
};
use sha2::{Digest as _, Sha256};
use thiserror::Error;

use super::Refusal;
use crate::{
    approval::{ExtraGrants, Program},
    loaded_skill::HISTORY_FOLDERS,
};

/// Why a program cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ProgramError {
    /// The program is in no folder of the search path. gibb.eri.sh fixes this message and the next.
    #[error("Command not found: {0}")]
    NotFound(String),
    /// The file exists but is not executable.
    #[error("Permission denied: {name}")]
    NotExecutable { name: String, path: PathBuf },
    /// An absolute path to a folder, or to a file that is not executable.
    #[error("Permission denied: {}", .0.display())]
    NotAProgram(PathBuf),
    /// The path is outside of the skill's folder.
    #[error("program '{0}' is not inside the skill's folder")]
    Outside(String),
    /// The file is in a version control folder, which users do not review before they approve.
    #[error("program '{0}' is in the history of version control, which is not part of the skill")]
    History(String),
    /// It cannot be read.
    #[error("{} cannot be read: {reason}", path.display())]
    Unreadable { path: PathBuf, reason: String },
}

impl ProgramError {
    /// The stable error code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotFound(_) => "command-not-found",
            Self::NotExecutable { .. } | Self::NotAProgram(_) => "permission-denied",
            Self::Outside(_) | Self::History(_) => "program-outside-skill",
            Self::Unreadable { .. } => "program-unreadable",
        }
    }
}

/// The folders in which programs are searched: those of the system, then those on the user's `PATH`
/// that no other user can write to.
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

/// Whether a folder belongs to the user or the system, and no other user can write to it.
fn only_owner_writes(folder: &Path) -> bool {
    let own = fs::metadata("/proc/self").map(|metadata| metadata.uid()).ok();
    fs::metadata(folder).is_ok_and(|metadata| {
        metadata.mode() & 0o022 == 0 && (metadata.uid() == 0 || Some(metadata.uid()) == own)
    })
}

/// Finds a program: a bare name on the search path, an absolute path in a folder of the search
/// path, any other path inside the skill's folder.
pub fn resolve(name: &str, folder: Option<&Path>) -> Result<Program, ProgramError> {
    let path = if name.starts_with('/') && !is_file_in(name, folder) {
        find_system_program(name)?
    } else if name.contains('/') {
        find_in_folder(name, folder)?
    } else {
        find_on_path(name)?
    };
    let sha256 = file_digest(&path)?;
    Ok(Program { name: name.to_owned(), path, sha256 })
}

/// The program at a path.
pub fn program_at(path: &Path) -> Result<Program, ProgramError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(Program { name, path: path.to_owned(), sha256: file_digest(path)? })
}

fn find_on_path(name: &str) -> Result<PathBuf, ProgramError> {
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
    let name = name.to_owned();
    Err(match refused {
        Some(path) => ProgramError::NotExecutable { name, path },
        None => ProgramError::NotFound(name),
    })
}

fn is_file_in(name: &str, folder: Option<&Path>) -> bool {
    folder.is_some_and(|folder| Path::new(name).starts_with(folder))
}

/// Checks an absolute path: its folder must be on the search path.
fn find_system_program(name: &str) -> Result<PathBuf, ProgramError> {
    let path = Path::new(name);
    let is_known = path.parent().is_some_and(|parent| search_path().iter().any(|it| it == parent));
    match fs::metadata(path) {
        Err(_) => Err(ProgramError::NotFound(name.to_owned())),
        Ok(found) if !found.is_file() || found.permissions().mode() & 0o111 == 0 => {
            Err(ProgramError::NotAProgram(path.to_owned()))
        }
        Ok(_) if !is_known => Err(ProgramError::Outside(name.to_owned())),
        Ok(_) => Ok(path.to_owned()),
    }
}

fn find_in_folder(name: &str, folder: Option<&Path>) -> Result<PathBuf, ProgramError> {
    let outside = || ProgramError::Outside(name.to_owned());
    let folder = folder.ok_or_else(outside)?;
    let path = folder.join(name);
    let real = path.canonicalize().map_err(|_| ProgramError::NotFound(name.to_owned()))?;
    if !real.starts_with(folder) {
        return Err(outside());
    }
    if HISTORY_FOLDERS.iter().any(|history| real.starts_with(folder.join(history))) {
        return Err(ProgramError::History(name.to_owned()));
    }
    let metadata = fs::metadata(&real).map_err(|_| ProgramError::NotFound(name.to_owned()))?;
    if !metadata.is_file() || metadata.permissions().mode() & 0o111 == 0 {
        return Err(ProgramError::NotExecutable { name: name.to_owned(), path: real });
    }
    Ok(real)
}

fn file_digest(path: &Path) -> Result<String, ProgramError> {
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
    let lists = lists_programs(permissions).flat_map(|list| list.split(','));
    lists.map(|name| name.trim().to_owned()).collect()
}

/// The scopes of the `shell:execute` permissions that list programs.
fn lists_programs(permissions: &[Permission]) -> impl Iterator<Item = &str> {
    shell(permissions).filter_map(|permission| permission.scope.as_deref())
}

fn shell(permissions: &[Permission]) -> impl Iterator<Item = &Permission> {
    permissions.iter().filter(|permission| {
        permission.domain == Domain::Shell && permission.level == Level::Execute
    })
}

/// The programs that a run can start. A program gets no additional permissions by itself, so all
/// programs of the system are available, unless the skill lists programs: then it is limited to its
/// list.
pub(super) fn extra_programs(permissions: &[Permission], runs_programs: bool) -> ExtraPrograms {
    let is_any = || shell(permissions).next().is_some();
    let is_listed = lists_programs(permissions).next().is_some();
    if !is_listed && (runs_programs || is_any()) {
        ExtraPrograms::System
    } else {
        ExtraPrograms::None
    }
}

/// Usual names of virtual environments; the empty one stands for the granted folder itself.
const ENVIRONMENT_FOLDERS: [&str; 3] = ["", ".venv", "venv"];

/// Interpreters of virtual environments in granted folders, if they are not the system's. The files
/// of the environment are visible with its folder, but useless without the interpreter.
pub(super) fn environment_programs(granted: &[PathBuf]) -> Vec<PathBuf> {
    let folders = granted.iter().flat_map(|path| ENVIRONMENT_FOLDERS.map(|name| path.join(name)));
    let found = folders.filter(|folder| folder.join("pyvenv.cfg").is_file());
    let mut programs: Vec<PathBuf> =
        found.filter_map(|folder| outside_interpreter(&folder)).collect();
    programs.sort();
    programs.dedup();
    // A broken environment must not prevent a tool from starting.
    programs.retain(|path| ProgramFiles::of(std::slice::from_ref(path)).is_ok());
    programs
}

/// The interpreter that an environment was created with; none if it is one of the system.
fn outside_interpreter(environment: &Path) -> Option<PathBuf> {
    /// As many symlinks in a row as the kernel follows.
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
    // Interpreters of the system are visible anyway.
    let is_other = is_python && !path.starts_with(&environment) && !real.starts_with("/usr");
    let is_plain = path.components().all(|part| part != Component::ParentDir);
    is_other.then_some(if is_plain { path } else { real })
}

/// The files of the programs that are granted besides the tool's own. Programs that are not
/// installed are skipped.
pub(super) fn granted_programs(
    permissions: &[Permission],
    extra: &ExtraGrants,
) -> Result<Vec<PathBuf>, Refusal> {
    let mut paths = Vec::new();
    for name in granted_names(permissions).iter().chain(&extra.programs) {
        match find_on_path(name) {
            Ok(path) => paths.push(path),
            Err(ProgramError::NotFound(_)) => {}
            Err(error) => {
                return Err(Refusal::new(name, error.to_string(), "make it executable"));
            }
        }
    }
    Ok(paths)
}
