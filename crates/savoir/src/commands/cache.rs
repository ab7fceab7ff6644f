//! `savoir cache`.

use std::process::ExitCode;

use savoir_engine::Home;
use savoir_package::source::{Clean, Cleaned, clean};
use serde_json::json;

use crate::{error::CommandError, output, shelf::told};

/// What was downloaded, and copies of skills that were tried once. Beside them are environments of
/// Python, which tools may be using.
const FOLDERS: [&str; 3] = ["sources", "registry", "tries"];

/// Manage what was downloaded
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Clean(CleanArgs),
}

/// Remove downloaded repositories, archives and registry data
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  savoir cache clean
  savoir cache clean --dry-run           only show how much would be freed

Installed skills, their kept versions for `savoir undo`, the lock and your approvals are not in the
cache and stay. What was removed is downloaded again when it is needed.")]
struct CleanArgs {
    /// Only show what would be removed
    #[arg(long)]
    dry_run: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    let Command::Clean(args) = &args.command;
    told(args.json, || run_clean(args))
}

fn run_clean(args: &CleanArgs) -> Result<ExitCode, CommandError> {
    let home = Home::from_environment()?;
    let what = if args.dry_run { Clean::Look } else { Clean::Remove };
    let mut cleaned = Cleaned::default();
    for folder in FOLDERS {
        cleaned += clean(&home.cache().join(folder), what)?;
    }
    let Cleaned { repositories, files, bytes, in_use } = cleaned;
    if args.json {
        output::json(&json!({
            "dry_run": args.dry_run,
            "repositories": repositories,
            "files": files,
            "bytes": bytes,
            "in_use": in_use,
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let verb = if args.dry_run { "Would free" } else { "Freed" };
    let repositories = match repositories {
        1 => "1 repository".to_owned(),
        count => format!("{count} repositories"),
    };
    let files = output::plural(files, "file");
    output::text(&format!("{verb} {}: {repositories}, {files}\n", size(bytes)))?;
    if in_use > 0 {
        output::note(&format!("{in_use} in use by another savoir and kept; try again later"));
    }
    Ok(ExitCode::SUCCESS)
}

fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["kB", "MB", "GB", "TB"];
    if bytes < 1_000 {
        return format!("{bytes} bytes");
    }
    // Sizes beyond 2^52 bytes are shown with one decimal, too.
    #[expect(clippy::cast_precision_loss)]
    let mut value = bytes as f64;
    let mut unit = "bytes";
    for larger in UNITS {
        if value < 999.95 {
            break;
        }
        (value, unit) = (value / 1_000.0, larger);
    }
    format!("{value:.1} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_for_people() {
        for (bytes, text) in
            [(0, "0 bytes"), (999, "999 bytes"), (1_000, "1.0 kB"), (77_400_000, "77.4 MB")]
        {
            assert_eq!(size(bytes), text);
        }
    }
}
