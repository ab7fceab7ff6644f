//! Names for tools that know no namespaces.
//!
//! `acme/racer` is `acme-racer` there, and so would `acme-racer` be, or `racer` of somebody else's
//! `acme`. Whoever is first has it: nobody publishes under a name by which another package is known.

use super::{PackageName, RegistryError, Work};
use crate::{Kind, sql};

impl PackageName {
    /// Its name with its namespace before it and no slash.
    pub fn short(&self) -> String {
        self.to_string().replace('/', "-")
    }

    /// What the other packages would be kept under that have the same short name.
    fn namesakes(&self) -> Vec<String> {
        let short = self.short();
        let split = |at: usize| format!("{}/{}", &short[..at], &short[at + 1..]);
        let alone = super::Namespace::default_one();
        std::iter::once(format!("{alone}/{short}"))
            .chain(short.match_indices('-').map(|(at, _)| split(at)))
            .filter(|id| *id != self.id())
            .collect()
    }
}

impl Work {
    /// Refuses a new package if another one is known by its short name.
    pub(super) async fn must_be_unlike(
        &mut self,
        package: &PackageName,
    ) -> Result<(), RegistryError> {
        let short = package.short();
        if self.kind == Kind::Postgres {
            // Of two who come at once, the second sees the first.
            sql::sql("SELECT 1 FROM pg_advisory_xact_lock(hashtext($1))")
                .text(&format!("registry {short}"))
                .run(self.connection())
                .await?;
        }
        let namesakes = package.namesakes();
        if namesakes.is_empty() {
            return Ok(());
        }
        let places: Vec<String> = (1..=namesakes.len()).map(|n| format!("${n}")).collect();
        let text = format!("SELECT id FROM packages WHERE id IN ({})", places.join(", "));
        let query = namesakes.iter().fold(sql::built(text), |query, id| query.text(id));
        let Some(row) = query.optional(self.connection()).await? else { return Ok(()) };
        let other = super::facts::read_name(&row.text(0)?)?;
        Err(RegistryError::Name {
            name: package.to_string(),
            message: format!("other tools know `{other}` as `{short}`; choose another name"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_who_share_a_short_name_are_known() {
        let name = |text: &str| text.parse::<PackageName>().unwrap();
        assert_eq!(name("acme/my-skill").short(), "acme-my-skill");
        assert_eq!(name("acme/my-skill").namesakes(), ["_/acme-my-skill", "acme-my/skill"]);
        assert_eq!(name("acme-racer").namesakes(), ["acme/racer"]);
        assert!(name("racer").namesakes().is_empty());
    }
}
