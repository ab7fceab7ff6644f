//! Computes the fingerprint of a skill and its permissions; an approval is valid only while it is
//! unchanged.

use std::{fmt, path::Path};

use savoir_skill::{digest::sha256_hex, permission::Permission};
use serde::{Deserialize, Serialize};

use super::{ExtraGrants, Program, Request};

/// SHA-256 over everything that an approval covers: path, content, permissions and programs.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Fingerprint(String);

/// Number of digits that are enough for a user to tell two fingerprints apart.
const SHORT_DIGITS: usize = 12;

/// Number of digits that approve a run on the command line: so many that no one can create two
/// skills with the same ones.
const CONFIRMATION_DIGITS: usize = 32;

impl Fingerprint {
    /// The fingerprint of a request.
    ///
    /// Neither the tool nor its arguments are included: the approval is for the skill, and the
    /// content of the skill determines what its tools can run.
    pub fn of(request: &Request) -> Self {
        #[derive(Serialize)]
        struct Canonical<'a> {
            // Versions the format: JSON of another format must never have the same fingerprint.
            format: &'static str,
            path: &'a Path,
            digest: &'a str,
            permissions: Vec<&'a Permission>,
            programs: Vec<&'a Program>,
            extra: ExtraGrants,
        }
        let canonical = Canonical {
            format: "savoir-approval-1",
            path: &request.path,
            digest: &request.digest,
            permissions: sorted(&request.permissions),
            programs: sorted(&request.programs),
            extra: request.extra.sorted(),
        };
        // Serialization only fails for a path that is not UTF-8, and `decide` refuses those. The
        // debug form still distinguishes such paths.
        let json = serde_json::to_string(&canonical).unwrap_or_else(|_| {
            let Canonical { format, path, digest, permissions, programs, extra } = &canonical;
            format!("{:?}", (format, path, digest, permissions, programs, extra))
        });
        Self(sha256_hex(json.as_bytes()))
    }

    /// All 64 digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// As many digits as [`matches_confirmation`] requires.
    pub fn confirmation_digits(&self) -> &str {
        self.0.get(..CONFIRMATION_DIGITS).unwrap_or(&self.0)
    }

    /// Enough digits for a user to distinguish it from others.
    pub fn short(&self) -> &str {
        self.0.get(..SHORT_DIGITS).unwrap_or(&self.0)
    }
}

fn sorted<T: Ord>(items: &[T]) -> Vec<&T> {
    let mut sorted: Vec<&T> = items.iter().collect();
    sorted.sort();
    sorted.dedup();
    sorted
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether the digits, at least 32, are the beginning of the fingerprint.
pub fn matches_confirmation(fingerprint: &Fingerprint, digits: &str) -> bool {
    let beginning = fingerprint.0.get(..digits.len());
    digits.len() >= CONFIRMATION_DIGITS
        && beginning.is_some_and(|found| found.eq_ignore_ascii_case(digits))
}
