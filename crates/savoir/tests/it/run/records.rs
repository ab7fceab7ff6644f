//! Tests run records: every run and every rejection is recorded, without secrets.

use serde_json::json;

use super::{RunTestEnv, find_containing, python_attempts, server::Server};

const SECRET: &str = "s3cr3t-8c1d5e0b77";

#[test]
fn runs_are_recorded() {
    let server = Server::answering("answer");
    let test_env = RunTestEnv::new();
    let network = format!("network:read:{}", server.url(""));
    test_env.probe(
        "probe",
        &["filesystem:read:./data/**", "filesystem:write:./out/**", "shell:execute:git", &network],
        "",
    );
    test_env.write("work/data/a.txt", "inside");
    test_env.write("work/b.txt", "outside");
    let url = server.url("/page?key=value");
    let code = python_attempts(&[
        "open('data/a.txt').read()",
        "open('out/made.txt', 'w').write('x')",
        "open('b.txt').read()",
        "subprocess.run(['git', '--version']).returncode",
        &format!("__import__('urllib.request').request.urlopen('{url}').read().decode()"),
        "__import__('urllib.request').request.urlopen('http://example.com/').read()",
    ]);
    let param = format!("code={code}");
    test_env.run("probe", &["--param", &param]).fails(3, "not-approved");
    test_env.approve("probe");
    let envelope = test_env.run("probe", &["--param", &param]).succeeds();
    assert_eq!(envelope["parsed"]["result"][4], "answer", "{envelope}");
    let failed = test_env.run("probe", &["--param", "code=raise KeyError('x')"]);
    failed.fails(1, "tool-raised");

    let records = test_env.records();
    assert_eq!(records.len(), 3, "{records:?}");
    let [failed, done, refused] = &records[..] else { panic!("{records:?}") };
    assert_eq!(refused["decision"]["verdict"], "refused");
    assert_eq!(refused["error"]["code"], "not-approved");
    assert_eq!(
        (&failed["success"], &failed["error"]["code"]),
        (&json!(false), &json!("tool-raised"))
    );
    assert_eq!(failed["decision"]["verdict"], "run");

    assert_eq!(done["success"], true);
    let reason = done["decision"]["reason"].as_str().unwrap_or_default();
    assert!(reason.starts_with("approved on "), "{reason}");
    assert_eq!(
        (&done["dialect"], &done["trust"], &done["tier"]),
        (&json!("gaia"), &json!("user"), &json!("experimental"))
    );
    let enforcement = &done["enforcement"];
    assert_eq!(
        (&enforcement["seccomp"], &enforcement["proxy"], &enforcement["watched"]),
        (&json!(true), &json!(true), &json!(true))
    );
    for namespace in ["user", "mount", "pid", "net"] {
        assert!(enforcement["namespaces"].to_string().contains(namespace), "{enforcement}");
    }
    for (list, end) in [
        ("read", "/work/data/a.txt\""),
        ("written", "/work/out/made.txt\""),
        ("denied", "/work/b.txt\""),
    ] {
        assert!(done["files"][list].to_string().contains(end), "{list}: {}", done["files"]);
    }
    assert!(done["programs"].to_string().contains("/git\""), "{}", done["programs"]);
    let hosts = done["hosts"].as_array().expect("hosts");
    assert_eq!(hosts.len(), 2, "{hosts:?}");
    assert_eq!((&hosts[0]["path"], &hosts[0]["verdict"]), (&json!("/page"), &json!("allowed")));
    assert_eq!(hosts[1]["host"], "example.com");
    assert_eq!(hosts[1]["verdict"]["refused"]["reason"], "host-not-granted");

    // A record can be shown by the beginning of its id.
    let id = done["id"].as_str().expect("an identifier");
    let shown = test_env.savoir(&["runs", "show", id]);
    assert_eq!(shown.code, 0, "{shown}");
    for part in [
        "skill         probe\n", "decision      verdict: run\n", "/work/out/made.txt",
        "example.com",
    ] {
        assert!(shown.stdout.contains(part), "{part}: {shown}");
    }
    assert_eq!(test_env.savoir(&["runs", "show", id, "--json"]).json(), *done);
    let list = test_env.savoir(&["runs"]).stdout;
    assert_eq!(list.lines().count(), 3);
    assert!(list.lines().nth(1).is_some_and(|line| line.contains("  ok ")), "{list}");
}

