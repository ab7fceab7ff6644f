//! Reads the `package.json` and `package-lock.json` of a skill, and reduces them to what npm may
//! see.
//!
//! Only packages of the user's registry are accepted: a path would copy files of the user to where
//! a skill can read them, and URLs and repositories would choose another source of code. The URLs
//! of a lock file are removed, so that npm asks the registry for each name and version.

use std::collections::HashMap;

use serde_json::{Map, Value};
use thiserror::Error;

/// Fields that list packages.
const DEPENDENCY_FIELDS: [&str; 4] =
    ["dependencies", "optionalDependencies", "peerDependencies", "devDependencies"];

/// Most packages that a skill lists itself.
const MAX_PACKAGES: usize = 256;
/// Longest name, as in npm, and longest range.
const MAX_NAME_CHARS: usize = 214;
const MAX_RANGE_CHARS: usize = 256;
/// Maximum nesting of `overrides` and of lock files.
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

/// The reduced files from which npm installs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Manifest {
    /// A `package.json` with only the packages.
    pub(crate) text: String,
    /// The lock file, without URLs.
    pub(crate) lock: Option<String>,
    /// The packages that npm installs directly, as `name@range`.
    pub(crate) names: Vec<String>,
}

const MANIFEST_FILE: &str = "package.json";
const LOCK_FILE: &str = "package-lock.json";

/// Reads a manifest; returns none if it needs no packages.
pub(crate) fn read(text: &str, lock: Option<&str>) -> Result<Option<Manifest>, ManifestError> {
    let manifest = parse(MANIFEST_FILE, text)?;
    let mut own = Map::new();
    let mut listed = Vec::new();
    for field in DEPENDENCY_FIELDS {
        let Some(value) = manifest.get(field) else { continue };
        listed.extend(ranges(field, value)?.into_iter().map(|(name, range)| (field, name, range)));
        own.insert(field.to_owned(), value.clone());
    }
    if !listed.iter().any(|(field, ..)| matches!(*field, "dependencies" | "optionalDependencies")) {
        return Ok(None);
    }
    let optional = optional_peers(&manifest);
    let mut installed = installed_for(&listed, &optional);
    own.insert("peerDependenciesMeta".to_owned(), meta(&optional));
    if let Some(overrides) = manifest.get("overrides") {
        let known = listed.iter().map(|(_, name, range)| (*name, *range)).collect();
        add_overrides(&known, "", overrides, 0, &mut installed)?;
        own.insert("overrides".to_owned(), overrides.clone());
    }
    if installed.len() > MAX_PACKAGES {
        return Err(ManifestError::TooMany(installed.len()));
    }
    if manifest.contains_key("workspaces") {
        return Err(shape(MANIFEST_FILE, "workspaces"));
    }
    // npm compares these with the lock file.
    for field in ["name", "version"] {
        let value = manifest.get(field).filter(|value| value.is_string());
        own.extend(value.map(|value| (field.to_owned(), value.clone())));
    }
    own.insert("private".to_owned(), true.into());
    let lock = lock.map(|lock| {
        let lock = check_and_parse_lock(lock)?;
        check_alias(&lock, &installed)?;
        Ok(Value::Object(lock).to_string())
    });
    let text = Value::Object(own).to_string();
    let mut names: Vec<String> =
        installed.iter().map(|(name, range)| format!("{name}@{range}")).collect();
    names.sort();
    names.dedup();
    Ok(Some(Manifest { text, lock: lock.transpose()?, names }))
}

/// The manifest of packages that are listed as `name` or `name@range`; none if the list is empty.
pub(crate) fn of_packages(packages: &[String]) -> Result<Option<Manifest>, ManifestError> {
    let named = packages.iter().map(|package| {
        let package = package.trim();
        let at = package.rfind('@').filter(|index| *index > 0);
        let (name, range) = at.map_or((package, ""), |at| (&package[..at], &package[at + 1..]));
        (name.to_owned(), Value::from(range))
    });
    let manifest = serde_json::json!({ "dependencies": named.collect::<Map<_, _>>() });
    if packages.is_empty() { Ok(None) } else { read(&manifest.to_string(), None) }
}

