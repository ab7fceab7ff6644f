//! Reads JavaScript and TypeScript files and records what they do as actions, using the syntax tree.
//!
//! As for Python, every expression becomes a [`Value`], and the tree is walked twice, so that a
//! function knows the arguments of calls further down.

mod calls;
mod depth;
mod dispatch;
mod library;
mod sources;
mod web;

use std::collections::HashMap;

use oxc_allocator::Allocator;
use oxc_ast::ast::{
    Argument, ArrayExpressionElement, ArrowFunctionBody, AssignmentTarget, BinaryOperator,
    BindingPattern, ChainElement, Class, ClassElement, Declaration, ExportDefaultDeclarationKind,
    Expression, ForStatementInit, ForStatementLeft, FormalParameters, FunctionBody,
    ImportDeclarationSpecifier, MemberExpression, ModuleDeclaration, ObjectPropertyKind, Program,
    PropertyKey, Statement, UnaryOperator, VariableDeclaration,
};
use oxc_parser::Parser;
use oxc_span::{GetSpan, SourceType};
use savoir_skill::Span;

use super::{
    action::{Action, Actions, Taint},
    collect::ReadError,
    value::{
        self, CallArguments, Choice, CrossFileState, MAX_ITEMS, Value, environment,
        most_dangerous_item,
    },
};

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
const MAX_CALL_DEPTH: usize = 8;
const MAX_EXPRESSION_DEPTH: usize = 200;

/// Reads a text as TypeScript, which includes JavaScript; fails if it cannot be parsed.
pub(super) fn read(path: &str, text: &str) -> Result<Actions, ReadError> {
    read_with(path, text, &mut CrossFileState::default())
}

/// Like [`read`], with the state that the JavaScript files of a skill share.
pub(super) fn read_with(
    path: &str,
    text: &str,
    state: &mut CrossFileState,
) -> Result<Actions, ReadError> {
    depth::check(text)?;
    let tree = Allocator::default();
    let typescript = matches!(super::collect::extension(path).as_str(), "ts" | "mts" | "cts");
    let kinds = if typescript {
        [SourceType::ts(), SourceType::tsx()]
    } else {
        [SourceType::tsx(), SourceType::ts()]
    };
    let mut problem = String::new();
    for kind in kinds {
        let parsed = Parser::new(&tree, text, kind).parse();
        if let Some(error) = parsed.diagnostics.iter().next() {
            problem = error.to_string();
            if parsed.program.body.is_empty() {
                continue;
            }
        }
        if problem.is_empty() || !parsed.program.body.is_empty() {
            return Ok(read_program(dispatch::file_stem(path), &parsed.program, state));
        }
    }
    Err(ReadError::syntax(problem))
}

fn read_program(stem: &str, program: &Program<'_>, state: &mut CrossFileState) -> Actions {
    let mut reader = JavaScriptReader {
        scopes: vec![HashMap::new()],
        state: std::mem::take(state),
        source: program.source_text,
        asks_password: value::has_password_field(program.source_text),
        ..JavaScriptReader::default()
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
        reader.read_statements(&program.body);
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
        if name == "module.exports" {
            reader.state.set_constant(&dispatch::exports_key(stem), value);
        }
    }
    *state = std::mem::take(&mut reader.state);
    if state.is_cut {
        reader.actions.cut("more functions, variables and files than are tracked", Span::at(0));
    }
    if reader.connects && reader.pipes_shell {
        reader.actions.push(Action::ReverseShell, reader.connected_at);
    }
    reader.harmful_calls.report(&mut reader.actions);
    reader.actions
}

/// A function that the file defines.
#[derive(Clone, Copy)]
struct Function<'t> {
    parameters: &'t FormalParameters<'t>,
    body: Body<'t>,
}

#[derive(Clone, Copy)]
enum Body<'t> {
    Statements(&'t [Statement<'t>]),
    Expression(&'t Expression<'t>),
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
struct JavaScriptReader<'t> {
    actions: Actions,
    scopes: Vec<HashMap<String, Value>>,
    state: CrossFileState,
    functions: HashMap<String, Function<'t>>,
    /// Event listeners by event name.
    listeners: HashMap<String, Vec<Value>>,
    /// Taint of the collections after the previous walk over the file.
    before: HashMap<String, Taint>,
    source: &'t str,
    /// Suspicious function names, and whether each occurs as a literal in the file.
    written: HashMap<&'static str, bool>,
    frames: Vec<CallFrame>,
    harmful_calls: value::HarmfulCalls,
    /// Variables whose initializer is being evaluated, and the last value of every variable.
    declaring: Vec<String>,
    last: HashMap<String, Value>,
    /// The file connects a socket, and it starts a shell.
    connects: bool,
    pipes_shell: bool,
    connected_at: Span,
    /// Whether the condition of a branch is being read that skips the matched items.
    leaves_out: bool,
    /// The condition of the branch that is being read.
    test: &'t str,
    /// How many branches around the statement select files with secrets.
    picks: usize,
    /// A web page in the file asks for passwords.
    asks_password: bool,
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
}

fn span_of(span: oxc_span::Span) -> Span {
    Span::new(span.start as usize, span.end as usize)
}

