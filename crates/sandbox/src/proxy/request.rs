//! Parses a [`Request`] of the program and refuses every request that could be interpreted in two
//! ways.

use super::{
    body::Framing,
    event_log::RequestSummary,
    head::{HeadError, Headers},
    refusal::{Refusal, RefusalResponse},
};
use crate::{
    host::{Host, HostError},
    limits,
    policy::Scheme,
};

/// A request whose head was read and parsed.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) method: String,
    pub(super) target: Target,
    pub(super) version: Version,
    pub(super) headers: Headers,
    pub(super) framing: Framing,
}

/// The request target, in one of three forms of RFC 9112.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// `CONNECT example.com:443`
    Tunnel(Endpoint),
    /// `GET http://example.com/path`
    Absolute(Endpoint, String),
    /// `GET /path`
    Origin(String),
}

/// A host with the port as written, if any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Endpoint {
    pub(super) host: Host,
    pub(super) port: Option<u16>,
}

/// The supported HTTP versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    /// HTTP/1.0: has no chunked bodies and needs no `Host` header.
    Http10,
    Http11,
}

/// Returns the default port of a scheme.
pub(super) fn default_port(scheme: Scheme) -> u16 {
    match scheme {
        Scheme::Http => 80,
        Scheme::Https => 443,
    }
}

/// Checks that a line is the first line of an HTTP/1 request.
pub(super) fn check_first_line(line: &[u8]) -> Result<(), &'static str> {
    if line.ends_with(b" HTTP/1.1") || line.ends_with(b" HTTP/1.0") {
        Ok(())
    } else if line == b"PRI * HTTP/2.0" {
        Err("is HTTP/2; only HTTP/1.1 is supported")
    } else {
        Err("does not start like an HTTP/1.1 request")
    }
}

/// Returns the refusal for a head that could not be read, or `None` if the program has
/// disconnected.
pub(super) fn refuse_head(error: &HeadError) -> Option<RefusalResponse> {
    match error {
        HeadError::Closed => None,
        HeadError::Slow => {
            Some(RefusalResponse::new(Refusal::TooSlow, "the request was not complete in time"))
        }
        HeadError::Malformed(why) => {
            Some(RefusalResponse::bad_request(format!("the request {why}")))
        }
    }
}

impl Request {
    /// Parses a head. `summary` receives the parts that could be read, even if the request is refused.
    pub(super) fn parse(
        head: &[u8],
        summary: &mut RequestSummary,
    ) -> Result<Self, RefusalResponse> {
        let malformed = |why: &str| RefusalResponse::bad_request(format!("the request {why}"));
        let mut headers = [httparse::EMPTY_HEADER; limits::MAX_HEADERS];
        let mut parsed = httparse::Request::new(&mut headers);
        match parsed.parse(head) {
            Ok(httparse::Status::Complete(length)) if length == head.len() => {}
            Ok(_) => return Err(malformed("has more than one head")),
            Err(error) => return Err(malformed(&format!("cannot be read: {error}"))),
        }
        let (Some(method), Some(target), Some(version)) =
            (parsed.method, parsed.path, parsed.version)
        else {
            return Err(malformed("has no first line"));
        };
        let is_method_byte = |byte: u8| byte.is_ascii_uppercase() || matches!(byte, b'-' | b'_');
        if method.len() > 32 || !method.bytes().all(is_method_byte) {
            return Err(malformed("has a method that is not in capital letters"));
        }
        method.clone_into(&mut summary.method);
        if !target.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(malformed("has a target that is not in visible ASCII"));
        }
        if target.contains(['\\', '#']) {
            return Err(malformed("has a target with a backslash or a fragment"));
        }
        let headers = Headers::new(parsed.headers);
        let framing = Framing::of(&headers).map_err(malformed)?.unwrap_or(Framing::Empty);
        let version = if version == 0 { Version::Http10 } else { Version::Http11 };
        if version == Version::Http10 && framing == Framing::Chunked {
            return Err(malformed("has chunks, which HTTP/1.0 does not support"));
        }
        let target = Target::parse(method, target, summary)?;
        Ok(Self { method: method.to_owned(), target, version, headers, framing })
    }

    /// Checks that the `Host` header names the host that the proxy connects to. A different name in
    /// each place is a way to bypass filters.
    pub(super) fn check_host_header(
        &self,
        endpoint: &Endpoint,
        scheme: Scheme,
    ) -> Result<(), RefusalResponse> {
        let named = self
            .headers
            .single("host")
            .map_err(|_| RefusalResponse::bad_request("the request has two Host headers"))?;
        let is_tunnel = matches!(self.target, Target::Tunnel(_));
        let Some(named) = named else {
            // Older Python versions open tunnels with HTTP/1.0 and without a `Host` header.
            return if is_tunnel && self.version == Version::Http10 {
                Ok(())
            } else {
                Err(RefusalResponse::bad_request("the request has no Host header"))
            };
        };
        let named = std::str::from_utf8(named)
            .ok()
            .and_then(|named| Endpoint::parse(named).ok())
            .ok_or_else(|| {
            RefusalResponse::new(Refusal::BadHost, "the Host header is not a host")
        })?;
        let port = endpoint.port(scheme);
        let same_port = match named.port {
            Some(named) => named == port,
            None => is_tunnel || port == default_port(scheme),
        };
        if named.host == endpoint.host && same_port {
            return Ok(());
        }
        Err(RefusalResponse::new(
            Refusal::HostMismatch,
            format!("the request is for {}, its Host header says {}", endpoint.host, named.host),
        ))
    }

    /// Returns whether the request wants to switch to another protocol, which could not be
    /// filtered.
    pub(super) fn wants_upgrade(&self) -> bool {
        self.headers.has("upgrade") || self.headers.lists("connection", "upgrade")
    }

    /// Returns whether a header asks the host to treat the method as another one.
    pub(super) fn overrides_method(&self) -> bool {
        ["x-http-method-override", "x-http-method", "x-method-override"]
            .iter()
            .any(|name| self.headers.has(name))
    }

    /// Returns whether the program waits for `100 Continue` before it sends the body.
    pub(super) fn expects_continue(&self) -> bool {
        self.version == Version::Http11
            && self.has_body()
            && self.headers.lists("expect", "100-continue")
    }

    pub(super) fn has_body(&self) -> bool {
        !matches!(self.framing, Framing::Empty | Framing::Length(0))
    }
}

