//! `savoir.toml`: the skills that a project uses, and the agents that it uses them in.
//!
//! ```toml
//! [skills]
//! web-search = "^1.2"
//! notes = { path = "skills/notes" }
//! review = { git = "https://example.com/skills.git", tag = "v2", path = "review" }
//!
//! [agents]
//! use = ["claude-code", "codex"]
//!
//! [registries]
//! default = "https://skills.example.com/registry"
//!
//! [registries.house]
//! url = "https://skills.acme.example/registry"
//! namespaces = ["acme"]
//! ```
//!
//! Other modules read the other tables of the file.

use std::{collections::BTreeMap, fmt, path::Path};

use savoir_lint::words;
use savoir_skill::{
    Position,
    name::is_unsafe_path_name,
    version::{SkillRef, VersionRange},
};

use crate::{
    limits::MAX_MANIFEST_BYTES,
    path::{self, PathProblem},
    resolve::{Root, RootRequest},
    table::{self, Table, Value},
    text_file::{self, ContentError, FileError},
};

mod edit;
mod registries;

pub use edit::{add_skill, add_skills, remove_skill, set_agents};
pub use registries::{Registry, registries};

/// The name of the file.
pub const FILE: &str = "savoir.toml";

/// The content of `savoir.toml`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Manifest {
    /// The required skills by name.
    pub skills: BTreeMap<String, SkillRequirement>,
    /// The agents to install for.
    pub agents: Agents,
    /// The registries in order of priority.
    pub registries: Vec<Registry>,
    places: BTreeMap<String, Position>,
}

/// The source and the version of a required skill.
#[derive(Clone, Debug, PartialEq)]
pub enum SkillRequirement {
    /// From a registry.
    Version {
        /// The acceptable versions.
        range: VersionRange,
        /// The registry, if not the default one: its name in `[registries]`, or its address.
        registry: Option<String>,
        /// The namespace in the registry, if the published name has one.
        namespace: Option<String>,
    },
    /// From a folder, relative to the file.
    Path(String),
    /// From a repository.
    Git {
        url: String,
        at: Revision,
        /// The folder of the skill, if not the root.
        path: Option<String>,
    },
    /// From a file or a site at an address.
    Url {
        url: String,
        /// The expected hash, in the notation of subresource integrity.
        integrity: Option<String>,
    },
}

/// The revision of a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Revision {
    /// The default branch.
    #[default]
    Default,
    Rev(String),
    Tag(String),
    /// The head of a branch.
    Branch(String),
}

/// The agents that a project uses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Agents {
    /// The ids of the agents, as written.
    pub used: Vec<String>,
}

/// Whether skills belong to a project or to the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    Project,
    User,
}

impl Scope {
    /// The name of the scope.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Project => "project",
            Self::User => "user",
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Manifest {
    /// Reads the file; `None` if it does not exist.
    pub fn read(path: &Path) -> Result<Option<Self>, FileError> {
        let Some(text) = text_file::read(path, MAX_MANIFEST_BYTES)? else { return Ok(None) };
        Ok(Some(Self::parse(&path.display().to_string(), &text)?))
    }

    /// Parses the text of the file.
    pub fn parse(file: &str, text: &str) -> Result<Self, ContentError> {
        let document = table::parse(file, text)?;
        let root = document.root();
        let mut manifest = Self::default();
        for (key, at, value) in root.entries() {
            match key {
                "skills" => manifest.read_skills(value.table("a table of skills")?)?,
                "agents" => manifest.agents = read_agents(value.table("a table")?)?,
                "registries" => {
                    let table = value.table("a table of registries")?;
                    manifest.registries =
                        registries::read(table, registries::SettingsAuthor::Project)?;
                }
                // Other modules read other tables. A misspelled name of these tables is an error,
                // so that it is not ignored.
                _ => {
                    if let Some(near) = words::nearest(key, ["skills", "agents", "registries"]) {
                        let content_error =
                            root.content_error(at, format!("there is no table `{key}`"));
                        return Err(content_error.hint(format!("did you mean `{near}`?")));
                    }
                }
            }
        }
        Ok(manifest)
    }

    fn read_skills(&mut self, table: Table<'_>) -> Result<(), ContentError> {
        let mut names = Vec::new();
        for (name, at, value) in table.entries() {
            check_name(name).map_err(|why| table.content_error(at, why))?;
            self.skills.insert(name.to_owned(), read_requirement(name, value)?);
            names.push((at, name));
        }
        names.sort_unstable();
        let positions = table.positions(names.iter().map(|(at, _)| *at));
        let names = names.into_iter().map(|(_, name)| name.to_owned());
        self.places.extend(names.zip(positions));
        Ok(())
    }

    /// Returns the position of a skill in the file.
    pub fn place(&self, name: &str) -> Option<Position> {
        self.places.get(name).copied()
    }

    /// Returns the requirements for the resolver. A skill that is not from a registry may have any
    /// version.
    pub fn roots(&self) -> Vec<Root> {
        let roots = self.skills.iter().map(|(name, wanted)| {
            let range = match wanted {
                SkillRequirement::Version { range, .. } => range.clone(),
                _ => VersionRange::any(),
            };
            Root::required(SkillRef { name: name.clone(), range }, RootRequest::Manifest)
        });
        roots.collect()
    }
}

/// Checks that a text can be the name of a skill and of its folder.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    let is_invalid = |c: char| c.is_whitespace() || c.is_control() || c == '@';
    if is_unsafe_path_name(name) || name.contains(is_invalid) || path::check(name).is_err() {
        return Err(format!("`{}` cannot be the name of a skill", name.escape_debug()));
    }
    Ok(())
}