impl<'t> JavaScriptReader<'t> {
    fn read_statements(&mut self, statements: &'t [Statement<'t>]) {
        for statement in statements {
            self.read_statement(statement);
        }
    }

    fn read_statement(&mut self, statement: &'t Statement<'t>) {
        self.depth += 1;
        self.follow_statement(statement);
        self.depth -= 1;
    }

    fn follow_statement(&mut self, statement: &'t Statement<'t>) {
        if let Some(declaration) = statement.as_declaration() {
            return self.read_declaration(declaration);
        }
        if let Some(module) = statement.as_module_declaration() {
            return self.module(module);
        }
        match statement {
            Statement::BlockStatement(found) => self.read_statements(&found.body),
            Statement::ExpressionStatement(found) => {
                self.value(&found.expression);
            }
            Statement::ReturnStatement(found) => {
                let value =
                    found.argument.as_ref().map(|value| self.value(value)).unwrap_or_default();
                let written =
                    found.argument.as_ref().map_or("", |value| self.written(value.span()));
                if let Some(frame) = self.frames.last_mut() {
                    frame.choice.add_result(&value, written, span_of(found.span));
                    frame.returned.merge(&value);
                }
            }
            Statement::IfStatement(found) => {
                // Names that a condition skips are not searched for.
                self.leaves_out = skips_rest(&found.consequent);
                self.value(&found.test);
                self.leaves_out = false;
                let test = self.written(found.test.span());
                if let Some(frame) = self.frames.last_mut() {
                    frame.choice.add_test(test);
                }
                let picks = value::picks_secret_files(test) && !skips_rest(&found.consequent);
                self.picks += usize::from(picks);
                let outer = std::mem::replace(&mut self.test, test);
                self.read_statement(&found.consequent);
                self.test = outer;
                self.picks -= usize::from(picks);
                if let Some(other) = &found.alternate {
                    self.read_statement(other);
                }
            }
            Statement::ForStatement(found) => {
                if let Some(ForStatementInit::VariableDeclaration(declaration)) = &found.init {
                    self.read_variables(declaration);
                }
                self.read_loop_body(&found.body);
            }
            Statement::ForOfStatement(found) => {
                let list = self.value(&found.right);
                self.bind_loop_variable(&found.left, &list);
                self.read_loop_body(&found.body);
            }
            Statement::ForInStatement(found) => {
                let list = self.value(&found.right);
                self.bind_loop_variable(&found.left, &list);
                self.read_loop_body(&found.body);
            }
            Statement::WhileStatement(found) => {
                self.value(&found.test);
                self.read_loop_body(&found.body);
            }
            Statement::DoWhileStatement(found) => {
                self.read_loop_body(&found.body);
                self.value(&found.test);
            }
            Statement::LabeledStatement(found) => self.read_statement(&found.body),
            Statement::SwitchStatement(found) => {
                self.value(&found.discriminant);
                for case in &found.cases {
                    self.read_statements(&case.consequent);
                }
            }
            Statement::ThrowStatement(found) => {
                self.value(&found.argument);
            }
            Statement::TryStatement(found) => {
                self.read_statements(&found.block.body);
                if let Some(handler) = &found.handler {
                    self.read_statements(&handler.body.body);
                }
                if let Some(last) = &found.finalizer {
                    self.read_statements(&last.body);
                }
            }
            _ => {}
        }
    }

    fn read_declaration(&mut self, declaration: &'t Declaration<'t>) {
        match declaration {
            Declaration::VariableDeclaration(found) => self.read_variables(found),
            Declaration::FunctionDeclaration(found) => {
                let name = found.id.as_ref().map_or("", |id| id.name.as_str());
                self.function(name, &found.params, found.body.as_deref());
            }
            Declaration::ClassDeclaration(found) => self.class(found),
            _ => {}
        }
    }

    fn module(&mut self, module: &'t ModuleDeclaration<'t>) {
        match module {
            ModuleDeclaration::ImportDeclaration(found) => {
                let from = normalize_module_name(found.source.value.as_str());
                for specifier in found.specifiers.iter().flatten() {
                    let (local, name) = match specifier {
                        ImportDeclarationSpecifier::ImportSpecifier(one) => {
                            (&one.local, format!("{from}.{}", one.imported.name()))
                        }
                        ImportDeclarationSpecifier::ImportDefaultSpecifier(one) => {
                            let own = if from.starts_with('.') { ".default" } else { "" };
                            (&one.local, format!("{from}{own}"))
                        }
                        ImportDeclarationSpecifier::ImportNamespaceSpecifier(one) => {
                            (&one.local, from.to_owned())
                        }
                    };
                    let imported = name.rsplit('.').next().unwrap_or_default();
                    let constant = self.state.constants.get(imported);
                    let constant = constant.filter(|_| from.starts_with('.')).cloned();
                    self.declare_variable(
                        local.name.as_str(),
                        constant.unwrap_or_else(|| Value::named(name)),
                    );
                }
            }
            ModuleDeclaration::ExportDeclaration(found) => {
                self.read_declaration(&found.declaration);
            }
            ModuleDeclaration::ExportDefaultDeclaration(found) => match &found.declaration {
                ExportDefaultDeclarationKind::FunctionDeclaration(function) => {
                    self.function("default", &function.params, function.body.as_deref());
                    let known = self.functions.get("default").copied();
                    if let (Some(id), Some(known)) = (&function.id, known) {
                        self.functions.insert(id.name.to_string(), known);
                    }
                }
                ExportDefaultDeclarationKind::ClassDeclaration(class) => self.class(class),
                other => {
                    if let Some(value) = other.as_expression() {
                        let value = self.value(value);
                        self.name_anonymous_function("default", &value);
                    }
                }
            },
            _ => {}
        }
    }

    fn class(&mut self, class: &'t Class<'t>) {
        let own = class.id.as_ref().map_or("default", |id| id.name.as_str());
        for element in &class.body.body {
            match element {
                ClassElement::MethodDefinition(method) => {
                    let name = property_name(&method.key).unwrap_or_default();
                    let name = if name == "constructor" { own } else { &name };
                    self.function(name, &method.value.params, method.value.body.as_deref());
                }
                ClassElement::PropertyDefinition(property) => {
                    let value = property.value.as_ref().map(|value| self.value(value));
                    let key = match &property.key {
                        PropertyKey::PrivateIdentifier(name) => Some(format!("#{}", name.name)),
                        other => property_name(other),
                    };
                    if let (Some(value), Some(key)) = (value, key) {
                        self.name_anonymous_function(&key, &value);
                        if let Some(scope) = self.scopes.first_mut() {
                            scope.entry(format!("this.{key}")).or_insert(value);
                        }
                    }
                }
                ClassElement::StaticBlock(block) => self.read_statements(&block.body),
                _ => {}
            }
        }
    }

    fn read_loop_body(&mut self, body: &'t Statement<'t>) {
        self.loops += 1;
        self.read_statement(body);
        self.loops -= 1;
    }

    fn read_variables(&mut self, declaration: &'t VariableDeclaration<'t>) {
        for one in &declaration.declarations {
            let BindingPattern::BindingIdentifier(id) = &one.id else {
                let value = one.init.as_ref().map(|value| self.value(value)).unwrap_or_default();
                self.bind(&one.id, &value);
                continue;
            };
            let name = id.name.as_str();
            let Some(init) = &one.init else {
                self.declare_variable(name, Value::default());
                continue;
            };
            self.declaring.push(name.to_owned());
            let before = std::mem::replace(&mut self.leaves_out, value::is_exclusion_list(name));
            let value = self.value(init);
            self.leaves_out = before;
            self.declaring.pop();
            self.name_anonymous_function(name, &value);
            let value = self.with_later_items(name, value);
            self.last.insert(name.to_owned(), value.clone());
            self.declare_variable(name, value);
        }
    }

    /// Gives an anonymous function the name that it is stored under.
    fn name_anonymous_function(&mut self, name: &str, value: &Value) {
        let known = value.name.as_deref().filter(|name| name.starts_with("function@"));
        if let Some(function) = known.and_then(|known| self.functions.get(known)).copied() {
            self.functions.insert(name.to_owned(), function);
            // Calls in this file are already followed; calls in other files only know the name.
            let passed_arguments = self.state.call_arguments.get(name).cloned().unwrap_or_default();
            let value = self.call_skill_function(name, &passed_arguments.positional);
            if let Some(value) = value.filter(|value| *value != Value::default()) {
                self.state.record_return(name, &value);
            }
        }
    }

    fn closure(&mut self, at: u32, function: Function<'t>) -> Value {
        let name = format!("function@{at}");
        self.functions.insert(name.clone(), function);
        self.define(&name, function);
        Value::named(name)
    }

    fn function(
        &mut self,
        name: &str,
        parameters: &'t FormalParameters<'t>,
        body: Option<&'t FunctionBody<'t>>,
    ) {
        let Some(body) = body else { return };
        let function = Function { parameters, body: Body::Statements(&body.statements) };
        self.functions.insert(name.to_owned(), function);
        self.define(name, function);
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
        self.scopes.push(HashMap::new());
        for (index, parameter) in function.parameters.items.iter().enumerate() {
            let value =
                passed_arguments.positional.get(index).filter(|value| **value != Value::default());
            let default = parameter.initializer.as_deref().map(|value| self.value(value));
            let request_value = || web::first_argument(name, function, self.asks_password);
            let request_value = if index == 0 && value.is_none() { request_value() } else { None };
            let value = value.cloned().or(default).or(request_value).unwrap_or_default();
            self.bind(&parameter.pattern, &value);
            // `constructor(private name: string)` also declares an attribute.
            if let (Some(_), BindingPattern::BindingIdentifier(id)) =
                (parameter.accessibility, &parameter.pattern)
                && let Some(scope) = self.scopes.first_mut()
            {
                scope.insert(format!("this.{}", id.name), value);
            }
        }
        if let Some(rest) = &function.parameters.rest {
            let items = passed_arguments.positional.iter().skip(function.parameters.items.len());
            let value = Value { items: items.cloned().collect(), ..Value::default() };
            self.bind(&rest.rest.argument, &value);
        }
        self.frames.push(CallFrame { name: name.to_owned(), ..CallFrame::default() });
        let value = match function.body {
            Body::Statements(body) => {
                self.read_statements(body);
                None
            }
            Body::Expression(body) => Some(self.value(body)),
        };
        self.scopes.pop();
        let frame = self.frames.pop();
        if let Some(span) = frame.as_ref().and_then(|frame| frame.choice.replaced_recipient()) {
            self.actions.push(Action::RedirectsPayment, span);
        }
        value.or(frame.map(|frame| frame.returned)).unwrap_or_default()
    }

    /// Calls a function that the skill defines.
    fn call_skill_function(&mut self, name: &str, arguments: &[Value]) -> Option<Value> {
        let too_deep = self.frames.len() >= MAX_CALL_DEPTH
            || self.depth >= MAX_EXPRESSION_DEPTH
            || self.followed >= MAX_FOLLOWED_STEPS
            || self.merges_calls;
        if too_deep
            && self.functions.contains_key(name)
            && self.state.is_new_call(name, arguments, &[])
        {
            self.not_followed = self.not_followed.or(Some(self.at));
        }
        self.state.record_call(name, arguments, &[]);
        let recursive = self.frames.iter().any(|frame| frame.name == name);
        let function = self.functions.get(name).copied().filter(|_| !too_deep && !recursive);
        let Some(function) = function else { return self.state.returns.get(name).cloned() };
        let passed_arguments =
            CallArguments { positional: arguments.to_vec(), keywords: Vec::new() };
        let before = self.steps;
        let value = self.evaluate_function(name, function, &passed_arguments);
        self.followed += self.steps.saturating_sub(before);
        self.steps = before;
        Some(value)
    }

    /// Calls a function that was passed as a value.
    fn invoke(&mut self, function: &Value, arguments: &[Value], span: Span) -> Value {
        let name = function.name.clone().unwrap_or_default();
        if !name.starts_with("function@")
            && let Some(value) = calls::by_name(self, &name, &Value::default(), arguments, span)
        {
            return value;
        }
        if let Some(value) = self.call_skill_function(name_within_file(&name), arguments) {
            return value;
        }
        let mut taint = Taint::default();
        for value in arguments {
            taint.add(&value.all_taint());
        }
        Value::tainted(taint)
    }

    fn is_function(&self, value: &Value) -> bool {
        value
            .name
            .as_deref()
            .is_some_and(|name| self.functions.contains_key(name) || name.starts_with("function@"))
    }

    /// Adds a value to those that a generator yields.
    fn record_yielded(&mut self, value: Value) {
        if let Some(frame) = self.frames.last_mut() {
            Value::push_item(&mut frame.returned.items, value);
        }
    }

    fn bind_loop_variable(&mut self, left: &'t ForStatementLeft<'t>, list: &Value) {
        if let ForStatementLeft::VariableDeclaration(declaration) = left {
            let item = most_dangerous_item(list);
            for one in &declaration.declarations {
                self.bind(&one.id, &item);
            }
        }
    }

    fn declare_variable(&mut self, name: &str, value: Value) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name.to_owned(), value);
        }
    }

    /// Assigns a variable in the scope where it was declared.
    fn assign_variable(&mut self, name: &str, value: Value) {
        let known = self.scopes.iter_mut().rev().find(|scope| scope.contains_key(name));
        match known {
            Some(scope) => drop(scope.insert(name.to_owned(), value)),
            None => self.declare_variable(name, value),
        }
    }

    fn lookup(&self, name: &str) -> Option<&Value> {
        self.scopes.iter().rev().find_map(|scope| scope.get(name))
    }

    fn bind(&mut self, pattern: &'t BindingPattern<'t>, value: &Value) {
        match pattern {
            BindingPattern::BindingIdentifier(id) => {
                self.declare_variable(id.name.as_str(), value.clone());
            }
            BindingPattern::ArrayPattern(found) if value.name.as_deref() == Some(ARGUMENTS) => {
                for element in found.elements.iter().flatten() {
                    let name = match element {
                        BindingPattern::BindingIdentifier(id) => id.name.as_str(),
                        _ => "",
                    };
                    let private = value::secret_argument(name);
                    self.bind(element, &Value::tainted(Taint { private, ..Taint::default() }));
                }
            }
            BindingPattern::ObjectPattern(found) => {
                for property in &found.properties {
                    let part = member(value, &property_name(&property.key).unwrap_or_default());
                    self.bind(&property.value, &part);
                }
                if let Some(rest) = &found.rest {
                    self.bind(&rest.argument, &Value { name: None, ..value.clone() });
                }
            }
            BindingPattern::ArrayPattern(found) => {
                for (index, element) in found.elements.iter().enumerate() {
                    let item = value.items.get(index).cloned();
                    let item = item.unwrap_or_else(|| Value::tainted(value.all_taint()));
                    if let Some(element) = element {
                        self.bind(element, &item);
                    }
                }
                if let Some(rest) = &found.rest {
                    let items = value.items.iter().skip(found.elements.len()).cloned().collect();
                    let taint = value.taint.clone();
                    self.bind(&rest.argument, &Value { items, taint, ..Value::default() });
                }
            }
            BindingPattern::AssignmentPattern(found) => {
                let default = self.value(&found.right);
                let mut value = value.clone();
                if value.text.is_none() && value.items.is_empty() && value.name.is_none() {
                    value.merge(&default);
                }
                self.bind(&found.left, &value);
            }
        }
    }

    /// Evaluates `...value` in a list or an object.
    fn push_spread(&mut self, items: &mut Vec<Value>, value: Value) {
        self.steps += value.items.len();
        if value.items.is_empty() || value.taint != Taint::default() {
            Value::push_item(items, Value::tainted(value.taint.clone()));
        }
        Value::push_items(items, value.items);
    }

    fn arguments(&mut self, arguments: &'t [Argument<'t>]) -> Vec<Value> {
        let mut values = Vec::new();
        for argument in arguments {
            match argument {
                Argument::SpreadElement(spread) => {
                    let value = self.value(&spread.argument);
                    self.push_spread(&mut values, value);
                }
                other => {
                    let value = other.as_expression().map(|value| self.value(value));
                    Value::push_item(&mut values, value.unwrap_or_default());
                }
            }
        }
        values
    }

    fn value(&mut self, expression: &'t Expression<'t>) -> Value {
        self.steps += 1;
        self.at = span_of(expression.span());
        if self.steps > MAX_STEPS {
            self.actions.cut("more expressions than are followed", self.at);
            return Value::default();
        }
        self.depth += 1;
        let value = match expression.as_member_expression() {
            Some(found) => self.member(found),
            None => self.evaluate_expression(expression),
        };
        self.depth -= 1;
        self.steps += value.weight();
        value
    }

    fn evaluate_expression(&mut self, expression: &'t Expression<'t>) -> Value {
        match expression {
            Expression::StringLiteral(found) => {
                if !self.leaves_out {
                    value::record_credential_mention(
                        found.value.as_str(),
                        span_of(found.span),
                        &mut self.actions,
                    );
                }
                Value::text(found.value.as_str())
            }
            Expression::ThisExpression(_) => Value::named("this"),
            Expression::RegExpLiteral(found) => {
                // A pattern must not be treated as text, so it becomes an item of a named value.
                let pattern = Value::text(found.regex.pattern.text.as_str());
                Value { items: vec![pattern], ..Value::named(sources::REGULAR_EXPRESSION) }
            }
            Expression::NumericLiteral(found) if found.value.fract() == 0.0 => {
                Value::text(found.value.to_string())
            }
            Expression::TemplateLiteral(found) => {
                let mut values = Vec::new();
                for (index, quasi) in found.quasis.iter().enumerate() {
                    values
                        .push(Value::text(quasi.value.cooked.unwrap_or(quasi.value.raw).as_str()));
                    values.extend(found.expressions.get(index).map(|value| self.value(value)));
                }
                let value = Value::joined(&values, "");
                value::record_credential_mention(
                    value.text_or_unknown(),
                    span_of(found.span),
                    &mut self.actions,
                );
                value
            }
            Expression::Identifier(found) => {
                let name = found.name.as_str();
                let known = self.lookup(name).cloned();
                let declared = self.declaring.iter().any(|declared| declared == name);
                known.or_else(|| self.last.get(name).filter(|_| declared).cloned()).unwrap_or_else(
                    || match name {
                        // Web storage contains everything that pages store, including logins.
                        "localStorage" | "sessionStorage" => {
                            Value { taint: Taint::private(value::COOKIES), ..Value::named(name) }
                        }
                        _ => Value::named(name),
                    },
                )
            }
            Expression::ArrayExpression(found) => {
                let mut items = Vec::new();
                for element in &found.elements {
                    // Long lists of numbers are data, which need not be evaluated one by one.
                    let number = matches!(element, ArrayExpressionElement::NumericLiteral(_));
                    match element {
                        _ if number && items.len() >= MAX_ITEMS => {
                            if let Some(last) = items.last_mut() {
                                cut_value(last);
                            }
                        }
                        ArrayExpressionElement::SpreadElement(spread) => {
                            let value = self.value(&spread.argument);
                            self.push_spread(&mut items, value);
                        }
                        other => {
                            let value = other.as_expression().map(|value| self.value(value));
                            Value::push_item(&mut items, value.unwrap_or_default());
                        }
                    }
                }
                Value { items, ..Value::default() }
            }
            Expression::ObjectExpression(found) => {
                let mut object = Value::default();
                for property in &found.properties {
                    match property {
                        ObjectPropertyKind::ObjectProperty(one) => {
                            let value = self.value(&one.value);
                            let key = property_name(&one.key).unwrap_or_default();
                            self.name_anonymous_function(&key, &value);
                            Value::push_item(&mut object.items, Value::entry(&key, value));
                        }
                        ObjectPropertyKind::SpreadProperty(one) => {
                            let value = self.value(&one.argument);
                            self.push_spread(&mut object.items, value);
                        }
                    }
                }
                object
            }
            Expression::ArrowFunctionExpression(found) => {
                let body = match &found.body {
                    ArrowFunctionBody::FunctionBody(body) => {
                        Some(Body::Statements(&body.statements))
                    }
                    other => other.as_expression().map(Body::Expression),
                };
                let function = body.map(|body| Function { parameters: &found.params, body });
                function
                    .map(|function| self.closure(found.span.start, function))
                    .unwrap_or_default()
            }
            Expression::FunctionExpression(found) => {
                let Some(body) = found.body.as_deref() else { return Value::default() };
                let body = Body::Statements(&body.statements);
                let function = Function { parameters: &found.params, body };
                if let Some(id) = &found.id {
                    self.functions.insert(id.name.to_string(), function);
                }
                self.closure(found.span.start, function)
            }
            Expression::ClassExpression(found) => {
                self.class(found);
                Value::default()
            }
            Expression::AssignmentExpression(found) => {
                let value = self.value(&found.right);
                self.assign(&found.left, value.clone(), found.operator.is_assign());
                value
            }
            Expression::AwaitExpression(found) => self.value(&found.argument),
            Expression::YieldExpression(found) => {
                let value = found.argument.as_ref().map(|value| self.value(value));
                let value = value.unwrap_or_default();
                self.record_yielded(if found.delegate {
                    most_dangerous_item(&value)
                } else {
                    value.clone()
                });
                value
            }
            Expression::BinaryExpression(found) => {
                let (left, right) = (self.value(&found.left), self.value(&found.right));
                let sum = left.number().zip(right.number()).filter(|_| {
                    // Adding a literal number yields a number, not text.
                    found.operator == BinaryOperator::Addition
                        && matches!(found.right, Expression::NumericLiteral(_))
                        && !matches!(found.left, Expression::StringLiteral(_))
                });
                let value = match sum.and_then(|(a, b)| a.checked_add(b)) {
                    Some(sum) => Value::text(sum.to_string()),
                    None => binary(found.operator, left, right),
                };
                value::record_credential_mention(
                    value.text_or_unknown(),
                    span_of(found.span),
                    &mut self.actions,
                );
                value
            }
            Expression::LogicalExpression(found) => {
                let (mut left, right) = (self.value(&found.left), self.value(&found.right));
                left.merge(&right);
                left
            }
            Expression::ConditionalExpression(found) => {
                self.value(&found.test);
                let (mut yes, no) = (self.value(&found.consequent), self.value(&found.alternate));
                let written = |part: oxc_span::Span| self.written(part);
                if value::replaced_by(
                    written(found.test.span()),
                    (&yes, written(found.consequent.span())),
                    (&no, written(found.alternate.span())),
                ) {
                    self.actions.push(Action::RedirectsPayment, span_of(found.span));
                }
                yes.merge(&no);
                yes
            }
            Expression::CallExpression(found) => self.call(found),
            Expression::ChainExpression(found) => match &found.expression {
                ChainElement::CallExpression(call) => self.call(call),
                other => {
                    other.as_member_expression().map(|found| self.member(found)).unwrap_or_default()
                }
            },
            Expression::NewExpression(found) => {
                let callee = self.value(&found.callee);
                let arguments = self.arguments(&found.arguments);
                self.record_tokens(&arguments, span_of(found.span));
                let name = callee.name.unwrap_or_default();
                calls::construct(self, &name, &arguments, span_of(found.span))
            }
            Expression::ImportExpression(found) => {
                let source = self.value(&found.source);
                library::record_module_load(self, &source, span_of(found.span));
                source
                    .known()
                    .map(|source| Value::named(normalize_module_name(source)))
                    .unwrap_or_default()
            }
            Expression::ParenthesizedExpression(found) => self.value(&found.expression),
            Expression::SequenceExpression(found) => {
                let values: Vec<Value> =
                    found.expressions.iter().map(|value| self.value(value)).collect();
                values.into_iter().next_back().unwrap_or_default()
            }
            Expression::UnaryExpression(found) => {
                let not = found.operator == UnaryOperator::LogicalNot;
                let before = self.leaves_out;
                self.leaves_out ^= not;
                let value = self.value(&found.argument);
                self.leaves_out = before;
                value
            }
            Expression::TaggedTemplateExpression(found) => {
                let tag = self.value(&found.tag);
                let mut values = Vec::new();
                for (index, quasi) in found.quasi.quasis.iter().enumerate() {
                    values.push(Value::text(quasi.value.raw.as_str()));
                    let expressions = &found.quasi.expressions;
                    values.extend(expressions.get(index).map(|value| self.value(value)));
                }
                let text = Value::joined(&values, "");
                if tag.name.as_deref().is_some_and(|name| name_within_file(name) == "$") {
                    return library::shell(self, &text, None, span_of(found.span));
                }
                text
            }
            Expression::TSAsExpression(found) => self.value(&found.expression),
            Expression::TSNonNullExpression(found) => self.value(&found.expression),
            Expression::TSSatisfiesExpression(found) => self.value(&found.expression),
            _ => Value::default(),
        }
    }

    fn assign(&mut self, target: &'t AssignmentTarget<'t>, value: Value, plain: bool) {
        if let AssignmentTarget::AssignmentTargetIdentifier(id) = target {
            let name = id.name.as_str();
            let known = self.lookup(name).cloned();
            if let Some(old) = &known
                && value::replaced_by(self.test, (&value, ""), (old, name))
            {
                self.actions.push(Action::RedirectsPayment, span_of(id.span));
            }
            let old = known.unwrap_or_default();
            let value = if plain { value } else { Value::joined(&[old, value], "") };
            return self.assign_variable(name, value);
        }
        let Some(found) = target.as_member_expression() else { return };
        let object = self.value(found.object());
        let name = found.static_property_name().unwrap_or_default();
        if sources::loads_url(name, &object) && value.text_or_unknown().contains("://") {
            value::record_send(&value, &[], &[], span_of(found.span()), &mut self.actions);
        }
        if self.is_function(&value) && sources::patches_library(name, &object) {
            let seen = Value::tainted(Taint::private(value::PROGRAM_REQUESTS));
            self.invoke(&value, &[seen.clone(), seen], span_of(found.span()));
            // Callers of the library function are still analyzed with the original meaning.
            return;
        }
        if matches!(name, "onmessage" | "ondata") && object.taint.fetched.is_some() {
            let passed_arguments = Value::tainted(object.taint.clone());
            self.invoke(&value, &[passed_arguments], span_of(found.span()));
        }
        let Some(path) = member_path(found) else {
            return self.add_taint_to(found.object(), &value.all_taint());
        };
        if path.contains(".defaults.headers") {
            return self.add_taint_to(found.object(), &value.all_taint());
        }
        let property = path.rsplit('.').next().unwrap_or(&path).to_owned();
        self.name_anonymous_function(&property, &value);
        let span = span_of(found.span());
        if let Some(variable) = path.strip_prefix("process.env.") {
            return value::record_api_redirect(variable, &value, span, &mut self.actions);
        }
        match found.object() {
            Expression::Identifier(id) if !path.starts_with("module.") => {
                let name = id.name.as_str();
                let mut object = self.lookup(name).cloned().unwrap_or_default();
                if object.name.is_some() {
                    object.taint.add(&value.all_taint());
                } else {
                    object.put(&property, value);
                }
                self.assign_variable(name, object);
            }
            _ => {
                let value = self.with_later_items(&path, value);
                if let Some(scope) = self.scopes.first_mut() {
                    scope.insert(path, value);
                }
            }
        }
    }

    /// Adds taint to the object that an expression names or is a part of.
    fn add_taint_to(&mut self, target: &'t Expression<'t>, taint: &Taint) {
        if let Some(found) = target.as_member_expression() {
            let own = matches!(found.object(), Expression::ThisExpression(_));
            let Some(path) = member_path(found).filter(|_| own) else {
                return self.add_taint_to(found.object(), taint);
            };
            let mut value = self.lookup(&path).cloned().unwrap_or_default();
            value.taint.add(taint);
            if let Some(scope) = self.scopes.first_mut() {
                scope.insert(path, value);
            }
            return;
        }
        match target {
            Expression::Identifier(id) => {
                let mut scopes = self.scopes.iter_mut().rev();
                let known = scopes.find_map(|scope| scope.get_mut(id.name.as_str()));
                if let Some(value) = known
                    && value.name.as_deref().is_none_or(|name| {
                        name.ends_with("()") || matches!(name, "axios" | "got" | "ky")
                    })
                {
                    value.taint.add(taint);
                }
            }
            Expression::CallExpression(call) => {
                if let Some(found) = call.callee.as_member_expression() {
                    self.add_taint_to(found.object(), taint);
                }
            }
            Expression::AwaitExpression(found) => self.add_taint_to(&found.argument, taint),
            Expression::ParenthesizedExpression(found) => {
                self.add_taint_to(&found.expression, taint);
            }
            _ => {}
        }
    }

    fn member(&mut self, found: &'t MemberExpression<'t>) -> Value {
        if let Some(known) = member_path(found).and_then(|path| self.lookup(&path).cloned()) {
            return known;
        }
        let object = self.value(found.object());
        self.member_of(&object, found)
    }

    fn member_of(&mut self, object: &Value, found: &'t MemberExpression<'t>) -> Value {
        let property = match found {
            MemberExpression::ComputedMemberExpression(computed) => {
                let index = self.value(&computed.expression);
                if let Some(item) =
                    index.number().and_then(|at| object.items.get(usize::try_from(at).ok()?))
                {
                    return item.clone();
                }
                let hidden = object.name.as_deref().is_some_and(|name| {
                    matches!(name, "globalThis" | "global" | "window" | "process")
                });
                if hidden && index.known().is_none() {
                    self.actions.push(
                        Action::Obfuscates(
                            "a function is looked up by a name that is put together",
                        ),
                        span_of(found.span()),
                    );
                }
                if index.known().is_none() && object.name.as_deref() == Some("child_process") {
                    self.record_chosen_command(&index, span_of(found.span()));
                }
                if index.known().is_none() && object.name.as_deref() == Some("process.env") {
                    let environment = index.taint.environment;
                    return Value::tainted(Taint { environment, ..Taint::default() });
                }
                if let Some(name) = index.known() {
                    self.record_assembled_name(name, span_of(found.span()));
                } else if let Some(any) = dispatch::any_function_of(&self.resolve_exports(object)) {
                    return any;
                }
                index.known().map(str::to_owned)
            }
            _ => found.static_property_name().map(std::string::ToString::to_string),
        };
        property.map_or_else(
            || Value::tainted(object.all_taint()),
            |property| member(object, &property),
        )
    }

    fn call(&mut self, call: &'t oxc_ast::ast::CallExpression<'t>) -> Value {
        let member = call.callee.as_member_expression();
        let (receiver, callee) = match member {
            Some(found) => {
                let receiver = self.value(found.object());
                let known = member_path(found).and_then(|path| self.lookup(&path).cloned());
                let callee = known.unwrap_or_else(|| self.member_of(&receiver, found));
                (receiver, callee)
            }
            None => (Value::default(), self.value(&call.callee)),
        };
        let arguments = self.arguments(&call.arguments);
        self.record_tokens(&arguments, span_of(call.span));
        if callee.name.as_deref() == Some("Function")
            && member.is_some_and(|found| is_constructor_of_literal(found))
            && call.arguments.last().is_some_and(|code| {
                !matches!(code, Argument::StringLiteral(_) | Argument::TemplateLiteral(_))
            })
        {
            let what = "code is compiled with the constructor of a value";
            self.actions.push(Action::Obfuscates(what), span_of(call.span));
        }
        match callee.name.as_deref() {
            Some(dispatch::ANY_FUNCTION) => {
                return self.call_each_choice(&callee, &arguments, span_of(call.span));
            }
            Some(dispatch::CONSTRUCTED_FUNCTION) => {
                return self.call_constructed_function(&callee, &arguments, span_of(call.span));
            }
            _ => {}
        }
        let name = callee.name.clone().unwrap_or_default();
        let method = member.and_then(MemberExpression::static_property_name).map(str::to_owned);
        let call = calls::Call {
            name: &name,
            method: method.as_deref(),
            receiver: &receiver,
            receiver_at: member.map(MemberExpression::object),
            arguments: &arguments,
            span: span_of(call.span),
        };
        self.called(&call)
    }

    /// The source of an expression.
    fn written(&self, span: oxc_span::Span) -> &'t str {
        span_of(span).slice(self.source)
    }

    fn record_tokens(&mut self, values: &[Value], span: Span) {
        let (source, searched) = (self.source, &mut self.tokens);
        value::record_assembled_tokens(values, source, searched, span, &mut self.actions);
    }

    fn called(&mut self, call: &calls::Call<'_, 't>) -> Value {
        let own = call.method.filter(|_| !call.name.starts_with("function@"));
        let own = own.unwrap_or_else(|| name_within_file(call.name)).to_owned();
        let library = call.receiver.name.as_deref().is_some_and(|name| {
            name.contains('(') || !(name == "this" || name.starts_with('.') || name == "exports")
        });
        // A method that the skill defines takes precedence over a library method of the same name.
        let hides = self.functions.contains_key(&own) && !library;
        if hides && let Some(mut value) = self.call_skill_function(&own, call.arguments) {
            value.taint.add(&call.receiver.taint);
            return value;
        }
        // The receiver is an object of a class in another file of the skill.
        if call.receiver.name.as_deref().is_some_and(|name| name.starts_with("./"))
            && call.method.is_some()
            && let Some(value) = self.call_skill_function(&own, call.arguments)
        {
            return value;
        }
        library::record_mail_recipients(self, call);
        if let Some(value) = calls::call(self, call) {
            return value;
        }
        library::client(self, call.name, call.arguments, call.span);
        if !own.is_empty()
            && let Some(value) = self.call_skill_function(&own, call.arguments)
        {
            return value;
        }
        let mut taint = call.receiver.all_taint();
        for value in call.arguments {
            taint.add(&value.all_taint());
        }
        let name = (!call.name.is_empty()).then(|| format!("{}()", call.name));
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
        let action = Action::WritesFile {
            path: path.text_or_unknown().to_owned(),
            text: text.text_or_unknown().to_owned(),
        };
        self.actions.push(action, span);
        value::record_downloaded_write(path, text, span, &mut self.actions);
        self.state.write(path, &text.all_taint());
    }
}

