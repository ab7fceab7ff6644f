//! Finds invisible characters, direction controls and control characters.

use savoir_lint::{Diagnostic, Edit, Fix, Span};

use crate::{
    check::{Context, rule::rule},
    yaml::{Node, NodeData, Style},
};

rule! {
    /// The text has invisible characters.
    ///
    /// ## Why
    ///
    /// Zero-width characters split words that a search should find, and hide differences between
    /// two texts. Tag characters can contain whole instructions that only the model reads: they
    /// are an error. Joiners inside emoji and in scripts that need them are fine.
    ///
    /// ## Bad
    ///
    /// ````markdown escaped
    /// ---
    /// name: demo
    /// description: Shows a rule. Use when learning.
    /// ---
    /// Say he\u{200b}llo.
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown
    /// ---
    /// name: demo
    /// description: Shows a rule. Use when learning.
    /// ---
    /// Say hello.
    /// ````
    INVISIBLE_UNICODE = "invisible-unicode", Warning, fix Unsafe, run hidden_characters
}

rule! {
    /// The text has characters that change the direction of writing.
    ///
    /// ## Why
    ///
    /// They make a line look different from what it says, so a reviewer approves a different text
    /// than the model or the shell gets.
    ///
    /// ## Bad
    ///
    /// ````markdown escaped
    /// ---
    /// name: demo
    /// description: Shows a rule. Use when learning.
    /// ---
    /// Open \u{202e}fdp.exe\u{202c} first.
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown
    /// ---
    /// name: demo
    /// description: Shows a rule. Use when learning.
    /// ---
    /// Open the document first.
    /// ````
    BIDI_CONTROL = "bidi-control", Error, fix Unsafe
}

rule! {
    /// The text has control characters.
    ///
    /// ## Why
    ///
    /// YAML forbids them. On a terminal, an escape sequence can delete or forge the text that a
    /// user is asked to approve. In frontmatter they are an error, even if they are written as
    /// escapes.
    ///
    /// ## Bad
    ///
    /// ````markdown escaped
    /// ---
    /// name: demo
    /// description: Shows a rule. Use when learning.
    /// ---
    /// Say \e[1mhello\e[0m.
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown
    /// ---
    /// name: demo
    /// description: Shows a rule. Use when learning.
    /// ---
    /// Say **hello**.
    /// ````
    CONTROL_CHARACTER = "control-character", Warning, fix Unsafe
}

rule! {
    /// The text has a NUL byte.
    ///
    /// ## Why
    ///
    /// Many programs treat it as the end of the text and drop the rest. It comes from broken tools
    /// and from binary files.
    ///
    /// ## Bad
    ///
    /// ````markdown escaped
    /// ---
    /// name: demo
    /// description: Shows a rule. Use when learning.
    /// ---
    /// Say hel\0lo.
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown
    /// ---
    /// name: demo
    /// description: Shows a rule. Use when learning.
    /// ---
    /// Say hello.
    /// ````
    NUL_BYTE = "nul-byte", Error, fix Unsafe
}

/// The kind of a hidden character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HiddenKind {
    /// U+E0000 to U+E007F: invisible ASCII.
    Tag,
    /// Nothing to see.
    ZeroWidth,
    /// Chooses between shapes of the character before it; a second one chooses nothing.
    Selector,
    /// Turns the direction of writing.
    Bidi,
    /// C0 or C1.
    Control,
    /// The zero byte.
    Nul,
}

/// Most places that one code names; four codes share the limit of one rule.
const MAX_PLACES: usize = 12;

/// Bytes that are looked at together; long enough for vector instructions.
const CHUNK_BYTES: usize = 64;

/// One pass over the text for all four rules.
pub(in crate::check) fn hidden_characters(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    let text = context.text();
    let head = context.reading.document.layout().closed_block();
    let mut scan =
        HiddenScan { text, head: head.map(|head| head.yaml), resume: 0, counts: [0; 4], found };
    let (chunks, rest) = text.as_bytes().as_chunks::<CHUNK_BYTES>();
    for (index, chunk) in chunks.iter().enumerate() {
        if chunk.iter().fold(0, |odd, byte| odd | is_odd(*byte)) != 0 {
            scan.scan_chunk(index * CHUNK_BYTES, chunk);
        }
    }
    scan.scan_chunk(chunks.len() * CHUNK_BYTES, rest);
    if let Some(head) = head
        && memchr::memchr(b'\\', head.yaml.slice(text).as_bytes()).is_some()
        && let Some(fields) = context.reading.document.fields()
    {
        escapes(fields, text, found);
    }
}

