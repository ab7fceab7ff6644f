//! Signatures when a skill runs: who vouches for it decides who is asked, and never what holds it.

use std::fs;

use savoir_engine::{
    Home,
    approval::{ExtraGrants, Trust},
    loaded_skill::LoadedSkill,
    run::{Call, CallInput, plan},
    run_environment::RunEnvironment,
};
use savoir_package::trust::TrustStore;
use savoir_skill::{Folder, Source, permission::Tier, read};
use serde_json::{Value, json};

use super::{Stage, attempts};

const PUBLIC: &str = ".config/savoir/keys/ada.pub";

impl Stage {
    /// With a key of Ada, which nobody trusts yet.
    fn with_key() -> Self {
        let stage = Self::new();
        stage.done(&["keys", "new", "ada"]);
        stage
    }

    fn done(&self, arguments: &[&str]) -> String {
        let run = self.savoir(arguments);
        assert_eq!(run.code, 0, "{run}");
        run.stdout
    }

    fn trust(&self, role: &str) {
        let key = self.path(PUBLIC);
        let key = key.to_str().expect("UTF-8");
        self.done(&["keys", "trust", key, "--publisher", "Ada", "--role", role]);
    }

    fn key_id(&self) -> String {
        let keys = self.savoir(&["keys", "list", "--json"]).json();
        keys["own"][0]["key_id"].as_str().expect("an identifier").to_owned()
    }

    fn sign(&self, skill: &str) {
        self.done(&["sign", &self.skill(skill)]);
    }

    /// A skill of GAIA that executes code, claims a tier, and is signed.
    fn claiming(&self, tier: &str, permissions: &[&str]) {
        self.probe("probe", permissions, "");
        let file = "skills/probe/SKILL.md";
        let text = self.sandbox.read(file);
        self.write(
            file,
            text.replace("security_tier: experimental", &format!("security_tier: {tier}")),
        );
        self.sign("probe");
    }

    /// A skill that is what its key says, signed by a trusted one.
    fn vouched(role: &str, permissions: &[&str]) -> Self {
        let stage = Self::with_key();
        stage.trust(role);
        stage.claiming("verified", permissions);
        stage
    }

    fn try_it(&self) -> super::Run {
        self.run("probe", &["--param", "code=result = 'ran'"])
    }
}

#[test]
fn a_verified_skill_runs_without_a_question_and_within_its_permissions() {
    let stage = Stage::vouched("amd", &["filesystem:write:./out/**", "shell:execute:git"]);
    stage.write("work/secret.txt", "x");
    stage.write("home/secret.txt", "x");
    let home = stage.path("home/secret.txt");
    let tried = stage.execute(&attempts(&[
        "os.mkdir('out') or open('out/made.txt', 'w').write('x')",
        "subprocess.run(['git', '--version'], capture_output=True).returncode",
        "open('secret.txt').read()",
        &format!("open('{}').read()", home.display()),
        "subprocess.run(['ls']).returncode",
        "socket.create_connection(('127.0.0.1', 80), 1)",
        // Only what lies in `out` is kept, so nothing else is written.
        "open('made.txt', 'w').write('x')",
    ]));
    assert_eq!((&tried[0], &tried[1]), (&json!(1), &json!(0)), "{tried}");
    for denied in &tried.as_array().expect("a list")[2..] {
        let text = denied.as_str().unwrap_or_else(|| panic!("{tried}"));
        assert!(text.ends_with("Error"), "{tried}");
    }
    assert!(!stage.path("work/made.txt").exists());
    let record = stage.record();
    assert_eq!((&record["tier"], &record["trust"]), (&json!("verified"), &json!("user")));
    assert_eq!(record["decision"]["verdict"], "run");
    let reason = record["decision"]["reason"].as_str().expect("a reason");
    let expected = format!("its tier is verified, signed by Ada (amd), key {}", stage.key_id());
    assert_eq!(reason, expected);
    assert_eq!(record["decision"]["approved_by"], Value::Null);
    assert!(record["policy"]["limits"].is_object(), "{record}");
}

