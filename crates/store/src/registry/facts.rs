//! Metadata, scan results and signatures of versions.

use std::fmt;

use savoir_skill::permission::{Tier, effective};
use semver::Version;
use serde::{Deserialize, Serialize};

use super::{OwnerScope, PackageName, RegistryError, index::why_blocked};
use crate::{StoreError, Timestamp, sql::damaged};

const MAX_TAGS: usize = 50;
const MAX_TAG_LENGTH: usize = 64;
const MAX_AUTHOR_LENGTH: usize = 256;
/// In bytes, as JSON.
const MAX_FACTS_BYTES: usize = 1 << 20;

/// What the files of a version say, which never changes. Whoever publishes has read them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct VersionFacts {
    /// What it does.
    pub description: String,
    /// What it is found by.
    pub tags: Vec<String>,
    /// Who wrote it, as the file says.
    pub author: Option<String>,
    /// Its licence, as an SPDX expression.
    pub license: Option<String>,
    /// Where it is described.
    pub homepage: Option<String>,
    /// Where its source is.
    pub repository: Option<String>,
    /// How it is written.
    pub dialect: String,
    /// The skills that it needs, as `name@range`.
    pub needs: Vec<String>,
    /// What it asks for.
    pub permissions: Vec<String>,
    /// The tools that it brings.
    pub tools: Vec<String>,
    /// Its files.
    pub files: Vec<FileFact>,
    /// Its frontmatter.
    pub manifest: serde_json::Value,
    /// What has no place above.
    pub more: serde_json::Map<String, serde_json::Value>,
}

/// One file of a version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileFact {
    /// Where it lies in the package.
    pub path: String,
    /// SHA-256 in hexadecimal digits.
    pub sha256: String,
    /// In bytes.
    pub size: u64,
}

impl VersionFacts {
    /// The facts as they are kept, if an index can hold them.
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

/// What a scan says should become of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ScanVerdict {
    /// Nothing speaks against it.
    Allow,
    /// A person should look at it first.
    Review,
    /// It should not be installed.
    Block,
}

impl ScanVerdict {
    /// The word that programs read.
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

/// What a scan found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScanResult {
    /// What it comes to.
    pub verdict: ScanVerdict,
    /// The scanner's own report.
    pub report: serde_json::Value,
}

/// A signature of a version, which whoever hands it over has checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSignature {
    /// Whose key made it.
    pub signer: Signer,
    /// Identifies the key.
    pub key_id: String,
    /// The signature itself, as it is given to those who check it.
    pub record: String,
}

/// For whom a key signs.
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

    /// For what their keys are registered.
    pub(super) fn owner_scope(self, package: &PackageName) -> OwnerScope {
        match self {
            Self::Publisher => package.owner_scope(),
            Self::Auditor => OwnerScope::auditors(),
        }
    }
}

/// What a signature is worth now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SignatureState {
    /// Its key was registered when it came, and still is.
    Active,
    /// Its key was not registered when it came. It vouches for nothing.
    Unknown,
    /// Its key was revoked. It vouches for nothing.
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

/// A signature that is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// Whose key made it.
    pub signer: Signer,
    /// Identifies the key.
    pub key_id: String,
    /// What it is worth now.
    pub state: SignatureState,
    /// The signature itself.
    pub record: String,
    /// When it came.
    pub added_at: Timestamp,
}

/// One version of a package.
#[derive(Clone, Debug, PartialEq)]
pub struct PackageVersion {
    /// Of which package.
    pub package: PackageName,
    /// Its version.
    pub version: Version,
    /// The tier that it claims.
    pub claimed: Option<Tier>,
    /// The tier that its scan and its signatures earned it.
    pub attested: Tier,
    /// What a lock holds it to.
    pub integrity: String,
    /// SHA-256 of its artefact, in hexadecimal digits: the address of the bytes.
    pub sha256: String,
    /// The size of its artefact, in bytes.
    pub size: u64,
    /// SHA-256 of its SKILL.md, in hexadecimal digits: the address of the text.
    pub skill_md: String,
    /// What its files say.
    pub facts: VersionFacts,
    /// What the last scan found, and when; none before the first.
    pub scan: Option<(ScanResult, Timestamp)>,
    /// When it was yanked, and why.
    pub yanked: Option<(Timestamp, Option<String>)>,
    /// What its users should know.
    pub deprecated: Option<String>,
    /// Whose account published it.
    pub published_by: Option<i64>,
    /// When.
    pub published_at: Timestamp,
}

/// What is told of a version that is blocked without a word.
const SCAN_BLOCKS_MESSAGE: &str = "a scan blocks it";

/// Why a version is blocked, by the text of its report.
pub(super) fn blocked_by(report: &str) -> String {
    let report = serde_json::from_str(report).ok();
    report.as_ref().and_then(why_blocked).unwrap_or_else(|| SCAN_BLOCKS_MESSAGE.to_owned())
}

impl PackageVersion {
    /// Why nobody is given it anew, if an administrator or a scan blocks it.
    pub fn why_blocked(&self) -> Option<String> {
        let (scan, _) = self.scan.as_ref()?;
        let blocked = scan.verdict == ScanVerdict::Block;
        blocked.then(|| why_blocked(&scan.report).unwrap_or_else(|| SCAN_BLOCKS_MESSAGE.to_owned()))
    }

    /// How far it is trusted: never more than it claims, if it claims anything, and never more than
    /// is attested.
    pub fn tier(&self) -> Tier {
        self.claimed.map_or(self.attested, |claimed| effective(claimed, self.attested))
    }
}

/// What a scan and signatures earn a version. Both a publisher and an auditor must stand for what
/// is verified; the auditor is the person whom a scan that is in doubt asks for.
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

/// A version that was checked when it was published.
pub(super) fn read_version(text: &str) -> Result<Version, StoreError> {
    text.parse().map_err(|_| damaged("a version", text))
}

/// A name that was checked when it was published.
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
