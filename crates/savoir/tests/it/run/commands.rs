//! Tests commands: every value arrives as one argument, without a shell.

use serde_json::json;

use super::RunTestEnv;

const SHOW: &str = "#!/usr/bin/python3\nimport json, sys\nprint(json.dumps(sys.argv[1:]))\n";

fn test_env() -> RunTestEnv {
    let test_env = RunTestEnv::new();
    let rows = "| first | string | yes | One |\n| second | string | no | Two |\n| many | array | no | List |\n| count | number | no | Number |";
    test_env.commands(
        "demo",
        "read_only: true\n",
        &[
            ("one", rows, "./show.py {{first}} {{second}} {{count}}"),
            ("list", rows, "./show.py {{many}} end --all={{many}} {{first}}"),
            ("guarded", rows, "./show.py -- {{first}} {{many}}"),
            ("joined", rows, "./show.py --name={{first}} pre{{second}}post"),
            (
                "url",
                rows,
                "./show.py \"https://example.com/{{first}}/find?q={{second}}&n={{count}}\"",
            ),
            ("literal", rows, "./show.py 'a  b' \"c $HOME\" $(id) {{first}} ';' '*' '|'"),
        ],
    );
    test_env.script("skills/demo/show.py", SHOW);
    test_env.approve("demo");
    test_env
}

#[test]
fn every_value_is_one_argument() {
    let test_env = test_env();
    let values = [
        "two words", "it's", "\"quoted\"", "$(id)", "`id`", "a; rm -rf /", "a\nb\n", "{{second}}",
        "$HOME", "*", "a && b | c > d", "\\", "naïve 🦀", "\t", "-", " ",
    ];
    // All values in one call, because each call starts a process.
    let params = json!({"first": "x", "many": values}).to_string();
    let run = test_env.run("demo/guarded", &["--params-json", &params]);
    let mut wanted = vec!["--", "x"];
    wanted.extend(values);
    assert_eq!(run.succeeds()["parsed"], json!(wanted));
    for value in ["$(id) ; 'x'\n\"y\"", "{{second}}", "{{count}}"] {
        let run = test_env.run("demo/one", &["--param", &format!("first={value}")]);
        assert_eq!(run.succeeds()["parsed"], json!([value]));
    }
}

#[test]
fn lists_options_and_urls() {
    let test_env = test_env();
    let run = test_env
        .run("demo/list", &["--param", "first=f", "--param", "many=a b", "--param", "many=c"]);
    assert_eq!(run.succeeds()["parsed"], json!(["a b", "c", "end", "--all=a b c", "f"]));
    let run = test_env.run("demo/list", &["--param", "first=f"]);
    assert_eq!(run.succeeds()["parsed"][0], "end");

    let run = test_env.run("demo/one", &["--param", "first=--upload-pack=evil"]);
    run.fails(2, "invalid-parameter");
    run.assert_error_contains(&["must not start with '-'", "hint: ", "write `-- {{"]);
    let run =
        test_env.run("demo/list", &["--params-json", r#"{"first": "x", "many": ["ok", "-x"]}"#]);
    run.fails(2, "invalid-parameter");
    let run = test_env.run("demo/guarded", &["--param", "first=--upload-pack=evil"]);
    assert_eq!(run.succeeds()["parsed"], json!(["--", "--upload-pack=evil"]));
    let run = test_env.run("demo/one", &["--param", "first=x", "--param", "count=-2.5"]);
    assert_eq!(run.succeeds()["parsed"], json!(["x", "-2.5"]));

    let run = test_env.run("demo/joined", &["--param", "first=-a b", "--param", "second=-x"]);
    assert_eq!(run.succeeds()["parsed"], json!(["--name=-a b", "pre-xpost"]));
    let params = r#"{"first": "a/../b?c", "second": "x&y=z #1%", "count": 2}"#;
    let run = test_env.run("demo/url", &["--params-json", params]);
    assert_eq!(
        run.succeeds()["parsed"],
        json!(["https://example.com/a%2F..%2Fb%3Fc/find?q=x%26y%3Dz%20%231%25&n=2"])
    );
    let run = test_env.run("demo/literal", &["--param", "first=f"]);
    assert_eq!(run.succeeds()["parsed"][0], "a  b");
    let parsed = run.succeeds()["parsed"].to_string();
    assert!(parsed.contains("$HOME") && parsed.contains("$(id)"), "{parsed}");

    // A NUL cannot be part of an argument.
    let run = test_env.run("demo/one", &["--params-json", "{\"first\": \"a\\u0000b\"}"]);
    run.fails(2, "invalid-parameter");
}

#[test]
fn output_is_in_the_envelope() {
    let test_env = RunTestEnv::with_commands(
        "read_only: true\n",
        &[
            ("both", "", "./both.sh"),
            ("long", "", "./long.sh"),
            ("exit", "", "./exit.sh"),
            ("place", "", "./place.sh"),
        ],
    );
    test_env.script("skills/demo/both.sh", "#!/bin/bash\necho out\necho err >&2\n");
    test_env.script(
        "skills/demo/long.sh",
        "#!/bin/bash\nfor ((i = 0; i < 2000; i++)); do echo \"line $i\"; done\n",
    );
    test_env.script("skills/demo/exit.sh", "#!/bin/bash\necho '{\"half\": true}'\nexit 7\n");
    test_env.script(
        "skills/demo/place.sh",
        "#!/bin/bash\necho \"$GIBBERISH_SKILL_NAME|$GIBBERISH_MODE|$GIBBERISH_SKILL_DIR|$PWD|$HOME\"\n",
    );
    test_env.approve("demo");
    let output = test_env.run("demo/both", &[]).succeeds()["output"].clone();
    let output = output.as_str().unwrap_or_default();
    assert!(output.contains("out") && output.contains("err"), "{output}");
    let long = test_env.run("demo/long", &[]).succeeds();
    let output = long["output"].as_str().unwrap_or_default();
    assert_eq!(long["truncated"], true);
    assert!(output.starts_with("line 0\n") && output.ends_with("line 1999"), "{output}");
    assert!(output.contains("... [truncated ") && output.len() < 4200, "{output}");
    let failed = test_env.run("demo/exit", &[]).fails(7, "command-failed");
    assert_eq!((&failed["exit_code"], &failed["parsed"]), (&json!(7), &json!({"half": true})));
    let place = test_env.run("demo/place", &["--mode", "Dev"]).succeeds()["output"].clone();
    let real =
        |path: &str| test_env.path(path).canonicalize().expect("a path").display().to_string();
    assert_eq!(
        place,
        format!("demo|Dev|{}|{}|{}", real("skills/demo"), real("work"), real("home"))
    );
}
