//! Runs external scanners, if the operator installed them.
//!
//! Each scanner runs in the sandbox on copies of the files that it can read. The copies have
//! generated names, so that a package cannot bring settings that disable the scanner, or names that
//! break it. The output is limited, and findings count only if they name one of the copies.

mod audit;
mod bandit;
mod secrets;

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    thread,
    time::Instant,
};

use savoir_engine::grant;
use savoir_package::Tree;
use savoir_sandbox::{
    CountedMemory, Limits, Network, PathGrant, Policy, ProcessEnd, Sandbox, Stream, TRUSTED_PATH,
    Variable, find_program,
};
use serde::de::DeserializeOwned;
use tempfile::TempDir;

use super::{
    Options,
    finding::{EngineOutcome, EngineRun, Finding},
};

/// Maximum bytes of scanner output: enough for a finding in every line of a package.
const MAX_OUTPUT_BYTES: u64 = 16 << 20;

/// Maximum findings of one scanner that are reported; more add nothing.
const MAX_FINDINGS: usize = 200;

/// Maximum characters of a message of an external program.
const MAX_MESSAGE_CHARS: usize = 300;

/// The scanners that are installed on this machine.
#[derive(Debug)]
pub(super) struct Scanners {
    bandit: Option<Scanner>,
    secrets: Option<Scanner>,
    audit: Option<Scanner>,
}

/// A scanner that is installed in its own Python environment.
#[derive(Clone, Debug)]
struct Scanner {
    /// The name of the engine.
    name: &'static str,
    module: &'static str,
    python: PathBuf,
    version: Option<String>,
}

/// The findings of an engine and its run.
type EngineResult = (Vec<Finding>, EngineRun);

impl Scanners {
    /// Searches for scanners in the folders of the operator, then in `PATH`.
    pub(super) fn find(options: &Options) -> Self {
        let folders: Vec<PathBuf> =
            options.folders.iter().cloned().chain(grant::search_path()).collect();
        Self {
            bandit: Scanner::find(bandit::ENGINE_NAME, "bandit", &folders),
            secrets: Scanner::find(secrets::ENGINE_NAME, "detect_secrets", &folders),
            audit: Scanner::find(audit::ENGINE_NAME, "pip_audit", &folders),
        }
    }

    /// Runs all scanners in parallel.
    pub(super) fn run(&self, tree: &Tree, options: &Options) -> (Vec<Finding>, Vec<EngineRun>) {
        let engines = thread::scope(|scope| {
            [
                (
                    bandit::ENGINE_NAME,
                    scope.spawn(|| bandit::run(self.bandit.as_ref(), tree, options)),
                ),
                (
                    secrets::ENGINE_NAME,
                    scope.spawn(|| secrets::run(self.secrets.as_ref(), tree, options)),
                ),
                (
                    audit::ENGINE_NAME,
                    scope.spawn(|| audit::run(self.audit.as_ref(), tree, options)),
                ),
            ]
            .map(|(name, engine)| {
                let stopped = || (Vec::new(), EngineRun::failed(name, "it stopped working"));
                engine.join().unwrap_or_else(|_| stopped())
            })
        });
        let mut all = (Vec::new(), Vec::new());
        for (mut findings, run) in engines {
            findings.truncate(MAX_FINDINGS);
            all.0.extend(findings);
            all.1.push(run);
        }
        all
    }
}

impl Scanner {
    /// Searches for a scanner in its own Python environment, as pipx, uv and venv create it. Only
    /// such an environment can be mounted in the sandbox without the rest of the machine.
    fn find(name: &'static str, module: &'static str, folders: &[PathBuf]) -> Option<Self> {
        let script = find_program(name, folders)?.canonicalize().ok()?;
        let bin = script.parent()?;
        let root = bin.parent().filter(|root| root.join("pyvenv.cfg").is_file())?;
        let python = find_program("python", &[bin.to_owned()])
            .or_else(|| find_program("python3", &[bin.into()]))?;
        Some(Self { name, module, python, version: version(root, module) })
    }

