//! Routes for the settings of a knowledge base: its name, the size of its passages, its index.

use axum::{Json as JsonResponse, extract::State};
use savoir_knowledge::{Mode, chunk::Size};
use savoir_store::{ChunkSize, KnowledgeBase};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    docs,
    knowledge::{changeable, check_id, find, no_base, no_document},
};
use crate::{
    app::App,
    auth::{Authenticated, Caller, Json},
    body::{Members, Shape, ShapeError, Text},
    error::ApiResult,
    params::Path,
};

const MIN_CHUNK_TOKENS: i64 = 64;
const MAX_CHUNK_TOKENS: i64 = 2048;
/// Maximum bytes of the returned text.
const MAX_TEXT_BYTES: usize = 1024 * 1024;
/// Shorter overlaps of two passages are coincidences and are kept.
const MIN_REPEATED_BYTES: usize = 9;
/// Maximum length of the overlap of two passages in bytes.
const MAX_REPEATED_BYTES: usize = 16 * 1024;
/// Number of passages that are read with one query.
const CHUNK_BATCH: u64 = 200;

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(show, change))
        .routes(routes!(index_again))
        .routes(routes!(text))
}

/// A knowledge base with its settings.
#[derive(Debug, Serialize, ToSchema)]
struct BaseDetail {
    id: String,
    name: String,
    document_count: u64,
    created_at: String,
    /// Whether the caller may change it.
    may_change: bool,
    /// `words`, or `hybrid` if the search also uses embeddings.
    #[schema(pattern = "^(words|hybrid)$")]
    search: &'static str,
    settings: BaseSettings,
    /// The embedding model of the stored vectors.
    embedding_model: Option<String>,
    /// Whether its documents must be indexed again for the current settings.
    stale: bool,
}

/// How documents are split into passages.
#[derive(Debug, Serialize, ToSchema)]
struct BaseSettings {
    /// Maximum tokens of a passage.
    chunk_tokens: u64,
    /// Maximum number of tokens that a passage repeats from the previous one.
    chunk_overlap: u64,
}

/// Changes of a knowledge base. Missing fields stay unchanged.
#[derive(Debug, ToSchema)]
struct BaseChange {
    #[schema(min_length = 1, max_length = 255)]
    name: Option<String>,
    #[schema(minimum = 64, maximum = 2048)]
    chunk_tokens: Option<i64>,
    /// At most half of `chunk_tokens`.
    #[schema(minimum = 0, maximum = 1024)]
    chunk_overlap: Option<i64>,
}

impl Shape for BaseChange {
    fn read(members: &mut Members) -> Self {
        let change = Self {
            name: members.optional_text("name", Text::between(1, 255)),
            chunk_tokens: members
                .optional_integer("chunk_tokens", MIN_CHUNK_TOKENS, MAX_CHUNK_TOKENS),
            chunk_overlap: members.optional_integer("chunk_overlap", 0, MAX_CHUNK_TOKENS / 2),
        };
        if let Some(name) =
            change.name.as_deref().filter(|name| uuid::Uuid::try_parse(name).is_ok())
        {
            let place = members.location_of("name");
            let message = "A name must not look like an id";
            members.reject(ShapeError::new("value_error", place, message, name.into()));
        }
        change
    }
}

impl BaseChange {
    /// The new chunk size, if one of its values was given.
    fn size(&self, base: &KnowledgeBase) -> ApiResult<Option<ChunkSize>> {
        if self.chunk_tokens.is_none() && self.chunk_overlap.is_none() {
            return Ok(None);
        }
        let now = size_of(base);
        let tokens = self.chunk_tokens.map_or(now.tokens, i64::unsigned_abs);
        let overlap = self.chunk_overlap.map_or(now.overlap.min(tokens / 2), i64::unsigned_abs);
        if overlap > tokens / 2 {
            return Err(crate::error::ApiError::bad_request(format!(
                "`chunk_overlap` is {overlap}, which is more than half of {tokens}"
            ))
            .with_hint(format!("use at most {}", tokens / 2)));
        }
        Ok(Some(ChunkSize { tokens, overlap }))
    }
}

fn size_of(base: &KnowledgeBase) -> ChunkSize {
    let usual = Size::default();
    base.chunk_size
        .unwrap_or(ChunkSize { tokens: usual.tokens as u64, overlap: usual.overlap as u64 })
}

fn describe(app: &App, caller: &Caller, base: KnowledgeBase) -> BaseDetail {
    let size = size_of(&base);
    BaseDetail {
        may_change: caller.may_touch(base.user_id),
        search: match app.knowledge.mode() {
            Mode::Words => "words",
            Mode::Hybrid(_) => "hybrid",
        },
        settings: BaseSettings { chunk_tokens: size.tokens, chunk_overlap: size.overlap },
        stale: app.knowledge.is_stale(&base),
        id: base.id,
        name: base.name,
        document_count: base.document_count,
        created_at: base.created_at.to_string(),
        embedding_model: base.embedder,
    }
}

