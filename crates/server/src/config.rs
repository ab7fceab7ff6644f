//! Configuration of the server.

use std::{path::PathBuf, time::Duration};

use savoir_engine::{services::TimeLimits, workflow::HttpPolicy};
use savoir_store::Quotas;

use crate::tool_runner::ToolRunner;

/// How a server is set up. The default suits one person on one machine.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where people reach it, without a slash at the end: `http://127.0.0.1:7878`.
    pub public_url: String,
    /// Who may make an account.
    pub registration: Registration,
    /// The address whose account is an administrator.
    pub admin_email: Option<String>,
    /// How often one person may ask.
    pub limits: RateLimits,
    /// How much one account may keep.
    pub quotas: Quotas,
    /// Pages of other origins that may use the API.
    pub cors_origins: Vec<String>,
    /// Whether a proxy in front tells the address of the client in `X-Forwarded-For`.
    pub behind_proxy: bool,
    /// Which servers workflows may ask, once an administrator has switched that on.
    pub workflow_http: HttpPolicy,
    /// How long runs may take.
    pub time_limits: TimeLimits,
    /// How often a stream shows that it lives.
    pub heartbeat: Duration,
    /// How long streams may go on when the server is told to stop.
    pub grace: Duration,
    /// How the registry is set up.
    pub registry: RegistryConfig,
    /// From where people may take skills.
    pub catalog: CatalogConfig,
    /// Folders with integrations, whose skills are kept from each start on.
    pub integrations: Vec<PathBuf>,
    /// Whether the model of a conversation finds and follows skills by itself.
    pub chat_tools: bool,
    /// Where tools of skills run for agents, if they may.
    pub skill_tools: Option<ToolRunner>,
}

/// From where people may take skills.
#[derive(Clone, Debug)]
pub struct CatalogConfig {
    /// Addresses of repositories, or of all below them, that may be asked besides those on GitHub:
    /// `https://git.example.org/team/`, `/srv/skills`.
    pub allow: Vec<String>,
    /// Where repositories are kept; a folder that is gone afterwards if nothing is said.
    pub cache: Option<PathBuf>,
    /// How long one repository is waited for.
    pub patience: Duration,
}

impl Default for CatalogConfig {
    fn default() -> Self {
        Self { allow: Vec::new(), cache: None, patience: Duration::from_secs(20) }
    }
}

/// How a registry is set up.
#[derive(Clone, Debug, Default)]
pub struct RegistryConfig {
    /// Who may read what was published.
    pub readers: Readers,
    /// The folder for the index of words; one that is gone afterwards if nothing is said.
    pub search_folder: Option<PathBuf>,
    /// What is asked about a package before it is published.
    pub vetting: savoir_registry::vetting::Options,
    /// Whether those who download are sent to the storage itself, if it can be asked by everybody.
    pub redirect: bool,
}

/// Who may read what was published.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Readers {
    /// Everyone who reaches the server.
    #[default]
    Everyone,
    /// Those who have an account.
    Accounts,
}

/// Who may make an account by themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Registration {
    /// Those on the same machine, not through a proxy.
    Local,
    /// Everyone who reaches the server.
    Open,
    /// Nobody.
    Closed,
}

/// Requests in a minute; 0 is no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimits {
    /// Of one person, for each of the routes that ask a model.
    pub runs: u32,
    /// Of one person, for each other route.
    pub routes: u32,
    /// Of one person, for all routes together, and at the door for agents.
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
            limits: RateLimits::default(),
            quotas: Quotas::default(),
            cors_origins: vec!["http://localhost:5173".to_owned()],
            behind_proxy: false,
            workflow_http: HttpPolicy::default(),
            time_limits: TimeLimits::default(),
            heartbeat: Duration::from_secs(15),
            grace: Duration::from_secs(20),
            registry: RegistryConfig::default(),
            catalog: CatalogConfig::default(),
            integrations: Vec::new(),
            chat_tools: false,
            skill_tools: None,
        }
    }
}
