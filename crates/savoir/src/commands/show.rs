//! `savoir show`: shows how Savoir reads a skill, and which dialect it detects.

use std::{fmt::Write as _, path::PathBuf, process::ExitCode};

use clap_complete::engine::ArgValueCompleter;
use savoir_skill::{
    Dialect, Reading, Skill,
    dialect::{self, Strength},
    skill::{Mode, Runner},
};
use serde_json::{Map, Value, json};

use crate::{
    completion,
    error::CommandError,
    load::{self, Loaded},
    lookup, output,
};

/// Show how Savoir reads a skill, and which dialect it detects
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  savoir show my-skill\n  savoir show pdf                an installed skill\n  savoir show my-skill --json\n  savoir show notes.md --dialect skillrt"
)]
pub(crate) struct Args {
    /// Folder or file of a skill, or name of an installed skill
    #[arg(add = ArgValueCompleter::new(completion::skills_and_paths))]
    path: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Fail if the skill has any finding
    #[arg(long)]
    strict: bool,
    /// Read the file in this dialect instead of detecting it
    #[arg(long, value_name = "DIALECT", value_parser = super::dialects())]
    dialect: Option<Dialect>,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    let found = lookup::find(&args.path)?;
    let loaded = load::load(&found, args.dialect)?;
    if args.strict {
        load::require_clean(&loaded)?;
    }
    if args.json {
        output::json(&as_json(&loaded)?)?;
    } else {
        output::text(&output::sanitize(&page(&loaded)))?;
    }
    Ok(ExitCode::from(u8::from(!loaded.reading.is_usable())))
}

fn as_json(loaded: &Loaded) -> Result<Value, CommandError> {
    let reading = &loaded.reading;
    let detection = &reading.detection;
    let also =
        dialect::other_valid_dialects(&reading.document, loaded.folder.as_ref(), detection.dialect);
    let mut map = Map::new();
    map.insert("path".into(), json!(loaded.path.to_string_lossy()));
    map.insert("dialect".into(), json!(detection.dialect));
    map.insert("why".into(), json!(detection.why));
    map.insert("strength".into(), json!(detection.strength));
    map.insert("also".into(), json!(also));
    let skill = serde_json::to_value(&reading.skill)?;
    for (key, value) in skill.as_object().into_iter().flatten() {
        map.entry(key.clone()).or_insert_with(|| value.clone());
    }
    map.insert("license".into(), json!(license(&reading.skill)));
    add_defaults(&mut map, &reading.skill);
    // If the dialect truncates descriptions, the truncated one is shown.
    map.insert("description".into(), json!(reading.skill.truncated_description()));
    map.insert("errors".into(), json!(error_codes(reading)));
    Ok(Value::Object(map))
}

/// The codes of the errors in a file.
pub(super) fn error_codes(reading: &Reading) -> Vec<&'static str> {
    let errors = reading.diagnostics.iter().filter(|found| found.is_error());
    errors.map(|found| found.code).collect()
}

/// Adds the fields for which a specification defines a value when the file has none.
pub(super) fn add_defaults(map: &mut Map<String, Value>, skill: &Skill) {
    if skill.mode != Mode::Structured {
        return;
    }
    if skill.dialect == Dialect::SKILLRT {
        map.insert("authors".into(), json!(skill.authors));
        map.insert("tags".into(), json!(skill.tags));
        add_default(map, "requirements", "runtime", json!({"type": "markdown-skill"}));
    } else if skill.dialect == Dialect::GIBBERISH {
        add_default(map, "policy", "read_only", json!(false));
        add_default(map, "policy", "always_ask", json!(false));
    }
}

fn add_default(map: &mut Map<String, Value>, object: &str, field: &str, value: Value) {
    if let Some(object) = map.get_mut(object).and_then(Value::as_object_mut) {
        object.entry(field).or_insert(value);
    }
}

/// The license that a skill has without naming one: skillrt defines a default.
pub(super) fn license(skill: &Skill) -> Option<&str> {
    let is_skillrt = skill.dialect == Dialect::SKILLRT && skill.mode == Mode::Structured;
    skill.license.as_deref().or(is_skillrt.then_some("UNLICENSED"))
}

