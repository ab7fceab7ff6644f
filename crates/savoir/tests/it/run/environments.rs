//! Tests packages of scripts, and programs in the user's folders. No test needs a network:
//! packages come from a folder of wheels and from a local registry.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    net::TcpListener,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use serde_json::json;

use super::{RunTestEnv, has_program};
use crate::support::Transcript;

/// Creates a wheel, from a folder, a name, and the code of its only module.
const MAKE_WHEEL: &str = r#"
import sys, zipfile
folder, name, version, code, extra = sys.argv[1:]
info = f"{name}-{version}.dist-info"
files = {
    f"{name}.py": code,
    f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
    f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
}
if extra:
    files[f"{name}.pth"] = extra
files[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in files) + f"{info}/RECORD,,\n"
with zipfile.ZipFile(f"{folder}/{name}-{version}-py3-none-any.whl", "w") as wheel:
    for path, text in files.items():
        wheel.writestr(path, text)
"#;

/// Creates a skill with scripts, and a package index with the package `tiny`.
fn test_env(files: &[(&str, &str)]) -> RunTestEnv {
    let mut test_env = RunTestEnv::new();
    fs::create_dir(test_env.path("wheels")).expect("a folder");
    let wheels = test_env.path("wheels").to_string_lossy().into_owned();
    for (name, value) in [
        ("PIP_NO_INDEX", "1"),
        ("PIP_FIND_LINKS", &*wheels),
        ("PIP_CONFIG_FILE", "/dev/null"),
        ("UV_OFFLINE", "1"),
        ("UV_FIND_LINKS", &*wheels),
    ] {
        test_env.set(name, value);
    }
    wheel(&test_env, "tiny", "1.0", "def say():\n    return 'tiny 1.0'\n", "");
    skill(&test_env, "tools", files);
    test_env
}

fn wheel(test_env: &RunTestEnv, name: &str, version: &str, code: &str, extra: &str) {
    let made = Command::new("python3")
        .args(["-c", MAKE_WHEEL])
        .arg(test_env.path("wheels"))
        .args([name, version, code, extra])
        .status();
    assert!(made.expect("python3 runs").success());
}

fn skill(test_env: &RunTestEnv, name: &str, files: &[(&str, &str)]) {
    let head = format!("name: {name}\ndescription: Works on files. Use when asked to.\n");
    test_env.write(&format!("skills/{name}/SKILL.md"), format!("---\n{head}---\n\nRun it.\n"));
    for (path, content) in files {
        test_env.write(&format!("skills/{name}/{path}"), content);
    }
    test_env.approve(name);
}

fn run(test_env: &RunTestEnv, script: &str) -> Transcript {
    test_env.savoir(&["run", &test_env.skill(script)])
}

#[track_caller]
fn prints(test_env: &RunTestEnv, script: &str, expected: &str) {
    let run = run(test_env, script);
    assert_eq!((run.code, run.stdout.as_str()), (0, expected), "{run}");
}

/// The created environments of a kind.
fn made(test_env: &RunTestEnv, kind: &str) -> Vec<PathBuf> {
    let folder = test_env.path(".savoir/cache").join(kind).join("environments");
    let entries =
        fs::read_dir(folder).into_iter().flatten().map(|entry| entry.expect("one").path());
    entries.filter(|path| path.is_dir()).collect()
}

const SAY: &str = "import tiny\nprint(tiny.say())\n";

fn with_metadata(lines: &str) -> String {
    format!("# /// script\n{lines}# ///\n{SAY}")
}

#[test]
fn a_script_with_inline_metadata_has_its_packages() {
    let script = with_metadata("# requires-python = \">=3.8\"\n# dependencies = [\"tiny>=1\"]\n");
    let shebang = format!("#!/usr/bin/env -S uv run --script\n{script}");
    let python = format!("#!/usr/bin/env python3\n{script}");
    let test_env = test_env(&[("scripts/a.py", &script), ("scripts/b", &shebang)]);
    test_env.script("skills/tools/scripts/c.py", &python);
    test_env.script("skills/tools/scripts/d.py", &shebang);
    let approved = test_env.savoir(&["approve", &test_env.skill("tools"), "--yes"]);
    assert!(approved.stdout.contains("installs tiny>=1 into an environment"), "{approved}");
    for name in ["a.py", "b", "c.py", "d.py"] {
        prints(&test_env, &format!("tools/scripts/{name}"), "tiny 1.0\n");
    }
    assert_eq!(made(&test_env, "python").len(), 1);
}

#[test]
fn requirements_beside_a_script_or_in_the_root_count() {
    let test_env = test_env(&[
        ("requirements.txt", "# what it needs\ntiny  # small\n"),
        ("scripts/a.py", SAY),
        ("other/requirements.txt", "other==2\n"),
        ("other/b.py", "import other\nprint(other.__name__)\n"),
    ]);
    wheel(&test_env, "other", "2", "", "");
    prints(&test_env, "tools/scripts/a.py", "tiny 1.0\n");
    prints(&test_env, "tools/other/b.py", "other\n");
    skill(&test_env, "second", &[("requirements.txt", "tiny\n"), ("b.py", SAY)]);
    prints(&test_env, "second/b.py", "tiny 1.0\n");
    assert_eq!(made(&test_env, "python").len(), 2, "two skills share one");
}

#[test]
fn commands_and_code_blocks_have_packages() {
    let mut test_env = test_env(&[]);
    test_env.commands(
        "demo",
        "",
        &[
            ("python", "", "python3 scripts/a.py"),
            ("uv", "", "uv run --script scripts/a.py"),
            ("code", "", "python3 -c 'import tiny; print(tiny.say())'"),
        ],
    );
    test_env.write("skills/demo/requirements.txt", "tiny\n");
    test_env.write("skills/demo/scripts/a.py", SAY);
    test_env.approve("demo");
    for tool in ["python", "uv", "code"] {
        let envelope = test_env.run(&format!("demo/{tool}"), &[]).succeeds();
        assert_eq!(envelope["output"], "tiny 1.0", "{tool}");
    }
    test_env.set("PIP_FIND_LINKS", "/nonexistent");
    let envelope = test_env.run("demo/python", &[]).succeeds();
    assert_eq!(envelope["output"], "tiny 1.0", "nothing is installed twice");
}

