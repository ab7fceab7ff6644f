//! Tests that permissions are enforced: granted access works, and nothing else does.

use std::{fs, os::unix::fs::symlink};

use serde_json::{Value, json};

use super::{RunTestEnv, python_attempts, server::Server};

/// Results of attempts; a refusal is the name of an exception.
fn try_out(test_env: &RunTestEnv, expressions: &[&str]) -> Vec<Value> {
    let result = test_env.execute(&python_attempts(expressions));
    result.as_array().unwrap_or_else(|| panic!("{result}")).clone()
}

fn is_refused(value: &Value) -> bool {
    ["FileNotFoundError", "PermissionError", "OSError", "NotADirectoryError", "BlockingIOError"]
        .iter()
        .any(|name| value == name)
}

#[track_caller]
fn assert_refused(test_env: &RunTestEnv, expressions: &[&str]) {
    let results = try_out(test_env, expressions);
    for (expression, result) in expressions.iter().zip(&results) {
        assert!(is_refused(result), "{expression} gave {result}");
    }
}

#[test]
fn files_to_read_and_files_to_write() {
    let test_env =
        RunTestEnv::with_probe(&["filesystem:read:./data/**", "filesystem:write:./out/deep/**"]);
    test_env.write("work/data/below/a.txt", "inside");
    test_env.write("work/other.txt", "other");
    fs::create_dir_all(test_env.path("work/out/deep")).expect("a folder");
    let secret = test_env.write("home/.ssh/id_ed25519", "private key");
    test_env.write("skills/neighbour/SKILL.md", crate::support::GOOD);
    symlink(&secret, test_env.path("work/data/link")).expect("a link");
    symlink("/etc/passwd", test_env.path("work/data/passwd")).expect("a link");
    let results = try_out(
        &test_env,
        &[
            "open('data/below/a.txt').read()",
            "open('out/deep/new.txt', 'w').write('made')",
            "os.makedirs('out/deep/x/y')",
            "os.listdir(os.environ['HOME'])",
            "open('/tmp/scratch', 'w').write('mine')",
            "open('/etc/passwd').read()",
            "sorted(os.listdir('.'))",
            "open(os.environ['HOME'] + '/note', 'w').write('private')",
        ],
    );
    assert_eq!(results[..5], [json!("inside"), json!(4), Value::Null, json!([]), json!(4)]);
    let host = fs::read_to_string("/etc/passwd").expect("a file of the host");
    assert_ne!(results[5], host, "the file of the host");
    assert_eq!(results[6], json!(["data", "out"]), "others are not even there");
    assert_eq!(results[7], 7);
    assert_eq!(test_env.sandbox.read("work/out/deep/new.txt"), "made");
    assert!(test_env.path("work/out/deep/x/y").is_dir());
    assert!(!test_env.path("home/note").exists(), "the home inside is not the real one");

    let (secret, work) = (secret.display(), test_env.path("work"));
    let work = work.display();
    let neighbour = test_env.path("skills/neighbour/SKILL.md");
    assert_refused(
        &test_env,
        &[
            &format!("open({:?}).read()", secret.to_string()),
            "open(os.path.expanduser('~/.ssh/id_ed25519')).read()",
            "open('data/link').read()",
            &format!("open({:?}).read()", neighbour.display().to_string()),
            &format!("open('{work}/other.txt').read()"),
            &format!("open('{work}/data/../other.txt').read()"),
            "open('data/new.txt', 'w')",
            "open('data/below/a.txt', 'a')",
            "os.remove('data/below/a.txt')",
            "os.rename('data/below/a.txt', 'out/deep/a.txt')",
            "os.chmod('data/below/a.txt', 0o777)",
            "open('/root/.bashrc').read()",
            "open('/proc/1/environ').read()",
            "open('/usr/lib/new', 'w')",
            "os.link('data/below/a.txt', 'out/deep/hard')",
            "open(__import__('sys').argv[0] + '.new', 'w')",
        ],
    );
    // Parent folders exist in the sandbox, but they are not the host's folders.
    try_out(&test_env, &["open('out/above.txt', 'w')", "open('new.txt', 'w')"]);
    for place in ["work/out/above.txt", "work/new.txt"] {
        assert!(!test_env.path(place).exists(), "{place}");
    }
    let record = test_env.records().swap_remove(1);
    assert!(record["files"]["denied"].to_string().contains("id_ed25519"), "{}", record["files"]);
    assert_eq!(test_env.sandbox.read("work/data/below/a.txt"), "inside");
}