fn page(loaded: &Loaded) -> String {
    let reading = &loaded.reading;
    let (skill, detection) = (&reading.skill, &reading.detection);
    let mut page = Page::default();
    let sure = match detection.strength {
        Strength::Explicit | Strength::Strong => "",
        Strength::Weak => ", weak evidence",
    };
    page.field("name", &skill.name);
    page.field("version", skill.version.as_deref().unwrap_or_default());
    page.field("dialect", &format!("{} ({}{sure})", detection.dialect, detection.why));
    let also =
        dialect::other_valid_dialects(&reading.document, loaded.folder.as_ref(), detection.dialect);
    page.list("also valid as", also.iter().map(ToString::to_string));
    page.field("description", skill.truncated_description());
    identity(&mut page, skill);
    inputs_and_output(&mut page, skill);
    tools(&mut page, skill);
    permissions(&mut page, skill);
    page.value("requirements", &serde_json::to_value(&skill.requirements).unwrap_or_default());
    page.value("policy", &serde_json::to_value(&skill.policy).unwrap_or_default());
    page.list("files", skill.resources.iter().cloned());
    page.value("other fields", &Value::Object(skill.extra.clone()));
    let lines = output::plural(skill.body.lines().count(), "line");
    page.field("body", &format!("{lines}, {}", output::plural(skill.body.len(), "byte")));
    findings(&mut page, loaded);
    page.text
}

/// What the skill says about itself, besides its name, version and description.
pub(super) fn identity(page: &mut Page, skill: &Skill) {
    page.field("when to use", skill.when_to_use.as_deref().unwrap_or_default());
    page.list("authors", skill.authors.iter().cloned());
    page.field("license", license(skill).unwrap_or_default());
    page.field("needs", skill.compatibility.as_deref().unwrap_or_default());
    page.list("tags", skill.tags.iter().cloned());
}

/// The permissions. A skillrt skill that declares none has none.
pub(super) fn permissions(page: &mut Page, skill: &Skill) {
    let is_skillrt = skill.dialect == Dialect::SKILLRT && skill.mode == Mode::Structured;
    if skill.permissions.is_empty() && is_skillrt {
        page.field("permissions", "none");
    }
    page.list("permissions", skill.permissions.iter().map(ToString::to_string));
}

/// The number of findings in the file.
pub(super) fn findings(page: &mut Page, loaded: &Loaded) {
    let found = &loaded.reading.diagnostics;
    let errors = found.iter().filter(|found| found.is_error()).count();
    let warnings = found.len() - errors;
    if errors + warnings > 0 {
        let counts =
            format!("{}, {}", output::plural(errors, "error"), output::plural(warnings, "warning"));
        let hint = format!("{counts}; see: savoir check {}", loaded.path.display());
        page.field("findings", &hint);
    }
}

pub(super) fn inputs_and_output(page: &mut Page, skill: &Skill) {
    page.list(
        "inputs",
        skill.inputs.iter().map(|input| {
            let required = if input.required { ", required" } else { "" };
            let default = input
                .default
                .as_ref()
                .map(|value| format!(", default {value}"))
                .unwrap_or_default();
            format!("{} ({}{required}{default})", input.name, input.kind.as_str())
        }),
    );
    if let Some(output) = &skill.outputs {
        page.field("output", &output.kind);
    }
}

fn tools(page: &mut Page, skill: &Skill) {
    for tool in &skill.tools {
        let parameters: Vec<String> = tool
            .parameters
            .iter()
            .map(|parameter| {
                let optional = if parameter.required { "" } else { "?" };
                format!("{}{optional}: {}", parameter.name, parameter.kind.as_str())
            })
            .collect();
        let runs = match &tool.runner {
            Runner::Command(command) => {
                let args = command.args.iter().map(|arg| arg.text().to_owned());
                let set = command.environment.iter();
                let set = set.map(|(name, value)| format!("{name}={}", value.text()));
                let words = set.chain(std::iter::once(command.program.clone())).chain(args);
                words.collect::<Vec<_>>().join(" ")
            }
            Runner::Python { function } => format!("tools.py: {function}"),
            Runner::Handler { path } => path.clone(),
        };
        page.field("tool", &format!("{}({})  {runs}", tool.name, parameters.join(", ")));
        page.field("", &tool.description);
    }
}

/// Aligned lines of `label  value`.
#[derive(Default)]
pub(super) struct Page {
    pub(super) text: String,
}

/// Columns of the labels on a page.
const LABEL_WIDTH: usize = 14;

impl Page {
    pub(super) fn field(&mut self, label: &str, value: &str) {
        if value.trim().is_empty() {
            return;
        }
        let mut lines =
            value.trim_end().lines().flat_map(|line| output::wrap(line, LABEL_WIDTH + 1));
        let _ = writeln!(self.text, "{label:14} {}", lines.next().unwrap_or_default());
        for line in lines {
            let _ = writeln!(self.text, "{:14} {line}", "");
        }
    }

    pub(super) fn list(&mut self, label: &str, items: impl Iterator<Item = String>) {
        for (index, item) in items.enumerate() {
            self.field(if index == 0 { label } else { "" }, &item);
        }
    }

    pub(super) fn value(&mut self, label: &str, value: &Value) {
        let Some(map) = value.as_object() else { return };
        self.list(
            label,
            map.iter().map(|(key, value)| match value {
                Value::String(text) => format!("{key}: {text}"),
                other => format!("{key}: {other}"),
            }),
        );
    }
}
