//! Copies a registry into a folder that any web server can serve.
//!
//! The folder has `index/v1/config.json`, `index/v1/{letters}/{name}` ([`Name::index_path`]) and
//! `artifacts/{sha256}/{filename}`. Every archive is compared with the index before it is written,
//! every file is written atomically, and the index of a skill is written after its archives. So the
//! folder can be served while it grows, and an interrupted copy can be continued. A copied version
//! never changes, even if the registry later has other bytes for it or drops it without a reason:
//! both are reported as failures. The digests of copied versions are stored forever, so that no
//! version comes back with other bytes. A version that was taken down once stays so in the copy,
//! and its archive is removed.

mod copied_versions;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File, TryLockError},
    io::{self, Write as _},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use savoir_skill::digest::sha256_hex;
use semver::{BuildMetadata, Version};

use self::copied_versions::CopiedVersions;
use super::{
    Client, Listing, Name, RegistryError, Release, YankChange,
    client::tree,
    concurrency::{blocking, run_concurrently},
    wire::{Config, IndexLine, Lines, ParsedLine, TakenDownLine},
};
use crate::trust::Tier;

/// The page size when listing skills.
const PER_PAGE: u32 = 100;
/// The folder for incomplete files.
const PARTIAL_FILE: &str = ".savoir-partial";
/// The lock file that is locked while a program copies into the folder.
const LOCK_FILE: &str = ".savoir-mirror";

/// The yank reason in the copy for a version that the registry dropped.
const DROPPED_REASON: &str = "its registry no longer has it, and does not say why";

/// The skills to copy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum MirrorSelection {
    /// All skills that the registry lists.
    #[default]
    Everything,
    /// These skills, and all their dependencies.
    Skills(Vec<Name>),
}

/// The result of a copy.
#[derive(Debug, Default)]
pub struct MirrorReport {
    /// The number of skills in the copy.
    pub skills: usize,
    /// The number of their versions.
    pub versions: usize,
    /// The number of downloaded archives.
    pub fetched: usize,
    /// The total size of the downloaded archives.
    pub bytes: u64,
    /// Versions that are not in the copy because of an error, or that stay unchanged in the copy
    /// although the registry changed them.
    pub failed: Vec<MirrorFailure>,
    /// The versions whose archives were removed from the copy, because they were taken down.
    pub removed: Vec<(Name, Version)>,
    /// The versions that were taken down, and the digests of their archives.
    gone: Vec<(Name, Version, String)>,
}

/// A skill or version that was not copied.
#[derive(Debug)]
pub struct MirrorFailure {
    pub name: Name,
    /// The version; `None` for all versions.
    pub version: Option<Version>,
    pub error: RegistryError,
}

/// Copies a registry into a folder, or updates an older copy. An error of one skill or version is
/// reported and skipped; an error that affects all further work is returned.
pub async fn mirror(
    client: &Client,
    folder: &Path,
    what: &MirrorSelection,
) -> Result<MirrorReport, RegistryError> {
    let folder = Arc::new(MirrorFolder::open(folder)?);
    let mut copied = MirrorReport::default();
    client.config().await?;
    let config = serde_json::to_vec(&Config::of_files()).unwrap_or_default();
    folder.write("index/v1/config.json", &config)?;
    match what {
        MirrorSelection::Skills(names) => {
            let closure = client.closure(names).await?;
            if let Some(name) = names.iter().find(|name| !closure.packages.contains_key(name)) {
                let (name, registry) = (name.clone(), client.address());
                return Err(RegistryError::Unknown { name, registry });
            }
            let names = closure.packages.into_keys().collect();
            copy_packages(client, &folder, names, &mut copied).await?;
        }
        MirrorSelection::Everything => {
            let listed = all_names(client, &folder, &mut copied).await?;
            let dropped = folder.names()?.into_iter().filter(|name| !listed.contains(name));
            copy_packages(client, &folder, dropped.collect(), &mut copied).await?;
        }
    }
    copied.removed = folder.remove(std::mem::take(&mut copied.gone))?;
    folder.close()?;
    Ok(copied)
}

async fn all_names(
    client: &Client,
    folder: &Arc<MirrorFolder>,
    copied: &mut MirrorReport,
) -> Result<BTreeSet<Name>, RegistryError> {
    // Yanked versions are copied, too, because a lock may name them.
    let mut listing =
        Listing { per_page: Some(PER_PAGE), yanked: YankChange::With, ..Listing::default() };
    let (mut cursors, mut listed) = (BTreeSet::new(), BTreeSet::new());
    loop {
        let page = client.list(&listing).await?;
        let names: BTreeSet<Name> = page.items.into_iter().map(|summary| summary.name).collect();
        listed.extend(names.iter().cloned());
        copy_packages(client, folder, names, copied).await?;
        let Some(next) = page.next_cursor else { return Ok(listed) };
        if !cursors.insert(sha256_hex(next.as_bytes())) {
            let why = "its list goes in a circle".to_owned();
            return Err(RegistryError::Malformed { address: client.address(), why });
        }
        listing.cursor = Some(next);
    }
}

