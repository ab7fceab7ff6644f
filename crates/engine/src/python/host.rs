//! Writes the Python program that hosts the tools of a skill to disk.

use std::{
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicU64, Ordering},
};

use savoir_skill::digest::sha256_hex;
use thiserror::Error;

/// The program, relative to the folder that it is installed into.
const PROGRAM: &str = "savoir_host.py";

/// Every file of the host.
const FILES: [(&str, &str); 5] = [
    (PROGRAM, include_str!("../../../../python/savoir_host.py")),
    ("gaia/__init__.py", include_str!("../../../../python/gaia/__init__.py")),
    ("gaia/agents/__init__.py", include_str!("../../../../python/gaia/agents/__init__.py")),
    (
        "gaia/agents/base/__init__.py",
        include_str!("../../../../python/gaia/agents/base/__init__.py"),
    ),
    ("gaia/agents/base/tools.py", include_str!("../../../../python/gaia/agents/base/tools.py")),
];

/// Maximum number of attempts to move the folder to its path while other processes do the same.
const MAX_ATTEMPTS: usize = 4;

/// The host cannot be written.
#[derive(Debug, Error)]
#[error("cannot install the Python host at {}", path.display())]
pub struct InstallError {
    pub path: PathBuf,
    #[source]
    pub source: io::Error,
}

/// Installs the host below `into` and returns its folder, which is named after its content.
///
/// The folder is on Python's import path, so an existing one is only used if it contains exactly our
/// files; otherwise it is replaced.
pub fn install(into: &Path) -> Result<PathBuf, InstallError> {
    let parent = into.join("python-host");
    let folder = parent.join(digest());
    let failed = |source| InstallError { path: folder.clone(), source };
    let mut last = None;
    for _ in 0..MAX_ATTEMPTS {
        if is_intact(&folder) {
            return Ok(folder);
        }
        match put(&parent, &folder) {
            Ok(()) => {}
            // Another process was faster; the next attempt checks what it installed.
            Err(error) if is_taken(&error) => last = Some(error),
            Err(error) => return Err(failed(error)),
        }
    }
    if is_intact(&folder) {
        return Ok(folder);
    }
    Err(failed(last.unwrap_or_else(|| io::Error::other("the folder keeps changing"))))
}

/// The arguments after `python3` that serve a skill.
pub fn arguments(host: &Path, skill: &Path, serves: &Serves<'_>) -> Vec<OsString> {
    // Isolated mode ignores Python's environment variables and the user's packages; `-B` writes no
    // bytecode beside the skill.
    let mut arguments: Vec<OsString> = vec!["-I".into(), "-B".into()];
    arguments.push(host.join(PROGRAM).into());
    arguments.extend(["--skill".into(), skill.into()]);
    match serves {
        Serves::Module(module) => arguments.extend(["--module".into(), module.into()]),
        Serves::Actions(actions) => {
            for (name, handler) in *actions {
                arguments.extend(["--action".into(), format!("{name}={handler}").into()]);
            }
        }
    }
    arguments
}

/// The functions that the host provides.
#[derive(Clone, Copy, Debug)]
pub enum Serves<'a> {
    /// The decorated functions of a module, by its path in the skill.
    Module(&'a str),
    /// Handlers of actions, as `(name, "path:function")`.
    Actions(&'a [(&'a str, &'a str)]),
}

/// Whether a handler is a Python file; any other one is a program of its own.
///
/// ```
/// use savoir_engine::python::host::is_python_handler;
///
/// assert!(is_python_handler("handlers/search.py:run") && is_python_handler("search.py"));
/// assert!(!is_python_handler("bin/search.sh") && !is_python_handler("search"));
/// ```
pub fn is_python_handler(handler: &str) -> bool {
    let split = handler.rsplit_once([':', '#']).filter(|(path, _)| !path.is_empty());
    let path = split.map_or(handler, |(path, _)| path);
    Path::new(path).extension().is_some_and(|extension| extension.eq_ignore_ascii_case("py"))
}

fn digest() -> String {
    let files = FILES.map(|(path, text)| format!("{path}\0{}\0{text}", text.len()));
    sha256_hex(files.concat().as_bytes())[..16].to_owned()
}

/// Whether a folder contains exactly our files, unchanged.
fn is_intact(folder: &Path) -> bool {
    let mut seen = 0;
    let mut open = vec![folder.to_owned()];
    while let Some(directory) = open.pop() {
        let is_folder = fs::symlink_metadata(&directory).is_ok_and(|found| found.is_dir());
        let Some(entries) = is_folder.then(|| fs::read_dir(&directory).ok()).flatten() else {
            return false;
        };
        for entry in entries {
            let Some((path, kind)) =
                entry.ok().and_then(|entry| Some((entry.path(), entry.file_type().ok()?)))
            else {
                return false;
            };
            let own = |name: &str| path == folder.join(name);
            let is_ours = if kind.is_dir() {
                open.push(path.clone());
                FILES.iter().any(|(name, _)| folder.join(name).starts_with(&path))
            } else {
                seen += 1;
                let file = FILES.iter().find(|(name, _)| kind.is_file() && own(name));
                file.is_some_and(|(_, text)| {
                    fs::read(&path).is_ok_and(|bytes| bytes == text.as_bytes())
                })
            };
            if !is_ours {
                return false;
            }
        }
    }
    seen == FILES.len()
}

/// Writes the files to a temporary folder and renames it, so that the folder appears complete.
fn put(parent: &Path, folder: &Path) -> io::Result<()> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let unique = format!(".{}-{}", process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let [fresh, stale] = ["new", "old"].map(|what| parent.join(format!("{unique}-{what}")));
    let moved = write(&fresh).and_then(|()| match fs::rename(&fresh, folder) {
        Err(error) if is_taken(&error) && !is_intact(folder) => {
            // The existing folder is not ours, or was changed.
            fs::rename(folder, &stale)?;
            fs::rename(&fresh, folder)
        }
        moved => moved,
    });
    for leftover in [&fresh, &stale] {
        // A leftover folder does no harm.
        let _ = fs::remove_dir_all(leftover).or_else(|_| fs::remove_file(leftover));
    }
    moved
}

fn write(folder: &Path) -> io::Result<()> {
    for (name, text) in FILES {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap_or(folder))?;
        fs::write(path, text)?;
    }
    Ok(())
}

fn is_taken(error: &io::Error) -> bool {
    use io::ErrorKind::{AlreadyExists, DirectoryNotEmpty, NotADirectory, NotFound};
    matches!(error.kind(), AlreadyExists | DirectoryNotEmpty | NotADirectory | NotFound)
}
