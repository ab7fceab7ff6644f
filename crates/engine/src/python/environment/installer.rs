//! Runs `uv`, or else `venv` and `pip`, to create and fill an environment.

use std::{
    collections::VecDeque,
    ffi::{OsStr, OsString},
    fs,
    io::{self, BufRead as _, Read as _},
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use rustix::process::Pid;

use super::{Builds, EnvironmentError, EnvironmentSpec, interpreter, io_error_at};
use crate::{cancel::Cancel, python::requirement::Requirement};

/// The program that installs packages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Installer {
    /// `uv` at this path.
    Uv(PathBuf),
    /// The `venv` and `pip` modules of the Python interpreter.
    Pip,
}

impl Installer {
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Uv(_) => "uv",
            Self::Pip => "pip",
        }
    }
}

/// Names of variables that an installer gets. Settings that choose the target folder, such as
/// `PIP_TARGET`, are left out on purpose.
const PASSED_VARIABLES: &[&str] = &[
    "PATH", "HOME", "TMPDIR", "LANG", "LC_ALL", "XDG_CACHE_HOME", "XDG_CONFIG_HOME",
    "XDG_DATA_HOME", "NETRC", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy",
    "https_proxy", "all_proxy", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE", "PIP_CACHE_DIR", "PIP_CERT", "PIP_CLIENT_CERT", "PIP_CONFIG_FILE",
    "PIP_DEFAULT_TIMEOUT", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_INDEX_URL",
    "PIP_KEYRING_PROVIDER", "PIP_NO_INDEX", "PIP_PROXY", "PIP_RETRIES", "PIP_TIMEOUT",
    "PIP_TRUSTED_HOST", "UV_CACHE_DIR", "UV_CONFIG_FILE", "UV_DEFAULT_INDEX", "UV_EXTRA_INDEX_URL",
    "UV_FIND_LINKS", "UV_HTTP_RETRIES", "UV_HTTP_TIMEOUT", "UV_INDEX", "UV_INDEX_STRATEGY",
    "UV_INDEX_URL", "UV_INSECURE_HOST", "UV_KEYRING_PROVIDER", "UV_NATIVE_TLS", "UV_OFFLINE",
    "UV_PYTHON_INSTALL_DIR", "UV_SYSTEM_CERTS",
    // Windows does not start programs without these.
    "SYSTEMROOT", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "TEMP", "TMP",
];

/// Filters the variables of a process to those that an installer gets.
///
/// ```
/// use savoir_engine::python::environment::variables;
///
/// let own = [("HOME", "/home/ana"), ("AWS_SECRET_ACCESS_KEY", "x"), ("PIP_TARGET", "/")];
/// let kept = variables(own.map(|(name, value)| (name.into(), value.into())));
/// assert_eq!(kept, [("HOME".into(), "/home/ana".into())]);
/// ```
pub fn variables(own: impl IntoIterator<Item = (OsString, OsString)>) -> Vec<(OsString, OsString)> {
    let is_kept = |name: &OsStr| {
        let name = name.to_str().unwrap_or_default();
        // The names and passwords of the user's own indexes: `UV_INDEX_<NAME>_PASSWORD`.
        let credential = name.starts_with("UV_INDEX_")
            && (name.ends_with("_USERNAME") || name.ends_with("_PASSWORD"));
        PASSED_VARIABLES.contains(&name) || credential
    };
    own.into_iter().filter(|(name, _)| is_kept(name)).collect()
}

/// Lines of output that an error shows.
const MAX_TAIL_LINES: usize = 12;

/// Longest line of output that is read at once.
const MAX_LINE_BYTES: u64 = 4096;

