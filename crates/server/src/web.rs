//! Serves the web app, whose built files are part of the binary.
//!
//! Pages of the app all answer `index.html`; the app reads the URL. A path that the API also uses
//! answers HTML only if the client prefers it.

use std::{collections::HashMap, sync::OnceLock};

use axum::{
    Router,
    extract::Request,
    http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header},
    response::{IntoResponse as _, Response},
    routing::get,
};
use savoir_skill::digest::sha256_hex;

/// All files of `ui/dist`: path and content.
static FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/web_files.rs"));

/// The first segments of the pages of the app that no route of the API uses.
const PAGES: &[&str] = &[
    "login", "setup", "skills", "runs", "chat", "knowledge", "workflows", "catalog", "admin",
    "account", "design", "machine",
];

const INDEX: &str = "index.html";

/// The folder whose file names contain a digest of the content.
const HASHED_FOLDER: &str = "assets/";

/// Scripts and styles only from files of this server, and no requests to other origins. Style
/// attributes are allowed: libraries for menus and canvases position elements with them.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    style-src-attr 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self'; \
    connect-src 'self'; worker-src 'self'; manifest-src 'self'; form-action 'self'; \
    base-uri 'none'; object-src 'none'; frame-ancestors 'none'";

/// Encodings in order of preference: name and file extension.
const ENCODINGS: [(&str, &str); 2] = [("br", ".br"), ("gzip", ".gz")];

/// The routes of the pages and files of the app.
pub fn web_app<S: Clone + Send + Sync + 'static>() -> Router<S> {
    let mut router = Router::new().route("/assets/{*path}", get(asset));
    for (name, _) in FILES.iter().filter(|(name, _)| !name.contains('/') && !is_variant(name)) {
        router = router.route(&format!("/{name}"), get(asset));
    }
    for page in PAGES {
        router = router
            .route(&format!("/{page}"), get(index))
            .route(&format!("/{page}/"), get(index))
            .route(&format!("/{page}/{{*rest}}"), get(index));
    }
    router
}

async fn index(request: Request) -> Response {
    index_page(request.headers())
}