async fn copy_packages(
    client: &Client,
    folder: &Arc<MirrorFolder>,
    names: BTreeSet<Name>,
    copied: &mut MirrorReport,
) -> Result<(), RegistryError> {
    let done = run_concurrently(names, |name| {
        let (client, folder) = (client.clone(), folder.clone());
        async move { copy_package(&client, &folder, name).await }
    });
    for mut one in done.await? {
        copied.skills += one.skills;
        copied.versions += one.versions;
        copied.fetched += one.fetched;
        copied.bytes += one.bytes;
        copied.failed.append(&mut one.failed);
        copied.gone.append(&mut one.gone);
    }
    Ok(())
}

/// Copies one skill: its archives, then its index.
async fn copy_package(
    client: &Client,
    folder: &MirrorFolder,
    name: Name,
) -> Result<MirrorReport, RegistryError> {
    let mut copied = MirrorReport::default();
    let text = match client.index_and_text(&name).await {
        Ok(Some((_, text))) => text,
        // The skill was removed while others were copied, or after it was copied.
        Ok(None) if folder.copy_index(&name)?.is_empty() => return Ok(copied),
        Ok(None) => String::new(),
        Err(error) => {
            copied.failed.push(MirrorFailure {
                name,
                version: None,
                error: error_of_one_skill(error)?,
            });
            return Ok(copied);
        }
    };
    let index = copy_index(client, folder, &name, &text, &mut copied).await?;
    folder.write(&format!("index/v1/{}", name.index_path()), index.as_bytes())?;
    copied.skills += 1;
    Ok(copied)
}

/// Copies the archives of a skill, and returns the index text for the copy.
async fn copy_index(
    client: &Client,
    folder: &MirrorFolder,
    name: &Name,
    text: &str,
    copied: &mut MirrorReport,
) -> Result<String, RegistryError> {
    let older = folder.copy_index(name)?;
    let (older, takedowns) = (version_lines(&older), taken_down_lines(&older));
    let mut memory = CopiedVersions::read(folder, name, older.values().map(|(line, _)| &**line))?;
    let mut lines: Vec<(Version, String)> = Vec::new();
    for (_, reading) in Lines::of(text) {
        let (line, text) = match reading {
            ParsedLine::Version(line, text) => (line, text),
            ParsedLine::Gone(line, text) => {
                lines.push((without_build_metadata(&line.version), text.to_owned()));
                continue;
            }
            ParsedLine::Unusable(_) | ParsedLine::Broken(_) => continue,
        };
        let number = without_build_metadata(&line.version);
        let known_takedown = takedowns.get(&number).copied();
        let kept = older.get(&number).map(|(_, text)| *text);
        let returned = || {
            let of = Box::new(Release::new(&line.name, &line.version, client.address()));
            known_takedown.map(|_| RegistryError::ReturnedCopy { of })
        };
        let outcome = match memory.changed_error(client, &line).or_else(returned) {
            // A version never changes: the copy keeps its line, and a version that was taken down
            // stays so.
            Some(error) => (Some(error), kept),
            None => match copy_files(client, folder, &line, copied).await {
                Ok(()) => (None, Some(text)),
                Err(error) => (Some(error_of_one_skill(error)?), None),
            },
        };
        if let Some(error) = outcome.0 {
            let version = Some(line.version.clone());
            copied.failed.push(MirrorFailure { name: name.clone(), version, error });
        } else {
            memory.keep(&line);
        }
        // If a registry lists two builds of one version, only the first is copied.
        let is_there = lines.iter().any(|(other, _)| *other == number);
        if let Some(text) = outcome.1.filter(|_| !is_there) {
            copied.versions += 1;
            lines.push((number, text.to_owned()));
        }
    }
    let named = listed_versions(text);
    for (version, (line, text)) in &older {
        if named.contains(version) {
            continue;
        }
        insert_line(&mut lines, version, dropped_line(client, line, text, copied));
        copied.versions += 1;
    }
    for (version, text) in takedowns {
        if !lines.iter().any(|(other, _)| *other == version) {
            insert_line(&mut lines, &version, text.to_owned());
        }
    }
    for version in lines.iter().filter(|(_, text)| TakenDownLine::read(text).is_some()) {
        let of = |sha256| (name.clone(), version.0.clone(), sha256);
        copied.gone.extend(memory.digest(&version.0).map(of));
    }
    memory.write(folder, name)?;
    Ok(lines.into_iter().map(|(_, text)| text + "\n").collect())
}

