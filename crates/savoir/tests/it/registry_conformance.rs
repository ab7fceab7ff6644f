//! Runs `savoir registry conformance` against `savoir serve` with every kind of database and
//! storage, and while other servers are killed.

use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use serde_json::Value;

use crate::{
    cluster::register,
    live_server::TestServer,
    registry_faults::{NO_RATE_LIMIT, Publishers, random_below},
    services::RunEnvironment,
    support::{Sandbox, Transcript},
};

/// The tokens of two accounts: the second one must not be able to publish skills of the first.
struct TestAccounts {
    token: String,
    other: String,
}

impl TestAccounts {
    fn at(server: &TestServer) -> Self {
        Self {
            token: register(server, "conny@example.com"),
            other: register(server, "otto@example.com"),
        }
    }
}

/// Runs checks against a server; returns the output.
fn check(sandbox: &Sandbox, address: &str, accounts: &TestAccounts, more: &[&str]) -> Transcript {
    let url = format!("http://{address}/registry");
    let words = ["registry", "conformance", &url, "--namespace", "acme", "--json"];
    let mut command = sandbox.command(&[&words, more].concat());
    command
        .env("SAVOIR_TOKEN", &accounts.token)
        .env("SAVOIR_OTHER_TOKEN", &accounts.other)
        .env("NO_PROXY", "127.0.0.1");
    Transcript::of(command)
}

/// Checks that every check passed in at least one of the runs, and none failed.
fn all_passed(sandbox: &Sandbox, runs: &[Transcript]) {
    let mut checks = Vec::new();
    for run in runs {
        checks.extend(run.json()["checks"].as_array().expect("a list").clone());
    }
    let bad: Vec<&Value> = checks.iter().filter(|check| check["status"] != "passed").collect();
    assert!(bad.is_empty(), "{bad:#?}");
    let listed = sandbox.run(&["registry", "conformance", "--list"]);
    let count = listed.stdout.lines().count();
    assert!(count > 100, "{listed}");
    assert_eq!(checks.len(), count);
    assert!(runs.iter().all(|run| run.code == 0));
}

#[test]
fn server_with_a_folder_conforms() {
    let sandbox = Sandbox::new();
    let server = TestServer::start(&sandbox, &NO_RATE_LIMIT, None);
    all_passed(&sandbox, &[check(&sandbox, &server.address, &TestAccounts::at(&server), &[])]);
}

#[test]
fn server_with_postgres_and_bucket_conforms() {
    let Some(run_env) = RunEnvironment::new() else { return };
    let server = run_env.server(&NO_RATE_LIMIT, None);
    let done = check(&run_env.sandbox, &server.address, &TestAccounts::at(&server), &[]);
    all_passed(&run_env.sandbox, &[done]);
}

/// The names of all skills of a server, read page by page.
fn names(server: &TestServer) -> BTreeSet<String> {
    let (mut names, mut cursor) = (BTreeSet::new(), String::new());
    loop {
        let path = format!("/registry/api/v1/skills?per_page=100{cursor}");
        let page = server.ask("GET", &path, "", None);
        assert_eq!(page.status, 200, "{}", page.body);
        let page = page.json();
        let items = page["items"].as_array().expect("a list").iter();
        names.extend(items.map(|item| item["name"].as_str().expect("a name").to_owned()));
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return names,
        }
    }
}

/// The groups of checks for each server.
const GROUPS: [&[&str]; 2] =
    [&["discovery", "pull", "publish", "immutability"], &["search", "errors", "hostile"]];

/// Checks one server while the other one is killed repeatedly, and then the other way round.
/// Meanwhile, both get publish requests.
#[test]
fn server_conforms_while_another_one_is_killed() {
    let Some(run_env) = RunEnvironment::new() else { return };
    let mut servers = [run_env.server(&NO_RATE_LIMIT, None), run_env.server(&NO_RATE_LIMIT, None)];
    let accounts = TestAccounts::at(&servers[0]);
    let token = register(&servers[1], "ada@example.com");
    let publishers = Publishers::new(token, &[&servers[0], &servers[1]]);
    publishers.spawn_publishers(1, || {
        let mut check =
            |which| check_while_killing(&run_env, &mut servers, which, &accounts, &publishers);
        all_passed(&run_env.sandbox, &[check(0), check(1)]);
        publishers.wait_for(2);
    });
    publishers.check(&[&servers[0].address, &servers[1].address]);
    let both = servers.each_ref().map(names);
    assert_eq!(both[0], both[1]);
    assert!(both[0].len() > publishers.acknowledged(), "what the checks published is there, too");
}

/// Checks one server, and kills the other one up to three times during the check.
fn check_while_killing(
    run_env: &RunEnvironment,
    servers: &mut [TestServer; 2],
    which: usize,
    accounts: &TestAccounts,
    publishers: &Publishers,
) -> Transcript {
    let [first, second] = servers;
    let (checked, dying) = if which == 0 { (&*first, second) } else { (&*second, first) };
    let address = checked.address.clone();
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        let done = scope.spawn(|| {
            let groups: Vec<&str> =
                GROUPS[which].iter().flat_map(|group| ["--only", group]).collect();
            let done = check(&run_env.sandbox, &address, accounts, &groups);
            is_done.store(true, Ordering::SeqCst);
            done
        });
        for kill in 0..3 {
            thread::sleep(Duration::from_millis(random_below(1500)));
            if kill > 0 && is_done.load(Ordering::SeqCst) {
                break;
            }
            dying.signal("-KILL");
            *dying = run_env.server(&NO_RATE_LIMIT, None);
            publishers.set_address(1 - which, &dying.address);
        }
        done.join().expect("a report")
    })
}
