//! Reads tool ledgers: the lock files in which other tools list the skills that they installed.

use std::{
    collections::HashMap,
    fmt, fs,
    io::{self, Read as _},
    marker::PhantomData,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, MapAccess, Visitor},
};
use serde_json::Value;

use super::{Origin, Warning};
use crate::limits::MAX_LEDGER_BYTES;

/// The content of one tool ledger: the origins of skills, by the name of their folder.
#[derive(Debug, Default)]
pub(super) struct ToolLedger {
    pub(super) skills: HashMap<String, Arc<Origin>>,
}

/// The file format of a tool ledger.
pub(super) trait LedgerFormat {
    /// One entry of `skills`.
    type Record: DeserializeOwned;

    /// The supported versions of the format.
    const VERSIONS: &'static [u64];

    /// Converts an entry to the name of the skill's folder, and its origin.
    fn entry(&self, key: String, record: Self::Record) -> (String, Origin);
}

#[derive(Deserialize)]
struct LedgerFile<R> {
    version: u64,
    skills: Pairs<R>,
}

/// The members of an object in order, because a map would only be built to be taken apart.
struct Pairs<R>(Vec<(String, R)>);

impl<'de, R: Deserialize<'de>> Deserialize<'de> for Pairs<R> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(PairsVisitor(PhantomData))
    }
}

struct PairsVisitor<R>(PhantomData<R>);

impl<'de, R: Deserialize<'de>> Visitor<'de> for PairsVisitor<R> {
    type Value = Pairs<R>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs<R>, A::Error> {
        let mut pairs = Vec::new();
        while let Some(pair) = map.next_entry()? {
            pairs.push(pair);
        }
        Ok(Pairs(pairs))
    }
}

/// Reads a ledger; `None` if it does not exist.
pub(super) fn read<W: LedgerFormat>(
    path: &Path,
    writing: &W,
    warnings: &mut Vec<Warning>,
) -> Option<ToolLedger> {
    let bytes = match read_file(path) {
        Ok(bytes) => bytes,
        Err(error) if is_absent(&error) => return None,
        Err(error) => {
            warnings.push(Warning::new(path, error));
            return None;
        }
    };
    let mut tool_ledger = ToolLedger::default();
    let known = |version: u64| W::VERSIONS.contains(&version);
    match serde_json::from_slice::<LedgerFile<W::Record>>(&bytes) {
        Ok(quick) if known(quick.version) => {
            tool_ledger.skills.reserve(quick.skills.0.len());
            for (key, record) in quick.skills.0 {
                let (folder, origin) = writing.entry(key, record);
                tool_ledger.skills.insert(folder, Arc::new(origin));
            }
        }
        Ok(quick) => warnings.push(Warning::new(path, unknown_version(quick.version))),
        Err(_) => read_slowly(path, &bytes, writing, &mut tool_ledger, warnings),
    }
    Some(tool_ledger)
}

/// Reads the valid entries of a ledger in which some are not valid.
fn read_slowly<W: LedgerFormat>(
    path: &Path,
    bytes: &[u8],
    writing: &W,
    tool_ledger: &mut ToolLedger,
    warnings: &mut Vec<Warning>,
) {
    let mut warn = |reason: String| warnings.push(Warning::new(path, reason));
    let value: Value = match serde_json::from_slice(bytes) {
        Ok(value) => value,
        Err(error) => return warn(format!("it is not JSON: {error}")),
    };
    match value.get("version").and_then(Value::as_u64) {
        Some(version) if W::VERSIONS.contains(&version) => (),
        Some(version) => return warn(unknown_version(version)),
        None => return warn("it has no `version`".to_owned()),
    }
    let Some(skills) = value.get("skills").and_then(Value::as_object) else {
        return warn("it has no `skills`".to_owned());
    };
    for (key, record) in skills {
        match serde_json::from_value(record.clone()) {
            Ok(record) => {
                let (folder, origin) = writing.entry(key.clone(), record);
                tool_ledger.skills.insert(folder, Arc::new(origin));
            }
            Err(error) => warn(format!("`skills.{}`: {error}", key.escape_debug())),
        }
    }
}

fn unknown_version(version: u64) -> String {
    format!("version {version} of this file is not known")
}

/// Reads a ledger file; fails if it is too large.
pub(super) fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let file = fs::File::open(path)?;
    let mut bytes = Vec::with_capacity(file.metadata()?.len().min(MAX_LEDGER_BYTES) as usize + 1);
    file.take(MAX_LEDGER_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_LEDGER_BYTES {
        let message = format!("it has more than {MAX_LEDGER_BYTES} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(bytes)
}

/// Whether an error means that the file does not exist.
pub(super) fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Every ledger that was read, so that none is read twice.
#[derive(Debug, Default)]
pub(super) struct LedgerCache {
    tool_ledgers: HashMap<PathBuf, Option<Arc<ToolLedger>>>,
}

impl LedgerCache {
    /// All ledgers, with their paths.
    pub(super) fn tool_ledgers(&self) -> impl Iterator<Item = (&Path, &Arc<ToolLedger>)> {
        let tool_ledgers = self.tool_ledgers.iter();
        tool_ledgers.filter_map(|(path, tool_ledger)| Some((path.as_path(), tool_ledger.as_ref()?)))
    }

    /// Returns the ledger at a path; reads it the first time.
    pub(super) fn tool_ledger<W: LedgerFormat>(
        &mut self,
        path: PathBuf,
        writing: &W,
        warnings: &mut Vec<Warning>,
    ) -> Option<Arc<ToolLedger>> {
        if let Some(tool_ledger) = self.tool_ledgers.get(&path) {
            return tool_ledger.clone();
        }
        let tool_ledger = read(&path, writing, warnings).map(Arc::new);
        self.tool_ledgers.insert(path, tool_ledger.clone());
        tool_ledger
    }
}
