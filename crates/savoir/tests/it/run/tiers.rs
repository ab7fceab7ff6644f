//! Tests signatures at run time: the signer decides which questions are asked, but never changes
//! the sandbox.

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

use super::{RunTestEnv, python_attempts};

const PUBLIC: &str = ".config/savoir/keys/ada.pub";

impl RunTestEnv {
    /// Creates an environment with a key of Ada that is not trusted yet.
    fn with_key() -> Self {
        let test_env = Self::new();
        test_env.run_ok(&["keys", "new", "ada"]);
        test_env
    }

    fn run_ok(&self, arguments: &[&str]) -> String {
        let run = self.savoir(arguments);
        assert_eq!(run.code, 0, "{run}");
        run.stdout
    }

    fn trust(&self, role: &str) {
        let key = self.path(PUBLIC);
        let key = key.to_str().expect("UTF-8");
        self.run_ok(&["keys", "trust", key, "--publisher", "Ada", "--role", role]);
    }

    fn key_id(&self) -> String {
        let keys = self.savoir(&["keys", "list", "--json"]).json();
        keys["own"][0]["key_id"].as_str().expect("an identifier").to_owned()
    }

    fn sign(&self, skill: &str) {
        self.run_ok(&["sign", &self.skill(skill)]);
    }

    /// Writes a signed GAIA skill that executes code and claims a tier.
    fn add_signed_skill(&self, tier: &str, permissions: &[&str]) {
        self.probe("probe", permissions, "");
        let file = "skills/probe/SKILL.md";
        let text = self.sandbox.read(file);
        self.write(
            file,
            text.replace("security_tier: experimental", &format!("security_tier: {tier}")),
        );
        self.sign("probe");
    }

    /// Creates an environment with a skill that is signed with a trusted key of this role.
    fn with_trusted_signature(role: &str, permissions: &[&str]) -> Self {
        let test_env = Self::with_key();
        test_env.trust(role);
        test_env.add_signed_skill("verified", permissions);
        test_env
    }

    fn run_probe(&self) -> super::Run {
        self.run("probe", &["--param", "code=result = 'ran'"])
    }
}

#[test]
fn a_verified_skill_runs_without_a_question_and_within_its_permissions() {
    let test_env = RunTestEnv::with_trusted_signature(
        "amd",
        &["filesystem:write:./out/**", "shell:execute:git"],
    );
    test_env.write("work/secret.txt", "x");
    test_env.write("home/secret.txt", "x");
    let home = test_env.path("home/secret.txt");
    let tried = test_env.execute(&python_attempts(&[
        "os.mkdir('out') or open('out/made.txt', 'w').write('x')",
        "subprocess.run(['git', '--version'], capture_output=True).returncode",
        "open('secret.txt').read()",
        &format!("open('{}').read()", home.display()),
        "subprocess.run(['ls']).returncode",
        "socket.create_connection(('127.0.0.1', 80), 1)",
        // Only files in `out` are stored, so nothing else is written.
        "open('made.txt', 'w').write('x')",
    ]));
    assert_eq!((&tried[0], &tried[1]), (&json!(1), &json!(0)), "{tried}");
    for denied in &tried.as_array().expect("a list")[2..] {
        let text = denied.as_str().unwrap_or_else(|| panic!("{tried}"));
        assert!(text.ends_with("Error"), "{tried}");
    }
    assert!(!test_env.path("work/made.txt").exists());
    let record = test_env.record();
    assert_eq!((&record["tier"], &record["trust"]), (&json!("verified"), &json!("user")));
    assert_eq!(record["decision"]["verdict"], "run");
    let reason = record["decision"]["reason"].as_str().expect("a reason");
    let expected = format!("its tier is verified, signed by Ada (amd), key {}", test_env.key_id());
    assert_eq!(reason, expected);
    assert_eq!(record["decision"]["approved_by"], Value::Null);
    assert!(record["policy"]["limits"].is_object(), "{record}");
}

/// Tests each row of the table that can be enforced, for a skill signed by a publisher.
#[test]
fn community_skill_needs_approval_for_changes() {
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
        let test_env = RunTestEnv::with_trusted_signature("publisher", &[permission]);
        test_env.write("work/data/a.sqlite", "");
        let run = test_env.run_probe();
        if asks {
            run.fails(3, "not-approved");
            let why = format!("its tier is community, which asks about {permission}");
            run.assert_error_contains(&[
                &why,
                "there is no terminal to ask on",
                "to approve it: savoir approve ",
            ]);
            test_env.approve("probe");
            test_env.run_probe().succeeds();
            let reason = test_env.record()["decision"]["reason"].to_string();
            assert!(reason.starts_with("\"approved on "), "{reason}");
        } else {
            run.succeeds();
            let record = test_env.record();
            assert_eq!(
                (&record["tier"], &record["decision"]["verdict"]),
                (&json!("community"), &json!("run"))
            );
        }
    }
}

