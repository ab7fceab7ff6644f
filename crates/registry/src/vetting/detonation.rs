//! Runs the tools of a package where nothing is real, and holds what they did against what they
//! declare.

use std::{path::Path, sync::OnceLock, time::Instant};

use savoir_engine::{
    grant,
    python::host::{Serves, is_python_handler},
    run::input_variable,
    structured::fences,
};
use savoir_package::Tree;
use savoir_sandbox::{Part, Support};
use savoir_scan::Severity;
use savoir_skill::{
    Detection, Dialect, Reading, Skill, Strength,
    python::TOOLS_FILE,
    skill::{Runner, Tool},
};

use super::{
    Detonation, Options, arguments,
    drive::{self, Call, Command, Round},
    finding::{EngineRun, Finding},
    judge,
    stage::{self, Stage},
};

pub(super) const NAME: &str = "detonation";

/// Times that a module is loaded anew after a call that did not come back.
const ANEW: usize = 3;

/// Runs the tools of a package.
pub(super) fn detonate(
    tree: &Tree,
    python: Option<&Path>,
    options: &Options,
) -> (Vec<Finding>, Vec<EngineRun>) {
    let started = Instant::now();
    let (findings, run) = match attempt(tree, python, options) {
        Ok(findings) => {
            let version = Some(env!("CARGO_PKG_VERSION").to_owned());
            (findings, EngineRun::ran(NAME, version, started))
        }
        Err(NotRun::NotNeeded(why)) => (Vec::new(), EngineRun::not_needed(NAME, why)),
        Err(NotRun::Failed(why)) => (Vec::new(), EngineRun::failed(NAME, why).since(started)),
    };
    (findings, vec![run])
}

/// Whether the runtime of the skill can run its code blocks; most Markdown only shows some.
fn has_code_blocks(reading: &Reading) -> bool {
    let Detection { dialect, strength, .. } = &reading.detection;
    *dialect == Dialect::SKILLRT && *strength != Strength::Weak
}

/// Whether this machine can hold the cage, found out once.
fn is_held() -> bool {
    static HELD: OnceLock<bool> = OnceLock::new();
    *HELD.get_or_init(|| {
        let Support { sandbox, proxy, watch, .. } = Support::examine();
        [sandbox, proxy, watch].iter().all(Part::is_held)
    })
}

/// Why no tool was run.
enum NotRun {
    NotNeeded(&'static str),
    Failed(String),
}

fn attempt(tree: &Tree, python: Option<&Path>, options: &Options) -> Result<Vec<Finding>, NotRun> {
    if options.detonation == Detonation::Off {
        return Err(NotRun::NotNeeded("it is turned off"));
    }
    let reading = stage::reading(tree).map_err(NotRun::Failed)?;
    let skill = &reading.skill;
    let blocks = if has_code_blocks(&reading) { fences(&skill.body, None) } else { Vec::new() };
    if skill.tools.is_empty() && blocks.is_empty() {
        return Err(NotRun::NotNeeded("the skill brings no tools"));
    }
    if !is_held() {
        let why = "this machine cannot hold the sandbox; savoir doctor tells what is missing";
        return Err(NotRun::Failed(why.to_owned()));
    }
    let stage = Stage::build(tree, skill)
        .map_err(|error| NotRun::Failed(format!("the stage cannot be built: {error}")))?;
    let mut show = Show {
        stage: &stage,
        options,
        until: Instant::now() + options.limits.skill,
        left: options.limits.calls,
        rounds: Vec::new(),
        findings: Vec::new(),
    };
    show.python_tools(python).map_err(NotRun::Failed)?;
    for command in commands(&reading, &stage, &mut show.findings) {
        show.command(&command);
    }
    let Show { rounds, mut findings, .. } = show;
    findings.extend(judge::judge(tree, &reading, &stage, &rounds, &options.limits));
    Ok(findings)
}

/// A detonation at work.
struct Show<'a> {
    stage: &'a Stage,
    options: &'a Options,
    until: Instant,
    left: usize,
    rounds: Vec<Round>,
    findings: Vec<Finding>,
}

