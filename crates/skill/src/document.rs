//! Represents a SKILL.md as text with its frontmatter tree and body.
//!
//! The text is authoritative: every change is an [`Edit`] of it, and an unchanged document is the
//! identical file.

use std::sync::OnceLock;

use savoir_lint::{Diagnostic, Edit, Fix, Safety, Severity, Source, Span};

use crate::{
    edit::EditedText,
    frontmatter::{Block, Fences, Layout, Unclosed},
    limits,
    markdown::Outline,
    repair::{self, Repair, RepairedYaml},
    yaml::{
        Entry, ErrorKind, Node, NodeData, Style, Tree, YamlError, YamlNote, YamlNoteKind,
        YamlVersion,
    },
};

/// How well the frontmatter could be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The file has no frontmatter.
    Absent,
    /// The frontmatter is valid as written.
    Clean,
    /// The frontmatter is valid after repairs; each repair is among the problems.
    Repaired,
    /// The frontmatter cannot be parsed; at most `name` and `description` were read line by line.
    Unreadable,
}

/// A parsed SKILL.md: the source text and the positions of its parts.
#[derive(Debug, Clone)]
pub struct Document {
    source: Source,
    layout: Layout,
    fields: Option<Node>,
    state: State,
    problems: Vec<Diagnostic>,
    outline: OnceLock<Outline>,
}

impl Document {
    /// Parses a file whose dialect is not known yet.
    ///
    /// ```
    /// use savoir_skill::{Document, Source};
    ///
    /// let source = Source::from_bytes(b"---\nname: demo\n---\n# Hello\n".to_vec())?;
    /// let document = Document::parse(source);
    /// assert_eq!(document.field("name").and_then(|name| name.text()), Some("demo"));
    /// assert_eq!(document.body(), "# Hello\n");
    /// # Ok::<(), savoir_skill::SourceError>(())
    /// ```
    pub fn parse(source: Source) -> Self {
        Self::parse_with(source, Fences::LENIENT)
    }

    /// Parses a file with the fence rules of a dialect.
    pub fn parse_with(source: Source, fences: Fences) -> Self {
        let layout = Layout::new(source.text(), fences);
        let mut document = Self {
            source,
            layout,
            fields: None,
            state: State::Absent,
            problems: Vec::new(),
            outline: OnceLock::new(),
        };
        match layout.block {
            Some(block) if block.close.is_some() => document.read_block(block),
            Some(block) => document.read_unclosed(block, fences),
            None if !fences.optional => document.find_misplaced_block(fences),
            None => {}
        }
        document
    }

    /// The whole text of the file.
    pub fn text(&self) -> &str {
        self.source.text()
    }

    /// The source, which converts offsets to lines and columns.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// Returns the source and drops the parsed parts.
    pub fn into_source(self) -> Source {
        self.source
    }

    /// The positions of frontmatter and body.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// How well the frontmatter could be parsed.
    pub fn state(&self) -> State {
        self.state
    }

    /// Whether the frontmatter is valid, or its errors have only one meaning, so that lenient readers
    /// accept it.
    pub fn is_readable(&self) -> bool {
        matches!(self.state, State::Clean | State::Repaired)
            && self.problems.iter().all(|problem| !problem.is_error() || has_safe_fix(problem))
    }

    /// The frontmatter as a map.
    pub fn fields(&self) -> Option<&Node> {
        self.fields.as_ref()
    }

    /// The entries of the frontmatter, in the order of the file.
    pub fn entries(&self) -> &[Entry] {
        self.fields.as_ref().and_then(Node::entries).unwrap_or_default()
    }

    /// The value of a top-level field.
    pub fn field(&self, key: &str) -> Option<&Node> {
        self.fields.as_ref()?.get(key)
    }

    /// The byte range of the body.
    pub fn body_span(&self) -> Span {
        self.layout.body
    }

