//! Reads evaluation files of every known format into one [`EvalSet`].
//!
//! Each format is one file and one line in `FORMATS` or, for formats that are folders, a call in
//! [`read`]. Formats only say which keys they use; `case_reader` reads the values.

mod agentskills;
mod assertion;
mod bare_cases;
mod case_reader;
mod nvidia;
mod tessl;
mod triggers;

use std::io;

use savoir_lint::{Diagnostic, Source, SourceError, Span};
use savoir_skill::Folder;

pub(crate) use self::assertion::compile;
use self::case_reader::Reader;
use crate::{json::Node, limits::MAX_CASES, set::EvalSet};

/// The folder of a skill with its evaluations. It is never shown to the agent that is evaluated.
pub const FOLDER: &str = "evals";
/// The file that `savoir eval new` writes.
pub const FILE: &str = "evals/evals.json";

/// One format of a JSON file.
struct Format {
    id: &'static str,
    /// Whether a file is of this format.
    detect: fn(&Node) -> bool,
    read: fn(&Node, &mut Reader<'_>),
}

/// All formats of JSON files. The first that detects a file reads it.
const FORMATS: [Format; 5] = [
    agentskills::FORMAT,
    // Its cases may have `should_trigger`, too.
    nvidia::FORMAT,
    triggers::FORMAT,
    triggers::GROUPED_FORMAT,
    bare_cases::FORMAT,
];

/// The evaluation files of a skill, as they were read.
#[derive(Clone, Debug, Default)]
pub struct EvalReading {
    pub set: EvalSet,
    /// The files, in order.
    pub files: Vec<EvalFile>,
    /// Files in the folder of evaluations whose format is unknown.
    pub unknown: Vec<String>,
}

/// One evaluation file.
#[derive(Clone, Debug)]
pub struct EvalFile {
    /// The path in the folder of the skill.
    pub path: String,
    /// The format; `None` if it could not be read.
    pub format: Option<&'static str>,
    /// The text; `None` if it could not be read.
    pub source: Option<Source>,
    pub diagnostics: Vec<Diagnostic>,
}

impl EvalFile {
    fn new(path: &str) -> Self {
        Self { path: path.to_owned(), format: None, source: None, diagnostics: Vec::new() }
    }
}

impl EvalReading {
    /// Whether a file has an error.
    pub fn has_errors(&self) -> bool {
        self.files.iter().any(|file| file.diagnostics.iter().any(Diagnostic::is_error))
    }

    /// Whether there is nothing to run.
    pub fn is_empty(&self) -> bool {
        self.set.cases.is_empty() && self.set.triggers.is_empty()
    }
}

/// Reads all evaluation files of a skill. `skill` is its name.
pub fn read(folder: &Folder, skill: &str) -> EvalReading {
    let mut reading = EvalReading::default();
    let paths: Vec<String> = folder.files().iter().map(|file| file.path.clone()).collect();
    for path in &paths {
        if let Some(scenario) = tessl::scenario_of(path) {
            tessl::read(folder, scenario, &mut reading);
        } else if is_eval_file(path) {
            read_file(folder, path, skill, &mut reading);
        }
    }
    make_ids_unique(&mut reading.set);
    reading
}

/// Whether a JSON file is expected to contain evaluations: a file in `evals/`, or one beside
/// SKILL.md that is named like one.
fn is_eval_file(path: &str) -> bool {
    let lower = path.to_ascii_lowercase();
    let Some(name) = lower.strip_suffix(".json") else { return false };
    match name.split_once('/') {
        Some(("evals" | "eval", name)) => !name.contains('/'),
        Some(_) => false,
        None => name == "evals" || name.starts_with("trigger") || name.ends_with("trigger-eval"),
    }
}

fn read_file(folder: &Folder, path: &str, skill: &str, reading: &mut EvalReading) {
    let Some((mut file, root)) = open_json(folder, path) else { return };
    let Some(root) = root else {
        reading.files.push(file);
        return;
    };
    let Some(format) = FORMATS.iter().find(|format| (format.detect)(&root)) else {
        if path == FILE {
            let span = Span::new(root.span.start, root.span.start + 1);
            let message = "the file has no cases";
            let error = Diagnostic::error("eval-unknown-format", span, message);
            let help = "write {\"evals\": [{\"prompt\": …, \"assertions\": […]}]}";
            file.diagnostics.push(error.help(help));
            reading.files.push(file);
        } else {
            reading.unknown.push(path.to_owned());
        }
        return;
    };
    file.format = Some(format.id);
    let mut reader = Reader::new(folder, path, skill, &mut reading.set, &mut file.diagnostics);
    (format.read)(&root, &mut reader);
    if reading.set.cases.len() > MAX_CASES {
        let message = format!("the skill has more than {MAX_CASES} cases");
        let error = Diagnostic::error("eval-too-large", root.span, message);
        file.diagnostics.push(error.help("split the skill, or keep the cases that differ"));
        reading.set.cases.truncate(MAX_CASES);
    }
    reading.files.push(file);
}

/// Reads and parses a JSON file. `None` if it is not there; the tree is missing if it is not JSON.
fn open_json(folder: &Folder, path: &str) -> Option<(EvalFile, Option<Node>)> {
    let mut file = EvalFile::new(path);
    let source = match open(folder, path) {
        Ok(source) => source,
        Err(None) => return None,
        Err(Some(error)) => {
            file.diagnostics.push(*error);
            return Some((file, None));
        }
    };
    let root = match Node::parse(source.text()) {
        Ok(root) => Some(root),
        Err(error) => {
            let end = (error.at + 1).min(source.text().len());
            let end = source.text().ceil_char_boundary(end);
            let span = Span::new(source.text().floor_char_boundary(error.at), end);
            let message = format!("the file is not JSON: {}", error.message);
            let help = "correct the JSON here; agents and other tools cannot read the file either";
            file.diagnostics.push(Diagnostic::error("eval-not-json", span, message).help(help));
            None
        }
    };
    file.source = Some(source);
    Some((file, root))
}

/// The text of a file; `Err(None)` if it does not exist.
fn open(folder: &Folder, path: &str) -> Result<Source, Option<Box<Diagnostic>>> {
    let unreadable =
        |message: String| Diagnostic::error("unreadable-file", Span::default(), message);
    let limit = savoir_lint::MAX_FILE_BYTES;
    let bytes = folder.read_up_to(path, limit).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound if !folder.has(path) => None,
        _ => {
            let found = unreadable(error.to_string());
            Some(Box::new(found.help("replace it by a regular file below 1 MiB")))
        }
    })?;
    Source::from_bytes(bytes).map_err(|error: SourceError| {
        let found = Diagnostic::error(error.code(), Span::default(), error.to_string());
        Some(Box::new(found.help(error.help())))
    })
}

/// Two files may use the same identifiers; results need unique ones.
fn make_ids_unique(set: &mut EvalSet) {
    let mut seen = std::collections::HashSet::new();
    for case in &mut set.cases {
        let mut id = case.id.clone();
        let mut count = 2;
        while !seen.insert(id.clone()) {
            id = format!("{}-{count}", case.id);
            count += 1;
        }
        case.id = id;
    }
}

#[cfg(test)]
mod tests;
