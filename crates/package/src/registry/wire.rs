//! JSON types of the registry API.
//!
//! Readers pass over keys that they do not know, so that a registry may say more than today. Every
//! list has a bound. A tier that is not known is read as the least.

mod bounded;
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

pub use line::{IndexLine, TakenDownLine};
pub(super) use line::{Lines, ParsedLine};
pub use team::{
    Appeal, AuditRequest, Clearance, Cleared, Judged, Judgement, KeyInfo, Keys, Log, LogEntry,
    LogQuery, MadeToken, Member, Members, NewKey, NewMember, NewSignature, PublishedSignature,
    RevokedKey, Signatures, TakeDown, TeamRole, TokenInfo, Tokens, WantedToken,
};

/// The version of the index that is read and written.
pub const INDEX_VERSION: u32 = 1;

/// `index/v1/config.json`: how a registry is to be asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = RegistryConfig))]
pub struct Config {
    /// The version of the index.
    pub version: u32,
    /// Where the registry calls itself to be; a mirror does not know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// Where archives are, with `{sha256}` and `{filename}`; from the registry's address if it is
    /// no whole address.
    #[serde(default = "usual_artifacts")]
    pub artifacts: String,
    /// Whether it tells in one answer what some skills need.
    #[serde(default)]
    pub closure: bool,
}

fn usual_artifacts() -> String {
    Config::ARTIFACTS.to_owned()
}

impl Config {
    /// Where archives are beside an index.
    pub const ARTIFACTS: &'static str = "artifacts/{sha256}/{filename}";

    /// That of a folder of files.
    pub fn of_files() -> Self {
        let artifacts = usual_artifacts();
        Self { version: INDEX_VERSION, base: None, artifacts, closure: false }
    }
}

/// A skill in a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = RegistrySummary))]
pub struct Summary {
    /// Its name.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub name: Name,
    /// The highest release, or the highest pre-release if there is none.
    pub latest_version: Option<String>,
    /// What it does.
    pub description: Option<String>,
    /// Who wrote it.
    pub author: Option<String>,
    /// Under which terms.
    pub license: Option<String>,
    /// How far the registry trusts it.
    #[serde(default, deserialize_with = "lenient_tier")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub security_tier: Tier,
    /// Words for it.
    #[serde(default, deserialize_with = "list::<_, _, MAX_LISTED>")]
    pub tags: Vec<String>,
    /// Where more is written about it.
    pub homepage: Option<String>,
    /// Where its source is.
    pub repository: Option<String>,
    /// When it changed last.
    pub updated_at: Option<String>,
    /// How often it was downloaded, if the registry counts that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub downloads: Option<u64>,
}

/// Some skills of a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = RegistryPage))]
pub struct Page {
    /// The skills.
    #[serde(deserialize_with = "list::<_, _, MAX_PAGE>")]
    pub items: Vec<Summary>,
    /// Where the next ones begin; nothing at the end.
    pub next_cursor: Option<String>,
    /// Which page this is, if pages were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<u64>,
    /// How many a page has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_page: Option<u64>,
    /// How many there are in all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// Whether they were not counted one by one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_is_estimate: Option<bool>,
}

/// What a search found, the best first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = RegistryFound))]
pub struct Found {
    /// What was looked for.
    #[serde(default)]
    pub query: String,
    /// The skills.
    #[serde(deserialize_with = "list::<_, _, MAX_PAGE>")]
    pub items: Vec<Summary>,
    /// How many there are in all.
    pub total: Option<u64>,
}

/// A skill, with its versions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = RegistryPackageDetail))]
pub struct PackageDetail {
    /// What a list says of it.
    #[serde(flatten)]
    pub summary: Summary,
    /// What its newest version says about itself.
    pub readme: Option<String>,
    /// The deprecation message: what to use instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<String>,
    /// Its versions, newest first.
    #[serde(default, deserialize_with = "list::<_, _, MAX_VERSIONS>")]
    // Distinguishes it from a version where an answer is one of the two.
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub versions: Vec<VersionSummary>,
}

/// A version in a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = RegistryVersionSummary))]
pub struct VersionSummary {
    /// Which.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub version: Version,
    /// When it was published.
    pub published_at: Option<String>,
    /// By whom.
    pub publisher: Option<String>,
    /// How far the registry trusts it.
    #[serde(default, deserialize_with = "lenient_tier")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub security_tier: Tier,
    /// What its files are.
    pub integrity: Option<String>,
    /// The bytes of its archive.
    #[serde(default)]
    pub size: u64,
    /// Whether it was withdrawn.
    #[serde(default)]
    pub yanked: bool,
    /// Why, if who did it said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub yanked_reason: Option<String>,
    /// The deprecation message: what to use instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<String>,
    /// How often it was downloaded, if the registry counts that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub downloads: Option<u64>,
}

