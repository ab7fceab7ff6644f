//! `savoir run`: runs a tool of a skill in the sandbox, or sends its prompt to a model.

mod approval;
mod tool_events;

use std::{
    cell::Cell,
    collections::BTreeSet,
    fmt::Write as _,
    io::{self, IsTerminal as _},
    path::Path,
    process::ExitCode,
    time::Duration,
};

use clap_complete::engine::ArgValueCompleter;
use savoir_engine::{
    Fault, Home, RunError,
    approval::{Approvals, ExtraGrants, Trust, shell_word},
    call,
    envelope::{Envelope, Stream},
    loaded_skill::LoadedSkill,
    manifest,
    record::{RunRecord, RunRecords},
    run::{
        Call, CallInput, Denial, FinishedRun, RunPlan, RunUpdate, Stdin, invalid_skill_record,
        is_script_name, plan, refusal_record,
    },
    run_environment::RunEnvironment,
    session::{ApprovalDuration, Session},
};
use savoir_sandbox::{Refusal, Verdict};
use savoir_skill::{Reading, Skill};
use serde_json::{Map, Value};

#[cfg(feature = "server")]
use crate::events::{self, EventFormat};
use crate::{
    ask,
    commands::{
        prompt::{self, Use},
        record::{self, Output, Recorder},
        run::{
            approval::{declined_error, not_approved_error},
            tool_events::ToolEvents,
        },
    },
    completion,
    error::CommandError,
    extra_grants::ExtraGrantsArgs,
    gibberish_mode::GibberishMode,
    install_context::{self, Consent},
    load::{self, Loaded},
    lookup::{self, Fetched, SkillTarget},
    lost_files, missing_package, output, screen, trust,
};

/// Exit code that shells use for a program that Ctrl-C ended.
const INTERRUPTED: u8 = 130;
/// Exit code of `timeout`.
const TIMED_OUT: u8 = 124;

/// Run a tool of a skill in the sandbox, or send its prompt to a model
#[derive(Debug, clap::Args)]
#[command(after_help = "\
SKILL/TOOL runs a tool of the skill, or a script in its folder. SKILL alone runs its only tool, or
sends its prompt to a model if it has no tools; `savoir render` only prints the prompt.

Examples:
  savoir run examples/git-helper/git_log --param count=3
  savoir run examples/hello-world/say_hello --param name=Ada --json
  savoir run my-skill/scripts/fill.py form.pdf        put arguments that start with - after --
  savoir run pdf/fill_form --param form=a.pdf         an installed skill
  savoir run github:owner/repo/skill                  try a skill once, without installing it
  savoir run article-summary --input article=\"$(cat article.txt)\" --model openai:gpt-4o

Standard input is passed to the program. Exit codes: that of the program; 124 timeout, 130 Ctrl-C.
If no program was started: 1 failed, 2 wrong usage, 3 refused.")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct Args {
    /// Folder, name or source (such as github:owner/repo/skill) of a skill, and optionally /TOOL
    #[arg(value_name = "SKILL[/TOOL]", add = ArgValueCompleter::new(completion::skills_and_paths))]
    target: String,
    /// Parameter of the tool; may be repeated
    #[arg(long = "param", short, value_name = "NAME=VALUE", value_parser = parse_pair)]
    params: Vec<(String, String)>,
    /// All parameters as one JSON object
    #[arg(long, value_name = "JSON", conflicts_with = "params")]
    params_json: Option<String>,
    /// Input of the prompt; may be repeated
    #[arg(long = "input", short, value_name = "NAME=VALUE", value_parser = parse_pair)]
    inputs: Vec<(String, String)>,
    /// Run the code blocks of the prompt in the sandbox
    #[arg(long)]
    exec_fences: bool,
    /// Model for the prompt, as provider:model
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Show progress while a model answers, even without a terminal
    #[arg(long, short)]
    verbose: bool,
    /// Print the result as JSON; for a prompt, one line of JSON per event
    #[arg(long, default_value_if("events", clap::builder::ArgPredicate::IsPresent, "true"))]
    json: bool,
    /// Print one line of JSON per event: progress, output, and the result or the error
    #[arg(long)]
    events: bool,
    /// Mode, for skills that declare modes [default: Global, or the first mode of the skill]
    #[arg(long, value_name = "MODE", ignore_case = true)]
    mode: Option<GibberishMode>,
    /// Approve this run once; a refused run prints its fingerprint
    #[arg(long, value_name = "FINGERPRINT")]
    approve: Option<String>,
    /// Run with almost all permissions, and print those that the tool needs
    #[arg(long)]
    record: bool,
    /// Write the recorded permissions into the skill's file
    #[arg(long, requires = "record")]
    write: bool,
    /// Time limit of the program
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
    timeout: Option<u32>,
    /// Treat the skill as untrusted
    #[arg(long)]
    untrusted: bool,
    /// Run a skill that is downloaded for this run without confirmation
    #[arg(long, short)]
    yes: bool,
    /// Run this skill although the scan blocks it; may be repeated
    #[arg(long, value_name = "NAME")]
    allow_blocked: Vec<String>,
    /// Arguments passed to the script; put those that start with - after --
    #[arg(value_name = "ARGUMENTS")]
    words: Vec<String>,
    #[command(flatten)]
    extra_grants: ExtraGrantsArgs,
}