    /// The text after the frontmatter, unchanged.
    pub fn body(&self) -> &str {
        self.layout.body.slice(self.source.text())
    }

    /// Headings, code fences and links of the body.
    pub fn outline(&self) -> &Outline {
        self.outline.get_or_init(|| Outline::new(self.source.text(), self.layout.body))
    }

    /// The problems found while parsing the frontmatter.
    pub fn problems(&self) -> &[Diagnostic] {
        &self.problems
    }

    /// The position for findings about the whole frontmatter: its opening fence, else the start.
    pub fn head_span(&self) -> Span {
        self.layout.block.map_or(Span::at(self.layout.bom), |block| block.open)
    }

    /// The whole lines of a top-level entry: its key, its value, and comments before the key.
    pub fn entry_lines(&self, key: &str) -> Option<Span> {
        let block = self.layout.closed_block()?;
        let entries = self.entries();
        let index = entries.iter().position(|entry| entry.key == key)?;
        let text = self.source.text();
        let start_of = |entry: &Entry| lines_before(text, block.yaml.start, entry.key_span.start);
        let start = start_of(&entries[index]);
        let end = entries.get(index + 1).map_or(block.yaml.end, start_of);
        Some(Span::new(start, end.max(start)))
    }

    fn read_block(&mut self, block: Block) {
        self.fence_blanks(block);
        if block.yaml.len() > limits::MAX_FRONTMATTER_BYTES {
            self.state = State::Unreadable;
            let message = format!(
                "the frontmatter has {} bytes, the limit is {}",
                block.yaml.len(),
                limits::MAX_FRONTMATTER_BYTES
            );
            let problem = Diagnostic::error("frontmatter-too-large", block.open, message)
                .help("move long text into the body or into a file of the skill");
            self.problems.push(problem);
            return;
        }
        let yaml = block.yaml.slice(self.source.text());
        let offset = block.yaml.start;
        match Tree::parse(yaml) {
            Ok(tree) => {
                if let Some(repaired) = repair::repair_pasted_spaces(yaml, &tree) {
                    let before = self.problems.len();
                    self.accept_repaired(repaired, offset);
                    // Other readers accept this frontmatter, so the problems are only warnings.
                    for problem in &mut self.problems[before..] {
                        problem.severity = Severity::Warning;
                    }
                    return;
                }
                self.state = State::Clean;
                self.accept(tree, &|span: Span| span.shifted(offset), &[]);
            }
            Err(error) if error.kind == ErrorKind::Syntax => {
                match repair::repair_yaml(yaml, &error) {
                    Some(repaired) => self.accept_repaired(repaired, offset),
                    None => self.mark_unreadable(&error, block.yaml),
                }
            }
            Err(error) => self.mark_unreadable(&error, block.yaml),
        }
    }

    /// Parses the text that results from a repair of the fences.
    fn read_repaired(&mut self, repair: &Repair, fences: Fences) {
        let applied = EditedText::new(self.source.text(), &repair.edits);
        let repaired = Self::parse_with(Source::new(applied.text.clone()), fences);
        self.problems.push(problem_of(repair));
        self.state =
            if repaired.state == State::Unreadable { repaired.state } else { State::Repaired };
        self.layout.body = applied.original_span(repaired.layout.body);
        self.fields = repaired.fields;
        if let Some(fields) = &mut self.fields {
            fields.map_spans(&|span| applied.original_span(span));
        }
        for mut problem in repaired.problems {
            problem.span = applied.original_span(problem.span);
            // The edits of this fix refer to the repaired text; it is offered again once the fences
            // are fixed.
            problem.fix = None;
            self.problems.push(problem);
        }
    }

