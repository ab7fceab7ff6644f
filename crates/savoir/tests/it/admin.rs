//! Tests `savoir admin`: accounts without a running server.

use std::process::Stdio;

use crate::{live_server::create_account, support::Sandbox};

#[test]
fn accounts_are_made_listed_and_changed() {
    let sandbox = Sandbox::new();
    let none = sandbox.run(&["admin", "list"]);
    assert_eq!(none.stdout, "no accounts; create one with: savoir admin create EMAIL\n");
    let made = create_account(&sandbox, " Ada@Example.com", "secret-word");
    assert_eq!(made, "Created admin account ada@example.com\n");
    let again = create_account(&sandbox, "ada@example.com", "secret-word");
    assert!(again.starts_with("error: Email already registered\nhint: "), "{again}");
    let wrong = create_account(&sandbox, "ada", "secret-word");
    assert!(wrong.starts_with("error: Valid email address required\n"), "{wrong}");
    let short = create_account(&sandbox, "bob@example.com", "abc");
    assert!(short.starts_with("error: the password must have at least 6 characters\n"), "{short}");
    let list = sandbox.run(&["admin", "list", "--json"]).json();
    let list = &list["accounts"];
    assert_eq!(list.as_array().map(Vec::len), Some(1));
    assert_eq!((&list[0]["role"], &list[0]["active"]), (&"admin".into(), &true.into()));
}

#[test]
fn an_address_is_checked_before_a_password_is_asked_for() {
    let sandbox = Sandbox::new();
    create_account(&sandbox, "ada@example.com", "secret-word");
    let said = |words: &[&str]| {
        let output = sandbox.command(words).stdin(Stdio::null()).output().expect("savoir runs");
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let wrong = said(&["admin", "create", "ada"]);
    assert!(wrong.starts_with("error: Valid email address required\nhint: "), "{wrong}");
    let taken = said(&["admin", "create", "ADA@example.com"]);
    assert!(taken.starts_with("error: Email already registered\nhint: "), "{taken}");
    let unknown = said(&["admin", "reset-password", "eve@example.com"]);
    assert!(unknown.starts_with("error: account eve@example.com does not exist\n"), "{unknown}");
    let asked = said(&["admin", "create", "bob@example.com"]);
    assert!(asked.starts_with("error: the password must have at least 6 characters\n"), "{asked}");
}

#[test]
fn keys_and_passwords_change() {
    let sandbox = Sandbox::new();
    create_account(&sandbox, "ada@example.com", "secret-word");
    let run = sandbox.run(&["admin", "rotate-key", "--forget-old", "--json"]);
    assert_eq!(run.json()["forgot_old"], true, "{run}");
    let mut command = sandbox.command(&["admin", "reset-password", "eve@example.com"]);
    let file = sandbox.write("password.txt", "another-word\n");
    let input = || Stdio::from(std::fs::File::open(&file).expect("a file"));
    let output = command.stdin(input()).output().expect("savoir runs");
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.starts_with("error: account eve@example.com does not exist\n"), "{said}");
    let mut command = sandbox.command(&["admin", "reset-password", "ADA@example.com"]);
    let output = command.stdin(input()).output().expect("savoir runs");
    assert!(output.status.success(), "{output:?}");
}
