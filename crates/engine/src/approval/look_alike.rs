//! Detects host and program names that imitate others with similar letters.
//!
//! A letter of another script can look exactly like a Latin letter, and host names can hide such
//! letters behind `xn--`. The approval question shows what such a name imitates, and warns that it
//! is a different name.

use idna::{
    AsciiDenyList,
    uts46::{Hyphens, Uts46},
};

use super::printable;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CheckedName {
    /// The name, followed by a warning if it could be mistaken for another one.
    pub(super) label: String,
    /// Whether the name needs a warning.
    pub(super) needs_warning: bool,
}

/// Letters that look like a Latin letter. The list may be incomplete: every other non-ASCII name also
/// gets a warning, only without the name that it imitates.
const LOOK_ALIKES: [(char, &str); 24] = [
    ('a', "\u{430}\u{3b1}\u{251}"),
    ('b', "\u{432}\u{184}\u{185}"),
    ('c', "\u{441}\u{3f2}"),
    ('d', "\u{501}"),
    ('e', "\u{435}\u{4bd}\u{3b5}"),
    ('g', "\u{261}\u{581}"),
    ('h', "\u{4bb}\u{43d}\u{570}"),
    ('i', "\u{456}\u{131}\u{3b9}\u{4cf}"),
    ('j', "\u{458}\u{237}"),
    ('k', "\u{43a}\u{3ba}"),
    ('l', "\u{4c0}\u{142}"),
    ('m', "\u{43c}"),
    ('n', "\u{43f}\u{3b7}\u{578}"),
    ('o', "\u{43e}\u{3bf}\u{585}\u{3c3}\u{5e1}"),
    ('p', "\u{440}\u{3c1}"),
    ('q', "\u{51b}\u{566}"),
    ('r', "\u{433}"),
    ('s', "\u{455}"),
    ('t', "\u{442}\u{3c4}"),
    ('u', "\u{3c5}\u{57d}"),
    ('v', "\u{475}\u{3bd}"),
    ('w', "\u{51d}\u{461}\u{3c9}"),
    ('x', "\u{445}\u{3c7}"),
    ('y', "\u{443}\u{3b3}\u{4af}"),
];

/// Scripts whose letters are mistaken for others, by their blocks.
const SCRIPTS: [(&str, std::ops::RangeInclusive<char>); 10] = [
    ("Latin", 'a'..='z'),
    ("Latin", '\u{c0}'..='\u{24f}'),
    ("Latin", '\u{250}'..='\u{2af}'),
    ("Latin", '\u{1e00}'..='\u{1eff}'),
    ("Greek", '\u{370}'..='\u{3ff}'),
    ("Cyrillic", '\u{400}'..='\u{52f}'),
    ("Armenian", '\u{530}'..='\u{58f}'),
    ("Hebrew", '\u{590}'..='\u{5ff}'),
    ("Arabic", '\u{600}'..='\u{6ff}'),
    ("Cherokee", '\u{13a0}'..='\u{13ff}'),
];

/// Checks a host, a URL or a program name, and adds a note if it could be mistaken for another one.
pub(super) fn add_look_alike_warning(name: &str) -> CheckedName {
    let decoded = decode_labels(name);
    if decoded.is_ascii() {
        // A host with letters that cannot be decoded is not a known host.
        let needs_warning = name.to_ascii_lowercase().split(['.', '/', ':']).any(is_encoded);
        let note = if needs_warning { " (has encoded letters that cannot be read)" } else { "" };
        return CheckedName { label: format!("{}{note}", printable(name)), needs_warning };
    }
    let is_same = decoded == name;
    let read = if is_same { String::new() } else { format!("reads {}, ", printable(&decoded)) };
    let label = format!("{} ({read}{})", printable(name), warning(&decoded));
    CheckedName { label, needs_warning: true }
}

fn is_encoded(label: &str) -> bool {
    label.starts_with("xn--")
}

