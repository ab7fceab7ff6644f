//! Inputs that become a part of a program.

use super::command_templates::Call;
use crate::{
    check::rule::rule,
    command::{Fragment, fragments},
    diagnostic::Diagnostic,
};

rule! {
    /// A placeholder stands inside the text of a program.
    ///
    /// ## Why
    ///
    /// There is no shell between the command and its program, so that an input is one argument whatever
    /// it holds. `bash -c` and `python3 -c` start a new reader: there an input with a quote or a
    /// semicolon becomes a part of the program, and whoever chooses the input chooses what runs.
    ///
    /// ## Bad
    ///
    /// ````markdown dialect=gibberish
    /// ---
    /// name: demo
    /// version: 1.0.0
    /// description: Shows a rule.
    /// ---
    /// ### greet
    ///
    /// Greet somebody.
    ///
    /// #### Parameters
    ///
    /// | Name | Type | Required | Description |
    /// |------|------|----------|-------------|
    /// | who | string | yes | Whom to greet |
    ///
    /// #### Command
    ///
    /// ```bash
    /// bash -c "echo Hello {{who}}"
    /// ```
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown dialect=gibberish
    /// ---
    /// name: demo
    /// version: 1.0.0
    /// description: Shows a rule.
    /// ---
    /// ### greet
    ///
    /// Greet somebody.
    ///
    /// #### Parameters
    ///
    /// | Name | Type | Required | Description |
    /// |------|------|----------|-------------|
    /// | who | string | yes | Whom to greet |
    ///
    /// #### Command
    ///
    /// ```bash
    /// bash -c 'echo Hello "$1"' bash {{who}}
    /// ```
    /// ````
    PLACEHOLDER_IN_PROGRAM = "placeholder-in-program", Error
}

/// Programs that take the text of a program, by which option, and how that text gets an argument.
const READERS: [(&[&str], &[&str], &str); 7] = [
    (
        &["bash", "sh", "dash", "zsh", "ksh", "ash"],
        &["c"],
        "write `\"$1\"` in the text and put `NAME {{x}}` behind it: bash -c 'echo \"$1\"' bash {{x}}",
    ),
    (
        &["python", "python2", "python3", "pypy", "pypy3"],
        &["c"],
        "write `sys.argv[1]` in the text and put the placeholder behind it: python3 -c 'import sys; print(sys.argv[1])' {{x}}",
    ),
    (
        &["node", "nodejs", "deno", "bun"],
        &["e", "p", "pe", "eval", "print"],
        "write `process.argv[1]` in the text and put the placeholder behind it: node -e 'console.log(process.argv[1])' -- {{x}}",
    ),
    (
        &["perl"],
        &["e", "E", "ne", "pe", "le", "lne", "lpe"],
        "write `$ARGV[0]` in the text and put the placeholder behind it: perl -e 'print $ARGV[0]' -- {{x}}",
    ),
    (
        &["ruby"],
        &["e"],
        "write `ARGV[0]` in the text and put the placeholder behind it: ruby -e 'puts ARGV[0]' -- {{x}}",
    ),
    (
        &["php"],
        &["r"],
        "write `$argv[1]` in the text and put the placeholder behind it: php -r 'echo $argv[1];' -- {{x}}",
    ),
    (
        &["pwsh", "powershell"],
        &["c", "Command", "command"],
        "write a script with parameters, put it into the skill, and call it with `-File`",
    ),
];

impl Call<'_> {
    /// Finds placeholders in the texts of programs.
    pub(super) fn program_texts(&self, found: &mut Vec<Diagnostic>) {
        let mut reader = None;
        for pair in self.words.windows(2) {
            let [word, text] = pair else { continue };
            let name = word.text.rsplit('/').next().unwrap_or_default();
            if let Some(known) = READERS.iter().find(|(names, ..)| names.contains(&name)) {
                reader = Some((name, known));
                continue;
            }
            let Some((program, (names, options, help))) = reader else { continue };
            if !word.text.starts_with('-') {
                // What follows is for a script.
                reader = None;
            } else if takes_text(&word.text, names, options)
                && let Some(name) = placeholder(&text.text)
            {
                let message =
                    format!("`{{{{{name}}}}}` becomes a part of the program that `{program}` runs");
                found.push(
                    Diagnostic::error(PLACEHOLDER_IN_PROGRAM.code, text.span, message)
                        .field(self.tool.name.clone())
                        .help(help.replace("{{x}}", &format!("{{{{{name}}}}}"))),
                );
            }
        }
    }
}

fn placeholder(text: &str) -> Option<String> {
    fragments(text).into_iter().find_map(|part| match part {
        Fragment::Variable { name, .. } => Some(name),
        Fragment::Literal(_) => None,
    })
}

/// `-c`, and for a shell also `-lc` and `-ec`.
fn takes_text(word: &str, names: &[&str], options: &[&str]) -> bool {
    let Some(option) = word.strip_prefix("--").or_else(|| word.strip_prefix('-')) else {
        return false;
    };
    let together = names.contains(&"sh")
        && option.ends_with('c')
        && option.chars().all(|c| c.is_ascii_lowercase())
        && option.len() <= 4;
    options.contains(&option) || together
}
