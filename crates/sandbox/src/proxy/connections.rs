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
    slot_freed: Condvar,
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
pub(super) struct ConnectionSlot(Arc<Connections>);

impl Connections {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a slot, if one is free.
    pub(super) fn take_slot(self: &Arc<Self>) -> Option<ConnectionSlot> {
        let mut state = self.state();
        if state.stopping || state.workers >= limits::MAX_CONNECTIONS {
            return None;
        }
        state.workers += 1;
        Some(ConnectionSlot(Arc::clone(self)))
    }

    /// Registers a socket to be closed on stop. If the proxy is already stopping, closes it
    /// immediately.
    pub(super) fn register(&self, socket: &Arc<TcpStream>) {
        let mut state = self.state();
        if state.stopping {
            let _ = socket.shutdown(Shutdown::Both);
            return;
        }
        state.sockets.retain(|socket| socket.strong_count() > 0);
        state.sockets.push(Arc::downgrade(socket));
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.state().stopping
    }

    /// Closes all sockets and waits for the workers. A worker inside the system's resolver cannot
    /// be interrupted; it finds its sockets closed when it returns.
    pub(super) fn stop(&self, timeout: Duration) {
        let mut state = self.state();
        state.stopping = true;
        for socket in state.sockets.drain(..).filter_map(|socket| socket.upgrade()) {
            let _ = socket.shutdown(Shutdown::Both);
        }
        drop(self.slot_freed.wait_timeout_while(state, timeout, |state| state.workers > 0));
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.0.state().workers -= 1;
        self.0.slot_freed.notify_all();
    }
}
