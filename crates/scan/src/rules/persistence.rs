//! Rules about code that starts again later or weakens the system.

use savoir_skill::Span;

use crate::{
    Confidence, Severity,
    action::{AGENT_PROMPTS, Action, CLOUD_AUDIT_LOG, CLOUD_BACKUPS, CLOUD_KEYS, CLOUD_MONITORING},
    context::{Context, FindingDraft, confidence_that_code_runs},
    fragment::{Role, TextFragment},
    rule::rule,
    sensitive_path,
};

rule! {
    /// The code sets up a program to start again later.
    ///
    /// ## Why
    ///
    /// A cron job, a launch agent, a service, a line in the shell's start-up file or an SSH login
    /// key stays active after the skill is removed, and runs without asking the user.
    ///
    /// ## Fix
    ///
    /// Do the work when the skill is used. If it must be scheduled, tell the user how to do it.
    ///
    /// ## Bad
    ///
    /// ````bash file=scripts/install.sh
    /// echo "@reboot $HOME/.cache/agent" | crontab -
    /// ````
    ///
    /// ## Good
    ///
    /// ````bash file=scripts/install.sh
    /// crontab -l
    /// ````
    PERSISTENCE = "persistence", High, run persistence
}

fn persistence(context: &mut Context<'_>) {
    context.for_each_action(&PERSISTENCE, |fragment, action, _| {
        let (what, harmless) = match action {
            Action::Persists(what) => (*what, false),
            Action::WritesFile { path, text } => {
                (sensitive_path::autostart_entry(path)?, is_installer_line(text))
            }
            _ => return None,
        };
        if what == "a key for logging in" && is_own_key_elsewhere(fragment) {
            return None;
        }
        // Nobody but Apple has programs of this name.
        let imitates_system = matches!(action, Action::WritesFile { path, .. }
            if path.to_lowercase().contains("launchagents/com.apple."));
        let severity = match (
            harmless && !imitates_system,
            fragment.is_shown_in_document && fragment.hidden_in.is_none(),
        ) {
            (true, _) => Severity::Low,
            (false, true) if what == "a key for logging in" || imitates_system => Severity::High,
            (false, true) => Severity::Medium,
            (false, false) => Severity::High,
        };
        Some(FindingDraft::new(
            severity,
            confidence_that_code_runs(fragment),
            format!("it sets up {what}"),
        ))
    });
    context.for_each_fragment(&PERSISTENCE, find_login_keys);
    context.for_each_fragment(&PERSISTENCE, find_editor_tasks);
}

/// Whether a command that runs on another machine gets a public key of the user:
/// `cat ~/.ssh/id_ed25519.pub | ssh host 'cat >> ~/.ssh/authorized_keys'`.
fn is_own_key_elsewhere(fragment: &TextFragment<'_>) -> bool {
    let is_remote = fragment.depth > 0 && fragment.hidden_in.is_none();
    let text = fragment.text.trim();
    is_remote
        && !text.contains("ssh-ed25519 ")
        && !text.contains("ssh-rsa ")
        && fragment.file_text().split("ssh ").any(|part| {
            let line = part.rsplit("\n\n").next().unwrap_or_default().trim_end();
            let line = line.rsplit('\n').next().unwrap_or_default();
            let sends = line.trim_end().strip_suffix('|').map(str::trim_end);
            sends.is_some_and(|sends| {
                let key = sends.rsplit(' ').next().unwrap_or_default().trim_matches(['"', '\'']);
                key.strip_suffix(".pub").is_some()
                    && ["~/.ssh/", "$HOME/.ssh/"].iter().any(|own| key.starts_with(own))
            })
        })
}

/// Minimum length of an SSH key that is not a placeholder.
const MIN_KEY_BYTES: usize = 12;

/// Finds SSH keys that are added for logging in.
fn find_login_keys(fragment: &TextFragment<'_>) -> Vec<(Span, FindingDraft)> {
    let text: &str = &fragment.text;
    let key = ["ssh-ed25519 AAAA", "ssh-rsa AAAA", "ecdsa-sha2-nistp256 AAAA"];
    let at = key.iter().find_map(|key| text.find(key)).filter(|_| text.contains("authorized_key"));
    // `AAAA...` stands for the key of the reader.
    let is_key = |at: &usize| {
        let key = text[*at..].split_whitespace().nth(1).unwrap_or_default();
        key.trim_end_matches(['.', '\u{2026}', '<', '>', '`', '"']).len() > MIN_KEY_BYTES
    };
    let at = at.filter(is_key);
    let draft = |at: usize| {
        let message = "it sets up a key for logging in";
        (Span::new(at, at + 16), FindingDraft::new(Severity::High, Confidence::Medium, message))
    };
    at.filter(|_| fragment.depth == 0).map(draft).into_iter().collect()
}