const REQUIREMENT_KINDS: [(&str, &[&str]); 4] = [
    ("git", &["git", "rev", "tag", "branch", "path"]),
    ("url", &["url", "integrity"]),
    ("path", &["path"]),
    ("version", &["version", "registry", "namespace"]),
];

fn read_requirement(name: &str, value: Value<'_>) -> Result<SkillRequirement, ContentError> {
    if let Some(text) = value.as_str() {
        return Ok(SkillRequirement::Version {
            range: read_range(value, text)?,
            registry: None,
            namespace: None,
        });
    }
    let table = value.table("a range of versions such as \"^1.2\", or a table")?;
    let Some((kind, allowed)) = REQUIREMENT_KINDS.into_iter().find(|(kind, _)| table.has(kind))
    else {
        let known: Vec<&str> =
            REQUIREMENT_KINDS.iter().flat_map(|(_, keys)| keys.iter().copied()).collect();
        check_keys(table, &known, None)?;
        let content_error = value.content_error(format!("nothing says where `{name}` comes from"));
        return Err(content_error.hint("give `version`, `path`, `git` or `url`"));
    };
    check_keys(table, allowed, Some(kind))?;
    match kind {
        "git" => read_git(table),
        "url" => {
            let url = address(table, "url")?;
            Ok(SkillRequirement::Url { url, integrity: read_integrity(table)? })
        }
        "path" => {
            let value = table.required("path")?;
            Ok(SkillRequirement::Path(read_path(value)?))
        }
        _ => {
            let value = table.required("version")?;
            let range = read_range(value, value.string("a range of versions")?)?;
            let registry = table.get("registry").map(registries::reference).transpose()?;
            let namespace = table.get("namespace").map(registries::namespace).transpose()?;
            Ok(SkillRequirement::Version { range, registry, namespace })
        }
    }
}

/// Rejects unknown keys, and keys that are not valid together with `kind`.
fn check_keys(table: Table<'_>, allowed: &[&str], kind: Option<&str>) -> Result<(), ContentError> {
    for (key, at, _) in table.entries() {
        if allowed.contains(&key) {
            continue;
        }
        let known = REQUIREMENT_KINDS.iter().any(|(_, keys)| keys.contains(&key));
        return Err(match kind {
            Some(kind) if known => {
                table.content_error(at, format!("`{key}` does not go together with `{kind}`"))
            }
            _ => unknown_key(table, at, key, allowed),
        });
    }
    Ok(())
}

fn unknown_key(table: Table<'_>, at: usize, key: &str, known: &[&str]) -> ContentError {
    let hint = words::nearest(key, known.iter().copied()).map_or_else(
        || {
            let known: Vec<String> = known.iter().map(|key| format!("`{key}`")).collect();
            format!("it can have {}", words::and(&known))
        },
        |near| format!("did you mean `{near}`?"),
    );
    table.content_error(at, format!("there is no setting `{key}`")).hint(hint)
}

fn read_range(value: Value<'_>, text: &str) -> Result<VersionRange, ContentError> {
    VersionRange::parse(text).map_err(|error| value.content_error(error.to_string()))
}

