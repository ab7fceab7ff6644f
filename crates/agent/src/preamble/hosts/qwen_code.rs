//! Simulates which skills Qwen Code lists for its model.

use savoir_skill::{
    collation,
    yaml::{Node, Tree, YamlNoteKind},
};

use super::{
    Catalogue, Certainty, InstalledSkill, Rule, SkillFiles, SkillScope, fields, list_whole,
};

pub(super) const VERSION: &str = "0.24.4";

const fn recorded(behavior: &'static str) -> Rule {
    Rule { behavior, source: "requests of Qwen Code 0.24.4", certainty: Certainty::Recorded }
}

pub(super) const RULES: &[Rule] = &[
    recorded("only folders directly in a skill folder are read"),
    recorded(
        "a name has only letters, digits and `_.:-`; a skill with another name or without a \
         description is not listed",
    ),
    recorded(
        "if the frontmatter is not valid YAML, the lines with a key at their start are read as they \
         are written",
    ),
    recorded("only the first line of a description is listed, without blanks around it"),
    recorded("disable-model-invocation: true hides a skill from the model"),
    recorded("paths hides a skill until a matching file is used, unless it is an empty list"),
    recorded("of skills with the same name, that of the project counts, even if it is hidden"),
    recorded("descriptions are not cut, whatever their length and the context"),
    recorded("the skills are sorted by name, among 14 built-in skills"),
];

pub(super) fn read(files: &SkillFiles<'_>) -> InstalledSkill {
    let skill = InstalledSkill::new(files);
    if !files.root.is_empty() && files.folders_in_root().len() != 1 {
        return skill.hidden("this agent reads only folders directly in its skill folder");
    }
    let text = files.text.strip_prefix('\u{feff}').unwrap_or(files.text);
    let Some(yaml) = fields::between_fences(text, |line| line == "---") else {
        return skill.hidden("it has no frontmatter");
    };
    let Some(found) = parse(&yaml).or_else(|| parse_lines(&yaml)) else {
        return skill.hidden("its frontmatter is not YAML that this agent reads");
    };
    let get = |key: &str| fields::last(&found, key);
    let name = get("name").and_then(fields::printed_text).unwrap_or_default();
    if !fields::is_label(&name) {
        return skill
            .hidden("its name is missing, or has other characters than letters, digits and _.:-");
    }
    let skill = InstalledSkill { name, ..skill };
    let description = get("description").and_then(printed).unwrap_or_default();
    let description = description.trim();
    if description.is_empty() {
        return skill.hidden("it has no description");
    }
    let first = description.lines().next().unwrap_or_default().trim();
    let cut = first.len() < description.len();
    let skill = InstalledSkill { description: first.to_owned(), cut, ..skill };
    if get("disable-model-invocation").is_some_and(is_true) {
        return skill.hidden("disable-model-invocation hides it from models");
    }
    if get("paths").is_some_and(limits_paths) {
        return skill.hidden("paths hides it until a matching file is used");
    }
    skill
}

fn parse(yaml: &str) -> Option<Node> {
    let refused =
        |kind| matches!(kind, YamlNoteKind::DuplicateKey { .. } | YamlNoteKind::SecondDocument);
    fields::strict(yaml, refused)
}

/// The lines with a key at their start, each value as it is written.
fn parse_lines(yaml: &str) -> Option<Node> {
    let line = |line: &str| {
        let (key, value) = line.split_once(':')?;
        let is_key = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
        let value = value.trim().replace('\'', "''");
        (!key.is_empty() && key.chars().all(is_key)).then(|| format!("{key}: '{value}'\n"))
    };
    let lines: String = yaml.lines().filter_map(line).collect();
    Tree::parse(&lines).ok()?.root.filter(|root| root.entries().is_some())
}

/// A text, or the texts of a list.
fn printed(node: &Node) -> Option<String> {
    match node.items() {
        Some(items) => {
            Some(items.iter().filter_map(fields::printed_text).collect::<Vec<_>>().join(","))
        }
        None => fields::printed_text(node),
    }
}

fn is_true(node: &Node) -> bool {
    node.boolean(fields::YAML_VERSION) == Some(true) || node.text() == Some("true")
}

fn limits_paths(node: &Node) -> bool {
    !node.is_null(fields::YAML_VERSION) && node.items().is_none_or(|items| !items.is_empty())
}

pub(super) fn catalogue(mut skills: Vec<InstalledSkill>, context: usize) -> Catalogue {
    hide_behind_project(&mut skills);
    list_whole(
        skills,
        context,
        |listed| {
            listed.sort_by_cached_key(|skill| collation::key(&skill.name));
        },
        |skill| {
            let InstalledSkill { name, description, scope, .. } = skill;
            let scope = if *scope == SkillScope::User { "user" } else { "project" };
            format!(
                "<skill>\n<name>\n{name}\n</name>\n<description>\n{description} ({scope})\n\
             </description>\n<location>\n{scope}\n</location>\n</skill>"
            )
        },
    )
}

/// Hides the skills of the user whose name a hidden skill of the project has.
fn hide_behind_project(skills: &mut [InstalledSkill]) {
    let hidden: Vec<String> = skills
        .iter()
        .filter(|skill| skill.scope == SkillScope::Project && skill.hidden.is_some())
        .map(|skill| skill.name.clone())
        .collect();
    for skill in skills.iter_mut().filter(|skill| skill.scope == SkillScope::User) {
        if hidden.contains(&skill.name) {
            let why = "a hidden skill of the project has the same name";
            skill.hidden.get_or_insert_with(|| why.to_owned());
        }
    }
}
