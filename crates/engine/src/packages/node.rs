//! Installs the npm packages of a skill into a folder of the cache.
//!
//! `<cache>/environments/<digest>/node_modules` is created from the manifest alone: no file of the
//! skill's folder is there, so no setting of the skill is used. Scripts of packages never run.

use std::{
    ffi::{OsStr, OsString},
    fs, io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use savoir_skill::digest::sha256_hex;
use serde::{Deserialize, Serialize};

use super::{
    npm::{self, Manifest},
    snapshot, versions,
};
use crate::{
    cancel::Cancel,
    python::environment::{
        Builds, EnvironmentError, create_once, environment_folder, installer, io_error_at,
    },
};

/// Name of the record in an environment.
const RECORD_FILE: &str = "savoir-environment.json";

/// The programs and variables for the installation.
pub(crate) struct NodePrograms<'a> {
    pub(crate) node: &'a Path,
    pub(crate) npm: &'a Path,
    pub(crate) variables: Vec<(OsString, OsString)>,
}

/// The record of an installation, stored in the environment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct NodeRecord {
    node: String,
    packages: Vec<(String, String)>,
    /// The [`snapshot`] of all files after the installation.
    files: String,
}

/// Variables that npm gets besides those of every installer.
const NPM_VARIABLES: [&str; 8] = [
    "NODE_EXTRA_CA_CERTS", "NPM_CONFIG_REGISTRY", "NPM_CONFIG_USERCONFIG", "NPM_TOKEN",
    "npm_config_cache", "npm_config_offline", "npm_config_registry", "npm_config_userconfig",
];

/// Filters the variables of a process to those that npm gets.
pub(crate) fn variables(
    own: impl IntoIterator<Item = (OsString, OsString)>,
) -> Vec<(OsString, OsString)> {
    let own: Vec<_> = own.into_iter().collect();
    let is_own = |name: &OsStr| NPM_VARIABLES.iter().any(|known| name == *known);
    let of_npm: Vec<_> = own.iter().filter(|(name, _)| is_own(name)).cloned().collect();
    installer::variables(own).into_iter().chain(of_npm).collect()
}

/// Returns the `node_modules` for a manifest. Installs it first if it does not exist, or has
/// changed since the installation.
pub(crate) fn prepare(
    cancel: &Cancel,
    cache: &Path,
    manifest: &Manifest,
    tools: &NodePrograms<'_>,
    progress: &mut dyn FnMut(&str),
) -> Result<PathBuf, EnvironmentError> {
    let node = versions::cached_version(cache, tools.node, || node_version(tools))?;
    let digest = digest(&node, manifest);
    let root = cache.join("environments").join(&digest);
    let ready = || load_verified(&root).is_some().then(|| root.join("node_modules"));
    // A second installation uses the versions that npm chose the first time.
    let chosen = environment_folder(cache, &format!("{digest}.json"))?;
    create_once(cache, &digest, &ready, progress, |fresh, progress| {
        let lock = manifest.lock.clone().or_else(|| read_lock(&chosen));
        install(cancel, fresh, manifest, lock.as_deref(), tools, progress)?;
        let (packages, written) = check_installation(fresh)?;
        if let Some(written) = written.filter(|_| manifest.lock.is_none()) {
            fs::write(&chosen, written).map_err(io_error_at(&chosen))?;
        }
        let files = snapshot::of(fresh, RECORD_FILE).map_err(io_error_at(fresh))?;
        let record = NodeRecord { node: node.clone(), packages, files };
        let path = fresh.join(RECORD_FILE);
        let text = serde_json::to_string_pretty(&record).map_err(io::Error::from);
        text.and_then(|text| fs::write(&path, text + "\n")).map_err(io_error_at(&path))?;
        Ok(root.join("node_modules"))
    })
}

/// The lock file of the first installation. It is ignored if it names a source other than a
/// registry.
fn read_lock(path: &Path) -> Option<String> {
    npm::serialize_lock(&fs::read_to_string(path).ok()?).ok()
}

fn load_verified(root: &Path) -> Option<NodeRecord> {
    let text = fs::read(root.join(RECORD_FILE)).ok()?;
    let record: NodeRecord = serde_json::from_slice(&text).ok()?;
    let is_same = snapshot::of(root, RECORD_FILE).is_ok_and(|files| files == record.files);
    (is_same && root.join("node_modules").is_dir()).then_some(record)
}

