//! `savoir kb`: stores and searches documents without a server.

mod add;

use std::{path::PathBuf, process::ExitCode};

use savoir_knowledge::{Knowledge, Mode, Passage, SearchError};
use savoir_store::{Database, Document, KnowledgeBase, Storage};
use serde_json::{Value, json};

use crate::{
    error::CommandError,
    models,
    output::{self, plural},
    runtime,
    storage_args::StorageArgs,
};

/// Store and search documents without a server
#[derive(Debug, clap::Args)]
#[command(after_help = "\
BASE is the name or the id of a knowledge base. A skill with `knowledge_base: NAME` answers from
it. Text, Markdown, HTML, Word and PDF files of up to 5 MiB are supported.

Examples:
  savoir kb create handbook
  savoir kb add handbook manual.pdf notes/*.md
  savoir kb search handbook \"how are returns paid\"
  savoir kb remove handbook manual.pdf

Without an embedding model, search uses words alone (BM25). docs/guides/models.md explains how to
set one.")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Create a knowledge base
    Create {
        /// Name of the knowledge base
        name: String,
        #[command(flatten)]
        common: Common,
    },
    /// Add documents to a knowledge base
    Add {
        /// Name or id of the knowledge base
        base: String,
        /// Files to add
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// Replace documents that have the same name and other content
        #[arg(long)]
        replace: bool,
        #[command(flatten)]
        common: Common,
    },
    /// List knowledge bases, or the documents of one
    List {
        /// Name or id of the knowledge base
        base: Option<String>,
        #[command(flatten)]
        common: Common,
    },
    /// Search a knowledge base
    Search {
        /// Name or id of the knowledge base
        base: String,
        /// Question or words to search for
        question: String,
        /// Maximum number of passages
        #[arg(long, value_name = "N", default_value_t = 5)]
        limit: u32,
        #[command(flatten)]
        common: Common,
    },
    /// Remove a knowledge base, or some of its documents
    Remove {
        /// Name or id of the knowledge base
        base: String,
        /// Names or ids of the documents to remove
        documents: Vec<String>,
        #[command(flatten)]
        common: Common,
    },
}

#[derive(Debug, clap::Args)]
struct Common {
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    storage_args: StorageArgs,
}

struct Open {
    knowledge: Knowledge,
    database: Database,
    storage: Storage,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    match &args.command {
        Command::Create { name, common } => {
            common.with(async |open| create(open, name, common).await)
        }
        Command::Add { base, files, replace, common } => {
            common.with(async |open| add::run(open, base, files, *replace, common).await)
        }
        Command::List { base, common } => {
            common.with(async |open| list(open, base.as_deref(), common).await)
        }
        Command::Search { base, question, limit, common } => {
            common.with(async |open| search(open, base, question, *limit, common).await)
        }
        Command::Remove { base, documents, common } => {
            common.with(async |open| remove(open, base, documents, common).await)
        }
    }
}

impl Common {
    /// Runs `work`, then closes the database.
    fn with(
        &self,
        work: impl AsyncFnOnce(&Open) -> Result<ExitCode, CommandError>,
    ) -> Result<ExitCode, CommandError> {
        let (location, models) = (self.storage_args.location()?, models::load_models()?);
        runtime::block_on(async {
            let (database, storage) = location.open().await?;
            let embedder = models.embedder().cloned();
            let knowledge = Knowledge::new(database.clone(), storage.clone(), embedder);
            let open = Open { knowledge, database, storage };
            let done = work(&open).await;
            open.database.close().await;
            done
        })
    }

    fn print(&self, value: &Value, text: &str) -> Result<(), CommandError> {
        if self.json { output::json(value) } else { output::text(&output::sanitize(text)) }
    }
}

impl Open {
    async fn base(&self, name: &str) -> Result<KnowledgeBase, CommandError> {
        let base = self.knowledge.resolve(name, None).await?;
        base.ok_or_else(|| {
            CommandError::input(format!("knowledge base `{name}` does not exist"))
                .hint(format!("create it with: savoir kb create {name}"))
                .hint("`savoir kb list` lists all knowledge bases")
        })
    }
}

async fn create(open: &Open, name: &str, common: &Common) -> Result<ExitCode, CommandError> {
    if name.trim().is_empty() {
        return Err(CommandError::input("a knowledge base needs a name"));
    }
    let twin = open.knowledge.list().await?.into_iter().find(|base| base.name == name);
    if let Some(twin) = twin {
        return Err(CommandError::input(format!(
            "knowledge base `{name}` already exists: {}",
            twin.id
        ))
        .hint("choose another name"));
    }
    let base = open.knowledge.create(name, None).await?;
    common.print(
        &base_json(&base),
        &format!("created {name}\nadd documents with: savoir kb add {name} FILE\n"),
    )?;
    Ok(ExitCode::SUCCESS)
}

async fn list(open: &Open, base: Option<&str>, common: &Common) -> Result<ExitCode, CommandError> {
    let Some(name) = base else {
        let bases = open.knowledge.list().await?;
        let row = |base: &KnowledgeBase| {
            let documents = plural(usize::try_from(base.document_count).unwrap_or(0), "document");
            format!("{}  {}  {documents}\n", base.id, base.name)
        };
        let text = match bases.as_slice() {
            [] => "no knowledge bases yet; create one with: savoir kb create NAME\n".to_owned(),
            bases => bases.iter().map(row).collect(),
        };
        let bases: Vec<Value> = bases.iter().map(base_json).collect();
        common.print(&json!({ "knowledge_bases": bases }), &text)?;
        return Ok(ExitCode::SUCCESS);
    };
    let base = open.base(name).await?;
    let documents = open.knowledge.documents(&base.id).await?;
    let text = match documents.as_slice() {
        [] => format!("{name} has no documents; add one with: savoir kb add {name} FILE\n"),
        documents => lines(documents.iter().map(row)),
    };
    let documents: Vec<Value> = documents.iter().map(document_json).collect();
    common.print(&json!({ "documents": documents }), &text)?;
    Ok(ExitCode::SUCCESS)
}

fn lines(lines: impl Iterator<Item = String>) -> String {
    lines.flat_map(|line| [line, "\n".to_owned()]).collect()
}

/// `completed   manual.pdf`
fn row(document: &Document) -> String {
    let line = format!("{:<10}  {}", document.status.as_str(), document.filename);
    match &document.error {
        Some(error) => format!("{line}: {error}"),
        None => line,
    }
}

async fn search(
    open: &Open,
    base: &str,
    question: &str,
    limit: u32,
    common: &Common,
) -> Result<ExitCode, CommandError> {
    if question.trim().is_empty() {
        return Err(CommandError::input("the question is empty").hint("give words to search for"));
    }
    let base = open.base(base).await?;
    let found = open.knowledge.search(&base.id, None, question, limit).await;
    let passages = found.map_err(|error| match error {
        SearchError::OtherModel => {
            CommandError::input("the documents were indexed with another embedding model")
                .hint("remove the documents and add them again, or set the old model")
        }
        error => CommandError::input(error),
    })?;
    let names = open.names(&base.id).await?;
    let mode = open.knowledge.info(&base.id).await?.map_or(Mode::Words, |info| info.mode);
    if common.json {
        let list: Vec<Value> =
            passages.iter().map(|passage| passage_json(passage, &names)).collect();
        output::json(&json!({"searched": mode.to_string(), "passages": list}))?;
        return Ok(ExitCode::SUCCESS);
    }
    output::note(&format!("searched by {mode}"));
    if passages.is_empty() {
        output::note("no passages found");
        return Ok(ExitCode::SUCCESS);
    }
    let text: String = passages.iter().map(|passage| entry(passage, &names)).collect();
    output::text(&output::sanitize(&text))?;
    Ok(ExitCode::SUCCESS)
}

/// The names of documents by their ids.
pub(super) type Names = std::collections::HashMap<String, String>;

impl Open {
    async fn names(&self, kb_id: &str) -> Result<Names, CommandError> {
        let documents = self.knowledge.documents(kb_id).await?;
        Ok(documents.into_iter().map(|document| (document.id, document.filename)).collect())
    }
}

/// `0.8731  manual.pdf, part 3` and the text below.
fn entry(passage: &Passage, names: &Names) -> String {
    let name = names.get(&passage.doc_id).unwrap_or(&passage.doc_id);
    let text = lines(passage.text.lines().map(|line| format!("  {line}").trim_end().to_owned()));
    format!("{:.4}  {name}, part {}\n{text}", passage.score, passage.chunk_index)
}

async fn remove(
    open: &Open,
    base: &str,
    documents: &[String],
    common: &Common,
) -> Result<ExitCode, CommandError> {
    let base = open.base(base).await?;
    if documents.is_empty() {
        open.knowledge.remove_base(&base.id).await?;
        common.print(&json!({"removed": [base.id]}), &format!("removed {}\n", base.name))?;
        return Ok(ExitCode::SUCCESS);
    }
    let known = open.knowledge.documents(&base.id).await?;
    let mut chosen = Vec::new();
    for wanted in documents {
        let fits = |document: &&Document| document.id == *wanted || document.filename == *wanted;
        let found: Vec<&Document> = known.iter().filter(fits).collect();
        if found.is_empty() {
            return Err(CommandError::input(format!("{} has no document `{wanted}`", base.name))
                .hint(format!("`savoir kb list {}` lists its documents", base.name)));
        }
        chosen.extend(found);
    }
    for document in &chosen {
        open.knowledge.remove_document(&base.id, &document.id).await?;
    }
    let text = lines(chosen.iter().map(|document| format!("removed {}", document.filename)));
    let ids: Vec<&str> = chosen.iter().map(|document| document.id.as_str()).collect();
    common.print(&json!({"removed": ids}), &text)?;
    Ok(ExitCode::SUCCESS)
}

fn base_json(base: &KnowledgeBase) -> Value {
    json!({
        "id": base.id, "name": base.name, "document_count": base.document_count,
        "embedding": base.embedder, "created_at": base.created_at,
    })
}

fn document_json(document: &Document) -> Value {
    json!({
        "id": document.id, "filename": document.filename, "status": document.status.as_str(),
        "error": document.error, "file_size": document.file_size,
        "created_at": document.created_at,
    })
}

fn passage_json(passage: &Passage, names: &Names) -> Value {
    json!({
        "score": passage.score, "filename": names.get(&passage.doc_id), "doc_id": passage.doc_id,
        "chunk_index": passage.chunk_index, "text": passage.text,
    })
}
