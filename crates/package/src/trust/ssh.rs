//! Signs and verifies in the format of `ssh-keygen -Y sign` and `ssh-keygen -Y verify`.
//!
//! The signed message is the bytes of the record in `signature.json`, in the namespace
//! [`NAMESPACE`], so that signatures made for other purposes, such as commits, are rejected.
//! Ed25519, P-256 and RSA keys are supported, and Ed25519 keys on hardware tokens.

use std::{
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use aws_lc_rs::{
    rsa::PublicKeyComponents,
    signature::{
        ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA512,
        UnparsedPublicKey,
    },
};
use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, STANDARD_NO_PAD},
};
use sha2::{Digest as _, Sha256, Sha512};
use thiserror::Error;
use zeroize::Zeroizing;

use super::{
    KeyError, KeyKind, PublicKey, PublicKeyError, SigningKey, keys::refuse_readable, safe_file,
};

/// The namespace of signatures: `ssh-keygen -Y sign -n savoir-skill@v1 -f <key>`.
pub const NAMESPACE: &str = "savoir-skill@v1";

const MAGIC: &[u8] = b"SSHSIG";
const BEGIN: &str = "-----BEGIN SSH SIGNATURE-----";
const END: &str = "-----END SSH SIGNATURE-----";
const KEY_BEGIN: &str = "-----BEGIN OPENSSH PRIVATE KEY-----";
const KEY_END: &str = "-----END OPENSSH PRIVATE KEY-----";
const KEY_MAGIC: &[u8] = b"openssh-key-v1\0";

const SSH_ED25519: &[u8] = b"ssh-ed25519";
const SSH_TOKEN: &[u8] = b"sk-ssh-ed25519@openssh.com";
const SSH_P256: &[u8] = b"ecdsa-sha2-nistp256";
const SSH_RSA: &[u8] = b"ssh-rsa";

/// The flag that the user touched the token.
const USER_PRESENT: u8 = 1;

/// Maximum size of a key file.
const MAX_KEY_BYTES: u64 = 64 * 1024;

/// Why an OpenSSH signature is invalid or cannot be made.
#[derive(Debug, Error)]
pub enum SshError {
    #[error(
        "it is not a signature of OpenSSH: {0}; make it with `ssh-keygen -Y sign -n {NAMESPACE}`"
    )]
    Malformed(&'static str),
    /// It has another namespace.
    #[error("it was made for `{}`; make it with `ssh-keygen -Y sign -n {NAMESPACE}`", .0.escape_debug())]
    Namespace(String),
    /// The algorithm is not supported.
    #[error("`{}` is not known; sign with an Ed25519, P-256 or RSA key", .0.escape_debug())]
    Algorithm(String),
    /// The signature does not match the message.
    #[error("the signature of the key {0} does not hold; get the skill again from its publisher")]
    Wrong(String),
    /// The key cannot be used.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The key needs OpenSSH, which is not installed.
    #[error("{}: this key needs `ssh-keygen`, which could not be started: {error}; install OpenSSH", path.display())]
    Program { path: PathBuf, error: io::Error },
    /// `ssh-keygen` failed.
    #[error("{}: `ssh-keygen` refused: {message}", path.display())]
    Refused { path: PathBuf, message: String },
}

/// Signs bytes with the key in a file: a private key, or the public key of one in an agent or on a
/// token. Keys with a passphrase and keys of agents and tokens are used by `ssh-keygen`.
pub fn sign(path: &Path, message: &[u8]) -> Result<String, SshError> {
    let fail = |error| KeyError::Io { path: path.to_owned(), error };
    let opened = fs::File::open(path).map_err(fail)?;
    let text = Zeroizing::new(safe_file::read_open(&opened, MAX_KEY_BYTES).map_err(fail)?);
    if text.starts_with(KEY_BEGIN.as_bytes()) {
        refuse_readable(&opened, path)?;
    }
    match std::str::from_utf8(&text).ok().and_then(plain_key) {
        Some(key) => Ok(sign_with(&key, message)),
        None => sign_by_program(path, message),
    }
}

