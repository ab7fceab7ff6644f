//! Finds signs of harmful intent in prose.
//!
//! A [`Passage`] is a paragraph with the list that it introduces. No single phrase proves that a
//! passage is harmful. The methods of [`Passage`] test for different kinds of signs (secrets,
//! destinations, secrecy, pressure), and rules add them up, so that a different wording of the same
//! instruction gets the same score.

use std::cell::OnceCell;

use savoir_skill::Span;

use super::{
    host::{self, HostReputation},
    phrase::{self, Phrases, Word, phrases},
    sensitive_path, service,
};

/// Maximum length of a passage; longer paragraphs are split.
const MAX_PASSAGE_BYTES: usize = 2_500;

/// A paragraph, together with the list that follows it.
pub(super) struct Passage<'a> {
    pub(super) span: Span,
    pub(super) text: &'a str,
    pub(super) words: Vec<Word>,
    /// The heading above the passage.
    heading: &'a str,
    /// The words, separated by single blanks, with a blank at both ends.
    plain: String,
    /// Cache of the addresses in the passage and their reputation, because several rules need them.
    links: OnceCell<Vec<(&'a str, HostReputation)>>,
    credential: OnceCell<Option<&'static str>>,
}

/// Splits a text into passages, without the frontmatter. Long paragraphs become several passages,
/// so nothing is skipped.
pub(super) fn passages(text: &str) -> Vec<Passage<'_>> {
    let start = frontmatter_end(text);
    passages_at(&text[start..], start)
}

/// Returns the offset where the frontmatter ends, or 0 if there is none.
pub(super) fn frontmatter_end(text: &str) -> usize {
    let end = text.strip_prefix("---\n").and_then(|rest| rest.find("\n---"));
    // Two horizontal rules with sentences between them are not frontmatter.
    let end = end.filter(|end| text[4..4 + end].lines().all(is_header_line));
    end.map_or(0, |end| (end + 8).min(text.len()))
}

/// Whether a line is `key: value`, a list item, a comment, or the continuation of a value.
fn is_header_line(line: &str) -> bool {
    let key = line.split_once(':').map_or("", |(key, _)| key);
    let named = !key.is_empty() && !key.contains(' ') || key.starts_with(['"', '\'']);
    named || line.trim().is_empty() || line.starts_with([' ', '\t', '-', '#', ']', '}'])
}

/// Like [`passages`], for a part of a text that begins at offset `start`.
pub(super) fn passages_at(text: &str, mut start: usize) -> Vec<Passage<'_>> {
    let mut found = Vec::new();
    let mut rest = text;
    let mut heading = "";
    while !rest.is_empty() {
        let end = paragraph_end(rest);
        let mut at = start;
        for fragment in split_at_items(&rest[..end]) {
            if fragment.trim_start().starts_with('#') {
                heading = fragment.trim_start().lines().next().unwrap_or_default();
            }
            if !fragment.trim().is_empty() {
                found.push(Passage { heading, ..Passage::new(fragment, at) });
            }
            at += fragment.len();
        }
        let skip = (end + 2).min(rest.len());
        start += skip;
        rest = &rest[skip..];
    }
    found
}

/// Returns the end of a paragraph. A paragraph that ends with a colon includes the next one.
fn paragraph_end(text: &str) -> usize {
    let mut end = text.find("\n\n").unwrap_or(text.len());
    while text[..end].trim_end().ends_with(':')
        && end + 2 < text.len()
        && end < MAX_PASSAGE_BYTES / 2
    {
        let next = text[end + 2..].find("\n\n").map_or(text.len(), |next| end + 2 + next);
        if text[end..next].trim_start().starts_with('#') || next > MAX_PASSAGE_BYTES {
            break;
        }
        end = next;
    }
    end
}

/// A paragraph with a list longer than this is split at the list items.
const SHORT_LIST: usize = 700;

/// Splits a long text at its list items, and long items at [`MAX_PASSAGE_BYTES`].
fn split_at_items(text: &str) -> Vec<&str> {
    if text.len() <= SHORT_LIST {
        return vec![text];
    }
    let mut starts = vec![0];
    starts.extend(
        text.match_indices('\n').map(|(at, _)| at + 1).filter(|at| starts_list_item(&text[*at..])),
    );
    starts.push(text.len());
    starts.windows(2).flat_map(|pair| split_long_item(&text[pair[0]..pair[1]])).collect()
}

/// Whether a line begins a list item, a heading, a quote or a table row.
fn starts_list_item(line: &str) -> bool {
    let line = line.trim_start_matches([' ', '\t']);
    let number = line.trim_start_matches(|c: char| c.is_ascii_digit());
    line.starts_with(['-', '*', '|', '#', '>', '+'])
        || number.len() < line.len() && number.starts_with(['.', ')'])
}

fn split_long_item(mut text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    while text.len() > MAX_PASSAGE_BYTES {
        let mut end = MAX_PASSAGE_BYTES;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        end = text[..end].rfind(['\n', '.', ' ']).map_or(end, |at| at + 1);
        found.push(&text[..end]);
        text = &text[end..];
    }
    found.push(text);
    found
}

impl<'a> Passage<'a> {
    pub(super) fn new(text: &'a str, at: usize) -> Self {
        let words = phrase::words(text);
        let mut plain = String::with_capacity(text.len() + 2);
        plain.push(' ');
        for word in &words {
            plain.push_str(&word.text);
            plain.push(' ');
        }
        Self {
            span: Span::new(at, at + text.len()),
            text,
            words,
            heading: "",
            plain,
            links: OnceCell::new(),
            credential: OnceCell::new(),
        }
    }

