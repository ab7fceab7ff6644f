//! Finds the skills of all agents, and the origin that ledgers record for each. A ledger is the
//! file in which a tool, such as `npx skills` or ClawHub, lists the skills that it installed.
//!
//! It is built to be fast with ten thousand skills: tool ledgers are read on another thread at the
//! same time, and a link to another skill folder of an agent is resolved by its text, without
//! asking the system about each part of the path.

use std::{
    collections::HashMap,
    ffi::{OsStr, OsString},
    fs, io,
    num::NonZero,
    ops::Range,
    os::fd::OwnedFd,
    path::{Component, Path, PathBuf},
    sync::Arc,
    thread,
};

use rustix::fs::{CWD, Mode, OFlags, openat, readlinkat};

use super::{
    LedgerEntry, Origin, SearchRoots, Warning, clawhub, npx,
    tool_ledger::{LedgerCache, ToolLedger},
};
use crate::{
    agents::{Agent, Depth, Scope},
    limits::MAX_CATEGORY_DEPTH,
};

/// The minimum number of links per thread.
const MIN_LINKS_PER_THREAD: usize = 512;

/// A skill folder of one or more agents.
#[derive(Debug)]
pub(super) struct SkillFolder {
    /// The path that agents use.
    pub(super) path: PathBuf,
    /// The path without links.
    real: PathBuf,
    pub(super) scope: Scope,
    /// The agents that read the folder: the index in [`Agent::ALL`], and the rank of the folder in
    /// that agent's search order.
    pub(super) readers: Vec<(usize, usize)>,
    depth: Depth,
    /// The index in the list of folders.
    pub(super) index: usize,
    /// Every path that leads to the folder.
    paths: Vec<(PathBuf, Scope)>,
}

pub(super) struct SearchResult {
    pub(super) entries: Vec<LedgerEntry>,
    /// The tool ledgers that may name the skills of each folder, the most likely first.
    pub(super) tool_ledgers: Vec<Vec<Arc<ToolLedger>>>,
    /// Every tool ledger that was read.
    pub(super) cache: LedgerCache,
    pub(super) warnings: Vec<Warning>,
}

/// Finds all skills, and reports the files that could not be read.
pub(super) fn find_all_skills(roots: &SearchRoots) -> SearchResult {
    let mut search = Search {
        roots,
        folders: Vec::new(),
        entries: Vec::new(),
        nested_paths: Vec::new(),
        entry_ranges: Vec::new(),
        links: Vec::new(),
        unresolved_links: Vec::new(),
        warnings: Vec::new(),
    };
    let mut ledgers = thread::scope(|scope| {
        let listing = scope.spawn(|| search.list_all());
        let ledgers = ToolLedgers::read(roots);
        listing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        ledgers
    });
    let tool_ledgers: Vec<_> =
        search.folders.iter().map(|folder| ledgers.for_folder(folder)).collect();
    search.set_origins(&tool_ledgers);
    search.follow_links(&tool_ledgers);
    let Search { entries, mut warnings, .. } = search;
    warnings.append(&mut ledgers.warnings);
    SearchResult { entries, tool_ledgers, cache: ledgers.cache, warnings }
}

/// The ledgers of other tools, read on demand.
struct ToolLedgers<'a> {
    roots: &'a SearchRoots,
    cache: LedgerCache,
    warnings: Vec<Warning>,
}

impl<'a> ToolLedgers<'a> {
    /// Reads the ledgers of the project and of the user. Other ledgers are beside skill folders.
    fn read(roots: &'a SearchRoots) -> Self {
        let mut ledgers = Self { roots, cache: LedgerCache::default(), warnings: Vec::new() };
        ledgers.npx_ledger(Scope::User);
        ledgers.npx_ledger(Scope::Project);
        if let Some(project) = &roots.project {
            ledgers.clawhub_ledger(project);
        }
        ledgers
    }

