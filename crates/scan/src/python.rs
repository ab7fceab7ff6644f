//! Reads Python files and records what they do as actions, using the syntax tree.
//!
//! Every expression becomes a [`Value`]. Values flow through variables, calls and return values.
//! The tree is walked twice, so that a function knows the arguments of calls further down.

mod calls;
mod defaults;
mod dispatch;
mod format;
mod library;
mod sources;
mod web;

use std::collections::HashMap;

use ruff_python_ast::{
    CmpOp, Comprehension, ConversionFlag, ExceptHandler, Expr, ExprAttribute, ExprCall,
    FStringPart, InterpolatedStringElement, Number, Operator, Parameters, Stmt, StmtClassDef,
    StmtFunctionDef,
};
use ruff_python_parser::parse_module;
use ruff_text_size::{Ranged, TextRange};
use savoir_skill::Span;

use super::{
    action::{Action, Actions, Taint},
    collect::ReadError,
    value::{
        self, CallArguments, Choice, CrossFileState, MAX_ITEMS, UNKNOWN, Value, environment,
        most_dangerous_item, record_secret_name_list,
    },
};

/// Reads a text as Python; fails if it cannot be parsed.
pub(super) fn read(text: &str) -> Result<Actions, ReadError> {
    read_with(text, &mut CrossFileState::default())
}

/// Like [`read`], with the state that the Python files of a skill share.
pub(super) fn read_with(text: &str, state: &mut CrossFileState) -> Result<Actions, ReadError> {
    // This parser rejects files that are too large or nest too deep, before anything here recurses.
    // Short texts cannot nest too deep, and documents have many short code blocks.
    if text.len() > MAX_SHALLOW_BYTES {
        savoir_skill::python::parse(text).map_err(|error| {
            let kind = if error.is_limit { ReadError::limit } else { ReadError::syntax };
            kind(error.message)
        })?;
    }
    let module = parse_module(text).map_err(|error| ReadError::syntax(error.error.to_string()))?;
    let mut reader = PythonReader {
        scopes: vec![HashMap::new()],
        state: std::mem::take(state),
        source: text,
        asks_password: value::has_password_field(text),
        sees_all: web::installs_middleware(text),
        ..PythonReader::default()
    };
    let mut total = 0;
    let mut followed_actions = Actions::default();
    for round in 0..MAX_ROUNDS {
        // More rounds only while calls that are not followed pass something new to a function.
        // Rounds that cost little may be more.
        let last = reader.steps + reader.followed;
        let is_cheap = last <= MAX_CHEAP_STEPS || round == 2 && last <= 2 * MAX_CHEAP_STEPS;
        let is_exhausted = total > MAX_STEPS && !is_cheap || total > MAX_TOTAL_STEPS;
        if round > 1 && (reader.not_followed.is_none() || is_exhausted) {
            break;
        }
        // Large programs call more than can be followed one by one. From now on, each function is read
        // once per round, with what all of its calls pass to it.
        if round > 1 && reader.followed >= MAX_FOLLOWED_STEPS && !reader.merges_calls {
            reader.merges_calls = true;
            followed_actions = std::mem::take(&mut reader.actions);
        }
        reader.actions = Actions::default();
        reader.not_followed = None;
        (reader.steps, reader.followed, reader.tokens) = (0, 0, 0);
        reader.body(&module.syntax().body);
        reader.store_collection_taint();
        total += reader.steps + reader.followed;
    }
    reader.actions.add_all(followed_actions);
    if let Some(at) = reader.not_followed {
        reader.actions.cut("calls that nest deeper than is followed", at);
    }
    let top = reader.scopes.first().into_iter().flatten();
    let top: Vec<_> = top.map(|(name, value)| (name.clone(), value.clone())).collect();
    for (name, value) in &top {
        reader.state.set_constant(name, value);
    }
    *state = std::mem::take(&mut reader.state);
    if state.is_cut {
        reader.actions.cut("more functions, variables and files than are tracked", Span::at(0));
    }
    if reader.connects && reader.hands_over {
        reader.actions.push(Action::ReverseShell, reader.connected_at);
    }
    reader.harmful_calls.report(&mut reader.actions);
    Ok(reader.actions)
}

/// Whether an expression is `self.__dict__`.
fn is_own_dictionary(found: &ExprAttribute) -> bool {
    found.attr.as_str() == "__dict__"
        && matches!(&*found.value, Expr::Name(name) if name.id.as_str() == "self")
}

/// Maximum length of a text that cannot nest too deep for the scanner's stack.
const MAX_SHALLOW_BYTES: usize = 4 * 1024;

/// Maximum number of expressions that are evaluated, and of those evaluated while following calls.
const MAX_STEPS: usize = 400_000;
const MAX_FOLLOWED_STEPS: usize = 100_000;

/// Maximum number of expressions that are evaluated in all rounds, if no round evaluates more than
/// [`MAX_CHEAP_STEPS`].
const MAX_TOTAL_STEPS: usize = 800_000;
const MAX_CHEAP_STEPS: usize = 130_000;

/// Maximum number of times that a file is read.
const MAX_ROUNDS: usize = 24;

/// Maximum depth of followed calls, and of the expression from which a call is followed.
const MAX_CALL_DEPTH: usize = 6;
const MAX_EXPRESSION_DEPTH: usize = 200;

/// A function that the file defines.
#[derive(Clone, Copy)]
struct Function<'t> {
    parameters: Option<&'t Parameters>,
    body: Body<'t>,
}