/// The state of the pass.
struct HiddenScan<'a> {
    text: &'a str,
    head: Option<Span>,
    /// What lies before was looked at as part of a run.
    resume: usize,
    counts: [usize; 4],
    found: &'a mut Vec<Diagnostic>,
}

impl HiddenScan<'_> {
    fn scan_chunk(&mut self, start: usize, part: &[u8]) {
        for (offset, byte) in part.iter().enumerate() {
            if FIRST_BYTES[usize::from(*byte)] {
                self.scan_position(start + offset);
            }
        }
    }

    fn scan_position(&mut self, at: usize) {
        if at < self.resume {
            return;
        }
        let Some((kind, _)) = classify(self.text.as_bytes(), at) else { return };
        let run = run_at(self.text, at, kind);
        self.resume = run.end;
        if is_fine(self.text, run, kind) {
            return;
        }
        let count = &mut self.counts[count_index(kind)];
        *count += 1;
        let in_head = self.head.is_some_and(|head| head.contains(at));
        let problem = problem(self.text, run, kind, in_head);
        if *count <= MAX_PLACES {
            self.found.push(problem);
        } else if let Some(fix) = problem.fix {
            // This place is not reported, but the fix of the last reported one fixes it too.
            let mut shown = self.found.iter_mut().rev().filter(|shown| shown.code == problem.code);
            if let Some(last) = shown.find_map(|shown| shown.fix.as_mut()) {
                last.edits.extend(fix.edits);
            }
        }
    }
}

/// Bytes with which a character begins that [`classify`] may know.
const FIRST_BYTES: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 0x20 {
        table[byte] = !matches!(byte, 0x09 | 0x0A | 0x0D);
        byte += 1;
    }
    let leads = [0x7F, 0xC2, 0xCD, 0xD8, 0xE1, 0xE2, 0xE3, 0xEF, 0xF3];
    let mut index = 0;
    while index < leads.len() {
        table[leads[index]] = true;
        index += 1;
    }
    table
};

fn count_index(kind: HiddenKind) -> usize {
    match kind {
        HiddenKind::Tag | HiddenKind::ZeroWidth | HiddenKind::Selector => 0,
        HiddenKind::Bidi => 1,
        HiddenKind::Control => 2,
        HiddenKind::Nul => 3,
    }
}

/// One if a byte is neither printable ASCII nor a blank. Written without branches, so that many
/// bytes are looked at together.
fn is_odd(byte: u8) -> u8 {
    let blank = u8::from(byte == b'\n') | u8::from(byte == b'\t') | u8::from(byte == b'\r');
    u8::from(byte < 0x20) & (blank ^ 1) | u8::from(byte >= 0x7F)
}

/// The kind of the character that begins at `at`, and its length in bytes.
fn classify(bytes: &[u8], at: usize) -> Option<(HiddenKind, usize)> {
    let next = |by: usize| bytes.get(at + by).copied().unwrap_or(0);
    let found = match *bytes.get(at)? {
        0 => (HiddenKind::Nul, 1),
        b'\t' | b'\n' | b'\r' => return None,
        0x01..=0x1F | 0x7F => (HiddenKind::Control, 1),
        0xC2 if (0x80..=0x9F).contains(&next(1)) => (HiddenKind::Control, 2),
        // Soft hyphen, grapheme joiner, Arabic letter mark.
        0xC2 if next(1) == 0xAD => (HiddenKind::ZeroWidth, 2),
        0xCD if next(1) == 0x8F => (HiddenKind::ZeroWidth, 2),
        0xD8 if next(1) == 0x9C => (HiddenKind::ZeroWidth, 2),
        lead @ (0xE1 | 0xE2 | 0xE3 | 0xEF) => match (lead, next(1), next(2)) {
            (0xE2, 0x80, 0xAA..=0xAE) | (0xE2, 0x81, 0xA6..=0xA9) => (HiddenKind::Bidi, 3),
            // Zero-width space and joiners, direction marks, line and paragraph separator, word
            // joiner and invisible operators, fillers, byte order mark.
            (0xE2, 0x80, 0x8B..=0x8F | 0xA8 | 0xA9)
            | (0xE2, 0x81, 0xA0..=0xA4 | 0xAA..=0xAF)
            | (0xE1, 0x85, 0x9F | 0xA0)
            | (0xE1, 0xA0, 0x8E)
            | (0xE3, 0x85, 0xA4)
            | (0xEF, 0xBE, 0xA0) => (HiddenKind::ZeroWidth, 3),
            (0xEF, 0xBB, 0xBF) if at > 0 => (HiddenKind::ZeroWidth, 3),
            (0xEF, 0xB8, 0x80..=0x8F) => (HiddenKind::Selector, 3),
            _ => return None,
        },
        0xF3 if next(1) == 0xA0 && next(2) < 0x82 => (HiddenKind::Tag, 4),
        0xF3 if next(1) == 0xA0 && (0x84..=0x87).contains(&next(2)) => (HiddenKind::Selector, 4),
        _ => return None,
    };
    Some(found)
}

