//! Workflows and their executions.

use std::{collections::BTreeMap, time::Duration};

use serde_json::{Map, Value, json};

use crate::{
    Database, StoreError, Timestamp,
    sql::{Row, built, damaged, new_id, sql},
};

/// The workflows of a database.
#[derive(Clone, Copy, Debug)]
pub struct Workflows<'a>(pub(crate) &'a Database);

/// A workflow.
#[derive(Clone, Debug, PartialEq)]
pub struct Workflow {
    /// A UUID.
    pub id: String,
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: Option<String>,
    /// Nodes and edges, as they were given.
    pub graph: Value,
    /// Whose it is.
    pub user_id: Option<i64>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last changed.
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

/// A workflow that is to be kept, or what of one is to be changed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NewWorkflow {
    /// Its name.
    pub name: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// Nodes and edges.
    pub graph: Option<Value>,
}

/// How far an execution is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExecutionStatus {
    /// Some process works on it, or did when it died.
    Running,
    /// Done.
    Completed,
    /// A node failed; it can be resumed.
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

/// What is needed to go on after a node.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Checkpoint {
    /// Output of each node that ran.
    pub outputs: Map<String, Value>,
    /// Variables.
    pub variables: Map<String, Value>,
    /// Nodes that ran, in order.
    pub executed_nodes: Vec<String>,
    /// Nodes that are next, in order.
    pub queue: Vec<String>,
    /// What was said to models so far: `{"role","content"}`.
    pub history: Vec<Value>,
    /// The branch that each condition chose.
    #[serde(default)]
    pub branches: BTreeMap<String, bool>,
}

/// One run of a workflow.
#[derive(Clone, Debug, PartialEq)]
pub struct Execution {
    /// A UUID.
    pub id: String,
    /// The workflow.
    pub workflow_id: String,
    /// Who runs it.
    pub user_id: Option<i64>,
    /// How far it is.
    pub status: ExecutionStatus,
    /// What it was given.
    pub initial_input: String,
    /// The model that was asked for.
    pub model: Option<String>,
    /// Where it is.
    pub checkpoint: Checkpoint,
    /// When it began.
    pub created_at: Timestamp,
    /// When it last got on.
    pub updated_at: Timestamp,
}

impl Workflows<'_> {
    /// Keeps a workflow. Its name must be given.
    pub async fn create(
        &self,
        new: NewWorkflow,
        user_id: Option<i64>,
    ) -> Result<Workflow, StoreError> {
        let name = new.name.ok_or_else(|| {
            StoreError::Setting("a workflow cannot be kept without a name".to_owned())
        })?;
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
        .one(self.0.writer())
        .await?;
        workflow(&row)
    }

    /// A workflow.
    pub async fn get(&self, id: &str) -> Result<Option<Workflow>, StoreError> {
        let row = sql("SELECT id, name, description, graph, user_id, created_at, updated_at
             FROM workflows WHERE id = $1")
        .text(id)
        .optional(self.0.reader())
        .await?;
        row.as_ref().map(workflow).transpose()
    }

    /// Those of a person and those of nobody, or all; newest first.
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

    /// How many workflows a person has.
    pub async fn count(&self, user_id: i64) -> Result<u64, StoreError> {
        let row = sql("SELECT count(*) FROM workflows WHERE user_id = $1").number(user_id);
        row.one(self.0.reader()).await?.count(0)
    }

    /// Changes what is given; `None` if there is no such workflow.
    pub async fn update(
        &self,
        id: &str,
        change: NewWorkflow,
    ) -> Result<Option<Workflow>, StoreError> {
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
        .optional(self.0.writer())
        .await?;
        row.as_ref().map(workflow).transpose()
    }

    /// Removes a workflow with its executions; false if there is none.
    pub async fn delete(&self, id: &str) -> Result<bool, StoreError> {
        let removed =
            sql("DELETE FROM workflows WHERE id = $1").text(id).run(self.0.writer()).await?;
        Ok(removed == 1)
    }

    /// Begins an execution, held by `worker` for `lease`.
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

    /// An execution.
    pub async fn execution(&self, id: &str) -> Result<Option<Execution>, StoreError> {
        let row = sql("SELECT id, workflow_id, user_id, status, initial_input, model, checkpoint,
                created_at, updated_at
             FROM executions WHERE id = $1")
        .text(id)
        .optional(self.0.reader())
        .await?;
        row.as_ref().map(execution).transpose()
    }

    /// The newest executions of a workflow, or of all, and of a person, or of all; and how many
    /// there are.
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

    /// Takes an execution to resume it: unless it is completed, or another worker holds it.
    /// True for exactly one caller.
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

    /// Renews the lease; false if another worker has it now.
    pub async fn renew(&self, id: &str, worker: &str, lease: Duration) -> Result<bool, StoreError> {
        let renewed = sql("UPDATE executions SET lease_ends_at = $3 WHERE id = $1 AND worker = $2")
            .text(id)
            .text(worker)
            .time(Timestamp::now().plus(lease))
            .run(self.0.writer())
            .await?;
        Ok(renewed == 1)
    }

    /// Keeps where an execution is; false if another worker has it now. A status other than
    /// running gives the lease back.
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

    /// Drops executions that nobody worked on since a time, however far they are.
    pub async fn sweep_executions(&self, before: Timestamp) -> Result<u64, StoreError> {
        sql("DELETE FROM executions
             WHERE updated_at < $1 AND (worker IS NULL OR lease_ends_at < $1)")
        .time(before)
        .run(self.0.writer())
        .await
    }
}
