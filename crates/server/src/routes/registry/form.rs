//! Reads the multipart form of a publish request.

use std::{collections::HashSet, time::Duration};

use axum::{
    body::Body,
    extract::{
        DefaultBodyLimit, FromRequest as _, Multipart, Request,
        multipart::{Field, MultipartError},
    },
    http::{StatusCode, header},
};
use bytes::Bytes;
use http_body_util::Limited;
use savoir_package::limits::MAX_ARCHIVE_BYTES;
use tokio::time::timeout;

use super::{
    error::{RegistryApiError, RegistryResult},
    extract::Query,
};
use crate::{body, limits::BODY_TIMEOUT_SECONDS};

/// Maximum bytes of the form: the archive and all other parts.
const MAX_FORM_BYTES: usize = MAX_ARCHIVE_BYTES as usize + 3 * 1024 * 1024;
/// Maximum bytes of a text part.
const MAX_TEXT_BYTES: usize = 1024 * 1024;
/// The names of known parts.
const PART_NAMES: [&str; 7] =
    ["artifact", "skill", "audit", "namespace", "name", "version", "changelog"];

/// The parts of a publish request.
#[derive(Debug, Default)]
pub(super) struct Form {
    pub(super) artifact: Bytes,
    /// A second copy of the SKILL.md in the archive.
    pub(super) skill: Option<Bytes>,
    pub(super) namespace: Option<String>,
    /// The name of a text without a SKILL.md.
    pub(super) name: Option<String>,
    /// The version that the publisher expects; publishing fails if it differs.
    pub(super) version: Option<String>,
    pub(super) changelog: Option<String>,
    /// The report of a scan, as JSON.
    pub(super) audit: Option<Bytes>,
}

impl Form {
    /// Reads a form, or an archive alone. Slow uploads time out.
    pub(super) async fn read(request: Request) -> RegistryResult<Self> {
        let query = Query::of(request.uri());
        let kind = request.headers().get(header::CONTENT_TYPE);
        let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let mut form = match kind.as_str() {
            "multipart/form-data" => {
                let reading = timeout(
                    Duration::from_secs(BODY_TIMEOUT_SECONDS),
                    Self::read_within_timeout(request),
                );
                reading.await.map_err(|_| too_slow())??
            }
            "application/zip" => {
                let artifact = body::bytes(request, MAX_ARCHIVE_BYTES as usize).await?;
                Self { artifact, ..Self::default() }
            }
            _ => {
                return Err(RegistryApiError::new(
                    StatusCode::UNSUPPORTED_MEDIA_TYPE,
                    "unsupported_media_type",
                    "send multipart/form-data with a part `artifact`, or application/zip",
                ));
            }
        };
        for (name, place) in [
            ("namespace", &mut form.namespace),
            ("name", &mut form.name),
            ("version", &mut form.version),
        ] {
            if let (Some(text), None) = (query.text(name), place.as_ref()) {
                *place = Some(text.to_owned());
            }
        }
        if form.artifact.is_empty() {
            return Err(RegistryApiError::invalid(
                "the part `artifact`, with the archive, is missing",
            ));
        }
        Ok(form)
    }

    async fn read_within_timeout(request: Request) -> RegistryResult<Self> {
        let mut request = request.map(|body| Body::new(Limited::new(body, MAX_FORM_BYTES)));
        // The default limit of axum is lower.
        DefaultBodyLimit::disable().apply(&mut request);
        let parts = Multipart::from_request(request, &()).await;
        let mut parts = parts.map_err(|_| RegistryApiError::invalid("the form has no boundary"))?;
        let form = Self::read_parts(&mut parts).await;
        if form.is_err() {
            // Read the rest of the upload: a client that is still sending would not see the
            // response, only a broken connection.
            while let Ok(Some(_)) = parts.next_field().await {}
        }
        form
    }

    async fn read_parts(parts: &mut Multipart) -> RegistryResult<Self> {
        let mut form = Self::default();
        let mut seen = HashSet::new();
        while let Some(field) = parts.next_field().await.map_err(|error| form_error(&error))? {
            let name = field.name().unwrap_or_default().to_owned();
            if PART_NAMES.contains(&name.as_str()) && !seen.insert(name.clone()) {
                // Otherwise, programs that read the first part and programs that read the last one
                // would see different packages.
                return Err(RegistryApiError::invalid(format!("the part `{name}` is there twice")));
            }
            match name.as_str() {
                "artifact" => {
                    form.artifact = bytes(field, "artifact", MAX_ARCHIVE_BYTES as usize).await?;
                }
                "skill" => {
                    form.skill = Some(bytes(field, "skill", MAX_TEXT_BYTES).await?);
                }
                "audit" => {
                    form.audit = Some(bytes(field, "audit", MAX_TEXT_BYTES).await?);
                }
                "namespace" => form.namespace = text(field, "namespace").await?,
                "name" => form.name = text(field, "name").await?,
                "version" => form.version = text(field, "version").await?,
                "changelog" => form.changelog = text(field, "changelog").await?,
                // Unknown parts are ignored, so that clients can send more.
                _ => {}
            }
        }
        Ok(form)
    }
}

async fn bytes(mut field: Field<'_>, name: &str, most: usize) -> RegistryResult<Bytes> {
    let mut all = Vec::new();
    while let Some(some) = field.chunk().await.map_err(|error| form_error(&error))? {
        if all.len() + some.len() > most {
            let message = format!("the part `{name}` has more than {most} bytes");
            return Err(RegistryApiError::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                "artifact_too_large",
                message,
            ));
        }
        all.extend_from_slice(&some);
    }
    Ok(all.into())
}

/// The text of a part; `None` if it is empty.
async fn text(field: Field<'_>, name: &str) -> RegistryResult<Option<String>> {
    let bytes = bytes(field, name, MAX_TEXT_BYTES).await?;
    let text = String::from_utf8(bytes.into())
        .map_err(|_| RegistryApiError::invalid(format!("the part `{name}` is not UTF-8")))?;
    Ok(Some(text).filter(|text| !text.is_empty()))
}

fn form_error(error: &MultipartError) -> RegistryApiError {
    if error.status() == StatusCode::PAYLOAD_TOO_LARGE {
        let message = format!("the form has more than {MAX_FORM_BYTES} bytes");
        return RegistryApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "artifact_too_large", message);
    }
    RegistryApiError::invalid("the form ends early, or is none; send its parts between boundaries")
}

fn too_slow() -> RegistryApiError {
    let message = "the form did not arrive in time; try again on a faster line";
    RegistryApiError::new(StatusCode::REQUEST_TIMEOUT, "too_slow", message)
}
