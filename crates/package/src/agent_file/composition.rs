//! The list of skills that an agent consists of.

use std::fmt;

use savoir_skill::version::SkillRef;
use semver::Version;

use crate::resolve::{Necessity, Resolution};

/// The skills of an agent with one of its sets.
#[derive(Clone, Debug, PartialEq)]
pub struct Composition {
    pub name: String,
    pub version: Option<Version>,
    /// The active set.
    pub set: Option<String>,
    pub parts: Vec<ComposedSkill>,
}

/// One skill of a composition.
#[derive(Clone, Debug, PartialEq)]
pub struct ComposedSkill {
    /// The skill and the versions that the agent requests.
    pub skill: SkillRef,
    pub need: Necessity,
    /// The chosen version, once it is known.
    pub version: Option<Version>,
    /// Whether the skill could not be provided.
    pub left_out: bool,
    /// The tools of the skill, once they are known.
    pub tools: Vec<String>,
}

impl Composition {
    /// Sets the chosen versions.
    pub fn resolved(&mut self, resolution: &Resolution) {
        for part in &mut self.parts {
            let chosen = resolution.chosen.get(&part.skill.name);
            part.version = chosen.map(|chosen| chosen.version.clone());
            part.left_out = chosen.is_none();
        }
    }
}

impl fmt::Display for Composition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        if let Some(version) = &self.version {
            write!(f, " {version}")?;
        }
        if let Some(set) = &self.set {
            write!(f, " with `{set}`")?;
        }
        writeln!(f)?;
        write_branches(f, "", &self.parts, |f, part, below| {
            writeln!(f, "{part}")?;
            write_branches(f, below, &part.tools, |f, tool, _| writeln!(f, "{tool}"))
        })
    }
}

impl fmt::Display for ComposedSkill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SkillRef { name, range } = &self.skill;
        f.write_str(name)?;
        if let Some(version) = &self.version {
            write!(f, " {version}")?;
        }
        if !range.is_any() {
            write!(f, " ({})", range.to_string().trim())?;
        }
        if self.need == Necessity::Optional {
            f.write_str(", optional")?;
        }
        if self.left_out {
            f.write_str(", left out")?;
        }
        Ok(())
    }
}

/// Writes one level of a tree. `show` gets the prefix for the lines below.
fn write_branches<T>(
    f: &mut fmt::Formatter<'_>,
    before: &str,
    items: &[T],
    show: impl Fn(&mut fmt::Formatter<'_>, &T, &str) -> fmt::Result,
) -> fmt::Result {
    for (at, item) in items.iter().enumerate() {
        let last = at + 1 == items.len();
        f.write_str(before)?;
        f.write_str(if last { "└── " } else { "├── " })?;
        show(f, item, &format!("{before}{}", if last { "    " } else { "│   " }))?;
    }
    Ok(())
}