/// A name and a range of versions.
type NamedRange<'a> = (&'a str, &'a str);

/// The packages that a field lists.
fn ranges<'a>(field: &str, value: &'a Value) -> Result<Vec<NamedRange<'a>>, ManifestError> {
    let packages = value.as_object().ok_or_else(|| shape(MANIFEST_FILE, field))?;
    let read = |(name, range): (&'a String, &'a Value)| {
        let range = range.as_str().ok_or_else(|| shape(MANIFEST_FILE, name))?;
        check(MANIFEST_FILE, name, range)?;
        Ok((name.as_str(), range))
    };
    packages.iter().map(read).collect()
}

/// Optional peers, which npm does not install by itself.
fn optional_peers(manifest: &Map<String, Value>) -> Vec<&str> {
    let meta = manifest.get("peerDependenciesMeta").and_then(Value::as_object);
    let is_optional =
        |(_, meta): &(&String, &Value)| meta.get("optional") == Some(&Value::Bool(true));
    let optional = meta.into_iter().flatten().filter(is_optional);
    optional.map(|(name, _)| name.as_str()).collect()
}

fn meta(optional: &[&str]) -> Value {
    let meta = |name: &&str| ((*name).to_owned(), serde_json::json!({"optional": true}));
    Value::Object(optional.iter().map(meta).collect())
}

/// The packages that npm installs because the manifest lists them, peers included.
fn installed_for<'a>(
    named: &[(&str, &'a str, &'a str)],
    optional: &[&str],
) -> Vec<(&'a str, &'a str)> {
    let is_installed = |(field, name, _): &&(&str, &str, &str)| match *field {
        "devDependencies" => false,
        "peerDependencies" => !optional.contains(name),
        _ => true,
    };
    named.iter().filter(is_installed).map(|(_, name, range)| (*name, *range)).collect()
}

fn parse(file: &'static str, text: &str) -> Result<Map<String, Value>, ManifestError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    serde_json::from_str(text)
        .map_err(|error| ManifestError::Syntax { file, reason: error.to_string() })
}

fn shape(file: &'static str, field: &str) -> ManifestError {
    ManifestError::Shape { file, field: field.chars().take(80).collect() }
}

/// Checks a name and a range of the manifest.
fn check(file: &'static str, name: &str, range: &str) -> Result<(), ManifestError> {
    refuse(file, name, range, if is_name(name) { reason(range) } else { Some(NOT_A_NAME) })
}

const NOT_A_NAME: &str = "its name is not one of npm";

fn refuse(
    file: &'static str,
    name: &str,
    range: &str,
    reason: Option<&'static str>,
) -> Result<(), ManifestError> {
    match reason {
        None => Ok(()),
        Some(reason) => {
            let name = format!("{name}@{range}").chars().take(120).collect();
            Err(ManifestError::Package { file, name, reason })
        }
    }
}

/// Why a range of a manifest is refused; none if it is valid.
fn reason(range: &str) -> Option<&'static str> {
    let own = |byte: u8| byte.is_ascii_alphanumeric() || b" .-_+^~<>=|*@/:".contains(&byte);
    let is_range =
        range.len() <= MAX_RANGE_CHARS && range.bytes().all(own) && !range.starts_with("--");
    external_source(range).or_else(|| (!is_range).then_some("its version is not a range"))
}