/// Returns the name of a function within its file: `./lib.send` is `send`, `./lib` is its only
/// export.
fn name_within_file(name: &str) -> &str {
    let last = name.rsplit('.').next().unwrap_or(name);
    if name.starts_with('.') && last.contains('/') { "exports" } else { last }
}

/// Whether a branch skips the rest: it continues the loop or returns.
fn skips_rest(branch: &Statement<'_>) -> bool {
    match branch {
        Statement::BlockStatement(block) => block.body.first().is_some_and(skips_rest),
        Statement::ContinueStatement(_) | Statement::ReturnStatement(_) => true,
        _ => false,
    }
}

/// Marks a value as not complete.
fn cut_value(value: &mut Value) {
    value.taint.is_cut = true;
}

/// Returns the dotted path `a.b.c` as written.
fn member_path(found: &MemberExpression<'_>) -> Option<String> {
    let object = match found.object() {
        Expression::Identifier(id) => id.name.to_string(),
        Expression::ThisExpression(_) => "this".to_owned(),
        other => member_path(other.as_member_expression()?)?,
    };
    if let MemberExpression::PrivateFieldExpression(private) = found {
        return Some(format!("{object}.#{}", private.field.name));
    }
    Some(format!("{object}.{}", found.static_property_name()?))
}