    /// Returns the ledgers that may name the skills of a folder.
    fn for_folder(&mut self, folder: &SkillFolder) -> Vec<Arc<ToolLedger>> {
        let mut tool_ledgers: Vec<Arc<ToolLedger>> = Vec::new();
        for (path, scope) in &folder.paths {
            let beside = path.parent().and_then(|above| self.clawhub_ledger(above));
            let of_scope = self.npx_ledger(*scope);
            let project = self.roots.project.as_deref().filter(|_| *scope == Scope::Project);
            let of_project = project.and_then(|project| self.clawhub_ledger(project));
            for tool_ledger in [beside, of_scope, of_project].into_iter().flatten() {
                if !tool_ledgers.iter().any(|known| Arc::ptr_eq(known, &tool_ledger)) {
                    tool_ledgers.push(tool_ledger);
                }
            }
        }
        tool_ledgers
    }

    fn npx_ledger(&mut self, scope: Scope) -> Option<Arc<ToolLedger>> {
        let agents = &self.roots.agents;
        match (scope, self.roots.project.as_deref()) {
            (Scope::Project, Some(project)) => {
                let path = project.join(npx::PROJECT_LEDGER);
                self.cache.tool_ledger(path, &npx::Project(project), &mut self.warnings)
            }
            (Scope::User, _) => {
                let path = npx::user_ledger(agents);
                self.cache.tool_ledger(path, &npx::User(agents.home()), &mut self.warnings)
            }
            _ => None,
        }
    }

    fn clawhub_ledger(&mut self, folder: &Path) -> Option<Arc<ToolLedger>> {
        clawhub::FOLDERS.iter().find_map(|name| {
            let path = folder.join(name).join("lock.json");
            self.cache.tool_ledger(path, &clawhub::Lock, &mut self.warnings)
        })
    }
}

struct Search<'a> {
    roots: &'a SearchRoots,
    folders: Vec<Arc<SkillFolder>>,
    entries: Vec<LedgerEntry>,
    /// The path of each entry below its folder, if it differs from the name.
    nested_paths: Vec<Option<String>>,
    /// The range of entries of each folder.
    entry_ranges: Vec<Range<usize>>,
    /// The links directly in the folders of agents.
    links: Vec<Link>,
    /// The links in category folders below them, and links whose target is not a known folder.
    unresolved_links: Vec<Link>,
    warnings: Vec<Warning>,
}

struct Link {
    folder: Arc<SkillFolder>,
    path: PathBuf,
    name: String,
    target: Option<LinkTarget>,
}

/// A skill that a link leads to in one of the known folders.
struct LinkTarget {
    folder: usize,
    /// The name of the skill, if it differs from the name of the link.
    name: Option<String>,
}

