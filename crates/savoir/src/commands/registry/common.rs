//! Shared code of the subcommands.

use std::{process::ExitCode, str::FromStr};

use savoir_package::registry::{Client, Name, RegistryError};
use semver::Version;
use serde_json::Value;

use crate::{error::CommandError, output, remote::Remote, runtime};

/// Options for the registry and the output.
#[derive(Debug, clap::Args)]
pub(super) struct Common {
    #[command(flatten)]
    pub(super) remote: Remote,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

impl Common {
    /// Runs `work`, and prints the result as JSON or as text.
    pub(super) fn print_result(
        &self,
        work: impl FnOnce() -> Result<(Value, String), CommandError>,
    ) -> Result<ExitCode, CommandError> {
        let (value, text) = work()?;
        if self.json {
            output::json(&value)?;
        } else {
            output::text(&output::sanitize(&text))?;
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Like [`Self::print_result`], with the registry of a version.
    pub(super) fn with(
        &self,
        target: &VersionTarget,
        work: impl AsyncFnOnce(&Client) -> Result<(Value, String), CommandError>,
    ) -> Result<ExitCode, CommandError> {
        self.with_skill(&target.name, work)
    }

    /// Like [`Self::print_result`], with the registry of a skill.
    pub(super) fn with_skill(
        &self,
        name: &Name,
        work: impl AsyncFnOnce(&Client) -> Result<(Value, String), CommandError>,
    ) -> Result<ExitCode, CommandError> {
        self.print_result(|| {
            let client = self.remote.client_of(name)?;
            runtime::block_on(work(&client))
        })
    }

    /// Like [`Self::print_result`], with the default registry.
    pub(super) fn with_registry(
        &self,
        work: impl AsyncFnOnce(&Client) -> Result<(Value, String), CommandError>,
    ) -> Result<ExitCode, CommandError> {
        self.print_result(|| runtime::block_on(work(&self.remote.client()?)))
    }

    /// Like [`Self::print_result`], with the registry of a namespace.
    pub(super) fn with_namespace(
        &self,
        namespace: &str,
        work: impl AsyncFnOnce(&Client) -> Result<(Value, String), CommandError>,
    ) -> Result<ExitCode, CommandError> {
        self.print_result(|| {
            let name = namespace.strip_prefix(NO_NAMESPACE_PREFIX).unwrap_or(namespace);
            let name = Name::parse(name).map_err(|error| {
                CommandError::input(format!("`{namespace}` is not a namespace"))
                    .with_code(error.code())
            })?;
            runtime::block_on(work(&self.remote.client_of(&name)?)).map_err(with_namespace_hint)
        })
    }
}

/// Adds a hint if the token has no permission to change members and keys.
fn with_namespace_hint(error: CommandError) -> CommandError {
    let lacks = error.code().as_deref() == Some("forbidden_scope")
        && error.to_string().contains("lacks the scope registry:owner");
    if lacks { error.hint("log in with this permission: savoir login --owner") } else { error }
}

/// Prefix of skills without a namespace.
pub(super) const NO_NAMESPACE_PREFIX: &str = "_/";

/// The name of a namespace for users: without the prefix of a skill without a namespace.
pub(super) fn without_prefix(namespace: &str) -> &str {
    namespace.strip_prefix(NO_NAMESPACE_PREFIX).unwrap_or(namespace)
}

/// Requests data about the team of a namespace. If the namespace does not exist or is not
/// accessible, requests it for the skill without a namespace (`_/NAME`). Returns which of the two
/// was found.
pub(super) async fn load_team<T>(
    namespace: &str,
    ask: impl AsyncFn(&str) -> Result<T, RegistryError>,
) -> Result<(String, T), RegistryError> {
    match ask(namespace).await {
        Ok(answer) => Ok((namespace.to_owned(), answer)),
        Err(first) if !namespace.starts_with(NO_NAMESPACE_PREFIX) && is_elsewhere(&first) => {
            let alone = format!("{NO_NAMESPACE_PREFIX}{namespace}");
            ask(&alone).await.map(|answer| (alone, answer)).map_err(|_| first)
        }
        Err(error) => Err(error),
    }
}

/// Changes the team of a namespace, or of a skill without a namespace. If the namespace exists, a
/// failed change is never retried for the skill of the same name, whatever the reason.
pub(super) async fn change_team<T>(
    client: &Client,
    namespace: &str,
    change: impl AsyncFn(&str) -> Result<T, RegistryError>,
) -> Result<(String, T), RegistryError> {
    let first = match change(namespace).await {
        Ok(answer) => return Ok((namespace.to_owned(), answer)),
        Err(error) => error,
    };
    let may_be_alone = !namespace.starts_with(NO_NAMESPACE_PREFIX) && is_missing(&first);
    if !may_be_alone || !client.members(namespace).await.is_err_and(|error| is_missing(&error)) {
        return Err(first);
    }
    let alone = format!("{NO_NAMESPACE_PREFIX}{namespace}");
    change(&alone).await.map(|answer| (alone, answer)).map_err(|second| match second {
        missing if is_missing(&missing) => first,
        second => second,
    })
}

fn is_missing(error: &RegistryError) -> bool {
    matches!(error, RegistryError::NoNamespace { .. } | RegistryError::Refused { status: 404, .. })
}

fn is_elsewhere(error: &RegistryError) -> bool {
    is_missing(error) || matches!(error, RegistryError::Refused { status: 403, .. })
}

/// One version of a published skill: `NAME@VERSION`.
#[derive(Clone, Debug)]
pub(super) struct VersionTarget {
    pub(super) name: Name,
    pub(super) version: Version,
}

impl FromStr for VersionTarget {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, version) =
            text.split_once('@').ok_or("write NAME@VERSION, such as acme/pdf@1.2.0")?;
        Ok(Self {
            name: Name::parse(name).map_err(|error| error.to_string())?,
            version: Version::parse(version)
                .map_err(|error| format!("`{version}` is not a version such as 1.2.0: {error}"))?,
        })
    }
}

/// One version of a published skill, or all of them: `NAME[@VERSION]`.
#[derive(Clone, Debug)]
pub(super) struct OneOrAll {
    pub(super) name: Name,
    pub(super) version: Option<Version>,
}

impl FromStr for OneOrAll {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.contains('@') {
            let VersionTarget { name, version } = text.parse()?;
            return Ok(Self { name, version: Some(version) });
        }
        let name = Name::parse(text).map_err(|error| error.to_string())?;
        Ok(Self { name, version: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_named_exactly() {
        let target: VersionTarget = "acme/pdf@1.2.0-rc.1".parse().unwrap();
        assert_eq!((target.name.last(), target.version.pre.as_str()), ("pdf", "rc.1"));
        for bad in ["acme/pdf", "pdf@^1", "pdf@1.2", "../x@1.0.0", "@1.0.0", "a@b@1.0.0"] {
            assert!(bad.parse::<VersionTarget>().is_err(), "{bad}");
        }
    }

    #[test]
    fn all_versions_are_named_without_any() {
        let all: OneOrAll = "acme/pdf".parse().unwrap();
        assert_eq!((all.name.last(), all.version), ("pdf", None));
        let one: OneOrAll = "acme/pdf@1.2.0".parse().unwrap();
        assert_eq!(one.version, Some(Version::new(1, 2, 0)));
        for bad in ["acme/pdf@", "pdf@^1", "../x", "@1.0.0", ""] {
            assert!(bad.parse::<OneOrAll>().is_err(), "{bad}");
        }
    }
}