pub(super) fn parse_pair(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write it as NAME=VALUE")?;
    if name.is_empty() {
        return Err("the name before `=` is empty".to_owned());
    }
    Ok((name.to_owned(), value.to_owned()))
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    let result = start(args);
    // With --json, every error is printed as one JSON document.
    if let Err(error) = &result
        && args.json
        && let Some(code) = error.code()
    {
        if args.events {
            tool_events::error(error)?;
            return result;
        }
        output::json(&Envelope::failed(code, error.to_string(), Duration::ZERO))?;
    }
    result
}

fn start(args: &Args) -> Result<ExitCode, CommandError> {
    let home = Home::from_environment()?;
    let early = |code: &'static str, error: CommandError| error.with_code(code);
    let SkillTarget { skill, tool } =
        lookup::target(&args.target).map_err(|error| early("no-skill", error))?;
    let loaded = load::load(&skill, None).map_err(|error| early("skill-unreadable", error))?;
    load::require_usable(&loaded).map_err(|error| early("skill-invalid", error))?;
    let fetched = skill.fetched.as_ref();
    if let Some(error) = unused_consent(args, fetched.is_some()) {
        return Err(error.with_code("invalid-call"));
    }
    let mut trust = if args.untrusted { Trust::Untrusted } else { Trust::User };
    if let Some(fetched) = fetched {
        trust = Trust::Untrusted;
        let ready = fetched.ready(&trust::trust_store_for_run()?)?;
        Consent::to_blocked(&args.allow_blocked).refuse_blocked(std::slice::from_ref(&ready))?;
        output::print_to_stderr(&install_context::describe_skill(&ready));
    }
    let loaded_skill = match trust::load_skill(&loaded, trust, &trust::trust_store_for_run()?) {
        Ok(loaded_skill) => loaded_skill,
        Err(error) => {
            if error.fault == Fault::Refused {
                store_record(
                    &home,
                    &mut mismatched_signature_record(&loaded, tool.as_deref(), &error),
                );
            }
            return Err(error.into());
        }
    };
    trust::refuse_forbidden(&loaded_skill, fetched.map(|fetched| fetched.origin.as_str()))?;
    let run_env = trust::run_env(&home)?;
    let approvals = Approvals::new(&home);
    let extra = approvals.extra_for(loaded_skill.path())?.and(&args.extra_grants.extra_grants()?);
    let context = RunContext {
        args,
        home: &home,
        loaded_skill: &loaded_skill,
        fetched,
        user_home: &run_env.home,
        again: Cell::new(None),
        events: args.events.then(ToolEvents::default),
        is_approved_for_later: Cell::new(false),
    };
    let tool = tool.map(|tool| script_of(&loaded_skill, tool)).or_else(|| only_tool(&loaded_skill));
    let ended = context.run_target(tool.as_deref(), &run_env, &extra, &loaded.reading);
    let path = shell_word(&loaded_skill.path().display().to_string());
    let ended = ended.map_err(|error| error.naming_skill(&path));
    if tool.is_none() && loaded_skill.skill.tools.is_empty() {
        context.report_prompt_failure(ended)
    } else {
        ended
    }
}

