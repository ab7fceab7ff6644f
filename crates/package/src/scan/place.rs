//! Places that skills have no business with: where credentials lie, and where tools are steered.

/// Parts of paths below which credentials lie, and what they are.
const CREDENTIALS: &[(&str, &str)] = &[
    (".ssh/id_", "SSH keys"),
    (".ssh/*", "SSH keys"),
    (".aws/credentials", "AWS credentials"),
    (".aws/config", "AWS credentials"),
    (".netrc", "stored passwords"),
    (".pgpass", "stored passwords"),
    (".git-credentials", "Git credentials"),
    (".config/gh/hosts", "GitHub tokens"),
    (".kube/config", "Kubernetes credentials"),
    (".docker/config.json", "Docker credentials"),
    (".config/gcloud", "Google Cloud credentials"),
    (".azure/", "Azure credentials"),
    (".npmrc", "npm tokens"),
    (".pypirc", "PyPI tokens"),
    (".gnupg", "GnuPG keys"),
    ("/etc/shadow", "passwords of the system"),
    ("/proc/self/environ", "the environment"),
    ("login data", "browser passwords"),
    ("logins.json", "browser passwords"),
    ("key4.db", "browser passwords"),
    ("chrome/default/cookies", "browser cookies"),
    ("chrome/user data", "browser passwords"),
    ("library/keychains", "keychains"),
    ("login.keychain", "keychains"),
    (".password-store", "stored passwords"),
    ("wallet.dat", "wallets"),
    (".ethereum/keystore", "wallets"),
    (".config/solana/id.json", "wallets"),
    (".electrum", "wallets"),
    ("exodus/exodus.wallet", "wallets"),
    (".bash_history", "the shell's history"),
    (".zsh_history", "the shell's history"),
    (".claude/.credentials", "the agent's credentials"),
    (".codex/auth.json", "the agent's credentials"),
    (".openclaw/credentials", "the agent's credentials"),
    (".openclaw/openclaw.json", "the agent's credentials"),
    (".openclaw/.env", "the agent's credentials"),
    (".clawdbot/.env", "the agent's credentials"),
    (".clawdbot/clawdbot.json", "the agent's credentials"),
    ("169.254.169.254", "the cloud's instance credentials"),
    ("metadata.google.internal", "the cloud's instance credentials"),
];

/// What credentials a path leads to.
pub(super) fn credential(path: &str) -> Option<&'static str> {
    let path = path.to_lowercase().replace('\\', "/");
    let path = path.trim_matches(['"', '\'', ' ']);
    if path.rsplit('.').next() == Some("pub") || path.contains("example") {
        return None;
    }
    if path.ends_with("/.ssh") || path.ends_with("/.ssh/") || path == ".ssh" {
        return Some("SSH keys");
    }
    if path.ends_with("/.aws") || path.ends_with("/.aws/") {
        return Some("AWS credentials");
    }
    let found = CREDENTIALS.iter().find(|(part, _)| path.contains(part));
    found.map(|(_, what)| *what)
}

/// Whether any word of a text can be one of those paths.
pub(super) fn may_hold_credentials(text: &str) -> bool {
    let text = text.to_lowercase().replace('\\', "/");
    text.contains(".ssh")
        || text.contains(".aws")
        || CREDENTIALS.iter().any(|(part, _)| text.contains(part))
}

/// Whether the name of a variable says that it holds a secret.
pub(super) fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "PRIVATE", "MNEMONIC"]
        .iter()
        .any(|part| name.contains(part))
}

/// What steers agents, and what is lost when it is written to.
pub(super) fn agent_file(path: &str) -> Option<&'static str> {
    let path = path.to_lowercase().replace('\\', "/");
    let name = path.rsplit('/').next().unwrap_or(&path);
    match name {
        "soul.md" | "identity.md" | "memory.md" | "heartbeat.md" => {
            return Some("the agent's memory");
        }
        "claude.md"
        | "agents.md"
        | "gemini.md"
        | ".cursorrules"
        | ".windsurfrules"
        | "copilot-instructions.md" => return Some("the agent's standing instructions"),
        "settings.json" | "settings.local.json" if path.contains(".claude/") => {
            return Some("the agent's settings");
        }
        ".mcp.json" | "mcp.json" | "claude_desktop_config.json" | ".claude.json" => {
            return Some("the agent's MCP servers");
        }
        _ => {}
    }
    let folders = [".claude/hooks", ".claude/skills", ".cursor/rules", ".openclaw/", ".codex/"];
    folders.iter().any(|folder| path.contains(folder)).then_some("the agent's settings")
}

/// What makes a written file start again later.
pub(super) fn autostart(path: &str) -> Option<&'static str> {
    let path = path.to_lowercase().replace('\\', "/");
    let name = path.rsplit('/').next().unwrap_or(&path);
    let any = |parts: &[&str]| parts.iter().any(|part| path.contains(part));
    if any(&["/etc/cron", "/var/spool/cron", "/etc/periodic"]) {
        Some("a cron job")
    } else if any(&["launchagents", "launchdaemons"]) {
        Some("a launch agent")
    } else if any(&["systemd/system", "systemd/user", "/etc/init.d", "/etc/rc.local"]) {
        Some("a system service")
    } else if any(&["config/autostart", "start menu/programs/startup"]) {
        Some("a program that starts at login")
    } else if path.ends_with(".ssh/authorized_keys") {
        Some("a key for logging in")
    } else if any(&[".git/hooks/"]) {
        Some("a Git hook")
    } else if matches!(
        name,
        ".bashrc"
            | ".zshrc"
            | ".profile"
            | ".bash_profile"
            | ".zprofile"
            | ".zshenv"
            | ".bash_login"
    ) {
        Some("the shell's start-up file")
    } else if name.starts_with("sitecustomize") || name == "usercustomize.py" {
        Some("a module that every Python imports")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_told_from_their_neighbours() {
        for path in ["~/.ssh/id_rsa", "$HOME/.aws/credentials", "C:\\Users\\x\\.ssh", "/etc/shadow"]
        {
            assert!(credential(path).is_some(), "{path}");
        }
        for path in ["~/.ssh/id_rsa.pub", "docs/ssh.md", "~/.ssh/known_hosts", ".env.example"] {
            assert_eq!(credential(path), None, "{path}");
        }
    }

    #[test]
    fn what_starts_again() {
        assert!(autostart("~/Library/LaunchAgents/x.plist").is_some());
        assert!(autostart("/home/x/.bashrc").is_some());
        assert_eq!(autostart("src/profile"), None);
        assert!(agent_file("~/.claude/settings.json").is_some());
        assert_eq!(agent_file("config/settings.json"), None);
    }
}
