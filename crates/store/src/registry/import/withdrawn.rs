use serde_json::Value as Json;

use super::Import;
use crate::{
    registry::{LogRecord, RegistryError, log::AuditAction},
    sql::sql,
};

impl Import<'_> {
    /// Restores the digests of withdrawn versions from the log, if their records lack them, as
    /// records of older versions do.
    pub(super) async fn restore_withdrawn_facts(
        &mut self,
        log: &LogRecord,
    ) -> Result<(), RegistryError> {
        let tells = [AuditAction::Published, AuditAction::Withdrawn]
            .iter()
            .any(|act| act.as_str() == log.act);
        let (Some(package), Some(version)) = (&log.package, &log.version) else { return Ok(()) };
        if !tells || !self.unknown.contains(&(package.clone(), version.clone())) {
            return Ok(());
        }
        let details = serde_json::from_str::<Json>(&log.details).unwrap_or_default();
        sql("UPDATE versions SET taken_sha256 = COALESCE($3, taken_sha256),
                taken_integrity = COALESCE($4, taken_integrity)
             WHERE package = $1 AND version = $2 AND withdrawn_at IS NOT NULL")
        .text(package)
        .text(version)
        .maybe_text(details["sha256"].as_str())
        .maybe_text(details["integrity"].as_str())
        .run(self.work.connection())
        .await?;
        Ok(())
    }
}
