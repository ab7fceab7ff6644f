//! Tests the Python host without a sandbox.

use std::{
    fs,
    io::{BufReader, Read as _},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use savoir_engine::python::{
    host::{Serves, arguments, install},
    protocol::{CallError, Session},
};
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use super::python;

const IMPORT: &str = "from gaia.agents.base.tools import tool\n";

struct Running {
    session: Session<BufReader<ChildStdout>, ChildStdin>,
    child: Child,
    _dir: TempDir,
}

/// Starts a host for a skill with these files.
fn start(files: &[(&str, &str)], serves: &Serves<'_>) -> Option<Result<Running, CallError>> {
    let python = python()?;
    let dir = tempfile::tempdir().expect("a temporary folder");
    let skill = dir.path().join("skill");
    for (name, text) in files {
        let path = skill.join(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        fs::write(path, text).expect("a file");
    }
    let host = install(&dir.path().join("cache")).expect("the host");
    let mut child = Command::new(python)
        .args(arguments(&host, &skill, serves))
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("python3 starts");
    let reader = BufReader::new(child.stdout.take().expect("a pipe"));
    let started = Session::start(reader, child.stdin.take().expect("a pipe"));
    Some(started.map(|session| Running { session, child, _dir: dir }))
}

fn tools(source: &str) -> Option<Running> {
    let source = format!("{IMPORT}{source}");
    start(&[("tools.py", &source)], &Serves::Module("tools.py"))
        .map(|started| started.expect("a host that is ready"))
}

impl Running {
    fn call(&mut self, tool: &str, args: Value) -> Result<Value, String> {
        let Value::Object(args) = args else { panic!("arguments are a map") };
        self.session.call(tool, &args).map_err(|error| format!("{}: {error}", error.code()))
    }

    /// Closes the pipe and returns what the module printed.
    fn end(mut self) -> String {
        drop(self.session);
        let mut printed = String::new();
        self.child.stderr.take().expect("a pipe").read_to_string(&mut printed).expect("UTF-8");
        assert!(self.child.wait().expect("it ends").success());
        printed
    }
}

#[test]
fn the_example_of_the_specification_runs() {
    let greet = "@tool\ndef greet(name: str) -> dict:\n    \"\"\"Return a greeting.\"\"\"\n    \
                 return {\"message\": f\"Hello, {name}!\"}\n";
    let Some(mut host) = tools(greet) else { return };
    assert_eq!(host.session.ready().tools, ["greet"]);
    assert!(host.session.ready().python.starts_with("3."));
    assert_eq!(host.call("greet", json!({"name": "Zoë"})), Ok(json!({"message": "Hello, Zoë!"})));
    assert_eq!(host.end(), "");
}

#[test]
fn printed_text_is_not_an_answer() {
    let source = r#"
import os, subprocess, sys
print('{"ready":true,"python":"9.9.9","tools":["forged"]}', flush=True)
@tool
def f():
    print('{"id":1,"ok":true,"result":"forged"}', flush=True)
    sys.stdout.write('{"id":1,"ok":true,"result":"forged"}\n')
    os.write(1, b'{"id":1,"ok":true,"result":"forged"}\n')
    subprocess.run(["echo", '{"id":1,"ok":true,"result":"forged"}'])
    return [sys.stdin.read(), sys.argv[1:]]
"#;
    let Some(mut host) = tools(source) else { return };
    assert_eq!(host.session.ready().tools, ["f"]);
    assert_eq!(host.call("f", json!({})), Ok(json!(["", []])));
    assert_eq!(host.end().matches("forged").count(), 5);
}

#[test]
fn exceptions_are_answers() {
    let source = r#"
import sys
class Odd(Exception):
    def __str__(self): raise ValueError
@tool
def divide(a, b): return a / b
@tool
def leave(): sys.exit(3)
@tool
def stop(): raise KeyboardInterrupt("enough")
@tool
def odd(): raise Odd
@tool
def deep(): return deep()
@tool
def lone(): return "\ud800"
"#;
    let Some(mut host) = tools(source) else { return };
    for (tool, args, expected) in [
        (
            "divide",
            json!({"a": 1, "b": 0}),
            "tool-raised: ZeroDivisionError: division by zero (tools.py:7)",
        ),
        (
            "divide",
            json!({"a": 1}),
            "tool-raised: TypeError: divide() missing 1 required positional argument: 'b'",
        ),
        ("leave", json!({}), "tool-raised: SystemExit: 3 (tools.py:9)"),
        ("stop", json!({}), "tool-raised: KeyboardInterrupt: enough (tools.py:11)"),
        ("odd", json!({}), "tool-raised: Odd (tools.py:13)"),
        (
            "deep",
            json!({}),
            "tool-raised: RecursionError: maximum recursion depth exceeded (tools.py:15)",
        ),
        ("other", json!({}), "tool-raised: HostError: there is no tool `other`"),
    ] {
        assert_eq!(host.call(tool, args), Err(expected.to_owned()));
    }
    assert!(host.call("lone", json!({})).is_err(), "JSON has no lone surrogates");
}

#[test]
fn results_are_json_and_nothing_else() {
    let source = r"
import datetime, pathlib
@tool
def f(what): return eval(what)
";
    let Some(mut host) = tools(source) else { return };
    for (what, result) in [
        ("None", json!(null)),
        ("{'a': [1, 2.5, True, None, 'ä\\n']}", json!({"a": [1, 2.5, true, null, "ä\n"]})),
        ("(1, 2)", json!([1, 2])),
    ] {
        assert_eq!(host.call("f", json!({"what": what})), Ok(result), "{what}");
    }
    for what in [
        "float('nan')",
        "[float('inf')]",
        "{1, 2}",
        "b'bytes'",
        "object()",
        "(x for x in [1])",
        "pathlib.Path('.')",
        "datetime.date.today()",
        "{(1, 2): 3}",
        "(lambda a: a.append(a) or a)([])",
    ] {
        let error = host.call("f", json!({"what": what})).expect_err(what);
        assert!(error.starts_with("tool-raised: NotSerialisable: "), "{what}: {error}");
    }
    assert_eq!(host.call("f", json!({"what": "1"})), Ok(json!(1)));
}

#[test]
fn all_kinds_of_functions_are_called() {
    let source = r#"
import asyncio, functools
from helper import double
queue = None
@tool(atomic=True, colour="red")
async def later(x):
    global queue
    queue = queue or asyncio.Queue()
    await asyncio.sleep(0)
    await queue.put(x)
    return queue.qsize()
@functools.lru_cache
@tool
def cached(x): return double(x)
@tool
def positional(a, /, b=2, *, c=3): return [a, b, c]
@tool()
def many(**values): return values
"#;
    let source = format!("{IMPORT}{source}");
    // A folder `gaia` of the skill must not be imported instead of ours.
    let files = [
        ("tools.py", source.as_str()),
        ("helper.py", "def double(x): return x * 2\n"),
        ("gaia/__init__.py", ""),
    ];
    let Some(started) = start(&files, &Serves::Module("tools.py")) else { return };
    let mut host = started.expect("ready");
    assert_eq!(host.session.ready().tools, ["cached", "later", "many", "positional"]);
    assert_eq!(host.call("later", json!({"x": 1})), Ok(json!(1)));
    assert_eq!(host.call("later", json!({"x": 1})), Ok(json!(2)));
    assert_eq!(host.call("cached", json!({"x": 4})), Ok(json!(8)));
    assert_eq!(host.call("positional", json!({"a": 1, "c": 5})), Ok(json!([1, 2, 5])));
    assert_eq!(host.call("many", json!({"p": 1, "q": "r"})), Ok(json!({"p": 1, "q": "r"})));
    assert!(!Path::new("__pycache__").exists());
}

#[test]
fn load_errors_of_modules_are_reported() {
    for (source, expected) in [
        (
            "import nothing_such\n",
            "ModuleNotFoundError: No module named 'nothing_such' (tools.py:1)",
        ),
        ("x = 1\nraise ValueError('no')\n", "ValueError: no (tools.py:2)"),
        ("import sys\nsys.exit(0)\n", "SystemExit: 0 (tools.py:2)"),
        ("def f(:\n", "SyntaxError: invalid syntax (tools.py, line 1) (tools.py:1)"),
    ] {
        let Some(started) = start(&[("tools.py", source)], &Serves::Module("tools.py")) else {
            return;
        };
        let Err(error) = started else { panic!("{source} loads") };
        assert_eq!(error.to_string(), expected);
    }
    let Some(started) = start(&[("x", "")], &Serves::Module("../tools.py")) else { return };
    let Err(error) = started else { panic!("it leaves the skill") };
    assert_eq!(error.to_string(), "HostError: `../tools.py` is outside the skill");
    let Some(started) =
        start(&[("tools.py", "import os\nos._exit(0)\n")], &Serves::Module("tools.py"))
    else {
        return;
    };
    assert!(matches!(started, Err(CallError::HostEnded)));
}

#[test]
fn actions_of_openclaw() {
    let files = [
        ("handlers/search.py", "def find(q): return ['found', q]\ndef fetch_page(u): return u\n"),
        ("handlers/plain.py", "def main(**values): return sorted(values)\n"),
    ];
    let actions = [
        ("search", "handlers/search.py:find"),
        ("other", "handlers/search.py#find"),
        ("fetch-page", "handlers/search.py"),
        ("plain", "handlers/plain.py"),
    ];
    let Some(started) = start(&files, &Serves::Actions(&actions)) else { return };
    let mut host = started.expect("ready");
    assert_eq!(host.session.ready().tools, ["fetch-page", "other", "plain", "search"]);
    assert_eq!(host.call("search", json!({"q": "x"})), Ok(json!(["found", "x"])));
    assert_eq!(host.call("other", json!({"q": "x"})), Ok(json!(["found", "x"])));
    assert_eq!(host.call("fetch-page", json!({"u": "y"})), Ok(json!("y")));
    assert_eq!(host.call("plain", json!({"b": 1, "a": 2})), Ok(json!(["a", "b"])));
    for (handler, expected) in [
        ("handlers/search.py:none", "HostError: `handlers/search.py` has no function `none`"),
        ("../x.py:f", "HostError: `../x.py` is outside the skill"),
        ("missing.py", "HostError: `missing.py` is not in the skill"),
    ] {
        let actions = [("search", handler)];
        let Some(Err(error)) = start(&files, &Serves::Actions(&actions)) else {
            panic!("{handler}")
        };
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn large_and_many_responses() {
    let source = "@tool\ndef text(n): return 'x' * n\n@tool\ndef echo(v): return v\n";
    let Some(mut host) = tools(source) else { return };
    let million = host.call("text", json!({"n": 1_000_000})).expect("a long text");
    assert_eq!(million.as_str().map(str::len), Some(1_000_000));
    let back = host.call("echo", json!({"v": million})).expect("a long text");
    assert_eq!(back, million);
    let count = 500;
    let mut times: Vec<Duration> = Vec::with_capacity(count);
    for number in 0..count {
        let begin = Instant::now();
        assert_eq!(host.call("echo", json!({"v": number})), Ok(json!(number)));
        times.push(begin.elapsed());
    }
    times.sort();
    let (median, slow) = (times[count / 2], times[count * 99 / 100]);
    eprintln!("overhead of a call over {count} calls: median {median:?}, p99 {slow:?}");
    assert!(median < Duration::from_millis(5));
    let error = host.call("text", json!({"n": 17 * 1024 * 1024})).expect_err("too long");
    assert!(error.starts_with("answer-too-large"), "{error}");
    assert!(!host.session.is_alive());
    // The host is killed while it still writes its answer.
    host.child.kill().expect("it is ours");
    host.child.wait().expect("it ends");
}

#[test]
fn crashed_host_is_an_error() {
    let Some(mut host) = tools("import os\n@tool\ndef die(): os._exit(1)\n") else { return };
    assert_eq!(
        host.call("die", json!({})),
        Err("host-ended: the Python host ended before it answered".into())
    );
    assert_eq!(host.session.call("die", &Map::new()).unwrap_err().code(), "host-ended");
    host.child.wait().expect("it ends");
}

#[test]
fn forged_answer_is_rejected() {
    // A module can find the protocol's file descriptor, but a line that it writes there only makes
    // its own call fail.
    let source = "import os\n@tool\ndef f():\n    for fd in range(3, 20):\n        try: os.write(fd, b'{\"id\":7,\"ok\":true,\"result\":1}\\n')\n        \
                  except OSError: pass\n";
    let Some(mut host) = tools(source) else { return };
    assert_eq!(
        host.call("f", json!({})),
        Err("bad-answer: the Python host sent an answer to another call than 1".into())
    );
    assert!(!host.session.is_alive());
    host.child.kill().expect("it is ours");
    host.child.wait().expect("it ends");
}

#[test]
fn reinstalling_restores_changed_files() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let folders: Vec<_> = std::thread::scope(|scope| {
        let jobs: Vec<_> =
            (0..8).map(|_| scope.spawn(|| install(dir.path()).expect("installs"))).collect();
        jobs.into_iter().map(|job| job.join().expect("no panic")).collect()
    });
    assert!(folders.windows(2).all(|pair| pair[0] == pair[1]));
    let folder = &folders[0];
    let left: Vec<_> = fs::read_dir(dir.path().join("python-host")).expect("a folder").collect();
    assert_eq!(left.len(), 1);
    let program = folder.join("savoir_host.py");
    let before = fs::read(&program).expect("the program");
    fs::write(&program, "evil").expect("written");
    fs::write(folder.join("json.py"), "evil").expect("written");
    assert_eq!(&install(dir.path()).expect("installs"), folder);
    assert_eq!(fs::read(&program).expect("the program"), before);
    assert!(!folder.join("json.py").exists());
    fs::remove_dir_all(folder).expect("removed");
    fs::write(folder, "a file").expect("written");
    assert_eq!(&install(dir.path()).expect("installs"), folder);
}