    fn read_unclosed(&mut self, block: Block, fences: Fences) {
        let repair = repair::close_block(self.source.text(), &block);
        match (fences.unclosed, repair) {
            (Unclosed::Body, repair) => {
                let mut problem = Diagnostic::warning(
                    "unclosed-frontmatter",
                    block.open,
                    "the frontmatter is never closed, so the whole file is body",
                )
                .help("add a line `---` after the last field");
                // Some systems read the whole file as text, and adding a fence would change that.
                problem.fix = repair.map(|repair| Fix::unsafe_edits(repair.edits));
                self.problems.push(problem);
            }
            (Unclosed::Error, Some(repair)) => self.read_repaired(&repair, fences),
            (Unclosed::Error, None) => {
                self.state = State::Unreadable;
                let message = "Missing closing '---': the frontmatter is never closed";
                let problem = Diagnostic::error("unclosed-frontmatter", block.open, message)
                    .help("add a line `---` after the last field");
                self.problems.push(problem);
            }
        }
    }

    fn find_misplaced_block(&mut self, fences: Fences) {
        if let Some(repair) = repair::find_block(self.source.text(), self.layout.bom) {
            self.read_repaired(&repair, fences);
        }
    }

    fn fence_blanks(&mut self, block: Block) {
        for fence in [Some(block.open), block.close].into_iter().flatten() {
            if fence.len() > 3 {
                let blanks = Span::new(fence.start + 3, fence.end);
                let message = "there are spaces after the fence";
                let problem = Diagnostic::warning("fence-trailing-blank", blanks, message)
                    .help("a fence is `---` and nothing else")
                    .fix(Fix::safe(vec![Edit::delete(blanks)]));
                self.problems.push(problem);
            }
        }
    }

    fn accept_repaired(&mut self, repaired: RepairedYaml, offset: usize) {
        self.state = State::Repaired;
        let back = |span: Span| repaired.applied.original_span(span).shifted(offset);
        self.accept(repaired.tree, &back, &shifted(repaired.repairs, offset));
    }

    fn accept(&mut self, tree: Tree, place: &impl Fn(Span) -> Span, repairs: &[Repair]) {
        self.problems.extend(repairs.iter().map(problem_of));
        let mut root = tree.root;
        if let Some(root) = &mut root {
            root.map_spans(place);
        }
        match root {
            Some(root) if root.entries().is_some() => self.fields = Some(root),
            // `~` is null in both versions of YAML, so it counts as empty.
            Some(root) if root.is_null(YamlVersion::V1_2) => {}
            Some(root) => {
                let message = "the frontmatter is not a map of fields";
                let problem = Diagnostic::error("frontmatter-not-map", root.span, message)
                    .help("write `key: value` lines between the fences");
                self.problems.push(problem);
                self.state = State::Unreadable;
            }
            None => {}
        }
        let mut seen: Vec<YamlNoteKind> = Vec::new();
        for note in tree.notes {
            // An alias and its anchor are reported once.
            let kind =
                if note.kind == YamlNoteKind::Alias { YamlNoteKind::Anchor } else { note.kind };
            let repeats = !matches!(kind, YamlNoteKind::DuplicateKey { .. });
            if repeats && seen.contains(&kind) {
                continue;
            }
            seen.push(kind);
            let span = place(note.span);
            let problem = self.problem_of_note(&note, span);
            self.problems.push(problem);
        }
    }

    fn problem_of_note(&self, note: &YamlNote, span: Span) -> Diagnostic {
        let name = &note.name;
        match note.kind {
            YamlNoteKind::Anchor | YamlNoteKind::Alias => {
                Diagnostic::warning("yaml-alias", span, "anchors and aliases are not portable")
                    .help("write the value out where it is used")
            }
            YamlNoteKind::MergeKey => {
                Diagnostic::warning("yaml-merge-key", span, "the merge key `<<` is not portable")
                    .help("write the merged fields out")
            }
            YamlNoteKind::Tag => {
                Diagnostic::warning("yaml-tag", span, format!("the tag `{name}` is not portable"))
                    .help("remove the tag; quote the value if it must stay text")
            }
            YamlNoteKind::SecondDocument => {
                Diagnostic::error("invalid-yaml", span, "a second YAML document starts here")
                    .help("keep one document between the fences")
            }
            YamlNoteKind::DuplicateKey { same } => self.duplicate_key(name, span, same),
        }
    }

