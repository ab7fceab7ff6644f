//! Running the program before a terminal.

use std::{
    fs::File,
    io::{Read as _, Write as _},
    process::{Command, Stdio},
};

use rustix::{
    fs::{Mode, OFlags, open},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
};

use super::Transcript;

/// Runs a command whose standard input and error are a terminal. What is shown there is `stderr`.
pub(super) fn run(mut command: Command, typed: &str) -> Transcript {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&ours).expect("a terminal");
    unlockpt(&ours).expect("a terminal");
    let name = ptsname(&ours, Vec::new()).expect("its name");
    let end =
        || File::from(open(&*name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).expect("it"));
    command.stdin(Stdio::from(end())).stderr(Stdio::from(end())).stdout(Stdio::piped());
    let mut child = command.spawn().expect("savoir runs");
    // The command holds the other end, which must be gone for the reading to end.
    drop(command);
    let mut ours = File::from(ours);
    ours.write_all(typed.as_bytes()).expect("it is typed");
    let mut shown = Vec::new();
    let mut stdout = String::new();
    let mut piped = child.stdout.take().expect("standard output");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut bytes = [0; 4096];
            // Linux ends a terminal that nobody holds any more with an error.
            while let Ok(count @ 1..) = ours.read(&mut bytes) {
                shown.extend_from_slice(&bytes[..count]);
            }
        });
        piped.read_to_string(&mut stdout).expect("text");
    });
    let code = child.wait().expect("an end").code().unwrap_or(-1);
    Transcript { code, stdout, stderr: String::from_utf8_lossy(&shown).into_owned() }
}