impl Target {
    fn parse(
        method: &str,
        target: &str,
        summary: &mut RequestSummary,
    ) -> Result<Self, RefusalResponse> {
        let mut endpoint = |text: &str| {
            Endpoint::parse(text).map_err(|error| {
                summary.set_raw_host(text);
                RefusalResponse::new(Refusal::BadHost, error.to_string())
            })
        };
        if method == "CONNECT" {
            let endpoint = endpoint(target)?;
            return match endpoint.port {
                Some(_) => Ok(Self::Tunnel(endpoint)),
                None => Err(RefusalResponse::bad_request("a tunnel needs a port")),
            };
        }
        if target.starts_with('/') {
            summary.set_path(target);
            return Ok(Self::Origin(target.to_owned()));
        }
        let Some((scheme, rest)) = target.split_once("://") else {
            return Err(RefusalResponse::bad_request("the target is neither a URL nor a path"));
        };
        if scheme.eq_ignore_ascii_case("https") {
            return Err(RefusalResponse::bad_request("https needs a tunnel: open it with CONNECT"));
        }
        if !scheme.eq_ignore_ascii_case("http") {
            return Err(RefusalResponse::bad_request("only http and https are supported"));
        }
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        let endpoint = endpoint(authority)?;
        summary.set_path(&path);
        Ok(Self::Absolute(endpoint, path))
    }
}

impl Endpoint {
    /// Parses `host` or `host:port`; a user name is an error.
    pub(super) fn parse(text: &str) -> Result<Self, HostError> {
        let bracket = text.rfind(']').map_or(0, |at| at + 1);
        let colon = text.get(bracket..).and_then(|rest| rest.rfind(':')).map(|at| at + bracket);
        let Some((host, port)) = colon.and_then(|at| text.split_at_checked(at)) else {
            return Ok(Self { host: Host::parse(text)?, port: None });
        };
        let host = Host::parse(host)?;
        let digits = port.strip_prefix(':').unwrap_or(port);
        match digits.parse::<u16>() {
            Ok(port) if port > 0 && port.to_string() == digits => {
                Ok(Self { host, port: Some(port) })
            }
            _ => Err(HostError::Port(digits.chars().take(8).collect())),
        }
    }

