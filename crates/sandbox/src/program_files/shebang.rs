//! Parses the `#!` line of a script in the same way as the kernel.

use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStrExt,
    path::PathBuf,
};

use crate::limits;

/// The interpreter and argument of a `#!` line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shebang {
    /// The path after `#!`.
    pub(super) interpreter: PathBuf,
    /// The rest of the line, which the kernel passes as one argument.
    pub(super) argument: Option<OsString>,
}

impl Shebang {
    /// Parses the first bytes of a file. Returns `None` if they do not start with `#!` or if the
    /// interpreter does not fit into the bytes that the kernel reads.
    pub(super) fn read(head: &[u8]) -> Option<Self> {
        let window = &head[..head.len().min(limits::SHEBANG_BYTES)];
        let rest = window.strip_prefix(b"#!")?;
        let end = rest.iter().position(|byte| *byte == b'\n');
        // If the file is shorter than the window, its first line ends there too.
        let whole = end.is_some() || head.len() < limits::SHEBANG_BYTES;
        let line = trim(&rest[..end.unwrap_or(rest.len())]);
        let split = line.iter().position(|byte| matches!(byte, b' ' | b'\t' | 0));
        if line.is_empty() || (split.is_none() && !whole) {
            return None;
        }
        let (path, argument) = line.split_at(split.unwrap_or(line.len()));
        let argument = trim(argument.split(|byte| *byte == 0).next().unwrap_or_default());
        Some(Self {
            interpreter: PathBuf::from(OsStr::from_bytes(path)),
            argument: (!argument.is_empty()).then(|| OsStr::from_bytes(argument).to_os_string()),
        })
    }

    /// Returns the program that `env` would start: `env NAME` or `env -S NAME …`, after assignments
    /// and flags.
    pub(super) fn program_of_env(&self) -> Option<OsString> {
        let argument = self.argument.as_ref()?.as_bytes();
        // Without `-S`, the kernel passes the rest of the line as one word, including blanks.
        let Some(flags) = argument.strip_prefix(b"-") else {
            return Some(OsStr::from_bytes(argument).to_os_string());
        };
        let rest = if let Some(rest) = flags.strip_prefix(b"-split-string=") {
            rest
        } else {
            let letters = flags.iter().position(|byte| !b"iv0".contains(byte))?;
            flags[letters..].strip_prefix(b"S")?
        };
        let mut words = rest.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        while let Some(word) = words.next() {
            match word {
                // These flags are followed by a value, which is not the program.
                b"-u" | b"--unset" | b"-C" | b"--chdir" => drop(words.next()),
                _ if word.starts_with(b"-") || word.contains(&b'=') => {}
                _ => return Some(OsStr::from_bytes(word).to_os_string()),
            }
        }
        None
    }
}

fn trim(mut bytes: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = bytes {
        bytes = rest;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<(String, Option<String>)> {
        Shebang::read(text.as_bytes()).map(|line| {
            (
                line.interpreter.to_str().unwrap().to_owned(),
                line.argument.map(|argument| argument.into_string().unwrap()),
            )
        })
    }

    fn env(argument: &str) -> Option<String> {
        Shebang { interpreter: "/usr/bin/env".into(), argument: Some(argument.into()) }
            .program_of_env()
            .map(|name| name.into_string().unwrap())
    }

    #[test]
    fn reads_the_line_as_the_kernel_does() {
        assert_eq!(read("#!/bin/sh\nx"), Some(("/bin/sh".into(), None)));
        assert_eq!(read("#! \t/bin/sh  -e x \t\n"), Some(("/bin/sh".into(), Some("-e x".into()))));
        assert_eq!(read("#!/bin/sh"), Some(("/bin/sh".into(), None)));
        assert_eq!(read("#!\n/bin/sh"), None);
        assert_eq!(read(" #!/bin/sh"), None);
        assert_eq!(read(&format!("#!/{}\n", "x".repeat(300))), None);
        assert_eq!(read(&format!("#!/bin/sh {}\n", "x".repeat(300))).unwrap().0, "/bin/sh");
    }

    #[test]
    fn finds_program_that_env_starts() {
        assert_eq!(env("node"), Some("node".into()));
        assert_eq!(env("-S node --flag"), Some("node".into()));
        assert_eq!(env("-iS A=1 python3 -u"), Some("python3".into()));
        assert_eq!(env("-S -u /x/secret -C /x bash"), Some("bash".into()));
        assert_eq!(env("-Sbash"), Some("bash".into()));
        assert_eq!(env("--split-string=perl -w"), Some("perl".into()));
        assert_eq!(env("-u NAME"), None);
        assert_eq!(env("-"), None);
    }
}