/// The arguments of the program.
const ARGUMENTS: &str = "process.argv";

/// Whether a member is `[]["constructor"]["constructor"]` or `"".at.constructor`, which is `Function`.
fn is_constructor_of_literal(member: &MemberExpression<'_>) -> bool {
    let mut object = member.object();
    for _ in 0..MAX_CALL_DEPTH {
        match object.as_member_expression() {
            Some(inner) => object = inner.object(),
            None => break,
        }
    }
    matches!(
        object,
        Expression::ArrayExpression(_)
            | Expression::ObjectExpression(_)
            | Expression::StringLiteral(_)
            | Expression::NumericLiteral(_)
            | Expression::RegExpLiteral(_)
    )
}

/// Name of the `constructor` of a value without a name.
const UNNAMED_CONSTRUCTOR: &str = "Object.constructor";

/// Returns a property of a value.
fn member(object: &Value, property: &str) -> Value {
    if let Some(found) = object.under(property) {
        return found.clone();
    }
    match object.name.as_deref() {
        Some(web::HANDLER_REQUEST) => Value::default(),
        Some("process" | "Bun") if property == "env" => {
            let mut value = Value::named("process.env");
            value.taint.environment = true;
            value
        }
        Some("process.env") => environment(property),
        Some("document") if property == "cookie" => Value::tainted(Taint::private(value::COOKIES)),
        Some("process") if property == "execPath" => Value::text("node"),
        Some("globalThis" | "global" | "window") => Value::named(property),
        Some(name)
            if property == "constructor"
                && (name.starts_with("function@")
                    || matches!(name, "Function.prototype" | "Function" | UNNAMED_CONSTRUCTOR)
                    || name.ends_with(".constructor")) =>
        {
            Value::named("Function")
        }
        // The constructor of a constructor is `Function`, which compiles text.
        None if property == "constructor" => {
            Value { name: Some(UNNAMED_CONSTRUCTOR.into()), ..object.clone() }
        }
        name => Value { name: name.map(|name| format!("{name}.{property}")), ..object.clone() },
    }
}

