//! Describes the fields of a frontmatter as data, once per dialect.
//!
//! Checks and the JSON Schema are both derived from this description, so that they cannot diverge.

use std::fmt;

use savoir_lint::{Diagnostic, Edit, Fix, Severity, Span, words::nearest};
use serde_json::{Map, Value, json};

use crate::{
    dialect::Dialect,
    name::{self, NameGrammar},
    permission, version,
    yaml::{Node, NodeData, Style, YamlVersion, write},
};

/// One field of a map.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field {
    /// The key.
    pub(crate) key: &'static str,
    /// The type of the value.
    pub(crate) shape: Shape,
    /// The severity if the field is missing; `None` if it is optional.
    pub(crate) required: Option<Severity>,
    /// One sentence of documentation.
    pub(crate) doc: &'static str,
}

impl Field {
    /// Makes an optional field.
    pub(crate) const fn optional(key: &'static str, shape: Shape, doc: &'static str) -> Self {
        Self { key, shape, required: None, doc }
    }

    /// Makes a required field.
    pub(crate) const fn required(key: &'static str, shape: Shape, doc: &'static str) -> Self {
        Self { key, shape, required: Some(Severity::Error), doc }
    }

    /// Makes a recommended field: a missing one is a warning.
    pub(crate) const fn advised(key: &'static str, shape: Shape, doc: &'static str) -> Self {
        Self { key, shape, required: Some(Severity::Warning), doc }
    }
}

