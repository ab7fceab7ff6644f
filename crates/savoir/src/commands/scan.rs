//! `savoir scan`: scans a skill for malicious behavior.

use std::{
    ffi::OsStr,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap_complete::engine::ArgValueCompleter;
use savoir_lint::visible;
use savoir_package::{OtherFiles, Tree, archive, tree_input};
#[cfg(feature = "server")]
use savoir_registry::vetting::{EngineOutcome, Options, Vetting, VettingReport};
use savoir_scan::{
    Report, Verdict,
    render::{Format, render},
};

use super::rules;
use crate::{
    completion,
    discover::{self, Candidate},
    error::CommandError,
    lookup, output,
};

/// Scan a skill for malicious behavior
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  savoir scan my-skill                    a skill, or a folder with several skills
  savoir scan downloads/my-skill.zip      an archive, without unpacking it to disk
  savoir scan my-skill/scripts/run.py     one file: a script, or a Markdown file of any name
  savoir scan github:owner/repo           all skills of a repository, before you install them
  savoir scan . --format sarif            all skills in this folder, as SARIF
  savoir scan my-skill --deep             also run its tools in a sandbox
  savoir scan --explain exfiltration      explain a rule

Exit codes: 0 allow, 1 review, 2 not scanned, 3 block. `allow` means that no known problem was
found. The scan needs no network, and the same files give the same report; with --deep, the report
depends on the installed scanners.")]
pub(crate) struct Args {
    /// A skill's folder, an archive of one, a Markdown file, the name of an installed skill, or a
    /// source such as github:owner/repo
    #[arg(required_unless_present = "explain", add = ArgValueCompleter::new(completion::skills_and_paths))]
    path: Option<PathBuf>,
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = ["text", "json", "sarif"])]
    format: String,
    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Also run the tools in a sandbox with fake secrets and hosts, and run the scanners that are
    /// installed: Bandit, detect-secrets
    #[arg(long, conflicts_with = "explain")]
    deep: bool,
    /// Explain a rule instead of scanning
    #[arg(long, value_name = "RULE", conflicts_with_all = ["path", "format", "json"])]
    explain: Option<String>,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    if let Some(id) = &args.explain {
        return rules::explain(id);
    }
    let format = if args.json { Format::Json } else { args.format.parse().unwrap_or(Format::Text) };
    // Exit code 1 means the verdict `review`, so other errors must not use it.
    let typed = args.path.as_deref().unwrap_or(Path::new("."));
    let path = lookup::find_skills(typed).map_err(CommandError::without_verdict)?;
    let below = skills_below(&path);
    let code = match below.as_slice() {
        [] => exit_code(scan_one(&path, args.deep, format)?),
        [Ok(skill)] => exit_code(scan_one(skill, args.deep, format)?),
        _ if args.deep && lookup::is_skill(&path) => exit_code(scan_one(&path, true, format)?),
        several => scan_all((&path, typed), several, args.deep, format)?,
    };
    Ok(ExitCode::from(code))
}

/// The exit code if a skill could not be scanned.
const NOT_SCANNED: u8 = 2;

fn exit_code(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Allow => 0,
        Verdict::Review => 1,
        Verdict::Block => 3,
    }
}

fn scan_one(path: &Path, is_deep: bool, format: Format) -> Result<Verdict, CommandError> {
    let tree = read(path)?;
    let others = OtherFiles::read(path);
    let mut report = scan_tree(path, &tree, &others);
    if is_deep {
        return Ok(deep(&tree, format)?.max(report.verdict));
    }
    if format == Format::Sarif && path.is_dir() {
        name_below(path, &mut report);
    }
    output::text(&render(&report, format))?;
    if format == Format::Text && report.verdict == Verdict::Allow {
        let count = tree.files().count() + others.count();
        let files = if count == 1 { "file" } else { "files" };
        output::text(&format!("  scanned {count} {files}; no known problems found\n"))?;
    }
    Ok(report.verdict)
}

/// Makes the paths relative to the working folder, as GitHub and other code hosts expect them.
fn name_below(folder: &Path, report: &mut Report) {
    if folder.is_absolute() || folder.starts_with("..") {
        return;
    }
    for finding in &mut report.findings {
        let path = folder.join(&finding.path);
        let parts: Vec<_> = path.iter().filter(|part| *part != ".").collect();
        finding.path = parts.join(OsStr::new("/")).to_string_lossy().into_owned();
    }
}

/// Scans files. Findings in a single file have the name of that file.
fn scan_tree(path: &Path, tree: &Tree, others: &OtherFiles) -> Report {
    let mut report = others.scan_with(tree);
    if path.is_file() && !archive_bytes(path) {
        let name = file_name(path);
        report.findings.iter_mut().for_each(|finding| finding.path.clone_from(&name));
    }
    report
}

/// A path that may be a skill and cannot be read, and why.
type Unreadable = (PathBuf, String);

/// The skills in a folder. A skill may contain other skills, which agents load separately, so each
/// gets its own verdict.
fn skills_below(path: &Path) -> Vec<Result<PathBuf, Unreadable>> {
    let mut found = Vec::new();
    if !path.is_dir() {
        return found;
    }
    discover::walk_all(&[path.to_owned()], &mut |candidate| {
        match candidate {
            Candidate::Skill { path, .. } => {
                found.extend(path.parent().map(|it| Ok(it.to_owned())));
            }
            Candidate::Unreadable { path, problem } => found.push(Err((path, problem))),
            Candidate::Empty { .. } => {}
        }
        true
    });
    found.dedup();
    found
}

