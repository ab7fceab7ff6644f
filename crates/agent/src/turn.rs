//! One turn of an agent: a person says something, and a model answers, with as many calls of tools in
//! between as it needs and its limits allow.
//!
//! - [`Agent`] is what stays the same from turn to turn, [`Conversation`] what was said.
//! - `offer` is what can be called at a moment, `ask` one question to the model, `calls` what comes of
//!   the calls of one answer, `fork` a skill that is carried out apart.
//! - [`TurnLimits`] end every turn, and the conversation can go on after each of them.
//!
//! What a skill allows is held here, for every tool set and in every mode: see
//! [`allowed_tools`](super::allowed_tools).

mod ask;
mod calls;
mod conversation;
mod fork;
mod limits;
mod offer;
mod system;

use std::sync::Arc;

use futures::future::BoxFuture;
use savoir_model::{Message, ModelError};

pub use self::{
    conversation::Conversation,
    limits::{Limit, TurnLimits},
};
use self::{limits::TurnMeter, offer::Offer};
use super::{
    allowed_tools::{AllowListSnapshot, AllowedTools},
    builtin_tools::BuiltinTools,
    library::Library,
    skill_tools::SkillTools,
    toolset::Toolset,
};
use savoir_engine::{
    event::{Done, Emitter, Event, Gone, Thought},
    services::Services,
};

/// A model with tools and skills.
#[derive(Clone, Debug)]
pub struct Agent {
    /// Who answers.
    pub services: Services,
    /// `provider:model` or a model's name; the default if there is none.
    pub model: Option<String>,
    /// Sampling temperature; the provider's own if there is none.
    pub temperature: Option<f64>,
    /// Whose usage it is.
    pub user: Option<i64>,
    /// Where it finds skills.
    pub library: Arc<dyn Library>,
    /// What runs the tools of skills that are in use.
    pub skill_tools: Option<Arc<SkillTools>>,
    /// All other tools.
    pub tools: Vec<Arc<dyn Toolset>>,
    /// What ends a turn.
    pub limits: TurnLimits,
    /// What becomes of skills that are meant to be carried out apart.
    pub forks: Forks,
}

/// What becomes of skills with `context: fork`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Forks {
    /// An agent of their own carries them out.
    #[default]
    SeparateAgent,
    /// They are told like all others, with a sentence about it: for runs that nobody trusts.
    Inline,
}

/// How a turn ended.
#[derive(Debug)]
pub enum Ended {
    /// The model had no more to say.
    Answered,
    /// A limit was reached.
    Limit(Limit),
    /// The model failed.
    Failed(ModelError),
}

impl Ended {
    /// The last event of a run that ended like this.
    pub fn done(&self) -> Done {
        match self {
            Self::Answered => Done::Success { message: "The turn is complete" },
            Self::Limit(limit) => Done::Error { message: limit.to_string() },
            Self::Failed(error) => Done::Error { message: error.public_message() },
        }
    }
}

impl Agent {
    /// Answers, and tells everything but the last event. Whatever happens, also when this future is
    /// dropped, the conversation can go on.
    pub async fn turn(
        &self,
        conversation: &mut Conversation,
        message: &str,
        out: &Emitter,
    ) -> Result<Ended, Gone> {
        conversation.hear(message);
        let run = TurnRun::new(self, message, EventOutput { out: out.clone(), forked_skill: None });
        let ended = run.run_to_end(conversation).await?;
        let failure = match &ended {
            Ended::Answered => return Ok(ended),
            Ended::Limit(limit) => limit.to_string(),
            Ended::Failed(error) => {
                tracing::warn!(%error, help = error.help(), "a model failed");
                error.public_message()
            }
        };
        out.emit(Event::Error { message: failure }).await?;
        Ok(ended)
    }

    /// As [`turn`](Self::turn), with the last event.
    pub async fn answer(
        &self,
        conversation: &mut Conversation,
        message: &str,
        out: &Emitter,
    ) -> Result<Ended, Gone> {
        let ended = self.turn(conversation, message, out).await?;
        out.emit(Event::Done(ended.done())).await?;
        Ok(ended)
    }
}

