//! `savoir migrate`.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use savoir_package::migrate::{Existing, Migrator, Mode, Options, Report, Scrutiny};
use savoir_skill::{
    convert::migrate::{Breadth, Vendor},
    dialect::gaia::ManifestShape,
};
use serde_json::json;

use crate::{
    discover::{self, Candidate},
    error::CommandError,
    load,
    output::{self, plural},
};

/// Make skills of GAIA from skills of OpenClaw
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  savoir migrate claw-skill
  savoir migrate claw-skill/SKILL.md --validate --output gaia-skills
  savoir migrate claw-skills --batch --output gaia-skills
  savoir migrate claw-skill --dry-run --json

Each skill becomes a folder of its name in the output. It is experimental, whatever the source
claims.
Exit codes: 0 all migrated, 1 something stood in the way, 2 wrong usage or unreadable input.")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct Args {
    /// A skill's folder or file; with --batch, a folder of skills
    path: PathBuf,
    /// Migrate every skill below the folder, and go on when one cannot be
    #[arg(long)]
    batch: bool,
    /// The folder in which each skill gets a folder of its name
    #[arg(short, long, visible_alias = "out", value_name = "DIR", default_value = "gaia-skills")]
    output: PathBuf,
    /// Hold the results against every rule, and fail if one finds an error
    #[arg(long)]
    validate: bool,
    /// Whose skills they are
    #[arg(long, value_name = "VENDOR", default_value = "auto", value_parser = ["openclaw", "hermes", "auto"])]
    from: String,
    /// The name of the result
    #[arg(long, value_name = "NAME", conflicts_with = "batch")]
    name: Option<String>,
    /// Write GAIA's fields at top level, as its specification does, not below `metadata.gaia`
    #[arg(long)]
    flat: bool,
    /// Refuse permissions for all of shell, filesystem, database, desktop or env
    #[arg(long)]
    strict: bool,
    /// Replace skills that are in the output already
    #[arg(long)]
    force: bool,
    /// Tell what would happen and write nothing
    #[arg(long)]
    dry_run: bool,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    let files = if args.batch { below(args)? } else { vec![one(&args.path)?] };
    let mut migrator = Migrator::new(options(args));
    let reports: Vec<Report> = files.iter().map(|file| migrator.migrate(file)).collect();
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

fn options(args: &Args) -> Options {
    Options {
        from: match args.from.as_str() {
            "openclaw" => Some(Vendor::OpenClaw),
            "hermes" => Some(Vendor::Hermes),
            _ => None,
        },
        shape: if args.flat { ManifestShape::Flat } else { ManifestShape::Nested },
        name: args.name.clone(),
        breadth: if args.strict { Breadth::Scoped } else { Breadth::Any },
        output: args.output.clone(),
        existing: if args.force { Existing::Goes } else { Existing::Stays },
        mode: if args.dry_run { Mode::Try } else { Mode::Write },
        scrutiny: if args.validate { Scrutiny::Everything } else { Scrutiny::Manifest },
    }
}

/// The file of the one skill at a path.
fn one(path: &Path) -> Result<PathBuf, CommandError> {
    load::skill_file(path).map_err(|error| {
        if path.is_dir() {
            error.hint("`--batch` migrates every skill below a folder")
        } else {
            error
        }
    })
}

/// The files of all skills below a folder, without the results of an earlier run.
fn below(args: &Args) -> Result<Vec<PathBuf>, CommandError> {
    let path = &args.path;
    let output = args.output.canonicalize().ok();
    let is_result = |file: &Path| {
        let file = file.canonicalize();
        output.as_ref().is_some_and(|output| file.is_ok_and(|file| file.starts_with(output)))
    };
    if !fs::metadata(path).is_ok_and(|metadata| metadata.is_dir()) {
        return Err(CommandError::input(format!("{}: there is no such folder", path.display()))
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
        return Err(CommandError::input(format!("{}: there is no skill below it", path.display()))
            .hint("a skill is a folder with a SKILL.md"));
    }
    Ok(files)
}

fn text(args: &Args, reports: &[Report]) -> String {
    let mut text = String::new();
    for report in reports {
        one_text(args, report, &mut text);
    }
    let migrated: Vec<&Report> = reports.iter().filter(|report| report.migrated).collect();
    let blocked = reports.len() - migrated.len();
    let reviews = migrated.iter().map(|report| report.reviews().count()).sum();
    let done = if args.dry_run { "would be migrated" } else { "migrated" };
    let skills = plural(migrated.len(), "skill");
    let reviews = plural(reviews, "item");
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{skills} {done}, {blocked} not; {reviews} to review");
    output::harmless(&text)
}

/// What happened to one skill; notes that ask for nothing are for `--json`.
fn one_text(args: &Args, report: &Report, text: &mut String) {
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

/// The way out of what stands in the way, where there is one.
fn hint(args: &Args, code: &str) -> Option<&'static str> {
    match code {
        "exists" if !args.force => Some("replace it with --force, or choose another --output"),
        "no_name" => Some("give it a name with --name, in lower case with hyphens"),
        "other_dialect" => Some("read it as OpenClaw's with --from openclaw"),
        "output_inside" | "output_is_source" => Some("choose another folder with --output"),
        "unscoped_permission" => Some("leave out --strict, and narrow the permissions afterwards"),
        "no_tools" => Some("leave out --flat"),
        "no_frontmatter" => Some("begin the file with `---`, a name, a description and `---`"),
        _ => None,
    }
}
