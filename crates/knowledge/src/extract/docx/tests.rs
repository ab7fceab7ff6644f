use std::io::{Cursor, Write as _};

use proptest::prelude::*;
use zip::{ZipWriter, write::SimpleFileOptions};

use super::*;

fn archive(parts: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in parts {
        writer.start_file(*name, SimpleFileOptions::default()).unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

fn document(body: &str) -> Vec<u8> {
    let xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><w:document xmlns:w=\"w\"><w:body>{body}\
         </w:body></w:document>"
    );
    archive(&[("[Content_Types].xml", b"<Types/>"), ("word/document.xml", xml.as_bytes())])
}

fn paragraph(text: &str) -> String {
    format!("<w:p><w:r><w:t xml:space=\"preserve\">{text}</w:t></w:r></w:p>")
}

fn reason(bytes: &[u8]) -> String {
    to_markdown(bytes).unwrap_err().to_string()
}

#[test]
fn structure_becomes_markdown() {
    let styles = "<w:styles><w:style w:styleId=\"berschrift2\"><w:name w:val=\"heading 2\"/>\
        </w:style><w:style w:styleId=\"L\"><w:name w:val=\"List Bullet\"/><w:pPr><w:numPr/></w:pPr>\
        </w:style><w:style w:styleId=\"X\"><w:name w:val=\"Normal\"/></w:style></w:styles>";
    let marked = |style: &str, text: &str| {
        format!(
            "<w:p><w:pPr><w:pStyle w:val=\"{style}\"/></w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"
        )
    };
    let item = |level: u8, text: &str| {
        format!(
            "<w:p><w:pPr><w:numPr><w:ilvl w:val=\"{level}\"/><w:numId w:val=\"1\"/></w:numPr>\
             </w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"
        )
    };
    let cell = |text: &str| format!("<w:tc>{}</w:tc>", paragraph(text));
    let body = [
        marked("Heading1", "Returns &amp; refunds"),
        "<w:p><w:r><w:t>Goods may be </w:t></w:r><w:r><w:t>returned</w:t><w:br/><w:t>in</w:t>\
         <w:tab/><w:t>30&#160;days</w:t></w:r><w:del><w:r><w:delText>gone</w:delText></w:r></w:del></w:p>"
            .to_owned(),
        marked("berschrift2", "Prices"),
        item(0, "Lamp"),
        item(1, "red"),
        marked("L", "Chair"),
        marked("X", "And so on"),
        format!(
            "<w:tbl><w:tr>{}{}</w:tr><w:tr>{}{}</w:tr></w:tbl>",
            cell("Item"),
            cell("Price"),
            cell("Lamp"),
            format_args!("<w:tc>{}{}</w:tc>", paragraph("12"), paragraph("€"))
        ),
        marked("X", "End"),
    ]
    .concat();
    let xml = format!("<w:document><w:body>{body}</w:body></w:document>");
    let bytes =
        archive(&[("word/styles.xml", styles.as_bytes()), ("word/document.xml", xml.as_bytes())]);
    let expected = "# Returns & refunds\n\nGoods may be returned\nin\t30\u{a0}days\n\n## Prices\n\n\
        - Lamp\n  - red\n- Chair\n\nAnd so on\n\n| Item | Price |\n| Lamp | 12 € |\n\nEnd";
    assert_eq!(to_markdown(&bytes).unwrap(), expected);
}

#[test]
fn a_numbered_main_part_is_found() {
    let xml = format!("<w:document>{}</w:document>", paragraph("x"));
    assert_eq!(to_markdown(&archive(&[("word/document2.xml", xml.as_bytes())])).unwrap(), "x");
}

#[test]
fn invalid_documents_are_rejected() {
    assert!(reason(b"garbage").contains("no ZIP file"));
    assert!(reason(&archive(&[("a.txt", b"x")])).contains("there is no word/document.xml"));
    assert!(reason(&[0xD0, 0xCF, 0x11, 0xE0, 0, 0]).contains("password"));
    let whole = document(&paragraph("text"));
    assert!(reason(&whole[..whole.len() / 2]).contains("no ZIP file"));
}

#[test]
fn custom_entities_are_refused() {
    let xml = "<!DOCTYPE x [<!ENTITY a SYSTEM \"file:///etc/passwd\">]><w:document><w:t>&a;</w:t>\
               </w:document>";
    assert!(reason(&archive(&[("word/document.xml", xml.as_bytes())])).contains("DOCTYPE"));
    assert_eq!(to_markdown(&document(&paragraph("a&unknown;b"))).unwrap(), "ab");
}

#[test]
fn zip_bomb_is_refused() {
    let blanks = " ".repeat(6 << 20);
    let bytes = document(&paragraph(&blanks));
    assert!(bytes.len() < 200 << 10);
    assert!(reason(&bytes).contains("far larger unpacked"), "{}", reason(&bytes));
    // The size in the header is wrong, so the unpacked bytes must be counted.
    let size =
        ZipArchive::new(Cursor::new(&bytes)).unwrap().by_name("word/document.xml").unwrap().size();
    let (declared, size) = (1000_u32.to_le_bytes(), (size as u32).to_le_bytes());
    let mut lies = bytes.clone();
    for at in 0..lies.len() - 3 {
        if lies[at..at + 4] == size {
            lies[at..at + 4].copy_from_slice(&declared);
        }
    }
    assert_ne!(lies, bytes);
    assert!(reason(&lies).contains("larger"), "{}", reason(&lies));
    let many: Vec<String> = (0..=limits::MAX_DOCX_FILES).map(|n| format!("f{n}")).collect();
    let parts: Vec<(&str, &[u8])> = many.iter().map(|name| (&**name, &b""[..])).collect();
    assert!(reason(&archive(&parts)).contains("more than 10000 files"));
}

#[test]
fn deep_nesting_is_handled() {
    let deep = "<w:tbl>".repeat(25_000);
    assert!(to_markdown(&document(&deep)).is_ok());
}

proptest! {
    #[test]
    fn damaged_document_does_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..400), at in any::<prop::sample::Index>()) {
        let _ = to_markdown(&bytes);
        let mut whole = document(&paragraph("text"));
        let place = at.index(whole.len());
        for (offset, byte) in bytes.iter().take(4).enumerate() {
            if let Some(there) = whole.get_mut(place + offset) {
                *there = *byte;
            }
        }
        let _ = to_markdown(&whole);
        let _ = to_markdown(&document(&String::from_utf8_lossy(&bytes)));
    }
}
