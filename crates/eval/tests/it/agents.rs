//! Trials with an agent that others wrote: here a script that behaves like one.

use std::{fs, os::unix::fs::PermissionsExt as _, sync::Arc, time::Duration};

use savoir_eval::{
    results::{Results, TrialOutcome},
    run::{AgentHost, Study, run},
    trace::{Arm, Trace},
    trigger::ShownSkill,
};

use crate::study::{JudgeKind, Stage, TRIGGERS, outcomes};

const EVALS: &str = r#"[{"id": "total", "prompt": "What is the total of numbers.csv?",
    "files": ["evals/files/numbers.csv"],
    "assertions": [{"type": "contains", "path": "total.txt", "text": "42"}]}]"#;

/// Uses the skill if it is placed and a total is wanted, and tells what it sees of the machine.
const CLAUDE: &str = r#"#!/bin/sh
if [ "$1" = --version ]; then echo "2.1.0 (Claude Code)"; exit 0; fi
prompt=$(cat)
echo "$ANTHROPIC_API_KEY" > key.txt
cat SECRET > secret.txt 2>/dev/null
ls "$HOME/.claude/skills" >> secret.txt 2>/dev/null
case "$prompt" in
*hang*) sleep 60;;
*refuse*) echo '{"type":"result","is_error":true,"result":"Invalid API key"}'; exit 1;;
*total*)
  if [ -f .claude/skills/totals/SKILL.md ]; then
    echo '{"type":"assistant","message":{"content":[{"type":"tool_use","id":"1","name":"Skill","input":{"skill":"totals"}}]}}'
    case "$prompt" in *"the total?") sleep 60;; esac
    echo 42 > total.txt
  fi;;
esac
echo '{"type":"assistant","message":{"content":[{"type":"text","text":"Done."}]}}'
echo '{"type":"result","subtype":"success","is_error":false,"result":"Done.","usage":{"input_tokens":7,"output_tokens":3}}'
"#;

fn agent_study(stage: &Stage, trials: u32) -> Study {
    let secret = stage.path("home/secret.txt");
    let bin = stage.path("bin");
    fs::create_dir_all(&bin).expect("a folder");
    let program = bin.join("claude");
    fs::write(&program, CLAUDE.replace("SECRET", &secret.display().to_string()))
        .expect("a program");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("a mode");
    let variable = |name: &str| match name {
        "PATH" => Some(format!("{}:/usr/bin:/bin", bin.display())),
        "ANTHROPIC_BASE_URL" => Some("http://127.0.0.1:9".to_owned()),
        "ANTHROPIC_API_KEY" => Some("sk-secret".to_owned()),
        _ => None,
    };
    let host = AgentHost::find("claude-code", None, &variable).expect("an agent");
    Study { host: Arc::new(host), ..stage.study(trials) }
}

fn file(trace: &Trace, path: &str) -> String {
    let bytes =
        trace.file(path).and_then(savoir_eval::trace::RecordedFile::bytes).unwrap_or_default();
    String::from_utf8(bytes).expect("text")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_runs_in_the_sandbox_with_the_skill_in_its_folder() {
    let stage = Stage::new(JudgeKind::Fair, &[("evals/cases.json", EVALS)]);
    let finished = run(&agent_study(&stage, 2), &|_, _| {}).await;
    let results = &finished.results;
    assert_eq!(outcomes(results, 0, Arm::WithSkill), [TrialOutcome::Passed; 2], "{results:?}");
    assert_eq!(outcomes(results, 0, Arm::WithoutSkill), [TrialOutcome::Failed; 2]);
    let trial = &results.cases[0].arms[&Arm::WithSkill][0];
    assert!(trial.used_skill && trial.usage.total() == 10, "{trial:?}");
    assert_eq!(
        (results.host.name.as_str(), results.host.version.as_str()),
        ("claude-code", "2.1.0")
    );
    assert_eq!(results.sandbox.network, "http://127.0.0.1:9");
    // The key stays outside, and so do the files of the user.
    for trace in &finished.traces {
        assert!(!file(trace, "key.txt").contains("sk-secret"), "{trace:?}");
        assert_eq!(file(trace, "secret.txt"), "");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_fails_or_hangs_makes_its_trial_invalid() {
    let reason = |results: &Results| {
        let trial = &results.cases[0].arms[&Arm::WithSkill][0];
        assert_eq!(trial.outcome, TrialOutcome::Invalid, "{trial:?}");
        trial.reason.clone().expect("a reason")
    };
    for (word, seconds, expected) in [
        ("refuse", 60, "claude-code failed: Invalid API key"),
        ("hang", 1, "the agent did not finish within 1 s"),
    ] {
        let evals = EVALS.replace("What is the total of numbers.csv?", word);
        let stage = Stage::new(JudgeKind::Fair, &[("evals/cases.json", &evals)]);
        let time = Duration::from_secs(seconds);
        let study = Study { trial_time: time, ..agent_study(&stage, 1) };
        assert_eq!(reason(&run(&study, &|_, _| {}).await.results), expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trigger_trial_ends_when_the_agent_uses_the_skill() {
    let stage = Stage::new(JudgeKind::Fair, &[("evals/triggers.json", TRIGGERS)]);
    let began = std::time::Instant::now();
    let results = run(&agent_study(&stage, 1), &|_, _| {}).await.results;
    assert!(began.elapsed() < Duration::from_secs(50), "the agent would sleep for a minute");
    for one in &results.triggers {
        assert_eq!(one.recall.expect("a share").mean.to_string(), "1", "{one:?}");
        assert_eq!(one.precision.expect("a share").mean.to_string(), "1", "{one:?}");
    }
    // The rules of Claude Code show a short description whole.
    assert_eq!(results.triggers[0].shown, ShownSkill::Whole);
}
