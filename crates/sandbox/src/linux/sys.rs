//! Wraps system calls, one per function. This is the only file that calls the kernel without the
//! standard library: none of these functions allocates, locks or unwinds, so that they can be
//! called between `clone` and `execve`.

#![expect(unsafe_code, reason = "the standard library has no functions for these calls")]

use std::{
    ffi::CStr,
    mem,
    os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd},
    ptr,
};

use libc::{c_int, c_long, c_uint, c_ulong};

/// The error number of a failed call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Errno(pub(crate) c_int);

pub(crate) type Result<T> = std::result::Result<T, Errno>;

impl From<Errno> for std::io::Error {
    fn from(errno: Errno) -> Self {
        Self::from_raw_os_error(errno.0)
    }
}

pub(crate) fn errno() -> Errno {
    // SAFETY: the location of errno is valid for the calling thread.
    Errno(unsafe { *libc::__errno_location() })
}

fn check(result: c_long) -> Result<c_long> {
    if result < 0 { Err(errno()) } else { Ok(result) }
}

fn check_int(result: c_int) -> Result<c_int> {
    if result < 0 { Err(errno()) } else { Ok(result) }
}

fn owned(result: c_long) -> Result<OwnedFd> {
    let fd = check(result)?;
    // SAFETY: the kernel has just made this descriptor and nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}

/// Opens a path with `O_PATH`, and only if it contains no symbolic link.
pub(crate) fn open_without_links(path: &CStr) -> Result<RawFd> {
    let mut how: libc::open_how = zeroed();
    how.flags = (libc::O_PATH | libc::O_CLOEXEC) as u64;
    how.resolve = libc::RESOLVE_NO_SYMLINKS | libc::RESOLVE_NO_MAGICLINKS;
    // SAFETY: path and how live through the call, and the size is that of how.
    let result = unsafe {
        libc::syscall(
            libc::SYS_openat2,
            libc::AT_FDCWD,
            path.as_ptr(),
            &raw const how,
            size_of::<libc::open_how>(),
        )
    };
    Ok(check(result)? as RawFd)
}

/// Opens a path with `O_PATH`.
pub(crate) fn open_path(path: &CStr) -> Result<RawFd> {
    // SAFETY: path is a C string.
    check_int(unsafe { libc::open(path.as_ptr(), libc::O_PATH | libc::O_CLOEXEC) })
}

/// Returns the type bits of an open file.
pub(crate) fn file_type(fd: RawFd) -> Result<u32> {
    let mut stat: libc::stat = zeroed();
    // SAFETY: stat is a valid place for the answer.
    check_int(unsafe { libc::fstat(fd, &raw mut stat) })?;
    Ok(stat.st_mode & libc::S_IFMT)
}

/// Returns a detached copy of the mount at an open path, with all mounts below.
pub(crate) fn clone_tree(fd: RawFd) -> Result<RawFd> {
    const OPEN_TREE_CLONE: c_uint = 1;
    let flags = OPEN_TREE_CLONE
        | libc::O_CLOEXEC as c_uint
        | libc::AT_EMPTY_PATH as c_uint
        | libc::AT_RECURSIVE as c_uint;
    // SAFETY: the path is an empty C string.
    let result = unsafe { libc::syscall(libc::SYS_open_tree, fd, c"".as_ptr(), flags) };
    Ok(check(result)? as RawFd)
}

/// Which mounts a change of flags applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Only this mount.
    One,
    /// This mount and all mounts below.
    Tree,
}

pub(crate) fn set_mount_flags(fd: RawFd, flags: u64, reach: Reach) -> Result<()> {
    #[repr(C)]
    struct MountAttr {
        set: u64,
        clear: u64,
        propagation: u64,
        user_namespace: u64,
    }
    let attr = MountAttr { set: flags, clear: 0, propagation: 0, user_namespace: 0 };
    let at = match reach {
        Reach::One => libc::AT_EMPTY_PATH,
        Reach::Tree => libc::AT_EMPTY_PATH | libc::AT_RECURSIVE,
    };
    // SAFETY: the path is an empty C string, attr lives through the call and has the size given.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            fd,
            c"".as_ptr(),
            at,
            &raw const attr,
            size_of::<MountAttr>(),
        )
    };
    check(result).map(drop)
}