/// Each row of the table that a sandbox can hold, for a skill that a publisher signed.
#[test]
fn a_community_skill_is_asked_about_what_changes_things() {
    for (permission, asks) in [
        ("filesystem:read:./data/**", false),
        ("filesystem:write:./out/**", true),
        ("network:read:example.com", false),
        ("network:write:example.com", false),
        ("shell:execute:git", true),
        ("database:read:./data/a.sqlite", false),
        ("database:write:./data/a.sqlite", true),
        ("env:read:GIVEN_KEY", true),
        ("filesystem:none", false),
    ] {
        let stage = Stage::vouched("publisher", &[permission]);
        stage.write("work/data/a.sqlite", "");
        let run = stage.try_it();
        if asks {
            run.fails(3, "not-approved");
            let why = format!("its tier is community, which asks about {permission}");
            run.says(&[&why, "there is no terminal to ask on", "to approve it: savoir approve "]);
            stage.approve("probe");
            stage.try_it().succeeds();
            let reason = stage.record()["decision"]["reason"].to_string();
            assert!(reason.starts_with("\"approved on "), "{reason}");
        } else {
            run.succeeds();
            let record = stage.record();
            assert_eq!(
                (&record["tier"], &record["decision"]["verdict"]),
                (&json!("community"), &json!("run"))
            );
        }
    }
}

#[test]
fn every_file_is_for_skills_that_someone_vouches_for() {
    let stage = Stage::vouched("publisher", &["filesystem:read"]);
    let file = stage.write("home/notes.txt", "mine");
    let code = format!("result = open('{}').read()", file.display());
    assert_eq!(stage.execute(&code), "mine");
    stage.done(&["keys", "distrust", &stage.key_id()]);
    stage.try_it().fails(3, "permission-not-enforceable");
}

#[test]
fn what_a_skill_gets_without_a_permission_is_asked_about_too() {
    let mut stage = Stage::with_key();
    stage.trust("publisher");
    stage.set("GIVEN_KEY", "x");
    stage.probe("probe", &[], "requirements:\n  env_vars: [GIVEN_KEY]\n");
    let text = stage.sandbox.read("skills/probe/SKILL.md");
    stage.write("skills/probe/SKILL.md", text.replace("tier: experimental", "tier: community"));
    stage.sign("probe");
    let run = stage.try_it();
    run.fails(3, "not-approved");
    run.says(&["its tier is community, which asks about env:read:GIVEN_KEY"]);

    // A dialect that has no word for tiers, and lets tools run programs without one for that.
    stage.commands("demo", "read_only: true\n", &[("hello", "", "echo hello")]);
    stage.sign("demo");
    let run = stage.run("demo", &[]);
    run.fails(3, "not-approved");
    run.says(&["its tier is community, which asks about shell:execute:echo"]);
    stage.trust("amd");
    assert_eq!(stage.run("demo", &[]).succeeds()["output"], "hello");
    assert_eq!(stage.record()["tier"], "verified");
}

#[test]
fn a_script_of_a_signed_skill_runs() {
    let stage = Stage::with_key();
    stage.write(
        "skills/plain/SKILL.md",
        "---\nname: plain\ndescription: Shows how. Use when learning.\nmetadata: {version: \"1.0.0\"}\n---\n\nRun scripts/hello.sh.\n",
    );
    stage.script("skills/plain/scripts/hello.sh", "#!/bin/sh\necho hello\n");
    stage.sign("plain");
    stage.run("plain/scripts/hello.sh", &[]).fails(3, "not-approved");
    stage.trust("publisher");
    assert_eq!(stage.run("plain/scripts/hello.sh", &[]).succeeds()["output"], "hello");
    // What nobody signed cannot be started in its name.
    stage.script("skills/plain/.git/hooks/evil.sh", "#!/bin/sh\necho evil\n");
    stage.run("plain/.git/hooks/evil.sh", &[]).fails(1, "program-outside-skill");
    stage.script("skills/plain/node_modules/evil.sh", "#!/bin/sh\necho evil\n");
    let run = stage.run("plain/node_modules/evil.sh", &[]);
    run.fails(3, "not-approved");
    run.says(&["its signature does not cover node_modules/evil.sh, which a run would see"]);
}

