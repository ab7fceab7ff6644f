//! Parses the text of a search query.
//!
//! There are no syntax errors: text that is not a filter or a phrase is searched as words, and
//! parts beyond the limits are ignored. Only a text that is longer than anything a person types is
//! rejected.

use super::{
    Query, SearchError,
    fields::{EVALUATED, exact_form},
    words::{Word, drop_single_letters, fold, is_common, joined, words},
};

/// Maximum bytes of a query.
const MAX_QUERY_BYTES: usize = 2000;
/// Maximum words of a query; more are ignored.
const MAX_WORDS: usize = 12;
/// Maximum phrases of a query.
const MAX_PHRASES: usize = 4;
/// Maximum tags of a query.
const MAX_TAGS: usize = 8;

/// A parsed search query.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ParsedQuery {
    /// Words, folded, without duplicates.
    pub(super) words: Vec<String>,
    /// Each phrase is a list of words that must follow each other.
    pub(super) phrases: Vec<Vec<Word>>,
    /// The last word, which may be incomplete.
    pub(super) unfinished: Option<String>,
    /// The whole text read as a name: as written, and joined into one word.
    pub(super) name: Option<QueriedName>,
    pub(super) filters: QueryFilters,
}

/// The query text read as the name of a skill.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct QueriedName {
    pub(super) exact: String,
    pub(super) joined: String,
}

/// Conditions that a skill must meet besides the words.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct QueryFilters {
    pub(super) tags: Vec<String>,
    pub(super) authors: Vec<String>,
    pub(super) tiers: Vec<String>,
    pub(super) evaluated: Vec<String>,
    /// A skill must be in one of these.
    pub(super) namespaces: Vec<String>,
}

/// One part of the query text: a word, a quoted phrase or a filter.
#[derive(Debug)]
struct QueryPiece<'a> {
    /// The part before the colon: `tag` of `tag:x`.
    key: Option<&'a str>,
    text: &'a str,
    quoted: bool,
}

impl ParsedQuery {
    /// Parses a query.
    pub(super) fn read(query: &Query) -> Result<Self, SearchError> {
        let length = query.text.len();
        if length > MAX_QUERY_BYTES {
            return Err(SearchError::TooLong { length, most: MAX_QUERY_BYTES });
        }
        let mut wanted = Self::default();
        let mut plain = String::new();
        for piece in pieces(&query.text) {
            wanted.add(&piece, &mut plain);
        }
        for tag in &query.tags {
            wanted.filters.add("tag", tag);
        }
        if let Some(author) = &query.author {
            wanted.filters.add("author", author);
        }
        if let Some(tier) = query.tier {
            wanted.filters.tiers.push(tier.as_str().to_owned());
        }
        if query.evaluated {
            wanted.filters.add("evaluated", EVALUATED);
        }
        wanted.filters.namespaces.clone_from(&query.namespaces);
        wanted.finish(&query.text, plain.trim());
        Ok(wanted)
    }

    fn add(&mut self, piece: &QueryPiece<'_>, plain: &mut String) {
        if let Some(key) = piece.key {
            self.filters.add(key, piece.text);
            return;
        }
        if piece.quoted && self.phrases.len() < MAX_PHRASES {
            let mut phrase = drop_single_letters(words(piece.text));
            phrase.truncate(MAX_WORDS);
            match phrase.len() {
                0 => {}
                1 => plain.push_str(piece.text),
                _ => self.phrases.push(phrase),
            }
        } else {
            plain.push_str(piece.text);
        }
        plain.push(' ');
    }

    fn finish(&mut self, typed: &str, plain: &str) {
        let mut found: Vec<String> = Vec::new();
        for word in drop_single_letters(words(plain)) {
            if found.len() < MAX_WORDS && !found.contains(&word.text) {
                found.push(word.text);
            }
        }
        let joined = joined(plain);
        if self.phrases.is_empty() && !joined.is_empty() {
            self.name = Some(QueriedName { exact: exact_form(plain), joined });
        }
        let goes_on =
            typed.ends_with(|c: char| c.is_alphanumeric()) && typed.ends_with(last(plain));
        self.unfinished = found.last().filter(|_| goes_on).cloned();
        if found.iter().any(|word| !is_common(word)) || !self.phrases.is_empty() {
            found.retain(|word| !is_common(word));
        }
        self.words = found;
    }

    /// Whether the query has no words and no phrases, so that all skills match.
    pub(super) fn is_everything(&self) -> bool {
        self.words.is_empty() && self.phrases.is_empty()
    }
}

