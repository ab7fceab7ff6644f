//! Decides which addresses are public, that is, reachable by anyone on the internet.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Returns whether an address belongs to the public internet. Unclear cases are not public, because
/// private addresses belong to routers, databases and the credential services of cloud machines.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_ipv4(address),
        IpAddr::V6(address) => is_public_ipv6(address),
    }
}

/// IPv4 blocks that are not public, each with its prefix length.
const PRIVATE_BLOCKS: [(Ipv4Addr, u32); 16] = [
    // "This network", including the unspecified address.
    (Ipv4Addr::UNSPECIFIED, 8),
    // RFC 1918.
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    // Carrier-grade NAT.
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    // Loopback.
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    // Link-local, including the metadata service of clouds at 169.254.169.254.
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    // Protocol assignments, and the former 6to4 relays.
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    // Documentation.
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    // Benchmarks.
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    // Multicast.
    (Ipv4Addr::new(224, 0, 0, 0), 4),
    // Reserved, and broadcast.
    (Ipv4Addr::new(240, 0, 0, 0), 4),
    // The metadata service of Azure, which only looks like a public address.
    (Ipv4Addr::new(168, 63, 129, 16), 32),
];

fn is_public_ipv4(address: Ipv4Addr) -> bool {
    let within = |(block, prefix): &(Ipv4Addr, u32)| {
        (address.to_bits() ^ block.to_bits()) >> (32 - prefix) == 0
    };
    !PRIVATE_BLOCKS.iter().any(within)
}

fn is_public_ipv6(address: Ipv6Addr) -> bool {
    match address.segments() {
        // NAT64 and 6to4 addresses lead to the IPv4 address inside them.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => {
            is_public_ipv4(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)))
        }
        // Protocol assignments (Teredo, ORCHID, benchmarks) and documentation.
        [0x2001, 0..=0x1ff | 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => false,
        // Global unicast is 2000::/3. All other addresses are not public: loopback, mapped and
        // compatible addresses, local NAT64, unique local (including fd00:ec2::254), link-local,
        // site-local and multicast.
        [first, ..] => first & 0xe000 == 0x2000,
    }
}