/// Finds editor tasks that start when a folder is opened.
fn find_editor_tasks(fragment: &TextFragment<'_>) -> Vec<(Span, FindingDraft)> {
    let text: &str = &fragment.text;
    let runs = ["fetch(", "curl ", "wget ", "node -e", "python -c", "python3 -c", "base64", "http"];
    let at = text.find("\"folderOpen\"").filter(|_| {
        fragment.depth == 0
            && fragment.path.ends_with("tasks.json")
            && runs.iter().any(|mark| text.contains(mark))
    });
    let draft = |at: usize| {
        let message = "it sets up a task that the editor starts by itself";
        (Span::new(at, at + 12), FindingDraft::new(Severity::High, Confidence::Medium, message))
    };
    at.map(draft).into_iter().collect()
}

/// Whether a text is what installers usually add to the shell's start-up file.
fn is_installer_line(text: &str) -> bool {
    let text = text.trim();
    let plain = ["export ", "alias ", "source ", "eval \"$(", "PATH=", ". "]
        .iter()
        .any(|start| text.starts_with(start));
    let fetches = ["curl", "wget", "base64", "LD_PRELOAD", "://", "/dev/tcp"];
    let shadows = ["alias sudo", "alias ssh", "alias git", "alias su="];
    plain && !fetches.iter().chain(&shadows).any(|part| text.contains(part))
}

rule! {
    /// A protection of the system is switched off.
    ///
    /// ## Why
    ///
    /// The quarantine of downloaded files, Gatekeeper, Defender, SELinux and the firewall protect
    /// the machine against unknown programs. Attackers disable them before they run such a
    /// program.
    ///
    /// ## Fix
    ///
    /// Leave the protections on. Use signed programs.
    ///
    /// ## Bad
    ///
    /// ````bash file=scripts/install.sh
    /// xattr -d com.apple.quarantine ./helper && ./helper
    /// ````
    ///
    /// ## Good
    ///
    /// ````bash file=scripts/install.sh
    /// xattr -l ./helper
    /// ````
    PROTECTION_DISABLED = "protection-disabled", High, run protection_disabled
}

fn protection_disabled(context: &mut Context<'_>) {
    // One of them is a step of cleaning up; several leave an account without anything.
    let cloud = [CLOUD_AUDIT_LOG, CLOUD_MONITORING, CLOUD_BACKUPS, CLOUD_KEYS];
    let actions = || context.fragments.iter().flat_map(|analyzed| &analyzed.actions.located);
    let gone = cloud
        .iter()
        .filter(|what| actions().any(|seen| seen.action == Action::DisablesProtection(what)))
        .count();
    context.for_each_action(&PROTECTION_DISABLED, |fragment, action, seen| {
        let Action::DisablesProtection(what) = action else { return None };
        if cloud.contains(what) && gone > 2 {
            let message = format!("it switches off {what}, and more of that kind");
            return Some(FindingDraft::new(Severity::High, Confidence::Medium, message));
        }
        if matches!(*what, CLOUD_BACKUPS | CLOUD_KEYS) {
            let message = format!("it deletes {what}");
            // Deleting an old one is upkeep; also making no new ones leaves nothing to restore.
            let same = seen.located.iter().filter(|one| one.action == *action).count();
            if same > 1 && fragment.role == Role::Script && !fragment.is_shown_in_document {
                let message = format!("{message} in several ways");
                return Some(FindingDraft::new(Severity::High, Confidence::Medium, message));
            }
            return Some(FindingDraft::new(
                Severity::Medium,
                confidence_that_code_runs(fragment),
                message,
            ));
        }
        let document = fragment.role == Role::Document && fragment.hidden_in.is_none();
        let is_example = fragment.is_shown_in_document && (*what == AGENT_PROMPTS || document);
        let severity = if is_example { Severity::Medium } else { Severity::High };
        Some(FindingDraft::new(
            severity,
            confidence_that_code_runs(fragment),
            format!("it switches off {what}"),
        ))
    });
}
