//! Downloads files over HTTPS, within limits, and never from a private network if a public host
//! referred to it.

mod reach;

use std::{
    error::Error,
    sync::{Arc, OnceLock},
    time::Duration,
};

use reqwest::{Certificate, Client, Response, StatusCode, header::LOCATION, redirect::Policy};
use tokio::time::timeout;
use url::Url;

use self::reach::{PublicOnly, is_private};
pub(crate) use self::reach::{Reach, check};
use super::{Progress, Settings, SourceError};
use crate::limits::MAX_REDIRECTS;

/// Timeout for establishing a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);

/// A downloaded file.
#[derive(Debug)]
pub(super) struct LoadedFile {
    pub(super) bytes: Vec<u8>,
    /// The final URL after redirects.
    pub(super) url: Url,
    /// Which hosts the content may refer to.
    pub(super) reach: Reach,
}

/// HTTP clients, created on demand because reading the system's certificates is slow.
#[derive(Debug, Default)]
pub(crate) struct Http {
    anywhere: OnceLock<Client>,
    public: OnceLock<Client>,
    here: OnceLock<Client>,
}

impl Http {
    /// Downloads a file of at most `limit` bytes.
    pub(super) async fn get(
        &self,
        settings: &Settings,
        url: &Url,
        reach: Reach,
        limit: u64,
    ) -> Result<LoadedFile, SourceError> {
        let waited = settings.http_timeout;
        let loaded = timeout(waited, self.follow(settings, url, reach, limit)).await;
        loaded.map_err(|_| SourceError::TimedOut { place: shown(url), waited })?
    }

    async fn follow(
        &self,
        settings: &Settings,
        url: &Url,
        mut reach: Reach,
        limit: u64,
    ) -> Result<LoadedFile, SourceError> {
        settings.report_progress(Progress::Asking { place: shown(url) });
        let mut url = url.clone();
        for _ in 0..=MAX_REDIRECTS {
            let response = self.ask(&url, reach).await?;
            reach = reach.after(&url, response.remote_addr());
            let Some(target) = next(&url, &response)? else {
                let bytes = body(settings, &url, response, limit).await?;
                return Ok(LoadedFile { bytes, url, reach });
            };
            url = target;
        }
        Err(SourceError::Address { address: shown(&url), why: "it was redirected too often" })
    }

    async fn ask(&self, url: &Url, reach: Reach) -> Result<Response, SourceError> {
        check(url)?;
        let client = self.client(url, reach)?;
        client.get(url.clone()).send().await.map_err(|error| unreachable(url, &error))
    }

    /// Returns the client for a URL. It does not follow redirects.
    pub(crate) fn client(&self, url: &Url, reach: Reach) -> Result<&Client, SourceError> {
        if reach == Reach::Public && is_private(url) {
            let why = "a public host sent us there, and it is private";
            return Err(SourceError::Address { address: shown(url), why });
        }
        // Only this machine may be contacted without encryption.
        let is_here = url.scheme() == "http";
        let slot = match reach {
            _ if is_here => &self.here,
            Reach::Anywhere => &self.anywhere,
            Reach::Public => &self.public,
        };
        if let Some(client) = slot.get() {
            return Ok(client);
        }
        let mut builder = Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .redirect(Policy::none())
            .user_agent(concat!("savoir/", env!("CARGO_PKG_VERSION")));
        if is_here {
            // No proxy can reach this machine, and no certificates are needed.
            builder = builder.no_proxy().tls_certs_only([]);
        }
        for certificate in certificates().iter().filter(|_| !is_here) {
            builder = builder.add_root_certificate(certificate.clone());
        }
        if reach == Reach::Public {
            builder = builder.dns_resolver(Arc::new(PublicOnly));
        }
        let client = builder.build().map_err(|error| SourceError::Client(error_chain(&error)))?;
        Ok(slot.get_or_init(|| client))
    }
}

