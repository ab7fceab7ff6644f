//! Tests `savoir eval` with a scripted model.

use std::{fs, process::Command};

use serde_json::{Value, json};

use crate::{
    live_server::{Provider, ProviderBehavior, ScriptedReply},
    support::{Sandbox, Transcript},
};

pub(crate) const SKILL: &str = "---\nname: totals\ndescription: Sums numbers. Use when the user wants a total.\n\
    version: 1.0.0\n---\n\n# Totals\n\n1. Write the total into total.txt\n2. Answer with the total\n";

/// Two cases that only the skill solves: one is graded without a model, one by a judge.
pub(crate) const EVALS: &str = r#"{
  "skill_name": "totals",
  "evals": [
    {"id": "file", "prompt": "What is the total of numbers.csv?", "files": ["evals/files/numbers.csv"],
     "assertions": [
       {"type": "file-exists", "path": "total.txt"},
       {"type": "contains", "path": "total.txt", "text": "42"},
       {"type": "command", "command": "test \"$(cat total.txt)\" = 42 && test -f numbers.csv"},
       {"type": "tool-called", "tool": "write_file"}]},
    {"id": "judged", "prompt": "What is the total of 40 and 2?",
     "expected_output": "42", "assertions": ["The answer is 42"]}
  ]
}
"#;

/// A skill with evaluations.
fn project(evals: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    fs::create_dir_all(sandbox.path("home")).expect("a home");
    sandbox.write("totals/SKILL.md", SKILL);
    sandbox.write("totals/evals/evals.json", evals);
    sandbox.write("totals/evals/files/numbers.csv", "40\n2\n");
    sandbox
}

fn eval(sandbox: &Sandbox, words: &[&str], change: impl FnOnce(&mut Command)) -> Transcript {
    let mut command = sandbox.command_as("home", "", &[&["eval"], words].concat());
    if let Some(path) = std::env::var_os("PATH") {
        command.env("PATH", path);
    }
    change(&mut command);
    Transcript::of(command)
}

fn text_of(question: &Value, role: &str) -> String {
    let messages = question["messages"].as_array().into_iter().flatten();
    let of_role = messages.filter(|message| message["role"] == role);
    of_role.map(|message| message["content"].to_string()).collect()
}

fn answers(question: &Value) -> usize {
    let messages = question["messages"].as_array().into_iter().flatten();
    messages.filter(|message| message["role"] == "tool").count()
}

fn is_judge(question: &Value) -> bool {
    text_of(question, "system").contains("You grade the work of an agent")
}

/// The last answer of the agent, as a judge reads it.
fn judged_answer(question: &Value) -> String {
    let text = text_of(question, "user");
    let answer = text.split("## Last answer").nth(1).unwrap_or_default().to_owned();
    answer.split("## Tool calls").next().unwrap_or_default().to_owned()
}

fn verdict(passed: bool) -> ScriptedReply {
    let verdict = if passed { "pass" } else { "fail" };
    ScriptedReply::Says(json!({"evidence": "the answer", "verdict": verdict}).to_string())
}

