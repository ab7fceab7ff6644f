//! Runs the tools of a package in a sandbox with decoys (a detonation), and compares their actions
//! with the declared permissions.

use std::{path::Path, sync::OnceLock, time::Instant};

use savoir_engine::{
    grant,
    python::host::{Serves, is_python_handler},
    run::input_variable,
    structured::fences,
};
use savoir_package::Tree;
use savoir_sandbox::{FeatureStatus, SandboxSupport};
use savoir_scan::Severity;
use savoir_skill::{
    Detection, Dialect, Reading, Skill, Strength,
    python::TOOLS_FILE,
    skill::{Runner, Tool},
};

use super::{
    Detonation, Options, behavior_check,
    decoy_environment::{self, DecoyEnvironment},
    finding::{EngineRun, Finding},
    sample_arguments,
    tool_process::{self, ToolCall, ToolCommand, ToolProcess},
};

pub(super) const ENGINE_NAME: &str = "detonation";

/// How often a module is loaded again after a call that did not return.
const MAX_RESTARTS: usize = 3;

/// Runs the tools of a package and returns the findings.
pub(super) fn detonate(
    tree: &Tree,
    python: Option<&Path>,
    options: &Options,
) -> (Vec<Finding>, Vec<EngineRun>) {
    let started = Instant::now();
    let (findings, run) = match attempt(tree, python, options) {
        Ok(findings) => {
            let version = Some(env!("CARGO_PKG_VERSION").to_owned());
            (findings, EngineRun::ran(ENGINE_NAME, version, started))
        }
        Err(NotRun::NotNeeded(why)) => (Vec::new(), EngineRun::not_needed(ENGINE_NAME, why)),
        Err(NotRun::Failed(why)) => {
            (Vec::new(), EngineRun::failed(ENGINE_NAME, why).since(started))
        }
    };
    (findings, vec![run])
}

/// Whether the runtime of the skill can run its code blocks; most Markdown only shows some.
fn has_code_blocks(reading: &Reading) -> bool {
    let Detection { dialect, strength, .. } = &reading.detection;
    *dialect == Dialect::SKILLRT && *strength != Strength::Weak
}

/// Whether this machine supports the sandbox. Checked once.
fn is_supported() -> bool {
    static SUPPORTED: OnceLock<bool> = OnceLock::new();
    *SUPPORTED.get_or_init(|| {
        let SandboxSupport { sandbox, proxy, watch, .. } = SandboxSupport::detect();
        [sandbox, proxy, watch].iter().all(FeatureStatus::is_available)
    })
}

/// The reason why no tool was run.
enum NotRun {
    NotNeeded(&'static str),
    Failed(String),
}

fn attempt(tree: &Tree, python: Option<&Path>, options: &Options) -> Result<Vec<Finding>, NotRun> {
    if options.detonation == Detonation::Off {
        return Err(NotRun::NotNeeded("it is turned off"));
    }
    let reading = decoy_environment::reading(tree).map_err(NotRun::Failed)?;
    let skill = &reading.skill;
    let blocks = if has_code_blocks(&reading) { fences(&skill.body, None) } else { Vec::new() };
    if skill.tools.is_empty() && blocks.is_empty() {
        return Err(NotRun::NotNeeded("the skill has no tools"));
    }
    if !is_supported() {
        let why =
            "this machine does not support the sandbox; run savoir doctor to see what is missing";
        return Err(NotRun::Failed(why.to_owned()));
    }
    let decoy_env = DecoyEnvironment::build(tree, skill)
        .map_err(|error| NotRun::Failed(format!("cannot create the decoy environment: {error}")))?;
    let mut run = DetonationRun {
        decoy_env: &decoy_env,
        options,
        until: Instant::now() + options.limits.skill,
        left: options.limits.calls,
        processes: Vec::new(),
        findings: Vec::new(),
    };
    run.python_tools(python).map_err(NotRun::Failed)?;
    for command in commands(&reading, &decoy_env, &mut run.findings) {
        run.command(&command);
    }
    let DetonationRun { processes, mut findings, .. } = run;
    findings.extend(behavior_check::behavior_check(
        tree, &reading, &decoy_env, &processes, &options.limits,
    ));
    Ok(findings)
}

/// A detonation in progress.
struct DetonationRun<'a> {
    decoy_env: &'a DecoyEnvironment,
    options: &'a Options,
    until: Instant,
    left: usize,
    processes: Vec<ToolProcess>,
    findings: Vec<Finding>,
}

