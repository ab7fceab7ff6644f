//! Skills are installed, updated, removed and taken back, in folders of a test.

pub(crate) mod bench;
mod change;
mod dead;
mod full;
mod install;
mod undo;
mod verify;
