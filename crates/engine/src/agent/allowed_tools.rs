//! The fence around all tools of a turn.
//!
//! What a skill allows holds from the call that loaded it to the end of the turn, or until another
//! skill is loaded. It holds for every tool set, whatever else is decided about a call: approvals and
//! the sandbox come after it. Only the machinery of skills is outside.

use std::sync::{Mutex, PoisonError};

use savoir_skill::allow_list::{AllowList, NotAllowed, Offered};
use serde_json::{Map, Value};

use super::toolset::ToolSpec;

/// What the skills of a turn leave a model.
#[derive(Debug, Default)]
pub struct AllowedTools {
    active: Mutex<Option<Active>>,
}

/// What holds at one moment. Calls that a model makes at once are all held to the moment before them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moment(Option<Active>);

/// What one call is held to, from when it is made until it is carried out. A person may be asked in
/// between, and another skill be loaded meanwhile: whoever asked looks here once more.
#[derive(Clone, Copy, Debug)]
pub struct Fence<'a>(Option<Held<'a>>);

#[derive(Clone, Copy, Debug)]
struct Held<'a> {
    allowance: &'a AllowedTools,
    moments: &'a [Moment],
    tool: &'a ToolSpec,
    arguments: &'a Map<String, Value>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Active {
    skill: String,
    list: AllowList,
}

impl AllowedTools {
    /// An allowance that begins with what a skill allows, for whoever carries out that skill alone.
    pub fn of(skill: &str, list: Option<AllowList>) -> Self {
        let allowance = Self::default();
        allowance.follow(skill, list);
        allowance
    }

    /// A skill is followed from here on: its list takes the place of the one before, and one that has
    /// none restricts nothing.
    pub fn follow(&self, skill: &str, list: Option<AllowList>) {
        let active = list.map(|list| Active { skill: skill.to_owned(), list });
        *self.active.lock().unwrap_or_else(PoisonError::into_inner) = active;
    }

    /// What holds now.
    pub fn now(&self) -> Moment {
        Moment(self.active.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }
}

impl<'a> Fence<'a> {
    /// The fence around a call that was made when each of some moments held.
    pub fn around(
        allowance: &'a AllowedTools,
        moments: &'a [Moment],
        tool: &'a ToolSpec,
        arguments: &'a Map<String, Value>,
    ) -> Self {
        Self(Some(Held { allowance, moments, tool, arguments }))
    }

    /// No fence: for what no list takes away.
    pub fn open() -> Self {
        Self(None)
    }

    /// Whether the call is let through now, without a question.
    pub fn check(&self) -> Result<(), NotAllowed> {
        let Some(Held { allowance, moments, tool, arguments }) = self.0 else { return Ok(()) };
        let now = allowance.now();
        let mut doubt = Ok(());
        for moment in moments.iter().chain([&now]) {
            let Err((skill, refused)) = moment.check(tool, arguments) else { continue };
            tracing::warn!(skill, code = refused.code(), %refused, "a skill does not allow a call");
            if !refused.is_in_doubt() {
                return Err(refused);
            }
            doubt = Err(refused);
        }
        doubt
    }

    /// Whether the call is let through now if a person agrees to what is in doubt.
    pub fn doubt(&self) -> Result<Option<NotAllowed>, NotAllowed> {
        match self.check() {
            Ok(()) => Ok(None),
            Err(refused) if refused.is_in_doubt() => Ok(Some(refused)),
            Err(refused) => Err(refused),
        }
    }
}

impl Active {
    /// A skill calls its own tools by their short names.
    fn seen<'a>(&self, offered: Offered<'a>) -> Offered<'a> {
        match offered {
            Offered::Skill { skill, tool, .. } if skill == self.skill => {
                Offered::Skill { skill, tool, called: tool }
            }
            other => other,
        }
    }
}

impl Moment {
    /// The skill that restricts what can be called.
    pub fn skill(&self) -> Option<&str> {
        self.0.as_ref().map(|active| active.skill.as_str())
    }

    /// Whether some call of a tool would be let through.
    pub fn offers(&self, tool: &ToolSpec) -> bool {
        match (&self.0, tool.offered()) {
            (Some(active), Some(offered)) => active.list.names(active.seen(offered)),
            _ => true,
        }
    }

