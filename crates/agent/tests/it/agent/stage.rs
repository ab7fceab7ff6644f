//! Sets up turns for tests: real skills in real folders, tools that record their calls, and a model
//! that follows a script.

use std::{
    collections::VecDeque,
    fs,
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures::{
    StreamExt as _,
    future::BoxFuture,
    stream::{self, BoxStream},
};
use savoir_agent::{
    allowed_tools::CallGuard,
    library::FolderLibrary,
    skill_tools::SkillTools,
    toolset::{Origin, ToolAnswer, ToolSpec, Toolset},
    turn::{Agent, Conversation, ForkMode, TurnEnd, TurnLimits},
};
use savoir_flow::{
    event::{Emitter, Event, Thought},
    services::{Services, TimeLimits},
};
use savoir_model::{
    ChatRequest, Chunk, Finish, LanguageModel, Message, ModelError, Models, ToolCall,
    ToolDefinition,
};
use serde_json::{Map, Value, json};

/// A model that returns its scripted replies in order, whatever it is asked, and then "done".
#[derive(Debug, Default)]
pub(super) struct Script {
    lines: Mutex<VecDeque<Vec<Chunk>>>,
    /// Replies for forks.
    apart: Mutex<VecDeque<Vec<Chunk>>>,
    /// The reply after the script has ended.
    pub(super) forever: Mutex<Option<Vec<Chunk>>>,
    asked: Mutex<Vec<ChatRequest>>,
}

fn is_apart(request: &ChatRequest) -> bool {
    matches!(&request.messages[0], Message::System(text) if text.contains("You carry out one skill"))
}

impl LanguageModel for Script {
    fn answer(&self, request: ChatRequest) -> BoxStream<'static, Result<Chunk, ModelError>> {
        let lines = if is_apart(&request) { &self.apart } else { &self.lines };
        self.asked.lock().expect("a lock").push(request);
        let line = lines.lock().expect("a lock").pop_front();
        let line = line.or_else(|| self.forever.lock().expect("a lock").clone());
        let mut line = line.unwrap_or_else(|| vec![Chunk::Text("done".to_owned())]);
        line.push(Chunk::End(Finish::Stop));
        stream::iter(line.into_iter().map(Ok)).boxed()
    }

    fn models(&self) -> BoxFuture<'_, Result<Vec<String>, ModelError>> {
        Box::pin(async { Ok(vec!["script".to_owned()]) })
    }
}

/// Creates a tool call for a scripted reply.
pub(super) fn call(name: &str, arguments: Value) -> Chunk {
    Chunk::ToolCall(ToolCall { id: String::new(), name: name.to_owned(), arguments })
}

pub(super) fn use_skill(name: &str) -> Chunk {
    call("use_skill", json!({"name": name}))
}

pub(super) fn command(text: &str) -> Chunk {
    call("run_command", json!({"command": text}))
}

/// Host tools that only record their calls.
#[derive(Debug, Default)]
pub(super) struct Recorder {
    tools: Vec<ToolSpec>,
    ran: Mutex<Vec<(String, Value)>>,
    /// The answers of the tools, by name.
    answers: Mutex<Map<String, Value>>,
}

/// The names of the host tools.
pub(super) const HOST: [&str; 7] =
    ["run_command", "read_file", "write_file", "edit_file", "list_dir", "web_search", "web_fetch"];

impl Recorder {
    fn new(names: &[&str], origin: &dyn Fn(&str) -> Origin) -> Self {
        let tools = names.iter().map(|name| spec(name, origin(name))).collect();
        Self { tools, ..Self::default() }
    }
}

pub(super) fn spec(name: &str, origin: Origin) -> ToolSpec {
    let definition = ToolDefinition {
        name: name.to_owned(),
        description: format!("Does {name}."),
        parameters: json!({"type": "object"}),
    };
    ToolSpec { definition, origin, atomic: name.starts_with("alone") }
}

impl Toolset for Recorder {
    fn tools(&self) -> Vec<ToolSpec> {
        self.tools.clone()
    }

