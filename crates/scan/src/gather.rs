//! Taking a skill apart: files into pieces, pieces into acts, wrappings off.

use std::collections::HashSet;

use savoir_skill::{Span, markdown::Outline};

use super::{
    Confidence, Severity,
    act::{Act, Acts},
    archive,
    archive::Kind,
    batch,
    context::{Context, Part, Told},
    decode, embedded, javascript,
    piece::{Language, Piece, Role, fence_language, guess, is_fenced},
    powershell, python, rules, shell,
    value::Memory,
};

/// Most wrappings that are taken off.
const DEEPEST: usize = 6;

/// Most pieces of one skill, and most bytes of those that were hidden.
const MOST_PIECES: usize = 20_000;
const MOST_HIDDEN_BYTES: usize = 4 * 1024 * 1024;

/// Largest text that is read; the rest of a longer one is not.
const LARGEST_TEXT: usize = 2 * 1024 * 1024;

/// As [`LARGEST_TEXT`], of a program: nobody writes a longer one by hand.
const LARGEST_SCRIPT: usize = 1024 * 1024;

/// As [`LARGEST_TEXT`], of a document, which an agent reads into its memory.
const LARGEST_DOCUMENT: usize = 512 * 1024;

/// How much of a text is read. What is beyond makes the verdict a review.
fn largest(path: &str, text: &str) -> usize {
    match super::piece::kind(path, text) {
        (Language::Markdown, _) => LARGEST_DOCUMENT,
        (_, Role::Script) => LARGEST_SCRIPT,
        _ => LARGEST_TEXT,
    }
}

/// Documents that are zip archives by construction.
const DOCUMENTS: [&str; 12] =
    ["docx", "xlsx", "pptx", "odt", "ods", "odp", "dotx", "xltx", "potx", "epub", "vsdx", "key"];

/// Programs in languages that are not read here.
const UNREAD: [&str; 12] =
    ["rb", "pl", "php", "lua", "vbs", "applescript", "scpt", "tcl", "r", "groovy", "jse", "wsf"];

/// Programs of which only the strings and some calls are read.
const CODE: [&str; 18] = [
    "go", "rs", "java", "kt", "swift", "c", "cc", "cpp", "cs", "rb", "pl", "php", "lua", "scala",
    "dart", "groovy", "vb", "m",
];

/// Texts that are data, whatever their first line looks like.
const DATA: [&str; 32] = [
    "json",
    "yaml",
    "yml",
    "toml",
    "csv",
    "tsv",
    "xml",
    "svg",
    "html",
    "htm",
    "css",
    "scss",
    "lock",
    "ini",
    "properties",
    "txt",
    "rst",
    "log",
    "tex",
    "bib",
    "sql",
    "graphql",
    "proto",
    "go",
    "rs",
    "java",
    "kt",
    "swift",
    "c",
    "h",
    "cpp",
    "cs",
];

/// Takes a skill apart.
pub(super) fn gather(context: &mut Context<'_>) {
    let mut gatherer = Gatherer {
        context,
        hidden: 0,
        full: false,
        rot13: false,
        python: Memory::default(),
        javascript: Memory::default(),
        shell: shell::Memory::default(),
        joined: HashSet::new(),
    };
    let files = gatherer.context.files;
    gatherer.learn();
    gatherer.rot13 = files.iter().any(|(path, bytes)| {
        let text = std::str::from_utf8(bytes).unwrap_or_default();
        ending(path) == "md" && says_rot13(&text.to_lowercase())
    });
    for (path, bytes) in files.iter() {
        gatherer.file(path, bytes);
    }
    if gatherer.full {
        gatherer.unread("SKILL.md", "the skill has more in it than is looked at");
    }
}

struct Gatherer<'c, 'a> {
    context: &'c mut Context<'a>,
    hidden: usize,
    full: bool,
    /// Whether a document says that texts are in ROT13, which may be another file.
    rot13: bool,
    /// What the functions of all scripts are called with and give back.
    python: Memory,
    javascript: Memory,
    shell: shell::Memory,
    /// The shell scripts that read others in, and those that are read in.
    joined: HashSet<String>,
}

/// The ending of a name, in small letters.
pub(super) fn ending(path: &str) -> String {
    let name = path.rsplit(['/', '!']).next().unwrap_or(path);
    name.rsplit_once('.').map_or(String::new(), |(_, ending)| ending.to_ascii_lowercase())
}

