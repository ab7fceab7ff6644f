//! Completes fields, values, placeholders, paths and names of skills.

mod body;
mod values;

use lsp_types::{
    CompletionItem, CompletionItemKind, CompletionItemTextEdit, Documentation, Position, TextEdit,
};
use savoir_lint::{Span, visible};
use savoir_skill::{Dialect, check::CheckedSkill};

use crate::{
    cursor::{self, Cursor, CursorContext},
    file_kind::FileKind,
    limits::MAX_COMPLETIONS,
    open_file::OpenFile,
    schema::{self, FieldDocs, Step},
    state::State,
};

/// A proposal, before it becomes an item of the protocol.
#[derive(Clone, Debug, Default)]
pub(crate) struct Proposal {
    pub(crate) label: String,
    /// The text that is inserted, if it is not the label.
    pub(crate) insert: Option<String>,
    pub(crate) kind: Option<CompletionItemKind>,
    pub(crate) detail: Option<String>,
    pub(crate) docs: Option<String>,
    /// Proposals of a lower rank come first.
    pub(crate) rank: u8,
}

impl Proposal {
    pub(crate) fn new(label: impl Into<String>, kind: CompletionItemKind) -> Self {
        Self { label: label.into(), kind: Some(kind), ..Self::default() }
    }

    pub(crate) fn detail(self, detail: impl Into<String>) -> Self {
        Self { detail: Some(detail.into()), ..self }
    }
}

pub(crate) fn at(state: &State, file: &OpenFile, position: Position) -> Vec<CompletionItem> {
    let offset = file.offset(position);
    let found = match file.kind {
        FileKind::Skill => in_skill(state, file, offset),
        FileKind::Agent => in_agent(state, file, offset),
        FileKind::Settings => values::in_settings(state, file.text(), offset),
        FileKind::Workflow => values::in_workflow(state, file.text(), offset),
        FileKind::Evals | FileKind::Other => None,
    };
    let Some((typed, proposals)) = found else { return Vec::new() };
    let range = file.range(typed);
    let item = |proposal: Proposal| CompletionItem {
        sort_text: Some(format!("{}{}", proposal.rank, proposal.label)),
        filter_text: None,
        text_edit: Some(CompletionItemTextEdit::TextEdit(TextEdit {
            range,
            new_text: proposal.insert.unwrap_or_else(|| proposal.label.clone()),
        })),
        label: visible(&proposal.label).into_owned(),
        kind: proposal.kind,
        detail: proposal.detail,
        documentation: proposal.docs.map(Documentation::String),
        ..CompletionItem::default()
    };
    proposals.into_iter().take(MAX_COMPLETIONS).map(item).collect()
}

type Found = Option<(Span, Vec<Proposal>)>;

fn in_skill(state: &State, file: &OpenFile, offset: usize) -> Found {
    let checked = state.checked(file)?;
    let document = &checked.reading.document;
    let text = file.text();
    if let Some(block) = document.layout().block
        && let Some(cursor) = cursor::find(text, block.yaml, offset)
    {
        return Some((cursor.typed, in_frontmatter(state, &checked, &cursor, text, block.yaml)));
    }
    let is_body =
        document.layout().closed_block().is_none_or(|_| offset >= document.body_span().start);
    is_body.then(|| body::at(state, file, &checked, offset)).flatten()
}

fn in_frontmatter(
    state: &State,
    checked: &CheckedSkill,
    cursor: &Cursor,
    text: &str,
    yaml: Span,
) -> Vec<Proposal> {
    let dialect = checked.reading.detection.dialect;
    match cursor.context {
        CursorContext::Key => fields(dialect, &cursor.path, text, yaml),
        CursorContext::Value => values::of(state, checked, &cursor.path),
        CursorContext::Item => {
            let mut proposals = values::of(state, checked, &cursor.path);
            proposals.extend(fields(dialect, &cursor.path, "", Span::default()));
            proposals
        }
    }
}

/// The fields that the map at a path may have. At the top of a file in the base format, fields of
/// other systems follow, because adding such a field changes the dialect of the file.
fn fields(dialect: Dialect, path: &[Step], text: &str, yaml: Span) -> Vec<Proposal> {
    let is_top = path.is_empty();
    let has = |key: &str| {
        let mut lines = yaml.slice(text).lines();
        is_top && lines.any(|line| line.strip_prefix(key).is_some_and(|rest| rest.starts_with(':')))
    };
    let proposal = |rank: u8| {
        move |(key, docs): (&str, FieldDocs<'_>)| Proposal {
            label: key.to_owned(),
            insert: Some(format!("{key}: ")),
            kind: Some(CompletionItemKind::Field),
            detail: Some(docs.dialect.title().to_owned()),
            docs: Some(docs.description().to_owned()),
            rank: if docs.is_required && rank == 1 { 0 } else { rank },
        }
    };
    let own = schema::fields(dialect, path);
    let mut proposals: Vec<Proposal> =
        own.iter().copied().filter(|(key, _)| !has(key)).map(proposal(1)).collect();
    if is_top && [Dialect::AGENTSKILLS, Dialect::PROSE].contains(&dialect) {
        for other in Dialect::ALL.into_iter().filter(|other| *other != dialect) {
            for field in schema::fields(other, path) {
                let is_known = proposals.iter().any(|known| known.label == field.0);
                if !is_known && !has(field.0) && own.iter().all(|(key, _)| *key != field.0) {
                    proposals.push(proposal(2)(field));
                }
            }
        }
    }
    proposals
}

/// Fields of AGENT.yaml, and names of skills in its lists.
fn in_agent(state: &State, file: &OpenFile, offset: usize) -> Found {
    const KEYS: [(&str, &str); 7] = [
        ("name", "Name of the agent."),
        ("version", "Version of the agent."),
        ("description", "What the agent is for."),
        ("skills", "Skills that the agent always has."),
        ("skill_sets", "Sets of skills, of which one is active."),
        ("default_skill_set", "The set that is active unless another one is named."),
        ("model", "The model that the agent wants: default, minimum, context."),
    ];
    let text = file.text();
    let cursor = cursor::find(text, Span::new(0, text.len()), offset)?;
    let key =
        |step: &Step| matches!(step, Step::Key(key) if key == "skills" || key == "skill_sets");
    let in_skills = cursor.path.first().is_some_and(key);
    let proposals = match (cursor.context, cursor.path.last()) {
        (CursorContext::Key, None) => KEYS
            .iter()
            .map(|(key, docs)| Proposal {
                insert: Some(format!("{key}: ")),
                docs: Some((*docs).to_owned()),
                ..Proposal::new(*key, CompletionItemKind::Field)
            })
            .collect(),
        (CursorContext::Item, _) | (CursorContext::Value, Some(Step::Item)) if in_skills => {
            values::skills(state)
        }
        (CursorContext::Value, Some(Step::Key(key))) => match key.as_str() {
            "name" if in_skills => values::skills(state),
            "default" => values::models(state),
            _ => return None,
        },
        _ => return None,
    };
    Some((cursor.typed, proposals))
}
