//! Counts the connections of a proxy and closes them all when it stops.

use std::{
    net::{Shutdown, TcpStream},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use crate::limits;

/// The connections of a proxy.
#[derive(Debug, Default)]
pub(super) struct Connections {
    state: Mutex<State>,
    left: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The number of running threads.
    workers: usize,
    /// The sockets to programs and hosts, which are closed on stop. The worker threads own them.
    sockets: Vec<Weak<TcpStream>>,
    stopping: bool,
}

/// The slot of one worker; dropping it frees the slot.
#[derive(Debug)]
pub(super) struct Place(Arc<Connections>);

impl Connections {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a slot, if one is free.
    pub(super) fn enter(self: &Arc<Self>) -> Option<Place> {
        let mut state = self.state();
        if state.stopping || state.workers >= limits::CONNECTIONS {
            return None;
        }
        state.workers += 1;
        Some(Place(Arc::clone(self)))
    }

    /// Registers a socket to be closed on stop. If the proxy is already stopping, closes it
    /// immediately.
    pub(super) fn watch(&self, socket: &Arc<TcpStream>) {
        let mut state = self.state();
        if state.stopping {
            let _ = socket.shutdown(Shutdown::Both);
            return;
        }
        state.sockets.retain(|socket| socket.strong_count() > 0);
        state.sockets.push(Arc::downgrade(socket));
    }

    pub(super) fn stopping(&self) -> bool {
        self.state().stopping
    }

    /// Closes all sockets and waits for the workers. A worker inside the system's resolver cannot
    /// be interrupted; it finds its sockets closed when it returns.
    pub(super) fn stop(&self, patience: Duration) {
        let mut state = self.state();
        state.stopping = true;
        for socket in state.sockets.drain(..).filter_map(|socket| socket.upgrade()) {
            let _ = socket.shutdown(Shutdown::Both);
        }
        drop(self.left.wait_timeout_while(state, patience, |state| state.workers > 0));
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.state().workers -= 1;
        self.0.left.notify_all();
    }
}
