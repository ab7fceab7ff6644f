//! `savoir migrate`: converts skills of OpenClaw into skills of GAIA.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use savoir_package::migrate::{
    ExistingOutput, MigrateOptions, MigrationReport, Migrator, Mode, ReportedFindings,
};
use savoir_skill::{
    convert::migrate::{PermissionBreadth, Vendor},
    dialect::gaia::ManifestShape,
};
use serde_json::json;

use crate::{
    discover::{self, Candidate},
    error::CommandError,
    load,
    output::{self, plural},
};

/// Convert skills of OpenClaw into skills of GAIA
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  savoir migrate claw-skill
  savoir migrate claw-skill/SKILL.md --validate --output gaia-skills
  savoir migrate claw-skills --batch --output gaia-skills
  savoir migrate claw-skill --dry-run --json

Each skill is written to a folder of its name in the output folder. Its tier is experimental,
whatever the source claims.
Exit codes: 0 all migrated, 1 some were blocked or have errors, 2 wrong usage or unreadable input.")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct Args {
    /// A skill's folder or file; with --batch, a folder of skills
    path: PathBuf,
    /// Migrate every skill below the folder, and continue if one is blocked
    #[arg(long)]
    batch: bool,
    /// Output folder, in which each skill gets a folder of its name
    #[arg(short, long, visible_alias = "out", value_name = "DIR", default_value = "gaia-skills")]
    output: PathBuf,
    /// Check the results with every rule, and fail if one reports an error
    #[arg(long)]
    validate: bool,
    /// Vendor of the skills
    #[arg(long, value_name = "VENDOR", default_value = "auto", value_parser = ["openclaw", "hermes", "auto"])]
    from: String,
    /// Name of the result
    #[arg(long, value_name = "NAME", conflicts_with = "batch")]
    name: Option<String>,
    /// Write GAIA's fields at top level, as its specification does, not below `metadata.gaia`
    #[arg(long)]
    flat: bool,
    /// Reject permissions for shell, filesystem, database, desktop or env without a scope
    #[arg(long)]
    strict: bool,
    /// Replace skills that exist in the output folder
    #[arg(long)]
    force: bool,
    /// Show what would happen without writing anything
    #[arg(long)]
    dry_run: bool,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    let files =
        if args.batch { skill_files_below(args)? } else { vec![skill_file_at(&args.path)?] };
    let mut migrator = Migrator::new(options(args));
    let reports: Vec<MigrationReport> = files.iter().map(|file| migrator.migrate(file)).collect();
    match (args.json, args.batch, reports.as_slice()) {
        (true, false, [report]) => output::json(report)?,
        (true, ..) => {
            let migrated = reports.iter().filter(|report| report.migrated).count();
            let blocked = reports.len() - migrated;
            output::json(&json!({"migrated": migrated, "blocked": blocked, "skills": reports}))?;
        }
        (false, ..) => output::text(&text(args, &reports))?,
    }
    let failed = reports.iter().any(|report| !report.migrated || report.has_errors());
    Ok(ExitCode::from(u8::from(failed)))
}

fn options(args: &Args) -> MigrateOptions {
    MigrateOptions {
        from: match args.from.as_str() {
            "openclaw" => Some(Vendor::OpenClaw),
            "hermes" => Some(Vendor::Hermes),
            _ => None,
        },
        shape: if args.flat { ManifestShape::Flat } else { ManifestShape::Nested },
        name: args.name.clone(),
        breadth: if args.strict { PermissionBreadth::Scoped } else { PermissionBreadth::Any },
        output: args.output.clone(),
        existing: if args.force { ExistingOutput::Replace } else { ExistingOutput::Keep },
        mode: if args.dry_run { Mode::Try } else { Mode::Write },
        scrutiny: if args.validate {
            ReportedFindings::Everything
        } else {
            ReportedFindings::Manifest
        },
    }
}

