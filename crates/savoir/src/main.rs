//! The `savoir` program. Commands parse arguments, call the libraries and print the result; only this
//! crate prints.

#![forbid(unsafe_code)]

mod agent_settings;
mod agent_skills;
mod ask;
mod commands;
mod config;
mod conformance;
mod copies;
mod credentials;
mod discover;
mod error;
mod events;
mod extra_grants;
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
mod model_errors;
mod models;
mod offline;
mod output;
mod progress;
mod remote;
mod runtime;
mod screen;
mod session;
mod skill_archive;
mod storage_args;
mod trust;
mod write;

use std::process::ExitCode;

use clap::FromArgMatches as _;

use crate::commands::Cli;

fn main() -> ExitCode {
    let args = std::env::args_os().collect();
    let args: Vec<_> = commands::install::with_one_value_per_option(args);
    let command = commands::help::command();
    let parsed = command.clone().try_get_matches_from(&args);
    let cli = parsed.and_then(|matches| Cli::from_arg_matches(&matches));
    let json = json_errors::is_json_requested(&args);
    let cli = cli.unwrap_or_else(|mut error| {
        commands::suggest::improve(&mut error, &command, &args);
        if json && error.use_stderr() {
            json_errors::print_usage_error(&error);
        }
        error.exit()
    });
    if json && !cli.asks_with_json() {
        ask::disable_questions();
    }
    match commands::run(cli) {
        Ok(code) => code,
        Err(error) => {
            if json {
                json_errors::print(&error);
            }
            error.report()
        }
    }
}
