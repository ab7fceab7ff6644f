//! Answers LLM nodes of workflows with an agent that can use skills. No user can be asked for
//! approval here, so tools that need approval do not run.

use std::sync::Arc;

use futures::future::BoxFuture;
use savoir_flow::{
    event::{Emitter, ListenerDisconnected},
    services::{Answer, Question, Services},
    workflow::NodeAgent,
};
use savoir_model::Message;

use crate::{
    library::Library,
    skill_tools::SkillTools,
    turn::{Agent, Conversation, ForkMode, TurnEnd, TurnLimits, last_assistant_text},
};

/// The skills and tools of the user who runs a workflow.
#[derive(Debug)]
pub struct WorkflowAgent {
    /// The models, and the database for usage.
    pub services: Services,
    /// The skills that the model can load.
    pub library: Arc<dyn Library>,
    /// Runs the tools of skills, if that is allowed.
    pub skill_tools: Option<SkillTools>,
}

impl WorkflowAgent {
    async fn answer(
        &self,
        question: Question<'_>,
        out: &Emitter,
    ) -> Result<Answer, ListenerDisconnected> {
        let Question { model, mut messages, temperature, max_tokens, user, skill } = question;
        let instructions = match messages.first() {
            Some(Message::System(text)) => Some(text.clone()),
            _ => None,
        };
        let message = match messages.pop() {
            Some(Message::User(text)) => text,
            _ => String::new(),
        };
        messages.retain(|message| !matches!(message, Message::System(_)));
        let agent = Agent {
            services: self.services.clone(),
            model: model.map(str::to_owned),
            temperature,
            max_tokens,
            instructions,
            user,
            library: Arc::clone(&self.library),
            // Each node has its own set of loaded skills.
            skill_tools: self.skill_tools.as_ref().map(|tools| Arc::new(tools.without_skills())),
            tools: Vec::new(),
            limits: TurnLimits { time: self.services.limits.workflow, ..TurnLimits::default() },
            // A resumed run could not restore the state of a separate agent.
            forks: ForkMode::Inline,
        };
        let mut conversation = Conversation::new(messages);
        let ended = agent.run_turn(&mut conversation, &message, skill, out).await?;
        let text = last_assistant_text(conversation.messages()).to_owned();
        let error = match ended {
            TurnEnd::Failed(error) => Some(error),
            // The text says which limit was reached.
            TurnEnd::Answered | TurnEnd::Limit(_) => None,
        };
        Ok(Answer { text, error })
    }
}

impl NodeAgent for WorkflowAgent {
    fn ask<'a>(
        &'a self,
        question: Question<'a>,
        out: &'a Emitter,
    ) -> BoxFuture<'a, Result<Answer, ListenerDisconnected>> {
        Box::pin(self.answer(question, out))
    }
}
