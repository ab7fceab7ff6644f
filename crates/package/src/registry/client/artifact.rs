//! Downloads an archive and checks it against the index.

use savoir_skill::{digest::sha256_hex, version::SkillRef};
use url::Url;

use super::{Client, Config, IndexLine, RegistryError, malformed};
use crate::{
    SkillSummary, Tree,
    archive::{one_skill, unpack},
    registry::{
        Name, Release,
        concurrency::blocking,
        http::{RegistryRequest, RegistryResponse},
        wire::{Attestations, Signatures},
    },
    source::http::Reach,
    trust::{self, Tier, TrustStore},
};

impl Client {
    /// Downloads a version. Checks the size and digest of the archive before it is unpacked, then
    /// the integrity of the files, and that SKILL.md matches the index.
    pub async fn download(&self, line: &IndexLine) -> Result<Tree, RegistryError> {
        let bytes = self.artifact(line).await?;
        let (line, registry) = (line.clone(), self.address());
        blocking(move || tree(&registry, &line, &bytes)).await
    }

    /// Like [`Self::download`], and adds the signatures that the registry has for the version. They
    /// are not verified: call [`trust::verify`](crate::trust::verify).
    pub async fn download_signed(&self, line: &IndexLine) -> Result<Tree, RegistryError> {
        let tree = self.download(line).await?;
        let signatures = self.signatures_of(line).await?;
        trust::attach(&tree, &signatures.added()).map_err(|error| RegistryError::Signature {
            of: Box::new(release_of(&self.address(), line)),
            error: Box::new(error),
        })
    }

    /// Returns the signatures of a version from the registry or the cache.
    async fn signatures_of(&self, line: &IndexLine) -> Result<Signatures, RegistryError> {
        if self.settings().is_offline() {
            let kept = self.0.cache.signatures(&line.name, &line.version);
            return Ok(kept.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default());
        }
        // A registry of static files has signatures only if its index says so.
        if !self.known_config().await?.config.closure && line.earned() == Tier::Experimental {
            return Ok(Signatures::default());
        }
        let found = self.signatures(&line.name, &line.version).await?;
        if let Ok(text) = serde_json::to_string(&found) {
            self.0.cache.store_signatures(&line.name, &line.version, &text);
        }
        Ok(found)
    }

    /// The signed evaluations of a version, from the registry or as they were cached. If there are
    /// many, those of trusted keys are among them. They are not checked: see
    /// [`crate::trust::evaluation`].
    pub async fn attestations_of(
        &self,
        line: &IndexLine,
        trust: &TrustStore,
    ) -> Result<Attestations, RegistryError> {
        if self.settings().is_offline() {
            let cached = self.0.cache.attestations(&line.name, &line.version);
            return Ok(cached
                .and_then(|text| serde_json::from_str(&text).ok())
                .unwrap_or_default());
        }
        if line.attestations == 0 {
            return Ok(Attestations::default());
        }
        let keys = trust.evaluation_keys(line.name.last());
        let found = self.attestations(&line.name, &line.version, &keys).await?;
        if let Ok(text) = serde_json::to_string(&found) {
            self.0.cache.store_attestations(&line.name, &line.version, &text);
        }
        Ok(found)
    }

    /// Returns the archive of a version from the registry or the cache.
    async fn artifact(&self, line: &IndexLine) -> Result<Vec<u8>, RegistryError> {
        if let Some(bytes) = self.cached_artifact(line)? {
            return Ok(bytes);
        }
        let bytes = self.download_artifact(line).await?;
        self.0.cache.store_artifact(&line.sha256, &bytes);
        Ok(bytes)
    }

    pub(in crate::registry) fn cached_artifact(
        &self,
        line: &IndexLine,
    ) -> Result<Option<Vec<u8>>, RegistryError> {
        let Some(bytes) = self.0.cache.artifact(&line.sha256) else { return Ok(None) };
        check_bytes(&self.address(), line, &bytes)?;
        Ok(Some(bytes))
    }

    /// Downloads the archive of a version without caching it.
    pub(in crate::registry) async fn download_artifact(
        &self,
        line: &IndexLine,
    ) -> Result<Vec<u8>, RegistryError> {
        if self.settings().is_offline() {
            let what = format!("`{}` {} of `{}`", line.name, line.version, self.address());
            return Err(RegistryError::Offline(what));
        }
        let bytes = self.download_checked(line).await?;
        check_bytes(&self.address(), line, &bytes)?;
        Ok(bytes)
    }

    async fn download_checked(&self, line: &IndexLine) -> Result<Vec<u8>, RegistryError> {
        let known = self.known_config().await?;
        let url = self.artifact_url(&known.config, line)?;
        // The user chose the host of the registry, so it may be in a private network; other hosts
        // may not.
        let own = url.origin() == self.0.connection.base.origin();
        let reach = if own { Reach::Anywhere } else { known.reach };
        let ask = RegistryRequest::get(url).within(reach).at_most(line.size).for_archive();
        match self.ask(ask).await {
            Ok(RegistryResponse::Body(given)) => Ok(given.bytes),
            Ok(RegistryResponse::Missing(Some(place))) => Err(RegistryError::Lost {
                of: Box::new(release_of(&self.address(), line)),
                place: place.host_str().unwrap_or_default().to_owned(),
            }),
            Ok(RegistryResponse::Same(_) | RegistryResponse::Missing(None)) => {
                Err(RegistryError::no_version(&line.name, &line.version, self.address()))
            }
            Err(RegistryError::Source(crate::source::SourceError::TooLarge { limit, .. })) => {
                let (expected, found) = (limit.to_string(), format!("more than {limit}"));
                Err(mismatch_error(&self.address(), line, "its size", expected, found))
            }
            Err(error) => Err(error),
        }
    }

