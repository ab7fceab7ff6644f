//! Checks the paths of files in a skill.

use std::collections::HashMap;

use thiserror::Error;
use unicode_normalization::{UnicodeNormalization as _, is_nfc};

use crate::limits::{MAX_DEPTH, MAX_NAME_BYTES, MAX_PATH_BYTES};

/// Why a path is not allowed in a skill.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PathProblem {
    /// It leads out of the skill.
    #[error("it leads out of the skill")]
    Traversal,
    #[error("it is an absolute path")]
    Absolute,
    /// It has a character or a name with a special meaning on some system.
    #[error("{0}")]
    Characters(String),
    #[error(
        "it is too long or too deep: at most {MAX_PATH_BYTES} bytes, {MAX_NAME_BYTES} in each part, {MAX_DEPTH} parts"
    )]
    Length,
    /// It would configure a tool or an agent at the place where the skill is installed.
    #[error("`{0}` configures a tool or an agent and does not belong to a skill")]
    Forbidden(String),
    /// Another path differs only in case or in Unicode normalization.
    #[error("it is the same as `{0}` on systems that do not tell letters apart")]
    Collision(String),
    /// It is a file, and another path is below it.
    #[error("`{0}` is both a file and a folder")]
    FileAndFolder(String),
    #[error("it is there twice")]
    Duplicate,
}

impl PathProblem {
    /// A stable code for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Traversal => "path_traversal",
            Self::Absolute => "absolute_path",
            Self::Characters(_) => "path_characters",
            Self::Length => "path_length",
            Self::Forbidden(_) => "forbidden_path",
            Self::Collision(_) => "path_collision",
            Self::FileAndFolder(_) => "path_conflict",
            Self::Duplicate => "duplicate_entry",
        }
    }
}

/// Folders and files that configure tools and agents. A skill with one of them would have an effect
/// before it is run.
const TOOL_CONFIGURATION_NAMES: [&str; 14] = [
    ".git", ".hg", ".svn", ".vscode", ".idea", ".claude", ".cursor", ".codex", ".agents", ".npmrc",
    ".yarnrc", ".mcp.json", ".envrc", ".pypirc",
];

/// Checks whether a path, with `/` as separator, is allowed in a skill.
pub fn check(path: &str) -> Result<(), PathProblem> {
    let characters = |why: &str| Err(PathProblem::Characters(why.to_owned()));
    if path.starts_with('/') {
        return Err(PathProblem::Absolute);
    }
    if path.contains('\\') {
        return characters("it has a backslash, which some systems take for a separator");
    }
    if path.len() > MAX_PATH_BYTES || path.split('/').count() > MAX_DEPTH {
        return Err(PathProblem::Length);
    }
    for part in path.split('/') {
        check_part(part)?;
    }
    if !is_nfc(path) {
        return characters(
            "its letters are not composed (NFC), so that it can be mistaken for another",
        );
    }
    Ok(())
}

/// Checks the path of a skill's folder in a repository. It may be in an agent's folder such as
/// `.claude/skills`, because nothing is written there, but it must not lead out of the repository.
pub fn check_in_repository(path: &str) -> Result<(), PathProblem> {
    if path.starts_with('/') {
        return Err(PathProblem::Absolute);
    }
    if path.len() > MAX_PATH_BYTES {
        return Err(PathProblem::Length);
    }
    for part in path.split('/') {
        let problem = match part {
            ".." => return Err(PathProblem::Traversal),
            "" | "." => "it has an empty part",
            part if part.chars().any(is_hidden) => {
                "it has a control character or one that cannot be seen"
            }
            part if part.contains('\\') => {
                "it has a backslash, which some systems take for a separator"
            }
            part if part.contains(char::REPLACEMENT_CHARACTER) => "it is not valid UTF-8",
            _ => continue,
        };
        return Err(PathProblem::Characters(problem.to_owned()));
    }
    Ok(())
}

fn check_part(part: &str) -> Result<(), PathProblem> {
    let characters = |why: &str| Err(PathProblem::Characters(why.to_owned()));
    if part == ".." {
        return Err(PathProblem::Traversal);
    }
    if part.is_empty() || part == "." {
        return characters("it has an empty part");
    }
    if part.len() > MAX_NAME_BYTES {
        return Err(PathProblem::Length);
    }
    if part.chars().any(is_hidden) {
        return characters("it has a control character or one that cannot be seen");
    }
    if part.contains([':', '*', '?', '"', '<', '>', '|']) {
        return characters("it has a character that Windows does not allow in names");
    }
    if part.ends_with(['.', ' ']) || part.starts_with(' ') {
        return characters("a part of it begins or ends with a blank or ends with a dot");
    }
    if part.contains(char::REPLACEMENT_CHARACTER) {
        return characters("it is not valid UTF-8");
    }
    if is_device(part) {
        return characters("a part of it is the name of a device on Windows");
    }
    match TOOL_CONFIGURATION_NAMES.iter().find(|name| part.eq_ignore_ascii_case(name)) {
        Some(name) => Err(PathProblem::Forbidden((*name).to_owned())),
        None => Ok(()),
    }
}

