//! The repositories of the catalog, which administrators configure.

use crate::{
    Database, StoreError, Timestamp,
    sql::{Row, new_id, sql},
};

#[derive(Clone, Copy, Debug)]
pub struct CatalogSources<'a>(pub(crate) &'a Database);

/// A repository with skills.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogSource {
    pub id: String,
    /// The label for users.
    pub label: String,
    pub repo_url: String,
    /// A branch, tag or commit; `None` for the default branch.
    pub reference: Option<String>,
    /// Whether users can install from it.
    pub enabled: bool,
}

/// The fields of a [`CatalogSource`] that an administrator sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewCatalogSource {
    pub label: String,
    pub repo_url: String,
    pub reference: Option<String>,
    pub enabled: bool,
}

fn source(row: &Row) -> Result<CatalogSource, StoreError> {
    Ok(CatalogSource {
        id: row.text(0)?,
        label: row.text(1)?,
        repo_url: row.text(2)?,
        reference: row.maybe_text(3)?,
        enabled: row.number(4)? != 0,
    })
}

impl CatalogSources<'_> {
    /// Returns all repositories, oldest first.
    pub async fn list(&self) -> Result<Vec<CatalogSource>, StoreError> {
        let rows = sql("SELECT id, label, repo_url, reference, enabled FROM catalog_sources
             ORDER BY created_at, id")
        .all(self.0.reader())
        .await?;
        rows.iter().map(source).collect()
    }

    pub async fn get(&self, id: &str) -> Result<Option<CatalogSource>, StoreError> {
        let row = sql("SELECT id, label, repo_url, reference, enabled FROM catalog_sources
             WHERE id = $1")
        .text(id)
        .optional(self.0.reader())
        .await?;
        row.as_ref().map(source).transpose()
    }

    pub async fn add(&self, new: &NewCatalogSource) -> Result<CatalogSource, StoreError> {
        let row = sql("INSERT INTO catalog_sources (id, label, repo_url, reference, enabled,
                created_at)
             VALUES ($1, $2, $3, $4, $5, $6)
             RETURNING id, label, repo_url, reference, enabled")
        .text(&new_id())
        .text(&new.label)
        .text(&new.repo_url)
        .maybe_text(new.reference.as_deref())
        .number(i64::from(new.enabled))
        .time(Timestamp::now())
        .one(self.0.writer())
        .await?;
        source(&row)
    }

    /// Replaces the fields of a repository. Returns `None` if it does not exist.
    pub async fn replace(
        &self,
        id: &str,
        new: &NewCatalogSource,
    ) -> Result<Option<CatalogSource>, StoreError> {
        let row = sql("UPDATE catalog_sources
             SET label = $2, repo_url = $3, reference = $4, enabled = $5 WHERE id = $1
             RETURNING id, label, repo_url, reference, enabled")
        .text(id)
        .text(&new.label)
        .text(&new.repo_url)
        .maybe_text(new.reference.as_deref())
        .number(i64::from(new.enabled))
        .optional(self.0.writer())
        .await?;
        row.as_ref().map(source).transpose()
    }

    /// Removes a repository; installed skills stay. Returns false if it does not exist.
    pub async fn remove(&self, id: &str) -> Result<bool, StoreError> {
        let removed =
            sql("DELETE FROM catalog_sources WHERE id = $1").text(id).run(self.0.writer()).await?;
        Ok(removed == 1)
    }
}
