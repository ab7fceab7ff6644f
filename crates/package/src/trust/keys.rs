//! Creates and reads Ed25519 signing keys, each stored as two one-line files.

use std::{
    fmt, fs, io,
    os::unix::fs::{DirBuilderExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use aws_lc_rs::{
    encoding::{AsBigEndian as _, Curve25519SeedBin},
    signature::{Ed25519KeyPair, KeyPair as _},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use thiserror::Error;
use zeroize::Zeroizing;

use super::{public_key::PublicKey, safe_file};

const MAX_NAME_BYTES: usize = 64;

/// Maximum size of a key file.
const MAX_KEY_BYTES: u64 = 4 * 1024;

/// An error while creating or using a key.
#[derive(Debug, Error)]
pub enum KeyError {
    /// The name cannot be used as a file name.
    #[error(
        "`{}` cannot be the name of a key: use at most {MAX_NAME_BYTES} letters, digits, `.`, `_` and `-`, the first a letter or a digit",
        .0.escape_debug()
    )]
    Name(String),
    /// A key of that name exists. It is not replaced, because its signatures need it.
    #[error(
        "there is a key `{name}` already, in {}: what it signed needs it, so choose another name",
        path.display()
    )]
    Exists { name: String, path: PathBuf },
    #[error("there is no key `{name}`, expected {}", path.display())]
    NotFound { name: String, path: PathBuf },
    /// Other users can read the secret key file.
    #[error(
        "{} can be read by others, so it may no longer be secret; run `chmod 600 {}`",
        .0.display(),
        .0.display()
    )]
    Readable(PathBuf),
    /// The file does not contain a key.
    #[error("{} does not hold an Ed25519 key: expected one line of base64 for 32 bytes", .0.display())]
    Malformed(PathBuf),
    /// The public key file does not match the secret key file.
    #[error("{} is not the public half of the key beside it; remove it, or put the right one there", .0.display())]
    Mismatch(PathBuf),
    /// The system could not generate a key.
    #[error("the system could not generate a key")]
    Generate,
    /// The operating system returned an error.
    #[error("{}: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
}

impl KeyError {
    /// A stable error code for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Name(_) => "key_name",
            Self::Exists { .. } => "key_exists",
            Self::NotFound { .. } => "key_not_found",
            Self::Readable(_) => "key_readable",
            Self::Malformed(_) => "key_malformed",
            Self::Mismatch(_) => "key_mismatch",
            Self::Generate => "key_generate",
            Self::Io { .. } => "io",
        }
    }

    fn io(path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |error| Self::Io { path, error }
    }
}

/// A secret signing key. Its `Debug` output shows the identifier, never the secret.
#[derive(Clone)]
pub struct SigningKey {
    pair: Ed25519KeyPair,
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SigningKey").field(&self.key_id()).finish()
    }
}

impl SigningKey {
    /// Generates a key in memory, without writing it to disk.
    pub fn generate() -> Result<Self, KeyError> {
        Ed25519KeyPair::generate().map(|pair| Self { pair }).map_err(|_| KeyError::Generate)
    }

    /// Creates the key from a seed of 32 secret bytes.
    pub(super) fn from_seed(seed: &[u8]) -> Option<Self> {
        Ed25519KeyPair::from_seed_unchecked(seed).ok().map(|pair| Self { pair })
    }

    pub fn public_key(&self) -> PublicKey {
        PublicKey::ed25519(self.public_bytes())
    }

    /// The identifier: the first 32 hexadecimal digits of the SHA-256 of the public key.
    pub fn key_id(&self) -> String {
        self.public_key().key_id()
    }

    pub(super) fn public_bytes(&self) -> [u8; 32] {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(self.pair.public_key().as_ref());
        bytes
    }

    pub(super) fn sign(&self, message: &[u8]) -> Vec<u8> {
        self.pair.sign(message).as_ref().to_vec()
    }

    /// The line of the secret key file.
    fn secret_line(&self) -> Result<Zeroizing<String>, KeyError> {
        let seed = self.pair.seed().map_err(|_| KeyError::Generate)?;
        let seed: Curve25519SeedBin<'_> = seed.as_be_bytes().map_err(|_| KeyError::Generate)?;
        Ok(Zeroizing::new(STANDARD.encode(seed.as_ref()) + "\n"))
    }
}

