//! Defines the command line of `savoir`. Each command has its own file.

#[cfg(feature = "server")]
mod admin;
mod adopt;
mod agent;
#[cfg(feature = "server")]
mod answer;
mod approve;
mod cache;
#[cfg(feature = "server")]
mod chat;
mod check;
mod completions;
mod config;
#[cfg(feature = "server")]
mod conformance;
#[cfg(feature = "server")]
mod context;
mod convert;
mod diff;
mod doctor;
#[cfg(feature = "server")]
mod eval;
#[cfg(feature = "server")]
mod export;
#[cfg(feature = "server")]
mod extract;
#[cfg(feature = "server")]
mod full;
pub(crate) mod help;
#[cfg(feature = "server")]
mod import;
mod info;
pub(crate) mod install;
#[cfg(feature = "server")]
mod kb;
mod keys;
mod list;
mod login;
mod logout;
#[cfg(feature = "server")]
mod lsp;
mod man;
#[cfg(feature = "server")]
mod mcp;
mod migrate;
#[cfg(feature = "server")]
mod models;
mod new;
mod outdated;
mod prompt;
mod publish;
mod record;
mod reference;
mod registry;
mod remove;
mod render;
pub(crate) mod rules;
mod run;
mod runs;
mod scan;
mod schema;
mod search;
mod secret;
#[cfg(feature = "server")]
mod serve;
mod show;
mod sign;
mod status;
pub(crate) mod suggest;
mod switch;
mod sync;
mod tools;
mod trust;
#[cfg(feature = "server")]
mod ui;
mod undo;
mod update;
mod verify;
mod which;
mod whoami;
#[cfg(feature = "server")]
mod workflow;

use std::process::ExitCode;

use anstream::ColorChoice;
use clap::{
    Parser, Subcommand, ValueEnum,
    builder::{PossibleValue, PossibleValuesParser, TypedValueParser},
};
use savoir_lint::visible;
use savoir_package::{Agent, limits::MAX_SHOWN_BYTES};
use savoir_skill::Dialect;

use crate::{error::CommandError, output};

/// Check, install, run and share agent skills (SKILL.md)
#[derive(Debug, Parser)]
#[command(name = "savoir", version, about, propagate_version = true, max_term_width = 100)]
#[command(disable_help_subcommand = true)]
#[command(after_help = "\
Examples:
  savoir check .                         check every skill below this folder
  savoir check --fix skills/             fix what is safe to fix
  savoir install owner/repo              choose from the skills of a repository
  savoir list                            list every skill on this machine
  savoir scan my-skill                   look for malicious behavior
  savoir run my-skill/my_tool            run a tool in the sandbox
  savoir convert my-skill --to codex -o out/my-skill

Every command takes --color auto|always|never, and -q or --quiet for results, warnings and errors
only.

Exit codes: 0 success, 1 findings or failure, 2 wrong usage or unreadable input, 3 refused by
policy.")]
pub(crate) struct Cli {
    /// When to print colors
    #[arg(long, global = true, hide = true, value_name = "WHEN", default_value = "auto")]
    color: When,
    /// Print no notes and no progress, only results, warnings and errors
    #[arg(long, short, global = true, hide = true)]
    quiet: bool,
    #[command(subcommand)]
    command: Command,
}

/// When to print colors.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum When {
    Auto,
    Always,
    Never,
}

impl Cli {
    /// Applies the options that every command has.
    pub(crate) fn apply_output_options(&self) {
        output::set_options(
            match self.color {
                When::Auto => ColorChoice::Auto,
                When::Always => ColorChoice::Always,
                When::Never => ColorChoice::Never,
            },
            self.quiet,
        );
    }

    /// Whether the command may ask a question on the terminal although it prints JSON.
    pub(crate) fn asks_with_json(&self) -> bool {
        match &self.command {
            Command::Run(_) | Command::Approve(_) | Command::Secret(_) => true,
            #[cfg(feature = "server")]
            Command::Full(command) => command.asks_with_json(),
            _ => false,
        }
    }
}

#[derive(Debug, Subcommand)]
enum Command {
    #[command(visible_aliases = ["validate", "lint"])]
    Check(check::Args),
    Show(show::Args),
    Diff(diff::Args),
    Render(render::Args),
    Tools(tools::Args),
    Convert(convert::Args),
    Migrate(migrate::Args),
    New(new::Args),
    #[command(visible_alias = "add")]
    Install(install::Args),
    Sync(sync::Args),
    #[command(visible_alias = "upgrade")]
    Update(update::Args),
    #[command(visible_alias = "uninstall")]
    Remove(remove::Args),
    Outdated(outdated::Args),
    Undo(undo::Args),
    Cache(cache::Args),
    Adopt(adopt::Args),
    Search(search::Args),
    #[command(visible_alias = "ls")]
    List(list::Args),
    Which(which::Args),
    Enable(switch::Enable),
    Disable(switch::Disable),
    Status(status::Args),
    Info(info::Args),
    Approve(approve::Args),
    Run(run::Args),
    Secret(secret::Args),
    Runs(runs::Args),
    Scan(scan::Args),
    Sign(sign::Args),
    Verify(verify::Args),
    Keys(keys::Args),
    Trust(trust::Args),
    Publish(publish::Args),
    Login(login::Args),
    Logout(logout::Args),
    Whoami(whoami::Args),
    Registry(registry::Args),
    Agent(agent::Args),
    Doctor(doctor::Args),
    Rules(rules::Args),
    #[command(hide = true)]
    Reference(reference::Args),
    Schema(schema::Args),
    Config(config::Args),
    Completions(completions::Args),
    Man(man::Args),
    Help(help::Args),
    /// List approved skills: the same as `approve --list`
    #[command(hide = true)]
    Approvals(approve::ListArgs),
    /// Revoke an approval: the same as `approve --revoke`
    #[command(hide = true)]
    Revoke(approve::RevokeArgs),
    /// Make a key: the same as `keys new`
    #[command(hide = true)]
    Keygen(keys::New),
    #[cfg(feature = "server")]
    #[command(flatten)]
    Full(full::FullCommand),
}

