//! Builds multipart forms.

use savoir_skill::digest::sha256_hex;

/// An encoded form and its content type.
pub(super) struct MultipartForm {
    pub(super) kind: String,
    pub(super) bytes: Vec<u8>,
}

pub(super) struct FormPart<'a> {
    pub(super) name: &'static str,
    pub(super) file: Option<&'a str>,
    pub(super) bytes: &'a [u8],
}

/// Encodes the parts, with a boundary that none of them contains.
pub(super) fn build_form(parts: &[FormPart<'_>]) -> MultipartForm {
    let mut boundary = String::new();
    for part in parts {
        boundary = sha256_hex(format!("{boundary}{}", sha256_hex(part.bytes)).as_bytes());
    }
    let mut bytes = Vec::new();
    for FormPart { name, file, bytes: content } in parts {
        let head = format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"");
        bytes.extend(head.as_bytes());
        if let Some(file) = file {
            bytes.extend(format!("; filename=\"{}\"", quoted(file)).as_bytes());
            bytes.extend(b"\r\nContent-Type: application/zip");
        }
        bytes.extend(b"\r\n\r\n");
        bytes.extend(*content);
        bytes.extend(b"\r\n");
    }
    bytes.extend(format!("--{boundary}--\r\n").as_bytes());
    MultipartForm { kind: format!("multipart/form-data; boundary={boundary}"), bytes }
}

fn quoted(name: &str) -> String {
    name.chars().filter(|c| !c.is_control() && !matches!(c, '"' | '\\')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn form_boundary_is_not_in_parts() {
        let parts = [
            FormPart { name: "artifact", file: Some("a\"\r\n-1.zip"), bytes: b"PK\r\n--x" },
            FormPart { name: "changelog", file: None, bytes: "später".as_bytes() },
        ];
        let MultipartForm { kind, bytes } = build_form(&parts);
        let boundary = kind.strip_prefix("multipart/form-data; boundary=").unwrap();
        assert!(boundary.len() <= 70, "no longer than the standard allows");
        let text = String::from_utf8(bytes).unwrap();
        assert_eq!(
            text.replace(boundary, "B"),
            "--B\r\nContent-Disposition: form-data; name=\"artifact\"; filename=\"a-1.zip\"\r\n\
             Content-Type: application/zip\r\n\r\nPK\r\n--x\r\n\
             --B\r\nContent-Disposition: form-data; name=\"changelog\"\r\n\r\nspäter\r\n--B--\r\n"
        );
    }
}