/// Signs bytes with one of Savoir's keys in the format of OpenSSH.
pub fn sign_with(key: &SigningKey, message: &[u8]) -> String {
    let public = public_key_blob(&key.public_bytes());
    let digest = Sha512::digest(message);
    let mut signature = Vec::new();
    push_string(&mut signature, SSH_ED25519);
    push_string(&mut signature, &key.sign(&signed_data(b"sha512", &digest)));

    let mut blob = MAGIC.to_vec();
    blob.extend(1_u32.to_be_bytes());
    for part in [&public[..], NAMESPACE.as_bytes(), b"", b"sha512", &signature] {
        push_string(&mut blob, part);
    }
    armour(&blob)
}

/// Returns an Ed25519 public key in the binary format of OpenSSH.
pub(super) fn public_key_blob(ed25519: &[u8]) -> Vec<u8> {
    let mut public = Vec::new();
    push_string(&mut public, SSH_ED25519);
    push_string(&mut public, ed25519);
    public
}

/// Returns the public key of one of Savoir's keys as a line of OpenSSH.
#[cfg(test)]
pub(super) fn public_key_text(key: &SigningKey) -> String {
    format!("ssh-ed25519 {}", STANDARD.encode(public_key_blob(&key.public_bytes())))
}

/// Returns the public key in a signature, without checking the signature.
pub(super) fn signer(armoured: &str) -> Result<PublicKey, SshError> {
    let blob = dearmour(armoured)?;
    let parts = SignatureParts::read(&blob)?;
    PublicKey::new(KeyKind::Ssh, parts.public.to_vec())
        .map_err(|_| SshError::Malformed("its key cannot be used"))
}

/// Checks a signature over bytes, and returns its key. The caller decides whether it trusts the
/// key.
pub(super) fn check(armoured: &str, message: &[u8]) -> Result<PublicKey, SshError> {
    let blob = dearmour(armoured)?;
    let parts = SignatureParts::read(&blob)?;
    if parts.namespace != NAMESPACE.as_bytes() {
        return Err(SshError::Namespace(String::from_utf8_lossy(parts.namespace).into_owned()));
    }
    let key = PublicKey::new(KeyKind::Ssh, parts.public.to_vec())
        .map_err(|_| SshError::Malformed("its key cannot be used"))?;
    let data = match parts.hash {
        b"sha512" => signed_data(parts.hash, &Sha512::digest(message)),
        b"sha256" => signed_data(parts.hash, &Sha256::digest(message)),
        other => return Err(unknown(other)),
    };
    match verify_signature(parts.public, parts.signature, &data) {
        None => Err(SshError::Malformed("its signature is cut off")),
        Some(Err(algorithm)) => Err(unknown(algorithm)),
        Some(Ok(false)) => Err(SshError::Wrong(key.key_id())),
        Some(Ok(true)) => Ok(key),
    }
}

/// Returns the bytes of a public key in a line of OpenSSH, such as `ssh-ed25519 AAAA… comment`.
pub(super) fn public_key_line(line: &str) -> Option<Vec<u8>> {
    let mut words = line.split_ascii_whitespace();
    let name = words.next()?;
    let bytes = STANDARD.decode(words.next()?).ok()?;
    let (inner, _) = take_string(&bytes)?;
    (inner == name.as_bytes()).then_some(bytes)
}

/// Returns the line of OpenSSH for a public key, without a comment.
pub(super) fn public_key_line_of(public: &[u8]) -> String {
    let name = take_string(public).map_or(&b""[..], |(name, _)| name);
    format!("{} {}", String::from_utf8_lossy(name), STANDARD.encode(public))
}

/// Returns the key id as `ssh-keygen -l` shows it.
pub(super) fn key_id(public: &[u8]) -> Result<String, PublicKeyError> {
    match read_key(public) {
        Some(_) => Ok(format!("SHA256:{}", STANDARD_NO_PAD.encode(Sha256::digest(public)))),
        None => Err(PublicKeyError::Unusable(
            "of the keys of OpenSSH, Ed25519, P-256 and RSA of at least 2048 bits are known",
        )),
    }
}

