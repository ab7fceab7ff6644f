//! Answers chat messages with an agent that can use skills and the knowledge base of the
//! conversation. If no user can be asked for approval, tools that need approval do not run.

use std::sync::Arc;

use futures::future::BoxFuture;
use savoir_flow::{
    event::{Done, Emitter, Event, ListenerDisconnected},
    services::Services,
};
use savoir_knowledge::limits::{DEFAULT_PASSAGES, MAX_QUERY_CHARS};
use savoir_skill::dialect::agent_flow::parse_at_skill;
use serde_json::{Map, Value, json};

use super::{ChatService, ChatTurn, MAX_MESSAGES, TEMPERATURE, to_model_message};
use crate::{
    allowed_tools::CallGuard,
    library::Library,
    skill_tools::SkillTools,
    toolset::{Origin, ToolAnswer, ToolSpec, Toolset},
    turn::{Agent, Conversation, ForkMode, TurnLimits},
};

impl ChatService {
    /// Like [`answer`](Self::answer), but with an agent that can load the skills of a library.
    /// Their tools are available if `skill_tools` is set.
    pub async fn answer_with_tools(
        &self,
        turn: &ChatTurn,
        library: Arc<dyn Library>,
        skill_tools: Option<SkillTools>,
        out: &Emitter,
    ) {
        let (out, transcript) = out.with_transcript();
        let ended = match parse_at_skill(&turn.message) {
            (Some(name), text) => self.call_skill(turn, name, text, &out).await,
            (None, _) => self.run_agent(turn, self.agent(turn, library, skill_tools), &out).await,
        };
        self.end(turn, &transcript.text(), ended, &out).await;
    }

    async fn run_agent(
        &self,
        turn: &ChatTurn,
        agent: Agent,
        out: &Emitter,
    ) -> Result<Done, ListenerDisconnected> {
        let messages = self.database.sessions().messages(&turn.session, Some(MAX_MESSAGES)).await;
        let mut messages = match messages {
            Ok(messages) => messages,
            Err(error) => {
                tracing::error!(session = turn.session, %error, "a conversation cannot be read");
                let message = "Chat generation failed".to_owned();
                out.emit(Event::error(message.clone())).await?;
                return Ok(Done::Error { message });
            }
        };
        // The turn adds the user's message itself, and this message is already stored.
        if messages.last().is_some_and(|last| last.content == turn.message) {
            messages.pop();
        }
        let mut conversation = Conversation::new(messages.iter().map(to_model_message).collect());
        Ok(agent.run_turn_reporting_errors(&mut conversation, &turn.message, out).await?.done())
    }

    fn agent(
        &self,
        turn: &ChatTurn,
        library: Arc<dyn Library>,
        skill_tools: Option<SkillTools>,
    ) -> Agent {
        let search = turn.kb_id.as_ref().map(|base| -> Arc<dyn Toolset> {
            let (services, base) = (self.services.clone(), base.clone());
            Arc::new(KnowledgeSearch { services, base, user: turn.user })
        });
        Agent {
            services: self.services.clone(),
            model: turn.model.clone(),
            temperature: Some(TEMPERATURE),
            max_tokens: None,
            instructions: None,
            user: Some(turn.user),
            library,
            skill_tools: skill_tools.map(Arc::new),
            tools: search.into_iter().collect(),
            limits: TurnLimits {
                time: self.services.limits.answer + turn.extra_time,
                ..TurnLimits::default()
            },
            forks: ForkMode::SeparateAgent,
        }
    }
}

/// Searches the knowledge base of a conversation.
#[derive(Debug)]
struct KnowledgeSearch {
    services: Services,
    base: String,
    user: i64,
}

impl KnowledgeSearch {
    async fn search(&self, given: &Map<String, Value>) -> ToolAnswer {
        let Some(query) = given.get("query").and_then(Value::as_str) else {
            let message = "the argument `query` is missing or not a string";
            return ToolAnswer::failed("missing-argument", message);
        };
        let Some(knowledge) = &self.services.knowledge else {
            return ToolAnswer::failed("search-failed", "there is no knowledge here");
        };
        let query: String = query.chars().take(MAX_QUERY_CHARS).collect();
        match knowledge.search(&self.base, Some(self.user), &query, DEFAULT_PASSAGES).await {
            Ok(passages) => {
                let found = passages.iter().map(|passage| {
                    json!({"text": passage.text, "doc_id": passage.doc_id, "score": passage.score})
                });
                ToolAnswer::data(json!({"passages": found.collect::<Vec<_>>()}))
            }
            Err(error) => {
                tracing::warn!(knowledge_base = self.base, %error, "a search failed");
                ToolAnswer::failed("search-failed", "the search failed; answer without it")
            }
        }
    }
}

impl Toolset for KnowledgeSearch {
    fn tools(&self) -> Vec<ToolSpec> {
        let description = "Find passages in the documents of this conversation.";
        let query = json!({"query": {"type": "string", "description": "What to look for"}});
        vec![ToolSpec::new("search_knowledge", description, query, &["query"], Origin::Host)]
    }

    fn call<'a>(
        &'a self,
        _: &'a str,
        arguments: &'a Map<String, Value>,
        _: CallGuard<'a>,
    ) -> BoxFuture<'a, ToolAnswer> {
        Box::pin(self.search(arguments))
    }
}