#[derive(Clone, Copy)]
enum Body<'t> {
    Statements(&'t [Stmt]),
    Expression(&'t Expr),
}

/// A function call that is being followed, and the merged value returned so far.
#[derive(Default)]
struct CallFrame {
    name: String,
    returned: Value,
    choice: Choice,
}

#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a thing of its own that a file can do")]
pub(super) struct PythonReader<'t> {
    actions: Actions,
    scopes: Vec<HashMap<String, Value>>,
    state: CrossFileState,
    functions: HashMap<String, Function<'t>>,
    /// The wrapper function of each decorated function.
    wrappers: HashMap<String, String>,
    /// Taint of the collections after the previous walk over the file.
    before: HashMap<String, Taint>,
    source: &'t str,
    /// Suspicious function names, and whether each occurs as a literal in the file.
    written: HashMap<&'static str, bool>,
    /// The address that log messages are sent to.
    log_to: Option<String>,
    frames: Vec<CallFrame>,
    classes: Vec<String>,
    harmful_calls: value::HarmfulCalls,
    /// The file connects a socket, and it redirects the streams of a shell to a socket.
    connects: bool,
    hands_over: bool,
    connected_at: Span,
    /// Whether the condition of a branch is being read that skips the matched items.
    leaves_out: bool,
    /// The condition of the branch that is being read.
    test: &'t str,
    /// How many branches around the statement select files with secrets.
    picks: usize,
    loops: usize,
    /// Access tokens that were searched for in the source.
    tokens: usize,
    depth: usize,
    steps: usize,
    followed: usize,
    /// The expression that is being evaluated.
    at: Span,
    /// Whether calls are no longer followed one by one.
    merges_calls: bool,
    /// A call that was not followed although it passes something new to a function.
    not_followed: Option<Span>,
    /// Command-line options whose default is an address.
    options: Value,
    /// A web page in the file asks for passwords; the file sees all requests of a web application.
    asks_password: bool,
    sees_all: bool,
}

fn span_of(range: TextRange) -> Span {
    Span::new(range.start().to_usize(), range.end().to_usize())
}

impl<'t> PythonReader<'t> {
    fn body(&mut self, body: &'t [Stmt]) {
        for statement in body {
            self.read_statement(statement);
        }
    }

    fn read_statement(&mut self, statement: &'t Stmt) {
        self.depth += 1;
        self.follow_statement(statement);
        self.depth -= 1;
    }

    fn follow_statement(&mut self, statement: &'t Stmt) {
        match statement {
            Stmt::FunctionDef(function) => self.read_function_definition(function),
            Stmt::ClassDef(class) => self.class(class),
            Stmt::Return(found) => {
                let value =
                    found.value.as_deref().map(|value| self.value(value)).unwrap_or_default();
                let written =
                    found.value.as_deref().map_or("", |value| self.written(value.range()));
                if let Some(frame) = self.frames.last_mut() {
                    frame.choice.add_result(&value, written, span_of(found.range()));
                    frame.returned.merge(&value);
                }
            }
            Stmt::Assign(found) => {
                let target = found.targets.first().and_then(dotted_path).unwrap_or_default();
                let before =
                    std::mem::replace(&mut self.leaves_out, value::is_exclusion_list(&target));
                let value = self.value(&found.value);
                self.leaves_out = before;
                for target in &found.targets {
                    let value = self.with_later_items(target, value.clone());
                    self.record_replaced_recipient(target, &value);
                    self.bind(target, &value);
                }
            }
            Stmt::AnnAssign(found) => {
                if let Some(value) = &found.value {
                    let value = self.value(value);
                    let value = self.with_later_items(&found.target, value);
                    self.bind(&found.target, &value);
                }
            }
            Stmt::AugAssign(found) => {
                let old = self.value(&found.target);
                let new = self.value(&found.value);
                let value = match found.op {
                    Operator::Add => concatenate(old, new),
                    _ => Value::joined(&[old, new], UNKNOWN),
                };
                self.bind(&found.target, &value);
            }
            Stmt::For(found) => {
                let iter = self.value(&found.iter);
                self.bind(&found.target, &most_dangerous_item(&iter));
                self.read_loop_body(&found.body);
                self.body(&found.orelse);
            }
            Stmt::While(found) => {
                self.value(&found.test);
                self.read_loop_body(&found.body);
                self.body(&found.orelse);
            }
            Stmt::If(found) => {
                // Names that a condition skips are not searched for.
                let first = found.body.first();
                self.leaves_out =
                    first.is_some_and(|first| first.is_continue_stmt() || first.is_return_stmt());
                self.value(&found.test);
                self.leaves_out = false;
                let skips =
                    first.is_some_and(|first| first.is_continue_stmt() || first.is_return_stmt());
                self.branch(&found.test, skips, &found.body);
                for clause in &found.elif_else_clauses {
                    match &clause.test {
                        Some(test) => {
                            self.value(test);
                            self.branch(test, false, &clause.body);
                        }
                        None => self.body(&clause.body),
                    }
                }
            }
            Stmt::With(found) => {
                for item in &found.items {
                    let value = self.value(&item.context_expr);
                    if let Some(target) = &item.optional_vars {
                        self.bind(target, &value);
                    }
                }
                self.body(&found.body);
            }
            Stmt::Match(found) => {
                self.value(&found.subject);
                for case in &found.cases {
                    self.body(&case.body);
                }
            }
            Stmt::Try(found) => {
                self.body(&found.body);
                for ExceptHandler::ExceptHandler(handler) in &found.handlers {
                    self.body(&handler.body);
                }
                self.body(&found.orelse);
                self.body(&found.finalbody);
            }
            Stmt::Import(found) => {
                for alias in &found.names {
                    let (name, bound) = (alias.name.as_str(), alias.asname.as_ref());
                    let top = name.split('.').next().unwrap_or(name);
                    let (key, value) = bound.map_or((top, top), |bound| (bound.as_str(), name));
                    self.set(key, Value::named(value));
                }
            }
            Stmt::ImportFrom(found) => {
                let module = found.module.as_ref().map_or("", |module| module.as_str());
                for alias in &found.names {
                    let bound = alias.asname.as_ref().unwrap_or(&alias.name);
                    let value = self.imported_value(module, &alias.name, found.level > 0);
                    self.set(bound, value);
                }
            }
            // A string that is a statement is a comment.
            Stmt::Expr(found) if found.value.is_string_literal_expr() => {}
            Stmt::Expr(found) => {
                self.value(&found.value);
            }
            Stmt::Delete(found) => {
                self.values(&found.targets);
            }
            Stmt::Raise(found) => {
                if let Some(value) = &found.exc {
                    {
                        self.value(value);
                    };
                }
            }
            Stmt::Assert(found) => {
                self.value(&found.test);
            }
            _ => {}
        }
    }

