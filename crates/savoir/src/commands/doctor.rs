//! `savoir doctor`: checks which sandbox features this machine supports.

use std::{io::Write as _, process::ExitCode};

use savoir_sandbox::{FeatureStatus, RunnableTools, SandboxSupport};
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
    let support = SandboxSupport::detect();
    let tools = support.runnable_tools();
    if args.json {
        output::json(
            &json!({ "support": support, "level": tools, "says": describe_tools(tools) }),
        )?;
    } else {
        print(&support, tools)?;
    }
    Ok(if tools == RunnableTools::All { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// The parts of the sandbox.
const SANDBOX: &str = if cfg!(target_os = "macos") {
    "sandbox-exec with a profile for each run; weaker than on Linux"
} else {
    "namespaces, a private root directory, a system call filter"
};

fn describe_tools(tools: RunnableTools) -> &'static str {
    match tools {
        RunnableTools::All => "tools of every tier can run here",
        RunnableTools::Signed => {
            "only signed tools (community, verified) can run here: Landlock, the second layer of \
             file protection, is missing"
        }
        RunnableTools::None => {
            "no tool can run here; skills can still be read, checked and rendered"
        }
    }
}

fn print(support: &SandboxSupport, tools: RunnableTools) -> Result<(), CommandError> {
    let mut out = output::stdout();
    let mut line = |name: &str, state: &str, detail: &str| {
        writeln!(out, "{state:<8} {name:<16} {}", output::sanitize(detail))
    };
    for (name, status, detail) in [
        ("sandbox", &support.sandbox, SANDBOX),
        ("hosts by name", &support.proxy, "a filtering proxy, also for TLS"),
        ("file notes", &support.watch, "records which files a run opens"),
    ] {
        match status {
            FeatureStatus::Available => line(name, "ok", detail)?,
            FeatureStatus::Unavailable { reason, hint } => {
                line(name, "missing", reason)?;
                if !hint.is_empty() {
                    line("", "", hint)?;
                }
            }
        }
    }
    match support.landlock {
        Some(version) => {
            line("landlock", "ok", &format!("version {version}, second layer of file protection"))?;
        }
        None if cfg!(target_os = "macos") => {}
        None => line("landlock", "missing", "needs Linux 5.13 or newer with Landlock enabled")?,
    }
    if support.control_groups {
        line("control groups", "ok", "memory and process limits apply to a run as a whole")?;
    } else {
        line("control groups", "absent", "resource limits apply to each process separately")?;
    }
    writeln!(out, "\n{}", describe_tools(tools))?;
    output::flush(out)
}
