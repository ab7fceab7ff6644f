//! Reads skills from local folders and files.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use savoir_skill::folder::is_skill_file;

use super::{
    Boundary, OfferedSkill, PinnedSource, PluginExtra, SourceError, artifact,
    discover::{FolderListing, FolderView, LinkTarget, discover},
    layout, plugin,
    summary::{Summary, stem},
};
use crate::{
    Tree, TreeError,
    limits::{MAX_ARCHIVE_BYTES, MAX_DEPTH, MAX_WALKED},
    parallel,
    tree::is_ignored_name,
};

/// Returns the skills of a folder, and broken links beside them.
pub(super) fn folder(named: &Path) -> Result<(Vec<OfferedSkill>, Vec<String>), SourceError> {
    let real = named.canonicalize().map_err(SourceError::io(named))?;
    let boundary = Boundary::around(&real);
    let start = slashes(real.strip_prefix(boundary.root()).unwrap_or(Path::new("")));
    let mut walk = Walk { root: boundary.root(), left: MAX_WALKED, links: BTreeMap::new() };
    let found = discover(&mut walk, &start)?;
    if found.skills.is_empty() {
        return Err(SourceError::NoSkill { place: named.display().to_string() });
    }
    let asked = NamedFolder { named, boundary: &boundary, start: &start, links: &walk.links };
    let offers = parallel::map(&found.skills, |skill| asked.offer(skill));
    Ok((offers, found.broken))
}

/// Returns the items of plugins in a folder besides skills.
pub(super) fn extras(named: &Path) -> Result<Vec<PluginExtra>, SourceError> {
    let mut files = PluginFiles { root: named, paths: Vec::new(), left: MAX_WALKED };
    files.folder("", 0)?;
    files.paths.sort_unstable();
    Ok(plugin::extras(&files))
}

/// The Markdown and JSON files of a folder.
struct PluginFiles<'a> {
    root: &'a Path,
    paths: Vec<String>,
    left: usize,
}

impl PluginFiles<'_> {
    fn folder(&mut self, inside: &str, depth: usize) -> Result<(), SourceError> {
        let Ok(entries) = fs::read_dir(self.root.join(inside)) else { return Ok(()) };
        for entry in entries.flatten() {
            let Some(left) = self.left.checked_sub(1) else {
                return Err(SourceError::TooManyFiles(self.root.join(inside)));
            };
            self.left = left;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = layout::join(inside, &name);
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && depth < MAX_DEPTH && !is_ignored_name(&name) => {
                    self.folder(&path, depth + 1)?;
                }
                Ok(kind) if kind.is_file() && (layout::is_markdown(&name) || is_json(&name)) => {
                    self.paths.push(path);
                }
                _ => {}
            }
        }
        Ok(())
    }
}

fn is_json(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|ending| ending == "json")
}

impl plugin::Files for PluginFiles<'_> {
    fn paths(&self) -> Vec<&str> {
        self.paths.iter().map(String::as_str).collect()
    }

    fn json(&self, path: &str) -> Option<serde_json::Value> {
        self.paths.binary_search_by(|known| known.as_str().cmp(path)).ok()?;
        serde_json::from_slice(&read(&self.root.join(path)).ok()?).ok()
    }
}

fn slashes(path: &Path) -> String {
    let parts: Vec<_> = path.iter().map(|part| part.to_string_lossy()).collect();
    parts.join("/")
}

/// A folder that the user named, and the links found in it. Paths are relative to the boundary.
struct NamedFolder<'a> {
    named: &'a Path,
    boundary: &'a Boundary,
    start: &'a str,
    links: &'a BTreeMap<String, PathBuf>,
}

impl NamedFolder<'_> {
    fn offer(&self, skill: &str) -> OfferedSkill {
        let path = match layout::below(skill, self.start) {
            _ if skill == self.start => self.named.to_owned(),
            Some(inside) => self.named.join(inside),
            None => self.boundary.root().join(skill),
        };
        let name = match layout::last_part(skill) {
            "" => file_name(self.boundary.root()),
            name => name.to_owned(),
        };
        let manifest = ["SKILL.md", "skill.md", "Skill.md", "SKILL.MD"]
            .iter()
            .find_map(|manifest| self.manifest(skill, &path.join(manifest)));
        let summary = match manifest {
            Some(bytes) => Summary::read(&bytes, &name),
            None => Summary::named(&name),
        };
        // Outside of a repository, the named folder is the boundary for links, so the source must
        // name it.
        let place = if self.start.is_empty() && self.leads_out(skill) {
            PinnedSource::Path { path: self.named.to_owned(), inside: skill.to_owned() }
        } else {
            PinnedSource::Path { path, inside: String::new() }
        };
        OfferedSkill {
            name: summary.name,
            description: summary.description,
            source: place,
            content: None,
        }
    }

    /// Reads a SKILL.md, unless it is a link to a file that must not be read.
    fn manifest(&self, skill: &str, file: &Path) -> Option<Vec<u8>> {
        let real = file.canonicalize().ok()?;
        let is_own = real.starts_with(self.boundary.root().join(skill));
        let may_read = is_own || self.boundary.may_link_to(&real);
        may_read.then(|| read(&real).ok()).flatten()
    }

    /// Whether a skill has links to files outside of its folder.
    fn leads_out(&self, skill: &str) -> bool {
        let folder = self.boundary.root().join(skill);
        let start = format!("{skill}/");
        let links = self.links.range(start.clone()..);
        let mut links = links.take_while(|(link, _)| link.starts_with(&start));
        !skill.is_empty() && links.any(|(_, target)| !target.starts_with(&folder))
    }
}

