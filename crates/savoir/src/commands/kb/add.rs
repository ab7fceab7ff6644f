//! `savoir kb add`: indexes documents in the foreground, one after the other.
//!
//! An unchanged file is skipped. A changed file replaces the document of its name only with
//! `--replace`, because another file may have the same name.

use std::{
    collections::HashSet,
    fs,
    io::{self, IsTerminal as _, Write as _},
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use savoir_knowledge::{Indexer, Mode, UploadError, limits::MAX_DOCUMENT_BYTES};
use savoir_store::{Document, IndexingStatus, KnowledgeBase};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{Common, Open, document_json, row};
use crate::{error::CommandError, extractor, output};

/// How often the progress of a document is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

pub(super) async fn run(
    open: &Open,
    base: &str,
    files: &[PathBuf],
    replace: bool,
    common: &Common,
) -> Result<ExitCode, CommandError> {
    let base = open.base(base).await?;
    // Without a server, nobody else removes what a killed command left. This command works without.
    if let Err(error) = open.storage.remove_unfinished().await {
        output::note(&format!("files of a killed command could not be removed: {error}"));
    }
    let indexer = Indexer::new(open.knowledge.clone(), extractor::extractor());
    let mut adding = DocumentAdder { open, base, indexer, replace, taken: HashSet::new() };
    let mut failed = false;
    let mut answers: Vec<Value> = Vec::new();
    for file in files {
        let added = adding.add(file).await;
        failed |=
            !matches!(&added, Ok(added) if added.document.status == IndexingStatus::Completed);
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
            output::text(&format!("{}\n", output::sanitize(&line)))?;
        }
    }
    if common.json {
        output::json(&answers)?;
    } else if !failed {
        output::note(&format!("documents are searched by {}", open.knowledge.mode()));
    }
    Ok(ExitCode::from(u8::from(failed)))
}

struct DocumentAdder<'a> {
    open: &'a Open,
    base: KnowledgeBase,
    indexer: Indexer,
    /// Whether to replace documents of the same name.
    replace: bool,
    /// The names of the files that this command has handled.
    taken: HashSet<String>,
}

/// The result for one file.
struct AddedDocument {
    document: Document,
    change: DocumentChange,
}

#[derive(Clone, Copy)]
enum DocumentChange {
    Added,
    Replaced,
    Unchanged,
}

impl AddedDocument {
    fn row(&self) -> String {
        let done = match (self.change, self.document.status) {
            (DocumentChange::Replaced, IndexingStatus::Completed) => "replaced",
            (DocumentChange::Unchanged, _) => "unchanged",
            _ => return row(&self.document),
        };
        format!("{done:<10}  {}", self.document.filename)
    }

    fn json(&self) -> Value {
        let mut value = document_json(&self.document);
        value["change"] = match self.change {
            DocumentChange::Added => "added",
            DocumentChange::Replaced => "replaced",
            DocumentChange::Unchanged => "unchanged",
        }
        .into();
        value
    }
}

