//! Routes for authors: check and convert a text, and show what a stored skill may do.

use axum::{
    Json as JsonResponse,
    extract::State,
    http::{HeaderValue, header},
    response::{IntoResponse as _, Response},
};
use savoir_lint::{Diagnostic, Edit, Safety, Source, Utf16Text};
use savoir_skill::{
    Dialect,
    check::{self, Options, Target},
    convert::{self, FieldOutcome},
    limits::MAX_FILE_BYTES,
    read, read_as,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::docs;
use crate::{
    app::App,
    auth::{Authenticated, Json},
    body::{Members, Shape, Text},
    error::{ApiError, ApiResult},
    insight::{self, Insight},
    params::{Params, Path, Query, QueryPairs},
};

/// Maximum bytes of a file of a skill that is shown.
const MAX_SHOWN_BYTES: u64 = 1024 * 1024;

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(check))
        .routes(routes!(convert))
        .routes(routes!(dialects))
        .routes(routes!(insight))
        .routes(routes!(file))
}

/// A text to check.
#[derive(Debug, Deserialize, ToSchema)]
struct ToCheck {
    /// The whole SKILL.md.
    text: String,
    /// Also report what this agent rejects, cuts or ignores: `claude-code`, `codex` and others.
    agent: Option<String>,
    /// The dialect of the text. Default: detected.
    dialect: Option<String>,
    /// Also report matters of style.
    #[schema(required = false)]
    strict: bool,
}

impl Shape for ToCheck {
    fn read(members: &mut Members) -> Self {
        Self {
            text: members.text("text", Text::ANY),
            agent: members.optional_text("agent", Text::ANY),
            dialect: members.optional_text("dialect", Text::ANY),
            strict: members.optional_boolean("strict"),
        }
    }
}

/// The findings in a text. Positions count UTF-16 code units from the start of the text.
#[derive(Debug, Serialize, ToSchema)]
struct Checked {
    dialect: &'static str,
    name: String,
    diagnostics: Vec<Finding>,
}

/// A problem at a position.
#[derive(Debug, Serialize, ToSchema)]
struct Finding {
    rule: &'static str,
    /// `error` or `warning`
    severity: String,
    message: String,
    hint: Option<String>,
    /// The frontmatter field, if the finding is about one.
    field: Option<String>,
    start: usize,
    end: usize,
    /// The line number, from 1.
    line: usize,
    /// The column in characters, from 1.
    column: usize,
    fixes: Vec<Fix>,
}

/// Edits that together fix a problem.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = FindingFix)]
struct Fix {
    title: String,
    /// Whether the fix keeps the meaning of the text.
    safe: bool,
    edits: Vec<TextEdit>,
}

/// Replaces a part of the text.
#[derive(Debug, Serialize, ToSchema)]
struct TextEdit {
    start: usize,
    end: usize,
    text: String,
}

impl Finding {
    fn new(found: Diagnostic, source: &Source) -> Self {
        let text = Utf16Text::new(source.text());
        let position = source.position(found.span.start);
        let edit = |edit: Edit| TextEdit {
            start: text.offset(edit.span.start),
            end: text.offset(edit.span.end),
            text: edit.text,
        };
        let title = found.help.clone().unwrap_or_else(|| "fix it".to_owned());
        let fixes = found.fix.into_iter().map(|fix| Fix {
            title: title.clone(),
            safe: fix.safety == Safety::Safe,
            edits: fix.edits.into_iter().map(edit).collect(),
        });
        Self {
            fixes: fixes.collect(),
            rule: found.code,
            severity: found.severity.to_string(),
            message: found.message,
            hint: found.help,
            field: found.field,
            start: text.offset(found.span.start),
            end: text.offset(found.span.end),
            line: position.line,
            column: position.column,
        }
    }
}

/// Check a SKILL.md without storing it.
#[utoipa::path(
    post, path = "/check", tag = "skills", security(("bearer" = [])), request_body = ToCheck,
    responses(
        (status = 200, body = Checked), docs::BadRequestField, docs::Unauthorized, docs::TooLarge,
        docs::InvalidBody, docs::TooManyRequests
    )
)]
async fn check(authenticated: Authenticated<Json<ToCheck>>) -> ApiResult<JsonResponse<Checked>> {
    let Json(wanted) = authenticated.body;
    let target = wanted.agent.as_deref().map(str::parse::<Target>).transpose();
    let options = Options {
        dialect: dialect(wanted.dialect.as_deref(), "dialect")?,
        targets: target.map_err(|error| bad("agent", &error))?.into_iter().collect(),
        strict: wanted.strict,
        ..Options::default()
    };
    let source = source(wanted.text)?;
    let checked = on_a_thread(move || {
        let checked = check::check(source, None, &options);
        let source = checked.reading.document.source();
        let findings = checked.diagnostics.iter().cloned();
        Checked {
            dialect: checked.reading.skill.dialect.id(),
            name: checked.reading.skill.name.clone(),
            diagnostics: findings.map(|found| Finding::new(found, source)).collect(),
        }
    });
    checked.await.map(JsonResponse)
}

