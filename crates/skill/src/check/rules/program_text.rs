//! Finds inputs that become part of program code.

use savoir_lint::Diagnostic;

use super::command_templates::ToolCommand;
use crate::check::rule::rule;

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
    /// Finds placeholders in the texts of programs.
    pub(super) fn program_texts(&self, found: &mut Vec<Diagnostic>) {
        for text in self.command.program_texts() {
            let word = self.words.get(self.command.environment.len() + text.word);
            let span = word.map_or(self.spans.command, |word| word.span);
            found.push(
                Diagnostic::error(PLACEHOLDER_IN_PROGRAM.code, span, text.problem())
                    .field(self.tool.name.clone())
                    .help(text.rewrite),
            );
        }
    }
}
