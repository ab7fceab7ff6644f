//! Reads shell scripts and records what they do as actions.
//!
//! [`read`] parses a text into pipelines and runs them through a `ShellReader`, which tracks the taint
//! (secrets, downloads, decoded text) of variables, files, function arguments and pipes.

mod cloud;
mod cross_file;
mod decoders;
mod destruction;
mod expansion;
mod fetch;
mod functions;
mod groups;
pub(super) use groups::UNCLOSED_GROUPS;
mod implicit;
mod installs;
mod interpret;
mod programs;
pub(super) mod tokens;

use std::{
    collections::{HashMap, HashSet},
    rc::Rc,
};

use savoir_skill::Span;

pub(super) use self::cross_file::{CrossFileShellState, sourced_scripts};
use self::{
    decoders::{Alphabet, is_decoder, prints_character_codes},
    expansion::KnownVariable,
    functions::ShellFunction,
    programs::{
        COMMAND_HISTORY, PROTECTION_SERVICES, TRUSTED_CERTIFICATES, TYPED_PASSWORD, encrypts,
        has_miner_arguments, is_escaped_numbers, is_flag, is_index_variable, is_remote, is_sender,
        makes_executable, matches_user_files, packs_into, path_taint, poses_as_system,
        saves_cookies, wipes_tracks,
    },
    tokens::{Command, Pipeline, Word},
};
use super::{
    action::{AGENT_PROMPTS, Action, Actions, CodeOrigin, DEVELOPMENT_TUNNEL, Taint},
    decode,
    fragment::Language,
    sensitive_path, value,
};

const FETCHERS: [&str; 12] = [
    "curl", "wget", "aria2c", "http", "https", "xh", "iwr", "irm", "invoke-webrequest",
    "invoke-restmethod", "lynx", "certutil",
];
const SHELLS: [&str; 8] = ["sh", "bash", "zsh", "dash", "ksh", "fish", "ash", "source"];
const INTERPRETERS: [&str; 16] = [
    "python", "python3", "python2", "node", "perl", "ruby", "php", "deno", "bun", "pwsh",
    "powershell", "iex", "invoke-expression", "osascript", "eval", ".",
];
const FILE_READERS: [&str; 30] = [
    "type", "copy", "xcopy", "findstr", "7z", "cat", "cp", "mv", "tar", "zip", "base64", "grep",
    "head", "tail", "less", "openssl", "xxd", "scp", "rsync", "sed", "awk", "find", "strings",
    "dd", "sqlite3", "gzip", "jq", "nc", "ncat", "tac",
];
/// Programs that turn any file into text that fits into a name.
const ENCODERS: [&str; 7] = ["base64", "base32", "basenc", "xxd", "od", "hexdump", "hd"];
const WRAPPERS: [&str; 15] = [
    "sudo", "nohup", "env", "command", "exec", "time", "doas", "setsid", "timeout", "xargs",
    "nice", "builtin", "shell", "busybox", "toybox",
];

/// The domain behind a variable in a host name: `z.example` in `$part.z.example`.
fn domain_after_variable(text: &str) -> Option<&str> {
    let at = text.rfind(['$', '}'])?;
    let (_, domain) = text[at..].split_once('.')?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '-';
    (domain.contains('.') && domain.chars().all(is_plain)).then_some(domain)
}

/// What a tunnel program prints: the address under which this machine can be reached.
const TUNNEL_ADDRESS: &str = "the address of a tunnel to this machine";

/// Whether a word names a port of a program that controls the machine: SSH, remote desktops,
/// terminals, Docker, browsers that are debugged.
fn is_remote_access_port(word: &str) -> bool {
    let port = word.rsplit([':', '=', '/']).next().unwrap_or(word);
    matches!(port, "22" | "2222" | "3389" | "5900" | "5901" | "7681" | "2375" | "9222")
}

/// Whether `ssh -R` makes one port available while somebody looks on: it ends with the terminal, checks
/// the host, and does not lead to a program that controls the machine.
fn is_development_tunnel(command: &Command, texts: &[&str]) -> bool {
    let stays = texts.iter().any(|text| is_flag(text, 'f') || text.contains("CheckingNo"))
        || texts.iter().any(|text| text.to_ascii_lowercase().contains("stricthostkeychecking"))
        || command.words.first().is_none_or(|word| word.text != "ssh");
    let forward = texts.iter().find(|text| text.matches(':').count() > 1);
    !stays && forward.is_some_and(|forward| !is_remote_access_port(forward))
}

/// Maximum nesting of substitutions, and maximum length of one, that are followed.
const MAX_NESTED_SUBSTITUTIONS: usize = 4;
const MAX_SUBSTITUTION_BYTES: usize = 16 * 1024;

/// How many `tr`-like conversions of a text are computed in one pipeline, and the maximum length of
/// that text. Beyond these limits the text still counts as decoded, and the limit is recorded.
const MAX_LOOP_TURNS: usize = 8;
const MAX_LOOP_BYTES: usize = 64 * 1024;

/// How often a script is read when its functions call each other.
const MAX_READING_ROUNDS: usize = 4;

/// Maximum number of loop items that are examined. Reaching the limit is recorded.
const MAX_LOOP_ITEMS: usize = 256;

/// Reads a text as a shell script.
pub(super) fn read(text: &str) -> Actions {
    read_script("", text, &mut CrossFileShellState::default())
}

/// Reads one of several scripts that source each other; `state` is shared between them.
pub(super) fn read_with(path: &str, text: &str, state: &mut CrossFileShellState) -> Actions {
    read_script(path, text, state)
}

fn read_script(path: &str, text: &str, state: &mut CrossFileShellState) -> Actions {
    let mut script = tokens::parse_with(text, &state.known);
    let mut known = std::mem::take(&mut script.known);
    for (name, value) in &state.known {
        known.entry(name.clone()).or_insert_with(|| value.clone());
    }
    let mut reader = ShellReader {
        known: Rc::new(known),
        variables: state.variables.clone(),
        functions: std::mem::take(&mut state.functions),
        ..ShellReader::default()
    };
    let home: Rc<str> = path.into();
    for name in script.pipelines.iter().flatten().filter_map(|command| command.function.as_ref()) {
        // A function of the same name in another file is a different function.
        let mine = reader.functions.entry(Rc::clone(name)).or_default();
        if mine.home.as_ref() != Some(&home) {
            *mine = ShellFunction::of(&home);
        }
    }
    // Two rounds, so that a function knows the arguments of calls further down.
    let functions = script.pipelines.iter().flatten().any(|one| one.function.is_some());
    reader.parsed_cuts(&script, None);
    for round in 0..MAX_READING_ROUNDS {
        // More rounds only while a function passes its own arguments on to another function.
        if round > 0 && !functions || round > 1 && !reader.is_new {
            break;
        }
        reader.is_new = false;
        reader.repeats = 0;
        reader.actions = Actions::default();
        reader.parsed_cuts(&script, None);
        reader.followed.clear();
        reader.groups.clear();
        for pipeline in &script.pipelines {
            reader.pipeline(pipeline);
        }
    }
    state.merge_variables(&reader.known, std::mem::take(&mut reader.variables));
    state.functions = std::mem::take(&mut reader.functions);
    if reader.is_new && functions {
        reader.actions.cut("calls that nest deeper than is followed", Span::at(0));
    }
    if state.is_cut {
        reader.actions.cut("more variables than are tracked", Span::at(0));
    }
    implicit::find_inline_loaders(text, &mut reader.actions);
    if let Some(at) = text.find("with hidden answer").filter(|_| text.contains("display dialog")) {
        let asks = Action::AsksForSecret("a password in a window of its own");
        reader.actions.push(asks, Span::new(at, at + 18));
    }
    let letters = text.match_indices(":1}").count();
    let runs_text = || text.contains("eval ") || text.contains("-c \"$");
    if letters > 4 || has_slice_by_variable(text) && runs_text() {
        let at = text.find(":1}").unwrap_or(0);
        reader.actions.push(
            Action::Obfuscates("words are put together letter by letter"),
            Span::new(at, at + 3),
        );
    }
    reader.actions
}

