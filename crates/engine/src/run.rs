//! Plans and runs one tool of a skill.
//!
//! [`plan`] works out everything that a run will do, without doing any of it. [`RunPlan::run`] then
//! executes the plan in the sandbox and returns the envelope (the result for the caller) and the
//! record (the log entry). [`refusal_record`] is the record of a call that the rules forbid, and
//! [`invalid_skill_record`] is the record of a call of a skill whose content does not match its
//! signature.

mod action;
mod denied;
pub(crate) mod packages;
mod python;
pub(crate) mod script;
mod terminal;
mod unreachable;
mod variables;

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use savoir_sandbox::{
    Access, CountedMemory, Limits, Network, Outcome, PathGrant, Policy, RecordOpenedFiles, Variable,
};
pub use savoir_skill::render::input_variable;
use savoir_skill::{
    Dialect, Skill,
    command::ArgTemplate,
    dialect::{NetworkDefault, StartFolder, VariableContent},
    permission::{Domain, Level, Tier},
    skill::{Runner, Tool},
    variable_name::is_variable_name,
};
use serde_json::{Map, Value};

use self::{action::CommandInput, denied::Surroundings, packages::Packages, variables::Unseen};
pub use self::{
    action::{Action, Functions, PythonCall},
    denied::Denial,
    python::{Answer, PythonTools},
    script::is_script_name,
};
use crate::{
    approval::{ExtraGrants, Program, Request},
    call,
    cancel::{Cancel, CancelOnDrop},
    envelope::{Envelope, Stream},
    error::RunError,
    grant::{self, Grants, VisibleSecrets},
    home::Home,
    inspect::inspect,
    limits,
    loaded_skill::LoadedSkill,
    protection::{FolderError, GuardedFolders},
    record::{DecisionRecord, ErrorRecord, RunRecord},
    requirements,
    run_environment::RunEnvironment,
    secrets::{Masker, mask},
    structured::Fence,
};

/// Runtimes that reserve far more address space than they use. For these, the memory limit counts
/// data instead of addresses.
const RESERVING_RUNTIMES: [&str; 8] = ["node", "npm", "npx", "deno", "bun", "java", "dotnet", "go"];

/// The arguments of a call.
#[derive(Clone, Debug)]
pub enum CallInput {
    /// Typed by a user, as `name=value`.
    Pairs(Vec<(String, String)>),
    /// A JSON object, sent by a program.
    Json(Map<String, Value>),
    /// Arguments after `--`, for a script of the skill.
    ScriptArguments(Vec<String>),
    /// A code block of the skill. It reads its inputs from environment variables.
    Code {
        fence: Fence,
        /// The values of the inputs, by name.
        inputs: Map<String, Value>,
        /// Files that the caller passed for inputs, which the code may read. Not those of defaults:
        /// the author of the skill chose them.
        files: Vec<PathBuf>,
    },
}

/// One call of a tool, before anything is checked.
#[derive(Clone, Debug)]
pub struct Call<'a> {
    pub loaded_skill: &'a LoadedSkill,
    /// The name of the tool, or the path of a script in the skill's folder.
    pub tool: &'a str,
    pub input: CallInput,
    /// The folder, repository, home and variables of the user who makes the call.
    pub run_env: &'a RunEnvironment,
    /// The mode, a term of the gibb.eri.sh dialect. Dialects may pass it to the tool in a variable.
    pub mode: &'a str,
    /// Permissions that the user grants in addition to those of the skill.
    pub extra: &'a ExtraGrants,
}

/// A run that is fully worked out and not started yet.
#[derive(Debug)]
pub struct RunPlan {
    /// The content of the approval question.
    pub request: Request,
    /// The program or the Python function to start.
    pub action: Action,
    /// The working directory of the tool.
    pub directory: PathBuf,
    /// The sandbox policy. A Python tool adds the files of its interpreter and packages to it.
    pub policy: Policy,
    /// Sentences about problems that do not prevent the run.
    pub warnings: Vec<String>,
    /// The standard input of a command that gets no other input.
    pub stdin: Stdin,
    /// Packages that are installed before the tool starts.
    packages: Packages,
    seconds: u32,
    /// Facts from which denials are explained after the run.
    surroundings: Surroundings,
    /// Stops the run when the caller no longer waits for it.
    cancel: Cancel,
    /// Secrets that the tool can see. They are masked in its output and in the record.
    secrets: VisibleSecrets,
}

