//! Decides which hosts may be contacted, so that a public server cannot redirect Savoir into a
//! private network.

use std::{
    io,
    net::{IpAddr, SocketAddr},
};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use savoir_sandbox::is_public;
use url::{Host, Url};

use super::shown;
use crate::source::SourceError;

/// Environment variables that set a proxy.
const PROXIES: [&str; 4] = ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"];

/// Whether a host is a proxy that the user set. Such a proxy may be in a private network, for
/// example of a company.
fn is_proxy(name: &str) -> bool {
    let names_host = |variable: &&str| {
        let value = std::env::var(*variable).unwrap_or_default();
        let url = if value.contains("://") { value } else { format!("http://{value}") };
        Url::parse(&url).is_ok_and(|url| url.host_str() == Some(name))
    };
    PROXIES.iter().any(names_host)
}

/// The hosts that may be contacted next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// All hosts: the user typed the address, or a private host returned it.
    Anywhere,
    /// Public hosts only: a public host returned the address.
    Public,
}

impl Reach {
    /// Returns the reach after an answer from an address. Behind a proxy the real address of a host
    /// is unknown, so the host counts as public.
    pub(crate) fn after(self, url: &Url, from: Option<SocketAddr>) -> Self {
        let is_direct = || PROXIES.iter().all(|name| std::env::var_os(name).is_none());
        let private = match address(url) {
            Some(address) => !is_public(address),
            None if is_loopback(url) => true,
            None => from.is_some_and(|from| !is_public(from.ip())) && is_direct(),
        };
        if private { self } else { Self::Public }
    }
}

/// Checks whether an address may be contacted at all.
pub(crate) fn check(url: &Url) -> Result<(), SourceError> {
    let refused = |why| Err(SourceError::Address { address: shown(url), why });
    if !url.username().is_empty() || url.password().is_some() {
        return refused("it contains a user name or a password");
    }
    match url.scheme() {
        "https" if url.has_host() => Ok(()),
        // Other names below `localhost` could resolve to another machine.
        "http" if is_loopback(url) && url.domain().is_none_or(|name| name == "localhost") => Ok(()),
        "http" => refused("what comes without encryption can be changed on the way; use https"),
        _ => refused("only https is supported"),
    }
}

/// Whether an address is on this machine.
pub(super) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        _ => address(url).is_some_and(|address| address.is_loopback()),
    }
}

/// Whether an address is in a private network, judging by its text only.
pub(super) fn is_private(url: &Url) -> bool {
    is_loopback(url) || address(url).is_some_and(|address| !is_public(address))
}

fn address(url: &Url) -> Option<IpAddr> {
    match url.host()? {
        Host::Ipv4(address) => Some(address.into()),
        Host::Ipv6(address) => Some(address.into()),
        Host::Domain(_) => None,
    }
}

/// A DNS resolver that rejects names that resolve to a private network. The connection uses the
/// checked addresses, so a name that resolves differently the next time does not help an attacker.
#[derive(Debug)]
pub(super) struct PublicOnly;

impl Resolve for PublicOnly {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let found: Vec<SocketAddr> = found.collect();
            let is_private = found.iter().any(|address| !is_public(address.ip()));
            if is_private && !is_proxy(name.as_str()) {
                let why = "a public host sent us there, and it is private";
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, why).into());
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn allowed_and_rejected_urls() {
        for good in
            ["https://x.example/a", "http://127.0.0.1:1/a", "http://localhost/", "http://[::1]/"]
        {
            assert!(check(&url(good)).is_ok(), "{good}");
        }
        for bad in [
            "http://x.example/", "http://10.0.0.1/", "http://127.0.0.1.x.example/",
            "http://x.localhost/", "http://localhost./", "https://me@x.example/",
            "https://me:secret@x.example/", "ftp://x.example/", "file:///etc/passwd",
        ] {
            let refused = check(&url(bad)).unwrap_err();
            assert_eq!(refused.code(), "address_refused", "{bad}");
            assert!(!refused.to_string().contains("secret"));
        }
    }

    #[test]
    fn public_host_cannot_refer_to_private_network() {
        let (public, private) = ("1.1.1.1:443".parse().ok(), "10.0.0.1:443".parse().ok());
        let first = Reach::Anywhere;
        assert_eq!(first.after(&url("https://1.1.1.1/"), public), Reach::Public);
        assert_eq!(first.after(&url("https://x.example/"), public), Reach::Public);
        assert_eq!(first.after(&url("https://x.example/"), None), Reach::Public);
        assert_eq!(first.after(&url("https://10.0.0.1/"), private), Reach::Anywhere);
        assert_eq!(first.after(&url("http://localhost/"), None), Reach::Anywhere);
        let later = Reach::Public;
        assert_eq!(later.after(&url("http://localhost/"), None), Reach::Public, "it stays so");
        for target in [
            "http://127.0.0.1/", "https://169.254.169.254/", "https://[fd00::1]/",
            "https://a.localhost/",
        ] {
            assert!(is_private(&url(target)), "{target}");
        }
        assert!(!is_private(&url("https://1.1.1.1/")));
    }

    #[tokio::test]
    async fn host_names_are_checked_by_resolved_address() {
        let error = PublicOnly.resolve("localhost".parse().unwrap()).await.err().unwrap();
        assert!(error.to_string().contains("it is private"));
    }
}