/// Whether a text takes single letters of a value in a loop: `${text:i:1}`.
fn has_slice_by_variable(text: &str) -> bool {
    text.match_indices(":1}").any(|(at, _)| {
        let before = text[..at].rsplit(':').next().unwrap_or_default();
        let index = before.trim_start_matches('$');
        index.len() < 16
            && index.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && index.chars().all(tokens::is_name)
    })
}

/// Reads a command that is already split into words, such as the arguments of a subprocess.
pub(super) fn read_words(words: &[String], span: Span) -> Actions {
    let words = words.iter().map(|text| Word { text: text.clone(), span, ..Word::default() });
    let command = Command { words: words.collect(), span, ..Command::default() };
    let mut reader = ShellReader::default();
    reader.pipeline(&vec![command]);
    reader.actions
}

#[derive(Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each describes an independent property of the text"
)]
struct ShellReader {
    actions: Actions,
    /// Taint of each variable.
    variables: HashMap<String, Taint>,
    /// Taint of each file that the script wrote.
    files: HashMap<String, Taint>,
    fifo: bool,
    /// Groups of commands that are still open, and what the group that was closed last prints.
    groups: Vec<groups::Group>,
    /// Variables with a random key, and whether one encrypts files.
    random_keys: HashSet<String>,
    loses_key: bool,
    group_text: String,
    /// Address that the input of the current command was downloaded from.
    flowing: Option<String>,
    /// Address of the downloaded archive that was unpacked last.
    unpacked: Option<String>,
    /// The script changed into the home folder or the root.
    is_home: bool,
    /// Addresses by the name of the git remote, for `git push name`.
    remotes: HashMap<String, String>,
    /// The address that git fetched from last, and the credentials that it is told to commit.
    git_source: Option<String>,
    git_staged: Option<&'static str>,
    /// The script encrypted files of the user.
    is_encrypting: bool,
    /// Arguments and output of the functions of this script.
    functions: HashMap<Rc<str>, ShellFunction>,
    function: Option<Rc<str>>,
    /// Variables with a literal value, which substitutions need.
    known: Rc<HashMap<String, KnownVariable>>,
    /// Literal items of each `for` loop, by the name of its variable.
    loops: HashMap<String, Vec<String>>,
    /// Terminal echo is switched off, so typed text is not shown.
    is_silent: bool,
    /// Nesting depth of the substitution that is being read.
    depth: usize,
    /// Cached taint of substitutions, by text, position and call.
    followed: HashMap<(String, usize, Option<usize>), Taint>,
    /// The call for which the commands of a function are being read again, and the number of such
    /// repetitions.
    calling: Option<usize>,
    repeats: usize,
    /// A function was called with arguments that were not known yet, so another round is needed.
    is_new: bool,
}

/// Returns the program of a command and its arguments, without wrappers such as `sudo`.
fn program(command: &Command) -> Option<(String, &[Word])> {
    let mut words = command.words.as_slice();
    loop {
        let (first, rest) = words.split_first()?;
        // `RUN` starts a step in a Dockerfile.
        if first.text == "RUN" && !rest.is_empty() {
            words = rest;
            continue;
        }
        let name =
            first.text.rsplit(['/', '\\']).next().unwrap_or(&first.text).to_ascii_lowercase();
        let name = name.strip_suffix(".exe").unwrap_or(&name);
        // `@curl` in a Makefile, `$SHELL`
        let name = name.trim_start_matches(['@', '-']);
        let name = if matches!(name, "$shell" | "$bash") { "sh" } else { name }.to_owned();
        if !WRAPPERS.contains(&name.as_str()) {
            return Some((name, rest));
        }
        let is_option = |word: &Word| {
            word.text.starts_with('-')
                || word.text.contains('=')
                || word.text.parse::<f32>().is_ok()
        };
        let skip = rest.iter().take_while(|word| is_option(word)).count();
        if skip == rest.len() {
            return Some((name, rest));
        }
        words = &rest[skip..];
    }
}

fn is_interpreter(name: &str) -> bool {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    SHELLS.contains(&name)
        || INTERPRETERS.contains(&name)
        || (INTERPRETERS.contains(&stem) && !stem.is_empty())
}

fn language_of(name: &str) -> Option<Language> {
    match name {
        name if name.starts_with("python") => Some(Language::Python),
        "node" | "deno" | "bun" => Some(Language::JavaScript),
        name if SHELLS.contains(&name)
            || matches!(name, "eval" | "iex" | "pwsh" | "powershell") =>
        {
            Some(Language::Shell)
        }
        _ => None,
    }
}

impl ShellReader {
    /// Records the limits that the parser reached; `at` is the position of a substitution.
    fn parsed_cuts(&mut self, script: &tokens::Script, at: Option<Span>) {
        for cut in &script.cuts {
            self.actions.cut(cut.what, at.unwrap_or(cut.span));
        }
    }

    /// Embeds the commands of lines for cron: `*/5 * * * * root command`, `@reboot command`.
    fn embed_cron_commands(&mut self, text: &str, span: Span) {
        const CRON_USERS: [&str; 4] = ["root", "nobody", "$USER", "www-data"];
        for line in text.lines() {
            let mut words = line.split_whitespace().peekable();
            let is_field = |word: &str| {
                word.bytes().all(|byte| byte.is_ascii_digit() || b"*/,-".contains(&byte))
            };
            if words.peek().is_some_and(|word| word.starts_with('@')) {
                words.next();
            } else if !(0..5).all(|_| words.next().is_some_and(is_field)) {
                continue;
            }
            words.next_if(|word| CRON_USERS.contains(word));
            let command = words.collect::<Vec<_>>().join(" ");
            self.actions.push_embedded(command, None, Some(Language::Shell), span);
        }
    }

