//! Finds text that YAML reads as a comment.

use savoir_lint::{Diagnostic, Edit, Fix, Span};

use crate::{
    check::{Context, rule::rule},
    yaml::Style,
};

rule! {
    /// A space and `#` in an unquoted sentence start a comment, so the rest is not read.
    ///
    /// ## Why
    ///
    /// No reader reports it: the sentence ends there, and the agent may not see when to use the
    /// skill.
    ///
    /// ## Bad
    ///
    /// ````markdown
    /// ---
    /// name: dotnet-help
    /// description: Helps with C # and F # code. Use when someone asks about .NET.
    /// ---
    /// # Help with .NET
    ///
    /// Ask for the version first.
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown
    /// ---
    /// name: dotnet-help
    /// description: "Helps with C # and F # code. Use when someone asks about .NET."
    /// ---
    /// # Help with .NET
    ///
    /// Ask for the version first.
    /// ````
    COMMENT_IN_VALUE = "comment-in-value", Warning, fix Unsafe, run comment_in_value
}

/// Fields that hold sentences; elsewhere a comment is most likely a comment.
const SENTENCES: [&str; 4] = ["description", "when_to_use", "when-to-use", "compatibility"];

fn comment_in_value(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    let text = context.text();
    for entry in context.reading.document.entries() {
        let value = &entry.value;
        if !SENTENCES.contains(&entry.key.as_str()) || value.style() != Some(Style::Plain) {
            continue;
        }
        let line = text[value.span.end..].lines().next().unwrap_or_default().trim_end();
        if !line.trim_start().starts_with('#') || value.span.is_empty() {
            continue;
        }
        let whole = Span::new(value.span.start, value.span.end + line.len());
        let comment = Span::new(whole.end - line.trim_start().len(), whole.end);
        let message =
            format!("`{}` ends before the `#`; the rest of the line is a comment", entry.key);
        let mut problem = Diagnostic::warning(COMMENT_IN_VALUE.code, comment, message)
            .field(entry.key.clone())
            .help("put the whole value in quotes, or the comment on a line of its own");
        let sentence = whole.slice(text);
        if !sentence.contains(['\n', '"', '\\']) {
            let quoted = Edit::replace(whole, format!("\"{sentence}\""));
            problem = problem.fix(Fix::unsafe_edits(vec![quoted]));
        }
        found.push(problem);
    }
}
