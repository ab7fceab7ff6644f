//! Arguments and return values of functions, and contents of written files, across the files of a
//! skill.

use std::collections::HashMap;

use super::{UNKNOWN, Value, rank};
use crate::act::Taint;

const MAX_ENTRIES: usize = 4096;

/// Arguments of a function, and values of a generator.
const MAX_ARGUMENTS: usize = 16;

/// The arguments that a function is called with, over all its calls.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallArguments {
    pub(crate) positional: Vec<Value>,
    pub(crate) keywords: Vec<(String, Value)>,
}

/// What is known from the files of one language that were read so far.
#[derive(Debug, Default)]
pub(crate) struct CrossFileState {
    pub(crate) call_arguments: HashMap<String, CallArguments>,
    pub(crate) returns: HashMap<String, Value>,
    /// Variables at the top of files.
    pub(crate) constants: HashMap<String, Value>,
    /// Contents of written files, by path.
    files: HashMap<String, Taint>,
}

impl CrossFileState {
    pub(crate) fn record_call(
        &mut self,
        function: &str,
        positional: &[Value],
        keywords: &[(String, Value)],
    ) {
        let known = self.call_arguments.contains_key(function);
        if function.is_empty() || !known && self.call_arguments.len() >= MAX_ENTRIES {
            return;
        }
        let given = self.call_arguments.entry(function.to_owned()).or_default();
        for (index, argument) in positional.iter().enumerate().take(MAX_ARGUMENTS) {
            match given.positional.get_mut(index) {
                Some(known) => known.merge(argument),
                None => given.positional.push(argument.clone()),
            }
        }
        for (name, argument) in keywords.iter().take(MAX_ARGUMENTS) {
            let full = given.keywords.len() >= MAX_ARGUMENTS;
            match given.keywords.iter_mut().find(|(known, _)| known == name) {
                Some((_, known)) => known.merge(argument),
                None if full => {}
                None => given.keywords.push((name.clone(), argument.clone())),
            }
        }
    }

    pub(crate) fn record_return(&mut self, function: &str, value: &Value) {
        let known = self.returns.contains_key(function);
        if function.is_empty() || !known && self.returns.len() >= MAX_ENTRIES {
            return;
        }
        self.returns.entry(function.to_owned()).or_default().merge(value);
    }

    /// Remembers a variable at the top of a file, when it says anything.
    pub(crate) fn set_constant(&mut self, name: &str, value: &Value) {
        let says = value.text.is_some() || !value.items.is_empty() || value.taint.is_secret();
        if says && value.name.is_none() && self.constants.len() < MAX_ENTRIES {
            self.constants.insert(name.to_owned(), value.clone());
        }
    }

    /// Records what is written to a file.
    pub(crate) fn write(&mut self, path: &Value, taint: &Taint) {
        let Some(path) = key(path.text_or_unknown()) else { return };
        if (taint.is_secret() || taint.fetched.is_some()) && self.files.len() < MAX_ENTRIES {
            self.files.entry(path).or_default().add(taint);
        }
    }

    /// What was written to a file, or unpacked to the folder that it is in.
    pub(crate) fn contents(&self, path: &str) -> Taint {
        let Some(path) = key(path) else { return Taint::default() };
        if let Some(taint) = self.files.get(&path) {
            return taint.clone();
        }
        let folders = path.match_indices('/').map(|(at, _)| &path[..at]);
        folders.filter_map(|folder| self.files.get(folder)).next_back().cloned().unwrap_or_default()
    }
}

/// A path as a key, unless so little of it is known that it would match other files.
fn key(path: &str) -> Option<String> {
    let path = path.trim_matches(['"', '\'', ' ']);
    let path = path.strip_prefix("./").unwrap_or(path).trim_end_matches('/');
    let known = path.replace(UNKNOWN, "");
    (known.chars().filter(char::is_ascii_alphanumeric).count() > 1).then(|| path.to_owned())
}

impl Value {
    /// Takes in another value that can be in the same place; the worse of the two is looked at.
    pub(crate) fn merge(&mut self, other: &Self) {
        let mut taint = self.taint.clone();
        taint.add(&other.taint);
        // What was fetched stays unknown, whatever stands in for it.
        let empty = self.text.is_none()
            && self.name.is_none()
            && self.items.is_empty()
            && self.taint.fetched.is_none();
        if empty || rank(other) > rank(self) {
            *self = other.clone();
        }
        self.taint = taint;
    }
}
