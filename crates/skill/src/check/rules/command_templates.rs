//! Checks commands of gibb.eri.sh tools, which run without a shell.

use savoir_lint::{Diagnostic, Span, words::nearest};

use crate::{
    check::{Context, rule::rule},
    command::{CommandTemplate, Fragment, Token, fragments, shell_operators, tokenize_block},
    dialect::{
        BodyUse,
        command_tools::{self, CommandToolSpans},
    },
    limits::MAX_FINDINGS_PER_RULE,
    skill::{Runner, Tool},
    template::is_word,
};

rule! {
    /// A command needs a shell, but commands run without one.
    ///
    /// ## Why
    ///
    /// The command is split into words and started as it is. A pipe, a redirection, a variable or
    /// a pattern is passed to the program as plain text.
    ///
    /// ## Bad
    ///
    /// ````markdown dialect=gibberish
    /// ---
    /// name: demo
    /// version: 1.0.0
    /// description: Shows a rule.
    /// ---
    /// ### count_files
    ///
    /// Count the files of a folder.
    ///
    /// #### Parameters
    ///
    /// None.
    ///
    /// #### Command
    ///
    /// ```bash
    /// ls -1 | wc -l
    /// ```
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown dialect=gibberish with=scripts/count.sh
    /// ---
    /// name: demo
    /// version: 1.0.0
    /// description: Shows a rule.
    /// ---
    /// ### count_files
    ///
    /// Count the files of a folder.
    ///
    /// #### Parameters
    ///
    /// None.
    ///
    /// #### Command
    ///
    /// ```bash
    /// ./scripts/count.sh
    /// ```
    /// ````
    SHELL_OPERATOR = "shell-operator", Warning, run commands
}

rule! {
    /// A flag is followed by a value that may be missing.
    ///
    /// ## Why
    ///
    /// Without a value, only the placeholder is dropped. The flag stays and takes the next
    /// argument as its value.
    ///
    /// ## Bad
    ///
    /// ````markdown dialect=gibberish
    /// ---
    /// name: demo
    /// version: 1.0.0
    /// description: Shows a rule.
    /// ---
    /// ### show_log
    ///
    /// Show the last commits.
    ///
    /// #### Parameters
    ///
    /// | Name | Type | Required | Description |
    /// |------|------|----------|-------------|
    /// | count | integer | no | How many |
    ///
    /// #### Command
    ///
    /// ```bash
    /// git log -n {{count}} --oneline
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
    /// ### show_log
    ///
    /// Show the last commits.
    ///
    /// #### Parameters
    ///
    /// | Name | Type | Required | Description |
    /// |------|------|----------|-------------|
    /// | count | integer | no | How many (default: 10) |
    ///
    /// #### Command
    ///
    /// ```bash
    /// git log -n {{count}} --oneline
    /// ```
    /// ````
    DANGLING_FLAG = "dangling-flag", Warning
}

rule! {
    /// A command uses a parameter that its table does not declare.
    ///
    /// ## Why
    ///
    /// The model does not know the parameter, so the argument is missing from every call.
    ///
    /// ## Bad
    ///
    /// ````markdown dialect=gibberish
    /// ---
    /// name: demo
    /// version: 1.0.0
    /// description: Shows a rule.
    /// ---
    /// ### list_files
    ///
    /// List a folder.
    ///
    /// #### Parameters
    ///
    /// None.
    ///
    /// #### Command
    ///
    /// ```bash
    /// ls -- {{folder}}
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
    /// ### list_files
    ///
    /// List a folder.
    ///
    /// #### Parameters
    ///
    /// | Name | Type | Required | Description |
    /// |------|------|----------|-------------|
    /// | folder | string | yes | The folder |
    ///
    /// #### Command
    ///
    /// ```bash
    /// ls -- {{folder}}
    /// ```
    /// ````
    UNDECLARED_PARAMETER = "undeclared-parameter", Warning
}

