//! Waits until written files are on the disk (fsync).
//!
//! Operating systems write files later, and in any order: after a power failure, a file that was
//! renamed to its final path may exist without its bytes. So everything is synced before it is
//! renamed, and renames are synced before the next step.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io,
    os::unix::fs::MetadataExt as _,
    path::Path,
};

/// Up to this number of files and folders, it is faster to sync each one than the whole disk, which
/// includes writes of other programs.
const MAX_SINGLE_SYNCS: usize = 16;

/// Waits until everything below these folders is on disk.
pub(super) fn sync_folders(folders: &[&Path]) -> io::Result<()> {
    let mut few = Vec::new();
    for folder in folders {
        if !collect(folder, &mut few)? {
            return sync_whole_disk(folders);
        }
    }
    few.iter().try_for_each(|path| wait_for(path))
}

/// Waits until one file, or the names in one folder, are on disk.
pub(super) fn wait_for(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Collects a folder and everything below it; returns whether there are few enough to sync each
/// one.
fn collect(folder: &Path, few: &mut Vec<std::path::PathBuf>) -> io::Result<bool> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if few.len() >= MAX_SINGLE_SYNCS || kind.is_dir() && !collect(&entry.path(), few)? {
            return Ok(false);
        }
        // A link has no bytes of its own.
        if kind.is_file() {
            few.push(entry.path());
        }
    }
    few.push(folder.to_owned());
    Ok(few.len() <= MAX_SINGLE_SYNCS)
}

/// Syncs the disks that the folders are on.
fn sync_whole_disk(folders: &[&Path]) -> io::Result<()> {
    let mut disks = BTreeSet::new();
    for folder in folders {
        let folder = File::open(folder)?;
        if disks.insert(folder.metadata()?.dev()) {
            sync_disk(&folder)?;
        }
    }
    Ok(())
}

#[cfg(target_os = "linux")]
fn sync_disk(folder: &File) -> io::Result<()> {
    Ok(rustix::fs::syncfs(folder)?)
}

/// Other systems can only sync all disks at once.
#[cfg(not(target_os = "linux"))]
fn sync_disk(_: &File) -> io::Result<()> {
    rustix::fs::sync();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_files_are_synced_one_by_one() {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir_all(place.path().join("a/b")).unwrap();
        fs::write(place.path().join("a/b/x"), "x").unwrap();
        std::os::unix::fs::symlink("nowhere", place.path().join("link")).unwrap();
        let mut few = Vec::new();
        assert!(collect(place.path(), &mut few).unwrap());
        assert_eq!(few.len(), 4, "a file and three folders");
        sync_folders(&[place.path()]).unwrap();
        for number in 0..MAX_SINGLE_SYNCS {
            fs::write(place.path().join(number.to_string()), "x").unwrap();
        }
        assert!(!collect(place.path(), &mut Vec::new()).unwrap());
        sync_folders(&[place.path(), &place.path().join("a")]).unwrap();
        assert!(sync_folders(&[&place.path().join("missing")]).is_err());
    }
}
