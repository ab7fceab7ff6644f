//! Earlier states of workflows.

use std::time::Duration;

use serde_json::Value;

use crate::{
    StoreError, Timestamp, Workflow, Workflows,
    sql::{Row, new_id, sql},
    workflows::from_json,
};

/// Saves of one user within this time share a version, because the editor saves after each change.
const SHARED_TIME: Duration = Duration::from_mins(5);
/// Maximum versions of a workflow. Older ones are removed.
const MAX_VERSIONS: i64 = 30;

/// An earlier state of a workflow, or its present one.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkflowVersion {
    /// A UUID.
    pub id: String,
    /// Who saved it.
    pub user_id: Option<i64>,
    /// Nodes and edges.
    pub graph: Value,
    /// When it was last saved.
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
    /// The versions of a workflow, newest first. The first one is the present state.
    pub async fn versions(&self, workflow_id: &str) -> Result<Vec<WorkflowVersion>, StoreError> {
        let rows = sql("SELECT id, user_id, graph, updated_at FROM workflow_versions
             WHERE workflow_id = $1 ORDER BY updated_at DESC, id DESC")
        .text(workflow_id)
        .all(self.0.reader())
        .await?;
        rows.iter().map(version).collect()
    }

    /// A version of a workflow.
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

    /// Records the present state of a workflow as a version.
    pub async fn record_version(
        &self,
        workflow: &Workflow,
        user_id: Option<i64>,
    ) -> Result<(), StoreError> {
        // The time of its first save, so that a version does not go on for ever.
        let newest = sql("SELECT id, user_id, graph, created_at FROM workflow_versions
             WHERE workflow_id = $1 ORDER BY updated_at DESC, id DESC LIMIT 1")
        .text(&workflow.id)
        .optional(self.0.writer())
        .await?;
        let newest = newest.as_ref().map(version).transpose()?;
        if newest.as_ref().is_some_and(|newest| newest.graph == workflow.graph) {
            return Ok(());
        }
        let shared = newest.filter(|newest| {
            newest.user_id == user_id && newest.updated_at.plus(SHARED_TIME) > workflow.updated_at
        });
        match shared {
            Some(shared) => self.replace_version(&shared.id, workflow).await,
            None => self.add_version(workflow, user_id).await,
        }
    }

    async fn replace_version(&self, id: &str, workflow: &Workflow) -> Result<(), StoreError> {
        sql("UPDATE workflow_versions SET graph = $2, updated_at = $3 WHERE id = $1")
            .text(id)
            .text(&workflow.graph.to_string())
            .time(workflow.updated_at)
            .run(self.0.writer())
            .await
            .map(drop)
    }

    async fn add_version(
        &self,
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
        .run(self.0.writer())
        .await?;
        sql("DELETE FROM workflow_versions WHERE workflow_id = $1 AND id NOT IN (
                SELECT id FROM workflow_versions WHERE workflow_id = $1
                ORDER BY updated_at DESC, id DESC LIMIT $2)")
        .text(&workflow.id)
        .number(MAX_VERSIONS)
        .run(self.0.writer())
        .await
        .map(drop)
    }
}
