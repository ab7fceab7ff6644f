//! JSON types for tokens, members, keys and the audit log.
//!
//! Tokens are managed by the accounts API of the server, everything else by the registry API.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    Audit,
    bounded::{lenient_tier, list},
};
use crate::{
    limits::{MAX_LISTED, MAX_PAGE, MAX_VERSIONS},
    trust::Tier,
};

/// A request for a token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreateTokenRequest {
    /// The label of the token.
    pub name: String,
    /// The scopes: `registry:publish` everywhere, `registry:publish:acme` in one namespace.
    #[serde(deserialize_with = "list::<_, _, MAX_LISTED>")]
    pub scopes: Vec<String>,
    /// The lifetime; unlimited if `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in_days: Option<u32>,
}

/// A token without its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenInfo {
    pub id: String,
    /// The label that its owner chose.
    pub name: Option<String>,
    #[serde(default, deserialize_with = "list::<_, _, MAX_LISTED>")]
    pub scopes: Vec<String>,
    pub created_at: Option<String>,
    pub expires_at: Option<String>,
    pub last_used_at: Option<String>,
}

/// A new token with its text, which the server returns only once.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreateTokenResponse {
    #[serde(flatten)]
    pub info: TokenInfo,
    pub token: String,
}

impl fmt::Debug for CreateTokenResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MadeToken").field("info", &self.info).finish_non_exhaustive()
    }
}

/// The tokens of an account.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tokens {
    /// The tokens, newest first.
    #[serde(deserialize_with = "list::<_, _, MAX_VERSIONS>")]
    pub tokens: Vec<TokenInfo>,
}

/// The role of a member of a namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TeamRole {
    /// May publish, yank and deprecate.
    #[default]
    Publisher,
    /// May also manage members and keys.
    Owner,
}

impl TeamRole {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Publisher => "publisher",
            Self::Owner => "owner",
        }
    }
}

/// A member of a namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// The email address of the account; missing if the caller may not see it.
    pub email: Option<String>,
    /// The id of the account.
    #[serde(default, alias = "id")]
    pub user_id: Option<i64>,
    /// `publisher` or `owner`.
    #[serde(default)]
    pub role: String,
    /// When the member was added.
    pub added_at: Option<String>,
}

/// The members of a namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Members {
    #[serde(alias = "members", deserialize_with = "list::<_, _, MAX_VERSIONS>")]
    pub items: Vec<Member>,
}

/// A request to add a member or to change its role.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewMember {
    /// The email address of the account.
    pub email: String,
    #[serde(default)]
    pub role: TeamRole,
}

/// A registered key of a namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyInfo {
    pub key_id: String,
    /// The public key, in the format of `signature.json` or of OpenSSH.
    pub public_key: String,
    /// The label that its owners chose.
    pub label: Option<String>,
    pub added_at: Option<String>,
    pub revoked_at: Option<String>,
    #[serde(default, alias = "revoked_why", alias = "reason")]
    pub revoked_reason: Option<String>,
}

/// The keys of a namespace, including revoked ones.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keys {
    #[serde(alias = "keys", deserialize_with = "list::<_, _, MAX_VERSIONS>")]
    pub items: Vec<KeyInfo>,
}

/// A request to register a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewKey {
    pub public_key: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// For an auditor's key: the email address of the auditor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    /// A proof of possession of the private key: [`crate::trust::possession`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<String>,
}

/// A request to revoke a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevokedKey {
    pub key_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A request to add a signature to a published version.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NewSignature {
    /// `publisher` or `auditor`.
    pub signer: String,
    /// The record, in the format of `signature.json`.
    pub record: Value,
}

/// The signatures that a registry has for a version.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Signatures {
    /// The signatures, oldest first.
    #[serde(default, deserialize_with = "list::<_, _, MAX_LISTED>")]
    pub items: Vec<PublishedSignature>,
}

/// A signature that a registry has for a version.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PublishedSignature {
    #[serde(default)]
    pub key_id: String,
    /// The state of the key in the registry: `active`, `unknown` or `revoked`.
    #[serde(default)]
    pub state: String,
    /// The record, in the format of `signature.json`. If the archive contains the signature, the
    /// list of files is left out.
    #[serde(default)]
    pub record: Value,
}

impl Signatures {
    /// Returns the records that are not in the archive, without revoked ones.
    pub fn added(&self) -> Vec<Value> {
        let added = self.items.iter().filter(|one| one.state != "revoked");
        added.map(|one| &one.record).filter(|record| record["files"].is_object()).cloned().collect()
    }
}

