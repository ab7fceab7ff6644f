//! `package.json` and `package-lock.json` of a skill, as far as npm may see them.
//!
//! Only packages of the user's own registry are accepted: paths would copy files of the user where a
//! skill can read them, and addresses and repositories choose another place that code comes from.

use serde_json::{Map, Value};
use thiserror::Error;

/// Fields that name packages.
const FIELDS: [&str; 4] =
    ["dependencies", "optionalDependencies", "peerDependencies", "devDependencies"];

/// Most packages that a skill names itself.
const MAX_PACKAGES: usize = 256;
/// Longest name, as npm has it, and longest range.
const MAX_NAME: usize = 214;
const MAX_RANGE: usize = 256;
/// Nesting of `overrides` and of lock files.
const MAX_DEPTH: usize = 64;

/// Why a `package.json` or its lock file is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum ManifestError {
    #[error("{file} is not valid JSON: {reason}")]
    Syntax { file: &'static str, reason: String },
    #[error("{file}: `{field}` does not have the form that npm expects")]
    Shape { file: &'static str, field: String },
    #[error("package.json names {0} packages, the limit is {MAX_PACKAGES}")]
    TooMany(usize),
    #[error("{file}: the package {name:?} is refused: {reason}")]
    Package { file: &'static str, name: String, reason: &'static str },
}

/// What npm installs from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Manifest {
    /// A `package.json` with nothing but the packages.
    pub(crate) text: String,
    /// The lock file, as it is.
    pub(crate) lock: Option<String>,
    /// The packages that are installed for it, as `name@range`.
    pub(crate) names: Vec<String>,
}

const MANIFEST: &str = "package.json";
const LOCK: &str = "package-lock.json";

/// Reads a manifest; there is none if it needs no packages.
pub(crate) fn read(text: &str, lock: Option<&str>) -> Result<Option<Manifest>, ManifestError> {
    let manifest = parse(MANIFEST, text)?;
    let mut own = Map::new();
    let mut names = Vec::new();
    for field in FIELDS {
        let Some(value) = manifest.get(field) else { continue };
        let packages = value.as_object().ok_or_else(|| shape(MANIFEST, field))?;
        for (name, range) in packages {
            let range = range.as_str().ok_or_else(|| shape(MANIFEST, name))?;
            check(MANIFEST, name, range)?;
            if field == "dependencies" || field == "optionalDependencies" {
                names.push(format!("{name}@{range}"));
            }
        }
        own.insert(field.to_owned(), value.clone());
    }
    if names.is_empty() {
        return Ok(None);
    }
    if names.len() > MAX_PACKAGES {
        return Err(ManifestError::TooMany(names.len()));
    }
    if let Some(overrides) = manifest.get("overrides") {
        check_overrides(overrides, 0)?;
        own.insert("overrides".to_owned(), overrides.clone());
    }
    if manifest.contains_key("workspaces") {
        return Err(shape(MANIFEST, "workspaces"));
    }
    // npm compares these with the lock file.
    for field in ["name", "version"] {
        let value = manifest.get(field).filter(|value| value.is_string());
        own.extend(value.map(|value| (field.to_owned(), value.clone())));
    }
    own.insert("private".to_owned(), true.into());
    if let Some(lock) = lock {
        let parsed = parse(LOCK, lock)?;
        if !parsed.contains_key("packages") && !parsed.contains_key("dependencies") {
            return Err(shape(LOCK, "packages"));
        }
        check_lock(&parsed, 0)?;
    }
    names.sort();
    let text = Value::Object(own).to_string();
    Ok(Some(Manifest { text, lock: lock.map(str::to_owned), names }))
}

fn parse(file: &'static str, text: &str) -> Result<Map<String, Value>, ManifestError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    serde_json::from_str(text)
        .map_err(|error| ManifestError::Syntax { file, reason: error.to_string() })
}

fn shape(file: &'static str, field: &str) -> ManifestError {
    ManifestError::Shape { file, field: field.chars().take(80).collect() }
}

