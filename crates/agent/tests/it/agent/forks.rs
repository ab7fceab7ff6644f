//! Tests skills that run in a fork.

use savoir_agent::turn::{ForkMode, Limit, TurnEnd};
use savoir_model::{Chunk, Message, Usage};
use serde_json::{Value, json};

use super::stage::{Stage, TurnReport, call, command, use_skill};

const FORK: &str = "context: fork\nallowed-tools: Read";

fn text(words: &str) -> Chunk {
    Chunk::Text(words.to_owned())
}

fn read() -> Chunk {
    call("read_file", json!({"path": "a"}))
}

/// The indexes of the requests that forks sent.
fn questions_apart(outcome: &TurnReport) -> Vec<usize> {
    let is_apart = |message: &Message| matches!(message, Message::System(text) if text.contains("You carry out one skill"));
    (0..outcome.asked.len()).filter(|at| is_apart(&outcome.asked[*at].messages[0])).collect()
}

fn result(answer: &str) -> Value {
    let (_, data) = answer.split_once('\n').expect("two lines");
    serde_json::from_str(data).expect("JSON")
}

#[tokio::test]
async fn fork_returns_a_short_result() {
    let mut stage = Stage::new();
    stage.skill("report", FORK, "Collect, then write.");
    stage.says([text("One moment."), use_skill("report")]);
    stage.apart([text("thinking aloud"), read()]).apart([text("All is well.")]);
    stage.says([text("The report says: all is well.")]);
    let outcome = stage.hear("The weekly report, please.").await;
    assert!(matches!(outcome.ended, TurnEnd::Answered));
    assert_eq!(outcome.names(), ["read_file"]);
    assert_eq!(
        result(&outcome.answers[0]),
        json!({"name": "report", "context_fork": true, "result": "All is well.",
               "ended": "answered", "steps": 2})
    );
    // A fork has its own history: the task and the instructions, without the conversation.
    let [first, _] = questions_apart(&outcome)[..] else { panic!("two questions") };
    let asked = &outcome.asked[first].messages;
    assert_eq!(asked.len(), 2);
    let Message::User(order) = &asked[1] else { panic!("no order") };
    assert!(order.contains("The task:\nThe weekly report, please.\n"), "{order}");
    assert!(order.contains("[origin: skill `report`]\n{"), "{order}");
    assert!(order.contains("Collect, then write."), "{order}");
    // Intermediate text of the fork is not part of the answer.
    let words: String = outcome
        .events
        .iter()
        .filter(|event| event.name() == "token")
        .filter_map(|event| event.data()["content"].as_str().map(str::to_owned))
        .collect();
    assert_eq!(words, "One moment.The report says: all is well.");
    let inner =
        outcome.thoughts().into_iter().find(|one| one.member("tool") == Some(&json!("read_file")));
    assert_eq!(inner.unwrap().member("skill"), Some(&json!("report")));
}

#[tokio::test]
async fn fork_does_not_change_the_list_of_its_caller() {
    let mut stage = Stage::new();
    stage.skill("report", FORK, "Do.").skill("writer", "allowed-tools: Write", "Write.");
    stage.skill("free", "context: fork", "Anything.");
    // The caller has no list, and still has none after the fork, although the forked skill has one.
    stage.says([use_skill("report")]).says([command("ls")]);
    assert_eq!(stage.turn().await.names(), ["run_command"]);
    // The caller has a list, which still applies after the fork, although the forked skill has
    // none.
    stage.says([use_skill("writer")]).says([use_skill("free"), command("at once")]);
    stage.apart([text("done")]);
    stage.says([command("later"), read(), call("write_file", json!({"path": "a"}))]);
    let outcome = stage.turn().await;
    assert_eq!(outcome.names(), ["write_file"]);
    assert!(outcome.answers[2].contains("tool-not-allowed"), "{}", outcome.answers[2]);
}

#[tokio::test]
async fn fork_is_limited_by_the_list_of_its_caller() {
    let mut stage = Stage::new();
    stage.skill("reader", "allowed-tools: Read", "Read.");
    stage.skill("free", "context: fork", "Anything.");
    stage.skill("runner", "context: fork\nallowed-tools: Bash Read", "Run.");
    // A skill that may only read starts forks of skills that may do more.
    stage.says([use_skill("reader")]);
    stage.says([use_skill("free"), use_skill("runner")]);
    for _ in 0..2 {
        stage.apart([command("id"), read()]).apart([text("done")]);
    }
    let outcome = stage.turn().await;
    assert!(!outcome.names().contains(&"run_command"), "{:?}", outcome.names());
    assert!(outcome.names().contains(&"read_file"), "{:?}", outcome.names());
    for at in questions_apart(&outcome) {
        assert!(!outcome.offered(at).contains(&"run_command"), "{at}");
    }
}