fn read_git(table: Table<'_>) -> Result<SkillRequirement, ContentError> {
    let revisions = table.entries().filter(|(key, ..)| matches!(*key, "rev" | "tag" | "branch"));
    let mut at = Revision::Default;
    for (key, place, value) in revisions {
        if at != Revision::Default {
            let message = "only one of `rev`, `tag` and `branch` can be given";
            return Err(table.content_error(place, message));
        }
        let name = value.string("a name")?;
        // git would parse a name that starts with a hyphen as an option.
        if name.is_empty() || name.starts_with('-') || name.contains(char::is_whitespace) {
            return Err(value.content_error(format!("`{}` is not a {key}", name.escape_debug())));
        }
        at = match key {
            "rev" => Revision::Rev(name.to_owned()),
            "tag" => Revision::Tag(name.to_owned()),
            _ => Revision::Branch(name.to_owned()),
        };
    }
    let path = table.get("path").map(|value| -> Result<String, ContentError> {
        let inside = value.string("a path inside of the repository")?.trim_end_matches('/');
        path::check_in_repository(inside).map_err(|problem| bad_path(value, inside, &problem))?;
        Ok(inside.to_owned())
    });
    Ok(SkillRequirement::Git { url: address(table, "git")?, at, path: path.transpose()? })
}

fn bad_path(value: Value<'_>, text: &str, problem: &PathProblem) -> ContentError {
    value.content_error(format!("`{}` is not a path in it: {problem}", text.escape_debug()))
}

/// Reads a path relative to the file. It may contain `..`, since the author of the project wrote
/// it, but must not be absolute, so that it works on every machine.
fn read_path(value: Value<'_>) -> Result<String, ContentError> {
    let text = value.string("a path")?;
    if is_absolute(text) {
        let content_error = value.content_error(format!("`{text}` is a path of one machine"));
        return Err(
            content_error.hint("write it relative to the file: others read it on other machines")
        );
    }
    if text.is_empty() || text.contains('\\') || text.contains(char::is_control) {
        let content_error = value.content_error(format!("`{}` is not a path", text.escape_debug()));
        return Err(content_error.hint("write it with `/`, such as skills/notes"));
    }
    Ok(text.to_owned())
}

/// Whether a path starts at a root, at a home folder or at a drive.
pub(crate) fn is_absolute(path: &str) -> bool {
    let drive = path.as_bytes().first().is_some_and(u8::is_ascii_alphabetic)
        && path.as_bytes().get(1) == Some(&b':')
        && matches!(path.as_bytes().get(2), None | Some(b'/' | b'\\'));
    path.starts_with(['/', '~', '\\']) || drive
}

fn address(table: Table<'_>, key: &str) -> Result<String, ContentError> {
    let value = table.required(key)?;
    let text = value.string("an address")?;
    let is_invalid = |c: char| c.is_whitespace() || c.is_control();
    if text.is_empty() || text.starts_with('-') || text.contains(is_invalid) {
        return Err(value.content_error(format!("`{}` is not an address", text.escape_debug())));
    }
    if is_absolute(text) {
        let content_error = value.content_error(format!("`{text}` is a path of one machine"));
        return Err(content_error.hint("write an address that others can reach, too"));
    }
    Ok(text.to_owned())
}

fn read_integrity(table: Table<'_>) -> Result<Option<String>, ContentError> {
    let Some(value) = table.get("integrity") else { return Ok(None) };
    let text = value.string("a text")?;
    if !is_integrity(text) {
        let content_error =
            value.content_error(format!("`{}` is not an integrity value", text.escape_debug()));
        return Err(content_error.hint("write `sha256-` and the digest in base64"));
    }
    Ok(Some(text.to_owned()))
}

/// Whether a text is `sha256-` and 32 bytes in base64.
pub(crate) fn is_integrity(text: &str) -> bool {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    let digest = text.strip_prefix("sha256-").and_then(|digest| STANDARD.decode(digest).ok());
    digest.is_some_and(|digest| digest.len() == 32)
}

fn read_agents(table: Table<'_>) -> Result<Agents, ContentError> {
    let mut agents = Agents::default();
    for (key, at, value) in table.entries() {
        match key {
            "use" => {
                for item in value.items("a list of agents")? {
                    let name = item.string("the name of an agent")?;
                    if agents.used.iter().any(|known| known == name) {
                        return Err(item.content_error(format!("`{name}` is there twice")));
                    }
                    agents.used.push(name.to_owned());
                }
            }
            // The author of a project must not choose user folders of those who clone it.
            "scope" => {
                let content_error = table.content_error(at, "there is no setting `scope`");
                return Err(content_error.hint("take it out: --global chooses that"));
            }
            _ => return Err(unknown_key(table, at, key, &["use"])),
        }
    }
    Ok(agents)
}

#[cfg(test)]
mod tests;
