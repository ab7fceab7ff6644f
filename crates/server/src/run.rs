//! Runs the server until it is stopped.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use axum::{Router, body::Body, extract::ConnectInfo};
use futures::future::{Either, ready};
use hyper::{Request, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::{GracefulConnection, GracefulShutdown},
};
use savoir_flow::workflow::journal::EXECUTION_RETENTION;
use savoir_knowledge::limits::TASK_RETENTION;
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
    limits::{
        HEADER_TIMEOUT_SECONDS, MAX_CONNECTIONS, MAX_HEADER_BYTES, MAX_RUNS_OF_USER,
        WRITE_TIMEOUT_SECONDS,
    },
    personal, providers,
    routes::{router, scan_backlog, serve_fresh_cached},
    run_history::{store_unstored, watch_runs},
    write_timeout::WriteTimeout,
};

/// How long responses that are not streams may take after streams were ended.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// Pause after `accept` failed, for example because too many files are open.
const ACCEPT_RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// How often the registry is checked for versions that were not scanned.
const SCAN_INTERVAL: Duration = Duration::from_secs(30);
/// How many versions are scanned before another process may take over.
const SCAN_BATCH: u64 = 10;

/// How long after the start unfinished files are removed for the first time. Those of the process
/// that was killed before are old enough then.
const UNFINISHED_AGE: Duration = Duration::from_secs(2);
/// How often unfinished files are removed, which other processes may leave.
const UNFINISHED_INTERVAL: Duration = Duration::from_hours(1);

/// How often this process tries to get the lease for importing integrations.
const SWEEP_INTERVAL: Duration = Duration::from_secs(5);

/// Serves requests until `stop` completes. Then the server accepts no connections; running requests
/// may continue for the grace period; streams that still run after it end with an `error` event.
pub async fn serve(
    app: App,
    listener: TcpListener,
    stop: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let stopping = CancellationToken::new();
    tokio::spawn(wait_for_stop(app.clone(), stopping.clone(), stop));
    app.tasks.spawn(remove_unfinished(app.clone(), stopping.clone()));
    app.tasks.spawn(watch_runs(app.clone(), stopping.clone()));
    app.tasks.spawn(providers::watch(app.clone(), stopping.clone()));
    let housekeeping = tokio::spawn(sweep(app.clone(), stopping.clone()));
    app.tasks.spawn(scan_registry(app.clone(), stopping.clone()));
    app.tasks.spawn(import_integrations(app.clone(), stopping.clone()));
    app.tasks.spawn(archive_unused_skills(app.clone(), stopping.clone()));
    app.tasks.spawn(update_registry_search(app.clone(), stopping.clone())?);
    // A connection starts on the thread that accepts it. The current thread is not a worker of the
    // runtime, so accept in a task.
    let accepting = tokio::spawn(accept(listener, app.clone(), stopping));
    let connections = accepting.await.map_err(io::Error::other)?;
    tokio::select! {
        () = connections.shutdown() => {}
        () = close_overdue(&app) => tracing::warn!("some connections did not end in time"),
    }
    app.stop.cancel();
    app.tasks.close();
    // Runs whose client disconnected get some time to clean up.
    let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, app.tasks.wait()).await;
    // The last chance for runs that could not be stored when they ended.
    let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, store_unstored(&app)).await;
    housekeeping.abort();
    // `close` waits for connections that are still in use, so limit the time.
    let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, app.database.close()).await;
    Ok(())
}

/// Waits for `stop`, then for the grace period, and then ends the streams.
async fn wait_for_stop(app: App, stopping: CancellationToken, stop: impl Future<Output = ()>) {
    stop.await;
    let grace = app.config.grace;
    tracing::info!(seconds = grace.as_secs(), "stopping; streams may go on for a while");
    stopping.cancel();
    tokio::time::sleep(grace).await;
    app.stop.cancel();
}