    fn check(
        &self,
        tool: &ToolSpec,
        arguments: &Map<String, Value>,
    ) -> Result<(), (String, NotAllowed)> {
        match (&self.0, tool.offered()) {
            (Some(active), Some(offered)) => {
                let checked = active.list.check(active.seen(offered), arguments);
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
    use crate::agent::toolset::Origin;

    fn tool(name: &str, origin: Origin) -> ToolSpec {
        let definition = ToolDefinition {
            name: name.to_owned(),
            description: String::new(),
            parameters: json!({}),
        };
        ToolSpec { definition, origin, atomic: false }
    }

    /// A call that was made at a moment, and is carried out now.
    fn check(allowance: &AllowedTools, moment: &Moment, tool: &ToolSpec) -> Result<(), NotAllowed> {
        Fence::around(allowance, std::slice::from_ref(moment), tool, &Map::new()).check()
    }

    fn list(text: &str) -> Option<AllowList> {
        AllowList::new(Some(&split(text)))
    }

    #[test]
    fn the_machinery_always_works() {
        let allowance = AllowedTools::of("x", list("Read"));
        let machinery = tool("use_skill", Origin::BuiltinTools);
        assert!(check(&allowance, &allowance.now(), &machinery).is_ok());
        assert!(allowance.now().offers(&machinery));
        // A tool of a skill that calls itself like that is no machinery.
        let skill = Origin::Skill { skill: "evil".into(), tool: "use_skill".into() };
        let other = tool("use_skill", skill);
        assert!(check(&allowance, &allowance.now(), &other).is_err());
    }

    #[test]
    fn the_next_skill_replaces_the_list_and_one_without_clears_it() {
        let allowance = AllowedTools::default();
        let (read, write) = (tool("read_file", Origin::Host), tool("write_file", Origin::Host));
        let may = |tool| check(&allowance, &allowance.now(), tool).is_ok();
        assert!(may(&read) && may(&write));
        allowance.follow("reader", list("Read"));
        assert!(may(&read) && !may(&write));
        assert_eq!(allowance.now().skill(), Some("reader"));
        allowance.follow("writer", list("Write"));
        assert!(!may(&read) && may(&write));
        allowance.follow("free", list(""));
        assert!(may(&read) && may(&write));
    }

    #[test]
    fn a_doubt_of_one_list_does_not_hide_the_refusal_of_another() {
        let run = tool("run_command", Origin::Host);
        let arguments = json!({"command": "find . -delete"});
        let arguments = arguments.as_object().unwrap();
        let allowance = AllowedTools::of("finder", list("Bash(find:*)"));
        let moments = [allowance.now()];
        let fence = Fence::around(&allowance, &moments, &run, arguments);
        assert!(fence.check().is_err());
        assert!(fence.doubt().unwrap().is_some_and(|doubt| doubt.is_in_doubt()));
        allowance.follow("reader", list("Read"));
        assert_eq!(fence.doubt().unwrap_err().code(), "tool-not-allowed");
    }

    #[test]
    fn a_skill_names_its_own_tools_by_their_short_names_and_no_others() {
        let own = Origin::Skill { skill: "git".into(), tool: "status".into() };
        let other = Origin::Skill { skill: "evil".into(), tool: "status".into() };
        let allowance = AllowedTools::of("git", list("status"));
        let may = |tool: ToolSpec| check(&allowance, &allowance.now(), &tool).is_ok();
        assert!(may(tool("git__status", own)));
        assert!(!may(tool("evil__status", other)));
    }

    #[test]
    fn calls_at_once_are_held_to_both_moments() {
        let allowance = AllowedTools::of("reader", list("Read"));
        let write = tool("write_file", Origin::Host);
        let before = allowance.now();
        // A model loads a skill without a list and writes at the same time.
        allowance.follow("free", None);
        let refused = check(&allowance, &before, &write).unwrap_err();
        assert_eq!(refused.code(), "tool-not-allowed");
        // The other way round: what was free is not free any more.
        let before = allowance.now();
        allowance.follow("reader", list("Read"));
        assert!(check(&allowance, &before, &write).is_err());
    }
}
