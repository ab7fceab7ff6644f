//! Simulates which skills Codex lists for its model.

use savoir_lint::words::one_line;
use savoir_skill::yaml::{Node, Tree, YamlNoteKind};

use super::{
    Catalogue, Certainty, InstalledSkill, Rule, SkillFiles, SkillScope, SkillVisibility, fields,
    split_hidden,
};

pub(super) const VERSION: &str = "0.169.0";

/// The file beside SKILL.md with the policy of a skill.
pub(super) const SIDE_FILE: &str = "agents/openai.yaml";
const ALLOW_PATH: &str = "policy.allow_implicit_invocation";

const MAX_NAME_CHARACTERS: usize = 64;
const MAX_DESCRIPTION_CHARACTERS: usize = 1024;
const ELLIPSIS: &str = "...";
/// The share of the context that the catalog may take.
const BUDGET_PERCENT: usize = 2;
/// Bytes that Codex counts as one token.
const BYTES_PER_TOKEN: usize = 4;
/// Bytes of the table of folders that do not count: with short paths the text before the catalog
/// is shorter by as many.
const FREE_TABLE_BYTES: usize = 164;
/// The folder of the built-in skills if no skill shows where the home folder is.
const SYSTEM_ROOT: &str = "/home/username/.codex/skills/.system";
/// Fields that must not appear twice.
const READ_FIELDS: [&str; 3] = ["name", "description", "metadata"];

/// The skills that are part of Codex, with the length of their descriptions. They come first.
const BUILT_IN: [(&str, usize); 4] =
    [("imagegen", 570), ("openai-docs", 624), ("skill-creator", 106), ("skill-installer", 225)];

const fn recorded(behavior: &'static str) -> Rule {
    Rule { behavior, source: "requests of Codex 0.169.0", certainty: Certainty::Recorded }
}

pub(super) const RULES: &[Rule] = &[
    recorded("skills in subfolders are read too, but not in folders whose name starts with a dot"),
    recorded(
        "of SKILL.md only name, description and metadata.short-description are read; a skill \
         without a name has that of its folder",
    ),
    recorded("a skill without frontmatter or without a description is not loaded"),
    recorded("a skill whose name has more than 64 characters is not loaded"),
    recorded(
        "values that break the YAML are put in quotes, line by line, and it is read again; a \
         skill whose fields cannot be read even then is not loaded",
    ),
    recorded("metadata that is not a map, or a field that appears twice, is an error"),
    recorded("a description is cut at 1024 characters"),
    recorded(
        "policy.allow_implicit_invocation: false in agents/openai.yaml hides a skill from the \
         model; disable-model-invocation is not read",
    ),
    recorded("skills of the same name are all listed, each with its path"),
    recorded("4 built-in skills come first, then those of the project, then those of the user"),
    recorded("each path starts with a short name for the folder of all skills, such as r1"),
    recorded(
        "the catalog takes 2 % of the context; a token has 4 bytes; the table of these short \
         names counts too, except for its first 164 bytes",
    ),
    recorded(
        "descriptions are shortened evenly; if the names alone do not fit, all descriptions are \
         dropped, and then skills are left out",
    ),
    Rule {
        behavior: "the folder of the built-in skills is ~/.codex/skills/.system",
        source: "savoir",
        certainty: Certainty::Estimate,
    },
    Rule {
        behavior: "the short names of folders are numbered in the order of the catalog",
        source: "savoir",
        certainty: Certainty::Estimate,
    },
];

pub(super) fn read(files: &SkillFiles<'_>) -> InstalledSkill {
    let mut skill = InstalledSkill::new(files);
    skill.name = one_line(files.folder);
    if files.folders_in_root().iter().any(|name| name.starts_with('.')) {
        return skill.hidden("it is in a folder whose name starts with a dot");
    }
    let Some(yaml) = fields::between_fences(files.text, |line| line.trim() == "---") else {
        return skill.hidden("it has no frontmatter, and therefore no description");
    };
    let Some(found) = parse(&yaml) else {
        let why = "its frontmatter is not YAML that this agent reads; see savoir check";
        return skill.hidden(why);
    };
    if let Some(name) = found.name {
        skill.name = name;
    }
    let length = skill.name.chars().count();
    if length > MAX_NAME_CHARACTERS {
        let why = format!("its name has {length} characters, {MAX_NAME_CHARACTERS} are allowed");
        return skill.hidden(why);
    }
    let Some(description) = found.description else {
        return skill.hidden("it has no description");
    };
    (skill.description, skill.cut) = shorten(description);
    if files.side.is_some_and(forbids_invocation) {
        return skill.hidden(format!("{ALLOW_PATH} hides it from models"));
    }
    skill
}

