//! Skills are installed, updated, removed and taken back, in folders of a test.

mod adopt;
pub(crate) mod bench;
mod change;
mod dead;
mod full;
mod gaia;
mod install;
mod links;
mod many;
mod orphans;
mod power;
mod pulled;
mod unasked;
mod undo;
mod updates;
mod verify;