/// A model that uses the skill if it is listed and the user wants a total.
pub(crate) fn capable(question: &Value) -> ScriptedReply {
    if is_judge(question) {
        return verdict(judged_answer(question).contains("42"));
    }
    let is_listed = text_of(question, "system").contains("- totals: ");
    let wants_total = text_of(question, "user").contains("total");
    match (is_listed && wants_total, answers(question)) {
        (true, 0) => ScriptedReply::Calls("use_skill", r#"{"name": "totals"}"#.to_owned()),
        (true, 1) => ScriptedReply::Calls(
            "write_file",
            r#"{"path": "total.txt", "content": "42"}"#.to_owned(),
        ),
        (true, _) => ScriptedReply::Says("The total is 42.".to_owned()),
        (false, _) => ScriptedReply::Says("I do not know.".to_owned()),
    }
}

/// Like [`capable`], but the judge returns an invalid verdict.
fn with_rubbish_judge(question: &Value) -> ScriptedReply {
    if is_judge(question) {
        return ScriptedReply::Says("It depends.".to_owned());
    }
    capable(question)
}

#[test]
fn a_helpful_skill_passes_the_gate_and_a_second_run_is_free() {
    let sandbox = project(EVALS);
    let provider = Provider::new(ProviderBehavior::Script(capable));
    let words = ["totals", "--gate", "uplift>=50 regressions=0", "--output", "out", "--json"];
    let run = eval(&sandbox, &words, |command| provider.of(command));
    assert_eq!(run.code, 0, "{run}");
    let results = run.json();
    assert_eq!(results["conclusion"]["verdict"], "pass", "{run}");
    assert_eq!(results["comparisons"][0]["uplift"]["mean"], 100.0);
    assert_eq!(results["comparisons"][0]["sign_test"]["better"], 6);
    assert_eq!(results["conclusion"]["invalid_trials"], 0);
    let with = &results["cases"][0]["arms"]["with_skill"][0];
    assert!(with["used_skill"] == true && with["steps"] == 3, "{with}");
    // The agent never sees the evaluation file.
    let asked = provider.questions();
    assert!(asked.iter().all(|question| !question.to_string().contains("evals.json")));
    for file in ["benchmark.json", "report.html", "report.md", "junit.xml", "results.json"] {
        assert!(sandbox.path("out").join(file).is_file(), "{file}");
    }
    let grading = sandbox.read("out/eval-001-file/without_skill/run-1/grading.json");
    assert!(grading.contains("\"passed\": false"), "{grading}");
    let again = eval(&sandbox, &words, |command| provider.of(command));
    assert_eq!(again.code, 0, "{again}");
    assert_eq!(again.json()["spent"]["paid"]["input"], 0, "{again}");
    assert_eq!(provider.questions().len(), asked.len(), "everything was stored");
    let table = eval(&sandbox, &["totals"], |command| provider.of(command));
    assert!(table.code == 0 && table.stdout.contains("+100.0 [+54.1, +100.0]"), "{table}");
}

#[test]
fn too_few_trials_decide_nothing() {
    let sandbox = project(EVALS);
    let provider = Provider::new(ProviderBehavior::Script(capable));
    let words = ["totals", "--trials", "1", "--gate", "uplift>0"];
    let run = eval(&sandbox, &words, |command| provider.of(command));
    assert!(run.code == 1 && run.stdout.contains("underpowered"), "{run}");
}

#[test]
fn recorded_trials_are_graded_again_without_a_model() {
    let sandbox = project(EVALS);
    let provider = Provider::new(ProviderBehavior::Script(capable));
    let run = eval(&sandbox, &["totals", "--output", "out"], |command| provider.of(command));
    assert_eq!(run.code, 0, "{run}");
    let words = ["totals", "--replay", "out", "--gate", "uplift>50", "--json"];
    let same = eval(&sandbox, &words, |_| {});
    assert_eq!((same.code, &same.json()["conclusion"]["verdict"]), (0, &json!("pass")), "{same}");
    // A stricter assertion fails both with and without the skill.
    sandbox.write("totals/evals/evals.json", EVALS.replace("\"text\": \"42\"", "\"text\": \"43\""));
    let strict = eval(&sandbox, &words, |_| {});
    let results = strict.json();
    let trial = &results["cases"][0]["arms"]["with_skill"][0];
    assert_eq!(trial["outcome"], "failed", "{strict}");
    assert_eq!(results["comparisons"][0]["uplift"]["mean"], 87.5);
    let broken = eval(&sandbox, &["totals", "--replay", "nothing"], |_| {});
    assert!(broken.code == 2 && broken.stderr.contains("hint:"), "{broken}");
}

#[test]
fn trials_that_cannot_be_graded_are_invalid() {
    let sandbox = project(EVALS);
    let provider = Provider::new(ProviderBehavior::Script(with_rubbish_judge));
    let run = eval(&sandbox, &["totals", "--json"], |command| provider.of(command));
    let results = run.json();
    assert_eq!(results["conclusion"]["invalid_trials"], 6, "{run}");
    let trial = &results["cases"][1]["arms"]["with_skill"][0];
    assert_eq!((&trial["outcome"], &trial["score"]), (&json!("invalid"), &Value::Null));
    assert!(trial["reason"].as_str().expect("a reason").contains("no verdict: It depends."));
    assert_ne!(results["conclusion"]["verdict"], "pass", "half of the trials are missing");

    let evals = |command: &str| {
        json!({"evals": [{"prompt": "total?", "assertions": [
            {"type": "command", "command": command}]}]})
        .to_string()
    };
    for (command, reason) in [
        ("no-such-program --x", "a program is missing"),
        ("mkdir -p .claude && echo '{}' > .claude/settings.json", "protected file"),
    ] {
        let sandbox = project(&evals(command));
        let provider = Provider::new(ProviderBehavior::Script(capable));
        let run = eval(&sandbox, &["totals", "--trials", "1"], |command| provider.of(command));
        assert_eq!(run.code, 1, "{run}");
        assert!(run.stdout.contains(reason) && run.stderr.contains("no trial is valid"), "{run}");
    }
    // A command assertion cannot leave the sandbox, so a file of the user does not exist there.
    let secret = sandbox.write("home/secret.txt", "s");
    let sandbox = project(&evals(&format!("test -f {}", secret.display())));
    let provider = Provider::new(ProviderBehavior::Script(capable));
    let run =
        eval(&sandbox, &["totals", "--trials", "2", "--json"], |command| provider.of(command));
    assert_eq!(run.json()["cases"][0]["arms"]["with_skill"][0]["outcome"], "failed", "{run}");
}

#[test]
fn prices_are_differences_between_the_arms_in_every_report() {
    let sandbox = project(EVALS);
    let provider = Provider::new(ProviderBehavior::Script(capable));
    let words = ["totals", "--price", "1000/2000", "--output", "out"];
    let run = eval(&sandbox, &words, |command| provider.of(command));
    assert_eq!(run.code, 0, "{run}");
    let results: Value = serde_json::from_str(&sandbox.read("out/results.json")).expect("JSON");
    // The scripted model reports tokens only for final answers.
    let cost = &results["comparisons"][0]["cost"];
    let delta = cost["delta"].as_f64().expect("a cost");
    assert!(cost["arm"]["mean"].as_f64() > Some(0.0), "{run}");
    let shown = format!("{delta:+.4}");
    for file in ["out/report.md", "out/report.html"] {
        assert!(sandbox.read(file).contains(&shown), "{file}");
    }
    assert!(run.stdout.contains(&shown) && run.stdout.contains("DOLLARS"), "{run}");
    let benchmark: Value = serde_json::from_str(&sandbox.read("out/benchmark.json")).expect("JSON");
    assert_eq!(benchmark["run_summary"]["delta"]["cost"].as_f64(), Some(delta));
    assert!(benchmark["run_summary"]["delta"]["steps"].as_f64() > Some(0.0));
}

#[test]
fn budget_and_broken_model_make_trials_invalid() {
    let sandbox = project(EVALS);
    let provider = Provider::new(ProviderBehavior::Script(capable));
    let words = ["totals", "--max-tokens", "0"];
    let run = eval(&sandbox, &words, |command| provider.of(command));
    assert!(run.code == 1 && run.stdout.contains("the budget of 0 tokens is used up"), "{run}");
    assert_eq!(provider.questions().len(), 0);
    let refusing = Provider::new(ProviderBehavior::Refuses);
    let run = eval(&sandbox, &["totals"], |command| refusing.of(command));
    assert!(run.code == 1 && run.stdout.contains("the model failed"), "{run}");
    let none = eval(&sandbox, &["totals"], |_| {});
    assert!(none.code == 2 && none.stderr.contains("hint:"), "{none}");
}

#[test]
fn triggers_are_measured_with_catalogues_of_three_sizes() {
    let sandbox = project(EVALS);
    fs::remove_file(sandbox.path("totals/evals/evals.json")).expect("a file");
    let long = format!("Sums numbers. {}", "It knows many kinds of numbers. ".repeat(10));
    sandbox.write("totals/SKILL.md", SKILL.replace("Sums numbers. ", &long));
    sandbox.write(
        "totals/evals/triggers.json",
        r#"[{"query": "What is the total?", "should_trigger": true},
            {"query": "Add these up", "should_trigger": true},
            {"query": "Translate this", "should_trigger": false}]"#,
    );
    let provider = Provider::new(ProviderBehavior::Script(capable));
    let run =
        eval(&sandbox, &["totals", "--trials", "1", "--json"], |command| provider.of(command));
    assert_eq!(run.code, 0, "{run}");
    let results = run.json();
    let triggers = results["triggers"].as_array().expect("triggers");
    let sizes: Vec<_> = triggers.iter().map(|one| one["catalogue"].clone()).collect();
    assert_eq!(sizes, [1, 20, 100]);
    for one in triggers {
        assert_eq!((&one["precision"]["mean"], &one["recall"]["mean"]), (&json!(1.0), &json!(0.5)));
    }
    assert!(results["conclusion"]["gate"]["recall"].is_object(), "{run}");
    let gate = |condition: &str| {
        let words = ["totals", "--trials", "1", "--gate", condition];
        eval(&sandbox, &words, |command| provider.of(command))
    };
    let (low, high) = (gate("recall>=5"), gate("recall>=99 precision>50"));
    assert_eq!((low.code, high.code), (0, 1), "{low} {high}");
    assert!(low.stdout.contains("verdict        pass"), "{low}");
    assert!(high.stdout.contains("verdict        fail"), "{high}");
    // The list of a hundred skills fits into the preamble of Savoir's agent.
    assert_eq!((&triggers[0]["shown"], &triggers[2]["shown"]), (&json!("whole"), &json!("whole")));
}

