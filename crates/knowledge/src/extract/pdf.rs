//! Extracts the text of a PDF.
//!
//! The PDF library may panic, loop or exhaust memory on a malformed file, so it runs in its own
//! process: [`Isolated`](super::Isolated) starts it, and [`child_main`] is its main function.

use std::io::{self, BufRead, BufReader, Read, Write};

use pdf_extract::{Document, PlainTextOutput, output_doc_page};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::ExtractError;
use crate::limits;

/// Why a PDF has no text. The message is for the user who uploaded it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Error)]
#[serde(rename_all = "kebab-case")]
pub enum PdfFault {
    /// The PDF needs a password.
    #[error("this PDF is encrypted; save it without a password")]
    Encrypted,
    /// The PDF contains no text.
    #[error("no text was found in this PDF (is it a scan?)")]
    Empty,
    /// The file is not a PDF, or incomplete.
    #[error("this PDF is damaged: {0}")]
    Damaged(String),
    /// Reading takes too long.
    #[error("this PDF could not be read within {} s", limits::PDF_TIMEOUT.as_secs())]
    TooSlow,
    /// The process that read the PDF crashed.
    #[error("this PDF is damaged, or larger than it looks: reading it broke off")]
    BrokeOff,
}

/// The method of reading a PDF.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum PdfMethod {
    /// By the position of the letters on the page, which keeps lines and rows, but fails for
    /// unknown fonts.
    Layout,
    /// By the order in which the letters were written, which supports more fonts.
    Order,
}

/// Returns the text of a PDF in this process. May loop forever.
pub fn extract_pdf(bytes: &[u8]) -> Result<String, ExtractError> {
    Ok(read(bytes, PdfMethod::Layout)?)
}

