//! The client of a registry.
//!
//! - [`Name`] is what a published skill is called: `pdf`, or `acme/pdf`.
//! - [`wire`] is what goes over the line, for those who ask and for those who answer.
//! - [`Client`] asks one registry. It holds every file to its digest before it is unpacked, keeps what
//!   it has learnt, and can live on that without a network.
//! - [`Registries`] are several in an order. A name is looked up in the one that it belongs to, so
//!   that nobody can slip in a skill of the same name elsewhere.
//! - [`gather`] is what `install` and `update` call: it chooses versions that go together from
//!   registries and from what is installed, and fetches what is not there yet.
//! - [`look`] tells whether there is something newer than what is installed from registries.
//! - [`mirror`] copies a registry into a folder that any web server can serve.

mod cache;
mod client;
mod concurrency;
mod error;
mod gather;
mod http;
mod known_packages;
pub mod mirror;
mod name;
mod registries;
mod settings;
mod updates;
pub mod wire;

pub(crate) use client::kept_line;
pub use client::{Client, Closure, Listing, Package, Sort, Yanked, canonical};
pub use error::{RegistryError, Release};
pub use gather::{GatherError, GatherNote, GatherRequest, GatheredSkills, RequestedSkill, gather};
pub use known_packages::KnownPackages;
pub(crate) use name::is_namespace;
pub use name::{Name, NameError};
pub use registries::{Registries, RegistryEntry};
pub use settings::{Network, PlainHttp, Settings, Token};
pub use updates::{PublishedStatus, check_registries, check_registries_for, check_still_available};
