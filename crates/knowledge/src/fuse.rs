//! Merges the results of keyword search and vector search.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use savoir_store::ChunkHit;

use super::Passage;

/// The constant of reciprocal rank fusion, with its usual value.
const RANK_CONSTANT: f64 = 60.0;

/// The typical cosine of an unrelated text, and of one with the same meaning. Embedding models
/// rarely exceed this range.
const UNRELATED_COSINE: f64 = 0.15;
const SAME_COSINE: f64 = 0.85;

/// Words with this many equal first letters count as equal: `return` and `returns`.
const STEM_CHARS: usize = 5;

/// English words without a topic.
const STOP_WORDS: [&str; 40] = [
    "a", "an", "and", "are", "as", "at", "be", "by", "can", "do", "does", "for", "from", "has",
    "have", "how", "i", "in", "is", "it", "may", "me", "my", "of", "on", "or", "our", "that",
    "the", "their", "there", "this", "to", "was", "what", "when", "which", "with", "you", "your",
];

/// The results of one search method.
pub(super) enum Hits {
    Words(Vec<ChunkHit>),
    /// The score of each is its cosine.
    Vectors(Vec<ChunkHit>),
}

/// A passage with its ranks and scores from both methods.
struct Candidate {
    passage: Passage,
    /// The sum of `1/(60 + rank)` over both lists (reciprocal rank fusion), which decides the
    /// order.
    share: f64,
    cosine: Option<f64>,
}

/// Returns the best passages of all lists. The ranks decide the order; the score of each passage is
/// its relevance, independent of the other results.
pub(super) fn fuse_results(lists: Vec<Hits>, question: &str, limit: usize) -> Vec<Passage> {
    let mut candidates: BTreeMap<String, Candidate> = BTreeMap::new();
    for list in lists {
        let (hits, is_vector) = match list {
            Hits::Words(hits) => (hits, false),
            Hits::Vectors(hits) => (hits, true),
        };
        for (rank, hit) in (1_u32..).zip(hits) {
            let cosine = is_vector.then_some(hit.score);
            let id = hit.chunk.id.clone();
            let candidate = candidates.entry(id).or_insert_with(|| candidate(hit));
            candidate.share += 1.0 / (RANK_CONSTANT + f64::from(rank));
            candidate.cosine = candidate.cosine.or(cosine);
        }
    }
    let mut candidates: Vec<Candidate> = candidates.into_values().collect();
    // The sort is stable: equal sums stay in the order of their chunks.
    candidates.sort_by(|a, b| b.share.total_cmp(&a.share));
    candidates.truncate(limit);
    let words = stems(question);
    let ranked = (1_u32..).zip(candidates).map(|(rank, candidate)| {
        let Candidate { passage, cosine, .. } = candidate;
        let by_words = coverage(&words, &passage.text);
        let score = cosine.map_or(0.0, relevance_of_cosine).max(by_words);
        Passage { score: (score * 1e4).round() / 1e4, rank, ..passage }
    });
    ranked.collect()
}

fn candidate(hit: ChunkHit) -> Candidate {
    let chunk = hit.chunk;
    let passage = Passage {
        doc_id: chunk.doc_id,
        chunk_id: chunk.id,
        chunk_index: chunk.index,
        chunk_size: chunk.size,
        text: chunk.text,
        score: 0.0,
        rank: 0,
    };
    Candidate { passage, share: 0.0, cosine: None }
}

/// Maps a cosine to a relevance between 0 and 1.
fn relevance_of_cosine(cosine: f64) -> f64 {
    ((cosine - UNRELATED_COSINE) / (SAME_COSINE - UNRELATED_COSINE)).clamp(0.0, 1.0)
}

/// Returns the share of the words of a question that a passage contains.
fn coverage(words: &BTreeSet<String>, passage: &str) -> f64 {
    if words.is_empty() {
        return 0.0;
    }
    let there = stems(passage);
    let found = words.intersection(&there).count();
    #[expect(clippy::cast_precision_loss, reason = "a question has few words")]
    let share = found as f64 / words.len() as f64;
    share
}