    fn call<'a>(
        &'a self,
        name: &'a str,
        arguments: &'a Map<String, Value>,
        _: CallGuard<'a>,
    ) -> BoxFuture<'a, ToolAnswer> {
        Box::pin(async move {
            let note = |what: String| {
                self.ran.lock().expect("a lock").push((what, Value::Object(arguments.clone())));
            };
            match name {
                "panics" => panic!("this tool always does"),
                "hangs" => std::future::pending::<()>().await,
                "huge" => return ToolAnswer::text("é".repeat(5 << 20)),
                "slow" | "alone" => {
                    note(format!("{name} begins"));
                    let wait = arguments.get("wait").and_then(Value::as_u64).unwrap_or(20);
                    tokio::time::sleep(Duration::from_millis(wait)).await;
                    note(format!("{name} ends"));
                    return ToolAnswer::text(format!("waited {wait}"));
                }
                _ => {}
            }
            note(name.to_owned());
            let outcome = self.answers.lock().expect("a lock").get(name).cloned();
            ToolAnswer::text(outcome.as_ref().and_then(Value::as_str).unwrap_or("ok"))
        })
    }
}

/// The setup of a turn: skills, tools, limits and a scripted model.
pub(super) struct Stage {
    dir: tempfile::TempDir,
    skills: Vec<String>,
    pub(super) script: Arc<Script>,
    host: Arc<Recorder>,
    pub(super) more: Vec<Arc<dyn Toolset>>,
    pub(super) skill_tools: Option<Arc<SkillTools>>,
    pub(super) limits: TurnLimits,
    pub(super) forks: ForkMode,
    pub(super) conversation: Conversation,
}

/// The result of a turn.
pub(super) struct TurnReport {
    pub(super) ended: TurnEnd,
    pub(super) events: Vec<Event>,
    /// The calls that ran, in order.
    pub(super) ran: Vec<(String, Value)>,
    /// The answers to the model's calls, in the order of the calls.
    pub(super) answers: Vec<String>,
    /// The requests to the model.
    pub(super) asked: Vec<ChatRequest>,
}

impl TurnReport {
    pub(super) fn names(&self) -> Vec<&str> {
        self.ran.iter().map(|(name, _)| name.as_str()).collect()
    }

    pub(super) fn thoughts(&self) -> Vec<&Thought> {
        let mut thoughts = Vec::new();
        for event in &self.events {
            if let Event::Thought(thought) = event {
                thoughts.push(thought);
            }
        }
        thoughts
    }

    /// The names of the tools that one request offered to the model.
    pub(super) fn offered(&self, question: usize) -> Vec<&str> {
        self.asked[question].tools.iter().map(|tool| tool.name.as_str()).collect()
    }

    pub(super) fn last_event(&self) -> String {
        self.events.last().map(Event::to_sse).unwrap_or_default()
    }
}

impl Stage {
    pub(super) fn new() -> Self {
        Self::with_tools(&HOST)
    }

    pub(super) fn with_tools(names: &[&str]) -> Self {
        Self {
            dir: tempfile::tempdir().expect("a folder"),
            skills: Vec::new(),
            script: Arc::default(),
            host: Arc::new(Recorder::new(names, &|_| Origin::Host)),
            more: Vec::new(),
            skill_tools: None,
            limits: TurnLimits::default(),
            forks: ForkMode::SeparateAgent,
            conversation: Conversation::default(),
        }
    }

    pub(super) fn folder(&self) -> &Path {
        self.dir.path()
    }

    /// Adds recorded tools that belong to a skill.
    pub(super) fn skill_tools(&mut self, skill: &str, names: &[&str]) -> Arc<dyn Toolset> {
        let origin = |name: &str| Origin::Skill { skill: skill.to_owned(), tool: name.to_owned() };
        let tools = names.iter().map(|name| spec(&format!("{skill}__{name}"), origin(name)));
        let recorder = Arc::new(Recorder { tools: tools.collect(), ..Recorder::default() });
        self.more.push(recorder.clone());
        recorder
    }

    /// Writes a skill with these lines of frontmatter besides name and description.
    pub(super) fn skill(&mut self, name: &str, lines: &str, body: &str) -> &mut Self {
        let lines = if lines.is_empty() { String::new() } else { format!("{lines}\n") };
        let text = format!("---\nname: {name}\ndescription: Does {name}.\n{lines}---\n{body}\n");
        self.file(&format!("{name}/SKILL.md"), text.as_bytes());
        self.skills.push(name.to_owned());
        self
    }

