//! Simulates which skills Claude Code lists for its model.

use std::collections::HashSet;

use savoir_skill::{
    collation,
    yaml::{Node, Tree},
};
use unicode_properties::{GeneralCategory, UnicodeGeneralCategory as _};
use unicode_width::UnicodeWidthStr as _;

use super::{
    Catalogue, Certainty, InstalledSkill, Rule, SkillFiles, SkillScope, SkillVisibility, fields,
    split_duplicates, split_hidden,
};

pub(super) const VERSION: &str = "2.1.327";

/// Maximum UTF-16 units of description and `when_to_use` together.
const MAX_DESCRIPTION_UNITS: usize = 1536;
/// UTF-16 units of a line of the text that stands for a missing description.
const MAX_FIRST_LINE_UNITS: usize = 100;
/// Shown for a skill without description and body.
const NO_TEXT: &str = "Skill";
/// The share of the context that the catalog may take.
const BUDGET_PERCENT: usize = 1;
/// The context of models before Claude 4.7. Claude Code counts four columns for one of their
/// tokens, and three for a token of later models, which have a larger context.
const SMALL_CONTEXT: usize = 200_000;
/// Characters that make Claude Code put a value in quotes if the frontmatter is not valid YAML.
const QUOTED_CHARACTERS: &str = "{}[]*&#!|>%@`";
/// Joins the parts of one emoji, and is therefore not replaced.
const ZERO_WIDTH_JOINER: char = '\u{200d}';

/// A skill that is part of Claude Code and shares the catalog.
struct BuiltInSkill {
    name: &'static str,
    /// Columns of its description.
    columns: usize,
    /// Whether the description is always shown.
    always_described: bool,
}

const fn always_described(name: &'static str, columns: usize) -> BuiltInSkill {
    BuiltInSkill { name, columns, always_described: true }
}

/// The built-in skills of a recorded session, after all other skills.
const BUILT_IN: [BuiltInSkill; 13] = [
    always_described("dataviz", 1436),
    always_described("update-config", 690),
    always_described("keybindings-help", 228),
    always_described("code-review", 825),
    always_described("simplify", 176),
    always_described("fewer-permission-prompts", 163),
    always_described("loop", 336),
    always_described("claude-api", 1155),
    always_described("workflow-authoring", 230),
    always_described("run", 361),
    always_described("plugin-authoring", 255),
    BuiltInSkill { name: "init", columns: 59, always_described: false },
    BuiltInSkill { name: "security-review", columns: 71, always_described: false },
];

const fn recorded(behavior: &'static str) -> Rule {
    Rule { behavior, source: "requests of Claude Code 2.1.327", certainty: Certainty::Recorded }
}

pub(super) const RULES: &[Rule] = &[
    recorded("only folders directly in a skill folder are read, with a file named SKILL.md"),
    recorded(
        "a skill has the name of its folder; a different name in SKILL.md is shown in parentheses",
    ),
    recorded(
        "without a description the first line of the text is shown, at most 100 characters of it",
    ),
    recorded(
        "values that break the YAML are put in quotes; if that does not help, no field is read",
    ),
    recorded("the frontmatter ends at the first `---`, even inside a line"),
    recorded("description and when_to_use together are cut at 1536 characters"),
    recorded("disable-model-invocation hides a skill from the model"),
    recorded("paths hides a skill until a matching file is used"),
    recorded("skills of the user come first, then those of the project, each sorted by name"),
    recorded("of skills with the same name that a model may use, the user's is listed"),
    recorded(
        "the catalog takes 1 % of the context; a token has 4 characters, and 3 for models since \
         Claude 4.7; wide characters count twice",
    ),
    recorded("11 built-in skills always keep their description"),
    recorded(
        "no skill is left out; a description that does not fit is dropped, a later shorter one \
         may be shown",
    ),
    Rule {
        behavior: "descriptions of skills that were used are kept first; the simulation does not \
               know the use",
        source: "requests of Claude Code 2.1.327, and savoir",
        certainty: Certainty::Estimate,
    },
    Rule {
        behavior: "a context of more than 200,000 tokens belongs to a model since Claude 4.7",
        source: "savoir",
        certainty: Certainty::Estimate,
    },
];

