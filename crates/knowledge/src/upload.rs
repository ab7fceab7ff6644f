//! Validates uploads: file type, size and name.

use bytes::Bytes;
use savoir_store::StoreError;
use thiserror::Error;

use super::extract::Format;
use crate::limits;

/// Why a document is rejected.
#[derive(Debug, Error)]
pub enum UploadError {
    /// There is no such knowledge base.
    #[error("Knowledge base not found")]
    UnknownBase,
    /// The format is not supported.
    #[error("File type not allowed. Only .txt, .md, .html, .pdf, .docx files are supported.")]
    Type,
    /// The document is too large.
    #[error("File too large. Maximum size is {}MB.", limits::MAX_DOCUMENT_BYTES >> 20)]
    TooLarge,
    /// The name is invalid.
    #[error("Invalid file name: {0}.")]
    Name(#[from] NameError),
    /// Too many documents of this owner are waiting.
    #[error(
        "{} documents are waiting to be read. Add more when some of them are done.",
        limits::MAX_WAITING_DOCUMENTS
    )]
    Crowded,
    /// The database or the storage failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why the name of a document is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum NameError {
    /// The name is empty or blank.
    #[error("it is empty")]
    Empty,
    /// The name is too long.
    #[error("it is longer than {} bytes", limits::MAX_DOCUMENT_NAME_BYTES)]
    TooLong,
    /// The name contains a path.
    #[error("it is a path, not a name")]
    Path,
    /// The name has invisible characters.
    #[error("it contains control characters")]
    Control,
}

/// Checks the name of a document.
pub fn check_name(name: &str) -> Result<(), NameError> {
    if name.trim().is_empty() {
        Err(NameError::Empty)
    } else if name.len() > limits::MAX_DOCUMENT_NAME_BYTES {
        Err(NameError::TooLong)
    } else if name.chars().any(is_control) {
        Err(NameError::Control)
    } else if name.contains(['/', '\\']) || matches!(name, "." | "..") {
        Err(NameError::Path)
    } else {
        Ok(())
    }
}

/// Whether a character is invisible, ends a line or changes the text direction.
fn is_control(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61C}' | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}'
            | '\u{2060}'..='\u{206F}' | '\u{FEFF}' | '\u{FFF9}'..='\u{FFFB}'
            | '\u{E0000}'..='\u{E007F}')
}

/// Checks the name, type and size of a document before it is stored.
pub(super) fn check(filename: &str, bytes: &Bytes) -> Result<(), UploadError> {
    check_name(filename)?;
    if Format::of(filename).is_none() {
        return Err(UploadError::Type);
    }
    if bytes.len() > limits::MAX_DOCUMENT_BYTES {
        return Err(UploadError::TooLarge);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn document_names_are_validated() {
        for name in ["a.txt", "Rückgabe (neu).pdf", "知识.md", ".md", "a..b.txt", "x:y.txt"] {
            assert_eq!(check_name(name), Ok(()), "{name}");
        }
        assert_eq!(check_name(""), Err(NameError::Empty));
        assert_eq!(check_name(" \u{3000}"), Err(NameError::Empty));
        for name in ["../a.txt", "/a.txt", "C:\\a.txt", "a/b.txt", ".."] {
            assert_eq!(check_name(name), Err(NameError::Path), "{name}");
        }
        for name in ["a\0.txt", "a\n.txt", "\u{202E}txt.exe", "a\u{7f}.md", "a\u{200b}.md"] {
            assert_eq!(check_name(name), Err(NameError::Control), "{name:?}");
        }
        assert_eq!(check_name(&"ä".repeat(128)), Err(NameError::TooLong));
    }

    #[test]
    fn upload_errors_match_the_contract() {
        let text = |name: &str, length| {
            check(name, &Bytes::from(vec![b'x'; length])).unwrap_err().to_string()
        };
        let types =
            "File type not allowed. Only .txt, .md, .html, .pdf, .docx files are supported.";
        assert_eq!(text("a.exe", 1), types);
        assert_eq!(
            text("a.txt", limits::MAX_DOCUMENT_BYTES + 1),
            "File too large. Maximum size is 5MB."
        );
        assert_eq!(text("a/b.txt", 1), "Invalid file name: it is a path, not a name.");
        assert!(check("a.HTML", &Bytes::from(vec![b'x'; limits::MAX_DOCUMENT_BYTES])).is_ok());
    }
}
