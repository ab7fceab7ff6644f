//! Handles TLS on both sides: the certificate [`CertificateAuthority`] that the program trusts, and the
//! verification of hosts.

use std::{
    collections::HashMap,
    fmt,
    io::{self, Read, Write},
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose, SanType, SerialNumber,
};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection,
    client::Resumption,
    crypto::{CryptoProvider, aws_lc_rs},
    server::{Acceptor, NoServerSessionStorage},
};
use rustls_pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName};

use super::{ProxyError, refusal::Refusal, stream::TimedSocket};
use crate::host::Host;

/// The only protocol inside TLS; no other is offered, so no other can be negotiated.
const ALPN: &[u8] = b"http/1.1";
/// The size of the cache of host certificates; with more hosts, certificates are created again.
const MAX_CACHED_CERTIFICATES: usize = 64;
const DAY: Duration = Duration::from_hours(24);

/// Returns the crypto provider. It is passed explicitly everywhere, because a library should not
/// set the default of the process.
fn provider() -> Arc<CryptoProvider> {
    static PROVIDER: OnceLock<Arc<CryptoProvider>> = OnceLock::new();
    PROVIDER.get_or_init(|| Arc::new(aws_lc_rs::default_provider())).clone()
}

pub(super) fn fill_random(bytes: &mut [u8]) -> Result<(), ProxyError> {
    provider().secure_random.fill(bytes).map_err(|_| ProxyError::Random)
}

/// A certificate authority that certifies every host to the program of one run. Its key never
/// leaves memory, and its certificate is only in the root file system of that run.
pub(crate) struct CertificateAuthority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    pem: String,
    server_configs: Mutex<HashMap<Host, Arc<ServerConfig>>>,
    serial: AtomicU64,
}

impl fmt::Debug for CertificateAuthority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authority").finish_non_exhaustive()
    }
}

impl CertificateAuthority {
    /// Creates a key and a certificate; takes a fraction of a millisecond.
    pub(crate) fn new() -> Result<Self, ProxyError> {
        let mut params = certificate_params("savoir, for one run")?;
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let issuer = CertifiedIssuer::self_signed(params, new_key_pair()?)?;
        let pem = issuer.pem();
        Ok(Self { issuer, pem, server_configs: Mutex::default(), serial: AtomicU64::new(1) })
    }

    /// Returns the certificate that the program has to trust.
    pub(crate) fn certificate_pem(&self) -> &str {
        &self.pem
    }

    fn server_config(&self, host: &Host) -> Result<Arc<ServerConfig>, ProxyError> {
        let mut server_configs = self.server_configs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(config) = server_configs.get(host) {
            return Ok(Arc::clone(config));
        }
        let mut params = certificate_params("savoir, for one host")?;
        params.subject_alt_names = vec![match (host.address(), host.name()) {
            (Some(address), _) => SanType::IpAddress(address),
            (None, name) => SanType::DnsName(name.unwrap_or_default().try_into()?),
        }];
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        // Some clients refuse two certificates of one issuer with the same serial number.
        let serial = self.serial.fetch_add(1, Ordering::Relaxed).to_be_bytes();
        params.serial_number = Some(SerialNumber::from_slice(&serial));
        let key = new_key_pair()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        let key = PrivatePkcs8KeyDer::from(key.serialize_der());
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key.into())?;
        config.alpn_protocols = vec![ALPN.to_vec()];
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        let config = Arc::new(config);
        if server_configs.len() >= MAX_CACHED_CERTIFICATES {
            server_configs.clear();
        }
        server_configs.insert(host.clone(), Arc::clone(&config));
        Ok(config)
    }

    /// Accepts the program's TLS handshake with a certificate for a host.
    pub(super) fn accept(
        &self,
        host: &Host,
        socket: &mut TimedSocket,
    ) -> Result<(ServerConnection, Sni), Refusal> {
        let mut acceptor = Acceptor::default();
        let accepted = loop {
            if acceptor.read_tls(socket).map_err(|_| Refusal::TlsFailed)? == 0 {
                return Err(Refusal::TlsFailed);
            }
            match acceptor.accept() {
                Ok(Some(accepted)) => break accepted,
                Ok(None) => {}
                Err((_, mut alert)) => {
                    let _ = alert.write_all(socket);
                    return Err(Refusal::OpaqueTunnel);
                }
            }
        };
        let sni = match accepted.client_hello().server_name() {
            Some(name) if Host::parse(name).as_ref() == Ok(host) => Sni::Matches,
            // Clients send no server name for IP addresses.
            None if host.address().is_some() => Sni::Matches,
            _ => Sni::Differs,
        };
        // A program that asked for another name gets this host's certificate, and disconnects if it
        // verifies it.
        let failed = match sni {
            Sni::Matches => Refusal::TlsFailed,
            Sni::Differs => Refusal::HostMismatch,
        };
        let config = self.server_config(host).map_err(|_| failed)?;
        let mut connection = accepted.into_connection(config).map_err(|(_, mut alert)| {
            let _ = alert.write_all(socket);
            failed
        })?;
        finish_handshake(&mut connection, socket).map_err(|_| failed)?;
        Ok((connection, sni))
    }
}

