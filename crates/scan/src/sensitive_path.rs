//! Recognizes sensitive paths: credentials, agent settings and autostart files.

/// Parts of credential paths, and what is stored there.
const CREDENTIAL_PATHS: &[(&str, &str)] = &[
    (".ssh/id_", "SSH keys"),
    (".ssh/*", "SSH keys"),
    (".ssh/$", "SSH keys"),
    (".ssh/{", "SSH keys"),
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
    (".config/solana/*", "wallets"),
    (".config/solana/$", "wallets"),
    (".config/solana/{", "wallets"),
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
    ("/var/run/secrets/kubernetes.io", "Kubernetes credentials"),
    (".cargo/credentials", "cargo tokens"),
    (".gem/credentials", "RubyGems tokens"),
    (".composer/auth.json", "Composer tokens"),
    (".m2/settings.xml", "Maven credentials"),
    (".terraform.d/credentials", "Terraform credentials"),
    (".vault-token", "Vault tokens"),
    ("rclone.conf", "stored passwords"),
    (".config/op/", "stored passwords"),
    ("1password/data", "stored passwords"),
    (".kdbx", "stored passwords"),
    (".my.cnf", "stored passwords"),
    (".mylogin.cnf", "stored passwords"),
    ("filezilla/sitemanager.xml", "stored passwords"),
    ("filezilla/recentservers.xml", "stored passwords"),
    (".local/share/keyrings", "keychains"),
    ("microsoft/credentials", "keychains"),
    ("cache/huggingface/token", "Hugging Face tokens"),
    ("config/doctl/config", "DigitalOcean tokens"),
    (".fly/config.yml", "Fly tokens"),
    (".s3cfg", "AWS credentials"),
    (".boto", "AWS credentials"),
    ("cookies.sqlite", "browser cookies"),
    ("network/cookies", "browser cookies"),
    ("places.sqlite", "the browser's history"),
    (".mozilla/firefox", "browser passwords"),
    ("firefox/profiles", "browser passwords"),
    ("user data/local state", "browser passwords"),
    ("local extension settings", "wallets"),
    // MetaMask, Phantom, Coinbase, Binance and Trust, as browsers call them.
    ("nkbihfbeogaeaoehlefnkodbefgpgknn", "wallets"),
    ("bfnaelmomeimhlpmgjnjophhpkkoljpa", "wallets"),
    ("hnfanknocfeofbddgcijnmhnfnkdnaad", "wallets"),
    ("fhbohimaelbohpjbbldcngcnapndodjp", "wallets"),
    ("egjidjbpglichdcondbcbdnbeeppgdph", "wallets"),
    ("seed.seco", "wallets"),
    ("exodus.wallet", "wallets"),
    ("atomic/local storage", "wallets"),
    (".bitcoin/wallets", "wallets"),
    ("telegram desktop/tdata", "messages of Telegram"),
    ("telegramdesktop/tdata", "messages of Telegram"),
    ("signal/config.json", "messages of Signal"),
    ("signal/sql", "messages of Signal"),
    ("discord/local storage", "Discord tokens"),
    (".python_history", "the shell's history"),
    ("fish_history", "the shell's history"),
    (".psql_history", "the shell's history"),
    (".mysql_history", "the shell's history"),
    (".node_repl_history", "the shell's history"),
    ("library/messages/chat.db", "messages of the user"),
    ("msgstore.db", "messages of WhatsApp"),
];

/// A request to the cloud metadata service whose path is not known.
pub(super) const METADATA: &str = "cloud instance metadata";

const METADATA_HOSTS: [&str; 4] =
    ["169.254.169.254", "metadata.google.internal", "169.254.170.2", "100.100.100.200"];

