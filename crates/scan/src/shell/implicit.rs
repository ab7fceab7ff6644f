//! Code that starts without being named: through variables that programs obey, through what git
//! fetched, and in one line of another language.

use savoir_skill::Span;

use super::{ShellReader, tokens::Command};
use crate::{
    action::{Action, Actions, CodeOrigin, Taint},
    fragment::Language,
    host, sensitive_path,
};

/// Variables whose value is a file that a program reads as code or loads.
const STARTUP_FILES: [&str; 17] = [
    "BASH_ENV", "ENV", "ZDOTDIR", "PYTHONSTARTUP", "PYTHONPATH", "PYTHONHOME", "PERL5OPT",
    "PERL5LIB", "RUBYOPT", "RUBYLIB", "NODE_OPTIONS", "NODE_PATH", "LD_PRELOAD", "LD_AUDIT",
    "DYLD_INSERT_LIBRARIES", "JAVA_TOOL_OPTIONS", "CLASSPATH",
];

/// Variables whose value is a command that another program starts.
const STARTUP_COMMANDS: [&str; 17] = [
    "PROMPT_COMMAND", "GIT_SSH_COMMAND", "GIT_SSH", "GIT_ASKPASS", "SSH_ASKPASS",
    "GIT_EXTERNAL_DIFF", "GIT_PAGER", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "GIT_PROXY_COMMAND",
    "PAGER", "MANPAGER", "EDITOR", "VISUAL", "LESSOPEN", "BROWSER", "SUDO_ASKPASS",
];

/// Credentials of a machine. Settings of package managers are also parts of projects.
const MACHINE_CREDENTIALS: [&str; 8] = [
    "SSH keys", "GnuPG keys", "AWS credentials", "Kubernetes credentials", "stored passwords",
    "GitHub tokens", "Google Cloud credentials", "Azure credentials",
];

impl ShellReader {
    /// Records downloaded code that a program reads because a variable names it.
    pub(super) fn record_startup_variable(
        &mut self,
        variable: &str,
        text: &str,
        taint: &Taint,
        span: Span,
    ) {
        let is_command = STARTUP_COMMANDS.contains(&variable);
        if !is_command && !STARTUP_FILES.contains(&variable) {
            return;
        }
        if is_command {
            self.actions.push_embedded(text.to_owned(), None, Some(Language::Shell), span);
        }
        let mut parts = text.split([' ', '=', ':']).filter(|part| !part.is_empty());
        let from =
            parts.find_map(|path| self.written_file_taint(path.trim_start_matches("./")).fetched);
        if let Some(from) = from.or_else(|| taint.fetched.clone()) {
            self.actions.push(Action::ExecutesCode(CodeOrigin::Fetched(from)), span);
        }
    }

    /// As [`Self::record_startup_variable`], for `export NAME=value` and `env NAME=value command`.
    pub(super) fn record_startup_arguments(&mut self, command: &Command, span: Span) {
        for word in &command.words {
            if let Some((variable, text)) = word.text.split_once('=') {
                self.record_startup_variable(variable, text, &Taint::default(), span);
            }
        }
    }

    /// Follows files that git fetches, and credentials that it commits and pushes.
    pub(super) fn read_git_transfer(&mut self, texts: &[&str], span: Span, taint: &mut Taint) {
        let has = |words: &[&str]| texts.iter().any(|text| words.contains(text));
        if has(&["fetch", "pull", "clone"]) {
            let source = self.remote_address(texts);
            self.git_source = source.or_else(|| self.git_source.take());
        }
        if has(&["cat-file", "show", "archive"])
            && texts.iter().any(|text| text.contains("FETCH_HEAD") || text.starts_with("--remote"))
        {
            taint.fetched = self.git_source.clone().or_else(|| self.remote_address(texts));
        }
        if has(&["add", "stage", "update-index", "hash-object"]) {
            let mut found = texts.iter().filter_map(|text| sensitive_path::credential_at(text));
            let found = found.find(|what| MACHINE_CREDENTIALS.contains(what));
            self.git_staged = found.or(self.git_staged);
        }
        if let Some(what) = self.git_staged.filter(|_| has(&["push", "send-pack"])) {
            let to = self.remote_address(texts).unwrap_or_default();
            let sends = Taint::credential(what);
            self.actions.push(Action::Connects { to, sends, log_in: Vec::new() }, span);
        }
    }
}

/// Whether a call is a method or the end of a longer name: `pattern.exec(`.
fn is_part_of_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '.' | '_')
}

/// Calls that compile a text, in any language.
const EVALUATORS: [&str; 6] =
    ["eval(", "eval ", "exec(", "Function(", "instance_eval", "runInThisContext("];

/// Calls that read an address, in languages that are not read as code.
const READERS_OF_ADDRESSES: [&str; 8] = [
    "ContentsOfURL", "URLWithString", "file_get_contents(", "LWP::Simple", "HTTP::Tiny",
    "Net::HTTP", "URI.open", "urlopen(",
];

/// Finds a line that compiles what it reads from an address, such as in a launch agent:
/// `eval($.NSString.stringWithContentsOfURL($.NSURL.URLWithString('https://…')))`.
pub(super) fn find_inline_loaders(text: &str, actions: &mut Actions) {
    if !READERS_OF_ADDRESSES.iter().any(|mark| text.contains(mark)) {
        return;
    }
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let reads = READERS_OF_ADDRESSES.iter().filter_map(|mark| line.find(mark)).min();
        let compiles = EVALUATORS.iter().filter_map(|mark| line.find(mark)).min();
        let compiles = compiles.filter(|at| !line[..*at].ends_with(is_part_of_name));
        if let (Some(reads), Some(compiles)) = (reads, compiles)
            && compiles < reads
            && let Some((_, url)) = host::find_urls(line).first()
        {
            let span = Span::new(at + compiles, at + reads);
            actions.push(Action::ExecutesCode(CodeOrigin::Fetched((*url).to_owned())), span);
        }
        at += line.len();
    }
}