/// Whether the server name in the handshake is the host of the tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sni {
    Matches,
    Differs,
}

fn new_key_pair() -> Result<KeyPair, ProxyError> {
    Ok(KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256)?)
}

/// Creates parameters for a certificate that is valid from yesterday, since clocks differ, for
/// longer than any run.
fn certificate_params(name: &str) -> Result<CertificateParams, ProxyError> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    let mut params = CertificateParams::new(Vec::<String>::new())?;
    params.not_before = epoch + now.saturating_sub(DAY);
    params.not_after = epoch + now + DAY * 30;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    Ok(params)
}

/// The root certificates with which the proxy verifies hosts.
#[derive(Debug)]
pub(super) struct HostVerifier {
    extra: Vec<CertificateDer<'static>>,
    /// Created for the first host over TLS: most runs have none, and loading the roots takes
    /// milliseconds.
    config: OnceLock<Arc<ClientConfig>>,
}

impl HostVerifier {
    pub(super) fn new(extra: Vec<CertificateDer<'static>>) -> Self {
        Self { extra, config: OnceLock::new() }
    }

    fn config(&self) -> Result<Arc<ClientConfig>, rustls::Error> {
        if let Some(config) = self.config.get() {
            return Ok(Arc::clone(config));
        }
        let mut roots = native_roots().clone();
        roots.add_parsable_certificates(self.extra.iter().cloned());
        let mut config = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![ALPN.to_vec()];
        config.resumption = Resumption::disabled();
        Ok(Arc::clone(self.config.get_or_init(|| Arc::new(config))))
    }

    /// Starts TLS with a host and verifies its certificate.
    pub(super) fn connect(
        &self,
        host: &Host,
        socket: &mut TimedSocket,
    ) -> io::Result<ClientConnection> {
        let name = match (host.address(), host.name()) {
            (Some(address), _) => ServerName::IpAddress(address.into()),
            (None, name) => ServerName::try_from(name.unwrap_or_default().to_owned())
                .map_err(io::Error::other)?,
        };
        let config = self.config().map_err(io::Error::other)?;
        let mut connection = ClientConnection::new(config, name).map_err(io::Error::other)?;
        finish_handshake(&mut connection, socket)?;
        Ok(connection)
    }
}

/// Returns the system's root certificates, loaded once per process.
fn native_roots() -> &'static RootCertStore {
    static ROOTS: OnceLock<RootCertStore> = OnceLock::new();
    ROOTS.get_or_init(|| {
        let mut roots = RootCertStore::empty();
        // Without root certificates every handshake fails and reports the reason.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        roots
    })
}

fn finish_handshake<Data>(
    connection: &mut rustls::ConnectionCommon<Data>,
    socket: &mut (impl Read + Write),
) -> io::Result<()> {
    while connection.is_handshaking() {
        connection.complete_io(socket)?;
    }
    // The last messages may still be unsent.
    while connection.wants_write() {
        connection.write_tls(socket)?;
    }
    Ok(())
}
