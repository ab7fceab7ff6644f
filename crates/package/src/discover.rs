//! Finds skills below paths: sorted, without following symlinks, honoring `.gitignore`.
//!
//! The walk lists each folder once and passes the files it saw on to the skill, so that no folder
//! is listed twice.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use savoir_skill::{
    folder::{File, Folder, IGNORED_FOLDERS, is_skill_file},
    limits,
};

use crate::agents::{self, PLUGIN_FOLDER};

/// Deepest folder that is searched.
const MAX_DEPTH: usize = 64;

/// A skill file, or the reason why a path has none.
#[derive(Debug)]
pub enum Candidate {
    /// A file to read, with its folder when it is a whole skill.
    Skill {
        path: PathBuf,
        folder: Option<Folder>,
        /// For a symlink: its target must be below this folder.
        root: Option<PathBuf>,
        /// Whether the user gave this path.
        named: bool,
    },
    /// A path that cannot be read.
    Unreadable { path: PathBuf, problem: String },
    /// A path that the user gave and that has no skill.
    Empty { path: PathBuf },
}

/// Walks `paths` in order and passes every candidate to `found`, which returns whether to go on.
/// Skips what `.gitignore` excludes.
pub fn walk(paths: &[PathBuf], found: &mut dyn FnMut(Candidate) -> bool) {
    walk_with(paths, true, found);
}

/// Like [`walk`], but includes paths that `.gitignore` excludes, for callers for which an ignore
/// rule must not hide a skill.
pub fn walk_all(paths: &[PathBuf], found: &mut dyn FnMut(Candidate) -> bool) {
    walk_with(paths, false, found);
}

fn walk_with(paths: &[PathBuf], uses_gitignore: bool, found: &mut dyn FnMut(Candidate) -> bool) {
    for path in paths {
        let absolute = path.canonicalize().unwrap_or_else(|_| path.clone());
        let mut walk =
            Walk { root: path.clone(), absolute, uses_gitignore, count: 0, found, stopped: false };
        walk.start(path);
        if walk.stopped {
            return;
        }
    }
}

struct Walk<'a> {
    root: PathBuf,
    /// `root` as an absolute path, to match ignore rules.
    absolute: PathBuf,
    uses_gitignore: bool,
    count: usize,
    found: &'a mut dyn FnMut(Candidate) -> bool,
    stopped: bool,
}