/// The characters of one kind that follow each other.
fn run_at(text: &str, at: usize, kind: HiddenKind) -> Span {
    let bytes = text.as_bytes();
    let mut end = at;
    while let Some((found, length)) = classify(bytes, end)
        && found == kind
    {
        end = (end + length).min(bytes.len());
        // An escape sequence goes as one piece.
        if kind == HiddenKind::Control && bytes[end - 1] == 0x1B && bytes.get(end) == Some(&b'[') {
            let rest = &bytes[end + 1..];
            let parameters =
                rest.iter().take_while(|byte| matches!(byte, b'0'..=b'?')).count().min(16);
            let last = end + 1 + parameters;
            if bytes.get(last).is_some_and(u8::is_ascii_alphabetic) {
                end = last + 1;
            }
        }
    }
    Span::new(at, end)
}

/// Whether the characters are legitimate at this position.
fn is_fine(text: &str, run: Span, kind: HiddenKind) -> bool {
    let before = text[..run.start].chars().next_back();
    let after = text[run.end..].chars().next();
    let either = |test: fn(char) -> bool| before.is_some_and(test) || after.is_some_and(test);
    match kind {
        HiddenKind::Selector => run.len() <= 4,
        // A flag of a region is a black flag with the letters of the region as tags.
        HiddenKind::Tag => before == Some('\u{1f3f4}') && run.len() <= 28,
        HiddenKind::ZeroWidth => match run.slice(text) {
            "\u{200d}" => {
                either(needs_joiners)
                    || (before.is_some_and(is_symbol) && after.is_some_and(is_symbol))
            }
            "\u{200c}" => either(needs_joiners),
            "\u{200e}" | "\u{200f}" | "\u{61c}" => is_near_right_to_left(text, run),
            _ => false,
        },
        HiddenKind::Bidi | HiddenKind::Control | HiddenKind::Nul => false,
    }
}

/// Letters of scripts in which joiners decide how a word looks: Arabic to Khmer and Mongolian.
fn needs_joiners(c: char) -> bool {
    matches!(c, '\u{600}'..='\u{109f}' | '\u{1780}'..='\u{18af}' | '\u{a840}'..='\u{abff}' | '\u{fb50}'..='\u{fdff}' | '\u{fe70}'..='\u{fefe}' | '\u{11000}'..='\u{11fff}')
}

/// Whether a character is an emoji or part of an emoji sequence.
fn is_symbol(c: char) -> bool {
    matches!(c, '\u{2190}'..='\u{2bff}' | '\u{fe0f}' | '\u{1f000}'..='\u{1faff}')
}

fn is_near_right_to_left(text: &str, run: Span) -> bool {
    let right_to_left = |c: char| matches!(c, '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefe}');
    text[..run.start].chars().rev().take(24).any(right_to_left)
        || text[run.end..].chars().take(24).any(right_to_left)
}

