//! Enforces the `allowed-tools` list of the active skill for every tool call of a turn.
//!
//! The list of a skill applies from the call that loaded it to the end of the turn, or until
//! another skill is loaded. It applies to every tool set, whatever else is decided about a call:
//! approvals and the sandbox come after it. Only `use_skill` and `read_skill_file` are exempt.

use std::sync::{Mutex, PoisonError};

use savoir_skill::allow_list::{AllowList, NotAllowed, OfferedTool};
use serde_json::{Map, Value};

use super::toolset::{ALWAYS_ALLOWED, ToolSpec};

/// What the model can do about a list without a known tool. In a sub-agent, it cannot do that.
pub(crate) const TELL_THE_USER: &str = "Tell the user, or load another skill with use_skill.";

/// The allow-list that is active in a turn.
#[derive(Debug, Default)]
pub struct AllowedTools {
    active: Mutex<Option<Active>>,
}

/// The allow-list at one point in time. All parallel calls of a reply are checked against the list
/// that was active before them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowListSnapshot(Option<Active>);

/// Checks one tool call, from the time when the model makes it until it runs. Another skill may be
/// loaded while the user is asked, so callers check again after the answer.
#[derive(Clone, Copy, Debug)]
pub struct CallGuard<'a>(Option<GuardedCall<'a>>);

#[derive(Clone, Copy, Debug)]
struct GuardedCall<'a> {
    allowed_tools: &'a AllowedTools,
    snapshots: &'a [AllowListSnapshot],
    tool: &'a ToolSpec,
    arguments: &'a Map<String, Value>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Active {
    skill: String,
    list: AllowList,
}

impl AllowedTools {
    /// Starts with the list of a skill, for a fork that executes only that skill.
    pub fn of(skill: &str, list: Option<AllowList>) -> Self {
        let allowed_tools = Self::default();
        allowed_tools.follow(skill, list);
        allowed_tools
    }

    /// Activates a skill: its list replaces the previous one, and a skill without a list restricts
    /// nothing.
    pub fn follow(&self, skill: &str, list: Option<AllowList>) {
        let active = list.map(|list| Active { skill: skill.to_owned(), list });
        *self.active.lock().unwrap_or_else(PoisonError::into_inner) = active;
    }

    /// The list that is active now.
    pub fn snapshot(&self) -> AllowListSnapshot {
        AllowListSnapshot(self.active.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }
}

impl<'a> CallGuard<'a> {
    /// Creates the guard of a call that was made under all of these snapshots.
    pub fn new(
        allowed_tools: &'a AllowedTools,
        snapshots: &'a [AllowListSnapshot],
        tool: &'a ToolSpec,
        arguments: &'a Map<String, Value>,
    ) -> Self {
        Self(Some(GuardedCall { allowed_tools, snapshots, tool, arguments }))
    }

    /// A guard that allows everything, for tools that no list restricts.
    pub fn unrestricted() -> Self {
        Self(None)
    }

    /// Checks that the lists allow the call now, without a question.
    pub fn check(&self) -> Result<(), NotAllowed> {
        let Some(GuardedCall { allowed_tools, snapshots, tool, arguments }) = self.0 else {
            return Ok(());
        };
        let current = allowed_tools.snapshot();
        let mut doubt = Ok(());
        for snapshot in snapshots.iter().chain([&current]) {
            let Err((skill, refused)) = snapshot.check(tool, arguments) else { continue };
            tracing::warn!(skill, code = refused.code(), %refused, "a skill does not allow a call");
            if !refused.needs_approval() {
                return Err(refused);
            }
            doubt = Err(refused);
        }
        doubt
    }

    /// Checks whether the lists allow the call now; returns the doubt that the user can decide, if
    /// there is one.
    pub fn find_doubt(&self) -> Result<Option<NotAllowed>, NotAllowed> {
        match self.check() {
            Ok(()) => Ok(None),
            Err(refused) if refused.needs_approval() => Ok(Some(refused)),
            Err(refused) => Err(refused),
        }
    }
}

impl Active {
    /// Resolves the short name by which a skill calls its own tool.
    fn resolve_own_tool<'a>(&self, offered: OfferedTool<'a>) -> OfferedTool<'a> {
        match offered {
            OfferedTool::Skill { skill, tool, .. } if skill == self.skill => {
                OfferedTool::Skill { skill, tool, called: tool }
            }
            other => other,
        }
    }
}

impl AllowListSnapshot {
    /// The skill whose list is active.
    pub fn skill(&self) -> Option<&str> {
        self.0.as_ref().map(|active| active.skill.as_str())
    }

    /// Whether the list allows at least some calls of a tool.
    pub fn offers(&self, tool: &ToolSpec) -> bool {
        match (&self.0, tool.offered()) {
            (Some(active), Some(offered)) => active.list.names(active.resolve_own_tool(offered)),
            _ => true,
        }
    }

