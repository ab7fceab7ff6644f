//! Lists every folder of every agent, once.

use std::{
    collections::HashMap,
    ffi::OsString,
    fs, io,
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use super::{
    Entry, Origin, Places, Warning,
    book::{Book, Shelf},
    clawhub, npx,
};
use crate::{
    agents::{Agent, Depth, Scope},
    limits::MAX_CATEGORY_DEPTH,
};

/// A folder of skills.
#[derive(Debug)]
pub(super) struct Folder {
    /// Where it is, as agents know it.
    pub(super) path: PathBuf,
    /// Where it really is.
    real: PathBuf,
    pub(super) scope: Scope,
    /// The agents that read it, by their place in the table, and which of their folders it is.
    pub(super) readers: Vec<(usize, usize)>,
    depth: Depth,
    /// Ledgers that may name its skills, the most likely first.
    books: Vec<Arc<Book>>,
}

/// Every skill, and what could not be read.
pub(super) fn all(places: &Places) -> (Vec<Entry>, Vec<Warning>) {
    let mut search = Search {
        places,
        shelf: Shelf::default(),
        entries: Vec::new(),
        links: Vec::new(),
        warnings: Vec::new(),
    };
    for folder in search.folders() {
        search.list(&Arc::new(folder));
    }
    search.follow_links();
    (search.entries, search.warnings)
}

struct Search<'a> {
    places: &'a Places,
    shelf: Shelf,
    entries: Vec<Entry>,
    links: Vec<Link>,
    warnings: Vec<Warning>,
}

struct Link {
    folder: Arc<Folder>,
    path: PathBuf,
    name: String,
}

