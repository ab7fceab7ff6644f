//! Walks a folder and reads every SKILL.md, as a baseline: every checker must do at least this.

use std::{env, fs, io, path::Path, process::ExitCode};

fn main() -> ExitCode {
    let mut total = 0;
    for root in env::args().skip(1) {
        match walk(Path::new(&root)) {
            Ok(bytes) => total += bytes,
            Err(_) => return ExitCode::FAILURE,
        }
    }
    // The exit code depends on the sum, so that the compiler cannot remove the reading.
    ExitCode::from(u8::from(total == 1))
}

fn walk(dir: &Path) -> io::Result<usize> {
    let mut total = 0;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            total += walk(&entry.path())?;
        } else if entry.file_name() == "SKILL.md" {
            total += fs::read(entry.path())?.len();
        }
    }
    Ok(total)
}
