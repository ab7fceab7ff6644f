//! Reads and writes `savoir.lock`: the exact versions and files that are installed.
//!
//! The program writes the file, and it is meant to be committed beside `savoir.toml`: it is sorted,
//! deterministic, and has nothing that is specific to one machine.

use std::{collections::BTreeMap, path::Path};

use savoir_skill::{
    permission::{Permission, Tier},
    version::{SkillRef, parse_version},
};
use semver::Version;
use thiserror::Error;

use crate::{
    limits::MAX_LOCK_BYTES,
    manifest::{check_name, is_integrity},
    resolve::Resolution,
    table::{self, Table, Value},
    text_file::{self, ContentError, FileError},
};

mod added_capabilities;
mod source;
mod text;

pub(crate) use added_capabilities::added_permissions;
pub use added_capabilities::{AddedCapability, Capability};
pub use source::{LockedSource, SourceProblem};

/// The name of the file.
pub const FILE: &str = "savoir.lock";

/// The format version that is written.
const FORMAT: i64 = 1;

/// The content of `savoir.lock`.
#[derive(Clone, Debug, Default)]
pub struct Lock {
    /// The installed skills by name.
    pub skills: BTreeMap<String, LockedSkill>,
    /// The install order: each skill after its dependencies.
    pub order: Vec<String>,
    /// Keys that a later version of the program wrote.
    extra: Extra,
}

/// Unknown keys with their values, which are written back unchanged.
type Extra = BTreeMap<String, toml_edit::Value>;

/// One installed skill.
#[derive(Clone, Debug)]
pub struct LockedSkill {
    /// The version; 0.0.0 if the skill has none.
    pub version: Version,
    pub source: LockedSource,
    /// The integrity of the skill's tree.
    pub integrity: String,
    /// The effective trust tier.
    pub tier: Tier,
    /// The tier that the skill's own files claim.
    pub claimed: Option<Tier>,
    /// The tier that its signature attests.
    pub attested: Option<Tier>,
    /// The signature that attests the tier, such as `ed25519:` and the id of its key.
    pub signature: Option<String>,
    /// The signer's display name at install time. Verification uses `signature`.
    pub signer: Option<String>,
    /// The permissions that it requests.
    pub permissions: Vec<Permission>,
    /// The tools that it provides, and the tools of the host that it uses.
    pub tools: Vec<String>,
    /// The skills that it depends on, with version ranges.
    pub dependencies: Vec<SkillRef>,
    /// The ids of the agents that it is installed for.
    pub agents: Vec<String>,
    /// The agents that got a converted file, because they cannot read the original.
    pub converted: Vec<String>,
    extra: Extra,
}

/// An error while reading or writing a lock.
#[derive(Debug, Error)]
pub enum LockError {
    /// A later version of the program wrote the lock.
    #[error("{file} is of version {found}, which this program does not know yet: update savoir")]
    Future { file: String, found: i64 },
    /// The file cannot be read, or is not a lock.
    #[error(transparent)]
    File(#[from] FileError),
}

impl LockError {
    /// A stable error code for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Future { .. } => "lock_from_the_future",
            Self::File(FileError::Invalid(_)) => "corrupt_lock",
            Self::File(error) => error.code(),
        }
    }
}

impl From<ContentError> for LockError {
    fn from(content_error: ContentError) -> Self {
        Self::File(content_error.into())
    }
}

impl LockedSkill {
    /// Creates an entry with the lowest tier and without permissions.
    pub fn new(version: Version, source: LockedSource, integrity: String) -> Self {
        Self {
            version,
            source,
            integrity,
            tier: Tier::Experimental,
            claimed: None,
            attested: None,
            signature: None,
            signer: None,
            permissions: Vec::new(),
            tools: Vec::new(),
            dependencies: Vec::new(),
            agents: Vec::new(),
            converted: Vec::new(),
            extra: Extra::new(),
        }
    }
}

impl Lock {
    /// Reads the file; returns an empty lock if it does not exist.
    pub fn read(path: &Path) -> Result<Self, LockError> {
        match text_file::read(path, MAX_LOCK_BYTES)? {
            Some(text) => Self::parse(&path.display().to_string(), &text),
            None => Ok(Self::default()),
        }
    }

    /// Parses the text of the file.
    pub fn parse(file: &str, text: &str) -> Result<Self, LockError> {
        let has_conflict = text.lines().any(|line| line.starts_with("<<<<<<< "));
        let document = table::parse(file, text).map_err(|content_error| {
            if has_conflict { content_error.hint(CONFLICT_HINT) } else { corrupt(content_error) }
        })?;
        let root = document.root();
        let version = root.required("version").map_err(corrupt)?.integer().map_err(corrupt)?;
        if version > FORMAT {
            return Err(LockError::Future { file: file.to_owned(), found: version });
        }
        Self::read_root(root).map_err(|content_error| corrupt(content_error).into())
    }

