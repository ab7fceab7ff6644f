//! Checks programs that were not granted.

use std::{
    ffi::OsStr,
    fs::{self, File},
    io::Write as _,
    os::fd::AsRawFd as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use super::{
    Check,
    calls::{self, address, call},
    check, done,
};

const GROUP: &str = "programs";
const TRUE: &str = "/usr/bin/true";
const LOADER: &str = if cfg!(target_arch = "aarch64") {
    "/lib/ld-linux-aarch64.so.1"
} else {
    "/lib64/ld-linux-x86-64.so.2"
};

pub(super) const CHECKS: &[Check] = &[
    check("start another program", GROUP, |_| start("/usr/bin/id", &[])),
    check("start another program through the loader", GROUP, |_| {
        start(LOADER, &["/usr/bin/id".as_ref()])
    }),
    check("start a shell", GROUP, |_| start("/bin/sh", &["-c".as_ref(), "true".as_ref()])),
    check("start a copy in a writable folder", GROUP, |at| start(copy(&at.write)?, &[])),
    check("start a copy in a writable folder through the loader", GROUP, |at| {
        start(LOADER, &[copy(&at.write)?.as_os_str()])
    }),
    check("start a copy in a private folder", GROUP, |at| start(copy(&at.scratch)?, &[])),
    check("start a copy in a private folder through the loader", GROUP, |at| {
        start(LOADER, &[copy(&at.scratch)?.as_os_str()])
    }),
    check("start a program in a folder for reading", GROUP, |at| start(at.read.join("tool"), &[])),
    check("start a program in a folder for reading through the loader", GROUP, |at| {
        start(LOADER, &[at.read.join("tool").as_os_str()])
    }),
    check("start a copy by its descriptor", GROUP, |at| {
        let file = File::open(copy(&at.write)?).map_err(|error| error.to_string())?;
        calls::in_child(|| execute_descriptor(&file))
    }),
    check("start a script in a writable folder", GROUP, |at| {
        // The interpreter is granted: it is this test binary, which runs no test then.
        let path = at.write.join("script");
        done(fs::write(&path, format!("#!{}\n", at.binary.display())))?;
        crate::support::mode(&path, 0o755);
        start(path, &[])
    }),
    check("start a program that exists in memory only", GROUP, |at| {
        let fd = call(libc::SYS_memfd_create, &[address(c"program"), 0])
            .map_err(|error| error.to_string())?;
        let bytes = fs::read(at.read.join("tool")).map_err(|error| error.to_string())?;
        let path = format!("/proc/self/fd/{fd}");
        let mut file = File::options().write(true).open(&path).map_err(|e| e.to_string())?;
        done(file.write_all(&bytes))?;
        drop(file);
        let file = File::open(path).map_err(|error| error.to_string())?;
        calls::in_child(|| execute_descriptor(&file))
    }),
    check("make a file in memory", GROUP, |_| {
        done(call(libc::SYS_memfd_create, &[address(c"memory"), 0]))
    }),
    check("make a secret file in memory", GROUP, |_| {
        calls::reaches(libc::SYS_memfd_secret, &[calls::ALL_BITS])
    })
    .depends("not every kernel has it"),
    check("map a writable file as code", GROUP, |at| map_as_code(&copy(&at.write)?)),
    check("map a private file as code", GROUP, |at| map_as_code(&copy(&at.scratch)?)),
    check("map a file for reading as code", GROUP, |at| map_as_code(&at.read.join("tool"))),
    check("make a mapped file code afterwards", GROUP, |at| {
        let file = File::open(copy(&at.write)?).map_err(|error| error.to_string())?;
        let place =
            calls::map(file.as_raw_fd(), libc::PROT_READ).map_err(|error| error.to_string())?;
        let rights = (libc::PROT_READ | libc::PROT_EXEC) as usize;
        done(call(libc::SYS_mprotect, &[place, 4096, rights]))
    }),
    check("load a library from a writable folder", GROUP, |at| {
        let maps = fs::read_to_string("/proc/self/maps").map_err(|error| error.to_string())?;
        let library = maps
            .lines()
            .filter_map(|line| line.split_whitespace().nth(5))
            .find(|path| path.contains("libgcc_s") || path.contains("libm."))
            .ok_or("this program has no library")?;
        let target = at.write.join("library.so");
        done(fs::copy(library, &target))?;
        calls::load_library(&target)
    })
    .depends("a static program loads nothing"),
    check("gain a user by a set-uid program", GROUP, |at| {
        let program = at.set_uid.as_ref().ok_or("only root can make one")?;
        let output = Command::new(program).arg("-u").stderr(Stdio::null()).output();
        let output = output.map_err(|error| error.to_string())?;
        if output.stdout.trim_ascii() == b"0" { Ok(()) } else { Err("it gives nothing".to_owned()) }
    })
    .depends("only root can make one, and only for another user"),
];

fn start(program: impl AsRef<OsStr>, arguments: &[&OsStr]) -> Result<(), String> {
    let status = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .map_err(|error| error.to_string())?;
    if status.success() { Ok(()) } else { Err(status.to_string()) }
}

/// Copies a program that needs no other files than this one.
fn copy(folder: &Path) -> Result<PathBuf, String> {
    let from = if Path::new(TRUE).exists() {
        PathBuf::from(TRUE)
    } else {
        // Inside the sandbox, the readable folder next to the other folders contains a program.
        folder.parent().unwrap().join("read/tool")
    };
    let target = folder.join("copy");
    let bytes = fs::read(from).map_err(|error| error.to_string())?;
    done(fs::write(&target, bytes))?;
    crate::support::mode(&target, 0o755);
    Ok(target)
}

fn map_as_code(path: &Path) -> Result<(), String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    done(calls::map(file.as_raw_fd(), libc::PROT_READ | libc::PROT_EXEC))
}

fn execute_descriptor(file: &File) -> std::io::Result<()> {
    let fd = file.as_raw_fd() as usize;
    let arguments = [address(c"program"), 0];
    let flags = libc::AT_EMPTY_PATH as usize;
    let place = address(&arguments);
    call(libc::SYS_execveat, &[fd, address(c""), place, address(&[0_usize]), flags]).map(drop)
}
