//! Adds the folders of Ruby's library and gems.

use std::path::Path;

use super::prefix;
use crate::closure::{
    ClosureError, Contents,
    build::{Builder, Reach},
    loader::{Space, TRIPLET},
};

pub(super) fn add(
    builder: &mut Builder<'_>,
    real: &Path,
    space: &mut Space,
) -> Result<(), ClosureError> {
    let mut code = Vec::new();
    for place in ["/usr/lib/ruby", "/var/lib/gems"] {
        code.extend(builder.add_folder(place.as_ref(), "/".as_ref(), Contents::Code)?);
    }
    let folder = Path::new("/usr/lib").join(TRIPLET).join("ruby");
    code.extend(builder.add_folder(&folder, "/usr/lib".as_ref(), Contents::Code)?);
    builder.add_folder(
        "/usr/share/rubygems-integration".as_ref(),
        "/usr/share".as_ref(),
        Contents::Data,
    )?;
    if let Some(prefix) = prefix(real) {
        for place in ["lib/ruby", "lib64/ruby"] {
            code.extend(builder.add_folder(&prefix.join(place), prefix, Contents::Code)?);
        }
    }
    for folder in code {
        builder.add_modules(space, &folder, Reach::Deep)?;
    }
    builder.add_library(space, "libgcc_s.so.1")
}
