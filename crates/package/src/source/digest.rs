//! The expected SHA-256 digest of a file.

use std::{fmt, str::FromStr};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use savoir_skill::digest::sha256_hex;
use thiserror::Error;

/// The SHA-256 of a file, written as `sha256:` and 64 hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Digest(String);

/// A text is not a digest.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{}` is not a digest: write `sha256:` and 64 hexadecimal digits", .0.escape_debug())]
pub struct DigestError(String);

impl Digest {
    /// Computes the digest of bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(sha256_hex(bytes))
    }

    /// Returns the digest in the notation of subresource integrity.
    pub fn integrity(&self) -> String {
        let digits = self.0.as_bytes().chunks(2);
        let bytes: Vec<u8> = digits
            .filter_map(|pair| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok())
            .collect();
        format!("sha256-{}", STANDARD.encode(bytes))
    }

    /// The hexadecimal digits.
    pub fn hex(&self) -> &str {
        &self.0
    }
}

impl FromStr for Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, DigestError> {
        let digits = text.strip_prefix("sha256:").filter(|digits| {
            digits.len() == 64 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
        });
        digits
            .map(|digits| Self(digits.to_ascii_lowercase()))
            .ok_or_else(|| DigestError(text.to_owned()))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.0)
    }
}
