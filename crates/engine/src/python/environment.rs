//! Installs the Python packages of a skill into a virtual environment outside its folder.
//!
//! `<cache>/environments/<digest>/` is named after the version of Python and the requirements, so
//! that skills with the same requirements share one. It is created under another name and renamed
//! when it is complete; a file lock prevents concurrent creation. A record beside the packages
//! lists what was installed and is compared with the disk whenever the environment is used again.
//! The chosen versions are stored beside the environment, and used again if it must be recreated.
//!
//! Installing runs no code of a package: wheels are only unpacked, and packages that must be built
//! are refused unless the caller allows it. The interpreter of an environment must only run in the
//! sandbox, because packages can contain code that runs when it starts.

pub(crate) mod installer;
mod record;

pub use installer::{Installer, variables};
pub use record::{EnvironmentRecord, Package};

use std::{
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
};

use savoir_skill::digest::sha256_hex;
use thiserror::Error;

use super::{
    requirement::{Requirement, pin},
    version::{PythonError, python_version},
};
use crate::{cancel::Cancel, packages::versions};

/// Whether a package without a wheel may be built, which runs its code outside the sandbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Builds {
    /// Only wheels.
    #[default]
    Refused,
    /// Source distributions, too; the user agreed.
    Allowed,
}

/// The specification of an environment.
#[derive(Clone, Debug)]
pub struct EnvironmentSpec<'a> {
    /// The interpreter that the environment is based on.
    pub python: &'a Path,
    pub requirements: &'a [Requirement],
    pub builds: Builds,
    pub installer: Installer,
    /// The installer's variables, all of them: see [`variables`].
    pub variables: Vec<(OsString, OsString)>,
}

/// An installed environment.
#[derive(Clone, Debug)]
pub struct Environment {
    pub root: PathBuf,
    pub record: EnvironmentRecord,
}

impl Environment {
    /// The interpreter of the environment, to be started in the sandbox only.
    pub fn python(&self) -> PathBuf {
        interpreter(&self.root)
    }
}

/// Why an environment cannot be created.
#[derive(Debug, Error)]
pub enum EnvironmentError {
    /// The interpreter does not work.
    #[error(transparent)]
    Python(#[from] PythonError),
    /// A file of the cache cannot be read or written.
    #[error("cannot use {}", path.display())]
    Io {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// An installed file cannot be used.
    #[error("cannot use {}: {reason}", path.display())]
    Unusable { path: PathBuf, reason: String },
    /// The installer failed.
    #[error("{tool} could not {what}{}", output_tail(tail))]
    Installer {
        /// `uv`, `venv` or `pip`.
        tool: &'static str,
        what: &'static str,
        tail: Vec<String>,
        /// A hint, if the output suggests one.
        hint: Option<&'static str>,
    },
}

impl EnvironmentError {
    /// A hint for the user, if one is known.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Installer { hint, .. } => *hint,
            Self::Unusable { .. } => Some("require another version of the package"),
            _ => None,
        }
    }
}

fn output_tail(tail: &[String]) -> String {
    if tail.is_empty() { String::new() } else { format!(":\n  {}", tail.join("\n  ")) }
}

pub(crate) fn io_error_at(path: &Path) -> impl FnOnce(io::Error) -> EnvironmentError {
    let path = path.to_owned();
    move |source| EnvironmentError::Io { path, source }
}

/// Returns the environment for some requirements. Creates it if it does not exist, or if its files
/// have changed since the installation. Calls `progress` with each line that the installer prints.
pub fn prepare(
    cache: &Path,
    spec: &EnvironmentSpec<'_>,
    progress: &mut dyn FnMut(&str),
) -> Result<Environment, EnvironmentError> {
    prepare_until(&Cancel::default(), cache, spec, progress)
}

/// Like [`prepare`], but the caller can cancel it, which stops the installer.
pub(crate) fn prepare_until(
    cancel: &Cancel,
    cache: &Path,
    spec: &EnvironmentSpec<'_>,
    progress: &mut dyn FnMut(&str),
) -> Result<Environment, EnvironmentError> {
    let ask = || python_version(spec.python, &spec.variables);
    let python = versions::cached_version(cache, spec.python, ask)?;
    let digest = digest(&python, spec);
    let root = cache.join("environments").join(&digest);
    let ready = || {
        let record = record::load_verified(&root, &python, spec.requirements)?;
        Some(Environment { root: root.clone(), record })
    };
    let environment_folder = environment_folder(cache, &format!("{digest}.txt"))?;
    create_once(cache, &digest, &ready, progress, |fresh, progress| {
        let pins = has_only_pins(&environment_folder).then_some(environment_folder.as_path());
        installer::install(cancel, fresh, spec, pins, progress)?;
        finish_installation(fresh, &root)?;
        let record = record::write(fresh, &python, spec)?;
        let pins = record.packages.iter().map(|package| format!("{}\n", package.pin()));
        fs::write(&environment_folder, pins.collect::<String>())
            .map_err(io_error_at(&environment_folder))?;
        Ok(Environment { root: root.clone(), record })
    })
}