    /// Runs the scanner in a folder and parses its JSON output.
    fn run_scanner<T: DeserializeOwned>(
        &self,
        folder: &Path,
        arguments: &[&str],
        network: Network,
        options: &Options,
    ) -> Result<T, String> {
        let policy = Policy {
            // Process pools of Python store their locks in the second path.
            paths: vec![
                PathGrant::scratch("/tmp"),
                PathGrant::scratch("/dev/shm"),
                PathGrant::read(folder),
            ],
            programs: vec![self.python.clone()],
            network,
            environment: environment(),
            limits: limits(options),
            directory: folder.to_owned(),
            ..Policy::default()
        };
        let own = ["-I", "-B", "-m", self.module];
        let words: Vec<String> = own.iter().chain(arguments).map(|&word| word.to_owned()).collect();
        let sandbox = Sandbox::new(policy).map_err(|error| error.to_string())?;
        let process = sandbox.start(&self.python, &words).map_err(|error| error.to_string())?;
        let (mut printed, mut said) = (Vec::new(), Vec::new());
        let outcome = process.communicate(b"", |stream, bytes| match stream {
            Stream::Output => printed.extend_from_slice(bytes),
            // The last lines of standard error say why the scanner failed.
            Stream::Error => {
                said.extend_from_slice(bytes);
                let much = said.len().saturating_sub(MAX_MESSAGE_CHARS);
                said.drain(..much);
            }
        });
        match outcome.end {
            // Exit code 1 means that the scanner has findings.
            ProcessEnd::Exited(0 | 1) => {}
            ProcessEnd::TimedOut => return Err("it took too long".to_owned()),
            ProcessEnd::TooMuchOutput => return Err("it printed too much".to_owned()),
            ProcessEnd::TooMuchMemory | ProcessEnd::TooManyProcesses => {
                return Err("it took too much memory".to_owned());
            }
            ProcessEnd::Exited(code) => {
                return Err(format!(
                    "it ended with {code}: {}",
                    short_text(&String::from_utf8_lossy(&said))
                ));
            }
            ProcessEnd::Signalled(_) | ProcessEnd::Stopped => return Err("it was ended".to_owned()),
        }
        serde_json::from_slice(&printed).map_err(|error| {
            let said = short_text(&String::from_utf8_lossy(&said));
            format!("what it printed is not its report: {error} {said}").trim_end().to_owned()
        })
    }

    fn engine(
        &self,
        started: Instant,
        asked: Result<Vec<Finding>, ScannerFailure>,
    ) -> EngineResult {
        let version = self.version.clone();
        match asked {
            Ok(findings) => (findings, EngineRun::ran(self.name, version, started)),
            Err(ScannerFailure { findings, why }) => {
                let run = EngineRun { version, ..EngineRun::failed(self.name, why) };
                (findings, run.since(started))
            }
        }
    }
}

/// A scanner that did not run to its end, with the findings until then.
struct ScannerFailure {
    findings: Vec<Finding>,
    why: String,
}

impl From<String> for ScannerFailure {
    fn from(why: String) -> Self {
        Self { findings: Vec::new(), why }
    }
}

fn missing(name: &'static str) -> EngineResult {
    (Vec::new(), EngineRun::new(name, EngineOutcome::Missing))
}

fn not_needed(name: &'static str, why: &str) -> EngineResult {
    (Vec::new(), EngineRun::not_needed(name, why))
}

/// The version that the Python environment records for the module.
fn version(root: &Path, module: &str) -> Option<String> {
    for lib in fs::read_dir(root.join("lib")).ok()?.flatten() {
        for entry in fs::read_dir(lib.path().join("site-packages")).into_iter().flatten().flatten()
        {
            let name = entry.file_name().to_string_lossy().into_owned();
            let found = name.strip_suffix(".dist-info").and_then(|name| name.split_once('-'));
            if let Some((package, version)) = found
                && package == module
            {
                return Some(version.to_owned());
            }
        }
    }
    None
}

fn environment() -> BTreeMap<String, Variable> {
    let path = TRUSTED_PATH.join(":");
    let pairs = [("PATH", &*path), ("HOME", "/tmp"), ("LANG", "C.UTF-8"), ("COLUMNS", "200")];
    pairs.map(|(name, value)| (name.to_owned(), Variable::Plain(value.to_owned()))).into()
}

fn limits(options: &Options) -> Limits {
    let wall = options.limits.scanner;
    Limits {
        wall: Some(wall),
        cpu: Some(wall.as_secs()),
        memory: options.limits.memory,
        counted_memory: CountedMemory::Data,
        processes: options.limits.processes,
        output: MAX_OUTPUT_BYTES,
        ..Limits::default()
    }
}

/// A text of an external program, on one line and shortened.
fn short_text(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").chars().filter(|char| !char.is_control()).take(MAX_MESSAGE_CHARS).collect()
}

/// Copies of files under generated names.
struct CopiedFiles {
    folder: TempDir,
    names: BTreeMap<String, String>,
}

impl CopiedFiles {
    /// Copies the files for which `extension` returns an extension; `None` if there are none.
    fn of(
        tree: &Tree,
        extension: impl Fn(&str, &[u8]) -> Option<&'static str>,
    ) -> io::Result<Option<Self>> {
        let folder = tempfile::Builder::new().prefix("savoir-scanner-").tempdir()?;
        let mut names = BTreeMap::new();
        for (path, file) in tree.files() {
            let Some(extension) = extension(path, &file.bytes) else { continue };
            let name = format!("file{:05}.{extension}", names.len());
            fs::write(folder.path().join(&name), &file.bytes)?;
            names.insert(name, path.to_owned());
        }
        Ok((!names.is_empty()).then_some(Self { folder, names }))
    }

    fn path(&self) -> io::Result<PathBuf> {
        self.folder.path().canonicalize()
    }

    /// The file in the package for the name of a copy; `None` for other names.
    fn original(&self, name: &str) -> Option<&str> {
        self.names.get(name.strip_prefix("./").unwrap_or(name)).map(String::as_str)
    }
}

/// The error for a scanner that names a file which it did not receive: none of its findings are
/// trusted.
fn unknown_file(name: &str) -> String {
    format!("it named a file that is not there: {}", short_text(name))
}