/// Show a knowledge base with its settings.
#[utoipa::path(
    get, path = "/knowledge/{kb}", tag = "knowledge", operation_id = "show_base",
    security(("bearer" = [])), params(("kb" = String, Path, description = "Id or name")),
    responses(
        (status = 200, body = BaseDetail), docs::BadRequest, docs::Unauthorized, docs::NotFound,
        docs::TooManyRequests
    )
)]
async fn show(
    State(app): State<App>,
    Path(kb): Path<String>,
    authenticated: Authenticated,
) -> ApiResult<JsonResponse<BaseDetail>> {
    check_id(&kb)?;
    let base = find(&app, &authenticated.caller, &kb).await?.ok_or_else(no_base)?;
    Ok(JsonResponse(describe(&app, &authenticated.caller, base)))
}

/// Change the name of a knowledge base or the size of its passages.
#[utoipa::path(
    patch, path = "/knowledge/{kb}", tag = "knowledge", operation_id = "change_base",
    security(("bearer" = [])), params(("kb" = String, Path, description = "Id or name")),
    request_body = BaseChange,
    responses(
        (status = 200, body = BaseDetail), docs::BadRequest, docs::Unauthorized, docs::Forbidden,
        docs::NotFound, docs::TooLarge, docs::InvalidBody, docs::TooManyRequests
    )
)]
async fn change(
    State(app): State<App>,
    Path(kb): Path<String>,
    authenticated: Authenticated<Json<BaseChange>>,
) -> ApiResult<JsonResponse<BaseDetail>> {
    check_id(&kb)?;
    let Authenticated { caller, body: Json(change) } = authenticated;
    let base = changeable(&app, &caller, &kb).await?;
    let size = change.size(&base)?;
    let changed = app.knowledge.update(&base.id, change.name.as_deref(), size).await?;
    Ok(JsonResponse(describe(&app, &caller, changed.ok_or_else(no_base)?)))
}

/// The number of documents that are indexed again.
#[derive(Debug, Serialize, ToSchema)]
struct IndexingStarted {
    documents: u64,
}

/// Index all documents of a knowledge base again.
#[utoipa::path(
    post, path = "/knowledge/{kb}/reindex", tag = "knowledge", operation_id = "reindex_base",
    security(("bearer" = [])), params(("kb" = String, Path, description = "Id or name")),
    responses(
        (status = 200, body = IndexingStarted), docs::BadRequest, docs::Unauthorized, docs::Forbidden,
        docs::NotFound, docs::TooManyRequests
    )
)]
async fn index_again(
    State(app): State<App>,
    Path(kb): Path<String>,
    authenticated: Authenticated,
) -> ApiResult<JsonResponse<IndexingStarted>> {
    check_id(&kb)?;
    let base = changeable(&app, &authenticated.caller, &kb).await?;
    let documents = app.knowledge.index_again(&base.id).await?;
    Ok(JsonResponse(IndexingStarted { documents }))
}

/// The extracted text of a document, which searches use.
#[derive(Debug, Serialize, ToSchema)]
struct DocumentText {
    text: String,
    /// Whether the text is incomplete because of its length.
    truncated: bool,
}

/// Show the text of a document.
#[utoipa::path(
    get, path = "/knowledge/{kb}/documents/{doc}/text", tag = "knowledge",
    operation_id = "document_text", security(("bearer" = [])),
    params(
        ("kb" = String, Path, description = "Id or name"),
        ("doc" = String, Path, description = "The document")
    ),
    responses(
        (status = 200, body = DocumentText), docs::BadRequest, docs::Unauthorized, docs::NotFound,
        docs::TooManyRequests
    )
)]
async fn text(
    State(app): State<App>,
    Path((kb, doc)): Path<(String, String)>,
    authenticated: Authenticated,
) -> ApiResult<JsonResponse<DocumentText>> {
    check_id(&kb)?;
    let base = find(&app, &authenticated.caller, &kb).await?.ok_or_else(no_base)?;
    app.knowledge.document(&base.id, &doc).await?.ok_or_else(no_document)?;
    let mut text = String::new();
    let mut read = 0;
    loop {
        let (chunks, total) = app.knowledge.chunks(&base.id, &doc, CHUNK_BATCH, read).await?;
        read += chunks.len() as u64;
        for chunk in &chunks {
            append_chunk(&mut text, &chunk.text);
        }
        let is_full = text.len() > MAX_TEXT_BYTES;
        if chunks.is_empty() || read >= total || is_full {
            return Ok(JsonResponse(DocumentText { text, truncated: is_full && read < total }));
        }
    }
}

/// Appends a passage without the text that it repeats from the previous one.
fn append_chunk(text: &mut String, chunk: &str) {
    if text.is_empty() {
        text.push_str(chunk);
        return;
    }
    let starts = chunk.char_indices().map(|(at, c)| at + c.len_utf8());
    let mut likely = starts.filter(|end| (MIN_REPEATED_BYTES..MAX_REPEATED_BYTES).contains(end));
    let repeated = likely.rfind(|&end| text.ends_with(&chunk[..end]));
    if let Some(end) = repeated {
        text.push_str(&chunk[end..]);
    } else {
        text.push_str("\n\n");
        text.push_str(chunk);
    }
}

#[cfg(test)]
mod tests {
    use super::append_chunk;

    #[test]
    fn repeated_words_of_passages_are_shown_once() {
        let mut text = String::new();
        append_chunk(&mut text, "one two three");
        append_chunk(&mut text, "two three four");
        assert_eq!(text, "one two three four");
        append_chunk(&mut text, "another page");
        assert_eq!(text, "one two three four\n\nanother page");
    }
}
