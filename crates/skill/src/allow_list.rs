//! Enforces the `allowed-tools` and `disallowed-tools` of a skill: decides which tool calls are
//! allowed.
//!
//! A list comes from a skill, so it is untrusted and can only restrict: a listed tool that is not
//! offered does not exist, and a condition in parentheses that is invalid or not closed allows
//! nothing.

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

/// Separates the skill and the tool in the full name of a tool.
const SKILL_TOOL_SEPARATOR: &str = "__";

/// A tool that is offered to the model, by the names that lists use for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfferedTool<'a> {
    /// A tool of the host, by its name in Personal Agent: `run_command`, `read_file`. Lists may use
    /// the names of other systems for it.
    Host(&'a str),
    /// A tool of a skill. Lists use its full name, or its name with the skill before it
    /// (`skill/tool`, `skill__tool`). Names of other systems never match, so that a skill cannot
    /// offer its own `Bash`.
    Skill {
        /// The name of the skill that defines the tool.
        skill: &'a str,
        /// The name of the tool within the skill.
        tool: &'a str,
        /// The full name under which the model calls the tool.
        called: &'a str,
    },
}

/// The tool calls that a skill allows and denies while it is active.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowList {
    /// `None` allows every tool that is not denied.
    grants: Option<Vec<ToolGrant>>,
    denied: Vec<ToolGrant>,
}

/// The reason why a call is not allowed. The model reads the message, so it includes a hint.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NotAllowed {
    /// The allow list does not contain the tool.
    #[error(
        "the tool `{tool}` is not among those that this skill allows ({list}); use one of those, if it exists here, or load another skill with use_skill"
    )]
    Tool {
        /// The name of the tool.
        tool: String,
        /// The allow list.
        list: String,
    },
    /// The skill denies the tool.
    #[error("the tool `{tool}` is denied by this skill ({list}); do without it")]
    Denied {
        /// The name of the tool.
        tool: String,
        /// The deny list.
        list: String,
    },
    /// The skill denies some calls of the tool, and this call matches or may match.
    #[error(
        "this call of `{tool}` is among those that this skill denies ({list}), or cannot be distinguished from them: {reason}"
    )]
    DeniedCall {
        /// The name of the tool.
        tool: String,
        /// The entries of the deny list for the tool.
        list: String,
        /// Which part of the arguments matches.
        reason: Cow<'static, str>,
    },
    /// The allow list contains the tool with other arguments.
    #[error("this skill does not allow this call of `{tool}` ({list}): {reason}")]
    Arguments {
        /// The name of the tool.
        tool: String,
        /// The entries of the allow list for the tool.
        list: String,
        /// Why the arguments do not match.
        reason: Cow<'static, str>,
    },
    /// The allow list contains the tool, but the command may do more than the list allows. The user
    /// can approve the call.
    #[error(
        "this call of `{tool}` may do more than this skill allows ({list}): {reason}; a person must agree to it, so send a plainer command if you can"
    )]
    InDoubt {
        /// The name of the tool.
        tool: String,
        /// The entries of the allow list for the tool.
        list: String,
        /// What the command may do.
        reason: String,
    },
}

/// Why arguments do not satisfy the condition in parentheses.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ConditionError {
    NotMet(Cow<'static, str>),
    /// The arguments satisfy the condition, but the command may do more.
    InDoubt(String),
}

impl From<Cow<'static, str>> for ConditionError {
    fn from(why: Cow<'static, str>) -> Self {
        Self::NotMet(why)
    }
}

/// Returns `Ok` if one check passes, else the doubt of one, else the reasons of all.
fn first_accepted(
    checks: impl Iterator<Item = Result<(), ConditionError>>,
) -> Result<(), ConditionError> {
    let mut reasons: Vec<Cow<'static, str>> = Vec::new();
    let mut doubt = None;
    for one in checks {
        match one {
            Ok(()) => return Ok(()),
            Err(ConditionError::InDoubt(why)) => doubt = Some(why),
            Err(ConditionError::NotMet(why)) if reasons.contains(&why) => {}
            Err(ConditionError::NotMet(why)) => reasons.push(why),
        }
    }
    Err(match doubt {
        Some(why) => ConditionError::InDoubt(why),
        None if reasons.is_empty() => ConditionError::NotMet("the parentheses are empty".into()),
        None => ConditionError::NotMet(reasons.join(", or ").into()),
    })
}

impl NotAllowed {
    /// Whether the user can approve the call.
    pub fn needs_approval(&self) -> bool {
        matches!(self, Self::InDoubt { .. })
    }

