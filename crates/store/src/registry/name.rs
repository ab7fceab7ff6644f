//! Parses the names of namespaces and packages, and defines owner scopes.

use std::{fmt, str::FromStr};

use savoir_skill::name::{
    NameGrammar, is_reserved_namespace, is_reserved_skill_name, reserved_prefix,
};
use semver::Version;

use super::RegistryError;

/// How the default namespace is stored and written in URLs. It is not a valid name.
const DEFAULT_NAMESPACE: &str = "_";
/// The namespace of prose skills whose author named no namespace.
const ANONYMOUS_NAMESPACE: &str = "anon";

const RESERVED_NAME_MESSAGE: &str = "the registry needs this name itself; choose another";

/// A namespace, in which package names are unique.
///
/// Two namespaces are shared by all users: the default one, whose packages are named without it as
/// in GAIA, and `anon`. In these, each package has its own owners. Any other namespace, with all
/// its packages, belongs to the team of the first user who took it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Namespace(String);

impl Namespace {
    /// The shared namespaces.
    pub(super) const SHARED: [&'static str; 2] = [DEFAULT_NAMESPACE, ANONYMOUS_NAMESPACE];

    /// The default namespace, whose packages are named without it.
    pub fn default_namespace() -> Self {
        Self(DEFAULT_NAMESPACE.to_owned())
    }

    /// The namespace for prose skills, `anon`.
    pub fn anonymous() -> Self {
        Self(ANONYMOUS_NAMESPACE.to_owned())
    }

    /// Parses the name of a namespace; `_` is the default one.
    pub fn parse(text: &str) -> Result<Self, RegistryError> {
        if text == DEFAULT_NAMESPACE {
            return Ok(Self::default_namespace());
        }
        NameGrammar::Ascii.check(text).map_err(|problem| RegistryError::Name {
            name: text.to_owned(),
            message: problem.to_string(),
        })?;
        if is_reserved_namespace(text) {
            return Err(RegistryError::Name {
                name: text.to_owned(),
                message: RESERVED_NAME_MESSAGE.to_owned(),
            });
        }
        Ok(Self(text.to_owned()))
    }

    /// The name; `_` for the default namespace.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether packages of this namespace are named without it.
    pub fn is_default(&self) -> bool {
        self.0 == DEFAULT_NAMESPACE
    }

    /// Whether all users may publish here, under names that are free.
    pub fn is_shared(&self) -> bool {
        Self::SHARED.contains(&self.0.as_str())
    }

    /// The reserved prefix that the name begins with: `amd` and `amd-labs` are reserved, `amdahl`
    /// is not.
    pub(super) fn reserved_prefix(&self) -> Option<&'static str> {
        reserved_prefix(&format!("{}-", self.0))
    }
}

impl fmt::Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The name of a package: `web-search` in the default namespace, `acme/web-search` in another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PackageName {
    namespace: Namespace,
    name: String,
}

impl PackageName {
    /// Creates a name in a namespace. The name must be valid in every dialect.
    pub fn new(namespace: Namespace, name: &str) -> Result<Self, RegistryError> {
        NameGrammar::Published.check(name).map_err(|problem| RegistryError::Name {
            name: name.to_owned(),
            message: problem.to_string(),
        })?;
        let inside = (!namespace.is_default()).then_some(namespace.as_str());
        if is_reserved_skill_name(inside, name) {
            return Err(RegistryError::Name {
                name: name.to_owned(),
                message: RESERVED_NAME_MESSAGE.to_owned(),
            });
        }
        Ok(Self { namespace, name: name.to_owned() })
    }

    pub fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// The name without the namespace.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The file name of a version's archive.
    pub fn filename(&self, version: &Version) -> String {
        format!("{}-{version}.zip", self.name)
    }

    /// The scope whose members own the package.
    pub fn owner_scope(&self) -> OwnerScope {
        if self.namespace.is_shared() {
            OwnerScope(self.id())
        } else {
            OwnerScope(self.namespace.0.clone())
        }
    }

