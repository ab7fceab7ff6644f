//! Checks over HTTP whether a registry conforms to the API.
//!
//! - [`Subject`] is the registry with the tokens to use; `sample` creates skills to publish, `zips`
//!   archives that must be refused.
//! - A [`Check`] has an id, a group, a sentence that says what it proves, and a function. The functions are
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
mod subject;
mod tokens;
mod zips;

use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

use futures::future::BoxFuture;

pub use self::subject::{Settings, Subject};

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

    /// What its checks are about.
    pub fn about(self) -> &'static str {
        match self {
            Self::Discovery => "Configuration, lists and pages",
            Self::Pull => "Indexes and artefacts",
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

/// What a check requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Needs {
    /// It only reads.
    Nothing,
    /// A token that may publish.
    Token,
    /// Also a token of another account.
    Other,
}

/// Why a check did not pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Miss {
    /// The registry behaved differently.
    Failed(String),
    /// The check could not run.
    Skipped(String),
}

type Verdict = Result<(), Miss>;
type Run = Arc<dyn Fn(&Subject) -> BoxFuture<'_, Verdict> + Send + Sync>;

#[derive(Clone)]
pub struct Check {
    pub id: String,
    pub group: Group,
    /// What is true if it passes, as a sentence.
    pub proves: &'static str,
    needs: Needs,
    run: Run,
}

impl fmt::Debug for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Check").field("id", &self.id).finish_non_exhaustive()
    }
}

/// The result of a check.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub id: String,
    pub group: Group,
    pub proves: &'static str,
    pub verdict: Result<(), Miss>,
    pub took: Duration,
}

/// The checks for mirrors, which are files on a plain web server. All others need the API.
const OF_FILES: [&str; 7] = [
    "discovery/config",
    "pull/index-shape",
    "pull/index-order",
    "pull/index-unknown",
    "pull/index-letters",
    "pull/artifact-digest",
    "pull/artifact-layout",
];

/// Timeout of one check.
const LONGEST: Duration = Duration::from_mins(3);

fn fail(why: impl Into<String>) -> Miss {
    Miss::Failed(why.into())
}

/// Fails unless the condition is true.
fn ensure(holds: bool, why: impl FnOnce() -> String) -> Verdict {
    if holds { Ok(()) } else { Err(Miss::Failed(why())) }
}

/// A row of the table.
macro_rules! check {
    ($group:ident, $needs:ident, $id:literal, $run:path, $proves:literal) => {
        $crate::conformance::Check {
            id: format!("{}/{}", $crate::conformance::Group::$group.as_str(), $id),
            group: $crate::conformance::Group::$group,
            proves: $proves,
            needs: $crate::conformance::Needs::$needs,
            run: std::sync::Arc::new(|subject| Box::pin($run(subject))),
        }
    };
}
use check;

/// All checks, in the order in which they are run.
pub fn checks() -> Vec<Check> {
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

/// Runs checks one after the other. `told` is called with each outcome.
pub async fn run(
    subject: &Subject,
    checks: &[Check],
    mut told: impl FnMut(&Outcome),
) -> Vec<Outcome> {
    let mut outcomes = Vec::with_capacity(checks.len());
    for check in checks {
        let begun = Instant::now();
        let files_only = subject.is_files() && !OF_FILES.contains(&&*check.id);
        let files_only = files_only.then_some("a mirror has no API");
        let verdict = match files_only.or_else(|| subject.lacks(check.needs)) {
            Some(why) => Err(Miss::Skipped(why.to_owned())),
            None => {
                tokio::time::timeout(LONGEST, (check.run)(subject)).await.unwrap_or_else(|_| {
                    Err(fail(format!("it took longer than {} s", LONGEST.as_secs())))
                })
            }
        };
        let outcome = Outcome {
            id: check.id.clone(),
            group: check.group,
            proves: check.proves,
            verdict,
            took: begun.elapsed(),
        };
        told(&outcome);
        outcomes.push(outcome);
    }
    outcomes
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_check_has_a_name_of_its_own_and_a_sentence() {
        let checks = checks();
        let ids: BTreeSet<&str> = checks.iter().map(|check| &*check.id).collect();
        assert_eq!(ids.len(), checks.len());
        for check in &checks {
            assert!(check.id.starts_with(&format!("{}/", check.group.as_str())), "{}", check.id);
            assert!(check.proves.len() > 10, "{}", check.id);
        }
        for id in OF_FILES {
            assert!(ids.contains(id), "{id}");
        }
        for group in Group::ALL {
            assert!(checks.iter().any(|check| check.group == group), "{group:?} has none");
        }
    }
}
