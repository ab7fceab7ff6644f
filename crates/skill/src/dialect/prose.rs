//! Implements Markdown without frontmatter: the whole file is the instruction.

use super::{Clues, Evidence, Language, NewFile, Reader, scaffold::title};
use crate::{
    convert::Fields,
    document::{Document, State},
    frontmatter::{Fences, Unclosed},
    name,
    shape::Field,
    skill::{Mode, Skill},
};

#[derive(Debug)]
pub(super) struct Prose;

impl Language for Prose {
    fn id(&self) -> &'static str {
        "prose"
    }

    fn title(&self) -> &'static str {
        "prose"
    }

    fn about(&self) -> &'static str {
        "Markdown without frontmatter, which an agent reads and interprets."
    }

    fn fences(&self) -> Fences {
        Fences { skip_blank_lines: true, exact: true, unclosed: Unclosed::Error, optional: true }
    }

    fn evidence(&self, clues: &Clues<'_>) -> Option<Evidence> {
        let document = clues.document;
        let empty = document.text().trim().is_empty();
        let bare = document.state() == State::Absent && document.layout().block.is_none();
        (bare && !empty).then(|| Evidence::weak(2, "it has no frontmatter"))
    }

    fn fields(&self, _: Option<&Document>) -> &'static [Field] {
        &[]
    }

    fn shapes(&self) -> Vec<&'static [Field]> {
        Vec::new()
    }

    fn read(&self, reader: &Reader<'_>, skill: &mut Skill) {
        skill.mode = Mode::Prose;
        let outline = reader.document.outline();
        let text = reader.document.text();
        let heading = outline.headings.iter().find(|heading| heading.level == 1);
        let heading = heading.map(|heading| heading.title.slice(text).to_owned());
        let folder_name = reader.folder.and_then(|folder| folder.name()).map(str::to_owned);
        skill.name = folder_name
            .or_else(|| heading.as_deref().and_then(name::slugify))
            .unwrap_or_else(|| "skill".to_owned());
        skill.description = first_paragraph(reader.document.body()).or(heading).unwrap_or_default();
    }

    /// Prose has no fields; the converter stores the frontmatter in a comment.
    fn write(&self, _: &Skill, _: &mut Fields) {}

    fn scaffold(&self, name: &str, description: &str) -> Vec<NewFile> {
        let text = format!(
            "# {}\n\n{description}\n\n1. Say what to look at first.\n2. Say what to do with it.\n\
             3. Say how to check the result.\n",
            title(name)
        );
        vec![NewFile::new("SKILL.md", text)]
    }
}

/// Returns the first paragraph that is not a heading, as one line.
pub(super) fn first_paragraph(body: &str) -> Option<String> {
    let mut words = Vec::new();
    for line in body.lines() {
        let line = line.trim();
        let plain = !line.is_empty() && !line.starts_with(['#', '<', '`', '|', '>', '-', '*', '!']);
        match (plain, words.is_empty()) {
            (true, _) => words.extend(line.split_whitespace()),
            (false, false) => break,
            (false, true) => {}
        }
    }
    let text = words.join(" ");
    let cut: String = text.chars().take(crate::limits::MAX_DESCRIPTION_CHARS).collect();
    (!cut.is_empty()).then_some(cut)
}