    /// A note about the tools that the list allows and that are not among `tools`. A list without
    /// any known tool allows none.
    pub fn missing_tools_note<'a>(
        &self,
        tools: impl Iterator<Item = &'a ToolSpec>,
    ) -> Option<String> {
        let active = self.0.as_ref()?;
        let offered = tools.filter_map(ToolSpec::offered);
        let offered: Vec<_> = offered.map(|tool| active.resolve_own_tool(tool)).collect();
        let mut missing = active.list.find_missing(&offered);
        missing.retain(|name| !ALWAYS_ALLOWED.contains(&name.as_str()));
        if missing.is_empty() {
            return None;
        }
        let names = missing.join(", ");
        if offered.iter().any(|tool| active.list.names(*tool)) {
            return Some(format!("Tools that it allows and that do not exist here: {names}."));
        }
        tracing::warn!(skill = active.skill, names, "a skill allows only tools that do not exist");
        Some(format!(
            "None of the tools that it allows exists here ({names}), so no tool can be called while \
             it is followed. {TELL_THE_USER}"
        ))
    }

    fn check(
        &self,
        tool: &ToolSpec,
        arguments: &Map<String, Value>,
    ) -> Result<(), (String, NotAllowed)> {
        match (&self.0, tool.offered()) {
            (Some(active), Some(offered)) => {
                let checked = active.list.check(active.resolve_own_tool(offered), arguments);
                checked.map_err(|refused| (active.skill.clone(), refused))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use savoir_model::ToolDefinition;
    use savoir_skill::allowed_tools::split;
    use serde_json::json;

    use super::*;
    use crate::toolset::Origin;

    fn tool(name: &str, origin: Origin) -> ToolSpec {
        let definition = ToolDefinition {
            name: name.to_owned(),
            description: String::new(),
            parameters: json!({}),
        };
        ToolSpec { definition, origin, atomic: false }
    }

    /// Checks a call that was made when `snapshot` was taken, and that runs now.
    fn check(
        allowed_tools: &AllowedTools,
        snapshot: &AllowListSnapshot,
        tool: &ToolSpec,
    ) -> Result<(), NotAllowed> {
        CallGuard::new(allowed_tools, std::slice::from_ref(snapshot), tool, &Map::new()).check()
    }

    fn list(text: &str) -> Option<AllowList> {
        AllowList::new(Some(&split(text)))
    }

    #[test]
    fn only_tools_that_load_skills_are_always_allowed() {
        let allowed_tools = AllowedTools::of("x", list("Read"));
        for (name, is_allowed) in [
            ("use_skill", true),
            ("read_skill_file", true),
            ("search_skills", false),
            ("save_skill", false),
        ] {
            let builtin = tool(name, Origin::Builtin);
            let checked = check(&allowed_tools, &allowed_tools.snapshot(), &builtin);
            assert_eq!(checked.is_ok(), is_allowed, "{name}");
            assert_eq!(allowed_tools.snapshot().offers(&builtin), is_allowed, "{name}");
        }
        let saver = AllowedTools::of("x", list("Read save_skill"));
        assert!(saver.snapshot().offers(&tool("save_skill", Origin::Builtin)));
        // A skill's tool with the name of a built-in tool is not a built-in tool.
        let skill = Origin::Skill { skill: "evil".into(), tool: "use_skill".into() };
        let other = tool("use_skill", skill);
        assert!(check(&allowed_tools, &allowed_tools.snapshot(), &other).is_err());
    }

    #[test]
    fn next_skill_replaces_the_list_and_skill_without_list_clears_it() {
        let allowed_tools = AllowedTools::default();
        let (read, write) = (tool("read_file", Origin::Host), tool("write_file", Origin::Host));
        let may = |tool| check(&allowed_tools, &allowed_tools.snapshot(), tool).is_ok();
        assert!(may(&read) && may(&write));
        allowed_tools.follow("reader", list("Read"));
        assert!(may(&read) && !may(&write));
        assert_eq!(allowed_tools.snapshot().skill(), Some("reader"));
        allowed_tools.follow("writer", list("Write"));
        assert!(!may(&read) && may(&write));
        allowed_tools.follow("free", list(""));
        assert!(may(&read) && may(&write));
    }

    #[test]
    fn doubt_of_one_list_does_not_hide_refusal_of_another() {
        let run = tool("run_command", Origin::Host);
        let arguments = json!({"command": "find . -delete"});
        let arguments = arguments.as_object().unwrap();
        let allowed_tools = AllowedTools::of("finder", list("Bash(find:*)"));
        let snapshots = [allowed_tools.snapshot()];
        let call_guard = CallGuard::new(&allowed_tools, &snapshots, &run, arguments);
        assert!(call_guard.check().is_err());
        assert!(call_guard.find_doubt().unwrap().is_some_and(|doubt| doubt.needs_approval()));
        allowed_tools.follow("reader", list("Read"));
        assert_eq!(call_guard.find_doubt().unwrap_err().code(), "tool-not-allowed");
    }

    #[test]
    fn short_names_match_only_own_tools() {
        let own = Origin::Skill { skill: "git".into(), tool: "status".into() };
        let other = Origin::Skill { skill: "evil".into(), tool: "status".into() };
        let allowed_tools = AllowedTools::of("git", list("status"));
        let may = |tool: ToolSpec| check(&allowed_tools, &allowed_tools.snapshot(), &tool).is_ok();
        assert!(may(tool("git__status", own)));
        assert!(!may(tool("evil__status", other)));
    }

    #[test]
    fn parallel_calls_are_checked_against_both_lists() {
        let allowed_tools = AllowedTools::of("reader", list("Read"));
        let write = tool("write_file", Origin::Host);
        let before = allowed_tools.snapshot();
        // In one reply, the model loads a skill without a list and calls a tool that writes.
        allowed_tools.follow("free", None);
        let refused = check(&allowed_tools, &before, &write).unwrap_err();
        assert_eq!(refused.code(), "tool-not-allowed");
        // A tool that was allowed when the call was made is refused if a new list forbids it.
        let before = allowed_tools.snapshot();
        allowed_tools.follow("reader", list("Read"));
        assert!(check(&allowed_tools, &before, &write).is_err());
    }
}
