//! What Python does, out of its syntax tree.
//!
//! Every expression becomes a [`Value`]; values flow through variables, calls and returns of one
//! file. The tree is walked twice, so that a function knows what it is called with further down.

mod calls;

use std::collections::HashMap;

use ruff_python_ast::{
    Comprehension, ExceptHandler, Expr, ExprCall, FStringPart, InterpolatedStringElement, Number,
    Operator, Parameters, Stmt,
};
use ruff_python_parser::parse_module;
use ruff_text_size::{Ranged, TextRange};
use savoir_skill::Span;

use super::{
    act::{Act, Acts},
    place,
    value::{MOST_ITEMS, UNKNOWN, Value},
};

/// Reads a text as Python, or says why it cannot be.
pub(super) fn read(text: &str) -> Result<Acts, String> {
    // It refuses what is too large or nests too deep, before anything here recurses. What is short
    // cannot, and documents have many short blocks.
    if text.len() > SHORT {
        savoir_skill::python::parse(text).map_err(|error| error.message)?;
    }
    let module = parse_module(text).map_err(|error| error.error.to_string())?;
    let mut reader = Reader { scopes: vec![HashMap::new()], ..Reader::default() };
    for _ in 0..2 {
        reader.acts = Acts::default();
        reader.steps = 0;
        reader.body(&module.syntax().body);
    }
    if reader.steps > MOST_STEPS {
        return Err("it has too much to follow".into());
    }
    if reader.connects && reader.hands_over {
        reader.acts.push(Act::ReverseShell, reader.connected_at);
    }
    Ok(reader.acts)
}

/// Bytes in which nothing can nest too deep for the scanner's stack.
const SHORT: usize = 4 * 1024;

/// Most expressions that are followed.
const MOST_STEPS: usize = 400_000;

#[derive(Default)]
pub(super) struct Reader {
    acts: Acts,
    scopes: Vec<HashMap<String, Value>>,
    /// What functions of this file give back, and what they are called with.
    returns: HashMap<String, Value>,
    given: HashMap<String, Vec<Value>>,
    function: Vec<String>,
    /// A socket is connected, and the streams of a shell are put on it.
    connects: bool,
    hands_over: bool,
    connected_at: Span,
    steps: usize,
}

fn span_of(range: TextRange) -> Span {
    Span::new(range.start().to_usize(), range.end().to_usize())
}

impl Reader {
    fn body(&mut self, body: &[Stmt]) {
        for statement in body {
            self.statement(statement);
        }
    }

