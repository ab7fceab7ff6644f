//! The HTTP server: skills, chat, knowledge, workflows, a registry, MCP and the web app.
//!
//! - [`App`] is the shared state; [`router`] has all routes and their OpenAPI document; [`serve`] runs
//!   them until the process is asked to stop.
//! - `auth` has the extractors: authentication, request body and rate limit, in this order, for every
//!   route. `access` is the table of the scope and the limit of each route. `middleware` runs before
//!   and after every request: request id, global rate limit, metrics.
//! - `body` validates JSON bodies, `params` reads queries and paths, `error` is the one error type.
//! - `accounts` creates accounts, `keys` signs and verifies session tokens, `throttle` slows down
//!   password guessing, `client` finds the address of a client.
//! - `executions` starts workflows, `stream` turns engine events into server-sent events,
//!   `skill_lookup` finds the skills that a user can see, [`ToolRunner`] runs their tools.
//! - [`personal`] stores skills of users: import, export, lifecycle, catalog, integrations.
//! - `routes/registry` publishes and finds skills; `savoir_registry` has the search index and
//!   vetting.
//! - [`mcp`] is the MCP server, over HTTP and over standard input and output.
//! - `pages` are HTML pages, `readiness` checks whether requests can be served.
//! - `routes` has one file per resource. Handlers hold no logic: they call the engine.

#![forbid(unsafe_code)]

mod access;
mod accounts;
mod app;
mod auth;
mod body;
mod client;
mod config;
mod error;
mod executions;
mod keys;
mod library;
mod limits;
pub mod mcp;
mod metrics;
mod middleware;
mod pages;
mod params;
pub mod personal;
mod readiness;

mod routes;
mod run;
mod skill_lookup;
mod stream;
mod throttle;
mod tool_runner;
mod write_timeout;

pub use accounts::{AccountError, Email, create_account};
pub use app::App;
pub use config::{CatalogConfig, Config, RateLimits, Readers, Registration, RegistryConfig};
pub use keys::rotate as rotate_signing_key;

pub use routes::{openapi, router, setup_link};
pub use run::serve;
pub use savoir_store::Quotas;
pub use tool_runner::{ReadFolder, ToolRunner};
