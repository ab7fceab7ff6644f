//! `savoir remove`: removes installed skills and the dependencies that only they need.

use std::process::ExitCode;

use clap_complete::engine::ArgValueCandidates;
use savoir_package::{
    Agent,
    install::{InstallPlan, PlannedChange},
    ledger::LedgerEntry,
    lock::Lock,
};
use serde_json::Map;

use crate::{
    agent_settings::DisableSetting,
    completion,
    error::CommandError,
    install_context::{InstallContext, OutputArgs, Report, ScopeArgs, agent},
    installed::Installed,
    output,
};

/// Remove installed skills and the dependencies that only they need
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  savoir remove pdf
  savoir remove pdf --agent codex        only for this agent
  savoir remove pdf notes --user
  savoir remove --all                    every skill of the project

A skill that you edited is removed only with --force. Dependencies of other skills stay installed.
`savoir undo` restores removed skills.")]
pub(crate) struct Args {
    /// Names of the skills
    #[arg(required_unless_present = "all", value_name = "NAME", add = ArgValueCandidates::new(completion::installed_skills))]
    names: Vec<String>,
    /// Remove all skills of the project; with --user, those of the user
    #[arg(long, conflicts_with = "names")]
    all: bool,
    /// Remove them only for these agents
    #[arg(long, short, value_name = "AGENT", value_delimiter = ',', value_parser = agent, add = ArgValueCandidates::new(completion::agents))]
    agent: Vec<&'static Agent>,
    #[command(flatten)]
    scope: ScopeArgs,
    /// Accepted for scripts that pass it to every command: this command never asks
    #[arg(long, short, hide = true)]
    yes: bool,
    #[command(flatten)]
    output: OutputArgs,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    remove(args)
}

fn remove(args: &Args) -> Result<ExitCode, CommandError> {
    // Nothing is asked, with and without it.
    let _ = args.yes;
    let context = args.scope.open()?;
    context.check_installed(&args.names, "remove")?;
    let before = context.skill_set.state()?.lock;
    let names: Vec<String> =
        if args.all { before.skills.keys().cloned().collect() } else { args.names.clone() };
    let edits = args.output.edits();
    let plan = || {
        Ok(if args.agent.is_empty() {
            context.skill_set.remove(&names, edits)?
        } else {
            context.skill_set.remove_from_agents(&names, &args.agent, edits)?
        })
    };
    let agree = |plan: &mut InstallPlan| {
        refuse_edited(&names, &context, plan)?;
        Ok(!args.output.dry_run)
    };
    let (plan, done) = context.carry_out(plan, agree)?;
    Report { json: args.output.json, done }.print(&context, &[&plan], Map::new())?;
    if done && !args.output.json {
        note_remaining_agents(args, &names, &before)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Reports agents that still see a skill, because several agents read the same folder, and agents
/// for which it was not installed.
fn note_remaining_agents(args: &Args, names: &[String], before: &Lock) -> Result<(), CommandError> {
    if args.agent.is_empty() {
        return Ok(());
    }
    let installed = Installed::open(args.scope.project())?;
    for name in names {
        for agent in &args.agent {
            let sees = |entry: &&LedgerEntry| entry.agents().iter().any(|one| one.id == agent.id);
            let was_installed = before
                .skills
                .get(name)
                .is_some_and(|locked| locked.agents.iter().any(|id| id == agent.id));
            if !was_installed {
                output::note(&format!("`{name}` is not installed for {}", agent.title));
            } else if let Some(entry) = installed.ledger.named(name).iter().find(sees) {
                let folder = installed.shown(entry.path());
                let hint = match DisableSetting::of(agent) {
                    Some(_) => format!("savoir disable {name} --agent {}", agent.id),
                    None => format!("savoir remove {name}, which removes it from all agents"),
                };
                output::note(&format!(
                    "{} still reads {folder}, because other agents use the same folder; to hide the \
                     skill from it: {hint}",
                    agent.title
                ));
            }
        }
    }
    Ok(())
}

/// Refuses to remove a skill whose folder was edited: the folder would stay, and savoir.lock would
/// no longer know it.
fn refuse_edited(
    names: &[String],
    context: &InstallContext,
    plan: &InstallPlan,
) -> Result<(), CommandError> {
    let removed = |name: &str| {
        let is_removed = |change: &PlannedChange| matches!(change, PlannedChange::Removed { name: gone, .. } if gone == name);
        names.iter().any(|given| given == name) || plan.changes().iter().any(is_removed)
    };
    let edited = plan
        .edited_folders()
        .filter(|folder| folder.file_name().and_then(|name| name.to_str()).is_some_and(removed));
    let edited: Vec<String> =
        edited.map(|folder| context.short(&folder.display().to_string())).collect();
    if edited.is_empty() {
        return Ok(());
    }
    let message = format!("{} was edited; nothing was removed", edited.join(", "));
    Err(CommandError::refused(message)
        .with_code("edited")
        .hint("to remove it with your edits: --force; `savoir undo` restores it"))
}