    fn statement(&mut self, statement: &Stmt) {
        match statement {
            Stmt::FunctionDef(function) => {
                for decorator in &function.decorator_list {
                    self.value(&decorator.expression);
                }
                self.function_body(&function.name, &function.parameters, &function.body);
            }
            Stmt::ClassDef(class) => self.body(&class.body),
            Stmt::Return(found) => {
                let value =
                    found.value.as_deref().map(|value| self.value(value)).unwrap_or_default();
                if let Some(name) = self.function.last().cloned() {
                    let known = self.returns.entry(name).or_default();
                    let mut merged = value;
                    merged.taint.add(&known.taint);
                    *known = merged;
                }
            }
            Stmt::Assign(found) => {
                let value = self.value(&found.value);
                for target in &found.targets {
                    self.bind(target, &value);
                }
            }
            Stmt::AnnAssign(found) => {
                if let Some(value) = &found.value {
                    let value = self.value(value);
                    self.bind(&found.target, &value);
                }
            }
            Stmt::AugAssign(found) => {
                let old = self.value(&found.target);
                let new = self.value(&found.value);
                let value = match found.op {
                    Operator::Add => concatenated(old, new),
                    _ => Value::joined(&[old, new], UNKNOWN),
                };
                self.bind(&found.target, &value);
            }
            Stmt::For(found) => {
                let iter = self.value(&found.iter);
                self.bind(&found.target, &worst_of(&iter));
                self.body(&found.body);
                self.body(&found.orelse);
            }
            Stmt::While(found) => {
                self.value(&found.test);
                self.body(&found.body);
                self.body(&found.orelse);
            }
            Stmt::If(found) => {
                self.value(&found.test);
                self.body(&found.body);
                for clause in &found.elif_else_clauses {
                    if let Some(test) = &clause.test {
                        self.value(test);
                    }
                    self.body(&clause.body);
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
                    self.set(bound, Value::named(format!("{module}.{}", alias.name)));
                }
            }
            Stmt::Expr(found) => {
                self.value(&found.value);
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

    fn function_body(&mut self, name: &str, parameters: &Parameters, body: &[Stmt]) {
        let given = self.given.get(name).cloned().unwrap_or_default();
        let mut scope = HashMap::new();
        let all = parameters.iter_non_variadic_params();
        let all =
            all.filter(|parameter| !matches!(parameter.parameter.name.as_str(), "self" | "cls"));
        for (index, parameter) in all.enumerate() {
            let value = given.get(index).cloned();
            let default = parameter.default.as_deref().map(|value| self.value(value));
            scope.insert(
                parameter.parameter.name.to_string(),
                value.or(default).unwrap_or_default(),
            );
        }
        self.scopes.push(scope);
        self.function.push(name.to_owned());
        self.body(body);
        self.function.pop();
        self.scopes.pop();
    }

    fn set(&mut self, name: &str, value: Value) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name.to_owned(), value);
        }
    }

    fn bind(&mut self, target: &Expr, value: &Value) {
        match target {
            Expr::Name(name) => self.set(&name.id, value.clone()),
            Expr::Attribute(_) => {
                if let Some(path) = path_of(target)
                    && let Some(scope) = self.scopes.first_mut()
                {
                    scope.insert(path, value.clone());
                }
            }
            Expr::Subscript(found) => {
                // What is put into a container is in it.
                let mut container = self.value(&found.value);
                container.taint.add(&value.all_taint());
                container.name = None;
                self.bind(&found.value, &container);
            }
            Expr::Starred(found) => self.bind(&found.value, value),
            Expr::Tuple(found) => self.bind_all(&found.elts, value),
            Expr::List(found) => self.bind_all(&found.elts, value),
            _ => {}
        }
    }

    fn bind_all(&mut self, targets: &[Expr], value: &Value) {
        for (index, target) in targets.iter().enumerate() {
            let item = value.items.get(index).cloned();
            self.bind(target, &item.unwrap_or_else(|| Value::tainted(value.all_taint())));
        }
    }

    fn lookup(&self, name: &str) -> Option<&Value> {
        self.scopes.iter().rev().find_map(|scope| scope.get(name))
    }

