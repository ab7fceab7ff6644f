//! Tests `savoir chat` with model providers over HTTP.

use std::{
    fs,
    io::Read as _,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    live_server::{Provider, ProviderBehavior},
    services::{service, skipped},
    support::{Sandbox, Transcript},
};

/// A project with a note, and skills that Claude Code sees there.
fn project() -> Sandbox {
    let sandbox = Sandbox::new();
    for folder in ["home", "project/.git"] {
        fs::create_dir_all(sandbox.path(folder)).expect("a folder");
    }
    sandbox.write("project/note.txt", "The meeting is on Monday.\n");
    for (name, lines) in [
        ("reader", "allowed-tools: Read"),
        ("apart", "allowed-tools: Read\ncontext: fork"),
        ("deploy", "disable-model-invocation: true"),
    ] {
        let text = format!("---\nname: {name}\ndescription: Does {name}.\n{lines}\n---\nDo it.\n");
        sandbox.write(&format!("project/.claude/skills/{name}/SKILL.md"), text);
    }
    sandbox
}

/// `savoir chat` in the project, with the settings of a provider.
fn chat(sandbox: &Sandbox, words: &[&str], change: impl FnOnce(&mut Command)) -> Transcript {
    let mut command = sandbox.command(&[&["chat"], words].concat());
    command.current_dir(sandbox.path("project")).env_clear();
    command.env("HOME", sandbox.path("home")).env("NO_COLOR", "1").stdin(Stdio::null());
    if let Some(path) = std::env::var_os("PATH") {
        command.env("PATH", path);
    }
    change(&mut command);
    Transcript::of(command)
}

