//! Cancels a running program when its caller stops waiting.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use rustix::process::{Pid, Signal, kill_process_group};
use savoir_sandbox::KillHandle;

/// Shared by the thread that runs a program and the caller that waits for it.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    /// Whether the caller may stop waiting.
    is_guarded: AtomicBool,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Starting,
    Running(KillHandle),
    /// A process group of programs that Savoir starts outside of the sandbox, such as installers.
    Group(Pid),
    Cancelled,
}

/// Ends the program when it is dropped.
#[derive(Debug)]
pub struct CancelOnDrop(Cancel);

impl Cancel {
    pub fn cancel_on_drop(&self) -> CancelOnDrop {
        self.0.is_guarded.store(true, Ordering::Release);
        CancelOnDrop(self.clone())
    }

    /// Whether the caller may stop waiting. Otherwise only Ctrl-C in the terminal ends the program.
    pub fn is_guarded(&self) -> bool {
        self.0.is_guarded.load(Ordering::Acquire)
    }

    /// Sets the running program, which can be killed from now on. If the run is already cancelled,
    /// kills it immediately.
    pub fn set_process(&self, kill_handle: KillHandle) {
        self.set(State::Running(kill_handle));
    }

    /// Sets a process group instead; valid until its first process is reaped.
    pub fn set_process_group(&self, group: Pid) {
        self.set(State::Group(group));
    }

    /// Forgets the process, because it has ended.
    pub fn clear_process(&self) {
        self.set(State::Starting);
    }

    fn set(&self, new: State) {
        let mut state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        match &*state {
            State::Cancelled => new.end(),
            _ => *state = new,
        }
    }

    /// Whether the caller has stopped waiting.
    pub fn is_cancelled(&self) -> bool {
        let state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        matches!(*state, State::Cancelled)
    }
}

impl State {
    fn end(&self) {
        match self {
            // Has no effect on a program that has already ended.
            Self::Running(kill_handle) => kill_handle.kill(),
            Self::Group(group) => drop(kill_process_group(*group, Signal::KILL)),
            Self::Starting | Self::Cancelled => {}
        }
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        let mut state = self.0.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *state, State::Cancelled).end();
    }
}
