//! Parses `[registries]`: the registries of published skills.

use super::{ContentError, Table, Value, table, unknown_key};
use crate::registry::{PlainHttp, canonical, is_namespace};

/// The registry with this name comes first, wherever it is in the file.
const DEFAULT_NAME: &str = "default";

/// A configured registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registry {
    /// The name in the settings.
    pub name: String,
    /// The address, without a trailing slash.
    pub url: String,
    /// The namespaces that belong only to this registry.
    pub namespaces: Vec<String>,
    /// Whether to ask it about namespaces that belong to no registry, in addition to the first
    /// registry that owns none.
    pub fallback: bool,
    /// Whether it may be contacted over unencrypted HTTP. Only the user's own settings may allow
    /// that.
    pub plain: PlainHttp,
}

/// The author of a table, who decides which settings are allowed in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SettingsAuthor {
    /// The author of the project, whom the user may not know.
    Project,
    /// The user who runs the program.
    Person,
}

/// Parses the table `[registries]` of the user's settings. Other tables are ignored.
pub fn registries(file: &str, text: &str) -> Result<Vec<Registry>, ContentError> {
    let document = table::parse(file, text)?;
    let Some(value) = document.root().get("registries") else { return Ok(Vec::new()) };
    read(value.table("a table of registries")?, SettingsAuthor::Person)
}

