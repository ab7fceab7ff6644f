//! Runs Python tools: the `tools.py` of GAIA skills and the Python handlers of OpenClaw actions.
//!
//! Python never runs in this process. [`host`] installs a small program that loads the module of
//! one skill; it is started in the sandbox, and [`protocol`] exchanges JSON with it over pipes.
//! [`environment`] installs the packages that a skill requires, outside the skill's folder;
//! [`requirement`] and [`version`] parse package requirements and version ranges.

pub mod environment;
pub mod host;
pub mod protocol;
pub mod requirement;
pub mod version;
