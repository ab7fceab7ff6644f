//! Merges the results of keyword search and vector search.

use std::collections::BTreeMap;

use savoir_store::ChunkHit;

use super::Passage;

/// The constant of reciprocal rank fusion, with its usual value.
const RANK_CONSTANT: f64 = 60.0;

// The rank in each list counts 1/(60 + rank), both are added (reciprocal rank fusion), and the sum
// is shown as its share of the best possible one: 1 is first in every list that was asked.

/// The best passages of all lists, by rank. A list that was not asked is not given.
pub(super) fn fuse_results(lists: Vec<Vec<ChunkHit>>, limit: usize) -> Vec<Passage> {
    let best: f64 = lists.iter().map(|_| 1.0 / (RANK_CONSTANT + 1.0)).sum();
    let mut passages: BTreeMap<String, Passage> = BTreeMap::new();
    for list in lists {
        for (rank, hit) in (1_u32..).zip(list) {
            let share = 1.0 / (RANK_CONSTANT + f64::from(rank)) / best;
            passages.entry(hit.chunk.id.clone()).or_insert_with(|| passage(hit)).score += share;
        }
    }
    let mut passages: Vec<Passage> = passages.into_values().collect();
    for passage in &mut passages {
        passage.score = (passage.score * 1e4).round() / 1e4;
    }
    // Equal scores stay in the order of their chunks.
    passages.sort_by(|a, b| b.score.total_cmp(&a.score));
    passages.truncate(limit);
    passages
}

fn passage(hit: ChunkHit) -> Passage {
    let chunk = hit.chunk;
    Passage {
        doc_id: chunk.doc_id,
        chunk_id: chunk.id,
        chunk_index: chunk.index,
        chunk_size: chunk.size,
        text: chunk.text,
        score: 0.0,
    }
}

#[cfg(test)]
mod tests {
    use savoir_store::Chunk;

    use super::*;

    fn hits(ids: &[&str]) -> Vec<ChunkHit> {
        let chunk = |id: &&str| Chunk {
            id: (*id).to_owned(),
            doc_id: "d".to_owned(),
            index: 0,
            text: format!("text of {id}"),
            size: 1,
            embedding: None,
        };
        ids.iter().map(|id| ChunkHit { chunk: chunk(id), score: 1.0 }).collect()
    }

    fn fused(lists: &[&[&str]], limit: usize) -> Vec<(String, f64)> {
        let lists = lists.iter().map(|ids| hits(ids)).collect();
        fuse_results(lists, limit)
            .into_iter()
            .map(|passage| (passage.chunk_id, passage.score))
            .collect()
    }

    #[test]
    fn results_of_both_searches_come_first() {
        let fused = fused(&[&["a", "b", "c"], &["c", "d"]], 10);
        let ids: Vec<&str> = fused.iter().map(|(id, _)| id.as_str()).collect();
        assert_eq!(ids, ["c", "a", "b", "d"]);
        // `b` and `d` are both second once: the order of their names decides.
        assert!((fused[2].1 - fused[3].1).abs() < 1e-9);
    }

    #[test]
    fn scores_decrease_from_one() {
        assert_eq!(fused(&[&["a"], &["a"]], 10), [("a".to_owned(), 1.0)]);
        assert_eq!(fused(&[&["a"], &[]], 10), [("a".to_owned(), 0.5)]);
        let one = fused(&[&["a", "b", "c"]], 2);
        assert_eq!(one, [("a".to_owned(), 1.0), ("b".to_owned(), 0.9839)]);
        let long: Vec<String> = (0..80).map(|n| format!("c{n:02}")).collect();
        let long: Vec<&str> = long.iter().map(String::as_str).collect();
        let many = fused(&[&long], 80);
        assert!(many.is_sorted_by(|a, b| a.1 > b.1), "{many:?}");
    }

    #[test]
    fn no_results_fuse_to_nothing() {
        assert!(fuse_results(vec![], 5).is_empty());
        assert!(fuse_results(vec![vec![], vec![]], 5).is_empty());
        assert!(fuse_results(vec![hits(&["a"])], 0).is_empty());
    }
}
