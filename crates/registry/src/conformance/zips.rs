//! Archives that must be refused, written byte by byte because no library creates them.

use std::{fmt::Write as _, io::Write as _};

use flate2::{Compression, Crc, write::DeflateEncoder};

use super::sample::text;

const METHOD_STORED: u16 = 0;
const METHOD_DEFLATED: u16 = 8;
const REGULAR_FILE_MODE: u32 = 0o100_644;

/// An entry, whose fields may be inconsistent.
#[derive(Clone, Debug)]
struct ZipEntry {
    name: Vec<u8>,
    /// Name in the local header, if it differs.
    local: Option<Vec<u8>>,
    /// The compressed bytes.
    packed: Vec<u8>,
    size: u32,
    crc: u32,
    method: u16,
    flags: u16,
    mode: u32,
}

impl ZipEntry {
    fn new(name: impl Into<Vec<u8>>, bytes: &[u8]) -> Self {
        let mut crc = Crc::new();
        crc.update(bytes);
        Self {
            name: name.into(),
            local: None,
            packed: bytes.to_vec(),
            size: bytes.len() as u32,
            crc: crc.sum(),
            method: METHOD_STORED,
            flags: 1 << 11,
            mode: REGULAR_FILE_MODE,
        }
    }

    fn deflated(name: impl Into<Vec<u8>>, bytes: &[u8]) -> Self {
        let mut deflating = DeflateEncoder::new(Vec::new(), Compression::best());
        // Writing to memory cannot fail.
        let _ = deflating.write_all(bytes);
        let packed = deflating.finish().unwrap_or_default();
        Self { packed, method: METHOD_DEFLATED, ..Self::new(name, bytes) }
    }

    /// The fields that both headers have.
    fn central_header(&self, name: &[u8]) -> Vec<u8> {
        let mut fields = Vec::from([20, 0]);
        for number in [self.flags, self.method, 0, 0x21] {
            fields.extend(number.to_le_bytes());
        }
        for number in [self.crc, self.packed.len() as u32, self.size] {
            fields.extend(number.to_le_bytes());
        }
        fields.extend((name.len() as u16).to_le_bytes());
        fields.extend([0; 2]);
        fields
    }
}

fn zip(entries: &[ZipEntry]) -> Vec<u8> {
    let (mut bytes, mut places) = (Vec::new(), Vec::new());
    for entry in entries {
        places.push(bytes.len() as u32);
        let name = entry.local.as_ref().unwrap_or(&entry.name);
        bytes.extend(b"PK\x03\x04");
        bytes.extend(entry.central_header(name));
        bytes.extend(name);
        bytes.extend(&entry.packed);
    }
    finish(bytes, entries, &places, b"")
}

/// Adds a central directory with entries at these offsets.
fn finish(mut bytes: Vec<u8>, entries: &[ZipEntry], places: &[u32], comment: &[u8]) -> Vec<u8> {
    let start = bytes.len();
    for (entry, place) in entries.iter().zip(places) {
        bytes.extend(b"PK\x01\x02\x14\x03");
        bytes.extend(entry.central_header(&entry.name));
        bytes.extend([0; 6]);
        bytes.extend((entry.mode << 16).to_le_bytes());
        bytes.extend(place.to_le_bytes());
        bytes.extend(&entry.name);
    }
    let (size, count) = ((bytes.len() - start) as u32, entries.len() as u16);
    bytes.extend(b"PK\x05\x06\0\0\0\0");
    bytes.extend(count.to_le_bytes());
    bytes.extend(count.to_le_bytes());
    bytes.extend(size.to_le_bytes());
    bytes.extend((start as u32).to_le_bytes());
    bytes.extend((comment.len() as u16).to_le_bytes());
    bytes.extend(comment);
    bytes
}

fn valid_entry(name: &str) -> ZipEntry {
    let text = text(name, "1.0.0", "Hostile.");
    ZipEntry::new(format!("{name}/SKILL.md"), text.as_bytes())
}

/// A valid SKILL.md and further entries.
fn zip_with_entries(name: &str, more: impl IntoIterator<Item = ZipEntry>) -> Vec<u8> {
    let entries: Vec<ZipEntry> = std::iter::once(valid_entry(name)).chain(more).collect();
    zip(&entries)
}

fn zip_with_path(name: &str, path: impl Into<Vec<u8>>) -> Vec<u8> {
    zip_with_entries(name, [ZipEntry::new(path, b"evil")])
}

/// An archive with a changed SKILL.md.
fn zip_with_text(name: &str, change: impl FnOnce(String) -> Vec<u8>) -> Vec<u8> {
    let bytes = change(text(name, "1.0.0", "Hostile."));
    zip(&[ZipEntry::new(format!("{name}/SKILL.md"), &bytes)])
}

/// An archive with a further line in its frontmatter.
fn zip_with_yaml(name: &str, line: &str) -> Vec<u8> {
    zip_with_text(name, |text| text.replacen("license: MIT", line, 1).into_bytes())
}

