//! The skills that an agent consists of.

use std::fmt;

use savoir_skill::version::SkillRef;
use semver::Version;

use crate::resolve::{Necessity, Resolution};

/// What an agent is made of, with one of its sets.
#[derive(Clone, Debug, PartialEq)]
pub struct Composition {
    /// The name of the agent.
    pub name: String,
    /// Its version.
    pub version: Option<Version>,
    /// The set that is active.
    pub set: Option<String>,
    /// The skills.
    pub parts: Vec<ComposedSkill>,
}

/// One skill of an agent.
#[derive(Clone, Debug, PartialEq)]
pub struct ComposedSkill {
    /// What the agent asks for.
    pub skill: SkillRef,
    /// Whether it can do without.
    pub need: Necessity,
    /// The version that it gets, once that is known.
    pub version: Option<Version>,
    /// Whether it turned out that the agent does not get it.
    pub left_out: bool,
    /// The tools that this brings, once they are known.
    pub tools: Vec<String>,
}

impl Composition {
    /// Takes in which versions were chosen.
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

/// Lines of a tree; `show` gets what stands before the lines below its own.
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
