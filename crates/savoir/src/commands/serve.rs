//! `savoir serve`: serves skills, chat, knowledge, workflows and a registry over HTTP.

mod greeting;
mod log;
mod stop;

use std::{
    io,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use savoir_engine::Home;
use savoir_flow::workflow::HttpPolicy;
use savoir_knowledge::Indexer;
use savoir_model::Models;
use savoir_registry::vetting::{self, Audit, Detonation};
use savoir_server::{
    App, CatalogConfig, Config as ServerConfig, LogTail, OidcConfig, RegistryConfig, ToolRunner,
};
use tokio::net::TcpListener;

use self::{greeting::Greeting, stop::Signals};
use crate::{
    agent_skills::DiskSkillReader,
    config::{
        Config, DEFAULT_ADDRESS, DEFAULT_GRACE_SECONDS, DEFAULT_KEEP_RUNS_DAYS, LogFormat,
        LogLevel, Quota, RateLimit, Readers, Registration, ServeLayer,
    },
    error::CommandError,
    extractor, models, runtime,
    storage_args::{StorageArgs, StorageLocation},
    trust,
};

/// Serve skills, chat, knowledge, workflows and a registry over HTTP
#[derive(Debug, clap::Args)]
#[command(after_help = "\
By default the server listens on this machine only and stores everything in one folder. `savoir
config` lists the settings. Each can be an option, a key in the table [serve] of
~/.config/savoir/config.toml, or an environment variable (SAVOIR_DATABASE for database). Pass
passwords in environment variables: other users can see command lines.

Examples:
  savoir serve
  savoir serve --address 0.0.0.0:80 --public-url https://skills.example.com --behind-proxy
  SAVOIR_DATABASE=postgres://ada:secret@db/savoir savoir serve --storage s3://skills

SIGTERM or Ctrl-C stops the server after running requests end, or after --grace seconds. A second
signal stops it immediately.")]
pub(crate) struct Args {
    /// Address to listen on; port 0 selects a free port [default: 127.0.0.1:7878]
    #[arg(long, value_name = "HOST:PORT")]
    address: Option<String>,
    #[command(flatten)]
    storage: StorageArgs,
    /// Public URL of the server, if it differs from the address
    #[arg(long, value_name = "URL")]
    public_url: Option<String>,
    /// Who may create an account [default: local]
    #[arg(long, value_name = "WHO")]
    registration: Option<Registration>,
    /// Email address of the account that is an administrator
    #[arg(long, value_name = "EMAIL")]
    admin_email: Option<String>,
    /// Origin that may use the API from a browser; may be repeated
    #[arg(long = "cors-origin", value_name = "ORIGIN")]
    cors_origins: Vec<String>,
    /// Read client addresses from X-Forwarded-For, which a reverse proxy sets
    #[arg(long)]
    behind_proxy: bool,
    /// Requests per user and minute: runs=10,routes=60,all=1000, or off
    #[arg(long, value_name = "LIMITS")]
    rate_limit: Option<RateLimit>,
    /// Storage limits per account: skills=2000,documents=20000,versions=20000,bytes=20G, or off
    #[arg(long, value_name = "QUOTAS")]
    quota: Option<Quota>,
    /// Host, with its subdomains, that workflows may call; may be repeated [default: all]
    #[arg(long = "workflow-host", value_name = "HOST")]
    workflow_hosts: Vec<String>,
    /// Let workflows call private addresses, such as those of this machine
    #[arg(long)]
    workflow_private: bool,
    #[command(flatten)]
    oidc: OidcArgs,
    #[command(flatten)]
    personal: PersonalArgs,
    #[command(flatten)]
    registry: RegistryArgs,
    /// How long running requests may continue after a stop signal [default: 20]
    #[arg(long, value_name = "SECONDS")]
    grace: Option<u64>,
    /// How long the history of runs is kept [default: 30]
    #[arg(long, value_name = "DAYS")]
    keep_runs: Option<u64>,
    /// Format of log lines [default: text]
    #[arg(long, value_name = "FORMAT")]
    log: Option<LogFormat>,
    /// Lowest level to log [default: info]
    #[arg(long, value_name = "LEVEL")]
    log_level: Option<LogLevel>,
}

/// Options for the login with an OpenID Connect provider. The secret is a setting without an option,
/// because other users can see command lines.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Login with OpenID Connect")]
struct OidcArgs {
    /// URL of the provider; put the secret into `SAVOIR_OIDC_CLIENT_SECRET`
    #[arg(long = "oidc-issuer", value_name = "URL")]
    issuer: Option<String>,
    /// Id of this server at the provider
    #[arg(long = "oidc-client-id", value_name = "ID")]
    client_id: Option<String>,
    /// Name of the provider on the login page [default: its host]
    #[arg(long = "oidc-name", value_name = "NAME")]
    name: Option<String>,
    /// Accept addresses of which the provider does not say whether they are verified
    #[arg(long = "oidc-trust-email")]
    trust_email: bool,
}

/// Options for catalogs, integrations and tools.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Skills and tools")]
struct PersonalArgs {
    /// Repository or URL prefix that the catalog may read besides GitHub; may be repeated
    #[arg(long = "catalog-allow", value_name = "URL")]
    catalog_allow: Vec<String>,
    /// Folder with integrations whose skills the server provides; may be repeated
    #[arg(long = "integrations", value_name = "DIR")]
    integrations: Vec<PathBuf>,
    /// Let the model of a conversation find and use skills by itself
    #[arg(long)]
    chat_tools: bool,
    /// Let agents call tools of approved skills; they run on this machine, in the sandbox
    #[arg(long)]
    skill_tools: bool,
}

/// Options of the registry.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Registry")]
struct RegistryArgs {
    /// Who may read the registry [default: everyone]
    #[arg(long, value_name = "WHO")]
    registry_readers: Option<Readers>,
    /// Redirect downloads to the storage; works with S3 only
    #[arg(long)]
    registry_redirect: bool,
    /// Check published packages with pip-audit, which asks the service at this host
    #[arg(long, value_name = "HOST")]
    registry_audit: Option<String>,
    /// Do not test the tools of published packages in a sandbox
    #[arg(long)]
    no_registry_detonation: bool,
}

impl Args {
    fn layer(&self) -> ServeLayer {
        ServeLayer {
            address: self.address.clone(),
            public_url: self.public_url.clone(),
            registration: self.registration,
            admin_email: self.admin_email.clone(),
            oidc_issuer: self.oidc.issuer.clone(),
            oidc_client_id: self.oidc.client_id.clone(),
            oidc_name: self.oidc.name.clone(),
            oidc_trust_email: self.oidc.trust_email.then_some(true),
            cors_origins: Some(self.cors_origins.clone()).filter(|origins| !origins.is_empty()),
            behind_proxy: self.behind_proxy.then_some(true),
            rate_limit: self.rate_limit,
            quota: self.quota,
            grace: self.grace,
            keep_runs: self.keep_runs,
            log: self.log,
            log_level: self.log_level,
            workflow_hosts: Some(self.workflow_hosts.clone()).filter(|hosts| !hosts.is_empty()),
            workflow_private: self.workflow_private.then_some(true),
            catalog_allow: Some(self.personal.catalog_allow.clone()).filter(|all| !all.is_empty()),
            chat_tools: self.personal.chat_tools.then_some(true),
            skill_tools: self.personal.skill_tools.then_some(true),
            integrations: Some(self.personal.integrations.clone()).filter(|all| !all.is_empty()),
            registry_readers: self.registry.registry_readers,
            registry_redirect: self.registry.registry_redirect.then_some(true),
            registry_audit: self.registry.registry_audit.clone(),
            registry_detonation: self.registry.no_registry_detonation.then_some(false),
            ..self.storage.layer()
        }
    }
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    let config = Config::load(Path::new("."))?;
    let settings = args.layer().merge_over(config.serve.clone());
    require_urls(&settings)?;
    let location = StorageLocation::new(&settings, &Home::from_environment()?)?;
    require_folder(&settings, &location)?;
    let models = models::configured_models(&config)?;
    let log = settings.log.unwrap_or_default();
    let log_tail = log::start(log, settings.log_level.unwrap_or_default())?;
    if settings.registry_redirect == Some(true) && location.has_folder() {
        tracing::warn!(
            "--registry-redirect has no effect: archives are stored in a folder, and only S3 \
             supports redirects; use --storage s3://…"
        );
    }
    runtime::block_on(serve(settings, location, models, log_tail))
}

/// Rejects values that are not URLs now, since browsers would only fail later.
fn require_urls(settings: &ServeLayer) -> Result<(), CommandError> {
    let origins = settings.cors_origins.iter().flatten().map(|origin| ("--cors-origin", origin));
    let public = settings.public_url.iter().map(|url| ("--public-url", url));
    for (option, url) in origins.chain(public) {
        let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
        if rest.is_none_or(|rest| rest.is_empty() || rest.contains(char::is_whitespace)) {
            return Err(CommandError::input(format!("{option}: `{url}` is not a URL"))
                .hint("use the form https://skills.example.com"));
        }
    }
    Ok(())
}

/// Tools run from files, because approvals store the digests of files.
fn require_folder(settings: &ServeLayer, location: &StorageLocation) -> Result<(), CommandError> {
    if settings.skill_tools == Some(true) && !location.has_folder() {
        let message = "--skill-tools: tools run only if skills are stored in a folder, not in S3";
        return Err(CommandError::input(message).hint("remove --skill-tools, or --storage"));
    }
    Ok(())
}

fn tool_runner(
    settings: &ServeLayer,
    location: &StorageLocation,
) -> Result<Option<ToolRunner>, CommandError> {
    if settings.skill_tools != Some(true) {
        return Ok(None);
    }
    let home = Home::from_environment()?;
    let run_env = trust::run_env(&home)?.keeping_folder(location.data());
    Ok(Some(ToolRunner::new(home, run_env, Arc::new(DiskSkillReader))))
}

async fn serve(
    settings: ServeLayer,
    location: StorageLocation,
    models: Models,
    log_tail: LogTail,
) -> Result<ExitCode, CommandError> {
    let signals = Signals::listen()?;
    // If the port is in use, the command fails before it creates anything.
    let (listener, address) =
        listen(settings.address.as_deref().unwrap_or(DEFAULT_ADDRESS)).await?;
    let (database, storage) = location.open().await?;
    savoir_server::install_examples(&database, &storage).await?;
    let config = server_config(&settings, address, &location)?;
    let config = ServerConfig { log_tail: Some(log_tail), ..config };
    raise_open_files();
    let greeting = Greeting {
        format: settings.log.unwrap_or_default(),
        url: config.public_url.clone(),
        address,
        location: &location,
        models: models.clone(),
        readers: match config.registry.readers {
            savoir_server::Readers::Everyone => "",
            savoir_server::Readers::Accounts => ", for users with an account",
        },
    };
    let app = App::new(config, database, storage.clone(), models).await?;
    let served = async {
        let indexing = tokio::spawn(index(&app, signals.stop()));
        let outcome = savoir_server::serve(app.clone(), listener, signals.stop()).await;
        indexing.abort();
        outcome
    };
    let served = async { tokio::join!(served, greeting.print_greeting(&app, &storage)).0 };
    tokio::select! {
        outcome = served => {
            outcome.map_err(|error| {
                CommandError::findings(format!("the server failed: {error}"))
            })?;
            Ok(ExitCode::SUCCESS)
        }
        () = signals.again() => {
            tracing::warn!("stopped immediately; running requests were cancelled");
            Ok(ExitCode::from(1))
        }
    }
}

/// Indexes uploaded documents until the server stops.
fn index(
    app: &App,
    stop: impl Future<Output = ()> + Send + 'static,
) -> impl Future<Output = ()> + Send + 'static {
    let indexer = Indexer::new(app.knowledge().clone(), extractor::extractor());
    async move { indexer.run(stop).await }
}

