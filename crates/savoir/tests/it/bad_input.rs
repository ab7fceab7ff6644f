//! Tests invalid input: every file gets a finding instead of a panic, and other files are still
//! checked.

use std::{
    fs::{self, File},
    io::Read as _,
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use crate::support::{GOOD, Sandbox};

/// Waits until a process ends; kills it if it hangs.
fn wait(child: &mut Child) -> Option<ExitStatus> {
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(20) {
        if let Some(status) = child.try_wait().expect("a child") {
            return Some(status);
        }
        thread::sleep(Duration::from_millis(20));
    }
    child.kill().expect("the child that hangs");
    child.wait().expect("the child that was ended");
    None
}

/// Checks `bytes` as one of two skills. The other skill must still be checked.
fn codes_of(bytes: &[u8]) -> Vec<String> {
    let sandbox = Sandbox::new();
    sandbox.write("skills/bad/SKILL.md", bytes);
    sandbox.write("skills/demo/SKILL.md", GOOD);
    let run = sandbox.run(&["check", "skills", "--json"]);
    let report = run.json();
    let files = report["files"].as_array().expect("files");
    assert_eq!(files.len(), 2, "{run}");
    assert_eq!(files[1]["path"], "skills/demo/SKILL.md");
    assert_eq!(files[1]["diagnostics"].as_array().map(Vec::len), Some(0), "{run}");
    assert_eq!(run.code, 1, "{run}");
    let found = files[0]["diagnostics"].as_array().expect("diagnostics");
    found.iter().map(|one| one["code"].as_str().expect("code").to_owned()).collect()
}

#[test]
fn invalid_utf8_is_reported() {
    assert_eq!(codes_of(b"---\nname: bad\nx: \xff\xfe\n---\n"), ["not-utf8"]);
    assert_eq!(codes_of(b"\xff\xfe-\0-\0-\0\n\0"), ["not-utf8"]);
    assert!(codes_of(b"---\nname: bad\ndescription: x\n---\na\0b\n").contains(&"nul-byte".into()));
    assert!(codes_of(b"").contains(&"empty-file".into()));
}

#[test]
fn hostile_yaml_is_rejected() {
    let deep = format!("---\nname: bad\nx: {}{}\n---\n", "[".repeat(10_000), "]".repeat(10_000));
    assert!(codes_of(deep.as_bytes()).contains(&"yaml-too-deep".into()));
    let mut laughs = vec!["---\nname: bad\na: &a [x,x,x,x,x,x,x,x,x]".to_owned()];
    for (from, to) in "abcdefgh".chars().zip("bcdefghi".chars()) {
        laughs.push(format!("{to}: &{to} [{}]", vec![format!("*{from}"); 9].join(",")));
    }
    laughs.push("---\n".to_owned());
    assert!(codes_of(laughs.join("\n").as_bytes()).contains(&"yaml-too-large".into()));
    let twice = b"---\nname: bad\ndescription: d\npermissions: [network:none]\npermissions: [network:write]\n---\n";
    assert!(codes_of(twice).contains(&"duplicate-key".into()));
    let huge = format!("---\nname: bad\nd: \"{}\"\n---\n", "A".repeat(80_000));
    assert!(codes_of(huge.as_bytes()).contains(&"frontmatter-too-large".into()));
}

#[test]
fn huge_files_are_rejected_without_reading() {
    let sandbox = Sandbox::new();
    let path = sandbox.write("big/SKILL.md", "");
    File::options().write(true).open(path).expect("file").set_len(100 << 20).expect("size");
    let run = sandbox.run(&["check", "big", "--json"]);
    assert_eq!(run.json()["files"][0]["diagnostics"][0]["code"], "file-too-large");
    assert_eq!(run.code, 1);
}

#[test]
fn pathological_markdown_is_checked_fast() {
    let mut text = String::from("---\nname: bad\ndescription: Shows it. Use when testing.\n---\n");
    text.push_str(&">".repeat(100_000));
    text.push_str("\n\n");
    text.push_str(&"[".repeat(50_000));
    text.push_str("\n\n");
    text.push_str(&"[a](b`".repeat(50_000));
    text.push_str("\n\n");
    text.push_str(&"*a_ ".repeat(20_000));
    let sandbox = Sandbox::new();
    sandbox.write("bad/SKILL.md", &text);
    let run = sandbox.run(&["check", "bad", "--json"]);
    assert!(run.code == 0 || run.code == 1, "{}", run.stderr);
}

#[test]
fn folder_named_like_the_skill_file_is_rejected() {
    let sandbox = Sandbox::new();
    fs::create_dir_all(sandbox.path("skills/odd/SKILL.md")).expect("folder");
    sandbox.write("skills/demo/SKILL.md", GOOD);
    let run = sandbox.run(&["check", "skills"]);
    assert!(run.stdout.contains("it is a folder, not a file"), "{run}");
    assert!(run.stdout.contains("checked 2 skills"), "{run}");
    assert_eq!(run.code, 2);
}

#[cfg(unix)]
#[test]
fn links_that_lead_nowhere_or_out() {
    use std::os::unix::fs::symlink;

    let sandbox = Sandbox::new();
    sandbox.write("secret.md", GOOD);
    fs::create_dir_all(sandbox.path("skills/lost")).expect("folder");
    fs::create_dir_all(sandbox.path("skills/out")).expect("folder");
    symlink("nowhere.md", sandbox.path("skills/lost/SKILL.md")).expect("link");
    symlink("../../secret.md", sandbox.path("skills/out/SKILL.md")).expect("link");
    let run = sandbox.run(&["check", "skills"]);
    assert!(run.stdout.contains("the symlink is broken"), "{run}");
    assert!(run.stdout.contains("the symlink leads out of the folder"), "{run}");
    assert_eq!(run.code, 1, "{run}");
}

#[test]
fn paths_without_a_skill() {
    let sandbox = Sandbox::new();
    fs::create_dir_all(sandbox.path("empty")).expect("folder");
    sandbox.write("demo/SKILL.md", GOOD);
    let run = sandbox.run(&["check", "missing", "empty", "demo"]);
    assert!(run.stdout.contains("the file or folder does not exist"), "{run}");
    assert!(run.stdout.contains("no SKILL.md below this folder"), "{run}");
    assert!(run.stdout.contains("checked 3 skills"), "{run}");
    assert_eq!(run.code, 2);
}

#[test]
fn names_that_would_leave_the_folder() {
    let sandbox = Sandbox::new();
    let run = sandbox.run(&["new", "../../evil"]);
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("is not a valid skill name"), "{run}");
    let codes = codes_of(b"---\nname: ../../evil\ndescription: d\n---\nx\n");
    assert!(codes.contains(&"invalid-name".into()), "{codes:?}");
}

