//! Splits a skill into text fragments and reads each one into actions.

use std::collections::{HashMap, HashSet};

use savoir_skill::{Span, markdown::Outline};

use super::{
    Confidence, Severity,
    action::{Action, Actions, Cut},
    archive,
    archive::FileType,
    batch,
    context::{AnalyzedFragment, Context, FindingDraft},
    decode, embedded_commands, encoding, evaluation, executed_files,
    fragment::{Language, Role, TextFragment, fence_language, guess_language, is_fenced},
    javascript, normalize, passage, powershell, python, rules, shell,
    value::CrossFileState,
};

/// Maximum nesting of fragments that are hidden in each other.
const MAX_DEPTH: usize = 6;

/// Maximum number of fragments, and of bytes of hidden text, in one skill.
const MAX_FRAGMENTS: usize = 20_000;
const MAX_HIDDEN_BYTES: usize = 16 * 1024 * 1024;

/// Only the start of a longer text is read.
const MAX_TEXT_BYTES: usize = 2 * 1024 * 1024;

/// Limit for scripts. Scripts written by hand are shorter.
const MAX_SCRIPT_BYTES: usize = 1024 * 1024;

/// Limit for documents, which an agent reads into its context.
const MAX_DOCUMENT_BYTES: usize = 256 * 1024;

fn max_bytes(path: &str, text: &str) -> usize {
    match super::fragment::language_and_role(path, text) {
        (Language::Markdown, _) => MAX_DOCUMENT_BYTES,
        (_, Role::Script) => MAX_SCRIPT_BYTES,
        _ => MAX_TEXT_BYTES,
    }
}

/// Document formats that are zip archives.
const ZIP_DOCUMENT_EXTENSIONS: [&str; 12] =
    ["docx", "xlsx", "pptx", "odt", "ods", "odp", "dotx", "xltx", "potx", "epub", "vsdx", "key"];

/// Programs in languages that the scanner cannot read.
const UNSUPPORTED_PROGRAM_EXTENSIONS: [&str; 12] =
    ["rb", "pl", "php", "lua", "vbs", "applescript", "scpt", "tcl", "r", "groovy", "jse", "wsf"];

/// Programs of which only the strings and some calls are read.
const STRINGS_ONLY_CODE_EXTENSIONS: [&str; 18] = [
    "go", "rs", "java", "kt", "swift", "c", "cc", "cpp", "cs", "rb", "pl", "php", "lua", "scala",
    "dart", "groovy", "vb", "m",
];

/// Files that are data even if their first line looks like code.
const DATA_EXTENSIONS: [&str; 32] = [
    "json", "yaml", "yml", "toml", "csv", "tsv", "xml", "svg", "html", "htm", "css", "scss",
    "lock", "ini", "properties", "txt", "rst", "log", "tex", "bib", "sql", "graphql", "proto",
    "go", "rs", "java", "kt", "swift", "c", "h", "cpp", "cs",
];

/// Splits a skill into fragments and adds them to the context.
pub(super) fn collect_fragments(context: &mut Context<'_>) {
    let context_files = context.files;
    let mut collector = FragmentCollector {
        context,
        hidden_bytes: 0,
        rot13: false,
        executed: executed_files::find_executed_files(context_files),
        python: CrossFileState::default(),
        javascript: CrossFileState::default(),
        shell: shell::CrossFileShellState::default(),
        sourced_scripts: HashSet::new(),
    };
    let files = collector.context.files;
    collector.read_functions_across_files();
    collector.rot13 = files.iter().any(|(path, bytes)| {
        let text = std::str::from_utf8(bytes).unwrap_or_default();
        extension(path) == "md" && says_rot13(&text.to_lowercase())
    });
    for (path, bytes) in files.iter() {
        collector.add_file(path, bytes);
    }
    evaluation::mark_evaluation_data(&mut context.fragments);
}

struct FragmentCollector<'c, 'a> {
    context: &'c mut Context<'a>,
    hidden_bytes: usize,
    /// Whether any document of the skill mentions ROT13.
    rot13: bool,
    /// The languages of files that the skill executes by name.
    executed: HashMap<String, Language>,
    /// Values that scripts pass to each other.
    python: CrossFileState,
    javascript: CrossFileState,
    shell: shell::CrossFileShellState,
    /// Shell scripts that source others or are sourced.
    sourced_scripts: HashSet<String>,
}

/// The file extension in lower case, without the dot.
pub(super) fn extension(path: &str) -> String {
    let name = path.rsplit(['/', '!']).next().unwrap_or(path);
    name.rsplit_once('.').map_or(String::new(), |(_, ending)| ending.to_ascii_lowercase())
}

