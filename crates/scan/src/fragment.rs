//! Defines fragments: the texts that the scanner reads, such as files, code blocks and decoded
//! text.

use std::{borrow::Cow, cell::OnceCell, rc::Rc};

use savoir_lint::visible;
use savoir_skill::{Span, folder::is_skill_file, markdown::Outline};

use super::{
    phrase::{self, Word},
    signs::Window,
};

/// The language that a fragment is read as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
    Markdown,
    Shell,
    Python,
    JavaScript,
    /// Any other text.
    Other,
}

/// The purpose of a fragment in the skill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// SKILL.md, which the agent follows.
    Instructions,
    /// Another document, which the agent may read.
    Document,
    /// A program, which the agent runs.
    Script,
    /// Data.
    Data,
}

/// How offsets in a fragment map to its file.
#[derive(Clone, Copy, Debug)]
enum FilePosition {
    /// The fragment is a slice of the file that starts here.
    Offset(usize),
    /// The fragment was decoded from text at this offset.
    Fixed(usize),
}

/// A text that the scanner reads: a file, or a part that was found in it.
#[derive(Clone, Debug)]
pub(super) struct TextFragment<'a> {
    pub(super) path: Rc<str>,
    pub(super) text: Cow<'a, str>,
    pub(super) language: Language,
    pub(super) role: Role,
    /// The encoding or archive that it was hidden in.
    pub(super) hidden_in: Option<&'static str>,
    pub(super) is_shown_in_document: bool,
    /// Whether it is data for tests, which nothing tells the agent to obey.
    pub(super) is_evaluation: bool,
    /// How many fragments it is nested in.
    pub(super) depth: usize,
    /// Whether it is the text of another fragment as readers see it.
    pub(super) is_normalized: bool,
    file_text: Rc<str>,
    at: FilePosition,
    prose: OnceCell<Option<Rc<Prose>>>,
}

/// The text of a fragment with code blocks and comments blanked out.
#[derive(Debug)]
pub(super) struct Prose {
    pub(super) text: String,
    pub(super) words: Vec<Word>,
    /// Cache of the signs in its paragraphs, because several rules need them.
    pub(super) windows: OnceCell<Vec<Window>>,
}

impl<'a> TextFragment<'a> {
    pub(super) fn file(path: &str, text: &'a str) -> Self {
        let (language, role) = language_and_role(path, text);
        Self {
            path: path.into(),
            text: Cow::Borrowed(text),
            language,
            role,
            hidden_in: None,
            is_shown_in_document: false,
            is_evaluation: false,
            is_normalized: false,
            depth: 0,
            file_text: text.into(),
            at: FilePosition::Offset(0),
            prose: OnceCell::new(),
        }
    }

    /// Makes a fragment for a file whose text was decoded, or which is executed as another language
    /// than its name says.
    pub(super) fn decoded_file(
        path: &str,
        text: String,
        executed_as: Option<Language>,
        hidden_in: Option<&'static str>,
    ) -> Self {
        let (language, role) = match executed_as {
            Some(language) => (language, Role::Script),
            None => language_and_role(path, &text),
        };
        Self {
            path: path.into(),
            file_text: text.as_str().into(),
            text: Cow::Owned(text),
            language,
            role,
            hidden_in,
            is_shown_in_document: false,
            is_evaluation: false,
            is_normalized: false,
            depth: 0,
            at: FilePosition::Offset(0),
            prose: OnceCell::new(),
        }
    }

    /// Makes a fragment for a file in an archive.
    pub(super) fn packed(path: &str, text: String, hidden_in: &'static str, depth: usize) -> Self {
        let (language, role) = language_and_role(path, &text);
        let role = if role == Role::Instructions { Role::Document } else { role };
        Self {
            path: path.into(),
            file_text: text.as_str().into(),
            text: Cow::Owned(text),
            language,
            role,
            hidden_in: Some(hidden_in),
            is_shown_in_document: false,
            is_evaluation: false,
            is_normalized: false,
            depth,
            at: FilePosition::Offset(0),
            prose: OnceCell::new(),
        }
    }

