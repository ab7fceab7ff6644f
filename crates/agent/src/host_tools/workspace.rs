//! Opens paths inside the workspace and rejects paths that lead out of it.
//!
//! Paths are walked part by part from the open folder, and no link is followed. So replacing a
//! folder by a link while a path is opened does not help an attacker.

use std::{
    fs::File,
    io::{self, Read as _, Write as _},
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, Dir, FileType, Mode, OFlags, mkdirat, openat, renameat, statat, unlinkat},
    io::Errno,
};
use savoir_engine::protection::Root;

use super::ToolFailure;
use crate::library::MAX_SERVED_FILE_BYTES;

/// Maximum number of entries of a folder that are listed.
const MAX_ENTRIES: usize = 1000;
/// Maximum size of a file that is written, in bytes.
const MAX_WRITTEN: usize = 4 << 20;
const FOLDER: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// The open folder of the workspace.
#[derive(Debug)]
pub(super) struct Workspace {
    root: Root,
}

/// A path inside the workspace, split into its parts.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Inside(Vec<String>);

impl Inside {
    /// The path with `/` between the parts.
    pub(super) fn text(&self) -> String {
        self.0.join("/")
    }

    pub(super) fn below(&self, root: &Path) -> PathBuf {
        self.0.iter().fold(root.to_owned(), |path, part| path.join(part))
    }
}

/// What to do if a parent folder does not exist.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Missing {
    Fails,
    IsMade,
}

impl Workspace {
    /// Opens a folder, by a path without links.
    pub(super) fn open(root: PathBuf) -> io::Result<Self> {
        Ok(Self { root: Root::new(root)? })
    }

    pub(super) fn root(&self) -> &Path {
        self.root.path()
    }

    /// The open workspace folder, to be searched.
    pub(super) fn folder_to_look_at(&self) -> &Root {
        &self.root
    }

    /// Parses a path that a model writes: relative, or absolute and inside the workspace.
    pub(super) fn inside(&self, path: &str) -> Result<Inside, ToolFailure> {
        let outside = || {
            let message =
                format!("`{path}` is not inside the workspace; write a path relative to it");
            ("path-outside-workspace", message)
        };
        let own = self.root().to_str().and_then(|root| path.strip_prefix(root));
        let relative =
            match own.map(|rest| rest.strip_prefix('/').or(rest.is_empty().then_some(""))) {
                Some(Some(rest)) => rest,
                _ if path.starts_with(['/', '~']) => return Err(outside()),
                _ => path,
            };
        let mut parts = Vec::new();
        for part in relative.split('/') {
            match part {
                "" | "." => {}
                ".." => return Err(outside()),
                part if part.contains(['\0', '\\']) || part.len() > 255 => return Err(outside()),
                part => parts.push(part.to_owned()),
            }
        }
        Ok(Inside(parts))
    }

    fn folder(&self, parts: &[String], missing: Missing) -> Result<OwnedFd, ToolFailure> {
        let mut folder =
            openat(self.root.folder(), ".", FOLDER, Mode::empty()).map_err(|e| failed(".", e))?;
        for (at, part) in parts.iter().enumerate() {
            let open = || openat(&folder, part.as_str(), FOLDER, Mode::empty());
            let opened = match open() {
                Err(Errno::NOENT) if missing == Missing::IsMade => {
                    match mkdirat(&folder, part.as_str(), Mode::from_raw_mode(0o777)) {
                        Ok(()) | Err(Errno::EXIST) => open(),
                        Err(error) => Err(error),
                    }
                }
                opened => opened,
            };
            folder = opened.map_err(|error| failed(&parts[..=at].join("/"), error))?;
        }
        Ok(folder)
    }

