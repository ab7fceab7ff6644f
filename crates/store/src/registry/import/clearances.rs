use super::Import;
use crate::{
    registry::{
        Record, RegistryError,
        appeal::{check_digest, setting},
        change::check_message,
    },
    sql::{Value, insert_rows},
};

impl Import<'_> {
    /// Imports clearances. If the registry was not empty, its administrators have decided already,
    /// and their decisions are not changed.
    pub(super) async fn clearances(&mut self, records: Vec<Record>) -> Result<(), RegistryError> {
        if !self.fresh {
            self.done.left_out += records.len() as u64;
            return Ok(());
        }
        let mut rows = Vec::with_capacity(records.len());
        for record in records {
            let Record::Clearance { sha256, package, why } = record else { continue };
            check_digest(&sha256)?;
            check_message(Some(&why))?;
            rows.push(vec![Value::Text(setting(&sha256, package.as_ref())), Value::Text(why)]);
        }
        let head = "INSERT INTO settings (name, value)";
        insert_rows(self.work.connection(), head, rows, "ON CONFLICT DO NOTHING").await?;
        Ok(())
    }
}
