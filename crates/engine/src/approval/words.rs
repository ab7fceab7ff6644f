//! Renders the text of the approval question.
//!
//! Most of the text comes from the author of the skill, who may try to disguise the question. So
//! control characters are escaped, every text is short enough that it cannot push the question out
//! of sight, and only lines of this module begin at the margin.

use std::collections::HashSet;

use savoir_lint::visible;
use serde::Serialize;

use super::{
    Fingerprint, Request, is_interpreter,
    phrase::{self, Phrase},
};

/// Longest name, path or scope, in characters.
const MAX_TEXT: usize = 160;
/// Longest description.
const MAX_DESCRIPTION: usize = 400;
/// Longest argument; both of its ends are shown.
const MAX_ARGUMENT: usize = 240;
/// Most arguments.
const MAX_ARGUMENTS: usize = 24;
/// Longest command in a list of tools: many long ones must not push the permissions out of sight.
const MAX_COMMAND: usize = 160;
/// Most lines of one list, besides lines that are never cut.
const MAX_LINES: usize = 16;
/// Harmless permissions that are shown one by one; more are grouped by kind.
const MAX_HARMLESS: usize = 8;
/// Names that are shown of a group.
const MAX_NAMED: usize = 6;
/// Permissions that fit on a screen beside the rest of the question.
const SCREEN: usize = 24;
/// The column where values begin.
const INDENT: usize = 13;

/// The kind of a line, from which a client chooses a color.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
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
pub struct Line {
    pub role: Role,
    /// The label; empty if the line continues the one before it.
    pub label: &'static str,
    /// The text, without control characters and line ends.
    pub text: String,
}

/// How much of a request is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Length {
    /// As much as fits on a screen: harmless permissions are grouped, long lists are cut.
    #[default]
    Question,
    /// Everything.
    Full,
}

/// Renders the approval question. Dangerous permissions are never left out; many harmless ones are
/// grouped and counted.
pub fn words(request: &Request) -> Vec<Line> {
    page(request, Length::Question)
}

/// Renders the question with every permission, tool and program on a line of its own.
pub fn details(request: &Request) -> Vec<Line> {
    page(request, Length::Full)
}

fn page(request: &Request, length: Length) -> Vec<Line> {
    let mut page = Page { length, ..Page::default() };
    if let Some(banner) = request.trust.banner() {
        page.push(Role::Warning, "warning", banner.to_owned());
    }
    let rights = Rights::of(request);
    page.flood(request, &rights);
    page.origin(request);
    page.tools(request);
    programs(&mut page, request);
    page.list("needs", request.needs.iter().map(|need| (Role::Fact, shown(need))));
    page.list(
        "packages",
        request.packages.iter().map(|package| {
            (Role::Fact, format!("installs {} into an environment of its own", shown(package)))
        }),
    );
    page.rights(request, rights);
    page.fact(
        "content",
        format!(
            "sha256 {}, fingerprint {}",
            shown(request.digest.get(..12).unwrap_or(&request.digest)),
            Fingerprint::of(request).short()
        ),
    );
    page.lines
}

/// All permissions of a request, each once and the most dangerous first.
struct Rights {
    /// The permissions that the skill declares, and those that its dialect grants.
    declared: Vec<Phrase>,
    /// The permissions that the user adds.
    added: Vec<Phrase>,
}

impl Rights {
    fn of(request: &Request) -> Self {
        let stored = &request.secrets;
        let declared = request.permissions.iter().chain(&request.unasked);
        let declared = declared.flat_map(|entry| phrase::permission(entry, stored));
        let lists = request.extra.lists().into_iter();
        let added = lists.flat_map(|(added, list)| {
            list.iter().flat_map(move |entry| phrase::added(added, entry, stored))
        });
        Self { declared: in_order(declared.collect()), added: in_order(added.collect()) }
    }

    fn count(&self) -> usize {
        self.declared.len() + self.added.len()
    }

    fn grave(&self) -> usize {
        self.declared.iter().chain(&self.added).filter(|phrase| phrase.is_grave()).count()
    }
}

fn in_order(mut phrases: Vec<Phrase>) -> Vec<Phrase> {
    phrases.sort_by_key(|phrase| phrase.weight);
    let mut seen = HashSet::new();
    phrases.retain(|phrase| seen.insert(phrase.text()));
    phrases
}

/// The reasons for the question and the warnings, to be shown above the [`words`].
pub fn why(reasons: &[String], warnings: &[String]) -> Vec<Line> {
    let line = |role, label, text: &String| Line { role, label, text: visible(text).into_owned() };
    let reasons = reasons.iter().map(|text| line(Role::Reason, "reason", text));
    reasons.chain(warnings.iter().map(|text| line(Role::Warning, "warning", text))).collect()
}

