//! JSON types of the registry API.
//!
//! Unknown keys are ignored, so that registries can add fields. Every list has a maximum length. An
//! unknown tier is read as the lowest.

mod bounded;
mod evaluation;
mod line;
mod team;

use semver::Version;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::bounded::{lenient_tier, list, maybe_tier};
use super::Name;
use crate::{
    limits::{MAX_FILES, MAX_LISTED, MAX_PAGE, MAX_VERSIONS},
    trust::Tier,
};

pub use evaluation::{Attestations, NewAttestation, PublishedAttestation};
pub use line::{IndexLine, TakenDownLine};
pub(super) use line::{Lines, ParsedLine};
pub use team::{
    Appeal, AuditRequest, Clearance, Cleared, CreateTokenRequest, CreateTokenResponse, Judged,
    Judgement, KeyInfo, Keys, Log, LogEntry, LogQuery, Member, Members, NewKey, NewMember,
    NewSignature, PublishedSignature, RevokedKey, Signatures, TakeDown, TeamRole, TokenInfo,
    Tokens,
};

/// The version of the index format.
pub const INDEX_VERSION: u32 = 1;

/// `index/v1/config.json`: the configuration of a registry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = RegistryConfig))]
pub struct Config {
    /// The version of the index format.
    pub version: u32,
    /// The address of the registry; a mirror does not know it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// The URL template of archives, with `{sha256}` and `{filename}`; may be relative to the
    /// address of the registry.
    #[serde(default = "usual_artifacts")]
    pub artifacts: String,
    /// Whether the registry returns packages with all their dependencies in one response.
    #[serde(default)]
    pub closure: bool,
}

fn usual_artifacts() -> String {
    Config::ARTIFACTS.to_owned()
}

impl Config {
    /// The template for archives beside an index.
    pub const ARTIFACTS: &'static str = "artifacts/{sha256}/{filename}";

    /// The configuration of a registry of static files.
    pub fn of_files() -> Self {
        let artifacts = usual_artifacts();
        Self { version: INDEX_VERSION, base: None, artifacts, closure: false }
    }
}

/// A skill in a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = RegistrySummary))]
pub struct Summary {
    /// The name of the skill.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub name: Name,
    /// The highest release, or the highest pre-release if there is none.
    pub latest_version: Option<String>,
    pub description: Option<String>,
    pub author: Option<String>,
    pub license: Option<String>,
    /// The tier that the registry attests.
    #[serde(default, deserialize_with = "lenient_tier")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub security_tier: Tier,
    #[serde(default, deserialize_with = "list::<_, _, MAX_LISTED>")]
    pub tags: Vec<String>,
    /// The URL of the homepage.
    pub homepage: Option<String>,
    /// The URL of the source repository.
    pub repository: Option<String>,
    /// When the package last changed.
    pub updated_at: Option<String>,
    /// The number of downloads, if the registry counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub downloads: Option<u64>,
    /// How many signed evaluations its latest version has, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attestations: Option<u64>,
}

/// A page of a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = RegistryPage))]
pub struct Page {
    /// The skills.
    #[serde(deserialize_with = "list::<_, _, MAX_PAGE>")]
    pub items: Vec<Summary>,
    /// The cursor of the next page; missing on the last page.
    pub next_cursor: Option<String>,
    /// The number of the page, if pages were requested by number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<u64>,
    /// The page size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_page: Option<u64>,
    /// The total number of skills.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// Whether the total is an estimate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_is_estimate: Option<bool>,
}

/// The result of a search, the best matches first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = RegistryFound))]
pub struct Found {
    /// The search query.
    #[serde(default)]
    pub query: String,
    /// The skills.
    #[serde(deserialize_with = "list::<_, _, MAX_PAGE>")]
    pub items: Vec<Summary>,
    /// The total number of matches.
    pub total: Option<u64>,
}

