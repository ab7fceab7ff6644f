//! Addresses of skill files: `skill://NAME/PATH`.

use std::fmt::{self, Write as _};

use futures::future::BoxFuture;
use savoir_agent::library::LibraryError;

/// Maximum files of a skill that every host accepts; larger skills are not returned whole.
pub(super) const MAX_SKILL_FILES: usize = 512;
/// Maximum bytes of a skill that every host accepts.
pub(super) const MAX_SKILL_BYTES: u64 = 16 * 1024 * 1024;
/// The prefix of all addresses.
const URI_SCHEME: &str = "skill://";

/// The files of skills, unchanged. Callers only request skills of the library.
pub trait SkillFiles: fmt::Debug + Send + Sync {
    /// All files of a skill with their sizes, sorted by path, including SKILL.md.
    fn list<'a>(
        &'a self,
        skill: &'a str,
    ) -> BoxFuture<'a, Result<Vec<(String, u64)>, LibraryError>>;

    /// The bytes of a file, if it has at most `most`.
    fn bytes<'a>(
        &'a self,
        skill: &'a str,
        path: &'a str,
        most: usize,
    ) -> BoxFuture<'a, Result<Vec<u8>, LibraryError>>;

    /// The folder of the skill on the machine of the client, for instructions that refer to it.
    fn directory(&self, _skill: &str) -> Option<String> {
        None
    }
}

/// Whether a skill can be returned whole.
pub(super) fn fits(files: &[(String, u64)]) -> bool {
    files.len() <= MAX_SKILL_FILES
        && files.iter().map(|(_, size)| size).sum::<u64>() <= MAX_SKILL_BYTES
}

/// The address of a file or a folder.
pub(super) fn address(skill: &str, path: &str) -> String {
    let mut address = URI_SCHEME.to_owned();
    escape(skill, &mut address);
    for part in path.split('/').filter(|part| !part.is_empty()) {
        address.push('/');
        escape(part, &mut address);
    }
    address
}

/// Parses an address into skill and path; an empty path is the skill's folder. `None` for paths
/// that lead out of the skill.
pub(super) fn parse(address: &str) -> Option<(String, String)> {
    let rest = address.strip_prefix(URI_SCHEME)?;
    let mut parts = rest.split('/').map(unescape).collect::<Option<Vec<String>>>()?;
    let fine = |part: &String| {
        !part.is_empty() && part != "." && part != ".." && !part.contains(['/', '\\', '\0'])
    };
    if !parts.iter().all(fine) {
        return None;
    }
    let skill = parts.remove(0);
    Some((skill, parts.join("/")))
}

fn escape(part: &str, address: &mut String) {
    for byte in part.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                address.push(char::from(byte));
            }
            // Writing into a string does not fail.
            byte => drop(write!(address, "%{byte:02X}")),
        }
    }
}

fn unescape(part: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        if *first == b'%' {
            let digits = std::str::from_utf8(after.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = after.get(2..)?;
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    String::from_utf8(bytes).ok()
}

/// The media type of a file, by its name.
pub(super) fn mime_type(path: &str, is_text: bool) -> &'static str {
    let extension = path.rsplit_once('.').map_or("", |(_, extension)| extension);
    match extension.to_ascii_lowercase().as_str() {
        "md" => "text/markdown",
        "json" => "application/json",
        "yaml" | "yml" => "application/yaml",
        "toml" => "application/toml",
        "html" | "htm" => "text/html",
        "csv" => "text/csv",
        "py" => "text/x-python",
        "sh" => "application/x-sh",
        "js" | "mjs" => "text/javascript",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "svg" => "image/svg+xml",
        "pdf" => "application/pdf",
        "zip" => "application/zip",
        _ if is_text => "text/plain",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_round_trip() {
        for (skill, path, expected) in [
            ("pdf", "SKILL.md", "skill://pdf/SKILL.md"),
            ("pdf", "", "skill://pdf"),
            ("a b", "x/ü 1.md", "skill://a%20b/x/%C3%BC%201.md"),
            ("50%", "a#b?c", "skill://50%25/a%23b%3Fc"),
        ] {
            assert_eq!(address(skill, path), expected);
            assert_eq!(parse(expected), Some((skill.to_owned(), path.to_owned())));
        }
    }

    #[test]
    fn path_traversal_addresses_are_rejected() {
        for wrong in [
            "file:///etc/passwd", "skill://", "skill:///x", "skill://a/../b", "skill://a/%2e%2e/b",
            "skill://a/b%2fc", "skill://a/b%5cc", "skill://a//b", "skill://a/b/", "skill://a/%",
            "skill://a/%zz", "skill://a/%ff", "skill://a/%00", "skill://./a",
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
