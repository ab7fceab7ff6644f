//! `savoir doctor`.

use std::{io::Write as _, process::ExitCode};

use savoir_sandbox::{Level, Part, Support};
use serde_json::json;

use crate::{error::CommandError, output};

/// Tell what this machine can hold, by trying it
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Everything that a skill executes runs in a sandbox. What the machine cannot hold is not run; this
command says what is missing and what can be done about it.

Examples:
  savoir doctor
  savoir doctor --json")]
pub(crate) struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    let support = Support::examine();
    let level = support.level();
    if args.json {
        output::json(&json!({ "support": support, "level": level, "says": sentence(level) }))?;
    } else {
        print(&support, level)?;
    }
    Ok(if level == Level::Everything { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn sentence(level: Level) -> &'static str {
    match level {
        Level::Everything => "tools of every tier can run here",
        Level::Vouched => {
            "only tools that someone vouches for (community, verified) can run here: the second \
             lock on files is missing"
        }
        Level::Nothing => "no tool can run here; skills can still be read, checked and rendered",
    }
}

fn print(support: &Support, level: Level) -> Result<(), CommandError> {
    let mut out = output::stdout();
    let mut line = |name: &str, state: &str, detail: &str| {
        writeln!(out, "{state:<8} {name:<16} {}", output::harmless(detail))
    };
    for (name, part, detail) in [
        ("sandbox", &support.sandbox, "namespaces, a root of its own, a filter of system calls"),
        ("hosts by name", &support.proxy, "a filtering proxy, also inside TLS"),
        ("file notes", &support.watch, "which files a run opens"),
    ] {
        match part {
            Part::Held => line(name, "ok", detail)?,
            Part::Absent { reason, way_out } => {
                line(name, "missing", reason)?;
                if !way_out.is_empty() {
                    line("", "", way_out)?;
                }
            }
        }
    }
    match support.landlock {
        Some(version) => {
            line("landlock", "ok", &format!("version {version}, a second lock on files"))?;
        }
        None => line("landlock", "missing", "Linux 5.13 or newer with Landlock enabled")?,
    }
    if support.groups {
        line("control groups", "ok", "memory and processes are limited for a run as a whole")?;
    } else {
        line("control groups", "absent", "resource limits count each process by itself instead")?;
    }
    writeln!(out, "\n{}", sentence(level))?;
    output::flush(out)
}
