//! Tests detection of dialects, and the schemas against the fields that dialects read and write.

use std::path::Path;

use serde_json::{Value, json};

use super::*;
use crate::{Source, read, read_as};

/// Why a value does not fit a schema, by the keywords that we write; patterns are not tried.
fn problem(schema: &Value, value: &Value, path: &str) -> Option<String> {
    let number = |key: &str| schema.get(key).and_then(Value::as_f64);
    let strings = |key: &str| schema.get(key).and_then(Value::as_array).into_iter().flatten();
    if let Some(kind) = schema.get("type") {
        let kinds = kind.as_array().map_or(std::slice::from_ref(kind), Vec::as_slice);
        if !kinds.iter().any(|kind| has_type(value, kind.as_str().unwrap_or_default())) {
            return Some(format!("{path}: {value} is not {kind}"));
        }
    }
    if schema.get("enum").is_some() && !strings("enum").any(|word| word == value) {
        return Some(format!("{path}: {value} is none of the words"));
    }
    if let Some(forms) = schema.get("anyOf").and_then(Value::as_array) {
        let problems: Vec<_> = forms.iter().filter_map(|form| problem(form, value, path)).collect();
        if problems.len() == forms.len() {
            return Some(problems.join("; "));
        }
    }
    if let Some(text) = value.as_str() {
        let chars = u32::try_from(text.chars().count()).map_or(f64::MAX, f64::from);
        if number("minLength").is_some_and(|min| chars < min)
            || number("maxLength").is_some_and(|max| chars > max)
        {
            return Some(format!("{path}: {chars} characters"));
        }
    }
    if let Some(given) = value.as_f64()
        && (number("minimum").is_some_and(|min| given < min)
            || number("maximum").is_some_and(|max| given > max))
    {
        return Some(format!("{path}: {given} is out of range"));
    }
    if let (Some(item), Some(list)) = (schema.get("items"), value.as_array()) {
        return list.iter().find_map(|value| problem(item, value, &format!("{path}[]")));
    }
    let map = value.as_object()?;
    if let Some(key) = strings("required").find(|key| !map.contains_key(key.as_str().unwrap_or("")))
    {
        return Some(format!("{path}: {key} is missing"));
    }
    map.iter().find_map(|(key, value)| {
        let path = format!("{path}.{key}");
        match schema.get("properties").and_then(|all| all.get(key)) {
            Some(schema) => problem(schema, value, &path),
            None => match schema.get("additionalProperties")? {
                Value::Bool(true) => None,
                Value::Bool(false) => Some(format!("{path}: is not declared")),
                schema => problem(schema, value, &path),
            },
        }
    })
}

fn has_type(value: &Value, kind: &str) -> bool {
    match kind {
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "null" => value.is_null(),
        _ => false,
    }
}

/// The frontmatter as the dialect's own YAML reader gives it.
fn head(document: &Document, dialect: Dialect) -> Value {
    document.fields().map_or_else(|| json!({}), |fields| fields.to_value(dialect.yaml()))
}

fn fits(text: &str, dialect: Dialect) -> Option<String> {
    let document = read_as(Source::new(text.to_owned()), dialect, None).document;
    problem(&dialect.schema(), &head(&document, dialect), "")
}

#[test]
fn schemas_accept_the_examples() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut seen = 0;
    for entry in std::fs::read_dir(examples).unwrap() {
        let folder = Folder::open(&entry.unwrap().path()).unwrap();
        let path = folder.root().join("SKILL.md");
        if !path.exists() {
            continue;
        }
        let source = Source::from_bytes(std::fs::read(&path).unwrap()).unwrap();
        let reading = read(source, Some(&folder));
        let dialect = reading.detection.dialect;
        let found = problem(&dialect.schema(), &head(&reading.document, dialect), "");
        assert_eq!(found, None, "{dialect} {}", path.display());
        seen += 1;
    }
    assert!(seen >= 10, "{seen}");
}

#[test]
fn schemas_accept_new_skills() {
    for dialect in Dialect::ALL {
        let files = dialect.scaffold("demo", "Shows a schema. Use when learning.");
        let skill = files.iter().find(|file| file.path == "SKILL.md").unwrap();
        assert_eq!(fits(&skill.text, dialect), None, "{dialect}");
        // SKILL.md of Codex is the base format; its other file does not change the dialect.
        let expected = if dialect == Dialect::CODEX { Dialect::AGENTSKILLS } else { dialect };
        let detected = read(Source::new(skill.text.clone()), None).detection.dialect;
        assert_eq!(detected, expected);
    }
}

