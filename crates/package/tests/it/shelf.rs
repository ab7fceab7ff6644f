//! Skills are installed, updated, removed and taken back, in folders of a test.

mod bench;
mod change;
mod dead;
mod full;
mod gaia;
mod install;
mod undo;
mod verify;
