//! `savoir approve`: shows what a skill may do, and stores the approval of the user until the skill
//! changes.

mod list;
mod revoke;

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap_complete::engine::ArgValueCompleter;
use savoir_engine::{
    Home,
    approval::{
        Approval, Approvals, Fingerprint, Request, Trust, Verdict, decide, describe_permission,
        printable, shell_word, user_name,
    },
    grant::refuse_never_granted,
    inspect,
    run::skill_warnings,
};
use savoir_package::{OtherFiles, Tree};
use savoir_scan as scan;
use serde_json::json;

use crate::{
    ask::{self, Answer, Choices, Length, Page},
    completion,
    error::CommandError,
    extra_grants::ExtraGrantsArgs,
    load,
    lookup::{self, SkillTarget},
    output, trust,
};

/// Review what a skill may do and approve it until it changes
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The --allow options grant more than the skill declares. They stay when you approve the skill again;
--revoke removes them with the approval.

Examples:
  savoir approve my-skill
  savoir approve my-skill --allow-host api.example.com --allow-write ./out
  savoir approve my-skill --details      show every permission that it wants
  savoir approve my-skill --yes          approve without asking
  savoir approve --list                  list approved skills
  savoir approve --revoke my-skill       remove an approval
  savoir approve --revoke --all          remove all approvals")]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of the command line")]
pub(crate) struct Args {
    /// Folder, file or name of a skill
    #[arg(value_name = "PATH|NAME", required_unless_present_any = ["list", "all"], add = ArgValueCompleter::new(completion::skills_and_paths))]
    skill: Option<String>,
    /// List approved skills
    #[arg(long, conflicts_with_all = ["skill", "yes", "details", "revoke"])]
    list: bool,
    /// Remove the approval
    #[arg(long, conflicts_with_all = ["yes", "details"])]
    revoke: bool,
    /// With --revoke: remove all approvals
    #[arg(long, requires = "revoke", conflicts_with = "skill")]
    all: bool,
    /// Approve without asking
    #[arg(long, short)]
    yes: bool,
    /// Show every permission, tool and program on its own line
    #[arg(long)]
    details: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    extra_grants: ExtraGrantsArgs,
}

/// Arguments of `savoir approvals`, the former name of `savoir approve --list`.
#[derive(Debug, clap::Args)]
pub(crate) struct ListArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn list(args: &ListArgs) -> Result<ExitCode, CommandError> {
    list::run(args.json)
}

/// Arguments of `savoir revoke`, the former name of `savoir approve --revoke`.
#[derive(Debug, clap::Args)]
pub(crate) struct RevokeArgs {
    /// Folder, file or name of a skill
    #[arg(value_name = "PATH|NAME", required_unless_present = "all", conflicts_with = "all", add = ArgValueCompleter::new(completion::skills_and_paths))]
    skill: Option<String>,
    /// Remove all approvals
    #[arg(long)]
    all: bool,
}

pub(crate) fn revoke(args: &RevokeArgs) -> Result<ExitCode, CommandError> {
    revoke::run(args.skill.as_deref())
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    match &args.skill {
        _ if args.list => list::run(args.json),
        skill if args.revoke => revoke::run(skill.as_deref()),
        Some(skill) => approve(args, skill),
        // The parser requires a skill for everything else.
        None => list::run(args.json),
    }
}

fn approve(args: &Args, skill: &str) -> Result<ExitCode, CommandError> {
    let home = Home::from_environment()?;
    let approvals = Approvals::new(&home);
    let path = find(skill, &approvals)?;
    let loaded = load::load(&path, None)?;
    load::require_usable(&loaded)?;
    let loaded_skill = trust::load_skill(&loaded, Trust::User, &trust::trust_store_for_run()?)?;
    trust::refuse_forbidden(&loaded_skill, None)?;
    let run_env = trust::run_env(&home)?;
    // Permissions that were added before stay until the approval is revoked.
    let extra = approvals.extra_for(loaded_skill.path())?.and(&args.extra_grants.extra_grants()?);
    let request = inspect(&loaded_skill, &run_env, &extra);
    if !args.json {
        for warning in skill_warnings(&loaded_skill, &run_env) {
            output::note(&warning);
        }
    }
    if let Err(refusal) = refuse_never_granted(&request.permissions, request.tier, &extra, &run_env)
    {
        let reason = refusal.to_string();
        if args.json {
            output::json(&as_json(&request, std::slice::from_ref(&reason), false))?;
        }
        let error = CommandError::refused(reason).hint(refusal.hint);
        return Err(error.naming_skill(&shell_word(skill)));
    }
    let fingerprint = Fingerprint::of(&request);
    let approval = approvals.get(&request.path)?;
    let (reasons, warnings) = match decide(&request, approval.as_ref()) {
        Verdict::Refuse { reason, help } => {
            if args.json {
                output::json(&as_json(&request, std::slice::from_ref(&reason), false))?;
            }
            return Err(CommandError::refused(reason).hint(help));
        }
        Verdict::Ask { reasons, warnings } => (reasons, warnings),
        // Skills that run without approval can be approved, too, because their signature may be
        // removed later.
        Verdict::Run { .. } => (Vec::new(), Vec::new()),
    };
    let warnings: Vec<String> = scan_warning(&request.path).into_iter().chain(warnings).collect();
    let length = if args.details { Length::Details } else { Length::Question };
    let page = Page { request: &request, reasons: &reasons, warnings: &warnings, length };
    if approval.is_some_and(|approval| approval.fingerprint == fingerprint) {
        // With --details, the additions are shown, although no question is asked.
        let additions = if args.details { String::new() } else { additions(&request) };
        if args.details && !args.json {
            print(page)?;
        }
        return report(args, &request, &reasons, ("is approved already", &additions));
    }
    if !args.yes {
        if !ask::can_ask() {
            return Err(print_request_without_terminal(args, page)?);
        }
        if ask::ask(page, Choices::UntilChanged)? == Answer::No {
            return Err(CommandError::refused(format!("{} is not approved", request.skill)));
        }
    } else if !args.json {
        print(page)?;
    }
    approvals.save(Approval::new(&request, user_name()))?;
    report(args, &request, &reasons, ("is approved", ""))
}

