//! Measures the overhead of a call to a Python tool: calls a trivial function many times in one
//! loaded process.

#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::{
    env,
    path::Path,
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

fn main() {
    let calls: usize = env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(2000);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/hello-world");
    let file = folder.join("SKILL.md");
    let source = Source::from_bytes(std::fs::read(&file).unwrap()).unwrap();
    let reading = read(source, Folder::open(&folder).ok().as_ref());
    let loaded_skill =
        LoadedSkill::new(&reading, &file, Some(&folder), Trust::User, &TrustStore::default())
            .unwrap();
    let scratch = env::temp_dir().join(format!("savoir-bench-{}", std::process::id()));
    let run_env = RunEnvironment::at(&folder, &scratch);
    let pairs = vec![("name".to_owned(), "Ada".to_owned())];
    let call = Call {
        loaded_skill: &loaded_skill,
        tool: "say_hello",
        input: CallInput::Pairs(pairs),
        run_env: &run_env,
        mode: "Global",
        extra: &ExtraGrants::default(),
    };
    let plan = plan(&call).unwrap();
    let Action::Python(python) = plan.action else { panic!("not a Python tool") };
    let home = Home::at(&scratch);
    let started = Instant::now();
    let mut tools = PythonTools::load(
        plan.policy,
        &loaded_skill,
        &python.interpreter,
        &python.functions,
        &home,
        &mut |_| {},
    )
    .unwrap();
    let loaded = started.elapsed();
    let mut times: Vec<Duration> = (0..calls)
        .map(|_| {
            let answer = tools.call(&python.function, &python.arguments, Duration::from_secs(10));
            match answer {
                Answer::Value(_, duration) => duration,
                Answer::Error(code, message, _) => panic!("{code}: {message}"),
            }
        })
        .collect();
    drop(tools);
    let _ = std::fs::remove_dir_all(&scratch);
    times.sort();
    let micro = |percent: usize| times[(times.len() - 1) * percent / 100].as_secs_f64() * 1e6;
    println!("Loading the module in the sandbox: {:.1} ms.", loaded.as_secs_f64() * 1000.0);
    println!(
        "{calls} calls, µs over the function itself: median {:.0}, p99 {:.0}.",
        micro(50),
        micro(99)
    );
}