/// Scans every skill below a folder; returns the highest exit code.
fn scan_all(
    (root, typed): (&Path, &Path),
    skills: &[Result<PathBuf, Unreadable>],
    is_deep: bool,
    format: Format,
) -> Result<u8, CommandError> {
    if is_deep {
        return Err(CommandError::input(format!(
            "--deep scans one skill, but {} has {}",
            typed.display(),
            skills.len()
        ))
        .hint("name one of them, or leave out --deep"));
    }
    let mut together = Report { verdict: Verdict::Allow, findings: Vec::new() };
    let mut all = Vec::new();
    let mut counts = [0; 3];
    let mut failed = 0;
    for skill in skills {
        let (skill, tree) = match skill {
            Ok(skill) => (skill, read(skill)),
            Err((path, problem)) => {
                let message = format!("{}: {problem}", path.display());
                (path, Err(CommandError::input(message)))
            }
        };
        let name = skill.strip_prefix(root).unwrap_or(skill).display().to_string();
        let tree = match tree {
            Ok(tree) => tree,
            Err(error) => {
                failed += 1;
                let _ = error.report();
                match format {
                    Format::Json => all.push(serde_json::json!({
                        "skill": name, "verdict": null, "error": error.to_string(),
                    })),
                    Format::Text => output::text(&format!("{}: not scanned\n", visible(&name)))?,
                    Format::Sarif => {}
                }
                continue;
            }
        };
        let mut report = scan_tree(skill, &tree, &OtherFiles::read(skill));
        let worst = together.verdict.max(report.verdict);
        together.verdict = worst;
        counts[report.verdict as usize] += 1;
        match format {
            Format::Json => {
                let json = render(&report, Format::Json);
                let mut json: serde_json::Value = serde_json::from_str(&json).unwrap_or_default();
                json["skill"] = name.into();
                all.push(json);
            }
            Format::Sarif => {
                name_below(skill, &mut report);
                together.findings.append(&mut report.findings);
            }
            Format::Text => {
                output::text(&format!("{}: {}\n", visible(&name), summary(&report)))?;
            }
        }
    }
    let verdict = together.verdict;
    match format {
        Format::Json => output::json(&serde_json::json!({ "verdict": verdict, "skills": all }))?,
        Format::Sarif => output::text(&render(&together, format))?,
        Format::Text => {
            let [allow, review, block] = counts;
            let unread = if failed > 0 { format!(", {failed} not scanned") } else { String::new() };
            output::text(&format!(
                "verdict: {verdict} ({} skills: {block} block, {review} review, {allow} allow{unread})\n",
                skills.len()
            ))?;
        }
    }
    Ok(exit_code(verdict).max(if failed > 0 { NOT_SCANNED } else { 0 }))
}

/// One line about a skill.
pub(super) fn summary(report: &Report) -> String {
    match report.reason() {
        None => report.verdict.to_string(),
        Some(reason) => format!(
            "{}: {} ({}:{})",
            report.verdict,
            visible(&reason.message),
            visible(&reason.path),
            reason.line
        ),
    }
}

fn archive_bytes(path: &Path) -> bool {
    fs::read(path).is_ok_and(|bytes| archive::kind(&bytes).is_some())
}

#[cfg(not(feature = "server"))]
fn deep(_: &Tree, _: Format) -> Result<Verdict, CommandError> {
    Err(CommandError::not_built_in("--deep"))
}

/// Runs every scan engine of this machine.
#[cfg(feature = "server")]
fn deep(tree: &Tree, format: Format) -> Result<Verdict, CommandError> {
    if format == Format::Sarif {
        return Err(CommandError::input("--deep does not support SARIF")
            .hint("leave out --format, or use --json"));
    }
    let vetted = Vetting::detect(Options::default()).vet_here(tree);
    match format {
        Format::Json => output::json(&vetted)?,
        _ => output::text(&vetting_text(&vetted))?,
    }
    Ok(vetted.verdict)
}

/// The findings and the engines as text.
#[cfg(feature = "server")]
fn vetting_text(vetted: &VettingReport) -> String {
    let mut out = String::new();
    for finding in &vetted.findings {
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "{}[{}]: {}",
            finding.severity,
            visible(&finding.rule),
            visible(&finding.message)
        );
        if let Some(file) = &finding.file {
            let line = finding.line.map(|line| format!(":{line}")).unwrap_or_default();
            let _ = writeln!(out, "  --> {}{line} ({})", visible(file), finding.engine);
        }
        if let Some(fix) = &finding.fix {
            let _ = writeln!(out, "   = fix: {}", visible(fix));
        }
        out.push('\n');
    }
    for run in &vetted.engines {
        let version = run.version.as_deref().map(|text| format!(" {text}")).unwrap_or_default();
        let what = match &run.outcome {
            EngineOutcome::Ran => format!("ran in {} ms", run.milliseconds),
            EngineOutcome::Missing => "is not installed".to_owned(),
            EngineOutcome::Failed(why) => format!("failed: {why}"),
            EngineOutcome::NotNeeded(why) => format!("did not run: {why}"),
        };
        let _ = writeln!(out, "{}{version} {}", run.name, visible(&what));
    }
    let count = vetted.findings.len();
    let findings = if count == 1 { "finding" } else { "findings" };
    let _ = writeln!(out, "verdict: {} ({count} {findings})", vetted.verdict);
    out
}

fn read(path: &Path) -> Result<Tree, CommandError> {
    tree_input::read_tree(path).map_err(|error| {
        let failed = CommandError::input(format!("{}: {error}", path.display()));
        let failed = error.hint().into_iter().fold(failed, CommandError::hint);
        error.code().into_iter().fold(failed, CommandError::with_code)
    })
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
