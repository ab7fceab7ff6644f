//! Workflows and their executions.

use std::{collections::BTreeMap, time::Duration};

use serde_json::{Map, Value, json};

use crate::{
    Database, DatabaseKind, StoreError, Timestamp,
    database::WriteTransaction,
    sql::{Row, built, damaged, new_id, sql},
    workflow_versions::record_version,
};

#[derive(Clone, Copy, Debug)]
pub struct Workflows<'a>(pub(crate) &'a Database);

#[derive(Clone, Debug, PartialEq)]
pub struct Workflow {
    /// A UUID.
    pub id: String,
    pub name: String,
    pub description: Option<String>,
    /// Nodes and edges as the user saved them.
    pub graph: Value,
    /// The owner; `None` if all users share it.
    pub user_id: Option<i64>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// Reads `id, name, description, graph, user_id, created_at, updated_at`.
fn workflow(row: &Row) -> Result<Workflow, StoreError> {
    Ok(Workflow {
        id: row.text(0)?,
        name: row.text(1)?,
        description: row.maybe_text(2)?,
        graph: from_json("the graph of a workflow", &row.text(3)?)?,
        user_id: row.maybe_number(4)?,
        created_at: row.time(5)?,
        updated_at: row.time(6)?,
    })
}

/// Reads `id, workflow_id, user_id, status, initial_input, model, checkpoint, created_at,
/// updated_at`.
fn execution(row: &Row) -> Result<Execution, StoreError> {
    let status = match row.text(3)?.as_str() {
        "running" => ExecutionStatus::Running,
        "completed" => ExecutionStatus::Completed,
        "failed" => ExecutionStatus::Failed,
        other => return Err(damaged("the status of an execution", other)),
    };
    Ok(Execution {
        id: row.text(0)?,
        workflow_id: row.text(1)?,
        user_id: row.maybe_number(2)?,
        status,
        initial_input: row.text(4)?,
        model: row.maybe_text(5)?,
        checkpoint: from_json("the checkpoint of an execution", &row.text(6)?)?,
        created_at: row.time(7)?,
        updated_at: row.time(8)?,
    })
}

pub(crate) fn from_json<T: serde::de::DeserializeOwned>(
    what: &str,
    text: &str,
) -> Result<T, StoreError> {
    serde_json::from_str(text)
        .map_err(|error| StoreError::Damaged { what: what.to_owned(), message: error.to_string() })
}

fn to_json<T: serde::Serialize>(value: &T) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|error| StoreError::Setting(error.to_string()))
}

/// The result of a change of a workflow.
#[derive(Clone, Debug, PartialEq)]
pub enum ChangedWorkflow {
    /// The workflow after an update, or before it was deleted.
    Done(Workflow),
    /// There is no such workflow.
    Missing,
    /// The workflow is not the expected one, and was not changed.
    Unexpected,
}

/// Reads a workflow that nobody else can change until the end of the transaction.
async fn locked(
    database: &Database,
    transaction: &mut WriteTransaction,
    id: &str,
) -> Result<Option<Workflow>, StoreError> {
    let lock = match database.kind() {
        // The transaction has the lock of the whole database.
        DatabaseKind::Sqlite => "",
        DatabaseKind::Postgres => "FOR UPDATE",
    };
    let row = built(format!(
        "SELECT id, name, description, graph, user_id, created_at, updated_at
         FROM workflows WHERE id = $1 {lock}"
    ));
    let row = row.text(id).optional(&mut **transaction).await?;
    row.as_ref().map(workflow).transpose()
}

/// The fields of a workflow that a user sets; `None` leaves a field unchanged.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NewWorkflow {
    pub name: Option<String>,
    pub description: Option<String>,
    /// Nodes and edges.
    pub graph: Option<Value>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExecutionStatus {
    /// A process runs it, or died while running it.
    Running,
    Completed,
    /// A node failed; the execution can be resumed.
    Failed,
}

impl ExecutionStatus {
    /// `running`, `completed` or `failed`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
        }
    }
}

/// The state from which an execution can be resumed.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Checkpoint {
    /// The output of each executed node.
    pub outputs: Map<String, Value>,
    pub variables: Map<String, Value>,
    /// The executed nodes, in order.
    pub executed_nodes: Vec<String>,
    /// The nodes that run next, in order.
    pub queue: Vec<String>,
    /// The messages to and from models so far: `{"role","content"}`.
    pub history: Vec<Value>,
    /// The branch that each condition chose.
    #[serde(default)]
    pub branches: BTreeMap<String, bool>,
}

/// An execution of a workflow.
#[derive(Clone, Debug, PartialEq)]
pub struct Execution {
    /// A UUID.
    pub id: String,
    pub workflow_id: String,
    /// The user who runs it.
    pub user_id: Option<i64>,
    pub status: ExecutionStatus,
    pub initial_input: String,
    /// The model that the request named.
    pub model: Option<String>,
    pub checkpoint: Checkpoint,
    pub created_at: Timestamp,
    /// When the checkpoint was last saved.
    pub updated_at: Timestamp,
}

