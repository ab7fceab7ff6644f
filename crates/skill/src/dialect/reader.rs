//! Reads values of frontmatter fields for the dialects.

use serde_json::{Map, Value};

use crate::{
    allowed_tools::{self, ToolGrant},
    document::Document,
    folder::Folder,
    skill::Skill,
    yaml::{Node, YamlVersion},
};

/// A document as one dialect reads it.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    pub(crate) document: &'a Document,
    pub(crate) folder: Option<&'a Folder>,
    pub(crate) version: YamlVersion,
}

impl<'a> Reader<'a> {
    pub(crate) fn node(&self, path: &str) -> Option<&'a Node> {
        let node = self.document.fields()?.path(path)?;
        (!node.is_null(self.version)).then_some(node)
    }

    /// Returns a scalar as text.
    pub(crate) fn text(&self, path: &str) -> Option<String> {
        self.node(path)?.text().map(str::to_owned)
    }

    pub(crate) fn boolean(&self, path: &str) -> Option<bool> {
        self.node(path)?.boolean(self.version)
    }

    pub(crate) fn value(&self, path: &str) -> Option<Value> {
        Some(self.node(path)?.to_value(self.version))
    }

    /// Returns a list of scalars; a single scalar counts as a list.
    pub(crate) fn strings(&self, path: &str) -> Vec<String> {
        self.node(path).map(strings_of).unwrap_or_default()
    }

    /// Reads tools from one string, separated by blanks or commas, or from a list.
    pub(crate) fn tools(&self, path: &str) -> Option<Vec<ToolGrant>> {
        let node = self.node(path)?;
        let grants = match node.text() {
            Some(text) => allowed_tools::split(text),
            None => strings_of(node).iter().flat_map(|text| allowed_tools::split(text)).collect(),
        };
        Some(grants)
    }

    /// Reads name, description, license and compatibility, which most dialects share.
    pub(crate) fn identity(&self, skill: &mut Skill) {
        let folder_name = || self.folder.and_then(Folder::name).unwrap_or_default().to_owned();
        skill.name = self.text("name").unwrap_or_else(folder_name);
        skill.description = self.text("description").unwrap_or_default();
        skill.license = self.text("license");
        skill.compatibility = self.text("compatibility");
        skill.tags = self.strings("tags");
        for key in ["homepage", "repository", "registry"] {
            if let Some(link) = self.text(key) {
                skill.links.insert(key.into(), link.into());
            }
        }
    }

    /// Reads `metadata.version` and `metadata.author` of the base format, or `version` and `author`
    /// at top level, where many authors write them.
    pub(crate) fn base_metadata(&self, skill: &mut Skill) {
        skill.version = self.text("metadata.version").or_else(|| self.text("version"));
        let authors = ["metadata.author", "author", "authors"].map(|key| self.strings(key));
        skill.authors = authors.into_iter().find(|found| !found.is_empty()).unwrap_or_default();
    }

    /// Returns fields that the host uses and that have no equivalent in the model.
    pub(crate) fn host(&self, keys: &[&str]) -> Map<String, Value> {
        keys.iter().filter_map(|key| Some(((*key).to_owned(), self.value(key)?))).collect()
    }
}

pub(crate) fn strings_of(node: &Node) -> Vec<String> {
    match (node.text(), node.items()) {
        (Some(text), _) => vec![text.to_owned()],
        (None, Some(items)) => items.iter().filter_map(Node::text).map(str::to_owned).collect(),
        (None, None) => Vec::new(),
    }
}