#[test]
fn access_to_every_file_needs_a_signed_skill() {
    let test_env = RunTestEnv::with_trusted_signature("publisher", &["filesystem:read"]);
    let file = test_env.write("home/notes.txt", "mine");
    let code = format!("result = open('{}').read()", file.display());
    assert_eq!(test_env.execute(&code), "mine");
    test_env.run_ok(&["keys", "distrust", &test_env.key_id()]);
    test_env.run_probe().fails(3, "permission-not-enforceable");
}

/// `filesystem:read` and `filesystem:write` without a scope are the home and the current folder,
/// as the question says.
#[test]
fn every_file_of_a_signed_skill_is_in_the_home_or_the_current_folder() {
    for (permission, writes) in [("filesystem:read", false), ("filesystem:write", true)] {
        let test_env = RunTestEnv::with_trusted_signature("amd", &[permission]);
        let file = |path: &str| test_env.write(path, "mine").display().to_string();
        let (home, elsewhere) = (file("home/notes.txt"), file("elsewhere/notes.txt"));
        file("work/notes.txt");
        let mut tried = vec![
            format!("open('{home}').read()"),
            "open('notes.txt').read()".to_owned(),
            format!("open('{elsewhere}').read()"),
        ];
        let folders = [test_env.path("home"), test_env.path("work"), test_env.path("elsewhere")];
        tried.extend(
            folders.iter().map(|it| format!("open('{}/new', 'w').write('x')", it.display())),
        );
        let tried: Vec<&str> = tried.iter().map(String::as_str).collect();
        let found = test_env.execute(&python_attempts(&tried));
        assert_eq!((&found[0], &found[1]), (&json!("mine"), &json!("mine")), "{found}");
        assert_eq!(found[2], "FileNotFoundError", "{found}");
        for (place, is_granted) in ["home", "work", "elsewhere"].iter().zip([true, true, false]) {
            let exists = test_env.path(&format!("{place}/new")).exists();
            assert_eq!(exists, writes && is_granted, "{permission} in {place}: {found}");
        }
        let asked = test_env.savoir(&["approve", &test_env.skill("probe"), "--details"]);
        let said = asked.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
        let phrase = "any file in your home and in the folder in which it is run";
        assert!(said.contains(phrase), "{asked}");
    }
}

#[test]
fn default_access_needs_approval() {
    let mut test_env = RunTestEnv::with_key();
    test_env.trust("publisher");
    test_env.set("GIVEN_KEY", "x");
    test_env.probe("probe", &[], "requirements:\n  env_vars: [GIVEN_KEY]\n");
    let text = test_env.sandbox.read("skills/probe/SKILL.md");
    test_env.write("skills/probe/SKILL.md", text.replace("tier: experimental", "tier: community"));
    test_env.sign("probe");
    let run = test_env.run_probe();
    run.fails(3, "not-approved");
    run.assert_error_contains(&["its tier is community, which asks about env:read:GIVEN_KEY"]);

    // The dialect has no field for the tier, and allows programs without a permission.
    test_env.commands("demo", "read_only: true\n", &[("hello", "", "echo hello")]);
    test_env.sign("demo");
    let run = test_env.run("demo", &[]);
    run.fails(3, "not-approved");
    run.assert_error_contains(&["its tier is community, which asks about shell:execute:echo"]);
    test_env.trust("amd");
    assert_eq!(test_env.run("demo", &[]).succeeds()["output"], "hello");
    assert_eq!(test_env.record()["tier"], "verified");
}

#[test]
fn a_script_of_a_signed_skill_runs() {
    let test_env = RunTestEnv::with_key();
    test_env.write(
        "skills/plain/SKILL.md",
        "---\nname: plain\ndescription: Shows how. Use when learning.\nmetadata: {version: \"1.0.0\"}\n---\n\nRun scripts/hello.sh.\n",
    );
    test_env.script("skills/plain/scripts/hello.sh", "#!/bin/sh\necho hello\n");
    test_env.sign("plain");
    test_env.run("plain/scripts/hello.sh", &[]).fails(3, "not-approved");
    test_env.trust("publisher");
    assert_eq!(test_env.run("plain/scripts/hello.sh", &[]).succeeds()["output"], "hello");
    // Unsigned files of the skill cannot be started.
    test_env.script("skills/plain/.git/hooks/evil.sh", "#!/bin/sh\necho evil\n");
    test_env.run("plain/.git/hooks/evil.sh", &[]).fails(1, "program-outside-skill");
    test_env.script("skills/plain/node_modules/evil.sh", "#!/bin/sh\necho evil\n");
    let run = test_env.run("plain/node_modules/evil.sh", &[]);
    run.fails(3, "not-approved");
    run.assert_error_contains(&[
        "its signature does not cover node_modules/evil.sh, which a run would see",
    ]);
}