    pub(super) fn file(&mut self, path: &str, bytes: &[u8]) -> &mut Self {
        let path = self.dir.path().join("skills").join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a file");
        fs::write(path, bytes).expect("a file");
        self
    }

    /// Adds a reply to the script.
    pub(super) fn says(&mut self, line: impl IntoIterator<Item = Chunk>) -> &mut Self {
        self.script.lines.lock().expect("a lock").push_back(line.into_iter().collect());
        self
    }

    /// Adds a reply for a fork to the script.
    pub(super) fn apart(&mut self, line: impl IntoIterator<Item = Chunk>) -> &mut Self {
        self.script.apart.lock().expect("a lock").push_back(line.into_iter().collect());
        self
    }

    /// Sets the answer of a tool.
    pub(super) fn answers(&mut self, tool: &str, text: &str) -> &mut Self {
        self.host.answers.lock().expect("a lock").insert(tool.to_owned(), text.into());
        self
    }

    /// Returns and clears the requests to the model.
    pub(super) fn asked(&self) -> Vec<ChatRequest> {
        std::mem::take(&mut self.script.asked.lock().expect("a lock"))
    }

    pub(super) fn drafts(&self) -> std::path::PathBuf {
        self.dir.path().join("drafts")
    }

    pub(super) fn agent(&self) -> Agent {
        let place = |name: &String| (name.clone(), self.dir.path().join("skills").join(name));
        let library = FolderLibrary::new(self.skills.iter().map(place), None, self.drafts());
        let mut models = Models::default();
        models.add("script", self.script.clone(), Some("script".to_owned()));
        let host: Arc<dyn Toolset> = self.host.clone();
        Agent {
            services: Services {
                models: Arc::new(models),
                knowledge: None,
                database: None,
                limits: TimeLimits::default(),
            },
            model: None,
            temperature: None,
            max_tokens: None,
            instructions: None,
            user: None,
            library: Arc::new(library),
            skill_tools: self.skill_tools.clone(),
            tools: std::iter::once(host).chain(self.more.iter().cloned()).collect(),
            limits: self.limits.clone(),
            forks: self.forks,
        }
    }

    /// Runs a whole turn.
    pub(super) async fn turn(&mut self) -> TurnReport {
        self.hear("Please do it.").await
    }

    pub(super) async fn hear(&mut self, message: &str) -> TurnReport {
        let agent = self.agent();
        let (out, mut events) = Emitter::channel();
        let before = self.conversation.messages().len();
        let listening = async {
            let mut heard = Vec::new();
            while let Some(event) = events.recv().await {
                heard.push(event);
            }
            heard
        };
        let conversation = &mut self.conversation;
        let answering = async move {
            let ended = agent.run_turn_to_done_event(conversation, message, &out).await;
            drop(out);
            ended
        };
        let (ended, events) = tokio::join!(answering, listening);
        well_formed(self.conversation.messages());
        let answer = |message: &Message| match message {
            Message::Tool { content, .. } => Some(content.clone()),
            _ => None,
        };
        TurnReport {
            ended: ended.expect("somebody listens"),
            events,
            ran: std::mem::take(&mut self.host.ran.lock().expect("a lock")),
            answers: self.conversation.messages()[before..].iter().filter_map(answer).collect(),
            asked: self.asked(),
        }
    }
}

/// Checks that every call is followed by exactly one answer, in the order of the calls: otherwise
/// providers reject the conversation.
pub(super) fn well_formed(messages: &[Message]) {
    let mut waiting: VecDeque<&str> = VecDeque::new();
    for message in messages {
        match message {
            Message::Tool { call_id, content } => {
                assert_eq!(waiting.pop_front(), Some(call_id.as_str()), "an answer to no call");
                assert!(content.starts_with("[origin: "), "unmarked: {content}");
            }
            other => {
                assert!(waiting.is_empty(), "{waiting:?} have no answer");
                if let Message::Assistant { tool_calls, .. } = other {
                    assert!(tool_calls.iter().all(|call| call.arguments.is_object()));
                    waiting = tool_calls.iter().map(|call| call.id.as_str()).collect();
                }
            }
        }
    }
    assert!(waiting.is_empty(), "{waiting:?} have no answer");
}
