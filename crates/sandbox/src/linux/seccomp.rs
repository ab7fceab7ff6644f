//! Compiles the seccomp filter, which decides which system calls the program may use. Namespaces
//! and Landlock control files and hosts; the filter blocks the calls that would bypass them and the
//! calls that no tool needs.
//!
//! System calls newer than this list fail with `ENOSYS`, as on an older kernel.

use libc::{c_long, sock_filter};

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xC000_003E;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xC000_00B7;

/// System calls of the x32 interface have numbers from here on.
const FIRST_X32_CALL: u32 = 0x4000_0000;

/// The newest system call that this list considers (`listns`).
const LAST_KNOWN_CALL: u32 = 470;

/// Calls that fail with `EPERM`.
const DENIED_CALLS: &[c_long] = &[
    // Access to the memory and descriptors of other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_process_mrelease,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_move_pages,
    libc::SYS_migrate_pages,
    // Files without a path, whose execution no rule about paths could stop.
    libc::SYS_memfd_create,
    libc::SYS_memfd_secret,
    // Mounts, file handles and other ways to a different view of the file system.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    OPEN_TREE_ATTR,
    STATMOUNT,
    LISTMOUNT,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
    // Memory that belongs to no process, which no limit would count.
    libc::SYS_shmget,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    // Access to other namespaces.
    libc::SYS_unshare,
    libc::SYS_setns,
    LISTNS,
    // The user's kernel keyring.
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    // Large parts of the kernel with a history of vulnerabilities.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_lookup_dcookie,
    // Control over the machine itself.
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_syslog,
    libc::SYS_acct,
    libc::SYS_vhangup,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
];

#[cfg(target_arch = "x86_64")]
const DENIED_ARCH_CALLS: &[c_long] = &[
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_modify_ldt,
    libc::SYS__sysctl,
    libc::SYS_uselib,
    libc::SYS_ustat,
    libc::SYS_sysfs,
];
#[cfg(target_arch = "aarch64")]
const DENIED_ARCH_CALLS: &[c_long] = &[];

/// Calls that fail with `ENOSYS`, so that programs fall back to older calls whose arguments the
/// filter can see.
const UNSUPPORTED_CALLS: &[c_long] = &[
    libc::SYS_clone3,
    libc::SYS_openat2,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
];

const STATMOUNT: c_long = 457;
const LISTMOUNT: c_long = 458;
const OPEN_TREE_ATTR: c_long = 467;
const LISTNS: c_long = 470;

const NEW_NAMESPACES: u32 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP) as u32
    | libc::CLONE_NEWTIME as u32;

/// Which sockets the program can create.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sockets {
    /// Only connected Unix socket pairs.
    Pairs,
    /// Also IPv4 and IPv6 sockets, which the program needs to reach the proxy.
    Internet,
}

/// Calls that set a file's mode: the index of the flags argument (for calls that create a file only
/// with certain flags) and the index of the mode argument. The filter refuses setuid and setgid
/// bits, with which a file would run as this user for anyone else who starts it.
const MODE_CALLS: &[(c_long, Option<u32>, u32)] = &[
    (libc::SYS_openat, Some(2), 3),
    (libc::SYS_fchmod, None, 1),
    (libc::SYS_fchmodat, None, 2),
    (FCHMODAT2, None, 2),
    (libc::SYS_mknodat, None, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, Some(1), 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_creat, None, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, None, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mknod, None, 1),
];
const FCHMODAT2: c_long = 452;

/// Calls that wait until the supervisor has recorded the file and lets them continue.
#[cfg(target_arch = "x86_64")]
const WATCHED_CALLS: &[c_long] = &[
    libc::SYS_open,
    libc::SYS_openat,
    libc::SYS_creat,
    libc::SYS_truncate,
    libc::SYS_mkdir,
    libc::SYS_mkdirat,
    libc::SYS_rmdir,
    libc::SYS_unlink,
    libc::SYS_unlinkat,
    libc::SYS_rename,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_link,
    libc::SYS_linkat,
    libc::SYS_symlink,
    libc::SYS_symlinkat,
    libc::SYS_mknod,
    libc::SYS_mknodat,
    libc::SYS_execve,
    libc::SYS_execveat,
];
#[cfg(target_arch = "aarch64")]
const WATCHED_CALLS: &[c_long] = &[
    libc::SYS_openat,
    libc::SYS_truncate,
    libc::SYS_mkdirat,
    libc::SYS_unlinkat,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_linkat,
    libc::SYS_symlinkat,
    libc::SYS_mknodat,
    libc::SYS_execve,
    libc::SYS_execveat,
];

