//! Rejects namespaces whose names look like existing ones.
//!
//! A user who reads `acrne/deploy` and thinks of `acme` would run code of somebody else. Names are
//! ASCII, so only few characters can be confused.

use super::{Actor, Namespace, RegistryError, RegistryTransaction};
use crate::{DatabaseKind, sql};

/// Replaces similar characters in a name; the same expression as in the index `namespaces_by_look`.
const FOLDED_NAME_SQL: &str = "replace(replace(replace(replace(replace(name, '0', 'o'), '1', 'l'), 'i', 'l'), \
    'rn', 'm'), 'vv', 'w')";

/// The same replacement in Rust.
fn look(name: &str) -> String {
    name.replace('0', "o").replace(['1', 'i'], "l").replace("rn", "m").replace("vv", "w")
}

impl RegistryTransaction {
    /// Rejects a new namespace that looks like one of another owner. Administrators can create it
    /// and transfer it.
    pub(super) async fn check_no_look_alike(
        &mut self,
        actor: &Actor,
        namespace: &Namespace,
    ) -> Result<(), RegistryError> {
        if actor.is_admin() {
            return Ok(());
        }
        let (name, look) = (namespace.as_str(), look(namespace.as_str()));
        let refused = |other: &str| RegistryError::LooksAlike {
            name: name.to_owned(),
            other: other.to_owned(),
        };
        if let Some(shared) =
            Namespace::SHARED.into_iter().find(|shared| self::look(shared) == look)
        {
            return Err(refused(shared));
        }
        if self.kind == DatabaseKind::Postgres {
            // The advisory lock makes the second of two concurrent requests see the first.
            sql::sql("SELECT 1 FROM pg_advisory_xact_lock(hashtext($1))")
                .text(&format!("registry look {look}"))
                .run(self.connection())
                .await?;
        }
        let text = format!(
            "SELECT name FROM namespaces WHERE {FOLDED_NAME_SQL} = $1 AND name <> $2
                AND NOT EXISTS (SELECT 1 FROM members
                    WHERE holding = namespaces.name AND user_id = $3)
             ORDER BY created_at LIMIT 1"
        );
        let query = sql::built(text).text(&look).text(name);
        let query = query.number(actor.account.unwrap_or_default());
        match query.optional(self.connection()).await? {
            Some(row) => Err(refused(&row.text(0)?)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::look;

    #[test]
    fn look_alike_names_are_equal() {
        for (one, other) in [
            ("acme", "acrne"),
            ("wave", "vvave"),
            ("tool", "t00l"),
            ("ill", "1li"),
            ("anon", "an0n"),
        ] {
            assert_eq!(look(one), look(other));
        }
        for (one, other) in [("acme", "acne"), ("team-a", "team-b"), ("n-1", "n-2")] {
            assert_ne!(look(one), look(other));
        }
    }
}
