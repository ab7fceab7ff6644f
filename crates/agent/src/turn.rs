//! Runs one turn of an agent: the user sends a message, and a model answers, with as many tool
//! calls in between as it needs and its limits allow.
//!
//! - [`Agent`] is the configuration that stays the same from turn to turn, [`Conversation`] the
//!   messages so far.
//! - `offer` lists the tools that can be called at a moment, `ask` sends one request to the model,
//!   `calls` executes the tool calls of one answer, `fork` runs a skill in a separate agent.
//! - [`TurnLimits`] end a turn; the conversation can continue afterwards.
//!
//! The allow-lists of skills are enforced here, for every tool set and in every mode: see
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
use savoir_skill::{Skill, allow_list::AllowList};

pub use self::{
    conversation::Conversation,
    limits::{Limit, TurnLimits},
};
use self::{limits::TurnMeter, offer::ToolOffer};
use super::{
    allowed_tools::{AllowListSnapshot, AllowedTools},
    builtin_tools::{BuiltinTools, InlineForks},
    library::Library,
    skill_tools::SkillTools,
    toolset::Toolset,
};
use savoir_flow::event::{Done, Emitter, Event, ListenerDisconnected, Thought};
use savoir_flow::services::Services;

/// A model with tools and skills.
#[derive(Clone, Debug)]
pub struct Agent {
    /// The models, and the database for usage.
    pub services: Services,
    /// `provider:model` or a model's name; the default if there is none.
    pub model: Option<String>,
    /// Sampling temperature; the provider's own if there is none.
    pub temperature: Option<f64>,
    /// Maximum number of tokens of each answer.
    pub max_tokens: Option<u32>,
    /// Instructions before those of Savoir in the system prompt.
    pub instructions: Option<String>,
    /// The account that is charged for the usage.
    pub user: Option<i64>,
    /// The skills that the model can load.
    pub library: Arc<dyn Library>,
    /// Runs the tools of skills that are in use.
    pub skill_tools: Option<Arc<SkillTools>>,
    /// All other tools.
    pub tools: Vec<Arc<dyn Toolset>>,
    pub limits: TurnLimits,
    /// How skills with `context: fork` run.
    pub forks: ForkMode,
}

/// How skills with `context: fork` run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ForkMode {
    /// A separate agent executes them.
    #[default]
    SeparateAgent,
    /// The model gets the instructions and is asked to delegate the work; allow-lists are not
    /// enforced. Used inside a fork and with `--untrusted`.
    Inline,
}

/// How a turn ended.
#[derive(Debug)]
pub enum TurnEnd {
    /// The model finished its answer.
    Answered,
    /// A limit was reached.
    Limit(Limit),
    /// The model failed.
    Failed(ModelError),
}

impl TurnEnd {
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
    /// Answers a message and emits all events except the final one. The conversation can be continued
    /// afterwards, even if this future is dropped.
    pub async fn run_turn_reporting_errors(
        &self,
        conversation: &mut Conversation,
        message: &str,
        out: &Emitter,
    ) -> Result<TurnEnd, ListenerDisconnected> {
        let ended = self.run_turn(conversation, message, None, out).await?;
        let failure = match &ended {
            TurnEnd::Answered => return Ok(ended),
            TurnEnd::Limit(limit) => limit.to_string(),
            TurnEnd::Failed(error) => {
                tracing::warn!(%error, help = error.help(), "a model failed");
                error.public_message()
            }
        };
        out.emit(Event::error(failure)).await?;
        Ok(ended)
    }

    /// Like [`run_turn_reporting_errors`](Self::run_turn_reporting_errors), but emits no error. If the instructions are those of a skill, only
    /// the tools that it allows can be called, until the model loads another one.
    pub(crate) async fn run_turn(
        &self,
        conversation: &mut Conversation,
        message: &str,
        skill: Option<&Skill>,
        out: &Emitter,
    ) -> Result<TurnEnd, ListenerDisconnected> {
        conversation.push_user(message);
        let run = TurnRun::new(self, message, EventOutput { out: out.clone(), forked_skill: None });
        if let Some(skill) = skill {
            run.allowed_tools.follow(&skill.name, AllowList::of(&skill.policy));
        }
        run.run_to_end(conversation).await
    }

    /// Like [`run_turn_reporting_errors`](Self::run_turn_reporting_errors), but also emits the final event.
    pub async fn run_turn_to_done_event(
        &self,
        conversation: &mut Conversation,
        message: &str,
        out: &Emitter,
    ) -> Result<TurnEnd, ListenerDisconnected> {
        let ended = self.run_turn_reporting_errors(conversation, message, out).await?;
        out.emit(Event::Done(ended.done())).await?;
        Ok(ended)
    }
}

