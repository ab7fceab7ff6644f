//! Compares the functions of `tools.py` with the tools that a GAIA skill declares.
//!
//! The module is parsed once for the whole family: `tool-not-in-source` runs it, and the other
//! codes are reported from there.

use savoir_lint::{Diagnostic, Source, Span};

use crate::{
    check::{Context, rule::rule},
    dialect::Dialect,
    limits,
    python::{self, Declaration, Mismatch, MismatchKind, Module, PythonError, TOOLS_FILE},
    yaml::Node,
};

rule! {
    /// A function of `tools.py` is decorated with `@tool`, but SKILL.md does not declare it.
    ///
    /// ## Why
    ///
    /// GAIA does not load a skill whose module has more tools than its manifest. A tool that is
    /// not declared was not reviewed, and no permission was granted for it.
    ///
    /// ## Bad
    ///
    /// ````markdown
    /// ---
    /// name: invoices
    /// version: 1.0.0
    /// description: Lists open invoices. Use when someone asks what is due.
    /// author: ana
    /// license: MIT
    /// permissions: ["filesystem:read:~/invoices/**"]
    /// tools:
    ///   - name: list_invoices
    ///     description: Lists open invoices.
    ///     parameters:
    ///       customer: {type: string, required: true}
    ///       limit: {type: integer, default: 10}
    /// security_tier: experimental
    /// ---
    /// # Invoices
    ///
    /// Call `list_invoices`.
    /// ````
    ///
    /// ````python file=tools.py
    /// from gaia.agents.base.tools import tool
    ///
    ///
    /// @tool
    /// def list_invoices(customer: str, limit: int = 10) -> list:
    ///     """List the open invoices of a customer."""
    ///     return []
    ///
    ///
    /// @tool
    /// def delete_invoice(number: str) -> bool:
    ///     """Delete an invoice."""
    ///     return True
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown
    /// ---
    /// name: invoices
    /// version: 1.0.0
    /// description: Lists open invoices. Use when someone asks what is due.
    /// author: ana
    /// license: MIT
    /// permissions: ["filesystem:read:~/invoices/**"]
    /// tools:
    ///   - name: list_invoices
    ///     description: Lists open invoices.
    ///     parameters:
    ///       customer: {type: string, required: true}
    ///       limit: {type: integer, default: 10}
    /// security_tier: experimental
    /// ---
    /// # Invoices
    ///
    /// Call `list_invoices`.
    /// ````
    ///
    /// ````python file=tools.py
    /// from gaia.agents.base.tools import tool
    ///
    ///
    /// @tool
    /// def list_invoices(customer: str, limit: int = 10) -> list:
    ///     """List the open invoices of a customer."""
    ///     return []
    /// ````
    TOOL_NOT_DECLARED = "tool-not-declared", Error
}

rule! {
    /// A declared tool is a function of `tools.py`, but it is not decorated with `@tool`.
    ///
    /// ## Why
    ///
    /// Only decorated functions become tools. The decorator is `tool` of `gaia.agents.base.tools`, under
    /// whatever name it is imported.
    ///
    /// ## Bad
    ///
    /// ````markdown
    /// ---
    /// name: invoices
    /// version: 1.0.0
    /// description: Lists open invoices. Use when someone asks what is due.
    /// author: ana
    /// license: MIT
    /// permissions: ["filesystem:read:~/invoices/**"]
    /// tools:
    ///   - name: list_invoices
    ///     description: Lists open invoices.
    ///     parameters:
    ///       customer: {type: string, required: true}
    ///       limit: {type: integer, default: 10}
    /// security_tier: experimental
    /// ---
    /// # Invoices
    ///
    /// Call `list_invoices`.
    /// ````
    ///
    /// ````python file=tools.py
    /// def list_invoices(customer: str, limit: int = 10) -> list:
    ///     """List the open invoices of a customer."""
    ///     return []
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown
    /// ---
    /// name: invoices
    /// version: 1.0.0
    /// description: Lists open invoices. Use when someone asks what is due.
    /// author: ana
    /// license: MIT
    /// permissions: ["filesystem:read:~/invoices/**"]
    /// tools:
    ///   - name: list_invoices
    ///     description: Lists open invoices.
    ///     parameters:
    ///       customer: {type: string, required: true}
    ///       limit: {type: integer, default: 10}
    /// security_tier: experimental
    /// ---
    /// # Invoices
    ///
    /// Call `list_invoices`.
    /// ````
    ///
    /// ````python file=tools.py
    /// from gaia.agents.base.tools import tool
    ///
    ///
    /// @tool
    /// def list_invoices(customer: str, limit: int = 10) -> list:
    ///     """List the open invoices of a customer."""
    ///     return []
    /// ````
    TOOL_NOT_DECORATED = "tool-not-decorated", Error
}

