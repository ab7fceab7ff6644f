//! `savoir diff`: compares two versions of skills by what they may do and what they cost.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::ValueEnum;
use clap_complete::engine::ArgValueCompleter;
use savoir_skill::{
    Skill,
    compare::{BeforeAfter, Change, SkillDifference},
};
use serde_json::json;

use crate::{
    completion,
    discover::{self, Candidate},
    error::CommandError,
    load, lookup, output,
};

/// Compare two versions of skills: permissions, tools and tokens
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  savoir diff old/my-skill my-skill\n  savoir diff main-checkout/skills skills --format markdown   for a pull request\n  savoir diff pdf new/pdf                          the installed skill `pdf`"
)]
pub(crate) struct Args {
    /// The old version: a skill, a folder with skills, or the name of an installed skill
    #[arg(add = ArgValueCompleter::new(completion::skills_and_paths))]
    old: PathBuf,
    /// The new version
    #[arg(add = ArgValueCompleter::new(completion::skills_and_paths))]
    new: PathBuf,
    /// Format of the output
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people
    Text,
    /// A table for a pull request
    Markdown,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    let [old, new] = [&args.old, &args.new].map(|path| located_skills(path));
    let (old, new) = (old?, new?);
    let differences = compare(&old, &new);
    if args.json {
        output::json(&json!({ "skills": differences }))?;
    } else if args.format == Format::Markdown {
        output::text(&output::sanitize(&markdown(&differences)))?;
    } else {
        output::text(&output::sanitize(&text(&differences)))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The skills at a path, or the installed skill of that name.
fn located_skills(path: &Path) -> Result<BTreeMap<PathBuf, Skill>, CommandError> {
    match lookup::find_all(&[path.to_owned()])?.into_iter().next() {
        Some((_, Some(unknown))) => {
            Err(unknown.hint("name a skill's folder, or a folder with skills"))
        }
        Some((found, None)) => skills_in(&found),
        None => skills_in(path),
    }
}

/// The skills below a path, by their path relative to it. A folder without skills is accepted,
/// because there may have been none before a change.
fn skills_in(path: &Path) -> Result<BTreeMap<PathBuf, Skill>, CommandError> {
    if !path.exists() {
        return Err(CommandError::input(format!("{}: it does not exist", path.display()))
            .hint("name a skill's folder, or a folder with skills"));
    }
    let mut files = Vec::new();
    discover::walk(&[path.to_path_buf()], &mut |candidate| {
        if let Candidate::Skill { path, .. } = candidate {
            files.push(path);
        }
        true
    });
    let mut skills = BTreeMap::new();
    for file in files {
        let relative = file.parent().and_then(|folder| folder.strip_prefix(path).ok());
        let relative = relative.map(Path::to_path_buf).unwrap_or_default();
        skills.insert(relative, load::load(&file, None)?.reading.skill);
    }
    Ok(skills)
}

/// Pairs skills by their path, then by their name, and lists those that differ.
fn compare(old: &BTreeMap<PathBuf, Skill>, new: &BTreeMap<PathBuf, Skill>) -> Vec<SkillDifference> {
    let mut gone: BTreeMap<&Path, &Skill> = old
        .iter()
        .filter(|(path, _)| !new.contains_key(*path))
        .map(|(path, skill)| (path.as_path(), skill))
        .collect();
    let mut differences = Vec::new();
    for (path, skill) in new {
        let before = old.get(path).or_else(|| {
            let moved = gone.iter().find(|(_, old)| old.name == skill.name).map(|(path, _)| *path);
            moved.and_then(|path| gone.remove(path))
        });
        differences.extend(SkillDifference::between(before, Some(skill)));
    }
    differences.extend(gone.values().filter_map(|old| SkillDifference::between(Some(old), None)));
    differences.retain(|difference| difference.change != Change::Unchanged);
    differences
}

fn text(differences: &[SkillDifference]) -> String {
    let mut text = String::new();
    for difference in differences {
        let title = format!("{} {}", difference.name, change_name(difference.change));
        let _ = writeln!(text, "{}", title.trim_end());
        for (sign, what, values) in parts(difference) {
            for value in values {
                let _ = writeln!(text, "  {sign} {what} {value}");
            }
        }
        let _ = writeln!(text, "  description {}", tokens(difference.description_tokens));
        let _ = writeln!(text, "  instructions {}", tokens(difference.body_tokens));
    }
    if differences.is_empty() {
        text.push_str("no differences\n");
    }
    text
}

fn parts(difference: &SkillDifference) -> [(char, &'static str, &[String]); 4] {
    [
        ('+', "permission", &difference.added_permissions),
        ('-', "permission", &difference.removed_permissions),
        ('+', "tool", &difference.added_tools),
        ('-', "tool", &difference.removed_tools),
    ]
}

fn markdown(differences: &[SkillDifference]) -> String {
    if differences.is_empty() {
        return "No skill has changed.\n".to_owned();
    }
    let mut text =
        "| Skill | Permissions and tools | Description | Instructions |\n| --- | --- | --- | --- |\n"
            .to_owned();
    for difference in differences {
        let rights: Vec<String> = parts(difference)
            .iter()
            .flat_map(|(sign, what, values)| {
                values.iter().map(move |value| format!("{sign} {what} {}", code(value)))
            })
            .collect();
        let rights = if rights.is_empty() { "unchanged".to_owned() } else { rights.join("<br>") };
        let _ = writeln!(
            text,
            "| {} {} | {rights} | {} | {} |",
            code(&difference.name),
            change_name(difference.change),
            tokens(difference.description_tokens),
            tokens(difference.body_tokens),
        );
    }
    if differences.iter().any(SkillDifference::asks_for_more) {
        text.push_str("\n**Some skills ask for more than before.** Lines with `+` are new.\n");
    }
    text
}

/// Formats a text of a skill as code in a Markdown table, so that the text can end neither the code
/// nor the cell. Renderers treat backslashes before `|` differently, so `|` is replaced.
fn code(text: &str) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    format!("`{}`", text.replace('`', "'").replace('|', "¦"))
}

fn change_name(change: Change) -> &'static str {
    match change {
        Change::Added => "(new)",
        Change::Removed => "(removed)",
        Change::Changed | Change::Unchanged => "",
    }
}

fn tokens(BeforeAfter { before, after }: BeforeAfter) -> String {
    if before == after {
        return format!("about {after} tokens");
    }
    let (sign, by) = if after > before { ('+', after - before) } else { ('-', before - after) };
    format!("about {after} tokens ({sign}{by})")
}
