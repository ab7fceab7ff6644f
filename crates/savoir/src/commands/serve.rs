//! `savoir serve`.

mod examples;
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

use savoir_engine::{
    Home,
    knowledge::Indexer,
    vetting::{self, Audit, Detonation},
    workflow::HttpPolicy,
};
use savoir_model::Models;
use savoir_server::{App, CatalogConfig, Config as ServerConfig, RegistryConfig, Workshop};
use tokio::net::TcpListener;

use self::{greeting::Greeting, stop::Signals};
use crate::{
    agent_skills::OnDisk,
    config::{
        ADDRESS, Config, GRACE, LogFormat, LogLevel, Quota, RateLimit, Readers, Registration,
        ServeLayer,
    },
    error::CommandError,
    extractor,
    place::{Place, PlaceArgs},
    runtime, trust, voice,
};

/// Serve skills, chat, knowledge, workflows and a registry over HTTP
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Without any option it serves this machine alone and keeps everything in one folder. Every option
has a variable, SAVOIR_ and its name (SAVOIR_DATABASE for --database), and a line in the table
[serve] of ~/.config/savoir/config.toml. Write what has a password into a variable: others can see
a command line.

Examples:
  savoir serve
  savoir serve --address 0.0.0.0:80 --public-url https://skills.example.com --behind-proxy
  SAVOIR_DATABASE=postgres://ada:secret@db/savoir savoir serve --storage s3://skills

SIGTERM or Ctrl-C stops it: what runs may go on for the time of grace. A second one stops it at
once.")]
pub(crate) struct Args {
    /// Where to listen; port 0 takes a free one [default: 127.0.0.1:7878]
    #[arg(long, value_name = "HOST:PORT")]
    address: Option<String>,
    #[command(flatten)]
    place: PlaceArgs,
    /// Where people reach it, if that is not the address
    #[arg(long, value_name = "URL")]
    public_url: Option<String>,
    /// Who may make an account by themselves [default: local]
    #[arg(long, value_name = "WHO")]
    registration: Option<Registration>,
    /// The address whose account is an administrator
    #[arg(long, value_name = "EMAIL")]
    admin_email: Option<String>,
    /// An origin whose pages may use the API; can be given several times
    #[arg(long = "cors-origin", value_name = "ORIGIN")]
    cors_origins: Vec<String>,
    /// A proxy in front tells the addresses of clients in X-Forwarded-For
    #[arg(long)]
    behind_proxy: bool,
    /// Requests of one person in a minute: runs=10,routes=60,all=1000, or off
    #[arg(long, value_name = "LIMITS")]
    rate_limit: Option<RateLimit>,
    /// What one account may store: skills=2000,documents=20000,versions=20000,bytes=20G, or off
    #[arg(long, value_name = "QUOTAS")]
    quota: Option<Quota>,
    /// A host, with all below it, that workflows may ask; can be given several times [default: all]
    #[arg(long = "workflow-host", value_name = "HOST")]
    workflow_hosts: Vec<String>,
    /// Workflows may ask private addresses, such as those of this machine
    #[arg(long)]
    workflow_private: bool,
    #[command(flatten)]
    personal: PersonalArgs,
    #[command(flatten)]
    registry: RegistryArgs,
    /// How long streams may go on when it is told to stop [default: 20]
    #[arg(long, value_name = "SECONDS")]
    grace: Option<u64>,
    /// How log lines are written [default: text]
    #[arg(long, value_name = "FORMAT")]
    log: Option<LogFormat>,
    /// What is worth a log line [default: info]
    #[arg(long, value_name = "LEVEL")]
    log_level: Option<LogLevel>,
}

/// From where people get skills.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Skills from elsewhere")]
struct PersonalArgs {
    /// A repository, or all below an address, that the catalogue may ask besides GitHub; can be given
    /// several times
    #[arg(long = "catalog-allow", value_name = "URL")]
    catalog_allow: Vec<String>,
    /// A folder with integrations, whose skills are kept; can be given several times
    #[arg(long = "integrations", value_name = "DIR")]
    integrations: Vec<PathBuf>,
    /// Let the model of a conversation find and follow skills by itself
    #[arg(long)]
    chat_tools: bool,
    /// Let agents call tools of skills that you approved: they run on this machine, in the sandbox
    #[arg(long)]
    skill_tools: bool,
}

