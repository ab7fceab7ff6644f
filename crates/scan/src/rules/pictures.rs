//! Finds addresses of pictures and links in code blocks that the agent fills with private data. Whoever
//! shows such a picture sends the data to the host.

use savoir_skill::{Span, markdown::Outline};

use crate::{
    Confidence, Severity,
    context::FindingDraft,
    fragment::{Language, TextFragment, fence_language},
    host::find_urls,
    passage::Passage,
    phrase::phrases,
};

use super::exfiltration::is_unknown_host;

/// How much of the text before and after a code block says what is filled in.
const MAX_DISTANCE: usize = 500;

phrases! { FILLS:
    "fill|replace|substitute|set|put|change|insert ~14 with|to|by|into|place|in",
    "is|are|holds|contains|carries|takes|where ~7 base64|hex|encoded|form|content|contents",
}

phrases! { PRIVATE:
    "values|keys|content|contents ~3 reviewed|saw|file|files|read|config|configuration",
    "conversation|chat|transcript|prompt|prompts",
}

/// Finds addresses with a gap in code blocks, next to a text that fills the gap with private data.
pub(super) fn find_filled_addresses(fragment: &TextFragment<'_>) -> Vec<(Span, FindingDraft)> {
    let text: &str = &fragment.text;
    let Some(prose) = fragment.prose() else { return Vec::new() };
    if fragment.language != Language::Markdown || prose.text.len() != text.len() {
        return Vec::new();
    }
    let outline = Outline::new(text, Span::new(0, text.len()));
    let mut found = Vec::new();
    for fence in &outline.fences {
        let content = fence.content.slice(text);
        let language = fence_language(fence.info.slice(text), content);
        if !matches!(language, Language::Markdown | Language::Other) {
            continue;
        }
        let mut urls = find_urls(content).into_iter();
        let gap = urls.find(|(at, url)| is_unknown_host(url) && has_gap(content, *at, url));
        let Some((at, url)) = gap else { continue };
        let start = boundary(&prose.text, fence.whole.start.saturating_sub(MAX_DISTANCE));
        let end = boundary(&prose.text, (fence.whole.end + MAX_DISTANCE).min(text.len()));
        let around = Passage::new(&prose.text[start..end], start);
        let private = around.secrets() > 1
            || around.mentions_conversation()
            || around.matches(&PRIVATE) && around.says_to_encode();
        let fills = around.matches(&FILLS) || around.says_to_encode();
        if private && fills && !around.warns() {
            let message = format!("an address that is shown or opened sends data to `{url}`");
            let start = fence.content.start + at;
            let draft = FindingDraft::new(Severity::High, Confidence::Medium, message);
            found.push((Span::new(start, start + url.len()), draft));
        }
    }
    found
}

/// Whether a part of an address is to be filled in: `?d=DATA`, `/{data}.png`, `?x=<text>`.
fn has_gap(text: &str, at: usize, url: &str) -> bool {
    let next = text[at + url.len()..].chars().next();
    let is_open = matches!(next, Some('{' | '<' | '[' | '$'));
    let path = url.split_once("://").map_or("", |(_, rest)| rest);
    let mut parts = path.split(['/', '?', '=', '&', '.', '#']).skip(1);
    is_open
        || parts.any(|part| {
            part.len() > 3 && part.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_')
        })
        || url.contains('$')
}

fn boundary(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}