/// The fields of a frontmatter.
struct Fields {
    name: Option<String>,
    description: Option<String>,
}

fn parse(yaml: &str) -> Option<Fields> {
    parse_fields(yaml).or_else(|| parse_fields(&quoted(yaml)))
}

/// Reads the fields; nothing if one of them has another type than Codex expects.
fn parse_fields(yaml: &str) -> Option<Fields> {
    let tree = Tree::parse(yaml).ok()?;
    let repeats = |kind: YamlNoteKind| matches!(kind, YamlNoteKind::DuplicateKey { .. });
    let is_read = |name: &str| READ_FIELDS.contains(&name);
    if tree.notes.iter().any(|note| repeats(note.kind) && is_read(&note.name)) {
        return None;
    }
    let root = tree.root?;
    root.entries()?;
    let metadata = root.get("metadata").filter(|metadata| !metadata.is_null(fields::YAML_VERSION));
    if let Some(metadata) = metadata {
        metadata.entries()?;
        text(metadata, "short-description")?;
    }
    Some(Fields { name: text(&root, "name")?, description: text(&root, "description")? })
}

/// The text of a field on one line. The outer `None` is a field that is a list or a map.
#[expect(clippy::option_option, reason = "a field of another type differs from a missing one")]
fn text(fields: &Node, key: &str) -> Option<Option<String>> {
    let Some(node) = fields.get(key) else { return Some(None) };
    node.text()?;
    let text = fields::written_text(node).map(one_line);
    Some(text.filter(|text| !text.is_empty()))
}

/// Puts values in quotes that break YAML, line by line.
fn quoted(yaml: &str) -> String {
    let mut block_indent = None;
    let mut lines = Vec::new();
    for line in yaml.lines() {
        let indent = line.len() - line.trim_start_matches(' ').len();
        if block_indent.is_some_and(|block| line.trim().is_empty() || indent > block) {
            lines.push(line.to_owned());
            continue;
        }
        block_indent = None;
        let Some((key, value)) = key_and_value(line) else {
            lines.push(line.to_owned());
            continue;
        };
        if value.starts_with(['|', '>']) {
            block_indent = Some(indent);
        }
        let (value, comment) = split_comment(value);
        lines.push(if breaks_yaml(value) {
            format!("{key}: '{}' {comment}", value.replace('\'', "''"))
        } else {
            line.to_owned()
        });
    }
    lines.join("\n")
}

fn key_and_value(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once(':')?;
    let is_field = !key.trim().is_empty() && value.starts_with(char::is_whitespace);
    is_field.then(|| (key, value.trim()))
}

fn split_comment(value: &str) -> (&str, &str) {
    let mut blank_before = true;
    for (at, c) in value.char_indices() {
        if c == '#' && blank_before {
            return (value[..at].trim_end(), &value[at..]);
        }
        blank_before = c.is_whitespace();
    }
    (value, "")
}

fn breaks_yaml(value: &str) -> bool {
    if value.starts_with(['|', '>', '\'', '"']) {
        return false;
    }
    let colon = value.split(':').skip(1).any(|after| after.starts_with(char::is_whitespace));
    colon || (value.starts_with(['[', '{', '@', '`']) && Tree::parse(value).is_err())
}

/// Cuts a description. Returns whether it was too long.
fn shorten(description: String) -> (String, bool) {
    if description.chars().nth(MAX_DESCRIPTION_CHARACTERS).is_none() {
        return (description, false);
    }
    let kept = description.chars().take(MAX_DESCRIPTION_CHARACTERS - ELLIPSIS.len());
    (kept.chain(ELLIPSIS.chars()).collect(), true)
}

/// Whether the side file hides the skill from models. Errors in it are ignored.
fn forbids_invocation(side: &str) -> bool {
    let root = Tree::parse(side).ok().and_then(|tree| tree.root);
    root.and_then(|root| root.path(ALLOW_PATH)?.boolean(fields::YAML_VERSION)) == Some(false)
}

/// A line of the catalog, around the description.
struct Line {
    start: String,
    end: String,
    /// The length in bytes of each character of the description.
    characters: Vec<usize>,
}

impl Line {
    fn built_in(name: &str, length: usize) -> Self {
        let end = format!("(file: r0/{name}/SKILL.md)");
        Self { start: format!("- {name}: "), end, characters: vec![1; length] }
    }

    fn new(skill: &InstalledSkill, root: usize) -> Self {
        Self {
            start: format!("- {}: ", skill.name),
            end: format!("(file: r{root}/{})", skill.path_in_root),
            characters: skill.description.chars().map(char::len_utf8).collect(),
        }
    }

