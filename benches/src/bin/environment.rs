//! Compares a Python script without packages to one that needs a package environment, which already
//! exists. Runs them in turns and prints a Markdown table of medians and ratios. The package has
//! 1,000 modules.
//!
//! Measures both the run alone (without planning and process start) and the whole `savoir run`.

#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use savoir_engine::{
    Home,
    approval::{ExtraGrants, Trust},
    loaded_skill::LoadedSkill,
    run::{Call, CallInput, plan},
    run_environment::RunEnvironment,
};
use savoir_package::trust::TrustStore;
use savoir_skill::{Folder, Source, read};

/// Creates a wheel with 1,000 modules, about as many as in a medium-sized environment.
const MAKE_WHEEL: &str = r#"
import sys, zipfile
info = "many-1.0.dist-info"
files = {f"many/m{number}.py": f"x = {number}\n" * 20 for number in range(1000)}
files["many/__init__.py"] = ""
files[f"{info}/METADATA"] = "Metadata-Version: 2.1\nName: many\nVersion: 1.0\n"
files[f"{info}/WHEEL"] = "Wheel-Version: 1.0\nGenerator: bench\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
files[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in files) + f"{info}/RECORD,,\n"
with zipfile.ZipFile(f"{sys.argv[1]}/many-1.0-py3-none-any.whl", "w") as wheel:
    for path, text in files.items():
        wheel.writestr(path, text)
"#;

const SCRIPTS: [(&str, &str); 2] = [
    ("plain.py", "print('ready')\n"),
    ("packages.py", "# /// script\n# dependencies = [\"many\"]\n# ///\nprint('ready')\n"),
];

fn main() {
    let runs: usize = env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(20);
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let skill = root.join("skill");
    for name in ["skill", "work", "home"] {
        fs::create_dir(root.join(name)).unwrap();
    }
    let text = "---\nname: skill\ndescription: Says a word. Use in benchmarks.\n---\n\nRun it.\n";
    fs::write(skill.join("SKILL.md"), text).unwrap();
    for (name, code) in SCRIPTS {
        fs::write(skill.join(name), code).unwrap();
    }
    succeed(Command::new("python3").args(["-c", MAKE_WHEEL]).arg(&root));
    succeed(savoir(&root).arg("approve").arg(&skill).arg("--yes"));

    let loaded_skill = loaded_skill(&skill);
    let mut rows = Vec::new();
    for (name, _) in SCRIPTS {
        let script = skill.join(name);
        // The first run creates the environment.
        succeed(savoir(&root).arg("run").arg(&script));
        rows.push(Row::new(name, "run", Box::new(|| planned(&root, &loaded_skill, name))));
        let command = root.clone();
        rows.push(Row::new(
            name,
            "savoir run",
            Box::new(move || timed(|| succeed(savoir(&command).arg("run").arg(&script)))),
        ));
    }
    for row in &mut rows {
        (row.run)();
    }
    for _ in 0..runs {
        for row in &mut rows {
            let time = (row.run)();
            row.times.push(time);
        }
    }
    report(&mut rows, runs);
}

struct Row<'a> {
    script: &'static str,
    how: &'static str,
    run: Box<dyn FnMut() -> Duration + 'a>,
    times: Vec<Duration>,
}

impl<'a> Row<'a> {
    fn new(
        script: &'static str,
        how: &'static str,
        run: Box<dyn FnMut() -> Duration + 'a>,
    ) -> Self {
        Self { script, how, run, times: Vec::new() }
    }

    fn median(&mut self) -> f64 {
        self.times.sort();
        self.times[self.times.len() / 2].as_secs_f64() * 1000.0
    }
}

fn report(rows: &mut [Row<'_>], runs: usize) {
    println!("Median of {runs} interleaved runs.\n");
    println!("| | milliseconds | of the script without packages |\n|---|---|---|");
    let medians: Vec<f64> = rows.iter_mut().map(Row::median).collect();
    for (row, median) in rows.iter().zip(&medians) {
        let plain = rows.iter().position(|other| other.how == row.how).unwrap();
        let ratio = median / medians[plain];
        println!("| {}, {} | {median:.1} | {ratio:.2} |", row.script, row.how);
    }
}

fn timed(act: impl FnOnce()) -> Duration {
    let start = Instant::now();
    act();
    start.elapsed()
}

fn loaded_skill(skill: &Path) -> LoadedSkill {
    let folder = Folder::open(skill).unwrap();
    let file = skill.join("SKILL.md");
    let source = Source::from_bytes(fs::read(&file).unwrap()).unwrap();
    let reading = read(source, Some(&folder));
    let store = TrustStore::default();
    LoadedSkill::new(&reading, &file, Some(folder.root()), Trust::User, &store).unwrap()
}

/// Time of the run after planning. Leaves out the start of `savoir`, so that the cost of the
/// environment is visible.
fn planned(root: &Path, loaded_skill: &LoadedSkill, script: &str) -> Duration {
    let run_env = RunEnvironment::at(&root.join("work"), &root.join("home"));
    let extra = ExtraGrants::default();
    let call = Call {
        loaded_skill,
        tool: script,
        input: CallInput::ScriptArguments(Vec::new()),
        run_env: &run_env,
        mode: "Global",
        extra: &extra,
    };
    let plan = plan(&call).unwrap();
    let home = Home::at(&root.join("savoir"));
    timed(|| {
        let finished = plan.run(loaded_skill, &home, &mut |_| {}).unwrap();
        assert_eq!(finished.envelope.output, "ready");
    })
}

fn savoir(root: &Path) -> Command {
    let mut command = Command::new(beside("savoir"));
    command.current_dir(root.join("work"));
    command.env("SAVOIR_HOME", root.join("savoir")).env("HOME", root.join("home"));
    command.env("PIP_NO_INDEX", "1").env("PIP_FIND_LINKS", root);
    command.env("UV_OFFLINE", "1").env("UV_FIND_LINKS", root);
    command
}

fn beside(name: &str) -> PathBuf {
    env::current_exe().unwrap().with_file_name(name)
}

fn succeed(command: &mut Command) {
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}
