//! `savoir cache`: manages the download cache.

use std::process::ExitCode;

use savoir_engine::Home;
use savoir_package::source::{CleanMode, Cleaned, clean};
use serde_json::json;

use crate::{error::CommandError, install_context::SCANS_FOLDER, output};

/// Downloads, copies of skills that were run once, and scan reports. Python environments in the cache are not
/// removed, because running tools may use them.
const FOLDERS: [&str; 4] = ["sources", "registry", "tries", SCANS_FOLDER];

/// Manage the download cache
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Clean(CleanArgs),
}

/// Remove downloaded repositories, archives, registry data and reports of scans
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  savoir cache clean
  savoir cache clean --dry-run           show how much would be freed

Installed skills, versions stored for `savoir undo`, savoir.lock and your approvals are not in the
cache. Removed files are downloaded again when they are needed.")]
struct CleanArgs {
    /// Show what would be removed without removing it
    #[arg(long)]
    dry_run: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    let Command::Clean(args) = &args.command;
    run_clean(args)
}

fn run_clean(args: &CleanArgs) -> Result<ExitCode, CommandError> {
    let home = Home::from_environment()?;
    let what = if args.dry_run { CleanMode::Look } else { CleanMode::Remove };
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
        output::note(&format!("{in_use} not removed: in use by another savoir; try again later"));
    }
    Ok(ExitCode::SUCCESS)
}

fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["kB", "MB", "GB", "TB"];
    if bytes < 1_000 {
        return format!("{bytes} bytes");
    }
    // The lost precision is not visible with one decimal.
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
    fn sizes_have_units() {
        for (bytes, text) in
            [(0, "0 bytes"), (999, "999 bytes"), (1_000, "1.0 kB"), (77_400_000, "77.4 MB")]
        {
            assert_eq!(size(bytes), text);
        }
    }
}
