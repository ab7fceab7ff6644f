//! Verifies OpenPGP signatures with the program `gpgv`, in a temporary folder that contains only
//! the trusted keys, so that the user's keyring and settings have no effect.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use thiserror::Error;

use super::{KeyKind, TrustStore, TrustedKey};

const SIGNATURE: &str = "PGP SIGNATURE";

/// Why an OpenPGP signature is invalid or cannot be checked.
#[derive(Debug, Error)]
pub enum OpenPgpError {
    /// The text is not a signature.
    #[error("it is not an armoured signature of OpenPGP; make it with `gpg --detach-sign --armor`")]
    Malformed,
    /// The signature is invalid.
    #[error("the signature does not hold ({0}); get the skill again from its publisher")]
    Wrong(String),
    /// `gpgv` is not installed.
    #[error("signatures of OpenPGP are checked by `gpgv`, which is not there; install GnuPG")]
    NoProgram,
    /// `gpgv` cannot be run.
    #[error("{}: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
}

impl OpenPgpError {
    /// A stable code for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Malformed | Self::Wrong(_) => "signature_openpgp",
            Self::NoProgram => "gpgv_missing",
            Self::Io { .. } => "io",
        }
    }

    fn io(path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |error| Self::Io { path, error }
    }
}

/// The result of checking a signature.
#[derive(Debug)]
pub(super) enum CheckedSignature<'a> {
    /// It is valid, and a trusted key made it.
    By(&'a TrustedKey),
    /// It names an unknown key, so it could not be checked.
    Unknown(Option<String>),
}

/// Checks an armoured signature over bytes.
pub(super) fn check<'a>(
    armoured: &str,
    message: &[u8],
    store: &'a TrustStore,
) -> Result<CheckedSignature<'a>, OpenPgpError> {
    check_with(&["gpgv", "gpg"], armoured, message, store)
}

fn check_with<'a>(
    programs: &[&str],
    armoured: &str,
    message: &[u8],
    store: &'a TrustStore,
) -> Result<CheckedSignature<'a>, OpenPgpError> {
    let signature = dearmour(armoured.trim(), SIGNATURE).ok_or(OpenPgpError::Malformed)?;
    let is_known = |key_id: &str| key_id.starts_with("openpgp:");
    if store.of_kind(KeyKind::OpenPgp).next().is_none()
        && !store.revoked().iter().any(|revoked| is_known(&revoked.key_id))
    {
        return Ok(CheckedSignature::Unknown(None));
    }
    let keys: Vec<u8> =
        store.of_kind(KeyKind::OpenPgp).flat_map(|trusted| trusted.key.bytes()).copied().collect();
    let home = tempfile::tempdir().map_err(OpenPgpError::io(&std::env::temp_dir()))?;
    for (name, bytes) in [("keys.gpg", &keys[..]), ("sig", &signature), ("data", message)] {
        let path = home.path().join(name);
        fs::write(&path, bytes).map_err(OpenPgpError::io(&path))?;
    }
    read_report(&run_gpgv(programs, home.path())?, store)
}

/// Runs the first of these programs that exists; returns its status output.
fn run_gpgv(programs: &[&str], home: &Path) -> Result<String, OpenPgpError> {
    for program in programs {
        let mut command = Command::new(program);
        if *program == "gpg" {
            command.args(["--batch", "--no-autostart", "--no-default-keyring", "--no-options"]);
            command.args(["--trust-model", "always"]);
        }
        command.arg("--homedir").arg(home).arg("--keyring").arg(home.join("keys.gpg"));
        command.args(["--status-fd", "1", "--weak-digest", "SHA1"]);
        if *program == "gpg" {
            command.arg("--verify");
        }
        command.arg(home.join("sig")).arg(home.join("data"));
        command.env_clear().env("LC_ALL", "C");
        command.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        match command.stdin(Stdio::null()).output() {
            Ok(output) => return Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(OpenPgpError::io(Path::new(program))(error)),
        }
    }
    Err(OpenPgpError::NoProgram)
}

