//! `savoir doctor`: checks which sandbox features this machine supports.

use std::{io::Write as _, process::ExitCode};

use savoir_sandbox::{Level, Part, Support};
use serde_json::json;

use crate::{error::CommandError, output};

/// Check which sandbox features this machine supports
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Everything that a skill executes runs in a sandbox. If a sandbox feature is missing, tools that need
it do not run. This command tests each feature and prints how to enable missing ones.

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
            "only signed tools (community, verified) can run here: Landlock, the second layer of \
             file protection, is missing"
        }
        Level::Nothing => "no tool can run here; skills can still be read, checked and rendered",
    }
}

fn print(support: &Support, level: Level) -> Result<(), CommandError> {
    let mut out = output::stdout();
    let mut line = |name: &str, state: &str, detail: &str| {
        writeln!(out, "{state:<8} {name:<16} {}", output::sanitize(detail))
    };
    for (name, part, detail) in [
        ("sandbox", &support.sandbox, "namespaces, a private root directory, a system call filter"),
        ("hosts by name", &support.proxy, "a filtering proxy, also for TLS"),
        ("file notes", &support.watch, "records which files a run opens"),
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
            line("landlock", "ok", &format!("version {version}, second layer of file protection"))?;
        }
        None => line("landlock", "missing", "needs Linux 5.13 or newer with Landlock enabled")?,
    }
    if support.groups {
        line("control groups", "ok", "memory and process limits apply to a run as a whole")?;
    } else {
        line("control groups", "absent", "resource limits apply to each process separately")?;
    }
    writeln!(out, "\n{}", sentence(level))?;
    output::flush(out)
}
