//! Checks the values of GAIA fields that have a special syntax.

use savoir_lint::{Diagnostic, Severity};
use serde_json::Value;

use super::{PARAMETER_KINDS, place};
use crate::{
    dialect::Reader,
    name::NameGrammar,
    skill::{ParameterKind, Skill},
    version::VersionRange,
    yaml::Node,
};

/// Checks the content of values whose type is right. A value that prevents installing or running is
/// an error; a purely informative value is a warning.
pub(super) fn check(reader: &Reader<'_>, skill: &Skill, found: &mut Vec<Diagnostic>) {
    let mut values = Values { reader, found };
    values.description();
    for key in ["homepage", "repository", "registry"] {
        values.link(key);
    }
    values.requirements();
    values.skills(&skill.name);
    values.returns();
    values.defaults();
}

/// A field of `requirements`: its key, a predicate for valid texts, the severity, and a hint.
type ValueFormat = (&'static str, fn(&str) -> bool, Severity, &'static str);

struct Values<'a, 'f> {
    reader: &'a Reader<'a>,
    found: &'f mut Vec<Diagnostic>,
}

impl Values<'_, '_> {
    fn report(
        &mut self,
        severity: Severity,
        node: &Node,
        field: &str,
        message: String,
        help: &str,
    ) {
        let mut problem = Diagnostic::error("invalid-value", node.span, message)
            .field(field.to_owned())
            .help(help);
        problem.severity = severity;
        self.found.push(problem);
    }

    fn description(&mut self) {
        let Some(node) = self.reader.node("description") else { return };
        if node.text().is_some_and(|text| text.trim().contains('\n')) {
            let message = "`description` has several lines, registries show one".to_owned();
            // A skill that other agents read, too, may have a longer description.
            let nested = super::is_nested(self.reader.document);
            let severity = if nested { Severity::Warning } else { Severity::Error };
            self.report(
                severity,
                node,
                "description",
                message,
                "write it on one line, or fold it with `>-`",
            );
        }
    }

    fn link(&mut self, key: &str) {
        let Some(node) = self.reader.node(key) else { return };
        let text = node.text().unwrap_or_default();
        let schemes: &[&str] = match key {
            "repository" => &["https://", "http://", "ssh://", "git://", "git+https://", "git@"],
            _ => &["https://", "http://"],
        };
        let rest = schemes.iter().find_map(|scheme| text.strip_prefix(scheme));
        let is_link = rest.is_some_and(|rest| {
            rest.starts_with(char::is_alphanumeric) && !rest.contains(char::is_whitespace)
        });
        if !is_link {
            let message = format!("`{key}` is `{text}`, which is not a URL");
            let help = "write an address such as `https://example.com/skill`";
            self.report(Severity::Warning, node, key, message, help);
        }
    }

    fn requirements(&mut self) {
        let forms: [ValueFormat; 5] = [
            (
                "model",
                |text| is_size(text, &["M", "B"]),
                Severity::Warning,
                "write a size such as `>=7B`",
            ),
            (
                "context",
                |text| is_size(text, &["K", "M"]),
                Severity::Warning,
                "write a size such as `>=8K`",
            ),
            (
                "hardware.npu",
                |text| ["required", "optional", "none"].contains(&text),
                Severity::Warning,
                "write `required`, `optional` or `none`",
            ),
            (
                "hardware.gpu_vram",
                |text| is_size(text, &["GB", "MB", "GiB", "MiB"]),
                Severity::Warning,
                "write a size such as `>=8GB`",
            ),
            (
                "python",
                is_python_range,
                Severity::Error,
                "write a range in quotes, such as `\">=3.10\"`",
            ),
        ];
        for (key, is_valid, severity, help) in forms {
            let field = place(self.reader, &format!("requirements.{key}"));
            let Some(node) = self.reader.node(&field) else { continue };
            let Some(text) = node.text() else { continue };
            // `3.10` without quotes is the number 3.1.
            let number = key == "python" && node.string(self.reader.version).is_none();
            if number || !is_valid(text) {
                let message = format!("`{field}` is `{text}`, expected {}", expected(key));
                self.report(severity, node, &field, message, help);
            }
        }
        self.check_each(
            "dependencies",
            is_package,
            "is not a Python package",
            "write it as for pip, such as `requests>=2.31`",
        );
        self.check_each(
            "node_dependencies",
            is_node_package,
            "is not a Node package",
            "write it as for npm, such as `sharp@^0.33` or `@scope/name`",
        );
        self.check_each(
            "env_vars",
            is_variable,
            "is not the name of an environment variable",
            "use letters, digits and underscores, and start with a letter",
        );
    }