#[test]
fn new_evaluations_never_replace_existing_ones() {
    let sandbox = project(EVALS);
    let taken = eval(&sandbox, &["new", "totals"], |_| {});
    assert!(taken.code == 2 && taken.stderr.contains("already exists"), "{taken}");
    assert_eq!(sandbox.read("totals/evals/evals.json"), EVALS);
    fs::remove_dir_all(sandbox.path("totals/evals")).expect("a folder");
    let missing = eval(&sandbox, &["totals"], |_| {});
    assert!(missing.code == 2 && missing.stderr.contains("savoir eval new"), "{missing}");
    let made = eval(&sandbox, &["new", "totals"], |_| {});
    assert_eq!(made.code, 0, "{made}");
    assert!(made.stderr.contains("then run: savoir eval totals\n"), "{made}");
    let text = sandbox.read("totals/evals/evals.json");
    assert!(text.contains("EDIT: Write the total into total.txt"), "{text}");
}

#[test]
fn mistakes_are_shown_before_anything_is_paid() {
    let sandbox =
        project("{\"evals\": [{\"prompt\": \"x\", \"assertions\": [{\"type\": \"comand\"}]}]}");
    let run = eval(&sandbox, &["totals"], |_| {});
    assert_eq!(run.code, 2, "{run}");
    assert!(run.stderr.contains("`comand` is not a type of assertion"), "{run}");
    assert!(run.stderr.contains("evals.json:1:") && run.stderr.contains("did you mean"), "{run}");
    let gate = eval(&sandbox, &["totals", "--gate", "speed>5"], |_| {});
    assert!(gate.code == 2 && gate.stderr.contains("speed>5"), "{gate}");
}