#[test]
fn terminal_escapes_of_a_skill_are_not_printed() {
    let sandbox = Sandbox::new();
    let text = "---\nname: demo\ndescription: \"safe\\e[2K\\rPermissions: none\"\nx\u{202e}y: \u{1b}[31m\n---\nHi\u{1b}]0;t\u{7}\n";
    sandbox.write("demo/SKILL.md", text);
    for args in
        [vec!["check", "demo"], vec!["show", "demo"], vec!["check", "demo", "--diff", "--unsafe"]]
    {
        let run = sandbox.run(&args);
        for forbidden in ['\u{1b}', '\r', '\u{202e}', '\u{7}'] {
            assert!(!run.stdout.contains(forbidden), "{args:?} {:?}", run.stdout);
            assert!(!run.stderr.contains(forbidden), "{args:?} {:?}", run.stderr);
        }
    }
}

#[test]
fn closed_output_pipe_is_not_an_error() {
    let sandbox = Sandbox::new();
    let bad = "---\nname: Bad Name\ndescription: Use for: demos\n---\nx\n";
    for number in 0..1500 {
        sandbox.write(&format!("skills/s{number}/SKILL.md"), bad);
    }
    for args in [&["check", "skills"][..], &["check", "skills", "--json"]] {
        let mut child = sandbox
            .command(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("savoir runs");
        let mut some = [0; 64];
        let mut stdout = child.stdout.take().expect("standard output");
        stdout.read_exact(&mut some).expect("some output");
        drop(stdout);
        // The output must be read, because a full pipe would block the process.
        let mut stderr = child.stderr.take().expect("standard error");
        let errors = thread::spawn(move || {
            let mut text = String::new();
            stderr.read_to_string(&mut text).map(|_| text)
        });
        let ended = wait(&mut child);
        let errors = errors.join().expect("a reader").expect("text");
        assert!(ended.is_some(), "{args:?} does not end when nobody reads its output");
        assert!(!errors.contains("panicked"), "{args:?}: {errors}");
    }
}

#[cfg(unix)]
#[test]
fn pipe_named_like_the_skill_file_is_rejected() {
    let sandbox = Sandbox::new();
    fs::create_dir_all(sandbox.path("skills/odd")).expect("folder");
    let pipe = sandbox.path("skills/odd/SKILL.md");
    let made = Command::new("mkfifo").arg(pipe).status().expect("mkfifo runs");
    assert!(made.success());
    for args in [
        ["check", "skills"],
        ["check", "skills/odd"],
        ["check", "skills/odd/SKILL.md"],
        ["show", "skills/odd"],
        ["show", "skills/odd/SKILL.md"],
    ] {
        let mut child = sandbox
            .command(&args)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("savoir runs");
        let ended = wait(&mut child);
        let ended = ended.unwrap_or_else(|| panic!("{args:?} waits for a pipe"));
        assert!(matches!(ended.code(), Some(1 | 2)), "{args:?}: {ended}");
    }
}

#[test]
fn an_input_from_the_command_line_is_not_printed_raw() {
    let sandbox = Sandbox::with_examples();
    let args = ["render", "examples/article-summary", "--input", "\u{1b}[2Jodd=x"];
    // Colors are escape sequences, but typed text must not become one.
    for forced in [false, true] {
        let mut command = sandbox.command(&args);
        if forced {
            command.env_remove("NO_COLOR").env("CLICOLOR_FORCE", "1");
        }
        let output = command.output().expect("savoir runs");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{stderr:?}");
        assert!(stderr.contains("odd"), "{stderr:?}");
        assert!(!stderr.contains("\u{1b}[2J"), "{stderr:?}");
        assert!(forced || !stderr.contains('\u{1b}'), "{stderr:?}");
    }
}

#[test]
fn hints_name_the_file_with_the_registries() {
    let sandbox = Sandbox::new();
    let text =
        crate::support::GOOD.replace("name: demo", "name: weather\nmetadata: {version: 1.0.0}");
    sandbox.write("work/weather/SKILL.md", text);
    for args in [&["publish", "./weather"][..], &["search", "pdf"], &["install", "pdf"]] {
        let run = sandbox.run_as("home", "work", args);
        assert_eq!(run.code, 2, "{run}");
        assert!(run.stderr.contains("in ~/.config/savoir/config.toml: [registries]"), "{run}");
        let is_about_paths = run.stderr.contains("for a folder, give its path");
        assert_eq!(is_about_paths, args[0] == "install", "{run}");
    }
    let config = sandbox.run_as("home", "work", &["config"]);
    assert!(config.stdout.contains("# your settings: ~/.config/savoir/config.toml\n"), "{config}");
}

#[test]
fn missing_inputs_are_a_wrong_call_of_render() {
    let sandbox = Sandbox::new();
    let text = "---\nname: a\ndescription: d\ninputs: [{name: topic, type: text, required: true}]\n---\n\
                About {{topic}}.\n";
    sandbox.write("a/SKILL.md", text);
    let run = sandbox.run(&["render", "a"]);
    assert_eq!(run.code, 2, "{run}");
    assert!(run.stderr.contains("hint: pass an input with --input NAME=VALUE"), "{run}");
}

#[test]
fn strict_says_why_it_fails() {
    let sandbox = Sandbox::new();
    let text = crate::support::GOOD.replacen("---\n", "---\nuser-invocabl: true\n", 1);
    sandbox.write("demo/SKILL.md", text);
    let run = sandbox.run(&["check", ".", "--strict"]);
    assert_eq!(run.code, 1, "{run}");
    assert!(run.stderr.contains("--strict does not allow warnings"), "{run}");
}

#[test]
fn every_agent_is_listed() {
    let sandbox = Sandbox::new();
    let run = sandbox.run(&["help", "--agents"]);
    assert!(run.stdout.contains("\nclaude-code ") && run.stdout.lines().count() > 70, "{run}");
}