impl<'a> FragmentCollector<'_, 'a> {
    /// Reads the scripts in advance, so that the arguments from other files are known.
    fn read_functions_across_files(&mut self) {
        let texts = self.context.files.iter().filter_map(|(path, bytes)| {
            let text =
                std::str::from_utf8(bytes).ok().filter(|text| text.len() <= MAX_SCRIPT_BYTES)?;
            Some((path, text, super::fragment::language_and_role(path, text).0))
        });
        let scripts: Vec<_> = texts
            .filter(|(_, _, language)| {
                matches!(language, Language::Python | Language::JavaScript | Language::Shell)
            })
            .collect();
        self.read_sourced_shell_scripts(&scripts);
        for wanted in [Language::Python, Language::JavaScript] {
            let all = || scripts.iter().filter(|(_, _, language)| *language == wanted);
            if all().count() < 2 {
                continue;
            }
            for (path, text, _) in all() {
                // Errors are reported by the second read.
                let _ = match wanted {
                    Language::Python => python::read_with(text, &mut self.python),
                    _ => javascript::read_with(path, text, &mut self.javascript),
                };
            }
        }
    }

    /// Shell scripts share variables only by sourcing each other.
    fn read_sourced_shell_scripts(&mut self, scripts: &[(&str, &str, Language)]) {
        let all = || scripts.iter().filter(|(_, _, language)| *language == Language::Shell);
        let mut names: HashSet<&str> = HashSet::new();
        for (path, text, _) in all() {
            let read = shell::sourced_scripts(text);
            if !read.is_empty() {
                self.sourced_scripts.insert((*path).to_owned());
            }
            names.extend(read);
        }
        let name = |path: &'_ str| path.rfind('/').map_or(0, |slash| slash + 1);
        let read = all().filter(|(path, _, _)| names.contains(&path[name(path)..]));
        let read: Vec<String> = read.map(|(path, _, _)| (*path).to_owned()).collect();
        if read.is_empty() {
            return self.sourced_scripts.clear();
        }
        self.sourced_scripts.extend(read);
        // Twice, because a file can use what a later file defines.
        for _ in 0..2 {
            for (path, text, _) in all().filter(|(path, _, _)| self.sourced_scripts.contains(*path))
            {
                let _ = shell::read_with(path, text, &mut self.shell);
            }
        }
    }

    fn add_file(&mut self, path: &str, bytes: &'a [u8]) {
        let file_type = archive::file_type(bytes);
        if file_type == FileType::Zip {
            self.add_archive(path, bytes, 1);
        }
        let executed_as = self.executed_as(path, bytes);
        let begins_as = match file_type {
            FileType::Other => None,
            FileType::Program(_) => return,
            FileType::Zip | FileType::Packed(_) => Some("an archive"),
            FileType::Media => Some("a picture or document"),
        };
        // A shell skips a first line that it does not understand, and executes the next ones.
        if begins_as.is_some() && executed_as.is_none() && !is_read_as_text(path, bytes) {
            return;
        }
        if let Some(what) = begins_as {
            self.report_unread(path, &format!("the file is used as a text but begins like {what}"));
        }
        match std::str::from_utf8(bytes) {
            _ if self.add_utf16(path, bytes, executed_as) => {}
            Ok(text) => self.add_text(path, text, executed_as),
            Err(_) => self.add_other_encoding(path, bytes, executed_as),
        }
    }

    /// Adds a text in UTF-16, which only PowerShell executes; returns whether it is one.
    fn add_utf16(&mut self, path: &str, bytes: &[u8], executed_as: Option<Language>) -> bool {
        let Some(mut text) = encoding::decode_utf16_text(bytes) else { return false };
        text.truncate(self.readable_length(path, &text));
        let fragment = TextFragment::decoded_file(path, text, executed_as, None);
        if matches!(fragment.language, Language::Python | Language::JavaScript) {
            self.report_unread(path, "the file is not valid UTF-8");
        }
        self.add_fragment(fragment);
        true
    }

    /// The language as which the skill executes a file that has another name.
    fn executed_as(&self, path: &str, bytes: &[u8]) -> Option<Language> {
        let name = path.rsplit('/').next().unwrap_or(path);
        let language = *self.executed.get(name)?;
        let ending = extension(path);
        let is_object = || bytes.trim_ascii_start().starts_with(b"{");
        let is_data = ending == "md" || ending == "json" && is_object();
        let known = super::fragment::language_and_role(path, &first_line(bytes)).1;
        (known != Role::Script && !is_data).then_some(language)
    }

    /// Adds a text that is not UTF-8, unless it is data.
    fn add_other_encoding(&mut self, path: &str, bytes: &[u8], executed_as: Option<Language>) {
        let is_text = executed_as.is_some() || is_read_as_text(path, bytes);
        if !self.report_if_unreadable_program(path, bytes) && !is_text {
            return;
        }
        let mut text = String::from_utf8_lossy(bytes).into_owned();
        text.truncate(self.readable_length(path, &text));
        let language = super::fragment::language_and_role(path, &text).0;
        // Programs in other languages cannot have such bytes.
        if executed_as.unwrap_or(language) == Language::Shell {
            self.add_fragment(TextFragment::decoded_file(path, text, executed_as, None));
        } else if executed_as.is_some() {
            self.report_unread(path, "the file is executed but is not valid UTF-8");
        }
    }

    /// Adds Python code that declares an unusual encoding in a comment.
    fn add_declared_encoding(&mut self, path: &str, text: &str) {
        let Some(decoded) = encoding::decode_python(text) else { return };
        let (text, name) = decoded;
        self.report_unread(path, &format!("the program is written in {name}, which hides it"));
        let python = Some(Language::Python);
        self.add_fragment(TextFragment::decoded_file(path, text, python, Some(name)));
    }

    fn add_text(&mut self, path: &str, text: &'a str, executed_as: Option<Language>) {
        if executed_as.is_none() && is_binary(path, text) {
            return;
        }
        let text = &text[..self.readable_length(path, text)];
        let (language, role) = super::fragment::language_and_role(path, text);
        let other_script = role == Role::Script && language == Language::Other;
        if UNSUPPORTED_PROGRAM_EXTENSIONS.contains(&extension(path).as_str()) || other_script {
            self.report_unread(path, "the file is a program in a language that is not read here");
        }
        if executed_as.unwrap_or(language) == Language::Python {
            self.add_declared_encoding(path, text);
        }
        self.add_fragment(match executed_as {
            Some(_) => TextFragment::decoded_file(path, text.to_owned(), executed_as, None),
            None => TextFragment::file(path, text),
        });
    }

    /// How many bytes of a text are read. A longer text is reported.
    fn readable_length(&mut self, path: &str, text: &str) -> usize {
        let max_bytes = max_bytes(path, text);
        if text.len() <= max_bytes {
            return text.len();
        }
        let end = (0..=max_bytes).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        let line = memchr::memchr_iter(b'\n', &text.as_bytes()[..end]).count() + 1;
        let draft = unread_draft("the file is too large to be read beyond this line");
        self.context.report_at(&rules::UNREAD_FILE, path, (line, 1), draft);
        end
    }

    /// Reports bytes that are not UTF-8, unless they are data. Returns whether it did.
    fn report_if_unreadable_program(&mut self, path: &str, bytes: &[u8]) -> bool {
        // Metadata that macOS adds to archives.
        const APPLE_DOUBLE: [u8; 4] = [0, 5, 0x16, 7];
        if bytes.starts_with(&APPLE_DOUBLE) {
            return false;
        }
        let sample = &bytes[..bytes.len().min(64 * 1024)];
        let (language, role) =
            super::fragment::language_and_role(path, &String::from_utf8_lossy(sample));
        let program = UNSUPPORTED_PROGRAM_EXTENSIONS.contains(&extension(path).as_str());
        let is_program = program || role != Role::Data || language != Language::Other;
        if is_program {
            self.report_unread(path, "the file is not valid UTF-8");
        }
        is_program
    }

    fn report_unread(&mut self, path: &str, why: &str) {
        self.context.report_file(&rules::UNREAD_FILE, path, unread_draft(why));
    }

    /// Reports that a limit kept a part of a fragment from being read.
    fn report_cut(&mut self, fragment: &TextFragment<'_>, cut: &Cut) {
        // Further ones would not be kept, and finding a position reads the file again.
        if self.context.has_enough(&rules::UNREAD_FILE) {
            return;
        }
        let draft = unread_draft(&format!("not everything was read: there are {}", cut.what));
        let position = fragment.position(cut.span.start);
        self.context.report_at(&rules::UNREAD_FILE, &fragment.path, position, draft);
    }

    fn add_archive(&mut self, path: &str, bytes: &[u8], depth: usize) {
        let document = ZIP_DOCUMENT_EXTENSIONS.contains(&extension(path).as_str());
        let contents = archive::unzip(bytes);
        if contents.locked {
            let draft = FindingDraft::new(
                Severity::High,
                Confidence::High,
                "the archive is locked with a password",
            );
            self.context.report_file(&rules::LOCKED_ARCHIVE, path, draft);
        }
        if let Some(problem) = contents.problem {
            self.report_unread(path, &format!("the archive cannot be read: {problem}"));
        }
        for (name, bytes) in contents.files {
            let inside = format!("{path}!{name}");
            self.hidden_bytes += bytes.len();
            if self.hidden_bytes > MAX_HIDDEN_BYTES {
                return self.report_unread(
                    &inside,
                    "the archives of the skill contain more than is unpacked",
                );
            }
            match archive::file_type(&bytes) {
                FileType::Program(what) => {
                    let draft = FindingDraft::new(
                        Severity::Critical,
                        Confidence::High,
                        format!("an archive contains {what}"),
                    );
                    self.context.report_file(&rules::BINARY_PROGRAM, &inside, draft);
                }
                FileType::Zip if depth < 3 => self.add_archive(&inside, &bytes, depth + 1),
                FileType::Zip | FileType::Packed(_) => {
                    self.report_unread(&inside, "an archive in an archive is not looked into");
                }
                _ if document && name.ends_with("vbaProject.bin") => {
                    let draft = FindingDraft::new(
                        Severity::High,
                        Confidence::High,
                        "the document has macros",
                    );
                    self.context.report_file(&rules::BINARY_PROGRAM, &inside, draft);
                }
                _ if document && is_part_of_document(&name) => {}
                _ => match String::from_utf8(bytes) {
                    Ok(text) if is_binary(&inside, &text) => {}
                    Ok(mut text) => {
                        text.truncate(self.readable_length(&inside, &text));
                        self.add_fragment(TextFragment::packed(&inside, text, "an archive", depth));
                    }
                    Err(error) => {
                        self.report_if_unreadable_program(&inside, error.as_bytes());
                    }
                },
            }
        }
    }

    fn add_fragment(&mut self, fragment: TextFragment<'a>) {
        if self.context.fragments.len() >= MAX_FRAGMENTS {
            let what = "more pieces of code in the skill than are read";
            return self.report_cut(&fragment, &Cut { what, span: Span::at(0) });
        }
        let mut actions = self.read_actions(&fragment);
        let mut inner: Vec<TextFragment<'a>> = Vec::new();
        if fragment.depth >= MAX_DEPTH {
            if let Some(span) = find_deeper_code(&fragment, &actions) {
                actions.cut("texts in texts, deeper than is followed", span);
            }
        } else {
            for found in &actions.embedded {
                let language = found.language.unwrap_or_else(|| guess_language(&found.text));
                inner.push(fragment.derived_fragment(
                    found.text.clone(),
                    language,
                    found.hidden_in,
                    found.span,
                ));
            }
            if fragment.language == Language::Markdown {
                inner.extend(find_markdown_code(&fragment, &mut actions));
            }
            if super::fragment::language_and_role(&fragment.path, "").0 != Language::Other
                || fragment.depth == 0
            {
                inner.extend(find_encoded_text(&fragment));
            }
            if fragment.path.ends_with("package.json") && fragment.depth == 0 {
                inner.extend(find_npm_scripts(&fragment));
            }
            if fragment.depth == 0 {
                inner.extend(find_rotated_or_reversed_text(
                    &fragment,
                    self.rot13 && fragment.role != Role::Script,
                ));
            }
            if fragment.depth == 0 && fragment.language == Language::Other {
                inner.extend(find_code_in_other_files(&fragment));
            }
        }
        // The same document without what hides its words from a search.
        let is_document = matches!(fragment.role, Role::Instructions | Role::Document);
        if fragment.depth == 0 && is_document && !fragment.is_normalized {
            inner.extend(normalize::visible_words(&fragment.text).map(|text| {
                let mut visible = TextFragment::decoded_file(&fragment.path, text, None, None);
                visible.is_normalized = true;
                visible
            }));
        }
        for cut in &actions.cuts {
            self.report_cut(&fragment, cut);
        }
        self.context.fragments.push(AnalyzedFragment { fragment, actions });
        for fragment in inner {
            self.hidden_bytes += fragment.text.len();
            if self.hidden_bytes > MAX_HIDDEN_BYTES {
                let what = "more embedded and encoded texts in the skill than are read";
                return self.report_cut(&fragment, &Cut { what, span: Span::at(0) });
            }
            self.add_fragment(fragment);
        }
    }

    fn read_actions(&mut self, fragment: &TextFragment<'a>) -> Actions {
        let actions = match fragment.language {
            Language::Shell => {
                let path: &str = &fragment.path;
                let mut actions = if fragment.depth == 0 && self.sourced_scripts.contains(path) {
                    shell::read_with(path, &fragment.text, &mut self.shell)
                } else {
                    shell::read(&fragment.text)
                };
                if powershell::has_extension(&fragment.path) {
                    // In PowerShell, `if` and `while` have no word that ends them.
                    actions.cuts.retain(|cut| cut.what != shell::UNCLOSED_GROUPS);
                }
                if powershell::is_powershell(&fragment.path, &fragment.text) {
                    powershell::read(&fragment.text, &mut actions);
                }
                if batch::is_batch(&fragment.path, &fragment.text) {
                    batch::read(&fragment.text, &mut actions);
                }
                Ok(actions)
            }
            Language::Python if fragment.depth == 0 => {
                python::read_with(&fragment.text, &mut self.python)
            }
            Language::Python => python::read(&fragment.text),
            Language::JavaScript if fragment.depth == 0 => {
                javascript::read_with(&fragment.path, &fragment.text, &mut self.javascript)
            }
            Language::JavaScript => javascript::read(&fragment.path, &fragment.text),
            Language::Other
                if fragment.depth == 0
                    && STRINGS_ONLY_CODE_EXTENSIONS
                        .contains(&extension(&fragment.path).as_str()) =>
            {
                let mut actions = Actions::default();
                embedded_commands::record_actions_of_unparsed_code(&fragment.text, &mut actions);
                Ok(actions)
            }
            Language::Markdown | Language::Other => Ok(Actions::default()),
        };
        match actions {
            Ok(mut actions) => {
                if fragment.role == Role::Script {
                    name_wallets(&fragment.text, &mut actions);
                }
                actions
            }
            // Code in a document may omit irrelevant parts, so a syntax error is not reported.
            Err(why)
                if !why.is_limit
                    && (fragment.is_shown_in_document
                        || fragment.depth > 0 && fragment.hidden_in.is_none()) =>
            {
                Actions::default()
            }
            Err(why) => {
                self.report_unread(
                    &fragment.path.clone(),
                    &format!("the file cannot be read as a program: {}", why.message),
                );
                Actions::default()
            }
        }
    }
}