impl Search<'_> {
    fn list_all(&mut self) {
        let folders = self.existing_skill_folders();
        self.folders = folders.into_iter().map(Arc::new).collect();
        for folder in self.folders.clone() {
            let start = self.entries.len();
            if let Err(error) = self.list_skills(&folder, &folder.path, "", 0) {
                self.warnings.push(Warning::new(&folder.path, error));
            }
            self.entry_ranges.push(start..self.entries.len());
        }
        self.resolve_links();
    }

    /// Resolves links on all processors, because resolving them takes most of the time.
    fn resolve_links(&mut self) {
        let threads = thread::available_parallelism().map_or(1, NonZero::get);
        let share = self.links.len().div_ceil(threads).max(MIN_LINKS_PER_THREAD);
        let folders = &self.folders;
        thread::scope(|scope| {
            let mut parts = self.links.chunks_mut(share);
            let first = parts.next();
            for part in parts {
                scope.spawn(move || LinkResolver::resolve_all(part, folders));
            }
            LinkResolver::resolve_all(first.unwrap_or_default(), folders);
        });
    }

    /// Returns the existing folders. Two paths that lead to one folder count as one.
    fn existing_skill_folders(&mut self) -> Vec<SkillFolder> {
        let mut folders: Vec<SkillFolder> = Vec::new();
        let mut by_path: HashMap<OsString, Option<usize>> = HashMap::new();
        for (reader, agent) in Agent::ALL.iter().enumerate() {
            for (rank, (path, scope)) in self.folders_read_by(agent).into_iter().enumerate() {
                let key = path.as_os_str().to_owned();
                let known = by_path.get(&key).copied();
                let index =
                    known.unwrap_or_else(|| self.find_or_add_folder(path, scope, &mut folders));
                by_path.insert(key, index);
                if let Some(folder) = index.and_then(|index| folders.get_mut(index)) {
                    folder.readers.push((reader, rank));
                    if agent.depth == Depth::Nested {
                        folder.depth = Depth::Nested;
                    }
                }
            }
        }
        folders
    }

    fn folders_read_by(&self, agent: &Agent) -> Vec<(PathBuf, Scope)> {
        let project = self.roots.project.as_deref();
        let agents = &self.roots.agents;
        let mut reads = agents.reads(agent, project.unwrap_or(Path::new("")));
        let nested =
            self.roots.nested_folders.iter().flat_map(|folder| agents.reads(agent, folder));
        let nested: Vec<_> = nested.filter(|folder| folder.scope == Scope::Project).collect();
        let first = reads.iter().position(|folder| folder.scope == Scope::Project).unwrap_or(0);
        reads.splice(first..first, nested);
        let reads = reads.into_iter().map(|folder| (folder.path, folder.scope));
        reads.filter(|(_, scope)| project.is_some() || *scope != Scope::Project).collect()
    }

    /// Returns the index of a folder, and adds it to the list if it is new; `None` if it does not
    /// exist.
    fn find_or_add_folder(
        &mut self,
        path: PathBuf,
        scope: Scope,
        folders: &mut Vec<SkillFolder>,
    ) -> Option<usize> {
        if !path.is_dir() {
            return None;
        }
        let real = match path.canonicalize() {
            Ok(real) => real,
            Err(error) => {
                self.warnings.push(Warning::new(&path, error));
                return None;
            }
        };
        if let Some(index) = folders.iter().position(|folder| folder.real == real) {
            folders[index].paths.push((path.clone(), scope));
            // The path without links is preferred for display.
            if path == real {
                folders[index].path = path;
            }
            return Some(index);
        }
        let index = folders.len();
        let paths = vec![(path.clone(), scope)];
        let readers = Vec::new();
        folders.push(SkillFolder { path, real, scope, readers, depth: Depth::One, index, paths });
        Some(index)
    }

    /// Adds the skills of a folder. The key of a skill is its path below the agent's folder.
    fn list_skills(
        &mut self,
        folder: &Arc<SkillFolder>,
        path: &Path,
        prefix: &str,
        depth: usize,
    ) -> io::Result<()> {
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            if !kind.is_dir() && !kind.is_symlink() {
                continue;
            }
            let name = entry.file_name();
            if name.as_encoded_bytes().starts_with(b".") {
                continue;
            }
            let path = entry.path();
            if kind.is_symlink() {
                // Only the agent's folder itself is known to have no link in its path.
                let links = if depth == 0 { &mut self.links } else { &mut self.unresolved_links };
                links.push(Link {
                    folder: Arc::clone(folder),
                    path,
                    name: file_name_text(name),
                    target: None,
                });
                continue;
            }
            let name = file_name_text(name);
            if depth < MAX_CATEGORY_DEPTH && is_category(folder, &path, &name) {
                self.list_skills(folder, &path, &format!("{prefix}{name}/"), depth + 1)?;
            } else {
                self.nested_paths.push((!prefix.is_empty()).then(|| format!("{prefix}{name}")));
                self.entries.push(LedgerEntry::new(name, path, Arc::clone(folder)));
            }
        }
        Ok(())
    }

    /// Sets the recorded origin of every skill from the tool ledgers.
    fn set_origins(&mut self, tool_ledgers: &[Vec<Arc<ToolLedger>>]) {
        for (folder, range) in self.entry_ranges.clone().into_iter().enumerate() {
            for n in range {
                let entry = &self.entries[n];
                let key = self.nested_paths[n].as_deref().unwrap_or(entry.name());
                let origin = self.recorded_origin(&tool_ledgers[folder], entry.path(), key);
                self.entries[n].record(origin);
            }
        }
    }

    /// Returns the origin of a skill that the lock or the tool ledgers record.
    fn recorded_origin(
        &self,
        tool_ledgers: &[Arc<ToolLedger>],
        path: &Path,
        key: &str,
    ) -> Option<Arc<Origin>> {
        let installed = &self.roots.installed_by_savoir;
        if let Some(integrity) = (!installed.is_empty()).then(|| installed.get(path)).flatten() {
            return Some(Arc::new(Origin::Savoir { integrity: integrity.clone() }));
        }
        tool_ledgers.iter().find_map(|tool_ledger| tool_ledger.skills.get(key)).cloned()
    }

    fn follow_links(&mut self, tool_ledgers: &[Vec<Arc<ToolLedger>>]) {
        let links = std::mem::take(&mut self.links);
        let found = self.find_link_targets(&links);
        let mut unresolved = std::mem::take(&mut self.unresolved_links);
        for (link, found) in links.into_iter().zip(found) {
            match found {
                Some(index) => self.entries[index].add_link(link.path, link.folder),
                None => unresolved.push(link),
            }
        }
        if !unresolved.is_empty() {
            self.follow_unresolved_links(unresolved, tool_ledgers);
        }
    }

    /// Returns the entries that links lead to, if their folder is known.
    fn find_link_targets(&self, links: &[Link]) -> Vec<Option<usize>> {
        let mut folders: HashMap<usize, HashMap<&str, usize>> = HashMap::new();
        let find = |link: &Link| {
            let target = link.target.as_ref()?;
            let names = folders.entry(target.folder).or_insert_with(|| {
                let range = self.entry_ranges.get(target.folder).cloned().unwrap_or_default();
                let top_level = range.filter(|n| self.nested_paths[*n].is_none());
                top_level.map(|n| (self.entries[n].name(), n)).collect()
            });
            names.get(target.name.as_deref().unwrap_or(&link.name)).copied()
        };
        links.iter().map(find).collect()
    }

    fn follow_unresolved_links(&mut self, links: Vec<Link>, tool_ledgers: &[Vec<Arc<ToolLedger>>]) {
        let mut by_path: HashMap<OsString, usize> = HashMap::new();
        for (index, entry) in self.entries.iter().enumerate() {
            if let Some(real) = entry.real() {
                by_path.insert(real.into_os_string(), index);
            }
        }
        for link in links {
            match link.path.canonicalize() {
                Ok(target) => self.add_link_or_entry(target, link, &mut by_path, tool_ledgers),
                Err(error) => {
                    let reason = format!("this link leads nowhere: {error}");
                    self.warnings.push(Warning::new(&link.path, reason));
                }
            }
        }
    }

    fn add_link_or_entry(
        &mut self,
        target: PathBuf,
        link: Link,
        by_path: &mut HashMap<OsString, usize>,
        tool_ledgers: &[Vec<Arc<ToolLedger>>],
    ) {
        if let Some(index) = by_path.get(target.as_os_str()) {
            self.entries[*index].add_link(link.path, link.folder);
        } else if target.is_dir() {
            let origin =
                self.recorded_origin(&tool_ledgers[link.folder.index], &link.path, &link.name);
            by_path.insert(target.as_os_str().to_owned(), self.entries.len());
            let mut entry = LedgerEntry::new_linked(link.name, target, link.path, link.folder);
            entry.record(origin);
            self.entries.push(entry);
        }
    }
}