/// Attaches a detached mount at a path.
pub(crate) fn attach_tree(fd: RawFd, target: &CStr) -> Result<()> {
    const MOVE_MOUNT_F_EMPTY_PATH: c_uint = 4;
    // SAFETY: both paths are C strings.
    let result = unsafe {
        libc::syscall(
            libc::SYS_move_mount,
            fd,
            c"".as_ptr(),
            libc::AT_FDCWD,
            target.as_ptr(),
            MOVE_MOUNT_F_EMPTY_PATH,
        )
    };
    check(result).map(drop)
}

/// Mounts a file system without a source.
pub(crate) fn mount(kind: &CStr, target: &CStr, flags: c_ulong, options: &CStr) -> Result<()> {
    // SAFETY: all pointers are C strings that live through the call.
    let result = unsafe {
        libc::mount(kind.as_ptr(), target.as_ptr(), kind.as_ptr(), flags, options.as_ptr().cast())
    };
    check_int(result).map(drop)
}

/// Stops propagation between the mounts of this namespace and the namespace that they were copied
/// from.
pub(crate) fn make_mounts_private() -> Result<()> {
    // SAFETY: the kernel ignores the null pointers when it changes propagation.
    let result = unsafe {
        libc::mount(
            ptr::null(),
            c"/".as_ptr(),
            ptr::null(),
            libc::MS_REC | libc::MS_PRIVATE,
            ptr::null(),
        )
    };
    check_int(result).map(drop)
}

/// Makes the working directory the root and detaches the old root.
pub(crate) fn enter_root() -> Result<()> {
    // SAFETY: all paths are C strings. Old and new root are the same directory: the old one then
    // lies on top of the new one and is detached at once.
    unsafe {
        check(libc::syscall(libc::SYS_pivot_root, c".".as_ptr(), c".".as_ptr()))?;
        check_int(libc::umount2(c".".as_ptr(), libc::MNT_DETACH))?;
        check_int(libc::chdir(c"/".as_ptr()))?;
    }
    Ok(())
}

pub(crate) fn change_directory(path: &CStr) -> Result<()> {
    // SAFETY: path is a C string.
    check_int(unsafe { libc::chdir(path.as_ptr()) }).map(drop)
}

pub(crate) fn make_folder(path: &CStr, mode: libc::mode_t) -> Result<()> {
    // SAFETY: path is a C string.
    check_int(unsafe { libc::mkdir(path.as_ptr(), mode) }).map(drop)
}

pub(crate) fn make_link(path: &CStr, target: &CStr) -> Result<()> {
    // SAFETY: both are C strings.
    check_int(unsafe { libc::symlink(target.as_ptr(), path.as_ptr()) }).map(drop)
}

/// Returns the type bits of an entry in a folder, without following a link.
pub(crate) fn file_type_in(folder: RawFd, name: &CStr) -> Result<u32> {
    let mut stat: libc::stat = zeroed();
    // SAFETY: name is a C string, and stat a valid place for the answer.
    check_int(unsafe {
        libc::fstatat(folder, name.as_ptr(), &raw mut stat, libc::AT_SYMLINK_NOFOLLOW)
    })?;
    Ok(stat.st_mode & libc::S_IFMT)
}

/// Returns whether a link in a folder has this target.
pub(crate) fn leads_to(folder: RawFd, name: &CStr, target: &CStr) -> bool {
    let mut buffer = [0_u8; libc::PATH_MAX as usize];
    // SAFETY: name is a C string, and buffer is valid for its length.
    let length = unsafe {
        libc::readlinkat(folder, name.as_ptr(), buffer.as_mut_ptr().cast(), buffer.len())
    };
    usize::try_from(length).ok().and_then(|length| buffer.get(..length)) == Some(target.to_bytes())
}

pub(crate) fn make_link_in(folder: RawFd, name: &CStr, target: &CStr) -> Result<()> {
    // SAFETY: both are C strings.
    check_int(unsafe { libc::symlinkat(target.as_ptr(), folder, name.as_ptr()) }).map(drop)
}

/// Renames an entry in a folder to a name that does not exist yet.
pub(crate) fn rename_in(folder: RawFd, name: &CStr, new: &CStr) -> Result<()> {
    let rename = |flags: c_uint| {
        // SAFETY: both are C strings.
        let result = unsafe {
            libc::syscall(libc::SYS_renameat2, folder, name.as_ptr(), folder, new.as_ptr(), flags)
        };
        check(result).map(drop)
    };
    match rename(libc::RENAME_NOREPLACE) {
        // Some network file systems do not support the flag that prevents overwriting.
        Err(Errno(libc::EINVAL)) => rename(0),
        result => result,
    }
}

