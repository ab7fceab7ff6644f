//! Finds the files that a skill executes by naming them after an interpreter:
//! `python3 assets/report.txt`, `bash logo.png`.

use std::collections::HashMap;

use super::{Files, fragment::Language};

/// Calls that execute the file in their first argument.
const EXECUTING_CALLS: [&str; 3] = ["run_path", "execfile", "exec"];

/// Words between a program or call and the file that it executes.
const SKIPPED: [&str; 5] = ["open", "run", "<", "Path", "pathlib.Path"];

/// Returns the languages of executed files, by file name without folder.
pub(super) fn find_executed_files(files: &Files<'_>) -> HashMap<String, Language> {
    let mut found = HashMap::new();
    for (_, bytes) in files.iter() {
        let Ok(text) = std::str::from_utf8(bytes) else { continue };
        for line in text.lines() {
            find_in_line(line, &mut found);
        }
    }
    found
}

fn find_in_line(line: &str, found: &mut HashMap<String, Language>) {
    // A line of minified code is read as code.
    if line.len() > 2_000 {
        return;
    }
    let words = || line.split(|c: char| c.is_whitespace() || "'\"`()[],;|&".contains(c));
    let mut language = None;
    for word in words().filter(|word| !word.is_empty()) {
        if let Some(starts) = executed_language(word) {
            language = Some(starts);
            continue;
        }
        let Some(known) = language else { continue };
        if word.starts_with('-') || SKIPPED.contains(&word) {
            continue;
        }
        language = None;
        let name = word.rsplit(['/', '\\']).next().unwrap_or(word);
        if name.contains('.') && !name.ends_with('.') {
            found.entry(name.to_owned()).or_insert(known);
        }
    }
}

/// The language of the file that a word executes.
fn executed_language(word: &str) -> Option<Language> {
    let name = word.rsplit('/').next().unwrap_or(word);
    let call = name.rsplit('.').next().unwrap_or(name);
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    match bare {
        "python" | "pypy" | "py" if !word.contains(".py") => Some(Language::Python),
        "sh" | "bash" | "dash" | "zsh" | "ksh" | "source" | "pwsh" | "powershell" => {
            (!word.contains('.')).then_some(Language::Shell)
        }
        "node" | "nodejs" | "deno" | "bun" | "tsx" | "ts-node" => {
            (!word.contains('.')).then_some(Language::JavaScript)
        }
        _ if EXECUTING_CALLS.contains(&call) => Some(Language::Python),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_after_interpreters_are_executed() {
        let executed = |line: &str| {
            let mut found = HashMap::new();
            find_in_line(line, &mut found);
            found.into_keys().collect::<Vec<_>>()
        };
        for line in [
            "Run `bash -e assets/logo.png`.",
            "subprocess.run([\"python3\", \"-u\", \"assets/logo.png\"])",
            "exec(open('assets/logo.png').read())",
            "runpy.run_path(\"logo.png\")",
            "sh < logo.png",
            "node ./logo.png --x",
        ] {
            assert_eq!(executed(line), ["logo.png"], "{line}");
        }
        for line in [
            "python3 -m resize logo.png",
            "Open logo.png with python.",
            "The file import.sh needs logo.png",
        ] {
            assert!(executed(line).is_empty(), "{line}: {:?}", executed(line));
        }
        assert_eq!(executed("python3 resize.py logo.png"), ["resize.py"]);
    }
}
