//! The history of runs: skills, tools, workflows, chats and MCP calls.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{
    Database, StoreError, Timestamp,
    sql::{Row, SqlBuilder, Value as SqlValue, damaged, sql},
};

#[derive(Clone, Copy, Debug)]
pub struct Runs<'a>(pub(crate) &'a Database);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunKind {
    /// A model answered the prompt of a skill.
    Prompt,
    /// A tool of a skill.
    Tool,
    Workflow,
    /// An answer in a chat.
    Chat,
    /// A tool call by an agent over MCP.
    Mcp,
}

impl RunKind {
    pub const ALL: [Self; 5] = [Self::Prompt, Self::Tool, Self::Workflow, Self::Chat, Self::Mcp];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Prompt => "prompt",
            Self::Tool => "tool",
            Self::Workflow => "workflow",
            Self::Chat => "chat",
            Self::Mcp => "mcp",
        }
    }

    /// Parses the name of a kind.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunState {
    Running,
    Ok,
    Failed,
    /// Stopped early by its user, because the client disconnected, or because the server stopped.
    Stopped,
}

impl RunState {
    pub const ALL: [Self; 4] = [Self::Running, Self::Ok, Self::Failed, Self::Stopped];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Ok => "ok",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
        }
    }

    /// Parses the name of a state.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == word)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// A UUID.
    pub id: String,
    /// The user who started it.
    pub user_id: i64,
    pub kind: RunKind,
    /// The name of the skill or workflow, or the start of the message.
    pub name: String,
    /// The skill, the id of the workflow, or the id of the session.
    pub target: String,
    pub started_at: Timestamp,
    pub inputs: Value,
    /// The result; [`RunEnd::running`] while it runs.
    pub end: RunEnd,
}

/// The result of a run, or its progress.
#[derive(Clone, Debug, PartialEq)]
pub struct RunEnd {
    pub state: RunState,
    pub ended_at: Option<Timestamp>,
    /// The last model that was used, as `provider:model`.
    pub model: Option<String>,
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// Input and output tokens by `provider:model`.
    pub model_tokens: BTreeMap<String, [u64; 2]>,
    /// The finish reason of the last model response.
    pub finish_reason: Option<String>,
    /// The error message.
    pub error: Option<String>,
    pub output: Option<String>,
    /// The events: a JSON array.
    pub events: Value,
}

impl RunEnd {
    /// The result of a run that has just started.
    pub fn running() -> Self {
        Self {
            state: RunState::Running,
            ended_at: None,
            model: None,
            input_tokens: 0,
            output_tokens: 0,
            model_tokens: BTreeMap::new(),
            finish_reason: None,
            error: None,
            output: None,
            events: Value::Array(Vec::new()),
        }
    }
}

#[derive(Clone, Debug, Default)]
pub struct RunFilter {
    /// Only runs of this user.
    pub user_id: Option<i64>,
    pub kind: Option<RunKind>,
    pub state: Option<RunState>,
    /// Only runs of a skill or workflow with this name or id.
    pub target: Option<String>,
    /// Text in the name or error, ignoring case.
    pub text: Option<String>,
    pub since: Option<Timestamp>,
    /// Only runs that started before this one.
    pub before: Option<String>,
    /// Kinds that are left out.
    pub hidden_kinds: Vec<RunKind>,
}

/// The columns of a run without its events, which are large.
const COLUMNS: &str = "id, user_id, kind, name, target, state, started_at, ended_at, model,
    input_tokens, output_tokens, finish_reason, error, inputs, output, model_tokens";

/// [`COLUMNS`] without the large ones.
const LIST_COLUMNS: &str = "id, user_id, kind, name, target, state, started_at, ended_at, model,
    input_tokens, output_tokens, finish_reason, error, 'null', CAST(NULL AS TEXT),
    model_tokens";

