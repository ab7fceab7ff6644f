//! Whole trees of skills that an operator puts into the registry.
//!
//! - [`found`] finds what there is: the packages of a mirror, or folders and archives of skills.
//! - [`ready`] reads one, and makes of it a version that can be published.
//! - [`publish`] puts versions into the registry: many packages in one transaction where they are
//!   new, one version after the other where they are not.
//!
//! What is there already with the same bytes is passed over, so that an import that was broken off
//! goes on where it was. Nothing of a tree is believed: digests are worked out again, every version is
//! scanned, and its tier is what its scan and its signatures earn here.

mod facts;
mod found;
mod publish;
mod ready;

use std::{
    collections::{HashMap, VecDeque},
    num::NonZero,
    path::{Path, PathBuf},
    sync::Mutex,
    thread,
};

use savoir_store::{
    StoreError,
    registry::{Namespace, PackageName, Registry},
};
use serde::Serialize;

use self::{
    found::{Found, Job},
    publish::Publisher,
    ready::Ready,
};

/// How many packages are read before they are written. More would only need more memory.
const BATCH: usize = 64;

/// How an import is done.
#[derive(Debug)]
pub(crate) struct Plan {
    /// Where skills go that name no namespace.
    pub(crate) namespace: Option<Namespace>,
    /// Whose account owns what is new.
    pub(crate) owner: Option<i64>,
    /// Whether anything is written.
    pub(crate) mode: Mode,
}

impl Plan {
    /// Whether it is for texts without frontmatter.
    fn is_for_texts(&self) -> bool {
        self.namespace == Some(Namespace::anonymous())
    }
}

/// Whether anything is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Publish.
    Write,
    /// Only tell what would happen.
    Look,
}

/// What an import did.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Done {
    /// How many versions are new.
    pub(crate) published: u64,
    /// How many were there already with the same bytes.
    pub(crate) skipped: u64,
    /// How many that were there are yanked now, because the tree says so.
    pub(crate) yanked: u64,
    /// How many texts were passed over, which only `anon` takes.
    #[serde(skip)]
    pub(crate) texts: usize,
    /// How many numbers are taken now, because the tree says that their versions were taken down.
    pub(crate) taken_down: u64,
    /// What was refused.
    pub(crate) refused: Vec<Refusal>,
}

/// Something that was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Refusal {
    /// Which file or folder.
    pub(crate) path: String,
    /// In which line of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) line: Option<usize>,
    /// Which skill, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) skill: Option<String>,
    /// A stable word for programs.
    pub(crate) code: &'static str,
    /// Why.
    pub(crate) reason: String,
}

impl Refusal {
    fn new(path: &Path, code: &'static str, reason: impl std::fmt::Display) -> Self {
        let path = path.display().to_string();
        Self { path, line: None, skill: None, code, reason: reason.to_string() }
    }

    fn of(mut self, ready: &Ready) -> Self {
        self.skill = Some(format!("{} {}", ready.package, ready.number()));
        self
    }
}

/// Whether a folder is what `registry mirror` writes.
pub(crate) fn is_mirror(folder: &Path) -> bool {
    folder.join("index/v1").is_dir()
}

/// Imports a tree. `told` is called with how many packages were looked at, and of how many.
pub(crate) async fn import(
    registry: Registry<'_>,
    folder: &Path,
    plan: &Plan,
    mut told: impl FnMut(usize, usize),
) -> Result<Done, StoreError> {
    let Found { mut jobs, texts, refused } = found::found(folder);
    let mut done = Done { refused, ..Done::default() };
    if plan.is_for_texts() {
        jobs.extend(texts.into_iter().map(Job::Text));
    } else {
        done.texts = texts.len();
    }
    let mut called = HashMap::new();
    let (total, mut seen) = (jobs.len(), 0);
    let mut jobs = VecDeque::from(jobs);
    let mut publisher = Publisher::new(registry, plan);
    while !jobs.is_empty() {
        let batch: Vec<Job> = jobs.drain(..jobs.len().min(BATCH)).collect();
        seen += batch.len();
        let batch = publisher.without_known(batch, &mut done).await?;
        let read = side_by_side(batch, |job| ready::read(job, plan));
        let mut fresh = Vec::new();
        for one in read.into_iter().flatten() {
            match one {
                Ok(ready) => match called_the_same(&ready, &mut called) {
                    Some(refusal) => done.refused.push(refusal),
                    None => fresh.extend(publisher.is_new(ready, &mut done).await?),
                },
                Err(refusal) => done.refused.push(refusal),
            }
        }
        let mut good = Vec::new();
        for one in side_by_side(fresh, Ready::scanned) {
            match one {
                Ok(ready) => good.push(ready),
                Err(refusal) => done.refused.push(refusal),
            }
        }
        match plan.mode {
            Mode::Look => done.published += good.len() as u64,
            Mode::Write => publisher.publish(good, &mut done).await?,
        }
        told(seen, total);
    }
    done.refused.sort_by(|a, b| (&a.path, a.line).cmp(&(&b.path, b.line)));
    Ok(done)
}

/// Two texts of one name are two skills, and not two versions of one, which the registry would count.
fn called_the_same(ready: &Ready, called: &mut HashMap<PackageName, PathBuf>) -> Option<Refusal> {
    if ready.version.is_some() {
        return None;
    }
    let first = called.entry(ready.package.clone()).or_insert_with(|| ready.path.clone());
    let reason = || {
        let (package, first) = (&ready.package, first.display());
        format!("{first} is called `{package}` already; begin this one with another heading")
    };
    (*first != ready.path).then(|| Refusal::new(&ready.path, "name_taken", reason()))
}

/// Does the same with every item on all processors; the results are in the order of the items.
fn side_by_side<T: Send, R: Send>(items: Vec<T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    let workers = thread::available_parallelism().map_or(1, NonZero::get).min(items.len());
    let items = Mutex::new(items.into_iter().enumerate());
    let toil = || {
        let mut done = Vec::new();
        // The lock is held only to take the next one.
        while let Some((at, item)) = items.lock().ok().and_then(|mut items| items.next()) {
            done.push((at, work(item)));
        }
        done
    };
    let mut done = thread::scope(|scope| {
        let started: Vec<_> = (0..workers).map(|_| scope.spawn(toil)).collect();
        let results = started.into_iter().map(|worker| match worker.join() {
            Ok(results) => results,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        results.flatten().collect::<Vec<_>>()
    });
    done.sort_unstable_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_keep_their_order() {
        let doubled = side_by_side((0..1000).collect(), |number: u32| number * 2);
        assert_eq!(doubled, (0..1000).map(|number| number * 2).collect::<Vec<_>>());
        assert!(side_by_side(Vec::<u32>::new(), |number| number).is_empty());
    }
}