/// An entry of the audit log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogEntry {
    /// The sequence number.
    #[serde(default)]
    pub seq: u64,
    /// The action.
    #[serde(default)]
    pub act: String,
    /// When it was done.
    #[serde(default, alias = "done_at")]
    pub at: Option<String>,
    /// The account that made the change: an email address or an id; null for the operator.
    #[serde(default, alias = "account", alias = "email")]
    pub actor: Value,
    /// The changed namespace.
    #[serde(default, alias = "holding")]
    pub namespace: Option<String>,
    /// The changed skill.
    #[serde(default, alias = "package")]
    pub name: Option<String>,
    /// The changed version.
    pub version: Option<String>,
    /// Further details.
    #[serde(default)]
    pub details: Value,
}

/// A page of the audit log, newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Log {
    #[serde(alias = "entries", deserialize_with = "list::<_, _, MAX_PAGE>")]
    pub items: Vec<LogEntry>,
    /// The cursor of the next page; missing on the last page.
    pub next_cursor: Option<String>,
}

/// A filter for the audit log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogQuery {
    /// Only entries of this namespace, or of a skill without namespace, as `_/name`.
    pub namespace: Option<String>,
    /// Only entries of this skill.
    pub package: Option<String>,
    /// Only these actions; all if empty.
    pub acts: Vec<String>,
    /// The cursor of the next page.
    pub cursor: Option<String>,
    /// The page size.
    pub per_page: Option<u32>,
}

/// An appeal against a scan result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Appeal {
    /// The message to the administrators.
    pub message: String,
    /// For a refused upload: the SHA-256 of the archive, in hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

/// A request to audit a version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditRequest {
    /// The message to the auditors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// A request to allow an archive that a scan blocks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clearance {
    /// The reason, which is shown in the audit log.
    pub reason: String,
    /// The skill that may be published with it; if missing, the skill of the appeal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package: Option<String>,
}

/// The response to a clearance; empty from older registries.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cleared {
    /// The only skill that may be published with the archive.
    pub name: Option<String>,
}

/// A verdict of an administrator about a version, which overrides the scan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Judgement {
    /// `allow`, `review` or `block`.
    pub verdict: String,
    /// The reason, which is shown in the audit log.
    pub reason: String,
}

/// The state of a version after a change, as far as the registry returns it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    /// The tier that the registry attests now.
    #[serde(default, deserialize_with = "lenient_tier")]
    pub security_tier: Tier,
    /// The result of the scan.
    pub audit: Option<Audit>,
    /// For a takedown: other versions with the same content, as `name@version`.
    #[serde(default)]
    pub same_content: Vec<String>,
}

/// A request to withdraw a version permanently.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TakeDown {
    /// The reason, which is shown to all users who installed the version.
    pub why: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_json_is_parsed() {
        let made: CreateTokenResponse = serde_json::from_str(
            r#"{"id":"t1","name":"savoir on desk","scopes":["registry:read"],"token":"sv_x",
               "created_at":"2026-01-01T00:00:00Z","expires_at":null,"later":1}"#,
        )
        .unwrap();
        assert_eq!((made.info.id.as_str(), made.token.as_str()), ("t1", "sv_x"));
        assert!(!format!("{made:?}").contains("sv_x"));
        let wanted = CreateTokenRequest {
            name: "a".into(),
            scopes: vec!["b".into()],
            expires_in_days: None,
        };
        assert_eq!(serde_json::to_string(&wanted).unwrap(), r#"{"name":"a","scopes":["b"]}"#);
    }

    #[test]
    fn long_lists_are_rejected_and_aliases_read() {
        let members = |key: &str, count: usize| {
            let items = vec![r#"{"user_id":1,"role":"captain"}"#; count].join(",");
            serde_json::from_str::<Members>(&format!(r#"{{"{key}":[{items}]}}"#))
        };
        assert_eq!(members("items", 2).unwrap(), members("members", 2).unwrap());
        assert!(members("items", MAX_VERSIONS + 1).is_err());
        let log: Log = serde_json::from_str(
            r#"{"entries":[{"seq":4,"act":"yank","done_at":"x","account":7,"package":"acme/pdf"}]}"#,
        )
        .unwrap();
        assert_eq!(
            (&log.items[0].actor, log.items[0].name.as_deref()),
            (&7.into(), Some("acme/pdf"))
        );
    }
}
