//! How often versions were downloaded. Counted in memory and added up now and then: a number that is
//! a little too small costs nobody anything.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use semver::Version;

use super::{PackageName, Registry};
use crate::{
    StoreError,
    sql::{Value, insert_rows, sql},
};

/// Downloads that this process saw since it last wrote them down.
#[derive(Debug, Default)]
pub struct DownloadCounter(Mutex<HashMap<(String, String), u64>>);

impl DownloadCounter {
    /// Counts one.
    pub fn count(&self, package: &PackageName, version: &Version) {
        self.add((package.id(), version.to_string()), 1);
    }

    fn add(&self, key: (String, String), number: u64) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *seen.entry(key).or_default() += number;
    }

    fn take(&self) -> HashMap<(String, String), u64> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Registry<'_> {
    /// Writes down what was counted. What cannot be written is counted on.
    pub async fn add_downloads(&self, counter: &DownloadCounter) -> Result<(), StoreError> {
        let mut seen: Vec<_> = counter.take().into_iter().collect();
        // Two processes that lock rows in the same order do not wait for each other in a circle.
        seen.sort_unstable();
        let row = |((package, version), number): &((String, String), u64)| {
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
            Ok(transaction.commit().await?)
        };
        let written = written.await;
        if written.is_err() {
            for (key, number) in seen {
                counter.add(key, number);
            }
        }
        written
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
