//! Adds the module folders of Perl.

use std::path::Path;

use super::prefix;
use crate::program_files::{
    FolderContents, ProgramFilesError,
    build::{Builder, SearchDepth},
    loader::{LoadedObjects, TRIPLET},
};

pub(super) fn add(
    builder: &mut Builder<'_>,
    real: &Path,
    loaded: &mut LoadedObjects,
) -> Result<(), ProgramFilesError> {
    let mut code = Vec::new();
    for place in ["perl", "perl-base", "perl5"] {
        let folder = Path::new("/usr/lib").join(TRIPLET).join(place);
        code.extend(builder.add_folder(&folder, "/usr/lib".as_ref(), FolderContents::Code)?);
    }
    for place in ["/usr/share/perl", "/usr/share/perl5", "/etc/perl"] {
        builder.add_folder(place.as_ref(), "/".as_ref(), FolderContents::Data)?;
    }
    // For other distributions, and for Perl built from source.
    if let Some(prefix) = prefix(real) {
        for place in ["lib/perl5", "lib64/perl5"] {
            code.extend(builder.add_folder(&prefix.join(place), prefix, FolderContents::Code)?);
        }
    }
    for folder in code {
        builder.add_modules(loaded, &folder, SearchDepth::AllLevels)?;
    }
    builder.add_library(loaded, "libgcc_s.so.1")
}
