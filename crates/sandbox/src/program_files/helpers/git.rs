//! Adds git's other files: most of git is in separate programs in a folder of its own.

use std::{collections::BTreeSet, path::Path};

use super::{name, prefix};
use crate::program_files::{
    FolderContents, ProgramFilesError,
    build::{Builder, SearchDepth, read_elf},
    loader::LoadedObjects,
};

/// Adds the folder of git's programs, their libraries, git's templates and the system-wide git
/// settings.
///
/// Some of these programs are shell scripts; the shell is not part of git and must be granted
/// separately.
pub(super) fn add(
    builder: &mut Builder<'_>,
    real: &Path,
    loaded: &LoadedObjects,
) -> Result<(), ProgramFilesError> {
    let Some(folder) = real.parent() else { return Ok(()) };
    // Either `<prefix>/bin/git` or a program in the folder itself, `<prefix>/lib/git-core/git`.
    let base = if name(folder) == "git-core" { prefix(folder) } else { prefix(real) };
    let Some(base) = base else { return Ok(()) };
    let mut programs = None;
    for place in ["libexec/git-core", "lib/git-core"] {
        programs = builder.add_folder(&base.join(place), base, FolderContents::Code)?;
        if programs.is_some() {
            break;
        }
    }
    let Some(programs) = programs else { return Ok(()) };
    builder.add_folder(&base.join("share/git-core"), base, FolderContents::Data)?;
    for place in ["gitconfig", "gitattributes"] {
        builder.add_data(&Path::new("/etc").join(place), Path::new("/etc"))?;
        builder.add_data(&base.join("etc").join(place), base)?;
    }
    // The C library opens it when a thread exits early.
    builder.add_library(loaded, "libgcc_s.so.1")?;
    // Most of the programs are one file with many names.
    let mut seen = BTreeSet::new();
    for resolved in
        builder.list_files(&programs, SearchDepth::OneLevel, |name| name.starts_with(b"git"))?
    {
        if resolved.file().is_some_and(|stamp| seen.insert(stamp.identity()))
            && let Some(own) = read_elf(&resolved)
            // A program whose library is missing does not work outside the sandbox either.
            && let Err(error @ ProgramFilesError::TooMany { .. }) = builder.load_program(&resolved, &own)
        {
            return Err(error);
        }
    }
    Ok(())
}
