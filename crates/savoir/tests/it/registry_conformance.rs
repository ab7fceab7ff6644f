//! `savoir registry conformance` against `savoir serve`: every check passes, on each kind of database
//! and storage, and also while processes beside it are killed.

use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use serde_json::Value;

use crate::{
    cluster::register,
    live_server::House,
    outside::RunEnvironment,
    registry_faults::{OFF, Publishers, some},
    support::{Sandbox, Transcript},
};

/// Two people: one publishes, the other must not be able to publish the same.
struct People {
    token: String,
    other: String,
}

impl People {
    fn at(house: &House) -> Self {
        Self {
            token: register(house, "conny@example.com"),
            other: register(house, "otto@example.com"),
        }
    }
}

/// Runs checks against a house; gives what came of them.
fn check(sandbox: &Sandbox, address: &str, people: &People, more: &[&str]) -> Transcript {
    let url = format!("http://{address}/registry");
    let words = ["registry", "conformance", &url, "--namespace", "acme", "--json"];
    let mut command = sandbox.command(&[&words, more].concat());
    command
        .env("SAVOIR_TOKEN", &people.token)
        .env("SAVOIR_OTHER_TOKEN", &people.other)
        .env("NO_PROXY", "127.0.0.1");
    Transcript::of(command)
}

/// All that there are passed in one run or another, and none was left out.
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
fn a_house_with_a_folder_keeps_every_promise() {
    let sandbox = Sandbox::new();
    let house = House::start(&sandbox, &OFF, None);
    all_passed(&sandbox, &[check(&sandbox, &house.address, &People::at(&house), &[])]);
}

#[test]
fn a_house_with_a_server_and_a_bucket_keeps_every_promise() {
    let Some(run_env) = RunEnvironment::new() else { return };
    let house = run_env.house(&OFF, None);
    let done = check(&run_env.sandbox, &house.address, &People::at(&house), &[]);
    all_passed(&run_env.sandbox, &[done]);
}

/// What a house lists, page by page.
fn names(house: &House) -> BTreeSet<String> {
    let (mut names, mut cursor) = (BTreeSet::new(), String::new());
    loop {
        let path = format!("/registry/api/v1/skills?per_page=100{cursor}");
        let page = house.ask("GET", &path, "", None);
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

/// The groups that each house is checked for.
const GROUPS: [&[&str]; 2] =
    [&["discovery", "pull", "publish", "immutability"], &["search", "errors", "hostile"]];

/// One house is checked while the other is killed again and again, then the other way round; somebody
/// publishes at both all the time.
#[test]
fn every_promise_is_kept_while_the_other_house_is_killed() {
    let Some(run_env) = RunEnvironment::new() else { return };
    let mut houses = [run_env.house(&OFF, None), run_env.house(&OFF, None)];
    let people = People::at(&houses[0]);
    let token = register(&houses[1], "ada@example.com");
    let publishers = Publishers::new(token, &[&houses[0], &houses[1]]);
    publishers.beside(1, || {
        let mut check =
            |which| checked_beside_deaths(&run_env, &mut houses, which, &people, &publishers);
        all_passed(&run_env.sandbox, &[check(0), check(1)]);
        publishers.wait_for(2);
    });
    publishers.check(&[&houses[0].address, &houses[1].address]);
    let both = houses.each_ref().map(names);
    assert_eq!(both[0], both[1]);
    assert!(both[0].len() > publishers.acknowledged(), "what the checks published is there, too");
}

/// Checks one house, and kills the other up to three times meanwhile.
fn checked_beside_deaths(
    run_env: &RunEnvironment,
    houses: &mut [House; 2],
    which: usize,
    people: &People,
    publishers: &Publishers,
) -> Transcript {
    let [first, second] = houses;
    let (checked, dying) = if which == 0 { (&*first, second) } else { (&*second, first) };
    let address = checked.address.clone();
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        let done = scope.spawn(|| {
            let groups: Vec<&str> =
                GROUPS[which].iter().flat_map(|group| ["--only", group]).collect();
            let done = check(&run_env.sandbox, &address, people, &groups);
            is_done.store(true, Ordering::SeqCst);
            done
        });
        for kill in 0..3 {
            thread::sleep(Duration::from_millis(some(1500)));
            if kill > 0 && is_done.load(Ordering::SeqCst) {
                break;
            }
            dying.signal("-KILL");
            *dying = run_env.house(&OFF, None);
            publishers.moves(1 - which, &dying.address);
        }
        done.join().expect("a report")
    })
}
