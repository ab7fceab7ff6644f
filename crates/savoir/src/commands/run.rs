//! `savoir run`.

use std::{
    io::{self, IsTerminal as _},
    path::Path,
    process::ExitCode,
    time::Duration,
};

use savoir_engine::{
    Fault, Home, RunError,
    approval::{
        Approval, Approvals, Fingerprint, Request, Trust, Verdict, Widening, agrees, decide,
        shell_word, shown, user_name,
    },
    call,
    envelope::{Envelope, Stream},
    ground::Ground,
    record::{DecisionRecord, ErrorRecord, Record, Records},
    run::{
        Call, Denial, Finished, Given, Heard, Plan, Stdin, plan, refusal_record, unsound_record,
    },
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
    events::{self, Form},
    load::{self, Loaded},
    lookup::{self, Fetched, Target},
    mode::Mode,
    output,
    shelf::{self, Consent},
    trust,
    widening::WideningArgs,
};

/// What shells give for a program that Ctrl-C ended.
const INTERRUPTED: u8 = 130;
/// What `timeout` gives.
const TIMED_OUT: u8 = 124;

/// Run a tool of a skill in the sandbox, or have a model answer its prompt
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A skill's folder alone runs its only tool, or puts its prompt to a model; `savoir render` shows the
prompt alone. What follows the folder is a tool of the skill, or a script in its folder.

Examples:
  savoir run examples/git-helper/git_log --param count=3
  savoir run examples/hello-world/say_hello --param name=Ada --json
  savoir run my-skill/scripts/fill.py -- form.pdf
  savoir run pdf/fill_form --param form=a.pdf         an installed skill, by its name
  savoir run github:owner/repo/skill                  try a skill once, without installing it
  savoir run article-summary --input article=\"$(cat article.txt)\" --model openai:gpt-4o

Standard input is passed on to the program. Exit codes: those of the program; 124 it took too long,
130 Ctrl-C. If no program was started: 1 it failed, 2 the call is wrong, 3 refused.")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct Args {
    /// A skill's folder, name or source such as github:owner/repo/skill, then a slash and the tool
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
    /// The model that answers a prompt, as provider:model
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Say what happens while a model answers, also without a terminal
    #[arg(long, short)]
    verbose: bool,
    /// Print the envelope as JSON; of a prompt, each event as a line of JSON
    #[arg(long)]
    json: bool,
    /// The situation, for skills that ask for it
    #[arg(long, value_name = "MODE", ignore_case = true, default_value = "Global")]
    mode: Mode,
    /// Agree to this skill as it is, once: the digits that a refusal prints
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
    /// Try a skill that is not installed without being asked
    #[arg(long, short)]
    yes: bool,
    /// Try this skill although the scanner blocks it
    #[arg(long, value_name = "NAME")]
    allow_blocked: Vec<String>,
    /// Arguments passed to a script
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
    let result = start(args);
    // Whoever asked for JSON gets one document, whatever went wrong and however early.
    if let Err(error) = &result
        && args.json
        && let Some(code) = error.code()
    {
        output::json(&Envelope::failed(code, error.to_string(), Duration::ZERO))?;
    }
    result
}

fn start(args: &Args) -> Result<ExitCode, CommandError> {
    let home = Home::from_environment()?;
    let early = |code: &'static str, error: CommandError| error.named(code);
    let Target { skill, tool } =
        lookup::target(&args.target).map_err(|error| early("no-skill", error))?;
    let loaded = load::load(&skill, None).map_err(|error| early("skill-unreadable", error))?;
    load::require_usable(&loaded).map_err(|error| early("skill-invalid", error))?;
    let fetched = skill.fetched.as_ref();
    if let Some(error) = unused_consent(args, fetched.is_some()) {
        return Err(error.named("invalid-call"));
    }
    let mut trust = if args.untrusted { Trust::Untrusted } else { Trust::User };
    if let Some(fetched) = fetched {
        trust = Trust::Untrusted;
        let ready = fetched.ready(&trust::believed()?)?;
        Consent::to_blocked(&args.allow_blocked).refuse_blocked(std::slice::from_ref(&ready))?;
        output::aside(&shelf::described(&ready));
    }
    let subject = match trust::subject(&loaded, trust, &trust::believed()?) {
        Ok(subject) => subject,
        Err(error) => {
            if error.fault == Fault::Refused {
                keep(&home, &mut unsound(&loaded, tool.as_deref(), &error));
            }
            return Err(error.into());
        }
    };
    trust::refuse_forbidden(&subject, fetched.map(|fetched| fetched.origin.as_str()))?;
    let ground = trust::ground(&home)?;
    let approvals = Approvals::new(&home);
    let extra = approvals.extra_for(subject.path())?.and(&args.widening.widening()?);
    let door = Door {
        args,
        home: &home,
        approvals: &approvals,
        subject: &subject,
        fetched,
        user_home: &ground.home,
    };
    let tool = tool.map(|tool| script_of(&subject, tool)).or_else(|| only_tool(&subject));
    let ended = door.enter(tool.as_deref(), &ground, &extra, &loaded.reading);
    if tool.is_none() && subject.skill.tools.is_empty() { door.tell(ended) } else { ended }
}

