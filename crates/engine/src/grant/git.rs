//! Finds files that git configuration points to: hook folders and included configuration files.

use std::{
    env,
    fs::File,
    io::Read as _,
    path::{Component, Path, PathBuf},
};

use rustix::fs::{CWD, Mode, OFlags, openat};

use super::is_repository;

/// Bytes of a configuration file that are read.
const MAX_BYTES: u64 = 1 << 20;
/// Depth of includes that are followed, as many as git follows.
const MAX_INCLUDES: usize = 10;
/// Maximum number of paths that are taken from one repository.
const MAX_PATHS: usize = 100;

/// The paths that the configuration for a working folder names: that of its repository, and that of
/// the user.
pub(super) fn paths_from_all_git_configs(folder: &Path, home: &Path) -> Vec<PathBuf> {
    let mut paths = paths_from_git_config(folder, home);
    for file in user_config_files(home) {
        follow_includes(&file, folder, home, &mut paths, MAX_INCLUDES);
    }
    paths
}

/// The files in which git looks for the configuration of the user and of the system, including
/// those that environment variables name.
fn user_config_files(home: &Path) -> Vec<PathBuf> {
    let named = |name: &str| env::var_os(name).filter(|path| !path.is_empty()).map(PathBuf::from);
    let mut files =
        vec![home.join(".gitconfig"), home.join(".config/git/config"), "/etc/gitconfig".into()];
    files.extend(named("XDG_CONFIG_HOME").map(|folder| folder.join("git/config")));
    files.extend(["GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"].into_iter().filter_map(named));
    files
}

/// The paths that the configuration of a repository names. `folder` contains the repository, or is
/// a bare repository.
pub fn paths_from_git_config(folder: &Path, home: &Path) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for file in config_files(folder) {
        follow_includes(&file, folder, home, &mut paths, MAX_INCLUDES);
    }
    paths
}

fn config_files(folder: &Path) -> Vec<PathBuf> {
    let inner = folder.join(".git");
    let git = match read_file(&inner) {
        // In a worktree, `.git` is a file with the path of the git folder.
        Some(text) => text.trim().strip_prefix("gitdir:").map(|path| folder.join(path.trim())),
        None => Some(if inner.is_dir() { inner } else { folder.to_owned() }),
    };
    let Some(git) = git else { return Vec::new() };
    let common = read_file(&git.join("commondir")).map(|path| git.join(path.trim()));
    vec![common.as_ref().unwrap_or(&git).join("config"), git.join("config.worktree")]
}

fn follow_includes(file: &Path, folder: &Path, home: &Path, paths: &mut Vec<PathBuf>, more: usize) {
    let Some(text) = read_file(file) else { return };
    for GitSetting { key, value } in parse_settings(&text) {
        let (base, is_settings) = match key.as_str() {
            "core.hookspath" => (folder, false),
            "include.path" | "includeif.path" => (file.parent().unwrap_or(folder), true),
            _ => continue,
        };
        let place = match value.strip_prefix("~/") {
            Some(rest) => home.join(rest),
            None => base.join(&value),
        };
        if paths.len() >= MAX_PATHS {
            return;
        }
        if is_settings && more > 0 {
            follow_includes(&place, folder, home, paths, more - 1);
        }
        paths.push(resolve_existing(&place));
    }
}

/// A path without symlinks, `.` and `..`; only without `.` and `..` if it does not exist.
fn resolve_existing(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| {
        let mut plain = PathBuf::new();
        for part in path.components() {
            match part {
                Component::ParentDir => drop(plain.pop()),
                Component::CurDir => {}
                part => plain.push(part),
            }
        }
        plain
    })
}

/// A linked worktree (`git worktree add`), whose repository is in another folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkedWorktree {
    /// The folder of the repository about this worktree, `.git/worktrees/NAME`.
    pub git_dir: PathBuf,
    /// The repository that all worktrees share, usually the `.git` of the main one.
    pub common: PathBuf,
}

