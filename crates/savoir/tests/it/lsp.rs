//! Tests `savoir lsp` with the messages of the protocol, and with Neovim.

mod client;
mod neovim;

use serde_json::{Value, json};

use self::client::{Client, pulling, with_all_edits};
use crate::support::Sandbox;

const SKILL: &str = "---\nname: demo\ndescription: Use for: demos\neffort: hihg\nx-own: 1\n---\n\n# Demo 😀\n\nSee [the guide](references/guide.md).\n";

fn codes(found: &Value) -> Vec<&str> {
    let found = found.as_array().expect("diagnostics").iter();
    found.filter_map(|one| one["code"].as_str()).collect()
}

#[test]
fn findings_are_those_of_check() {
    let sandbox = Sandbox::with_examples();
    // The texts are damaged on purpose, so that there are findings to compare.
    for (number, example) in skills(&sandbox).into_iter().enumerate() {
        let text = sandbox.read(&example);
        let broken = match number % 3 {
            0 => text.replacen("description: ", "description: Use: é😀: ", 1),
            1 => text.replacen("name: ", "name: Not Valid ", 1),
            _ => text.replace('\n', "\r\n") + "\n[x](missing.md)\n",
        };
        sandbox.write(&format!("broken/{number}/SKILL.md"), broken);
    }
    let mut client = Client::start(&sandbox, &pulling());
    let mut count = 0;
    for file in skills(&sandbox) {
        let checked = sandbox.run(&["check", &file, "--json"]).json();
        let expected: Vec<Value> = checked["files"][0]["diagnostics"]
            .as_array()
            .map(|found| found.iter().map(expected).collect())
            .unwrap_or_default();
        let found: Vec<Value> = client
            .diagnostics(&file)
            .into_iter()
            .filter(|found| found["severity"] != json!(4))
            .map(|found| seen(&found))
            .collect();
        assert_eq!(found, expected, "{file}");
        count += found.len();
    }
    assert!(count > 20, "{count} findings are too few to compare");
    client.end();
}

