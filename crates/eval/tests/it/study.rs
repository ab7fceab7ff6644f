//! Trials, grading, statistics, storage and replay together.

use std::{
    fs,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures::{
    StreamExt as _,
    future::BoxFuture,
    stream::{self, BoxStream},
};
use savoir_agent::skill_tools::SkillLoader;
use savoir_engine::{Home, RunError, loaded_skill::LoadedSkill, run_environment::RunEnvironment};
use savoir_eval::{
    formats,
    results::{Results, TrialOutcome},
    run::{
        Budget, Cache, EvaluatedSkill, Graders, Judge, SavoirHost, Study, read_recorded, replay,
        run,
    },
    stats::Verdict,
    store,
    trace::Arm,
};
use savoir_model::{
    ChatRequest, ChosenModel, Chunk, Finish, LanguageModel, Message, ModelError, ToolCall, Usage,
};
use savoir_skill::Folder;
use serde_json::json;

const SKILL: &str = "---\nname: totals\ndescription: Sums numbers. Use when the user wants a total.\n\
    ---\n\nWrite the total into total.txt.\n";
pub(crate) const EVALS: &str = r#"{"skill_name": "totals", "evals": [
    {"id": "file", "prompt": "What is the total of numbers.csv?", "files": ["evals/files/numbers.csv"],
     "assertions": [{"type": "contains", "path": "total.txt", "text": "42"},
       {"type": "command", "command": "test \"$(cat total.txt)\" = 42 && test -f numbers.csv"},
       {"type": "tool-called", "tool": "write_file"}]},
    {"id": "judged", "prompt": "What is the total of 40 and 2?", "assertions": ["The answer is 42"]}]}"#;
pub(crate) const TRIGGERS: &str = r#"[{"query": "What is the total?", "should_trigger": true},
    {"query": "Translate this", "should_trigger": false}]"#;

/// Uses the skill `totals` if it is listed and a total is wanted. As a judge, it looks for 42.
#[derive(Debug)]
struct Script {
    asked: AtomicUsize,
    judge: JudgeKind,
}

/// How it judges.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum JudgeKind {
    Fair,
    /// Its verdicts cannot be read.
    Rubbish,
    /// It passes what is shown after the statement.
    Biased,
    /// It never answers anything.
    Silent,
    /// Every answer takes some seconds.
    Slow,
}

/// The delay of a slow model.
const DELAY: Duration = Duration::from_secs(2);

impl LanguageModel for Script {
    fn answer(&self, request: ChatRequest) -> BoxStream<'static, Result<Chunk, ModelError>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        if self.judge == JudgeKind::Silent {
            return stream::pending().boxed();
        }
        let chunk = self.reply(&request);
        let usage = Chunk::Usage(Usage { input: 100, output: 10 });
        let answer = stream::iter([chunk, usage, Chunk::End(Finish::Stop)].map(Ok));
        if self.judge == JudgeKind::Slow {
            let wait = stream::once(tokio::time::sleep(DELAY)).filter_map(|()| async { None });
            return wait.chain(answer).boxed();
        }
        answer.boxed()
    }

    fn models(&self) -> BoxFuture<'_, Result<Vec<String>, ModelError>> {
        Box::pin(async { Ok(vec!["script".to_owned()]) })
    }
}

