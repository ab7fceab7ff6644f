//! Knowledge base routes: upload documents and search passages.

use std::time::Duration;

use axum::{
    Json as JsonResponse,
    body::Body,
    extract::{
        DefaultBodyLimit, FromRequest as _, Multipart, Request, State, multipart::MultipartError,
    },
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use bytes::Bytes;
use http_body_util::Limited;
use savoir_knowledge::{
    Passage, Reprocessing, SearchError, UploadError, limits::MAX_DOCUMENT_BYTES,
};
use savoir_store::{Document, IndexingTask, KnowledgeBase};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};
use uuid::Uuid;

use super::docs;
use crate::{
    app::App,
    auth::{Authenticated, Caller, Json, Raw},
    body::{Members, Shape, ShapeError, Text},
    error::{ApiError, ApiResult},
    limits::{BODY_TIMEOUT_SECONDS, MAX_UPLOAD_BYTES},
    params::{Page, Params, Path, Query, QueryPairs},
};

/// `Retry-After` for a user with too many waiting documents, in seconds.
const BUSY_RETRY_SECONDS: u32 = 60;

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(delete))
        .routes(routes!(upload))
        .routes(routes!(documents))
        .routes(routes!(delete_document))
        .routes(routes!(process))
        .routes(routes!(task))
        .routes(routes!(search))
        .routes(routes!(chunks))
        .routes(routes!(original))
        .routes(routes!(info))
}

/// A new knowledge base.
#[derive(Debug, Deserialize, ToSchema)]
struct NewBase {
    #[schema(min_length = 1, max_length = 255)]
    name: String,
}

impl Shape for NewBase {
    fn read(members: &mut Members) -> Self {
        let name = members.text("name", Text::between(1, 255));
        // A name in the format of an id would be found by that id once the knowledge base with that
        // id is deleted.
        if Uuid::try_parse(&name).is_ok() {
            let place = members.location_of("name");
            let message = "A name must not look like an id";
            members.reject(ShapeError::new("value_error", place, message, name.as_str().into()));
        }
        Self { name }
    }
}

/// A knowledge base.
#[derive(Debug, Serialize, ToSchema)]
struct BaseItem {
    id: String,
    name: String,
    document_count: u64,
    created_at: String,
}