    fn values<'e>(&mut self, expressions: impl IntoIterator<Item = &'e Expr>) -> Vec<Value> {
        expressions.into_iter().take(MOST_ITEMS).map(|expression| self.value(expression)).collect()
    }

    fn list<'e>(&mut self, expressions: impl IntoIterator<Item = &'e Expr>) -> Value {
        Value { items: self.values(expressions), ..Value::default() }
    }

    fn value(&mut self, expression: &Expr) -> Value {
        self.steps += 1;
        if self.steps > MOST_STEPS {
            return Value::default();
        }
        match expression {
            Expr::StringLiteral(found) => Value::text(found.value.to_str()),
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
            Expr::Attribute(found) => self.attribute(&found.value, &found.attr, expression),
            Expr::Call(found) => self.call(found),
            Expr::BinOp(found) => {
                let (left, right) = (self.value(&found.left), self.value(&found.right));
                binary(found.op, left, right)
            }
            Expr::BoolOp(found) => {
                let values = self.values(&found.values);
                let taint = Value { items: values.clone(), ..Value::default() }.all_taint();
                Value { taint, ..values.into_iter().next().unwrap_or_default() }
            }
            Expr::If(found) => {
                self.value(&found.test);
                let (yes, no) = (self.value(&found.body), self.value(&found.orelse));
                let mut taint = yes.all_taint();
                taint.add(&no.all_taint());
                Value { taint, ..yes }
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
                for key in found.items.iter().filter_map(|item| item.key.as_ref()) {
                    self.value(key);
                }
                self.list(found.items.iter().map(|item| &item.value))
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
                found.value.as_deref().map(|value| self.value(value)).unwrap_or_default()
            }
            Expr::YieldFrom(found) => self.value(&found.value),
            Expr::UnaryOp(found) => self.value(&found.operand),
            Expr::Compare(found) => {
                self.value(&found.left);
                self.values(&found.comparators);
                Value::default()
            }
            Expr::Lambda(found) => {
                self.scopes.push(HashMap::new());
                let value = self.value(&found.body);
                self.scopes.pop();
                value
            }
            Expr::Subscript(found) => self.subscript(&found.value, &found.slice, expression),
            _ => Value::default(),
        }
    }

    fn f_string<'e>(&mut self, parts: impl Iterator<Item = &'e FStringPart>) -> Value {
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
                                self.value(&found.expression)
                            }
                        });
                    }
                }
            }
        }
        Value::joined(&values, "")
    }

    fn attribute(&mut self, base: &Expr, attribute: &str, whole: &Expr) -> Value {
        if let Some(known) = path_of(whole).and_then(|path| self.lookup(&path).cloned()) {
            return known;
        }
        let base = self.value(base);
        let name = base.name.as_ref().map(|name| format!("{name}.{attribute}"));
        let mut value = Value { name, ..base };
        if value.name.as_deref() == Some("os.environ") {
            value.taint.environment = true;
        }
        value
    }

    fn subscript(&mut self, base: &Expr, index: &Expr, whole: &Expr) -> Value {
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
            (Some("os.environ"), None) => Value::default(),
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
                self.acts.push(
                    Act::Obscures("a function is looked up by its name"),
                    span_of(whole.range()),
                );
                Value::named(name)
            }
            (Some("sys.modules"), Some(name)) => Value::named(name),
            _ => {
                let item = index
                    .number()
                    .and_then(|at| base.items.get(usize::try_from(at).ok()?).cloned());
                item.unwrap_or_else(|| Value {
                    name: base.name.clone(),
                    ..Value::tainted(base.all_taint())
                })
            }
        }
    }

    fn comprehension(&mut self, generators: &[Comprehension], parts: &[&Expr]) -> Value {
        self.scopes.push(HashMap::new());
        let mut each = Vec::new();
        for generator in generators {
            let iter = self.value(&generator.iter);
            each.clone_from(&iter.items);
            if each.is_empty()
                && let Some(text) = iter.known()
            {
                each = text.chars().take(MOST_ITEMS).map(|c| Value::text(c.to_string())).collect();
            }
            let item = Value::tainted(iter.all_taint());
            self.bind(&generator.target, &item);
            for test in &generator.ifs {
                {
                    self.value(test);
                };
            }
        }
        let mut items = Vec::new();
        if let ([generator], false) = (generators, each.is_empty()) {
            for item in each.iter().take(MOST_ITEMS) {
                self.bind(&generator.target, item);
                items.extend(parts.iter().map(|part| self.value(part)));
            }
        } else {
            items.extend(parts.iter().map(|part| self.value(part)));
        }
        self.scopes.pop();
        Value { items, ..Value::default() }
    }

    fn call(&mut self, call: &ExprCall) -> Value {
        let callee = self.value(&call.func);
        let positional = self.values(&call.arguments.args);
        let mut keywords: Vec<(String, Value)> = Vec::new();
        for keyword in &call.arguments.keywords {
            let name = keyword.arg.as_ref().map_or("**", |name| name.as_str());
            keywords.push((name.to_owned(), self.value(&keyword.value)));
        }
        let span = span_of(call.range());
        let method = match &*call.func {
            Expr::Attribute(found) => Some(found.attr.as_str()),
            _ => None,
        };
        let receiver = match &*call.func {
            Expr::Attribute(found) => self.value(&found.value),
            _ => Value::default(),
        };
        let name = callee.name.clone().unwrap_or_default();
        let own = name.rsplit('.').next().unwrap_or(&name).to_owned();
        let arguments = calls::Arguments { positional: &positional, keywords: &keywords };
        if let Some(value) = calls::call(self, &name, method, &receiver, &arguments, span) {
            return value;
        }
        let own = method.map_or(own, str::to_owned);
        if !own.is_empty() {
            self.hand_over(&own, &positional);
            if let Some(value) = self.returns.get(&own) {
                return value.clone();
            }
        }
        let mut taint = receiver.all_taint();
        positional
            .iter()
            .chain(keywords.iter().map(|(_, value)| value))
            .for_each(|value| taint.add(&value.all_taint()));
        let name = callee.name.map(|name| format!("{name}()"));
        Value { name, taint, ..Value::default() }
    }

    /// Remembers what a function of this file is called with.
    fn hand_over(&mut self, function: &str, arguments: &[Value]) {
        let given = self.given.entry(function.to_owned()).or_default();
        for (index, argument) in arguments.iter().enumerate().take(16) {
            match given.get_mut(index) {
                Some(known) => known.taint.add(&argument.all_taint()),
                None => given.push(Value { taint: argument.all_taint(), ..argument.clone() }),
            }
        }
    }
}