/// A tool often fails with an error that does not name the host.
#[test]
fn failed_tool_names_a_host_that_could_not_be_reached() {
    let test_env = RunTestEnv::with_probe(&["network:read:nowhere.invalid"]);
    let code = "import urllib.request\ntry:\n    urllib.request.urlopen('http://nowhere.invalid/')\n\
                except Exception:\n    pass\nraise ValueError('Expecting value')";
    let skill = test_env.skill("probe");
    let run = test_env.savoir(&["run", &skill, "--param", &format!("code={code}")]);
    assert_eq!(run.code, 1, "{run}");
    let hint = "nowhere.invalid could not be reached; the program got an HTTP error instead";
    assert!(run.stderr.contains(hint), "{run}");
}

#[test]
fn protected_files_are_never_written() {
    let test_env = RunTestEnv::with_probe(&["filesystem:write:./**"]);
    test_env.repository();
    test_env.write("work/.vscode/settings.json", "{}");
    let config = test_env.sandbox.read("work/.git/config");
    let places = [
        ".git/hooks/pre-commit", ".git/config", ".git/info/attributes", ".git/commondir",
        ".vscode/settings.json", ".vscode/tasks.json", ".idea/x", ".claude/settings.json",
        ".agents/x", ".mcp.json", ".envrc", "savoir.lock",
    ];
    let mut tried: Vec<String> =
        places.iter().map(|place| format!("open('{place}', 'w').write('evil')")).collect();
    tried.push("os.rename('.git', 'moved')".to_owned());
    tried.push("os.rename('.vscode', 'moved')".to_owned());
    tried.push("os.unlink('.git/config')".to_owned());
    tried.push("os.symlink('/tmp', '.git/hooks/link')".to_owned());
    let results = try_out(&test_env, &tried.iter().map(String::as_str).collect::<Vec<_>>());
    // Missing protected files can be created, but are moved aside at the end.
    let is_new =
        |tried: &str| [".mcp.json", ".envrc", "savoir.lock"].iter().any(|n| tried.contains(n));
    for (expression, result) in tried.iter().zip(&results) {
        assert_eq!(result.is_string(), !is_new(expression), "{expression} gave {result}");
    }
    // All other names in the folder can be written.
    let results =
        try_out(&test_env, &["open('readme.txt', 'w').write('x')", "os.makedirs('src/deep')"]);
    assert_eq!(results, [json!(1), Value::Null]);
    assert_eq!(test_env.sandbox.read("work/.git/config"), config);
    assert_eq!(test_env.sandbox.read("work/.vscode/settings.json"), "{}");
    for place in
        places.iter().filter(|place| !place.starts_with(".vscode/s") && **place != ".git/config")
    {
        assert!(!test_env.path("work").join(place).exists(), "{place}");
    }
    let left: Vec<String> = fs::read_dir(test_env.path("work"))
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    for name in [".idea", ".claude", ".agents", ".mcp.json", ".envrc", "savoir.lock", "moved"] {
        assert!(!left.iter().any(|entry| entry == name), "{name} was left behind: {left:?}");
    }
}

