//! Answers messages of stored conversations, with a model or with a skill called as `@name`.

mod tools;
mod workflow;

use std::{sync::Arc, time::Duration};

use savoir_flow::{
    event::{Done, Emitter, Event, ListenerDisconnected, Thought},
    prompt::{self, PromptRun},
    retrieval::{Search, system_message},
    services::{Question, Services},
    skill_lookup::SkillLookup,
};
use savoir_knowledge::{Passage, limits::CONTEXT_TOKENS};
use savoir_model::Message;
use savoir_skill::dialect::agent_flow::parse_at_skill;
use savoir_store::{Database, SessionMessage, Speaker, StoreError};

const TEMPERATURE: f64 = 0.7;

/// Tokens of the conversation that are always sent, even if the other parts of the request are
/// long.
const MIN_HISTORY_TOKENS: usize = 256;

/// Number of newest messages that are always sent.
const MIN_MESSAGES: usize = 2;

/// Number of newest messages that are read from the database. More hardly ever fit.
const MAX_MESSAGES: u32 = 200;

/// Answers messages of stored conversations.
#[derive(Clone, Debug)]
pub struct ChatService {
    /// Models and knowledge.
    pub services: Services,
    /// Skills that can be called by name.
    pub skill_lookup: Arc<dyn SkillLookup>,
    /// Stores the conversations.
    pub database: Database,
}

/// One message of a user, to be answered.
#[derive(Clone, Debug)]
pub struct ChatTurn {
    /// The conversation.
    pub session: String,
    pub message: String,
    /// A knowledge base to search.
    pub kb_id: Option<String>,
    /// `provider:model` or a model's name; the default if there is none.
    pub model: Option<String>,
    /// The user who sends the message.
    pub user: i64,
    /// How much longer the answer may take, because its user may have to answer questions.
    pub extra_time: Duration,
}

impl ChatService {
    /// Stores a user's message in its conversation, before it is answered.
    pub async fn store_message(
        &self,
        turn: &ChatTurn,
        workflow_id: Option<&str>,
    ) -> Result<(), StoreError> {
        let sessions = self.database.sessions();
        sessions.set_context(&turn.session, turn.kb_id.as_deref(), workflow_id).await?;
        sessions.append(&turn.session, Speaker::User, &turn.message).await
    }

    /// Answers a message and stores the answer, even if the listener disconnects.
    pub async fn answer(&self, turn: &ChatTurn, out: &Emitter) {
        let (out, transcript) = out.with_transcript();
        let ended = match parse_at_skill(&turn.message) {
            (Some(name), text) => self.call_skill(turn, name, text, &out).await,
            (None, _) => self.answer_with_model(turn, &out).await,
        };
        self.end(turn, &transcript.text(), ended, &out).await;
    }

    /// Stores the answer before the last event, so that a client that reads the conversation after
    /// this event finds it. If the answer cannot be stored, the event says so.
    async fn end(
        &self,
        turn: &ChatTurn,
        text: &str,
        ended: Result<Done, ListenerDisconnected>,
        out: &Emitter,
    ) {
        let stored = self.store_answer(turn, text, ended.is_err()).await;
        if let Err(error) = &stored {
            tracing::error!(session = turn.session, %error, "an answer was not stored");
        }
        let Ok(mut done) = ended else { return };
        if stored.is_err() {
            let message = "The answer could not be stored".to_owned();
            done = Done::Error { message: message.clone() };
            // Ignored here and below: the client may have disconnected.
            let _ = out.emit(Event::error(message)).await;
        }
        let _ = out.emit(Event::Done(done)).await;
    }

    async fn store_answer(
        &self,
        turn: &ChatTurn,
        text: &str,
        is_stopped: bool,
    ) -> Result<(), StoreError> {
        let sessions = self.database.sessions();
        if text.is_empty() {
            Ok(())
        } else if is_stopped {
            sessions.append_stopped(&turn.session, text).await
        } else {
            sessions.append(&turn.session, Speaker::Assistant, text).await
        }
    }

    /// Calls a skill, emits all events but the last one, and returns the last one.
    async fn call_skill(
        &self,
        turn: &ChatTurn,
        name: &str,
        text: &str,
        out: &Emitter,
    ) -> Result<Done, ListenerDisconnected> {
        let thought = |status| Thought::new("skill", status);
        out.emit(thought("start").with("skill_name", name)).await?;
        let skill = match self.skill_lookup.load(name).await {
            Ok(skill) => skill,
            Err(error) => {
                out.emit(thought("error").with("error", error.message.as_str())).await?;
                // A disabled skill exists: the user must know what to do.
                let message = if error.message.contains("is disabled") {
                    error.message
                } else {
                    format!("Skill '{name}' not found")
                };
                return Ok(Done::Error { message });
            }
        };
        let description = skill.description.as_str();
        let loaded = thought("loaded").with("skill_name", name).with("description", description);
        out.emit(loaded).await?;
        let run = PromptRun {
            skill: &skill,
            inputs: &prompt::inputs_of_message(&skill, text),
            directory: None,
            model: turn.model.as_deref(),
            user: Some(turn.user),
        };
        Ok(prompt::steps(&self.services, run, out).await?.done())
    }

