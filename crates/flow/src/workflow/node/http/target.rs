//! Checks the target host of an HTTP request before anything is sent.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use reqwest::{
    Client, Url,
    dns::{Addrs, Name, Resolve, Resolving},
    redirect,
};
use savoir_sandbox::{Host, HostPattern, is_public};

use super::{FAILED, NodeError};
use crate::workflow::host::HttpPolicy;

/// The IP addresses to connect to.
#[derive(Debug, PartialEq)]
pub(super) struct Target(Vec<SocketAddr>);

/// Checks the host of a URL, and every IP address that it resolves to.
pub(super) async fn check_target(url: &Url, policy: &HttpPolicy) -> Result<Target, NodeError> {
    let unresolved = || NodeError::failed("Unable to resolve target host");
    let host = url.host().ok_or_else(|| NodeError::failed("URL host is required"))?;
    let port = url.port_or_known_default().unwrap_or_default();
    let found: Vec<SocketAddr> = match host {
        url::Host::Ipv4(address) => vec![(address, port).into()],
        url::Host::Ipv6(address) => vec![(address, port).into()],
        url::Host::Domain(name) => {
            check_name(name, policy.allowed.as_deref())?;
            tokio::net::lookup_host((name, port)).await.map_err(|_| unresolved())?.collect()
        }
    };
    if let url::Host::Ipv4(_) | url::Host::Ipv6(_) = host {
        check_address(&found, policy.allowed.as_deref())?;
    }
    if found.is_empty() {
        return Err(unresolved());
    }
    // One blocked address is enough: a legitimate host does not resolve to public and private
    // addresses.
    if !policy.private && found.iter().any(|address| !is_public(address.ip())) {
        return Err(NodeError::failed("Target host resolves to blocked IP"));
    }
    Ok(Target(found))
}

fn check_name(name: &str, allowed: Option<&[HostPattern]>) -> Result<(), NodeError> {
    let Some(allowed) = allowed else { return Ok(()) };
    let host = Host::parse(name).ok();
    check(host.is_some_and(|host| allowed.iter().any(|pattern| pattern.matches(&host))))
}

fn check_address(found: &[SocketAddr], allowed: Option<&[HostPattern]>) -> Result<(), NodeError> {
    let Some(allowed) = allowed else { return Ok(()) };
    let address: Option<IpAddr> = found.first().map(SocketAddr::ip);
    check(allowed.iter().any(|pattern| match pattern {
        HostPattern::Exact(host) => address.is_some() && host.address() == address,
        HostPattern::Any | HostPattern::Domain(_) => false,
    }))
}

fn check(is_allowed: bool) -> Result<(), NodeError> {
    if is_allowed { Ok(()) } else { Err(NodeError::failed("URL host is not in allowlist")) }
}

impl Target {
    /// Creates a client that connects only to these addresses, and follows no redirects.
    pub(super) fn client(self) -> Result<Client, NodeError> {
        let client = Client::builder()
            .no_proxy()
            .redirect(redirect::Policy::none())
            .dns_resolver(Arc::new(CheckedAddresses(self.0)))
            .pool_max_idle_per_host(0)
            .user_agent(concat!("savoir/", env!("CARGO_PKG_VERSION")))
            .build();
        client.map_err(|error| {
            tracing::error!(%error, "no client can be made for requests");
            NodeError::failed(FAILED)
        })
    }
}

/// A DNS resolver that returns the checked addresses, so that a host cannot resolve to another
/// address after the check (DNS rebinding).
#[derive(Debug)]
struct CheckedAddresses(Vec<SocketAddr>);

impl Resolve for CheckedAddresses {
    fn resolve(&self, _: Name) -> Resolving {
        let addresses: Addrs = Box::new(self.0.clone().into_iter());
        Box::pin(std::future::ready(Ok(addresses)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn judged(url: &str, policy: &HttpPolicy) -> Result<Vec<String>, String> {
        match check_target(&Url::parse(url).unwrap(), policy).await {
            Ok(target) => Ok(target.0.iter().map(ToString::to_string).collect()),
            Err(NodeError::Failed(text)) => Err(text),
            Err(NodeError::ListenerDisconnected) => panic!("nobody was there"),
        }
    }

    #[tokio::test]
    async fn private_addresses_are_blocked_in_every_spelling() {
        let policy = HttpPolicy::default();
        for host in [
            "127.0.0.1",
            "127.1",
            "2130706433",
            "0x7f000001",
            "0177.0.0.1",
            "0x7f.1",
            "127.0.0.1.",
            "0",
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.0.1",
            "198.18.0.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "[::1]",
            "[::]",
            "[fc00::1]",
            "[fd12::1]",
            "[fe80::1]",
            "[ff02::1]",
            "[::ffff:127.0.0.1]",
            "[::ffff:7f00:1]",
            "[::127.0.0.1]",
            "[64:ff9b::7f00:1]",
            "[64:ff9b::10.0.0.1]",
            "[2002:7f00:1::]",
            "[2002:a00:1::1]",
            "[2001:0:4136:e378:8000:63bf:3fff:fdd2]",
            "１２７.0.0.1",
            "127。0。0。1",
            "localhost",
            "LOCALHOST",
        ] {
            let expected = Err("Target host resolves to blocked IP".to_owned());
            assert_eq!(judged(&format!("http://{host}/"), &policy).await, expected, "{host}");
        }
        assert_eq!(judged("http://1.1.1.1/", &policy).await.unwrap(), ["1.1.1.1:80"]);
        assert_eq!(
            judged("https://[2606:4700::1]/", &policy).await.unwrap(),
            ["[2606:4700::1]:443"]
        );
        let open = HttpPolicy { private: true, ..policy };
        assert_eq!(judged("http://127.1:8080/", &open).await.unwrap(), ["127.0.0.1:8080"]);
    }

    #[tokio::test]
    async fn allow_list_is_checked_before_dns() {
        let refused = Err("URL host is not in allowlist".to_owned());
        let policy = HttpPolicy::only(["example.invalid", "1.1.1.1"]).unwrap();
        for url in [
            "http://evil.example/",
            "http://example.invalid.evil.example/",
            "http://notexample.invalid/",
            "http://1.1.1.2/",
            "http://[::1]/",
            "http://example.invalid@evil.example/",
            "http://localhost/",
        ] {
            assert_eq!(judged(url, &policy).await, refused, "{url}");
        }
        for url in ["http://example.invalid/", "http://A.B.Example.Invalid./"] {
            let unresolved = Err("Unable to resolve target host".to_owned());
            assert_eq!(judged(url, &policy).await, unresolved, "{url}");
        }
        assert_eq!(judged("http://1.1.1.1/", &policy).await.unwrap().len(), 1);
        // An allow list does not permit private addresses.
        let local = HttpPolicy::only(["localhost", "127.0.0.1"]).unwrap();
        for url in ["http://localhost/", "http://127.0.0.1/"] {
            let blocked = Err("Target host resolves to blocked IP".to_owned());
            assert_eq!(judged(url, &local).await, blocked, "{url}");
        }
    }
}
