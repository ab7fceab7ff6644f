//! Formats the file changes of a plan as text.

use std::{collections::BTreeSet, fmt::Write as _};

use anstyle::{AnsiColor, Style};
use savoir_package::install::{FileChange, InstallPlan};
use similar::{ChangeTag, TextDiff};

use crate::output;

/// Lines around a change.
const CONTEXT_LINES: usize = 3;

/// The changed files, each once even if several agents have it.
fn different(plan: &InstallPlan) -> Vec<FileChange<'_>> {
    let mut seen = BTreeSet::new();
    let mut files = plan.files();
    files.retain(|file| seen.insert((file.folder.file_name(), file.path, file.before, file.after)));
    files
}

/// A line for each file that differs: `~ pdf/SKILL.md  +3 -1`.
pub(crate) fn summary(plan: &InstallPlan) -> String {
    let mut text = String::new();
    for file in different(plan) {
        let sign = match (file.before, file.after) {
            (None, _) => '+',
            (_, None) => '-',
            _ => '~',
        };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {sign} {}{}", name(&file), counts(&file));
    }
    text
}

fn name(file: &FileChange<'_>) -> String {
    let skill = file.folder.file_name().unwrap_or_default().to_string_lossy();
    output::cell(&format!("{skill}/{}", file.path)).into_owned()
}

fn counts(file: &FileChange<'_>) -> String {
    let Some((before, after)) = texts(file) else { return "  (binary)".to_owned() };
    let diff = TextDiff::from_lines(before, after);
    let count = |tag: ChangeTag| diff.iter_all_changes().filter(|one| one.tag() == tag).count();
    format!("  +{} -{}", count(ChangeTag::Insert), count(ChangeTag::Delete))
}

/// Both sides, if they are text.
fn texts<'a>(file: &FileChange<'a>) -> Option<(&'a str, &'a str)> {
    let text = |bytes: Option<&'a [u8]>| str::from_utf8(bytes.unwrap_or_default()).ok();
    Some((text(file.before)?, text(file.after)?))
}

/// A unified diff of all changed files.
pub(crate) fn diff(plan: &InstallPlan) -> String {
    let mut text = String::new();
    for file in different(plan) {
        let bold = Style::new().bold();
        let _ = writeln!(text, "{bold}{}{bold:#}", name(&file));
        let Some((before, after)) = texts(&file) else {
            text.push_str("  binary file\n");
            continue;
        };
        let diff = TextDiff::from_lines(before, after);
        let mut unified = diff.unified_diff();
        for line in
            unified.context_radius(CONTEXT_LINES).missing_newline_hint(false).to_string().lines()
        {
            let style = match line.as_bytes().first() {
                Some(b'+') => AnsiColor::Green.on_default(),
                Some(b'-') => AnsiColor::Red.on_default(),
                Some(b'@') => AnsiColor::Cyan.on_default(),
                _ => Style::new(),
            };
            let _ = writeln!(text, "{style}{}{style:#}", output::sanitize(line));
        }
    }
    text
}
