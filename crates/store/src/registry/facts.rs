//! Metadata, scan results and signatures of versions.

use std::fmt;

use savoir_skill::{
    allowed_tools::split,
    permission::{Tier, effective},
};
use semver::Version;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{OwnerScope, PackageName, RegistryError, index::why_blocked};
use crate::{StoreError, Timestamp, sql::damaged};

const MAX_TAGS: usize = 50;
const MAX_TAG_LENGTH: usize = 64;
const MAX_AUTHOR_LENGTH: usize = 256;
/// Maximum size of the facts as JSON, in bytes.
const MAX_FACTS_BYTES: usize = 1 << 20;

/// Metadata from the files of a version. It never changes; the publish route extracts it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct VersionFacts {
    pub description: String,
    /// Tags for the search.
    pub tags: Vec<String>,
    /// The author as SKILL.md names them.
    pub author: Option<String>,
    /// The license as an SPDX expression.
    pub license: Option<String>,
    /// The URL of the homepage.
    pub homepage: Option<String>,
    /// The URL of the source repository.
    pub repository: Option<String>,
    /// The dialect of SKILL.md.
    pub dialect: String,
    /// The skills that it needs, as `name@range`.
    pub needs: Vec<String>,
    /// The permissions that it requests.
    pub permissions: Vec<String>,
    /// The tools that it provides.
    pub tools: Vec<String>,
    pub files: Vec<FileFact>,
    /// Its frontmatter.
    pub manifest: serde_json::Value,
    /// Further metadata.
    pub more: serde_json::Map<String, serde_json::Value>,
}

/// One file of a version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileFact {
    /// The path in the package.
    pub path: String,
    /// SHA-256 in hexadecimal digits.
    pub sha256: String,
    /// The size in bytes.
    pub size: u64,
}

impl VersionFacts {
    /// Maximum number of tools of the agent in a line of the index.
    const MAX_ALLOWED_TOOLS: usize = 100;

    /// The tools of the agent that the skill may use without asking, as its frontmatter lists them.
    pub(super) fn allowed_tools(&self) -> Vec<String> {
        let tools: Vec<String> = match self.manifest.get("allowed-tools") {
            Some(Value::String(text)) => split(text).iter().map(ToString::to_string).collect(),
            Some(Value::Array(list)) => {
                list.iter().filter_map(Value::as_str).map(str::to_owned).collect()
            }
            _ => Vec::new(),
        };
        tools.into_iter().take(Self::MAX_ALLOWED_TOOLS).collect()
    }

    /// Returns the facts as stored JSON; fails if they are too large for an index.
    pub(super) fn to_text(&self) -> Result<String, RegistryError> {
        let invalid = |what, message: String| Err(RegistryError::Invalid { what, message });
        if self.tags.len() > MAX_TAGS {
            return invalid("the list of tags", format!("it has more than {MAX_TAGS}"));
        }
        let bad = |tag: &&String| {
            tag.trim().is_empty() || tag.len() > MAX_TAG_LENGTH || tag.chars().any(char::is_control)
        };
        if let Some(tag) = self.tags.iter().find(bad) {
            let message = format!("`{}`; use 1 to {MAX_TAG_LENGTH} bytes", tag.escape_debug());
            return invalid("a tag", message);
        }
        if self.author.as_ref().is_some_and(|author| author.len() > MAX_AUTHOR_LENGTH) {
            return invalid("the author", format!("it has more than {MAX_AUTHOR_LENGTH} bytes"));
        }
        let text = serde_json::to_string(self).map_err(|error| RegistryError::Invalid {
            what: "the manifest",
            message: error.to_string(),
        })?;
        if text.len() > MAX_FACTS_BYTES {
            return invalid("the manifest", format!("it has more than {MAX_FACTS_BYTES} bytes"));
        }
        Ok(text)
    }