/// Inserts a line so that higher versions come first.
fn insert_line(lines: &mut Vec<(Version, String)>, version: &Version, text: String) {
    let place = lines.iter().position(|(other, _)| other < version).unwrap_or(lines.len());
    lines.insert(place, (version.clone(), text));
}

/// Returns a version without build metadata. Registries serve only one of two versions that differ
/// only in the build.
fn without_build_metadata(version: &Version) -> Version {
    Version { build: BuildMetadata::EMPTY, ..version.clone() }
}

/// Returns the versions of an index that were taken down, with their lines.
fn taken_down_lines(text: &str) -> BTreeMap<Version, &str> {
    let gone = Lines::of(text).filter_map(|(_, reading)| match reading {
        ParsedLine::Gone(line, text) => Some((without_build_metadata(&line.version), text)),
        _ => None,
    });
    gone.collect()
}

/// Returns the versions of an index, with their lines.
fn version_lines(text: &str) -> BTreeMap<Version, (Box<IndexLine>, &str)> {
    let versions = Lines::of(text).filter_map(|(_, reading)| match reading {
        ParsedLine::Version(line, text) => {
            Some((without_build_metadata(&line.version), (line, text)))
        }
        _ => None,
    });
    versions.collect()
}

/// Returns all versions that an index mentions.
fn listed_versions(text: &str) -> BTreeSet<Version> {
    let versions = Lines::of(text).filter_map(|(_, reading)| match reading {
        ParsedLine::Version(line, _) => Some(without_build_metadata(&line.version)),
        ParsedLine::Gone(line, _) => Some(without_build_metadata(&line.version)),
        ParsedLine::Unusable(_) | ParsedLine::Broken(_) => None,
    });
    versions.collect()
}

/// Returns the line for a version that the registry dropped without a reason: it is yanked in the
/// copy, so that existing installs keep working and new installs skip it. The first copy run
/// reports it as a failure; later runs find the reason in the line.
fn dropped_line(
    client: &Client,
    line: &IndexLine,
    text: &str,
    copied: &mut MirrorReport,
) -> String {
    if line.yanked_reason.as_deref() == Some(DROPPED_REASON) {
        return text.to_owned();
    }
    let of = Box::new(Release::new(&line.name, &line.version, client.address()));
    let (name, version) = (line.name.clone(), Some(line.version.clone()));
    copied.failed.push(MirrorFailure { name, version, error: RegistryError::DroppedCopy { of } });
    let Ok(mut value) = serde_json::from_str::<serde_json::Value>(text) else {
        return text.to_owned();
    };
    value["yanked"] = true.into();
    value["yanked_reason"] = DROPPED_REASON.into();
    value.to_string()
}

/// Returns an error that concerns one skill only as a value; passes on others.
fn error_of_one_skill(error: RegistryError) -> Result<RegistryError, RegistryError> {
    if matches!(error, RegistryError::Io { .. }) { Err(error) } else { Ok(error) }
}

/// Copies the archive of a version, and the signatures and signed evaluations that its registry has
/// for it. Both are written to the paths of the API, so that clients use the same addresses for a
/// mirror.
async fn copy_files(
    client: &Client,
    folder: &MirrorFolder,
    line: &IndexLine,
    copied: &mut MirrorReport,
) -> Result<(), RegistryError> {
    copy_artifact(client, folder, line, copied).await?;
    let path = |what| format!("api/v1/skills/{}/{}/{what}", line.name, line.version);
    if line.attestations > 0 {
        match client.attestations(&line.name, &line.version, &[]).await {
            Ok(attestations) => {
                let text = serde_json::to_vec(&attestations).unwrap_or_default();
                folder.write(&path("attestations"), &text)?;
            }
            // The skill works without its evaluations.
            Err(error) => {
                let (name, version) = (line.name.clone(), Some(line.version.clone()));
                copied.failed.push(MirrorFailure { name, version, error });
            }
        }
    }
    if line.earned() == Tier::Experimental {
        return Ok(());
    }
    let signatures = client.signatures(&line.name, &line.version).await?;
    let text = serde_json::to_vec(&signatures).unwrap_or_default();
    folder.write(&path("signatures"), &text)
}

async fn copy_artifact(
    client: &Client,
    folder: &MirrorFolder,
    line: &IndexLine,
    copied: &mut MirrorReport,
) -> Result<(), RegistryError> {
    let path = format!("artifacts/{}/{}", line.sha256, line.filename);
    if folder.has(&path, line) {
        return Ok(());
    }
    // Do not fill the cache with a second copy of every archive.
    let bytes = match client.cached_artifact(line)? {
        Some(bytes) => bytes,
        None => client.download_artifact(line).await?,
    };
    let (registry, line) = (client.address(), line.clone());
    let bytes = blocking(move || tree(&registry, &line, &bytes).map(|_| bytes)).await?;
    folder.write(&path, &bytes)?;
    copied.fetched += 1;
    copied.bytes += bytes.len() as u64;
    Ok(())
}