fn run(row: &Row) -> Result<Run, StoreError> {
    let (kind, state) = (row.text(2)?, row.text(5)?);
    Ok(Run {
        id: row.text(0)?,
        user_id: row.number(1)?,
        kind: RunKind::parse(&kind).ok_or_else(|| damaged("the kind of a run", &kind))?,
        name: row.text(3)?,
        target: row.text(4)?,
        started_at: row.time(6)?,
        inputs: json(&row.text(13)?),
        end: RunEnd {
            state: RunState::parse(&state).ok_or_else(|| damaged("the state of a run", &state))?,
            ended_at: row.maybe_time(7)?,
            model: row.maybe_text(8)?,
            input_tokens: row.count(9)?,
            output_tokens: row.count(10)?,
            finish_reason: row.maybe_text(11)?,
            error: row.maybe_text(12)?,
            output: row.maybe_text(14)?,
            model_tokens: serde_json::from_str(&row.text(15)?).unwrap_or_default(),
            events: Value::Array(Vec::new()),
        },
    })
}

/// Parses a stored value. Invalid JSON becomes null, so that the rest of the record can be shown.
fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}

fn model_tokens(end: &RunEnd) -> String {
    serde_json::to_string(&end.model_tokens).unwrap_or_else(|_| "{}".to_owned())
}

