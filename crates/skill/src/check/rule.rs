//! Defines rules and the examples in their documentation.

use savoir_lint::{Diagnostic, RuleDocs, Safety, Severity};

use super::Context;

/// A rule: its code, how much it matters, and its documentation.
#[derive(Debug)]
pub struct Rule {
    /// Stable kebab-case code.
    pub code: &'static str,
    /// How much a finding matters, unless the dialect says otherwise.
    pub severity: Severity,
    /// Whether findings can be fixed, and how safely at best.
    pub fix: Option<Safety>,
    pub(crate) docs: RuleDocs,
    /// Finds breaches; reading itself reports those of rules without it.
    pub(crate) run: Option<fn(&Context<'_>, &mut Vec<Diagnostic>)>,
}

/// An example out of a rule's documentation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Example {
    /// The text of the SKILL.md.
    pub text: String,
    /// Words after `markdown` on the fence: `strict`, `dialect=…`, `target=…`, `programs=FOLDER`, `with=FILE`, `folder=NAME`,
    /// `file=NAME` for SKILL.md itself, and `escaped` and `repeat=N` (the last line that often),
    /// which are done already.
    pub options: Vec<String>,
    /// Files beside it: the code blocks that follow with `file=NAME`.
    pub files: Vec<(String, String)>,
}

impl Rule {
    /// The documentation as Markdown.
    pub fn docs(&self) -> String {
        self.docs.markdown()
    }

    /// The first sentence of the documentation.
    pub fn summary(&self) -> String {
        self.docs.summary()
    }

    /// The example that the rule reports.
    pub fn bad(&self) -> Option<Example> {
        self.example("## Bad")
    }

    /// The example of how it should be.
    pub fn good(&self) -> Option<Example> {
        self.example("## Good")
    }

    fn example(&self, heading: &str) -> Option<Example> {
        let docs = self.docs();
        let (_, section) = docs.split_once(heading)?;
        let (_, block) = section.split_once("````")?;
        let (info, rest) = block.split_once('\n')?;
        let (text, after) = rest.split_once("````")?;
        let options: Vec<String> = info.split_whitespace().skip(1).map(str::to_owned).collect();
        let escaped = options.iter().any(|option| option == "escaped");
        let mut text = if escaped { unescape(text) } else { text.to_owned() };
        let times = options.iter().find_map(|option| option.strip_prefix("repeat=")?.parse().ok());
        if let (Some(times), Some(last)) =
            (times, text.lines().last().map(|line| format!("{line}\n")))
        {
            text.truncate(text.len() - last.len());
            text.push_str(&last.repeat(times));
        }
        Some(Example { text, options, files: files_in(after) })
    }
}

/// The code blocks at the beginning of a text, each with the name on its fence.
fn files_in(mut text: &str) -> Vec<(String, String)> {
    let mut files = Vec::new();
    while let Some(block) = text.trim_start().strip_prefix("````") {
        let named = block.split_once('\n').and_then(|(info, rest)| {
            let name = info.split_whitespace().find_map(|word| word.strip_prefix("file="))?;
            Some((name, rest.split_once("````")?))
        });
        let Some((name, (content, rest))) = named else { break };
        files.push((name.to_owned(), content.to_owned()));
        text = rest;
    }
    files
}

/// `\t`, `\r`, `\0` and `\u{feff}` for bytes that a comment cannot hold.
fn unescape(text: &str) -> String {
    let mut result = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        result.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let simple = [('t', '\t'), ('r', '\r'), ('0', '\0'), ('e', '\u{1b}')];
        if let Some((_, found)) = simple.iter().find(|(mark, _)| rest.starts_with(*mark)) {
            result.push(*found);
            rest = &rest[1..];
        } else if let Some((hex, after)) =
            rest.strip_prefix("u{").and_then(|rest| rest.split_once('}'))
        {
            let code = u32::from_str_radix(hex, 16).ok().and_then(char::from_u32);
            result.extend(code);
            rest = after;
        } else {
            result.push('\\');
        }
    }
    result + rest
}

/// Declares a rule; the doc comment above it becomes its documentation.
macro_rules! rule {
    (
        $(#[doc = $doc:literal])+
        $name:ident = $code:literal, $severity:ident
        $(, fix $safety:ident)?
        $(, run $run:expr)?
    ) => {
        // Only `docs` holds the text: rustdoc does not know the options of our examples.
        pub(in crate::check) static $name: $crate::check::Rule = $crate::check::Rule {
            code: $code,
            severity: savoir_lint::Severity::$severity,
            fix: $crate::check::rule::rule!(@safety $($safety)?),
            docs: $crate::check::RuleDocs(concat!($($doc, "\n"),+)),
            run: $crate::check::rule::rule!(@run $($run)?),
        };
    };
    (@safety) => { None };
    (@safety $safety:ident) => { Some(savoir_lint::Safety::$safety) };
    (@run) => { None };
    (@run $run:expr) => { Some($run) };
}

pub(crate) use rule;
