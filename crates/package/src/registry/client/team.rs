//! Management of members, keys, signatures, scans and the audit log.

use semver::Version;
use serde::de::DeserializeOwned;
use url::Url;

use super::{
    Client, RegistryError,
    api::{JSON, to_json},
    json,
};
use crate::registry::{
    Name,
    http::{RegistryRequest, RegistryResponse},
    is_namespace,
    wire::{
        Appeal, AuditRequest, Clearance, Cleared, Judged, Judgement, KeyInfo, Keys, Log, LogQuery,
        Member, Members, NewKey, NewMember, NewSignature, RevokedKey, Signatures, TakeDown,
    },
};

/// Where the keys of the auditors are.
const AUDITORS: &str = "api/v1/auditors/keys";

impl Client {
    /// Who belongs to a namespace.
    pub async fn members(&self, namespace: &str) -> Result<Vec<Member>, RegistryError> {
        let url = self.namespace_url(namespace, "members")?;
        let found: Option<Members> = self.get(url).await?;
        Ok(found.ok_or_else(|| unknown_namespace(self, namespace))?.items)
    }

    /// Makes somebody a member, or gives them another role.
    pub async fn add_member(
        &self,
        namespace: &str,
        member: &NewMember,
    ) -> Result<(), RegistryError> {
        let url = self.namespace_url(namespace, "members")?;
        self.ask(RegistryRequest::post(url, JSON, to_json(member)?)).await.map(drop)
    }

    /// Somebody is a member no more.
    pub async fn remove_member(&self, namespace: &str, email: &str) -> Result<(), RegistryError> {
        let url = append_path(self.namespace_url(namespace, "members")?, email);
        self.ask(RegistryRequest::delete(url)).await.map(drop)
    }

    /// The keys that sign for a namespace.
    pub async fn keys(&self, namespace: &str) -> Result<Vec<KeyInfo>, RegistryError> {
        let url = self.namespace_url(namespace, "keys")?;
        let found: Option<Keys> = self.get(url).await?;
        Ok(found.ok_or_else(|| unknown_namespace(self, namespace))?.items)
    }

    /// The keys that sign for a skill that stands alone.
    pub async fn keys_of(&self, name: &Name) -> Result<Vec<KeyInfo>, RegistryError> {
        let url = self.url(&format!("api/v1/skills/{name}/keys"))?;
        let found: Option<Keys> = self.get(url).await?;
        Ok(found.map(|found| found.items).unwrap_or_default())
    }

    /// Lets a key sign for a namespace.
    pub async fn add_key(&self, namespace: &str, key: &NewKey) -> Result<(), RegistryError> {
        let url = self.namespace_url(namespace, "keys")?;
        self.ask(RegistryRequest::post(url, JSON, to_json(key)?)).await.map(drop)
    }

    /// A key signs no more, and what it signed loses that signature.
    pub async fn revoke_key(&self, namespace: &str, key: &RevokedKey) -> Result<(), RegistryError> {
        self.revoke(self.namespace_url(namespace, "keys")?, key).await
    }

    /// The keys of the auditors, who countersign whatever they looked at.
    pub async fn auditor_keys(&self) -> Result<Vec<KeyInfo>, RegistryError> {
        let found: Keys = self.get_required(self.url(AUDITORS)?).await?;
        Ok(found.items)
    }

    /// Lets an auditor's key countersign. For administrators.
    pub async fn add_auditor_key(&self, key: &NewKey) -> Result<(), RegistryError> {
        self.ask(RegistryRequest::post(self.url(AUDITORS)?, JSON, to_json(key)?)).await.map(drop)
    }

    /// An auditor's key countersigns no more. For administrators.
    pub async fn revoke_auditor_key(&self, key: &RevokedKey) -> Result<(), RegistryError> {
        self.revoke(self.url(AUDITORS)?, key).await
    }

    async fn revoke(&self, keys: Url, key: &RevokedKey) -> Result<(), RegistryError> {
        let mut url = append_path(keys, &key.key_id);
        if let Some(reason) = &key.reason {
            url.query_pairs_mut().append_pair("reason", reason);
        }
        self.ask(RegistryRequest::delete(url)).await.map(drop)
    }

    /// What was done in a registry, newest first, a page at a time.
    pub async fn log(&self, query: &LogQuery) -> Result<Log, RegistryError> {
        let mut url = self.url("api/v1/audit-log")?;
        let LogQuery { namespace, package, acts, cursor, per_page } = query.clone();
        let pairs = [
            ("namespace", namespace),
            ("package", package),
            ("cursor", cursor),
            ("limit", per_page.map(|count| count.to_string())),
        ];
        let given = pairs.into_iter().filter_map(|(key, value)| Some((key, value?)));
        let acts = acts.into_iter().map(|act| ("act", act));
        url.query_pairs_mut().extend_pairs(given.chain(acts));
        self.get_required(url).await
    }