/// A public key file of a key store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKeyFile {
    /// The name of the key.
    pub name: String,
    pub key: PublicKey,
}

/// A folder of keys: `<name>.key` is the secret key, `<name>.pub` the public key.
#[derive(Clone, Debug)]
pub struct KeyStore {
    folder: PathBuf,
}

impl KeyStore {
    /// Creates a store for a folder, which does not have to exist yet.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// Creates a key. Never replaces an existing key.
    pub fn create(&self, name: &str) -> Result<SigningKey, KeyError> {
        let (secret, public) = self.paths(name)?;
        if let Some(path) = [&secret, &public].into_iter().find(|path| path.exists()) {
            return Err(KeyError::Exists { name: name.to_owned(), path: path.clone() });
        }
        let key = SigningKey::generate()?;
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true).mode(0o700);
        builder.create(&self.folder).map_err(KeyError::io(&self.folder))?;
        let fail = |path: &Path| {
            let path = path.to_owned();
            move |error: io::Error| match error.kind() {
                io::ErrorKind::AlreadyExists => KeyError::Exists { name: name.to_owned(), path },
                _ => KeyError::Io { path, error },
            }
        };
        let line = key.secret_line()?;
        safe_file::create(&secret, line.as_bytes(), 0o600).map_err(fail(&secret))?;
        let line = key.public_key().to_base64() + "\n";
        safe_file::create(&public, line.as_bytes(), 0o644).map_err(fail(&public))?;
        Ok(key)
    }

    /// Lists the public keys, sorted by name.
    pub fn list(&self) -> Result<Vec<PublicKeyFile>, KeyError> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(KeyError::io(&self.folder)(error)),
        };
        let mut keys = Vec::new();
        for entry in entries {
            let path = entry.map_err(KeyError::io(&self.folder))?.path();
            let name = path.file_name().and_then(|name| name.to_str());
            if let Some(name) = name.and_then(|name| name.strip_suffix(".pub"))
                && is_name(name)
            {
                keys.push(PublicKeyFile { name: name.to_owned(), key: read_public(&path)? });
            }
        }
        keys.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(keys)
    }

    /// Loads a secret key for signing.
    pub fn load(&self, name: &str) -> Result<SigningKey, KeyError> {
        let (secret, public) = self.paths(name)?;
        let opened = fs::File::open(&secret).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                KeyError::NotFound { name: name.to_owned(), path: secret.clone() }
            }
            _ => KeyError::io(&secret)(error),
        })?;
        let key = read_secret(&opened, &secret)?;
        // The public key file is only there to be shared, and that of another key would mislead.
        if public.exists() && read_public(&public)? != key.public_key() {
            return Err(KeyError::Mismatch(public));
        }
        Ok(key)
    }

    fn paths(&self, name: &str) -> Result<(PathBuf, PathBuf), KeyError> {
        if !is_name(name) {
            return Err(KeyError::Name(name.to_owned()));
        }
        let path = |end| self.folder.join(format!("{name}.{end}"));
        Ok((path("key"), path("pub")))
    }
}

fn is_name(name: &str) -> bool {
    name.len() <= MAX_NAME_BYTES
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'))
}

fn read_secret(opened: &fs::File, path: &Path) -> Result<SigningKey, KeyError> {
    refuse_readable(opened, path)?;
    let bytes = safe_file::read_open(opened, MAX_KEY_BYTES).map_err(KeyError::io(path))?;
    let bytes = Zeroizing::new(bytes);
    let seed = STANDARD.decode(bytes.trim_ascii()).map(Zeroizing::new);
    let seed = seed.map_err(|_| KeyError::Malformed(path.to_owned()))?;
    SigningKey::from_seed(&seed).ok_or_else(|| KeyError::Malformed(path.to_owned()))
}

/// Rejects a secret key file that other users can read.
pub(super) fn refuse_readable(opened: &fs::File, path: &Path) -> Result<(), KeyError> {
    let mode = opened.metadata().map_err(KeyError::io(path))?.permissions().mode();
    if mode & 0o077 != 0 {
        return Err(KeyError::Readable(path.to_owned()));
    }
    Ok(())
}

