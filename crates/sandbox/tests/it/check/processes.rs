//! Checks access to other processes: those of the host, and the parent, which supervises the
//! program from inside the sandbox.

use std::{fs, io, os::unix::process::parent_id};

use super::{
    Check,
    calls::{address, call, reaches},
    check, contains, done,
};
use crate::support::SECRET;

const GROUP: &str = "processes";

pub(super) const CHECKS: &[Check] = &[
    check("see a process of the host", GROUP, |at| {
        contains(fs::read(format!("/proc/{}/cmdline", at.sleeper)), "sleep")
    }),
    check("read the environment of a process of the host", GROUP, |at| {
        contains(fs::read(format!("/proc/{}/environ", at.sleeper)), SECRET)
    }),
    check("signal a process of the host", GROUP, |at| {
        done(call(libc::SYS_kill, &[at.sleeper as usize, libc::SIGCONT as usize]))
    }),
    check("end a process of the host", GROUP, |at| {
        done(call(libc::SYS_kill, &[at.sleeper as usize, libc::SIGKILL as usize]))
    }),
    check("open a process of the host", GROUP, |at| {
        done(call(libc::SYS_pidfd_open, &[at.sleeper as usize, 0]))
    }),
    check("trace a process of the host", GROUP, |at| {
        const SEIZE: usize = 0x4206;
        done(call(libc::SYS_ptrace, &[SEIZE, at.sleeper as usize]))
    }),
    check("be traced", GROUP, |_| {
        super::calls::in_child(|| call(libc::SYS_ptrace, &[0]).map(drop))
    }),
    check("read the command line of the parent", GROUP, |_| {
        let line = of_parent("cmdline").map_err(|error| error.to_string())?;
        if line.trim_ascii().is_empty() { Err("it is empty".to_owned()) } else { Ok(()) }
    }),
    check("read the environment of the parent", GROUP, |_| contains(of_parent("environ"), "PATH=")),
    check("read where the parent has its memory", GROUP, |_| contains(of_parent("maps"), "r-xp")),
    check("open the memory of the parent", GROUP, |_| {
        done(fs::File::open(format!("/proc/{}/mem", parent_id())))
    }),
    check("list the descriptors of the parent", GROUP, |_| {
        done(fs::read_dir(format!("/proc/{}/fd", parent_id())))
    }),
    check("find the program of the parent", GROUP, |_| {
        done(fs::read_link(format!("/proc/{}/exe", parent_id())))
    }),
    check("read memory of the parent", GROUP, |_| {
        let parent = parent_id() as usize;
        reaches(libc::SYS_process_vm_readv, &[parent, 0, 0, 0, 0])
    }),
    check("write memory of the parent", GROUP, |_| {
        reaches(libc::SYS_process_vm_writev, &[parent_id() as usize, 0, 0, 0, 0])
    }),
    check("take a descriptor of the parent", GROUP, |_| {
        let parent = call(libc::SYS_pidfd_open, &[parent_id() as usize, 0]);
        let parent = parent.map_err(|error| error.to_string())? as usize;
        done(call(libc::SYS_pidfd_getfd, &[parent, 1, 0]))
    }),
    check("compare descriptors with the parent", GROUP, |_| {
        reaches(libc::SYS_kcmp, &[std::process::id() as usize, parent_id() as usize, 1])
    })
    .depends("not every kernel has it"),
    check("signal the parent", GROUP, |_| {
        done(call(libc::SYS_kill, &[parent_id() as usize, libc::SIGCONT as usize]))
    }),
    check("trace the parent", GROUP, |_| {
        const SEIZE: usize = 0x4206;
        done(call(libc::SYS_ptrace, &[SEIZE, parent_id() as usize]))
    }),
    check("change the limits of the parent", GROUP, |_| {
        // Sets the limit to its current value.
        let mut limit = [0_u64; 2];
        let (parent, core) = (parent_id() as usize, libc::RLIMIT_CORE as usize);
        let place = std::ptr::from_mut(&mut limit) as usize;
        done(call(libc::SYS_prlimit64, &[parent, core, 0, place]))?;
        done(call(libc::SYS_prlimit64, &[parent, core, address(&limit), 0]))
    }),
];

fn of_parent(file: &str) -> io::Result<Vec<u8>> {
    fs::read(format!("/proc/{}/{file}", parent_id()))
}
