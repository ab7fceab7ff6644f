//! [`Closure`]: what a program needs to start and to work, and nothing more.
//!
//! The new root of a run is built from nothing, so whatever is not named here does not exist there.
//! Nothing is executed to find out, not even `ldd`, since that would start the very program:
//! [`elf`] reads the headers, [`loader`] repeats the search of the dynamic loader, [`script`] the kernel's reading of `#!`,
//! [`way`] notes the links that lead to each file, and [`helpers`] knows what git, Python, Node, Perl and Ruby
//! open beside their own file. [`build`] holds these together and [`memory`] keeps the results of this process.
//!
//! The program may come from a skill and be any bytes. It can name libraries of this machine and, as a script, an interpreter;
//! it cannot bring in a program as its library or loader, nor a folder that a link leads out to.

mod access;
mod build;
mod catalogue;
mod elf;
mod error;
mod find;
mod helpers;
mod loader;
mod memory;
mod reader;
mod script;
mod way;

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use serde::Serialize;

use self::{build::Builder, memory::recall};
pub use self::{
    error::ClosureError,
    find::{TRUSTED_PATH, find},
};

/// What a file is there for; what comes later can do what comes earlier can.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// It is read.
    Data,
    /// It is mapped: a library or the loader.
    Library,
    /// It is executed because the first line of a script names it; whether it may is for the caller to say.
    Interpreter,
    /// It is executed because it was asked for.
    Program,
}

/// What a folder that comes whole holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Contents {
    /// Only what is read.
    Data,
    /// Also what is mapped or executed: modules of an interpreter, programs of git.
    Code,
}

/// What programs need in a root of their own; every path is bound at the path that it has outside.
///
/// To build it: folders in the order of their paths, an empty folder over each hidden one, files, links.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Closure {
    files: BTreeMap<PathBuf, Kind>,
    folders: BTreeMap<PathBuf, Contents>,
    hidden: BTreeSet<PathBuf>,
    links: BTreeMap<PathBuf, PathBuf>,
}

impl Closure {
    /// What these programs need, each named by an absolute path.
    pub fn of(programs: &[PathBuf]) -> Result<Self, ClosureError> {
        if let [program] = programs {
            return recall(program, || Builder::new(program).build());
        }
        let mut all = Self::default();
        for program in programs {
            all.add(&recall(program, || Builder::new(program).build())?);
        }
        all.tidy();
        Ok(all)
    }

    /// Regular files by their real paths.
    pub fn files(&self) -> impl Iterator<Item = (&Path, Kind)> {
        self.files.iter().map(|(path, kind)| (path.as_path(), *kind))
    }

    /// Folders that come whole, by their real paths.
    pub fn folders(&self) -> impl Iterator<Item = (&Path, Contents)> {
        self.folders.iter().map(|(path, contents)| (path.as_path(), *contents))
    }

    /// Folders within those that stay empty: packages that were installed beside a standard library.
    pub fn hidden(&self) -> impl Iterator<Item = &Path> {
        self.hidden.iter().map(PathBuf::as_path)
    }

    /// Symbolic links, each with what it says.
    pub fn links(&self) -> impl Iterator<Item = (&Path, &Path)> {
        self.links.iter().map(|(link, target)| (link.as_path(), target.as_path()))
    }

    /// Joins another closure to this one: what one of them shows is shown.
    fn add(&mut self, other: &Self) {
        self.hidden.retain(|path| !other.shows(path));
        let hidden: Vec<_> =
            other.hidden.iter().filter(|path| !self.shows(path)).cloned().collect();
        self.hidden.extend(hidden);
        for (path, kind) in &other.files {
            self.put_file(path.clone(), *kind);
        }
        for (path, contents) in &other.folders {
            self.put_folder(path.clone(), *contents);
        }
        self.links.extend(other.links.iter().map(|(link, target)| (link.clone(), target.clone())));
    }

    fn put_file(&mut self, path: PathBuf, kind: Kind) {
        let entry = self.files.entry(path).or_insert(kind);
        *entry = kind.max(*entry);
    }

    fn put_folder(&mut self, path: PathBuf, contents: Contents) {
        let entry = self.folders.entry(path).or_insert(contents);
        *entry = contents.max(*entry);
    }

    /// The folder that brings a path along, if one does.
    fn covering(&self, path: &Path) -> Option<Contents> {
        for above in path.ancestors() {
            if self.hidden.contains(above) {
                return None;
            }
            if above != path
                && let Some(contents) = self.folders.get(above)
            {
                return Some(*contents);
            }
        }
        None
    }

    fn shows(&self, path: &Path) -> bool {
        self.covering(path).is_some()
    }

    /// Leaves out what a folder brings along anyway; programs stay, so that it can be seen which they are.
    fn tidy(&mut self) {
        let inner: Vec<_> = self
            .folders
            .iter()
            .filter(|(path, contents)| self.covering(path).is_some_and(|outer| outer >= **contents))
            .map(|(path, _)| path.clone())
            .collect();
        for path in inner {
            self.folders.remove(&path);
        }
        let mut files = std::mem::take(&mut self.files);
        files.retain(|path, kind| match (*kind, self.covering(path)) {
            (Kind::Data, Some(_)) | (Kind::Library, Some(Contents::Code)) => false,
            (Kind::Data | Kind::Library | Kind::Interpreter | Kind::Program, _) => true,
        });
        self.files = files;
        let mut links = std::mem::take(&mut self.links);
        links.retain(|path, _| !self.shows(path));
        self.links = links;
    }
}