/// A text to convert.
#[derive(Debug, Deserialize, ToSchema)]
struct ToConvert {
    /// The whole SKILL.md.
    text: String,
    /// The dialect of the result.
    to: String,
    /// The dialect of the text. Default: detected.
    dialect: Option<String>,
}

impl Shape for ToConvert {
    fn read(members: &mut Members) -> Self {
        Self {
            text: members.text("text", Text::ANY),
            to: members.text("to", Text::ANY),
            dialect: members.optional_text("dialect", Text::ANY),
        }
    }
}

/// A converted text.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ConvertedSkill)]
struct Converted {
    text: String,
    /// Fields that the other dialect cannot express, or only approximately.
    lost: Vec<LostField>,
    /// The outcome for each field.
    fields: Vec<FieldChange>,
    /// Other files that the skill needs in the other dialect.
    files: Vec<ConvertedFile>,
}

/// A field whose meaning is lost or changed in the result.
#[derive(Debug, Serialize, ToSchema)]
struct LostField {
    field: String,
    message: String,
}

/// The outcome for one field.
#[derive(Debug, Serialize, ToSchema)]
struct FieldChange {
    field: String,
    from: Option<String>,
    to: Option<String>,
    /// `kept`, `moved`, `approximated` or `dropped`
    #[schema(value_type = String)]
    how: FieldOutcome,
    why: String,
}

/// Another file of the result.
#[derive(Debug, Serialize, ToSchema)]
struct ConvertedFile {
    path: String,
    text: String,
}

/// Convert a SKILL.md to another dialect without storing it.
#[utoipa::path(
    post, path = "/convert", tag = "skills", security(("bearer" = [])), request_body = ToConvert,
    responses(
        (status = 200, body = Converted), docs::BadRequestField, docs::Unauthorized, docs::TooLarge,
        docs::InvalidBody, docs::TooManyRequests
    )
)]
async fn convert(
    authenticated: Authenticated<Json<ToConvert>>,
) -> ApiResult<JsonResponse<Converted>> {
    let Json(wanted) = authenticated.body;
    let from = dialect(wanted.dialect.as_deref(), "dialect")?;
    let to: Dialect = wanted.to.parse().map_err(|error| bad("to", &error))?;
    let source = source(wanted.text)?;
    let converted = on_a_thread(move || {
        let reading = match from {
            Some(dialect) => read_as(source, dialect, None),
            None => read(source, None),
        };
        convert::convert(&reading, None, to)
    });
    let conversion = converted.await?.map_err(|error| {
        let help = error.help().unwrap_or("POST /api/v1/check lists the problems of the text");
        bad("text", &error).with_hint(help)
    })?;
    let lossy = |how| matches!(how, FieldOutcome::Approximated | FieldOutcome::Dropped);
    let lost = conversion.report.iter().filter(|field| lossy(field.how));
    let lost = lost.map(|field| LostField {
        field: field.field.clone(),
        message: match field.how {
            FieldOutcome::Dropped => format!("left out: {}", field.why),
            _ => field.why.clone(),
        },
    });
    let lost = lost.collect();
    let fields = conversion.report.into_iter().map(|field| FieldChange {
        field: field.field,
        from: field.from,
        to: field.to,
        how: field.how,
        why: field.why,
    });
    let mut files = conversion.files.into_iter();
    Ok(JsonResponse(Converted {
        text: files.next().map(|file| file.text).unwrap_or_default(),
        lost,
        fields: fields.collect(),
        files: files.map(|file| ConvertedFile { path: file.path, text: file.text }).collect(),
    }))
}

#[derive(Debug, Serialize, ToSchema)]
struct DialectList {
    dialects: Vec<DialectItem>,
}

/// A format of SKILL.md.
#[derive(Debug, Serialize, ToSchema)]
struct DialectItem {
    id: &'static str,
    label: &'static str,
    fields: Vec<DialectField>,
    /// The JSON Schema of the frontmatter.
    schema: Value,
}

/// A field of the frontmatter.
#[derive(Debug, Serialize, ToSchema)]
struct DialectField {
    name: String,
    /// The type in the JSON Schema; null if there are several.
    #[serde(rename = "type")]
    kind: Option<String>,
    required: bool,
    description: Option<String>,
    /// The allowed values, if there is a fixed list.
    choices: Option<Vec<Value>>,
}

