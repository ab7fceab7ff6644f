//! Tests `savoir doctor`.

use super::RunTestEnv;

#[test]
fn doctor_reports_full_sandbox_support() {
    let test_env = RunTestEnv::new();
    let run = test_env.savoir(&["doctor"]);
    assert_eq!(run.code, 0, "{run}");
    for name in ["sandbox", "hosts by name", "file notes", "landlock", "control groups"] {
        assert!(run.stdout.contains(name), "{name}: {run}");
    }
    assert!(run.stdout.ends_with("\ntools of every tier can run here\n"), "{run}");
    let json = test_env.savoir(&["doctor", "--json"]).json();
    assert_eq!(json["level"], "everything");
    assert_eq!(json["says"], "tools of every tier can run here");
    for part in ["sandbox", "proxy", "watch"] {
        assert_eq!(json["support"][part], "held", "{json}");
    }
    assert!(json["support"]["landlock"].as_u64().is_some_and(|version| version >= 1), "{json}");
    assert!(json["support"]["groups"].is_boolean(), "{json}");
    assert!(!test_env.path(".savoir").exists(), "looking leaves no trace");
}
