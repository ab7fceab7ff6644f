//! Parses the commands of gibberish tools and fills in their arguments.
//!
//! A command is a program and a template for each argument; it is never run by a shell. The command
//! is split into words first and values are inserted afterwards, so a value can neither end an
//! argument nor start another.

use std::fmt::Write as _;

use memchr::memmem;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use thiserror::Error;

mod parameter;
mod program_text;
mod token;

pub use parameter::default_in_description;
pub(crate) use parameter::parse_yes_no;
pub use program_text::ProgramText;
pub use token::{Quoting, ShellFeature, ShellOperator, Token, shell_operators, tokenize};

use crate::{
    skill::{Parameter, ParameterKind},
    template::is_word,
};

/// Why a command cannot be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum CommandError {
    /// The command has no program.
    #[error("the command is empty")]
    Empty,
    /// A quote is opened and not closed.
    #[error("the command has an unterminated {0} quote")]
    UnterminatedQuote(char),
    /// The command ends in a backslash.
    #[error("the command ends in a backslash that escapes nothing")]
    TrailingBackslash,
    /// There is a second command line.
    #[error("the command has more than one line, join lines with a backslash or use a script")]
    SeveralCommands,
    /// The name of the program contains a placeholder.
    #[error("the program contains a placeholder, only its arguments may")]
    PlaceholderInProgram,
}

impl CommandError {
    /// The stable identifier of the error.
    pub fn code(self) -> &'static str {
        "invalid-command"
    }
}

/// Why the values of a call cannot be inserted into the arguments.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InterpolateError {
    /// A required parameter was not supplied.
    #[error("Missing required parameter '{parameter}' for tool '{tool}'")]
    MissingParameter {
        /// The name of the parameter.
        parameter: String,
        /// The tool that was called.
        tool: String,
    },
    /// A value does not have the declared type.
    #[error("Invalid value for parameter '{parameter}': expected {}", expected.as_str())]
    WrongType {
        /// The name of the parameter.
        parameter: String,
        /// The declared type of the parameter.
        expected: ParameterKind,
    },
    /// A value starts with a hyphen and would be read as an option.
    #[error("Invalid value for parameter '{parameter}': must not start with '-'")]
    LooksLikeOption {
        /// The name of the parameter.
        parameter: String,
    },
    /// A value contains NUL, which no argument can.
    #[error("Invalid value for parameter '{parameter}': must not contain NUL")]
    ContainsNul {
        /// The name of the parameter.
        parameter: String,
    },
}

impl InterpolateError {
    /// The stable identifier of the error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::MissingParameter { .. } => "missing-parameter",
            _ => "invalid-parameter",
        }
    }

    /// The name of the parameter that caused the error.
    pub fn parameter(&self) -> &str {
        match self {
            Self::MissingParameter { parameter, .. }
            | Self::WrongType { parameter, .. }
            | Self::LooksLikeOption { parameter }
            | Self::ContainsNul { parameter } => parameter,
        }
    }
}

/// The part of a placeholder after the colon.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Modifier {
    /// A text that starts with a hyphen. It becomes the argument if the value is true.
    Flag(String),
    /// Any other text. It is the value if the call supplies none.
    Default(String),
}

/// A part of an argument template.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Fragment {
    /// Text that is copied unchanged.
    Literal(String),
    /// A placeholder: `{{name}}` or `{{name:modifier}}`.
    Variable {
        /// The name of the parameter.
        name: String,
        /// The part after the colon, if any.
        modifier: Option<Modifier>,
    },
}

/// The template of one argument: literal text and placeholders.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ArgTemplate {
    text: String,
    fragments: Vec<Fragment>,
}

/// A parsed command: a program with templates for its arguments and environment variables.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct CommandTemplate {
    /// Environment variables of the program: `NAME=value` before the program.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub environment: Vec<(String, ArgTemplate)>,
    /// The program as written; resolving it is up to the caller.
    pub program: String,
    /// The templates of the arguments.
    pub args: Vec<ArgTemplate>,
    /// Messages about words such as `|` that a shell would treat as operators. Here they are plain
    /// arguments.
    #[serde(skip)]
    pub shell_problems: Vec<String>,
}

