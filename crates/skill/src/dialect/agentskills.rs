//! Implements the agentskills.io base format: six fields, with every value read as text.

use savoir_lint::Severity;

use super::{
    Clues, Conventions, Evidence, FolderNameRule, Language, NewFile, Reader, Strictness,
    scaffold::title,
};
use crate::{
    allowed_tools,
    convert::Fields,
    document::{Document, State},
    frontmatter::{Fences, Unclosed},
    limits::MAX_DESCRIPTION_CHARS,
    name::{self, NameGrammar},
    shape::{Field, Limit, Shape, UnknownFields},
    skill::Skill,
    yaml::write::write_scalar,
};

#[derive(Debug)]
pub(super) struct AgentSkills;

/// How the base format and related dialects find the frontmatter.
pub(super) const FENCES: Fences =
    Fences { skip_blank_lines: false, exact: false, unclosed: Unclosed::Error, optional: false };

/// A list of tools in any of the common notations.
pub(super) const TOOLS: Shape =
    Shape::Either(&[Shape::Text(&[]), Shape::List(&Shape::Scalar(&[]))]);

/// Codex truncates longer descriptions; only the reference validator rejects them.
const DESCRIPTION: &[Limit] = &[Limit::warning(MAX_DESCRIPTION_CHARS, "description-truncated")];

/// The six fields.
pub(super) const KEYS: [&str; 6] =
    ["name", "description", "license", "compatibility", "metadata", "allowed-tools"];

const FIELDS: &[Field] = &[
    Field::required(
        "name",
        Shape::Name(NameGrammar::AgentSkills, Severity::Error),
        "Lower-case letters, digits and single hyphens; the same as the folder.",
    ),
    Field::required(
        "description",
        Shape::Scalar(DESCRIPTION),
        "What the skill does and when to use it.",
    ),
    Field::optional("license", Shape::Scalar(&[]), "License name or bundled license file."),
    Field::optional(
        "compatibility",
        Shape::Scalar(&[Limit::warning(500, "too-long")]),
        "What the skill needs from its environment.",
    ),
    Field::optional("metadata", Shape::Map, "Any further fields, text to text."),
    Field::optional("allowed-tools", TOOLS, "Tools that may be used without asking."),
];

impl Language for AgentSkills {
    fn id(&self) -> &'static str {
        "agentskills"
    }

    fn title(&self) -> &'static str {
        "agentskills.io"
    }

    fn about(&self) -> &'static str {
        "The base format of agentskills.io that most agents read."
    }

    fn fences(&self) -> Fences {
        FENCES
    }

    fn repairs(&self) -> bool {
        true
    }

    fn evidence(&self, clues: &Clues<'_>) -> Option<Evidence> {
        let entries = clues.document.entries();
        if entries.is_empty() {
            return None;
        }
        if clues.document.state() == State::Unreadable {
            return Some(Evidence::weak(
                14,
                "its frontmatter does not read; only single lines of it do",
            ));
        }
        match entries.iter().find(|entry| !KEYS.contains(&entry.key.as_str())) {
            None => Some(Evidence::strong(13, "all its fields are fields of the base format")),
            Some(other) => (clues.has("name") || clues.has("description")).then(|| {
                let why = format!("it has a name or description; `{}` is unknown", other.key);
                Evidence::weak(14, why)
            }),
        }
    }

    fn fields(&self, _: Option<&Document>) -> &'static [Field] {
        FIELDS
    }

    fn unknown_fields(&self) -> UnknownFields {
        UnknownFields::Typos
    }

    fn read(&self, reader: &Reader<'_>, skill: &mut Skill) {
        reader.identity(skill);
        reader.base_metadata(skill);
        skill.policy.allowed_tools = reader.tools("allowed-tools");
    }

    fn conventions(&self) -> Conventions {
        Conventions {
            folder_name: Some(FolderNameRule { form: name::canonical, ..FolderNameRule::EQUAL }),
            strictness: Strictness::TextOnly,
            ..Conventions::COMMON
        }
    }

    fn write(&self, skill: &Skill, fields: &mut Fields) {
        write_base(skill, fields);
        fields.put("policy.allowed_tools", "allowed-tools", tools_text(skill));
        fields.put("version", "metadata.version", skill.version.clone());
        fields.put("authors", "metadata.author", skill.authors.join(", "));
    }

    fn scaffold(&self, name: &str, description: &str) -> Vec<NewFile> {
        vec![NewFile::new(
            "SKILL.md",
            format!(
                "---\nname: {name}\ndescription: {}\nlicense: MIT\nmetadata:\n  version: \"0.1.0\"\n---\n\n\
                 # {}\n\n## When to use\n\nSay which requests this skill is for.\n\n\
                 ## Steps\n\n1. Say what to look at first.\n2. Say what to do with it.\n3. Say how to check the result.\n",
                write_scalar(description, self.yaml()),
                title(name)
            ),
        )]
    }
}

/// Writes name, description, license and compatibility.
pub(super) fn write_base(skill: &Skill, fields: &mut Fields) {
    fields.put("name", "name", skill.name.clone());
    fields.put("description", "description", skill.description.clone());
    fields.put("license", "license", skill.license.clone());
    fields.put("compatibility", "compatibility", skill.compatibility.clone());
}

/// Returns the allowed tools as one string, separated by blanks.
pub(super) fn tools_text(skill: &Skill) -> String {
    let grants = skill.policy.allowed_tools.as_deref().unwrap_or_default();
    allowed_tools::join(grants)
}
