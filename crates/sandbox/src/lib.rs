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
//!     Access, PathGrant, Policy, ProcessEnd, Sandbox, SandboxSupport, Stream, TRUSTED_PATH,
//!     find_program,
//! };
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // Not every machine supports the sandbox; `SandboxSupport` lists what is missing.
//! if !SandboxSupport::detect().sandbox.is_available() {
//!     return Ok(());
//! }
//! let outside = tempfile::tempdir()?;
//! let granted = outside.path().canonicalize()?.join("granted");
//! std::fs::create_dir(&granted)?;
//! std::fs::write(granted.join("a.txt"), "seen")?;
//! std::fs::write(outside.path().join("b.txt"), "not seen")?;
//!
//! let cat = find_program("cat", &TRUSTED_PATH.map(PathBuf::from)).ok_or("there is no cat")?;
//! let policy = Policy {
//!     paths: vec![PathGrant::scratch("/tmp"), PathGrant::read(&granted)],
//!     programs: vec![cat.clone()],
//!     directory: granted.clone(),
//!     ..Policy::default()
//! };
//! assert_eq!(policy.access_to(&granted.join("a.txt")), Some(Access::Read));
//!
//! let arguments = ["a.txt", "../b.txt"].map(str::to_owned);
//! let mut printed = Vec::new();
//! let outcome = Sandbox::new(policy)?.start(&cat, &arguments)?.communicate(b"", |stream, bytes| {
//!     if stream == Stream::Output {
//!         printed.extend_from_slice(bytes);
//!     }
//! });
//! // The granted file exists, the other one does not, so `cat` fails.
//! assert_eq!(printed, b"seen");
//! assert_eq!(outcome.end, ProcessEnd::Exited(1));
//! # Ok(())
//! # }
//! ```
//!
//! The modules:
//!
//! - `policy` is the input, `outcome` the result, and `error` the reasons why nothing was started;
//!   [`limits`] lists every numeric limit with its reason.
//! - `program_files` finds the files that a program needs to start by reading the program: its loader,
//!   libraries and interpreter. A file that is not in the [`ProgramFiles`] does not exist in the
//!   sandbox, so the loader cannot run it either.
//! - `environment` builds the environment variables; a [`Variable::Masked`] appears inside the
//!   sandbox as a placeholder.
//! - `host` parses host names in exactly one way. `proxy` is the only connection to the network: it
//!   allows or refuses every request, including requests inside TLS, and records a [`HostEvent`]
//!   for each.
//! - `linux` builds the sandbox from namespaces, a new root file system, Landlock, a system call
//!   filter and limits, and supervises the process. `macos` uses `sandbox-exec` instead; on other
//!   systems, `other` refuses to start anything.
//! - `allocator` is for servers: [`release_free_memory`].
//! - `support` finds out which sandbox features this machine supports, by trying them.
//!
//! `docs/concepts/security.md` lists the attacks that the sandbox does not stop.

#![deny(missing_docs)]
// On systems without a sandbox, most of this code is unused.
#![cfg_attr(
    not(all(target_os = "linux", not(savoir_other_system))),
    allow(dead_code, unused_imports)
)]

mod allocator;
mod environment;
mod error;
mod host;
pub mod limits;
#[cfg(all(target_os = "linux", not(savoir_other_system)))]
mod linux;
#[cfg(any(target_os = "macos", test))]
#[cfg_attr(not(target_os = "macos"), allow(dead_code, unreachable_pub, unused_imports))]
mod macos;
#[cfg(any(savoir_other_system, not(any(target_os = "linux", target_os = "macos"))))]
mod other;
mod outcome;
mod policy;
mod program_files;
mod proxy;
mod support;

#[cfg(all(target_os = "linux", not(savoir_other_system)))]
use linux as platform;
#[cfg(all(target_os = "macos", not(savoir_other_system)))]
use macos as platform;
#[cfg(any(savoir_other_system, not(any(target_os = "linux", target_os = "macos"))))]
use other as platform;

pub use allocator::release_free_memory;
pub use error::SandboxError;
pub use host::{Host, HostError, HostPattern, is_public};
pub use outcome::{Enforcement, FileEvents, LimitMechanism, MovedFile, Outcome, ProcessEnd};
pub use platform::{KillHandle, Process, Sandbox, Stream};
pub use policy::{
    Access, CountedMemory, ExtraPrograms, HostGrant, Limits, MethodGroup, Mount, Network,
    PathGrant, Policy, RecordOpenedFiles, Scheme, Secret, TerminalSize, Variable,
};
pub use program_files::{
    FileUse, FolderContents, ProgramFiles, ProgramFilesError, TRUSTED_PATH, find_program,
};
pub use proxy::{HostEvent, Refusal, TrappedRequest, Verdict};
pub use support::{FeatureStatus, MissingFeature, RunnableTools, SandboxSupport, lacks_landlock};