/// Rejects options that do not apply to an installed skill, or to one that is not installed.
fn unused_consent(args: &Args, is_fetched: bool) -> Option<CommandError> {
    let wrong = |what: &str| {
        CommandError::input(format!(
            "{what} only applies to a skill that is downloaded for this run, such as owner/repo"
        ))
    };
    if is_fetched {
        let hint = "install it first";
        let message = "--write only applies to an installed skill";
        return args.write.then(|| CommandError::input(message).hint(hint));
    }
    if args.yes {
        return Some(
            wrong("--yes").hint("to approve a skill on this machine: savoir approve SKILL"),
        );
    }
    (!args.allow_blocked.is_empty()).then(|| wrong("--allow-blocked"))
}

/// The record of a run that was refused because the skill does not match its signature.
fn mismatched_signature_record(loaded: &Loaded, tool: Option<&str>, error: &RunError) -> RunRecord {
    let folder = loaded.folder.as_ref().map(savoir_skill::Folder::root);
    let path = folder.unwrap_or(&loaded.path);
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    invalid_skill_record(&loaded.reading.skill, &path, tool, error)
}

fn store_record(home: &Home, record: &mut RunRecord) {
    if let Err(error) = RunRecords::new(home).add(record) {
        warn_not_recorded(&error);
    }
}

fn warn_not_recorded(error: &dyn std::fmt::Display) {
    output::note(&format!("the run could not be recorded: {error}"));
}

/// The path of a script that was named without its folder, if there is only one of that name.
fn script_of(loaded_skill: &LoadedSkill, name: String) -> String {
    let LoadedSkill { skill, .. } = loaded_skill;
    if name.contains('/') || call::find_tool(skill, &name).is_ok() {
        return name;
    }
    let is_meant = |path: &&String| Path::new(path.as_str()).file_name() == Some(name.as_ref());
    match skill.resources.iter().filter(is_meant).collect::<Vec<_>>().as_slice() {
        [only] => (*only).clone(),
        _ => name,
    }
}

fn only_tool(loaded_skill: &LoadedSkill) -> Option<String> {
    match loaded_skill.skill.tools.as_slice() {
        [only] => Some(only.name.clone()),
        _ => None,
    }
}

fn several_tools(target: &str, loaded_skill: &LoadedSkill) -> CommandError {
    let names: Vec<_> = loaded_skill.skill.tools.iter().map(|tool| tool.name.as_str()).collect();
    let example = names.first().copied().unwrap_or_default();
    CommandError::input(format!(
        "{} has several tools: {}",
        loaded_skill.skill.name,
        names.join(", ")
    ))
    .hint(format!("name one: savoir run {}/{example}", target.trim_end_matches('/')))
}

/// The context that all ways to run a skill share.
pub(super) struct RunContext<'a> {
    args: &'a Args,
    home: &'a Home,
    pub(super) loaded_skill: &'a LoadedSkill,
    /// Set if the skill is not installed and was downloaded for this run.
    fetched: Option<&'a Fetched>,
    user_home: &'a Path,
    /// Set with --events.
    events: Option<ToolEvents>,
    /// The answer to the question whether to repeat a failed run with more permissions.
    again: Cell<Option<ApprovalDuration>>,
    /// Whether the permissions of the last run are approved for later runs as well.
    is_approved_for_later: Cell<bool>,
}