    /// Reads the statements that depend on a condition.
    fn branch(&mut self, test: &'t Expr, skips: bool, body: &'t [Stmt]) {
        let test = self.written(test.range());
        if let Some(frame) = self.frames.last_mut() {
            frame.choice.add_test(test);
        }
        let picks = value::picks_secret_files(test) && !skips;
        self.picks += usize::from(picks);
        let outer = std::mem::replace(&mut self.test, test);
        self.body(body);
        self.test = outer;
        self.picks -= usize::from(picks);
    }

    /// Records that a branch puts an account in the place of what a variable contains.
    fn record_replaced_recipient(&mut self, target: &Expr, value: &Value) {
        let Expr::Name(name) = target else { return };
        let Some(old) = self.lookup(&name.id) else { return };
        if value::replaced_by(self.test, (value, ""), (old, name.id.as_str())) {
            self.actions.push(Action::RedirectsPayment, span_of(target.range()));
        }
    }

    /// The source of an expression.
    fn written(&self, range: TextRange) -> &'t str {
        span_of(range).slice(self.source)
    }

    fn read_loop_body(&mut self, body: &'t [Stmt]) {
        self.loops += 1;
        self.body(body);
        self.loops -= 1;
    }

    fn read_function_definition(&mut self, found: &'t StmtFunctionDef) {
        let mut name = found.name.as_str();
        if name == "__init__" {
            name = self.classes.last().map_or(name, String::as_str);
        }
        let name = name.to_owned();
        let function =
            Function { parameters: Some(&found.parameters), body: Body::Statements(&found.body) };
        self.functions.insert(name.clone(), function);
        self.define(&name, function);
        self.decorate(found, &name);
    }

    /// Evaluates a function with the merged arguments of all its calls.
    fn define(&mut self, name: &str, function: Function<'t>) {
        if self.frames.iter().any(|frame| frame.name == name) {
            return;
        }
        let passed_arguments = self.state.call_arguments.get(name).cloned().unwrap_or_default();
        let value = self.evaluate_function(name, function, &passed_arguments);
        self.state.record_return(name, &value);
    }

    fn evaluate_function(
        &mut self,
        name: &str,
        function: Function<'t>,
        passed_arguments: &CallArguments,
    ) -> Value {
        let scope = self.parameters(function.parameters, passed_arguments);
        self.scopes.push(scope);
        self.frames.push(CallFrame { name: name.to_owned(), ..CallFrame::default() });
        let value = match function.body {
            Body::Statements(body) => {
                self.body(body);
                Value::default()
            }
            Body::Expression(body) => self.value(body),
        };
        self.scopes.pop();
        let frame = self.frames.pop().unwrap_or_default();
        if let Some(span) = frame.choice.replaced_recipient() {
            self.actions.push(Action::RedirectsPayment, span);
        }
        let returned = frame.returned;
        if matches!(function.body, Body::Expression(_)) { value } else { returned }
    }

    fn parameters(
        &mut self,
        parameters: Option<&'t Parameters>,
        passed_arguments: &CallArguments,
    ) -> HashMap<String, Value> {
        let mut scope = HashMap::new();
        let Some(parameters) = parameters else { return scope };
        let own = |name: &str| matches!(name, "self" | "cls");
        let mut names = Vec::new();
        for parameter in parameters.iter_non_variadic_params() {
            let name = parameter.parameter.name.as_str();
            if own(name) {
                continue;
            }
            let keyword = passed_arguments.keywords.iter().find(|(key, _)| key == name);
            let value =
                keyword.map(|(_, value)| value).or(passed_arguments.positional.get(names.len()));
            let default = parameter.default.as_deref().map(|value| self.value(value));
            let value = value.filter(|value| **value != Value::default()).cloned();
            let request_value = web::is_request(name).then(|| Value::named(web::HANDLER_REQUEST));
            scope.insert(name.to_owned(), value.or(default).or(request_value).unwrap_or_default());
            names.push(name);
        }
        if let Some(rest) = &parameters.vararg {
            let items = passed_arguments.positional.iter().skip(names.len()).cloned().collect();
            scope.insert(rest.name.to_string(), Value { items, ..Value::default() });
        }
        if let Some(rest) = &parameters.kwarg {
            let others =
                passed_arguments.keywords.iter().filter(|(key, _)| !names.contains(&key.as_str()));
            let items = others.map(|(key, value)| Value::entry(key, value.clone())).collect();
            scope.insert(rest.name.to_string(), Value { items, ..Value::default() });
        }
        scope
    }

    /// Calls a function that the skill defines.
    fn call_skill_function(
        &mut self,
        name: &str,
        positional: &[Value],
        keywords: &[(String, Value)],
    ) -> Option<Value> {
        let too_deep = self.frames.len() >= MAX_CALL_DEPTH
            || self.depth >= MAX_EXPRESSION_DEPTH
            || self.followed >= MAX_FOLLOWED_STEPS
            || self.merges_calls;
        let recursive = self.frames.iter().any(|frame| frame.name == name);
        if too_deep
            && self.functions.contains_key(name)
            && self.state.is_new_call(name, positional, keywords)
        {
            self.not_followed = self.not_followed.or(Some(self.at));
        }
        self.state.record_call(name, positional, keywords);
        if !recursive {
            self.record_wrapper_arguments(name, positional, keywords);
        }
        let function = self.functions.get(name).copied().filter(|_| !too_deep && !recursive);
        let Some(function) = function else { return self.state.returns.get(name).cloned() };
        let passed_arguments =
            CallArguments { positional: positional.to_vec(), keywords: keywords.to_vec() };
        let before = self.steps;
        let value = self.evaluate_function(name, function, &passed_arguments);
        self.followed += self.steps.saturating_sub(before);
        self.steps = before;
        Some(value)
    }

    /// Calls a function that was passed as a value.
    fn invoke(&mut self, function: &Value, positional: &[Value], span: Span) -> Value {
        let name = function.name.clone().unwrap_or_default();
        let call = calls::Call {
            name: &name,
            method: None,
            receiver: &Value::default(),
            receiver_at: None,
            positional,
            keywords: &[],
            expressions: &[],
            span,
        };
        if let Some(value) = calls::call(self, &call) {
            return value;
        }
        let own = name.rsplit('.').next().unwrap_or(&name).to_owned();
        if let Some(value) = self.call_skill_function(&own, positional, &[]) {
            return value;
        }
        let mut taint = function.all_taint();
        for value in positional {
            taint.add(&value.all_taint());
        }
        Value::tainted(taint)
    }

    fn is_skill_function(&self, function: &Value) -> bool {
        function.name.as_deref().is_some_and(|name| self.functions.contains_key(name))
    }

    fn class(&mut self, class: &'t StmtClassDef) {
        self.classes.push(class.name.to_string());
        self.body(&class.body);
        for statement in &class.body {
            let (target, value) = match statement {
                Stmt::Assign(found) => (found.targets.first(), Some(&found.value)),
                Stmt::AnnAssign(found) => (Some(&*found.target), found.value.as_ref()),
                _ => continue,
            };
            if let (Some(Expr::Name(name)), Some(value)) = (target, value) {
                let value = self.value(value);
                for owner in ["self", "cls", class.name.as_str()] {
                    let path = format!("{owner}.{}", name.id);
                    if let Some(scope) = self.scopes.first_mut() {
                        scope.entry(path).or_insert_with(|| value.clone());
                    }
                }
            }
        }
        self.classes.pop();
    }

    /// Returns the value of a name that is imported from a module.
    fn imported_value(&self, module: &str, name: &str, relative: bool) -> Value {
        let constant = name.chars().all(|c| !c.is_lowercase());
        if let Some(value) = self.state.constants.get(name)
            && (relative || constant || dispatch::has_functions(value))
        {
            return value.clone();
        }
        let mut value = Value::named(format!("{module}.{name}"));
        value.taint.environment = module == "os" && name == "environ";
        value
    }

    fn set(&mut self, name: &str, value: Value) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name.to_owned(), value);
        }
    }

    fn bind(&mut self, target: &'t Expr, value: &Value) {
        match target {
            Expr::Name(name) if value.name.as_deref() == Some("sys.argv") => {
                let mut value = value.clone();
                value.taint.private = value.taint.private.or(value::secret_argument(&name.id));
                self.set(&name.id, value);
            }
            Expr::Name(name) => self.set(&name.id, value.clone()),
            Expr::Attribute(found) => {
                if let Some(path) = dotted_path(target) {
                    if matches!(found.attr.as_str(), "api_base" | "base_url") {
                        self.record_api_redirect(&path, value, target);
                    }
                    // `client.on_message = run`: the function receives messages from outside.
                    if matches!(found.attr.as_str(), "on_message" | "on_data")
                        && self.is_skill_function(value)
                    {
                        let written = Value::tainted(Taint::fetched(""));
                        let passed_arguments = [written.clone(), written.clone(), written];
                        self.invoke(value, &passed_arguments, span_of(target.range()));
                    }
                    // A replaced library function sees the arguments of all its callers.
                    if sources::is_library(&path) && self.is_skill_function(value) {
                        let seen = Value::tainted(Taint::private(value::PROGRAM_REQUESTS));
                        let passed_arguments = vec![seen; 4];
                        self.invoke(value, &passed_arguments, span_of(target.range()));
                        // Callers of the library function are still analyzed with the original
                        // meaning.
                        return;
                    }
                    if let Some(scope) = self.scopes.first_mut() {
                        scope.insert(path, value.clone());
                    }
                }
            }
            Expr::Subscript(found) => {
                let mut container = self.value(&found.value);
                let key = self.value(&found.slice);
                if container.name.as_deref() == Some("os.environ") {
                    if let Some(variable) = key.known() {
                        let span = span_of(target.range());
                        value::record_api_redirect(variable, value, span, &mut self.actions);
                    }
                    return;
                }
                match key.known() {
                    Some(key) if container.name.is_none() => container.put(key, value.clone()),
                    // The container gets the taint of values whose key is unknown.
                    _ => container.taint.add(&value.all_taint()),
                }
                container.taint.add(&key.all_taint());
                self.record_mail_header(&container, &key, value, span_of(target.range()));
                self.assign_in_scope(&found.value, container);
            }
            Expr::Starred(found) => self.bind(&found.value, value),
            Expr::Tuple(found) => self.bind_all(&found.elts, value),
            Expr::List(found) => self.bind_all(&found.elts, value),
            _ => {}
        }
    }

    /// `mail["Bcc"] = "…"` adds a recipient.
    fn record_mail_header(&mut self, mail: &Value, key: &Value, to: &Value, span: Span) {
        if mail.name.as_deref().is_some_and(|name| name.starts_with("email.")) {
            match key.known().map(str::to_ascii_lowercase).as_deref() {
                Some("bcc") => value::record_fixed_recipients(&[], &[to], span, &mut self.actions),
                Some("to" | "cc") => {
                    value::record_fixed_recipients(&[to], &[], span, &mut self.actions);
                }
                _ => {}
            }
        }
    }

    /// `openai.api_base = "https://…"` sends the API key to that address.
    fn record_api_redirect(&mut self, path: &str, value: &Value, target: &Expr) {
        let module = path.split('.').next().unwrap_or(path);
        let variable = format!("{}_API_BASE", module.to_uppercase());
        value::record_api_redirect(&variable, value, span_of(target.range()), &mut self.actions);
    }

    /// Changes a variable or an attribute in the scope where it was set.
    fn assign_in_scope(&mut self, place: &'t Expr, value: Value) {
        match place {
            Expr::Name(name) => {
                let known =
                    self.scopes.iter_mut().rev().find(|scope| scope.contains_key(&*name.id));
                match known {
                    Some(scope) => drop(scope.insert(name.id.to_string(), value)),
                    None => self.set(&name.id, value),
                }
            }
            Expr::Subscript(found) => self.add_taint_to(&found.value, &value.all_taint()),
            other => self.bind(other, &value),
        }
    }

    /// Adds taint to the object that an expression names or is a part of.
    fn add_taint_to(&mut self, target: &'t Expr, taint: &Taint) {
        match target {
            Expr::Name(_) | Expr::Attribute(_) => {
                let root = dotted_path(target).unwrap_or_default();
                let root = root.split('.').next().unwrap_or_default();
                let module = |name: &str| !name.ends_with("()");
                let named = self.lookup(root).and_then(|value| value.name.as_deref());
                let own = matches!(root, "self" | "cls");
                if root.is_empty()
                    || named.is_some_and(module)
                    || named.is_none() && target.is_name_expr() && own
                {
                    return;
                }
                let mut value = self.value(target);
                value.taint.add(taint);
                self.assign_in_scope(target, value);
            }
            Expr::Subscript(found) => self.add_taint_to(&found.value, taint),
            Expr::Call(found) => {
                if let Expr::Attribute(inner) = &*found.func {
                    self.add_taint_to(&inner.value, taint);
                }
            }
            Expr::Await(found) => self.add_taint_to(&found.value, taint),
            _ => {}
        }
    }

    fn bind_all(&mut self, targets: &'t [Expr], value: &Value) {
        for (index, target) in targets.iter().enumerate() {
            let item = value.items.get(index).cloned();
            let argument = value.name.as_deref() == Some("sys.argv") && item.is_none();
            if argument {
                self.bind(target, value);
                continue;
            }
            self.bind(target, &item.unwrap_or_else(|| Value::tainted(value.all_taint())));
        }
    }

    fn lookup(&self, name: &str) -> Option<&Value> {
        self.scopes.iter().rev().find_map(|scope| scope.get(name))
    }

    fn values(&mut self, expressions: impl IntoIterator<Item = &'t Expr>) -> Vec<Value> {
        let mut values = Vec::new();
        for expression in expressions {
            // Long lists of numbers are data, which need not be evaluated one by one.
            if values.len() >= MAX_ITEMS && expression.is_number_literal_expr() {
                if let Some(last) = values.last_mut() {
                    cut_value(last);
                }
                continue;
            }
            let value = self.value(expression);
            match expression {
                Expr::Starred(_) if !value.items.is_empty() => {
                    self.steps += value.items.len();
                    Value::push_items(&mut values, value.items);
                }
                _ => Value::push_item(&mut values, value),
            }
        }
        values
    }

    fn list(&mut self, expressions: impl IntoIterator<Item = &'t Expr>) -> Value {
        Value { items: self.values(expressions), ..Value::default() }
    }

    fn value(&mut self, expression: &'t Expr) -> Value {
        self.steps += 1;
        self.at = span_of(expression.range());
        if self.steps > MAX_STEPS {
            self.actions.cut("more expressions than are followed", self.at);
            return Value::default();
        }
        self.depth += 1;
        let value = self.evaluate_expression(expression);
        self.depth -= 1;
        self.steps += value.weight();
        value
    }

    fn evaluate_expression(&mut self, expression: &'t Expr) -> Value {
        match expression {
            Expr::StringLiteral(found) => {
                let text = found.value.to_str();
                if !self.leaves_out {
                    value::record_credential_mention(
                        text,
                        span_of(expression.range()),
                        &mut self.actions,
                    );
                }
                Value::text(text)
            }
            Expr::BytesLiteral(found) => {
                let bytes: Vec<u8> = found.value.bytes().collect();
                Value { text: String::from_utf8(bytes).ok(), ..Value::default() }
            }
            Expr::NumberLiteral(found) => match &found.value {
                Number::Int(number) => Value::text(number.to_string()),
                _ => Value::default(),
            },
            Expr::FString(found) => self.f_string(found.value.iter()),
            Expr::Name(found) => {
                let known = self.lookup(&found.id).cloned();
                known.unwrap_or_else(|| Value::named(found.id.as_str()))
            }
            Expr::Attribute(found) if is_own_dictionary(found) => self.own_attributes(),
            Expr::Attribute(found) => {
                let known = dotted_path(expression).and_then(|path| self.lookup(&path).cloned());
                known.unwrap_or_else(|| {
                    let base = self.value(&found.value);
                    self.request_attribute(attribute(base, &found.attr), &found.attr)
                })
            }
            Expr::Call(found) => self.call(found),
            Expr::BinOp(found) => {
                let (left, right) = (self.value(&found.left), self.value(&found.right));
                let value = binary(found.op, left, right);
                value::record_credential_mention(
                    value.text_or_unknown(),
                    span_of(expression.range()),
                    &mut self.actions,
                );
                value
            }
            Expr::BoolOp(found) => {
                let mut all = self.values(&found.values).into_iter();
                let mut value = all.next().unwrap_or_default();
                all.for_each(|other| value.merge(&other));
                value
            }
            Expr::If(found) => {
                self.value(&found.test);
                let (mut yes, no) = (self.value(&found.body), self.value(&found.orelse));
                if value::replaced_by(
                    self.written(found.test.range()),
                    (&yes, self.written(found.body.range())),
                    (&no, self.written(found.orelse.range())),
                ) {
                    self.actions.push(Action::RedirectsPayment, span_of(found.range()));
                }
                yes.merge(&no);
                yes
            }
            Expr::Named(found) => {
                let value = self.value(&found.value);
                self.bind(&found.target, &value);
                value
            }
            Expr::List(found) => self.list(&found.elts),
            Expr::Tuple(found) => self.list(&found.elts),
            Expr::Set(found) => self.list(&found.elts),
            Expr::Dict(found) => {
                let mut dictionary = Value::default();
                for item in &found.items {
                    let key = item.key.as_ref().map(|key| self.value(key));
                    let value = self.value(&item.value);
                    match key.as_ref().map(|key| (key, key.known())) {
                        Some((_, Some(key))) => dictionary.put(key, value),
                        Some((key, None)) => {
                            dictionary.taint.add(&key.all_taint());
                            Value::push_item(&mut dictionary.items, value);
                        }
                        None if value.items.is_empty() => dictionary.taint.add(&value.all_taint()),
                        None => {
                            dictionary.taint.add(&value.taint);
                            self.steps += value.items.len();
                            Value::push_items(&mut dictionary.items, value.items);
                        }
                    }
                }
                dictionary
            }
            Expr::ListComp(found) => self.comprehension(&found.generators, &[&found.elt]),
            Expr::SetComp(found) => self.comprehension(&found.generators, &[&found.elt]),
            Expr::Generator(found) => self.comprehension(&found.generators, &[&found.elt]),
            Expr::DictComp(found) => {
                let parts: Vec<&Expr> =
                    found.key.as_deref().into_iter().chain([&*found.value]).collect();
                self.comprehension(&found.generators, &parts)
            }
            Expr::Await(found) => self.value(&found.value),
            Expr::Starred(found) => self.value(&found.value),
            Expr::Yield(found) => {
                let value =
                    found.value.as_deref().map(|value| self.value(value)).unwrap_or_default();
                self.record_yielded(value.clone());
                value
            }
            Expr::YieldFrom(found) => {
                let value = self.value(&found.value);
                self.record_yielded(most_dangerous_item(&value));
                value
            }
            Expr::UnaryOp(found) => self.value(&found.operand),
            Expr::Compare(found) => {
                self.value(&found.left);
                let others = self.values(&found.comparators);
                if found.ops.first() == Some(&CmpOp::In) && !self.leaves_out {
                    let span = span_of(expression.range());
                    for list in &others {
                        record_secret_name_list(list, span, &mut self.actions);
                    }
                }
                Value::default()
            }
            Expr::Lambda(found) => {
                let name = format!("lambda@{}", u32::from(found.range().start()));
                let function = Function {
                    parameters: found.parameters.as_deref(),
                    body: Body::Expression(&found.body),
                };
                self.functions.insert(name.clone(), function);
                self.define(&name, function);
                Value::named(name)
            }
            Expr::Subscript(found) => self.subscript(&found.value, &found.slice, expression),
            _ => Value::default(),
        }
    }

    /// The taint of all attributes of an object: `self.__dict__`, `vars(self)`.
    pub(super) fn own_attributes(&mut self) -> Value {
        let mut taint = Taint::default();
        let first = self.scopes.first().into_iter().flatten();
        let own = first.filter(|(name, _)| name.starts_with("self."));
        let mut count = 0;
        for (_, value) in own {
            taint.add(&value.all_taint());
            count += 1;
        }
        self.steps += count;
        Value::tainted(taint)
    }

    fn f_string(&mut self, parts: impl Iterator<Item = &'t FStringPart>) -> Value {
        let mut values = Vec::new();
        for part in parts {
            match part {
                FStringPart::Literal(literal) => values.push(Value::text(literal.as_str())),
                FStringPart::FString(inner) => {
                    for element in &inner.elements {
                        values.push(match element {
                            InterpolatedStringElement::Literal(literal) => {
                                Value::text(&*literal.value)
                            }
                            InterpolatedStringElement::Interpolation(found) => {
                                let value = self.value(&found.expression);
                                match found.conversion {
                                    ConversionFlag::None | ConversionFlag::Str => value,
                                    _ => Value {
                                        text: Some(format::quote_as_python(&value)),
                                        ..value
                                    },
                                }
                            }
                        });
                    }
                }
            }
        }
        Value::joined(&values, "")
    }

    /// Adds a value to those that a generator yields.
    fn record_yielded(&mut self, value: Value) {
        if let Some(frame) = self.frames.last_mut() {
            Value::push_item(&mut frame.returned.items, value);
        }
    }

    fn subscript(&mut self, base: &'t Expr, index: &'t Expr, whole: &Expr) -> Value {
        let base = self.value(base);
        if let Expr::Slice(slice) = index {
            let reversed =
                slice.step.as_deref().is_some_and(|step| matches!(step, Expr::UnaryOp(_)));
            return match (&base.text, reversed) {
                (Some(text), true) => Value { text: Some(text.chars().rev().collect()), ..base },
                _ => Value {
                    text: base
                        .text
                        .clone()
                        .filter(|_| slice.lower.is_none() && slice.upper.is_none()),
                    ..base
                },
            };
        }
        let index = self.value(index);
        match (base.name.as_deref(), index.known()) {
            (Some("os.environ"), Some(name)) => environment(name),
            (Some("os.environ"), None) => {
                let all = index.taint.environment;
                Value::tainted(Taint { environment: all, ..Taint::default() })
            }
            (
                Some(
                    "globals()"
                    | "locals()"
                    | "vars()"
                    | "__builtins__"
                    | "__builtins__.__dict__"
                    | "builtins.__dict__",
                ),
                Some(name),
            ) => {
                self.actions.push(
                    Action::Obfuscates("a function is looked up by its name"),
                    span_of(whole.range()),
                );
                Value::named(name)
            }
            (Some("sys.modules"), Some(name)) => Value::named(name),
            (Some(module), Some(name)) if module.ends_with(".__dict__") => {
                let module = module.trim_end_matches("__dict__");
                Value::named(format!("{module}{name}"))
            }
            (_, Some(key)) if base.under(key).is_some() => {
                base.under(key).cloned().unwrap_or_default()
            }
            (_, Some(key)) if comes_from_dotenv(&base.taint) => environment(key),
            _ => {
                let item = index
                    .number()
                    .and_then(|at| base.items.get(usize::try_from(at).ok()?).cloned());
                item.or_else(|| dispatch::any_function_of(&base)).unwrap_or_else(|| Value {
                    name: base.name.clone(),
                    ..Value::tainted(base.all_taint())
                })
            }
        }
    }

    fn comprehension(&mut self, generators: &'t [Comprehension], parts: &[&'t Expr]) -> Value {
        self.scopes.push(HashMap::new());
        let mut each = Vec::new();
        let mut taint = Taint::default();
        for generator in generators {
            let iter = self.value(&generator.iter);
            each.clone_from(&iter.items);
            if each.is_empty()
                && let Some(text) = iter.known()
            {
                each = text.chars().take(MAX_ITEMS).map(|c| Value::text(c.to_string())).collect();
                taint.is_cut |= text.len() > MAX_ITEMS;
            }
            taint.add(&iter.taint);
            self.bind(&generator.target, &most_dangerous_item(&iter));
            self.values(&generator.ifs);
        }
        let mut items = Vec::new();
        if let ([generator], false) = (generators, each.is_empty()) {
            for item in &each {
                self.bind(&generator.target, item);
                items.extend(parts.iter().map(|part| self.value(part)));
            }
        } else {
            items.extend(parts.iter().map(|part| self.value(part)));
        }
        self.scopes.pop();
        // Without items, the result still has the taint of the list that it was made from.
        let is_cut = taint.is_cut;
        let taint = if items.is_empty() { taint } else { Taint { is_cut, ..Taint::default() } };
        Value { items, taint, ..Value::default() }
    }

    fn call(&mut self, call: &'t ExprCall) -> Value {
        let (receiver, callee, method, receiver_at) = match &*call.func {
            Expr::Attribute(found) => {
                let receiver = self.value(&found.value);
                let known = dotted_path(&call.func).and_then(|path| self.lookup(&path).cloned());
                let callee = known.unwrap_or_else(|| attribute(receiver.clone(), &found.attr));
                (receiver, callee, Some(found.attr.as_str()), Some(&*found.value))
            }
            other => (Value::default(), self.value(other), None, None),
        };
        let positional = self.values(&call.arguments.args);
        let mut keywords: Vec<(String, Value)> = Vec::new();
        for keyword in &call.arguments.keywords {
            let value = self.value(&keyword.value);
            if let Some(name) = &keyword.arg {
                keywords.push((name.to_string(), value));
                continue;
            }
            let entries = value.items.iter().filter_map(Value::as_entry);
            keywords.extend(entries.map(|(key, value)| (key.to_owned(), value.clone())));
            keywords.push(("**".to_owned(), Value::tainted(value.all_taint())));
        }
        let (source, span) = (self.source, span_of(call.range()));
        let searched = &mut self.tokens;
        value::record_assembled_tokens(&positional, source, searched, span, &mut self.actions);
        for (_, value) in &keywords {
            let one = std::slice::from_ref(value);
            value::record_assembled_tokens(one, source, searched, span, &mut self.actions);
        }
        let name = callee.name.clone().unwrap_or_default();
        let found = calls::Call {
            name: &name,
            method,
            receiver: &receiver,
            receiver_at,
            positional: &positional,
            keywords: &keywords,
            expressions: &call.arguments.args,
            span: span_of(call.range()),
        };
        self.called(&found, &callee)
    }

    fn called(&mut self, call: &calls::Call<'_, 't>, callee: &Value) -> Value {
        if call.name == dispatch::ANY_FUNCTION {
            return self.call_each_choice(callee, call);
        }
        let own = call.name.rsplit('.').next().unwrap_or(call.name);
        let own = call.method.unwrap_or(own).to_owned();
        let library = call
            .receiver
            .name
            .as_deref()
            .is_some_and(|name| name.contains('(') || sources::is_library(name));
        // A method that the skill defines takes precedence over a library method of the same name.
        if !library
            && self.functions.contains_key(&own)
            && call.method.is_some()
            && let Some(mut value) = self.call_skill_function(&own, call.positional, call.keywords)
        {
            if call.receiver.name.is_none() {
                value.taint.add(&call.receiver.taint);
            }
            return value;
        }
        if let Some(value) = calls::call(self, call) {
            return value;
        }
        let options: Vec<(&str, &Value)> =
            call.keywords.iter().map(|(key, value)| (key.as_str(), value)).collect();
        value::record_api_client(call.name, &options, call.span, &mut self.actions);
        if let Some(value) = calls::call_function_arguments(self, call) {
            return value;
        }
        if !own.is_empty()
            && let Some(value) = self.call_skill_function(&own, call.positional, call.keywords)
        {
            return value;
        }
        let mut taint = call.receiver.all_taint();
        call.positional
            .iter()
            .chain(call.keywords.iter().map(|(_, value)| value))
            .for_each(|value| taint.add(&value.all_taint()));
        let name = callee.name.as_ref().map(|name| format!("{name}()"));
        Value { name, taint, ..Value::default() }
    }

    /// Records that a file is read, and adds the taint of data that the skill wrote to it.
    fn read_file(&mut self, path: &Value, span: Span) -> Value {
        let mut value = value::read(path, span, &mut self.actions);
        value.taint.add(&self.state.contents(path.text_or_unknown()));
        if self.picks > 0 {
            value::mark_picked(&mut value.taint);
        }
        value
    }

    /// Records that a file is written.
    fn write_file(&mut self, path: &Value, text: &Value, span: Span) {
        let (path_text, text_shown) =
            (path.text_or_unknown().to_owned(), text.text_or_unknown().to_owned());
        value::record_downloaded_write(path, text, span, &mut self.actions);
        self.actions.push(Action::WritesFile { path: path_text, text: text_shown }, span);
        self.state.write(path, &text.all_taint());
    }
}