    fn duplicate_key(&self, name: &str, span: Span, same: bool) -> Diagnostic {
        let problem =
            Diagnostic::error("duplicate-key", span, format!("the field `{name}` appears twice"))
                .field(name.to_owned())
                .help(if same {
                    "both have the same value: remove one"
                } else {
                    "readers disagree on which one to use: keep one"
                });
        let twin = self.entries().iter().rfind(|entry| entry.key_span == span);
        match (same, twin) {
            (true, Some(twin)) => {
                let text = self.source.text();
                let block = self.layout.block.map_or(0, |block| block.yaml.start);
                let start = text[block..span.start].rfind('\n').map_or(block, |at| block + at + 1);
                let value_end = twin.value.span.end.max(span.end);
                // A block scalar includes its line ending, at any depth of the value.
                let end = if text[..value_end].ends_with('\n') {
                    value_end
                } else {
                    text[value_end..].find('\n').map_or(text.len(), |at| value_end + at + 1)
                };
                problem.fix(Fix::safe(vec![Edit::delete(Span::new(start, end))]))
            }
            _ => problem,
        }
    }

    /// Reports YAML that cannot be parsed, and reads `name` and `description` line by line.
    fn mark_unreadable(&mut self, error: &YamlError, block: Span) {
        self.state = State::Unreadable;
        let at = block.start + error.at;
        let end = self.source.text()[at..].chars().next().map_or(at, |c| at + c.len_utf8());
        let (code, help) = match error.kind {
            ErrorKind::Syntax => {
                ("invalid-yaml", "fix the YAML here; quotes around a value help most often")
            }
            ErrorKind::TooDeep => ("yaml-too-deep", "flatten the structure"),
            ErrorKind::TooManyNodes => (
                "yaml-too-large",
                "move data into a file of the skill; do not multiply it with aliases",
            ),
            ErrorKind::BadKey if is_template(block.slice(self.source.text()), error.at) => {
                ("yaml-key", "fill in the template, or put it in quotes")
            }
            ErrorKind::BadKey => ("yaml-key", "use a word as the key, in quotes if necessary"),
            ErrorKind::BadAlias => {
                ("yaml-alias", "write the value out, or quote it if the `*` is text")
            }
        };
        let problem = Diagnostic::error(code, Span::new(at, end), error.message.clone()).help(help);
        self.problems.push(problem);
        if error.kind != ErrorKind::Syntax {
            return;
        }
        let entries = repair::read_name_and_description(block.slice(self.source.text()))
            .into_iter()
            .map(|(key, value)| Entry {
                key,
                key_span: Span::at(block.start),
                value: Node {
                    span: Span::at(block.start),
                    data: NodeData::Scalar {
                        text: value.as_str().unwrap_or_default().to_owned(),
                        style: Style::DoubleQuoted,
                    },
                    tag: None,
                },
            })
            .collect();
        self.fields =
            Some(Node { span: block, data: NodeData::Mapping { entries, flow: false }, tag: None });
    }
}

/// Whether the map at `at` is the inner one of `{{name}}`.
fn is_template(yaml: &str, at: usize) -> bool {
    at.checked_sub(1).and_then(|at| yaml.get(at..)).is_some_and(|rest| rest.starts_with("{{"))
}

/// Whether a problem can be repaired without a guess.
pub(crate) fn has_safe_fix(problem: &Diagnostic) -> bool {
    problem.fix.as_ref().is_some_and(|fix| fix.safety == Safety::Safe)
}

fn problem_of(repair: &Repair) -> Diagnostic {
    let fix = Fix { safety: repair.safety, edits: repair.edits.clone() };
    Diagnostic::error(repair.code, repair.span, repair.message.clone()).help(repair.help).fix(fix)
}