/// Options for skills that are tried once mean nothing for those that are here.
fn unused_consent(args: &Args, is_fetched: bool) -> Option<CommandError> {
    let wrong = |what: &str| CommandError::input(format!("{what} is for a skill that is fetched"));
    if is_fetched {
        let hint = "install it first";
        let kept = "--write changes the skill, and nothing of this one is kept";
        return args.write.then(|| CommandError::input(kept).hint(hint));
    }
    if args.yes {
        return Some(wrong("--yes").hint("agree to an installed skill with: savoir approve"));
    }
    (!args.allow_blocked.is_empty()).then(|| wrong("--allow-blocked"))
}

/// What is left of a run whose skill is not what was signed.
fn unsound(loaded: &Loaded, tool: Option<&str>, error: &RunError) -> Record {
    let folder = loaded.folder.as_ref().map(savoir_skill::Folder::root);
    let path = folder.unwrap_or(&loaded.path);
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    unsound_record(&loaded.reading.skill, &path, tool, error)
}

fn keep(home: &Home, record: &mut Record) {
    if let Err(error) = Records::new(home).add(record) {
        output::note(&format!("the run is not in the records: {error}"));
    }
}

fn declined(skill: &str) -> CommandError {
    CommandError::refused(format!("{skill} was not run: you declined"))
}

fn not_agreed(fetched: &Fetched) -> CommandError {
    CommandError::refused(format!(
        "{} is not installed, and there is no terminal to ask on whether to try it",
        fetched.name
    ))
    .hint("when you have read the above, try it once with: -y")
}

