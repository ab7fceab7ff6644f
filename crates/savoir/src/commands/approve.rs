//! `savoir approve`.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use savoir_engine::{
    Home,
    approval::{
        Approval, Approvals, Fingerprint, Request, Trust, Verdict, decide, shell_word, shown,
        user_name,
    },
    inspect,
};
use savoir_package::{Tree, scan};
use serde_json::json;

use crate::{
    ask::{self, Answer, Choices, Length, Page},
    error::CommandError,
    load,
    lookup::{self, Target},
    output, trust,
    widening::WideningArgs,
};

/// Show what a skill may do, and agree to it until it changes
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The options grant more than the skill declares. They stay when you approve the skill again;
`savoir revoke` removes them with the approval.

Examples:
  savoir approve my-skill
  savoir approve my-skill --allow-host api.example.com --allow-write ./out
  savoir approve my-skill --details      see every right that it wants
  savoir approve my-skill --yes          agree without a terminal")]
pub(crate) struct Args {
    /// A skill's folder or file, or the name of one that was approved before
    #[arg(value_name = "PATH|NAME")]
    skill: String,
    /// Agree without being asked
    #[arg(long, short)]
    yes: bool,
    /// Show every right, tool and program on a line of its own
    #[arg(long)]
    details: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    widening: WideningArgs,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    let home = Home::from_environment()?;
    let approvals = Approvals::new(&home);
    let path = find(&args.skill, &approvals)?;
    let loaded = load::load(&path, None)?;
    load::require_usable(&loaded)?;
    let subject = trust::subject(&loaded, Trust::User, &trust::believed()?)?;
    trust::refuse_forbidden(&subject, None)?;
    let ground = trust::ground(&home)?;
    // What was added before stays until the approval is revoked.
    let extra = approvals.extra_for(subject.path())?.and(&args.widening.widening()?);
    let request = inspect(&subject, &ground, &extra);
    let fingerprint = Fingerprint::of(&request);
    let kept = approvals.get(&request.path)?;
    let (reasons, warnings) = match decide(&request, kept.as_ref()) {
        Verdict::Refuse { reason, help } => {
            if args.json {
                output::json(&as_json(&request, std::slice::from_ref(&reason), false))?;
            }
            return Err(CommandError::refused(reason).hint(help));
        }
        Verdict::Ask { reasons, warnings } => (reasons, warnings),
        // An approval can be kept for what would run anyway: the signature may go away.
        Verdict::Run { .. } => (Vec::new(), Vec::new()),
    };
    let warnings: Vec<String> = scan_warning(&request.path).into_iter().chain(warnings).collect();
    let length = if args.details { Length::Details } else { Length::Question };
    let page = Page { request: &request, reasons: &reasons, warnings: &warnings, length };
    if kept.is_some_and(|kept| kept.fingerprint == fingerprint) {
        if args.details && !args.json {
            print(page)?;
        }
        return report(args, &request, &reasons, "is approved already");
    }
    if !args.yes {
        if !ask::can_ask() {
            return Err(nobody(args, page)?);
        }
        if ask::ask(page, Choices::Kept)? == Answer::No {
            return Err(CommandError::refused(format!("{} is not approved", request.skill)));
        }
    } else if !args.json {
        print(page)?;
    }
    approvals.keep(Approval::new(&request, user_name()))?;
    report(args, &request, &reasons, "is approved")
}

/// What the scan has against the skill: nobody should agree to a right without knowing it.
fn scan_warning(path: &Path) -> Option<String> {
    let folder = if path.is_file() { path.parent()? } else { path };
    let report = scan::scan(&Tree::read(folder).ok()?);
    (report.verdict != scan::Verdict::Allow)
        .then(|| format!("the scan says {}", super::scan::summary(&report)))
}

/// The skill at a path or of a name, else the one place where a skill of that name was approved.
fn find(path_or_name: &str, approvals: &Approvals) -> Result<PathBuf, CommandError> {
    let unknown = match lookup::target(path_or_name) {
        Ok(Target { skill, .. }) if skill.fetched.is_some() => {
            return Err(CommandError::input("an approval is kept for an installed skill")
                .hint("install it first, or try it once: savoir run"));
        }
        Ok(Target { skill, tool: None }) => return Ok(skill.to_path_buf()),
        _ if Path::new(path_or_name).exists() => return Ok(path_or_name.into()),
        Ok(Target { tool: Some(_), .. }) => {
            CommandError::input(format!("there is no skill at `{path_or_name}`"))
                .hint("approve the whole skill: name it without a tool")
        }
        Err(error) => error,
    };
    let mut places = approvals.list()?;
    places.retain(|kept| kept.skill == path_or_name);
    match places.as_slice() {
        [] => Err(unknown),
        [only] => Ok(only.path.clone()),
        several => {
            let several: Vec<_> =
                several.iter().map(|kept| kept.path.display().to_string()).collect();
            let places = several.join(", ");
            Err(CommandError::input(format!("`{path_or_name}` is in several places: {places}"))
                .hint("name the skill's folder"))
        }
    }
}

/// Shows the request where nobody can be asked, and says how to agree nevertheless.
fn nobody(args: &Args, page: Page<'_>) -> Result<CommandError, CommandError> {
    let Page { request, reasons, .. } = page;
    if args.json {
        output::json(&as_json(request, reasons, false))?;
    } else {
        print(page)?;
    }
    let error = CommandError::refused(format!(
        "{} is not approved, and nobody can be asked without a terminal",
        shown(&request.skill)
    ));
    Ok(error.hint(format!("when you have read the above, agree with: {}", agreeing(args))))
}

fn print(page: Page<'_>) -> Result<(), CommandError> {
    let mut out = output::stdout();
    ask::show(&mut out, page)?;
    output::flush(out)?;
    Ok(())
}

/// The command that agrees to the same.
fn agreeing(args: &Args) -> String {
    format!("savoir approve {}{} --yes", shell_word(&args.skill), args.widening.words())
}

fn report(
    args: &Args,
    request: &Request,
    reasons: &[String],
    outcome: &str,
) -> Result<ExitCode, CommandError> {
    if args.json {
        output::json(&as_json(request, reasons, true))?;
        return Ok(ExitCode::SUCCESS);
    }
    let fingerprint = Fingerprint::of(request);
    let mut text = format!("{} {outcome} ({})\n", shown(&request.skill), fingerprint.short());
    if request.always_ask || request.trust == Trust::Untrusted {
        text.push_str("it asks before every run nevertheless\n");
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
