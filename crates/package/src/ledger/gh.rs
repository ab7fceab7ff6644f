//! `gh skill`: `metadata.github-*` in the frontmatter of the skill itself.

use savoir_skill::Document;

use super::origin::GhOrigin;

/// What the tool wrote into a skill, if it did.
pub(super) fn read_origin(document: &Document) -> Option<GhOrigin> {
    let metadata = document.field("metadata")?;
    let text = |key: &str| {
        let text = metadata.get(key)?.text()?;
        (!text.is_empty()).then(|| text.to_owned())
    };
    Some(GhOrigin {
        repo: text("github-repo")?,
        reference: text("github-ref"),
        tree_sha: text("github-tree-sha"),
        path: text("github-path"),
        pinned: text("github-pinned"),
    })
}
