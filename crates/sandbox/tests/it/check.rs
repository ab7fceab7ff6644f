//! Lists single operations, each of which the sandbox must make impossible.

pub(crate) mod calls;
mod files;
mod kernel;
mod limits;
mod processes;
mod programs;
mod protected;
mod sockets;

pub(crate) use self::{
    limits::MORE_PROCESSES,
    protected::{MOVED_ASIDE_CHECKS, PIPE_IN_PROTECTED},
};

use std::{env, io};

use crate::support::{NAME, SECRET, SETUP, Setup, print_result};

/// An operation.
#[derive(Clone, Copy)]
pub(crate) struct Check {
    pub(crate) name: &'static str,
    pub(crate) group: &'static str,
    pub(crate) outside: Outside,
    /// `Ok` means that the operation was possible.
    pub(crate) run: fn(&Setup) -> Result<(), String>,
}

/// Whether the operation is possible without the sandbox, which shows that the check works.
#[derive(Clone, Copy)]
pub(crate) enum Outside {
    /// It is possible for everyone.
    Possible,
    /// It is possible for root.
    Root(&'static str),
    /// It depends on the configuration of the kernel.
    Depends(&'static str),
}

const fn check(
    name: &'static str,
    group: &'static str,
    run: fn(&Setup) -> Result<(), String>,
) -> Check {
    Check { name, group, outside: Outside::Possible, run }
}

impl Check {
    const fn root(mut self, reason: &'static str) -> Self {
        self.outside = Outside::Root(reason);
        self
    }

    const fn depends(mut self, reason: &'static str) -> Self {
        self.outside = Outside::Depends(reason);
        self
    }
}

/// Checks for a program without network.
pub(crate) fn all() -> impl Iterator<Item = &'static Check> {
    let lists = [
        files::CHECKS,
        protected::CHECKS,
        programs::CHECKS,
        sockets::CHECKS,
        processes::CHECKS,
        kernel::CHECKS,
        limits::CHECKS,
    ];
    lists.into_iter().flatten()
}

/// Checks for a program that can connect to a host through the proxy.
pub(crate) fn with_hosts() -> impl Iterator<Item = &'static Check> {
    sockets::WITH_HOSTS.iter()
}

/// The program inside the sandbox: runs one check, and prints the result.
#[test]
#[ignore = "started by the suite"]
fn entry() {
    let Ok(name) = env::var(NAME) else { return };
    let setup: Setup = serde_json::from_str(&env::var(SETUP).unwrap()).unwrap();
    let check = all().chain(with_hosts()).find(|check| check.name == name).unwrap();
    match (check.run)(&setup) {
        Ok(()) => print_result("possible"),
        Err(reason) => print_result(&format!("not possible: {}", reason.replace('\n', " "))),
    }
}

/// Converts a result of the standard library to the result of a check.
fn done<T>(result: io::Result<T>) -> Result<(), String> {
    result.map(drop).map_err(|error| error.to_string())
}

/// Succeeds if these bytes contain the secret.
fn is_secret(bytes: io::Result<Vec<u8>>) -> Result<(), String> {
    contains(bytes, SECRET)
}

fn contains(bytes: io::Result<Vec<u8>>, text: &str) -> Result<(), String> {
    let bytes = bytes.map_err(|error| error.to_string())?;
    if bytes.windows(text.len()).any(|part| part == text.as_bytes()) {
        Ok(())
    } else {
        Err("something else is there".to_owned())
    }
}