fn shifted(mut repairs: Vec<Repair>, offset: usize) -> Vec<Repair> {
    for repair in &mut repairs {
        repair.span = repair.span.shifted(offset);
        for edit in &mut repair.edits {
            edit.span = edit.span.shifted(offset);
        }
    }
    repairs
}

/// Returns the start of the line at `at`, including the comment lines before it.
fn lines_before(text: &str, floor: usize, at: usize) -> usize {
    let line_start =
        |at: usize| text[floor..at].rfind('\n').map_or(floor, |found| floor + found + 1);
    let mut start = line_start(at);
    while start > floor {
        let above = line_start(start - 1);
        if !text[above..start].starts_with('#') {
            break;
        }
        start = above;
    }
    start
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(text: &str) -> Document {
        Document::parse(Source::new(text.into()))
    }

    fn codes(document: &Document) -> Vec<&'static str> {
        document.problems().iter().map(|problem| problem.code).collect()
    }

    #[test]
    fn a_repaired_document_keeps_places_in_the_original() {
        let text = "---\nname: a\ndescription: Use for: x\nz: last\n---\nbody\n";
        let document = document(text);
        assert_eq!(document.state(), State::Repaired);
        assert_eq!(codes(&document), ["unquoted-colon"]);
        assert_eq!(document.field("z").unwrap().span.slice(text), "last");
        assert_eq!(document.field("description").unwrap().text(), Some("Use for: x"));
    }

    #[test]
    fn a_missing_closing_fence_is_found() {
        let text = "---\nname: a\ndescription: b\n\n# Title\n";
        let document = document(text);
        assert_eq!(codes(&document), ["unclosed-frontmatter"]);
        assert_eq!(document.field("description").unwrap().span.slice(text), "b");
        assert_eq!(document.body(), "\n# Title\n");
    }

    #[test]
    fn html_spaces_are_not_anchors() {
        let document = document("---\nmetadata:\n&nbsp; language: id\n---\n");
        assert_eq!(codes(&document), ["html-space"]);
        assert_eq!(
            document.fields().unwrap().path("metadata.language").unwrap().text(),
            Some("id")
        );
    }

    #[test]
    fn a_duplicate_with_the_same_value_can_go() {
        let text = "---\na: 1\nb: 2\na: 1\n---\n";
        let document = document(text);
        let fix = document.problems()[0].fix.clone().unwrap();
        assert_eq!(crate::edit::apply(text, &fix.edits), "---\na: 1\nb: 2\n---\n");
    }

    #[test]
    fn a_duplicate_that_ends_in_a_block_leaves_the_fence_alone() {
        let text = "---\nm:\n  k: |\n    v\nm:\n  k: |\n    v\n---\nb\n";
        let document = document(text);
        let fix = document.problems()[0].fix.clone().unwrap();
        assert_eq!(crate::edit::apply(text, &fix.edits), "---\nm:\n  k: |\n    v\n---\nb\n");
    }

    #[test]
    fn a_wrapped_file_has_no_fence_in_its_body() {
        let document = document("```skill\n---\nname: a\n---\nbody\n```\n");
        assert_eq!(document.body(), "body\n");
    }

    #[test]
    fn unreadable_frontmatter_keeps_the_name() {
        let document = document("---\nname: a\nx: {a: [}\n  b\n---\n");
        assert_eq!(document.state(), State::Unreadable);
        assert_eq!(document.field("name").unwrap().text(), Some("a"));
        assert_eq!(codes(&document), ["invalid-yaml"]);
    }

    #[test]
    fn entry_lines_take_their_comments_along() {
        let text = "---\na: 1\n# about b\nb:\n  - x\nc: 2\n---\n";
        let document = document(text);
        assert_eq!(document.entry_lines("b").unwrap().slice(text), "# about b\nb:\n  - x\n");
        assert_eq!(document.entry_lines("c").unwrap().slice(text), "c: 2\n");
    }
}
