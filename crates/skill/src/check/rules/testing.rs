//! Helpers for the tests of the rules.

use savoir_lint::{Diagnostic, Source};

use crate::{
    check::{self, Options},
    dialect::Dialect,
    folder::{File, Folder},
};

/// A skill whose body is `body`.
pub(super) fn skill(body: &str) -> String {
    format!("---\nname: demo\ndescription: Shows a rule. Use when learning.\n---\n{body}")
}

/// A folder of this name with SKILL.md and these files.
pub(super) fn folder(name: &str, files: &[&str]) -> Folder {
    let paths = std::iter::once("SKILL.md").chain(files.iter().copied());
    let files = paths.map(|path| File { path: path.to_owned(), link: false }).collect();
    Folder::from_parts(name.into(), files)
}

/// Runs one rule.
pub(super) fn find(code: &str, text: &str) -> Vec<Diagnostic> {
    find_with(code, text, None, &Options::default())
}

/// Runs one rule with a known dialect.
pub(super) fn find_as(code: &str, text: &str, dialect: Dialect) -> Vec<Diagnostic> {
    find_with(code, text, None, &Options { dialect: Some(dialect), ..Options::default() })
}

/// Runs one rule with a folder.
pub(super) fn find_in(code: &str, text: &str, folder: &Folder) -> Vec<Diagnostic> {
    find_with(code, text, Some(folder), &Options::default())
}

/// Runs one rule.
pub(super) fn find_with(
    code: &str,
    text: &str,
    folder: Option<&Folder>,
    options: &Options,
) -> Vec<Diagnostic> {
    // Rules that speak only in strict checks speak when they are asked for.
    let options = Options { select: vec![code.to_owned()], ..options.clone() };
    check::check(Source::new(text.to_owned()), folder, &options).diagnostics
}

/// The text under each finding of a rule.
pub(super) fn places<'a>(code: &str, text: &'a str) -> Vec<&'a str> {
    find(code, text).iter().map(|found| found.span.slice(text)).collect()
}

/// The text after the fix of the only finding of a rule.
pub(super) fn fixed(code: &str, text: &str) -> Option<String> {
    let found = find(code, text);
    assert_eq!(found.len(), 1, "{found:?}");
    let fix = found[0].fix.as_ref()?;
    Some(crate::edit::apply(text, &fix.edits))
}
