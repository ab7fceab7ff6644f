//! Makes up arguments for tools from their declared parameters.

use std::path::Path;

use savoir_skill::{
    permission::{Domain, Permission},
    skill::{Parameter, ParameterKind, Tool},
};
use serde_json::{Map, Value, json};

/// A host that does not exist, for skills that declare no host.
const UNREACHABLE_HOST: &str = "example.invalid";

/// Arguments for every parameter of a tool.
pub(super) fn sample_arguments(
    tool: &Tool,
    permissions: &[Permission],
    work: &Path,
) -> Map<String, Value> {
    let host = declared_host_or_placeholder(permissions);
    let pairs = tool.parameters.iter().map(|parameter| {
        let default = parameter.default.clone().filter(|value| !value.is_null());
        let value = default.unwrap_or_else(|| sample_value(parameter, &host, work));
        (parameter.name.clone(), value)
    });
    pairs.collect()
}

fn sample_value(parameter: &Parameter, host: &str, work: &Path) -> Value {
    match parameter.kind {
        ParameterKind::String => sample_text(&parameter.name, host, work).into(),
        ParameterKind::Integer => 1.into(),
        ParameterKind::Number => json!(1.5),
        ParameterKind::Boolean => true.into(),
        ParameterKind::Array => json!([sample_text(&parameter.name, host, work)]),
        ParameterKind::Object => json!({}),
    }
}

/// A text that fits the name of a parameter.
pub(super) fn sample_text(name: &str, host: &str, work: &Path) -> String {
    let name = name.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    if has(&["url", "uri", "link", "endpoint"]) {
        return format!("https://{host}/");
    }
    if has(&["host", "domain"]) {
        return host.to_owned();
    }
    if has(&["folder", "directory"]) || name == "dir" || name.ends_with("_dir") {
        return work.to_string_lossy().into_owned();
    }
    if has(&["path", "file"]) {
        let kind = ["csv", "json", "md"].into_iter().find(|kind| name.contains(kind));
        let sample = format!("sample.{}", kind.unwrap_or("txt"));
        return work.join(sample).to_string_lossy().into_owned();
    }
    if has(&["email"]) {
        return "sam@example.com".to_owned();
    }
    "example".to_owned()
}

/// The first host that the skill declares, or one that does not exist.
pub(super) fn declared_host_or_placeholder(permissions: &[Permission]) -> String {
    let scopes = permissions.iter().filter(|one| one.domain == Domain::Network);
    let hosts = scopes.filter_map(|one| {
        let scope = one.scope.as_deref()?;
        let rest = scope.split_once("://").map_or(scope, |(_, rest)| rest);
        let host = rest.split(['/', ':', '?']).next()?.trim_start_matches("*.");
        (!host.is_empty() && host != "*").then(|| host.to_owned())
    });
    hosts.min().unwrap_or_else(|| UNREACHABLE_HOST.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_match_parameter_names() {
        let work = Path::new("/w");
        for (name, expected) in [
            ("page_url", "https://a.example/"),
            ("hostname", "a.example"),
            ("output_dir", "/w"),
            ("csv_file", "/w/sample.csv"),
            ("path", "/w/sample.txt"),
            ("query", "example"),
        ] {
            assert_eq!(sample_text(name, "a.example", work), expected);
        }
    }

    #[test]
    fn declared_host_is_used_else_placeholder() {
        let permissions = |list: &[&str]| -> Vec<Permission> {
            list.iter().map(|text| Permission::parse(text).unwrap()).collect()
        };
        for (list, expected) in [
            (&["network:read:*.brave.com"][..], "brave.com"),
            (&["network:read:https://b.example:8080/v1", "filesystem:read:x"], "b.example"),
            (&["network:read"], UNREACHABLE_HOST),
            (&[], UNREACHABLE_HOST),
        ] {
            assert_eq!(declared_host_or_placeholder(&permissions(list)), expected);
        }
    }
}
