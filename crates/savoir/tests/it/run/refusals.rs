//! Tests that runs that cannot be enforced are rejected with exit code 3, the permission and a
//! hint.

use std::os::unix::fs::symlink;

use super::RunTestEnv;

const CODE: [&str; 2] = ["--param", "code=result = 1"];

#[test]
fn unenforceable_permissions_are_rejected() {
    let test_env = RunTestEnv::new();
    for (number, (permission, way_out)) in [
        ("desktop:control", "remove it from the skill"),
        ("mcp:connect", "remove it from the skill"),
        ("mcp:connect:files", "remove it from the skill"),
        ("filesystem:read", "name the folder in the skill, such as ./data/**"),
        ("filesystem:write", "--allow-write FOLDER"),
        ("filesystem:read:/", "name the folder that is needed"),
        ("filesystem:write:./.git/hooks/**", "write somewhere else"),
        ("filesystem:write:~/.ssh/**", "write somewhere else"),
        ("filesystem:write:/nowhere/at/all/**", "make it first"),
        ("database:read", "name the SQLite file: database:read:./data/app.sqlite"),
        ("env:read:LD_PRELOAD", "remove it from the skill"),
        ("env:read:PYTHONPATH", "remove it from the skill"),
        ("network:read:ftp://example.com", "write https://"),
        ("network:read:example.com..", "write a host"),
        ("network:read:evil.com\0.example.com", "remove it"),
        ("network:read:2130706433", "four decimal numbers"),
        ("network:read:exa mple.com", "write a host"),
        ("filesystem:read:../up/**", "name the directory itself"),
    ]
    .into_iter()
    .enumerate()
    {
        test_env.probe("probe", &[permission], "");
        let run = test_env.run("probe", &CODE);
        run.fails(3, "permission-not-enforceable");
        run.assert_error_contains(&[way_out]);
        let shown = permission.split('\0').next().unwrap_or_default();
        let shown = shown.strip_suffix("all/**").unwrap_or(shown);
        run.assert_error_contains(&[shown]);
        // Nothing ran, and the records contain the reason.
        let records = test_env.records();
        assert_eq!(records.len(), (number + 1).min(20), "{permission}");
        let record = &records[0];
        assert_eq!(record["decision"]["verdict"], "refused", "{permission}");
        assert_eq!(record["error"]["code"], "permission-not-enforceable");
        assert_eq!((&record["skill"], &record["tool"]), (&"probe".into(), &"probe".into()));
    }
}

#[test]
fn every_file_is_refused_by_approve_and_narrowed_by_a_folder() {
    let test_env = RunTestEnv::new();
    test_env.write("work/data/a.txt", "in it");
    test_env.write("work/b.txt", "outside");
    test_env.probe("probe", &["filesystem:read"], "");
    let skill = test_env.skill("probe");
    let refused = test_env.savoir(&["approve", &skill, "--yes"]);
    assert_eq!(refused.code, 3, "{refused}");
    assert!(refused.stderr.contains("--allow-read FOLDER"), "{refused}");
    let approved = test_env.savoir(&["approve", &skill, "--yes", "--allow-read", "data"]);
    assert_eq!(approved.code, 0, "{approved}");
    let run = test_env.run("probe", &["--param", "code=result = open('data/a.txt').read()"]);
    assert!(run.0.stdout.contains("in it"), "{}", run.0);
    let run = test_env.run("probe", &["--param", "code=result = open('b.txt').read()"]);
    assert!(!run.0.stdout.contains("outside"), "{}", run.0);
}

#[test]
fn permissions_that_no_run_gets_are_refused_by_approve() {
    let test_env = RunTestEnv::new();
    for permission in [
        "env:read:LD_PRELOAD",
        "env:read:LD_*",
        "network:read:*.com",
        "network:read:127.1",
        "network:write:ftp://example.com",
    ] {
        test_env.probe("probe", &[permission], "");
        let refused = test_env.savoir(&["approve", &test_env.skill("probe"), "--yes"]);
        assert_eq!(refused.code, 3, "{permission}: {refused}");
        assert!(refused.stderr.contains(permission), "{permission}: {refused}");
    }
}

#[test]
fn whole_home_is_refused_by_approve_and_narrowed_by_a_folder() {
    let test_env = RunTestEnv::new();
    test_env.write("work/data/a.txt", "old");
    for (scope, hint) in [
        ("~/**", "--allow-write FOLDER"),
        ("/**", "name the folder that is needed"),
        ("/", "name the folder that is needed"),
    ] {
        test_env.probe("probe", &[&format!("filesystem:write:{scope}")], "");
        let refused = test_env.savoir(&["approve", &test_env.skill("probe"), "--yes"]);
        assert_eq!(refused.code, 3, "{scope}: {refused}");
        assert!(refused.stderr.contains(hint), "{scope}: {refused}");
    }
    test_env.probe("probe", &["filesystem:write:~/**"], "");
    let skill = test_env.skill("probe");
    let approved = test_env.savoir(&["approve", &skill, "--yes", "--allow-write", "data"]);
    assert_eq!(approved.code, 0, "{approved}");
    let code = "code=result = open('data/a.txt', 'w').write('new')";
    let run = test_env.run("probe", &["--param", code]);
    let written = std::fs::read_to_string(test_env.path("work/data/a.txt")).expect("a file");
    assert_eq!(written, "new", "{}", run.0);
}

#[test]
fn contradicting_permissions_are_rejected() {
    let test_env = RunTestEnv::new();
    test_env.probe("probe", &["network:none", "network:read:example.com"], "");
    let run = test_env.run("probe", &CODE);
    run.fails(1, "skill-invalid");
    run.assert_error_contains(&["`network:none` contradicts another permission"]);
    let run = test_env.savoir(&["approve", &test_env.skill("probe"), "--yes"]);
    assert_ne!(run.code, 0, "{run}");
}