/// A mirror folder that is locked against other programs.
struct MirrorFolder {
    root: PathBuf,
    _busy: File,
}

impl MirrorFolder {
    fn open(root: &Path) -> Result<Self, RegistryError> {
        fs::create_dir_all(root).map_err(RegistryError::io(root))?;
        let path = root.join(LOCK_FILE);
        let busy = File::create(&path).map_err(RegistryError::io(&path))?;
        busy.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => RegistryError::Busy(root.to_owned()),
            TryLockError::Error(error) => RegistryError::io(&path)(error),
        })?;
        let folder = Self { root: root.to_owned(), _busy: busy };
        // Remove incomplete files of a crashed program.
        folder.close()?;
        let partial = folder.root.join(PARTIAL_FILE);
        fs::create_dir_all(&partial).map_err(RegistryError::io(&partial))?;
        Ok(folder)
    }

    fn close(&self) -> Result<(), RegistryError> {
        let partial = self.root.join(PARTIAL_FILE);
        match fs::remove_dir_all(&partial) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(RegistryError::io(&partial)(error))
            }
            _ => Ok(()),
        }
    }

    /// Returns the index text of a skill in the copy; empty if there is none yet.
    fn copy_index(&self, name: &Name) -> Result<String, RegistryError> {
        let path = self.root.join("index/v1").join(name.index_path());
        match fs::read_to_string(&path) {
            Ok(text) => Ok(text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
            Err(error) => Err(RegistryError::io(&path)(error)),
        }
    }

    /// Returns the skills in the copy.
    fn names(&self) -> Result<BTreeSet<Name>, RegistryError> {
        let mut names = BTreeSet::new();
        self.each_index(|text| {
            names.extend(Lines::of(text).find_map(|(_, reading)| match reading {
                ParsedLine::Version(line, _) => Some(line.name),
                _ => None,
            }));
        })?;
        Ok(names)
    }

    fn each_index(&self, mut look: impl FnMut(&str)) -> Result<(), RegistryError> {
        let mut open = vec![self.root.join("index/v1")];
        while let Some(folder) = open.pop() {
            let entries = match fs::read_dir(&folder) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                entries => entries.map_err(RegistryError::io(&folder))?,
            };
            for entry in entries {
                let path = entry.map_err(RegistryError::io(&folder))?.path();
                if path.is_dir() {
                    open.push(path);
                } else {
                    look(&fs::read_to_string(&path).unwrap_or_default());
                }
            }
        }
        Ok(())
    }

    /// Removes the archives of versions that were taken down, unless another skill has the same
    /// archive; returns the removed versions.
    fn remove(
        &self,
        gone: Vec<(Name, Version, String)>,
    ) -> Result<Vec<(Name, Version)>, RegistryError> {
        let place = |sha256: &str| self.root.join("artifacts").join(sha256);
        let mut gone: Vec<_> =
            gone.into_iter().filter(|(_, _, sha256)| place(sha256).is_dir()).collect();
        if gone.is_empty() {
            return Ok(Vec::new());
        }
        let mut needed = BTreeSet::new();
        self.each_index(|text| {
            needed.extend(version_lines(text).into_values().map(|(line, _)| line.sha256));
        })?;
        gone.retain(|(_, _, sha256)| !needed.contains(sha256));
        for (_, _, sha256) in &gone {
            match fs::remove_dir_all(place(sha256)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(RegistryError::io(&place(sha256))(error));
                }
                _ => {}
            }
        }
        gone.sort();
        Ok(gone.into_iter().map(|(name, version, _)| (name, version)).collect())
    }

    /// Whether the copy already has the archive of a version, undamaged.
    fn has(&self, path: &str, line: &IndexLine) -> bool {
        let path = self.root.join(path);
        fs::metadata(&path).is_ok_and(|found| found.len() == line.size)
            && fs::read(&path).is_ok_and(|bytes| sha256_hex(&bytes) == line.sha256)
    }

    /// Writes a file atomically, readable by everyone.
    fn write(&self, path: &str, bytes: &[u8]) -> Result<(), RegistryError> {
        let target = self.root.join(path);
        let write = || -> io::Result<()> {
            fs::create_dir_all(target.parent().unwrap_or(&self.root))?;
            let mut file = tempfile::Builder::new()
                .permissions(fs::Permissions::from_mode(0o644))
                .tempfile_in(self.root.join(PARTIAL_FILE))?;
            file.write_all(bytes)?;
            // The umask of the process may have removed permissions that web servers need.
            file.as_file().set_permissions(fs::Permissions::from_mode(0o644))?;
            file.persist(&target)?;
            Ok(())
        };
        write().map_err(RegistryError::io(&target))
    }
}
