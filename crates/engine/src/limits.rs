//! Numeric limits of the engine, each with its reason.

/// The range of gibb.eri.sh.
pub const MIN_TOOL_SECONDS: u32 = 1;
/// The range of gibb.eri.sh.
pub const MAX_TOOL_SECONDS: u32 = 300;

/// Moved files that are listed for the user.
pub const MAX_REPORTED_FILES: usize = 20;

/// Maximum time limit that the user may set.
pub const MAX_USER_SECONDS: u32 = 86_400;

/// Files that a pattern may stand for; each one is a mount.
pub const MAX_EXPANDED_FILES: usize = 1024;

/// Maximum number of files of a skill that can be approved: a user cannot review more, and hashing
/// takes time.
pub const MAX_SKILL_FILES: usize = 20_000;

/// Bytes of a skill that can be approved.
pub const MAX_SKILL_BYTES: u64 = 256 << 20;

/// Maximum depth of the folders of a skill.
pub const MAX_SKILL_DEPTH: usize = 32;

/// Files of a skill that an approval names one by one.
pub const MAX_NAMED_FILES: usize = 200;

/// Minimum length of secrets that are masked: shorter ones would match ordinary text.
pub const MIN_MASKED_SECRET_BYTES: usize = 6;

/// Maximum number of files that are examined as scripts, for a skill without tools.
pub const MAX_SCRIPTS: usize = 256;
