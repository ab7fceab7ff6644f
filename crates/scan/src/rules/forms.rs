//! Rules about pages that ask for a password and send it away.

use savoir_skill::Span;

use crate::{
    Confidence, Severity,
    collect::extension,
    context::FindingDraft,
    fragment::{Language, Role, TextFragment},
    host::urls,
    value,
};

use super::exfiltration::is_somebody;

const MESSAGE: &str = "a web page asks for a password and sends it to a host";

/// Forms whose address is written down.
pub(super) fn posted(fragment: &TextFragment<'_>) -> Vec<(Span, FindingDraft)> {
    if fragment.language == Language::Markdown || fragment.role == Role::Instructions {
        return Vec::new();
    }
    let forms = value::posted(&fragment.text).into_iter().filter(|(_, to)| is_somebody(to));
    forms
        .map(|(at, _)| {
            let draft = FindingDraft::new(Severity::High, Confidence::Medium, MESSAGE);
            (Span::new(at, at), draft)
        })
        .collect()
}

/// Ways in which a script of a page sends something.
const SENDERS: [&str; 6] = ["fetch(", "sendBeacon(", ".open(", ".src =", ".post(", "WebSocket("];

/// Pages with such a field whose scripts send to somebody.
pub(super) fn scripted(fragment: &TextFragment<'_>) -> Vec<(Span, FindingDraft)> {
    let page = fragment.depth == 0 && matches!(extension(&fragment.path).as_str(), "html" | "htm");
    // A script that goes into pages finds the field in them.
    let finds = ["input[type=password]", "input[type=\"password\"]", "input[type='password']"];
    let script = fragment.language == Language::JavaScript
        && finds.iter().any(|mark| fragment.text.contains(mark))
        && fragment.text.contains(".value");
    let asks = script || page && value::asks_password(&fragment.text);
    if !asks {
        return Vec::new();
    }
    let text: &str = &fragment.text;
    let mut found = Vec::new();
    for (at, url) in urls(text).into_iter().filter(|(_, url)| is_somebody(url)) {
        let before = text[..at].trim_end_matches(['"', '\'', '`', ' ']);
        let method = ["'POST',", "\"POST\",", "'PUT',", "\"PUT\","];
        let before = method.iter().find_map(|verb| before.strip_suffix(verb)).unwrap_or(before);
        if SENDERS.iter().any(|sender| before.ends_with(sender)) {
            let draft = FindingDraft::new(Severity::High, Confidence::Medium, MESSAGE);
            found.push((Span::new(at, at + url.len()), draft));
        }
    }
    found
}
