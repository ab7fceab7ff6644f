//! Options that grant a skill more than it declares.

use std::path::Path;

use savoir_engine::approval::{Widening, shell_word};

use crate::error::CommandError;

/// What a person adds to the permissions of a skill.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "More than the skill declares")]
pub(crate) struct WideningArgs {
    /// Let it read this file or folder, too
    #[arg(id = "allow-read", long, value_name = "PATH")]
    read: Vec<String>,
    /// Let it write this file or folder, too
    #[arg(id = "allow-write", long, value_name = "PATH")]
    write: Vec<String>,
    /// Let it send any request to this host, host:port or URL, too; *.host includes all below it
    #[arg(id = "allow-host", long, value_name = "HOST")]
    host: Vec<String>,
    /// Let it send any request to this host, host:port or URL inside your own network, too
    #[arg(id = "allow-private-host", long, value_name = "HOST")]
    private_host: Vec<String>,
    /// Let it run this program, too
    #[arg(id = "allow-program", long, value_name = "PROGRAM")]
    program: Vec<String>,
    /// Let it read this environment variable, too
    #[arg(id = "allow-env", long, value_name = "NAME")]
    env: Vec<String>,
}

impl WideningArgs {
    /// What was given, with absolute paths.
    pub(crate) fn widening(&self) -> Result<Widening, CommandError> {
        let paths = |paths: &[String]| -> Result<Vec<String>, CommandError> {
            paths.iter().map(|path| absolute(path)).collect()
        };
        let extra = Widening {
            read: paths(&self.read)?,
            write: paths(&self.write)?,
            hosts: self.host.clone(),
            private_hosts: self.private_host.clone(),
            programs: self.program.clone(),
            env: self.env.clone(),
        };
        Ok(extra.sorted())
    }

    /// The same options for a shell, each after a blank.
    pub(crate) fn words(&self) -> String {
        let mut words = String::new();
        for (option, values) in [
            ("--allow-read", &self.read),
            ("--allow-write", &self.write),
            ("--allow-host", &self.host),
            ("--allow-private-host", &self.private_host),
            ("--allow-program", &self.program),
            ("--allow-env", &self.env),
        ] {
            for value in values {
                words.extend([" ", option, " ", &shell_word(value)]);
            }
        }
        words
    }
}

/// What a path means does not depend on where the skill runs later. `~` stays: it means the same
/// everywhere.
fn absolute(path: &str) -> Result<String, CommandError> {
    if path.is_empty() || path == "~" || path.starts_with("~/") {
        return Ok(path.to_owned());
    }
    let failed = |error| CommandError::input(format!("{path}: {error}"));
    let absolute = match Path::new(path).canonicalize() {
        Ok(path) => path,
        // It may be a pattern, or be made by the first run.
        Err(_) => std::path::absolute(path).map_err(failed)?,
    };
    absolute.into_os_string().into_string().map_err(|_| {
        CommandError::input(format!("{path} is not UTF-8")).hint("rename it, or name the folder")
    })
}
