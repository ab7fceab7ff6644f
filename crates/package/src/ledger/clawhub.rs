//! Supports the tool ClawHub, with its ledger `.clawhub/lock.json` beside the skill folders, and
//! `.clawhub/origin.json` in each skill.

use std::path::Path;

use savoir_skill::{collation, digest::sha256_hex};
use serde::Deserialize;

use super::{
    Origin, Warning,
    files::{Item, Kind},
    origin::ClawHubOrigin,
    tool_ledger::{self, LedgerFormat},
};

/// The tool's folders; the second one is from before it was renamed.
pub(super) const FOLDERS: [&str; 2] = [".clawhub", ".clawdhub"];

/// Ignore files by which the tool leaves out other files.
const IGNORE_FILES: [&str; 3] = [".gitignore", ".clawhubignore", ".clawdhubignore"];

/// File extensions that earlier releases treated as text.
const TEXT_ENDS: [&str; 46] = [
    "md", "mdx", "txt", "json", "json5", "yaml", "yml", "toml", "js", "cjs", "mjs", "ts", "tsx",
    "jsx", "py", "sh", "ps1", "psm1", "psd1", "r", "rb", "go", "rs", "swift", "kt", "java", "cs",
    "cpp", "c", "h", "hpp", "sql", "csv", "tsv", "ini", "cfg", "conf", "env", "properties", "dat",
    "xml", "html", "css", "scss", "sass", "svg",
];

/// How many bytes of a file without extension earlier releases checked.
const SAMPLE_BYTES: usize = 4096;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Record {
    version: Option<String>,
    owner_handle: Option<String>,
    pinned: Option<bool>,
}

/// The format of `lock.json`.
pub(super) struct Lock;

impl LedgerFormat for Lock {
    type Record = Record;

    const VERSIONS: &'static [u64] = &[1];

    fn entry(&self, key: String, record: Record) -> (String, Origin) {
        let slug = key.rsplit('/').next().unwrap_or(&key).to_owned();
        let named = key.strip_prefix('@').and_then(|key| key.split_once('/'));
        let owner = record.owner_handle.or_else(|| named.map(|(owner, _)| owner.to_owned()));
        let origin = ClawHubOrigin {
            slug: slug.clone(),
            owner,
            version: record.version,
            pinned: record.pinned.unwrap_or_default(),
            ..ClawHubOrigin::default()
        };
        // A skill of another catalog has a longer key, and its folder is named by its slug.
        let folder = if named.is_some() { key } else { slug };
        (folder, Origin::ClawHub(origin))
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OriginFile {
    version: u64,
    registry: String,
    slug: String,
    owner_handle: Option<String>,
    installed_version: Option<String>,
    fingerprint: Option<String>,
}

/// Reads the origin file that the tool wrote into a skill's folder, if there is one.
pub(super) fn read_origin(folder: &Path) -> Option<Result<ClawHubOrigin, Warning>> {
    FOLDERS.iter().find_map(|name| {
        let path = folder.join(name).join("origin.json");
        let bytes = match tool_ledger::read_file(&path) {
            Ok(bytes) => bytes,
            Err(error) if tool_ledger::is_absent(&error) => return None,
            Err(error) => return Some(Err(Warning::new(&path, error))),
        };
        Some(match serde_json::from_slice::<OriginFile>(&bytes) {
            Ok(file) if file.version == 1 => Ok(ClawHubOrigin {
                slug: file.slug,
                owner: file.owner_handle,
                version: file.installed_version,
                registry: Some(file.registry),
                fingerprint: file.fingerprint,
                pinned: false,
            }),
            Ok(file) => {
                let reason = format!("version {} of this file is not known", file.version);
                Err(Warning::new(&path, reason))
            }
            Err(error) => Err(Warning::new(&path, error)),
        })
    })
}

/// Whether the tool may have left out files by ignore rules of the skill.
pub(super) fn has_ignore_file(items: &[Item]) -> bool {
    items.iter().any(|item| IGNORE_FILES.contains(&item.path.as_str()))
}

/// Whether a fingerprint that the tool recorded matches these files.
pub(super) fn is_fingerprint_of(fingerprint: &str, items: &[Item]) -> bool {
    let hidden = |item: &&Item| item.path.split('/').any(|part| part.starts_with('.'));
    let files = items.iter().filter(|item| item.kind != Kind::Link && !hidden(item));
    let files: Vec<&Item> = files.collect();
    let clean = files.iter().copied().filter(|item| !item.is_ignored_name()).collect();
    let texts = files.iter().copied().filter(|item| is_text(item)).collect();
    [clean, files, texts].iter().any(|files: &Vec<&Item>| self::fingerprint(files) == fingerprint)
}

fn fingerprint(files: &[&Item]) -> String {
    let mut files = files.to_vec();
    files.sort_by_cached_key(|item| collation::key(&item.path));
    let lines = files.iter().map(|item| format!("{}:{}", item.path, sha256_hex(&item.bytes)));
    sha256_hex(lines.collect::<Vec<_>>().join("\n").as_bytes())
}

/// Whether earlier releases treated a file as text: they left out all others.
fn is_text(item: &Item) -> bool {
    let name = item.path.rsplit('/').next().unwrap_or(&item.path);
    match name.rsplit_once('.') {
        Some((stem, end)) if !stem.is_empty() && !end.is_empty() => {
            TEXT_ENDS.contains(&end.to_lowercase().as_str())
        }
        _ => {
            let sample = &item.bytes[..item.bytes.len().min(SAMPLE_BYTES)];
            !sample.contains(&0) && std::str::from_utf8(sample).is_ok()
        }
    }
}
