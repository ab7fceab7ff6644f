//! Reads a file into a [`Skill`]: detects the dialect, reads the fields, reports problems.

use savoir_lint::{Diagnostic, Severity, Source};

use crate::{
    dialect::{self, Detection, Dialect, Reader, Strength},
    document::{Document, State, has_safe_fix},
    folder::Folder,
    frontmatter::{Fences, Layout, Unclosed},
    shape,
    skill::{Mode, Skill},
    yaml::YamlVersion,
};

/// The result of reading a file.
#[derive(Debug, Clone)]
pub struct Reading {
    /// The parsed text.
    pub document: Document,
    /// The skill that the file describes.
    pub skill: Skill,
    /// The dialect of the file, and why it was chosen.
    pub detection: Detection,
    /// The problems, in the order in which they were found.
    pub diagnostics: Vec<Diagnostic>,
}

impl Reading {
    /// Whether no error was found.
    pub fn is_valid(&self) -> bool {
        !self.diagnostics.iter().any(Diagnostic::is_error)
    }

    /// The first error.
    pub fn error(&self) -> Option<&Diagnostic> {
        self.diagnostics.iter().find(|diagnostic| diagnostic.is_error())
    }

    /// Whether the skill can be used: it has no error, or its dialect is read leniently by agents
    /// and they would load it. Lenient readers repair errors with an obvious meaning and accept
    /// fields as they are, except fields that restrict the skill.
    pub fn is_usable(&self) -> bool {
        let lenient = self.detection.dialect.language().repairs();
        self.document.state() != State::Unreadable
            && self.diagnostics.iter().filter(|found| found.is_error()).all(|found| {
                lenient
                    && if self.document.problems().contains(found) {
                        has_safe_fix(found)
                    } else {
                        is_unrestricting_field(found) && !has_wrong_name_type(found)
                            || found.code == "unknown-dialect"
                    }
            })
    }
}

/// Fields that restrict what a skill may do or who may start it.
const RESTRICTING_FIELDS: [&str; 4] =
    ["allowed-tools", "disallowed-tools", "disable-model-invocation", "user-invocable"];

fn is_unrestricting_field(found: &Diagnostic) -> bool {
    let field = found.field.as_deref().and_then(|field| field.split(['[', '.']).next());
    field.is_some_and(|field| !RESTRICTING_FIELDS.contains(&field))
}

/// Whether the name is not a text.
fn has_wrong_name_type(found: &Diagnostic) -> bool {
    found.code == "wrong-type" && found.field.as_deref() == Some("name")
}

/// Reads a file and detects its dialect.
///
/// ```
/// use savoir_skill::{Dialect, Source, read};
///
/// let text = "---\nname: hello\ndescription: Greets. Use when someone arrives.\n---\n# Hello\n";
/// let reading = read(Source::from_bytes(text.into())?, None);
/// assert_eq!(reading.detection.dialect, Dialect::AGENTSKILLS);
/// assert_eq!(reading.skill.name, "hello");
/// assert!(reading.is_valid());
/// # Ok::<(), savoir_skill::SourceError>(())
/// ```
pub fn read(source: Source, folder: Option<&Folder>) -> Reading {
    let document = Document::parse(source);
    let detected = dialect::detect(&document, folder.and_then(Folder::hint));
    let unknown = detected.is_none() && !document.entries().is_empty();
    let detection = detected.unwrap_or_else(fallback_detection);
    let document = reparse_for_dialect(document, detection.dialect);
    let mut reading = read_document(document, detection, folder);
    if unknown {
        // The finding below already lists the missing fields.
        reading.diagnostics.retain(|found| found.code != "missing-field");
        let found = unknown_dialect(&reading.document);
        reading.diagnostics.insert(0, found);
    }
    reading
}

/// Reads a file in a specified dialect.
pub fn read_as(source: Source, dialect: Dialect, folder: Option<&Folder>) -> Reading {
    let document = Document::parse_with(source, dialect.fences());
    let why = format!("{dialect} was asked for");
    let detection = Detection { dialect, strength: Strength::Explicit, why };
    read_document(document, detection, folder)
}

fn unknown_dialect(document: &Document) -> Diagnostic {
    let nearest = dialect::nearest(document).map(Dialect::id).join(", ");
    let message = "nothing in the frontmatter shows which system the skill is for";
    Diagnostic::error("unknown-dialect", document.head_span(), message).help(format!(
        "add `name` and `description`, or name the dialect; the nearest are {nearest}"
    ))
}

