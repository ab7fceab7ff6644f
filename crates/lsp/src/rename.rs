//! Renames a skill (its name, its folder, and every mention of it) or an input of a skill.

use std::{
    collections::{BTreeMap, HashMap},
    path::Path,
};

use lsp_types::{
    AnnotatedTextEdit, ChangeAnnotation, DocumentChange, Edit as DocumentEdit,
    OptionalVersionedTextDocumentIdentifier, Position, PrepareRenamePlaceholder,
    PrepareRenameResult, RenameFile, TextDocumentEdit, TextDocumentIdentifier, TextEdit,
    WorkspaceEdit,
};
use savoir_lint::{Span, visible};
use savoir_skill::name::NameGrammar;
use url::Url;

use crate::{
    actions::document_edit,
    failure::Failure,
    lookup::{self, touches},
    mentions::{self, Certainty, FileMentions, Mention},
    open_file::OpenFile,
    position::Lines,
    state::State,
};

/// Marks edits of words that may not refer to the skill. The client asks the user about them.
const UNSURE: &str = "mention";

/// Returns the element that can be renamed at a position.
pub(crate) fn prepare(
    state: &State,
    file: &OpenFile,
    position: Position,
) -> Option<PrepareRenameResult> {
    let offset = file.offset(position);
    let (name, span) = if let Some(name) = input_at(state, file, offset) {
        let spans = input_spans(state, file, &name);
        let span = spans.into_iter().find(|span| touches(*span, offset))?;
        (name, span)
    } else {
        let mention = mentions::at(state, file, offset)?;
        (mention.name, mention.span)
    };
    let range = file.range(span);
    Some(PrepareRenameResult::PrepareRenamePlaceholder(PrepareRenamePlaceholder {
        range,
        placeholder: name,
    }))
}

pub(crate) fn rename(
    state: &State,
    file: &OpenFile,
    position: Position,
    new: &str,
) -> Result<WorkspaceEdit, Failure> {
    let offset = file.offset(position);
    if let Some(old) = input_at(state, file, offset) {
        return rename_input(state, file, &old, new);
    }
    let Some(mention) = mentions::at(state, file, offset) else {
        return Err(Failure::refused("there is no skill and no input at this place"));
    };
    rename_skill(state, file, &mention, new)
}

/// The input whose name or placeholder is at an offset.
fn input_at(state: &State, file: &OpenFile, offset: usize) -> Option<String> {
    let checked = state.checked(file)?;
    let (document, dialect) = (&checked.reading.document, checked.reading.detection.dialect);
    let declared = lookup::declarations(document, dialect);
    let name =
        declared.iter().find(|(_, span)| touches(*span, offset)).map(|(name, _)| name.clone());
    name.or_else(|| {
        let uses = lookup::placeholders(document, dialect);
        let name = uses.into_iter().find(|found| touches(found.span, offset))?.name;
        declared.iter().any(|(known, _)| *known == name).then_some(name)
    })
}

/// The places of an input's name itself, without the marks around it.
fn input_spans(state: &State, file: &OpenFile, name: &str) -> Vec<Span> {
    let Some(checked) = state.checked(file) else { return Vec::new() };
    let (document, dialect) = (&checked.reading.document, checked.reading.detection.dialect);
    let declared = lookup::declarations(document, dialect).into_iter();
    let places = declared.filter(|(known, _)| known == name).map(|(_, span)| span);
    let uses = lookup::placeholders(document, dialect).into_iter();
    let uses = uses.filter(|found| found.name == name).map(|found| found.span);
    let inner = |span: Span| {
        let at = span.slice(file.text()).find(name)?;
        Some(Span::new(span.start + at, span.start + at + name.len()))
    };
    places.chain(uses).filter_map(inner).collect()
}

fn rename_input(
    state: &State,
    file: &OpenFile,
    old: &str,
    new: &str,
) -> Result<WorkspaceEdit, Failure> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if new.is_empty() || !new.chars().all(is_word) || new.starts_with(|c: char| c.is_ascii_digit())
    {
        let message = format!("`{}` cannot name an input: use letters, digits and _", visible(new));
        return Err(Failure::refused(message));
    }
    let spans = input_spans(state, file, old);
    let edit = |span: &Span| TextEdit { range: file.range(*span), new_text: new.to_owned() };
    let edits: Vec<TextEdit> = spans.iter().map(edit).collect();
    if state.client.has_document_changes {
        let change = document_edit(&file.uri, Some(file.version), edits);
        return Ok(WorkspaceEdit {
            document_changes: Some(vec![change]),
            ..WorkspaceEdit::default()
        });
    }
    let changes = Some(HashMap::from([(file.uri.clone(), edits)]));
    Ok(WorkspaceEdit { changes, ..WorkspaceEdit::default() })
}

