//! Runs the program in a temporary folder.

pub(crate) mod terminal;

use std::{
    env,
    ffi::OsString,
    fmt, fs,
    path::{Path, PathBuf},
    process::Command,
};

/// The output of a command and its exit code.
#[derive(Debug)]
pub(crate) struct Transcript {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl fmt::Display for Transcript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "exit code {}", self.code)?;
        for (name, text) in [("stdout", &self.stdout), ("stderr", &self.stderr)] {
            if !text.is_empty() {
                write!(f, "----- {name} -----\n{text}")?;
            }
        }
        Ok(())
    }
}

impl Transcript {
    pub(crate) fn of(mut command: Command) -> Self {
        let output = command.output().expect("savoir runs");
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self}"))
    }
}

/// A temporary folder to work in.
pub(crate) struct Sandbox {
    dir: tempfile::TempDir,
}

impl Sandbox {
    pub(crate) fn new() -> Self {
        Self { dir: tempfile::tempdir().expect("a temporary folder") }
    }

    /// A folder with a copy of the examples.
    pub(crate) fn with_examples() -> Self {
        let sandbox = Self::new();
        copy(&repository().join("examples"), &sandbox.path("examples"));
        sandbox
    }

    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.dir.path().join(relative)
    }

    pub(crate) fn write(&self, relative: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(relative);
        fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
        fs::write(&path, bytes).expect("a file");
        path
    }

    pub(crate) fn read(&self, relative: &str) -> String {
        fs::read_to_string(self.path(relative)).expect(relative)
    }

    /// A `savoir` command without the settings of the developer.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_savoir"));
        let settings = env::vars_os().map(|(name, _)| name);
        // Tests must not use the developer's paid models.
        let personal = ["SAVOIR_", "OPENAI_", "ANTHROPIC_", "OLLAMA_", "AWS_"];
        let is_personal = |name: &OsString| {
            personal.iter().any(|prefix| name.to_string_lossy().starts_with(prefix))
        };
        for name in settings.filter(is_personal) {
            command.env_remove(name);
        }
        command
            .args(args)
            .current_dir(self.dir.path())
            .env("XDG_CONFIG_HOME", self.path(".config"))
            .env("SAVOIR_HOME", self.path(".savoir"))
            .env("NO_COLOR", "1")
            // Tests must not use the developer's keyring.
            .env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent")
            .env_remove("CLICOLOR_FORCE");
        command
    }

    /// Runs `savoir`; returns its output without color.
    pub(crate) fn run(&self, args: &[&str]) -> Transcript {
        Transcript::of(self.command(args))
    }

    /// Like [`Self::run_as`], on a terminal with typed input.
    pub(crate) fn type_as(
        &self,
        home: &str,
        folder: &str,
        args: &[&str],
        typed: &str,
    ) -> Transcript {
        let mut command = self.command(args);
        command.current_dir(self.path(folder)).env_clear().env("HOME", self.path(home));
        terminal::run(command, typed)
    }

    /// Like [`Self::run`], with a separate home, so that neither skills nor agents of the developer
    /// are visible.
    pub(crate) fn run_as(&self, home: &str, folder: &str, args: &[&str]) -> Transcript {
        Transcript::of(self.command_as(home, folder, args))
    }

    /// The command for [`Self::run_as`].
    pub(crate) fn command_as(&self, home: &str, folder: &str, args: &[&str]) -> Command {
        let mut command = self.command(args);
        command
            .current_dir(self.path(folder))
            .env_clear()
            .env("HOME", self.path(home))
            .env("NO_COLOR", "1");
        command
    }
}

/// The root of the repository.
pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder to copy") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        if entry.file_type().expect("a type").is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("a copy");
        }
    }
}

/// A skill that passes every check.
pub(crate) const GOOD: &str = "---\nname: demo\ndescription: Shows how it works. Use when learning.\n---\n\n# Demo\n\nDo it.\n";
