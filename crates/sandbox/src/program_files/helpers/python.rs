//! Adds the standard library of Python and, in a virtual environment, the packages of that
//! environment.
//!
//! Packages that were installed for the interpreter itself are left out unless an environment asks
//! for them, because a skill should list its packages in its own environment.

use std::path::{Path, PathBuf};

use super::{is_version, name};
use crate::program_files::{
    FolderContents, ProgramFilesError,
    build::{Builder, SearchDepth},
    file_reader,
    loader::LoadedObjects,
};

/// The size limit of `pyvenv.cfg`, which normally has five lines.
const MAX_PYVENV_BYTES: usize = 64 << 10;

/// Matches `python`, `python3` and `python3.11`.
pub(super) fn is_python(name: &str) -> bool {
    name == "python" || is_version(name.strip_prefix("python"))
}

pub(super) fn add(
    builder: &mut Builder<'_>,
    requested: &Path,
    real: &Path,
    loaded: &mut LoadedObjects,
) -> Result<(), ProgramFilesError> {
    let environment = Environment::of(builder, requested)?;
    let Some((library, base)) = standard_library(builder, real, environment.as_ref()) else {
        return Ok(());
    };
    let Some(library) = builder.add_folder(&library, &base, FolderContents::Code)? else {
        return Ok(());
    };
    if let Some(modules) = builder.find_folder(&library.join("lib-dynload"), &library) {
        builder.add_modules(loaded, &modules.real, SearchDepth::OneLevel)?;
    }
    // On Debian this file is a link into `/etc`. No other Python may do that, since its link could
    // name any file there.
    if library.starts_with("/usr/lib") {
        builder.add_data(&library.join("sitecustomize.py"), "/etc".as_ref())?;
    }
    // The C library opens it when a thread is cancelled.
    builder.add_library(loaded, "libgcc_s.so.1")?;

    let uses_system_packages =
        environment.as_ref().is_some_and(|environment| environment.uses_system_packages);
    for place in ["site-packages", "dist-packages"] {
        let Some(packages) = builder.find_folder(&library.join(place), &library) else { continue };
        if uses_system_packages {
            builder.add_modules(loaded, &packages.real, SearchDepth::AllLevels)?;
        } else {
            builder.program_files.hidden.insert(packages.real);
        }
    }
    if uses_system_packages && library.starts_with("/usr/lib") {
        for place in ["/usr/lib/python3/dist-packages", "/usr/local/lib/python3/dist-packages"] {
            add_packages(builder, loaded, Path::new(place), Path::new("/usr"))?;
        }
    }
    if let Some(environment) = environment {
        let home = &environment.folder;
        for lib in ["lib", "lib64"] {
            let packages = home.join(lib).join(name(&library)).join("site-packages");
            add_packages(builder, loaded, &packages, home)?;
        }
    }
    Ok(())
}

fn add_packages(
    builder: &mut Builder<'_>,
    loaded: &mut LoadedObjects,
    folder: &Path,
    within: &Path,
) -> Result<(), ProgramFilesError> {
    if let Some(packages) = builder.add_folder(folder, within, FolderContents::Code)? {
        builder.add_modules(loaded, &packages, SearchDepth::AllLevels)?;
    }
    Ok(())
}

/// Returns `<prefix>/lib/python3.N` and the prefix. Like Python itself, it searches upwards, first
/// from the environment's `home`, which is the only hint where a copied program came from, then
/// from the real program.
fn standard_library(
    builder: &mut Builder<'_>,
    real: &Path,
    environment: Option<&Environment>,
) -> Option<(PathBuf, PathBuf)> {
    let version = name(real)
        .strip_prefix("python")
        .filter(|version| version.contains('.'))
        .or_else(|| environment?.version.as_deref())?;
    let folder = format!("python{version}");
    let homes = [environment.and_then(|environment| environment.home.as_deref()), real.parent()];
    for home in homes.into_iter().flatten() {
        for prefix in home.ancestors() {
            for lib in ["lib", "lib64"] {
                let library = prefix.join(lib).join(&folder);
                if let Some(resolved) = builder.find_folder(&library, prefix)
                    && name(&resolved.real) == folder
                    && builder
                        .resolver
                        .resolve(&library.join("os.py"))
                        .is_ok_and(|os| os.file().is_some() && os.real.starts_with(&resolved.real))
                {
                    return Some((library, prefix.to_path_buf()));
                }
            }
        }
    }
    None
}

/// A Python virtual environment.
struct Environment {
    /// The real path of the environment.
    folder: PathBuf,
    /// The folder of the Python program that created the environment.
    home: Option<PathBuf>,
    /// The version, such as `3.11`.
    version: Option<String>,
    /// Whether the environment also uses the packages of that Python program.
    uses_system_packages: bool,
}

impl Environment {
    /// Reads `pyvenv.cfg` in the program's folder or its parent. The path is the one that starts
    /// the program, before links are resolved.
    fn of(builder: &mut Builder<'_>, requested: &Path) -> Result<Option<Self>, ProgramFilesError> {
        for above in requested.ancestors().skip(1).take(2) {
            let Some(folder) =
                builder.find_folder(above, Path::new("/")).map(|resolved| resolved.real)
            else {
                continue;
            };
            let file = folder.join("pyvenv.cfg");
            if builder.add_data(&file, &folder)? {
                let resolved = builder.resolver.resolve(&file).ok();
                let text = resolved.and_then(|resolved| {
                    file_reader::read_small_file(&resolved.real, MAX_PYVENV_BYTES)
                });
                return Ok(Some(Self::parse(
                    folder,
                    &String::from_utf8_lossy(&text.unwrap_or_default()),
                )));
            }
        }
        Ok(None)
    }

    fn parse(folder: PathBuf, text: &str) -> Self {
        let value = |wanted: &str| {
            text.lines()
                .filter_map(|line| line.split_once('='))
                .find(|(key, _)| key.trim().eq_ignore_ascii_case(wanted))
                .map(|(_, value)| value.trim())
        };
        let version = value("version").or_else(|| value("version_info")).and_then(|version| {
            let mut parts = version.split('.');
            let version = format!("{}.{}", parts.next()?, parts.next()?);
            is_version(Some(&version)).then_some(version)
        });
        Self {
            folder,
            home: value("home").map(PathBuf::from).filter(|home| home.is_absolute()),
            version,
            uses_system_packages: value("include-system-site-packages")
                .is_some_and(|value| value.eq_ignore_ascii_case("true")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_settings_of_an_environment() {
        let text = "home = /usr/bin\nInclude-System-Site-Packages = TRUE\nversion = 3.11.2\n";
        let environment = Environment::parse("/v".into(), text);
        assert_eq!(environment.home, Some("/usr/bin".into()));
        assert_eq!(environment.version.as_deref(), Some("3.11"));
        assert!(environment.uses_system_packages);
        let environment = Environment::parse("/v".into(), "home = ../x\nversion = ../..\n=\n");
        assert_eq!(environment.home, None);
        assert_eq!(environment.version, None);
        assert!(!environment.uses_system_packages);
    }

    #[test]
    fn recognizes_python_names() {
        assert!(["python", "python3", "python3.11", "python2.7"].into_iter().all(is_python));
        assert!(!["pythonw", "python3-config", "python3.", "ipython3"].into_iter().any(is_python));
    }
}
