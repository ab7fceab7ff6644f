//! Simulates which skills Gemini CLI lists for its model.

use savoir_skill::yaml::YamlNoteKind;

use super::{
    Catalogue, Certainty, InstalledSkill, Rule, SkillFiles, SkillScope, fields, list_whole,
};

pub(super) const VERSION: &str = "0.61.0";

/// Characters of a name that are replaced by a hyphen.
const REPLACED_CHARACTERS: &str = ":\\/<>*?\"|";

const fn recorded(behavior: &'static str) -> Rule {
    Rule { behavior, source: "requests of Gemini CLI 0.61.0", certainty: Certainty::Recorded }
}

pub(super) const RULES: &[Rule] = &[
    recorded(
        "only folders directly in a skill folder are read, and none whose name starts with a dot",
    ),
    recorded("the file starts with `---`, without a byte order mark and without blanks"),
    recorded(
        "if name and description are not texts in valid YAML, their lines are read as they are \
         written; without one of them the skill is not listed",
    ),
    recorded("a colon in a name is replaced by a hyphen"),
    Rule {
        behavior: "so are slashes, quotes and other characters that file names cannot have",
        source: "savoir",
        certainty: Certainty::Estimate,
    },
    recorded("of skills with the same name, that of the project is listed"),
    recorded("all descriptions are listed whole, whatever the context"),
    recorded("built-in skills come first, then those of the user, then those of the project"),
];

pub(super) fn read(files: &SkillFiles<'_>) -> InstalledSkill {
    let skill = InstalledSkill::new(files);
    let folders = files.folders_in_root();
    if !files.root.is_empty() && (folders.len() != 1 || folders[0].starts_with('.')) {
        return skill.hidden("this agent reads only folders directly in its skill folder");
    }
    let Some(yaml) = fields::between_fences(files.text, |line| line == "---") else {
        return skill.hidden("it has no frontmatter");
    };
    let Some((name, description)) = parse(&yaml).or_else(|| read_lines(&yaml)) else {
        return skill.hidden("it has no name or no description");
    };
    let replace = |c| if REPLACED_CHARACTERS.contains(c) { '-' } else { c };
    InstalledSkill { name: name.chars().map(replace).collect(), description, ..skill }
}

/// Name and description of valid YAML.
fn parse(yaml: &str) -> Option<(String, String)> {
    let refused = |kind| {
        use YamlNoteKind::{DuplicateKey, SecondDocument, Tag};
        matches!(kind, DuplicateKey { .. } | SecondDocument | Tag)
    };
    let fields = fields::strict(yaml, refused)?;
    let text = |key: &str| fields.get(key)?.string(fields::YAML_VERSION).map(str::to_owned);
    Some((text("name")?, text("description")?))
}

/// Name and description as their lines are written. A description goes on in indented lines.
fn read_lines(yaml: &str) -> Option<(String, String)> {
    let (mut name, mut description) = (None, None);
    let mut lines = yaml.lines().peekable();
    while let Some(line) = lines.next() {
        let line = line.trim_start();
        if let Some(value) = line.strip_prefix("name:") {
            name = Some(value.trim().to_owned());
        } else if let Some(value) = line.strip_prefix("description:") {
            let mut text = value.trim().to_owned();
            while let Some(more) = lines.next_if(|line| line.starts_with([' ', '\t'])) {
                text.push(' ');
                text.push_str(more.trim());
            }
            description = Some(text.trim().to_owned());
        }
    }
    Some((name.filter(|name| !name.is_empty())?, description?))
}

pub(super) fn catalogue(skills: Vec<InstalledSkill>, context: usize) -> Catalogue {
    list_whole(
        skills,
        context,
        |listed| {
            let project = |skill: &InstalledSkill| skill.scope == SkillScope::Project;
            listed.sort_by(|a, b| project(a).cmp(&project(b)).then_with(|| b.path.cmp(&a.path)));
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
