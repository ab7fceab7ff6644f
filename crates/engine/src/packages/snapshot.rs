//! Checks whether the files of an environment are still those that were installed.
//!
//! An environment can have thousands of files and is checked before every run, so file contents are
//! not read: changing a file changes its ctime, which no program can set.

use std::{
    fs, io,
    os::unix::{ffi::OsStrExt as _, fs::MetadataExt as _},
    path::{Path, PathBuf},
};

use savoir_skill::digest::hex;
use sha2::{Digest as _, Sha256};

/// A digest over names, sizes, times and modes of everything below a folder, and over the targets
/// of symlinks. The folder itself may be renamed, and the file `skipped` in it is left out.
pub(crate) fn of(root: &Path, skipped: &str) -> io::Result<String> {
    let mut hash = Sha256::new();
    let skipped = root.join(skipped);
    let mut line = Vec::new();
    walk(root, &mut |path, metadata| {
        if *path == skipped {
            return Ok(());
        }
        line.clear();
        line.extend(metadata.mode().to_le_bytes());
        // The times of folders change when a file is created and removed again, so they are left
        // out.
        if !metadata.is_dir() {
            line.extend(metadata.len().to_le_bytes());
            for number in
                [metadata.mtime(), metadata.mtime_nsec(), metadata.ctime(), metadata.ctime_nsec()]
            {
                line.extend(number.to_le_bytes());
            }
        }
        // Neither a path nor a symlink target contains a zero byte, so it separates the fields.
        line.extend(path.as_os_str().as_bytes().get(root.as_os_str().len()..).unwrap_or_default());
        line.push(0);
        if metadata.is_symlink() {
            line.extend(fs::read_link(path)?.as_os_str().as_bytes());
            line.push(0);
        }
        hash.update(&line);
        Ok(())
    })?;
    Ok(hex(&hash.finalize()))
}

/// The first symlink that leads out of a folder.
pub(crate) fn link_out(root: &Path) -> io::Result<Option<PathBuf>> {
    let root = root.canonicalize()?;
    let mut found = None;
    walk(&root, &mut |path, metadata| {
        let is_inside = || path.canonicalize().is_ok_and(|real| real.starts_with(&root));
        if found.is_none() && metadata.is_symlink() && !is_inside() {
            found = Some(path.to_owned());
        }
        Ok(())
    })?;
    Ok(found)
}

type Visit<'a> = dyn FnMut(&PathBuf, &fs::Metadata) -> io::Result<()> + 'a;

/// Visits everything below a folder, sorted by name. Symlinks are not followed.
fn walk(folder: &Path, visit: &mut Visit<'_>) -> io::Result<()> {
    let mut entries = fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_cached_key(fs::DirEntry::file_name);
    for entry in entries {
        // `DirEntry::metadata` does not follow symlinks.
        let metadata = entry.metadata()?;
        let path = entry.path();
        visit(&path, &metadata)?;
        if metadata.is_dir() {
            walk(&path, visit)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn every_change_is_noticed_and_a_rename_of_the_folder_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("a");
        fs::create_dir_all(root.join("deep")).unwrap();
        let file = root.join("deep/file");
        fs::write(&file, "one").unwrap();
        symlink("file", root.join("deep/link")).unwrap();
        let first = of(&root, "record").unwrap();
        fs::write(root.join("record"), "x").unwrap();
        assert_eq!(of(&root, "record").unwrap(), first);
        let changes: [&dyn Fn(); 5] = [
            &|| {
                // An attacker who hides a change resets the modification time.
                let time = fs::metadata(&file).unwrap().modified().unwrap();
                fs::write(&file, "two").unwrap();
                fs::File::options().append(true).open(&file).unwrap().set_modified(time).unwrap();
            },
            &|| fs::write(root.join("deep/more"), "").unwrap(),
            &|| fs::remove_file(root.join("deep/more")).unwrap(),
            &|| fs::set_permissions(&file, fs::Permissions::from_mode(0o777)).unwrap(),
            &|| {
                fs::remove_file(root.join("deep/link")).unwrap();
                symlink("/etc", root.join("deep/link")).unwrap();
            },
        ];
        let mut before = first.clone();
        for (number, change) in changes.into_iter().enumerate() {
            // The kernel's file times have the resolution of its timer tick.
            std::thread::sleep(std::time::Duration::from_millis(20));
            change();
            let after = of(&root, "record").unwrap();
            assert_ne!(after, before, "change {number}");
            before = after;
        }
        let moved = folder.path().join("b");
        fs::rename(&root, &moved).unwrap();
        assert_eq!(of(&moved, "record").unwrap(), before);
        assert_eq!(
            link_out(&moved).unwrap(),
            Some(moved.canonicalize().unwrap().join("deep/link"))
        );
    }
}
