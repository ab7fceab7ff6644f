//! The version history of workflows.

use std::time::Duration;

use serde_json::Value;
use sqlx::AnyConnection;

use crate::{
    StoreError, Timestamp, Workflow, Workflows,
    sql::{Row, new_id, sql},
    workflows::from_json,
};

/// Saves by one user within this time update the same version, because the editor saves after each
/// change.
const SHARED_TIME: Duration = Duration::from_mins(5);
/// Maximum versions of a workflow. Older ones are deleted.
const MAX_VERSIONS: i64 = 30;

/// A saved state of a workflow.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkflowVersion {
    /// A UUID.
    pub id: String,
    /// The user who saved it.
    pub user_id: Option<i64>,
    /// Nodes and edges.
    pub graph: Value,
    pub updated_at: Timestamp,
}

/// Reads `id, user_id, graph, updated_at`.
fn version(row: &Row) -> Result<WorkflowVersion, StoreError> {
    Ok(WorkflowVersion {
        id: row.text(0)?,
        user_id: row.maybe_number(1)?,
        graph: from_json("a version of a workflow", &row.text(2)?)?,
        updated_at: row.time(3)?,
    })
}

impl Workflows<'_> {
    /// Returns the versions of a workflow, newest first. The first one is the current state.
    pub async fn versions(&self, workflow_id: &str) -> Result<Vec<WorkflowVersion>, StoreError> {
        let rows = sql("SELECT id, user_id, graph, updated_at FROM workflow_versions
             WHERE workflow_id = $1 ORDER BY updated_at DESC, id DESC")
        .text(workflow_id)
        .all(self.0.reader())
        .await?;
        rows.iter().map(version).collect()
    }

    pub async fn version(
        &self,
        workflow_id: &str,
        id: &str,
    ) -> Result<Option<WorkflowVersion>, StoreError> {
        let row = sql("SELECT id, user_id, graph, updated_at FROM workflow_versions
             WHERE workflow_id = $1 AND id = $2")
        .text(workflow_id)
        .text(id)
        .optional(self.0.reader())
        .await?;
        row.as_ref().map(version).transpose()
    }
}

/// Records the current state of a workflow as a version, in the transaction that changes it.
pub(crate) async fn record_version(
    transaction: &mut AnyConnection,
    workflow: &Workflow,
    user_id: Option<i64>,
) -> Result<(), StoreError> {
    // Compare with the time of the first save, so that continuous edits still create new versions.
    let newest = sql("SELECT id, user_id, graph, created_at FROM workflow_versions
         WHERE workflow_id = $1 ORDER BY updated_at DESC, id DESC LIMIT 1")
    .text(&workflow.id)
    .optional(&mut *transaction)
    .await?;
    let newest = newest.as_ref().map(version).transpose()?;
    if newest.as_ref().is_some_and(|newest| newest.graph == workflow.graph) {
        return Ok(());
    }
    let shared = newest.filter(|newest| {
        newest.user_id == user_id && newest.updated_at.plus(SHARED_TIME) > workflow.updated_at
    });
    match shared {
        Some(shared) => replace_version(transaction, &shared.id, workflow).await,
        None => add_version(transaction, workflow, user_id).await,
    }
}

async fn replace_version(
    transaction: &mut AnyConnection,
    id: &str,
    workflow: &Workflow,
) -> Result<(), StoreError> {
    sql("UPDATE workflow_versions SET graph = $2, updated_at = $3 WHERE id = $1")
        .text(id)
        .text(&workflow.graph.to_string())
        .time(workflow.updated_at)
        .run(transaction)
        .await
        .map(drop)
}

async fn add_version(
    transaction: &mut AnyConnection,
    workflow: &Workflow,
    user_id: Option<i64>,
) -> Result<(), StoreError> {
    sql("INSERT INTO workflow_versions (id, workflow_id, user_id, graph, created_at, updated_at)
         VALUES ($1, $2, $3, $4, $5, $5)")
    .text(&new_id())
    .text(&workflow.id)
    .maybe_number(user_id)
    .text(&workflow.graph.to_string())
    .time(workflow.updated_at)
    .run(&mut *transaction)
    .await?;
    sql("DELETE FROM workflow_versions WHERE workflow_id = $1 AND id NOT IN (
            SELECT id FROM workflow_versions WHERE workflow_id = $1
            ORDER BY updated_at DESC, id DESC LIMIT $2)")
    .text(&workflow.id)
    .number(MAX_VERSIONS)
    .run(transaction)
    .await
    .map(drop)
}
