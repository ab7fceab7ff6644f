//! Tests that the ledger finds what the real `npx skills` and `clawhub` install.

mod adopt;

use std::{
    collections::HashMap,
    ffi::OsString,
    fs,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use savoir_package::{
    Agents, Ledger, Tree,
    ledger::{Drift, LedgerEntry, Origin, SearchRoots, SkillLocation, Source},
};

/// A machine for the tools: a home folder, a project, a skill and a repository with it.
struct TestMachine {
    place: tempfile::TempDir,
    tools: PathBuf,
}

impl TestMachine {
    /// Returns `None` with a note if the tools are not installed.
    fn new(what: &str) -> Option<Self> {
        let variable = "SAVOIR_TEST_SKILLS";
        let tools = std::env::var_os(variable).filter(|value| !value.is_empty());
        if tools.is_none() {
            #[expect(clippy::print_stderr, reason = "a skipped test must be seen")]
            {
                eprintln!(
                    "=== SKIPPED: {what}: {variable} is not set (scripts/services.sh sets it) ==="
                );
            }
        }
        let machine = Self { place: tempfile::tempdir().unwrap(), tools: tools?.into() };
        for folder in ["home/.roo", "project/.claude", "source/skills"] {
            fs::create_dir_all(machine.path(folder)).unwrap();
        }
        machine.write_skill();
        Some(machine)
    }

    fn path(&self, path: &str) -> PathBuf {
        self.place.path().canonicalize().unwrap().join(path)
    }

    fn write_skill(&self) {
        let folder = self.path("source/skills/pdf");
        fs::create_dir_all(folder.join("scripts/Deep")).unwrap();
        let text = "---\nname: pdf\ndescription: Reads papers. Use for PDF files.\n---\n# PDF\n";
        fs::write(folder.join("SKILL.md"), text).unwrap();
        for path in [
            "README.md", "a b.txt", "_x", "größe.md", "grosse.md", "scripts/Run.sh",
            "scripts/run_all.sh", "scripts/run-all.sh", "scripts/Deep/9", "scripts/Deep/10",
            "scripts.txt",
        ] {
            fs::write(folder.join(path), path).unwrap();
        }
    }

    /// Creates a repository with the skill, which git finds under an HTTPS address.
    fn publish(&self) {
        let source = self.path("source");
        for arguments in [
            &["init", "--quiet", "--initial-branch=main"][..],
            &["config", "uploadpack.allowFilter", "true"],
        ] {
            self.git(arguments);
        }
        self.commit();
        let rule = format!(
            "[url \"file://{}\"]\n\tinsteadOf = https://gitlab.com/ada/papers.git\n",
            source.display()
        );
        fs::write(self.path("home/.gitconfig"), rule).unwrap();
    }

    fn git(&self, arguments: &[&str]) -> String {
        let mut git = Command::new("git");
        let output = git.current_dir(self.path("source")).args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// Commits all files; returns the commit id.
    fn commit(&self) -> String {
        self.git(&["add", "--all"]);
        self.git(&["-c", "user.name=x", "-c", "user.email=x@y", "commit", "--quiet", "-m", "x"]);
        self.git(&["rev-parse", "HEAD"])
    }

    /// Runs a tool; returns its output.
    fn run(&self, tool: &str, arguments: &[&str]) -> String {
        let mut command = Command::new("node");
        command.arg(self.tools.join(tool)).args(arguments).current_dir(self.path("project"));
        for name in ["XDG_CONFIG_HOME", "XDG_STATE_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME"] {
            command.env_remove(name);
        }
        command
            .env("HOME", self.path("home"))
            .env("DISABLE_TELEMETRY", "1")
            .env("DO_NOT_TRACK", "1");
        command.env("CLAWHUB_DISABLE_TELEMETRY", "1").stdin(Stdio::null());
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{tool} {arguments:?}: {text}{errors}");
        text.into_owned()
    }

    fn open(&self) -> Ledger {
        let none = |_: &str| -> Option<OsString> { None };
        Ledger::open(&SearchRoots {
            agents: Agents::new(&self.path("home"), none),
            project: Some(self.path("project")),
            nested_folders: Vec::new(),
            installed_by_savoir: HashMap::new(),
        })
    }
}

fn only(ledger: &Ledger) -> &LedgerEntry {
    assert_eq!(ledger.warnings(), []);
    let [entry] = ledger.entries() else { panic!("{:?}", ledger.entries()) };
    entry
}

fn sees(entry: &LedgerEntry, id: &str) -> bool {
    entry.agents().iter().any(|agent| agent.id == id)
}

#[test]
fn npx_skills_in_a_project() {
    let Some(machine) = TestMachine::new("npx skills in a project") else { return };
    let agents = ["-y", "-a", "claude-code", "-a", "codex"];
    machine.run("skills", &[&["add", "../source/skills/pdf"][..], &agents].concat());
    let ledger = machine.open();
    let pdf = only(&ledger);
    assert_eq!(pdf.path(), machine.path("project/.agents/skills/pdf"));
    let link = machine.path("project/.claude/skills/pdf");
    assert!(pdf.places().iter().any(|place| place.link() == Some(&link)), "{pdf:?}");
    assert!(sees(pdf, "claude-code") && sees(pdf, "codex") && sees(pdf, "zed"));
    let Some(Origin::Npx(origin)) = pdf.recorded() else { panic!("{pdf:?}") };
    assert_eq!(Path::new(&origin.source), machine.path("source/skills/pdf"));
    assert_eq!(pdf.drift(), Drift::Unmodified);
    let adoption = pdf.adoption().unwrap();
    assert_eq!(adoption.source, Source::Folder(machine.path("source/skills/pdf")));
    let source = Tree::read(&machine.path("source/skills/pdf")).unwrap();
    assert_eq!(adoption.integrity, source.integrity());
    fs::write(pdf.path().join("SKILL.md"), "---\nname: pdf\n---\n").unwrap();
    assert_eq!(pdf.drift(), Drift::Modified);
}

#[test]
fn npx_skills_for_a_user() {
    let Some(machine) = TestMachine::new("npx skills for a user") else { return };
    machine.publish();
    let agents = ["-g", "-y", "-a", "claude-code", "-a", "codex", "-a", "roo"];
    machine.run("skills", &[&["add", "https://gitlab.com/ada/papers"][..], &agents].concat());
    let ledger = machine.open();
    let pdf = only(&ledger);
    assert_eq!(pdf.path(), machine.path("home/.agents/skills/pdf"));
    assert_eq!(pdf.places().iter().filter_map(SkillLocation::link).count(), 2, "{pdf:?}");
    assert!(sees(pdf, "claude-code") && sees(pdf, "roo") && sees(pdf, "codex"));
    assert_eq!(pdf.details().unwrap().origin.word(), "npx");
    assert_eq!(pdf.drift(), Drift::Unmodified);
    let source = Source::Git {
        url: "https://gitlab.com/ada/papers.git".into(),
        reference: None,
        path: "skills/pdf".into(),
        tree_sha: None,
    };
    assert_eq!(pdf.adoption().unwrap().source, source);
    fs::remove_file(pdf.path().join("_x")).unwrap();
    assert_eq!(pdf.drift(), Drift::Modified);
}

#[test]
fn npx_skills_as_copies() {
    let Some(machine) = TestMachine::new("npx skills as copies") else { return };
    let agents = ["-y", "--copy", "-a", "claude-code", "-a", "roo"];
    machine.run("skills", &[&["add", "../source/skills/pdf"][..], &agents].concat());
    let ledger = machine.open();
    let paths: Vec<&Path> = ledger.entries().iter().map(LedgerEntry::path).collect();
    let expected =
        [machine.path("project/.claude/skills/pdf"), machine.path("project/.roo/skills/pdf")];
    assert_eq!(paths, expected);
    for entry in ledger.entries() {
        assert_eq!(entry.recorded().map(Origin::word), Some("npx"));
        assert_eq!(entry.drift(), Drift::Unmodified);
    }
    assert!(ledger.clashes().is_empty(), "no agent reads both");
}

struct Registry {
    process: Child,
    address: String,
}

impl Registry {
    fn start(machine: &TestMachine) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/registry.mjs");
        let modules = machine.tools.parent().unwrap();
        let mut command = Command::new("node");
        command.arg(script).arg(modules).arg(machine.path("source/skills/pdf"));
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut port = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut port).unwrap();
        Self { process, address: format!("http://127.0.0.1:{}", port.trim()) }
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn clawhub_installs() {
    let Some(machine) = TestMachine::new("clawhub") else { return };
    let registry = Registry::start(&machine);
    let workdir = machine.path("project");
    let options = ["--registry", &registry.address, "--workdir", workdir.to_str().unwrap()];
    machine.run("clawhub", &[&options[..], &["install", "pdf"]].concat());
    let ledger = machine.open();
    let pdf = only(&ledger);
    assert_eq!(pdf.path(), machine.path("project/skills/pdf"));
    assert!(sees(pdf, "openclaw") && !sees(pdf, "claude-code"));
    assert_eq!(pdf.recorded().map(Origin::word), Some("clawhub"));
    let details = pdf.details().unwrap();
    assert_eq!(details.version.as_deref(), Some("1.2.0"));
    assert_eq!(pdf.drift(), Drift::Unmodified);
    let adoption = pdf.adoption().unwrap();
    let source = Source::Registry {
        url: Some(registry.address.clone()),
        owner: None,
        slug: "pdf".into(),
        version: Some("1.2.0".into()),
    };
    assert_eq!(adoption.source, source);
    let published = Tree::read(&machine.path("source/skills/pdf")).unwrap();
    assert_eq!(adoption.integrity, published.integrity());
    fs::write(pdf.path().join("README.md"), "mine").unwrap();
    assert_eq!(pdf.drift(), Drift::Modified);
}
