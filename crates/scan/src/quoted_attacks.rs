//! Recognizes attacks that a document about attacks quotes as examples.
//!
//! Such a document is part of a skill that is about attacks, and the example stands below a heading such
//! as `## Red flags`. Text above an example that tells the agent to run it makes it an order again.

use savoir_skill::{Span, markdown::Outline};

use super::{
    fragment::{Role, TextFragment},
    passage::Passage,
    phrase::phrases,
};

/// Parts of headings that announce examples of attacks.
const HEADINGS: [&str; 37] = [
    "red flag", "warning sign", "sign of", "signs of", "scam", "attack", "malicious", "malware",
    "exploit", "injection", "payload", "vulnerab", "dangerous", "suspicious", "phishing", "threat",
    "evasion", "obfuscat", "exfiltrat", "anti-pattern", "antipattern", "bad example", "look for",
    "indicator", "reverse shell", "backdoor", "credential", "poison", "example", "sample", "layer",
    "escalation", "supply chain", "jailbreak", "insecure", "unsafe", "fixture",
];

phrases! { ORDERS:
    "run|execute|install|paste|start|launch|follow|use|perform ~3 this|the|it|these|following|below|first|command|commands|script|them",
    "before|first ~4 run|execute|install|start",
}

/// How far above an example an order to run it can stand.
const MAX_ORDER_BYTES: usize = 600;

/// Whether a place in a document of a skill about attacks is an example of an attack.
pub(super) fn is_example(fragment: &TextFragment<'_>, span: Span) -> bool {
    if !matches!(fragment.role, Role::Instructions | Role::Document) {
        return false;
    }
    let text = fragment.file_text();
    let at = fragment.file_offset(span.start).min(text.len());
    let is_instructions = fragment.role == Role::Instructions;
    let Some(heading_end) = attack_heading(text, at, is_instructions) else { return false };
    let outline = Outline::new(text, Span::new(0, text.len()));
    let open = outline.fences.iter().find(|fence| fence.whole.contains(at));
    let end = open.map_or(at, |fence| fence.whole.start);
    let above = outline.fences.iter().filter(|fence| fence.whole.end <= end);
    let start = above.map(|fence| fence.whole.end).max().unwrap_or(0).max(heading_end);
    let mut start = start.max(end.saturating_sub(MAX_ORDER_BYTES)).min(end);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    let before = Passage::new(text.get(start..end).unwrap_or_default(), start);
    !before.orders(&ORDERS)
}

/// A text in which list items that are quotations are blank: `- "Enter your password within 24 hours."`
/// in a skill about attacks is what a victim reads.
pub(super) fn without_quotations(text: &str) -> Option<String> {
    let mut blank = String::with_capacity(text.len());
    let mut is_changed = false;
    for line in text.split_inclusive('\n') {
        let item = line.trim_start().strip_prefix(['-', '*']).map(str::trim_start);
        let said = item.and_then(|item| item.strip_prefix(['"', '\u{201c}']));
        match said.and_then(|said| said.find(['"', '\u{201d}'])) {
            Some(_) => {
                is_changed = true;
                blank.extend(
                    line.chars().map(|c| {
                        if c == '\n' { "\n".to_owned() } else { " ".repeat(c.len_utf8()) }
                    }),
                );
            }
            None => blank.push_str(line),
        }
    }
    is_changed.then_some(blank)
}

/// The end of the heading above a place, if it or one that it belongs to announces attacks.
fn attack_heading(text: &str, at: usize, is_instructions: bool) -> Option<usize> {
    let mut chain: Vec<(usize, bool)> = Vec::new();
    let mut last = 0;
    let mut offset = 0;
    let mut is_fenced = false;
    for line in text.split_inclusive('\n') {
        if offset > at {
            break;
        }
        offset += line.len();
        let start = line.trim_start();
        is_fenced ^= start.starts_with("```") || start.starts_with("~~~");
        let level = line.bytes().take_while(|byte| *byte == b'#').count();
        if is_fenced || level == 0 || level > 6 {
            continue;
        }
        let lower = line.to_lowercase();
        // The title of the instructions says what all of them are about.
        let announces =
            !(level == 1 && is_instructions) && HEADINGS.iter().any(|word| lower.contains(word));
        chain.retain(|(known, _)| *known < level);
        chain.push((level, announces));
        last = offset;
    }
    chain.iter().any(|(_, announces)| *announces).then_some(last)
}
