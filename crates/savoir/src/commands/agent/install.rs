//! `savoir agent install`: installs the skills of an agent.

use std::{
    collections::{BTreeSet, VecDeque},
    path::{Path, PathBuf},
    process::ExitCode,
};

use savoir_package::{
    agent_file::{
        self, AgentFile, AssemblyRequest, FindingLevel, LocalSkills, SkillLocationKind, assemble,
    },
    resolve::{CombinedIndex, Necessity},
};
use savoir_skill::version::SkillRef;

use super::{gather, no_set, read, report};
use crate::{
    commands::install,
    error::CommandError,
    install_context::{Consent, ForAgents, OutputArgs, RegistryArgs, ScopeArgs},
    installed::Installed,
    output,
};

/// Install the skills that an agent needs
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  savoir agent install                   the AGENT.yaml of this folder
  savoir agent install AGENT.yaml --user -y
  savoir agent install --set small

Skills in the folder `skills` next to the file are installed from there, others from your
registries. An optional skill that cannot be installed is left out with a warning.

Exit codes: 0 the agent can start, 1 something is missing or incompatible, 2 the file cannot be
read, 3 not confirmed, blocked, or forged.")]
pub(super) struct InstallArgs {
    /// Agent file, or its folder
    #[arg(value_name = "AGENT.yaml", default_value = ".")]
    path: PathBuf,
    /// Set of skills to install, if the file has several
    #[arg(long, value_name = "NAME")]
    set: Option<String>,
    #[command(flatten)]
    request: InstallRequest,
}

/// How skills are installed.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct InstallRequest {
    #[command(flatten)]
    pub(crate) ask: RegistryArgs,
    #[command(flatten)]
    pub(crate) agents: ForAgents,
    #[command(flatten)]
    pub(crate) scope: ScopeArgs,
    #[command(flatten)]
    pub(crate) consent: Consent,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

pub(super) fn run(args: InstallArgs) -> Result<ExitCode, CommandError> {
    install_agent(&args.path, args.set.as_deref(), args.request)
}

/// The agent file that a source of `savoir install` names: the file, or a folder that is an agent
/// and not a skill.
pub(crate) fn agent_file_at(source: &str) -> Option<PathBuf> {
    let path = Path::new(source);
    if path.is_dir() {
        return agent_file::find(path).filter(|_| !path.join("SKILL.md").exists());
    }
    let name = path.file_name()?.to_str()?;
    (agent_file::FILES.contains(&name) && path.is_file()).then(|| path.to_owned())
}

/// Installs the skills of an agent, and reports whether it can start.
pub(crate) fn install_agent(
    path: &Path,
    set: Option<&str>,
    request: InstallRequest,
) -> Result<ExitCode, CommandError> {
    let agent = read(path)?;
    let project = request.scope.project.clone();
    let (is_dry_run, is_json) = (request.output.dry_run, request.output.json);
    let missing = {
        let installed = Installed::open(project.as_deref())?;
        installed.warn();
        let offers = gather(&agent, set, &[], &installed)?;
        missing_skills(&agent, set, &offers)?
    };
    let mut args = install::Args::of(request);
    if !missing.required.is_empty() {
        args.set_sources(missing.required);
        let ended = install::install(&args)?;
        if is_dry_run || ended != ExitCode::SUCCESS {
            return Ok(ended);
        }
    }
    for source in missing.optional {
        args.set_sources(vec![source.clone()]);
        if let Err(error) = install::install(&args) {
            output::note(&format!("warning: `{source}` is optional and left out: {error}"));
        }
    }
    report_state(&agent, set, project.as_deref(), is_json)
}

/// Sources of skills that are not installed.
#[derive(Default)]
struct MissingSkills {
    required: Vec<String>,
    optional: Vec<String>,
}

fn missing_skills(
    agent: &AgentFile,
    set: Option<&str>,
    offers: &LocalSkills,
) -> Result<MissingSkills, CommandError> {
    let composition = agent.composition(set).map_err(|error| no_set(&error))?;
    let mut missing = MissingSkills::default();
    let parts = composition.parts.into_iter().map(|part| (part.skill, part.need));
    let mut waiting: VecDeque<_> = parts.collect();
    let mut seen = BTreeSet::new();
    while let Some((skill, need)) = waiting.pop_front() {
        if !seen.insert(skill.name.clone()) {
            continue;
        }
        let Some(source) = source_of(&skill, offers) else { continue };
        waiting.extend(dependencies(&skill, offers).map(|skill| (skill, need)));
        match need {
            Necessity::Required => missing.required.push(source),
            Necessity::Optional => missing.optional.push(source),
        }
    }
    // Optional skills are installed one by one, so dependencies must come before the skills that
    // need them.
    missing.optional.reverse();
    Ok(missing)
}

/// The dependencies of a skill in the folder of the agent file.
fn dependencies(skill: &SkillRef, offers: &LocalSkills) -> impl Iterator<Item = SkillRef> {
    let beside = offers.named(&skill.name).iter();
    let beside = beside.filter(|offer| offer.way == SkillLocationKind::Beside);
    beside.flat_map(|offer| offer.summary.needs.clone()).collect::<Vec<_>>().into_iter()
}

/// The source from which to install a skill; none if an installed version matches.
fn source_of(skill: &SkillRef, offers: &LocalSkills) -> Option<String> {
    let matching = || {
        let named = offers.named(&skill.name).iter();
        named.filter(|offer| skill.range.matches(&offer.summary.version) || skill.range.is_any())
    };
    if matching().any(|offer| offer.way != SkillLocationKind::Beside) {
        return None;
    }
    let beside = matching().find_map(|offer| offer.folder.as_ref());
    let beside = beside.map(|folder| {
        if folder.is_absolute() {
            folder.display().to_string()
        } else {
            format!("./{}", folder.strip_prefix(".").unwrap_or(folder).display())
        }
    });
    Some(beside.unwrap_or_else(|| skill.to_string()))
}

/// Prints the current state of the agent.
fn report_state(
    agent: &AgentFile,
    set: Option<&str>,
    project: Option<&Path>,
    is_json: bool,
) -> Result<ExitCode, CommandError> {
    let installed = Installed::open(project)?;
    let offers = gather(agent, set, &[], &installed)?;
    let model = super::default_model(agent);
    let others = CombinedIndex::default();
    let request = AssemblyRequest { agent, set, offers: &offers, others: &others, model: &model };
    let assembly = assemble(&request).map_err(|error| no_set(&error))?;
    if !is_json {
        output::text(&output::sanitize(&report::text(agent, &assembly, &model)))?;
    }
    let fails = assembly.findings.iter().any(|found| found.level == FindingLevel::Error);
    Ok(ExitCode::from(u8::from(fails)))
}