/// A skill with its versions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = RegistryPackageDetail))]
pub struct PackageDetail {
    /// The skill as in a list.
    #[serde(flatten)]
    pub summary: Summary,
    /// The README of the latest version.
    pub readme: Option<String>,
    /// The deprecation message: what to use instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<String>,
    /// The versions, newest first.
    #[serde(default, deserialize_with = "list::<_, _, MAX_VERSIONS>")]
    // This field distinguishes the type in an untagged union with a single version.
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub versions: Vec<VersionSummary>,
}

/// A version in a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = RegistryVersionSummary))]
pub struct VersionSummary {
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub version: Version,
    /// When it was published.
    pub published_at: Option<String>,
    pub publisher: Option<String>,
    /// The tier that the registry attests.
    #[serde(default, deserialize_with = "lenient_tier")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub security_tier: Tier,
    /// The integrity of the files.
    pub integrity: Option<String>,
    /// The size of the archive in bytes.
    #[serde(default)]
    pub size: u64,
    /// Whether the version is yanked.
    #[serde(default)]
    pub yanked: bool,
    /// The reason for the yank, if one was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub yanked_reason: Option<String>,
    /// The deprecation message: what to use instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<String>,
    /// The number of downloads, if the registry counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub downloads: Option<u64>,
}

/// A version with all its metadata.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = RegistryVersionDetail))]
pub struct VersionDetail {
    /// The name of the skill.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub name: Name,
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub version: Version,
    /// When it was published.
    pub published_at: Option<String>,
    pub publisher: Option<String>,
    /// The tier that the registry attests.
    #[serde(default, deserialize_with = "lenient_tier")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub security_tier: Tier,
    /// The tier that the skill claims.
    #[serde(default, deserialize_with = "maybe_tier")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub claimed_tier: Option<Tier>,
    /// Whether the version is yanked: existing installs keep working, new installs skip it.
    #[serde(default)]
    pub yanked: bool,
    /// The reason for the yank, if one was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub yanked_reason: Option<String>,
    /// The deprecation message: what to use instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<String>,
    /// The changelog of the version, if the publisher wrote one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changelog: Option<String>,
    /// The frontmatter of SKILL.md.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub manifest: Value,
    /// The text of SKILL.md.
    pub skill_md: Option<String>,
    /// The archive.
    pub artifact: Artifact,
    #[serde(default, deserialize_with = "list::<_, _, MAX_FILES>")]
    pub files: Vec<FileDigest>,
    /// The signature of the publisher.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Object>))]
    pub signature: Option<Value>,
    /// The result of the scan.
    pub audit: Option<Audit>,
}

/// The archive of a version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = RegistryArtifact))]
pub struct Artifact {
    /// The file name.
    pub filename: String,
    /// The size in bytes.
    pub size: u64,
    /// The SHA-256 in hexadecimal digits.
    pub sha256: String,
    /// The integrity of the files in it.
    pub integrity: Option<String>,
}

/// A file of a version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = RegistryFileDigest))]
pub struct FileDigest {
    /// The path in the skill.
    pub path: String,
    /// The SHA-256 of the file.
    pub sha256: String,
    /// The size in bytes.
    pub size: u64,
}

/// The result of a scan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = RegistryAudit))]
pub struct Audit {
    /// `ALLOW`, `REVIEW` or `BLOCK`.
    pub verdict: String,
    /// The scanner.
    pub engine: Option<String>,
    /// When the version was scanned.
    pub audited_at: Option<String>,
    #[serde(default, deserialize_with = "list::<_, _, MAX_VERSIONS>")]
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<Object>))]
    pub findings: Vec<Value>,
}

/// The response to a publish request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = RegistryPublished))]
pub struct Published {
    /// The published version.
    pub published: Publication,
}

/// A published version.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = RegistryPublication))]
pub struct Publication {
    /// The name of the skill.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub name: Name,
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub version: Version,
    /// The tier that the registry attests.
    #[serde(default, deserialize_with = "lenient_tier")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub security_tier: Tier,
    /// The result of the registry's scan.
    pub audit: Option<Audit>,
    /// The archive.
    pub artifact: Option<Artifact>,
    /// The latest version after publishing.
    pub latest_version: Option<String>,
}

