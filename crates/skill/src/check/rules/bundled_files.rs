//! Finds files of the skill that its text does not mention.

use std::collections::BTreeMap;

use memchr::memmem;
use savoir_lint::Diagnostic;

use crate::{
    check::{Context, rule::rule},
    folder::{Folder, is_skill_file},
    limits::MAX_FOLDER_FILES,
};

rule! {
    /// The skill contains a file that its text does not mention.
    ///
    /// ## Why
    ///
    /// An agent reads SKILL.md and the files that it mentions. A file that is not mentioned by its
    /// name, its path or its folder is never opened. Another file may mention it, so only
    /// `--strict` reports it.
    ///
    /// ## Bad
    ///
    /// ````markdown strict with=scripts/convert.sh
    /// ---
    /// name: demo
    /// description: Shows a rule. Use when learning.
    /// ---
    /// Convert the table that the user gives you.
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown strict with=scripts/convert.sh
    /// ---
    /// name: demo
    /// description: Shows a rule. Use when learning.
    /// ---
    /// Run `scripts/convert.sh` on the table that the user gives you.
    /// ````
    UNMENTIONED_FILE = "unmentioned-file", Warning, run unmentioned_file
}

/// Most bytes that are searched for names, so that a large folder beside a long text stays cheap.
const MAX_SEARCHED_BYTES: usize = 16 * 1024 * 1024;

fn unmentioned_file(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    let Some(folder) = context.folder else { return };
    if !context.options.is_strict(UNMENTIONED_FILE.code) {
        return;
    }
    if folder.files().len() < 2 || folder.files().len() >= MAX_FOLDER_FILES {
        return;
    }
    let mut search = Search { text: context.text(), budget: MAX_SEARCHED_BYTES };
    let known = context.conventions().known_folders;
    let skipped = nested_skills(folder);
    // Findings by the topmost folder that is not mentioned, or by the file at the root.
    let mut lost: BTreeMap<&str, usize> = BTreeMap::new();
    let mut folders: BTreeMap<&str, bool> = BTreeMap::new();
    for file in folder.files() {
        let path = file.path.as_str();
        let nested = skipped.iter().any(|skill| path.starts_with(skill));
        if nested || file.link || is_exempt(path, known) {
            continue;
        }
        let in_folder = parents(path).any(|parent| {
            *folders.entry(parent).or_insert_with(|| search.finds(last_part(parent)))
        });
        if !in_folder && !search.finds_file(last_part(path)) {
            let top = path.split_once('/').map_or(path, |(top, _)| top);
            *lost.entry(top).or_default() += 1;
        }
        if search.budget == 0 {
            return;
        }
    }
    let span = context.reading.document.head_span();
    for (name, count) in lost {
        let (message, help) = if folder.has(name) {
            (
                format!("nothing mentions the file `{name}`"),
                "say in SKILL.md when to use it, or remove it".to_owned(),
            )
        } else {
            let files = if count == 1 { "file" } else { "files" };
            (
                format!("nothing mentions {count} {files} in the folder `{name}`"),
                format!("say in SKILL.md when to use `{name}/`, or remove unused files"),
            )
        };
        found.push(Diagnostic::warning(UNMENTIONED_FILE.code, span, message).help(help));
    }
}

/// Looks for names until it has looked at enough.
struct Search<'a> {
    text: &'a str,
    budget: usize,
}

impl Search<'_> {
    /// Whether the text has the file's name, or the name without its ending.
    fn finds_file(&mut self, name: &str) -> bool {
        let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
        // A short word such as `run` says nothing about `run.sh`.
        if stem.len() >= 6 || stem.contains(['-', '_']) {
            self.finds(stem)
        } else {
            self.finds(name)
        }
    }

    /// Whether the text has the word, not as a part of a longer one.
    fn finds(&mut self, word: &str) -> bool {
        let bytes = self.text.as_bytes();
        let is_word = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
        let mut looked_at = bytes.len();
        let mut is_there = false;
        for at in memmem::find_iter(bytes, word.as_bytes()) {
            let before = at.checked_sub(1).and_then(|before| bytes.get(before));
            if !is_word(before) && !is_word(bytes.get(at + word.len())) {
                is_there = true;
                looked_at = at;
                break;
            }
        }
        self.budget = self.budget.saturating_sub(looked_at + 1);
        is_there
    }
}