fn rename_skill(
    state: &State,
    file: &OpenFile,
    mention: &Mention,
    new: &str,
) -> Result<WorkspaceEdit, Failure> {
    let old = mention.name.as_str();
    if let Err(problem) = NameGrammar::AgentSkills.check(new) {
        return Err(Failure::refused(format!("`{}`: {problem}", visible(new))));
    }
    if new == old {
        return Ok(WorkspaceEdit::default());
    }
    let skill = renamed_file(state, file, old)?;
    let taken = state.index.named(new);
    if let Some(other) = taken.first() {
        let message = format!("there is a skill `{new}` already: {}", other.path.display());
        return Err(Failure::refused(message));
    }
    let folder = skill.parent().filter(|folder| folder.file_name().is_some_and(|name| name == old));
    let moved = folder.map(|folder| (folder, folder.with_file_name(new)));
    if let Some((_, target)) = &moved {
        if target.exists() {
            return Err(Failure::refused(format!("{} exists already", target.display())));
        }
        if !state.client.can_rename_files || !state.client.has_document_changes {
            let message = format!(
                "this editor cannot rename folders; rename {} yourself, then change the name in SKILL.md",
                skill.display()
            );
            return Err(Failure::refused(message));
        }
    }
    let mut files = mentions::find(state, old);
    files.retain_mut(|found| {
        keep_renamed(found, &skill, state.client.confirms_changes);
        !found.mentions.is_empty()
    });
    let mut changes = edits_of(state, &files, old, new);
    if !state.client.has_document_changes {
        return Ok(WorkspaceEdit { changes: Some(changes.by_uri()), ..WorkspaceEdit::default() });
    }
    let mut operations = changes.operations(state);
    if let Some((folder, target)) = moved {
        operations.push(folder_move(folder, &target)?);
    }
    let annotation = ChangeAnnotation {
        label: "Mentions in prose".to_owned(),
        needs_confirmation: Some(true),
        description: Some("These words may mean something else.".to_owned()),
    };
    let has_unsure = changes.has_unsure();
    Ok(WorkspaceEdit {
        document_changes: Some(operations),
        change_annotations: has_unsure.then(|| HashMap::from([(UNSURE.to_owned(), annotation)])),
        ..WorkspaceEdit::default()
    })
}

/// The SKILL.md that is renamed: the open file if it has the name, else the only one with it.
fn renamed_file(state: &State, file: &OpenFile, name: &str) -> Result<std::path::PathBuf, Failure> {
    if mentions::own_name(file).is_some_and(|own| own.name == name)
        && let Some(path) = &file.path
    {
        return Ok(path.clone());
    }
    match &state.index.named(name)[..] {
        [skill] => Ok(skill.path.to_path_buf()),
        [] => Err(Failure::refused(format!("no SKILL.md of the workspace is named `{name}`"))),
        several => {
            let message =
                format!("{} skills are named `{name}`; rename one in its SKILL.md", several.len());
            Err(Failure::refused(message))
        }
    }
}

/// Removes mentions that must not be changed: other skills with the same name, and words that the
/// client would change without asking the user.
fn keep_renamed(found: &mut FileMentions, skill: &Path, confirms: bool) {
    let own = mentions::name_field(&found.text).map(|own| own.span);
    let is_renamed = found.path == skill;
    found.mentions.retain(|mention| {
        let is_other_skill = !is_renamed
            && own == Some(mention.span)
            && found.path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("md"));
        !is_other_skill && (confirms || mention.certainty == Certainty::Certain)
    });
}

/// Edits by file, with the version of an open file.
struct Changes(BTreeMap<Url, (Option<i32>, Vec<GradedEdit>)>);

/// An edit, and whether its text certainly refers to the skill.
type GradedEdit = (TextEdit, Certainty);

fn edits_of(state: &State, files: &[FileMentions], old: &str, new: &str) -> Changes {
    let mut changes = BTreeMap::new();
    for found in files {
        let Ok(uri) = Url::from_file_path(&found.path) else { continue };
        let lines = Lines::new(&found.text);
        let edit = |mention: &Mention| {
            // A quoted name keeps its quotes.
            let written = mention.span.slice(&found.text);
            let at = written.find(old).unwrap_or(0);
            let start = mention.span.start + at;
            let span = Span::new(start, (start + old.len()).min(mention.span.end));
            let range = lines.range(&found.text, span, state.client.encoding);
            (TextEdit { range, new_text: new.to_owned() }, mention.certainty)
        };
        let version = state.files.get(&uri).map(|file| file.version);
        changes.insert(uri, (version, found.mentions.iter().map(edit).collect()));
    }
    Changes(changes)
}

impl Changes {
    fn by_uri(&mut self) -> HashMap<Url, Vec<TextEdit>> {
        let edits = |edits: Vec<GradedEdit>| edits.into_iter().map(|(edit, _)| edit).collect();
        let files = std::mem::take(&mut self.0).into_iter();
        files.map(|(uri, (_, changes))| (uri, edits(changes))).collect()
    }

    fn has_unsure(&self) -> bool {
        let mut edits = self.0.values().flat_map(|(_, edits)| edits);
        edits.any(|(_, certainty)| *certainty == Certainty::Probable)
    }

    fn operations(&self, state: &State) -> Vec<DocumentChange> {
        let edit = |(edit, certainty): &GradedEdit| {
            if *certainty == Certainty::Probable && state.client.confirms_changes {
                let annotation_id = UNSURE.to_owned();
                DocumentEdit::AnnotatedTextEdit(AnnotatedTextEdit {
                    annotation_id,
                    text_edit: edit.clone(),
                })
            } else {
                DocumentEdit::TextEdit(edit.clone())
            }
        };
        let change = |(uri, (version, edits)): (&Url, &(Option<i32>, Vec<_>))| {
            let text_document = OptionalVersionedTextDocumentIdentifier {
                version: *version,
                text_document_identifier: TextDocumentIdentifier { uri: uri.clone() },
            };
            let edits = edits.iter().map(edit).collect();
            DocumentChange::TextDocumentEdit(TextDocumentEdit { text_document, edits })
        };
        self.0.iter().map(change).collect()
    }
}

fn folder_move(folder: &Path, target: &Path) -> Result<DocumentChange, Failure> {
    let uri = |path: &Path| {
        Url::from_file_path(path)
            .map_err(|()| Failure::refused(format!("{} has no address", path.display())))
    };
    Ok(DocumentChange::RenameFile(RenameFile {
        old_uri: uri(folder)?,
        new_uri: uri(target)?,
        options: None,
        annotation_id: None,
    }))
}
