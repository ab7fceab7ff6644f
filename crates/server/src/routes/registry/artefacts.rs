//! Routes that return the archives of versions.
//!
//! Small archives are read whole, checked against their digest, and cached. Large archives are
//! streamed in chunks. The last chunk is sent only if the digest of the whole archive is correct,
//! so a client never receives a complete archive with wrong content.

use std::{io, ops::Range, time::Duration};

use axum::{
    body::Body,
    extract::State,
    http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header},
    response::Response,
};
use bytes::Bytes;
use futures::{Stream, stream};
use savoir_registry::{CachePolicy, CacheableResponse, matches_if_none_match, requested_range};
use savoir_skill::digest::hex;
use savoir_store::registry::PackageVersion;
use semver::Version;
use sha2::{Digest as _, Sha256};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    docs,
    error::{RegistryApiError, RegistryResult},
    extract::{PathParams, ReadAccess, registry},
    respond_and_cache,
};
use crate::app::App;

/// Larger archives are streamed in chunks of this size.
pub(super) const CHUNK_BYTES: u64 = 512 * 1024;
/// How long a signed URL of the storage is valid.
const LINK_LIFETIME: Duration = Duration::from_mins(5);

const ZIP_MEDIA_TYPE: &str = "application/zip";
const VERSION_HEADER: HeaderName = HeaderName::from_static("x-skill-version");
const INTEGRITY_HEADER: HeaderName = HeaderName::from_static("x-integrity");

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(by_digest))
}

/// Download an archive by its digest. The content never changes.
#[utoipa::path(
    get, path = "/artifacts/{sha256}/{filename}", tag = "registry",
    params(
        ("sha256" = String, Path, description = "The digest of the archive, in hexadecimal digits"),
        ("filename" = String, Path, description = "What it is called"),
    ),
    responses(docs::Archive, docs::Invalid, docs::Unauthorized, docs::NotFound, docs::Unavailable)
)]
async fn by_digest(
    State(app): State<App>,
    _: ReadAccess,
    PathParams((sha256, filename)): PathParams<(String, String)>,
    (method, uri, headers): (Method, Uri, HeaderMap),
) -> RegistryResult<Response> {
    let missing = || RegistryApiError::not_found("there is no such archive here");
    let found = registry(&app).artefact(&sha256, &filename).await?.ok_or_else(missing)?;
    let artefact =
        ArtefactBody { sha256: &sha256, size: found.size, caching: CachePolicy::Immutable };
    let counts = method == Method::GET && !headers.contains_key(header::RANGE);
    if artefact.is_large() {
        if counts {
            app.registry_state.downloads.count(&found.package, &found.version);
        }
        return artefact.send(app, &method, &headers).await;
    }
    let answer = respond_and_cache(&app, &uri, &found.package, Some(&found.version), async {
        // Check again after the refresh: only an archive that still exists may be cached.
        registry(&app).artefact(&sha256, &filename).await?.ok_or_else(missing)?;
        artefact.whole(&app).await
    });
    let response = answer.await?.respond(&method, &headers);
    if response.status() == StatusCode::OK && counts {
        app.registry_state.downloads.count(&found.package, &found.version);
    }
    Ok(response)
}

/// Returns the archive of a version that was selected by a range.
pub(super) async fn send_chosen(
    app: &App,
    known: &PackageVersion,
    method: &Method,
    headers: &HeaderMap,
) -> RegistryResult<Response> {
    let artefact =
        ArtefactBody { sha256: &known.sha256, size: known.size, caching: CachePolicy::Check };
    let mut response = if artefact.is_large() {
        artefact.send(app.clone(), method, headers).await?
    } else {
        artefact.whole(app).await?.respond(method, headers)
    };
    if *method == Method::GET && response.status() == StatusCode::OK {
        app.registry_state.downloads.count(&known.package, &known.version);
    }
    add_version_headers(response.headers_mut(), &known.version, &known.integrity);
    let filename = known.package.filename(&known.version);
    let attached = format!("attachment; filename=\"{filename}\"");
    if let Ok(attached) = HeaderValue::from_str(&attached) {
        response.headers_mut().insert(header::CONTENT_DISPOSITION, attached);
    }
    Ok(response)
}

fn add_version_headers(headers: &mut HeaderMap, version: &Version, integrity: &str) {
    for (name, value) in
        [(VERSION_HEADER, version.to_string()), (INTEGRITY_HEADER, integrity.to_owned())]
    {
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert(name, value);
        }
    }
}

/// An archive to send.
#[derive(Clone, Copy, Debug)]
pub(super) struct ArtefactBody<'a> {
    pub(super) sha256: &'a str,
    pub(super) size: u64,
    pub(super) caching: CachePolicy,
}

