//! Tests the order in which the nodes of a graph run.

use proptest::prelude::*;
use savoir_flow::workflow::{Graph, file};
use serde_json::json;

use super::{Scripted, graph, host, inner_lines};

/// Returns the executed nodes in order.
async fn order(graph: &Graph, input: &str) -> Vec<String> {
    let lines = inner_lines(&host(&Scripted::new(&[])), graph, input).await;
    let started = lines.iter().filter_map(|line| line.strip_prefix(r#"node_start {"node_id":""#));
    started.map(|line| line.split('"').next().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn breadth_first_and_each_node_once() {
    let pass = json!({"expression": "true"});
    let node = |id| (id, "condition", pass.clone());
    let nodes = [
        ("s", "start", json!({})),
        ("t", "start", json!({})),
        node("a"),
        node("b"),
        node("c"),
        node("d"),
        node("alone"),
    ];
    let graph = graph(&nodes, &["s b", "s a", "a c", "b c", "b d", "t a", "gone a", "a gone"]);
    assert_eq!(order(&graph, "x").await, ["s", "t", "b", "a", "c", "d"]);
}

#[tokio::test]
async fn condition_chooses_the_branch() {
    let nodes = [
        ("s", "start", json!({})),
        ("c", "condition", json!({"expression": "{{s.output}} contains 'yes'"})),
        ("y", "condition", json!({})),
        ("n", "condition", json!({})),
        ("always", "condition", json!({})),
        ("odd", "condition", json!({})),
    ];
    let graph = graph(&nodes, &["s c", "c y true", "c n false", "c always", "c odd other"]);
    assert_eq!(order(&graph, "oh yes").await, ["s", "c", "y", "always"]);
    assert_eq!(order(&graph, "oh no").await, ["s", "c", "n", "always"]);
    let lines = inner_lines(&host(&Scripted::new(&[])), &graph, "oh no").await;
    assert_eq!(
        lines[2..5],
        [
            r#"node_start {"node_id":"c","node_type":"condition"}"#,
            r#"thought {"type_detail":"condition","node_id":"c","expression":"{{s.output}} contains 'yes'","branch":"false"}"#,
            r#"node_complete {"node_id":"c","output":"oh no"}"#,
        ]
    );
}

#[tokio::test]
async fn end_node_stops_the_run() {
    let nodes = [("s", "start", json!({})), ("e", "end", json!({})), ("a", "condition", json!({}))];
    assert_eq!(order(&graph(&nodes, &["s e", "s a"]), "x").await, ["s", "e"]);
}

#[tokio::test]
async fn graphs_without_start_or_with_cycles_fail() {
    let host = host(&Scripted::new(&[]));
    let end = graph(&[("e", "end", json!({}))], &[]);
    assert_eq!(
        inner_lines(&host, &end, "x").await,
        [r#"workflow_error {"error":"Workflow has no start node"}"#]
    );
    let nodes = [("s", "start", json!({})), ("a", "llm", json!({})), ("b", "llm", json!({}))];
    for edges in [&["s a", "a b", "b a"][..], &["a b", "b a"], &["s s"]] {
        assert_eq!(
            inner_lines(&host, &graph(&nodes, edges), "x").await,
            [r#"workflow_error {"error":"Workflow contains a cycle"}"#]
        );
    }
    let nothing = graph(&[("s", "start", json!({}))], &[]);
    assert_eq!(
        inner_lines(&host, &nothing, "x").await.last().unwrap(),
        r#"workflow_complete {"final_output":"x"}"#
    );
}

#[tokio::test]
async fn output_size_is_limited() {
    let mut nodes = vec![("s".to_owned(), "start", json!({}))];
    nodes.extend((0..20).map(|at| (format!("n{at}"), "condition", json!({}))));
    let edges: Vec<String> = (0..20)
        .map(|at| if at == 0 { "s n0".to_owned() } else { format!("n{} n{at}", at - 1) })
        .collect();
    let nodes: Vec<_> =
        nodes.iter().map(|(id, kind, data)| (id.as_str(), *kind, data.clone())).collect();
    let edges: Vec<&str> = edges.iter().map(String::as_str).collect();
    let graph = graph(&nodes, &edges);
    let lines = inner_lines(&host(&Scripted::new(&[])), &graph, &"x".repeat(1 << 20)).await;
    assert_eq!(
        lines.last().unwrap(),
        r#"workflow_error {"error":"Workflow outputs exceed 8 MiB together with the nodes that pass them on"}"#
    );
}

/// Compares the whole stream of a larger example byte by byte.
#[tokio::test]
async fn whole_stream_of_an_example() {
    let nodes = [
        ("start", "start", json!({"inputVariable": "question"})),
        ("judge", "llm", json!({"systemPrompt": "Is this urgent? {{question}}"})),
        (
            "urgent",
            "condition",
            json!({"expression": "{{judge.output}}.includes('yes') and not {{input}} contains 'joke'"}),
        ),
        (
            "answer",
            "skill",
            json!({"skillName": "summary", "inputMappings": {"article": "{{question}} ({{judge.output}})", "style": "calm"}}),
        ),
        ("later", "end", json!({})),
        ("end", "end", json!({})),
    ];
    let edges =
        ["start judge", "judge urgent", "urgent answer true", "urgent later false", "answer end"];
    let model = Scripted::new(&["Oh yes", "Stay calm."]);
    let graph = graph(&nodes, &edges);
    let events =
        super::events(&host(&model), super::fresh(&graph, "Fire!"), &super::NoJournal).await;
    let stream: String = events.iter().map(savoir_flow::event::Event::to_sse).collect();
    assert_eq!(stream, include_str!("stream.txt"));
}

#[tokio::test]
async fn repository_examples_run() {
    let explain =
        file::read(include_str!("../../../../../examples/workflows/explain.json")).unwrap();
    let model = Scripted::new(&["A word."]);
    let lines = inner_lines(&host(&model), &explain.graph, "osmosis").await;
    assert_eq!(lines.last().unwrap(), r#"workflow_complete {"final_output":"A word."}"#);
    let text = include_str!("../../../../../examples/workflows/long-or-short.json");
    let long_or_short = file::read(text).unwrap();
    assert_eq!(long_or_short.name.as_deref(), Some("Long or short"));
    if !super::code::can_run() {
        return;
    }
    for (input, expected) in [("few words".to_owned(), "short"), ("word ".repeat(51), "In short.")]
    {
        let model = Scripted::new(&["In short."]);
        let lines = inner_lines(&host(&model), &long_or_short.graph, &input).await;
        let expected = format!(r#"workflow_complete {{"final_output":"{expected}"}}"#);
        assert_eq!(*lines.last().unwrap(), expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// For any graph, the run ends, and no node is executed twice.
    #[test]
    fn every_run_ends(
        kinds in prop::collection::vec(prop::sample::select(vec!["start", "condition", "end"]), 1..12),
        pairs in prop::collection::vec((0_usize..12, 0_usize..12, prop::sample::select(vec!["", " true", " false"])), 0..30),
    ) {
        let names: Vec<String> = (0..kinds.len()).map(|at| at.to_string()).collect();
        let nodes: Vec<_> =
            names.iter().zip(&kinds).map(|(id, kind)| (id.as_str(), *kind, json!({}))).collect();
        let edges: Vec<String> = pairs.iter().map(|(from, to, handle)| format!("{from} {to}{handle}")).collect();
        let edges: Vec<&str> = edges.iter().map(String::as_str).collect();
        let graph = graph(&nodes, &edges);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let ran = runtime.block_on(order(&graph, "x"));
        let unique: std::collections::BTreeSet<&String> = ran.iter().collect();
        prop_assert_eq!(unique.len(), ran.len());
        prop_assert_eq!(ran.is_empty(), graph.has_cycle() || !kinds.contains(&"start"));
    }
}