#[test]
fn claimed_tier_is_limited_by_the_signature() {
    let test_env = RunTestEnv::with_key();
    test_env.add_signed_skill("verified", &[]);
    let run = test_env.run_probe();
    run.fails(3, "not-approved");
    run.assert_error_contains(&["it has not been approved yet"]);
    assert_eq!(test_env.record()["tier"], "experimental");
    let skill = test_env.skill("probe");
    let shown = test_env.savoir(&["approve", &skill]);
    let key = test_env.key_id();
    assert!(shown.stdout.contains("tier experimental"), "{shown}");
    assert!(shown.stdout.contains(&format!("by the key {key}, which is not trusted")), "{shown}");
    // The effective tier is never higher than the claimed one.
    test_env.trust("amd");
    test_env.add_signed_skill("experimental", &[]);
    test_env.run_probe().fails(3, "not-approved");
    let shown = test_env.savoir(&["approve", &skill]);
    assert!(shown.stdout.contains(&format!("by Ada (amd), key {key}\n")), "{shown}");
    test_env.add_signed_skill("community", &[]);
    test_env.run_probe().succeeds();
    assert_eq!(test_env.record()["tier"], "community");
}

#[test]
fn modified_signed_skill_is_rejected() {
    let test_env = RunTestEnv::with_trusted_signature("amd", &[]);
    test_env.run_probe().succeeds();
    let signed = test_env.sandbox.read("skills/probe/tools.py");
    test_env.write("skills/probe/tools.py", format!("{signed}\n# changed\n"));
    let run = test_env.run_probe();
    run.fails(3, "file_changed");
    run.assert_error_contains(&[
        "`tools.py` is not what was signed",
        "savoir verify /",
        " shows what differs",
    ]);
    let record = test_env.record();
    assert_eq!(
        (&record["skill"], &record["error"]["code"]),
        (&json!("probe"), &json!("file_changed"))
    );
    assert_eq!(
        (&record["decision"]["verdict"], &record["success"]),
        (&json!("refused"), &json!(false))
    );
    // The user cannot approve it, neither once nor always.
    let skill = test_env.skill("probe");
    let approved = test_env.savoir(&["approve", &skill, "--yes"]);
    assert_eq!(approved.code, 3, "{approved}");
    assert!(approved.stderr.contains("is not what was signed"), "{approved}");
    test_env.run("probe", &["--untrusted", "--param", "code=1"]).fails(3, "file_changed");
    test_env.write("skills/probe/tools.py", &signed);
    test_env.write("skills/probe/more.py", "");
    test_env.run_probe().fails(3, "file_additional");
    // If the key is not trusted, an invalid signature is ignored, and the skill counts as unsigned.
    test_env.run_ok(&["keys", "distrust", &test_env.key_id()]);
    test_env.run_probe().fails(3, "not-approved");
    fs::remove_file(test_env.path("skills/probe/more.py")).expect("a file");
    // Signing the skill again invalidates the stored approval.
    test_env.approve("probe");
    test_env.run_probe().succeeds();
    test_env.run_ok(&["keys", "revoke", &test_env.key_id(), "--reason", "the laptop was stolen"]);
    let run = test_env.run_probe();
    run.fails(3, "key_revoked");
    run.assert_error_contains(&["the laptop was stolen"]);
    assert_eq!(test_env.savoir(&["approve", &skill, "--yes"]).code, 3);
}

#[test]
fn a_signature_does_not_pass_to_another_version_or_skill() {
    let test_env = RunTestEnv::with_trusted_signature("amd", &[]);
    let text = test_env.sandbox.read("skills/probe/SKILL.md");
    let record = test_env.sandbox.read("skills/probe/signature.json");
    test_env.write("skills/probe/SKILL.md", text.replace("version: 1.0.0", "version: 1.1.0"));
    test_env.run_probe().fails(3, "signature_skill_version");
    // The skill was signed again, but has the signature of the previous version.
    test_env.sign("probe");
    test_env.run_probe().succeeds();
    test_env.write("skills/probe/signature.json", record);
    test_env.run_probe().fails(3, "signature_skill_version");
    test_env.sign("probe");
    test_env.probe("other", &[], "");
    let record = test_env.sandbox.read("skills/probe/signature.json");
    test_env.write("skills/other/signature.json", record);
    test_env.run("other", &["--param", "code=1"]).fails(3, "signature_name");
}

