//! Compares the name of the skill with the name of its folder, and checks the name of the file.

use savoir_lint::Diagnostic;

use crate::{
    check::{Context, rule::rule},
    document::State,
    folder::is_skill_file,
    name::{self, NameGrammar},
};

rule! {
    /// The name in the frontmatter is not the name of the folder.
    ///
    /// ## Why
    ///
    /// The base format, Agent Flow Lite, gibb.eri.sh and GAIA reject such a skill. Claude Code
    /// uses the folder's name for the command but shows the other name, so users type a command
    /// that does not exist.
    ///
    /// ## Bad
    ///
    /// ````markdown folder=demo
    /// ---
    /// name: other
    /// description: Shows a rule. Use when learning.
    /// ---
    /// # Demo
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown folder=demo
    /// ---
    /// name: demo
    /// description: Shows a rule. Use when learning.
    /// ---
    /// # Demo
    /// ````
    NAME_FOLDER_MISMATCH = "name-folder-mismatch", Error, run name_folder_mismatch
}

fn name_folder_mismatch(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    let Some(rule) = context.conventions().folder_name else { return };
    let Some(folder) = context.folder.and_then(|folder| folder.name()) else { return };
    let document = &context.reading.document;
    if document.state() == State::Unreadable {
        return;
    }
    let Some(node) = document.field("name") else { return };
    let Some(written) = node.text().filter(|text| !text.trim().is_empty()) else { return };
    if (rule.form)(written) == (rule.form)(folder) {
        return;
    }
    // A name that is not valid in the first place is one finding, not two.
    if found.iter().any(|found| found.code == "invalid-name" && found.span == node.span) {
        return;
    }
    let message = (rule.message)(written, folder);
    let grammar = context.dialect().name_grammar(document);
    let mut problem = Diagnostic::error(NAME_FOLDER_MISMATCH.code, node.span, message)
        .field("name")
        .help(suggest_fix(grammar, written.trim(), folder));
    problem.severity = rule.severity;
    found.push(problem);
}

/// Proposes only names that are valid, and only folders that stay where they are.
fn suggest_fix(grammar: NameGrammar, written: &str, folder: &str) -> String {
    let is_valid = |name: &str| grammar.check(name).is_ok();
    let as_name = is_valid(folder);
    let as_folder = is_valid(written) && !name::is_unsafe_path_name(written);
    match (as_name, as_folder) {
        (true, true) => format!("write `name: {folder}`, or rename the folder to `{written}`"),
        (true, false) => format!("write `name: {folder}`"),
        (false, true) => format!("rename the folder to `{written}`"),
        (false, false) => "give the skill and its folder the same valid name".to_owned(),
    }
}

rule! {
    /// The file is called `skill.md` instead of `SKILL.md`.
    ///
    /// ## Why
    ///
    /// Most hosts look for `SKILL.md` in capitals and do not see the skill on case-sensitive file
    /// systems.
    ///
    /// ## Bad
    ///
    /// ````markdown file=skill.md
    /// ---
    /// name: demo
    /// description: Shows a rule. Use when learning.
    /// ---
    /// # Demo
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown file=SKILL.md
    /// ---
    /// name: demo
    /// description: Shows a rule. Use when learning.
    /// ---
    /// # Demo
    /// ````
    SKILL_FILE_NAME = "skill-file-name", Warning, run skill_file_name
}

fn skill_file_name(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    let Some(folder) = context.folder else { return };
    let mut named = None;
    for file in folder.files() {
        if file.path == "SKILL.md" {
            return;
        }
        if is_skill_file(&file.path) {
            named = Some(&file.path);
        }
    }
    let Some(path) = named else { return };
    let message = format!("the file is called `{path}`, most hosts look for `SKILL.md`");
    found.push(
        Diagnostic::warning(SKILL_FILE_NAME.code, context.reading.document.head_span(), message)
            .help("rename it to `SKILL.md`"),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        check::rules::testing::{find_in, folder, skill},
        folder::{File, Folder},
    };
    use savoir_lint::Severity;

    #[test]
    fn names_are_compared_as_the_dialect_does() {
        let code = NAME_FOLDER_MISMATCH.code;
        for (name, at, expected) in [
            ("demo", "demo", 0),
            ("other", "demo", 1),
            ("größe", "gro\u{308}ße", 0),
            ("' demo '", "demo", 0),
            ("''", "demo", 0),
        ] {
            let text = format!("---\nname: {name}\ndescription: d\n---\n# x\n");
            assert_eq!(find_in(code, &text, &folder(at, &[])).len(), expected, "{name}");
        }
        let invalid = "---\nname: My Demo\ndescription: d\n---\n# x\n";
        assert!(find_in(code, invalid, &folder("demo", &[])).is_empty(), "that is `invalid-name`");
        let claude = "---\nname: other\ndescription: d\nmodel: x\n---\n# x\n";
        assert_eq!(find_in(code, claude, &folder("demo", &[]))[0].severity, Severity::Warning);
        let claw = "---\nname: other\ndescription: d\nmetadata: {openclaw: {}}\n---\n# x\n";
        assert!(find_in(code, claw, &folder("demo", &[])).is_empty());
    }

    #[test]
    fn only_valid_names_are_proposed() {
        let help = |name: &str, at: &str| {
            let text = format!("---\nname: {name}\ndescription: d\n---\n# x\n");
            let found = find_in(NAME_FOLDER_MISMATCH.code, &text, &folder(at, &[]));
            found[0].help.clone().unwrap_or_default()
        };
        let both = "write `name: demo`, or rename the folder to `other`";
        assert_eq!(help("other", "demo"), both);
        assert_eq!(help("other", "my skill"), "rename the folder to `other`");
    }

    #[test]
    fn small_letters_matter_only_alone() {
        let files = |paths: &[&str]| {
            let list = paths.iter().map(|path| File { path: (*path).into(), link: false });
            Folder::from_parts("demo".into(), list.collect())
        };
        let count =
            |paths: &[&str]| find_in(SKILL_FILE_NAME.code, &skill("x"), &files(paths)).len();
        assert_eq!(count(&["a.md", "skill.md"]), 1);
        assert_eq!(count(&["SKILL.md", "skill.md"]), 0);
        assert_eq!(count(&["notes.md"]), 0);
    }
}
