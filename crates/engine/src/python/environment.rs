//! The Python packages of a skill, in an environment outside its folder.
//!
//! `<cache>/environments/<digest>/` is named after the version of Python and the requirements, so
//! that skills with the same needs share one. It is made under another name and moved into place
//! when it is whole; a file lock keeps two makers apart. A record beside the packages says what was
//! installed and is compared with the disk whenever the environment is used again. The versions that
//! were chosen once are written down beside it, and installed again if it has to be made again.
//!
//! Installing runs no code of a package: wheels are only unpacked, and packages that would have to
//! be built are refused unless somebody allowed it. The interpreter of an environment belongs into
//! the sandbox, because packages can bring code that runs when it starts.

pub(crate) mod installer;
mod record;

pub use installer::{Installer, variables};
pub use record::{Package, Record};

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
    /// Source distributions, too; somebody agreed.
    Allowed,
}

/// What an environment is made of.
#[derive(Clone, Debug)]
pub struct Wanted<'a> {
    /// The interpreter that it is based on.
    pub python: &'a Path,
    /// What is installed.
    pub requirements: &'a [Requirement],
    /// Whether packages may be built.
    pub builds: Builds,
    /// What installs them.
    pub installer: Installer,
    /// The installer's variables, all of them: see [`variables`].
    pub variables: Vec<(OsString, OsString)>,
}

/// An environment on the disk.
#[derive(Clone, Debug)]
pub struct Environment {
    /// Its folder.
    pub root: PathBuf,
    /// What is in it.
    pub record: Record,
}

impl Environment {
    /// Its interpreter, to be started in the sandbox only.
    pub fn python(&self) -> PathBuf {
        interpreter(&self.root)
    }
}

/// Why there is no environment.
#[derive(Debug, Error)]
pub enum EnvironmentError {
    /// The interpreter does not work.
    #[error(transparent)]
    Python(#[from] PythonError),
    /// A file of the cache cannot be read or written.
    #[error("cannot use {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// What was installed cannot be used.
    #[error("cannot use {}: {reason}", path.display())]
    Unusable {
        /// The file or folder.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The installer failed.
    #[error("{tool} could not {what}{}", told(tail))]
    Installer {
        /// `uv`, `venv` or `pip`.
        tool: &'static str,
        /// What it was asked to do.
        what: &'static str,
        /// The last lines that it printed.
        tail: Vec<String>,
        /// The way out, where the lines show one.
        hint: Option<&'static str>,
    },
}

impl EnvironmentError {
    /// The way out, if one is known.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Installer { hint, .. } => *hint,
            Self::Unusable { .. } => Some("require another version of the package"),
            _ => None,
        }
    }
}

fn told(tail: &[String]) -> String {
    if tail.is_empty() { String::new() } else { format!(":\n  {}", tail.join("\n  ")) }
}

pub(crate) fn at(path: &Path) -> impl FnOnce(io::Error) -> EnvironmentError {
    let path = path.to_owned();
    move |source| EnvironmentError::Io { path, source }
}

/// Gives the environment for some requirements, and makes it first when it is not there or is not
/// any more what was installed. `progress` gets each line that the installer prints.
pub fn prepare(
    cache: &Path,
    wanted: &Wanted<'_>,
    progress: &mut dyn FnMut(&str),
) -> Result<Environment, EnvironmentError> {
    prepare_until(&Cancel::default(), cache, wanted, progress)
}