impl ArtefactBody<'_> {
    fn is_large(self) -> bool {
        self.size > CHUNK_BYTES
    }

    async fn whole(self, app: &App) -> RegistryResult<CacheableResponse> {
        let bytes = registry(app).blob(self.sha256).await?;
        let bytes = bytes.ok_or_else(|| missing_blob(self.sha256))?;
        Ok(CacheableResponse::with_etag(ZIP_MEDIA_TYPE, self.caching, self.sha256, bytes)
            .with_ranges())
    }

    /// Redirects to the storage, or streams the archive.
    pub(super) async fn send(
        self,
        app: App,
        method: &Method,
        request_headers: &HeaderMap,
    ) -> RegistryResult<Response> {
        let tag = format!("\"{}\"", self.sha256);
        let tag = HeaderValue::from_str(&tag).map_err(|error| RegistryApiError::failed(&error))?;
        if matches_if_none_match(request_headers, &tag) {
            return Ok(self.response(StatusCode::NOT_MODIFIED, &tag, Body::empty()));
        }
        // A signed URL is only for GET, not for HEAD.
        if app.config.registry.redirect
            && *method != Method::HEAD
            && let Some(link) = registry(&app).blob_link(self.sha256, LINK_LIFETIME).await?
        {
            return redirect(&link);
        }
        let range = match requested_range(method, request_headers, &tag, self.size) {
            None => 0..self.size,
            Some(Ok(range)) => range,
            Some(Err(())) => {
                let all = format!("bytes */{}", self.size);
                let status = StatusCode::RANGE_NOT_SATISFIABLE;
                let mut response = self.response(status, &tag, Body::empty());
                insert(response.headers_mut(), header::CONTENT_RANGE, &all);
                return Ok(response);
            }
        };
        let all = range == (0..self.size);
        let status = if all { StatusCode::OK } else { StatusCode::PARTIAL_CONTENT };
        let body = if *method == Method::HEAD {
            Body::empty()
        } else {
            Body::from_stream(archive_stream(app, self.sha256.to_owned(), range.clone(), all))
        };
        let mut response = self.response(status, &tag, body);
        let length = (range.end - range.start).to_string();
        insert(response.headers_mut(), header::CONTENT_LENGTH, &length);
        if !all {
            let content_range = format!("bytes {}-{}/{}", range.start, range.end - 1, self.size);
            insert(response.headers_mut(), header::CONTENT_RANGE, &content_range);
        }
        Ok(response)
    }

    fn response(self, status: StatusCode, tag: &HeaderValue, body: Body) -> Response {
        let mut response = Response::new(body);
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(ZIP_MEDIA_TYPE));
        headers.insert(header::CACHE_CONTROL, self.caching.header());
        headers.insert(header::ETAG, tag.clone());
        headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        response
    }
}

fn insert(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

/// A redirect that shared caches must not store: the URL is valid only for minutes.
fn redirect(link: &str) -> RegistryResult<Response> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::TEMPORARY_REDIRECT;
    let link = HeaderValue::from_str(link).map_err(|error| RegistryApiError::failed(&error))?;
    response.headers_mut().insert(header::LOCATION, link);
    let private = HeaderValue::from_static("private, no-store");
    response.headers_mut().insert(header::CACHE_CONTROL, private);
    Ok(response)
}

pub(super) fn missing_blob(sha256: &str) -> RegistryApiError {
    RegistryApiError::failed(&format!(
        "the blob {sha256} is not in the storage; restore it from a backup"
    ))
}

/// The rest of an archive that is streamed.
struct ArchiveStream {
    app: App,
    sha256: String,
    range: Range<u64>,
    /// The digest so far, if the whole archive is sent.
    digest: Option<Sha256>,
}

fn archive_stream(
    app: App,
    sha256: String,
    range: Range<u64>,
    all: bool,
) -> impl Stream<Item = io::Result<Bytes>> {
    let sending = ArchiveStream { app, sha256, range, digest: all.then(Sha256::new) };
    stream::try_unfold(sending, |mut sending| async move {
        let piece = sending.next().await?;
        Ok(piece.map(|piece| (piece, sending)))
    })
}

impl ArchiveStream {
    async fn next(&mut self) -> io::Result<Option<Bytes>> {
        if self.range.is_empty() {
            return Ok(None);
        }
        let end = self.range.end.min(self.range.start + CHUNK_BYTES);
        let piece = registry(&self.app).blob_part(&self.sha256, self.range.start..end).await;
        let wanted = end - self.range.start;
        let piece = match piece {
            Ok(Some(piece)) if piece.len() as u64 == wanted => piece,
            Ok(_) => return Err(self.broken("it is shorter than it was")),
            Err(error) => return Err(self.broken(&error)),
        };
        self.range.start = end;
        if let Some(digest) = &mut self.digest {
            digest.update(&piece);
            if self.range.is_empty() && !self.has_expected_digest() {
                return Err(self.broken("its bytes have another digest"));
            }
        }
        Ok(Some(piece))
    }

    fn has_expected_digest(&mut self) -> bool {
        hex(&self.digest.take().unwrap_or_default().finalize()) == self.sha256
    }

    /// Aborts the connection, so that the client does not mistake an incomplete archive for a
    /// complete one.
    fn broken(&self, why: impl std::fmt::Display) -> io::Error {
        tracing::error!(blob = self.sha256, %why, "an archive cannot be sent; restore it from a backup");
        io::Error::other("the archive cannot be read")
    }
}