    fn check_each(&mut self, key: &str, is_valid: fn(&str) -> bool, what: &str, help: &str) {
        let key = place(self.reader, &format!("requirements.{key}"));
        let items = self.reader.node(&key).and_then(Node::items).unwrap_or_default();
        for (index, node) in items.iter().enumerate() {
            if let Some(text) = node.text().filter(|text| !is_valid(text)) {
                let message = format!("`{text}` {what}");
                self.report(Severity::Error, node, &format!("{key}[{index}]"), message, help);
            }
        }
    }

    fn skills(&mut self, own: &str) {
        let key = place(self.reader, "requirements.skills");
        let items = self.reader.node(&key).and_then(Node::items).unwrap_or_default();
        for (index, node) in items.iter().enumerate() {
            let name_node = node.get("name").unwrap_or(node);
            let Some(text) = name_node.text() else { continue };
            let name = text.split('@').next().unwrap_or_default().trim();
            let field = format!("{key}[{index}]");
            // A registry may put a namespace before the name.
            let bare = name.rsplit('/').next().unwrap_or_default();
            if NameGrammar::Gaia.check(bare).is_err() {
                let message = format!("`{name}` is not the name of a skill");
                let help = "use lower-case letters, digits and hyphens";
                self.report(Severity::Error, name_node, &field, message, help);
            } else if name == own {
                let message = "the skill requires itself".to_owned();
                self.report(Severity::Error, name_node, &field, message, "remove the entry");
            }
        }
    }

    fn returns(&mut self) {
        let key = place(self.reader, "tools");
        let tools = self.reader.node(&key).and_then(Node::items).unwrap_or_default();
        for (index, tool) in tools.iter().enumerate() {
            let Some(kind) = tool.path("returns.type") else { continue };
            let word = kind.text().unwrap_or_default();
            if !PARAMETER_KINDS.contains(&word) && word != "null" {
                let message = format!("a tool cannot return `{word}`");
                let help = "use string, integer, number, boolean, array or object";
                let field = format!("{key}[{index}].returns.type");
                self.report(Severity::Warning, kind, &field, message, help);
            }
        }
    }

    /// A call without the parameter would fail.
    fn defaults(&mut self) {
        let version = self.reader.version;
        let key = place(self.reader, "tools");
        let tools = self.reader.node(&key).and_then(Node::items).unwrap_or_default();
        for (index, tool) in tools.iter().enumerate() {
            for entry in tool.get("parameters").and_then(Node::entries).unwrap_or_default() {
                let kind = entry.value.get("type").and_then(Node::text);
                let default = entry.value.get("default").filter(|node| !node.is_null(version));
                let (Some(kind), Some(node)) = (kind, default) else { continue };
                if is_of_kind(kind, &node.to_value(version)) {
                    continue;
                }
                let message = format!("the default of `{}` is not of type {kind}", entry.key);
                let help = if kind == "string" {
                    "put the default in quotes, or change the type"
                } else {
                    "change the default or the type"
                };
                let field = format!("{key}[{index}].parameters.{}.default", entry.key);
                self.report(Severity::Error, node, &field, message, help);
            }
        }
    }
}

/// Whether a value is of a type; an unknown type is reported elsewhere.
fn is_of_kind(kind: &str, value: &Value) -> bool {
    match ParameterKind::parse(kind) {
        Some(ParameterKind::Array) => value.is_array(),
        Some(kind) => kind.accepts(value),
        None => true,
    }
}

fn expected(key: &str) -> &'static str {
    match key {
        "python" => "a range of versions",
        "hardware.npu" => "`required`, `optional` or `none`",
        "hardware.gpu_vram" => "a number of GB or MB",
        "context" => "a number of K or M tokens",
        _ => "a number of M or B parameters",
    }
}

