//! `savoir registry`, with one file for each group of subcommands.

mod auditors;
#[cfg(feature = "server")]
mod backup;
mod common;
#[cfg(feature = "server")]
mod conformance;
#[cfg(feature = "server")]
mod import;
mod keys;
mod log;
mod members;
mod mirror;
mod release;
#[cfg(feature = "server")]
mod restore;
mod review;
mod sign;
#[cfg(feature = "server")]
mod sweep;
mod tokens;

use std::process::ExitCode;

use crate::error::CommandError;

/// Manage published skills, mirrors and your own registry
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  savoir registry yank acme/pdf@1.2.0 --reason \"it leaks\"
  savoir registry deprecate acme/pdf@1.2.0 \"use acme/paper\"
  savoir registry members add acme grace@example.com --role owner
  savoir registry keys list acme
  savoir registry log acme
  savoir registry appeals --email root@example.com
  savoir registry mirror https://skills.example.com/registry ./mirror
  savoir registry import mirror/
  savoir registry backup registry.tar
  savoir registry conformance https://skills.example.com/registry

Log in first: savoir login. The commands import, backup, restore and sweep need no login: they use
the database and the storage of the registry directly.

Exit codes: 1 the registry refuses or cannot be reached, 2 wrong usage, 3 refused here: wrong
password, files that do not match the index, or a key that others can read.")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Yank(release::Yank),
    Unyank(release::Unyank),
    Deprecate(release::Deprecate),
    Rescan(release::Rescan),
    Appeal(release::Appeal),
    RequestAudit(release::RequestAudit),
    Appeals(review::Appeals),
    Clear(review::Clear),
    Unclear(review::Unclear),
    Verdict(review::Verdict),
    TakeDown(review::TakeDown),
    Sign(sign::Args),
    Members(members::Args),
    Keys(keys::Args),
    Auditors(auditors::Args),
    Tokens(tokens::Args),
    Log(log::Args),
    Mirror(mirror::Args),
    #[cfg(feature = "server")]
    Import(import::Args),
    #[cfg(feature = "server")]
    Backup(backup::Args),
    #[cfg(feature = "server")]
    Restore(restore::Args),
    #[cfg(feature = "server")]
    Sweep(sweep::Args),
    #[cfg(feature = "server")]
    Conformance(Box<conformance::Args>),
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    match &args.command {
        Command::Yank(args) => args.run(),
        Command::Unyank(args) => args.run(),
        Command::Deprecate(args) => args.run(),
        Command::Rescan(args) => args.run(),
        Command::Appeal(args) => args.run(),
        Command::RequestAudit(args) => args.run(),
        Command::Appeals(args) => args.run(),
        Command::Clear(args) => args.run(),
        Command::Unclear(args) => args.run(),
        Command::Verdict(args) => args.run(),
        Command::TakeDown(args) => args.run(),
        Command::Sign(args) => sign::run(args),
        Command::Members(args) => members::run(args),
        Command::Keys(args) => keys::run(args),
        Command::Auditors(args) => auditors::run(args),
        Command::Tokens(args) => tokens::run(args),
        Command::Log(args) => log::run(args),
        Command::Mirror(args) => mirror::run(args),
        #[cfg(feature = "server")]
        Command::Import(args) => import::run(args),
        #[cfg(feature = "server")]
        Command::Backup(args) => backup::run(args),
        #[cfg(feature = "server")]
        Command::Restore(args) => restore::run(args),
        #[cfg(feature = "server")]
        Command::Sweep(args) => sweep::run(args),
        #[cfg(feature = "server")]
        Command::Conformance(args) => conformance::run(args),
    }
}