fn problem(text: &str, run: Span, kind: HiddenKind, in_head: bool) -> Diagnostic {
    let hidden = run.slice(text);
    let delete = Fix::unsafe_edits(vec![Edit::delete(run)]);
    match kind {
        HiddenKind::Tag => tags(hidden, run),
        HiddenKind::ZeroWidth => Diagnostic::warning(
            INVISIBLE_UNICODE.code,
            run,
            format!("{} here", describe_characters(hidden, "invisible character")),
        )
        .help("delete it, unless a script of the text needs it")
        .fix(delete),
        HiddenKind::Selector => Diagnostic::warning(
            INVISIBLE_UNICODE.code,
            run,
            format!(
                "{} variation selectors in a row, which can carry hidden text",
                hidden.chars().count()
            ),
        )
        .help("delete them")
        .fix(delete),
        HiddenKind::Bidi => Diagnostic::error(
            BIDI_CONTROL.code,
            run,
            format!(
                "{} here, so the line looks different from its real text",
                describe_characters(hidden, "direction control")
            ),
        )
        .help("delete it")
        .fix(delete),
        HiddenKind::Control => {
            let message = format!("{} here", describe_characters(hidden, "control character"));
            let mut problem = Diagnostic::warning(CONTROL_CHARACTER.code, run, message)
                .help("delete it")
                .fix(delete);
            if in_head {
                problem.severity = CONTROL_IN_HEAD;
            }
            problem
        }
        HiddenKind::Nul => Diagnostic::error(NUL_BYTE.code, run, "there is a NUL byte here")
            .help("delete it; if there are many, the file is not a text file")
            .fix(delete),
    }
}

/// Frontmatter is shown to users who approve a skill.
const CONTROL_IN_HEAD: savoir_lint::Severity = savoir_lint::Severity::Error;

/// `there is a control character U+0007` or `there are 3 control characters, starting with U+0007,`.
fn describe_characters(hidden: &str, what: &str) -> String {
    let first = hidden.chars().next().map_or(0, u32::from);
    match hidden.chars().count() {
        1 => {
            let article = if what.starts_with('i') { "an" } else { "a" };
            format!("there is {article} {what} U+{first:04X}")
        }
        _ if first == 0x1B => "there is a terminal escape sequence".to_owned(),
        count => format!("there are {count} {what}s, starting with U+{first:04X},"),
    }
}

/// Includes the text that the tags spell, because it is invisible.
fn tags(hidden: &str, run: Span) -> Diagnostic {
    let spelt: String = hidden
        .chars()
        .filter_map(|c| char::from_u32(u32::from(c).checked_sub(0xE0000)?))
        .filter(|c| matches!(c, ' '..='~'))
        .take(60)
        .collect();
    let count = hidden.chars().count();
    let message = if spelt.is_empty() {
        format!("there are {count} invisible tag characters here")
    } else {
        format!("{count} invisible tag characters here spell `{spelt}`")
    };
    Diagnostic::error(INVISIBLE_UNICODE.code, run, message)
        .help("find out where they come from; do not use the skill until they are removed")
}

/// Values in double quotes can hold every character as an escape.
fn escapes(node: &Node, text: &str, found: &mut Vec<Diagnostic>) {
    match &node.data {
        NodeData::Scalar { text: value, style: Style::DoubleQuoted } => {
            find_escaped_hidden_character(node, value, text, found);
        }
        NodeData::Scalar { .. } => {}
        NodeData::Sequence { items, .. } => {
            for item in items {
                escapes(item, text, found);
            }
        }
        NodeData::Mapping { entries, .. } => {
            for entry in entries {
                escapes(&entry.value, text, found);
            }
        }
    }
}

fn find_escaped_hidden_character(
    node: &Node,
    value: &str,
    text: &str,
    found: &mut Vec<Diagnostic>,
) {
    let source = node.span.slice(text);
    if !source.contains('\\') {
        return;
    }
    let bytes = value.as_bytes();
    let hidden = (0..bytes.len()).find_map(|at| {
        // A lone carriage return goes back to the start of the line on a terminal.
        let overwrites = bytes[at] == b'\r' && bytes.get(at + 1) != Some(&b'\n');
        let (kind, _) = classify(bytes, at).or(overwrites.then_some((HiddenKind::Control, 1)))?;
        let run = if overwrites { Span::new(at, at + 1) } else { run_at(value, at, kind) };
        let reported = source.contains(run.slice(value)) && !overwrites;
        (!reported && !is_fine(value, run, kind)).then_some((run, kind))
    });
    let Some((run, kind)) = hidden else { return };
    let mut problem = problem(value, run, kind, true);
    problem.message.push_str(" as an escape");
    problem.span = node.span;
    problem.fix = None;
    found.push(problem.help("write the value without the escape"));
}

