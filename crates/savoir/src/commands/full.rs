//! The commands that need models, a database or the server, and the language server. A lean build
//! leaves them out.

use std::process::ExitCode;

use clap::Subcommand;

use super::{
    admin, chat, conformance, context, eval, export, extract, import, kb, lsp, mcp, models, serve,
    ui, workflow,
};
use crate::{error::CommandError, extractor};

#[derive(Debug, Subcommand)]
pub(super) enum FullCommand {
    Mcp(mcp::Args),
    Chat(chat::Args),
    Eval(Box<eval::Args>),
    Lsp(lsp::Args),
    Models(models::Args),
    Import(import::Args),
    Export(export::Args),
    Kb(kb::Args),
    Workflow(workflow::Args),
    Serve(Box<serve::Args>),
    Ui(ui::Args),
    Admin(admin::Args),
    Conformance(conformance::Args),
    Context(context::Args),
    /// The same as `context show`
    #[command(hide = true)]
    Preamble(context::show::Args),
    /// The same as `context simulate`
    #[command(hide = true)]
    Simulate(context::simulate::Args),
    /// Read one PDF from standard input
    #[command(name = extractor::COMMAND, hide = true)]
    Extract,
}

impl FullCommand {
    /// Whether the command may ask a question on the terminal although it prints JSON.
    pub(super) fn asks_with_json(&self) -> bool {
        matches!(self, Self::Chat(_))
    }

    pub(super) fn run(self) -> Result<ExitCode, CommandError> {
        match self {
            Self::Mcp(args) => mcp::run(&args),
            Self::Chat(args) => chat::run(&args),
            Self::Eval(args) => eval::run(&args),
            Self::Lsp(args) => lsp::run(&args),
            Self::Models(args) => models::run(&args),
            Self::Import(args) => import::run(&args),
            Self::Export(args) => export::run(&args),
            Self::Kb(args) => kb::run(&args),
            Self::Workflow(args) => workflow::run(&args),
            Self::Serve(args) => serve::run(&args),
            Self::Ui(args) => ui::run(&args),
            Self::Admin(args) => admin::run(&args),
            Self::Conformance(args) => conformance::run(&args),
            Self::Context(args) => context::run(&args),
            Self::Preamble(args) => context::show::run(&args),
            Self::Simulate(args) => context::simulate::run(&args),
            Self::Extract => extract::run(),
        }
    }
}