fn events(run: &Transcript) -> Vec<Value> {
    run.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// The results of the model's calls, as contained in its last request.
fn read_by_model(provider: &Provider) -> Vec<String> {
    let questions = provider.questions();
    let messages =
        questions.last().expect("a question")["messages"].as_array().expect("some").clone();
    let answers = messages.into_iter().filter(|message| message["role"] == "tool");
    answers.map(|message| message["content"].as_str().expect("text").to_owned()).collect()
}

#[test]
fn one_question_gets_one_answer() {
    let sandbox = project();
    let provider = Provider::new(ProviderBehavior::Says(&["Mon", "day."]));
    let run = chat(&sandbox, &["--once", "When is the meeting?"], |command| provider.of(command));
    assert_eq!((run.code, run.stdout.as_str()), (0, "Monday.\n"), "{run}");
    let asked = &provider.questions()[0];
    let system = asked["messages"][0]["content"].as_str().expect("a system text");
    assert!(system.contains("\n- reader: Does reader.\n"), "{system}");
    assert!(!system.contains("deploy"), "only people call it: {system}");
    let tools: Vec<_> = asked["tools"]
        .as_array()
        .expect("tools")
        .iter()
        .filter_map(|tool| tool["function"]["name"].as_str())
        .collect();
    assert_eq!(
        tools,
        [
            "use_skill", "read_skill_file", "search_skills", "save_skill", "read_file", "list_dir",
            "write_file", "edit_file", "run_command", "web_fetch"
        ]
    );
}

#[test]
fn active_skill_restricts_tools() {
    let sandbox = project();
    let provider = Provider::new(ProviderBehavior::Calls(
        &[
            ("use_skill", r#"{"name": "reader"}"#),
            ("read_file", r#"{"path": "note.txt"}"#),
            ("write_file", r#"{"path": "new.txt", "content": "x"}"#),
            ("run_command", r#"{"command": "touch new.txt"}"#),
            ("read_file", r#"{"path": "../home"}"#),
        ],
        &["Done."],
    ));
    let words = ["--autonomous", "--json", "--once", "Do what you can."];
    let run = chat(&sandbox, &words, |command| provider.of(command));
    assert_eq!(run.code, 0, "{run}");
    let read = read_by_model(&provider);
    let beginnings = [
        "[origin: skill `reader`]\n{",
        "[origin: tool `read_file`]\nThe meeting is on Monday.\n",
        "[origin: savoir, failed: tool-not-allowed]\n",
        "[origin: savoir, failed: tool-not-allowed]\n",
        "[origin: tool `read_file`, failed: path-outside-workspace]\n",
    ];
    for (answer, beginning) in read.iter().zip(beginnings) {
        assert!(answer.starts_with(beginning), "{answer}");
    }
    assert_eq!(read.len(), beginnings.len());
    assert!(!sandbox.path("project/new.txt").exists());
    let events = events(&run);
    let refused = events.iter().filter(|event| event["data"]["status"] == "refused").count();
    assert_eq!(refused, 2, "{run}");
    let log = sandbox.path("home/.local/share/savoir/log/chat.log");
    let log = std::fs::read_to_string(log).expect("a log");
    assert_eq!(log.matches("a call is refused").count(), 2, "{log}");
    assert!(log.contains("a call failed") && log.contains("path-outside-workspace"), "{log}");
    assert_eq!(events.last().expect("events")["data"]["status"], "success");
    // Tools that the skill does not allow are not offered.
    let tools = provider.questions()[1]["tools"].to_string();
    assert!(tools.contains("read_file") && !tools.contains("run_command"), "{tools}");
}

#[test]
fn workspace_changes_need_approval() {
    let calls: &[_] = &[("write_file", r#"{"path": "new.txt", "content": "x"}"#)];
    let sandbox = project();
    let provider = Provider::new(ProviderBehavior::Calls(calls, &["I could not."]));
    let run = chat(&sandbox, &["Write it."], |command| provider.of(command));
    assert_eq!((run.code, run.stdout.as_str()), (3, "I could not.\n"), "{run}");
    assert!(run.stderr.contains("error: `write_file` needed approval"), "{run}");
    assert!(!sandbox.path("project/new.txt").exists());
    let provider = Provider::new(ProviderBehavior::Calls(calls, &["Written."]));
    let run = chat(&sandbox, &["Write it.", "--autonomous"], |command| provider.of(command));
    assert_eq!((run.code, sandbox.read("project/new.txt").as_str()), (0, "x"), "{run}");
}

#[test]
fn limits_end_an_answer_with_a_reason() {
    let sandbox = project();
    let provider = Provider::new(ProviderBehavior::Calls(&[("list_dir", "{}"); 20], &["Never."]));
    let run = chat(&sandbox, &["Go.", "--max-steps", "3"], |command| provider.of(command));
    assert_eq!((run.code, run.stdout.as_str()), (1, ""), "{run}");
    assert!(run.stderr.contains("error: the limit of 3 steps is reached"), "{run}");
    assert_eq!(provider.questions().len(), 3);
    let run = chat(&sandbox, &["Go.", "--budget", "50"], |command| provider.of(command));
    assert!(run.code == 1 && run.stderr.contains("the budget of 50 tokens is used up"), "{run}");
}

#[test]
fn context_is_limited_to_the_model_window() {
    let sandbox = project();
    for name in ["a", "b", "c"] {
        sandbox.write(&format!("project/{name}.txt"), "words ".repeat(2000));
    }
    let calls: &[_] = &[
        ("read_file", r#"{"path": "a.txt"}"#),
        ("read_file", r#"{"path": "b.txt"}"#),
        ("read_file", r#"{"path": "c.txt"}"#),
    ];
    for (words, left_out) in [(&["Go."][..], 0), (&["Go.", "--context", "4000"], 2)] {
        let provider = Provider::new(ProviderBehavior::Calls(calls, &["Done."]));
        let run = chat(&sandbox, words, |command| provider.of(command));
        assert_eq!((run.code, run.stdout.as_str()), (0, "Done.\n"), "{run}");
        let read = read_by_model(&provider);
        let is_left_out = |answer: &&String| answer.contains("left out to save room");
        assert_eq!(read.iter().filter(is_left_out).count(), left_out, "{words:?}: {read:?}");
    }
    let run = chat(&sandbox, &["Go.", "--context", "10"], |_| {});
    assert!(run.code == 2 && run.stderr.contains("--context"), "{run}");
}

#[test]
fn invalid_options_are_reported_before_the_first_request() {
    let sandbox = project();
    let provider = Provider::new(ProviderBehavior::Says(&["x"]));
    let run = chat(&sandbox, &["Hi"], |_| {});
    assert!(run.code == 2 && run.stderr.contains("no language model is configured"), "{run}");
    let run = chat(&sandbox, &[], |command| provider.of(command));
    assert!(run.code == 2 && run.stderr.contains("the question is empty"), "{run}");
    let run = chat(&sandbox, &["Hi", "--workspace", "/"], |command| provider.of(command));
    assert!(run.code == 2 && run.stderr.contains("hint: name the folder of a project"), "{run}");
    let run = chat(&sandbox, &["Hi", "--json", "--workspace", "nowhere"], |c| provider.of(c));
    assert_eq!(
        (run.code, events(&run)[0]["data"]["code"].as_str()),
        (2, Some("workspace-unusable"))
    );
    let refusing = Provider::new(ProviderBehavior::Refuses);
    let run = chat(&sandbox, &["Hi"], |command| refusing.of(command));
    assert!(run.code == 1 && run.stderr.contains("openai answered 401: the key is wrong"), "{run}");
    assert_eq!(provider.questions().len(), 0);
}

#[test]
fn a_conversation_on_a_terminal_asks_before_it_writes() {
    let sandbox = project();
    let calls: &[_] = &[
        ("write_file", r#"{"path": "no.txt", "content": "x"}"#),
        ("write_file", r#"{"path": "yes.txt", "content": "x"}"#),
    ];
    let provider = Provider::new(ProviderBehavior::Calls(calls, &["That is all."]));
    sandbox.write(
        "home/.config/savoir/config.toml",
        format!(
            "[models.house]\nkind = \"openai\"\nbase-url = \"{}\"\nmodel = \"echo-1\"\n",
            provider.url
        ),
    );
    let typed = "/skills\nWrite two files.\nn\ny\n/nonsense\n/quit\n";
    let run = sandbox.type_as("home", "project", &["chat"], typed);
    assert_eq!(run.code, 0, "{run}");
    assert!(run.stdout.contains("- reader: Does reader.\n"), "{run}");
    assert!(run.stdout.ends_with("That is all.\n"), "{run}");
    assert!(
        run.stderr
            .contains("write_file {\"path\":\"no.txt\",\"content\":\"x\"}\r\nwrite        no.txt"),
        "{run}"
    );
    assert!(run.stderr.contains("unknown command /nonsense"), "{run}");
    assert!(!sandbox.path("project/no.txt").exists(), "{run}");
    assert!(sandbox.path("project/yes.txt").exists(), "{run}");
}

#[test]
fn interrupt_ends_the_answer() {
    let sandbox = project();
    let provider = Provider::new(ProviderBehavior::Dawdles);
    let mut command = sandbox.command(&["chat", "--once", "Go on and on."]);
    command.current_dir(sandbox.path("project")).env("HOME", sandbox.path("home"));
    provider.of(&mut command);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("savoir starts");
    let mut first = [0; 4];
    child.stdout.as_mut().expect("output").read_exact(&mut first).expect("words");
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().expect("kill runs").success());
    let output = child.wait_with_output().expect("an end");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("error: the answer was stopped"), "{said}");
}

/// A project whose model starts an endless command, and the running `savoir chat`.
fn busy(sandbox: &Sandbox) -> (Provider, Child) {
    let calls: &[_] = &[("run_command", r#"{"command": "touch begun; sleep 60"}"#)];
    let provider = Provider::new(ProviderBehavior::Calls(calls, &["Done."]));
    let mut command = sandbox.command(&["chat", "--autonomous", "--once", "Work."]);
    command.current_dir(sandbox.path("project")).env("HOME", sandbox.path("home"));
    provider.of(&mut command);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().expect("savoir starts");
    let begun = Instant::now();
    while !sandbox.path("project/begun").exists() {
        assert!(begun.elapsed() < Duration::from_secs(30), "the command begins");
        thread::sleep(Duration::from_millis(20));
    }
    (provider, child)
}

fn names(sandbox: &Sandbox) -> Vec<String> {
    let mut names = Vec::new();
    for folder in ["project", "project/.git"] {
        let Ok(entries) = fs::read_dir(sandbox.path(folder)) else { continue };
        let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
        names.extend(entries.flatten().map(|entry| format!("{folder}/{}", name(entry))));
    }
    names.retain(|name| name != "project/begun");
    names.sort();
    names
}

fn can_run() -> bool {
    let has_sandbox = savoir_sandbox::SandboxSupport::detect().sandbox.is_available();
    if !has_sandbox {
        skipped("this machine has no sandbox");
    }
    has_sandbox
}

fn signal(child: &Child, name: &str) {
    let id = child.id().to_string();
    assert!(Command::new("kill").args([name, &id]).status().expect("kill runs").success());
}

#[test]
fn terminating_chat_leaves_no_processes() {
    if !can_run() {
        return;
    }
    for name in ["-TERM", "-HUP", "-INT"] {
        let sandbox = project();
        let before = names(&sandbox);
        let (_provider, child) = busy(&sandbox);
        assert_eq!(names(&sandbox), before, "nothing is made");
        signal(&child, name);
        let document = Instant::now();
        let output = child.wait_with_output().expect("an end");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{name}: {said}");
        assert!(said.contains("error: the answer was stopped"), "{name}: {said}");
        assert!(document.elapsed() < Duration::from_secs(10), "{name}: {:?}", document.elapsed());
        assert_eq!(names(&sandbox), before, "{name}");
    }
}

#[test]
fn killed_chat_leaves_no_processes() {
    if !can_run() {
        return;
    }
    for has_repository in [true, false] {
        let sandbox = project();
        if !has_repository {
            fs::remove_dir(sandbox.path("project/.git")).expect("an empty folder");
        }
        let before = names(&sandbox);
        let (_provider, mut child) = busy(&sandbox);
        signal(&child, "-KILL");
        child.wait().expect("an end");
        assert_eq!(names(&sandbox), before);
    }
}

#[test]
fn piped_question_cannot_approve_tools() {
    let sandbox = project();
    let calls: &[_] = &[("run_command", r#"{"command": "touch new.txt"}"#)];
    let provider = Provider::new(ProviderBehavior::Calls(calls, &["No."]));
    sandbox.write("question", "Make it.\ny\ny\n");
    let run = chat(&sandbox, &[], |command| {
        provider.of(command);
        command.stdin(fs::File::open(sandbox.path("question")).expect("a file"));
    });
    assert_eq!((run.code, run.stdout.as_str()), (3, "No.\n"), "{run}");
    assert!(!sandbox.path("project/new.txt").exists());
    assert_eq!(provider.questions()[0]["messages"][1]["content"], "Make it.\ny\ny\n");
}

#[test]
fn skill_runs_in_a_fork() {
    let sandbox = project();
    // The provider chooses its answer by the number of earlier calls in the history, which differs
    // for the fork.
    let provider = Provider::new(ProviderBehavior::Calls(
        &[("use_skill", r#"{"name": "apart"}"#)],
        &["Well."],
    ));
    let run = chat(&sandbox, &["--json", "Do it apart."], |command| provider.of(command));
    assert_eq!(run.code, 0, "{run}");
    let questions = provider.questions();
    assert_eq!(questions.len(), 4, "two in each history: {run}");
    let apart = questions[1]["messages"][1]["content"].as_str().expect("an order");
    assert!(apart.starts_with("Carry out the skill `apart`."), "{apart}");
    let within = read_by_model(&provider);
    assert!(within[0].contains("\"result\":\"Well.\""), "{within:?}");
    let document = questions[2]["messages"].to_string();
    assert!(
        document.contains("This skill is meant for a sub-agent"),
        "no history within a history: {document}"
    );
}

#[test]
fn scripted_model_uses_a_skill() {
    let Some(model) = service("SAVOIR_TEST_AIMOCK", "a scripted model") else { return };
    let sandbox = project();
    for (name, variables) in [
        (
            "openai",
            vec![
                ("OPENAI_BASE_URL", format!("{model}/v1")),
                ("OPENAI_API_KEY", "x".to_owned()),
                ("OPENAI_MODEL", "any".to_owned()),
            ],
        ),
        ("ollama", vec![("OLLAMA_HOST", model.clone()), ("OLLAMA_MODEL", "any".to_owned())]),
        (
            "anthropic",
            vec![
                ("ANTHROPIC_BASE_URL", model.clone()),
                ("ANTHROPIC_API_KEY", "x".to_owned()),
                ("ANTHROPIC_MODEL", "any".to_owned()),
            ],
        ),
    ] {
        let words = ["--json", "--once", "Read the note with your skill."];
        let run = chat(&sandbox, &words, |command| {
            command.envs(variables).env("NO_PROXY", "127.0.0.1");
        });
        assert_eq!(run.code, 0, "{name}: {run}");
        let events = events(&run);
        let document: Vec<(Option<&str>, Option<&str>)> = events
            .iter()
            .filter(|event| event["data"]["type"] == "tool" && event["data"]["status"] != "start")
            .map(|event| (event["data"]["tool"].as_str(), event["data"]["status"].as_str()))
            .collect();
        assert_eq!(
            document,
            [
                (Some("use_skill"), Some("complete")),
                (Some("read_file"), Some("complete")),
                (Some("run_command"), Some("refused")),
            ],
            "{name}: {run}"
        );
        let words: String =
            events.iter().filter_map(|event| event["data"]["content"].as_str()).collect();
        assert_eq!(words, "The note says Monday.", "{name}");
    }
}

#[test]
fn real_model_answers_a_request_with_tools() {
    let Some(model) = service("SAVOIR_TEST_MODEL", "a real model") else { return };
    let sandbox = project();
    // A real model may never finish by itself, so the budget is small.
    let words = ["--json", "--budget", "3000", "--once", "Use the skill reader."];
    let run = chat(&sandbox, &words, |command| {
        command.env("OPENAI_BASE_URL", &model).env("OPENAI_API_KEY", "none");
        command.env("NO_PROXY", "127.0.0.1");
    });
    let events = events(&run);
    let last = events.last().expect("events");
    // The answer of such a small model varies; only the end of the turn is checked.
    assert_eq!(last["event"], "done", "{run}");
    let expected = if run.code == 0 { json!("success") } else { json!("error") };
    assert_eq!(last["data"]["status"], expected, "{run}");
    assert!(events.len() > 1, "{run}");
}
