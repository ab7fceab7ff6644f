//! An allow-list that holds: which calls of tools the `allowed-tools` of a skill let through.
//!
//! A list is data from a skill. It only ever narrows: what it names and nobody offers is not there, and
//! a condition in parentheses that is not understood lets nothing through.

mod command;
mod path;
#[cfg(test)]
mod tests;

use std::{borrow::Cow, fmt};

use serde_json::{Map, Value};
use thiserror::Error;

use crate::{allowed_tools::ToolGrant, skill::Policy};

/// A tool that somebody offers, as lists name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offered<'a> {
    /// A tool of the host, by the name of Personal Agent: `run_command`, `read_file`. Lists may call it
    /// by the names of other systems.
    Host(&'a str),
    /// A tool of a skill. Lists name it as it is called, or with its skill before it: no name of
    /// another system stands for it, so that a skill cannot offer a `Bash` of its own.
    Skill {
        /// The skill that brings it.
        skill: &'a str,
        /// Its name there.
        tool: &'a str,
        /// The name under which it is called.
        called: &'a str,
    },
}

/// What a skill allows while it is followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowList {
    /// `None` is every tool that is not denied.
    grants: Option<Vec<ToolGrant>>,
    denied: Vec<ToolGrant>,
}

/// Why a call is not let through, in words that whoever called can act on.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NotAllowed {
    /// The list does not name the tool.
    #[error(
        "the tool `{tool}` is not among those that this skill allows ({list}); use one of these, or load another skill with use_skill"
    )]
    Tool {
        /// The tool.
        tool: String,
        /// The list.
        list: String,
    },
    /// The skill rules it out.
    #[error("the tool `{tool}` is among those that this skill rules out ({list}); do without it")]
    Denied {
        /// The tool.
        tool: String,
        /// What is ruled out.
        list: String,
    },
    /// The list names it, for other arguments.
    #[error("this call of `{tool}` is not what this skill allows ({list}): {reason}")]
    Arguments {
        /// The tool.
        tool: String,
        /// The part of the list that names it.
        list: String,
        /// What is wrong with the arguments.
        reason: Cow<'static, str>,
    },
}

impl NotAllowed {
    /// A stable word for it.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Tool { .. } | Self::Denied { .. } => "tool-not-allowed",
            Self::Arguments { .. } => "arguments-not-allowed",
        }
    }
}

impl AllowList {
    /// The list of a skill; `None` if it has none, or an empty one, which restricts nothing.
    pub fn new(grants: Option<&[ToolGrant]>) -> Option<Self> {
        let grants = grants.filter(|grants| !grants.is_empty())?;
        Some(Self { grants: Some(grants.to_vec()), denied: Vec::new() })
    }

    /// All that a skill says about tools; `None` if it restricts nothing.
    ///
    /// What is ruled out is not there at all, whatever stands in parentheses: who may call a tool for
    /// everything but some commands may call it for these, too, in other words.
    pub fn of(policy: &Policy) -> Option<Self> {
        let denied = policy.disallowed_tools.clone();
        match Self::new(policy.allowed_tools.as_deref()) {
            Some(list) => Some(Self { denied, ..list }),
            None if denied.is_empty() => None,
            None => Some(Self { grants: None, denied }),
        }
    }

    /// Whether some call of a tool is let through.
    pub fn names(&self, tool: Offered<'_>) -> bool {
        let is_named = |grants: &[ToolGrant]| grants.iter().any(|grant| tool.is_named_by(grant));
        self.grants.as_deref().is_none_or(is_named) && !is_named(&self.denied)
    }

    /// Lets a call through, or says why not.
    pub fn check(
        &self,
        tool: Offered<'_>,
        arguments: &Map<String, Value>,
    ) -> Result<(), NotAllowed> {
        let called = || tool.called().to_owned();
        if self.denied.iter().any(|grant| tool.is_named_by(grant)) {
            return Err(NotAllowed::Denied { tool: called(), list: listed(self.denied.iter()) });
        }
        let Some(grants) = &self.grants else { return Ok(()) };
        let named: Vec<&ToolGrant> =
            grants.iter().filter(|grant| tool.is_named_by(grant)).collect();
        if named.is_empty() {
            return Err(NotAllowed::Tool { tool: called(), list: self.to_string() });
        }
        let mut reason = Cow::Borrowed("");
        for grant in &named {
            let Some(condition) = grant.arguments.as_deref().filter(|text| !is_anything(text))
            else {
                return Ok(());
            };
            match tool.meets(condition, arguments) {
                Ok(()) => return Ok(()),
                Err(why) => reason = why,
            }
        }
        Err(NotAllowed::Arguments { tool: called(), list: listed(named.into_iter()), reason })
    }
}

impl fmt::Display for AllowList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.grants {
            Some(grants) => f.write_str(&listed(grants.iter())),
            None => write!(f, "all but {}", listed(self.denied.iter())),
        }
    }
}

fn listed<'a>(grants: impl Iterator<Item = &'a ToolGrant>) -> String {
    grants.map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Whether a condition lets everything through.
fn is_anything(condition: &str) -> bool {
    matches!(condition.trim(), "" | "*" | ":*" | "**")
}

impl Offered<'_> {
    /// The name under which it is called.
    pub fn called(&self) -> &str {
        match self {
            Self::Host(name) => name,
            Self::Skill { called, .. } => called,
        }
    }

    fn is_named_by(self, grant: &ToolGrant) -> bool {
        match self {
            Self::Host(name) => grant.normalized() == name,
            Self::Skill { skill, tool, called } => {
                let written = grant.name.as_str();
                let qualified = written.split_once('/');
                // Letters that only become the same ones in lower case are not the same.
                (!grant.is_known() && written.eq_ignore_ascii_case(called))
                    || qualified.is_some_and(|(owner, own)| {
                        owner.eq_ignore_ascii_case(skill) && own.eq_ignore_ascii_case(tool)
                    })
            }
        }
    }

    /// Holds arguments against what stands in parentheses.
    fn meets(
        self,
        condition: &str,
        arguments: &Map<String, Value>,
    ) -> Result<(), Cow<'static, str>> {
        let text = |name: &str| match arguments.get(name) {
            Some(Value::String(text)) => Ok(text.as_str()),
            _ => Err(Cow::from(format!("it needs the argument `{name}`, a text"))),
        };
        let any = |meets: &dyn Fn(&str) -> Result<(), Cow<'static, str>>| {
            let mut last = Err(Cow::from("nothing stands in the parentheses"));
            for one in condition.split(',').map(str::trim).filter(|one| !one.is_empty()) {
                last = meets(one);
                if last.is_ok() {
                    break;
                }
            }
            last
        };
        match self {
            Self::Host("run_command") => {
                let command = text("command")?;
                any(&|pattern| command::meets(pattern, command))
            }
            Self::Host("read_file" | "write_file" | "edit_file" | "list_dir") => {
                let path = text("path")?;
                any(&|pattern| path::meets(pattern, path))
            }
            Self::Host("web_fetch") => {
                let url = text("url")?;
                any(&|pattern| path::meets_domain(pattern, url))
            }
            _ => Err("what stands in the parentheses is not understood for this tool".into()),
        }
    }
}
