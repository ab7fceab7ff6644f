//! Reads and writes text files that users edit, and reports errors with their position.

use std::{
    fmt, fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use savoir_skill::Position;
use thiserror::Error;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilePosition {
    /// The path of the file, as shown to users.
    pub file: String,
    /// Line and column, both from 1.
    pub position: Position,
}

impl fmt::Display for FilePosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.position.line, self.position.column)
    }
}

/// An error in the content of a file.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{place}: {message}")]
pub struct ContentError {
    pub place: FilePosition,
    pub message: String,
    pub hint: Option<String>,
}

impl ContentError {
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds a hint, if there is one.
    pub(crate) fn maybe_hint(mut self, hint: Option<String>) -> Self {
        self.hint = hint;
        self
    }
}

/// Why a file could not be read or written.
#[derive(Debug, Error)]
pub enum FileError {
    /// The operating system returned an error.
    #[error("{}: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
    /// The file is too large.
    #[error("{} has more than {limit} bytes", path.display())]
    TooLarge { path: PathBuf, limit: u64 },
    /// The content is invalid.
    #[error(transparent)]
    Invalid(#[from] ContentError),
}

impl FileError {
    /// A stable code for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Io { .. } => "io",
            Self::TooLarge { .. } => "too_large",
            Self::Invalid(_) => "invalid_file",
        }
    }

    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Invalid(content_error) => content_error.hint.as_deref(),
            _ => None,
        }
    }

    pub(crate) fn io(path: &Path, error: io::Error) -> Self {
        Self::Io { path: path.to_owned(), error }
    }
}

/// A text with the path that is shown to users.
#[derive(Clone, Copy)]
pub(crate) struct Text<'a> {
    pub(crate) file: &'a str,
    pub(crate) text: &'a str,
}

impl Text<'_> {
    pub(crate) fn content_error(self, at: usize, message: impl Into<String>) -> ContentError {
        let place = FilePosition { file: self.file.to_owned(), position: self.position(at) };
        ContentError { place, message: message.into(), hint: None }
    }

    pub(crate) fn position(self, at: usize) -> Position {
        let mut at = at.min(self.text.len());
        while !self.text.is_char_boundary(at) {
            at -= 1;
        }
        let before = &self.text[..at];
        let line_start = before.rfind('\n').map_or(0, |end| end + 1);
        let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
        let column = before[line_start..].trim_start_matches('\u{feff}').chars().count() + 1;
        Position { line, column }
    }
}

impl Text<'_> {
    /// Converts ascending offsets to positions in one pass over the text.
    pub(crate) fn positions(self, places: impl Iterator<Item = usize>) -> Vec<Position> {
        let (mut start, mut line) = (0, 1);
        let position = |at: usize| {
            let lines = self.text.get(start..at).unwrap_or_default();
            line += lines.bytes().filter(|byte| *byte == b'\n').count();
            start += lines.rfind('\n').map_or(0, |end| end + 1);
            // Only this line is scanned again, for the column.
            let rest = Text { text: self.text.get(start..).unwrap_or_default(), ..self };
            Position { line, ..rest.position(at.saturating_sub(start)) }
        };
        places.map(position).collect()
    }
}

/// Reads the text of a file; returns `None` if it does not exist.
pub(crate) fn read(path: &Path, limit: u64) -> Result<Option<String>, FileError> {
    use io::Read as _;
    let file = match open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(FileError::io(path, error)),
    };
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes).map_err(|error| FileError::io(path, error))?;
    if bytes.len() as u64 > limit {
        return Err(FileError::TooLarge { path: path.to_owned(), limit });
    }
    let not_text = |_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8");
    let text = String::from_utf8(bytes).map_err(not_text);
    text.map(Some).map_err(|error| FileError::io(path, error))
}

/// Opens a regular file. A cloned project may contain a pipe instead, from which reading would
/// block forever.
fn open(path: &Path) -> io::Result<fs::File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
    let flags = i32::try_from(flags.bits()).unwrap_or_default();
    let file = fs::OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(io::Error::new(
        io::ErrorKind::InvalidInput,
        "it is not a regular file; put one in its place",
    ))
}