/// Gives the owner all rights on a folder. Does nothing to folders of other users.
pub(crate) fn open_to_owner(folder: &CStr) {
    let mut stat: libc::stat = zeroed();
    // SAFETY: folder is a C string, and stat a valid place for the answer.
    let known = unsafe { libc::lstat(folder.as_ptr(), &raw mut stat) } == 0;
    let is_closed = stat.st_mode & libc::S_IRWXU != libc::S_IRWXU;
    if known && stat.st_mode & libc::S_IFMT == libc::S_IFDIR && is_closed {
        // SAFETY: folder is a C string.
        unsafe { libc::chmod(folder.as_ptr(), stat.st_mode & 0o7777 | libc::S_IRWXU) };
    }
}

/// Writes a file; `flags` decide whether the file is created or must exist.
pub(crate) fn write_file(path: &CStr, flags: c_int, bytes: &[u8]) -> Result<()> {
    // SAFETY: path is a C string; bytes is valid for its length; the descriptor is our own.
    unsafe {
        let fd = check_int(libc::open(
            path.as_ptr(),
            libc::O_WRONLY | libc::O_CLOEXEC | flags,
            0o444 as c_uint,
        ))?;
        let written = libc::write(fd, bytes.as_ptr().cast(), bytes.len());
        let result = if written == bytes.len() as isize { Ok(()) } else { Err(errno()) };
        libc::close(fd);
        result
    }
}

/// Which process the call returned in.
pub(crate) enum Forked {
    Child,
    Parent { pidfd: OwnedFd },
}

/// Copies this process into new namespaces.
///
/// # Safety
/// The child is a copy of one thread of a process that may have more: until it ends or executes
/// another program it must not allocate, lock, or unwind.
pub(crate) unsafe fn fork_into(namespaces: c_int) -> Result<Forked> {
    let mut pidfd: c_int = -1;
    let flags = namespaces | libc::CLONE_PIDFD | libc::SIGCHLD;
    // SAFETY: without CLONE_VM and with a null stack this is a fork: the child goes on with a copy
    // of this stack. The third argument is where the descriptor goes on every architecture.
    let result =
        unsafe { libc::syscall(libc::SYS_clone, c_long::from(flags), 0, &raw mut pidfd, 0, 0) };
    match check(result)? {
        0 => Ok(Forked::Child),
        // SAFETY: the kernel has just made this descriptor and nobody else owns it.
        _ => Ok(Forked::Parent { pidfd: unsafe { OwnedFd::from_raw_fd(pidfd) } }),
    }
}

/// Starts `entry` in a process that shares the memory of this one until it executes a program or
/// ends; this process waits until then.
///
/// # Safety
/// `entry` must be sound when called with `argument` on another stack while this thread stands
/// still, and `stack` must be unused memory that is large enough for it.
pub(crate) unsafe fn start_sharing_memory(
    entry: extern "C" fn(*mut libc::c_void) -> c_int,
    stack: &mut [u8],
    argument: *mut libc::c_void,
) -> Result<libc::pid_t> {
    let top = stack.as_mut_ptr_range().end as usize & !15;
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    // SAFETY: the stack grows down from its aligned end; the rest is the caller's promise.
    check_int(unsafe { libc::clone(entry, top as *mut libc::c_void, flags, argument) })
}

/// Replaces this process by a program; returns only on failure.
///
/// # Safety
/// Both lists must end with a null pointer and hold pointers to C strings.
pub(crate) unsafe fn execute(
    program: &CStr,
    arguments: *const *const libc::c_char,
    environment: *const *const libc::c_char,
) -> Errno {
    // SAFETY: the caller's promise.
    unsafe { libc::execve(program.as_ptr(), arguments, environment) };
    errno()
}

/// Ends this process without running exit handlers.
pub(crate) fn exit(code: c_int) -> ! {
    // SAFETY: _exit is always sound.
    unsafe { libc::_exit(code) }
}

pub(crate) fn prctl(option: c_int, value: c_ulong) -> Result<()> {
    // SAFETY: none of the options that are used takes a pointer.
    check_int(unsafe { libc::prctl(option, value, 0, 0, 0) }).map(drop)
}