/// A package by its name and a range of versions.
fn check(file: &'static str, name: &str, range: &str) -> Result<(), ManifestError> {
    let reason = if is_name(name) { reason(range) } else { Some("its name is not one of npm") };
    match reason {
        None => Ok(()),
        Some(reason) => {
            let name = format!("{name}@{range}").chars().take(120).collect();
            Err(ManifestError::Package { file, name, reason })
        }
    }
}

/// Why a range is refused.
fn reason(range: &str) -> Option<&'static str> {
    let range = match range.strip_prefix("npm:") {
        // Another package under this name.
        Some(alias) => {
            let (name, range) = match alias.rfind('@').filter(|index| *index > 0) {
                Some(index) => (&alias[..index], &alias[index + 1..]),
                None => (alias, ""),
            };
            if !is_name(name) {
                return Some("it is an alias of something that is not a package");
            }
            range
        }
        None => range,
    };
    let lower = range.trim_start().to_ascii_lowercase();
    if ["file:", "link:", "workspace:", "portal:"].iter().any(|kind| lower.starts_with(kind)) {
        return Some("it is a folder or a file instead of a package of the registry");
    }
    if ["git", "ssh:", "github:", "gitlab:", "bitbucket:", "gist:"]
        .iter()
        .any(|kind| lower.starts_with(kind) && lower.contains([':', '/']))
    {
        return Some("it is a repository instead of a package of the registry");
    }
    if lower.starts_with("http:") || lower.starts_with("https:") {
        return Some("it is an address instead of a package of the registry");
    }
    if lower.contains(['/', '\\', ':']) || lower.starts_with(['.', '~']) && lower.contains('/') {
        return Some("it is a path or a repository instead of a package of the registry");
    }
    let own = |byte: u8| byte.is_ascii_alphanumeric() || b" .-_+^~<>=|*".contains(&byte);
    if range.len() > MAX_RANGE || !range.bytes().all(own) || lower.starts_with("--") {
        return Some("its version is not a range");
    }
    None
}

/// `name` or `@scope/name`.
fn is_name(name: &str) -> bool {
    let is_word = |word: &str| {
        let own = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        !word.is_empty() && !word.starts_with(['.', '-']) && word.bytes().all(own)
    };
    let is_plain = match name.strip_prefix('@') {
        Some(scoped) => scoped.split_once('/').is_some_and(|(a, b)| is_word(a) && is_word(b)),
        None => is_word(name),
    };
    is_plain && name.len() <= MAX_NAME && name != "node_modules"
}

fn check_overrides(value: &Value, depth: usize) -> Result<(), ManifestError> {
    let Some(map) = value.as_object().filter(|_| depth < MAX_DEPTH) else {
        return Err(shape(MANIFEST, "overrides"));
    };
    for (key, value) in map {
        match value {
            // `$name` is the range of a package that was checked before.
            Value::String(range) => match range.strip_prefix('$') {
                Some(name) if is_name(name) => {}
                _ => check(MANIFEST, "override", range)?,
            },
            Value::Object(_) => check_overrides(value, depth + 1)?,
            _ => return Err(shape(MANIFEST, key)),
        }
    }
    Ok(())
}