impl Script {
    fn reply(&self, request: &ChatRequest) -> Chunk {
        let (mut system, mut user, mut answers) = (String::new(), String::new(), 0);
        for message in &request.messages {
            match message {
                Message::System(text) => system.push_str(text),
                Message::User(text) => user.push_str(text),
                Message::Tool { .. } => answers += 1,
                Message::Assistant { .. } => {}
            }
        }
        let text = |text: &str| Chunk::Text(text.to_owned());
        if system.contains("You grade the work of an agent") {
            assert!(!user.contains("expected_output"), "the evaluations are not shown");
            let answer = user.split("## Last answer").nth(1).unwrap_or_default();
            let passed = answer.split("## Tool calls").next().unwrap_or_default().contains("42");
            let is_first = user.find("<statement") < user.find("<work");
            let passed = match self.judge {
                JudgeKind::Rubbish => return text("It depends."),
                JudgeKind::Biased => is_first,
                _ => passed,
            };
            let verdict = if passed { "pass" } else { "fail" };
            return text(&json!({"evidence": "it", "verdict": verdict}).to_string());
        }
        let call = |name: &str, arguments| {
            let (id, name) = (String::new(), name.to_owned());
            Chunk::ToolCall(ToolCall { id, name, arguments })
        };
        match (system.contains("- totals: ") && user.contains("total"), answers) {
            (true, 0) => call("use_skill", json!({"name": "totals"})),
            (true, 1) => call("write_file", json!({"path": "total.txt", "content": "42"})),
            (true, _) => text("The total is 42."),
            (false, _) => text("I do not know."),
        }
    }
}

/// The skill has no tools of its own.
#[derive(Debug)]
struct NoSkillFolders;

impl SkillLoader for NoSkillFolders {
    fn load_skill(&self, skill: &str) -> Result<LoadedSkill, RunError> {
        Err(RunError::call("no-skill", format!("there is no skill `{skill}`")))
    }
}

pub(crate) struct Stage {
    dir: tempfile::TempDir,
    script: Arc<Script>,
}

impl Stage {
    pub(crate) fn new(judge: JudgeKind, files: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let files =
            [&[("SKILL.md", SKILL), ("evals/files/numbers.csv", "40\n2\n")], files].concat();
        for (path, text) in files {
            let path = dir.path().join("totals").join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
            fs::write(path, text).expect("a file");
        }
        fs::create_dir(dir.path().join("home")).expect("a home");
        fs::write(dir.path().join("home/secret.txt"), "s").expect("a file");
        Self { dir, script: Arc::new(Script { asked: AtomicUsize::new(0), judge }) }
    }

    pub(crate) fn path(&self, name: &str) -> std::path::PathBuf {
        self.dir.path().join(name)
    }

    fn chosen(&self) -> ChosenModel {
        ChosenModel {
            provider: "script".to_owned(),
            model: "script".to_owned(),
            client: self.script.clone(),
        }
    }

    fn run_env(&self) -> RunEnvironment {
        RunEnvironment::at(self.dir.path(), &self.path("home"))
    }

    pub(crate) fn study(&self, trials: u32) -> Study {
        let folder = Folder::open(&self.path("totals")).expect("a skill");
        let reading = formats::read(&folder, "totals");
        assert!(!reading.has_errors(), "{:?}", reading.files);
        let cache = Cache::new(self.path("cache"), "this machine");
        let home = Home::at(&self.path("data"));
        let host = SavoirHost::new(self.chosen(), home, self.run_env(), Arc::new(NoSkillFolders));
        Study {
            set: reading.set,
            skill: EvaluatedSkill::read(folder.root(), "totals", None).expect("a skill"),
            folder,
            previous: None,
            decoys: Vec::new(),
            host: Arc::new(host),
            graders: Graders {
                judge: Some(Judge::new(self.chosen())),
                run_env: self.run_env(),
                cache: Some(cache.clone()),
            },
            cache: Some(cache),
            trials,
            trial_time: Duration::from_mins(1),
            parallel: 4,
            budget: Budget::default(),
            prices: None,
            gate: Some("uplift>=50 regressions=0".parse().expect("a gate")),
        }
    }

    fn asked(&self) -> usize {
        self.script.asked.load(Ordering::Relaxed)
    }
}

