//! Counts downloads of versions. The counts are collected in memory and stored from time to time. A
//! crash loses the latest ones, which is acceptable.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use semver::Version;

use super::{PackageName, Registry, facts::read_name};
use crate::{
    StoreError,
    sql::{Value, among, insert_rows, sql},
};

const MAX_NAMES_PER_QUERY: usize = 500;

/// Downloads in this process that are not stored yet.
#[derive(Debug, Default)]
pub struct DownloadCounter(Mutex<HashMap<Key, Arc<AtomicU64>>>);

/// Package and version.
type Key = (String, String);

/// Counts the downloads of one version without a lookup. The count is stored even if this handle
/// was dropped before.
#[derive(Clone, Debug)]
pub struct VersionDownloads(Arc<AtomicU64>);

impl VersionDownloads {
    pub fn count(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl DownloadCounter {
    /// Counts one download.
    pub fn count(&self, package: &PackageName, version: &Version) {
        self.counter_of(package, version).count();
    }

    /// Returns a counter for a version that is downloaded often.
    pub fn counter_of(&self, package: &PackageName, version: &Version) -> VersionDownloads {
        let key = (package.id(), version.to_string());
        VersionDownloads(Arc::clone(self.seen().entry(key).or_default()))
    }

    fn seen(&self) -> MutexGuard<'_, HashMap<Key, Arc<AtomicU64>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, key: Key, number: u64) {
        self.seen().entry(key).or_default().fetch_add(number, Ordering::Relaxed);
    }

    /// Takes the counts. Versions without an open handle are removed from the map.
    fn take(&self) -> Vec<(Key, u64)> {
        let mut taken = Vec::new();
        self.seen().retain(|key, number| {
            // The map is locked, so that no new handle can be created meanwhile.
            let in_use = Arc::get_mut(number).is_none();
            let number = number.swap(0, Ordering::Relaxed);
            if number > 0 {
                taken.push((key.clone(), number));
            }
            in_use
        });
        taken
    }
}

impl Registry<'_> {
    /// Stores the counts, and returns the packages that were downloaded. If storing fails, the
    /// counts are kept for the next time.
    pub async fn add_downloads(
        &self,
        counter: &DownloadCounter,
    ) -> Result<Vec<PackageName>, StoreError> {
        let mut seen = counter.take();
        // All processes lock the rows in the same order, so that they cannot deadlock.
        seen.sort_unstable();
        let row = |((package, version), number): &(Key, u64)| {
            let number = i64::try_from(*number).unwrap_or(i64::MAX);
            vec![Value::Text(package.clone()), Value::Text(version.clone()), Value::Number(number)]
        };
        let rows = seen.iter().map(row).collect();
        let head = "INSERT INTO downloads (package, version, number)";
        let tail = "ON CONFLICT (package, version) DO UPDATE
            SET number = downloads.number + excluded.number";
        let written = async {
            let mut transaction = self.database.begin().await?;
            insert_rows(&mut transaction, head, rows, tail).await?;
            transaction.commit().await
        };
        if let Err(error) = written.await {
            for (key, number) in seen {
                counter.add(key, number);
            }
            return Err(error);
        }
        seen.dedup_by(|((a, _), _), ((b, _), _)| a == b);
        seen.iter().map(|((package, _), _)| read_name(package)).collect()
    }

    /// Returns the downloads of several packages. Packages without downloads are left out.
    pub async fn downloads_of(
        &self,
        packages: &[PackageName],
    ) -> Result<HashMap<PackageName, u64>, StoreError> {
        let mut found = HashMap::with_capacity(packages.len());
        for chunk in packages.chunks(MAX_NAMES_PER_QUERY) {
            let ids = chunk.iter().map(PackageName::id);
            let select = "SELECT package, number FROM downloads WHERE package IN";
            for row in among(select, ids).all(self.reader()).await? {
                let number: &mut u64 = found.entry(read_name(&row.text(0)?)?).or_default();
                *number = number.saturating_add(row.count(1)?);
            }
        }
        Ok(found)
    }

    /// Returns the downloads of each version of a package.
    pub async fn downloads(
        &self,
        package: &PackageName,
    ) -> Result<Vec<(Version, u64)>, StoreError> {
        let rows = sql("SELECT version, number FROM downloads WHERE package = $1")
            .text(&package.id())
            .all(self.reader())
            .await?;
        let mut found = Vec::with_capacity(rows.len());
        for row in rows {
            found.push((super::facts::read_version(&row.text(0)?)?, row.count(1)?));
        }
        found.sort_unstable();
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn downloads_are_counted_exactly_once() {
        let (counter, package) =
            (DownloadCounter::default(), "pdf".parse::<PackageName>().unwrap());
        let version = Version::new(1, 0, 0);
        let key = (package.id(), "1.0.0".to_owned());
        let tally = counter.counter_of(&package, &version);
        assert_eq!(counter.take(), [], "nothing was counted");
        tally.count();
        counter.count(&package, &version);
        assert_eq!(counter.take(), [(key.clone(), 2)]);
        tally.count();
        drop(tally);
        assert_eq!(counter.take(), [(key.clone(), 1)]);
        assert!(counter.seen().is_empty(), "no handle is left");
        counter.add(key.clone(), 7);
        assert_eq!(counter.take(), [(key, 7)]);
    }
}
