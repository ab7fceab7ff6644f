//! Tests that every command rejects the malicious inputs of the shared data with the same error.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::LazyLock,
    time::{Duration, Instant},
};

use savoir_package::{
    File, Tree, archive,
    submission::{PublishOptions, Submission},
};
use serde_json::Value;

use crate::{
    services::skipped,
    support::{Sandbox, Transcript},
};

/// The expected result, which is the same for every command.
enum Verdict {
    /// Every command rejects it with this code.
    Refused(&'static str),
    /// Every command accepts it.
    Taken,
    /// Every command accepts it; `check` and `publish` warn.
    Flagged(&'static str),
    /// Every command accepts it except `publish`, which requires more.
    TakenButNotPublished(&'static str),
    /// `check` and `publish` reject it with this code; it can be installed, because agents load it.
    Installed(&'static str),
}

use Verdict::{Flagged, Installed, Refused, Taken, TakenButNotPublished};

const EXPECTED: [(&str, Verdict); 37] = [
    ("01_slip_dotdot.zip", Refused("path_traversal")),
    ("02_slip_absolute.zip", Refused("absolute_path")),
    ("03_slip_backslash.zip", Refused("path_characters")),
    ("04_symlink_abs.zip", Refused("link")),
    ("05_symlink_rel.zip", Refused("link")),
    ("06_bomb_ratio.zip", Refused("too_large")),
    ("07_bomb_overlap.zip", Refused("zip_malformed")),
    // A nested archive is an ordinary file and is not unpacked.
    ("08_nested_zip.zip", Flagged("nested-archive")),
    ("09_many_entries.zip", Refused("too_many_files")),
    ("10_dup_names.zip", Refused("duplicate_entry")),
    ("11_case_collision.zip", Refused("path_collision")),
    ("12_unicode_collision.zip", Refused("path_characters")),
    ("13_local_central_mismatch.zip", Refused("zip_confusion")),
    ("14_two_eocd.zip", Refused("zip_confusion")),
    ("15_prefix_junk.zip", Refused("zip_confusion")),
    ("16_comment_eocd.zip", Refused("zip_confusion")),
    ("17_encrypted.zip", Refused("encrypted")),
    ("18_setuid_device.zip", Refused("file_type")),
    ("19_win_reserved.zip", Refused("path_characters")),
    ("20_ctrl_bidi_names.zip", Refused("path_characters")),
    ("21_long_path.zip", Refused("path_length")),
    ("22_no_skillmd.zip", Refused("layout")),
    ("23_file_as_dir.zip", Refused("path_conflict")),
    ("24_git_hooks.zip", Refused("forbidden_path")),
    ("25_truncated.zip", Refused("zip_malformed")),
    ("26_yaml_billion_laughs.md", Refused("yaml-too-large")),
    ("27_yaml_deep.md", Refused("yaml-too-deep")),
    ("28_yaml_dup_keys.md", Refused("duplicate-key")),
    ("29_yaml_tag.md", Refused("wrong-type")),
    // The text after the first closing fence is the body, so the file has no version.
    ("30_yaml_multi_doc.md", TakenButNotPublished("no_version")),
    ("31_yaml_norway.md", Refused("invalid-version")),
    ("32_merge_key.md", Installed("missing-field")),
    ("33_huge_scalar.md", Refused("file-too-large")),
    ("34_unterminated.md", Refused("not-utf8")),
    ("35_md_nest.md", Installed("missing-field")),
    ("36_hidden_text.md", Refused("invisible-unicode")),
    ("37_ansi_approval.md", Refused("control-character")),
];

/// The time after which a command counts as hanging.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(20);
/// Maximum memory of a command, whatever the input is.
const MAX_MEMORY_BYTES: u64 = 128 << 20;
/// Runs a program, and writes its peak memory in KiB into a file. A separate process is needed,
/// because the statistics of this one include all earlier children.
const MEASURE_SCRIPT: &str = "\
import resource, subprocess, sys
code = subprocess.call(sys.argv[2:])
with open(sys.argv[1], 'w') as report:
    report.write(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss))
sys.exit(code if code >= 0 else 128 - code)
";

/// Creates the inputs with their generator; returns `None` if the generator is not available.
fn inputs(place: &Path) -> Option<PathBuf> {
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/badinputs/gen.py");
    let Ok(generator) = shared.canonicalize() else {
        skipped("the hostile inputs are not beside the repository");
        return None;
    };
    let made = Command::new("python3").arg(generator).current_dir(place).output();
    let Ok(made) = made else {
        skipped("python3 is not here, so this test checks nothing");
        return None;
    };
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    Some(place.join("in"))
}

/// One input in a separate folder.
struct Case {
    sandbox: Sandbox,
    path: &'static str,
    file: String,
    /// The bytes of the archive, if the input is one.
    bytes: Vec<u8>,
    is_zip: bool,
}

impl Case {
    fn new(file: &str, bytes: Vec<u8>) -> Self {
        let sandbox = Sandbox::new();
        fs::create_dir_all(sandbox.path("project/.git")).expect("a folder");
        fs::create_dir_all(sandbox.path("home")).expect("a folder");
        let is_zip = Path::new(file).extension().is_some_and(|extension| extension == "zip");
        let path = match file {
            _ if is_zip => "../in/skill.zip",
            // A skill must be in a folder with its name.
            "31_yaml_norway.md" => "../in/no",
            _ => "../in/demo",
        };
        let target = path.trim_start_matches("../");
        let target = if is_zip { target.to_owned() } else { format!("{target}/SKILL.md") };
        sandbox.write(&target, &bytes);
        Self { sandbox, path, file: file.to_owned(), bytes, is_zip }
    }

    fn run(&self, args: &[&str]) -> Transcript {
        let command = self.sandbox.command_as("home", "project", args);
        let report = self.sandbox.path("memory");
        let before = Instant::now();
        let run = Transcript::of(measured(&command, &report));
        assert!(before.elapsed() < COMMAND_TIMEOUT, "{} hangs: {args:?}", self.file);
        let output = fs::read_to_string(&report).unwrap_or_else(|error| panic!("{error}: {run}"));
        let peak = output.parse::<u64>().expect("KiB") * 1024;
        assert!(peak < MAX_MEMORY_BYTES, "{}: {args:?} takes {peak} bytes of memory", self.file);
        run
    }

    /// The errors and the warnings of `check`.
    fn checked(&self) -> (Transcript, Vec<String>, Vec<String>) {
        let run = self.run(&["check", self.path, "--json"]);
        let report = run.json();
        let files = report["files"].as_array().expect("files").iter();
        let found = files.flat_map(|file| file["diagnostics"].as_array().expect("findings"));
        let of = |severity: &str| {
            let found = found.clone().filter(|one| one["severity"] == severity);
            found.map(|one| one["code"].as_str().expect("a code").to_owned()).collect()
        };
        let (errors, warnings) = (of("error"), of("warning"));
        (run, errors, warnings)
    }

    fn installed(&self) -> (Transcript, Option<String>) {
        self.refusal(&["install", self.path, "--allow-experimental", "--yes", "--json"])
    }

    fn published(&self) -> (Transcript, Option<String>) {
        self.refusal(&["publish", self.path, "--dry-run", "--json"])
    }

    /// The error code of a rejection, which must also have a message.
    fn refusal(&self, args: &[&str]) -> (Transcript, Option<String>) {
        let run = self.run(args);
        let error = run.json()["error"].clone();
        let Some(code) = error["code"].as_str() else {
            assert_eq!(run.code, 0, "{}: {run}", self.file);
            return (run, None);
        };
        assert!(run.code != 0 && run.stderr.contains("error: "), "{}: {run}", self.file);
        assert!(error["message"].as_str().is_some_and(|text| text.contains(' ')), "{run}");
        let code = code.to_owned();
        (run, Some(code))
    }

    /// The result of a registry.
    fn submitted(&self) -> Option<&'static str> {
        if self.is_zip {
            return Submission::read(&self.bytes, &PublishOptions::default())
                .err()
                .map(|no| no.code());
        }
        let folder = self.path.rsplit('/').next().expect("a folder");
        let mut tree = Tree::default();
        let file = File { bytes: self.bytes.clone(), executable: false };
        if let Err(refused) = tree.add("SKILL.md".into(), file) {
            return Some(refused.code());
        }
        let bytes = archive::pack(folder, &tree).expect("an archive");
        Submission::read(&bytes, &PublishOptions::default()).err().map(|no| no.code())
    }

    /// All files in the project and in the data folders of `savoir`, except the empty lock file.
    fn written(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for folder in ["project", "home"] {
            walk(&self.sandbox.path(folder), &mut found);
        }
        let is_lock = |path: &PathBuf| {
            path.ends_with("shelf.lock") && fs::read(path).is_ok_and(|bytes| bytes.is_empty())
        };
        // Reports of the scan are kept, by the content of the files.
        let reports = self.sandbox.path("home/.cache/savoir/scans");
        found.retain(|path| !is_lock(path) && !path.starts_with(&reports));
        found
    }
}

/// The real Python interpreter, because a wrapper such as pyenv's would distort the measurement.
fn python() -> &'static str {
    static FOUND: LazyLock<String> = LazyLock::new(|| {
        let asked =
            Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output();
        let found = asked.ok().and_then(|asked| String::from_utf8(asked.stdout).ok());
        found
            .map(|found| found.trim().to_owned())
            .filter(|found| !found.is_empty())
            .unwrap_or_else(|| "python3".to_owned())
    });
    &FOUND
}

/// Wraps a command, so that its peak memory is written to `report`.
fn measured(command: &Command, report: &Path) -> Command {
    let mut outer = Command::new(python());
    outer.args(["-c", MEASURE_SCRIPT]).arg(report).args(["env", "-i"]);
    for (name, value) in command.get_envs() {
        let setting = [name, "=".as_ref(), value.unwrap_or_default()];
        outer.arg(setting.into_iter().collect::<OsString>());
    }
    outer.arg(command.get_program()).args(command.get_args());
    outer.current_dir(command.get_current_dir().expect("a folder"));
    outer
}

fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            walk(&path, found);
        } else {
            found.push(path);
        }
    }
}

