//! Integration tests of the agent.

#![expect(clippy::print_stderr, reason = "tests tell what they measured and what they left out")]

mod agent;
mod catalogues;
mod tokens;