#[test]
fn protected_files_are_never_created() {
    // The same for a folder that is not a repository yet, and through a parent folder.
    let test_env = RunTestEnv::with_probe(&["filesystem:write:./**"]);
    let approved =
        test_env.savoir(&["approve", &test_env.skill("probe"), "--yes", "--allow-write", "~"]);
    assert_eq!(approved.code, 0, "{approved}");
    test_env.write("home/.config/systemd/user/own.service", "[Unit]");
    let expressions = [
        "os.rename(os.path.expanduser('~/.config'), os.path.expanduser('~/moved'))",
        "open(os.path.expanduser('~/.config/systemd/user/evil.service'), 'w')",
    ];
    let results = try_out(&test_env, &expressions);
    for (expression, result) in expressions.iter().zip(&results) {
        assert!(
            result.as_str().is_some_and(|name| name.ends_with("Error")),
            "{expression} gave {result}"
        );
    }
    let made = [
        "os.makedirs('.git/hooks')",
        "os.makedirs(os.path.expanduser('~/.config/autostart'))",
        "os.makedirs(os.path.expanduser('~/.local/bin'))",
        "open(os.path.expanduser('~/.bashrc'), 'a').close()",
        "os.makedirs('deep/down/.git/hooks')",
        "open('CLAUDE.md', 'w').write('obey')",
    ];
    let results = try_out(&test_env, &made);
    assert!(results.iter().all(|result| !result.is_string()), "{results:?}");
    let aside = test_env.record()["files"]["put_aside"].to_string();
    for name in [".git", "autostart", ".local/bin", ".bashrc", "deep/down/.git", "CLAUDE.md"] {
        assert!(aside.contains(&format!("/{name}: now ")), "{name}: {aside}");
    }
    // The granted folder is the user's real home.
    let fine = try_out(
        &test_env,
        &[
            "open(os.path.expanduser('~/.config/own'), 'w').write('x')",
            "open(os.path.expanduser('~/.config/systemd/user/own.service')).read()",
        ],
    );
    assert_eq!(fine, [json!(1), json!("[Unit]")]);
    assert_eq!(test_env.sandbox.read("home/.config/own"), "x");
    for place in [
        "work/.git", "work/deep/down/.git", "work/CLAUDE.md", "home/moved",
        "home/.config/autostart", "home/.local/bin", "home/.bashrc",
    ] {
        assert!(!test_env.path(place).exists(), "{place}");
    }
    assert!(test_env.path("home/.config/systemd/user/own.service").exists());
}

#[test]
fn protected_paths_may_be_links_or_files() {
    let test_env = RunTestEnv::with_probe(&["filesystem:write:./**"]);
    // A `.git` file, as in a worktree.
    test_env.write("work/.git", "gitdir: ../elsewhere\n");
    let tried = [
        "os.unlink('.git')",
        "os.rename('.git', 'moved')",
        "open('.git', 'w').write('gitdir: evil')",
    ];
    let results = try_out(&test_env, &tried);
    for (expression, result) in tried.iter().zip(&results) {
        let refused = result.as_str().is_some_and(|name| name.ends_with("Error"));
        assert!(refused, "{expression} gave {result}");
    }
    assert_eq!(test_env.sandbox.read("work/.git"), "gitdir: ../elsewhere\n");
    // A link can be replaced, but its original target is restored at the end.
    test_env.write("elsewhere/envrc", "mine");
    let link = test_env.path("work/.envrc");
    symlink(test_env.path("elsewhere/envrc"), &link).expect("a link");
    let tried = ["os.unlink('.envrc')", "open('.envrc', 'w').write('evil')"];
    assert_eq!(try_out(&test_env, &tried), [Value::Null, json!(4)]);
    assert_eq!(fs::read_link(&link).expect("a link"), test_env.path("elsewhere/envrc"));
    assert_eq!(test_env.sandbox.read("elsewhere/envrc"), "mine");
}

