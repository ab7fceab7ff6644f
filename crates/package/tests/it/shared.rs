//! Data that lies beside the repository on some machines and is absent on others.

use std::path::{Path, PathBuf};

/// A folder of the shared test data, or `None` with a note when it is not there.
pub(crate) fn shared(name: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared").join(name);
    if path.exists() {
        return path.canonicalize().ok();
    }
    eprintln!("note: {name} is not beside the repository, so this test checks nothing here");
    None
}