/// As [`prepare`], for somebody who may stop waiting for it: the installer ends then.
pub(crate) fn prepare_until(
    cancel: &Cancel,
    cache: &Path,
    wanted: &Wanted<'_>,
    progress: &mut dyn FnMut(&str),
) -> Result<Environment, EnvironmentError> {
    let ask = || python_version(wanted.python, &wanted.variables);
    let python = versions::remembered(cache, wanted.python, ask)?;
    let digest = digest(&python, wanted);
    let root = cache.join("environments").join(&digest);
    let ready = || {
        let record = record::verified(&root, &python, wanted.requirements)?;
        Some(Environment { root: root.clone(), record })
    };
    let chosen = chosen(cache, &format!("{digest}.txt"))?;
    make_once(cache, &digest, &ready, progress, |fresh, progress| {
        let pins = has_only_pins(&chosen).then_some(chosen.as_path());
        installer::install(cancel, fresh, wanted, pins, progress)?;
        settle(fresh, &root)?;
        let record = record::write(fresh, &python, wanted)?;
        let pins = record.packages.iter().map(|package| format!("{}\n", package.pin()));
        fs::write(&chosen, pins.collect::<String>()).map_err(at(&chosen))?;
        Ok(Environment { root: root.clone(), record })
    })
}

/// Where the versions that were chosen are written down. It is not part of the environment, so it is
/// still there when that has to be made again.
pub(crate) fn chosen(cache: &Path, name: &str) -> Result<PathBuf, EnvironmentError> {
    let folder = cache.join("chosen");
    fs::create_dir_all(&folder).map_err(at(&folder))?;
    Ok(folder.join(name))
}

/// Whether a file has nothing but versions of packages. An installer would take other lines for options,
/// and options of a file count more than those of the command line.
fn has_only_pins(chosen: &Path) -> bool {
    let is_pin =
        |line: &str| line.split_once("==").is_some_and(|(name, rest)| pin(name, rest).is_ok());
    fs::read_to_string(chosen).is_ok_and(|text| text.lines().all(is_pin))
}

/// Gives what is ready, or makes it below another name and moves it into place when it is whole. A
/// file lock keeps two makers apart.
pub(crate) fn make_once<T>(
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
    fs::create_dir_all(&all).map_err(at(&all))?;
    let lock = all.join(format!("{digest}.lock"));
    let file = fs::File::options().create(true).append(true).open(&lock).map_err(at(&lock))?;
    // Held until this function ends. The file stays: whoever waits on it has it open.
    file.lock().map_err(at(&lock))?;
    if let Some(made) = ready() {
        return Ok(made);
    }
    let root = all.join(digest);
    if root.exists() {
        progress("files of the environment were changed: it is made again");
        remove(&root)?;
    }
    // The lock makes the name ours; existing files are left from a maker that was killed.
    let fresh = all.join(format!("{digest}.new"));
    remove(&fresh)?;
    let made = build(&fresh, progress);
    if made.is_err() {
        // The error of the making is the one to report.
        let _ = remove(&fresh);
    }
    let made = made?;
    fs::rename(&fresh, &root).map_err(at(&root))?;
    Ok(made)
}

/// Writes the final path where installers wrote the one that an environment is made under.
fn settle(fresh: &Path, root: &Path) -> Result<(), EnvironmentError> {
    /// Scripts are a few lines; what is larger is a program.
    const MAX_SCRIPT_BYTES: u64 = 64 * 1024;
    let (Some(from), Some(to)) = (fresh.to_str(), root.to_str()) else { return Ok(()) };
    let scripts = bin(fresh);
    let entries = fs::read_dir(&scripts).map_err(at(&scripts))?;
    let files = entries.filter_map(Result::ok).map(|entry| entry.path());
    for path in files.chain([fresh.join("pyvenv.cfg")]) {
        let small = |found: fs::Metadata| found.is_file() && found.len() <= MAX_SCRIPT_BYTES;
        if !fs::symlink_metadata(&path).is_ok_and(small) {
            continue;
        }
        let Ok(text) = fs::read_to_string(&path) else { continue };
        if text.contains(from) {
            fs::write(&path, text.replace(from, to)).map_err(at(&path))?;
        }
    }
    Ok(())
}

fn remove(path: &Path) -> Result<(), EnvironmentError> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(at(path)(error)),
        _ => Ok(()),
    }
}

fn digest(python: &str, wanted: &Wanted<'_>) -> String {
    // How it was made counts: what was built by one skill's leave is not another's.
    let builds = if wanted.builds == Builds::Allowed { "built" } else { "wheels" };
    let mut text = format!("2\0{python}\0{builds}");
    for requirement in wanted.requirements {
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