#[test]
fn programs_by_name() {
    let test_env = RunTestEnv::with_probe(&["shell:execute:git"]);
    let results = try_out(
        &test_env,
        &[
            "subprocess.run(['git', '--version'], capture_output=True, text=True).stdout[:11]",
            "subprocess.run(['sh', '-c', 'id'])",
            "subprocess.run(['/bin/sh', '-c', 'id'])",
            "subprocess.run(['id'])",
            "subprocess.run(['/usr/bin/env', 'id'])",
            "os.system('id')",
            "os.execv('/bin/ls', ['ls'])",
        ],
    );
    assert_eq!(results[0], "git version");
    for result in results[1..5].iter().chain([&results[6]]) {
        assert!(is_refused(result), "{results:?}");
    }
    assert_ne!(results[5], 0);
    // A program inside the skill's writable folders cannot be executed either.
    let written = "open('/tmp/x', 'w').write('#!/usr/bin/git\\n') and os.chmod('/tmp/x', 0o755)";
    let results = try_out(&test_env, &[written, "subprocess.run(['/tmp/x'])"]);
    assert!(is_refused(&results[1]), "{results:?}");
    let executed = test_env.record()["programs"].to_string();
    assert!(!executed.contains("/sh\""), "{executed}");
}

#[test]
fn variables_by_name() {
    let mut test_env = RunTestEnv::with_probe(&["env:read:WANTED"]);
    for (name, value) in [
        ("WANTED", "yes"),
        ("WANTED_TOO", "no"),
        ("GITHUB_TOKEN", "ghp_secret"),
        ("AWS_SECRET_ACCESS_KEY", "aws-secret"),
        ("OPENAI_API_KEY", "sk-secret"),
        ("SSH_AUTH_SOCK", "/tmp/agent"),
        ("LD_PRELOAD_X", "x"),
        ("LC_TOKEN", "lc-secret"),
        ("LC_NUMERIC", "C.UTF-8"),
    ] {
        test_env.set(name, value);
    }
    let found = test_env.execute("import os\nresult = dict(os.environ)\n");
    assert_eq!(found["WANTED"], "yes");
    let allowed = [
        "HOME", "PATH", "LANG", "TERM", "TZ", "USER", "COLORTERM", "NO_COLOR", "WANTED",
        "SKILL_DIR", "CLAUDE_SKILL_DIR",
    ];
    for name in found.as_object().expect("variables").keys() {
        let fine =
            allowed.contains(&name.as_str()) || ["LC_NUMERIC", "LC_CTYPE"].contains(&&**name);
        assert!(fine, "{name} = {}", found[name]);
    }
    // A gibb.eri.sh skill gets none of these variables either.
    test_env.commands("demo", "read_only: true\n", &[("show", "", "env")]);
    test_env.approve("demo");
    let output = test_env.run("demo/show", &[]).succeeds()["output"].to_string();
    assert!(output.contains("GIBBERISH_SKILL_NAME=demo") && !output.contains("secret"), "{output}");
    assert!(!output.contains("WANTED"), "{output}");
}

#[test]
fn run_without_network_cannot_create_sockets() {
    let test_env = RunTestEnv::with_probe(&["network:none"]);
    let server = Server::answering("never");
    assert_refused(
        &test_env,
        &[
            "socket.socket(socket.AF_INET, socket.SOCK_STREAM)",
            "socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)",
            "socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)",
            "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)",
            &format!("socket.create_connection(('127.0.0.1', {}), 1)", server.port),
        ],
    );
    assert_eq!(server.seen().len(), 0);
    assert_eq!(test_env.record()["enforcement"]["proxy"], false);
}

