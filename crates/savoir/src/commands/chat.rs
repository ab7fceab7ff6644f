//! `savoir chat`: lets the user chat with a model that uses skills and works in one folder.

mod hangup;
mod terminal_approver;

use std::{
    io::{self, IsTerminal as _, Read as _},
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
};

use savoir_agent::{
    host_tools::{Autonomy, HOST_TOOL_NAMES, HostTools, WorkspaceError},
    library::Library,
    skill_tools::{SkillToolEnvironment, SkillTools},
    turn::{Agent, Conversation, ForkMode, TurnLimits},
};
use savoir_engine::Home;
use savoir_flow::{
    event::Emitter,
    services::{Services, TimeLimits},
};

use self::{
    hangup::Hangup,
    terminal_approver::{InputLines, TerminalApprover},
};
use crate::{
    agent_skills::{AgentSkillArgs, AgentSkills},
    error::CommandError,
    events::{self, EventFormat, Printer, RunEnd},
    gibberish_mode::GibberishMode,
    log_file,
    model_errors::{self, Failure},
    models, output, runtime, trust,
};

/// Maximum bytes of a question from standard input.
const MAX_QUESTION_BYTES: u64 = 1 << 20;
/// Minimum context size in tokens: the descriptions of skills and tools, and a short message.
const MIN_CONTEXT_TOKENS: usize = 4_000;
/// The code of a failed answer whose failure has no code of its own.
const TURN_FAILED: &str = "turn-failed";

/// Chat with a model that uses your skills and works in one folder
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  savoir chat                            start a conversation in this folder
  savoir chat --once \"Summarize README.md\"
  git diff | savoir chat                 read the question from standard input
  savoir chat --workspace ~/project --model ollama:qwen3
  savoir chat --once \"…\" --json          print one event per line, for programs

While the model follows a skill, it can only call the tools that the skill allows. Commands run in
the sandbox, and you are asked before anything is changed. /skills lists the skills, /quit quits,
Ctrl-C stops an answer.
Exit codes of --once: 0 answered, 1 failed or stopped by a limit, 3 something needed your approval.")]
pub(crate) struct Args {
    /// Ask one question, print the answer and exit
    #[arg(value_name = "QUESTION")]
    question: Option<String>,
    /// Same as QUESTION
    #[arg(long, value_name = "QUESTION", conflicts_with = "question")]
    once: Option<String>,
    /// Model, as PROVIDER:MODEL or a name
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Folder to work in [default: the current folder]
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,
    /// Maximum number of model requests per answer
    #[arg(long, value_name = "N", default_value_t = TurnLimits::default().steps,
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    max_steps: u32,
    /// Maximum number of tokens per answer, sent and received
    #[arg(long, value_name = "TOKENS", default_value_t = TurnLimits::default().tokens)]
    budget: u64,
    /// Context size of the model; older messages are left out
    #[arg(long, value_name = "TOKENS", default_value_t = TurnLimits::default().context,
          value_parser = parse_context_tokens)]
    context: usize,
    /// Which skill tools to offer
    #[arg(long, value_name = "MODE", ignore_case = true, default_value = "Global")]
    mode: GibberishMode,
    /// Do not ask before changing workspace files and running sandboxed commands
    #[arg(long)]
    autonomous: bool,
    /// Trust no skill: ask before each tool of a skill and each change, and disable forks
    #[arg(long, conflicts_with = "autonomous")]
    untrusted: bool,
    /// Print one JSON event per line
    #[arg(long)]
    json: bool,
    /// Folders of the only skills to offer; the installed skills if there are none.
    #[arg(skip)]
    skill_folders: Option<Vec<PathBuf>>,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    match args.question()? {
        None if args.json => Err(CommandError::input("--json needs a question")
            .hint("pass one: savoir chat --once \"…\" --json")),
        None => runtime::block_on_with_cleanup(start_conversation(args)),
        Some(question) => match runtime::block_on_with_cleanup(answer_once(args, &question)) {
            Err(error) if args.json => events::report_failure(error),
            ended => ended,
        },
    }
}

