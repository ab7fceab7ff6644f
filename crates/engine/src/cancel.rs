//! Ends a program when nobody waits for it any more.

use std::sync::{Arc, Mutex, PoisonError};

use savoir_sandbox::Killer;

/// Shared by whoever runs a program and whoever waits for it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cancel(Arc<Mutex<State>>);

#[derive(Debug, Default)]
enum State {
    #[default]
    Starting,
    Running(Killer),
    Cancelled,
}

/// Ends the program when it is dropped.
#[derive(Debug)]
pub(crate) struct Guard(Cancel);

impl Cancel {
    pub(crate) fn guard(&self) -> Guard {
        Guard(self.clone())
    }

    /// The program runs: from here on it can be ended. If it is too late, it ends at once.
    pub(crate) fn hold(&self, killer: Killer) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*state {
            State::Cancelled => killer.kill(),
            State::Starting | State::Running(_) => *state = State::Running(killer),
        }
    }

    /// Whether nobody waits for it any more.
    pub(crate) fn is_cancelled(&self) -> bool {
        matches!(*self.0.lock().unwrap_or_else(PoisonError::into_inner), State::Cancelled)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let mut state = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Nothing happens to a program that has ended by itself.
        if let State::Running(killer) = std::mem::replace(&mut *state, State::Cancelled) {
            killer.kill();
        }
    }
}
