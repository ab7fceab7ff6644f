//! Tests the tools of skills in whole turns: they are offered once their skill is in use, need
//! approval like any other run, run in the real sandbox, and are recorded.

use std::{
    fs,
    path::PathBuf,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures::future::BoxFuture;
use savoir_agent::{
    consent::{Asker, Consent},
    skill_tools::{SkillLoader, SkillToolEnvironment, SkillTools},
};
use savoir_engine::{
    Home, RunError,
    approval::{ApprovalQuestion, Trust},
    loaded_skill::LoadedSkill,
    record::RunRecords,
    run_environment::RunEnvironment,
};
use savoir_package::trust::TrustStore;
use savoir_sandbox::SandboxSupport;
use savoir_skill::{Folder, Source, read};
use serde_json::{Value, json};

use super::stage::{Stage, TurnReport, call, use_skill};

/// Loads skills from the folder of a stage.
#[derive(Debug)]
struct InFolder(PathBuf);

impl SkillLoader for InFolder {
    fn load_skill(&self, skill: &str) -> Result<LoadedSkill, RunError> {
        let (folder, file) = (self.0.join(skill), self.0.join(skill).join("SKILL.md"));
        let bytes = fs::read(&file).map_err(|error| RunError::call("unknown-skill", error))?;
        let source = Source::from_bytes(bytes).expect("text");
        let opened = Folder::open(&folder).expect("a folder");
        let reading = read(source, Some(&opened));
        let store = TrustStore::default();
        Ok(LoadedSkill::new(&reading, &file, Some(&folder), Trust::User, &store)?)
    }
}

/// Gives the same answer to every question, and stores the questions.
#[derive(Debug)]
struct Person(Consent, Mutex<Vec<ApprovalQuestion>>);

impl Asker for Person {
    fn ask<'a>(&'a self, question: &'a ApprovalQuestion) -> BoxFuture<'a, Consent> {
        self.1.lock().expect("a lock").push(question.clone());
        Box::pin(async { self.0 })
    }
}

/// A stage with a skill that has tools.
struct Bringing {
    stage: Stage,
    person: Arc<Person>,
    home: Home,
}

/// Writes a gibb.eri.sh skill whose tool runs a program that exists on every machine.
fn skill(stage: &mut Stage, name: &str, lines: &str, word: &str) {
    let body = format!(
        "# {name}\n\n### hello\n\nSay hello.\n\n#### Parameters\n\nNone.\n\n#### Command\n\n\
         ```bash\necho \"{word}\"\n```\n"
    );
    stage.skill(name, format!("version: 1.0.0\nread_only: true\n{lines}").trim_end(), &body);
}

impl Bringing {
    fn new(consent: Consent, mode: &str) -> Self {
        let mut stage = Stage::new();
        skill(&mut stage, "greeter", "", "hello world");
        skill(&mut stage, "developer", "modes:\n  - Dev", "for developers");
        let root = stage.folder().canonicalize().expect("a folder");
        fs::create_dir_all(root.join("work")).expect("a folder");
        let home = Home::at(&root.join("savoir"));
        let person = Arc::new(Person(consent, Mutex::default()));
        let skill_tool_environment = SkillToolEnvironment {
            skill_loader: Arc::new(InFolder(root.join("skills"))),
            asker: person.clone(),
            home: home.clone(),
            run_env: RunEnvironment::at(&root.join("work"), &root.join("home")).keeping(&home),
            mode: mode.to_owned(),
        };
        stage.skill_tools = Some(Arc::new(SkillTools::new(skill_tool_environment)));
        Self { stage, person, home }
    }

    fn asked(&self) -> usize {
        self.person.1.lock().expect("a lock").len()
    }

    fn records(&self) -> Vec<Value> {
        let listing = RunRecords::new(&self.home).list(100).expect("records");
        listing.records.iter().map(|one| serde_json::to_value(one).expect("JSON")).collect()
    }

    /// Loads the skill, then calls its tool several times, one call after the other.
    async fn greet(&mut self, times: usize) -> TurnReport {
        self.stage.says([use_skill("greeter")]);
        for _ in 0..times {
            self.stage.says([call("greeter__hello", json!({}))]);
        }
        self.stage.turn().await
    }
}

fn can_run() -> bool {
    let held = SandboxSupport::detect().sandbox.is_available();
    if !held {
        eprintln!("SKIPPED: this machine has no sandbox");
    }
    held
}

fn envelope(answer: &str) -> Value {
    let (origin, data) = answer.split_once('\n').expect("two lines");
    assert!(
        origin.starts_with("[origin: tool `greeter__hello` of the skill `greeter`"),
        "{origin}"
    );
    serde_json::from_str(data).unwrap_or_else(|_| panic!("{answer}"))
}

#[tokio::test]
async fn tool_is_offered_after_use_skill_and_runs_after_consent() {
    if !can_run() {
        return;
    }
    let mut bringing = Bringing::new(Consent::Once, "Global");
    let outcome = bringing.greet(2).await;
    assert!(!outcome.offered(0).contains(&"greeter__hello"));
    assert!(outcome.offered(1).contains(&"greeter__hello"));
    assert!(
        outcome.answers[0].contains("\"tools\":[\"greeter__hello\"]"),
        "{}",
        outcome.answers[0]
    );
    let answer = envelope(&outcome.answers[1]);
    assert_eq!((&answer["success"], &answer["output"]), (&json!(true), &json!("hello world")));
    assert_eq!(bringing.asked(), 2, "a yes is for one run");
    let records = bringing.records();
    assert_eq!(records.len(), 2);
    assert!(
        records.iter().all(|one| one["decision"]["verdict"] == "once" && one["success"] == true)
    );
}

#[tokio::test]
async fn lasting_consent_ends_when_the_skill_changes() {
    if !can_run() {
        return;
    }
    let mut bringing = Bringing::new(Consent::Always, "Global");
    bringing.greet(2).await;
    assert_eq!(bringing.asked(), 1);
    skill(&mut bringing.stage, "greeter", "", "something else");
    let outcome = bringing.greet(1).await;
    assert_eq!(bringing.asked(), 2, "what was agreed to is not there any more");
    assert_eq!(envelope(&outcome.answers[1])["output"], "something else");
}

#[tokio::test]
async fn without_consent_nothing_runs_and_the_model_gets_an_error() {
    for (consent, code, hint) in [
        (Consent::Declined, "declined", "ask the user what they want instead"),
        (Consent::Unanswered, "declined", "savoir approve "),
        (Consent::Nobody, "approval-needed", "savoir approve "),
    ] {
        let mut bringing = Bringing::new(consent, "Global");
        let outcome = bringing.greet(1).await;
        let mark = format!("failed: {code}]");
        assert!(
            outcome.answers[1].lines().next().unwrap().ends_with(&mark),
            "{}",
            outcome.answers[1]
        );
        assert!(outcome.answers[1].contains(hint), "{}", outcome.answers[1]);
        let records = bringing.records();
        assert_eq!(records.len(), 1, "what was not run is written down, too");
        assert_eq!(records[0]["decision"]["verdict"], "declined");
        assert_eq!(records[0]["success"], false);
    }
}

#[tokio::test]
async fn allow_list_is_checked_before_the_question() {
    let mut bringing = Bringing::new(Consent::Once, "Global");
    bringing.stage.skill("reader", "allowed-tools: Read", "Read.");
    bringing.stage.says([use_skill("greeter")]).says([use_skill("reader")]);
    bringing.stage.says([call("greeter__hello", json!({}))]);
    let outcome = bringing.stage.turn().await;
    assert!(outcome.answers[2].contains("failed: tool-not-allowed"), "{}", outcome.answers[2]);
    assert_eq!((bringing.asked(), bringing.records().len()), (0, 0));
}

#[tokio::test]
async fn new_tools_cannot_be_called_in_the_same_reply() {
    let mut bringing = Bringing::new(Consent::Once, "Global");
    bringing.stage.says([use_skill("greeter"), call("greeter__hello", json!({}))]);
    let outcome = bringing.stage.turn().await;
    assert!(outcome.answers[1].contains("failed: unknown-tool"), "{}", outcome.answers[1]);
    assert_eq!(bringing.asked(), 0);
}

#[tokio::test]
async fn mode_filters_the_tools_of_skills() {
    for (mode, offered) in [("Global", false), ("Meeting", false), ("Dev", true)] {
        let mut bringing = Bringing::new(Consent::Nobody, mode);
        bringing.stage.says([use_skill("developer"), use_skill("greeter")]);
        bringing.stage.says([call("developer__hello", json!({}))]);
        let outcome = bringing.stage.turn().await;
        assert_eq!(outcome.offered(1).contains(&"developer__hello"), offered, "{mode}");
        assert!(outcome.offered(1).contains(&"greeter__hello"), "{mode}");
        let code = if offered { "approval-needed" } else { "unknown-tool" };
        assert!(
            outcome.answers[2].contains(&format!("failed: {code}")),
            "{mode}: {}",
            outcome.answers[2]
        );
    }
}

#[tokio::test]
async fn invalid_arguments_are_reported() {
    let mut bringing = Bringing::new(Consent::Once, "Global");
    bringing.stage.says([use_skill("greeter")]);
    bringing.stage.says([call("greeter__hello", json!({"whom": "you"}))]);
    let outcome = bringing.stage.turn().await;
    assert!(outcome.answers[1].contains("whom"), "{}", outcome.answers[1]);
    assert!(outcome.answers[1].contains("failed: "), "{}", outcome.answers[1]);
    assert_eq!(bringing.asked(), 0, "what cannot be called is not asked about");
}

/// Writes a skill whose atomic tool writes a word repeatedly, from two processes.
fn beater(stage: &mut Stage) {
    let lines = "version: 1.0.0\nauthor: Tests\nlicense: MIT\n\
        permissions:\n  - filesystem:write:./out/**\ntools:\n  - name: beat\n    \
        description: Write a word\n    parameters:\n      word: {type: string, required: true}\n      \
        times: {type: integer, required: true}\n    returns: {type: object}\n    atomic: true\n\
        security_tier: experimental";
    stage.skill("beater", lines, "Write.");
    let tools = "import os\nimport time\n\nfrom gaia.agents.base.tools import tool\n\n\n\
        @tool\ndef beat(word: str, times: int) -> dict:\n    \"\"\"Write a word.\"\"\"\n    os.makedirs('out', exist_ok=True)\n    child = os.fork()\n    for _ in range(times):\n        \
        with open('out/log', 'a') as log:\n            log.write(word + '\\n')\n        \
        time.sleep(0.05)\n    if child == 0:\n        os._exit(0)\n    return {}\n";
    stage.file("beater/tools.py", tools.as_bytes());
}

#[tokio::test]
async fn cancelled_atomic_run_blocks_others_until_it_ends() {
    if !can_run() {
        return;
    }
    let mut bringing = Bringing::new(Consent::Always, "Global");
    beater(&mut bringing.stage);
    bringing.stage.limits.call = Duration::from_secs(5);
    let beat = |word: &str, times: u32| call("beater__beat", json!({"word": word, "times": times}));
    bringing.stage.says([use_skill("beater")]);
    bringing.stage.says([beat("first", 600)]).says([beat("second", 1)]);
    let outcome = bringing.stage.turn().await;
    assert!(outcome.answers[1].contains("failed: tool-timeout"), "{:?}", outcome.answers);
    assert!(!outcome.answers[2].contains("failed: "), "{:?}", outcome.answers);
    tokio::time::sleep(Duration::from_millis(500)).await;
    let log = fs::read_to_string(bringing.stage.folder().join("work/out/log")).unwrap();
    let words: Vec<&str> = log.lines().collect();
    let second = words.iter().position(|word| *word == "second").expect("the second");
    assert!(second > 0, "the first did not begin");
    assert!(words[second..].iter().all(|word| *word == "second"), "{words:?}");
    let codes: Vec<_> = bringing.records().iter().map(|one| one["error"]["code"].clone()).collect();
    assert!(codes.contains(&json!("stopped")), "{codes:?}");
}

#[tokio::test]
async fn tools_of_a_fork_are_not_offered_to_its_caller() {
    if !can_run() {
        return;
    }
    let mut bringing = Bringing::new(Consent::Once, "Global");
    bringing.stage.skill("away", "context: fork", "Greet from afar.");
    bringing.stage.says([use_skill("away")]);
    bringing.stage.apart([use_skill("greeter")]).apart([call("greeter__hello", json!({}))]);
    bringing.stage.says([call("greeter__hello", json!({}))]);
    let outcome = bringing.stage.turn().await;
    assert!(outcome.offered(2).contains(&"greeter__hello"), "{:?}", outcome.offered(2));
    assert_eq!((bringing.asked(), bringing.records().len()), (1, 1), "{:?}", outcome.answers);
    assert!(outcome.answers[1].contains("failed: unknown-tool"), "{}", outcome.answers[1]);
}
