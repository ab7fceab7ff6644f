//! Shares knowledge between the files of a skill: function arguments, return values and the
//! contents of written files.

use std::collections::HashMap;

use super::{UNKNOWN, Value, danger_rank};
use crate::action::Taint;

const MAX_ENTRIES: usize = 4096;

/// Maximum number of arguments of a function that are recorded.
pub(crate) const MAX_ARGUMENTS: usize = 64;

/// The arguments of one function, merged over all its calls.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallArguments {
    pub(crate) positional: Vec<Value>,
    pub(crate) keywords: Vec<(String, Value)>,
}

/// Everything known from the files of one language that were read so far.
#[derive(Debug, Default)]
pub(crate) struct CrossFileState {
    pub(crate) call_arguments: HashMap<String, CallArguments>,
    pub(crate) returns: HashMap<String, Value>,
    /// Top-level variables of files.
    pub(crate) constants: HashMap<String, Value>,
    /// Taint of the contents of written files, by path.
    files: HashMap<String, Taint>,
    /// A limit was reached, so that something is not known.
    pub(crate) is_cut: bool,
}

impl CrossFileState {
    pub(crate) fn record_call(
        &mut self,
        function: &str,
        positional: &[Value],
        keywords: &[(String, Value)],
    ) {
        if function.is_empty() {
            return;
        }
        let known = self.call_arguments.contains_key(function);
        if !known && self.call_arguments.len() >= MAX_ENTRIES {
            self.is_cut = true;
            return;
        }
        self.is_cut |= positional.len().max(keywords.len()) > MAX_ARGUMENTS;
        let merged_arguments = self.call_arguments.entry(function.to_owned()).or_default();
        for (index, argument) in positional.iter().enumerate().take(MAX_ARGUMENTS) {
            match merged_arguments.positional.get_mut(index) {
                Some(known) => known.merge(argument),
                None => merged_arguments.positional.push(argument.clone()),
            }
        }
        for (name, argument) in keywords.iter().take(MAX_ARGUMENTS) {
            let full = merged_arguments.keywords.len() >= MAX_ARGUMENTS;
            match merged_arguments.keywords.iter_mut().find(|(known, _)| known == name) {
                Some((_, known)) => known.merge(argument),
                None if full => self.is_cut = true,
                None => merged_arguments.keywords.push((name.clone(), argument.clone())),
            }
        }
    }

    pub(crate) fn record_return(&mut self, function: &str, value: &Value) {
        if function.is_empty() {
            return;
        }
        if !self.returns.contains_key(function) && self.returns.len() >= MAX_ENTRIES {
            self.is_cut = true;
            return;
        }
        self.returns.entry(function.to_owned()).or_default().merge(value);
    }

    /// Stores a top-level variable if anything about its value is known.
    pub(crate) fn set_constant(&mut self, name: &str, value: &Value) {
        let says = value.text.is_some() || !value.items.is_empty() || value.taint.is_secret();
        if !says || value.name.is_some() {
            return;
        }
        if self.constants.len() >= MAX_ENTRIES && !self.constants.contains_key(name) {
            self.is_cut = true;
            return;
        }
        self.constants.insert(name.to_owned(), value.clone());
    }

    /// Whether a call passes something to a function that no earlier call passed.
    pub(crate) fn is_new_call(
        &self,
        function: &str,
        positional: &[Value],
        keywords: &[(String, Value)],
    ) -> bool {
        let known = self.call_arguments.get(function);
        let known_positional = |index: usize| known.and_then(|known| known.positional.get(index));
        let known_keyword = |name: &str| {
            let keywords = &known?.keywords;
            keywords.iter().find(|(keyword, _)| keyword == name).map(|(_, value)| value)
        };
        let is_new = |known: Option<&Value>, argument: &Value| {
            let mut taint = known.map(Value::all_taint).unwrap_or_default();
            // That a value comes from some file is no harm by itself.
            taint.read = true;
            let before = taint.clone();
            taint.add(&argument.all_taint());
            taint != before || danger_rank(argument) > known.map_or(0, danger_rank)
        };
        let positional = positional.iter().enumerate().take(MAX_ARGUMENTS);
        let mut positional = positional.map(|(index, value)| (known_positional(index), value));
        let mut keywords = keywords.iter().map(|(name, value)| (known_keyword(name), value));
        positional.any(|(known, value)| is_new(known, value))
            || keywords.any(|(known, value)| is_new(known, value))
    }

    /// Stores the taint of the data that is written to a file.
    pub(crate) fn write(&mut self, path: &Value, taint: &Taint) {
        let Some(path) = key(path.text_or_unknown()) else { return };
        if !taint.is_secret() && taint.fetched.is_none() {
            return;
        }
        if self.files.len() >= MAX_ENTRIES && !self.files.contains_key(&path) {
            self.is_cut = true;
            return;
        }
        self.files.entry(path).or_default().add(taint);
    }

    /// Returns the taint of a written file, or of the folder that it was unpacked to.
    pub(crate) fn contents(&self, path: &str) -> Taint {
        let Some(path) = key(path) else { return Taint::default() };
        if let Some(taint) = self.files.get(&path) {
            return taint.clone();
        }
        let folders = path.match_indices('/').map(|(at, _)| &path[..at]);
        folders.filter_map(|folder| self.files.get(folder)).next_back().cloned().unwrap_or_default()
    }
}

/// Normalizes a path for use as a key. Returns `None` if so little of the path is known that it
/// would match other files.
fn key(path: &str) -> Option<String> {
    let path = path.trim_matches(['"', '\'', ' ']);
    let path = path.strip_prefix("./").unwrap_or(path).trim_end_matches('/');
    let known = path.replace(UNKNOWN, "");
    (known.chars().filter(char::is_ascii_alphanumeric).count() > 1).then(|| path.to_owned())
}

impl Value {
    /// Merges another possible value of the same variable. The more dangerous value wins, and the
    /// taints are combined.
    pub(crate) fn merge(&mut self, other: &Self) {
        let mut taint = self.taint.clone();
        taint.add(&other.taint);
        // A downloaded value stays unknown; another value must not replace it just because it has
        // no text.
        let empty = self.text.is_none()
            && self.name.is_none()
            && self.items.is_empty()
            && self.taint.fetched.is_none();
        if empty || danger_rank(other) > danger_rank(self) {
            *self = other.clone();
        }
        self.taint = taint;
    }
}