rule! {
    /// A declared tool is not a function of `tools.py`.
    ///
    /// ## Why
    ///
    /// The model would get a tool that does not exist. GAIA looks up every declared tool in
    /// `tools.py` before it registers any of them.
    ///
    /// ## Bad
    ///
    /// ````markdown
    /// ---
    /// name: invoices
    /// version: 1.0.0
    /// description: Lists open invoices. Use when someone asks what is due.
    /// author: ana
    /// license: MIT
    /// permissions: ["filesystem:read:~/invoices/**"]
    /// tools:
    ///   - name: list_invoices
    ///     description: Lists open invoices.
    ///     parameters:
    ///       customer: {type: string, required: true}
    ///       limit: {type: integer, default: 10}
    /// security_tier: experimental
    /// ---
    /// # Invoices
    ///
    /// Call `list_invoices`.
    /// ````
    ///
    /// ````python file=tools.py
    /// from gaia.agents.base.tools import tool
    ///
    ///
    /// @tool
    /// def open_invoices(customer: str, limit: int = 10) -> list:
    ///     """List the open invoices of a customer."""
    ///     return []
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown
    /// ---
    /// name: invoices
    /// version: 1.0.0
    /// description: Lists open invoices. Use when someone asks what is due.
    /// author: ana
    /// license: MIT
    /// permissions: ["filesystem:read:~/invoices/**"]
    /// tools:
    ///   - name: list_invoices
    ///     description: Lists open invoices.
    ///     parameters:
    ///       customer: {type: string, required: true}
    ///       limit: {type: integer, default: 10}
    /// security_tier: experimental
    /// ---
    /// # Invoices
    ///
    /// Call `list_invoices`.
    /// ````
    ///
    /// ````python file=tools.py
    /// from gaia.agents.base.tools import tool
    ///
    ///
    /// @tool
    /// def list_invoices(customer: str, limit: int = 10) -> list:
    ///     """List the open invoices of a customer."""
    ///     return []
    /// ````
    TOOL_NOT_IN_SOURCE = "tool-not-in-source", Error, run compare_source
}