async fn listen(address: &str) -> Result<(TcpListener, SocketAddr), CommandError> {
    let wrong = |error: io::Error| {
        let (what, hint) = match error.kind() {
            io::ErrorKind::AddrInUse => (
                format!("{address} is in use by another program"),
                "choose another port: --address 127.0.0.1:7879 (port 0 selects a free one)",
            ),
            io::ErrorKind::PermissionDenied => (
                format!("cannot listen on {address}: {error}"),
                "ports below 1024 need privileges; choose a higher one with --address",
            ),
            _ => (
                format!("cannot listen on {address}: {error}"),
                "use the form --address HOST:PORT, for example 127.0.0.1:7878",
            ),
        };
        CommandError::input(what).hint(hint)
    };
    let listener = TcpListener::bind(address).await.map_err(wrong)?;
    let bound = listener.local_addr().map_err(wrong)?;
    Ok((listener, bound))
}

/// Raises the limit of open files, which is often low: every stream needs two connections.
fn raise_open_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum
        && let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })
    {
        tracing::warn!(%error, ?current, "cannot raise the limit of open files");
    }
}

fn server_config(
    settings: &ServeLayer,
    address: SocketAddr,
    location: &StorageLocation,
) -> Result<ServerConfig, CommandError> {
    let default = ServerConfig::default();
    let hosts = settings.workflow_hosts.iter().flatten();
    let workflow_http = HttpPolicy::only(hosts).map_err(|error| {
        CommandError::input(format!("--workflow-host: {error}"))
            .hint("use a host name such as example.com, or an IP address")
    })?;
    let public_url = settings.public_url.as_deref().map(|url| url.trim_end_matches('/').to_owned());
    Ok(ServerConfig {
        public_url: public_url.unwrap_or_else(|| url_of(address)),
        registration: settings.registration.map_or(default.registration, Into::into),
        admin_email: settings.admin_email.clone(),
        oidc: oidc_config(settings)?,
        limits: settings.rate_limit.map_or(default.limits, |limit| limit.0),
        quotas: settings.quota.map_or(default.quotas, |quota| quota.0),
        cors_origins: settings.cors_origins.clone().unwrap_or(default.cors_origins),
        behind_proxy: settings.behind_proxy.unwrap_or(default.behind_proxy),
        grace: Duration::from_secs(settings.grace.unwrap_or(DEFAULT_GRACE_SECONDS)),
        run_retention: Duration::from_hours(
            settings.keep_runs.unwrap_or(DEFAULT_KEEP_RUNS_DAYS).saturating_mul(24),
        ),
        workflow_http: HttpPolicy {
            private: settings.workflow_private.unwrap_or(false),
            ..workflow_http
        },
        registry: registry_config(settings, location),
        catalog: CatalogConfig {
            allow: settings.catalog_allow.clone().unwrap_or_default(),
            cache: Some(location.catalog()),
            ..CatalogConfig::default()
        },
        integrations: settings.integrations.clone().unwrap_or_default(),
        chat_tools: settings.chat_tools.unwrap_or(default.chat_tools),
        skill_tools: tool_runner(settings, location)?,
        ..default
    })
}

