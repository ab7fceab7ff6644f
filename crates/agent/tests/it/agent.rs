//! Turns of an agent: with a model that follows a script, and everything else as it is.

mod chat;
mod fences;
mod forks;
mod host_plants;
mod host_tools;
mod host_writes;
mod node;
mod skill_tools;
mod stage;
mod turn;
