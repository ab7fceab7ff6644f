//! Vector search: with pgvector if it is installed, otherwise by a scan.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use sqlx::AnyConnection;

use super::{ChunkHit, Knowledge, VectorSearch, chunks::chunk};
use crate::{
    StoreError,
    sql::{Row, sql},
};

/// Maximum number of cached floats: 256 MiB.
const MAX_CACHED_NUMBERS: usize = 64 << 20;

/// Caches the vectors of knowledge bases that were searched recently.
#[derive(Debug, Default)]
pub(crate) struct VectorCache(Mutex<CachedVectors>);

#[derive(Debug, Default)]
struct CachedVectors {
    bases: HashMap<String, (u64, Arc<Vectors>)>,
    /// Counts searches, to evict the least recently used base.
    clock: u64,
}

/// The vectors of a base, normalized to length one.
#[derive(Debug)]
struct Vectors {
    /// A counter in the database that is incremented with every change of the base.
    generation: i64,
    by_dimensions: HashMap<usize, VectorsOfLength>,
}

#[derive(Debug, Default)]
struct VectorsOfLength {
    chunks: Vec<i64>,
    numbers: Vec<f32>,
}

impl VectorCache {
    pub(crate) fn forget(&self, kb_id: &str) {
        self.lock().bases.remove(kb_id);
    }

    fn lock(&self) -> MutexGuard<'_, CachedVectors> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get(&self, kb_id: &str, generation: i64) -> Option<Arc<Vectors>> {
        let mut cached = self.lock();
        cached.clock += 1;
        let now = cached.clock;
        let (asked, vectors) = cached.bases.get_mut(kb_id)?;
        *asked = now;
        (vectors.generation == generation).then(|| Arc::clone(vectors))
    }

    fn put(&self, kb_id: &str, vectors: &Arc<Vectors>) {
        let mut cached = self.lock();
        let now = cached.clock;
        cached.bases.insert(kb_id.to_owned(), (now, Arc::clone(vectors)));
        while cached.bases.values().map(|(_, vectors)| vectors.len()).sum::<usize>()
            > MAX_CACHED_NUMBERS
        {
            let oldest = cached.bases.iter().min_by_key(|(_, (asked, _))| *asked);
            let Some(oldest) = oldest.map(|(id, _)| id.clone()) else { return };
            cached.bases.remove(&oldest);
        }
    }
}

impl Vectors {
    fn len(&self) -> usize {
        self.by_dimensions.values().map(|same| same.numbers.len()).sum()
    }

    fn add(&mut self, chunk: i64, mut vector: Vec<f32>) {
        normalise(&mut vector);
        let same = self.by_dimensions.entry(vector.len()).or_default();
        same.chunks.push(chunk);
        same.numbers.extend_from_slice(&vector);
    }

    /// Returns the nearest chunks with their cosine similarity, best first.
    fn nearest(&self, vector: &[f32], limit: usize) -> Vec<(i64, f32)> {
        let Some(same) = self.by_dimensions.get(&vector.len()) else { return Vec::new() };
        let mut query_terms = vector.to_vec();
        normalise(&mut query_terms);
        let mut scored: Vec<(i64, f32)> = same
            .chunks
            .iter()
            .zip(same.numbers.chunks_exact(vector.len()))
            .map(|(chunk, numbers)| (*chunk, dot(numbers, &query_terms)))
            .collect();
        let order = |a: &(i64, f32), b: &(i64, f32)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
        if limit < scored.len() {
            scored.select_nth_unstable_by(limit, order);
            scored.truncate(limit);
        }
        scored.sort_unstable_by(order);
        scored
    }
}

/// Computes eight sums in parallel, so that the compiler emits SIMD instructions.
fn dot(a: &[f32], b: &[f32]) -> f32 {
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<8>(), b.as_chunks::<8>());
    let mut sums = [0.0_f32; 8];
    for (a, b) in a.iter().zip(b) {
        for (sum, (a, b)) in sums.iter_mut().zip(a.iter().zip(b)) {
            *sum += a * b;
        }
    }
    let rest: f32 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    sums.iter().sum::<f32>() + rest
}

fn normalise(vector: &mut [f32]) {
    let length = vector.iter().map(|n| f64::from(*n) * f64::from(*n)).sum::<f64>().sqrt();
    if length > 0.0 {
        for number in vector {
            *number = (f64::from(*number) / length) as f32;
        }
    }
}

