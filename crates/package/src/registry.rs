//! Implements the client of a skill registry.
//!
//! - [`Name`] is the name of a published skill: `pdf`, or `acme/pdf` with a namespace.
//! - [`wire`] defines the JSON messages that client and server exchange.
//! - [`Client`] talks to one registry. It checks the digest of every file before unpacking it,
//!   caches answers, and can work from the cache without a network.
//! - [`Registries`] is an ordered list of registries. A name is looked up only in the registry that
//!   it belongs to, so that no other registry can provide a skill of the same name.
//! - [`gather`] is called by `install` and `update`: it chooses compatible versions from registries
//!   and from installed skills, and fetches those that are missing.
//! - [`check_registries`] finds newer versions of skills that were installed from registries.
//! - [`mirror`] copies a registry into a folder that any web server can serve.

mod cache;
mod client;
pub(crate) mod concurrency;
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

pub(crate) use client::cached_index_line;
pub use client::{Client, Closure, Listing, Package, Sort, YankChange, canonical};
pub use error::{RegistryError, Release};
pub use gather::{GatherError, GatherNote, GatherRequest, GatheredSkills, RequestedSkill, gather};
pub use known_packages::KnownPackages;
pub(crate) use name::is_namespace;
pub use name::{Name, NameError};
pub use registries::{Registries, RegistryEntry};
pub use settings::{Network, PlainHttp, Settings, Token};
pub use updates::{PublishedStatus, check_registries, check_registries_for, check_still_available};
