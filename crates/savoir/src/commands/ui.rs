//! `savoir ui`: opens the web app for the skills of this machine, for one user and without
//! accounts.

mod commands;
mod guard;
mod launch;

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    process::{Command, ExitCode, Stdio},
    sync::{Arc, Mutex, PoisonError},
};

use axum::{
    Json, Router,
    extract::{Query, State},
    http::{HeaderMap, StatusCode, header},
    middleware,
    response::{IntoResponse as _, Redirect, Response},
    routing::get,
};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use self::{
    commands::{Action, CommandRunner, Question},
    guard::{Entrance, Guard},
    launch::LaunchPage,
};
use crate::{error::CommandError, output, runtime};

/// Open the web app for the skills of this machine
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The app shows the skills of all agents, what has changed or is outdated, what a scan finds, how much
of an agent's context the skills take, approvals, secrets and runs. It needs no account, and only
this machine can reach it. Ctrl-C ends it.

Examples:
  savoir ui
  savoir ui --no-open --port 7900     print the address instead of opening a browser")]
pub(crate) struct Args {
    /// Port on 127.0.0.1 [default: a free one]
    #[arg(long, default_value_t = 0, hide_default_value = true)]
    port: u16,
    /// Print the address instead of opening a browser
    #[arg(long)]
    no_open: bool,
    /// The project [default: the current folder]
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
}

/// The state that all requests share.
#[derive(Debug)]
struct Machine {
    guard: Guard,
    runner: CommandRunner,
    /// The page that was opened in the browser; deleted once the link is used.
    page: Mutex<Option<LaunchPage>>,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    let runner = CommandRunner::new(args.project.as_deref())?;
    runtime::block_on(async {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, args.port));
        let listener = TcpListener::bind(address).await.map_err(|error| {
            CommandError::findings(format!("cannot listen on {address}: {error}"))
                .hint("leave out --port, and a free port is used")
        })?;
        let port = listener.local_addr()?.port();
        let (guard, url) = Guard::new(port);
        output::text(&format!("Savoir is open at {url}\nThe link works once. Ctrl-C ends it.\n"))?;
        let page = if args.no_open { None } else { open_browser(&url) };
        let machine = Arc::new(Machine { guard, runner, page: Mutex::new(page) });
        let stop = async {
            let _ = tokio::signal::ctrl_c().await;
        };
        axum::serve(listener, router(machine)).with_graceful_shutdown(stop).await?;
        Ok(ExitCode::SUCCESS)
    })
}

/// Opens the link in the browser of the desktop. Without a desktop, the printed link is enough.
fn open_browser(url: &str) -> Option<LaunchPage> {
    let page = LaunchPage::write(url)
        .inspect_err(|error| output::note(&format!("open the link in a browser: {error}")))
        .ok()?;
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut command = Command::new(program);
    command.arg(page.url()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if command.spawn().is_err() {
        output::note("open the link in a browser; none was found");
        return None;
    }
    Some(page)
}

fn router(machine: Arc<Machine>) -> Router {
    let api = Router::new()
        .route("/api/v1/auth/session", get(session))
        .route("/api/v1/machine/{question}", get(answer).post(act))
        .route("/api/v1/machine/context", get(answer_context));
    let guarded = api.layer(middleware::from_fn_with_state(Arc::clone(&machine), guard::check));
    Router::new()
        .merge(guarded)
        .merge(savoir_server::web_app())
        .route("/enter", get(enter))
        .route("/", get(|| async { Redirect::to("/machine") }))
        .layer(middleware::from_fn_with_state(Arc::clone(&machine), guard::check_host))
        .with_state(machine)
}

#[derive(Debug, Deserialize)]
struct Token {
    #[serde(default)]
    token: String,
}

/// Exchanges the token of the printed link for a session, once.
async fn enter(
    State(machine): State<Arc<Machine>>,
    headers: HeaderMap,
    Query(query): Query<Token>,
) -> Response {
    // If the cookie was stolen, it opens the app, but does not give access to the key.
    if machine.guard.has_cookie(&headers) {
        return Redirect::to("/machine").into_response();
    }
    let new_link = "stop `savoir ui` and start it again for a new link";
    match machine.guard.exchange(&query.token) {
        Entrance::Started { set_cookie, key } => {
            machine.page.lock().unwrap_or_else(PoisonError::into_inner).take();
            // The app stores the key from the fragment, which browsers send to no server, in the
            // storage of its origin.
            let app = Redirect::to(&format!("/machine#key={key}"));
            ([(header::SET_COOKIE, set_cookie)], app).into_response()
        }
        Entrance::OpenedTwice => {
            output::note("the link was opened twice, so that its session has ended");
            let hint =
                format!("{new_link}. If you did not open the link before, somebody else did");
            refusal(
                StatusCode::FORBIDDEN,
                "this link was used already, and its session has ended now",
                &hint,
            )
        }
        Entrance::Refused => {
            refusal(StatusCode::FORBIDDEN, "this is not the newest link", new_link)
        }
    }
}

/// Returns the current user: the one at this machine.
async fn session() -> Json<Value> {
    Json(json!({
        "user": { "id": 0, "email": "this machine", "role": "user", "active": true },
        "machine": true,
        "setup": false,
        "registration": "closed",
        "can_register": false,
        "local": true,
        "version": env!("CARGO_PKG_VERSION"),
        "providers": [],
    }))
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Filter {
    name: String,
    agent: String,
    context: Option<u64>,
    /// Comma-separated names.
    without: String,
}

async fn answer(
    State(machine): State<Arc<Machine>>,
    axum::extract::Path(question): axum::extract::Path<String>,
    Query(filter): Query<Filter>,
) -> Response {
    match Question::parse(&question, &filter.name) {
        Some(question) => machine.runner.run(&question.arguments()).await,
        None => unknown(),
    }
}

async fn answer_context(
    State(machine): State<Arc<Machine>>,
    Query(filter): Query<Filter>,
) -> Response {
    let without = filter.without.split(',').filter(|name| !name.is_empty());
    let without = without.map(str::to_owned).collect();
    let question = Question::Context { agent: filter.agent, context: filter.context, without };
    machine.runner.run(&question.arguments()).await
}

async fn act(
    State(machine): State<Arc<Machine>>,
    axum::extract::Path(name): axum::extract::Path<String>,
    Json(body): Json<commands::ActionBody>,
) -> Response {
    match Action::parse(&name) {
        Some(action) => machine.runner.run(&action.arguments(&body)).await,
        None => unknown(),
    }
}

fn unknown() -> Response {
    refusal(StatusCode::NOT_FOUND, "there is no such address", "open /machine")
}

/// An error in the format of the app.
fn refusal(status: StatusCode, detail: &str, hint: &str) -> Response {
    (status, Json(json!({ "detail": detail, "hint": hint }))).into_response()
}