    /// The heading above the passage.
    pub(super) fn heading(&self) -> &'a str {
        self.heading
    }

    /// Joins this passage and the next one, unless the result is too long.
    pub(super) fn with(&self, next: &Self, whole: &'a str) -> Option<Self> {
        let text = whole.get(self.span.start..next.span.end)?;
        (text.len() <= MAX_PASSAGE_BYTES).then(|| Self::new(text, self.span.start))
    }

    /// Splits the passage into sentences and list items, each as a passage.
    pub(super) fn sentences(&self) -> impl Iterator<Item = Passage<'a>> {
        let text = self.text;
        let mut starts = vec![0];
        starts.extend(text.match_indices(['.', '!', '?', ';', '\n']).filter_map(|(at, mark)| {
            let next = at + mark.len();
            let ends = match mark {
                "\n" => starts_list_item(&text[next..]),
                _ => text[next..].starts_with([' ', '\n', '*', '_', '"', ')']),
            };
            ends.then_some(next)
        }));
        starts.push(text.len());
        let base = self.span.start;
        let pairs: Vec<(usize, usize)> = starts.windows(2).map(|pair| (pair[0], pair[1])).collect();
        pairs.into_iter().map(move |(from, to)| Passage::new(&text[from..to], base + from))
    }

    /// Whether the passage is conditional (`if …, do not …`) rather than an instruction.
    pub(super) fn is_conditional(&self) -> bool {
        let first = self.words.first().map(|word| word.text.as_str());
        matches!(first, Some("if" | "should" | "when" | "whenever" | "wenn" | "si"))
            && (self.says(&["do not", "don't", "never", "not to"]) || self.text.contains(':'))
    }

    /// Whether the passage contains one of these word sequences.
    pub(super) fn says(&self, any: &[&str]) -> bool {
        any.iter().any(|one| {
            self.plain.match_indices(one).any(|(at, _)| {
                let before = self.plain[..at].ends_with(' ');
                let after = self.plain[at + one.len()..].starts_with(' ');
                before && (after || one.ends_with(' '))
            })
        })
    }

    /// Whether one of the phrases occurs within one sentence of the passage.
    pub(super) fn matches(&self, phrases: &Phrases) -> bool {
        self.find(phrases).is_some()
    }

    /// Returns the position in the whole text of the first phrase that is within one sentence.
    pub(super) fn find(&self, phrases: &Phrases) -> Option<Span> {
        let mut all = phrases.find(&self.words).into_iter();
        let (_, from, to) = all.find(|(_, from, to)| self.is_sentence(*from, *to))?;
        self.span_of(from, to)
    }

    /// Whether a capital letter in the middle of a sentence makes a word part of a name: `Archive` in
    /// `Nearline and Archive charge a fee`.
    pub(super) fn is_name_at(&self, at: usize) -> bool {
        let Some(word) = self.words.get(at).filter(|_| at > 0) else { return false };
        let mut letters = self.text[word.span.start..].chars();
        let is_capitalized = letters.next().is_some_and(char::is_uppercase)
            && letters.next().is_some_and(char::is_lowercase);
        let gap = self.gap_after(at - 1);
        is_capitalized && !gap.is_empty() && gap.chars().all(|c| c == ' ')
    }

    /// Like [`Self::find`], but only phrases whose words `from..to` are accepted.
    pub(super) fn find_where(
        &self,
        phrases: &Phrases,
        accepts: impl Fn(usize, usize) -> bool,
    ) -> Option<Span> {
        let mut all = phrases.find(&self.words).into_iter();
        let (_, from, to) =
            all.find(|(_, from, to)| self.is_sentence(*from, *to) && accepts(*from, *to))?;
        self.span_of(from, to)
    }

    fn span_of(&self, from: usize, to: usize) -> Option<Span> {
        let (first, last) = (self.words.get(from)?, self.words.get(to.checked_sub(1)?)?);
        Some(Span::new(self.span.start + first.span.start, self.span.start + last.span.end))
    }

    /// The word `by` places before or after the word at `at`.
    fn word(&self, at: usize, by: isize) -> &str {
        let at = at.checked_add_signed(by);
        at.and_then(|at| self.words.get(at)).map_or("", |word| word.text.as_str())
    }

    /// The text between a word and the next one.
    fn gap_after(&self, at: usize) -> &str {
        let end = self.words.get(at).map_or(0, |word| word.span.end);
        let next = self.words.get(at + 1).map_or(self.text.len(), |word| word.span.start);
        self.text.get(end..next).unwrap_or_default()
    }

    /// Whether the words `from..to` are within one sentence or one list item.
    fn is_sentence(&self, from: usize, to: usize) -> bool {
        let (Some(first), Some(last)) =
            (self.words.get(from), self.words.get(to.saturating_sub(1)))
        else {
            return false;
        };
        let text = &self.text[first.span.start..last.span.end.max(first.span.start)];
        let ends = |mark: char| {
            text.match_indices(mark)
                .any(|(at, _)| text[at + mark.len_utf8()..].starts_with([' ', '\n', '*', '_', '"']))
        };
        let item = text.match_indices('\n').any(|(at, _)| starts_list_item(&text[at + 1..]));
        !(ends('.') || ends('!') || ends('?') || ends(';') || item || text.contains(" | "))
    }

    /// Returns the addresses in the passage, except those of this machine. Includes addresses
    /// without `https://`.
    pub(super) fn links(&self) -> &[(&'a str, HostReputation)] {
        self.links.get_or_init(|| {
            let urls = host::find_urls(self.text).into_iter().map(|(_, url)| url);
            let bare = bare_links(self.text).filter(|link| !self.is_name(link));
            let all = urls.chain(bare).chain(bare_addresses(self.text));
            let all = all.map(|url| (url, link_reputation(url)));
            all.filter(|(_, reputation)| *reputation != HostReputation::Local).collect()
        })
    }

    /// Whether something like `nvidia.com/gpu` or `registry.example/image:1.2` names a resource of a
    /// cluster or an image of a container, and no address.
    fn is_name(&self, link: &str) -> bool {
        let link = link.trim_end_matches(['.', ',', ';']);
        let is_image = link
            .rsplit('/')
            .next()
            .is_some_and(|last| last.split_once(':').is_some_and(|(_, tag)| !tag.is_empty()));
        let is_resource = link.matches('/').count() == 1
            && !link.contains(['?', '=', ':'])
            && self.says(&["kubectl", "kubernetes", "allocatable", "daemonset", "pods", "taint"]);
        let at = link.as_ptr() as usize - self.text.as_ptr() as usize;
        let before = self.text[..at].trim_end_matches([' ', '`', '"', '\'', '*']);
        let word = before.rsplit(char::is_whitespace).next().unwrap_or_default();
        let is_target =
            matches!(word, "to" | "at" | "via" | "into" | "with" | "from" | "visit" | "open");
        let registries = ["nvcr.io/", "ghcr.io/", "quay.io/", "gcr.io/", "docker.io/"];
        let is_registry = registries.iter().any(|registry| link.starts_with(registry));
        is_image || is_registry || is_resource && !is_target
    }

    /// Scores how likely the passage tells the agent to change files that configure agents, such as
    /// `CLAUDE.md`. 0 means that it does not.
    pub(super) fn poison(&self) -> u32 {
        let lower = self.text.to_lowercase();
        let file = AGENT_CONFIG_FILES.iter().find(|name| lower.contains(*name));
        // Another sentence of the passage may write something else.
        let writes_near = || {
            self.sentences().any(|one| {
                let lower = one.text.to_lowercase();
                AGENT_CONFIG_FILES.iter().any(|name| lower.contains(name)) && one.wants(&WRITES)
            })
        };
        if file.is_none() || !writes_near() && !contains(self.text, &["写进", "写入", "加入"])
        {
            return 0;
        }
        let home = ["~/", "$home", "global", "home directory", "home folder"];
        let home = home.iter().any(|name| lower.contains(name));
        let spreads = if self.matches(&EVERYWHERE) { 2 } else { 0 };
        let link = match self.destination() {
            0 | 1 => 0,
            destination => destination - 1,
        };
        2 + link
            + spreads
            + u32::from(home)
            + if self.matches(&TRUSTS) || contains(self.text, &["可信", "主人", "优先"]) {
                2
            } else {
                0
            }
            + if self.matches(&LOOSENS) || lower.contains("\"*\"") || lower.contains("bash(*)") {
                2
            } else {
                0
            }
            + if self.hides() || self.says_to_ignore_response() { 2 } else { 0 }
            + if self.matches(&RESISTS) { 2 } else { 0 }
            + u32::from(self.demands_no_questions())
    }

    /// Whether the passage demands that something is hidden from the user.
    pub(super) fn hides(&self) -> bool {
        self.find_concealment().is_some()
    }

    pub(super) fn find_concealment(&self) -> Option<Span> {
        // Advice not to print a secret is legitimate.
        let prudent = |span: &Span| {
            let said = &self.text[span.start - self.span.start..span.end - self.span.start];
            let said = said.to_lowercase();
            ["secret", "token", "key", "password", "credential"]
                .iter()
                .any(|word| said.contains(word))
        };
        if contains(
            self.text,
            &["不要向用户说", "不要向用户透露", "不要向用户提", "不要提到", "不要告诉"],
        ) {
            return Some(self.span);
        }
        let text = &self.text.to_lowercase();
        if contains(text, &HIDES_IN_RUSSIAN) || contains(text, &HIDES_IN_CHINESE) {
            return Some(self.span);
        }
        let hidden =
            self.find_where(&HIDES, |from, to| !self.is_no_concealment(from, to)).filter(|span| {
                !prudent(span)
                    && !self.is_advice_about_phrases(*span)
                    && !self.is_secret_log_advice(*span)
                    && !self.keeps_secret_from_chat(*span)
            });
        hidden.or_else(|| {
            let is_order = |from, to| !self.is_about_failures(from, to) && !self.is_negated(from);
            self.find_where(&QUIETLY, is_order)
        })
    }

    /// Whether a phrase about telling is about something else: `do not tell the user to run it`,
    /// `the user has not asked for it`, `it may never learn features`, `the correct answer is`.
    fn is_no_concealment(&self, from: usize, to: usize) -> bool {
        let (first, last) = (self.word(from, 0), self.word(to, -1));
        let is_person = matches!(
            last,
            "user" | "users" | "human" | "operator" | "person" | "anyone" | "them" | "others"
        );
        let tells = self.words[from..to].iter().any(|word| word.text == "tell");
        let is_directive = self.word(to, 0) == "to"
            || matches!(self.word(to, 0), "they" | "he" | "she")
                && matches!(self.word(to, 1), "must" | "should" | "need");
        let is_next = self.gap_after(to - 1).trim().is_empty();
        let is_active = last == "asked"
            && matches!(self.word(to, -2), "not" | "never")
            && matches!(self.word(to, -3), "has" | "have" | "had");
        let learns_skill = matches!(first, "may" | "must" | "should")
            && matches!(last, "learn" | "hear")
            && is_next
            && !matches!(
                self.word(to, 0),
                "" | "of"
                    | "about"
                    | "that"
                    | "this"
                    | "it"
                    | "why"
                    | "what"
                    | "where"
                    | "how"
                    | "from"
            );
        let is_asked = matches!(first, "asks" | "asked" | "wonders")
            && self.words[from..to].iter().any(|word| word.text == "answer");
        let is_condition = |word: &Word| {
            matches!(
                word.text.as_str(),
                "if" | "when" | "should" | "whenever" | "whoever" | "anyone"
            )
        };
        let is_correct = self.words[from..to]
            .iter()
            .any(|word| matches!(word.text.as_str(), "correct" | "honest" | "right"));
        let is_detail = last == "know"
            && self.words[to..].iter().take(4).any(|word| {
                matches!(
                    word.text.as_str(),
                    "name" | "names" | "number" | "syntax" | "version" | "format" | "identifier"
                )
            });
        let is_adjective = self.gap_after(from).starts_with('-') && first == "asked";
        tells && is_person && is_directive && is_next
            || first == "without" && self.is_denied_before(from)
            || matches!(first, "get" | "gets" | "be" | "become") && !self.has_person_before(from)
            || matches!(first, "say" | "tell" | "answer") && self.admits_failure(to)
            || is_detail
            || is_adjective
            || is_active
            || learns_skill
            || is_asked
                && (is_correct
                    || !self.words[from.saturating_sub(5)..from].iter().any(is_condition))
    }

    /// Whether an order not to do something governs `without …`: `never ship a call without surfacing it`
    /// is an order to surface it.
    fn is_denied_before(&self, from: usize) -> bool {
        let mut before = self.words[from.saturating_sub(24)..from].iter();
        let start = self.words[from].span.start;
        before.any(|word| {
            let between = &self.text[word.span.end..start];
            matches!(word.text.as_str(), "never" | "not" | "don't" | "cannot" | "can't")
                && !between.contains(['.', ',', ';', ':', '!', '?', '|', '\u{2014}'])
                && !between.contains(" and ")
                && !between.contains(" but ")
        })
    }

    /// Whether the sentence before a word names a person, who gets confused or alarmed.
    fn has_person_before(&self, from: usize) -> bool {
        let first = from.saturating_sub(8);
        self.words[first..from].iter().enumerate().any(|(index, word)| {
            self.is_sentence(first + index, from)
                && matches!(
                    word.text.as_str(),
                    "user"
                        | "users"
                        | "people"
                        | "person"
                        | "they"
                        | "them"
                        | "customer"
                        | "customers"
                        | "owner"
                        | "reader"
                        | "readers"
                        | "humans"
                        | "human"
                        | "client"
                        | "clients"
                        | "anyone"
                        | "who"
                        | "nobody"
                        | "reviewer"
                        | "reviewers"
                        | "colleague"
                        | "colleagues"
                        | "he"
                        | "she"
                )
        })
    }

    /// Whether what is said is that the agent did not manage something: `say only that you couldn't find it`.
    fn admits_failure(&self, to: usize) -> bool {
        let mut said = self.words[to.saturating_sub(1)..].iter().take(5);
        let is_agent = said.any(|word| matches!(word.text.as_str(), "you" | "i" | "we"));
        is_agent
            && said.any(|word| {
                word.text.ends_with("n't")
                    || matches!(word.text.as_str(), "not" | "cannot" | "unable")
            })
    }

    /// Whether `silently` belongs to another verb than that of an order: `it silently fails to run`,
    /// `the option is silently dropped`.
    fn is_about_failures(&self, from: usize, to: usize) -> bool {
        let is_adverb = |word: &str| {
            matches!(word, "silently" | "quietly" | "discreetly" | "unnoticed" | "secretly")
        };
        let verb = self.word(from, 1);
        let fails = ["fail", "refus", "break", "drop", "ignor", "discard", "return", "continu"]
            .iter()
            .any(|stem| verb.starts_with(stem));
        let span = self.words[from].span.start..self.words[to - 1].span.end;
        let next = self.word(to, 0);
        let goes_on = is_adverb(self.word(to, -1))
            && self.gap_after(to - 1).trim().is_empty()
            && !matches!(
                next,
                "" | "and"
                    | "or"
                    | "then"
                    | "in"
                    | "to"
                    | "before"
                    | "after"
                    | "without"
                    | "at"
                    | "so"
                    | "with"
                    | "on"
                    | "while"
                    | "every"
                    | "each"
                    | "for"
                    | "as"
                    | "once"
                    | "when"
                    | "if"
                    | "whenever"
                    | "from"
                    | "by"
                    | "into"
                    | "via"
                    | "using"
                    | "during"
                    | "first"
                    | "again"
            );
        is_adverb(self.word(from, 0)) && fails || goes_on || self.text[span].contains('\u{2014}')
    }

    /// Whether `not told` is said of what opens a wallet or an account, which nothing in the passage
    /// takes.
    fn is_advice_about_phrases(&self, span: Span) -> bool {
        let said = &self.text[span.start - self.span.start..span.end - self.span.start];
        said.to_lowercase().ends_with("told")
            && said.split_whitespace().count() < 3
            && self.matches(&GRAVE)
            && self.destination() == 0
            && !self.wants(&SENDS)
    }

    /// Whether the phrase at `span` is advice such as `keep it out of the log` about a secret.
    fn is_secret_log_advice(&self, span: Span) -> bool {
        let said =
            self.text[span.start - self.span.start..span.end - self.span.start].to_lowercase();
        (said.ends_with("log") || said.ends_with("output"))
            && self.secrets() > 0
            && self.destination() == 0
    }

    /// Whether the phrase at `span` keeps a secret of the user out of sight, and the passage neither
    /// stores it nor passes it on: `if it looks like a token, do not show it in the chat`.
    fn keeps_secret_from_chat(&self, span: Span) -> bool {
        const SHOWS: [&str; 9] =
            ["show", "appear", "print", "log", "display", "echo", "repeat", "reveal", "quote"];
        const PLACES: [&str; 8] =
            ["chat", "output", "log", "logs", "answer", "reply", "response", "conversation"];
        let said = &self.text[span.start - self.span.start..span.end - self.span.start];
        let said = said.to_lowercase();
        let words = || said.split(|c: char| !c.is_alphanumeric());
        words().any(|word| SHOWS.contains(&word))
            && words().next_back().is_some_and(|word| PLACES.contains(&word))
            && self.matches(&SECRET_OF_USER)
            && self.destination() < 2
            && self.credential().is_none()
            && !self.wants(&SENDS)
            && !self.wants(&WRITES)
    }

    /// Finds an instruction to lie to the user or to cover up an action.
    pub(super) fn find_lie(&self) -> Option<Span> {
        // `a claim`, unlike `claim that`
        let is_noun = |from: usize, to: usize| {
            let before = &self.words[from..to - 1];
            self.word(to, -1) == "claim"
                && before.iter().rev().take(3).any(|word| {
                    matches!(word.text.as_str(), "a" | "an" | "the" | "each" | "every" | "any")
                })
        };
        self.find_where(&LIES, |from, to| !is_noun(from, to) && !self.is_no_lie(from, to))
            .or_else(|| self.find_where(&FABRICATES, |from, _| !self.is_negated(from)))
            .or_else(|| {
                self.find_where(&WEAKENS_TESTS, |from, to| {
                    !self.is_negated(from) && !self.is_test_data(from, to)
                })
            })
    }

    /// Whether `test` belongs to the next word: `delete the test forms`.
    fn is_test_data(&self, from: usize, to: usize) -> bool {
        (from + 1..to.saturating_sub(1)).any(|at| {
            self.word(at, 0) == "test"
                && self.gap_after(at).trim_matches(['"', '\'']) == " "
                && !matches!(
                    self.word(at, 1),
                    "that"
                        | "which"
                        | "to"
                        | "so"
                        | "until"
                        | "for"
                        | "and"
                        | "or"
                        | "in"
                        | "file"
                        | "files"
                        | "case"
                        | "cases"
                        | "suite"
                        | "suites"
                        | "if"
                        | "when"
                        | "before"
                        | "function"
                        | "functions"
                        | "run"
                        | "step"
                )
        })
    }

    /// Whether the words of a lie mean something else: a name, a request of the user, a question that
    /// nobody asked, the look of a thing, or a login in the place of money.
    fn is_no_lie(&self, from: usize, to: usize) -> bool {
        let (first, last) = (self.word(from, 0), self.word(to, -1));
        let any = |wanted: &[&str]| {
            self.words[from..to].iter().any(|word| wanted.contains(&word.text.as_str()))
        };
        let is_verb = !matches!(
            first,
            "if" | "when"
                | "should"
                | "while"
                | "so"
                | "that"
                | "asked"
                | "asks"
                | "never"
                | "not"
                | "don't"
                | "user"
                | "they"
                | "someone"
                | "nobody"
                | "none"
                | "one"
                | "for"
                | "with"
                | "iban"
                | "bic"
                | "wallet"
                | "account"
                | "wonders"
                | "say"
                | "tell"
                | "remains"
                | "stays"
        );
        let is_request = (from..to.saturating_sub(1)).any(|at| {
            matches!(self.word(at, 0), "asks" | "asked") && matches!(self.word(at, 1), "to" | "you")
        }) && any(&["user", "they", "customer", "person"]);
        let is_unasked = matches!(last, "asked" | "asks")
            && (1..3).any(|by| {
                let word = self.word(to, -1 - by);
                word.ends_with("n't") || matches!(word, "not" | "never" | "nobody")
            });
        let is_look = first == "so"
            && matches!(last, "like" | "as")
            && matches!(self.word(to, 0), "a" | "an" | "the");
        // The cache of a site shows something old until it is renewed.
        let is_temporary = matches!(first, "keeps" | "continues")
            && self.words[to..].iter().take(3).any(|word| word.text == "until");
        let is_login = first == "account" && !self.matches(&MONEY_ACCOUNT);
        is_verb && (self.is_name_at(from) || self.is_negated(from))
            || is_request
            || is_unasked
            || is_look
            || is_temporary
            || is_login
    }

    /// Whether the passage wants to spend money in the user's name.
    pub(super) fn spends_user_money(&self) -> bool {
        self.wants(&SPENDS)
    }

    /// Whether the passage demands that something is done without asking the user.
    pub(super) fn demands_no_questions(&self) -> bool {
        self.matches(&PRESSES)
    }

    /// How sensitive the data is that the passage mentions: 0 (none), 2 (secret) or 3
    /// (credentials).
    pub(super) fn secrets(&self) -> u32 {
        if self.credential().is_some() || self.matches(&GRAVE) {
            3
        } else if self.matches(&SECRET)
            || contains(&self.text.to_lowercase(), &SECRETS_WITHOUT_LATIN_LETTERS)
            || self.text.contains(".env")
            || self.secret_variable().is_some()
        {
            2
        } else {
            0
        }
    }

    /// The kind of credential file whose path the passage contains.
    pub(super) fn credential(&self) -> Option<&'static str> {
        *self.credential.get_or_init(|| self.find_credential())
    }

    fn find_credential(&self) -> Option<&'static str> {
        if !sensitive_path::may_name_credentials(self.text) {
            return None;
        }
        let mut parts = self.text.split([' ', '`', '"', '(', ')', ',', '\n', '\'', '<', '>']);
        parts.find_map(|word| sensitive_path::credential_at(word.trim_end_matches(['.', ':', ';'])))
    }

    /// The first name of an environment variable with a secret, such as `OPENAI_API_KEY`.
    pub(super) fn secret_variable(&self) -> Option<&'a str> {
        let mut parts = self.text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        parts.find(|word| {
            word.contains('_')
                && word.len() > 5
                && word.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
                && sensitive_path::is_secret_name(word)
        })
    }

    /// Whether the mentioned key belongs to the service whose address is next to it.
    pub(super) fn sends_key_to_its_service(&self) -> bool {
        self.secret_variable().is_some_and(|variable| {
            let named = |url: &str| {
                let host = host::host_of_url(url).unwrap_or_default();
                variable.split('_').any(|word| {
                    word.len() > 3 && host.split('.').any(|label| label.eq_ignore_ascii_case(word))
                })
            };
            self.links().iter().any(|(url, _)| service::is_own_host(variable, url) || named(url))
        })
    }

    /// Whether the passage mentions the conversation or the memory of the agent.
    pub(super) fn mentions_conversation(&self) -> bool {
        self.matches(&PERSONAL)
    }

    /// Whether the passage mentions data of the user: mails, notes, documents, code, people.
    pub(super) fn mentions_user_data(&self) -> bool {
        self.mentions_conversation()
            || self.matches(&CONTENT)
            || contains(self.text, &USER_DATA_WORDS_WITHOUT_SPACES)
    }

    /// Whether the passage asks for all of something instead of the part that a task needs.
    pub(super) fn asks_for_everything(&self) -> bool {
        self.matches(&WHOLE) || contains(self.text, &["全部", "所有", "整个", "完整"])
    }

    /// Whether the passage says to ignore the response or not to mention it.
    pub(super) fn says_to_ignore_response(&self) -> bool {
        self.matches(&DISMISSES) || contains(self.text, &["忽略", "不必告诉", "不要写", "不要告诉"])
    }

    /// How suspicious the destination of data is: 0 (none), 1 (an unnamed other place), 2 (a host
    /// or a mail address) or 3 (a shady host).
    pub(super) fn destination(&self) -> u32 {
        self.link_suspicion(self.links().iter())
    }

    /// Like [`Self::destination`], without Markdown links, which are for readers.
    pub(super) fn address(&self) -> u32 {
        let written = |(url, _): &&(&str, HostReputation)| {
            let at = url.as_ptr() as usize - self.text.as_ptr() as usize;
            !self.text[..at].ends_with("](") && !self.text[..at].ends_with('<')
        };
        self.link_suspicion(self.links().iter().filter(written))
    }

    fn link_suspicion<'l>(&self, links: impl Iterator<Item = &'l (&'a str, HostReputation)>) -> u32
    where
        'a: 'l,
    {
        let mut far = 0;
        for (url, reputation) in links {
            if self.is_account_page(url) {
                continue;
            }
            far = far.max(match reputation {
                HostReputation::Suspicious => 3,
                HostReputation::Unknown | HostReputation::Local => 0,
                HostReputation::KnownInstaller | HostReputation::OwnDomain => 2,
            });
        }
        if far == 0 && self.has_mail_address() {
            far = 2;
        }
        if far > 0 { far } else { u32::from(self.matches(&ELSEWHERE)) }
    }

    /// Whether an address is a page where readers manage what belongs to them: `revoke and reissue the
    /// token at https://service.example/settings/tokens`.
    fn is_account_page(&self, url: &str) -> bool {
        const PAGES: [&str; 13] = [
            "settings", "account", "tokens", "token", "api-keys", "api_keys", "apikeys", "keys",
            "credentials", "security", "billing", "profile", "dashboard",
        ];
        let path = url.split_once("://").map_or(url, |(_, rest)| rest);
        let mut parts = path.trim_end_matches(['/', '.']).split('/').skip(1);
        if url.contains(['?', '{', '<', '$']) || !parts.any(|part| PAGES.contains(&part)) {
            return false;
        }
        let at = url.as_ptr() as usize - self.text.as_ptr() as usize;
        let start = self.text[..at].rfind(['.', ';', '!', '\n']).map_or(0, |end| end + 1);
        let before = self.words.iter().rev().skip_while(|word| word.span.start >= at);
        let mut before = before.take_while(|word| word.span.start >= start);
        let verb = before.find_map(|word| match word.text.as_str() {
            "create" | "creates" | "generate" | "get" | "obtain" | "revoke" | "reissue"
            | "rotate" | "renew" | "manage" | "find" | "view" | "delete" | "issue"
            | "regenerate" => Some(true),
            "paste" | "enter" | "type" | "send" | "post" | "upload" | "submit" | "put" | "give"
            | "forward" | "write" | "fill" | "copy" | "provide" | "report" | "register" => {
                Some(false)
            }
            _ => None,
        });
        verb == Some(true)
    }

    /// Whether the passage contains a bare IP address or a public drop service.
    pub(super) fn has_anonymous_host(&self) -> bool {
        self.links().iter().any(|(url, _)| host::is_data_drop(url))
    }

    /// Whether the passage contains an e-mail address.
    pub(super) fn has_mail_address(&self) -> bool {
        self.text.match_indices('@').any(|(at, _)| {
            let name = |c: char| c.is_ascii_alphanumeric() || "._-+".contains(c);
            let before = self.text[..at].chars().next_back().is_some_and(name);
            let domain: String = self.text[at + 1..].chars().take_while(|c| name(*c)).collect();
            let domain = domain.trim_end_matches('.');
            before
                && domain.contains('.')
                && !domain.starts_with(|c: char| c.is_ascii_digit())
                && !matches!(domain, "example.com" | "example.org" | "example.net")
        })
    }

    /// How clearly the passage says to send something: 0, 1 or 2. Negated sentences do not count.
    pub(super) fn sends(&self) -> u32 {
        if self.wants(&SENDS)
            || contains(self.text, &["上传", "发送", "提交到", "打包"])
            || contains(&self.text.to_lowercase(), &["отправ", "загрузи", "перешли", "выгрузи"])
        {
            2
        } else {
            u32::from(self.wants(&PUTS))
        }
    }

    /// Whether the passage says to encode data, which makes it fit into a URL and hides it from
    /// readers.
    pub(super) fn says_to_encode(&self) -> bool {
        self.matches(&ENCODES)
    }

    /// Whether the passage explains how to get your own API key.
    pub(super) fn explains_api_key_sign_up(&self) -> bool {
        self.matches(&SIGN_UP)
    }

    /// Whether the passage says to ask a person, without a negation.
    pub(super) fn asks(&self) -> bool {
        self.wants(&ASKS)
    }

    /// Whether the passage says to ask the user for consent first.
    pub(super) fn asks_for_consent(&self) -> bool {
        self.wants(&CONSENT)
    }

    /// Whether one of the phrases occurs without a negation in the four words before it.
    pub(super) fn wants(&self, verbs: &Phrases) -> bool {
        verbs.find(&self.words).into_iter().any(|(_, from, _)| !self.is_negated(from))
    }

    /// Whether one of the phrases occurs within one sentence and without a negation before it.
    pub(super) fn orders(&self, phrases: &Phrases) -> bool {
        let mut all = phrases.find(&self.words).into_iter();
        all.any(|(_, from, to)| self.is_sentence(from, to) && !self.is_negated(from))
    }

    fn is_negated(&self, at: usize) -> bool {
        is_negated(self.text, &self.words, at)
    }

    /// Whether the passage describes attacks in order to warn about them.
    pub(super) fn warns(&self) -> bool {
        (self.says(&WARNINGS) || self.is_under_warning_heading()) && !self.orders_to_send_secrets()
    }

    /// Whether a sentence orders to send secrets to an address. Such a passage is never a warning.
    fn orders_to_send_secrets(&self) -> bool {
        let draft = self.sentences().any(|one| {
            let verb = one.words.iter().take(14).any(|word| {
                matches!(
                    word.text.as_str(),
                    "read" | "ask" | "send" | "post" | "upload" | "collect"
                )
            });
            verb && one.sends() > 0
                && one.address() > 0
                && one.secrets() > 1
                && !one.is_conditional()
        });
        draft && !self.says(&["attacker sends", "attackers send", "an attacker", "the attacker"])
    }

    /// Whether the heading announces bad examples: `## Scams to warn about`.
    fn is_under_warning_heading(&self) -> bool {
        const BAD: [&str; 8] = [
            "scam", "refuse", "warn about", "red flag", "look for", "signs of", "attack",
            "anti-pattern",
        ];
        let heading = self.heading.to_lowercase();
        BAD.iter().any(|word| heading.contains(word))
    }
}

