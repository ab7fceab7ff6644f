//! A skill that is carried out apart: by an agent with a history of its own. It may call what the
//! list of the skill and the list of its caller both allow, from beginning to end: a skill cannot
//! start another one to do what it may not do itself. The caller reads a short result and is not
//! restricted by it.
//!
//! Such an agent carries out nothing apart itself, so no skill can call itself without end.

use std::sync::Arc;

use savoir_flow::event::Thought;
use savoir_model::ToolCall;
use savoir_skill::allow_list::AllowList;
use serde_json::json;
use tokio::time::Instant;

use super::{
    Conversation, Ended, EventOutput, TurnRun, builtin_tools,
    calls::{cut, marked, shown_name},
    last_words,
};
use crate::{
    allowed_tools::{AllowListSnapshot, AllowedTools},
    builtin_tools::SkillInstructions,
    library::Opened,
    toolset::ToolAnswer,
};

/// Bytes of the task that is passed on.
const TASK_BYTES: usize = 16 * 1024;

impl TurnRun<'_> {
    /// Carries out a skill apart, and gives what the model reads of it.
    pub(super) async fn run_forked_skill(
        &self,
        call: &ToolCall,
        opened: &Opened,
        task: &str,
        snapshots: &[AllowListSnapshot],
    ) -> String {
        let name = opened.skill.name.as_str();
        let begun = Instant::now();
        self.tell(Thought::new("tool", "start").with("skill_name", name), call, None).await;
        let answer = self.result_of(opened, task, snapshots).await;
        self.tell_end(call, &answer, begun.elapsed()).await;
        let origin = format!("skill `{}`", shown_name(name));
        marked(&origin, &answer, self.agent.limits.answer_bytes)
    }

    async fn result_of(
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
        let brought =
            skill_tools.as_ref().map(|tools| tools.offer_skill(skill)).unwrap_or_default();
        let run = TurnRun {
            agent: self.agent,
            user_message: task,
            builtin_tools: builtin_tools(self.agent, &allowed_tools, skill_tools.as_ref()),
            ceilings: snapshots.iter().cloned().chain([allowed_tools.snapshot()]).collect(),
            is_fork: true,
            allowed_tools,
            skill_tools,
            meter: Arc::new(self.meter.part(self.agent.limits.apart_steps)),
            events: EventOutput {
                out: self.events.out.clone(),
                forked_skill: Some(skill.name.as_str().into()),
            },
        };
        let told = SkillInstructions::of(opened, resources);
        let told = SkillInstructions { tools: brought, ..told };
        let mut conversation = Conversation::default();
        conversation.hear(&order(&told, task));
        let Ok(ended) = run.run_to_end(&mut conversation).await else {
            return ToolAnswer::failed("stopped", "nobody waits for it any more");
        };
        let words = last_words(conversation.messages());
        self.result(&skill.name, &ended, words, run.meter.steps())
    }

    fn result(&self, skill: &str, ended: &Ended, words: &str, steps: u32) -> ToolAnswer {
        let result = cut(words, self.agent.limits.apart_bytes);
        let (ended, failure) = match ended {
            Ended::Answered => ("answered".to_owned(), None),
            Ended::Limit(limit) => (limit.to_string(), Some(limit.code())),
            Ended::Failed(error) => (error.public_message(), Some("skill-failed")),
        };
        let data = json!({
            "name": skill, "context_fork": true, "result": result, "ended": ended, "steps": steps,
        });
        ToolAnswer { failure: failure.map(str::to_owned), ..ToolAnswer::data(data) }
    }
}

/// What the agent of a skill is told to do.
fn order(told: &SkillInstructions, task: &str) -> String {
    let (name, task) = (shown_name(&told.name), cut(task, TASK_BYTES));
    let told = json!({
        "name": told.name, "description": told.description, "instructions": told.instructions,
        "resources": told.resources, "tools": told.tools,
    });
    format!(
        "Carry out the skill `{name}`.\n\nThe task:\n{task}\n\n[origin: skill `{name}`]\n{told}"
    )
}
