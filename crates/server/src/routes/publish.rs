//! Published workflows: a page with a form that runs a workflow, for anyone who has its link.

use std::time::Duration;

use axum::{Json as JsonResponse, extract::State, http::StatusCode, response::Response};
use savoir_flow::{
    event::Emitter,
    workflow::{self, Checkpoint, Graph, NoJournal, WorkflowHost, WorkflowOutcome, WorkflowRun},
};
use savoir_store::{User, Workflow};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};
use uuid::Uuid;

use super::{
    docs,
    settings::{Flag, is_flag_on},
};
use crate::{
    app::App,
    auth::{Anonymous, Authenticated, Caller, Json, Raw, count_request, token_digest},
    body::{self, Members, Shape, Text},
    error::{ApiError, ApiResult},
    executions,
    keys::Link,
    limits::MAX_JSON_BYTES,
    pages::{allow_framing, escape, page},
    params::Path,
};

/// Maximum time of a run by an anonymous visitor.
const RUN_TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum characters of the input of an anonymous visitor.
const MAX_INPUT_CHARS: usize = 10_000;

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(publish)).routes(routes!(show, submit))
}

/// A workflow to publish.
#[derive(Debug, ToSchema)]
struct ToPublish {
    #[schema(min_length = 1)]
    workflow_id: String,
}

impl Shape for ToPublish {
    fn read(members: &mut Members) -> Self {
        Self { workflow_id: members.text("workflow_id", Text::SOME) }
    }
}

/// The address of the page.
#[derive(Debug, Serialize, ToSchema)]
struct Published {
    url: String,
    token: String,
    expires_at: String,
}

/// Publish a workflow: anyone with the link can run it.
///
/// It runs as the user who published it. The link is valid for seven days, as long as the workflow
/// exists and the flag `ENABLE_PUBLIC_EMBED` is on.
#[utoipa::path(
    post, path = "/publish/embed", tag = "publish", security(("bearer" = [])),
    request_body = ToPublish,
    responses(
        (status = 200, body = Published), docs::Unauthorized, docs::Forbidden, docs::NotFound,
        docs::TooLarge, docs::InvalidBody, docs::TooManyRequests
    )
)]
async fn publish(
    State(app): State<App>,
    authenticated: Authenticated<Json<ToPublish>>,
) -> ApiResult<JsonResponse<Published>> {
    let Authenticated { caller, body: Json(ToPublish { workflow_id }) } = authenticated;
    must_be_on(&app).await?;
    let workflow = app.database.workflows().get(&workflow_id).await?;
    let workflow = workflow.filter(|workflow| may_publish(&caller.user, workflow));
    let missing = || ApiError::not_found(format!("Workflow {workflow_id} not found"));
    let link = Link::new(&workflow.ok_or_else(missing)?.id, caller.user.id);
    let token = app.keys.sign_link(&app.database, &link).await?;
    Ok(JsonResponse(Published {
        url: format!("{}/api/v1/publish/embed/{token}", app.config.public_url),
        token,
        expires_at: link.expires_at().to_string(),
    }))
}

/// Show the form of a published workflow without running it.
#[utoipa::path(
    get, path = "/publish/embed/{token}", tag = "publish",
    params(("token" = String, Path, description = "The token of the link")),
    responses(
        (status = 200, description = "A page", body = String, content_type = "text/html"),
        docs::Forbidden, docs::TooManyRequests
    )
)]
async fn show(
    State(app): State<App>,
    Path(token): Path<String>,
    _: Anonymous<()>,
) -> ApiResult<Response> {
    let (workflow, _) = find(&app, &token).await?;
    Ok(form(StatusCode::OK, &workflow, &token, "", ""))
}

