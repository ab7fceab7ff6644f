//! Decides whether the network may be used.

use savoir_package::source::Network;

/// The environment variable that makes every command work offline.
pub(crate) const VARIABLE: &str = "SAVOIR_OFFLINE";

/// Whether the network may be used, from `--offline` and the environment variable.
pub(crate) fn network(offline: bool) -> Network {
    let is_set = || std::env::var(VARIABLE).is_ok_and(|value| is_true(&value));
    if offline || is_set() { Network::Offline } else { Network::Online }
}

fn is_true(value: &str) -> bool {
    !matches!(value.trim().to_ascii_lowercase().as_str(), "" | "0" | "false" | "no" | "off")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offline_variable_accepts_common_values() {
        for value in ["1", "true", "yes", "on"] {
            assert!(is_true(value), "{value}");
        }
        for value in ["", "0", "false", "No", "off"] {
            assert!(!is_true(value), "{value}");
        }
        assert_eq!(network(true), Network::Offline);
    }
}
