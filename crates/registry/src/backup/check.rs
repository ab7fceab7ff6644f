use std::{
    collections::BTreeSet,
    fs::File,
    io::{self, BufRead as _, BufReader, Read as _},
    path::{Path, PathBuf},
};

use savoir_skill::digest::{hex, sha256_hex};
use savoir_store::registry::Record;
use sha2::{Digest as _, Sha256};

use super::{
    BLOBS_FOLDER, BackupError, BackupTrailer, END_PATH, FORMAT_NAME, FORMAT_VERSION, RECORDS_PATH,
    blob_path, digests,
    tar::{self, TarHeader},
};

/// Maximum size of a file in a backup, in bytes; the limit for artifacts is a sixth of it.
const MAX_BLOB_BYTES: u64 = 64 << 20;

/// Reads a backup to its end and verifies it.
pub fn check(path: &Path, mut on_progress: impl FnMut(u64)) -> Result<BackupTrailer, BackupError> {
    let mut backup = BackupReader::open(path)?;
    let mut wanted = BTreeSet::new();
    let mut records = backup.records()?;
    while let Some(record) = records.next()? {
        wanted.extend(digests(&record).cloned());
    }
    records.finish()?;
    let mut seen = 0;
    loop {
        match backup.next()? {
            BackupItem::Blob(digest, _) => {
                if !wanted.remove(&digest) {
                    return backup.damaged(format!("no version refers to the blob {digest}"));
                }
                seen += 1;
                on_progress(seen);
            }
            BackupItem::BackupTrailer(end) => {
                if let Some(digest) = wanted.first() {
                    return backup.damaged(format!("the blob {digest} is missing"));
                }
                return Ok(end);
            }
        }
    }
}

/// An item of a backup after the records.
pub(super) enum BackupItem {
    /// The digest of a blob, and its bytes.
    Blob(String, Vec<u8>),
    /// The last file, which matches everything before it.
    BackupTrailer(BackupTrailer),
}

/// A backup that is read from its beginning to its end.
pub(super) struct BackupReader {
    path: PathBuf,
    input: BufReader<File>,
    /// Counts so far.
    found: BackupTrailer,
    last: String,
}

impl BackupReader {
    pub(super) fn open(path: &Path) -> Result<Self, BackupError> {
        let file = File::open(path).map_err(BackupError::io(path))?;
        let input = BufReader::with_capacity(1 << 20, file);
        Ok(Self { path: path.to_owned(), input, found: BackupTrailer::new(), last: String::new() })
    }

    fn damaged<T>(&self, why: impl Into<String>) -> Result<T, BackupError> {
        Err(BackupError::damaged(&self.path, why))
    }

    fn io(&self) -> impl Fn(io::Error) -> BackupError + use<> {
        let path = self.path.clone();
        move |error| match error.kind() {
            io::ErrorKind::UnexpectedEof => BackupError::damaged(&path, "it is truncated"),
            _ => BackupError::io(&path)(error),
        }
    }

    fn header(&mut self) -> Result<TarHeader, BackupError> {
        let read = tar::read_header(&mut self.input).map_err(self.io())?;
        read.or_else(|why| self.damaged(why))
    }

    /// The records, which come first.
    pub(super) fn records(&mut self) -> Result<RecordReader<'_>, BackupError> {
        match self.header() {
            Ok(TarHeader::File(path, size)) if path == RECORDS_PATH => {
                Ok(RecordReader { reader: self, size, left: size, digest: Sha256::new() })
            }
            Err(error @ BackupError::Io { .. }) => Err(error),
            _ => self.damaged("it is not a backup of a registry"),
        }
    }

    pub(super) fn next(&mut self) -> Result<BackupItem, BackupError> {
        let (path, size) = match self.header()? {
            TarHeader::File(path, size) => (path, size),
            TarHeader::BackupTrailer => return self.damaged("its last file is missing"),
        };
        if size > MAX_BLOB_BYTES {
            return self.damaged(format!("`{}` is too large", path.escape_debug()));
        }
        let mut bytes = vec![0; size as usize];
        self.input.read_exact(&mut bytes).map_err(self.io())?;
        if !tar::skip_padding(&mut self.input, size).map_err(self.io())? {
            return self.damaged("there are bytes between its files");
        }
        if path == END_PATH {
            return self.end(&bytes).map(BackupItem::BackupTrailer);
        }
        let digest = sha256_hex(&bytes);
        if !path.starts_with(BLOBS_FOLDER) {
            return self.damaged(format!("`{}` is not a file of a backup", path.escape_debug()));
        }
        if path != blob_path(&digest) {
            return self.damaged(format!("the digest of `{}` does not match", path.escape_debug()));
        }
        if digest <= self.last {
            return self.damaged(format!("the blob {digest} is duplicated or out of order"));
        }
        self.last.clone_from(&digest);
        self.found.blobs += 1;
        self.found.bytes += size;
        Ok(BackupItem::Blob(digest, bytes))
    }

    fn end(&mut self, bytes: &[u8]) -> Result<BackupTrailer, BackupError> {
        let Ok(end) = serde_json::from_slice::<BackupTrailer>(bytes) else {
            return self.damaged("its last file cannot be read");
        };
        if end.format == FORMAT_NAME && end.version > FORMAT_VERSION {
            let path = self.path.display().to_string();
            return Err(BackupError::TooNew { path, version: end.version });
        }
        if end != self.found {
            return self.damaged("its contents do not match the counts in its last file");
        }
        for _ in 0..2 {
            if self.header()? != TarHeader::BackupTrailer {
                return self.damaged("there are bytes after its last file");
            }
        }
        let fail = self.io();
        match self.input.fill_buf().map_err(fail)? {
            [] => Ok(end),
            _ => self.damaged("there are bytes after its end"),
        }
    }
}

/// The records of a backup.
pub(super) struct RecordReader<'a> {
    reader: &'a mut BackupReader,
    size: u64,
    left: u64,
    digest: Sha256,
}

impl RecordReader<'_> {
    pub(super) fn next(&mut self) -> Result<Option<Record>, BackupError> {
        if self.left == 0 {
            return Ok(None);
        }
        let mut line = Vec::new();
        let mut input = (&mut self.reader.input).take(self.left);
        let count = input.read_until(b'\n', &mut line).map_err(self.reader.io())?;
        if line.last() != Some(&b'\n') {
            return self.reader.damaged("its records are truncated");
        }
        self.left -= count as u64;
        self.digest.update(&line);
        let number = self.reader.found.records + 1;
        let record = serde_json::from_slice(&line);
        let Ok(record) = record else {
            return self.reader.damaged(format!("its record {number} cannot be read"));
        };
        self.reader.found.count(&record);
        Ok(Some(record))
    }

    /// Stores the digest of the records and skips their padding.
    pub(super) fn finish(self) -> Result<(), BackupError> {
        let Self { reader, size, digest, .. } = self;
        reader.found.records_sha256 = hex(&digest.finalize());
        if tar::skip_padding(&mut reader.input, size).map_err(reader.io())? {
            return Ok(());
        }
        reader.damaged("there are bytes after its records")
    }
}
