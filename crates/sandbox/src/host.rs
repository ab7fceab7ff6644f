//! [`Host`] and [`HostPattern`]: names of hosts in the one spelling in which they are compared.
//!
//! Most holes in host filters come from two readers of one spelling: the filter sees a name, the
//! resolver an address. So a host is read once, here; whatever has a second reading is refused, and
//! everything after compares and dials the result.

mod address;

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    str::FromStr,
};

use idna::{
    AsciiDenyList,
    uts46::{DnsLength, Hyphens, Uts46},
};
use serde::{Serialize, Serializer};

pub use address::is_public;

/// The longest name that DNS can carry.
const NAME: usize = 253;
/// The longest label that DNS can carry.
const LABEL: usize = 63;

/// A name or an address, checked, in its canonical spelling.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Host(Kind);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Kind {
    /// Lower case, A-labels, no dot at the end.
    Name(String),
    Address(IpAddr),
}

/// Which hosts a grant is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostPattern {
    /// Every public host that has a name.
    Any,
    /// This host alone.
    Exact(Host),
    /// This domain and everything below it, at every depth.
    Domain(Host),
}

/// Why a text is not a host or a pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// Nothing, or only a dot.
    #[error("a host is missing")]
    Empty,
    /// Something that has no place in a name.
    #[error(
        "`{}` is not allowed in a host: only letters, digits, hyphens, underscores and dots are",
        .0.escape_default()
    )]
    Character(char),
    /// Two dots in a row, or one at the front.
    #[error("a label of the host is empty: two dots in a row, or one at the front")]
    EmptyLabel,
    /// `-example.com`
    #[error("the label `{0}` begins or ends with a hyphen")]
    Hyphen(String),
    /// Longer than DNS can carry.
    #[error("the host is too long: {LABEL} characters for each label, {NAME} for all")]
    TooLong,
    /// A name that has no form in ASCII, or an `xn--` label that decodes to nothing.
    #[error("`{}` is not a valid international name", .0.escape_default())]
    International(String),
    /// `0x7f.1`, `2130706433`, `127.1`: an address for some readers and a name for others.
    #[error("`{0}` looks like an address; write an IPv4 address as four decimal numbers")]
    OddAddress(String),
    /// `::1`, `[::0001]`
    #[error("`{}` is not an IPv6 address in its short form in brackets, such as `[::1]`", .0.escape_default())]
    OddAddress6(String),
    /// `[::ffff:127.0.0.1]`
    #[error("write the IPv4 address itself, `{0}`")]
    Mapped(Ipv4Addr),
    /// `example.com:080`
    #[error("`{}` is not a port: write a number from 1 to 65535", .0.escape_default())]
    Port(String),
    /// `a.*.com`, `*example.com`
    #[error("`*` stands alone or for whole labels at the front, as in `*.example.com`")]
    Star,
    /// `*.com`
    #[error("`*.{0}` is too wide: name at least two labels, as in `*.example.{0}`")]
    TooWide(String),
    /// `*.127.0.0.1`
    #[error("`*` cannot stand before the address {0}")]
    StarAddress(IpAddr),
}

impl Host {
    /// Reads a host as it stands in a URL, without a port.
    pub fn parse(text: &str) -> Result<Self, HostError> {
        if text.starts_with('[') || text.matches(':').count() > 1 {
            return parse_six(text);
        }
        let name = if text.is_ascii() && !text.to_ascii_lowercase().contains("xn--") {
            text.to_ascii_lowercase()
        } else {
            Uts46::new()
                .to_ascii(text.as_bytes(), AsciiDenyList::EMPTY, Hyphens::Allow, DnsLength::Ignore)
                .map_err(|_| HostError::International(text.chars().take(NAME).collect()))?
                .into_owned()
        };
        let (name, dotted) = match name.strip_suffix('.') {
            Some(name) => (name, true),
            None => (name.as_str(), false),
        };
        check(name)?;
        if !ends_in_number(name) {
            return Ok(Self(Kind::Name(name.to_owned())));
        }
        // Only what the caller wrote counts: fullwidth digits must not turn into an address.
        match text.parse::<Ipv4Addr>() {
            Ok(address) if !dotted => Ok(Self(Kind::Address(address.into()))),
            _ => Err(HostError::OddAddress(name.to_owned())),
        }
    }

