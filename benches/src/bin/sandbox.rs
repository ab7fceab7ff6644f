//! Starts `/bin/true` in the sandbox and in its peers, in turns, and prints a Markdown table of
//! medians and ratios.
//!
//! bubblewrap gets the same namespaces, and every bind mount, link and folder that the sandbox
//! creates.

#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::{
    env,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use savoir_sandbox::{
    HostGrant, MethodGroup, Network, PathGrant, Policy, ProcessEnd, RecordOpenedFiles, Sandbox,
    Variable,
};

const TRUE: &str = "/bin/true";

fn main() {
    let runs: usize = env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(200);
    let sandbox = Sandbox::new(policy(Network::None, RecordOpenedFiles::Off)).unwrap();
    let host = HostGrant {
        host: "example.com".parse().unwrap(),
        scheme: None,
        port: None,
        path: String::new(),
        methods: MethodGroup::Read,
        allow_private_addresses: false,
    };
    let with_proxy =
        Sandbox::new(policy(Network::Hosts(vec![host]), RecordOpenedFiles::Off)).unwrap();
    let watched = Sandbox::new(policy(Network::None, RecordOpenedFiles::On)).unwrap();
    let mut rows = vec![
        Row::new("plain process", Box::new(|| spawn(&mut Command::new(TRUE)))),
        Row::new("sandbox", Box::new(move || run_once(&sandbox))),
        Row::new("sandbox with proxy", Box::new(move || run_once(&with_proxy))),
        Row::new("sandbox, files watched", Box::new(move || run_once(&watched))),
    ];
    if Command::new("bwrap").arg("--version").output().is_ok() {
        let closure = Sandbox::new(policy(Network::None, RecordOpenedFiles::Off)).unwrap();
        rows.push(Row::new(
            "bubblewrap, same namespaces and files",
            Box::new(move || spawn(&mut bubblewrap(&closure))),
        ));
    }
    for row in &mut rows {
        (row.run)();
    }
    for _ in 0..runs {
        for row in &mut rows {
            let start = Instant::now();
            (row.run)();
            row.times.push(start.elapsed());
        }
    }
    report(&mut rows, runs);
}

struct Row {
    name: &'static str,
    run: Box<dyn FnMut()>,
    times: Vec<Duration>,
}

impl Row {
    fn new(name: &'static str, run: Box<dyn FnMut()>) -> Self {
        Self { name, run, times: Vec::new() }
    }

    fn median(&mut self) -> f64 {
        self.times.sort();
        self.times[self.times.len() / 2].as_secs_f64() * 1000.0
    }
}

fn report(rows: &mut [Row], runs: usize) {
    let medians: Vec<f64> = rows.iter_mut().map(Row::median).collect();
    let peer = rows.iter().position(|row| row.name.starts_with("bubblewrap"));
    println!("Median of {runs} interleaved runs of {TRUE}.\n");
    println!("| | milliseconds | of a plain process | of bubblewrap |\n|---|---|---|---|");
    for (row, median) in rows.iter().zip(&medians) {
        let of_peer =
            peer.map_or("–".to_owned(), |peer| format!("{:.2}", median / medians[peer]));
        println!("| {} | {median:.2} | {:.1} | {of_peer} |", row.name, median / medians[0]);
    }
}

fn policy(network: Network, record_opened_files: RecordOpenedFiles) -> Policy {
    let mut policy = Policy {
        paths: vec![PathGrant::scratch("/tmp")],
        programs: vec![PathBuf::from(TRUE)],
        network,
        directory: "/tmp".into(),
        record_opened_files,
        ..Policy::default()
    };
    policy.environment.insert("PATH".into(), Variable::Plain("/usr/bin:/bin".into()));
    policy
}

fn run_once(sandbox: &Sandbox) {
    let process = sandbox.start(Path::new(TRUE), &[]).unwrap();
    let outcome = process.communicate(&[], |_, _| {});
    assert_eq!(outcome.end, ProcessEnd::Exited(0));
}

fn spawn(command: &mut Command) {
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

fn bubblewrap(sandbox: &Sandbox) -> Command {
    let mut command = Command::new("bwrap");
    command.args(["--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc"]);
    command.args(["--unshare-uts", "--unshare-cgroup", "--die-with-parent", "--new-session"]);
    command.args(["--clearenv", "--setenv", "PATH", "/usr/bin:/bin", "--cap-drop", "ALL"]);
    for (path, _) in sandbox.program_files().folders() {
        command.arg("--ro-bind").arg(path).arg(path);
    }
    for (path, _) in sandbox.program_files().files() {
        command.arg("--ro-bind").arg(path).arg(path);
    }
    for (link, target) in sandbox.program_files().links() {
        command.arg("--symlink").arg(target).arg(link);
    }
    for device in ["null", "zero", "full", "random", "urandom"] {
        let device = format!("/dev/{device}");
        command.args(["--dev-bind", &device, &device]);
    }
    command.args(["--proc", "/proc", "--tmpfs", "/tmp", "--chdir", "/tmp", TRUE]);
    command
}