#[test]
fn records_contain_no_secrets() {
    let mut test_env = RunTestEnv::new();
    test_env.set("API_TOKEN", SECRET);
    // Without network access, the tool sees the value.
    test_env.probe("probe", &["env:read:API_TOKEN", "filesystem:write:./out/**"], "");
    test_env.approve("probe");
    let seen = "import os\nresult = [len(os.environ['API_TOKEN']), os.environ['API_TOKEN']]";
    let seen = test_env.execute(seen);
    assert_eq!((&seen[0], &seen[1]), (&SECRET.len().into(), &"[secret]".into()));
    for code in [
        "import os; raise RuntimeError('the token is ' + os.environ['API_TOKEN'])",
        "import os; os.mkdir('out'); open('out/' + os.environ['API_TOKEN'], 'w').close()",
        "import os; open('/nowhere/' + os.environ['API_TOKEN'])",
        "import os; print(os.environ['API_TOKEN']); os._exit(1)",
    ] {
        let run = test_env.run("probe", &["--param", &format!("code={code}")]);
        let message = run.0.json()["error"].to_string();
        assert!(!message.contains(SECRET) && !run.0.stderr.contains(SECRET), "{code}: {}", run.0);
    }
    assert!(test_env.path("work/out").join(SECRET).exists());
    assert_eq!(find_containing(&test_env.path(".savoir"), SECRET), None);

    // A module that prints the secret while it is loaded.
    let loud =
        format!("{}\nimport os\nraise RuntimeError(os.environ['API_TOKEN'])\n", super::PROBE);
    test_env.gaia("probe", &["env:read:API_TOKEN"], "", &loud);
    test_env.approve("probe");
    let run = test_env.run("probe", &["--param", "code=x"]);
    run.fails(1, "module-not-loaded");
    assert!(!run.0.to_string().contains(SECRET), "{}", run.0);

    // With network access, the tool sees only a placeholder.
    let server = Server::answering("ok");
    let network = format!("network:read:{}", server.url(""));
    test_env.probe("probe", &["env:read:API_TOKEN", &network], "");
    test_env.approve("probe");
    let url = server.url("/x");
    let code = format!(
        "import os, urllib.request\ntoken = os.environ['API_TOKEN']\n\
         request = urllib.request.Request('{url}', headers={{'Authorization': 'Bearer ' + token}})\n\
         result = [token, urllib.request.urlopen(request).read().decode()]\n"
    );
    let result = test_env.execute(&code);
    assert_eq!(result[1], "ok");
    assert_ne!(result[0], SECRET);
    assert_eq!(server.seen()[0].header("authorization"), Some(format!("Bearer {SECRET}").as_str()));

    // For a variable that the user grants, the record contains only the name.
    let skill = test_env.skill("probe");
    let kept = test_env.savoir(&["approve", &skill, "--yes", "--allow-env", "API_TOKEN"]);
    assert_eq!(kept.code, 0, "{kept}");
    test_env.run("probe", &["--param", "code=result = 1"]).succeeds();
    assert_eq!(find_containing(&test_env.path(".savoir"), SECRET), None);
    for list in [&["runs"][..], &["runs", "--json"], &["approvals", "--json"]] {
        assert!(!test_env.savoir(list).to_string().contains(SECRET), "{list:?}");
    }
}

#[test]
fn user_commands_are_recorded() {
    let test_env = RunTestEnv::with_commands(
        "read_only: true\n",
        &[("say", "| text | string | yes | What |", "echo {{text}}")],
    );
    test_env.run("demo/say", &["--param", "text=a b\u{1b}[2J"]).succeeds();
    let record = test_env.record();
    assert_eq!(record["command"][1], "a b\u{1b}[2J");
    assert_eq!((&record["exit_code"], &record["tool"]), (&json!(0), &json!("say")));
    let id = record["id"].as_str().expect("an identifier");
    let shown = test_env.savoir(&["runs", "show", id]).stdout;
    assert!(!shown.contains('\u{1b}'), "{shown}");
    let failing = RunTestEnv::with_commands("", &[("no", "", "false")]);
    let envelope = failing.run("demo/no", &[]).fails(1, "command-failed");
    assert_eq!(envelope["exit_code"], 1);
    assert_eq!(failing.record()["error"]["code"], "command-failed");
}

#[test]
fn run_is_shown_by_its_id_alone() {
    let test_env = RunTestEnv::new();
    test_env.probe("probe", &[], "");
    test_env.approve("probe");
    test_env.run("probe", &["--param", "code=result = 1"]).succeeds();
    let records = test_env.records();
    let id = records[0]["id"].as_str().expect("an id");
    let shown = test_env.savoir(&["runs", id]);
    assert_eq!(shown.code, 0, "{shown}");
    assert_eq!(shown.stdout, test_env.savoir(&["runs", "show", id]).stdout);
    let unknown = test_env.savoir(&["runs", "20010101"]);
    assert_ne!(unknown.code, 0, "{unknown}");
    assert!(unknown.stderr.contains("20010101"), "{unknown}");
}