    /// Whether another conversion of a text is computed.
    fn is_short_enough(&mut self, text: &str, turns: usize, span: Span) -> bool {
        let fits = turns < MAX_LOOP_TURNS && text.len() < MAX_LOOP_BYTES;
        if !fits {
            self.actions.cut("more conversions of a text than are computed", span);
        }
        fits
    }

    /// Records the actions of a pipeline and returns the taint of its output.
    fn pipeline(&mut self, pipeline: &Pipeline) -> Taint {
        let span = match (pipeline.first(), pipeline.last()) {
            (Some(first), Some(last)) => {
                Span::new(first.span.start, last.span.end.max(first.span.start))
            }
            _ => return Taint::default(),
        };
        self.function = pipeline.first().and_then(|command| command.function.clone());
        let mut flow = Taint::default();
        // Literal output of the previous command, which the next command may decode.
        let mut printed: Option<String> = None;
        // Number of conversions so far, limited by `MAX_LOOP_TURNS`.
        let mut turns = 0;
        for (index, command) in pipeline.iter().enumerate() {
            let group = self.apply_group_edges(command, &flow);
            if index == 0 {
                flow = self.group_input(pipeline);
            }
            if command.is_group {
                flow.add(&group);
                self.record_group_write(command, &flow, span);
            }
            let mut taint = self.command(command, span, &flow);
            self.store_assignments(command, span);
            let Some((name, arguments)) = program(command) else { continue };
            if is_interpreter(&name) {
                self.interpret(&name, arguments, command, &flow, printed.as_deref(), span);
            }
            if let Some(alphabet) = Alphabet::of(&name, arguments) {
                if alphabet.is_cut {
                    self.actions.cut("longer alphabets than are examined", span);
                }
                taint.decoded = true;
                turns += 1;
                let text = printed.take().or_else(|| command.input.clone());
                let text = text.filter(|text| self.is_short_enough(text, turns, span));
                printed = text.map(|text| alphabet.substitute(&text));
                if let Some(text) = &printed {
                    self.actions.push_embedded(text.clone(), Some("another alphabet"), None, span);
                }
            } else if is_decoder(&name, arguments) {
                taint.add(&flow);
                taint.decoded = true;
                let text = printed.take().or_else(|| command.input.clone());
                let text = text.and_then(|text| {
                    decode::decode_base64(&text).or_else(|| decode::decode_hex(&text))
                });
                if let Some(text) = &text {
                    self.actions.push_embedded(text.clone(), Some("an encoded text"), None, span);
                }
                printed = text;
            } else if matches!(name.as_str(), "echo" | "printf" | "print") {
                let texts = arguments.iter().filter(|word| !word.text.starts_with('-'));
                let said = texts.map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ");
                taint.decoded |= prints_character_codes(&name, arguments);
                if poses_as_system(&said) && !said.contains("sudo -") {
                    self.actions
                        .push(Action::AsksForSecret("a password as if the system did"), span);
                }
                self.embed_cron_commands(&said, span);
                if is_escaped_numbers(&said) {
                    taint.decoded = true;
                    self.actions.push_embedded(
                        decode::decode_escapes(&said),
                        Some("an encoded text"),
                        None,
                        span,
                    );
                }
                printed = Some(said);
            } else if name == "rev" {
                turns += 1;
                let text = printed.take().or_else(|| command.input.clone());
                let text = text.filter(|text| self.is_short_enough(text, turns, span));
                printed = text.map(|text| text.chars().rev().collect());
                if let Some(text) = &printed {
                    self.actions.push_embedded(text.clone(), Some("reversed letters"), None, span);
                }
                taint.decoded = true;
            } else if !matches!(name.as_str(), "cat" | "tee" | "tr") {
                printed = None;
            }
            taint.add(&flow);
            self.read_process_substitutions(command, &taint, span);
            if let (false, Some(text)) = (command.redirects.is_empty(), &command.input)
                && command.redirects.iter().any(|redirect| redirect.writes)
            {
                // A script that is written to a file probably runs later, so it is scanned as well.
                self.actions.push_embedded(text.clone(), None, None, span);
                self.embed_cron_commands(text, span);
            }
            for redirect in command.redirects.iter().filter(|redirect| redirect.writes) {
                self.files.insert(redirect.target.text.clone(), taint.clone());
                let text = printed.clone().or_else(|| command.input.clone()).unwrap_or_default();
                if text.starts_with("#!") {
                    let script = decode::decode_escapes(&text).replace("%%", "%");
                    self.actions.push_embedded(script, None, None, span);
                }
                self.record_write(&redirect.target, &text, span);
            }
            flow = taint;
        }
        self.add_group_output(&flow, printed.as_deref(), span);
        self.record_reverse_shell(pipeline, span);
        self.record_pipeline_destruction(pipeline, span);
        if let Some(function) = self.function.clone() {
            self.functions.entry(function).or_default().prints.add(&flow);
        }
        flow
    }

    /// Records a reverse shell: an interactive shell and a network connection in one pipeline.
    fn record_reverse_shell(&mut self, pipeline: &Pipeline, span: Span) {
        let interactive = pipeline.iter().any(|command| {
            program(command).is_some_and(|(name, arguments)| {
                SHELLS.contains(&name.as_str()) && arguments.iter().any(|word| word.text == "-i")
            })
        });
        let connects = pipeline.iter().any(|command| {
            program(command).is_some_and(|(name, arguments)| {
                matches!(name.as_str(), "nc" | "ncat" | "socat" | "telnet")
                    || name == "openssl" && arguments.iter().any(|word| word.text == "s_client")
            })
        });
        if interactive && connects {
            self.actions.push(Action::ReverseShell, span);
        }
    }

    /// Stores the taint of `NAME=value`, before a command or alone.
    fn store_assignments(&mut self, command: &Command, span: Span) {
        for (variable, word) in &command.assignments {
            let mut value = self.word_taint(word, span);
            value.add(&path_taint(&word.text));
            word.otherwise.iter().for_each(|text| value.add(&path_taint(text)));
            self.variables.insert(variable.clone(), value);
            value::record_api_redirect(
                variable,
                &value::Value::text(&word.text),
                span,
                &mut self.actions,
            );
            if word.text.contains("://") && is_index_variable(variable) {
                self.actions.push(Action::UsesPackageIndex(word.text.clone()), span);
            }
            self.record_startup_variable(
                variable,
                &word.text,
                &self.variables[variable].clone(),
                span,
            );
            let random = ["/dev/urandom", "/dev/random", "openssl rand", "pwgen"];
            let is_random = |text: &String| random.iter().any(|source| text.contains(source));
            if word.substitutions.iter().any(is_random) {
                self.random_keys.insert(variable.clone());
            }
            if variable == "HISTFILE" && word.text == "/dev/null" {
                self.actions.push(Action::DisablesProtection(COMMAND_HISTORY), span);
            }
        }
    }