impl RunContext<'_> {
    fn run_target(
        &self,
        tool: Option<&str>,
        run_env: &RunEnvironment,
        extra: &ExtraGrants,
        reading: &Reading,
    ) -> Result<ExitCode, CommandError> {
        if let Some(error) = self.unused_options(tool) {
            return Err(error.with_code("invalid-call"));
        }
        if let (Some(tool), Some(error)) = (tool, self.not_in_mode()) {
            return self.refuse(Some(tool), error);
        }
        match tool {
            Some(tool) => self.run_tool(tool, run_env, extra, reading),
            None if !self.loaded_skill.skill.tools.is_empty() => {
                Err(several_tools(&self.args.target, self.loaded_skill).with_code("tool-not-named"))
            }
            None if !self.args.exec_fences => {
                self.agree_to_prompt()?;
                let ran = prompt::run(self, &self.args.inputs, Use::AskModel, run_env, extra);
                ran.map_err(|error| self.scripts().into_iter().fold(error, CommandError::hint))
            }
            None => {
                let recorder = self.args.record.then(|| self.recorder(run_env, extra, reading));
                prompt::run(self, &self.args.inputs, Use::RunCode(recorder), run_env, extra)
            }
        }
    }

    /// A hint for users who wanted to run a script of the skill.
    fn scripts(&self) -> Option<String> {
        let is_script = |path: &&String| path.starts_with("scripts/") && is_script_name(path);
        let first = self.loaded_skill.skill.resources.iter().find(is_script)?;
        let skill = shell_word(self.args.target.trim_end_matches('/'));
        Some(format!("to run one of its scripts: savoir run {skill}/{}", shell_word(first)))
    }

    fn run_tool(
        &self,
        tool: &str,
        run_env: &RunEnvironment,
        extra: &ExtraGrants,
        reading: &Reading,
    ) -> Result<ExitCode, CommandError> {
        let (input, mode) = (self.input(tool)?, self.mode());
        let call = Call { loaded_skill: self.loaded_skill, tool, input, run_env, mode, extra };
        match plan(&call) {
            Ok(plan) if self.args.record => {
                record::run(self.recorder(run_env, extra, reading), self.within_timeout(plan))
            }
            Ok(plan) => self.run_and_offer(&call, plan),
            Err(error) if error.code == "missing-parameter" => {
                Err(CommandError::from(error).hint("pass a parameter with --param NAME=VALUE"))
            }
            Err(error) => self.refuse(Some(tool), error),
        }
    }

    fn recorder<'a>(
        &'a self,
        run_env: &'a RunEnvironment,
        extra: &'a ExtraGrants,
        reading: &'a Reading,
    ) -> Recorder<'a> {
        let output = if self.args.write { Output::File } else { Output::Print };
        Recorder { context: self, run_env, extra, reading, output }
    }

    /// Asks before a model reads the prompt of a skill that is not installed.
    fn agree_to_prompt(&self) -> Result<(), CommandError> {
        let Some(fetched) = self.fetched.filter(|_| !self.args.yes) else { return Ok(()) };
        if !ask::can_ask() {
            return Err(not_approved_error(fetched));
        }
        match ask::line("Send its text to the model? [y]es, [N]o: ", &ask::yes_or_no)? {
            Some(true) => Ok(()),
            _ => Err(declined_error(&fetched.name)),
        }
    }

    /// With --json, reports the failure of a prompt as an event, unless --exec-fences is set.
    fn report_prompt_failure(
        &self,
        ended: Result<ExitCode, CommandError>,
    ) -> Result<ExitCode, CommandError> {
        match ended {
            #[cfg(feature = "server")]
            Err(error) if self.args.json && !self.args.exec_fences => events::report_failure(error),
            ended => ended,
        }
    }

    /// Rejects options that do not apply to the target.
    fn unused_options(&self, tool: Option<&str>) -> Option<CommandError> {
        let Args { params, params_json, inputs, exec_fences, record, words, model, .. } = self.args;
        let has_params = !params.is_empty() || params_json.is_some();
        let is_script = tool.is_some_and(|tool| self.is_script(tool));
        let is_tool = |tool: &str| call::find_tool(&self.loaded_skill.skill, tool).is_ok();
        if tool.is_some_and(|tool| !is_script && !is_tool(tool)) {
            // The run fails because there is no such tool, whatever the arguments are.
            return None;
        }
        if let Some(word) = words.first().filter(|_| !is_script) {
            let message = format!("arguments such as `{word}` are for a script");
            return Some(CommandError::input(message).hint(self.options_for(words, tool)));
        }
        let unused = match tool {
            Some(_) if !inputs.is_empty() => "--input is for the prompt of a skill",
            Some(_) if *exec_fences => "--exec-fences is for the prompt of a skill",
            Some(_) if model.is_some() => "--model is for the prompt of a skill",
            None if *exec_fences && model.is_some() => "--model has no effect with --exec-fences",
            Some(_) if has_params && is_script => "--param is for a tool, and this is a script",
            None if has_params => "--param is for a tool",
            None if *record && !*exec_fences => "--record is for a tool or for code blocks",
            _ => return None,
        };
        let has_tools = !self.loaded_skill.skill.tools.is_empty();
        let hint = match tool {
            None if *record && !has_tools => {
                "to record the code blocks of the prompt, add --exec-fences; to record a script, \
                 name it: SKILL/scripts/x.sh"
                    .to_owned()
            }
            Some(_) if is_script => "pass arguments to a script after its path".to_owned(),
            tool => self.options_for(&[], tool),
        };
        Some(CommandError::input(unused).hint(hint))
    }

    /// How to pass values to a tool or a prompt; repeats the typed arguments if they are NAME=VALUE.
    fn options_for(&self, words: &[String], tool: Option<&str>) -> String {
        let tools: Vec<_> = self.loaded_skill.skill.tools.iter().map(|tool| &*tool.name).collect();
        let (option, hint) = match (tool, tools.as_slice()) {
            (Some(_), _) => ("--param", "pass parameters of a tool with --param".to_owned()),
            (None, []) => ("--input", "pass inputs of a prompt with --input".to_owned()),
            (None, tools) => return format!("name a tool: {}", tools.join(", ")),
        };
        if words.is_empty() || words.iter().any(|word| parse_pair(word).is_err()) {
            return hint;
        }
        let named = words.iter().map(|word| format!("{option} {}", shell_word(word)));
        named.collect::<Vec<_>>().join(" ")
    }

    /// Returns an error from before the planning. Refusals are recorded nevertheless.
    pub(super) fn refuse(
        &self,
        tool: Option<&str>,
        error: RunError,
    ) -> Result<ExitCode, CommandError> {
        if error.fault == Fault::Refused {
            self.store_record(&mut refusal_record(self.loaded_skill, tool, &error));
        }
        Err(error.into())
    }

    /// Whether the name is a file of the skill and not one of its tools.
    fn is_script(&self, name: &str) -> bool {
        let folder = self.loaded_skill.folder.as_deref();
        call::find_tool(&self.loaded_skill.skill, name).is_err()
            && folder.is_some_and(|folder| folder.join(name).is_file())
    }

    fn input(&self, tool: &str) -> Result<CallInput, CommandError> {
        let Args { params, params_json, words, .. } = self.args;
        if self.is_script(tool) {
            return Ok(CallInput::ScriptArguments(words.clone()));
        }
        if tool.contains('/') && call::find_tool(&self.loaded_skill.skill, tool).is_err() {
            let folder = self.loaded_skill.path().display();
            return Err(CommandError::input(format!("the file {tool} does not exist in {folder}"))
                .with_code("unknown-tool")
                .hint("name a script by its path in the skill's folder, or one of its tools"));
        }
        if let Some(text) = params_json {
            let map: Map<String, Value> = serde_json::from_str(text).map_err(|error| {
                CommandError::input(format!("--params-json is not a JSON object: {error}"))
                    .with_code("invalid-json")
                    .hint(r#"write it as '{"name": "value"}'"#)
            })?;
            return Ok(CallInput::Json(map));
        }
        Ok(CallInput::Pairs(params.clone()))
    }

    /// Runs a tool. If it fails after something was denied, the user can allow that and run it again.
    fn run_and_offer(&self, call: &Call<'_>, first: RunPlan) -> Result<ExitCode, CommandError> {
        let (mut plan, mut extra) = (first, call.extra.clone());
        // The hint for later runs includes what the user allowed once.
        let mut all: Vec<Denial> = Vec::new();
        loop {
            plan.stdin = self.stdin();
            // After the output of the program, the first lines are out of sight.
            let notes: Vec<String> = plan
                .warnings
                .iter()
                .filter(|text| text.contains("needs a shell"))
                .cloned()
                .collect();
            if io::stdout().is_terminal() {
                plan.disable_output_buffering();
            }
            let FailedRun { error, denials } = match self.run(self.within_timeout(plan)) {
                Err(failed) => failed,
                Ok(code) => return Ok(code),
            };
            let new: Vec<Denial> = denials.into_iter().filter(|one| !all.contains(one)).collect();
            let can_offer = !self.args.json && ask::is_interactive();
            // If the user does not answer, the failure is reported.
            let offered =
                if can_offer { self.offer_to_allow(&new).unwrap_or_default() } else { None };
            all.extend(new);
            let Some((answer, more)) = offered else {
                let error = self.with_hints(error, &all);
                return Err(notes.into_iter().fold(error, CommandError::hint));
            };
            extra = extra.and(&more);
            self.again.set(Some(answer));
            plan = self.session().plan(&Call { extra: &extra, ..call.clone() })?;
        }
    }

    /// Standard input of the program: a new terminal if this process has one.
    fn stdin(&self) -> Stdin {
        let is_terminal =
            io::stdin().is_terminal() && io::stdout().is_terminal() && io::stderr().is_terminal();
        // A background process must not read from the terminal.
        let is_ahead = rustix::termios::tcgetpgrp(io::stdin())
            .is_ok_and(|group| group == rustix::process::getpgrp());
        let has_own = is_terminal && is_ahead && !self.args.json;
        if has_own { Stdin::Terminal } else { Stdin::Inherited }
    }

    /// Offers to allow what was denied, except for risky permissions, and to run the tool again.
    fn offer_to_allow(
        &self,
        denials: &[Denial],
    ) -> Result<Option<(ApprovalDuration, ExtraGrants)>, CommandError> {
        let allowed: Vec<&Denial> =
            denials.iter().filter(|one| one.option.is_some() && one.risk.is_none()).collect();
        if allowed.is_empty() {
            return Ok(None);
        }
        for (what, risk) in denials.iter().filter_map(|one| Some((&one.what, one.risk?))) {
            output::note(&format!("the sandbox denied {what}, which {}", risk.phrase()));
        }
        let what = |denial: &&Denial| {
            let option = denial.option.as_ref().map(|(name, value)| format!(" ({name} {value})"));
            format!("{}{}", denial.what, option.unwrap_or_default())
        };
        let what: Vec<String> = allowed.iter().map(what).collect();
        output::note(
            "the run failed after something was denied; changes that it made before are not undone",
        );
        // A stored answer approves all permissions of the run, so it is only offered if the user
        // approved the others for later runs, too.
        let is_approved_for_later =
            self.fetched.is_none() && !self.asks_again() && self.is_approved_for_later.get();
        let choices = if is_approved_for_later { "[o]nce, [a]lways, [N]o" } else { "[o]nce, [N]o" };
        let question =
            format!("Allow {}, and run it again? {choices}: ", output::sanitize(&what.join(", ")));
        let meant = |line: &str| match line.trim().to_ascii_lowercase().as_str() {
            "o" | "once" | "y" | "yes" => Some(Some(ApprovalDuration::Once)),
            "a" | "always" if is_approved_for_later => Some(Some(ApprovalDuration::Always)),
            "" | "n" | "no" => Some(None),
            _ => None,
        };
        let agreed = ask::line(&question, &meant)?.flatten();
        let options = allowed.iter().filter_map(|denial| denial.option.as_ref());
        let more = extra_grants_of(options)?;
        Ok(agreed.map(|agreed| (agreed, more)))
    }

    fn with_hints(&self, error: CommandError, denials: &[Denial]) -> CommandError {
        self.hints(denials).into_iter().fold(error, CommandError::hint)
    }

    /// Asks for approval if needed, runs, and prints the result.
    fn run(&self, plan: RunPlan) -> Result<ExitCode, FailedRun> {
        let empty = plan.starts_in_empty_folder().then_some(
            "it cannot see the files in the current folder; to allow that: --allow-read .",
        );
        let finished =
            self.run_quietly(plan, |stream, bytes| self.forward_output(stream, bytes))?;
        let said = finished.record.command.iter().chain([&finished.envelope.output]);
        let said: Vec<&str> = said.map(String::as_str).collect();
        let written = &finished.outcome.files.written_privately;
        if let Some(lost) = lost_files::note(written, self.user_home, &said) {
            output::note(&lost);
        }
        let Envelope { success, output, .. } = &finished.envelope;
        if let (Some(empty), true, true, false) =
            (empty, *success, output.is_empty(), self.args.json)
        {
            output::note(&format!("nothing was printed; {empty}"));
        }
        if finished.envelope.success && !self.args.json {
            for host in unreachable_hosts(&finished) {
                output::note(&format!(
                    "{host} could not be reached; the program got an HTTP error, and did not fail"
                ));
            }
            self.hints(&finished.envelope.denied).iter().for_each(|hint| output::note(hint));
        }
        self.print(&finished).map_err(|error| {
            let denials = finished.envelope.denied.clone();
            // An empty folder is only a guess, so the hint is left out if the sandbox reported
            // denials, or if the program failed for another reason.
            let is_likely = denials.is_empty() && misses_a_file(&finished.envelope);
            let empty = empty.filter(|_| is_likely).map(str::to_owned);
            let unreachable = unreachable_hosts(&finished).into_iter().map(|host| {
                format!("{host} could not be reached; the program got an HTTP error instead")
            });
            let hints = empty.into_iter().chain(self.missing_package(&finished)).chain(unreachable);
            FailedRun { error: hints.fold(error, CommandError::hint), denials }
        })
    }

    /// Prints the result of a failed run, and what the sandbox denied.
    pub(super) fn print_failed(&self, finished: &FinishedRun) -> Result<ExitCode, CommandError> {
        self.print(finished).map_err(|error| {
            let error = self.missing_package(finished).into_iter().fold(error, CommandError::hint);
            self.with_hints(error, &finished.envelope.denied)
        })
    }

    /// A hint on how to declare a package that a script did not find.
    fn missing_package(&self, finished: &FinishedRun) -> Option<String> {
        let Envelope { output, error, .. } = &finished.envelope;
        let said = format!("{output}\n{}", error.as_deref().unwrap_or_default());
        missing_package::hint(&said, self.skill())
    }

    /// Applies --timeout to a plan.
    pub(super) fn within_timeout(&self, mut plan: RunPlan) -> RunPlan {
        if let Some(seconds) = self.args.timeout {
            plan.limit_time(seconds);
        }
        plan
    }

    /// Describes denials, with the command that allows them, except for risky permissions.
    fn hints(&self, denials: &[Denial]) -> Vec<String> {
        let path = shell_word(&self.loaded_skill.path().display().to_string());
        let allow = |options: &str| match self.fetched {
            Some(_) => format!("add{options}"),
            None => format!("savoir approve {path}{options}"),
        };
        let mut options = String::new();
        let mut hints = Vec::new();
        for Denial { what, option, risk, hint: advice } in denials {
            let mut hint = format!("the sandbox denied {what}");
            let words =
                option.as_ref().map(|(name, value)| format!(" {name} {}", shell_word(value)));
            match (words, risk) {
                (Some(words), Some(risk)) => {
                    let allow = allow(&words);
                    let which = risk.phrase();
                    let _ = write!(hint, ", which {which}; only if you trust the skill: {allow}");
                }
                (Some(words), None) => options.push_str(&words),
                (None, _) => hint.extend(advice.map(|advice| format!("; {advice}"))),
            }
            hints.push(hint);
        }
        if !options.is_empty() {
            hints.push(format!("to allow it: {}", allow(&options)));
        }
        hints
    }

    /// Asks for approval if needed, and runs.
    pub(super) fn run_quietly(
        &self,
        plan: RunPlan,
        mut printed: impl FnMut(Stream, &[u8]),
    ) -> Result<FinishedRun, CommandError> {
        for warning in &plan.warnings {
            output::note(warning);
        }
        let decision = self.decide(&plan)?;
        let mut hear = |heard: RunUpdate<'_>| match heard {
            RunUpdate::Progress(line) if self.args.events => tool_events::progress(line),
            RunUpdate::Progress(line) => output::note(line),
            RunUpdate::Printed(stream, bytes) => printed(stream, bytes),
        };
        let ran = self.session().run(plan, decision, &mut hear);
        screen::reset();
        ran.map_err(|error| {
            let is_loading = error.code == "module-not-loaded";
            let text = error.to_string();
            let hint = is_loading.then(|| missing_package::hint(&text, self.skill())).flatten();
            hint.into_iter().fold(error.into(), CommandError::hint)
        })
    }

    fn skill(&self) -> &Skill {
        &self.loaded_skill.skill
    }

    pub(super) fn session(&self) -> Session<'_> {
        Session {
            loaded_skill: self.loaded_skill,
            home: self.home,
            on_record_error: &warn_not_recorded,
        }
    }

    /// The mode of --mode; without it, one in which the tools of the skill can run.
    pub(super) fn mode(&self) -> &str {
        let global = GibberishMode::default().as_str();
        let own = || self.loaded_skill.skill.policy.modes.first().map_or(global, String::as_str);
        match self.args.mode {
            Some(mode) => mode.as_str(),
            None if manifest::is_offered(&self.loaded_skill.skill, global) => global,
            None => own(),
        }
    }

    /// The error if the tools of the skill are not available in the mode of --mode.
    fn not_in_mode(&self) -> Option<RunError> {
        let skill = &self.loaded_skill.skill;
        let mode = self.args.mode?.as_str();
        if manifest::is_offered(skill, mode) {
            return None;
        }
        let modes = &skill.policy.modes;
        let message = format!("the tools of `{}` are not available in the mode {mode}", skill.name);
        let hint = format!(
            "its modes are: {}; use --mode {}",
            modes.join(", "),
            modes.first().map_or("Global", String::as_str)
        );
        Some(RunError::refused("not-in-mode", message).with_hint(hint))
    }

    /// Warns before a model reads the text of an untrusted skill.
    pub(super) fn warn_of_text(&self) {
        trust::warn_of_text(self.loaded_skill.trust);
    }

    pub(super) fn is_json(&self) -> bool {
        self.args.json
    }

    /// Prints the output of a tool as it arrives, unless --json is set.
    pub(super) fn forward_output(&self, stream: Stream, bytes: &[u8]) {
        if let Some(events) = &self.events {
            events.output(stream, bytes);
        } else if !self.args.json {
            screen::pass_on(stream == Stream::Stderr, bytes);
        }
    }

    pub(super) fn home(&self) -> &Home {
        self.home
    }

    pub(super) fn model(&self) -> Option<&str> {
        self.args.model.as_deref()
    }

    #[cfg(feature = "server")]
    pub(super) fn form(&self) -> EventFormat {
        EventFormat::new(self.args.json, self.args.verbose)
    }

    pub(super) fn store_record(&self, record: &mut RunRecord) {
        store_record(self.home, record);
    }

    /// Prints the result of several programs as JSON: one document, or the last event.
    pub(super) fn print_envelope(&self, envelope: &Envelope) -> Result<ExitCode, CommandError> {
        match &self.events {
            Some(events) => events.result(envelope, None)?,
            None => output::json(envelope)?,
        }
        let is_failed = envelope.error.is_some();
        Ok(if is_failed { ExitCode::from(exit_code(envelope)) } else { ExitCode::SUCCESS })
    }

    /// Prints the result of a run. Without --json, the output was printed while it ran.
    pub(super) fn print(&self, finished: &FinishedRun) -> Result<ExitCode, CommandError> {
        let FinishedRun { envelope, value, .. } = finished;
        if let Some(events) = &self.events {
            events.result(envelope, value.as_ref())?;
        } else if self.args.json {
            output::json(envelope)?;
        } else if let Some(value) = value {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            output::content(&format!("{}\n", text.trim_end_matches('\n')))?;
        } else if finished.record.command.is_empty() && !envelope.output.is_empty() {
            // Output that a module printed before it failed.
            output::note(&envelope.output);
        }
        match &envelope.error {
            None => Ok(ExitCode::SUCCESS),
            Some(_) if self.args.json => Ok(ExitCode::from(exit_code(envelope))),
            Some(error) => Err(CommandError::exited(exit_code(envelope), error)),
        }
    }
}