/// Creates the environment at `root` and installs the requirements into it, in the versions of the
/// file `pins`, if there is one.
pub(super) fn install(
    cancel: &Cancel,
    root: &Path,
    spec: &EnvironmentSpec<'_>,
    pins: Option<&Path>,
    progress: &mut dyn FnMut(&str),
) -> Result<(), EnvironmentError> {
    // The installer's working directory: empty, so that no name in a requirement is a file there,
    // and outside of any project whose settings it could read.
    let folder = root.with_extension("work");
    fs::create_dir_all(&folder).map_err(io_error_at(&folder))?;
    let run = |tool, what, command: &mut Command, progress: &mut dyn FnMut(&str)| {
        command.current_dir(&folder).env_clear().envs(spec.variables.iter().cloned());
        command.env("NO_COLOR", "1").env("PYTHONUNBUFFERED", "1").env("PYTHONUTF8", "1");
        run(cancel, (tool, what), command, spec.builds, progress)
    };
    let requirements = || spec.requirements.iter().map(Requirement::as_str);
    let installed = match &spec.installer {
        Installer::Uv(uv) => {
            let mut venv = Command::new(uv);
            venv.args(["venv", "--no-project", "--no-progress", "--python"]);
            venv.arg(spec.python).arg(root);
            let made = run("uv", "make an environment", &mut venv, progress);
            let mut pip = Command::new(uv);
            // Copies files: a hard link into uv's cache would let a change here reach every
            // project.
            pip.args(["pip", "install", "--no-progress", "--link-mode", "copy", "--python"]);
            pip.arg(interpreter(root));
            if spec.builds == Builds::Refused {
                pip.arg("--no-build");
            }
            // Without `--compile-bytecode`: uv would compile with the new interpreter, which runs
            // code of packages.
            if let Some(pins) = pins {
                pip.arg("--constraint").arg(pins);
            }
            pip.arg("--").args(requirements());
            made.and_then(|()| match spec.requirements {
                [] => Ok(()),
                _ => run("uv", "install the packages", &mut pip, progress),
            })
        }
        Installer::Pip => {
            let mut venv = Command::new(spec.python);
            venv.args(["-I", "-m", "venv"]);
            let mut pip;
            if can_install_elsewhere(spec, &folder) {
                // Ten times faster, and the environment contains no installer that a tool could
                // call.
                venv.arg("--without-pip");
                pip = Command::new(spec.python);
                pip.args(["-I", "-m", "pip", "--python"]).arg(interpreter(root));
            } else {
                pip = Command::new(interpreter(root));
                pip.args(["-I", "-m", "pip"]);
            }
            venv.arg(root);
            let made = run("venv", "make an environment", &mut venv, progress);
            pip.args(["install", "--no-input", "--progress-bar", "off", "--no-color"]);
            pip.args(["--disable-pip-version-check", "--no-warn-script-location"]);
            if spec.builds == Builds::Refused {
                pip.args(["--only-binary", ":all:"]);
            }
            if let Some(pins) = pins {
                pip.arg("--constraint").arg(pins);
            }
            pip.arg("--").args(requirements());
            made.and_then(|()| match spec.requirements {
                [] => Ok(()),
                _ => run("pip", "install the packages", &mut pip, progress),
            })
        }
    };
    // The folder is empty and no longer needed.
    let _ = fs::remove_dir_all(&folder);
    installed
}

/// Whether the interpreter's own pip can install into another environment, as pip can since 22.3.
fn can_install_elsewhere(spec: &EnvironmentSpec<'_>, folder: &Path) -> bool {
    let mut pip = Command::new(spec.python);
    pip.args(["-I", "-m", "pip", "--version"]).stdin(Stdio::null()).stderr(Stdio::null());
    pip.current_dir(folder).env_clear().envs(spec.variables.iter().cloned());
    // `pip 24.0 from …`
    let output = pip.output().map(|output| output.stdout).unwrap_or_default();
    let said = String::from_utf8_lossy(&output).into_owned();
    let version = said.split_whitespace().nth(1).and_then(|version| {
        let mut numbers = version.split('.').map(str::parse::<u32>);
        Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
    });
    version.is_some_and(|version| version >= (22, 3))
}