/// Why a range does not name a package of the registry. Published packages have invalid ranges that
/// npm tolerates, so only ranges that name another source are refused.
fn external_source(range: &str) -> Option<&'static str> {
    let range = match range.strip_prefix("npm:") {
        // An alias installs another package under this name.
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
    // npm takes these for a folder or a file, even without a slash.
    let is_file = lower.starts_with('.')
        || [".tgz", ".tar.gz", ".tar"].iter().any(|end| lower.trim_end().ends_with(end));
    if is_file || lower.contains(['/', '\\', ':']) {
        return Some("it is a path or a repository instead of a package of the registry");
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
    is_plain && name.len() <= MAX_NAME_CHARS && name != "node_modules"
}

/// Adds the packages that overrides install instead of others. `known` are the packages of the
/// manifest, `parent` is the package that the overrides apply to.
fn add_overrides<'a>(
    known: &HashMap<&str, &'a str>,
    parent: &'a str,
    value: &'a Value,
    depth: usize,
    installed: &mut Vec<NamedRange<'a>>,
) -> Result<(), ManifestError> {
    let Some(map) = value.as_object().filter(|_| depth < MAX_DEPTH) else {
        return Err(shape(MANIFEST_FILE, "overrides"));
    };
    for (key, value) in map {
        // `name`, `name@range`, or `.` for the package around it.
        let name = match key.get(1..).and_then(|rest| rest.find('@')) {
            _ if key == "." => parent,
            Some(index) => &key[..=index],
            None => key.as_str(),
        };
        match value {
            Value::String(range) => {
                // `$name` is the range of a package of the manifest.
                let range = match range.strip_prefix('$') {
                    Some(other) => {
                        known.get(other).copied().ok_or_else(|| shape(MANIFEST_FILE, key))?
                    }
                    None => range.as_str(),
                };
                check(MANIFEST_FILE, name, range)?;
                installed.push((name, range));
            }
            Value::Object(_) => add_overrides(known, name, value, depth + 1, installed)?,
            _ => return Err(shape(MANIFEST_FILE, key)),
        }
    }
    Ok(())
}

/// Parses a lock file, checks that it names no source but the registry, and removes its URLs.
fn check_and_parse_lock(text: &str) -> Result<Map<String, Value>, ManifestError> {
    let mut lock = parse(LOCK_FILE, text)?;
    if !lock.contains_key("packages") && !lock.contains_key("dependencies") {
        return Err(shape(LOCK_FILE, "packages"));
    }
    check_lock(&lock, 0)?;
    remove_addresses(&mut lock);
    Ok(lock)
}

/// Removes the URLs of a lock file. npm downloads from these URLs, whatever the host. Without them
/// npm asks the registry, and still compares the download with the hash.
fn remove_addresses(entry: &mut Map<String, Value>) {
    entry.remove("resolved");
    for field in ["packages", "dependencies"] {
        let packages = entry.get_mut(field).and_then(Value::as_object_mut);
        for package in packages.into_iter().flat_map(Map::values_mut) {
            package.as_object_mut().into_iter().for_each(remove_addresses);
        }
    }
}

/// Checks that a lock file does not replace packages of the manifest by others, since the approval
/// question only lists what the manifest names.
fn check_alias(lock: &Map<String, Value>, installed: &[(&str, &str)]) -> Result<(), ManifestError> {
    for (name, _) in installed {
        let entries =
            [("packages", format!("node_modules/{name}")), ("dependencies", (*name).into())];
        let entries = entries.iter().filter_map(|(field, key)| lock.get(*field)?.get(key));
        for other in entries.filter_map(aliased_name) {
            let is_agreed = |(known, range): &(&str, &str)| {
                known == name && range.strip_prefix("npm:").map(alias_name) == Some(other)
            };
            if other != *name && !installed.iter().any(is_agreed) {
                let name = format!("{name} ({other})").chars().take(120).collect();
                let reason = "the lock file installs another package under this name";
                return Err(ManifestError::Package { file: LOCK_FILE, name, reason });
            }
        }
    }
    Ok(())
}

/// The name of the package that an entry of a lock file installs, if the entry contains one.
fn aliased_name(entry: &Value) -> Option<&str> {
    let text = |field: &str| entry.get(field).and_then(Value::as_str);
    text("name").or_else(|| text("version")?.strip_prefix("npm:").map(alias_name))
}

/// The name in `name@range`.
fn alias_name(alias: &str) -> &str {
    alias.rfind('@').filter(|index| *index > 0).map_or(alias, |index| &alias[..index])
}

