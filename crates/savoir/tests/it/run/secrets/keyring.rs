//! Tests secrets in a real keyring.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    path::Path,
    process::{Child, Command, Stdio},
};

use super::super::has_program;
use super::{NAME, RunTestEnv, VALUE, needs, seen, store};

/// A message bus that does not start services, such as another keyring.
const BUS: &str = r#"<busconfig>
<type>session</type>
<listen>unix:path=ADDRESS</listen>
<policy context="default">
<allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/>
</policy>
</busconfig>"#;

/// A separate message bus with an unlocked keyring.
struct Keyring {
    bus: Child,
    daemon: Child,
    address: String,
}

impl Keyring {
    /// Returns `None` if one of the programs is not installed.
    fn start(folder: &Path) -> Option<Self> {
        let needed = ["dbus-daemon", "gnome-keyring-daemon", "secret-tool"];
        if !needed.into_iter().all(has_program) {
            #[expect(clippy::print_stderr, reason = "a skipped test must be seen")]
            {
                eprintln!("skipped: no keyring is installed");
            }
            return None;
        }
        fs::create_dir_all(folder).expect("a folder");
        let settings = folder.join("bus.conf");
        let socket = folder.join("bus").display().to_string();
        fs::write(&settings, BUS.replace("ADDRESS", &socket)).expect("a file");
        let mut bus = Command::new("dbus-daemon")
            .args(["--nofork", "--print-address", "--config-file"])
            .arg(settings)
            .stdout(Stdio::piped())
            .spawn()
            .expect("a bus");
        let mut address = String::new();
        BufReader::new(bus.stdout.take().expect("a pipe")).read_line(&mut address).expect("a line");
        let address = address.trim().to_owned();
        let mut daemon = Command::new("gnome-keyring-daemon")
            .args(["--foreground", "--unlock", "--components=secrets"])
            .envs([("HOME", folder), ("XDG_DATA_HOME", folder), ("XDG_RUNTIME_DIR", folder)])
            .env("DBUS_SESSION_BUS_ADDRESS", &address)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("a keyring");
        daemon.stdin.take().expect("a pipe").write_all(b"password").expect("a password");
        let started = Self { bus, daemon, address };
        started.wait();
        Some(started)
    }

    /// Waits until the keyring has a collection.
    fn wait(&self) {
        let mut collections = Command::new("dbus-send");
        collections.args([
            "--session",
            "--print-reply",
            "--dest=org.freedesktop.secrets",
            "/org/freedesktop/secrets",
            "org.freedesktop.Secret.Service.ReadAlias",
            "string:default",
        ]);
        collections.env("DBUS_SESSION_BUS_ADDRESS", &self.address);
        for _ in 0..100 {
            let answer = collections.output().expect("dbus-send runs");
            if String::from_utf8_lossy(&answer.stdout).contains("/collection/") {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        panic!("the keyring does not start");
    }

    /// The value that another program finds in the keyring.
    fn lookup(&self) -> String {
        let found = Command::new("secret-tool")
            .args(["lookup", "application", "savoir", "variable", NAME])
            .env("DBUS_SESSION_BUS_ADDRESS", &self.address)
            .output()
            .expect("secret-tool runs");
        String::from_utf8_lossy(&found.stdout).into_owned()
    }
}

impl Drop for Keyring {
    fn drop(&mut self) {
        for child in [&mut self.daemon, &mut self.bus] {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[test]
fn values_are_in_the_keyring() {
    let mut test_env = RunTestEnv::new();
    let Some(keyring) = Keyring::start(&test_env.path("keyring")) else { return };
    test_env.variables.push(("DBUS_SESSION_BUS_ADDRESS".to_owned(), keyring.address.clone()));
    test_env.probe("needs", &[], &needs());
    store(&test_env, &[]);
    test_env.approve("needs");
    assert_eq!(seen(&test_env, "needs"), VALUE.len());
    assert_eq!(keyring.lookup(), VALUE);
    let file =
        fs::read_to_string(test_env.path(".savoir/data/secrets/secrets.json")).expect("a list");
    assert!(file.contains(NAME) && !file.contains(VALUE), "{file}");
    let list = test_env.savoir(&["secret", "list"]);
    assert!(list.stdout.contains("keyring"), "{list}");

    // The value was removed in the keyring: the error says so, and its hint works.
    let mut clear = Command::new("secret-tool");
    clear.args(["clear", "application", "savoir"]);
    clear.env("DBUS_SESSION_BUS_ADDRESS", &keyring.address).status().expect("secret-tool runs");
    let run = test_env.run("needs", &["--param", "code=result = 1"]);
    run.assert_error_contains(&[
        "the keyring has no value for ACME_WORD",
        "savoir secret set ACME_WORD",
    ]);
    store(&test_env, &[]);
    assert_eq!(seen(&test_env, "needs"), VALUE.len());

    let run = test_env.savoir(&["secret", "remove", NAME]);
    assert_eq!((run.code, keyring.lookup().as_str()), (0, ""), "{run}");
}

#[test]
fn a_keyring_that_does_not_answer_is_named() {
    let mut test_env = RunTestEnv::new();
    let Some(keyring) = Keyring::start(&test_env.path("keyring")) else { return };
    let address = ("DBUS_SESSION_BUS_ADDRESS".to_owned(), keyring.address.clone());
    test_env.variables.push(address);
    test_env.probe("needs", &[], &needs());
    store(&test_env, &[]);
    test_env.approve("needs");
    drop(keyring);
    let run = test_env.run("needs", &["--param", "code=result = 1"]);
    run.assert_error_contains(&["no keyring answers", "savoir secret set ACME_WORD"]);
    let run = test_env.savoir(&["secret", "remove", NAME]);
    assert!(run.code == 2 && run.stderr.contains("unlock the keyring"), "{run}");
    // If the value is stored again, it is stored in the file.
    store(&test_env, &[]);
    assert_eq!(seen(&test_env, "needs"), VALUE.len());
    assert!(test_env.savoir(&["secret", "list"]).stdout.contains(" file "));
}