/// Prefix of temporary files, and the length of the random part.
const UNFINISHED: &str = ".savoir-new-";
const UNFINISHED_LENGTH: usize = UNFINISHED.len() + 6;

/// Deletes temporary files of processes that died. The caller must prevent concurrent writes.
pub(crate) fn sweep(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let ours = name.to_string_lossy().starts_with(UNFINISHED);
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        if ours && name.len() == UNFINISHED_LENGTH && is_file {
            // It uses space but does no harm.
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Replaces a file atomically.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), FileError> {
    // If the path is a symlink, replace its target.
    let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty());
    let replace = || -> io::Result<()> {
        let mut builder = tempfile::Builder::new();
        let mut file = builder.prefix(UNFINISHED).tempfile_in(folder.unwrap_or(Path::new(".")))?;
        file.write_all(text.as_bytes())?;
        file.as_file().set_permissions(mode_of(&target))?;
        file.as_file().sync_all()?;
        file.persist(&target)?;
        Ok(())
    };
    // Only the kind of the error: its message would contain the path of a temporary file.
    replace().map_err(|error| FileError::io(path, error.kind().into()))
}

/// Returns the permissions of the existing file; a new file is readable by everyone.
fn mode_of(path: &Path) -> fs::Permissions {
    use std::os::unix::fs::PermissionsExt as _;
    let old = fs::metadata(path).map(|metadata| metadata.permissions());
    old.unwrap_or_else(|_| fs::Permissions::from_mode(0o644))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters() {
        let text = Text { file: "x", text: "ä\nöü = 1\r\nz" };
        let shown = |at| text.content_error(at, "m").place.to_string();
        assert_eq!(shown(0), "x:1:1");
        assert_eq!(shown(3), "x:2:1");
        assert_eq!(shown(4), "x:2:1", "inside of a letter");
        assert_eq!(shown(7), "x:2:3");
        assert_eq!(shown(99), "x:3:2");
    }

    #[test]
    fn temporary_files_are_removed() {
        let place = tempfile::tempdir().unwrap();
        let mut builder = tempfile::Builder::new();
        let left = builder.prefix(UNFINISHED).tempfile_in(place.path()).unwrap();
        let left = left.into_temp_path().keep().unwrap();
        for name in [".savoir-new-notes.md", ".savoir-config", "abcdef"] {
            fs::write(place.path().join(name), "").unwrap();
        }
        fs::create_dir(place.path().join(".savoir-new-folder")).unwrap();
        sweep(place.path());
        assert!(!left.exists());
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 4, "these are not ours");
    }

    #[test]
    fn only_regular_files_are_read() {
        use std::os::unix::fs::symlink;
        let place = tempfile::tempdir().unwrap();
        let pipe = place.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        let device = place.path().join("device");
        symlink("/dev/zero", &device).unwrap();
        for path in [pipe.as_path(), &device, place.path()] {
            let error = read(path, 9).unwrap_err();
            assert!(error.to_string().ends_with("put one in its place"), "{error}");
        }
    }

    #[test]
    fn many_positions_equal_single_ones() {
        let text = Text { file: "x", text: "\u{feff}ä = 1\nöü = 1\r\n\n  z = 2" };
        let places = [3, 3, 9, 14, 18, 22];
        let expected: Vec<Position> = places.iter().map(|at| text.position(*at)).collect();
        assert_eq!(text.positions(places.into_iter()), expected);
    }

    #[test]
    fn write_replaces_atomically() {
        use std::os::unix::fs::{PermissionsExt as _, symlink};
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("file");
        assert_eq!(read(&path, 9).unwrap(), None);
        write(&path, "one").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o644);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let link = place.path().join("link");
        symlink("file", &link).unwrap();
        write(&link, "two").unwrap();
        assert!(link.is_symlink());
        assert_eq!(read(&path, 3).unwrap().unwrap(), "two");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(read(&path, 2).unwrap_err().code(), "too_large");
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 2, "nothing is left behind");
    }
}