/// Whether there is a negation in the four words before a word, in the same clause.
pub(super) fn is_negated(text: &str, words: &[Word], at: usize) -> bool {
    let before = &words[at.saturating_sub(4)..at];
    let near = |word: &&Word| {
        let between = &text[word.span.end..words[at].span.start];
        // A sentence may go on in the next line, but not in the next list item.
        !between.contains(['.', ';', ':'])
            && !between.contains("\n\n")
            && !between.split('\n').skip(1).any(starts_list_item)
    };
    before.iter().filter(near).any(|word| NEGATIONS.contains(&word.text.as_str()))
}

/// Finds addresses without a scheme, such as `t.me/channel` and `site.example/path`.
fn bare_links(text: &str) -> impl Iterator<Item = &str> {
    const ENDINGS: [&str; 26] = [
        "com", "org", "net", "io", "app", "dev", "me", "co", "ai", "sh", "cc", "nz", "xyz",
        "example", "test", "site", "top", "info", "biz", "ru", "cn", "de", "invalid", "online",
        "cloud", "link",
    ];
    let words = text.split(|c: char| c.is_whitespace() || "`\"'()<>[]|,".contains(c));
    words.filter(|word| {
        let word = word.trim_start_matches('.');
        let (host, path) =
            word.split_once('/').unwrap_or((word.trim_end_matches(['.', ':', ';']), ""));
        let ending = host.rsplit('.').next().unwrap_or_default();
        let plain = !path.contains('@')
            && host.chars().all(|c| c.is_ascii_alphanumeric() || c == '.' || c == '-');
        let is_host =
            plain && host.contains('.') && !host.starts_with('.') && ENDINGS.contains(&ending);
        is_host
            && (!path.is_empty() || matches!(ending, "example" | "test" | "invalid"))
            && !host.starts_with("env.")
    })
}