#[test]
fn a_claim_is_worth_no_more_than_its_signature() {
    let stage = Stage::with_key();
    stage.claiming("verified", &[]);
    let run = stage.try_it();
    run.fails(3, "not-approved");
    run.says(&["it has not been approved yet"]);
    assert_eq!(stage.record()["tier"], "experimental");
    let skill = stage.skill("probe");
    let shown = stage.savoir(&["approve", &skill]);
    let key = stage.key_id();
    assert!(shown.stdout.contains("tier experimental"), "{shown}");
    assert!(shown.stdout.contains(&format!("by the key {key}, which is not trusted")), "{shown}");
    // And a signature is worth no more than the claim.
    stage.trust("amd");
    stage.claiming("experimental", &[]);
    stage.try_it().fails(3, "not-approved");
    let shown = stage.savoir(&["approve", &skill]);
    assert!(shown.stdout.contains(&format!("by Ada (amd), key {key}\n")), "{shown}");
    stage.claiming("community", &[]);
    stage.try_it().succeeds();
    assert_eq!(stage.record()["tier"], "community");
}

#[test]
fn a_skill_that_is_not_what_was_signed_is_refused() {
    let stage = Stage::vouched("amd", &[]);
    stage.try_it().succeeds();
    let signed = stage.sandbox.read("skills/probe/tools.py");
    stage.write("skills/probe/tools.py", format!("{signed}\n# changed\n"));
    let run = stage.try_it();
    run.fails(3, "file_changed");
    run.says(&["`tools.py` is not what was signed", "savoir verify /", " shows what differs"]);
    let record = stage.record();
    assert_eq!(
        (&record["skill"], &record["error"]["code"]),
        (&json!("probe"), &json!("file_changed"))
    );
    assert_eq!(
        (&record["decision"]["verdict"], &record["success"]),
        (&json!("refused"), &json!(false))
    );
    // Nobody can agree to it, be it once or always.
    let skill = stage.skill("probe");
    let approved = stage.savoir(&["approve", &skill, "--yes"]);
    assert_eq!(approved.code, 3, "{approved}");
    assert!(approved.stderr.contains("is not what was signed"), "{approved}");
    stage.run("probe", &["--untrusted", "--param", "code=1"]).fails(3, "file_changed");
    stage.write("skills/probe/tools.py", &signed);
    stage.write("skills/probe/more.py", "");
    stage.try_it().fails(3, "file_additional");
    // Without trust in its key, a signature that does not match says nothing: the skill is unsigned.
    stage.done(&["keys", "distrust", &stage.key_id()]);
    stage.try_it().fails(3, "not-approved");
    fs::remove_file(stage.path("skills/probe/more.py")).expect("a file");
    // An answer that was kept does not outlive the signature's end.
    stage.approve("probe");
    stage.try_it().succeeds();
    stage.done(&["keys", "revoke", &stage.key_id(), "--reason", "the laptop was stolen"]);
    let run = stage.try_it();
    run.fails(3, "key_revoked");
    run.says(&["the laptop was stolen"]);
    assert_eq!(stage.savoir(&["approve", &skill, "--yes"]).code, 3);
}

#[test]
fn a_signature_does_not_pass_to_another_version_or_skill() {
    let stage = Stage::vouched("amd", &[]);
    let text = stage.sandbox.read("skills/probe/SKILL.md");
    let record = stage.sandbox.read("skills/probe/signature.json");
    stage.write("skills/probe/SKILL.md", text.replace("version: 1.0.0", "version: 1.1.0"));
    stage.try_it().fails(3, "signature_skill_version");
    // One that was signed again, with the record of the version before.
    stage.sign("probe");
    stage.try_it().succeeds();
    stage.write("skills/probe/signature.json", record);
    stage.try_it().fails(3, "signature_skill_version");
    stage.sign("probe");
    stage.probe("other", &[], "");
    let record = stage.sandbox.read("skills/probe/signature.json");
    stage.write("skills/other/signature.json", record);
    stage.run("other", &["--param", "code=1"]).fails(3, "signature_name");
}

#[test]
fn extra_permissions_ask_even_for_signed_skills() {
    let stage = Stage::vouched("amd", &[]);
    for (option, why) in [
        ("--untrusted", "it is untrusted, which asks every time"),
        ("--record", "a recording has almost all permissions"),
        ("--allow-read=.", "it has not been approved yet"),
    ] {
        let run = stage.run("probe", &["--param", "code=1", option]);
        run.fails(3, "not-approved");
        run.says(&[why]);
    }
}