/// Checks a lock file of any version: nothing in it may name a source other than the registry.
fn check_lock(entry: &Map<String, Value>, depth: usize) -> Result<(), ManifestError> {
    if depth >= MAX_DEPTH {
        return Err(shape(LOCK_FILE, "dependencies"));
    }
    for (key, value) in entry {
        match (key.as_str(), value) {
            ("packages", Value::Object(packages)) => {
                for (path, package) in packages {
                    let package = package.as_object().ok_or_else(|| shape(LOCK_FILE, path))?;
                    check_place(path)?;
                    check_package(path, package)?;
                    check_lock(package, depth + 1)?;
                }
            }
            ("dependencies" | "requires", Value::Object(named)) => {
                for (name, value) in named {
                    match value {
                        Value::String(range) => check_edge(name, range)?,
                        // Version 1 has nested packages here.
                        Value::Object(package) => {
                            check_edge(name, "")?;
                            check_package(name, package)?;
                            check_lock(package, depth + 1)?;
                        }
                        _ => return Err(shape(LOCK_FILE, name)),
                    }
                }
            }
            (
                "optionalDependencies" | "devDependencies" | "peerDependencies",
                Value::Object(named),
            ) => {
                for (name, range) in named {
                    check_edge(name, range.as_str().ok_or_else(|| shape(LOCK_FILE, name))?)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Checks a dependency of a package in the lock file.
fn check_edge(name: &str, range: &str) -> Result<(), ManifestError> {
    refuse(
        LOCK_FILE,
        name,
        range,
        if is_name(name) { external_source(range) } else { Some(NOT_A_NAME) },
    )
}

/// Checks that the target folder of a package is below `node_modules`.
fn check_place(path: &str) -> Result<(), ManifestError> {
    let inside = path.strip_prefix("node_modules/");
    let is_below = inside.is_some_and(|path| path.split("/node_modules/").all(is_name));
    if path.is_empty() || is_below {
        return Ok(());
    }
    let reason = "it is not a folder of a package in node_modules";
    Err(ManifestError::Package { file: LOCK_FILE, name: path.chars().take(120).collect(), reason })
}

/// Checks the source, the name and the version of a package in the lock file.
fn check_package(name: &str, package: &Map<String, Value>) -> Result<(), ManifestError> {
    let refuse = |reason| {
        let name = name.chars().take(120).collect();
        Err(ManifestError::Package { file: LOCK_FILE, name, reason })
    };
    if package.get("link").is_some_and(|link| *link != Value::Bool(false)) {
        return refuse("it is a link to a folder");
    }
    let text = |field: &str| package.get(field).and_then(Value::as_str).unwrap_or_default();
    match package.get("resolved") {
        None | Some(Value::Bool(_)) => {}
        // The URL is not used, but another registry may have a different package of this name, so
        // the hash is required.
        Some(Value::String(address)) if address.starts_with("https://") => {
            if text("integrity").is_empty() {
                return refuse("it has an address and no integrity");
            }
        }
        Some(_) => return refuse("it does not come from an https address"),
    }
    // Without a URL, npm asks for `name@version`, so both must be valid.
    let is_named = |value: &Value| value.as_str().is_some_and(is_name);
    if !name.is_empty() && !package.get("name").is_none_or(is_named) {
        return refuse(NOT_A_NAME);
    }
    match reason(text("version")) {
        Some(reason) => refuse(reason),
        None => Ok(()),
    }
}

/// Removes the URLs of a lock file that npm wrote. Fails if a package does not come from a
/// registry.
pub(crate) fn serialize_lock(text: &str) -> Result<String, String> {
    installed_packages(text)?;
    let mut lock = parse(LOCK_FILE, text).map_err(|error| error.to_string())?;
    remove_addresses(&mut lock);
    Ok(Value::Object(lock).to_string())
}

/// The installed packages, from a lock file that npm wrote. Fails if a package does not come from a
/// registry, or requires one that does not.
pub(crate) fn installed_packages(text: &str) -> Result<Vec<(String, String)>, String> {
    let mut lock = parse(LOCK_FILE, text).map_err(|error| error.to_string())?;
    let found = resolved_packages(&lock)?;
    // A registry can serve its files from another host, so URLs are not compared; a source other
    // than a registry is visible in the fields that remain.
    remove_addresses(&mut lock);
    check_lock(&lock, 0).map_err(|error| error.to_string())?;
    Ok(found)
}

fn resolved_packages(lock: &Map<String, Value>) -> Result<Vec<(String, String)>, String> {
    let packages = lock.get("packages").and_then(Value::as_object);
    let mut found = Vec::new();
    for (path, package) in packages.into_iter().flatten() {
        let text = |field: &str| package.get(field).and_then(Value::as_str).unwrap_or_default();
        let name = path.rsplit_once("node_modules/").map_or(&**path, |(_, name)| name);
        let address = text("resolved");
        // Lock files may leave the URL out; then it is the registry's.
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
        assert_eq!(manifest.names, ["a@1", "b@1"]);
        assert!(!manifest.text.contains("postinstall"), "{}", manifest.text);
        assert_eq!(read("{}", None), Ok(None));
        assert_eq!(read(r#"{"devDependencies":{"d":"1"}}"#, None), Ok(None));
    }

    #[test]
    fn packages_of_a_list() {
        let of = |text: &str| of_packages(&[text.to_owned()]);
        for (text, name) in [
            ("left-pad", "left-pad@"),
            (" sharp@^0.33.0 ", "sharp@^0.33.0"),
            ("@scope/name@>=1 <2", "@scope/name@>=1 <2"),
            ("@scope/name", "@scope/name@"),
        ] {
            assert_eq!(of(text).unwrap().unwrap().names, [name], "{text}");
        }
        for text in ["../x", "a@file:/etc", "a@git+ssh://git@x/y.git", "x/y", "", "@scope"] {
            assert!(of(text).is_err(), "{text}");
        }
        assert_eq!(of_packages(&[]), Ok(None));
    }

    #[test]
    fn peers_and_overrides_are_among_the_names() {
        let manifest = json!({"dependencies": {"a": "1"}, "optionalDependencies": {"o": "2"},
            "peerDependencies": {"p": "3", "q": "4"},
            "peerDependenciesMeta": {"q": {"optional": true}, "p": {"optional": "no"}},
            "overrides": {"b@npm:x@1": "npm:evil@1", "c@^2": {".": "2.1", "@s/d": "5"}, "@s/e@1": "$a"}});
        let manifest = read(&manifest.to_string(), None).unwrap().unwrap();
        let expected = ["@s/d@5", "@s/e@1", "a@1", "b@npm:evil@1", "c@2.1", "o@2", "p@3"];
        assert_eq!(manifest.names, expected);
        let text: Value = serde_json::from_str(&manifest.text).unwrap();
        assert_eq!(text["peerDependenciesMeta"], json!({"q": {"optional": true}}));
        assert_eq!(read(r#"{"peerDependencies":{"p":"1"}}"#, None), Ok(None));
        for overrides in [json!({"a": "$missing"}), json!({".": "1"}), json!({"../x": "1"})] {
            let manifest = json!({"dependencies": {"a": "1"}, "overrides": overrides});
            assert!(read(&manifest.to_string(), None).is_err(), "{overrides}");
        }
    }

    #[test]
    fn packages_from_other_sources_are_refused() {
        for (name, range) in [
            ("a", "file:../../"),
            ("a", "FILE:/home"),
            ("a", " file:x"),
            ("a", "link:.."),
            ("a", "workspace:*"),
            ("a", "../up"),
            ("a", "./x"),
            ("a", "."),
            ("a", ".."),
            ("a", "evil.tgz"),
            ("a", "evil.tar.gz"),
            ("a", "npm:b@.."),
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
    fn lock_files_with_other_sources_are_refused() {
        let manifest = r#"{"dependencies":{"a":"1"}}"#;
        let lock = |package: Value| {
            let lock = json!({"lockfileVersion": 3, "packages": {"": {"dependencies": {"a": "1"}},
                "node_modules/a": package}});
            read(manifest, Some(&lock.to_string()))
        };
        let good = json!({"version": "1.0.0", "resolved": "https://r.example/a.tgz",
            "integrity": "sha512-x", "dependencies": {"b": "^1"}, "bin": {"a": "cli.js"}});
        let kept = lock(good).unwrap().unwrap().lock.unwrap();
        assert!(!kept.contains("r.example") && kept.contains("sha512-x"), "{kept}");
        for bad in [
            json!({"link": true, "resolved": "../.."}),
            json!({"version": "1.0.0", "resolved": "file:../../secret.tgz"}),
            json!({"version": "1.0.0", "resolved": "git+ssh://git@x/y.git#1"}),
            json!({"version": "1.0.0", "resolved": "http://x/a.tgz", "integrity": "sha512-x"}),
            json!({"version": "1.0.0", "resolved": "https://x/a.tgz"}),
            json!({"version": "1.0.0", "name": "evil"}),
            json!({"version": "npm:evil@1.0.0"}),
            json!({"version": "1.0.0\n"}),
            json!({"version": "1.0.0", "peerDependencies": {"b": "http://x/b.tgz"}}),
            json!({"version": "1.0.0", "optionalDependencies": {"b": "http://x/b.tgz"}}),
            json!({"version": "file:../.."}),
            json!({"version": "1.0.0", "dependencies": {"b": "file:/etc"}}),
            json!("text"),
        ] {
            assert!(lock(bad.clone()).is_err(), "{bad}");
        }
        for bad in [
            json!({"packages": {"../../x": {}}}),
            json!({"packages": {"node_modules/../../x": {}}}),
            json!({"packages": {"node_modules/a/x": {}}}),
            json!({"packages": {"node_modules/git:x": {"version": "1.0.0"}}}),
            json!({"packages": {"node_modules/b": {"version": "1.0.0", "name": "http://x/y.tgz?"}}}),
            json!({"packages": {"node_modules/b": {"version": "1.0.0", "name": "../../x"}}}),
            json!({"packages": {"node_modules/b": {"version": "1.0.0", "name": ["x"]}}}),
            json!({"dependencies": {"a": {"version": "file:/etc"}}}),
            json!({"dependencies": {"a": {"version": "npm:evil@1.0.0"}}}),
            json!({"dependencies": {"a": {"version": "1", "dependencies": {"b": {"resolved": "ssh://x"}}}}}),
            json!({}),
        ] {
            assert!(read(manifest, Some(&bad.to_string())).is_err(), "{bad}");
        }
        let old = json!({"lockfileVersion": 1, "requires": true,
            "dependencies": {"a": {"version": "1.0.0", "requires": {"b": "^1"}}}});
        assert!(read(manifest, Some(&old.to_string())).unwrap().is_some());
        let alias = r#"{"dependencies":{"a":"npm:@s/b@1"}}"#;
        let lock = json!({"packages": {"node_modules/a": {"name": "@s/b", "version": "1.0.0"}}});
        assert!(read(alias, Some(&lock.to_string())).unwrap().is_some());
    }

    #[test]
    fn installed_packages_must_come_from_a_registry() {
        let text = |package: Value| json!({"packages": {"node_modules/a": package}}).to_string();
        let good = json!({"version": "1.0.0", "resolved": "http://127.0.0.1:1/a.tgz"});
        assert_eq!(installed_packages(&text(good)), Ok(vec![("a".to_owned(), "1.0.0".to_owned())]));
        for bad in [
            json!({"version": "1.0.0", "resolved": "git+ssh://x"}),
            json!({"version": "1.0.0", "resolved": "file:x.tgz"}),
            json!({"resolved": "../x", "link": true}),
            json!({"version": "1.0.0", "dependencies": {"b": "http://127.0.0.1:1/b.tgz"}}),
            json!({"version": "1.0.0", "optionalDependencies": {"b": "git+ssh://x"}}),
            json!({"version": "1.0.0", "peerDependencies": {"b": "file:/etc"}}),
        ] {
            assert!(installed_packages(&text(bad.clone())).is_err(), "{bad}");
            assert!(serialize_lock(&text(bad.clone())).is_err(), "{bad}");
        }
        let odd = json!({"version": "1.0.0", "dependencies": {"b": ">=1, <2", "c": "npm:d@^4"}});
        assert!(installed_packages(&text(odd)).is_ok());
    }
}
