use super::*;
use crate::trust::{
    Role, SignatureKind, SignedStatement, Signer, TrustedKey,
    evaluation::{EvaluatedHost, Evaluation, EvaluationVerdict},
};

fn policy(text: &str) -> Policy {
    let mut policy = Policy::default();
    policy.add_text("policy.toml", text, PolicyFile::Alone).unwrap();
    policy
}

fn signed(key_id: &str, role: Option<Role>) -> Attestation {
    let kind = SignatureKind::Ed25519;
    let signer = Signer {
        key_id: key_id.into(),
        publisher: "Ada".into(),
        role,
        kind,
        trusted_for: Vec::new(),
    };
    let tier = role.map_or(Tier::Experimental, Role::tier);
    Attestation { signed: Some(signer.clone()), tier, signatures: vec![signer], ..<_>::default() }
}

/// Returns the refusal of a skill; empty if it is allowed.
fn said(policy: &Policy, name: &str, source: &str, attestation: &Attestation) -> String {
    let source: Option<LockedSource> =
        Some(source).filter(|text| !text.is_empty()).map(|text| text.parse().unwrap());
    let tier = attestation.tier;
    let facts = SkillFacts { name, source: source.as_ref(), tier, attestation, evaluations: &[] };
    match policy.check(&facts) {
        Ok(()) => String::new(),
        Err(refusal) => format!("{refusal}; hint: {}", refusal.hint),
    }
}

const ANTHROPIC: &str =
    "git+https://github.com/anthropics/skills#0123456789abcdef0123456789abcdef01234567:pdf";

#[test]
fn no_policy_allows_everything() {
    let none = policy("");
    assert!(none.is_empty() && policy("[policy]\n").is_empty());
    assert_eq!(said(&none, "pdf", ANTHROPIC, &Attestation::default()), "");
}

#[test]
fn denied_names() {
    let policy = policy("[policy]\ndeny = [\n  \"pdf\",\n  \"crypto-*\",\n]\n");
    let said = |name| said(&policy, name, ANTHROPIC, &Attestation::default());
    assert!(said("pdf").starts_with("policy.toml:3:3 forbids `pdf`: `deny` has \"pdf\""));
    assert!(said("PDF").starts_with("policy.toml:3:3 forbids"), "some folders ignore case");
    assert!(said("crypto-miner").starts_with("policy.toml:4:3 forbids"));
    assert_eq!(said("pdf-tools"), "");
}

#[test]
fn only_allowed_sources() {
    let policy = policy("[policy]\nsources = [\"github:anthropics\", \"local\"]\n");
    let said = |source| said(&policy, "pdf", source, &Attestation::default());
    assert_eq!(said(ANTHROPIC), "");
    assert_eq!(said("path+./pdf"), "");
    assert_eq!(said(""), "");
    let refused = said("git+https://github.com/evil/x#0123456789abcdef0123456789abcdef01234567");
    assert!(refused.starts_with("policy.toml:2:11 forbids `pdf`: it comes from git+https://"));
    assert!(refused.ends_with(
        "hint: install a skill from github:anthropics or local, or add its source there"
    ));
}

#[test]
fn policy_does_not_trust_explicit_commits() {
    let policy = policy("[policy]\nsources = [\"github:anthropics\"]\n");
    let commit = "0123456789abcdef0123456789abcdef01234567";
    let source = format!("git+https://github.com/anthropics/skills?rev={commit}#{commit}:pdf");
    let refused = said(&policy, "pdf", &source, &Attestation::default());
    assert!(refused.contains("name a branch or a tag"), "{refused}");
}

#[test]
fn local_folders_need_a_policy_rule() {
    let policy = policy("[policy]\nsources = [\"github:anthropics\"]\n");
    let refused = said(&policy, "pdf", "", &Attestation::default());
    assert!(refused.contains("it comes from a folder of this machine"), "{refused}");
}

#[test]
fn required_signatures() {
    let strict = policy("[policy]\nrequire = \"signed\"\n");
    let said =
        |policy: &Policy, attestation: &Attestation| said(policy, "pdf", ANTHROPIC, attestation);
    let unsigned = said(&strict, &Attestation::default());
    assert!(unsigned.starts_with(
        "policy.toml:2:11 forbids `pdf`: `require` is \"signed\", and it is unsigned"
    ));
    let unknown = said(&strict, &signed("ab12", None));
    assert!(unknown.contains("you trust none of the keys that signed it"), "{unknown}");
    assert!(unknown.contains("savoir keys trust"), "{unknown}");
    assert_eq!(said(&strict, &signed("ab12", Some(Role::Publisher))), "");
    let stricter = policy("[policy]\nrequire = \"verified\"\n");
    let community = said(&stricter, &signed("ab12", Some(Role::Publisher)));
    assert!(community.contains("`require` is \"verified\", and it is community"), "{community}");
    assert_eq!(said(&stricter, &signed("ab12", Some(Role::Amd))), "");
}

#[test]
fn required_signers() {
    let policy = policy("[policy]\nsigners = [\"AB12\", \"SHA256:aBc\"]\n");
    let said = |attestation: &Attestation| said(&policy, "pdf", ANTHROPIC, attestation);
    assert!(said(&Attestation::default()).contains("it is unsigned, and `signers` wants"));
    assert!(said(&signed("cd34", Some(Role::Amd))).contains("signed by cd34, which `signers`"));
    assert_eq!(said(&signed("ab12", Some(Role::Publisher))), "");
    assert_eq!(said(&signed("SHA256:aBc", None)), "", "the key itself is named");
    assert_ne!(said(&signed("SHA256:ABC", None)), "");
}