/// The standard input of a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stdin {
    /// Nothing.
    #[default]
    Empty,
    /// The standard input of this process. It is copied, so that the program never gets the file
    /// descriptor itself.
    Inherited,
    /// The terminal of this process. The program gets a terminal of its own, for its output, too.
    Terminal,
}

/// Progress and output of a run while it happens.
#[derive(Clone, Copy, Debug)]
pub enum RunUpdate<'a> {
    /// A sentence about long work before the tool starts, such as installing packages.
    Progress(&'a str),
    /// Bytes that the tool has just printed.
    Printed(Stream, &'a [u8]),
}

/// The result of a run.
#[derive(Clone, Debug)]
pub struct FinishedRun {
    pub envelope: Envelope,
    /// The record of the run, without the decision that allowed it.
    pub record: RunRecord,
    /// The end of the process and the accesses that the sandbox observed.
    pub outcome: Outcome,
    /// The complete return value of a Python function.
    pub value: Option<Value>,
}

/// Works out everything that a call will do. Nothing is started, written or installed.
pub fn plan(call: &Call<'_>) -> Result<RunPlan, RunError> {
    let Call { loaded_skill, .. } = call;
    let skill = &loaded_skill.skill;
    let tool = match &call.input {
        CallInput::ScriptArguments(_) | CallInput::Code { .. } => None,
        _ => Some(call::find_tool(skill, call.tool)?),
    };
    let has = |name: &str| {
        call.run_env.is_set(name) || call.run_env.secret(name, loaded_skill.path()).is_some()
    };
    requirements::check_variables(&skill.requirements, has)
        .and_then(|()| requirements::check_system(&skill.requirements, std::env::consts::OS))
        .map_err(RunError::from)?;
    let mut set = Vec::new();
    let mut action = match (tool, &call.input) {
        (None, CallInput::ScriptArguments(words)) => {
            action::script(loaded_skill, call.tool, words)?
        }
        (None, CallInput::Code { fence, .. }) => action::code(fence)?,
        (Some(tool), input) => {
            let arguments = arguments(tool, input)?;
            set = assigned_variables(tool, &arguments)?;
            action::of(loaded_skill, tool, arguments)?
        }
        (None, _) => return Err(RunError::call("unknown-tool", "no tool was named")),
    };
    let packages = packages::needs(loaded_skill, &mut action)?;
    let mut plan = assemble(call, tool, action, set)?;
    plan.packages = packages;
    plan.warnings = warnings(call, tool);
    Ok(plan)
}

/// Sentences about problems of a skill on this machine, for its approval and before each run.
pub fn skill_warnings(loaded_skill: &LoadedSkill, run_env: &RunEnvironment) -> Vec<String> {
    let LoadedSkill { skill, folder, .. } = loaded_skill;
    let requirements = &skill.requirements;
    let path = run_env.variables.iter().find(|(name, _)| name == "PATH");
    let path = path.map_or("", |(_, path)| path.as_str());
    let missing = requirements::check_programs(requirements, path.as_ref()).err();
    let mut warnings: Vec<String> = missing.iter().map(ToString::to_string).collect();
    warnings
        .extend(requirements::find_mismatches(requirements, &requirements::MachineFacts::detect()));
    let folder = folder.as_deref().and_then(Path::file_name).map(|name| name.to_string_lossy());
    if let Some(folder) = folder.filter(|name| **name != *skill.name.trim())
        && skill.dialect == Dialect::GIBBERISH
    {
        warnings.push(format!(
            "the folder of `{}` is called {folder}; gibb.eri.sh loads only skills whose folder has \
             their name",
            skill.name
        ));
    }
    warnings
}

/// Sentences about problems that do not prevent the run, but may make the tool fail or surprise.
fn warnings(call: &Call<'_>, tool: Option<&Tool>) -> Vec<String> {
    let Call { loaded_skill, run_env, .. } = call;
    let mut warnings = skill_warnings(loaded_skill, run_env);
    let unused = packages::unused_node_packages(&loaded_skill.skill);
    if tool.is_some() && !unused.is_empty() {
        let verb = if unused.len() == 1 { "is" } else { "are" };
        warnings.push(format!(
            "{} {verb} not installed, because the skill may not run node; to use npm packages, it \
             declares shell:execute:node",
            unused.join(", ")
        ));
    }
    if let Some(Runner::Command(template)) = tool.map(|tool| &tool.runner) {
        let hint = "put the line into a script of the skill, or use bash -c '…'";
        warnings.extend(template.shell_problems.iter().map(|problem| format!("{problem}: {hint}")));
    }
    warnings
}

fn arguments(tool: &Tool, input: &CallInput) -> Result<Map<String, Value>, RunError> {
    let given = match input {
        CallInput::Pairs(pairs) => call::parse_arguments(tool, pairs)?,
        CallInput::Json(map) => map.clone(),
        CallInput::ScriptArguments(_) | CallInput::Code { .. } => Map::new(),
    };
    Ok(call::check_arguments(tool, &given)?)
}

/// The folder in which the dialect starts a tool.
pub(crate) fn start_directory(loaded_skill: &LoadedSkill, run_env: &RunEnvironment) -> PathBuf {
    match loaded_skill.skill.dialect.running().place {
        StartFolder::Directory => run_env.directory.clone(),
        StartFolder::Repository => run_env.start().to_owned(),
    }
}

/// The variables that a command sets for its program. A command is refused if its arguments could
/// change which program runs.
fn assigned_variables(
    tool: &Tool,
    arguments: &Map<String, Value>,
) -> Result<Vec<(String, String)>, RunError> {
    let Runner::Command(template) = &tool.runner else { return Ok(Vec::new()) };
    let texts = template.program_texts(&tool.parameters);
    if let Some(text) = texts.iter().find(|text| text.executes) {
        return Err(RunError::refused("placeholder-in-program", text.problem())
            .with_hint(format!("edit the command of the skill: {}", text.rewrite)));
    }
    let open =
        |(name, value): &&(String, ArgTemplate)| value.has_variables() && !is_variable_name(name);
    if let Some((name, _)) = template.environment.iter().find(open) {
        let message = format!("the command puts a parameter into {name}, which changes what runs");
        return Err(RunError::refused("placeholder-in-program", message)
            .with_hint("set it to a fixed value in the command of the skill"));
    }
    Ok(template.environment(&tool.name, &tool.parameters, arguments)?)
}

fn assemble(
    call: &Call<'_>,
    tool: Option<&Tool>,
    action: Action,
    set: Vec<(String, String)>,
) -> Result<RunPlan, RunError> {
    let Call { loaded_skill, run_env, extra, .. } = call;
    let skill = &loaded_skill.skill;
    let permissions = grant::effective_permissions(skill, run_env);
    let directory = start_directory(loaded_skill, run_env);
    let mut programs: Vec<PathBuf> =
        action.programs().iter().map(|program| program.path.clone()).collect();
    programs.extend(required_programs(loaded_skill));
    let passed_files = passed_files(call)?;
    let shown_set = set.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>();
    let skill_variables: Vec<_> = skill_variables(call).into_iter().chain(set).collect();
    let grants = Grants {
        permissions: &permissions,
        extra,
        run_env,
        skill: loaded_skill.path(),
        folder: loaded_skill.folder.as_deref(),
        support: &passed_files,
        tier: loaded_skill.tier,
        programs: &programs,
        runs_programs: skill.dialect.running().runs_programs,
        variables: &skill.requirements.env_vars,
        own_variables: &skill_variables,
        directory: &directory,
    };
    let seconds = seconds(loaded_skill);
    let mut policy =
        grants.policy(run_limits(action.programs(), seconds), RecordOpenedFiles::On)?;
    let asks_for_hosts = skill.dialect.running().network == NetworkDefault::Asks;
    if policy.network == Network::None && asks_for_hosts && !forbids_network(skill) {
        // The tool still cannot connect to any host, but the report can list the hosts that it
        // tried.
        policy.network = Network::Hosts(Vec::new());
    }
    let secrets = grant::visible_secrets(&grants, &policy);
    // The root of the sandbox can never be written, so it needs no grant.
    if directory.parent().is_some() && !can_see(&policy, &directory) {
        // Without this grant, a program could write into a folder in memory and report success.
        policy.paths.push(PathGrant::hidden(&directory));
    }
    policy.directory.clone_from(&directory);
    variables::use_environment(extra, &mut policy);
    let protected = grants.protected();
    let mut request = inspect(loaded_skill, run_env, extra);
    request.tool = Some(tool.map_or_else(|| call.tool.to_owned(), |tool| tool.name.clone()));
    request.command = shown_set.into_iter().chain(action.shown()).collect();
    request.tools = Vec::new();
    let texts = variables::author_texts(call, tool, &action);
    let surroundings = Surroundings {
        here: run_env.directory.clone(),
        home: run_env.home.clone(),
        writable: writable(&policy),
        always_protected: grant::always_protected(run_env),
        protected,
        variables: Unseen::of(&texts, run_env, &policy),
        has_network: matches!(policy.network, Network::Hosts(_)),
        texts: texts.into_iter().chain(action.shown()).collect(),
    };
    let (warnings, cancel) = (Vec::new(), Cancel::default());
    let stdin = Stdin::default();
    Ok(RunPlan {
        request,
        action,
        directory,
        policy,
        warnings,
        stdin,
        packages: Packages::None,
        seconds,
        surroundings,
        cancel,
        secrets,
    })
}

/// The files that the caller passed for inputs, except for stored secrets.
fn passed_files(call: &Call<'_>) -> Result<Vec<PathBuf>, RunError> {
    let CallInput::Code { files, .. } = &call.input else { return Ok(Vec::new()) };
    let paths: Vec<PathBuf> = files.iter().map(|file| call.run_env.directory.join(file)).collect();
    let is_secret = |path: &&PathBuf| {
        let real = path.canonicalize().unwrap_or_else(|_| PathBuf::clone(path));
        grant::stored_secrets(call.run_env).any(|folder| real.starts_with(folder))
    };
    match paths.iter().find(is_secret) {
        None => Ok(paths),
        Some(path) => {
            let message = format!("{} is one of your stored secrets", path.display());
            Err(RunError::refused("secret-file", message)
                .with_hint("let the skill declare the variable: savoir secret list"))
        }
    }
}

/// Whether a skill declares that it needs no network.
fn forbids_network(skill: &Skill) -> bool {
    let mut network = skill.permissions.iter().filter(|one| one.domain == Domain::Network);
    network.any(|one| one.level == Level::None)
}

/// Programs that a skill requires, if its dialect allows a skill to run what it requires.
fn required_programs(loaded_skill: &LoadedSkill) -> impl Iterator<Item = PathBuf> {
    let grants = loaded_skill.skill.dialect.running().requirements_grant;
    let names = loaded_skill.skill.requirements.programs.iter().filter(move |_| grants);
    names.filter_map(|name| grant::resolve(name, None).ok()).map(|program| program.path)
}

fn seconds(loaded_skill: &LoadedSkill) -> u32 {
    let LoadedSkill { skill, .. } = loaded_skill;
    let said = skill.policy.timeout;
    said.map_or(skill.dialect.running().seconds, |seconds| {
        seconds.clamp(limits::MIN_TOOL_SECONDS, limits::MAX_TOOL_SECONDS)
    })
}

fn skill_variables(call: &Call<'_>) -> Vec<(String, String)> {
    let Call { loaded_skill, mode, .. } = call;
    let value = |about: VariableContent| match about {
        VariableContent::Name => loaded_skill.skill.name.clone(),
        VariableContent::Folder => loaded_skill.path().to_string_lossy().into_owned(),
        VariableContent::Mode => (*mode).to_owned(),
    };
    let variables = loaded_skill.skill.dialect.running().variables;
    let mut variables: Vec<(String, String)> =
        variables.iter().map(|(name, about)| ((*name).to_owned(), value(*about))).collect();
    // A dialect that defines its own variables does not get these two.
    if variables.is_empty() {
        let folder = |name: &str| (name.to_owned(), value(VariableContent::Folder));
        variables.extend(["SKILL_DIR", "CLAUDE_SKILL_DIR"].map(folder));
    }
    if let CallInput::Code { inputs, .. } = &call.input {
        variables.extend(inputs.iter().map(|(name, value)| {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            (input_variable(name), text)
        }));
    }
    variables
}

/// Whether a run sees the content of a folder, or has a private folder at exactly this path, such
/// as its home and its temporary folder.
fn can_see(policy: &Policy, folder: &Path) -> bool {
    policy.paths.iter().any(|PathGrant { path, access }| match access {
        Access::Scratch | Access::Hidden => path == folder,
        Access::Protected => false,
        _ if !path.exists() => false,
        _ => folder.starts_with(path),
    })
}

/// Files and folders that a run may write.
fn writable(policy: &Policy) -> Vec<PathBuf> {
    let is_writable = |grant: &&PathGrant| grant.access == Access::Write;
    policy.paths.iter().filter(is_writable).map(|grant| grant.path.clone()).collect()
}

fn run_limits(programs: &[Program], seconds: u32) -> Limits {
    let reserves_memory = programs.iter().any(|program| {
        let name = program.path.file_name().map(|name| name.to_string_lossy().into_owned());
        name.is_some_and(|name| RESERVING_RUNTIMES.contains(&name.as_str()))
    });
    Limits {
        wall: Some(Duration::from_secs(seconds.into())),
        // Several threads use processor time in parallel, so the limit is four times the wall
        // clock.
        cpu: Some(u64::from(seconds) * 4),
        counted_memory: if reserves_memory {
            CountedMemory::Data
        } else {
            CountedMemory::AddressSpace
        },
        ..Limits::default()
    }
}

impl RunPlan {
    /// Makes Python print immediately instead of buffering its output.
    pub fn disable_output_buffering(&mut self) {
        let value = Variable::Plain("1".to_owned());
        self.policy.environment.insert("PYTHONUNBUFFERED".to_owned(), value);
    }

    /// Replaces the time limit that the skill or its dialect sets.
    pub fn limit_time(&mut self, seconds: u32) {
        self.seconds = seconds.clamp(limits::MIN_TOOL_SECONDS, limits::MAX_USER_SECONDS);
        self.policy.limits.wall = Some(Duration::from_secs(self.seconds.into()));
        self.policy.limits.cpu = Some(u64::from(self.seconds) * 4);
    }

    /// Returns a guard that stops the run, with all child processes, when it is dropped.
    pub fn cancel_on_drop(&self) -> CancelOnDrop {
        self.cancel.cancel_on_drop()
    }

    /// Installs packages, runs the tool, and moves protected files aside that the tool created.
    /// Calls `report` with progress and output during the run.
    pub fn run(
        mut self,
        loaded_skill: &LoadedSkill,
        home: &Home,
        report: &mut dyn FnMut(RunUpdate<'_>),
    ) -> Result<FinishedRun, RunError> {
        // Without Landlock, the sandbox lacks its second layer, so only signed skills run.
        if loaded_skill.tier == Tier::Experimental && savoir_sandbox::lacks_landlock() {
            return Err(RunError::refused(
                "sandbox-incomplete",
                "this machine has no Landlock, and the skill is unsigned",
            )
            .with_hint("savoir doctor shows which sandbox features this machine supports"));
        }
        let record = self.record(loaded_skill);
        // A tool may put a secret into an exception or a path, so errors and records are masked,
        // too.
        let VisibleSecrets { in_output, in_records } = self.secrets.clone();
        let mut masker = Masker::new(&in_output);
        let mut report_masked = |update: RunUpdate<'_>| match update {
            RunUpdate::Progress(line) => report(RunUpdate::Progress(line)),
            RunUpdate::Printed(stream, bytes) => {
                report(RunUpdate::Printed(stream, &masker.push(stream, bytes)));
            }
        };
        let surroundings = self.surroundings.clone();
        self.install(loaded_skill, home, &mut |line| report_masked(RunUpdate::Progress(line)))?;
        let guarded =
            GuardedFolders::new(&self.policy, &surroundings.protected, &surroundings.home)
                .map_err(folder_failure)?;
        let policy = std::mem::take(&mut self.policy);
        let ran = guarded.run_guarded(policy, |policy| {
            Self { policy, ..self }.execute_action(loaded_skill, home, &mut report_masked)
        });
        let (done, mut moved_files, incomplete_searches) = ran.map_err(folder_failure)?;
        for stream in [Stream::Stdout, Stream::Stderr] {
            let rest = masker.finish(stream);
            if !rest.is_empty() {
                report(RunUpdate::Printed(stream, &rest));
            }
        }
        moved_files.extend(done.iter().flat_map(|done| done.outcome.moved_files.clone()));
        for why in incomplete_searches {
            let line = format!("look yourself for files that other programs obey: {why}");
            report(RunUpdate::Progress(&line));
        }
        for one in moved_files.iter().take(limits::MAX_REPORTED_FILES) {
            report(RunUpdate::Progress(&one.to_string()));
        }
        if let Some(more) =
            moved_files.len().checked_sub(limits::MAX_REPORTED_FILES).filter(|more| *more > 0)
        {
            report(RunUpdate::Progress(&format!("{more} more are in the record: savoir runs")));
        }
        match done {
            Ok(mut done) => {
                done.outcome.moved_files = moved_files;
                done.mask(&in_output, &in_records);
                let mut finished = action::complete(record, done);
                let FinishedRun { envelope, outcome, record, .. } = &mut finished;
                envelope.denied = surroundings.denied(envelope, outcome);
                *record = std::mem::take(record).map_texts(&|text| mask(&in_records, text));
                Ok(finished)
            }
            Err(error) => Err(RunError { message: mask(&in_records, error.message), ..error }),
        }
    }

    /// Installs the packages that the tool needs.
    fn install(
        &mut self,
        loaded_skill: &LoadedSkill,
        home: &Home,
        say: &mut dyn FnMut(&str),
    ) -> Result<(), RunError> {
        check_not_cancelled(&self.cancel)?;
        let packages = std::mem::take(&mut self.packages);
        let Action::Command { program, .. } = &mut self.action else { return Ok(()) };
        let (cancel, policy) = (&self.cancel, &mut self.policy);
        packages.install(
            &mut packages::PackageRun { loaded_skill, home, cancel, policy, program },
            say,
        )?;
        // The installation may have taken minutes, in which the skill can have changed.
        loaded_skill.refuse_changed()?;
        check_not_cancelled(&self.cancel)
    }

    fn execute_action(
        mut self,
        loaded_skill: &LoadedSkill,
        home: &Home,
        report: &mut dyn FnMut(RunUpdate<'_>),
    ) -> Result<action::FinishedAction, RunError> {
        check_not_cancelled(&self.cancel)?;
        match std::mem::take(&mut self.action) {
            Action::None => Err(RunError::call("unknown-tool", "there is nothing to run")),
            Action::Command { program, arguments, input } => {
                let input = match self.stdin {
                    Stdin::Inherited if input.is_empty() => CommandInput::Inherited,
                    Stdin::Terminal if input.is_empty() => CommandInput::Terminal,
                    _ => CommandInput::Text(&input),
                };
                let command = (&program, arguments.as_slice(), input);
                action::run_command(self.policy, command, &self.cancel, report)
            }
            Action::Python(call) => {
                let PythonCall { interpreter, functions, function, arguments } = call;
                let mut tools = PythonTools::load_until(
                    &self.cancel,
                    self.policy,
                    loaded_skill,
                    &interpreter,
                    &functions,
                    home,
                    &mut |line| report(RunUpdate::Progress(line)),
                )?;
                let most = Duration::from_secs(self.seconds.into());
                let answer = match tools.call(&function, &arguments, most) {
                    Answer::Error(_, _, took) if self.cancel.is_cancelled() => {
                        Answer::Error("stopped", action::STOPPED.to_owned(), took)
                    }
                    answer => answer,
                };
                Ok(tools.finish(answer))
            }
        }
    }

    /// Whether the tool sees an empty working directory, because nothing in there is granted.
    pub fn starts_in_empty_folder(&self) -> bool {
        matches!(self.policy.access_to(&self.directory), Some(Access::Scratch | Access::Hidden))
    }

    /// The record of this run, with everything that is known before it starts.
    pub fn record(&self, loaded_skill: &LoadedSkill) -> RunRecord {
        let Request { tool, command, mut permissions, implicit_permissions, .. } =
            self.request.clone();
        permissions.extend(implicit_permissions);
        RunRecord {
            tool,
            command,
            permissions,
            directory: Some(self.directory.clone()),
            policy: serde_json::to_value(&self.policy).unwrap_or_default(),
            ..new_record(loaded_skill)
        }
    }
}

/// Fails if the caller has stopped waiting, so that nothing is started for it.
fn check_not_cancelled(cancel: &Cancel) -> Result<(), RunError> {
    if cancel.is_cancelled() {
        return Err(RunError::cannot_start("stopped", "the caller stopped waiting"));
    }
    Ok(())
}

/// The error for a folder that is granted for writing, but cannot be searched for protected files.
fn folder_failure((code, why): FolderError) -> RunError {
    RunError::refused(code, format!("a folder cannot be opened for writing: {why}"))
        .with_hint("grant a smaller folder with --allow-write")
}

/// A record with the fields that every run of a skill has.
fn new_record(loaded_skill: &LoadedSkill) -> RunRecord {
    let skill = &loaded_skill.skill;
    RunRecord {
        skill: skill.name.clone(),
        version: skill.version.clone(),
        path: loaded_skill.path().to_owned(),
        digest: loaded_skill.digest.clone(),
        dialect: skill.dialect.id().to_owned(),
        trust: loaded_skill.trust,
        tier: loaded_skill.tier,
        permissions: skill.permissions.clone(),
        ..RunRecord::start()
    }
}

/// The record of a prompt that a model answers. No program is executed, so no permissions are used.
pub fn prompt_record(loaded_skill: &LoadedSkill) -> RunRecord {
    let reason = "a model reads its text, and nothing is executed".to_owned();
    let decision = DecisionRecord { verdict: "run".to_owned(), reason, approved_by: None };
    RunRecord { decision, ..new_record(loaded_skill) }
}

/// The record of a call that was refused before it could be planned.
pub fn refusal_record(
    loaded_skill: &LoadedSkill,
    tool: Option<&str>,
    error: &RunError,
) -> RunRecord {
    rejected_record(new_record(loaded_skill), tool, error)
}

/// The record of a call of a skill whose content does not match its signature. Such a skill cannot
/// become a [`LoadedSkill`].
pub fn invalid_skill_record(
    skill: &Skill,
    path: &Path,
    tool: Option<&str>,
    error: &RunError,
) -> RunRecord {
    let record = RunRecord {
        skill: skill.name.clone(),
        version: skill.version.clone(),
        path: path.to_owned(),
        dialect: skill.dialect.id().to_owned(),
        permissions: skill.permissions.clone(),
        ..RunRecord::start()
    };
    rejected_record(record, tool, error)
}

fn rejected_record(record: RunRecord, tool: Option<&str>, error: &RunError) -> RunRecord {
    let (code, message) = (error.code.to_string(), error.message.clone());
    let (verdict, reason) = ("refused".to_owned(), message.clone());
    RunRecord {
        tool: tool.map(str::to_owned),
        decision: DecisionRecord { verdict, reason, approved_by: None },
        error: Some(ErrorRecord { code, message }),
        ..record
    }
}
