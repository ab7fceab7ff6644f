//! Converts HTML to Markdown in one pass; malformed HTML is accepted.

mod entities;
mod writer;

use url::Url;

use self::{entities::decode, writer::Writer};

/// Elements whose contents are not text for readers.
const DROPPED_ELEMENTS: [&str; 12] = [
    "script", "style", "head", "nav", "template", "noscript", "svg", "iframe", "object", "canvas",
    "select", "button",
];

/// Elements whose contents are not markup.
const RAW_TEXT_ELEMENTS: [&str; 2] = ["script", "style"];

/// Elements that are allowed in the head. Any other element ends the head, even without its end
/// tag.
const HEAD_ELEMENTS: [&str; 8] =
    ["meta", "link", "title", "style", "script", "base", "noscript", "template"];

/// Converts a page to Markdown without links.
pub(super) fn to_markdown(page: &str) -> String {
    convert(page, |_| None)
}

/// Converts a page from this URL to Markdown with links.
pub fn to_markdown_with_links(page: &str, address: &Url) -> String {
    convert(page, |target| {
        let target = address.join(&decode(target)).ok()?;
        matches!(target.scheme(), "http" | "https").then(|| target.to_string())
    })
}

fn convert(page: &str, link: impl Fn(&str) -> Option<String>) -> String {
    let mut scanner = Scanner { page, at: 0, ends: last_ends(page), dropping: None };
    let mut writer = Writer::default();
    while let Some(piece) = scanner.next_piece() {
        match piece {
            PagePiece::Text(text) => writer.text(&decode(text)),
            PagePiece::Tag(tag) if tag.name == "a" => {
                writer.end_link();
                let target = if tag.closing { None } else { tag.attribute("href").and_then(&link) };
                writer.begin_link(target);
            }
            PagePiece::Tag(tag) if tag.closing => writer.close(&tag.name),
            PagePiece::Tag(tag) => writer.open(&tag.name, || tag.attribute("alt").map(decode)),
        }
    }
    writer.finish()
}

/// A text or a tag of a page.
enum PagePiece<'a> {
    Text(&'a str),
    Tag(Tag<'a>),
}

struct Tag<'a> {
    name: String,
    closing: bool,
    /// The text between the name and `>`.
    attributes: &'a str,
}

impl<'a> Tag<'a> {
    /// The value of a quoted attribute.
    fn attribute(&self, name: &str) -> Option<&'a str> {
        let mut rest = self.attributes;
        while let Some((before, after)) = rest.split_once('=') {
            let (value, next) = match after.trim_start() {
                quoted if quoted.starts_with(['"', '\'']) => {
                    quoted[1..].split_once(&quoted[..1]).unwrap_or((&quoted[1..], ""))
                }
                plain => plain.split_once(char::is_whitespace).unwrap_or((plain, "")),
            };
            let key = before.split_whitespace().next_back().unwrap_or_default();
            if key.eq_ignore_ascii_case(name) {
                return Some(value);
            }
            rest = next;
        }
        None
    }
}

/// An element that is being dropped.
struct DroppedElement {
    name: &'static str,
    depth: usize,
}

struct Scanner<'a> {
    page: &'a str,
    at: usize,
    /// The position of the last end tag of each dropped element. An element without an end tag is
    /// not dropped, because the rest of the page would be lost.
    ends: [Option<usize>; DROPPED_ELEMENTS.len()],
    dropping: Option<DroppedElement>,
}