impl<'a> Gatherer<'_, 'a> {
    /// Reads the scripts once before, so that a function knows what other files call it with.
    fn learn(&mut self) {
        let texts = self.context.files.iter().filter_map(|(path, bytes)| {
            let text =
                std::str::from_utf8(bytes).ok().filter(|text| text.len() <= LARGEST_SCRIPT)?;
            Some((path, text, super::piece::kind(path, text).0))
        });
        let scripts: Vec<_> = texts
            .filter(|(_, _, language)| {
                matches!(language, Language::Python | Language::JavaScript | Language::Shell)
            })
            .collect();
        self.learn_shell(&scripts);
        for wanted in [Language::Python, Language::JavaScript] {
            let all = || scripts.iter().filter(|(_, _, language)| *language == wanted);
            if all().count() < 2 {
                continue;
            }
            for (path, text, _) in all() {
                // What cannot be read is told when it is read for good.
                let _ = match wanted {
                    Language::Python => python::read_with(text, &mut self.python),
                    _ => javascript::read_with(path, text, &mut self.javascript),
                };
            }
        }
    }

    /// Shell scripts know each other only where one reads the other in.
    fn learn_shell(&mut self, scripts: &[(&str, &str, Language)]) {
        let all = || scripts.iter().filter(|(_, _, language)| *language == Language::Shell);
        let mut names: HashSet<&str> = HashSet::new();
        for (path, text, _) in all() {
            let read = shell::read_in(text);
            if !read.is_empty() {
                self.joined.insert((*path).to_owned());
            }
            names.extend(read);
        }
        let name = |path: &'_ str| path.rfind('/').map_or(0, |slash| slash + 1);
        let read = all().filter(|(path, _, _)| names.contains(&path[name(path)..]));
        let read: Vec<String> = read.map(|(path, _, _)| (*path).to_owned()).collect();
        if read.is_empty() {
            return self.joined.clear();
        }
        self.joined.extend(read);
        // Twice: one file gives, another takes, whichever is read first.
        for _ in 0..2 {
            for (path, text, _) in all().filter(|(path, _, _)| self.joined.contains(*path)) {
                let _ = shell::read_with(path, text, &mut self.shell);
            }
        }
    }

    fn file(&mut self, path: &str, bytes: &'a [u8]) {
        match archive::kind(bytes) {
            Kind::Zip => self.archive(path, bytes, 1),
            Kind::Other => match std::str::from_utf8(bytes) {
                Ok(text) => self.text(path, text),
                Err(_) => self.broken(path, bytes),
            },
            _ => {}
        }
    }

    fn text(&mut self, path: &str, text: &'a str) {
        if is_binary(path, text) {
            return;
        }
        let text = &text[..self.readable(path, text)];
        let (language, role) = super::piece::kind(path, text);
        let other_script = role == Role::Script && language == Language::Other;
        if UNREAD.contains(&ending(path).as_str()) || other_script {
            self.unread(path, "the file is a program in a language that is not read here");
        }
        self.piece(Piece::file(path, text));
    }

    /// How much of a text is read; what is beyond makes the verdict a review.
    fn readable(&mut self, path: &str, text: &str) -> usize {
        let largest = largest(path, text);
        if text.len() <= largest {
            return text.len();
        }
        self.unread(path, "the file is too large to be read to its end");
        (0..=largest).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0)
    }

    /// Bytes that are neither text nor anything known.
    fn broken(&mut self, path: &str, bytes: &[u8]) {
        // What macOS keeps beside a file in an archive.
        const APPLE_DOUBLE: [u8; 4] = [0, 5, 0x16, 7];
        if bytes.starts_with(&APPLE_DOUBLE) {
            return;
        }
        let sample = &bytes[..bytes.len().min(64 * 1024)];
        let (language, role) = super::piece::kind(path, &String::from_utf8_lossy(sample));
        let program = UNREAD.contains(&ending(path).as_str());
        if program || role != Role::Data || language != Language::Other {
            self.unread(path, "the file is not valid UTF-8");
        }
    }

    fn unread(&mut self, path: &str, why: &str) {
        let told = Told::new(Severity::High, Confidence::High, why);
        self.context.tell_file(&rules::UNREAD_FILE, path, told);
    }

    fn archive(&mut self, path: &str, bytes: &[u8], depth: usize) {
        let document = DOCUMENTS.contains(&ending(path).as_str());
        let contents = archive::unzip(bytes);
        if contents.locked {
            let told = Told::new(
                Severity::High,
                Confidence::High,
                "the archive is locked with a password",
            );
            self.context.tell_file(&rules::LOCKED_ARCHIVE, path, told);
        }
        if let Some(problem) = contents.problem {
            self.unread(path, &format!("the archive cannot be read: {problem}"));
        }
        for (name, bytes) in contents.files {
            let inside = format!("{path}!{name}");
            self.hidden += bytes.len();
            if self.hidden > 4 * MOST_HIDDEN_BYTES {
                self.full = true;
                return;
            }
            match archive::kind(&bytes) {
                Kind::Program(what) => {
                    let told = Told::new(
                        Severity::Critical,
                        Confidence::High,
                        format!("an archive holds {what}"),
                    );
                    self.context.tell_file(&rules::BINARY_PROGRAM, &inside, told);
                }
                Kind::Zip if depth < 3 => self.archive(&inside, &bytes, depth + 1),
                Kind::Zip | Kind::Packed(_) => {
                    self.unread(&inside, "an archive in an archive is not looked into");
                }
                _ if document && name.ends_with("vbaProject.bin") => {
                    let told =
                        Told::new(Severity::High, Confidence::High, "the document has macros");
                    self.context.tell_file(&rules::BINARY_PROGRAM, &inside, told);
                }
                _ if document && is_part_of_document(&name) => {}
                _ => match String::from_utf8(bytes) {
                    Ok(text) if is_binary(&inside, &text) => {}
                    Ok(mut text) => {
                        text.truncate(self.readable(&inside, &text));
                        self.piece(Piece::packed(&inside, text, "an archive", depth));
                    }
                    Err(error) => self.broken(&inside, error.as_bytes()),
                },
            }
        }
    }

    fn piece(&mut self, piece: Piece<'a>) {
        if self.context.parts.len() >= MOST_PIECES {
            self.full = true;
            return;
        }
        let acts = self.acts(&piece);
        let mut inner: Vec<Piece<'a>> = Vec::new();
        if piece.depth < DEEPEST {
            for found in &acts.inner {
                let language = found.language.unwrap_or_else(|| guess(&found.text));
                inner.push(piece.inner(found.text.clone(), language, found.cloak, found.span));
            }
            if piece.language == Language::Markdown {
                inner.extend(code_in(&piece));
            }
            if super::piece::kind(&piece.path, "").0 != Language::Other || piece.depth == 0 {
                inner.extend(encoded_in(&piece));
            }
            if piece.path.ends_with("package.json") && piece.depth == 0 {
                inner.extend(scripts_in(&piece));
            }
            if piece.depth == 0 {
                inner.extend(turned(&piece, self.rot13 && piece.role != Role::Script));
            }
            if piece.depth == 0 && piece.language == Language::Other {
                inner.extend(other_code(&piece));
            }
        }
        if acts.is_cut {
            self.unread(&piece.path.clone(), "the file has more commands than are followed");
        }
        let deeper = piece.depth >= DEEPEST && !acts.inner.is_empty();
        self.full |= deeper && piece.cloak.is_some();
        self.context.parts.push(Part { piece, acts });
        for piece in inner {
            self.hidden += piece.text.len();
            if self.hidden > MOST_HIDDEN_BYTES * 4 {
                self.full = true;
                return;
            }
            self.piece(piece);
        }
    }

    fn acts(&mut self, piece: &Piece<'a>) -> Acts {
        let acts = match piece.language {
            Language::Shell => {
                let path: &str = &piece.path;
                let mut acts = if piece.depth == 0 && self.joined.contains(path) {
                    shell::read_with(path, &piece.text, &mut self.shell)
                } else {
                    shell::read(&piece.text)
                };
                if powershell::is_powershell(&piece.path, &piece.text) {
                    powershell::read(&piece.text, &mut acts);
                }
                if batch::is_batch(&piece.path, &piece.text) {
                    batch::read(&piece.text, &mut acts);
                }
                Ok(acts)
            }
            Language::Python if piece.depth == 0 => {
                python::read_with(&piece.text, &mut self.python)
            }
            Language::Python => python::read(&piece.text),
            Language::JavaScript if piece.depth == 0 => {
                javascript::read_with(&piece.path, &piece.text, &mut self.javascript)
            }
            Language::JavaScript => javascript::read(&piece.path, &piece.text),
            Language::Other if piece.depth == 0 && CODE.contains(&ending(&piece.path).as_str()) => {
                let mut acts = Acts::default();
                embedded::other_acts(&piece.text, &mut acts);
                Ok(acts)
            }
            Language::Markdown | Language::Other => Ok(Acts::default()),
        };
        match acts {
            Ok(mut acts) => {
                if piece.role == Role::Script {
                    name_wallets(&piece.text, &mut acts);
                }
                acts
            }
            // Code in a document may leave out what does not matter there.
            Err(_) if piece.shown || piece.depth > 0 && piece.cloak.is_none() => Acts::default(),
            Err(why) => {
                self.unread(
                    &piece.path.clone(),
                    &format!("the file cannot be read as a program: {why}"),
                );
                Acts::default()
            }
        }
    }
}