#[test]
fn missing_packages_are_errors_with_a_hint() {
    let test_env = test_env(&[
        ("a.py", &with_metadata("# dependencies = [\"no-such-package-here\"]\n")),
        ("b.py", &with_metadata("# requires-python = \">=99\"\n")),
    ]);
    let failed = run(&test_env, "tools/a.py");
    assert_eq!(failed.code, 1, "{failed}");
    assert!(failed.stderr.contains("no-such-package-here"), "{failed}");
    assert!(failed.stderr.contains("check the names and versions"), "{failed}");
    assert!(failed.stderr.contains("only wheels are installed"), "{failed}");
    assert!(failed.stderr.matches("No matching distribution").count() <= 1, "{failed}");
    let failed = run(&test_env, "tools/b.py");
    assert!(failed.stderr.contains("the script needs Python >=99"), "{failed}");
    assert!(made(&test_env, "python").is_empty());
}

#[test]
fn versions_stay_when_an_environment_is_made_again() {
    let test_env = test_env(&[("a.py", &with_metadata("# dependencies = [\"tiny\"]\n"))]);
    prints(&test_env, "tools/a.py", "tiny 1.0\n");
    wheel(&test_env, "tiny", "2.0", "def say():\n    return 'tiny 2.0'\n", "");
    fs::remove_dir_all(&made(&test_env, "python")[0]).expect("removed");
    prints(&test_env, "tools/a.py", "tiny 1.0\n");
}

// Attacks:

#[test]
fn requirements_that_choose_another_place_are_refused() {
    let test_env = test_env(&[("a.py", SAY)]);
    for line in [
        "--index-url https://evil.example/simple",
        "--extra-index-url=https://evil.example/simple",
        "-i https://evil.example/simple",
        "-e .",
        "-r ../../../etc/passwd",
        "--find-links /tmp",
        "--trusted-host evil.example",
        "tiny @ https://evil.example/tiny.whl",
        "git+https://evil.example/tiny",
        "https://evil.example/tiny.whl",
        "./tiny",
        "/etc/passwd",
        "tiny --config-settings=x",
        "tiny \\\n  --index-url https://evil.example",
    ] {
        test_env.write("skills/tools/requirements.txt", format!("tiny\n{line}\n"));
        test_env.approve("tools");
        let refused = run(&test_env, "tools/a.py");
        assert_eq!(refused.code, 3, "{line}: {refused}");
        assert!(refused.stderr.contains("requirements.txt:2: "), "{line}: {refused}");
        assert!(refused.stderr.contains("list packages of the index"), "{line}: {refused}");
    }
    assert!(made(&test_env, "python").is_empty());
}

#[test]
fn odd_inline_metadata_is_refused() {
    let test_env = test_env(&[]);
    for lines in [
        "# dependencies = \"tiny\"\n",
        "# dependencies = [\n",
        "# dependencies = [\"--index-url=https://evil.example\"]\n",
        "# dependencies = [\"tiny\\n--pre\"]\n",
        "# dependencies = [\"tiny @ file:///etc\"]\n",
        "# dependencies = [\"../../secret\"]\n",
        "# [tool.uv.sources]\n# tiny = { path = \"/etc\" }\n",
        "# ///\n# ///\n\n# /// script\n",
    ] {
        test_env.write("skills/tools/a.py", with_metadata(lines));
        test_env.approve("tools");
        let refused = run(&test_env, "tools/a.py");
        assert_eq!(refused.code, 3, "{lines}: {refused}");
        assert!(refused.stderr.contains("a.py: "), "{lines}: {refused}");
    }
    assert!(made(&test_env, "python").is_empty());
}

#[test]
fn a_shared_environment_cannot_be_changed_from_inside() {
    let code = "import os, sys, pathlib, tiny\ndef attempt(act):\n    try:\n        act()\n        \
                print('possible')\n    except OSError:\n        print('denied')\n\
                root = pathlib.Path(sys.prefix)\nfile = pathlib.Path(tiny.__file__)\n\
                attempt(lambda: file.write_text('evil'))\n\
                attempt(lambda: (file.parent / 'evil.pth').write_text('evil'))\n\
                attempt(lambda: file.unlink())\nattempt(lambda: file.chmod(0o777))\n\
                attempt(lambda: (root / 'bin/python').unlink())\n\
                attempt(lambda: (root.parent / 'x').mkdir())\n\
                attempt(lambda: root.rename(str(root) + '.old'))\n\
                attempt(lambda: os.utime(file))\n";
    let test_env = test_env(&[("requirements.txt", "tiny\n"), ("a.py", code)]);
    let run = run(&test_env, "tools/a.py");
    // The parent folder is in the private home or in memory, so a folder that is created there is
    // deleted afterwards.
    let possible = run.stdout.lines().filter(|line| *line == "possible").count();
    assert!(run.code == 0 && run.stdout.lines().count() == 8 && possible <= 1, "{run}");
    assert_eq!(made(&test_env, "python").len(), 1);
}