fn programs(page: &mut Page, request: &Request) {
    let mut found: Vec<(bool, String)> = request
        .programs
        .iter()
        .map(|program| {
            let phrase = phrase::program(&program.name);
            // A harmless name may be a symlink to a shell.
            let is_grave = phrase.is_grave() || is_interpreter(&program.path.to_string_lossy());
            let text = phrase.text();
            let digest = shown(program.sha256.get(..12).unwrap_or(&program.sha256));
            let path = shown(&program.path.to_string_lossy());
            (is_grave, format!("{text}: {path}, sha256 {digest}"))
        })
        .collect();
    found.sort_by_key(|(is_grave, _)| !is_grave);
    let harmless = found.split_off(found.partition_point(|(is_grave, _)| *is_grave));
    let label = if found.is_empty() { "programs" } else { "" };
    page.labelled("programs", found.into_iter().map(|(_, text)| (Role::Grave, text)));
    page.list(label, harmless.into_iter().map(|(_, text)| (Role::Fact, text)));
}

#[derive(Default)]
struct Page {
    lines: Vec<Line>,
    length: Length,
}

impl Page {
    fn push(&mut self, role: Role, label: &'static str, text: String) {
        self.lines.push(Line { role, label, text });
    }

    fn fact(&mut self, label: &'static str, text: String) {
        if !text.is_empty() {
            self.push(Role::Fact, label, text);
        }
    }

    /// Adds lines of which only the first has the label.
    fn labelled(&mut self, label: &'static str, lines: impl Iterator<Item = (Role, String)>) {
        for (index, (role, text)) in lines.enumerate() {
            self.push(role, if index == 0 { label } else { "" }, text);
        }
    }

    /// Adds a warning at the top if there are very many permissions: an author may want them to be
    /// too many to read.
    fn flood(&mut self, request: &Request, rights: &Rights) {
        let count = rights.count();
        if count <= SCREEN {
            return;
        }
        let grave = match rights.grave() {
            0 => String::new(),
            grave => format!(", {grave} of which need a second look"),
        };
        let text = format!("this asks for {count} rights{grave}, far more than usual");
        let text = match self.length {
            Length::Question => format!("{text}: read them all with `{}`", reading(request)),
            Length::Full => text,
        };
        self.push(Role::Warning, "warning", text);
    }

    /// Adds the name of the skill and its origin.
    fn origin(&mut self, request: &Request) {
        let version = request.version.as_deref().map(|version| format!(" {}", shown(version)));
        self.fact("skill", format!("{}{}", shown(&request.skill), version.unwrap_or_default()));
        self.fact("says", prose(&request.description));
        self.fact("from", shown(&request.path.to_string_lossy()));
        let (trust, tier) = (request.trust.as_str(), request.tier);
        self.fact("trust", format!("{trust}, tier {tier}, dialect {}", shown(&request.dialect)));
        self.fact("signed", request.signed.as_deref().map(shown).unwrap_or_default());
        self.list("not signed", request.uncovered.iter().map(|path| (Role::Grave, shown(path))));
    }

    /// Adds the tool and its command, or the list of tools.
    fn tools(&mut self, request: &Request) {
        self.fact("tool", request.tool.as_deref().map(shown).unwrap_or_default());
        self.fact("runs", command(&request.command));
        let most = match self.length {
            Length::Question => MAX_COMMAND,
            Length::Full => usize::MAX,
        };
        let tools = request.tools.iter().map(|preview| {
            let runs = match preview.command.as_slice() {
                [] => String::new(),
                words => format!(": {}", cut_middle(&command(words), most)),
            };
            (Role::Fact, format!("{}{runs}", shown(&preview.tool)))
        });
        self.list("tools", tools);
    }

    fn rights(&mut self, request: &Request, rights: Rights) {
        let count = rights.count();
        match (rights.declared.is_empty(), rights.added.is_empty()) {
            (true, true) => self.fact("permissions", "none".to_owned()),
            (true, false) => self.fact("permissions", "none but what you add".to_owned()),
            (false, _) => self.phrases("permissions", rights.declared),
        }
        if let Some(elsewhere) = request.elsewhere {
            self.fact("elsewhere", elsewhere.to_owned());
        }
        self.phrases("you add", rights.added);
        // The warning at the top may have scrolled off the screen.
        if count > SCREEN {
            let text =
                format!("{count} rights: few skills need so many, and it is easy to miss one");
            self.push(Role::Warning, "warning", text);
        }
    }