/// Whether a failed run may have looked for a file that it did not find: it printed nothing, or a
/// message about a missing file.
fn misses_a_file(envelope: &Envelope) -> bool {
    const SIGNS: [&str; 9] = [
        "no such file", "filenotfound", "enoent", "not found", "not exist", "cannot find",
        "can't find", "can't open", "not a git repository",
    ];
    let said = format!("{}\n{}", envelope.output, envelope.error.as_deref().unwrap_or_default());
    let said = said.to_lowercase();
    let is_silent =
        envelope.output.trim().is_empty() && envelope.code.as_deref() == Some("command-failed");
    is_silent || SIGNS.iter().any(|sign| said.contains(sign))
}

/// Hosts that the run was allowed to reach but that did not respond.
fn unreachable_hosts(finished: &FinishedRun) -> BTreeSet<&str> {
    let events =
        finished.outcome.hosts.iter().filter(|event| {
            matches!(event.verdict, Verdict::Refused { reason: Refusal::Unreachable })
        });
    events.map(|event| event.host.as_str()).collect()
}

/// A failed run, with the denials of the sandbox.
struct FailedRun {
    error: CommandError,
    denials: Vec<Denial>,
}

impl From<CommandError> for FailedRun {
    fn from(error: CommandError) -> Self {
        Self { error, denials: Vec::new() }
    }
}

/// The permissions that the options of denials allow.
fn extra_grants_of<'a>(
    options: impl Iterator<Item = &'a (&'static str, String)>,
) -> Result<ExtraGrants, CommandError> {
    let mut args = ExtraGrantsArgs::default();
    for (option, value) in options {
        args.add(option, value);
    }
    args.extra_grants()
}

/// The exit code of a failed program, or the one that shells use for a program that was stopped.
pub(super) fn exit_code(envelope: &Envelope) -> u8 {
    match (envelope.exit_code, envelope.code.as_deref()) {
        (Some(code), _) => u8::try_from(code).unwrap_or(1).max(1),
        (None, Some("stopped")) => INTERRUPTED,
        (None, Some("timeout")) => TIMED_OUT,
        (None, _) => 1,
    }
}
