//! The HTTP server: skills, chat, knowledge, workflows, a registry, MCP and the web app.
//!
//! - [`App`] is the shared state; [`router`] has all routes and their OpenAPI document; [`serve`] runs
//!   them until the process is asked to stop.
//! - `auth` has the extractors: authentication, request body and rate limit, in this order, for every
//!   route. `access` is the table of the scope and the limit of each route. `middleware` runs before
//!   and after every request: request id, global rate limit, metrics.
//! - `body` validates JSON bodies, `params` reads queries and paths, `error` is the one error type.
//! - `accounts` creates accounts, `keys` signs and verifies session tokens, `session_cookie` is how
//!   the web app sends them, `throttle` slows down password guessing, `client` finds the address of
//!   a client.
//! - `run_history` records everything that runs. `executions` starts workflows, `stream` turns
//!   engine events into server-sent events, `providers` keeps the models that administrators add,
//!   `prices` what they cost.
//!   `skill_lookup` finds the skills that a user can see, `insight` describes them, `skill_scan`
//!   scans them, [`ToolRunner`] runs their tools, `questions` asks users about these.
//! - [`personal`] stores skills of users: import, export, lifecycle, catalog, integrations.
//! - `routes/registry` publishes and finds skills; `savoir_registry` has the search index and
//!   vetting.
//! - [`mcp`] is the MCP server, over HTTP and over standard input and output.
//! - [`LogTail`] keeps the newest lines of the log. `web` serves the web app, `pages` are HTML pages without scripts, `readiness` checks whether
//!   requests can be served.
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
mod examples;
mod executions;
mod insight;
mod keys;
mod library;
mod limits;
mod log_tail;
pub mod mcp;
mod metrics;
mod middleware;
mod oidc;
mod pages;
mod params;
pub mod personal;
mod prices;
mod providers;
mod questions;
mod readiness;
mod routes;
mod run;
mod run_history;
mod session_cookie;
mod skill_lookup;
mod skill_scan;
mod stream;
mod throttle;
mod tool_runner;
mod web;
mod write_timeout;

pub use accounts::{AccountError, Email, create_account};
pub use app::App;
pub use config::{CatalogConfig, Config, RateLimits, Readers, Registration, RegistryConfig};
pub use examples::install_examples;
pub use keys::rotate as rotate_signing_key;
pub use log_tail::{LogLine, LogTail};
pub use oidc::{IssuerError, OidcConfig};
pub use routes::{openapi, router, setup_link};
pub use run::serve;
pub use savoir_store::Quotas;
pub use tool_runner::{ReadFolder, ToolRunner};
pub use web::web_app;