/// The path of a script that was named without its folder, if there is only one of that name.
fn script_of(subject: &Subject, name: String) -> String {
    let Subject { skill, .. } = subject;
    if name.contains('/') || call::tool(skill, &name).is_ok() {
        return name;
    }
    let is_meant = |path: &&String| Path::new(path.as_str()).file_name() == Some(name.as_ref());
    match skill.resources.iter().filter(is_meant).collect::<Vec<_>>().as_slice() {
        [only] => (*only).clone(),
        _ => name,
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
    /// The skill, if it was fetched to be tried once.
    fetched: Option<&'a Fetched>,
    /// The user's home.
    user_home: &'a Path,
}

/// Whether a plan may run.
enum Decision {
    Run(DecisionRecord),
    Not { verdict: &'static str, error: CommandError },
}

impl Door<'_> {
    fn enter(
        &self,
        tool: Option<&str>,
        ground: &Ground,
        extra: &Widening,
        reading: &Reading,
    ) -> Result<ExitCode, CommandError> {
        if let Some(error) = self.unused_options(tool) {
            return Err(error.named("invalid-call"));
        }
        match tool {
            Some(tool) => self.run_tool(tool, ground, extra, reading),
            None if !self.subject.skill.tools.is_empty() => {
                Err(several_tools(&self.args.target, self.subject).named("tool-not-named"))
            }
            None if !self.args.exec_fences => {
                self.agree_to_prompt()?;
                prompt::run(self, &self.args.inputs, false, ground, extra)
            }
            None => prompt::run(self, &self.args.inputs, self.args.exec_fences, ground, extra),
        }
    }

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
            mode: self.args.mode.as_str(),
            extra,
        };
        match plan(&call) {
            Ok(plan) if self.args.record => {
                let output = if self.args.write { Output::File } else { Output::Print };
                record::run(self, plan, ground, reading, output)
            }
            Ok(mut plan) => {
                if !io::stdin().is_terminal() {
                    plan.stdin = Stdin::Inherited;
                }
                self.run(plan)
            }
            Err(error) if error.code == "missing-parameter" => {
                Err(CommandError::from(error).hint("give a parameter with --param NAME=VALUE"))
            }
            Err(error) => self.turn_away(Some(tool), error),
        }
    }

    /// Nothing asks before a model reads a prompt; of a skill that was fetched, this does.
    fn agree_to_prompt(&self) -> Result<(), CommandError> {
        let Some(fetched) = self.fetched.filter(|_| !self.args.yes) else { return Ok(()) };
        if !ask::can_ask() {
            return Err(not_agreed(fetched));
        }
        match ask::line("Give its text to the model? [y]es, [N]o: ", &ask::yes_or_no)? {
            Some(true) => Ok(()),
            _ => Err(declined(&fetched.name)),
        }
    }

    /// Tells programs how a prompt failed: they read events, unless its code blocks were to run.
    fn tell(&self, ended: Result<ExitCode, CommandError>) -> Result<ExitCode, CommandError> {
        match ended {
            Err(error) if self.args.json && !self.args.exec_fences => events::report_failure(error),
            ended => ended,
        }
    }

    /// Options that mean nothing for what is run are a mistake.
    fn unused_options(&self, tool: Option<&str>) -> Option<CommandError> {
        let Args { params, params_json, inputs, exec_fences, record, words, model, .. } = self.args;
        let has_params = !params.is_empty() || params_json.is_some();
        let is_script = tool.is_some_and(|tool| self.is_script(tool));
        let unused = match tool {
            Some(_) if !inputs.is_empty() => "--input is for the prompt of a skill",
            Some(_) if *exec_fences => "--exec-fences is for the prompt of a skill",
            Some(_) if model.is_some() => "--model is for the prompt of a skill",
            None if *exec_fences && model.is_some() => "--model is not asked with --exec-fences",
            Some(_) if has_params && is_script => "--param is for a tool, and this is a script",
            Some(_) if !words.is_empty() && !is_script => "words after `--` are for a script",
            None if has_params => "--param is for a tool",
            None if *record => "--record is for a tool",
            None if !words.is_empty() => "words after `--` are for a script",
            _ => return None,
        };
        let tools: Vec<_> = self.subject.skill.tools.iter().map(|tool| &*tool.name).collect();
        let hint = match (tool, tools.as_slice()) {
            (Some(_), _) if is_script => "give words to a script after `--`".to_owned(),
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
        error: RunError,
    ) -> Result<ExitCode, CommandError> {
        if error.fault == Fault::Refused {
            self.keep(&mut refusal_record(self.subject, tool, &error));
        }
        Err(error.into())
    }

    /// Whether it is a file of the skill and none of its tools.
    fn is_script(&self, name: &str) -> bool {
        let folder = self.subject.folder.as_deref();
        call::tool(&self.subject.skill, name).is_err()
            && folder.is_some_and(|folder| folder.join(name).is_file())
    }

    fn given(&self, tool: &str) -> Result<Given, CommandError> {
        let Args { params, params_json, words, .. } = self.args;
        if self.is_script(tool) {
            return Ok(Given::Words(words.clone()));
        }
        if tool.contains('/') && call::tool(&self.subject.skill, tool).is_err() {
            let folder = self.subject.path().display();
            return Err(CommandError::input(format!("there is no file {tool} in {folder}"))
                .named("unknown-tool")
                .hint("name a script by its path in the skill's folder, or one of its tools"));
        }
        if let Some(text) = params_json {
            let map: Map<String, Value> = serde_json::from_str(text).map_err(|error| {
                CommandError::input(format!("--params-json is no JSON object: {error}"))
                    .named("invalid-json")
                    .hint(r#"write it as '{"name": "value"}'"#)
            })?;
            return Ok(Given::Json(map));
        }
        Ok(Given::Pairs(params.clone()))
    }

    /// Asks if it must, runs, and prints the envelope.
    fn run(&self, plan: Plan) -> Result<ExitCode, CommandError> {
        let empty = plan.starts_empty().then_some(
            "it sees none of the files in the folder that you are in: --allow-read . grants them",
        );
        let directory = plan.directory.clone();
        let finished = self.run_quietly(plan, |stream, bytes| self.pass_on(stream, bytes))?;
        let Envelope { success, output, .. } = &finished.envelope;
        if let (Some(empty), true, true, false) =
            (empty, *success, output.is_empty(), self.args.json)
        {
            output::note(&format!("nothing was printed; {empty}"));
        }
        self.print(&finished).map_err(|error| {
            let denials = finished.denials(&directory, self.user_home);
            // Only a guess, so it has to stand back where something is known.
            let empty = empty.filter(|_| denials.is_empty()).map(str::to_owned);
            let hints = self.hints(&denials);
            hints.into_iter().chain(empty).fold(error, CommandError::hint)
        })
    }

    /// What was denied, and the command that allows all of it but secrets.
    fn hints(&self, denials: &[Denial]) -> Vec<String> {
        let mut options = String::new();
        let mut hints = Vec::new();
        for denial in denials {
            match &denial.option {
                Some((option, value)) if denial.is_secret => hints.push(format!(
                    "the sandbox denied {}, which is a secret; only if you trust the skill: {option} {}",
                    denial.what,
                    shell_word(value)
                )),
                Some((option, value)) => {
                    hints.push(format!("the sandbox denied {}", denial.what));
                    options.extend([" ", option, " ", &shell_word(value)]);
                }
                None => hints.push(format!("the sandbox denied {}, and no option allows it", denial.what)),
            }
        }
        if !options.is_empty() {
            let path = shell_word(&self.subject.path().display().to_string());
            hints.push(match self.fetched {
                Some(_) => format!("to allow it, add:{options}"),
                None => format!("to allow it: savoir approve {path}{options}"),
            });
        }
        hints
    }

    /// Asks if it must, and runs.
    pub(super) fn run_quietly(
        &self,
        plan: Plan,
        mut printed: impl FnMut(Stream, &[u8]),
    ) -> Result<Finished, CommandError> {
        for warning in &plan.warnings {
            output::note(warning);
        }
        let mut record = plan.record(self.subject);
        record.decision = match self.decide(&plan.request)? {
            Decision::Run(decision) => decision,
            Decision::Not { verdict, error } => {
                self.keep_refusal(record, verdict, &error);
                return Err(error);
            }
        };
        let mut hear = |heard: Heard<'_>| match heard {
            Heard::Progress(line) => output::note(line),
            Heard::Printed(stream, bytes) => printed(stream, bytes),
        };
        match plan.run(self.subject, self.home, &mut hear) {
            Ok(mut finished) => {
                finished.record.decision = record.decision;
                self.keep(&mut finished.record);
                Ok(finished)
            }
            Err(error) => {
                // What follows the first line was printed by the tool, and is not kept.
                let message = error.message.lines().next().unwrap_or_default().to_owned();
                record.error = Some(ErrorRecord { code: error.code.to_string(), message });
                self.keep(&mut record);
                Err(error.into())
            }
        }
    }

    pub(super) fn mode(&self) -> &'static str {
        self.args.mode.as_str()
    }

    pub(super) fn is_json(&self) -> bool {
        self.args.json
    }

    /// Passes on what a tool prints, as it comes, to people.
    pub(super) fn pass_on(&self, stream: Stream, bytes: &[u8]) {
        if !self.args.json {
            output::pass_on(stream == Stream::Stderr, bytes);
        }
    }

    pub(super) fn home(&self) -> &Home {
        self.home
    }

    pub(super) fn model(&self) -> Option<&str> {
        self.args.model.as_deref()
    }

    pub(super) fn form(&self) -> Form {
        Form::new(self.args.json, self.args.verbose)
    }

    /// Asks whether a plan may run, if it must.
    fn decide(&self, request: &Request) -> Result<Decision, CommandError> {
        // A recording has nearly every right: no answer holds for the next one.
        let kept = self.approvals.get(&request.path)?.filter(|_| !self.args.record);
        let fingerprint = Fingerprint::of(request);
        let decided = |verdict: &str, reason: String| DecisionRecord {
            verdict: verdict.to_owned(),
            reason,
            approved_by: (verdict != "run").then(user_name),
        };
        let refused = |error| Ok(Decision::Not { verdict: "refused", error });
        let (reasons, warnings) = match decide(request, kept.as_ref()) {
            Verdict::Run { reason } => return Ok(Decision::Run(decided("run", reason))),
            Verdict::Refuse { reason, help } => {
                return refused(CommandError::refused(reason).hint(help));
            }
            Verdict::Ask { warnings, .. } if self.args.record => {
                (vec!["a recording has nearly every right".to_owned()], warnings)
            }
            Verdict::Ask { reasons, warnings } => (reasons, warnings),
        };
        if let Some(short) = &self.args.approve {
            if agrees(&fingerprint, short) {
                return Ok(Decision::Run(decided("once", reasons.join("; "))));
            }
            let message = "--approve is for another run, or for what this skill was before";
            let hint = format!("what would run now is --approve {}", fingerprint.agreeing());
            return refused(CommandError::refused(message).hint(hint));
        }
        if self.fetched.is_some() && self.args.yes {
            return Ok(Decision::Run(decided("once", reasons.join("; "))));
        }
        if !ask::can_ask() {
            return refused(match self.fetched {
                Some(fetched) => not_agreed(fetched),
                None => self.nobody(request, &fingerprint, &reasons),
            });
        }
        let is_once = self.args.record || self.fetched.is_some();
        let choices = if is_once { Choices::OnlyOnce } else { Choices::OnceOrAlways };
        let verdict = match ask::ask(request, &reasons, &warnings, choices)? {
            Answer::Once => "once",
            Answer::Always => {
                self.approvals.keep(Approval::new(request, user_name()))?;
                "always"
            }
            Answer::No => {
                let error = declined(&request.skill);
                return Ok(Decision::Not { verdict: "declined", error });
            }
        };
        Ok(Decision::Run(decided(verdict, reasons.join("; "))))
    }

    fn nobody(
        &self,
        request: &Request,
        fingerprint: &Fingerprint,
        reasons: &[String],
    ) -> CommandError {
        let path = shell_word(&request.path.display().to_string());
        let refused = CommandError::refused(format!(
            "{} needs approval, and there is no terminal to ask on: {}",
            request.skill,
            reasons.join("; ")
        ));
        let additions = self.args.widening.words();
        let once = format!("to agree to this run alone, add: --approve {}", fingerprint.agreeing());
        if self.args.record {
            // `savoir approve` shows what the skill declares, not what a recording gets.
            let rights = request.permissions.iter().map(ToString::to_string);
            let rights = shown(&rights.collect::<Vec<_>>().join(", "));
            let hint = format!("a recording may do nearly everything: {rights}");
            return refused.hint(hint).hint(once);
        }
        if request.always_ask || request.trust == Trust::Untrusted {
            refused
                .hint(format!("to see what it may do: savoir approve {path}{additions}"))
                .hint(once)
        } else {
            refused.hint(format!("to approve it: savoir approve {path}{additions}")).hint(once)
        }
    }

    /// Keeps a record of what was not run.
    fn keep_refusal(&self, mut record: Record, verdict: &str, error: &CommandError) {
        let message = error.to_string();
        let (verdict, reason) = (verdict.to_owned(), message.clone());
        record.decision = DecisionRecord { verdict, reason, approved_by: None };
        record.error = Some(ErrorRecord { code: "not-approved".to_owned(), message });
        self.keep(&mut record);
    }

    fn keep(&self, record: &mut Record) {
        keep(self.home, record);
    }

    /// Prints what a run came to; for people, what it printed was passed on already.
    pub(super) fn print(&self, finished: &Finished) -> Result<ExitCode, CommandError> {
        let Finished { envelope, value, .. } = finished;
        if self.args.json {
            output::json(envelope)?;
        } else if let Some(value) = value {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            output::content(&format!("{}\n", text.trim_end_matches('\n')))?;
        } else if finished.record.command.is_empty() && !envelope.output.is_empty() {
            // What a module printed before it failed.
            output::note(&envelope.output);
        }
        match &envelope.error {
            None => Ok(ExitCode::SUCCESS),
            Some(_) if self.args.json => Ok(ExitCode::from(exit_code(envelope))),
            Some(error) => Err(CommandError::exited(exit_code(envelope), error)),
        }
    }
}

/// The code of a program that failed, or what shells give for one that was ended.
fn exit_code(envelope: &Envelope) -> u8 {
    match (envelope.exit_code, envelope.code.as_deref()) {
        (Some(code), _) => u8::try_from(code).unwrap_or(1).max(1),
        (None, Some("stopped")) => INTERRUPTED,
        (None, Some("timeout")) => TIMED_OUT,
        (None, _) => 1,
    }
}
