//! Installs, updates, removes and restores skills in temporary projects.

mod add_skills;
mod adopt;
mod crash_recovery;
mod disk_full;
mod gaia;
mod links;
mod lock_without_manifest;
mod many_skills;
mod orphans;
mod pulled_lock;
pub(crate) mod test_project;
mod undo;
mod update_and_remove;
mod updates;
mod verify;
mod write_order;