#[test]
fn a_package_that_was_replaced_on_disk_is_noticed() {
    let test_env = test_env(&[("requirements.txt", "tiny\n"), ("a.py", SAY)]);
    prints(&test_env, "tools/a.py", "tiny 1.0\n");
    let environment = made(&test_env, "python").remove(0);
    let python = fs::read_dir(environment.join("lib")).expect("lib").next().expect("one");
    let packages = python.expect("one").path().join("site-packages");
    let evil: [&dyn Fn(); 4] = [
        &|| {
            let file = packages.join("tiny.py");
            let time = fs::metadata(&file).expect("a file").modified().expect("a time");
            let text = fs::read_to_string(&file).expect("text").replace("1.0", "0.1");
            fs::write(&file, text).expect("written");
            let open = fs::File::options().append(true).open(&file).expect("a file");
            open.set_modified(time).expect("a time");
        },
        &|| fs::write(packages.join("evil.pth"), "import os\n").expect("written"),
        &|| {
            fs::remove_file(environment.join("bin/python")).expect("removed");
            symlink("/usr/bin/true", environment.join("bin/python")).expect("a link");
        },
        &|| fs::remove_file(environment.join("savoir-environment.json")).expect("removed"),
    ];
    for change in evil {
        change();
        let run = run(&test_env, "tools/a.py");
        assert_eq!((run.code, run.stdout.as_str()), (0, "tiny 1.0\n"), "{run}");
        assert!(run.stderr.contains("files of the environment were changed"), "{run}");
    }
}

#[test]
fn code_that_a_package_runs_at_the_start_stays_in_the_sandbox() {
    let test_env = test_env(&[("requirements.txt", "sneaky\n"), ("a.py", "print('ran')\n")]);
    let trace = test_env.path("home/trace");
    let line = format!("import pathlib; pathlib.Path({:?}).write_text('x')\n", trace.display());
    wheel(&test_env, "sneaky", "1", "", &line);
    prints(&test_env, "tools/a.py", "ran\n");
    prints(&test_env, "tools/a.py", "ran\n");
    assert!(!trace.exists(), "code of the package ran outside");
}

#[test]
fn set_user_id_copies_give_no_rights() {
    let script = "set -e\nid -u\ncp /usr/bin/id /tmp/x\nchmod 6755 /tmp/x\n/tmp/x -u\n\
                  cp /usr/bin/id ~/y\nchmod 6755 ~/y || true\n~/y -u\n";
    let test_env = test_env(&[("a.sh", script)]);
    let run = run(&test_env, "tools/a.sh");
    let mut users: Vec<&str> = run.stdout.lines().collect();
    users.dedup();
    assert_eq!(users.len(), 1, "{run}");
    assert!(!run.stderr.contains("Permission denied"), "{run}");
}

#[test]
fn nothing_is_executed_from_granted_folders_with_listed_programs() {
    let test_env = RunTestEnv::with_probe(&[
        "shell:execute:git", "filesystem:write:./out/**", "filesystem:read:./in/**",
    ]);
    test_env.script("work/in/tool", "#!/usr/bin/git\n");
    fs::copy("/usr/bin/true", test_env.path("work/in/true")).expect("a copy");
    let code = "import os, shutil, subprocess\nresult = []\n\
                source = os.path.join(os.getcwd(), 'in', 'true')\n\
                for folder in ['/tmp', os.environ['HOME'], os.path.join(os.getcwd(), 'out')]:\n    \
                path = os.path.join(folder, 'copy')\n    os.makedirs(folder, exist_ok=True)\n    shutil.copy(source, path)\n    \
                os.chmod(path, 0o755)\n    \
                try:\n        subprocess.run([path])\n        result.append(path)\n    \
                except PermissionError:\n        pass\n\
                for path in [source, os.path.join(os.getcwd(), 'in', 'tool')]:\n    \
                try:\n        subprocess.run([path])\n        result.append(path)\n    \
                except PermissionError:\n        pass\n";
    assert_eq!(test_env.execute(code), json!([]));
}

#[test]
fn the_environment_of_a_user_is_executed_where_it_is_granted() {
    let test_env =
        test_env(&[("a.sh", "set -e\n.venv/bin/python -c 'import own; print(own.__name__)'\n")]);
    let venv = test_env.path("work/.venv");
    let made = Command::new("python3").args(["-m", "venv", "--without-pip"]).arg(&venv).status();
    assert!(made.expect("python3 runs").success());
    let python = fs::read_dir(venv.join("lib")).expect("lib").next().expect("one").expect("one");
    fs::write(python.path().join("site-packages/own.py"), "").expect("a file");
    prints(&test_env, "tools/a.sh", "own\n");
}

#[test]
fn programs_that_a_tool_makes_can_be_executed() {
    let script = "set -e\nmkdir -p /tmp/bin \"$HOME/bin\"\n\
                  printf '#!/bin/sh\\necho made $1\\n' > /tmp/bin/tool\nchmod +x /tmp/bin/tool\n\
                  cp /tmp/bin/tool \"$HOME/bin/tool\"\n/tmp/bin/tool one\n\"$HOME/bin/tool\" two\n\
                  cp /usr/bin/env /tmp/bin/env\n/tmp/bin/env echo three\n./own four\n";
    let test_env = test_env(&[("a.sh", script)]);
    test_env.script("work/own", "#!/bin/sh\necho own $1\n");
    prints(&test_env, "tools/a.sh", "made one\nmade two\nthree\nown four\n");
}

/// Creates a wheel with additional metadata, and a source distribution of the same version whose
/// build leaves a trace. Arguments: a folder, the names in the metadata, and the trace.
const MAKE_EVIL: &str = r#"
import io, sys, tarfile, zipfile
folder, trace, *names = sys.argv[1:]
info = "evil_pkg-1.0.dist-info"
files = {
    "evil_pkg.py": "",
    f"{info}/METADATA": "Metadata-Version: 2.1\nName: evil-pkg\nVersion: 1.0\n",
    f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
}
for index, name in enumerate(names):
    more = f"evil_pkg-1.0.data/purelib/more{index}.dist-info"
    name = name.replace("LONG", "a" * 9_000_000)
    files[f"{more}/METADATA"] = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n"
    files[f"{more}/RECORD"] = ""
