//! Answers requests of the app with commands of this program: each runs `savoir COMMAND --json`, so
//! that the app and the terminal always show the same.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use axum::{
    Json,
    http::StatusCode,
    response::{IntoResponse as _, Response},
};
use serde::Deserialize;
use serde_json::Value;
use tokio::{process::Command, time};

use super::refusal;
use crate::error::CommandError;

/// The time limit of a command. Updating many skills over a slow network takes minutes.
const COMMAND_TIMEOUT: Duration = Duration::from_mins(5);

/// Data that the app requests.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Question {
    /// A command without arguments.
    Plain(&'static [&'static str]),
    /// A command about one skill.
    About(&'static [&'static str], String),
    /// The skills that an agent shows to its model.
    Context { agent: String, context: Option<u64>, without: Vec<String> },
}

impl Question {
    pub(super) fn parse(question: &str, name: &str) -> Option<Self> {
        let about = |command| Self::About(command, name.to_owned());
        Some(match question {
            "skills" => Self::Plain(&["list"]),
            "status" => Self::Plain(&["status"]),
            "outdated" => Self::Plain(&["outdated"]),
            "approvals" => Self::Plain(&["approve", "--list"]),
            "secrets" => Self::Plain(&["secret", "list"]),
            "runs" => Self::Plain(&["runs"]),
            "evaluations" => Self::Plain(&["eval", "list"]),
            "evaluation" => about(&["eval", "show"]),
            "skill" => about(&["info"]),
            "scan" => about(&["scan"]),
            "check" => about(&["check"]),
            "changes" => about(&["update", "--dry-run", "--diff"]),
            _ => return None,
        })
    }

    pub(super) fn arguments(&self) -> Vec<String> {
        match self {
            Self::Plain(command) => owned(command),
            Self::About(command, name) => with_name(owned(command), name),
            Self::Context { agent, context, without } => {
                let mut arguments = owned(&["context", "simulate"]);
                arguments.push(format!("--agent={agent}"));
                arguments.extend(context.map(|context| format!("--context={context}")));
                arguments.extend(without.iter().map(|name| format!("--without={name}")));
                arguments
            }
        }
    }
}

/// A change that the app requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Enable,
    Disable,
    Remove,
    Update,
    Revoke,
    Undo,
}

/// The target of an action.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ActionBody {
    name: String,
    /// Limits the action to this agent.
    agent: Option<String>,
    /// Permissions that a new version may add.
    accept: Vec<String>,
}

impl Action {
    pub(super) fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "enable" => Self::Enable,
            "disable" => Self::Disable,
            "remove" => Self::Remove,
            "update" => Self::Update,
            "revoke" => Self::Revoke,
            "undo" => Self::Undo,
            _ => return None,
        })
    }

    pub(super) fn arguments(self, body: &ActionBody) -> Vec<String> {
        let mut arguments = match self {
            Self::Enable => owned(&["enable"]),
            Self::Disable => owned(&["disable"]),
            Self::Remove => owned(&["remove"]),
            Self::Update => owned(&["update", "--yes"]),
            Self::Revoke => owned(&["approve", "--revoke"]),
            Self::Undo => return owned(&["undo"]),
        };
        if matches!(self, Self::Enable | Self::Disable) {
            arguments.extend(body.agent.iter().map(|agent| format!("--agent={agent}")));
        }
        if self == Self::Update {
            arguments.extend(body.accept.iter().map(|accept| format!("--accept={accept}")));
        }
        with_name(arguments, &body.name)
    }
}

fn owned(arguments: &[&str]) -> Vec<String> {
    arguments.iter().map(|&argument| argument.to_owned()).collect()
}

/// Adds a name from the app after `--`, so that it cannot be read as an option.
fn with_name(mut arguments: Vec<String>, name: &str) -> Vec<String> {
    arguments.extend(["--json".to_owned(), "--".to_owned(), name.to_owned()]);
    arguments
}

/// Runs commands of this program in a project.
#[derive(Debug)]
pub(super) struct CommandRunner {
    program: PathBuf,
    project: PathBuf,
}

impl CommandRunner {
    pub(super) fn new(project: Option<&Path>) -> Result<Self, CommandError> {
        let project = project.unwrap_or(Path::new("."));
        let project = project.canonicalize().map_err(|error| {
            CommandError::input(format!("{}: {error}", project.display()))
                .hint("pass an existing folder with --project")
        })?;
        Ok(Self { program: std::env::current_exe()?, project })
    }

    /// Runs a command, and returns its JSON as the response.
    pub(super) async fn run(&self, arguments: &[String]) -> Response {
        let mut command = Command::new(&self.program);
        let has_json = arguments.iter().any(|argument| argument == "--json");
        command.args(arguments).args((!has_json).then_some("--json"));
        command.current_dir(&self.project).stdin(Stdio::null()).kill_on_drop(true);
        let finished = time::timeout(COMMAND_TIMEOUT, command.output()).await;
        let Ok(Ok(finished)) = finished else {
            let name = arguments.first().map_or("", String::as_str);
            let hint = format!("run `savoir {name}` in a terminal");
            return refusal(StatusCode::GATEWAY_TIMEOUT, "the command did not end in time", &hint);
        };
        match serde_json::from_slice::<Value>(&finished.stdout) {
            Ok(value) if value.get("error").is_some() => error_response(&value["error"]),
            Ok(value) => Json(value).into_response(),
            Err(_) => {
                let printed = String::from_utf8_lossy(&finished.stderr);
                refusal(StatusCode::UNPROCESSABLE_ENTITY, printed.trim(), "run it in a terminal")
            }
        }
    }
}

/// Converts the error of a command to the format of the app.
fn error_response(error: &Value) -> Response {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let hints: Vec<String> = error["hints"].as_array().into_iter().flatten().map(text).collect();
    let body = serde_json::json!({
        "code": error["code"],
        "detail": error["message"],
        "hint": hints.join("\n"),
    });
    (StatusCode::UNPROCESSABLE_ENTITY, Json(body)).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_cannot_be_an_option() {
        let question = Question::parse("scan", "--deep").unwrap();
        assert_eq!(question.arguments(), ["scan", "--json", "--", "--deep"]);
        let body = ActionBody { name: "--all".to_owned(), ..ActionBody::default() };
        let arguments = Action::Update.arguments(&body);
        assert_eq!(arguments, ["update", "--yes", "--json", "--", "--all"]);
    }

    #[test]
    fn values_of_options_stay_values() {
        let (agent, without) = ("--json".to_owned(), vec!["--all".to_owned()]);
        let context = Question::Context { agent, context: Some(9), without };
        assert_eq!(
            context.arguments(),
            ["context", "simulate", "--agent=--json", "--context=9", "--without=--all"]
        );
        let body = ActionBody {
            name: "pdf".to_owned(),
            agent: Some("codex".to_owned()),
            accept: vec!["all".to_owned()],
        };
        assert_eq!(
            Action::Disable.arguments(&body),
            ["disable", "--agent=codex", "--json", "--", "pdf"]
        );
        assert_eq!(
            Action::Update.arguments(&body),
            ["update", "--yes", "--accept=all", "--json", "--", "pdf"]
        );
    }

    #[test]
    fn unknown_questions_and_actions_are_refused() {
        for name in ["install", "run", "../list", "serve", ""] {
            assert_eq!(Question::parse(name, "a"), None, "{name}");
            assert_eq!(Action::parse(name), None, "{name}");
        }
    }
}