    /// Stores the taint of variables that `for`, `read`, `export` and similar commands set.
    fn bind_variables(
        &mut self,
        name: &str,
        arguments: &[Word],
        flow: &Taint,
        span: Span,
        taint: &mut Taint,
    ) {
        let texts: Vec<&str> = arguments.iter().map(|word| word.text.as_str()).collect();
        match name {
            "for" if texts.get(1) == Some(&"in") => {
                let mut value = taint.clone();
                texts[2..].iter().for_each(|text| value.add(&path_taint(text)));
                value.files |= texts[2..].iter().any(|text| matches_user_files(text));
                let mut items = texts[2..].iter().flat_map(|text| text.split_whitespace());
                let first = items.by_ref().take(MAX_LOOP_ITEMS).map(str::to_owned).collect();
                if items.next().is_some() {
                    self.actions.cut("more items in a loop than are examined", span);
                }
                let items = first;
                self.loops.insert(texts[0].to_owned(), items);
                self.variables.insert(texts[0].to_owned(), value);
            }
            "read" | "mapfile" | "readarray" => {
                let silent = self.is_silent || texts.iter().any(|text| is_flag(text, 's'));
                if silent && texts.iter().any(|text| poses_as_system(text)) {
                    self.actions
                        .push(Action::AsksForSecret("a password as if the system did"), span);
                }
                let mut value = flow.clone();
                value.add(taint);
                if silent {
                    value = Taint::credential(TYPED_PASSWORD);
                }
                for variable in texts.iter().filter(|text| !text.starts_with('-')) {
                    self.variables.insert((*variable).to_owned(), value.clone());
                }
            }
            "cd" | "pushd" => {
                let home =
                    texts.first().is_none_or(|path| sensitive_path::is_precious_folder(path));
                self.is_home = home;
            }
            "stty" => self.is_silent = texts.contains(&"-echo"),
            "set" if texts.first() == Some(&"--") => {
                self.variables.entry("@".into()).or_default().add(taint);
            }
            "local" | "export" | "declare" | "readonly" | "typeset" => {
                for word in arguments {
                    if let Some((variable, value)) = word.text.split_once('=') {
                        let mut found = path_taint(value);
                        found.add(taint);
                        self.variables.insert(variable.to_owned(), found);
                    }
                }
            }
            _ => {}
        }
    }

    /// Records the actions of one command and returns the taint of its output.
    fn command(&mut self, command: &Command, span: Span, flow: &Taint) -> Taint {
        self.read_again_per_call(command, span, flow);
        let mut taint = Taint::default();
        for word in
            command.words.iter().chain(command.redirects.iter().map(|redirect| &redirect.target))
        {
            taint.add(&self.word_taint(word, span));
            if let Some(what) = sensitive_path::credential_at(&word.text)
                .or_else(|| sensitive_path::secrets_matched_by(&word.text))
            {
                self.actions.push(Action::MentionsCredentials(what), span);
            }
            // `/dev/tcp/...` is only an explanation of the syntax.
            if (word.text.contains("/dev/tcp/") || word.text.contains("/dev/udp/"))
                && !names_placeholder(&word.text)
            {
                self.read_dev_tcp(command, flow, &taint, span);
            }
        }
        for redirect in command.redirects.iter().filter(|redirect| !redirect.writes) {
            taint.add(&self.record_file_read(&redirect.target.text, span));
            taint.add(&self.read_variable_file(&redirect.target, span));
        }
        if let Some(here) = &command.here {
            taint.add(&self.word_taint(here, span));
        }
        self.record_emptied_files(command, span);
        self.record_startup_arguments(command, span);
        let Some((name, arguments)) = program(command) else { return taint };
        self.flowing.clone_from(&flow.fetched);
        self.bind_variables(&name, arguments, flow, span, &mut taint);
        self.command_word(command, &name, arguments, flow, span);
        taint.add(&self.record_function_call(&name, arguments, flow, span));
        if !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.+".contains(c))
        {
            self.actions.push(Action::StartsProgram(name.clone()), span);
        }
        let texts: Vec<&str> = arguments.iter().map(|word| word.text.as_str()).collect();
        let sends = is_sender(&name, &texts);
        if FILE_READERS.contains(&name.as_str()) || FETCHERS.contains(&name.as_str()) || sends {
            for (index, word) in arguments.iter().enumerate() {
                if name == "find" && index > 0 && texts[index - 1].starts_with('-') {
                    continue;
                }
                // A key file that is used to log in is not sent.
                let key = index > 0
                    && matches!(texts[index - 1], "-i" | "-e" | "--key" | "--cert" | "--cacert");
                // What is left out is not read.
                let left_out = index > 0
                    && matches!(texts[index - 1], "--exclude" | "--exclude-from")
                    || word.text.starts_with("--exclude");
                // The last path of `cp` is written.
                let target = matches!(name.as_str(), "cp" | "mv")
                    && index > 0
                    && index + 1 == arguments.len()
                    && !texts
                        .iter()
                        .any(|text| text.starts_with("-t") || text.starts_with("--target"));
                let path = fetch::file_in_argument(&word.text);
                // `cp config config.bak` keeps the copy in the same folder.
                let backup = matches!(name.as_str(), "cp" | "mv")
                    && texts.last().is_some_and(|last| *last != path && last.starts_with(path));
                if backup || left_out || target {
                    continue;
                }
                let elsewhere = sends && is_remote(path);
                if !key && !elsewhere {
                    taint.add(&self.record_file_read(path, span));
                    taint.add(&self.read_variable_file(word, span));
                }
            }
        }
        if let Some(target) = packs_into(&name, &texts) {
            let mut packed = taint.clone();
            packed.add(flow);
            self.store_file_taint(target, &packed);
        }
        if name == "find" {
            self.read_find(arguments, span, &mut taint);
        }
        taint.read |= ENCODERS.contains(&name.as_str());
        taint.add(&value::printed_secret(&format!("{name} {}", texts.join(" "))));
        if command.words.first().is_some_and(|word| word.text == "xargs") {
            taint.add(flow);
        }
        let sifts = matches!(name.as_str(), "grep" | "egrep" | "rg" | "awk" | "sed");
        if sifts && picks_one_setting(&texts) {
            taint.tokens.retain(|token| token != ".env");
        }
        if flow.environment
            && sifts
            && texts.iter().any(|text| sensitive_path::is_secret_name(text))
        {
            self.actions.push(Action::ReadsCredentials("secrets of the environment"), span);
        }
        self.read_special_program(&name, &texts, command, span, &mut taint);
        self.find_shell_in_arguments(&name, arguments);
        if let Some(file) = saves_cookies(&name, &texts) {
            self.store_file_taint(file, &Taint::credential("browser cookies"));
        }
        if FETCHERS.contains(&name.as_str()) {
            taint = self.fetch(&name, &texts, flow, &taint, span);
        } else if matches!(name.as_str(), "nc" | "ncat" | "netcat" | "socat" | "telnet") {
            self.read_netcat(&texts, flow, &taint, span);
        } else if matches!(name.as_str(), "dig" | "nslookup" | "host" | "ping" | "drill") {
            let mut sends = taint.clone();
            sends.add(flow);
            let domain = texts.iter().find_map(|text| domain_after_variable(text));
            if let Some(domain) = domain.filter(|_| sends.read && !sends.is_secret()) {
                let sends = Taint { private: Some(value::FILE_CONTENT), ..sends };
                let to = domain.to_owned();
                self.actions.push(Action::Connects { to, sends, log_in: Vec::new() }, span);
            } else if sends.is_secret() {
                let to = texts.join(" ");
                self.actions.push(Action::Connects { to, sends, log_in: Vec::new() }, span);
            }
            if texts.iter().any(|text| text.to_ascii_uppercase().contains("TXT")) {
                taint.fetched = Some(texts.last().copied().unwrap_or_default().to_owned());
            }
        } else if sends {
            let mut sends = taint.clone();
            sends.add(flow);
            if sends.is_secret() {
                let to = texts.join(" ");
                self.actions.push(Action::Connects { to, sends, log_in: Vec::new() }, span);
            }
        }
        taint
    }