/// Drops all capabilities, including those that a program could regain.
pub(crate) fn drop_capabilities() -> Result<()> {
    #[repr(C)]
    struct Header {
        version: u32,
        pid: c_int,
    }
    const VERSION_3: u32 = 0x2008_0522;
    const NO_ROOT_AND_LOCKED: c_ulong = 0b10_1111;
    let last = 63;
    for capability in 0..=last {
        match prctl(libc::PR_CAPBSET_DROP, capability) {
            Err(Errno(libc::EINVAL)) => break,
            result => result?,
        }
    }
    prctl(libc::PR_SET_SECUREBITS, NO_ROOT_AND_LOCKED)?;
    let header = Header { version: VERSION_3, pid: 0 };
    let none = [0_u32; 6];
    // SAFETY: version 3 reads two sets of three words.
    let result = unsafe { libc::syscall(libc::SYS_capset, &raw const header, none.as_ptr()) };
    check(result).map(drop)
}

pub(crate) fn set_limit(resource: c_uint, soft: u64, hard: u64) -> Result<()> {
    let mut limit: libc::rlimit64 = zeroed();
    // SAFETY: limit is a valid place for the answer.
    check_int(unsafe { libc::getrlimit64(resource, &raw mut limit) })?;
    // Limits can only be lowered, so a lower existing limit stays.
    let hard = hard.min(limit.rlim_max);
    let limit = libc::rlimit64 { rlim_cur: soft.min(hard), rlim_max: hard };
    // SAFETY: limit lives through the call.
    check_int(unsafe { libc::setrlimit64(resource, &raw const limit) }).map(drop)
}

pub(crate) fn set_hostname(name: &CStr) -> Result<()> {
    // SAFETY: name is valid for the length of the string.
    check_int(unsafe { libc::sethostname(name.as_ptr(), name.count_bytes()) }).map(drop)
}

/// Brings up the loopback interface and listens on one of its ports.
pub(crate) fn listen_on_loopback(port: u16) -> Result<RawFd> {
    // SAFETY: all structures live through their calls and have the sizes given; the name of the
    // interface fits and is terminated because the structure was zeroed.
    unsafe {
        let fd = check_int(libc::socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0))?;
        let mut request: libc::ifreq = zeroed();
        request.ifr_name[0] = b'l' as libc::c_char;
        request.ifr_name[1] = b'o' as libc::c_char;
        request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
        check_int(libc::ioctl(fd, libc::SIOCSIFFLAGS, &raw const request))?;
        let mut address: libc::sockaddr_in = zeroed();
        address.sin_family = libc::AF_INET as libc::sa_family_t;
        address.sin_port = port.to_be();
        address.sin_addr.s_addr = u32::from_ne_bytes([127, 0, 0, 1]);
        let length = size_of::<libc::sockaddr_in>() as libc::socklen_t;
        check_int(libc::bind(fd, (&raw const address).cast(), length))?;
        check_int(libc::listen(fd, 64))?;
        Ok(fd)
    }
}

/// Creates a pair of connected sockets that preserve message boundaries.
pub(crate) fn message_pair() -> Result<(OwnedFd, OwnedFd)> {
    let mut pair = [-1; 2];
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
    // SAFETY: pair has room for two descriptors.
    check_int(unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, pair.as_mut_ptr()) })?;
    // SAFETY: the kernel has just made both and nobody else owns them.
    Ok(unsafe { (OwnedFd::from_raw_fd(pair[0]), OwnedFd::from_raw_fd(pair[1])) })
}

/// Space for one descriptor in a control message.
#[repr(C, align(8))]
struct ControlBuffer([u8; 32]);

/// Sends a message, optionally with a descriptor.
pub(crate) fn send(socket: RawFd, bytes: &[u8], descriptor: Option<RawFd>) -> Result<()> {
    let mut control = ControlBuffer([0; 32]);
    let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let mut message: libc::msghdr = zeroed();
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    // SAFETY: the buffer is aligned and holds one control message with one descriptor; message and
    // all that it points to live through the call.
    unsafe {
        if let Some(descriptor) = descriptor {
            message.msg_control = control.0.as_mut_ptr().cast();
            message.msg_controllen = libc::CMSG_SPACE(size_of::<RawFd>() as c_uint) as _;
            let header = libc::CMSG_FIRSTHDR(&raw const message);
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = libc::SCM_RIGHTS;
            (*header).cmsg_len = libc::CMSG_LEN(size_of::<RawFd>() as c_uint) as _;
            ptr::write_unaligned(libc::CMSG_DATA(header).cast::<RawFd>(), descriptor);
        }
        let result = libc::sendmsg(socket, &raw const message, libc::MSG_NOSIGNAL);
        check(result as c_long).map(drop)
    }
}

