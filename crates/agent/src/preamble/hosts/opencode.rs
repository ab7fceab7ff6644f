//! Simulates which skills opencode lists for its model.

use savoir_skill::{
    collation,
    yaml::{Node, NodeData, Style, YamlNoteKind},
};

use super::{Catalogue, Certainty, InstalledSkill, Rule, SkillFiles, fields, list_whole};

pub(super) const VERSION: &str = "1.18.33";

const fn recorded(behavior: &'static str) -> Rule {
    Rule { behavior, source: "requests of opencode 1.18.33", certainty: Certainty::Recorded }
}

pub(super) const RULES: &[Rule] = &[
    recorded("skills in subfolders are read too, also in folders whose name starts with a dot"),
    recorded("a skill without a name or a description that is a text is not listed"),
    recorded(
        "if the frontmatter is not valid YAML, values with a colon are read as texts; if that does \
         not help, the skill is not listed",
    ),
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
    let text = files.text.strip_prefix('\u{feff}').unwrap_or(files.text);
    let Some(yaml) = fields::between_fences(text, |line| line.trim_end() == "---") else {
        return skill.hidden("it has no frontmatter");
    };
    let Some(fields) = parse(&yaml).or_else(|| parse(&with_block_values(&yaml))) else {
        return skill.hidden("its frontmatter is not YAML that this agent reads");
    };
    let get = |key: &str| fields.get(key).and_then(text_of);
    let Some(name) = get("name") else {
        return skill.hidden("it has no name that is a text");
    };
    let skill = InstalledSkill { name: name.to_owned(), ..skill };
    match get("description") {
        Some(description) => InstalledSkill { description: description.to_owned(), ..skill },
        None => skill.hidden("it has no description that is a text"),
    }
}

fn parse(yaml: &str) -> Option<Node> {
    let refused = |kind| matches!(kind, YamlNoteKind::DuplicateKey { .. } | YamlNoteKind::Tag);
    fields::strict(yaml, refused)
}

/// The text of a field; nothing if YAML 1.1 reads it as another type, such as a date.
fn text_of(node: &Node) -> Option<&str> {
    let is_plain = matches!(node.data, NodeData::Scalar { style: Style::Plain, .. });
    node.string(fields::YAML_VERSION).filter(|text| !(is_plain && is_date(text)))
}

fn is_date(text: &str) -> bool {
    let shape = text.bytes().take(10).map(|byte| if byte.is_ascii_digit() { b'0' } else { byte });
    shape.eq(*b"0000-00-00")
}

/// Writes values with a colon as blocks of text, which need no quotes.
fn with_block_values(yaml: &str) -> String {
    let line = |line: &str| match line.split_once(':') {
        Some((key, value)) if is_ambiguous(key, value.trim()) => {
            format!("{key}: |-\n  {}\n", value.trim())
        }
        _ => format!("{line}\n"),
    };
    yaml.lines().map(line).collect()
}

fn is_ambiguous(key: &str, value: &str) -> bool {
    let is_key = !key.is_empty() && !key.starts_with(char::is_whitespace);
    is_key && value.contains(':') && !value.starts_with(['"', '\'', '|', '>'])
}

pub(super) fn catalogue(skills: Vec<InstalledSkill>, context: usize) -> Catalogue {
    list_whole(
        skills,
        context,
        |listed| {
            listed.sort_by_cached_key(|skill| collation::key(&skill.name));
        },
        |skill| {
            let InstalledSkill { name, description, path, .. } = skill;
            format!(
                "<skill>\n  <name>{name}</name>\n  <description>{description}</description>\n  \
             <location>{path}</location>\n</skill>"
            )
        },
    )
}