impl From<KnowledgeBase> for BaseItem {
    fn from(base: KnowledgeBase) -> Self {
        Self {
            id: base.id,
            name: base.name,
            document_count: base.document_count,
            created_at: base.created_at.to_string(),
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
struct BaseList {
    items: Vec<BaseItem>,
    total: usize,
}

/// A document of a knowledge base.
#[derive(Debug, Serialize, ToSchema)]
struct DocumentItem {
    id: String,
    kb_id: String,
    filename: String,
    /// `pending`, `processing`, `completed` or `failed`
    status: &'static str,
    file_size: u64,
    created_at: String,
    task_id: Option<String>,
    /// Why indexing failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl From<Document> for DocumentItem {
    fn from(document: Document) -> Self {
        Self {
            id: document.id,
            kb_id: document.kb_id,
            filename: document.filename,
            status: document.status.as_str(),
            file_size: document.file_size,
            created_at: document.created_at.to_string(),
            task_id: None,
            error: document.error,
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
struct DocumentList {
    documents: Vec<DocumentItem>,
    total: usize,
}

#[derive(Debug, Serialize, ToSchema)]
struct DocumentDeleted {
    message: &'static str,
    doc_id: String,
}

#[derive(Debug, Serialize, ToSchema)]
struct ProcessAnswer {
    message: &'static str,
    doc_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    task_id: Option<String>,
}

/// The progress of indexing a document.
#[derive(Debug, Serialize, ToSchema)]
struct TaskItem {
    /// `pending`, `processing`, `completed` or `failed`
    status: &'static str,
    /// 0 to 100
    progress: u8,
    doc_id: String,
    kb_id: String,
    started_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl From<IndexingTask> for TaskItem {
    fn from(task: IndexingTask) -> Self {
        Self {
            status: task.status.as_str(),
            progress: task.progress,
            doc_id: task.doc_id,
            kb_id: task.kb_id,
            started_at: task.started_at.to_string(),
            error: task.error,
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
struct Found {
    kb_id: String,
    query: String,
    top_k: u32,
    results: Vec<FoundPassage>,
    total: usize,
}

/// A passage that matches the query.
#[derive(Debug, Serialize, ToSchema)]
struct FoundPassage {
    text: String,
    metadata: PassageMetadata,
    /// The relevance between 0 and 1; 0 means unrelated.
    score: f64,
    /// The position among all results, from 1.
    rank: u32,
}

/// The origin of a passage.
#[derive(Debug, Serialize, ToSchema)]
struct PassageMetadata {
    doc_id: String,
    chunk_id: String,
    chunk_index: u64,
    chunk_size: u64,
}

impl From<Passage> for FoundPassage {
    fn from(passage: Passage) -> Self {
        Self {
            text: passage.text,
            metadata: PassageMetadata {
                doc_id: passage.doc_id,
                chunk_id: passage.chunk_id,
                chunk_index: passage.chunk_index,
                chunk_size: passage.chunk_size,
            },
            score: passage.score,
            rank: passage.rank,
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
struct BaseInfo {
    kb_id: String,
    collection_name: String,
    document_count: u64,
    vector_count: u64,
    collection_exists: bool,
}

#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
struct SearchQuery {
    /// The question.
    #[param(min_length = 1)]
    query: String,
    /// Maximum number of passages.
    #[param(minimum = 1, maximum = 20, default = 5, required = false)]
    top_k: u32,
    /// Minimum score of the passages.
    #[param(minimum = 0, maximum = 1, default = 0, required = false)]
    min_score: f64,
}

impl Params for SearchQuery {
    fn read(pairs: &mut QueryPairs) -> Self {
        let query = pairs.text("query");
        let top_k = pairs.integer("top_k", 5, 1, 20);
        let min_score = pairs.number("min_score", 0.0, 0.0, 1.0);
        Self { query, top_k: u32::try_from(top_k).unwrap_or(5), min_score }
    }
}

/// List knowledge bases.
#[utoipa::path(
    get, path = "/knowledge", tag = "knowledge", security(("bearer" = [])), params(Page),
    responses((status = 200, body = BaseList), docs::Unauthorized, docs::InvalidBody, docs::TooManyRequests)
)]
async fn list(
    State(app): State<App>,
    authenticated: Authenticated<Query<Page>>,
) -> ApiResult<JsonResponse<BaseList>> {
    let Query(page) = authenticated.body;
    let bases = app.knowledge.list().await?;
    let items = page.of(&bases).iter().cloned().map(Into::into).collect();
    Ok(JsonResponse(BaseList { total: bases.len(), items }))
}

/// Create a knowledge base.
#[utoipa::path(
    post, path = "/knowledge", tag = "knowledge", security(("bearer" = [])),
    request_body = NewBase,
    responses(
        (status = 201, body = BaseItem), docs::Unauthorized, docs::TooLarge, docs::InvalidBody,
        docs::TooManyRequests
    )
)]
async fn create(
    State(app): State<App>,
    authenticated: Authenticated<Json<NewBase>>,
) -> ApiResult<Response> {
    let Json(NewBase { name }) = authenticated.body;
    let base = app.knowledge.create(&name, Some(authenticated.caller.user.id)).await?;
    Ok((StatusCode::CREATED, JsonResponse(BaseItem::from(base))).into_response())
}

/// Delete a knowledge base with its documents.
#[utoipa::path(
    delete, path = "/knowledge/{kb}", tag = "knowledge", security(("bearer" = [])),
    params(("kb" = String, Path, description = "Id or name")),
    responses(
        (status = 204, description = "Deleted"), docs::BadRequest, docs::Unauthorized,
        docs::Forbidden, docs::NotFound, docs::TooManyRequests
    )
)]
async fn delete(
    State(app): State<App>,
    Path(kb): Path<String>,
    authenticated: Authenticated,
) -> ApiResult<StatusCode> {
    if !is_id(&kb) {
        return Err(ApiError::bad_request("Invalid kb_id format"));
    }
    let base = changeable(&app, &authenticated.caller, &kb).await?;
    let removed = app.knowledge.remove_base(&base.id).await?;
    if removed { Ok(StatusCode::NO_CONTENT) } else { Err(no_base()) }
}

/// A file to upload.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the form for the OpenAPI document")]
struct UploadForm {
    #[schema(value_type = String, format = Binary)]
    file: Vec<u8>,
}

/// Upload a document. It is indexed in the background.
#[utoipa::path(
    post, path = "/knowledge/{kb}/upload", tag = "knowledge", security(("bearer" = [])),
    params(("kb" = String, Path, description = "Id or name")),
    request_body(content = UploadForm, content_type = "multipart/form-data"),
    responses(
        (status = 200, body = DocumentItem), docs::BadRequest, docs::Unauthorized, docs::Forbidden,
        docs::NotFound, docs::TooLarge, docs::InvalidBody, docs::TooManyQueuedDocuments
    )
)]
async fn upload(
    State(app): State<App>,
    Path(kb): Path<String>,
    authenticated: Authenticated<Raw>,
) -> ApiResult<JsonResponse<DocumentItem>> {
    check_id(&kb)?;
    let base = changeable(&app, &authenticated.caller, &kb).await?;
    let Raw(request) = authenticated.body;
    let deadline = Duration::from_secs(BODY_TIMEOUT_SECONDS);
    let file = tokio::time::timeout(deadline, file_of(request)).await;
    let (filename, bytes) = file.map_err(|_| ApiError::too_slow())??;
    let (document, task) =
        app.knowledge.add(&base.id, &filename, bytes).await.map_err(upload_error)?;
    let mut item = DocumentItem::from(document);
    item.status = "processing";
    item.task_id = Some(task.id);
    Ok(JsonResponse(item))
}

fn upload_error(error: UploadError) -> ApiError {
    match error {
        UploadError::UnknownBase => no_base(),
        UploadError::Crowded => crowded(),
        UploadError::Store(error) => error.into(),
        refused => ApiError::bad_request(refused.to_string()),
    }
}

/// The error for a user with too many waiting documents.
fn crowded() -> ApiError {
    ApiError::plain(StatusCode::TOO_MANY_REQUESTS, UploadError::Crowded.to_string())
        .with_header(header::RETRY_AFTER, HeaderValue::from(BUSY_RETRY_SECONDS))
}

/// The part `file` of a multipart form.
async fn file_of(request: Request) -> ApiResult<(String, Bytes)> {
    let mut request = request.map(|body| Body::new(Limited::new(body, MAX_UPLOAD_BYTES)));
    // The default limit of axum is lower.
    DefaultBodyLimit::disable().apply(&mut request);
    let form = Multipart::from_request(request, &()).await;
    let mut form = form.map_err(|_| missing_file())?;
    while let Some(part) = form.next_field().await.map_err(|error| form_error(&error))? {
        if part.name() != Some("file") {
            continue;
        }
        let name = part.file_name().ok_or_else(missing_file)?.to_owned();
        let bytes = part.bytes().await.map_err(|error| form_error(&error))?;
        return Ok((name, bytes));
    }
    Err(missing_file())
}

pub(super) fn missing_file() -> ApiError {
    let place = vec!["body".into(), "file".into()];
    ApiError::shape(vec![ShapeError::new(
        "missing",
        place,
        "Field required",
        serde_json::Value::Null,
    )])
}

pub(super) fn form_error(error: &MultipartError) -> ApiError {
    if error.status() == StatusCode::PAYLOAD_TOO_LARGE {
        ApiError::too_large(MAX_DOCUMENT_BYTES)
    } else {
        ApiError::bad_request("The form cannot be read")
    }
}

/// List the documents of a knowledge base.
#[utoipa::path(
    get, path = "/knowledge/{kb}/documents", tag = "knowledge", security(("bearer" = [])),
    params(("kb" = String, Path, description = "Id or name"), Page),
    responses(
        (status = 200, body = DocumentList), docs::BadRequest, docs::Unauthorized, docs::NotFound,
        docs::InvalidBody, docs::TooManyRequests
    )
)]
async fn documents(
    State(app): State<App>,
    Path(kb): Path<String>,
    authenticated: Authenticated<Query<Page>>,
) -> ApiResult<JsonResponse<DocumentList>> {
    check_id(&kb)?;
    let Authenticated { caller, body: Query(page) } = authenticated;
    let base = find(&app, &caller, &kb).await?.ok_or_else(no_base)?;
    let all = app.knowledge.documents(&base.id).await?;
    let documents = page.of(&all).iter().cloned().map(Into::into).collect();
    Ok(JsonResponse(DocumentList { total: all.len(), documents }))
}

/// A passage of a document.
#[derive(Debug, Serialize, ToSchema)]
struct ChunkItem {
    chunk_id: String,
    chunk_index: u64,
    text: String,
    tokens: u64,
}

#[derive(Debug, Serialize, ToSchema)]
struct ChunkList {
    chunks: Vec<ChunkItem>,
    total: u64,
}

/// Maximum passages in one response.
const MAX_LISTED_CHUNKS: usize = 200;

/// List the passages of a document, in order.
#[utoipa::path(
    get, path = "/knowledge/{kb}/documents/{doc}/chunks", tag = "knowledge",
    security(("bearer" = [])),
    params(
        ("kb" = String, Path, description = "Id or name"),
        ("doc" = String, Path, description = "The document"), Page
    ),
    responses(
        (status = 200, body = ChunkList), docs::BadRequest, docs::Unauthorized, docs::NotFound,
        docs::InvalidBody, docs::TooManyRequests
    )
)]
async fn chunks(
    State(app): State<App>,
    Path((kb, doc)): Path<(String, String)>,
    authenticated: Authenticated<Query<Page>>,
) -> ApiResult<JsonResponse<ChunkList>> {
    check_id(&kb)?;
    let Authenticated { caller, body: Query(page) } = authenticated;
    let base = find(&app, &caller, &kb).await?.ok_or_else(no_base)?;
    app.knowledge.document(&base.id, &doc).await?.ok_or_else(no_document)?;
    let limit = page.limit().min(MAX_LISTED_CHUNKS) as u64;
    let (found, total) = app.knowledge.chunks(&base.id, &doc, limit, page.offset() as u64).await?;
    let chunks = found.into_iter().map(|chunk| ChunkItem {
        chunk_id: chunk.id,
        chunk_index: chunk.index,
        text: chunk.text,
        tokens: chunk.size,
    });
    Ok(JsonResponse(ChunkList { chunks: chunks.collect(), total }))
}

/// Download a document as it was uploaded.
#[utoipa::path(
    get, path = "/knowledge/{kb}/documents/{doc}/file", tag = "knowledge",
    security(("bearer" = [])),
    params(
        ("kb" = String, Path, description = "Id or name"),
        ("doc" = String, Path, description = "The document")
    ),
    responses(
        (status = 200, description = "The file", content((Vec<u8> = "application/octet-stream"))),
        docs::BadRequest, docs::Unauthorized, docs::NotFound, docs::TooManyRequests
    )
)]
async fn original(
    State(app): State<App>,
    Path((kb, doc)): Path<(String, String)>,
    authenticated: Authenticated,
) -> ApiResult<Response> {
    check_id(&kb)?;
    let base = find(&app, &authenticated.caller, &kb).await?.ok_or_else(no_base)?;
    app.knowledge.document(&base.id, &doc).await?.ok_or_else(no_document)?;
    let bytes = app.knowledge.bytes(&base.id, &doc).await?.ok_or_else(no_document)?;
    // A download, so that a browser does not show it as a page of this server.
    let headers = [
        (header::CONTENT_TYPE, "application/octet-stream"),
        (header::CONTENT_DISPOSITION, "attachment"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    Ok((headers, bytes).into_response())
}

/// Delete a document from its knowledge base.
#[utoipa::path(
    delete, path = "/knowledge/{kb}/documents/{doc}", tag = "knowledge",
    security(("bearer" = [])),
    params(
        ("kb" = String, Path, description = "Id or name"),
        ("doc" = String, Path, description = "The document")
    ),
    responses(
        (status = 200, body = DocumentDeleted), docs::BadRequest, docs::Unauthorized, docs::Forbidden,
        docs::NotFound, docs::TooManyRequests
    )
)]
async fn delete_document(
    State(app): State<App>,
    Path((kb, doc)): Path<(String, String)>,
    authenticated: Authenticated,
) -> ApiResult<JsonResponse<DocumentDeleted>> {
    check_id(&kb)?;
    let base = changeable(&app, &authenticated.caller, &kb).await?;
    if !app.knowledge.remove_document(&base.id, &doc).await? {
        return Err(no_document());
    }
    Ok(JsonResponse(DocumentDeleted { message: "Document deleted successfully.", doc_id: doc }))
}