impl Args {
    /// The question, or `None` for a conversation.
    fn question(&self) -> Result<Option<String>, CommandError> {
        let given = self.once.as_ref().or(self.question.as_ref());
        if given.is_some() || io::stdin().is_terminal() {
            return Ok(given.cloned());
        }
        let mut text = String::new();
        let read = io::stdin().lock().take(MAX_QUESTION_BYTES).read_to_string(&mut text);
        read.map_err(|error| CommandError::input(format!("the question cannot be read: {error}")))?;
        if text.trim().is_empty() {
            return Err(CommandError::input("the question is empty")
                .hint("pass one: savoir chat --once \"…\", or run this on a terminal"));
        }
        Ok(Some(text))
    }

    /// Offers exactly these skills.
    pub(crate) fn with_skills(self, folders: Vec<PathBuf>) -> Self {
        Self { skill_folders: Some(folders), ..self }
    }

    pub(crate) fn workspace(&self) -> Option<&Path> {
        self.workspace.as_deref()
    }

    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    fn skill_args(&self) -> AgentSkillArgs {
        match &self.skill_folders {
            Some(folders) => AgentSkillArgs { paths: folders.clone(), ..AgentSkillArgs::default() },
            None => AgentSkillArgs { project: self.workspace.clone(), ..AgentSkillArgs::default() },
        }
    }

    fn limits(&self) -> TurnLimits {
        let (steps, tokens, context) = (self.max_steps, self.budget, self.context);
        TurnLimits { steps, tokens, context, ..TurnLimits::default() }
    }
}

/// Parses --context; a smaller context has no room for the system prompt.
fn parse_context_tokens(text: &str) -> Result<usize, String> {
    let count = text.parse::<usize>().map_err(|error| error.to_string())?;
    if count < MIN_CONTEXT_TOKENS {
        return Err(format!("a conversation needs at least {MIN_CONTEXT_TOKENS} tokens"));
    }
    Ok(count)
}

/// An agent with its tools and conversation.
struct ChatSession {
    agent: Agent,
    host_tools: Arc<HostTools>,
    conversation: Conversation,
    failure: Failure,
    format: EventFormat,
}

impl ChatSession {
    async fn new(args: &Args, approver: Arc<TerminalApprover>) -> Result<Self, CommandError> {
        let models = models::load_models()?;
        let (models, failure) = model_errors::choose(&models, args.model.as_deref()).await?;
        let home = Home::from_environment()?;
        log_file::start(&home, "chat");
        let run_env = trust::run_env(&home)?;
        let folder = args.workspace.as_deref().unwrap_or(Path::new("."));
        let autonomy = if args.autonomous { Autonomy::InWorkspace } else { Autonomy::Asks };
        let host_tools = HostTools::new(folder, &run_env, approver.clone(), autonomy)?;
        let skills = AgentSkills::new(args.skill_args(), home.clone())?;
        let skills = Arc::new(if args.untrusted { skills.untrusted() } else { skills });
        // The folders of skills are protected, because a model that changes a skill could change
        // its own permissions.
        let found = skills.folders().map_err(|error| CommandError::input(&error))?;
        let host_tools =
            Arc::new(host_tools.protecting(found.skill_folders().map(|(_, folder)| folder)));
        let library = Arc::clone(&skills);
        let skill_tool_environment = SkillToolEnvironment {
            skill_loader: skills,
            asker: approver,
            home,
            run_env: host_tools.run_env().clone(),
            mode: args.mode.as_str().to_owned(),
        };
        let services = Services {
            models: Arc::new(models),
            knowledge: None,
            database: None,
            limits: TimeLimits::default(),
        };
        let agent = Agent {
            services,
            model: None,
            temperature: None,
            max_tokens: None,
            instructions: None,
            user: None,
            library,
            skill_tools: Some(Arc::new(SkillTools::new(skill_tool_environment))),
            tools: vec![Arc::clone(&host_tools) as _],
            limits: args.limits(),
            forks: if args.untrusted { ForkMode::Inline } else { ForkMode::SeparateAgent },
        };
        let format = EventFormat::new(args.json, false);
        Ok(Self { agent, host_tools, conversation: Conversation::default(), failure, format })
    }

    /// Prints one answer, until it ends or the user interrupts it.
    async fn turn(&mut self, message: &str) -> Result<(RunEnd, Printer), CommandError> {
        let (out, events) = Emitter::channel();
        // Drops the failure of an earlier turn.
        self.failure.take();
        let mut printer = Printer::new(self.format).with_reasons(self.failure.clone(), TURN_FAILED);
        let Self { agent, conversation, .. } = self;
        let answering = async move {
            // It fails if the user interrupted the answer, which the printer reports.
            let _ = agent.run_turn_to_done_event(conversation, message, &out).await;
        };
        let (ended, ()) = tokio::join!(printer.follow(events), answering);
        Ok((ended?, printer))
    }

