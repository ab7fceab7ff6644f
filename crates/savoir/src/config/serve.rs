//! Settings of `savoir serve`, and of commands that use its data.

use std::{env, fmt, path::PathBuf, str::FromStr};

use clap::ValueEnum;
use savoir_server::RateLimits;
use savoir_store::Quotas;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{parse_bool, split_list};
use crate::error::CommandError;

/// Default address of the server.
pub(crate) const DEFAULT_ADDRESS: &str = "127.0.0.1:7878";

/// Default number of seconds that open streams may continue after a request to stop.
pub(crate) const DEFAULT_GRACE_SECONDS: u64 = 20;

/// Default number of days after which finished runs are deleted.
pub(crate) const DEFAULT_KEEP_RUNS_DAYS: u64 = 30;

/// Settings of one layer: a file, the environment, or the command line.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct ServeLayer {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) address: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) data: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) database: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) storage: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) public_url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) registration: Option<Registration>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) admin_email: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) oidc_issuer: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) oidc_client_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) oidc_client_secret: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) oidc_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) oidc_trust_email: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cors_origins: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) behind_proxy: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rate_limit: Option<RateLimit>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) quota: Option<Quota>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) grace: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) keep_runs: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) log: Option<LogFormat>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) log_level: Option<LogLevel>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) workflow_hosts: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) workflow_private: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) registry_readers: Option<Readers>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) registry_redirect: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) registry_audit: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) registry_detonation: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) catalog_allow: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) chat_tools: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) integrations: Option<Vec<PathBuf>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) skill_tools: Option<bool>,
}

/// Who may read published skills.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Readers {
    /// Anyone who can reach the server
    #[default]
    Everyone,
    /// Users with an account
    Accounts,
}

impl From<Readers> for savoir_server::Readers {
    fn from(readers: Readers) -> Self {
        match readers {
            Readers::Everyone => Self::Everyone,
            Readers::Accounts => Self::Accounts,
        }
    }
}

/// Who may register an account.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Registration {
    /// Users on the same machine
    Local,
    /// Anyone who can reach the server
    Open,
    /// Nobody
    Closed,
}

impl From<Registration> for savoir_server::Registration {
    fn from(registration: Registration) -> Self {
        match registration {
            Registration::Local => Self::Local,
            Registration::Open => Self::Open,
            Registration::Closed => Self::Closed,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum LogFormat {
    /// Plain text
    #[default]
    Text,
    /// One JSON object per line
    Json,
}

/// Minimum level of log messages.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum LogLevel {
    Error,
    Warn,
    #[default]
    Info,
    Debug,
    Trace,
}

impl LogLevel {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }
}

/// `runs=10,routes=60,all=1000`, or `off`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct RateLimit(pub(crate) RateLimits);

impl FromStr for RateLimit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.trim() == "off" {
            return Ok(Self(RateLimits { runs: 0, routes: 0, all: 0 }));
        }
        let mut limits = RateLimits::default();
        for part in text.split(',').map(str::trim) {
            let wrong = || {
                format!(
                    "`{part}` is not a rate limit; write runs=10,routes=60,all=1000 (per minute) \
                     or off"
                )
            };
            let (name, number) = part.split_once('=').ok_or_else(wrong)?;
            let number = number.trim().parse().map_err(|_| wrong())?;
            match name.trim() {
                "runs" => limits.runs = number,
                "routes" => limits.routes = number,
                "all" => limits.all = number,
                _ => return Err(wrong()),
            }
        }
        Ok(Self(limits))
    }
}

impl TryFrom<String> for RateLimit {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<RateLimit> for String {
    fn from(limit: RateLimit) -> Self {
        limit.to_string()
    }
}

impl fmt::Display for RateLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            RateLimits { runs: 0, routes: 0, all: 0 } => f.write_str("off"),
            RateLimits { runs, routes, all } => write!(f, "runs={runs},routes={routes},all={all}"),
        }
    }
}

/// `skills=2000,documents=20000,versions=20000,bytes=20G`, or `off`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct Quota(pub(crate) Quotas);

/// Suffixes of a number of bytes.
const BINARY_UNITS: [(char, u64); 4] =
    [('T', 1 << 40), ('G', 1 << 30), ('M', 1 << 20), ('K', 1 << 10)];

impl FromStr for Quota {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.trim() == "off" {
            return Ok(Self(Quotas::NONE));
        }
        let mut quotas = Quotas::default();
        for part in text.split(',').map(str::trim) {
            let wrong = || {
                format!(
                    "`{part}` is not a quota; write {} (0 means no limit) or off",
                    Self(Quotas::default())
                )
            };
            let (name, number) = part.split_once('=').ok_or_else(wrong)?;
            let number = parse_count(number.trim()).ok_or_else(wrong)?;
            match name.trim() {
                "skills" => quotas.skills = number,
                "documents" => quotas.documents = number,
                "versions" => quotas.versions = number,
                "bytes" => quotas.bytes = number,
                _ => return Err(wrong()),
            }
        }
        Ok(Self(quotas))
    }
}