fn oidc_config(settings: &ServeLayer) -> Result<Option<OidcConfig>, CommandError> {
    let (issuer, client_id) = match (&settings.oidc_issuer, &settings.oidc_client_id) {
        (None, None) => return Ok(None),
        (Some(issuer), Some(client_id)) => (issuer, client_id),
        _ => {
            let message = "a login with OpenID Connect needs an issuer and a client id";
            return Err(
                CommandError::input(message).hint("set oidc-issuer and oidc-client-id, or neither")
            );
        }
    };
    let secret = settings.oidc_client_secret.clone();
    let config = OidcConfig::new(issuer, client_id.clone(), secret, settings.oidc_name.clone());
    let config = config.map_err(|problem| {
        CommandError::input(format!("--oidc-issuer: {problem}"))
            .hint("use the form https://login.example.com")
    })?;
    Ok(Some(config.with_trusted_email(settings.oidc_trust_email.unwrap_or(false))))
}

fn registry_config(settings: &ServeLayer, location: &StorageLocation) -> RegistryConfig {
    let detonates = settings.registry_detonation.unwrap_or(true);
    RegistryConfig {
        readers: settings.registry_readers.unwrap_or_default().into(),
        search_folder: Some(location.search()),
        redirect: settings.registry_redirect.unwrap_or(false),
        vetting: vetting::Options {
            detonation: if detonates { Detonation::On } else { Detonation::Off },
            audit: settings.registry_audit.clone().map_or(Audit::Off, Audit::Service),
            ..vetting::Options::default()
        },
    }
}

/// A server that listens on all addresses is reachable as localhost.
fn url_of(address: SocketAddr) -> String {
    if address.ip().is_unspecified() {
        format!("http://localhost:{}", address.port())
    } else {
        format!("http://{address}")
    }
}
