//! Checks namespaces, calls for administrators and debuggers, and privileges.
//!
//! If a successful call would do harm, its arguments are wrong: the check then succeeds if the
//! kernel validates them.

use std::{fs, io};

use super::{
    Check,
    calls::{ALL_BITS, NOWHERE, address, call, in_child, old_interface, reaches},
    check, done,
};

const NAMESPACES: &str = "namespaces";
const CALLS: &str = "system calls";
const PRIVILEGES: &str = "privileges";
const CAPABLE: &str = "the kernel asks for the privilege first";
const BUILT: &str = "not every kernel has it";

pub(super) const CHECKS: &[Check] = &[
    check("make a user namespace", NAMESPACES, |_| unshare(0)),
    check("make a mount namespace", NAMESPACES, |_| unshare(libc::CLONE_NEWNS)),
    check("make a network namespace", NAMESPACES, |_| unshare(libc::CLONE_NEWNET)),
    check("make a process namespace", NAMESPACES, |_| unshare(libc::CLONE_NEWPID)),
    check("make a host name namespace", NAMESPACES, |_| unshare(libc::CLONE_NEWUTS)),
    check("make an IPC namespace", NAMESPACES, |_| unshare(libc::CLONE_NEWIPC)),
    check("make a control group namespace", NAMESPACES, |_| unshare(libc::CLONE_NEWCGROUP)),
    check("make a time namespace", NAMESPACES, |_| unshare(libc::CLONE_NEWTIME)).depends(BUILT),
    check("start a process in a user namespace", NAMESPACES, |_| {
        in_child(|| {
            let flags = libc::CLONE_NEWUSER | libc::SIGCHLD;
            match call(libc::SYS_clone, &[flags as usize])? {
                0 => super::calls::leave(0),
                _ => Ok(()),
            }
        })
    }),
    check("start a process in a user namespace by the newer call", NAMESPACES, |_| {
        in_child(|| {
            let mut arguments = [0_u64; 11];
            arguments[0] = libc::CLONE_NEWUSER as u64;
            arguments[4] = libc::SIGCHLD as u64;
            match call(libc::SYS_clone3, &[address(&arguments), size_of_val(&arguments)])? {
                0 => super::calls::leave(0),
                _ => Ok(()),
            }
        })
    }),
    check("enter a namespace", NAMESPACES, |_| reaches(libc::SYS_setns, &[ALL_BITS, 0])),
    check("mount", CALLS, |_| reaches(libc::SYS_mount, &[NOWHERE, NOWHERE, NOWHERE, 0, NOWHERE])),
    check("unmount", CALLS, |_| reaches(libc::SYS_umount2, &[NOWHERE, ALL_BITS])),
    check("exchange the root", CALLS, |_| reaches(libc::SYS_pivot_root, &[NOWHERE, NOWHERE]))
        .root(CAPABLE),
    check("change the root", CALLS, |_| reaches(libc::SYS_chroot, &[NOWHERE])),
    check("open a file system", CALLS, |_| reaches(libc::SYS_fsopen, &[NOWHERE, 0])).root(CAPABLE),
    check("set up a file system", CALLS, |_| reaches(libc::SYS_fsconfig, &[ALL_BITS, 99])),
    check("open a tree of mounts", CALLS, |_| {
        reaches(libc::SYS_open_tree, &[ALL_BITS, NOWHERE, 0])
    }),
    check("open a tree of mounts by the newer call", CALLS, |_| {
        reaches(467, &[ALL_BITS, NOWHERE, 0])
    })
    .depends(BUILT),
    check("move a mount", CALLS, |_| {
        reaches(libc::SYS_move_mount, &[ALL_BITS, NOWHERE, ALL_BITS, NOWHERE, 0])
    })
    .root(CAPABLE),
    check("change a mount", CALLS, |_| {
        reaches(libc::SYS_mount_setattr, &[ALL_BITS, NOWHERE, ALL_BITS, NOWHERE, 32])
    }),
    check("ask about mounts", CALLS, |_| reaches(457, &[NOWHERE, NOWHERE, 0, ALL_BITS]))
        .depends(BUILT),
    check("list mounts", CALLS, |_| reaches(458, &[NOWHERE, NOWHERE, 0, ALL_BITS])).depends(BUILT),
    check("name a file by a handle", CALLS, |_| {
        reaches(libc::SYS_name_to_handle_at, &[ALL_BITS, NOWHERE, NOWHERE, NOWHERE, 0])
    }),
    check("open a file by a handle", CALLS, |_| {
        reaches(libc::SYS_open_by_handle_at, &[ALL_BITS, NOWHERE, 0])
    })
    .root(CAPABLE),
    check("watch all files", CALLS, |_| done(call(libc::SYS_fanotify_init, &[0x200, 0])))
        .depends(BUILT),
    check("load a program into the kernel", CALLS, |_| {
        reaches(libc::SYS_bpf, &[ALL_BITS, NOWHERE, 8])
    })
    .root(CAPABLE),
    check("measure the processor", CALLS, |_| {
        reaches(libc::SYS_perf_event_open, &[NOWHERE, 0, 0, ALL_BITS, ALL_BITS])
    }),
    check("make a ring of calls", CALLS, |_| reaches(libc::SYS_io_uring_setup, &[1, NOWHERE]))
        .depends("administrators can switch it off"),
    check("handle own page faults", CALLS, |_| done(call(libc::SYS_userfaultfd, &[1])))
        .depends(BUILT),
    check("use the keys of the user", CALLS, |_| {
        const GET_KEYRING: usize = 0;
        const USER_KEYRING: usize = 0usize.wrapping_sub(4);
        reaches(libc::SYS_keyctl, &[GET_KEYRING, USER_KEYRING, 0])
    })
    .depends(BUILT),
    check("add a key", CALLS, |_| reaches(libc::SYS_add_key, &[NOWHERE, NOWHERE])).depends(BUILT),
    check("ask for a key", CALLS, |_| reaches(libc::SYS_request_key, &[NOWHERE, NOWHERE]))
        .depends(BUILT),
    check("name the machine", CALLS, |_| reaches(libc::SYS_sethostname, &[NOWHERE, ALL_BITS]))
        .root(CAPABLE),
    check("set the time", CALLS, |_| reaches(libc::SYS_settimeofday, &[NOWHERE, 0])),
    check("set a clock", CALLS, |_| reaches(libc::SYS_clock_settime, &[99, NOWHERE])),
    check("tune the clock", CALLS, |_| reaches(libc::SYS_adjtimex, &[NOWHERE])),
    check("read the log of the kernel", CALLS, |_| done(call(libc::SYS_syslog, &[10])))
        .root(CAPABLE),
    check("take on another personality", CALLS, |_| {
        const NO_RANDOM_ADDRESSES: usize = 0x004_0000;
        in_child(|| call(libc::SYS_personality, &[NO_RANDOM_ADDRESSES]).map(drop))
    }),
    check("use a file as swap", CALLS, |_| reaches(libc::SYS_swapon, &[NOWHERE, ALL_BITS]))
        .depends(BUILT),
    check("restart the machine", CALLS, |_| reaches(libc::SYS_reboot, &[0, 0, 0])).root(CAPABLE),
    check("load a module", CALLS, |_| reaches(libc::SYS_init_module, &[NOWHERE, 0, NOWHERE]))
        .depends(BUILT),
    check("load a module from a file", CALLS, |_| {
        reaches(libc::SYS_finit_module, &[ALL_BITS, NOWHERE, ALL_BITS])
    })
    .depends(BUILT),
    check("remove a module", CALLS, |_| reaches(libc::SYS_delete_module, &[NOWHERE, 0]))
        .depends(BUILT),
    check("load another kernel", CALLS, |_| {
        reaches(libc::SYS_kexec_load, &[0, ALL_BITS, NOWHERE, ALL_BITS])
    })
    .depends(BUILT),
    check("write accounts", CALLS, |_| reaches(libc::SYS_acct, &[NOWHERE])).depends(BUILT),
    check("set quotas", CALLS, |_| reaches(libc::SYS_quotactl, &[ALL_BITS, NOWHERE, 0, NOWHERE]))
        .depends(BUILT),
    check("move pages", CALLS, |_| reaches(libc::SYS_move_pages, &[0, 0, 0, 0, 0, 0]))
        .depends(BUILT),
    check("advise about foreign memory", CALLS, |_| {
        reaches(libc::SYS_process_madvise, &[ALL_BITS, NOWHERE, 0, 0, ALL_BITS])
    })
    .depends(BUILT),
    check("type into a terminal", CALLS, |_| {
        reaches(libc::SYS_ioctl, &[1, libc::TIOCSTI as usize, NOWHERE])
    }),
    #[cfg(target_arch = "x86_64")]
    check("use ports of the machine", CALLS, |_| reaches(libc::SYS_iopl, &[9])).depends(BUILT),
    #[cfg(target_arch = "x86_64")]
    check("change the table of segments", CALLS, |_| {
        reaches(libc::SYS_modify_ldt, &[0, NOWHERE, 0])
    })
    .depends(BUILT),
    check("call the kernel in the way of 32-bit programs", CALLS, |_| in_child(old_interface))
        .depends(BUILT),
    check("call with the second half of the number set", CALLS, |_| {
        // The kernel uses only the lower half of these arguments, and so must the filter.
        let flags = libc::CLONE_NEWUSER as usize | libc::SIGCHLD as usize | 1 << 32;
        in_child(|| match call(libc::SYS_clone, &[flags])? {
            0 => super::calls::leave(0),
            _ => Ok(()),
        })
    }),
    check("keep privileges that programs can gain", PRIVILEGES, |_| is_set("CapBnd:")),
    check("have effective privileges", PRIVILEGES, |_| is_set("CapEff:")).root("only root has any"),
    check("have permitted privileges", PRIVILEGES, |_| is_set("CapPrm:")).root("only root has any"),
    check("have inherited privileges", PRIVILEGES, |_| is_set("CapInh:")).depends("few callers do"),
    check("have ambient privileges", PRIVILEGES, |_| is_set("CapAmb:")).depends("few callers do"),
    check("gain privileges by a program", PRIVILEGES, |_| status("NoNewPrivs:", "0"))
        .depends("the caller may have given this up already"),
    check("be without a filter of system calls", PRIVILEGES, |_| status("Seccomp:", "0"))
        .depends("containers have a filter of their own"),
    check("become another user", PRIVILEGES, |_| {
        in_child(|| call(libc::SYS_setresuid, &[12345, 12345, 12345]).map(drop))
    })
    .root("only root does"),
    check("leave all groups", PRIVILEGES, |_| {
        in_child(|| call(libc::SYS_setgroups, &[0, 0]).map(drop))
    })
    .root("only root does"),
    check("hold a lease on the processor", PRIVILEGES, |_| {
        const FIFO: usize = 1;
        let priority = 1_i32;
        in_child(|| call(libc::SYS_sched_setscheduler, &[0, FIFO, address(&priority)]).map(drop))
    })
    .root("only root does"),
];

/// Creates a user namespace together with another one, which every user may do.
fn unshare(kind: i32) -> Result<(), String> {
    in_child(|| call(libc::SYS_unshare, &[(libc::CLONE_NEWUSER | kind) as usize]).map(drop))
}

fn field(name: &str) -> io::Result<String> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.map(|value| value.trim().to_owned()).ok_or_else(|| io::Error::other("no such line"))
}

fn is_set(name: &str) -> Result<(), String> {
    let value = field(name).map_err(|error| error.to_string())?;
    if value.bytes().all(|byte| byte == b'0') { Err("none".to_owned()) } else { Ok(()) }
}

fn status(name: &str, expected: &str) -> Result<(), String> {
    let value = field(name).map_err(|error| error.to_string())?;
    if value == expected { Ok(()) } else { Err(format!("it is {value}")) }
}
