//! How often versions were downloaded. Counted in memory and added up now and then: a number that
//! is a little too small costs nobody anything.

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

/// Downloads that this process saw since it last wrote them down.
#[derive(Debug, Default)]
pub struct DownloadCounter(Mutex<HashMap<Key, Arc<AtomicU64>>>);

/// The package and the version.
type Key = (String, String);

/// Counts the downloads of one version without looking it up. What it counted is written down with
/// the rest, also after it was dropped.
#[derive(Clone, Debug)]
pub struct VersionDownloads(Arc<AtomicU64>);

impl VersionDownloads {
    /// Counts one.
    pub fn count(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl DownloadCounter {
    /// Counts one.
    pub fn count(&self, package: &PackageName, version: &Version) {
        self.counter_of(package, version).count();
    }

    /// For a version that is downloaded often.
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

    /// Takes what was counted. A version that nobody counts any more is forgotten.
    fn take(&self) -> Vec<(Key, u64)> {
        let mut taken = Vec::new();
        self.seen().retain(|key, number| {
            // While the map is locked, nobody gets a number that nobody has.
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
    /// Stores what was counted, and returns the packages that were downloaded. What cannot be
    /// stored is counted again.
    pub async fn add_downloads(
        &self,
        counter: &DownloadCounter,
    ) -> Result<Vec<PackageName>, StoreError> {
        let mut seen = counter.take();
        // Two processes that lock rows in the same order do not wait for each other in a circle.
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

    /// How often some packages were downloaded. Those without a download are left out.
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

    /// How often the versions of a package were downloaded.
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
        assert!(counter.seen().is_empty(), "nobody counts it any more");
        counter.add(key.clone(), 7);
        assert_eq!(counter.take(), [(key, 7)]);
    }
}