#[test]
fn later_policy_files_only_tighten() {
    let mut both = policy("[policy]\nrequire = \"signed\"\nsources = [\"github:anthropics\"]\n");
    let project = "[skills]\nx = \"*\"\n[policy]\nsources = [\"github:evil\"]\ndeny = [\"zip\"]\n";
    both.add_text("savoir.toml", project, PolicyFile::Shared).unwrap();
    let trusted = signed("ab12", Some(Role::Publisher));
    let evil = "git+https://github.com/evil/x#0123456789abcdef0123456789abcdef01234567";
    assert!(said(&both, "pdf", evil, &trusted).starts_with("policy.toml:3:11 forbids"));
    assert!(said(&both, "pdf", ANTHROPIC, &trusted).starts_with("savoir.toml:4:11 forbids"));
    assert!(said(&both, "zip", ANTHROPIC, &trusted).starts_with("savoir.toml:5:9 forbids"));
    assert!(said(&both, "pdf", ANTHROPIC, &Attestation::default()).contains("unsigned"));
}

#[test]
fn policy_errors_have_position_and_hint() {
    for (text, start) in [
        ("[policy]\nrequire = \"sigend\"\n", "p:2:11: `sigend` cannot be required"),
        ("[policy]\nrequire = true\n", "p:2:11: "),
        ("[policy]\nsource = []\n", "p:2:1: there is no setting `source`"),
        ("[policy]\nsources = [\"anthropics\"]\n", "p:2:12: `anthropics` is not a source"),
        ("[policy]\ndeny = [\"a*b\"]\n", "p:2:9: "),
        ("[policy]\nsigners = [\"a b\"]\n", "p:2:12: "),
        ("[polcy]\nrequire = \"signed\"\n", "p:1:2: there is no table `polcy`"),
        ("policy = 1\n", "p:1:10: "),
    ] {
        for kind in [PolicyFile::Alone, PolicyFile::Shared] {
            let error = Policy::default().add_text("p", text, kind).unwrap_err();
            assert!(error.to_string().starts_with(start), "{error}");
        }
    }
    let other = "[check]\nstrict = true\n";
    assert!(Policy::default().add_text("p", other, PolicyFile::Alone).is_err());
    assert!(Policy::default().add_text("p", other, PolicyFile::Shared).is_ok());
}

#[test]
fn missing_file_has_no_policy() {
    let place = tempfile::tempdir().unwrap();
    let mut policy = Policy::default();
    let path = place.path().join("policy.toml");
    assert!(!policy.add_file(&path, PolicyFile::Alone).unwrap());
    std::fs::write(&path, "[policy]\nrequire = \"signed\"\n").unwrap();
    assert!(policy.add_file(&path, PolicyFile::Alone).unwrap() && !policy.is_empty());
}

#[test]
fn evaluations_are_required() {
    let policy = policy("[policy]\nrequire-eval = true\n");
    assert!(policy.requires_evaluation() && !policy.is_empty());
    assert!(!self::policy("[policy]\nrequire-eval = false\n").requires_evaluation());
    let source: LockedSource = "registry+https://r.example/registry#acme/pdf".parse().unwrap();
    let said = |verdict: Option<EvaluationVerdict>, is_trusted: bool| {
        let found = verdict.map(|verdict| evaluation(verdict, is_trusted));
        let facts = SkillFacts {
            name: "pdf",
            source: Some(&source),
            tier: Tier::Experimental,
            attestation: &Attestation::default(),
            evaluations: found.as_slice(),
        };
        match policy.check(&facts) {
            Ok(()) => String::new(),
            Err(refusal) => format!("{refusal}; hint: {}", refusal.hint),
        }
    };
    assert_eq!(said(Some(EvaluationVerdict::Pass), true), "");
    let nobody = said(None, true);
    assert!(nobody.contains("nobody attests") && nobody.contains("savoir eval"), "{nobody}");
    let stranger = said(Some(EvaluationVerdict::Pass), false);
    assert!(stranger.contains("trust none of the keys"), "{stranger}");
    assert!(stranger.contains("--role evaluator") && stranger.contains("key-1"), "{stranger}");
    let failed = said(Some(EvaluationVerdict::Fail), true);
    assert!(failed.contains("the key key-1, which you trust, is: fail"), "{failed}");
}

fn evaluation(verdict: EvaluationVerdict, is_trusted: bool) -> SignedEvaluation {
    let key = crate::trust::SigningKey::generate().unwrap().public_key();
    let trusted =
        TrustedKey { key, publisher: "Lab".to_owned(), role: Role::Evaluator, namespaces: None };
    let signed = SignedStatement {
        statement: serde_json::Value::Null,
        kind: SignatureKind::Ed25519,
        key_id: "key-1".to_owned(),
        trusted: is_trusted.then_some(trusted),
        checked: true,
    };
    let evaluation = Evaluation {
        verdict,
        uplift: None,
        trials: 3,
        all_trials: 6,
        invalid_trials: 0,
        host: EvaluatedHost::default(),
        judge: None,
        eval_set: String::new(),
        harness: String::new(),
        triggers: Vec::new(),
        regressions: Vec::new(),
        finished: String::new(),
    };
    SignedEvaluation { signed, evaluation }
}