    fn artifact_url(&self, config: &Config, line: &IndexLine) -> Result<Url, RegistryError> {
        let template = &config.artifacts;
        if !template.contains("{sha256}") {
            let why = "`artifacts` of config.json has no {sha256}";
            return Err(malformed(&self.address(), why));
        }
        let path = template.replace("{sha256}", &line.sha256).replace("{filename}", &line.filename);
        self.url(&path)
    }
}

fn release_of(registry: &str, line: &IndexLine) -> Release {
    Release::new(&line.name, &line.version, registry.to_owned())
}

fn mismatch_error(
    registry: &str,
    line: &IndexLine,
    what: &'static str,
    expected: String,
    found: String,
) -> RegistryError {
    RegistryError::Bytes { of: Box::new(release_of(registry, line)), what, expected, found }
}

fn check_bytes(registry: &str, line: &IndexLine, bytes: &[u8]) -> Result<(), RegistryError> {
    let size = bytes.len() as u64;
    if size != line.size {
        let (expected, found) = (line.size.to_string(), size.to_string());
        return Err(mismatch_error(registry, line, "its size", expected, found));
    }
    let digest = sha256_hex(bytes);
    if digest != line.sha256 {
        return Err(mismatch_error(registry, line, "its sha256", line.sha256.clone(), digest));
    }
    Ok(())
}

/// Unpacks an archive and checks its files.
pub(in crate::registry) fn tree(
    registry: &str,
    line: &IndexLine,
    bytes: &[u8],
) -> Result<Tree, RegistryError> {
    let broken = |error| RegistryError::Archive { of: Box::new(release_of(registry, line)), error };
    let (_, tree) = one_skill(unpack(bytes).map_err(broken)?).map_err(broken)?;
    let integrity = tree.integrity();
    if integrity != line.integrity {
        return Err(mismatch_error(
            registry,
            line,
            "its integrity",
            line.integrity.clone(),
            integrity,
        ));
    }
    check_summary(registry, line, &tree)?;
    Ok(tree)
}

/// Checks that SKILL.md matches the index.
fn check_summary(registry: &str, line: &IndexLine, tree: &Tree) -> Result<(), RegistryError> {
    let summary = SkillSummary::read(tree, line.name.last()).map_err(|error| {
        RegistryError::SkillSummary {
            of: Box::new(release_of(registry, line)),
            error: Box::new(error),
        }
    })?;
    let content = |expected: String, found: String| {
        Err(RegistryError::Content { of: Box::new(release_of(registry, line)), expected, found })
    };
    if summary.name != line.name.last() {
        return content(format!("`{}`", line.name.last()), format!("`{}`", summary.name));
    }
    // If SKILL.md has no version, the publisher or the registry chose it.
    let has_written_version = !summary.written_version().is_empty();
    if summary.version != line.version && has_written_version {
        return content(line.version.to_string(), summary.version.to_string());
    }
    let indexed = line.needs().map_err(|why| malformed(registry, why))?;
    if sorted_dependencies(&indexed) != sorted_dependencies(&summary.needs) {
        return content(dependency_list(&indexed), dependency_list(&summary.needs));
    }
    Ok(())
}

fn sorted_dependencies(needs: &[SkillRef]) -> Vec<String> {
    let mut texts: Vec<String> = needs.iter().map(dependency_text).collect();
    texts.sort();
    texts.dedup();
    texts
}

/// Formats a dependency, independent of spaces in the original.
fn dependency_text(need: &SkillRef) -> String {
    need.to_string().chars().filter(|c| !c.is_whitespace()).collect()
}

fn dependency_list(needs: &[SkillRef]) -> String {
    let needs = sorted_dependencies(needs);
    if needs.is_empty() {
        return "that it needs nothing".to_owned();
    }
    format!("that it needs {}", needs.join(", "))
}

/// Creates index lines for publishing.
impl IndexLine {
    /// Creates the index line of an unsigned skill from its files and its archive.
    pub fn describe(name: &Name, tree: &Tree, archive: &[u8]) -> Result<Self, crate::SummaryError> {
        let summary = SkillSummary::read(tree, name.last())?;
        Ok(Self {
            integrity: tree.integrity(),
            sha256: sha256_hex(archive),
            size: archive.len() as u64,
            filename: name.artifact(&summary.version),
            name: name.clone(),
            tier: Tier::Experimental,
            attested: None,
            claimed: summary.claimed,
            yanked: false,
            yanked_reason: None,
            deprecated: None,
            dependencies: summary.needs.iter().map(ToString::to_string).collect(),
            permissions: summary.permissions.iter().map(ToString::to_string).collect(),
            tools: summary.tools,
            published_at: None,
            signer: None,
            attestations: 0,
            version: summary.version,
        })
    }
}
