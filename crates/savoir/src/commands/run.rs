//! `savoir run`.

use std::{process::ExitCode, time::Duration};

use savoir_engine::{
    Fault, Home, RunError,
    approval::{
        Approval, Approvals, Fingerprint, Request, Trust, Verdict, Widening, decide, matches_short,
        user_name,
    },
    envelope::Envelope,
    ground::Ground,
    record::{DecisionRecord, ErrorRecord, Record, Records},
    run::{Call, Finished, Given, Plan, plan, refusal_record},
    subject::Subject,
};
use savoir_skill::Reading;
use serde_json::{Map, Value};

use crate::{
    ask::{self, Answer, Choices},
    commands::{
        prompt,
        record::{self, Output},
    },
    error::CommandError,
    load, output,
    target::{self, Target},
    widening::WideningArgs,
};

/// Run a tool of a skill in the sandbox, or print a skill's prompt
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A skill's folder alone prints its prompt, or runs its only tool. What follows the folder is a tool
of the skill, or a script in its folder.

Examples:
  savoir run examples/git-helper/git_log --param count=3
  savoir run examples/hello-world/say_hello --param name=Ada --json
  savoir run my-skill/scripts/fill.py -- form.pdf
  savoir run examples/pull-request-review --input pull_request=https://example.com/pull/1

Exit codes: 0 the tool succeeded, 1 it failed, 2 the call is wrong, 3 refused.")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct Args {
    /// A skill's folder or name, then a slash and the tool
    #[arg(value_name = "SKILL[/TOOL]")]
    target: String,
    /// A parameter of the tool
    #[arg(long = "param", short, value_name = "NAME=VALUE", value_parser = pair)]
    params: Vec<(String, String)>,
    /// All parameters as one JSON object
    #[arg(long, value_name = "JSON", conflicts_with = "params")]
    params_json: Option<String>,
    /// An input of the skill's prompt
    #[arg(long = "input", short, value_name = "NAME=VALUE", value_parser = pair)]
    inputs: Vec<(String, String)>,
    /// Run the code blocks of the prompt, in the sandbox
    #[arg(long)]
    exec_fences: bool,
    /// Print the envelope as JSON
    #[arg(long)]
    json: bool,
    /// The situation, for skills that ask for it
    #[arg(long, value_name = "MODE", default_value = "Global")]
    mode: String,
    /// Agree to exactly this run: the digits that a refusal prints
    #[arg(long, value_name = "FINGERPRINT")]
    approve: Option<String>,
    /// Run with nearly every right, watched, and print the smallest permissions that would do
    #[arg(long)]
    record: bool,
    /// Put these permissions into the skill's file
    #[arg(long, requires = "record")]
    write: bool,
    /// Treat the skill as downloaded from a stranger
    #[arg(long)]
    untrusted: bool,
    /// Words for a script
    #[arg(last = true, value_name = "WORDS")]
    words: Vec<String>,
    #[command(flatten)]
    widening: WideningArgs,
}

pub(super) fn pair(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write it as NAME=VALUE")?;
    if name.is_empty() {
        return Err("the name before `=` is empty".to_owned());
    }
    Ok((name.to_owned(), value.to_owned()))
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    let home = Home::from_environment()?;
    let early = |code, error| args.tell(code, error);
    let Target { skill, tool } =
        target::find(&args.target, &home).map_err(|error| early("no-skill", error))?;
    let loaded = load::load(&skill, None).map_err(|error| early("skill-unreadable", error))?;
    load::require_usable(&loaded).map_err(|error| early("skill-invalid", error))?;
    let trust = if args.untrusted { Trust::Untrusted } else { Trust::User };
    let folder = loaded.folder.as_ref().map(savoir_skill::Folder::root);
    let subject = Subject::new(&loaded.reading, &loaded.path, folder, trust)
        .map_err(|error| early("skill-unreadable", CommandError::input(error)))?;
    let ground = Ground::here()
        .map_err(|error| CommandError::input(format!("this folder cannot be used: {error}")))?
        .keeping(&home);
    let approvals = Approvals::new(&home);
    let given = args.widening.widening()?;
    let extra = if given.is_empty() { approvals.extra_for(subject.path())? } else { given };
    let door = Door { args, home: &home, approvals: &approvals, subject: &subject };
    let tool = tool.or_else(|| only_tool(&subject));
    if let Some(error) = door.unused_options(tool.as_deref()) {
        return Err(early("invalid-call", error));
    }
    match tool {
        Some(tool) => door.run_tool(&tool, &ground, &extra, &loaded.reading),
        None if !subject.skill.tools.is_empty() => {
            Err(early("tool-not-named", several_tools(&args.target, &subject)))
        }
        None => prompt::run(&door, &args.inputs, args.exec_fences, &ground, &extra),
    }
}

