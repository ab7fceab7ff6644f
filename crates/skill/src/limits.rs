//! Defines the limits of this crate, with the reason for each.

pub use savoir_lint::MAX_FILE_BYTES;

/// Largest frontmatter that is parsed. Real ones stay below 8 KB; the rest of the file is body.
pub const MAX_FRONTMATTER_BYTES: usize = 64 * 1024;

/// Deepest nesting of YAML collections. Real frontmatter nests six levels deep.
pub const MAX_YAML_DEPTH: usize = 32;

/// Most YAML nodes after aliases are expanded, so that an alias bomb costs no more than a long list.
pub const MAX_YAML_NODES: usize = 10_000;

/// Most bytes of text that aliases may repeat: four times the largest frontmatter.
pub const MAX_REPEATED_BYTES: usize = 4 * MAX_FRONTMATTER_BYTES;

/// Most repairs that are tried on one frontmatter before it is given up as unreadable. Each repair
/// parses again, so this bounds the time that a hostile file can take.
pub const MAX_REPAIRS: usize = 24;

/// Most rounds of fixing: each round applies every fix that does not overlap another.
pub const MAX_FIX_ROUNDS: usize = 12;

/// Most findings that one rule reports for one file, so that a hostile file cannot flood a log.
pub const MAX_FINDINGS_PER_RULE: usize = 50;

/// Most files of one skill folder that are listed. The MCP skills extension accepts 512.
pub const MAX_FOLDER_FILES: usize = 2_000;

/// Deepest folder below a skill that is listed.
pub const MAX_FOLDER_DEPTH: usize = 16;

/// Longest link target that is looked at, in bytes; browsers refuse longer ones.
pub const MAX_LINK_BYTES: usize = 2048;

/// Longest description that the base format allows, in characters.
pub const MAX_DESCRIPTION_CHARS: usize = 1024;

/// Advice of the base format: a body below 500 lines ...
pub const ADVISED_BODY_LINES: usize = 500;

/// ... and below 5,000 tokens.
pub const ADVISED_BODY_TOKENS: usize = 5_000;

/// Deepest nesting of a Python expression, operators included. `CPython` stops at 200 brackets.
pub const MAX_PYTHON_DEPTH: usize = 1_000;

/// Most punctuation of a Python file that does not even split into words. It bounds how deep the
/// parser's recovery can go; a real module of a thousand lines has about this many marks.
pub const MAX_BROKEN_PYTHON_MARKS: usize = 20_000;