/// Reads additional certificates that the user trusts from the file that curl also uses.
/// `SSL_CERT_FILE` and `SSL_CERT_DIR` already replace those of the system.
fn certificates() -> Vec<Certificate> {
    let Some(path) = std::env::var_os("CURL_CA_BUNDLE") else { return Vec::new() };
    let bundle = std::fs::read(path).ok();
    bundle.and_then(|bytes| Certificate::from_pem_bundle(&bytes).ok()).unwrap_or_default()
}

/// Returns the target of a redirect; `None` if the response is the file.
fn next(url: &Url, response: &Response) -> Result<Option<Url>, SourceError> {
    let status = response.status();
    if status.is_success() {
        return Ok(None);
    }
    let refused = || SourceError::Status { address: shown(url), status: status.as_u16() };
    if !status.is_redirection() || status == StatusCode::NOT_MODIFIED {
        return Err(refused());
    }
    let target = response.headers().get(LOCATION).and_then(|target| target.to_str().ok());
    target.map(|target| redirect_url(url, target)).ok_or_else(refused)?.map(Some)
}

/// Returns the target of a redirect. A redirect from HTTPS to HTTP is rejected.
pub(crate) fn redirect_url(url: &Url, target: &str) -> Result<Url, SourceError> {
    let refused = |why| SourceError::Address { address: shown(url), why };
    let target = url.join(target).map_err(|_| refused("it redirects without an address"))?;
    if url.scheme() == "https" && target.scheme() == "http" {
        return Err(refused("it was sent to an address without encryption"));
    }
    Ok(target)
}

async fn body(
    settings: &Settings,
    url: &Url,
    mut response: Response,
    limit: u64,
) -> Result<Vec<u8>, SourceError> {
    let too_large = || SourceError::TooLarge { place: shown(url), limit };
    let of = response.content_length();
    if of.is_some_and(|length| length > limit) {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| unreachable(url, &error))? {
        if (bytes.len() + chunk.len()) as u64 > limit {
            return Err(too_large());
        }
        bytes.extend_from_slice(&chunk);
        settings.report_progress(Progress::Received {
            place: shown(url),
            bytes: bytes.len() as u64,
            of,
        });
    }
    Ok(bytes)
}

pub(crate) fn unreachable(url: &Url, error: &reqwest::Error) -> SourceError {
    let host = url.host_str().unwrap_or_default();
    let host = match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    };
    SourceError::Unreachable { host, why: error_chain(error) }
}

/// Formats an error with its causes, without the URL.
fn error_chain(error: &(dyn Error + 'static)) -> String {
    let mut texts: Vec<String> = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next {
        // The error of the client repeats the URL.
        let text = if error.is::<reqwest::Error>() { String::new() } else { error.to_string() };
        if !text.is_empty() && !texts.iter().any(|before| before.contains(&text)) {
            texts.push(text);
        }
        next = error.source();
    }
    if texts.is_empty() { "the request failed".to_owned() } else { texts.join(": ") }
}

/// Formats a URL without secrets.
pub(crate) fn shown(url: &Url) -> String {
    let mut url = url.clone();
    // Cannot fail for a URL with a host.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_query(None);
    url.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn redirect_from_https_to_http_is_rejected() {
        let from = url("https://x.example/a");
        assert_eq!(redirect_url(&from, "/b").unwrap().as_str(), "https://x.example/b");
        for target in ["http://x.example/b", "http://127.0.0.1/b", "https://"] {
            assert_eq!(
                redirect_url(&from, target).unwrap_err().code(),
                "address_refused",
                "{target}"
            );
        }
        assert!(redirect_url(&url("http://127.0.0.1/"), "http://127.0.0.1/b").is_ok());
    }

    #[tokio::test]
    async fn public_host_may_not_resolve_to_private_address() {
        let settings = Settings::new("unused".into());
        let http = Http::default();
        for target in [
            "http://127.0.0.1:1/", "https://192.168.0.1/", "https://[::ffff:10.0.0.1]/",
            "https://a.localhost/",
        ] {
            let refused = http.get(&settings, &url(target), Reach::Public, 1).await.unwrap_err();
            assert_eq!(refused.code(), "address_refused", "{target}: {refused}");
            assert!(refused.to_string().contains("it is private"), "{target}: {refused}");
        }
    }
}
