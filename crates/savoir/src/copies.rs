//! Groups copies of one skill in several folders.

use std::collections::HashMap;

/// Identifies copies of one skill: two copies have at least one of these values in common.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Identity {
    /// A digest of the files.
    pub(crate) files: Option<String>,
    /// The lock entry that installed the skill. Copies for different agents may have different
    /// files.
    pub(crate) locked: Option<String>,
}

/// Groups copies of one skill, in the order of the items.
pub(crate) fn group_copies<T>(items: Vec<T>, identity: impl Fn(&T) -> Identity) -> Vec<Vec<T>> {
    let mut groups: Vec<Vec<T>> = Vec::new();
    let (mut by_files, mut by_lock) = (HashMap::new(), HashMap::new());
    for item in items {
        let Identity { files, locked } = identity(&item);
        let known = locked.as_ref().and_then(|locked| by_lock.get(locked));
        let known = known.or_else(|| by_files.get(files.as_ref()?)).copied();
        let at = known.unwrap_or(groups.len());
        if let Some(files) = files {
            by_files.entry(files).or_insert(at);
        }
        if let Some(locked) = locked {
            by_lock.entry(locked).or_insert(at);
        }
        match groups.get_mut(at) {
            Some(group) => group.push(item),
            None => groups.push(vec![item]),
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_share_their_files_or_their_lock_entry() {
        let items = vec![
            ("a", Some("1"), None),
            ("b", Some("2"), Some("pdf")),
            ("c", Some("1"), None),
            ("d", Some("3"), Some("pdf")),
            ("e", None, None),
            ("f", None, None),
        ];
        let groups = group_copies(items, |(_, files, locked)| Identity {
            files: files.map(str::to_owned),
            locked: locked.map(str::to_owned),
        });
        let names = |group: &Vec<(&'static str, _, _)>| -> String {
            group.iter().map(|(name, ..)| *name).collect()
        };
        assert_eq!(groups.iter().map(names).collect::<Vec<_>>(), ["ac", "bd", "e", "f"]);
    }
}
