//! Renders the text of the approval question.
//!
//! Most of the text comes from the author of the skill, who may try to disguise the question. So
//! control characters are escaped, every text is short enough that it cannot push the question out
//! of sight, and only lines of this module begin at the margin.

use std::collections::HashSet;

use savoir_lint::{visible, words::one_line};
use serde::Serialize;

use super::{
    Fingerprint, Request, is_interpreter,
    permission_phrases::{self, Phrase},
};

/// Longest name, path or scope, in characters.
const MAX_TEXT_CHARS: usize = 160;
/// Longest description.
const MAX_DESCRIPTION_CHARS: usize = 400;
/// Longest argument; both of its ends are shown.
const MAX_ARGUMENT_CHARS: usize = 240;
/// Most arguments.
const MAX_ARGUMENTS: usize = 24;
/// Longest command in a list of tools: many long ones must not push the permissions out of sight.
const MAX_COMMAND_CHARS: usize = 160;
/// Most lines of one list, besides lines that are never cut.
const MAX_LINES: usize = 16;
/// Harmless permissions that are shown one by one; more are grouped by kind.
const MAX_HARMLESS: usize = 8;
/// Names that are shown of a group.
const MAX_NAMED: usize = 6;
/// Permissions that fit on a screen beside the rest of the question.
const MAX_UNWARNED_PERMISSIONS: usize = 24;
/// The column where values begin.
const VALUE_COLUMN: usize = 13;

/// The kind of a line, from which a client chooses a color.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LineRole {
    /// A prominent warning.
    Warning,
    /// The reason for the question.
    Reason,
    /// A fact.
    Fact,
    /// A dangerous permission that deserves a second look.
    Grave,
}

/// A line of the question, or several once it is wrapped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct QuestionLine {
    pub role: LineRole,
    /// The label; empty if the line continues the one before it.
    pub label: &'static str,
    /// The text, without control characters and line ends.
    pub text: String,
}

/// The level of detail of the question.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum QuestionLength {
    /// As much as fits on a screen: harmless permissions are grouped, long lists are cut.
    #[default]
    Question,
    /// Everything.
    Full,
}

/// Renders the approval question. Dangerous permissions are never left out; many harmless ones are
/// grouped and counted.
pub fn question_lines(request: &Request) -> Vec<QuestionLine> {
    page(request, QuestionLength::Question)
}

/// Renders the question with every permission, tool and program on a line of its own.
pub fn full_question_lines(request: &Request) -> Vec<QuestionLine> {
    page(request, QuestionLength::Full)
}

fn page(request: &Request, length: QuestionLength) -> Vec<QuestionLine> {
    let mut page = Page { length, ..Page::default() };
    if let Some(banner) = request.trust.banner() {
        page.push(LineRole::Warning, "warning", banner.to_owned());
    }
    let permissions = ListedPermissions::of(request);
    page.warn_about_many_permissions(request, &permissions);
    page.origin(request);
    page.tools(request);
    programs(&mut page, request);
    page.list("needs", request.needs.iter().map(|need| (LineRole::Fact, printable(need))));
    page.list(
        "packages",
        request.packages.iter().map(|package| {
            (
                LineRole::Fact,
                format!("installs {} into an environment of its own", printable(package)),
            )
        }),
    );
    page.permissions(request, permissions);
    page.fact(
        "content",
        format!(
            "sha256 {}, fingerprint {}",
            printable(request.digest.get(..12).unwrap_or(&request.digest)),
            Fingerprint::of(request).short()
        ),
    );
    page.lines
}

/// All permissions of a request, each once and the most dangerous first.
struct ListedPermissions {
    /// The permissions that the skill declares, and those that its dialect grants.
    declared: Vec<Phrase>,
    /// The permissions that the user adds.
    added: Vec<Phrase>,
}

impl ListedPermissions {
    fn of(request: &Request) -> Self {
        let stored = &request.secrets;
        let declared = request.permissions.iter().chain(&request.implicit_permissions);
        let declared = declared.flat_map(|entry| permission_phrases::permission(entry, stored));
        let lists = request.extra.lists().into_iter();
        let added = lists.flat_map(|(added, list)| {
            list.iter().flat_map(move |entry| permission_phrases::added(added, entry, stored))
        });
        Self {
            declared: sort_by_weight(declared.collect()),
            added: sort_by_weight(added.collect()),
        }
    }

