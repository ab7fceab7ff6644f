//! Reads the functions of a Python module.

use ruff_python_ast::{ExceptHandler, Expr, ParameterWithDefault, Stmt, StmtFunctionDef};
use ruff_python_parser::parse_module;
use savoir_lint::Span;
use serde_json::Value;

use super::{PythonError, annotation, import::Imports, literal, span_of};
use crate::skill::ParameterKind;

/// The functions and imports of a module.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Module {
    /// Its functions in the order of the file: those at top level, also under `if`, `try` and
    /// `with`, which do not open a scope of their own.
    pub functions: Vec<Function>,
}

impl Module {
    /// The function of a name; the last one, as for Python.
    pub fn function(&self, name: &str) -> Option<&Function> {
        self.functions.iter().rev().find(|function| function.name == name)
    }
}

/// A function as its `def` describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// The span of its name.
    pub span: Span,
    /// Whether it is an `async def`.
    pub is_async: bool,
    /// GAIA's decorator, under whatever name it was imported.
    pub decorator: Option<Decorator>,
    /// Its docstring without the indentation; `None` when it is blank.
    pub docstring: Option<String>,
    /// Its named parameters in order.
    pub parameters: Vec<PyParameter>,
    /// Whether it takes `*args`.
    pub has_args: bool,
    /// Whether it takes `**kwargs`.
    pub has_kwargs: bool,
    /// What it says it returns, when that is one of our types.
    pub returns: Option<ParameterKind>,
    /// What it says it returns, when JSON has no such value: `set`, `bytes`.
    pub returns_no_json: Option<&'static str>,
}

/// `@tool` above a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decorator {
    /// Its span, without the `@`.
    pub span: Span,
    /// Whether it says `atomic=True`.
    pub atomic: bool,
}

/// A named parameter of a function.
#[derive(Clone, Debug, PartialEq)]
pub struct PyParameter {
    /// Its name.
    pub name: String,
    /// The span of its name.
    pub span: Span,
    /// The type that its annotation names; `None` when there is none that can be checked.
    pub annotation: Option<ParameterKind>,
    /// Whether a call may leave it out.
    pub has_default: bool,
    /// Its default, when that is written out as a literal.
    pub default: Option<Value>,
}

/// Parses a text that was found to be shallow.
pub(super) fn read(source: &str) -> Result<Module, PythonError> {
    let parsed = parse_module(source).map_err(|error| {
        // The parser begins its sentences with a capital, ours begin small.
        let said = error.error.to_string();
        let mut letters = said.chars();
        let first = letters.next().map(|letter| letter.to_lowercase().to_string());
        let message = first.unwrap_or_default() + letters.as_str();
        PythonError::new(message.trim_end_matches('.'), span_of(error.location))
    })?;
    let body = parsed.suite();
    let imports = Imports::of(body);
    let mut functions = Vec::new();
    for_each_statement(body, &mut |statement| {
        if let Stmt::FunctionDef(definition) = statement {
            functions.push(function(definition, &imports));
        }
    });
    Ok(Module { functions })
}

/// Visits every statement of the module's own scope.
pub(super) fn for_each_statement<'a>(body: &'a [Stmt], visit: &mut impl FnMut(&'a Stmt)) {
    // A list instead of recursion: blocks nest as deeply as the file likes.
    let mut open: Vec<std::slice::Iter<'a, Stmt>> = vec![body.iter()];
    while let Some(block) = open.last_mut() {
        let Some(statement) = block.next() else {
            open.pop();
            continue;
        };
        visit(statement);
        let mut inner: Vec<&'a [Stmt]> = Vec::new();
        match statement {
            Stmt::If(branch) => {
                inner.push(&branch.body);
                inner.extend(branch.elif_else_clauses.iter().map(|clause| &*clause.body));
            }
            Stmt::Try(attempt) => {
                inner.push(&attempt.body);
                let handlers = attempt.handlers.iter();
                inner.extend(handlers.map(|ExceptHandler::ExceptHandler(handler)| &*handler.body));
                inner.extend([&*attempt.orelse, &*attempt.finalbody]);
            }
            Stmt::With(with) => inner.push(&with.body),
            _ => {}
        }
        open.extend(inner.into_iter().rev().map(<[Stmt]>::iter));
    }
}

fn function(definition: &StmtFunctionDef, imports: &Imports) -> Function {
    let parameters = &definition.parameters;
    let named = parameters.posonlyargs.iter().chain(&parameters.args).chain(&parameters.kwonlyargs);
    Function {
        name: definition.name.to_string(),
        span: span_of(definition.name.range),
        is_async: definition.is_async,
        decorator: decorator(definition, imports),
        docstring: docstring(&definition.body),
        parameters: named.map(parameter).collect(),
        has_args: parameters.vararg.is_some(),
        has_kwargs: parameters.kwarg.is_some(),
        returns: definition.returns.as_deref().and_then(annotation::kind),
        returns_no_json: definition.returns.as_deref().and_then(annotation::no_json),
    }
}

fn decorator(definition: &StmtFunctionDef, imports: &Imports) -> Option<Decorator> {
    definition.decorator_list.iter().find_map(|decorator| {
        let (name, keywords) = match &decorator.expression {
            Expr::Call(call) => (&*call.func, &*call.arguments.keywords),
            name => (name, Default::default()),
        };
        let is_atomic = |name: &str, value: &Expr| {
            name == "atomic" && value.as_boolean_literal_expr().is_some_and(|literal| literal.value)
        };
        imports.is_tool(name).then(|| Decorator {
            span: {
                let range = span_of(decorator.range);
                Span::new(range.start + 1, range.end)
            },
            atomic: keywords.iter().any(|keyword| {
                keyword.arg.as_ref().is_some_and(|name| is_atomic(name, &keyword.value))
            }),
        })
    })
}

fn parameter(parameter: &ParameterWithDefault) -> PyParameter {
    PyParameter {
        name: parameter.parameter.name.to_string(),
        span: span_of(parameter.parameter.name.range),
        annotation: parameter.parameter.annotation.as_deref().and_then(annotation::kind),
        has_default: parameter.default.is_some(),
        default: parameter.default.as_deref().and_then(literal::value),
    }
}

fn docstring(body: &[Stmt]) -> Option<String> {
    let first = body.first()?.as_expr_stmt()?.value.as_string_literal_expr()?;
    let text = without_indentation(first.value.to_str());
    (!text.is_empty()).then_some(text)
}

/// A docstring as `inspect.cleandoc` gives it: the common indentation of all lines but the first
/// goes, and so do blank lines around the text.
fn without_indentation(text: &str) -> String {
    let blanks = |line: &str| line.len() - line.trim_start().len();
    let rest = text.lines().skip(1).filter(|line| !line.trim().is_empty());
    let margin = rest.map(blanks).min().unwrap_or(0);
    let lines = text.lines().enumerate().map(|(index, line)| {
        let line = if index == 0 { line.trim_start() } else { line.get(margin..).unwrap_or("") };
        line.trim_end()
    });
    lines.collect::<Vec<_>>().join("\n").trim().to_owned()
}