/// The skill file at a path.
fn skill_file_at(path: &Path) -> Result<PathBuf, CommandError> {
    load::skill_file(path).map_err(|error| {
        if path.is_dir() {
            error.hint("`--batch` migrates every skill below a folder")
        } else {
            error
        }
    })
}

/// The files of all skills below a folder, without the results of an earlier run.
fn skill_files_below(args: &Args) -> Result<Vec<PathBuf>, CommandError> {
    let path = &args.path;
    let output = args.output.canonicalize().ok();
    let is_result = |file: &Path| {
        let file = file.canonicalize();
        output.as_ref().is_some_and(|output| file.is_ok_and(|file| file.starts_with(output)))
    };
    if !fs::metadata(path).is_ok_and(|metadata| metadata.is_dir()) {
        return Err(CommandError::input(format!("{}: the folder does not exist", path.display()))
            .hint("`--batch` takes a folder of skills"));
    }
    let mut files = Vec::new();
    discover::walk(std::slice::from_ref(path), &mut |candidate| {
        match candidate {
            Candidate::Skill { path, .. } | Candidate::Unreadable { path, .. } => files.push(path),
            Candidate::Empty { .. } => {}
        }
        true
    });
    files.retain(|file| !is_result(file));
    if files.is_empty() {
        return Err(CommandError::input(format!("{}: the folder has no skills", path.display()))
            .hint("a skill is a folder with a SKILL.md"));
    }
    Ok(files)
}

fn text(args: &Args, reports: &[MigrationReport]) -> String {
    let mut text = String::new();
    for report in reports {
        one_text(args, report, &mut text);
    }
    let migrated: Vec<&MigrationReport> = reports.iter().filter(|report| report.migrated).collect();
    let blocked = reports.len() - migrated.len();
    let reviews = migrated.iter().map(|report| report.reviews().count()).sum();
    let done = if args.dry_run { "would be migrated" } else { "migrated" };
    let skills = plural(migrated.len(), "skill");
    let reviews = plural(reviews, "item");
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{skills} {done}, {blocked} blocked; {reviews} to review");
    output::sanitize(&text)
}

/// The report of one skill; notes that need no review are only in `--json`.
fn one_text(args: &Args, report: &MigrationReport, text: &mut String) {
    let source = report.source.display();
    // Writing to a string cannot fail.
    let _ = match report.output.as_ref().filter(|_| report.migrated) {
        Some(output) => writeln!(text, "{source} -> {}", output.display()),
        None => writeln!(text, "{source}: not migrated"),
    };
    for blocker in &report.blockers {
        let _ = writeln!(text, "  blocker  {}", blocker.message);
        if let Some(hint) = hint(args, blocker.code) {
            let _ = writeln!(text, "           {hint}");
        }
    }
    if !report.migrated {
        return;
    }
    for permission in &report.permissions {
        let _ = writeln!(text, "  permits  {permission}");
    }
    for note in report.reviews() {
        let _ = writeln!(text, "  review   {}: {}", note.field, note.message);
    }
    for finding in report.findings.iter().flatten() {
        let _ = writeln!(
            text,
            "  {:8} SKILL.md:{}: {} [{}]",
            finding.severity, finding.line, finding.message, finding.code
        );
    }
}

/// A hint for a blocker, if there is one.
fn hint(args: &Args, code: &str) -> Option<&'static str> {
    match code {
        "exists" if !args.force => Some("replace it with --force, or choose another --output"),
        "no_name" => Some("give it a name with --name, in lower case with hyphens"),
        "other_dialect" => Some("read it as a skill of OpenClaw with --from openclaw"),
        "output_inside" | "output_is_source" => Some("choose another folder with --output"),
        "unscoped_permission" => Some("omit --strict, and narrow the permissions afterwards"),
        "no_tools" => Some("omit --flat"),
        "no_frontmatter" => Some("start the file with `---`, a name, a description and `---`"),
        _ => None,
    }
}
