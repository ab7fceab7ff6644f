//! `savoir workflow`: runs or checks a workflow file.

mod installed_skills;

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
};

use savoir_flow::{
    event::Emitter,
    services::{Services, TimeLimits},
    workflow::{
        CodePolicy, DISABLED, Features, HttpPolicy, NoJournal, WorkflowHost, WorkflowRun,
        file::{self, WorkflowFile},
        graph::NodeKind,
        run_to_end,
    },
};
use savoir_knowledge::Knowledge;
use savoir_model::Models;
use savoir_store::Checkpoint;
use serde_json::json;
use uuid::Uuid;

use self::installed_skills::InstalledSkillLookup;
use crate::{
    error::CommandError,
    events::{self, EventFormat, Printer, RunEnd},
    models,
    output::{self, plural},
    runtime,
    storage_args::StorageArgs,
};

/// Run or check a workflow file
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The file is an export of a server, or only `{\"nodes\": […], \"edges\": […]}`. Skills are looked up by
name among installed skills, knowledge bases in the database. Nodes that send requests or run code
fail unless you allow it.

Examples:
  savoir workflow check triage.json
  savoir workflow run triage.json --input \"The printer is on fire\"
  savoir workflow run fetch.json --input x --allow-http api.example.com --json")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Check whether a workflow can run
    Check {
        /// Workflow file
        file: PathBuf,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Run a workflow
    Run(RunArgs),
}

#[derive(Debug, clap::Args)]
struct RunArgs {
    /// Workflow file
    file: PathBuf,
    /// Input of the workflow
    #[arg(long, short, value_name = "TEXT", default_value = "")]
    input: String,
    /// The model, as provider:model
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Print each event as a line of JSON
    #[arg(long)]
    json: bool,
    /// Print progress, also without a terminal
    #[arg(long, short)]
    verbose: bool,
    /// Let nodes send requests to this host and its subdomains; may be repeated
    #[arg(long, value_name = "HOST")]
    allow_http: Vec<String>,
    /// Let nodes run code, in the sandbox
    #[arg(long)]
    allow_code: bool,
    #[command(flatten)]
    storage_args: StorageArgs,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    match &args.command {
        Command::Check { file, json } => check(file, *json),
        Command::Run(args) => match execute(args) {
            Err(error) if args.json => events::report_failure(error),
            ended => ended,
        },
    }
}

fn read(path: &Path) -> Result<WorkflowFile, CommandError> {
    let shown = path.display();
    let text = fs::read_to_string(path)
        .map_err(|error| CommandError::input(format!("{shown} cannot be read: {error}")))?;
    file::read(&text).map_err(|error| CommandError::findings(format!("{shown}: {error}")))
}

/// Why a run would fail before its first node.
pub(super) fn problem(workflow: &WorkflowFile) -> Option<&'static str> {
    let has_start =
        workflow.graph.nodes().iter().any(|node| matches!(node.work, NodeKind::Start { .. }));
    if !has_start {
        Some("it has no start node")
    } else if workflow.graph.has_cycle() {
        Some("its edges form a cycle")
    } else {
        None
    }
}

fn check(path: &Path, json: bool) -> Result<ExitCode, CommandError> {
    let workflow = match read(path) {
        Ok(workflow) => workflow,
        Err(error) if json => {
            output::json(&json!({"ok": false, "error": error.to_string()}))?;
            return Err(error);
        }
        Err(error) => return Err(error),
    };
    let problem = problem(&workflow);
    let nodes: Vec<_> = workflow.graph.nodes().iter().collect();
    if json {
        let list: Vec<_> =
            nodes.iter().map(|node| json!({"id": node.id, "type": node.work.name()})).collect();
        output::json(&json!({
            "ok": problem.is_none(), "error": problem, "name": workflow.name, "nodes": list,
        }))?;
    } else if problem.is_none() {
        let name = workflow.name.as_deref().unwrap_or("a workflow");
        let text = format!("{name}: {}, all fine\n", plural(nodes.len(), "node"));
        output::text(&output::sanitize(&text))?;
    }
    match problem {
        None => Ok(ExitCode::SUCCESS),
        Some(problem) => Err(CommandError::findings(format!("{}: {problem}", path.display()))),
    }
}

fn execute(args: &RunArgs) -> Result<ExitCode, CommandError> {
    let workflow = read(&args.file)?;
    if let Some(problem) = problem(&workflow) {
        return Err(CommandError::findings(format!("{}: {problem}", args.file.display())));
    }
    let http = HttpPolicy::only(&args.allow_http).map_err(|error| {
        CommandError::input(format!("--allow-http: {error}"))
            .hint("use a host name such as example.com")
    })?;
    let models = models::load_models()?;
    let asks = workflow.graph.nodes().iter().any(|node| asks_model(&node.work));
    runtime::block_on(async {
        if asks {
            // A wrong model name is an error before anything runs.
            models.choose(args.model.as_deref()).await?;
        }
        let host = host(args, models, http).await?;
        follow(args, &workflow, host).await
    })
}

fn asks_model(work: &NodeKind) -> bool {
    matches!(work, NodeKind::Llm(_) | NodeKind::Skill { .. })
}

async fn host(
    args: &RunArgs,
    models: Models,
    http: HttpPolicy,
) -> Result<WorkflowHost, CommandError> {
    let location = args.storage_args.location()?;
    let (database, knowledge) = if location.exists() {
        let (database, storage) = location.open().await?;
        let embedder = models.embedder().cloned();
        (Some(database.clone()), Some(Knowledge::new(database, storage, embedder)))
    } else {
        (None, None)
    };
    Ok(WorkflowHost {
        services: Services {
            models: Arc::new(models),
            knowledge,
            database,
            limits: TimeLimits::default(),
        },
        skill_lookup: Arc::new(InstalledSkillLookup),
        features: Features { http: !args.allow_http.is_empty(), code: args.allow_code },
        http,
        code: CodePolicy::default(),
        agent: None,
    })
}

async fn follow(
    args: &RunArgs,
    workflow: &WorkflowFile,
    host: WorkflowHost,
) -> Result<ExitCode, CommandError> {
    let (out, events) = Emitter::channel();
    let id = Uuid::new_v4().to_string();
    let stem = args.file.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let name = workflow.name.clone().or(stem).unwrap_or_default();
    let run = WorkflowRun {
        workflow_id: &name,
        workflow_name: &name,
        graph: &workflow.graph,
        execution_id: &id,
        input: &args.input,
        model: args.model.as_deref(),
        user: None,
        checkpoint: Checkpoint::default(),
        resumed: false,
    };
    let mut printer = Printer::new(EventFormat::new(args.json, args.verbose));
    let running = async {
        // After an interrupt, the result is not needed.
        let _ = run_to_end(&host, run, &NoJournal, &out).await;
        drop(out);
    };
    let (ended, ()) = tokio::join!(printer.follow(events), running);
    printer.print_sources(&super::kb::Names::new());
    let error = match ended? {
        RunEnd::Completed => return Ok(ExitCode::SUCCESS),
        RunEnd::Stopped => CommandError::findings("the run was stopped").with_code("stopped"),
        RunEnd::Failed(message) => failure(&message).with_code("workflow-failed"),
    };
    // With --json, the error was already an event.
    if args.json { Ok(error.report()) } else { Err(error) }
}

fn failure(message: &str) -> CommandError {
    if message == DISABLED {
        // The message of the engine tells the user to ask an administrator, which does not apply
        // here.
        return CommandError::findings("a node sends a request or runs code, which is not allowed")
            .hint("a code node needs --allow-code, an http node --allow-http HOST");
    }
    CommandError::findings(message)
}
