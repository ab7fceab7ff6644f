//! Cancels a running program when its caller stops waiting.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use rustix::process::{Pid, Signal, kill_process_group};
use savoir_sandbox::Killer;

/// Shared by whoever runs a program and whoever waits for it.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    /// Whether somebody may stop waiting.
    is_guarded: AtomicBool,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Starting,
    Running(Killer),
    /// Programs of ours outside of the sandbox, which are a group of their own.
    Group(Pid),
    Cancelled,
}

/// Ends the program when it is dropped.
#[derive(Debug)]
pub struct Guard(Cancel);

impl Cancel {
    pub fn guard(&self) -> Guard {
        self.0.is_guarded.store(true, Ordering::Release);
        Guard(self.clone())
    }

    /// Whether somebody may stop waiting; otherwise a terminal ends what it started.
    pub fn is_guarded(&self) -> bool {
        self.0.is_guarded.load(Ordering::Acquire)
    }

    /// The program runs: from here on it can be ended. If it is too late, it ends at once.
    pub fn hold(&self, killer: Killer) {
        self.set(State::Running(killer));
    }

    /// The same for a group of programs, as long as nobody has waited for its first one.
    pub fn hold_group(&self, group: Pid) {
        self.set(State::Group(group));
    }

    /// What was held ends by itself.
    pub fn release(&self) {
        self.set(State::Starting);
    }

    fn set(&self, new: State) {
        let mut state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        match &*state {
            State::Cancelled => new.end(),
            _ => *state = new,
        }
    }

    /// Whether nobody waits for it any more.
    pub fn is_cancelled(&self) -> bool {
        let state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        matches!(*state, State::Cancelled)
    }
}

impl State {
    fn end(&self) {
        match self {
            // Nothing happens to a program that has ended by itself.
            Self::Running(killer) => killer.kill(),
            Self::Group(group) => drop(kill_process_group(*group, Signal::KILL)),
            Self::Starting | Self::Cancelled => {}
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let mut state = self.0.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *state, State::Cancelled).end();
    }
}
