//! Tests of sources: parsing, and fetching from folders, repositories and local servers.

mod git;
mod hostile;
mod local;
mod offline;
mod proxies_and_mirrors;
mod real;
pub(crate) mod repository;
mod site;
mod web;

use std::{io::Write as _, path::Path};

use savoir_package::{
    Tree,
    source::{Fetcher, OfferedSkill, Settings, Source, SourceError},
};
use tempfile::TempDir;

/// A fetcher with its own cache.
struct TestFetcher {
    place: TempDir,
    fetcher: Fetcher,
}

impl TestFetcher {
    fn new() -> Self {
        Self::with(|_| {})
    }

    fn with(change: impl FnOnce(&mut Settings)) -> Self {
        let place = tempfile::tempdir().unwrap();
        let mut settings = Settings::new(place.path().join("cache"));
        change(&mut settings);
        Self { place, fetcher: Fetcher::new(settings) }
    }

    fn path(&self) -> &Path {
        self.place.path()
    }

    async fn offers(&self, text: &str) -> Result<Vec<OfferedSkill>, SourceError> {
        self.fetcher.offers(&Source::parse(text, self.path())?).await
    }

    /// Fetches the only skill of a source.
    async fn one(&self, text: &str) -> Result<(OfferedSkill, Tree), SourceError> {
        let mut offers = self.offers(text).await?;
        assert_eq!(offers.len(), 1, "{offers:?}");
        let offer = offers.remove(0);
        let tree = self.fetcher.fetch(&offer).await?;
        Ok((offer, tree))
    }

    async fn code(&self, text: &str) -> &'static str {
        self.one(text).await.unwrap_err().code()
    }
}

fn skill(name: &str) -> String {
    format!("---\nname: {name}\ndescription: Does {name}.\n---\n# {name}\n")
}

fn paths(tree: &Tree) -> Vec<&str> {
    tree.files().map(|(path, _)| path).collect()
}

fn names(offers: &[OfferedSkill]) -> Vec<&str> {
    offers.iter().map(|offer| offer.name.as_str()).collect()
}

fn zip(files: &[(&str, &str)]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (path, text) in files {
        writer.start_file(*path, zip::write::SimpleFileOptions::default()).unwrap();
        writer.write_all(text.as_bytes()).unwrap();
    }
    writer.finish().unwrap().into_inner()
}
