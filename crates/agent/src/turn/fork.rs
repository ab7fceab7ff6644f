//! Runs a skill in a fork: a separate agent with its own history. The fork may call only tools that
//! both the skill and its caller allow, so a skill cannot start another one to bypass its own
//! restrictions. The caller receives a short result and keeps its own restrictions.
//!
//! A fork cannot start further forks, so no skill can call itself endlessly.

use std::sync::Arc;

use savoir_flow::event::Thought;
use savoir_model::ToolCall;
use savoir_skill::allow_list::AllowList;
use serde_json::json;
use tokio::time::Instant;

use super::{
    Conversation, EventOutput, TurnEnd, TurnRun, builtin_tools,
    calls::{cut_text, printable_name, with_origin},
    last_assistant_text,
};
use crate::{
    allowed_tools::{AllowListSnapshot, AllowedTools},
    builtin_tools::{InlineForks, SkillInstructions},
    library::Opened,
    toolset::ToolAnswer,
};

/// Maximum bytes of the task that is passed to a fork.
const MAX_TASK_BYTES: usize = 16 * 1024;

impl TurnRun<'_> {
    /// Runs a skill in a fork and returns the text for the model.
    pub(super) async fn run_forked_skill(
        &self,
        call: &ToolCall,
        opened: &Opened,
        task: &str,
        snapshots: &[AllowListSnapshot],
    ) -> String {
        let name = opened.skill.name.as_str();
        let started = Instant::now();
        self.report(Thought::new("tool", "start").with("skill_name", name), call, None).await;
        let answer = self.run_fork(opened, task, snapshots).await;
        self.report_end(call, &answer, started.elapsed()).await;
        let origin = format!("skill `{}`", printable_name(name));
        with_origin(&origin, &answer, self.agent.limits.answer_bytes)
    }

    async fn run_fork(
        &self,
        opened: &Opened,
        task: &str,
        snapshots: &[AllowListSnapshot],
    ) -> ToolAnswer {
        let skill = &opened.skill;
        let resources = match self.agent.library.resources(&skill.name).await {
            Ok(resources) => resources,
            Err(error) => return ToolAnswer::failed(error.code(), error),
        };
        self.agent.library.used(&skill.name).await;
        let list = AllowList::of(&skill.policy);
        let allowed_tools = Arc::new(AllowedTools::of(&skill.name, list));
        let skill_tools = self.skill_tools.as_ref().map(|tools| Arc::new(tools.without_skills()));
        let offered_tools =
            skill_tools.as_ref().map(|tools| tools.offer_skill(skill)).unwrap_or_default();
        let run = TurnRun {
            agent: self.agent,
            user_message: task,
            builtin_tools: builtin_tools(
                self.agent,
                &allowed_tools,
                skill_tools.as_ref(),
                Some(InlineForks::InFork),
            ),
            outer_allow_lists: snapshots
                .iter()
                .cloned()
                .chain([allowed_tools.snapshot()])
                .collect(),
            is_fork: true,
            allowed_tools,
            skill_tools,
            meter: Arc::new(self.meter.child_meter(self.agent.limits.apart_steps)),
            events: EventOutput {
                out: self.events.out.clone(),
                forked_skill: Some(skill.name.as_str().into()),
            },
        };
        let instructions = SkillInstructions::of(opened, resources);
        let note = run.missing_tools_note();
        let instructions = SkillInstructions { tools: offered_tools, note, ..instructions };
        let mut conversation = Conversation::default();
        conversation.push_user(&fork_instructions(&instructions, task));
        let Ok(ended) = run.run_to_end(&mut conversation).await else {
            return ToolAnswer::failed("stopped", "the caller stopped waiting");
        };
        let words = last_assistant_text(conversation.messages());
        self.result(&skill.name, &ended, words, run.meter.steps())
    }

    fn result(&self, skill: &str, ended: &TurnEnd, words: &str, steps: u32) -> ToolAnswer {
        let result = cut_text(words, self.agent.limits.apart_bytes);
        let (ended, failure) = match ended {
            TurnEnd::Answered => ("answered".to_owned(), None),
            TurnEnd::Limit(limit) => (limit.to_string(), Some(limit.code())),
            TurnEnd::Failed(error) => (error.public_message(), Some("skill-failed")),
        };
        let data = json!({
            "name": skill, "context_fork": true, "result": result, "ended": ended, "steps": steps,
        });
        ToolAnswer { failure: failure.map(str::to_owned), ..ToolAnswer::data(data) }
    }
}

/// Returns the first message of a fork.
fn fork_instructions(instructions: &SkillInstructions, task: &str) -> String {
    let (name, task) = (printable_name(&instructions.name), cut_text(task, MAX_TASK_BYTES));
    let instructions = json!({
        "name": instructions.name, "description": instructions.description, "instructions": instructions.instructions,
        "resources": instructions.resources, "tools": instructions.tools,
        "note": instructions.note,
    });
    format!(
        "Carry out the skill `{name}`.\n\nThe task:\n{task}\n\n[origin: skill `{name}`]\n{instructions}"
    )
}
