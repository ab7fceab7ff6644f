//! Behaviour of the program: commands are run as a person would run them.

#[cfg(unix)]
mod admin;
#[cfg(unix)]
mod agent;
mod approval;
mod bad_input;
mod chat;
mod check;
#[cfg(unix)]
mod clients;
#[cfg(unix)]
mod cluster;
mod convert;
#[cfg(unix)]
mod crash_recovery;
#[cfg(unix)]
mod disclosure;
mod documentation;
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
#[cfg(target_os = "linux")]
mod mcp;
#[cfg(unix)]
mod migrate;
mod models;
#[cfg(unix)]
mod openapi;
mod other_commands;
#[cfg(unix)]
mod outside;
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
mod registry_life;
#[cfg(unix)]
mod registry_ops;
#[cfg(target_os = "linux")]
mod run;
#[cfg(unix)]
mod scan;
mod serve;
mod server_faults;
#[cfg(target_os = "linux")]
mod skill_tools;
#[cfg(unix)]
mod stop;
mod support;
mod tools;
#[cfg(unix)]
mod trust;
#[cfg(unix)]
mod workflow;
