//! `savoir tools`: lists the tools of skills, as text or in the format of a model API.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anstream::eprintln;
use clap::ValueEnum;
use clap_complete::engine::ArgValueCompleter;
use savoir_engine::{
    approval::shell_word,
    manifest::{self, Manifest},
    run::is_script_name,
};
use savoir_skill::{Skill, convert::with_tools_of_original, read};

use crate::{
    completion,
    discover::{self, Candidate},
    error::CommandError,
    gibberish_mode::GibberishMode,
    load::{self, Origin},
    lookup, output,
};

/// List the tools of skills, as text or in the format of a model API
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  savoir tools                           all tools of the skills below this folder
  savoir tools pdf                       the tools of an installed skill
  savoir tools skills/ --format openai   as the value of `tools` in a request
  savoir tools skills/ --format mcp      as an MCP server returns them
  savoir tools skills/ --mode Dev        only tools that this mode offers

If two skills have a tool of the same name, it is listed as skill/tool, or as skill__tool in APIs
that do not allow a slash. Nothing is executed.")]
pub(crate) struct Args {
    /// Skill folders, parent folders, files, or names of installed skills
    #[arg(default_value = ".", add = ArgValueCompleter::new(completion::skills_and_paths))]
    paths: Vec<PathBuf>,
    /// Only tools that this mode of gibb.eri.sh offers
    #[arg(long, value_name = "MODE", ignore_case = true)]
    mode: Option<GibberishMode>,
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: Format,
    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Fail if a skill cannot be used
    #[arg(long)]
    strict: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    #[value(help = "Text")]
    Text,
    #[value(help = "JSON with all names and policies")]
    Json,
    #[value(help = "The `tools` of OpenAI's chat API and compatible ones")]
    Openai,
    #[value(help = "The `tools` of Anthropic's messages API")]
    Anthropic,
    #[value(help = "The answer of an MCP server to tools/list")]
    Mcp,
    #[value(help = "The prompt that gibb.eri.sh sends to its model")]
    Functiongemma,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    let mut all = lookup::find_all(&args.paths)?;
    // If the only name is unknown, that is an error.
    if let [(_, unknown)] = all.as_mut_slice()
        && let Some(unknown) = unknown.take()
    {
        return Err(unknown);
    }
    let paths: Vec<PathBuf> = all.iter().map(|(found, _)| found.to_path_buf()).collect();
    let found = FoundTools::find_below(&paths);
    if let (true, true, [problem]) =
        (found.skills.is_empty(), found.unreadable, found.problems.as_slice())
    {
        return Err(CommandError::input(problem)
            .hint("name a folder with skills, or create one: savoir new NAME"));
    }
    for problem in &found.problems {
        eprintln!("warning: {}", output::sanitize(problem));
    }
    if found.skills.is_empty() && !found.problems.is_empty() {
        let message = "no usable skill was found";
        return Err(if found.unreadable {
            CommandError::input(message)
        } else {
            CommandError::findings(message).hint("list the problems: savoir check")
        });
    }
    let offered = found
        .skills
        .iter()
        .filter(|skill| args.mode.is_none_or(|mode| manifest::is_offered(skill, mode.as_str())));
    let manifest = Manifest::new(offered);
    match if args.json { Format::Json } else { args.format } {
        Format::Text => output::text(&output::sanitize(&page(&manifest, &found.scripts)))?,
        Format::Json => output::json(&manifest.json())?,
        Format::Openai => output::json(&manifest.openai())?,
        Format::Anthropic => output::json(&manifest.anthropic())?,
        Format::Mcp => output::json(&manifest.mcp())?,
        Format::Functiongemma => output::content(&manifest.function_gemma())?,
    }
    let failed = args.strict && !found.problems.is_empty();
    Ok(ExitCode::from(match (found.unreadable, failed) {
        (true, _) => 2,
        (false, true) => 1,
        (false, false) => 0,
    }))
}

/// Scripts shown per skill.
const MAX_SCRIPTS: usize = 20;

/// Scripts of a skill without tools.
struct SkillScripts {
    skill: String,
    /// Arguments of `savoir run`.
    targets: Vec<String>,
}

impl SkillScripts {
    fn of(skill: &Skill, path: &Path) -> Option<Self> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        let scripts = skill.resources.iter().filter(|file| file.starts_with("scripts/"));
        let scripts = scripts.filter(|file| is_script_name(file));
        let target = |file: &String| shell_word(&folder.join(file).to_string_lossy());
        let targets: Vec<String> = scripts.map(target).collect();
        (!targets.is_empty()).then(|| Self { skill: skill.name.clone(), targets })
    }
}

/// The skills below some paths, sorted by name, and why some were skipped.
#[derive(Default)]
struct FoundTools {
    skills: Vec<Skill>,
    /// Of the skills without tools.
    scripts: Vec<SkillScripts>,
    problems: Vec<String>,
    /// A path from the command line does not exist, or has no skill.
    unreadable: bool,
}