/// Receives a message and its descriptor, if any; zero bytes mean that the other side is closed.
pub(crate) fn receive(socket: RawFd, bytes: &mut [u8]) -> Result<(usize, Option<OwnedFd>)> {
    let mut control = ControlBuffer([0; 32]);
    let mut part = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let mut message: libc::msghdr = zeroed();
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = mem::size_of_val(&control.0) as _;
    // SAFETY: message and all that it points to live through the call; the header that the kernel
    // filled in is looked at only if there is one, and its descriptor belongs to nobody else.
    unsafe {
        let result = libc::recvmsg(socket, &raw mut message, libc::MSG_CMSG_CLOEXEC);
        let length = check(result as c_long)?;
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        let descriptor = (!header.is_null()
            && (*header).cmsg_level == libc::SOL_SOCKET
            && (*header).cmsg_type == libc::SCM_RIGHTS)
            .then(|| ptr::read_unaligned(libc::CMSG_DATA(header).cast::<RawFd>()))
            .map(|fd| OwnedFd::from_raw_fd(fd));
        Ok((length as usize, descriptor))
    }
}

/// A descriptor to wait for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    pub(crate) fd: RawFd,
    pub(crate) for_writing: bool,
    /// Whether data can be read or written, or the other side is closed.
    pub(crate) ready: bool,
    /// Whether the other side is closed and nothing is left to read.
    pub(crate) gone: bool,
}

impl Wait {
    pub(crate) fn read(fd: RawFd) -> Self {
        Self { fd, for_writing: false, ready: false, gone: false }
    }

    pub(crate) fn write(fd: RawFd) -> Self {
        Self { for_writing: true, ..Self::read(fd) }
    }
}

/// Waits until at least one of up to eight descriptors is ready; `None` waits forever.
pub(crate) fn poll(waits: &mut [Wait], milliseconds: Option<i32>) -> Result<()> {
    let mut set = [libc::pollfd { fd: -1, events: 0, revents: 0 }; 8];
    let set = &mut set[..waits.len()];
    for (entry, wait) in set.iter_mut().zip(waits.iter()) {
        entry.fd = wait.fd;
        entry.events = if wait.for_writing { libc::POLLOUT } else { libc::POLLIN };
    }
    let timeout = milliseconds.unwrap_or(-1);
    // SAFETY: set is valid for its length.
    match check_int(unsafe { libc::poll(set.as_mut_ptr(), set.len() as _, timeout) }) {
        Err(Errno(libc::EINTR)) => {}
        result => drop(result?),
    }
    for (entry, wait) in set.iter().zip(waits.iter_mut()) {
        wait.ready = entry.revents != 0;
        wait.gone = wait.ready && entry.revents & (libc::POLLIN | libc::POLLOUT) == 0;
    }
    Ok(())
}

/// Makes reads and writes fail instead of blocking.
pub(crate) fn do_not_wait(fd: BorrowedFd<'_>) -> Result<()> {
    // SAFETY: fcntl takes no pointers here.
    unsafe {
        let flags = check_int(libc::fcntl(fd.as_raw_fd(), libc::F_GETFL))?;
        check_int(libc::fcntl(fd.as_raw_fd(), libc::F_SETFL, flags | libc::O_NONBLOCK)).map(drop)
    }
}

/// Sends a signal to the process of a pidfd.
pub(crate) fn signal(pidfd: BorrowedFd<'_>, signal: c_int) -> Result<()> {
    let fd = pidfd.as_raw_fd();
    // SAFETY: a null pointer asks for the default information.
    let result =
        unsafe { libc::syscall(libc::SYS_pidfd_send_signal, fd, signal, ptr::null::<()>(), 0) };
    check(result).map(drop)
}

/// Waits for the end of the child process of a pidfd and reaps it.
pub(crate) fn wait_for(pidfd: BorrowedFd<'_>) -> Result<()> {
    let mut information: libc::siginfo_t = zeroed();
    loop {
        // SAFETY: information is a valid place for the answer.
        let result = unsafe {
            libc::waitid(
                libc::P_PIDFD,
                pidfd.as_raw_fd() as libc::id_t,
                &raw mut information,
                libc::WEXITED,
            )
        };
        match check_int(result) {
            Err(Errno(libc::EINTR)) => {}
            result => return result.map(drop),
        }
    }
}