/// The type of a value and its constraints.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shape {
    /// A string, with limits on its length in characters; not blank if it is required.
    Text(&'static [Limit]),
    /// Any scalar, read as text.
    Scalar(&'static [Limit]),
    /// A skill name.
    Name(NameGrammar, Severity),
    /// A SemVer 2.0.0 version.
    Version,
    /// An SPDX license expression.
    Licence,
    /// A permission as `domain:level[:scope]`. Any scalar is accepted here; the dialect reports
    /// errors.
    Permission,
    /// `true` or `false`.
    Bool,
    /// A whole number in a range.
    Integer(i64, i64),
    /// A whole number; the dialect brings one outside of the range back into it.
    Clamped(i64, i64),
    /// A number in a range.
    Number(f64, f64),
    /// One of these words.
    Choice(&'static [&'static str]),
    /// One of these words; the dialect reports other texts itself.
    Word(&'static [&'static str]),
    /// A list.
    List(&'static Self),
    /// A map with these keys. `Open` accepts other keys silently, `Closed` warns about them.
    Record(&'static [Field], UnknownFields),
    /// A map from any key to one shape.
    Table(&'static Self),
    /// One of several shapes; the value is checked against the first with the right type.
    Either(&'static [Self]),
    /// A shape, or `null`, which is the same as no value.
    Nullable(&'static Self),
    /// A map of any content.
    Map,
    /// Anything.
    Any,
}

/// How undeclared keys are treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnknownFields {
    /// They are accepted; at the top level, a probable typo gets a warning.
    Open,
    /// They are accepted; a key that resembles a declared one is probably a typo and gets a
    /// warning.
    Typos,
    /// They get a warning.
    Closed,
}

/// A maximum length of a text, in characters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit {
    /// The maximum number of characters.
    pub(crate) max: usize,
    /// The severity if the text is longer.
    pub(crate) severity: Severity,
    /// The rule that reports it.
    pub(crate) code: &'static str,
}

impl Limit {
    /// A longer text is an error.
    pub(crate) const fn error(max: usize) -> Self {
        Self { max, severity: Severity::Error, code: "too-long" }
    }

    /// A longer text is a warning.
    pub(crate) const fn warning(max: usize, code: &'static str) -> Self {
        Self { max, severity: Severity::Warning, code }
    }
}

/// The path of a value: `inputs[0].type`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FieldPath<'a> {
    Root,
    Key(&'a Self, &'a str),
    Index(&'a Self, usize),
}

impl fmt::Display for FieldPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Key(Self::Root, key) => f.write_str(key),
            Self::Key(parent, key) => write!(f, "{parent}.{key}"),
            Self::Index(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

/// Fields by which a skill restricts its own use. A misspelling is worth a warning in every dialect,
/// because the author believes that the restriction holds.
const ACCESS_FIELDS: [&str; 3] = ["disallowed-tools", "disable-model-invocation", "user-invocable"];

/// Checks a map against its fields and adds the findings.
pub(crate) fn check(
    map: Option<&Node>,
    head: Span,
    (fields, unknown_fields): (&'static [Field], UnknownFields),
    version: YamlVersion,
    found: &mut Vec<Diagnostic>,
) {
    let mut checker = Checker { version, found };
    checker.fields(map, head, fields, unknown_fields, &FieldPath::Root);
}

struct Checker<'a> {
    version: YamlVersion,
    found: &'a mut Vec<Diagnostic>,
}

impl Checker<'_> {
    fn fields(
        &mut self,
        map: Option<&Node>,
        head: Span,
        fields: &'static [Field],
        unknown_fields: UnknownFields,
        path: &FieldPath<'_>,
    ) {
        for field in fields {
            let value = map.and_then(|map| map.get(field.key));
            let here = FieldPath::Key(path, field.key);
            match (value, field.required) {
                (Some(value), required) if !value.is_null(self.version) => {
                    if let Some(severity) = required {
                        self.not_blank(value, &field.shape, severity, &here);
                    }
                    self.value(value, &field.shape, &here);
                }
                (value, Some(severity)) => {
                    let span = value.map_or(head, |_| {
                        map.and_then(|map| map.entry(field.key))
                            .map_or(head, |entry| entry.key_span)
                    });
                    let message = if value.is_some() {
                        format!("the field `{here}` is empty")
                    } else {
                        format!("the field `{here}` is missing")
                    };
                    let mut problem = Diagnostic::error("missing-field", span, message)
                        .field(here.to_string())
                        .help(format!("add `{}`: {}", field.key, field.doc));
                    problem.severity = severity;
                    self.found.push(problem);
                }
                _ => {}
            }
        }
        let is_top = matches!(path, FieldPath::Root);
        if unknown_fields != UnknownFields::Open || is_top {
            self.unknown(map, (fields, unknown_fields), path);
        }
    }

    fn unknown(
        &mut self,
        map: Option<&Node>,
        (fields, unknown_fields): (&'static [Field], UnknownFields),
        path: &FieldPath<'_>,
    ) {
        let is_top = matches!(path, FieldPath::Root);
        let open = unknown_fields == UnknownFields::Open;
        let also = if is_top && unknown_fields != UnknownFields::Closed {
            ACCESS_FIELDS.as_slice()
        } else {
            &[]
        };
        for entry in map.and_then(Node::entries).unwrap_or_default() {
            let other = open && is_top && Dialect::ALL.iter().any(|one| one.declares(&entry.key));
            if !other && fields.iter().all(|field| field.key != entry.key) {
                let free = |key: &&str| map.is_some_and(|map| map.get(key).is_none());
                let own = fields.iter().map(|field| field.key);
                let known = own.chain(also.iter().copied()).filter(free);
                let here = FieldPath::Key(path, &entry.key).to_string();
                let mut found = unknown_field(&here, &entry.key, entry.key_span, known);
                if unknown_fields == UnknownFields::Closed && found.fix.is_none() {
                    // A closed dialect has no `metadata`, and neither has an inner map.
                    found = found.help(if is_top {
                        "remove it: no reader uses it".to_owned()
                    } else {
                        let own: Vec<&str> = fields.iter().map(|field| field.key).collect();
                        format!("no reader uses it; `{path}` has {}", list(&own))
                    });
                }
                if unknown_fields == UnknownFields::Closed || found.fix.is_some() {
                    self.found.push(found);
                }
            }
        }
    }

    fn value(&mut self, node: &Node, shape: &Shape, path: &FieldPath<'_>) {
        match shape {
            Shape::Text(limits) => match node.string(self.version) {
                Some(text) => self.text(text, node, limits, path),
                None => self.wrong_type(node, shape, path),
            },
            Shape::Scalar(limits) => match node.text() {
                Some(text) => self.text(text, node, limits, path),
                None => self.wrong_type(node, shape, path),
            },
            Shape::Word(_) if node.string(self.version).is_none() => {
                self.wrong_type(node, shape, path);
            }
            Shape::Permission if node.text().is_none() => self.wrong_type(node, shape, path),
            Shape::Name(grammar, severity) => self.name(node, *grammar, *severity, path),
            Shape::Version => self.version_text(node, path),
            Shape::Licence => self.licence(node, path),
            Shape::Bool if node.boolean(self.version).is_none() => {
                self.wrong_type(node, shape, path);
            }
            Shape::Integer(min, max) => self.integer(node, *min, *max, path),
            Shape::Clamped(min, max) => {
                if node.clamped_integer(self.version).is_none() {
                    self.wrong_type(node, &Shape::Integer(*min, *max), path);
                }
            }
            Shape::Number(min, max) => self.number(node, *min, *max, path),
            Shape::Choice(words) => self.choice(node, words, path),
            Shape::List(item) => match node.items() {
                Some(items) => {
                    for (index, node) in items.iter().enumerate() {
                        self.value(node, item, &FieldPath::Index(path, index));
                    }
                }
                None => self.wrong_type(node, shape, path),
            },
            Shape::Record(fields, unknown_fields) => match node.entries() {
                Some(_) => self.fields(Some(node), start_of(node), fields, *unknown_fields, path),
                None => self.wrong_type(node, shape, path),
            },
            Shape::Table(item) => match node.entries() {
                Some(entries) => {
                    for entry in entries {
                        self.value(&entry.value, item, &FieldPath::Key(path, &entry.key));
                    }
                }
                None => self.wrong_type(node, shape, path),
            },
            Shape::Nullable(shape) => self.value(node, shape, path),
            Shape::Either(shapes) => match shapes.iter().find(|shape| self.has_type(node, shape)) {
                Some(shape) => self.value(node, shape, path),
                None => self.wrong_type(node, shape, path),
            },
            Shape::Map if node.entries().is_none() => self.wrong_type(node, shape, path),
            Shape::Permission | Shape::Word(_) | Shape::Bool | Shape::Map | Shape::Any => {}
        }
    }

    /// Reports a required text that is blank.
    fn not_blank(&mut self, node: &Node, shape: &Shape, severity: Severity, path: &FieldPath<'_>) {
        let is_text = matches!(shape, Shape::Text(_) | Shape::Scalar(_));
        if is_text && node.text().is_some_and(|text| text.trim().is_empty()) {
            let message = format!("the field `{path}` is empty");
            let mut problem = Diagnostic::error("invalid-value", node.span, message);
            problem.severity = severity;
            if matches!(node.style(), Some(Style::Folded | Style::Literal)) {
                problem = problem.help("indent the text below `>` or `|`");
            }
            self.report(problem, path);
        }
    }

    fn text(&mut self, text: &str, node: &Node, limits: &[Limit], path: &FieldPath<'_>) {
        // Only the first exceeded limit is reported, which is the strictest.
        if let Some(limit) = limits.iter().find(|limit| exceeds(text, limit.max)) {
            let chars = text.chars().count();
            let message = format!("`{path}` has {chars} characters, the limit is {}", limit.max);
            let mut problem = Diagnostic::error(limit.code, node.span, message)
                .help("shorten it; details belong in the body");
            problem.severity = limit.severity;
            self.report(problem, path);
        }
    }

    fn name(
        &mut self,
        node: &Node,
        grammar: NameGrammar,
        severity: Severity,
        path: &FieldPath<'_>,
    ) {
        // The base format reads every scalar as text; other dialects do not accept a number as a
        // name.
        let text = match grammar {
            NameGrammar::AgentSkills => node.text(),
            _ => node.string(self.version),
        };
        let Some(text) = text else {
            self.wrong_type(node, &Shape::Text(&[]), path);
            return;
        };
        let Err(problem) = grammar.check(text) else { return };
        let mut found = Diagnostic::error("invalid-name", node.span, problem.to_string());
        found.severity = severity;
        let proposal = name::slugify(text).filter(|slug| grammar.check(slug).is_ok());
        if let Some(slug) = proposal {
            let quoted = write::write_scalar(&slug, self.version);
            found = found
                .help(format!("`{slug}` would be valid"))
                .fix(Fix::unsafe_edits(vec![Edit::replace(node.span, quoted)]));
        } else {
            found = found.help("use lower-case letters, digits and single hyphens");
        }
        self.report(found, path);
    }

    fn version_text(&mut self, node: &Node, path: &FieldPath<'_>) {
        let text = node.text().unwrap_or_default();
        let is_string = node.string(self.version).is_some();
        if is_string && version::parse_version(text).is_ok() {
            return;
        }
        if node.text().is_none() {
            self.wrong_type(node, &Shape::Version, path);
            return;
        }
        let mut found = Diagnostic::error(
            "invalid-version",
            node.span,
            format!("`{text}` is not a SemVer version"),
        )
        .help("write three numbers, such as `1.0.0`");
        if let Some(better) = complete_version(text) {
            found = found.fix(Fix::unsafe_edits(vec![Edit::replace(node.span, better)]));
        }
        self.report(found, path);
    }

    fn licence(&mut self, node: &Node, path: &FieldPath<'_>) {
        let Some(text) = node.string(self.version) else {
            self.wrong_type(node, &Shape::Text(&[]), path);
            return;
        };
        if let Some(mut problem) = licence_problem(text, node.span) {
            problem.severity = Severity::Error;
            self.report(problem, path);
        }
    }

    fn integer(&mut self, node: &Node, min: i64, max: i64, path: &FieldPath<'_>) {
        match node.to_value(self.version).as_i64() {
            Some(number) if (min..=max).contains(&number) => {}
            Some(number) => {
                let message = format!("`{path}` is {number}, it must be from {min} to {max}");
                self.report(Diagnostic::error("invalid-value", node.span, message), path);
            }
            None => self.wrong_type(node, &Shape::Integer(min, max), path),
        }
    }

    fn number(&mut self, node: &Node, min: f64, max: f64, path: &FieldPath<'_>) {
        match node.to_value(self.version).as_f64() {
            Some(number) if (min..=max).contains(&number) => {}
            Some(number) => {
                let message = format!("`{path}` is {number}, it must be from {min} to {max}");
                self.report(Diagnostic::error("invalid-value", node.span, message), path);
            }
            None => self.wrong_type(node, &Shape::Number(min, max), path),
        }
    }

    fn choice(&mut self, node: &Node, words: &'static [&'static str], path: &FieldPath<'_>) {
        let Some(text) = node.text() else {
            self.wrong_type(node, &Shape::Choice(words), path);
            return;
        };
        if words.contains(&text) {
            return;
        }
        let message = format!("`{path}` is `{text}`, it must be one of {}", list(words));
        let mut problem = Diagnostic::error("invalid-value", node.span, message);
        if let Some(near) = nearest(text, words.iter().copied()) {
            problem = problem
                .help(format!("did you mean `{near}`?"))
                .fix(Fix::unsafe_edits(vec![Edit::replace(node.span, near)]));
        }
        self.report(problem, path);
    }

    fn wrong_type(&mut self, node: &Node, shape: &Shape, path: &FieldPath<'_>) {
        let (is, wants) = (node.type_name(self.version), shape.describe());
        let message = format!("`{path}` is {is}, it must be {wants}");
        let mut problem = Diagnostic::error("wrong-type", node.span, message);
        let scalar = matches!(node.data, NodeData::Scalar { .. });
        let is_text =
            matches!(shape, Shape::Text(_) | Shape::Word(_) | Shape::Name(..) | Shape::Version);
        if scalar && is_text {
            let quoted = format!("\"{}\"", node.text().unwrap_or_default());
            problem = problem
                .help(format!("put it in quotes: {quoted}"))
                .fix(Fix::unsafe_edits(vec![Edit::replace(node.span, quoted)]));
        }
        if self.ends_with_colon(node)
            && (is_text || matches!(shape, Shape::Scalar(_) | Shape::Permission))
        {
            problem = problem.help("a text that ends with a colon is a map: remove the last colon");
        }
        self.report(problem, path);
    }

    /// Whether a node is a map with one key and no value: `network:read:`.
    fn ends_with_colon(&self, node: &Node) -> bool {
        matches!(node.entries(), Some([entry]) if entry.value.is_null(self.version))
    }

    fn has_type(&self, node: &Node, shape: &Shape) -> bool {
        match shape {
            Shape::Text(_) | Shape::Word(_) | Shape::Name(..) | Shape::Version | Shape::Licence => {
                node.string(self.version).is_some()
            }
            Shape::Scalar(_) | Shape::Permission | Shape::Choice(_) => node.text().is_some(),
            Shape::Bool => node.boolean(self.version).is_some(),
            Shape::Integer(..) | Shape::Clamped(..) => node.to_value(self.version).is_i64(),
            Shape::Number(..) => node.to_value(self.version).is_number(),
            Shape::List(_) => node.items().is_some(),
            Shape::Record(..) | Shape::Table(_) | Shape::Map => node.entries().is_some(),
            Shape::Either(shapes) => shapes.iter().any(|shape| self.has_type(node, shape)),
            Shape::Nullable(shape) => self.has_type(node, shape),
            Shape::Any => true,
        }
    }

    fn report(&mut self, problem: Diagnostic, path: &FieldPath<'_>) {
        self.found.push(problem.field(path.to_string()));
    }
}

/// Returns the finding for a license that is not an SPDX expression.
pub(crate) fn licence_problem(text: &str, span: Span) -> Option<Diagnostic> {
    // `NOASSERTION` is the SPDX value for an unknown license.
    if ["UNLICENSED", "NOASSERTION"].contains(&text) || spdx::Expression::parse(text).is_ok() {
        return None;
    }
    let message = format!("`{text}` is not an SPDX license expression");
    let mut problem = Diagnostic::warning("invalid-license", span, message)
        .help("use an identifier such as `MIT` or `Apache-2.0`");
    if let Some(near) = likely_licence(text) {
        problem = problem
            .help(format!("did you mean `{near}`?"))
            .fix(Fix::unsafe_edits(vec![Edit::replace(span, near)]));
    }
    Some(problem)
}

/// Returns the identifier that is meant by `MIT License`, `apache 2.0` or `BSD 3-Clause`.
fn likely_licence(text: &str) -> Option<&'static str> {
    const FILLERS: [&str; 4] = ["the", "license", "licence", "version"];
    let lower = text.to_lowercase();
    let words = lower.split([' ', ',']).filter(|word| !word.is_empty() && !FILLERS.contains(word));
    let bare = words.collect::<Vec<_>>().join(" ");
    let hyphenated = bare.replace(' ', "-");
    let exact = spdx::identifiers::LICENSES
        .iter()
        .map(|licence| licence.name)
        .find(|name| name.eq_ignore_ascii_case(&hyphenated));
    // The list of the library maps `gnu gpl v2` to version 3.
    let known = spdx::imprecise_license_id(&bare)
        .filter(|(_, length)| *length == bare.len() && !bare.starts_with("gnu "));
    exact.or(known.map(|(licence, _)| licence.name))
}

/// Makes the finding for an undeclared field.
pub(crate) fn unknown_field<'a>(
    path: &str,
    key: &str,
    span: Span,
    known: impl Iterator<Item = &'a str>,
) -> Diagnostic {
    let problem = Diagnostic::warning("unknown-field", span, format!("unknown field `{path}`"))
        .field(path.to_owned());
    match nearest(key, known) {
        Some(near) => problem
            .help(format!("did you mean `{near}`?"))
            .fix(Fix::unsafe_edits(vec![Edit::replace(span, near)])),
        None => problem.help("remove it, or keep it under `metadata`"),
    }
}

