//! Runs one program in a sandbox that has only the files, hosts, programs and limits of a
//! [`Policy`]. This crate knows nothing about skills.
//!
//! A [`Policy`] lists everything that the sandbox contains. [`Sandbox::new`] works out which files
//! the programs of the policy need to start, [`Sandbox::start`] starts one of them, and the
//! [`Process`] ends with an [`Outcome`]:
//!
//! ```
//! use std::path::PathBuf;
//!
//! use savoir_sandbox::{
//!     Access, End, PathGrant, Policy, Sandbox, Stream, Support, TRUSTED_PATH, find,
//! };
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // Not every machine can hold a sandbox; `Support` tells what is missing.
//! if !Support::examine().sandbox.is_held() {
//!     return Ok(());
//! }
//! let outside = tempfile::tempdir()?;
//! let granted = outside.path().canonicalize()?.join("granted");
//! std::fs::create_dir(&granted)?;
//! std::fs::write(granted.join("a.txt"), "seen")?;
//! std::fs::write(outside.path().join("b.txt"), "not seen")?;
//!
//! let cat = find("cat", &TRUSTED_PATH.map(PathBuf::from)).ok_or("there is no cat")?;
//! let policy = Policy {
//!     paths: vec![PathGrant::private("/tmp"), PathGrant::read(&granted)],
//!     programs: vec![cat.clone()],
//!     directory: granted.clone(),
//!     ..Policy::default()
//! };
//! assert_eq!(policy.access(&granted.join("a.txt")), Some(Access::Read));
//!
//! let words = ["a.txt", "../b.txt"].map(str::to_owned);
//! let mut printed = Vec::new();
//! let outcome = Sandbox::new(policy)?.start(&cat, &words)?.drive(b"", |stream, bytes| {
//!     if stream == Stream::Output {
//!         printed.extend_from_slice(bytes);
//!     }
//! });
//! // What was granted is there, what was not does not exist: so `cat` complains.
//! assert_eq!(printed, b"seen");
//! assert_eq!(outcome.end, End::Exited(1));
//! # Ok(())
//! # }
//! ```
//!
//! The modules:
//!
//! - `policy` is the input, `outcome` the result, and `error` the reasons why nothing was started;
//!   [`limits`] lists every numeric limit with its reason.
//! - `closure` finds the files that a program needs to start by reading the program: its loader,
//!   libraries and interpreter. A file that is not in the [`Closure`] does not exist in the
//!   sandbox, so the loader cannot run it either.
//! - `environment` builds the environment variables; a [`Variable::Masked`] appears inside the
//!   sandbox as a placeholder.
//! - `host` parses host names in exactly one way. `proxy` is the only connection to the network: it
//!   allows or refuses every request, including requests inside TLS, and records a [`HostEvent`]
//!   for each.
//! - `linux` builds the sandbox from namespaces, a new root file system, Landlock, a system call
//!   filter and limits, and supervises the process. Other systems compile `other` instead, which
//!   refuses to start anything.
//! - `memory` is for servers: [`give_memory_back`].
//! - `support` finds out which sandbox features this machine supports, by trying them.
//!
//! `docs/concepts/security.md` lists the attacks that the sandbox does not stop.

#![deny(missing_docs)]
// On systems without a sandbox, most of this code is unused.
#![cfg_attr(
    not(all(target_os = "linux", not(savoir_other_system))),
    allow(dead_code, unused_imports)
)]

mod closure;
mod environment;
mod error;
mod host;
pub mod limits;
#[cfg(all(target_os = "linux", not(savoir_other_system)))]
mod linux;
#[cfg(not(all(target_os = "linux", not(savoir_other_system))))]
#[path = "other.rs"]
mod linux;
mod memory;
mod outcome;
mod policy;
mod proxy;
mod support;

pub use closure::{Closure, ClosureError, Contents, Kind, TRUSTED_PATH, find};
pub use error::SandboxError;
pub use host::{Host, HostError, HostPattern, is_public};
pub use linux::{Killer, Process, Sandbox, Stream};
pub use memory::give_memory_back;
pub use outcome::{End, Enforcement, FileEvents, LimitedBy, Outcome, PutAside};
pub use policy::{
    Access, Counted, HostGrant, Limits, Methods, Mount, Network, PathGrant, Policy, Scheme, Secret,
    TerminalSize, Userland, Variable, Watch,
};
pub use proxy::{Caught, HostEvent, Refusal, Verdict};
pub use support::{Level, Missing, Part, Support, landlock};
