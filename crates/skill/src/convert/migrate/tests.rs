use serde_json::json;

use super::*;
use crate::reading::read;

const DOCUMENTED_SHAPE_KEYS: &str = "---\n\
# A skill of GAIA's document.\n\
name: Web Search\n\
claw_version: \"1.0\"\n\
network: true\n\
permissions: {shell: true, filesystem: false}\n\
security_tier: verified\n\
actions:\n  \
  - name: web-search\n    \
    description: Search the web\n    \
    parameters:\n      \
      query: {type: string, required: true}\n      \
      class: {type: int, default: 5}\n      \
      max-results: {type: integer, required: true, default: 10}\n    \
    handler: handlers/search.py:run\n\
pip_requires: [requests]\n\
user-invocable: true\n\
---\n\
# Web search\n\nSearches the web. Use `{baseDir}`.\n";

fn migrated_as(
    text: &str,
    request: &MigrationRequest<'_>,
) -> Result<Migration, Vec<MigrationBlocker>> {
    let source = Source::from_bytes(text.into()).unwrap();
    migrate(&read(source, None), None, request)
}

fn migrated(text: &str) -> Migration {
    migrated_as(text, &MigrationRequest::default()).unwrap()
}

fn blockers(text: &str) -> Vec<&'static str> {
    let blockers = migrated_as(text, &MigrationRequest::default()).unwrap_err();
    blockers.iter().map(MigrationBlocker::code).collect()
}

fn has_note(migration: &Migration, field: &str, review: bool) -> bool {
    migration.notes.iter().any(|note| note.field == field && note.review == review)
}

#[test]
fn the_shape_of_the_document() {
    let migration = migrated(DOCUMENTED_SHAPE_KEYS);
    insta::assert_snapshot!(migration.text);
    assert_eq!((migration.vendor, migration.name.as_str()), (Vendor::OpenClaw, "web-search"));
    assert_eq!(migration.claimed_tier.as_deref(), Some("verified"));
    let tool = &migration.tools[0];
    assert_eq!((tool.tool.name.as_str(), tool.action.as_str()), ("web_search", "web-search"));
    assert_eq!(tool.handler, "handlers/search.py:run");
    assert_eq!(tool.arguments, ["query", "class", "max-results"]);
    for field in
        ["network", "permissions.shell", "author", "license", "description", "version", "body"]
    {
        assert!(has_note(&migration, field, true), "{field}: {:#?}", migration.notes);
    }
    for field in ["name", "claw_version", "user-invocable"] {
        assert!(has_note(&migration, field, false), "{field}: {:#?}", migration.notes);
    }
    let mapped: Vec<(&str, &str)> =
        migration.mapped.iter().map(|one| (one.from.as_str(), one.to.as_str())).collect();
    assert_eq!(
        mapped,
        [
            ("network", "metadata.gaia.permissions"),
            ("permissions.filesystem", "metadata.gaia.permissions"),
            ("permissions.shell", "metadata.gaia.permissions"),
            ("pip_requires", "metadata.gaia.requirements.dependencies"),
            ("actions", "metadata.gaia.tools"),
        ]
    );
}

#[test]
fn the_flat_shape() {
    let request = MigrationRequest { shape: ManifestShape::Flat, ..MigrationRequest::default() };
    let migration = migrated_as(DOCUMENTED_SHAPE_KEYS, &request).unwrap();
    insta::assert_snapshot!(migration.text);
    let plain = "---\nname: x\ndescription: y\n---\n";
    assert_eq!(migrated_as(plain, &request).unwrap_err(), [MigrationBlocker::NoTools]);
}

const REAL: &str = "---\r\n\
name: shots\r\n\
description: Takes screenshots.\r\n\
version: v1.2\r\n\
requires: kept\r\n\
metadata:\r\n  \
  openclaw:\r\n    \
    emoji: S\r\n    \
    security_tier: community\r\n    \
    primaryEnv: SHOT_KEY\r\n    \
    envVars: [{name: SHOT_KEY}, {name: SHOT_SIZE, required: false}]\r\n    \
    optionalEnv: [SHOT_MODE]\r\n    \
    requires: {bins: [shot, ./bad], anyBins: [jq, yq], env: [HOME_KEY], tools: [browser], config: [a.b]}\r\n    \
    install:\r\n      \
      - {kind: uv, package: shot-cli}\r\n      \
      - {type: npm, package: shot-js}\r\n      \
      - {kind: brew, formula: shot}\r\n  \
  clawdbot: {requires: {bins: [unread]}}\r\n  \
  # the end\r\n\
---\r\nText.\r\n";

