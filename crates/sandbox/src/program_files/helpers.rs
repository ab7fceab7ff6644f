//! Adds the files that well-known programs (git, Python, Node, Perl, Ruby) open besides their own,
//! recognized by program name and folder layout.
//!
//! The name alone is not trusted: a folder is added only if its real path is where such a program
//! expects it.

mod git;
mod node;
mod perl;
mod python;
mod ruby;
mod system;

use std::path::Path;

pub(super) use self::system::add_library_data;
use super::{ProgramFilesError, build::Builder, loader::LoadedObjects};

/// Adds the files that a program needs besides its libraries.
pub(super) fn add_helpers(
    builder: &mut Builder<'_>,
    requested: &Path,
    real: &Path,
    loaded: &mut LoadedObjects,
) -> Result<(), ProgramFilesError> {
    let name = name(real);
    if name == "git" || name.starts_with("git-") {
        git::add(builder, real, loaded)
    } else if python::is_python(name) {
        python::add(builder, requested, real, loaded)
    } else if name == "perl" || is_version(name.strip_prefix("perl")) {
        perl::add(builder, real, loaded)
    } else if name == "ruby" || is_version(name.strip_prefix("ruby")) {
        ruby::add(builder, real, loaded)
    } else if node::is_node(name) {
        node::add(builder)
    } else {
        Ok(())
    }
}

/// Adds the files that a script needs besides its interpreter.
pub(super) fn add_script_helpers(
    builder: &mut Builder<'_>,
    script: &Path,
    interpreter: &Path,
) -> Result<(), ProgramFilesError> {
    if node::is_node(name(interpreter)) { node::add_package(builder, script) } else { Ok(()) }
}

fn name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

/// Matches versions such as `3`, `3.11` and `5.36.0`.
fn is_version(text: Option<&str>) -> bool {
    text.is_some_and(|text| {
        !text.is_empty()
            && text
                .split('.')
                .all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
    })
}

/// Returns `/usr` for `/usr/bin/x`.
fn prefix(program: &Path) -> Option<&Path> {
    program.parent()?.parent()
}
