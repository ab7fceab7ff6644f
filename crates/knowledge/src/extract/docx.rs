//! Converts Word documents to Markdown. Memory use is bounded for every document.

mod body;
mod styles;

use std::io::{BufReader, Cursor, Read, Take};

use quick_xml::{
    Reader,
    events::{BytesRef, BytesStart, Event},
};
use zip::{ZipArchive, read::ZipFile};

use self::{body::Body, styles::Styles};
use super::ExtractError;
use crate::limits;

/// The first bytes of an OLE file: an old Word document, or a new one with a password.
const COMPOUND: [u8; 4] = [0xD0, 0xCF, 0x11, 0xE0];

type Archive<'a> = ZipArchive<Cursor<&'a [u8]>>;
type Xml<'a, 'b> = Reader<BufReader<Take<ZipFile<'a, Cursor<&'b [u8]>>>>>;

/// Converts a document to Markdown.
pub(super) fn to_markdown(bytes: &[u8]) -> Result<String, ExtractError> {
    if bytes.starts_with(&COMPOUND) {
        return Err(bad("it has a password, or is of an older Word; save it as .docx without one"));
    }
    let mut archive = ZipArchive::new(Cursor::new(bytes))
        .map_err(|error| bad(format!("no ZIP file: {error}")))?;
    if archive.len() > limits::MAX_DOCX_FILES {
        return Err(bad(format!("it has more than {} files in it", limits::MAX_DOCX_FILES)));
    }
    let styles = match part(&mut archive, "word/styles.xml")? {
        Some(xml) => Styles::read(xml)?,
        None => Styles::default(),
    };
    let name = main_part(&archive).ok_or_else(|| bad("there is no word/document.xml in it"))?;
    match part(&mut archive, &name)? {
        Some(xml) => Body::new(styles).read(xml),
        None => Err(bad("there is no word/document.xml in it")),
    }
}

fn bad(reason: impl Into<String>) -> ExtractError {
    ExtractError::Docx(reason.into())
}

/// Returns the name of the part with the text, which some programs number.
fn main_part(archive: &Archive<'_>) -> Option<String> {
    let names = || archive.file_names().filter_map(Result::ok);
    let usual = names().find(|name| name == "word/document.xml");
    let found = usual.or_else(|| {
        names().find(|name| {
            let number = name.strip_prefix("word/document").and_then(|n| n.strip_suffix(".xml"));
            number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
        })
    });
    found.map(std::borrow::Cow::into_owned)
}

/// Opens a part for reading; reading stops at the size limit.
fn part<'a, 'b>(
    archive: &'a mut Archive<'b>,
    name: &str,
) -> Result<Option<Xml<'a, 'b>>, ExtractError> {
    let Some(index) = archive.index_for_name(name) else { return Ok(None) };
    let file = archive.by_index(index).map_err(|error| bad(format!("{name}: {error}")))?;
    // The size in the header may be wrong, so the bytes that are read are counted, too.
    let packed = file.compressed_size().max(1024);
    let most = limits::MAX_DOCX_UNPACKED_BYTES.min(packed.saturating_mul(limits::MAX_DOCX_RATIO));
    if file.size() > most {
        return Err(bad(too_large(name)));
    }
    let mut xml = Reader::from_reader(BufReader::new(file.take(most)));
    // Malformed documents are accepted: tags are counted, not matched.
    xml.config_mut().check_end_names = false;
    xml.config_mut().allow_unmatched_ends = true;
    Ok(Some(xml))
}

fn too_large(name: &str) -> String {
    format!("{name} is far larger unpacked than a document is")
}

/// Passes the events of a part to `hear`.
fn each_event(
    mut xml: Xml<'_, '_>,
    mut hear: impl FnMut(Event<'_>) -> Result<(), ExtractError>,
) -> Result<(), ExtractError> {
    let mut buffer = Vec::new();
    loop {
        buffer.clear();
        match xml.read_event_into(&mut buffer) {
            Ok(Event::Eof) => break,
            // Word never writes a document type, which could define entities that expand without
            // limit.
            Ok(Event::DocType(_)) => return Err(bad("it has a DOCTYPE, which Word never writes")),
            Ok(event) => hear(event)?,
            Err(error) if !is_over(&xml) => return Err(bad(format!("broken XML: {error}"))),
            Err(_) => break,
        }
    }
    if is_over(&xml) { Err(bad(too_large("the text"))) } else { Ok(()) }
}

/// Whether the size limit of the part was reached.
fn is_over(xml: &Xml<'_, '_>) -> bool {
    xml.get_ref().get_ref().limit() == 0
}

/// Returns the name of an element without its prefix.
fn local<'a>(start: &'a BytesStart<'_>) -> &'a [u8] {
    start.local_name().into_inner()
}

/// Returns the value of `w:val`, or of another attribute.
fn attribute(start: &BytesStart<'_>, name: &[u8]) -> Option<String> {
    let mut attributes = start.attributes();
    let found = attributes.with_checks(false).filter_map(Result::ok);
    let mut found = found.filter(|attribute| attribute.key.local_name().into_inner() == name);
    found.next().map(|attribute| String::from_utf8_lossy(&attribute.value).into_owned())
}

/// Decodes `&amp;` or `&#8364;`; other references are dropped.
fn reference(reference: &BytesRef<'_>) -> Option<char> {
    if let Ok(Some(c)) = reference.resolve_char_ref() {
        return Some(c);
    }
    match &**reference {
        b"amp" => Some('&'),
        b"lt" => Some('<'),
        b"gt" => Some('>'),
        b"quot" => Some('"'),
        b"apos" => Some('\''),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
