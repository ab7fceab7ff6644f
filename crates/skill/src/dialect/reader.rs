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

    /// A scalar as its text.
    pub(crate) fn text(&self, path: &str) -> Option<String> {
        self.node(path)?.text().map(str::to_owned)
    }

    pub(crate) fn boolean(&self, path: &str) -> Option<bool> {
        self.node(path)?.boolean(self.version)
    }

    pub(crate) fn value(&self, path: &str) -> Option<Value> {
        Some(self.node(path)?.to_value(self.version))
    }

    /// A list of scalars, or one scalar.
    pub(crate) fn strings(&self, path: &str) -> Vec<String> {
        self.node(path).map(strings_of).unwrap_or_default()
    }

    /// Tools as one string with blanks or commas, or as a list.
    pub(crate) fn tools(&self, path: &str) -> Option<Vec<ToolGrant>> {
        let node = self.node(path)?;
        let grants = match node.text() {
            Some(text) => allowed_tools::split(text),
            None => strings_of(node).iter().flat_map(|text| allowed_tools::split(text)).collect(),
        };
        Some(grants)
    }

    /// Name, description, licence, compatibility: the same words in nearly every dialect.
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

    /// `metadata.version` and `metadata.author`, where the base format keeps them, or `version` and
    /// `author` beside them, where many people write them.
    pub(crate) fn base_metadata(&self, skill: &mut Skill) {
        skill.version = self.text("metadata.version").or_else(|| self.text("version"));
        let authors = ["metadata.author", "author", "authors"].map(|key| self.strings(key));
        skill.authors = authors.into_iter().find(|found| !found.is_empty()).unwrap_or_default();
    }

    /// Fields that the host obeys and the model has no word for.
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