/// How the registry is served.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "The registry")]
struct RegistryArgs {
    /// Who may read what was published in the registry [default: everyone]
    #[arg(long, value_name = "WHO")]
    registry_readers: Option<Readers>,
    /// Send those who download to the storage itself; it must have addresses, as S3 has
    #[arg(long)]
    registry_redirect: bool,
    /// Have pip-audit ask the service at this host about packages that are published
    #[arg(long, value_name = "HOST")]
    registry_audit: Option<String>,
    /// Do not try the tools of packages that are published in a sandbox
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
            cors_origins: Some(self.cors_origins.clone()).filter(|origins| !origins.is_empty()),
            behind_proxy: self.behind_proxy.then_some(true),
            rate_limit: self.rate_limit,
            quota: self.quota,
            grace: self.grace,
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
            ..self.place.layer()
        }
    }
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    let config = Config::load(Path::new("."))?;
    let settings = args.layer().over(config.serve.clone());
    require_urls(&settings)?;
    let place = Place::new(&settings, &Home::from_environment()?)?;
    require_folder(&settings, &place)?;
    let models = voice::models(&config)?;
    log::start(settings.log.unwrap_or_default(), settings.log_level.unwrap_or_default())?;
    if settings.registry_redirect == Some(true) && place.has_folder() {
        tracing::warn!(
            "--registry-redirect does nothing here: archives lie in a folder, and only a bucket can \
             be sent to; name one with --storage s3://…"
        );
    }
    runtime::block_on(serve(settings, place, models))
}

/// Refuses what no browser would take for an origin: it would only be missed much later.
fn require_urls(settings: &ServeLayer) -> Result<(), CommandError> {
    let origins = settings.cors_origins.iter().flatten().map(|origin| ("--cors-origin", origin));
    let public = settings.public_url.iter().map(|url| ("--public-url", url));
    for (option, url) in origins.chain(public) {
        let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
        if rest.is_none_or(|rest| rest.is_empty() || rest.contains(char::is_whitespace)) {
            return Err(CommandError::input(format!("{option}: `{url}` is no address"))
                .hint("write it as https://skills.example.com"));
        }
    }
    Ok(())
}

/// What runs must be there as files, whose digests an approval is kept for.
fn require_folder(settings: &ServeLayer, place: &Place) -> Result<(), CommandError> {
    if settings.skill_tools == Some(true) && !place.has_folder() {
        let message =
            "--skill-tools: tools run where skills lie in a folder, and these are in a bucket";
        return Err(CommandError::input(message).hint("leave out --skill-tools, or --storage"));
    }
    Ok(())
}

/// Where tools of skills run, if they may.
fn workshop(settings: &ServeLayer, place: &Place) -> Result<Option<Workshop>, CommandError> {
    if settings.skill_tools != Some(true) {
        return Ok(None);
    }
    let home = Home::from_environment()?;
    let ground = trust::ground(&home)?.keeping_folder(place.data());
    Ok(Some(Workshop::new(home, ground, Arc::new(OnDisk))))
}

async fn serve(
    settings: ServeLayer,
    place: Place,
    models: Models,
) -> Result<ExitCode, CommandError> {
    let signals = Signals::listen()?;
    // What is in the way is found before anything is made.
    let (listener, address) = listen(settings.address.as_deref().unwrap_or(ADDRESS)).await?;
    let (database, storage) = place.open().await?;
    examples::shelve(&database, &storage).await?;
    let config = server_config(&settings, address, &place)?;
    raise_open_files();
    let greeting = Greeting {
        form: settings.log.unwrap_or_default(),
        url: config.public_url.clone(),
        address,
        place: &place,
        models: models.clone(),
        readers: match config.registry.readers {
            savoir_server::Readers::Everyone => "",
            savoir_server::Readers::Accounts => ", for those who have an account",
        },
    };
    let app = App::new(config, database, storage.clone(), models).await?;
    let served = async {
        let indexing = tokio::spawn(index(&app, signals.stop()));
        let outcome = savoir_server::serve(app.clone(), listener, signals.stop()).await;
        indexing.abort();
        outcome
    };
    let served = async { tokio::join!(served, greeting.say(&app, &storage)).0 };
    tokio::select! {
        outcome = served => {
            outcome.map_err(|error| {
                CommandError::findings(format!("the server cannot go on: {error}"))
            })?;
            Ok(ExitCode::SUCCESS)
        }
        () = signals.again() => {
            tracing::warn!("stopped at once; runs were broken off");
            Ok(ExitCode::from(1))
        }
    }
}