/// Whether a character is a control character, changes the text direction, or has no width.
pub(crate) fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

fn is_device(part: &str) -> bool {
    let stem = part.split('.').next().unwrap_or(part).trim_end().to_ascii_lowercase();
    match stem.strip_prefix("com").or_else(|| stem.strip_prefix("lpt")) {
        Some(number) => matches!(number, "1" | "2" | "3" | "4" | "5" | "6" | "7" | "8" | "9"),
        None => matches!(stem.as_str(), "con" | "prn" | "aux" | "nul" | "conin$" | "conout$"),
    }
}

/// The paths of a skill so far, to detect paths that are the same on some system.
#[derive(Clone, Debug, Default)]
pub struct UsedPaths {
    /// Normalized paths of files and folders, with the original path and whether it is a file.
    places: HashMap<String, (String, bool)>,
}

impl UsedPaths {
    /// Adds the path of a file; fails if it is invalid or collides with another path.
    pub fn file(&mut self, path: &str) -> Result<(), PathProblem> {
        check(path)?;
        for (end, _) in path.match_indices('/') {
            self.add(&path[..end], false)?;
        }
        self.add(path, true)
    }

    fn add(&mut self, path: &str, file: bool) -> Result<(), PathProblem> {
        let folded: String = path.nfkc().flat_map(char::to_lowercase).collect();
        match self.places.get(&folded) {
            None => {
                self.places.insert(folded, (path.to_owned(), file));
                Ok(())
            }
            Some((spelling, _)) if spelling != path => {
                Err(PathProblem::Collision(spelling.clone()))
            }
            Some((_, true)) if file => Err(PathProblem::Duplicate),
            Some((_, was_file)) if *was_file || file => {
                Err(PathProblem::FileAndFolder(path.to_owned()))
            }
            Some(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_paths_are_accepted() {
        for path in ["SKILL.md", "references/a b.md", "scripts/.hidden", "größe/ß.txt", "a/b/c/d"]
        {
            assert_eq!(check(path), Ok(()), "{path}");
        }
    }

    #[test]
    fn invalid_paths_are_rejected() {
        for (path, code) in [
            ("../evil.sh", "path_traversal"),
            ("a/../../b", "path_traversal"),
            ("/etc/passwd", "absolute_path"),
            ("a\\..\\b", "path_characters"),
            ("C:/evil", "path_characters"),
            ("a//b", "path_characters"),
            ("./a", "path_characters"),
            ("", "path_characters"),
            ("demo/CON", "path_characters"),
            ("demo/aux.md", "path_characters"),
            ("demo/com1", "path_characters"),
            ("demo/trailing.", "path_characters"),
            ("demo/a\nb", "path_characters"),
            ("demo/\u{202e}txt", "path_characters"),
            ("demo/a\u{308}", "path_characters"),
            ("demo/a\u{fffd}", "path_characters"),
            (".git/hooks/post-checkout", "forbidden_path"),
            ("demo/.Claude/settings.json", "forbidden_path"),
            ("a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p/q", "path_length"),
        ] {
            assert_eq!(check(path).map_err(|problem| problem.code()), Err(code), "{path}");
        }
        assert_eq!(check(&"a".repeat(256)), Err(PathProblem::Length));
        assert_eq!(check("company/com10/comet"), Ok(()));
    }

    #[test]
    fn repository_path_may_be_agent_folder() {
        for path in [".claude/skills/pdf", ".github/skills/a b", "skills/CON/x:y", "a/.git/b"] {
            assert_eq!(check_in_repository(path), Ok(()), "{path}");
        }
        for (path, code) in [
            ("../x", "path_traversal"),
            ("a/../../b", "path_traversal"),
            ("/a", "absolute_path"),
            ("", "path_characters"),
            ("a//b", "path_characters"),
            ("a/./b", "path_characters"),
            ("a\\b", "path_characters"),
            ("a\nb", "path_characters"),
            ("a/\u{202e}b", "path_characters"),
            ("a/\u{fffd}", "path_characters"),
        ] {
            let found = check_in_repository(path).map_err(|problem| problem.code());
            assert_eq!(found, Err(code), "{path:?}");
        }
        assert_eq!(check_in_repository(&"a".repeat(1_025)), Err(PathProblem::Length));
    }

    #[test]
    fn conflicting_paths_are_rejected() {
        let problem = |paths: &[&str]| {
            let mut seen = UsedPaths::default();
            paths.iter().try_for_each(|path| seen.file(path)).map_err(|problem| problem.code())
        };
        assert_eq!(problem(&["a/SKILL.md", "a/b.md", "b/SKILL.md"]), Ok(()));
        assert_eq!(problem(&["SKILL.md", "skill.md"]), Err("path_collision"));
        assert_eq!(problem(&["A/x", "a/y"]), Err("path_collision"));
        assert_eq!(problem(&["ﬁ.md", "fi.md"]), Err("path_collision"));
        assert_eq!(problem(&["a", "a"]), Err("duplicate_entry"));
        assert_eq!(problem(&["x", "x/y"]), Err("path_conflict"));
        assert_eq!(problem(&["x/y", "x"]), Err("path_conflict"));
    }
}
