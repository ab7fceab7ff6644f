//! Runs the program on a terminal.

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

/// A text to wait for, and the input to type then.
pub(crate) type Step<'a> = (&'a str, &'a str);

/// A command in a new session that reads and writes only its terminal.
pub(crate) fn run_alone(command: &Command, steps: &[Step<'_>]) -> Transcript {
    let mut alone = Command::new("setsid");
    alone.args(["--ctty", "--wait"]).arg(command.get_program()).args(command.get_args());
    if let Some(folder) = command.get_current_dir() {
        alone.current_dir(folder);
    }
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => alone.env(name, value),
            None => alone.env_remove(name),
        };
    }
    run_with(alone, steps, Output::Terminal)
}

/// The target of standard output.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Output {
    Terminal,
    Pipe,
}

/// Runs a command whose standard input and error are a terminal. The terminal's content is in
/// `stderr`.
pub(crate) fn run(command: Command, typed: &str) -> Transcript {
    run_with(command, &[("", typed)], Output::Pipe)
}

/// The same, waiting for expected output before typing.
pub(crate) fn run_in_steps(command: Command, steps: &[Step<'_>]) -> Transcript {
    run_with(command, steps, Output::Pipe)
}

fn run_with(mut command: Command, mut steps: &[Step<'_>], output: Output) -> Transcript {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&ours).expect("a terminal");
    unlockpt(&ours).expect("a terminal");
    let name = ptsname(&ours, Vec::new()).expect("its name");
    let end =
        || File::from(open(&*name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).expect("it"));
    let stdout = match output {
        Output::Terminal => Stdio::from(end()),
        Output::Pipe => Stdio::piped(),
    };
    command.stdin(Stdio::from(end())).stderr(Stdio::from(end())).stdout(stdout);
    let mut child = command.spawn().expect("savoir runs");
    // The command has a copy of the other end, which must be closed, because reading would never
    // end otherwise.
    drop(command);
    let mut ours = File::from(ours);
    let mut type_next = |ours: &mut File, shown: &str| {
        while let [(awaited, typed), rest @ ..] = steps
            && shown.contains(awaited)
        {
            ours.write_all(typed.as_bytes()).expect("it is typed");
            steps = rest;
            if !awaited.is_empty() {
                return true;
            }
        }
        false
    };
    type_next(&mut ours, "");
    let mut seen = 0;
    let mut shown = Vec::new();
    let mut stdout = String::new();
    let piped = child.stdout.take();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut bytes = [0; 4096];
            // Linux reports an error when no process has the terminal open.
            while let Ok(count @ 1..) = ours.read(&mut bytes) {
                shown.extend_from_slice(&bytes[..count]);
                if type_next(&mut ours, &String::from_utf8_lossy(&shown[seen..])) {
                    seen = shown.len();
                }
            }
        });
        if let Some(mut piped) = piped {
            piped.read_to_string(&mut stdout).expect("text");
        }
    });
    let code = child.wait().expect("an end").code().unwrap_or(-1);
    Transcript { code, stdout, stderr: String::from_utf8_lossy(&shown).into_owned() }
}
