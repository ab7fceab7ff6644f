//! Lists the parts of `/usr` and `/etc` that are visible if a policy allows all programs of the
//! system.
//!
//! Programs are harmless, because the sandbox confines them. Data is not: folders in which users
//! store projects or services store settings are left out.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::layout::{MountMode, RootEntry};

/// Folders in the root with programs and libraries. On most systems they are links into `/usr`.
const ROOT_FOLDERS: [&str; 6] = ["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];

/// Folders in which some distributions store all programs; links in other folders lead there.
const PACKAGE_STORES: [&str; 3] = ["/nix/store", "/gnu/store", "/run/current-system"];

/// Folders of `/usr` and `/usr/local` with programs. Other folders may contain projects, or
/// settings and data of services.
const USR_FOLDERS: [&str; 14] = [
    "bin", "cuda", "games", "go", "include", "lib", "lib32", "lib64", "libexec", "libx32", "man",
    "sbin", "share", "texlive",
];

/// Settings that the system's programs need and that contain no secrets.
const ETC_PATHS: [&str; 30] = [
    "/etc/alternatives", "/etc/crypto-policies", "/etc/debian_version", "/etc/fonts",
    "/etc/ghostscript", "/etc/gnutls/config", "/etc/groff", "/etc/ImageMagick-6",
    "/etc/ImageMagick-7", "/etc/inputrc", "/etc/java-11-openjdk", "/etc/java-17-openjdk",
    "/etc/java-21-openjdk", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d",
    "/etc/localtime", "/etc/magic", "/etc/mime.types", "/etc/os-release", "/etc/papersize",
    "/etc/perl", "/etc/pki/tls/openssl.cnf", "/etc/protocols", "/etc/python3", "/etc/services",
    "/etc/ssl/openssl.cnf", "/etc/terminfo", "/etc/texmf", "/etc/timezone",
];

/// Returns the visible parts of the system, by path.
pub(super) fn system_entries() -> Vec<(PathBuf, RootEntry)> {
    let mut entries = Vec::new();
    for folder in ROOT_FOLDERS.into_iter().chain(PACKAGE_STORES) {
        entries.extend(read_entry(Path::new(folder), MountMode::Code));
    }
    for folder in ["/usr", "/usr/local"] {
        let paths = USR_FOLDERS.map(|name| Path::new(folder).join(name));
        entries.extend(paths.iter().filter_map(|path| read_entry(path, MountMode::Code)));
    }
    entries
        .extend(ETC_PATHS.iter().filter_map(|path| read_entry(Path::new(path), MountMode::Data)));
    entries
}

/// Returns how a path is shown. A link is copied as a link, so its target must be visible itself.
/// If a parent folder is a link, the path is left out, because nothing can be mounted there.
fn read_entry(path: &Path, mode: MountMode) -> Option<(PathBuf, RootEntry)> {
    let parent = path.parent()?;
    if parent.canonicalize().ok()? != parent {
        return None;
    }
    let entry = if path.symlink_metadata().ok()?.is_symlink() {
        RootEntry::Link(fs::read_link(path).ok()?)
    } else {
        RootEntry::Bind(mode)
    };
    Some((path.to_owned(), entry))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_visible_and_data_is_not() {
        let entries = system_entries();
        let is_shown =
            |path: &str| entries.iter().any(|(shown, _)| Path::new(path).starts_with(shown));
        assert!(is_shown("/usr/bin/env") && is_shown("/bin/sh"));
        for path in ["/usr/src/app/.env", "/usr/local/etc/secret", "/usr/local/pgsql/data", "/usr"]
        {
            assert!(!is_shown(path), "{path}");
        }
        for path in ["/etc/shadow", "/etc/passwd", "/etc/hostname", "/var/lib", "/opt/x", "/root"] {
            assert!(!is_shown(path), "{path}");
        }
    }
}
