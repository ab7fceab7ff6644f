//! Metadata that the registry stores for a version besides its bytes.

use savoir_package::{
    archive::{self, ArchiveError},
    registry::wire::FileDigest,
    submission::Submission,
};
use savoir_skill::digest::sha256_hex;
use savoir_store::registry::{FileFact, VersionFacts};
use serde_json::Map;

/// The key in `more` of the beginning of a skill's text.
pub const EXCERPT_KEY: &str = "excerpt";
/// The key in `more` of the digest of the archive without a top-level folder.
pub const PLAIN_ARCHIVE_DIGEST_KEY: &str = "plain_sha256";
/// Maximum characters of a skill's text that are searched.
const EXCERPT_CHARS: usize = 4000;

/// The metadata of a submission that the registry stores: for its index, its search and for other
/// tools.
pub fn collect_version_facts(from: &Submission) -> Result<VersionFacts, ArchiveError> {
    let file = |file: &FileDigest| FileFact {
        path: file.path.clone(),
        sha256: file.sha256.clone(),
        size: file.size,
    };
    let excerpt: String = from.body.chars().take(EXCERPT_CHARS).collect();
    // Other tools get the archive without a top-level folder.
    let plain = sha256_hex(&archive::pack_plain(&from.tree)?);
    let mut more = Map::new();
    more.insert(EXCERPT_KEY.to_owned(), excerpt.into());
    more.insert(PLAIN_ARCHIVE_DIGEST_KEY.to_owned(), plain.into());
    Ok(VersionFacts {
        description: from.description.clone(),
        tags: from.tags.clone(),
        author: from.author.clone(),
        license: from.license.clone(),
        homepage: from.homepage.clone(),
        repository: from.repository.clone(),
        dialect: from.dialect.clone(),
        needs: from.dependencies.clone(),
        permissions: from.permissions.clone(),
        tools: from.tools.clone(),
        files: from.files.iter().map(file).collect(),
        manifest: from.manifest.clone(),
        more,
    })
}
