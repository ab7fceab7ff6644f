//! Walks a tree by open file descriptors: no symlink is followed, no path is too long, and folders
//! without read permission are opened by changing their mode for the time of the walk.

use std::{
    ffi::{CStr, OsStr, OsString},
    os::{fd::OwnedFd, unix::ffi::OsStrExt as _},
    path::PathBuf,
};

use rustix::{
    fs::{
        AtFlags, FileType, Mode, OFlags, RenameFlags, Stat, fchmod, fstat, openat, renameat_with,
        statat,
    },
    io::Errno,
};

/// Number of names that are tried for a file that is renamed. All but the first are random.
const MAX_NAMES: usize = 100;
/// Bytes of a directory listing that are read at once.
#[cfg(target_os = "linux")]
const MAX_READ: usize = 16 * 1024;
/// Maximum length of a file name in bytes.
const MAX_NAME: usize = 255;
/// The mode bits with which the owner of a folder can list and enter it.
const OPEN: Mode = Mode::RUSR.union(Mode::XUSR);
const FOLDER: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// An open folder of the walk.
#[derive(Debug)]
pub(super) struct Folder {
    fd: OwnedFd,
    /// The path, relative to the root of the walk.
    pub(super) path: PathBuf,
    /// The original mode, restored on drop, if it was changed to open the folder.
    closed: Option<Mode>,
}

/// One entry of a folder.
#[derive(Debug)]
pub(super) struct FolderEntry {
    pub(super) name: OsString,
    pub(super) kind: FileType,
}

impl Folder {
    /// Starts a walk at an open folder.
    pub(super) fn root(fd: OwnedFd) -> Result<Self, Errno> {
        Self::new(fd, PathBuf::new())
    }

    fn new(fd: OwnedFd, path: PathBuf) -> Result<Self, Errno> {
        let mode = mode(&fstat(&fd)?);
        // If `fchmod` fails, reading fails, too, and reports the error.
        let is_opened = !mode.contains(OPEN) && fchmod(&fd, mode | OPEN).is_ok();
        Ok(Self { fd, path, closed: is_opened.then_some(mode) })
    }

    /// Opens a folder inside this one.
    pub(super) fn open(&self, name: &OsStr) -> Result<Self, Errno> {
        let path = self.path.join(name);
        match openat(&self.fd, name, FOLDER, Mode::empty()) {
            Err(Errno::ACCESS) => {
                let (fd, closed) = open_closed(&self.fd, name)?;
                Ok(Self { fd, path, closed: Some(closed) })
            }
            opened => Self::new(opened?, path),
        }
    }

    pub(super) fn entries(&self) -> Result<Vec<FolderEntry>, Errno> {
        let mut entries = Vec::new();
        each_entry(&self.fd, |name, kind| {
            let name = OsStr::from_bytes(name.to_bytes());
            if name == "." || name == ".." {
                return;
            }
            let kind = match kind {
                // Some file systems do not return the type.
                FileType::Unknown => match self.stat(name) {
                    Ok(about) => FileType::from_raw_mode(about.st_mode),
                    Err(_) => return,
                },
                kind => kind,
            };
            entries.push(FolderEntry { name: name.to_owned(), kind });
        })?;
        Ok(entries)
    }

    /// The metadata of the folder.
    pub(super) fn about(&self) -> Result<Stat, Errno> {
        fstat(&self.fd)
    }

    /// The metadata of an entry. Symlinks are not followed.
    pub(super) fn stat(&self, name: &OsStr) -> Result<Stat, Errno> {
        statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW)
    }

    /// Renames an entry, within this folder or into `to`, and returns the new name. Most of the
    /// tried names are random, so that no program can create all of them beforehand.
    pub(super) fn move_aside(&self, name: &OsStr, to: &Self) -> Result<OsString, Errno> {
        for number in 0..MAX_NAMES {
            let new = other_name(name, number);
            let attempt = || renameat_with(&self.fd, name, &to.fd, &new, RenameFlags::NOREPLACE);
            let done = match attempt() {
                // The program that made the folders may have removed its own write permission.
                Err(Errno::ACCESS) => {
                    for folder in [self, to] {
                        fchmod(&folder.fd, mode(&folder.about()?) | Mode::RWXU)?;
                    }
                    attempt()
                }
                done => done,
            };
            match done {
                Ok(()) => return Ok(new),
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error),
            }
        }
        Err(Errno::EXIST)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Some(mode) = self.closed {
            // If this fails, the folder only remains readable for its owner.
            let _ = fchmod(&self.fd, mode);
        }
    }
}

/// Calls `each` for every entry, starting at the first. Uses the open descriptor and an
/// uninitialized buffer: opening the folder again and zeroing a buffer would take longer than
/// reading, and there are many folders.
#[cfg(target_os = "linux")]
fn each_entry(folder: &OwnedFd, mut each: impl FnMut(&CStr, FileType)) -> Result<(), Errno> {
    // The descriptor of the workspace is read several times, so it must be rewound.
    rustix::fs::seek(folder, rustix::fs::SeekFrom::Start(0))?;
    let mut buffer = Vec::with_capacity(MAX_READ);
    let mut entries = rustix::fs::RawDir::new(folder, buffer.spare_capacity_mut());
    while let Some(entry) = entries.next() {
        let entry = entry?;
        each(entry.file_name(), entry.file_type());
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn each_entry(folder: &OwnedFd, mut each: impl FnMut(&CStr, FileType)) -> Result<(), Errno> {
    for entry in rustix::fs::Dir::read_from(folder)? {
        let entry = entry?;
        each(entry.file_name(), entry.file_type());
    }
    Ok(())
}

fn other_name(name: &OsStr, number: usize) -> OsString {
    let mut end = OsString::from(".held");
    if number > 0 {
        end.push(format!("-{}", uuid::Uuid::new_v4().simple()));
    }
    let begin = if name.len() + end.len() > MAX_NAME { OsStr::new("long-name") } else { name };
    let mut new = begin.to_owned();
    new.push(end);
    new
}

fn mode(about: &Stat) -> Mode {
    Mode::from_raw_mode(about.st_mode & 0o7777)
}

/// Opens a folder that even its owner may not read; returns it with its original mode.
#[cfg(target_os = "linux")]
fn open_closed(above: &OwnedFd, name: &OsStr) -> Result<(OwnedFd, Mode), Errno> {
    use std::os::fd::AsRawFd as _;

    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let handle = openat(above, name, flags, Mode::empty())?;
    let closed = mode(&fstat(&handle)?);
    // This path names the opened folder, even if its name leads elsewhere by now.
    let way = format!("/proc/self/fd/{}", handle.as_raw_fd());
    rustix::fs::chmod(way.as_str(), closed | OPEN)?;
    Ok((openat(&handle, ".", FOLDER, Mode::empty())?, closed))
}

#[cfg(not(target_os = "linux"))]
fn open_closed(_: &OwnedFd, _: &OsStr) -> Result<(OwnedFd, Mode), Errno> {
    Err(Errno::ACCESS)
}