/// A publish request: parts of a form, of which only the archive is required.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Publish {
    /// The archive.
    pub artifact: Vec<u8>,
    /// The file name of the archive.
    pub filename: String,
    /// The namespace, if there is one.
    pub namespace: Option<String>,
    /// The name of a text without frontmatter; other skills have their own name.
    pub name: Option<String>,
    /// The version, if SKILL.md has none.
    pub version: Option<String>,
    /// The SKILL.md, which must equal that in the archive.
    pub skill: Option<String>,
    pub changelog: Option<String>,
    /// The report of a scan, as JSON.
    pub audit: Option<String>,
}

/// Yanks a version, or reverts that.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = RegistryYank))]
pub struct Yank {
    /// Whether the version is to be yanked.
    pub yanked: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The response to a yank request; empty from older registries.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct YankDone {
    /// Why the version cannot be installed even after the yank was reverted.
    pub blocked: Option<String>,
}

/// Sets or removes a deprecation message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = RegistryDeprecate))]
pub struct Deprecate {
    /// The message for users; it cannot be removed.
    pub message: Option<String>,
}

/// The account and token of the request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = RegistryWhoAmI))]
pub struct WhoAmI {
    /// The email address of the account.
    pub email: Option<String>,
    /// `user` or `admin`.
    pub role: Option<String>,
    /// The scopes of the token: `read`, `publish`, `yank`, `owner`.
    #[serde(default, deserialize_with = "list::<_, _, MAX_LISTED>")]
    pub scopes: Vec<String>,
    /// The namespaces in which the account may publish.
    #[serde(default, deserialize_with = "list::<_, _, MAX_VERSIONS>")]
    pub namespaces: Vec<String>,
    /// The id of the token, with which it can revoke itself; missing for a logged-in user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_id: Option<String>,
}

/// An email address and a password.
#[derive(Serialize)]
pub(super) struct Credentials<'a> {
    pub(super) email: &'a str,
    pub(super) password: &'a str,
}

/// The response to a login.
#[derive(Deserialize)]
pub(super) struct LoggedIn {
    pub(super) token: String,
}

/// An error response of a registry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = RegistryErrorBody))]
pub struct ErrorBody {
    pub error: ErrorDetail,
}

/// An error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = RegistryErrorDetail))]
pub struct ErrorDetail {
    /// A stable code for programs.
    pub code: String,
    /// The message for users.
    pub message: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_fields_are_ignored() {
        let config: Config = serde_json::from_str(
            r#"{"version":1,"base":"https://x.example/registry","closure":true,"later":[1]}"#,
        )
        .unwrap();
        assert_eq!((config.artifacts.as_str(), config.closure), (Config::ARTIFACTS, true));
        let detail: PackageDetail = serde_json::from_str(
            r#"{"name":"acme/pdf","security_tier":"golden","stars":5,"readme":"x",
               "versions":[{"version":"1.0.0-rc.1","yanked":true,"later":{}}]}"#,
        )
        .unwrap();
        assert_eq!(detail.summary.name.to_string(), "acme/pdf");
        assert_eq!(detail.summary.security_tier, Tier::Experimental, "the least that is known");
        assert!(detail.versions[0].yanked);
        let again = serde_json::to_value(&detail).unwrap();
        assert_eq!(again["name"], "acme/pdf", "what a list says is not nested");
    }

    #[test]
    fn long_lists_are_rejected() {
        let page = |count: usize| {
            let items = vec![r#"{"name":"a"}"#; count].join(",");
            serde_json::from_str::<Page>(&format!(r#"{{"items":[{items}]}}"#))
        };
        assert_eq!(page(MAX_PAGE).unwrap().items.len(), MAX_PAGE);
        assert!(page(MAX_PAGE + 1).unwrap_err().to_string().contains("more than"));
        assert!(serde_json::from_str::<Page>(r#"{"items":[{"name":"../a"}]}"#).is_err());
    }
}
