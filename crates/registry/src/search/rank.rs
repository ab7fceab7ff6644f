//! Ranks search results.
//!
//! The score of a skill is relevance times weight times recency; skills with the same score are
//! sorted by key. Each segment of the index is sorted by weight. If a query matches more skills
//! than can be scored, those with the most weight are scored.

use std::cmp::Ordering;

use tantivy::{
    DocId, DocSet as _, Searcher, SeekDangerResult, SegmentReader, TERMINATED, TantivyError,
    columnar::{Column, StrColumn},
    query::{EnableScoring, Query, Scorer, Weight},
};

use super::fields::{DAY_FIELD, KEY_FIELD, WEIGHT_FIELD, WEIGHT_SCALE};

/// Maximum number of skills that one query scores, over all segments.
const MAX_CANDIDATES: u64 = 12_000;
/// A query with phrases scores this many times more skills, because most of them fail the phrase
/// check.
const PHRASE_CANDIDATE_FACTOR: u64 = 3;
/// Phrases are checked for one in this many scored skills: for the best ones, in batches.
const CANDIDATES_PER_CHECK: u64 = 5;
const CHECK_BATCH: usize = 3000;
/// Number of skills that are scored in each segment, however small it is.
const MIN_CANDIDATES: u64 = 200;
/// The bonus of a skill that was changed today over one that never changed.
const RECENCY_BOOST: f32 = 0.1;
/// The number of days after which half of the bonus is left.
const RECENCY_HALF_LIFE_DAYS: f32 = 180.0;

/// A skill that was found, with its score.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ScoredSkill {
    pub(super) key: String,
    pub(super) score: f32,
}

/// Whether yanked skills are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum YankedSkills {
    Shown,
    Hidden,
}

/// Parameters of the ranking that are the same for each segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ranking {
    /// Maximum number of results.
    pub(super) most: usize,
    pub(super) yanked: YankedSkills,
    /// The day from which recency is computed.
    pub(super) today: u64,
}

/// A candidate within one segment. The ordinals of keys in a segment have the order of the keys.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    score: f32,
    key: u64,
}

impl Candidate {
    fn order(&self, other: &Self) -> Ordering {
        other.score.total_cmp(&self.score).then(self.key.cmp(&other.key))
    }
}

/// A skill of a segment whose phrases were not checked yet.
#[derive(Clone, Copy, Debug)]
struct UncheckedHit {
    score: f32,
    document: DocId,
}

/// The best candidates of one segment so far.
#[derive(Debug)]
struct BestCandidates {
    most: usize,
    /// Candidates with a lower score cannot be among the best.
    floor: f32,
    candidates: Vec<Candidate>,
}

impl BestCandidates {
    fn push(&mut self, candidate: Candidate) {
        self.candidates.push(candidate);
        if self.candidates.len() >= 2 * self.most {
            self.shrink();
        }
    }

    fn shrink(&mut self) {
        self.candidates.sort_unstable_by(Candidate::order);
        self.candidates.truncate(self.most);
        if let Some(last) = self.candidates.get(self.most.saturating_sub(1)) {
            self.floor = self.floor.max(last.score);
        }
    }
}

/// The columns of one segment.
struct Columns {
    weight: Column<u64>,
    day: Column<u64>,
    key: StrColumn,
}

impl Columns {
    fn open(segment: &SegmentReader) -> Result<Self, TantivyError> {
        let columns = segment.fast_fields();
        let missing = || TantivyError::SchemaError(format!("the column {KEY_FIELD} is missing"));
        Ok(Self {
            weight: columns.u64(WEIGHT_FIELD)?,
            day: columns.u64(DAY_FIELD)?,
            key: columns.str(KEY_FIELD)?.ok_or_else(missing)?,
        })
    }

    fn candidate(&self, score: f32, document: DocId) -> Candidate {
        Candidate { score, key: self.key.ords().first(document).unwrap_or_default() }
    }
}

/// A phrase query that is checked for the documents of one segment, in ascending order.
struct PhraseCheck<'a> {
    weight: &'a dyn Weight,
    segment: &'a SegmentReader,
    /// Created for the first document: otherwise it would search for the first match by itself.
    scorer: Option<Box<dyn Scorer>>,
    /// No document before this one matches.
    next: DocId,
}

impl PhraseCheck<'_> {
    fn holds(&mut self, document: DocId) -> Result<bool, TantivyError> {
        if document < self.next {
            return Ok(false);
        }
        let result = if let Some(scorer) = &mut self.scorer {
            scorer.seek_danger(document)
        } else {
            let (result, scorer) = self.weight.scorer_danger(self.segment, document, 1.0)?;
            self.scorer = Some(scorer);
            result
        };
        Ok(match result {
            SeekDangerResult::Found => true,
            SeekDangerResult::SeekLowerBound(next) => {
                self.next = next;
                false
            }
        })
    }
}

/// A query that is prepared for one state of the index.
struct PreparedQuery {
    query: Box<dyn Weight>,
    checks: Vec<Box<dyn Weight>>,
}

