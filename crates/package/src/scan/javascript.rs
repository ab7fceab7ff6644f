//! What JavaScript and TypeScript do, out of their syntax tree.
//!
//! The same idea as for Python: every expression becomes a [`Value`], and the tree is walked twice.

mod calls;
mod depth;

use std::collections::HashMap;

use oxc_allocator::Allocator;
use oxc_ast::ast::{
    Argument, ArrowFunctionBody, AssignmentTarget, BinaryOperator, BindingPattern, ChainElement,
    Class, ClassElement, Declaration, ExportDefaultDeclarationKind, Expression, ForStatementInit,
    ForStatementLeft, FormalParameters, ImportDeclarationSpecifier, MemberExpression,
    ModuleDeclaration, ObjectPropertyKind, PropertyKey, Statement, VariableDeclaration,
};
use oxc_parser::Parser;
use oxc_span::{GetSpan, SourceType};
use savoir_skill::Span;

use super::{
    act::{Act, Acts},
    place,
    value::{MOST_ITEMS, UNKNOWN, Value},
};

/// Most expressions that are followed.
const MOST_STEPS: usize = 400_000;

/// Reads a text as TypeScript, of which JavaScript is a part, or says why it cannot be.
pub(super) fn read(path: &str, text: &str) -> Result<Acts, String> {
    depth::check(text)?;
    let tree = Allocator::default();
    let typescript = matches!(super::gather::ending(path).as_str(), "ts" | "mts" | "cts");
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
            let mut reader = Reader { scopes: vec![HashMap::new()], ..Reader::default() };
            for _ in 0..2 {
                reader.acts = Acts::default();
                reader.steps = 0;
                reader.statements(&parsed.program.body);
            }
            if reader.steps > MOST_STEPS {
                return Err("it has too much to follow".into());
            }
            if reader.connects && reader.pipes_shell {
                reader.acts.push(Act::ReverseShell, reader.connected_at);
            }
            return Ok(reader.acts);
        }
    }
    Err(problem)
}

#[derive(Default)]
struct Reader {
    acts: Acts,
    scopes: Vec<HashMap<String, Value>>,
    returns: HashMap<String, Value>,
    given: HashMap<String, Vec<Value>>,
    function: Vec<String>,
    /// A socket is connected, and a shell is started.
    connects: bool,
    pipes_shell: bool,
    connected_at: Span,
    steps: usize,
}

fn span_of(span: oxc_span::Span) -> Span {
    Span::new(span.start as usize, span.end as usize)
}