fn list(words: &[&str]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}

fn start_of(node: &Node) -> Span {
    Span::new(node.span.start, node.span.start)
}

/// Whether a text is longer than `max` characters. Characters are counted only if the bytes allow
/// that many.
fn exceeds(text: &str, max: usize) -> bool {
    text.len() > max && text.chars().count() > max
}

/// Completes `1`, `1.2` and `v1.2.3` to SemVer.
fn complete_version(text: &str) -> Option<String> {
    let bare = text.trim().trim_start_matches(['v', 'V']);
    ["", ".0", ".0.0"]
        .iter()
        .map(|rest| format!("{bare}{rest}"))
        .find(|version| version::parse_version(version).is_ok())
}

impl Shape {
    fn describe(&self) -> String {
        match self {
            Self::Text(_) | Self::Word(_) | Self::Name(..) | Self::Version | Self::Licence => {
                "a string".into()
            }
            Self::Scalar(_) | Self::Permission => "text".into(),
            Self::Choice(words) => format!("one of {}", list(words)),
            Self::Bool => "`true` or `false`".into(),
            Self::Integer(..) | Self::Clamped(..) => "a whole number".into(),
            Self::Nullable(shape) => shape.describe(),
            Self::Number(..) => "a number".into(),
            Self::List(_) => "a list".into(),
            Self::Record(..) | Self::Table(_) | Self::Map => "a map".into(),
            Self::Either(shapes) => {
                let mut words: Vec<_> = shapes.iter().map(Self::describe).collect();
                words.dedup();
                words.join(" or ")
            }
            Self::Any => "anything".into(),
        }
    }

