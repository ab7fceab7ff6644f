//! Analyzes code that is passed to an interpreter.

use savoir_skill::Span;

use super::{
    SHELLS, ShellReader,
    fetch::is_standard_input,
    language_of,
    tokens::{Command, Word},
};
use crate::{
    action::{Action, CodeOrigin, Taint},
    decode,
    fragment::Language,
    host,
};

/// Whether a program executes all of its arguments.
fn runs_all(name: &str) -> bool {
    matches!(name, "eval" | "iex" | "invoke-expression" | "osascript")
}

/// Whether a path is a script, judging by its extension.
fn is_script_file(path: &str) -> bool {
    const EXTENSIONS: [&str; 10] =
        [".sh", ".bash", ".py", ".js", ".mjs", ".cjs", ".ts", ".pl", ".rb", ".ps1"];
    EXTENSIONS.iter().any(|extension| path.ends_with(extension))
}

impl ShellReader {
    /// Finds a shell in the arguments: `kubectl debug node -- sh -c '…'`, `docker run image bash -c
    /// '…'`.
    pub(super) fn find_shell_in_arguments(&mut self, name: &str, arguments: &[Word]) {
        if SHELLS.contains(&name) {
            return;
        }
        if let Some(last) = arguments.last().filter(|last| name == "ssh" && last.text.contains(' '))
        {
            self.actions.push_embedded(last.text.clone(), None, Some(Language::Shell), last.span);
        }
        for words in arguments.windows(3) {
            let program = words[0].text.rsplit('/').next().unwrap_or_default();
            let flag = words[1].text.as_str();
            if SHELLS.contains(&program) && matches!(flag, "-c" | "-lc" | "-ec") {
                self.actions.push_embedded(
                    words[2].text.clone(),
                    None,
                    language_of(program),
                    words[2].span,
                );
            }
        }
    }

    /// Records that code on the command line sends its arguments or its input to a host.
    fn record_code_with_arguments(
        &mut self,
        code: &Word,
        arguments: &[Word],
        flow: &Taint,
        span: Span,
    ) {
        let reads = ["argv", "ARGV", "stdin", "STDIN", "$1", "$@"];
        let Some((_, url)) = host::find_urls(&code.text).first().copied() else { return };
        if !reads.iter().any(|mark| code.text.contains(mark)) {
            return;
        }
        let mut sends = flow.clone();
        for word in arguments.iter().filter(|word| !std::ptr::eq(*word, code)) {
            sends.add(&self.word_taint(word, span));
        }
        sends.fetched = None;
        if sends.is_secret() {
            let to = url.to_owned();
            self.actions.push(Action::Connects { to, sends, log_in: Vec::new() }, span);
        }
    }

    /// Records the code that an interpreter executes: from arguments, a file, a pipe or a
    /// here-document.
    pub(super) fn interpret(
        &mut self,
        name: &str,
        arguments: &[Word],
        command: &Command,
        flow: &Taint,
        printed: Option<&str>,
        span: Span,
    ) {
        let language = language_of(name);
        if let Some(input) = command.input.as_deref().or(printed) {
            self.actions.push_embedded(input.to_owned(), None, language, span);
        }
        let mut taint = Taint::default();
        if let Some(here) = &command.here {
            taint.add(&self.word_taint(here, span));
        }
        let script = arguments.iter().find(|word| !word.text.starts_with('-') || word.text == "-");
        // `bash -s install` reads the script from the pipe; `install` is an argument of the script.
        let piped = matches!(language, Some(Language::Shell))
            && arguments
                .iter()
                .take_while(|word| word.text.starts_with('-'))
                .any(|word| !word.text.starts_with("--") && word.text.contains('s'));
        if piped
            || script.is_none_or(|word| is_standard_input(&word.text))
            || matches!(name, "iex" | "invoke-expression")
        {
            taint.add(flow);
        }
        for redirect in command.redirects.iter().filter(|redirect| !redirect.writes) {
            for substitution in &redirect.target.substitutions {
                taint.add(&self.substitution(substitution, span));
            }
        }
        // What follows the script are its arguments, which are data, unless they look like code.
        let mut is_after_script = false;
        for word in arguments {
            let is_code = !is_after_script || is_script_file(&word.text) || runs_all(name);
            is_after_script |= script.is_some_and(|script| std::ptr::eq(script, word));
            for substitution in word.substitutions.iter().filter(|_| is_code) {
                taint.add(&self.substitution(substitution, span));
            }
            let path = word.text.strip_prefix("./").unwrap_or(&word.text);
            let known = self.files.get(&word.text).or_else(|| self.files.get(path));
            if let Some(known) = known.cloned().filter(|_| is_code) {
                taint.add(&known);
            }
        }
        let flagged = |flags: &[&str]| {
            let at = arguments
                .iter()
                .position(|word| flags.contains(&word.text.to_ascii_lowercase().as_str()));
            at.and_then(|at| arguments.get(at + 1))
        };
        if let Some(code) = flagged(&["-c", "-e", "--eval", "-lc", "-ic", "-command", "/c"]) {
            self.actions.push_embedded(code.text.clone(), None, language, code.span);
            let code = code.clone();
            self.record_code_with_arguments(&code, arguments, flow, span);
            taint.add(&self.word_taint(&code, span));
            if command.words.first().is_some_and(|word| word.text == "xargs") {
                taint.add(flow);
            }
        } else if name == "eval" {
            let text =
                arguments.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ");
            self.actions.push_embedded(text, None, language, span);
            for word in arguments {
                taint.add(&self.word_taint(word, span));
            }
        }
        if let Some(code) = flagged(&["-e", "-r", "-ne", "-le", "-E"])
            && matches!(name, "perl" | "ruby" | "php")
            && let Some((_, url)) = host::find_urls(&code.text).first()
            && ["eval", "exec", "system", "`", "include"]
                .iter()
                .any(|word| code.text.contains(word))
        {
            taint.fetched = Some((*url).to_owned());
        }
        if let Some(code) = flagged(&["-enc", "-encodedcommand", "-ec", "-e"])
            && matches!(name, "powershell" | "pwsh")
        {
            taint.decoded = true;
            if let Some(text) = decode::decode_base64(&code.text) {
                self.actions.push_embedded(
                    text,
                    Some("an encoded text"),
                    Some(Language::Shell),
                    span,
                );
            }
        }
        if matches!(name, "iex" | "invoke-expression" | "powershell" | "pwsh") {
            let text = arguments
                .iter()
                .map(|word| word.text.to_ascii_lowercase())
                .collect::<Vec<_>>()
                .join(" ");
            if text.contains("downloadstring")
                || text.contains("net.webclient")
                || text.contains("invoke-webrequest")
            {
                let url = host::find_urls(&text).first().map(|(_, url)| (*url).to_owned());
                taint.fetched = Some(url.unwrap_or_default());
            }
        }
        if let Some(from) = taint.fetched {
            self.actions.push(Action::ExecutesCode(CodeOrigin::Fetched(from)), span);
        }
        if taint.decoded {
            self.actions.push(Action::ExecutesCode(CodeOrigin::Decoded), span);
        }
    }
}