    /// Records actions that depend on the word that names the program: names assembled from pieces,
    /// and decoded or downloaded commands.
    fn command_word(
        &mut self,
        command: &Command,
        name: &str,
        arguments: &[Word],
        flow: &Taint,
        span: Span,
    ) {
        let at = command.words.len().saturating_sub(arguments.len() + 1);
        let Some(word) = command.words.get(at) else { return };
        let runs = SHELLS.contains(&name) || FETCHERS.contains(&name) || name == "eval";
        if word.is_assembled() && (runs || matches!(name, "nc" | "ncat" | "base64" | "osascript")) {
            self.actions
                .push(Action::Obfuscates("the name of a program is put together of pieces"), span);
        }
        let mut taint = Taint::default();
        if !word.variables.is_empty() || !word.substitutions.is_empty() {
            taint = self.word_taint(word, span);
        }
        taint.fetched = None;
        // The arguments of these programs are commands that run later.
        if matches!(name, "trap" | "at" | "batch") {
            for word in arguments {
                taint.add(&self.word_taint(word, span));
            }
            if name != "trap" {
                taint.add(flow);
                if let Some(here) = &command.here {
                    taint.add(&self.word_taint(here, span));
                }
            }
        }
        if taint.decoded {
            self.actions.push(Action::ExecutesCode(CodeOrigin::Decoded), span);
        }
        if let Some(from) = taint.fetched {
            self.actions.push(Action::ExecutesCode(CodeOrigin::Fetched(from)), span);
        }
    }