fn fallback_detection() -> Detection {
    Detection {
        dialect: Dialect::AGENTSKILLS,
        strength: Strength::Weak,
        why: "nothing in it shows the dialect, so it is checked against the base format".into(),
    }
}

fn read_document(document: Document, detection: Detection, folder: Option<&Folder>) -> Reading {
    let dialect = detection.dialect;
    let language = dialect.language();
    let mut diagnostics = document.problems().to_vec();
    let mut skill = Skill::new(dialect);
    let reader = Reader { document: &document, folder, version: dialect.yaml() };
    document.body().clone_into(&mut skill.body);
    let structured = document.fields().is_some() || document.layout().closed_block().is_some();
    skill.mode = if structured { Mode::Structured } else { Mode::Prose };
    if let Some(folder) = folder {
        skill.resources = folder.resources();
    }
    read_fields(&reader, dialect, &mut skill, &mut diagnostics);
    // An open bracket swallows the fields after it, which are there.
    if diagnostics.iter().any(|found| found.code == "unclosed-bracket") {
        diagnostics.retain(|found| found.code != "missing-field");
    }
    if document.state() == State::Clean
        || document.state() == State::Repaired
        || is_prose(&document, dialect)
    {
        language.check(&reader, &skill, &mut diagnostics);
    }
    adjust_severities(&mut diagnostics, &document, dialect);
    Reading { document, skill, detection, diagnostics }
}

/// Whether the file has no frontmatter and the dialect allows that.
fn is_prose(document: &Document, dialect: Dialect) -> bool {
    document.state() == State::Absent && dialect.fences().optional
}

/// Parses the file again if the fence rules of the dialect find other parts than the lenient rules.
/// Blanks after a fence do not count: without them the fields that identified the dialect would be
/// lost.
fn reparse_for_dialect(document: Document, dialect: Dialect) -> Document {
    if document.layout().is_exact() {
        return document;
    }
    let fences = Fences { exact: false, ..dialect.fences() };
    let layout = Layout::new(document.text(), fences);
    let unclosed = layout.block.is_some_and(|block| block.close.is_none());
    let whole_is_body = unclosed && fences.unclosed == Unclosed::Body;
    if layout.block == document.layout().block && !whole_is_body {
        return document;
    }
    Document::parse_with(document.into_source(), fences)
}

/// Sets severities as the dialect defines them.
fn adjust_severities(diagnostics: &mut [Diagnostic], document: &Document, dialect: Dialect) {
    for found in diagnostics.iter_mut() {
        match found.code {
            // Where fences must be exact, this is not a fence at all.
            "fence-trailing-blank" if dialect.fences().exact => found.severity = Severity::Error,
            // Agents load the skill and use the folder name, the text or a default instead.
            "wrong-type" | "invalid-value" if is_harmless(found, dialect) => {
                found.severity = Severity::Warning;
            }
            // YAML 1.1 parsers accept such a value.
            "quoted-indentation" if dialect.yaml() == YamlVersion::V1_1 => {
                found.severity = Severity::Warning;
            }
            _ => {}
        }
    }
    if document.state() == State::Repaired {
        // Only the repair is offered; other fixes are offered once the text parses.
        let own = document.problems().len();
        diagnostics.iter_mut().skip(own).for_each(|found| found.fix = None);
    }
}

/// Whether readers of a lenient dialect ignore an invalid value of this field. None of them accepts
/// a name or description that is not text, or a `metadata` that is not a map.
fn is_harmless(found: &Diagnostic, dialect: Dialect) -> bool {
    let needed = ["name", "description", "metadata"];
    dialect.language().repairs()
        && is_unrestricting_field(found)
        && !found.field.as_deref().is_some_and(|field| needed.contains(&field))
}

fn read_fields(
    reader: &Reader<'_>,
    dialect: Dialect,
    skill: &mut Skill,
    diagnostics: &mut Vec<Diagnostic>,
) {
    let document = reader.document;
    let language = dialect.language();
    let fields = language.fields(Some(document));
    let fences = language.fences();
    match document.state() {
        State::Unreadable => {}
        State::Absent if fences.optional => {}
        State::Absent => diagnostics.push(missing_frontmatter(document, dialect)),
        State::Clean | State::Repaired => {
            let head = document.head_span();
            let shape = (fields, language.unknown_fields());
            shape::check(document.fields(), head, shape, dialect.yaml(), diagnostics);
        }
    }
    for entry in document.entries() {
        if fields.iter().all(|field| field.key != entry.key)
            && !skill.extra.contains_key(&entry.key)
        {
            skill.extra.insert(entry.key.clone(), entry.value.to_value(reader.version));
        }
    }
    language.read(reader, skill);
}

