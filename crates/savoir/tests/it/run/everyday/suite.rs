//! Runs the ordinary skills in a repository and outside, as root and as an ordinary user. Skills
//! that need a permission work after the printed hint is followed once.

use std::{
    fmt::Write as _,
    fs,
    io::Write as _,
    os::unix::{fs::chown, process::CommandExt as _},
    path::Path,
    process::Stdio,
};

use savoir_sandbox::find_program;

use super::{
    super::{RunTestEnv, server::Server},
    cases::{CASES, Case, Kind},
};
use crate::support::Transcript;

const NOBODY: u32 = 65534;

/// How many cases must work without extra permissions, and the total number.
const AT_FIRST: (usize, usize) = (45, 60);

/// Where, and as which user, a skill is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    in_repository: bool,
    as_nobody: bool,
}

#[test]
fn everyday_skills_run_in_a_repository() {
    suite(Place { in_repository: true, as_nobody: false });
}

#[test]
fn everyday_skills_run_outside() {
    suite(Place { in_repository: false, as_nobody: false });
}

#[test]
fn everyday_skills_run_in_a_repository_as_an_ordinary_user() {
    suite(Place { in_repository: true, as_nobody: true });
}

#[test]
fn everyday_skills_run_outside_as_an_ordinary_user() {
    suite(Place { in_repository: false, as_nobody: true });
}

#[expect(clippy::print_stderr, reason = "the figure is reported")]
fn suite(place: Place) {
    if place.as_nobody && !is_root() {
        return;
    }
    let server = Server::answering("served");
    let folders: Vec<_> = std::env::split_paths("/usr/local/bin:/usr/bin:/bin").collect();
    let is_here = |program: &&str| find_program(program, &folders).is_some();
    let fitting = CASES
        .iter()
        .filter(|case| case.needs.iter().all(is_here))
        .filter(|case| place.in_repository || !case.in_repository);
    let (mut count, mut at_first, mut failures) = (0, 0, String::new());
    for case in fitting {
        count += 1;
        match try_out(case, place, &server) {
            Ok(tries) => at_first += usize::from(tries == 1),
            Err(why) => drop(write!(failures, "\n--- {}: {why}", case.name)),
        }
    }
    assert!(failures.is_empty(), "{place:?}: {failures}");
    eprintln!("{place:?}: {at_first} of {count} at the first try");
    let (wanted, of) = AT_FIRST;
    assert!(at_first * of >= count * wanted, "{place:?}: only {at_first} of {count}");
}

/// Runs a skill, and follows the hint of a failure once; returns the number of runs.
fn try_out(case: &Case, place: Place, server: &Server) -> Result<usize, String> {
    let test_env = prepare(case, place, server);
    let first = run(&test_env, case, place);
    if works(&test_env, case, &first) {
        return Ok(1);
    }
    if case.at_first {
        return Err(format!("not at the first try: {first}"));
    }
    let hint = first.stderr.split("savoir approve ").nth(1).and_then(|rest| rest.lines().next());
    let Some(hint) = hint else { return Err(format!("no hint: {first}")) };
    let words = format!("approve {hint} --yes");
    let approved = savoir(&test_env, &words.split(' ').collect::<Vec<_>>(), place, "");
    if approved.code != 0 {
        return Err(format!("the hint does not work: {first}\n{approved}"));
    }
    let second = run(&test_env, case, place);
    if works(&test_env, case, &second) {
        Ok(2)
    } else {
        Err(format!("{first}\n{approved}\n{second}"))
    }
}

fn works(test_env: &RunTestEnv, case: &Case, run: &Transcript) -> bool {
    let is_left = |(file, content): (&str, &str)| {
        let bytes = fs::read(test_env.path("work").join(file)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).contains(content)
    };
    run.code == 0 && run.stdout.contains(case.prints) && case.leaves.is_none_or(is_left)
}

