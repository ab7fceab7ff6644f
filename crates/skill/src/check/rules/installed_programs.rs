//! Finds commands whose program is not installed on this machine.

use savoir_lint::Diagnostic;

use super::command_templates::ToolCommand;
use crate::check::{Context, rule::rule};

rule! {
    /// The program of a command is not installed on this machine.
    ///
    /// ## Why
    ///
    /// The tool fails here, and the name may be misspelt. Ignore the rule for a skill that is
    /// written for other machines.
    ///
    /// ## Bad
    ///
    /// ````markdown dialect=gibberish programs=/usr/bin
    /// ---
    /// name: demo
    /// version: 1.0.0
    /// description: Shows a rule.
    /// ---
    /// ### list_files
    ///
    /// List the files of a folder.
    ///
    /// #### Parameters
    ///
    /// None.
    ///
    /// #### Command
    ///
    /// ```bash
    /// lss -1
    /// ```
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown dialect=gibberish programs=/usr/bin
    /// ---
    /// name: demo
    /// version: 1.0.0
    /// description: Shows a rule.
    /// ---
    /// ### list_files
    ///
    /// List the files of a folder.
    ///
    /// #### Parameters
    ///
    /// None.
    ///
    /// #### Command
    ///
    /// ```bash
    /// ls -1
    /// ```
    /// ````
    PROGRAM_NOT_INSTALLED = "program-not-installed", Warning
}

impl ToolCommand<'_> {
    /// Finds a program that no folder has, if the caller says where programs are.
    pub(super) fn missing_program(&self, context: &Context<'_>, found: &mut Vec<Diagnostic>) {
        let (program, folders) = (&self.command.program, &context.options.programs);
        let has = |name: &str| folders.iter().any(|folder| folder.join(name).is_file());
        if folders.is_empty() || program.contains('/') || has(program) {
            return;
        }
        let word = self.words.get(self.command.environment.len());
        let span = word.map_or(self.spans.command, |word| word.span);
        let message = format!("`{program}` is not installed on this machine");
        found.push(
            Diagnostic::warning(PROGRAM_NOT_INSTALLED.code, span, message)
                .field(self.tool.name.clone())
                .help("install it, or correct the name"),
        );
    }
}
