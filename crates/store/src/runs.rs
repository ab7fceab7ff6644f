//! The history of everything that ran.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{
    Database, StoreError, Timestamp,
    sql::{Row, SqlBuilder, Value as SqlValue, damaged, sql},
};

/// The runs of a database.
#[derive(Clone, Copy, Debug)]
pub struct Runs<'a>(pub(crate) &'a Database);

/// What ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunKind {
    /// A skill whose prompt a model answers.
    Prompt,
    /// A tool of a skill.
    Tool,
    Workflow,
    /// An answer in a conversation.
    Chat,
    /// A call of an agent over MCP.
    Mcp,
}

impl RunKind {
    /// All kinds.
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

    /// The kind with a name.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }
}

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunState {
    Running,
    Ok,
    Failed,
    /// Ended early: by its user, because its client left, or because its server stopped.
    Stopped,
}

impl RunState {
    /// All states.
    pub const ALL: [Self; 4] = [Self::Running, Self::Ok, Self::Failed, Self::Stopped];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Ok => "ok",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
        }
    }

    /// The state with a name.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == word)
    }
}

/// One run.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// A UUID.
    pub id: String,
    /// The user who started it.
    pub user_id: i64,
    pub kind: RunKind,
    /// The name of the skill, the workflow, or the beginning of the message.
    pub name: String,
    /// The skill, the id of the workflow, or the conversation.
    pub target: String,
    pub started_at: Timestamp,
    /// What it was given.
    pub inputs: Value,
    /// How it ended; running if there is no end yet.
    pub end: RunEnd,
}

/// How a run ended, or how far it is.
#[derive(Clone, Debug, PartialEq)]
pub struct RunEnd {
    pub state: RunState,
    pub ended_at: Option<Timestamp>,
    /// `provider:model`, the last one that was asked.
    pub model: Option<String>,
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// Input and output tokens by `provider:model`.
    pub model_tokens: BTreeMap<String, [u64; 2]>,
    /// Why the last answer of a model ended.
    pub finish_reason: Option<String>,
    /// What failed.
    pub error: Option<String>,
    pub output: Option<String>,
    /// The events: a JSON array.
    pub events: Value,
}

impl RunEnd {
    /// A run that has just started.
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

/// Which runs are listed.
#[derive(Clone, Debug, Default)]
pub struct RunFilter {
    /// Those of a user; `None` for those of all.
    pub user_id: Option<i64>,
    pub kind: Option<RunKind>,
    pub state: Option<RunState>,
    /// Those of a skill or workflow with this name or id.
    pub target: Option<String>,
    /// A part of the name or of the error, in any case.
    pub text: Option<String>,
    pub since: Option<Timestamp>,
    /// Those that started before this run.
    pub before: Option<String>,
    /// Kinds that are left out.
    pub hidden_kinds: Vec<RunKind>,
}

/// The columns of a run without its events, which are large.
const COLUMNS: &str = "id, user_id, kind, name, target, state, started_at, ended_at, model,
    input_tokens, output_tokens, finish_reason, error, inputs, output, model_tokens";

/// As [`COLUMNS`], without the large ones.
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

/// A record is for people: one part that cannot be read does not make the rest unreadable.
fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}

fn model_tokens(end: &RunEnd) -> String {
    serde_json::to_string(&end.model_tokens).unwrap_or_else(|_| "{}".to_owned())
}

impl Runs<'_> {
    /// Stores a run. An execution of a workflow that is resumed replaces its earlier record.
    pub async fn add(&self, run: &Run) -> Result<(), StoreError> {
        let end = &run.end;
        sql("INSERT INTO runs (id, user_id, kind, name, target, state, started_at, ended_at,
                seen_at, model, input_tokens, output_tokens, finish_reason, error, inputs, output,
                events, model_tokens)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17,
                $18)
             ON CONFLICT (id) DO UPDATE SET state = excluded.state,
                started_at = excluded.started_at, ended_at = excluded.ended_at,
                seen_at = excluded.seen_at, error = excluded.error, output = excluded.output")
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

    /// Stores how a run ended; false if it was deleted.
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

    /// A run with its events.
    pub async fn get(&self, id: &str) -> Result<Option<Run>, StoreError> {
        let row = crate::sql::built(format!("SELECT {COLUMNS}, events FROM runs WHERE id = $1"));
        let row = row.text(id).optional(self.0.reader()).await?;
        let Some(row) = row else { return Ok(None) };
        let mut found = run(&row)?;
        found.end.events = json(&row.text(16)?);
        Ok(Some(found))
    }

    /// The newest runs without their inputs, outputs and events, and how many there are in all.
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
            // Ids are ordered by time.
            list.and("id <", SqlValue::Text(id.clone()));
        }
        let number = |value: u64| SqlValue::Number(i64::try_from(value).unwrap_or(i64::MAX));
        let (limit, offset) = (list.place(number(limit)), list.place(number(offset)));
        list.push(&format!(" ORDER BY id DESC LIMIT {limit} OFFSET {offset}"));
        let rows = list.into_statement().all(self.0.reader()).await?;
        Ok((rows.iter().map(run).collect::<Result<_, _>>()?, count))
    }

    /// Deletes a run; false if there is none.
    pub async fn delete(&self, id: &str) -> Result<bool, StoreError> {
        let deleted = sql("DELETE FROM runs WHERE id = $1").text(id).run(self.0.writer()).await?;
        Ok(deleted == 1)
    }

    /// Notes that runs of this process go on.
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

    /// Ends runs whose process was not seen since a time. Returns how many there were.
    pub async fn stop_lost(&self, unseen_since: Timestamp) -> Result<u64, StoreError> {
        sql("UPDATE runs SET state = 'stopped', ended_at = seen_at,
                error = 'The server stopped during the run'
             WHERE state = 'running' AND seen_at < $1")
        .time(unseen_since)
        .run(self.0.writer())
        .await
    }

    /// Deletes runs that started before a time, and the oldest of users who have more than `max`.
    /// Returns how many there were.
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
