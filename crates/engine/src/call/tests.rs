use savoir_skill::Dialect;
use serde_json::json;

use super::*;
use crate::testing::skill;

const COMMANDS: &str = "---\nname: files\nversion: 1.0.0\ndescription: d\n---\n### find\n\nFind.\n\n\
    #### Parameters\n\n| Name | Type | Required | Description |\n|---|---|---|---|\n\
    | query | string | yes | q |\n| limit | integer | no | (default: 10) |\n| paths | array | no | p |\n\n\
    #### Command\n\n```bash\nrg {{query}} -m {{limit}} {{hidden:--hidden}} {{paths}}\n```\n";

fn command() -> Tool {
    skill(COMMANDS, Dialect::GIBBERISH).tools[0].clone()
}

fn python() -> Tool {
    let parameter = |name: &str, kind, required, default| Parameter {
        name: name.into(),
        kind,
        required,
        description: String::new(),
        default,
    };
    Tool {
        name: "search".into(),
        description: String::new(),
        parameters: vec![
            parameter("query", ParameterKind::String, true, None),
            parameter("limit", ParameterKind::Integer, false, Some(json!(5))),
            parameter("rows", ParameterKind::Array, false, None),
            parameter("options", ParameterKind::Object, false, None),
        ],
        returns: None,
        atomic: false,
        examples: Vec::new(),
        runner: Runner::Python { function: "search".into() },
    }
}

fn map(value: &Value) -> Arguments {
    value.as_object().cloned().unwrap()
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
}

#[test]
fn texts_are_read_by_the_declared_types() {
    let given = pairs(&[("query", "7"), ("limit", "3"), ("paths", "a, b"), ("hidden", "true")]);
    let read = parse_arguments(&command(), &given).unwrap();
    // Nothing is declared for `hidden`, but the command uses it as a flag.
    assert_eq!(
        Value::from(read),
        json!({"query": "7", "limit": 3, "paths": ["a", "b"], "hidden": true})
    );
    let given = pairs(&[("query", "x"), ("options", "{\"a\": 1}"), ("rows", "[[1], [2]]")]);
    let read = parse_arguments(&python(), &given).unwrap();
    assert_eq!(
        Value::from(read),
        json!({"query": "x", "options": {"a": 1}, "rows": [[1], [2]], "limit": 5})
    );
}

#[test]
fn a_repeated_name_is_a_list_or_a_mistake() {
    let read =
        parse_arguments(&command(), &pairs(&[("query", "x"), ("paths", "a,b"), ("paths", "c")]));
    assert_eq!(read.unwrap()["paths"], json!(["a,b", "c"]));
    let error = parse_arguments(&command(), &pairs(&[("query", "x"), ("query", "y")])).unwrap_err();
    assert_eq!(error.code(), "invalid-parameter");
    assert_eq!(error.to_string(), "Parameter 'query' takes one value, not 2");
}

#[test]
fn all_problems_are_reported_together() {
    let error =
        parse_arguments(&command(), &pairs(&[("limit", "many"), ("qeury", "x")])).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Invalid value for parameter 'limit': expected integer; \
         Missing required parameter 'query' for tool 'find'; \
         Tool 'find' has no parameter 'qeury', did you mean 'query'?"
    );
    let codes: Vec<_> = error.problems().iter().map(ArgumentError::code).collect();
    assert_eq!(codes, ["invalid-parameter", "missing-parameter", "unknown-parameter"]);
    assert_eq!(error.hint(), "its parameters: query, limit, paths, hidden");
}

#[test]
fn json_is_checked_by_name_and_type() {
    let tool = command();
    let error = check_arguments(&tool, &map(&json!({"query": null}))).unwrap_err();
    assert_eq!(error.to_string(), "Missing required parameter 'query' for tool 'find'");
    assert_eq!(error.code(), "missing-parameter");
    assert_eq!(error.hint(), "its parameters: query, limit, paths, hidden");
    for (arguments, code) in [
        (json!({"query": 5}), "invalid-parameter"),
        (json!({"query": "x", "limit": "3"}), "invalid-parameter"),
        (json!({"query": "x", "limit": 3.5}), "invalid-parameter"),
        (json!({"query": "x", "paths": [["a"]]}), "invalid-parameter"),
        (json!({"query": "x", "other": 1}), "unknown-parameter"),
    ] {
        assert_eq!(
            check_arguments(&tool, &map(&arguments)).unwrap_err().code(),
            code,
            "{arguments}"
        );
    }
}

#[test]
fn defaults_are_for_functions_only() {
    let given = map(&json!({"query": "x", "limit": null, "paths": null}));
    assert_eq!(Value::from(check_arguments(&command(), &given).unwrap()), json!({"query": "x"}));
    let given = map(&json!({"query": "x", "limit": null, "rows": [{"a": 1}]}));
    let checked = check_arguments(&python(), &given).unwrap();
    assert_eq!(Value::from(checked), json!({"query": "x", "rows": [{"a": 1}], "limit": 5}));
}

#[test]
fn tools_are_found_by_both_names() {
    let skill = skill(COMMANDS, Dialect::GIBBERISH);
    assert_eq!(find_tool(&skill, "find").unwrap().name, "find");
    assert_eq!(find_tool(&skill, "files/find").unwrap().name, "find");
    let error = find_tool(&skill, "fidn").unwrap_err();
    assert_eq!(error.code(), "unknown-tool");
    assert_eq!(error.to_string(), "Unknown tool 'fidn', did you mean 'find'?");
    assert_eq!(error.hint(), "its tools: find");
    assert_eq!(find_tool(&skill, "other/find").unwrap_err().code(), "unknown-tool");
}

fn names(pairs: &[(&str, &str)]) -> ToolNames {
    let pairs = pairs.iter().map(|(skill, tool)| ((*skill).to_owned(), (*tool).to_owned()));
    ToolNames::from_pairs(pairs)
}

#[test]
fn shared_names_are_qualified() {
    let names = names(&[("a", "find"), ("b", "find"), ("b", "list")]);
    let shown: Vec<_> = names.iter().map(|name| (name.shown.as_str(), name.api.as_str())).collect();
    assert_eq!(shown, [("a/find", "a__find"), ("b/find", "b__find"), ("list", "list")]);
    for (name, skill) in [("a/find", "a"), ("b__find", "b"), ("list", "b"), ("b/list", "b")] {
        assert_eq!(names.find(name).unwrap().skill, skill, "{name}");
    }
    let error = names.find("find").unwrap_err();
    assert_eq!(error.code(), "ambiguous-tool");
    assert_eq!(error.to_string(), "Tool 'find' is in several skills: a, b");
    assert_eq!(error.hint(), "use the full name: a/find, b/find");
    let error = names.find("lsit").unwrap_err();
    assert_eq!(error.to_string(), "Unknown tool 'lsit', did you mean 'list'?");
    assert_eq!(names.of("b", "list").unwrap().qualified(), "b/list");
}

#[test]
fn names_for_apis_are_short_plain_and_unique() {
    let long = "x".repeat(80);
    let names = names(&[("a", &long), ("b", "größe"), ("c", "gr__e"), ("d", "gr\u{f6}\u{df}e!")]);
    let mut seen = std::collections::BTreeSet::new();
    for name in names.iter() {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        assert!(name.api.chars().all(plain) && name.api.len() <= 64, "{}", name.api);
        assert!(seen.insert(&name.api), "{}", name.api);
        assert_eq!(names.find(&name.api).unwrap(), name);
    }
}