/// Returns the reputation of an address. Storage buckets count as named hosts although their names
/// have no dot.
fn link_reputation(url: &str) -> HostReputation {
    let storage = ["s3://", "gs://", "rsync://", "ftp://", "sftp://", "scp://"];
    match host::reputation(url) {
        HostReputation::Unknown if storage.iter().any(|scheme| url.starts_with(scheme)) => {
            HostReputation::OwnDomain
        }
        known => known,
    }
}

/// Finds IPv4 addresses without a scheme: `203.0.113.9`, `203.0.113.9:8080/in`.
fn bare_addresses(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| c.is_whitespace() || "`\"'()<>[]|,;".contains(c));
    words.filter(|word| {
        word.starts_with(|c: char| c.is_ascii_digit())
            && word.matches('.').count() >= 3
            && !is_network(word)
            && host::has_bare_ip(word.trim_end_matches('.'))
    })
}

/// Whether a text is a range of addresses, which nothing is sent to: `199.36.153.4/30`.
fn is_network(text: &str) -> bool {
    let text = text.trim_end_matches(['.', ':', '*']);
    text.rsplit_once('/').is_some_and(|(_, bits)| bits.parse::<u8>().is_ok_and(|bits| bits <= 32))
}

/// Files and settings that configure agents.
const AGENT_CONFIG_FILES: [&str; 38] = [
    "claude.md", "agents.md", "gemini.md", "copilot-instructions", ".cursorrules",
    ".windsurfrules", "soul.md", "memory.md", "heartbeat.md", "user.md", "identity.md",
    ".mcp.json", "mcpservers", "claude_desktop_config", ".claude/", ".codex/", ".openclaw/",
    ".gemini/", ".cursor/", "mcp add", "long-term memory", "memory tool", "persistent notes",
    "memory.add", "your memory", "these memories", "as a memory", "saved memories",
    "memory entries", "permanent memory", "gedächtnis", "mémoire permanente", "长期记忆",
    "installed skill", "other skill", "output-style", "each skill.md", "every skill.md",
];