/// Reaps a child that has ended and returns its status, if there is one.
pub(crate) fn reap() -> Option<(libc::pid_t, c_int)> {
    let mut status = 0;
    // SAFETY: status is a valid place for the answer.
    let pid = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) };
    (pid > 0).then_some((pid, status))
}

/// Signals every process of this namespace except this one.
pub(crate) fn signal_everyone(signal: c_int) {
    // SAFETY: kill takes no pointer. An error means that nobody is left.
    unsafe { libc::kill(-1, signal) };
}

/// Kills every process of this namespace except this one, and waits until they have ended.
pub(crate) fn kill_everyone() {
    // SAFETY: no pointers are passed but that to nowhere. Both fail once nobody is left.
    unsafe {
        loop {
            let is_alone = libc::kill(-1, libc::SIGKILL) < 0;
            let nobody =
                libc::waitpid(-1, ptr::null_mut(), libc::__WALL) < 0 && errno().0 != libc::EINTR;
            if nobody && is_alone {
                return;
            }
        }
    }
}

/// Returns a descriptor that becomes readable when a child ends. The signal stays blocked.
pub(crate) fn child_signals() -> Result<RawFd> {
    // SAFETY: set is initialised by the first call before it is read.
    unsafe {
        let mut set: libc::sigset_t = zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGCHLD);
        check_int(libc::sigprocmask(libc::SIG_SETMASK, &raw const set, ptr::null_mut()))?;
        check_int(libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK))
    }
}

/// Empties a signal descriptor, so that it can become ready again.
pub(crate) fn drain(fd: RawFd) {
    let mut buffer = [0_u8; 128];
    // SAFETY: buffer is valid for its length.
    while unsafe { libc::read(fd, buffer.as_mut_ptr().cast(), buffer.len()) } > 0 {}
}

/// Blocks all signals, so that no handler of the old process runs in the new one.
pub(crate) fn block_signals() -> Result<libc::sigset_t> {
    // SAFETY: both sets are valid places.
    unsafe {
        let mut all: libc::sigset_t = zeroed();
        let mut before: libc::sigset_t = zeroed();
        libc::sigfillset(&raw mut all);
        let result = libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        if result == 0 { Ok(before) } else { Err(Errno(result)) }
    }
}

/// Blocks the signals with which a user or the system ends a program, for this thread and the
/// threads that it starts. Returns the old mask and a descriptor on which the signals arrive.
/// Signals that the program handles itself are not blocked: the descriptor would take them away
/// from the handler.
pub(crate) fn hold_interruptions() -> Result<(libc::sigset_t, OwnedFd)> {
    // SAFETY: both sets are valid places, initialised before they are read; the descriptor is new.
    unsafe {
        let mut wanted: libc::sigset_t = zeroed();
        let mut before: libc::sigset_t = zeroed();
        libc::sigemptyset(&raw mut wanted);
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            if !is_handled(signal) {
                libc::sigaddset(&raw mut wanted, signal);
            }
        }
        let result = libc::pthread_sigmask(libc::SIG_BLOCK, &raw const wanted, &raw mut before);
        if result != 0 {
            return Err(Errno(result));
        }
        let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
        let fd = check_int(libc::signalfd(-1, &raw const wanted, flags))?;
        Ok((before, OwnedFd::from_raw_fd(fd)))
    }
}

/// Returns whether this process has its own handler for a signal.
fn is_handled(signal: c_int) -> bool {
    // SAFETY: the old action is a valid place, and nothing is changed without a new one.
    unsafe {
        let mut action: libc::sigaction = zeroed();
        libc::sigaction(signal, ptr::null(), &raw mut action) == 0
            && ![libc::SIG_DFL, libc::SIG_IGN].contains(&action.sa_sigaction)
    }
}

pub(crate) fn restore_signals(before: &libc::sigset_t) {
    // SAFETY: before was filled in by `block_signals`.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before, ptr::null_mut()) };
}

