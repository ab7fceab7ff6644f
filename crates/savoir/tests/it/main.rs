//! Tests the program by running its commands.

#[cfg(unix)]
mod admin;
#[cfg(unix)]
mod agent;
mod approval;
mod bad_input;
mod chat;
mod check;
#[cfg(unix)]
mod cli_faults;
#[cfg(unix)]
mod clients;
#[cfg(unix)]
mod cluster;
#[cfg(unix)]
mod context_list;
#[cfg(target_os = "linux")]
mod contracts;
mod convert;
#[cfg(unix)]
mod crash_recovery;
mod diff;
mod documentation;
#[cfg(target_os = "linux")]
mod eval;
mod generated;
#[cfg(unix)]
mod hostile_inputs;
mod install;
#[cfg(unix)]
mod kb;
#[cfg(unix)]
mod list;
#[cfg(unix)]
mod live_server;
#[cfg(unix)]
mod lookup;
#[cfg(unix)]
mod lsp;
#[cfg(target_os = "linux")]
mod mcp;
#[cfg(unix)]
mod migrate;
mod models;
#[cfg(unix)]
mod openapi;
mod other_commands;
mod personal;
#[cfg(target_os = "linux")]
mod protected;
#[cfg(unix)]
mod publish;
#[cfg(unix)]
mod registry;
#[cfg(unix)]
mod registry_conformance;
#[cfg(unix)]
mod registry_faults;
#[cfg(unix)]
mod registry_ops;
#[cfg(unix)]
mod registry_workflows;
#[cfg(target_os = "linux")]
mod run;
#[cfg(unix)]
mod scan;
mod serve;
mod server_faults;
#[cfg(unix)]
mod services;
#[cfg(target_os = "linux")]
mod skill_tools;
#[cfg(unix)]
mod stop;
mod support;
mod tools;
#[cfg(unix)]
mod trust;
#[cfg(unix)]
mod ui;
mod workflow;
#[cfg(target_os = "linux")]
mod write_faults;