/// A flag that is followed by an optional parameter. If the parameter has no value, the flag would
/// take the next argument as its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DanglingFlag<'a> {
    /// The text of the flag, such as `-n`.
    pub flag: &'a str,
    /// The name of the optional parameter that follows the flag.
    pub parameter: &'a str,
}

/// Splits a command block into words. Lines that start with `#` are skipped.
pub(crate) fn tokenize_block(block: &str) -> Result<Vec<Token>, CommandError> {
    token::Lexer::new(block).run(token::Extent::Block)
}

/// Splits the text of a word into literal parts and placeholders.
pub(crate) fn fragments(text: &str) -> Vec<Fragment> {
    let mut fragments = Vec::new();
    let mut literal = String::new();
    let mut rest = text;
    // After the last `}}` no placeholder can end, so none is searched there. Otherwise hostile
    // input would be searched repeatedly.
    let unclosed = text.rfind("}}").map_or(text.len(), |close| text.len() - close - 2);
    while let Some(c) = rest.chars().next() {
        let placeholder = if rest.len() > unclosed { read_placeholder(rest) } else { None };
        if let Some((variable, after)) = placeholder {
            if !literal.is_empty() {
                fragments.push(Fragment::Literal(std::mem::take(&mut literal)));
            }
            fragments.push(variable);
            rest = after;
        } else {
            literal.push(c);
            rest = rest.get(c.len_utf8()..).unwrap_or_default();
        }
    }
    if !literal.is_empty() {
        fragments.push(Fragment::Literal(literal));
    }
    fragments
}

fn read_placeholder(text: &str) -> Option<(Fragment, &str)> {
    let inside = text.strip_prefix("{{")?;
    let name_length = inside.find(|c| !is_word(c))?;
    let (name, after) = inside.split_at_checked(name_length)?;
    if name.is_empty() {
        return None;
    }
    let name = name.to_owned();
    if let Some(after) = after.strip_prefix("}}") {
        return Some((Fragment::Variable { name, modifier: None }, after));
    }
    let (modifier, after) = after.strip_prefix(':')?.split_once("}}")?;
    let modifier = if modifier.starts_with('-') {
        Modifier::Flag(modifier.to_owned())
    } else {
        Modifier::Default(modifier.to_owned())
    };
    Some((Fragment::Variable { name, modifier: Some(modifier) }, after))
}

impl ArgTemplate {
    fn new(text: String) -> Self {
        let fragments = fragments(&text);
        Self { text, fragments }
    }

    /// The argument as written, without quotes, including its placeholders.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The literal parts and placeholders in order; empty for an empty argument.
    pub fn fragments(&self) -> &[Fragment] {
        &self.fragments
    }

    /// Whether the argument contains a placeholder.
    pub fn has_variables(&self) -> bool {
        self.fragments.iter().any(|fragment| matches!(fragment, Fragment::Variable { .. }))
    }

    /// The placeholder, if the whole argument is one placeholder.
    fn as_variable(&self) -> Option<(&str, Option<&Modifier>)> {
        match self.fragments.as_slice() {
            [Fragment::Variable { name, modifier }] => Some((name, modifier.as_ref())),
            _ => None,
        }
    }
}

impl Serialize for ArgTemplate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl CommandTemplate {
    /// Parses a command block: one command, which may continue over several lines with backslashes.
    /// Blank lines and lines that start with `#` are skipped.
    pub fn parse(block: &str) -> Result<Self, CommandError> {
        let tokens = token::Lexer::new(block).run(token::Extent::Block)?;
        let joining = shell_operators(&tokens).filter(|one| one.feature.joins_commands());
        let shell_problems = joining.map(|one| one.problem()).collect();
        let assigned = tokens.iter().take_while(|token| token.assigned_name().is_some()).count();
        let (assignments, tokens) = tokens.split_at(assigned);
        let environment = assignments.iter().filter_map(|token| {
            let (name, value) = (token.assigned_name()?.to_owned(), token.text());
            let value = value.get(name.len() + 1..).unwrap_or_default().to_owned();
            Some((name, ArgTemplate::new(value)))
        });
        let environment = environment.collect();
        let mut words = tokens.iter().map(|token| ArgTemplate::new(token.text()));
        let program =
            words.next().filter(|word| !word.text.is_empty()).ok_or(CommandError::Empty)?;
        if program.has_variables() {
            return Err(CommandError::PlaceholderInProgram);
        }
        let args = words.collect();
        Ok(Self { environment, program: program.text, args, shell_problems })
    }

