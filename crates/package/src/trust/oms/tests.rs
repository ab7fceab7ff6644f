use std::process::Command;

use super::{
    super::{
        Attestation, FurtherSignature, Role, SignatureError, SignatureKind, Tier, countersign,
        testing::{NAME, VERSION, data, golden, key, trusted, with, without},
        verify,
    },
    *,
};

fn store(pem: &str, role: Role) -> TrustStore {
    [trusted(PublicKey::parse(pem).unwrap(), role)].into_iter().collect()
}

fn bundled(name: &str) -> Tree {
    with(&golden(), "skill.oms.sig", data(name))
}

fn judged(tree: &Tree, store: &TrustStore) -> Result<Attestation, SignatureError> {
    verify(tree, NAME, VERSION, store)
}

fn code(tree: &Tree, store: &TrustStore) -> &'static str {
    judged(tree, store).unwrap_err().code()
}

fn own_key() -> BundleKey {
    BundleKey::from_pem(&BundleKey::generate().unwrap()).unwrap()
}

fn revoking(key_id: &str) -> TrustStore {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("trusted-keys.json");
    TrustStore::revoke(&path, key_id, "lost").unwrap();
    TrustStore::read(&path).unwrap()
}

/// Returns a bundle with a changed statement and the old signature.
fn restated(bundle: &Value, edit: impl FnOnce(&mut Value)) -> Value {
    let mut bundle = bundle.clone();
    let payload = bundle["dsseEnvelope"]["payload"].as_str().unwrap();
    let mut payload = serde_json::from_slice(&STANDARD.decode(payload).unwrap()).unwrap();
    edit(&mut payload);
    bundle["dsseEnvelope"]["payload"] = STANDARD.encode(payload.to_string()).into();
    bundle
}

#[test]
fn model_signing_bundle_is_valid() {
    for (name, key) in [("key.oms.sig", "key.pub.pem"), ("chain.oms.sig", "root.pem")] {
        let (tree, store) = (bundled(name), store(&data(key), Role::Publisher));
        let attestation = judged(&tree, &store).unwrap();
        assert_eq!(attestation.tier, Tier::Community, "{name}");
        let signer = attestation.signed.unwrap();
        assert_eq!((signer.kind, signer.publisher.as_str()), (SignatureKind::Oms, "acme"));
        assert_eq!(signer.key_id, store.keys()[0].key.key_id());
        let other = with(&tree, "SKILL.md", "x");
        assert_eq!(code(&other, &store), "file_changed", "{name}");
        assert_eq!(code(&with(&tree, "more.md", "x"), &store), "file_additional", "{name}");
        assert_eq!(code(&without(&tree, "SKILL.md"), &store), "file_missing", "{name}");
        assert_eq!(verify(&tree, "other", VERSION, &store).unwrap_err().code(), "oms_subject");
        // Files are compared even if no key is trusted.
        assert_eq!(code(&other, &TrustStore::default()), "file_changed", "{name}");
        assert_eq!(judged(&tree, &TrustStore::default()).unwrap().tier, Tier::Experimental);
        let revoked = revoking(&store.keys()[0].key.key_id());
        if name == "key.oms.sig" {
            assert_eq!(code(&tree, &revoked), "key_revoked");
        }
    }
}

#[test]
fn any_certificate_of_a_chain_can_be_revoked() {
    let bundle: Value = serde_json::from_str(&data("chain.oms.sig")).unwrap();
    let chain = bundle["verificationMaterial"]["x509CertificateChain"]["certificates"].clone();
    let chain = chain.as_array().unwrap();
    assert_eq!(chain.len(), 2);
    for certificate in chain {
        let der = STANDARD.decode(certificate["rawBytes"].as_str().unwrap()).unwrap();
        let revoked = revoking(&certificate_id(&der));
        assert_eq!(code(&bundled("chain.oms.sig"), &revoked), "key_revoked");
    }
}