fn binary(operator: BinaryOperator, left: Value, right: Value) -> Value {
    match (operator, left.number(), right.number()) {
        (BinaryOperator::Addition, Some(_), Some(_)) if left.text.is_none() => Value::default(),
        (BinaryOperator::Addition, _, _) => Value::joined(&[left, right], ""),
        (BinaryOperator::BitwiseXOR, Some(a), Some(b)) => Value::text((a ^ b).to_string()),
        (BinaryOperator::Subtraction, Some(a), Some(b)) => {
            a.checked_sub(b).map(|n| Value::text(n.to_string())).unwrap_or_default()
        }
        (BinaryOperator::Multiplication, Some(a), Some(b)) => {
            a.checked_mul(b).map(|n| Value::text(n.to_string())).unwrap_or_default()
        }
        (BinaryOperator::Remainder, Some(a), Some(b)) => {
            a.checked_rem(b).map(|n| Value::text(n.to_string())).unwrap_or_default()
        }
        _ => {
            let mut taint = left.all_taint();
            taint.add(&right.all_taint());
            taint.decoded |= operator == BinaryOperator::BitwiseXOR;
            Value::tainted(taint)
        }
    }
}

fn property_name(key: &PropertyKey<'_>) -> Option<String> {
    key.static_name().map(|name| name.to_string())
}

/// Normalizes a module name: `node:fs/promises` is `fs`.
fn normalize_module_name(module: &str) -> &str {
    let module = module.strip_prefix("node:").unwrap_or(module);
    match module.strip_suffix("/promises").unwrap_or(module) {
        "fs-extra" | "graceful-fs" => "fs",
        other => other,
    }
}

#[cfg(test)]
mod tests;
