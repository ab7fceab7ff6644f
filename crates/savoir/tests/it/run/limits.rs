//! Tests limits on time, output and processes.

use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    process::Command,
    time::{Duration, Instant},
};

use super::RunTestEnv;

/// Processes outside the sandbox whose command line contains this word.
fn running(marker: &str) -> Vec<String> {
    let processes = fs::read_dir("/proc").expect("processes").flatten();
    let lines = processes.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    lines.filter(|line| line.contains(marker)).collect()
}

/// Waits until no process with this word is left; killed processes take a moment to end.
fn gone(marker: &str) {
    let started = Instant::now();
    while !running(marker).is_empty() {
        assert!(started.elapsed() < Duration::from_secs(5), "left: {:?}", running(marker));
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn marker(name: &str) -> String {
    format!("marker-{name}-{}", std::process::id())
}

#[test]
fn time_limit_ends_all_descendants() {
    let test_env = RunTestEnv::with_commands(
        "timeout: 1\n",
        &[("stay", "| word | string | yes | Marker |", "./stay.py {{word}}")],
    );
    // The script ignores SIGTERM, and a grandchild leaves the session.
    test_env.script(
        "skills/demo/stay.py",
        "#!/usr/bin/python3\nimport os, signal, sys, time\n\
         signal.signal(signal.SIGTERM, signal.SIG_IGN)\nsignal.signal(signal.SIGHUP, signal.SIG_IGN)\n\
         if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        time.sleep(100)\n    os._exit(0)\n\
         print('started', flush=True)\ntime.sleep(100)\n",
    );
    test_env.approve("demo");
    let marker = marker("stay");
    let started = Instant::now();
    let run = test_env.run("demo/stay", &["--param", &format!("word={marker}")]);
    let envelope = run.fails(124, "timeout");
    assert_eq!(envelope["error"], "Command timed out after 1s");
    assert_eq!(envelope["output"], "started");
    // One second of time limit and five seconds of grace.
    assert!(started.elapsed() < Duration::from_secs(15), "{:?}", started.elapsed());
    gone(&marker);
    let record = test_env.record();
    assert_eq!((&record["success"], &record["error"]["code"]), (&false.into(), &"timeout".into()));
}

#[test]
fn a_grandchild_does_not_outlive_its_run() {
    let test_env = RunTestEnv::with_commands(
        "timeout: 5\n",
        &[("leave", "| word | string | yes | Marker |", "./leave.py {{word}}")],
    );
    test_env.script(
        "skills/demo/leave.py",
        "#!/usr/bin/python3\nimport os, sys, time\nif os.fork() == 0:\n    os.setsid()\n    \
         null = os.open('/dev/null', os.O_RDWR)\n    for number in (0, 1, 2):\n        os.dup2(null, number)\n    \
         time.sleep(100)\nprint('left')\n",
    );
    test_env.approve("demo");
    let marker = marker("leave");
    let run = test_env.run("demo/leave", &["--param", &format!("word={marker}")]);
    assert_eq!(run.succeeds()["output"], "left");
    gone(&marker);
}

#[test]
fn killing_savoir_ends_the_tool_and_its_children() {
    let test_env = RunTestEnv::with_commands(
        "timeout: 60\n",
        &[("stay", "| word | string | yes | Marker |", "./stay.py {{word}}")],
    );
    test_env.script(
        "skills/demo/stay.py",
        "#!/usr/bin/python3\nimport os, time\nif os.fork() == 0:\n    os.setsid()\ntime.sleep(100)\n",
    );
    test_env.approve("demo");
    let marker = marker("killed");
    let word = format!("word={marker}");
    let skill = test_env.skill("demo/stay");
    let mut child =
        test_env.command(&["run", &skill, "--param", &word]).spawn().expect("savoir runs");
    let started = Instant::now();
    // Waits for the program and its two processes.
    while running(&marker).iter().filter(|line| line.contains("python3 ")).count() < 2 {
        assert!(started.elapsed() < Duration::from_secs(20), "{:?}", running(&marker));
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().expect("a signal");
    child.wait().expect("an end");
    gone(&marker);
}

#[test]
fn a_gigabyte_of_output_is_cut_off() {
    let test_env = RunTestEnv::with_commands("timeout: 60\n", &[("flood", "", "./flood.py")]);
    test_env.script(
        "skills/demo/flood.py",
        "#!/usr/bin/python3\nimport os\nfor _ in range(16384):\n    os.write(1, b'x' * 65536)\n",
    );
    test_env.approve("demo");
    let started = Instant::now();
    let envelope = test_env.run("demo/flood", &[]).fails(1, "output-limit");
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    assert!(envelope["output"].as_str().is_some_and(|text| text.len() < 4200));
    assert_eq!(envelope["truncated"], true);

    // The same limit applies to the output of a function.
    let test_env = RunTestEnv::with_probe(&[]);
    let code = "code=import os\nfor _ in range(16384):\n    os.write(1, b'x' * 65536)\n";
    let envelope = test_env.run("probe", &["--param", code]).fails(1, "output-limit");
    assert!(envelope["output"].as_str().is_some_and(|text| text.len() < 4200));
    assert!(started.elapsed() < Duration::from_secs(40), "{:?}", started.elapsed());
}

#[test]
fn fork_bomb_is_limited() {
    let test_env = RunTestEnv::with_commands(
        "timeout: 2\n",
        &[("multiply", "| word | string | yes | Marker |", "./multiply.py {{word}}")],
    );
    // Without a limit, the script stops by itself at a number that the machine can handle.
    test_env.script(
        "skills/demo/multiply.py",
        "#!/usr/bin/python3\nimport os, time\ncount = 0\ntry:\n    while count < 1500:\n        \
         if os.fork() == 0:\n            time.sleep(100)\n            os._exit(0)\n        count += 1\n\
         except OSError as error:\n    print('refused after', count, flush=True)\n\
         else:\n    print('never refused', flush=True)\ntime.sleep(100)\n",
    );
    test_env.approve("demo");
    let marker = marker("multiply");
    let run = test_env.run("demo/multiply", &["--param", &format!("word={marker}")]);
    // Where resource limits do not count the processes of root, a thread counts them.
    if run.envelope()["code"] == "process-limit" {
        let is_root = fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
        assert!(is_root, "the next one is refused, and the others go on");
        run.fails(1, "process-limit");
    } else {
        let envelope = run.fails(1, "timeout");
        let output = envelope["output"].as_str().unwrap_or_default();
        assert!(output.starts_with("refused after "), "{output}");
    }
    gone(&marker);
}

#[test]
fn interrupt_ends_the_tool_and_removes_temporary_files() {
    let test_env = RunTestEnv::with_commands("read_only: false\n", &[("nap", "", "sh nap.sh")]);
    test_env.write("skills/demo/nap.sh", "echo > started; mkdir .claude; sleep 30");
    test_env.approve("demo");
    test_env.repository();
    let before = names(&test_env.path("work"));
    let tool = test_env.skill("demo/nap");
    let mut run = test_env.command(&["run", &tool, "--json"]).spawn().expect("savoir starts");
    let started = Instant::now();
    while !test_env.path("work/.claude").exists() {
        assert!(started.elapsed() < Duration::from_secs(20), "the tool does not start");
        std::thread::sleep(Duration::from_millis(20));
    }
    let signalled =
        Command::new("kill").args(["-INT", &run.id().to_string()]).status().expect("kill");
    assert!(signalled.success());
    assert_eq!(run.wait().expect("it ends").code(), Some(130));
    assert!(started.elapsed() < Duration::from_secs(25), "it waited for the tool");
    fs::remove_file(test_env.path("work/started")).expect("what it wrote is kept");
    let left = names(&test_env.path("work"));
    let new: Vec<&String> = left.iter().filter(|name| !before.contains(name)).collect();
    assert!(matches!(*new, [aside] if aside.starts_with(".claude.held-")), "{left:?}");
    assert_eq!(test_env.records()[0]["error"]["code"], "stopped");
}

fn names(folder: &std::path::Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder").flatten();
    let mut names: Vec<_> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