impl Search<'_> {
    /// The folders that are there. Two paths to one folder are one.
    fn folders(&mut self) -> Vec<Folder> {
        let mut folders: Vec<Folder> = Vec::new();
        let mut by_path: HashMap<OsString, Option<usize>> = HashMap::new();
        for (reader, agent) in Agent::ALL.iter().enumerate() {
            for (rank, (path, scope)) in self.reads(agent).into_iter().enumerate() {
                let key = path.as_os_str().to_owned();
                let known = by_path.get(&key).copied();
                let at = known.unwrap_or_else(|| self.folder(path, scope, &mut folders));
                by_path.insert(key, at);
                if let Some(folder) = at.and_then(|at| folders.get_mut(at)) {
                    folder.readers.push((reader, rank));
                    if agent.depth == Depth::Nested {
                        folder.depth = Depth::Nested;
                    }
                }
            }
        }
        folders
    }

    fn reads(&self, agent: &Agent) -> Vec<(PathBuf, Scope)> {
        let project = self.places.project.as_deref();
        let reads = self.places.agents.reads(agent, project.unwrap_or(Path::new("")));
        let reads = reads.into_iter().map(|folder| (folder.path, folder.scope));
        reads.filter(|(_, scope)| project.is_some() || *scope != Scope::Project).collect()
    }

    /// The place of a folder in the list, to which it is added if it is new and there.
    fn folder(&mut self, path: PathBuf, scope: Scope, folders: &mut Vec<Folder>) -> Option<usize> {
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
        let books = self.books(&path, scope);
        if let Some(at) = folders.iter().position(|folder| folder.real == real) {
            let new = |book: &Arc<Book>| !folders[at].books.iter().any(|b| Arc::ptr_eq(b, book));
            let books: Vec<_> = books.into_iter().filter(new).collect();
            folders[at].books.extend(books);
            // The path without links is the better one to show.
            if path == real {
                folders[at].path = path;
            }
            return Some(at);
        }
        folders.push(Folder { path, real, scope, readers: Vec::new(), depth: Depth::One, books });
        Some(folders.len() - 1)
    }

    /// The ledgers that may name the skills of a folder.
    fn books(&mut self, folder: &Path, scope: Scope) -> Vec<Arc<Book>> {
        let mut books = Vec::new();
        if let Some(above) = folder.parent() {
            books.extend(self.clawhub(above));
        }
        let home = self.places.agents.home();
        match (scope, self.places.project.as_deref()) {
            (Scope::Project, Some(project)) => {
                let path = project.join(npx::PROJECT_LEDGER);
                let writing = npx::Project(project);
                books.extend(self.shelf.book(path, &writing, &mut self.warnings));
                books.extend(self.clawhub(project));
            }
            (Scope::User, _) => {
                let path = npx::user_ledger(&self.places.agents);
                books.extend(self.shelf.book(path, &npx::User(home), &mut self.warnings));
            }
            _ => (),
        }
        books
    }

    fn clawhub(&mut self, folder: &Path) -> Option<Arc<Book>> {
        clawhub::FOLDERS.iter().find_map(|name| {
            let path = folder.join(name).join("lock.json");
            self.shelf.book(path, &clawhub::Lock, &mut self.warnings)
        })
    }

    fn list(&mut self, folder: &Arc<Folder>) {
        if let Err(error) = self.list_below(folder, &folder.path, "", 0) {
            self.warnings.push(Warning::new(&folder.path, error));
        }
    }

    /// Takes in the skills of a folder. The key of one is its path below the agent's folder.
    fn list_below(
        &mut self,
        folder: &Arc<Folder>,
        place: &Path,
        prefix: &str,
        depth: usize,
    ) -> io::Result<()> {
        for entry in fs::read_dir(place)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            if !kind.is_dir() && !kind.is_symlink() {
                continue;
            }
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with('.') {
                continue;
            }
            if kind.is_symlink() {
                self.links.push(Link { folder: Arc::clone(folder), path: entry.path(), name });
                continue;
            }
            let path = entry.path();
            let deeper = depth < MAX_CATEGORY_DEPTH && is_category(folder, &path, &name);
            if deeper {
                self.list_below(folder, &path, &format!("{prefix}{name}/"), depth + 1)?;
            } else {
                let origin = if prefix.is_empty() {
                    self.recorded(folder, &path, &name)
                } else {
                    self.recorded(folder, &path, &format!("{prefix}{name}"))
                };
                self.entries.push(Entry::new(name, path, origin, Arc::clone(folder)));
            }
        }
        Ok(())
    }

    /// How a skill came into a folder, by what the ledgers say.
    fn recorded(&self, folder: &Folder, path: &Path, key: &str) -> Option<Arc<Origin>> {
        let own = &self.places.own;
        if let Some(integrity) = (!own.is_empty()).then(|| own.get(path)).flatten() {
            return Some(Arc::new(Origin::Savoir { integrity: integrity.clone() }));
        }
        folder.books.iter().find_map(|book| book.skills.get(key)).cloned()
    }

    fn follow_links(&mut self) {
        let links = std::mem::take(&mut self.links);
        if links.is_empty() {
            return;
        }
        let mut by_path: HashMap<OsString, usize> = HashMap::new();
        for (at, entry) in self.entries.iter().enumerate() {
            if let Some(real) = entry.real() {
                by_path.insert(real.into_os_string(), at);
            }
        }
        for link in links {
            let near = near_target(&link).and_then(|path| by_path.get(path.as_os_str()));
            if let Some(at) = near {
                self.entries[*at].link(link.path, link.folder);
                continue;
            }
            match link.path.canonicalize() {
                Ok(target) => self.link_to(target, link, &mut by_path),
                Err(error) => {
                    let reason = format!("this link leads nowhere: {error}");
                    self.warnings.push(Warning::new(&link.path, reason));
                }
            }
        }
    }

    fn link_to(&mut self, target: PathBuf, link: Link, by_path: &mut HashMap<OsString, usize>) {
        if let Some(at) = by_path.get(target.as_os_str()) {
            self.entries[*at].link(link.path, link.folder);
        } else if target.is_dir() {
            let origin = self.recorded(&link.folder, &link.path, &link.name);
            by_path.insert(target.as_os_str().to_owned(), self.entries.len());
            self.entries.push(Entry::linked(link.name, target, origin, link.path, link.folder));
        }
    }
}

/// Where a link leads, without asking the system about each part of the path.
fn near_target(link: &Link) -> Option<PathBuf> {
    let target = fs::read_link(&link.path).ok()?;
    // Only the agent's folder itself is known to have no link in its path.
    if link.path.parent() != Some(&link.folder.path) {
        return None;
    }
    let mut path = link.folder.real.clone();
    let mut down = false;
    for part in target.components() {
        match part {
            Component::ParentDir if down => return None,
            Component::ParentDir => drop(path.pop()),
            Component::CurDir => (),
            _ => {
                down = true;
                path.push(part);
            }
        }
    }
    Some(path)
}

/// Whether a folder holds skills instead of being one: those of an owner at ClawHub are in a folder
/// of their own, and some agents know categories.
fn is_category(folder: &Folder, path: &Path, name: &str) -> bool {
    name.starts_with('@')
        || (folder.depth == Depth::Nested
            && !super::entry::SKILL_FILES.iter().any(|file| path.join(file).exists()))
}

impl Folder {
    /// Where something below it really is.
    pub(super) fn real_path(&self, path: &Path) -> Option<PathBuf> {
        // Taking paths apart is slow, and most folders are where they seem to be.
        if self.real.as_os_str() == self.path.as_os_str() {
            return Some(path.to_owned());
        }
        Some(self.real.join(path.strip_prefix(&self.path).ok()?))
    }
}