    /// Opens the parent folder of a file; returns it with the file's name.
    fn place<'a>(
        &self,
        path: &'a Inside,
        missing: Missing,
    ) -> Result<(OwnedFd, &'a str), ToolFailure> {
        let Some((name, above)) = path.0.split_last() else {
            return Err(("no-such-file", "the workspace itself is a folder".to_owned()));
        };
        Ok((self.folder(above, missing)?, name))
    }

    /// Reads a text file.
    pub(super) fn read(&self, path: &Inside) -> Result<String, ToolFailure> {
        let shown = path.text();
        let (folder, name) = self.place(path, Missing::Fails)?;
        // Opening a pipe without this flag would wait for a writer.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = openat(&folder, name, flags, Mode::empty()).map_err(|e| failed(&shown, e))?;
        let file = File::from(file);
        let known = file.metadata().map_err(|error| unreadable(&shown, &error))?;
        if !known.is_file() {
            return Err((
                "no-such-file",
                format!("`{shown}` is not a file; list it with list_dir"),
            ));
        }
        let mut bytes = Vec::new();
        file.take(MAX_SERVED_FILE_BYTES + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| unreadable(&shown, &error))?;
        if bytes.len() as u64 > MAX_SERVED_FILE_BYTES {
            let size = known.len();
            let message =
                format!("`{shown}` has {size} bytes, at most {MAX_SERVED_FILE_BYTES} can be read");
            return Err(("file-too-large", message));
        }
        String::from_utf8(bytes)
            .map_err(|_| ("file-not-text", format!("`{shown}` is not UTF-8 text")))
    }

    /// Writes a text file under another name, then renames it, so that readers see the old text or
    /// the new one.
    pub(super) fn write(&self, path: &Inside, text: &str) -> Result<(), ToolFailure> {
        let shown = path.text();
        fits(text)?;
        let (folder, name) = self.place(path, Missing::IsMade)?;
        let mode = match statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(known) if FileType::from_raw_mode(known.st_mode).is_file() => {
                Mode::from_raw_mode(known.st_mode & 0o777)
            }
            Ok(_) => {
                return Err((
                    "no-such-file",
                    format!("`{shown}` is there, and is not a plain file"),
                ));
            }
            Err(Errno::NOENT) => Mode::from_raw_mode(0o666),
            Err(error) => return Err(failed(&shown, error)),
        };
        let new = format!(".savoir-{}", uuid::Uuid::now_v7().simple());
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&folder, &new, flags, mode).map_err(|error| failed(&shown, error))?;
        let written = File::from(file).write_all(text.as_bytes());
        let moved = written.and_then(|()| Ok(renameat(&folder, &new, &folder, name)?));
        moved.map_err(|error| {
            // The temporary file is useless after an error.
            let _ = unlinkat(&folder, &new, AtFlags::empty());
            unreadable(&shown, &error)
        })
    }

    /// Lists the names in a folder: folders end with `/`, links with `@`.
    pub(super) fn list(&self, path: &Inside) -> Result<Vec<String>, ToolFailure> {
        let shown = path.text();
        let folder = self.folder(&path.0, Missing::Fails)?;
        let entries = Dir::read_from(&folder).map_err(|error| failed(&shown, error))?;
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|error| failed(&shown, error))?;
            let name = entry.file_name().to_string_lossy();
            let mark = match entry.file_type() {
                FileType::Directory => "/",
                FileType::Symlink => "@",
                _ => "",
            };
            if name != "." && name != ".." {
                names.push(format!("{name}{mark}"));
            }
        }
        names.sort();
        if names.len() > MAX_ENTRIES {
            let more = names.len() - MAX_ENTRIES;
            names.truncate(MAX_ENTRIES);
            names.push(format!("[{more} more]"));
        }
        Ok(names)
    }
}

/// Checks that a text is short enough to be written.
pub(super) fn fits(text: &str) -> Result<(), ToolFailure> {
    if text.len() > MAX_WRITTEN {
        let message =
            format!("the text has {} bytes, at most {MAX_WRITTEN} are written", text.len());
        return Err(("file-too-large", message));
    }
    Ok(())
}

fn failed(path: &str, error: Errno) -> ToolFailure {
    match error {
        Errno::NOENT => ("no-such-file", format!("there is no `{path}` in the workspace")),
        Errno::LOOP | Errno::NOTDIR => {
            let message = format!("`{path}` is a link, or is not a folder; links are not followed");
            ("link-not-followed", message)
        }
        error => unreadable(path, &error.into()),
    }
}

fn unreadable(path: &str, error: &io::Error) -> ToolFailure {
    ("file-failed", format!("`{path}`: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_paths_are_rejected_before_opening() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let workspace = Workspace::open(root.clone()).unwrap();
        let text = |path: &str| workspace.inside(path).map(|inside| inside.text());
        assert_eq!(text("a/./b//c/").unwrap(), "a/b/c");
        assert_eq!(text(".").unwrap(), "");
        let shown = root.display();
        assert_eq!(text(&format!("{shown}/a")).unwrap(), "a");
        assert_eq!(text(&shown.to_string()).unwrap(), "");
        for path in [format!("{shown}x/a"), format!("{shown}/../a"), "~".to_owned(), "/".to_owned()]
        {
            assert_eq!(text(&path).unwrap_err().0, "path-outside-workspace", "{path}");
        }
    }
}