/// A line of code that knows several wallets looks for what they keep.
fn name_wallets(text: &str, acts: &mut Acts) {
    const WORDS: [&str; 9] = [
        "mnemonic", "seed", "metamask", "ledger", "trezor", "phantom", "exodus", "electrum", "xprv",
    ];
    for line in text.lines() {
        let lower = line.to_ascii_lowercase();
        if WORDS.iter().filter(|word| lower.contains(*word)).count() > 2 {
            let at = line.as_ptr() as usize - text.as_ptr() as usize;
            acts.push(Act::Names("the phrases of wallets"), Span::new(at, at + line.len()));
        }
    }
}

/// Whether a file is data that no text has in it: zeros, and no name or first line of a program.
fn is_binary(path: &str, text: &str) -> bool {
    memchr::memchr(0, text.as_bytes()).is_some()
        && super::piece::kind(path, text) == (Language::Other, Role::Data)
        && super::piece::guess(text) == Language::Other
}

/// Whether a file of an office document holds its text, its pictures or its settings.
fn is_part_of_document(name: &str) -> bool {
    let ending = ending(name);
    !UNREAD.contains(&ending.as_str())
        && super::piece::kind(name, "").1 == Role::Data
        && !CODE.contains(&ending.as_str())
}

/// Longest code between two backquotes; behind that, a backquote stands alone.
const LONGEST_INLINE: usize = 20_000;

