//! An allow-list that holds: which calls of tools the `allowed-tools` of a skill let through.
//!
//! A list is data from a skill. It only ever narrows: what it names and nobody offers is not there, and
//! a condition in parentheses that is not understood, or that nothing closes, lets nothing through.

mod command;
mod denied;
mod launchers;
mod path;
#[cfg(test)]
mod tests;

use std::{borrow::Cow, fmt};

use serde_json::{Map, Value};
use thiserror::Error;

use crate::{allowed_tools::ToolGrant, skill::Policy};

/// What stands between a skill and its tool in the name under which that is called.
const BETWEEN: &str = "__";

/// A tool that somebody offers, as lists name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offered<'a> {
    /// A tool of the host, by the name of Personal Agent: `run_command`, `read_file`. Lists may call it
    /// by the names of other systems.
    Host(&'a str),
    /// A tool of a skill. Lists name it as it is called, or with its skill before it (`skill/tool`,
    /// `skill__tool`): no name of another system stands for it, so that a skill cannot offer a `Bash` of
    /// its own.
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
    /// The skill rules out some calls of it, and this is one of them, or may be.
    #[error(
        "this call of `{tool}` is among those that this skill rules out ({list}), or cannot be told from them: {reason}"
    )]
    DeniedCall {
        /// The tool.
        tool: String,
        /// The part of what is ruled out that names it.
        list: String,
        /// What of the arguments it is.
        reason: Cow<'static, str>,
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
    /// The list names it, but the command may do more than the list says. A person may agree to it.
    #[error(
        "this call of `{tool}` may do more than this skill allows ({list}): {reason}; a person must agree to it, so send a plainer command if you can"
    )]
    InDoubt {
        /// The tool.
        tool: String,
        /// The part of the list that names it.
        list: String,
        /// What it may do.
        reason: String,
    },
}

/// Why arguments do not meet what stands in parentheses.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Unmet {
    No(Cow<'static, str>),
    /// They do, and may do more.
    InDoubt(String),
}

impl From<Cow<'static, str>> for Unmet {
    fn from(why: Cow<'static, str>) -> Self {
        Self::No(why)
    }
}

/// Gives the first that is met, else one in doubt, else the last reason.
fn first_met(tried: impl Iterator<Item = Result<(), Unmet>>) -> Result<(), Unmet> {
    let mut unmet = Unmet::No("nothing stands in the parentheses".into());
    for one in tried {
        match (one, &unmet) {
            (Ok(()), _) => return Ok(()),
            (Err(Unmet::No(_)), Unmet::InDoubt(_)) => {}
            (Err(why), _) => unmet = why,
        }
    }
    Err(unmet)
}

impl NotAllowed {
    /// Whether a person can agree to it nevertheless.
    pub fn is_in_doubt(&self) -> bool {
        matches!(self, Self::InDoubt { .. })
    }

    /// A stable word for it.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Tool { .. } | Self::Denied { .. } => "tool-not-allowed",
            Self::DeniedCall { .. } | Self::Arguments { .. } => "arguments-not-allowed",
            Self::InDoubt { .. } => "approval-needed",
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
    /// What is ruled out with parentheses is there for calls that are plainly other ones. It is not
    /// there at all if what stands in the parentheses is not understood; if nothing closes them, none of
    /// the tools that are named there is.
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
        self.grants.as_deref().is_none_or(is_named)
            && !self.denied.iter().any(|grant| tool.is_ruled_out_by(grant))
    }

    /// Lets a call through, or says why not.
    pub fn check(
        &self,
        tool: Offered<'_>,
        arguments: &Map<String, Value>,
    ) -> Result<(), NotAllowed> {
        let called = || tool.called().to_owned();
        if self.denied.iter().any(|grant| tool.is_ruled_out_by(grant)) {
            return Err(NotAllowed::Denied { tool: called(), list: listed(self.denied.iter()) });
        }
        for grant in self.denied.iter().filter(|grant| tool.may_be_named_by(grant)) {
            let condition = grant.arguments.as_deref().unwrap_or_default();
            tool.avoids(condition, arguments).map_err(|reason| NotAllowed::DeniedCall {
                tool: called(),
                list: grant.to_string(),
                reason,
            })?;
        }
        let Some(grants) = &self.grants else { return Ok(()) };
        let named: Vec<&ToolGrant> =
            grants.iter().filter(|grant| tool.is_named_by(grant)).collect();
        if named.is_empty() {
            return Err(NotAllowed::Tool { tool: called(), list: self.to_string() });
        }
        let tried = named.iter().map(|grant| {
            if grant.is_broken {
                let why = format!("`{grant}` is not closed: write {}", grant.mended());
                return Err(Unmet::No(why.into()));
            }
            match grant.arguments.as_deref().filter(|text| !is_anything(text)) {
                None => Ok(()),
                Some(condition) => tool.meets(condition, arguments),
            }
        });
        first_met(tried).map_err(|unmet| {
            let (tool, list) = (called(), listed(named.iter().copied()));
            match unmet {
                Unmet::No(reason) => NotAllowed::Arguments { tool, list, reason },
                Unmet::InDoubt(reason) => NotAllowed::InDoubt { tool, list, reason },
            }
        })
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

/// What stands in parentheses, one by one.
fn patterns(condition: &str) -> impl Iterator<Item = &str> {
    condition.split(',').map(str::trim).filter(|one| !one.is_empty())
}

/// An argument that must be a text.
fn text<'a>(
    arguments: &'a Map<String, Value>,
    name: &'static str,
) -> Result<&'a str, Cow<'static, str>> {
    match arguments.get(name) {
        Some(Value::String(text)) => Ok(text),
        _ => Err(format!("it needs the argument `{name}`, a text").into()),
    }
}

