use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::workflow::limits;

fn problems(graph: &Value) -> Vec<Value> {
    let problems = Graph::parse(graph).unwrap_err();
    problems.iter().map(|problem| problem.detail(&["body", "graph_data"])).collect()
}

fn work(kind: &str, data: &Value) -> NodeKind {
    let graph = json!({"nodes": [{"id": "n", "type": kind, "data": data}]});
    Graph::parse(&graph).unwrap().nodes()[0].work.clone()
}

/// Creates a graph of nodes `0`, `1`, … with these edges.
fn edges(count: usize, edges: &[(usize, usize)]) -> Graph {
    let nodes: Vec<Value> =
        (0..count).map(|id| json!({"id": id.to_string(), "type": "end"})).collect();
    let edges: Vec<Value> = edges
        .iter()
        .map(|(from, to)| json!({"source": from.to_string(), "target": to.to_string()}))
        .collect();
    Graph::parse(&json!({"nodes": nodes, "edges": edges})).unwrap()
}

#[test]
fn unknown_type_is_reported_with_its_path() {
    let graph = json!({"nodes": [
        {"id": "a", "type": "start", "position": {"x": 1}},
        {"id": "b", "type": "magic", "data": {}},
    ]});
    assert_eq!(
        problems(&graph),
        [json!({
            "type": "value_error",
            "loc": ["body", "graph_data", "nodes", 1, "type"],
            "msg": "Value error, Unknown node type: 'magic'",
            "input": "magic",
        })]
    );
}

#[test]
fn all_problems_are_reported() {
    let graph = json!({
        "nodes": [
            {"type": "start"}, {"id": "", "type": "end"}, {"id": 5, "type": "end"}, "x",
            {"id": "a", "type": "end"}, {"id": "a", "type": "end"}, {"id": "b", "type": "end", "data": []},
        ],
        "edges": [{"source": "a"}, {"source": "a", "target": "a", "sourceHandle": 1}],
    });
    let kinds: Vec<String> = problems(&graph)
        .iter()
        .map(|problem| format!("{} {}", problem["type"], problem["loc"]))
        .collect();
    assert_eq!(
        kinds,
        [
            r#""missing" ["body","graph_data","nodes",0,"id"]"#,
            r#""string_too_short" ["body","graph_data","nodes",1,"id"]"#,
            r#""string_type" ["body","graph_data","nodes",2,"id"]"#,
            r#""dict_type" ["body","graph_data","nodes",3]"#,
            r#""value_error" ["body","graph_data","nodes",5,"id"]"#,
            r#""dict_type" ["body","graph_data","nodes",6,"data"]"#,
            r#""missing" ["body","graph_data","edges",0,"target"]"#,
            r#""string_type" ["body","graph_data","edges",1,"sourceHandle"]"#,
        ]
    );
    assert_eq!(problems(&json!([]))[0]["loc"], json!(["body", "graph_data"]));
    assert_eq!(problems(&json!({"nodes": {}}))[0]["type"], "list_type");
}

#[test]
fn graph_size_is_limited() {
    let node = |id: usize| json!({"id": id.to_string(), "type": "end"});
    let nodes = |count| json!({"nodes": (0..count).map(node).collect::<Vec<_>>()});
    assert!(Graph::parse(&nodes(limits::MAX_NODES)).is_ok());
    assert_eq!(problems(&nodes(limits::MAX_NODES + 1))[0]["type"], "too_long");
    let edges = vec![json!({"source": "x", "target": "y"}); limits::MAX_EDGES + 1];
    assert_eq!(problems(&json!({"edges": edges}))[0]["type"], "too_long");
    let bad = json!({"nodes": vec![json!({}); 99]});
    assert_eq!(problems(&bad).len(), limits::MAX_PROBLEMS);
    let long = json!({"nodes": [{"id": "x".repeat(256), "type": "end"}]});
    assert_eq!(problems(&long)[0]["type"], "string_too_long");
}

