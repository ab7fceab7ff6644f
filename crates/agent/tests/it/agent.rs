//! Tests turns of an agent with a scripted model; all other parts are real.

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
