//! Repositories of the catalogue, as administrators configure them.

use crate::{
    Database, StoreError, Timestamp,
    sql::{Row, new_id, sql},
};

/// The sources of the catalogue of a database.
#[derive(Clone, Copy, Debug)]
pub struct CatalogSources<'a>(pub(crate) &'a Database);

/// A repository with skills.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogSource {
    /// Its handle.
    pub id: String,
    /// What people call it.
    pub label: String,
    /// Where it is.
    pub repo_url: String,
    /// A branch, a tag or a commit; the default branch if there is none.
    pub reference: Option<String>,
    /// Whether it is offered.
    pub enabled: bool,
}

/// What is to be known of a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewCatalogSource {
    /// What people call it.
    pub label: String,
    /// Where it is.
    pub repo_url: String,
    /// A branch, a tag or a commit.
    pub reference: Option<String>,
    /// Whether it is offered.
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
    /// All of them, oldest first.
    pub async fn list(&self) -> Result<Vec<CatalogSource>, StoreError> {
        let rows = sql("SELECT id, label, repo_url, reference, enabled FROM catalog_sources
             ORDER BY created_at, id")
        .all(self.0.reader())
        .await?;
        rows.iter().map(source).collect()
    }

    /// One of them.
    pub async fn get(&self, id: &str) -> Result<Option<CatalogSource>, StoreError> {
        let row = sql("SELECT id, label, repo_url, reference, enabled FROM catalog_sources
             WHERE id = $1")
        .text(id)
        .optional(self.0.reader())
        .await?;
        row.as_ref().map(source).transpose()
    }

    /// Adds one.
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

    /// Replaces what is known of one; `None` if there is none.
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

    /// Removes one; skills that came from it stay. False if there is none.
    pub async fn remove(&self, id: &str) -> Result<bool, StoreError> {
        let removed =
            sql("DELETE FROM catalog_sources WHERE id = $1").text(id).run(self.0.writer()).await?;
        Ok(removed == 1)
    }
}
