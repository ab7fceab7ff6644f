//! Recognizes interpreters and shells: granting one of them grants running any code.

/// Names without a version: `python3.12` counts as `python`.
const INTERPRETERS: &[&str] = &[
    // Shells, then languages.
    "sh", "bash", "dash", "zsh", "ksh", "fish", "csh", "tcsh", "ash", "busybox", "toybox", "pwsh",
    "powershell", "cmd", "nu", "python", "pypy", "node", "nodejs", "deno", "bun", "perl", "ruby",
    "irb", "php", "lua", "luajit", "tclsh", "expect", "awk", "gawk", "mawk", "nawk", "java",
    "osascript", "julia", "Rscript", "guile",
    // Programs that start another program, named in their arguments or in a file.
    "env", "xargs", "find", "ssh", "make", "gmake", "sudo", "su", "doas", "nohup", "nice",
    "timeout", "setsid", "stdbuf", "strace", "parallel", "watch", "script", "npx", "uvx", "pipx",
    "docker", "podman", "systemd-run", "flock", "unshare", "nsenter", "chroot", "ionice", "chrt",
    "taskset", "time", "fakeroot", "ltrace", "gdb", "lldb", "crontab", "at", "tmux", "screen",
    // Package managers and build tools: their configuration files list commands to run.
    "npm", "pnpm", "yarn", "bunx", "uv", "ninja", "just", "rake",
    // Editors and pagers that can start a shell.
    "vi", "vim", "nvim", "emacs", "ed", "ex", "man", "less",
];

/// Whether a program, named or with its path, can run any code that it is given.
///
/// ```
/// use savoir_engine::approval::is_interpreter;
///
/// assert!(is_interpreter("/usr/bin/python3.12") && is_interpreter("env"));
/// assert!(!is_interpreter("git"));
/// ```
pub fn is_interpreter(program: &str) -> bool {
    let name = program.rsplit(['/', '\\']).next().unwrap_or(program);
    let name = name.strip_suffix(".exe").unwrap_or(name);
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-'));
    INTERPRETERS.iter().any(|known| known.eq_ignore_ascii_case(bare))
}