rule! {
    /// Double braces in a command look like a placeholder, and are none.
    ///
    /// ## Why
    ///
    /// A placeholder is `{{name}}` or `{{name:text}}`, without blanks unless the word is in quotes.
    /// The program gets anything else as plain text.
    ///
    /// ## Bad
    ///
    /// ````markdown dialect=gibberish
    /// ---
    /// name: demo
    /// version: 1.0.0
    /// description: Shows a rule.
    /// ---
    /// ### list_files
    ///
    /// List a folder.
    ///
    /// #### Parameters
    ///
    /// | Name | Type | Required | Description |
    /// |------|------|----------|-------------|
    /// | folder | string | yes | The folder |
    ///
    /// #### Command
    ///
    /// ```bash
    /// ls -- "{{ folder }}"
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
    /// ### list_files
    ///
    /// List a folder.
    ///
    /// #### Parameters
    ///
    /// | Name | Type | Required | Description |
    /// |------|------|----------|-------------|
    /// | folder | string | yes | The folder |
    ///
    /// #### Command
    ///
    /// ```bash
    /// ls -- {{folder}}
    /// ```
    /// ````
    NOT_A_PLACEHOLDER = "not-a-placeholder", Warning
}

rule! {
    /// A parameter is declared, and the command does not use it.
    ///
    /// ## Why
    ///
    /// The model fills it in and expects an effect that never comes.
    ///
    /// ## Bad
    ///
    /// ````markdown dialect=gibberish
    /// ---
    /// name: demo
    /// version: 1.0.0
    /// description: Shows a rule.
    /// ---
    /// ### list_files
    ///
    /// List a folder.
    ///
    /// #### Parameters
    ///
    /// | Name | Type | Required | Description |
    /// |------|------|----------|-------------|
    /// | folder | string | yes | The folder |
    ///
    /// #### Command
    ///
    /// ```bash
    /// ls
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
    /// ### list_files
    ///
    /// List a folder.
    ///
    /// #### Parameters
    ///
    /// | Name | Type | Required | Description |
    /// |------|------|----------|-------------|
    /// | folder | string | yes | The folder |
    ///
    /// #### Command
    ///
    /// ```bash
    /// ls -- {{folder}}
    /// ```
    /// ````
    UNUSED_PARAMETER = "unused-parameter", Warning
}

rule! {
    /// A command starts a script that the skill does not contain.
    ///
    /// ## Why
    ///
    /// A program with a relative path must be inside the folder of the skill; without it, every
    /// call of the tool fails.
    ///
    /// ## Bad
    ///
    /// ````markdown dialect=gibberish with=scripts/count.sh
    /// ---
    /// name: demo
    /// version: 1.0.0
    /// description: Shows a rule.
    /// ---
    /// ### count_files
    ///
    /// Count the files of a folder.
    ///
    /// #### Parameters
    ///
    /// None.
    ///
    /// #### Command
    ///
    /// ```bash
    /// ./count.sh
    /// ```
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown dialect=gibberish with=scripts/count.sh
    /// ---
    /// name: demo
    /// version: 1.0.0
    /// description: Shows a rule.
    /// ---
    /// ### count_files
    ///
    /// Count the files of a folder.
    ///
    /// #### Parameters
    ///
    /// None.
    ///
    /// #### Command
    ///
    /// ```bash
    /// ./scripts/count.sh
    /// ```
    /// ````
    MISSING_SCRIPT = "missing-script", Error
}

/// One walk over the tools for all rules about commands.
fn commands(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    if context.conventions().body != BodyUse::Tools || context.reading.skill.tools.is_empty() {
        return;
    }
    let document = &context.reading.document;
    let text = document.text();
    let all_spans = command_tools::command_tool_spans(document);
    let before = found.len();
    let mut from = 0;
    for tool in &context.reading.skill.tools {
        let Runner::Command(command) = &tool.runner else { continue };
        // Tools are in the order of their sections; a second section of the same name is not a tool.
        let is_it = |spans: &CommandToolSpans| spans.name.slice(text) == tool.name;
        let Some(at) = all_spans[from..].iter().position(is_it) else { continue };
        let spans = &all_spans[from + at];
        from += at + 1;
        let Ok(tokens) = tokenize_block(spans.command.slice(text)) else { continue };
        let words: Vec<Word> = tokens.iter().map(|token| Word::new(token, spans.command)).collect();
        let call = ToolCommand { tool, command, spans, tokens: &tokens, words: &words };
        call.operators(found);
        call.flags(found);
        call.parameters(found);
        call.wrong_placeholders(text, found);
        call.script(context, found);
        call.program_texts(found);
        call.missing_program(context, found);
        call.network(context, found);
        if found.len() - before >= MAX_FINDINGS_PER_RULE {
            return;
        }
    }
}