    /// Makes a fragment for a part of this one in another language, such as a code block.
    pub(super) fn sub_fragment(&self, span: Span, language: Language) -> Self {
        let at = match self.at {
            FilePosition::Offset(by) => FilePosition::Offset(by + span.start),
            fixed @ FilePosition::Fixed(_) => fixed,
        };
        let is_shown_in_document = self.language == Language::Markdown;
        let text = Cow::Owned(span.slice(&self.text).to_owned());
        Self {
            text,
            language,
            at,
            is_shown_in_document,
            is_evaluation: false,
            is_normalized: false,
            depth: self.depth + 1,
            path: Rc::clone(&self.path),
            file_text: Rc::clone(&self.file_text),
            prose: OnceCell::new(),
            role: self.role,
            hidden_in: self.hidden_in,
        }
    }

    /// Makes a fragment with another text, such as the decoded form of this span.
    pub(super) fn derived_fragment(
        &self,
        text: String,
        language: Language,
        hidden_in: Option<&'static str>,
        span: Span,
    ) -> Self {
        let at = FilePosition::Fixed(self.file_offset(span.start));
        let hidden_in = self.hidden_in.or(hidden_in);
        Self {
            text: text.into(),
            language,
            hidden_in,
            at,
            depth: self.depth + 1,
            path: Rc::clone(&self.path),
            file_text: Rc::clone(&self.file_text),
            prose: OnceCell::new(),
            role: self.role,
            is_shown_in_document: self.is_shown_in_document,
            is_evaluation: false,
            is_normalized: false,
        }
    }

    /// Returns the prose, if the fragment is a text for readers.
    pub(super) fn prose(&self) -> Option<&Prose> {
        self.prose.get_or_init(|| self.read_prose().map(Rc::new)).as_deref()
    }

    fn read_prose(&self) -> Option<Prose> {
        let document = matches!(self.role, Role::Instructions | Role::Document);
        let readable = match self.language {
            Language::Markdown => true,
            Language::Other => document || self.hidden_in.is_some(),
            _ => false,
        };
        if !readable || self.is_evaluation || self.depth > 0 && self.hidden_in.is_none() {
            return None;
        }
        let mut text = self.text.to_string();
        if self.language == Language::Markdown {
            let outline = Outline::new(&text, Span::new(0, text.len()));
            // A fence without a programming language can contain ordinary text.
            let is_code = |info: Span, content: Span| {
                let info = info.slice(&text).trim().to_ascii_lowercase();
                let plain = matches!(info.as_str(), "" | "text" | "txt" | "plaintext" | "prompt");
                !plain || !is_sentences(content.slice(&text))
            };
            let code = outline.fences.iter().filter(|fence| is_code(fence.info, fence.content));
            let fences: Vec<Span> = code.map(|fence| fence.whole).collect();
            let mut bytes = text.into_bytes();
            for span in fences.into_iter().chain(outline.comments.iter().copied()) {
                let blanked = bytes[span.start..span.end].iter_mut();
                blanked.filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
            }
            text = String::from_utf8(bytes).unwrap_or_default();
        }
        let words = phrase::words(&text);
        Some(Prose { text, words, windows: OnceCell::new() })
    }

    pub(super) fn file_text(&self) -> &str {
        &self.file_text
    }

    /// The offset in the file of a byte in the fragment.
    pub(super) fn file_offset(&self, at: usize) -> usize {
        match self.at {
            FilePosition::Offset(by) => by + at,
            FilePosition::Fixed(at) => at,
        }
    }