    pub(super) fn read(text: &str) -> Result<Self, StoreError> {
        serde_json::from_str(text).map_err(|error| StoreError::Damaged {
            what: "what is known of a version".to_owned(),
            message: error.to_string(),
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ScanVerdict {
    /// It may be installed.
    Allow,
    /// A person should review it first.
    Review,
    /// It should not be installed.
    Block,
}

impl ScanVerdict {
    /// Returns the name that is stored and sent.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Review => "review",
            Self::Block => "block",
        }
    }

    pub(super) fn read(text: &str) -> Result<Self, StoreError> {
        let all = [Self::Allow, Self::Review, Self::Block];
        let found = all.into_iter().find(|verdict| verdict.as_str() == text);
        found.ok_or_else(|| damaged("the verdict of a scan", text))
    }
}

impl fmt::Display for ScanVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScanResult {
    pub verdict: ScanVerdict,
    /// The scanner's own report.
    pub report: serde_json::Value,
}

/// A new signature of a version. The caller has verified it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSignature {
    /// Whether a publisher or an auditor signed.
    pub signer: Signer,
    pub key_id: String,
    /// The signature itself, as clients verify it.
    pub record: String,
}

/// On whose behalf a key signs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Signer {
    /// The owners of the package.
    Publisher,
    /// The auditors of the registry.
    Auditor,
}

impl Signer {
    /// `publisher` or `auditor`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Publisher => "publisher",
            Self::Auditor => "auditor",
        }
    }

    /// Returns the scope for which their keys are registered.
    pub(super) fn owner_scope(self, package: &PackageName) -> OwnerScope {
        match self {
            Self::Publisher => package.owner_scope(),
            Self::Auditor => OwnerScope::auditors(),
        }
    }
}

/// Whether a signature counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SignatureState {
    /// Its key was registered when the signature was added, and still is.
    Active,
    /// Its key was not registered when the signature was added. It does not count.
    Unknown,
    /// Its key was revoked. It does not count.
    Revoked,
}

impl SignatureState {
    /// `active`, `unknown` or `revoked`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Unknown => "unknown",
            Self::Revoked => "revoked",
        }
    }

    pub(super) fn read(text: &str) -> Result<Self, StoreError> {
        let all = [Self::Active, Self::Unknown, Self::Revoked];
        let found = all.into_iter().find(|state| state.as_str() == text);
        found.ok_or_else(|| damaged("the state of a signature", text))
    }
}

/// A stored signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// Whether a publisher or an auditor signed.
    pub signer: Signer,
    pub key_id: String,
    /// Whether it counts.
    pub state: SignatureState,
    /// The signature itself.
    pub record: String,
    pub added_at: Timestamp,
}

#[derive(Clone, Debug, PartialEq)]
pub struct PackageVersion {
    pub package: PackageName,
    pub version: Version,
    /// The tier that it claims.
    pub claimed: Option<Tier>,
    /// The tier that its scan and its signatures attest.
    pub attested: Tier,
    /// The digest of its content that lockfiles pin.
    pub integrity: String,
    /// SHA-256 of its artifact, in hexadecimal digits: the address of the bytes.
    pub sha256: String,
    /// The size of its artifact, in bytes.
    pub size: u64,
    /// SHA-256 of its SKILL.md, in hexadecimal digits: the address of the text.
    pub skill_md: String,
    /// Metadata from its files.
    pub facts: VersionFacts,
    /// The result and time of the last scan; `None` before the first.
    pub scan: Option<(ScanResult, Timestamp)>,
    /// When and why it was yanked.
    pub yanked: Option<(Timestamp, Option<String>)>,
    /// The deprecation message, if it is deprecated.
    pub deprecated: Option<String>,
    /// The id of the account that published it.
    pub published_by: Option<i64>,
    pub published_at: Timestamp,
}

/// The message for a version that was blocked without a reason.
const SCAN_BLOCKS_MESSAGE: &str = "a scan blocks it";