rule! {
    /// A declared tool and its function in `tools.py` take different parameters.
    ///
    /// ## Why
    ///
    /// A call is checked against SKILL.md and made in Python, so both must name the same
    /// parameters, of the same types, and agree on which of them are optional. Annotations count
    /// as `str` string, `int` integer, `float` number, `bool` boolean, `list` and `tuple` array,
    /// `dict` object; `Optional` and type arguments in brackets do not matter, and other
    /// annotations are not checked.
    ///
    /// ## Bad
    ///
    /// ````markdown
    /// ---
    /// name: invoices
    /// version: 1.0.0
    /// description: Lists open invoices. Use when someone asks what is due.
    /// author: ana
    /// license: MIT
    /// permissions: ["filesystem:read:~/invoices/**"]
    /// tools:
    ///   - name: list_invoices
    ///     description: Lists open invoices.
    ///     parameters:
    ///       customer: {type: string, required: true}
    ///       limit: {type: integer, default: 10}
    /// security_tier: experimental
    /// ---
    /// # Invoices
    ///
    /// Call `list_invoices`.
    /// ````
    ///
    /// ````python file=tools.py
    /// from gaia.agents.base.tools import tool
    ///
    ///
    /// @tool
    /// def list_invoices(customer: str, limit: str) -> list:
    ///     """List the open invoices of a customer."""
    ///     return []
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown
    /// ---
    /// name: invoices
    /// version: 1.0.0
    /// description: Lists open invoices. Use when someone asks what is due.
    /// author: ana
    /// license: MIT
    /// permissions: ["filesystem:read:~/invoices/**"]
    /// tools:
    ///   - name: list_invoices
    ///     description: Lists open invoices.
    ///     parameters:
    ///       customer: {type: string, required: true}
    ///       limit: {type: integer, default: 10}
    /// security_tier: experimental
    /// ---
    /// # Invoices
    ///
    /// Call `list_invoices`.
    /// ````
    ///
    /// ````python file=tools.py
    /// from gaia.agents.base.tools import tool
    ///
    ///
    /// @tool
    /// def list_invoices(customer: str, limit: int = 10) -> list:
    ///     """List the open invoices of a customer."""
    ///     return []
    /// ````
    TOOL_SIGNATURE_DIFFERS = "tool-signature-differs", Error
}

rule! {
    /// The function of a declared tool returns a type that JSON cannot represent.
    ///
    /// ## Why
    ///
    /// The result of a tool is sent to the model as JSON. A `set` or `bytes` cannot be sent, so
    /// every call fails after the function has run.
    ///
    /// ## Bad
    ///
    /// ````markdown
    /// ---
    /// name: invoices
    /// version: 1.0.0
    /// description: Lists open invoices. Use when someone asks what is due.
    /// author: ana
    /// license: MIT
    /// permissions: ["filesystem:read:~/invoices/**"]
    /// tools:
    ///   - name: list_invoices
    ///     description: Lists open invoices.
    ///     parameters:
    ///       customer: {type: string, required: true}
    ///       limit: {type: integer, default: 10}
    /// security_tier: experimental
    /// ---
    /// # Invoices
    ///
    /// Call `list_invoices`.
    /// ````
    ///
    /// ````python file=tools.py
    /// from gaia.agents.base.tools import tool
    ///
    ///
    /// @tool
    /// def list_invoices(customer: str, limit: int = 10) -> set:
    ///     """List the open invoices of a customer."""
    ///     return set()
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown
    /// ---
    /// name: invoices
    /// version: 1.0.0
    /// description: Lists open invoices. Use when someone asks what is due.
    /// author: ana
    /// license: MIT
    /// permissions: ["filesystem:read:~/invoices/**"]
    /// tools:
    ///   - name: list_invoices
    ///     description: Lists open invoices.
    ///     parameters:
    ///       customer: {type: string, required: true}
    ///       limit: {type: integer, default: 10}
    /// security_tier: experimental
    /// ---
    /// # Invoices
    ///
    /// Call `list_invoices`.
    /// ````
    ///
    /// ````python file=tools.py
    /// from gaia.agents.base.tools import tool
    ///
    ///
    /// @tool
    /// def list_invoices(customer: str, limit: int = 10) -> list:
    ///     """List the open invoices of a customer."""
    ///     return []
    /// ````
    TOOL_RETURNS_NO_JSON = "tool-returns-no-json", Error
}

