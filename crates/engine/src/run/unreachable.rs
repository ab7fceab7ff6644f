//! Finds the hosts that a program without a network tried to reach. No proxy observes them, so they
//! are read from what the program printed and from the command.

use std::{collections::BTreeSet, fmt, net::IpAddr};

use savoir_sandbox::is_public;

use crate::envelope::Envelope;

/// A host, with its port if it is an unusual one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct UnreachableHost {
    host: String,
    port: Option<u16>,
}

impl UnreachableHost {
    fn new(host: &str, port: Option<u16>) -> Option<Self> {
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        let is_host = host.contains('.') || host == "localhost";
        let port = port.filter(|port| !matches!(port, 80 | 443));
        is_host.then_some(Self { host, port })
    }

    /// The option that allows the connection.
    pub(super) fn option(&self) -> &'static str {
        let is_private = match self.host.parse::<IpAddr>() {
            Ok(address) => !is_public(address),
            Err(_) => self.host == "localhost" || self.host.ends_with(".localhost"),
        };
        if is_private { "--allow-private-host" } else { "--allow-host" }
    }
}

impl fmt::Display for UnreachableHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.port {
            Some(port) => write!(f, "{}:{port}", self.host),
            None => f.write_str(&self.host),
        }
    }
}

/// How programs report a host name that they cannot resolve, up to the name.
const UNRESOLVED: [&str; 7] = [
    "Could not resolve host: ",
    "Could not resolve hostname ",
    "unable to resolve host address ",
    "Failed to resolve ",
    "getaddrinfo ENOTFOUND ",
    "getaddrinfo EAI_AGAIN ",
    "lookup ",
];

/// How programs report an address that they cannot connect to, up to the address.
const UNCONNECTED: [&str; 6] = [
    "Failed to connect to ", "connect to host ", "Connecting to ", "connect ENETUNREACH ",
    "connect ECONNREFUSED ", "dial tcp ",
];

/// How programs report a failed connection without naming the host.
const FAILURES: [&str; 4] =
    ["Network is unreachable", "Connection refused", "Failed to connect", "Couldn't connect"];

/// Exit codes of curl: the name was not resolved, no connection. With `-s`, it prints nothing.
const CURL_FAILURES: [i32; 2] = [6, 7];

/// The hosts that a failed program did not reach. `texts` are the command and its scripts.
pub(super) fn unreachable_hosts(
    envelope: &Envelope,
    ran_curl: bool,
    texts: &[String],
) -> BTreeSet<UnreachableHost> {
    let printed = &envelope.output;
    let unresolved = UNRESOLVED
        .iter()
        .filter_map(|start| UnreachableHost::new(host(printed.split_once(start)?.1).0, None));
    let mut hosts: BTreeSet<UnreachableHost> = unresolved.take(1).collect();
    hosts.extend(UNCONNECTED.iter().filter_map(|start| {
        let (name, rest) = host(printed.split_once(start)?.1);
        UnreachableHost::new(name, port(rest))
    }));
    let has_failed = FAILURES.iter().any(|failure| printed.contains(failure))
        || ran_curl && envelope.exit_code.is_some_and(|code| CURL_FAILURES.contains(&code));
    if hosts.is_empty() && has_failed {
        hosts.extend(texts.iter().flat_map(|text| hosts_of_urls(text)));
    }
    hosts
}

/// The host at the start of a text, also in quotes, and the rest.
fn host(text: &str) -> (&str, &str) {
    let text = text.trim_start_matches(['\'', '"', '`', '‘', '“']);
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-');
    text.split_at(text.find(|c| !is_part(c)).unwrap_or(text.len()))
}

/// The port behind a host: `:8000`, ` port 8000`.
fn port(rest: &str) -> Option<u16> {
    let digits = rest.strip_prefix(':').or_else(|| rest.strip_prefix(" port "))?;
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    digits[..end].parse().ok()
}

/// The hosts of the URLs in a text.
fn hosts_of_urls(text: &str) -> impl Iterator<Item = UnreachableHost> {
    ["http://", "https://"].into_iter().flat_map(move |scheme| {
        text.match_indices(scheme).filter_map(move |(start, _)| {
            let (name, rest) = host(&text[start + scheme.len()..]);
            UnreachableHost::new(name, port(rest))
        })
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn found(printed: &str, exit_code: i32, text: &str) -> Vec<String> {
        let envelope = Envelope {
            output: printed.to_owned(),
            exit_code: Some(exit_code),
            ..Envelope::failed("command-failed", "", Duration::ZERO)
        };
        let hosts = unreachable_hosts(&envelope, exit_code == 7, &[text.to_owned()]);
        hosts.iter().map(|host| format!("{} {host}", host.option())).collect()
    }

    #[test]
    fn unresolved_hosts_are_read_from_messages() {
        for (printed, host) in [
            ("curl: (6) Could not resolve host: example.com", Some("example.com")),
            ("wget: unable to resolve host address ‘example.com’", Some("example.com")),
            ("(\"Failed to resolve 'api.x.org' ([Errno -3]\")", Some("api.x.org")),
            ("Error: getaddrinfo ENOTFOUND x.org\n at", Some("x.org")),
            ("ssh: Could not resolve hostname x.org: Temporary", Some("x.org")),
            ("lookup table", None),
            ("fine", None),
        ] {
            let host = host.map(|host| format!("--allow-host {host}"));
            assert_eq!(found(printed, 1, "").first(), host.as_ref(), "{printed}");
        }
    }

    #[test]
    fn addresses_are_read_from_messages_and_commands() {
        let private = "--allow-private-host 127.0.0.1:8000";
        for (printed, exit_code, text, expected) in [
            ("curl: (7) Failed to connect to 127.0.0.1 port 8000 after 0 ms", 7, "", private),
            ("Connecting to 127.0.0.1:8000... failed: x", 4, "", private),
            ("", 7, "curl -s http://127.0.0.1:8000/x", private),
            ("[Errno 101] Network is unreachable", 1, "get('http://127.0.0.1:8000')", private),
            ("curl: (7) Failed to connect to 9.9.9.9 port 443", 7, "", "--allow-host 9.9.9.9"),
            ("Connection refused", 1, "http://localhost/", "--allow-private-host localhost"),
        ] {
            assert_eq!(found(printed, exit_code, text), [expected], "{printed}");
        }
        assert!(found("no such file", 1, "curl http://127.0.0.1:8000/").is_empty());
    }
}