files[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in files) + f"{info}/RECORD,,\n"
with zipfile.ZipFile(f"{folder}/evil_pkg-1.0-py3-none-any.whl", "w", zipfile.ZIP_DEFLATED) as wheel:
    for path, text in files.items():
        wheel.writestr(path, text)
build = {
    "pyproject.toml": '[build-system]\nrequires=[]\nbuild-backend="bk"\nbackend-path=["."]\n',
    "bk.py": f"open({trace!r}, 'w').write('built')\nraise SystemExit(1)\n",
    "PKG-INFO": "Metadata-Version: 2.1\nName: evil-pkg\nVersion: 1.0\n",
}
with tarfile.open(f"{folder}/evil_pkg-1.0.tar.gz", "w:gz") as archive:
    for path, text in build.items():
        entry = tarfile.TarInfo(f"evil_pkg-1.0/{path}")
        entry.size = len(text)
        archive.addfile(entry, io.BytesIO(text.encode()))
"#;

fn evil_wheel(test_env: &RunTestEnv, names: &[&str]) -> PathBuf {
    let trace = test_env.path("trace");
    let made = Command::new("python3")
        .args(["-c", MAKE_EVIL])
        .arg(test_env.path("wheels"))
        .arg(&trace)
        .args(names)
        .status();
    assert!(made.expect("python3 runs").success());
    trace
}

#[test]
fn metadata_of_a_package_is_not_passed_to_the_installer_as_options() {
    let test_env = test_env(&[("requirements.txt", "evil-pkg==1.0\n"), ("a.py", "print('ran')\n")]);
    for names in [
        // A long record must not be truncated when it is read, because the environment would be
        // installed again.
        &["--no-binary :all: #", "#LONG", "#LONG"][..],
        &["--no-binary :all: #"],
        &["-r /etc/passwd #"],
        &["x @ file:///etc #"],
        &["tiny; --no-binary"],
    ] {
        let trace = evil_wheel(&test_env, names);
        for _ in 0..2 {
            let failed = run(&test_env, "tools/a.py");
            assert!(!trace.exists(), "{names:?}: a package was built on the host: {failed}");
            assert_eq!(failed.code, 1, "{names:?}: {failed}");
            assert!(failed.stderr.contains("dist-info: "), "{names:?}: {failed}");
        }
    }
    assert!(made(&test_env, "python").is_empty());
}

#[test]
fn cached_version_list_with_options_is_ignored() {
    let test_env = test_env(&[("requirements.txt", "evil-pkg==1.0\n"), ("a.py", "print('ran')\n")]);
    let trace = evil_wheel(&test_env, &[]);
    prints(&test_env, "tools/a.py", "ran\n");
    let chosen = fs::read_dir(test_env.path(".savoir/cache/python/chosen")).expect("a folder");
    let chosen = chosen.map(|entry| entry.expect("one").path()).next().expect("a list");
    fs::write(chosen, "evil-pkg==1.0\n--no-binary :all: #==1\n").expect("written");
    fs::remove_dir_all(&made(&test_env, "python")[0]).expect("removed");
    prints(&test_env, "tools/a.py", "ran\n");
    assert!(!trace.exists(), "a package was built on the host");
}

/// Writes programs into a folder that leave a trace when they are started.
fn plant(test_env: &RunTestEnv, folder: &str, names: &[&str]) -> PathBuf {
    let trace = test_env.path("trace");
    for name in names {
        let text = format!("#!/bin/sh\necho {name} >> {}\nexit 1\n", trace.display());
        test_env.script(&format!("{folder}/{name}"), &text);
    }
    trace
}

/// A `PATH` that starts with a folder.
fn path_with(test_env: &RunTestEnv, folder: &str) -> String {
    let path = std::env::var("PATH").unwrap_or_default();
    format!("{}:{path}", test_env.path(folder).display())
}

#[test]
fn planted_installers_of_a_project_are_not_started() {
    let mut test_env = test_env(&[("requirements.txt", "tiny\n"), ("a.py", SAY)]);
    let names = ["uv", "pip", "python", "python3", "sh", "bash", "env"];
    for (folder, options) in [
        ("work/.venv/bin", &[][..]),
        // This run can write to the folder, or an earlier run could have.
        ("other/bin", &["--allow-write", "../other"]),
        ("venv/bin", &[]),
    ] {
        let trace = plant(&test_env, folder, &names);
        test_env.set("PATH", &path_with(&test_env, folder));
        test_env.set("VIRTUAL_ENV", &test_env.path("venv").to_string_lossy());
        let (skill, target) = (test_env.skill("tools"), test_env.skill("tools/a.py"));
        let approve = [&["approve", &skill, "--yes"], options].concat();
        assert_eq!(test_env.savoir(&approve).code, 0);
        let run = test_env.savoir(&[&["run", &target], options].concat());
        let started = fs::read_to_string(&trace).unwrap_or_default();
        assert_eq!(started, "", "{folder}: {run}");
        assert_eq!((run.code, run.stdout.as_str()), (0, "tiny 1.0\n"), "{folder}: {run}");
        fs::remove_dir_all(&made(&test_env, "python")[0]).expect("removed");
    }
}

