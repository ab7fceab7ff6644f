//! Adds the folders of Ruby's library and gems.

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
    for place in ["/usr/lib/ruby", "/var/lib/gems"] {
        code.extend(builder.add_folder(place.as_ref(), "/".as_ref(), FolderContents::Code)?);
    }
    let folder = Path::new("/usr/lib").join(TRIPLET).join("ruby");
    code.extend(builder.add_folder(&folder, "/usr/lib".as_ref(), FolderContents::Code)?);
    builder.add_folder(
        "/usr/share/rubygems-integration".as_ref(),
        "/usr/share".as_ref(),
        FolderContents::Data,
    )?;
    if let Some(prefix) = prefix(real) {
        for place in ["lib/ruby", "lib64/ruby"] {
            code.extend(builder.add_folder(&prefix.join(place), prefix, FolderContents::Code)?);
        }
    }
    for folder in code {
        builder.add_modules(loaded, &folder, SearchDepth::AllLevels)?;
    }
    builder.add_library(loaded, "libgcc_s.so.1")
}
