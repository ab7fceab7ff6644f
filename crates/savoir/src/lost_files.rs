//! Finds files that a tool wrote into its temporary folders, which are deleted when it exits.

use std::{collections::BTreeSet, path::Path};

/// Folders of caches and settings in a home folder, whose loss does not matter to users.
const CACHES_AND_SETTINGS: [&str; 25] = [
    ".bash_history", ".bundle", ".cache", ".cargo", ".config", ".dotnet", ".fontconfig", ".gem",
    ".gnupg", ".gradle", ".ipython", ".java", ".lesshst", ".local", ".m2", ".matplotlib",
    ".node_repl_history", ".npm", ".nuget", ".pki", ".python_history", ".ssh", ".viminfo",
    ".wget-hsts", ".yarn",
];

/// A note about deleted files that the user may miss: those in the home folder, and those in `/tmp`
/// that the arguments or the output of the tool mention.
pub(crate) fn note(
    written: &BTreeSet<impl AsRef<Path>>,
    home: &Path,
    said: &[&str],
) -> Option<String> {
    let written: Vec<&Path> = written.iter().map(AsRef::as_ref).collect();
    let in_home = written.iter().filter(|path| is_expected_in_home(path, home, &written));
    let in_tmp = written.iter().filter(|path| {
        let is_elsewhere = !path.starts_with(home) && !path.starts_with("/tmp/home");
        path.starts_with("/tmp") && is_elsewhere && said.iter().any(|text| names(text, path))
    });
    let sentence = |lost: Vec<&&Path>, place: &str| {
        let (first, more) = lost.split_first()?;
        let more = match more.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        Some(format!(
            "it wrote {}{more} into a temporary {place}, which was deleted; to keep such files, let \
             it write into a folder that you grant with --allow-write",
            first.display()
        ))
    };
    sentence(in_home.collect(), "home").or_else(|| sentence(in_tmp.collect(), "/tmp"))
}

fn is_expected_in_home(path: &Path, home: &Path, written: &[&Path]) -> bool {
    let rest = path.strip_prefix(home).or_else(|_| path.strip_prefix("/tmp/home"));
    let Ok(Some(rest)) = rest.map(Path::to_str) else { return false };
    let is_folder = || written.iter().any(|other| *other != path && other.starts_with(path));
    match rest {
        "" => false,
        dotted if dotted.starts_with('.') => {
            !dotted.contains('/') && !CACHES_AND_SETTINGS.contains(&dotted) && !is_folder()
        }
        _ => true,
    }
}

/// Whether a text contains a path, and not only a longer path that starts with it.
fn names(text: &str, path: &Path) -> bool {
    let path = path.to_string_lossy();
    text.match_indices(&*path).any(|(at, _)| {
        let rest = text[at + path.len()..].trim_start_matches('.');
        !rest.starts_with(|next: char| next.is_alphanumeric() || matches!(next, '/' | '_' | '-'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_ends_before_punctuation() {
        let path = Path::new("/tmp/a.md");
        for text in
            ["/tmp/a.md", "wrote /tmp/a.md.", "'/tmp/a.md'", "/tmp/a.md, then", "out=/tmp/a.md"]
        {
            assert!(names(text, path), "{text}");
        }
        for text in ["/tmp/a.md.bak", "/tmp/a.mdx", "/tmp/a.md/b", "/tmp/a.md-1", "/tmp/b.md"] {
            assert!(!names(text, path), "{text}");
        }
    }

    #[test]
    fn files_are_expected_and_caches_are_not() {
        let home = Path::new("/home/ada");
        let note_of = |paths: &[&str], said: &[&str]| {
            let paths: BTreeSet<&Path> = paths.iter().map(Path::new).collect();
            note(&paths, home, said)
        };
        for path in ["/home/ada/.todo.txt", "/home/ada/report.md", "/home/ada/out/x", "/tmp/home/x"]
        {
            assert!(note_of(&[path], &[]).is_some_and(|note| note.contains(path)), "{path}");
        }
        let caches = ["/home/ada/.cache", "/home/ada/.tool", "/home/ada/.tool/x", "/home/ada/.npm"];
        assert_eq!(note_of(&caches, &[]), None);
        assert_eq!(note_of(&["/tmp/x.md"], &["nothing"]), None);
        assert!(note_of(&["/tmp/x.md"], &["see /tmp/x.md"]).is_some());
    }
}