/// What a request to the cloud metadata service reads, unless it is harmless.
fn cloud_metadata(path: &str) -> Option<&'static str> {
    const FACTS: [&str; 20] = [
        "/placement", "/instance-type", "/instance-id", "/tags/", "/hostname", "/local-ipv4",
        "/public-ipv4", "/local-hostname", "/public-hostname", "/mac", "/network/", "/api/token",
        "/project/project-id", "/project/numeric-project-id", "/instance/zone", "/instance/name",
        "/instance/id", "/instance/machine-type", "/ami-id", "/metadata/instance?",
    ];
    const SECRETS: [&str; 6] = [
        "security-credentials", "service-accounts", "/oauth2", "user-data", "identity-credentials",
        "/token?",
    ];
    if !METADATA_HOSTS.iter().any(|host| path.contains(host)) {
        return None;
    }
    if SECRETS.iter().any(|part| path.contains(part)) {
        return Some("the cloud's instance credentials");
    }
    (!FACTS.iter().any(|part| path.contains(part))).then_some(METADATA)
}

/// Folders that contain little besides credentials.
const CREDENTIAL_FOLDERS: &[(&str, &str)] = &[
    (".ssh", "SSH keys"),
    (".aws", "AWS credentials"),
    (".kube", "Kubernetes credentials"),
    (".config/gh", "GitHub tokens"),
    (".azure", "Azure credentials"),
    (".config/op", "stored passwords"),
];

/// The credentials that are stored at a path.
pub(super) fn credential_at(path: &str) -> Option<&'static str> {
    // Most words are short and plain; no such place is.
    if path.len() < 24 && !path.contains(['.', '/', '\\', '_', ' ']) {
        return None;
    }
    let path = path.to_lowercase().replace('\\', "/");
    let path = path.trim_matches(['"', '\'', ' ']);
    if path.rsplit('.').next() == Some("pub") || path.contains("example") && !path.contains("..") {
        return None;
    }
    let folder = path.trim_end_matches(['/', '*']);
    let name = folder.rsplit('/').next().unwrap_or(folder);
    if matches!(name, "id_rsa" | "id_ed25519" | "id_ecdsa" | "id_dsa") {
        return Some("SSH keys");
    }
    let below = |known: &str| {
        folder.strip_suffix(known).is_some_and(|before| before.is_empty() || before.ends_with('/'))
    };
    if let Some((_, what)) = CREDENTIAL_FOLDERS.iter().find(|(known, _)| below(known)) {
        return Some(what);
    }
    if path.ends_with("/google-chrome")
        || path.ends_with("google/chrome")
        || path.ends_with("/chromium")
    {
        return Some("browser profiles");
    }
    let found = CREDENTIAL_PATHS.iter().find(|(part, _)| path.contains(part));
    found.map(|(_, what)| *what).or_else(|| cloud_metadata(path))
}

/// The secrets that a search pattern looks for, by keywords or by token format.
pub(super) fn secrets_matched_by(pattern: &str) -> Option<&'static str> {
    let lower = pattern.to_lowercase();
    let words = ["password", "seed phrase", "private key", "api key", "api[_", "mnemonic", "iban"];
    let several = words.iter().filter(|word| lower.contains(*word)).count() > 1;
    let forms = lower.contains("akia[") || lower.contains("ghp_[");
    (several && pattern.contains('|') || forms).then_some("secrets in files")
}

/// Whether a text can contain a credential path. A cheap check before the exact one.
pub(super) fn may_name_credentials(text: &str) -> bool {
    // Nearly all of them have a dot or a slash, and most texts are long.
    let plain = !text.contains(['.', '/', '\\']);
    if plain && !text.contains("ogin ") && !text.contains("OGIN ") {
        return false;
    }
    let text = text.to_lowercase().replace('\\', "/");
    text.contains("id_")
        || CREDENTIAL_FOLDERS.iter().any(|(part, _)| text.contains(part))
        || CREDENTIAL_PATHS.iter().any(|(part, _)| text.contains(part))
        || METADATA_HOSTS.iter().any(|host| text.contains(host))
}

/// Whether a path is a folder whose loss would hurt the user.
pub(super) fn is_precious_folder(path: &str) -> bool {
    let path = path.trim_matches(['"', '\'']).replace("${HOME}", "~").replace("$HOME", "~");
    let path = path.trim_end_matches("/*").trim_end_matches("/.").trim_end_matches('/');
    let own =
        ["Documents", "Desktop", "Pictures", "Projects", "projects", "Music", "Videos", ".ssh"];
    matches!(path, "" | "~" | ".." | "/*" | "/home" | "/etc" | "/usr" | "/Users" | "/var" | "/root")
        || path.strip_prefix("~/").is_some_and(|folder| own.contains(&folder))
}