fn comes_from_dotenv(taint: &Taint) -> bool {
    taint.tokens.len() == 1 && taint.tokens[0] == ".env"
}

/// Returns an attribute of a value.
fn attribute(base: Value, attribute: &str) -> Value {
    let path = base.name.as_deref() == Some("pathlib.Path()");
    if path && attribute == "parent" {
        let text = base.text.as_deref().and_then(|text| text.rsplit_once('/'));
        return Value { text: text.map(|(parent, _)| parent.to_owned()), ..base };
    }
    if base.name.as_deref() == Some(defaults::PARSED_OPTIONS) {
        let mut value = base.under(attribute).cloned().unwrap_or_default();
        value.taint.private = value.taint.private.or(value::secret_argument(attribute));
        return value;
    }
    if path && matches!(attribute, "name" | "stem" | "suffix") {
        return Value::tainted(base.all_taint());
    }
    let name = base.name.as_ref().map(|name| format!("{name}.{attribute}"));
    let mut value = Value { name, ..base };
    match value.name.as_deref() {
        Some("os.environ") => value.taint.environment = true,
        Some("sys.executable") => value.text = Some("python3".into()),
        // Request parameters of a web server come from outside.
        Some(
            "flask.request.args" | "flask.request.json" | "flask.request.form"
            | "flask.request.data",
        ) => value.taint.fetched = Some(String::new()),
        _ => {}
    }
    value
}

