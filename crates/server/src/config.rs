//! Configuration of the server.

use std::{path::PathBuf, time::Duration};

use savoir_flow::{services::TimeLimits, workflow::HttpPolicy};
use savoir_store::Quotas;

use crate::{log_tail::LogTail, oidc::OidcConfig, tool_runner::ToolRunner};

/// Settings of the server. The default is for one user on one machine.
#[derive(Clone, Debug)]
pub struct Config {
    /// The public URL of the server, without a slash at the end: `http://127.0.0.1:7878`.
    pub public_url: String,
    /// Who can create an account.
    pub registration: Registration,
    /// The account with this email address is an administrator.
    pub admin_email: Option<String>,
    /// The provider with which users can log in besides passwords.
    pub oidc: Option<OidcConfig>,
    /// Maximum requests of one user.
    pub limits: RateLimits,
    /// Maximum data of one account.
    pub quotas: Quotas,
    /// Web origins besides our own that may use the API.
    pub cors_origins: Vec<String>,
    /// Whether a proxy in front reports the client address in `X-Forwarded-For`.
    pub behind_proxy: bool,
    /// The servers that workflows may request, once an administrator has enabled HTTP requests.
    pub workflow_http: HttpPolicy,
    /// Maximum duration of runs.
    pub time_limits: TimeLimits,
    /// How often a stream sends a keep-alive.
    pub heartbeat: Duration,
    /// How long the history of runs is kept.
    pub run_retention: Duration,
    /// How long streams may continue after the server is asked to stop.
    pub grace: Duration,
    pub registry: RegistryConfig,
    /// The repositories from which users may import skills.
    pub catalog: CatalogConfig,
    /// Folders with integrations. Their skills are imported at each start.
    pub integrations: Vec<PathBuf>,
    /// Whether the model of a chat can find and use skills by itself.
    pub chat_tools: bool,
    /// Runs tools of skills for agents; `None` if tools must not run on the server.
    pub skill_tools: Option<ToolRunner>,
    /// The newest lines of the log, which administrators can read; `None` if none are kept.
    pub log_tail: Option<LogTail>,
}

/// The repositories from which users may import skills.
#[derive(Clone, Debug)]
pub struct CatalogConfig {
    /// URLs or paths of repositories, or prefixes of them, that are allowed besides GitHub:
    /// `https://git.example.org/team/`, `/srv/skills`.
    pub allow: Vec<String>,
    /// The folder for cloned repositories; `None` uses a temporary folder.
    pub cache: Option<PathBuf>,
    /// Maximum time to fetch one repository.
    pub timeout: Duration,
}

impl Default for CatalogConfig {
    fn default() -> Self {
        Self { allow: Vec::new(), cache: None, timeout: Duration::from_secs(20) }
    }
}

/// Settings of the registry.
#[derive(Clone, Debug, Default)]
pub struct RegistryConfig {
    /// Who can read published skills.
    pub readers: Readers,
    /// The folder of the search index; `None` uses a temporary folder.
    pub search_folder: Option<PathBuf>,
    /// How packages are checked before they are published.
    pub vetting: savoir_registry::vetting::Options,
    /// Whether downloads redirect to the object storage, if the storage supports public URLs.
    pub redirect: bool,
}

/// Who can read published skills.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Readers {
    /// Everyone who can reach the server.
    #[default]
    Everyone,
    /// Users with an account.
    Accounts,
}

/// Who can create an account without an administrator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Registration {
    /// Clients on the same machine, not through a proxy.
    Local,
    /// Everyone who can reach the server.
    Open,
    /// Nobody.
    Closed,
}

impl Registration {
    /// Whether a client may create an account.
    pub(crate) fn allows(self, is_local: bool) -> bool {
        match self {
            Self::Local => is_local,
            Self::Open => true,
            Self::Closed => false,
        }
    }

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Open => "open",
            Self::Closed => "closed",
        }
    }
}

/// Maximum requests in a minute; 0 means unlimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimits {
    /// Per user, for each route that calls a model.
    pub runs: u32,
    /// Per user, for each other route.
    pub routes: u32,
    /// Per user, for all routes together. Also the limit of the MCP route.
    pub all: u32,
}

impl Default for RateLimits {
    fn default() -> Self {
        Self { runs: 10, routes: 60, all: 1000 }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            public_url: "http://127.0.0.1:7878".to_owned(),
            registration: Registration::Local,
            admin_email: None,
            oidc: None,
            limits: RateLimits::default(),
            quotas: Quotas::default(),
            cors_origins: vec!["http://localhost:5173".to_owned()],
            behind_proxy: false,
            workflow_http: HttpPolicy::default(),
            time_limits: TimeLimits::default(),
            heartbeat: Duration::from_secs(15),
            run_retention: Duration::from_hours(30 * 24),
            grace: Duration::from_secs(20),
            registry: RegistryConfig::default(),
            catalog: CatalogConfig::default(),
            integrations: Vec::new(),
            chat_tools: false,
            skill_tools: None,
            log_tail: None,
        }
    }
}
