//! Assigns the names under which a model sees the tools of several skills.

use std::collections::BTreeMap;

use savoir_lint::words::nearest;
use savoir_skill::{Skill, digest};

use super::CallError;

/// The longest name that the APIs of models accept.
const MAX_NAME_CHARS: usize = 64;

/// Hexadecimal digits that tell apart names that would otherwise be equal.
const HASH_CHARS: usize = 8;

/// The names of one tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolName {
    /// The skill that brings it.
    pub skill: String,
    /// The name within the skill.
    pub tool: String,
    /// The name for users: the short name, or `skill/tool` if another skill has a tool of that name.
    pub shown: String,
    /// The same for APIs that accept only letters, digits, `_` and `-`: `skill__tool`.
    pub api: String,
}

impl ToolName {
    /// `skill/tool`.
    pub fn qualified(&self) -> String {
        format!("{}/{}", self.skill, self.tool)
    }
}

/// The names of all tools of the skills that are loaded together.
#[derive(Clone, Debug, Default)]
pub struct ToolNames {
    names: Vec<ToolName>,
}

impl ToolNames {
    /// Names the tools of some skills, in their order.
    pub fn new<'a>(skills: impl IntoIterator<Item = &'a Skill>) -> Self {
        let pairs = skills.into_iter().flat_map(|skill| {
            skill.tools.iter().map(|tool| (skill.name.clone(), tool.name.clone()))
        });
        Self::from_pairs(pairs)
    }

    /// Names the tools of some skills so that no name depends on which other skills there are.
    pub fn qualified<'a>(skills: impl IntoIterator<Item = &'a Skill>) -> Self {
        let mut names: Vec<ToolName> = Vec::new();
        for skill in skills {
            names.extend(skill.tools.iter().map(|tool| {
                let shown = format!("{}/{}", skill.name, tool.name);
                let (skill, tool, api) = (skill.name.clone(), tool.name.clone(), api_name(&shown));
                ToolName { skill, tool, shown, api }
            }));
        }
        make_unique(&mut names);
        Self { names }
    }

    /// Names tools that are given as skill and tool.
    pub fn from_pairs(pairs: impl IntoIterator<Item = (String, String)>) -> Self {
        let pairs: Vec<(String, String)> = pairs.into_iter().collect();
        let mut owners: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (skill, tool) in &pairs {
            let owners = owners.entry(tool).or_default();
            if !owners.contains(&skill.as_str()) {
                owners.push(skill);
            }
        }
        let shared = |tool: &str| owners.get(tool).is_some_and(|owners| owners.len() > 1);
        let mut names: Vec<ToolName> = Vec::with_capacity(pairs.len());
        for (skill, tool) in &pairs {
            let shown = if shared(tool) { format!("{skill}/{tool}") } else { tool.clone() };
            let api = api_name(&shown);
            names.push(ToolName { skill: skill.clone(), tool: tool.clone(), shown, api });
        }
        make_unique(&mut names);
        Self { names }
    }

    /// All names, in the order of the skills.
    pub fn iter(&self) -> impl Iterator<Item = &ToolName> {
        self.names.iter()
    }

    /// The names of one tool.
    pub fn of(&self, skill: &str, tool: &str) -> Option<&ToolName> {
        self.names.iter().find(|name| name.skill == skill && name.tool == tool)
    }

    /// Finds the tool that a caller means: by the name that is shown, by `skill/tool`, by the name
    /// for APIs, or by the short name while only one skill has it.
    pub fn find(&self, name: &str) -> Result<&ToolName, CallError> {
        let exact = self
            .names
            .iter()
            .find(|available| available.shown == name || available.qualified() == name);
        if let Some(available) =
            exact.or_else(|| self.names.iter().find(|available| available.api == name))
        {
            return Ok(available);
        }
        let sharing: Vec<&ToolName> = self.names.iter().filter(|n| n.tool == name).collect();
        match sharing.as_slice() {
            [] => {
                let available: Vec<String> = self.names.iter().map(|n| n.shown.clone()).collect();
                let similar =
                    nearest(name, available.iter().map(String::as_str)).map(str::to_owned);
                Err(CallError::UnknownTool { name: name.to_owned(), available, similar })
            }
            [one] => Ok(one),
            several => Err(CallError::AmbiguousTool {
                name: name.to_owned(),
                skills: several.iter().map(|name| name.skill.clone()).collect(),
            }),
        }
    }
}

fn api_name(shown: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let name: String = shown.replace('/', "__").chars().map(plain).collect();
    if name.is_empty() || name.len() > MAX_NAME_CHARS { with_hash(&name, shown) } else { name }
}

/// Adds a hash of the original name to each name that is not unique, so that the result does not
/// depend on the order of the skills.
fn make_unique(names: &mut [ToolName]) {
    let mut count: BTreeMap<String, usize> = BTreeMap::new();
    for name in names.iter() {
        *count.entry(name.api.clone()).or_default() += 1;
    }
    for name in names {
        if count.get(&name.api).is_some_and(|count| *count > 1) {
            name.api = with_hash(&name.api, &name.qualified());
        }
    }
}

fn with_hash(name: &str, origin: &str) -> String {
    let digest = digest::sha256_hex(origin.as_bytes());
    let mark = &digest[..HASH_CHARS];
    // Only ASCII is left, so every byte is a character.
    let kept = &name[..name.len().min(MAX_NAME_CHARS - HASH_CHARS - 1)];
    format!("{kept}_{mark}")
}