/// A turn, or a part of one that is carried out apart.
struct TurnRun<'a> {
    agent: &'a Agent,
    /// What the person wants.
    user_message: &'a str,
    /// A fresh one for each turn: what a skill allowed is over with the turn.
    allowed_tools: Arc<AllowedTools>,
    /// What holds from beginning to end, whichever skill is loaded: the list of a skill that is carried
    /// out apart, and those of its caller.
    ceilings: Vec<AllowListSnapshot>,
    is_fork: bool,
    builtin_tools: Arc<BuiltinTools>,
    skill_tools: Option<Arc<SkillTools>>,
    meter: Arc<TurnMeter>,
    events: EventOutput,
}

impl<'a> TurnRun<'a> {
    fn new(agent: &'a Agent, user_message: &'a str, events: EventOutput) -> Self {
        let allowed_tools = Arc::<AllowedTools>::default();
        Self {
            agent,
            user_message,
            builtin_tools: builtin_tools(agent, &allowed_tools, agent.skill_tools.as_ref()),
            allowed_tools,
            ceilings: Vec::new(),
            is_fork: false,
            skill_tools: agent.skill_tools.clone(),
            meter: Arc::new(TurnMeter::new(&agent.limits)),
            events,
        }
    }

    /// Asks and calls until the model stops or a limit does. Boxed, since a skill that is carried out
    /// apart is the same again.
    fn run_to_end<'b>(
        &'b self,
        conversation: &'b mut Conversation,
    ) -> BoxFuture<'b, Result<Ended, Gone>> {
        Box::pin(async move {
            let system = self.system().await;
            loop {
                if let Err(limit) = self.meter.begin_step() {
                    return Ok(stopped(conversation, "", limit));
                }
                let (offer, snapshots) = (Offer::new(self), self.snapshots());
                let tools = offer.definitions(&snapshots);
                let messages = conversation.request(&system, self.agent.limits.context);
                let reply = self.ask(messages, tools).await?;
                if let Some(error) = reply.error {
                    conversation.say(reply.text);
                    return Ok(Ended::Failed(error));
                }
                if let Some(limit) = reply.limit {
                    return Ok(stopped(conversation, &reply.text, limit));
                }
                if reply.calls.is_empty() {
                    conversation.say(reply.text);
                    return Ok(Ended::Answered);
                }
                let first = conversation.say_and_call(reply.text, &reply.calls);
                let reached =
                    self.carry_out(&reply.calls, &offer, snapshots, first, conversation).await?;
                if let Some(limit) = reached {
                    return Ok(stopped(conversation, "", limit));
                }
            }
        })
    }

    /// What calls are held to now.
    fn snapshots(&self) -> Vec<AllowListSnapshot> {
        self.ceilings.iter().cloned().chain([self.allowed_tools.snapshot()]).collect()
    }
}

fn builtin_tools(
    agent: &Agent,
    allowed_tools: &Arc<AllowedTools>,
    tools: Option<&Arc<SkillTools>>,
) -> Arc<BuiltinTools> {
    let builtin_tools =
        BuiltinTools::new(Arc::clone(&agent.library), Some(Arc::clone(allowed_tools)));
    Arc::new(match tools {
        Some(tools) => builtin_tools.with_skill_tools(Arc::clone(tools)),
        None => builtin_tools,
    })
}

/// What was said last is part of the conversation, and that it was cut short.
fn stopped(conversation: &mut Conversation, text: &str, limit: Limit) -> Ended {
    let gap = if text.is_empty() { "" } else { "\n\n" };
    conversation.say(format!("{text}{gap}(Stopped: {limit}.)"));
    Ended::Limit(limit)
}

/// Where a run tells what happens.
#[derive(Clone)]
struct EventOutput {
    out: Emitter,
    /// The skill that is carried out apart: its words are not part of the answer.
    forked_skill: Option<Arc<str>>,
}

impl EventOutput {
    async fn send_text(&self, words: &str) -> Result<(), Gone> {
        match self.forked_skill {
            Some(_) => Ok(()),
            None => self.out.emit(Event::token(words)).await,
        }
    }

    async fn send_thought(&self, thought: Thought) -> Result<(), Gone> {
        let thought = match &self.forked_skill {
            Some(skill) => thought.with("skill", &**skill),
            None => thought,
        };
        self.out.emit(thought).await
    }
}

/// The last words of a model in a conversation.
fn last_words(messages: &[Message]) -> &str {
    match messages.last() {
        Some(Message::Assistant { text, .. }) => text,
        _ => "",
    }
}
