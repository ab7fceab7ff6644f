//! [`Refusal`]: why a request did not leave, and how the program is told.

use serde::Serialize;

/// Why a request did not leave. The codes are part of the record of a run and stay as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Refusal {
    /// No grant names the host.
    HostNotGranted,
    /// The host is granted, with the other scheme.
    SchemeNotGranted,
    /// The host is granted, on another port.
    PortNotGranted,
    /// The host is granted, below another path; or the path has two readings.
    PathNotGranted,
    /// The host is granted, with other methods.
    MethodNotGranted,
    /// The name leads only to addresses that are not public.
    PrivateAddress,
    /// Target, `Host` and SNI do not name the same host.
    HostMismatch,
    /// The host has no safe reading.
    BadHost,
    /// Not a request, or one with two readings.
    BadRequest,
    /// Something other than TLS in a tunnel.
    OpaqueTunnel,
    /// The handshake failed: most often the program does not trust the authority of the run.
    TlsFailed,
    /// The connection should have become another protocol.
    Upgrade,
    /// More connections at once than a program has a reason to open.
    TooManyConnections,
    /// The request was not complete in time.
    TooSlow,
    /// No connection to the host.
    Unreachable,
    /// The host's answer is not HTTP, or has two readings.
    BadResponse,
}

/// A refusal with the sentence for the program.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) reason: Refusal,
    text: String,
}

impl Refused {
    /// The text must hold nothing but checked names and our own words.
    pub(super) fn new(reason: Refusal, text: impl Into<String>) -> Self {
        Self { reason, text: text.into() }
    }

    /// Two readings, or none.
    pub(super) fn bad_request(text: impl Into<String>) -> Self {
        Self::new(Refusal::BadRequest, text)
    }

    fn status(&self) -> &'static str {
        match self.reason {
            Refusal::HostNotGranted
            | Refusal::SchemeNotGranted
            | Refusal::PortNotGranted
            | Refusal::PathNotGranted
            | Refusal::MethodNotGranted
            | Refusal::PrivateAddress
            | Refusal::OpaqueTunnel
            | Refusal::TlsFailed
            | Refusal::Upgrade => "403 Forbidden",
            Refusal::BadHost | Refusal::BadRequest => "400 Bad Request",
            Refusal::TooSlow => "408 Request Timeout",
            Refusal::HostMismatch => "421 Misdirected Request",
            Refusal::Unreachable | Refusal::BadResponse => "502 Bad Gateway",
            Refusal::TooManyConnections => "503 Service Unavailable",
        }
    }

    /// The whole answer.
    pub(super) fn answer(&self) -> Vec<u8> {
        let body = format!("savoir: {}\n", self.text);
        format!(
            "HTTP/1.1 {}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n{body}",
            self.status(),
            body.len(),
        )
        .into_bytes()
    }
}
