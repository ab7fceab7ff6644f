//! Checks over HTTP whether a registry conforms to the API.
//!
//! - [`TestedRegistry`] is the registry with the tokens to use; `sample` creates skills to publish, `zips`
//!   archives that must be refused.
//! - A [`ConformanceCheck`] has an id, a group, a sentence that says what it proves, and a function. The functions are
//!   in one file for each group; [`checks`] is the table of all.
//! - [`report`] writes the results as text, as JSON, and as `JUnit` XML.
//!
//! The names of published skills start with `conf-` and random letters.

mod discovery;
mod errors;
mod hostile;
mod immutability;
mod publish;
mod pull;
pub mod report;
mod sample;
mod search;
mod tested_registry;
mod tokens;
mod zips;

use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

use futures::future::BoxFuture;

pub use self::tested_registry::{TestSettings, TestedRegistry};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    Discovery,
    Pull,
    Publish,
    Immutability,
    Search,
    Hostile,
    Errors,
}

impl Group {
    pub const ALL: [Self; 7] = [
        Self::Discovery,
        Self::Pull,
        Self::Publish,
        Self::Immutability,
        Self::Search,
        Self::Hostile,
        Self::Errors,
    ];

    /// The topic of the checks of this group.
    pub fn about(self) -> &'static str {
        match self {
            Self::Discovery => "Configuration, lists and pages",
            Self::Pull => "Indexes and artifacts",
            Self::Publish => "Publishing and permissions",
            Self::Immutability => "Published versions never change",
            Self::Search => "Search",
            Self::Hostile => "Malicious archives, texts and requests",
            Self::Errors => "Error responses",
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Discovery => "discovery",
            Self::Pull => "pull",
            Self::Publish => "publish",
            Self::Immutability => "immutability",
            Self::Search => "search",
            Self::Hostile => "hostile",
            Self::Errors => "errors",
        }
    }
}

/// The access that a check needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CheckRequirement {
    /// The check only reads.
    NoToken,
    /// A token that may publish.
    Token,
    /// A token that may publish, and a token of another account.
    TwoAccounts,
}

/// Why a check did not pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckFailure {
    /// The registry behaved differently.
    Failed(String),
    /// The check could not run.
    Skipped(String),
}

type CheckResult = Result<(), CheckFailure>;
type CheckFuture = Arc<dyn Fn(&TestedRegistry) -> BoxFuture<'_, CheckResult> + Send + Sync>;

#[derive(Clone)]
pub struct ConformanceCheck {
    pub id: String,
    pub group: Group,
    /// The statement that is true if the check passes.
    pub proves: &'static str,
    needs: CheckRequirement,
    run: CheckFuture,
}

impl fmt::Debug for ConformanceCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Check").field("id", &self.id).finish_non_exhaustive()
    }
}

/// The result of a check.
#[derive(Clone, Debug)]
pub struct CheckOutcome {
    pub id: String,
    pub group: Group,
    pub proves: &'static str,
    pub verdict: Result<(), CheckFailure>,
    pub took: Duration,
}

/// The checks for mirrors, which are files on a plain web server. All others need the API.
const CHECKS_FOR_FILE_SERVERS: [&str; 7] = [
    "discovery/config", "pull/index-shape", "pull/index-order", "pull/index-unknown",
    "pull/index-letters", "pull/artifact-digest", "pull/artifact-layout",
];

const CHECK_TIMEOUT: Duration = Duration::from_mins(3);

fn fail(why: impl Into<String>) -> CheckFailure {
    CheckFailure::Failed(why.into())
}

/// Fails unless the condition is true.
fn ensure(holds: bool, why: impl FnOnce() -> String) -> CheckResult {
    if holds { Ok(()) } else { Err(CheckFailure::Failed(why())) }
}

/// The checks of a group: what each needs, its id, its function, and what it proves.
macro_rules! check_table {
    ($group:ident: $($needs:ident $id:literal => $run:path, $proves:literal;)+) => {
        vec![$($crate::conformance::ConformanceCheck {
            id: format!("{}/{}", $crate::conformance::Group::$group.as_str(), $id),
            group: $crate::conformance::Group::$group,
            proves: $proves,
            needs: $crate::conformance::CheckRequirement::$needs,
            run: std::sync::Arc::new(|registry| Box::pin($run(registry))),
        }),+]
    };
}
use check_table;

/// All checks, in the order in which they are run.
pub fn checks() -> Vec<ConformanceCheck> {
    let groups = [
        discovery::checks(),
        pull::checks(),
        publish::checks(),
        immutability::checks(),
        search::checks(),
        errors::checks(),
        hostile::checks(),
    ];
    groups.concat()
}

/// Runs checks one after the other. `on_outcome` is called with each outcome.
pub async fn run(
    registry: &TestedRegistry,
    checks: &[ConformanceCheck],
    mut on_outcome: impl FnMut(&CheckOutcome),
) -> Vec<CheckOutcome> {
    let mut outcomes = Vec::with_capacity(checks.len());
    for check in checks {
        let begun = Instant::now();
        let files_only = registry.is_files() && !CHECKS_FOR_FILE_SERVERS.contains(&&*check.id);
        let files_only = files_only.then_some("a mirror has no API");
        let verdict = match files_only.or_else(|| registry.missing_requirement(check.needs)) {
            Some(why) => Err(CheckFailure::Skipped(why.to_owned())),
            None => {
                tokio::time::timeout(CHECK_TIMEOUT, (check.run)(registry)).await.unwrap_or_else(
                    |_| Err(fail(format!("it took longer than {} s", CHECK_TIMEOUT.as_secs()))),
                )
            }
        };
        let outcome = CheckOutcome {
            id: check.id.clone(),
            group: check.group,
            proves: check.proves,
            verdict,
            took: begun.elapsed(),
        };
        on_outcome(&outcome);
        outcomes.push(outcome);
    }
    outcomes
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn check_ids_are_unique_and_described() {
        let checks = checks();
        let ids: BTreeSet<&str> = checks.iter().map(|check| &*check.id).collect();
        assert_eq!(ids.len(), checks.len());
        for check in &checks {
            assert!(check.id.starts_with(&format!("{}/", check.group.as_str())), "{}", check.id);
            assert!(check.proves.len() > 10, "{}", check.id);
        }
        for id in CHECKS_FOR_FILE_SERVERS {
            assert!(ids.contains(id), "{id}");
        }
        for group in Group::ALL {
            assert!(checks.iter().any(|check| check.group == group), "{group:?} has none");
        }
    }
}
