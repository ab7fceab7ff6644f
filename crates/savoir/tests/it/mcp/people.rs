//! Tests skills that only users call, only models call, or both.

use serde_json::{Value, json};

use super::{Client, code, sandbox_with_examples};
use crate::support::Sandbox;

fn skill(sandbox: &Sandbox, name: &str, fields: &str, body: &str) {
    sandbox.write(
        &format!("skills/{name}/SKILL.md"),
        format!("---\nname: {name}\ndescription: Tries it. Use in tests.\n{fields}---\n{body}\n"),
    );
}

fn prompts(client: &mut Client) -> Vec<Value> {
    let listed = client.ask("prompts/list", json!({}));
    listed["result"]["prompts"].as_array().expect("prompts").clone()
}

fn names(prompts: &[Value]) -> Vec<&str> {
    prompts.iter().map(|prompt| prompt["name"].as_str().expect("a name")).collect()
}

fn get(client: &mut Client, name: &str, arguments: &Value) -> Value {
    client.ask("prompts/get", json!({"name": name, "arguments": arguments}))
}

#[test]
fn user_only_skills_are_prompts_but_not_tools() {
    let sandbox = sandbox_with_examples(&[]);
    skill(&sandbox, "deploy", "disable-model-invocation: true\n", "Deploy it.");
    skill(&sandbox, "knows", "user-invocable: false\n", "Know $ARGUMENTS.");
    skill(&sandbox, "neither", "disable-model-invocation: true\nuser-invocable: false\n", "No.");
    let mut client = Client::new(&sandbox);
    let listed = prompts(&mut client);
    assert_eq!(names(&listed), ["deploy"], "{listed:?}");
    assert_eq!(listed[0].get("arguments").unwrap_or(&json!([])), &json!([]), "{listed:?}");
    let made = get(&mut client, "deploy", &json!({}));
    assert_eq!(made["result"]["messages"][0]["content"]["text"], "Deploy it.\n", "{made}");
    for name in ["knows", "neither"] {
        let refused = get(&mut client, name, &json!({}));
        assert_eq!(refused["error"]["code"], -32602, "{name}: {refused}");
    }

    let found = client.call("search_skills", &json!({"query": "tries it"}));
    assert_eq!(found["structuredContent"]["of"], 1, "{found}");
    assert_eq!(found["structuredContent"]["skills"][0]["name"], "knows", "{found}");
    for name in ["deploy", "neither"] {
        assert_eq!(code(&client.call("use_skill", &json!({"name": name}))), "not-callable");
        let uri = format!("skill://{name}/SKILL.md");
        let read = client.ask("resources/read", json!({"uri": uri}));
        assert_eq!(read["error"]["code"], -32002, "{read}");
    }
    assert_eq!(client.call("use_skill", &json!({"name": "knows"}))["isError"], false);
}

#[test]
fn placeholders_are_always_prompt_arguments() {
    let sandbox = sandbox_with_examples(&[]);
    skill(&sandbox, "all", "", "Mend $ARGUMENTS now.");
    skill(&sandbox, "first", "", "Move $0 to $1.");
    skill(&sandbox, "plain", "", "It costs \\$5 or a\\$ARGUMENTS.");
    let mut client = Client::new(&sandbox);
    let listed = prompts(&mut client);
    assert_eq!(names(&listed), ["all", "first"], "{listed:?}");
    for prompt in &listed {
        assert_eq!(prompt["arguments"], json!([{"name": "ARGUMENTS", "required": false}]));
    }
    let text = |made: Value| {
        let text = made["result"]["messages"][0]["content"]["text"].as_str();
        text.unwrap_or_else(|| panic!("{made}")).to_owned()
    };
    let made = get(&mut client, "all", &json!({"ARGUMENTS": "issue 7"}));
    assert_eq!(text(made), "Mend issue 7 now.\n");
    let made = get(&mut client, "first", &json!({"ARGUMENTS": "here 'over there'"}));
    assert_eq!(text(made), "Move here to over there.\n");
    // Missing arguments are replaced by nothing.
    let made = get(&mut client, "first", &json!({"ARGUMENTS": "here"}));
    assert_eq!(text(made), "Move here to .\n");
    for nothing in [json!({}), json!({"ARGUMENTS": null}), json!(null)] {
        assert_eq!(text(get(&mut client, "first", &nothing)), "Move  to .\n", "{nothing}");
        assert_eq!(text(get(&mut client, "all", &nothing)), "Mend  now.\n", "{nothing}");
    }
    for wrong in [json!(5), json!(true), json!(["x"]), json!({"x": 1})] {
        let refused = get(&mut client, "all", &json!({"ARGUMENTS": wrong}));
        assert_eq!(refused["error"]["code"], -32602, "{wrong}: {refused}");
        let message = refused["error"]["message"].as_str().unwrap();
        assert!(message.contains("`ARGUMENTS`"), "{message}");
    }
    assert_eq!(get(&mut client, "plain", &json!({}))["error"]["code"], -32602);
}