pub(crate) fn run(cli: Cli) -> Result<ExitCode, CommandError> {
    match cli.command {
        Command::Check(args) => check::run(&args),
        Command::Show(args) => show::run(&args),
        Command::Diff(args) => diff::run(&args),
        Command::Render(args) => render::run(args),
        Command::Tools(args) => tools::run(&args),
        Command::Convert(args) => convert::run(&args),
        Command::Migrate(args) => migrate::run(&args),
        Command::New(args) => new::run(&args),
        Command::Install(args) => install::run(args),
        Command::Sync(args) => sync::run(&args),
        Command::Update(args) => update::run(&args),
        Command::Remove(args) => remove::run(&args),
        Command::Adopt(args) => adopt::run(&args),
        Command::Undo(args) => undo::run(&args),
        Command::Cache(args) => cache::run(&args),
        Command::Search(args) => search::run(&args),
        Command::List(args) => list::run(&args),
        Command::Which(args) => which::run(&args),
        Command::Enable(args) => switch::enable(&args),
        Command::Disable(args) => switch::disable(&args),
        Command::Status(args) => status::run(&args),
        Command::Info(args) => info::run(&args),
        Command::Help(args) => help::run(&args),
        Command::Outdated(args) => outdated::run(&args),
        Command::Approve(args) => approve::run(&args),
        Command::Approvals(args) => approve::list(&args),
        Command::Revoke(args) => approve::revoke(&args),
        Command::Run(args) => run::run(&args),
        Command::Secret(args) => secret::run(&args),
        Command::Runs(args) => runs::run(&args),
        Command::Scan(args) => scan::run(&args),
        Command::Sign(args) => sign::run(&args),
        Command::Verify(args) => verify::run(&args),
        Command::Keys(args) => keys::run(&args),
        Command::Publish(args) => publish::run(&args),
        Command::Keygen(args) => keys::make(&args),
        Command::Trust(args) => trust::run(&args),
        Command::Login(args) => login::run(&args),
        Command::Logout(args) => logout::run(&args),
        Command::Whoami(args) => whoami::run(&args),
        Command::Registry(args) => registry::run(&args),
        Command::Agent(args) => agent::run(args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Rules(args) => rules::run(&args),
        Command::Reference(args) => reference::run(&args),
        Command::Schema(args) => schema::run(&args),
        Command::Config(args) => config::run(&args),
        Command::Completions(args) => completions::run(&args),
        Command::Man(args) => man::run(&args),
        #[cfg(feature = "server")]
        Command::Full(command) => command.run(),
    }
}

/// The dialects as values of an argument, so that help and completions list them.
fn dialects() -> impl TypedValueParser<Value = Dialect> {
    let names = |dialect: Dialect| [&[dialect.id()], dialect.aliases()].concat();
    let is_dialect = |word: &&str| Dialect::ALL.iter().any(|known| names(*known).contains(word));
    // An agent is another word for the dialect that it understands best.
    let words = |agent: &Agent| [&[agent.id], agent.aliases].concat();
    let values = Dialect::ALL.map(|dialect| {
        let of_it = Agent::ALL.iter().filter(|agent| agent.dialect == dialect);
        let agents = of_it.flat_map(words).filter(|word| !is_dialect(word));
        PossibleValue::new(dialect.id()).aliases(dialect.aliases()).aliases(agents)
    });
    PossibleValuesParser::new(values).try_map(|word| {
        word.parse::<Dialect>().or_else(|error| match Agent::by_id(&word) {
            Ok(agent) => Ok(agent.dialect),
            Err(_) => Err(error),
        })
    })
}

/// The agents that a command can serve as values of an argument, with every word that names them.
fn agents(served: &'static [&'static str]) -> impl TypedValueParser<Value = &'static Agent> {
    let known = served.iter().filter_map(|id| Agent::by_id(id).ok());
    let values = known.map(|agent| PossibleValue::new(agent.id).aliases(agent.aliases));
    PossibleValuesParser::new(values).try_map(|word| Agent::by_id(&word))
}

/// A name of a publisher that signatures can contain.
fn publisher(name: &str) -> Result<String, String> {
    let name = name.trim();
    if name.is_empty() || name.len() > MAX_SHOWN_BYTES || visible(name) != name {
        return Err(format!("write it on one line, with at most {MAX_SHOWN_BYTES} bytes"));
    }
    Ok(name.to_owned())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    /// Help lines that are too long for the usual width and would be wrapped.
    const LINE_WIDTH: usize = 100;

    fn too_wide(command: &clap::Command) -> Vec<String> {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let wide = help.lines().filter(|line| line.chars().count() > LINE_WIDTH);
        let wide = wide.map(|line| format!("{}: {line}", command.get_name()));
        wide.chain(command.get_subcommands().flat_map(too_wide)).collect()
    }

    #[test]
    fn help_lines_are_not_wrapped() {
        assert_eq!(too_wide(&Cli::command()), Vec::<String>::new());
    }
}