/// `a` and `a/b` of `a/b/c`.
fn parents(path: &str) -> impl Iterator<Item = &str> {
    memchr::memchr_iter(b'/', path.as_bytes()).map(|slash| &path[..slash])
}

fn last_part(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

/// Folders of skills inside the skill, each with its slash.
fn nested_skills(folder: &Folder) -> Vec<&str> {
    let files = folder.files().iter().map(|file| file.path.as_str());
    let inner = files.filter(|path| path.contains('/') && is_skill_file(last_part(path)));
    inner.map(|path| &path[..path.len() - last_part(path).len()]).collect()
}

/// Whether hosts or people find a file without a mention.
fn is_exempt(path: &str, known_folders: &[&str]) -> bool {
    let name = last_part(path);
    let stem = name.split('.').next().unwrap_or_default();
    let for_people = [
        "LICENSE", "LICENCE", "README", "CHANGELOG", "NOTICE", "CONTRIBUTING", "AUTHORS",
        "INSTALL", "AGENTS", "CLAUDE", "TEST",
    ];
    let begins = |prefix: &&str| {
        stem.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
    };
    let for_tools = [
        "tools.py", "requirements.txt", "package.json", "package-lock.json", "pyproject.toml",
        "tsconfig.json", "Makefile", "uv.lock", "signature.json", "SIGNATURE.json",
        "skill.oms.sig", "SKILL.md.lock", "_meta.json", "__init__.py", "metadata.json",
        "skill.json", "skill.yaml", "plugin.json",
    ];
    let first = path.split_once('/').map_or("", |(first, _)| first);
    is_skill_file(path)
        || path.split('/').any(|part| part.starts_with('.'))
        || for_people.iter().any(begins)
        || for_tools.contains(&name)
        || path == "agents/openai.yaml"
        || matches!(first, "tests" | "test" | "evals")
        || known_folders.contains(&first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::rules::testing::{find_in, folder, skill};

    fn messages(body: &str, files: &[&str]) -> Vec<String> {
        let found = find_in(UNMENTIONED_FILE.code, &skill(body), &folder("demo", files));
        found.into_iter().map(|found| found.message).collect()
    }

    #[test]
    fn name_stem_or_folder_counts_as_mention() {
        for body in [
            "Run `scripts/convert_table.sh`.",
            "Run convert_table.sh.",
            "Run convert_table now",
            "All is in scripts/.",
            "See the `scripts` folder",
        ] {
            assert_eq!(messages(body, &["scripts/convert_table.sh"]), [""; 0], "{body}");
        }
        assert_eq!(messages("Describes it.", &["scripts/convert.sh"]).len(), 1);
        assert_eq!(messages("A postscripts reconvert.shx", &["scripts/convert.sh"]).len(), 1);
    }

    #[test]
    fn files_of_one_folder_are_one_finding() {
        let found = messages("text", &["a.md", "refs/x.md", "refs/deep/y.md"]);
        assert_eq!(
            found,
            ["nothing mentions the file `a.md`", "nothing mentions 2 files in the folder `refs`"]
        );
    }

    #[test]
    fn exempt_files_need_no_mention() {
        let files = [
            "LICENSE.txt", "readme.md", "CHANGELOG.md", ".gitignore", ".clawhub/origin.json",
            "agents/openai.yaml", "tests/test_a.py", "inner/SKILL.md", "inner/refs/b.md",
            "tools.py",
        ];
        assert!(messages("text", &files).is_empty());
    }
}
