//! Rules about data files that tell a script which credentials to open.
//!
//! A script that goes through a list of paths looks harmless, and so does a list of paths. Together
//! they read what the list names.

use std::collections::HashSet;

use crate::{
    Confidence, Severity,
    act::Act,
    collect::extension,
    context::{AnalyzedFragment, Context, FindingDraft},
    fragment::{Language, Role},
    host::{HostReputation, reputation},
    sensitive_path, service,
};

/// Endings of files that hold lists and settings.
const LISTS: [&str; 12] =
    ["json", "yaml", "yml", "toml", "txt", "ini", "cfg", "conf", "csv", "tsv", "jsonc", "json5"];

/// Programs that send what they are given.
const SENDERS: [&str; 8] = ["curl", "wget", "scp", "rsync", "nc", "ncat", "ftp", "sftp"];

/// Files of the skill that name places of credentials, while a script that opens them talks to a
/// host: their paths, and what they name.
pub(super) fn found(context: &Context<'_>) -> Vec<(String, FindingDraft)> {
    if !context
        .fragments
        .iter()
        .any(|analyzed| analyzed.fragment.role == Role::Script && sends(analyzed))
    {
        return Vec::new();
    }
    // What scripts name, and what those name that take variables by any name.
    let (mut all, mut takers): (HashSet<&str>, HashSet<&str>) = Default::default();
    for analyzed in &context.fragments {
        if analyzed.fragment.role != Role::Script || analyzed.fragment.depth > 0 {
            continue;
        }
        let text: &str = &analyzed.fragment.text;
        let any_name = text.contains("environ") || text.contains("process.env[");
        let words = text.split(|c: char| !c.is_alphanumeric() && !matches!(c, '.' | '_' | '-'));
        for word in words.filter(|word| word.contains('.')) {
            all.insert(word);
            if any_name {
                takers.insert(word);
            }
        }
    }
    let mut found = Vec::new();
    for analyzed in &context.fragments {
        let fragment = &analyzed.fragment;
        let list = fragment.depth == 0
            && fragment.language == Language::Other
            && LISTS.contains(&extension(&fragment.path).as_str());
        if !list {
            continue;
        }
        let place = named_in(&fragment.text);
        let Some(what) = place.or_else(|| variables_in(&fragment.text)) else { continue };
        let name = fragment.path.rsplit('/').next().unwrap_or(&fragment.path);
        let named = if place.is_some() { &all } else { &takers };
        if named.contains(name) {
            let message = format!("it lists paths of {what} for a script that connects to a host");
            let draft = FindingDraft::new(Severity::High, Confidence::Medium, message);
            found.push((fragment.path.to_string(), draft));
        }
    }
    found
}

/// Whether code talks to somebody else.
fn sends(analyzed: &AnalyzedFragment<'_>) -> bool {
    analyzed.acts.located.iter().any(|seen| match &seen.act {
        Act::Network { to, .. } => reputation(to) != HostReputation::Local,
        Act::Program(name) => SENDERS.contains(&name.as_str()),
        _ => false,
    })
}

/// Whether a text lists secrets of several services.
fn variables_in(text: &str) -> Option<&'static str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let mut services: Vec<&str> = words.filter_map(service::service_of_secret).collect();
    services.sort_unstable();
    services.dedup();
    (services.len() > 2).then_some("secrets of several services")
}

/// What the paths in a text lead to, when they lead into a home folder or to the system's secrets.
fn named_in(text: &str) -> Option<&'static str> {
    const STARTS: [&str; 8] =
        ["~", "$HOME", "${HOME}", "%USERPROFILE%", "%APPDATA%", "/home/", "/Users/", "/root/"];
    // The words that phrases of wallets are made of.
    let first: Vec<&str> = text.split_whitespace().take(4).collect();
    if first == ["abandon", "ability", "able", "about"] {
        return Some("phrases of wallets");
    }
    if !sensitive_path::may_name_credentials(text) {
        return None;
    }
    let words = text.split(['"', '\'', '\n', ',', '=', '|', ';', '\t']);
    words
        .map(|word| word.trim().trim_start_matches("- "))
        .map(|word| word.split_once(": ").map_or(word, |(_, value)| value.trim()))
        .filter(|word| word.len() < 200 && !word.contains(' '))
        // `.ssh/id_ed25519` is put behind the home folder by the script.
        .filter(|word| {
            STARTS.iter().any(|start| word.starts_with(start))
                || word.starts_with('.') && word.contains('/') && !word.starts_with("./")
        })
        .find_map(sensitive_path::credential_at)
}

#[cfg(test)]
mod tests {
    use super::named_in;

    #[test]
    fn lists_name_places() {
        for text in [
            "{\"files\": {\"a\": \"~/.aws/credentials\"}}",
            "paths:\n  - ~/.ssh/id_ed25519\n  - ~/notes.txt",
            "[check]\nkube = \"$HOME/.kube/config\"",
            ".ssh/id_rsa\n.netrc\n",
        ] {
            assert!(named_in(text).is_some(), "{text}");
        }
        for text in [
            "{\"ignore\": [\"*.pem\", \".env\"]}",
            "{\"tools\": [\"pip\", \"gcc\"]}",
            "See the docs of .npmrc and ~/.bashrc",
        ] {
            assert!(named_in(text).is_none(), "{text}");
        }
    }
}