    fn count(&self) -> usize {
        self.declared.len() + self.added.len()
    }

    fn grave(&self) -> usize {
        self.declared.iter().chain(&self.added).filter(|phrase| phrase.is_grave()).count()
    }
}

fn sort_by_weight(mut phrases: Vec<Phrase>) -> Vec<Phrase> {
    phrases.sort_by_key(|phrase| phrase.weight);
    let mut seen = HashSet::new();
    phrases.retain(|phrase| seen.insert(phrase.text()));
    phrases
}

/// The reasons for the question and the warnings, to be shown above the text of the question.
pub fn reason_lines(reasons: &[String], warnings: &[String]) -> Vec<QuestionLine> {
    let line =
        |role, label, text: &String| QuestionLine { role, label, text: visible(text).into_owned() };
    let reasons = reasons.iter().map(|text| line(LineRole::Reason, "reason", text));
    reasons.chain(warnings.iter().map(|text| line(LineRole::Warning, "warning", text))).collect()
}

fn programs(page: &mut Page, request: &Request) {
    let mut found: Vec<(bool, String)> = request
        .programs
        .iter()
        .map(|program| {
            let phrase = permission_phrases::program(&program.name);
            // A harmless name may be a symlink to a shell.
            let is_grave = phrase.is_grave() || is_interpreter(&program.path.to_string_lossy());
            let text = phrase.text();
            let digest = printable(program.sha256.get(..12).unwrap_or(&program.sha256));
            let path = printable(&program.path.to_string_lossy());
            (is_grave, format!("{text}: {path}, sha256 {digest}"))
        })
        .collect();
    found.sort_by_key(|(is_grave, _)| !is_grave);
    let harmless = found.split_off(found.partition_point(|(is_grave, _)| *is_grave));
    let label = if found.is_empty() { "programs" } else { "" };
    page.push_labelled("programs", found.into_iter().map(|(_, text)| (LineRole::Grave, text)));
    page.list(label, harmless.into_iter().map(|(_, text)| (LineRole::Fact, text)));
}

#[derive(Default)]
struct Page {
    lines: Vec<QuestionLine>,
    length: QuestionLength,
}

impl Page {
    fn push(&mut self, role: LineRole, label: &'static str, text: String) {
        self.lines.push(QuestionLine { role, label, text });
    }

    fn fact(&mut self, label: &'static str, text: String) {
        if !text.is_empty() {
            self.push(LineRole::Fact, label, text);
        }
    }

    /// Adds lines of which only the first has the label.
    fn push_labelled(
        &mut self,
        label: &'static str,
        lines: impl Iterator<Item = (LineRole, String)>,
    ) {
        for (index, (role, text)) in lines.enumerate() {
            self.push(role, if index == 0 { label } else { "" }, text);
        }
    }

    /// Adds a warning at the top if there are very many permissions: an author may want them to be
    /// too many to read.
    fn warn_about_many_permissions(&mut self, request: &Request, permissions: &ListedPermissions) {
        let count = permissions.count();
        if count <= MAX_UNWARNED_PERMISSIONS {
            return;
        }
        let grave = match permissions.grave() {
            0 => String::new(),
            grave => format!(", {grave} of which need a second look"),
        };
        let text = format!("this asks for {count} permissions{grave}, far more than usual");
        let text = match self.length {
            QuestionLength::Question => {
                format!("{text}: read them all with `{}`", details_command(request))
            }
            QuestionLength::Full => text,
        };
        self.push(LineRole::Warning, "warning", text);
    }

    /// Adds the name of the skill and its origin.
    fn origin(&mut self, request: &Request) {
        let version = request.version.as_deref().map(|version| format!(" {}", printable(version)));
        self.fact("skill", format!("{}{}", printable(&request.skill), version.unwrap_or_default()));
        self.fact("says", join_lines(&request.description));
        self.fact("from", printable(&request.path.to_string_lossy()));
        let (trust, tier) = (request.trust.as_str(), request.tier);
        self.fact(
            "trust",
            format!("{trust}, tier {tier}, dialect {}", printable(&request.dialect)),
        );
        self.fact("signed", request.signed.as_deref().map(printable).unwrap_or_default());
        self.list(
            "not signed",
            request.uncovered.iter().map(|path| (LineRole::Grave, printable(path))),
        );
    }

