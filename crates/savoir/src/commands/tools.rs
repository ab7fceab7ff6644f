//! `savoir tools`: lists the tools of skills, as text or in the format of a model API.

use std::{fmt::Write as _, path::PathBuf, process::ExitCode};

use anstream::eprintln;
use clap::ValueEnum;
use clap_complete::engine::ArgValueCompleter;
use savoir_engine::manifest::{self, FoundTools, Manifest, NativeTool, SkillScripts};

use crate::{completion, error::CommandError, gibberish_mode::GibberishMode, lookup, output};

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
    /// With --format functiongemma: a tool of the host itself; may be repeated
    #[arg(long, value_name = "NAME=DESCRIPTION", value_parser = native_tool)]
    native: Vec<NativeTool>,
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

fn native_tool(text: &str) -> Result<NativeTool, &'static str> {
    let (name, description) = text.split_once('=').ok_or("write it as NAME=DESCRIPTION")?;
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if name.is_empty() || !name.chars().all(is_part) {
        return Err("the name of a tool has letters, digits and underscores");
    }
    Ok(NativeTool { name: name.to_owned(), description: description.to_owned() })
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
        Format::Functiongemma => output::content(&manifest.function_gemma(&args.native))?,
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