#[test]
fn extra_permissions_ask_even_for_signed_skills() {
    let test_env = RunTestEnv::with_trusted_signature("amd", &[]);
    for (option, why) in [
        ("--untrusted", "it is untrusted, which asks every time"),
        ("--record", "a recording has almost all permissions"),
        ("--allow-read=.", "it has not been approved yet"),
    ] {
        let run = test_env.run("probe", &["--param", "code=1", option]);
        run.fails(3, "not-approved");
        run.assert_error_contains(&[why]);
    }
}

#[test]
fn unsigned_python_files_are_rejected() {
    let test_env = RunTestEnv::with_trusted_signature("amd", &[]);
    test_env.write("skills/probe/__pycache__/helper.cpython-312.pyc", "x");
    let run = test_env.run_probe();
    run.fails(3, "not-approved");
    run.assert_error_contains(&[
        "its signature does not cover __pycache__/helper.cpython-312.pyc",
        "remove it",
    ]);
    let verified = test_env.run_ok(&["verify", &test_env.skill("probe")]);
    assert!(verified.contains("not covered    __pycache__/helper.cpython-312.pyc\n"), "{verified}");
    assert!(verified.contains("attested       verified\n"), "{verified}");
    assert!(verified.contains("tier           experimental\n"), "{verified}");
    test_env.approve("probe");
    test_env.run_probe().succeeds();
    assert_eq!(test_env.record()["tier"], "experimental");
    fs::remove_dir_all(test_env.path("skills/probe/__pycache__")).expect("a folder");
    test_env.run_probe().succeeds();
    assert_eq!(test_env.record()["tier"], "verified");
}

#[test]
fn a_skill_cannot_add_trusted_keys() {
    let test_env = RunTestEnv::with_key();
    test_env.trust("amd");
    let root = test_env.path("").canonicalize().expect("a folder");
    test_env.add_signed_skill("verified", &[&format!("filesystem:write:{}/**", root.display())]);
    let list = root.join(".config/savoir/trusted-keys.json");
    let before = fs::read(&list).expect("a list");
    let tried = test_env.execute(&python_attempts(&[
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
fn unreadable_trust_list_is_an_error() {
    let test_env = RunTestEnv::with_probe(&[]);
    test_env.run_probe().succeeds();
    test_env.write(".config/savoir/trusted-keys.json", "{");
    test_env.run_probe().fails(2, "trust_store");
}

/// A change between the approval and the start cannot be timed with the program, so the engine is
/// called directly.
#[test]
fn skill_changed_before_the_start_does_not_run() {
    let test_env = RunTestEnv::with_trusted_signature("amd", &["filesystem:write:./out/**"]);
    let folder = Folder::open(&test_env.path("skills/probe")).expect("a folder");
    let file = test_env.path("skills/probe/SKILL.md");
    let reading =
        read(Source::from_bytes(fs::read(&file).expect("a file")).expect("text"), Some(&folder));
    let list = test_env.path(".config/savoir/trusted-keys.json");
    let store = TrustStore::read(&list).expect("a list");
    let loaded_skill = LoadedSkill::new(&reading, &file, Some(folder.root()), Trust::User, &store)
        .expect("a subject");
    assert_eq!(loaded_skill.tier, Tier::Verified);
    let run_env = RunEnvironment::at(&test_env.path("work"), &test_env.path("home"));
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
    let home = Home::at(&test_env.path(".savoir"));
    let tools = test_env.sandbox.read("skills/probe/tools.py");
    let first = plan(&call).expect("a plan");
    test_env.write("skills/probe/tools.py", format!("{tools}\n# changed\n"));
    let error = first.run(&loaded_skill, &home, &mut |_| {}).expect_err("a refusal");
    assert_eq!(error.code, "skill-changed", "{error}");
    assert!(!test_env.path("work/out/ran").exists());
    test_env.write("skills/probe/tools.py", tools);
    let second = plan(&call).expect("a plan");
    second.run(&loaded_skill, &home, &mut |_| {}).expect("a run");
    assert!(test_env.path("work/out/ran").exists());
}
