//! Finds the address of the client of a request.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use axum::{
    extract::ConnectInfo,
    http::{Extensions, HeaderMap, header},
};
use url::{Host, Url};

use crate::config::Config;

/// The address of the other end of the connection.
pub(crate) fn peer(extensions: &Extensions) -> Option<SocketAddr> {
    extensions.get::<ConnectInfo<SocketAddr>>().map(|info| info.0)
}

/// The key of an anonymous client for rate limits.
pub(crate) fn address_key(config: &Config, headers: &HeaderMap, extensions: &Extensions) -> String {
    match client_address(config, headers, peer(extensions)) {
        Some(address) => format!("address:{}", network(address)),
        None => "address:unknown".to_owned(),
    }
}

/// The client address: as reported by a trusted proxy, else the other end of the connection.
fn client_address(
    config: &Config,
    headers: &HeaderMap,
    peer: Option<SocketAddr>,
) -> Option<IpAddr> {
    // Our proxy appends the address that it saw; the addresses before can be forged by the client.
    let forwarded = headers.get_all("x-forwarded-for").iter().next_back();
    if config.behind_proxy
        && let Some(forwarded) = forwarded.and_then(|value| value.to_str().ok())
        && let Some(last) = forwarded.rsplit(',').next().map(str::trim)
    {
        let bare = last.parse().ok();
        let with_port = || last.parse().ok().map(|address: SocketAddr| address.ip());
        if let Some(address) = bare.or_else(with_port) {
            return Some(address);
        }
    }
    peer.map(|peer| peer.ip())
}

/// The network that is counted as one client: a household has one IPv4 address, but 2^64 IPv6
/// addresses.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let prefix = u128::from(address) & !u128::from(u64::MAX);
            IpAddr::V6(Ipv6Addr::from(prefix))
        }
        address @ IpAddr::V4(_) => address,
    }
}

/// Whether a request comes from this machine: not through a proxy, and not from a page of another
/// site in a browser on this machine.
pub(crate) fn is_local(config: &Config, headers: &HeaderMap, peer: Option<SocketAddr>) -> bool {
    let forwarded = ["forwarded", "x-forwarded-for", "x-real-ip", "via"];
    // Clients can make some proxies drop the header that names the client, so its absence proves
    // nothing.
    !config.behind_proxy
        && is_private_server(config)
        && peer.is_some_and(|peer| peer.ip().to_canonical().is_loopback())
        && !forwarded.iter().any(|name| headers.contains_key(*name))
        && text(headers, &header::HOST).is_none_or(|host| is_our_host(config, host))
        && text(headers, &header::ORIGIN).is_none_or(|origin| is_our_page(config, headers, origin))
}

/// Whether the server is reachable only from this machine. A server with a public name has a proxy
/// in front, whether or not the proxy sends a header that says so.
fn is_private_server(config: &Config) -> bool {
    let public = Url::parse(&config.public_url).ok();
    public.as_ref().and_then(Url::host).is_some_and(|host| is_loopback(&host))
}

fn is_loopback(host: &Host<&str>) -> bool {
    match host {
        Host::Ipv4(address) => address.is_loopback(),
        Host::Ipv6(address) => IpAddr::from(*address).to_canonical().is_loopback(),
        Host::Domain(name) => *name == "localhost" || name.ends_with(".localhost"),
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &header::HeaderName) -> Option<&'a str> {
    // A header that is not text never matches our host names.
    headers.get(name).map(|value| value.to_str().unwrap_or_default())
}

/// Whether a `Host` header is a name of this server. This prevents DNS rebinding: another domain
/// can resolve to this machine.
fn is_our_host(config: &Config, host: &str) -> bool {
    let Ok(asked) = Url::parse(&format!("http://{host}")) else { return false };
    let public = Url::parse(&config.public_url).ok();
    asked
        .host()
        .is_some_and(|host| is_loopback(&host) || Some(host) == public.as_ref().and_then(Url::host))
}

/// Whether an `Origin` header is this server, or an origin that the configuration allows.
fn is_our_page(config: &Config, headers: &HeaderMap, origin: &str) -> bool {
    is_own_origin(config, headers, origin)
        || config.cors_origins.iter().any(|allowed| allowed == origin)
}

/// Whether an `Origin` header is this server.
pub(crate) fn is_own_origin(config: &Config, headers: &HeaderMap, origin: &str) -> bool {
    let same = text(headers, &header::HOST).is_some_and(|host| {
        origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://")) == Some(host)
    });
    same || origin == config.public_url
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn headers(all: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in all {
            headers.append(*name, HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    fn local(config: &Config, peer: &str, all: &[(&'static str, &str)]) -> bool {
        is_local(config, &headers(all), Some(peer.parse().unwrap()))
    }

    #[test]
    fn local_requests_are_recognized() {
        let config = Config::default();
        for (peer, all, expected) in [
            ("127.0.0.1:5", &[][..], true),
            ("[::1]:5", &[("host", "localhost:7878")], true),
            ("[::ffff:127.0.0.1]:5", &[("host", "[::1]:7878")], true),
            ("127.0.0.1:5", &[("host", "127.0.0.1:1")], true),
            ("192.0.2.1:5", &[("host", "127.0.0.1:1")], false),
            ("127.0.0.1:5", &[("x-forwarded-for", "127.0.0.1")], false),
            ("127.0.0.1:5", &[("forwarded", "for=127.0.0.1")], false),
            ("127.0.0.1:5", &[("x-real-ip", "127.0.0.1")], false),
            ("127.0.0.1:5", &[("via", "1.1 proxy")], false),
            ("127.0.0.1:5", &[("host", "rebound.example")], false),
            ("127.0.0.1:5", &[("host", "")], false),
            ("127.0.0.1:5", &[("origin", "https://elsewhere.example")], false),
            ("127.0.0.1:5", &[("origin", "null")], false),
            ("127.0.0.1:5", &[("origin", "http://localhost:5173")], true),
            ("127.0.0.1:5", &[("host", "localhost:1"), ("origin", "http://localhost:1")], true),
        ] {
            assert_eq!(local(&config, peer, all), expected, "{peer} {all:?}");
        }
        assert!(!is_local(&config, &HeaderMap::new(), None));
        let config = Config { behind_proxy: true, ..config };
        assert!(!local(&config, "127.0.0.1:5", &[]));
    }

    #[test]
    fn last_forwarded_address_is_used() {
        let config = Config { behind_proxy: true, ..Config::default() };
        let peer = Some("10.0.0.1:5".parse().unwrap());
        let forwarded = |all: &[(&'static str, &str)]| {
            client_address(&config, &headers(all), peer).unwrap().to_string()
        };
        assert_eq!(forwarded(&[("x-forwarded-for", "1.1.1.1, 192.0.2.7")]), "192.0.2.7");
        let twice = [("x-forwarded-for", "1.1.1.1"), ("x-forwarded-for", "192.0.2.7:80")];
        assert_eq!(forwarded(&twice), "192.0.2.7");
        assert_eq!(forwarded(&[("x-forwarded-for", "nonsense")]), "10.0.0.1");
        let plain = client_address(&Config::default(), &headers(&twice), peer).unwrap();
        assert_eq!(plain.to_string(), "10.0.0.1");
    }

    #[test]
    fn ipv6_network_counts_as_one_client() {
        let of = |text: &str| network(text.parse().unwrap()).to_string();
        assert_eq!(of("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
        assert_eq!(of("::ffff:192.0.2.1"), "192.0.2.1");
    }
}