    /// Records the actions of programs that need special treatment.
    fn read_special_program(
        &mut self,
        name: &str,
        texts: &[&str],
        command: &Command,
        span: Span,
        taint: &mut Taint,
    ) {
        let has = |word: &str| texts.contains(&word);
        let any = |part: &str| texts.iter().any(|text| text.contains(part));
        match name {
            "env" | "printenv" | "set" | "export" | "declare" if texts.is_empty() || has("-0") => {
                taint.environment = true;
            }
            "compgen" if has("-e") || has("-v") => taint.environment = true,
            "security" if any("add-trusted-cert") => {
                self.actions.push(Action::DisablesProtection(TRUSTED_CERTIFICATES), span);
            }
            "security"
                if any("find-generic-password")
                    || any("dump-keychain")
                    || any("find-internet-password") =>
            {
                taint.credential = Some("keychains");
                self.actions.push(Action::ReadsCredentials("keychains"), span);
            }
            "truncate" | "shred" | "rm" if wipes_tracks(texts) => {
                self.actions.push(Action::DisablesProtection(COMMAND_HISTORY), span);
            }
            "shred" | "truncate" if taint.files => {
                self.actions.push(Action::DestroysData("files of the user".into()), span);
            }
            "kubectl" | "oc" if has("apply") || has("create") => {
                let shady = |url: &&&str| {
                    super::host::reputation(url) == super::host::HostReputation::Suspicious
                };
                if let Some(url) = texts.iter().filter(|text| text.contains("://")).find(shady) {
                    self.actions
                        .push(Action::ExecutesCode(CodeOrigin::Fetched((*url).to_owned())), span);
                }
            }
            "psql" | "pg_dump" | "mysqldump" | "mongodump" | "mongoexport" => {
                taint.private = Some("contents of a database");
            }
            "pbpaste" | "wl-paste" | "get-clipboard" => taint.private = Some(value::CLIPBOARD),
            "xclip" | "xsel"
                if texts.iter().any(|text| text.starts_with("-o") || text.starts_with("--o")) =>
            {
                taint.private = Some(value::CLIPBOARD);
            }
            "powershell" | "powershell.exe" | "pwsh" if any("Get-Clipboard") => {
                taint.private = Some(value::CLIPBOARD);
            }
            "openssl" | "gpg" | "age" | "7z" | "7za" | "zip" if encrypts(name, texts) => {
                self.is_encrypting |= taint.files;
                let mut variables = command.words.iter().flat_map(|word| &word.variables);
                self.loses_key |= variables.any(|name| self.random_keys.contains(name));
            }
            // Nobody can decrypt what a key encrypts that exists only while the script runs.
            "rm" | "shred" if self.loses_key && deletes_variable(command) => {
                let what = "files after encrypting them with a key that is not kept".into();
                self.actions.push(Action::DestroysData(what), span);
            }
            "rm" | "shred" if taint.files && self.is_encrypting => {
                let what = "the user's files after encrypting them".into();
                self.actions.push(Action::DestroysData(what), span);
            }
            "rm" | "rmdir" | "shred" => self.record_deletion(texts, span),
            "mkfs" | "wipefs" => {
                self.actions.push(Action::DestroysData("a whole disk".into()), span);
            }
            "dd" if any("of=/dev/sd") || any("of=/dev/nvme") || any("of=/dev/disk") => {
                self.actions.push(Action::DestroysData("a whole disk".into()), span);
            }
            "crontab" if !has("-l") => self.actions.push(Action::Persists("a cron job"), span),
            "launchctl" if has("load") || has("bootstrap") || has("enable") => {
                self.actions.push(Action::Persists("a launch agent"), span);
            }
            "systemctl" if has("enable") && !texts.iter().any(|text| is_common_service(text)) => {
                self.actions.push(Action::Persists("a system service"), span);
            }
            "schtasks" if any("/create") || any("/Create") => {
                self.actions.push(Action::Persists("a scheduled task"), span);
            }
            "reg" if any("CurrentVersion\\Run") => {
                self.actions.push(Action::Persists("a program that starts at login"), span);
            }
            "xattr" if any("com.apple.quarantine") || has("-c") || has("-cr") => {
                self.actions
                    .push(Action::DisablesProtection("the quarantine of downloaded files"), span);
            }
            "spctl" if any("disable") => {
                self.actions.push(Action::DisablesProtection("Gatekeeper"), span);
            }
            "setenforce" if has("0") => {
                self.actions.push(Action::DisablesProtection("SELinux"), span);
            }
            "set-mppreference" if any("Disable") || any("Exclusion") => {
                self.actions.push(Action::DisablesProtection("Defender"), span);
            }
            "add-mppreference" => self.actions.push(Action::DisablesProtection("Defender"), span),
            "csrutil" if has("disable") => {
                self.actions.push(Action::DisablesProtection("System Integrity Protection"), span);
            }
            "ufw" if has("disable") => {
                self.actions.push(Action::DisablesProtection("the firewall"), span);
            }
            "iptables" if has("-F") => {
                self.actions.push(Action::DisablesProtection("the firewall"), span);
            }
            "unzip" if texts.iter().any(|text| *text == "-P" || text.starts_with("-P")) => {
                self.actions.push(Action::UnpacksLockedArchive, span);
            }
            "7z" | "7za" | "7zz" | "unrar"
                if texts.iter().any(|text| text.starts_with("-p") && text.len() > 2) =>
            {
                self.actions.push(Action::UnpacksLockedArchive, span);
            }
            "xmrig" | "minerd" | "cpuminer" | "cgminer" => {
                self.actions.push(Action::MinesCryptocurrency, span);
            }
            "mkfifo" => self.fifo = true,
            "tee" => {
                if let Some(target) = command.words.iter().rfind(|word| !word.text.starts_with('-'))
                {
                    self.record_write(target, "", span);
                }
            }
            "cp" | "mv" | "ln" | "install" if texts.len() > 1 => {
                if let Some(target) = command.words.last() {
                    self.record_write(target, "", span);
                    let mut known = taint.clone();
                    for text in texts {
                        known.add(&self.written_file_taint(text));
                    }
                    self.store_file_taint(&target.text, &known);
                }
            }
            "open" | "start" | "start-process" | "installer" | "msiexec" | "dpkg" | "rpm"
            | "hdiutil" | "java" | "mshta" | "rundll32" | "regsvr32" | "wscript" => {
                self.record_launcher(name, texts, span);
            }
            "ssh" | "autossh" if has("-R") || texts.iter().any(|text| is_flag(text, 'R')) => {
                let what = if is_development_tunnel(command, texts) {
                    DEVELOPMENT_TUNNEL
                } else {
                    "a tunnel from a remote host to this machine"
                };
                self.actions.push(Action::OpensRemoteAccess(what), span);
            }
            "ngrok" | "bore" | "chisel" | "cloudflared" | "tmate" | "frpc"
                if has("tcp")
                    || any("ssh://")
                    || any("tcp://")
                    || any("R:")
                    || texts.iter().any(|text| is_remote_access_port(text))
                    || name == "tmate" =>
            {
                self.actions.push(
                    Action::OpensRemoteAccess("a tunnel from a remote host to this machine"),
                    span,
                );
            }
            // Whoever gets the address gets in.
            "ngrok" | "bore" | "cloudflared" | "lt" | "localtunnel" | "zrok" | "telebit" => {
                taint.private = Some(TUNNEL_ADDRESS);
            }
            name if name.starts_with("python")
                && has("http.server")
                && texts.iter().any(|text| sensitive_path::is_precious_folder(text)) =>
            {
                self.actions
                    .push(Action::OpensRemoteAccess("the user's folders to other hosts"), span);
            }
            "docker" | "podman"
                if has("--privileged") && has("--pid=host")
                    || texts
                        .iter()
                        .any(|text| text.starts_with("/:/") || text.starts_with("-v=/:/")) =>
            {
                self.actions
                    .push(Action::OpensRemoteAccess("the whole machine to a container"), span);
            }
            "ttyd" | "gotty" | "upterm" | "sshx"
                if name != "ttyd" && name != "gotty"
                    || has("-W")
                    || has("-w")
                    || has("--writable") =>
            {
                self.actions.push(
                    Action::OpensRemoteAccess("a terminal of this machine to other hosts"),
                    span,
                );
            }
            "code" if has("tunnel") => {
                self.actions.push(
                    Action::OpensRemoteAccess("a tunnel from a remote host to this machine"),
                    span,
                );
            }
            "aws" if has("--skip-final-snapshot") => {
                self.actions
                    .push(Action::DestroysData("databases without a last copy".into()), span);
            }
            "tmutil" | "vssadmin" | "wbadmin" | "wmic"
                if any("delete") && (name != "wmic" || any("shadowcopy"))
                    || name == "tmutil" && has("disable") =>
            {
                self.actions.push(Action::DestroysData("the backups of the machine".into()), span);
            }
            name if destruction::deletes_backups(name, texts) => {
                self.actions.push(Action::DestroysData("the backups of the machine".into()), span);
            }
            "bcdedit" if any("recoveryenabled") => {
                self.actions.push(Action::DisablesProtection("how the machine recovers"), span);
            }
            "diskutil" if any("erase") || any("zeroDisk") => {
                self.actions.push(Action::DestroysData("a whole disk".into()), span);
            }
            "gh" if has("DELETE") && (any("protection") || any("vulnerability-alerts")) => {
                self.actions.push(Action::DisablesProtection("the protection of a branch"), span);
            }
            "go" if has("env") && texts.iter().any(|text| text.starts_with("GOPROXY=")) => {
                let proxy = texts.iter().find_map(|text| text.strip_prefix("GOPROXY="));
                self.actions
                    .push(Action::UsesPackageIndex(proxy.unwrap_or_default().to_owned()), span);
            }
            "brew" if has("tap") && any("://") => {
                let url = texts.iter().find(|text| text.contains("://")).copied();
                self.actions
                    .push(Action::UsesPackageIndex(url.unwrap_or_default().to_owned()), span);
            }
            "useradd" | "adduser" | "usermod"
                if any("sudo") || any("wheel") || has("0") || has("-o") =>
            {
                self.actions.push(Action::OpensRemoteAccess("an account with all rights"), span);
            }
            "net" if has("user") && has("/add") || has("localgroup") && has("/add") => {
                self.actions.push(Action::OpensRemoteAccess("an account with all rights"), span);
            }
            "history" if has("-c") || has("-cw") => {
                self.actions.push(Action::DisablesProtection(COMMAND_HISTORY), span);
            }
            "unset" if has("HISTFILE") => {
                self.actions.push(Action::DisablesProtection(COMMAND_HISTORY), span);
            }
            "journalctl" if any("--vacuum-time=1s") => {
                self.actions.push(Action::DisablesProtection(COMMAND_HISTORY), span);
            }
            "wevtutil" if has("cl") => {
                self.actions.push(Action::DisablesProtection(COMMAND_HISTORY), span);
            }
            "clear-eventlog" | "clear-history" => {
                self.actions.push(Action::DisablesProtection(COMMAND_HISTORY), span);
            }
            "update-ca-certificates" | "update-ca-trust" => {
                self.actions.push(Action::DisablesProtection(TRUSTED_CERTIFICATES), span);
            }
            "add-trusted-cert" | "certutil" if any("addstore") => {
                self.actions.push(Action::DisablesProtection(TRUSTED_CERTIFICATES), span);
            }
            "systemctl" | "service" | "sc" | "launchctl"
                if (has("stop") || has("disable") || has("unload") || has("mask"))
                    && PROTECTION_SERVICES.iter().any(|one| any(one)) =>
            {
                self.actions
                    .push(Action::DisablesProtection("the protection of the machine"), span);
            }
            "netsh" if any("firewall") && has("off") => {
                self.actions.push(Action::DisablesProtection("the firewall"), span);
            }
            "brew" if has("--no-quarantine") => {
                self.actions
                    .push(Action::DisablesProtection("the quarantine of downloaded files"), span);
            }
            "git" => {
                self.read_git(texts, span);
                self.read_git_transfer(texts, span, taint);
            }
            // An alias of git: `dots remote add backup https://…`.
            _ if texts.len() > 3 && texts[0] == "remote" && texts[1] == "add" => {
                self.remotes.insert(texts[2].to_owned(), texts[3].to_owned());
            }
            "plutil" if texts.windows(2).any(|pair| pair[0] == "-o") => {
                if let Some(at) = command.words.iter().position(|word| word.text == "-o")
                    && let Some(target) = command.words.get(at + 1)
                {
                    self.record_write(target, "", span);
                }
            }
            "npm" | "pnpm" | "yarn" | "pip" | "pip3"
                if has("config") && texts.iter().any(|text| text.contains("://")) =>
            {
                let url = texts.iter().find(|text| text.contains("://")).copied();
                self.actions
                    .push(Action::UsesPackageIndex(url.unwrap_or_default().to_owned()), span);
            }
            "alias" => {
                for text in texts {
                    if let Some((_, command)) = text.split_once('=') {
                        self.actions.push_embedded(
                            command.to_owned(),
                            None,
                            Some(Language::Shell),
                            span,
                        );
                    }
                }
            }
            "osascript" | "zenity" | "kdialog" | "yad" | "get-credential" => {
                let asks = any("hidden answer")
                    || any("hiddenAnswer")
                    || any("--newpassword")
                    || any("--password")
                    || name == "get-credential"
                    || any("--hide-text");
                if asks {
                    self.actions
                        .push(Action::AsksForSecret("a password in a window of its own"), span);
                    taint.add(&Taint::credential(TYPED_PASSWORD));
                }
            }
            "systemd-ask-password" | "ssh-askpass" | "pinentry" | "pinentry-mac" => {
                taint.add(&Taint::credential(TYPED_PASSWORD));
            }
            "dialog" | "whiptail" | "rofi" if any("password") => {
                taint.add(&Taint::credential(TYPED_PASSWORD));
            }
            "chmod" if texts.iter().any(|text| makes_executable(text)) => {
                let fetched = texts.iter().find_map(|file| self.files.get(*file)?.fetched.clone());
                if let Some(from) = fetched {
                    self.actions.push(Action::ExecutesCode(CodeOrigin::Fetched(from)), span);
                }
            }
            _ => {}
        }
        if any("--dangerously-skip-permissions") || any("--dangerously-bypass-approvals") {
            self.actions.push(Action::DisablesProtection(AGENT_PROMPTS), span);
        }
        if name == "git"
            && !taint.tokens.is_empty()
            && (has("remote") || has("clone") || has("push"))
        {
            let to = texts.iter().find(|text| text.contains("://")).copied().unwrap_or_default();
            let (to, log_in) = (to.to_owned(), taint.tokens.clone());
            self.actions.push(Action::Connects { to, sends: Taint::default(), log_in }, span);
        }
        if any("stratum+tcp://") || any("stratum+ssl://") || has_miner_arguments(texts) {
            self.actions.push(Action::MinesCryptocurrency, span);
        }
        if let Some(what) = cloud::removed_cloud_protection(name, texts) {
            self.actions.push(Action::DisablesProtection(what), span);
        }
        self.record_installs(name, texts, span);
        self.record_unpacked_program_start(name, texts, command, span);
        let own = self
            .files
            .get(name)
            .or_else(|| self.files.get(command.words.first()?.text.trim_start_matches("./")));
        if let Some(from) = own.and_then(|taint| taint.fetched.clone()) {
            self.actions.push(Action::ExecutesCode(CodeOrigin::Fetched(from)), span);
        }
    }