fn file_name_text(name: OsString) -> String {
    name.into_string().unwrap_or_else(|name| name.to_string_lossy().into_owned())
}

/// Resolves the links of one folder by their text, without asking the system about each part of a
/// path. Most of them lead to the same folder.
struct LinkResolver<'a> {
    folder: &'a SkillFolder,
    folders: &'a [Arc<SkillFolder>],
    open: Option<OwnedFd>,
    buffer: Vec<u8>,
    /// The folder part of the last link, and the index of that folder.
    last: Option<(String, Option<usize>)>,
}

impl<'a> LinkResolver<'a> {
    /// Resolves links. Links of the same folder must be adjacent.
    fn resolve_all(links: &mut [Link], folders: &[Arc<SkillFolder>]) {
        for links in links.chunk_by_mut(|a, b| a.folder.index == b.folder.index) {
            let Some(folder) = links.first().map(|link| Arc::clone(&link.folder)) else { continue };
            let mut resolver = LinkResolver::new(&folder, folders);
            for link in links {
                link.target = link.path.file_name().and_then(|name| resolver.resolve_by_text(name));
            }
        }
    }

    fn new(folder: &'a SkillFolder, folders: &'a [Arc<SkillFolder>]) -> Self {
        Self { folder, folders, open: None, buffer: Vec::new(), last: None }
    }

