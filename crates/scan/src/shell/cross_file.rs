//! Variables and functions that shell scripts of a skill share by sourcing each other.

use std::{collections::HashMap, rc::Rc};

use super::{expansion::KnownVariable, functions::ShellFunction};
use crate::action::Taint;

const MAX_VARIABLES: usize = 4096;

/// Everything known from the sourced scripts that were read so far.
#[derive(Default)]
pub(crate) struct CrossFileShellState {
    /// Variables with a known value.
    pub(super) known: HashMap<String, KnownVariable>,
    /// Taint of variables with sensitive contents.
    pub(super) variables: HashMap<String, Taint>,
    pub(super) functions: HashMap<Rc<str>, ShellFunction>,
    /// There are more variables than are tracked.
    pub(super) is_cut: bool,
}

impl CrossFileShellState {
    /// Adds the variables of a script. A variable with two different values becomes unknown.
    pub(super) fn merge_variables(
        &mut self,
        known: &HashMap<String, KnownVariable>,
        variables: HashMap<String, Taint>,
    ) {
        for (name, value) in known {
            match self.known.get(name) {
                Some(before) if before != value => {
                    self.known.remove(name);
                }
                None if self.known.len() < MAX_VARIABLES => {
                    self.known.insert(name.clone(), value.clone());
                }
                None => self.is_cut = true,
                Some(_) => {}
            }
        }
        let secret = variables.into_iter().filter(|(_, taint)| taint.is_secret() || taint.decoded);
        self.variables.extend(secret);
    }
}

/// The names of the scripts that a script sources: `. ./lib.sh`, `source "$here/lib.sh"`.
pub(crate) fn sourced_scripts(text: &str) -> Vec<&str> {
    let lines = text.lines().map(str::trim_start);
    let lines = lines.filter_map(|line| {
        let at = ["source ", ". "].iter().find_map(|start| line.strip_prefix(start));
        // `[ -f x ] && . x`
        at.or_else(|| line.split_once("&& . ").map(|(_, rest)| rest))
            .or_else(|| line.split_once("&& source ").map(|(_, rest)| rest))
    });
    let name = |rest: &'_ str| -> Option<(usize, usize)> {
        let end = rest.find(['\n', ';', '#']).unwrap_or(rest.len());
        let path = rest[..end].trim_end().trim_end_matches(['"', '\'']);
        let path = path.split(" ||").next().unwrap_or(path).trim_end_matches(['"', '\'', ' ']);
        let start = path.rfind(['/', ' ', '"']).map_or(0, |slash| slash + 1);
        (start < path.len()).then_some((start, path.len()))
    };
    lines.filter_map(|rest| name(rest).map(|(start, end)| &rest[start..end])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sourced_scripts_are_found() {
        let text =
            ". \"$(dirname \"$0\")/paths.sh\"\nsource lib/a.sh\n[ -f b ] && . ./b.sh\necho . x";
        assert_eq!(sourced_scripts(text), ["paths.sh", "a.sh", "b.sh"]);
    }
}
