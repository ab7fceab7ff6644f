//! Lists and reads the files of skills, for MCP clients that copy whole skills.

use std::{fs, path::Path};

use savoir_skill::{Folder, folder::is_skill_file};

use super::{FolderLibrary, LibraryError, MAX_SERVED_FILE_BYTES};

impl FolderLibrary {
    /// Returns the folder of a skill.
    pub fn path(&self, name: &str) -> Option<&Path> {
        self.skills.get(name).map(std::path::PathBuf::as_path)
    }

    /// Lists the paths and sizes of all files of a skill, including SKILL.md. Symlinks are left out.
    pub fn list_files(&self, name: &str) -> Result<Vec<(String, u64)>, LibraryError> {
        let folder = self.folder_for_models(name)?;
        let files = folder.files().iter().filter(|file| !file.link);
        let sized = files.map(|file| {
            let size = fs::symlink_metadata(folder.root().join(&file.path))?.len();
            Ok((file.path.clone(), size))
        });
        sized.collect::<std::io::Result<_>>().map_err(|error| broken_skill_error(name, &error))
    }

    /// Reads a file of a skill that has at most `max_bytes`.
    pub fn read_bytes(
        &self,
        name: &str,
        path: &str,
        max_bytes: usize,
    ) -> Result<Vec<u8>, LibraryError> {
        let folder = self.folder_for_models(name)?;
        if !folder.files().iter().any(|file| file.path == path && !file.link) {
            return Err(LibraryError::NoFile { name: name.to_owned(), path: path.to_owned() });
        }
        folder.read_up_to(path, max_bytes).map_err(|error| broken_skill_error(name, &error))
    }
}

/// Lists the files beside SKILL.md that a model can read: text files that are not too large.
pub(super) fn list_text_files(folder: &Folder) -> Vec<String> {
    let is_text = |path: &str| {
        let metadata = fs::metadata(folder.root().join(path));
        metadata.is_ok_and(|metadata| metadata.len() <= MAX_SERVED_FILE_BYTES)
            && folder
                .read_up_to(path, MAX_SERVED_FILE_BYTES as usize)
                .is_ok_and(|bytes| !bytes.contains(&0) && std::str::from_utf8(&bytes).is_ok())
    };
    let files = folder.files().iter().filter(|file| !file.link && !is_skill_file(&file.path));
    files.filter(|file| is_text(&file.path)).map(|file| file.path.clone()).collect()
}

/// The error for a symlink, which is not followed.
pub(super) fn link_error(folder: &Folder, path: &str) -> LibraryError {
    let root = folder.root().canonicalize();
    let target = folder.root().join(path).canonicalize();
    let inside = root.is_ok_and(|root| target.is_ok_and(|target| target.starts_with(root)));
    LibraryError::Link { path: path.to_owned(), outside: !inside }
}

fn broken_skill_error(name: &str, error: &std::io::Error) -> LibraryError {
    LibraryError::Broken { name: name.to_owned(), reason: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_neither_listed_nor_read() {
        let dir = tempfile::tempdir().unwrap();
        let skill = dir.path().join("good");
        fs::create_dir_all(skill.join("scripts")).unwrap();
        fs::write(skill.join("SKILL.md"), "---\nname: good\ndescription: x\n---\nx\n").unwrap();
        fs::write(skill.join("scripts/a.sh"), [0xff, 0x00]).unwrap();
        fs::write(dir.path().join("secret"), "secret").unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink(dir.path().join("secret"), skill.join("link")).unwrap();
        let skills = [("good".to_owned(), skill.clone())];
        let folders = FolderLibrary::new(skills, None, dir.path().join("drafts"));
        let files = folders.list_files("good").unwrap();
        assert_eq!(files, [("SKILL.md".to_owned(), 36), ("scripts/a.sh".to_owned(), 2)]);
        assert_eq!(folders.read_bytes("good", "scripts/a.sh", 2).unwrap(), [0xff, 0x00]);
        assert_eq!(
            folders.read_bytes("good", "scripts/a.sh", 1).unwrap_err().code(),
            "broken-skill"
        );
        for path in ["link", "../secret", "scripts", ""] {
            let error = folders.read_bytes("good", path, 9).unwrap_err();
            assert_eq!(error.code(), "no-such-file", "{path}");
        }
        assert_eq!(folders.list_files("bad").unwrap_err().code(), "unknown-skill");
    }
}
