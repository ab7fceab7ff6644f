//! Finds the handler functions of actions.

use savoir_skill::{
    convert::migrate::{MigratedTool, MigrationNote},
    python::{self, Function, Module, TOOLS_FILE},
};

use super::MigrationBlocker;
use crate::{
    File, Tree,
    path::{self, PathProblem},
};

/// Function names that are tried after the name of the action if a handler names no function.
/// Running an action tries the same names.
const USUAL_FUNCTION_NAMES: [&str; 3] = ["handler", "main", "run"];

/// A tool and the call that it makes.
pub(super) struct HandlerCall<'a> {
    pub(super) tool: &'a MigratedTool,
    pub(super) target: Target,
}

/// The target of a call.
pub(super) enum Target {
    /// A function in a file of the skill.
    Function { path: String, name: String },
    /// No function was found; the tool fails with this message.
    Nothing(String),
}

/// Returns the new name of a `tools.py` of the source, if GAIA needs that name.
pub(super) fn moved_tools(files: &[(String, File)]) -> Option<(String, String)> {
    let has = |name: &str| files.iter().find(|(path, _)| path.eq_ignore_ascii_case(name));
    let (from, _) = has(TOOLS_FILE)?;
    let free = |name: &String| has(name).is_none();
    let numbered = (2..100).map(|number| format!("openclaw_tools_{number}.py"));
    let mut names = std::iter::once("openclaw_tools.py".to_owned()).chain(numbered);
    Some((from.clone(), names.find(free)?))
}

/// Finds the function of every tool. A path that leads out of the skill is rejected.
pub(super) fn resolve<'a>(
    tools: &'a [MigratedTool],
    tree: &Tree,
    moved: Option<&(String, String)>,
    notes: &mut Vec<MigrationNote>,
) -> Result<Vec<HandlerCall<'a>>, MigrationBlocker> {
    let mut calls = Vec::new();
    for tool in tools {
        let mut look = HandlerSearch { tool, tree, moved, notes };
        calls.push(HandlerCall { tool, target: look.target()? });
    }
    Ok(calls)
}

struct HandlerSearch<'a, 'n> {
    tool: &'a MigratedTool,
    tree: &'a Tree,
    moved: Option<&'a (String, String)>,
    notes: &'n mut Vec<MigrationNote>,
}

impl HandlerSearch<'_, '_> {
    fn target(&mut self) -> Result<Target, MigrationBlocker> {
        let (path, function) = split(&self.tool.handler);
        let path = path.strip_prefix("./").unwrap_or(path);
        if path.is_empty() {
            return Ok(self.no_handler("the action has no handler"));
        }
        path::check(path).map_err(|problem| self.path_blocker(&problem))?;
        let path = match self.moved {
            Some((from, to)) if from == path => to.as_str(),
            _ => path,
        };
        let Some(file) = self.tree.get(path) else {
            return Ok(self.no_handler(&format!("`{path}` is not in the skill")));
        };
        let is_python = path.rsplit_once('.').is_some_and(|(_, end)| end == "py");
        if !is_python {
            let why = format!("`{path}` is not Python; write the function in `{TOOLS_FILE}`");
            return Ok(self.no_handler(&why));
        }
        let module = match python::parse_bytes(&file.bytes) {
            Ok(module) => module,
            Err(error) => return Ok(self.no_handler(&format!("`{path}` does not read: {error}"))),
        };
        let name = match function {
            "" => self.usual_function(&module),
            name => Some(name.to_owned()),
        };
        let Some(name) = name else {
            return Ok(self.no_handler(&format!("`{path}` has no function for the action")));
        };
        match module.function(&name) {
            Some(function) => self.compare_parameters(function),
            None => self.review(&format!("see where `{path}` gets its function `{name}` from")),
        }
        Ok(Target::Function { path: path.to_owned(), name })
    }

    fn usual_function(&self, module: &Module) -> Option<String> {
        let action = &self.tool.action;
        let own = [action.clone(), action.replace('-', "_")];
        let mut names = own.into_iter().chain(USUAL_FUNCTION_NAMES.map(str::to_owned));
        names.find(|name| module.function(name).is_some())
    }

    /// Reports parameters that the function requires and the action lacks, and vice versa.
    fn compare_parameters(&mut self, function: &Function) {
        let name = &function.name;
        let takes = |argument: &String| function.parameters.iter().any(|one| one.name == *argument);
        let given = |parameter: &str| self.tool.arguments.iter().any(|one| one == parameter);
        let surplus = self.tool.arguments.iter().find(|one| !takes(one) && !function.has_kwargs);
        let mut needed = function.parameters.iter().filter(|one| !one.has_default);
        let lacking = needed.find(|one| !given(&one.name));
        let message = match (surplus, lacking) {
            (Some(argument), _) => format!("the handler `{name}` does not take `{argument}`"),
            (None, Some(parameter)) => {
                format!("the handler `{name}` needs `{}`, which is not declared", parameter.name)
            }
            (None, None) => return,
        };
        self.review(&message);
    }

    fn no_handler(&mut self, why: &str) -> Target {
        self.review(&format!("calling it fails: {why}"));
        Target::Nothing(why.to_owned())
    }

    fn review(&mut self, message: &str) {
        self.notes.push(MigrationNote::review(format!("actions.{}", self.tool.action), message));
    }

    fn path_blocker(&self, problem: &PathProblem) -> MigrationBlocker {
        let MigratedTool { action, handler, .. } = self.tool;
        let message = format!("the handler `{handler}` of `{action}`: {problem}");
        MigrationBlocker::new("handler_path", message)
    }
}

/// Splits `path:function` or `path#function`; the function is optional.
fn split(handler: &str) -> (&str, &str) {
    let split = handler.rsplit_once([':', '#']).filter(|(path, _)| !path.is_empty());
    let (path, function) = split.unwrap_or((handler, ""));
    (path.trim(), function.trim())
}
