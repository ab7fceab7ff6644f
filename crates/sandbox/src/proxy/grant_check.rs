//! Decides whether a request may leave the sandbox: takes grants and a request and returns a
//! [`Permit`] or a refusal, without I/O and without state.

use super::{
    refusal::{Refusal, RefusalResponse},
    request::default_port,
};
use crate::{
    host::{Host, HostPattern},
    limits,
    policy::{HostGrant, MethodGroup, Scheme},
};

/// The properties of a request that grants refer to.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestFacts<'a> {
    pub(super) scheme: Scheme,
    pub(super) host: &'a Host,
    pub(super) port: u16,
    pub(super) method: &'a str,
    /// The path with the query.
    pub(super) path: &'a str,
    /// The size of the headers that reach the host.
    pub(super) header_bytes: usize,
    pub(super) has_body: bool,
    pub(super) overrides_method: bool,
    pub(super) upgrades: bool,
}

/// Extra rights that the matching grants allow for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Permit {
    /// The host name may resolve to an address that is not public.
    pub(super) allow_private_addresses: bool,
    /// A grant names plain HTTP explicitly, so the user accepts that others on the network can read
    /// secrets.
    pub(super) plain: bool,
}

/// Decides whether a tunnel may be opened. Each request inside the tunnel is checked again.
pub(super) fn check_tunnel(
    grants: &[HostGrant],
    host: &Host,
    port: u16,
) -> Result<(), RefusalResponse> {
    matching_grants(grants, Scheme::Https, host, port, "CONNECT", MethodGroup::Read).map(|_| ())
}

/// Decides whether a request may leave.
pub(super) fn check_request(
    grants: &[HostGrant],
    facts: &RequestFacts<'_>,
) -> Result<Permit, RefusalResponse> {
    let RequestFacts { scheme, host, port, method, path, .. } = *facts;
    if facts.upgrades {
        return Err(RefusalResponse::new(
            Refusal::Upgrade,
            format!("{host} can only be reached with HTTP/1.1"),
        ));
    }
    let (needed, explanation) = required_methods(facts);
    let mut matching = matching_grants(grants, scheme, host, port, method, needed)?;

    let granted: Vec<&str> = matching.iter().map(|grant| grant.path.as_str()).collect();
    let paths = granted.join(", ");
    matching.retain(|grant| covers_path(&grant.path, path));
    if matching.is_empty() {
        let why = if is_ambiguous(path) { "is ambiguous:" } else { "is not granted:" };
        return Err(RefusalResponse::new(
            Refusal::PathNotGranted,
            format!("this path of {host} {why} only paths below {paths} can be reached"),
        ));
    }

    matching.retain(|grant| grant.methods == needed);
    if matching.is_empty() || matches!(method, "CONNECT" | "TRACE") {
        let hint = match method {
            "CONNECT" | "TRACE" => "no permission covers it".to_owned(),
            _ => format!("{} would be{explanation}", permission(needed, host)),
        };
        let reason = match needed {
            MethodGroup::Read if matching.is_empty() => Refusal::ReadingNotGranted,
            _ => Refusal::MethodNotGranted,
        };
        return Err(RefusalResponse::new(
            reason,
            format!("{method} to {host} is not granted ({hint})"),
        ));
    }
    Ok(Permit {
        allow_private_addresses: matching
            .iter()
            .any(|grant| grant.allow_private_addresses && grant.host != HostPattern::Any),
        plain: matching.iter().any(|grant| grant.scheme == Some(Scheme::Http)),
    })
}

