//! Extracts the text of documents, as Markdown if they have a structure.

pub mod pdf;

mod docx;
pub mod html;
mod isolated;

use std::str;

use bytes::Bytes;
use thiserror::Error;

pub use self::{
    isolated::Isolated,
    pdf::{PdfFault, child_main},
};
use crate::limits;

/// The format of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `.txt`
    Text,
    /// `.md`
    Markdown,
    /// `.html` or `.htm`
    Html,
    /// `.docx`
    Docx,
    /// `.pdf`
    Pdf,
}

impl Format {
    /// Returns the format for the extension of a file name.
    pub fn of(filename: &str) -> Option<Self> {
        let (_, extension) = filename.rsplit_once('.')?;
        match extension.to_ascii_lowercase().as_str() {
            "txt" => Some(Self::Text),
            "md" => Some(Self::Markdown),
            "html" | "htm" => Some(Self::Html),
            "docx" => Some(Self::Docx),
            "pdf" => Some(Self::Pdf),
            _ => None,
        }
    }
}

/// Why a document has no text. The message is for the user who uploaded it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ExtractError {
    /// The extension is not supported.
    #[error("files of this type cannot be read")]
    UnknownFormat,
    /// The text is not valid UTF-8.
    #[error(
        "this is not UTF-8: the byte 0x{byte:02x} at position {at} does not fit; save it as UTF-8"
    )]
    NotUtf8 { byte: u8, at: usize },
    /// The text has a UTF-16 byte order mark but is not valid UTF-16.
    #[error("this is not UTF-16: the bytes at position {at} do not fit; save it as UTF-8")]
    NotUtf16 {
        /// The offset of the invalid bytes, from 0.
        at: usize,
    },
    /// The document is empty, or has only pictures.
    #[error("no text was found in it")]
    Empty,
    /// The process that read the document crashed.
    #[error("it is damaged: reading it broke off")]
    BrokeOff,
    /// The text is too long.
    #[error("it has more than {} MiB of text", limits::MAX_DOCUMENT_TEXT_BYTES >> 20)]
    TooMuchText,
    /// The file is not a valid Word document.
    #[error("this Word document cannot be read: {0}")]
    Docx(String),
    /// The PDF is damaged or cannot be read.
    #[error(transparent)]
    Pdf(#[from] PdfFault),
    /// PDFs are not supported on this machine.
    #[error("PDFs are not read on this machine: {0}")]
    PdfUnsupported(String),
}

#[derive(Clone, Debug)]
pub struct Extractor {
    pdf: Option<Isolated>,
}

impl Extractor {
    /// Creates an extractor. Without a program for PDFs, they are rejected.
    pub fn new(pdf: Option<Isolated>) -> Self {
        Self { pdf }
    }

    /// Returns the text of a document.
    pub async fn extract(&self, filename: &str, bytes: Bytes) -> Result<String, ExtractError> {
        let format = Format::of(filename).ok_or(ExtractError::UnknownFormat)?;
        let text = match (format, &self.pdf) {
            (Format::Pdf, Some(isolated)) => isolated.extract(bytes).await?,
            (Format::Pdf, None) => {
                let reason = "no program for it was set up".to_owned();
                return Err(ExtractError::PdfUnsupported(reason));
            }
            _ => {
                let read = tokio::task::spawn_blocking(move || extract(format, &bytes));
                read.await.unwrap_or(Err(ExtractError::BrokeOff))?
            }
        };
        finish(text, format)
    }
}

/// Returns the text of a document in any format but PDF, which needs its own process.
pub fn extract(format: Format, bytes: &[u8]) -> Result<String, ExtractError> {
    match format {
        Format::Text | Format::Markdown => decode(bytes),
        Format::Html => Ok(html::to_markdown(&decode(bytes)?)),
        Format::Docx => docx::to_markdown(bytes),
        Format::Pdf => Err(ExtractError::UnknownFormat),
    }
}