/// Goes through a lock file of any version: nothing in it may lead elsewhere.
fn check_lock(entry: &Map<String, Value>, depth: usize) -> Result<(), ManifestError> {
    if depth >= MAX_DEPTH {
        return Err(shape(LOCK, "dependencies"));
    }
    for (key, value) in entry {
        match (key.as_str(), value) {
            ("packages", Value::Object(packages)) => {
                for (path, package) in packages {
                    let package = package.as_object().ok_or_else(|| shape(LOCK, path))?;
                    check_place(path)?;
                    check_package(path, package)?;
                    check_lock(package, depth + 1)?;
                }
            }
            ("dependencies" | "requires", Value::Object(named)) => {
                for (name, value) in named {
                    match value {
                        Value::String(range) => check(LOCK, name, range)?,
                        // Version 1 has the packages themselves here.
                        Value::Object(package) => {
                            check(LOCK, name, "")?;
                            check_package(name, package)?;
                            check_lock(package, depth + 1)?;
                        }
                        _ => return Err(shape(LOCK, name)),
                    }
                }
            }
            ("optionalDependencies" | "devDependencies", Value::Object(named)) => {
                for (name, range) in named {
                    let range = range.as_str().ok_or_else(|| shape(LOCK, name))?;
                    check(LOCK, name, range)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Where a package goes: below `node_modules`.
fn check_place(path: &str) -> Result<(), ManifestError> {
    let mut parts = path.split('/');
    let is_below = path.is_empty()
        || parts.next() == Some("node_modules")
            && parts.all(|part| !part.is_empty() && part != "." && part != "..")
            && !path.contains(['\\', '\0']);
    if is_below {
        return Ok(());
    }
    let reason = "it is a folder outside of node_modules";
    Err(ManifestError::Package { file: LOCK, name: path.chars().take(120).collect(), reason })
}

/// Where a package of the lock comes from.
fn check_package(name: &str, package: &Map<String, Value>) -> Result<(), ManifestError> {
    let refuse = |reason| {
        let name = name.chars().take(120).collect();
        Err(ManifestError::Package { file: LOCK, name, reason })
    };
    if package.get("link").is_some_and(|link| *link != Value::Bool(false)) {
        return refuse("it is a link to a folder");
    }
    match package.get("resolved") {
        None | Some(Value::Bool(_)) => {}
        Some(Value::String(address)) if address.starts_with("https://") => {}
        Some(_) => return refuse("it does not come from an https address"),
    }
    let version = package.get("version").and_then(Value::as_str).unwrap_or_default();
    match reason(version) {
        Some(reason) => refuse(reason),
        None => Ok(()),
    }
}

/// Packages that were installed, from the lock file that npm writes into `node_modules`; the first
/// one that does not come from a registry is an error.
pub(crate) fn installed(text: &str) -> Result<Vec<(String, String)>, String> {
    let lock: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let packages = lock.get("packages").and_then(Value::as_object);
    let mut found = Vec::new();
    for (path, package) in packages.into_iter().flatten() {
        let text = |field: &str| package.get(field).and_then(Value::as_str).unwrap_or_default();
        let name = path.rsplit_once("node_modules/").map_or(&**path, |(_, name)| name);
        let address = text("resolved");
        // Lock files may leave the address out; then it is the registry's.
        let is_web = ["https://", "http://"].iter().any(|kind| address.starts_with(kind));
        let is_link = package.get("link").is_some_and(|link| *link != Value::Bool(false));
        if is_link || !is_web && !address.is_empty() {
            return Err(format!("{name} comes from {address} instead of the registry"));
        }
        found.push((name.to_owned(), text("version").to_owned()));
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn with(name: &str, range: &str) -> Result<Option<Manifest>, ManifestError> {
        read(&json!({"dependencies": {name: range}}).to_string(), None)
    }

    #[test]
    fn ordinary_manifests() {
        for (name, range) in [
            ("left-pad", "^1.3.0"),
            ("@types/node", "~20.1"),
            ("a", ""),
            ("a", "*"),
            ("a", "latest"),
            ("a", ">=1.2.3 <2 || 3.x"),
            ("a", "1.0.0-beta.1+build"),
            ("a", "npm:b@^2"),
            ("a", "npm:@scope/b"),
            ("JSONStream", "1"),
        ] {
            assert!(with(name, range).unwrap().is_some(), "{name} {range}");
        }
        let text = r#"{"name":"x","scripts":{"postinstall":"rm"},"dependencies":{"a":"1"},
                       "devDependencies":{"d":"1"},"overrides":{"a":{"b":"$a"}}}"#;
        let manifest = read(text, None).unwrap().unwrap();
        assert_eq!(manifest.names, ["a@1"]);
        assert!(!manifest.text.contains("postinstall"), "{}", manifest.text);
        assert_eq!(read("{}", None), Ok(None));
        assert_eq!(read(r#"{"devDependencies":{"d":"1"}}"#, None), Ok(None));
    }

    #[test]
    fn packages_from_other_places_are_refused() {
        for (name, range) in [
            ("a", "file:../../"),
            ("a", "FILE:/home"),
            ("a", " file:x"),
            ("a", "link:.."),
            ("a", "workspace:*"),
            ("a", "../up"),
            ("a", "./x"),
            ("a", "~/x"),
            ("a", "/etc"),
            ("a", "C:\\x"),
            ("a", "git+ssh://git@x/y.git"),
            ("a", "git+https://x/y.git"),
            ("a", "git://x/y"),
            ("a", "git@github.com:x/y"),
            ("a", "github:x/y"),
            ("a", "gist:123"),
            ("a", "x/y"),
            ("a", "x/y#semver:1"),
            ("a", "http://x/y.tgz"),
            ("a", "https://x/y.tgz"),
            ("a", "npm:../x"),
            ("a", "npm:b@file:x"),
            ("a", "--registry=https://x"),
            ("a", "1\n2"),
            ("a", "$(id)"),
            ("../a", "1"),
            (".bin", "1"),
            ("-g", "1"),
            ("@a", "1"),
            ("@a/../b", "1"),
            ("node_modules", "1"),
            ("", "1"),
        ] {
            assert!(with(name, range).is_err(), "{name:?} {range:?}");
        }
        for text in [
            "[]",
            "{",
            r#"{"dependencies":["a"]}"#,
            r#"{"dependencies":{"a":{"version":"1"}}}"#,
            r#"{"dependencies":{"a":"1"},"workspaces":["../.."]}"#,
            r#"{"dependencies":{"a":"1"},"overrides":{"b":"file:/etc"}}"#,
            r#"{"dependencies":{"a":"1"},"overrides":{"b":{"c":"git+ssh://x"}}}"#,
            r#"{"dependencies":{"a":"1"},"peerDependencies":{"b":"file:/etc"}}"#,
        ] {
            assert!(read(text, None).is_err(), "{text}");
        }
    }

    #[test]
    fn lock_files_that_lead_elsewhere_are_refused() {
        let manifest = r#"{"dependencies":{"a":"1"}}"#;
        let lock = |package: Value| {
            let lock = json!({"lockfileVersion": 3, "packages": {"": {"dependencies": {"a": "1"}},
                "node_modules/a": package}});
            read(manifest, Some(&lock.to_string()))
        };
        let good = json!({"version": "1.0.0", "resolved": "https://r.example/a.tgz",
            "integrity": "sha512-x", "dependencies": {"b": "^1"}, "bin": {"a": "cli.js"}});
        assert!(lock(good).unwrap().is_some());
        for bad in [
            json!({"link": true, "resolved": "../.."}),
            json!({"version": "1.0.0", "resolved": "file:../../secret.tgz"}),
            json!({"version": "1.0.0", "resolved": "git+ssh://git@x/y.git#1"}),
            json!({"version": "1.0.0", "resolved": "http://x/a.tgz"}),
            json!({"version": "file:../.."}),
            json!({"version": "1.0.0", "dependencies": {"b": "file:/etc"}}),
            json!("text"),
        ] {
            assert!(lock(bad.clone()).is_err(), "{bad}");
        }
        for bad in [
            json!({"packages": {"../../x": {}}}),
            json!({"packages": {"node_modules/../../x": {}}}),
            json!({"dependencies": {"a": {"version": "file:/etc"}}}),
            json!({"dependencies": {"a": {"version": "1", "dependencies": {"b": {"resolved": "ssh://x"}}}}}),
            json!({}),
        ] {
            assert!(read(manifest, Some(&bad.to_string())).is_err(), "{bad}");
        }
        let old = json!({"lockfileVersion": 1, "requires": true,
            "dependencies": {"a": {"version": "1.0.0", "requires": {"b": "^1"}}}});
        assert!(read(manifest, Some(&old.to_string())).unwrap().is_some());
    }

    #[test]
    fn what_was_installed_comes_from_a_registry() {
        let text = |package: Value| json!({"packages": {"node_modules/a": package}}).to_string();
        let good = json!({"version": "1.0.0", "resolved": "http://127.0.0.1:1/a.tgz"});
        assert_eq!(installed(&text(good)), Ok(vec![("a".to_owned(), "1.0.0".to_owned())]));
        for bad in [
            json!({"version": "1.0.0", "resolved": "git+ssh://x"}),
            json!({"version": "1.0.0", "resolved": "file:x.tgz"}),
            json!({"resolved": "../x", "link": true}),
        ] {
            assert!(installed(&text(bad.clone())).is_err(), "{bad}");
        }
    }
}