fn unread_draft(why: &str) -> FindingDraft {
    FindingDraft::new(Severity::High, Confidence::High, why)
}

/// Why a text could not be read as a program.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(super) struct ReadError {
    message: String,
    /// The text reached a limit; otherwise it is not a program.
    is_limit: bool,
}

impl ReadError {
    pub(super) fn syntax(message: impl Into<String>) -> Self {
        Self { message: message.into(), is_limit: false }
    }

    pub(super) fn limit(message: impl Into<String>) -> Self {
        Self { message: message.into(), is_limit: true }
    }
}

/// Returns the position of code that is not read because of [`MAX_DEPTH`].
fn find_deeper_code(fragment: &TextFragment<'_>, actions: &Actions) -> Option<Span> {
    let embedded = actions.embedded.first().map(|found| found.span);
    let encoded = || find_encoded_text(fragment).into_iter().next();
    embedded.or_else(|| encoded().map(|_| Span::at(0)))
}

/// Records a line of code that names several wallets, because it searches for wallets.
fn name_wallets(text: &str, actions: &mut Actions) {
    const WALLET_WORDS: [&str; 9] = [
        "mnemonic", "seed", "metamask", "ledger", "trezor", "phantom", "exodus", "electrum", "xprv",
    ];
    for line in text.lines() {
        let lower = line.to_ascii_lowercase();
        if WALLET_WORDS.iter().filter(|word| lower.contains(*word)).count() > 2 {
            let at = line.as_ptr() as usize - text.as_ptr() as usize;
            actions.push(
                Action::MentionsCredentials("the phrases of wallets"),
                Span::new(at, at + line.len()),
            );
        }
    }
}