/// Removes stop words from a question, because a passage that matches only these is not an answer.
/// A question of stop words only is not changed.
pub(super) fn without_stop_words(question: &str) -> Cow<'_, str> {
    let is_content = |word: &&str| {
        let bare = word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
        !bare.is_empty() && !STOP_WORDS.contains(&bare.as_str())
    };
    let content: Vec<&str> = question.split_whitespace().filter(is_content).collect();
    if content.is_empty() { Cow::Borrowed(question) } else { Cow::Owned(content.join(" ")) }
}

/// Returns the distinct words of a text, cut to their stems. Each ideograph is a word.
fn stems(text: &str) -> BTreeSet<String> {
    let lower = text.to_lowercase();
    let is_ideograph = |c: char| ('\u{2e80}'..='\u{9fff}').contains(&c);
    let mut stems: BTreeSet<String> =
        lower.chars().filter(|c| is_ideograph(*c)).map(String::from).collect();
    let words = lower.split(|c: char| !c.is_alphanumeric() || is_ideograph(c));
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let stem = |word: &&str| word.chars().take(STEM_CHARS).collect::<String>();
    stems.extend(words.iter().filter(|word| !STOP_WORDS.contains(word)).map(stem));
    if stems.is_empty() {
        // A text of stop words only keeps them.
        stems.extend(words.iter().map(stem));
    }
    stems
}

#[cfg(test)]
mod tests {
    use savoir_store::Chunk;

    use super::*;

    fn hits(texts: &[(&str, &str, f64)]) -> Vec<ChunkHit> {
        let chunk = |id: &str, text: &str| Chunk {
            id: id.to_owned(),
            doc_id: "d".to_owned(),
            index: 0,
            text: text.to_owned(),
            size: 1,
            embedding: None,
        };
        texts
            .iter()
            .map(|(id, text, score)| ChunkHit { chunk: chunk(id, text), score: *score })
            .collect()
    }

    fn named(ids: &[&str]) -> Vec<ChunkHit> {
        hits(&ids.iter().map(|id| (*id, "text", 0.5)).collect::<Vec<_>>())
    }

    #[test]
    fn results_of_both_searches_come_first() {
        let lists = vec![Hits::Words(named(&["a", "b", "c"])), Hits::Vectors(named(&["c", "d"]))];
        let fused = fuse_results(lists, "text", 10);
        let ids: Vec<(&str, u32)> =
            fused.iter().map(|passage| (passage.chunk_id.as_str(), passage.rank)).collect();
        // `b` and `d` are both second in one list, so the order of their ids decides.
        assert_eq!(ids, [("c", 1), ("a", 2), ("b", 3), ("d", 4)]);
    }

    #[test]
    fn scores_say_how_relevant_a_passage_is() {
        let score = |question: &str, list: Hits| fuse_results(vec![list], question, 1)[0].score;
        let words = |text: &str| Hits::Words(hits(&[("a", text, 9.0)]));
        let close = |score: f64, expected: f64| (score - expected).abs() < 1e-3;
        let question = "How long may goods be returned?";
        assert!(close(score(question, words("Return goods within a long month")), 1.0));
        assert!(close(score(question, words("The returns desk is closed")), 0.3333));
        assert!(close(score(question, words("Zebras live in Africa")), 0.0));
        assert!(close(score("如何退货", words("退货")), 0.5));
        assert!(close(score("what is it", words("it is what it is")), 1.0));
        let vector = |cosine: f64| Hits::Vectors(hits(&[("a", "anything", cosine)]));
        assert!(close(score(question, vector(0.9)), 1.0));
        assert!(close(score(question, vector(0.5)), 0.5));
        assert!(close(score(question, vector(0.1)), 0.0));
    }

    #[test]
    fn stop_words_are_not_searched() {
        assert_eq!(without_stop_words("What do striped zebras eat?"), "striped zebras eat?");
        assert_eq!(without_stop_words("what is it"), "what is it");
        assert_eq!(without_stop_words("如何退货"), "如何退货");
        assert_eq!(without_stop_words(" - "), " - ");
    }

    #[test]
    fn no_results_fuse_to_nothing() {
        assert!(fuse_results(vec![], "q", 5).is_empty());
        assert!(fuse_results(vec![Hits::Words(vec![]), Hits::Vectors(vec![])], "q", 5).is_empty());
        assert!(fuse_results(vec![Hits::Words(named(&["a"]))], "q", 0).is_empty());
    }
}
