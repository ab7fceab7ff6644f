//! Settings: `savoir.toml` of the project, the user's file, the environment, and flags; later wins.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use savoir_skill::{
    Dialect,
    check::{self, Target},
};
use serde::{Deserialize, Serialize};

use crate::error::CommandError;

/// Name of a project's file.
const PROJECT_FILE: &str = "savoir.toml";

/// The effective settings.
#[derive(Debug, Default)]
pub(crate) struct Config {
    pub(crate) check: CheckConfig,
    /// Where each setting came from, by dotted name.
    pub(crate) origins: Vec<(String, serde_json::Value, String)>,
}

/// Settings of `savoir check`.
#[derive(Debug, Default)]
pub(crate) struct CheckConfig {
    pub(crate) select: Vec<String>,
    pub(crate) ignore: Vec<String>,
    pub(crate) strict: bool,
    pub(crate) target: Vec<Target>,
    pub(crate) dialect: Option<Dialect>,
}

/// One file as it is written.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct File {
    #[serde(default)]
    check: CheckFile,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct CheckFile {
    #[serde(skip_serializing_if = "Option::is_none")]
    select: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ignore: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    strict: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dialect: Option<String>,
}

impl Config {
    /// Reads every layer that applies in `start`.
    pub(crate) fn load(start: &Path) -> Result<Self, CommandError> {
        let mut config = Self::default();
        if let Some(path) = project_file(start) {
            config.file(&path)?;
        }
        if let Some(path) = user_file().filter(|path| path.is_file()) {
            config.file(&path)?;
        }
        config.environment()?;
        Ok(config)
    }

    fn file(&mut self, path: &Path) -> Result<(), CommandError> {
        let shown = path.display();
        let text = fs::read_to_string(path)
            .map_err(|error| CommandError::input(format!("{shown} cannot be read: {error}")))?;
        let file: File = toml::from_str(&text).map_err(|error| {
            CommandError::input(format!("{shown}: {}", error.to_string().trim_end()))
                .hint("docs/configuration.md lists every setting")
        })?;
        self.layer(file.check, &shown.to_string())
    }

    fn environment(&mut self) -> Result<(), CommandError> {
        let list = |name: &str| {
            let text = env::var(name).ok()?;
            Some(
                text.split(',')
                    .map(|word| word.trim().to_owned())
                    .filter(|word| !word.is_empty())
                    .collect(),
            )
        };
        let strict = match env::var("SAVOIR_CHECK_STRICT").ok().as_deref() {
            None => None,
            Some("1" | "true" | "yes") => Some(true),
            Some("" | "0" | "false" | "no") => Some(false),
            Some(other) => {
                let message = format!("SAVOIR_CHECK_STRICT is `{other}`, it must be true or false");
                return Err(CommandError::input(message));
            }
        };
        let file = CheckFile {
            select: list("SAVOIR_CHECK_SELECT"),
            ignore: list("SAVOIR_CHECK_IGNORE"),
            strict,
            target: list("SAVOIR_CHECK_TARGET"),
            dialect: env::var("SAVOIR_CHECK_DIALECT").ok().filter(|word| !word.is_empty()),
        };
        self.layer(file, "the environment")
    }

    fn layer(&mut self, file: CheckFile, origin: &str) -> Result<(), CommandError> {
        let wrong =
            |problem: &dyn std::fmt::Display| CommandError::input(format!("{origin}: {problem}"));
        if let Ok(serde_json::Value::Object(set)) = serde_json::to_value(&file) {
            for (key, value) in set {
                let name = format!("check.{key}");
                self.origins.retain(|(known, ..)| *known != name);
                self.origins.push((name, value, origin.to_owned()));
            }
        }
        known_codes(file.select.iter().flatten().chain(file.ignore.iter().flatten()))?;
        if let Some(select) = file.select {
            self.check.select = select;
        }
        if let Some(ignore) = file.ignore {
            self.check.ignore = ignore;
        }
        if let Some(strict) = file.strict {
            self.check.strict = strict;
        }
        if let Some(words) = file.target {
            let targets: Result<Vec<Target>, _> = words.iter().map(|word| word.parse()).collect();
            self.check.target = targets.map_err(|error| wrong(&error))?;
        }
        if let Some(word) = file.dialect {
            self.check.dialect = Some(word.parse().map_err(|error| wrong(&error))?);
        }
        Ok(())
    }
}

/// Refuses codes that no rule has: a typing error must not switch a check off.
pub(crate) fn known_codes<'a>(codes: impl Iterator<Item = &'a String>) -> Result<(), CommandError> {
    for code in codes {
        if check::rule(code).is_none() {
            return Err(CommandError::input(format!("there is no rule `{code}`"))
                .hint("`savoir rules` lists them all"));
        }
    }
    Ok(())
}

fn project_file(start: &Path) -> Option<PathBuf> {
    let start = start.canonicalize().ok()?;
    start.ancestors().map(|dir| dir.join(PROJECT_FILE)).find(|path| path.is_file())
}

fn user_file() -> Option<PathBuf> {
    let base = env::var_os("XDG_CONFIG_HOME").filter(|dir| !dir.is_empty()).map(PathBuf::from);
    let base = base.or_else(|| env::home_dir().map(|home| home.join(".config")))?;
    Some(base.join("savoir/config.toml"))
}