#[test]
fn lists_of_packages_that_are_links_or_too_large_are_refused() {
    let test_env = test_env(&[("a.py", SAY), ("real.txt", "tiny\n"), ("b.js", "")]);
    symlink("real.txt", test_env.path("skills/tools/requirements.txt")).expect("a link");
    test_env.approve("tools");
    let refused = run(&test_env, "tools/a.py");
    assert_eq!(refused.code, 3, "{refused}");
    assert!(refused.stderr.contains("requirements.txt is a link"), "{refused}");
    fs::remove_file(test_env.path("skills/tools/requirements.txt")).expect("removed");
    test_env.write("skills/tools/requirements.txt", "#".repeat((1 << 20) + 1));
    test_env.approve("tools");
    let refused = run(&test_env, "tools/a.py");
    assert_eq!(refused.code, 3, "{refused}");
    assert!(refused.stderr.contains("requirements.txt is larger than 1 MiB"), "{refused}");
    if has_program("node") {
        test_env.write("skills/tools/package.json", PACKAGE);
        test_env.write("skills/tools/package-lock.json", " ".repeat((16 << 20) + 1));
        test_env.approve("tools");
        let refused = run(&test_env, "tools/b.js");
        assert_eq!(refused.code, 3, "{refused}");
        assert!(refused.stderr.contains("package-lock.json is larger than 16 MiB"), "{refused}");
    }
}

#[test]
fn packages_of_a_script_come_before_those_of_a_granted_environment() {
    let test_env = test_env(&[("requirements.txt", "tiny\n"), ("a.py", SAY)]);
    let venv = test_env.path("work/.venv");
    let made = Command::new("python3").args(["-m", "venv", "--without-pip"]).arg(&venv).status();
    assert!(made.expect("python3 runs").success());
    let python = fs::read_dir(venv.join("lib")).expect("lib").next().expect("one").expect("one");
    let other = python.path().join("site-packages/tiny.py");
    fs::write(other, "def say():\n    return 'other'\n").expect("a file");
    let options = ["--allow-read", ".venv"];
    let (skill, target) = (test_env.skill("tools"), test_env.skill("tools/a.py"));
    let approve = [&["approve", &skill, "--yes"], &options[..]].concat();
    assert_eq!(test_env.savoir(&approve).code, 0);
    let run = test_env.savoir(&[&["run", &target], &options[..]].concat());
    assert_eq!((run.code, run.stdout.as_str()), (0, "tiny 1.0\n"), "{run}");
}

// Node:

/// A package registry on this machine.
struct Registry {
    server: Child,
    folder: PathBuf,
    address: String,
}

