//! Compares the functions of a Python module with the tools that a SKILL.md declares.

use std::{
    collections::{HashMap, HashSet},
    fmt,
};

use savoir_lint::Span;

use super::{Function, Module, PyParameter, TOOLS_FILE};
use crate::{
    reading::Reading,
    skill::{ParameterKind, Tool},
    yaml::Node,
};

/// A tool as SKILL.md declares it, with the places of its parts as far as they are known.
#[derive(Clone, Debug)]
pub struct Declaration<'a> {
    /// The tool.
    pub tool: &'a Tool,
    /// The span of its name.
    pub span: Option<Span>,
    /// The spans of the names of its parameters.
    pub parameters: Vec<Span>,
}

impl<'a> From<&'a Tool> for Declaration<'a> {
    fn from(tool: &'a Tool) -> Self {
        Self { tool, span: None, parameters: Vec::new() }
    }
}

/// The tools that a GAIA skill declares, with their places.
pub fn declarations(reading: &Reading) -> Vec<Declaration<'_>> {
    let fields = reading.document.fields();
    let list = fields
        .and_then(|fields| fields.path("metadata.gaia.tools").or_else(|| fields.path("tools")))
        .and_then(Node::items)
        .unwrap_or_default();
    // The reader leaves out entries without a name, so they are left out here, too.
    let named = list.iter().filter(|node| node.get("name").and_then(Node::text).is_some());
    let mut nodes = named.map(Some).chain(std::iter::repeat(None));
    let tools = reading.skill.tools.iter();
    tools
        .map(|tool| {
            let node = nodes.next().flatten();
            let parameters = node.and_then(|node| node.get("parameters")).and_then(Node::entries);
            let parameters = parameters.unwrap_or_default().iter();
            Declaration {
                tool,
                span: node.and_then(|node| node.get("name")).map(|name| name.span),
                parameters: parameters.map(|entry| entry.key_span).collect(),
            }
        })
        .collect()
}

/// One way in which source and declaration differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// Name of the tool.
    pub tool: String,
    /// What differs.
    pub kind: MismatchKind,
    /// The span in SKILL.md, if the tool is declared there and its span is known.
    pub declared: Option<Span>,
    /// The span in `tools.py`, if the function exists.
    pub source: Option<Span>,
}

/// The kind of difference between source and declaration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MismatchKind {
    /// There is no such function.
    NotInSource {
        /// A function that may have been meant.
        nearest: Option<String>,
    },
    /// The function is not decorated as a tool.
    NotDecorated,
    /// The function is a tool that is not declared.
    NotDeclared,
    /// The function does not take a declared parameter.
    ParameterNotInSource {
        /// Its name.
        parameter: String,
    },
    /// The function takes a parameter that is not declared.
    ParameterNotDeclared {
        /// Its name.
        parameter: String,
    },
    /// A parameter is required on one side only.
    Requiredness {
        /// Its name.
        parameter: String,
        /// Whether SKILL.md says that it is required.
        declared: bool,
    },
    /// A parameter has two types.
    Type {
        /// Its name.
        parameter: String,
        /// The type in SKILL.md.
        declared: ParameterKind,
        /// The type of the annotation.
        annotated: ParameterKind,
    },
    /// The function has no docstring.
    NoDocstring,
}

impl MismatchKind {
    /// The code of the rule that reports it.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotInSource { .. } => "tool-not-in-source",
            Self::NotDecorated => "tool-not-decorated",
            Self::NotDeclared => "tool-not-declared",
            Self::ParameterNotInSource { .. }
            | Self::ParameterNotDeclared { .. }
            | Self::Requiredness { .. }
            | Self::Type { .. } => "tool-signature-differs",
            Self::NoDocstring => "tool-without-docstring",
        }
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tool = &self.tool;
        match &self.kind {
            MismatchKind::NotInSource { .. } => {
                write!(f, "`{TOOLS_FILE}` has no function `{tool}`")
            }
            MismatchKind::NotDecorated => {
                write!(f, "the function `{tool}` is not decorated with `@tool`")
            }
            MismatchKind::NotDeclared => {
                write!(f, "the function `{tool}` is decorated with `@tool`, but not declared")
            }
            MismatchKind::ParameterNotInSource { parameter } => {
                write!(f, "the function `{tool}` does not take the parameter `{parameter}`")
            }
            MismatchKind::ParameterNotDeclared { parameter } => {
                write!(f, "the parameter `{parameter}` of the function `{tool}` is not declared")
            }
            MismatchKind::Requiredness { parameter, declared: true } => write!(
                f,
                "`{parameter}` of `{tool}` is required, but the function has a default for it"
            ),
            MismatchKind::Requiredness { parameter, declared: false } => write!(
                f,
                "`{parameter}` of `{tool}` is optional, but the function has no default for it"
            ),
            MismatchKind::Type { parameter, declared, annotated } => write!(
                f,
                "`{parameter}` of `{tool}` has the type `{}`, but the function takes `{}`",
                declared.as_str(),
                annotated.as_str()
            ),
            MismatchKind::NoDocstring => write!(f, "the function `{tool}` has no docstring"),
        }
    }
}

