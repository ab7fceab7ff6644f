//! What is known beyond one function: what functions are called with and give back, and what was
//! written to files. It can be handed from one file of a skill to the next.

use std::collections::HashMap;

use super::{UNKNOWN, Value, rank};
use crate::act::Taint;

/// Most functions, constants and files that are remembered.
const MOST_ENTRIES: usize = 4096;

/// Most arguments of a function, and most values that a generator gives.
const MOST_ARGUMENTS: usize = 16;

/// The arguments that a function is called with, over all its calls.
#[derive(Clone, Debug, Default)]
pub(crate) struct Given {
    pub(crate) positional: Vec<Value>,
    pub(crate) keywords: Vec<(String, Value)>,
}

/// What the files of one language have told so far.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    pub(crate) given: HashMap<String, Given>,
    pub(crate) returns: HashMap<String, Value>,
    /// Variables at the top of files.
    pub(crate) constants: HashMap<String, Value>,
    /// What files were written with, by the text of their paths.
    files: HashMap<String, Taint>,
}

impl Memory {
    /// Remembers what a function is called with.
    pub(crate) fn hand_over(
        &mut self,
        function: &str,
        positional: &[Value],
        keywords: &[(String, Value)],
    ) {
        let known = self.given.contains_key(function);
        if function.is_empty() || !known && self.given.len() >= MOST_ENTRIES {
            return;
        }
        let given = self.given.entry(function.to_owned()).or_default();
        for (index, argument) in positional.iter().enumerate().take(MOST_ARGUMENTS) {
            match given.positional.get_mut(index) {
                Some(known) => known.merge(argument),
                None => given.positional.push(argument.clone()),
            }
        }
        for (name, argument) in keywords.iter().take(MOST_ARGUMENTS) {
            let full = given.keywords.len() >= MOST_ARGUMENTS;
            match given.keywords.iter_mut().find(|(known, _)| known == name) {
                Some((_, known)) => known.merge(argument),
                None if full => {}
                None => given.keywords.push((name.clone(), argument.clone())),
            }
        }
    }

    /// Remembers what a function gives back.
    pub(crate) fn give_back(&mut self, function: &str, value: &Value) {
        let known = self.returns.contains_key(function);
        if function.is_empty() || !known && self.returns.len() >= MOST_ENTRIES {
            return;
        }
        self.returns.entry(function.to_owned()).or_default().merge(value);
    }

    /// Remembers a variable at the top of a file, when it says anything.
    pub(crate) fn set_constant(&mut self, name: &str, value: &Value) {
        let says = value.text.is_some() || !value.items.is_empty() || value.taint.is_secret();
        if says && value.name.is_none() && self.constants.len() < MOST_ENTRIES {
            self.constants.insert(name.to_owned(), value.clone());
        }
    }

    /// Remembers what is written to a file.
    pub(crate) fn write(&mut self, path: &Value, taint: &Taint) {
        let Some(path) = key(path.shown()) else { return };
        if (taint.is_secret() || taint.fetched.is_some()) && self.files.len() < MOST_ENTRIES {
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

/// A path as a key, unless so little of it is known that others would be taken for it.
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
