//! [`Connections`]: how many there are, and how they all end.

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
    /// Threads at work.
    workers: usize,
    /// Sockets on both sides, to hang up on. They belong to the workers.
    sockets: Vec<Weak<TcpStream>>,
    stopping: bool,
}

/// A place among the workers, given back when it is dropped.
#[derive(Debug)]
pub(super) struct Place(Arc<Connections>);

impl Connections {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a place, if one is free.
    pub(super) fn enter(self: &Arc<Self>) -> Option<Place> {
        let mut state = self.state();
        if state.stopping || state.workers >= limits::CONNECTIONS {
            return None;
        }
        state.workers += 1;
        Some(Place(Arc::clone(self)))
    }

    /// Keeps a socket in mind, unless it comes too late: then it is closed at once.
    pub(super) fn watch(&self, socket: &Arc<TcpStream>) {
        let mut state = self.state();
        if state.stopping {
            let _ = socket.shutdown(Shutdown::Both);
            return;
        }
        state.sockets.retain(|socket| socket.strong_count() > 0);
        state.sockets.push(Arc::downgrade(socket));
    }

    /// Whether nothing new may begin.
    pub(super) fn stopping(&self) -> bool {
        self.state().stopping
    }

    /// Hangs up everywhere and waits for the workers. One that is deep in the system's resolver
    /// cannot be called back; it finds its sockets closed when it returns.
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
