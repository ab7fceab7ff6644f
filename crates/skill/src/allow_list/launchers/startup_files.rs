//! Finds commands that write to files that other programs execute or read settings from.

/// Names of such files and folders, anywhere in a path.
const STARTUP_FILES: [&str; 48] = [
    ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile",
    ".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".kshrc", ".cshrc", ".inputrc",
    ".xinitrc", ".xprofile", ".xsession", ".pam_environment", ".vimrc", ".exrc", ".emacs",
    ".tmux.conf", ".screenrc", ".curlrc", ".wgetrc", ".npmrc", ".yarnrc", ".yarnrc.yml", ".pypirc",
    ".netrc", ".gitconfig", ".git", ".githooks", ".husky", ".envrc", ".ssh", ".gnupg", ".config",
    ".local", ".cargo", ".vscode", ".idea", ".claude", ".codex", ".cursor", ".gemini", ".mcp.json",
    ".direnv",
];

/// Programs whose plain words are files that they write.
const WRITERS: [&str; 8] = ["cp", "mv", "tee", "install", "ln", "dd", "truncate", "touch"];

/// Options whose value is a file that is written.
const OUTPUT_OPTIONS: [&str; 9] = [
    "-o", "-O", "-out", "--out", "--output", "--outfile", "--output-file", "--outdir",
    "--output-dir",
];

/// Returns why a command is in doubt: it writes to a startup file that the pattern does not contain.
pub(super) fn find_written(words: &[String], named: usize) -> Option<String> {
    let program = words.first()?;
    let is_writer = WRITERS.contains(&program.rsplit('/').next().unwrap_or(program));
    let unnamed = words.iter().enumerate().skip(named.max(1));
    for (at, word) in unnamed {
        let before = words[at - 1].as_str();
        let (name, value) = word.split_once('=').unwrap_or((before, word));
        let attached = word.strip_prefix("-o").or_else(|| word.strip_prefix("-O"));
        let is_output = is_writer || OUTPUT_OPTIONS.contains(&name);
        let is_written = is_output && is_startup_file(value);
        if is_written || attached.is_some_and(is_startup_file) {
            return Some(format!(
                "`{program}` may write to `{value}`, which other programs run or read"
            ));
        }
    }
    None
}

fn is_startup_file(path: &str) -> bool {
    path.starts_with("/etc/") || path.split('/').any(|part| STARTUP_FILES.contains(&part))
}
