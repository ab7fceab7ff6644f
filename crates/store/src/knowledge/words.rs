//! Full-text search over chunks.

use unicode_normalization::UnicodeNormalization as _;

use super::{ChunkHit, Knowledge, chunks::chunk};
use crate::{
    DatabaseKind, StoreError,
    sql::{Row, sql},
};

/// Maximum characters of a word; longer ones are truncated.
const MAX_TERM_CHARS: usize = 64;
/// Maximum bytes of indexed text per chunk; PostgreSQL's limit is a little higher.
const MAX_TEXT_CHARS: usize = 400_000;
/// Maximum words of a query; more do not make the result more precise.
const MAX_TERMS: usize = 64;

/// Splits a text into words in lower case, without accents. In scripts without spaces between
/// words, each character is a word.
pub(super) fn terms(text: &str) -> Vec<String> {
    let mut spaced = String::with_capacity(text.len());
    let mut letters = 0;
    for letter in text.nfd().filter(|letter| !is_accent(*letter)).nfc() {
        if spaced.len() > MAX_TEXT_CHARS {
            break;
        }
        if is_word_by_itself(letter) {
            letters = 0;
            spaced.extend([' ', letter, ' ']);
        } else if !letter.is_alphanumeric() {
            letters = 0;
            spaced.push(' ');
        } else if letters < MAX_TERM_CHARS {
            letters += 1;
            spaced.extend(letter.to_lowercase().filter(|letter| letter.is_alphanumeric()));
        }
    }
    spaced.split(' ').filter(|term| !term.is_empty()).map(ToOwned::to_owned).collect()
}

fn is_accent(letter: char) -> bool {
    matches!(letter, '\u{300}'..='\u{36f}')
}

/// Whether a character is Han, Hiragana or Katakana.
fn is_word_by_itself(letter: char) -> bool {
    letter.is_alphanumeric()
        && matches!(
            u32::from(letter),
            0x3040..=0x30ff
                | 0x3400..=0x4dbf
                | 0x4e00..=0x9fff
                | 0xf900..=0xfaff
                | 0x2_0000..=0x3_ffff
        )
}

/// Returns the distinct words of a query, at most [`MAX_TERMS`].
fn query_terms(words: &str) -> Vec<String> {
    let mut different: Vec<String> = Vec::new();
    for term in terms(words) {
        if different.len() == MAX_TERMS {
            break;
        }
        if !different.contains(&term) {
            different.push(term);
        }
    }
    different
}

impl Knowledge<'_> {
    /// Returns the chunks that match any of the words, best first. The query has no operators.
    pub async fn find_words(
        &self,
        kb_id: &str,
        words: &str,
        limit: u32,
    ) -> Result<Vec<ChunkHit>, StoreError> {
        let terms = query_terms(words);
        if terms.is_empty() {
            return Ok(Vec::new());
        }
        let rows = match self.0.kind() {
            DatabaseKind::Sqlite => self.find_sqlite(kb_id, &terms, limit).await?,
            DatabaseKind::Postgres => self.find_postgres(kb_id, &terms, limit).await?,
        };
        rows.iter().map(|row| Ok(ChunkHit { chunk: chunk(row)?, score: row.real(5)? })).collect()
    }

    async fn find_sqlite(
        &self,
        kb_id: &str,
        terms: &[String],
        limit: u32,
    ) -> Result<Vec<Row>, StoreError> {
        // Words contain only letters and digits and are quoted, so that none is parsed as an
        // operator.
        let query: Vec<_> = terms.iter().map(|term| format!("\"{term}\"")).collect();
        sql("SELECT c.id, c.doc_id, c.place, c.text, c.size, -bm25(chunk_words)
             FROM chunk_words JOIN chunks c ON c.number = chunk_words.rowid
             WHERE chunk_words MATCH $2 AND c.kb_id = $1
             ORDER BY bm25(chunk_words), c.id LIMIT $3")
        .text(kb_id)
        .text(&query.join(" OR "))
        .number(i64::from(limit))
        .all(self.0.reader())
        .await
    }

    /// Computes BM25 like SQLite (k1 = 1.2, b = 0.75). With all weights at one, `ts_rank_cd` of a
    /// single word is the number of its occurrences.
    async fn find_postgres(
        &self,
        kb_id: &str,
        terms: &[String],
        limit: u32,
    ) -> Result<Vec<Row>, StoreError> {
        sql(r"WITH query AS (
                SELECT DISTINCT CAST(
                    '''' || replace(replace(lexeme, '\', '\\'), '''', '''''') || '''' AS tsquery
                ) AS term
                FROM unnest(to_tsvector('savoir', $2))
             ), base AS (
                SELECT CAST(COUNT(*) AS DOUBLE PRECISION) AS chunks,
                    CAST(GREATEST(AVG(word_count), 1) AS DOUBLE PRECISION) AS length
                FROM chunks WHERE kb_id = $1
             ), hits AS (
                SELECT c.number, CAST(c.word_count AS DOUBLE PRECISION) AS length,
                    CAST(ts_rank_cd('{1,1,1,1}', c.words, query.term) AS DOUBLE PRECISION) AS times,
                    CAST(COUNT(*) OVER (PARTITION BY query.term) AS DOUBLE PRECISION) AS having_it
                FROM query JOIN chunks c ON c.words @@ query.term
                WHERE c.kb_id = $1
             ), ranked AS (
                SELECT hits.number, SUM(
                    ln(1 + (base.chunks - hits.having_it + 0.5) / (hits.having_it + 0.5))
                    * hits.times * 2.2
                    / (hits.times + 1.2 * (0.25 + 0.75 * hits.length / base.length))) AS score
                FROM hits CROSS JOIN base GROUP BY hits.number
             )
             SELECT c.id, c.doc_id, c.place, c.text, c.size, ranked.score
             FROM ranked JOIN chunks c ON c.number = ranked.number
             ORDER BY ranked.score DESC, c.id LIMIT $3")
        .text(kb_id)
        .text(&terms.join(" "))
        .number(i64::from(limit))
        .all(self.0.reader())
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_letters_and_digits() {
        assert_eq!(
            terms("Café-au_lait, 2.5€ (NEAR \"x\")"),
            ["cafe", "au", "lait", "2", "5", "near", "x"]
        );
        assert_eq!(terms("知识库 search"), ["知", "识", "库", "search"]);
        assert!(terms(" \u{1f600} * : ").is_empty());
    }

    proptest::proptest! {
        #[test]
        fn terms_contain_only_word_characters(text in "\\PC*") {
            for term in terms(&text) {
                assert!(!term.is_empty() && term.chars().all(char::is_alphanumeric), "{term:?}");
            }
        }
    }

    #[test]
    fn query_terms_are_limited() {
        let words: Vec<_> = (0..1000).map(|n| format!("w{n} w{n}")).collect();
        assert_eq!(query_terms(&words.join(" ")).len(), MAX_TERMS);
        assert_eq!(terms(&"x".repeat(1000)), ["x".repeat(MAX_TERM_CHARS)]);
        assert!(terms(&"word ".repeat(1_000_000)).len() < MAX_TEXT_CHARS);
    }
}
