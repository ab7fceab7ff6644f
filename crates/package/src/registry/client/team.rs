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
        Appeal, Attestations, AuditRequest, Clearance, Cleared, Judged, Judgement, KeyInfo, Keys,
        Log, LogQuery, Member, Members, NewAttestation, NewKey, NewMember, NewSignature,
        PublishedAttestation, RevokedKey, Signatures, TakeDown,
    },
};

/// The path of the auditors' keys.
const AUDITORS: &str = "api/v1/auditors/keys";

impl Client {
    /// Returns the members of a namespace.
    pub async fn members(&self, namespace: &str) -> Result<Vec<Member>, RegistryError> {
        let url = self.namespace_url(namespace, "members")?;
        let found: Option<Members> = self.get(url).await?;
        Ok(found.ok_or_else(|| unknown_namespace(self, namespace))?.items)
    }

    /// Adds a member, or changes the role of one.
    pub async fn add_member(
        &self,
        namespace: &str,
        member: &NewMember,
    ) -> Result<(), RegistryError> {
        let url = self.namespace_url(namespace, "members")?;
        self.ask(RegistryRequest::post(url, JSON, to_json(member)?)).await.map(drop)
    }

    pub async fn remove_member(&self, namespace: &str, email: &str) -> Result<(), RegistryError> {
        let url = append_path(self.namespace_url(namespace, "members")?, email);
        self.ask(RegistryRequest::delete(url)).await.map(drop)
    }

    /// Returns the keys of a namespace.
    pub async fn keys(&self, namespace: &str) -> Result<Vec<KeyInfo>, RegistryError> {
        let url = self.namespace_url(namespace, "keys")?;
        let found: Option<Keys> = self.get(url).await?;
        Ok(found.ok_or_else(|| unknown_namespace(self, namespace))?.items)
    }

    /// Returns the keys of a skill without namespace.
    pub async fn keys_of(&self, name: &Name) -> Result<Vec<KeyInfo>, RegistryError> {
        let url = self.url(&format!("api/v1/skills/{name}/keys"))?;
        let found: Option<Keys> = self.get(url).await?;
        Ok(found.map(|found| found.items).unwrap_or_default())
    }

    /// Registers a key for a namespace.
    pub async fn add_key(&self, namespace: &str, key: &NewKey) -> Result<(), RegistryError> {
        let url = self.namespace_url(namespace, "keys")?;
        self.ask(RegistryRequest::post(url, JSON, to_json(key)?)).await.map(drop)
    }

    /// Revokes a key. The versions that it signed lose this signature.
    pub async fn revoke_key(&self, namespace: &str, key: &RevokedKey) -> Result<(), RegistryError> {
        self.revoke(self.namespace_url(namespace, "keys")?, key).await
    }

    /// Returns the keys of the auditors, who countersign reviewed versions.
    pub async fn auditor_keys(&self) -> Result<Vec<KeyInfo>, RegistryError> {
        let found: Keys = self.get_required(self.url(AUDITORS)?).await?;
        Ok(found.items)
    }

    /// Registers an auditor's key. For administrators.
    pub async fn add_auditor_key(&self, key: &NewKey) -> Result<(), RegistryError> {
        self.ask(RegistryRequest::post(self.url(AUDITORS)?, JSON, to_json(key)?)).await.map(drop)
    }

    /// Revokes an auditor's key. For administrators.
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

    /// Returns a page of the audit log, newest entries first.
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

    /// Returns the signatures of a version. A registry of static files may have none.
    pub async fn signatures(
        &self,
        name: &Name,
        version: &Version,
    ) -> Result<Signatures, RegistryError> {
        let url = self.version_url(name, version, "signatures")?;
        let found: Option<Signatures> = self.get(url).await?;
        Ok(found.unwrap_or_default())
    }

    /// Publishes a signed evaluation of a version. The signature counts, not the account.
    pub async fn add_attestation(
        &self,
        name: &Name,
        version: &Version,
        attestation: &NewAttestation,
    ) -> Result<PublishedAttestation, RegistryError> {
        let url = self.version_url(name, version, "attestations")?;
        self.post(url, JSON, to_json(attestation)?).await
    }

