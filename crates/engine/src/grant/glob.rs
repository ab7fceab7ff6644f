//! Matches path patterns: `*` and `?` within a name, `**` across folders.

use std::path::{Component, Path, PathBuf};

/// Whether the components of a path match those of a pattern.
pub(super) fn matches(pattern: &[&str], names: &[&str]) -> bool {
    match (pattern.split_first(), names.split_first()) {
        (None, None) => true,
        (Some((&"**", rest)), _) => (0..=names.len()).any(|skip| matches(rest, &names[skip..])),
        (Some((part, rest)), Some((name, others))) => {
            name_matches(part.as_bytes(), name.as_bytes()) && matches(rest, others)
        }
        _ => false,
    }
}

/// Matches one name. Backtracks only to the last star, so no pattern takes exponential time.
fn name_matches(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut seen) = (0, 0);
    let mut star = None;
    while seen < name.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, seen));
                at += 1;
            }
            Some(byte) if *byte == b'?' || *byte == name[seen] => {
                at += 1;
                seen += 1;
            }
            _ => match star {
                Some((after, from)) => {
                    star = Some((after, from + 1));
                    at = after + 1;
                    seen = from + 1;
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

/// The meaning of a scope of a file permission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PathShape {
    /// A file or a folder with everything in it.
    Tree(PathBuf),
    /// The files below a folder that match a pattern.
    Pattern {
        /// The folder, without wildcards.
        base: PathBuf,
        /// The rest of the pattern, one entry for each component.
        pattern: Vec<String>,
    },
}

/// Classifies a path that may have wildcards. The path must be absolute and without `..`.
pub(super) fn path_shape(path: &Path) -> PathShape {
    let names: Vec<String> = path
        .components()
        .filter(|part| matches!(part, Component::Normal(_)))
        .map(|part| part.as_os_str().to_string_lossy().into_owned())
        .collect();
    let wild = names.iter().position(|name| name.contains(['*', '?'])).unwrap_or(names.len());
    let base = names[..wild].iter().fold(PathBuf::from("/"), |path, name| path.join(name));
    match &names[wild..] {
        [] => PathShape::Tree(base),
        [star] if star == "**" => PathShape::Tree(base),
        pattern => PathShape::Pattern { base, pattern: pattern.to_vec() },
    }
}

/// The existing files below a folder that match a pattern; `None` if there are too many entries.
pub(super) fn expand(base: &Path, pattern: &[String], max_paths: usize) -> Option<Vec<PathBuf>> {
    let pattern: Vec<&str> = pattern.iter().map(String::as_str).collect();
    let deep = pattern.contains(&"**");
    let mut found = Vec::new();
    let mut looked_at = 0_usize;
    let mut folders = vec![(base.to_owned(), Vec::<String>::new())];
    while let Some((folder, names)) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            looked_at += 1;
            if looked_at > max_paths * 16 || found.len() > max_paths {
                return None;
            }
            let (Ok(kind), Ok(name)) = (entry.file_type(), entry.file_name().into_string()) else {
                continue;
            };
            let mut names = names.clone();
            names.push(name);
            let parts: Vec<&str> = names.iter().map(String::as_str).collect();
            if kind.is_file() && matches(&pattern, &parts) {
                found.push(entry.path());
            } else if kind.is_dir() && (deep || names.len() < pattern.len()) {
                folders.push((entry.path(), names));
            }
        }
    }
    found.sort();
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_folders() {
        let check = |pattern: &str, path: &str| {
            let pattern: Vec<&str> = pattern.split('/').collect();
            matches(&pattern, &path.split('/').collect::<Vec<_>>())
        };
        assert!(check("*.csv", "a.csv") && !check("*.csv", "a/b.csv"));
        assert!(check("**/*.csv", "a.csv") && check("**/*.csv", "a/b/c.csv"));
        assert!(check("a?c", "abc") && !check("a?c", "ac"));
        assert!(check("*a*b*", "xxaybz") && !check("*a*b*", "xxbya"));
        assert!(check("src/**/x", "src/x") && check("src/**/x", "src/a/b/x"));
        assert!(!check("a", "A"));
    }

    #[test]
    fn hostile_patterns_terminate() {
        let name = "a".repeat(5000);
        assert!(!name_matches(format!("{}b", "a*".repeat(500)).as_bytes(), name.as_bytes()));
    }

    #[test]
    fn shapes() {
        assert_eq!(path_shape(Path::new("/a/b/**")), PathShape::Tree("/a/b".into()));
        assert_eq!(path_shape(Path::new("/a/b")), PathShape::Tree("/a/b".into()));
        let pattern = vec!["*.csv".to_owned()];
        assert_eq!(
            path_shape(Path::new("/a/*.csv")),
            PathShape::Pattern { base: "/a".into(), pattern }
        );
    }
}
