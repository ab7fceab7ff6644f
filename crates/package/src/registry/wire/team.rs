//! JSON types for tokens, members, keys and the audit log.
//!
//! A token is made and ended at the server's accounts, everything else at the registry.

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

/// A token that is wanted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WantedToken {
    /// What it is for.
    pub name: String,
    /// What it may do: `registry:publish` everywhere, `registry:publish:acme` in one namespace.
    #[serde(deserialize_with = "list::<_, _, MAX_LISTED>")]
    pub scopes: Vec<String>,
    /// When it ends; without end if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in_days: Option<u32>,
}

/// A token, without its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenInfo {
    /// By which it is ended.
    pub id: String,
    /// What its owner calls it.
    pub name: Option<String>,
    /// What it is good for.
    #[serde(default, deserialize_with = "list::<_, _, MAX_LISTED>")]
    pub scopes: Vec<String>,
    /// When it was made.
    pub created_at: Option<String>,
    /// When it ends.
    pub expires_at: Option<String>,
    /// When it was used last.
    pub last_used_at: Option<String>,
}

/// A token with its text, which is shown this once.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MadeToken {
    /// What is known of it later.
    #[serde(flatten)]
    pub info: TokenInfo,
    /// Its text.
    pub token: String,
}

impl fmt::Debug for MadeToken {
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

/// What somebody may do in a namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TeamRole {
    /// Publish, yank and deprecate.
    #[default]
    Publisher,
    /// Members and keys, too.
    Owner,
}

impl TeamRole {
    /// The word for it.
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
    /// The address of the account; only those who may know it are told.
    pub email: Option<String>,
    /// The number of the account.
    #[serde(default, alias = "id")]
    pub user_id: Option<i64>,
    /// `publisher` or `owner`.
    #[serde(default)]
    pub role: String,
    /// Since when.
    pub added_at: Option<String>,
}

/// The members of a namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Members {
    /// The members.
    #[serde(alias = "members", deserialize_with = "list::<_, _, MAX_VERSIONS>")]
    pub items: Vec<Member>,
}

/// Somebody who becomes a member, or gets another role.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewMember {
    /// The address of the account.
    pub email: String,
    /// What they may do.
    #[serde(default)]
    pub role: TeamRole,
}

/// A key that signs for a namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyInfo {
    /// Identifies it.
    pub key_id: String,
    /// Its public half, as `signature.json` has it or as OpenSSH writes it.
    pub public_key: String,
    /// What its owners call it.
    pub label: Option<String>,
    /// When it was registered.
    pub added_at: Option<String>,
    /// When it was revoked.
    pub revoked_at: Option<String>,
    /// Why.
    #[serde(default, alias = "revoked_why", alias = "reason")]
    pub revoked_reason: Option<String>,
}

/// The keys of a namespace, those too that are revoked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keys {
    /// The keys.
    #[serde(alias = "keys", deserialize_with = "list::<_, _, MAX_VERSIONS>")]
    pub items: Vec<KeyInfo>,
}

/// A key that is to sign for a namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewKey {
    /// Its public half.
    pub public_key: String,
    /// What its owners call it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The address of the auditor who uses it; of no other key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    /// A signature that shows that one has it: [`crate::trust::possession`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<String>,
}

/// A key that signs no more. What it signed loses that signature.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevokedKey {
    /// Identifies it.
    pub key_id: String,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A signature of a version that was published.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NewSignature {
    /// For whom the key signs: `publisher` or `auditor`.
    pub signer: String,
    /// The record, as `signature.json` has it.
    pub record: Value,
}

/// The signatures that a registry has of a version.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Signatures {
    /// The oldest first.
    #[serde(default, deserialize_with = "list::<_, _, MAX_LISTED>")]
    pub items: Vec<PublishedSignature>,
}