impl Registry {
    fn start(test_env: &mut RunTestEnv) -> Self {
        let folder = test_env.path("registry");
        fs::create_dir_all(folder.join("tarballs")).expect("a folder");
        let mut server = Command::new("python3")
            .args(["-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "--directory"])
            .arg(&folder)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("a server");
        let mut line = String::new();
        let output = server.stdout.take().expect("a pipe");
        BufReader::new(output).read_line(&mut line).expect("a line");
        let port = line.split_whitespace().skip_while(|word| *word != "port").nth(1);
        let address = format!("http://127.0.0.1:{}", port.expect("a port"));
        for (name, value) in [
            ("npm_config_registry", address.as_str()),
            ("npm_config_userconfig", "/dev/null"),
            ("NO_PROXY", "127.0.0.1"),
            ("no_proxy", "127.0.0.1"),
        ] {
            test_env.set(name, value);
        }
        Self { server, folder, address }
    }

    /// Publishes version 1.0.0 of a package.
    fn publish(&self, name: &str, more: &serde_json::Value, files: &[(&str, &str)]) {
        let folder = tempfile::tempdir().expect("a folder");
        let package = folder.path().join("package");
        let mut manifest = json!({"name": name, "version": "1.0.0", "main": "index.js"});
        let fields = manifest.as_object_mut().expect("an object");
        fields.extend(more.as_object().expect("an object").clone());
        let text = manifest.to_string();
        for (path, text) in files.iter().copied().chain([("package.json", text.as_str())]) {
            let path = package.join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, text).expect("a file");
        }
        let file = format!("tarballs/{name}-1.0.0.tgz");
        let mut tar = Command::new("tar");
        tar.arg("-czf").arg(self.folder.join(&file)).arg("-C").arg(folder.path()).arg("package");
        assert!(tar.status().expect("tar runs").success());
        manifest["dist"] = json!({"tarball": format!("{}/{file}", self.address)});
        let document = json!({"name": name, "dist-tags": {"latest": "1.0.0"},
            "versions": {"1.0.0": manifest}});
        fs::write(self.folder.join(name), document.to_string()).expect("a file");
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        // The server is our own child process; it may have ended already.
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// Creates a skill with the package `pad`, and a registry that contains it.
fn node(files: &[(&str, &str)]) -> Option<(RunTestEnv, Registry)> {
    if !has_program("npm") || !has_program("node") {
        return None;
    }
    let mut test_env = test_env(&[]);
    let registry = Registry::start(&mut test_env);
    let code = "module.exports = (text) => `[${text}]`;\n";
    let tool = "#!/usr/bin/env node\nconsole.log(require('./index.js')(process.argv[2]));\n";
    registry.publish(
        "pad",
        &json!({"bin": {"pad": "cli.js"}}),
        &[("index.js", code), ("cli.js", tool)],
    );
    skill(&test_env, "tools", &[&[("package.json", PACKAGE)], files].concat());
    Some((test_env, registry))
}

const PACKAGE: &str = r#"{"name": "tools", "dependencies": {"pad": "^1.0.0"}}"#;

#[test]
fn node_scripts_have_their_packages() {
    let Some((test_env, _registry)) = node(&[
        ("scripts/a.js", "console.log(require('pad')('a'));\n"),
        (
            "scripts/b.mjs",
            "import pad from 'pad';\nimport fs from 'node:fs';\n\
                           fs.readFileSync(new URL('../SKILL.md', import.meta.url));\nconsole.log(pad('b'));\n",
        ),
        ("lib/deep/c.cjs", "const pad = require('pad');\nconsole.log(pad('c'));\n"),
        ("d.sh", "pad d 2>/dev/null || echo none\n"),
    ]) else {
        return;
    };
    test_env.script("skills/tools/e", "#!/usr/bin/env node\nconsole.log(require('pad')('e'));\n");
    let approved = test_env.savoir(&["approve", &test_env.skill("tools"), "--yes"]);
    assert!(approved.stdout.contains("installs pad@^1.0.0 (npm) into"), "{approved}");
    prints(&test_env, "tools/scripts/a.js", "[a]\n");
    prints(&test_env, "tools/scripts/b.mjs", "[b]\n");
    prints(&test_env, "tools/lib/deep/c.cjs", "[c]\n");
    prints(&test_env, "tools/d.sh", "none\n");
    prints(&test_env, "tools/e", "[e]\n");
    assert_eq!(made(&test_env, "node").len(), 1);
    assert!(!test_env.path("skills/tools/node_modules").exists(), "nothing is made in the skill");
    test_env.commands("demo", "", &[("node", "", "node scripts/a.js")]);
    test_env.write("skills/demo/package.json", PACKAGE);
    test_env.write("skills/demo/scripts/a.js", "console.log(require('pad')('demo'));\n");
    test_env.approve("demo");
    assert_eq!(test_env.run("demo/node", &[]).succeeds()["output"], "[demo]");
    assert_eq!(made(&test_env, "node").len(), 1, "two skills share one");
}

/// `node_dependencies` of GAIA.
#[test]
fn tools_that_may_run_node_have_their_node_dependencies() {
    let Some((test_env, _registry)) = node(&[]) else { return };
    let needs = "requirements:\n  node_dependencies: ['pad@^1.0.0']\n";
    test_env.probe("probe", &["shell:execute:node"], needs);
    let approved = test_env.savoir(&["approve", &test_env.skill("probe"), "--yes"]);
    assert!(approved.stdout.contains("installs pad@^1.0.0 (npm) into"), "{approved}");
    let print =
        "import subprocess\nresult = subprocess.run(WORDS, capture_output=True, text=True).stdout";
    let node = print.replace("WORDS", "['node', '-e', \"console.log(require('pad')('x'))\"]");
    assert_eq!(test_env.execute(&node), "[x]\n");
    assert_eq!(made(&test_env, "node").len(), 1);
    // Programs of packages start if every program may.
    test_env.probe("probe", &["shell:execute"], needs);
    test_env.approve("probe");
    assert_eq!(test_env.execute(&node), "[x]\n");
    assert_eq!(test_env.execute(&print.replace("WORDS", "['pad', 'y']")), "[y]\n");
    test_env.probe("probe", &["shell:execute:node"], needs);
    // A script of Node gets them, too.
    test_env.write("skills/probe/a.js", "console.log(require('pad')('a'));\n");
    test_env.approve("probe");
    prints(&test_env, "probe/a.js", "[a]\n");
    assert_eq!(made(&test_env, "node").len(), 1);
    test_env.probe(
        "bad",
        &["shell:execute"],
        "requirements:\n  node_dependencies: ['a@file:/etc']\n",
    );
    test_env.approve("bad");
    let refused = test_env.run("bad", &["--param", "code=result = 1"]);
    refused.fails(3, "requirement-refused");
    refused.assert_error_contains(&["node_dependencies: ", "name packages of the registry"]);
}

#[test]
fn node_dependencies_are_not_installed_if_no_program_can_use_them() {
    let Some((test_env, _registry)) = node(&[]) else { return };
    for permissions in [&[][..], &["shell:execute:git"], &["shell:none"]] {
        let needs = "requirements:\n  node_dependencies: ['pad@^1.0.0']\n";
        test_env.probe("probe", permissions, needs);
        let approved = test_env.savoir(&["approve", &test_env.skill("probe"), "--yes"]);
        assert_eq!(approved.code, 0, "{approved}");
        let text = approved.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
        let note =
            "npm packages that are not installed, because its tools may not run node: pad@^1.0.0";
        assert!(text.contains(note), "{approved}");
        let run = test_env.run("probe", &["--param", "code=result = 1"]);
        run.succeeds();
        let note = "pad@^1.0.0 is not installed, because the skill may not run node; \
                    to use npm packages, it declares shell:execute:node";
        assert!(run.0.stderr.contains(note), "{}", run.0);
        assert!(made(&test_env, "node").is_empty());
    }
}

#[test]
fn lock_file_pins_versions() {
    let Some((test_env, _registry)) = node(&[("a.js", "console.log(require('pad')('a'));\n")])
    else {
        return;
    };
    let lock = |version: &str| {
        json!({"name": "tools", "lockfileVersion": 3, "requires": true, "packages": {
            "": {"name": "tools", "dependencies": {"pad": "^1.0.0"}},
            "node_modules/pad": {"version": version, "bin": {"pad": "cli.js"}}}})
    };
    test_env.write("skills/tools/package-lock.json", lock("1.0.0").to_string());
    test_env.approve("tools");
    prints(&test_env, "tools/a.js", "[a]\n");
    test_env.write("skills/tools/package-lock.json", lock("1.9.9").to_string());
    test_env.approve("tools");
    let failed = run(&test_env, "tools/a.js");
    assert_eq!(failed.code, 1, "{failed}");
    assert!(failed.stderr.contains("npm could not install the packages"), "{failed}");
}

#[test]
fn package_scripts_and_skill_settings_are_ignored() {
    let Some((test_env, registry)) = node(&[
        ("a.js", "console.log(require('evil'));\n"),
        (".npmrc", "registry=http://127.0.0.1:9/\nignore-scripts=false\n"),
    ]) else {
        return;
    };
    let trace = test_env.path("trace");
    let touch = format!("touch {}", trace.display());
    let scripts = json!({"scripts": {"preinstall": touch, "install": touch, "postinstall": touch,
        "prepare": touch}});
    registry.publish("evil", &scripts, &[("index.js", "module.exports = 'loaded';\n")]);
    let package = json!({"scripts": {"postinstall": touch, "prepare": touch},
        "dependencies": {"evil": "1"}});
    test_env.write("skills/tools/package.json", package.to_string());
    test_env.approve("tools");
    prints(&test_env, "tools/a.js", "loaded\n");
    assert!(!trace.exists(), "a script of a package ran");
}

#[test]
fn node_packages_from_other_registries_are_refused() {
    let Some((test_env, registry)) = node(&[("a.js", "require('pad');\n")]) else { return };
    for range in [
        "file:../../",
        "file:/etc",
        "link:..",
        "git+ssh://git@evil.example/x.git",
        "git+https://evil.example/x.git",
        "github:evil/x",
        "evil/x",
        "http://evil.example/x.tgz",
        "workspace:*",
    ] {
        let package = json!({"dependencies": {"pad": range}}).to_string();
        test_env.write("skills/tools/package.json", package);
        test_env.approve("tools");
        let refused = run(&test_env, "tools/a.js");
        assert_eq!(refused.code, 3, "{range}: {refused}");
        assert!(refused.stderr.contains("package.json: "), "{range}: {refused}");
        assert!(refused.stderr.contains("name packages of the registry"), "{range}: {refused}");
    }
    let lock = json!({"lockfileVersion": 3, "packages": {"node_modules/pad":
        {"version": "1.0.0", "resolved": "file:../../../../etc", "link": true}}});
    test_env.write("skills/tools/package.json", PACKAGE);
    test_env.write("skills/tools/package-lock.json", lock.to_string());
    test_env.approve("tools");
    assert_eq!(run(&test_env, "tools/a.js").code, 3);
    fs::remove_file(test_env.path("skills/tools/package-lock.json")).expect("removed");
    // Packages of the registry that depend on another source.
    for (name, range) in [("deep-file", "file:../../../../work"), ("deep-git", "git+file:///etc")] {
        test_env.write("work/package.json", r#"{"name":"stolen","version":"1.0.0"}"#);
        registry.publish(name, &json!({"dependencies": {"stolen": range}}), &[("index.js", "")]);
        test_env
            .write("skills/tools/package.json", json!({"dependencies": {name: "1"}}).to_string());
        test_env.approve("tools");
        let failed = run(&test_env, "tools/a.js");
        assert_eq!(failed.code, 1, "{range}: {failed}");
    }
    assert!(made(&test_env, "node").is_empty());
}

#[test]
fn planted_programs_of_a_project_do_not_install_node_packages() {
    let Some((mut test_env, _registry)) = node(&[("a.js", "console.log(require('pad')('a'));\n")])
    else {
        return;
    };
    let trace = plant(&test_env, "work/.venv/bin", &["node", "npm", "sh", "env"]);
    test_env.set("PATH", &path_with(&test_env, "work/.venv/bin"));
    let run = run(&test_env, "tools/a.js");
    assert_eq!(fs::read_to_string(trace).unwrap_or_default(), "", "{run}");
    assert_eq!((run.code, run.stdout.as_str()), (0, "[a]\n"), "{run}");
}

/// A server that must not be contacted; it counts requests.
struct UncontactedServer {
    address: String,
    count: Arc<AtomicUsize>,
}

impl UncontactedServer {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let count = Arc::new(AtomicUsize::new(0));
        let asked = Arc::clone(&count);
        // The thread ends with the test process.
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                asked.fetch_add(1, Ordering::Relaxed);
                // Ignored, because the request was already counted.
                let _ = stream.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n");
            }
        });
        Self { address, count }
    }