/// Code blocks and commands between backquotes.
fn code_in<'a>(piece: &Piece<'a>) -> Vec<Piece<'a>> {
    let text: &str = &piece.text;
    let outline = Outline::new(text, Span::new(0, text.len()));
    let mut found = Vec::new();
    for fence in &outline.fences {
        let language = fence_language(fence.info.slice(text), fence.content.slice(text));
        if matches!(language, Language::Shell | Language::Python | Language::JavaScript) {
            found.push(piece.part(fence.content, language));
        } else if language == Language::Other {
            // Settings have commands in them: hooks, tasks, servers.
            let settings = piece.part(fence.content, language);
            for (command, span) in embedded::commands(&settings.text) {
                let mut command = settings.inner(command, Language::Shell, None, span);
                command.depth = settings.depth;
                found.push(command);
            }
        }
    }
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(open) = memchr::memchr(b'`', &bytes[at..]).map(|open| at + open) {
        let ticks = bytes[open..].iter().take_while(|byte| **byte == b'`').count();
        let inside = open + ticks;
        let window = &bytes[inside..bytes.len().min(inside + LONGEST_INLINE)];
        let close = memchr::memmem::find(window, &bytes[open..inside]).map(|end| inside + end);
        let Some(close) = close.filter(|_| ticks < 3) else {
            at = inside;
            continue;
        };
        let span = Span::new(inside, close);
        at = close + ticks;
        let code = span.slice(text);
        if !outline.is_literal(open)
            && code.contains([' ', '\t'])
            && guess(code) == Language::Shell
            && !is_sign_of_malware(text, span)
            && !is_example_of_attack(text, open)
        {
            found.push(piece.part(span, Language::Shell));
        }
    }
    found.extend(indented(piece, &outline));
    found.extend(bare_commands(piece, &outline));
    found
}

/// Whether a command stands in a sentence or a row below a heading such as `## Red flags`.
fn is_example_of_attack(text: &str, at: usize) -> bool {
    let heading = text[..at].rfind("\n#").map_or(text, |open| &text[open + 1..]);
    if !heading.starts_with('#') {
        return false;
    }
    let heading = heading.lines().next().unwrap_or_default().to_lowercase();
    ["red flag", "warning sign", "signs of", "scams"].iter().any(|words| heading.contains(words))
}

