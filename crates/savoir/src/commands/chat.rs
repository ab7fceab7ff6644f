//! `savoir chat`.

mod hangup;
mod person;

use std::{
    io::{self, IsTerminal as _, Read as _},
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
};

use savoir_engine::{
    Home,
    agent::{
        host_tools::{Autonomy, HostTools, WorkspaceError},
        library::Library,
        skill_tools::{Bench, SkillTools},
        turn::{Agent, Conversation, Forks, TurnLimits},
    },
    event::Emitter,
    services::{Services, TimeLimits},
};

use self::{
    hangup::Hangup,
    person::{Lines, Person},
};
use crate::{
    agent_skills::{AgentSkills, Which},
    error::CommandError,
    events::{self, Ended, Form, Printer},
    kept_log,
    mode::Mode,
    output,
    overheard::{self, Failure},
    runtime, trust, voice,
};

/// Bytes of a question from standard input.
const MOST_QUESTION: u64 = 1 << 20;
/// Tokens that a model must take at once: what it is told of skills and tools, and some words.
const LEAST_CONTEXT: usize = 4_000;

/// Talk to a model that uses your skills, and works in one folder
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  savoir chat                            a conversation, in this folder
  savoir chat --once \"Summarise README.md\"
  git diff | savoir chat                 the question is standard input
  savoir chat --workspace ~/project --model ollama:qwen3
  savoir chat --once \"…\" --json          one event on each line, for programs

While a skill is followed, only the tools that it allows can be called. Commands run in the sandbox,
and you are asked before anything is changed. /skills lists the skills, /quit ends; Ctrl-C ends an
answer.
Exit codes of --once: 0 answered, 1 failed or stopped by a limit, 3 something needed your approval.")]
pub(crate) struct Args {
    /// One question; the answer is printed, and that is all
    #[arg(value_name = "QUESTION")]
    question: Option<String>,
    /// The same, as an option
    #[arg(long, value_name = "QUESTION", conflicts_with = "question")]
    once: Option<String>,
    /// The model, as PROVIDER:MODEL or a name
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// The folder to work in [default: this one]
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,
    /// How often the model is asked for one answer
    #[arg(long, value_name = "N", default_value_t = TurnLimits::default().steps,
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    max_steps: u32,
    /// Tokens that one answer may take, sent and received
    #[arg(long, value_name = "TOKENS", default_value_t = TurnLimits::default().tokens)]
    budget: u64,
    /// Tokens that the model takes at once; what is older is left out
    #[arg(long, value_name = "TOKENS", default_value_t = TurnLimits::default().context,
          value_parser = at_least_a_page)]
    context: usize,
    /// Which tools of skills are offered
    #[arg(long, value_name = "MODE", ignore_case = true, default_value = "Global")]
    mode: Mode,
    /// Do not ask before files of the workspace change and commands run in the sandbox
    #[arg(long)]
    autonomous: bool,
    /// Believe no skill: their tools are asked about each time, and none is carried out apart
    #[arg(long)]
    untrusted: bool,
    /// Print one event on each line
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    match args.question()? {
        None if args.json => Err(CommandError::input("--json needs a question")
            .hint("give one: savoir chat --once \"…\" --json")),
        None => runtime::block_on_to_the_end(converse(args)),
        Some(question) => match runtime::block_on_to_the_end(once(args, &question)) {
            Err(error) if args.json => events::report_failure(error),
            ended => ended,
        },
    }
}

impl Args {
    /// The one question, if there is to be no conversation.
    fn question(&self) -> Result<Option<String>, CommandError> {
        let given = self.once.as_ref().or(self.question.as_ref());
        if given.is_some() || io::stdin().is_terminal() {
            return Ok(given.cloned());
        }
        let mut text = String::new();
        let read = io::stdin().lock().take(MOST_QUESTION).read_to_string(&mut text);
        read.map_err(|error| CommandError::input(format!("the question cannot be read: {error}")))?;
        if text.trim().is_empty() {
            return Err(CommandError::input("there is no question")
                .hint("give one: savoir chat --once \"…\", or run this on a terminal"));
        }
        Ok(Some(text))
    }

    fn limits(&self) -> TurnLimits {
        let (steps, tokens, context) = (self.max_steps, self.budget, self.context);
        TurnLimits { steps, tokens, context, ..TurnLimits::default() }
    }
}

/// Fewer tokens than what a model is told at the beginning are of no use.
fn at_least_a_page(text: &str) -> Result<usize, String> {
    let count = text.parse::<usize>().map_err(|error| error.to_string())?;
    if count < LEAST_CONTEXT {
        return Err(format!("a conversation needs {LEAST_CONTEXT} tokens at least"));
    }
    Ok(count)
}

/// An agent and what is needed around it.
struct Talk {
    agent: Agent,
    host: Arc<HostTools>,
    conversation: Conversation,
    failure: Failure,
    form: Form,
}