enum Key<'a> {
    Ed25519(&'a [u8]),
    Token { point: &'a [u8], application: &'a [u8] },
    P256(&'a [u8]),
    Rsa { exponent: &'a [u8], modulus: &'a [u8] },
}

fn read_key(public: &[u8]) -> Option<Key<'_>> {
    let (name, rest) = take_string(public)?;
    let (first, rest) = take_string(rest)?;
    let (key, rest) = match name {
        SSH_ED25519 if first.len() == 32 => (Key::Ed25519(first), rest),
        SSH_TOKEN if first.len() == 32 => {
            let (application, rest) = take_string(rest)?;
            (Key::Token { point: first, application }, rest)
        }
        SSH_P256 if first == b"nistp256" => {
            let (point, rest) = take_string(rest)?;
            (point.len() == 65).then_some((Key::P256(point), rest))?
        }
        SSH_RSA => {
            let (modulus, rest) = take_string(rest)?;
            let (exponent, modulus) =
                (positive_integer_bytes(first)?, positive_integer_bytes(modulus)?);
            (modulus.len() >= 256).then_some((Key::Rsa { exponent, modulus }, rest))?
        }
        _ => return None,
    };
    rest.is_empty().then_some(key)
}

/// Whether a signature is valid; `None` if it is truncated, and an error with the algorithm if that
/// is not supported.
fn verify_signature<'a>(
    public: &[u8],
    signature: &'a [u8],
    data: &[u8],
) -> Option<Result<bool, &'a [u8]>> {
    let (algorithm, rest) = take_string(signature)?;
    let (bytes, rest) = take_string(rest)?;
    let good = match (read_key(public)?, algorithm) {
        (Key::Ed25519(point), SSH_ED25519) => {
            rest.is_empty() && UnparsedPublicKey::new(&ED25519, point).verify(data, bytes).is_ok()
        }
        (Key::Token { point, application }, SSH_TOKEN) => {
            let [flags, counter @ ..] = rest else { return None };
            let mut message = Sha256::digest(application).to_vec();
            message.push(*flags);
            message.extend_from_slice(counter);
            message.extend_from_slice(&Sha256::digest(data));
            counter.len() == 4
                && flags & USER_PRESENT != 0
                && UnparsedPublicKey::new(&ED25519, point).verify(&message, bytes).is_ok()
        }
        (Key::P256(point), SSH_P256) => {
            let fixed = fixed_ecdsa(bytes)?;
            let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point);
            rest.is_empty() && key.verify(data, &fixed).is_ok()
        }
        (Key::Rsa { exponent, modulus }, b"rsa-sha2-512" | b"rsa-sha2-256") => {
            let scheme = match algorithm {
                b"rsa-sha2-512" => &RSA_PKCS1_2048_8192_SHA512,
                _ => &RSA_PKCS1_2048_8192_SHA256,
            };
            let key = PublicKeyComponents { n: modulus, e: exponent };
            rest.is_empty() && key.verify(scheme, data, bytes).is_ok()
        }
        _ => return Some(Err(algorithm)),
    };
    Some(Ok(good))
}

/// Converts two integers to 64 bytes.
fn fixed_ecdsa(bytes: &[u8]) -> Option<[u8; 64]> {
    let (r, rest) = take_string(bytes)?;
    let (s, rest) = take_string(rest)?;
    let mut fixed = [0; 64];
    for (number, end) in [(positive_integer_bytes(r)?, 32), (positive_integer_bytes(s)?, 64)] {
        fixed
            .get_mut((end - 32)..end)?
            .get_mut(32_usize.checked_sub(number.len())?..)?
            .copy_from_slice(number);
    }
    rest.is_empty().then_some(fixed)
}

/// Returns the bytes of a positive integer without its leading zero.
fn positive_integer_bytes(number: &[u8]) -> Option<&[u8]> {
    match number {
        [0, rest @ ..] if rest.first().is_some_and(|first| *first >= 0x80) => Some(rest),
        [first, ..] if (1..0x80).contains(first) => Some(number),
        _ => None,
    }
}

struct SignatureParts<'a> {
    public: &'a [u8],
    namespace: &'a [u8],
    hash: &'a [u8],
    signature: &'a [u8],
}