/// The file with the chosen versions. It is outside of the environment, so it survives when the
/// environment is recreated.
pub(crate) fn environment_folder(cache: &Path, name: &str) -> Result<PathBuf, EnvironmentError> {
    let folder = cache.join("chosen");
    fs::create_dir_all(&folder).map_err(io_error_at(&folder))?;
    Ok(folder.join(name))
}

/// Whether a file contains only pinned versions. An installer would take other lines for options,
/// and options in a file override those of the command line.
fn has_only_pins(environment_folder: &Path) -> bool {
    let is_pin =
        |line: &str| line.split_once("==").is_some_and(|(name, rest)| pin(name, rest).is_ok());
    fs::read_to_string(environment_folder).is_ok_and(|text| text.lines().all(is_pin))
}

/// Returns an existing environment, or creates it under another name and renames it when it is
/// complete. A file lock prevents concurrent creation.
pub(crate) fn create_once<T>(
    cache: &Path,
    digest: &str,
    ready: &dyn Fn() -> Option<T>,
    progress: &mut dyn FnMut(&str),
    build: impl FnOnce(&Path, &mut dyn FnMut(&str)) -> Result<T, EnvironmentError>,
) -> Result<T, EnvironmentError> {
    if let Some(made) = ready() {
        return Ok(made);
    }
    let all = cache.join("environments");
    fs::create_dir_all(&all).map_err(io_error_at(&all))?;
    let lock = all.join(format!("{digest}.lock"));
    let file =
        fs::File::options().create(true).append(true).open(&lock).map_err(io_error_at(&lock))?;
    // The lock is held until this function returns. The file is not deleted, because waiting
    // processes have it open.
    file.lock().map_err(io_error_at(&lock))?;
    if let Some(made) = ready() {
        return Ok(made);
    }
    let root = all.join(digest);
    if root.exists() {
        progress("files of the environment were changed: it is made again");
        remove(&root)?;
    }
    // Under the lock, no other process uses this name; existing files are left from a process that
    // was killed.
    let fresh = all.join(format!("{digest}.new"));
    remove(&fresh)?;
    let made = build(&fresh, progress);
    if made.is_err() {
        // The error of `build` is the one to report.
        let _ = remove(&fresh);
    }
    let made = made?;
    fs::rename(&fresh, &root).map_err(io_error_at(&root))?;
    Ok(made)
}

/// Replaces the temporary path in scripts and settings by the final one.
fn finish_installation(fresh: &Path, root: &Path) -> Result<(), EnvironmentError> {
    /// Scripts have a few lines; larger files are programs.
    const MAX_SCRIPT_BYTES: u64 = 64 * 1024;
    let (Some(from), Some(to)) = (fresh.to_str(), root.to_str()) else { return Ok(()) };
    let scripts = bin(fresh);
    let entries = fs::read_dir(&scripts).map_err(io_error_at(&scripts))?;
    let files = entries.filter_map(Result::ok).map(|entry| entry.path());
    for path in files.chain([fresh.join("pyvenv.cfg")]) {
        let small = |found: fs::Metadata| found.is_file() && found.len() <= MAX_SCRIPT_BYTES;
        if !fs::symlink_metadata(&path).is_ok_and(small) {
            continue;
        }
        let Ok(text) = fs::read_to_string(&path) else { continue };
        if text.contains(from) {
            fs::write(&path, text.replace(from, to)).map_err(io_error_at(&path))?;
        }
    }
    Ok(())
}

fn remove(path: &Path) -> Result<(), EnvironmentError> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(io_error_at(path)(error)),
        _ => Ok(()),
    }
}

fn digest(python: &str, spec: &EnvironmentSpec<'_>) -> String {
    // An environment with built packages, which one skill was allowed, must not be shared with a
    // skill that was not.
    let builds = if spec.builds == Builds::Allowed { "built" } else { "wheels" };
    let mut text = format!("2\0{python}\0{builds}");
    for requirement in spec.requirements {
        text.push('\0');
        text.push_str(requirement.as_str());
    }
    sha256_hex(text.as_bytes())[..32].to_owned()
}

fn bin(root: &Path) -> PathBuf {
    root.join(if cfg!(windows) { "Scripts" } else { "bin" })
}

fn interpreter(root: &Path) -> PathBuf {
    bin(root).join(if cfg!(windows) { "python.exe" } else { "python" })
}
