//! Imports a mirror or a folder of skills into the registry.
//!
//! - `find_skills` finds the packages of a mirror, or folders and archives of skills.
//! - `prepare_version` reads one of them and prepares a version that can be published.
//! - `publish` adds versions to the registry: new packages in one transaction, versions of existing
//!   packages one by one.
//!
//! Existing versions with the same bytes are skipped, so that an interrupted import can be run again. The
//! input is not trusted: digests are computed again, every version is scanned, and its tier depends on the
//! scan and the signatures here.

mod find_skills;
mod prepare_version;
mod publish;
mod scan_result;

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
    find_skills::{FoundSkills, ImportJob},
    prepare_version::PreparedVersion,
    publish::Publisher,
};

/// Number of packages that are read before they are written, to limit memory.
const CONCURRENT_READS: usize = 64;

#[derive(Debug)]
pub struct ImportPlan {
    /// Namespace of skills that do not name one.
    pub namespace: Option<Namespace>,
    /// Account that owns new skills.
    pub owner: Option<i64>,
    pub mode: ImportMode,
}

impl ImportPlan {
    /// Whether texts without frontmatter are imported.
    fn publishes_texts(&self) -> bool {
        self.namespace == Some(Namespace::anonymous())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportMode {
    Write,
    DryRun,
}

/// The result of an import.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ImportSummary {
    /// Number of new versions.
    pub published: u64,
    /// Number of versions that existed with the same bytes.
    pub skipped: u64,
    /// Number of existing versions that are yanked now, as in the mirror.
    pub yanked: u64,
    /// Number of skipped texts, which are only allowed in `anon`.
    #[serde(skip)]
    pub texts: usize,
    /// Number of versions that are reserved now, because they were taken down in the mirror.
    pub taken_down: u64,
    pub refused: Vec<ImportRefusal>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ImportRefusal {
    /// The file or folder.
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// Name and version, if they are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skill: Option<String>,
    /// A stable code for programs.
    pub code: &'static str,
    pub reason: String,
}

impl ImportRefusal {
    fn new(path: &Path, code: &'static str, reason: impl std::fmt::Display) -> Self {
        let path = path.display().to_string();
        Self { path, line: None, skill: None, code, reason: reason.to_string() }
    }

    fn of(mut self, ready: &PreparedVersion) -> Self {
        self.skill = Some(format!("{} {}", ready.package, ready.assigned_version()));
        self
    }
}

/// Whether a folder is a mirror of `savoir registry mirror`.
pub fn is_mirror(folder: &Path) -> bool {
    folder.join("index/v1").is_dir()
}

/// Imports a folder. `progress` is called with the number of packages that were read, and the total.
pub async fn import(
    registry: Registry<'_>,
    folder: &Path,
    plan: &ImportPlan,
    mut progress: impl FnMut(usize, usize),
) -> Result<ImportSummary, StoreError> {
    let FoundSkills { mut jobs, texts, refused } = find_skills::find_skills(folder);
    let mut done = ImportSummary { refused, ..ImportSummary::default() };
    if plan.publishes_texts() {
        jobs.extend(texts.into_iter().map(ImportJob::Text));
    } else {
        done.texts = texts.len();
    }
    let mut called = HashMap::new();
    let (total, mut seen) = (jobs.len(), 0);
    let mut jobs = VecDeque::from(jobs);
    let mut publisher = Publisher::new(registry, plan);
    while !jobs.is_empty() {
        let batch: Vec<ImportJob> = jobs.drain(..jobs.len().min(CONCURRENT_READS)).collect();
        seen += batch.len();
        let batch = publisher.skip_existing(batch, &mut done).await?;
        let read = run_in_parallel(batch, |job| prepare_version::read(job, plan));
        let mut fresh = Vec::new();
        for one in read.into_iter().flatten() {
            match one {
                Ok(ready) => match duplicate_name_refusal(&ready, &mut called) {
                    Some(refusal) => done.refused.push(refusal),
                    None => fresh.extend(publisher.is_new(ready, &mut done).await?),
                },
                Err(refusal) => done.refused.push(refusal),
            }
        }
        let mut good = Vec::new();
        for one in run_in_parallel(fresh, PreparedVersion::with_scan) {
            match one {
                Ok(ready) => good.push(ready),
                Err(refusal) => done.refused.push(refusal),
            }
        }
        match plan.mode {
            ImportMode::DryRun => done.published += good.len() as u64,
            ImportMode::Write => publisher.publish(good, &mut done).await?,
        }
        progress(seen, total);
    }
    done.refused.sort_by(|a, b| (&a.path, a.line).cmp(&(&b.path, b.line)));
    Ok(done)
}

/// Refuses a second text with the same name: the registry would count it as another version of the first.
fn duplicate_name_refusal(
    ready: &PreparedVersion,
    called: &mut HashMap<PackageName, PathBuf>,
) -> Option<ImportRefusal> {
    if ready.version.is_some() {
        return None;
    }
    let first = called.entry(ready.package.clone()).or_insert_with(|| ready.path.clone());
    let reason = || {
        let (package, first) = (&ready.package, first.display());
        format!("{first} already has the name `{package}`; change the first heading of this one")
    };
    (*first != ready.path).then(|| ImportRefusal::new(&ready.path, "name_taken", reason()))
}

/// Calls `work` for every item on all processors; the results are in the order of the items.
fn run_in_parallel<T: Send, R: Send>(items: Vec<T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    let workers = thread::available_parallelism().map_or(1, NonZero::get).min(items.len());
    let items = Mutex::new(items.into_iter().enumerate());
    let toil = || {
        let mut done = Vec::new();
        // The lock is released before the work starts.
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
        let doubled = run_in_parallel((0..1000).collect(), |number: u32| number * 2);
        assert_eq!(doubled, (0..1000).map(|number| number * 2).collect::<Vec<_>>());
        assert!(run_in_parallel(Vec::<u32>::new(), |number| number).is_empty());
    }
}