impl<'a> SignatureParts<'a> {
    fn read(blob: &'a [u8]) -> Result<Self, SshError> {
        let cut = || SshError::Malformed("it is cut off");
        let rest = blob.strip_prefix(MAGIC).ok_or(SshError::Malformed("it begins otherwise"))?;
        let (version, rest) = rest.split_first_chunk::<4>().ok_or_else(cut)?;
        if u32::from_be_bytes(*version) != 1 {
            return Err(SshError::Malformed("its version is not 1"));
        }
        let (public, rest) = take_string(rest).ok_or_else(cut)?;
        let (namespace, rest) = take_string(rest).ok_or_else(cut)?;
        let (reserved, rest) = take_string(rest).ok_or_else(cut)?;
        let (hash, rest) = take_string(rest).ok_or_else(cut)?;
        let (signature, rest) = take_string(rest).ok_or_else(cut)?;
        if !rest.is_empty() || !reserved.is_empty() {
            return Err(SshError::Malformed("it has more in it than it should"));
        }
        Ok(Self { public, namespace, hash, signature })
    }
}

fn unknown(name: &[u8]) -> SshError {
    SshError::Algorithm(String::from_utf8_lossy(name).into_owned())
}

/// Returns the bytes that are signed instead of the message.
fn signed_data(hash: &[u8], digest: &[u8]) -> Vec<u8> {
    let mut data = MAGIC.to_vec();
    for part in [NAMESPACE.as_bytes(), b"", hash, digest] {
        push_string(&mut data, part);
    }
    data
}

fn push_string(bytes: &mut Vec<u8>, part: &[u8]) {
    bytes.extend((part.len() as u32).to_be_bytes());
    bytes.extend_from_slice(part);
}

fn take_string(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    rest.split_at_checked(u32::from_be_bytes(*length) as usize)
}

fn armour(blob: &[u8]) -> String {
    let text = STANDARD.encode(blob);
    let mut armoured = format!("{BEGIN}\n");
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (line, more) = rest.split_at(rest.len().min(70));
        armoured.push_str(line);
        armoured.push('\n');
        rest = more;
    }
    armoured.push_str(END);
    armoured.push('\n');
    armoured
}

fn dearmour(text: &str) -> Result<Vec<u8>, SshError> {
    let inner = text.trim().strip_prefix(BEGIN).and_then(|rest| rest.strip_suffix(END));
    let inner = inner.ok_or(SshError::Malformed("it lacks its first or its last line"))?;
    let inner: String = inner.split_ascii_whitespace().collect();
    STANDARD.decode(inner).map_err(|_| SshError::Malformed("it is not base64"))
}

/// Parses an unencrypted Ed25519 key.
fn plain_key(text: &str) -> Option<SigningKey> {
    let inner = text.trim().strip_prefix(KEY_BEGIN)?.strip_suffix(KEY_END)?;
    let inner: Zeroizing<String> = Zeroizing::new(inner.split_ascii_whitespace().collect());
    let bytes = Zeroizing::new(STANDARD.decode(inner.as_bytes()).ok()?);
    let (cipher, rest) = take_string(bytes.strip_prefix(KEY_MAGIC)?)?;
    let (derivation, rest) = take_string(rest)?;
    let (_, rest) = take_string(rest)?;
    let (count, rest) = rest.split_first_chunk::<4>()?;
    if cipher != b"none" || derivation != b"none" || u32::from_be_bytes(*count) != 1 {
        return None;
    }
    let (_, rest) = take_string(rest)?;
    let (secret, _) = take_string(rest)?;
    let (checks, rest) = secret.split_first_chunk::<8>()?;
    let (name, rest) = take_string(rest)?;
    let (public, rest) = take_string(rest)?;
    let (both, _) = take_string(rest)?;
    if checks[..4] != checks[4..] || name != SSH_ED25519 || both.len() != 64 {
        return None;
    }
    SigningKey::from_seed(&both[..32]).filter(|key| key.public_bytes() == public)
}

fn sign_by_program(path: &Path, message: &[u8]) -> Result<String, SshError> {
    let program = |error| SshError::Program { path: path.to_owned(), error };
    let mut child = Command::new("ssh-keygen")
        .args(["-Y", "sign", "-n", NAMESPACE, "-f"])
        .arg(path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(program)?;
    // If `ssh-keygen` cannot use the key, it exits without reading the input; its error output
    // explains the broken pipe.
    let _ = child.stdin.take().map(|mut stdin| stdin.write_all(message));
    let output = child.wait_with_output().map_err(program)?;
    let signature = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(SshError::Refused { path: path.to_owned(), message });
    }
    // Check that the new signature is accepted.
    check(&signature, message)?;
    Ok(signature)
}

#[cfg(test)]
mod tests;