pub(super) fn read(files: &SkillFiles<'_>) -> InstalledSkill {
    let mut skill = InstalledSkill::new(files);
    if !files.root.is_empty() && files.folders_in_root().len() != 1 {
        return skill.hidden("this agent reads only folders directly in its skill folder");
    }
    let (yaml, body) = split(files.text);
    let fields = yaml.and_then(parse);
    let get = |key: &str| fields.as_ref().and_then(|fields| fields::last(fields, key));

    let description = get("description").and_then(fields::printed_text);
    let description = description.as_deref().map(str::trim).filter(|text| !text.is_empty());
    let (mut text, cut) = match description {
        Some(description) => (description.to_owned(), false),
        None => first_line(body),
    };
    if let Some(when_to_use) = get("when_to_use").and_then(when_to_use_text) {
        text.push_str(" - ");
        text.push_str(&when_to_use);
    }
    let (text, too_long) = shorten(&escape(&text), MAX_DESCRIPTION_UNITS, "…");
    (skill.description, skill.cut) = (text, cut || too_long);

    let label = get("name").and_then(fields::printed_text).map(|name| name.trim().to_owned());
    skill.label = label.filter(|label| *label != skill.name && fields::is_label(label));
    if get("disable-model-invocation").is_some_and(is_true) {
        return skill.hidden("disable-model-invocation hides it from models");
    }
    if get("paths").is_some_and(restricts_paths) {
        return skill.hidden("paths hides it until a matching file is used");
    }
    skill
}

/// The YAML of the frontmatter, and the text after it.
fn split(text: &str) -> (Option<&str>, &str) {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let block = text.strip_prefix("---").and_then(|rest| {
        let blank = rest.len() - rest.trim_start().len();
        let line_end = rest[..blank].rfind('\n')?;
        rest[line_end + 1..].split_once("---")
    });
    match block {
        Some((yaml, body)) => (Some(yaml), body),
        None => (None, text),
    }
}

/// The fields of a frontmatter; nothing if it cannot be read.
fn parse(yaml: &str) -> Option<Node> {
    let tree = Tree::parse(yaml).or_else(|_| Tree::parse(&quote_values(yaml))).ok()?;
    tree.root.filter(|root| root.entries().is_some())
}

fn quote_values(yaml: &str) -> String {
    yaml.lines().map(|line| quote_value(line).unwrap_or_else(|| line.to_owned()) + "\n").collect()
}

fn quote_value(line: &str) -> Option<String> {
    let (key, value) = line.split_once(':')?;
    let is_key = |c: char| c.is_ascii_alphabetic() || c == '_' || c == '-';
    if key.is_empty() || !key.chars().all(is_key) || !value.starts_with(char::is_whitespace) {
        return None;
    }
    let value = value.trim();
    let in_quotes =
        |mark: char| value.len() > 1 && value.starts_with(mark) && value.ends_with(mark);
    let breaks = value.contains(": ") || value.contains(|c| QUOTED_CHARACTERS.contains(c));
    (breaks && !in_quotes('"') && !in_quotes('\'')).then(|| {
        let value = value.replace('\\', "\\\\").replace('"', "\\\"");
        format!("{key}: \"{value}\"")
    })
}

/// The first line of a text without the marks of a heading, and whether it was cut.
fn first_line(body: &str) -> (String, bool) {
    let Some(line) = body.lines().map(str::trim).find(|line| !line.is_empty()) else {
        return (NO_TEXT.to_owned(), false);
    };
    let title = line.trim_start_matches('#');
    let is_heading = title.len() < line.len() && title.starts_with(char::is_whitespace);
    shorten(if is_heading { title.trim_start() } else { line }, MAX_FIRST_LINE_UNITS, "...")
}

fn when_to_use_text(node: &Node) -> Option<String> {
    let text = match node.items() {
        Some(items) => items.iter().filter_map(fields::printed_text).collect::<Vec<_>>().join(","),
        None => fields::printed_text(node)?,
    };
    (!text.is_empty()).then_some(text)
}

fn is_true(node: &Node) -> bool {
    let text = fields::printed_text(node).unwrap_or_default().to_lowercase();
    matches!(text.as_str(), "true" | "yes" | "on" | "1")
}

/// Whether globs limit when the skill is shown.
fn restricts_paths(node: &Node) -> bool {
    let globs = match node.items() {
        Some(items) => items.iter().filter_map(fields::printed_text).collect(),
        None => fields::printed_text(node).into_iter().collect::<Vec<_>>(),
    };
    globs.iter().any(|glob| !matches!(glob.trim(), "" | "**"))
}