    fn read_root(root: Table<'_>) -> Result<Self, ContentError> {
        let mut lock = Self::default();
        for (key, _, value) in root.entries() {
            match key {
                "version" => {
                    if value.integer()? != FORMAT {
                        return Err(value.content_error("there is no such version of a lock"));
                    }
                }
                "order" => lock.order = texts(value)?,
                "skill" => {
                    for item in value.items("a list of skills")? {
                        lock.read_skill(item.table("a skill")?)?;
                    }
                }
                _ => keep_unknown_field(&mut lock.extra, key, value),
            }
        }
        if let Some(name) = lock.order.iter().find(|name| !lock.skills.contains_key(*name)) {
            let value = root.required("order")?;
            return Err(
                value.content_error(format!("`{name}` is in the order and not among the skills"))
            );
        }
        Ok(lock)
    }

    fn read_skill(&mut self, table: Table<'_>) -> Result<(), ContentError> {
        let value = table.required("name")?;
        let name = value.string("a name")?;
        check_name(name).map_err(|why| value.content_error(why))?;
        let skill = read_skill(table)?;
        if self.skills.insert(name.to_owned(), skill).is_some() {
            return Err(value.content_error(format!("`{name}` is there twice")));
        }
        Ok(())
    }

    /// Writes the file atomically.
    pub fn write(&self, path: &Path) -> Result<(), LockError> {
        text_file::write(path, &self.to_string())?;
        Ok(())
    }

    /// The locked versions, for the resolver.
    pub fn versions(&self) -> BTreeMap<String, Version> {
        let versions = self.skills.iter();
        versions.map(|(name, skill)| (name.clone(), skill.version.clone())).collect()
    }

    /// Whether a resolution has exactly the locked versions.
    pub fn pins(&self, resolution: &Resolution) -> bool {
        resolution.chosen.len() == self.skills.len()
            && resolution.chosen.iter().all(|(name, chosen)| {
                self.skills.get(name).is_some_and(|locked| locked.version == chosen.version)
            })
    }

    /// Copies unknown fields of later program versions from an old lock to a newly created one.
    pub fn copy_unknown_fields(&mut self, old: &Self) {
        self.extra.clone_from(&old.extra);
        for (name, skill) in &mut self.skills {
            if let Some(old) = old.skills.get(name) {
                skill.extra.clone_from(&old.extra);
            }
        }
    }
}

/// What to do after a merge of git that changed the file on both sides.
const CONFLICT_HINT: &str = "git marked conflicts in it; keep one side, and let savoir add the \
                             rest: git checkout --theirs savoir.lock && savoir sync";

fn corrupt(content_error: ContentError) -> ContentError {
    match content_error.hint {
        Some(_) => content_error,
        None => {
            content_error.hint("take the file from version control, or remove it and install again")
        }
    }
}

fn keep_unknown_field(extra: &mut Extra, key: &str, value: Value<'_>) {
    if let Some(value) = value.plain() {
        extra.insert(key.to_owned(), value);
    }
}

fn read_skill(table: Table<'_>) -> Result<LockedSkill, ContentError> {
    let text = |key: &str| table.required(key)?.string("a text");
    let version = parse_version(text("version")?)
        .map_err(|error| wrong(table, "version", &error.to_string()))?;
    let source = text("source")?
        .parse()
        .map_err(|error: SourceProblem| wrong(table, "source", &error.to_string()))?;
    let integrity = text("integrity")?.to_owned();
    if !is_integrity(&integrity) {
        return Err(wrong(table, "integrity", "this is not an integrity value"));
    }
    let mut skill = LockedSkill::new(version, source, integrity);
    skill.tier = tier(table.required("tier")?)?;
    for (key, _, value) in table.entries() {
        match key {
            "name" | "version" | "source" | "integrity" | "tier" => {}
            "claimed" => skill.claimed = Some(tier(value)?),
            "attested" => skill.attested = Some(tier(value)?),
            "signature" => skill.signature = Some(value.string("a text")?.to_owned()),
            "signer" => skill.signer = Some(value.string("a text")?.to_owned()),
            "permissions" => skill.permissions = parsed(value, Permission::parse)?,
            "tools" => skill.tools = texts(value)?,
            "dependencies" => skill.dependencies = parsed(value, SkillRef::parse)?,
            "agents" => skill.agents = texts(value)?,
            "converted" => skill.converted = texts(value)?,
            _ => keep_unknown_field(&mut skill.extra, key, value),
        }
    }
    Ok(skill)
}

fn wrong(table: Table<'_>, key: &str, message: &str) -> ContentError {
    match table.required(key) {
        Ok(value) => value.content_error(message),
        Err(missing) => missing,
    }
}

fn tier(value: Value<'_>) -> Result<Tier, ContentError> {
    let tier = value.string("a tier")?.parse();
    tier.map_err(|error: savoir_skill::permission::UnknownTier| {
        value.content_error(error.to_string())
    })
}

fn texts(value: Value<'_>) -> Result<Vec<String>, ContentError> {
    let items = value.items("a list of texts")?;
    items.into_iter().map(|item| Ok(item.string("a text")?.to_owned())).collect()
}

fn parsed<T, E: std::fmt::Display>(
    value: Value<'_>,
    parse: impl Fn(&str) -> Result<T, E>,
) -> Result<Vec<T>, ContentError> {
    let items = value.items("a list of texts")?;
    let read = |item: Value<'_>| {
        parse(item.string("a text")?).map_err(|error| item.content_error(error.to_string()))
    };
    items.into_iter().map(read).collect()
}

#[cfg(test)]
mod tests;