rule! {
    /// The function of a declared tool has no docstring.
    ///
    /// ## Why
    ///
    /// GAIA requires one; a model reads it where the declaration has no description.
    ///
    /// ## Bad
    ///
    /// ````markdown
    /// ---
    /// name: invoices
    /// version: 1.0.0
    /// description: Lists open invoices. Use when someone asks what is due.
    /// author: ana
    /// license: MIT
    /// permissions: ["filesystem:read:~/invoices/**"]
    /// tools:
    ///   - name: list_invoices
    ///     description: Lists open invoices.
    ///     parameters:
    ///       customer: {type: string, required: true}
    ///       limit: {type: integer, default: 10}
    /// security_tier: experimental
    /// ---
    /// # Invoices
    ///
    /// Call `list_invoices`.
    /// ````
    ///
    /// ````python file=tools.py
    /// from gaia.agents.base.tools import tool
    ///
    ///
    /// @tool
    /// def list_invoices(customer: str, limit: int = 10) -> list:
    ///     return []
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown
    /// ---
    /// name: invoices
    /// version: 1.0.0
    /// description: Lists open invoices. Use when someone asks what is due.
    /// author: ana
    /// license: MIT
    /// permissions: ["filesystem:read:~/invoices/**"]
    /// tools:
    ///   - name: list_invoices
    ///     description: Lists open invoices.
    ///     parameters:
    ///       customer: {type: string, required: true}
    ///       limit: {type: integer, default: 10}
    /// security_tier: experimental
    /// ---
    /// # Invoices
    ///
    /// Call `list_invoices`.
    /// ````
    ///
    /// ````python file=tools.py
    /// from gaia.agents.base.tools import tool
    ///
    ///
    /// @tool
    /// def list_invoices(customer: str, limit: int = 10) -> list:
    ///     """List the open invoices of a customer."""
    ///     return []
    /// ````
    TOOL_WITHOUT_DOCSTRING = "tool-without-docstring", Error
}

rule! {
    /// `tools.py` cannot be read as Python.
    ///
    /// ## Why
    ///
    /// A module that does not parse cannot be imported, so no tool of the skill works. The same
    /// applies to a file that is not UTF-8, contains a NUL byte, is larger than 1 MiB, or is a
    /// symbolic link.
    ///
    /// ## Bad
    ///
    /// ````markdown
    /// ---
    /// name: invoices
    /// version: 1.0.0
    /// description: Lists open invoices. Use when someone asks what is due.
    /// author: ana
    /// license: MIT
    /// permissions: ["filesystem:read:~/invoices/**"]
    /// tools:
    ///   - name: list_invoices
    ///     description: Lists open invoices.
    ///     parameters:
    ///       customer: {type: string, required: true}
    ///       limit: {type: integer, default: 10}
    /// security_tier: experimental
    /// ---
    /// # Invoices
    ///
    /// Call `list_invoices`.
    /// ````
    ///
    /// ````python file=tools.py
    /// from gaia.agents.base.tools import tool
    ///
    ///
    /// @tool
    /// def list_invoices(customer: str, limit: int = 10 -> list:
    ///     """List the open invoices of a customer."""
    ///     return []
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown
    /// ---
    /// name: invoices
    /// version: 1.0.0
    /// description: Lists open invoices. Use when someone asks what is due.
    /// author: ana
    /// license: MIT
    /// permissions: ["filesystem:read:~/invoices/**"]
    /// tools:
    ///   - name: list_invoices
    ///     description: Lists open invoices.
    ///     parameters:
    ///       customer: {type: string, required: true}
    ///       limit: {type: integer, default: 10}
    /// security_tier: experimental
    /// ---
    /// # Invoices
    ///
    /// Call `list_invoices`.
    /// ````
    ///
    /// ````python file=tools.py
    /// from gaia.agents.base.tools import tool
    ///
    ///
    /// @tool
    /// def list_invoices(customer: str, limit: int = 10) -> list:
    ///     """List the open invoices of a customer."""
    ///     return []
    /// ````
    TOOLS_PY_UNREADABLE = "tools-py-unreadable", Error
}

