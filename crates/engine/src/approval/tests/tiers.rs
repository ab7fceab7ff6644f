//! Tests which permissions each tier allows.

use super::*;

/// `auto` runs without a question, `ask` does not.
fn outcome(request: &Request) -> &'static str {
    match decide(request, None) {
        Verdict::Run { .. } => "auto",
        Verdict::Ask { warnings, .. } if warnings.is_empty() => "ask",
        other => panic!("{other:?}"),
    }
}

fn reasons(request: &Request) -> Vec<String> {
    match decide(request, None) {
        Verdict::Ask { reasons, .. } => reasons,
        other => panic!("{other:?}"),
    }
}

/// A permission, and its outcome for the tiers verified, community and experimental.
const TABLE: [(&str, &str, &str, &str); 12] = [
    ("filesystem:read:./data/**", "auto", "auto", "ask"),
    ("filesystem:read", "auto", "auto", "ask"),
    ("filesystem:write:./out/**", "auto", "ask", "ask"),
    ("network:read:api.example.com", "auto", "auto", "ask"),
    ("network:write:api.example.com", "auto", "auto", "ask"),
    ("shell:execute:git", "auto", "ask", "ask"),
    ("database:read:./a.sqlite", "auto", "auto", "ask"),
    ("database:write:./a.sqlite", "auto", "ask", "ask"),
    ("env:read:TOKEN", "auto", "ask", "ask"),
    ("network:none", "auto", "auto", "ask"),
    ("shell:none", "auto", "auto", "ask"),
    ("env:none", "auto", "auto", "ask"),
];

#[test]
fn every_row_of_every_tier() {
    for (permission, verified, community, experimental) in TABLE {
        for (tier, expected) in [
            (Tier::Verified, verified),
            (Tier::Community, community),
            (Tier::Experimental, experimental),
        ] {
            let one = permissions(&[permission]);
            let none = Vec::new;
            // The tier treats declared and implicit permissions the same way.
            for (declared, implicit_permissions, implied_programs) in [
                (one.clone(), none(), none()),
                (none(), one.clone(), none()),
                (none(), none(), one.clone()),
            ] {
                let request = Request { permissions: declared, tier, ..request() };
                let request = Request { implicit_permissions, implied_programs, ..request };
                assert_eq!(outcome(&request), expected, "{tier} {permission}");
            }
        }
    }
}

#[test]
fn one_permission_with_a_question_is_enough() {
    let entries =
        ["network:read:example.com", "filesystem:write:./out/**", "network:write:example.com"];
    let request = Request { permissions: permissions(&entries), ..request() };
    let community = Request { tier: Tier::Community, ..request };
    assert_eq!(
        reasons(&community),
        [
            "its tier is community, which asks about filesystem:write:./out/**",
            "it has not been approved yet"
        ]
    );
    let verified = Request { tier: Tier::Verified, ..community };
    assert_eq!(outcome(&verified), "auto");
}

#[test]
fn run_without_a_question_names_the_signer() {
    let signed = Some("by Ada (amd), key 21fe".to_owned());
    let request = Request { tier: Tier::Verified, signed, ..request() };
    let reason = "its tier is verified, signed by Ada (amd), key 21fe".to_owned();
    assert_eq!(decide(&request, None), Verdict::Run { reason });
    let permissions = permissions(&["network:read:example.com"]);
    let request = Request { tier: Tier::Community, permissions, ..request };
    let reason = "its tier is community, signed by Ada (amd), key 21fe, and it wants nothing that \
                  needs a question"
        .to_owned();
    assert_eq!(decide(&request, None), Verdict::Run { reason });
}

#[test]
fn unsigned_files_are_reported() {
    let uncovered = vec!["node_modules/x/index.js".to_owned(), "__pycache__/y.pyc".to_owned()];
    let request = Request { signed: Some("by Ada".to_owned()), uncovered, ..request() };
    assert_eq!(
        reasons(&request),
        [
            "its signature does not cover node_modules/x/index.js and 1 more, which a run would see; remove it",
            "it has not been approved yet"
        ]
    );
    let page = to_plain_text(&question_lines(&request), 80);
    assert!(page.contains("\nsigned       by Ada\n"), "{page}");
    assert!(page.contains("\nnot signed   node_modules/x/index.js\n"), "{page}");
    assert!(page.contains("\n             __pycache__/y.pyc\n"), "{page}");
}
