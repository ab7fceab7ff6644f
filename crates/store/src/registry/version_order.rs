//! Encodes versions as bytes that sort in SemVer order.

use semver::Version;

use super::RegistryError;

/// Maximum length, because versions are part of URLs and file names.
const MAX_VERSION_BYTES: usize = 128;

const END_MARK: u8 = 0;
const NUMBER_MARK: u8 = 1;
const WORD_MARK: u8 = 2;
const RELEASE_MARK: u8 = 0xff;

/// Returns bytes that sort like versions by SemVer precedence; build metadata does not count.
///
/// Three numbers of eight bytes each, then `RELEASE_MARK`, or the identifiers of the pre-release
/// and `END_MARK`. A number in an identifier is written as its length and its digits, because it
/// may exceed every integer type. A word ends with `END_MARK`, which sorts before all characters of
/// words.
pub(super) fn sort_key(version: &Version) -> Vec<u8> {
    let mut key = Vec::with_capacity(32);
    for number in [version.major, version.minor, version.patch] {
        key.extend_from_slice(&number.to_be_bytes());
    }
    if version.pre.is_empty() {
        key.push(RELEASE_MARK);
        return key;
    }
    for identifier in version.pre.split('.') {
        if identifier.bytes().all(|byte| byte.is_ascii_digit()) {
            key.push(NUMBER_MARK);
            key.extend_from_slice(&(identifier.len() as u64).to_be_bytes());
            key.extend_from_slice(identifier.as_bytes());
        } else {
            key.push(WORD_MARK);
            key.extend_from_slice(identifier.as_bytes());
            key.push(END_MARK);
        }
    }
    key.push(END_MARK);
    key
}

/// Fails if a version is too long to be published.
pub(super) fn check(version: &Version) -> Result<(), RegistryError> {
    if version.to_string().len() <= MAX_VERSION_BYTES {
        return Ok(());
    }
    Err(RegistryError::Invalid {
        what: "the version",
        message: format!("it has more than {MAX_VERSION_BYTES} characters; shorten it"),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The example of SemVer's section 11, and edge cases.
    const SORTED: &[&str] = &[
        "0.0.0-0",
        "0.0.0",
        "1.0.0-0",
        "1.0.0-2",
        "1.0.0-9",
        "1.0.0-10",
        "1.0.0-10.0",
        "1.0.0-18446744073709551616",
        "1.0.0-99999999999999999999999999999998",
        "1.0.0-99999999999999999999999999999999",
        "1.0.0--",
        "1.0.0-0a",
        "1.0.0-alpha",
        "1.0.0-alpha.1",
        "1.0.0-alpha.beta",
        "1.0.0-alpha-",
        "1.0.0-alpha-a",
        "1.0.0-alpha0",
        "1.0.0-beta",
        "1.0.0-beta.2",
        "1.0.0-beta.11",
        "1.0.0-rc.1",
        "1.0.0",
        "1.0.1-a",
        "1.2.0",
        "1.10.0",
        "2.0.0",
        "256.0.0",
        "18446744073709551615.18446744073709551615.18446744073709551615-1",
        "18446744073709551615.18446744073709551615.18446744073709551615",
    ];

    fn same_order(a: &Version, b: &Version) {
        let (keys, versions) = (sort_key(a).cmp(&sort_key(b)), a.cmp_precedence(b));
        assert_eq!(keys, versions, "{a} and {b}");
    }

    #[test]
    fn sort_key_edge_cases() {
        let versions: Vec<Version> = SORTED.iter().map(|text| text.parse().unwrap()).collect();
        for pair in versions.windows(2) {
            assert!(sort_key(&pair[0]) < sort_key(&pair[1]), "{} and {}", pair[0], pair[1]);
        }
        for a in &versions {
            for b in &versions {
                same_order(a, b);
            }
        }
        let [plain, built] = ["1.0.0", "1.0.0+2"].map(|text| sort_key(&text.parse().unwrap()));
        assert_eq!(plain, built);
    }

    #[test]
    fn too_long_versions_are_rejected() {
        let version = |digits: usize| format!("1.0.0-{}", "9".repeat(digits)).parse().unwrap();
        check(&version(MAX_VERSION_BYTES - 6)).unwrap();
        assert!(check(&version(MAX_VERSION_BYTES - 5)).is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1024))]

        #[test]
        fn sort_keys_order_like_versions(
            a in version_text(), b in version_text(), c in version_text(),
        ) {
            let [a, b, c]: [Version; 3] = [a, b, c].map(|text| text.parse().unwrap());
            same_order(&a, &b);
            same_order(&b, &c);
            same_order(&a, &c);
        }
    }

    fn number() -> impl Strategy<Value = u64> {
        prop_oneof![0..3_u64, Just(u64::MAX), any::<u64>()]
    }

    /// Uses few letters, so that identifiers are often equal or have a common prefix.
    fn version_text() -> impl Strategy<Value = String> {
        let identifier = prop_oneof![
            "(0|[1-9][0-9]{0,2}|[1-9][0-9]{18,40})",
            "[0-9]{0,2}[aAZz-][a0-]{0,2}",
            "(alpha|beta|rc)",
        ];
        let build = prop_oneof![Just(String::new()), "\\+[0-9a-z]{1,3}"];
        (number(), number(), number(), prop::collection::vec(identifier, 0..4), build).prop_map(
            |(major, minor, patch, identifiers, build)| {
                let dash = if identifiers.is_empty() { "" } else { "-" };
                format!("{major}.{minor}.{patch}{dash}{}{build}", identifiers.join("."))
            },
        )
    }
}