fn compare_source(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    let Some(folder) = context.folder.filter(|folder| folder.has(TOOLS_FILE)) else { return };
    if context.dialect() != Dialect::GAIA || context.reading.skill.tools.is_empty() {
        return;
    }
    let tools = tools_span(context);
    let bytes = match folder.read_up_to(TOOLS_FILE, limits::MAX_FILE_BYTES) {
        Ok(bytes) => bytes,
        Err(error) => {
            let message = format!("`{TOOLS_FILE}` cannot be read: {error}");
            found.push(
                Diagnostic::error(TOOLS_PY_UNREADABLE.code, tools, message)
                    .field("tools")
                    .help("put the module itself into the skill's folder"),
            );
            return;
        }
    };
    let declared = python::declarations(context.reading);
    match python::parse_bytes(&bytes) {
        Ok(module) => {
            let mismatches = python::compare_tools(&declared, &module);
            // Places are found by line starts, which only a module with a finding needs.
            let source = Source::new(String::from_utf8_lossy(&bytes).into_owned());
            let all = mismatches.iter().take(limits::MAX_FINDINGS_PER_RULE);
            found.extend(all.map(|mismatch| finding(mismatch, &source, tools)));
            for declaration in declared.iter().take(limits::MAX_FINDINGS_PER_RULE) {
                found.extend(check_return_type(declaration, &module, &source, tools));
            }
        }
        Err(error) => found.push(unreadable(&error, &bytes, tools)),
    }
}

fn check_return_type(
    declaration: &Declaration<'_>,
    module: &Module,
    source: &Source,
    tools: Span,
) -> Option<Diagnostic> {
    let function = module.function(&declaration.tool.name)?;
    let (name, kind) = (&function.name, function.returns_no_json?);
    let place = place(source, function.span);
    let message =
        format!("the function `{name}` returns `{kind}`, which JSON does not have ({place})");
    let span = declaration.span.unwrap_or(tools);
    let help = match kind {
        "bytes" | "bytearray" | "memoryview" => "return text, for instance in base64",
        "complex" => "return a list of two numbers",
        _ => "return a list",
    };
    Some(Diagnostic::error(TOOL_RETURNS_NO_JSON.code, span, message).field("tools").help(help))
}

fn unreadable(error: &PythonError, bytes: &[u8], tools: Span) -> Diagnostic {
    let module = Source::new(String::from_utf8_lossy(bytes).into_owned());
    let message = format!("{}: {}", place(&module, error.span), error.message);
    Diagnostic::error(TOOLS_PY_UNREADABLE.code, tools, message)
        .field("tools")
        .help("run `python3 -m py_compile tools.py` to see whether Python accepts the file")
}

fn finding(mismatch: &Mismatch, module: &Source, tools: Span) -> Diagnostic {
    let span = mismatch.declared.unwrap_or(tools);
    let place =
        mismatch.source.map_or_else(String::new, |span| format!(" ({})", place(module, span)));
    Diagnostic::error(mismatch.kind.code(), span, format!("{mismatch}{place}"))
        .field("tools")
        .help(suggest_fix(mismatch))
}

fn suggest_fix(mismatch: &Mismatch) -> String {
    let tool = &mismatch.tool;
    match &mismatch.kind {
        MismatchKind::NotInSource { nearest: Some(near) } => {
            format!("the module has a function `{near}`; use the same name in both places")
        }
        MismatchKind::NotInSource { nearest: None } => {
            format!(
                "write the function `{tool}`, decorated with `@tool`, or remove the declaration"
            )
        }
        MismatchKind::NotDecorated => "put `@tool` of `gaia.agents.base.tools` above it".into(),
        MismatchKind::NotDeclared => "declare it in `tools`, or remove the decorator".into(),
        MismatchKind::ParameterNotInSource { parameter } => {
            format!("add `{parameter}` to the function, or remove it from the declaration")
        }
        MismatchKind::ParameterNotDeclared { parameter } => {
            format!("declare `{parameter}`, or remove it from the function")
        }
        MismatchKind::Requiredness { parameter, declared: true } => {
            format!("remove the default of `{parameter}`, or write `required: false`")
        }
        MismatchKind::Requiredness { parameter, declared: false } => {
            format!("give `{parameter}` a default, or write `required: true`")
        }
        MismatchKind::Type { annotated, .. } => {
            format!("write `type: {}`, or change the annotation", annotated.as_str())
        }
        MismatchKind::NoDocstring => "say in its first line what the function does".into(),
    }
}

/// `tools.py:LINE:COLUMN`.
fn place(module: &Source, span: Span) -> String {
    let position = module.position(span.start);
    format!("{TOOLS_FILE}:{}:{}", position.line, position.column)
}

