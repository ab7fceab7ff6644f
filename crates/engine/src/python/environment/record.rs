//! Records what was installed into an environment, and verifies it before each use.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use savoir_skill::digest::sha256_hex;
use serde::{Deserialize, Serialize};

use super::{EnvironmentError, EnvironmentSpec, interpreter, io_error_at};
use crate::{
    packages::snapshot,
    python::requirement::{Requirement, pin},
};

/// Name of the record in the environment.
const RECORD_FILE: &str = "savoir-environment.json";

/// Maximum size of the record of an environment, and maximum bytes that are read of a package's
/// `RECORD`; the longest one known lists about thirty thousand files.
const MAX_RECORD_BYTES: u64 = 16 * 1024 * 1024;

/// Bytes of a `METADATA` file in which name and version are searched. They come before the license
/// and the description.
const MAX_HEADER_BYTES: u64 = 256 * 1024;

/// The content of an environment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnvironmentRecord {
    /// Version of Python.
    pub python: String,
    /// The requested requirements.
    pub requirements: Vec<String>,
    /// `uv` or `pip`.
    pub tool: String,
    /// The installed packages, sorted by name.
    pub packages: Vec<Package>,
    /// A digest over names, sizes and times of all files after the installation.
    #[serde(default)]
    pub files: String,
    /// The time of the installation, in seconds since 1970.
    pub created: u64,
}

/// An installed package.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Package {
    pub name: String,
    pub version: String,
    /// SHA-256 of its `RECORD`, which itself lists the hashes of its files.
    pub record_sha256: String,
}

impl Package {
    /// The requirement that only this version satisfies.
    pub(super) fn pin(&self) -> String {
        format!("{}=={}", self.name, self.version)
    }

    /// Reads the metadata folder of a package, which its author wrote.
    fn read(folder: &Path) -> Result<Self, EnvironmentError> {
        let path = folder.join("METADATA");
        let metadata = read(&path, MAX_HEADER_BYTES).map_err(io_error_at(&path))?;
        let metadata = String::from_utf8_lossy(&metadata);
        let header = |name: &str| {
            let lines = metadata.lines().take_while(|line| !line.is_empty());
            let mut fields = lines.filter_map(|line| line.split_once(':'));
            let found = fields.find(|(key, _)| key.eq_ignore_ascii_case(name));
            found.map(|(_, value)| value.trim().to_owned()).unwrap_or_default()
        };
        let (name, version) = (header("Name"), header("Version"));
        pin(&name, &version).map_err(|error| unusable(folder, &error))?;
        let path = folder.join("RECORD");
        let record = read(&path, MAX_RECORD_BYTES).map_err(io_error_at(&path))?;
        Ok(Self { name, version, record_sha256: sha256_hex(&record) })
    }
}

/// Writes the record of the installed packages. The files must not change afterwards.
pub(super) fn write(
    root: &Path,
    python: &str,
    spec: &EnvironmentSpec<'_>,
) -> Result<EnvironmentRecord, EnvironmentError> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let record = EnvironmentRecord {
        python: python.to_owned(),
        requirements: spec.requirements.iter().map(ToString::to_string).collect(),
        tool: spec.installer.as_str().to_owned(),
        packages: packages(root)?,
        files: snapshot::of(root, RECORD_FILE).map_err(io_error_at(root))?,
        created: now.map_or(0, |since| since.as_secs()),
    };
    let path = root.join(RECORD_FILE);
    let text = serde_json::to_string_pretty(&record)
        .map_err(io::Error::from)
        .map_err(io_error_at(&path))?;
    if text.len() as u64 >= MAX_RECORD_BYTES {
        // A larger record could not be read again, so every run would install the environment
        // again.
        return Err(unusable(&path, &"it has too many packages"));
    }
    fs::write(&path, text + "\n").map_err(io_error_at(&path))?;
    Ok(record)
}

/// Returns the record of an environment if its files still match the record.
///
/// The check compares the size and times of every file and reads none of them.
pub(super) fn load_verified(
    root: &Path,
    python: &str,
    requirements: &[Requirement],
) -> Option<EnvironmentRecord> {
    let text = read(&root.join(RECORD_FILE), MAX_RECORD_BYTES).ok()?;
    let record: EnvironmentRecord = serde_json::from_slice(&text).ok()?;
    let same = record
        .requirements
        .iter()
        .map(String::as_str)
        .eq(requirements.iter().map(Requirement::as_str));
    let whole = record.python == python && same && interpreter(root).exists();
    (whole && snapshot::of(root, RECORD_FILE).is_ok_and(|found| found == record.files))
        .then_some(record)
}

/// Reads the metadata of all packages in `site-packages`.
fn packages(root: &Path) -> Result<Vec<Package>, EnvironmentError> {
    let folder = site_packages(root).map_err(io_error_at(root))?;
    let mut packages = Vec::new();
    for entry in fs::read_dir(&folder).map_err(io_error_at(&folder))? {
        let path = entry.map_err(io_error_at(&folder))?.path();
        if path.extension().is_some_and(|extension| extension == "dist-info") {
            packages.push(Package::read(&path)?);
        }
    }
    packages.sort();
    Ok(packages)
}

fn unusable(path: &Path, reason: &dyn std::fmt::Display) -> EnvironmentError {
    EnvironmentError::Unusable { path: path.to_owned(), reason: reason.to_string() }
}

fn site_packages(root: &Path) -> io::Result<PathBuf> {
    if cfg!(windows) {
        return Ok(root.join("Lib").join("site-packages"));
    }
    // `lib/python3.11/site-packages`: the only folder of its kind.
    for entry in fs::read_dir(root.join("lib"))? {
        let path = entry?.path().join("site-packages");
        if path.is_dir() {
            return Ok(path);
        }
    }
    Err(io::Error::new(io::ErrorKind::NotFound, "the environment has no site-packages"))
}

fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    use io::Read as _;
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}