/// Rejects a vector that is empty or not finite, because its similarity is undefined.
pub(super) fn check(whose: &str, vector: &[f32]) -> Result<(), StoreError> {
    if !vector.is_empty() && vector.iter().all(|number| number.is_finite()) {
        return Ok(());
    }
    Err(StoreError::Damaged {
        what: format!("the vector of {whose}"),
        message: "it is empty or not finite".to_owned(),
    })
}

pub(super) fn to_bytes(vector: &[f32]) -> Vec<u8> {
    vector.iter().flat_map(|number| number.to_le_bytes()).collect()
}

fn from_bytes(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks::<4>().0.iter().map(|number| f32::from_le_bytes(*number)).collect()
}

/// Formats a vector for pgvector.
pub(super) fn to_text(vector: &[f32]) -> String {
    let numbers: Vec<_> = vector.iter().map(|number| format!("{number:e}")).collect();
    format!("[{}]", numbers.join(","))
}

/// Enables pgvector if the server has it or can install it, and converts the vectors that were
/// stored without it.
pub(crate) async fn adopt_pgvector(
    connection: &mut AnyConnection,
) -> Result<VectorSearch, StoreError> {
    if !has_vector_column(connection).await? && !add_vector_column(connection).await? {
        return Ok(VectorSearch::Scan);
    }
    let rows = sql("SELECT chunk, embedding FROM vectors WHERE point IS NULL")
        .all(&mut *connection)
        .await?;
    for row in rows {
        sql("UPDATE vectors SET point = CAST($2 AS vector), embedding = NULL WHERE chunk = $1")
            .number(row.number(0)?)
            .text(&to_text(&from_bytes(&row.bytes(1)?)))
            .run(&mut *connection)
            .await?;
    }
    Ok(VectorSearch::Pgvector)
}