impl Reader {
    fn statements(&mut self, statements: &[Statement<'_>]) {
        for statement in statements {
            self.statement(statement);
        }
    }

    fn statement(&mut self, statement: &Statement<'_>) {
        if let Some(declaration) = statement.as_declaration() {
            return self.declaration(declaration);
        }
        if let Some(module) = statement.as_module_declaration() {
            return self.module(module);
        }
        match statement {
            Statement::BlockStatement(found) => self.statements(&found.body),
            Statement::ExpressionStatement(found) => {
                self.value(&found.expression);
            }
            Statement::ReturnStatement(found) => {
                let value =
                    found.argument.as_ref().map(|value| self.value(value)).unwrap_or_default();
                self.give_back(value);
            }
            Statement::IfStatement(found) => {
                self.value(&found.test);
                self.statement(&found.consequent);
                if let Some(other) = &found.alternate {
                    self.statement(other);
                }
            }
            Statement::ForStatement(found) => {
                if let Some(ForStatementInit::VariableDeclaration(declaration)) = &found.init {
                    self.variables(declaration);
                }
                self.statement(&found.body);
            }
            Statement::ForOfStatement(found) => {
                let list = self.value(&found.right);
                self.each(&found.left, &list);
                self.statement(&found.body);
            }
            Statement::ForInStatement(found) => {
                let list = self.value(&found.right);
                self.each(&found.left, &list);
                self.statement(&found.body);
            }
            Statement::WhileStatement(found) => {
                self.value(&found.test);
                self.statement(&found.body);
            }
            Statement::DoWhileStatement(found) => self.statement(&found.body),
            Statement::LabeledStatement(found) => self.statement(&found.body),
            Statement::SwitchStatement(found) => {
                self.value(&found.discriminant);
                for case in &found.cases {
                    self.statements(&case.consequent);
                }
            }
            Statement::ThrowStatement(found) => {
                self.value(&found.argument);
            }
            Statement::TryStatement(found) => {
                self.statements(&found.block.body);
                if let Some(handler) = &found.handler {
                    self.statements(&handler.body.body);
                }
                if let Some(last) = &found.finalizer {
                    self.statements(&last.body);
                }
            }
            _ => {}
        }
    }

    fn declaration(&mut self, declaration: &Declaration<'_>) {
        match declaration {
            Declaration::VariableDeclaration(found) => self.variables(found),
            Declaration::FunctionDeclaration(found) => {
                let name = found.id.as_ref().map_or("", |id| id.name.as_str());
                if let Some(body) = &found.body {
                    self.function(name, &found.params, |reader| {
                        reader.statements(&body.statements);
                    });
                }
            }
            Declaration::ClassDeclaration(found) => self.class(found),
            _ => {}
        }
    }

    fn module(&mut self, module: &ModuleDeclaration<'_>) {
        match module {
            ModuleDeclaration::ImportDeclaration(found) => {
                let from = bare(found.source.value.as_str());
                for specifier in found.specifiers.iter().flatten() {
                    let (local, name) = match specifier {
                        ImportDeclarationSpecifier::ImportSpecifier(one) => {
                            (&one.local, format!("{from}.{}", one.imported.name()))
                        }
                        ImportDeclarationSpecifier::ImportDefaultSpecifier(one) => {
                            (&one.local, from.to_owned())
                        }
                        ImportDeclarationSpecifier::ImportNamespaceSpecifier(one) => {
                            (&one.local, from.to_owned())
                        }
                    };
                    self.set(local.name.as_str(), Value::named(name));
                }
            }
            ModuleDeclaration::ExportDeclaration(found) => self.declaration(&found.declaration),
            ModuleDeclaration::ExportDefaultDeclaration(found) => match &found.declaration {
                ExportDefaultDeclarationKind::FunctionDeclaration(function) => {
                    if let Some(body) = &function.body {
                        self.function("default", &function.params, |reader| {
                            reader.statements(&body.statements);
                        });
                    }
                }
                ExportDefaultDeclarationKind::ClassDeclaration(class) => self.class(class),
                other => {
                    if let Some(value) = other.as_expression() {
                        self.value(value);
                    }
                }
            },
            _ => {}
        }
    }

    fn class(&mut self, class: &Class<'_>) {
        for element in &class.body.body {
            match element {
                ClassElement::MethodDefinition(method) => {
                    let name = key_of(&method.key).unwrap_or_default();
                    if let Some(body) = &method.value.body {
                        self.function(&name, &method.value.params, |reader| {
                            reader.statements(&body.statements);
                        });
                    }
                }
                ClassElement::PropertyDefinition(property) => {
                    if let Some(value) = &property.value {
                        {
                            self.value(value);
                        };
                    }
                }
                ClassElement::StaticBlock(block) => self.statements(&block.body),
                _ => {}
            }
        }
    }

    fn variables(&mut self, declaration: &VariableDeclaration<'_>) {
        for one in &declaration.declarations {
            let BindingPattern::BindingIdentifier(id) = &one.id else {
                let value = one.init.as_ref().map(|value| self.value(value)).unwrap_or_default();
                self.bind(&one.id, &value);
                continue;
            };
            let name = id.name.as_str();
            let value = match &one.init {
                Some(Expression::ArrowFunctionExpression(function)) => {
                    self.arrow(name, &function.params, &function.body);
                    Value::named(name)
                }
                Some(Expression::FunctionExpression(function)) => {
                    if let Some(body) = &function.body {
                        self.function(name, &function.params, |reader| {
                            reader.statements(&body.statements);
                        });
                    }
                    Value::named(name)
                }
                Some(value) => self.value(value),
                None => Value::default(),
            };
            self.set(name, value);
        }
    }

    fn arrow(
        &mut self,
        name: &str,
        parameters: &FormalParameters<'_>,
        body: &ArrowFunctionBody<'_>,
    ) {
        self.function(name, parameters, |reader| match body {
            ArrowFunctionBody::FunctionBody(body) => reader.statements(&body.statements),
            other => {
                if let Some(expression) = other.as_expression() {
                    let value = reader.value(expression);
                    reader.give_back(value);
                }
            }
        });
    }

    fn function(
        &mut self,
        name: &str,
        parameters: &FormalParameters<'_>,
        body: impl FnOnce(&mut Self),
    ) {
        let given = self.given.get(name).cloned().unwrap_or_default();
        self.scopes.push(HashMap::new());
        for (index, parameter) in parameters.items.iter().enumerate() {
            self.bind(&parameter.pattern, &given.get(index).cloned().unwrap_or_default());
        }
        self.function.push(name.to_owned());
        body(self);
        self.function.pop();
        self.scopes.pop();
    }

    fn give_back(&mut self, value: Value) {
        if let Some(name) = self.function.last().filter(|name| !name.is_empty()).cloned() {
            let known = self.returns.entry(name).or_default();
            let mut merged = value;
            merged.taint.add(&known.taint);
            *known = merged;
        }
    }

    fn each(&mut self, left: &ForStatementLeft<'_>, list: &Value) {
        if let ForStatementLeft::VariableDeclaration(declaration) = left {
            let first = list.items.first().cloned().unwrap_or_default();
            let item = Value { taint: list.all_taint(), ..first };
            for one in &declaration.declarations {
                self.bind(&one.id, &item);
            }
        }
    }

    fn set(&mut self, name: &str, value: Value) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name.to_owned(), value);
        }
    }

    /// An assignment changes the variable where it was declared.
    fn change(&mut self, name: &str, value: Value) {
        let known = self.scopes.iter_mut().rev().find(|scope| scope.contains_key(name));
        match known {
            Some(scope) => drop(scope.insert(name.to_owned(), value)),
            None => self.set(name, value),
        }
    }

    fn lookup(&self, name: &str) -> Option<&Value> {
        self.scopes.iter().rev().find_map(|scope| scope.get(name))
    }

    fn bind(&mut self, pattern: &BindingPattern<'_>, value: &Value) {
        match pattern {
            BindingPattern::BindingIdentifier(id) => self.set(id.name.as_str(), value.clone()),
            BindingPattern::ObjectPattern(found) => {
                for property in &found.properties {
                    let part = member(value, &key_of(&property.key).unwrap_or_default());
                    self.bind(&property.value, &part);
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
            }
            BindingPattern::AssignmentPattern(found) => self.bind(&found.left, value),
        }
    }

    fn arguments(&mut self, arguments: &[Argument<'_>]) -> Vec<Value> {
        let each = arguments.iter().take(MOST_ITEMS).map(|argument| match argument {
            Argument::SpreadElement(spread) => self.value(&spread.argument),
            other => other.as_expression().map(|value| self.value(value)).unwrap_or_default(),
        });
        each.collect()
    }

    fn value(&mut self, expression: &Expression<'_>) -> Value {
        self.steps += 1;
        if self.steps > MOST_STEPS {
            return Value::default();
        }
        if let Some(found) = expression.as_member_expression() {
            return self.member(found);
        }
        match expression {
            Expression::StringLiteral(found) => Value::text(found.value.as_str()),
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
                Value::joined(&values, "")
            }
            Expression::Identifier(found) => {
                let name = found.name.as_str();
                self.lookup(name).cloned().unwrap_or_else(|| Value::named(name))
            }
            Expression::ArrayExpression(found) => {
                let items = found.elements.iter().take(MOST_ITEMS).map(|element| match element {
                    oxc_ast::ast::ArrayExpressionElement::SpreadElement(spread) => {
                        self.value(&spread.argument)
                    }
                    other => {
                        other.as_expression().map(|value| self.value(value)).unwrap_or_default()
                    }
                });
                Value { items: items.collect(), ..Value::default() }
            }
            Expression::ObjectExpression(found) => {
                let mut items = Vec::new();
                for property in found.properties.iter().take(MOST_ITEMS) {
                    match property {
                        ObjectPropertyKind::ObjectProperty(one) => {
                            let value = self.value(&one.value);
                            let key = key_of(&one.key).unwrap_or_default();
                            items.push(Value {
                                name: Some(format!("{key}:")),
                                items: vec![value],
                                ..Value::default()
                            });
                        }
                        ObjectPropertyKind::SpreadProperty(one) => {
                            items.push(self.value(&one.argument));
                        }
                    }
                }
                Value { items, ..Value::default() }
            }
            Expression::ArrowFunctionExpression(found) => {
                self.arrow("", &found.params, &found.body);
                Value::default()
            }
            Expression::FunctionExpression(found) => {
                if let Some(body) = &found.body {
                    self.function("", &found.params, |reader| reader.statements(&body.statements));
                }
                Value::default()
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
                found.argument.as_ref().map(|value| self.value(value)).unwrap_or_default()
            }
            Expression::BinaryExpression(found) => {
                let (left, right) = (self.value(&found.left), self.value(&found.right));
                binary(found.operator, left, right)
            }
            Expression::LogicalExpression(found) => {
                let (left, right) = (self.value(&found.left), self.value(&found.right));
                let mut taint = left.all_taint();
                taint.add(&right.all_taint());
                Value { taint, ..left }
            }
            Expression::ConditionalExpression(found) => {
                self.value(&found.test);
                let (yes, no) = (self.value(&found.consequent), self.value(&found.alternate));
                let mut taint = yes.all_taint();
                taint.add(&no.all_taint());
                Value { taint, ..yes }
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
                let name = callee.name.unwrap_or_default();
                calls::construct(self, &name, &arguments, span_of(found.span))
            }
            Expression::ImportExpression(found) => {
                let source = self.value(&found.source);
                source.known().map(|source| Value::named(bare(source))).unwrap_or_default()
            }
            Expression::ParenthesizedExpression(found) => self.value(&found.expression),
            Expression::SequenceExpression(found) => {
                let values: Vec<Value> =
                    found.expressions.iter().map(|value| self.value(value)).collect();
                values.into_iter().next_back().unwrap_or_default()
            }
            Expression::UnaryExpression(found) => self.value(&found.argument),
            Expression::TaggedTemplateExpression(found) => {
                let values: Vec<Value> = found
                    .quasi
                    .quasis
                    .iter()
                    .map(|quasi| Value::text(quasi.value.raw.as_str()))
                    .collect();
                for value in &found.quasi.expressions {
                    drop(self.value(value));
                }
                Value::joined(&values, UNKNOWN)
            }
            Expression::TSAsExpression(found) => self.value(&found.expression),
            Expression::TSNonNullExpression(found) => self.value(&found.expression),
            Expression::TSSatisfiesExpression(found) => self.value(&found.expression),
            _ => Value::default(),
        }
    }

    fn assign(&mut self, target: &AssignmentTarget<'_>, value: Value, plain: bool) {
        match target {
            AssignmentTarget::AssignmentTargetIdentifier(id) => {
                let name = id.name.as_str();
                let old = self.lookup(name).cloned().unwrap_or_default();
                let value = if plain { value } else { Value::joined(&[old, value], "") };
                self.change(name, value);
            }
            other => {
                let object = other.as_member_expression().map(MemberExpression::object);
                if let Some(Expression::Identifier(id)) = object {
                    let mut container = self.lookup(id.name.as_str()).cloned().unwrap_or_default();
                    container.taint.add(&value.all_taint());
                    self.change(id.name.as_str(), container);
                }
            }
        }
    }

    fn member(&mut self, found: &MemberExpression<'_>) -> Value {
        let object = self.value(found.object());
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
                    self.acts.push(
                        Act::Obscures("a function is looked up by a name that is put together"),
                        span_of(found.span()),
                    );
                }
                index.known().map(str::to_owned)
            }
            _ => found.static_property_name().map(std::string::ToString::to_string),
        };
        property.map_or_else(
            || Value::tainted(object.all_taint()),
            |property| member(&object, &property),
        )
    }

    fn call(&mut self, call: &oxc_ast::ast::CallExpression<'_>) -> Value {
        let receiver = call
            .callee
            .as_member_expression()
            .map(|found| self.value(found.object()))
            .unwrap_or_default();
        let callee = self.value(&call.callee);
        let arguments = self.arguments(&call.arguments);
        let name = callee.name.clone().unwrap_or_default();
        let member = call.callee.as_member_expression();
        let method = member.and_then(MemberExpression::static_property_name).map(str::to_owned);
        let span = span_of(call.span);
        if let Some(value) =
            calls::call(self, &name, method.as_deref(), &receiver, &arguments, span)
        {
            return value;
        }
        let own = name.rsplit('.').next().unwrap_or(&name);
        let own = method.as_deref().unwrap_or(own).to_owned();
        if !own.is_empty() {
            let given = self.given.entry(own.clone()).or_default();
            for (index, argument) in arguments.iter().enumerate().take(16) {
                match given.get_mut(index) {
                    Some(known) => known.taint.add(&argument.all_taint()),
                    None => given.push(Value { taint: argument.all_taint(), ..argument.clone() }),
                }
            }
            if let Some(value) = self.returns.get(&own) {
                return value.clone();
            }
        }
        let mut taint = receiver.all_taint();
        for value in arguments {
            taint.add(&value.all_taint());
        }
        Value { name: callee.name.map(|name| format!("{name}()")), taint, ..Value::default() }
    }
}