#[test]
fn the_shape_of_real_files() {
    let migration = migrated(REAL);
    assert!(!migration.text.replace("\r\n", "").contains('\n'));
    insta::assert_snapshot!(migration.text.replace('\r', ""));
    let permissions: Vec<String> = migration.permissions.iter().map(ToString::to_string).collect();
    assert_eq!(permissions, ["shell:execute:shot", "shell:execute:jq", "shell:execute:yq"]);
    for (field, review) in [
        ("metadata.openclaw.requires.bins", true),
        ("metadata.openclaw.requires.anyBins", true),
        ("metadata.openclaw.requires.config", true),
        ("metadata.openclaw.optionalEnv", true),
        ("metadata.openclaw.install", true),
        ("metadata.openclaw.emoji", false),
        ("metadata.clawdbot", false),
        ("requires", false),
        ("version", false),
    ] {
        assert!(has_note(&migration, field, review), "{field}: {:#?}", migration.notes);
    }
}

#[test]
fn hermes_and_loose_fields() {
    let hermes = "---\nname: x\ndescription: y\nmetadata:\n  hermes:\n    tags: [a]\n    requires: {bins: [jq]}\n---\n";
    let migration = migrated(hermes);
    assert_eq!(migration.vendor, Vendor::Hermes);
    assert_eq!(migration.permissions[0].to_string(), "shell:execute:jq");
    let request = MigrationRequest { from: Some(Vendor::Hermes), ..MigrationRequest::default() };
    let plain = "---\nname: x\ndescription: y\n---\n";
    assert_eq!(migrated_as(plain, &request).unwrap_err(), [MigrationBlocker::NotHermes]);
    let text =
        "---\nname: x\ndescription: y\nmetadata: '{\"requires\": {\"bins\": [\"jq\"]}}'\n---\n";
    let migration = migrated(text);
    assert_eq!(migration.mapped[0].from, "metadata.requires.bins");
    assert_eq!(migration.permissions[0].to_string(), "shell:execute:jq");
    let loose = "---\nname: x\ndescription: y\nrequires: {env: [KEY]}\ninstall: []\n---\n";
    assert_eq!(migrated(loose).mapped[0].from, "requires.env");
}

#[test]
fn blockers_are_reported() {
    assert_eq!(blockers("# Text\n"), ["no_frontmatter"]);
    assert_eq!(blockers("---\nname: 技能\n---\n"), ["no_name", "no_description"]);
    let long = "x".repeat(1025);
    assert_eq!(
        blockers(&format!("---\nname: x\ndescription: {long}\n---\n")),
        ["long_description"]
    );
    let gaia = "---\nname: x\ndescription: y\nmetadata:\n  gaia: {}\n---\n";
    assert_eq!(blockers(gaia), ["already_gaia"]);
    let shared = "---\nname: x\ndescription: y\nuser-invocable: true\n---\n";
    assert_eq!(migrated(shared).vendor, Vendor::OpenClaw);
    let flow = "---\nname: x\ninputs:\n  - {name: who, type: text}\n---\n";
    assert_eq!(blockers(flow), ["other_dialect"]);
    assert_eq!(blockers("---\nname: [x\ndescription: {y\n---\n"), ["unreadable"]);
}

#[test]
fn names_and_breadth() {
    let text = "---\nname: 技能\ndescription: y\nclaw_version: 1\nshell: true\n---\n";
    let request = MigrationRequest { name: Some("skill"), ..MigrationRequest::default() };
    assert_eq!(migrated_as(text, &request).unwrap().name, "skill");
    let request = MigrationRequest { name: Some("No"), ..MigrationRequest::default() };
    assert_eq!(migrated_as(text, &request).unwrap_err()[0].code(), "no_name");
    let request = MigrationRequest {
        name: Some("skill"),
        breadth: PermissionBreadth::Scoped,
        ..MigrationRequest::default()
    };
    assert_eq!(migrated_as(text, &request).unwrap_err()[0].code(), "unscoped_permission");
}

#[test]
fn values_that_gaia_misreads_are_set_aside() {
    let text = "---\nname: x\ndescription: y\nversion: latest\nauthor: {name: Ada}\ntools: [read]\n\
                permissions: {network: true, camera: true}\nrequirements: none\nclaw_version: 1\n\
                metadata: [list]\n---\n";
    let migration = migrated(text);
    let result = read_as(Source::new(migration.text.clone()), Dialect::GAIA, None);
    let fields = result.document.fields().unwrap();
    let aside = fields.path("metadata.original").unwrap().to_value(crate::yaml::YamlVersion::V1_2);
    assert_eq!(
        aside,
        json!({
            "version": "latest", "author": {"name": "Ada"}, "tools": ["read"],
            "permissions": {"network": true, "camera": true}, "requirements": "none",
            "metadata": ["list"],
        })
    );
    assert!(result.diagnostics.iter().all(|found| found.code != "both-shapes"), "{result:#?}");
}

#[test]
fn required_programs_override_a_denied_shell() {
    let text = "---\nname: x\ndescription: y\nclaw_version: 1\nshell: false\n\
                metadata: {openclaw: {requires: {bins: [jq]}}}\n---\n";
    let permissions = migrated(text).permissions;
    assert_eq!(
        permissions.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["shell:execute:jq"]
    );
}
