//! The `savoir` program. Commands parse arguments, call the libraries and print the result; only this
//! crate prints.

#![forbid(unsafe_code)]
#![cfg_attr(
    not(feature = "server"),
    allow(
        dead_code,
        unused_imports,
        clippy::unused_self,
        reason = "a lean build leaves out what uses them"
    )
)]

mod agent_settings;
#[cfg(feature = "server")]
mod agent_skills;
mod ask;
mod commands;
mod completion;
mod config;
#[cfg(feature = "server")]
mod conformance;
mod copies;
mod credentials;
mod error;
mod eval_files;
mod evaluations;
#[cfg(feature = "server")]
mod events;
mod extra_grants;
#[cfg(feature = "server")]
mod extractor;
mod findings;
mod gibberish_mode;
mod install_context;
mod installed;
mod json_errors;
mod load;
mod locked_copies;
mod log_file;
mod log_filter;
mod lookup;
mod lost_files;
mod missing_package;
#[cfg(feature = "server")]
mod model_errors;
#[cfg(feature = "server")]
mod models;
mod offline;
mod output;
mod progress;
mod remote;
mod runtime;
mod screen;
mod session;
mod skill_archive;
#[cfg(feature = "server")]
mod storage_args;
mod trust;
mod write;

use std::process::ExitCode;

use clap::FromArgMatches as _;
use savoir_package::discover;

use crate::{commands::Cli, error::CommandError};

fn main() -> ExitCode {
    completion::answer_shell();
    let args = std::env::args_os().collect();
    let args: Vec<_> = commands::install::with_one_value_per_option(args);
    let command = commands::help::command();
    let parsed = command.clone().try_get_matches_from(&args);
    let cli = parsed.and_then(|matches| Cli::from_arg_matches(&matches));
    let json = json_errors::is_json_requested(&args);
    let cli = match cli {
        Ok(cli) => cli,
        Err(mut error) => {
            if let Some(error) = commands::suggest::not_built_in(&error) {
                return report(&error, json);
            }
            commands::suggest::improve(&mut error, &command, &args);
            if json && error.use_stderr() {
                json_errors::print_usage_error(&error);
            }
            error.exit()
        }
    };
    if json {
        output::set_json();
    }
    if json && !cli.asks_with_json() {
        ask::disable_questions();
    }
    cli.apply_output_options();
    commands::run(cli).unwrap_or_else(|error| report(&error, json))
}

fn report(error: &CommandError, json: bool) -> ExitCode {
    if json {
        json_errors::print(error);
    }
    error.report()
}
