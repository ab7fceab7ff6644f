//! git: most of it is in other programs, which it finds in a folder of its own.

use std::{collections::BTreeSet, path::Path};

use super::{name, prefix};
use crate::closure::{
    ClosureError, Contents,
    build::{Builder, Reach, image},
    loader::Space,
};

/// The folder of its programs, their libraries, its templates and the system's settings.
///
/// Some of those programs are scripts; the shell is not a part of git and has to be granted by itself.
pub(super) fn add(
    builder: &mut Builder<'_>,
    real: &Path,
    space: &Space,
) -> Result<(), ClosureError> {
    let Some(folder) = real.parent() else { return Ok(()) };
    // Either `<prefix>/bin/git` or a program in the folder itself, `<prefix>/lib/git-core/git`.
    let base = if name(folder) == "git-core" { prefix(folder) } else { prefix(real) };
    let Some(base) = base else { return Ok(()) };
    let mut programs = None;
    for place in ["libexec/git-core", "lib/git-core"] {
        programs = builder.add_folder(&base.join(place), base, Contents::Code)?;
        if programs.is_some() {
            break;
        }
    }
    let Some(programs) = programs else { return Ok(()) };
    builder.add_folder(&base.join("share/git-core"), base, Contents::Data)?;
    for place in ["gitconfig", "gitattributes"] {
        builder.add_data(&Path::new("/etc").join(place), Path::new("/etc"))?;
        builder.add_data(&base.join("etc").join(place), base)?;
    }
    // Threads that end early ask for it.
    builder.add_library(space, "libgcc_s.so.1")?;
    // Most of them are one file under many names.
    let mut seen = BTreeSet::new();
    for way in builder.list(&programs, Reach::Flat, |name| name.starts_with(b"git"))? {
        if way.file().is_some_and(|stamp| seen.insert(stamp.identity()))
            && let Some(own) = image(&way)
            // One that lacks a library does not work outside either.
            && let Err(error @ ClosureError::TooMany { .. }) = builder.load_program(&way, &own)
        {
            return Err(error);
        }
    }
    Ok(())
}