/// `20000` or `20G`.
fn parse_count(text: &str) -> Option<u64> {
    let unit = BINARY_UNITS.iter().find(|(unit, _)| text.ends_with(*unit));
    let digits = unit.map_or(text, |(unit, _)| text.trim_end_matches(*unit));
    digits.parse::<u64>().ok()?.checked_mul(unit.map_or(1, |(_, factor)| *factor))
}

impl TryFrom<String> for Quota {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Quota> for String {
    fn from(quota: Quota) -> Self {
        quota.to_string()
    }
}

impl fmt::Display for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Quotas { skills, documents, versions, bytes } = self.0;
        if self.0 == Quotas::NONE {
            return f.write_str("off");
        }
        let divides_evenly = |(_, factor): &&(char, u64)| bytes > 0 && bytes % factor == 0;
        let bytes = match BINARY_UNITS.iter().find(divides_evenly) {
            Some((unit, factor)) => format!("{}{unit}", bytes / factor),
            None => bytes.to_string(),
        };
        write!(f, "skills={skills},documents={documents},versions={versions},bytes={bytes}")
    }
}

impl ServeLayer {
    /// Every setting with its default. Environment variables are `SAVOIR_` and the name in capitals.
    pub(crate) fn defaults() -> [(&'static str, Value); 30] {
        [
            ("address", json!(DEFAULT_ADDRESS)),
            ("admin-email", Value::Null),
            ("behind-proxy", json!(false)),
            ("catalog-allow", Value::Null),
            ("chat-tools", json!(false)),
            ("cors-origins", json!(savoir_server::Config::default().cors_origins)),
            ("data", Value::Null),
            ("database", Value::Null),
            ("grace", json!(DEFAULT_GRACE_SECONDS)),
            ("integrations", Value::Null),
            ("keep-runs", json!(DEFAULT_KEEP_RUNS_DAYS)),
            ("log", json!(LogFormat::default())),
            ("log-level", json!(LogLevel::default())),
            ("oidc-client-id", Value::Null),
            ("oidc-client-secret", Value::Null),
            ("oidc-issuer", Value::Null),
            ("oidc-name", Value::Null),
            ("oidc-trust-email", json!(false)),
            ("public-url", Value::Null),
            ("quota", json!(Quota(Quotas::default()))),
            ("rate-limit", json!(RateLimit(RateLimits::default()))),
            ("registration", json!(Registration::Local)),
            ("registry-audit", Value::Null),
            ("registry-detonation", json!(true)),
            ("registry-readers", json!(Readers::default())),
            ("registry-redirect", json!(false)),
            ("skill-tools", json!(false)),
            ("storage", Value::Null),
            ("workflow-hosts", Value::Null),
            ("workflow-private", json!(false)),
        ]
    }

    /// The settings of the environment, one layer per variable.
    pub(crate) fn environment() -> Result<Vec<(String, Self)>, CommandError> {
        let mut layers = Vec::new();
        for (setting, _) in Self::defaults() {
            let name = format!("SAVOIR_{}", setting.to_uppercase().replace('-', "_"));
            let Some(value) = env::var_os(&name).filter(|value| !value.is_empty()) else {
                continue;
            };
            let value = value.into_string().map_err(|_| {
                CommandError::input(format!("{name} is not UTF-8")).hint("set it to UTF-8 text")
            })?;
            let layer = Self::from_variable(setting, &name, value)?;
            layers.push((name, layer));
        }
        Ok(layers)
    }

    fn from_variable(setting: &str, name: &str, value: String) -> Result<Self, CommandError> {
        let mut layer = Self::default();
        let wrong = |problem: String| CommandError::input(format!("{name}: {problem}"));
        match setting {
            "address" => layer.address = Some(value),
            "admin-email" => layer.admin_email = Some(value),
            "behind-proxy" => layer.behind_proxy = Some(parse_bool(name, &value)?),
            "catalog-allow" => layer.catalog_allow = Some(split_list(&value)),
            "chat-tools" => layer.chat_tools = Some(parse_bool(name, &value)?),
            "cors-origins" => layer.cors_origins = Some(split_list(&value)),
            "integrations" => {
                layer.integrations = Some(split_list(&value).into_iter().map(Into::into).collect());
            }
            "data" => layer.data = Some(value.into()),
            "database" => layer.database = Some(value),
            "grace" => {
                let seconds = value.parse();
                let problem = |_| wrong(format!("`{value}` is not a number of seconds"));
                layer.grace = Some(seconds.map_err(problem)?);
            }
            "keep-runs" => {
                let days = value.parse();
                let problem = |_| wrong(format!("`{value}` is not a number of days"));
                layer.keep_runs = Some(days.map_err(problem)?);
            }
            "log" => layer.log = Some(LogFormat::from_str(&value, false).map_err(wrong)?),
            "log-level" => {
                layer.log_level = Some(LogLevel::from_str(&value, false).map_err(wrong)?);
            }
            "oidc-client-id" => layer.oidc_client_id = Some(value),
            "oidc-client-secret" => layer.oidc_client_secret = Some(value),
            "oidc-issuer" => layer.oidc_issuer = Some(value),
            "oidc-name" => layer.oidc_name = Some(value),
            "oidc-trust-email" => layer.oidc_trust_email = Some(parse_bool(name, &value)?),
            "public-url" => layer.public_url = Some(value),
            "quota" => layer.quota = Some(value.parse().map_err(wrong)?),
            "rate-limit" => layer.rate_limit = Some(value.parse().map_err(wrong)?),
            "registration" => {
                layer.registration = Some(Registration::from_str(&value, false).map_err(wrong)?);
            }
            "registry-audit" => layer.registry_audit = Some(value),
            "registry-detonation" => layer.registry_detonation = Some(parse_bool(name, &value)?),
            "registry-readers" => {
                layer.registry_readers = Some(Readers::from_str(&value, false).map_err(wrong)?);
            }
            "registry-redirect" => layer.registry_redirect = Some(parse_bool(name, &value)?),
            "skill-tools" => layer.skill_tools = Some(parse_bool(name, &value)?),
            "workflow-hosts" => layer.workflow_hosts = Some(split_list(&value)),
            "workflow-private" => layer.workflow_private = Some(parse_bool(name, &value)?),
            "storage" => layer.storage = Some(value),
            _ => return Err(wrong(format!("`{setting}` cannot be set by a variable"))),
        }
        Ok(layer)
    }

    /// Merges two layers; the values of this layer take precedence.
    #[must_use]
    pub(crate) fn merge_over(self, below: Self) -> Self {
        Self {
            address: self.address.or(below.address),
            data: self.data.or(below.data),
            database: self.database.or(below.database),
            storage: self.storage.or(below.storage),
            public_url: self.public_url.or(below.public_url),
            registration: self.registration.or(below.registration),
            admin_email: self.admin_email.or(below.admin_email),
            oidc_issuer: self.oidc_issuer.or(below.oidc_issuer),
            oidc_client_id: self.oidc_client_id.or(below.oidc_client_id),
            oidc_client_secret: self.oidc_client_secret.or(below.oidc_client_secret),
            oidc_name: self.oidc_name.or(below.oidc_name),
            oidc_trust_email: self.oidc_trust_email.or(below.oidc_trust_email),
            cors_origins: self.cors_origins.or(below.cors_origins),
            behind_proxy: self.behind_proxy.or(below.behind_proxy),
            rate_limit: self.rate_limit.or(below.rate_limit),
            quota: self.quota.or(below.quota),
            grace: self.grace.or(below.grace),
            keep_runs: self.keep_runs.or(below.keep_runs),
            log: self.log.or(below.log),
            log_level: self.log_level.or(below.log_level),
            workflow_hosts: self.workflow_hosts.or(below.workflow_hosts),
            workflow_private: self.workflow_private.or(below.workflow_private),
            registry_readers: self.registry_readers.or(below.registry_readers),
            registry_redirect: self.registry_redirect.or(below.registry_redirect),
            registry_audit: self.registry_audit.or(below.registry_audit),
            registry_detonation: self.registry_detonation.or(below.registry_detonation),
            catalog_allow: self.catalog_allow.or(below.catalog_allow),
            chat_tools: self.chat_tools.or(below.chat_tools),
            integrations: self.integrations.or(below.integrations),
            skill_tools: self.skill_tools.or(below.skill_tools),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quota_and_rate_limit_round_trip() {
        for text in ["skills=5,documents=20000,versions=20000,bytes=20G", "off"] {
            assert_eq!(text.parse::<Quota>().unwrap().to_string(), text);
        }
        let quota: Quota = "bytes=1536K, versions=0".parse().unwrap();
        assert_eq!((quota.0.bytes, quota.0.versions, quota.0.skills), (1536 << 10, 0, 2000));
        for wrong in ["", "bytes", "bytes=x", "bytes=99999999999T", "rows=1"] {
            assert!(wrong.parse::<Quota>().unwrap_err().contains("is not a quota"), "{wrong}");
        }
        let default = RateLimit(RateLimits::default());
        assert_eq!(default.to_string().parse(), Ok(default));
        assert_eq!("off".parse::<RateLimit>().unwrap().to_string(), "off");
        assert_eq!("runs=3".parse::<RateLimit>().unwrap().to_string(), "runs=3,routes=60,all=1000");
        for wrong in ["", "runs", "runs=x", "walks=3", "runs=-1"] {
            assert!(wrong.parse::<RateLimit>().is_err(), "{wrong}");
        }
    }
}
