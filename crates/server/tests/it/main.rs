//! Tests the server over TCP, each test with its own database and files.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![expect(clippy::print_stderr, reason = "a test says what it leaves out")]

mod accounts;
mod admin;
mod app_wishes;
mod bodies;
mod catalog;
mod chat;
mod contract;
mod cookies;
mod edges;
mod executions;
mod files;
mod flows;
mod harness;
mod history;
mod inspect;
mod knowledge;
mod limits;
mod many;
mod mcp;
mod model;
mod nodes;
mod openapi;
mod owners;
mod pages;
mod personal;
mod providers;
mod publish;
mod quotas;
mod recall;
mod registry;
mod registry_hostile;
mod registry_publish;
mod run;
mod scopes;
mod sessions;
mod setup;
mod skill_tools;
mod skills;
mod tokens;
mod vectors;
mod web;
mod workflows;