/// Run a published workflow with the values of the form.
#[utoipa::path(
    post, path = "/publish/embed/{token}", tag = "publish",
    params(("token" = String, Path, description = "The token of the link")),
    request_body(
        content = Option<String>, content_type = "application/x-www-form-urlencoded",
        description = "`input`, up to 10000 characters"
    ),
    responses(
        (status = 200, description = "A page with the output", body = String,
         content_type = "text/html"),
        (status = 502, description = "The workflow failed", body = String,
         content_type = "text/html"),
        docs::BadRequest, docs::Forbidden, docs::TooLarge, docs::TooManyRequests
    )
)]
async fn submit(
    State(app): State<App>,
    Path(token): Path<String>,
    anonymous: Anonymous<Raw>,
) -> ApiResult<Response> {
    let Anonymous { address, body: Raw(request), .. } = anonymous;
    let bytes = body::bytes(request, MAX_JSON_BYTES).await?;
    let (workflow, user) = find(&app, &token).await?;
    let input = url::form_urlencoded::parse(&bytes).find(|(name, _)| name == "input");
    let input = input.map(|(_, value)| value.into_owned()).unwrap_or_default();
    if input.chars().count() > MAX_INPUT_CHARS {
        return Err(ApiError::bad_request("Input too large"));
    }
    // The publisher pays, so both each visitor and all visitors together are limited.
    let limits = app.config.limits;
    count_request(&app, &format!("publish {address}"), limits.runs, None).await?;
    count_request(&app, &format!("publish {}", token_digest(&token)), limits.routes, None).await?;
    let (status, answer) = match run(&app, &workflow, user, &input).await? {
        Ok(output) => (StatusCode::OK, format!("<pre class=\"text\">{}</pre>", escape(&output))),
        Err(why) => {
            tracing::warn!(workflow = workflow.id, why, "a published workflow failed");
            let text = "<p class=\"error\" role=\"alert\">It did not work. Try again later.</p>";
            (StatusCode::BAD_GATEWAY, text.to_owned())
        }
    };
    Ok(form(status, &workflow, &token, &input, &answer))
}

async fn must_be_on(app: &App) -> ApiResult<()> {
    if is_flag_on(app, Flag::PublicEmbed).await? {
        Ok(())
    } else {
        Err(ApiError::forbidden("Public embed is disabled"))
    }
}

/// Whether a user may publish a workflow: the owner, or an administrator if there is no owner.
fn may_publish(user: &User, workflow: &Workflow) -> bool {
    workflow.user_id.map_or_else(|| user.is_admin(), |owner| owner == user.id)
}

/// The workflow of a link and its publisher, as long as the publisher may still publish it.
async fn find(app: &App, token: &str) -> ApiResult<(Workflow, User)> {
    must_be_on(app).await?;
    let invalid = || ApiError::forbidden("Invalid or expired token");
    let link = app.keys.read_link(&app.database, token).await?.ok_or_else(invalid)?;
    let user = app.database.accounts().by_id(link.user).await?;
    let user = user.filter(|user| user.active).ok_or_else(invalid)?;
    let workflow = app.database.workflows().get(link.workflow()).await?;
    let workflow = workflow.filter(|workflow| may_publish(&user, workflow));
    Ok((workflow.ok_or_else(invalid)?, user))
}

/// Runs the workflow; returns the result or an error.
async fn run(
    app: &App,
    workflow: &Workflow,
    user: User,
    input: &str,
) -> ApiResult<Result<String, String>> {
    let Ok(graph) = Graph::parse(&workflow.graph) else {
        return Ok(Err("its graph cannot be read".to_owned()));
    };
    let user_id = user.id;
    let host = executions::host(app, &Caller::on_behalf_of(user)).await?;
    // A visitor must not reach the skills and tools of the publisher through a model.
    let host = WorkflowHost { agent: None, ..host };
    let run = WorkflowRun {
        workflow_id: &workflow.id,
        workflow_name: &workflow.name,
        graph: &graph,
        execution_id: &Uuid::new_v4().to_string(),
        input,
        model: None,
        user: Some(user_id),
        checkpoint: Checkpoint::default(),
        resumed: false,
    };
    let (emitter, mut events) = Emitter::channel();
    let listening = async { while events.recv().await.is_some() {} };
    let outcome = tokio::time::timeout(RUN_TIMEOUT, async {
        tokio::select! {
            outcome = workflow::run(&host, run, &NoJournal, &emitter) => outcome.ok(),
            () = listening => None,
        }
    });
    Ok(match outcome.await {
        Ok(Some(WorkflowOutcome::Completed { output: Value::String(text) })) => Ok(text),
        Ok(Some(WorkflowOutcome::Completed { output })) => Ok(output.to_string()),
        Ok(Some(WorkflowOutcome::Failed { error })) => Err(error),
        Ok(_) => Err("it was interrupted".to_owned()),
        Err(_) => Err("it took longer than 30 seconds".to_owned()),
    })
}

fn form(
    status: StatusCode,
    workflow: &Workflow,
    token: &str,
    input: &str,
    answer: &str,
) -> Response {
    let about = workflow.description.as_deref().map(escape).unwrap_or_default();
    let (token, input) = (escape(token), escape(input));
    let body = format!(
        "<p>{about}</p>\n<form method=\"post\" action=\"/api/v1/publish/embed/{token}\">\n\
         <label for=\"input\">Input</label>\n\
         <textarea id=\"input\" name=\"input\" rows=\"6\" maxlength=\"{MAX_INPUT_CHARS}\">\n{input}\
         </textarea>\n<div><button>Run</button></div>\n</form>\n{answer}"
    );
    allow_framing(page(status, &workflow.name, &body))
}
