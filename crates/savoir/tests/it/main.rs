//! Behaviour of the program: commands are run as a person would run them.

mod approval;
mod bad_input;
mod check;
mod convert;
mod documentation;
mod generated;
mod other_commands;
#[cfg(target_os = "linux")]
mod protected;
#[cfg(target_os = "linux")]
mod run;
mod support;
mod tools;
