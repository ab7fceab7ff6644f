//! Wraps system calls for sockets, and for waiting on descriptors.

use std::{
    mem,
    os::fd::{FromRawFd as _, OwnedFd, RawFd},
    ptr,
};

use libc::{c_long, c_uint};

use super::{Errno, Result, check, check_int, zeroed};

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
    // SAFETY: message and all that it points to live through the call; the header is read only if
    // the kernel filled one in, and nothing else owns its descriptor.
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
pub(crate) struct PollEntry {
    pub(crate) fd: RawFd,
    pub(crate) for_writing: bool,
    /// Whether data can be read or written, or the other side is closed.
    pub(crate) is_ready: bool,
    /// Whether the other side is closed and nothing is left to read.
    pub(crate) is_closed: bool,
}

impl PollEntry {
    pub(crate) fn read(fd: RawFd) -> Self {
        Self { fd, for_writing: false, is_ready: false, is_closed: false }
    }

    pub(crate) fn write(fd: RawFd) -> Self {
        Self { for_writing: true, ..Self::read(fd) }
    }
}

/// Waits until at least one of up to eight descriptors is ready; `None` waits forever.
pub(crate) fn poll(entries: &mut [PollEntry], milliseconds: Option<i32>) -> Result<()> {
    let mut set = [libc::pollfd { fd: -1, events: 0, revents: 0 }; 8];
    let set = &mut set[..entries.len()];
    for (entry, poll_entry) in set.iter_mut().zip(entries.iter()) {
        entry.fd = poll_entry.fd;
        entry.events = if poll_entry.for_writing { libc::POLLOUT } else { libc::POLLIN };
    }
    let timeout = milliseconds.unwrap_or(-1);
    // SAFETY: set is valid for its length.
    match check_int(unsafe { libc::poll(set.as_mut_ptr(), set.len() as _, timeout) }) {
        Err(Errno(libc::EINTR)) => {}
        result => drop(result?),
    }
    for (entry, poll_entry) in set.iter().zip(entries.iter_mut()) {
        poll_entry.is_ready = entry.revents != 0;
        poll_entry.is_closed =
            poll_entry.is_ready && entry.revents & (libc::POLLIN | libc::POLLOUT) == 0;
    }
    Ok(())
}