impl FoundTools {
    fn find_below(paths: &[PathBuf]) -> Self {
        let mut found = Self::default();
        let mut places: BTreeMap<String, PathBuf> = BTreeMap::new();
        discover::walk(paths, &mut |candidate| {
            found.add_candidate(candidate, &mut places);
            true
        });
        found.skills.sort_by(|a, b| a.name.cmp(&b.name));
        found.scripts.sort_by(|a, b| a.skill.cmp(&b.skill));
        found
    }

    fn add_candidate(&mut self, candidate: Candidate, places: &mut BTreeMap<String, PathBuf>) {
        let (path, folder, root, named) = match candidate {
            Candidate::Skill { path, folder, root, named } => (path, folder, root, named),
            Candidate::Unreadable { path, problem } => return self.missing(&path, &problem),
            Candidate::Empty { path } => {
                return self.missing(&path, "there is no SKILL.md below this folder");
            }
        };
        let origin = match (&root, named) {
            (Some(root), _) => Origin::Link(root),
            (None, true) => Origin::Named,
            (None, false) => Origin::Walked,
        };
        let reading = match load::source(&path, origin) {
            Ok(source) => read(source, folder.as_ref()),
            Err(problem) => return self.skip(&path, &problem.message),
        };
        if !reading.is_usable() {
            let message = reading.error().map_or("it cannot be used", |error| &error.message);
            let message = message.to_owned();
            return self.skip(&path, &message);
        }
        let skill = with_tools_of_original(&reading, folder.as_ref()).unwrap_or(reading.skill);
        // Skills without tools may share a name.
        if skill.tools.is_empty() {
            self.scripts.extend(SkillScripts::of(&skill, &path));
            self.skills.push(skill);
            return;
        }
        match places.get(&skill.name) {
            // The same folder may be below two of the paths.
            Some(first) if is_same_file(first, &path) => {}
            Some(first) => {
                let first = first.display();
                self.skip(&path, &format!("{first} also has the name `{}`", skill.name));
            }
            None => {
                places.insert(skill.name.clone(), path);
                self.skills.push(skill);
            }
        }
    }

    fn skip(&mut self, path: &Path, why: &str) {
        self.problems.push(format!("skipped {}: {why}", path.display()));
    }

    fn missing(&mut self, path: &Path, why: &str) {
        self.problems.push(format!("{}: {why}", path.display()));
        self.unreadable = true;
    }
}

fn is_same_file(a: &Path, b: &Path) -> bool {
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

/// The tools with their parameters and descriptions, and the scripts of skills without tools.
fn page(manifest: &Manifest, scripts: &[SkillScripts]) -> String {
    let mut page = String::new();
    let mut skill = "";
    for entry in manifest.entries() {
        if entry.name.skill != skill {
            skill = &entry.name.skill;
            let version = entry.skill_version.as_deref().unwrap_or_default();
            let gap = if page.is_empty() { "" } else { "\n" };
            let _ = writeln!(page, "{gap}{}", format!("{skill} {version}").trim_end());
        }
        let policy = match (entry.policy.read_only, entry.policy.always_ask) {
            (_, true) => "  (always asks)",
            (true, false) => "  (read only)",
            (false, false) => "",
        };
        let signature = signature(&entry.parameters);
        let _ = writeln!(page, "  {}({signature}){policy}", entry.name.shown);
        for line in entry.description.lines() {
            let _ = writeln!(page, "      {line}");
        }
    }
    for SkillScripts { skill, targets } in scripts {
        let gap = if page.is_empty() { "" } else { "\n" };
        let _ = writeln!(page, "{gap}{skill}\n  no tools; run its scripts:");
        for target in targets.iter().take(MAX_SCRIPTS) {
            let _ = writeln!(page, "      savoir run {target}");
        }
        if let Some(more @ 1..) = targets.len().checked_sub(MAX_SCRIPTS) {
            let _ = writeln!(page, "      and {more} more");
        }
    }
    if page.is_empty() {
        page.push_str("no tools\n");
    }
    page
}

/// `query: string, limit?: integer = 5`
fn signature(schema: &serde_json::Value) -> String {
    let required = schema["required"].as_array().map(Vec::as_slice).unwrap_or_default();
    let properties = schema["properties"].as_object().into_iter().flatten();
    let parameters = properties.map(|(name, property)| {
        let optional =
            if required.iter().any(|known| known.as_str() == Some(name)) { "" } else { "?" };
        let kind = property["type"].as_str().unwrap_or("any");
        let default =
            property.get("default").map(|value| format!(" = {value}")).unwrap_or_default();
        format!("{name}{optional}: {kind}{default}")
    });
    parameters.collect::<Vec<_>>().join(", ")
}