/// Returns the skills of an archive, or the one skill of a Markdown file.
pub(super) fn file(path: &Path) -> Result<Vec<OfferedSkill>, SourceError> {
    refuse_link_out(path)?;
    let found = artifact::list(read(path)?, &path.to_string_lossy(), &name_of(path))?;
    let offer = |(inside, summary): (String, Summary)| OfferedSkill {
        name: summary.name,
        description: summary.description,
        source: PinnedSource::Path { path: path.to_owned(), inside },
        content: None,
    };
    Ok(found.into_iter().map(offer).collect())
}

/// Reads one skill of a folder or a file.
pub(super) fn tree(path: &Path, inside: &str) -> Result<Tree, SourceError> {
    if path.is_dir() {
        let folder = path.join(inside);
        let (real, named) = (folder.canonicalize(), path.canonicalize());
        let real = real.map_err(SourceError::io(&folder))?;
        let named = named.map_err(SourceError::io(path))?;
        if !real.starts_with(&named) {
            return Err(TreeError::Link(inside.to_owned()).into());
        }
        return Ok(Tree::read_within(&folder, &Boundary::around(&named))?);
    }
    refuse_link_out(path)?;
    artifact::tree(read(path)?, &name_of(path), inside)
}

/// Reads many skills of folders and files.
pub(super) fn trees(places: &[(PathBuf, String)]) -> Vec<Result<Tree, SourceError>> {
    parallel::map(places, |(path, inside)| tree(path, inside))
}

/// Returns the name of a skill in a file without a name: the name of the file, or of the folder of
/// a SKILL.md.
fn name_of(path: &Path) -> String {
    let name = file_name(path);
    let folder = path.parent().map(file_name).filter(|folder| !folder.is_empty());
    match folder {
        Some(folder) if is_skill_file(&name) => folder,
        _ => stem(&name).to_owned(),
    }
}

/// Rejects a SKILL.md that is a link to a file outside of its folder.
fn refuse_link_out(path: &Path) -> Result<(), SourceError> {
    if !is_skill_file(&file_name(path)) || !path.is_symlink() {
        return Ok(());
    }
    let real = path.canonicalize().map_err(SourceError::io(path))?;
    let folder = path.parent().and_then(|folder| folder.canonicalize().ok());
    match folder {
        Some(folder) if real.starts_with(&folder) => Ok(()),
        _ => Err(TreeError::Link(path.display().to_string()).into()),
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn read(path: &Path) -> Result<Vec<u8>, SourceError> {
    // Opening a pipe would block until another program writes to it.
    if !fs::metadata(path).map_err(SourceError::io(path))?.is_file() {
        return Err(TreeError::Special(path.display().to_string()).into());
    }
    let file = fs::File::open(path).map_err(SourceError::io(path))?;
    let mut bytes = Vec::new();
    let read = file.take(MAX_ARCHIVE_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(SourceError::io(path))?;
    if bytes.len() as u64 > MAX_ARCHIVE_BYTES {
        let place = path.display().to_string();
        return Err(SourceError::TooLarge { place, limit: MAX_ARCHIVE_BYTES });
    }
    Ok(bytes)
}

/// Searches a local folder for skills.
struct Walk<'a> {
    root: &'a Path,
    /// The number of entries that may still be read.
    left: usize,
    /// The links that were found and are not broken.
    links: BTreeMap<String, PathBuf>,
}

impl FolderView for Walk<'_> {
    fn list(&mut self, folder: &str) -> Result<FolderListing, SourceError> {
        let mut listed = FolderListing::default();
        self.folder(folder, "", 0, &mut listed)?;
        Ok(listed)
    }

    fn target(&self, link: &str) -> LinkTarget {
        let inside = |target: &PathBuf| Some(target.strip_prefix(self.root).ok()?.to_owned());
        match self.links.get(link).and_then(inside) {
            Some(path) if path.iter().any(|part| part == ".git") => LinkTarget::Nowhere,
            Some(path) if self.root.join(&path).is_dir() => LinkTarget::Folder(slashes(&path)),
            Some(_) => LinkTarget::File,
            None => LinkTarget::Nowhere,
        }
    }
}

impl Walk<'_> {
    fn folder(
        &mut self,
        start: &str,
        inside: &str,
        depth: usize,
        listed: &mut FolderListing,
    ) -> Result<(), SourceError> {
        let place = self.root.join(start).join(inside);
        let entries = match fs::read_dir(&place) {
            // Skip folders that the user may not read.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied && depth > 0 => {
                return Ok(());
            }
            entries => entries.map_err(SourceError::io(&place))?,
        };
        for entry in entries {
            let entry = entry.map_err(SourceError::io(&place))?;
            let Some(left) = self.left.checked_sub(1) else {
                return Err(SourceError::TooManyFiles(place));
            };
            self.left = left;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = layout::join(inside, &name);
            let kind = entry.file_type().map_err(SourceError::io(&place))?;
            if kind.is_dir() && depth < MAX_DEPTH && !is_ignored_name(&name) {
                self.folder(start, &path, depth + 1, listed)?;
            } else if !kind.is_dir() && is_skill_file(&name) {
                listed.skill_files.push(path.clone());
            }
            if kind.is_symlink() {
                let target = entry.path().canonicalize();
                self.links.extend(target.ok().map(|target| (layout::join(start, &path), target)));
                listed.links.push(path);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_have_slashes() {
        assert_eq!(slashes(Path::new("a/b")), "a/b");
        assert_eq!(slashes(Path::new("")), "");
    }
}
