//! Builds the environment variables of a run from a short list of allowed names. The caller's
//! environment is never passed on as a whole.

use std::{collections::BTreeMap, path::PathBuf};

use savoir_sandbox::{Policy, Secret, Variable};
use savoir_skill::{
    permission::{Domain, Level, Permission},
    variable_name::changes_programs,
};

use super::{Grants, Refusal, glob};

/// Names that are always passed on, if they are set. Locale names are listed one by one, because a
/// secret might be called `LC_TOKEN`.
const ALWAYS_PASSED: [&str; 19] = [
    "LANG", "TERM", "TZ", "USER", "COLORTERM", "NO_COLOR", "LC_ALL", "LC_CTYPE", "LC_NUMERIC",
    "LC_TIME", "LC_COLLATE", "LC_MONETARY", "LC_MESSAGES", "LC_PAPER", "LC_NAME", "LC_ADDRESS",
    "LC_TELEPHONE", "LC_MEASUREMENT", "LC_IDENTIFICATION",
];

/// The `PATH` inside the sandbox, where only granted programs exist in these folders.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin";

/// Words in a name that indicate a secret.
const SECRET_WORDS: [&str; 11] = [
    "KEY", "TOKEN", "SECRET", "PASS", "CREDENTIAL", "AUTH", "COOKIE", "SESSION", "DSN", "JWT",
    "DATABASE_URL",
];

/// How a program sees a secret.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SecretForm {
    /// As a placeholder, which the proxy replaces by the value.
    Masked,
    /// As the value, which cannot leave because the run has no network.
    Plain,
}

pub(super) fn build(
    grants: &Grants<'_>,
    added: &[PathBuf],
    secrets: SecretForm,
) -> Result<BTreeMap<String, Variable>, Refusal> {
    let mut variables = BTreeMap::new();
    variables.insert("PATH".to_owned(), Variable::Plain(search_path(grants, added)));
    variables.insert(
        "HOME".to_owned(),
        Variable::Plain(grants.private_home().to_string_lossy().into_owned()),
    );
    let parent = &grants.run_env.variables;
    for (name, value) in parent.iter().filter(|(name, _)| ALWAYS_PASSED.contains(&name.as_str())) {
        variables.insert(name.clone(), Variable::Plain(value.clone()));
    }
    for (pattern, permission) in requested_names(grants) {
        check_name(&pattern, &permission)?;
        for (name, value) in parent.iter().filter(|(name, _)| is_match(&pattern, name)) {
            if changes_programs(name).is_some() {
                continue;
            }
            let variable = if secrets == SecretForm::Masked && is_secret(name) {
                Variable::Masked(Secret::new(value))
            } else {
                Variable::Plain(value.clone())
            };
            variables.insert(name.clone(), variable);
        }
        // A stored secret must be requested by its exact name; patterns do not match it.
        if let Some(secret) = grants.run_env.secret(&pattern, grants.skill) {
            let value = secret.value().map_err(|error| {
                let hint =
                    format!("unlock it, or store the value again: savoir secret set {pattern}");
                Refusal::new(&permission, error.to_string(), hint)
            })?;
            let variable = match secrets {
                SecretForm::Masked => Variable::Masked(Secret::new(&value)),
                SecretForm::Plain => Variable::Plain(value),
            };
            variables.insert(pattern, variable);
        }
    }
    Ok(variables)
}

/// Refuses permissions for variables that change what programs do.
pub(super) fn check_names(permissions: &[Permission]) -> Result<(), Refusal> {
    permissions
        .iter()
        .filter(|permission| permission.domain == Domain::Env && permission.level == Level::Read)
        .try_for_each(|permission| {
            check_name(permission.scope.as_deref().unwrap_or("*"), permission)
        })
}

fn check_name(pattern: &str, permission: &impl ToString) -> Result<(), Refusal> {
    changes_programs(pattern).map_or(Ok(()), |forbidden| {
        let reason = format!("variables such as {forbidden} change what programs do");
        Err(Refusal::new(permission, reason, "remove it from the skill"))
    })
}

/// Patterns of the names that the skill requests, each with the permission or the name for
/// messages.
fn requested_names(grants: &Grants<'_>) -> Vec<(String, String)> {
    let declared = grants
        .permissions
        .iter()
        .filter(|permission| permission.domain == Domain::Env && permission.level == Level::Read)
        .map(|permission| {
            (permission.scope.clone().unwrap_or_else(|| "*".to_owned()), permission.to_string())
        });
    let required = grants.variables.iter().chain(&grants.extra.env);
    declared.chain(required.map(|name| (name.clone(), name.clone()))).collect()
}

fn is_match(pattern: &str, name: &str) -> bool {
    glob::matches(&[pattern], &[name])
}

/// Whether a name indicates that the value is a secret.
pub(crate) fn is_secret(name: &str) -> bool {
    // Removes words that only look like one of the list.
    let name = name.to_ascii_uppercase().replace("AUTHORI", "AUTH_I");
    let name = name.replace("AUTHOR", "").replace("KEYBOARD", "");
    SECRET_WORDS.iter().any(|word| name.contains(word))
}

/// Secret values that a program sees, and that are masked in its output or in records.
#[derive(Clone, Debug, Default)]
pub(crate) struct VisibleSecrets {
    /// Values that are masked in the output.
    pub(crate) in_output: Vec<String>,
    /// Values that are masked in records and errors.
    pub(crate) in_records: Vec<String>,
}

/// Collects the secrets that a program sees as plain values. A variable of the environment that the
/// user grants with `--allow-env` may be printed, because the user chose to show it.
pub(crate) fn visible_secrets(grants: &Grants<'_>, policy: &Policy) -> VisibleSecrets {
    let mut visible = VisibleSecrets::default();
    for (name, variable) in &policy.environment {
        let Variable::Plain(value) = variable else { continue };
        let is_stored = grants.run_env.secret(name, grants.skill).is_some();
        if !is_stored && !is_secret(name) {
            continue;
        }
        visible.in_records.push(value.clone());
        if is_stored || !grants.extra.env.contains(name) {
            visible.in_output.push(value.clone());
        }
    }
    visible
}

/// The value of `PATH`. Folders of granted programs outside the usual ones come last; only the
/// granted programs exist in these folders.
fn search_path(grants: &Grants<'_>, added: &[PathBuf]) -> String {
    let mut path = DEFAULT_PATH.to_owned();
    let programs = grants.programs.iter().chain(added);
    for folder in programs.filter_map(|program| program.parent()) {
        let is_own = grants.folder.is_some_and(|own| folder.starts_with(own));
        let folder = folder.to_string_lossy();
        if !is_own && !path.split(':').any(|known| known == folder) {
            path.push(':');
            path.push_str(&folder);
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_recognized_by_name() {
        for name in ["BRAVE_API_KEY", "GITHUB_TOKEN", "db_password", "OAUTH_CODE", "AUTHORIZATION"]
        {
            assert!(is_secret(name), "{name}");
        }
        for name in ["BRAVE_SEARCH_URL", "EDITOR", "LANG", "AUTHOR_NAME", "KEYBOARD_LAYOUT"] {
            assert!(!is_secret(name), "{name}");
        }
    }
}