    /// The stable identifier of the error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Tool { .. } | Self::Denied { .. } => "tool-not-allowed",
            Self::DeniedCall { .. } | Self::Arguments { .. } => "arguments-not-allowed",
            Self::InDoubt { .. } => "approval-needed",
        }
    }
}

impl AllowList {
    /// Makes an allow list; `None` if there is no list or it is empty, which restricts nothing.
    pub fn new(grants: Option<&[ToolGrant]>) -> Option<Self> {
        let grants = grants.filter(|grants| !grants.is_empty())?;
        Some(Self { grants: Some(grants.to_vec()), denied: Vec::new() })
    }

    /// Makes the list of allowed and denied tools of a skill; `None` if it restricts nothing.
    ///
    /// A tool that is denied with a condition can still be called with arguments that clearly
    /// differ. If the condition is not understood, the whole tool is denied; if the parentheses are
    /// not closed, every tool named in them is denied.
    pub fn of(policy: &Policy) -> Option<Self> {
        let denied = policy.disallowed_tools.clone();
        match Self::new(policy.allowed_tools.as_deref()) {
            Some(list) => Some(Self { denied, ..list }),
            None if denied.is_empty() => None,
            None => Some(Self { grants: None, denied }),
        }
    }

    /// Whether at least some calls of a tool are allowed.
    pub fn names(&self, tool: OfferedTool<'_>) -> bool {
        let is_named = |grants: &[ToolGrant]| grants.iter().any(|grant| tool.is_named_by(grant));
        self.grants.as_deref().is_none_or(is_named)
            && !self.denied.iter().any(|grant| tool.is_ruled_out_by(grant))
    }

    /// The entries that name none of these tools, as the skill writes them.
    pub fn find_missing(&self, tools: &[OfferedTool<'_>]) -> Vec<String> {
        let is_missing = |grant: &&ToolGrant| !tools.iter().any(|tool| tool.is_named_by(grant));
        let grants = self.grants.iter().flatten().filter(is_missing);
        grants.map(ToString::to_string).collect()
    }

    /// Checks whether a call is allowed.
    pub fn check(
        &self,
        tool: OfferedTool<'_>,
        arguments: &Map<String, Value>,
    ) -> Result<(), NotAllowed> {
        let full_name = || tool.full_name().to_owned();
        if self.denied.iter().any(|grant| tool.is_ruled_out_by(grant)) {
            return Err(NotAllowed::Denied {
                tool: full_name(),
                list: join_grants(self.denied.iter()),
            });
        }
        for grant in self.denied.iter().filter(|grant| tool.may_be_named_by(grant)) {
            let condition = grant.arguments.as_deref().unwrap_or_default();
            tool.check_not_denied(condition, arguments).map_err(|reason| {
                NotAllowed::DeniedCall { tool: full_name(), list: grant.to_string(), reason }
            })?;
        }
        let Some(grants) = &self.grants else { return Ok(()) };
        let named: Vec<&ToolGrant> =
            grants.iter().filter(|grant| tool.is_named_by(grant)).collect();
        if named.is_empty() {
            return Err(NotAllowed::Tool { tool: full_name(), list: self.to_string() });
        }
        let checks = named.iter().map(|grant| {
            if grant.is_broken {
                let why = format!("`{grant}` is not closed: write {}", grant.suggest_closed());
                return Err(ConditionError::NotMet(why.into()));
            }
            match grant.arguments.as_deref().filter(|text| !allows_everything(text)) {
                None => Ok(()),
                Some(condition) => tool.check_condition(condition, arguments),
            }
        });
        first_accepted(checks).map_err(|error| {
            let (tool, list) = (full_name(), join_grants(named.iter().copied()));
            match error {
                ConditionError::NotMet(reason) => NotAllowed::Arguments { tool, list, reason },
                ConditionError::InDoubt(reason) => NotAllowed::InDoubt { tool, list, reason },
            }
        })
    }
}

impl fmt::Display for AllowList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.grants {
            Some(grants) => f.write_str(&join_grants(grants.iter())),
            None => write!(f, "all but {}", join_grants(self.denied.iter())),
        }
    }
}