/// Returns why a version is blocked, from its scan report.
pub(super) fn blocked_by(report: &str) -> String {
    let report = serde_json::from_str(report).ok();
    report.as_ref().and_then(why_blocked).unwrap_or_else(|| SCAN_BLOCKS_MESSAGE.to_owned())
}

impl PackageVersion {
    /// Returns why it cannot be installed, if an administrator or a scan blocks it.
    pub fn why_blocked(&self) -> Option<String> {
        let (scan, _) = self.scan.as_ref()?;
        let blocked = scan.verdict == ScanVerdict::Block;
        blocked.then(|| why_blocked(&scan.report).unwrap_or_else(|| SCAN_BLOCKS_MESSAGE.to_owned()))
    }

    /// Returns the effective tier: the lower one of the attested and the claimed tier, if it claims
    /// one.
    pub fn tier(&self) -> Tier {
        self.claimed.map_or(self.attested, |claimed| effective(claimed, self.attested))
    }
}

/// Computes the attested tier from a scan and signatures. `verified` needs the signatures of a
/// publisher and an auditor; the auditor's also replaces the review that a scan asks for.
pub(super) fn attested(verdict: Option<ScanVerdict>, publisher: bool, auditor: bool) -> Tier {
    match (verdict, publisher, auditor) {
        (Some(ScanVerdict::Allow | ScanVerdict::Review), true, true) => Tier::Verified,
        (Some(ScanVerdict::Allow), true, false) => Tier::Community,
        _ => Tier::Experimental,
    }
}

pub(super) fn tier_number(tier: Tier) -> i64 {
    match tier {
        Tier::Experimental => 0,
        Tier::Community => 1,
        Tier::Verified => 2,
    }
}

pub(super) fn read_tier(number: i64) -> Result<Tier, StoreError> {
    let found = Tier::ALL.into_iter().find(|tier| tier_number(*tier) == number);
    found.ok_or_else(|| damaged("the tier of a version", &number.to_string()))
}

/// Reads a stored version.
pub(super) fn read_version(text: &str) -> Result<Version, StoreError> {
    text.parse().map_err(|_| damaged("a version", text))
}

/// Reads a stored package name.
pub(super) fn read_name(id: &str) -> Result<PackageName, StoreError> {
    id.parse().map_err(|_| damaged("the name of a package", id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tier_of_verdict_and_signatures() {
        use ScanVerdict::{Allow, Block, Review};
        for (verdict, publisher, auditor, tier) in [
            (None, true, true, Tier::Experimental),
            (Some(Block), true, true, Tier::Experimental),
            (Some(Allow), false, false, Tier::Experimental),
            (Some(Allow), false, true, Tier::Experimental),
            (Some(Allow), true, false, Tier::Community),
            (Some(Review), true, false, Tier::Experimental),
            (Some(Review), true, true, Tier::Verified),
            (Some(Allow), true, true, Tier::Verified),
        ] {
            assert_eq!(attested(verdict, publisher, auditor), tier);
        }
    }

    #[test]
    fn too_large_facts_are_rejected() {
        let with_tag =
            |tag: &str| VersionFacts { tags: vec![tag.to_owned()], ..VersionFacts::default() };
        with_tag("a b").to_text().unwrap();
        for tag in ["", " ", "a\nb", &"x".repeat(65)] {
            assert!(with_tag(tag).to_text().is_err(), "{tag:?}");
        }
        let many = VersionFacts { tags: vec!["a".to_owned(); 51], ..VersionFacts::default() };
        assert!(many.to_text().is_err());
        let author = VersionFacts { author: Some("x".repeat(257)), ..VersionFacts::default() };
        assert!(author.to_text().is_err());
        let large =
            VersionFacts { description: "x".repeat(MAX_FACTS_BYTES), ..VersionFacts::default() };
        assert!(large.to_text().is_err());
    }
}
