//! Finds inputs that become part of program code.

use savoir_lint::Diagnostic;

use super::command_templates::ToolCommand;
use crate::{check::rule::rule, variable_name::is_variable_name};

rule! {
    /// A placeholder is inside the code of a program.
    ///
    /// ## Why
    ///
    /// Commands are started without a shell, so an input is always one argument. `bash -c` and
    /// `python3 -c`, however, parse their argument as code: there, an input with a quote or a
    /// semicolon becomes part of the program, and anyone who chooses the input can run code.
    /// `savoir run` rejects such a tool.
    ///
    /// Some other programs start programs that their arguments name, too: scripts of `sed`,
    /// settings after `git -c`, the words after the host of `ssh`, and statements for `sqlite3`,
    /// `psql` and `mysql`. There, an input that is an integer or a boolean is fine. A filter of
    /// `jq`, a script of `sed --sandbox` and a statement for `sqlite3 -safe` start no programs; for
    /// these, the finding is a warning, and the tool runs.
    ///
    /// The same holds for variables before the program that decide what runs, such as
    /// `LD_PRELOAD={{x}}` or `PATH={{x}}`.
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
    /// bash -c 'echo Hello "$1"' -- {{who}}
    /// ```
    /// ````
    PLACEHOLDER_IN_PROGRAM = "placeholder-in-program", Error
}

impl ToolCommand<'_> {
    /// Finds placeholders in the texts of programs, and in variables that decide what runs.
    pub(super) fn program_texts(&self, found: &mut Vec<Diagnostic>) {
        for text in self.command.program_texts(&self.tool.parameters) {
            let word = self.words.get(self.command.environment.len() + text.word);
            let span = word.map_or(self.spans.command, |word| word.span);
            let code = PLACEHOLDER_IN_PROGRAM.code;
            let problem = if text.executes {
                Diagnostic::error(code, span, text.problem())
            } else {
                Diagnostic::warning(code, span, text.problem())
            };
            found.push(problem.field(self.tool.name.clone()).help(text.rewrite));
        }
        for (at, (name, value)) in self.command.environment.iter().enumerate() {
            if !value.has_variables() || is_variable_name(name) {
                continue;
            }
            let span = self.words.get(at).map_or(self.spans.command, |word| word.span);
            let message =
                format!("the command puts a parameter into `{name}`, which changes what runs");
            found.push(
                Diagnostic::error(PLACEHOLDER_IN_PROGRAM.code, span, message)
                    .field(self.tool.name.clone())
                    .help("set it to a fixed value"),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::rules::testing::find;

    fn skill(command: &str) -> String {
        format!(
            "---\nname: demo\nversion: 1.0.0\ndescription: d\n---\n### t\n\nDoes it.\n\n#### Parameters\n\n\
             | Name | Type | Required | Description |\n|---|---|---|---|\n| x | string | yes | a |\n\n\
             #### Command\n\n```bash\n{command}\n```\n"
        )
    }

    #[test]
    fn findings_have_the_severity_of_their_consequence() {
        for (command, place, is_error) in [
            ("git -c alias.z=!{{x}} z", "alias.z=!{{x}}", true),
            ("LD_PRELOAD={{x}} echo a", "LD_PRELOAD={{x}}", true),
            ("A=1 PATH={{x}} echo a", "PATH={{x}}", true),
            ("A=1 jq .{{x}} a.json", ".{{x}}", false),
        ] {
            let text = skill(command);
            let found = find(PLACEHOLDER_IN_PROGRAM.code, &text);
            assert_eq!(found.len(), 1, "{command}: {found:?}");
            assert_eq!((found[0].span.slice(&text), found[0].is_error()), (place, is_error));
        }
        assert!(find(PLACEHOLDER_IN_PROGRAM.code, &skill("GREETING={{x}} echo a")).is_empty());
    }
}
