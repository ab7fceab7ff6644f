//! `savoir mcp`: serves skills to an agent over the Model Context Protocol on stdin and stdout.

mod clients;
mod install;

use std::{io, process::ExitCode, sync::Arc};

use savoir_agent::{
    library::Library,
    skill_tools::{SkillToolEnvironment, SkillTools},
};
use savoir_engine::Home;
use savoir_server::mcp::{self, McpContext};
use tracing_subscriber::EnvFilter;

pub(super) use self::clients::known_servers;
use crate::{
    agent_skills::{AgentSkillArgs, AgentSkills},
    error::CommandError,
    gibberish_mode::GibberishMode,
    runtime, trust,
};

/// Serve skills to an agent over the Model Context Protocol on stdin and stdout
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = "\
Examples:
  savoir mcp install --agent codex       add Savoir to the settings of an agent
  savoir mcp                             serve the installed skills
  savoir mcp --agent claude-code         serve the skills that one agent sees
  savoir mcp skills/                     serve the skills below a folder
  savoir mcp --pin pdf-tools             offer the tools of a skill from the start

An agent finds skills with search_skills, loads one with use_skill, and can then call the tools of
the skill, with the same approvals and in the same sandbox as `savoir run`. SAVOIR_LOG_LEVEL=debug
logs more to standard error.")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    which: AgentSkillArgs,
    /// Offer the tools of these skills from the start
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pin: Vec<String>,
    /// Mode, for skills that depend on it
    #[arg(long, value_name = "MODE", ignore_case = true, default_value = "Global")]
    mode: GibberishMode,
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
    let skills = Arc::new(AgentSkills::new(args.which.clone(), home.clone())?.with_later_skills());
    let skill_tool_environment = SkillToolEnvironment {
        skill_loader: Arc::clone(&skills) as _,
        asker: Arc::new(mcp::Elicitation),
        run_env: trust::run_env(&home)?,
        home,
        mode: args.mode.as_str().to_owned(),
    };
    let library: Arc<dyn Library> = Arc::clone(&skills) as _;
    let tools = Some(Arc::new(SkillTools::new(skill_tool_environment)));
    let context = McpContext {
        library,
        files: skills,
        tools,
        lacking: None,
        pinned: args.pin.clone(),
        history: None,
    };
    runtime::block_on(async {
        Box::pin(mcp::serve_stdio(context)).await.map_err(|error| server_error(&error))
    })?;
    Ok(ExitCode::SUCCESS)
}

fn server_error(error: &io::Error) -> CommandError {
    CommandError::findings(format!("the MCP session failed: {error}"))
}

/// Logs to standard error, because standard output carries the protocol.
fn start_log() {
    let filter = EnvFilter::try_from_env("SAVOIR_LOG_LEVEL")
        .unwrap_or_else(|_| EnvFilter::new("warn,rmcp=error"));
    // Ignored: another logger may be set already.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(false)
        .try_init();
}
