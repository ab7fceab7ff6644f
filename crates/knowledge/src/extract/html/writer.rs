//! Writes Markdown from the tags and texts of a page.

/// Maximum indentation of nested lists.
const MAX_LIST_DEPTH: usize = 8;

/// The separator between two texts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Separator {
    #[default]
    None,
    Blank,
    Line,
    Paragraph,
}

/// An open list.
#[derive(Clone, Copy)]
enum List {
    Bullets,
    Numbers(u32),
}

/// The Markdown written so far.
#[derive(Default)]
pub(super) struct Writer {
    out: String,
    separator: Separator,
    /// Markup before the next text, such as `# `.
    mark: String,
    lists: Vec<List>,
    /// Inside `<pre>`: the position where its text starts.
    pre: Option<usize>,
    /// The number of cells in the current row; `None` outside of rows.
    row: Option<usize>,
    /// The open link.
    link: Option<Link>,
}

/// An open link.
struct Link {
    target: String,
    /// Whether text of the link was written.
    is_written: bool,
}

impl Writer {
    /// Writes a text after decoding its entities.
    pub(super) fn text(&mut self, text: &str) {
        if self.pre.is_some() {
            self.out.push_str(text);
            return;
        }
        if text.starts_with(|c: char| c.is_ascii_whitespace()) {
            self.separator(Separator::Blank);
        }
        for word in text.split_ascii_whitespace() {
            self.flush();
            if let Some(link) = self.link.as_mut().filter(|link| !link.is_written) {
                link.is_written = true;
                self.out.push('[');
            }
            self.out.push_str(word);
            self.separator = Separator::Blank;
        }
        let blank = text.ends_with(|c: char| c.is_ascii_whitespace());
        if !blank && !text.is_empty() {
            self.separator = Separator::None;
        }
    }

    /// Starts a link with a target.
    pub(super) fn begin_link(&mut self, target: Option<String>) {
        self.link = target.map(|target| Link { target, is_written: false });
    }

    pub(super) fn end_link(&mut self) {
        if let Some(Link { target, is_written: true }) = self.link.take() {
            self.out.extend(["](", &target, ")"]);
        }
    }

    fn separator(&mut self, separator: Separator) {
        // In a table row, texts are separated only by spaces.
        let separator =
            if self.row.is_some() { separator.min(Separator::Blank) } else { separator };
        self.separator = self.separator.max(separator);
    }

    /// Writes the separator and the markup before the next text.
    fn flush(&mut self) {
        if !self.out.is_empty() {
            self.out.push_str(match self.separator {
                Separator::None => "",
                Separator::Blank if self.mark.is_empty() => " ",
                Separator::Blank | Separator::Line => "\n",
                Separator::Paragraph => "\n\n",
            });
        }
        self.separator = Separator::None;
        self.out.push_str(&self.mark);
        self.mark.clear();
    }

    /// Handles a start tag; `alt` is the alternative text of an image.
    pub(super) fn open(&mut self, name: &str, alt: impl FnOnce() -> Option<String>) {
        match name {
            "br" if self.pre.is_some() => self.out.push('\n'),
            _ if self.pre.is_some() => {}
            "img" => {
                if let Some(alt) = alt() {
                    self.separator(Separator::Blank);
                    self.text(&alt);
                    self.separator(Separator::Blank);
                }
            }
            "pre" => {
                self.block(Separator::Paragraph);
                self.flush();
                self.pre = Some(self.out.len());
            }
            "ul" => self.list(List::Bullets),
            "ol" => self.list(List::Numbers(0)),
            "li" => self.item(),
            "tr" => {
                self.row = None;
                self.block(Separator::Line);
                self.row = Some(0);
            }
            "td" | "th" => self.cell(),
            _ if heading(name).is_some() && self.row.is_none() => {
                self.block(Separator::Paragraph);
                self.mark = format!("{} ", "#".repeat(heading(name).unwrap_or(1)));
            }
            _ => self.part(name),
        }
    }

    /// Handles an end tag.
    pub(super) fn close(&mut self, name: &str) {
        match name {
            "pre" => self.end_pre(),
            _ if self.pre.is_some() => {}
            "ul" | "ol" => {
                self.lists.pop();
                self.block(if self.lists.is_empty() {
                    Separator::Paragraph
                } else {
                    Separator::Line
                });
            }
            "tr" => {
                if self.row.take().is_some_and(|cells| cells > 0) {
                    self.out.push_str(" |");
                }
                self.block(Separator::Line);
            }
            "table" => {
                self.row = None;
                self.block(Separator::Paragraph);
            }
            "td" | "th" => {}
            _ => self.part(name),
        }
    }

    /// Handles the start or end of an element that separates blocks.
    fn part(&mut self, name: &str) {
        match name {
            "p" | "table" | "blockquote" | "section" | "article" | "header" | "footer" | "main"
            | "aside" | "dl" | "figure" | "hr" | "form" | "fieldset" | "details" | "body" => {
                // A paragraph in a list item does not start a new block.
                let separator =
                    if self.lists.is_empty() { Separator::Paragraph } else { Separator::Line };
                self.block(separator);
            }
            "br" | "div" | "dt" | "dd" | "li" | "address" | "caption" | "figcaption" | "option"
            | "thead" | "tbody" | "tfoot" | "summary" | "legend" => self.block(Separator::Line),
            _ if heading(name).is_some() => self.block(Separator::Paragraph),
            _ => {}
        }
    }

    /// Separates blocks. The marker of a list item stays pending until its text.
    fn block(&mut self, separator: Separator) {
        self.separator(separator);
        if self.mark.starts_with('#') {
            self.mark.clear();
        }
    }

    fn list(&mut self, list: List) {
        self.block(if self.lists.is_empty() { Separator::Paragraph } else { Separator::Line });
        self.lists.push(list);
    }

    fn item(&mut self) {
        self.block(Separator::Line);
        let indent = "  ".repeat(self.lists.len().saturating_sub(1).min(MAX_LIST_DEPTH));
        let mark = match self.lists.last_mut() {
            Some(List::Numbers(number)) => {
                *number = number.saturating_add(1);
                format!("{number}. ")
            }
            _ => "- ".to_owned(),
        };
        if self.row.is_none() {
            self.mark = format!("{indent}{mark}");
        }
    }

    fn cell(&mut self) {
        let Some(cells) = self.row.as_mut() else { return self.separator(Separator::Blank) };
        *cells += 1;
        let first = *cells == 1;
        if first {
            self.flush();
        }
        self.out.push_str(if first { "|" } else { " |" });
        self.separator = Separator::Blank;
    }

    /// Ends preformatted text, with a fence that is longer than any inside.
    fn end_pre(&mut self) {
        let Some(start) = self.pre.take() else { return };
        let code = self.out.split_off(start);
        let code = code.trim_matches('\n').trim_end();
        if !code.trim().is_empty() {
            let longest = code.split(|c| c != '`').map(str::len).max().unwrap_or_default();
            let fence = "`".repeat((longest + 1).max(3));
            self.out.extend([&fence, "\n", code, "\n", &fence]);
        }
        self.separator = Separator::Paragraph;
    }

    pub(super) fn finish(mut self) -> String {
        self.end_pre();
        self.end_link();
        if self.row.is_some_and(|cells| cells > 0) {
            self.out.push_str(" |");
        }
        self.out.truncate(self.out.trim_end().len());
        self.out
    }
}

/// Returns the level of a heading.
fn heading(name: &str) -> Option<usize> {
    match name.as_bytes() {
        [b'h', level @ b'1'..=b'6'] => Some(usize::from(level - b'0')),
        _ => None,
    }
}