pub(super) fn read(table: Table<'_>, whose: SettingsAuthor) -> Result<Vec<Registry>, ContentError> {
    let mut entries: Vec<(&str, usize, Value<'_>)> = table.entries().collect();
    // Sort by position in the file, the default registry first.
    entries.sort_by_key(|(name, at, _)| (*name != DEFAULT_NAME, *at));
    let mut found: Vec<Registry> = Vec::new();
    for (name, at, value) in entries {
        if !is_registry_name(name) {
            let message = format!("`{}` cannot be the name of a registry", name.escape_debug());
            return Err(table.content_error(at, message).hint("write letters, digits and hyphens"));
        }
        let registry = read_one(name, value, &found, whose)?;
        if let Some(same) = found.iter().find(|known| known.url == registry.url) {
            let message = format!("`{}` has the same address already", same.name);
            return Err(table.content_error(at, message));
        }
        found.push(registry);
    }
    Ok(found)
}

fn read_one(
    name: &str,
    value: Value<'_>,
    others: &[Registry],
    whose: SettingsAuthor,
) -> Result<Registry, ContentError> {
    let mut registry = Registry {
        name: name.to_owned(),
        url: String::new(),
        namespaces: Vec::new(),
        fallback: false,
        plain: PlainHttp::ThisMachine,
    };
    if value.as_str().is_some() {
        registry.url = url(value)?;
        return Ok(registry);
    }
    let table = value.table("an address, or a table with `url`")?;
    registry.url = url(table.required("url")?)?;
    for (key, at, value) in table.entries() {
        match key {
            "url" => {}
            "namespaces" => {
                for item in value.items("a list of namespaces")? {
                    let taken = owner(others, &registry, item.string("a namespace")?);
                    if let Some(owner) = taken {
                        let message = format!("it belongs to `{owner}` already");
                        return Err(item
                            .content_error(message)
                            .hint("a namespace has one registry"));
                    }
                    registry.namespaces.push(namespace(item)?);
                }
            }
            "fallback" => registry.fallback = value.boolean()?,
            "allow-http" if whose == SettingsAuthor::Project => {
                let message =
                    "whether a registry is asked without encryption is for a person to say";
                let hint =
                    "move the registry to config.toml of your own settings, or use --allow-http";
                return Err(table.content_error(at, message.to_owned()).hint(hint));
            }
            "allow-http" => {
                let allowed = value.boolean()?;
                registry.plain = if allowed { PlainHttp::Anyone } else { PlainHttp::ThisMachine };
            }
            _ => {
                let known = ["url", "namespaces", "fallback", "allow-http"];
                return Err(unknown_key(table, at, key, &known));
            }
        }
    }
    Ok(registry)
}

/// Returns the name of another registry that owns the namespace.
fn owner<'a>(others: &'a [Registry], this: &'a Registry, namespace: &str) -> Option<&'a str> {
    let mut all = others.iter().chain([this]);
    let owner = all.find(|one| one.namespaces.iter().any(|known| known == namespace))?;
    Some(&owner.name)
}

fn url(value: Value<'_>) -> Result<String, ContentError> {
    canonical(value.string("an address")?).map_err(|error| value.content_error(error.to_string()))
}

/// Whether a text can be the name of a registry, and cannot be mistaken for an address.
fn is_registry_name(name: &str) -> bool {
    let sign = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    !name.is_empty() && name.len() <= 64 && name.chars().all(sign)
}

/// Parses the registry of one skill: a name or an address.
pub(super) fn reference(value: Value<'_>) -> Result<String, ContentError> {
    let text = value.string("the name of a registry, or its address")?;
    if !is_registry_name(text) {
        url(value)?;
    }
    Ok(text.to_owned())
}

/// Parses a namespace.
pub(super) fn namespace(value: Value<'_>) -> Result<String, ContentError> {
    let text = value.string("a namespace")?;
    if !is_namespace(text) {
        let content_error =
            value.content_error(format!("`{}` is not a namespace", text.escape_debug()));
        return Err(content_error.hint("write lower-case letters, digits and single hyphens"));
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content_error(text: &str) -> String {
        let content_error = registries("config.toml", text).unwrap_err();
        match &content_error.hint {
            Some(hint) => format!("{content_error} | {hint}"),
            None => content_error.to_string(),
        }
    }

    #[test]
    fn default_registry_is_first() {
        let text = r#"
            [other]
            x = 1
            [registries.zebra]
            url = "https://zebra.example/"
            namespaces = ["acme", "acme-labs"]
            [registries.ant]
            url = "http://127.0.0.1:8080/a"
            fallback = true
            [registries]
            default = "https://Skills.example/registry/"
        "#;
        let found = registries("config.toml", text).unwrap();
        let shown: Vec<(&str, &str)> =
            found.iter().map(|one| (one.name.as_str(), one.url.as_str())).collect();
        assert_eq!(
            shown,
            [
                ("default", "https://skills.example/registry"),
                ("zebra", "https://zebra.example"),
                ("ant", "http://127.0.0.1:8080/a"),
            ]
        );
        assert_eq!(found[1].namespaces, ["acme", "acme-labs"]);
        assert!(found[2].fallback && !found[1].fallback);
        assert!(registries("config.toml", "[skills]\n").unwrap().is_empty());
    }

    #[test]
    fn invalid_registries_are_rejected() {
        for (text, expected) in [
            ("registries = 1", "config.toml:1:14: this must be a table of registries"),
            (
                "[registries]\na = 1",
                "config.toml:2:5: this must be an address, or a table with `url`",
            ),
            ("[registries.a]\nfallback = true", "config.toml:1:1: `url` is missing"),
            (
                "[registries.a]\nurl = \"https://x\"\nnamespace = [\"b\"]",
                "config.toml:3:1: there is no setting `namespace` | did you mean `namespaces`?",
            ),
            (
                "[registries.a]\nurl = \"https://x\"\nfallback = \"yes\"",
                "config.toml:3:12: this must be true or false",
            ),
            (
                "[registries.a]\nurl = \"https://x\"\nnamespaces = [\"A\"]",
                "config.toml:3:15: `A` is not a namespace | \
                 write lower-case letters, digits and single hyphens",
            ),
            (
                "[registries.a]\nurl = \"https://x\"\nnamespaces = [\"n\"]\n\
                 [registries.b]\nurl = \"https://y\"\nnamespaces = [\"n\"]",
                "config.toml:6:15: it belongs to `a` already | a namespace has one registry",
            ),
            (
                "[registries]\na = \"https://x\"\nb = \"https://x/\"",
                "config.toml:3:1: `a` has the same address already",
            ),
            (
                "[registries]\n\"a b\" = \"https://x\"",
                "config.toml:2:1: `a b` cannot be the name of a registry | \
                 write letters, digits and hyphens",
            ),
        ] {
            assert_eq!(content_error(text), expected);
        }
        let refused = content_error("[registries]\na = \"https://me:pw@x\"");
        assert!(refused.starts_with("config.toml:2:5: ") && refused.contains("password"));
        assert!(content_error("[registries]\na = \"x.example\"").contains("https://host/registry"));
    }

    #[test]
    fn skill_may_name_its_registry() {
        let content_error = |rest: &str| {
            let text = format!("[skills]\na = {{ version = \"1\", {rest} }}");
            crate::manifest::Manifest::parse("savoir.toml", &text).unwrap_err().to_string()
        };
        let wrong = content_error("registry = \"a b\"");
        assert!(
            wrong.starts_with("savoir.toml:2:33: `a b` is not the address of a registry"),
            "{wrong}"
        );
        assert!(content_error("registry = \"https://x/?a\"").contains("contains `?` or `#`"));
        assert!(content_error("namespace = \"A\"").contains("`A` is not a namespace"));
        assert!(content_error("path = \"x\"").contains("does not go together"));
    }
}