#[test]
fn judge_of_another_agent_needs_its_own_model() {
    let sandbox = project(EVALS);
    let run = eval(&sandbox, &["totals", "--host", "claude-code", "--model", "opus"], |_| {});
    assert!(run.code == 2 && run.stderr.contains("--judge PROVIDER:MODEL"), "{run}");
}

#[test]
fn signed_results_are_lost_when_the_skill_is_edited() {
    let sandbox = project(EVALS);
    let provider = Provider::new(ProviderBehavior::Script(capable));
    let run = eval(&sandbox, &["totals", "--output", "out"], |command| provider.of(command));
    assert_eq!(run.code, 0, "{run}");
    let as_user = |words: &[&str]| sandbox.run_as("home", "", words);
    let key = as_user(&["keys", "new", "ada"]);
    assert_eq!(key.code, 0, "{key}");
    let signed = as_user(&["eval", "sign", "out", "totals"]);
    assert_eq!(signed.code, 0, "{signed}");
    let state = |run: &Transcript| run.json()[0]["evaluations"][0].clone();
    let verified = as_user(&["verify", "./totals", "--json"]);
    assert_eq!(verified.code, 0, "{verified}");
    let found = state(&verified);
    assert_eq!(
        (&found["state"], &found["evaluation"]["verdict"]),
        (&json!("current"), &json!("pass"))
    );
    let shown = as_user(&["verify", "./totals"]);
    assert!(shown.stdout.contains("evaluated      pass, uplift +100.0"), "{shown}");
    // Changing the statement makes it invalid; changing the skill makes it outdated.
    let file = found["path"].as_str().expect("a path").to_owned();
    let text = sandbox.read(&file);
    let document: Value = serde_json::from_str(&text).expect("JSON");
    let mut changed = document.clone();
    changed["payload"] = json!("e30=");
    sandbox.write(&file, changed.to_string());
    let broken = as_user(&["verify", "./totals"]);
    assert_eq!(broken.code, 3, "{broken}");
    sandbox.write(&file, text);
    sandbox.write("totals/SKILL.md", SKILL.replace("Sums", "Adds"));
    let edited = as_user(&["verify", "./totals", "--json"]);
    assert_eq!(state(&edited)["state"], "other-files", "{edited}");
    let refused = as_user(&["eval", "sign", "out", "totals"]);
    assert!(refused.code == 1 && refused.stderr.contains("not as it was evaluated"), "{refused}");
}