async fn close_overdue(app: &App) {
    app.stop.cancelled().await;
    tokio::time::sleep(SHUTDOWN_TIMEOUT).await;
}

/// Accepts connections until the server is asked to stop.
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
                    // A broken connection is not an error of the server.
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

/// Serves the requests of one connection. Timeouts close it if the client sends too slowly or does
/// not read the responses.
fn connection(
    app: App,
    router: Router,
    stream: TcpStream,
    peer: SocketAddr,
) -> impl GracefulConnection<Error = hyper::Error> + Send + use<> {
    // Events are small and must not be delayed (Nagle's algorithm).
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "small packets may be delayed");
    }
    let service = service_fn(move |request: Request<Incoming>| {
        // The most frequent requests are answered from the cache, which skips the router.
        if let Some(response) = serve_fresh_cached(&app, &request) {
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

/// Starts the task that keeps the search index up to date with the registry.
fn update_registry_search(
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
            registry::update_search_index(
                &app.registry_state, &app.database, &app.storage, folder, stopping,
            )
            .await;
        }
    })
}

/// Scans registry versions that were stored without a scan. Only one process does this at a time.
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
    match app.database.leases().hold("registry scan").await? {
        Some(lease) => {
            let scanned = lease.during(scan_backlog(app, SCAN_BATCH)).await;
            scanned.transpose().map(drop)
        }
        None => Ok(()),
    }
}

/// Imports the skills of integrations once, as soon as no other process does it.
async fn import_integrations(app: App, stopping: CancellationToken) {
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

/// Archives skills that nobody uses: at the start, and once a day.
async fn archive_unused_skills(app: App, stopping: CancellationToken) {
    let skill_writer = app.skills.skill_writer();
    let mut every = tokio::time::interval(Duration::from_hours(24));
    let keeping = async {
        loop {
            every.tick().await;
            match skill_writer.archive_unused_skills(Timestamp::now()).await {
                Ok(0) => {}
                Ok(count) => tracing::info!(count, "unused skills became stale or were archived"),
                Err(error) => tracing::warn!(%error, "unused skills could not be archived"),
            }
        }
    };
    tokio::select! {
        () = stopping.cancelled() => {}
        () = keeping => {}
    }
}

/// Removes what processes left that were killed while they wrote: shortly after the start, when the
/// files of processes that live are locked, and then now and again.
async fn remove_unfinished(app: App, stopping: CancellationToken) {
    let mut wait = UNFINISHED_AGE;
    loop {
        tokio::select! {
            () = stopping.cancelled() => return,
            () = tokio::time::sleep(wait) => {}
        }
        if let Err(error) = app.storage.remove_unfinished().await {
            tracing::warn!(%error, "unfinished files were not removed");
        }
        wait = UNFINISHED_INTERVAL;
    }
}

/// Deletes expired data every five minutes.
async fn sweep(app: App, stopping: CancellationToken) {
    let mut every = tokio::time::interval(Duration::from_mins(5));
    loop {
        tokio::select! {
            () = stopping.cancelled() => return,
            _ = every.tick() => {}
        }
        let (database, now) = (&app.database, Timestamp::now());
        log_result("counters", database.rate_limits().sweep().await);
        log_result("tasks", database.knowledge().sweep_tasks(now.minus(TASK_RETENTION)).await);
        savoir_sandbox::release_free_memory();
        if let Err(error) = database.registry(&app.storage).mark().await {
            tracing::warn!(%error, "the mark in the storage was not left again");
        }
        let oldest = now.minus(app.config.run_retention);
        log_result("runs", database.runs().sweep(oldest, MAX_RUNS_OF_USER).await);
        log_result(
            "executions",
            database.workflows().sweep_executions(now.minus(EXECUTION_RETENTION)).await,
        );
    }
}

fn log_result(what: &str, swept: Result<u64, StoreError>) {
    if let Err(error) = swept {
        tracing::warn!(%error, "old {what} were not dropped");
    }
}