impl DocumentAdder<'_> {
    async fn add(&mut self, file: &Path) -> Result<AddedDocument, CommandError> {
        let name = file.file_name().map(|name| name.to_string_lossy().into_owned());
        let name = name.unwrap_or_default();
        let bytes = read(file)?;
        let known = self.open.knowledge.documents(&self.base.id).await?;
        let namesakes: Vec<Document> =
            known.into_iter().filter(|known| known.filename == name).collect();
        if let Some(document) = self.twin(&namesakes, &bytes).await? {
            self.taken.insert(name);
            return Ok(AddedDocument { document, change: DocumentChange::Unchanged });
        }
        // Files of one name in several folders are not versions of one document.
        if !self.taken.insert(name.clone()) {
            let message = "another file of this command has the same name; rename one of them";
            return Err(CommandError::input(message));
        }
        self.make_sure_of_room(&namesakes)?;
        let document = self.read_in(&name, bytes).await?;
        let change = self.replace(&namesakes, document.status).await?;
        Ok(AddedDocument { document, change })
    }

    /// The document with the same bytes that was indexed with the same model.
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
        for known in namesakes.iter().filter(|known| known.status == IndexingStatus::Completed) {
            if known.file_size == bytes.len() as u64
                && knowledge.bytes(&self.base.id, &known.id).await?.as_deref() == Some(bytes)
            {
                return Ok(Some(known.clone()));
            }
        }
        Ok(None)
    }

    /// Checks that at most one document would be replaced, and only with `--replace`.
    fn make_sure_of_room(&self, namesakes: &[Document]) -> Result<(), CommandError> {
        let good: Vec<&Document> =
            namesakes.iter().filter(|known| known.status != IndexingStatus::Failed).collect();
        match good.as_slice() {
            [] => Ok(()),
            [one] if self.replace && one.status == IndexingStatus::Completed => Ok(()),
            [one] if self.replace => {
                let message =
                    format!("document {} of this name is still being indexed; wait for it", one.id);
                Err(CommandError::input(message))
            }
            [_] => Err(CommandError::input(
                "a document of this name exists with other content; \
                 to replace it: --replace",
            )),
            several => Err(CommandError::input(format!(
                "{} documents of this name exist; remove the unwanted ones by id",
                several.len()
            ))),
        }
    }

    /// Removes the replaced documents. A document that failed replaces only others that failed.
    async fn replace(
        &self,
        older: &[Document],
        status: IndexingStatus,
    ) -> Result<DocumentChange, CommandError> {
        let is_outdated = |known: &&Document| {
            status == IndexingStatus::Completed || known.status == IndexingStatus::Failed
        };
        let mut change = DocumentChange::Added;
        for document in older.iter().filter(is_outdated) {
            self.open.knowledge.remove_document(&self.base.id, &document.id).await?;
            change = DocumentChange::Replaced;
        }
        Ok(change)
    }

    /// Stores a document and waits until it is indexed, here or by a server with the same database.
    async fn read_in(&self, name: &str, bytes: Vec<u8>) -> Result<Document, CommandError> {
        let Self { open, base, indexer, .. } = self;
        let added = open.knowledge.add(&base.id, name, bytes.into()).await;
        let (document, task) = added.map_err(refusal)?;
        let ended = async {
            let mut progress = Progress::new(name);
            loop {
                match open.knowledge.task(&task.id).await? {
                    Some(task)
                        if matches!(
                            task.status,
                            IndexingStatus::Pending | IndexingStatus::Processing
                        ) =>
                    {
                        progress.show(task.progress);
                    }
                    _ => return Ok::<(), CommandError>(()),
                }
                sleep(POLL_INTERVAL).await;
            }
        };
        // The indexer is dropped when the wait ends.
        tokio::select! {
            ended = ended => ended?,
            () = indexer.run(std::future::pending()) => {}
        }
        let documents = open.knowledge.documents(&base.id).await?;
        let read = documents.into_iter().find(|known| known.id == document.id);
        read.ok_or_else(|| {
            CommandError::findings("the document was removed while it was being indexed")
        })
    }
}

/// The error for a file. The messages of the server are part of its API, so these differ.
fn refusal(error: UploadError) -> CommandError {
    match error {
        UploadError::Store(error) => CommandError::input(error),
        UploadError::Type => {
            CommandError::input("only .txt, .md, .html, .docx and .pdf files are supported")
        }
        UploadError::TooLarge => {
            CommandError::input(format!("it is larger than {} MiB", MAX_DOCUMENT_BYTES >> 20))
        }
        error => CommandError::input(error),
    }
}

fn read(file: &Path) -> Result<Vec<u8>, CommandError> {
    let metadata = fs::metadata(file).map_err(CommandError::input)?;
    if !metadata.is_file() {
        return Err(CommandError::input("it is not a file"));
    }
    if metadata.len() > MAX_DOCUMENT_BYTES as u64 {
        return Err(refusal(UploadError::TooLarge));
    }
    fs::read(file).map_err(CommandError::input)
}

/// A progress line on the terminal.
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
            let name = output::sanitize(self.name);
            // Ignored: standard error may be closed.
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
