//! `savoir agent`: checks, installs and runs an agent that is composed of skills.

mod gather;
mod install;
mod report;
#[cfg(feature = "server")]
mod run;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use savoir_package::{
    FileError,
    agent_file::{
        self, AgentFile, Assembly, AssemblyRequest, FindingLevel, LocalSkills, Minimum, Model,
        SetError, assemble,
    },
    resolve::CombinedIndex,
};

use self::gather::SkillGatherer;
use crate::{error::CommandError, installed::Installed, output};

/// Install and run an agent that is composed of skills
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Check(CheckArgs),
    Install(install::InstallArgs),
    #[cfg(feature = "server")]
    Run(run::RunArgs),
}

/// Show the skills and permissions of an agent, and what is missing
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  savoir agent check                     the AGENT.yaml of this folder
  savoir agent check AGENT.yaml --skills ../our-skills
  savoir agent check --model llama3.1:8b --context 128K
  savoir agent check --set small --json

Skills are searched in the folders of --skills, in the folder `skills` next to the file, in the
savoir.lock of the project and of the user, and in the skill folders of agents. Nothing is
downloaded or run.

Exit codes: 0 the agent can start, 1 something is missing or incompatible, 2 the file cannot be
read.")]
struct CheckArgs {
    /// Agent file, or its folder
    #[arg(value_name = "AGENT.yaml", default_value = ".")]
    path: PathBuf,
    /// Skill folders, or their parent folders, to search first
    #[arg(long, value_name = "PATH")]
    skills: Vec<PathBuf>,
    /// Set of skills to use, if the file has several
    #[arg(long, value_name = "NAME")]
    set: Option<String>,
    /// Model to run on, or its size, for example 8B [default: the model in the file]
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Context size of the model, for example 32768 or 128K
    #[arg(long, value_name = "TOKENS", value_parser = tokens)]
    context: Option<u64>,
    /// GPU memory, for example 16GB
    #[arg(long, value_name = "SIZE", value_parser = memory)]
    gpu_memory: Option<u64>,
    /// Whether the machine has an NPU
    #[arg(long, value_name = "YES|NO")]
    npu: Option<Answer>,
    /// Accepted for scripts of earlier versions; unsigned skills are noted, not refused
    #[arg(long, hide = true)]
    allow_experimental: bool,
    /// Fail on warnings
    #[arg(long)]
    strict: bool,
    /// The project [default: the nearest folder above with savoir.toml, a lock or .git]
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Answer {
    Yes,
    No,
}

fn tokens(text: &str) -> Result<u64, String> {
    if let Ok(tokens) = text.parse() {
        return Ok(tokens);
    }
    let tokens = Minimum::tokens(text).map(|least| least.amount);
    tokens.map_err(|_| "write a number, for example 32768, 32K or 1M".to_owned())
}

fn memory(text: &str) -> Result<u64, String> {
    let bytes = Minimum::bytes(text).map(|least| least.amount);
    bytes.map_err(|_| "write a size, for example 16GB or 512MB".to_owned())
}

pub(crate) fn run(args: Args) -> Result<ExitCode, CommandError> {
    match args.command {
        Command::Check(args) => check(&args),
        Command::Install(args) => install::run(args),
        #[cfg(feature = "server")]
        Command::Run(args) => run::run(args),
    }
}

pub(crate) use self::install::{InstallRequest, agent_file_at, install_agent};

fn check(args: &CheckArgs) -> Result<ExitCode, CommandError> {
    let agent = read(&args.path)?;
    let installed = Installed::open(args.project.as_deref())?;
    installed.warn();
    let offers = gather(&agent, args.set.as_deref(), &args.skills, &installed)?;
    let model = model(args, &agent);
    // Registries are not searched yet.
    let others = CombinedIndex::default();
    let set = args.set.as_deref();
    let request =
        AssemblyRequest { agent: &agent, set, offers: &offers, others: &others, model: &model };
    let assembly = assemble(&request).map_err(|error| no_set(&error))?;
    if args.json {
        output::json(&report::json(&agent, &assembly, &model))?;
    } else {
        output::text(&output::sanitize(&report::text(&agent, &assembly, &model)))?;
    }
    Ok(ExitCode::from(u8::from(fails(args, &assembly))))
}

/// Finds the skills on this machine that the agent can use.
fn gather(
    agent: &AgentFile,
    set: Option<&str>,
    folders: &[PathBuf],
    installed: &Installed,
) -> Result<LocalSkills, CommandError> {
    let composition = agent.composition(set).map_err(|error| no_set(&error))?;
    let mut gatherer = SkillGatherer::new(installed)?;
    gatherer.add_skills_at_paths(folders)?;
    gatherer.add_skills_next_to(Path::new(&agent.file));
    Ok(gatherer.gather_skills(composition.parts.into_iter().map(|part| part.skill.name)))
}

fn fails(args: &CheckArgs, assembly: &Assembly<'_>) -> bool {
    let least = if args.strict { FindingLevel::Warning } else { FindingLevel::Error };
    assembly.findings.iter().any(|found| found.level >= least)
}

fn read(path: &Path) -> Result<AgentFile, CommandError> {
    let file = if path.is_dir() { agent_file::find(path) } else { Some(path.to_owned()) };
    let file = file.ok_or_else(|| {
        CommandError::input(format!("{} has no {}", path.display(), agent_file::FILES[0]))
            .hint("name the file of an agent, or its folder")
    })?;
    // Otherwise every printed path would start with `./`.
    let file = file.strip_prefix(".").map(Path::to_owned).unwrap_or(file);
    let missing = || {
        CommandError::input(format!("{} does not exist", file.display()))
            .hint("name the file of an agent, or its folder")
    };
    AgentFile::read(&file).map_err(|error| unreadable(&error))?.ok_or_else(missing)
}

fn model(args: &CheckArgs, agent: &AgentFile) -> Model {
    let name = args.model.as_deref().or(agent.model.default.as_deref());
    Model {
        context: args.context,
        gpu_memory: args.gpu_memory,
        npu: args.npu.map(|answer| answer == Answer::Yes),
        ..name.map(Model::named).unwrap_or_default()
    }
}

/// The model that the file names.
fn default_model(agent: &AgentFile) -> Model {
    agent.model.default.as_deref().map(Model::named).unwrap_or_default()
}

fn unreadable(error: &FileError) -> CommandError {
    let failed = CommandError::input(error).with_code(error.code());
    error.hint().into_iter().fold(failed, CommandError::hint)
}

fn no_set(error: &SetError) -> CommandError {
    CommandError::input(error).hint("name one with --set NAME")
}
