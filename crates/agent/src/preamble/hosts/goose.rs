//! Simulates which skills Goose lists for its model.

use savoir_skill::yaml::{Node, Tree, YamlNoteKind};

use super::{Catalogue, Certainty, InstalledSkill, Rule, SkillFiles, fields, list_whole};

pub(super) const VERSION: &str = "1.34.0";

/// Fields that must not appear twice.
const READ_FIELDS: [&str; 3] = ["name", "description", "metadata"];

const fn recorded(behavior: &'static str) -> Rule {
    Rule { behavior, source: "requests of Goose 1.34.0", certainty: Certainty::Recorded }
}

pub(super) const RULES: &[Rule] = &[
    recorded("skills in subfolders are read too, also in folders whose name starts with a dot"),
    recorded("the frontmatter ends at the first `---`, even inside a line"),
    recorded(
        "a skill whose frontmatter is not valid YAML, has no name, or has a field of another type \
         is not listed",
    ),
    recorded("a missing description is empty; numbers and dates are listed as they are written"),
    recorded("of skills with the same name, that of the project is listed"),
    recorded("all descriptions are listed whole, sorted by name, whatever the context"),
    Rule {
        behavior: "of two skills of a project with the same name, the one with the first path is listed",
        source: "savoir",
        certainty: Certainty::Estimate,
    },
];

pub(super) fn read(files: &SkillFiles<'_>) -> InstalledSkill {
    let skill = InstalledSkill::new(files);
    let text = files.text.strip_prefix('\u{feff}').unwrap_or(files.text).trim_start();
    let yaml = text.strip_prefix("---").and_then(|rest| rest.split_once("---"));
    let Some((yaml, _)) = yaml else {
        return skill.hidden("it has no frontmatter");
    };
    let Some(fields) = parse(yaml.trim()) else {
        return skill.hidden("its frontmatter is not YAML that this agent reads");
    };
    let text_of = |key: &str| match fields.get(key) {
        None => Some(String::new()),
        Some(node) => node.text().map(str::to_owned),
    };
    let metadata = fields.get("metadata");
    let is_map = |node: &Node| node.is_null(fields::YAML_VERSION) || node.entries().is_some();
    let (name, description) = (text_of("name"), text_of("description"));
    let name = name.filter(|name| !name.is_empty());
    match (name, description) {
        (Some(name), Some(mut description)) if metadata.is_none_or(is_map) => {
            // Without the fence there is no line end behind the last value.
            if fields.entries().and_then(<[_]>::last).is_some_and(|last| last.key == "description")
                && description.ends_with('\n')
            {
                description.pop();
            }
            InstalledSkill { name, description, ..skill }
        }
        _ => {
            skill.hidden("it has no name, or one of its fields has a type that this agent refuses")
        }
    }
}

fn parse(yaml: &str) -> Option<Node> {
    let tree = Tree::parse(yaml).ok()?;
    let repeats = |kind| matches!(kind, YamlNoteKind::DuplicateKey { .. });
    let is_read = |name: &str| READ_FIELDS.contains(&name);
    if tree.notes.iter().any(|note| repeats(note.kind) && is_read(&note.name)) {
        return None;
    }
    tree.root.filter(|root| root.entries().is_some())
}

pub(super) fn catalogue(skills: Vec<InstalledSkill>, context: usize) -> Catalogue {
    list_whole(
        skills,
        context,
        |listed| {
            listed.sort_by(|a, b| a.name.cmp(&b.name));
        },
        |skill| format!("• {} - {}", skill.name, skill.description),
    )
}
