//! Tracks which sessions are in use, so that idle ones are closed first.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use rmcp::transport::streamable_http_server::SessionId;

/// How long a session must be idle before it may be closed for another one.
const MIN_IDLE_TIME: Duration = Duration::from_mins(1);

/// The activity in the sessions of one caller.
#[derive(Clone, Debug, Default)]
pub(super) struct SessionActivity(Arc<Mutex<HashMap<SessionId, LastActivity>>>);

#[derive(Clone, Copy, Debug)]
struct LastActivity {
    /// Requests whose responses are not complete.
    open: usize,
    last: Instant,
}

/// A request in a session, until its response is complete.
#[derive(Debug)]
pub(super) struct SessionRequest {
    visits: SessionActivity,
    session: SessionId,
}

impl SessionActivity {
    /// Records the start of a request in a session.
    pub(super) fn begin(&self, session: SessionId) -> SessionRequest {
        let mut seen = self.seen();
        let last = Instant::now();
        seen.entry(session.clone()).or_insert(LastActivity { open: 0, last }).open += 1;
        SessionRequest { visits: self.clone(), session }
    }

    /// The session that is idle for the longest time, if that is long enough. Drops the records of
    /// all sessions that are not in the list.
    pub(super) fn longest_idle(&self, sessions: &[SessionId], now: Instant) -> Option<SessionId> {
        let mut seen = self.seen();
        seen.retain(|session, seen| seen.open > 0 || sessions.contains(session));
        let idle = seen.iter().filter(|(session, seen)| {
            let silent = now.saturating_duration_since(seen.last) >= MIN_IDLE_TIME;
            seen.open == 0 && silent && sessions.contains(session)
        });
        idle.min_by_key(|(_, seen)| seen.last).map(|(session, _)| session.clone())
    }

    fn seen(&self) -> MutexGuard<'_, HashMap<SessionId, LastActivity>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for SessionRequest {
    fn drop(&mut self) {
        if let Some(seen) = self.visits.seen().get_mut(&self.session) {
            seen.open = seen.open.saturating_sub(1);
            seen.last = Instant::now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longest_idle_session_is_closed() {
        let visits = SessionActivity::default();
        let [a, b, gone] = ["a", "b", "gone"].map(SessionId::from);
        let both = [a.clone(), b.clone()];
        drop(visits.begin(gone));
        let reading = visits.begin(a.clone());
        drop(visits.begin(b.clone()));
        let later = Instant::now() + MIN_IDLE_TIME;
        assert_eq!(visits.longest_idle(&both, Instant::now()), None, "they have just come");
        assert_eq!(
            visits.longest_idle(&both, later),
            Some(b.clone()),
            "somebody waits for an answer"
        );
        drop(reading);
        assert_eq!(visits.longest_idle(&both, Instant::now() + MIN_IDLE_TIME), Some(b.clone()));
        drop(visits.begin(b));
        assert_eq!(visits.longest_idle(&both, Instant::now() + MIN_IDLE_TIME), Some(a));
        assert_eq!(visits.longest_idle(&[], later), None);
        assert!(visits.seen().is_empty(), "what ended is forgotten");
    }
}