impl PreparedQuery {
    /// Keeps the candidates that pass all checks: checks the best ones first, until there are
    /// enough.
    fn check(
        &self,
        mut unchecked: Vec<UncheckedHit>,
        most: usize,
        segment: &SegmentReader,
        columns: &Columns,
        best: &mut BestCandidates,
    ) -> Result<(), TantivyError> {
        let mut left = most;
        while !unchecked.is_empty() && left > 0 && best.candidates.len() < best.most {
            let count = CHECK_BATCH.min(unchecked.len()).min(left);
            left -= count;
            if count < unchecked.len() {
                unchecked.select_nth_unstable_by(count, |a, b| {
                    b.score.total_cmp(&a.score).then(a.document.cmp(&b.document))
                });
            }
            let mut some: Vec<UncheckedHit> = unchecked.drain(..count).collect();
            // A scorer only moves forward in a segment.
            some.sort_unstable_by_key(|one| one.document);
            let mut checks: Vec<PhraseCheck<'_>> = self
                .checks
                .iter()
                .map(|weight| PhraseCheck {
                    weight: weight.as_ref(),
                    segment,
                    scorer: None,
                    next: 0,
                })
                .collect();
            for UncheckedHit { score, document } in some {
                if holds(&mut checks, document)? {
                    best.push(columns.candidate(score, document));
                }
            }
        }
        Ok(())
    }
}

impl Ranking {
    /// The best skills that match the query and pass the checks, best first.
    pub(super) fn best(
        &self,
        searcher: &Searcher,
        query: &dyn Query,
        checks: &[Box<dyn Query>],
    ) -> Result<Vec<ScoredSkill>, TantivyError> {
        let scoring = EnableScoring::enabled_from_searcher(searcher);
        let unscored = || EnableScoring::disabled_from_searcher(searcher);
        let checks = checks.iter().map(|check| check.weight(unscored()));
        let ready = PreparedQuery {
            query: query.weight(scoring)?,
            checks: checks.collect::<Result<_, _>>()?,
        };
        let total: u64 = searcher.segment_readers().iter().map(|s| u64::from(s.max_doc())).sum();
        let more = if ready.checks.is_empty() { 1 } else { PHRASE_CANDIDATE_FACTOR };
        let most = more * MAX_CANDIDATES;
        let mut all = Vec::new();
        let mut floor = f32::NEG_INFINITY;
        for segment in searcher.segment_readers() {
            let share = most * u64::from(segment.max_doc()) / total.max(1);
            let columns = Columns::open(segment)?;
            let best = BestCandidates { most: self.most, floor, candidates: Vec::new() };
            let looked_at = share + MIN_CANDIDATES;
            let best = self.score_segment(&ready, segment, &columns, best, looked_at)?;
            for candidate in best.candidates {
                let mut key = String::new();
                columns.key.ord_to_str(candidate.key, &mut key)?;
                all.push(ScoredSkill { key, score: candidate.score });
            }
            all.sort_unstable_by(|a: &ScoredSkill, b: &ScoredSkill| {
                b.score.total_cmp(&a.score).then_with(|| a.key.cmp(&b.key))
            });
            all.truncate(self.most);
            if let Some(last) = all.get(self.most.saturating_sub(1)) {
                floor = last.score;
            }
        }
        Ok(all)
    }

    /// Scores the matches of the query in one segment.
    fn score_segment(
        &self,
        ready: &PreparedQuery,
        segment: &SegmentReader,
        columns: &Columns,
        mut best: BestCandidates,
        mut max_scored: u64,
    ) -> Result<BestCandidates, TantivyError> {
        let mut scorer = ready.query.scorer(segment, 1.0)?;
        let mut unchecked = Vec::new();
        let most_checked = max_scored / CANDIDATES_PER_CHECK;
        let alive = segment.alive_bitset();
        let mut document = scorer.doc();
        while document != TERMINATED && max_scored > 0 {
            if alive.is_none_or(|alive| alive.is_alive(document)) {
                max_scored -= 1;
                let score = self.score(scorer.score(), document, columns);
                if let Some(score) = score.filter(|score| *score >= best.floor) {
                    if ready.checks.is_empty() {
                        best.push(columns.candidate(score, document));
                    } else {
                        unchecked.push(UncheckedHit { score, document });
                    }
                }
            }
            document = scorer.advance();
        }
        ready.check(unchecked, most_checked as usize, segment, columns, &mut best)?;
        best.shrink();
        Ok(best)
    }

    #[expect(clippy::cast_precision_loss, reason = "weights and days are small")]
    fn score(&self, relevance: f32, document: DocId, columns: &Columns) -> Option<f32> {
        let weight = columns.weight.first(document).unwrap_or_default();
        if weight == 0 && self.yanked == YankedSkills::Hidden {
            return None;
        }
        let age = self.today.saturating_sub(columns.day.first(document).unwrap_or_default());
        let recency =
            1.0 + RECENCY_BOOST * RECENCY_HALF_LIFE_DAYS / (RECENCY_HALF_LIFE_DAYS + age as f32);
        Some(relevance * (weight as f32 / WEIGHT_SCALE) * recency)
    }
}

fn holds(checks: &mut [PhraseCheck<'_>], document: DocId) -> Result<bool, TantivyError> {
    for check in checks {
        if !check.holds(document)? {
            return Ok(false);
        }
    }
    Ok(true)
}
