//! Adds the files that common libraries open, in whichever program they are loaded.

use std::path::{Path, PathBuf};

use super::name;
use crate::program_files::{FileUse, FolderContents, ProgramFilesError, build::Builder};

/// Adds the settings, time zones, terminal descriptions and modules that the libraries of a program
/// use.
///
/// Certificates, users, hosts and name services are not included: the sandbox writes its own.
pub(in crate::program_files) fn add_library_data(
    builder: &mut Builder<'_>,
) -> Result<(), ProgramFilesError> {
    let libraries: Vec<PathBuf> = builder
        .program_files
        .files
        .iter()
        .filter(|(_, kind)| **kind == FileUse::Library)
        .map(|(path, _)| path.clone())
        .collect();
    let have = |names: &[&str]| {
        libraries.iter().any(|path| names.iter().any(|wanted| name(path).starts_with(wanted)))
    };
    let (root, etc) = (Path::new("/"), Path::new("/etc"));
    if have(&["libc.so", "libc-", "ld-musl"]) {
        builder.add_folder("/usr/lib/locale/C.utf8".as_ref(), root, FolderContents::Data)?;
        builder.add_folder("/usr/share/zoneinfo".as_ref(), root, FolderContents::Data)?;
        builder.add_data("/etc/localtime".as_ref(), root)?;
    }
    if have(&["libtinfo", "libncurses"]) {
        for folder in ["/usr/share/terminfo", "/lib/terminfo", "/etc/terminfo"] {
            builder.add_folder(folder.as_ref(), root, FolderContents::Data)?;
        }
    }
    if have(&["libgnutls.so"]) {
        builder.add_data("/etc/gnutls/config".as_ref(), etc)?;
    }
    if have(&["libssl.so", "libcrypto.so", "libgnutls.so"]) {
        for file in ["/etc/ssl/openssl.cnf", "/usr/lib/ssl/openssl.cnf", "/etc/pki/tls/openssl.cnf"]
        {
            builder.add_data(file.as_ref(), root)?;
        }
        // Fedora's OpenSSL settings include this file.
        builder.add_data("/etc/crypto-policies/back-ends/opensslcnf.config".as_ref(), root)?;
    }
    for library in libraries.iter().filter(|path| name(path).starts_with("libcrypto.so")) {
        let Some(folder) = library.parent() else { continue };
        for place in ["ossl-modules", "engines-3", "engines-1.1"] {
            builder.add_folder(&folder.join(place), folder, FolderContents::Code)?;
        }
        // For an OpenSSL built from source.
        if let Some(prefix) = folder.parent() {
            builder.add_data(&prefix.join("ssl/openssl.cnf"), prefix)?;
        }
    }
    Ok(())
}
