//! Defines the programs that run inside the sandbox, selected by name.

use std::{
    env,
    fs::File,
    io::{self, Read as _, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    thread,
    time::{Duration, Instant},
};

use crate::{
    check::calls::{self, call, fork},
    support::{NAME, SETUP},
};

const LONG: Duration = Duration::from_mins(10);
const HALF: Duration = Duration::from_millis(500);

#[test]
#[ignore = "started by other tests"]
fn entry() {
    let (Ok(name), Ok(setup)) = (env::var(NAME), env::var(SETUP)) else { return };
    match name.as_str() {
        "sleep" => thread::sleep(LONG),
        "exit" => calls::leave(setup.parse().unwrap()),
        "signal" => {
            let own = std::process::id() as usize;
            call(libc::SYS_kill, &[own, setup.parse().unwrap()]).unwrap();
            thread::sleep(LONG);
        }
        "stubborn" => stubborn(),
        "leave" => {
            if fork().unwrap() {
                call(libc::SYS_setsid, &[]).unwrap();
                thread::sleep(LONG);
            }
            calls::leave(0);
        }
        "print" => print(),
        "print on" => {
            calls::ignore(libc::SIGTERM);
            print();
        }
        "echo" => {
            io::copy(&mut io::stdin(), &mut io::stderr()).unwrap();
        }
        "silent" => {
            for fd in [0, 1, 2] {
                call(libc::SYS_close, &[fd]).unwrap();
            }
            thread::sleep(LONG);
        }
        "together" => together(),
        "shared" => shared(),
        "many" => many(),
        "take back" => take_back(),
        "fill" => fill(),
        "supervise" => supervise(&setup),
        _ => panic!("{name} is not a role"),
    }
}

/// A tree of processes that ignore SIGTERM.
fn stubborn() {
    calls::ignore(libc::SIGTERM);
    for _ in 0..2 {
        if fork().unwrap() {
            call(libc::SYS_setsid, &[]).unwrap();
            let _ = fork();
            let _ = fork();
        }
    }
    thread::sleep(LONG);
}

/// Uses little memory in each process, and much in all its child processes together.
fn together() {
    for _ in 0..7 {
        if fork().unwrap() {
            break;
        }
    }
    let taken = vec![1_u8; 48 << 20];
    thread::sleep(LONG);
    drop(taken);
}

/// Uses much memory once, and shares it with its child processes.
fn shared() {
    let taken = vec![1_u8; 64 << 20];
    for _ in 0..7 {
        if fork().unwrap() {
            break;
        }
    }
    thread::sleep(HALF);
    drop(taken);
    calls::leave(0);
}

/// Starts as many processes as possible.
fn many() {
    while let Ok(false) = fork() {}
    thread::sleep(LONG);
}

fn print() {
    let text = vec![b'x'; 64 << 10];
    while io::stderr().write_all(&text).is_ok() {}
}

/// Reads its own output, so that the supervisor's read would block although the pipe was ready.
fn take_back() {
    let own = File::options().read(true).custom_flags(libc::O_NONBLOCK).open("/proc/self/fd/2");
    let mut own = own.unwrap();
    let start = Instant::now();
    while start.elapsed() < HALF {
        io::stderr().write_all(b"x").unwrap();
        let _ = own.read(&mut [0; 64]);
    }
    thread::sleep(LONG);
}

/// Writes into its own input, so that the supervisor's write would block although the pipe was
/// ready.
fn fill() {
    let own = File::options().write(true).custom_flags(libc::O_NONBLOCK).open("/proc/self/fd/0");
    let mut own = own.unwrap();
    let mut input = File::open("/proc/self/fd/0").unwrap();
    let start = Instant::now();
    while start.elapsed() < HALF {
        while own.write(&[0; 4096]).is_ok() {}
        input.read_exact(&mut [0; 4096]).unwrap();
    }
    while own.write(&[0; 4096]).is_ok() {}
    thread::sleep(LONG);
}

/// Runs outside the sandbox: starts a run, and waits to be killed.
fn supervise(marker: &str) {
    let process = super::start(super::policy("stubborn", ""), marker);
    thread::sleep(LONG);
    drop(process);
}
