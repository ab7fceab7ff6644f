//! Tests of the search index: results, ranking, and recovery after failures.

mod faults;
mod finding;
mod hostile;
mod ranking;

use std::path::Path;

use savoir_skill::permission::Tier;
use tempfile::TempDir;

use super::{Document, IndexChange, Query, SearchHits, SearchIndex};

/// The database id of the test indexes.
const DATABASE: &str = "tests";

/// An index in a temporary folder.
struct TestIndex {
    index: SearchIndex,
    _folder: TempDir,
}

impl TestIndex {
    fn new(documents: Vec<Document>) -> Self {
        let folder = TempDir::new().unwrap();
        let index = fresh(folder.path());
        index.apply(documents.into_iter().map(IndexChange::Put), 1).unwrap();
        Self { index, _folder: folder }
    }

    fn keys(&self, text: &str) -> Vec<String> {
        keys(&self.index, text)
    }
}

fn fresh(folder: &Path) -> SearchIndex {
    let (index, applied) = SearchIndex::open(folder, DATABASE).unwrap();
    assert_eq!(applied, 0);
    index
}

fn asked(text: &str) -> Query {
    Query { text: text.to_owned(), ..Query::default() }
}

fn found(index: &SearchIndex, text: &str) -> SearchHits {
    index.search(&asked(text), 10, 0).unwrap()
}

fn keys(index: &SearchIndex, text: &str) -> Vec<String> {
    found(index, text).items.into_iter().map(|hit| hit.key).collect()
}

/// Creates a skill whose key is its name.
fn skill(name: &str, description: &str) -> Document {
    Document {
        key: name.to_owned(),
        name: name.to_owned(),
        description: description.to_owned(),
        tier: Tier::Community,
        ..Document::default()
    }
}
