//! Resolves imported names of a Python module.

use ruff_python_ast::{Expr, Stmt};

use super::module::for_each_statement;

/// Where GAIA's decorator lives.
const DECORATOR: &str = "gaia.agents.base.tools.tool";

/// The name under which everybody imports it.
const USUAL_NAME: &str = "tool";

/// Longest dotted name that is followed; the decorator's own has five parts.
const MAX_PARTS: usize = 8;

/// The imported names of a module, each with its full name. A name that is imported twice, as in
/// `try` and `except`, has both meanings.
#[derive(Default)]
pub(super) struct Imports {
    names: Vec<(String, String)>,
}

impl Imports {
    pub(super) fn of(body: &[Stmt]) -> Self {
        let mut imports = Self::default();
        for_each_statement(body, &mut |statement| match statement {
            Stmt::Import(import) => {
                for alias in &import.names {
                    let full = alias.name.as_str();
                    // `import a.b` binds `a`.
                    let first = full.split('.').next().unwrap_or(full);
                    let named = alias.asname.as_ref().map(|name| (name.as_str(), full));
                    let (local, full) = named.unwrap_or((first, first));
                    imports.names.push((local.to_owned(), full.to_owned()));
                }
            }
            Stmt::ImportFrom(import) => {
                // A relative import names the skill's own files, which are never GAIA's.
                let dots = ".".repeat(import.level as usize);
                let module = import.module.as_ref().map_or("", |name| name.as_str());
                for alias in &import.names {
                    let local = alias.asname.as_ref().unwrap_or(&alias.name).to_string();
                    imports.names.push((local, format!("{dots}{module}.{}", alias.name)));
                }
            }
            _ => {}
        });
        imports
    }

    /// Whether an expression is GAIA's decorator.
    pub(super) fn is_tool(&self, expression: &Expr) -> bool {
        let Some(parts) = dotted(expression) else { return false };
        let Some((first, rest)) = parts.split_first() else { return false };
        let mut known = false;
        for (_, full) in self.names.iter().filter(|(local, _)| local == first) {
            known = true;
            let mut full = full.clone();
            for part in rest {
                full.push('.');
                full.push_str(part);
            }
            if full == DECORATOR {
                return true;
            }
        }
        // `tool` may come from `import *`, or be a replacement that the module defines.
        !known && rest.is_empty() && *first == USUAL_NAME
    }
}

/// The parts of `a.b.c`.
fn dotted(mut expression: &Expr) -> Option<Vec<&str>> {
    let mut parts = Vec::new();
    while let Expr::Attribute(attribute) = expression {
        if parts.len() > MAX_PARTS {
            return None;
        }
        parts.push(attribute.attr.as_str());
        expression = &attribute.value;
    }
    parts.push(expression.as_name_expr()?.id.as_str());
    parts.reverse();
    Some(parts)
}
