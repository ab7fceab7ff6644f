//! Files that are generated from the code are what the code would generate.

use std::fs;

use crate::support::{Sandbox, repository};

#[test]
fn the_page_of_rules_is_up_to_date() {
    let page = fs::read_to_string(repository().join("docs/rules.md")).expect("docs/rules.md");
    let now = Sandbox::new().run(&["rules", "--markdown"]).stdout;
    assert!(page == now, "docs/rules.md is stale: run `make generated`");
}

#[test]
fn the_schemas_are_up_to_date() {
    for dialect in [
        "agentskills",
        "claude-code",
        "codex",
        "openclaw",
        "agent-flow",
        "gibberish",
        "gaia",
        "skillrt",
        "personal-agent",
    ] {
        let path = repository().join(format!("schemas/{dialect}.json"));
        let kept = fs::read_to_string(&path).unwrap_or_default();
        let now = Sandbox::new().run(&["schema", dialect]).stdout;
        assert!(kept == now, "schemas/{dialect}.json is stale: run `make generated`");
    }
}