/// Resets all signal handlers to the default.
pub(crate) fn reset_handlers() {
    for signal in 1..=64 {
        // SAFETY: SIG_DFL is a valid handler for every signal; those that cannot be set are
        // refused.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

/// Resets all signal handlers to the default and unblocks all signals.
pub(crate) fn reset_signals() {
    reset_handlers();
    // SAFETY: none is initialised by the first call before it is read.
    unsafe {
        let mut none: libc::sigset_t = zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut());
    }
}

/// Starts a new session, without a terminal.
pub(crate) fn new_session() -> Result<()> {
    // SAFETY: setsid takes nothing.
    check_int(unsafe { libc::setsid() }).map(drop)
}

/// Creates a terminal of this size. Returns the controlling end and the program's end.
pub(crate) fn open_terminal(rows: u16, columns: u16) -> Result<(OwnedFd, OwnedFd)> {
    let flags = libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC;
    let size = libc::winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    let lock: c_int = 0;
    // SAFETY: the pointers are valid for each call; both descriptors are new.
    unsafe {
        let ours = OwnedFd::from_raw_fd(check_int(libc::posix_openpt(flags))?);
        let fd = ours.as_raw_fd();
        check_int(libc::ioctl(fd, libc::TIOCSPTLCK, &raw const lock))?;
        check_int(libc::ioctl(fd, libc::TIOCSWINSZ, &raw const size))?;
        let theirs = check_int(libc::ioctl(fd, libc::TIOCGPTPEER, flags))?;
        Ok((ours, OwnedFd::from_raw_fd(theirs)))
    }
}

/// Makes the terminal on standard input the controlling terminal of the session.
pub(crate) fn take_terminal() -> Result<()> {
    // SAFETY: the call takes a number.
    check_int(unsafe { libc::ioctl(0, libc::TIOCSCTTY, 0) }).map(drop)
}

/// Returns the signal that arrived first; the others are dropped.
pub(crate) fn first_signal(arrivals: RawFd) -> Option<c_int> {
    // SAFETY: the place is valid for its size, and read only if all of it was written.
    unsafe {
        let mut about: libc::signalfd_siginfo = zeroed();
        let size = size_of::<libc::signalfd_siginfo>();
        let read = libc::read(arrivals, (&raw mut about).cast(), size);
        let is_whole = usize::try_from(read).is_ok_and(|read| read == size);
        drain(arrivals);
        is_whole.then_some(about.ssi_signo as c_int)
    }
}

/// Makes `to` a copy of `from` that stays open when a program is executed.
pub(crate) fn duplicate(from: RawFd, to: RawFd) -> Result<()> {
    // SAFETY: dup2 takes no pointers.
    check_int(unsafe { libc::dup2(from, to) }).map(drop)
}

/// Closes all descriptors from `first` on.
pub(crate) fn close_from(first: RawFd) -> Result<()> {
    // SAFETY: close_range takes no pointers. Only called in a process that uses none of them.
    let result = unsafe { libc::syscall(libc::SYS_close_range, first, c_uint::MAX, 0) };
    check(result).map(drop)
}

pub(crate) fn close(fd: RawFd) {
    // SAFETY: the caller made the descriptor and does not use it again.
    unsafe { libc::close(fd) };
}

/// Marks all descriptors above standard error to be closed when a program is executed.
pub(crate) fn close_on_execute() -> Result<()> {
    const FIRST: c_uint = 3;
    // SAFETY: close_range takes no pointers; with this flag nothing is closed yet.
    let result = unsafe {
        libc::syscall(libc::SYS_close_range, FIRST, c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC)
    };
    check(result).map(drop)
}

/// Returns the Landlock version of the kernel.
pub(crate) fn landlock_version() -> Result<u32> {
    const VERSION: c_uint = 1;
    // SAFETY: with this flag the kernel reads nothing.
    let result = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, ptr::null::<()>(), 0_usize, VERSION)
    };
    Ok(check(result)? as u32)
}

/// The rights that a Landlock ruleset controls.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Handled {
    pub(crate) files: u64,
    pub(crate) network: u64,
    pub(crate) scopes: u64,
}

pub(crate) fn create_ruleset(handled: &Handled, size: usize) -> Result<OwnedFd> {
    // SAFETY: handled is at least as long as size, which the caller takes from the version.
    owned(unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            &raw const *handled,
            size.min(size_of::<Handled>()),
            0,
        )
    })
}

/// Allows rights on a file, or on a folder and everything below.
pub(crate) fn allow_path(ruleset: RawFd, path: RawFd, rights: u64) -> Result<()> {
    #[repr(C, packed)]
    struct PathBeneath {
        rights: u64,
        parent: RawFd,
    }
    const PATH_BENEATH: c_int = 1;
    let rule = PathBeneath { rights, parent: path };
    // SAFETY: rule lives through the call and has the layout that the kernel reads.
    let result = unsafe {
        libc::syscall(libc::SYS_landlock_add_rule, ruleset, PATH_BENEATH, &raw const rule, 0)
    };
    check(result).map(drop)
}