    #[track_caller]
    fn check(&self, run: &Transcript) {
        let count = self.count.load(Ordering::Relaxed);
        assert_eq!(count, 0, "npm asked an address that nobody agreed to: {run}");
    }
}

#[test]
fn urls_in_a_lock_file_are_not_used() {
    let Some((test_env, registry)) = node(&[("a.js", "console.log(require('pad')('a'));\n")])
    else {
        return;
    };
    let digest = "import base64, hashlib, sys\nfile = open(sys.argv[1], 'rb').read()\n\
                  print(base64.b64encode(hashlib.sha512(file).digest()).decode())\n";
    let mut hash = Command::new("python3");
    hash.args(["-c", digest]).arg(registry.folder.join("tarballs/pad-1.0.0.tgz"));
    let hash = hash.output().expect("python3 runs").stdout;
    let right = format!("sha512-{}", String::from_utf8_lossy(&hash).trim());
    let server = UncontactedServer::start();
    for (integrity, code) in [(&*right, 0), ("sha512-AAAA", 1), ("", 3)] {
        let lock = json!({"lockfileVersion": 3, "packages": {
            "": {"name": "tools", "dependencies": {"pad": "^1.0.0"}},
            "node_modules/pad": {"version": "1.0.0", "integrity": integrity,
                "resolved": format!("https://{}/pad.tgz", server.address)}}});
        test_env.write("skills/tools/package-lock.json", lock.to_string());
        test_env.approve("tools");
        let run = run(&test_env, "tools/a.js");
        server.check(&run);
        assert_eq!(run.code, code, "{integrity}: {run}");
    }
}