#[test]
fn denied_sending_to_a_readable_host_is_named() {
    let server = Server::answering("answer");
    let test_env = RunTestEnv::new();
    test_env.probe("probe", &[&format!("network:read:{}", server.url(""))], "");
    test_env.approve("probe");
    let code = format!(
        "import urllib.request, urllib.error\nurl = '{}/a'\n\
         urllib.request.urlopen(url, timeout=5).read()\n\
         try:\n    urllib.request.urlopen(url, data=b'x', timeout=5)\n\
         except urllib.error.HTTPError as error:\n    result = error.code\n",
        server.url("")
    );
    let run = test_env.run("probe", &["--param", &format!("code={code}")]);
    let answer = run.succeeds();
    assert_eq!(answer["parsed"]["result"], 403, "{answer}");
    let what =
        format!("sending to 127.0.0.1:{}, because it lacks network:write for it", server.port);
    assert_eq!(answer["denied"][0]["what"], json!(what), "{answer}");
    assert_eq!(answer["denied"].as_array().map(Vec::len), Some(1), "{answer}");
}

#[test]
fn denied_reading_from_a_writable_host_is_named() {
    let server = Server::answering("answer");
    let test_env = RunTestEnv::new();
    test_env.probe("probe", &[&format!("network:write:{}", server.url(""))], "");
    test_env.approve("probe");
    let code = format!(
        "import urllib.request, urllib.error\n\
         try:\n    urllib.request.urlopen('{}/a', timeout=5)\n\
         except urllib.error.HTTPError as error:\n    result = error.code\n",
        server.url("")
    );
    let run = test_env.run("probe", &["--param", &format!("code={code}")]);
    let answer = run.succeeds();
    assert_eq!(answer["parsed"]["result"], 403, "{answer}");
    let what =
        format!("fetching from 127.0.0.1:{}, because it lacks network:read for it", server.port);
    assert_eq!(answer["denied"][0]["what"], json!(what), "{answer}");
    assert_eq!(answer["denied"].as_array().map(Vec::len), Some(1), "{answer}");
}

#[test]
fn hosts_and_methods() {
    let (server, other) = (Server::answering("answer"), Server::answering("other"));
    let test_env = RunTestEnv::new();
    test_env.probe("probe", &[&format!("network:read:{}", server.url(""))], "");
    test_env.approve("probe");
    let ask = "import urllib.request, urllib.error, socket\n\
        def ask(url, **more):\n    try:\n        \
        return urllib.request.urlopen(urllib.request.Request(url, **more), timeout=5).read().decode()\n    \
        except urllib.error.HTTPError as error:\n        return error.code\n    \
        except Exception as error:\n        return type(error).__name__\n";
    let code = format!(
        "{ask}result = [ask('{0}/a'), ask('{0}/b', method='HEAD'), ask('{0}/c', data=b'x'), \
         ask('{0}/d', method='DELETE'), ask('{1}/e'), ask('{0}/f', headers={{'Host': 'evil.example'}})]\n\
         try:\n    socket.create_connection(('127.0.0.1', {2}), 2).sendall(b'GET / HTTP/1.0\\r\\n\\r\\n')\n    \
         result.append('connected')\nexcept OSError as error:\n    result.append('refused')\n",
        server.url(""),
        other.url(""),
        server.port
    );
    let result = test_env.execute(&code);
    assert_eq!(result[0], "answer");
    assert_eq!(
        (&result[2], &result[3], &result[4]),
        (&json!(403), &json!(403), &json!(403)),
        "{result}"
    );
    assert_ne!(result[5], "answer", "{result}");
    assert_eq!(result[6], "refused");
    let lines: Vec<String> = server.seen().into_iter().map(|request| request.line).collect();
    assert_eq!(lines, ["GET /a HTTP/1.1", "HEAD /b HTTP/1.1"]);
    assert_eq!(other.seen().len(), 0);
    let hosts = test_env.record()["hosts"].clone();
    assert_eq!((&hosts[0]["method"], &hosts[0]["verdict"]), (&json!("GET"), &json!("allowed")));
    let refused = hosts.to_string();
    assert!(
        refused.contains("method-not-granted") && refused.contains("port-not-granted"),
        "{hosts}"
    );

    // Write permission covers the other methods and requests with a body.
    test_env.probe("probe", &[&format!("network:write:{}", server.url("/api"))], "");
    test_env.approve("probe");
    let code = format!(
        "{ask}result = [ask('{0}/api/x', data=b'sent'), ask('{0}/other', data=b'x')]\n",
        server.url("")
    );
    assert_eq!(test_env.execute(&code), json!(["answer", 403]));
    let last = server.seen().pop().expect("a request");
    assert_eq!((last.line.as_str(), last.body.as_str()), ("POST /api/x HTTP/1.1", "sent"));
}

