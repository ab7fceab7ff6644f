//! Adds the files of Node: Debian's separate packages, and the npm package that a script belongs
//! to.

use std::path::{Path, PathBuf};

use super::name;
use crate::program_files::{
    FileUse, FolderContents, ProgramFilesError,
    build::{Builder, SearchDepth},
};

/// Debian installs all packages here, including those that are part of Node itself.
const DEBIAN: &str = "/usr/share/nodejs";

pub(super) fn is_node(name: &str) -> bool {
    matches!(name, "node" | "nodejs")
}

/// Adds the modules that Debian moved out of the Node program.
pub(super) fn add(builder: &mut Builder<'_>) -> Result<(), ProgramFilesError> {
    let is_split_package = builder
        .program_files
        .files
        .iter()
        .any(|(path, kind)| *kind == FileUse::Library && name(path).starts_with("libnode.so"));
    if is_split_package {
        builder.add_folder(DEBIAN.as_ref(), "/usr/share".as_ref(), FolderContents::Data)?;
    }
    Ok(())
}

/// Adds the package of a script such as `npm`, found by the real path of the script.
pub(super) fn add_package(
    builder: &mut Builder<'_>,
    script: &Path,
) -> Result<(), ProgramFilesError> {
    let Some(package) = package(script) else { return Ok(()) };
    let Some(modules) = package.parent() else { return Ok(()) };
    // Only a package with native modules counts as code.
    let native = !builder
        .list_files(&package, SearchDepth::AllLevels, |name| name.ends_with(b".node"))?
        .is_empty();
    let contents = if native { FolderContents::Code } else { FolderContents::Data };
    builder.add_folder(&package, modules, contents)?;
    Ok(())
}

/// Returns the nearest `node_modules/name` or `node_modules/@scope/name` above a script.
fn package(script: &Path) -> Option<PathBuf> {
    if script.starts_with(DEBIAN) {
        return Some(DEBIAN.into());
    }
    let modules = script.ancestors().skip(1).find(|path| name(path) == "node_modules")?;
    let mut parts = script.strip_prefix(modules).ok()?.components();
    let first = parts.next()?;
    let mut package = modules.join(first);
    if first.as_os_str().to_string_lossy().starts_with('@') {
        package.push(parts.next()?);
    }
    // The script must be inside the package folder.
    (package != script && parts.next().is_some()).then_some(package)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_nearest_package() {
        let package = |script: &str| package(Path::new(script));
        assert_eq!(
            package("/usr/lib/node_modules/npm/bin/npm-cli.js"),
            Some("/usr/lib/node_modules/npm".into())
        );
        assert_eq!(
            package("/p/node_modules/@a/b/node_modules/@c/d/x.js"),
            Some("/p/node_modules/@a/b/node_modules/@c/d".into())
        );
        assert_eq!(package("/usr/share/nodejs/npm/bin/npm-cli.js"), Some(DEBIAN.into()));
        assert_eq!(package("/p/node_modules/x.js"), None);
        assert_eq!(package("/p/node_modules/@a/x.js"), None);
        assert_eq!(package("/p/tool.js"), None);
    }
}