/// Parses the status lines.
fn read_report<'a>(
    report: &str,
    store: &'a TrustStore,
) -> Result<CheckedSignature<'a>, OpenPgpError> {
    let lines: Vec<Vec<&str>> = report
        .lines()
        .filter_map(|line| line.strip_prefix("[GNUPG:] "))
        .map(|line| line.split_ascii_whitespace().collect())
        .collect();
    let all = |word: &'static str| lines.iter().filter(move |line| line.first() == Some(&word));
    let wrong = |why: &str| Err(OpenPgpError::Wrong(why.to_owned()));
    if all("NEWSIG").count() > 1 {
        return wrong("there is more than one");
    }
    for bad in ["BADSIG", "EXPSIG", "EXPKEYSIG", "REVKEYSIG"] {
        if all(bad).next().is_some() {
            return wrong(bad);
        }
    }
    // ERRSIG <key> <algorithm> <digest> <class> <time> <reason> <fingerprint>; reason 9: no such
    // key.
    if let Some(line) = all("ERRSIG").next() {
        if line.get(6) != Some(&"9") {
            return wrong("ERRSIG");
        }
        let fingerprint = line.get(7).filter(|word| word.len() >= 40);
        return Ok(CheckedSignature::Unknown(fingerprint.map(|word| key_id_of(word))));
    }
    let (Some(_), Some(valid)) = (all("GOODSIG").next(), all("VALIDSIG").next()) else {
        return wrong("it was not found good");
    };
    // VALIDSIG <fingerprint> … <class> <fingerprint of the primary key>; class 00: over bytes.
    let (Some(&"00"), Some(primary)) = (valid.get(9), valid.get(10)) else {
        return wrong("it is not a signature over a file");
    };
    let key_id = key_id_of(primary);
    match store.get(&key_id) {
        Some(trusted) => Ok(CheckedSignature::By(trusted)),
        None => Ok(CheckedSignature::Unknown(Some(key_id))),
    }
}

fn key_id_of(fingerprint: &str) -> String {
    format!("openpgp:{}", fingerprint.to_ascii_lowercase())
}

/// Decodes an armoured block, which must be the whole text.
pub(super) fn dearmour(text: &str, kind: &str) -> Option<Vec<u8>> {
    let inner = text.strip_prefix(&format!("-----BEGIN {kind}-----"))?;
    let inner = inner.strip_suffix(&format!("-----END {kind}-----"))?;
    let mut lines = inner.lines().map(str::trim).skip(1).peekable();
    // Armour headers end with an empty line.
    while lines.next_if(|line| line.contains(": ")).is_some() {}
    let body: String = lines.take_while(|line| !line.starts_with('=') || line.len() != 5).collect();
    STANDARD.decode(body).ok().filter(|bytes| !bytes.is_empty())
}

/// The bytes of a key that its fingerprint is computed from.
pub(super) enum FingerprintedKey {
    /// With SHA-1.
    Version4(Vec<u8>),
    /// With SHA-256.
    Version6(Vec<u8>),
}

/// Returns the first packet of a key, if it is a public key.
pub(super) fn fingerprinted(bytes: &[u8]) -> Option<FingerprintedKey> {
    let (tag, body) = first_packet(bytes)?;
    let length = body.len();
    match (tag, body.first()?) {
        (6, 4) => {
            let start = [&[0x99], &u16::try_from(length).ok()?.to_be_bytes()[..]].concat();
            Some(FingerprintedKey::Version4([&start, body].concat()))
        }
        (6, 6) => {
            let start = [&[0x9b], &u32::try_from(length).ok()?.to_be_bytes()[..]].concat();
            Some(FingerprintedKey::Version6([&start, body].concat()))
        }
        _ => None,
    }
}

fn first_packet(bytes: &[u8]) -> Option<(u8, &[u8])> {
    let (first, rest) = bytes.split_first()?;
    let number = |bytes: &[u8]| bytes.iter().fold(0, |sum, byte| (sum << 8) | usize::from(*byte));
    let (tag, length, rest) = if first & 0xc0 == 0xc0 {
        let (length, rest) = match rest {
            [one @ 0..=191, rest @ ..] => (usize::from(*one), rest),
            [one @ 192..=223, two, rest @ ..] => {
                (((usize::from(*one) - 192) << 8) + usize::from(*two) + 192, rest)
            }
            [255, a, b, c, d, rest @ ..] => (number(&[*a, *b, *c, *d]), rest),
            _ => return None,
        };
        (first & 0x3f, length, rest)
    } else if first & 0xc0 == 0x80 {
        let width = [1, 2, 4].get(usize::from(first & 3))?;
        let (length, rest) = rest.split_at_checked(*width)?;
        ((first >> 2) & 0xf, number(length), rest)
    } else {
        return None;
    };
    Some((tag, rest.get(..length)?))
}

#[cfg(test)]
mod tests;
