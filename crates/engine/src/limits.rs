//! Bounds of the engine, each with its reason.

/// The range of gibb.eri.sh.
pub const MIN_SECONDS: u32 = 1;
/// The range of gibb.eri.sh.
pub const MAX_SECONDS: u32 = 300;

/// Files that were put aside of which a person reads.
pub const MAX_TOLD: usize = 20;

/// Seconds that a person may give a run.
pub const MAX_GIVEN_SECONDS: u32 = 86_400;

/// Files that a pattern may stand for; each one is a mount.
pub const EXPANDED_FILES: usize = 1024;

/// Files of a skill that can be approved: a person cannot judge more, and hashing takes time.
pub const SKILL_FILES: usize = 20_000;

/// Bytes of a skill that can be approved.
pub const SKILL_BYTES: u64 = 256 << 20;

/// How deep the folders of a skill may be.
pub const SKILL_DEPTH: usize = 32;

/// Files of a skill that an approval names one by one.
pub const NAMED_FILES: usize = 200;

/// Secrets below this length are not looked for in texts: too much else looks like them.
pub const SECRET_BYTES: usize = 6;

/// Files of a skill without tools that are looked at as scripts.
pub const SCRIPTS: usize = 256;