fn first_line(bytes: &[u8]) -> String {
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    String::from_utf8_lossy(&line[..line.len().min(256)]).into_owned()
}

/// Whether a file is executed or read as a text whatever its first bytes are, because it has the
/// name of a script or document, or begins with `#!`.
fn is_read_as_text(path: &str, bytes: &[u8]) -> bool {
    super::fragment::language_and_role(path, &first_line(bytes)).1 != Role::Data
}

/// Whether a file is binary: it contains zero bytes, and is not a program by name or first line.
fn is_binary(path: &str, text: &str) -> bool {
    memchr::memchr(0, text.as_bytes()).is_some()
        && super::fragment::language_and_role(path, text) == (Language::Other, Role::Data)
        && super::fragment::guess_language(text) == Language::Other
}

/// Whether a file inside an office document is text, a picture or a setting.
fn is_part_of_document(name: &str) -> bool {
    let ending = extension(name);
    !UNSUPPORTED_PROGRAM_EXTENSIONS.contains(&ending.as_str())
        && super::fragment::language_and_role(name, "").1 == Role::Data
        && !STRINGS_ONLY_CODE_EXTENSIONS.contains(&ending.as_str())
}

/// Beyond this, a backquote is not the start of inline code.
const MAX_INLINE_CODE_BYTES: usize = 20_000;

