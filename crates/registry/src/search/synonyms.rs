//! Words that users type for things that skills call by another word.

use super::words::stem;

/// Groups of words that mean nearly the same in the description of a skill.
const GROUPS: &[&[&str]] = &[
    &["slides", "slide", "presentation", "deck", "powerpoint", "pptx", "keynote"],
    &["spreadsheet", "excel", "xlsx", "xls", "sheet", "workbook"],
    &["document", "docx", "word"],
    &["image", "picture", "photo", "screenshot"],
    &["chart", "graph", "plot", "visualization", "visualisation"],
    &["diagram", "flowchart", "mermaid"],
    &["email", "mail", "inbox"],
    &["calendar", "appointment", "meeting", "schedule"],
    &["summarize", "summarise", "summary", "tldr"],
    &["translate", "translation", "localize", "localization"],
    &["repository", "repo", "git"],
    &["commit", "changelog"],
    &["bug", "defect", "debug", "error"],
    &["issue", "ticket"],
    &["test", "testing", "qa"],
    &["deploy", "deployment", "release", "ship"],
    &["database", "db", "sql"],
    &["kubernetes", "k8s"],
    &["container", "docker"],
    &["javascript", "js"],
    &["typescript", "ts"],
    &["python", "py"],
    &["docs", "readme", "manual"],
    &["website", "site", "webpage", "homepage"],
    &["scrape", "scraping", "crawl", "crawler"],
    &["resume", "cv"],
    &["invoice", "bill", "receipt"],
    &["video", "movie", "clip"],
    &["audio", "sound", "voice", "speech"],
    &["transcribe", "transcript", "transcription", "subtitles"],
    &["auth", "authentication", "login", "oauth"],
    &["ui", "interface", "frontend"],
    &["logo", "icon"],
    &["weather", "forecast"],
    &["search", "find", "lookup"],
    &["cloud", "aws", "azure", "gcp"],
];

/// Words that say what to do with a thing. A skill for the thing does it, whatever verb it uses.
const VERBS: [&str; 20] = [
    "add", "build", "change", "create", "do", "draft", "edit", "generate", "get", "help", "make",
    "manage", "need", "open", "prepare", "produce", "read", "use", "want", "write",
];

/// Other words for a word of a query, without the word itself.
pub(super) fn synonyms(word: &str) -> Vec<&'static str> {
    let wanted = stem(word);
    let has_stem = |known: &&str| stem(known) == wanted;
    let group = GROUPS.iter().find(|group| group.iter().any(&has_stem));
    group
        .into_iter()
        .flat_map(|group| group.iter().copied())
        .filter(|known| !has_stem(known))
        .collect()
}

/// The known word that a word with one typo means. Descriptions are stemmed, so that a typo near
/// the end of a long word is far from its stem.
pub(super) fn corrected(word: &str) -> Option<&'static str> {
    let known = GROUPS.iter().flat_map(|group| group.iter().copied());
    let mut long = known.filter(|known| known.len() >= MIN_CHARS_TO_CORRECT);
    long.find(|known| *known != word && is_one_edit(word.as_bytes(), known.as_bytes()))
}

/// Minimum characters of a known word that is recognized despite a typo.
const MIN_CHARS_TO_CORRECT: usize = 6;

/// Whether two words differ in one letter that is added, missing, another one, or swapped.
fn is_one_edit(a: &[u8], b: &[u8]) -> bool {
    let (short, long) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    let same = short.iter().zip(long).take_while(|(one, other)| one == other).count();
    let (short, long) = (&short[same..], &long[same..]);
    match long.len() - short.len() {
        0 => {
            let swapped = long.len() >= 2
                && (short[0], short[1]) == (long[1], long[0])
                && short[2..] == long[2..];
            swapped || !long.is_empty() && short[1..] == long[1..]
        }
        1 => *short == long[1..],
        _ => false,
    }
}

/// Whether a skill need not have a word, because it only says what to do.
pub(super) fn is_verb(word: &str) -> bool {
    let wanted = stem(word);
    VERBS.iter().any(|verb| stem(verb) == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_do_not_matter() {
        assert!(synonyms("slide").contains(&"pptx"));
        assert!(synonyms("presentations").contains(&"slides"));
        assert!(synonyms("zebra").is_empty());
        assert!(is_verb("making") && is_verb("create") && !is_verb("slides"));
    }

    #[test]
    fn typos_in_known_words_are_corrected() {
        for typo in ["presentatoin", "presentaton", "presenttation", "presentatiun"] {
            assert_eq!(corrected(typo), Some("presentation"), "{typo}");
        }
        assert_eq!(corrected("presentation"), None);
        assert_eq!(corrected("presnetatoin"), None);
    }

    #[test]
    fn no_word_is_in_two_groups() {
        let mut stems: Vec<String> = Vec::new();
        for group in GROUPS {
            let mut own: Vec<String> = group.iter().map(|word| stem(word).into_owned()).collect();
            own.sort();
            own.dedup();
            stems.extend(own);
        }
        let count = stems.len();
        stems.sort();
        stems.dedup();
        assert_eq!(stems.len(), count);
    }
}
