//! Records the digest of every copied version, to detect later changes.

use std::{collections::BTreeMap, fmt::Write as _, fs, io};

use semver::Version;

use super::{
    super::wire::IndexLine, Client, MirrorFolder, Name, RegistryError, Release,
    without_build_metadata,
};

/// The folder with the records, beside the copy.
const RECORD_FOLDER: &str = ".savoir-seen";

/// The recorded digests of a skill's versions.
pub(super) struct CopiedVersions {
    /// The digest of the archive, and the integrity of its files.
    versions: BTreeMap<Version, (String, String)>,
}

impl CopiedVersions {
    /// Reads the record of a skill. Copies of older versions have no record; then the index of the
    /// copy is used.
    pub(super) fn read<'a>(
        folder: &MirrorFolder,
        name: &Name,
        older: impl Iterator<Item = &'a IndexLine>,
    ) -> Result<Self, RegistryError> {
        let path = folder.root.join(place(name));
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            text => text.map_err(RegistryError::io(&path))?,
        };
        let mut memory = Self { versions: BTreeMap::new() };
        for line in older {
            memory.keep(line);
        }
        // If a version is recorded twice, the first record counts.
        for line in text.lines() {
            let mut words = line.split(' ');
            let (version, sha256, integrity) = (words.next(), words.next(), words.next());
            let version = version.and_then(|version| version.parse().ok());
            let version = version.as_ref().map(without_build_metadata);
            if let (Some(version), Some(sha256), Some(integrity)) = (version, sha256, integrity) {
                memory.versions.insert(version, (sha256.to_owned(), integrity.to_owned()));
            }
        }
        Ok(memory)
    }

    /// Records a version that was copied.
    pub(super) fn keep(&mut self, line: &IndexLine) {
        let bytes = || (line.sha256.clone(), line.integrity.clone());
        self.versions.entry(without_build_metadata(&line.version)).or_insert_with(bytes);
    }

    /// Returns the recorded digest of an archive, if it is safe to use as a path.
    pub(super) fn digest(&self, version: &Version) -> Option<String> {
        let (sha256, _) = self.versions.get(&without_build_metadata(version))?;
        let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        (sha256.len() == 64 && sha256.bytes().all(is_hex)).then(|| sha256.clone())
    }

    /// Returns the error if a version differs from the recorded one.
    pub(super) fn changed_error(
        &self,
        client: &Client,
        found: &IndexLine,
    ) -> Option<RegistryError> {
        let (sha256, integrity) = self.versions.get(&without_build_metadata(&found.version))?;
        if (sha256, integrity) == (&found.sha256, &found.integrity) {
            return None;
        }
        Some(RegistryError::ChangedCopy {
            of: Box::new(Release::new(&found.name, &found.version, client.address())),
            copied: sha256.clone(),
            found: found.sha256.clone(),
        })
    }

    pub(super) fn write(&self, folder: &MirrorFolder, name: &Name) -> Result<(), RegistryError> {
        let mut text = String::new();
        for (version, (sha256, integrity)) in &self.versions {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{version} {sha256} {integrity}");
        }
        folder.write(&place(name), text.as_bytes())
    }
}

/// Returns the path of the record of a skill. The suffixes of namespaces and skills differ, so that
/// they cannot collide.
fn place(name: &Name) -> String {
    format!("{RECORD_FOLDER}/{name}.txt")
}