impl LinkedWorktree {
    /// The linked worktree in a folder.
    ///
    /// Its `.git` file could name any folder, so the repository must name the worktree, too: only
    /// somebody who could change the repository has linked the two.
    pub(crate) fn of(root: &Path) -> Option<Self> {
        let pointer = root.join(".git");
        if !pointer.symlink_metadata().ok()?.is_file() {
            return None;
        }
        let target = read_file(&pointer)?;
        let git_dir =
            root.join(target.trim().strip_prefix("gitdir:")?.trim()).canonicalize().ok()?;
        let target_in =
            |file: &str| git_dir.join(read_file(&git_dir.join(file))?.trim()).canonicalize().ok();
        let (common, back) = (target_in("commondir")?, target_in("gitdir")?);
        let is_linked = back == pointer.canonicalize().ok()?
            && git_dir.parent()? == common.join("worktrees")
            && is_repository(|name| common.join(name).exists());
        is_linked.then_some(Self { git_dir, common })
    }
}

/// The text of a regular file. Pipes are opened without blocking, because opening one would
/// otherwise wait for a writer.
fn read_file(path: &Path) -> Option<String> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(openat(CWD, path, flags, Mode::empty()).ok()?);
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(MAX_BYTES).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[derive(Debug, PartialEq, Eq)]
struct GitSetting {
    /// `section.key`, in lower case, without the subsection.
    key: String,
    value: String,
}

/// Parses a configuration file as git does.
fn parse_settings(text: &str) -> Vec<GitSetting> {
    let mut config_files = Vec::new();
    let mut section = String::new();
    let mut rest = text.trim_start_matches('\u{feff}').chars().peekable();
    while let Some(first) = rest.next() {
        match first {
            '[' => section = read_section(&mut rest),
            '#' | ';' => skip_line(&mut rest),
            first if first.is_alphabetic() => {
                let mut key = first.to_string();
                while let Some(next) = rest.next_if(|c| c.is_alphanumeric() || *c == '-') {
                    key.push(next);
                }
                while rest.next_if(|c| matches!(c, ' ' | '\t')).is_some() {}
                let value = if rest.next_if_eq(&'=').is_some() {
                    read_value(&mut rest)
                } else {
                    String::new()
                };
                let key = format!("{section}.{}", key.to_ascii_lowercase());
                config_files.push(GitSetting { key, value });
            }
            _ => {}
        }
    }
    config_files
}

type ConfigChars<'a> = std::iter::Peekable<std::str::Chars<'a>>;

fn skip_line(rest: &mut ConfigChars<'_>) {
    while rest.next().is_some_and(|c| c != '\n') {}
}

/// Reads the first word of `section "part"]` or `section.part]`.
fn read_section(rest: &mut ConfigChars<'_>) -> String {
    let mut name = String::new();
    let (mut is_quoted, mut is_over) = (false, false);
    while let Some(next) = rest.next() {
        match next {
            '\\' if is_quoted => drop(rest.next()),
            '"' => (is_quoted, is_over) = (!is_quoted, true),
            ']' if !is_quoted => break,
            '\n' => break,
            ' ' | '\t' | '.' => is_over = true,
            next if !is_over => name.push(next.to_ascii_lowercase()),
            _ => {}
        }
    }
    name
}

