//! Loads packages with all their dependencies.

use std::collections::{BTreeMap, BTreeSet};

use super::{Client, Package, RegistryError, check_versions, malformed, text};
use crate::{
    limits::{MAX_ADDRESS_BYTES, MAX_CLOSURE_BYTES, MAX_CLOSURE_NAMES, MAX_RESOLVED_SKILLS},
    registry::{
        Name,
        cache::Cached,
        concurrency::{blocking, run_concurrently},
        http::{RegistryRequest, RegistryResponse},
        wire::{IndexLine, Lines, ParsedLine, TakenDownLine},
    },
    source::http::shown,
};

/// Packages with the dependencies of all their versions, as far as the registry has them.
#[derive(Clone, Debug, Default)]
pub struct Closure {
    pub packages: BTreeMap<Name, Package>,
    /// Packages that are not in the cache while offline.
    pub unasked: BTreeSet<Name>,
}

/// A filter for names that may be requested.
pub(in crate::registry) type NameFilter<'a> = dyn Fn(&Name) -> bool + Send + Sync + 'a;

/// Parsed index lines, with the text for the cache.
type ReadPackages<'a> = BTreeMap<Name, (Vec<IndexLine>, Vec<TakenDownLine>, Vec<&'a str>)>;

impl Client {
    /// Loads packages with the dependencies of all versions: in one request, or, from a registry of
    /// static files, level by level.
    pub async fn closure(&self, names: &[Name]) -> Result<Closure, RegistryError> {
        self.closure_of(names, &|_| true).await
    }

    /// Like [`Self::closure`], but neither requests nor accepts names that the filter rejects.
    pub(in crate::registry) async fn closure_of(
        &self,
        names: &[Name],
        admits: &NameFilter<'_>,
    ) -> Result<Closure, RegistryError> {
        let mut found = Closure::default();
        if !self.settings().is_offline() && self.config().await?.closure {
            for names in split_names(names) {
                found.packages.extend(self.load_batch(names, admits).await?);
            }
        }
        let mut asked: BTreeSet<Name> = found.packages.keys().cloned().collect();
        let mut open: BTreeSet<Name> =
            names.iter().filter(|name| !asked.contains(name)).cloned().collect();
        open.extend(found.packages.values().flat_map(|package| needs(package)));
        loop {
            open.retain(|name| !asked.contains(name) && admits(name));
            if open.is_empty() {
                return Ok(found);
            }
            asked.extend(open.iter().cloned());
            if asked.len() > MAX_RESOLVED_SKILLS {
                return Err(RegistryError::TooMany(MAX_RESOLVED_SKILLS));
            }
            open = self.load_level(std::mem::take(&mut open), &mut found).await?;
        }
    }

    /// Loads some packages; returns their dependencies.
    async fn load_level(
        &self,
        names: BTreeSet<Name>,
        found: &mut Closure,
    ) -> Result<BTreeSet<Name>, RegistryError> {
        let looked_up = run_concurrently(names, |name| {
            let client = self.clone();
            async move {
                match client.index(&name).await {
                    Err(RegistryError::Offline(_)) => Ok((name, None, true)),
                    index => Ok::<_, RegistryError>((name, index?, false)),
                }
            }
        });
        let mut next = BTreeSet::new();
        for (name, package, unasked) in looked_up.await? {
            if unasked {
                found.unasked.insert(name);
            } else if let Some(package) = package {
                next.extend(needs(&package));
                found.packages.insert(name, package);
            }
        }
        Ok(next)
    }