    /// The database key: always with the namespace.
    pub(super) fn id(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    /// The reserved prefix, if the name has one, under which only some accounts may publish.
    pub(super) fn reserved_prefix(&self) -> Option<&'static str> {
        let namespace = self.namespace.reserved_prefix();
        // `mcp` alone is not reserved, `mcp-files` is.
        reserved_prefix(&self.name).or(namespace)
    }
}

impl FromStr for PackageName {
    type Err = RegistryError;

    /// Parses `name`, `namespace/name` or `_/name`.
    fn from_str(text: &str) -> Result<Self, RegistryError> {
        match text.split_once('/') {
            Some((namespace, name)) => Self::new(Namespace::parse(namespace)?, name),
            None => Self::new(Namespace::default_namespace(), text),
        }
    }
}

impl fmt::Display for PackageName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_default() {
            f.write_str(&self.name)
        } else {
            write!(f, "{}/{}", self.namespace, self.name)
        }
    }
}

impl serde::Serialize for PackageName {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for PackageName {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// The unit of ownership, and what a key signs for: a namespace with all its packages, or one
/// package of a shared namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OwnerScope(String);

impl OwnerScope {
    /// The scope of a namespace. Shared namespaces have no owner.
    pub fn of_namespace(namespace: &Namespace) -> Result<Self, RegistryError> {
        if namespace.is_shared() {
            let message = "this namespace is everybody's; name one of its packages".to_owned();
            return Err(RegistryError::Name { name: namespace.to_string(), message });
        }
        Ok(Self(namespace.0.clone()))
    }

    /// The scope of the registry's auditors: everything. Only administrators change its keys.
    pub fn auditors() -> Self {
        Self("*".to_owned())
    }

    pub(super) fn is_for_auditors(&self) -> bool {
        self.0 == "*"
    }

    /// A namespace, or the name of a package with `_/` or `anon/` before it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Creates a scope from a stored text.
    pub(super) fn read(text: String) -> Self {
        Self(text)
    }
}

impl FromStr for OwnerScope {
    type Err = RegistryError;

    /// Parses `acme`, `acme/tool` (which is `acme`), `_/tool` or `anon/note`.
    fn from_str(text: &str) -> Result<Self, RegistryError> {
        if text.contains('/') {
            return Ok(text.parse::<PackageName>()?.owner_scope());
        }
        Self::of_namespace(&Namespace::parse(text)?)
    }
}

impl fmt::Display for OwnerScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> PackageName {
        text.parse().unwrap()
    }

    #[test]
    fn package_names_with_and_without_namespace() {
        for (text, id, shown, owner_scope) in [
            ("web-search", "_/web-search", "web-search", "_/web-search"),
            ("_/web-search", "_/web-search", "web-search", "_/web-search"),
            ("anon/note", "anon/note", "anon/note", "anon/note"),
            ("acme/web-search", "acme/web-search", "acme/web-search", "acme"),
            ("0x/tool", "0x/tool", "0x/tool", "0x"),
            ("download", "_/download", "download", "_/download"),
        ] {
            let name = name(text);
            assert_eq!((name.id().as_str(), name.to_string().as_str()), (id, shown));
            assert_eq!(name.owner_scope().as_str(), owner_scope);
            assert_eq!(name.owner_scope(), owner_scope.parse().unwrap());
        }
    }

    #[test]
    fn invalid_names_are_rejected() {
        for text in [
            "", "/", "a/b/c", "A", "a_b", "../x", "api/x", "a/", "/a", "*/a", "1a", "a\0",
            "acme/download", "acme/members", "anon/keys",
        ] {
            assert!(text.parse::<PackageName>().is_err(), "{text:?}");
        }
        for text in ["", "_", "anon", "*", "index", "a--b"] {
            assert!(text.parse::<OwnerScope>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn reserved_names() {
        for (text, prefix) in [
            ("mcp-files", Some("mcp-")),
            ("acme/gaia-core", Some("gaia-")),
            ("amd/tool", Some("amd-")),
            ("amd-labs/tool", Some("amd-")),
            ("amdahl/mcp", None),
            ("mcp", None),
        ] {
            assert_eq!(name(text).reserved_prefix(), prefix, "{text}");
        }
    }
}
