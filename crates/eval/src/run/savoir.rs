//! Savoir's own agent as the host of trials.

use std::{path::Path, sync::Arc, time::Duration};

use futures::future::BoxFuture;
use savoir_agent::{
    consent::{Asker, Consent},
    host_tools::{Autonomy, HostTools},
    library::FolderLibrary,
    skill_tools::{SkillLoader, SkillToolEnvironment, SkillTools},
    turn::{Agent, Conversation, ForkMode, Limit, TurnEnd, TurnLimits},
};
use savoir_engine::{Home, approval::ApprovalQuestion, run_environment::RunEnvironment};
use savoir_flow::{
    event::{Emitter, Event, ModelCall},
    services::{Services, TimeLimits},
};
use savoir_model::{ChosenModel, Message, Models};
use serde_json::Value;

use super::host::{Disclosure, Host, HostRun, TrialSetup};
use crate::trace::{HostRecord, Role, TokenUsage, TraceCall, TraceMessage};

/// The tools of the agent, without those of skills.
const TOOLS: [&str; 10] = [
    "use_skill", "read_skill_file", "search_skills", "save_skill", "read_file", "list_dir",
    "write_file", "edit_file", "run_command", "web_fetch",
];

/// Runs trials with the agent of `savoir chat`.
#[derive(Debug)]
pub struct SavoirHost {
    models: Arc<Models>,
    model: String,
    home: Home,
    run_env: RunEnvironment,
    /// Loads skills with their approvals, to run their own tools.
    skill_loader: Arc<dyn SkillLoader>,
}

/// Nobody answers questions in a trial: what needs approval is refused.
#[derive(Debug)]
pub(super) struct NoAsker;

impl Asker for NoAsker {
    fn ask<'a>(&'a self, _: &'a ApprovalQuestion) -> BoxFuture<'a, Consent> {
        Box::pin(async { Consent::Nobody })
    }
}

impl SavoirHost {
    pub fn new(
        chosen: ChosenModel,
        home: Home,
        run_env: RunEnvironment,
        skill_loader: Arc<dyn SkillLoader>,
    ) -> Self {
        let model = format!("{}:{}", chosen.provider, chosen.model);
        Self { models: Arc::new(only(chosen)), model, home, run_env, skill_loader }
    }

    async fn run_trial(&self, setup: TrialSetup<'_>) -> Result<HostRun, String> {
        let folder = setup.workspace.join(self.skills_folder());
        let places: Vec<_> =
            setup.skills.iter().map(|name| (name.clone(), folder.join(name))).collect();
        let host = host_tools(setup.workspace, &self.run_env)?;
        let host = Arc::new(host.protecting(places.iter().map(|(_, place)| place.as_path())));
        let tools = SkillTools::new(SkillToolEnvironment {
            skill_loader: Arc::clone(&self.skill_loader),
            asker: Arc::new(NoAsker),
            home: self.home.clone(),
            run_env: host.run_env().clone(),
            mode: "Global".to_owned(),
        });
        let limits =
            TurnLimits { steps: setup.max_steps, time: setup.time, ..TurnLimits::default() };
        let agent = Agent {
            services: Services {
                models: Arc::clone(&self.models),
                knowledge: None,
                database: None,
                limits: TimeLimits::default(),
            },
            model: None,
            temperature: None,
            max_tokens: None,
            instructions: None,
            user: None,
            library: Arc::new(FolderLibrary::new(places, None, setup.scratch.join("drafts"))),
            skill_tools: Some(Arc::new(tools)),
            tools: vec![Arc::clone(&host) as _],
            limits,
            forks: ForkMode::SeparateAgent,
        };
        let (mut conversation, (out, mut events)) = (Conversation::default(), Emitter::channel());
        let calls = out.model_calls();
        let wanted = setup.until_used.map(SkillUse::new);
        let listening = async {
            let mut wanted = wanted;
            while let Some(event) = events.recv().await {
                if wanted.as_mut().is_some_and(|wanted| wanted.is_seen_in(&event)) {
                    return true;
                }
            }
            false
        };
        let ended = {
            let answering = async {
                let ended =
                    agent.run_turn_reporting_errors(&mut conversation, setup.prompt, &out).await;
                drop(out);
                ended
            };
            tokio::pin!(answering, listening);
            tokio::select! {
                // Before the agent asks its model again.
                biased;
                is_used = &mut listening => if is_used { None } else { Some(answering.await) },
                ended = &mut answering => {
                    listening.await;
                    Some(ended)
                }
            }
        };
        let was_used = ended.is_none();
        host.wait_for_commands().await;
        let limit = match ended {
            None | Some(Ok(TurnEnd::Answered)) => None,
            Some(Ok(TurnEnd::Limit(limit @ Limit::Time(_)))) => {
                return Err(format!("the agent did not finish: {limit}"));
            }
            Some(Ok(TurnEnd::Limit(limit))) => Some(limit.to_string()),
            Some(Ok(TurnEnd::Failed(error))) => return Err(format!("the model failed: {error}")),
            Some(Err(gone)) => return Err(gone.to_string()),
        };
        let mut run = HostRun { limit, ..record(conversation.messages(), &calls.take()) };
        if let Some(call) = run.calls.iter().find(|call| needs_approval(call)) {
            return Err(format!(
                "the skill's tool `{}` is not approved; approve it first: savoir approve PATH",
                call.tool
            ));
        }
        if let (true, Some(name)) = (was_used, setup.until_used)
            && !run.skills_used.iter().any(|used| used == name)
        {
            run.skills_used.push(name.to_owned());
        }
        Ok(run)
    }
}