#[test]
fn typos_of_fields_are_reported_in_every_dialect() {
    let codes = |text: &str| -> Vec<_> {
        let found = read(Source::new(text.into()), None).diagnostics;
        found.into_iter().filter(|one| one.code == "unknown-field").collect()
    };
    for (field, near) in [
        ("user-invocable: true\nargumnt-hint: x", "argument-hint"),
        ("when-to-use: x\nallowed-tool: Read", "allowed-tools"),
        ("metadata: {openclaw: {}}\nhomepge: x", "homepage"),
        ("license: MIT\nuser_invocable: true", "user-invocable"),
    ] {
        let found = codes(&format!("---\nname: a\ndescription: d\n{field}\n---\nDo.\n"));
        let help = found.iter().any(|one| format!("{one:?}").contains(&format!("`{near}`")));
        assert!(help, "{field}: {found:?}");
    }
    let other =
        "---\nname: a\ndescription: d\nuser-invocable: true\nauthor: me\ntags: [x]\n---\nDo.\n";
    assert!(codes(other).is_empty());
}

#[test]
fn unknown_fields_of_inner_maps_are_reported() {
    let found = |text: &str| -> Vec<String> {
        let found = read(Source::new(text.into()), None).diagnostics.into_iter();
        let found = found.filter(|one| one.code == "unknown-field");
        found.map(|one| format!("{}: {}", one.message, one.help.unwrap_or_default())).collect()
    };
    let flat = |inner: &str| {
        format!("---\nname: a\nsecurity_tier: community\ntools: [{{name: x}}]\n{inner}\n---\nDo.\n")
    };
    let nested = |inner: &str| {
        format!("---\nname: a\ndescription: d\nmetadata: {{gaia: {{{inner}}}}}\n---\nDo.\n")
    };
    for (text, field, help) in [
        (flat("requirements: {pyton: '>=3.10'}"), "requirements.pyton", "did you mean `python`?"),
        (
            flat("requirements: {packages: [six==1.16.0]}"),
            "requirements.packages",
            "no reader uses it; `requirements` has `model`, `context`, `python`, `dependencies`",
        ),
        (
            nested("requirements: {env_var: [A]}"),
            "metadata.gaia.requirements.env_var",
            "`env_vars`",
        ),
        (nested("permission: []"), "metadata.gaia.permission", "`permissions`"),
        (
            "---\nname: a\ndescription: d\nmodel: {temprature: 0.5}\n---\nDo.\n".to_owned(),
            "model.temprature",
            "`temperature`",
        ),
        (
            "---\ninputs: [{name: a, type: text, requird: true}]\n---\n{{a}}\n".to_owned(),
            "inputs[0].requird",
            "`required`",
        ),
    ] {
        let found = found(&text);
        assert_eq!(found.len(), 1, "{text}: {found:?}");
        assert!(found[0].starts_with(&format!("unknown field `{field}`")), "{found:?}");
        assert!(found[0].contains(help), "{found:?}");
    }
    let own = flat("requirements: {python: '>=3.10', hardware: {any: thing}}");
    assert_eq!(found(&own), [""; 0]);
}

#[test]
fn schemas_treat_null_and_modes_as_the_reader_does() {
    let skillrt = |field: &str| {
        format!("---\nname: a\nversion: 1.0.0\ndescription: d\n{field}:\n---\nText.\n")
    };
    for field in ["inputs", "authors", "tags", "license", "runtime", "permissions", "outputs"] {
        assert_eq!(fits(&skillrt(field), Dialect::SKILLRT), None, "{field}");
    }
    let schema = Dialect::SKILLRT.schema();
    assert_eq!(schema["patternProperties"], json!({"^x-runtime-strict:": false}));
    assert!(fits("---\nname:\nversion: 1.0.0\ndescription: d\n---\n", Dialect::SKILLRT).is_some());
    let gibberish = |mode: &str| {
        format!("---\nname: a\nversion: 1.0.0\ndescription: d\nmodes: [{mode}]\n---\n")
    };
    assert_eq!(fits(&gibberish("Dev"), Dialect::GIBBERISH), None);
    assert!(fits(&gibberish("x"), Dialect::GIBBERISH).is_some());
}

#[test]
fn gaia_has_two_shapes() {
    let flat = "---\nname: a\nversion: 1.0.0\ndescription: d\nauthor: a\nlicense: MIT\npermissions: []\n\
                tools: []\nsecurity_tier: community\n---\n";
    let nested =
        "---\nname: a\ndescription: d\nmetadata: {gaia: {permissions: ['env:read']}}\n---\n";
    assert_eq!(fits(flat, Dialect::GAIA), None);
    assert_eq!(fits(nested, Dialect::GAIA), None);
    let neither = "---\nname: a\ndescription: d\n---\n";
    assert!(fits(neither, Dialect::GAIA).is_some());
    let number = nested.replace("'env:read'", "7");
    assert!(fits(&number, Dialect::GAIA).is_some());
}

#[test]
fn prose_has_no_fields() {
    let schema = Dialect::PROSE.schema();
    assert_eq!(problem(&schema, &json!({}), ""), None);
    assert!(problem(&schema, &json!({"name": "a"}), "").is_some());
    assert!(schema["description"].as_str().unwrap().ends_with("There is no frontmatter."));
}