impl<'a> Scanner<'a> {
    /// Returns the next text or tag outside of dropped elements.
    fn next_piece(&mut self) -> Option<PagePiece<'a>> {
        loop {
            match self.read_piece()? {
                PagePiece::Tag(tag) => {
                    if let Some(tag) = self.filter_tag(tag) {
                        return Some(PagePiece::Tag(tag));
                    }
                }
                PagePiece::Text(text) if self.dropping.is_none() => {
                    return Some(PagePiece::Text(text));
                }
                PagePiece::Text(_) => {}
            }
        }
    }

    fn read_piece(&mut self) -> Option<PagePiece<'a>> {
        loop {
            let rest = &self.page[self.at..];
            if rest.is_empty() {
                return None;
            }
            let Some(after) = rest.strip_prefix('<') else {
                let end = rest.find('<').unwrap_or(rest.len());
                self.at += end;
                return Some(PagePiece::Text(&rest[..end]));
            };
            let (closing, named) = after.strip_prefix('/').map_or((false, after), |n| (true, n));
            if named.starts_with(|c: char| c.is_ascii_alphabetic()) {
                return self.tag(named, closing).map(PagePiece::Tag);
            }
            if let Some(comment) = after.strip_prefix("!--") {
                self.skip(comment, "-->");
            } else if after.starts_with(['!', '?']) || closing {
                self.skip(after, ">");
            } else {
                self.at += 1;
                return Some(PagePiece::Text("<"));
            }
        }
    }

    /// Continues after the first `end`, or at the end of the page.
    fn skip(&mut self, rest: &str, end: &str) {
        self.at = match rest.find(end) {
            Some(found) => self.page.len() - rest.len() + found + end.len(),
            None => self.page.len(),
        };
    }

    /// Parses a tag after `<` or `</`; a tag without `>` ends the page.
    fn tag(&mut self, named: &'a str, closing: bool) -> Option<Tag<'a>> {
        let length = named
            .find(|c: char| c.is_ascii_whitespace() || matches!(c, '/' | '>'))
            .unwrap_or(named.len());
        let name = named[..length].to_ascii_lowercase();
        let mut quote = None;
        let mut before = b' ';
        let end = named.bytes().enumerate().skip(length).find(|(_, byte)| {
            let was = std::mem::replace(&mut before, *byte);
            match quote {
                Some(open) if *byte == open => quote = None,
                // A quote at another position is a mistake and does not start a value.
                None if matches!(byte, b'"' | b'\'') && matches!(was, b'=' | b' ') => {
                    quote = Some(*byte);
                }
                None => return *byte == b'>',
                Some(_) => {}
            }
            false
        });
        let Some((end, _)) = end else {
            self.at = self.page.len();
            return None;
        };
        self.at = self.page.len() - named.len() + end + 1;
        if !closing && RAW_TEXT_ELEMENTS.contains(&name.as_str()) {
            self.skip_raw(&name);
        }
        Some(Tag { name, closing, attributes: &named[length..end] })
    }

    /// Continues at the end tag of a script or style element.
    fn skip_raw(&mut self, name: &str) {
        let rest = &self.page.as_bytes()[self.at..];
        let end = rest.windows(2 + name.len()).position(|part| {
            part.starts_with(b"</") && part[2..].eq_ignore_ascii_case(name.as_bytes())
        });
        self.at += end.unwrap_or(rest.len());
    }

    /// Tracks dropped elements; returns tags outside of them.
    fn filter_tag(&mut self, tag: Tag<'a>) -> Option<Tag<'a>> {
        if let Some(dropping) = &mut self.dropping {
            let head_is_over = dropping.name == "head"
                && !tag.closing
                && !HEAD_ELEMENTS.contains(&tag.name.as_str());
            if head_is_over {
                self.dropping = None;
                return self.filter_tag(tag);
            }
            if dropping.name == tag.name {
                dropping.depth = if tag.closing { dropping.depth - 1 } else { dropping.depth + 1 };
                if dropping.depth == 0 {
                    self.dropping = None;
                }
            }
            return None;
        }
        let Some(place) = DROPPED_ELEMENTS.iter().position(|name| *name == tag.name) else {
            return Some(tag);
        };
        let ends = tag.name == "head" || self.ends[place].is_some_and(|end| end >= self.at);
        if !tag.closing && ends && !tag.attributes.ends_with('/') {
            self.dropping = Some(DroppedElement { name: DROPPED_ELEMENTS[place], depth: 1 });
        }
        None
    }
}

/// Returns the position of the last end tag of each dropped element.
fn last_ends(page: &str) -> [Option<usize>; DROPPED_ELEMENTS.len()] {
    let mut ends = [None; DROPPED_ELEMENTS.len()];
    let bytes = page.as_bytes();
    for (at, _) in page.match_indices("</") {
        let rest = &bytes[at + 2..];
        let place = DROPPED_ELEMENTS.iter().position(|name| {
            rest.get(..name.len()).is_some_and(|part| part.eq_ignore_ascii_case(name.as_bytes()))
        });
        if let Some(place) = place {
            ends[place] = Some(at);
        }
    }
    ends
}

#[cfg(test)]
mod tests;
