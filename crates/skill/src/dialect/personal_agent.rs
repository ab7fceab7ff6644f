//! Implements the dialect of Personal Agent: the portable format with `when to use` hints, forking,
//! and an enforced allow list.

mod lifecycle;
mod portable;

use std::borrow::Cow;

use savoir_lint::{Diagnostic, Edit, Fix, Severity};

use super::{
    Clues, Conventions, Evidence, FolderNameRule, Language, NewFile, Reader,
    agentskills::{TOOLS, tools_text, write_base},
    scaffold::title,
};
use crate::{
    convert::Fields,
    document::Document,
    frontmatter::{Fences, Unclosed},
    limits::MAX_DESCRIPTION_CHARS,
    name,
    shape::{Field, Limit, Shape},
    skill::{Mode, Skill},
    yaml::{YamlVersion, write::write_scalar},
};

pub use lifecycle::{CurationInfo, Lifecycle, Provenance, preamble_line};
pub use portable::{
    add_description, derive_handle, has_description, prepare_export, prepare_import, repair_fences,
};

#[derive(Debug)]
pub(super) struct PersonalAgent;

const FIELDS: &[Field] = &[
    Field::optional(
        "name",
        Shape::Scalar(&[]),
        "Handle; turned into lower-case words with hyphens.",
    ),
    Field::advised(
        "description",
        Shape::Scalar(&[Limit::warning(MAX_DESCRIPTION_CHARS, "description-truncated")]),
        "One line that the agent always sees.",
    ),
    Field::optional("when_to_use", Shape::Scalar(&[]), "A richer hint for when to use it."),
    Field::optional("when-to-use", Shape::Scalar(&[]), "The same as `when_to_use`."),
    Field::optional("allowed-tools", TOOLS, "Tools that may be used; enforced."),
    Field::optional("allowed_tools", TOOLS, "The same as `allowed-tools`."),
    Field::optional("context", Shape::Scalar(&[]), "`fork` runs it in a sub-agent."),
    Field::optional("context_fork", Shape::Bool, "The same as `context: fork`."),
    Field::optional("metadata", Shape::Map, "Any further fields, preserved unchanged."),
    Field::optional("license", Shape::Scalar(&[]), "License name."),
    Field::optional("compatibility", Shape::Scalar(&[]), "What the skill needs."),
];

impl Language for PersonalAgent {
    fn id(&self) -> &'static str {
        "personal-agent"
    }

    fn title(&self) -> &'static str {
        "Personal Agent"
    }

    fn about(&self) -> &'static str {
        "Personal Agent's portable skills with an enforced allow-list."
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["pa"]
    }

    fn yaml(&self) -> YamlVersion {
        YamlVersion::V1_1
    }

    fn fences(&self) -> Fences {
        Fences { skip_blank_lines: true, exact: false, unclosed: Unclosed::Body, optional: true }
    }

    fn evidence(&self, clues: &Clues<'_>) -> Option<Evidence> {
        let key = clues.first_of(&["when-to-use", "allowed_tools", "context_fork"])?;
        Some(Evidence::weak(12, format!("it has `{key}`")))
    }

    fn fields(&self, _: Option<&Document>) -> &'static [Field] {
        FIELDS
    }

    fn read(&self, reader: &Reader<'_>, skill: &mut Skill) {
        if skill.mode == Mode::Prose {
            super::prose::Prose.read(reader, skill);
            return;
        }
        reader.identity(skill);
        reader.base_metadata(skill);
        let folder = reader.folder.and_then(|folder| folder.name()).and_then(name::slugify);
        skill.name = name::slugify(&skill.name).or(folder).unwrap_or_default();
        skill.when_to_use = reader.text("when_to_use").or_else(|| reader.text("when-to-use"));
        skill.policy.allowed_tools =
            reader.tools("allowed-tools").or_else(|| reader.tools("allowed_tools"));
        skill.policy.context_fork = reader.text("context").as_deref() == Some("fork")
            || reader.boolean("context_fork").unwrap_or(false);
    }

    fn check(&self, reader: &Reader<'_>, _: &Skill, found: &mut Vec<Diagnostic>) {
        let Some(node) = reader.node("name") else { return };
        let text = node.text().unwrap_or_default();
        if let Some(slug) = name::slugify(text).filter(|slug| slug != text) {
            found.push(
                Diagnostic::warning(
                    "invalid-name",
                    node.span,
                    format!("`{text}` is read as `{slug}`"),
                )
                .field("name")
                .help(format!("write `{slug}`"))
                .fix(Fix::unsafe_edits(vec![Edit::replace(node.span, slug)])),
            );
        }
    }

    fn conventions(&self) -> Conventions {
        let folder_name = FolderNameRule {
            severity: Severity::Warning,
            form: |text| name::slugify(text).map_or(Cow::Borrowed(text), Cow::Owned),
            ..FolderNameRule::EQUAL
        };
        Conventions { folder_name: Some(folder_name), ..Conventions::COMMON }
    }

    fn write(&self, skill: &Skill, fields: &mut Fields) {
        // Fields are in the order in which Personal Agent exports them.
        fields.put("name", "name", skill.name.clone());
        fields.put("description", "description", skill.description.clone());
        fields.put("when_to_use", "when_to_use", skill.when_to_use.clone());
        let mut base = Fields::default();
        write_base(skill, &mut base);
        fields.written.extend(
            base.written
                .into_iter()
                .skip_while(|field| field.path != "license" && field.path != "compatibility"),
        );
        fields.put("policy.allowed_tools", "allowed-tools", tools_text(skill));
        if skill.policy.context_fork {
            fields.put("policy.context_fork", "context", "fork");
        }
        fields.put("version", "metadata.version", skill.version.clone());
        fields.put("authors", "metadata.author", skill.authors.join(", "));
    }

    fn description_limit(&self) -> Option<usize> {
        Some(MAX_DESCRIPTION_CHARS)
    }

    fn scaffold(&self, name: &str, description: &str) -> Vec<NewFile> {
        let text = format!(
            "---\nname: {name}\ndescription: {}\nwhen-to-use: When the user asks for it by name.\n\
             allowed-tools: read_file web_search\nmetadata:\n  version: \"0.1.0\"\n---\n\n# {}\n\n\
             1. Say what to look at first.\n2. Say what to do with it.\n3. Say how to check the result.\n",
            write_scalar(description, self.yaml()),
            title(name)
        );
        vec![NewFile::new("SKILL.md", text)]
    }
}