#[test]
fn all_commands_reject_hostile_inputs_with_the_same_code() {
    let place = tempfile::tempdir().expect("a folder");
    let Some(inputs) = inputs(place.path()) else { return };
    for (file, verdict) in &EXPECTED {
        let bytes = fs::read(inputs.join(file)).expect(file);
        let case = Case::new(file, bytes);
        let (run, errors, warnings) = case.checked();
        let (published, publish) = case.published();
        let submitted = case.submitted();
        assert_eq!(publish.as_deref(), submitted, "{file}: {published}");
        match verdict {
            Refused(code) => {
                assert!(errors.iter().any(|error| error == code), "{file}: {run}");
                assert_eq!(run.code, 1, "{file}: {run}");
                assert_eq!(submitted, Some(*code), "{file}");
                let (install, installed) = case.installed();
                // Agents would load it, but the scan blocks it.
                let refused = [Some(*code), Some("blocked")];
                assert!(refused.contains(&installed.as_deref()), "{file}: {install}");
                assert_eq!(case.written(), Vec::<PathBuf>::new(), "{file}: nothing is written");
            }
            Installed(code) => {
                assert!(errors.iter().any(|error| error == code), "{file}: {run}");
                assert_eq!((run.code, submitted), (1, Some(*code)), "{file}: {run}");
                let (install, installed) = case.installed();
                assert_eq!(installed, None, "{file}: {install}");
            }
            Taken | Flagged(_) | TakenButNotPublished(_) => {
                assert_eq!((run.code, errors.len()), (0, 0), "{file}: {run}");
                let (install, installed) = case.installed();
                assert_eq!(installed, None, "{file}: {install}");
            }
        }
        match verdict {
            Taken => assert_eq!(submitted, None, "{file}"),
            Flagged(code) => {
                assert_eq!(submitted, None, "{file}");
                assert!(warnings.iter().any(|warning| warning == code), "{file}: {run}");
                let output = published.json()["warnings"].clone();
                let output = output.as_array().expect("warnings").iter();
                assert!(output.map(|one| &one["rule"]).any(|rule| rule == code), "{file}");
            }
            TakenButNotPublished(code) => assert_eq!(submitted, Some(*code), "{file}"),
            Refused(_) | Installed(_) => {}
        }
    }
}