/// The key of the list of tools.
fn tools_span(context: &Context<'_>) -> Span {
    let document = &context.reading.document;
    let gaia = document.fields().and_then(|fields| fields.path("metadata.gaia"));
    let entry = gaia.or(document.fields()).and_then(|node: &Node| node.entry("tools"));
    entry.map_or_else(|| document.head_span(), |entry| entry.key_span)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::{
        check::{self, Options},
        folder::Folder,
    };

    const SKILL: &str = "---\nname: demo\ndescription: Shows a rule. Use when learning.\nmetadata:\n  gaia:\n    \
                         tools:\n      - name: greet\n        description: Greets.\n        parameters:\n          \
                         who: {type: string, required: true}\n---\n# Demo\n\nCall `greet`.\n";

    /// Returns the findings in a skill with this module, with the text under each finding.
    fn found(module: &[u8]) -> Vec<(&'static str, &'static str, String)> {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("demo");
        fs::create_dir(&root).unwrap();
        fs::write(root.join("SKILL.md"), SKILL).unwrap();
        fs::write(root.join(TOOLS_FILE), module).unwrap();
        check_folder(&Folder::open(&root).unwrap())
    }

    fn check_folder(folder: &Folder) -> Vec<(&'static str, &'static str, String)> {
        let checked = check::check(Source::new(SKILL.into()), Some(folder), &Options::default());
        let all = checked.diagnostics.into_iter();
        all.map(|one| (one.code, one.span.slice(SKILL), one.message)).collect()
    }

    #[test]
    fn findings_name_both_places() {
        let import = "from gaia.agents.base.tools import tool\n";
        let good = format!("{import}@tool\ndef greet(who: str):\n    'Greets.'\n");
        assert_eq!(found(good.as_bytes()), []);
        let module =
            format!("{good}\n@tool\ndef more(): 'x'\n").replace("who: str", "who: int = 1");
        let expected = [
            (
                "tool-not-declared",
                "tools",
                "the function `more` is decorated with `@tool`, but not declared (tools.py:7:5)",
            ),
            (
                "tool-signature-differs",
                "who",
                "`who` of `greet` has the type `string`, but the function takes `integer` (tools.py:3:11)",
            ),
            (
                "tool-signature-differs",
                "who",
                "`who` of `greet` is required, but the function has a default for it (tools.py:3:11)",
            ),
        ];
        let mut all = found(module.as_bytes());
        all.sort();
        assert_eq!(all, expected.map(|(code, text, message)| (code, text, message.to_owned())));
        assert_eq!(found(b"")[0].0, "tool-not-in-source");
    }

    #[test]
    fn unreadable_modules_report_the_reason() {
        let large = vec![b' '; limits::MAX_FILE_BYTES + 1];
        let deep = vec![b'('; 100_000];
        let cases: [(&[u8], &str); 5] = [
            (b"def greet(:", "tools.py:1:11: expected"),
            (b"\n\xff", "tools.py:2:1: byte 1 is not valid UTF-8"),
            (b"x = 1\0", "tools.py:1:6: the file has a NUL byte"),
            (&large, "`tools.py` cannot be read: tools.py has more than 1048576 bytes"),
            (&deep, "tools.py:1:1: an expression nests deeper"),
        ];
        for (module, message) in cases {
            let all = found(module);
            assert_eq!((all[0].0, all[0].1), ("tools-py-unreadable", "tools"), "{all:?}");
            assert!(all.len() == 1 && all[0].2.starts_with(message), "{all:?}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("demo");
        fs::create_dir(&root).unwrap();
        fs::write(root.join("SKILL.md"), SKILL).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", root.join(TOOLS_FILE)).unwrap();
        let all = check_folder(&Folder::open(&root).unwrap());
        assert_eq!(all[0].0, "tools-py-unreadable");
        assert!(
            all[0].2.ends_with("tools.py is a symbolic link, which is not followed"),
            "{all:?}"
        );
    }
}
