//! Shared test data, which exists beside the repository on some machines only.

use std::path::{Path, PathBuf};

/// Returns a folder of the shared test data; `None` with a note if it does not exist.
pub(crate) fn shared(name: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared").join(name);
    if path.exists() {
        return path.canonicalize().ok();
    }
    eprintln!("note: {name} is not beside the repository, so this test checks nothing here");
    None
}
