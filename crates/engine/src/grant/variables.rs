//! The environment of a run: a short list, never the caller's with names removed.

use std::collections::BTreeMap;

use savoir_sandbox::{Policy, Secret, Variable};
use savoir_skill::permission::{Domain, Level};

use super::{Grants, Refusal, glob};

/// Passed on as they are, if they are set.
const ALWAYS: [&str; 6] = ["LANG", "TERM", "TZ", "USER", "COLORTERM", "NO_COLOR"];

/// Where programs are looked for inside: there, only those that were granted exist.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin";

/// Names that make loaders, interpreters, git or the proxy do what someone else wants.
const NEVER: [&str; 16] = [
    "LD_*",
    "DYLD_*",
    "PYTHON*",
    "NODE_OPTIONS",
    "NODE_EXTRA_CA_CERTS",
    "NODE_TLS_*",
    "GIT_*",
    "BASH_ENV",
    "BASH_FUNC_*",
    "ENV",
    "PERL5*",
    "RUBYOPT",
    "RUBYLIB",
    "*_PROXY",
    "*_proxy",
    "SSL_*",
];

/// Words in a name that tell a secret.
const SECRET_WORDS: [&str; 11] = [
    "KEY",
    "TOKEN",
    "SECRET",
    "PASS",
    "CREDENTIAL",
    "AUTH",
    "COOKIE",
    "SESSION",
    "DSN",
    "JWT",
    "DATABASE_URL",
];

/// What a program sees of a secret.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Secrets {
    /// A placeholder: the proxy puts the value in.
    Masked,
    /// The value, which cannot leave since there is no network.
    Plain,
}

pub(super) fn build(
    grants: &Grants<'_>,
    secrets: Secrets,
) -> Result<BTreeMap<String, Variable>, Refusal> {
    let mut variables = BTreeMap::new();
    variables.insert("PATH".to_owned(), Variable::Plain(search_path(grants)));
    variables.insert(
        "HOME".to_owned(),
        Variable::Plain(grants.ground.home.to_string_lossy().into_owned()),
    );
    let parent = &grants.ground.variables;
    for (name, value) in parent.iter().filter(|(name, _)| is_always(name)) {
        variables.insert(name.clone(), Variable::Plain(value.clone()));
    }
    for (pattern, permission) in wanted(grants) {
        if let Some(forbidden) = NEVER.iter().find(|never| is_match(never, &pattern)) {
            return Err(Refusal::new(
                &permission,
                format!("variables such as {forbidden} change what programs do"),
                "remove it from the skill",
            ));
        }
        for (name, value) in parent.iter().filter(|(name, _)| is_match(&pattern, name)) {
            if NEVER.iter().any(|never| is_match(never, name)) {
                continue;
            }
            let variable = if secrets == Secrets::Masked && is_secret(name) {
                Variable::Masked(Secret::new(value))
            } else {
                Variable::Plain(value.clone())
            };
            variables.insert(name.clone(), variable);
        }
    }
    Ok(variables)
}

/// Patterns of the names that the skill wants, with what says so.
fn wanted(grants: &Grants<'_>) -> Vec<(String, String)> {
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

fn is_always(name: &str) -> bool {
    ALWAYS.contains(&name) || name.starts_with("LC_")
}

fn is_match(pattern: &str, name: &str) -> bool {
    glob::matches(&[pattern], &[name])
}

/// Whether a name tells that the value is a secret.
fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    SECRET_WORDS.iter().any(|word| name.contains(word))
}

/// Values that a program sees and nobody else should.
pub(crate) fn visible_secrets(policy: &Policy) -> Vec<String> {
    let plain = policy.environment.iter().filter_map(|(name, value)| match value {
        Variable::Plain(value) if is_secret(name) => Some(value.clone()),
        Variable::Plain(_) | Variable::Masked(_) => None,
    });
    plain.collect()
}

/// Folders of the granted programs that are not among the usual ones come last.
fn search_path(grants: &Grants<'_>) -> String {
    let mut path = PATH.to_owned();
    for folder in grants.programs.iter().filter_map(|program| program.parent()) {
        let folder = folder.to_string_lossy();
        let is_own =
            grants.folder.is_some_and(|own| std::path::Path::new(&*folder).starts_with(own));
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
    fn secrets_are_told_by_their_names() {
        for name in ["BRAVE_API_KEY", "GITHUB_TOKEN", "db_password", "OAUTH_CODE"] {
            assert!(is_secret(name), "{name}");
        }
        for name in ["BRAVE_SEARCH_URL", "EDITOR", "LANG"] {
            assert!(!is_secret(name), "{name}");
        }
    }

    #[test]
    fn dangerous_names_are_told_by_patterns() {
        let never = |name: &str| NEVER.iter().any(|pattern| is_match(pattern, name));
        for name in ["LD_PRELOAD", "PYTHONPATH", "HTTPS_PROXY", "GIT_SSH_COMMAND", "ENV"] {
            assert!(never(name), "{name}");
        }
        for name in ["ENVIRONMENT", "BUILD_ENV", "GITHUB_TOKEN"] {
            assert!(!never(name), "{name}");
        }
    }
}
