//! Merges additional files that a target needs, such as `agents/openai.yaml`, with existing ones.

use savoir_lint::Source;
use serde_json::Value;

use super::{Conversion, FieldOutcome, FieldReport, draft::write_draft};
use crate::{
    dialect::{CODEX_SIDE_FILE, Dialect, NewFile},
    folder::Folder,
    reading::Reading,
    yaml::{Tree, YamlVersion, write::write_entry},
};

/// The line before entries that are added to an existing file, by which they are found again.
const ADDED: &str = "# Added by the conversion to Codex:\n";

/// Merges a new file with the existing one. Returns `None` if the existing file already contains
/// everything, or cannot be parsed and must not be overwritten.
pub(super) fn merge_with_existing(file: NewFile, folder: Option<&Folder>) -> Option<NewFile> {
    let Some(folder) = folder.filter(|folder| folder.has(&file.path)) else { return Some(file) };
    let source = Source::from_bytes(folder.read(&file.path).ok()?).ok()?;
    let old = value(source.text())?;
    let new = value(&file.text)?;
    // The existing lines stay as they are, so that converting back restores the file.
    let is_separate = new.as_object()?.keys().all(|key| old.get(key).is_none());
    if is_separate && source.text().ends_with('\n') {
        let text = format!("{}{ADDED}{}", source.text(), file.text);
        if value(&text).is_some() {
            return Some(NewFile { path: file.path, text });
        }
    }
    let mut joined = old.clone();
    join(&mut joined, new);
    let Value::Object(map) = joined.clone() else { return None };
    let text: String = map.iter().map(|(key, value)| write_entry(key, value, 0)).collect();
    (joined != old).then_some(NewFile { path: file.path, text })
}

/// Removes the file of Codex from a restored original if the conversion to Codex added it. If it
/// has other content, it stays and the report says so.
pub(super) fn without_added(
    mut restored: Conversion,
    original: &Reading,
    folder: Option<&Folder>,
) -> Conversion {
    let Some(folder) = folder.filter(|folder| folder.has(CODEX_SIDE_FILE)) else { return restored };
    if original.skill.dialect == Dialect::CODEX {
        return restored;
    }
    let added = write_draft(original, Dialect::CODEX).ok().map(|draft| draft.files);
    let added = added.unwrap_or_default().into_iter().find(|file| file.path == CODEX_SIDE_FILE);
    let Some(added) = added else { return restored };
    let text = folder.read(CODEX_SIDE_FILE).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let before =
        text.as_deref().and_then(|text| text.strip_suffix(&format!("{ADDED}{}", added.text)));
    if let Some(before) = before {
        restored.files.push(NewFile { path: added.path.clone(), text: before.to_owned() });
        restored.report.push(FieldReport {
            field: "file".into(),
            from: Some(added.path.clone()),
            to: Some(added.path),
            how: FieldOutcome::Moved,
            why: "restored as it was before the conversion".into(),
        });
        return restored;
    }
    let same = text.as_deref() == Some(added.text.as_str());
    let (how, why) = if same {
        restored.removed.push(added.path.clone());
        (FieldOutcome::Dropped, "the conversion to Codex added it")
    } else {
        (FieldOutcome::Kept, "it stays, because it is not what the conversion to Codex added")
    };
    restored.report.push(FieldReport {
        field: "file".into(),
        to: (!same).then(|| added.path.clone()),
        from: Some(added.path),
        how,
        why: why.into(),
    });
    restored
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