/// Returns the grants that cover host, scheme and port. Each check has its own refusal, so that the
/// user sees which part of a grant is missing.
fn matching_grants<'a>(
    grants: &'a [HostGrant],
    scheme: Scheme,
    host: &Host,
    port: u16,
    method: &str,
    needed: MethodGroup,
) -> Result<Vec<&'a HostGrant>, RefusalResponse> {
    let mut matching: Vec<&HostGrant> =
        grants.iter().filter(|grant| grant.host.matches(host)).collect();
    if matching.is_empty() {
        return Err(RefusalResponse::new(
            Refusal::HostNotGranted,
            format!("{method} to {host} is not granted ({} would be)", permission(needed, host)),
        ));
    }
    matching.retain(|grant| grant.scheme.is_none_or(|granted| granted == scheme));
    if matching.is_empty() {
        let other = match scheme {
            Scheme::Http => "https",
            Scheme::Https => "http",
        };
        return Err(RefusalResponse::new(
            Refusal::SchemeNotGranted,
            format!("{host} is granted over {other} only"),
        ));
    }
    matching.retain(|grant| grant.port.unwrap_or(default_port(scheme)) == port);
    if matching.is_empty() {
        return Err(RefusalResponse::new(
            Refusal::PortNotGranted,
            format!("port {port} of {host} is not granted"),
        ));
    }
    Ok(matching)
}

fn permission(needed: MethodGroup, host: &Host) -> String {
    match needed {
        MethodGroup::Read => format!("network:read:{host}"),
        MethodGroup::Write => format!("network:write:{host}"),
    }
}

/// Returns whether a request counts as reading or writing, and an explanation if that may surprise.
/// Only requests that cannot carry much data out count as reading.
fn required_methods(facts: &RequestFacts<'_>) -> (MethodGroup, &'static str) {
    if !matches!(facts.method, "GET" | "HEAD" | "OPTIONS") {
        (MethodGroup::Write, "")
    } else if facts.has_body {
        (MethodGroup::Write, "; with a body it counts as writing")
    } else if facts.path.len() + facts.header_bytes > limits::MAX_READ_REQUEST_BYTES {
        (MethodGroup::Write, "; with so long a URL or headers it counts as writing")
    } else if facts.overrides_method {
        (MethodGroup::Write, "; with another method in a header it counts as writing")
    } else {
        (MethodGroup::Read, "")
    }
}

/// Returns whether the path starts with all segments of the granted path.
fn covers_path(granted: &str, target: &str) -> bool {
    let mut granted = granted.split('/').filter(|segment| !segment.is_empty()).peekable();
    if granted.peek().is_none() {
        return true;
    }
    if is_ambiguous(target) {
        return false;
    }
    let mut segments = path_of(target).split('/').skip(1);
    granted.all(|segment| segments.next() == Some(segment))
}

fn path_of(target: &str) -> &str {
    target.split('?').next().unwrap_or_default()
}