/// A malicious archive: its id, what its check proves, and a function that creates it for a skill name.
pub(super) type HostileArchive = (&'static str, &'static str, fn(&str) -> Vec<u8>);

pub(super) const HOSTILE_ARCHIVES: &[HostileArchive] = &[
    ("zip-traversal", "An archive with path traversal is refused.", |name| {
        zip_with_path(name, format!("{name}/../../evil.sh"))
    }),
    ("zip-absolute", "An archive with an absolute path is refused.", |name| {
        zip_with_path(name, "/etc/cron.d/evil")
    }),
    ("zip-backslash", "An archive with backslashes in a path is refused.", |name| {
        zip_with_path(name, format!("{name}\\..\\..\\evil.bat"))
    }),
    ("zip-drive", "An archive with a drive letter is refused.", |name| {
        zip_with_path(name, format!("{name}/C:evil"))
    }),
    ("zip-symlink", "An archive with a symlink is refused.", |name| {
        let link = ZipEntry::new(format!("{name}/link"), b"/etc");
        zip_with_entries(name, [ZipEntry { mode: 0o120_777, ..link }])
    }),
    ("zip-device", "An archive with a device is refused.", |name| {
        let device = ZipEntry::new(format!("{name}/disk"), b"");
        zip_with_entries(name, [ZipEntry { mode: 0o060_644, ..device }])
    }),
    ("zip-duplicate", "An archive with the same file twice is refused.", |name| {
        zip_with_entries(name, [valid_entry(name)])
    }),
    ("zip-case", "An archive with two names that differ only in case is refused.", |name| {
        let files =
            ["notes.md", "NOTES.md"].map(|file| ZipEntry::new(format!("{name}/{file}"), b"x"));
        zip_with_entries(name, files)
    }),
    ("zip-unicode", "An archive with two Unicode forms of one name is refused.", |name| {
        let files = ["\u{e9}.md", "e\u{301}.md"];
        zip_with_entries(name, files.map(|file| ZipEntry::new(format!("{name}/{file}"), b"x")))
    }),
    ("zip-confused", "An archive whose headers disagree about a name is refused.", |name| {
        let other = Some(format!("{name}/OTHER.md").into_bytes());
        zip_with_entries(
            name,
            [ZipEntry { local: other, ..ZipEntry::new(format!("{name}/notes.md"), b"x") }],
        )
    }),
    ("zip-twice", "Two concatenated archives are refused.", |name| {
        zip_with_entries(name, []).repeat(2)
    }),
    ("zip-prefix", "An archive with leading bytes is refused.", |name| {
        [b"\x7fELF and so on".as_slice(), &zip_with_entries(name, [])].concat()
    }),
    ("zip-suffix", "An archive with trailing bytes is refused.", |name| {
        [zip_with_entries(name, []).as_slice(), b"and so on"].concat()
    }),
    ("zip-comment", "An archive with a comment is refused.", |name| {
        let entry = valid_entry(name);
        let mut bytes = zip(std::slice::from_ref(&entry));
        let length = bytes.len() - 22 - 46 - entry.name.len();
        bytes.truncate(length);
        finish(bytes, &[entry], &[0], b"PK\x05\x06 and so on")
    }),
    ("zip-encrypted", "An encrypted archive is refused.", |name| {
        let secret = ZipEntry::new(format!("{name}/secret"), b"secret");
        zip_with_entries(name, [ZipEntry { flags: 1 | 1 << 11, ..secret }])
    }),
    ("zip-truncated", "A truncated archive is refused.", |name| {
        let whole =
            zip_with_entries(name, [ZipEntry::new(format!("{name}/notes.md"), &[b'x'; 1000])]);
        whole[..whole.len() * 6 / 10].to_vec()
    }),
    ("zip-checksum", "An archive with a wrong checksum is refused.", |name| {
        let file = ZipEntry::new(format!("{name}/notes.md"), b"notes");
        zip_with_entries(name, [ZipEntry { crc: 7, ..file }])
    }),
    ("zip-bomb", "A zip bomb is refused.", |name| {
        let zeros = vec![0; 64 << 20];
        zip_with_entries(name, [ZipEntry::deflated(format!("{name}/zeros"), &zeros)])
    }),
    ("zip-bomb-lie", "A zip bomb with a wrong size is refused.", |name| {
        let zeros = vec![0; 32 << 20];
        zip_with_entries(
            name,
            [ZipEntry { size: 100, ..ZipEntry::deflated(format!("{name}/zeros"), &zeros) }],
        )
    }),
    ("zip-overlap", "An archive with overlapping entries is refused.", |name| {
        let shared = ZipEntry::new(format!("{name}/a"), &[b'x'; 10_000]);
        let mut bytes = Vec::from(b"PK\x03\x04");
        bytes.extend(shared.central_header(&shared.name));
        bytes.extend(&shared.name);
        bytes.extend(&shared.packed);
        let entry = |at: usize| ZipEntry { name: format!("{name}/{at}").into(), ..shared.clone() };
        let entries: Vec<ZipEntry> = (0..1000).map(entry).collect();
        finish(bytes, &entries, &[0; 1000], b"")
    }),
    ("zip-many", "An archive with thousands of files is refused.", |name| {
        zip_with_entries(name, (0..6000).map(|at| ZipEntry::new(format!("{name}/{at}"), b"")))
    }),
    ("zip-no-skill", "An archive without SKILL.md is refused.", |name| {
        zip(&[ZipEntry::new(format!("{name}/README.md"), b"Hi.")])
    }),
    ("zip-two-roots", "An archive with a file outside of its folder is refused.", |name| {
        zip_with_path(name, "elsewhere/notes.md")
    }),
    ("zip-git-hooks", "An archive with Git hooks is refused.", |name| {
        zip_with_path(name, format!("{name}/.git/hooks/post-checkout"))
    }),
    ("zip-reserved-name", "An archive with a name that Windows reserves is refused.", |name| {
        zip_with_path(name, format!("{name}/CON"))
    }),
    ("zip-control-name", "An archive with a line break in a name is refused.", |name| {
        zip_with_path(name, format!("{name}/a\nb.md"))
    }),
    ("zip-bidi-name", "An archive with a bidi override in a name is refused.", |name| {
        zip_with_path(name, format!("{name}/a\u{202e}dm.exe"))
    }),
    ("zip-bytes-name", "An archive with a name that is not UTF-8 is refused.", |name| {
        zip_with_path(name, [name.as_bytes(), b"/\xff\xfe.md"].concat())
    }),
    ("zip-long-name", "An archive with a very long name is refused.", |name| {
        zip_with_path(name, format!("{name}/{}", "x".repeat(400)))
    }),
    ("zip-deep", "An archive with deeply nested folders is refused.", |name| {
        zip_with_path(name, format!("{name}/{}x.md", "d/".repeat(60)))
    }),
    ("zip-file-as-folder", "An archive with a file that is also a folder is refused.", |name| {
        let paths = ["x", "x/y"].map(|path| ZipEntry::new(format!("{name}/{path}"), b"x"));
        zip_with_entries(name, paths)
    }),
    ("yaml-alias", "Frontmatter with exponential aliases is refused.", |name| {
        let mut laughs = "a0: &a0 [x,x,x,x,x,x,x,x,x]".to_owned();
        for at in 1..9 {
            let again = vec![format!("*a{}", at - 1); 9].join(",");
            let _ = write!(laughs, "\na{at}: &a{at} [{again}]");
        }
        zip_with_yaml(name, &laughs)
    }),
    ("yaml-duplicate", "Frontmatter with a duplicate field is refused.", |name| {
        zip_with_yaml(name, "license: MIT\nlicense: Apache-2.0")
    }),
    ("yaml-merge", "Frontmatter with a merge key is refused.", |name| {
        zip_with_yaml(name, "base: &base\n  license: MIT\n<<: *base")
    }),
    ("yaml-tag", "Frontmatter with a language-specific tag is refused.", |name| {
        zip_with_yaml(name, "license: !!python/object/apply:os.system [\"id\"]")
    }),
    ("yaml-deep", "Frontmatter with deep nesting is refused.", |name| {
        zip_with_yaml(name, &format!("deep: {}{}", "[".repeat(10_000), "]".repeat(10_000)))
    }),
    ("yaml-huge", "Huge frontmatter is refused.", |name| {
        zip_with_yaml(name, &format!("huge: {}", "x".repeat(700_000)))
    }),
    ("yaml-number", "A version that is a number is refused.", |name| {
        zip_with_text(name, |text| text.replace("\"1.0.0\"", "1.10").into_bytes())
    }),
    ("yaml-unclosed", "Frontmatter without an end is refused.", |name| {
        zip_with_text(name, |text| text.replace("\n---\n\n", "\n").into_bytes())
    }),
    ("text-bytes", "A SKILL.md that is not UTF-8 is refused.", |name| {
        zip_with_text(name, |text| [text.as_bytes(), b"\xff\xfe\xc3\x28"].concat())
    }),
    ("text-wide", "A SKILL.md in UTF-16 is refused.", |name| {
        zip_with_text(name, |text| {
            std::iter::once(0xfeff).chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect()
        })
    }),
    ("text-control", "A description with terminal escape codes is refused.", |name| {
        zip_with_text(name, |text| {
            text.replace("Made to", "\u{1b}[2J\u{1b}[1mMade to").into_bytes()
        })
    }),
];

#[cfg(test)]
mod tests {
    use savoir_package::submission::{PublishOptions, Submission};

    use super::*;

    /// This program must refuse everything that a registry must refuse.
    #[test]
    fn every_hostile_archive_is_rejected() {
        let name = "demo";
        let read = |bytes: &[u8]| Submission::read(bytes, &PublishOptions::default());
        assert!(read(&zip_with_entries(name, [])).is_ok(), "a valid archive is not refused");
        for (id, _, make) in HOSTILE_ARCHIVES {
            assert!(read(&make(name)).is_err(), "{id}");
        }
    }
}