    /// Records that a program from a downloaded archive is started.
    fn record_unpacked_program_start(
        &mut self,
        name: &str,
        texts: &[&str],
        command: &Command,
        span: Span,
    ) {
        if matches!(name, "tar" | "unzip" | "7z" | "gunzip" | "bsdtar") {
            let known = texts.iter().find_map(|text| self.files.get(*text)?.fetched.clone());
            self.unpacked = known.or_else(|| self.flowing.clone()).or_else(|| self.unpacked.take());
            return;
        }
        let at = command.words.len().saturating_sub(texts.len() + 1);
        let first = command.words.get(at).map_or("", |word| word.text.as_str());
        let local = |text: &str| text.starts_with("./") && !text.contains(".py");
        let starts = local(first)
            || SHELLS.contains(&name)
                && texts.iter().find(|text| !text.starts_with('-')).is_some_and(|text| local(text));
        if let Some(from) = self.unpacked.clone().filter(|_| starts) {
            self.actions.push(Action::ExecutesCode(CodeOrigin::Fetched(from)), span);
        }
    }

    /// Records that a launcher such as `mshta` or `msiexec` starts a downloaded file.
    fn record_launcher(&mut self, name: &str, texts: &[&str], span: Span) {
        let direct = matches!(name, "mshta" | "rundll32" | "regsvr32" | "msiexec" | "wscript");
        let url = texts.iter().find(|text| text.contains("://")).filter(|_| direct);
        let known = texts.iter().find_map(|text| self.files.get(*text)?.fetched.clone());
        if let Some(from) = url.map(|url| (*url).to_owned()).or(known) {
            self.actions.push(Action::ExecutesCode(CodeOrigin::Fetched(from)), span);
        }
    }

    fn read_netcat(&mut self, texts: &[&str], flow: &Taint, taint: &Taint, span: Span) {
        let shell = texts.iter().any(|text| {
            let lower = text.to_ascii_lowercase();
            matches!(lower.as_str(), "-e" | "-c" | "--exec" | "--sh-exec")
                || lower.contains("exec:")
                || lower.contains("system:")
        });
        let listens = texts.iter().any(|text| text.starts_with('-') && text.contains('l'));
        if (shell && texts.len() > 1) || (self.fifo && !listens) {
            self.actions.push(Action::ReverseShell, span);
        }
        let mut sends = taint.clone();
        sends.add(flow);
        if !texts.iter().any(|text| text.contains('z') && text.starts_with('-')) {
            self.actions
                .push(Action::Connects { to: texts.join(" "), sends, log_in: Vec::new() }, span);
        }
    }