pub(crate) fn outcomes(results: &Results, case: usize, arm: Arm) -> Vec<TrialOutcome> {
    results.cases[case].arms[&arm].iter().map(|trial| trial.outcome).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_helpful_skill_passes_and_its_record_is_graded_again() {
    let stage = Stage::new(JudgeKind::Fair, &[("evals/evals.json", EVALS)]);
    let study = stage.study(3);
    let finished = run(&study, &|_, _| {}).await;
    let results = &finished.results;
    assert_eq!(outcomes(results, 0, Arm::WithSkill), [TrialOutcome::Passed; 3], "{results:?}");
    assert_eq!(outcomes(results, 0, Arm::WithoutSkill), [TrialOutcome::Failed; 3]);
    assert_eq!(outcomes(results, 1, Arm::WithSkill), [TrialOutcome::Passed; 3]);
    assert_eq!(results.conclusion.verdict, Verdict::Pass, "{:?}", results.conclusion);
    let trial = &results.cases[0].arms[&Arm::WithSkill][0];
    assert!(trial.used_skill && trial.steps == 3 && trial.usage.total() == 330, "{trial:?}");
    // The same study again asks nothing.
    let asked = stage.asked();
    let again = run(&study, &|_, _| {}).await.results;
    assert_eq!((stage.asked(), again.spent.paid.total()), (asked, 0));
    assert_eq!(again.conclusion, results.conclusion);
    let folder = stage.path("out");
    store::write_results(&folder, results, &finished.traces).expect("files");
    let recorded = read_recorded(&folder).expect("a record");
    assert_eq!(recorded.traces.len(), 12);
    let graders = Graders { judge: None, run_env: stage.run_env(), cache: None };
    let replayed = replay(&recorded, &study.set, &graders, None).await;
    assert_eq!(replayed.conclusion, results.conclusion);
    assert_eq!(stage.asked(), asked, "no model is asked");
}

#[tokio::test(flavor = "multi_thread")]
async fn trials_that_cannot_be_graded_are_invalid() {
    let stage = Stage::new(JudgeKind::Rubbish, &[("evals/evals.json", EVALS)]);
    let results = run(&stage.study(2), &|_, _| {}).await.results;
    assert_eq!(outcomes(&results, 1, Arm::WithSkill), [TrialOutcome::Invalid; 2]);
    let reason = results.cases[1].arms[&Arm::WithSkill][0].reason.clone().expect("a reason");
    assert!(reason.contains("no verdict: It depends."), "{reason}");
    assert_eq!(results.conclusion.invalid_trials, 4);
    assert_ne!(results.conclusion.verdict, Verdict::Pass);
    for (command, expected, reason) in [
        ("no-such-program --x", TrialOutcome::Invalid, "a program is missing"),
        ("sleep 1; exit 3", TrialOutcome::Failed, ""),
        ("mkdir -p .git/hooks && echo x > .git/hooks/pre-commit", TrialOutcome::Invalid, ""),
        ("test ! -e ~/.ssh", TrialOutcome::Passed, ""),
        ("cat $HOME/secret.txt", TrialOutcome::Invalid, "read outside of the workspace"),
        ("cat $HOME/secret.txt || true", TrialOutcome::Passed, ""),
        ("echo x > /var/tmp/savoir-grader || true", TrialOutcome::Invalid, "write outside"),
    ] {
        let evals = json!({"evals": [{"prompt": "total?", "assertions": [
            {"type": "command", "command": command}]}]});
        let stage = Stage::new(JudgeKind::Fair, &[("evals/evals.json", &evals.to_string())]);
        let results = run(&stage.study(1), &|_, _| {}).await.results;
        let trial = &results.cases[0].arms[&Arm::WithSkill][0];
        assert_eq!(trial.outcome, expected, "{command}: {trial:?}");
        assert!(trial.reason.as_deref().unwrap_or_default().contains(reason), "{trial:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_used_up_budget_starts_no_trial() {
    let stage = Stage::new(JudgeKind::Fair, &[("evals/evals.json", EVALS)]);
    let study = Study { budget: Budget { tokens: Some(0), ..Budget::default() }, ..stage.study(2) };
    let results = run(&study, &|_, _| {}).await.results;
    assert_eq!((stage.asked(), results.conclusion.invalid_trials), (0, 8));
    assert_eq!(results.conclusion.verdict, Verdict::Underpowered);
}

#[tokio::test(flavor = "multi_thread")]
async fn triggers_are_measured_in_catalogues_of_three_sizes() {
    let stage = Stage::new(JudgeKind::Fair, &[("evals/triggers.json", TRIGGERS)]);
    let results = run(&stage.study(1), &|_, _| {}).await.results;
    let sizes: Vec<usize> = results.triggers.iter().map(|one| one.catalogue).collect();
    assert_eq!(sizes, [1, 20, 100]);
    for one in &results.triggers {
        let mean = |interval: Option<savoir_eval::stats::Interval>| interval.map(|one| one.mean);
        assert_eq!((mean(one.precision), mean(one.recall)), (Some(1.0), Some(1.0)), "{one:?}");
    }
    assert!(Path::new(&stage.path("cache")).is_dir());
    assert_eq!(stage.asked(), 6, "a trial ends when the skill is used");
    assert_eq!(results.conclusion.all_trials, 6);
    assert_eq!(results.conclusion.verdict, Verdict::Underpowered, "one query decides nothing");
    // The same queries with a condition about the arms, which were not run.
    let study = Study { gate: None, ..stage.study(1) };
    let alone = run(&study, &|_, _| {}).await.results.conclusion;
    assert!(alone.gate.recall.is_some() && alone.gate.uplift.is_none(), "{alone:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_third_vote_decides_when_the_swapped_ones_disagree() {
    let stage = Stage::new(JudgeKind::Biased, &[("evals/evals.json", EVALS)]);
    let results = run(&stage.study(1), &|_, _| {}).await.results;
    let graded = &results.cases[1].arms[&Arm::WithoutSkill][0].grading.results[0];
    assert!(graded.evidence.starts_with("2 of 3 votes"), "{graded:?}");
    let fair = Stage::new(JudgeKind::Fair, &[("evals/evals.json", EVALS)]);
    let results = run(&fair.study(1), &|_, _| {}).await.results;
    let graded = &results.cases[1].arms[&Arm::WithoutSkill][0].grading.results[0];
    assert!(graded.evidence.starts_with("2 of 2 votes"), "{graded:?}");
    assert_eq!(stage.asked(), fair.asked() + 2, "one vote more in each arm");
}

#[tokio::test(flavor = "multi_thread")]
async fn trials_that_lack_something_are_invalid_with_their_reason() {
    let evals = [("evals/evals.json", EVALS)];
    let reason = |results: &Results| {
        let trial = &results.cases[0].arms[&Arm::WithSkill][0];
        assert_eq!(trial.outcome, TrialOutcome::Invalid, "{trial:?}");
        trial.reason.clone().expect("a reason")
    };
    let silent = Stage::new(JudgeKind::Silent, &evals);
    let study = Study { trial_time: Duration::from_secs(1), ..silent.study(1) };
    let late = reason(&run(&study, &|_, _| {}).await.results);
    assert!(late.contains("did not finish"), "{late}");
    let tool = r#"[{"prompt": "total?", "assertions": [{"type": "tool-called", "tool": "Bash"}]}]"#;
    let stage = Stage::new(JudgeKind::Fair, &[("evals/cases.json", tool)]);
    let unknown = reason(&run(&stage.study(1), &|_, _| {}).await.results);
    assert!(unknown.contains("the agent has no tool `Bash`"), "{unknown}");
    let platform = r#"{"resources": {"platforms": {"L40S": {}}},
        "expects": [{"query": "Deploy", "checks": ["It is up"]}]}"#;
    let stage = Stage::new(JudgeKind::Fair, &[("evals/base.json", platform)]);
    let missing = reason(&run(&stage.study(1), &|_, _| {}).await.results);
    assert_eq!(missing, "it needs the platform L40S, which a trial does not have");
    assert_eq!(stage.asked(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cache_of_another_machine_is_refused() {
    let stage = Stage::new(JudgeKind::Fair, &[("evals/evals.json", EVALS)]);
    run(&stage.study(1), &|_, _| {}).await;
    let asked = stage.asked();
    let other = Cache::new(stage.path("cache"), "another machine");
    let study = Study { cache: Some(other), ..stage.study(1) };
    let results = run(&study, &|_, _| {}).await.results;
    assert_eq!((results.conclusion.invalid_trials, stage.asked()), (4, asked));
    let reason = results.cases[0].arms[&Arm::WithSkill][0].reason.clone().expect("a reason");
    assert!(reason.contains("another machine") && reason.contains("--replay"), "{reason}");
    // A longer time limit is another trial.
    let study = Study { trial_time: Duration::from_secs(61), ..stage.study(1) };
    run(&study, &|_, _| {}).await;
    assert!(stage.asked() > asked);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_recorded_trials_are_graded_in_two_seconds() {
    let evals = r#"{"evals": [
        {"id": "file", "prompt": "What is the total of numbers.csv?", "files": ["evals/files/numbers.csv"],
         "assertions": [{"type": "contains", "path": "total.txt", "text": "42"},
           {"type": "tool-called", "tool": "write_file"}]}]}"#;
    let stage = Stage::new(JudgeKind::Fair, &[("evals/evals.json", evals)]);
    let study = stage.study(1);
    let finished = run(&study, &|_, _| {}).await;
    let (mut results, mut traces) = (finished.results, finished.traces);
    assert!(results.cases[0].arms[&Arm::WithSkill][0].grading.results.len() == 2, "{results:?}");
    let again = |trial: u32| {
        traces.iter().map(move |trace| savoir_eval::trace::Trace { trial, ..trace.clone() })
    };
    let all: Vec<_> = (0..500).flat_map(again).collect();
    traces = all;
    for trials in results.cases.iter_mut().flat_map(|case| case.arms.values_mut()) {
        let first = trials[0].clone();
        *trials = (0..500)
            .map(|trial| savoir_eval::results::TrialResult { trial, ..first.clone() })
            .collect();
    }
    let recorded = savoir_eval::run::Recorded { results, traces };
    let graders = Graders { judge: None, run_env: stage.run_env(), cache: None };
    let began = std::time::Instant::now();
    let replayed = replay(&recorded, &study.set, &graders, None).await;
    let each = began.elapsed().as_secs_f64() * 1e3 / 1_000.0;
    assert_eq!(outcomes(&replayed, 0, Arm::WithSkill), [TrialOutcome::Passed; 500]);
    print_measured(&format!("regrading: {each:.3} ms for each of 1,000 recorded trials"));
    assert!(each < 2.0, "{each} ms");
}

/// Measures how much time the harness takes beside the model. It needs a machine that does nothing
/// else, so `make soak` runs it.
#[tokio::test(flavor = "multi_thread")]
async fn the_harness_takes_less_than_five_percent_of_the_time_of_the_model() {
    if std::env::var_os("SAVOIR_TEST_SOAK").is_none() {
        print_measured(
            "=== SKIPPED: the overhead of the harness, since SAVOIR_TEST_SOAK is not set ===",
        );
        return;
    }
    // One request for each trial, so that no slot waits for a longer trial.
    let evals = r#"[{"prompt": "Hello", "files": ["evals/files/numbers.csv"],
        "assertions": [{"type": "contains", "text": "know"}]}]"#;
    let stage = Stage::new(JudgeKind::Slow, &[("evals/cases.json", evals)]);
    let study = Study { parallel: 8, ..stage.study(32) };
    let began = std::time::Instant::now();
    let results = run(&study, &|_, _| {}).await.results;
    let took = began.elapsed().as_secs_f64();
    assert_eq!(results.conclusion.invalid_trials, 0, "{:?}", results.conclusion);
    let ideal =
        f64::from(u32::try_from(stage.asked()).expect("a count")) * DELAY.as_secs_f64() / 8.0;
    let overhead = 100.0 * (took / ideal - 1.0);
    print_measured(&format!("{took:.1} s for {ideal:.1} s of the model: {overhead:.1} % overhead"));
    assert!(overhead < 5.0, "{overhead} %");
}

#[expect(clippy::print_stderr, reason = "a figure, and a test that was skipped, must be seen")]
fn print_measured(text: &str) {
    eprintln!("{text}");
}
