//! What the shell scripts of a skill know of each other when one reads the other in.

use std::{collections::HashMap, rc::Rc};

use super::{expansion::Known, functions::Function};
use crate::act::Taint;

/// Most variables that are remembered.
const MOST: usize = 4096;

/// What scripts that are read in have told so far.
#[derive(Default)]
pub(crate) struct Memory {
    /// Variables whose value is plain to see.
    pub(super) known: HashMap<String, Known>,
    /// Variables that hold something that should not leave the machine.
    pub(super) variables: HashMap<String, Taint>,
    pub(super) functions: HashMap<Rc<str>, Function>,
}

impl Memory {
    /// Remembers the variables of a script; two values of one name are none.
    pub(super) fn keep(
        &mut self,
        known: &HashMap<String, Known>,
        variables: HashMap<String, Taint>,
    ) {
        for (name, value) in known {
            match self.known.get(name) {
                Some(before) if before != value => {
                    self.known.remove(name);
                }
                None if self.known.len() < MOST => {
                    self.known.insert(name.clone(), value.clone());
                }
                _ => {}
            }
        }
        let secret = variables.into_iter().filter(|(_, taint)| taint.is_secret() || taint.decoded);
        self.variables.extend(secret);
    }
}

/// The names of the scripts that a script reads in: `. ./lib.sh`, `source "$here/lib.sh"`.
pub(crate) fn read_in(text: &str) -> Vec<&str> {
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
    fn scripts_that_are_read_in() {
        let text =
            ". \"$(dirname \"$0\")/paths.sh\"\nsource lib/a.sh\n[ -f b ] && . ./b.sh\necho . x";
        assert_eq!(read_in(text), ["paths.sh", "a.sh", "b.sh"]);
    }
}
