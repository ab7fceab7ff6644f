//! Limits the data rate of a run.

use std::{
    sync::{Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use super::connections::Connections;
use crate::limits;

/// The time after which a waiting connection checks whether the proxy is stopping.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// The data rate that all connections of a run share.
///
/// Only the time until which earlier data occupies the rate is stored. A run that was idle for a
/// while may transfer [`limits::BANDWIDTH_BURST`] at once.
#[derive(Debug)]
pub(super) struct Bandwidth {
    occupied_until: Mutex<Instant>,
}

impl Default for Bandwidth {
    fn default() -> Self {
        Self { occupied_until: Mutex::new(Instant::now()) }
    }
}

impl Bandwidth {
    /// Waits until the rate permits this many bytes, or until the proxy stops.
    pub(super) fn wait_for(&self, bytes: usize, connections: &Connections) {
        let end = self.reserve(bytes, Instant::now());
        while let Some(left) = end.checked_duration_since(Instant::now()) {
            if left.is_zero() || connections.is_stopping() {
                break;
            }
            thread::sleep(left.min(CHECK_INTERVAL));
        }
    }

    /// Reserves the rate for these bytes and returns the time at which they may be transferred.
    fn reserve(&self, bytes: usize, now: Instant) -> Instant {
        let nanoseconds = bytes as u64 * 1_000_000_000 / limits::BYTES_PER_SECOND;
        let duration = Duration::from_nanos(nanoseconds);
        let mut occupied_until = self.occupied_until.lock().unwrap_or_else(PoisonError::into_inner);
        *occupied_until = (*occupied_until).max(now) + duration;
        occupied_until.checked_sub(limits::BANDWIDTH_BURST).unwrap_or(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_beyond_the_burst_waits() {
        let bandwidth = Bandwidth::default();
        let second = limits::BYTES_PER_SECOND as usize;
        let start = Instant::now();
        // Three transfers at once, and one three seconds later.
        for (bytes, now, expected) in
            [(second / 8, 0, 0), (second, 0, 875), (second / 8, 0, 1000), (1, 3000, 0)]
        {
            let now = start + Duration::from_millis(now);
            let wait = bandwidth.reserve(bytes, now).saturating_duration_since(now);
            assert_eq!(wait, Duration::from_millis(expected), "{bytes}");
        }
    }
}
