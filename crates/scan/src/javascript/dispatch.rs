//! Resolves functions that are chosen at run time: from a table, or by a computed name.

use super::{JavaScriptReader, name_within_file};
use crate::{
    action::{Action, CodeOrigin, Taint},
    fragment::Language,
    value::{self, Value},
};
use savoir_skill::Span;

/// Name of a value that is one of several functions; the functions are its items.
pub(super) const ANY_FUNCTION: &str = "one of several()";

/// Name of the result of `Function(…)`; the parameters and the code are its items.
pub(super) const CONSTRUCTED_FUNCTION: &str = "Function()";

/// Maximum number of functions of a table that are followed. Reaching the limit is recorded.
const MAX_CHOICES: usize = 256;

/// Names that are only assembled from pieces in order to hide them.
const SUSPICIOUS_NAMES: [&str; 16] = [
    "constructor", "eval", "Function", "exec", "execSync", "spawn", "spawnSync", "child_process",
    "require", "fetch", "atob", "process", "mainModule", "execFile", "execFileSync",
    "XMLHttpRequest",
];

/// Returns a value for any function of a table, when the key is unknown.
pub(super) fn any_function_of(table: &Value) -> Option<Value> {
    let values = table.items.iter().filter_map(Value::as_entry).map(|(_, value)| value);
    let mut functions = values.filter(|value| value.name.is_some());
    let items: Vec<Value> = functions.by_ref().take(MAX_CHOICES).cloned().collect();
    let taint = Taint { is_cut: functions.next().is_some(), ..Taint::default() };
    let table = table.name.is_none() && !items.is_empty();
    table.then(|| Value { name: Some(ANY_FUNCTION.into()), items, taint, ..Value::default() })
}

/// Returns a file name without folder and extension.
pub(super) fn file_stem(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.split('.').next().unwrap_or(name)
}

/// Returns the key under which the exports of a file are stored.
pub(super) fn exports_key(stem: &str) -> String {
    format!("exports of {stem}")
}

impl JavaScriptReader<'_> {
    /// Replaces a module of the skill by the value of its exports.
    pub(super) fn resolve_exports(&self, module: &Value) -> Value {
        let path = module.name.as_deref().filter(|name| name.starts_with('.')).unwrap_or_default();
        let name = path.rsplit('/').next().unwrap_or(path);
        let part = name.rsplit('.').next().unwrap_or(name);
        let known = self.state.constants.get(&exports_key(file_stem(path)));
        let known = known.or_else(|| self.state.constants.get(part));
        known.filter(|_| !path.is_empty()).unwrap_or(module).clone()
    }

    /// Records that something that is not in the file chooses how a program is started:
    /// `child_process[name](…)`.
    pub(super) fn record_chosen_command(&mut self, name: &Value, span: Span) {
        let action = match &name.taint.fetched {
            Some(from) => Action::ExecutesCode(CodeOrigin::Fetched(from.clone())),
            None => Action::Obfuscates("the way to start a program is looked up by a name"),
        };
        self.actions.push(action, span);
    }

    /// Calls every function that the callee can be.
    pub(super) fn call_each_choice(
        &mut self,
        callee: &Value,
        arguments: &[Value],
        span: Span,
    ) -> Value {
        let mut value = Value::default();
        self.steps += callee.items.len();
        if callee.taint.is_cut {
            self.actions.cut("more functions in a table than are followed", span);
        }
        for function in &callee.items {
            value.merge(&self.invoke(function, arguments, span));
        }
        value
    }

    /// Records a suspicious name that was assembled and does not occur in the file.
    pub(super) fn record_assembled_name(&mut self, name: &str, span: Span) {
        let marks = ['"', '\'', '`'];
        let Some(name) = SUSPICIOUS_NAMES.iter().find(|known| **known == name) else { return };
        let source = self.source;
        // The file is searched once for each name.
        let written = self.written.entry(name).or_insert_with(|| {
            marks.iter().any(|mark| source.contains(&format!("{mark}{name}{mark}")))
        });
        // Record each name only once.
        if !std::mem::replace(written, true) {
            let how = "a function is looked up by a name that is put together";
            self.actions.push(Action::Obfuscates(how), span);
        }
    }

    /// Calls a function made by `Function(…)`: reads its code with the arguments of the call.
    pub(super) fn call_constructed_function(
        &mut self,
        made: &Value,
        arguments: &[Value],
        span: Span,
    ) -> Value {
        let Some((code, parameters)) = made.items.split_last() else { return Value::default() };
        let Some(code) = code.known() else { return Value::default() };
        let mut lines: Vec<String> = Vec::new();
        let mut taint = made.all_taint();
        for (parameter, given) in parameters.iter().zip(arguments) {
            let Some(parameter) = parameter.known() else { continue };
            taint.add(&given.all_taint());
            if let Some(known) = given.known() {
                lines.push(format!("const {parameter} = {known:?};"));
            } else if let Some(name) = given.name.as_deref().map(name_within_file) {
                lines.push(format!("const {parameter} = {name};"));
            }
        }
        if !lines.is_empty() {
            lines.push(code.to_owned());
            let text = lines.join("\n");
            let whole = Value { taint: Taint { decoded: true, ..taint }, ..Value::text(text) };
            value::record_execution(&whole, Language::JavaScript, span, &mut self.actions);
        }
        Value::default()
    }

    /// Gives a newly created collection the taint of items that are added further down.
    pub(super) fn with_later_items(&self, name: &str, mut value: Value) -> Value {
        let fresh = value.text.is_none()
            && value.items.is_empty()
            && value.taint == Taint::default()
            && value.name.as_deref().is_none_or(|name| name.ends_with("()"));
        if fresh
            && (self.scopes.len() == 1 || name.contains('.'))
            && let Some(taint) = self.before.get(name)
        {
            value.taint.add(taint);
        }
        value
    }

    /// Stores the taint of the top-level collections after the first walk over the file.
    pub(super) fn store_collection_taint(&mut self) {
        self.written.clear();
        let top = self.scopes.first().into_iter().flatten();
        let filled = top.filter(|(_, value)| {
            value.text.is_none() && (value.taint.is_secret() || value.taint.fetched.is_some())
        });
        self.before = filled.map(|(name, value)| (name.clone(), value.taint.clone())).collect();
    }
}
