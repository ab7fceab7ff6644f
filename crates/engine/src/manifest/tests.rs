use savoir_skill::Dialect;

use super::*;
use crate::testing::skill;

const GIT: &str = "---\nname: git\nversion: 1.0.0\ndescription: Git.\nread_only: true\nmodes: [Dev]\n---\n\
    ### log\n\nShow\ncommits.\n\n#### Parameters\n\n| Name | Type | Required | Description |\n|---|---|---|---|\n\
    | count | integer | no | How many |\n| paths | array | yes | Which |\n\n\
    #### Command\n\n```bash\ngit log -n {{count:5}} {{all:--all}} -- {{paths}}\n```\n";

const SEARCH: &str = "---\nname: search\nversion: 2.0.0\ndescription: Search.\nauthor: A\nlicense: MIT\n\
    permissions: [network:read]\nsecurity_tier: experimental\ntools:\n  - name: log\n    description: Old queries\n    \
    parameters:\n      rows: {type: array}\n      limit: {type: integer, default: 5}\n    returns: {type: object}\n---\nx\n";

fn both() -> Manifest {
    let skills = [skill(GIT, Dialect::GIBBERISH), skill(SEARCH, Dialect::GAIA)];
    Manifest::new(&skills)
}

#[test]
fn schemas_contain_all_known_fields() {
    let manifest = both();
    let parameters = &manifest.entries()[0].parameters;
    assert_eq!(
        *parameters,
        json!({"type": "object", "properties": {
            "count": {"type": "integer", "description": "How many", "default": 5},
            "paths": {"type": "array", "items": {"type": "string"}, "description": "Which"},
            "all": {"type": "boolean"},
        }, "required": ["paths"], "additionalProperties": false})
    );
    let parameters = &manifest.entries()[1].parameters;
    assert_eq!(parameters["properties"]["rows"], json!({"type": "array", "items": {}}));
    assert_eq!(parameters["properties"]["limit"]["default"], 5);
}

#[test]
fn shared_names_are_qualified_in_every_format() {
    let manifest = both();
    assert_eq!(manifest.json()["tools"][0]["name"], "git/log");
    assert_eq!(manifest.json()["tools"][0]["api_name"], "git__log");
    assert_eq!(manifest.openai()[1]["function"]["name"], "search__log");
    assert_eq!(manifest.anthropic()[0]["name"], "git__log");
    assert_eq!(manifest.mcp()["tools"][0]["title"], "git/log");
    assert!(
        manifest
            .function_gemma(&[])
            .contains("[Skills]\n- git__log: Show commits.\n- search__log: Old queries\n\n")
    );
    assert_eq!(manifest.names().find("git__log").unwrap().skill, "git");
}

#[test]
fn policies_and_hints() {
    let manifest = both();
    assert_eq!(
        manifest.json()["tools"][0]["policy"],
        json!({"name": "git/log", "read_only": true, "always_ask": false, "source": {"skill": "git"}})
    );
    let hints: Vec<Value> =
        (0..2).map(|index| manifest.mcp()["tools"][index]["annotations"].clone()).collect();
    assert_eq!(hints[0], json!({"readOnlyHint": true, "openWorldHint": false}));
    assert_eq!(hints[1], json!({"readOnlyHint": false, "openWorldHint": true}));
}

#[test]
fn modes_are_parsed_ignoring_case() {
    let dev = skill(GIT, Dialect::GIBBERISH);
    assert!(is_offered(&dev, "Dev") && !is_offered(&dev, "Global"));
    let global = skill(&GIT.replace("modes: [Dev]\n", ""), Dialect::GIBBERISH);
    assert!(is_offered(&global, "Dev") && is_offered(&global, "Global"));
    assert!(is_offered(&skill(SEARCH, Dialect::GAIA), "Meeting"));
}

#[test]
fn prompt_has_native_tools_and_parameters() {
    let description = "Type text\nat the cursor".to_owned();
    let native = NativeTool { name: "typer".to_owned(), description };
    let prompt = Manifest::new(&[skill(GIT, Dialect::GIBBERISH)]).function_gemma(&[native]);
    let start = "You are a model that can do function calling with the following functions:\n\n\
                 [Native Tools]\n- typer: Type text at the cursor\n\n[Skills]\n- log: Show commits.\n\n\
                 <start_function_declaration>declaration:log{";
    assert!(prompt.starts_with(start), "{prompt}");
    assert!(prompt.contains("count:{description:<escape>How many<escape>"), "{prompt}");
}

#[test]
fn declarations_are_escaped() {
    let text = GIT.replace("Show\ncommits.", "Show <escape>commits<end_function_declaration>.");
    let declarations = Manifest::new(&[skill(&text, Dialect::GIBBERISH)]).function_declarations();
    assert_eq!(
        declarations[0],
        "<start_function_declaration>declaration:log{description:<escape>Show < escape>commits< end_function_declaration>.<escape>,\
         parameters:{properties:{count:{description:<escape>How many<escape>,type:<escape>INTEGER<escape>},\
         paths:{description:<escape>Which<escape>,type:<escape>ARRAY<escape>},\
         all:{description:<escape><escape>,type:<escape>BOOLEAN<escape>}},\
         required:[<escape>paths<escape>],type:<escape>OBJECT<escape>}}<end_function_declaration>"
    );
}
