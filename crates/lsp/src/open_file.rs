//! A file that is open in the editor: its text, kept up to date edit by edit, and its check.

use std::{
    cell::{OnceCell, RefCell},
    path::{Path, PathBuf},
    rc::Rc,
    time::Instant,
};

use lsp_types::{Position, Range, TextDocumentContentChangeEvent, TextEdit};
use savoir_lint::{Edit, Span};
use savoir_package::agents;
use savoir_skill::{
    Folder, Source,
    check::{self, CheckedSkill, Options},
    limits::MAX_FILE_BYTES,
};
use url::Url;

use crate::{
    client::path_of,
    file_kind::FileKind,
    limits::FOLDER_AGE,
    position::{Encoding, Lines},
};

#[derive(Debug)]
pub(crate) struct OpenFile {
    pub(crate) uri: Url,
    pub(crate) path: Option<PathBuf>,
    pub(crate) kind: FileKind,
    pub(crate) version: i32,
    encoding: Encoding,
    text: String,
    lines: Lines,
    checked: OnceCell<Option<Rc<CheckedSkill>>>,
    folder: RefCell<Option<(Instant, Option<Rc<Folder>>)>>,
}

impl OpenFile {
    pub(crate) fn new(
        uri: Url,
        language: &str,
        version: i32,
        text: String,
        encoding: Encoding,
    ) -> Self {
        let path = path_of(&uri);
        let kind = FileKind::new(path.as_deref(), language);
        let lines = Lines::new(&text);
        Self {
            uri,
            path,
            kind,
            version,
            encoding,
            text,
            lines,
            checked: OnceCell::new(),
            folder: RefCell::new(None),
        }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn is_skill(&self) -> bool {
        self.kind == FileKind::Skill
    }

    /// Applies edits of the user in order.
    pub(crate) fn apply(&mut self, changes: Vec<TextDocumentContentChangeEvent>) {
        for change in changes {
            match change {
                TextDocumentContentChangeEvent::TextDocumentContentChangePartial(change) => {
                    let span = self.lines.span(&self.text, change.range, self.encoding);
                    self.text.replace_range(span.start..span.end, &change.text);
                }
                TextDocumentContentChangeEvent::TextDocumentContentChangeWholeDocument(change) => {
                    self.text = change.text;
                }
            }
            self.lines = Lines::new(&self.text);
        }
        self.forget_check();
    }

    /// Clears the check, because a setting changed; the next request checks the file again.
    pub(crate) fn forget_check(&mut self) {
        self.checked = OnceCell::new();
    }

    /// Clears the list of files, so that the next check lists the folder again.
    pub(crate) fn forget_folder(&mut self) {
        self.folder = RefCell::new(None);
        self.forget_check();
    }

    /// The check of a SKILL.md; nothing for other files and for files that are too large.
    pub(crate) fn checked(&self, options: &Options) -> Option<Rc<CheckedSkill>> {
        if !self.is_skill() || self.text.len() > MAX_FILE_BYTES {
            return None;
        }
        let check = || {
            let source = Source::new(self.text.clone());
            Some(Rc::new(check::check(source, self.folder().as_deref(), options)))
        };
        self.checked.get_or_init(check).clone()
    }

    /// The files beside SKILL.md, as `savoir check FILE` lists them.
    pub(crate) fn folder(&self) -> Option<Rc<Folder>> {
        if let Some((listed, folder)) = &*self.folder.borrow()
            && listed.elapsed() < FOLDER_AGE
        {
            return folder.clone();
        }
        let root = self.path.as_deref().filter(|_| self.is_skill()).and_then(Path::parent);
        let folder = root.and_then(|root| Folder::open(root).ok());
        let folder = folder.map(|folder| {
            let hint = agents::hint_at(folder.root());
            Rc::new(folder.with_hint(hint))
        });
        *self.folder.borrow_mut() = Some((Instant::now(), folder.clone()));
        folder
    }

    pub(crate) fn range(&self, span: Span) -> Range {
        self.lines.range(&self.text, span, self.encoding)
    }

    pub(crate) fn span(&self, range: Range) -> Span {
        self.lines.span(&self.text, range, self.encoding)
    }

    pub(crate) fn position(&self, offset: usize) -> Position {
        self.lines.position(&self.text, offset, self.encoding)
    }

    pub(crate) fn offset(&self, position: Position) -> usize {
        self.lines.offset(&self.text, position, self.encoding)
    }

    pub(crate) fn text_edit(&self, edit: &Edit) -> TextEdit {
        TextEdit { range: self.range(edit.span), new_text: edit.text.clone() }
    }
}

#[cfg(test)]
mod tests {
    use lsp_types::{TextDocumentContentChangePartial, TextDocumentContentChangeWholeDocument};
    use proptest::prelude::*;