impl Show<'_> {
    /// Whether time and calls are left; if not, that is told once.
    fn may_go_on(&mut self, before: &str) -> bool {
        if self.left > 0 && Instant::now() < self.until {
            return true;
        }
        let message = format!("no time or calls were left for {before}");
        let told = self.findings.iter().any(|one| one.rule == judge::LIMIT);
        if !told {
            self.findings.push(judge::finding(judge::LIMIT, Severity::High, message));
        }
        false
    }

    fn python_tools(&mut self, python: Option<&Path>) -> Result<(), String> {
        let skill = &self.stage.skill;
        let handlers: Vec<(&str, &str)> = skill.tools.iter().filter_map(handler).collect();
        let called = |is: &dyn Fn(&Runner) -> bool| -> Vec<Call> {
            let tools = skill.tools.iter().filter(|tool| is(&tool.runner));
            tools.map(|tool| self.call(tool)).collect()
        };
        let functions = called(&|runner| matches!(runner, Runner::Python { .. }));
        let handled =
            called(&|runner| matches!(runner, Runner::Handler { path } if is_python_handler(path)));
        for (serves, calls) in
            [(Serves::Module(TOOLS_FILE), functions), (Serves::Actions(&handlers), handled)]
        {
            if calls.is_empty() {
                continue;
            }
            let python = python.ok_or("there is no python3 to load its tools with")?;
            self.serve(python, &serves, &calls)?;
        }
        Ok(())
    }

    /// Makes all calls; one that does not come back costs a new start.
    fn serve(&mut self, python: &Path, serves: &Serves<'_>, calls: &[Call]) -> Result<(), String> {
        let mut calls = calls;
        for _ in 0..=ANEW {
            if !self.may_go_on("all of its Python tools") {
                return Ok(());
            }
            let most = calls.len().min(self.left);
            let limits = &self.options.limits;
            let round =
                drive::python(self.stage, limits, python, serves, &calls[..most], self.until)
                    .map_err(|error| error.to_string())?;
            self.left -= round.made;
            calls = &calls[round.made..];
            let failed = round.failure.is_some();
            self.rounds.push(round);
            if failed || calls.is_empty() {
                return Ok(());
            }
        }
        self.left = 0;
        self.may_go_on("all of its Python tools");
        Ok(())
    }

    fn command(&mut self, command: &Command) {
        if !self.may_go_on(&command.what) {
            return;
        }
        self.left -= 1;
        let round = drive::command(self.stage, &self.options.limits, command, self.until);
        match round {
            Ok(round) => self.rounds.push(round),
            // One program that cannot be started must not hide what the others do.
            Err(error) => {
                let message = format!("{} cannot be run: {error}", command.what);
                let finding = judge::finding(judge::FAILED, Severity::High, message);
                self.findings.push(finding.at(command.place.clone()));
            }
        }
    }

    fn call(&self, tool: &Tool) -> Call {
        let Stage { skill, .. } = self.stage;
        let name = match &tool.runner {
            Runner::Python { function } => function,
            _ => &tool.name,
        };
        let arguments = arguments::arguments(tool, &skill.permissions, self.stage.work());
        Call { tool: name.clone(), arguments }
    }
}

fn handler(tool: &Tool) -> Option<(&str, &str)> {
    match &tool.runner {
        Runner::Handler { path } if is_python_handler(path) => Some((&tool.name, path)),
        _ => None,
    }
}

/// What else the skill runs: command tools, handlers in other languages, code blocks.
fn commands(reading: &Reading, stage: &Stage, findings: &mut Vec<Finding>) -> Vec<Command> {
    let skill = &reading.skill;
    let mut commands = Vec::new();
    for tool in &skill.tools {
        let made = match &tool.runner {
            Runner::Command(_) => command_tool(tool, stage),
            Runner::Handler { path } if !is_python_handler(path) => {
                other_handler(tool, path, stage)
            }
            _ => continue,
        };
        match made {
            Ok(command) => commands.push(command),
            Err(why) => {
                let message = format!("the tool `{}` was not run: {why}", tool.name);
                findings.push(judge::finding(judge::FAILED, Severity::Info, message));
            }
        }
    }
    if has_code_blocks(reading) {
        commands.extend(code_blocks(reading, stage));
    }
    commands
}

fn command_tool(tool: &Tool, stage: &Stage) -> Result<Command, String> {
    let Runner::Command(template) = &tool.runner else { return Err("it is none".to_owned()) };
    let given = arguments::arguments(tool, &stage.skill.permissions, stage.work());
    let program = grant::resolve(&template.program, Some(&stage.folder));
    let program = program.map_err(|error| error.to_string())?.path;
    let filled = template.interpolate(&tool.name, &tool.parameters, &given);
    let arguments = filled.map_err(|error| error.to_string())?;
    let place = own_place(stage, &program);
    let (what, input, variables) = (format!("the tool `{}`", tool.name), String::new(), Vec::new());
    let severity = Severity::High;
    Ok(Command { what, program, arguments, input, variables, place, severity })
}

fn other_handler(tool: &Tool, path: &str, stage: &Stage) -> Result<Command, String> {
    let program = grant::resolve(&format!("./{path}"), Some(&stage.folder));
    let program = program.map_err(|error| error.to_string())?.path;
    let given = arguments::arguments(tool, &stage.skill.permissions, stage.work());
    let input = serde_json::Value::Object(given).to_string();
    let place = own_place(stage, &program);
    let (what, arguments, variables) =
        (format!("the tool `{}`", tool.name), Vec::new(), Vec::new());
    let severity = Severity::High;
    Ok(Command { what, program, arguments, input, variables, place, severity })
}

/// The file of the package that a program is.
fn own_place(stage: &Stage, program: &Path) -> Option<(String, Option<u32>)> {
    let inside = program.strip_prefix(&stage.folder).ok()?;
    Some((inside.to_string_lossy().into_owned(), None))
}

fn code_blocks(reading: &Reading, stage: &Stage) -> Vec<Command> {
    let Skill { body, inputs, permissions, .. } = &reading.skill;
    let host = arguments::declared_host(permissions);
    let variables: Vec<(String, String)> = inputs
        .iter()
        .map(|input| {
            (input_variable(&input.name), arguments::text(&input.name, &host, stage.work()))
        })
        .collect();
    let document = &reading.document;
    let start = document.text().find(body.as_str()).unwrap_or(document.body_span().start);
    let blocks = fences(body, None).into_iter().filter_map(|fence| {
        let program = grant::resolve(fence.interpreter, None).ok()?.path;
        let line = document.source().position(start + fence.span.start).line;
        let option = if fence.interpreter == "node" { "-e" } else { "-c" };
        Some(Command {
            what: format!("the code block in line {line}"),
            program,
            arguments: vec![option.to_owned(), fence.code],
            input: String::new(),
            variables: variables.clone(),
            place: Some(("SKILL.md".to_owned(), u32::try_from(line).ok())),
            severity: Severity::Medium,
        })
    });
    blocks.collect()
}