/// Returns code blocks and commands between backquotes.
fn find_markdown_code<'a>(
    fragment: &TextFragment<'a>,
    actions: &mut Actions,
) -> Vec<TextFragment<'a>> {
    let text: &str = &fragment.text;
    let outline = Outline::new(text, Span::new(0, text.len()));
    let mut found = Vec::new();
    for fence in &outline.fences {
        let language = fence_language(fence.info.slice(text), fence.content.slice(text));
        if matches!(language, Language::Shell | Language::Python | Language::JavaScript) {
            found.push(fragment.sub_fragment(fence.content, language));
        } else if language == Language::Other {
            // Settings contain commands: hooks, tasks, servers.
            let settings = fragment.sub_fragment(fence.content, language);
            for (command, span) in embedded_commands::find_commands(&settings.text) {
                let mut command = settings.derived_fragment(command, Language::Shell, None, span);
                command.depth = settings.depth;
                found.push(command);
            }
        }
    }
    let bytes = text.as_bytes();
    let attacks = sections_about_attacks(text);
    let mut at = 0;
    while let Some(open) = memchr::memchr(b'`', &bytes[at..]).map(|open| at + open) {
        let ticks = bytes[open..].iter().take_while(|byte| **byte == b'`').count();
        let inside = open + ticks;
        let window = &bytes[inside..bytes.len().min(inside + MAX_INLINE_CODE_BYTES)];
        let close = memchr::memmem::find(window, &bytes[open..inside]).map(|end| inside + end);
        let Some(close) = close.filter(|_| ticks < 3) else {
            if ticks < 3 && continues_beyond(text, inside, &bytes[open..inside]) {
                actions.cut("longer commands between backquotes than are read", Span::at(open));
            }
            at = inside;
            continue;
        };
        let span = Span::new(inside, close);
        at = close + ticks;
        let code = span.slice(text);
        let language = guess_language(code);
        let is_read = language == Language::Shell
            || language == Language::Python && (code.contains("exec(") || code.contains("eval("));
        if !outline.is_literal(open)
            && code.contains([' ', '\t'])
            && is_read
            && !is_sign_of_malware(text, span)
            && !is_inside(&attacks, open)
        {
            found.push(fragment.sub_fragment(span, language));
        }
    }
    found.extend(find_header_commands(fragment));
    found.extend(find_indented_code(fragment, &outline));
    found.extend(find_bare_commands(fragment, &outline));
    found
}

