//! Tests Python tools: the output is an envelope, whatever the module does.

use std::{
    fs,
    time::{Duration, Instant},
};

use savoir_engine::{
    Home,
    approval::{ExtraGrants, Trust},
    loaded_skill::LoadedSkill,
    run::{Action, Answer, Call, CallInput, PythonTools, plan},
    run_environment::RunEnvironment,
};
use savoir_package::trust::TrustStore;
use savoir_skill::{Folder, Source, read};
use serde_json::json;

use super::{PROBE, Run, RunTestEnv};

fn probe(test_env: &RunTestEnv, code: &str) -> Run {
    test_env.run("probe", &["--param", &format!("code={code}")])
}

#[test]
fn every_python_tool_result_is_an_envelope() {
    let test_env = RunTestEnv::with_probe(&[]);
    let raised = probe(&test_env, "\nraise ValueError('too\\nbad')");
    raised.fails(1, "tool-raised");
    raised.assert_error_contains(&["ValueError: too", "tools.py:"]);
    let printed =
        probe(&test_env, "print('noise'); import sys; sys.stderr.write('more'); result = 'fine'");
    let envelope = printed.succeeds();
    assert_eq!(envelope["parsed"], json!({"result": "fine"}));
    assert!(!envelope["output"].to_string().contains("noise"));
    let said = probe(&test_env, "print('before the end'); raise SystemExit(3)");
    assert_eq!(said.fails(1, "tool-raised")["output"], "before the end");
    probe(&test_env, "import os; os._exit(0)").fails(1, "host-ended");
    probe(&test_env, "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
        .fails(1, "host-ended");
    for value in ["float('nan')", "float('inf')", "{1, 2}", "b'bytes'", "object()"] {
        let run = probe(&test_env, &format!("result = {value}"));
        run.fails(1, "tool-raised");
        run.assert_error_contains(&["NotSerialisable"]);
    }
    let run = probe(&test_env, "result = 'x' * (20 << 20)");
    run.fails(1, "answer-too-large");
}

#[test]
fn printed_lines_are_not_parsed_as_responses() {
    let test_env = RunTestEnv::with_probe(&[]);
    let forged = r#"
import os, sys
line = '{"id": 1, "ok": true, "result": {"result": "forged"}}\n'
print(line)
os.write(1, line.encode())
os.write(2, line.encode())
sys.__stdout__.write(line)
result = 'true'
"#;
    assert_eq!(probe(&test_env, forged).succeeds()["parsed"], json!({"result": "true"}));
    // A tool that writes to the pipe directly can only forge its own result, and invalid data is an error.
    let nonsense = "import os\nfor n in range(3, 20):\n    try:\n        os.write(n, b'{\"id\": 99, \"ok\": true, \"result\": 1}\\n')\n    except OSError:\n        pass\n";
    probe(&test_env, nonsense).fails(1, "bad-answer");
}

#[test]
fn a_module_that_cannot_be_loaded() {
    let test_env = RunTestEnv::new();
    let load = |python: &str| {
        test_env.gaia("probe", &[], "", python);
        test_env.approve("probe");
        probe(&test_env, "result = 1")
    };
    let run = load(&format!("{PROBE}\nraise RuntimeError('at import')\n"));
    run.fails(1, "module-not-loaded");
    run.assert_error_contains(&["RuntimeError: at import", "tools.py:"]);
    load(&format!("{PROBE}\nimport no_such_module_here\n")).fails(1, "module-not-loaded");
    load(&format!("{PROBE}\nimport os\nos._exit(0)\n")).fails(1, "module-not-loaded");
    load(&format!("{PROBE}\nimport sys\nsys.exit(0)\n")).fails(1, "module-not-loaded");
}

#[test]
fn a_mismatch_blocks_the_whole_skill() {
    let test_env = RunTestEnv::new();
    for (python, part) in [
        (PROBE.replace("code: str", "text: str"), "code"),
        (PROBE.replace("code: str", "code: int"), "code"),
        (PROBE.replace("code: str", "code: str = ''"), "required"),
        (PROBE.replace("def probe", "def other"), "probe"),
        (PROBE.replace("@tool\n", ""), "probe"),
        (
            format!(
                "{PROBE}\n\n@tool\ndef surplus() -> dict:\n    \"\"\"More.\"\"\"\n    return {{}}\n"
            ),
            "surplus",
        ),
        (format!("{PROBE}\ndef broken(:\n"), "tools.py:"),
    ] {
        test_env.gaia("probe", &[], "", &python);
        let run = test_env.run("probe", &["--param", "code=result = 1"]);
        run.fails(1, "skill-blocked");
        run.assert_error_contains(&[part, "tools.py:", "savoir check"]);
    }
    test_env.gaia("probe", &[], "", &PROBE.replace("code: str", "code: int"));
    let run = test_env.run("probe", &["--param", "code=result = 1"]);
    run.assert_error_contains(&["SKILL.md:", "tools.py:"]);
    fs::remove_file(test_env.path("skills/probe/tools.py")).expect("removed");
    test_env.run("probe", &["--param", "code=x"]).fails(1, "skill-invalid");
}

#[test]
fn missing_requirements_are_reported() {
    let mut test_env = RunTestEnv::new();
    test_env.set("GIVEN_KEY", "x");
    test_env.probe("probe", &[], "requirements:\n  env_vars: [FIRST_KEY, GIVEN_KEY, SECOND_KEY]\n");
    let run = test_env.run("probe", &["--param", "code=x"]);
    run.fails(1, "missing-env-vars");
    run.assert_error_contains(&["FIRST_KEY", "SECOND_KEY"]);
    assert!(!run.0.stdout.contains("GIVEN_KEY"), "{}", run.0);

    test_env.probe("probe", &[], "requirements:\n  python: \">=99\"\n");
    test_env.approve("probe");
    let run = test_env.run("probe", &["--param", "code=x"]);
    run.fails(1, "python-version");
    run.assert_error_contains(&["the skill needs Python >=99", "install a Python that fits"]);
}

/// A GAIA tool may run for a minute; to shorten the test, it calls the engine with a shorter limit.
#[test]
fn endless_tool_ends_at_the_time_limit() {
    let test_env = RunTestEnv::new();
    test_env.probe("probe", &[], "");
    let folder = Folder::open(&test_env.path("skills/probe")).expect("a folder");
    let file = test_env.path("skills/probe/SKILL.md");
    let source = Source::from_bytes(fs::read(&file).expect("a file")).expect("text");
    let reading = read(source, Some(&folder));
    let store = TrustStore::default();
    let loaded_skill = LoadedSkill::new(&reading, &file, Some(folder.root()), Trust::User, &store)
        .expect("a subject");
    let run_env = RunEnvironment::at(&test_env.path("work"), &test_env.path("home"));
    let loops = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nwhile True:\n    time.sleep(1)\n";
    let given = json!({"code": loops}).as_object().cloned().expect("an object");
    let extra = ExtraGrants::default();
    let call = Call {
        loaded_skill: &loaded_skill,
        tool: "probe",
        input: CallInput::Json(given.clone()),
        run_env: &run_env,
        mode: "Global",
        extra: &extra,
    };
    let plan = plan(&call).expect("a plan");
    let Action::Python(python) = plan.action else { panic!("not Python") };
    let home = Home::at(&test_env.path(".savoir"));
    let mut tools = PythonTools::load(
        plan.policy,
        &loaded_skill,
        &python.interpreter,
        &python.functions,
        &home,
        &mut |_| {},
    )
    .expect("a module");
    let started = Instant::now();
    match tools.call("probe", &given, Duration::from_secs(1)) {
        Answer::Error("timeout", message, _) => {
            assert_eq!(message, "Command timed out after 1s");
        }
        other => panic!("{other:?}"),
    }
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
}
