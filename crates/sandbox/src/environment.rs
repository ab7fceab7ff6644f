//! Builds the environment variables of a program. None is inherited from the caller.

use std::ffi::CString;

use crate::{
    error::SandboxError,
    policy::{Policy, Variable},
    proxy::{MaskedSecret, new_placeholder},
};

/// Where a program finds the proxy and the files that make it use the proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProxyAccess {
    pub(crate) url: String,
    /// The certificates that the program trusts.
    pub(crate) certificate_file: String,
    /// The script that makes Node use the proxy.
    pub(crate) node_script: String,
}

impl ProxyAccess {
    /// The proxy in a sandbox that has a network and a root folder of its own.
    pub(crate) fn in_own_root() -> Self {
        Self {
            url: "http://127.0.0.1:3128".to_owned(),
            certificate_file: "/etc/ssl/certs/ca-certificates.crt".to_owned(),
            node_script: NODE_PROXY_SCRIPT.to_owned(),
        }
    }
}

/// The path of a script that makes Node use the proxy. It is in the root folder, which cannot be
/// granted.
pub(crate) const NODE_PROXY_SCRIPT: &str = "/.savoir-node-proxy.cjs";

/// Environment variables in which programs look for the proxy and for trusted certificates.
const PROXY_VARIABLES: [&str; 6] =
    ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"];
const CERTIFICATE_VARIABLES: [&str; 7] = [
    "SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS",
    "GIT_SSL_CAINFO", "PIP_CERT", "CARGO_HTTP_CAINFO",
];

/// The variables that a program sees, and the secrets behind their placeholders.
pub(crate) struct Environment {
    variables: Vec<(String, String)>,
    secrets: Vec<MaskedSecret>,
}

pub(crate) fn build_environment(
    policy: &Policy,
    proxy: Option<&ProxyAccess>,
) -> Result<Environment, SandboxError> {
    let mut environment = Environment { variables: Vec::new(), secrets: Vec::new() };
    for (name, variable) in &policy.environment {
        if name.is_empty() || name.contains(['=', '\0']) {
            return Err(SandboxError::BadVariable { name: name.clone() });
        }
        let value = match variable {
            Variable::Plain(value) => value.clone(),
            Variable::Masked(secret) => {
                let placeholder =
                    new_placeholder().map_err(|error| SandboxError::Proxy(error.to_string()))?;
                let (placeholder_copy, value) = (placeholder.clone(), secret.clone());
                environment.secrets.push(MaskedSecret { placeholder: placeholder_copy, value });
                placeholder
            }
        };
        environment.variables.push((name.clone(), value));
    }
    if let Some(ProxyAccess { url, certificate_file, node_script }) = proxy {
        let node_options = format!("--require={node_script}");
        let proxy = PROXY_VARIABLES.map(|name| (name, url.as_str()));
        let certificates = CERTIFICATE_VARIABLES.map(|name| (name, certificate_file.as_str()));
        let others = [
            ("NO_PROXY", ""),
            ("no_proxy", ""),
            ("NODE_USE_ENV_PROXY", "1"),
            ("NODE_OPTIONS", node_options.as_str()),
        ];
        for (name, value) in proxy.into_iter().chain(certificates).chain(others) {
            environment.variables.retain(|(old, _)| old != name);
            environment.variables.push((name.to_owned(), value.to_owned()));
        }
    }
    Ok(environment)
}

impl Environment {
    /// Returns the value of a variable as the program sees it.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        self.variables
            .iter()
            .find(|(existing, _)| existing == name)
            .map(|(_, value)| value.as_str())
    }

    /// Returns the names and values of all variables.
    pub(crate) fn variables(&self) -> impl Iterator<Item = (&str, &str)> {
        self.variables.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    pub(crate) fn secrets(&self) -> Vec<MaskedSecret> {
        self.secrets.clone()
    }

    /// Returns the variables as `NAME=value` strings for `execve`.
    pub(crate) fn entries(&self) -> Result<Vec<CString>, SandboxError> {
        let entries = self.variables().map(|(name, value)| CString::new(format!("{name}={value}")));
        entries.collect::<Result<_, _>>().map_err(|_| SandboxError::Nul { what: "a variable" })
    }
}
