//! Runs the server until it is stopped.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use axum::{Router, body::Body, extract::ConnectInfo};
use futures::future::{Either, ready};
use hyper::{Request, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::{GracefulConnection, GracefulShutdown},
};
use savoir_engine::limits::{EXECUTION_KEPT, TASK_KEPT};
use savoir_registry as registry;
use savoir_store::{StoreError, Timestamp, registry::RegistryError};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
};
use tokio_util::sync::CancellationToken;
use tower::Service as _;

use crate::{
    app::App,
    limits::{HEADER_TIMEOUT_SECONDS, MAX_CONNECTIONS, MAX_HEADER_BYTES, WRITE_TIMEOUT_SECONDS},
    personal, readiness,
    routes::{recall_now, router, scan_backlog},
    write_timeout::WriteTimeout,
};

/// How long answers that are no streams may take after streams were told to end.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// How long to wait when no connection can be taken, for example because too many files are open.
const ACCEPT_RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// How often versions are looked for that were not scanned.
const SCAN_INTERVAL: Duration = Duration::from_secs(30);
/// How many are scanned before it is another process's turn.
const SCAN_BATCH: u64 = 10;
/// How long that may take.
const SCAN_LEASE_DURATION: Duration = Duration::from_mins(20);

/// How often it is looked whether it is this process's turn to keep the skills of integrations.
const SWEEP_INTERVAL: Duration = Duration::from_secs(5);

/// Answers requests until `stop` is done. Then no connection is taken any more; what runs may go on
/// for the time of grace; streams that go on after that end with an `error` event.
pub async fn serve(
    app: App,
    listener: TcpListener,
    stop: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let stopping = CancellationToken::new();
    tokio::spawn(end(app.clone(), stopping.clone(), stop));
    tokio::spawn(readiness::watch(app.clone(), stopping.clone()));
    let housekeeping = tokio::spawn(sweep(app.clone(), stopping.clone()));
    app.tasks.spawn(scan_registry(app.clone(), stopping.clone()));
    app.tasks.spawn(bring_integrations(app.clone(), stopping.clone()));
    app.tasks.spawn(lay_aside(app.clone(), stopping.clone()));
    app.tasks.spawn(follow_registry(app.clone(), stopping.clone())?);
    // A connection begins on the thread that takes it; this one is none of those that work.
    let accepting = tokio::spawn(accept(listener, app.clone(), stopping));
    let connections = accepting.await.map_err(io::Error::other)?;
    tokio::select! {
        () = connections.shutdown() => {}
        () = overdue(&app) => tracing::warn!("some connections did not end in time"),
    }
    app.stop.cancel();
    app.tasks.close();
    // What tidies up after its listener went away is given a moment.
    let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, app.tasks.wait()).await;
    housekeeping.abort();
    // A connection that is still in use would be waited for.
    let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, app.database.close()).await;
    Ok(())
}

/// Waits for the word to stop, then for the time of grace, and has streams end.
async fn end(app: App, stopping: CancellationToken, stop: impl Future<Output = ()>) {
    stop.await;
    let grace = app.config.grace;
    tracing::info!(seconds = grace.as_secs(), "stopping; streams may go on for a while");
    stopping.cancel();
    tokio::time::sleep(grace).await;
    app.stop.cancel();
}

async fn overdue(app: &App) {
    app.stop.cancelled().await;
    tokio::time::sleep(SHUTDOWN_TIMEOUT).await;
}

/// Takes connections until it is told to stop.
async fn accept(listener: TcpListener, app: App, stopping: CancellationToken) -> GracefulShutdown {
    let router = router(app.clone());
    let connections = GracefulShutdown::new();
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let taken = async {
            // The semaphore is never closed.
            let place = Arc::clone(&places).acquire_owned().await.map_err(io::Error::other)?;
            listener.accept().await.map(|accepted| (place, accepted))
        };
        let taken = tokio::select! {
            taken = taken => taken,
            () = stopping.cancelled() => return connections,
        };
        match taken {
            Ok((place, (stream, peer))) => {
                let connection = connection(app.clone(), router.clone(), stream, peer);
                let connection = connections.watch(connection);
                tokio::spawn(async move {
                    // A connection that breaks off is the client's business.
                    let _ = connection.await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "a connection was not taken");
                tokio::time::sleep(ACCEPT_RETRY_INTERVAL).await;
            }
        }
    }
}

