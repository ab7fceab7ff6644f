//! Answers questions about programs: which ones send data, print secrets or pack files.

use crate::{action::Taint, sensitive_path};

/// Description of text that is typed without echo.
pub(super) const TYPED_PASSWORD: &str = "passwords that the user types";

/// Description of logs and histories that an attacker deletes.
pub(super) const COMMAND_HISTORY: &str = "the command history";

pub(super) const TRUSTED_CERTIFICATES: &str = "the list of trusted certificates";

/// Services that protect a machine.
pub(super) const PROTECTION_SERVICES: [&str; 9] = [
    "firewalld", "ufw", "apparmor", "auditd", "falcon", "clamav", "WinDefend", "windefend",
    "osquery",
];

/// Whether a variable sets the package index.
pub(super) fn is_index_variable(name: &str) -> bool {
    matches!(
        name,
        "PIP_INDEX_URL"
            | "PIP_EXTRA_INDEX_URL"
            | "UV_INDEX_URL"
            | "UV_EXTRA_INDEX_URL"
            | "GOPROXY"
            | "NPM_CONFIG_REGISTRY"
            | "npm_config_registry"
    )
}

/// Whether a word is a group of short options with this letter: `-rs`.
pub(super) fn is_flag(text: &str, letter: char) -> bool {
    text.strip_prefix('-')
        .is_some_and(|rest| !rest.starts_with('-') && rest.len() < 5 && rest.contains(letter))
}

/// Whether a `chmod` mode makes a file executable: `+x`, `u+rx`, `755`, `0700`.
pub(super) fn makes_executable(mode: &str) -> bool {
    let digits = mode.trim_start_matches('0');
    if digits.len() == 3 && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return digits.bytes().next().is_some_and(|owner| owner % 2 == 1);
    }
    mode.split_once('+').is_some_and(|(_, rights)| rights.len() < 4 && rights.contains('x'))
}

/// Returns the taint of the credential paths in a text.
pub(super) fn path_taint(text: &str) -> Taint {
    let credential = text.split_whitespace().find_map(sensitive_path::credential_at);
    let mut taint = Taint { credential, ..Taint::default() };
    if text.split_whitespace().any(|word| word == ".env" || word.ends_with("/.env")) {
        taint.tokens.push(".env".into());
    }
    taint
}

/// Returns the archive that a packer writes.
pub(super) fn packs_into<'t>(name: &str, texts: &[&'t str]) -> Option<&'t str> {
    let mut plain = texts.iter().filter(|text| !text.starts_with('-'));
    match name {
        "zip" => plain.next().copied(),
        "ditto" => plain.next_back().copied(),
        "7z" | "7za" | "7zz" | "rar" if texts.first() == Some(&"a") => plain.nth(1).copied(),
        "tar" => {
            let at = texts
                .iter()
                .position(|text| is_flag(text, 'f') || text.starts_with("cz") || *text == "cf")?;
            texts.get(at + 1).copied().filter(|file| *file != "-")
        }
        "openssl" | "gpg" => {
            texts.windows(2).find(|pair| matches!(pair[0], "-out" | "-o")).map(|pair| pair[1])
        }
        _ => None,
    }
}

/// Returns the file that a downloader writes the cookies of the user's browser to.
pub(super) fn saves_cookies<'t>(name: &str, texts: &[&'t str]) -> Option<&'t str> {
    let browser = texts.iter().any(|text| text.starts_with("--cookies-from-browser"));
    if !browser || !matches!(name, "yt-dlp" | "youtube-dl" | "gallery-dl") {
        return None;
    }
    texts.windows(2).find(|pair| pair[0] == "--cookies").map(|pair| pair[1])
}

/// Whether a command encrypts its input.
pub(super) fn encrypts(name: &str, texts: &[&str]) -> bool {
    let has = |words: &[&str]| texts.iter().any(|text| words.contains(text));
    match name {
        "openssl" => has(&["enc"]) && !has(&["-d"]),
        "gpg" => has(&["-c", "--symmetric", "-e", "--encrypt"]),
        "age" => !has(&["-d", "--decrypt"]),
        _ => texts.iter().any(|text| text.starts_with("-p") || matches!(*text, "-P" | "-e")),
    }
}

/// Whether a text is written in escaped numbers: `\\167\\147`.
pub(super) fn is_escaped_numbers(text: &str) -> bool {
    let numbers = text
        .match_indices('\\')
        .filter(|(at, _)| text[at + 1..].starts_with(|c: char| c.is_ascii_digit() || c == 'x'));
    numbers.count() > 7
}

