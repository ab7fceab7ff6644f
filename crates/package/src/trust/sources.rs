//! Sources that the user trusts: `trusted-sources.toml`.
//!
//! ```toml
//! sources = [
//!     "github:anthropics",
//!     "gitlab:acme/tools",
//!     "git:git.acme.example/skills",
//!     "registry:https://skills.example.com/registry#acme",
//! ]
//! ```
//!
//! A rule stores the user's consent: skills from a trusted source are installed without a question.
//! It never raises a skill's tier, because it is not a signature.

mod rule;

use std::{fs, path::Path};

use toml_edit::{Array, DocumentMut, Item};

pub use rule::{RuleError, SourceRule};

use super::safe_file;
use crate::{
    limits::MAX_MANIFEST_BYTES,
    lock::LockedSource,
    table,
    text_file::{self, ContentError, FileError, Text},
};

/// The only key of the file.
const KEY: &str = "sources";

/// The content of a new file.
const HEADER: &str = "\
# Sources that you trust: skills from there are installed without a question.
# `savoir trust add`, `savoir trust list` and `savoir trust remove` edit this file.
sources = []
";

/// The sources that the user trusts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustedSources {
    rules: Vec<SourceRule>,
}

impl TrustedSources {
    /// The name of the file, in the folder of the user's settings.
    pub const FILE: &'static str = "trusted-sources.toml";

    /// Reads the file; if it does not exist, no source is trusted.
    pub fn read(path: &Path) -> Result<Self, FileError> {
        match text_file::read(path, MAX_MANIFEST_BYTES)? {
            Some(text) => Ok(Self::parse(&path.display().to_string(), &text)?),
            None => Ok(Self::default()),
        }
    }

    fn parse(file: &str, text: &str) -> Result<Self, ContentError> {
        let document = table::parse(file, text)?;
        let root = document.root();
        let mut rules = Vec::new();
        for (key, at, value) in root.entries() {
            if key != KEY {
                let content_error = root.content_error(at, format!("there is no setting `{key}`"));
                return Err(content_error.hint("the file has only the list `sources`"));
            }
            for item in value.items("a list of sources")? {
                let rule = SourceRule::parse_trusted(item.string("a source")?);
                rules.push(rule.map_err(|error| item.content_error(error.to_string()))?);
            }
        }
        Ok(Self { rules })
    }

    /// Adds a rule; returns whether it is new.
    pub fn add(path: &Path, rule: &SourceRule) -> Result<bool, FileError> {
        edit(path, |known, list| {
            let is_new = !known.rules.contains(rule);
            if is_new {
                list.push(rule.to_string());
                indent(list);
            }
            is_new
        })
    }

    /// Removes a rule; returns whether it existed.
    pub fn remove(path: &Path, rule: &SourceRule) -> Result<bool, FileError> {
        edit(path, |known, list| {
            let before = list.len();
            let mut rules = known.rules.iter();
            list.retain(|_| rules.next() != Some(rule));
            indent(list);
            list.len() < before
        })
    }

    /// All rules, in the order of the file.
    pub fn rules(&self) -> &[SourceRule] {
        &self.rules
    }

    /// Returns the rule that covers a source.
    ///
    /// Only pass a source that this run resolved: the address and the branch or tag that were
    /// requested. A lock that another person wrote can name a commit of a fork, which hosts serve
    /// under the trusted address of the original. A source that names a commit itself is never
    /// covered.
    pub fn covers(&self, source: &LockedSource) -> Option<&SourceRule> {
        self.rules.iter().find(|rule| rule.covers(source))
    }
}

impl FromIterator<SourceRule> for TrustedSources {
    fn from_iter<T: IntoIterator<Item = SourceRule>>(rules: T) -> Self {
        Self { rules: rules.into_iter().collect() }
    }
}

/// Changes the list under an exclusive lock. Comments in the file stay.
fn edit(
    path: &Path,
    act: impl FnOnce(&TrustedSources, &mut Array) -> bool,
) -> Result<bool, FileError> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|error| FileError::io(folder, error))?;
    }
    let _lock = safe_file::lock(path).map_err(|error| FileError::io(path, error))?;
    let text = text_file::read(path, MAX_MANIFEST_BYTES)?.unwrap_or_else(|| HEADER.to_owned());
    let shown = path.display().to_string();
    let known = TrustedSources::parse(&shown, &text)?;
    let wrong = |message: &str| Text { file: &shown, text: &text }.content_error(0, message);
    let mut document: DocumentMut =
        text.parse().map_err(|error: toml_edit::TomlError| wrong(error.message()))?;
    let list = document.entry(KEY).or_insert_with(|| Item::Value(Array::new().into()));
    let list = list.as_array_mut().ok_or_else(|| wrong("`sources` must be a list of sources"))?;
    let changed = act(&known, list);
    if changed {
        text_file::write(path, &document.to_string())?;
    }
    Ok(changed)
}

/// Formats the list with one rule per line.
fn indent(list: &mut Array) {
    for value in list.iter_mut() {
        // A comment before a rule stays.
        let prefix = value.decor().prefix().and_then(|prefix| prefix.as_str());
        if prefix.is_none_or(|prefix| prefix.trim().is_empty()) {
            value.decor_mut().set_prefix("\n    ");
        }
    }
    list.set_trailing_comma(!list.is_empty());
    let trailing = list.trailing().as_str().is_some_and(|text| !text.trim().is_empty());
    if !trailing {
        list.set_trailing(if list.is_empty() { "" } else { "\n" });
    }
}

#[cfg(test)]
mod tests;