#[tokio::test]
async fn list_of_the_skill_applies_to_the_whole_fork() {
    let mut stage = Stage::new();
    stage.skill("report", FORK, "Do.").skill("free", "", "Anything.");
    stage.skill("runner", "allowed-tools: Bash", "Run.");
    stage.says([use_skill("report")]);
    stage.apart([command("first")]);
    stage.apart([use_skill("free"), command("second")]).apart([command("third"), read()]);
    stage.apart([use_skill("runner")]).apart([command("fourth"), read()]);
    let outcome = stage.turn().await;
    // Both the fork's list and the skill without a list allow reading. The last skill allows only
    // what the fork's list forbids.
    assert_eq!(outcome.names(), ["read_file"]);
    let apart = questions_apart(&outcome);
    assert_eq!(apart.len(), 6);
    for at in apart {
        assert!(!outcome.offered(at).contains(&"run_command"), "{at}");
        assert!(outcome.offered(at).contains(&"use_skill"), "{at}");
    }
}

#[tokio::test]
async fn fork_cannot_start_forks() {
    let mut stage = Stage::new();
    stage.skill("ping", "context: fork\nallowed-tools: Read", "Use the skill pong.");
    stage.skill("pong", "context: fork", "Use the skill ping.");
    stage.says([use_skill("ping")]);
    // The skills load each other and themselves.
    stage.apart([use_skill("pong")]).apart([use_skill("ping")]).apart([use_skill("ping")]);
    stage.apart([command("id"), text("over")]).apart([text("over")]);
    let outcome = stage.turn().await;
    assert_eq!(
        outcome.names(),
        [""; 0],
        "a skill without a list that is told within does not free"
    );
    let apart = questions_apart(&outcome);
    assert_eq!(apart.len(), 5, "one history apart, not five");
    let last = &outcome.asked[*apart.last().unwrap()].messages;
    let read: Vec<&str> = last
        .iter()
        .filter_map(|message| match message {
            Message::Tool { content, .. } => Some(content.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(read.len(), 4);
    for answer in &read[..3] {
        assert!(answer.contains("This skill is meant for a sub-agent"), "{answer}");
        assert_eq!(result(answer)["context_fork"], true);
    }
}

#[tokio::test]
async fn cyclic_skills_end_at_the_step_limit() {
    let mut stage = Stage::new();
    stage.skill("ping", "context: fork", "Use ping.");
    stage.limits.apart_steps = 4;
    stage.says([use_skill("ping")]);
    stage.says([text("It did not work.")]);
    *stage.script.forever.lock().unwrap() = Some(vec![use_skill("ping")]);
    let outcome = stage.turn().await;
    assert!(matches!(outcome.ended, TurnEnd::Answered), "{:?}", outcome.ended);
    assert_eq!(questions_apart(&outcome).len(), 4);
    assert!(outcome.answers[0].starts_with("[origin: skill `ping`, failed: step-limit]\n"));
    assert_eq!(result(&outcome.answers[0])["ended"], "the limit of 4 steps is reached");
}

#[tokio::test]
async fn fork_uses_the_budget_of_the_turn() {
    let mut stage = Stage::new();
    stage.skill("ping", "context: fork", "Use ping.");
    stage.limits.steps = 6;
    *stage.script.forever.lock().unwrap() = Some(vec![use_skill("ping")]);
    let outcome = stage.turn().await;
    assert!(matches!(outcome.ended, TurnEnd::Limit(Limit::Steps(6))), "{:?}", outcome.ended);
    assert_eq!(outcome.asked.len(), 6, "no step more than the turn has");

    let mut stage = Stage::new();
    stage.skill("dear", "context: fork", "Spend.");
    stage.limits.tokens = 100_000;
    let spent = Chunk::Usage(Usage { input: 60_000, output: 0 });
    stage.says([use_skill("dear")]);
    stage.apart([read(), spent.clone()]).apart([text("never")]);
    stage.says([use_skill("dear"), spent]).says([text("never")]);
    let outcome = stage.turn().await;
    assert!(outcome.answers[0].contains("failed: token-budget"), "{}", outcome.answers[0]);
    assert!(matches!(outcome.ended, TurnEnd::Limit(Limit::Tokens(100_000))), "{:?}", outcome.ended);
}

#[tokio::test]
async fn untrusted_fork_is_a_directive_that_restricts_nothing() {
    let mut stage = Stage::new();
    stage.forks = ForkMode::Inline;
    stage.skill("report", FORK, "Do.").skill("writer", "allowed-tools: Write", "Write.");
    stage.says([use_skill("report")]).says([command("id"), read()]);
    let outcome = stage.turn().await;
    assert_eq!(questions_apart(&outcome), [0_usize; 0]);
    let answer = result(&outcome.answers[0]);
    assert_eq!((&answer["context_fork"], &answer["instructions"]), (&json!(true), &json!("Do.\n")));
    let note = answer["note"].as_str().unwrap();
    assert!(note.contains("This skill is meant for a sub-agent"), "{note}");
    assert!(!note.contains("within this conversation"), "{note}");
    assert_eq!(outcome.names(), ["run_command", "read_file"], "a fork never restricts its caller");
    // A fork does not remove the list of its caller either.
    stage.says([use_skill("writer")]).says([use_skill("report")]).says([command("id"), read()]);
    assert_eq!(stage.turn().await.names(), [""; 0]);
}

#[tokio::test]
async fn forks_run_in_parallel_and_long_results_are_cut() {
    let mut stage = Stage::new();
    stage.skill("report", FORK, "Do.");
    stage.limits.apart_bytes = 100;
    stage.says([use_skill("report"), use_skill("report"), command("free")]);
    let long = "x".repeat(10 << 20);
    stage.apart([text(&long)]).apart([text("short")]);
    stage.limits.tokens = 50_000_000;
    let outcome = stage.turn().await;
    assert_eq!(outcome.names(), ["run_command"], "the list of the skills is theirs alone");
    let results: Vec<String> = outcome.answers[..2]
        .iter()
        .map(|answer| result(answer)["result"].as_str().unwrap().to_owned())
        .collect();
    assert!(results.contains(&"short".to_owned()), "{results:?}");
    assert!(results.iter().any(|one| one.ends_with("[cut here: 10485660 more bytes]")));
}

#[tokio::test]
async fn task_is_passed_to_the_fork() {
    let mut stage = Stage::new();
    stage.skill("report", FORK, "Do.");
    stage.says([call("use_skill", json!({"name": "report", "task": "Only week 7"}))]);
    let outcome = stage.turn().await;
    let first = questions_apart(&outcome)[0];
    let Message::User(order) = &outcome.asked[first].messages[1] else { panic!("no order") };
    assert!(order.contains("The task:\nOnly week 7\n"), "{order}");
}

#[tokio::test]
async fn fork_refusal_does_not_suggest_other_skills() {
    let mut stage = Stage::new();
    stage.skill("report", FORK, "Do.");
    stage.says([use_skill("report")]);
    stage.apart([command("id")]).apart([text("over")]);
    let outcome = stage.turn().await;
    let apart = questions_apart(&outcome);
    let last = &outcome.asked[*apart.last().unwrap()].messages;
    let refused = last.iter().find_map(|message| match message {
        Message::Tool { content, .. } => Some(content.as_str()),
        _ => None,
    });
    let refused = refused.unwrap();
    assert!(refused.contains("tool-not-allowed"), "{refused}");
    assert!(!refused.contains("load another skill"), "{refused}");
    assert!(refused.contains("no other skill"), "{refused}");
}

#[tokio::test]
async fn fork_names_the_skill_whose_list_refuses_a_call() {
    let mut stage = Stage::new();
    stage.skill("reader", "allowed-tools: Read", "Read.");
    stage.skill("free", "context: fork", "Anything.");
    stage.skill("runner", "allowed-tools: Bash", "Run.");
    stage.says([use_skill("reader")]).says([use_skill("free")]);
    stage.apart([use_skill("runner")]).apart([command("id")]).apart([text("over")]);
    let outcome = stage.turn().await;
    let apart = questions_apart(&outcome);
    let last = &outcome.asked[*apart.last().unwrap()].messages;
    let answers: Vec<&str> = last
        .iter()
        .filter_map(|message| match message {
            Message::Tool { content, .. } => Some(content.as_str()),
            _ => None,
        })
        .collect();
    assert!(
        answers[0].contains("`allowed-tools` of `reader` is still enforced here"),
        "{answers:?}"
    );
    assert!(answers[1].contains("that the skill `reader` allows (Read)"), "{answers:?}");
    let Message::User(order) = &outcome.asked[apart[0]].messages[1] else { panic!("no order") };
    assert!(order.contains("`allowed-tools` of `reader` is still enforced here"), "{order}");
}

#[tokio::test]
async fn fork_without_a_known_tool_is_not_told_to_ask() {
    let mut stage = Stage::new();
    stage.skill("typo", "context: fork\nallowed-tools: Reed", "Do.");
    stage.says([use_skill("typo")]).apart([text("over")]);
    let outcome = stage.turn().await;
    let first = questions_apart(&outcome)[0];
    let Message::User(order) = &outcome.asked[first].messages[1] else { panic!("no order") };
    assert!(order.contains("None of the tools that it allows exists here (Reed)"), "{order}");
    assert!(
        order.contains("Say so in your answer.") && !order.contains("Tell the person"),
        "{order}"
    );
}