    /// Line and column in the file, from one.
    pub(super) fn position(&self, at: usize) -> (usize, usize) {
        let bytes = self.file_text.as_bytes();
        let at = self.file_offset(at).min(bytes.len());
        let line = memchr::memchr_iter(b'\n', &bytes[..at]).count() + 1;
        let start = memchr::memrchr(b'\n', &bytes[..at]).map_or(0, |newline| newline + 1);
        let column = self.file_text.get(start..at).map_or(1, |before| before.chars().count() + 1);
        (line, column)
    }

    /// The text at a span, shortened to one line, with invisible characters escaped.
    pub(super) fn excerpt(&self, span: Span) -> String {
        const MAX_EXCERPT_CHARS: usize = 160;
        let text = self.text.get(span.start..span.end).unwrap_or_default().trim();
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut short: String = line.chars().take(MAX_EXCERPT_CHARS).collect();
        if short.len() < line.len() {
            short.push('…');
        }
        visible(&short).into_owned()
    }
}

/// Whether an offset is in a fenced block. The blocks are sorted, so one lookup is enough.
pub(super) fn is_fenced(outline: &Outline, at: usize) -> bool {
    let next = outline.fences.partition_point(|fence| fence.whole.start <= at);
    next.checked_sub(1).is_some_and(|last| outline.fences[last].whole.contains(at))
}

/// The language and the role of a file.
pub(super) fn language_and_role(path: &str, text: &str) -> (Language, Role) {
    let name = path.rsplit(['/', '!']).next().unwrap_or(path);
    if is_skill_file(name) && !path.contains(['/', '!']) {
        return (Language::Markdown, Role::Instructions);
    }
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending).to_ascii_lowercase();
    match ending.as_str() {
        "md" | "markdown" | "mdx" | "mdc" => (Language::Markdown, Role::Document),
        "py" | "pyw" | "pyi" => (Language::Python, Role::Script),
        "js" | "mjs" | "cjs" | "jsx" | "ts" | "mts" | "cts" | "tsx" | "gs" => {
            (Language::JavaScript, Role::Script)
        }
        "sh" | "bash" | "zsh" | "ksh" | "command" | "ps1" | "psm1" | "bat" | "cmd" | "fish" => {
            (Language::Shell, Role::Script)
        }
        _ => language_and_role_by_first_line(name, text),
    }
}

fn language_and_role_by_first_line(name: &str, text: &str) -> (Language, Role) {
    let first = text.lines().next().unwrap_or_default();
    let Some(program) = first.strip_prefix("#!") else {
        let shell = matches!(
            name,
            "Makefile" | "makefile" | "GNUmakefile" | "Dockerfile" | "justfile" | "Justfile"
        ) || matches!(super::collect::extension(name).as_str(), "mk" | "dockerfile");
        let language = if shell { Language::Shell } else { Language::Other };
        let document = matches!(super::collect::extension(name).as_str(), "txt" | "rst" | "html");
        let role = match (shell, document) {
            (true, _) => Role::Script,
            (_, true) => Role::Document,
            _ => Role::Data,
        };
        return (language, role);
    };
    let language = match program {
        program if program.contains("python") => Language::Python,
        program if ["node", "deno", "bun"].iter().any(|name| program.contains(name)) => {
            Language::JavaScript
        }
        program if program.contains("sh") => Language::Shell,
        _ => Language::Other,
    };
    (language, Role::Script)
}

/// Whether a text consists of sentences, not of code, requests or drawings.
fn is_sentences(text: &str) -> bool {
    let drawn = text.contains(['{', '└', '│', '├', '→', '<']);
    let request = text.contains("POST /") || text.contains("GET /");
    let sentence =
        |line: &str| line.split_whitespace().count() > 5 && line.trim_end().ends_with('.');
    !drawn && !request && guess_language(text) == Language::Other && text.lines().any(sentence)
}

