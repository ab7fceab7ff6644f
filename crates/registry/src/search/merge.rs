//! Decides which segments of the index are merged.

use tantivy::{
    index::SegmentMeta,
    indexer::{LogMergePolicy, MergeCandidate, MergePolicy},
};

/// Segments with more documents are not merged with others, so that few merges take long.
const MAX_DOCUMENTS_TO_MERGE: u32 = 100_000;
/// A segment is rewritten when a larger share of its documents is deleted.
const MAX_DELETED_RATIO: f32 = 0.3;

/// Merges small segments when there are several, and rewrites segments with many deletions.
#[derive(Debug)]
pub(super) struct SegmentMergePolicy(LogMergePolicy);

impl Default for SegmentMergePolicy {
    fn default() -> Self {
        let mut policy = LogMergePolicy::default();
        policy.set_max_docs_before_merge(MAX_DOCUMENTS_TO_MERGE as usize);
        policy.set_del_docs_ratio_before_merge(MAX_DELETED_RATIO);
        Self(policy)
    }
}

impl MergePolicy for SegmentMergePolicy {
    fn compute_merge_candidates(&self, segments: &[SegmentMeta]) -> Vec<MergeCandidate> {
        let mut candidates = self.0.compute_merge_candidates(segments);
        let large = segments.iter().filter(|segment| segment.num_docs() > MAX_DOCUMENTS_TO_MERGE);
        let emptied = large.filter(|segment| {
            let deleted = f64::from(segment.num_deleted_docs());
            deleted > f64::from(MAX_DELETED_RATIO) * f64::from(segment.max_doc())
        });
        candidates.extend(emptied.map(|segment| MergeCandidate(vec![segment.id()])));
        candidates
    }
}
