//! All size and count limits of this crate.

/// Largest archive that is read, in bytes. Real packages have some kilobytes.
pub const MAX_ARCHIVE_BYTES: u64 = 10 * 1024 * 1024;

/// Most entries of an archive: its files, its folders, and what archivers add.
pub const MAX_ENTRIES: usize = 2 * MAX_FILES;

/// How many times larger than its packed bytes something may become. Text shrinks to a tenth.
pub const MAX_RATIO: u64 = 100;
/// Up to this size, in bytes, the ratio does not matter: small tables of blanks shrink a lot.
pub const MAX_RATIO_FREE_BYTES: u64 = 1024 * 1024;

/// Most bytes of a tar, unpacked: the files of a skill, and for each entry a header and padding.
pub const MAX_TAR_BYTES: u64 = MAX_TREE_BYTES + MAX_ENTRIES as u64 * 2 * 1024;
/// Largest record of a tar that describes the next entry, in bytes. Paths and attributes fit.
pub const MAX_TAR_RECORD_BYTES: u64 = 64 * 1024;

/// Most bytes of a skill, unpacked. The MCP skills extension accepts 16 MiB.
pub const MAX_TREE_BYTES: u64 = 20 * 1024 * 1024;

/// Most files of a skill. The MCP skills extension accepts 512.
pub const MAX_FILES: usize = 2_000;

/// Largest single file of a skill, in bytes: fonts and sample documents fit.
pub const MAX_FILE_BYTES: u64 = 5 * 1024 * 1024;

/// Longest path inside a skill, in bytes, and its longest part: what every file system takes.
pub const MAX_PATH_BYTES: usize = 1_024;
/// Longest part of a path, in bytes.
pub const MAX_NAME_BYTES: usize = 255;
/// Deepest folder of a skill.
pub const MAX_DEPTH: usize = 16;

/// Most further signatures of a skill: each one costs time to check, and nobody needs more.
pub const MAX_SIGNATURES: usize = 16;

/// Longest signature that is kept beside a skill, in bytes: keys of OpenPGP make some kilobytes.
pub const MAX_SIGNATURE_RECORD_BYTES: usize = 16 * 1024;

/// Most tags of a published skill, and the longest one, in bytes: what an index can hold.
pub const MAX_TAGS: usize = 50;
/// Longest tag of a published skill, in bytes.
pub const MAX_TAG_BYTES: usize = 64;
/// Longest author of a published skill, in bytes: several names fit.
pub const MAX_AUTHOR_BYTES: usize = 256;
/// Longest description of a published skill, in characters: four times what the base format allows.
/// A page of a hundred skills must fit into an answer.
pub const MAX_PUBLISHED_DESCRIPTION: usize = 4_096;

/// Longest text of a signature that is shown, such as the name of a publisher, in bytes.
pub const MAX_SHOWN_BYTES: usize = 256;

/// Largest list of trusted keys, in bytes: OpenPGP keys have some kilobytes each.
pub const MAX_TRUST_STORE_BYTES: u64 = 16 * 1024 * 1024;

/// Most skills that one resolution looks at. The largest registries list some ten thousand.
pub const MAX_RESOLVED_SKILLS: usize = 20_000;
/// Most steps of one resolution: two for each skill where nothing conflicts, seconds in all.
pub const MAX_RESOLVE_STEPS: usize = 200_000;

/// Largest `savoir.toml`, `AGENT.yaml` and the like, in bytes: people write them by hand.
pub const MAX_MANIFEST_BYTES: u64 = 1024 * 1024;
/// Largest lock, in bytes: a thousand skills have half a megabyte.
pub const MAX_LOCK_BYTES: u64 = 16 * 1024 * 1024;

/// Largest ledger of another tool that is read, in bytes: ten thousand skills take four million.
pub const MAX_LEDGER_BYTES: u64 = 32 * 1024 * 1024;

/// Folders for categories in which skills may lie, one inside the other.
pub const MAX_CATEGORY_DEPTH: usize = 3;

/// Most bytes that a repository may put into its cache. Trees of large repositories have some
/// megabytes, and sixty thousand SKILL.md some hundred; servers that cannot leave files out send all
/// of one commit.
pub const MAX_REPOSITORY_BYTES: u64 = 2 * 1024 * 1024 * 1024;
/// Most bytes that git may print where the answer is a list: two million paths or refs.
pub const MAX_GIT_LIST_BYTES: usize = 256 * 1024 * 1024;
/// Bytes of files that are read from a repository at once: enough to start git seldom.
pub const MAX_READ_AT_ONCE: u64 = 16 * 1024 * 1024;
/// Most links of a repository that are looked at.
pub const MAX_LINKS: usize = 20_000;
/// Most links that the files of one skill may lead through.
pub const MAX_LINKS_IN_SKILL: usize = 1_000;
/// Most folders behind links that are looked through for skills.
pub const MAX_LINKED_FOLDERS: usize = 1_000;

/// Most commits that are looked through for the one from which another tool took a skill. Busy
/// collections have some hundreds in a year.
pub const MAX_PAST_COMMITS: usize = 500;
/// Most hosts and repositories that are asked at once whether they have something newer.
pub const MAX_ASKED_AT_ONCE: usize = 8;

/// Most entries of folders that are looked at to find skills: sixty thousand skills with some files
/// each.
pub const MAX_WALKED: usize = 2_000_000;

/// Largest index of a site, in bytes: a thousand skills with long descriptions.
pub const MAX_INDEX_BYTES: u64 = 2 * 1024 * 1024;

/// How often an address may send elsewhere: downloads behind two mirrors and a login page fit.
pub const MAX_REDIRECTS: usize = 5;

/// Most bytes that a registry says about one skill: ten thousand versions with some hundred bytes.
pub const MAX_PACKAGE_INDEX_BYTES: u64 = 8 * 1024 * 1024;
/// Most bytes that a registry says about skills and all that they need: five thousand skills.
pub const MAX_CLOSURE_BYTES: u64 = 64 * 1024 * 1024;
/// Most versions of one skill in a registry: one for every hour of a year.
pub const MAX_VERSIONS: usize = 10_000;
/// Most skills, permissions or tools that one version lists in a registry.
pub const MAX_LISTED: usize = 512;
/// Largest other answer of a registry, in bytes: a page of a hundred skills, or one with its text.
pub const MAX_ANSWER_BYTES: u64 = 4 * 1024 * 1024;
/// Most skills that one question for all that they need may name.
pub const MAX_CLOSURE_NAMES: usize = 100;
/// Longest address that is asked, in bytes: many servers read no more than eight thousand.
pub const MAX_ADDRESS_BYTES: usize = 6_000;
/// Most entries of one page of a registry.
pub const MAX_PAGE: usize = 1_000;