    /// Returns the command with `change` applied to each argument that has no placeholders.
    #[must_use]
    pub fn map_texts(&self, change: impl Fn(&str) -> String) -> Self {
        let mut changed = self.clone();
        for arg in changed.args.iter_mut().filter(|arg| !arg.has_variables()) {
            arg.text = change(&arg.text);
            arg.fragments = match arg.text.as_str() {
                "" => Vec::new(),
                text => vec![Fragment::Literal(text.to_owned())],
            };
        }
        changed
    }

    /// The names of the parameters in the environment and the arguments, in order, with duplicates.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        let values = self.environment.iter().map(|(_, value)| value);
        let templates = values.chain(&self.args);
        templates.flat_map(|arg| &arg.fragments).filter_map(|fragment| match fragment {
            Fragment::Variable { name, .. } => Some(name.as_str()),
            Fragment::Literal(_) => None,
        })
    }

    /// Inserts the values of a call into the arguments and returns them, without the program.
    pub fn interpolate(
        &self,
        tool: &str,
        parameters: &[Parameter],
        args: &Map<String, Value>,
    ) -> Result<Vec<String>, InterpolateError> {
        check_call(tool, parameters, args)?;
        let mut filled = Vec::with_capacity(self.args.len());
        let mut options_ended = false;
        for arg in &self.args {
            let call = Call { parameters, args, options_ended };
            call.fill(arg, &mut filled)?;
            options_ended |= arg.text == "--";
        }
        Ok(filled)
    }

    /// Returns the environment variables of the program with the values of a call. A variable
    /// without a value is not set.
    pub fn environment(
        &self,
        tool: &str,
        parameters: &[Parameter],
        args: &Map<String, Value>,
    ) -> Result<Vec<(String, String)>, InterpolateError> {
        check_call(tool, parameters, args)?;
        // The value of a variable is never read as an option, even if it starts with a hyphen.
        let call = Call { parameters, args, options_ended: true };
        let mut filled = Vec::new();
        for (name, value) in &self.environment {
            filled.extend(call.fill_one(value)?.map(|value| (name.clone(), value)));
        }
        Ok(filled)
    }

    /// Returns flags followed by an optional parameter without a default, as in `-n {{count}}`. If
    /// the parameter has no value, only the parameter is removed from the arguments and the flag
    /// stays.
    pub fn dangling_flags<'a>(
        &'a self,
        parameters: &'a [Parameter],
    ) -> impl Iterator<Item = DanglingFlag<'a>> {
        let may_be_missing = |name: &str| {
            let declared = parameters.iter().find(|parameter| parameter.name == name);
            declared.is_none_or(|parameter| !parameter.required && parameter.default.is_none())
        };
        self.args.iter().zip(self.args.iter().skip(1)).filter_map(move |(flag, value)| {
            let (parameter, modifier) = value.as_variable()?;
            let is_flag = flag.text.len() > 1 && flag.text.starts_with('-') && flag.text != "--";
            let dangling = is_flag
                && !flag.has_variables()
                && !flag.text.contains('=')
                && modifier.is_none()
                && may_be_missing(parameter);
            dangling.then_some(DanglingFlag { flag: &flag.text, parameter })
        })
    }
}

fn check_call(
    tool: &str,
    parameters: &[Parameter],
    args: &Map<String, Value>,
) -> Result<(), InterpolateError> {
    for Parameter { name, kind, required, .. } in parameters {
        match supplied_value(args, name) {
            None if *required => {
                let (parameter, tool) = (name.clone(), tool.to_owned());
                return Err(InterpolateError::MissingParameter { parameter, tool });
            }
            Some(value) if !kind.accepts(value) => {
                let parameter = name.clone();
                return Err(InterpolateError::WrongType { parameter, expected: *kind });
            }
            _ => {}
        }
    }
    Ok(())
}

