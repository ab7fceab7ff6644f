//! The cage: one program, with the files, hosts, programs and limits of a [`Policy`], and nothing
//! else. It knows nothing of skills.
//!
//! A [`Policy`] says what there is. [`Sandbox::new`] works out what the programs of the policy need
//! to start, [`Sandbox::start`] starts one of them, and the [`Process`] ends in an [`Outcome`]:
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
//! The rooms:
//!
//! - `policy` is what goes in, `outcome` what comes out, `error` why nothing started; [`limits`] has
//!   every number with its reason.
//! - `closure` finds what a program needs to start, by reading it: loader, libraries, interpreter.
//!   What is not in the [`Closure`] is not in the sandbox, so the loader cannot run it either.
//! - `environment` builds the variables; a [`Variable::Masked`] is a placeholder inside.
//! - `host` reads the names of hosts in one way only; `proxy` is the only door to the network, and
//!   decides about every request, inside TLS, too. It writes down a [`HostEvent`] for each.
//! - `linux` builds the sandbox from namespaces, a root of its own, Landlock, a filter of system
//!   calls and limits, and watches the process. On other systems `other` stands in its place and
//!   refuses.
//! - `memory` is for servers: [`give_memory_back`].
//! - `support` tells what this machine can hold, by trying it.
//!
//! What none of this stops is written down in `docs/concepts/security.md`.

#![deny(missing_docs)]
// Where there is no sandbox, most of what it is made of has no use.
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