/// Index a failed document again.
#[utoipa::path(
    post, path = "/knowledge/{kb}/process/{doc}", tag = "knowledge", security(("bearer" = [])),
    params(
        ("kb" = String, Path, description = "Id or name"),
        ("doc" = String, Path, description = "The document")
    ),
    responses(
        (status = 202, body = ProcessAnswer, description = "It will be read"),
        (status = 200, body = ProcessAnswer, description = "It is being read, or was"),
        docs::BadRequest, docs::Unauthorized, docs::Forbidden, docs::NotFound, docs::TooManyQueuedDocuments
    )
)]
async fn process(
    State(app): State<App>,
    Path((kb, doc)): Path<(String, String)>,
    authenticated: Authenticated,
) -> ApiResult<Response> {
    check_id(&kb)?;
    let base = changeable(&app, &authenticated.caller, &kb).await?;
    let wish = app.knowledge.reprocess(&base, &doc).await?.ok_or_else(no_document)?;
    let (status, message, task_id) = match wish {
        Reprocessing::Started(task) => {
            (StatusCode::ACCEPTED, "Document processing started.", Some(task.id))
        }
        Reprocessing::Underway => (StatusCode::OK, "Document is already being processed.", None),
        Reprocessing::Done => (StatusCode::OK, "Document has already been processed.", None),
        Reprocessing::Crowded => return Err(crowded()),
    };
    Ok((status, JsonResponse(ProcessAnswer { message, doc_id: doc, task_id })).into_response())
}