/// Returns whether a host could interpret the path differently than this proxy: `.` and `..`
/// segments, encoded separators, percent signs that are decoded twice, and parameters that some
/// servers strip first.
fn is_ambiguous(target: &str) -> bool {
    let path = path_of(target).to_ascii_lowercase();
    let climbs =
        |segment: &str| matches!(segment.split(';').next().unwrap_or_default(), "." | "..");
    ["%2e", "%2f", "%5c", "%25", "%00", "\\", "//"].iter().any(|odd| path.contains(odd))
        || path.split('/').any(climbs)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `read|write [http:|https:]host[:port][/path] [private]`
    fn grant(text: &str) -> HostGrant {
        let mut words = text.split(' ');
        let methods =
            if words.next() == Some("write") { MethodGroup::Write } else { MethodGroup::Read };
        let authority = words.next().unwrap();
        let (scheme, authority) = match authority.split_once("://") {
            Some(("http", rest)) => (Some(Scheme::Http), rest),
            Some((_, rest)) => (Some(Scheme::Https), rest),
            None => (None, authority),
        };
        let (authority, path) = authority.split_at(authority.find('/').unwrap_or(authority.len()));
        let (host, port) = match authority.split_once(':') {
            Some((host, port)) => (host, Some(port.parse().unwrap())),
            None => (authority, None),
        };
        HostGrant {
            host: host.parse().unwrap(),
            scheme,
            port,
            path: path.to_owned(),
            methods,
            allow_private_addresses: words.next().is_some(),
        }
    }

    fn outcome(grants: &[&str], method: &str, url: &str) -> Result<Permit, Refusal> {
        let grants: Vec<_> = grants.iter().map(|text| grant(text)).collect();
        let (scheme, rest) = url.split_once("://").unwrap();
        let scheme = if scheme == "http" { Scheme::Http } else { Scheme::Https };
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let endpoint = crate::proxy::request::Endpoint::parse(authority).unwrap();
        let mut words = method.split('+');
        let method = words.next().unwrap();
        let flags: Vec<_> = words.collect();
        check_request(
            &grants,
            &RequestFacts {
                scheme,
                host: &endpoint.host,
                port: endpoint.port(scheme),
                method,
                path,
                header_bytes: if flags.contains(&"headers") {
                    limits::MAX_READ_REQUEST_BYTES
                } else {
                    100
                },
                has_body: flags.contains(&"body"),
                overrides_method: flags.contains(&"override"),
                upgrades: flags.contains(&"upgrade"),
            },
        )
        .map_err(|refused| refused.reason)
    }

    #[test]
    fn allowed() {
        for (grants, method, url) in [
            (["read brave.com", "read x.y"], "GET", "https://brave.com/"),
            (["read brave.com", "read x.y"], "HEAD", "http://brave.com/"),
            (["read brave.com", "read x.y"], "OPTIONS", "https://brave.com:443/"),
            (["read *.brave.com", "read x.y"], "GET", "https://api.search.brave.com/a?b=..%2f"),
            (["read *", "read x.y"], "GET", "https://anything.example/"),
            (["write brave.com", "read x.y"], "POST", "https://brave.com/"),
            (["write brave.com", "read x.y"], "DELETE", "https://brave.com/"),
            (["write brave.com", "read x.y"], "GET+body", "https://brave.com/"),
            (["write brave.com", "read x.y"], "GET+override", "https://brave.com/"),
            (["write brave.com", "read x.y"], "GET+headers", "https://brave.com/"),
            (["read brave.com:8080", "read x.y"], "GET", "http://brave.com:8080/"),
            (["read brave.com/v1", "read x.y"], "GET", "https://brave.com/v1"),
            (["read brave.com/v1/", "read x.y"], "GET", "https://brave.com/v1/a?b=//"),
            (["read brave.com/v1", "read brave.com"], "GET", "https://brave.com/v1/../b"),
            (["read brave.com", "write brave.com/v1"], "POST", "https://brave.com/v1/a"),
            (["read 127.0.0.1 private", "read x.y"], "GET", "http://127.0.0.1/"),
            (["read https://brave.com", "read http://brave.com"], "GET", "http://brave.com/"),
        ] {
            let result = outcome(&grants, method, url);
            assert!(result.is_ok(), "{grants:?} {method} {url}: {result:?}");
        }
    }

    #[test]
    fn refused() {
        use Refusal::{
            HostNotGranted, MethodNotGranted, PathNotGranted, PortNotGranted, ReadingNotGranted,
            SchemeNotGranted, Upgrade,
        };
        for (granted, method, url, expected) in [
            ("read *.brave.com", "GET", "https://evil.com/", HostNotGranted),
            ("read *.brave.com", "GET", "https://evilbrave.com/", HostNotGranted),
            ("read *.brave.com", "GET", "https://brave.com.evil.com/", HostNotGranted),
            ("read brave.com", "GET", "https://api.brave.com/", HostNotGranted),
            ("read *", "GET", "https://1.1.1.1/", HostNotGranted),
            ("read *", "GET", "https://[2606:4700::1]/", HostNotGranted),
            ("read brave.com", "POST", "https://brave.com/", MethodNotGranted),
            ("read brave.com", "GET+body", "https://brave.com/", MethodNotGranted),
            ("read brave.com", "GET+override", "https://brave.com/", MethodNotGranted),
            ("read brave.com", "GET+headers", "https://brave.com/", MethodNotGranted),
            ("read brave.com", "PROPFIND", "https://brave.com/", MethodNotGranted),
            ("write brave.com", "GET", "https://brave.com/", ReadingNotGranted),
            ("write brave.com", "HEAD", "https://brave.com/", ReadingNotGranted),
            ("write brave.com", "TRACE", "https://brave.com/", MethodNotGranted),
            ("write brave.com", "CONNECT", "https://brave.com/", MethodNotGranted),
            ("read brave.com", "GET+upgrade", "https://brave.com/", Upgrade),
            ("write brave.com", "GET+upgrade", "https://brave.com/", Upgrade),
            ("read brave.com", "GET", "https://brave.com:22/", PortNotGranted),
            ("read brave.com", "GET", "https://brave.com:80/", PortNotGranted),
            ("read brave.com", "GET", "http://brave.com:443/", PortNotGranted),
            ("read brave.com:8443", "GET", "https://brave.com/", PortNotGranted),
            ("read https://brave.com", "GET", "http://brave.com/", SchemeNotGranted),
            ("read http://brave.com", "GET", "https://brave.com/", SchemeNotGranted),
            ("read brave.com/v1", "GET", "https://brave.com/", PathNotGranted),
            ("read brave.com/v1", "GET", "https://brave.com/v11", PathNotGranted),
            ("read brave.com/v1", "GET", "https://brave.com/V1", PathNotGranted),
            ("read brave.com/v1", "GET", "https://brave.com/%761", PathNotGranted),
            ("read brave.com/v1", "GET", "https://brave.com/v1/../admin", PathNotGranted),
            ("read brave.com/v1", "GET", "https://brave.com/v1/./a", PathNotGranted),
            ("read brave.com/v1", "GET", "https://brave.com/v1/..;/admin", PathNotGranted),
            ("read brave.com/v1", "GET", "https://brave.com/v1/%2e%2E/admin", PathNotGranted),
            ("read brave.com/v1", "GET", "https://brave.com/v1/..%2fadmin", PathNotGranted),
            ("read brave.com/v1", "GET", "https://brave.com/v1/..%5Cadmin", PathNotGranted),
            ("read brave.com/v1", "GET", "https://brave.com/v1/%252e%252e/a", PathNotGranted),
            ("read brave.com/v1", "GET", "https://brave.com//v1/a", PathNotGranted),
            ("read brave.com/v1", "GET", "https://brave.com/a?/v1", PathNotGranted),
        ] {
            assert_eq!(outcome(&[granted], method, url), Err(expected), "{granted} {method} {url}");
        }
        let long = format!("https://brave.com/?{}", "a".repeat(limits::MAX_READ_REQUEST_BYTES));
        assert_eq!(outcome(&["read brave.com"], "GET", &long), Err(MethodNotGranted));
        assert!(outcome(&["write brave.com"], "GET", &long).is_ok());
        assert_eq!(outcome(&[], "GET", "https://brave.com/"), Err(HostNotGranted));
    }

    #[test]
    fn permits() {
        let permit = |grants: &[&str], url: &str| outcome(grants, "GET", url).unwrap();
        let none = Permit { allow_private_addresses: false, plain: false };
        assert_eq!(permit(&["read a.b", "read * private"], "https://a.b/"), none);
        assert!(
            permit(&["read a.b", "read *.a.b private"], "https://a.b/").allow_private_addresses
        );
        // A grant that does not cover the request does not extend the permit.
        assert_eq!(permit(&["read a.b", "read a.b:81 private"], "http://a.b/"), none);
        assert_eq!(permit(&["read a.b", "write http://a.b private"], "http://a.b/"), none);
        assert!(permit(&["read http://a.b"], "http://a.b/").plain);
    }

    #[test]
    fn refusals_name_the_missing_permission() {
        let grants = [grant("read api.example.com")];
        let host = Host::parse("api.example.com").unwrap();
        let facts = RequestFacts {
            scheme: Scheme::Https,
            host: &host,
            port: 443,
            method: "POST",
            path: "/",
            header_bytes: 0,
            has_body: true,
            overrides_method: false,
            upgrades: false,
        };
        let answer =
            String::from_utf8(check_request(&grants, &facts).unwrap_err().to_http()).unwrap();
        assert!(answer.starts_with("HTTP/1.1 403 Forbidden\r\n"));
        assert!(answer.ends_with(
            "savoir: POST to api.example.com is not granted \
             (network:write:api.example.com would be)\n"
        ));
    }
}