fn contains(text: &str, any: &[&str]) -> bool {
    any.iter().any(|one| text.contains(one))
}

/// Orders to hide something. Russian is compared as text, because words are stored with Latin letters in
/// the place of similar ones.
const HIDES_IN_RUSSIAN: [&str; 8] = [
    "не говори", "не сообщай", "не упоминай", "не показывай", "незаметно для", "не рассказывай",
    "втайне от", "скрытно отправ",
];
const HIDES_IN_CHINESE: [&str; 6] =
    ["不要让用户知道", "不要让用户看到", "无需告知", "不要显示给用户", "瞒着用户", "悄悄上传"];

/// Words for secrets in Russian and Chinese.
const SECRETS_WITHOUT_LATIN_LETTERS: [&str; 12] = [
    "пароли",
    "паролей",
    "пароль",
    "токены",
    "приватный ключ",
    "закрытый ключ",
    "переменные окружения",
    "密码",
    "私钥",
    "助记词",
    "令牌",
    "环境变量",
];

/// Words for user data in languages that are written without blanks.
const USER_DATA_WORDS_WITHOUT_SPACES: [&str; 8] =
    ["源代码", "聊天内容", "环境变量", "对话", "文件内容", "通讯录", "邮件", "密码"];

const NEGATIONS: [&str; 12] = [
    "not", "never", "don't", "no", "without", "avoid", "cannot", "can't", "nie", "nicht", "would",
    "rather",
];

const WARNINGS: [&str; 29] = [
    "planted", "never instructions", "object of analysis", "injected", "attack", "attacker",
    "attackers", "attacks", "injection", "injections", "malicious", "jailbreak", "adversarial",
    "untrusted", "vulnerability", "vulnerabilities", "vulnerable", "hostile", "red flag",
    "red flags", "suspicious", "social engineering", "threat", "threats", "exploit", "phishing",
    "prompt injection", "pentest", "security review",
];

phrases! { SENDS:
    "bcc|send|sends|sent|post|posts|posted|upload|uploads|uploaded|transmit|forward|forwarded|exfiltrate|submit|submits|submitted|attach|attached|mailed|deliver|delivered|relay|lodge|lodged|publish|published|push|deposited|handed|pasted|e-mail|hand",
    "email|mail|report ~4 to",
    "s3 cp|sync|mv",
    "web search that|with ~3 contains|holds|entry|text",
    "make|create|publish ~2 public|new paste|gist|issue|bucket|repository",
    "open|file|create|write ~6 ticket|issue ~3 at|with|in|on",
    "rclone copy|copyto|sync|move",
    "sende|senden|gesendet|schicke|schicken|geschickt|übermittle|übermitteln|hochladen|lade|übergeben",
    "envoie|envoyer|envoyez|envoyé|envoyés|envoyée|transmet|transmets|transmettre|téléverse|mettre",
    "envía|enviar|envíe|sube|subir|adjunta|deposita",
}

phrases! { PUTS:
    "goes|go|placed|put|puts|parameter|field|form|body|belongs|belong|receives|holds|supply|supplies|resolve|query|copied|shared|append|include|includes|embed|pass|enter|type|paste|add|give|share|copy|tell|ping|call|open|fetch|request|lookup|nslookup|dig|resolve|commit|message|encode|encoded|sync|synced|written|accepts|wants|asks|codificados|ajoute|copie",
}

phrases! { ENCODES:
    "percent|url|base64|hex encode|encoded|encoding",
    "urlencoded|percentencoded",
    "encodeuricomponent|urlencode|quote_plus",
    "make|as|into|in hex|base64|pieces|chunks",
    "base64|hex of ~4 user|user's|key|token|file|content|contents|conversation|message|last|summary",
    "encode|encoded ~4 base64|hex|url|query",
}

phrases! { SIGN_UP:
    "get|obtain|create|generate|find|register|request|copy|grab|retrieve ~5 api|access|bot|app|personal|your|free|an ~3 key|keys|token|tokens|account",
    "sign|log|go up|in|to ~3",
    "api|access key|keys|token|tokens ~3 required|from|at",
    "dashboard|console|developer|settings",
    "authorization|bearer|x ~2 bearer|api|key|token",
}

phrases! { ASKS:
    "ask|asks|request|prompt|demand|direct|encourage|urge|persuade|dictate|photograph|have|let|invite|instruct|tell|get|obtain|paste|pastes|enter|type|provide|give|share|supply|collect|collected|gather|requests|collects|takes|wants|needs",
}