    /// Adds dangerous permissions one by one; many harmless ones are grouped and counted.
    fn phrases(&mut self, label: &'static str, mut phrases: Vec<Phrase>) {
        let harmless = phrases.split_off(phrases.partition_point(Phrase::is_grave));
        let grave = phrases.iter().map(|phrase| (Role::Grave, phrase.text()));
        let is_grouped = harmless.len() > MAX_HARMLESS && self.length == Length::Question;
        let harmless = if is_grouped {
            grouped(&harmless)
        } else {
            harmless.iter().map(Phrase::text).collect()
        };
        let harmless = harmless.into_iter().map(|text| (Role::Fact, text));
        self.labelled(label, grave.chain(harmless));
    }

    /// Adds a list, and cuts it if it is long.
    fn list(&mut self, label: &'static str, items: impl ExactSizeIterator<Item = (Role, String)>) {
        let most = match self.length {
            Length::Question => MAX_LINES,
            Length::Full => usize::MAX,
        };
        let more = items.len().saturating_sub(most);
        self.labelled(label, items.take(most));
        if more > 0 {
            let text = format!("… and {more} more that have no room here: see `--details`");
            self.push(Role::Grave, "", text);
        }
    }
}

/// The command that shows the complete question.
fn reading(request: &Request) -> String {
    format!("savoir approve {} --details", shell_word(&shown(&request.path.to_string_lossy())))
}

/// One line for each kind of permission, with some of the names and the number of the others.
fn grouped(phrases: &[Phrase]) -> Vec<String> {
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
pub fn plain(lines: &[Line], width: usize) -> String {
    let mut text = String::new();
    for line in lines {
        for (index, piece) in wrapped(&line.text, width.saturating_sub(INDENT)).iter().enumerate() {
            let label = if index == 0 { line.label } else { "" };
            text.push_str(format!("{label:INDENT$}{piece}").trim_end());
            text.push('\n');
        }
    }
    text
}

fn wrapped(text: &str, width: usize) -> Vec<String> {
    let width = width.max(20);
    let mut pieces = vec![String::new()];
    let mut used = 0;
    for word in text.split_inclusive(' ') {
        let columns = word.trim_end().chars().map(columns_of).sum::<usize>();
        if used > 0 && used + columns > width {
            pieces.push(String::new());
            used = 0;
        }
        for character in word.chars() {
            let columns = columns_of(character);
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
fn columns_of(character: char) -> usize {
    if character.is_ascii() { 1 } else { 2 }
}

/// Formats a name, path or scope: control characters escaped, on one line, and cut in its middle if
/// it is long.
pub fn shown(text: &str) -> String {
    cut_middle(&visible(text), MAX_TEXT)
}

/// Formats a command so that every argument is unambiguous.
fn command(words: &[String]) -> String {
    let mut text: Vec<String> = words.iter().take(MAX_ARGUMENTS).map(|word| quoted(word)).collect();
    if words.len() > MAX_ARGUMENTS {
        text.push(format!("… (and {} more arguments)", words.len() - MAX_ARGUMENTS));
    }
    text.join(" ")
}

/// Formats an argument: unchanged if nothing in it could be misread, otherwise in quotes. In
/// quotes, backslashes and quotes are escaped with a backslash, and invisible characters are spelt
/// out.
pub fn quoted(argument: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_@%+=:,./-{}".contains(c);
    if !argument.is_empty() && argument.chars().all(is_plain) {
        return cut_middle(argument, MAX_ARGUMENT);
    }
    let escaped = argument.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{}\"", cut_middle(&visible(&escaped), MAX_ARGUMENT))
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
fn prose(text: &str) -> String {
    let joined = text.replace("\r\n", " ").replace(['\n', '\t'], " ");
    let line = visible(&joined).split_whitespace().collect::<Vec<_>>().join(" ");
    let count = line.chars().count();
    if count <= MAX_DESCRIPTION {
        return line;
    }
    let head: String = line.chars().take(MAX_DESCRIPTION).collect();
    format!("{}… (cut, {} more characters)", head.trim_end(), count - MAX_DESCRIPTION)
}

/// Cuts the middle of a long text. Both ends are shown: the important part of a path or an argument
/// is as often last as it is first.
fn cut_middle(text: &str, most: usize) -> String {
    let count = text.chars().count();
    if count <= most {
        return text.to_owned();
    }
    let tail_length = most / 3;
    let head: String = text.chars().take(most - tail_length).collect();
    let tail: String = text.chars().skip(count - tail_length).collect();
    format!("{head}…(cut, {} more characters)…{tail}", count - most)
}
