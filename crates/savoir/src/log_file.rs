//! A log file, for commands that show a conversation on the terminal.

use std::{
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
    sync::Mutex,
};

use savoir_engine::Home;
use tracing_subscriber::EnvFilter;

use crate::log_filter;

/// Size in bytes at which a log file is rotated.
const MAX_LOG_BYTES: u64 = 1 << 20;

/// Starts a log file in the data folder. If that fails, the command goes on without a log.
pub(crate) fn start(home: &Home, name: &str) {
    let Ok(folder) = home.data_folder("log") else { return };
    let Ok(file) = open(&folder, name) else { return };
    // Ignored: another logger may be set already.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(log_filter::from("info")))
        .with_writer(Mutex::new(file))
        .with_ansi(false)
        .try_init();
}

fn open(folder: &Path, name: &str) -> io::Result<File> {
    let path = folder.join(format!("{name}.log"));
    if fs::metadata(&path).is_ok_and(|known| known.len() > MAX_LOG_BYTES) {
        fs::rename(&path, folder.join(format!("{name}.old.log")))?;
    }
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn a_long_log_makes_room() {
        let dir = tempfile::tempdir().unwrap();
        open(dir.path(), "x").unwrap().write_all(&vec![b'x'; 2 << 20]).unwrap();
        open(dir.path(), "x").unwrap().write_all(b"new").unwrap();
        assert_eq!(fs::read(dir.path().join("x.log")).unwrap(), b"new");
        assert_eq!(fs::read(dir.path().join("x.old.log")).unwrap().len(), 2 << 20);
    }
}