/// Whether a text is an optional comparison, a number and one of these units.
fn is_size(text: &str, units: &[&str]) -> bool {
    let text = text.trim();
    let bare = [">=", "<=", "==", ">", "<", "="].iter().find_map(|sign| text.strip_prefix(sign));
    let bare = bare.unwrap_or(text).trim_start();
    let unit = bare.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let number = &bare[..bare.len() - unit.len()];
    units.iter().any(|known| known.eq_ignore_ascii_case(unit.trim()))
        && number.parse::<f64>().is_ok()
}

/// Whether a text is a comma-separated list of PEP 440 comparisons.
fn is_python_range(text: &str) -> bool {
    VersionRange::parse(text).is_ok() || text.split(',').all(is_comparison)
}

fn is_comparison(text: &str) -> bool {
    const SIGNS: [&str; 8] = ["===", "~=", "==", "!=", "<=", ">=", "<", ">"];
    let text = text.trim();
    let version = SIGNS.iter().find_map(|sign| text.strip_prefix(sign)).map(str::trim_start);
    version.is_some_and(|version| {
        version.starts_with(|c: char| c.is_ascii_digit())
            && version.chars().all(|c| c.is_ascii_alphanumeric() || ".*+-_!".contains(c))
    })
}

/// Whether a text is a pip requirement: a name, extras, comparisons or an address, and a condition.
fn is_package(text: &str) -> bool {
    let text = text.split(';').next().unwrap_or_default().trim();
    let is_word = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let rest = text.trim_start_matches(is_word);
    let name = &text[..text.len() - rest.len()];
    let is_name = name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.ends_with(|c: char| c.is_ascii_alphanumeric());
    let rest = rest.trim_start();
    let rest = match rest.strip_prefix('[') {
        Some(extras) => match extras.split_once(']') {
            Some((_, rest)) => rest.trim_start(),
            None => return false,
        },
        None => rest,
    };
    let comparisons =
        rest.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')).unwrap_or(rest);
    is_name
        && (rest.is_empty() || rest.starts_with('@') || comparisons.split(',').all(is_comparison))
}

/// Whether a text is a package as npm takes it: a name, perhaps with a scope, and a range or a tag.
fn is_node_package(text: &str) -> bool {
    let text = text.trim();
    let (scope, rest) = match text.strip_prefix('@').map(|rest| rest.split_once('/')) {
        Some(Some((scope, rest))) => (Some(scope), rest),
        Some(None) => return false,
        None => (None, text),
    };
    let (name, range) =
        rest.split_once('@').map_or((rest, None), |(name, range)| (name, Some(range)));
    let is_word = |word: &str| {
        word.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
            && word.chars().all(|c| c.is_ascii_alphanumeric() || "._-~".contains(c))
    };
    let is_range =
        |range: &str| !range.is_empty() && range.chars().all(|c| c.is_ascii_graphic() || c == ' ');
    scope.is_none_or(is_word) && is_word(name) && range.is_none_or(is_range)
}