    fn read_dev_tcp(&mut self, command: &Command, flow: &Taint, taint: &Taint, span: Span) {
        let name = program(command).map(|(name, _)| name).unwrap_or_default();
        if SHELLS.contains(&name.as_str())
            || command.words.iter().any(|word| word.text == "-i")
            || name == "exec"
            || name.is_empty()
        {
            self.actions.push(Action::ReverseShell, span);
        } else {
            let mut sends = taint.clone();
            sends.add(flow);
            self.actions
                .push(Action::Connects { to: "/dev/tcp".into(), sends, log_in: Vec::new() }, span);
        }
    }

    /// Returns the taint of a word: of its substitutions and variables.
    fn word_taint(&mut self, word: &Word, span: Span) -> Taint {
        let mut taint = Taint::default();
        for substitution in &word.substitutions {
            taint.add(&self.substitution(substitution, span));
        }
        for variable in &word.variables {
            if let Some(argument_taints) = self.argument_taint(variable) {
                taint.add(&argument_taints);
            }
            match self.variables.get(variable) {
                Some(known) => taint.add(&known.clone()),
                None if sensitive_path::is_secret_name(variable) => {
                    taint.tokens.push(variable.clone());
                }
                None => {}
            }
        }
        taint
    }

    fn substitution(&mut self, text: &str, span: Span) -> Taint {
        let key = (text.to_owned(), span.start, self.calling);
        if let Some(known) = self.followed.get(&key) {
            return known.clone();
        }
        let taint = self.follow(text, &Taint::default(), span);
        self.followed.insert(key, taint.clone());
        taint
    }

    /// Reads the commands inside a substitution; `input` is the taint of their standard input.
    fn follow(&mut self, text: &str, input: &Taint, span: Span) -> Taint {
        let mut taint = Taint::default();
        if self.depth >= MAX_NESTED_SUBSTITUTIONS || text.len() > MAX_SUBSTITUTION_BYTES {
            self.actions.cut("commands that nest deeper than is followed", span);
            return taint;
        }
        // Maps are moved, not cloned, because there can be many substitutions.
        let mut inner = Self {
            variables: std::mem::take(&mut self.variables),
            files: std::mem::take(&mut self.files),
            functions: std::mem::take(&mut self.functions),
            function: self.function.clone(),
            known: Rc::clone(&self.known),
            depth: self.depth + 1,
            groups: vec![groups::Group::with_input(input)],
            loops: std::mem::take(&mut self.loops),
            calling: self.calling,
            repeats: self.repeats,
            ..Self::default()
        };
        let script = tokens::parse_in(text, &self.known, self.function.clone());
        for pipeline in &script.pipelines {
            // Function arguments inside the substitution are those of the enclosing function.
            let mut pipeline = pipeline.clone();
            for command in pipeline.iter_mut().filter(|command| command.function.is_none()) {
                command.function.clone_from(&self.function);
            }
            taint.add(&inner.pipeline(&pipeline));
        }
        self.variables = inner.variables;
        self.files = inner.files;
        self.functions = inner.functions;
        self.loops = inner.loops;
        self.repeats = inner.repeats;
        self.is_new |= inner.is_new;
        self.parsed_cuts(&script, Some(span));
        inner.actions.cuts.into_iter().for_each(|cut| self.actions.cut(cut.what, span));
        inner.actions.located.into_iter().for_each(|seen| self.actions.push(seen.action, span));
        for found in inner.actions.embedded {
            self.actions.push_embedded(found.text, found.hidden_in, found.language, span);
        }
        taint
    }

    /// Returns the taint of a file that the script wrote, or of its folder.
    fn written_file_taint(&self, path: &str) -> Taint {
        let folder = path.trim_end_matches(['/', '*', '.']);
        let known = self.files.get(path).or_else(|| self.files.get(folder));
        known.cloned().unwrap_or_default()
    }

    /// Stores the taint of a file; if it is secret, also for the folder, unless the folder is
    /// shared.
    fn store_file_taint(&mut self, path: &str, taint: &Taint) {
        self.files.insert(path.to_owned(), taint.clone());
        let folder = path.trim_end_matches('/').rsplit_once('/').map_or("", |(folder, _)| folder);
        let shared = matches!(folder, "" | "." | ".." | "~" | "$HOME" | "/tmp" | "/var/tmp");
        if taint.is_secret() && !shared {
            self.files.entry(folder.to_owned()).or_default().add(taint);
        }
        if taint.is_secret() && path.ends_with('/') {
            self.files.entry(path.trim_end_matches('/').to_owned()).or_default().add(taint);
        }
    }

    fn record_write(&mut self, target: &Word, text: &str, span: Span) {
        if !target.text.starts_with("/dev/")
            && !target.text.starts_with('&')
            && target.text.len() > 1
        {
            self.actions.push(
                Action::WritesFile { path: target.text.clone(), text: text.to_owned() },
                span,
            );
        }
        // Expands the loop variable in the path, to find writes to autostart or agent configuration
        // files.
        let name = target.variables.iter().find(|name| self.loops.contains_key(*name));
        let Some((name, items)) = name.and_then(|name| Some((name, self.loops.get(name)?))) else {
            return;
        };
        let paths = items.iter().map(|item| target.text.replace(&format!("${name}"), item));
        let paths: Vec<String> = paths
            .filter(|path| {
                sensitive_path::autostart_entry(path)
                    .or_else(|| sensitive_path::agent_file(path))
                    .is_some()
            })
            .collect();
        for path in paths {
            self.actions.push(Action::WritesFile { path, text: text.to_owned() }, span);
        }
    }
}

/// Whether a command deletes the file that a variable names.
fn deletes_variable(command: &Command) -> bool {
    command.words.iter().skip(1).any(|word| {
        word.variables.len() == 1 && word.text.starts_with('$') && !word.text.contains(['/', '.'])
    })
}

/// Whether a path such as `/dev/tcp/ATTACKER/PORT` explains the syntax and names no host.
fn names_placeholder(path: &str) -> bool {
    let host = path.split("/dev/").nth(1).and_then(|rest| rest.split('/').nth(1));
    host.is_none_or(|host| {
        host.is_empty()
            || host.starts_with(['.', '\u{2026}', '<'])
            || host.len() > 1 && host.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_')
    })
}

/// Whether `grep` looks for a setting that is no secret: `grep API_PORT .env`.
fn picks_one_setting(texts: &[&str]) -> bool {
    let pattern = texts.iter().find(|text| !text.starts_with('-'));
    pattern.is_some_and(|pattern| {
        let name = pattern.trim_start_matches('^').trim_end_matches('=');
        name.len() > 3
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            && !sensitive_path::is_secret_name(name)
    })
}

/// Whether a unit is that of a well-known server, which the system's packages bring along.
fn is_common_service(unit: &str) -> bool {
    matches!(
        unit.trim_end_matches(".service"),
        "docker"
            | "containerd"
            | "podman"
            | "nginx"
            | "apache2"
            | "httpd"
            | "postgresql"
            | "mysql"
            | "mariadb"
            | "redis"
            | "redis-server"
            | "mongod"
            | "chronyd"
            | "fail2ban"
            | "ufw"
    )
}

#[cfg(test)]
mod tests;