/// The paths of all SKILL.md files of a sandbox.
fn skills(sandbox: &Sandbox) -> Vec<String> {
    let mut found = Vec::new();
    for parent in ["examples", "broken"] {
        let Ok(folders) = std::fs::read_dir(sandbox.path(parent)) else { continue };
        for folder in folders.flatten() {
            let path = format!("{parent}/{}/SKILL.md", folder.file_name().to_string_lossy());
            if sandbox.path(&path).is_file() {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// A finding of `savoir check --json`, without columns, because they count characters.
fn expected(found: &Value) -> Value {
    let message = match found["help"].as_str() {
        Some(help) => format!("{}\nhint: {help}", found["message"].as_str().unwrap_or_default()),
        None => found["message"].as_str().unwrap_or_default().to_owned(),
    };
    let severity = if found["severity"] == "error" { 1 } else { 2 };
    json!([found["code"], severity, message, found["start"]["line"]])
}

fn seen(found: &Value) -> Value {
    let line = found["range"]["start"]["line"].as_u64().unwrap_or_default() + 1;
    json!([found["code"], found["severity"], found["message"], line])
}

#[test]
fn diagnostics_are_pushed_with_utf16_positions() {
    let sandbox = Sandbox::new();
    sandbox.write("demo/SKILL.md", SKILL);
    let mut client = Client::start(&sandbox, &json!({}));
    assert_eq!(client.initialized["capabilities"]["positionEncoding"], "utf-16");
    assert_eq!(client.initialized["capabilities"]["diagnosticProvider"], Value::Null);
    client.open("demo/SKILL.md");
    let found = client.wait_for("textDocument/publishDiagnostics")["diagnostics"].clone();
    assert!(codes(&found).contains(&"unquoted-colon"), "{found}");
    let one = &found.as_array().expect("found")[0];
    let page = one["codeDescription"]["href"].as_str().expect("a page");
    assert!(page.ends_with(&format!("/rules/{}.md", one["code"].as_str().expect("a code"))));
    let hint = found.as_array().expect("found").iter().find(|one| one["severity"] == json!(4));
    assert_eq!(hint.expect("a hint")["code"], "foreign-field");
    client.change("demo/SKILL.md", 2, [[2, 13], [2, 27]], "Shows it. Use when learning.");
    let found = client.wait_for("textDocument/publishDiagnostics");
    assert_eq!(found["version"], json!(2));
    assert!(!codes(&found["diagnostics"]).contains(&"unquoted-colon"), "{found}");
    client.notify(
        "textDocument/didClose",
        &json!({"textDocument": {"uri": client.uri("demo/SKILL.md")}}),
    );
    let found = client.wait_for("textDocument/publishDiagnostics");
    assert_eq!(found["diagnostics"], json!([]));
    client.end();
}

#[test]
fn positions_count_bytes_if_the_client_offers_it() {
    let sandbox = Sandbox::new();
    sandbox.write("demo/SKILL.md", "---\nname: demo\ndescription: é😀 Use for: x\n---\nText.\n");
    let at = |encodings: Value| {
        let mut capabilities = pulling();
        capabilities["general"] = json!({"positionEncodings": encodings});
        let mut client = Client::start(&sandbox, &capabilities);
        let found = client.diagnostics("demo/SKILL.md");
        let found = found.iter().find(|one| one["code"] == "unquoted-colon").expect("a finding");
        let column = found["range"]["start"]["character"].as_u64().expect("a column");
        client.end();
        column
    };
    let (utf16, utf8) = (at(json!(["utf-16"])), at(json!(["utf-16", "utf-8"])));
    assert_eq!(utf8 - utf16, 3, "é has one byte more than units, 😀 two");
}

#[test]
fn other_markdown_files_get_nothing() {
    let sandbox = Sandbox::new();
    sandbox.write("README.md", SKILL);
    let mut client = Client::start(&sandbox, &pulling());
    assert!(client.diagnostics("README.md").is_empty());
    let actions = client.request(
        "textDocument/codeAction",
        &json!({
            "textDocument": {"uri": client.uri("README.md")}, "range": range([[0, 0], [3, 0]]),
            "context": {"diagnostics": []},
        }),
    );
    assert_eq!(actions, json!([]));
    client.end();
}

#[test]
fn files_around_skills_are_checked() {
    let sandbox = Sandbox::new();
    sandbox.write("AGENT.yaml", "name: a\nskills:\n  - web-search\nskils: 1\n");
    sandbox.write("savoir.toml", "[check]\nselect = [\"no-such-rule\"]\n");
    sandbox.write(
        "workflows/w.json",
        "{\"nodes\": [{\"id\": \"a\", \"type\": \"x\"}], \"edges\": []}",
    );
    sandbox.write("workflows/other.json", "{\"on\": \"push\"}");
    let mut client = Client::start(&sandbox, &pulling());
    let mut first = |path: &str| {
        let found = client.diagnostics(path);
        found.first().map(|one| one["message"].as_str().unwrap_or_default().to_owned())
    };
    assert!(first("AGENT.yaml").expect("a finding").contains("skils"));
    assert!(first("savoir.toml").expect("a finding").contains("no-such-rule"));
    assert!(first("workflows/w.json").expect("a finding").contains("Unknown node type"));
    assert_eq!(first("workflows/other.json"), None);
    client.end();
}

/// The findings of `check --json`, or of the editor: message, line and column.
fn places(found: &[Value], line: &str, column: &str, from: u64) -> Vec<(String, u64, u64)> {
    let place = |one: &Value| {
        let message = one["message"].as_str().unwrap_or_default();
        let message = message.split("\nhint: ").next().unwrap_or_default().to_owned();
        let number = |at: &str| one.pointer(at).and_then(Value::as_u64).unwrap_or(99) - from;
        (message, number(line), number(column))
    };
    found.iter().map(place).collect()
}

#[test]
fn evaluations_have_the_findings_of_check() {
    let sandbox = Sandbox::new();
    sandbox.write("demo/SKILL.md", "---\nname: demo\ndescription: Shows it.\n---\n# Demo\n");
    let wrong = "{\"skill_name\": \"other\", \"evals\": [\n  {\"id\": 1},\n  {\"prompt\": \"é\", \
                 \"files\": [\"none.txt\"], \"assertions\": [3]}\n]}\n";
    let fine = "{\"evals\": [{\"prompt\": \"x\"}]}";
    for (text, has_mistakes) in [(wrong, true), ("{\"evals\": [", true), (fine, false)] {
        sandbox.write("demo/evals/evals.json", text);
        let checked = sandbox.run(&["check", "demo", "--json"]).json();
        let files = checked["files"].as_array().expect("files").iter();
        let evals = files.filter(|file| file["path"] == "demo/evals/evals.json");
        let expected: Vec<Value> = evals
            .flat_map(|file| file["diagnostics"].as_array().expect("a list").clone())
            .collect();
        let mut client = Client::start(&sandbox, &pulling());
        // The text on disk does not matter while the file is open.
        client.open("demo/evals/evals.json");
        sandbox.write("demo/evals/evals.json", "{\"evals\": [{}, {}]}");
        let found = client.pull("demo/evals/evals.json");
        assert_eq!(
            places(&found, "/range/start/line", "/range/start/character", 0),
            places(&expected, "/start/line", "/start/column", 1),
            "{text}"
        );
        assert_eq!(!found.is_empty(), has_mistakes, "{text}");
        client.end();
    }
    // Other programs also use files with this name.
    sandbox.write("tests/evals.json", "{\"evals\": [{}]}");
    let mut client = Client::start(&sandbox, &pulling());
    assert_eq!(client.diagnostics("tests/evals.json"), Vec::<Value>::new());
    client.end();
}

#[test]
fn settings_of_the_project_apply_and_are_read_again() {
    let sandbox = Sandbox::new();
    sandbox.write("demo/SKILL.md", SKILL);
    sandbox.write("savoir.toml", "[check]\nignore = [\"unquoted-colon\"]\n");
    let mut client = Client::start(&sandbox, &pulling());
    assert!(!codes(&json!(client.diagnostics("demo/SKILL.md"))).contains(&"unquoted-colon"));
    sandbox.write("savoir.toml", "");
    let uri = client.uri("savoir.toml");
    client
        .notify("workspace/didChangeWatchedFiles", &json!({"changes": [{"uri": uri, "type": 2}]}));
    assert!(codes(&json!(client.pull("demo/SKILL.md"))).contains(&"unquoted-colon"));
    client.end();
}

#[test]
fn bad_messages_do_not_end_the_server() {
    let sandbox = Sandbox::new();
    sandbox.write("demo/SKILL.md", SKILL);
    let mut client = Client::start(&sandbox, &pulling());
    for bytes in [
        b"noise\n\n".to_vec(),
        b"Content-Length: 3\r\n\r\n{{{".to_vec(),
        b"Content-Length: 2\r\n\r\n\xff\xfe".to_vec(),
        b"Content-Length: 4\r\n\r\nnull".to_vec(),
        b"Content-Length: x\r\nContent-Length: 2\r\n\r\n[]".to_vec(),
    ] {
        client.send_bytes(&bytes);
    }
    client.notify("textDocument/didChange", &json!({"textDocument": 3}));
    client.notify("textDocument/didOpen", &json!(null));
    client.notify("no/suchNotification", &json!({}));
    let uri = client.uri("demo/SKILL.md");
    let error = client.request_error("textDocument/hover", &json!({"textDocument": {"uri": uri}}));
    assert_eq!(error["code"], json!(-32602));
    let error = client.request_error("no/such", &json!({}));
    assert_eq!(error["code"], json!(-32601));
    client
        .send_bytes(b"Content-Length: 42\r\n\r\n{\"id\": 9000000000, \"method\": \"shutdown\"}  ");
    assert_eq!(client.answer(9_000_000_000)["error"]["code"], json!(-32600));
    assert!(!client.diagnostics("demo/SKILL.md").is_empty());
    client.end();
}

#[test]
fn waiting_requests_can_be_cancelled() {
    let sandbox = Sandbox::new();
    sandbox.write("demo/SKILL.md", SKILL);
    let mut client = Client::start(&sandbox, &pulling());
    client.open("demo/SKILL.md");
    let params = json!({"textDocument": {"uri": client.uri("demo/SKILL.md")}});
    // Many requests, so that the last one is still waiting when its cancellation arrives.
    let ids: Vec<i64> =
        (0..300).map(|_| client.send_request("textDocument/documentSymbol", &params)).collect();
    let last = *ids.last().expect("a request");
    client.notify("$/cancelRequest", &json!({"id": last}));
    let answer = client.answer(last);
    // The request may be answered before the cancellation is read; there must be a response in both
    // cases.
    let cancelled = answer["error"]["code"] == json!(-32800);
    assert!(cancelled || answer.get("result").is_some(), "{answer}");
    client.end();
}

#[test]
fn requests_before_initialize_are_refused_and_exit_without_shutdown_fails() {
    let sandbox = Sandbox::new();
    let mut client = Client::spawn(&sandbox);
    let error = client.request_error("textDocument/hover", &json!({}));
    assert_eq!(error["code"], json!(-32002));
    client.notify("exit", &Value::Null);
    assert_eq!(client.wait(), 1);
}

fn range(range: [[u32; 2]; 2]) -> Value {
    let position = |[line, character]: [u32; 2]| json!({"line": line, "character": character});
    json!({"start": position(range[0]), "end": position(range[1])})
}

#[test]
fn fixes_are_code_actions() {
    let sandbox = Sandbox::new();
    sandbox.write("demo/SKILL.md", SKILL);
    let mut client = Client::start(&sandbox, &with_all_edits());
    client.open("demo/SKILL.md");
    let actions = |client: &mut Client, only: Value| {
        let uri = client.uri("demo/SKILL.md");
        client.request(
            "textDocument/codeAction",
            &json!({
                "textDocument": {"uri": uri}, "range": range([[2, 0], [2, 30]]),
                "context": {"diagnostics": [], "only": only},
            }),
        )
    };
    let quick = actions(&mut client, json!(["quickfix"]));
    assert!(
        quick[0]["title"].as_str().expect("a title").starts_with("Fix unquoted-colon"),
        "{quick}"
    );
    assert_eq!(quick[0]["isPreferred"], json!(true));
    let all = actions(&mut client, json!(["source.fixAll"]));
    let edits = &all[0]["edit"]["documentChanges"][0]["edits"];
    let fixed = client::apply(SKILL, edits);
    sandbox.run(&["check", "demo", "--fix"]);
    assert_eq!(fixed, sandbox.read("demo/SKILL.md"));
    let uri = client.uri("demo/SKILL.md");
    let formatted = client.request(
        "textDocument/formatting",
        &json!({
            "textDocument": {"uri": uri}, "options": {"tabSize": 2, "insertSpaces": true},
        }),
    );
    assert_eq!(client::apply(SKILL, &formatted), fixed);
    client.end();
}

#[test]
fn a_skill_is_converted_by_a_code_action() {
    let sandbox = Sandbox::new();
    let text = "---\nname: demo\ndescription: Shows it. Use when learning.\n---\n# Demo\n";
    sandbox.write("demo/SKILL.md", text);
    let mut client = Client::start(&sandbox, &with_all_edits());
    client.open("demo/SKILL.md");
    let uri = client.uri("demo/SKILL.md");
    let actions = client.request(
        "textDocument/codeAction",
        &json!({
            "textDocument": {"uri": uri}, "range": range([[1, 0], [1, 0]]),
            "context": {"diagnostics": [], "only": ["refactor"]},
        }),
    );
    let title = "Convert to Agent Flow Lite";
    let list = actions.as_array().expect("actions");
    let action = list.iter().find(|action| action["title"] == title);
    let action = action.unwrap_or_else(|| panic!("{actions}")).clone();
    let resolved = client.request("codeAction/resolve", &action);
    let converted = client::apply(text, &resolved["edit"]["documentChanges"][0]["edits"]);
    let printed = sandbox.run(&["convert", "demo", "--to", "agent-flow", "--report", "none"]);
    assert_eq!(converted, printed.stdout, "{printed}");
    client.end();
}

#[test]
fn fields_values_and_placeholders_are_completed() {
    let sandbox = Sandbox::new();
    let text = "---\nname: demo\ndescription: Shows it.\neffort: \narguments: [who]\nallowed-tools: Re\n\n---\nHi $\nSee [x](\n";
    sandbox.write("demo/SKILL.md", text);
    sandbox.write("demo/references/guide.md", "# Guide\n");
    let mut client = Client::start(&sandbox, &json!({}));
    client.open("demo/SKILL.md");
    let mut labels = |line: u32, character: u32| {
        let found = client.at("textDocument/completion", "demo/SKILL.md", [line, character]);
        let items = found.as_array().expect("items").iter();
        items.map(|item| item["label"].as_str().unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(labels(3, 8), ["low", "medium", "high", "xhigh", "max"]);
    assert!(labels(5, 17).contains(&"Read".to_owned()));
    let keys = labels(6, 0);
    assert!(keys.contains(&"license".to_owned()) && !keys.contains(&"name".to_owned()), "{keys:?}");
    assert!(labels(8, 4).contains(&"who".to_owned()));
    assert!(labels(9, 8).contains(&"references/guide.md".to_owned()));
    client.end();
}

/// The labels of the completion at the mark `¦` in a frontmatter.
fn completed(frontmatter: &str) -> Vec<String> {
    let sandbox = Sandbox::new();
    let line = frontmatter[..frontmatter.find('¦').expect("a mark")].matches('\n').count();
    let before = frontmatter.split('\n').nth(line).and_then(|line| line.split('¦').next());
    let character = before.map_or(0, |before| before.encode_utf16().count());
    sandbox.write("demo/SKILL.md", format!("---\n{}\n---\n# Demo\n", frontmatter.replace('¦', "")));
    let mut client = Client::start(&sandbox, &json!({}));
    client.open("demo/SKILL.md");
    let at = [line as u32 + 1, character as u32];
    let found = client.at("textDocument/completion", "demo/SKILL.md", at);
    client.end();
    let items = found.as_array().expect("items").iter();
    items.map(|item| item["label"].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn completion_follows_the_dialect_of_the_file() {
    // The start of a file in each dialect, some of its fields, and a field of another dialect.
    let cases = [
        ("name: demo\neffort: low", &["when_to_use", "context", "hooks"][..], "knowledge_base"),
        ("name: demo\nclaw_version: '1'", &["command-dispatch", "homepage"], "effort"),
        (
            "name: demo\nversion: 1.0.0\nsecurity_tier: experimental\npermissions: [network:read]",
            &["tools", "requirements"],
            "effort",
        ),
        (
            "name: demo\nversion: 1.0.0\ninputs: []\ndependencies:\n  mcp-servers: []",
            &["outputs", "runtime"],
            "effort",
        ),
        ("name: demo\nwhen-to-use: now", &["allowed_tools", "context_fork"], "effort"),
    ];
    for (start, own, other) in cases {
        let labels = completed(&format!("{start}\n¦"));
        for field in own {
            assert!(labels.iter().any(|label| label == field), "{start}: {field} in {labels:?}");
        }
        assert!(!labels.iter().any(|label| label == other), "{start}: {labels:?}");
        assert!(!labels.iter().any(|label| label == "name"), "{start}: {labels:?}");
    }
    // A file in the base format may become a file of any dialect.
    let base = completed("name: demo\ndescription: Shows it.\n¦");
    for field in ["license", "effort", "knowledge_base", "security_tier"] {
        assert!(base.iter().any(|label| label == field), "{field} in {base:?}");
    }

    let values = [
        ("when-to-use: now\nallowed-tools: ¦", "read_file", "Read"),
        ("effort: low\nallowed-tools: ¦", "Read", "read_file"),
        ("effort: low\nagent: ¦", "Explore", "low"),
        ("security_tier: experimental\npermissions:\n  - ¦", "network:read", "Read"),
        (
            "version: 1.0.0\ninputs:\n  - name: a\n    type: ¦\ndependencies:\n  mcp-servers: []",
            "number",
            "demo",
        ),
        ("version: 1.0.0\ndependencies:\n  mcp-servers: []\n  skills: [¦", "demo", "number"),
    ];
    for (text, expected, other) in values {
        let labels = completed(&format!("name: demo\n{text}"));
        assert!(labels.iter().any(|label| label == expected), "{text}: {labels:?}");
        assert!(!labels.iter().any(|label| label == other), "{text}: {labels:?}");
    }
    assert_eq!(completed("name: demo\nversion: 1.0.0\ndependencies:\n  mcp-servers: [¦"), [""; 0]);
}

#[test]
fn hover_names_the_agents_that_read_a_field() {
    let sandbox = Sandbox::new();
    sandbox.write("demo/SKILL.md", SKILL);
    let mut client = Client::start(&sandbox, &json!({}));
    client.open("demo/SKILL.md");
    let mut hover = |line: u32, character: u32| {
        let found = client.at("textDocument/hover", "demo/SKILL.md", [line, character]);
        found["contents"]["value"].as_str().unwrap_or_default().to_owned()
    };
    let effort = hover(3, 2);
    assert!(
        effort.contains("How hard the model thinks") && effort.contains("Claude Code"),
        "{effort}"
    );
    assert!(hover(4, 1).contains("No system"));
    assert!(hover(9, 20).contains("does not exist"));
    client.end();
}

#[test]
fn outline_links_hints_and_lenses() {
    let sandbox = Sandbox::new();
    let long = "word ".repeat(400);
    let text = format!(
        "---\nname: demo\ndescription: {long}\n---\n# One\n## Two\nSee [g](g.md).\n# Three\n"
    );
    sandbox.write("demo/SKILL.md", text);
    sandbox.write("demo/g.md", "# G\n");
    sandbox.write("demo/evals/evals.json", "{\"evals\": []}");
    let mut client = Client::start(&sandbox, &json!({}));
    client.open("demo/SKILL.md");
    let document = json!({"textDocument": {"uri": client.uri("demo/SKILL.md")}});
    let symbols = client.request("textDocument/documentSymbol", &document);
    let names: Vec<_> =
        symbols.as_array().expect("symbols").iter().map(|one| one["name"].clone()).collect();
    assert_eq!(json!(names), json!(["name", "description", "One", "Three"]));
    assert_eq!(symbols[2]["children"][0]["name"], "Two");
    let links = client.request("textDocument/documentLink", &document);
    assert!(links[0]["target"].as_str().expect("a target").ends_with("demo/g.md"), "{links}");
    let place = client.at("textDocument/definition", "demo/SKILL.md", [6, 9]);
    assert!(place[0]["uri"].as_str().expect("a place").ends_with("demo/g.md"), "{place}");
    let mut shown = document.clone();
    shown["range"] = range([[0, 0], [99, 0]]);
    let hints = client.request("textDocument/inlayHint", &shown).to_string();
    assert!(
        hints.contains("tokens in every session") && hints.contains("tokens when used"),
        "{hints}"
    );
    if cfg!(feature = "server") {
        assert!(hints.contains("Claude Code cuts here"), "{hints}");
    }
    let lenses = client.request("textDocument/codeLens", &document);
    let commands: Vec<_> = lenses
        .as_array()
        .expect("lenses")
        .iter()
        .map(|lens| lens["command"]["command"].clone())
        .collect();
    assert_eq!(json!(commands), json!(["savoir.run", "savoir.render", "savoir.evaluate"]));
    client.end();
}

#[test]
fn renaming_a_skill_changes_its_name_folder_and_mentions() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "web-search/SKILL.md",
        "---\nname: web-search\ndescription: Searches.\n---\n# Search\n",
    );
    sandbox.write("other/SKILL.md", "---\nname: other\ndescription: d\n---\nSee [s](../web-search/SKILL.md) or `web-search`, a web-search.\n");
    sandbox.write("savoir.toml", "[skills]\nweb-search = {path = \"web-search\"}\n");
    sandbox.write(
        "savoir.lock",
        "version = 1\norder = [\"web-search\"]\n\n[[skill]]\nname = \"web-search\"\n",
    );
    let mut client = Client::start(&sandbox, &with_all_edits());
    client.open("web-search/SKILL.md");
    let found = client.references("web-search/SKILL.md", [1, 8]);
    assert_eq!(found.as_array().expect("places").len(), 7, "{found}");
    let ready = client.at("textDocument/prepareRename", "web-search/SKILL.md", [1, 8]);
    assert_eq!(ready["placeholder"], "web-search");
    let mut params = client.place("web-search/SKILL.md", [1, 8]);
    params["newName"] = json!("find-pages");
    let edit = client.request("textDocument/rename", &params);
    let changes = edit["documentChanges"].as_array().expect("changes");
    let changed = |name: &str| {
        let is_it = |change: &&Value| {
            change["textDocument"]["uri"].as_str().is_some_and(|uri| uri.ends_with(name))
        };
        let edits = changes.iter().find(is_it).unwrap_or_else(|| panic!("{name}: {edit}"));
        client::apply(&sandbox.read(name), &edits["edits"])
    };
    assert!(changed("web-search/SKILL.md").starts_with("---\nname: find-pages\n"));
    let other = changed("other/SKILL.md");
    assert!(other.contains("(../find-pages/SKILL.md) or `find-pages`, a web-search"), "{other}");
    assert_eq!(changed("savoir.toml"), "[skills]\nfind-pages = {path = \"find-pages\"}\n");
    assert!(!changed("savoir.lock").contains("web-search"));
    let moved = changes.last().expect("a change");
    assert_eq!(moved["kind"], "rename");
    assert!(moved["newUri"].as_str().expect("an address").ends_with("/find-pages"));
    assert_eq!(edit["changeAnnotations"]["mention"]["needsConfirmation"], json!(true));
    for bad in ["Not Valid", "other", ""] {
        params["newName"] = json!(bad);
        client.request_error("textDocument/rename", &params);
    }
    client.end();
}

#[test]
fn renaming_an_input_changes_its_placeholders() {
    let sandbox = Sandbox::new();
    let text = "---\nname: greet\ninputs:\n  - {name: who, type: text, required: true}\n---\nHello {{who}} and {{who}}!\n";
    sandbox.write("greet/SKILL.md", text);
    let mut client = Client::start(&sandbox, &with_all_edits());
    client.open("greet/SKILL.md");
    let mut params = client.place("greet/SKILL.md", [5, 9]);
    params["newName"] = json!("person");
    let edit = client.request("textDocument/rename", &params);
    let renamed = client::apply(text, &edit["documentChanges"][0]["edits"]);
    assert_eq!(renamed, text.replace("who", "person"));
    client.end();
}

#[test]
fn workspace_folders_can_change() {
    let sandbox = Sandbox::new();
    sandbox.write("a/one/SKILL.md", "---\nname: one\ndescription: d\n---\n");
    sandbox.write("b/two/SKILL.md", "---\nname: two\ndescription: d\n---\n");
    sandbox.write("AGENT.yaml", "name: x\nskills:\n  - \n");
    let mut client = Client::spawn(&sandbox);
    client.initialize(&json!({}), &["a"]);
    client.open("AGENT.yaml");
    let names = |client: &mut Client| {
        let found = client.at("textDocument/completion", "AGENT.yaml", [2, 4]);
        let items = found.as_array().expect("items").iter();
        items.map(|item| item["label"].as_str().unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(&mut client), ["one"]);
    let folder = |name: &str| json!({"uri": client.uri(name), "name": name});
    let event = json!({"added": [folder("b")], "removed": [folder("a")]});
    client.notify("workspace/didChangeWorkspaceFolders", &json!({"event": event}));
    let mut found = names(&mut client);
    // The old index is used until the new one is complete.
    for _ in 0..200 {
        if found == ["two"] {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
        found = names(&mut client);
    }
    assert_eq!(found, ["two"]);
    client.end();
}
