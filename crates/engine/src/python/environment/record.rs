//! What was installed into an environment, and whether it still is.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use savoir_skill::digest::sha256_hex;
use serde::{Deserialize, Serialize};

use super::{EnvironmentError, Wanted, at, interpreter};
use crate::{packages::snapshot, python::requirement::Requirement};

/// Name of the record in the environment.
const FILE: &str = "savoir-environment.json";

/// Largest file of a package's metadata that is read; the longest `RECORD` in use lists some
/// thirty thousand files.
const MAX_METADATA_BYTES: u64 = 16 * 1024 * 1024;

/// What an environment was made of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Version of Python.
    pub python: String,
    /// What was asked for.
    pub requirements: Vec<String>,
    /// `uv` or `pip`.
    pub tool: String,
    /// What was installed, by name.
    pub packages: Vec<Package>,
    /// A digest over names, sizes and times of all files, as they were then.
    #[serde(default)]
    pub files: String,
    /// When, in seconds since 1970.
    pub created: u64,
}

/// An installed package.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// SHA-256 of its `RECORD`, which itself lists the hashes of its files.
    pub record_sha256: String,
}

impl Package {
    /// As a requirement that no other version satisfies.
    pub(super) fn pin(&self) -> String {
        format!("{}=={}", self.name, self.version)
    }
}

/// Looks at what was installed and writes it down. Nothing may be changed afterwards.
pub(super) fn write(
    root: &Path,
    python: &str,
    wanted: &Wanted<'_>,
) -> Result<Record, EnvironmentError> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let record = Record {
        python: python.to_owned(),
        requirements: wanted.requirements.iter().map(ToString::to_string).collect(),
        tool: wanted.installer.as_str().to_owned(),
        packages: packages(root).map_err(at(root))?,
        files: snapshot::of(root, FILE).map_err(at(root))?,
        created: now.map_or(0, |since| since.as_secs()),
    };
    let path = root.join(FILE);
    let text = serde_json::to_string_pretty(&record).map_err(io::Error::from);
    text.and_then(|text| fs::write(&path, text + "\n")).map_err(at(&path))?;
    Ok(record)
}

/// The record of an environment that is what the record says.
///
/// The check compares the size and times of every file and reads none of them.
pub(super) fn verified(root: &Path, python: &str, wanted: &[Requirement]) -> Option<Record> {
    let text = read(&root.join(FILE)).ok()?;
    let record: Record = serde_json::from_slice(&text).ok()?;
    let same =
        record.requirements.iter().map(String::as_str).eq(wanted.iter().map(Requirement::as_str));
    let whole = record.python == python && same && interpreter(root).exists();
    (whole && snapshot::of(root, FILE).is_ok_and(|found| found == record.files)).then_some(record)
}

/// What the metadata in `site-packages` says.
fn packages(root: &Path) -> io::Result<Vec<Package>> {
    let mut packages = Vec::new();
    for entry in fs::read_dir(site_packages(root)?)? {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "dist-info") {
            continue;
        }
        let metadata = read(&path.join("METADATA"))?;
        let metadata = String::from_utf8_lossy(&metadata);
        let header = |name: &str| {
            let lines = metadata.lines().take_while(|line| !line.is_empty());
            let mut fields = lines.filter_map(|line| line.split_once(':'));
            let found = fields.find(|(key, _)| key.eq_ignore_ascii_case(name));
            found.map(|(_, value)| value.trim().to_owned()).unwrap_or_default()
        };
        packages.push(Package {
            name: header("Name"),
            version: header("Version"),
            record_sha256: sha256_hex(&read(&path.join("RECORD"))?),
        });
    }
    packages.sort();
    Ok(packages)
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

fn read(path: &Path) -> io::Result<Vec<u8>> {
    use io::Read as _;
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(MAX_METADATA_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}