/// The name with the letters that `xn--` stands for.
fn decode_labels(name: &str) -> String {
    let decode = |label: &str| {
        let label = label.to_ascii_lowercase();
        let (unicode, read) =
            Uts46::new().to_unicode(label.as_bytes(), AsciiDenyList::EMPTY, Hyphens::Allow);
        read.map(|()| unicode.into_owned()).unwrap_or(label)
    };
    let pieces = name.split_inclusive(['.', '/', ':']).map(|piece| {
        let label = piece.trim_end_matches(['.', '/', ':']);
        let after = &piece[label.len()..];
        if is_encoded(&label.to_ascii_lowercase()) {
            decode(label) + after
        } else {
            piece.to_owned()
        }
    });
    pieces.collect()
}

/// The warning about a name that is not plain ASCII.
fn warning(name: &str) -> String {
    let latin = latin_equivalent(name);
    let others: Vec<&str> =
        scripts_in(name).into_iter().filter(|script| *script != "Latin").collect();
    match (latin.is_ascii(), others.as_slice()) {
        (true, []) => format!("looks like {}, but is a different name", printable(&latin)),
        (true, others) => {
            format!("looks like {}, but has {} letters", printable(&latin), others.join(" and "))
        }
        (false, others) if !others.is_empty() && has_label_with_several_scripts(name) => {
            format!("mixes Latin and {} letters", others.join(" and "))
        }
        (false, _) => "not plain ASCII: look closely".to_owned(),
    }
}

fn latin_equivalent(name: &str) -> String {
    let to_latin = |c: char| {
        let found = LOOK_ALIKES.iter().find(|(_, others)| others.contains(c));
        found.map_or(c, |(letter, _)| *letter)
    };
    name.to_lowercase().chars().map(to_latin).collect()
}

/// The scripts of the letters, each once.
fn scripts_in(name: &str) -> Vec<&'static str> {
    let mut found = Vec::new();
    for c in name.to_lowercase().chars() {
        let script = SCRIPTS.iter().find(|(_, letters)| letters.contains(&c));
        found.extend(script.map(|(script, _)| *script).filter(|script| !found.contains(script)));
    }
    found
}

/// Whether one label has letters of several scripts; the labels of `пример.com` have one each.
fn has_label_with_several_scripts(name: &str) -> bool {
    name.split(['.', '/', ':']).any(|label| scripts_in(label).len() > 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn look_alike_names_have_warnings() {
        for (name, expected) in [
            ("example.com", "example.com"),
            ("https://example.com/v1", "https://example.com/v1"),
            (
                "xn--pypal-4ve.com",
                "xn--pypal-4ve.com (reads p\u{430}ypal.com, looks like paypal.com, but has Cyrillic letters)",
            ),
            (
                "XN--PYPAL-4VE.com",
                "XN--PYPAL-4VE.com (reads p\u{430}ypal.com, looks like paypal.com, but has Cyrillic letters)",
            ),
            (
                "https://xn--pypal-4ve.com:8443/v1",
                "https://xn--pypal-4ve.com:8443/v1 (reads https://p\u{430}ypal.com:8443/v1, looks like https://paypal.com:8443/v1, but has Cyrillic letters)",
            ),
            (
                "ex\u{430}mple.com",
                "ex\u{430}mple.com (looks like example.com, but has Cyrillic letters)",
            ),
            ("g\u{131}t", "g\u{131}t (looks like git, but is a different name)"),
            (
                "xn--mnchen-3ya.de",
                "xn--mnchen-3ya.de (reads m\u{fc}nchen.de, not plain ASCII: look closely)",
            ),
            ("m\u{fc}\u{436}.de", "m\u{fc}\u{436}.de (mixes Latin and Cyrillic letters)"),
            ("xn--99999999.com", "xn--99999999.com (has encoded letters that cannot be read)"),
        ] {
            let name = add_look_alike_warning(name);
            assert_eq!(name.label, expected);
            assert_eq!(name.needs_warning, expected.contains('('), "{expected}");
        }
    }
}