    /// Adds the tool and its command, or the list of tools.
    fn tools(&mut self, request: &Request) {
        self.fact("tool", request.tool.as_deref().map(printable).unwrap_or_default());
        self.fact("runs", format_command(&request.command));
        let max_chars = match self.length {
            QuestionLength::Question => MAX_COMMAND_CHARS,
            QuestionLength::Full => usize::MAX,
        };
        let tools = request.tools.iter().map(|preview| {
            let runs = match preview.command.as_slice() {
                [] => String::new(),
                words => format!(": {}", cut_middle(&format_command(words), max_chars)),
            };
            (LineRole::Fact, format!("{}{runs}", printable(&preview.tool)))
        });
        self.list("tools", tools);
    }

    fn permissions(&mut self, request: &Request, permissions: ListedPermissions) {
        let count = permissions.count();
        match (permissions.declared.is_empty(), permissions.added.is_empty()) {
            (true, true) => self.fact("permissions", "none".to_owned()),
            (true, false) => self.fact("permissions", "only those that you add".to_owned()),
            (false, _) => self.phrases("permissions", permissions.declared),
        }
        if let Some(elsewhere) = request.implicit_elsewhere {
            self.fact("elsewhere", elsewhere.to_owned());
        }
        self.phrases("you add", permissions.added);
        // The warning at the top may have scrolled off the screen.
        if count > MAX_UNWARNED_PERMISSIONS {
            let text =
                format!("{count} permissions: few skills need so many, and it is easy to miss one");
            self.push(LineRole::Warning, "warning", text);
        }
    }

    /// Adds dangerous permissions one by one; many harmless ones are grouped and counted.
    fn phrases(&mut self, label: &'static str, mut phrases: Vec<Phrase>) {
        let harmless = phrases.split_off(phrases.partition_point(Phrase::is_grave));
        let grave = phrases.iter().map(|phrase| (LineRole::Grave, phrase.text()));
        let is_grouped = harmless.len() > MAX_HARMLESS && self.length == QuestionLength::Question;
        let harmless = if is_grouped {
            group_by_verb(&harmless)
        } else {
            harmless.iter().map(Phrase::text).collect()
        };
        let harmless = harmless.into_iter().map(|text| (LineRole::Fact, text));
        self.push_labelled(label, grave.chain(harmless));
    }

    /// Adds a list, and cuts it if it is long.
    fn list(
        &mut self,
        label: &'static str,
        items: impl ExactSizeIterator<Item = (LineRole, String)>,
    ) {
        let max_chars = match self.length {
            QuestionLength::Question => MAX_LINES,
            QuestionLength::Full => usize::MAX,
        };
        let more = items.len().saturating_sub(max_chars);
        self.push_labelled(label, items.take(max_chars));
        if more > 0 {
            let text = format!("… and {more} more that have no room here: see `--details`");
            self.push(LineRole::Grave, "", text);
        }
    }
}

/// The command that shows the complete question.
fn details_command(request: &Request) -> String {
    format!("savoir approve {} --details", shell_word(&printable(&request.path.to_string_lossy())))
}

/// One line for each kind of permission, with some of the names and the number of the others.
fn group_by_verb(phrases: &[Phrase]) -> Vec<String> {
    let mut kinds: Vec<(&Phrase, Vec<&str>)> = Vec::new();
    for phrase in phrases {
        match kinds.iter_mut().find(|(known, _)| known.verb == phrase.verb) {
            Some((_, objects)) => objects.push(&phrase.object),
            None => kinds.push((phrase, vec![&phrase.object])),
        }
    }
    let line = |(Phrase { verb, objects: noun, .. }, objects): (&Phrase, Vec<&str>)| {
        let named = objects.iter().take(MAX_NAMED).copied().collect::<Vec<_>>().join("; ");
        match objects.len().saturating_sub(MAX_NAMED) {
            0 => format!("{verb} {named}").trim_end().to_owned(),
            more => format!("{verb} {} {noun}: {named}; and {more} more", objects.len()),
        }
    };
    kinds.into_iter().map(line).collect()
}

