//! Finds archives inside the skill.

use savoir_lint::Diagnostic;

use crate::check::{Context, rule::rule};

rule! {
    /// The skill contains an archive.
    ///
    /// ## Why
    ///
    /// Reviewers and agents cannot read packed files. Scanners unpack archives only up to a limit,
    /// and no installer unpacks them. Put the files themselves into the skill.
    ///
    /// ## Bad
    ///
    /// ````markdown with=assets/templates.zip
    /// ---
    /// name: demo
    /// description: Shows a rule. Use when learning.
    /// ---
    /// Take a template out of `assets/templates.zip`.
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown with=assets/letter.md
    /// ---
    /// name: demo
    /// description: Shows a rule. Use when learning.
    /// ---
    /// Take the template `assets/letter.md`.
    /// ````
    NESTED_ARCHIVE = "nested-archive", Warning, run nested_archive
}

/// How the names of archives end. Documents that are packed inside, such as `.docx`, are none.
const ENDINGS: [&str; 12] =
    [".zip", ".skill", ".tar", ".tgz", ".gz", ".bz2", ".xz", ".zst", ".7z", ".rar", ".jar", ".whl"];

fn nested_archive(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    let Some(folder) = context.folder else { return };
    let is_archive = |path: &str| {
        let path = path.to_ascii_lowercase();
        ENDINGS.iter().any(|ending| path.ends_with(ending))
    };
    let archives = folder.files().iter().filter(|file| is_archive(&file.path));
    found.extend(archives.map(|file| {
        let message = format!("`{}` is an archive inside the skill", file.path);
        Diagnostic::warning(NESTED_ARCHIVE.code, context.reading.document.head_span(), message)
            .help("put the files themselves into the skill")
    }));
}
