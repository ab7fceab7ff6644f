//! `savoir help`, and the page that `savoir --help` prints.

use std::{borrow::Cow, fmt::Write as _, process::ExitCode};

use clap::CommandFactory as _;
use savoir_package::Agent;

use super::Cli;
use crate::{error::CommandError, output};

/// Show help for Savoir or for one command
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  savoir help --all
  savoir help --agents
  savoir help install
  savoir help registry yank")]
pub(crate) struct Args {
    /// List every command, including less used ones
    #[arg(long, conflicts_with = "command")]
    all: bool,
    /// List the agents that --agent accepts
    #[arg(long, conflicts_with_all = ["all", "command"])]
    agents: bool,
    /// The command
    command: Vec<String>,
}

struct Group {
    title: &'static str,
    commands: &'static [&'static str],
    /// Commands that only `savoir help --all` lists.
    less_used: &'static [&'static str],
}

/// Every command that help lists, in its order.
const GROUPS: [Group; 6] = [
    Group {
        title: "Write",
        commands: &["new", "check", "show", "render", "convert"],
        less_used: &["diff", "migrate", "lsp"],
    },
    Group {
        title: "Install",
        commands: &[
            "install", "update", "remove", "list", "info", "search", "status", "undo", "enable",
            "disable",
        ],
        less_used: &["sync", "outdated", "adopt", "which"],
    },
    Group {
        title: "Run",
        commands: &["run", "chat", "eval", "mcp", "tools"],
        less_used: &["workflow", "kb"],
    },
    Group {
        title: "Trust",
        commands: &["approve", "scan", "verify", "sign", "secret"],
        less_used: &["keys", "trust"],
    },
    Group {
        title: "Publish and serve",
        commands: &["publish", "login", "registry", "serve", "ui"],
        less_used: &["logout", "whoami", "admin", "import", "export"],
    },
    Group {
        title: "More",
        commands: &["doctor", "rules", "config", "help"],
        less_used: &[
            "runs", "context", "models", "agent", "schema", "cache", "conformance", "completions",
            "man",
        ],
    },
];

/// Whether a full build has the command.
pub(crate) fn is_listed(name: &str) -> bool {
    GROUPS.iter().any(|group| group.commands.contains(&name) || group.less_used.contains(&name))
}

/// The command line, with commands in groups.
pub(crate) fn command() -> clap::Command {
    with_page(Cli::command(), false)
}

fn with_page(command: clap::Command, all: bool) -> clap::Command {
    let groups = groups(&command, all);
    let header = *command.get_styles().get_header();
    let more = if all { "" } else { "\nAll commands: savoir help --all\n" };
    command.help_template(format!(
        "{{about}}\n\n{{usage-heading}} {{usage}}\n\n{groups}{more}\n{header}Options:{header:#}\n\
         {{options}}{{after-help}}"
    ))
}

fn groups(command: &clap::Command, all: bool) -> String {
    let header = command.get_styles().get_header();
    let literal = command.get_styles().get_literal();
    let mut text = String::new();
    for Group { title, commands, less_used } in &GROUPS {
        let less_used = if all { *less_used } else { &[] };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{header}{title}:{header:#}");
        for name in commands.iter().chain(less_used) {
            // A lean build has fewer commands.
            let Some(found) = command.find_subcommand(name) else { continue };
            let about = found.get_about().map(ToString::to_string).unwrap_or_default();
            let aliases = aliases(command, name);
            let _ = writeln!(text, "  {literal}{name:<12}{literal:#} {about}{aliases}");
        }
        text.push('\n');
    }
    text.truncate(text.trim_end().len() + 1);
    text
}

/// Every command that help lists, in its order.
pub(super) fn visible_commands() -> impl Iterator<Item = &'static str> {
    GROUPS.iter().flat_map(|group| group.commands.iter().chain(group.less_used)).copied()
}

/// Other names of a command, as clap writes them.
fn aliases(command: &clap::Command, name: &str) -> String {
    let found = command.find_subcommand(name);
    let aliases: Vec<&str> =
        found.into_iter().flat_map(clap::Command::get_visible_aliases).collect();
    match aliases.as_slice() {
        [] => String::new(),
        [one] => format!(" [alias: {one}]"),
        several => format!(" [aliases: {}]", several.join(", ")),
    }
}

/// Every agent, with the ids that `--agent` accepts.
fn agents() -> String {
    let row = |agent: &'static Agent| {
        [agent.id.into(), agent.title.into(), agent.aliases.join(", ").into()]
    };
    let mut rows: Vec<[Cow<'_, str>; 3]> = Agent::ALL.iter().map(row).collect();
    rows.sort();
    output::table(["AGENT", "NAME", "ALSO ACCEPTED"], &rows)
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    if args.agents {
        output::text(&agents())?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut root = with_page(Cli::command(), args.all);
    root.build();
    let mut command = &mut root;
    for name in &args.command {
        let names: Vec<String> =
            command.get_subcommands().map(|one| one.get_name().into()).collect();
        let Some(found) = command.find_subcommand_mut(name) else {
            let near = savoir_lint::words::nearest(name, names.iter().map(String::as_str));
            let error = CommandError::input(format!("there is no command `{name}`"));
            return Err(match near {
                Some(near) => error.hint(format!("did you mean `{near}`?")),
                None => error.hint("`savoir help --all` lists all commands"),
            });
        };
        command = found;
    }
    output::text(&command.render_long_help().to_string())?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_visible_command_is_in_one_group() {
        let mut grouped: Vec<&str> = visible_commands().collect();
        grouped.sort_unstable();
        let command = Cli::command();
        let visible = command.get_subcommands().filter(|one| !one.is_hide_set());
        let mut visible: Vec<&str> = visible.map(clap::Command::get_name).collect();
        visible.sort_unstable();
        assert_eq!(grouped, visible);
    }

    #[test]
    fn every_line_of_the_page_fits() {
        let page = with_page(Cli::command(), true).render_long_help().to_string();
        let wide: Vec<&str> = page.lines().filter(|line| line.chars().count() > 100).collect();
        assert_eq!(wide, Vec::<&str>::new());
    }
}