/// A turn, or a skill that runs as a fork within one.
struct TurnRun<'a> {
    agent: &'a Agent,
    /// The message of the user.
    user_message: &'a str,
    /// New for each turn, because the restrictions of a skill end with the turn.
    allowed_tools: Arc<AllowedTools>,
    /// Allow-lists that apply to the whole run, whichever skills are loaded: the list of a forked
    /// skill, and those of its caller.
    outer_allow_lists: Vec<AllowListSnapshot>,
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
            builtin_tools: builtin_tools(
                agent,
                &allowed_tools,
                agent.skill_tools.as_ref(),
                match agent.forks {
                    ForkMode::SeparateAgent => None,
                    ForkMode::Inline => Some(InlineForks::InChat),
                },
            ),
            allowed_tools,
            outer_allow_lists: Vec::new(),
            is_fork: false,
            skill_tools: agent.skill_tools.clone(),
            meter: Arc::new(TurnMeter::new(&agent.limits)),
            events,
        }
    }

    /// Asks the model and executes its calls until the model or a limit ends the turn. Boxed, since
    /// a fork calls this function recursively.
    fn run_to_end<'b>(
        &'b self,
        conversation: &'b mut Conversation,
    ) -> BoxFuture<'b, Result<TurnEnd, ListenerDisconnected>> {
        Box::pin(async move {
            let system = self.system().await;
            loop {
                if let Err(limit) = self.meter.start_step() {
                    return Ok(note_limit(conversation, "", limit));
                }
                let (offer, snapshots) = (ToolOffer::new(self), self.snapshots());
                let tools = offer.definitions(&snapshots);
                let messages = conversation.request(&system, self.agent.limits.context);
                let reply = self.ask(messages, tools).await?;
                if let Some(error) = reply.error {
                    conversation.push_assistant(reply.text);
                    return Ok(TurnEnd::Failed(error));
                }
                if let Some(limit) = reply.limit {
                    return Ok(note_limit(conversation, &reply.text, limit));
                }
                if reply.calls.is_empty() {
                    conversation.push_assistant(reply.text);
                    return Ok(TurnEnd::Answered);
                }
                let first = conversation.push_calls(reply.text, &reply.calls);
                let reached =
                    self.run_calls(&reply.calls, &offer, snapshots, first, conversation).await?;
                if let Some(limit) = reached {
                    return Ok(note_limit(conversation, "", limit));
                }
            }
        })
    }

    /// The allow-lists that calls must satisfy now.
    fn snapshots(&self) -> Vec<AllowListSnapshot> {
        self.outer_allow_lists.iter().cloned().chain([self.allowed_tools.snapshot()]).collect()
    }
}

fn builtin_tools(
    agent: &Agent,
    allowed_tools: &Arc<AllowedTools>,
    tools: Option<&Arc<SkillTools>>,
    inline_forks: Option<InlineForks>,
) -> Arc<BuiltinTools> {
    let builtin_tools =
        BuiltinTools::new(Arc::clone(&agent.library), Some(Arc::clone(allowed_tools)));
    let builtin_tools = match inline_forks {
        Some(inline_forks) => builtin_tools.with_inline_forks(inline_forks),
        None => builtin_tools,
    };
    Arc::new(match tools {
        Some(tools) => builtin_tools.with_skill_tools(Arc::clone(tools)),
        None => builtin_tools,
    })
}

/// Adds the last text to the conversation, with a note that it was cut short.
fn note_limit(conversation: &mut Conversation, text: &str, limit: Limit) -> TurnEnd {
    let gap = if text.is_empty() { "" } else { "\n\n" };
    conversation.push_assistant(format!("{text}{gap}(Stopped: {limit}.)"));
    TurnEnd::Limit(limit)
}

/// The destination of the events of a run.
#[derive(Clone)]
struct EventOutput {
    out: Emitter,
    /// The skill that runs as a fork: its text is not part of the answer.
    forked_skill: Option<Arc<str>>,
}

impl EventOutput {
    async fn send_text(&self, text: &str) -> Result<(), ListenerDisconnected> {
        match self.forked_skill {
            Some(_) => Ok(()),
            None => self.out.emit(Event::token(text)).await,
        }
    }

    async fn send_thought(&self, thought: Thought) -> Result<(), ListenerDisconnected> {
        let thought = match &self.forked_skill {
            Some(skill) => thought.with("skill", &**skill),
            None => thought,
        };
        self.out.emit(thought).await
    }
}

/// The text of the last message, if the model wrote it.
pub(crate) fn last_assistant_text(messages: &[Message]) -> &str {
    match messages.last() {
        Some(Message::Assistant { text, .. }) => text,
        _ => "",
    }
}