impl Args {
    /// Puts an error that comes before everything else into an envelope, too, if one is expected.
    fn tell(&self, code: &'static str, error: CommandError) -> CommandError {
        if self.json {
            let failed = Envelope::failed(code, error.to_string(), Duration::ZERO);
            // The error itself is told on standard error in any case.
            let _ = output::json(&failed);
        }
        error
    }
}

fn only_tool(subject: &Subject) -> Option<String> {
    match subject.skill.tools.as_slice() {
        [only] => Some(only.name.clone()),
        _ => None,
    }
}

fn several_tools(target: &str, subject: &Subject) -> CommandError {
    let names: Vec<_> = subject.skill.tools.iter().map(|tool| tool.name.as_str()).collect();
    let example = names.first().copied().unwrap_or_default();
    CommandError::input(format!("{} has several tools: {}", subject.skill.name, names.join(", ")))
        .hint(format!("name one: savoir run {}/{example}", target.trim_end_matches('/')))
}

/// What all ways to run a skill need.
pub(super) struct Door<'a> {
    args: &'a Args,
    home: &'a Home,
    approvals: &'a Approvals,
    pub(super) subject: &'a Subject,
}

impl Door<'_> {
    fn run_tool(
        &self,
        tool: &str,
        ground: &Ground,
        extra: &Widening,
        reading: &Reading,
    ) -> Result<ExitCode, CommandError> {
        let call = Call {
            subject: self.subject,
            tool,
            given: self.given(tool)?,
            ground,
            mode: &self.args.mode,
            extra,
        };
        match plan(&call) {
            Ok(plan) if self.args.record => {
                let output = if self.args.write { Output::File } else { Output::Print };
                record::run(self, plan, ground, reading, output)
            }
            Ok(plan) => self.run(plan),
            Err(error) => self.turn_away(Some(tool), &error),
        }
    }

    /// Options that mean nothing for what is run are a mistake.
    fn unused_options(&self, tool: Option<&str>) -> Option<CommandError> {
        let Args { params, params_json, inputs, exec_fences, record, .. } = self.args;
        let unused = match tool {
            Some(_) if !inputs.is_empty() => "--input is for the prompt of a skill",
            Some(_) if *exec_fences => "--exec-fences is for the prompt of a skill",
            None if !params.is_empty() || params_json.is_some() => "--param is for a tool",
            None if *record => "--record is for a tool",
            _ => return None,
        };
        let tools: Vec<_> = self.subject.skill.tools.iter().map(|tool| &*tool.name).collect();
        let hint = match (tool, tools.as_slice()) {
            (Some(_), _) => "give parameters of a tool with --param".to_owned(),
            (None, []) => "give inputs of a prompt with --input".to_owned(),
            (None, tools) => format!("name a tool: {}", tools.join(", ")),
        };
        Some(CommandError::input(unused).hint(hint))
    }

    /// Fails before there is a plan; what the rules refused is in the records nevertheless.
    pub(super) fn turn_away(
        &self,
        tool: Option<&str>,
        error: &RunError,
    ) -> Result<ExitCode, CommandError> {
        if error.fault == Fault::Refused {
            self.keep(&mut refusal_record(self.subject, tool, error));
        }
        self.fail(error)
    }

    fn given(&self, tool: &str) -> Result<Given, CommandError> {
        let Args { params, params_json, words, .. } = self.args;
        let is_tool = self.subject.skill.tools.iter().any(|known| {
            known.name == tool || format!("{}/{}", self.subject.skill.name, known.name) == tool
        });
        let folder = self.subject.folder.as_deref();
        if !is_tool && folder.is_some_and(|folder| folder.join(tool).is_file()) {
            return Ok(Given::Words(words.clone()));
        }
        if !is_tool && tool.contains('/') {
            let folder = folder.map(|folder| folder.display().to_string()).unwrap_or_default();
            let error = CommandError::input(format!("there is no file {tool} in {folder}"))
                .hint("name a script by its path in the skill's folder, or one of its tools");
            return Err(self.args.tell("unknown-tool", error));
        }
        if let Some(text) = params_json {
            let map: Map<String, Value> = serde_json::from_str(text)
                .map_err(|error| CommandError::input(format!("--params-json: {error}")))
                .map_err(|error| self.args.tell("invalid-json", error))?;
            return Ok(Given::Json(map));
        }
        Ok(Given::Pairs(params.clone()))
    }

    /// Asks if it must, runs, and prints the envelope.
    fn run(&self, plan: Plan) -> Result<ExitCode, CommandError> {
        let finished = self.run_quietly(plan)?;
        self.print(&finished.envelope)
    }

    /// Asks if it must, and runs.
    pub(super) fn run_quietly(&self, plan: Plan) -> Result<Finished, CommandError> {
        for warning in &plan.warnings {
            output::note(warning);
        }
        let decision = match self.decide(&plan.request)? {
            Ok(decision) => decision,
            Err(refused) => return Err(self.refuse(&plan, refused)?),
        };
        let mut record = plan.record(self.subject);
        record.decision = decision;
        let mut progress = |line: &str| output::note(line);
        match plan.run(self.subject, self.home, &mut progress) {
            Ok(mut finished) => {
                finished.record.decision = record.decision;
                self.keep(&mut finished.record);
                Ok(finished)
            }
            Err(error) => {
                let (code, message) = (error.code.to_string(), error.message.clone());
                record.error = Some(ErrorRecord { code, message });
                self.keep(&mut record);
                Err(self.failure(&error)?)
            }
        }
    }

    pub(super) fn is_json(&self) -> bool {
        self.args.json
    }

    pub(super) fn home(&self) -> &Home {
        self.home
    }

    /// Prints a prompt, or what its code printed.
    pub(super) fn print_prompt(&self, text: &str) -> Result<ExitCode, CommandError> {
        if self.args.json {
            // All of it: a prompt without its middle is another prompt.
            let output = text.trim_end().to_owned();
            let whole = Envelope { output, ..Envelope::returned(Value::Null, Duration::ZERO) };
            output::json(&whole)?;
        } else {
            output::content(text)?;
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Prints an answer in JSON that fits its schema.
    pub(super) fn print_answer(&self, value: Value) -> Result<ExitCode, CommandError> {
        if self.args.json {
            output::json(&Envelope::returned(value, Duration::ZERO))?;
        } else {
            output::json(&value)?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn decide(
        &self,
        request: &Request,
    ) -> Result<Result<DecisionRecord, CommandError>, CommandError> {
        // A recording has nearly every right: no answer holds for the next one.
        let kept = self.approvals.get(&request.path)?.filter(|_| !self.args.record);
        let fingerprint = Fingerprint::of(request);
        let decided = |verdict: &str, reason: String| DecisionRecord {
            verdict: verdict.to_owned(),
            reason,
            approved_by: (verdict != "run").then(user_name),
        };
        let (reasons, warnings) = match decide(request, kept.as_ref()) {
            Verdict::Run { reason } => return Ok(Ok(decided("run", reason))),
            Verdict::Refuse { reason, help } => {
                return Ok(Err(CommandError::refused(reason).hint(help)));
            }
            Verdict::Ask { reasons, warnings } => (reasons, warnings),
        };
        if let Some(short) = &self.args.approve {
            if matches_short(&fingerprint, short) {
                return Ok(Ok(decided("once", reasons.join("; "))));
            }
            return Ok(Err(CommandError::refused(
                "--approve is for another run, or for what this skill was before",
            )
            .hint(format!("what would run now has the twelve digits {}", fingerprint.short()))));
        }
        if !ask::can_ask() {
            return Ok(Err(self.nobody(request, &fingerprint, &reasons)));
        }
        let choices = if self.args.record { Choices::OnlyOnce } else { Choices::OnceOrAlways };
        match ask::ask(request, &reasons, &warnings, choices)? {
            Answer::Once => Ok(Ok(decided("once", reasons.join("; ")))),
            Answer::Always => {
                self.approvals.keep(Approval::new(request, user_name()))?;
                Ok(Ok(decided("always", reasons.join("; "))))
            }
            Answer::No => {
                let skill = &request.skill;
                Ok(Err(CommandError::refused(format!("{skill} was not run: you declined"))))
            }
        }
    }

    fn nobody(
        &self,
        request: &Request,
        fingerprint: &Fingerprint,
        reasons: &[String],
    ) -> CommandError {
        let path = request.path.display();
        let refused = CommandError::refused(format!(
            "{} needs approval, and there is no terminal to ask on: {}",
            request.skill,
            reasons.join("; ")
        ));
        let additions = self.args.widening.words();
        let once = format!("to agree to this run alone, add: --approve {}", fingerprint.short());
        if request.always_ask || request.trust == Trust::Untrusted {
            refused
                .hint(format!("to see what it may do: savoir approve {path}{additions}"))
                .hint(once)
        } else {
            refused.hint(format!("to approve it: savoir approve {path}{additions}")).hint(once)
        }
    }

    /// Keeps a record of what was not run.
    fn refuse(&self, plan: &Plan, error: CommandError) -> Result<CommandError, CommandError> {
        let mut record = plan.record(self.subject);
        record.decision = DecisionRecord {
            verdict: if error.to_string().ends_with("you declined") {
                "declined"
            } else {
                "refused"
            }
            .to_owned(),
            reason: error.to_string(),
            approved_by: None,
        };
        let message = error.to_string();
        record.error = Some(ErrorRecord { code: "not-approved".to_owned(), message });
        self.keep(&mut record);
        if self.args.json {
            let failed = Envelope::failed("not-approved", error.to_string(), Duration::ZERO);
            output::json(&failed)?;
        }
        Ok(error)
    }

    fn keep(&self, record: &mut Record) {
        if let Err(error) = Records::new(self.home).add(record) {
            output::note(&format!("the run is not in the records: {error}"));
        }
    }

    pub(super) fn fail(&self, error: &RunError) -> Result<ExitCode, CommandError> {
        Err(self.failure(error)?)
    }

    fn failure(&self, error: &RunError) -> Result<CommandError, CommandError> {
        if self.args.json {
            let code = error.code.to_string();
            output::json(&Envelope::failed(code, error.message.clone(), Duration::ZERO))?;
        }
        let failed = match error.fault {
            Fault::Call => CommandError::input(&error.message),
            Fault::Refused => CommandError::refused(&error.message),
            Fault::Failed => CommandError::findings(&error.message),
        };
        Ok(match &error.way_out {
            Some(way_out) => failed.hint(way_out),
            None => failed,
        })
    }

    pub(super) fn print(&self, envelope: &Envelope) -> Result<ExitCode, CommandError> {
        if self.args.json {
            output::json(envelope)?;
        } else {
            output::content(&envelope.output)?;
            if !envelope.output.is_empty() && !envelope.output.ends_with('\n') {
                output::text("\n")?;
            }
        }
        match &envelope.error {
            None => Ok(ExitCode::SUCCESS),
            Some(_) if self.args.json => Ok(ExitCode::from(1)),
            Some(error) => Err(CommandError::findings(error)),
        }
    }
}
