//! Tests reading PDFs in the sandbox with the example `extract`.

use std::{fmt::Write as _, path::PathBuf, time::Duration};

use bytes::Bytes;
use savoir_knowledge::extract::{ExtractError, Extractor, Isolated, PdfFault};
use savoir_sandbox::SandboxSupport;

/// Returns the program that reads PDFs; `None` if there is no sandbox, or the program was not
/// built.
pub(super) fn reader() -> Option<Isolated> {
    if !SandboxSupport::detect().sandbox.is_available() {
        eprintln!("left out: this machine does not support the sandbox");
        return None;
    }
    let tests = std::env::current_exe().ok()?.canonicalize().ok()?;
    let program = tests.parent()?.parent()?.join("examples/extract");
    if !program.exists() {
        eprintln!("left out: the example `extract` was not built");
        return None;
    }
    Some(Isolated { program, arguments: Vec::new() })
}

/// Creates a PDF of one page with a font and these operators.
pub(super) fn pdf(font: &str, content: &str) -> Bytes {
    let objects = [
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_owned(),
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R \
         /Resources << /Font << /F1 5 0 R >> >> >>"
            .to_owned(),
        format!("<< /Length {} >>\nstream\n{content}\nendstream", content.len()),
        format!("<< /Type /Font {font} >>"),
    ];
    let mut out = "%PDF-1.4\n".to_owned();
    let mut table = String::new();
    for (index, object) in objects.iter().enumerate() {
        writeln!(table, "{:010} 00000 n ", out.len()).unwrap();
        writeln!(out, "{} 0 obj\n{object}\nendobj", index + 1).unwrap();
    }
    let start = out.len();
    write!(
        out,
        "xref\n0 6\n0000000000 65535 f \n{table}trailer\n<< /Size 6 /Root 1 0 R >>\n\
         startxref\n{start}\n%%EOF\n"
    )
    .unwrap();
    out.into()
}

pub(super) const HELVETICA: &str = "/Subtype /Type1 /BaseFont /Helvetica";

#[tokio::test]
async fn a_pdf_is_read_in_the_sandbox() {
    let Some(reader) = reader() else { return };
    let bytes = pdf(HELVETICA, "BT /F1 12 Tf 50 800 Td (Returns policy) Tj ET");
    let text = Extractor::new(Some(reader)).extract("a.pdf", bytes).await.unwrap();
    assert_eq!(text, "Returns policy");
}

#[tokio::test]
async fn broken_pdfs_have_a_reason() {
    let Some(reader) = reader() else { return };
    let whole = pdf(HELVETICA, "BT /F1 12 Tf 50 800 Td (Returns policy) Tj ET");
    let cases = [
        Bytes::from_static(b"garbage"),
        Bytes::from_static(b"%PDF-1.7\n\x00\xff\xfe"),
        whole.slice(..whole.len() / 2),
    ];
    for bytes in cases {
        let error = reader.extract(bytes).await.unwrap_err();
        assert!(matches!(error, ExtractError::Pdf(PdfFault::Damaged(_))), "{error}");
        assert!(error.to_string().starts_with("this PDF is damaged: "), "{error}");
    }
    let error = reader.extract(pdf(HELVETICA, "0 0 9 9 re f")).await.unwrap_err();
    assert_eq!(error.to_string(), "no text was found in this PDF (is it a scan?)");
}

#[tokio::test]
async fn font_that_fails_one_method_is_read_by_the_other() {
    let Some(reader) = reader() else { return };
    // The first method panics on this encoding.
    let font = "/Subtype /Type0 /BaseFont /STSong-Light /Encoding /UniGB-UCS2-H \
                /DescendantFonts [<< /Type /Font /Subtype /CIDFontType0 /BaseFont /STSong-Light \
                /CIDSystemInfo << /Registry (Adobe) /Ordering (GB1) /Supplement 0 >> >>]";
    let text = reader.extract(pdf(font, "BT /F1 12 Tf 50 800 Td <77E58BC65E93> Tj ET")).await;
    assert_eq!(text.unwrap(), "知识库");
}

#[tokio::test]
async fn invalid_and_hanging_programs_are_errors() {
    if reader().is_none() {
        return;
    }
    let program = |name: &str, arguments: &[&str]| {
        let path = [PathBuf::from("/usr/bin"), "/bin".into()].map(|folder| folder.join(name));
        let path = path.iter().find_map(|path| path.canonicalize().ok()).unwrap();
        let arguments = arguments.iter().map(|&word| word.to_owned()).collect();
        Isolated { program: path, arguments }
    };
    let broke_off = Err(ExtractError::Pdf(PdfFault::BrokeOff));
    assert_eq!(program("true", &[]).extract(Bytes::from_static(b"x")).await, broke_off);
    assert_eq!(program("false", &[]).extract(Bytes::from_static(b"x")).await, broke_off);
    let flood = program("yes", &[]).extract(Bytes::from_static(b"x")).await;
    assert_eq!(flood, Err(ExtractError::TooMuchText));
    // The future is dropped, so the process is killed, and the test's runtime can shut down.
    let sleep = program("sleep", &["50"]);
    let wait = sleep.extract(Bytes::from_static(b"x"));
    assert!(tokio::time::timeout(Duration::from_secs(2), wait).await.is_err());
    let missing = Isolated { program: "/nowhere/reader".into(), arguments: Vec::new() };
    let refused = missing.extract(Bytes::from_static(b"x")).await.unwrap_err();
    assert!(matches!(refused, ExtractError::PdfUnsupported(_)), "{refused}");
}