impl DialectItem {
    fn new(dialect: Dialect) -> Self {
        let schema = dialect.schema();
        let records = schema["anyOf"].as_array().cloned().unwrap_or_else(|| vec![schema.clone()]);
        let mut fields: Vec<DialectField> = Vec::new();
        for record in &records {
            let required = record["required"].as_array().cloned().unwrap_or_default();
            for (name, field) in record["properties"].as_object().into_iter().flatten() {
                if fields.iter().any(|known| known.name == *name) {
                    continue;
                }
                fields.push(DialectField {
                    name: name.clone(),
                    kind: field["type"].as_str().map(str::to_owned),
                    required: records.len() == 1 && required.iter().any(|key| key == name),
                    description: field["description"].as_str().map(str::to_owned),
                    choices: field["enum"].as_array().cloned(),
                });
            }
        }
        Self { id: dialect.id(), label: dialect.title(), fields, schema }
    }
}

/// List the dialects with their fields.
#[utoipa::path(
    get, path = "/dialects", tag = "skills", security(("bearer" = [])),
    responses((status = 200, body = DialectList), docs::Unauthorized, docs::TooManyRequests)
)]
async fn dialects(_: Authenticated) -> JsonResponse<DialectList> {
    let dialects = Dialect::ALL.into_iter().map(DialectItem::new).collect();
    JsonResponse(DialectList { dialects })
}

/// Show what a skill may do, what a scan found in it, who reads it, what it costs and where it comes
/// from.
#[utoipa::path(
    get, path = "/skills/{name}/insight", tag = "skills", security(("bearer" = [])),
    params(("name" = String, Path, description = "The skill")),
    responses(
        (status = 200, body = Insight), docs::BadRequestField, docs::Unauthorized, docs::NotFoundField,
        docs::TooManyRequests
    )
)]
async fn insight(
    State(app): State<App>,
    Path(name): Path<String>,
    authenticated: Authenticated,
) -> ApiResult<JsonResponse<Insight>> {
    let kept = app.skills.get(&authenticated.caller, &name).await?;
    let writer = app.skills.skill_writer();
    let files = writer.files().resources(&kept.file.key).await?;
    let resources = writer.resources(&kept.file.key).await?;
    let facts = app.database.skill_facts().get(&kept.file.key).await?;
    let facts = kept.facts(facts.as_ref());
    let can_run_tools = app.config.skill_tools.is_some();
    let describe = move || insight::describe(&kept, &facts, files, &resources, can_run_tools);
    on_a_thread(describe).await.map(JsonResponse)
}

#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
struct FileQuery {
    /// The path in the folder of the skill.
    #[param(min_length = 1)]
    path: String,
}

impl Params for FileQuery {
    fn read(pairs: &mut QueryPairs) -> Self {
        Self { path: pairs.text("path") }
    }
}

/// Show a file of a skill as plain text.
#[utoipa::path(
    get, path = "/skills/{name}/file", tag = "skills", security(("bearer" = [])),
    params(("name" = String, Path, description = "The skill"), FileQuery),
    responses(
        (status = 200, description = "The file", body = String, content_type = "text/plain"),
        docs::BadRequestField, docs::Unauthorized, docs::NotFoundField, docs::TooManyRequests
    )
)]
async fn file(
    State(app): State<App>,
    Path(name): Path<String>,
    authenticated: Authenticated<Query<FileQuery>>,
) -> ApiResult<Response> {
    let Query(FileQuery { path }) = authenticated.body;
    let kept = app.skills.get(&authenticated.caller, &name).await?;
    let missing = || ApiError::not_found(format!("Skill '{name}' has no file '{path}'"));
    let bytes = if path == "SKILL.md" {
        kept.file.text.as_bytes().to_vec().into()
    } else {
        let files = app.skills.skill_writer().files();
        let found = files.resource(&kept.file.key, &path, MAX_SHOWN_BYTES).await?;
        found.ok_or_else(missing)?.bytes
    };
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8")),
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("sandbox; default-src 'none'")),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    ];
    Ok((headers, bytes).into_response())
}

fn dialect(word: Option<&str>, field: &str) -> ApiResult<Option<Dialect>> {
    word.map(str::parse).transpose().map_err(|error| bad(field, &error))
}

fn source(text: String) -> ApiResult<Source> {
    if text.len() > MAX_FILE_BYTES {
        return Err(ApiError::too_large(MAX_FILE_BYTES));
    }
    Ok(Source::new(text))
}

fn bad(field: &str, error: &dyn std::fmt::Display) -> ApiError {
    ApiError::field(axum::http::StatusCode::BAD_REQUEST, field, error.to_string())
}

/// Runs slow work on a blocking thread, so that other requests do not wait for it.
async fn on_a_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> ApiResult<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| ApiError::internal("Internal server error", &error))
}