/// Checks that there is text, and removes NUL characters, which databases do not accept.
fn finish(text: String, format: Format) -> Result<String, ExtractError> {
    if text.len() > limits::MAX_DOCUMENT_TEXT_BYTES {
        return Err(ExtractError::TooMuchText);
    }
    if text.trim().is_empty() {
        return Err(match format {
            Format::Pdf => PdfFault::Empty.into(),
            _ => ExtractError::Empty,
        });
    }
    Ok(if text.contains('\0') { text.replace('\0', " ") } else { text })
}

/// Decodes UTF-8, or UTF-16 with a byte order mark.
fn decode(bytes: &[u8]) -> Result<String, ExtractError> {
    match bytes {
        [0xEF, 0xBB, 0xBF, rest @ ..] => decode_utf8(rest, 3),
        [0xFF, 0xFE, rest @ ..] => decode_utf16(rest, u16::from_le_bytes),
        [0xFE, 0xFF, rest @ ..] => decode_utf16(rest, u16::from_be_bytes),
        _ => decode_utf8(bytes, 0),
    }
}

fn decode_utf8(bytes: &[u8], before: usize) -> Result<String, ExtractError> {
    str::from_utf8(bytes).map(str::to_owned).map_err(|error| {
        let at = error.valid_up_to();
        ExtractError::NotUtf8 { byte: bytes.get(at).copied().unwrap_or_default(), at: before + at }
    })
}

fn decode_utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Result<String, ExtractError> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    let bad = |at: usize| ExtractError::NotUtf16 { at: 2 + at };
    if !rest.is_empty() {
        return Err(bad(bytes.len() - 1));
    }
    let mut text = String::with_capacity(bytes.len());
    let mut at = 0;
    for c in char::decode_utf16(pairs.iter().map(|pair| unit(*pair))) {
        let c = c.map_err(|_| bad(at))?;
        at += c.len_utf16() * 2;
        text.push(c);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_decide_formats() {
        assert_eq!(Format::of("a.b.TXT"), Some(Format::Text));
        assert_eq!(Format::of("a.htm"), Some(Format::Html));
        assert_eq!(Format::of(".md"), Some(Format::Markdown));
        assert_eq!(Format::of("pdf"), None);
        assert_eq!(Format::of("a.doc"), None);
    }

    #[test]
    fn byte_order_marks_are_removed() {
        assert_eq!(decode("\u{feff}ä".as_bytes()).unwrap(), "ä");
        assert_eq!(decode(&[0xFF, 0xFE, 0xE4, 0x00]).unwrap(), "ä");
        assert_eq!(decode(&[0xFE, 0xFF, 0x00, 0xE4]).unwrap(), "ä");
        assert_eq!(decode(&[0xFE, 0xFF, 0xD8, 0x3D, 0xDE, 0x00]).unwrap(), "😀");
    }

    #[test]
    fn errors_name_the_byte() {
        let error = decode(b"caf\xe9 noir").unwrap_err();
        assert_eq!(error, ExtractError::NotUtf8 { byte: 0xE9, at: 3 });
        assert!(error.to_string().contains("0xe9 at position 3"));
        assert_eq!(decode(&[0xFF, 0xFE, 0x41]), Err(ExtractError::NotUtf16 { at: 2 }));
        assert_eq!(decode(&[0xFF, 0xFE, 0, 0xD8]), Err(ExtractError::NotUtf16 { at: 2 }));
    }

    #[tokio::test]
    async fn document_without_text_is_an_error() {
        let extractor = Extractor::new(None);
        let extract = async |name: &str, bytes: &'static [u8]| {
            extractor.extract(name, Bytes::from_static(bytes)).await
        };
        assert_eq!(extract("a.txt", b" \n").await, Err(ExtractError::Empty));
        assert_eq!(extract("a.md", b"a\0b").await.unwrap(), "a b");
        assert_eq!(extract("a.html", b"<h1>x</h1>").await.unwrap(), "# x");
        assert_eq!(extract("a.exe", b"x").await, Err(ExtractError::UnknownFormat));
        let refused = extract("a.pdf", b"%PDF-1.7").await.unwrap_err();
        assert!(refused.to_string().starts_with("PDFs are not read on this machine"), "{refused}");
    }
}
