//! Open folders, by which a tree is walked: no link is followed, no path is too long, and what its maker
//! closed can be looked into.

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

/// Names that are tried for something that is put aside. All but the first are made by chance.
const MAX_NAMES: usize = 100;
/// Bytes of a folder that are read at once.
#[cfg(target_os = "linux")]
const MAX_READ: usize = 16 * 1024;
/// Bytes of a name.
const MAX_NAME: usize = 255;
/// Who owns a folder can list it and go through it.
const OPEN: Mode = Mode::RUSR.union(Mode::XUSR);
const FOLDER: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// A folder that is looked through.
#[derive(Debug)]
pub(super) struct Folder {
    fd: OwnedFd,
    /// Below the root of the walk.
    pub(super) path: PathBuf,
    /// The mode that it gets back.
    closed: Option<Mode>,
}

/// Something in a folder.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) name: OsString,
    pub(super) kind: FileType,
}

impl Folder {
    /// The root of a walk.
    pub(super) fn root(fd: OwnedFd) -> Result<Self, Errno> {
        Self::new(fd, PathBuf::new())
    }

    fn new(fd: OwnedFd, path: PathBuf) -> Result<Self, Errno> {
        let mode = mode(&fstat(&fd)?);
        // Where this fails, reading fails, too.
        let is_opened = !mode.contains(OPEN) && fchmod(&fd, mode | OPEN).is_ok();
        Ok(Self { fd, path, closed: is_opened.then_some(mode) })
    }

    /// A folder in it.
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

    pub(super) fn entries(&self) -> Result<Vec<Entry>, Errno> {
        let mut entries = Vec::new();
        each_entry(&self.fd, |name, kind| {
            let name = OsStr::from_bytes(name.to_bytes());
            if name == "." || name == ".." {
                return;
            }
            let kind = match kind {
                // Some disks do not tell.
                FileType::Unknown => match self.stat(name) {
                    Ok(about) => FileType::from_raw_mode(about.st_mode),
                    Err(_) => return,
                },
                kind => kind,
            };
            entries.push(Entry { name: name.to_owned(), kind });
        })?;
        Ok(entries)
    }

    /// What is known of the folder.
    pub(super) fn about(&self) -> Result<Stat, Errno> {
        fstat(&self.fd)
    }

    /// What is known of something in it, be it a link.
    pub(super) fn stat(&self, name: &OsStr) -> Result<Stat, Errno> {
        statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW)
    }

    /// Gives something in it another name, in a folder that may be the same. Nobody can take all of the
    /// names before.
    pub(super) fn put_aside(&self, name: &OsStr, to: &Self) -> Result<OsString, Errno> {
        for number in 0..MAX_NAMES {
            let new = other_name(name, number);
            let attempt = || renameat_with(&self.fd, name, &to.fd, &new, RenameFlags::NOREPLACE);
            let done = match attempt() {
                // Whoever made the folders may have closed them.
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
            // It stays open to its owner at worst.
            let _ = fchmod(&self.fd, mode);
        }
    }
}

/// Reads a folder, from its beginning. To open it once more for that, and fill a buffer with zeros, takes
/// longer than the reading, and there are many.
#[cfg(target_os = "linux")]
fn each_entry(folder: &OwnedFd, mut each: impl FnMut(&CStr, FileType)) -> Result<(), Errno> {
    // The workspace itself is read again and again.
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

/// Opens a folder that even its owner may not read, with the mode that it had.
#[cfg(target_os = "linux")]
fn open_closed(above: &OwnedFd, name: &OsStr) -> Result<(OwnedFd, Mode), Errno> {
    use std::os::fd::AsRawFd as _;

    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let handle = openat(above, name, flags, Mode::empty())?;
    let closed = mode(&fstat(&handle)?);
    // The way to this folder and no other, whatever its name leads to by now.
    let way = format!("/proc/self/fd/{}", handle.as_raw_fd());
    rustix::fs::chmod(way.as_str(), closed | OPEN)?;
    Ok((openat(&handle, ".", FOLDER, Mode::empty())?, closed))
}

#[cfg(not(target_os = "linux"))]
fn open_closed(_: &OwnedFd, _: &OsStr) -> Result<(OwnedFd, Mode), Errno> {
    Err(Errno::ACCESS)
}