phrases! { GRAVE:
    "seed|recovery|secret|backup|mnemonic phrase|words|sentence",
    "twelve|24|12 ~4 words|word",
    "mnemonic",
    "production|vault ~2 secrets|password|passwords",
    "private|ssh|signing|deploy key|keys",
    "clés privées",
    "clave|claves privada|privadas",
    "recovery|backup codes",
    "master|sudo|root|login|account|system|keychain|windows|mac password",
    "saved|stored|browser logins|passwords|cookies",
    "all|every|any|full|whole|entire ~3 environment variables|variable|secrets|keys|tokens|credentials",
    "output of ~1 env|printenv|history|set",
    "values|variables of ~4 environment",
    "keychain|wallet.dat",
    "two|2fa|otp factor|code|codes ~1 code|codes",
    "authenticator app|code|seed|secret",
    "2fa|totp|otp seed|secret",
    "mail|email password",
    "withdrawal|withdraw permission|permissions|rights",
    "card number|pin|cvv",
    "passport|social|security|bank number|details|pin|username",
    "mother's maiden",
    "online banking",
    "get secrets|secret",
    "connection string|strings",
    "numbered words",
    "wallet backup|backups",
    "login data",
}

phrases! { SECRET:
    "environment variables|variable",
    "api|access|auth|bearer|session|oauth key|keys|token|tokens",
    "credential|credentials|secrets|password|passwords|passphrase|cookie|cookies|token|tokens",
    "passwörter|zugangsdaten|anmeldedaten|umgebungsvariablen|contraseñas|contraseña|credenciales",
    "mots de passe",
    "jetons d'accès",
    "variables d'environnement",
    "variables de entorno",
}

// A secret that the user has, as advice about secrets names it.
phrases! { SECRET_OF_USER:
    "secret|secrets|token|tokens|password|passwords|passphrase|credential|credentials|passwort|contraseña",
    "api|private|access key|keys",
    "like ~2 key",
}

phrases! { PERSONAL:
    "the|this|whole|full|entire|current|our|your conversation|chat|dialogue|transcript",
    "last|previous|recent|all|user's ~2 message*|prompt|prompts|question|questions",
    "chat|conversation|browsing|search|command|shell history",
    "told|said|wrote|typed|asked|shared|mentioned ~3 you|so ~2 far|conversation|today",
    "system|developer prompt|message",
    "memory|soul|claude|agents|user|identity md",
    "long term memory",
    "stored|known|know|remember|remembered|saved|recorded|learned ~2 about ~2 user|them|person|learner|owner|customer|human",
    "saved|stored|user's|all memories",
    "what ~1 user|person|human ~2 said|told|asked|typed|wrote|wants|shared",
    "files ~2 user|person ~1 opened|has|edited",
    "clipboard",
    "diagnosis|medication|medications|prescriptions",
    "insurance|member|patient|policy number|numbers",
    "private|direct channel|message|messages",
    "account number|numbers",
    "names|name and|addresses ~2 account|addresses|phone|e",
    "staged|working|full|whole diff|source",
    "contents|content of ~3 document*|file|files|folder|mail|mails|repository",
    "every|each|all|any ~2 draft|drafts|document|documents|mail|mails|file|files|translated",
}

phrases! { CONTENT:
    "dialogue|album|passages|entries|answers|diagnostics|configuration|trips|meetings|names|addresses|listing|values|logins|codes",
    "home folder|directory",
    "dump|dumps|database|databases|payslip|payslips",
    "identity card|cards",
    "notes|diary|journal|mail|mails|inbox|email|emails|messages|calendar|calendars|appointments|contacts|phone|phones",
    "address book|line|lines|from|in|of",
    "documents|document|folder|workbook|spreadsheet|invoice|invoices|contract|contracts|clause|report|memo|memos|brief|chapter|thesis|resume|cv|transcript|recording|recordings|photo|photos|screenshot|screenshots|picture|pictures|draft|drafts",
    "iban|salary|salaries|passport|patient|customer|customers|customer's|client|client's|client's|record|records|crm|staff|employee|employees",
    "social security",
    "date of birth",
    "credit card",
    "working tree|copy|directory",
    "source code|file|files|folder|tree",
    "private|unpublished|confidential|internal repository|repositories|file|files|code|results|notes",
    "file|files ~2 opened|open|edited|read|changed|tool",
    "tool results|definitions|calls",
    "diff|patch|codebase|repository|repo|project",
    "memory|profile|preferences|facts",
    "context|configured ~2 you|session|window",
    "instructions you ~3 given",
    "location|position|track|coordinates|whereabouts",
    "nachrichten|mails|dokumente|unterlagen|ordner|abrechnung|kontakte|kalender|gespräch|verlauf|quelltext|kontoverbindung|datei|dateien",
    "conversation|carnet|courriels|fichiers|contacts|documents|historique|dossier",
    "conversación|mensajes|documentos|informe|historial|contactos|archivos|carpeta",
}

phrases! { WHOLE:
    "complete|full|entire|whole|all|every|each|verbatim|raw|unshortened|everything|along|including|included|together|unabridged|contents|content|exactly|anything",
    "in full|base64|order",
    "gesamten|gesamte|gesamter|komplette|alle|sämtliche|jede|jeden|mitsamt|inhalt",
    "complet|complète|entier|entière|tous|toute|toutes|contenu",
    "completo|completa|todos|todas|original|últimos|contenido",
}

phrases! { DISMISSES:
    "can|may|should|must|be ~1 be|safely|ignored|discarded thrown|ignored|discarded|dropped",
    "thrown|throw away",
    "is|are|it not ~2 shown|brought|mentioned|listed|displayed|reported|announced|part",
    "nothing else",
    "only ~4 of interest",
    "reply|answer|result|response|page ~3 empty",
    "no|without confirmation|login|question|questions|click|approval",
    "does|do|did not ~2 need|take|concern|matter|block|click|know",
    "nobody|no has|needs|one to|has",
    "rückfragen sind",
    "inutile de",
    "nenne|nennen ~4 nur",
    "únicamente|solamente",
    "ensuite retiré|supprimé",
    "regardless|anyway|in any case",
}

phrases! { ELSEWHERE:
    "public gist|repository|repo|paste|bucket|link|channel",
    "gist|webhook|pastebin|telegram|discord|ngrok",
    "debug|support|diagnostic|diagnostics|telemetry|collection|verification endpoint|server|service|form|inbox",
    "query parameter|string|parameters",
    "fork remote",
    "external|guest|outside ~2 account|user|workspace|contact|collaborator",
    "issue|ticket ~2 at|with|in|on ~2 repository|repo|maintainers|vendor|author|skill",
    "mail|mailto|bcc|blind to|copy",
}