fn is_variable(text: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !text.is_empty() && text.chars().all(word) && !text.starts_with(|c: char| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use savoir_lint::Severity;

    use crate::{Dialect, Source, reading::read_as};

    fn found(lines: &str) -> Vec<String> {
        let text = format!(
            "---\nname: demo\nversion: 1.0.0\ndescription: Shows it.\nauthor: ana\nlicense: MIT\n\
             permissions: []\nsecurity_tier: community\n{lines}---\n# Demo\n"
        );
        let reading = read_as(Source::new(text.clone()), Dialect::GAIA, None);
        let own = reading.diagnostics.iter().filter(|found| found.code == "invalid-value");
        own.map(|found| {
            assert!(found.help.is_some(), "{}", found.message);
            format!("{} {}", found.field.as_deref().unwrap_or_default(), found.span.slice(&text))
        })
        .collect()
    }

    fn one(requirement: &str) -> usize {
        found(&format!("tools: [{{name: a, description: b}}]\nrequirements:\n  {requirement}\n"))
            .len()
    }

    #[test]
    fn requirements_are_validated() {
        for right in [
            "model: '>=7B'",
            "model: 500M",
            "context: '>=8K'",
            "context: 1M",
            "python: '>=3.10'",
            "python: '>=3.10,<4'",
            "python: ~=3.11",
            "dependencies: [requests, 'a[b]>=1,<2', 'c ; x', 'd @ https://e.f']",
            "node_dependencies: [left-pad, 'sharp@^0.33.0', '@scope/name@>=1 <2', a@latest]",
            "env_vars: [API_KEY]",
            "hardware: {npu: optional, gpu_vram: '>=0GB'}",
            "skills: [{name: other, version: ^1.0}, 'team/more@^2']",
        ] {
            assert_eq!(one(right), 0, "{right}");
        }
        for wrong in [
            "model: big",
            "model: '>=7X'",
            "context: lots",
            "python: 3.10",
            "python: 'three'",
            "dependencies: ['not a package']",
            "dependencies: ['a>>1']",
            "node_dependencies: ['not a package!!']",
            "node_dependencies: ['@scope']",
            "node_dependencies: ['../x']",
            "node_dependencies: ['a@']",
            "env_vars: ['API KEY']",
            "env_vars: [9X]",
            "hardware: {npu: maybe}",
            "hardware: {gpu_vram: much}",
            "skills: [{name: 'Not A Name'}]",
            "skills: [{name: demo}]",
            "skills: ['demo@^1']",
        ] {
            assert_eq!(one(wrong), 1, "{wrong}");
        }
    }

    #[test]
    fn description_of_several_lines_is_an_error() {
        let severity = |text: &str| {
            let reading = read_as(Source::new(text.into()), Dialect::GAIA, None);
            let found = reading.diagnostics.into_iter();
            let mut found = found.filter(|found| found.field.as_deref() == Some("description"));
            found.next().map(|found| found.severity)
        };
        let flat = "---\nname: demo\nversion: 1.0.0\ndescription: |\n  One.\n  Two.\nauthor: a\n---\n# x\n";
        assert_eq!(severity(flat), Some(Severity::Error));
        assert_eq!(severity(&flat.replace('|', ">-")), None);
        let nested = flat.replace("author: a", "metadata: {gaia: {tools: []}}");
        assert_eq!(severity(&nested), Some(Severity::Warning));
    }

    #[test]
    fn defaults_of_parameters_are_of_their_type() {
        let one = |parameter: &str| {
            found(&format!(
                "tools: [{{name: a, description: b, parameters: {{q: {parameter}}}}}]\n"
            ))
        };
        for (kind, right, wrong) in [
            ("string", "'5'", "5"),
            ("string", "text", "true"),
            ("integer", "5", "1.5"),
            ("number", "1.5", "'1.5'"),
            ("boolean", "false", "'no'"),
            ("array", "[a]", "a"),
            ("object", "{a: 1}", "[a]"),
        ] {
            assert!(one(&format!("{{type: {kind}, default: {right}}}")).is_empty(), "{right}");
            let expected = format!("tools[0].parameters.q.default {wrong}");
            assert_eq!(one(&format!("{{type: {kind}, default: {wrong}}}")), [expected]);
        }
        assert!(one("{type: string, default: null}").is_empty());
    }

    #[test]
    fn permission_that_ends_with_a_colon_is_one_finding() {
        let text = "---\nname: demo\nversion: 1.0.0\ndescription: Shows it.\nauthor: ana\n\
                    license: MIT\npermissions:\n  - filesystem:read:\nsecurity_tier: community\n\
                    tools: [{name: a, description: b}]\n---\n# Demo\n";
        let reading = read_as(Source::new(text.to_owned()), Dialect::GAIA, None);
        let found = reading.diagnostics.iter();
        let found: Vec<_> = found
            .filter(|found| found.field.as_deref() == Some("permissions[0]"))
            .map(|found| (found.code, found.help.as_deref().unwrap_or_default()))
            .collect();
        let help = "a text that ends with a colon is a map: remove the last colon";
        assert_eq!(found, [("wrong-type", help)]);
    }

    #[test]
    fn other_fields_are_validated() {
        let tools = "tools: [{name: a, description: b, returns: {type: objekt}}]\n";
        assert_eq!(found(tools), ["tools[0].returns.type objekt"]);
        let links = "tools: [{name: a, description: b}]\nhomepage: example\nrepository: not here\nregistry: ftp://x\n";
        assert_eq!(found(links), ["homepage example", "repository not here", "registry ftp://x"]);
        let right = "tools: [{name: a, description: b}]\nhomepage: https://example.com/a\nrepository: git@example.com:a/b\n";
        assert!(found(right).is_empty());
    }
}
