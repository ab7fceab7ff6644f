//! Addresses of servers, as people write them.

use std::net::{Ipv4Addr, Ipv6Addr};

use url::{Host, Url};

/// The port of Ollama.
const OLLAMA_PORT: u16 = 11434;

/// An address that requests can be sent to, or why it is none.
pub(super) fn base_url(text: &str) -> Result<Url, String> {
    let url = Url::parse(text.trim()).map_err(|error| error.to_string())?;
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err("it must begin with http:// or https://".to_owned());
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err("it must not have a query or a fragment".to_owned());
    }
    Ok(url)
}

/// The address that `OLLAMA_HOST` stands for: a whole one, a host, or a host and a port.
pub(super) fn ollama_host(text: &str) -> Result<Url, String> {
    let text = text.trim().trim_end_matches('/');
    if text.contains("://") {
        return base_url(text).map(reachable);
    }
    let text = match text.parse::<Ipv6Addr>() {
        Ok(address) => format!("[{address}]"),
        Err(_) if text.starts_with(':') => format!("127.0.0.1{text}"),
        Err(_) => text.to_owned(),
    };
    let mut url = base_url(&format!("http://{text}"))?;
    if !names_port(&text) {
        // Addresses of HTTP always can have one.
        let _ = url.set_port(Some(OLLAMA_PORT));
    }
    Ok(reachable(url))
}

fn names_port(text: &str) -> bool {
    let authority = text.split('/').next().unwrap_or_default();
    authority.rsplit_once(':').is_some_and(|(_, port)| port.bytes().all(|b| b.is_ascii_digit()))
}

/// A server listens at 0.0.0.0, but nobody can call it there.
fn reachable(mut url: Url) -> Url {
    let loopback = match url.host() {
        Some(Host::Ipv4(Ipv4Addr::UNSPECIFIED)) => "127.0.0.1",
        Some(Host::Ipv6(Ipv6Addr::UNSPECIFIED)) => "[::1]",
        _ => return url,
    };
    let _ = url.set_host(Some(loopback));
    url
}