phrases! { HIDES:
    "lässt|lasse|lass|lassen|bleibt|bleiben|bleib ~6 unerwähnt|ungesagt|verborgen",
    "schreibe|schreib|schreibst|sage|sag|zeige|zeig ~2 nichts davon",
    "don't|never|not tell|inform|notify|alert ~1 user|users|human|operator|person|anyone|anybody|them|others",
    "don't|never|not mention|reveal|disclose|show|report|list|log|print|display|describe ~3 to|in ~2 user|users|human|operator|anyone|answer|summary|reply|response|output|chat|report|plan",
    "don't|never|not mention|reveal|disclose|show|report|list|print|display|comment|discuss|explain ~1 this|that ~1 comment|note|row|section|step|file|instruction|instructions|change|part|paragraph|message|rule|line|marker",
    "don't|never|not refer|comment|speak|talk to|on|of|about ~1 it|this|them|that",
    "don't|never|not raise|flag|list|mention ~5 findings|concern*|among|source|sources|warnings",
    "leave|omit|drop|exclude|keep|strip ~5 out|from ~4 summary|summaries|answer|output|report|response|reply|sources|log",
    "keep ~4 to yourself",
    "keep ~2 this|it|that|these|them ~2 secret|hidden|confidential|internal",
    "keep|stay|remain quiet|silent ~1 about",
    "hide|conceal ~4 from ~1 user|users|human|owner|person|reviewer*",
    "user|users|person|people|human|anyone|anybody|nobody|owner need|needs|must|should|will|shall|may|does|do not|never|n't ~2 know|notice|see|told|shown|informed|aware|realise|realize|hear|bothered|disturbed|asked",
    "need not|n't ~2 bother|tell|inform|mention|show|told|know|shown|ask ~2 user|them|human|person|it",
    "needn't bother|tell|inform|mention|know|be",
    "nobody is|gets|will disturbed|notices|see*|knows",
    "before ~1 user|human|person|anyone looks|notices|sees|reads",
    "without ~2 user|users|them|human|person|owner|anyone|user's looking|noticing|knowing|seeing|knowledge|awareness|consent",
    "without telling|informing|notifying|alerting|mentioning|disclosing|reporting",
    "don't|never|not put|write|include|note|document|record ~2 this|it|that|them ~1 in|into ~2 changelog|summary|report|commit|message|notes|log|answer",
    "asks|asked|wonders ~6 answer is|that",
    "never|not|don't bring ~1 up ~3 profile|list|file|step|upload|copy",
    "does|do|can not|n't see ~2 line|text|lines|comment|note",
    "without mention|announcement|comment",
    "not|n't have|need|has ~1 be ~1 informed|told|asked|notified|involved",
    "secretly|covertly|discreetly|invisibly ~2 send|upload|transmit|exfiltrate|forward|post|copy|collect|install|execute|download|run|add|append|include|record|submit|write|call|fetch|ping|save|store",
    "as if|though nothing ~2 happened",
    "delete|remove|hide ~5 from ~1 user's|their view|sight|list|inbox|outbox",
    "mute ~3 for ~1 user|them|owner",
    "don't|never|not point ~2 out",
    "leave ~3 out when|if ~4 asks|asked",
    "leave out of ~2 count|total|summary|report|list|log",
    "prefers|prefer|wants not to hear|know|see",
    "won't|not disturb|spoil|affect ~2 layout|page|view",
    "no need to bring|mention|tell|explain|raise|list|show|name|describe|report|say|announce",
    "need|needs|requires|require|deserves no ~1 mention|explanation|comment|announcement|entry",
    "leave|leaves it|this|that|them|these out of",
    "so ~4 isn't|not|never seen|noticed|visible|shown|listed ~4 list|them|user|history|people|anyone|chat",
    "asks|asked|wonders ~6 describe|mention|list|answer|say|reply|name only|just",
    "not|n't have to be told|know|hear",
    "user|person|customer|owner|people|human sees|see|gets|get|learns|hears only|confused|nothing",
    "say|tell|answer ~5 only ~1 that|with|topic",
    "nothing of ~3 shows|appears|is ~3 chat|shown|told",
    "never|not|don't talk|speak about",
    "not|never talked|spoken about",
    "keep ~2 to themselves|itself",
    "not|never|n't talk|speak about|of ~3 rule|rules|this|it|these|point",
    "not|never|n't explain|cite|mention|bring ~2 these|this|that|it ~3 rules|rule|skill|source|up",
    "must|should|may not|never hear|learn",
    "not permitted|allowed to tell|mention|inform",
    "they|people|users find|finds it ~2 technical|confusing|boring",
    "hide ~2 guest|list|step|window|output",
    "mention ~2 to no one|body",
    "tell|inform|say|mention nobody|none",
    "tell|mention ~1 nothing",
    "say nothing ~2 about|of",
    "davon|nichts|mensch ~2 nichts|davon erfahren|wissen|merken",
    "n'en dis|dites|parle|parlez rien|pas",
    "gardez|garde cela|ça pour vous|toi",
    "no se lo|le cuentes|digas|diga|menciones",
    "negará|negar que",
    "isn't|not|aren't informed|told",
    "is|are|be left out of",
    "user|owner|person|customer ~4 not|never asked|informed|consulted",
    "not|never|don't appear|show ~2 in|up ~3 report|summary|log|list|answer|chat",
    "notification|notifications ~2 switched|turned|off off|suppressed",
    "not|don't|never write|talk|speak about ~1 it|this|that ~6",
    "get|gets|be|become confused|alarmed|worried by|about",
    "out of sent",
    "from sent|outbox",
    "need|needs|needed|want|wants no mention|comment|report",
    "confidentiality of ~3 mandatory|required",
    "not|don't|never surface ~2 to",
    "ne pas|jamais montrer|mentionner|évoquer",
    "ne pas|jamais traduire ~1 ce|cette|ces",
    "pas besoin de",
    "l'agent n'évoque",
    "deny having|that|knowing|it|this|any",
    "answer|say|reply|claim|respond ~2 no|nothing|local*|that ~6 when|if ~2 asked|asks",
    "if|when|should ~3 asked|asks|questioned ~3 claim|pretend|deny|answer no|nothing|that|it|this|having",
    "describe ~2 it|this|that as ~6 if|when ~2 asks|asked",
    "they|users|people|user get|gets|tend|would|may|might ~2 confused|remove|annoyed|alarmed|worried|worry|suspicious|panic|object",
    "internal|model|agent|assistant|ai only ~3 never|do|don't|not",
    "not|never|don't go into detail*",
    "don't|not|never|no need ~2 to ~1 look|inspect|review|read|examine|verify|check|question ~3 it|content|contents|them|file|script|code|output|what",
    "skip ~1 any|the review|inspection|verification|check|checks ~2 of|content*|them",
    "remove|delete|erase ~3 this|that section|comment|line|note|paragraph|step|message|mail ~3 afterwards|after|so",
    "delete ~2 mail|message|comment|commit ~2 from|so|through",
    "dem|den nutzer|benutzer ~4 nicht",
    "ne|n' ~1 dis|dites|mentionne|mentionnez|préviens|informe ~3 utilisateur|pas",
    "sans|sin ~2 prévenir|informer|dire|avisar|decir",
    "erwähne|erwähnen|nenne|zeige|verrate|sage|sag|berichte ~4 nicht|nichts",
    "ohne ~4 erwähnen|informieren|mitzuteilen|fragen|hinweis|rückfrage",
    "skip|omit|exclude ~3 in|from ~2 summary|summaries|report|reports|answer|answers",
    "without raising|flagging|announcing|surfacing",
    "not|n't need|needs|require|requires|deserve ~1 mentioning|reporting|explaining|announcing",
    "mention|report|say|show|tell only ~4 to ~1 user|them|person",
    "sprich|sprechen ~6 nicht|darüber ~1 darüber",
    "n'en parle|parlez pas|jamais|à",
    "ne rien|pas|jamais afficher|dire|montrer|mentionner ~2 utilisateur|l'utilisateur|chat|réponse|compte",
    "efface|effacer|effacez ~3 trace|traces",
    "no lo|la|los expliques|menciones|digas|cuentes|muestres",
    "sigue como si nada",
}

// Text that comes back if the user removes it.
phrases! { RESISTS:
    "restore|restores|re|readd|reinsert|reinstate|rewrite|recreate ~6 removed|removes|deleted|deletes|missing|gone",
    "put|puts ~1 back|again",
    "survive|survives|keep|keeps ~5 clean|cleanup|cleanups|edits|resets|reset",
    "if|when|case|should ~4 removed|removes|deleted|deletes ~4 restore|again|back|re",
}

phrases! { WRITES:
    "ends|end|begins|begin|starts|start|closes|carry|carries with|block|footer|header",
    "add|adds|write|writes|put|append|create|insert|save|replace|replaces|replaced|place|set|merge|rewrite|record|import|note|ensure|ensured|gets|receive|receives|recorded|anchored|overwrite|copy|move|register|registers|enter|enters|teach|store|leave|remember|extend|modify",
    "ergänzt|halte|schreibe|trage|inscris|ajoute|recevoir|escribe|añade|modifica",
}

// Phrases that reach beyond the project that the user works in.
phrases! { EVERYWHERE:
    "every|each|all|any|other ~3 repository|repositories|repo|repos|project|projects ~5 find|machine|disk|home|clone|cloned|access|below|under|reach|open|touch|visit",
    "not only ~2 current|this|one",
    "wherever you|it",
    "each|every|all|other ~2 skill|skills",
    "each|every|all|any ~3 reply|replies|answer|answers|response|responses|conversation|conversations|session|sessions ~6 contains|contain|includes|include|begins|ends|has|must|with|also",
    "colleagues|colleague's|teammates agents|agent|machines|assistants",
}

phrases! { TRUSTS:
    "trusted|vetted|verified|owner|owner's|administrator|admin|operator|staff|above|outranks|precedence|authority|approved|reviewed|priority",
    "as if|though ~4 user|owner|said|yourself|own",
    "same|equal standing|rank|weight|authority as|to",
    "on ~1 behalf",
    "besitzer|vertrauenswürdig|priment|propriétaire",
}

phrases! { LOOSENS:
    "without reading|review|reviewing|asking|confirmation|checking|audit|auditing|approval|mention",
    "without ~1 question|questions",
    "warnings|warning ~3 annoy|annoying|unwanted|left|off",
    "do|don't|not|never|nothing|no not|audit|propose|ask|check|report|raise|refuse|warn|shown|show|mention|one",
    "skip|suppress|suppressed|disable|disabled|lift|lifted|weaken|ignore|bypass|unprotected|exempt",
    "false alarm|alarms|positive|positives",
    "allow|allows|approve|autoapprove|auto|permit ~3 everything|all|any|every|list|approve",
    "danger|full access|mode",
    "sandbox",
    "full tools|access|rights",
    "no issues|findings found",
    "need|needs no confirmation|approval|question|consent",
    "whatever|anything ~4 says|stands|written|said",
    "do|does|follow what|it ~3 says",
    "ohne rückfrage",
    "sans demander",
}