/// Allows rights on a TCP port.
pub(crate) fn allow_port(ruleset: RawFd, port: u16, rights: u64) -> Result<()> {
    #[repr(C)]
    struct NetPort {
        rights: u64,
        port: u64,
    }
    const NET_PORT: c_int = 2;
    let rule = NetPort { rights, port: u64::from(port) };
    // SAFETY: rule lives through the call and has the layout that the kernel reads.
    let result = unsafe {
        libc::syscall(libc::SYS_landlock_add_rule, ruleset, NET_PORT, &raw const rule, 0)
    };
    check(result).map(drop)
}

pub(crate) fn restrict_self(ruleset: RawFd) -> Result<()> {
    // SAFETY: the call takes no pointers.
    check(unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset, 0) }).map(drop)
}

/// Installs a system call filter. Returns a listener descriptor if one was requested.
pub(crate) fn install_filter(
    program: &[libc::sock_filter],
    listener: bool,
) -> Result<Option<RawFd>> {
    let program =
        libc::sock_fprog { len: program.len() as u16, filter: program.as_ptr().cast_mut() };
    let flags = if listener { libc::SECCOMP_FILTER_FLAG_NEW_LISTENER } else { 0 };
    // SAFETY: program points to as many instructions as it says.
    let result = unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const program)
    };
    let fd = check(result)?;
    Ok(listener.then_some(fd as RawFd))
}

/// Receives the next call that waits for the watcher's decision.
pub(crate) fn next_notification(listener: RawFd) -> Result<libc::seccomp_notif> {
    let mut notification: libc::seccomp_notif = zeroed();
    // SAFETY: notification is a valid and zeroed place, as the kernel demands.
    let result =
        unsafe { libc::ioctl(listener, libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut notification) };
    check_int(result)?;
    Ok(notification)
}

/// Lets a waiting call continue normally.
pub(crate) fn let_continue(listener: RawFd, id: u64) -> Result<()> {
    let mut answer: libc::seccomp_notif_resp = zeroed();
    answer.id = id;
    answer.flags = libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32;
    // SAFETY: answer lives through the call.
    let result = unsafe { libc::ioctl(listener, libc::SECCOMP_IOCTL_NOTIF_SEND, &raw mut answer) };
    check_int(result).map(drop)
}

/// Makes a waiting call fail with `errno`.
pub(crate) fn refuse(listener: RawFd, id: u64, errno: c_int) -> Result<()> {
    let mut answer: libc::seccomp_notif_resp = zeroed();
    answer.id = id;
    answer.error = -errno;
    // SAFETY: answer lives through the call.
    let result = unsafe { libc::ioctl(listener, libc::SECCOMP_IOCTL_NOTIF_SEND, &raw mut answer) };
    check_int(result).map(drop)
}

/// Reads memory of another process; returns the number of bytes read.
pub(crate) fn read_memory(pid: libc::pid_t, address: u64, buffer: &mut [u8]) -> Result<usize> {
    let local = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let remote = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: buffer.len() };
    // SAFETY: local describes buffer; remote is an address of the other process, which the kernel
    // checks.
    let result =
        unsafe { libc::process_vm_readv(pid, &raw const local, 1, &raw const remote, 1, 0) };
    Ok(check(result as c_long)? as usize)
}

/// Returns the effective user and group of this process.
pub(crate) fn identity() -> (libc::uid_t, libc::gid_t) {
    // SAFETY: both calls take nothing and cannot fail.
    unsafe { (libc::geteuid(), libc::getegid()) }
}

/// Returns a C structure with all bytes zero.
fn zeroed<T: Plain>() -> T {
    // SAFETY: every type that is marked as plain is valid with all bytes zero.
    unsafe { mem::zeroed() }
}

/// Types that are valid with all bytes zero.
trait Plain {}
impl Plain for libc::open_how {}
impl Plain for libc::stat {}
impl Plain for libc::rlimit64 {}
impl Plain for libc::ifreq {}
impl Plain for libc::sockaddr_in {}
impl Plain for libc::msghdr {}
impl Plain for libc::siginfo_t {}
impl Plain for libc::signalfd_siginfo {}
impl Plain for libc::sigset_t {}
impl Plain for libc::sigaction {}
impl Plain for libc::seccomp_notif {}
impl Plain for libc::seccomp_notif_resp {}