fn concatenate(left: Value, right: Value) -> Value {
    if left.items.is_empty() && right.items.is_empty() {
        return Value::joined(&[left, right], "");
    }
    let mut taint = left.taint.clone();
    taint.add(&right.taint);
    taint.is_cut |= left.items.len() + right.items.len() > MAX_ITEMS;
    let items = left.items.into_iter().chain(right.items).take(MAX_ITEMS).collect();
    Value { items, taint, ..Value::default() }
}

fn binary(operator: Operator, left: Value, right: Value) -> Value {
    if let (Some(a), Some(b)) = (left.number(), right.number()) {
        let number = match operator {
            Operator::Add => a.checked_add(b),
            Operator::Sub => a.checked_sub(b),
            Operator::BitXor => Some(a ^ b),
            Operator::Mod => a.checked_rem(b),
            Operator::Mult => a.checked_mul(b),
            _ => None,
        };
        return number.map(|number| Value::text(number.to_string())).unwrap_or_default();
    }
    if let (Operator::Mult, Some(text), Some(count)) = (operator, left.known(), right.number()) {
        let count = usize::try_from(count).unwrap_or(0);
        return Value { text: Some(value::repeated(text, count)), ..left };
    }
    match operator {
        Operator::Add => concatenate(left, right),
        Operator::Div => {
            let name = left.name.clone().filter(|name| name == "pathlib.Path()");
            Value { name, ..Value::joined(&[left, right], "/") }
        }
        Operator::Mod => format::format_percent(&left, &right),
        _ => {
            let mut taint = left.all_taint();
            taint.add(&right.all_taint());
            taint.decoded |= operator == Operator::BitXor;
            Value::tainted(taint)
        }
    }
}

/// Marks a value as not complete.
fn cut_value(value: &mut Value) {
    value.taint.is_cut = true;
}

/// Returns the dotted path `a.b.c` as written.
fn dotted_path(expression: &Expr) -> Option<String> {
    match expression {
        Expr::Name(name) => Some(name.id.to_string()),
        Expr::Attribute(found) => Some(format!("{}.{}", dotted_path(&found.value)?, found.attr)),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