    /// Adds a signature to a version.
    pub async fn add_signature(
        &self,
        name: &Name,
        version: &Version,
        signature: &NewSignature,
    ) -> Result<Judged, RegistryError> {
        let url = self.version_url(name, version, "signatures")?;
        self.judge(RegistryRequest::post(url, JSON, to_json(signature)?)).await
    }

    /// The signatures of a version. A registry of files alone need not have any.
    pub async fn signatures(
        &self,
        name: &Name,
        version: &Version,
    ) -> Result<Signatures, RegistryError> {
        let url = self.version_url(name, version, "signatures")?;
        let found: Option<Signatures> = self.get(url).await?;
        Ok(found.unwrap_or_default())
    }

    /// Scans a version once more.
    pub async fn rescan(&self, name: &Name, version: &Version) -> Result<Judged, RegistryError> {
        let url = self.version_url(name, version, "rescan")?;
        self.judge(RegistryRequest::post(url, JSON, b"{}".to_vec())).await
    }

    /// Asks a person to look at a verdict.
    pub async fn appeal(
        &self,
        name: &Name,
        version: &Version,
        appeal: &Appeal,
    ) -> Result<(), RegistryError> {
        let url = self.version_url(name, version, "appeal")?;
        self.ask(RegistryRequest::post(url, JSON, to_json(appeal)?)).await.map(drop)
    }

    /// Asks the auditors to look at a version, which may make it verified.
    pub async fn request_audit(
        &self,
        name: &Name,
        version: &Version,
        request: &AuditRequest,
    ) -> Result<(), RegistryError> {
        let url = self.version_url(name, version, "audit-request")?;
        self.ask(RegistryRequest::post(url, JSON, to_json(request)?)).await.map(drop)
    }

    /// Decides what becomes of a version, whatever a scan found. For administrators.
    pub async fn judge_version(
        &self,
        name: &Name,
        version: &Version,
        judgement: &Judgement,
    ) -> Result<Judged, RegistryError> {
        let url = self.version_url(name, version, "verdict")?;
        self.judge(RegistryRequest::put(url, JSON, to_json(judgement)?)).await
    }

    /// Takes a version away for good. For administrators.
    pub async fn take_down(
        &self,
        name: &Name,
        version: &Version,
        take_down: &TakeDown,
    ) -> Result<Judged, RegistryError> {
        let url = self.version_url(name, version, "withdraw")?;
        self.judge(RegistryRequest::post(url, JSON, to_json(take_down)?)).await
    }

    /// Lets an archive be published although a scan blocks it. For administrators.
    pub async fn clear(
        &self,
        sha256: &str,
        clearance: &Clearance,
    ) -> Result<Cleared, RegistryError> {
        let url = append_path(self.url("api/v1/clearances")?, sha256);
        self.judge(RegistryRequest::put(url, JSON, to_json(clearance)?)).await
    }

    /// Takes that back, for one skill or for all. What was published stays.
    pub async fn unclear(&self, sha256: &str, skill: Option<&Name>) -> Result<(), RegistryError> {
        let mut url = append_path(self.url("api/v1/clearances")?, sha256);
        if let Some(name) = skill {
            url.query_pairs_mut().append_pair("package", &name.to_string());
        }
        self.ask(RegistryRequest::delete(url)).await.map(drop)
    }

    /// What a registry says afterwards; it need not say anything.
    pub(super) async fn judge<T: DeserializeOwned + Default>(
        &self,
        ask: RegistryRequest,
    ) -> Result<T, RegistryError> {
        let address = self.address();
        match self.ask(ask).await? {
            RegistryResponse::Body(given) if !given.bytes.is_empty() => {
                json(&address, &given.bytes)
            }
            _ => Ok(T::default()),
        }
    }

    fn version_url(
        &self,
        name: &Name,
        version: &Version,
        what: &str,
    ) -> Result<Url, RegistryError> {
        self.url(&format!("api/v1/skills/{name}/{version}/{what}"))
    }

    /// A skill that stands alone is written as `_/name`.
    fn namespace_url(&self, namespace: &str, what: &str) -> Result<Url, RegistryError> {
        if let Some(name) = namespace.strip_prefix("_/").filter(|name| is_namespace(name)) {
            return self.url(&format!("api/v1/skills/{name}/{what}"));
        }
        if !is_namespace(namespace) {
            // It is no name of its own either, and the error of that says what one looks like.
            Name::parse(namespace)?;
            return Err(RegistryError::NoNamespace {
                namespace: namespace.to_owned(),
                registry: self.address(),
            });
        }
        self.url(&format!("api/v1/namespaces/{namespace}/{what}"))
    }
}

/// An address below another, whatever its name holds.
fn append_path(mut url: Url, name: &str) -> Url {
    if let Ok(mut parts) = url.path_segments_mut() {
        parts.push(name);
    }
    url
}

fn unknown_namespace(client: &Client, namespace: &str) -> RegistryError {
    RegistryError::NoNamespace { namespace: namespace.to_owned(), registry: client.address() }
}