#[test]
fn a_grant_that_is_a_link() {
    let test_env = RunTestEnv::new();
    test_env.write("home/private/key", "secret");
    symlink(test_env.path("home/private"), test_env.path("work/linked")).expect("a link");
    symlink(test_env.path("home"), test_env.path("work/way")).expect("a link");
    for permission in [
        "filesystem:read:./linked/**",
        "filesystem:write:./linked/**",
        "filesystem:read:./way/private/**",
        "filesystem:read:./linked/key",
    ] {
        test_env.probe("probe", &[permission], "");
        test_env.approve("probe");
        let run = test_env.run("probe", &CODE);
        run.fails(3, "path-refused");
        run.assert_error_contains(&["/work/"]);
        assert_eq!(test_env.record()["error"]["code"], "path-refused");
    }
}

#[test]
fn python_requirements_with_options_or_urls_are_rejected() {
    let test_env = RunTestEnv::new();
    for requirement in [
        "--index-url=https://evil.example/simple",
        "-r other.txt",
        "-e .",
        "evil @ https://evil.example/evil.whl",
        "git+https://evil.example/x",
        "https://evil.example/x.whl",
        "./local",
        "file:///etc",
        "good --hash=sha256:0",
        "a b",
    ] {
        let fields = format!("requirements:\n  dependencies: [{requirement:?}]\n");
        test_env.probe("probe", &[], &fields);
        let run = test_env.run("probe", &CODE);
        if run.0.code == 1 {
            run.fails(1, "skill-invalid");
            run.assert_error_contains(&["is not a Python package"]);
            continue;
        }
        test_env.approve("probe");
        let run = test_env.run("probe", &CODE);
        run.fails(3, "requirement-refused");
        run.assert_error_contains(&["is refused"]);
    }
    assert!(!test_env.path(".savoir/cache/python/environments").exists(), "nothing was prepared");
}

#[test]
fn running_without_consent_is_refused() {
    let test_env = RunTestEnv::new();
    test_env.probe("probe", &[], "");
    let run = test_env.run("probe", &CODE);
    run.fails(3, "not-approved");
    run.assert_error_contains(&["it has not been approved yet", "savoir approve ", "--approve "]);
    test_env.approve("probe");
    test_env.run("probe", &CODE).succeeds();
    // An untrusted skill asks before every run, despite the approval.
    let run = test_env.run("probe", &[&CODE[..], &["--untrusted"]].concat());
    run.fails(3, "not-approved");
    run.assert_error_contains(&["it is untrusted"]);
    // Changing any file invalidates the approval.
    test_env.write("skills/probe/extra.py", "x = 1\n");
    let run = test_env.run("probe", &CODE);
    run.fails(3, "not-approved");
    run.assert_error_contains(&["a file of the skill changed"]);
    // Extra grants on the command line need a new approval, and an invalid one is rejected.
    test_env.approve("probe");
    test_env.run("probe", &[&CODE[..], &["--allow-env", "X"]].concat()).fails(3, "not-approved");
    for bad in
        [["--allow-host", "*"], ["--allow-private-host", "10.0.0.1/8"], ["--allow-host", "x:99999"]]
    {
        let run = test_env.run("probe", &[&CODE[..], &bad[..], &["--approve", "0"]].concat());
        assert_eq!(run.0.code, 3, "{}", run.0);
    }
}

#[test]
fn protected_paths_are_refused_by_check_and_approve_as_by_run() {
    let test_env = RunTestEnv::new();
    test_env.repository();
    for path in ["~/.bashrc", "~/.ssh/**", ".git/hooks", ".claude/**"] {
        test_env.probe("probe", &[&format!("filesystem:write:{path}")], "");
        let skill = test_env.skill("probe");
        let checked = test_env.savoir(&["check", &skill]);
        assert_eq!(checked.code, 1, "{checked}");
        for said in [
            checked.stdout + &checked.stderr,
            test_env.savoir(&["approve", &skill, "--yes"]).stderr,
            test_env.savoir(&["run", &skill, "--param", "code=result = 1"]).stderr,
        ] {
            assert!(said.contains("cannot be granted"), "{path}: {said}");
            assert!(said.contains("is never written by skills"), "{path}: {said}");
            assert!(said.contains("write somewhere else"), "{path}: {said}");
            assert!(!said.contains("--allow-write") && !said.contains("SKILL "), "{path}: {said}");
        }
    }
}

#[test]
fn protected_path_cannot_be_added_to_an_approval() {
    let test_env = RunTestEnv::new();
    test_env.probe("probe", &[], "");
    let skill = test_env.skill("probe");
    let refused = test_env.savoir(&["approve", &skill, "--allow-write", "~/.ssh", "--yes"]);
    assert_eq!(refused.code, 3, "{refused}");
    assert!(refused.stderr.contains("is never written by skills"), "{refused}");
    let revoke = format!("savoir approve --revoke {skill}");
    assert!(refused.stderr.contains(&revoke), "{refused}");
    test_env.approve("probe");
    test_env.run("probe", &CODE).succeeds();
}

#[test]
fn hint_to_grant_a_path_names_the_skill() {
    let test_env = RunTestEnv::new();
    test_env.probe("probe", &["filesystem:write:.husky/**"], "");
    let skill = test_env.skill("probe");
    let refused = test_env.savoir(&["approve", &skill, "--yes"]);
    assert_eq!(refused.code, 3, "{refused}");
    assert!(refused.stderr.contains(&format!("savoir approve {skill} --allow-write")), "{refused}");
    let approved = test_env.savoir(&["approve", &skill, "--allow-write", ".husky", "--yes"]);
    assert_eq!(approved.code, 0, "{approved}");
}