fn missing_frontmatter(document: &Document, dialect: Dialect) -> Diagnostic {
    let empty = document.text().trim().is_empty();
    let message = if empty {
        "the file is empty".to_owned()
    } else {
        format!("Missing opening '---': {} needs frontmatter", dialect.title())
    };
    let code = if empty { "empty-file" } else { "missing-frontmatter" };
    let mut found = Diagnostic::error(code, document.head_span(), message)
        .help("start the file with `---`, the fields, and `---`");
    if !empty {
        found.severity = dialect.language().without_frontmatter();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::Hint;

    fn reading(text: &str) -> Reading {
        read(Source::new(text.into()), None)
    }

    #[test]
    fn blanks_after_a_fence_do_not_take_the_fields_away() {
        for text in [
            "--- \nname: c\ndescription: d\nruntime: {type: x}\n---\n# Body\n",
            "---\nname: c\ndescription: d\nruntime: {type: x}\n--- \n# Body\n",
        ] {
            let reading = reading(text);
            assert_eq!(reading.detection.dialect, Dialect::SKILLRT);
            assert_eq!(reading.skill.description, "d");
            let codes: Vec<_> = reading.diagnostics.iter().map(|found| found.code).collect();
            assert!(codes.contains(&"fence-trailing-blank"), "{codes:?}");
        }
    }

    #[test]
    fn a_guess_is_not_used() {
        let safe = reading("---\nname: c\ndescription: Use for: this\n---\n");
        assert!(!safe.is_valid() && safe.is_usable());
        let guess = reading("---\nname: c\ndescription: d\ntags: [a, b\n---\n");
        assert!(!guess.is_valid() && !guess.is_usable());
        let forbidden = reading("---\nuser_id: u\ndescription: Use for: this\n---\n");
        assert!(!forbidden.is_usable(), "the specifications forbid repairs");
    }

    #[test]
    fn files_that_agents_accept_are_usable() {
        let long = "x".repeat(2000);
        for text in [
            format!("---\nname: c\ndescription: {long}\n---\n"),
            "---\nname: My Skill\ndescription: d\nversion: 26.08.00\nfoo: bar\n---\n".to_owned(),
            "---\nname: c\n---\n".to_owned(),
            "---\nname: c\nmodel: x\neffort: hihg\n---\n".to_owned(),
            "---\nname: c\ndescription: d\nmetadata: {openclaw: {}}\nversion: v1\n---\n".to_owned(),
        ] {
            assert!(reading(&text).is_usable(), "{text}");
        }
        assert!(!reading("---\nname: [c]\ndescription: d\n---\n").is_usable());
        let limits = reading("---\nname: c\nmodel: x\ndisallowed-tools: {a: b}\n---\n");
        assert!(!limits.is_usable(), "what limits a skill must be understood");
    }

    #[test]
    fn claude_code_reads_a_file_without_frontmatter() {
        let hint = Hint { dialect: Dialect::CLAUDE_CODE, why: "it lies there".into() };
        let folder = Folder::in_memory(Some("demo"), Vec::new(), |_| None).with_hint(Some(hint));
        let found = read(Source::new("# Demo\n\nShows it.\n".into()), Some(&folder));
        assert_eq!(found.detection.dialect, Dialect::CLAUDE_CODE);
        assert_eq!(
            (found.skill.name.as_str(), found.skill.description.as_str()),
            ("demo", "Shows it.")
        );
        assert!(found.is_usable() && found.is_valid(), "{:?}", found.diagnostics);
        assert_eq!(found.diagnostics[0].code, "missing-frontmatter");
        let empty = read(Source::new("\n".into()), Some(&folder));
        assert!(!empty.is_usable());
    }

    #[test]
    fn readers_of_yaml_1_1_take_quotes_that_go_on_at_the_margin() {
        let text = "---\nuser_id: u\ndescription: \"x\ny\"\n---\nb\n";
        let reading = reading(text);
        assert_eq!(reading.detection.dialect, Dialect::AGENT_FLOW);
        assert!(reading.is_valid(), "{:?}", reading.diagnostics);
        assert_eq!(reading.skill.description, "x y");
    }

    #[test]
    fn unknown_dialect_is_reported() {
        let reading = reading("---\nfoo: bar\n---\nb\n");
        assert_eq!(reading.error().map(|found| found.code), Some("unknown-dialect"));
    }
}