impl Workflows<'_> {
    /// Stores a workflow. `name` must be set.
    pub async fn create(
        &self,
        new: NewWorkflow,
        user_id: Option<i64>,
    ) -> Result<Workflow, StoreError> {
        let name = new.name.ok_or_else(|| {
            StoreError::Setting("a workflow cannot be kept without a name".to_owned())
        })?;
        let mut transaction = self.0.begin().await?;
        let row = sql("INSERT INTO workflows
                (id, name, description, graph, user_id, created_at, updated_at)
             VALUES ($1, $2, $3, $4, $5, $6, $6)
             RETURNING id, name, description, graph, user_id, created_at, updated_at")
        .text(&new_id())
        .text(&name)
        .maybe_text(new.description.as_deref())
        .text(&new.graph.unwrap_or_else(|| json!({"nodes": [], "edges": []})).to_string())
        .maybe_number(user_id)
        .time(Timestamp::now())
        .one(&mut *transaction)
        .await?;
        let created = workflow(&row)?;
        record_version(&mut transaction, &created, user_id).await?;
        transaction.commit().await?;
        Ok(created)
    }

    pub async fn get(&self, id: &str) -> Result<Option<Workflow>, StoreError> {
        let row = sql("SELECT id, name, description, graph, user_id, created_at, updated_at
             FROM workflows WHERE id = $1")
        .text(id)
        .optional(self.0.reader())
        .await?;
        row.as_ref().map(workflow).transpose()
    }

    /// Returns the workflows of a user and the shared ones, or all; newest first.
    pub async fn list(&self, user_id: Option<i64>) -> Result<Vec<Workflow>, StoreError> {
        let rows = sql("SELECT id, name, description, graph, user_id, created_at, updated_at
             FROM workflows WHERE user_id = $1 OR user_id IS NULL OR $2 = 1
             ORDER BY created_at DESC, id DESC")
        .number(user_id.unwrap_or_default())
        .number(i64::from(user_id.is_none()))
        .all(self.0.reader())
        .await?;
        rows.iter().map(workflow).collect()
    }

    /// Counts the workflows of a user.
    pub async fn count(&self, user_id: i64) -> Result<u64, StoreError> {
        let row = sql("SELECT count(*) FROM workflows WHERE user_id = $1").number(user_id);
        row.one(self.0.reader()).await?.count(0)
    }

    /// Changes the fields that are set, and records a version, if `is_expected` accepts the
    /// workflow: nobody changes it in between.
    pub async fn update(
        &self,
        id: &str,
        change: NewWorkflow,
        user_id: Option<i64>,
        is_expected: impl FnOnce(&Workflow) -> bool + Send,
    ) -> Result<ChangedWorkflow, StoreError> {
        let mut transaction = self.0.begin().await?;
        let Some(before) = locked(self.0, &mut transaction, id).await? else {
            return Ok(ChangedWorkflow::Missing);
        };
        if !is_expected(&before) {
            return Ok(ChangedWorkflow::Unexpected);
        }
        let row = sql("UPDATE workflows SET name = COALESCE($2, name),
                description = COALESCE($3, description), graph = COALESCE($4, graph),
                updated_at = $5
             WHERE id = $1
             RETURNING id, name, description, graph, user_id, created_at, updated_at")
        .text(id)
        .maybe_text(change.name.as_deref())
        .maybe_text(change.description.as_deref())
        .maybe_text(change.graph.map(|graph| graph.to_string()).as_deref())
        .time(Timestamp::now())
        .one(&mut *transaction)
        .await?;
        let changed = workflow(&row)?;
        record_version(&mut transaction, &changed, user_id).await?;
        transaction.commit().await?;
        Ok(ChangedWorkflow::Done(changed))
    }

    /// Deletes a workflow with its executions, if `is_expected` accepts it.
    pub async fn delete(
        &self,
        id: &str,
        is_expected: impl FnOnce(&Workflow) -> bool + Send,
    ) -> Result<ChangedWorkflow, StoreError> {
        let mut transaction = self.0.begin().await?;
        let Some(before) = locked(self.0, &mut transaction, id).await? else {
            return Ok(ChangedWorkflow::Missing);
        };
        if !is_expected(&before) {
            return Ok(ChangedWorkflow::Unexpected);
        }
        sql("DELETE FROM workflows WHERE id = $1").text(id).run(&mut *transaction).await?;
        transaction.commit().await?;
        Ok(ChangedWorkflow::Done(before))
    }

    /// Creates an execution, leased to `worker` for `lease`.
    pub async fn begin(
        &self,
        workflow_id: &str,
        user_id: Option<i64>,
        input: &str,
        model: Option<&str>,
        worker: &str,
        lease: Duration,
    ) -> Result<Execution, StoreError> {
        let now = Timestamp::now();
        let row =
            sql("INSERT INTO executions (id, workflow_id, user_id, status, initial_input, model,
                checkpoint, created_at, updated_at, worker, lease_ends_at)
             VALUES ($1, $2, $3, 'running', $4, $5, $6, $7, $7, $8, $9)
             RETURNING id, workflow_id, user_id, status, initial_input, model, checkpoint,
                created_at, updated_at")
            .text(&new_id())
            .text(workflow_id)
            .maybe_number(user_id)
            .text(input)
            .maybe_text(model)
            .text(&to_json(&Checkpoint::default())?)
            .time(now)
            .text(worker)
            .time(now.plus(lease))
            .one(self.0.writer())
            .await?;
        execution(&row)
    }

    pub async fn execution(&self, id: &str) -> Result<Option<Execution>, StoreError> {
        let row = sql("SELECT id, workflow_id, user_id, status, initial_input, model, checkpoint,
                created_at, updated_at
             FROM executions WHERE id = $1")
        .text(id)
        .optional(self.0.reader())
        .await?;
        row.as_ref().map(execution).transpose()
    }

    /// Returns the newest executions, optionally of one workflow or one user, and the total number.
    pub async fn executions(
        &self,
        workflow_id: Option<&str>,
        user_id: Option<i64>,
        limit: u64,
        offset: u64,
    ) -> Result<(Vec<Execution>, u64), StoreError> {
        let filter = "FROM executions WHERE (workflow_id = $1 OR $2 = 1)
             AND (user_id = $3 OR $4 = 1)";
        let with_filter = |text: String| {
            built(text)
                .text(workflow_id.unwrap_or_default())
                .number(i64::from(workflow_id.is_none()))
                .number(user_id.unwrap_or_default())
                .number(i64::from(user_id.is_none()))
        };
        let total = with_filter(format!("SELECT count(*) {filter}"));
        let total = total.one(self.0.reader()).await?.count(0)?;
        let rows = with_filter(format!(
            "SELECT id, workflow_id, user_id, status, initial_input, model, checkpoint,
                created_at, updated_at
             {filter} ORDER BY created_at DESC, id DESC LIMIT $5 OFFSET $6"
        ));
        let rows = rows.count(limit).count(offset).all(self.0.reader()).await?;
        Ok((rows.iter().map(execution).collect::<Result<_, _>>()?, total))
    }

    /// Claims an execution to resume it, unless it is completed or another worker has a valid
    /// lease. Returns true for exactly one of several concurrent callers.
    pub async fn claim(&self, id: &str, worker: &str, lease: Duration) -> Result<bool, StoreError> {
        let now = Timestamp::now();
        let claimed = sql("UPDATE executions
             SET status = 'running', worker = $2, lease_ends_at = $3, updated_at = $4
             WHERE id = $1 AND status <> 'completed'
                AND (worker IS NULL OR lease_ends_at <= $4)")
        .text(id)
        .text(worker)
        .time(now.plus(lease))
        .time(now)
        .run(self.0.writer())
        .await?;
        Ok(claimed == 1)
    }

    /// Renews the lease. Returns false if another worker has claimed the execution.
    pub async fn renew(&self, id: &str, worker: &str, lease: Duration) -> Result<bool, StoreError> {
        let renewed = sql("UPDATE executions SET lease_ends_at = $3 WHERE id = $1 AND worker = $2")
            .text(id)
            .text(worker)
            .time(Timestamp::now().plus(lease))
            .run(self.0.writer())
            .await?;
        Ok(renewed == 1)
    }

    /// Saves the checkpoint. Returns false if another worker has claimed the execution. A status
    /// other than running releases the lease.
    pub async fn save(
        &self,
        id: &str,
        worker: &str,
        status: ExecutionStatus,
        checkpoint: &Checkpoint,
    ) -> Result<bool, StoreError> {
        let holder = (status == ExecutionStatus::Running).then_some(worker);
        let saved = sql("UPDATE executions
             SET status = $3, checkpoint = $4, updated_at = $5, worker = $6
             WHERE id = $1 AND worker = $2")
        .text(id)
        .text(worker)
        .text(status.as_str())
        .text(&to_json(checkpoint)?)
        .time(Timestamp::now())
        .maybe_text(holder)
        .run(self.0.writer())
        .await?;
        Ok(saved == 1)
    }

    /// Deletes executions that were not updated since a time, in any state.
    pub async fn sweep_executions(&self, before: Timestamp) -> Result<u64, StoreError> {
        sql("DELETE FROM executions
             WHERE updated_at < $1 AND (worker IS NULL OR lease_ends_at < $1)")
        .time(before)
        .run(self.0.writer())
        .await
    }
}
