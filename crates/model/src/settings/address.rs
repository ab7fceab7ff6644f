//! Parses the addresses of model servers.

use std::net::{Ipv4Addr, Ipv6Addr};

use url::{Host, Url};

/// The default port of Ollama.
const OLLAMA_PORT: u16 = 11434;

/// Parses a base URL; the error says what is wrong with it.
pub(super) fn parse_base_url(text: &str) -> Result<Url, String> {
    let url = Url::parse(text.trim()).map_err(|error| error.to_string())?;
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err("it must begin with http:// or https://".to_owned());
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err("it must not have a query or a fragment".to_owned());
    }
    Ok(url)
}

/// Parses `OLLAMA_HOST`: a URL, a host, or a host and a port.
pub(super) fn parse_ollama_host(text: &str) -> Result<Url, String> {
    let text = text.trim().trim_end_matches('/');
    if text.contains("://") {
        return parse_base_url(text).map(replace_unspecified_host);
    }
    let text = match text.parse::<Ipv6Addr>() {
        Ok(address) => format!("[{address}]"),
        Err(_) if text.starts_with(':') => format!("127.0.0.1{text}"),
        Err(_) => text.to_owned(),
    };
    let mut url = parse_base_url(&format!("http://{text}"))?;
    if !names_port(&text) {
        // An HTTP URL can always have a port.
        let _ = url.set_port(Some(OLLAMA_PORT));
    }
    Ok(replace_unspecified_host(url))
}

fn names_port(text: &str) -> bool {
    let authority = text.split('/').next().unwrap_or_default();
    authority.rsplit_once(':').is_some_and(|(_, port)| port.bytes().all(|b| b.is_ascii_digit()))
}

/// Replaces 0.0.0.0, on which a server may listen, by the loopback address, to which clients must
/// connect.
fn replace_unspecified_host(mut url: Url) -> Url {
    let loopback = match url.host() {
        Some(Host::Ipv4(Ipv4Addr::UNSPECIFIED)) => "127.0.0.1",
        Some(Host::Ipv6(Ipv6Addr::UNSPECIFIED)) => "[::1]",
        _ => return url,
    };
    let _ = url.set_host(Some(loopback));
    url
}