/// A warning about scan findings, which is shown with the permissions.
pub(super) fn scan_warning(path: &Path) -> Option<String> {
    let folder = if path.is_file() { path.parent()? } else { path };
    let report = OtherFiles::read(folder).scan_with(&Tree::read(folder).ok()?);
    (report.verdict != scan::Verdict::Allow)
        .then(|| format!("scan result: {}", super::scan::summary(&report)))
}

/// Finds a skill by path or name, otherwise by the name of an approved skill.
fn find(path_or_name: &str, approvals: &Approvals) -> Result<PathBuf, CommandError> {
    let unknown = match lookup::target(path_or_name) {
        Ok(SkillTarget { skill, .. }) if skill.fetched.is_some() => {
            return Err(CommandError::input("only installed skills can be approved")
                .hint("install it first, or run it once with: savoir run"));
        }
        Ok(SkillTarget { skill, tool: None }) => return Ok(skill.to_path_buf()),
        _ if Path::new(path_or_name).exists() => return Ok(path_or_name.into()),
        Ok(SkillTarget { tool: Some(_), .. }) => {
            CommandError::input(format!("there is no skill at `{path_or_name}`"))
                .hint("approve the whole skill: leave out the name of the tool")
        }
        Err(error) => error,
    };
    let mut places = approvals.list()?;
    places.retain(|approval| approval.skill == path_or_name);
    match places.as_slice() {
        [] => Err(unknown),
        [only] => Ok(only.path.clone()),
        several => {
            let several: Vec<_> =
                several.iter().map(|approval| approval.path.display().to_string()).collect();
            let places = several.join(", ");
            Err(CommandError::input(format!("`{path_or_name}` is in several places: {places}"))
                .hint("name the skill's folder"))
        }
    }
}

/// Prints the request if there is no terminal; the hint is the command that approves it.
fn print_request_without_terminal(
    args: &Args,
    page: Page<'_>,
) -> Result<CommandError, CommandError> {
    let Page { request, reasons, .. } = page;
    if args.json {
        output::json(&as_json(request, reasons, false))?;
    } else {
        print(page)?;
    }
    let error = CommandError::refused(format!(
        "{} is not approved, and there is no terminal to ask on",
        printable(&request.skill)
    ));
    if request.always_ask || request.trust == Trust::Untrusted {
        return Ok(error.hint(
            "every run of it is asked about: review the permissions above; without a terminal, a \
             refused run prints the fingerprint for: savoir run SKILL --approve FINGERPRINT",
        ));
    }
    Ok(error.hint(format!(
        "review the permissions above, then approve with: {}",
        approving_command(args)
    )))
}

fn print(page: Page<'_>) -> Result<(), CommandError> {
    let mut out = output::stdout();
    ask::show(&mut out, page)?;
    output::flush(out)?;
    Ok(())
}

/// The command that approves the same request.
fn approving_command(args: &Args) -> String {
    format!(
        "savoir approve {}{} --yes",
        shell_word(args.skill.as_deref().unwrap_or_default()),
        args.extra_grants.words()
    )
}

/// The permissions that the user added, one line each.
fn additions(request: &Request) -> String {
    let permissions = request.extra.permissions();
    let described = permissions.iter().flat_map(describe_permission);
    described.fold(String::new(), |mut lines, described| {
        let _ = writeln!(lines, "you add      {}", printable(&described.phrase));
        lines
    })
}

fn report(
    args: &Args,
    request: &Request,
    reasons: &[String],
    (outcome, additions): (&str, &str),
) -> Result<ExitCode, CommandError> {
    if args.json {
        output::json(&as_json(request, reasons, true))?;
        return Ok(ExitCode::SUCCESS);
    }
    let fingerprint = Fingerprint::of(request);
    let mut text = format!("{} {outcome} ({})\n", printable(&request.skill), fingerprint.short());
    text.push_str(additions);
    if request.always_ask || request.trust == Trust::Untrusted {
        text.push_str("you are still asked before every run\n");
    }
    output::text(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn as_json(request: &Request, reasons: &[String], approved: bool) -> serde_json::Value {
    json!({
        "approved": approved,
        "fingerprint": Fingerprint::of(request),
        "reasons": reasons,
        "request": request,
    })
}