#[test]
fn missing_members_have_defaults() {
    let NodeKind::Llm(llm) = work("llm", &json!({})) else { panic!("a model") };
    assert_eq!(llm.system_prompt, "You are a helpful assistant.");
    assert!((llm.temperature - 0.7).abs() < f64::EPSILON && !llm.history);
    let NodeKind::Http(http) = work("http", &json!({"timeoutSeconds": "99"})) else {
        panic!("http")
    };
    assert_eq!((http.method.as_str(), http.seconds, http.body), ("GET", 30, Value::Null));
    let NodeKind::Code(code) = work("code", &json!({"timeoutSeconds": -4, "memoryLimitMb": 1e9}))
    else {
        panic!("code")
    };
    assert_eq!((code.seconds, code.mebibytes), (1, 512));
    let NodeKind::Code(code) = work("code", &json!({"timeoutSeconds": [], "memoryLimitMb": null}))
    else {
        panic!("code")
    };
    assert_eq!((code.seconds, code.mebibytes), (30, 256));
    assert_eq!(work("condition", &json!({})), NodeKind::Condition { expression: "true".into() });
    assert_eq!(
        work("skill", &json!({"skillName": " ", "inputMappings": {}})),
        NodeKind::Skill { name: None, mappings: None }
    );
    assert_eq!(work("start", &Value::Null), NodeKind::Start { variable: None });
}

#[test]
fn settings_that_are_not_used_as_written_are_warned_about() {
    let warnings = |kind: &str, data: Value| {
        let graph = json!({"nodes": [{"id": "n", "type": kind, "data": data}]});
        Graph::parse(&graph).unwrap().nodes()[0].warnings.clone()
    };
    for (kind, data, expected) in [
        ("http", json!({"timeoutSeconds": 0}), "`timeoutSeconds` is 0, and 1 is used instead"),
        ("http", json!({"timeoutSeconds": 31}), "`timeoutSeconds` is 31, and 30 is used instead"),
        ("http", json!({"timeoutSeconds": "x"}), "`timeoutSeconds` is \"x\", and 10 is used"),
        ("code", json!({"timeoutSeconds": -1}), "`timeoutSeconds` is -1, and 1 is used instead"),
        ("code", json!({"timeoutSeconds": []}), "`timeoutSeconds` is [], and 30 is used instead"),
        ("code", json!({"memoryLimitMb": 1e9}), "and 512 is used instead"),
        ("llm", json!({"temperature": 7}), "`temperature` is 7, and 2 is used instead"),
        ("llm", json!({"temperature": "hot"}), "and 0.7 is used instead; write a number from 0 to"),
    ] {
        let warnings = warnings(kind, data.clone());
        assert_eq!(warnings.len(), 1, "{kind} {data}: {warnings:?}");
        assert!(warnings[0].contains(expected), "{warnings:?}");
    }
    for (kind, data) in [
        ("http", json!({"timeoutSeconds": 1})),
        ("http", json!({"timeoutSeconds": "30"})),
        ("code", json!({"timeoutSeconds": null, "memoryLimitMb": ""})),
        ("llm", json!({"temperature": 0.35})),
        ("llm", json!({})),
    ] {
        assert_eq!(warnings(kind, data.clone()), [""; 0], "{kind} {data}");
    }
}

#[test]
fn an_edge_without_an_end_is_ignored() {
    let graph = json!({
        "nodes": [{"id": "a", "type": "start"}],
        "edges": [{"source": "x", "target": "a"}, {"source": "a", "target": "x"}],
    });
    let graph = Graph::parse(&graph).unwrap();
    assert!(graph.edges.is_empty() && !graph.has_cycle());
}

#[test]
fn cycles_are_found_wherever_they_are() {
    assert!(!edges(4, &[(0, 1), (0, 2), (1, 3), (2, 3)]).has_cycle());
    assert!(edges(1, &[(0, 0)]).has_cycle());
    assert!(edges(5, &[(0, 1), (2, 3), (3, 4), (4, 2)]).has_cycle());
    let chain: Vec<(usize, usize)> = (0..499).map(|at| (at, at + 1)).collect();
    assert!(!edges(500, &chain).has_cycle());
    assert!(!edges(0, &[]).has_cycle());
}

proptest! {
    /// A graph with only forward edges has no cycle; an additional back edge makes one.
    #[test]
    fn back_edges_are_cycles(pairs in prop::collection::vec((0_usize..20, 0_usize..20), 1..60)) {
        let forward: Vec<_> = pairs.iter().filter(|(a, b)| a != b).map(|&(a, b)| (a.min(b), a.max(b))).collect();
        prop_assert!(!edges(20, &forward).has_cycle());
        if let Some(&(from, to)) = forward.first() {
            let back = [forward, vec![(to, from)]].concat();
            prop_assert!(edges(20, &back).has_cycle());
        }
    }
}
