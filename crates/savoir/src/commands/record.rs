//! `savoir run --record`: finds out which permissions a tool needs.

use std::{fs, io, path::Path, process::ExitCode};

use savoir_engine::{
    RunError,
    approval::{ExtraGrants, shell_word},
    envelope::{Envelope, Stream},
    run::{FinishedRun, RunPlan},
    run_environment::RunEnvironment,
    smallest_permissions::{
        ObservedPlan, allow_options, missing_permissions, smallest_permissions, widen_policy,
    },
};
use savoir_skill::{
    Reading, Source,
    edit::apply,
    observed::{OBSERVED_FILE, ObservedPermissions, declaration_lines, declare},
    permission::Permission,
    read_as,
};
use serde::Serialize;

use super::run::{RunContext, exit_code};
use crate::{error::CommandError, output, write};

/// Where the recorded permissions are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Output {
    /// Only printed.
    Print,
    /// Also written into the skill's file.
    File,
}

/// The envelope of the run, and the recorded permissions.
#[derive(Debug, Serialize)]
struct RecordedRun<'a> {
    #[serde(flatten)]
    envelope: &'a Envelope,
    /// Permissions that this call used.
    used: &'a [Permission],
    /// Permissions that all recorded tools use.
    #[serde(skip_serializing_if = "Option::is_none")]
    permissions: Option<&'a [Permission]>,
    /// The same in the syntax of the skill's dialect.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "declaration")]
    declaration_lines: Option<&'a str>,
}

impl<'a> RecordedRun<'a> {
    fn of(envelope: &'a Envelope) -> Self {
        Self { envelope, used: &[], permissions: None, declaration_lines: None }
    }
}

/// Runs plans with almost all permissions, and reports those that they used.
#[derive(Clone, Copy)]
pub(super) struct Recorder<'a> {
    pub(super) context: &'a RunContext<'a>,
    pub(super) run_env: &'a RunEnvironment,
    pub(super) extra: &'a ExtraGrants,
    pub(super) reading: &'a Reading,
    pub(super) output: Output,
}

/// Records one tool or script.
pub(super) fn run(recorder: Recorder<'_>, plan: RunPlan) -> Result<ExitCode, CommandError> {
    let context = recorder.context;
    let tool = plan.request.tool.clone().unwrap_or_default();
    let (finished, used) =
        recorder.observe(plan, |stream, bytes| context.forward_output(stream, bytes))?;
    if !finished.envelope.success {
        return recorder.report_failed(&finished, &used);
    }
    let print = || context.print(&finished).map(drop);
    recorder.report(&tool, &used, &finished.envelope, print)
}