/// Whether inline code that starts here is longer than [`MAX_INLINE_CODE_BYTES`]. It ends with its
/// paragraph at the latest.
fn continues_beyond(text: &str, inside: usize, ticks: &[u8]) -> bool {
    let bytes = text.as_bytes();
    let Some(rest) = bytes.get(inside + MAX_INLINE_CODE_BYTES..) else { return false };
    let window = &bytes[inside..inside + MAX_INLINE_CODE_BYTES];
    let paragraph = memchr::memmem::find(rest, b"\n\n").unwrap_or(rest.len());
    memchr::memmem::find(window, b"\n\n").is_none()
        && memchr::memmem::find(&rest[..paragraph], ticks).is_some()
}

/// Returns the sections below headings such as `## Red flags`, whose commands are examples.
fn sections_about_attacks(text: &str) -> Vec<Span> {
    let mut found: Vec<Span> = Vec::new();
    let (mut at, mut is_open) = (0, false);
    for line in text.split_inclusive('\n') {
        if line.starts_with('#') {
            let heading = line.to_lowercase();
            is_open = ["red flag", "warning sign", "signs of", "scams"]
                .iter()
                .any(|words| heading.contains(words));
            found.extend(is_open.then(|| Span::at(at)));
        }
        at += line.len();
        if let Some(section) = found.last_mut().filter(|_| is_open) {
            section.end = at;
        }
    }
    found
}

/// Whether an offset is in one of these spans, which are sorted.
fn is_inside(spans: &[Span], at: usize) -> bool {
    let next = spans.partition_point(|span| span.start <= at);
    next.checked_sub(1).is_some_and(|last| spans[last].contains(at))
}

