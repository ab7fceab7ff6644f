//! The name of the skill against the name of its folder, and the name of the file itself.

use std::borrow::Cow;

use crate::{
    check::{Context, rule::rule},
    diagnostic::{Diagnostic, Severity},
    dialect::Dialect,
    document::State,
    folder::is_skill_file,
    name,
};

rule! {
    /// The name in the frontmatter is not the name of the folder.
    ///
    /// ## Why
    ///
    /// The base format, Agent Flow Lite, gibb.eri.sh and GAIA refuse such a skill. Claude Code takes
    /// the folder's name for the command and shows the other one, so users type what does not exist.
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
    let dialect = context.dialect();
    let Some(severity) = severity(dialect) else { return };
    let Some(folder) = context.folder.and_then(|folder| folder.name()) else { return };
    let document = &context.reading.document;
    if document.state() == State::Unreadable {
        return;
    }
    let Some(node) = document.field("name") else { return };
    let Some(written) = node.text().filter(|text| !text.trim().is_empty()) else { return };
    if comparable(dialect, written) == comparable(dialect, folder) {
        return;
    }
    let message = if dialect == Dialect::AGENT_FLOW {
        format!(
            "Skill name mismatch: folder name '{folder}' does not match frontmatter name '{written}'"
        )
    } else {
        format!("the skill is called `{written}`, its folder `{folder}`")
    };
    let mut problem = Diagnostic::error(NAME_FOLDER_MISMATCH.code, node.span, message)
        .field("name")
        .help(format!("write `name: {folder}`, or rename the folder to `{}`", written.trim()));
    problem.severity = severity;
    found.push(problem);
}

/// How bad a mismatch is; `None` where the folder means nothing.
fn severity(dialect: Dialect) -> Option<Severity> {
    let must = [Dialect::AGENTSKILLS, Dialect::AGENT_FLOW, Dialect::GIBBERISH, Dialect::GAIA];
    let should = [Dialect::CLAUDE_CODE, Dialect::PERSONAL_AGENT];
    if must.contains(&dialect) {
        Some(Severity::Error)
    } else {
        should.contains(&dialect).then_some(Severity::Warning)
    }
}

/// Names in the form in which the dialect compares them.
fn comparable(dialect: Dialect, text: &str) -> Cow<'_, str> {
    if dialect == Dialect::PERSONAL_AGENT {
        name::slugify(text).map_or(Cow::Borrowed(text), Cow::Owned)
    } else if [Dialect::AGENTSKILLS, Dialect::CLAUDE_CODE].contains(&dialect) {
        name::canonical(text)
    } else {
        Cow::Borrowed(text)
    }
}

rule! {
    /// The file is called `skill.md` instead of `SKILL.md`.
    ///
    /// ## Why
    ///
    /// Most hosts look for `SKILL.md` in capitals and do not see the skill on file systems that tell
    /// capitals from small letters.
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
        let claude = "---\nname: other\ndescription: d\nmodel: x\n---\n# x\n";
        assert_eq!(find_in(code, claude, &folder("demo", &[]))[0].severity, Severity::Warning);
        let claw = "---\nname: other\ndescription: d\nmetadata: {openclaw: {}}\n---\n# x\n";
        assert!(find_in(code, claw, &folder("demo", &[])).is_empty());
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