#[test]
fn certificate_chain_must_lead_to_root() {
    let root = store(&data("root.pem"), Role::Amd);
    assert_eq!(judged(&bundled("chain.oms.sig"), &root).unwrap().tier, Tier::Verified);
    // Without the intermediate certificate, or with a root that did not sign the chain.
    let mut bundle: Value = serde_json::from_str(&data("chain.oms.sig")).unwrap();
    let chain = bundle["verificationMaterial"]["x509CertificateChain"]["certificates"]
        .as_array_mut()
        .unwrap();
    let between = STANDARD.decode(chain[1]["rawBytes"].as_str().unwrap()).unwrap();
    chain.truncate(1);
    let tree = with(&golden(), "skill.oms.sig", bundle.to_string());
    let attestation = judged(&tree, &root).unwrap();
    assert_eq!(attestation.tier, Tier::Experimental);
    assert_eq!(attestation.signed.unwrap().role, None);
    let direct = store(&pem("CERTIFICATE", &between), Role::Amd);
    assert_eq!(judged(&tree, &direct).unwrap().tier, Tier::Verified, "trusted by itself");
    // A chain whose certificate is for another key.
    let key = own_key();
    let mut forged = sign(&golden(), NAME, VERSION, "", &key).unwrap();
    let material: Value = serde_json::from_str(&data("chain.oms.sig")).unwrap();
    forged["verificationMaterial"] = material["verificationMaterial"].clone();
    let tree = with(&golden(), "skill.oms.sig", forged.to_string());
    assert_eq!(code(&tree, &root), "oms_wrong");
}

#[test]
fn own_bundle_is_valid() {
    let key = own_key();
    let bundle = sign(&golden(), NAME, VERSION, "acme", &key).unwrap();
    let store = store(&key.public_pem().unwrap(), Role::Publisher);
    let tree = with(&golden(), "skill.oms.sig", bundle.to_string());
    assert_eq!(judged(&tree, &store).unwrap().tier, Tier::Community);
    assert_eq!(verify(&tree, NAME, "1.3.0", &store).unwrap_err().code(), "oms_subject");
    assert!(format!("{key:?}").starts_with("BundleKey(\"oms:"));

    // The record covers the bundle, and may contain it too.
    let record = super::super::sign(&tree, NAME, VERSION, "acme", &self::key(7));
    let record = countersign(&record, FurtherSignature::Oms(bundle.clone())).unwrap();
    let both = with(&tree, "signature.json", record);
    let attestation = judged(&both, &store).unwrap();
    assert_eq!((attestation.tier, attestation.signatures.len()), (Tier::Community, 3));
    assert_eq!(code(&without(&both, "skill.oms.sig"), &store), "file_missing");
    let other = sign(&golden(), NAME, VERSION, "acme", &key).unwrap().to_string();
    assert_eq!(code(&with(&both, "skill.oms.sig", other), &store), "file_changed");
}

