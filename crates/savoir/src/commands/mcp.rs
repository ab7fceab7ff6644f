//! `savoir mcp`.

mod clients;
mod install;

use std::{io, process::ExitCode, sync::Arc};

use savoir_engine::{
    Home,
    agent::{
        library::Library,
        skill_tools::{Bench, SkillTools},
    },
};
use savoir_server::mcp::{self, Desk};
use tracing_subscriber::EnvFilter;

use crate::{
    agent_skills::{AgentSkills, Which},
    error::CommandError,
    mode::Mode,
    runtime, trust,
};

/// Offer skills to an agent that speaks the Model Context Protocol, over standard input and output
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = "\
Examples:
  savoir mcp install --agent codex       let an agent start this by itself
  savoir mcp                             the skills that are installed here
  savoir mcp --agent claude-code         those that one agent sees
  savoir mcp skills/                     those below a folder
  savoir mcp --pin pdf-tools             with the tools of a skill from the beginning

An agent finds skills with search_skills, loads one with use_skill, and can
then call the tools that the skill brings: after the same approvals and in the same sandbox as
`savoir run`. SAVOIR_LOG_LEVEL=debug says more on standard error.")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    which: Which,
    /// Skills whose tools are offered from the beginning
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pin: Vec<String>,
    /// The situation, for skills that ask for it
    #[arg(long, value_name = "MODE", ignore_case = true, default_value = "Global")]
    mode: Mode,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Install(install::Install),
    Uninstall(install::Uninstall),
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    match &args.command {
        None => serve(args),
        Some(Command::Install(args)) => install::install(args),
        Some(Command::Uninstall(args)) => install::uninstall(args),
    }
}

fn serve(args: &Args) -> Result<ExitCode, CommandError> {
    start_log();
    let home = Home::from_environment()?;
    let skills = Arc::new(AgentSkills::new(args.which.clone(), home.clone())?.noticing());
    let bench = Bench {
        subjects: Arc::clone(&skills) as _,
        asker: Arc::new(mcp::Elicitation),
        ground: trust::ground(&home)?,
        home,
        mode: args.mode.as_str().to_owned(),
    };
    let library: Arc<dyn Library> = Arc::clone(&skills) as _;
    let tools = Some(Arc::new(SkillTools::new(bench)));
    let desk = Desk { library, files: skills, tools, lacking: None, pinned: args.pin.clone() };
    runtime::block_on(async {
        Box::pin(mcp::serve_stdio(desk)).await.map_err(|error| failed(&error))
    })?;
    Ok(ExitCode::SUCCESS)
}

fn failed(error: &io::Error) -> CommandError {
    CommandError::findings(format!("the conversation cannot go on: {error}"))
}

/// Standard output belongs to the protocol.
fn start_log() {
    let filter = EnvFilter::try_from_env("SAVOIR_LOG_LEVEL")
        .unwrap_or_else(|_| EnvFilter::new("warn,rmcp=error"));
    // If somebody else keeps a log already, that one is good.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(false)
        .try_init();
}
