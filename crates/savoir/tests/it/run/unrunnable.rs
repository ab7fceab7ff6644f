//! Tests that `check`, `approve` and `run` reject a skill that cannot run for the same reason.

use super::RunTestEnv;

#[test]
fn unenforceable_domains_are_refused_by_every_command() {
    for (permission, reason) in [
        ("desktop:control", "screen, keyboard and pointer cannot be shared in part"),
        ("mcp:connect:files", "a tool in the sandbox has no MCP client"),
        ("database:read:db.example.com", "a database server cannot be limited"),
    ] {
        let test_env = RunTestEnv::new();
        test_env.probe("probe", &[permission], "");
        let skill = test_env.skill("probe");
        for (arguments, code) in [
            (&["check", &skill][..], 1),
            (&["approve", &skill, "--yes"], 3),
            (&["run", &skill, "--param", "code=x"], 3),
        ] {
            let run = test_env.savoir(arguments);
            assert_eq!(run.code, code, "{permission}: {run}");
            assert!(run.to_string().contains(reason), "{permission}: {run}");
        }
    }
}

#[test]
fn a_database_that_is_a_file_is_a_grant_of_the_file() {
    let test_env = RunTestEnv::with_probe(&["database:read:./data/app.sqlite"]);
    test_env.write("work/data/app.sqlite", "rows");
    test_env.write("work/data/other.sqlite", "others");
    let run = test_env.savoir(&["check", &test_env.skill("probe")]);
    assert!(!run.to_string().contains("unenforceable"), "{run}");
    assert_eq!(test_env.execute("result = open('data/app.sqlite').read()"), "rows");
    let result = test_env.execute("import os\nresult = os.path.exists('data/other.sqlite')");
    assert_eq!(result, false);
}

#[test]
fn actions_of_openclaw_do_not_see_the_working_folder() {
    for flags in ["{filesystem: false, network: false}", "{}", "{network: true}"] {
        let test_env = RunTestEnv::new();
        test_env.write(
            "skills/claw/SKILL.md",
            format!(
                "---\nname: claw\nversion: 1.0.0\nclaw_version: \"1.0\"\ndescription: Looks. Use in tests.\n\
                 permissions: {flags}\nactions:\n  - name: look\n    description: Look\n    handler: look.py:look\n---\n\nLook.\n"
            ),
        );
        test_env.write(
            "skills/claw/look.py",
            "import socket\n\n\ndef look():\n    try:\n        text = open('mine.txt').read()\n    except OSError as error:\n        text = type(error).__name__\n    \
             try:\n        socket.create_connection(('127.0.0.1', 9), 1)\n        net = 'connected'\n    except OSError as error:\n        net = type(error).__name__\n    return {'text': text, 'net': net}\n",
        );
        test_env.write("work/mine.txt", "mine");
        test_env.approve("claw");
        let found = test_env.run("claw/look", &[]).succeeds()["parsed"].clone();
        assert_eq!(found["text"], "FileNotFoundError", "{flags}: {found}");
        assert_ne!(found["net"], "connected");
        let shown = test_env.savoir(&["approve", &test_env.skill("claw"), "--details"]);
        assert!(!shown.to_string().contains("may read files"), "{shown}");
    }
}

#[test]
fn a_placeholder_in_a_program_is_refused_with_a_rewrite() {
    let row = "| text | string | yes | What |";
    for (command, rewrite) in [
        ("bash -c \"echo {{text}}\"", "bash -c 'echo \"$1\"' -- {{text}}"),
        ("python3 -c \"print({{text}})\"", "print(sys.argv[1])' {{text}}"),
        ("awk '/{{text}}/'", "awk -v x={{text}}"),
        ("git -c alias.z=!{{text}} z", "write a fixed text there"),
        ("sed -n -e '{{text}}' a.txt", "sed --sandbox"),
        ("ssh host 'echo {{text}}'", "scripts/remote.sh {{text}}"),
        ("sqlite3 a.db 'select {{text}}'", "scripts/query.py {{text}}"),
    ] {
        let test_env = RunTestEnv::with_commands("", &[("say", row, command)]);
        let check = test_env.savoir(&["check", &test_env.skill("demo")]);
        assert_eq!(check.code, 1, "{check}");
        assert!(check.to_string().contains(rewrite), "{check}");
        let run = test_env.run("demo/say", &["--param", "text=x; id"]);
        run.fails(3, "placeholder-in-program");
        run.assert_error_contains(&[rewrite]);
    }
    let test_env =
        RunTestEnv::with_commands("", &[("say", row, "bash -c 'echo \"$1\"' -- {{text}}")]);
    let envelope = test_env.run("demo/say", &["--param", "text=a; id"]).succeeds();
    assert_eq!(envelope["output"], "a; id");
}

#[test]
fn variables_before_a_command_are_set() {
    let row = "| text | string | yes | What |";
    let test_env = RunTestEnv::with_commands(
        "",
        &[
            ("show", row, "GREETING='a b' WHO={{text}} printenv GREETING WHO"),
            ("load", row, "LD_PRELOAD={{text}} printenv"),
            ("pager", "", "GIT_PAGER=cat printenv GIT_PAGER"),
        ],
    );
    let envelope = test_env.run("demo/show", &["--param", "text=-x; id"]).succeeds();
    assert_eq!(envelope["output"], "a b\n-x; id");
    test_env.run("demo/load", &["--param", "text=x"]).fails(3, "placeholder-in-program");
    assert_eq!(test_env.run("demo/pager", &[]).succeeds()["output"], "cat");
}

#[test]
fn backslashes_in_double_quotes_are_read_as_a_shell_reads_them() {
    let test_env =
        RunTestEnv::with_commands("", &[("say", "", r#"printf %s "\(.a) \d \\ \"q\" \$x""#)]);
    assert_eq!(test_env.run("demo/say", &[]).succeeds()["output"], r#"\(.a) \d \ "q" $x"#);
}

#[test]
fn a_missing_script_is_found_by_check() {
    let test_env = RunTestEnv::new();
    test_env.commands("demo", "", &[("a", "", "python3 scripts/gone.py"), ("b", "", "./gone.sh")]);
    let run = test_env.savoir(&["check", &test_env.skill("demo")]);
    assert!(
        run.to_string().contains("the skill does not contain the file `scripts/gone.py`"),
        "{run}"
    );
    assert!(run.to_string().contains("the skill does not contain the file `gone.sh`"), "{run}");
}