/// Formats the lines as text without color. Each is wrapped to the width, and continuation lines
/// are indented, so that a long text cannot look like a separate line.
pub fn to_plain_text(lines: &[QuestionLine], width: usize) -> String {
    let mut text = String::new();
    for line in lines {
        for (index, piece) in
            wrap_lines(&line.text, width.saturating_sub(VALUE_COLUMN)).iter().enumerate()
        {
            let label = if index == 0 { line.label } else { "" };
            text.push_str(format!("{label:VALUE_COLUMN$}{piece}").trim_end());
            text.push('\n');
        }
    }
    text
}

fn wrap_lines(text: &str, width: usize) -> Vec<String> {
    let width = width.max(20);
    let mut pieces = vec![String::new()];
    let mut used = 0;
    for word in text.split_inclusive(' ') {
        let columns = word.trim_end().chars().map(max_columns).sum::<usize>();
        if used > 0 && used + columns > width {
            pieces.push(String::new());
            used = 0;
        }
        for character in word.chars() {
            let columns = max_columns(character);
            // A word that is longer than a line is broken where the line ends.
            if used + columns > width && character != ' ' {
                pieces.push(String::new());
                used = 0;
            }
            if let Some(piece) = pieces.last_mut() {
                piece.push(character);
            }
            used += columns;
        }
    }
    pieces
}

/// The maximum number of columns of a character. Beyond ASCII the number depends on the terminal;
/// counting too many breaks a line early, which does no harm.
fn max_columns(character: char) -> usize {
    if character.is_ascii() { 1 } else { 2 }
}

/// Formats a name, path or scope: control characters escaped, on one line, and cut in its middle if
/// it is long.
pub fn printable(text: &str) -> String {
    cut_middle(&visible(text), MAX_TEXT_CHARS)
}

/// Formats a command so that every argument is unambiguous.
fn format_command(words: &[String]) -> String {
    let mut text: Vec<String> =
        words.iter().take(MAX_ARGUMENTS).map(|word| quote_argument(word)).collect();
    if words.len() > MAX_ARGUMENTS {
        text.push(format!("… (and {} more arguments)", words.len() - MAX_ARGUMENTS));
    }
    text.join(" ")
}

/// Formats an argument: unchanged if nothing in it could be misread, otherwise in quotes. In
/// quotes, backslashes and quotes are escaped with a backslash, and invisible characters are spelt
/// out.
pub fn quote_argument(argument: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_@%+=:,./-{}".contains(c);
    if !argument.is_empty() && argument.chars().all(is_plain) {
        return cut_middle(argument, MAX_ARGUMENT_CHARS);
    }
    let escaped = argument.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{}\"", cut_middle(&visible(&escaped), MAX_ARGUMENT_CHARS))
}

/// Quotes a word for a POSIX shell, for commands that a message suggests.
pub fn shell_word(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_@%+=:,./-~".contains(c);
    // A shell expands `~name` to the home of that user.
    let is_home_of = word.starts_with('~') && word != "~" && !word.starts_with("~/");
    if !word.is_empty() && !is_home_of && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Joins a text of several lines into one line with single spaces, and cuts it if it is long.
/// Control characters other than line ends and tabs are escaped.
fn join_lines(text: &str) -> String {
    let joined = text.replace("\r\n", " ").replace(['\n', '\t'], " ");
    let line = one_line(&visible(&joined));
    let count = line.chars().count();
    if count <= MAX_DESCRIPTION_CHARS {
        return line;
    }
    let head: String = line.chars().take(MAX_DESCRIPTION_CHARS).collect();
    format!("{}… (cut, {} more characters)", head.trim_end(), count - MAX_DESCRIPTION_CHARS)
}

/// Cuts the middle of a long text. Both ends are shown: the important part of a path or an argument
/// is as often last as it is first.
fn cut_middle(text: &str, max_chars: usize) -> String {
    let count = text.chars().count();
    if count <= max_chars {
        return text.to_owned();
    }
    let tail_length = max_chars / 3;
    let head: String = text.chars().take(max_chars - tail_length).collect();
    let tail: String = text.chars().skip(count - tail_length).collect();
    format!("{head}…(cut, {} more characters)…{tail}", count - max_chars)
}
