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
use serde_json::{Value, json};

use crate::error::CommandError;

/// Name of a project's file.
const PROJECT_FILE: &str = "savoir.toml";

/// The effective settings.
#[derive(Debug, Default)]
pub(crate) struct Config {
    pub(crate) check: CheckConfig,
    /// Where each setting came from, by dotted name.
    origins: Vec<(String, Value, String)>,
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

    /// Every setting with its value and where that came from.
    pub(crate) fn effective(&self) -> Vec<(String, Value, String)> {
        let defaults = [
            ("check.dialect", Value::Null),
            ("check.ignore", json!([])),
            ("check.select", json!([])),
            ("check.strict", json!(false)),
            ("check.target", json!([])),
        ];
        let set = |name: &str| self.origins.iter().find(|(known, ..)| known == name).cloned();
        defaults
            .into_iter()
            .map(|(name, value)| {
                set(name).unwrap_or_else(|| (name.into(), value, "default".into()))
            })
            .collect()
    }

    fn file(&mut self, path: &Path) -> Result<(), CommandError> {
        let shown = path.display();
        let text = fs::read_to_string(path)
            .map_err(|error| CommandError::input(format!("{shown} cannot be read: {error}")))?;
        let file: File = toml::from_str(&text).map_err(|error| {
            CommandError::input(format!("{shown}: {}", error.to_string().trim_end()))
                .hint("`[check]` has select, ignore, strict, target and dialect; `savoir config` shows them")
        })?;
        self.layer(file.check, &shown.to_string())
    }

    fn environment(&mut self) -> Result<(), CommandError> {
        for (name, value) in env::vars() {
            let Some(setting) = name.strip_prefix("SAVOIR_CHECK_") else { continue };
            let words = || {
                let words = value.split(',').map(str::trim).filter(|word| !word.is_empty());
                Some(words.map(str::to_owned).collect())
            };
            let mut file = CheckFile::default();
            match setting {
                "SELECT" => file.select = words(),
                "IGNORE" => file.ignore = words(),
                "TARGET" => file.target = words(),
                "DIALECT" => file.dialect = Some(value).filter(|word| !word.is_empty()),
                "STRICT" => file.strict = Some(boolean(&name, &value)?),
                _ => {
                    return Err(CommandError::input(format!("there is no setting `{name}`")).hint(
                        "SAVOIR_CHECK_ is followed by SELECT, IGNORE, STRICT, TARGET or DIALECT",
                    ));
                }
            }
            self.layer(file, &name)?;
        }
        Ok(())
    }

    fn layer(&mut self, file: CheckFile, origin: &str) -> Result<(), CommandError> {
        let wrong =
            |problem: &dyn std::fmt::Display| CommandError::input(format!("{origin}: {problem}"));
        if let Ok(Value::Object(set)) = serde_json::to_value(&file) {
            for (key, value) in set {
                let name = format!("check.{key}");
                self.origins.retain(|(known, ..)| *known != name);
                self.origins.push((name, value, origin.to_owned()));
            }
        }
        known_codes(origin, file.select.iter().flatten().chain(file.ignore.iter().flatten()))?;
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

fn boolean(name: &str, value: &str) -> Result<bool, CommandError> {
    match value {
        "1" | "true" | "yes" => Ok(true),
        "" | "0" | "false" | "no" => Ok(false),
        other => Err(CommandError::input(format!("{name} is `{other}`, it must be true or false"))),
    }
}

/// Refuses codes that no rule has: a typing error must not switch a check off.
pub(crate) fn known_codes<'a>(
    origin: &str,
    codes: impl Iterator<Item = &'a String>,
) -> Result<(), CommandError> {
    for code in codes {
        if check::rule(code).is_none() {
            let error = CommandError::input(format!("{origin}: there is no rule `{code}`"));
            return Err(match check::nearest_rule(code) {
                Some(near) => error.hint(format!("did you mean `{near}`?")),
                None => error.hint("`savoir rules` lists them all"),
            });
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
