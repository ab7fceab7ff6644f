//! Tests `--exec-fences`, which runs code blocks of a prompt.

use serde_json::json;

use super::RunTestEnv;
use crate::live_server::{Provider, ProviderBehavior};

const SCHEMA: &str = "outputs:\n  type: json\n  schema:\n    type: object\n    required: [url]\n    properties: {url: {type: string}, count: {type: integer}}\n";

fn test_env(fields: &str, body: &str) -> RunTestEnv {
    let test_env = RunTestEnv::new();
    test_env.write(
        "skills/fenced/SKILL.md",
        format!(
            "---\nname: fenced\nversion: 1.0.0\ndescription: Runs code blocks.\nruntime:\n  type: markdown-skill\n\
             inputs:\n  - {{name: pr-url, type: string, required: true}}\n{fields}---\n\n# Look at {{{{ pr-url }}}}\n\n{body}\n"
        ),
    );
    test_env.approve("fenced");
    test_env
}

const HOSTILE: &str = "pr-url=x\"; touch /tmp/evil; $(id) `id`";

#[test]
fn inputs_come_in_variables() {
    let test_env = test_env(
        "",
        "```bash\necho \"bash: $INPUT_PR_URL\"\n```\n\nText.\n\n```python\nimport os\nprint('python:', os.environ['INPUT_PR_URL'])\n```\n\n```text\nnot code\n```",
    );
    let run = test_env.run("fenced", &["--exec-fences", "--input", HOSTILE]);
    let value = HOSTILE.split_once('=').expect("a value").1;
    assert_eq!(run.succeeds()["output"], format!("bash: {value}\npython: {value}"));
    assert_eq!(test_env.records().len(), 2);
    // Without the option nothing runs.
    let provider = Provider::new(ProviderBehavior::Says(&["No."]));
    let mut command =
        test_env.command(&["run", &test_env.skill("fenced"), "--input", "pr-url=https://x.org"]);
    provider.of(&mut command);
    let output = command.output().expect("savoir runs");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "No.\n");
    let asked = provider.questions()[0]["messages"][1]["content"].to_string();
    assert!(asked.contains("```bash\\necho"), "{asked}");
    let record = test_env.record();
    assert_eq!((&record["success"], &record["command"]), (&true.into(), &serde_json::json!([])));
    assert_eq!(test_env.records().len(), 3, "an answer is in the records, too");
}

#[test]
fn code_blocks_contain_no_input_values() {
    let inside = test_env("", "```bash\necho {{ pr-url }}\n```");
    let run = inside.run("fenced", &["--exec-fences", "--input", "pr-url=x; id"]);
    run.fails(3, "code-in-input");
    run.assert_error_contains(&["hint: ", "$INPUT_NAME", "savoir check"]);
    let check = inside.savoir(&["check", &inside.skill("fenced")]);
    assert!(check.stdout.contains("input-in-code-block"), "{check}");
    assert!(check.stdout.contains("\"$INPUT_PR_URL\""), "{check}");
    assert_eq!(inside.record()["error"]["code"], "code-in-input");
    // A value cannot open a new block either.
    let outside = test_env("", "Before {{ pr-url }} after.\n\n```bash\necho fine\n```");
    let block = "pr-url=x\n\n```bash\nid\n```\n";
    outside.run("fenced", &["--exec-fences", "--input", block]).fails(3, "code-in-input");
    let none = test_env("", "Only text.");
    none.run("fenced", &["--exec-fences", "--input", "pr-url=x"]).fails(2, "no-code");
}

#[test]
fn code_blocks_run_in_the_sandbox() {
    let test_env = test_env(
        "",
        "```python\nimport os, socket\nprint(os.listdir(os.path.expanduser('~')))\ntry:\n    socket.create_connection(('127.0.0.1', 9), 1)\nexcept OSError as error:\n    print(type(error).__name__)\n```\n\n```bash\nexit 3\n```\n\n```bash\necho never\n```",
    );
    test_env.write("home/mine.txt", "mine");
    let run = test_env.run("fenced", &["--exec-fences", "--input", "pr-url=x"]);
    let envelope = run.fails(3, "command-failed");
    assert_eq!(envelope["exit_code"], 3);
    let records = test_env.records();
    assert_eq!(records.len(), 2, "the third block is not reached");
    assert_eq!(records[1]["hosts"], json!([]));
    assert!(!records[1]["files"].to_string().contains("mine.txt"));
}