    /// Tokens of the line with `bytes` of the description.
    fn tokens(&self, bytes: usize) -> usize {
        let blank = usize::from(bytes > 0);
        let line_end = 1;
        (self.start.len() + bytes + blank + self.end.len() + line_end).div_ceil(BYTES_PER_TOKEN)
    }

    fn most_tokens(&self) -> usize {
        self.tokens(self.characters.iter().sum())
    }
}

pub(super) fn catalogue(mut skills: Vec<InstalledSkill>, context: usize) -> Catalogue {
    skills.sort_by(|a, b| {
        let user = |skill: &InstalledSkill| skill.scope == SkillScope::User;
        user(a).cmp(&user(b)).then_with(|| (&a.name, &a.path).cmp(&(&b.name, &b.path)))
    });
    let (skills, hidden) = split_hidden(skills);
    let mut lines: Vec<Line> =
        BUILT_IN.iter().map(|(name, length)| Line::built_in(name, *length)).collect();
    let mut roots: Vec<&str> = Vec::new();
    for skill in &skills {
        let known = roots.iter().position(|root| *root == skill.root);
        let root = known.unwrap_or(roots.len());
        if known.is_none() {
            roots.push(&skill.root);
        }
        lines.push(Line::new(skill, root + 1));
    }
    let budget = (context / 100 * BUDGET_PERCENT).max(1);
    let user = skills.iter().find(|skill| skill.scope == SkillScope::User);
    let home = user.and_then(|skill| skill.root.strip_suffix("/.agents/skills"));
    let table = table_tokens(&roots, home);
    let shares = share(&lines, budget.saturating_sub(table));
    let tokens = lines.iter().zip(&shares).filter_map(|(line, share)| {
        let bytes = line.characters.iter().take((*share)?).sum();
        Some(line.tokens(bytes))
    });
    let tokens = table + tokens.sum::<usize>();
    let own = lines.into_iter().zip(shares).skip(BUILT_IN.len());
    let (mut listed, mut left_out) = (Vec::new(), Vec::new());
    for (skill, (line, share)) in skills.into_iter().zip(own) {
        if let Some(characters) = share {
            listed.push(visible(skill, &line, characters));
        } else {
            let why = format!("the catalog of {budget} tokens is full");
            left_out.push(SkillVisibility::hidden(skill, why));
        }
    }
    listed.extend(left_out);
    listed.extend(hidden);
    Catalogue { budget, tokens, skills: listed }
}

/// Tokens of the table with the short names of the folders.
fn table_tokens(roots: &[&str], home: Option<&str>) -> usize {
    let system = "/.codex/skills/.system".len();
    let system = home.map_or(SYSTEM_ROOT.len(), |home| home.len() + system);
    let around_path = "- `r1` = ``\n".len();
    let lines = roots.iter().map(|root| root.len()).chain([system]).map(|path| path + around_path);
    let bytes = "### Skill roots\n".len() + lines.sum::<usize>();
    bytes.saturating_sub(FREE_TABLE_BYTES).div_ceil(BYTES_PER_TOKEN)
}

fn visible(skill: InstalledSkill, line: &Line, characters: usize) -> SkillVisibility {
    let description: String = skill.description.chars().take(characters).collect();
    let blank = if description.is_empty() { "" } else { " " };
    let line = format!("{}{description}{blank}{}", line.start, line.end);
    SkillVisibility::listed(skill, characters, line)
}

/// The number of characters of each description; nothing for a skill that is left out.
fn share(lines: &[Line], budget: usize) -> Vec<Option<usize>> {
    if lines.iter().map(Line::most_tokens).sum::<usize>() <= budget {
        return lines.iter().map(|line| Some(line.characters.len())).collect();
    }
    let names: usize = lines.iter().map(|line| line.tokens(0)).sum();
    if let Some(room) = budget.checked_sub(names) {
        return share_evenly(lines, room).into_iter().map(Some).collect();
    }
    let mut room = budget;
    let fits = lines.iter().map(|line| {
        room = room.checked_sub(line.tokens(0))?;
        Some(0)
    });
    fits.collect()
}

/// Gives one character after the other to each description in turn, while there is room.
fn share_evenly(lines: &[Line], mut room: usize) -> Vec<usize> {
    let mut shares = vec![0; lines.len()];
    let mut bytes = vec![0; lines.len()];
    loop {
        let mut changed = false;
        for (index, line) in lines.iter().enumerate() {
            let Some(next) = line.characters.get(shares[index]) else { continue };
            let more = line.tokens(bytes[index] + next) - line.tokens(bytes[index]);
            if more <= room {
                room -= more;
                shares[index] += 1;
                bytes[index] += next;
                changed = true;
            }
        }
        if !changed {
            return shares;
        }
    }
}