/// A word of the command and its place in the file.
pub(super) struct Word {
    pub(super) text: String,
    pub(super) span: Span,
}

impl Word {
    fn new(token: &Token, command: Span) -> Self {
        let range = token.range();
        Self { text: token.text(), span: Span::new(range.start, range.end).shifted(command.start) }
    }

    fn uses(&self, name: &str) -> bool {
        fragments(&self.text)
            .iter()
            .any(|part| matches!(part, Fragment::Variable { name: used, .. } if used == name))
    }
}

/// A tool and its command with their positions.
pub(super) struct ToolCommand<'a> {
    pub(super) tool: &'a Tool,
    pub(super) command: &'a CommandTemplate,
    pub(super) spans: &'a CommandToolSpans,
    tokens: &'a [Token],
    pub(super) words: &'a [Word],
}

impl ToolCommand<'_> {
    fn operators(&self, found: &mut Vec<Diagnostic>) {
        for operator in shell_operators(self.tokens) {
            let word = Word::new(operator.token, self.spans.command);
            found.push(
                Diagnostic::warning(SHELL_OPERATOR.code, word.span, operator.problem())
                    .field(self.tool.name.clone())
                    .help("put the line into a script of the skill and call that; quote it if it is text"),
            );
        }
    }

    fn flags(&self, found: &mut Vec<Diagnostic>) {
        for dangling in self.command.dangling_flags(&self.tool.parameters) {
            let mut pairs = self.words.windows(2);
            let pair = pairs
                .find(|pair| pair[0].text == dangling.flag && pair[1].uses(dangling.parameter));
            let span = pair
                .map_or(self.spans.command, |pair| Span::new(pair[0].span.start, pair[1].span.end));
            let (flag, name) = (dangling.flag, dangling.parameter);
            let message = format!("`{flag}` remains without a value when `{name}` is not given");
            let help = if flag.starts_with("--") {
                format!("write `{flag}={{{{{name}}}}}`, or give the parameter a default")
            } else {
                format!("give `{name}` a default, or require it")
            };
            found.push(
                Diagnostic::warning(DANGLING_FLAG.code, span, message)
                    .field(self.tool.name.clone())
                    .help(help),
            );
        }
    }

    fn parameters(&self, found: &mut Vec<Diagnostic>) {
        let declared = &self.tool.parameters;
        let mut reported: Vec<&str> = Vec::new();
        for name in self.command.variables() {
            if declared.iter().any(|parameter| parameter.name == name) || reported.contains(&name) {
                continue;
            }
            reported.push(name);
            let word = self.words.iter().find(|word| word.uses(name));
            let span = word.map_or(self.spans.command, |word| word.span);
            let message = format!("the tool `{}` declares no parameter `{name}`", self.tool.name);
            let problem = Diagnostic::warning(UNDECLARED_PARAMETER.code, span, message)
                .field(self.tool.name.clone());
            found.push(match nearest(name, declared.iter().map(|known| known.name.as_str())) {
                Some(near) => problem.help(format!("did you mean `{near}`?")),
                None => problem.help("add a row for it to the table of parameters"),
            });
        }
        for parameter in declared {
            if self.command.variables().any(|name| name == parameter.name) {
                continue;
            }
            let name = &parameter.name;
            let row = self.spans.rows.iter().find(|(row, _)| row == name);
            let span = row.map_or(self.spans.name, |(_, span)| *span);
            let message = format!("the command of `{}` does not use `{name}`", self.tool.name);
            found.push(
                Diagnostic::warning(UNUSED_PARAMETER.code, span, message)
                    .field(self.tool.name.clone())
                    .help(format!("put `{{{{{name}}}}}` into the command, or remove the row")),
            );
        }
    }

    /// Reports braces around the name of a parameter, or around one word, that are no placeholder.
    /// Programs have templates of their own, such as `{{.Names}}`.
    fn wrong_placeholders(&self, text: &str, found: &mut Vec<Diagnostic>) {
        let command = self.spans.command.slice(text);
        for (start, _) in command.match_indices("{{") {
            let Some(length) = command[start..].find("}}") else { return };
            let inside = command[start + 2..start + length].trim_start();
            let inside = inside.strip_prefix('#').unwrap_or(inside);
            let name = inside.split(|c: char| !is_word(c)).next().unwrap_or_default();
            let is_name = !name.is_empty() && inside.trim_end() == name;
            let is_parameter = self.tool.parameters.iter().any(|known| known.name == name);
            let span = Span::new(start, start + length + 2).shifted(self.spans.command.start);
            let is_used = |word: &Word| {
                word.span.start <= span.start && span.end <= word.span.end && word.uses(name)
            };
            if !(is_name || is_parameter) || self.words.iter().any(is_used) {
                continue;
            }
            let message = format!("`{}` is not a placeholder", span.slice(text));
            found.push(
                Diagnostic::warning(NOT_A_PLACEHOLDER.code, span, message)
                    .field(self.tool.name.clone())
                    .help(format!("write `{{{{{name}}}}}`; quote a word with blanks")),
            );
        }
    }

    fn script(&self, context: &Context<'_>, found: &mut Vec<Diagnostic>) {
        let program = &self.command.program;
        let at = self.command.environment.len();
        if !program.contains('/') || program.starts_with(['/', '~', '$']) {
            self.interpreted_script(context, found);
            return;
        }
        let span = self.words.get(at).map_or(self.spans.command, |word| word.span);
        let problem = match (inside(program), context.folder) {
            (None, _) => format!("`{program}` leaves the folder of the skill"),
            (Some(path), Some(folder)) if folder.has_folder(&path) => {
                format!("`{path}` is a folder, not a program")
            }
            (Some(path), Some(folder)) if !folder.has(&path) => {
                format!("the skill does not contain the file `{path}`")
            }
            (Some(path), _) => return self.interpreter(context, &path, span, found),
        };
        found.push(
            Diagnostic::error(MISSING_SCRIPT.code, span, problem)
                .field(self.tool.name.clone())
                .help("add the script to the skill, and call it by its path from SKILL.md"),
        );
    }
}

