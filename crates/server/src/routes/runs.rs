//! Routes for files that tools wrote into their run folders.

use std::fs::File;

use axum::{
    Json as JsonResponse,
    body::Body,
    extract::State,
    http::{HeaderValue, header},
    response::{IntoResponse as _, Response},
};
use savoir_agent::workspaces::{LeftFile, Workspaces};
use serde::Serialize;
use tokio_util::io::ReaderStream;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::docs;
use crate::{
    app::App,
    auth::{Authenticated, Caller},
    error::{ApiError, ApiResult},
    params::{Params, Path, Query, QueryPairs},
};

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(download))
}

#[derive(Debug, Serialize, ToSchema)]
struct FileList {
    files: Vec<FileItem>,
    total: usize,
}

/// A file that a tool left.
#[derive(Debug, Serialize, ToSchema)]
struct FileItem {
    /// Its path in the folder in which the tool ran.
    path: String,
    size: u64,
}

impl From<LeftFile> for FileItem {
    fn from(LeftFile { path, size }: LeftFile) -> Self {
        Self { path, size }
    }
}

/// Which file.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
struct FileQuery {
    /// Its path, as the list has it.
    #[param(min_length = 1)]
    path: String,
}

impl Params for FileQuery {
    fn read(pairs: &mut QueryPairs) -> Self {
        Self { path: pairs.text("path") }
    }
}

/// List the files that a tool of a skill wrote, by the `run` of its response. They are kept for the
/// user who ran it, until 50 later runs have written files.
#[utoipa::path(
    get, path = "/runs/{id}/files", tag = "runs", security(("bearer" = [])),
    params(("id" = String, Path, description = "The run")),
    responses((status = 200, body = FileList), docs::Unauthorized, docs::Missing, docs::TooMany)
)]
async fn list(
    State(app): State<App>,
    Path(id): Path<String>,
    authenticated: Authenticated,
) -> ApiResult<JsonResponse<FileList>> {
    let files = look(&app, &authenticated.caller, move |all| all.files(&id)).await?;
    let files: Vec<FileItem> = files.into_iter().map(Into::into).collect();
    Ok(JsonResponse(FileList { total: files.len(), files }))
}

/// Download a file that a tool of a skill wrote.
#[utoipa::path(
    get, path = "/runs/{id}/file", tag = "runs", security(("bearer" = [])),
    params(("id" = String, Path, description = "The run"), FileQuery),
    responses(
        (status = 200, description = "The file", content((Vec<u8> = "application/octet-stream"))),
        docs::Unauthorized, docs::Missing, docs::BadShape, docs::TooMany
    )
)]
async fn download(
    State(app): State<App>,
    Path(id): Path<String>,
    authenticated: Authenticated<Query<FileQuery>>,
) -> ApiResult<Response> {
    let Query(FileQuery { path }) = authenticated.body;
    let file = look(&app, &authenticated.caller, move |all| all.open(&id, &path)).await?;
    Ok(attachment(file))
}

/// A download, so that a browser does not show the file as a page of this server.
fn attachment(file: File) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream")),
        (header::CONTENT_DISPOSITION, HeaderValue::from_static("attachment")),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    ];
    let body = Body::from_stream(ReaderStream::new(tokio::fs::File::from_std(file)));
    (headers, body).into_response()
}

/// Reads the stored run folders of a user on a blocking thread.
async fn look<T: Send + 'static>(
    app: &App,
    caller: &Caller,
    find: impl FnOnce(&Workspaces) -> Option<T> + Send + 'static,
) -> ApiResult<T> {
    let missing = || ApiError::not_found("There is no such run, or it left no such file");
    let workshop = app.config.skill_tools.clone().ok_or_else(missing)?;
    let caller = caller.clone();
    let found = tokio::task::spawn_blocking(move || {
        workshop.workspaces(&caller).map(|workspaces| find(&workspaces))
    });
    let failed = |error: &dyn std::fmt::Display| ApiError::internal("Failed to read files", error);
    let found = found.await.map_err(|error| failed(&error))?.map_err(|error| failed(&error))?;
    found.ok_or_else(missing)
}
