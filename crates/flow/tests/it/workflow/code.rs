//! Tests of code nodes in the real sandbox.

use std::time::{Duration, Instant};

use savoir_flow::{
    event::{Emitter, Event, ListenerDisconnected},
    workflow::{NoJournal, run},
};
use savoir_sandbox::{RunnableTools, SandboxSupport};
use serde_json::{Value, json};

use super::{Scripted, error_of, fresh, graph, host, inner_lines, output_of};

/// Whether this machine supports the sandbox and has a system Python.
pub(super) fn can_run() -> bool {
    let held = SandboxSupport::detect().runnable_tools() == RunnableTools::All
        && std::path::Path::new("/usr/bin/python3").exists();
    if !held {
        eprintln!("note: code cannot run here, so this test checks nothing");
    }
    held
}

async fn printed(code: &str) -> Value {
    output_of(&host(&Scripted::new(&[])), "code", json!({"code": code}), "IN é").await
}

#[tokio::test]
async fn code_prints_its_output() {
    if !can_run() {
        return;
    }
    assert_eq!(printed("print('  hello é  ')").await, "hello é");
    let code = "import os\nprint(sorted(k for k in os.environ if k != 'LC_CTYPE'))\n\
                print(os.environ['WORKFLOW_INPUT'], os.environ['USER_ID'], os.environ['API_KEY'])";
    let data = json!({"code": code, "env": {"api_key": "k {{input}}"}});
    let output = output_of(&host(&Scripted::new(&[])), "code", data, "IN é").await;
    assert_eq!(output, "['API_KEY', 'USER_ID', 'WORKFLOW_INPUT']\nIN é anonymous k {{input}}");
    let Value::String(long) = printed("print('é' * 100_000)").await else { panic!("a text") };
    assert_eq!(long.len(), 10 << 10);
}

#[tokio::test]
async fn output_that_is_cut_warns() {
    if !can_run() {
        return;
    }
    let host = host(&Scripted::new(&[]));
    for (bytes, cut) in [(10 << 10, false), ((10 << 10) + 1, true)] {
        let code = format!("print('x' * {bytes}, end='')");
        let nodes = [("s", "start", json!({})), ("n", "code", json!({"code": code}))];
        let lines = inner_lines(&host, &graph(&nodes, &["s n"]), "x").await;
        let warning = r#"warning {"node_id":"n","message":"The output was cut after 10 KiB"}"#;
        assert_eq!(lines.iter().any(|line| line == warning), cut, "{bytes}");
    }
}

#[tokio::test]
async fn code_that_fails() {
    if !can_run() {
        return;
    }
    let host = host(&Scripted::new(&[]));
    let status = "Code execution returned non-zero status";
    for code in ["import sys; sys.exit(3)", "import os; os.abort()"] {
        assert_eq!(error_of(&host, "code", json!({"code": code})).await, status, "{code}");
    }
    for (code, reason) in [
        ("x = 1\n1 / 0", "File \"node.py\", line 2, in <module>"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("syntax error", "SyntaxError: invalid syntax"),
    ] {
        let error = error_of(&host, "code", json!({"code": code})).await;
        assert!(error.starts_with(status) && error.contains(reason), "{error}");
        assert!(!error.contains("/tmp"), "{error}");
    }
    let begun = Instant::now();
    let data = json!({"code": "import time; time.sleep(60)", "timeoutSeconds": 1});
    assert_eq!(error_of(&host, "code", data).await, "Code execution timed out");
    assert!(begun.elapsed() < Duration::from_secs(8));
    let data = json!({"code": "while True: print('x' * 9999)"});
    assert_eq!(
        error_of(&host, "code", data).await,
        "Code execution failed: it printed more than 1024 KiB"
    );
    let data = json!({"code": "print(len(b'x' * (200 << 20)))", "memoryLimitMb": 64});
    assert!(error_of(&host, "code", data).await.starts_with(status));
    let data = json!({"code": "print(1)", "env": {"ld_preload": "/x"}});
    assert_eq!(
        error_of(&host, "code", data).await,
        "Code execution failed: `ld_preload` cannot be the name of a variable"
    );
}

#[tokio::test]
async fn code_has_no_network_and_no_host_files() {
    if !can_run() {
        return;
    }
    let outside = tempfile::tempdir().unwrap();
    let secret = outside.path().join("secret.txt");
    std::fs::write(&secret, "secret").unwrap();
    let code = format!(
        r#"
import os, socket, subprocess
def tried(what):
    try:
        what()
        return "done"
    except (OSError, PermissionError) as error:
        return "no"
print(tried(lambda: open({secret:?}).read()))
print(tried(lambda: open("/etc/shadow").read()))
print(len(open("/etc/passwd").readlines()))
print(tried(lambda: os.listdir("/root")), tried(lambda: os.listdir("/home")))
print(tried(lambda: open("/proc/1/environ").read() and 0 or open({secret:?})))
print(tried(lambda: socket.create_connection(("127.0.0.1", 80), 1)))
print(tried(lambda: socket.socket()))
print(tried(lambda: subprocess.run(["/bin/sh", "-c", "true"])))
print(tried(lambda: open(__file__, "w")))
print(tried(lambda: open("/tmp/own", "w").write("x")), os.getcwd())
"#
    );
    assert_eq!(printed(&code).await, "no\nno\n1\nno no\nno\nno\nno\nno\nno\ndone /tmp");
}

#[tokio::test]
async fn code_ends_when_cancelled() {
    if !can_run() {
        return;
    }
    let data = json!({"code": "import time\ntime.sleep(20)"});
    let graph = graph(&[("s", "start", json!({})), ("n", "code", data)], &["s n"]);
    let host = host(&Scripted::new(&[]));
    let (out, mut listener) = Emitter::channel();
    let begun = Instant::now();
    let leave = async move {
        let is_code = |event: &Event| matches!(event, Event::NodeStart { node_type: "code", .. });
        while let Some(event) = listener.recv().await {
            if is_code(&event) {
                break;
            }
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    };
    let (ended, ()) = tokio::join!(run(&host, fresh(&graph, "x"), &NoJournal, &out), leave);
    assert_eq!(ended, Err(ListenerDisconnected));
    // With only one slot for programs, this would wait 20 s if the slot was not freed.
    let data = json!({"code": "print(1)"});
    assert_eq!(output_of(&host, "code", data, "x").await, "1");
    assert!(begun.elapsed() < Duration::from_secs(10));
}
