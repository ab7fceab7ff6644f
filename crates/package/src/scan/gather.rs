//! Taking a skill apart: files into pieces, pieces into acts, wrappings off.

use savoir_skill::{Span, markdown::Outline};

use super::{
    Confidence, Severity,
    act::Acts,
    archive,
    archive::Kind,
    context::{Context, Part, Told},
    decode, javascript,
    piece::{Language, Piece, Role, fence_language, guess},
    python, rules, shell,
};

/// Most wrappings that are taken off.
const DEEPEST: usize = 6;

/// Most pieces of one skill, and most bytes of those that were hidden.
const MOST_PIECES: usize = 20_000;
const MOST_HIDDEN_BYTES: usize = 4 * 1024 * 1024;

/// Largest text that is read; the rest of a longer one is not.
const LARGEST_TEXT: usize = 2 * 1024 * 1024;

/// Documents that are zip archives by construction.
const DOCUMENTS: [&str; 12] =
    ["docx", "xlsx", "pptx", "odt", "ods", "odp", "dotx", "xltx", "potx", "epub", "vsdx", "key"];

/// Programs in languages that are not read here.
const UNREAD: [&str; 12] =
    ["rb", "pl", "php", "lua", "vbs", "applescript", "scpt", "tcl", "r", "groovy", "jse", "wsf"];

/// Takes a skill apart.
pub(super) fn gather(context: &mut Context<'_>) {
    let mut gatherer = Gatherer { context, hidden: 0, full: false };
    let tree = gatherer.context.tree;
    for (path, file) in tree.files() {
        gatherer.file(path, &file.bytes);
    }
    if gatherer.full {
        gatherer.unread("SKILL.md", "the skill has more in it than is looked at");
    }
}

struct Gatherer<'c, 'a> {
    context: &'c mut Context<'a>,
    hidden: usize,
    full: bool,
}

/// The ending of a name, in small letters.
pub(super) fn ending(path: &str) -> String {
    let name = path.rsplit(['/', '!']).next().unwrap_or(path);
    name.rsplit_once('.').map_or(String::new(), |(_, ending)| ending.to_ascii_lowercase())
}

impl<'a> Gatherer<'_, 'a> {
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
        let mut text = text;
        if text.len() > LARGEST_TEXT {
            let mut end = LARGEST_TEXT;
            while !text.is_char_boundary(end) {
                end -= 1;
            }
            text = &text[..end];
            self.unread(path, "the file is too large to be read to its end");
        }
        if UNREAD.contains(&ending(path).as_str()) {
            self.unread(path, "the file is a program in a language that is not read here");
        }
        self.piece(Piece::file(path, text));
    }

    /// Bytes that are neither text nor anything known.
    fn broken(&mut self, path: &str, bytes: &[u8]) {
        let sample = &bytes[..bytes.len().min(64 * 1024)];
        let (language, role) = super::piece::kind(path, &String::from_utf8_lossy(sample));
        if role == Role::Script || role == Role::Instructions || language != Language::Other {
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
                _ if document => {}
                _ => {
                    if let Ok(text) = String::from_utf8(bytes) {
                        self.piece(Piece::packed(&inside, text, "an archive", depth));
                    }
                }
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
        }
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
            Language::Shell => Ok(shell::read(&piece.text)),
            Language::Python => python::read(&piece.text),
            Language::JavaScript => javascript::read(&piece.path, &piece.text),
            Language::Markdown | Language::Other => Ok(Acts::default()),
        };
        match acts {
            Ok(acts) => acts,
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

/// Code blocks and commands between backquotes.
fn code_in<'a>(piece: &Piece<'a>) -> Vec<Piece<'a>> {
    let text: &str = &piece.text;
    let outline = Outline::new(text, Span::new(0, text.len()));
    let mut found = Vec::new();
    for fence in &outline.fences {
        let language = fence_language(fence.info.slice(text), fence.content.slice(text));
        if matches!(language, Language::Shell | Language::Python | Language::JavaScript) {
            found.push(piece.part(fence.content, language));
        }
    }
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(open) = memchr::memchr(b'`', &bytes[at..]).map(|open| at + open) {
        let ticks = bytes[open..].iter().take_while(|byte| **byte == b'`').count();
        let inside = open + ticks;
        let close =
            memchr::memmem::find(&bytes[inside..], &bytes[open..inside]).map(|end| inside + end);
        let Some(close) = close.filter(|close| ticks < 3 && close - inside < 2_000) else {
            at = inside;
            continue;
        };
        let span = Span::new(inside, close);
        at = close + ticks;
        let code = span.slice(text);
        if !outline.is_literal(open) && code.contains([' ', '\t']) && guess(code) == Language::Shell
        {
            found.push(piece.part(span, Language::Shell));
        }
    }
    found.extend(bare_commands(piece, &outline));
    found
}

/// Commands that stand in the text without any marks.
fn bare_commands<'a>(piece: &Piece<'a>, outline: &Outline) -> Vec<Piece<'a>> {
    let text: &str = &piece.text;
    let mut found = Vec::new();
    for mark in
        ["base64 -d", "base64 -D", "base64 --decode", "| bash", "| sh", "|bash", "|sh", "| iex"]
    {
        for at in memchr::memmem::find_iter(text.as_bytes(), mark) {
            let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
            let end = text[at..].find('\n').map_or(text.len(), |end| at + end);
            let line = Span::new(start, end);
            let quoted = line.slice(text).contains('`');
            if !outline.is_literal(at) && !quoted && guess(line.slice(text)) == Language::Shell {
                found.push(piece.part(line, Language::Shell));
            }
        }
    }
    found
}

/// Encoded runs that turn out to be code or sentences.
fn encoded_in<'a>(piece: &Piece<'a>) -> Vec<Piece<'a>> {
    let runs =
        decode::runs(&piece.text).into_iter().filter(|(text, _, _)| text.contains([' ', '(', '/']));
    runs.map(|(text, how, span)| {
        let language = guess(&text);
        piece.inner(text, language, Some(how), span)
    })
    .collect()
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
    for (name, command) in scripts {
        let Some(command) = command.as_str() else { continue };
        let at = piece.text.find(&format!("\"{name}\"")).unwrap_or(0);
        let mut script = piece.inner(command.to_owned(), Language::Shell, None, Span::at(at));
        script.role = Role::Script;
        found.push(script);
    }
    found
}