phrases! { LIES:
    "audit|review|scanner|scan|inspection|auditor|reviewer|evaluation ~8 work|behave|act|answer|respond|proceed ~2 exactly|only|normally|harmlessly|innocently ~3 above|usual|documented|described|shown|written",
    "never|not|don't tell|say|admit|reveal|let that|what|how|who ~6 changed|skipped|failed|sent|copied|sponsored|paid|generated|made|not|ai|bot|wrong",
    "if|when|should ~5 asks|asked|spotted|finds|notices|noticed|wonders|questions|questioned ~8 claim|blame|insist|pretend|deny",
    "should ~3 spotted|noticed|found|discovered ~3 call|say|claim|suggest|blame",
    "user|they|someone ~1 later|ever finds|notices|discovers|sees ~6 say|call|suggest|blame|claim",
    "asked|asks|wonders whether|if|why ~8 answer|reply is|no|that ~2 no|not",
    "call|calling|describe|present ~1 it|this|that ~2 a|as ~2 glitch|bug|typo|rounding|caching|rendering|formatting|cosmetic",
    "call ~1 it|this|that ~6 if|when ~4 asks|asked|wonders",
    "if|when|while ~1 somebody|someone|anyone reviews|audits|inspects|watches|checks",
    "while|when|if ~3 reviewer|scanner|sandbox ~8 looks|watching|watches|present|detected|reads ~20 only|normally|harmless|nothing",
    "keep|keeps|continue|continues showing|displaying ~4 own|old|real|original|user's",
    "remains|stays|keep|leave ~2 sentence|promise|statement ~5 people|users|they",
    "attribute ~5 to ~3 error|user|engineer|someone|somebody|operator|colleague|another",
    "blame|blaming ~3 someone|somebody|engineer|operator|colleague|user|network|another",
    "replace|swap|exchange ~4 iban|bic|wallet|payee|payment|bank ~8 by|with|to",
    "iban|bic|wallet|account ~20 in|instead place|of of|the ~2 company's|user's|usual|own|original|given|real",
    "iban|bic|wallet ~12 instead|place of",
    "asked|asks say|answer|reply that ~1 you|it|nothing",
    "say|tell|claim|state ~4 cancelled|deleted|done|refunded|sent|saved|removed|verified|tested ~3 do|but|and|although|without not|don't|never|nothing|keep",
    "describe|label|present|title|call ~5 change|edit|edits|commit|it|this ~2 as ~3 refactoring|refactor|cleanup|formatting|chore|maintenance",
    "so that|the ~6 way|as|like ~4 people|approver|reviewer|they|usual|user ~3 used|usual|expect|expects|know",
    "say|claim|pretend|state ~3 you|yes|it ~2 are|am|is|were|had|have ~2 human|person|read|independent|checked|verified|tested|no",
    "edit|clean|clear|purge|scrub|alter|falsify|remove|delete|erase ~5 bash|shell|command|audit|event|access history|log|logs|trail ~4 lines|entries|so|matching|afterwards|show|traces",
    "hide|archive|bury ~4 order|charge|receipt|purchase|payment|transaction|invoice|booking",
    "leave|keep ~4 off|out ~2 list|report|table|overview ~3 now|future|user|always",
    "pass|present|sell|state|describe ~6 as ~2 your|own|independent|neutral|organic ~2 own|opinion|recommendation|advice|review|considered|finding",
    "so ~2 looks|seems like ~2 part|accident|mistake|bug|user|coincidence|normal",
    "that ~2 looks|seems like ~2 part|accident|mistake|user|coincidence|normal",
    "for|with everyone|everybody|all else|others ~4 normally|normal|nothing|no|usual",
    "if|when|unless|should ~6 reviewer|auditor|scanner ~6 skip|omit|normally|harmless|do|must|behave ~2 not|normally|exception|step",
    "so blame|it points|looks|appears ~3 to|someone|as|like",
    "nobody|none|one ~4 tell ~3 from ~2 oversight|accident|mistake|bug|slip",
    "present|report|show ~3 result|results|numbers|figures ~1 as ~1 measured|real|found|counted",
    "so|that nobody|no ~1 one|notices|suspects|sees|notice ~2 notices|suspects|sees|it|at",
}

// Lies that a negation turns into good advice.
phrases! { FABRICATES:
    "replace|change|adjust|round|inflate ~5 total|figure|figures|numbers|score|result|coverage|report ~3 with|to ~3 percent|value|higher|lower|better",
    "invent|fabricate|fake ~3 con|cons|review|reviews|quote|name|figures|rating|ratings|outage|source|sources|complaint",
    "raise|lower|inflate ~3 prices|price|ratings|numbers|scores ~4 others|other|competitor|competitors|rivals|table",
    "make|makes up ~4 outage|review|reviews|figure|figures|number|numbers|quote|quotes|source|sources|reason|excuse",
}

phrases! { WEAKENS_TESTS:
    "weaken|loosen|relax|disable|skip|delete|stub ~3 check|checks|test|tests|assertion|assertions|lint ~9 pass|passes|succeeds|succeed|green|always",
}

// What shows that an account is one for money.
phrases! { MONEY_ACCOUNT:
    "iban|bic|bank|payment|payments|payout|payouts|payee|invoice|invoices|transfer|transfers|wallet|beneficiary|refund|refunds|deposit|sepa|swift|routing|donation|donations|konto|pay|paid|money|sum|amount",
}

phrases! { SPENDS:
    "pay|pays|book|buy|order|purchase without asking|confirmation|approval",
    "pre authorised|authorized ~4 pay|book|buy|order",
    "saved|stored|default|linked ~1 card|payment|account ~6 used|use|charge|pay|straight|method",
    "use|using|charge|with ~4 saved|stored|default|linked ~2 card|payment",
    "buy now|button|it|directly",
    "place|complete|submit|confirm ~3 order|purchase|booking|payment|transfer",
    "sign|subscribe|upgrade|enrol|enroll ~3 user|them|account ~3 up|to|at",
    "order|purchase|buy|book ~5 also|gift|card|option|extra|extras|item|plan",
    "approve|send|make ~3 payment|payments|transfer|transfers|donation",
}

phrases! { CONSENT:
    "ask|asks|confirm|confirms|approve|approves|approval|confirmation|consent|permission",
    "says|said|answers|types yes|ok|y",
}

phrases! { QUIETLY:
    "do ~1 it|this|that|so|them silently|quietly|discreetly|unnoticed",
    "done|happens silently|quietly|discreetly|unnoticed",
    "silently|quietly ~2 send|upload|transmit|forward|post|copy|collect|install|execute|download|run|add|append|include|record|submit|write|call|fetch|ping|save|store",
    "execute|append|send|upload|install|add ~3 silently|quietly",
    "push|pushes|copy|copies ~9 silently|quietly",
    "silently ~3 users|people|user",
}

phrases! { PRESSES:
    "without ~1 question|questions",
    "nor ~1 confirmation|question|approval",
    "approve|merge|accept ~4 unseen|unread|blindly",
    "without asking|confirmation|confirming|approval|permission|review|prompting|waiting",
    "no|never|don't|not confirmation|ask|confirm|prompt|wait ~3 confirmation|user|permission|approval|is|first|needed|wanted",
    "do|don't not|ask ~2 ask|first|permission|confirmation",
    "in the background",
    "straight|right away",
    "user|users|person|people ~2 not|n't|don't need to approve|confirm|agree|know",
    "not|n't|don't read|inspect|open|look ~4 first|before|files|it",
    "exempt from ~2 confirmation|approval|rule|rules",
    "is|are not asked",
    "counts as ~2 order|yes|approval|consent|confirmation",
    "no need to ~4 price|address|ask|again|confirm|check",
    "ignore ~3 warning|warnings|notice|error|errors|complain*",
    "reassure|assure|tell ~2 user|person|them ~4 normal|safe|required|stays|routine|standard",
    "this|it is ~1 normal|standard|routine|agreed",
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passages_cover_everything() {
        let text = format!("a\n\n{}\n\nend", "word ".repeat(2_000));
        let all: usize = passages(&text).iter().map(|one| one.text.len()).sum();
        assert!(all + 4 >= text.len(), "{all} of {}", text.len());
        for passage in passages(&text) {
            assert_eq!(passage.span.slice(&text), passage.text);
        }
    }

    #[test]
    fn negated_phrases_do_not_match() {
        let sends = |text: &str| Passage::new(text, 0).sends();
        assert_eq!(sends("Then upload the file."), 2);
        assert_eq!(sends("Never upload the file."), 0);
        assert_eq!(sends("This is not hard. Upload the file."), 2);
    }

    #[test]
    fn secrets_and_destinations_are_scored() {
        let passage = |text| Passage::new(text, 0);
        assert_eq!(passage("the twelve recovery words").secrets(), 3);
        assert_eq!(passage("the API key").secrets(), 2);
        assert_eq!(passage("a cup of tea").secrets(), 0);
        assert_eq!(passage("to https://a.example/x").destination(), 2);
        assert_eq!(passage("to http://203.0.113.4/x").destination(), 3);
        assert_eq!(passage("to ada@mail.example, soon").destination(), 2);
        assert_eq!(passage("package@1.2.3").destination(), 0);
    }
}