/// Whether a command that switches off a protection is quoted as a sign of malware.
fn is_sign_of_malware(text: &str, span: Span) -> bool {
    const COMMANDS: [&str; 9] = [
        "vssadmin", "wbadmin", "bcdedit", "set-mppreference", "add-mppreference", "setenforce",
        "netsh", "tmutil", "shred",
    ];
    const MALWARE_WORDS: [&str; 8] = [
        "ransomware", "malware", "keylogger", "attacker", "indicator", "suspicious", "detect",
        "compromise",
    ];
    let code = span.slice(text).to_ascii_lowercase();
    if code.contains("://") || !COMMANDS.iter().any(|command| code.starts_with(command)) {
        return false;
    }
    // A line can be a megabyte long.
    let near = |at: usize| (0..=3).map(|step| at - step).find(|at| text.is_char_boundary(*at));
    let start = near(span.start.saturating_sub(300).max(3)).unwrap_or(0).min(span.start);
    let end = near((span.end + 300).min(text.len()).max(3)).unwrap_or(text.len()).max(span.end);
    let before = text[start..span.start].rsplit('\n').next().unwrap_or_default().to_lowercase();
    let after = text[span.end..end].split('\n').next().unwrap_or_default().to_lowercase();
    MALWARE_WORDS.iter().any(|word| before.contains(word) || after.contains(word))
}

/// Returns the commands of hooks in the frontmatter, which agents run by themselves.
fn find_header_commands<'a>(fragment: &TextFragment<'a>) -> Vec<TextFragment<'a>> {
    let text: &str = &fragment.text;
    let header = &text[..passage::frontmatter_end(text)];
    let indent = |line: &str| line.len() - line.trim_start_matches([' ', '-']).len();
    let mut found = Vec::new();
    let mut open: Option<(usize, usize, String)> = None;
    let mut at = 0;
    for line in header.split_inclusive('\n') {
        if let Some((start, depth, mut block)) = open.take() {
            if indent(line) > depth || line.trim().is_empty() {
                block.push_str(line.trim_start());
                open = Some((start, depth, block));
            } else {
                found.push((block, start));
            }
        }
        let value = line.trim_start_matches([' ', '-']).strip_prefix("command:").map(str::trim);
        match value {
            Some("|" | ">" | "|-" | ">-" | "|+" | ">+") => {
                open = Some((at, indent(line), String::new()));
            }
            Some(value) if open.is_none() => {
                found.push((value.trim_matches(['"', '\'']).to_owned(), at));
            }
            _ => {}
        }
        at += line.len();
    }
    found.extend(open.map(|(start, _, block)| (block, start)));
    let commands = found.into_iter().filter(|(command, _)| !command.trim().is_empty());
    commands
        .map(|(command, at)| {
            let mut hook = fragment.derived_fragment(command, Language::Shell, None, Span::at(at));
            hook.is_shown_in_document = false;
            hook
        })
        .collect()
}

/// Returns code blocks that are marked by indentation only.
fn find_indented_code<'a>(fragment: &TextFragment<'a>, outline: &Outline) -> Vec<TextFragment<'a>> {
    let text: &str = &fragment.text;
    let mut found = Vec::new();
    let mut block: Option<Span> = None;
    let mut at = 0;
    let mut blank = true;
    for line in text.split_inclusive('\n') {
        let deep = line.starts_with("    ") || line.starts_with('\t');
        let inside = is_fenced(outline, at);
        match &mut block {
            Some(span) if deep && !inside => span.end = at + line.len(),
            None if deep && blank && !inside => block = Some(Span::new(at, at + line.len())),
            _ => found.extend(block.take()),
        }
        blank = line.trim().is_empty();
        at += line.len();
    }
    found.extend(block);
    found.retain(|span| guess_language(span.slice(text)) == Language::Shell);
    found.into_iter().map(|span| fragment.sub_fragment(span, Language::Shell)).collect()
}

/// Returns commands in the text that have no Markdown markup.
fn find_bare_commands<'a>(fragment: &TextFragment<'a>, outline: &Outline) -> Vec<TextFragment<'a>> {
    const COMMAND_MARKERS: [&str; 8] =
        ["base64 -d", "base64 -D", "base64 --decode", "| bash", "| sh", "|bash", "|sh", "| iex"];
    let text: &str = &fragment.text;
    let mut found = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let span = Span::new(start, start + line.trim_end().len());
        start += line.len();
        let bare = COMMAND_MARKERS.iter().filter_map(|mark| line.find(mark)).any(|at| {
            let quoted = line[..at].matches('`').count() % 2 == 1;
            !quoted && !outline.is_literal(start - line.len() + at)
        });
        if bare && guess_language(line) == Language::Shell {
            found.push(fragment.sub_fragment(span, Language::Shell));
        }
    }
    found
}