/// A signature that a registry has of a version.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PublishedSignature {
    /// What identifies the key.
    #[serde(default)]
    pub key_id: String,
    /// `active`, `unknown` or `revoked`, as the registry sees the key.
    #[serde(default)]
    pub state: String,
    /// The record, as `signature.json` has it. Of a signature that the archive brings, the list of
    /// files is left out.
    #[serde(default)]
    pub record: Value,
}

impl Signatures {
    /// The records that are not in the archive already. What the registry revoked is left out.
    pub fn added(&self) -> Vec<Value> {
        let added = self.items.iter().filter(|one| one.state != "revoked");
        added.map(|one| &one.record).filter(|record| record["files"].is_object()).cloned().collect()
    }
}

/// Something that somebody did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogEntry {
    /// Its number.
    #[serde(default)]
    pub seq: u64,
    /// What was done, in one word.
    #[serde(default)]
    pub act: String,
    /// When.
    #[serde(default, alias = "done_at")]
    pub at: Option<String>,
    /// Whose account did it: an address or a number; none for who runs the registry.
    #[serde(default, alias = "account", alias = "email")]
    pub actor: Value,
    /// To which namespace.
    #[serde(default, alias = "holding")]
    pub namespace: Option<String>,
    /// To which skill.
    #[serde(default, alias = "package")]
    pub name: Option<String>,
    /// To which version.
    pub version: Option<String>,
    /// What else there is to know.
    #[serde(default)]
    pub details: Value,
}

/// Some of what was done, newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Log {
    /// What was done.
    #[serde(alias = "entries", deserialize_with = "list::<_, _, MAX_PAGE>")]
    pub items: Vec<LogEntry>,
    /// Where older ones begin; nothing at the end.
    pub next_cursor: Option<String>,
}

/// Which entries of the log are wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogQuery {
    /// Those of one namespace, or of a skill with a team of its own as `_/name`.
    pub namespace: Option<String>,
    /// Those of one skill.
    pub package: Option<String>,
    /// What was done, in the words of the log; everything if there are none.
    pub acts: Vec<String>,
    /// Where the last page ended.
    pub cursor: Option<String>,
    /// How many at once.
    pub per_page: Option<u32>,
}

/// Why a verdict is wrong, for who decides about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Appeal {
    /// What is said to them.
    pub message: String,
    /// The archive, if it was refused: its digest in hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

/// A request to audit a version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditRequest {
    /// What an auditor should know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// Why an archive may be published although a scan blocks it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clearance {
    /// What who reads the log is told.
    pub reason: String,
    /// The skill that may have it; else the one for which somebody appealed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package: Option<String>,
}

/// What was cleared; older registries do not tell.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cleared {
    /// The only skill that it may be published as.
    pub name: Option<String>,
}

/// What an administrator makes of a version, whatever a scan found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Judgement {
    /// `allow`, `review` or `block`.
    pub verdict: String,
    /// What who reads the log is told.
    pub reason: String,
}

/// What a version is after something was done to it, as far as the registry tells.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    /// How far the registry trusts it now.
    #[serde(default, deserialize_with = "lenient_tier")]
    pub security_tier: Tier,
    /// What a scan found.
    pub audit: Option<Audit>,
    /// Other versions with the same content, as `name@version`, if it was taken down.
    #[serde(default)]
    pub same_content: Vec<String>,
}

/// Why a version is taken away for good.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TakeDown {
    /// What everybody is told who has it.
    pub why: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_json_is_parsed() {
        let made: MadeToken = serde_json::from_str(
            r#"{"id":"t1","name":"savoir on desk","scopes":["registry:read"],"token":"sv_x",
               "created_at":"2026-01-01T00:00:00Z","expires_at":null,"later":1}"#,
        )
        .unwrap();
        assert_eq!((made.info.id.as_str(), made.token.as_str()), ("t1", "sv_x"));
        assert!(!format!("{made:?}").contains("sv_x"));
        let wanted =
            WantedToken { name: "a".into(), scopes: vec!["b".into()], expires_in_days: None };
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