impl ToolCommand<'_> {
    /// `python3 scripts/x.py`: the file may be one of the user, so that it is a warning.
    fn interpreted_script(&self, context: &Context<'_>, found: &mut Vec<Diagnostic>) {
        let Some(folder) = context.folder else { return };
        let runs_scripts = INTERPRETERS.contains(&self.command.program.as_str());
        let mut words = self.words.iter().skip(self.command.environment.len() + 1);
        let script = words.find(|word| !word.text.starts_with('-')).filter(|_| runs_scripts);
        let Some(word) = script else { return };
        let is_script = SCRIPT_ENDS.iter().any(|end| word.text.ends_with(end));
        let has_options = self.command.args.first().is_some_and(|arg| arg.text().starts_with('-'));
        if !is_script || has_options || word.text.starts_with(['/', '~', '$', '{']) {
            return;
        }
        let Some(path) = inside(&word.text).filter(|path| path.contains('/')) else { return };
        if folder.has(&path) {
            return;
        }
        let problem = format!("the skill does not contain the file `{path}`");
        found.push(
            Diagnostic::warning(MISSING_SCRIPT.code, word.span, problem)
                .field(self.tool.name.clone())
                .help("add the script to the skill; a file of the user is better a parameter"),
        );
    }
}

/// Programs that take the path of a script first.
const INTERPRETERS: [&str; 11] =
    ["sh", "bash", "zsh", "python", "python3", "node", "deno", "bun", "ruby", "perl", "php"];

/// How scripts end.
const SCRIPT_ENDS: [&str; 9] = [".sh", ".bash", ".py", ".js", ".mjs", ".ts", ".rb", ".pl", ".php"];