fn read_public(path: &Path) -> Result<PublicKey, KeyError> {
    let bytes = safe_file::read(path, MAX_KEY_BYTES).map_err(KeyError::io(path))?;
    let bytes = STANDARD.decode(bytes.trim_ascii()).ok().and_then(|bytes| bytes.try_into().ok());
    bytes.map(PublicKey::ed25519).ok_or_else(|| KeyError::Malformed(path.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn created_key_is_loaded() {
        let place = tempfile::tempdir().unwrap();
        let store = KeyStore::new(place.path().join("deep/keys"));
        assert_eq!(store.list().unwrap(), []);
        let key = store.create("publisher").unwrap();
        let secret = place.path().join("deep/keys/publisher.key");
        assert_eq!(mode(&secret), 0o600);
        assert_eq!(mode(&place.path().join("deep/keys")), 0o700);
        let text = fs::read_to_string(&secret).unwrap();
        assert_eq!(text.len(), 45);
        assert_eq!(store.load("publisher").unwrap().public_key(), key.public_key());
        let listed = store.list().unwrap();
        assert_eq!(listed.len(), 1);
        assert_eq!((listed[0].name.as_str(), &listed[0].key), ("publisher", &key.public_key()));
        assert_eq!(store.create("publisher").unwrap_err().code(), "key_exists");
        fs::remove_file(&secret).unwrap();
        assert_eq!(store.create("publisher").unwrap_err().code(), "key_exists");
        assert_eq!(store.load("publisher").unwrap_err().code(), "key_not_found");
        assert!(!format!("{key:?}").contains(text.trim()));
        assert_eq!(format!("{key:?}"), format!("SigningKey({:?})", key.key_id()));
    }

    #[test]
    fn world_readable_key_is_rejected() {
        let place = tempfile::tempdir().unwrap();
        let store = KeyStore::new(place.path());
        store.create("a").unwrap();
        let secret = place.path().join("a.key");
        for bits in [0o640, 0o604, 0o644, 0o620] {
            fs::set_permissions(&secret, fs::Permissions::from_mode(bits)).unwrap();
            let error = store.load("a").unwrap_err();
            assert_eq!(error.code(), "key_readable");
            assert!(error.to_string().contains(&format!("chmod 600 {}", secret.display())));
        }
    }

    #[test]
    fn invalid_keys_are_rejected() {
        let place = tempfile::tempdir().unwrap();
        let store = KeyStore::new(place.path());
        for name in ["", "../a", ".a", "a/b", "ä", &"a".repeat(65)] {
            assert_eq!(store.create(name).unwrap_err().code(), "key_name", "{name}");
        }
        store.create("a").unwrap();
        store.create("b").unwrap();
        fs::copy(place.path().join("b.pub"), place.path().join("a.pub")).unwrap();
        assert_eq!(store.load("a").unwrap_err().code(), "key_mismatch");
        fs::write(place.path().join("b.key"), "AAAA\n").unwrap();
        assert_eq!(store.load("b").unwrap_err().code(), "key_malformed");
        fs::write(place.path().join("b.pub"), "x").unwrap();
        assert_eq!(store.list().unwrap_err().code(), "key_malformed");
    }

    #[test]
    fn key_id_matches_specification() {
        // RFC 8032, section 7.1, test 1.
        let seed = [
            0x9d, 0x61, 0xb1, 0x9d, 0xef, 0xfd, 0x5a, 0x60, 0xba, 0x84, 0x4a, 0xf4, 0x92, 0xec,
            0x2c, 0xc4, 0x44, 0x49, 0xc5, 0x69, 0x7b, 0x32, 0x69, 0x19, 0x70, 0x3b, 0xac, 0x03,
            0x1c, 0xae, 0x7f, 0x60,
        ];
        let key = SigningKey::from_seed(&seed).unwrap();
        assert_eq!(key.public_key().to_base64(), "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=");
        assert_eq!(key.key_id(), "21fe31dfa154a261626bf854046fd227");
        assert_eq!(key.sign(b"")[..4], [0xe5, 0x56, 0x43, 0x00]);
    }
}