/// The language that the fence of a code block names.
pub(super) fn fence_language(info: &str, content: &str) -> Language {
    let name = info.split([' ', '{', ',', ':']).next().unwrap_or_default().to_ascii_lowercase();
    match name.as_str() {
        "bash" | "sh" | "shell" | "zsh" | "console" | "shell-session" | "terminal"
        | "powershell" | "pwsh" | "ps1" | "cmd" | "bat" | "fish" | "dockerfile" | "makefile" => {
            Language::Shell
        }
        "python" | "py" | "python3" => Language::Python,
        "javascript" | "js" | "typescript" | "ts" | "jsx" | "tsx" | "node" | "mjs" => {
            Language::JavaScript
        }
        "markdown" | "md" => Language::Markdown,
        "" | "text" | "txt" | "plaintext" => guess_language(content),
        _ => Language::Other,
    }
}

/// Guesses the language of a text by its first words.
pub(super) fn guess_language(text: &str) -> Language {
    let starts = |words: &[&str]| {
        text.lines()
            .map(str::trim_start)
            .any(|line| words.iter().any(|word| line.starts_with(word)))
    };
    let one_liner = ["node -", "bun -", "deno ", "python -", "python3 -", "npx "];
    if one_liner.iter().any(|start| text.trim_start().starts_with(start)) {
        return Language::Shell;
    }
    if starts(&["import ", "from ", "def ", "exec(", "__import__", "print("])
        && !text.contains("require(")
    {
        Language::Python
    } else if text.contains("require(")
        || starts(&["const ", "let ", "var ", "function ", "eval(", "fetch(", "(function", "(()"])
    {
        Language::JavaScript
    } else if is_shell(text) {
        Language::Shell
    } else {
        Language::Other
    }
}

/// Whether a line sets a variable to an address for a command or for the next ones:
/// `PIP_INDEX_URL=https://… pip install x`, `A=1 GOPROXY=https://…`.
fn sets_address_for_command(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let is_assignment = |word: &&str| {
        word.split_once('=').is_some_and(|(name, _)| {
            name.len() > 2
                && name
                    .bytes()
                    .all(|byte| byte.is_ascii_uppercase() || byte == b'_' || byte.is_ascii_digit())
        })
    };
    let set = words.clone().take_while(is_assignment).collect::<Vec<_>>();
    words.nth(set.len().max(1) - 1);
    set.iter().any(|word| word.contains("=http")) && (set.len() > 1 || words.next().is_some())
}

fn is_shell(text: &str) -> bool {
    const PROGRAMS: &[&str] = &[
        "curl", "wget", "bash", "sh", "zsh", "sudo", "echo", "printf", "cat", "chmod", "nc",
        "python3", "python", "npm", "npx", "pnpm", "yarn", "bun", "deno", "pip", "pip3", "pipx",
        "uv", "eval", "base64", "export", "cd", "rm", "git", "gh", "tar", "unzip", "powershell",
        "powershell.exe", "pwsh", "nohup", "crontab", "iwr", "irm", "iex", "xattr", "node", "ssh",
        "scp", "rsync", "docker", "podman", "kubectl", "aws", "brew", "apt", "apt-get", "dnf",
        "perl", "ruby", "php", "osascript", "launchctl", "systemctl", "reg", "schtasks", "mshta",
        "msiexec", "certutil", "openssl", "dig", "source", "ngrok", "cloudflared", "socat", "ufw",
        "iptables", "setenforce", "vssadmin", "wbadmin", "tmutil", "set-mppreference",
        "add-mppreference", "netsh", "bcdedit", "gcloud", "az", "shred", "find", "ttyd", "gotty",
        "bore", "tmate", "sshx", "localtunnel", "zrok", "wscat", "ansible-pull",
    ];
    text.lines().any(|line| {
        let line = line.trim_start().trim_start_matches("$ ");
        if sets_address_for_command(line) {
            return true;
        }
        let first = line.split([' ', '\t', ';', '|']).next().unwrap_or_default();
        let program = first.rsplit('/').next().unwrap_or(first).to_ascii_lowercase();
        line.len() > program.len() && PROGRAMS.contains(&program.as_str())
    })
}