/// The path without dots; `None` when it climbs out.
fn inside(path: &str) -> Option<String> {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        check::{
            Options,
            rules::testing::{find_with, folder},
        },
        dialect::Dialect,
    };

    fn text(rows: &str, command: &str) -> String {
        format!(
            "---\nname: demo\nversion: 1.0.0\ndescription: d\n---\n### t\n\nDoes.\n\n#### Parameters\n\n\
             | Name | Type | Required | Description |\n|---|---|---|---|\n{rows}\n#### Command\n\n```bash\n{command}\n```\n"
        )
    }

    fn all_spans(code: &str, rows: &str, command: &str) -> Vec<String> {
        let text = text(rows, command);
        let options = Options { dialect: Some(Dialect::GIBBERISH), ..Options::default() };
        let found = find_with(code, &text, Some(&folder("demo", &["scripts/a.sh"])), &options);
        found.iter().map(|found| found.span.slice(&text).to_owned()).collect()
    }

    #[test]
    fn operators_are_reported_at_their_positions() {
        let command = "# say it\nls *.md | wc -l > out.txt";
        assert_eq!(all_spans(SHELL_OPERATOR.code, "", command), ["*.md", "|", ">"]);
        assert!(all_spans(SHELL_OPERATOR.code, "", "rg 'a|b' \"x;y\"").is_empty());
    }

    #[test]
    fn flags_need_their_value() {
        let row = "| n | integer | no | How many |\n";
        assert_eq!(all_spans(DANGLING_FLAG.code, row, "git log -n {{n}}"), ["-n {{n}}"]);
        assert!(all_spans(DANGLING_FLAG.code, row, "git log --max={{n}}").is_empty());
        let required = "| n | integer | yes | How many |\n";
        assert!(all_spans(DANGLING_FLAG.code, required, "git log -n {{n}}").is_empty());
    }

    #[test]
    fn table_and_command_agree() {
        let row = "| `folder` | string | yes | Where |\n";
        assert_eq!(
            all_spans(UNDECLARED_PARAMETER.code, row, "ls {{folder}} {{x}} {{x:-l}}"),
            ["{{x}}"]
        );
        assert_eq!(
            all_spans(UNUSED_PARAMETER.code, row, "ls {{foldr}}"),
            ["| `folder` | string | yes | Where |"]
        );
        assert!(all_spans(UNUSED_PARAMETER.code, row, "ls --x='a {{folder}}'").is_empty());
    }

    #[test]
    fn braces_that_are_no_placeholder_are_reported() {
        let row = "| x | string | yes | What |\n";
        let spans = |command| all_spans(NOT_A_PLACEHOLDER.code, row, command);
        assert_eq!(spans("echo {{x:a b}} {{ x }}"), ["{{x:a b}}", "{{ x }}"]);
        assert_eq!(spans("git diff {{#staged}} --n={{x-y}}"), ["{{#staged}}", "{{x-y}}"]);
        assert!(spans("echo '{{.Names}}' {{x}} {{x:-l}} {a} '{{y' x}}").is_empty());
    }

    #[test]
    fn inputs_inside_program_code_are_reported() {
        let row = "| x | string | yes | What |\n";
        let code = "placeholder-in-program";
        for (command, text) in [
            ("bash -c \"echo {{x}}\"", "\"echo {{x}}\""),
            ("/bin/sh -ec 'ls {{x}}'", "'ls {{x}}'"),
            ("python3 -c \"print({{x}})\"", "\"print({{x}})\""),
            ("env A=b node --eval 'f({{x}})'", "'f({{x}})'"),
            ("bash -c {{x}}", "{{x}}"),
            ("git -c {{x}} log", "{{x}}"),
        ] {
            assert_eq!(all_spans(code, row, command), [text], "{command}");
        }
        for command in [
            "bash -c 'echo \"$1\"' bash {{x}}",
            "python3 -c 'import sys; print(sys.argv[1])' {{x}}",
            "python3 scripts/a.py -c {{x}}",
            "grep -c {{x}} file",
        ] {
            assert!(all_spans(code, row, command).is_empty(), "{command}");
        }
    }

    #[test]
    fn scripts_must_be_inside_the_skill() {
        assert!(all_spans(MISSING_SCRIPT.code, "", "./scripts/a.sh x").is_empty());
        assert!(all_spans(MISSING_SCRIPT.code, "", "scripts/../scripts/a.sh").is_empty());
        assert_eq!(all_spans(MISSING_SCRIPT.code, "", "scripts/b.sh x"), ["scripts/b.sh"]);
        assert_eq!(all_spans(MISSING_SCRIPT.code, "", "../x/a.sh"), ["../x/a.sh"]);
        assert_eq!(all_spans(MISSING_SCRIPT.code, "", "./scripts"), ["./scripts"]);
        assert!(all_spans(MISSING_SCRIPT.code, "", "git log").is_empty());
        assert!(all_spans(MISSING_SCRIPT.code, "", "/bin/ls").is_empty());
    }
}
