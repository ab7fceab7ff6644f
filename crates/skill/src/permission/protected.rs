//! Lists the paths that no skill may write, because other programs run or obey what is there.

use super::{Domain, Level, Permission};

/// Names that a run may not write even in a folder that it may change, because other programs
/// execute or obey these files.
pub const PROTECTED_IN_PROJECT: [&str; 10] = [
    // The whole folder: a program that writes `.git/commondir` makes git read another
    // configuration, and run the commands in it.
    ".git", ".vscode", ".idea", ".claude", ".codex", ".cursor", ".agents", ".mcp.json", ".envrc",
    "savoir.lock",
];
/// Paths in the home that programs run, or take their settings from.
pub const PROTECTED_IN_HOME: [&str; 81] = [
    ".bashrc", ".bash_profile", ".bash_login", ".bash_aliases", ".bash_logout", ".profile",
    ".zshrc", ".zprofile", ".zshenv", ".zlogin", ".config/autostart", ".config/systemd",
    ".config/savoir", ".config/git", ".config/fish", ".cache/savoir", ".local/share/savoir",
    ".local/bin", "bin", ".cargo/bin", ".cargo/env", ".cargo/config.toml", ".npmrc",
    ".claude.json", ".config/claude", ".local/lib", ".ssh", ".gnupg", ".gitconfig", ".claude",
    ".codex", ".agents", ".vscode", ".gemini", // Shells, terminals and debuggers.
    ".kshrc", ".cshrc", ".tcshrc", ".login", ".inputrc", ".tmux.conf", ".config/tmux", ".xprofile",
    ".xinitrc", ".xsessionrc", ".pam_environment", ".gdbinit", ".lldbinit", ".pythonrc",
    ".Rprofile", ".irbrc", ".psqlrc", ".config/environment.d",
    // Editors and managers of versions.
    ".vimrc", ".vim", ".config/nvim", ".emacs", ".emacs.d", ".config/emacs", ".config/zed",
    ".config/helix", ".config/mise", ".config/direnv",
    // Package managers and programs that download.
    ".yarnrc", ".yarnrc.yml", ".bunfig.toml", ".pypirc", ".pip", ".config/pip", ".config/uv",
    ".gemrc", ".bundle", ".condarc", ".m2/settings.xml", ".gradle/init.gradle", ".gradle/init.d",
    ".gradle/gradle.properties", ".nuget/NuGet", ".config/NuGet", ".curlrc", ".wgetrc", ".netrc",
];

/// Names that stay read-only in a `.git` that the user opened for writing.
pub const PROTECTED_IN_GIT: [&str; 10] = [
    "hooks", "config", "config.worktree", "commondir", "info", "modules", "worktrees",
    // Lists of commands that git runs when the user continues a rebase or a cherry-pick.
    "rebase-merge", "rebase-apply", "sequencer",
];

impl Permission {
    /// The path of the scope that no run may write, even if the user grants it. Paths from the root
    /// are left to the run, because the home and the project differ between machines.
    pub fn protected_path(&self) -> Option<&str> {
        let is_file = matches!(self.domain, Domain::Filesystem | Domain::Database);
        let scope = self.scope.as_deref().filter(|_| is_file && self.level == Level::Write)?;
        let path = scope.strip_suffix("/**").unwrap_or(scope);
        let is_below = |names: &[&str], path: &str| {
            names.iter().any(|name| {
                let rest = path.strip_prefix(name);
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            })
        };
        if let Some(home) = path.strip_prefix("~/") {
            return (is_below(&PROTECTED_IN_HOME, home) || is_in_project(home, is_below))
                .then_some(path);
        }
        if path.starts_with(['/', '~']) {
            return None;
        }
        let inside = path.strip_prefix("./").unwrap_or(path);
        is_in_project(inside, is_below).then_some(path)
    }
}

/// Users can grant `.git` itself, but not the files in it that make git run commands.
fn is_in_project(path: &str, is_below: impl Fn(&[&str], &str) -> bool) -> bool {
    match path.strip_prefix(".git") {
        Some("") => false,
        Some(rest) if rest.starts_with('/') => is_below(&PROTECTED_IN_GIT, &rest[1..]),
        _ => is_below(&PROTECTED_IN_PROJECT, path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protected_paths_are_found() {
        let protected = |text: &str| {
            let permission = Permission::parse(text).unwrap();
            permission.protected_path().map(str::to_owned)
        };
        for (scope, path) in [
            ("~/.bashrc", "~/.bashrc"),
            ("~/.ssh/**", "~/.ssh"),
            ("~/.ssh/id", "~/.ssh/id"),
            ("~/.claude", "~/.claude"),
            ("~/.mcp.json", "~/.mcp.json"),
            (".claude/**", ".claude"),
            ("./.claude/settings.json", "./.claude/settings.json"),
            (".git/hooks", ".git/hooks"),
            ("./.git/config", "./.git/config"),
        ] {
            assert_eq!(protected(&format!("filesystem:write:{scope}")).as_deref(), Some(path));
            assert_eq!(protected(&format!("filesystem:read:{scope}")), None);
        }
        for scope in
            ["./out/**", "~/notes", "~/.sshx", ".git", ".git/**", ".gitignore", "/etc/hosts", "."]
        {
            assert_eq!(protected(&format!("filesystem:write:{scope}")), None, "{scope}");
        }
    }
}