/// Creates a folder with a few files, and the approved skill.
fn prepare(case: &Case, place: Place, server: &Server) -> RunTestEnv {
    let mut test_env = RunTestEnv::new();
    test_env.set("ACME_REGION", "north");
    test_env.write("work/notes.txt", "first line\nsecond line\n");
    test_env.write("work/config.json", r#"{"items": [{"name": "first"}, {"name": "second"}]}"#);
    test_env.write("work/data/sales.csv", "item,amount\na,10\nb,20\n");
    test_env.write("work/port.txt", server.port.to_string());
    test_env.write("shared/list.txt", "from elsewhere\n");
    test_env.write("home/.gitconfig", "[user]\n\tname = Ada\n\temail = ada@example.com\n");
    write_skill(&test_env, case);
    if place.in_repository {
        test_env.repository();
        test_env.git(&["add", "-A"]);
        test_env.git(&["commit", "--quiet", "-m", "first commit"]);
    }
    if place.as_nobody {
        give(&test_env.path(""));
    }
    let skill = test_env.skill("tools");
    let approved = savoir(&test_env, &["approve", &skill, "--yes"], place, "");
    assert_eq!(approved.code, 0, "{}: {approved}", case.name);
    test_env
}

fn write_skill(test_env: &RunTestEnv, case: &Case) {
    let head = "name: tools\ndescription: Does things. Use when asked to do things.\n";
    let text = |fields: &str, body: &str| format!("---\n{head}{fields}---\n\n{body}\n");
    let file =
        |path: &str, content: &str| drop(test_env.write(&format!("skills/tools/{path}"), content));
    file("references/help.md", "Help text\n");
    file("scripts/helper.py", "def word():\n    return 'from the helper'\n");
    match case.kind {
        Kind::Script(name) => {
            file("SKILL.md", &text("", "Run the script."));
            file(&format!("scripts/{name}"), case.content);
        }
        Kind::Claude(name) => {
            let fields = "allowed-tools: Read, Bash(git:*)\nuser-invocable: true\n";
            file("SKILL.md", &text(fields, "Run the script."));
            file(&format!("scripts/{name}"), case.content);
        }
        Kind::Command => test_env.commands("tools", "", &[("go", "", case.content)]),
        Kind::CommandWith(command, path) => {
            test_env.commands("tools", "", &[("go", "", command)]);
            file(path, case.content);
        }
        Kind::Gaia(permissions) => {
            let python = format!(
                "from gaia.agents.base.tools import tool\n\n\n@tool\ndef probe(code: str) -> dict:\n    \
                 \"\"\"Does it.\"\"\"\n    {}\n",
                case.content
            );
            test_env.gaia("tools", permissions, "", &python);
        }
        Kind::Blocks(fields) => {
            let fields = format!("version: 1.0.0\nruntime:\n  type: markdown-skill\n{fields}");
            file("SKILL.md", &text(&fields, &format!("Do it.\n\n```{}```", case.content)));
        }
        Kind::Handler(name, fields) => {
            let fields = format!(
                "claw_version: '1'\nactions:\n  - name: go\n    description: Does it\n    handler: {name}#run\n{fields}"
            );
            file("SKILL.md", &text(&fields, "Does it."));
            file(name, case.content);
        }
    }
}

fn run(test_env: &RunTestEnv, case: &Case, place: Place) -> Transcript {
    let skill = test_env.skill("tools");
    let target = match case.kind {
        Kind::Script(name) | Kind::Claude(name) => format!("{skill}/scripts/{name}"),
        _ => skill,
    };
    let mut words = vec!["run", &target];
    match case.kind {
        Kind::Gaia(_) => words.extend(["--param", "code=x"]),
        Kind::Blocks(_) => words.push("--exec-fences"),
        _ if case.words.is_empty() => {}
        _ => words.extend([&["--"], case.words].concat()),
    }
    savoir(test_env, &words, place, case.stdin)
}

fn savoir(test_env: &RunTestEnv, words: &[&str], place: Place, stdin: &str) -> Transcript {
    let mut command = test_env.command(words);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if place.as_nobody {
        command.uid(NOBODY).gid(NOBODY);
    }
    let mut child = command.spawn().expect("savoir starts");
    // The program may have ended without reading its input.
    let _ = child.stdin.take().expect("a pipe").write_all(stdin.as_bytes());
    let output = child.wait_with_output().expect("savoir ends");
    Transcript {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Changes the owner of everything below a folder to the ordinary user.
fn give(folder: &Path) {
    chown(folder, Some(NOBODY), Some(NOBODY)).expect("an owner");
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() && !path.is_symlink() {
            give(&path);
        } else {
            std::os::unix::fs::lchown(&path, Some(NOBODY), Some(NOBODY)).expect("an owner");
        }
    }
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt as _;
    fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}