/// Answers the requests of one connection. Whoever sends a request a byte at a time, or does not take
/// what is sent, does not hold it for ever.
fn connection(
    app: App,
    router: Router,
    stream: TcpStream,
    peer: SocketAddr,
) -> impl GracefulConnection<Error = hyper::Error> + Send + use<> {
    // Events are small and must not wait for each other.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "small packets may be delayed");
    }
    let service = service_fn(move |request: Request<Incoming>| {
        // What is asked for most takes no way through all routes.
        if let Some(response) = recall_now(&app, &request) {
            return Either::Left(ready(Ok(response)));
        }
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(ConnectInfo(peer));
        Either::Right(router.clone().call(request))
    });
    let stream =
        TokioIo::new(WriteTimeout::new(stream, Duration::from_secs(WRITE_TIMEOUT_SECONDS)));
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(Duration::from_secs(HEADER_TIMEOUT_SECONDS))
        .max_buf_size(MAX_HEADER_BYTES)
        .serve_connection(stream, service)
}

/// Keeps the index of words as new as the registry.
fn follow_registry(
    app: App,
    stopping: CancellationToken,
) -> io::Result<impl Future<Output = ()> + Send> {
    let lent = match &app.config.registry.search_folder {
        Some(_) => None,
        None => Some(tempfile::tempdir()?),
    };
    Ok(async move {
        let own = app.config.registry.search_folder.as_deref();
        let folder = lent.as_ref().map(tempfile::TempDir::path).or(own);
        if let Some(folder) = folder {
            registry::follow(&app.registry_state, &app.database, &app.storage, folder, stopping)
                .await;
        }
    })
}

/// Scans what came into the registry without being scanned. One process does it at a time.
async fn scan_registry(app: App, stopping: CancellationToken) {
    let mut every = tokio::time::interval(SCAN_INTERVAL);
    let scanning = async {
        loop {
            every.tick().await;
            if let Err(error) = scan_some(&app).await {
                tracing::warn!(%error, "versions were not scanned; trying again");
            }
        }
    };
    tokio::select! {
        () = stopping.cancelled() => {}
        () = scanning => {}
    }
}

async fn scan_some(app: &App) -> Result<(), RegistryError> {
    let leases = app.database.leases();
    let holder = uuid::Uuid::new_v4().to_string();
    let Some(lease) = leases.acquire("registry scan", &holder, SCAN_LEASE_DURATION).await? else {
        return Ok(());
    };
    let scanned = scan_backlog(app, SCAN_BATCH).await;
    leases.release(&lease).await?;
    scanned.map(drop)
}

/// Keeps the skills of integrations: once, as soon as no other process is at it.
async fn bring_integrations(app: App, stopping: CancellationToken) {
    let skill_writer = app.skills.skill_writer();
    loop {
        let stopped = stopping.cancelled();
        let wait = match personal::project_until(skill_writer, &app.config.integrations, stopped)
            .await
        {
            Ok(Some(_)) => return,
            Ok(None) => SWEEP_INTERVAL,
            Err(error) => {
                tracing::warn!(%error, "the skills of integrations were not kept; trying again");
                Duration::from_mins(1)
            }
        };
        tokio::select! {
            () = stopping.cancelled() => return,
            () = tokio::time::sleep(wait) => {}
        }
    }
}

/// Lays aside what nobody uses: at the start, and once a day.
async fn lay_aside(app: App, stopping: CancellationToken) {
    let skill_writer = app.skills.skill_writer();
    let mut every = tokio::time::interval(Duration::from_hours(24));
    let keeping = async {
        loop {
            every.tick().await;
            match skill_writer.lay_aside(Timestamp::now()).await {
                Ok(0) => {}
                Ok(count) => tracing::info!(count, "skills that nobody uses were laid aside"),
                Err(error) => tracing::warn!(%error, "skills were not looked through"),
            }
        }
    };
    tokio::select! {
        () = stopping.cancelled() => {}
        () = keeping => {}
    }
}

/// Drops what is over, now and then.
async fn sweep(app: App, stopping: CancellationToken) {
    let mut every = tokio::time::interval(Duration::from_mins(5));
    loop {
        tokio::select! {
            () = stopping.cancelled() => return,
            _ = every.tick() => {}
        }
        let (database, now) = (&app.database, Timestamp::now());
        told("counters", database.rate_limits().sweep().await);
        told("tasks", database.knowledge().sweep_tasks(now.minus(TASK_KEPT)).await);
        savoir_sandbox::give_memory_back();
        if let Err(error) = database.registry(&app.storage).mark().await {
            tracing::warn!(%error, "the mark in the storage was not left again");
        }
        told("executions", database.workflows().sweep_executions(now.minus(EXECUTION_KEPT)).await);
    }
}

fn told(what: &str, swept: Result<u64, StoreError>) {
    if let Err(error) = swept {
        tracing::warn!(%error, "old {what} were not dropped");
    }
}
