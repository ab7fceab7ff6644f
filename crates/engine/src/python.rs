//! Python tools: the `tools.py` of GAIA skills and the Python handlers of OpenClaw actions.
//!
//! Python never runs in our process. [`host`] installs a small program that loads the module of
//! one skill; it is started in the sandbox, and [`protocol`] talks to it over its pipes.
//! [`environment`] makes the packages that a skill requires, outside the skill's folder;
//! [`requirement`] and [`version`] are the two grammars that this needs.

pub mod environment;
pub mod host;
pub mod protocol;
pub mod requirement;
pub mod version;