#[test]
fn what_python_would_load_and_nobody_signed() {
    let stage = Stage::vouched("amd", &[]);
    stage.write("skills/probe/__pycache__/helper.cpython-312.pyc", "x");
    let run = stage.try_it();
    run.fails(3, "not-approved");
    run.says(&["its signature does not cover __pycache__/helper.cpython-312.pyc", "remove it"]);
    let verified = stage.done(&["verify", &stage.skill("probe")]);
    assert!(verified.contains("not covered    __pycache__/helper.cpython-312.pyc\n"), "{verified}");
    assert!(verified.contains("attested       verified\n"), "{verified}");
    assert!(verified.contains("tier           experimental\n"), "{verified}");
    stage.approve("probe");
    stage.try_it().succeeds();
    assert_eq!(stage.record()["tier"], "experimental");
    fs::remove_dir_all(stage.path("skills/probe/__pycache__")).expect("a folder");
    stage.try_it().succeeds();
    assert_eq!(stage.record()["tier"], "verified");
}

#[test]
fn a_skill_cannot_add_trusted_keys() {
    let stage = Stage::with_key();
    stage.trust("amd");
    let root = stage.path("").canonicalize().expect("a folder");
    stage.claiming("verified", &[&format!("filesystem:write:{}/**", root.display())]);
    let list = root.join(".config/savoir/trusted-keys.json");
    let before = fs::read(&list).expect("a list");
    let tried = stage.execute(&attempts(&[
        &format!("open('{}/free.txt', 'w').write('x')", root.display()),
        &format!("open('{}', 'w').write('x')", list.display()),
        &format!("os.remove('{}')", list.display()),
        &format!("os.rename('{0}/.config/savoir', '{0}/away')", root.display()),
        &format!("open('{}/.config/savoir/new', 'w').write('x')", root.display()),
    ]));
    assert_eq!(tried[0], 1, "{tried}");
    for denied in &tried.as_array().expect("a list")[1..] {
        assert!(denied.as_str().is_some_and(|text| text.ends_with("Error")), "{tried}");
    }
    assert_eq!(fs::read(&list).expect("a list"), before);
    assert!(!root.join(".config/savoir/new").exists());
}

#[test]
fn a_list_that_cannot_be_read_trusts_nobody_and_stops() {
    let stage = Stage::with_probe(&[]);
    stage.try_it().succeeds();
    stage.write(".config/savoir/trusted-keys.json", "{");
    stage.try_it().fails(2, "trust_store");
}

/// What takes its time between the answer and the start is tried with the engine itself.
#[test]
fn what_changes_before_the_start_does_not_run() {
    let stage = Stage::vouched("amd", &["filesystem:write:./out/**"]);
    let folder = Folder::open(&stage.path("skills/probe")).expect("a folder");
    let file = stage.path("skills/probe/SKILL.md");
    let reading =
        read(Source::from_bytes(fs::read(&file).expect("a file")).expect("text"), Some(&folder));
    let list = stage.path(".config/savoir/trusted-keys.json");
    let store = TrustStore::read(&list).expect("a list");
    let loaded_skill = LoadedSkill::new(&reading, &file, Some(folder.root()), Trust::User, &store)
        .expect("a subject");
    assert_eq!(loaded_skill.tier, Tier::Verified);
    let run_env = RunEnvironment::at(&stage.path("work"), &stage.path("home"));
    let code = json!({"code": "import os; os.mkdir('out'); open('out/ran', 'w').close()"});
    let extra = ExtraGrants::default();
    let call = Call {
        loaded_skill: &loaded_skill,
        tool: "probe",
        input: CallInput::Json(code.as_object().cloned().expect("an object")),
        run_env: &run_env,
        mode: "Global",
        extra: &extra,
    };
    let home = Home::at(&stage.path(".savoir"));
    let tools = stage.sandbox.read("skills/probe/tools.py");
    let first = plan(&call).expect("a plan");
    stage.write("skills/probe/tools.py", format!("{tools}\n# changed\n"));
    let error = first.run(&loaded_skill, &home, &mut |_| {}).expect_err("a refusal");
    assert_eq!(error.code, "skill-changed", "{error}");
    assert!(!stage.path("work/out/ran").exists());
    stage.write("skills/probe/tools.py", tools);
    let second = plan(&call).expect("a plan");
    second.run(&loaded_skill, &home, &mut |_| {}).expect("a run");
    assert!(stage.path("work/out/ran").exists());
}