const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const IF_ABOVE: u16 = (libc::BPF_JMP | libc::BPF_JGT | libc::BPF_K) as u16;
const IF_ANY_BIT: u16 = (libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

/// `fcntl` command for a lease on a folder; `libc` does not define it yet.
const F_SETDELEG: u32 = 1024 + 16;

/// Offsets in `seccomp_data`, the kernel's description of a call.
const NUMBER_OFFSET: u32 = 0;
const ARCH_OFFSET: u32 = 4;
const fn argument_offset(index: u32) -> u32 {
    16 + 8 * index
}

const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
const NOTIFY: u32 = libc::SECCOMP_RET_USER_NOTIF;
const KILL: u32 = libc::SECCOMP_RET_KILL_PROCESS;
const fn fail(errno: i32) -> u32 {
    libc::SECCOMP_RET_ERRNO | errno as u32
}

/// Compiles the filter to BPF instructions.
pub(crate) fn compile_filter(sockets: Sockets, watched: bool) -> Vec<sock_filter> {
    let mut program = FilterProgram::default();
    program.load(ARCH_OFFSET);
    program.unless_equal(ARCHITECTURE, KILL);
    program.load(NUMBER_OFFSET);
    program.if_above(LAST_KNOWN_CALL, fail(libc::ENOSYS));
    const { assert!(FIRST_X32_CALL > LAST_KNOWN_CALL, "x32 calls are above the last known one") };
    for &call in UNSUPPORTED_CALLS {
        program.if_call(call, fail(libc::ENOSYS));
    }
    for &call in DENIED_CALLS.iter().chain(DENIED_ARCH_CALLS) {
        program.if_call(call, fail(libc::EPERM));
    }
    program.call(libc::SYS_clone, |block| {
        block.load(argument_offset(0));
        block.if_any_bit(NEW_NAMESPACES, fail(libc::EPERM));
        block.finish(ALLOW);
    });
    program.call(libc::SYS_personality, |block| {
        // Programs only query the current personality or set the default one.
        block.load(argument_offset(0));
        block.if_equal(u32::MAX, ALLOW);
        block.if_equal(0, ALLOW);
        block.finish(fail(libc::EPERM));
    });
    program.call(libc::SYS_ioctl, |block| {
        // These requests insert input into a terminal that the program shares with its caller.
        block.load(argument_offset(1));
        block.if_equal(libc::TIOCSTI as u32, fail(libc::EPERM));
        block.if_equal(libc::TIOCLINUX as u32, fail(libc::EPERM));
        block.finish(ALLOW);
    });
    program.call(libc::SYS_fcntl, |block| {
        // A lease on a file, even a read-only one, makes every other process that opens the file
        // wait.
        block.load(argument_offset(1));
        block.if_equal(libc::F_SETLEASE as u32, fail(libc::EPERM));
        block.if_equal(F_SETDELEG, fail(libc::EPERM));
        block.finish(ALLOW);
    });
    program.call(libc::SYS_socketpair, |block| {
        // One end of a `SOCK_DGRAM` pair (2), or of `SOCK_RAW` (3), which Unix sockets treat the
        // same, can send to any socket file.
        block.load(argument_offset(1));
        block.if_any_bit(libc::SOCK_DGRAM as u32, fail(libc::EACCES));
        block.load(argument_offset(0));
        block.if_equal(libc::AF_UNIX as u32, ALLOW);
        block.finish(fail(libc::EACCES));
    });
    program.call(libc::SYS_prlimit64, |block| {
        // Only its own limits: the program must not change those of the supervising process.
        block.load(argument_offset(0));
        block.if_equal(0, ALLOW);
        block.finish(fail(libc::EPERM));
    });
    for (call, flags, mode) in MODE_CALLS {
        let go_on = if watched && WATCHED_CALLS.contains(call) { NOTIFY } else { ALLOW };
        program.call(*call, |block| {
            if let Some(flags) = flags {
                block.load(argument_offset(*flags));
                block.unless_any_bit(
                    (libc::O_CREAT | libc::O_TMPFILE) as u32 & !(libc::O_DIRECTORY as u32),
                    go_on,
                );
            }
            block.load(argument_offset(*mode));
            block.if_any_bit(libc::S_ISUID | libc::S_ISGID, fail(libc::EPERM));
            block.finish(go_on);
        });
    }
    program.call(libc::SYS_socket, |block| {
        if sockets == Sockets::Internet {
            block.load(argument_offset(0));
            block.if_equal(libc::AF_INET as u32, ALLOW);
            block.if_equal(libc::AF_INET6 as u32, ALLOW);
        }
        block.finish(fail(libc::EACCES));
    });
    if watched {
        for &call in WATCHED_CALLS {
            program.if_call(call, NOTIFY);
        }
    }
    program.finish(ALLOW);
    program.0
}

#[derive(Default)]
struct FilterProgram(Vec<sock_filter>);

impl FilterProgram {
    fn push(&mut self, code: u16, k: u32, jt: u8, jf: u8) {
        self.0.push(sock_filter { code, jt, jf, k });
    }

    fn load(&mut self, offset: u32) {
        self.push(LOAD, offset, 0, 0);
    }

    fn finish(&mut self, verdict: u32) {
        self.push(RETURN, verdict, 0, 0);
    }

    fn if_equal(&mut self, value: u32, verdict: u32) {
        self.push(IF_EQUAL, value, 0, 1);
        self.finish(verdict);
    }

    fn unless_equal(&mut self, value: u32, verdict: u32) {
        self.push(IF_EQUAL, value, 1, 0);
        self.finish(verdict);
    }

    fn if_above(&mut self, value: u32, verdict: u32) {
        self.push(IF_ABOVE, value, 0, 1);
        self.finish(verdict);
    }

    fn if_any_bit(&mut self, mask: u32, verdict: u32) {
        self.push(IF_ANY_BIT, mask, 0, 1);
        self.finish(verdict);
    }

    fn unless_any_bit(&mut self, mask: u32, verdict: u32) {
        self.push(IF_ANY_BIT, mask, 1, 0);
        self.finish(verdict);
    }

    fn if_call(&mut self, call: c_long, verdict: u32) {
        self.if_equal(call as u32, verdict);
    }

    /// Adds instructions that run only for one call. The block must end with a verdict.
    fn call(&mut self, call: c_long, block: impl FnOnce(&mut Self)) {
        let mut inner = Self::default();
        block(&mut inner);
        self.push(IF_EQUAL, call as u32, 0, inner.0.len() as u8);
        self.0.append(&mut inner.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the filter's verdict about a call, by interpreting the BPF instructions that the
    /// filter uses.
    fn verdict(program: &[sock_filter], number: c_long, arguments: [u64; 2]) -> u32 {
        let (mut at, mut value) = (0_usize, 0_u32);
        for _ in 0..program.len() {
            let step = program[at];
            at += 1;
            match step.code {
                LOAD => {
                    value = match step.k {
                        NUMBER_OFFSET => number as u32,
                        ARCH_OFFSET => ARCHITECTURE,
                        offset => arguments
                            .get((offset as usize - 16) / 8)
                            .map_or(0, |value| *value as u32),
                    };
                }
                RETURN => return step.k,
                code => {
                    let holds = match code {
                        IF_EQUAL => value == step.k,
                        IF_ABOVE => value > step.k,
                        IF_ANY_BIT => value & step.k != 0,
                        _ => panic!("unknown instruction"),
                    };
                    at += usize::from(if holds { step.jt } else { step.jf });
                }
            }
        }
        panic!("the filter does not end")
    }

    #[test]
    fn calls_that_bypass_the_sandbox_are_refused() {
        let program = compile_filter(Sockets::Pairs, false);
        for &call in DENIED_CALLS.iter().chain(DENIED_ARCH_CALLS) {
            assert_eq!(verdict(&program, call, [0, 0]), fail(libc::EPERM), "{call}");
        }
        for &call in UNSUPPORTED_CALLS {
            assert_eq!(verdict(&program, call, [0, 0]), fail(libc::ENOSYS), "{call}");
        }
        for call in [471, 9999, c_long::from(FIRST_X32_CALL), c_long::from(FIRST_X32_CALL) + 59] {
            assert_eq!(verdict(&program, call, [0, 0]), fail(libc::ENOSYS), "{call}");
        }
    }

    #[test]
    fn calls_that_programs_need_are_allowed() {
        let program = compile_filter(Sockets::Pairs, false);
        for call in [
            libc::SYS_read,
            libc::SYS_write,
            libc::SYS_openat,
            libc::SYS_mmap,
            libc::SYS_execve,
            libc::SYS_exit_group,
            libc::SYS_futex,
            libc::SYS_wait4,
            libc::SYS_pidfd_open,
            libc::SYS_landlock_restrict_self,
        ] {
            assert_eq!(verdict(&program, call, [0, 0]), ALLOW, "{call}");
        }
    }

    #[test]
    fn arguments_are_checked() {
        let clone =
            |flags| verdict(&compile_filter(Sockets::Pairs, false), libc::SYS_clone, [flags, 0]);
        assert_eq!(clone(libc::SIGCHLD as u64), ALLOW);
        assert_eq!(clone((libc::CLONE_VM | libc::CLONE_THREAD) as u64), ALLOW);
        assert_eq!(clone(libc::CLONE_NEWUSER as u64), fail(libc::EPERM));
        let ioctl = |request| {
            verdict(&compile_filter(Sockets::Pairs, false), libc::SYS_ioctl, [1, request])
        };
        assert_eq!(ioctl(libc::TCGETS), ALLOW);
        assert_eq!(ioctl(libc::TIOCSTI), fail(libc::EPERM));
        // The kernel uses only the lower half of the request, and so does the filter.
        assert_eq!(ioctl(libc::TIOCSTI | 1 << 32), fail(libc::EPERM));
        let fcntl = |what: u32| {
            verdict(&compile_filter(Sockets::Pairs, false), libc::SYS_fcntl, [3, what.into()])
        };
        assert_eq!(fcntl(libc::F_GETFD as u32), ALLOW);
        assert_eq!(fcntl(libc::F_SETLK as u32), ALLOW);
        assert_eq!(fcntl(libc::F_SETLEASE as u32), fail(libc::EPERM));
        assert_eq!(fcntl(F_SETDELEG), fail(libc::EPERM));
    }

    #[test]
    fn sockets_are_filtered_by_family() {
        let families = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];
        for (sockets, allowed) in [(Sockets::Pairs, 0..0), (Sockets::Internet, 1..3)] {
            let program = compile_filter(sockets, false);
            for (index, family) in families.into_iter().enumerate() {
                let expected = if allowed.contains(&index) { ALLOW } else { fail(libc::EACCES) };
                let found = verdict(&program, libc::SYS_socket, [family as u64, 0]);
                assert_eq!(found, expected, "{sockets:?} {family}");
            }
            let pair = verdict(&program, libc::SYS_socketpair, [libc::AF_UNIX as u64, 0]);
            assert_eq!(pair, ALLOW);
        }
    }

    #[test]
    fn watched_calls_notify_the_supervisor() {
        let (open, program) = (libc::SYS_openat, compile_filter(Sockets::Pairs, true));
        assert_eq!(verdict(&program, open, [0, 0]), NOTIFY);
        assert_eq!(verdict(&program, libc::SYS_memfd_create, [0, 0]), fail(libc::EPERM));
        assert_eq!(verdict(&compile_filter(Sockets::Pairs, false), open, [0, 0]), ALLOW);
    }
}