/// The value of an argument of the call; null counts as missing.
fn supplied_value<'a>(args: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    args.get(name).filter(|value| !value.is_null())
}

struct Call<'a> {
    parameters: &'a [Parameter],
    args: &'a Map<String, Value>,
    /// The template has `--` before this argument, so a leading hyphen is harmless.
    options_ended: bool,
}

impl Call<'_> {
    fn fill(&self, arg: &ArgTemplate, filled: &mut Vec<String>) -> Result<(), InterpolateError> {
        if let Some((name, modifier)) = arg.as_variable()
            && !matches!(modifier, Some(Modifier::Flag(_)))
            && let Some(Value::Array(items)) = self.value(name, modifier)
        {
            for item in items.iter().filter(|item| !item.is_null()) {
                self.check(name, item, Position::Start)?;
                filled.push(text_of(item));
            }
            return Ok(());
        }
        filled.extend(self.fill_one(arg)?);
        Ok(())
    }

    /// Fills in one argument. Returns `None` if it has placeholders and none of them has a value.
    fn fill_one(&self, arg: &ArgTemplate) -> Result<Option<String>, InterpolateError> {
        let mut result = String::new();
        let mut has_value = !arg.has_variables();
        let mut in_url = false;
        let mut searched = 0_usize;
        for fragment in &arg.fragments {
            match fragment {
                Fragment::Literal(text) => result.push_str(text),
                Fragment::Variable { name, modifier: Some(Modifier::Flag(flag)) } => {
                    if self.value(name, None) == Some(Value::Bool(true)) {
                        result.push_str(flag);
                        has_value = true;
                    }
                }
                Fragment::Variable { name, modifier } => {
                    let Some(value) = self.value(name, modifier.as_ref()) else { continue };
                    let start = if result.is_empty() { Position::Start } else { Position::Inside };
                    self.check(name, &value, start)?;
                    let text = text_of(&value);
                    let unsearched = result.as_bytes().get(searched.saturating_sub(2)..);
                    in_url |= unsearched.is_some_and(|rest| memmem::find(rest, b"://").is_some());
                    searched = result.len();
                    result.push_str(&if in_url { percent_encode(&text) } else { text });
                    has_value = true;
                }
            }
        }
        Ok(has_value.then_some(result))
    }

    /// The supplied value, else the default in the placeholder, else the declared default. An empty
    /// list counts as no value.
    fn value(&self, name: &str, modifier: Option<&Modifier>) -> Option<Value> {
        let value = match (supplied_value(self.args, name), modifier) {
            (Some(value), _) => value.clone(),
            (None, Some(Modifier::Default(text))) => Value::from(text.as_str()),
            (None, _) => self.parameters.iter().find(|p| p.name == name)?.default.clone()?,
        };
        let empty = value.is_null() || value.as_array().is_some_and(Vec::is_empty);
        (!empty).then_some(value)
    }

    /// Rejects values of the caller that must not be inserted into an argument. Defaults of the
    /// author are accepted.
    fn check(&self, name: &str, value: &Value, at: Position) -> Result<(), InterpolateError> {
        if supplied_value(self.args, name).is_none() {
            return Ok(());
        }
        let first = value.as_array().and_then(|items| items.first()).unwrap_or(value);
        let hyphen = first.as_str().is_some_and(|text| text.starts_with('-'));
        if hyphen && at == Position::Start && !self.options_ended {
            return Err(InterpolateError::LooksLikeOption { parameter: name.to_owned() });
        }
        if text_of(value).contains('\0') {
            return Err(InterpolateError::ContainsNul { parameter: name.to_owned() });
        }
        Ok(())
    }
}

/// The position of a value within its argument.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Position {
    Start,
    Inside,
}

fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let items = items.iter().filter(|item| !item.is_null());
            items.map(text_of).collect::<Vec<_>>().join(" ")
        }
        other => other.to_string(),
    }
}

fn percent_encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            encoded.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

#[cfg(test)]
mod tests;
