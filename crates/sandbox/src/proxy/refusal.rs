//! Lists the reasons why the proxy refuses a request ([`Refusal`]) and writes the response for the
//! program.

use serde::Serialize;

/// Why the proxy refused a request. The serialized names are part of stored run records and must
/// not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Refusal {
    /// No grant names the host.
    HostNotGranted,
    /// The host is granted only with the other scheme.
    SchemeNotGranted,
    /// The host is granted only on other ports.
    PortNotGranted,
    /// The host is granted only below other paths, or the path is ambiguous.
    PathNotGranted,
    /// The host is granted only with other methods.
    MethodNotGranted,
    /// The host is granted only for requests that send data.
    ReadingNotGranted,
    /// The name resolves only to addresses that are not public.
    PrivateAddress,
    /// The request target, the `Host` header and the TLS server name do not name the same host.
    HostMismatch,
    /// The host name cannot be parsed safely.
    BadHost,
    /// The bytes are not a request, or the request is ambiguous.
    BadRequest,
    /// The program used something other than TLS in a tunnel.
    OpaqueTunnel,
    /// The TLS handshake failed; usually the program does not trust the certificate authority of
    /// the run.
    TlsFailed,
    /// The request wanted to switch to another protocol.
    Upgrade,
    /// The program opened too many concurrent connections.
    TooManyConnections,
    /// The request was not complete in time.
    TooSlow,
    /// The host could not be reached.
    Unreachable,
    /// The host's response is not HTTP, or is ambiguous.
    BadResponse,
}

/// A refusal with a text for the program.
#[derive(Debug)]
pub(super) struct RefusalResponse {
    pub(super) reason: Refusal,
    text: String,
}

impl RefusalResponse {
    /// Creates a refusal. `text` may contain only validated names and fixed text, never raw input.
    pub(super) fn new(reason: Refusal, text: impl Into<String>) -> Self {
        Self { reason, text: text.into() }
    }

    /// Creates the refusal of a malformed or ambiguous request.
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
            | Refusal::ReadingNotGranted
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

    /// Returns the whole HTTP response.
    pub(super) fn to_http(&self) -> Vec<u8> {
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