    /// Returns the port to connect to.
    pub(super) fn port(&self, scheme: Scheme) -> u16 {
        self.port.unwrap_or(default_port(scheme))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proxy::head;

    /// Parses a request like the proxy: first the head, then the request line, then the `Host`
    /// header.
    fn outcome(text: &[u8]) -> Result<Request, Refusal> {
        let mut reader = std::io::BufReader::new(text);
        let head = head::read(&mut reader, check_first_line).map_err(|error| {
            refuse_head(&error).map_or(Refusal::Unreachable, |refused| refused.reason)
        })?;
        let request = Request::parse(&head, &mut RequestSummary::default())
            .map_err(|refused| refused.reason)?;
        let (endpoint, scheme) = match &request.target {
            Target::Tunnel(endpoint) => (endpoint.clone(), Scheme::Https),
            Target::Absolute(endpoint, _) => (endpoint.clone(), Scheme::Http),
            Target::Origin(_) => return Ok(request),
        };
        request.check_host_header(&endpoint, scheme).map_err(|refused| refused.reason)?;
        Ok(request)
    }

    #[test]
    fn good_requests() {
        for text in [
            "GET http://brave.com/ HTTP/1.1\r\nHost: brave.com\r\n\r\n",
            "GET http://brave.com HTTP/1.1\r\nHost: brave.com:80\r\n\r\n",
            "GET HTTP://BRAVE.com./a?b HTTP/1.1\r\nhost: Brave.COM\r\n\r\n",
            "GET http://brave.com:8080/ HTTP/1.0\r\nHost: brave.com:8080\r\n\r\n",
            "GET http://[::1]:8080/ HTTP/1.1\r\nHost: [::1]:8080\r\n\r\n",
            "CONNECT brave.com:443 HTTP/1.1\r\nHost: brave.com:443\r\n\r\n",
            "CONNECT brave.com:443 HTTP/1.1\r\nHost: brave.com\r\n\r\n",
            "CONNECT brave.com:443 HTTP/1.0\r\n\r\n",
            "POST /a HTTP/1.1\r\nHost: brave.com\r\nTransfer-Encoding: Chunked\r\n\r\n",
        ] {
            outcome(text.as_bytes()).unwrap_or_else(|reason| panic!("{text:?}: {reason:?}"));
        }
    }

    #[test]
    fn requests_with_two_readings() {
        use Refusal::{BadHost, BadRequest, HostMismatch};
        for (text, expected) in [
            // Invalid hosts.
            ("GET http://brave.com\0.evil.com/ HTTP/1.1\r\nHost: a\r\n\r\n", BadRequest),
            ("GET http://brave.com%00.evil.com/ HTTP/1.1\r\nHost: a\r\n\r\n", BadHost),
            ("GET http://brave.com../ HTTP/1.1\r\nHost: brave.com\r\n\r\n", BadHost),
            ("GET http://user@brave.com/ HTTP/1.1\r\nHost: brave.com\r\n\r\n", BadHost),
            ("GET http://brave.com:80@evil.com/ HTTP/1.1\r\nHost: brave.com\r\n\r\n", BadHost),
            ("GET http://brave.com\\@evil.com/ HTTP/1.1\r\nHost: brave.com\r\n\r\n", BadRequest),
            ("GET http://brave.com#@evil.com/ HTTP/1.1\r\nHost: brave.com\r\n\r\n", BadRequest),
            ("GET http://0x7f.1/ HTTP/1.1\r\nHost: 0x7f.1\r\n\r\n", BadHost),
            ("GET http://2130706433/ HTTP/1.1\r\nHost: 2130706433\r\n\r\n", BadHost),
            ("GET http://017700000001/ HTTP/1.1\r\nHost: 017700000001\r\n\r\n", BadHost),
            ("GET http://127.1/ HTTP/1.1\r\nHost: 127.1\r\n\r\n", BadHost),
            ("GET http://[::ffff:127.0.0.1]/ HTTP/1.1\r\nHost: a\r\n\r\n", BadHost),
            ("GET http://[fe80::1%25eth0]/ HTTP/1.1\r\nHost: a\r\n\r\n", BadHost),
            ("GET http:/// HTTP/1.1\r\nHost: brave.com\r\n\r\n", BadHost),
            ("GET http://b\u{fc}cher.example/ HTTP/1.1\r\nHost: a\r\n\r\n", BadRequest),
            ("GET http://brave.com:/ HTTP/1.1\r\nHost: brave.com\r\n\r\n", BadHost),
            ("GET http://brave.com:080/ HTTP/1.1\r\nHost: brave.com\r\n\r\n", BadHost),
            ("GET http://brave.com:+80/ HTTP/1.1\r\nHost: brave.com\r\n\r\n", BadHost),
            ("GET http://brave.com:65616/ HTTP/1.1\r\nHost: brave.com\r\n\r\n", BadHost),
            ("GET http://brave.com:0/ HTTP/1.1\r\nHost: brave.com:0\r\n\r\n", BadHost),
            ("CONNECT brave.com HTTP/1.1\r\nHost: brave.com\r\n\r\n", BadRequest),
            ("CONNECT https://brave.com:443 HTTP/1.1\r\nHost: brave.com\r\n\r\n", BadHost),
            ("CONNECT brave.com\0:443 HTTP/1.1\r\nHost: brave.com\r\n\r\n", BadRequest),
            // The `Host` header contradicts the target.
            ("GET http://brave.com/ HTTP/1.1\r\nHost: evil.com\r\n\r\n", HostMismatch),
            ("GET http://brave.com/ HTTP/1.1\r\nHost: brave.com:81\r\n\r\n", HostMismatch),
            ("GET http://brave.com:81/ HTTP/1.1\r\nHost: brave.com\r\n\r\n", HostMismatch),
            ("GET http://brave.com/ HTTP/1.1\r\nHost: brave.com.evil.com\r\n\r\n", HostMismatch),
            ("CONNECT brave.com:443 HTTP/1.1\r\nHost: evil.com:443\r\n\r\n", HostMismatch),
            ("CONNECT brave.com:443 HTTP/1.1\r\nHost: brave.com:22\r\n\r\n", HostMismatch),
            ("GET http://brave.com/ HTTP/1.1\r\nHost: a@brave.com\r\n\r\n", BadHost),
            ("GET http://brave.com/ HTTP/1.1\r\n\r\n", BadRequest),
            ("GET http://brave.com/ HTTP/1.0\r\n\r\n", BadRequest),
            ("CONNECT brave.com:443 HTTP/1.1\r\n\r\n", BadRequest),
            (
                "GET http://brave.com/ HTTP/1.1\r\nHost: brave.com\r\nHost: brave.com\r\n\r\n",
                BadRequest,
            ),
            // Invalid request lines.
            ("GET https://brave.com/ HTTP/1.1\r\nHost: brave.com\r\n\r\n", BadRequest),
            ("GET ftp://brave.com/ HTTP/1.1\r\nHost: brave.com\r\n\r\n", BadRequest),
            ("GET brave.com HTTP/1.1\r\nHost: brave.com\r\n\r\n", BadRequest),
            ("OPTIONS * HTTP/1.1\r\nHost: brave.com\r\n\r\n", BadRequest),
            ("get http://brave.com/ HTTP/1.1\r\nHost: brave.com\r\n\r\n", BadRequest),
            ("GET  http://brave.com/ HTTP/1.1\r\nHost: brave.com\r\n\r\n", BadRequest),
            ("GET http://brave.com/ HTTP/1.1 \r\nHost: brave.com\r\n\r\n", BadRequest),
            ("GET http://brave.com/\r\n", BadRequest),
            ("GET http://brave.com/ HTTP/0.9\r\nHost: brave.com\r\n\r\n", BadRequest),
            ("GET http://brave.com/ HTTP/2.0\r\nHost: brave.com\r\n\r\n", BadRequest),
            ("GET http://brave.com/ HTTP/1.2\r\nHost: brave.com\r\n\r\n", BadRequest),
            ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", BadRequest),
            ("\r\nGET http://brave.com/ HTTP/1.1\r\nHost: brave.com\r\n\r\n", BadRequest),
            ("GET / HTTP/1.1\nHost: brave.com\n\n", BadRequest),
            ("GET / HTTP/1.1\r\nHost : brave.com\r\n\r\n", BadRequest),
            ("GET / HTTP/1.1\r\nHost: brave.com\r\n X: folded\r\n\r\n", BadRequest),
            ("GET / HTTP/1.1\r\n: nameless\r\n\r\n", BadRequest),
            ("GET / HTTP/1.1\r\nno colon\r\n\r\n", BadRequest),
            // Ambiguous bodies.
            ("POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n", BadRequest),
            ("POST / HTTP/1.1\r\nContent-Length: 1, 1\r\n\r\n", BadRequest),
            ("POST / HTTP/1.1\r\nContent-Length: +1\r\n\r\n", BadRequest),
            ("POST / HTTP/1.1\r\nContent-Length: 0x1\r\n\r\n", BadRequest),
            ("POST / HTTP/1.1\r\nContent-Length:\r\n\r\n", BadRequest),
            ("POST / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n", BadRequest),
            (
                "POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
                BadRequest,
            ),
            ("POST / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", BadRequest),
            ("POST / HTTP/1.1\r\nTransfer-Encoding: xchunked\r\n\r\n", BadRequest),
            ("POST / HTTP/1.1\r\nTransfer-Encoding: \"chunked\"\r\n\r\n", BadRequest),
            (
                "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n",
                BadRequest,
            ),
            ("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", BadRequest),
        ] {
            match outcome(text.as_bytes()) {
                Err(reason) => assert_eq!(reason, expected, "{text:?}"),
                Ok(request) => panic!("{text:?} was read as {:?}", request.target),
            }
        }
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(limits::MAX_HEADERS + 1));
        assert_eq!(outcome(many.as_bytes()).unwrap_err(), BadRequest);
    }

    proptest::proptest! {
        /// No input from a program makes the parser panic.
        #[test]
        fn never_panics(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..300)) {
            let _ = outcome(&bytes);
            let framed = [b"GET http://", bytes.as_slice(), b" HTTP/1.1\r\nHost: a\r\n\r\n"];
            let _ = outcome(&framed.concat());
            let _ = Endpoint::parse(&String::from_utf8_lossy(&bytes));
        }
    }
}
