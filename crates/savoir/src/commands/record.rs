//! `savoir run --record`: what a tool really needs.

use std::{fs, io, path::Path, process::ExitCode};

use savoir_engine::{
    RunError,
    approval::{Widening, shell_word},
    contract::{Noted, options, smallest, unsaid, widen},
    envelope::Envelope,
    ground::Ground,
    run::Plan,
};
use savoir_skill::{
    Reading, Source,
    edit::apply,
    observed::{OBSERVED_FILE, Observed, declaration, declare},
    permission::Permission,
    read_as,
};
use serde::Serialize;

use super::run::{Door, exit_code};
use crate::{error::CommandError, output, write};

/// Where the permissions go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Output {
    /// Only to the screen.
    Print,
    /// Into the skill's file, too.
    File,
}

/// The envelope of every run, and what was found out.
#[derive(Debug, Serialize)]
struct Recorded<'a> {
    #[serde(flatten)]
    envelope: &'a Envelope,
    /// What this call used.
    used: &'a [Permission],
    /// What all recorded tools use.
    #[serde(skip_serializing_if = "Option::is_none")]
    permissions: Option<&'a [Permission]>,
    /// The same as the skill's dialect writes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    declaration: Option<&'a str>,
}

impl<'a> Recorded<'a> {
    fn of(envelope: &'a Envelope) -> Self {
        Self { envelope, used: &[], permissions: None, declaration: None }
    }
}

pub(super) fn run(
    door: &Door<'_>,
    mut plan: Plan,
    ground: &Ground,
    extra: &Widening,
    reading: &Reading,
    into: Output,
) -> Result<ExitCode, CommandError> {
    let subject = door.subject;
    let tool = plan.request.tool.clone().unwrap_or_default();
    if let Err(refusal) = widen(&mut plan, subject, ground, extra) {
        return Err(RunError::from(refusal).into());
    }
    let noted = Noted::of(&plan, subject, door.home());
    let finished = door.run_quietly(plan, |stream, bytes| door.pass_on(stream, bytes))?;
    let used = smallest(&finished.outcome, &noted, subject, ground);
    if !finished.envelope.success {
        output::note("the run failed, so nothing is noted");
        if !used.is_empty() {
            output::note("until then it used:");
        }
        for permission in &used {
            output::note(&format!("  {permission}"));
        }
        if door.is_json() {
            output::json(&Recorded { used: &used, ..Recorded::of(&finished.envelope) })?;
            return Ok(ExitCode::from(exit_code(&finished.envelope)));
        }
        return door.print_failed(&finished);
    }
    let all = match &subject.folder {
        Some(folder) => note(folder, &tool, &used)?,
        None => used.clone(),
    };
    let lines = declaration(reading, &all);
    let declared = declared(reading, &all);
    let skill = declared.as_ref().map_or(&subject.skill, |(_, reading)| &reading.skill);
    // What this call used counts in full: of all calls, what one right covers is left out.
    let unsaid = unsaid(skill, &[&*all, &used].concat(), ground);
    let written = (into == Output::File).then(|| put(declared.as_ref(), &subject.file)).transpose();
    if door.is_json() {
        // A failure is a document of its own.
        written?;
        let (permissions, declaration) = (Some(&*all), lines.as_deref());
        let envelope = &finished.envelope;
        output::json(&Recorded { envelope, used: &used, permissions, declaration })?;
    } else {
        door.print(&finished)?;
        print(&tool, &used, lines.as_deref());
        if !unsaid.is_empty() {
            let path = shell_word(&subject.path().display().to_string());
            let options = options(&unsaid);
            output::note(&format!(
                "to allow what this format cannot declare: savoir approve {path}{options}"
            ));
        }
        if let Some(folder) = &subject.folder {
            let path = folder.join(OBSERVED_FILE);
            let path = path.display();
            output::note(&format!("noted in {path}; savoir check compares it with the skill"));
        }
        // A person who has to paste the lines has seen them by now.
        written?;
    }
    if into == Output::File {
        output::note(&format!("written to {}", subject.file.display()));
    }
    Ok(ExitCode::SUCCESS)
}

/// Adds what was used to the notes in the skill's folder; gives what all its tools use.
fn note(folder: &Path, tool: &str, used: &[Permission]) -> Result<Vec<Permission>, CommandError> {
    let path = folder.join(OBSERVED_FILE);
    let failed = |error: &dyn std::fmt::Display| {
        CommandError::input(format!("{} cannot be kept: {error}", path.display()))
    };
    // The folder is a stranger's: a link in it must not choose what is overwritten.
    if let Some(link) =
        [path.parent().unwrap_or(folder), &path].into_iter().find(|p| p.is_symlink())
    {
        return Err(failed(&format!("{} is a link", link.display())).hint("remove the link"));
    }
    let mut notes = match fs::read(&path) {
        Ok(bytes) => Observed::parse(&bytes)
            .map_err(|error| failed(&error).hint("remove the file, and record every tool anew"))?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Observed::default(),
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

fn print(tool: &str, used: &[Permission], declaration: Option<&str>) {
    if used.is_empty() {
        output::note(&format!("{tool} needs nothing beyond what every run has"));
    } else {
        output::note(&format!("{tool} used:"));
        for permission in used {
            output::note(&format!("  {permission}"));
        }
    }
    match declaration {
        Some(lines) => {
            output::note(&format!("\nwhat all recorded tools need, to paste:\n\n{lines}"));
        }
        None => output::note("\nthis dialect has no field for permissions"),
    }
}

/// The text of the skill with these permissions, and how it is read; nothing if its dialect has no fields
/// for them, or it could not be read any more.
fn declared(reading: &Reading, permissions: &[Permission]) -> Option<(String, Reading)> {
    let edits = declare(reading, permissions)?;
    let text = apply(reading.document.text(), &edits);
    let source = Source::from_bytes(text.clone().into_bytes()).ok()?;
    let again = read_as(source, reading.skill.dialect, None);
    again.is_usable().then_some((text, again))
}

/// Puts the permissions into the file.
fn put(declared: Option<&(String, Reading)>, file: &Path) -> Result<(), CommandError> {
    let Some((text, _)) = declared else {
        let message =
            format!("{} is unchanged: its format has no field for permissions", file.display());
        return Err(CommandError::findings(message).hint("use the savoir approve command above"));
    };
    write::replace(file, text).map_err(|error| {
        CommandError::input(format!("{} cannot be written: {error}", file.display()))
    })
}
