//! Any list and any command are judged, and what a list does not name is never let through.
#![no_main]

use libfuzzer_sys::fuzz_target;
use savoir_skill::{
    allow_list::{AllowList, OfferedTool},
    allowed_tools,
};
use serde_json::{Map, Value};

fuzz_target!(|text: &str| {
    let (list, command) = text.split_once('\n').unwrap_or((text, "git log"));
    let grants = allowed_tools::split(list);
    let Some(allowed) = AllowList::new(Some(&grants)) else { return };
    let tool = OfferedTool::Host("run_command");
    let arguments = Map::from_iter([("command".to_owned(), Value::from(command))]);
    let verdict = allowed.check(tool, &arguments);
    assert!(verdict.is_err() || allowed.names(tool), "{list:?} lets {command:?} through");
});
