//! Renders the prompt of gibb.eri.sh and the function declarations that its model understands.

use std::fmt::Write as _;

use savoir_lint::words::one_line;
use serde_json::Value;

use super::{Entry, NativeTool};

const HEADER: &str = "You are a model that can do function calling with the following functions:";

/// Renders the header, the host's own tools, the tools of skills, and the declarations of the
/// latter.
pub(super) fn prompt(native: &[NativeTool], entries: &[Entry]) -> String {
    let mut prompt = format!("{HEADER}\n\n[Native Tools]\n");
    for tool in native {
        push_line(&mut prompt, &tool.name, &tool.description);
    }
    prompt.push_str("\n[Skills]\n");
    for entry in entries {
        push_line(&mut prompt, &entry.name.api, &entry.description);
    }
    if !entries.is_empty() {
        prompt.push('\n');
    }
    for entry in entries {
        let _ = writeln!(prompt, "{}", declaration(entry));
    }
    for entry in entries {
        for example in &entry.examples {
            let _ = writeln!(prompt, "{}", renamed_call(example, &entry.name.api));
        }
    }
    prompt
}

/// An example call with the name under which the model calls the tool.
fn renamed_call(example: &str, name: &str) -> String {
    match example.split_once('{') {
        Some((_, arguments)) => format!("<start_function_call>call:{name}{{{arguments}"),
        None => example.to_owned(),
    }
}

fn push_line(prompt: &mut String, name: &str, description: &str) {
    // One line for each tool, so that a description cannot imitate another entry or list.
    let description = one_line(description);
    let _ = if description.is_empty() {
        writeln!(prompt, "- {name}")
    } else {
        writeln!(prompt, "- {name}: {description}")
    };
}

pub(super) fn declaration(entry: &Entry) -> String {
    format!(
        "<start_function_declaration>declaration:{}{{description:{},parameters:{}}}<end_function_declaration>",
        entry.name.api,
        escaped(&one_line(&entry.description)),
        parameters(&entry.parameters)
    )
}

fn parameters(schema: &Value) -> String {
    let mut properties = Vec::new();
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let kind = property["type"].as_str().unwrap_or("string").to_ascii_uppercase();
        let description = property["description"].as_str().unwrap_or_default();
        let description = escaped(description);
        let name = plain(name);
        properties.push(format!("{name}:{{description:{description},type:{}}}", escaped(&kind)));
    }
    let required: Vec<String> = schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(escaped)
        .collect();
    let (properties, required) = (properties.join(","), required.join(","));
    format!("{{properties:{{{properties}}},required:[{required}],type:{}}}", escaped("OBJECT"))
}

fn escaped(text: &str) -> String {
    format!("<escape>{}<escape>", plain(text))
}

/// Escapes text that the model would read as one of its control tokens.
fn plain(text: &str) -> String {
    ["<escape>", "<start_function", "<end_function"]
        .iter()
        .fold(text.to_owned(), |text, token| text.replace(token, &token.replace('<', "< ")))
}
