//! The files of skills in folders, as they are, for whoever hands whole skills on.

use std::{fs, path::Path};

use savoir_skill::Folder;

use super::{CalledBy, Folders, LibraryError};

impl Folders {
    /// Where a skill is.
    pub fn place(&self, name: &str) -> Option<&Path> {
        self.skills.get(name).map(std::path::PathBuf::as_path)
    }

    /// The paths of all files of a skill, its SKILL.md among them, with their sizes. Links are left
    /// out: they are not followed.
    pub fn files(&self, name: &str) -> Result<Vec<(String, u64)>, LibraryError> {
        let folder = self.whole(name)?;
        let files = folder.files().iter().filter(|file| !file.link);
        let sized = files.map(|file| {
            let size = fs::symlink_metadata(folder.root().join(&file.path))?.len();
            Ok((file.path.clone(), size))
        });
        sized.collect::<std::io::Result<_>>().map_err(|error| broken(name, &error))
    }

    /// The bytes of a file of a skill.
    pub fn bytes(&self, name: &str, path: &str, most: usize) -> Result<Vec<u8>, LibraryError> {
        let folder = self.whole(name)?;
        if !folder.files().iter().any(|file| file.path == path && !file.link) {
            return Err(LibraryError::NoFile { name: name.to_owned(), path: path.to_owned() });
        }
        folder.read_up_to(path, most).map_err(|error| broken(name, &error))
    }

    /// What is not offered is not handed on either.
    fn whole(&self, name: &str) -> Result<Folder, LibraryError> {
        let place = self.folder(name)?;
        Self::opened(name, place, CalledBy::Model)?;
        Folder::open(place).map_err(|error| broken(name, &error))
    }
}

fn broken(name: &str, error: &std::io::Error) -> LibraryError {
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
        let place = [("good".to_owned(), skill.clone())];
        let folders = Folders::new(place, None, dir.path().join("drafts"));
        let files = folders.files("good").unwrap();
        assert_eq!(files, [("SKILL.md".to_owned(), 36), ("scripts/a.sh".to_owned(), 2)]);
        assert_eq!(folders.bytes("good", "scripts/a.sh", 2).unwrap(), [0xff, 0x00]);
        assert_eq!(folders.bytes("good", "scripts/a.sh", 1).unwrap_err().code(), "broken-skill");
        for path in ["link", "../secret", "scripts", ""] {
            let error = folders.bytes("good", path, 9).unwrap_err();
            assert_eq!(error.code(), "no-such-file", "{path}");
        }
        assert_eq!(folders.files("bad").unwrap_err().code(), "unknown-skill");
    }
}