impl QueryFilters {
    fn add(&mut self, key: &str, text: &str) {
        let text = fold(text.trim());
        let (list, most) = match key {
            "tag" => (&mut self.tags, MAX_TAGS),
            "author" => (&mut self.authors, 1),
            "evaluated" => (&mut self.evaluated, 1),
            _ => (&mut self.tiers, 1),
        };
        // No skill has two authors. Both are stored, so that nothing is found.
        if !list.contains(&text) && list.len() <= most {
            list.push(text);
        }
    }
}

/// The last word of the text outside of filters.
fn last(plain: &str) -> &str {
    plain.rsplit(char::is_whitespace).next().unwrap_or_default()
}

/// Splits a text into words, quoted phrases and filters. A quote that is not closed ends with the
/// text.
fn pieces(text: &str) -> impl Iterator<Item = QueryPiece<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c.is_control());
        if rest.is_empty() {
            return None;
        }
        let key =
            ["tag", "author", "tier", "evaluated"].into_iter().find(|key| is_filter(rest, key));
        if let Some(key) = key {
            rest = &rest[key.len() + 1..];
        }
        let inside = rest.strip_prefix('"');
        let (text, after) = if let Some(inside) = inside {
            inside.split_once('"').unwrap_or((inside, ""))
        } else {
            let end = |c: char| c.is_whitespace() || c == '"';
            rest.split_at(rest.find(end).unwrap_or(rest.len()))
        };
        let quoted = inside.is_some();
        rest = after;
        Some(QueryPiece { key, text, quoted })
    })
}

/// Whether a text is `key:` followed by something.
fn is_filter(text: &str, key: &str) -> bool {
    let after = text.strip_prefix(key).and_then(|text| text.strip_prefix(':'));
    after.is_some_and(|after| after.starts_with(|c: char| !c.is_whitespace()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> ParsedQuery {
        ParsedQuery::read(&Query { text: text.to_owned(), ..Query::default() }).unwrap()
    }

    #[test]
    fn words_and_filters() {
        let wanted = read("Web tag:CI search author:\"Jo Doe\" tier:verified the");
        assert_eq!(wanted.words, ["web", "search"]);
        let filters = &wanted.filters;
        assert_eq!(
            (&filters.tags[..], &filters.authors[..]),
            (&["ci".into()][..], &["jo doe".into()][..])
        );
        assert_eq!(filters.tiers, ["verified"]);
        assert_eq!(read("web evaluated:yes").filters.evaluated, ["yes"]);
        assert_eq!(wanted.name.unwrap().joined, "websearchthe");
    }

    #[test]
    fn phrases() {
        let wanted = read("\"pull request\" review");
        let phrase: Vec<_> = wanted.phrases[0].iter().map(|word| word.text.as_str()).collect();
        assert_eq!((phrase, wanted.words), (vec!["pull", "request"], vec!["review".to_owned()]));
        assert_eq!(wanted.name, None, "a phrase is not a name");
        assert_eq!(read("\"review\"").words, ["review"], "one word is not a phrase");
        assert_eq!(read("\"never closed").phrases.len(), 1);
    }

    #[test]
    fn unfinished_phrases_are_read() {
        let table = [
            ("web sea", Some("sea")),
            ("web sea ", None),
            ("\"web sea\"", None),
            ("sea tag:x", None),
            ("tag:x sea", Some("sea")),
            ("", None),
        ];
        for (text, unfinished) in table {
            assert_eq!(read(text).unfinished.as_deref(), unfinished, "{text}");
        }
    }

    #[test]
    fn unknown_filter_is_a_word() {
        assert_eq!(read("size:big tag: (a+)+$").words, ["size", "big", "tag"]);
        assert_eq!(read("the who").words, ["who"]);
        assert_eq!(read("how to").words, ["how", "to"]);
    }

    #[test]
    fn long_queries_are_cut_or_rejected() {
        let many: Vec<_> = (0..400).map(|number| format!("w{number}")).collect();
        assert_eq!(read(&many.join(" ")).words.len(), MAX_WORDS);
        assert!(read(&"tag:x".repeat(300)).filters.tags.len() <= MAX_TAGS + 1);
        let error =
            ParsedQuery::read(&Query { text: "x".repeat(MAX_QUERY_BYTES + 1), ..Query::default() });
        assert_eq!(error.unwrap_err().code(), "query_too_long");
    }
}