/// Puts a text on one line, without tags and invisible characters.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    let mut after_invisible = false;
    for c in text.chars() {
        let invisible = is_invisible(c);
        match c {
            _ if invisible && after_invisible => {}
            _ if invisible => escaped.push(' '),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            _ => escaped.push(c),
        }
        after_invisible = invisible;
    }
    escaped
}

fn is_invisible(c: char) -> bool {
    use GeneralCategory::{Control, Format, LineSeparator, ParagraphSeparator};
    c != ZERO_WIDTH_JOINER
        && matches!(c.general_category(), Control | Format | LineSeparator | ParagraphSeparator)
}

/// Cuts a text at a number of UTF-16 units, including the mark at its end. Returns whether it was
/// cut.
fn shorten(text: &str, max_units: usize, mark: &str) -> (String, bool) {
    let units: Vec<u16> = text.encode_utf16().collect();
    if units.len() <= max_units {
        return (text.to_owned(), false);
    }
    // The cut may be inside a character.
    let start = String::from_utf16_lossy(&units[..max_units - mark.encode_utf16().count()]);
    (start + mark, true)
}

pub(super) fn catalogue(mut skills: Vec<InstalledSkill>, context: usize) -> Catalogue {
    skills.sort_by_cached_key(|skill| {
        (skill.scope == SkillScope::Project, collation::key(&skill.name), skill.path.clone())
    });
    let (skills, hidden) = split_hidden(skills);
    let (mut skills, duplicates) = split_duplicates(skills);
    remove_ambiguous_labels(&mut skills);
    let installed: HashSet<&str> = skills.iter().map(|skill| skill.name.as_str()).collect();
    let built_in: Vec<&BuiltInSkill> =
        BUILT_IN.iter().filter(|built_in| !installed.contains(built_in.name)).collect();

    let columns_per_token = if context > SMALL_CONTEXT { 3 } else { 4 };
    let budget = context / 100 * BUDGET_PERCENT;
    let max_columns = budget * columns_per_token;
    let mut used = columns_of_names(&skills, &built_in);
    let mut reserve = |columns: usize| {
        let fits = used + columns <= max_columns;
        used += if fits { columns } else { 0 };
        fits
    };
    let is_described: Vec<bool> =
        skills.iter().map(|skill| reserve(2 + skill.description.width())).collect();
    for skill in built_in.iter().filter(|skill| !skill.always_described) {
        reserve(2 + skill.columns);
    }
    let mut listed: Vec<SkillVisibility> = skills
        .into_iter()
        .zip(is_described)
        .map(|(skill, is_described)| visibility(skill, is_described))
        .collect();
    listed.extend(duplicates);
    listed.extend(hidden);
    Catalogue { budget, tokens: used.div_ceil(columns_per_token), skills: listed }
}

/// Removes labels that are the name or the label of another skill.
fn remove_ambiguous_labels(skills: &mut [InstalledSkill]) {
    let mut taken: HashSet<String> = skills.iter().map(|skill| skill.name.clone()).collect();
    for skill in skills {
        skill.label = skill.label.take().filter(|label| taken.insert(label.clone()));
    }
}

fn line_start(skill: &InstalledSkill) -> String {
    match &skill.label {
        Some(label) => format!("- {} ({label})", skill.name),
        None => format!("- {}", skill.name),
    }
}

/// Columns of the catalog with only the descriptions that are always shown.
fn columns_of_names(skills: &[InstalledSkill], built_in: &[&BuiltInSkill]) -> usize {
    let installed: usize = skills.iter().map(|skill| line_start(skill).width()).sum();
    let others: usize = built_in
        .iter()
        .map(|skill| {
            2 + skill.name.len() + if skill.always_described { 2 + skill.columns } else { 0 }
        })
        .sum();
    let line_ends = (skills.len() + built_in.len()).saturating_sub(1);
    installed + others + line_ends
}

fn visibility(skill: InstalledSkill, is_described: bool) -> SkillVisibility {
    let mut line = line_start(&skill);
    if !is_described {
        return SkillVisibility::listed(skill, 0, line);
    }
    line.push_str(": ");
    line.push_str(&skill.description);
    let characters = skill.description.chars().count();
    SkillVisibility::listed(skill, characters, line)
}