#[test]
fn packages_with_urls_are_refused() {
    let Some((test_env, registry)) = node(&[("a.js", "console.log('ran');\n")]) else { return };
    let server = UncontactedServer::start();
    let place = format!("http://{}/deep.tgz", server.address);
    for field in ["dependencies", "optionalDependencies", "peerDependencies"] {
        registry.publish("url", &json!({field: {"deep": place}}), &[("index.js", "")]);
        test_env.write("skills/tools/package.json", r#"{"dependencies": {"url": "1"}}"#);
        test_env.approve("tools");
        let failed = run(&test_env, "tools/a.js");
        assert_eq!(failed.code, 1, "{field}: {failed}");
        assert!(failed.stderr.contains("only packages of the registry"), "{field}: {failed}");
        if npm_refuses_addresses() {
            server.check(&failed);
        }
    }
    assert!(made(&test_env, "node").is_empty());
}

/// Whether this npm can be limited to the registry. For older versions, the result is checked
/// afterwards.
fn npm_refuses_addresses() -> bool {
    let output = Command::new("npm").args(["config", "get", "allow-remote"]).output();
    let said = output.expect("npm runs").stdout;
    ["all", "none", "root"].contains(&String::from_utf8_lossy(&said).trim())
}

#[test]
fn the_question_lists_peers_and_overrides() {
    let Some((test_env, registry)) = node(&[("a.js", "console.log(require('deep'));\n")]) else {
        return;
    };
    for (name, more) in [
        ("top", json!({"dependencies": {"deep": "1"}})),
        ("deep", json!({})),
        ("other", json!({})),
        ("peer", json!({})),
    ] {
        let code = format!("module.exports = '{name}';\n");
        registry.publish(name, &more, &[("index.js", &code)]);
    }
    let package = json!({"dependencies": {"top": "1"},
        "peerDependencies": {"peer": "1", "absent": "1"},
        "peerDependenciesMeta": {"absent": {"optional": true}},
        "overrides": {"top": {"deep": "npm:other@1"}}});
    test_env.write("skills/tools/package.json", package.to_string());
    let approved = test_env.savoir(&["approve", &test_env.skill("tools"), "--yes"]);
    for name in ["top@1 (npm)", "peer@1 (npm)", "deep@npm:other@1 (npm)"] {
        assert!(approved.stdout.contains(name), "{name}: {approved}");
    }
    assert!(!approved.stdout.contains("absent"), "{approved}");
    prints(&test_env, "tools/a.js", "other\n");
}

#[test]
fn a_lock_file_that_swaps_a_package_is_refused() {
    let Some((test_env, registry)) = node(&[("a.js", "require('pad');\n")]) else { return };
    registry.publish("evil", &json!({}), &[("index.js", "")]);
    let lock = json!({"lockfileVersion": 3, "packages": {
        "": {"name": "tools", "dependencies": {"pad": "^1.0.0"}},
        "node_modules/pad": {"name": "evil", "version": "1.0.0"}}});
    test_env.write("skills/tools/package-lock.json", lock.to_string());
    test_env.approve("tools");
    let refused = run(&test_env, "tools/a.js");
    assert_eq!(refused.code, 3, "{refused}");
    assert!(refused.stderr.contains("another package under this name"), "{refused}");
}

#[test]
fn node_packages_that_were_changed_on_disk_are_noticed() {
    let Some((test_env, _registry)) = node(&[("a.js", "console.log(require('pad')('a'));\n")])
    else {
        return;
    };
    prints(&test_env, "tools/a.js", "[a]\n");
    let modules = made(&test_env, "node").remove(0).join("node_modules");
    let evil: [&dyn Fn(); 3] = [
        &|| fs::write(modules.join("pad/index.js"), "module.exports = () => 'evil';\n").expect("x"),
        &|| {
            fs::remove_dir_all(modules.join("pad")).expect("removed");
            symlink(test_env.path("home"), modules.join("pad")).expect("a link");
        },
        &|| symlink("/etc", modules.join("etc")).expect("a link"),
    ];
    for change in evil {
        change();
        let run = run(&test_env, "tools/a.js");
        assert_eq!((run.code, run.stdout.as_str()), (0, "[a]\n"), "{run}");
        assert!(run.stderr.contains("files of the environment were changed"), "{run}");
    }
}

#[test]
fn a_skill_with_node_packages_cannot_be_changed() {
    let code = "const fs = require('fs'), path = require('path');\nrequire('pad');\n\
                for (const name of ['SKILL.md', 'new', 'node_modules/pad/index.js', 'node_modules/new', \
                'a.js', 'lib/x.txt', 'package.json']) {\n  try {\n    \
                fs.writeFileSync(path.join(__dirname, name), 'evil');\n    console.log('possible', name);\n  \
                } catch (error) {\n    console.log('denied');\n  }\n}\n";
    let Some((test_env, _registry)) = node(&[("a.js", code), ("lib/x.txt", "x")]) else { return };
    symlink("lib", test_env.path("skills/tools/inside")).expect("a link");
    let run =
        test_env.savoir(&["approve", &test_env.skill("tools"), "--yes", "--allow-write", "."]);
    assert_eq!(run.code, 0, "{run}");
    let target = test_env.skill("tools/a.js");
    // The same if the parent folder of the skill is writable.
    for folder in ["work", "skills"] {
        let mut command = test_env.command(&["run", &target]);
        let output = command.current_dir(test_env.path(folder)).output().expect("savoir runs");
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(printed, "denied\n".repeat(7), "{folder}: {output:?}");
    }
    assert!(!test_env.path("skills/tools/node_modules").exists());
    assert_eq!(fs::read_to_string(test_env.path("skills/tools/lib/x.txt")).expect("text"), "x");
}

#[test]
fn packages_of_a_project_are_executed_where_they_are_granted() {
    let script = "set -e\nnode_modules/.bin/pad one\nnpx --offline pad two\nnpm run --silent say\n";
    let Some((test_env, _registry)) = node(&[("a.sh", script)]) else { return };
    let install = |folder: &Path| {
        let mut npm = Command::new("npm");
        npm.args(["install", "--ignore-scripts", "--no-audit", "--no-fund"]).current_dir(folder);
        npm.envs(test_env.variables.iter().map(|(name, value)| (name, value)));
        npm.env("HOME", test_env.path("home")).stdin(Stdio::null());
        let output = npm.output().expect("npm runs");
        assert!(output.status.success(), "{output:?}");
    };
    let package = json!({"name": "project", "dependencies": {"pad": "1"},
        "scripts": {"say": "pad three"}});
    test_env.write("work/package.json", package.to_string());
    install(&test_env.path("work"));
    prints(&test_env, "tools/a.sh", "[one]\n[two]\n[three]\n");
}
