//! Runs programs with exactly the listed files in a root of bubblewrap, if it is installed.

use std::process::{Command, Output};

use super::*;

const BUBBLEWRAP: &str = "/usr/bin/bwrap";

/// Runs a program in a root that has only the listed files and a folder to work in.
fn run(programs: &[PathBuf], folder: &Path, arguments: &[&str]) -> Option<Output> {
    if !Path::new(BUBBLEWRAP).exists() {
        return None;
    }
    let closure = ProgramFiles::of(programs).unwrap();
    let mut command = Command::new(BUBBLEWRAP);
    command.args(["--unshare-user", "--unshare-pid", "--unshare-net", "--clearenv"]);
    command.args(["--setenv", "PATH", "/usr/local/bin:/usr/bin:/bin"]);
    command.args(["--setenv", "HOME", "/tmp", "--proc", "/proc", "--dev", "/dev"]);
    command.args(["--tmpfs", "/tmp"]);
    for (path, _) in closure.folders() {
        command.arg("--ro-bind").args([path, path]);
    }
    for path in closure.hidden() {
        command.arg("--tmpfs").arg(path);
    }
    for (path, _) in closure.files() {
        command.arg("--ro-bind").args([path, path]);
    }
    for (link, target) in closure.links() {
        command.arg("--symlink").args([target, link]);
    }
    command.arg("--bind").args([folder, folder]).arg("--chdir").arg(folder);
    Some(command.arg("--").arg(&programs[0]).args(arguments).output().unwrap())
}

#[track_caller]
fn prints(program: &Path, folder: &Path, arguments: &[&str], expected: &str) {
    prints_with(&[program.to_path_buf()], folder, arguments, expected);
}

#[track_caller]
fn prints_with(programs: &[PathBuf], folder: &Path, arguments: &[&str], expected: &str) {
    let Some(output) = run(programs, folder, arguments) else { return };
    let (text, errors) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(
        output.status.success() && text.contains(expected),
        "{} {arguments:?}: {}\n{text}\n{errors}",
        programs[0].display(),
        output.status
    );
}

/// All installations of a program.
fn each(name: &str) -> impl Iterator<Item = PathBuf> {
    ["/usr/local/bin", "/usr/bin", "/bin"]
        .map(|folder| Path::new(folder).join(name))
        .into_iter()
        .filter(|path| path.exists())
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap()
}

#[test]
fn git_runs_with_listed_files() {
    for git in each("git") {
        let folder = folder();
        prints(&git, folder.path(), &["--version"], "git version");
        prints(&git, folder.path(), &["init", "--quiet", "."], "");
        fs::write(folder.path().join("file"), "x").unwrap();
        prints(&git, folder.path(), &["status", "--short"], "?? file");
        prints(&git, folder.path(), &["add", "file"], "");
        let commit =
            ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "-m", "first"];
        prints(&git, folder.path(), &commit, "");
        prints(&git, folder.path(), &["log", "--oneline"], "first");
        // Git's HTTP helper starts, and reports that it cannot resolve the host.
        if let Some(output) = run(
            std::slice::from_ref(&git),
            folder.path(),
            &["ls-remote", "https://nowhere.invalid/x"],
        ) {
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(errors.contains("nowhere.invalid"), "{errors}");
            assert!(!errors.contains("not a git command"), "{errors}");
            assert!(!errors.contains("shared libraries"), "{errors}");
        }
    }
}

const IMPORTS: &str = "import ssl, sqlite3, json, ctypes, hashlib, asyncio, decimal, time, threading; \
    ssl.create_default_context(); hashlib.sha256(b''); asyncio.run(asyncio.sleep(0)); \
    sqlite3.connect(':memory:'); print('done', time.strftime('%Z'))";

#[test]
fn python_runs_with_listed_files() {
    let folder = folder();
    for python in each("python3").chain(pythons()) {
        let missing = Command::new(&python).args(["-c", IMPORTS]).output().unwrap();
        // A module that does not work outside is not tested inside.
        if missing.status.success() {
            prints(&python, folder.path(), &["-c", IMPORTS], "done");
        }
        let packages =
            "import sys\ntry:\n import pip; print('seen')\nexcept ImportError: print('hidden')";
        prints(&python, folder.path(), &["-c", packages], "hidden");
    }
}

#[test]
fn virtual_environment_runs_with_listed_files() {
    let folder = folder();
    for (index, python) in
        each("python3").take(1).chain(pythons().into_iter().rev().take(1)).enumerate()
    {
        for copies in ["--symlinks", "--copies"] {
            let home = folder.path().join(format!("{index}{copies}"));
            let made = Command::new(&python)
                .args(["-m", "venv", "--without-pip", copies])
                .arg(&home)
                .output()
                .unwrap();
            if !made.status.success() {
                continue;
            }
            let lib = fs::read_dir(home.join("lib")).unwrap().next().unwrap().unwrap().path();
            fs::write(lib.join("site-packages/own.py"), "word = 'own package'").unwrap();
            let work = folder.path().join("work");
            fs::create_dir_all(&work).unwrap();
            let code = "import own, ssl, sys; print(own.word, sys.prefix != sys.base_prefix)";
            prints(&home.join("bin/python3"), &work, &["-c", code], "own package True");
            let script = executable(
                &work.join("tool"),
                format!("#!{}\n{code}\n", home.join("bin/python").display()),
            );
            prints(&script, &work, &[], "own package True");
        }
    }
}

#[test]
fn shells_run_with_listed_files() {
    let folder = folder();
    for shell in each("bash").chain(each("sh")).chain(each("dash")) {
        prints(&shell, folder.path(), &["-c", "echo hi"], "hi");
    }
    // No other program exists in the root.
    for bash in each("bash") {
        prints(&bash, folder.path(), &["-c", "id || cat /etc/passwd || ls || echo alone"], "alone");
    }
}

#[test]
fn node_runs_with_listed_files() {
    let folder = folder();
    for node in each("node") {
        prints(
            &node,
            folder.path(),
            &["-e", "console.log(1 + 1, require('crypto').randomUUID())"],
            "2",
        );
    }
    for name in ["npm", "npx", "corepack"] {
        for program in each(name) {
            prints(&program, folder.path(), &["--version"], ".");
        }
    }
}

#[test]
fn other_programs_run_with_listed_files() {
    let folder = folder();
    for perl in each("perl") {
        let code = "use POSIX; use List::Util 'sum'; print Dumper([sum 1, 2])";
        prints(&perl, folder.path(), &["-MData::Dumper", "-e", code], "3");
    }
    for curl in each("curl") {
        prints(&curl, folder.path(), &["--version"], "curl");
    }
    for openssl in each("openssl") {
        prints(&openssl, folder.path(), &["list", "-providers", "-provider", "legacy"], "legacy");
    }
    for ruby in each("ruby") {
        prints(&ruby, folder.path(), &["-rjson", "-e", "puts [1].to_json"], "[1]");
    }
}

#[test]
fn several_programs_run_with_listed_files() {
    let folder = folder();
    let programs: Vec<_> =
        each("bash").take(1).chain(each("git").take(1)).chain(each("python3").take(1)).collect();
    if programs.len() == 3 {
        let code = format!(
            "{} --version && {} -c 'print(1+1)'",
            programs[1].display(),
            programs[2].display()
        );
        prints_with(&programs, folder.path(), &["-c", &code], "2");
    }
}