/// Some inputs also lack required fields. Here the fields are added, so that only the malicious
/// part remains.
#[test]
fn hostile_inputs_cover_enough_cases() {
    let place = tempfile::tempdir().expect("a folder");
    let Some(inputs) = inputs(place.path()) else { return };
    let fields = "description: Shows it. Use when learning.\nversion: 1.0.0\n";
    let author = "author: Ada\nlicense: MIT\nsecurity_tier: experimental\ntools: [{name: t, description: d}]\n";
    for (file, more, verdict) in [
        ("30_yaml_multi_doc.md", "version: 1.0.0\n", Taken),
        ("35_md_nest.md", fields, Taken),
        // The scan reports it in commands that do not check the rules.
        ("36_hidden_text.md", fields, Refused("blocked")),
    ] {
        let text = String::from_utf8(fs::read(inputs.join(file)).expect(file)).expect("a text");
        let case = Case::new(file, text.replacen("---\n", &format!("---\n{more}"), 1).into());
        let (installed, code) = case.installed();
        if let Refused(expected) = verdict {
            assert_eq!(code.as_deref(), Some(expected), "{file}: {installed}");
            assert_eq!(case.submitted(), Some("invisible-unicode"), "{file}");
            assert!(case.checked().1.iter().any(|error| error == "invisible-unicode"));
        } else {
            assert_eq!((code, case.submitted()), (None, None), "{file}: {installed}");
            assert_eq!(case.checked().0.code, 0, "{file}");
        }
    }
    // Merged permissions are shown like others, but cannot be published, because other parsers do
    // not see them.
    let text =
        String::from_utf8(fs::read(inputs.join("32_merge_key.md")).expect("it")).expect("a text");
    let case =
        Case::new("32.md", text.replacen("---\n", &format!("---\n{fields}{author}"), 1).into());
    let (_, _, warnings) = case.checked();
    assert!(warnings.iter().any(|warning| warning == "yaml-merge-key"), "{warnings:?}");
    assert_eq!(case.published().1.as_deref(), case.submitted());
    assert!(case.submitted().is_some(), "it is not published");
}

/// The JSON of a rejection.
#[test]
fn rejections_as_json_are_complete() {
    let case = Case::new(
        "x.md",
        b"---\nname: demo\nversion: 1.0.0\ndescription: \"a\\eb\"\n---\nx\n".to_vec(),
    );
    let (run, code) = case.published();
    assert_eq!((run.code, code.as_deref()), (1, Some("control-character")), "{run}");
    let error: Value = run.json()["error"].clone();
    assert_eq!(error["api_code"], "invalid_skill_manifest");
    let finding = &error["findings"][0];
    assert_eq!((&finding["file"], &finding["line"]), (&"SKILL.md".into(), &4.into()), "{finding}");
    assert!(finding["fix"].is_string() && finding["column"].is_number(), "{finding}");
}
