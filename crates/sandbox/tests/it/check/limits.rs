//! Checks the limits of a policy.

use std::{
    fs::{self, File},
    io,
};

use super::{
    Check,
    calls::{self, call, fork},
    check, done,
};
use crate::support::{FILE_SIZE, MEMORY, OPEN_FILES, PROCESSES, SCRATCH};

const GROUP: &str = "limits";

/// The kernel does not limit the number of processes of root.
pub(crate) const MORE_PROCESSES: &str = "start more processes";

pub(super) const CHECKS: &[Check] = &[
    check(MORE_PROCESSES, GROUP, |_| {
        calls::in_child(|| {
            // A process group, so that all processes can be killed together.
            call(libc::SYS_setpgid, &[0, 0])?;
            let result = (0..PROCESSES + 8).try_for_each(|_| {
                if fork()? {
                    loop {
                        std::thread::park();
                    }
                }
                Ok(())
            });
            calls::ignore(libc::SIGTERM);
            call(libc::SYS_kill, &[0, libc::SIGTERM as usize])?;
            result
        })
    }),
    check("use more memory", GROUP, |_| {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        done(calls::map_length(-1, libc::PROT_READ | libc::PROT_WRITE, flags, MEMORY as usize))
    }),
    check("write a larger file", GROUP, |at| {
        calls::ignore(libc::SIGXFSZ);
        let file = File::create(at.write.join("large")).map_err(|error| error.to_string())?;
        done(file.set_len(FILE_SIZE + 1))
    }),
    check("write more into a private folder", GROUP, |at| {
        let part = vec![1; SCRATCH as usize / 4];
        (0..5).try_for_each(|number| done(fs::write(at.scratch.join(number.to_string()), &part)))
    }),
    check("open more files", GROUP, |_| {
        let files: io::Result<Vec<File>> =
            (0..OPEN_FILES).map(|_| File::open("/dev/null")).collect();
        done(files)
    }),
    check("raise the limit of open files", GROUP, |_| {
        let limit = [OPEN_FILES + 1; 2];
        let files = libc::RLIMIT_NOFILE as usize;
        calls::in_child(|| {
            call(libc::SYS_prlimit64, &[0, files, calls::address(&limit), 0]).map(drop)
        })
    }),
    check("leave memory of a crash behind", GROUP, |_| {
        let limit = [0_u64, 1];
        let core = libc::RLIMIT_CORE as usize;
        calls::in_child(|| {
            call(libc::SYS_prlimit64, &[0, core, calls::address(&limit), 0]).map(drop)
        })
    })
    .depends("the caller may have given this up already"),
];