/// The main function of the program that reads a PDF: the first line of the input is the method, the
/// rest is the PDF; the output is the text or the error, as JSON.
pub fn child_main(input: impl Read, mut output: impl Write) -> io::Result<()> {
    let mut input = BufReader::new(input);
    let mut method = String::new();
    input.by_ref().take(64).read_line(&mut method)?;
    let method = serde_json::from_str(&method)?;
    let mut bytes = Vec::new();
    input.take(limits::MAX_DOCUMENT_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    serde_json::to_writer(&mut output, &read(&bytes, method))?;
    output.flush()
}

pub(super) fn read(bytes: &[u8], method: PdfMethod) -> Result<String, PdfFault> {
    let document = Document::load_mem(bytes).map_err(|error| {
        let encrypted = matches!(error, pdf_extract::Error::Decryption(_));
        if encrypted { PdfFault::Encrypted } else { PdfFault::Damaged(error.to_string()) }
    })?;
    // A PDF with an empty user password is already decrypted here.
    if document.trailer.get(b"Encrypt").is_ok() && document.encryption_state.is_none() {
        return Err(PdfFault::Encrypted);
    }
    let pages = document.get_pages();
    if pages.is_empty() {
        return Err(PdfFault::Damaged("it has no pages".to_owned()));
    }
    let text = match method {
        PdfMethod::Layout => {
            let mut text = String::new();
            // Extract each page separately: otherwise words at the same height of two pages would
            // be joined into one line.
            for number in pages.into_keys() {
                output_doc_page(&document, &mut PlainTextOutput::new(&mut text), number)
                    .map_err(|error| PdfFault::Damaged(error.to_string()))?;
                text.push_str("\n\n");
            }
            text
        }
        PdfMethod::Order => {
            let page = |number: u32| -> String {
                let parts = document.extract_text_chunks(&[number]).into_iter();
                parts.filter_map(Result::ok).collect()
            };
            pages.into_keys().map(page).collect::<Vec<_>>().join("\n\n")
        }
    };
    let text = tidy(&text);
    if text.is_empty() { Err(PdfFault::Empty) } else { Ok(text) }
}

/// Normalizes whitespace: single spaces, at most one blank line, and one dot for the dot leaders in
/// a table of contents.
fn tidy(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut empty = 0;
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let Some(first) = words.next() else {
            empty += 1;
            continue;
        };
        if !out.is_empty() {
            out.push_str(if empty > 0 { "\n\n" } else { "\n" });
        }
        empty = 0;
        out.push_str(first);
        let mut before = first;
        for word in words.filter(|word| std::mem::replace(&mut before, word) != "." || *word != ".")
        {
            out.push(' ');
            out.push_str(word);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    /// Creates a PDF of one page with these operators.
    fn pdf(content: &str, trailer: &str) -> Vec<u8> {
        let objects = [
            "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
            "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_owned(),
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R \
             /Resources << /Font << /F1 5 0 R >> >> >>"
                .to_owned(),
            stream(content),
            "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>".to_owned(),
        ];
        file(&objects, trailer)
    }

    /// Creates a PDF of these objects.
    fn file(objects: &[String], trailer: &str) -> Vec<u8> {
        let mut out = "%PDF-1.4\n".to_owned();
        let mut table = String::new();
        for (index, object) in objects.iter().enumerate() {
            writeln!(table, "{:010} 00000 n ", out.len()).unwrap();
            writeln!(out, "{} 0 obj\n{object}\nendobj", index + 1).unwrap();
        }
        let (start, size) = (out.len(), objects.len() + 1);
        write!(
            out,
            "xref\n0 {size}\n0000000000 65535 f \n{table}trailer\n<< /Size {size} /Root 1 0 R \
             {trailer} >>\nstartxref\n{start}\n%%EOF\n"
        )
        .unwrap();
        out.into_bytes()
    }

    const HELLO: &str = "BT /F1 12 Tf 50 800 Td (Returns policy) Tj 0 -40 Td (Thirty days) Tj ET";

    #[test]
    fn both_methods_find_the_text() {
        let bytes = pdf(HELLO, "");
        for method in [PdfMethod::Layout, PdfMethod::Order] {
            let text = read(&bytes, method).unwrap();
            assert!(text.contains("Returns policy") && text.contains("Thirty days"), "{text}");
        }
        assert_eq!(extract_pdf(&bytes).unwrap(), "Returns policy\n\nThirty days");
    }

    #[test]
    fn pages_stay_apart() {
        let page = |word: &str| format!("BT /F1 12 Tf 50 800 Td ({word}) Tj ET");
        let objects = [
            "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
            "<< /Type /Pages /Kids [3 0 R 5 0 R] /Count 2 >>".to_owned(),
            page_object(4),
            stream(&page("Alpha")),
            page_object(6),
            stream(&page("Omega")),
            "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>".to_owned(),
        ];
        let bytes = file(&objects, "");
        for method in [PdfMethod::Layout, PdfMethod::Order] {
            let text = read(&bytes, method).unwrap();
            let words: Vec<&str> = text.split_whitespace().collect();
            assert_eq!(words, ["Alpha", "Omega"], "{method:?}");
        }
    }

    fn page_object(content: usize) -> String {
        format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents {content} 0 R \
             /Resources << /Font << /F1 7 0 R >> >> >>"
        )
    }

    fn stream(content: &str) -> String {
        format!("<< /Length {} >>\nstream\n{content}\nendstream", content.len())
    }

    #[test]
    fn errors_are_distinguished() {
        let whole = pdf(HELLO, "");
        let fault = |bytes: &[u8]| read(bytes, PdfMethod::Layout).unwrap_err();
        assert!(matches!(fault(b"garbage"), PdfFault::Damaged(_)));
        assert!(matches!(fault(b""), PdfFault::Damaged(_)));
        assert!(matches!(fault(&whole[..whole.len() / 2]), PdfFault::Damaged(_)));
        assert_eq!(fault(&pdf("0 0 10 10 re f", "")), PdfFault::Empty);
        let locked = pdf(HELLO, "/Encrypt << /Filter /Standard /V 1 /R 2 /O (x) /U (y) /P -4 >>");
        assert_eq!(fault(&locked), PdfFault::Encrypted);
    }

    #[test]
    fn child_process_prints_json() {
        let answer = |input: &[u8]| {
            let mut output = Vec::new();
            child_main(input, &mut output).map(|()| output)
        };
        let input = [b"\"layout\"\n".to_vec(), pdf(HELLO, "")].concat();
        let text: Result<String, PdfFault> =
            serde_json::from_slice(&answer(&input).unwrap()).unwrap();
        assert_eq!(text.unwrap(), "Returns policy\n\nThirty days");
        let fault: Result<String, PdfFault> =
            serde_json::from_slice(&answer(b"\"order\"\nnot a PDF").unwrap()).unwrap();
        assert!(matches!(fault, Err(PdfFault::Damaged(_))));
        assert!(answer(b"%PDF-1.4").is_err());
    }

    #[test]
    fn whitespace_is_normalized() {
        assert_eq!(tidy("\n\n a   b \n\n\n\nc\nd\n"), "a b\n\nc\nd");
        assert_eq!(tidy("1 Introduction . . . . . 5"), "1 Introduction . 5");
    }
}
