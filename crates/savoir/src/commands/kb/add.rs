//! `savoir kb add`: documents are read in the foreground, one after the other.

use std::{
    fs,
    io::{self, IsTerminal as _, Write as _},
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use savoir_engine::{
    knowledge::{Indexer, UploadError},
    limits::DOCUMENT_BYTES,
};
use savoir_store::{Base, Document, Status};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{Common, Open, document_json, row};
use crate::{error::CommandError, extractor, output};

/// How often the progress of a document is looked at.
const EVERY: Duration = Duration::from_millis(100);

pub(super) async fn run(
    open: &Open,
    base: &str,
    files: &[PathBuf],
    common: &Common,
) -> Result<ExitCode, CommandError> {
    let base = open.base(base).await?;
    let indexer = Indexer::new(open.knowledge.clone(), extractor::extractor());
    let mut failed = false;
    let mut answers: Vec<Value> = Vec::new();
    for file in files {
        let added = add(open, &base, file, &indexer).await;
        failed |= !matches!(&added, Ok(document) if document.status == Status::Completed);
        let answer = match &added {
            Ok(document) => document_json(document),
            Err(error) => json!({
                "filename": file.display().to_string(), "status": "refused",
                "error": error.to_string(),
            }),
        };
        answers.push(answer);
        if !common.json {
            let line = match added {
                Ok(document) => row(&document),
                Err(error) => format!("{:<10}  {}: {error}", "refused", file.display()),
            };
            output::text(&format!("{}\n", output::harmless(&line)))?;
        }
    }
    if common.json {
        output::json(&answers)?;
    } else if !failed {
        output::note(&format!("it is searched by {}", open.knowledge.mode()));
    }
    Ok(ExitCode::from(u8::from(failed)))
}

/// Keeps a document and waits until it is read, here or by a server that shares the database.
async fn add(
    open: &Open,
    base: &Base,
    file: &Path,
    indexer: &Indexer,
) -> Result<Document, CommandError> {
    let name = file.file_name().map(|name| name.to_string_lossy().into_owned());
    let name = name.unwrap_or_default();
    let bytes = read(file)?;
    let (document, task) =
        open.knowledge.add(&base.id, &name, bytes.into()).await.map_err(|error| match error {
            UploadError::Store(error) => CommandError::input(error),
            error => CommandError::input(error),
        })?;
    let ended = async {
        let mut progress = Progress::new(&name);
        loop {
            match open.knowledge.task(&task.id).await? {
                Some(task) if matches!(task.status, Status::Pending | Status::Processing) => {
                    progress.show(task.progress);
                }
                _ => return Ok::<(), CommandError>(()),
            }
            sleep(EVERY).await;
        }
    };
    // The worker ends with the wait for it.
    tokio::select! {
        ended = ended => ended?,
        () = indexer.run(std::future::pending()) => {}
    }
    let documents = open.knowledge.documents(&base.id).await?;
    let read = documents.into_iter().find(|known| known.id == document.id);
    read.ok_or_else(|| CommandError::findings("it was removed while it was read"))
}

fn read(file: &Path) -> Result<Vec<u8>, CommandError> {
    let metadata = fs::metadata(file).map_err(CommandError::input)?;
    if !metadata.is_file() {
        return Err(CommandError::input("it is not a file"));
    }
    if metadata.len() > DOCUMENT_BYTES as u64 {
        return Err(CommandError::input(UploadError::TooLarge));
    }
    fs::read(file).map_err(CommandError::input)
}

/// A line on the terminal that says how far a document is.
struct Progress<'a> {
    name: &'a str,
    shown: bool,
}

impl<'a> Progress<'a> {
    fn new(name: &'a str) -> Self {
        Self { name, shown: false }
    }

    fn show(&mut self, percent: u8) {
        let mut err = io::stderr().lock();
        if err.is_terminal() {
            let name = output::harmless(self.name);
            // Nobody is left to tell when standard error is closed.
            let _ = write!(err, "\r\x1b[K{percent:>3} %  {name}").and_then(|()| err.flush());
            self.shown = true;
        }
    }
}

impl Drop for Progress<'_> {
    fn drop(&mut self) {
        if self.shown {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}
