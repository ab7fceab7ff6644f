//! Rules about data files that tell a script which credentials to open.
//!
//! A script that goes through a list of paths looks harmless, and so does a list of paths. Together
//! they read what the list names.

use std::collections::HashSet;

use crate::{
    Confidence, Severity,
    action::Action,
    collect::extension,
    context::{AnalyzedFragment, Context, FindingDraft},
    fragment::{Language, Role},
    host::{HostReputation, reputation},
    sensitive_path, service,
};

/// Extensions of files with lists and settings.
const LIST_EXTENSIONS: [&str; 12] =
    ["json", "yaml", "yml", "toml", "txt", "ini", "cfg", "conf", "csv", "tsv", "jsonc", "json5"];

/// No system opens a longer path.
const MAX_SYSTEM_PATH_BYTES: usize = 4096;

/// Programs that send files or their input.
const SENDING_PROGRAMS: [&str; 8] = ["curl", "wget", "scp", "rsync", "nc", "ncat", "ftp", "sftp"];

/// Files of the skill that name places of credentials, while a script that opens them talks to a
/// host: their paths, and what they name.
pub(super) fn find_credential_lists(context: &Context<'_>) -> Vec<(String, FindingDraft)> {
    if !context
        .fragments
        .iter()
        .any(|analyzed| analyzed.fragment.role == Role::Script && sends_to_host(analyzed))
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
            && LIST_EXTENSIONS.contains(&extension(&fragment.path).as_str());
        if !list {
            continue;
        }
        let place = credential_paths_in(&fragment.text);
        let Some(what) = place.or_else(|| secret_variables_in(&fragment.text)) else { continue };
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

/// Whether code connects to a host.
fn sends_to_host(analyzed: &AnalyzedFragment<'_>) -> bool {
    analyzed.actions.located.iter().any(|seen| match &seen.action {
        Action::Connects { to, .. } => reputation(to) != HostReputation::Local,
        Action::StartsProgram(name) => SENDING_PROGRAMS.contains(&name.as_str()),
        _ => false,
    })
}

/// Returns a description if a text lists secrets of several services.
fn secret_variables_in(text: &str) -> Option<&'static str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let mut services: Vec<&str> = words.filter_map(service::service_of_secret).collect();
    services.sort_unstable();
    services.dedup();
    (services.len() > 2).then_some("secrets of several services")
}

/// Returns the kind of credentials whose paths a text contains.
fn credential_paths_in(text: &str) -> Option<&'static str> {
    const SENSITIVE_PATH_PREFIXES: [&str; 8] =
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
        .filter(|word| word.len() < MAX_SYSTEM_PATH_BYTES && !word.contains(' '))
        // `.ssh/id_ed25519` is put behind the home folder by the script.
        .filter(|word| {
            SENSITIVE_PATH_PREFIXES.iter().any(|start| word.starts_with(start))
                || word.starts_with('.') && word.contains('/') && !word.starts_with("./")
        })
        .find_map(sensitive_path::credential_at)
}

#[cfg(test)]
mod tests {
    use super::credential_paths_in;

    #[test]
    fn credential_lists_are_found() {
        for text in [
            "{\"files\": {\"a\": \"~/.aws/credentials\"}}",
            "paths:\n  - ~/.ssh/id_ed25519\n  - ~/notes.txt",
            "[check]\nkube = \"$HOME/.kube/config\"",
            ".ssh/id_rsa\n.netrc\n",
        ] {
            assert!(credential_paths_in(text).is_some(), "{text}");
        }
        for text in [
            "{\"ignore\": [\"*.pem\", \".env\"]}",
            "{\"tools\": [\"pip\", \"gcc\"]}",
            "See the docs of .npmrc and ~/.bashrc",
        ] {
            assert!(credential_paths_in(text).is_none(), "{text}");
        }
    }
}
