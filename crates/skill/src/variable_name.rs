//! Names of environment variables that no skill sets or gets.

/// Names that make loaders, interpreters, git or the proxy execute or trust something else. `*`
/// stands for any text.
const CHANGE_PROGRAMS: [&str; 16] = [
    "LD_*", "DYLD_*", "PYTHON*", "NODE_OPTIONS", "NODE_EXTRA_CA_CERTS", "NODE_TLS_*", "GIT_*",
    "BASH_ENV", "BASH_FUNC_*", "ENV", "PERL5*", "RUBYOPT", "RUBYLIB", "*_PROXY", "*_proxy",
    "SSL_*",
];

/// Returns the pattern of the variables that change what programs do, if the name is one of them.
///
/// ```
/// use savoir_skill::variable_name::changes_programs;
///
/// assert_eq!(changes_programs("LD_PRELOAD"), Some("LD_*"));
/// assert_eq!(changes_programs("GREETING"), None);
/// ```
pub fn changes_programs(name: &str) -> Option<&'static str> {
    CHANGE_PROGRAMS.into_iter().find(|pattern| {
        match (pattern.strip_suffix('*'), pattern.strip_prefix('*')) {
            (Some(start), _) => name.starts_with(start),
            (_, Some(end)) => name.ends_with(end),
            _ => *pattern == name,
        }
    })
}

/// Whether a skill can set a variable of this name, or get one from the user.
pub fn is_variable_name(name: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_own = matches!(name, "PATH" | "HOME");
    let starts_well = name.starts_with(|c: char| is_word(c) && !c.is_ascii_digit());
    starts_well && name.chars().all(is_word) && !is_own && changes_programs(name).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dangerous_names_are_matched_by_patterns() {
        for name in ["LD_PRELOAD", "PYTHONPATH", "HTTPS_PROXY", "GIT_SSH_COMMAND", "ENV"] {
            assert!(changes_programs(name).is_some() && !is_variable_name(name), "{name}");
        }
        for name in ["ENVIRONMENT", "BUILD_ENV", "GITHUB_TOKEN"] {
            assert!(is_variable_name(name), "{name}");
        }
        for name in ["PATH", "HOME", "1A", "A-B", ""] {
            assert!(!is_variable_name(name), "{name}");
        }
    }
}
