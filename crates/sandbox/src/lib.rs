//! The cage: one program, with the files, hosts, programs and limits of a [`Policy`], and nothing
//! else. It knows nothing of skills.

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
mod outcome;
mod policy;
mod proxy;
mod support;

pub use closure::{Closure, ClosureError, Contents, Kind, TRUSTED_PATH, find};
pub use error::SandboxError;
pub use host::{Host, HostError, HostPattern};
pub use linux::{Killer, Process, Sandbox, Stream};
pub use outcome::{End, Enforcement, FileEvents, LimitedBy, Outcome};
pub use policy::{
    Access, Counted, HostGrant, Limits, Methods, Network, PathGrant, Policy, Scheme, Secret,
    Variable, Watch,
};
pub use proxy::{HostEvent, Refusal, Verdict};
pub use support::{Level, Missing, Part, Support, landlock};
