//! Options that grant a skill permissions that it does not declare.

mod preset;

use std::path::Path;

use savoir_engine::approval::{ExtraGrants, shell_word};

use self::preset::Preset;
use crate::{error::CommandError, output};

/// Permissions that the user adds to those of a skill.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "Additional permissions")]
pub(crate) struct ExtraGrantsArgs {
    /// Also allow a common set of permissions
    #[arg(id = "allow", long = "allow", value_name = "NEED")]
    presets: Vec<Preset>,
    /// Also allow reading this file or folder
    #[arg(id = "allow-read", long, value_name = "PATH")]
    read: Vec<String>,
    /// Also allow writing this file or folder
    #[arg(id = "allow-write", long, value_name = "PATH")]
    write: Vec<String>,
    /// Also allow requests to this host, host:port or URL; *.host includes subdomains
    #[arg(id = "allow-host", long, value_name = "HOST")]
    host: Vec<String>,
    /// Also allow requests to this host, host:port or URL in your private network
    #[arg(id = "allow-private-host", long, value_name = "HOST")]
    private_host: Vec<String>,
    /// Also allow running this program
    #[arg(id = "allow-program", long, value_name = "PROGRAM")]
    program: Vec<String>,
    /// Also allow reading this environment variable
    #[arg(id = "allow-env", long, value_name = "NAME")]
    env: Vec<String>,
}

impl ExtraGrantsArgs {
    /// The permissions, with absolute paths.
    pub(crate) fn extra_grants(&self) -> Result<ExtraGrants, CommandError> {
        let paths = |paths: &[String]| -> Result<Vec<String>, CommandError> {
            paths.iter().map(|path| absolute(path)).collect()
        };
        let (mut read, mut write) = (paths(&self.read)?, paths(&self.write)?);
        for preset in &self.presets {
            let folders = preset.permissions()?;
            output::note(&format!("--allow {preset} expands to:{}", folders.to_options()));
            read.extend(folders.read);
            write.extend(folders.write);
        }
        let extra = ExtraGrants {
            read,
            write,
            hosts: self.host.clone(),
            private_hosts: self.private_host.clone(),
            programs: self.program.clone(),
            env: self.env.clone(),
        };
        Ok(extra.sorted())
    }

    /// Adds an option by its name.
    pub(crate) fn add(&mut self, option: &str, value: &str) {
        let list = match option {
            "--allow-read" => &mut self.read,
            "--allow-write" => &mut self.write,
            "--allow-host" => &mut self.host,
            "--allow-private-host" => &mut self.private_host,
            "--allow-program" => &mut self.program,
            "--allow-env" => &mut self.env,
            _ => return,
        };
        list.push(value.to_owned());
    }

    /// The options for a shell, each after a space.
    pub(crate) fn words(&self) -> String {
        let mut words = String::new();
        for preset in &self.presets {
            words.extend([" --allow ", &preset.to_string()]);
        }
        for (option, values) in [
            ("--allow-read", &self.read),
            ("--allow-write", &self.write),
            ("--allow-host", &self.host),
            ("--allow-private-host", &self.private_host),
            ("--allow-program", &self.program),
            ("--allow-env", &self.env),
        ] {
            for value in values {
                words.extend([" ", option, " ", &shell_word(value)]);
            }
        }
        words
    }
}

/// Makes a path absolute, so that it does not depend on the folder of a later run. `~` stays.
fn absolute(path: &str) -> Result<String, CommandError> {
    if path.is_empty() || path == "~" || path.starts_with("~/") {
        return Ok(path.to_owned());
    }
    let failed = |error| CommandError::input(format!("{path}: {error}"));
    let absolute = match Path::new(path).canonicalize() {
        Ok(path) => path,
        // It may be a pattern, or a file that the first run creates.
        Err(_) => std::path::absolute(path).map_err(failed)?,
    };
    absolute.into_os_string().into_string().map_err(|_| {
        CommandError::input(format!("{path} is not UTF-8")).hint("rename it, or name the folder")
    })
}
