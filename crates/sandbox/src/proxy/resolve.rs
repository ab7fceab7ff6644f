//! Resolves host names to addresses and selects the addresses that the proxy may connect to.

use std::{
    fmt, io,
    net::{IpAddr, ToSocketAddrs},
};

use super::{
    grant_check::Permit,
    refusal::{Refusal, RefusalResponse},
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
const MAX_ADDRESSES: usize = 8;

/// Returns the addresses that the proxy may connect to for a host, at least one.
pub(super) fn resolve_addresses(
    resolver: &dyn Resolve,
    host: &Host,
    permit: Permit,
) -> Result<Vec<IpAddr>, RefusalResponse> {
    let mut found = match (host.address(), host.name()) {
        (Some(address), _) => vec![address],
        (None, name) => resolver
            .resolve(name.unwrap_or_default())
            .map_err(|error| refuse_unreachable(host, &error.to_string()))?,
    };
    if found.is_empty() {
        return Err(refuse_unreachable(host, "the name has no address"));
    }
    found.retain(|address| permit.allow_private_addresses || is_public(*address));
    found.truncate(MAX_ADDRESSES);
    if found.is_empty() {
        return Err(refuse_private_address(host));
    }
    Ok(found)
}

/// Returns the refusal for a name that resolves only to addresses that are not public.
pub(super) fn refuse_private_address(host: &Host) -> RefusalResponse {
    RefusalResponse::new(
        Refusal::PrivateAddress,
        format!("{host} resolves to a private address, which is not granted"),
    )
}

/// Returns the refusal for a granted host that cannot be reached.
pub(super) fn refuse_unreachable(host: &Host, why: &str) -> RefusalResponse {
    RefusalResponse::new(Refusal::Unreachable, format!("{host} cannot be reached: {why}"))
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

    fn allowed_addresses(
        found: &[&str],
        allow_private_addresses: bool,
    ) -> Result<Vec<String>, Refusal> {
        let resolver = Fixed(found.iter().map(|text| text.parse().unwrap()).collect());
        let host = Host::parse("a.example").unwrap();
        resolve_addresses(&resolver, &host, Permit { allow_private_addresses, plain: false })
            .map(|allowed_addresses| allowed_addresses.iter().map(ToString::to_string).collect())
            .map_err(|refused| refused.reason)
    }

    #[test]
    fn private_addresses_are_removed() {
        let mixed = ["127.0.0.1", "1.1.1.1", "::ffff:10.0.0.1", "169.254.169.254", "2606:4700::1"];
        assert_eq!(allowed_addresses(&mixed, false).unwrap(), ["1.1.1.1", "2606:4700::1"]);
        assert_eq!(allowed_addresses(&mixed, true).unwrap().len(), 5);
        assert_eq!(allowed_addresses(&["10.0.0.1", "::1"], false), Err(Refusal::PrivateAddress));
        assert_eq!(allowed_addresses(&[], true), Err(Refusal::Unreachable));
        assert_eq!(allowed_addresses(&["1.1.1.1"; 99], false).unwrap().len(), MAX_ADDRESSES);
    }
}