    /// Loads packages with one request; returns `None` if the registry does not support that.
    async fn load_batch(
        &self,
        names: &[Name],
        admits: &NameFilter<'_>,
    ) -> Result<BTreeMap<Name, Package>, RegistryError> {
        let mut url = self.url("index/v1/closure")?;
        url.query_pairs_mut().extend_pairs(names.iter().map(|name| ("name", name.to_string())));
        let address = shown(&url);
        let ask = RegistryRequest::get(url).at_most(MAX_CLOSURE_BYTES).for_lookup();
        let given = match self.ask(ask).await? {
            RegistryResponse::Body(given) => given,
            RegistryResponse::Same(_) | RegistryResponse::Missing(_) => return Ok(BTreeMap::new()),
        };
        let text = text(&address, given.bytes)?;
        let mut packages = BTreeMap::new();
        let mut texts_by_name = Vec::new();
        for (name, (lines, gone, texts)) in self.read_closure(&address, &text, admits)? {
            check_versions(&format!("{address} ({name})"), &lines, &gone)?;
            texts_by_name.push((name.clone(), texts.join("\n")));
            packages.insert(name, Package::new(lines, gone));
        }
        self.cache_texts(texts_by_name).await;
        Ok(packages)
    }

    /// Caches packages for use without a network.
    async fn cache_texts(&self, texts: Vec<(Name, String)>) {
        let client = self.clone();
        blocking(move || {
            for (name, text) in texts {
                client.0.cache.store_index(&name, &Cached { etag: None, text: Some(text) });
            }
        })
        .await;
    }

    fn read_closure<'a>(
        &self,
        address: &str,
        text: &'a str,
        admits: &NameFilter<'_>,
    ) -> Result<ReadPackages<'a>, RegistryError> {
        let mut read = ReadPackages::new();
        for (at, reading) in Lines::of(text) {
            match reading {
                ParsedLine::Version(line, text) if admits(&line.name) => {
                    let (lines, _, texts) = read.entry(line.name.clone()).or_default();
                    lines.push(*line);
                    texts.push(text);
                }
                ParsedLine::Gone(line, text) if admits(&line.name) => {
                    let (_, gone, texts) = read.entry(line.name.clone()).or_default();
                    gone.push(line);
                    texts.push(text);
                }
                // The filter rejects the name: it belongs to another registry.
                ParsedLine::Version(..) | ParsedLine::Gone(..) => {}
                ParsedLine::Unusable(why) => self.report_skipped(&format!("line {at}"), why),
                ParsedLine::Broken(why) => {
                    return Err(malformed(address, format!("line {at}: {why}")));
                }
            }
            if read.len() > MAX_RESOLVED_SKILLS {
                return Err(RegistryError::TooMany(MAX_RESOLVED_SKILLS));
            }
        }
        Ok(read)
    }
}

/// Returns the dependencies of all versions that are valid registry names.
pub(in crate::registry) fn needs(package: &[IndexLine]) -> BTreeSet<Name> {
    let needs = package.iter().filter_map(|line| line.needs().ok()).flatten();
    needs.filter_map(|need| Name::parse(&need.name).ok()).collect()
}

/// Splits names so that each part fits into a URL.
fn split_names(mut names: &[Name]) -> Vec<&[Name]> {
    let mut portions = Vec::new();
    while !names.is_empty() {
        let mut length = 0;
        let fits = names.iter().take(MAX_CLOSURE_NAMES).take_while(|name| {
            // The slash of a namespace is encoded as three characters.
            length += name.to_string().len() + "&name=".len() + 2;
            length <= MAX_ADDRESS_BYTES
        });
        let (portion, rest) = names.split_at(fits.count().max(1));
        portions.push(portion);
        names = rest;
    }
    portions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closure_requests_are_split() {
        let names = |count: usize, length: usize| -> Vec<Name> {
            let name = |at| Name::parse(&format!("n{at:0length$}")).unwrap();
            (0..count).map(name).collect()
        };
        let sizes = |names: &[Name]| split_names(names).iter().map(|p| p.len()).collect::<Vec<_>>();
        assert_eq!(sizes(&[]), Vec::<usize>::new());
        assert_eq!(sizes(&names(250, 5)), [100, 100, 50]);
        let long = names(100, 60);
        assert!(split_names(&long).len() > 1);
        assert_eq!(split_names(&long).concat(), long);
    }
}
