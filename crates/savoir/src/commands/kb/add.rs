//! `savoir kb add`: documents are read in the foreground, one after the other.
//!
//! A file that is there already is left alone. One that changed takes the place of the older one only
//! if that is wanted: another file may have the same name.

use std::{
    collections::HashSet,
    fs,
    io::{self, IsTerminal as _, Write as _},
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use savoir_engine::{
    knowledge::{Indexer, Mode, UploadError},
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
    replace: bool,
    common: &Common,
) -> Result<ExitCode, CommandError> {
    let base = open.base(base).await?;
    let indexer = Indexer::new(open.knowledge.clone(), extractor::extractor());
    let mut adding = Adding { open, base, indexer, replace, taken: HashSet::new() };
    let mut failed = false;
    let mut answers: Vec<Value> = Vec::new();
    for file in files {
        let added = adding.add(file).await;
        failed |= !matches!(&added, Ok(added) if added.document.status == Status::Completed);
        let answer = match &added {
            Ok(added) => added.json(),
            Err(error) => json!({
                "filename": file.display().to_string(), "status": "refused",
                "error": error.to_string(),
            }),
        };
        answers.push(answer);
        if !common.json {
            let line = match added {
                Ok(added) => added.row(),
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

/// Reads files into a knowledge base.
struct Adding<'a> {
    open: &'a Open,
    base: Base,
    indexer: Indexer,
    /// Whether documents of the same name make room.
    replace: bool,
    /// The names of this command's files so far.
    taken: HashSet<String>,
}

/// What became of a file.
struct Added {
    document: Document,
    change: Change,
}

#[derive(Clone, Copy)]
enum Change {
    Added,
    Replaced,
    Unchanged,
}

impl Added {
    fn row(&self) -> String {
        let done = match (self.change, self.document.status) {
            (Change::Replaced, Status::Completed) => "replaced",
            (Change::Unchanged, _) => "unchanged",
            _ => return row(&self.document),
        };
        format!("{done:<10}  {}", self.document.filename)
    }

    fn json(&self) -> Value {
        let mut value = document_json(&self.document);
        value["change"] = match self.change {
            Change::Added => "added",
            Change::Replaced => "replaced",
            Change::Unchanged => "unchanged",
        }
        .into();
        value
    }
}

impl Adding<'_> {
    async fn add(&mut self, file: &Path) -> Result<Added, CommandError> {
        let name = file.file_name().map(|name| name.to_string_lossy().into_owned());
        let name = name.unwrap_or_default();
        let bytes = read(file)?;
        let known = self.open.knowledge.documents(&self.base.id).await?;
        let namesakes: Vec<Document> =
            known.into_iter().filter(|known| known.filename == name).collect();
        if let Some(document) = self.twin(&namesakes, &bytes).await? {
            self.taken.insert(name);
            return Ok(Added { document, change: Change::Unchanged });
        }
        // Files of several folders: the second is no newer version of the first.
        if !self.taken.insert(name.clone()) {
            let message = "another file of this name was added just now; rename one of them";
            return Err(CommandError::input(message));
        }
        self.make_sure_of_room(&namesakes)?;
        let document = self.read_in(&name, bytes).await?;
        let change = self.replace(&namesakes, document.status).await?;
        Ok(Added { document, change })
    }

    /// The document that was read from the same bytes, by the same means.
    async fn twin(
        &self,
        namesakes: &[Document],
        bytes: &[u8],
    ) -> Result<Option<Document>, CommandError> {
        let knowledge = &self.open.knowledge;
        if let Mode::Hybrid(identity) = knowledge.mode()
            && self.base.embedder.as_ref() != Some(&identity)
        {
            return Ok(None);
        }
        for known in namesakes.iter().filter(|known| known.status == Status::Completed) {
            if known.file_size == bytes.len() as u64
                && knowledge.bytes(&self.base.id, &known.id).await?.as_deref() == Some(bytes)
            {
                return Ok(Some(known.clone()));
            }
        }
        Ok(None)
    }

    /// What was read, or still is, makes room only if that is wanted, and if there is no doubt what is
    /// meant.
    fn make_sure_of_room(&self, namesakes: &[Document]) -> Result<(), CommandError> {
        let good: Vec<&Document> =
            namesakes.iter().filter(|known| known.status != Status::Failed).collect();
        match good.as_slice() {
            [] => Ok(()),
            [one] if self.replace && one.status == Status::Completed => Ok(()),
            [one] if self.replace => {
                let message = format!("{} of this name is being read; wait for it", one.id);
                Err(CommandError::input(message))
            }
            [_] => Err(CommandError::input(
                "a document of this name is there with other content; \
                 --replace puts this one in its place",
            )),
            several => Err(CommandError::input(format!(
                "{} documents of this name are there; remove those that are not wanted, by id",
                several.len()
            ))),
        }
    }

    /// Removes what a document takes the place of: of one that failed, only others that failed.
    async fn replace(&self, older: &[Document], status: Status) -> Result<Change, CommandError> {
        let is_outdated =
            |known: &&Document| status == Status::Completed || known.status == Status::Failed;
        let mut change = Change::Added;
        for document in older.iter().filter(is_outdated) {
            self.open.knowledge.remove_document(&self.base.id, &document.id).await?;
            change = Change::Replaced;
        }
        Ok(change)
    }

    /// Keeps a document and waits until it is read, here or by a server that shares the database.
    async fn read_in(&self, name: &str, bytes: Vec<u8>) -> Result<Document, CommandError> {
        let Self { open, base, indexer, .. } = self;
        let added = open.knowledge.add(&base.id, name, bytes.into()).await;
        let (document, task) = added.map_err(refusal)?;
        let ended = async {
            let mut progress = Progress::new(name);
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
}

/// Why a file is not taken; the words of the server are those of its contract.
fn refusal(error: UploadError) -> CommandError {
    match error {
        UploadError::Store(error) => CommandError::input(error),
        UploadError::Type => {
            CommandError::input("only .txt, .md, .html, .docx and .pdf files are read")
        }
        UploadError::TooLarge => {
            CommandError::input(format!("it is larger than {} MiB", DOCUMENT_BYTES >> 20))
        }
        error => CommandError::input(error),
    }
}

fn read(file: &Path) -> Result<Vec<u8>, CommandError> {
    let metadata = fs::metadata(file).map_err(CommandError::input)?;
    if !metadata.is_file() {
        return Err(CommandError::input("it is not a file"));
    }
    if metadata.len() > DOCUMENT_BYTES as u64 {
        return Err(refusal(UploadError::TooLarge));
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