impl DetonationRun<'_> {
    /// Whether time and calls are left. If not, that is reported once.
    fn has_time_left(&mut self, before: &str) -> bool {
        if self.left > 0 && Instant::now() < self.until {
            return true;
        }
        let message = format!("no time or calls were left for {before}");
        let reported = self.findings.iter().any(|one| one.rule == behavior_check::LIMIT_RULE);
        if !reported {
            self.findings.push(behavior_check::finding(
                behavior_check::LIMIT_RULE,
                Severity::High,
                message,
            ));
        }
        false
    }

    fn python_tools(&mut self, python: Option<&Path>) -> Result<(), String> {
        let skill = &self.decoy_env.skill;
        let handlers: Vec<(&str, &str)> = skill.tools.iter().filter_map(handler).collect();
        let called = |is: &dyn Fn(&Runner) -> bool| -> Vec<ToolCall> {
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

    /// Makes all calls. After a call that does not return, the module is loaded again.
    fn serve(
        &mut self,
        python: &Path,
        serves: &Serves<'_>,
        calls: &[ToolCall],
    ) -> Result<(), String> {
        let mut calls = calls;
        for _ in 0..=MAX_RESTARTS {
            if !self.has_time_left("all of its Python tools") {
                return Ok(());
            }
            let most = calls.len().min(self.left);
            let limits = &self.options.limits;
            let process = tool_process::python(
                self.decoy_env,
                limits,
                python,
                serves,
                &calls[..most],
                self.until,
            )
            .map_err(|error| error.to_string())?;
            self.left -= process.made;
            calls = &calls[process.made..];
            let failed = process.failure.is_some();
            self.processes.push(process);
            if failed || calls.is_empty() {
                return Ok(());
            }
        }
        self.left = 0;
        self.has_time_left("all of its Python tools");
        Ok(())
    }

    fn command(&mut self, command: &ToolCommand) {
        if !self.has_time_left(&command.what) {
            return;
        }
        self.left -= 1;
        let process =
            tool_process::command(self.decoy_env, &self.options.limits, command, self.until);
        match process {
            Ok(process) => self.processes.push(process),
            // If one program cannot be started, the others still run.
            Err(error) => {
                let message = format!("{} cannot be run: {error}", command.what);
                let finding =
                    behavior_check::finding(behavior_check::FAILED_RULE, Severity::High, message);
                self.findings.push(finding.at(command.place.clone()));
            }
        }
    }

    fn call(&self, tool: &Tool) -> ToolCall {
        let DecoyEnvironment { skill, .. } = self.decoy_env;
        let name = match &tool.runner {
            Runner::Python { function } => function,
            _ => &tool.name,
        };
        let arguments =
            sample_arguments::sample_arguments(tool, &skill.permissions, self.decoy_env.work());
        ToolCall { tool: name.clone(), arguments }
    }
}

fn handler(tool: &Tool) -> Option<(&str, &str)> {
    match &tool.runner {
        Runner::Handler { path } if is_python_handler(path) => Some((&tool.name, path)),
        _ => None,
    }
}

/// The other programs of the skill: command tools, handlers in other languages, code blocks.
fn commands(
    reading: &Reading,
    decoy_env: &DecoyEnvironment,
    findings: &mut Vec<Finding>,
) -> Vec<ToolCommand> {
    let skill = &reading.skill;
    let mut commands = Vec::new();
    for tool in &skill.tools {
        let made = match &tool.runner {
            Runner::Command(_) => command_tool(tool, decoy_env),
            Runner::Handler { path } if !is_python_handler(path) => {
                other_handler(tool, path, decoy_env)
            }
            _ => continue,
        };
        match made {
            Ok(command) => commands.push(command),
            Err(why) => {
                let message = format!("the tool `{}` was not run: {why}", tool.name);
                findings.push(behavior_check::finding(
                    behavior_check::FAILED_RULE,
                    Severity::Info,
                    message,
                ));
            }
        }
    }
    if has_code_blocks(reading) {
        commands.extend(code_blocks(reading, decoy_env));
    }
    commands
}

fn command_tool(tool: &Tool, decoy_env: &DecoyEnvironment) -> Result<ToolCommand, String> {
    let Runner::Command(template) = &tool.runner else { return Err("it is none".to_owned()) };
    let given =
        sample_arguments::sample_arguments(tool, &decoy_env.skill.permissions, decoy_env.work());
    let program = grant::resolve(&template.program, Some(&decoy_env.folder));
    let program = program.map_err(|error| error.to_string())?.path;
    let filled = template.interpolate(&tool.name, &tool.parameters, &given);
    let arguments = filled.map_err(|error| error.to_string())?;
    let place = place_in_package(decoy_env, &program);
    let (what, input, variables) = (format!("the tool `{}`", tool.name), String::new(), Vec::new());
    let severity = Severity::High;
    Ok(ToolCommand { what, program, arguments, input, variables, place, severity })
}

fn other_handler(
    tool: &Tool,
    path: &str,
    decoy_env: &DecoyEnvironment,
) -> Result<ToolCommand, String> {
    let program = grant::resolve(&format!("./{path}"), Some(&decoy_env.folder));
    let program = program.map_err(|error| error.to_string())?.path;
    let given =
        sample_arguments::sample_arguments(tool, &decoy_env.skill.permissions, decoy_env.work());
    let input = serde_json::Value::Object(given).to_string();
    let place = place_in_package(decoy_env, &program);
    let (what, arguments, variables) =
        (format!("the tool `{}`", tool.name), Vec::new(), Vec::new());
    let severity = Severity::High;
    Ok(ToolCommand { what, program, arguments, input, variables, place, severity })
}

/// The file in the package for a program path.
fn place_in_package(decoy_env: &DecoyEnvironment, program: &Path) -> Option<(String, Option<u32>)> {
    let inside = program.strip_prefix(&decoy_env.folder).ok()?;
    Some((inside.to_string_lossy().into_owned(), None))
}

fn code_blocks(reading: &Reading, decoy_env: &DecoyEnvironment) -> Vec<ToolCommand> {
    let Skill { body, inputs, permissions, .. } = &reading.skill;
    let host = sample_arguments::declared_host_or_placeholder(permissions);
    let variables: Vec<(String, String)> = inputs
        .iter()
        .map(|input| {
            (
                input_variable(&input.name),
                sample_arguments::sample_text(&input.name, &host, decoy_env.work()),
            )
        })
        .collect();
    let document = &reading.document;
    let start = document.text().find(body.as_str()).unwrap_or(document.body_span().start);
    let blocks = fences(body, None).into_iter().filter_map(|fence| {
        let program = grant::resolve(fence.interpreter, None).ok()?.path;
        let line = document.source().position(start + fence.span.start).line;
        let option = if fence.interpreter == "node" { "-e" } else { "-c" };
        Some(ToolCommand {
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
