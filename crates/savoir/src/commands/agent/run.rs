//! `savoir agent run`: starts a chat with exactly the skills of an agent.

use std::{path::PathBuf, process::ExitCode};

use savoir_engine::approval::printable;
use savoir_package::{
    OtherFiles, Tree,
    agent_file::{AgentFile, Assembly, AssemblyRequest, FindingLevel, SkillLocationKind, assemble},
    resolve::CombinedIndex,
};
use savoir_scan::Verdict;

use super::{default_model, gather, no_set, read};
use crate::{commands::chat, error::CommandError, installed::Installed, output};

/// Start a chat with exactly the skills of an agent
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  savoir agent run AGENT.yaml            start a conversation with the agent of this file
  savoir agent run AGENT.yaml \"Summarize README.md\"
  savoir agent run . --model ollama:qwen3

The model sees the skills of the file and their dependencies, and no others. Install them first:
savoir agent install AGENT.yaml. Otherwise it works like `savoir chat`.

Exit codes: those of `savoir chat`, 1 if a required skill is missing, and 3 if the scan blocks a
skill next to the file.")]
pub(super) struct RunArgs {
    /// Agent file, or its folder
    #[arg(value_name = "AGENT.yaml")]
    path: PathBuf,
    /// Set of skills to use, if the file has several
    #[arg(long, value_name = "NAME")]
    set: Option<String>,
    /// Skill folders, or their parent folders, to search first
    #[arg(long, value_name = "PATH")]
    skills: Vec<PathBuf>,
    /// Use this skill next to the file even if the scan blocks it; may be repeated
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    allow_blocked: Vec<String>,
    #[command(flatten)]
    chat: chat::Args,
}

pub(super) fn run(args: RunArgs) -> Result<ExitCode, CommandError> {
    let agent = read(&args.path)?;
    let set = args.set.as_deref();
    let installed = Installed::open(args.chat.workspace())?;
    installed.warn();
    let offers = gather(&agent, set, &args.skills, &installed)?;
    let (model, others) = (default_model(&agent), CombinedIndex::default());
    let request =
        AssemblyRequest { agent: &agent, set, offers: &offers, others: &others, model: &model };
    let assembly = assemble(&request).map_err(|error| no_set(&error))?;
    let folders = folders(&args.path, &assembly)?;
    check_skills_next_to(&assembly, &args.allow_blocked)?;
    if !args.chat.is_json() {
        introduce(&agent, &assembly);
    }
    chat::run(&args.chat.with_skills(folders))
}

/// The folders of all skills; an error if the agent cannot start.
fn folders(path: &std::path::Path, assembly: &Assembly<'_>) -> Result<Vec<PathBuf>, CommandError> {
    let install = format!("savoir agent install {}", path.display());
    let errors = assembly.findings.iter().filter(|found| found.level == FindingLevel::Error);
    let errors: Vec<&str> = errors.map(|found| found.message.as_str()).collect();
    if !errors.is_empty() {
        return Err(CommandError::findings(format!(
            "the agent cannot start: {}",
            errors.join("; ")
        ))
        .with_code("agent-incomplete")
        .hint(format!("install its skills: {install}")));
    }
    let members = assembly.members.iter();
    members
        .map(|member| {
            let folder = member.offer.and_then(|offer| offer.folder.clone());
            folder.ok_or_else(|| {
                CommandError::findings(format!("`{}` is not installed here", member.name))
                    .with_code("agent-incomplete")
                    .hint(format!("install it: {install}"))
            })
        })
        .collect()
}

/// Refuses skills in the folder of the agent file that the scan blocks. Unlike installed skills,
/// nobody approved them.
fn check_skills_next_to(assembly: &Assembly<'_>, allowed: &[String]) -> Result<(), CommandError> {
    let mut blocked = Vec::new();
    for member in &assembly.members {
        let offer = member.offer.filter(|offer| offer.way == SkillLocationKind::Beside);
        let Some(folder) = offer.and_then(|offer| offer.folder.as_ref()) else { continue };
        let tree = Tree::read(folder).map_err(|error| CommandError::input(error.to_string()))?;
        let (name, shown) = (member.name.clone(), printable(&folder.display().to_string()));
        match OtherFiles::read(folder).scan_with(&tree).verdict {
            Verdict::Allow => {}
            Verdict::Block if !allowed.contains(&name) => blocked.push((name, shown)),
            Verdict::Block | Verdict::Review => output::note(&format!(
                "the scan found something in `{}`: savoir scan {shown}",
                printable(&name)
            )),
        }
    }
    let Some((_, folder)) = blocked.first() else { return Ok(()) };
    let names: Vec<String> = blocked.iter().map(|(name, _)| printable(name)).collect();
    Err(CommandError::refused(format!("the scan blocks `{}`", names.join("`, `")))
        .with_code("blocked")
        .hint(format!("look at the findings: savoir scan {folder}"))
        .hint(format!("to use it anyway: --allow-blocked {}", names.join(","))))
}

/// Prints the name, the skills and the purpose of the agent.
fn introduce(agent: &AgentFile, assembly: &Assembly<'_>) {
    let names: Vec<String> = assembly.members.iter().map(|found| printable(&found.name)).collect();
    let version = agent.version.as_ref().map(|version| format!(" {version}")).unwrap_or_default();
    let purpose = agent.description.as_deref();
    let purpose = purpose.map(|text| format!(": {}", printable(text))).unwrap_or_default();
    // Texts of the file stay on one line, so that they cannot imitate lines of this program.
    output::note(&format!("{}{version}{purpose}", printable(&agent.name)));
    output::note(&format!("skills: {}", names.join(", ")));
    let warnings = assembly.findings.iter().filter(|found| found.level == FindingLevel::Warning);
    warnings.for_each(|found| output::note(&format!("warning: {}", printable(&found.message))));
    if let Some(model) = &agent.model.default {
        output::note(&format!("made for {model}; choose a model with --model"));
    }
}
