//! Rules about pages that ask for a password and send it away.

use savoir_skill::Span;

use crate::{
    Confidence, Severity,
    collect::extension,
    context::FindingDraft,
    fragment::{Language, Role, TextFragment},
    host::find_urls,
    value,
};

use super::exfiltration::is_unknown_host;

const PASSWORD_FORM_MESSAGE: &str = "a web page asks for a password and sends it to a host";

/// Finds password forms with a known target address.
pub(super) fn check_forms(fragment: &TextFragment<'_>) -> Vec<(Span, FindingDraft)> {
    if fragment.language == Language::Markdown || fragment.role == Role::Instructions {
        return Vec::new();
    }
    let forms = value::password_form_targets(&fragment.text)
        .into_iter()
        .filter(|(_, to)| is_unknown_host(to));
    forms
        .map(|(at, _)| {
            let draft =
                FindingDraft::new(Severity::High, Confidence::Medium, PASSWORD_FORM_MESSAGE);
            (Span::new(at, at), draft)
        })
        .collect()
}

/// Calls with which the script of a page sends data.
const SEND_CALLS: [&str; 6] = ["fetch(", "sendBeacon(", ".open(", ".src =", ".post(", "WebSocket("];

/// Finds pages with a password field whose scripts send data to a host.
pub(super) fn check_page_scripts(fragment: &TextFragment<'_>) -> Vec<(Span, FindingDraft)> {
    let page = fragment.depth == 0 && matches!(extension(&fragment.path).as_str(), "html" | "htm");
    // A script that goes into pages finds the field in them.
    let finds = ["input[type=password]", "input[type=\"password\"]", "input[type='password']"];
    let script = fragment.language == Language::JavaScript
        && finds.iter().any(|mark| fragment.text.contains(mark))
        && fragment.text.contains(".value");
    let asks = script || page && value::has_password_field(&fragment.text);
    if !asks {
        return Vec::new();
    }
    let text: &str = &fragment.text;
    let mut found = Vec::new();
    for (at, url) in find_urls(text).into_iter().filter(|(_, url)| is_unknown_host(url)) {
        let before = text[..at].trim_end_matches(['"', '\'', '`', ' ']);
        let method = ["'POST',", "\"POST\",", "'PUT',", "\"PUT\","];
        let before = method.iter().find_map(|verb| before.strip_suffix(verb)).unwrap_or(before);
        if SEND_CALLS.iter().any(|sender| before.ends_with(sender)) {
            let draft =
                FindingDraft::new(Severity::High, Confidence::Medium, PASSWORD_FORM_MESSAGE);
            found.push((Span::new(at, at + url.len()), draft));
        }
    }
    found
}