impl Recorder<'_> {
    /// Runs a plan, and returns the permissions that it used.
    pub(super) fn observe(
        &self,
        mut plan: RunPlan,
        printed: impl FnMut(Stream, &[u8]),
    ) -> Result<(FinishedRun, Vec<Permission>), CommandError> {
        let Self { context, run_env, extra, .. } = *self;
        let loaded_skill = context.loaded_skill;
        if let Err(refusal) = widen_policy(&mut plan, loaded_skill, run_env, extra) {
            return Err(RunError::from(refusal).into());
        }
        let observed = ObservedPlan::new(&plan, loaded_skill, context.home());
        let finished = context.run_quietly(plan, printed)?;
        let used = smallest_permissions(&finished.outcome, &observed, loaded_skill, run_env);
        Ok((finished, used))
    }

    /// Reports a failed run, of which nothing is recorded.
    pub(super) fn report_failed(
        &self,
        finished: &FinishedRun,
        used: &[Permission],
    ) -> Result<ExitCode, CommandError> {
        output::note("the run failed, so no permissions were recorded");
        if !used.is_empty() {
            output::note("permissions used before it failed:");
        }
        for permission in used {
            output::note(&format!("  {permission}"));
        }
        if self.context.is_json() {
            output::json(&RecordedRun { used, ..RecordedRun::of(&finished.envelope) })?;
            return Ok(ExitCode::from(exit_code(&finished.envelope)));
        }
        self.context.print_failed(finished)
    }

    /// Stores and prints the permissions that a tool used; without --json, `print_result` prints
    /// its result.
    pub(super) fn report(
        &self,
        tool: &str,
        used: &[Permission],
        envelope: &Envelope,
        print_result: impl FnOnce() -> Result<(), CommandError>,
    ) -> Result<ExitCode, CommandError> {
        let Self { context, run_env, reading, .. } = *self;
        let loaded_skill = context.loaded_skill;
        let all = match &loaded_skill.folder {
            Some(folder) => store_observed(folder, tool, used)?,
            None => used.to_vec(),
        };
        let lines = declaration_lines(reading, &all);
        let declared = with_declared_permissions(reading, &all);
        let skill = declared.as_ref().map_or(&loaded_skill.skill, |(_, reading)| &reading.skill);
        // `all` leaves out permissions that others include, so all permissions of this call are
        // added.
        let missing = missing_permissions(skill, &[&*all, used].concat(), run_env);
        let written = (self.output == Output::File)
            .then(|| write_skill(declared.as_ref(), &loaded_skill.file))
            .transpose();
        if context.is_json() {
            // A write error is returned here, and printed as the only JSON document.
            written?;
            let (permissions, declaration_lines) = (Some(&*all), lines.as_deref());
            output::json(&RecordedRun { envelope, used, permissions, declaration_lines })?;
        } else {
            print_result()?;
            print(tool, used, lines.as_deref());
            if !missing.is_empty() {
                let path = shell_word(&loaded_skill.path().display().to_string());
                let options = allow_options(&missing);
                output::note(&format!(
                    "to allow what this format cannot declare: savoir approve {path}{options}"
                ));
            }
            if let Some(folder) = &loaded_skill.folder {
                let path = folder.join(OBSERVED_FILE);
                let path = path.display();
                output::note(&format!(
                    "recorded in {path}; `savoir check` compares it with the skill"
                ));
            }
            // A write error is returned only after the lines to paste were printed.
            written?;
        }
        if self.output == Output::File {
            output::note(&format!("written to {}", loaded_skill.file.display()));
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Adds the used permissions to the file in the skill's folder; returns those of all its tools.
fn store_observed(
    folder: &Path,
    tool: &str,
    used: &[Permission],
) -> Result<Vec<Permission>, CommandError> {
    let path = folder.join(OBSERVED_FILE);
    let failed = |error: &dyn std::fmt::Display| {
        CommandError::input(format!("{} cannot be updated: {error}", path.display()))
    };
    // The folder is not trusted, so a symlink in it must not choose which file is overwritten.
    if let Some(link) =
        [path.parent().unwrap_or(folder), &path].into_iter().find(|p| p.is_symlink())
    {
        return Err(failed(&format!("{} is a symlink", link.display())).hint("remove the symlink"));
    }
    let mut notes = match fs::read(&path) {
        Ok(bytes) => ObservedPermissions::parse(&bytes)
            .map_err(|error| failed(&error).hint("remove the file and record every tool again"))?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => ObservedPermissions::default(),
        Err(error) => return Err(failed(&error)),
    };
    notes.add(tool, used);
    let mut text = serde_json::to_string_pretty(&notes)?;
    text.push('\n');
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(|error| failed(&error))?;
    }
    write::replace(&path, &text).map_err(|error| failed(&error))?;
    Ok(notes.all())
}

fn print(tool: &str, used: &[Permission], declaration_lines: Option<&str>) {
    if used.is_empty() {
        output::note(&format!("{tool} needs no additional permissions"));
    } else {
        output::note(&format!("{tool} used:"));
        for permission in used {
            output::note(&format!("  {permission}"));
        }
    }
    match declaration_lines {
        Some(lines) => {
            output::note(&format!(
                "\npermissions of all recorded tools, to paste into the skill:\n\n{lines}"
            ));
        }
        None => output::note("\nthis dialect has no field for permissions"),
    }
}

/// The text of the skill with these permissions, and its parsed form; `None` if its dialect has no
/// field for permissions, or if the new text cannot be parsed.
fn with_declared_permissions(
    reading: &Reading,
    permissions: &[Permission],
) -> Option<(String, Reading)> {
    let edits = declare(reading, permissions)?;
    let text = apply(reading.document.text(), &edits);
    let source = Source::from_bytes(text.clone().into_bytes()).ok()?;
    let again = read_as(source, reading.skill.dialect, None);
    again.is_usable().then_some((text, again))
}

/// Writes the permissions into the file.
fn write_skill(declared: Option<&(String, Reading)>, file: &Path) -> Result<(), CommandError> {
    let Some((text, _)) = declared else {
        let message =
            format!("{} is unchanged: its format has no field for permissions", file.display());
        return Err(CommandError::findings(message).hint("use the savoir approve command above"));
    };
    write::replace(file, text).map_err(|error| {
        CommandError::input(format!("{} cannot be written: {error}", file.display()))
    })
}