fn join_grants<'a>(grants: impl Iterator<Item = &'a ToolGrant>) -> String {
    grants.map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Whether a condition allows everything.
fn allows_everything(condition: &str) -> bool {
    matches!(condition.trim(), "" | "*" | ":*" | "**")
}

/// Splits a condition into its patterns.
fn split_patterns(condition: &str) -> impl Iterator<Item = &str> {
    condition.split(',').map(str::trim).filter(|one| !one.is_empty())
}

/// The value of a text argument.
fn text_argument<'a>(
    arguments: &'a Map<String, Value>,
    name: &'static str,
) -> Result<&'a str, Cow<'static, str>> {
    match arguments.get(name) {
        Some(Value::String(text)) => Ok(text),
        _ => Err(format!("it needs the argument `{name}`, a text").into()),
    }
}

impl OfferedTool<'_> {
    /// The full name under which the model calls the tool.
    pub fn full_name(&self) -> &str {
        match self {
            Self::Host(name) => name,
            Self::Skill { called, .. } => called,
        }
    }

    /// Whether an entry of an allow list matches the tool. Names of skills and their tools are
    /// compared exactly, and an ambiguous name matches no tool.
    fn is_named_by(self, grant: &ToolGrant) -> bool {
        match self {
            Self::Host(name) => grant.normalized() == name,
            Self::Skill { skill, tool, called } => {
                let written = grant.name.as_str();
                let is_plain =
                    !skill.contains(SKILL_TOOL_SEPARATOR) && !tool.contains(SKILL_TOOL_SEPARATOR);
                let is_called = written == called && (called == tool || is_plain);
                let is_joined =
                    is_plain && written.split_once(SKILL_TOOL_SEPARATOR) == Some((skill, tool));
                let is_qualified = written.split_once('/') == Some((skill, tool));
                !grant.is_known() && (is_called || is_joined) || is_qualified
            }
        }
    }

    /// Whether an entry of a deny list can mean the tool: by any of its names, ignoring case.
    fn may_be_named_by(self, grant: &ToolGrant) -> bool {
        match self {
            Self::Host(name) => grant.normalized() == name,
            Self::Skill { skill, tool, called } => {
                let is = |name: &str| grant.name.eq_ignore_ascii_case(name);
                let is_called = is(called) || is(&format!("{skill}{SKILL_TOOL_SEPARATOR}{tool}"));
                !grant.is_known() && is_called || is(&format!("{skill}/{tool}"))
            }
        }
    }

    /// Whether an entry denies every call of the tool.
    fn is_ruled_out_by(self, grant: &ToolGrant) -> bool {
        if grant.is_broken {
            return grant.words_as_grants().iter().any(|word| self.may_be_named_by(word));
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
            !allows_everything(condition)
                && split_patterns(condition).next().is_some()
                && split_patterns(condition).all(is_understood)
        };
        self.may_be_named_by(grant)
            && grant.arguments.as_deref().is_none_or(|condition| !some_only(condition))
    }

    /// Checks that arguments do not match a denied condition.
    fn check_not_denied(
        self,
        condition: &str,
        arguments: &Map<String, Value>,
    ) -> Result<(), Cow<'static, str>> {
        for pattern in split_patterns(condition) {
            let fits = match self {
                Self::Host("run_command") => {
                    denied::matches_command(pattern, text_argument(arguments, "command")?)
                }
                Self::Host("web_fetch") => {
                    path::is_host_ruled_out(pattern, text_argument(arguments, "url")?)
                }
                _ => path::is_ruled_out(pattern, text_argument(arguments, "path")?),
            };
            if fits? {
                return Err(format!("it fits `{pattern}`; do without it").into());
            }
        }
        Ok(())
    }

    /// Checks that arguments satisfy an allowed condition.
    fn check_condition(
        self,
        condition: &str,
        arguments: &Map<String, Value>,
    ) -> Result<(), ConditionError> {
        let text =
            |name: &'static str| text_argument(arguments, name).map_err(ConditionError::NotMet);
        match self {
            Self::Host("run_command") => {
                let command = text("command")?;
                first_accepted(
                    split_patterns(condition)
                        .map(|pattern| command::check_command(pattern, command)),
                )
            }
            Self::Host("read_file" | "write_file" | "edit_file" | "list_dir") => {
                let path = text("path")?;
                let checks =
                    split_patterns(condition).map(|pattern| path::check_path(pattern, path));
                first_accepted(checks.map(|met| met.map_err(ConditionError::NotMet)))
            }
            Self::Host("web_fetch") => {
                let url = text("url")?;
                let checks =
                    split_patterns(condition).map(|pattern| path::check_host(pattern, url));
                first_accepted(checks.map(|met| met.map_err(ConditionError::NotMet)))
            }
            _ => Err(ConditionError::NotMet(
                "the condition in the parentheses is not understood for this tool".into(),
            )),
        }
    }
}
