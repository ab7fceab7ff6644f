//! `savoir`: the front door. Commands are thin: what was typed becomes what it means, the library
//! does the work, and the result is printed here and nowhere else.

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
mod extractor;
mod findings;
mod installed;
mod kept_log;
mod load;
mod locked_copies;
mod log_filter;
mod lookup;
mod lost_files;
mod missing_package;
mod mode;
mod offline;
mod output;
mod overheard;
mod packed;
mod place;
mod progress;
mod registry_backup;
mod registry_conformance;
mod registry_import;
mod remote;
mod runtime;
mod screen;
mod session;
mod shelf;
mod trust;
mod voice;
mod widening;
mod write;

use std::process::ExitCode;

use clap::Parser as _;

use crate::commands::Cli;

fn main() -> ExitCode {
    let args = std::env::args_os().collect();
    let cli = Cli::parse_from(commands::install::with_one_value_per_option(args));
    match commands::run(cli) {
        Ok(code) => code,
        Err(error) => error.report(),
    }
}