/// Show the progress of an indexing task.
#[utoipa::path(
    get, path = "/knowledge/tasks/{id}", tag = "knowledge", security(("bearer" = [])),
    params(("id" = String, Path, description = "The task")),
    responses((status = 200, body = TaskItem), docs::Unauthorized, docs::NotFound, docs::TooManyRequests)
)]
async fn task(
    State(app): State<App>,
    Path(id): Path<String>,
    _: Authenticated,
) -> ApiResult<JsonResponse<TaskItem>> {
    let task = app.knowledge.task(&id).await?;
    Ok(JsonResponse(task.ok_or_else(|| ApiError::not_found("Task not found"))?.into()))
}

/// Search a knowledge base for passages.
#[utoipa::path(
    get, path = "/knowledge/{kb}/search", tag = "knowledge", security(("bearer" = [])),
    params(("kb" = String, Path, description = "Id or name"), SearchQuery),
    responses(
        (status = 200, body = Found), docs::BadRequest, docs::Unauthorized, docs::NotFound,
        docs::Conflict, docs::InvalidBody, docs::TooManyRequests
    )
)]
async fn search(
    State(app): State<App>,
    Path(kb): Path<String>,
    authenticated: Authenticated<Query<SearchQuery>>,
) -> ApiResult<JsonResponse<Found>> {
    check_id(&kb)?;
    let Query(SearchQuery { query, top_k, min_score }) = authenticated.body;
    if query.trim().is_empty() {
        return Err(ApiError::bad_request("Query cannot be empty."));
    }
    let found = app.knowledge.search(&kb, Some(authenticated.caller.user.id), &query, top_k).await;
    let found = found.map_err(|error| search_error(&error))?;
    let relevant = found.into_iter().filter(|passage| passage.score >= min_score);
    let results: Vec<FoundPassage> = relevant.map(Into::into).collect();
    Ok(JsonResponse(Found { kb_id: kb, query, top_k, total: results.len(), results }))
}

