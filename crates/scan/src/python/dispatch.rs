//! Resolves functions that are chosen at run time: from a table, by name, or by a decorator.

use ruff_python_ast::{Expr, StmtFunctionDef};
use ruff_text_size::Ranged;

use super::{PythonReader, calls::Call, sources, span_of};
use crate::{
    action::{Action, Taint},
    value::{self, Value},
};

/// Name of a value that is one of several functions; the functions are its items.
pub(super) const ANY_FUNCTION: &str = "one of several()";

/// Maximum number of functions of a table that are followed. Reaching the limit is recorded.
const MAX_CHOICES: usize = 256;

/// Functions whose name is only assembled from pieces in order to hide it.
const SUSPICIOUS_NAMES: [&str; 22] = [
    "system", "popen", "Popen", "exec", "eval", "compile", "__import__", "check_output",
    "getoutput", "subprocess", "os", "socket", "ctypes", "pty", "urlopen", "urllib.request",
    "requests", "base64", "b64decode", "marshal", "builtins", "execve",
];

fn is_table(value: &Value) -> bool {
    let functions = value.items.iter().filter_map(Value::as_entry);
    value.name.is_none() && functions.clone().any(|(_, value)| value.name.is_some())
}

/// Whether a value is a table of functions.
pub(super) fn has_functions(value: &Value) -> bool {
    is_table(value)
}

/// Returns a value for any function of a table, when the key is unknown.
pub(super) fn any_function_of(table: &Value) -> Option<Value> {
    is_table(table).then(|| {
        let values = table.items.iter().filter_map(Value::as_entry).map(|(_, value)| value);
        let mut functions = values.filter(|value| value.name.is_some());
        let items: Vec<Value> = functions.by_ref().take(MAX_CHOICES).cloned().collect();
        let mut taint = table.taint.clone();
        taint.is_cut |= functions.next().is_some();
        Value { name: Some(ANY_FUNCTION.into()), items, taint, ..Value::default() }
    })
}

impl<'t> PythonReader<'t> {
    /// Calls every function that the callee can be.
    pub(super) fn call_each_choice(&mut self, callee: &Value, call: &Call<'_, 't>) -> Value {
        let mut value = Value::default();
        self.steps += callee.items.len();
        if callee.taint.is_cut {
            self.actions.cut("more functions in a table than are followed", call.span);
        }
        for function in &callee.items {
            let mut passed_values = call.positional.to_vec();
            passed_values.extend(call.keywords.iter().map(|(_, value)| value.clone()));
            value.merge(&self.invoke(function, &passed_values, call.span));
        }
        value
    }

    /// Returns the methods that match a name whose end comes from the network.
    pub(super) fn methods_matching(&mut self, name: &Value) -> Option<Value> {
        name.taint.fetched.as_ref()?;
        // Searching all functions counts as steps, so that the limit applies.
        self.steps += self.functions.len();
        let start = name.text_or_unknown().split("{}").next().unwrap_or_default();
        let mut names: Vec<&String> =
            self.functions.keys().filter(|known| known.starts_with(start)).collect();
        names.sort();
        let is_cut = names.len() > MAX_CHOICES;
        let items: Vec<Value> = names.into_iter().take(MAX_CHOICES).map(Value::named).collect();
        let taint = Taint { is_cut, ..Taint::default() };
        (!items.is_empty()).then(|| Value {
            name: Some(ANY_FUNCTION.into()),
            items,
            taint,
            ..Value::default()
        })
    }

    /// Records a suspicious name that was assembled and does not occur in the file.
    pub(super) fn record_assembled_name(&mut self, name: &Value, call: &Call<'_, 't>) {
        let telling =
            name.known().and_then(|name| SUSPICIOUS_NAMES.iter().find(|known| **known == name));
        let Some(text) = telling else { return };
        let source = self.source;
        // The file is searched once for each name.
        let written = self.written.entry(text).or_insert_with(|| {
            ['"', '\''].iter().any(|mark| source.contains(&format!("{mark}{text}{mark}")))
        });
        // Record each name only once.
        if !std::mem::replace(written, true) {
            let how = "a function is looked up by a name that is put together";
            self.actions.push(Action::Obfuscates(how), call.span);
        }
    }

    /// Handles decorators: a wrapper may store the arguments of the function, and a chat or web
    /// framework calls the function with data from outside.
    pub(super) fn decorate(&mut self, found: &'t StmtFunctionDef, name: &str) {
        for decorator in &found.decorator_list {
            let value = self.value(&decorator.expression);
            let span = span_of(decorator.expression.range());
            let from = value.name.clone().unwrap_or_default();
            let function = Value::named(name);
            if matches!(from.rsplit('.').next(), Some("property" | "cached_property")) {
                self.store_property(name);
                continue;
            }
            if from == "click.option()" {
                let entries = value.items.iter().filter_map(Value::as_entry);
                let passed_values: Vec<_> =
                    entries.map(|(key, value)| (key.to_owned(), value.clone())).collect();
                self.state.record_call(name, &[], &passed_values);
                continue;
            }
            if sources::receives_outside_data(&from) {
                let written = Value::tainted(Taint::fetched(""));
                let count = found
                    .parameters
                    .iter_non_variadic_params()
                    .count()
                    .min(value::MAX_ARGUMENTS + 1);
                self.invoke(&function, &vec![written; count.max(1)], span);
                continue;
            }
            let around = self.invoke(&value, &[function], span).name;
            let wrapper = around.filter(|wrapper| {
                wrapper != name && !wrapper.contains(['(', '.']) && !wrapper.is_empty()
            });
            if let Some(wrapper) = wrapper {
                self.wrappers.insert(name.to_owned(), wrapper);
            }
        }
    }

    /// A property is read like an attribute: `self.settings` calls `settings(self)`.
    fn store_property(&mut self, name: &str) {
        let value = self.state.returns.get(name).cloned().unwrap_or_default();
        if let Some(scope) = self.scopes.first_mut().filter(|_| value != Value::default()) {
            scope.insert(format!("self.{name}"), value);
        }
    }

    /// Records the arguments of a decorated function as arguments of its wrapper.
    pub(super) fn record_wrapper_arguments(
        &mut self,
        name: &str,
        positional: &[Value],
        keywords: &[(String, Value)],
    ) {
        let Some(wrapper) = self.wrappers.get(name).cloned() else { return };
        self.state.record_call(&wrapper, positional, keywords);
        if self.functions.contains_key(&wrapper) && wrapper != name {
            self.call_skill_function(&wrapper, positional, keywords);
        }
    }

    /// Gives a newly created collection the taint of items that are added further down.
    pub(super) fn with_later_items(&self, place: &Expr, mut value: Value) -> Value {
        let fresh = value.text.is_none()
            && value.items.is_empty()
            && value.taint == Taint::default()
            && value.name.as_deref().is_none_or(|name| name.ends_with("()"));
        if fresh
            && let Some(path) = super::dotted_path(place)
            && (self.scopes.len() == 1 || path.contains('.'))
            && let Some(taint) = self.before.get(&path)
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