fn read_value(rest: &mut ConfigChars<'_>) -> String {
    let mut value = String::new();
    // Trailing spaces count only inside quotes.
    let mut kept = 0;
    let mut is_quoted = false;
    while let Some(next) = rest.next() {
        match next {
            '\n' => break,
            '\r' if rest.peek() == Some(&'\n') => {}
            '"' => is_quoted = !is_quoted,
            '#' | ';' if !is_quoted => {
                skip_line(rest);
                break;
            }
            '\\' => match rest.next() {
                Some('\r') => drop(rest.next_if_eq(&'\n')),
                Some('\n') | None => {}
                Some('n') => value.push('\n'),
                Some('t') => value.push('\t'),
                Some('b') => value.push('\u{8}'),
                Some(other) => value.push(other),
            },
            ' ' | '\t' if !is_quoted && value.is_empty() => continue,
            next => value.push(next),
        }
        if is_quoted || !value.ends_with([' ', '\t']) {
            kept = value.len();
        }
    }
    value.truncate(kept);
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str, wanted: &str) -> Option<String> {
        parse_settings(text).into_iter().find(|one| one.key == wanted).map(|one| one.value)
    }

    #[test]
    fn settings_are_read_as_git_reads_them() {
        for (text, read) in [
            ("[core]\n\thooksPath = .hooks\n", ".hooks"),
            ("[CORE]\n  HOOKSPATH=.hooks # mine", ".hooks"),
            ("[core] hookspath = \"a # b\"\n", "a # b"),
            ("[core]\r\nhooksPath = .hooks  \r\n", ".hooks"),
            ("[core]\nhooksPath = .ho\\\noks\n", ".hooks"),
            ("[core]\nbare\n; [x]\nhooksPath = a\\\\b\\\"c\n", "a\\b\"c"),
            ("\u{feff}[remote \"x ] \\\" y\"]\nurl = z\n[core]\nhooksPath = \"a \" \n", "a "),
        ] {
            assert_eq!(value(text, "core.hookspath").as_deref(), Some(read), "{text}");
        }
        let text = "[includeIf \"gitdir:~/x/\"]\npath = more\n";
        assert_eq!(value(text, "includeif.path").as_deref(), Some("more"));
        assert_eq!(value("# [core]\n[other]\nhooksPath = x", "core.hookspath"), None);
    }

    #[test]
    fn paths_are_found_in_included_files() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join(".git")).unwrap();
        let config = "[include]\npath = ../team/gitconfig\npath = config\n";
        std::fs::write(root.join(".git/config"), config).unwrap();
        std::fs::create_dir(root.join("team")).unwrap();
        std::fs::write(root.join("team/gitconfig"), "[core]\nhooksPath = ./a/../b\n").unwrap();
        let home = root.join("home");
        let paths = paths_from_git_config(&root, &home);
        for place in ["team/gitconfig", "b"] {
            assert!(paths.contains(&root.join(place)), "{place}: {paths:?}");
        }
        std::fs::create_dir(&home).unwrap();
        std::fs::write(home.join(".gitconfig"), "[core]\nhooksPath = .myhooks\n").unwrap();
        assert!(paths_from_all_git_configs(&root, &home).contains(&root.join(".myhooks")));
        // A second worktree of the same repository.
        std::fs::create_dir_all(root.join("beside")).unwrap();
        std::fs::create_dir_all(root.join(".git/worktrees/beside")).unwrap();
        std::fs::write(root.join(".git/worktrees/beside/commondir"), "../..\n").unwrap();
        std::fs::write(root.join("beside/.git"), "gitdir: ../.git/worktrees/beside\n").unwrap();
        let paths = paths_from_git_config(&root.join("beside"), &home);
        assert!(paths.contains(&root.join("beside/b")), "{paths:?}");
    }

    #[test]
    fn worktree_and_repository_must_name_each_other() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("main/.git/HEAD", "ref: refs/heads/main\n");
        write("main/.git/objects/x", "");
        write("main/.git/refs/x", "");
        write("main/.git/worktrees/wt/commondir", "../..\n");
        write("main/.git/worktrees/wt/gitdir", &format!("{}\n", root.join("wt/.git").display()));
        write("wt/.git", "gitdir: ../main/.git/worktrees/wt\n");
        let found = LinkedWorktree::of(&root.join("wt")).unwrap();
        assert_eq!(found.common, root.join("main/.git"));
        assert_eq!(found.git_dir, root.join("main/.git/worktrees/wt"));
        assert_eq!(LinkedWorktree::of(&root.join("main")), None);
        // A project of a stranger that names the repository of the user, or any other folder.
        write("evil/.git", "gitdir: ../main/.git/worktrees/wt\n");
        assert_eq!(LinkedWorktree::of(&root.join("evil")), None);
        write("own/git/commondir", "../../main/.git\n");
        write("own/git/gitdir", "../.git\n");
        write("own/.git", "gitdir: git\n");
        assert_eq!(LinkedWorktree::of(&root.join("own")), None);
        write("own/secrets/worktrees/x/commondir", "../..\n");
        write("own/secrets/worktrees/x/gitdir", "../../../.git\n");
        write("own/.git", "gitdir: secrets/worktrees/x\n");
        assert_eq!(LinkedWorktree::of(&root.join("own")), None, "it is not a repository");
    }
}
