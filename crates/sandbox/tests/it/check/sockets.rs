//! Checks sockets of every family.

use std::{
    io::Read as _,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket},
    os::{
        linux::net::SocketAddrExt as _,
        unix::net::{SocketAddr as UnixAddress, UnixDatagram, UnixStream},
    },
    time::Duration,
};

use super::{Check, calls, check, done, is_secret};
use crate::support::Setup;

const GROUP: &str = "sockets";
const HOSTS: &str = "sockets beside the proxy";
const FAMILY: &str = "not every kernel has this family";
const RAW: &str = "only root makes raw sockets";
const REPLY_TIMEOUT: Duration = Duration::from_millis(500);

pub(super) const CHECKS: &[Check] = &[
    check("connect to a socket file", GROUP, |at| {
        done(UnixStream::connect(at.read.join("stream")))
    }),
    check("send to a socket file", GROUP, send_to_file),
    check("send to a socket file through a connected pair", GROUP, |at| {
        done(calls::send_through_pair(libc::SOCK_DGRAM, &at.read.join("datagram")))
    }),
    check("send to a socket file through a raw connected pair", GROUP, |at| {
        done(calls::send_through_pair(libc::SOCK_RAW, &at.read.join("datagram")))
    }),
    check("connect to an abstract socket", GROUP, abstract_socket),
    check("reach a server on the loopback interface", GROUP, tcp),
    check("reach a server over IPv6", GROUP, tcp6).depends("not every machine has IPv6"),
    check("reach a server over UDP", GROUP, udp),
    check("listen on a port", GROUP, |_| done(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))),
    check("make a netlink socket", GROUP, netlink),
    check("make a socket of the key store of IPsec", GROUP, |_| {
        done(calls::socket(libc::AF_KEY, libc::SOCK_RAW, 2))
    })
    .depends(FAMILY),
    check("make a packet socket", GROUP, |_| {
        done(calls::socket(libc::AF_PACKET, libc::SOCK_RAW, 0))
    })
    .root(RAW),
    check("make a raw socket", GROUP, |_| {
        done(calls::socket(libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_ICMP))
    })
    .root(RAW),
    check("make a socket for pings", GROUP, |_| {
        done(calls::socket(libc::AF_INET, libc::SOCK_DGRAM, libc::IPPROTO_ICMP))
    })
    .depends("not every group may ping"),
    check("make a socket to the virtual machine", GROUP, |_| {
        done(calls::socket(libc::AF_VSOCK, libc::SOCK_STREAM, 0))
    })
    .depends(FAMILY),
    check("make a socket of the kernel's ciphers", GROUP, |_| {
        done(calls::socket(libc::AF_ALG, libc::SOCK_SEQPACKET, 0))
    })
    .depends(FAMILY),
    check("make a Bluetooth socket", GROUP, |_| {
        done(calls::socket(libc::AF_BLUETOOTH, libc::SOCK_RAW, 1))
    })
    .depends(FAMILY),
];

pub(super) const WITH_HOSTS: &[Check] = &[
    check("beside the proxy: reach a server on the loopback interface", HOSTS, tcp),
    check("beside the proxy: reach a server over IPv6", HOSTS, tcp6)
        .depends("not every machine has IPv6"),
    check("beside the proxy: reach a server over UDP", HOSTS, udp),
    check("beside the proxy: connect to a socket file", HOSTS, |at| {
        done(UnixStream::connect(at.read.join("stream")))
    }),
    check("beside the proxy: send to a socket file", HOSTS, send_to_file),
    check("beside the proxy: connect to an abstract socket", HOSTS, abstract_socket),
    check("beside the proxy: make a netlink socket", HOSTS, netlink),
    check("beside the proxy: listen on a port", HOSTS, |_| {
        done(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))
    }),
    check("beside the proxy: make a raw socket", HOSTS, |_| {
        done(calls::socket(libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_ICMP))
    })
    .root(RAW),
];

fn tcp(at: &Setup) -> Result<(), String> {
    greeting(SocketAddr::from((Ipv4Addr::LOCALHOST, at.tcp)))
}

fn tcp6(at: &Setup) -> Result<(), String> {
    greeting(SocketAddr::from((Ipv6Addr::LOCALHOST, at.tcp6.ok_or("there is no IPv6")?)))
}

fn greeting(address: SocketAddr) -> Result<(), String> {
    let stream = TcpStream::connect_timeout(&address, REPLY_TIMEOUT);
    let mut bytes = vec![0; crate::support::SECRET.len()];
    is_secret(stream.and_then(|mut stream| stream.read_exact(&mut bytes)).map(|()| bytes))
}

fn udp(at: &Setup) -> Result<(), String> {
    let ask = || {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        socket.set_read_timeout(Some(REPLY_TIMEOUT))?;
        socket.send_to(b"x", (Ipv4Addr::LOCALHOST, at.udp))?;
        let mut buffer = vec![0; 64];
        let length = socket.recv(&mut buffer)?;
        buffer.truncate(length);
        Ok(buffer)
    };
    is_secret(ask())
}

fn send_to_file(at: &Setup) -> Result<(), String> {
    done(UnixDatagram::unbound().and_then(|socket| socket.send_to(b"x", at.read.join("datagram"))))
}

fn abstract_socket(at: &Setup) -> Result<(), String> {
    let address = UnixAddress::from_abstract_name(&at.abstract_name);
    done(address.and_then(|address| UnixStream::connect_addr(&address)))
}

fn netlink(_: &Setup) -> Result<(), String> {
    done(calls::socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_ROUTE))
}