    /// The address, if the host is one.
    pub fn address(&self) -> Option<IpAddr> {
        match self.0 {
            Kind::Name(_) => None,
            Kind::Address(address) => Some(address),
        }
    }

    /// The name, if the host has one.
    pub fn name(&self) -> Option<&str> {
        match &self.0 {
            Kind::Name(name) => Some(name),
            Kind::Address(_) => None,
        }
    }
}

/// An IPv6 address in brackets, in the spelling of RFC 5952 and in no other.
fn parse_six(text: &str) -> Result<Host, HostError> {
    let odd = || HostError::OddAddress6(text.chars().take(64).collect());
    let inner = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).ok_or_else(odd)?;
    let address: Ipv6Addr = inner.parse().map_err(|_| odd())?;
    if let Some(four) = address.to_ipv4_mapped() {
        return Err(HostError::Mapped(four));
    }
    if address.to_string() != inner.to_ascii_lowercase() {
        return Err(odd());
    }
    Ok(Host(Kind::Address(address.into())))
}

/// The rules of a name in lower-case ASCII.
fn check(name: &str) -> Result<(), HostError> {
    if name.is_empty() {
        return Err(HostError::Empty);
    }
    let allowed =
        |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_' | '.');
    if let Some(odd) = name.chars().find(|c| !allowed(*c)) {
        return Err(HostError::Character(odd));
    }
    if name.len() > NAME {
        return Err(HostError::TooLong);
    }
    for label in name.split('.') {
        if label.is_empty() {
            return Err(HostError::EmptyLabel);
        }
        if label.len() > LABEL {
            return Err(HostError::TooLong);
        }
        if label.starts_with('-') || label.ends_with('-') {
            return Err(HostError::Hyphen(label.to_owned()));
        }
    }
    Ok(())
}

/// Whether some reader would take the name for an IPv4 address: its last label is a number in any
/// of the bases of `inet_aton`.
fn ends_in_number(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or(name);
    last.bytes().all(|b| b.is_ascii_digit())
        || last.strip_prefix("0x").is_some_and(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit()))
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Name(name) => f.write_str(name),
            Kind::Address(IpAddr::V4(address)) => address.fmt(f),
            Kind::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

impl FromStr for Host {
    type Err = HostError;

    fn from_str(text: &str) -> Result<Self, HostError> {
        Self::parse(text)
    }
}

impl HostPattern {
    /// Whether the host is meant. An address is meant only by itself.
    pub fn matches(&self, host: &Host) -> bool {
        match self {
            Self::Any => host.name().is_some(),
            Self::Exact(exact) => exact == host,
            Self::Domain(domain) => match (domain.name(), host.name()) {
                (Some(domain), Some(name)) => name
                    .strip_suffix(domain)
                    .is_some_and(|front| front.is_empty() || front.ends_with('.')),
                _ => false,
            },
        }
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("*"),
            Self::Exact(host) => host.fmt(f),
            Self::Domain(host) => write!(f, "*.{host}"),
        }
    }
}

impl FromStr for HostPattern {
    type Err = HostError;

    fn from_str(text: &str) -> Result<Self, HostError> {
        if text == "*" {
            return Ok(Self::Any);
        }
        let Some(domain) = text.strip_prefix("*.") else {
            return if text.contains('*') {
                Err(HostError::Star)
            } else {
                Host::parse(text).map(Self::Exact)
            };
        };
        if domain.contains('*') {
            return Err(HostError::Star);
        }
        let host = Host::parse(domain)?;
        match &host.0 {
            Kind::Address(address) => Err(HostError::StarAddress(*address)),
            Kind::Name(name) if !name.contains('.') => Err(HostError::TooWide(name.clone())),
            Kind::Name(_) => Ok(Self::Domain(host)),
        }
    }
}

impl Serialize for HostPattern {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests;
