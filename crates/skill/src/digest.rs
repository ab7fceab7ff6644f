//! Computes SHA-256 digests of texts and files in the notation of each system.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

/// The SHA-256 of some bytes in lower-case hexadecimal digits.
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Bytes in lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    let mut digits = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}

/// The digest of a manifest, `sha256:<hex>`, which does not depend on its line ends.
///
/// ```
/// use savoir_skill::digest::manifest;
///
/// assert_eq!(manifest("a\r\nb\rc\n"), manifest("a\nb\nc\n"));
/// assert!(manifest("").starts_with("sha256:e3b0c442"));
/// ```
pub fn manifest(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    format!("sha256:{}", sha256_hex(text.as_bytes()))
}