    fn schema(&self) -> Value {
        match self {
            Self::Text(limits) => text_schema(json!({"type": "string"}), limits),
            Self::Scalar(limits) => {
                text_schema(json!({"type": ["string", "number", "boolean"]}), limits)
            }
            Self::Name(grammar, _) => grammar.schema(),
            Self::Version => json!({"type": "string", "pattern": version::SEMVER_PATTERN}),
            Self::Licence => json!({"type": "string", "minLength": 1}),
            Self::Permission => {
                json!({"type": "string", "pattern": permission::pattern()})
            }
            Self::Bool => json!({"type": "boolean"}),
            Self::Integer(min, max) | Self::Clamped(min, max) => {
                json!({"type": "integer", "minimum": min, "maximum": max})
            }
            Self::Number(min, max) => json!({"type": "number", "minimum": min, "maximum": max}),
            Self::Choice(words) | Self::Word(words) => json!({"enum": words}),
            Self::List(item) => json!({"type": "array", "items": item.schema()}),
            Self::Record(fields, unknown_fields) => record_schema(fields, *unknown_fields),
            Self::Table(item) => json!({"type": "object", "additionalProperties": item.schema()}),
            Self::Either(shapes) => {
                json!({"anyOf": shapes.iter().map(Self::schema).collect::<Vec<_>>()})
            }
            Self::Nullable(shape) => json!({"anyOf": [shape.schema(), {"type": "null"}]}),
            Self::Map => json!({"type": "object"}),
            Self::Any => json!({}),
        }
    }
}

