//! Decides whether a run is allowed, needs approval or is refused.

use savoir_skill::permission::{Decision, Permission, Tier, contradictions, decision};
use serde::Serialize;

use super::{Approval, Fingerprint, GrantKind, Request, Trust, changes::changes, printable};

/// The advice before approving a downloaded skill.
const READ_FILES_FIRST: &str = "this skill was downloaded: read its files before you agree";

/// The decision of the rules about a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase", tag = "verdict")]
pub enum Verdict {
    /// The tool runs without a question.
    Run {
        /// Why the user is not asked.
        reason: String,
    },
    /// The user decides.
    Ask {
        /// Why the user is asked, the most important reason first.
        reasons: Vec<String>,
        /// Prominent warnings.
        warnings: Vec<String>,
    },
    /// The tool does not run, and no approval can change that.
    Refuse {
        reason: String,
        /// A hint.
        help: String,
    },
}

/// Checks a request against the rules and against the approval that is stored for the same path.
///
/// | | stored and nothing changed | else |
/// |---|---|---|
/// | a permission that cannot be enforced | refused | refused |
/// | untrusted | asks, with a warning | asks, with a warning |
/// | `always_ask` | asks | asks |
/// | downloaded | runs | asks, with a warning |
/// | the user adds permissions | runs | asks |
/// | verified | runs | runs |
/// | bundled and read-only | runs | runs |
/// | community, no permission that the tier asks about | runs | runs |
/// | everything else | runs | asks |
///
/// [`decision`] says which permissions a tier asks about. A signature that does not cover every
/// file that a run can see is ignored, so such a skill is never more than experimental.
pub fn decide(request: &Request, stored: Option<&Approval>) -> Verdict {
    if let Some(find_refusal) = find_refusal(request) {
        return find_refusal;
    }
    let unchanged = stored.filter(|stored| {
        stored.path == request.path && stored.fingerprint == Fingerprint::of(request)
    });
    let ask = |reasons: Vec<String>, warnings: Vec<String>| {
        let news = match (stored, unchanged) {
            (Some(stored), None) => changes(request, stored),
            (None, _) => vec!["it has not been approved yet".to_owned()],
            (Some(_), Some(_)) => Vec::new(),
        };
        Verdict::Ask { reasons: reasons.into_iter().chain(news).collect(), warnings }
    };
    if request.trust == Trust::Untrusted {
        let reason = "it is untrusted, which asks every time".to_owned();
        return ask(vec![reason], vec![READ_FILES_FIRST.to_owned()]);
    }
    if request.always_ask {
        return ask(vec!["it wants to be asked about every time".to_owned()], Vec::new());
    }
    if let Some(stored) = unchanged {
        let (day, who) = (stored.approved_at.get(..10).unwrap_or_default(), printable(&stored.by));
        return run(format!("approved on {day} by {who}, and nothing has changed since"));
    }
    if request.trust == Trust::Downloaded {
        return ask(
            unsigned_files_warning(request).into_iter().collect(),
            vec![READ_FILES_FIRST.to_owned()],
        );
    }
    // The author's signature does not cover permissions that are added on the command line.
    if !request.extra.is_empty() {
        return ask(Vec::new(), Vec::new());
    }
    match (request.tier, request.trust) {
        (Tier::Verified, _) => run(format!("its tier is verified{}", signer_suffix(request))),
        (_, Trust::Bundled) if request.read_only => run("it is bundled and only reads"),
        (Tier::Community, _) => match permission_to_ask_about(request) {
            None => {
                let by = signer_suffix(request);
                run(format!(
                    "its tier is community{by}, and it wants nothing that needs a question"
                ))
            }
            Some(entry) => {
                let entry = entry_text(entry);
                ask(vec![format!("its tier is community, which asks about {entry}")], Vec::new())
            }
        },
        (Tier::Experimental, _) => {
            ask(unsigned_files_warning(request).into_iter().collect(), Vec::new())
        }
    }
}