/// Whether a path has the form `host:path`.
pub(super) fn is_remote(path: &str) -> bool {
    path.find(':').is_some_and(|at| at > 1 && !path[..at].contains('/'))
}

/// Whether a program sends files or its input to another machine.
pub(super) fn is_sender(name: &str, texts: &[&str]) -> bool {
    let has = |word: &str| texts.contains(&word);
    match name {
        "aws" => {
            (has("s3") || has("s3api"))
                && (has("cp") || has("sync") || has("mv") || has("put-object"))
        }
        "gsutil" | "rclone" | "mc" | "azcopy" => {
            ["cp", "copy", "sync", "rsync", "mv", "copyto", "move", "rcat", "pipe"]
                .iter()
                .any(|verb| has(verb))
        }
        "az" => has("upload") || has("upload-batch"),
        "gcloud" => has("storage") && (has("cp") || has("rsync")),
        "gh" => {
            has("gist") && has("create")
                || (has("issue") || has("pr")) && (has("comment") || has("create"))
                || has("release") && has("upload")
        }
        "glab" => has("note") || has("create") && (has("issue") || has("snippet")),
        "openssl" => has("s_client"),
        "bitsadmin" => has("/upload"),
        "mail" | "mailx" | "mutt" | "sendmail" | "swaks" | "msmtp" | "ssmtp" | "ftp" | "lftp"
        | "sftp" | "scp" | "rsync" | "ncftpput" | "tftp" | "ssh" | "croc" | "wormhole"
        | "rclone.exe" | "curlftpfs" | "send-mailmessage" => true,
        _ => false,
    }
}

/// Whether a command deletes logs or the shell history.
pub(super) fn wipes_tracks(texts: &[&str]) -> bool {
    let any = |part: &str| texts.iter().any(|text| text.contains(part));
    any("/var/log/") && !any(".gz") || any("bash_history") || any("zsh_history")
}

/// Whether a pattern searches for files with keys.
pub(super) fn looks_for_keys(pattern: &str) -> bool {
    let lower = pattern.trim_matches(['"', '\'']).to_lowercase();
    let name = lower.rsplit('/').next().unwrap_or(&lower).trim_end_matches('*');
    let names = ["privkey", "id_rsa", "id_ed25519", "id_ecdsa", "wallet", "credential", "mnemonic"];
    let endings = [".pem", ".key", ".p12", ".pfx", ".jks", ".kdbx", ".ovpn", ".ppk", ".keystore"];
    names.iter().any(|known| name.contains(known))
        || endings.iter().any(|ending| name.ends_with(ending))
}

/// Whether a path matches many files of the user: `~/Documents/*`, `$HOME/*`.
pub(super) fn matches_user_files(path: &str) -> bool {
    const PUBLIC_FOLDERS: [&str; 7] =
        ["Documents", "Desktop", "Pictures", "Photos", "Music", "Movies", "Videos"];
    let path = path.trim_matches('"');
    let homes = ["~/", "$HOME/", "/home/*/", "/Users/*/"];
    let Some(rest) = homes.iter().find_map(|home| path.strip_prefix(home)) else { return false };
    rest.starts_with('*')
        || PUBLIC_FOLDERS.iter().any(|own| rest.starts_with(own)) && rest.contains('*')
}

/// Whether a question imitates a prompt of the operating system.
pub(super) fn poses_as_system(question: &str) -> bool {
    let lower = question.to_lowercase();
    ["[sudo] password", "sudo password", "login password", "mac password", "keychain password"]
        .iter()
        .any(|words| lower.contains(words))
}

/// Whether the arguments are those of a cryptocurrency miner, whatever the program is called.
pub(super) fn has_miner_arguments(texts: &[&str]) -> bool {
    const MINER_ARGUMENTS: [&str; 12] = [
        "rx/0", "randomx", "kawpow", "ethash", "etchash", "cn/r", "ghostrider", "autolykos2",
        "verushash", "kheavyhash", "cryptonight", "equihash",
    ];
    let named = texts.windows(2).any(|pair| {
        matches!(pair[0], "-a" | "--algo" | "--algorithm" | "--coin")
            && MINER_ARGUMENTS.contains(&pair[1])
    });
    named && texts.iter().any(|text| matches!(*text, "-u" | "--user" | "-o" | "--url" | "--pool"))
}