/// The item of a list that a loop is judged by.
fn worst_of(list: &Value) -> Value {
    let secret = |item: &&Value| place::credential(item.shown()).is_some();
    let item = list.items.iter().find(secret).or_else(|| list.items.first());
    Value { taint: list.all_taint(), ..item.cloned().unwrap_or_default() }
}

/// A variable of the environment.
fn environment(name: &str) -> Value {
    let mut value = Value::default();
    if place::is_secret_name(name) {
        value.taint.tokens.push(name.to_owned());
    }
    if matches!(name, "HOME" | "USERPROFILE") {
        value.text = Some("~".into());
    }
    value
}

fn concatenated(left: Value, right: Value) -> Value {
    if left.items.is_empty() && right.items.is_empty() {
        return Value::joined(&[left, right], "");
    }
    let mut taint = left.taint.clone();
    taint.add(&right.taint);
    let items = left.items.into_iter().chain(right.items).take(MOST_ITEMS).collect();
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
    match operator {
        Operator::Add => concatenated(left, right),
        Operator::Div => Value::joined(&[left, right], "/"),
        Operator::Mod => {
            let mut value = formatted(&left, &right, &["%s", "%d", "%r"]);
            value.taint.add(&right.all_taint());
            value
        }
        _ => {
            let mut taint = left.all_taint();
            taint.add(&right.all_taint());
            Value::tainted(taint)
        }
    }
}

/// A text with values put in the place of marks.
fn formatted(text: &Value, values: &Value, marks: &[&str]) -> Value {
    let Some(template) = &text.text else { return Value::tainted(text.all_taint()) };
    let values = if values.items.is_empty() { std::slice::from_ref(values) } else { &values.items };
    let mut result = template.clone();
    for value in values {
        let mark = marks.iter().filter_map(|mark| Some((result.find(mark)?, *mark))).min();
        let Some((at, mark)) = mark else { break };
        result.replace_range(at..at + mark.len(), value.shown());
    }
    Value { text: Some(result), taint: text.all_taint(), ..Value::default() }
}

/// `a.b.c` as it is written.
fn path_of(expression: &Expr) -> Option<String> {
    match expression {
        Expr::Name(name) => Some(name.id.to_string()),
        Expr::Attribute(found) => Some(format!("{}.{}", path_of(&found.value)?, found.attr)),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
