//! Tests how runs end, what they output, what is recorded about them, and which policies are
//! refused.

mod ends;
mod errors;
mod execute;
mod files;
mod role;

use std::{
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

use savoir_sandbox::{KillHandle, Policy, Process, Sandbox};

use crate::support;

/// A policy for a role, which can see only the test binary.
fn policy(role: &str, setup: &str) -> Policy {
    let mut policy =
        Policy { programs: vec![support::binary()], directory: "/".into(), ..Policy::default() };
    policy.limits.wall = Some(Duration::from_secs(20));
    support::set_check_variables(&mut policy, role, setup);
    policy
}

/// Starts a role; the marker is one of its arguments.
fn start(policy: Policy, marker: &str) -> Process {
    let mut arguments = support::entry_arguments("behaviour::role::entry");
    arguments.push(marker.to_owned());
    Sandbox::new(policy).unwrap().start(&support::binary(), &arguments).unwrap()
}

/// A word that occurs on no other command line.
fn marker() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("savoir-marker-{}-{number}-", std::process::id())
}

/// Waits until a condition is true.
fn wait_until(timeout: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    while !condition() {
        if start.elapsed() > timeout {
            return false;
        }
        thread::sleep(Duration::from_millis(5));
    }
    true
}

/// Kills a run after some time, so that it cannot block the tests.
fn end_after(kill_handle: KillHandle, time: Duration) {
    thread::spawn(move || {
        thread::sleep(time);
        kill_handle.kill();
    });
}

fn read_text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}
