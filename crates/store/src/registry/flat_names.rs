//! Flat names of packages, for tools without namespaces.
//!
//! The flat name of `acme/racer` is `acme-racer`, which could also be the name of a package without
//! namespace. The first package keeps the flat name: a package whose flat name is taken is
//! rejected.

use semver::Version;

use super::{
    Actor, Namespace, PackageName, Registry, RegistryError, RegistryTransaction,
    facts::{read_name, read_version},
};
use crate::{DatabaseKind, sql};

impl PackageName {
    /// Returns the flat name: namespace and name, joined by a hyphen.
    pub fn short(&self) -> String {
        self.to_string().replace('/', "-")
    }

    /// Returns the ids of other packages that would have the same short name.
    fn other_ids_with_short_name(&self) -> Vec<String> {
        ids_with_short_name(&self.short()).into_iter().filter(|id| *id != self.id()).collect()
    }

    /// Returns the namespaces that could have a package of the same short name.
    fn prefix_namespaces(&self) -> Vec<String> {
        prefix_namespaces(&self.short())
    }
}

/// Returns the part before each hyphen of a name.
fn prefix_namespaces(short: &str) -> Vec<String> {
    short.match_indices('-').map(|(at, _)| short[..at].to_owned()).collect()
}

impl Registry<'_> {
    /// Returns the package with a short name, and its default version. If an import created
    /// several, the one in a namespace is returned.
    pub async fn by_short_name(
        &self,
        short: &str,
    ) -> Result<Option<(PackageName, Version)>, RegistryError> {
        let ids = ids_with_short_name(short).into_iter();
        let head = "SELECT id, latest FROM packages WHERE latest IS NOT NULL AND id IN";
        let mut found = Vec::new();
        for row in sql::among(head, ids).all(self.reader()).await? {
            let (name, latest) = (read_name(&row.text(0)?)?, read_version(&row.text(1)?)?);
            found.push(((name.namespace().is_default(), name.to_string()), (name, latest)));
        }
        Ok(found.into_iter().min_by(|(a, _), (b, _)| a.cmp(b)).map(|(_, found)| found))
    }
}

/// Returns the ids of all packages that would have a short name.
fn ids_with_short_name(short: &str) -> Vec<String> {
    let split = |at: usize| format!("{}/{}", &short[..at], &short[at + 1..]);
    let alone = Namespace::default_namespace();
    std::iter::once(format!("{alone}/{short}"))
        .chain(short.match_indices('-').map(|(at, _)| split(at)))
        .collect()
}

impl RegistryTransaction {
    /// Rejects a new package if another package has or had its short name, or if the short name
    /// could belong to a namespace of another owner.
    pub(super) async fn check_short_name_is_free(
        &mut self,
        actor: &Actor,
        package: &PackageName,
    ) -> Result<(), RegistryError> {
        self.check_no_same_short_name(package, "SELECT id FROM packages WHERE id IN").await?;
        let own = package.namespace().as_str();
        self.check_prefix_not_owned_by_others(
            actor,
            own,
            &package.to_string(),
            package.prefix_namespaces(),
        )
        .await
    }

    /// Rejects a new namespace whose skills could have the short names of another namespace.
    pub(super) async fn check_namespace_prefixes(
        &mut self,
        actor: &Actor,
        namespace: &Namespace,
    ) -> Result<(), RegistryError> {
        let name = namespace.as_str();
        self.check_prefix_not_owned_by_others(actor, name, name, prefix_namespaces(name)).await
    }

    /// Rejects the restoration of a package if another package has its short name now.
    pub(super) async fn check_restored_short_name(
        &mut self,
        package: &PackageName,
    ) -> Result<(), RegistryError> {
        let living = "SELECT package FROM versions WHERE withdrawn_at IS NULL AND package IN";
        self.check_no_same_short_name(package, living).await
    }

    /// `select` is a query that ends with `IN` and gets the ids of packages with the same short
    /// name.
    async fn check_no_same_short_name(
        &mut self,
        package: &PackageName,
        select: &str,
    ) -> Result<(), RegistryError> {
        let (short, other_ids_with_short_name) =
            (package.short(), package.other_ids_with_short_name());
        if other_ids_with_short_name.is_empty() {
            return Ok(());
        }
        if self.kind == DatabaseKind::Postgres {
            // Of two concurrent requests, the second sees the first.
            sql::sql("SELECT 1 FROM pg_advisory_xact_lock(hashtext($1))")
                .text(&format!("registry {short}"))
                .run(self.connection())
                .await?;
        }
        let query = sql::among(select, other_ids_with_short_name.into_iter());
        let Some(row) = query.optional(self.connection()).await? else { return Ok(()) };
        let other = read_name(&row.text(0)?)?;
        Err(RegistryError::Name {
            name: package.to_string(),
            message: format!("other tools know `{other}` as `{short}`; choose another name"),
        })
    }

    /// Rejects a name if the part before one of its hyphens is a namespace of another owner. A
    /// namespace that is older than that one is exempt, and so are administrators.
    async fn check_prefix_not_owned_by_others(
        &mut self,
        actor: &Actor,
        own: &str,
        name: &str,
        prefix_namespaces: Vec<String>,
    ) -> Result<(), RegistryError> {
        if prefix_namespaces.is_empty() || actor.is_admin() {
            return Ok(());
        }
        let text = format!(
            "SELECT name FROM namespaces
             WHERE name <> $1 AND name IN ({})
                AND NOT EXISTS (SELECT 1 FROM members
                    WHERE holding = namespaces.name AND user_id = $2)
                AND NOT EXISTS (SELECT 1 FROM namespaces own
                    WHERE own.name = $1 AND own.created_at < namespaces.created_at)
             ORDER BY LENGTH(name) LIMIT 1",
            placeholders(3, prefix_namespaces.len())
        );
        let query = sql::built(text).text(own).number(actor.account.unwrap_or_default());
        let query = prefix_namespaces.iter().fold(query, |query, namespace| query.text(namespace));
        let Some(row) = query.optional(self.connection()).await? else { return Ok(()) };
        let namespace = row.text(0)?;
        Err(RegistryError::Name {
            name: name.to_owned(),
            message: format!(
                "other tools know the skills of the namespace `{namespace}` by names that begin \
                 with `{namespace}-`, and it belongs to others; choose another name, or ask one of \
                 its owners to add you"
            ),
        })
    }
}

/// `$3, $4, …`.
pub(super) fn placeholders(first: usize, count: usize) -> String {
    (first..first + count).map(|n| format!("${n}")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_ids_of_a_short_name_are_found() {
        let name = |text: &str| text.parse::<PackageName>().unwrap();
        assert_eq!(name("acme/my-skill").short(), "acme-my-skill");
        assert_eq!(
            name("acme/my-skill").other_ids_with_short_name(),
            ["_/acme-my-skill", "acme-my/skill"]
        );
        assert_eq!(name("acme-racer").other_ids_with_short_name(), ["acme/racer"]);
        assert!(name("racer").other_ids_with_short_name().is_empty());
        assert_eq!(
            name("acme/my-big-skill").prefix_namespaces(),
            ["acme", "acme-my", "acme-my-big"]
        );
        assert!(name("racer").prefix_namespaces().is_empty());
    }
}