fn search_error(error: &SearchError) -> ApiError {
    match error {
        SearchError::UnknownBase(_) => ApiError::not_found(error.to_string()),
        SearchError::OtherModel => ApiError::conflict(error.to_string()),
        SearchError::Store(error) => {
            ApiError::stored("Search failed. Please try again later.", error)
        }
    }
}

/// Show a knowledge base.
#[utoipa::path(
    get, path = "/knowledge/{kb}/info", tag = "knowledge", security(("bearer" = [])),
    params(("kb" = String, Path, description = "Id or name")),
    responses((status = 200, body = BaseInfo), docs::BadRequest, docs::Unauthorized, docs::TooManyRequests)
)]
async fn info(
    State(app): State<App>,
    Path(kb): Path<String>,
    authenticated: Authenticated,
) -> ApiResult<JsonResponse<BaseInfo>> {
    check_id(&kb)?;
    let info = match find(&app, &authenticated.caller, &kb).await? {
        Some(base) => app.knowledge.info(&base.id).await?,
        None => None,
    };
    Ok(JsonResponse(BaseInfo {
        collection_name: format!("kb_{kb}"),
        document_count: info.as_ref().map_or(0, |info| info.base.document_count),
        vector_count: info.as_ref().map_or(0, |info| info.vectors),
        collection_exists: info.is_some(),
        kb_id: kb,
    }))
}

pub(super) async fn find(app: &App, caller: &Caller, kb: &str) -> ApiResult<Option<KnowledgeBase>> {
    Ok(app.knowledge.resolve(kb, Some(caller.user.id)).await?)
}

/// A knowledge base that the caller may change: their own, or any for an administrator.
pub(super) async fn changeable(app: &App, caller: &Caller, kb: &str) -> ApiResult<KnowledgeBase> {
    let base = find(app, caller, kb).await?.ok_or_else(no_base)?;
    if caller.may_touch(base.user_id) {
        return Ok(base);
    }
    Err(ApiError::forbidden("You do not have permission to modify this knowledge base"))
}

/// Matches `^[\w-]+$`.
fn is_id(kb: &str) -> bool {
    !kb.is_empty() && kb.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-')
}

pub(super) fn check_id(kb: &str) -> ApiResult<()> {
    if is_id(kb) {
        return Ok(());
    }
    Err(ApiError::bad_request(format!("Invalid kb_id format: {kb}")))
}

pub(super) fn no_base() -> ApiError {
    ApiError::not_found("Knowledge base not found")
}

pub(super) fn no_document() -> ApiError {
    ApiError::not_found("Document not found.")
}
