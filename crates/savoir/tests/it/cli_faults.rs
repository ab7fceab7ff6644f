//! Tests that commands that write lose nothing when they are killed.

use std::{
    collections::BTreeSet,
    io::Write as _,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::{registry_faults::random_below, support::Sandbox};

/// A command that is run again and again, each time for another number.
struct Writer {
    name: &'static str,
    /// Makes what the command needs.
    prepare: fn(&Sandbox, usize),
    /// The command with its standard input.
    command: fn(usize) -> (Vec<String>, String),
    /// The command that lists what was written, and how a number is read from an item.
    list: &'static [&'static str],
    member: &'static str,
    number: fn(&Value) -> Option<usize>,
}

const TOOL: &str = "---\nname: demo\nversion: 1.0.0\ndescription: Says hello. Use when greeting.\nread_only: true\n---\n\n# Demo\n\n### hello\n\nSay hello.\n\n#### Parameters\n\nNone.\n\n#### Command\n\n```bash\necho \"hello world\"\n```\n";

const WRITERS: [Writer; 4] = [
    Writer {
        name: "documents",
        prepare: |sandbox, number| {
            if number == 0 {
                let made = sandbox.run(&["kb", "create", "notes"]);
                assert_eq!(made.code, 0, "{made}");
            }
            sandbox.write(&format!("{number}.md"), format!("Number {number}.\n").repeat(500));
        },
        command: |number| (words(&["kb", "add", "notes", &format!("{number}.md")]), String::new()),
        list: &["kb", "list", "notes", "--json"],
        member: "documents",
        number: |item| {
            let number = item["filename"].as_str()?.strip_suffix(".md")?.parse().ok();
            number.filter(|_| item["status"] == "completed")
        },
    },
    Writer {
        name: "secrets",
        prepare: |_, _| {},
        command: |number| {
            (words(&["secret", "set", &format!("TOKEN_{number}")]), format!("value {number}\n"))
        },
        list: &["secret", "list", "--json"],
        member: "secrets",
        number: |item| item["name"].as_str()?.strip_prefix("TOKEN_")?.parse().ok(),
    },
    Writer {
        name: "approvals",
        prepare: |sandbox, number| {
            let name = format!("demo-{number}");
            sandbox.write(
                &format!("{name}/SKILL.md"),
                TOOL.replace("name: demo", &format!("name: {name}")),
            );
        },
        command: |number| (words(&["approve", &format!("demo-{number}"), "--yes"]), String::new()),
        list: &["approve", "--list", "--json"],
        member: "approvals",
        number: |item| item["skill"].as_str()?.strip_prefix("demo-")?.parse().ok(),
    },
    Writer {
        name: "keys",
        prepare: |_, _| {},
        command: |number| (words(&["keys", "new", &format!("key-{number}")]), String::new()),
        list: &["keys", "list", "--json"],
        member: "own",
        number: |item| item["name"].as_str()?.strip_prefix("key-")?.parse().ok(),
    },
];

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

impl Writer {
    /// Runs the command; kills it after some time. Whether it succeeded.
    fn run(&self, sandbox: &Sandbox, number: usize, killed_after: Option<Duration>) -> bool {
        (self.prepare)(sandbox, number);
        let (args, input) = (self.command)(number);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let mut child = sandbox
            .command(&args)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("savoir starts");
        // It may be gone before it reads.
        let _ = child.stdin.take().expect("a pipe").write_all(input.as_bytes());
        if let Some(after) = killed_after {
            thread::sleep(after);
            let _ = child.kill();
        }
        child.wait().expect("an end").success()
    }

    fn read(&self, sandbox: &Sandbox) -> BTreeSet<usize> {
        let list = sandbox.run(self.list);
        assert_eq!(list.code, 0, "{}: {list}", self.name);
        let listed = list.json();
        let items = listed[self.member].as_array().unwrap_or_else(|| panic!("{list}"));
        items.iter().filter_map(self.number).collect()
    }
}

/// How often each command is killed.
fn kills() -> usize {
    if std::env::var_os("SAVOIR_TEST_SOAK").is_some() { 60 } else { 4 }
}

/// Files below a folder that were not finished.
fn unfinished(sandbox: &Sandbox) -> String {
    let mut find = Command::new("find");
    find.args([".savoir", ".config"]).args(["-name", ".tmp*", "-o", "-name", ".savoir-*"]);
    let found = find.current_dir(sandbox.path(".")).output().expect("find runs");
    String::from_utf8_lossy(&found.stdout).into_owned()
}

#[expect(clippy::print_stderr, reason = "`make soak` reports what was tried")]
fn survives_kills(writer: &Writer) {
    let sandbox = Sandbox::new();
    let began = Instant::now();
    assert!(writer.run(&sandbox, 0, None), "{}", writer.name);
    // As long as the command takes, and a bit longer.
    let usual = began.elapsed();
    let span = u64::try_from(usual.as_micros()).unwrap_or(u64::MAX) * 5 / 4;
    let (mut acknowledged, mut killed) = (BTreeSet::from([0]), 0);
    for round in 0..kills() {
        let number = 1 + 2 * round;
        let after = Duration::from_micros(random_below(span.max(1)));
        if writer.run(&sandbox, number, Some(after)) {
            acknowledged.insert(number);
        } else {
            killed += 1;
        }
        // Nothing that the killed command held blocks the next one.
        let began = Instant::now();
        assert!(writer.run(&sandbox, number + 1, None), "{} {number}", writer.name);
        let took = began.elapsed();
        assert!(took < usual * 5 + Duration::from_secs(4), "{}: {took:?}", writer.name);
        acknowledged.insert(number + 1);
        let found = writer.read(&sandbox);
        let lost: Vec<_> = acknowledged.difference(&found).collect();
        assert!(lost.is_empty(), "{}: acknowledged and lost: {lost:?}", writer.name);
    }
    // Files of the last command are removed once they are old enough.
    thread::sleep(Duration::from_millis(1100));
    assert!(writer.run(&sandbox, 1 + 2 * kills(), None), "{}", writer.name);
    assert_eq!(unfinished(&sandbox), "", "{}", writer.name);
    eprintln!(
        "{:<12} {} runs, {killed} killed, {} acknowledged, 0 lost",
        writer.name,
        1 + 2 * kills(),
        acknowledged.len()
    );
}

#[test]
fn killed_commands_lose_nothing() {
    thread::scope(|scope| {
        for writer in &WRITERS {
            scope.spawn(|| survives_kills(writer));
        }
    });
}