async fn has_vector_column(connection: &mut AnyConnection) -> Result<bool, StoreError> {
    let row = sql("SELECT 1 FROM pg_attribute
         WHERE attrelid = CAST('vectors' AS regclass) AND attname = 'point' AND NOT attisdropped")
    .optional(connection)
    .await?;
    Ok(row.is_some())
}

/// Returns false if the extension is not installed and this role may not create it.
async fn add_vector_column(connection: &mut AnyConnection) -> Result<bool, StoreError> {
    let available = sql("SELECT 1 FROM pg_available_extensions WHERE name = 'vector'")
        .optional(&mut *connection)
        .await?;
    if available.is_none() {
        return Ok(false);
    }
    sql("SAVEPOINT pgvector").run(&mut *connection).await?;
    let added = async {
        sql("CREATE EXTENSION IF NOT EXISTS vector").run(&mut *connection).await?;
        sql("ALTER TABLE vectors ADD COLUMN point vector").run(&mut *connection).await
    }
    .await;
    if let Err(error) = added {
        tracing::warn!("pgvector is there but cannot be used: {error}");
        sql("ROLLBACK TO SAVEPOINT pgvector").run(connection).await?;
        return Ok(false);
    }
    sql("RELEASE SAVEPOINT pgvector").run(connection).await?;
    Ok(true)
}

impl Knowledge<'_> {
    /// Counts the chunks of a knowledge base that have a vector.
    pub async fn vector_count(&self, kb_id: &str) -> Result<u64, StoreError> {
        sql("SELECT COUNT(*) FROM vectors WHERE kb_id = $1")
            .text(kb_id)
            .one(self.0.reader())
            .await?
            .count(0)
    }

    pub fn vector_search(&self) -> VectorSearch {
        self.0.vectors()
    }

    /// Returns the chunks with the nearest vectors by cosine similarity. Vectors of another
    /// dimension are skipped.
    pub async fn find_vector(
        &self,
        kb_id: &str,
        vector: &[f32],
        limit: u32,
    ) -> Result<Vec<ChunkHit>, StoreError> {
        check("the question", vector)?;
        match self.0.vectors() {
            VectorSearch::Scan => self.scan(kb_id, vector, limit as usize).await,
            VectorSearch::Pgvector => self.ask_pgvector(kb_id, vector, limit).await,
        }
    }

    async fn ask_pgvector(
        &self,
        kb_id: &str,
        vector: &[f32],
        limit: u32,
    ) -> Result<Vec<ChunkHit>, StoreError> {
        // The distance to a zero vector is NaN, which is sorted last.
        let rows = sql("SELECT c.id, c.doc_id, c.place, c.text, c.size, 1 - nearest.distance
             FROM (
                SELECT chunk, point <=> CAST($2 AS vector) AS distance FROM vectors
                WHERE kb_id = $1 AND dimensions = $3 ORDER BY distance, chunk LIMIT $4
             ) nearest JOIN chunks c ON c.number = nearest.chunk
             ORDER BY nearest.distance, c.number")
        .text(kb_id)
        .text(&to_text(vector))
        .count(vector.len() as u64)
        .number(i64::from(limit))
        .all(self.0.reader())
        .await?;
        rows.iter().map(|row| hit(row, row.real(5)?)).collect()
    }

    async fn scan(
        &self,
        kb_id: &str,
        vector: &[f32],
        limit: usize,
    ) -> Result<Vec<ChunkHit>, StoreError> {
        let Some(vectors) = self.load(kb_id).await? else { return Ok(Vec::new()) };
        let vector = vector.to_vec();
        let nearest = tokio::task::spawn_blocking(move || vectors.nearest(&vector, limit)).await;
        let nearest = nearest.map_err(|error| StoreError::Setting(error.to_string()))?;
        let mut hits = Vec::with_capacity(nearest.len());
        for (number, cosine) in nearest {
            let row = sql("SELECT id, doc_id, place, text, size FROM chunks WHERE number = $1")
                .number(number)
                .optional(self.0.reader())
                .await?;
            // `None` if the chunk was deleted since.
            if let Some(row) = row {
                hits.push(hit(&row, f64::from(cosine))?);
            }
        }
        Ok(hits)
    }

    /// Returns the vectors of a base from the cache, or reads them if the base changed.
    async fn load(&self, kb_id: &str) -> Result<Option<Arc<Vectors>>, StoreError> {
        // Read the generation first: then the cached vectors may be newer than it, but never older.
        let row = sql("SELECT generation FROM bases WHERE id = $1")
            .text(kb_id)
            .optional(self.0.reader())
            .await?;
        let Some(row) = row else {
            self.0.cache().forget(kb_id);
            return Ok(None);
        };
        let generation = row.number(0)?;
        if let Some(vectors) = self.0.cache().get(kb_id, generation) {
            return Ok(Some(vectors));
        }
        let mut vectors = Vectors { generation, by_dimensions: HashMap::new() };
        let rows = sql("SELECT chunk, embedding FROM vectors WHERE kb_id = $1 ORDER BY chunk")
            .text(kb_id)
            .all(self.0.reader())
            .await?;
        for row in rows {
            vectors.add(row.number(0)?, from_bytes(&row.bytes(1)?));
        }
        let vectors = Arc::new(vectors);
        self.0.cache().put(kb_id, &vectors);
        Ok(Some(vectors))
    }
}

fn hit(row: &Row, cosine: f64) -> Result<ChunkHit, StoreError> {
    Ok(ChunkHit { chunk: chunk(row)?, score: if cosine.is_nan() { 0.0 } else { cosine } })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vectors(of: &[&[f32]]) -> Vectors {
        let mut vectors = Vectors { generation: 0, by_dimensions: HashMap::new() };
        for (number, vector) in (0_i64..).zip(of) {
            vectors.add(number, vector.to_vec());
        }
        vectors
    }

    #[test]
    fn vector_as_bytes_and_as_text() {
        let vector = [1.0, -0.5, 1e-20];
        assert_eq!(from_bytes(&to_bytes(&vector)), vector);
        assert_eq!(to_text(&vector), "[1e0,-5e-1,1e-20]");
    }

    #[test]
    fn nearest_vector_first_other_lengths_skipped() {
        let vectors =
            vectors(&[&[1.0, 0.0], &[0.0, 2.0], &[1.0, 1.0], &[1.0, 0.0, 0.0], &[0.0, 0.0]]);
        let found = vectors.nearest(&[0.0, 5.0], 3);
        assert_eq!(found.iter().map(|(n, _)| *n).collect::<Vec<_>>(), [1, 2, 0]);
        assert!((found[0].1 - 1.0).abs() < 1e-6);
        assert!(vectors.nearest(&[1.0], 3).is_empty());
    }

    #[test]
    fn dot_product_of_any_length() {
        for length in [0_u16, 1, 7, 8, 9, 384] {
            let a: Vec<f32> = (0..length).map(|n| f32::from(n) / 8.0).collect();
            let plain: f32 = a.iter().map(|n| n * n).sum();
            assert!((dot(&a, &a) - plain).abs() <= plain * 1e-5);
        }
    }

    #[test]
    fn least_recently_used_vectors_are_evicted() {
        let cache = VectorCache::default();
        cache.put("a", &Arc::new(vectors(&[&[1.0, 0.0]])));
        assert!(cache.get("a", 0).is_some());
        assert!(cache.get("a", 1).is_none(), "another process changed it");
        cache.forget("a");
        assert!(cache.get("a", 0).is_none());
    }
}
