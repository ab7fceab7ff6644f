use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, BufWriter, Read as _, Seek as _, Write},
    path::Path,
};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use savoir_skill::digest::hex;
use savoir_store::registry::{Record, Registry};
use sha2::{Digest as _, Sha256};

use super::{
    BackupError, BackupTrailer, CONCURRENT_BLOBS, END_PATH, RECORDS_PATH, blob_path, digests,
    tar::{self, TAR_BLOCK_BYTES},
};

/// Writes a backup of a registry into a file, completely or not at all. `on_progress` is called with the number of
/// blobs that were written, and the total.
pub async fn write(
    registry: Registry<'_>,
    target: &Path,
    mut on_progress: impl FnMut(u64, u64),
) -> Result<BackupTrailer, BackupError> {
    let fail = BackupError::io(target);
    let folder = match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let file = tempfile::Builder::new().prefix(".savoir-backup").tempfile_in(folder);
    let file = file.map_err(&fail)?;
    // The size of the records must be known before they are written.
    let mut spool = tempfile::tempfile_in(folder).map_err(&fail)?;
    let mut end = BackupTrailer::new();
    let wanted = records(registry, &mut spool, &mut end, &fail).await?;
    let mut out = BufWriter::with_capacity(1 << 20, file);
    append_records(&mut out, &mut spool, &mut end).map_err(&fail)?;
    let total = wanted.len() as u64;
    let mut blobs = stream::iter(wanted)
        .map(|(digest, what)| async move {
            match registry.blob(&digest).await? {
                Some(bytes) => Ok((digest, bytes)),
                None => Err(BackupError::Missing { what, digest }),
            }
        })
        .buffered(CONCURRENT_BLOBS);
    while let Some((digest, bytes)) = blobs.try_next().await? {
        tar::append(&mut out, &blob_path(&digest), &bytes).map_err(&fail)?;
        end.blobs += 1;
        end.bytes += bytes.len() as u64;
        on_progress(end.blobs, total);
    }
    let last = serde_json::to_vec(&end).map_err(|error| fail(error.into()))?;
    tar::append(&mut out, END_PATH, &last).and_then(|()| tar::finish(&mut out)).map_err(&fail)?;
    let file = out.into_inner().map_err(|error| fail(error.into_error()))?;
    file.as_file().sync_all().map_err(&fail)?;
    file.persist(target).map_err(|error| fail(error.error))?;
    // The file name is stored in the folder, so sync that as well.
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(&fail)?;
    Ok(end)
}

/// Writes the records; returns the blobs that they refer to, each with one version that does.
async fn records(
    registry: Registry<'_>,
    spool: &mut File,
    end: &mut BackupTrailer,
    fail: &impl Fn(io::Error) -> BackupError,
) -> Result<BTreeMap<String, String>, BackupError> {
    let mut wanted = BTreeMap::new();
    let mut out = BufWriter::new(spool);
    let mut export = registry.export().await?;
    loop {
        let page = export.next_page().await?;
        if page.is_empty() {
            break;
        }
        for record in page {
            end.count(&record);
            for digest in digests(&record) {
                wanted.entry(digest.clone()).or_insert_with(|| owner(&record, digest));
            }
            let mut line = serde_json::to_vec(&record).map_err(|error| fail(error.into()))?;
            line.push(b'\n');
            out.write_all(&line).map_err(fail)?;
        }
    }
    out.flush().map_err(fail)?;
    Ok(wanted)
}

/// The version that refers to a blob, for messages.
fn owner(record: &Record, digest: &str) -> String {
    let Record::Package(package) = record else { return String::new() };
    let is_one_of = |digest: &str, one: &str, two: &str| digest == one || digest == two;
    let mut versions = package.versions.iter();
    let found = versions.find(|version| is_one_of(digest, &version.sha256, &version.skill_md));
    let version = found.map(|version| version.version.as_str()).unwrap_or_default();
    format!("{} {version}", package.name)
}

fn append_records(
    out: &mut impl Write,
    spool: &mut File,
    end: &mut BackupTrailer,
) -> io::Result<()> {
    let size = spool.stream_position()?;
    spool.rewind()?;
    out.write_all(&tar::header(RECORDS_PATH, size)?)?;
    let (mut digest, mut buffer) = (Sha256::new(), vec![0; 1 << 16]);
    loop {
        let count = spool.read(&mut buffer)?;
        if count == 0 {
            break;
        }
        digest.update(&buffer[..count]);
        out.write_all(&buffer[..count])?;
    }
    out.write_all(&[0; TAR_BLOCK_BYTES][..tar::padding(size)])?;
    end.records_sha256 = hex(&digest.finalize());
    Ok(())
}