/// Whether a variable contains a secret, judging by its name.
pub(super) fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let public = name.contains("PUBLIC") || name.contains("PUBKEY");
    let holds = [
        "KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "PRIVATE", "MNEMONIC",
        "_PAT", "PASSPHRASE", "DATABASE_URL", "CONNECTION_STRING",
    ]
    .iter()
    .any(|part| name.contains(part));
    (holds || name.ends_with("_PASS")) && !public
}

/// The kind of agent file at a path: memory, instructions, settings.
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
    let folders = [
        ".claude/hooks", ".claude/skills", ".agents/skills", ".cursor/rules", ".openclaw/",
        ".codex/",
    ];
    folders.iter().any(|folder| path.contains(folder)).then_some("the agent's settings")
}

/// The autostart mechanism that a file at this path belongs to.
pub(super) fn autostart_entry(path: &str) -> Option<&'static str> {
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
    } else if any(&[
        "fish/conf.d/",
        ".ipython/profile_default/startup",
        ".ssh/rc",
        "/environment.d/",
        "/etc/ssh/sshrc",
        "/etc/update-motd.d",
        "dispatcher.d/",
        "udev/rules.d",
    ]) || matches!(
        name,
        ".zlogin"
            | ".zlogout"
            | ".bash_logout"
            | ".kshrc"
            | ".xsession"
            | ".xsessionrc"
            | ".pam_environment"
            | ".psqlrc"
            | ".gdbinit"
            | ".lldbinit"
            | ".irbrc"
            | ".pryrc"
            | ".pdbrc"
    ) && path.contains(['~', '$', '/'])
        || matches!(name, ".envrc" | ".xprofile" | ".xinitrc" | "config.fish" | ".inputrc")
        || any(&[
            "git-templates/hooks", "git_template/hooks", "/etc/profile.d", "powershell_profile",
        ])
    {
        Some("a file that runs by itself")
    } else if path.ends_with(".vscode/tasks.json") {
        Some("a task of the editor")
    } else if super::collect::extension(&path) == "pth" {
        Some("a module that every Python imports")
    } else if any(&[
        "/etc/hosts", "/etc/resolv.conf", "/etc/sudoers", "/etc/pam.d", "/etc/ld.so.preload",
        "ssh/sshd_config", "ca-certificates", "drivers/etc/hosts",
    ]) {
        Some("a file that the whole system obeys")
    } else if any(&[".local/bin/", "~/bin/", "$home/bin/", "/usr/local/bin/"])
        && matches!(
            name,
            "sudo" | "su" | "ssh" | "git" | "kubectl" | "docker" | "gpg" | "npm" | "pip"
        )
    {
        Some("a program in the place of another")
    } else if matches!(name, ".curlrc" | ".wgetrc" | "pip.conf") && path.contains(['~', '$']) {
        Some("settings that other programs obey")
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
    fn credential_paths_are_found_and_similar_paths_are_not() {
        for path in ["~/.ssh/id_rsa", "$HOME/.aws/credentials", "C:\\Users\\x\\.ssh", "/etc/shadow"]
        {
            assert!(credential_at(path).is_some(), "{path}");
        }
        for path in ["~/.ssh/id_rsa.pub", "docs/ssh.md", "~/.ssh/known_hosts", ".env.example"] {
            assert_eq!(credential_at(path), None, "{path}");
        }
    }

    #[test]
    fn autostart_and_agent_files_are_found() {
        assert!(autostart_entry("~/Library/LaunchAgents/x.plist").is_some());
        assert!(autostart_entry("/home/x/.bashrc").is_some());
        assert_eq!(autostart_entry("src/profile"), None);
        assert!(agent_file("~/.claude/settings.json").is_some());
        assert_eq!(agent_file("config/settings.json"), None);
    }
}
