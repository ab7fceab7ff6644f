//! Runs a program in the sandbox: `run_program [--read PATH] [--write PATH] [--program PATH] [--host H]
//! [--watch] -- PROGRAM ARGUMENTS…`. For trying things out and for measuring.
#![allow(clippy::print_stderr)]

use std::{env, io::Write as _, path::PathBuf, process::ExitCode};

use savoir_sandbox::{
    HostGrant, MethodGroup, Network, PathGrant, Policy, ProcessEnd, RecordOpenedFiles, Sandbox,
    Variable,
};

fn main() -> ExitCode {
    let mut policy = Policy { directory: "/tmp".into(), ..Policy::default() };
    policy.paths.push(PathGrant::scratch("/tmp"));
    policy.environment.insert("PATH".into(), Variable::Plain("/usr/bin:/bin".into()));
    let mut words = env::args().skip(1);
    let mut hosts = Vec::new();
    let mut report = false;
    let mut command = Vec::new();
    while let Some(word) = words.next() {
        let mut value = || words.next().expect("a value");
        match word.as_str() {
            "--read" => policy.paths.push(PathGrant::read(value())),
            "--write" => policy.paths.push(PathGrant::write(value())),
            "--protect" => policy.paths.push(PathGrant::protected(value())),
            "--program" => policy.programs.push(PathBuf::from(value())),
            "--directory" => policy.directory = value().into(),
            "--host" => hosts.push(value()),
            "--seconds" => {
                policy.limits.wall = value().parse().ok().map(std::time::Duration::from_secs);
            }
            "--watch" => policy.record_opened_files = RecordOpenedFiles::On,
            "--report" => report = true,
            "--" => command = words.by_ref().collect(),
            other => panic!("unknown option {other}"),
        }
    }
    if !hosts.is_empty() {
        let grant = |host: &String| {
            [MethodGroup::Read, MethodGroup::Write].map(|methods| HostGrant {
                host: host.parse().expect("a host"),
                scheme: None,
                port: None,
                path: String::new(),
                methods,
                allow_private_addresses: false,
            })
        };
        policy.network = Network::Hosts(hosts.iter().flat_map(grant).collect());
    }
    let program = PathBuf::from(&command[0]);
    policy.programs.push(program.clone());
    let outcome = Sandbox::new(policy)
        .and_then(|sandbox| sandbox.start(&program, &command[1..]))
        .map(|process| {
            process.communicate(b"", |stream, bytes| {
                let _ = match stream {
                    savoir_sandbox::Stream::Output => std::io::stdout().write_all(bytes),
                    savoir_sandbox::Stream::Error => std::io::stderr().write_all(bytes),
                };
            })
        });
    match outcome {
        Err(error) => {
            eprintln!("run_program: {error}");
            ExitCode::from(125)
        }
        Ok(outcome) => {
            if report {
                eprintln!("{outcome:#?}");
            }
            match outcome.end {
                ProcessEnd::Exited(code) => ExitCode::from(u8::try_from(code).unwrap_or(1)),
                end => {
                    eprintln!("run_program: {end:?}");
                    ExitCode::from(124)
                }
            }
        }
    }
}
