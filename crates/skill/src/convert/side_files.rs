//! Merges additional files that a target needs, such as `agents/openai.yaml`, with existing ones.

use savoir_lint::Source;
use serde_json::Value;

use crate::{
    dialect::NewFile,
    folder::Folder,
    yaml::{Tree, YamlVersion, write::write_entry},
};

/// Merges a new file with the existing one. Returns `None` if the existing file already contains
/// everything, or cannot be parsed and must not be overwritten.
pub(super) fn merge_with_existing(file: NewFile, folder: Option<&Folder>) -> Option<NewFile> {
    let Some(folder) = folder.filter(|folder| folder.has(&file.path)) else { return Some(file) };
    let source = Source::from_bytes(folder.read(&file.path).ok()?).ok()?;
    let old = value(source.text())?;
    let mut joined = old.clone();
    join(&mut joined, value(&file.text)?);
    let Value::Object(map) = joined.clone() else { return None };
    let text: String = map.iter().map(|(key, value)| write_entry(key, value, 0)).collect();
    (joined != old).then_some(NewFile { path: file.path, text })
}

fn value(yaml: &str) -> Option<Value> {
    let root = Tree::parse(yaml).ok()?.root?;
    Some(root.to_value(YamlVersion::V1_2)).filter(Value::is_object)
}

/// Merges new values into old ones; new values win.
fn join(old: &mut Value, new: Value) {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            for (key, value) in new {
                join(old.entry(key).or_insert(Value::Null), value);
            }
        }
        (old, new) => *old = new,
    }
}