/// Whether a command that switches off a protection is named as what harmful programs do.
fn is_sign_of_malware(text: &str, span: Span) -> bool {
    const COMMANDS: [&str; 9] = [
        "vssadmin",
        "wbadmin",
        "bcdedit",
        "set-mppreference",
        "add-mppreference",
        "setenforce",
        "netsh",
        "tmutil",
        "shred",
    ];
    const WORDS: [&str; 8] = [
        "ransomware",
        "malware",
        "keylogger",
        "attacker",
        "indicator",
        "suspicious",
        "detect",
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
    WORDS.iter().any(|word| before.contains(word) || after.contains(word))
}

/// Code blocks that are only indented.
fn indented<'a>(piece: &Piece<'a>, outline: &Outline) -> Vec<Piece<'a>> {
    let text: &str = &piece.text;
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
    found.retain(|span| guess(span.slice(text)) == Language::Shell);
    found.into_iter().map(|span| piece.part(span, Language::Shell)).collect()
}

/// Commands that stand in the text without any marks.
fn bare_commands<'a>(piece: &Piece<'a>, outline: &Outline) -> Vec<Piece<'a>> {
    const MARKS: [&str; 8] =
        ["base64 -d", "base64 -D", "base64 --decode", "| bash", "| sh", "|bash", "|sh", "| iex"];
    let text: &str = &piece.text;
    let mut found = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let span = Span::new(start, start + line.trim_end().len());
        start += line.len();
        let bare = MARKS.iter().filter_map(|mark| line.find(mark)).any(|at| {
            let quoted = line[..at].matches('`').count() % 2 == 1;
            !quoted && !outline.is_literal(start - line.len() + at)
        });
        if bare && guess(line) == Language::Shell {
            found.push(piece.part(span, Language::Shell));
        }
    }
    found
}

/// Encoded runs that turn out to be code or sentences.
fn encoded_in<'a>(piece: &Piece<'a>) -> Vec<Piece<'a>> {
    let runs =
        decode::runs(&piece.text).into_iter().filter(|(text, _, _)| text.contains([' ', '(', '/']));
    let rot13 = says_rot13(&piece.text.to_lowercase());
    let mut found = Vec::new();
    for (text, how, span) in runs.chain(decode::numbers(&piece.text)) {
        if rot13 {
            let turned = decode::rot13(&text);
            found.push(piece.inner(turned, Language::Other, Some("Base64 and ROT13"), span));
        }
        let language = guess(&text);
        found.push(piece.inner(text, language, Some(how), span));
    }
    found
}

/// Code in a file whose name does not say so, and commands in files that are not read as code.
fn other_code<'a>(piece: &Piece<'a>) -> Vec<Piece<'a>> {
    let mut found = Vec::new();
    let language = guess(&piece.text);
    if language != Language::Other && !DATA.contains(&ending(&piece.path).as_str()) {
        found.push(piece.part(Span::new(0, piece.text.len()), language));
    }
    for (command, span) in embedded::commands(&piece.text) {
        found.push(piece.inner(command, Language::Shell, None, span));
    }
    found
}

fn says_rot13(lower: &str) -> bool {
    [
        "rot13",
        "rot-13",
        "rot 13",
        "by thirteen",
        "thirteen places",
        "13 places",
        "thirteen letters",
        "caesar",
    ]
    .iter()
    .any(|name| lower.contains(name))
}

/// A text that says that it is turned around is read the right way round, too.
fn turned<'a>(piece: &Piece<'a>, rot13: bool) -> Vec<Piece<'a>> {
    let lower = piece.text.to_lowercase();
    let whole = Span::new(0, piece.text.len());
    let mut found = Vec::new();
    if rot13 || says_rot13(&lower) {
        found.push(piece.inner(decode::rot13(&piece.text), Language::Other, Some("ROT13"), whole));
    }
    if ["right to left", "backwards", "reversed", "reverse the"]
        .iter()
        .any(|name| lower.contains(name))
    {
        let lines: Vec<String> =
            piece.text.lines().map(|line| line.chars().rev().collect()).collect();
        found.push(piece.inner(
            lines.join("\n\n"),
            Language::Other,
            Some("reversed letters"),
            whole,
        ));
    }
    found
}

/// The commands that npm runs.
fn scripts_in<'a>(piece: &Piece<'a>) -> Vec<Piece<'a>> {
    let Ok(json) = serde_json::from_str::<serde_json::Value>(&piece.text) else {
        return Vec::new();
    };
    let Some(scripts) = json.get("scripts").and_then(serde_json::Value::as_object) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    // They stand in their order, so each is looked for behind the one before.
    let mut at = 0;
    for (name, command) in scripts {
        let Some(command) = command.as_str() else { continue };
        at += piece.text[at..].find(&format!("\"{name}\"")).unwrap_or(0);
        let mut script = piece.inner(command.to_owned(), Language::Shell, None, Span::at(at));
        script.role = Role::Script;
        found.push(script);
    }
    found
}