    async fn answer_with_model(
        &self,
        turn: &ChatTurn,
        out: &Emitter,
    ) -> Result<Done, ListenerDisconnected> {
        let passages = match &turn.kb_id {
            Some(base) => {
                let search = Search { base, query: &turn.message, user: Some(turn.user) };
                let thought = |status| search.thought(status).with("query", search.query);
                search.search_and_emit(&self.services, thought, out).await?
            }
            None => Vec::new(),
        };
        let limit = self.services.limits.answer;
        let failure = match tokio::time::timeout(limit, self.ask_model(turn, &passages, out)).await
        {
            Ok(failure) => failure?,
            Err(_) => Some(format!("LLM response timed out ({}s)", limit.as_secs())),
        };
        match failure {
            None => Ok(Done::Success { message: "Chat completed successfully" }),
            Some(message) => {
                out.emit(Event::error(message.clone())).await?;
                Ok(Done::Error { message })
            }
        }
    }

    async fn ask_model(
        &self,
        turn: &ChatTurn,
        passages: &[Passage],
        out: &Emitter,
    ) -> Result<Option<String>, ListenerDisconnected> {
        let failed = || Ok(Some("Chat generation failed".to_owned()));
        let messages = self.database.sessions().messages(&turn.session, Some(MAX_MESSAGES)).await;
        let messages = match messages {
            Ok(messages) => messages,
            Err(error) => {
                tracing::error!(session = turn.session, %error, "a conversation cannot be read");
                return failed();
            }
        };
        let system = system_message(passages);
        let mut request_messages = vec![Message::System(system.clone())];
        request_messages.extend(newest_that_fit(&messages, &system).iter().map(to_model_message));
        let question = Question {
            model: turn.model.as_deref(),
            messages: request_messages,
            temperature: Some(TEMPERATURE),
            max_tokens: None,
            user: Some(turn.user),
            skill: None,
        };
        let answer = self.services.ask(question, out).await?;
        match answer.error {
            None => Ok(None),
            Some(error) => {
                let help = error.help();
                tracing::warn!(session = turn.session, %error, help, "a model failed");
                failed()
            }
        }
    }
}

/// The newest messages that fit into the token budget.
fn newest_that_fit<'a>(messages: &'a [SessionMessage], system: &str) -> &'a [SessionMessage] {
    let budget = (CONTEXT_TOKENS * 7 / 10).saturating_sub(tokens(system)).max(MIN_HISTORY_TOKENS);
    let mut used = 0;
    let fitting = messages.iter().rev().take_while(|message| {
        used += tokens(&message.content);
        used <= budget
    });
    let count = fitting.count().max(MIN_MESSAGES).min(messages.len());
    &messages[messages.len() - count..]
}

fn tokens(text: &str) -> usize {
    text.chars().count().div_ceil(4).max(1)
}

fn to_model_message(message: &SessionMessage) -> Message {
    match message.speaker {
        Speaker::User => Message::User(message.content.clone()),
        Speaker::Assistant => {
            Message::Assistant { text: message.content.clone(), tool_calls: Vec::new() }
        }
    }
}

#[cfg(test)]
mod tests {
    use savoir_store::Timestamp;

    use super::*;

    fn messages(lengths: &[usize]) -> Vec<SessionMessage> {
        let message = |length: &usize| SessionMessage {
            speaker: Speaker::User,
            content: "x".repeat(*length),
            at: Timestamp::now(),
            is_stopped: false,
        };
        lengths.iter().map(message).collect()
    }

    #[test]
    fn newest_messages_that_fit_and_always_the_last_two() {
        assert_eq!(newest_that_fit(&messages(&[4, 4, 4]), "").len(), 3);
        assert_eq!(newest_that_fit(&messages(&[4, 100_000, 100_000]), "").len(), 2);
        assert_eq!(newest_that_fit(&messages(&[100_000]), "").len(), 1);
        assert_eq!(newest_that_fit(&messages(&[]), "").len(), 0);
        let budget = CONTEXT_TOKENS * 7 / 10 - 1;
        assert_eq!(newest_that_fit(&messages(&[4, 4 * (budget - 2), 4, 4]), "x").len(), 3);
        let long = "x".repeat(4 * CONTEXT_TOKENS);
        assert_eq!(newest_that_fit(&messages(&[4, 4, 4 * 254, 4]), &long).len(), 3);
    }
}
