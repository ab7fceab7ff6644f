//! Python tools: whatever a module does, the answer is an envelope.

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

use super::{PROBE, Run, Stage};

fn probe(stage: &Stage, code: &str) -> Run {
    stage.run("probe", &["--param", &format!("code={code}")])
}

#[test]
fn every_python_tool_result_is_an_envelope() {
    let stage = Stage::with_probe(&[]);
    let raised = probe(&stage, "\nraise ValueError('too\\nbad')");
    raised.fails(1, "tool-raised");
    raised.says(&["ValueError: too", "tools.py:"]);
    let printed =
        probe(&stage, "print('noise'); import sys; sys.stderr.write('more'); result = 'fine'");
    let envelope = printed.succeeds();
    assert_eq!(envelope["parsed"], json!({"result": "fine"}));
    assert!(!envelope["output"].to_string().contains("noise"));
    let said = probe(&stage, "print('before the end'); raise SystemExit(3)");
    assert_eq!(said.fails(1, "tool-raised")["output"], "before the end");
    probe(&stage, "import os; os._exit(0)").fails(1, "host-ended");
    probe(&stage, "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)").fails(1, "host-ended");
    for value in ["float('nan')", "float('inf')", "{1, 2}", "b'bytes'", "object()"] {
        let run = probe(&stage, &format!("result = {value}"));
        run.fails(1, "tool-raised");
        run.says(&["NotSerialisable"]);
    }
    let run = probe(&stage, "result = 'x' * (20 << 20)");
    run.fails(1, "answer-too-large");
}

#[test]
fn lines_that_look_like_answers() {
    let stage = Stage::with_probe(&[]);
    let forged = r#"
import os, sys
line = '{"id": 1, "ok": true, "result": {"result": "forged"}}\n'
print(line)
os.write(1, line.encode())
os.write(2, line.encode())
sys.__stdout__.write(line)
result = 'true'
"#;
    assert_eq!(probe(&stage, forged).succeeds()["parsed"], json!({"result": "true"}));
    // Whoever finds the pipe itself speaks only for itself, and nonsense is told as such.
    let nonsense = "import os\nfor n in range(3, 20):\n    try:\n        os.write(n, b'{\"id\": 99, \"ok\": true, \"result\": 1}\\n')\n    except OSError:\n        pass\n";
    probe(&stage, nonsense).fails(1, "bad-answer");
}

#[test]
fn a_module_that_cannot_be_loaded() {
    let stage = Stage::new();
    let load = |python: &str| {
        stage.gaia("probe", &[], "", python);
        stage.approve("probe");
        probe(&stage, "result = 1")
    };
    let run = load(&format!("{PROBE}\nraise RuntimeError('at import')\n"));
    run.fails(1, "module-not-loaded");
    run.says(&["RuntimeError: at import", "tools.py:"]);
    load(&format!("{PROBE}\nimport no_such_module_here\n")).fails(1, "module-not-loaded");
    load(&format!("{PROBE}\nimport os\nos._exit(0)\n")).fails(1, "module-not-loaded");
    load(&format!("{PROBE}\nimport sys\nsys.exit(0)\n")).fails(1, "module-not-loaded");
}

#[test]
fn a_mismatch_blocks_the_whole_skill() {
    let stage = Stage::new();
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
        stage.gaia("probe", &[], "", &python);
        let run = stage.run("probe", &["--param", "code=result = 1"]);
        run.fails(1, "skill-blocked");
        run.says(&[part, "tools.py:", "savoir check"]);
    }
    stage.gaia("probe", &[], "", &PROBE.replace("code: str", "code: int"));
    let run = stage.run("probe", &["--param", "code=result = 1"]);
    run.says(&["SKILL.md:", "tools.py:"]);
    fs::remove_file(stage.path("skills/probe/tools.py")).expect("removed");
    stage.run("probe", &["--param", "code=x"]).fails(1, "skill-invalid");
}

#[test]
fn missing_requirements_are_reported() {
    let mut stage = Stage::new();
    stage.set("GIVEN_KEY", "x");
    stage.probe("probe", &[], "requirements:\n  env_vars: [FIRST_KEY, GIVEN_KEY, SECOND_KEY]\n");
    let run = stage.run("probe", &["--param", "code=x"]);
    run.fails(1, "missing-env-vars");
    run.says(&["FIRST_KEY", "SECOND_KEY"]);
    assert!(!run.0.stdout.contains("GIVEN_KEY"), "{}", run.0);

    stage.probe("probe", &[], "requirements:\n  python: \">=99\"\n");
    stage.approve("probe");
    let run = stage.run("probe", &["--param", "code=x"]);
    run.fails(1, "python-version");
    run.says(&["the skill needs Python >=99", "install a Python that fits"]);
}

/// A tool of GAIA has a minute; here the clock is shorter, so the engine is asked directly.
#[test]
fn a_tool_that_never_returns() {
    let stage = Stage::new();
    stage.probe("probe", &[], "");
    let folder = Folder::open(&stage.path("skills/probe")).expect("a folder");
    let file = stage.path("skills/probe/SKILL.md");
    let source = Source::from_bytes(fs::read(&file).expect("a file")).expect("text");
    let reading = read(source, Some(&folder));
    let store = TrustStore::default();
    let loaded_skill = LoadedSkill::new(&reading, &file, Some(folder.root()), Trust::User, &store)
        .expect("a subject");
    let run_env = RunEnvironment::at(&stage.path("work"), &stage.path("home"));
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
    let home = Home::at(&stage.path(".savoir"));
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
        Answer::Error("timeout", message, _) => assert_eq!(message, "Command timed out after 1s"),
        other => panic!("{other:?}"),
    }
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
}