impl Runs<'_> {
    /// Stores a new run. A resumed workflow execution replaces its earlier record.
    pub async fn add(&self, run: &Run) -> Result<(), StoreError> {
        let end = &run.end;
        sql("INSERT INTO runs (id, user_id, kind, name, target, state, started_at, ended_at,
                seen_at, model, input_tokens, output_tokens, finish_reason, error, inputs, output,
                events, model_tokens)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17,
                $18)
             ON CONFLICT (id) DO UPDATE SET state = excluded.state,
                started_at = excluded.started_at, ended_at = excluded.ended_at,
                seen_at = excluded.seen_at, model = excluded.model,
                input_tokens = excluded.input_tokens, output_tokens = excluded.output_tokens,
                finish_reason = excluded.finish_reason, error = excluded.error,
                output = excluded.output, events = excluded.events,
                model_tokens = excluded.model_tokens")
        .text(&run.id)
        .number(run.user_id)
        .text(run.kind.as_str())
        .text(&run.name)
        .text(&run.target)
        .text(end.state.as_str())
        .time(run.started_at)
        .maybe_time(end.ended_at)
        .time(Timestamp::now())
        .maybe_text(end.model.as_deref())
        .count(end.input_tokens)
        .count(end.output_tokens)
        .maybe_text(end.finish_reason.as_deref())
        .maybe_text(end.error.as_deref())
        .text(&run.inputs.to_string())
        .maybe_text(end.output.as_deref())
        .text(&end.events.to_string())
        .text(&model_tokens(end))
        .run(self.0.writer())
        .await
        .map(drop)
    }

    /// Stores the result of a run. Returns false if the run was deleted.
    pub async fn finish(&self, id: &str, end: &RunEnd) -> Result<bool, StoreError> {
        let changed = sql("UPDATE runs SET state = $2, ended_at = $3, model = $4,
                input_tokens = $5, output_tokens = $6, finish_reason = $7, error = $8,
                output = $9, events = $10, model_tokens = $11
             WHERE id = $1")
        .text(id)
        .text(end.state.as_str())
        .maybe_time(end.ended_at)
        .maybe_text(end.model.as_deref())
        .count(end.input_tokens)
        .count(end.output_tokens)
        .maybe_text(end.finish_reason.as_deref())
        .maybe_text(end.error.as_deref())
        .maybe_text(end.output.as_deref())
        .text(&end.events.to_string())
        .text(&model_tokens(end))
        .run(self.0.writer())
        .await?;
        Ok(changed == 1)
    }

    /// Returns a run with its events.
    pub async fn get(&self, id: &str) -> Result<Option<Run>, StoreError> {
        let row = crate::sql::built(format!("SELECT {COLUMNS}, events FROM runs WHERE id = $1"));
        let row = row.text(id).optional(self.0.reader()).await?;
        let Some(row) = row else { return Ok(None) };
        let mut found = run(&row)?;
        found.end.events = json(&row.text(16)?);
        Ok(Some(found))
    }

    /// Returns the newest runs without their inputs, outputs and events, and the total number.
    pub async fn list(
        &self,
        filter: &RunFilter,
        limit: u64,
        offset: u64,
    ) -> Result<(Vec<Run>, u64), StoreError> {
        let mut count = SqlBuilder::new("SELECT count(*) FROM runs WHERE 1 = 1".to_owned());
        filter.add_to(&mut count);
        let count = count.into_statement().one(self.0.reader()).await?.count(0)?;
        let mut list = SqlBuilder::new(format!("SELECT {LIST_COLUMNS} FROM runs WHERE 1 = 1"));
        filter.add_to(&mut list);
        if let Some(id) = &filter.before {
            // Ids are UUIDs that sort by time.
            list.and("id <", SqlValue::Text(id.clone()));
        }
        let number = |value: u64| SqlValue::Number(i64::try_from(value).unwrap_or(i64::MAX));
        let (limit, offset) = (list.place(number(limit)), list.place(number(offset)));
        list.push(&format!(" ORDER BY id DESC LIMIT {limit} OFFSET {offset}"));
        let rows = list.into_statement().all(self.0.reader()).await?;
        Ok((rows.iter().map(run).collect::<Result<_, _>>()?, count))
    }

    /// Deletes a run. Returns false if it does not exist.
    pub async fn delete(&self, id: &str) -> Result<bool, StoreError> {
        let deleted = sql("DELETE FROM runs WHERE id = $1").text(id).run(self.0.writer()).await?;
        Ok(deleted == 1)
    }

    /// Records that runs of this process are still running.
    pub async fn mark_seen(&self, ids: &[String]) -> Result<(), StoreError> {
        for id in ids {
            sql("UPDATE runs SET seen_at = $2 WHERE id = $1")
                .text(id)
                .time(Timestamp::now())
                .run(self.0.writer())
                .await?;
        }
        Ok(())
    }

    /// Marks runs as stopped whose process has not reported since a time. Returns their number.
    pub async fn stop_lost(&self, unseen_since: Timestamp) -> Result<u64, StoreError> {
        sql("UPDATE runs SET state = 'stopped', ended_at = seen_at,
                error = 'The server stopped during the run'
             WHERE state = 'running' AND seen_at < $1")
        .time(unseen_since)
        .run(self.0.writer())
        .await
    }

    /// Deletes runs that started before a time, and the oldest runs of users with more than `max`.
    /// Returns their number.
    pub async fn sweep(&self, before: Timestamp, max: i64) -> Result<u64, StoreError> {
        let old = sql("DELETE FROM runs WHERE started_at < $1 AND state <> 'running'")
            .time(before)
            .run(self.0.writer())
            .await?;
        let many = sql("DELETE FROM runs WHERE state <> 'running' AND id IN (
                SELECT id FROM (
                    SELECT id, row_number() OVER (PARTITION BY user_id ORDER BY id DESC) AS place
                    FROM runs) AS placed
                WHERE place > $1)")
        .number(max)
        .run(self.0.writer())
        .await?;
        Ok(old + many)
    }
}

impl RunFilter {
    fn add_to(&self, statement: &mut SqlBuilder) {
        let text = |value: &str| SqlValue::Text(value.to_owned());
        if let Some(user) = self.user_id {
            statement.and("user_id =", SqlValue::Number(user));
        }
        if let Some(kind) = self.kind {
            statement.and("kind =", text(kind.as_str()));
        }
        for kind in &self.hidden_kinds {
            statement.and("kind <>", text(kind.as_str()));
        }
        if let Some(state) = self.state {
            statement.and("state =", text(state.as_str()));
        }
        if let Some(since) = self.since {
            statement.and("started_at >=", SqlValue::Number(since.micros()));
        }
        if let Some(target) = &self.target {
            let (name, id) = (statement.place(text(target)), statement.place(text(target)));
            statement.push(&format!(" AND (name = {name} OR target = {id})"));
        }
        if let Some(part) = &self.text {
            let escaped = part.to_lowercase().replace('\\', "\\\\").replace('%', "\\%");
            let pattern = format!("%{}%", escaped.replace('_', "\\_"));
            let (name, error) = (statement.place(text(&pattern)), statement.place(text(&pattern)));
            statement.push(&format!(
                " AND (lower(name) LIKE {name} ESCAPE '\\' OR \
                 lower(coalesce(error, '')) LIKE {error} ESCAPE '\\')"
            ));
        }
    }
}
