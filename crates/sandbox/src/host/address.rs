//! Which addresses are public: what anyone on the internet could reach as well.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether an address belongs to the public internet. In doubt it does not: behind a private
/// address stand routers, databases and the credentials of cloud machines.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_four(address),
        IpAddr::V6(address) => is_public_six(address),
    }
}

/// Blocks of IPv4 that are not public, each with the length of its prefix.
const NOT_PUBLIC: [(Ipv4Addr, u32); 16] = [
    // This network, the unspecified address among it.
    (Ipv4Addr::UNSPECIFIED, 8),
    // RFC 1918.
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    // Carrier-grade NAT.
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    // Loopback.
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    // Link-local, with the metadata service of clouds at 169.254.169.254.
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    // Protocol assignments, and the old relays of 6to4.
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
    // The metadata service of Azure, public in form only.
    (Ipv4Addr::new(168, 63, 129, 16), 32),
];

fn is_public_four(address: Ipv4Addr) -> bool {
    let within = |(block, prefix): &(Ipv4Addr, u32)| {
        (address.to_bits() ^ block.to_bits()) >> (32 - prefix) == 0
    };
    !NOT_PUBLIC.iter().any(within)
}

fn is_public_six(address: Ipv6Addr) -> bool {
    match address.segments() {
        // NAT64 and 6to4 lead to the IPv4 address inside.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => {
            is_public_four(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)))
        }
        // Protocol assignments (Teredo, ORCHID, benchmarks) and documentation.
        [0x2001, 0..=0x1ff | 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => false,
        // Global unicast is 2000::/3. Outside lie loopback, mapped and compatible addresses, local
        // NAT64, unique local (fd00:ec2::254 among them), link-local, site-local and multicast.
        [first, ..] => first & 0xe000 == 0x2000,
    }
}