async fn asset(request: Request) -> Response {
    match file(&request) {
        Some(response) => response,
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

/// The page that starts the app.
pub(crate) fn index_page(headers: &HeaderMap) -> Response {
    embedded().respond(INDEX, headers).unwrap_or_else(|| StatusCode::NOT_FOUND.into_response())
}

/// The response to a path without a route: for browsers, the app, which shows that the page does
/// not exist. `None` for paths of the API.
pub(crate) fn fallback(request: &Request) -> Option<Response> {
    let path = request.uri().path();
    if !is_read(request.method()) || path.starts_with("/api/") || path.starts_with("/.well-known/")
    {
        return None;
    }
    let mut page = prefers_html(request.headers()).then(|| index_page(request.headers()))?;
    *page.status_mut() = StatusCode::NOT_FOUND;
    Some(page)
}

/// The file of the app at the path of a request.
fn file(request: &Request) -> Option<Response> {
    let name = request.uri().path().strip_prefix('/')?;
    if is_variant(name) { None } else { embedded().respond(name, request.headers()) }
}

/// Whether a file is the compressed copy of another one.
fn is_variant(name: &str) -> bool {
    ENCODINGS.iter().any(|(_, extension)| name.ends_with(extension))
}

fn is_read(method: &Method) -> bool {
    *method == Method::GET || *method == Method::HEAD
}

/// Whether a client prefers HTML to JSON, as browsers do when they open a page.
pub(crate) fn prefers_html(headers: &HeaderMap) -> bool {
    let accepted = list(headers, &header::ACCEPT);
    let html = quality(&accepted, &["text/html", "application/xhtml+xml"]);
    html > 0.0 && html >= quality(&accepted, &["application/json"])
}

/// The values of a header with a list, each with its quality.
fn list(headers: &HeaderMap, name: &HeaderName) -> Vec<(String, f32)> {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values
        .flat_map(|value| value.split(','))
        .map(|item| {
            let mut parts = item.split(';').map(str::trim);
            let name = parts.next().unwrap_or_default().to_ascii_lowercase();
            let quality = parts.find_map(|part| part.strip_prefix("q=")?.parse().ok());
            (name, quality.unwrap_or(1.0))
        })
        .collect()
}

fn quality(accepted: &[(String, f32)], names: &[&str]) -> f32 {
    let named = accepted.iter().filter(|(name, _)| names.contains(&name.as_str()));
    named.map(|(_, quality)| *quality).fold(0.0, f32::max)
}

/// The files of the app by name.
struct WebFiles(HashMap<&'static str, WebFile>);

/// A file with the digest of its content.
struct WebFile {
    bytes: &'static [u8],
    digest: String,
}

/// The files that this binary contains.
fn embedded() -> &'static WebFiles {
    static KNOWN: OnceLock<WebFiles> = OnceLock::new();
    KNOWN.get_or_init(|| WebFiles::new(FILES))
}

impl WebFiles {
    fn new(files: &[(&'static str, &'static [u8])]) -> Self {
        let file = |(name, bytes): &(&'static str, &'static [u8])| {
            let mut digest = sha256_hex(bytes);
            digest.truncate(32);
            (*name, WebFile { bytes, digest })
        };
        Self(files.iter().map(file).collect())
    }

    /// The best variant of a file for a client; `None` if the app has no such file.
    fn respond(&self, name: &str, headers: &HeaderMap) -> Option<Response> {
        let (file, encoding) = self.variant(name, headers)?;
        let tag = format!("\"{}\"", file.digest);
        let mut response = if matches(headers, &tag) {
            StatusCode::NOT_MODIFIED.into_response()
        } else {
            let mut response = file.bytes.into_response();
            set(response.headers_mut(), header::CONTENT_TYPE, content_type(name));
            if let Some(encoding) = encoding {
                set(response.headers_mut(), header::CONTENT_ENCODING, encoding);
            }
            response
        };
        let answered = response.headers_mut();
        if let Ok(tag) = HeaderValue::from_str(&tag) {
            answered.insert(header::ETAG, tag);
        }
        let varies = if name == INDEX { "accept, accept-encoding" } else { "accept-encoding" };
        set(answered, header::VARY, varies);
        set(answered, header::CACHE_CONTROL, cache_control(name));
        set(answered, header::X_CONTENT_TYPE_OPTIONS, "nosniff");
        // An SVG file that is opened as a page could run scripts.
        if matches!(name.rsplit_once('.'), Some((_, "html" | "svg"))) {
            protect(answered);
        }
        Some(response)
    }

    /// The smallest variant that a client accepts, with its encoding.
    fn variant(&self, name: &str, headers: &HeaderMap) -> Option<(&WebFile, Option<&'static str>)> {
        let plain = self.0.get(name)?;
        let accepted = list(headers, &header::ACCEPT_ENCODING);
        let compressed = ENCODINGS.iter().find_map(|(encoding, extension)| {
            let wanted = quality(&accepted, &[encoding]) > 0.0;
            let file = wanted.then(|| self.0.get(format!("{name}{extension}").as_str()));
            Some((file.flatten()?, Some(*encoding)))
        });
        Some(compressed.unwrap_or((plain, None)))
    }
}

/// The headers of pages: no scripts from elsewhere, no frames, no referrer, no sensors.
fn protect(headers: &mut HeaderMap) {
    set(headers, header::CONTENT_SECURITY_POLICY, POLICY);
    set(headers, header::X_FRAME_OPTIONS, "DENY");
    set(headers, header::REFERRER_POLICY, "no-referrer");
    set(headers, HeaderName::from_static("cross-origin-opener-policy"), "same-origin");
    set(
        headers,
        HeaderName::from_static("permissions-policy"),
        "camera=(), microphone=(), geolocation=(), payment=(), usb=(), clipboard-write=(self)",
    );
}

fn set(headers: &mut HeaderMap, name: HeaderName, value: &'static str) {
    headers.insert(name, HeaderValue::from_static(value));
}

fn matches(headers: &HeaderMap, tag: &str) -> bool {
    let known =
        headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    known.flat_map(|value| value.split(',')).any(|known| {
        let known = known.trim();
        known == "*" || known.strip_prefix("W/").unwrap_or(known) == tag
    })
}

fn cache_control(name: &str) -> &'static str {
    if name.starts_with(HASHED_FOLDER) {
        "public, max-age=31536000, immutable"
    } else if name == INDEX {
        "no-cache"
    } else {
        "public, max-age=3600"
    }
}

fn content_type(name: &str) -> &'static str {
    match name.rsplit('.').next().unwrap_or_default() {
        "html" => "text/html; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "json" | "map" => "application/json",
        "webmanifest" => "application/manifest+json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "txt" => "text/plain; charset=utf-8",
        "wasm" => "application/wasm",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use axum::body::HttpBody as _;

    use super::*;

    fn accepts(value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(header::ACCEPT, HeaderValue::from_static(value))])
    }

    #[test]
    fn browsers_prefer_html() {
        let browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
        assert!(prefers_html(&accepts(browser)));
        assert!(prefers_html(&accepts("application/json;q=0.5, text/html;q=0.9")));
        for other in ["*/*", "application/json", "application/json, text/html;q=0.5", ""] {
            assert!(!prefers_html(&accepts(other)), "{other}");
        }
        assert!(!prefers_html(&HeaderMap::new()));
    }

    #[test]
    fn policy_allows_no_inline_script() {
        assert!(POLICY.contains("script-src 'self';"));
        assert!(!POLICY.contains("unsafe-eval"));
        assert!(POLICY.contains("frame-ancestors 'none'"));
    }

    #[test]
    fn accepted_variant_is_sent() {
        let files = WebFiles::new(&[
            ("assets/a.js", b"plain"),
            ("assets/a.js.br", b"brotli"),
            ("assets/a.js.gz", b"gzip"),
            ("b.svg", b"<svg/>"),
        ]);
        let sent = |name, accepted: &'static str| {
            let accepted = (header::ACCEPT_ENCODING, HeaderValue::from_static(accepted));
            files.respond(name, &HeaderMap::from_iter([accepted])).unwrap()
        };
        for (accepted, encoding, length) in [
            ("gzip, deflate, br, zstd", "br", "6"),
            ("gzip", "gzip", "4"),
            ("br;q=0, gzip;q=0.5", "gzip", "4"),
            ("identity", "", "5"),
        ] {
            let response = sent("assets/a.js", accepted);
            let header = |name: &str| match response.headers().get(name) {
                Some(value) => value.to_str().unwrap().to_owned(),
                None => String::new(),
            };
            assert_eq!(header("content-encoding"), encoding, "{accepted}");
            assert_eq!(header("vary"), "accept-encoding");
            assert_eq!(header("content-type"), "text/javascript; charset=utf-8");
            assert_eq!(response.body().size_hint().exact(), length.parse().ok());
        }
        let tags: std::collections::BTreeSet<_> = ["br", "gzip", ""]
            .map(|accepted| sent("assets/a.js", accepted).headers()[header::ETAG].clone())
            .into_iter()
            .map(|tag| tag.to_str().unwrap().to_owned())
            .collect();
        assert_eq!(tags.len(), 3);
        assert!(sent("b.svg", "br").headers().contains_key(header::CONTENT_SECURITY_POLICY));
    }

    #[test]
    fn every_text_file_has_known_type() {
        for (name, _) in FILES {
            let name = name.trim_end_matches(".br").trim_end_matches(".gz");
            assert_ne!(content_type(name), "application/octet-stream", "{name}");
        }
    }

    #[test]
    fn hashed_files_are_cached_forever() {
        assert!(cache_control("assets/index-1a2b.js").contains("immutable"));
        assert_eq!(cache_control("index.html"), "no-cache");
    }
}
