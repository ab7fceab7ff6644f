//! HTML pages without scripts and external resources.

use std::sync::OnceLock;

use axum::{
    http::{HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use sha2::{Digest as _, Sha256};

const STYLE: &str = "\
:root{color-scheme:light dark;font:16px/1.5 system-ui,sans-serif}\
body{max-width:54rem;margin:2rem auto;padding:0 1rem}\
h1,h2{line-height:1.2}h2{margin-top:2.5rem}h3{margin:2rem 0 .25rem;font-size:1rem}\
pre,code{font:14px/1.45 ui-monospace,monospace}\
pre{padding:.75rem;overflow:auto;border:1px solid #8886;border-radius:.35rem}\
label{display:block;margin:1rem 0 .25rem}\
input{font:inherit;padding:.4rem .5rem;width:22rem;max-width:100%;box-sizing:border-box}\
button{font:inherit;margin-top:1.25rem;padding:.4rem 1.25rem}\
table{border-collapse:collapse}td,th{padding:.15rem 1rem .15rem 0;text-align:left;\
vertical-align:top}textarea{font:inherit;width:100%;box-sizing:border-box}\
pre.text{white-space:pre-wrap}.error{border-left:.25rem solid #c33;padding-left:.75rem}\
summary{cursor:pointer}";

/// A page with a title and a body. Text from users in `body` must already be escaped.
pub(crate) fn page(status: StatusCode, title: &str, body: &str) -> Response {
    answer(status, "no-store", html(title, body).into())
}

/// The HTML of a page.
pub(crate) fn html(title: &str, body: &str) -> String {
    let title = escape(title);
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\n\
         <style>{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n{body}\n</body>\n</html>\n"
    )
}

/// A response with a page. Its content security policy forbids loading, scripts and framing.
pub(crate) fn answer(status: StatusCode, cache: &'static str, html: Bytes) -> Response {
    let mut response = (status, html).into_response();
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CACHE_CONTROL, cache),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if let Ok(policy) = HeaderValue::from_str(policy()) {
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    response
}

/// Allows a page to be shown in frames of other sites.
pub(crate) fn allow_framing(mut page: Response) -> Response {
    let headers = page.headers_mut();
    headers.remove(header::X_FRAME_OPTIONS);
    let policy = policy().replace("frame-ancestors 'none'", "frame-ancestors *");
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    page
}

fn policy() -> &'static str {
    static POLICY: OnceLock<String> = OnceLock::new();
    POLICY.get_or_init(|| {
        let style = STANDARD.encode(Sha256::digest(STYLE));
        format!(
            "default-src 'none'; style-src 'sha256-{style}'; form-action 'self'; base-uri 'none'; \
             frame-ancestors 'none'"
        )
    })
}

/// Escapes a text for HTML content and quoted attributes.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            // Browsers replace or drop NUL.
            '\0' => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped() {
        assert_eq!(
            escape("<a href=\"x\" id='y'>&amp;</a>\0ä"),
            "&lt;a href=&quot;x&quot; id=&#39;y&#39;&gt;&amp;amp;&lt;/a&gt;\u{fffd}ä"
        );
        assert_eq!(escape(""), "");
        let page = html("<script>", "");
        assert!(page.contains("<title>&lt;script&gt;</title>"));
        assert!(!page.contains("<script"));
    }

    #[test]
    fn style_hash_matches_policy() {
        let page = html("t", "");
        let style = page.split("<style>").nth(1).unwrap().split("</style>").next().unwrap();
        let digest = STANDARD.encode(Sha256::digest(style));
        assert!(policy().contains(&digest));
        assert!(!policy().contains("unsafe"));
    }
}