/// Most functions among which a misspelt name is looked for, and the longest name that is compared:
/// comparing costs the product of the lengths, and both files are somebody else's.
const MAX_COMPARED: usize = 64;

/// Compares the declared tools with the functions of a module. A skill with any mismatch registers
/// no tool.
pub fn compare_tools(declared: &[Declaration<'_>], module: &Module) -> Vec<Mismatch> {
    let mut found = Vec::new();
    // A later definition replaces an earlier one, here as in Python.
    let functions: HashMap<&str, &Function> =
        module.functions.iter().map(|function| (function.name.as_str(), function)).collect();
    for declaration in declared {
        let name = &declaration.tool.name;
        let mut report = |kind, source| {
            let declared = declaration.span;
            found.push(Mismatch { tool: name.clone(), kind, declared, source });
        };
        match functions.get(name.as_str()) {
            None => report(MismatchKind::NotInSource { nearest: nearest(name, module) }, None),
            Some(function) => {
                if function.decorator.is_none() {
                    report(MismatchKind::NotDecorated, Some(function.span));
                }
                if function.docstring.is_none() {
                    report(MismatchKind::NoDocstring, Some(function.span));
                }
                parameters(declaration, function, &mut found);
            }
        }
    }
    let names: HashSet<&str> = declared.iter().map(|one| one.tool.name.as_str()).collect();
    for function in &module.functions {
        if function.decorator.is_some() && !names.contains(function.name.as_str()) {
            found.push(Mismatch {
                tool: function.name.clone(),
                kind: MismatchKind::NotDeclared,
                declared: None,
                source: Some(function.span),
            });
        }
    }
    found
}

fn nearest(name: &str, module: &Module) -> Option<String> {
    if name.len() > MAX_COMPARED {
        return None;
    }
    let names = module.functions.iter().take(MAX_COMPARED).map(|function| function.name.as_str());
    let short = names.filter(|name| name.len() <= MAX_COMPARED);
    savoir_lint::words::nearest(name, short).map(str::to_owned)
}

fn parameters(declaration: &Declaration<'_>, function: &Function, found: &mut Vec<Mismatch>) {
    let tool = declaration.tool;
    let mut report = |kind, declared: Option<Span>, source| {
        let declared = declared.or(declaration.span);
        found.push(Mismatch { tool: tool.name.clone(), kind, declared, source: Some(source) });
    };
    let named = function.parameters.iter().map(|own| (own.name.as_str(), own));
    let named: HashMap<&str, &PyParameter> = named.collect();
    for (index, declared) in tool.parameters.iter().enumerate() {
        let place = declaration.parameters.get(index).copied();
        let parameter = declared.name.clone();
        let Some(own) = named.get(declared.name.as_str()) else {
            report(MismatchKind::ParameterNotInSource { parameter }, place, function.span);
            continue;
        };
        if declared.required == own.has_default {
            let declared = declared.required;
            let kind = MismatchKind::Requiredness { parameter: parameter.clone(), declared };
            report(kind, place, own.span);
        }
        if let Some(annotated) = own.annotation.filter(|kind| *kind != declared.kind) {
            let declared = declared.kind;
            report(MismatchKind::Type { parameter, declared, annotated }, place, own.span);
        }
    }
    let declared: HashSet<&str> = tool.parameters.iter().map(|one| one.name.as_str()).collect();
    for own in function.parameters.iter().filter(|own| !declared.contains(own.name.as_str())) {
        let kind = MismatchKind::ParameterNotDeclared { parameter: own.name.clone() };
        report(kind, None, own.span);
    }
}