#[cfg(test)]
mod tests {
    #[test]
    fn many_hidden_characters_are_fixed_at_once() {
        use crate::check::fix;
        use savoir_lint::Safety;

        let text = format!("---\nname: a\ndescription: b\n---\n{}c\n", "x\u{1}".repeat(4000));
        let once = fix(&text, None, &crate::check::Options::default(), Safety::Unsafe);
        let twice = fix(&once.text, None, &crate::check::Options::default(), Safety::Unsafe);
        assert!(!once.text.contains('\u{1}'));
        assert_eq!(once.text, twice.text);
    }

    use super::*;
    use crate::check::rules::testing::{find, fixed, skill};

    fn count(code: &str, body: &str) -> usize {
        find(code, &skill(body)).len()
    }

    #[test]
    fn joiners_are_allowed_in_some_scripts() {
        for body in [
            "👨\u{200d}👩\u{200d}👧 and ❤\u{fe0f}\u{200d}🔥",
            "می\u{200c}خواهم",
            "क\u{94d}\u{200d}ष",
            "🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}",
            "✅ ⚠\u{fe0f} é ü — “x” ─",
            "葛\u{e0100}",
            "עברית\u{200f} (x)",
        ] {
            assert_eq!(count(INVISIBLE_UNICODE.code, body), 0, "{body}");
        }
    }

    #[test]
    fn hidden_characters_are_found() {
        for body in [
            "a\u{200b}b", "a\u{200d}b", "a\u{200c}b", "a\u{ad}b", "a\u{2060}\u{2061}b",
            "a\u{feff}b", "a\u{200e}b", "a\u{fe01}\u{fe02}\u{fe03}", "\u{3164}", "x\u{2028}y",
            "x\u{e0041}",
        ] {
            assert_eq!(count(INVISIBLE_UNICODE.code, body), 1, "{body:?}");
        }
    }

    #[test]
    fn tags_are_decoded_and_not_fixed() {
        let found = find(INVISIBLE_UNICODE.code, &skill("x\u{e0048}\u{e0069}\u{e0021}"));
        assert!(found[0].is_error() && found[0].fix.is_none());
        assert!(found[0].message.ends_with("spell `Hi!`"), "{}", found[0].message);
    }

    #[test]
    fn directions_and_controls() {
        assert_eq!(count(BIDI_CONTROL.code, "a\u{202e}b\u{202c}c\u{2066}"), 3);
        assert_eq!(count(CONTROL_CHARACTER.code, "a\u{7}b\u{85}c\u{7f}\t\r\n"), 3);
        assert_eq!(count(NUL_BYTE.code, "a\0\0b"), 1);
        assert_eq!(count(CONTROL_CHARACTER.code, "a\0b"), 0);
        let text = skill("a\u{1b}[31;1mb");
        assert_eq!(fixed(CONTROL_CHARACTER.code, &text), Some(skill("ab")));
    }

    #[test]
    fn findings_of_each_kind_are_limited() {
        let body = format!("{}\u{202e}", "a\u{200b}".repeat(500));
        assert_eq!(count(INVISIBLE_UNICODE.code, &body), MAX_PLACES);
        assert_eq!(count(BIDI_CONTROL.code, &body), 1);
    }

    #[test]
    fn escapes_in_values_are_seen() {
        let text = |value: &str| format!("---\nname: x\ndescription: {value}\n---\n# x\n");
        let found = find(CONTROL_CHARACTER.code, &text("\"a\\e[2Kb\""));
        assert_eq!(found.len(), 1);
        assert!(found[0].is_error());
        assert_eq!(find(CONTROL_CHARACTER.code, &text("\"a\\rb\"")).len(), 1);
        assert_eq!(find(CONTROL_CHARACTER.code, &text("\"a\\nb\\tc \\\" \\u00e9\"")).len(), 0);
        assert_eq!(find(CONTROL_CHARACTER.code, &text("'a\\eb'")).len(), 0);
        assert_eq!(find(BIDI_CONTROL.code, &text("\"a\\u202eb\"")).len(), 1);
        assert_eq!(find(INVISIBLE_UNICODE.code, &text("\"a\\u200bb\"")).len(), 1);
    }

    #[test]
    fn places_are_right_across_chunks() {
        for pad in 55..70 {
            let body = format!("{}\u{202e}x", "a".repeat(pad));
            let text = skill(&body);
            let found = find(BIDI_CONTROL.code, &text);
            assert_eq!(found[0].span.slice(&text), "\u{202e}", "{pad}");
        }
    }
}