#[test]
fn user_grants_missing_permissions() {
    let mut test_env = RunTestEnv::with_probe(&[]);
    test_env.set("EXTRA", "given");
    test_env.write("outside/file.txt", "outside");
    let outside = test_env.path("outside").canonicalize().expect("a folder").display().to_string();
    let code = python_attempts(&[
        &format!("open('{outside}/file.txt').read()"),
        &format!("open('{outside}/made.txt', 'w').write('x')"),
        "os.environ.get('EXTRA')",
        "subprocess.run(['git', '--version'], capture_output=True).returncode",
    ]);
    let before = test_env.execute(&code);
    assert!(is_refused(&before[0]) && is_refused(&before[1]) && is_refused(&before[3]), "{before}");
    assert_eq!(before[2], Value::Null);
    let code = format!("code={code}");
    let more = [
        "--param", &code, "--allow-read", &outside, "--allow-write", &outside, "--allow-env",
        "EXTRA", "--allow-program", "git",
    ];
    let run = test_env.run_agreed("probe", &more);
    assert_eq!(run.succeeds()["parsed"]["result"], json!(["outside", 1, "given", 0]));
    // Extra grants are kept until the approval is revoked.
    let skill = test_env.skill("probe");
    let kept = test_env.savoir(&["approve", &skill, "--yes", "--allow-env", "EXTRA"]);
    assert_eq!(kept.code, 0, "{kept}");
    assert_eq!(
        test_env.run("probe", &["--param", &code]).succeeds()["parsed"]["result"][2],
        "given"
    );
}

#[test]
fn a_home_in_a_repository_is_still_a_home() {
    let test_env = RunTestEnv::with_commands(
        "read_only: false\n",
        &[("look", "", "./look.sh"), ("spoil", "", "./spoil.sh")],
    );
    test_env.script("skills/demo/look.sh", "#!/bin/bash\necho ~/* ~/.[a-z]*\n");
    test_env.script("skills/demo/spoil.sh", "#!/bin/bash\necho x > ~/spoilt\necho done\n");
    test_env.approve("demo");
    test_env.write("home/.git/HEAD", "ref: refs/heads/main\n");
    test_env.write("home/mine.txt", "mine");
    let skill = test_env.skill("demo/look");
    let output = test_env
        .command(&["run", &skill])
        .current_dir(test_env.path("home"))
        .output()
        .expect("savoir runs");
    let output = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.contains("/*") && !output.contains("mine.txt"), "{output}");
    let skill = test_env.skill("demo/spoil");
    let output = test_env
        .command(&["run", &skill])
        .current_dir(test_env.path("home"))
        .output()
        .expect("savoir runs");
    assert!(output.status.success(), "{output:?}");
    assert!(!test_env.path("home/spoilt").exists());
}

#[test]
fn missing_granted_folder_is_not_an_error() {
    let test_env = RunTestEnv::with_probe(&["filesystem:read:./data/**"]);
    assert!(!test_env.path("work/data").exists());
    let results = try_out(&test_env, &["os.getcwd()", "os.path.exists('data')"]);
    let work = test_env.path("work").canonicalize().expect("a folder");
    assert_eq!(results, [json!(work), json!(false)]);
    fs::create_dir(test_env.path("work/data")).expect("a folder");
    assert_eq!(try_out(&test_env, &["os.path.exists('data')"]), [json!(true)]);
}