    fn turn_error(&self, message: String) -> CommandError {
        self.failure
            .take()
            .unwrap_or_else(|| CommandError::findings(message).with_code(TURN_FAILED))
    }
}

async fn answer_once(args: &Args, question: &str) -> Result<ExitCode, CommandError> {
    let hangup = Hangup::listen()?;
    let mut session = ChatSession::new(args, Arc::new(TerminalApprover::of_terminal())).await?;
    let turn = tokio::select! {
        turn = session.turn(question) => turn,
        () = hangup.wait() => Ok((RunEnd::Stopped, Printer::new(session.format))),
    };
    session.host_tools.wait_for_commands().await;
    let (ended, printer) = turn?;
    let error = match ended {
        RunEnd::Completed => match printer.first_unapproved_tool() {
            None => return Ok(ExitCode::SUCCESS),
            Some(tool) => unapproved_error(tool, args.autonomous),
        },
        RunEnd::Stopped => interrupted_error(),
        RunEnd::Failed(message) => session.turn_error(message),
    };
    // The error was already printed as an event.
    if args.json { Ok(error.report()) } else { Err(error) }
}

/// The error for a tool that nobody could approve.
fn unapproved_error(tool: &str, is_autonomous: bool) -> CommandError {
    let error = CommandError::refused(format!("`{tool}` needed approval and was not run"));
    let error = error.with_code("approval-needed");
    if !HOST_TOOL_NAMES.contains(&tool) {
        return error
            .hint("run it in a terminal")
            .hint("approve the tools of a skill with: savoir approve SKILL");
    }
    error.hint(if is_autonomous {
        "run it in a terminal: a person must agree to web pages, and to commands that may do more than \
         approval"
    } else {
        "run it in a terminal, or use --autonomous for changes inside the workspace; it covers neither \
         web pages nor commands that may do more than the skill in use allows"
    })
}

fn interrupted_error() -> CommandError {
    CommandError::findings("the answer was stopped").with_code("stopped")
}

/// Runs a conversation until the user quits.
async fn start_conversation(args: &Args) -> Result<ExitCode, CommandError> {
    let hangup = Hangup::listen()?;
    let lines = Arc::new(InputLines::of_terminal());
    let mut session =
        ChatSession::new(args, Arc::new(TerminalApprover::at(Arc::clone(&lines)))).await?;
    output::note("Ask a question. /skills lists the skills, /quit quits, Ctrl-C stops an answer.");
    let ended = tokio::select! {
        ended = chat_loop(&mut session, &lines) => ended,
        () = hangup.wait() => Err(interrupted_error()),
    };
    session.host_tools.wait_for_commands().await;
    ended
}

async fn chat_loop(
    session: &mut ChatSession,
    lines: &InputLines,
) -> Result<ExitCode, CommandError> {
    loop {
        let Some(line) = lines.ask("> ").await else { return Ok(ExitCode::SUCCESS) };
        match line.trim() {
            "" => {}
            "/quit" | "/exit" => return Ok(ExitCode::SUCCESS),
            "/skills" => list_skills(&*session.agent.library).await?,
            word if word.starts_with('/') && !word.contains(' ') => {
                output::note(&format!("unknown command {word}; use /skills or /quit"));
            }
            message => match session.turn(message).await?.0 {
                RunEnd::Completed => {}
                RunEnd::Stopped => output::note("stopped"),
                RunEnd::Failed(message) => {
                    // The conversation continues.
                    let _ = session.turn_error(message).report();
                }
            },
        }
    }
}

async fn list_skills(library: &dyn Library) -> Result<(), CommandError> {
    let skills = library.skills().await.map_err(CommandError::findings)?;
    let lines: Vec<&str> = skills.iter().map(|skill| skill.line.as_str()).collect();
    let page = if lines.is_empty() { "no skills\n".to_owned() } else { lines.join("\n") + "\n" };
    output::content(&output::sanitize(&page))
}

impl From<WorkspaceError> for CommandError {
    fn from(error: WorkspaceError) -> Self {
        Self::input(&error).with_code(error.code()).hint(error.help())
    }
}