fn found(head: &str, body: &str) -> (Dialect, Strength) {
    let text = format!("---\nname: a\ndescription: d\n{head}---\n{body}\n");
    let found = detect(&Document::parse(Source::new(text)), None).unwrap();
    (found.dialect, found.strength)
}

#[test]
fn common_fields_are_not_evidence() {
    let (weak, strong) =
        ((Dialect::AGENTSKILLS, Strength::Weak), (Dialect::AGENTSKILLS, Strength::Strong));
    assert_eq!(found("license: MIT\nmetadata: {version: 1.0.0, author: a}\n", ""), strong);
    for head in [
        "version: 1.0.0\n",
        "version: 1.0.0\nauthor: a\ntags: [a]\nlicense: MIT\n",
        "version: 1.0.0\nallowed-tools: Read\n",
        "outputs: {type: text}\n",
        "version: 1.0.0\noutputs: [report]\n",
        "version: 1.0.0\noutputs: {type: object, properties: {}}\n",
        "version: 1.0.0\noutputs: {type: text, format: markdown}\n",
        "version: 1.0.0\ndependencies: {skills: [maps]}\n",
        "version: 1.0.0\ndependencies: {skills: ['maps@^1'], python: [x]}\n",
        "runtime: {name: python}\n",
        "runtime: python\n",
        "dependencies: {python: [requests]}\n",
        "dependencies: [requests]\n",
        "permissions: {network: [], shell: []}\n",
        "permissions: {}\n",
        "permissions: {network: [example.com]}\n",
        "permissions: ['network:read']\n",
        "permissions: [read files]\n",
        "security_tier: community\n",
        "tools: [Read, Write]\n",
        "inputs: [{name: topic, type: string}]\nversion: 1.0.0\n",
        "inputs: [topic]\n",
    ] {
        assert_eq!(found(head, "Work on {topic}."), weak, "{head}");
    }
}

#[test]
fn each_system_has_distinct_evidence() {
    let strong = |dialect| (dialect, Strength::Strong);
    let inputs = "inputs: [{name: topic, type: file}]\n";
    assert_eq!(found(inputs, "Work on {{ topic }}."), strong(Dialect::SKILLRT));
    let untyped = "inputs: [{name: topic}]\n";
    assert_eq!(found(untyped, "Work on {{topic}}."), (Dialect::AGENT_FLOW, Strength::Weak));
    for (head, dialect) in [
        ("runtime: {type: markdown-skill}\n", Dialect::SKILLRT),
        ("permissions: {network: []}\nversion: 1.0.0\n", Dialect::SKILLRT),
        ("dependencies: {tools: [git]}\n", Dialect::SKILLRT),
        ("dependencies: {mcp-servers: [x]}\n", Dialect::SKILLRT),
        ("version: 1.0.0\ndependencies: {skills: ['maps@^1']}\n", Dialect::SKILLRT),
        ("version: 1.0.0\noutputs: {type: json, schema: {type: object}}\n", Dialect::SKILLRT),
        ("x-runtime-strict:memory: 1\n", Dialect::SKILLRT),
        ("permissions: ['network:read']\nversion: 1.0.0\n", Dialect::GAIA),
        ("metadata: {gaia: {}}\n", Dialect::GAIA),
        ("read_only: true\n", Dialect::GIBBERISH),
        ("user_id: u\n", Dialect::AGENT_FLOW),
        ("inputs: [{name: topic, type: textarea}]\n", Dialect::AGENT_FLOW),
        ("metadata: {openclaw: {}}\n", Dialect::OPENCLAW),
        ("when_to_use: often\n", Dialect::CLAUDE_CODE),
        ("context: fork\n", Dialect::CLAUDE_CODE),
        ("model: opus\nversion: 1.0.0\n", Dialect::CLAUDE_CODE),
    ] {
        assert_eq!(found(head, ""), strong(dialect), "{head}");
    }
    assert_eq!(found("allowed_tools: Read\n", ""), (Dialect::PERSONAL_AGENT, Strength::Weak));
}

#[test]
fn a_place_counts_more_than_weak_evidence_and_less_than_strong() {
    let hint = Hint { dialect: Dialect::CODEX, why: "it lies in `.codex/skills`".into() };
    let found = |head: &str| {
        let text = format!("---\nname: a\n{head}---\nWork on {{{{topic}}}}.\n");
        detect(&Document::parse(Source::new(text)), Some(&hint)).unwrap()
    };
    let by_place = found("version: 1.0.0\n");
    assert_eq!((by_place.dialect, by_place.strength), (Dialect::CODEX, Strength::Strong));
    assert_eq!(by_place.why, "it lies in `.codex/skills`");
    assert_eq!(found("inputs: [{name: topic}]\n").dialect, Dialect::CODEX);
    assert_eq!(found("inputs: [{name: topic}]\neffort: high\n").dialect, Dialect::CLAUDE_CODE);
    assert_eq!(found("permissions: {network: []}\nversion: 1.0.0\n").dialect, Dialect::SKILLRT);
    assert_eq!(found("").dialect, Dialect::AGENTSKILLS);
}