/// The first permission that the tier does not grant without a question, declared or not.
fn permission_to_ask_about(request: &Request) -> Option<&Permission> {
    request.granted().find(|entry| decision(request.tier, entry) == Decision::Prompt)
}

/// The signer, as a suffix after the tier.
fn signer_suffix(request: &Request) -> String {
    let signed = request.signed.as_deref();
    signed.map(|signed| format!(", signed {}", printable(signed))).unwrap_or_default()
}

/// Why a valid signature is ignored: it does not cover all files.
fn unsigned_files_warning(request: &Request) -> Option<String> {
    let (first, others) = request.uncovered.split_first()?;
    let more = match others.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let first = printable(first);
    Some(format!("its signature does not cover {first}{more}, which a run would see; remove it"))
}

fn entry_text(entry: &Permission) -> String {
    printable(&entry.to_string())
}

fn run(reason: impl Into<String>) -> Verdict {
    Verdict::Run { reason: reason.into() }
}

/// Refuses requests that no approval can allow: permissions that cannot be enforced, and paths that
/// cannot be stored as text.
fn find_refusal(request: &Request) -> Option<Verdict> {
    let refuse =
        |reason: String, help: &str| Some(Verdict::Refuse { reason, help: help.to_owned() });
    if request.path.to_str().is_none() || request.programs.iter().any(|p| p.path.to_str().is_none())
    {
        return refuse(
            "the path of the skill, or of a program it runs, is not UTF-8".to_owned(),
            "rename it: an approval is kept for its exact path",
        );
    }
    for permission in &request.permissions {
        if let Some(problem) = permission.scope_problem() {
            let (entry, problem) = (entry_text(permission), printable(&problem.to_string()));
            return refuse(
                format!("the permission {entry} cannot be enforced: {problem}"),
                "correct the permission in SKILL.md; `savoir check` shows where",
            );
        }
    }
    for permission in &request.permissions {
        if let Some((reason, hint)) = permission.refusal() {
            let entry = entry_text(permission);
            return refuse(format!("`{entry}` cannot be granted: {reason}"), hint);
        }
    }
    if let Some(contradiction) = contradictions(&request.permissions).first() {
        let domain = contradiction.domain;
        return refuse(
            format!("the permissions say {domain}:none and grant {domain} nevertheless"),
            "remove one of the two from SKILL.md",
        );
    }
    for (added, entries) in request.extra.lists() {
        for entry in entries {
            if let Some(problem) = find_problem(added, entry) {
                let entry = printable(entry);
                return refuse(
                    format!(
                        "{} {entry} cannot be enforced: {}",
                        added.option(),
                        printable(&problem)
                    ),
                    "correct the option",
                );
            }
        }
    }
    None
}

/// The problem with an entry that the user adds; none if it is valid.
fn find_problem(added: GrantKind, entry: &str) -> Option<String> {
    if entry.trim().is_empty() {
        return Some("it is empty".to_owned());
    }
    match added {
        GrantKind::Host | GrantKind::PrivateHost => host_problem(added, entry),
        GrantKind::Program if entry.contains(',') => Some("repeat the option instead".to_owned()),
        _ => added.permission(entry).scope_problem().map(|problem| problem.to_string()),
    }
}

/// The problem with an added host. A host may have a port, or be a URL, which then covers
/// everything below its path.
fn host_problem(added: GrantKind, entry: &str) -> Option<String> {
    let url = match entry.split_once("://") {
        Some(("http" | "https", _)) => entry.to_owned(),
        Some((scheme, _)) => return Some(format!("the proxy does not speak `{scheme}`")),
        None if entry.contains(['/', '?', '#']) => {
            return Some("write a path as part of a URL, with https:// or http://".to_owned());
        }
        None => format!("https://{entry}"),
    };
    let problem = added.permission(&url).scope_problem();
    problem.map(|_| format!("`{entry}` is not a host, *.host, host:port or URL"))
}
