//! What `savoir.toml` asks for, as it can be had now.

use savoir_package::{
    manifest::{Revision, Wanted},
    shelf::{Ready, Stale, Why},
    source::{GitSource, GitUrl, Offer, Source, SourceError},
};

use super::Door;
use crate::error::CommandError;

impl Door {
    /// Fetches what the lock is missing, or has from elsewhere.
    pub(crate) fn missing(&self, stale: &[Stale]) -> Result<Vec<Ready>, CommandError> {
        let mut offers = Vec::new();
        for stale in stale {
            if let Stale::Missing { name, wanted } | Stale::Source { name, wanted, .. } = stale {
                offers.push((self.newest(name, wanted)?, Why::Asked(wanted.clone())));
            }
        }
        let ready = self.arrive(&offers)?;
        self.done();
        Ok(ready)
    }

    /// The skill of this name, where `savoir.toml` says that it comes from.
    pub(crate) fn newest(&self, name: &str, wanted: &Wanted) -> Result<Offer, CommandError> {
        self.doing(&format!("looking for {name}"));
        let source = self.source(wanted)?;
        let mut offers = self.wait(self.fetcher.offers(&source))?;
        if let Some(at) = offers.iter().position(|offer| offer.called() == name) {
            return Ok(offers.swap_remove(at));
        }
        Err(CommandError::findings(format!("`{name}` is not where savoir.toml says")))
    }

    fn source(&self, wanted: &Wanted) -> Result<Source, SourceError> {
        let root = self.shelf.root();
        match wanted {
            Wanted::Path(path) => Source::parse(&format!("path+{path}"), root),
            Wanted::Git { url, at, path } => Ok(Source::Git(GitSource {
                url: GitUrl::parse(url)?,
                reference: match at {
                    Revision::Default => None,
                    Revision::Rev(commit) => Some(commit.clone()),
                    Revision::Tag(name) => Some(format!("refs/tags/{name}")),
                    Revision::Branch(name) => Some(format!("refs/heads/{name}")),
                },
                path: path.clone(),
            })),
            Wanted::Url { url, .. } => Source::parse(url, root),
            Wanted::Version { range, .. } => Err(SourceError::Registry(range.to_string())),
        }
    }
}