/// A property of a value.
fn member(object: &Value, property: &str) -> Value {
    let entry = format!("{property}:");
    if let Some(found) = object.items.iter().find(|item| item.name.as_deref() == Some(&entry)) {
        return found.items.first().cloned().unwrap_or_default();
    }
    match object.name.as_deref() {
        Some("process") if property == "env" => {
            let mut value = Value::named("process.env");
            value.taint.environment = true;
            value
        }
        Some("process.env") => environment(property),
        Some(name @ ("globalThis" | "global" | "window")) => {
            Value::named(if property == "process" || name.is_empty() {
                "process"
            } else {
                property
            })
        }
        name => Value { name: name.map(|name| format!("{name}.{property}")), ..object.clone() },
    }
}

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

fn binary(operator: BinaryOperator, left: Value, right: Value) -> Value {
    match (operator, left.number(), right.number()) {
        (BinaryOperator::Addition, Some(_), Some(_)) if left.text.is_none() => Value::default(),
        (BinaryOperator::Addition, _, _) => Value::joined(&[left, right], ""),
        (BinaryOperator::BitwiseXOR, Some(a), Some(b)) => Value::text((a ^ b).to_string()),
        (BinaryOperator::Subtraction, Some(a), Some(b)) => {
            a.checked_sub(b).map(|n| Value::text(n.to_string())).unwrap_or_default()
        }
        _ => {
            let mut taint = left.all_taint();
            taint.add(&right.all_taint());
            Value::tainted(taint)
        }
    }
}

fn key_of(key: &PropertyKey<'_>) -> Option<String> {
    key.static_name().map(|name| name.to_string())
}

/// `node:fs/promises` is `fs`.
fn bare(module: &str) -> &str {
    let module = module.strip_prefix("node:").unwrap_or(module);
    module.strip_suffix("/promises").unwrap_or(module)
}

#[cfg(test)]
mod tests;
