//! Folders and files of this system.

use std::{
    fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use savoir_skill::folder::is_skill_file;

use super::{Offer, Place, SourceError, artifact, layout, summary::Summary, summary::stem};
use crate::{
    Tree, TreeError,
    limits::{MAX_ARCHIVE_BYTES, MAX_DEPTH, MAX_OFFERS, MAX_WALKED},
    parallel,
    tree::is_left_behind,
};

/// The skills of a folder.
pub(super) fn folder(root: &Path) -> Result<Vec<Offer>, SourceError> {
    let mut walk = Walk { root, found: Vec::new(), left: MAX_WALKED };
    walk.folder("", 0)?;
    let folders = layout::skill_folders(walk.found.iter().map(String::as_str));
    if folders.is_empty() {
        return Err(SourceError::NoSkill { place: root.display().to_string() });
    }
    let some = &folders[..folders.len().min(MAX_OFFERS)];
    parallel::map(some, |folder| in_folder(root, folder)).into_iter().collect()
}

fn in_folder(root: &Path, folder: &str) -> Result<Offer, SourceError> {
    let path = &root.join(folder);
    // No link was followed below the root, so that only its own name may be another.
    let name = match layout::last_part(folder) {
        "" => file_name(&path.canonicalize().map_err(SourceError::io(path))?),
        name => name.to_owned(),
    };
    let manifest = ["SKILL.md", "skill.md", "Skill.md", "SKILL.MD"]
        .iter()
        .find_map(|manifest| read(&path.join(manifest)).ok());
    let summary = match manifest {
        Some(bytes) => Summary::read(&bytes, &name),
        None => Summary::named(&name),
    };
    let place = Place::Path { path: path.to_owned(), inside: String::new() };
    Ok(Offer { name: summary.name, description: summary.description, place })
}

/// The skills of an archive, or the one that a Markdown file is.
pub(super) fn file(path: &Path) -> Result<Vec<Offer>, SourceError> {
    let found = artifact::list(read(path)?, &name_of(path))?;
    let offer = |(inside, summary): (String, Summary)| Offer {
        name: summary.name,
        description: summary.description,
        place: Place::Path { path: path.to_owned(), inside },
    };
    Ok(found.into_iter().map(offer).collect())
}

/// One skill of a folder or a file.
pub(super) fn tree(path: &Path, inside: &str) -> Result<Tree, SourceError> {
    if path.is_dir() {
        return Ok(Tree::read(path)?);
    }
    artifact::tree(read(path)?, &name_of(path), inside)
}

/// Many skills of folders and files.
pub(super) fn trees(places: &[(PathBuf, String)]) -> Vec<Result<Tree, SourceError>> {
    parallel::map(places, |(path, inside)| tree(path, inside))
}

/// What a skill in a file is called that has no name: a SKILL.md after its folder.
fn name_of(path: &Path) -> String {
    let name = file_name(path);
    let folder = path.parent().map(file_name).filter(|folder| !folder.is_empty());
    match folder {
        Some(folder) if is_skill_file(&name) => folder,
        _ => stem(&name).to_owned(),
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn read(path: &Path) -> Result<Vec<u8>, SourceError> {
    // Opening a pipe would wait for someone to write into it.
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

/// Looks for SKILL.md without following links.
struct Walk<'a> {
    root: &'a Path,
    found: Vec<String>,
    left: usize,
}

impl Walk<'_> {
    fn folder(&mut self, inside: &str, depth: usize) -> Result<(), SourceError> {
        let place = self.root.join(inside);
        let entries = match fs::read_dir(&place) {
            // Folders of others are none of ours.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied && depth > 0 => {
                return Ok(());
            }
            entries => entries.map_err(SourceError::io(&place))?,
        };
        for entry in entries {
            let entry = entry.map_err(SourceError::io(&place))?;
            let Some(left) = self.left.checked_sub(1) else {
                return Err(SourceError::TooManyFiles(PathBuf::from(self.root)));
            };
            self.left = left;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = layout::join(inside, &name);
            let kind = entry.file_type().map_err(SourceError::io(&place))?;
            if kind.is_dir() && depth < MAX_DEPTH && !is_left_behind(&name) {
                self.folder(&path, depth + 1)?;
            } else if !kind.is_dir() && is_skill_file(&name) {
                self.found.push(path);
            }
        }
        Ok(())
    }
}