#[test]
#[expect(clippy::print_stderr, reason = "a test that was skipped must be seen")]
fn model_signing_accepts_own_bundle() {
    if Command::new("model_signing").arg("--version").output().is_err() {
        eprintln!("SKIPPED: model_signing is not installed");
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let (folder, public) = (place.path().join(NAME), place.path().join("public.pem"));
    let key = own_key();
    let bundle = sign(&golden(), NAME, VERSION, "acme", &key).unwrap();
    let tree = with(&golden(), "skill.oms.sig", bundle.to_string());
    let record = super::super::sign(&tree, NAME, VERSION, "acme", &self::key(7));
    with(&tree, "signature.json", record).write(&folder).unwrap();
    std::fs::write(&public, key.public_pem().unwrap()).unwrap();
    let verified = || {
        let mut command = Command::new("model_signing");
        command.args(["verify", "key", "--signature"]).arg(folder.join("skill.oms.sig"));
        command.arg("--public_key").arg(&public).arg(&folder);
        command.output().unwrap()
    };
    let output = verified();
    assert!(output.status.success(), "{output:?}");
    std::fs::write(folder.join("more.md"), "x").unwrap();
    assert!(!verified().status.success());
}

/// A name, a change of the bundle, and the expected error.
type Edit = (&'static str, fn(&mut Value), &'static str);

#[test]
fn changed_statement_is_rejected() {
    let key = own_key();
    let bundle = sign(&golden(), NAME, VERSION, "acme", &key).unwrap();
    let store = store(&key.public_pem().unwrap(), Role::Publisher);
    let code = |bundle: &Value, store: &TrustStore| {
        code(&with(&golden(), "skill.oms.sig", bundle.to_string()), store)
    };
    let edits: [Edit; 7] = [
        ("_type", |value| value["_type"] = "x".into(), "oms_malformed"),
        ("predicateType", |value| value["predicateType"] = "x".into(), "oms_malformed"),
        ("subject", |value| value["subject"] = json!([]), "oms_malformed"),
        ("name", |value| value["predicate"]["name"] = "x".into(), "oms_subject"),
        ("version", |value| value["predicate"]["version"] = "9.9.9".into(), "oms_subject"),
        (
            "resources",
            |value| value["predicate"]["resources"][0]["digest"] = "0".repeat(64).into(),
            "oms_inconsistent",
        ),
        (
            "method",
            |value| value["predicate"]["serialization"]["method"] = "shards".into(),
            "oms_malformed",
        ),
    ];
    for (what, edit, expected) in edits {
        let changed = restated(&bundle, edit);
        assert_eq!(code(&changed, &store), "oms_wrong", "{what}");
        assert_eq!(code(&changed, &TrustStore::default()), expected, "{what}");
    }
    for (path, value) in [
        ("/mediaType", json!("x")),
        ("/dsseEnvelope/payloadType", json!("x")),
        ("/dsseEnvelope/signatures", json!([])),
        ("/dsseEnvelope/payload", json!("!")),
    ] {
        let mut changed = bundle.clone();
        *changed.pointer_mut(path).unwrap() = value;
        assert_eq!(code(&changed, &store), "oms_malformed", "{path}");
    }
}

#[test]
fn changed_bundle_never_raises_tier() {
    let tree = golden();
    // Checking a chain is slow, so fewer of its bytes are tried.
    for (name, key, step) in [("key.oms.sig", "key.pub.pem", 1), ("chain.oms.sig", "root.pem", 5)] {
        let (bytes, store) = (data(name).into_bytes(), store(&data(key), Role::Publisher));
        let good = judged(&bundled(name), &store).unwrap();
        let mut unchanged = 0;
        for n in (0..bytes.len()).step_by(step) {
            let mut changed = bytes.clone();
            changed[n] ^= 1;
            let changed = with(&tree, "skill.oms.sig", changed);
            match judged(&changed, &store) {
                Err(_) => {}
                Ok(after) if after.tier == Tier::Experimental => {}
                Ok(after) => {
                    assert_eq!(after, good, "{name}: byte {n}");
                    unchanged += 1;
                }
            }
        }
        assert!(unchanged < 60, "{name}: {unchanged} bytes say nothing");
    }
}

#[test]
fn keyless_bundles_are_ignored() {
    let mut bundle: Value = serde_json::from_str(&data("chain.oms.sig")).unwrap();
    let chain = &bundle["verificationMaterial"]["x509CertificateChain"]["certificates"];
    let leaf = chain[0].clone();
    bundle["verificationMaterial"] = json!({"certificate": leaf, "tlogEntries": []});
    let tree = with(&golden(), "skill.oms.sig", bundle.to_string());
    let attestation = judged(&tree, &store(&data("root.pem"), Role::Amd)).unwrap();
    assert_eq!(attestation.tier, Tier::Experimental);
    assert_eq!((attestation.signatures.len(), attestation.unchecked.len()), (0, 1));
}

#[test]
fn invalid_bundle_keys_are_rejected() {
    for text in ["", "x", &data("key.pub.pem"), &data("root.pem")] {
        assert!(BundleKey::from_pem(text).is_err());
    }
    let secret = BundleKey::generate().unwrap();
    assert_eq!(PublicKey::parse(&secret), Err(super::super::PublicKeyError::Private));
    assert!(valid_from(b"").is_none());
}

proptest::proptest! {
    #[test]
    fn arbitrary_input_does_not_panic(bytes: Vec<u8>, text: String) {
        let _ = valid_from(&bytes);
        let _ = PublicKey::parse(&text);
        for kind in [KeyKind::Ssh, KeyKind::Ecdsa, KeyKind::Certificate, KeyKind::OpenPgp] {
            let _ = PublicKey::new(kind, bytes.clone());
        }
        let tree = with(&golden(), "skill.oms.sig", bytes);
        let _ = judged(&tree, &TrustStore::default());
    }
}

/// Returns a skill with an additional file, and a bundle that ignores a path.
fn ignoring(ignored: &str, path: &str) -> (Tree, TrustStore) {
    let key = own_key();
    let mut bundle = sign(&golden(), NAME, VERSION, "acme", &key).unwrap();
    bundle = restated(&bundle, |statement| {
        let paths = &mut statement["predicate"]["serialization"]["ignore_paths"];
        paths.as_array_mut().unwrap().push(ignored.into());
    });
    let payload = STANDARD.decode(bundle["dsseEnvelope"]["payload"].as_str().unwrap()).unwrap();
    let signature =
        key.pair.sign(&SystemRandom::new(), &pre_authentication_encoding(&payload)).unwrap();
    bundle["dsseEnvelope"]["signatures"][0]["sig"] = STANDARD.encode(signature.as_ref()).into();
    let tree = with(&golden(), "skill.oms.sig", bundle.to_string());
    (with(&tree, path, "more"), store(&key.public_pem().unwrap(), Role::Publisher))
}

#[test]
fn ignored_files_do_not_invalidate_bundle() {
    for (ignored, path) in [(".gitignore", ".gitignore"), ("./docs/", "docs/.gitattributes")] {
        let (tree, store) = ignoring(ignored, path);
        let attestation = judged(&tree, &store).unwrap();
        assert_eq!(attestation.tier, Tier::Community, "{path}");
        assert_eq!(attestation.left_out, [path]);
        assert!(super::super::differences(&tree).unwrap().is_empty());
    }
    // Files that the bundle does not name are still compared.
    let (tree, store) = ignoring("docs", "docs-more/.gitignore");
    assert_eq!(code(&tree, &store), "file_additional");
    let (tree, store) = ignoring(".gitignore", ".gitignore");
    assert_eq!(code(&with(&tree, "SKILL.md", "x"), &store), "file_changed");
}

#[test]
fn bundle_without_agent_files_attests_nothing() {
    for (ignored, path) in [("scripts", "scripts/run.sh"), ("README.md", "README.md")] {
        let (tree, store) = ignoring(ignored, path);
        let attestation = judged(&tree, &store).unwrap();
        assert_eq!(attestation.tier, Tier::Experimental, "{path}");
        assert_eq!(attestation.left_out, [path]);
        let signer = attestation.signed.unwrap();
        assert_eq!((signer.role, signer.publisher.as_str()), (None, "acme"));
    }
}

#[test]
fn bundle_without_skill_md_attests_nothing() {
    let key = own_key();
    let mut bundle = sign(&without(&golden(), "SKILL.md"), NAME, VERSION, "acme", &key).unwrap();
    bundle = restated(&bundle, |statement| {
        statement["predicate"]["serialization"]["ignore_paths"] = json!(["SKILL.md"]);
    });
    let payload = STANDARD.decode(bundle["dsseEnvelope"]["payload"].as_str().unwrap()).unwrap();
    let signature =
        key.pair.sign(&SystemRandom::new(), &pre_authentication_encoding(&payload)).unwrap();
    bundle["dsseEnvelope"]["signatures"][0]["sig"] = STANDARD.encode(signature.as_ref()).into();
    let tree = with(&golden(), "skill.oms.sig", bundle.to_string());
    let store = store(&key.public_pem().unwrap(), Role::Amd);
    let attestation = judged(&tree, &store).unwrap();
    assert_eq!(attestation.tier, Tier::Experimental);
    assert_eq!(attestation.left_out, ["SKILL.md"]);
}
