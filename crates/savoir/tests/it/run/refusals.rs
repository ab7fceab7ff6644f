//! Runs that cannot be enforced are refused with exit code 3, the permission and a hint.

use std::os::unix::fs::symlink;

use super::Stage;

const CODE: [&str; 2] = ["--param", "code=result = 1"];

#[test]
fn permissions_that_nothing_can_hold() {
    let stage = Stage::new();
    for (number, (permission, way_out)) in [
        ("desktop:control", "remove it from the skill"),
        ("mcp:connect", "remove it from the skill"),
        ("mcp:connect:files", "remove it from the skill"),
        ("filesystem:write:./out/*.txt", "end it with /**"),
        ("filesystem:read", "filesystem:read:./data/**"),
        ("filesystem:write", "--allow-read FOLDER"),
        ("filesystem:read:/", "name the folder that is needed"),
        ("filesystem:write:./.git/hooks/**", "write somewhere else"),
        ("filesystem:write:~/.ssh/**", "write somewhere else"),
        ("filesystem:write:/nowhere/at/all/**", "make it first"),
        ("database:read", "name the file"),
        ("env:read:LD_PRELOAD", "remove it from the skill"),
        ("env:read:PYTHONPATH", "remove it from the skill"),
        ("network:read:ftp://example.com", "name a host"),
        ("network:read:example.com..", "savoir check"),
        ("network:read:evil.com\0.example.com", "savoir check"),
        ("network:read:2130706433", "name a host"),
        ("network:read:exa mple.com", "savoir check"),
        ("filesystem:read:../up/**", "savoir check"),
    ]
    .into_iter()
    .enumerate()
    {
        stage.probe("probe", &[permission], "");
        let run = stage.run("probe", &CODE);
        run.fails(3, "permission-not-enforceable");
        run.says(&[way_out]);
        let shown = permission.split('\0').next().unwrap_or_default();
        let shown = shown.strip_suffix("all/**").unwrap_or(shown);
        run.says(&[shown]);
        // Nothing ran, and the records say why.
        let records = stage.records();
        assert_eq!(records.len(), (number + 1).min(20), "{permission}");
        let record = &records[0];
        assert_eq!(record["decision"]["verdict"], "refused", "{permission}");
        assert_eq!(record["error"]["code"], "permission-not-enforceable");
        assert_eq!((&record["skill"], &record["tool"]), (&"probe".into(), &"probe".into()));
    }
}

#[test]
fn contradictions_are_no_skill() {
    let stage = Stage::new();
    stage.probe("probe", &["network:none", "network:read:example.com"], "");
    let run = stage.run("probe", &CODE);
    run.fails(1, "skill-invalid");
    run.says(&["`network:none` contradicts another permission"]);
    let run = stage.savoir(&["approve", &stage.skill("probe"), "--yes"]);
    assert_ne!(run.code, 0, "{run}");
}

#[test]
fn a_grant_that_is_a_link() {
    let stage = Stage::new();
    stage.write("home/private/key", "secret");
    symlink(stage.path("home/private"), stage.path("work/linked")).expect("a link");
    symlink(stage.path("home"), stage.path("work/way")).expect("a link");
    for permission in [
        "filesystem:read:./linked/**",
        "filesystem:write:./linked/**",
        "filesystem:read:./way/private/**",
        "filesystem:read:./linked/key",
    ] {
        stage.probe("probe", &[permission], "");
        stage.approve("probe");
        let run = stage.run("probe", &CODE);
        run.fails(3, "path-refused");
        run.says(&["/work/"]);
        assert_eq!(stage.record()["error"]["code"], "path-refused");
    }
}

#[test]
fn requirements_that_are_something_else() {
    let stage = Stage::new();
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
        stage.probe("probe", &[], &fields);
        let run = stage.run("probe", &CODE);
        if run.0.code == 1 {
            run.fails(1, "skill-invalid");
            run.says(&["is not a Python package"]);
            continue;
        }
        stage.approve("probe");
        let run = stage.run("probe", &CODE);
        run.fails(3, "requirement-refused");
        run.says(&["is refused"]);
    }
    assert!(!stage.path(".savoir/cache/python/environments").exists(), "nothing was prepared");
}

#[test]
fn running_without_consent_is_refused() {
    let stage = Stage::new();
    stage.probe("probe", &[], "");
    let run = stage.run("probe", &CODE);
    run.fails(3, "not-approved");
    run.says(&["it has not been approved yet", "savoir approve ", "--approve "]);
    stage.approve("probe");
    stage.run("probe", &CODE).succeeds();
    // A stranger's skill asks each time, whatever was approved.
    let run = stage.run("probe", &[&CODE[..], &["--untrusted"]].concat());
    run.fails(3, "not-approved");
    run.says(&["it is untrusted"]);
    // A change of any file takes the approval away.
    stage.write("skills/probe/extra.py", "x = 1\n");
    let run = stage.run("probe", &CODE);
    run.fails(3, "not-approved");
    run.says(&["a file of the skill changed"]);
    // So does an addition on the command line, and a bad one is refused for good.
    stage.approve("probe");
    stage.run("probe", &[&CODE[..], &["--allow-env", "X"]].concat()).fails(3, "not-approved");
    for bad in
        [["--allow-host", "*"], ["--allow-private-host", "10.0.0.1/8"], ["--allow-host", "x:99999"]]
    {
        let run = stage.run("probe", &[&CODE[..], &bad[..], &["--approve", "0"]].concat());
        assert_eq!(run.0.code, 3, "{}", run.0);
    }
}
