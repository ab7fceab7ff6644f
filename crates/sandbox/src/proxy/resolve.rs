//! Resolves host names to addresses and selects the addresses that the proxy may connect to.

use std::{
    fmt, io,
    net::{IpAddr, ToSocketAddrs},
};

use super::{
    decide::Permit,
    refusal::{Refusal, Refused},
};
use crate::host::{Host, is_public};

/// Resolves host names. The proxy resolves once for each connection and connects to the addresses
/// that it checked, so a name that changes its addresses in between gains nothing.
pub(crate) trait Resolve: fmt::Debug + Send + Sync {
    /// Returns the addresses of a name in canonical spelling.
    fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>>;
}

/// Resolves with the system's resolver, including the hosts file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        Ok((name, 0).to_socket_addrs()?.map(|address| address.ip()).collect())
    }
}

/// The limit of addresses to try.
const TRIED: usize = 8;

/// Returns the addresses that the proxy may connect to for a host, at least one.
pub(super) fn addresses(
    resolver: &dyn Resolve,
    host: &Host,
    permit: Permit,
) -> Result<Vec<IpAddr>, Refused> {
    let mut found = match (host.address(), host.name()) {
        (Some(address), _) => vec![address],
        (None, name) => resolver
            .resolve(name.unwrap_or_default())
            .map_err(|error| unreachable(host, &error.to_string()))?,
    };
    if found.is_empty() {
        return Err(unreachable(host, "the name has no address"));
    }
    found.retain(|address| permit.private || is_public(*address));
    found.truncate(TRIED);
    if found.is_empty() {
        return Err(private_address(host));
    }
    Ok(found)
}

/// Returns the refusal for a name that resolves only to addresses that are not public.
pub(super) fn private_address(host: &Host) -> Refused {
    Refused::new(
        Refusal::PrivateAddress,
        format!("{host} leads to a private address, which is not granted"),
    )
}

/// Returns the refusal for a granted host that cannot be reached.
pub(super) fn unreachable(host: &Host, why: &str) -> Refused {
    Refused::new(Refusal::Unreachable, format!("{host} cannot be reached: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Fixed(Vec<IpAddr>);

    impl Resolve for Fixed {
        fn resolve(&self, _: &str) -> io::Result<Vec<IpAddr>> {
            Ok(self.0.clone())
        }
    }

    fn judged(found: &[&str], private: bool) -> Result<Vec<String>, Refusal> {
        let resolver = Fixed(found.iter().map(|text| text.parse().unwrap()).collect());
        let host = Host::parse("a.example").unwrap();
        addresses(&resolver, &host, Permit { private, plain: false })
            .map(|judged| judged.iter().map(ToString::to_string).collect())
            .map_err(|refused| refused.reason)
    }

    #[test]
    fn every_address_is_judged() {
        let mixed = ["127.0.0.1", "1.1.1.1", "::ffff:10.0.0.1", "169.254.169.254", "2606:4700::1"];
        assert_eq!(judged(&mixed, false).unwrap(), ["1.1.1.1", "2606:4700::1"]);
        assert_eq!(judged(&mixed, true).unwrap().len(), 5);
        assert_eq!(judged(&["10.0.0.1", "::1"], false), Err(Refusal::PrivateAddress));
        assert_eq!(judged(&[], true), Err(Refusal::Unreachable));
        assert_eq!(judged(&["1.1.1.1"; 99], false).unwrap().len(), TRIED);
    }
}