impl Talk {
    async fn new(args: &Args, person: Arc<Person>) -> Result<Self, CommandError> {
        let models = voice::from_settings()?;
        let (models, failure) = overheard::choose(&models, args.model.as_deref()).await?;
        let home = Home::from_environment()?;
        kept_log::start(&home, "chat");
        let ground = trust::ground(&home)?;
        let folder = args.workspace.as_deref().unwrap_or(Path::new("."));
        let autonomy = if args.autonomous { Autonomy::InWorkspace } else { Autonomy::Asks };
        let host = HostTools::new(folder, &ground, person.clone(), autonomy)?;
        let which = Which { project: args.workspace.clone(), ..Which::default() };
        let skills = AgentSkills::new(which, home.clone())?;
        let skills = Arc::new(if args.untrusted { skills.untrusted() } else { skills });
        // A model that could change a skill would change what the skill allows it.
        let found = skills.folders().map_err(|error| CommandError::input(&error))?;
        let host = Arc::new(host.keeping(found.places().map(|(_, place)| place)));
        let library = Arc::clone(&skills);
        let bench = Bench {
            subjects: skills,
            asker: person,
            home,
            ground: host.ground().clone(),
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
            user: None,
            library,
            skill_tools: Some(Arc::new(SkillTools::new(bench))),
            tools: vec![Arc::clone(&host) as _],
            limits: args.limits(),
            forks: if args.untrusted { Forks::Told } else { Forks::Apart },
        };
        let form = Form::new(args.json, false);
        Ok(Self { agent, host, conversation: Conversation::default(), failure, form })
    }

    /// One answer, until it is over or somebody interrupts it.
    async fn turn(&mut self, message: &str) -> Result<(Ended, Printer), CommandError> {
        let (out, events) = Emitter::channel();
        let mut printer = Printer::new(self.form);
        let Self { agent, conversation, .. } = self;
        let answering = async move {
            // Who interrupts it does not listen any more.
            let _ = agent.answer(conversation, message, &out).await;
        };
        let (ended, ()) = tokio::join!(printer.follow(events), answering);
        Ok((ended?, printer))
    }

    fn error(&self, message: String) -> CommandError {
        self.failure.take().unwrap_or_else(|| CommandError::findings(message).named("turn-failed"))
    }
}

async fn once(args: &Args, question: &str) -> Result<ExitCode, CommandError> {
    let hangup = Hangup::listen()?;
    let mut talk = Talk::new(args, Arc::new(Person::of_terminal())).await?;
    let turn = tokio::select! {
        turn = talk.turn(question) => turn,
        () = hangup.heard() => Ok((Ended::Stopped, Printer::new(talk.form))),
    };
    talk.host.settled().await;
    let (ended, printer) = turn?;
    let error = match ended {
        Ended::Well => match printer.unapproved() {
            None => return Ok(ExitCode::SUCCESS),
            Some(tool) => CommandError::refused(format!(
                "`{tool}` needed approval, and was not run"
            ))
            .named("approval-needed")
            .hint("run it on a terminal, or with --autonomous for what stays in the workspace")
            .hint("tools of skills are approved with: savoir approve SKILL"),
        },
        Ended::Stopped => stopped(),
        Ended::Failed(message) => talk.error(message),
    };
    // A program was told by an event; no other document follows.
    if args.json { Ok(error.report()) } else { Err(error) }
}

fn stopped() -> CommandError {
    CommandError::findings("the answer was stopped").named("stopped")
}

/// Goes on until the person ends it.
async fn converse(args: &Args) -> Result<ExitCode, CommandError> {
    let hangup = Hangup::listen()?;
    let lines = Arc::new(Lines::of_terminal());
    let mut talk = Talk::new(args, Arc::new(Person::at(Arc::clone(&lines)))).await?;
    output::note("Ask something. /skills lists the skills, /quit ends, Ctrl-C ends an answer.");
    let ended = tokio::select! {
        ended = talk_on(&mut talk, &lines) => ended,
        () = hangup.heard() => Err(stopped()),
    };
    talk.host.settled().await;
    ended
}

async fn talk_on(talk: &mut Talk, lines: &Lines) -> Result<ExitCode, CommandError> {
    loop {
        let Some(line) = lines.ask("> ").await else { return Ok(ExitCode::SUCCESS) };
        match line.trim() {
            "" => {}
            "/quit" | "/exit" => return Ok(ExitCode::SUCCESS),
            "/skills" => list_skills(&*talk.agent.library).await?,
            word if word.starts_with('/') && !word.contains(' ') => {
                output::note(&format!("there is no {word}; there are /skills and /quit"));
            }
            message => match talk.turn(message).await?.0 {
                Ended::Well => {}
                Ended::Stopped => output::note("stopped"),
                Ended::Failed(message) => {
                    // The conversation goes on.
                    let _ = talk.error(message).report();
                }
            },
        }
    }
}

async fn list_skills(library: &dyn Library) -> Result<(), CommandError> {
    let skills = library.skills().await.map_err(CommandError::findings)?;
    let lines: Vec<&str> = skills.iter().map(|skill| skill.line.as_str()).collect();
    let page = if lines.is_empty() { "no skills\n".to_owned() } else { lines.join("\n") + "\n" };
    output::content(&output::harmless(&page))
}

impl From<WorkspaceError> for CommandError {
    fn from(error: WorkspaceError) -> Self {
        Self::input(&error).named(error.code()).hint(error.help())
    }
}
