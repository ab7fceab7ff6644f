//! All size and count limits of this crate.

/// Maximum size of an archive, in bytes. Real packages have some kilobytes.
pub const MAX_ARCHIVE_BYTES: u64 = 10 * 1024 * 1024;

/// Maximum entries of an archive: files, folders, and files that archivers add.
pub const MAX_ENTRIES: usize = 2 * MAX_FILES;

/// Maximum ratio of unpacked to packed size. Text typically shrinks to a tenth.
pub const MAX_RATIO: u64 = 100;
/// Below this unpacked size, in bytes, the ratio is not checked: small tables of spaces shrink a
/// lot.
pub const MAX_RATIO_FREE_BYTES: u64 = 1024 * 1024;

/// Maximum unpacked size of a tar, in bytes: the files of a skill, and a header and padding per
/// entry.
pub const MAX_TAR_BYTES: u64 = MAX_TREE_BYTES + MAX_ENTRIES as u64 * 2 * 1024;
/// Maximum size of a tar record that describes the next entry, in bytes.
pub const MAX_TAR_RECORD_BYTES: u64 = 64 * 1024;

/// Maximum unpacked size of a skill, in bytes. The MCP skills extension accepts 16 MiB.
pub const MAX_TREE_BYTES: u64 = 20 * 1024 * 1024;

/// Maximum files of a skill. The MCP skills extension accepts 512.
pub const MAX_FILES: usize = 2_000;

/// Maximum size of one file of a skill, in bytes: fonts and sample documents fit.
pub const MAX_FILE_BYTES: u64 = 5 * 1024 * 1024;

/// Maximum length of a path inside a skill, in bytes. All file systems support it.
pub const MAX_PATH_BYTES: usize = 1_024;
/// Maximum length of a component of a path, in bytes.
pub const MAX_NAME_BYTES: usize = 255;
/// Maximum depth of folders in a skill.
pub const MAX_DEPTH: usize = 16;

/// Largest signed evaluation that is read, in bytes: it names cases and the prompt of a judge.
pub const MAX_EVALUATION_BYTES: u64 = 1024 * 1024;
/// Maximum length of a text in a signed evaluation, such as a model or a case, in bytes.
pub const MAX_EVALUATION_TEXT: usize = 512;
/// Most signed evaluations of a skill that are shown.
pub const MAX_EVALUATIONS: usize = 100;
/// Most files with signed evaluations that are searched for those of trusted keys.
pub const MAX_EVALUATION_FILES: usize = 1_000;
/// Most keys whose evaluations a registry is asked for, so that the URL stays short.
pub const MAX_EVALUATION_KEYS: usize = 50;

/// Maximum additional signatures of a skill, because each costs time to verify.
pub const MAX_SIGNATURES: usize = 16;

/// Maximum size of a signature stored beside a skill, in bytes: OpenPGP keys have some kilobytes.
pub const MAX_SIGNATURE_RECORD_BYTES: usize = 16 * 1024;

/// Maximum tags of a published skill.
pub const MAX_TAGS: usize = 50;
/// Maximum length of a tag of a published skill, in bytes.
pub const MAX_TAG_BYTES: usize = 64;
/// Maximum length of the author of a published skill, in bytes: several names fit.
pub const MAX_AUTHOR_BYTES: usize = 256;
/// Maximum length of the description of a published skill, in characters: four times the limit of
/// the base format. A page of a hundred skills must fit into a response.
pub const MAX_PUBLISHED_DESCRIPTION: usize = 4_096;

/// Maximum length of a displayed text from a signature, such as the publisher's name, in bytes.
pub const MAX_SHOWN_BYTES: usize = 256;

/// Maximum size of the list of trusted keys, in bytes: OpenPGP keys have some kilobytes each.
pub const MAX_TRUST_STORE_BYTES: u64 = 16 * 1024 * 1024;

/// Maximum skills in one resolution. The largest registries list some ten thousand.
pub const MAX_RESOLVED_SKILLS: usize = 20_000;
/// Maximum steps of one resolution: two per skill without conflicts; the limit takes some seconds.
pub const MAX_RESOLVE_STEPS: usize = 200_000;

/// Maximum size of `savoir.toml`, `AGENT.yaml` and similar files, in bytes. They are written by
/// hand.
pub const MAX_MANIFEST_BYTES: u64 = 1024 * 1024;
/// Maximum size of a lock, in bytes: a thousand skills need half a megabyte.
pub const MAX_LOCK_BYTES: u64 = 16 * 1024 * 1024;

/// Maximum size of a ledger of another tool, in bytes: ten thousand skills need four megabytes.
pub const MAX_LEDGER_BYTES: u64 = 32 * 1024 * 1024;

/// Maximum depth of category folders.
pub const MAX_CATEGORY_DEPTH: usize = 3;

/// Maximum size of a cached repository, in bytes. The trees of large repositories have some
/// megabytes, and sixty thousand SKILL.md files some hundred; a server without partial clones sends
/// a whole commit.
pub const MAX_REPOSITORY_BYTES: u64 = 2 * 1024 * 1024 * 1024;
/// Maximum output of git for a list, in bytes: two million paths or refs.
pub const MAX_GIT_LIST_BYTES: usize = 256 * 1024 * 1024;
/// Bytes of repository files that are read in one batch, so that git is started rarely.
pub const MAX_READ_AT_ONCE: u64 = 16 * 1024 * 1024;
/// Maximum links of a repository that are resolved.
pub const MAX_LINKS: usize = 20_000;
/// Maximum links that the files of one skill may follow.
pub const MAX_LINKS_IN_SKILL: usize = 1_000;
/// Maximum folders behind links that are searched for skills.
pub const MAX_LINKED_FOLDERS: usize = 1_000;

/// Maximum commits that are searched for the one from which another tool installed a skill. Busy
/// collections have some hundreds per year.
pub const MAX_PAST_COMMITS: usize = 500;
/// Maximum concurrent update checks of hosts and repositories.
pub const MAX_ASKED_AT_ONCE: usize = 8;

/// Maximum folder entries of a search for skills: sixty thousand skills with some files each.
pub const MAX_WALKED: usize = 2_000_000;

/// Maximum size of a site's index, in bytes: a thousand skills with long descriptions.
pub const MAX_INDEX_BYTES: u64 = 2 * 1024 * 1024;

/// Maximum redirects: downloads behind two mirrors and a login page work.
pub const MAX_REDIRECTS: usize = 5;

/// Maximum size of a registry's index of one skill, in bytes: ten thousand versions.
pub const MAX_PACKAGE_INDEX_BYTES: u64 = 8 * 1024 * 1024;
/// Maximum size of a registry response with dependencies, in bytes: five thousand skills.
pub const MAX_CLOSURE_BYTES: u64 = 64 * 1024 * 1024;
/// Maximum versions of one skill in a registry: one for every hour of a year.
pub const MAX_VERSIONS: usize = 10_000;
/// Maximum dependencies, permissions or tools of one version in a registry.
pub const MAX_LISTED: usize = 512;
/// Maximum size of other registry responses, in bytes: a page of a hundred skills, or a skill with
/// its text.
pub const MAX_ANSWER_BYTES: u64 = 4 * 1024 * 1024;
/// Maximum names in one request for skills with their dependencies.
pub const MAX_CLOSURE_NAMES: usize = 100;
/// Maximum length of a requested URL, in bytes: many servers read at most eight thousand.
pub const MAX_ADDRESS_BYTES: usize = 6_000;
/// Maximum entries of one page of a registry.
pub const MAX_PAGE: usize = 1_000;