fn text_schema(mut schema: Value, limits: &[Limit]) -> Value {
    let hard = limits.iter().filter(|limit| limit.severity == Severity::Error);
    if let Some(max) = hard.map(|limit| limit.max).min() {
        schema["maxLength"] = json!(max);
    }
    schema
}

/// Accepts `null` too, which is the same as no value, as the reader does.
fn allow_null(schema: &mut Value) {
    let null = json!({"type": "null"});
    if let Some(shapes) = schema.get_mut("anyOf").and_then(Value::as_array_mut) {
        if !shapes.contains(&null) {
            shapes.push(null);
        }
    } else if let Some(words) = schema.get_mut("enum").and_then(Value::as_array_mut) {
        words.push(Value::Null);
    } else if let Some(types) = schema.get_mut("type") {
        match types {
            Value::Array(types) => types.push(json!("null")),
            one => *one = json!([one, "null"]),
        }
    }
}

/// Returns the JSON Schema of a map with these fields.
pub(crate) fn record_schema(fields: &[Field], unknown_fields: UnknownFields) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for field in fields {
        let mut schema = field.shape.schema();
        let is_required = field.required == Some(Severity::Error);
        if field.required.is_none() {
            allow_null(&mut schema);
        }
        if let Some(schema) = schema.as_object_mut() {
            if is_required && matches!(field.shape, Shape::Text(_) | Shape::Scalar(_)) {
                schema.insert("minLength".into(), json!(1));
            }
            schema.insert("description".into(), json!(field.doc));
        }
        properties.insert(field.key.into(), schema);
        if is_required {
            required.push(field.key);
        }
    }
    let mut schema = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    if unknown_fields == UnknownFields::Closed {
        schema["additionalProperties"] = json!(false);
    }
    schema
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn licences_in_other_words() {
        let likely = [
            ("mit", "MIT"),
            ("MIT License", "MIT"),
            ("The Apache License, Version 2.0", "Apache-2.0"),
            ("BSD 3-Clause", "BSD-3-Clause"),
        ];
        for (text, name) in likely {
            assert_eq!(likely_licence(text), Some(name), "{text}");
        }
        for text in ["GNU GPL v2", "Proprietary", ""] {
            assert_eq!(likely_licence(text), None, "{text}");
        }
    }
}