/// Whether a call was refused because a tool of a skill is not approved. Tools of the host need no
/// approval in a trial, or cannot be approved.
fn needs_approval(call: &TraceCall) -> bool {
    call.failure.as_deref() == Some("approval-needed") && !TOOLS.contains(&call.tool.as_str())
}

/// Notices when an agent uses a skill.
struct SkillUse {
    /// The name as it is in the arguments of a call.
    argument: String,
    name: String,
    /// The calls that load it.
    calls: Vec<String>,
}

impl SkillUse {
    fn new(name: &str) -> Self {
        let argument = format!("\"name\":{}", Value::from(name));
        Self { argument, name: name.to_owned(), calls: Vec::new() }
    }

    /// Whether the skill was loaded, or starts as a fork.
    fn is_seen_in(&mut self, event: &Event) -> bool {
        let Event::Thought(thought) = event else { return false };
        let text = |key: &str| thought.member(key).and_then(Value::as_str);
        if thought.topic() != "tool" || text("tool") != Some("use_skill") {
            return false;
        }
        let call = text("call_id").unwrap_or_default();
        match text("status") {
            Some("start") if text("skill_name") == Some(&self.name) => true,
            Some("start") => {
                if text("arguments").is_some_and(|given| given.contains(&self.argument)) {
                    self.calls.push(call.to_owned());
                }
                false
            }
            Some("complete") => self.calls.iter().any(|known| known == call),
            _ => false,
        }
    }
}

/// The tools of an agent or a grader in a folder. They change nothing else, and ask nobody.
pub(super) fn host_tools(folder: &Path, run_env: &RunEnvironment) -> Result<HostTools, String> {
    let tools = HostTools::new(folder, run_env, Arc::new(NoAsker), Autonomy::InWorkspace);
    tools.map_err(|error| error.to_string())
}

/// The chosen model alone, as the default.
pub(super) fn only(chosen: ChosenModel) -> Models {
    let mut models = Models::default();
    models.add(&chosen.provider, chosen.client, Some(chosen.model));
    models
}

/// The tokens of requests to a model.
pub(super) fn usage_of(calls: &[ModelCall]) -> TokenUsage {
    let mut usage = TokenUsage::default();
    for call in calls {
        usage += match call.usage {
            Some(used) => TokenUsage { input: used.input, output: used.output, incomplete: false },
            None => TokenUsage { incomplete: true, ..TokenUsage::default() },
        };
    }
    usage
}

/// Reads a conversation.
fn record(messages: &[Message], model_calls: &[ModelCall]) -> HostRun {
    let mut run = HostRun {
        usage: usage_of(model_calls),
        requests: model_calls.len() as u32,
        ..HostRun::default()
    };
    // Answers follow their calls in the same order.
    let mut open: std::collections::VecDeque<usize> = std::collections::VecDeque::new();
    for message in messages {
        let (role, text) = match message {
            Message::System(text) => (Role::System, text.clone()),
            Message::User(text) => (Role::User, text.clone()),
            Message::Assistant { text, tool_calls } => {
                if !text.is_empty() {
                    run.messages.push(TraceMessage { role: Role::Assistant, text: text.clone() });
                }
                for call in tool_calls {
                    open.push_back(run.calls.len());
                    let arguments = call.arguments.clone();
                    let line = format!("{} {arguments}", call.name);
                    run.messages.push(TraceMessage { role: Role::Tool, text: line });
                    run.calls.push(TraceCall { tool: call.name.clone(), arguments, failure: None });
                }
                run.answer.clone_from(text);
                continue;
            }
            Message::Tool { content, .. } => {
                let failure = failure(content);
                if let Some(call) = open.pop_front().and_then(|index| run.calls.get_mut(index)) {
                    if failure.is_none() && call.tool == "use_skill" {
                        let name = call.arguments.get("name").and_then(|name| name.as_str());
                        run.skills_used.extend(name.map(str::to_owned));
                    }
                    call.failure = failure;
                }
                (Role::Tool, content.clone())
            }
        };
        run.messages.push(TraceMessage { role, text });
    }
    run
}

/// The code of a failed call, from the line about its source that Savoir writes above an answer.
fn failure(answer: &str) -> Option<String> {
    let first = answer.lines().next()?;
    let code = first.rsplit_once(", failed: ")?.1.strip_suffix(']')?;
    Some(code.to_owned())
}

impl Host for SavoirHost {
    fn record(&self) -> HostRecord {
        HostRecord {
            name: "savoir".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            model: self.model.clone(),
        }
    }

    fn tools(&self) -> Vec<String> {
        TOOLS.map(str::to_owned).to_vec()
    }

    fn disclosure(&self) -> Disclosure {
        Disclosure::Savoir
    }

    fn network(&self) -> String {
        "none".to_owned()
    }

    fn skills_folder(&self) -> &'static str {
        ".agents/skills"
    }

    fn run<'a>(&'a self, setup: TrialSetup<'a>) -> BoxFuture<'a, Result<HostRun, String>> {
        Box::pin(async move {
            // The agent has its own deadline; this one is for a client that ignores it.
            let most = setup.time + Duration::from_secs(30);
            let run = tokio::time::timeout(most, self.run_trial(setup)).await;
            run.unwrap_or_else(|_| Err("the agent did not end in time".to_owned()))
        })
    }
}
