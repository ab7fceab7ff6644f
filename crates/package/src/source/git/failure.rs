//! Converts git's error output to errors.

use super::GitUrl;
use crate::source::SourceError;

/// Maximum length of an error message of git, in characters.
const MAX_MESSAGE: usize = 300;

pub(super) fn explain(url: &GitUrl, complaint: &str) -> SourceError {
    let says = |texts: &[&str]| texts.iter().any(|text| complaint.contains(text));
    let message = short_message(complaint);
    if says(&["Host key verification failed"]) {
        SourceError::HostKey(url.clone())
    } else if says(&[
        "Could not resolve host", "Failed to connect", "Couldn't connect", "Could not connect",
        "Connection refused", "Connection reset", "Connection timed out", "Network is unreachable",
        "No route to host", "Operation timed out", "Operation too slow", "SSL certificate",
        "certificate verif", "Could not resolve hostname", "Could not resolve proxy",
    ]) {
        SourceError::Unreachable { host: url.host(), why: message }
    } else if says(&[
        "Authentication failed",
        "Permission denied (",
        "does not appear to be a git repository",
        "does not exist",
        "not a git repository",
        "ould not read Username",
        "ould not read Password",
        "Repository not found",
        "repository '",
        "terminal prompts disabled",
        "unable to get password",
        "not valid: is this a git repository",
        "returned error: 401",
        "returned error: 403",
        "returned error: 404",
    ]) {
        SourceError::NoRepository(url.clone())
    } else {
        SourceError::Git { url: url.clone(), message }
    }
}

/// Whether git reports a missing object.
pub(super) fn is_missing_object(message: &str) -> bool {
    ["not our ref", "unadvertised object", "no such remote ref", "find remote ref"]
        .iter()
        .any(|text| message.contains(text))
}

/// Returns the relevant line without terminal control characters.
fn short_message(complaint: &str) -> String {
    let lines = || complaint.lines().map(str::trim).filter(|line| !line.is_empty());
    let fatal = lines().find_map(|line| {
        ["fatal: ", "error: ", "ERROR: ", "ssh: "].iter().find_map(|start| line.strip_prefix(start))
    });
    let line = fatal.or_else(|| lines().next_back()).unwrap_or("it gives no reason");
    let plain = line.chars().map(|c| if c.is_control() { ' ' } else { c });
    plain.take(MAX_MESSAGE).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn git_messages_become_errors() {
        let url = GitUrl::parse("https://host.example/o/r").unwrap();
        for (complaint, code) in [
            ("fatal: unable to access 'x': Could not resolve host: host.example", "unreachable"),
            ("ssh: connect to host h port 22: Connection refused\nfatal: x", "unreachable"),
            (
                "fatal: could not read Username for 'https://x': terminal prompts disabled",
                "no_repository",
            ),
            ("remote: Repository not found.\nfatal: repository 'x' not found", "no_repository"),
            ("git@h: Permission denied (publickey).\nfatal: Could not read", "no_repository"),
            ("fatal: '/x' does not appear to be a git repository", "no_repository"),
            ("Host key verification failed.\nfatal: Could not read", "host_key"),
            ("warning: a\nfatal: b\u{1b}[31m", "git_failed"),
            ("", "git_failed"),
        ] {
            assert_eq!(explain(&url, complaint).code(), code, "{complaint}");
        }
        assert_eq!(short_message("warning: a\nfatal: b\u{1b}[31m"), "b [31m");
        assert!(is_missing_object("remote error: upload-pack: not our ref 11"));
    }
}