    /// Returns the skill that a link leads to, if its text shows it.
    fn resolve_by_text(&mut self, link: &OsStr) -> Option<LinkTarget> {
        if self.open.is_none() {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            self.open = Some(openat(CWD, &self.folder.path, flags, Mode::empty()).ok()?);
        }
        let open = self.open.as_ref()?;
        let target = readlinkat(open, link, std::mem::take(&mut self.buffer)).ok()?;
        self.buffer = target.into_bytes();
        let (folder, name) = std::str::from_utf8(&self.buffer).ok()?.rsplit_once('/')?;
        if matches!(name, "" | "." | "..") {
            return None;
        }
        let known = self.last.as_ref().filter(|(last, _)| last == folder);
        let index = if let Some((_, index)) = known {
            *index
        } else {
            let path = join_without_links(&self.folder.real, Path::new(folder));
            let index = path.and_then(|path| self.folders.iter().position(|f| f.real == path));
            self.last = Some((folder.to_owned(), index));
            index
        };
        let name = (link != name).then(|| name.to_owned());
        Some(LinkTarget { folder: index?, name })
    }
}

/// Appends a relative path to a folder without links; `None` if the text alone cannot show the
/// result, because `..` after a name may follow a link.
fn join_without_links(folder: &Path, path: &Path) -> Option<PathBuf> {
    let mut joined = folder.to_owned();
    let mut entered_folder = false;
    for part in path.components() {
        match part {
            Component::ParentDir if entered_folder => return None,
            Component::ParentDir => drop(joined.pop()),
            Component::CurDir => (),
            _ => {
                entered_folder = true;
                joined.push(part);
            }
        }
    }
    Some(joined)
}

/// Whether a folder contains skills instead of being one: ClawHub installs the skills of an owner
/// into a folder of that owner, and some agents support categories.
fn is_category(folder: &SkillFolder, path: &Path, name: &str) -> bool {
    name.starts_with('@')
        || (folder.depth == Depth::Nested
            && !super::entry::SKILL_FILES.iter().any(|file| path.join(file).exists()))
}

impl SkillFolder {
    /// Returns a path below this folder without links.
    pub(super) fn real_path(&self, path: &Path) -> Option<PathBuf> {
        // Comparing path components is slow, and most folders have no link in their path.
        if self.real.as_os_str() == self.path.as_os_str() {
            return Some(path.to_owned());
        }
        Some(self.real.join(path.strip_prefix(&self.path).ok()?))
    }
}
