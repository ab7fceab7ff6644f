//! Limits of the language server, each with its reason.

/// Largest message of a client, in bytes. A didOpen has at most one file; SKILL.md may have one
/// mebibyte, which JSON escapes make six times as large.
pub(crate) const MAX_MESSAGE_BYTES: usize = 16 * 1024 * 1024;

/// Longest header line. Real ones have below 40 bytes.
pub(crate) const MAX_HEADER_BYTES: u64 = 1024;

/// Messages that are read ahead, so that cancellations are seen before the requests they cancel.
pub(crate) const MAX_QUEUED_MESSAGES: usize = 1024;

/// Skills of all workspace folders that are indexed. The rest is found when it is opened.
pub(crate) const MAX_INDEXED_SKILLS: usize = 50_000;

/// Bytes at the start of a SKILL.md that the index reads: the largest frontmatter and its fences.
pub(crate) const MAX_INDEXED_BYTES: u64 = 68 * 1024;

/// Places of one skill that references and rename return.
pub(crate) const MAX_MENTIONS: usize = 5_000;

/// Items of one completion list.
pub(crate) const MAX_COMPLETIONS: usize = 500;

/// Age of the list of files beside a SKILL.md before it is read again. Editors report changes of
/// files, but not all of them.
pub(crate) const FOLDER_AGE: std::time::Duration = std::time::Duration::from_secs(2);

/// Largest file beside a skill that is searched for mentions.
pub(crate) const MAX_SEARCHED_BYTES: u64 = 1024 * 1024;