/// Returns encoded runs that decode to code or sentences.
fn find_encoded_text<'a>(fragment: &TextFragment<'a>) -> Vec<TextFragment<'a>> {
    let runs = decode::find_encoded_runs(&fragment.text).into_iter().filter(|(text, _, _)| {
        // A text that is encoded again has neither blanks nor brackets.
        text.contains([' ', '(', '/']) || !decode::find_encoded_runs(text).is_empty()
    });
    let rot13 = says_rot13(&fragment.text.to_lowercase());
    let mut found = Vec::new();
    for (text, how, span) in runs.chain(decode::find_character_codes(&fragment.text)) {
        if rot13 {
            let turned = decode::rot13(&text);
            found.push(fragment.derived_fragment(
                turned,
                Language::Other,
                Some("Base64 and ROT13"),
                span,
            ));
        }
        let language = guess_language(&text);
        found.push(fragment.derived_fragment(text, language, Some(how), span));
    }
    found
}

/// Returns code in files with another extension, and commands in files that are not read as code.
fn find_code_in_other_files<'a>(fragment: &TextFragment<'a>) -> Vec<TextFragment<'a>> {
    let mut found = Vec::new();
    let language = guess_language(&fragment.text);
    if language != Language::Other && !DATA_EXTENSIONS.contains(&extension(&fragment.path).as_str())
    {
        found.push(fragment.sub_fragment(Span::new(0, fragment.text.len()), language));
    }
    if matches!(extension(&fragment.path).as_str(), "html" | "htm" | "xhtml" | "svg") {
        found.extend(
            page_scripts(&fragment.text)
                .into_iter()
                .map(|span| fragment.sub_fragment(span, Language::JavaScript)),
        );
    }
    for (command, span) in embedded_commands::find_commands(&fragment.text) {
        found.push(fragment.derived_fragment(command, Language::Shell, None, span));
    }
    found
}

/// Returns the scripts of a web page, from `<script …>` to `</script>`.
fn page_scripts(text: &str) -> Vec<Span> {
    let lower = text.to_ascii_lowercase();
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(open) = lower[at..].find("<script").map(|open| at + open) {
        let Some(start) = lower[open..].find('>').map(|end| open + end + 1) else { break };
        let end = lower[start..].find("</script").map_or(text.len(), |end| start + end);
        let is_data = lower[open..start].contains("json");
        if !is_data && !text[start..end].trim().is_empty() {
            found.push(Span::new(start, end));
        }
        at = end;
    }
    found
}

fn says_rot13(lower: &str) -> bool {
    [
        "rot13", "rot-13", "rot 13", "by thirteen", "thirteen places", "13 places",
        "thirteen letters", "caesar",
    ]
    .iter()
    .any(|name| lower.contains(name))
}

/// If the text mentions that it is reversed or rotated, also reads the decoded text.
fn find_rotated_or_reversed_text<'a>(
    fragment: &TextFragment<'a>,
    rot13: bool,
) -> Vec<TextFragment<'a>> {
    let lower = fragment.text.to_lowercase();
    let whole = Span::new(0, fragment.text.len());
    let mut found = Vec::new();
    if rot13 || says_rot13(&lower) {
        found.push(fragment.derived_fragment(
            decode::rot13(&fragment.text),
            Language::Other,
            Some("ROT13"),
            whole,
        ));
    }
    if ["right to left", "backwards", "reversed", "reverse the"]
        .iter()
        .any(|name| lower.contains(name))
    {
        let lines: Vec<String> =
            fragment.text.lines().map(|line| line.chars().rev().collect()).collect();
        found.push(fragment.derived_fragment(
            lines.join("\n\n"),
            Language::Other,
            Some("reversed letters"),
            whole,
        ));
    }
    found
}

/// Returns the commands of the npm scripts in a `package.json`.
fn find_npm_scripts<'a>(fragment: &TextFragment<'a>) -> Vec<TextFragment<'a>> {
    let Ok(json) = serde_json::from_str::<serde_json::Value>(&fragment.text) else {
        return Vec::new();
    };
    let Some(scripts) = json.get("scripts").and_then(serde_json::Value::as_object) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    // The scripts are in file order, so each is searched after the previous one.
    let mut at = 0;
    for (name, command) in scripts {
        let Some(command) = command.as_str() else { continue };
        at += fragment.text[at..].find(&format!("\"{name}\"")).unwrap_or(0);
        let mut script =
            fragment.derived_fragment(command.to_owned(), Language::Shell, None, Span::at(at));
        script.role = Role::Script;
        found.push(script);
    }
    found
}