/// Runs one installation step, and passes its output on line by line, both streams in order.
pub(crate) fn run(
    cancel: &Cancel,
    (tool, what): (&'static str, &'static str),
    command: &mut Command,
    builds: Builds,
    progress: &mut dyn FnMut(&str),
) -> Result<(), EnvironmentError> {
    let program = PathBuf::from(command.get_program());
    let mut tail: VecDeque<String> = VecDeque::new();
    let mut errors: Vec<String> = Vec::new();
    let mut watched = || -> io::Result<bool> {
        let (reader, writer) = io::pipe()?;
        command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
        if cancel.is_guarded() {
            // In its own process group, so that its child processes are stopped with it.
            command.process_group(0);
        }
        let mut child = command.spawn()?;
        if cancel.is_guarded() {
            cancel.set_process_group(Pid::from_child(&child));
        }
        // The copies of the pipe's write end in this process must be closed, or reading never ends.
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut reader = io::BufReader::new(reader);
        let mut line = Vec::new();
        loop {
            line.clear();
            if (&mut reader).take(MAX_LINE_BYTES).read_until(b'\n', &mut line)? == 0 {
                break;
            }
            let text = visible(&String::from_utf8_lossy(&line));
            if !text.is_empty() {
                // If the step fails, the error contains these lines.
                if is_error_line(&text) {
                    errors.push(text.clone());
                } else {
                    progress(&text);
                }
                tail.push_back(text);
                if tail.len() > MAX_TAIL_LINES {
                    tail.pop_front();
                }
            }
        }
        cancel.clear_process();
        Ok(child.wait()?.success())
    };
    let succeeded = watched().map_err(io_error_at(&program))?;
    if succeeded {
        for line in &errors {
            progress(line);
        }
        return Ok(());
    }
    let tail: Vec<String> = tail.into();
    let hint = hint(&tail.join("\n"), builds);
    Err(EnvironmentError::Installer { tool, what, tail, hint })
}

/// Whether an installer reports an error with this line.
fn is_error_line(line: &str) -> bool {
    ["ERROR:", "error:", "npm error", "npm ERR!"].iter().any(|start| line.starts_with(start))
}

/// Replaces control characters of a line, which could move the cursor of a terminal.
fn visible(line: &str) -> String {
    line.trim_end().chars().map(|c| if c.is_control() && c != '\t' { ' ' } else { c }).collect()
}

fn hint(output: &str, builds: Builds) -> Option<&'static str> {
    let says = |words: &[&str]| words.iter().any(|word| output.contains(word));
    let unreachable = [
        "NewConnectionError",
        "Failed to establish a new connection",
        "Temporary failure in name resolution",
        "Name or service not known",
        "Connection refused",
        "Cannot connect to proxy",
        "dns error",
        "error sending request",
        "Failed to fetch",
        "client error (Connect)",
        "ECONNREFUSED",
        "ENOTFOUND",
        "EAI_AGAIN",
        "ENETUNREACH",
        "ETIMEDOUT",
        "ENOTCACHED",
        "network was disabled",
    ];
    if says(&unreachable) {
        return Some(
            "the package index cannot be reached; check the network, proxy and index settings",
        );
    }
    let no_wheel = [
        "from versions: none", "No matching distribution", "no wheels", "no usable wheels",
        "no-build", "only-binary",
    ];
    if builds == Builds::Refused && says(&no_wheel) {
        return Some(
            "check the names and versions of the packages; only wheels are installed, because \
             building a package runs its code, and a package without one for this Python is not \
             found",
        );
    }
    if says(&["EALLOWREMOTE", "EALLOWFILE", "EALLOWDIRECTORY", "EALLOWGIT"]) {
        return Some(
            "only packages of the registry are installed, and one names another place; use a \
             version without it",
        );
    }
    if says(&["npm error code E404", "npm error code ETARGET"]) {
        return Some("correct the name or the version of the package in package.json");
    }
    if says(&["can only install packages when your package.json and package-lock.json"]) {
        return Some("run `npm install` in the skill's folder, so that package-lock.json fits");
    }
    if says(&["ensurepip is not available", "No module named venv", "No module named ensurepip"]) {
        return Some("install Python's `venv` module, or `uv`");
    }
    None
}