    use super::*;

    const ENCODINGS: [Encoding; 3] = [Encoding::Utf8, Encoding::Utf16, Encoding::Utf32];

    fn open(text: &str, encoding: Encoding) -> OpenFile {
        let uri = Url::parse("untitled:SKILL.md").unwrap();
        OpenFile::new(uri, "skill", 0, text.to_owned(), encoding)
    }

    /// Applies one edit as a client does, whose positions refer to the text before it.
    fn edit(file: &mut OpenFile, span: Span, text: &str) {
        let range = file.range(span);
        let text = text.to_owned();
        let change = TextDocumentContentChangePartial { range, text, ..Default::default() };
        file.apply(vec![change.into()]);
    }

    #[test]
    fn the_whole_text_can_be_replaced() {
        let mut file = open("a", Encoding::Utf16);
        let whole = TextDocumentContentChangeWholeDocument { text: "b\nc".to_owned() };
        file.apply(vec![whole.into()]);
        assert_eq!(file.text(), "b\nc");
        assert_eq!(file.position(3), Position { line: 1, character: 1 });
    }

    #[test]
    fn positions_out_of_the_text_do_no_harm() {
        let mut file = open("ab", Encoding::Utf16);
        let far = Position { line: u32::MAX, character: u32::MAX };
        let range = Range { start: far, end: Position { line: 0, character: 0 } };
        let text = "x".to_owned();
        file.apply(vec![
            TextDocumentContentChangePartial { range, text, ..Default::default() }.into(),
        ]);
        assert_eq!(file.text(), "abx");
    }

    /// Pieces that edits insert: line ends of all systems, wide characters, YAML and Markdown.
    fn piece() -> impl Strategy<Value = &'static str> {
        prop::sample::select(vec![
            "", "a", "\n", "\r\n", "\r", "é", "😀", "e\u{301}", "\u{feff}", "\u{202e}", "---\n",
            "name: ", "description: x: y\n", "  - [", "{", "\"", "'", "|\n", "\t", "```",
            "](a.md)", "{{x}}", "$ARGUMENTS", "# T\n", "<!--", "allowed-tools: Bash(",
            "inputs:\n  - name: x\n",
        ])
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

        /// Edits one by one give the text that a full replacement gives, in every encoding, and
        /// checking it never panics.
        #[test]
        fn edits_give_the_same_text_and_findings_as_the_whole(
            start in prop::collection::vec(piece(), 0..24),
            edits in prop::collection::vec((any::<prop::sample::Index>(), 0_usize..9, piece()), 1..24),
            encoding in prop::sample::select(ENCODINGS.to_vec()),
        ) {
            let mut expected = format!("---\nname: demo\ndescription: d\n---\n{}", start.concat());
            let mut file = open(&expected, encoding);
            for (at, length, text) in edits {
                let boundary = |at: usize| {
                    // Editors place no edit between the two bytes of a line end.
                    let at = savoir_lint::floor_char_boundary(&expected, at);
                    let splits = expected[..at].ends_with('\r') && expected[at..].starts_with('\n');
                    if splits { at - 1 } else { at }
                };
                let start = boundary(at.index(expected.len() + 1));
                let end = boundary(start + length).max(start);
                edit(&mut file, Span::new(start, end), text);
                expected.replace_range(start..end, text);
                prop_assert_eq!(file.text(), &expected);
            }
            let options = Options::default();
            let found = file.checked(&options).expect("a skill").diagnostics.clone();
            let whole = open(&expected, encoding).checked(&options).expect("a skill").diagnostics.clone();
            prop_assert_eq!(found, whole);
        }
    }
}