/// A version, with everything that is known about it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = RegistryVersionDetail))]
pub struct VersionDetail {
    /// Of which skill.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub name: Name,
    /// Which.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub version: Version,
    /// When it was published.
    pub published_at: Option<String>,
    /// By whom.
    pub publisher: Option<String>,
    /// How far the registry trusts it.
    #[serde(default, deserialize_with = "lenient_tier")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub security_tier: Tier,
    /// What it claims itself.
    #[serde(default, deserialize_with = "maybe_tier")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub claimed_tier: Option<Tier>,
    /// Whether it was withdrawn: who has it keeps it, and nobody else gets it.
    #[serde(default)]
    pub yanked: bool,
    /// Why, if who did it said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub yanked_reason: Option<String>,
    /// The deprecation message: what to use instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<String>,
    /// What changed in it, if who published it said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changelog: Option<String>,
    /// The head of its SKILL.md.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub manifest: Value,
    /// Its SKILL.md.
    pub skill_md: Option<String>,
    /// Its archive.
    pub artifact: Artifact,
    /// Its files.
    #[serde(default, deserialize_with = "list::<_, _, MAX_FILES>")]
    pub files: Vec<FileDigest>,
    /// Who signed it, as its signature says.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Object>))]
    pub signature: Option<Value>,
    /// What a scan of it found.
    pub audit: Option<Audit>,
}

/// An archive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = RegistryArtifact))]
pub struct Artifact {
    /// What it is called.
    pub filename: String,
    /// Its bytes.
    pub size: u64,
    /// Their digest, in hexadecimal digits.
    pub sha256: String,
    /// What the files in it are.
    pub integrity: Option<String>,
}

/// A file of a skill.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = RegistryFileDigest))]
pub struct FileDigest {
    /// Where it is.
    pub path: String,
    /// The digest of its bytes.
    pub sha256: String,
    /// How many they are.
    pub size: u64,
}

/// What a scan found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = RegistryAudit))]
pub struct Audit {
    /// `ALLOW`, `REVIEW` or `BLOCK`.
    pub verdict: String,
    /// Who scanned.
    pub engine: Option<String>,
    /// When.
    pub audited_at: Option<String>,
    /// What was found.
    #[serde(default, deserialize_with = "list::<_, _, MAX_VERSIONS>")]
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<Object>))]
    pub findings: Vec<Value>,
}

/// The answer to who publishes a skill.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = RegistryPublished))]
pub struct Published {
    /// What was published.
    pub published: Publication,
}

/// What was published.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = RegistryPublication))]
pub struct Publication {
    /// Which skill.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub name: Name,
    /// Which version.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub version: Version,
    /// How far the registry trusts it.
    #[serde(default, deserialize_with = "lenient_tier")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub security_tier: Tier,
    /// What the registry's scan found.
    pub audit: Option<Audit>,
    /// Its archive.
    pub artifact: Option<Artifact>,
    /// The highest version now.
    pub latest_version: Option<String>,
}

/// What a publisher sends: parts of a form, of which only the archive must be there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Publish {
    /// The archive.
    pub artifact: Vec<u8>,
    /// What it is called.
    pub filename: String,
    /// The namespace, if the name does not stand alone.
    pub namespace: Option<String>,
    /// What prose is to be called; other skills have a name of their own.
    pub name: Option<String>,
    /// The version of a file that does not say one.
    pub version: Option<String>,
    /// Its SKILL.md, which must be that of the archive.
    pub skill: Option<String>,
    /// What changed.
    pub changelog: Option<String>,
    /// The report of a scan, as JSON.
    pub audit: Option<String>,
}

/// Withdraws a version, or gives it back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = RegistryYank))]
pub struct Yank {
    /// Whether it is withdrawn.
    pub yanked: bool,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What became of that; older registries do not tell.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct YankDone {
    /// Why nobody is given the version all the same.
    pub blocked: Option<String>,
}

/// Tells people to use something else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = RegistryDeprecate))]
pub struct Deprecate {
    /// The message for users; it cannot be removed.
    pub message: Option<String>,
}

/// Who asks, as the registry sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = RegistryWhoAmI))]
pub struct WhoAmI {
    /// The address of the account.
    pub email: Option<String>,
    /// `user` or `admin`.
    pub role: Option<String>,
    /// What the token is good for: `read`, `publish`, `yank`, `owner`.
    #[serde(default, deserialize_with = "list::<_, _, MAX_LISTED>")]
    pub scopes: Vec<String>,
    /// The namespaces in which this account may publish.
    #[serde(default, deserialize_with = "list::<_, _, MAX_VERSIONS>")]
    pub namespaces: Vec<String>,
    /// The id of the token, by which it can end itself; none of a person who logged in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_id: Option<String>,
}

/// An address and a password, for which a token is given.
#[derive(Serialize)]
pub(super) struct Credentials<'a> {
    pub(super) email: &'a str,
    pub(super) password: &'a str,
}

/// The token that was given.
#[derive(Deserialize)]
pub(super) struct LoggedIn {
    pub(super) token: String,
}

/// What a registry says when it refuses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = RegistryErrorBody))]
pub struct ErrorBody {
    /// What is wrong.
    pub error: ErrorDetail,
}

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = RegistryErrorDetail))]
pub struct ErrorDetail {
    /// A word for programs.
    pub code: String,
    /// A sentence for people.
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