impl Walk<'_> {
    fn start(&mut self, path: &Path) {
        match fs::metadata(path) {
            Err(error) => self.unreadable(path, &error),
            Ok(metadata) if metadata.is_dir() => {
                let mut above = InheritedRules {
                    rules: if self.uses_gitignore { ancestors(&self.absolute) } else { Vec::new() },
                    plugin: agents::is_in_plugin(&self.absolute),
                };
                self.folder(path, &mut above, 0, None);
                if self.count == 0 {
                    self.emit(Candidate::Empty { path: path.to_owned() });
                }
            }
            Ok(_) => self.file(path),
        }
    }

    fn absolute_of(&self, dir: &Path) -> PathBuf {
        dir.strip_prefix(&self.root)
            .map_or_else(|_| dir.to_owned(), |rest| self.absolute.join(rest))
    }

    /// A file that the user gave: a skill with its folder if it is a SKILL.md, else a single file.
    fn file(&mut self, path: &Path) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let parent = path
            .parent()
            .map(|parent| if parent.as_os_str().is_empty() { Path::new(".") } else { parent });
        let folder =
            parent.filter(|_| is_skill_file(&name)).and_then(|parent| Folder::open(parent).ok());
        let folder = folder.map(|folder| {
            let hint = agents::hint_at(folder.root());
            folder.with_hint(hint)
        });
        let root = path.is_symlink().then(|| parent.unwrap_or(path).to_owned());
        self.emit(Candidate::Skill { path: path.to_owned(), folder, root, named: true });
    }

    fn emit(&mut self, candidate: Candidate) {
        self.count += 1;
        if !self.stopped && !(self.found)(candidate) {
            self.stopped = true;
        }
    }

    fn unreadable(&mut self, path: &Path, error: &io::Error) {
        let problem = match error.kind() {
            io::ErrorKind::NotFound if path.is_symlink() => "the symlink is broken".to_owned(),
            io::ErrorKind::NotFound => "the file or folder does not exist".to_owned(),
            _ => error.to_string(),
        };
        self.emit(Candidate::Unreadable { path: path.to_owned(), problem });
    }

    /// Lists a folder. `outer` gathers the files of the skill that this folder belongs to.
    fn folder(
        &mut self,
        dir: &Path,
        above: &mut InheritedRules,
        depth: usize,
        outer: Option<(&mut Vec<File>, &str)>,
    ) {
        let mut entries = match list(dir) {
            Ok(entries) => entries,
            Err(error) => return self.unreadable(dir, &error),
        };
        let (before, was_plugin) = (above.rules.len(), above.plugin);
        let has_folder =
            |name: &str| entries.iter().any(|entry| entry.name == name && entry.is_dir);
        // A repository inside a plugin is not part of it.
        above.plugin =
            has_folder(PLUGIN_FOLDER) || above.plugin && !(depth > 0 && has_folder(".git"));
        let rules = &mut above.rules;
        if self.uses_gitignore
            && entries.iter().any(|entry| entry.name == ".gitignore" && !entry.is_dir)
        {
            rules.extend(gitignore(&self.absolute_of(dir)));
        }
        if !rules.is_empty() {
            let absolute = self.absolute_of(dir);
            entries.retain(|entry| !is_ignored(rules, &absolute, entry));
        }
        let skill = entries.iter().find(|entry| is_skill_file(&entry.name));
        match (skill, outer) {
            (Some(skill), outer) => {
                let path = dir.join(&skill.name);
                let is_dir = skill.is_dir;
                let root = skill.is_link.then(|| self.root.clone());
                let mut files = Vec::new();
                self.entries(dir, &entries, above, depth, Some((&mut files, "")));
                // The files of a skill inside another one belong to both.
                if let Some((outer, prefix)) = outer {
                    let room = limits::MAX_FOLDER_FILES.saturating_sub(outer.len());
                    let inner = files.iter().take(room);
                    outer.extend(
                        inner.map(|file| File { path: join(prefix, &file.path), link: file.link }),
                    );
                }
                if is_dir {
                    let problem = "it is a folder, not a file".to_owned();
                    self.emit(Candidate::Unreadable { path, problem });
                } else {
                    files.sort_by(|a, b| a.path.cmp(&b.path));
                    let hint = agents::hint_of_path(&self.absolute_of(dir));
                    let hint = hint.or_else(|| above.plugin.then(agents::plugin_hint));
                    let folder = Folder::from_parts(dir.to_owned(), files).with_hint(hint);
                    self.emit(Candidate::Skill { path, folder: Some(folder), root, named: false });
                }
            }
            (None, outer) => self.entries(dir, &entries, above, depth, outer),
        }
        above.rules.truncate(before);
        above.plugin = was_plugin;
    }

    fn entries(
        &mut self,
        dir: &Path,
        entries: &[FolderEntry],
        above: &mut InheritedRules,
        depth: usize,
        mut outer: Option<(&mut Vec<File>, &str)>,
    ) {
        for entry in entries {
            if self.stopped {
                return;
            }
            if !entry.is_dir {
                if let Some((files, prefix)) = &mut outer
                    && files.len() < limits::MAX_FOLDER_FILES
                {
                    files.push(File { path: join(prefix, &entry.name), link: entry.is_link });
                }
                continue;
            }
            if IGNORED_FOLDERS.contains(&entry.name.as_str()) || depth >= MAX_DEPTH {
                continue;
            }
            let path = dir.join(&entry.name);
            match &mut outer {
                Some((files, prefix)) => {
                    let inner = join(prefix, &entry.name);
                    self.folder(&path, above, depth + 1, Some((files, &inner)));
                }
                None => self.folder(&path, above, depth + 1, None),
            }
        }
    }
}

/// The settings that a folder inherits from the folders above it.
struct InheritedRules {
    rules: Vec<Gitignore>,
    /// Whether one of them is a plugin of Claude Code.
    plugin: bool,
}

struct FolderEntry {
    name: String,
    is_dir: bool,
    is_link: bool,
}

fn list(dir: &Path) -> io::Result<Vec<FolderEntry>> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        let regular = kind.is_file() || kind.is_symlink() || kind.is_dir();
        // Pipes, sockets and devices are never part of a skill, and opening one may block.
        let Some(name) = entry.file_name().to_str().filter(|_| regular).map(str::to_owned) else {
            continue;
        };
        entries.push(FolderEntry { name, is_dir: kind.is_dir(), is_link: kind.is_symlink() });
    }
    entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    Ok(entries)
}

fn join(prefix: &str, name: &str) -> String {
    if prefix.is_empty() { name.to_owned() } else { format!("{prefix}/{name}") }
}

fn is_ignored(rules: &[Gitignore], dir: &Path, entry: &FolderEntry) -> bool {
    let path = dir.join(&entry.name);
    for rules in rules.iter().rev() {
        match rules.matched(&path, entry.is_dir) {
            ignore::Match::Ignore(_) => return true,
            ignore::Match::Whitelist(_) => return false,
            ignore::Match::None => {}
        }
    }
    false
}

fn gitignore(dir: &Path) -> Option<Gitignore> {
    let mut builder = GitignoreBuilder::new(dir);
    // Like git, skip lines that are not a pattern.
    let _ = builder.add(dir.join(".gitignore"));
    builder.build().ok().filter(|rules| !rules.is_empty())
}

/// The `.gitignore` files above a folder, up to the root of its repository.
fn ancestors(absolute: &Path) -> Vec<Gitignore> {
    let above: Vec<&Path> = absolute.ancestors().collect();
    let Some(top) = above.iter().position(|dir| dir.join(".git").exists()) else {
        return Vec::new();
    };
    let outer = above.iter().take(top + 1).skip(1).rev();
    outer.filter(|dir| dir.join(".gitignore").is_file()).filter_map(|dir| gitignore(dir)).collect()
}
