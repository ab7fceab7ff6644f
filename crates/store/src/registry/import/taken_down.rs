//! Rejects an import that contains content that administrators took down.

use std::collections::HashSet;

use super::Import;
use crate::{
    registry::{
        RegistryError,
        facts::read_name,
        taken_down::{ContentDigests, check},
    },
    sql::{Row, among, sql},
};

/// Number of digests per query.
const BATCH_SIZE: usize = 500;

/// An imported version with the same content as a version that was taken down.
struct SameContent {
    package: String,
    sha256: String,
    integrity: String,
}

impl SameContent {
    /// Reads `package, sha256, integrity`.
    fn read(row: &Row) -> Result<Self, RegistryError> {
        Ok(Self { package: row.text(0)?, sha256: row.text(1)?, integrity: row.text(2)? })
    }
}

impl Import<'_> {
    /// Rejects content that was taken down here, under any name. Call it after the import took its
    /// log number: then every earlier takedown is visible, and later takedowns see what was
    /// imported.
    ///
    /// Only takedowns from before the import count: a backup may itself contain withdrawn versions
    /// beside other versions with the same content.
    pub(super) async fn check_not_taken_down(&mut self) -> Result<(), RegistryError> {
        for (taken, same) in [
            (
                "SELECT DISTINCT taken_sha256 FROM versions WHERE taken_sha256 IS NOT NULL",
                "SELECT package, sha256, integrity FROM versions WHERE withdrawn_at IS NULL
                    AND (verdict IS NULL OR verdict <> 'block') AND sha256 IN",
            ),
            (
                "SELECT DISTINCT taken_integrity FROM versions WHERE taken_integrity IS NOT NULL",
                "SELECT package, sha256, integrity FROM versions WHERE withdrawn_at IS NULL
                    AND (verdict IS NULL OR verdict <> 'block') AND integrity IN",
            ),
        ] {
            let rows = sql(taken).all(self.registry.reader()).await?;
            let digests = rows.iter().map(|row| row.text(0)).collect::<Result<Vec<_>, _>>()?;
            for some in digests.chunks(BATCH_SIZE) {
                let rows = among(same, some.iter().cloned()).all(self.work.connection()).await?;
                let found = rows.iter().map(SameContent::read).collect::<Result<Vec<_>, _>>()?;
                self.check_imported(found).await?;
            }
        }
        Ok(())
    }

    /// Fails for versions that only this import's transaction sees.
    async fn check_imported(&mut self, found: Vec<SameContent>) -> Result<(), RegistryError> {
        let mut here = HashSet::new();
        for some in found.chunks(BATCH_SIZE) {
            let names = some.iter().map(|same| same.package.clone());
            let statement = among("SELECT id FROM packages WHERE id IN", names);
            for row in statement.all(self.registry.reader()).await? {
                here.insert(row.text(0)?);
            }
        }
        for same in found.iter().filter(|same| !here.contains(&same.package)) {
            let content = ContentDigests { sha256: &same.sha256, integrity: &same.integrity };
            check(self.work.connection(), &read_name(&same.package)?, content).await?;
        }
        Ok(())
    }
}