    /// The signed evaluations of a version, those of some keys first. Older registries and those of
    /// files alone need not have any.
    pub async fn attestations(
        &self,
        name: &Name,
        version: &Version,
        keys: &[String],
    ) -> Result<Attestations, RegistryError> {
        let mut url = self.version_url(name, version, "attestations")?;
        if !keys.is_empty() {
            url.query_pairs_mut().extend_pairs(keys.iter().map(|key| ("key", key)));
        }
        let found: Option<Attestations> = self.get(url).await?;
        Ok(found.unwrap_or_default())
    }

    /// Scans a version again.
    pub async fn rescan(&self, name: &Name, version: &Version) -> Result<Judged, RegistryError> {
        let url = self.version_url(name, version, "rescan")?;
        self.judge(RegistryRequest::post(url, JSON, b"{}".to_vec())).await
    }

    /// Appeals against a scan result.
    pub async fn appeal(
        &self,
        name: &Name,
        version: &Version,
        appeal: &Appeal,
    ) -> Result<(), RegistryError> {
        let url = self.version_url(name, version, "appeal")?;
        self.ask(RegistryRequest::post(url, JSON, to_json(appeal)?)).await.map(drop)
    }

    /// Asks the auditors to review a version, which can make it verified.
    pub async fn request_audit(
        &self,
        name: &Name,
        version: &Version,
        request: &AuditRequest,
    ) -> Result<(), RegistryError> {
        let url = self.version_url(name, version, "audit-request")?;
        self.ask(RegistryRequest::post(url, JSON, to_json(request)?)).await.map(drop)
    }

    /// Sets the verdict of a version, overriding the scan. For administrators.
    pub async fn judge_version(
        &self,
        name: &Name,
        version: &Version,
        judgement: &Judgement,
    ) -> Result<Judged, RegistryError> {
        let url = self.version_url(name, version, "verdict")?;
        self.judge(RegistryRequest::put(url, JSON, to_json(judgement)?)).await
    }

    /// Withdraws a version permanently. For administrators.
    pub async fn take_down(
        &self,
        name: &Name,
        version: &Version,
        take_down: &TakeDown,
    ) -> Result<Judged, RegistryError> {
        let url = self.version_url(name, version, "withdraw")?;
        self.judge(RegistryRequest::post(url, JSON, to_json(take_down)?)).await
    }

    /// Allows an archive to be published although a scan blocks it. For administrators.
    pub async fn clear(
        &self,
        sha256: &str,
        clearance: &Clearance,
    ) -> Result<Cleared, RegistryError> {
        let url = append_path(self.url("api/v1/clearances")?, sha256);
        self.judge(RegistryRequest::put(url, JSON, to_json(clearance)?)).await
    }

    /// Revokes that for one skill or for all. Published versions stay.
    pub async fn unclear(&self, sha256: &str, skill: Option<&Name>) -> Result<(), RegistryError> {
        let mut url = append_path(self.url("api/v1/clearances")?, sha256);
        if let Some(name) = skill {
            url.query_pairs_mut().append_pair("package", &name.to_string());
        }
        self.ask(RegistryRequest::delete(url)).await.map(drop)
    }

    /// Sends a change; the response may be empty.
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

    /// Returns a URL of a namespace. A skill without namespace is `_/name`.
    fn namespace_url(&self, namespace: &str, what: &str) -> Result<Url, RegistryError> {
        if let Some(name) = namespace.strip_prefix("_/").filter(|name| is_namespace(name)) {
            return self.url(&format!("api/v1/skills/{name}/{what}"));
        }
        if !is_namespace(namespace) {
            // Parsing it as a name gives the more helpful error if it is not valid.
            Name::parse(namespace)?;
            return Err(RegistryError::NoNamespace {
                namespace: namespace.to_owned(),
                registry: self.address(),
            });
        }
        self.url(&format!("api/v1/namespaces/{namespace}/{what}"))
    }
}

/// Appends a name to a URL as one path component.
fn append_path(mut url: Url, name: &str) -> Url {
    if let Ok(mut parts) = url.path_segments_mut() {
        parts.push(name);
    }
    url
}

fn unknown_namespace(client: &Client, namespace: &str) -> RegistryError {
    RegistryError::NoNamespace { namespace: namespace.to_owned(), registry: client.address() }
}
