//! Parses host names and host patterns into one canonical spelling, in which they are compared.
//!
//! Most vulnerabilities of host filters come from two parsers that read one spelling differently:
//! the filter sees a name, the resolver an address. So a host is parsed once, here. An ambiguous
//! host is refused, and all later code compares and connects to the parsed result.

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

/// The longest name that DNS allows.
const MAX_NAME_CHARS: usize = 253;
/// The longest label that DNS allows.
const MAX_LABEL_CHARS: usize = 63;

/// A validated host name or address in canonical spelling.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Host(HostValue);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum HostValue {
    /// Lower case, A-labels, no trailing dot.
    Name(String),
    Address(IpAddr),
}

/// The hosts that a grant applies to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostPattern {
    /// Every public host that has a name.
    Any,
    /// Only this host.
    Exact(Host),
    /// This domain and all its subdomains, at any depth.
    Domain(Host),
}

/// Why a text is not a host or a host pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// The text is empty or only a dot.
    #[error("a host is missing")]
    Empty,
    /// A character that is not allowed in a host name.
    #[error(
        "`{}` is not allowed in a host: only letters, digits, hyphens, underscores and dots are",
        .0.escape_default()
    )]
    Character(char),
    /// Two dots in a row, or a leading dot.
    #[error("a label of the host is empty: two dots in a row, or one at the front")]
    EmptyLabel,
    /// A label begins or ends with a hyphen, such as `-example.com`.
    #[error("the label `{0}` begins or ends with a hyphen")]
    Hyphen(String),
    /// The name is longer than DNS allows.
    #[error(
        "the host is too long: {MAX_LABEL_CHARS} characters for each label, {MAX_NAME_CHARS} for all"
    )]
    TooLong,
    /// A name that has no ASCII form, or an `xn--` label that cannot be decoded.
    #[error("`{}` is not a valid international name", .0.escape_default())]
    International(String),
    /// An address for some parsers and a name for others, such as `0x7f.1`, `2130706433` or
    /// `127.1`.
    #[error("`{0}` looks like an address; write an IPv4 address as four decimal numbers")]
    OddAddress(String),
    /// An IPv6 address without brackets or not in its short form, such as `::1` or `[::0001]`.
    #[error("`{}` is not an IPv6 address in its short form in brackets, such as `[::1]`", .0.escape_default())]
    OddAddress6(String),
    /// An IPv4 address mapped to IPv6, such as `[::ffff:127.0.0.1]`.
    #[error("write the IPv4 address itself, `{0}`")]
    Mapped(Ipv4Addr),
    /// An invalid port, such as `example.com:080`.
    #[error("`{}` is not a port: write a number from 1 to 65535", .0.escape_default())]
    Port(String),
    /// A `*` that is not a whole leading label, such as `a.*.com` or `*example.com`.
    #[error("`*` stands alone or for whole labels at the front, as in `*.example.com`")]
    Star,
    /// A pattern that covers a whole top-level domain, such as `*.com`.
    #[error("`*.{0}` is too wide: name at least two labels, as in `*.example.{0}`")]
    TooWide(String),
    /// A `*` before an address, such as `*.127.0.0.1`.
    #[error("`*` cannot stand before the address {0}")]
    StarAddress(IpAddr),
}

impl Host {
    /// Parses a host as written in a URL, without a port.
    pub fn parse(text: &str) -> Result<Self, HostError> {
        if text.starts_with('[') || text.matches(':').count() > 1 {
            return parse_ipv6(text);
        }
        let name = if text.is_ascii() && !text.to_ascii_lowercase().contains("xn--") {
            text.to_ascii_lowercase()
        } else {
            Uts46::new()
                .to_ascii(text.as_bytes(), AsciiDenyList::EMPTY, Hyphens::Allow, DnsLength::Ignore)
                .map_err(|_| HostError::International(text.chars().take(MAX_NAME_CHARS).collect()))?
                .into_owned()
        };
        let (name, dotted) = match name.strip_suffix('.') {
            Some(name) => (name, true),
            None => (name.as_str(), false),
        };
        check_name(name)?;
        if !ends_in_number(name) {
            return Ok(Self(HostValue::Name(name.to_owned())));
        }
        // Only the original text counts: fullwidth digits must not turn into an address.
        match text.parse::<Ipv4Addr>() {
            Ok(address) if !dotted => Ok(Self(HostValue::Address(address.into()))),
            _ => Err(HostError::OddAddress(name.to_owned())),
        }
    }

    /// Returns the address, if the host is an address.
    pub fn address(&self) -> Option<IpAddr> {
        match self.0 {
            HostValue::Name(_) => None,
            HostValue::Address(address) => Some(address),
        }
    }

    /// Returns the name, if the host is a name.
    pub fn name(&self) -> Option<&str> {
        match &self.0 {
            HostValue::Name(name) => Some(name),
            HostValue::Address(_) => None,
        }
    }
}

/// Parses an IPv6 address in brackets, only in the spelling of RFC 5952.
fn parse_ipv6(text: &str) -> Result<Host, HostError> {
    let invalid = || HostError::OddAddress6(text.chars().take(64).collect());
    let inner =
        text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).ok_or_else(invalid)?;
    let address: Ipv6Addr = inner.parse().map_err(|_| invalid())?;
    if let Some(four) = address.to_ipv4_mapped() {
        return Err(HostError::Mapped(four));
    }
    if address.to_string() != inner.to_ascii_lowercase() {
        return Err(invalid());
    }
    Ok(Host(HostValue::Address(address.into())))
}

/// Checks a name in lower-case ASCII.
fn check_name(name: &str) -> Result<(), HostError> {
    if name.is_empty() {
        return Err(HostError::Empty);
    }
    let allowed =
        |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_' | '.');
    if let Some(invalid) = name.chars().find(|c| !allowed(*c)) {
        return Err(HostError::Character(invalid));
    }
    if name.len() > MAX_NAME_CHARS {
        return Err(HostError::TooLong);
    }
    for label in name.split('.') {
        if label.is_empty() {
            return Err(HostError::EmptyLabel);
        }
        if label.len() > MAX_LABEL_CHARS {
            return Err(HostError::TooLong);
        }
        if label.starts_with('-') || label.ends_with('-') {
            return Err(HostError::Hyphen(label.to_owned()));
        }
    }
    Ok(())
}

/// Returns whether some parser would treat the name as an IPv4 address: its last label is a number
/// in one of the bases of `inet_aton`.
fn ends_in_number(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or(name);
    last.bytes().all(|b| b.is_ascii_digit())
        || last.strip_prefix("0x").is_some_and(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit()))
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            HostValue::Name(name) => f.write_str(name),
            HostValue::Address(IpAddr::V4(address)) => address.fmt(f),
            HostValue::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
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
    /// Returns whether the pattern includes the host. An address matches only its own exact
    /// pattern.
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
            HostValue::Address(address) => Err(HostError::StarAddress(*address)),
            HostValue::Name(name) if !name.contains('.') => Err(HostError::TooWide(name.clone())),
            HostValue::Name(_) => Ok(Self::Domain(host)),
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