#[test]
fn two_evaluations_are_compared() {
    let sandbox = project(EVALS);
    let provider = Provider::new(ProviderBehavior::Script(capable));
    let before = eval(&sandbox, &["totals", "--output", "before"], |command| provider.of(command));
    assert_eq!(before.code, 0, "{before}");
    sandbox.write("totals/SKILL.md", SKILL.replace("name: totals", "name: sums"));
    let words = ["totals", "--output", "after"];
    let after = eval(&sandbox, &words, |command| provider.of(command));
    assert_eq!(after.code, 0, "{after}");
    let diff = eval(&sandbox, &["diff", "before", "after"], |_| {});
    assert_eq!(diff.code, 0, "{diff}");
    assert!(diff.stdout.contains("case file: 100 % -> 0 %"), "{diff}");
    assert!(!diff.stdout.contains("description"), "{diff}");
    let new = SKILL.replace("Sums numbers.", "Adds up numbers.");
    sandbox.write("totals/SKILL.md", new);
    sandbox.write(
        "totals/evals/triggers.json",
        r#"[{"query": "What is the total?", "should_trigger": true}]"#,
    );
    let changed = eval(&sandbox, &["totals", "--output", "new"], |command| provider.of(command));
    assert_eq!(changed.code, 0, "{changed}");
    let diff = eval(&sandbox, &["diff", "before", "new"], |_| {});
    assert!(diff.stdout.contains("description    - Sums numbers."), "{diff}");
    assert!(diff.stdout.contains("               + Adds up numbers."), "{diff}");
    assert!(diff.stdout.contains("20 skills: precision"), "{diff}");
}
