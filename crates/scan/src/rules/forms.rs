//! Pages of a skill that ask for a password and send it to somebody.

use savoir_skill::Span;

use crate::{
    Confidence, Severity,
    context::Told,
    gather::ending,
    host::urls,
    piece::{Language, Piece, Role},
    value,
};

use super::exfiltration::is_somebody;

const MESSAGE: &str = "a page asks for a password and sends it to somebody";

/// Forms whose address is written down.
pub(super) fn posted(piece: &Piece<'_>) -> Vec<(Span, Told)> {
    if piece.language == Language::Markdown || piece.role == Role::Instructions {
        return Vec::new();
    }
    let forms = value::posted(&piece.text).into_iter().filter(|(_, to)| is_somebody(to));
    forms
        .map(|(at, _)| {
            let told = Told::new(Severity::High, Confidence::Medium, MESSAGE);
            (Span::new(at, at), told)
        })
        .collect()
}

/// Ways in which a script of a page sends something.
const SENDERS: [&str; 6] = ["fetch(", "sendBeacon(", ".open(", ".src =", ".post(", "WebSocket("];

/// Pages with such a field whose scripts send to somebody.
pub(super) fn scripted(piece: &Piece<'_>) -> Vec<(Span, Told)> {
    let page = piece.depth == 0 && matches!(ending(&piece.path).as_str(), "html" | "htm");
    // A script that goes into pages finds the field in them.
    let finds = ["input[type=password]", "input[type=\"password\"]", "input[type='password']"];
    let script = piece.language == Language::JavaScript
        && finds.iter().any(|mark| piece.text.contains(mark))
        && piece.text.contains(".value");
    let asks = script || page && value::asks_password(&piece.text);
    if !asks {
        return Vec::new();
    }
    let text: &str = &piece.text;
    let mut found = Vec::new();
    for (at, url) in urls(text).into_iter().filter(|(_, url)| is_somebody(url)) {
        let before = text[..at].trim_end_matches(['"', '\'', '`', ' ']);
        let method = ["'POST',", "\"POST\",", "'PUT',", "\"PUT\","];
        let before = method.iter().find_map(|verb| before.strip_suffix(verb)).unwrap_or(before);
        if SENDERS.iter().any(|sender| before.ends_with(sender)) {
            let told = Told::new(Severity::High, Confidence::Medium, MESSAGE);
            found.push((Span::new(at, at + url.len()), told));
        }
    }
    found
}