fn digest(node: &str, manifest: &Manifest) -> String {
    let (system, machine) = (std::env::consts::OS, std::env::consts::ARCH);
    let lock = manifest.lock.as_deref().unwrap_or_default();
    let Manifest { text, .. } = manifest;
    let text = format!("1\0{node}\0{system}\0{machine}\0{}\0{text}{lock}", text.len());
    sha256_hex(text.as_bytes())[..32].to_owned()
}

fn node_version(tools: &NodePrograms<'_>) -> Result<String, EnvironmentError> {
    let node = tools.node;
    let mut command = Command::new(node);
    command.arg("--version").stdin(Stdio::null()).current_dir("/");
    // `node` can be a script of a version manager, which starts programs of its `PATH`.
    command.env_clear().envs(tools.variables.iter().cloned());
    let output = command.output().map_err(io_error_at(node))?;
    let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if version.starts_with('v') && output.status.success() {
        return Ok(version);
    }
    Err(io_error_at(node)(io::Error::other("it does not say its version")))
}

fn install(
    cancel: &Cancel,
    fresh: &Path,
    manifest: &Manifest,
    lock: Option<&str>,
    tools: &NodePrograms<'_>,
    progress: &mut dyn FnMut(&str),
) -> Result<(), EnvironmentError> {
    fs::create_dir_all(fresh).map_err(io_error_at(fresh))?;
    let write = |name: &str, text: &str| {
        let path = fresh.join(name);
        fs::write(&path, text).map_err(io_error_at(&path))
    };
    write("package.json", &manifest.text)?;
    if let Some(lock) = lock {
        write("package-lock.json", lock)?;
    }
    let mut npm = Command::new(tools.npm);
    npm.arg(if lock.is_some() { "ci" } else { "install" });
    npm.args(["--ignore-scripts", "--no-audit", "--no-fund", "--omit=dev", "--no-progress"]);
    npm.args(["--no-update-notifier", "--global=false", "--color=false", "--loglevel=warn"]);
    npm.current_dir(fresh).env_clear().envs(tools.variables.iter().cloned());
    // A package of the registry may itself depend on a repository, which npm would build, or on
    // another source. Versions of npm that do not know these settings download from there; their
    // result is then refused by `check_installation`.
    for kind in ["git", "remote", "file", "directory"] {
        npm.env(format!("npm_config_allow_{kind}"), "none");
    }
    // A version of npm that does not know the settings above would run git.
    npm.env("npm_config_git", "/bin/false");
    installer::run(cancel, ("npm", "install the packages"), &mut npm, Builds::Refused, progress)?;
    // npm creates no folder if every package is optional and for another system.
    let modules = fresh.join("node_modules");
    fs::create_dir_all(&modules).map_err(io_error_at(&modules))
}

/// Returns the installed packages and npm's lock file. Fails if a package does not come from a
/// registry, or if a symlink leads out. Both lock files are checked: one has the data of the
/// registry, the other the data of the packages themselves.
fn check_installation(fresh: &Path) -> Result<InstalledPackages, EnvironmentError> {
    let failed = |line: String| EnvironmentError::Installer {
        tool: "npm",
        what: "install the packages",
        tail: vec![line],
        hint: Some("only packages of the registry are installed: use a version without it"),
    };
    let modules = fresh.join("node_modules");
    if let Some(link) = snapshot::link_out(&modules).map_err(io_error_at(&modules))? {
        return Err(failed(format!("{} leads out of node_modules", link.display())));
    }
    let read = |path: PathBuf| match fs::read_to_string(&path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(io_error_at(&path)(error)),
    };
    let lock = read(fresh.join("package-lock.json"))?;
    let lock = lock.map(|text| npm::serialize_lock(&text)).transpose().map_err(failed)?;
    let hidden = read(modules.join(".package-lock.json"))?;
    let packages = hidden.map(|text| npm::installed_packages(&text)).transpose().map_err(failed)?;
    Ok((packages.unwrap_or_default(), lock))
}

/// Pairs of package name and version, and the text of a lock file.
type InstalledPackages = (Vec<(String, String)>, Option<String>);
