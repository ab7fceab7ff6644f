//! The house: skills, chat, knowledge and workflows over HTTP.
//!
//! - [`App`] is everything that a request may need; [`router`] is all routes with their OpenAPI
//!   document; [`serve`] runs it until it is told to stop.
//! - `asked` is the way in: authentication, the shape of the body and the rate limit, in this order,
//!   for every route. `access` is the table of what each route needs. `body` holds JSON against its
//!   shape, and `error` is what goes wrong, in the words of the contract.
//! - `flows` begins workflows. `keys` signs and reads tokens. `accounts` makes accounts, and
//!   `throttle` slows guesses at their passwords down. `client` tells where a request comes from,
//!   `params` what its address says.
//! - `pages` are for people: the first start, and the documentation. `shelf` is the skills as one
//!   person sees them. `stream` turns events into an answer. `around` is what happens before and
//!   after every request. `readiness` is whether any can be served.
//! - [`personal`] is what is known of people's skills besides their files: how they come, go and grow
//!   old. `library` is where their agents find them, [`Workshop`] where tools of skills run.
//! - `registry` is where skills are published and found; `registry::search` finds them.
//! - [`mcp`] is the door for agents of others.
//! - `routes` has one file for each part of the contract. A route holds no logic: the engine does.

#![deny(missing_docs)]
#![forbid(unsafe_code)]

mod access;
mod accounts;
mod app;
mod around;
mod asked;
mod body;
mod client;
mod config;
mod error;
mod flows;
mod impatient;
mod keys;
mod library;
mod limits;
pub mod mcp;
mod metrics;
mod pages;
mod params;
pub mod personal;
mod readiness;
mod registry;
mod routes;
mod run;
mod shelf;
mod stream;
mod throttle;
mod workshop;

pub use accounts::{AccountError, Email, create_account};
pub use app::App;
pub use config::{CatalogConfig, Config, RateLimits, Readers, Registration, RegistryConfig};
pub use keys::rotate as rotate_signing_key;
pub use registry::facts_of;
pub use routes::{openapi, router, setup_link};
pub use run::serve;
pub use savoir_store::Quotas;
pub use workshop::{ReadFolder, Workshop};