/// The worker that reads uploaded documents, until the server stops.
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
                "choose another port: --address 127.0.0.1:7879 (0 takes a free one)",
            ),
            io::ErrorKind::PermissionDenied => (
                format!("{address} cannot be listened at: {error}"),
                "ports below 1024 are for the system; choose a higher one with --address",
            ),
            _ => (
                format!("{address} cannot be listened at: {error}"),
                "write it as --address HOST:PORT, for example 127.0.0.1:7878",
            ),
        };
        CommandError::input(what).hint(hint)
    };
    let listener = TcpListener::bind(address).await.map_err(wrong)?;
    let bound = listener.local_addr().map_err(wrong)?;
    Ok((listener, bound))
}

/// Every stream needs two connections; systems begin with a low limit that programs may raise.
fn raise_open_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum
        && let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })
    {
        tracing::warn!(%error, ?current, "the limit of open files stays as it is");
    }
}

fn server_config(
    settings: &ServeLayer,
    address: SocketAddr,
    place: &Place,
) -> Result<ServerConfig, CommandError> {
    let default = ServerConfig::default();
    let hosts = settings.workflow_hosts.iter().flatten();
    let workflow_http = HttpPolicy::only(hosts).map_err(|error| {
        CommandError::input(format!("--workflow-host: {error}"))
            .hint("write a name such as example.com, or an address")
    })?;
    let public_url = settings.public_url.as_deref().map(|url| url.trim_end_matches('/').to_owned());
    Ok(ServerConfig {
        public_url: public_url.unwrap_or_else(|| url_of(address)),
        registration: settings.registration.map_or(default.registration, Into::into),
        admin_email: settings.admin_email.clone(),
        limits: settings.rate_limit.map_or(default.limits, |limit| limit.0),
        quotas: settings.quota.map_or(default.quotas, |quota| quota.0),
        cors_origins: settings.cors_origins.clone().unwrap_or(default.cors_origins),
        behind_proxy: settings.behind_proxy.unwrap_or(default.behind_proxy),
        grace: Duration::from_secs(settings.grace.unwrap_or(GRACE)),
        workflow_http: HttpPolicy {
            private: settings.workflow_private.unwrap_or(false),
            ..workflow_http
        },
        registry: registry_config(settings, place),
        catalog: CatalogConfig {
            allow: settings.catalog_allow.clone().unwrap_or_default(),
            cache: Some(place.catalog()),
            ..CatalogConfig::default()
        },
        integrations: settings.integrations.clone().unwrap_or_default(),
        chat_tools: settings.chat_tools.unwrap_or(default.chat_tools),
        skill_tools: workshop(settings, place)?,
        ..default
    })
}

fn registry_config(settings: &ServeLayer, place: &Place) -> RegistryConfig {
    let detonates = settings.registry_detonation.unwrap_or(true);
    RegistryConfig {
        readers: settings.registry_readers.unwrap_or_default().into(),
        search_folder: Some(place.search()),
        redirect: settings.registry_redirect.unwrap_or(false),
        vetting: vetting::Options {
            detonation: if detonates { Detonation::On } else { Detonation::Off },
            audit: settings.registry_audit.clone().map_or(Audit::Off, Audit::Service),
            ..vetting::Options::default()
        },
    }
}

/// Who listens everywhere is reached on this machine, too.
fn url_of(address: SocketAddr) -> String {
    if address.ip().is_unspecified() {
        format!("http://localhost:{}", address.port())
    } else {
        format!("http://{address}")
    }
}