impl Offered<'_> {
    /// The name under which it is called.
    pub fn called(&self) -> &str {
        match self {
            Self::Host(name) => name,
            Self::Skill { called, .. } => called,
        }
    }

    /// Whether a list that allows names it. Names of skills and their tools are compared exactly, and a
    /// name that could be that of two tools names neither.
    fn is_named_by(self, grant: &ToolGrant) -> bool {
        match self {
            Self::Host(name) => grant.normalized() == name,
            Self::Skill { skill, tool, called } => {
                let written = grant.name.as_str();
                let is_plain = !skill.contains(BETWEEN) && !tool.contains(BETWEEN);
                let is_called = written == called && (called == tool || is_plain);
                let is_joined = is_plain && written.split_once(BETWEEN) == Some((skill, tool));
                let is_qualified = written.split_once('/') == Some((skill, tool));
                !grant.is_known() && (is_called || is_joined) || is_qualified
            }
        }
    }

    /// Whether a list that rules out may mean it: in any of its names, in whatever case.
    fn may_be_named_by(self, grant: &ToolGrant) -> bool {
        match self {
            Self::Host(name) => grant.normalized() == name,
            Self::Skill { skill, tool, called } => {
                let is = |name: &str| grant.name.eq_ignore_ascii_case(name);
                let is_called = is(called) || is(&format!("{skill}{BETWEEN}{tool}"));
                !grant.is_known() && is_called || is(&format!("{skill}/{tool}"))
            }
        }
    }

    /// Whether every call of it is ruled out.
    fn is_ruled_out_by(self, grant: &ToolGrant) -> bool {
        if grant.is_broken {
            return grant.words().iter().any(|word| self.may_be_named_by(word));
        }
        let is_understood = |pattern: &str| match self {
            Self::Host("run_command") => denied::read_pattern(pattern).is_ok(),
            Self::Host("read_file" | "write_file" | "edit_file" | "list_dir") => {
                path::read_pattern(pattern).is_ok()
            }
            Self::Host("web_fetch") => path::read_domain(pattern).is_ok(),
            _ => false,
        };
        let some_only = |condition: &str| {
            !is_anything(condition)
                && patterns(condition).next().is_some()
                && patterns(condition).all(is_understood)
        };
        self.may_be_named_by(grant)
            && grant.arguments.as_deref().is_none_or(|condition| !some_only(condition))
    }

    /// Holds arguments against what stands in parentheses and is ruled out.
    fn avoids(
        self,
        condition: &str,
        arguments: &Map<String, Value>,
    ) -> Result<(), Cow<'static, str>> {
        for pattern in patterns(condition) {
            let fits = match self {
                Self::Host("run_command") => denied::fits(pattern, text(arguments, "command")?),
                Self::Host("web_fetch") => {
                    path::is_host_ruled_out(pattern, text(arguments, "url")?)
                }
                _ => path::is_ruled_out(pattern, text(arguments, "path")?),
            };
            if fits? {
                return Err(format!("it fits `{pattern}`; do without it").into());
            }
        }
        Ok(())
    }

    /// Compares arguments with what stands in parentheses.
    fn meets(self, condition: &str, arguments: &Map<String, Value>) -> Result<(), Unmet> {
        let text = |name: &'static str| text(arguments, name).map_err(Unmet::No);
        match self {
            Self::Host("run_command") => {
                let command = text("command")?;
                first_met(patterns(condition).map(|pattern| command::meets(pattern, command)))
            }
            Self::Host("read_file" | "write_file" | "edit_file" | "list_dir") => {
                let path = text("path")?;
                let tried = patterns(condition).map(|pattern| path::meets(pattern, path));
                first_met(tried.map(|met| met.map_err(Unmet::No)))
            }
            Self::Host("web_fetch") => {
                let url = text("url")?;
                let tried = patterns(condition).map(|pattern| path::meets_domain(pattern, url));
                first_met(tried.map(|met| met.map_err(Unmet::No)))
            }
            _ => Err(Unmet::No(
                "what stands in the parentheses is not understood for this tool".into(),
            )),
        }
    }
}