#[test]
fn results_are_validated_against_the_schema() {
    let input = ["--exec-fences", "--input", "pr-url=https://x.org/1"];
    let good = test_env(
        SCHEMA,
        "```bash\nprintf '{\"url\": \"%s\", \"count\": 2}' \"$INPUT_PR_URL\"\necho 'a warning' >&2\n```",
    );
    let envelope = good.run("fenced", &input).succeeds();
    assert_eq!(envelope["parsed"], json!({"url": "https://x.org/1", "count": 2}));
    let skill = good.skill("fenced");
    let plain = good.savoir(&[&["run", &skill], &input[..]].concat());
    assert_eq!(plain.json(), json!({"url": "https://x.org/1", "count": 2}));

    let bad = test_env(SCHEMA, "```bash\necho '{\"count\": \"two\"}'\n```");
    let run = bad.run("fenced", &input);
    let envelope = run.fails(1, "output-mismatch");
    run.assert_error_contains(&["url", "count"]);
    assert_eq!(envelope["output"], "{\"count\": \"two\"}", "{envelope}");
    let plain = bad.savoir(&[&["run", &bad.skill("fenced")], &input[..]].concat());
    assert_eq!((plain.code, plain.stdout.as_str()), (1, ""), "{plain}");
    assert!(plain.stderr.contains("{\"count\": \"two\"}"), "{plain}");
    let text = test_env(SCHEMA, "```bash\necho just text\n```");
    text.run("fenced", &input).fails(1, "output-not-json");
    // An answer may be longer than the part of the output that is shown.
    let long =
        test_env(SCHEMA, "```python\nimport json\nprint(json.dumps({'url': 'x' * 20000}))\n```");
    let envelope = long.run("fenced", &input).succeeds();
    assert_eq!(envelope["parsed"]["url"].as_str().map(str::len), Some(20000));
}

#[test]
fn code_reads_the_files_that_the_user_passes() {
    let fields = "  - {name: f, type: file}\n  - {name: d, type: file, default: private.txt}\n";
    let test_env = test_env(
        fields,
        "```bash\ncat \"$INPUT_F\"; cat \"$INPUT_D\" || true; echo x > \"$INPUT_F\" || true\n```",
    );
    test_env.write("work/in.json", "{\"a\": 1}\n");
    test_env.write("work/private.txt", "mine");
    let run =
        test_env.run("fenced", &["--exec-fences", "--input", "pr-url=x", "--input", "f=in.json"]);
    let output = run.succeeds()["output"].to_string();
    assert!(output.contains("\\\"a\\\": 1"), "{output}");
    assert!(!output.contains("mine"), "the author chose the default: {output}");
    assert_eq!(test_env.sandbox.read("work/in.json"), "{\"a\": 1}\n", "it is only read");
    // An absolute path outside of the working folder, for which no approval is stored.
    test_env.write("elsewhere/b.txt", "other file");
    let file = format!("f={}", test_env.path("elsewhere/b.txt").display());
    let run = test_env.run("fenced", &["--exec-fences", "--input", "pr-url=x", "--input", &file]);
    assert!(run.succeeds()["output"].to_string().contains("other file"));
}

#[test]
fn events_of_code_blocks_end_with_the_result() {
    let schema = test_env(SCHEMA, "```bash\necho '{\"url\": \"x\"}'\n```");
    let plain = test_env("", "```bash\necho one\n```\n\n```bash\necho two\n```");
    let wrong = test_env(SCHEMA, "```bash\necho nope\n```");
    for (test_env, code, success) in [(&plain, 0, true), (&schema, 0, true), (&wrong, 1, false)] {
        let path = test_env.skill("fenced");
        let run =
            test_env.savoir(&["run", &path, "--exec-fences", "--input", "pr-url=x", "--events"]);
        assert_eq!(run.code, code, "{run}");
        let lines: Vec<serde_json::Value> = run
            .stdout
            .lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}: {run}")))
            .collect();
        let last = lines.last().expect("an event");
        assert_eq!(last["event"], "result", "{run}");
        assert_eq!(last["data"]["success"], success, "{run}");
        assert_eq!(
            last["data"]["exit_code"],
            if success { json!(0) } else { json!(null) },
            "{run}"
        );
    }
}
