use super::{
    super::testing::{NAME, VERSION, data, golden, key, trusted, with, without},
    *,
};

fn signed() -> Tree {
    let tree = golden();
    let record = sign(&tree, NAME, VERSION, "acme", &key(7));
    with(&tree, "signature.json", record)
}

fn believing(role: Role) -> TrustStore {
    [trusted(key(7).public_key(), role)].into_iter().collect()
}

fn code(tree: &Tree, store: &TrustStore) -> &'static str {
    verify(tree, NAME, VERSION, store).unwrap_err().code()
}

/// Returns the tree with a changed member in its record.
fn edited(tree: &Tree, edit: impl FnOnce(&mut Value)) -> Tree {
    let mut record = serde_json::from_slice(&tree.get("signature.json").unwrap().bytes).unwrap();
    edit(&mut record);
    with(tree, "signature.json", record.to_string())
}

fn revoking(key_id: &str) -> TrustStore {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("trusted-keys.json");
    TrustStore::revoke(&path, key_id, "it was lost").unwrap();
    TrustStore::read(&path).unwrap()
}

#[test]
fn trusted_role_decides_tier() {
    let tree = signed();
    for (store, role, tier) in [
        (TrustStore::default(), None, Tier::Experimental),
        (believing(Role::Publisher), Some(Role::Publisher), Tier::Community),
        (believing(Role::Amd), Some(Role::Amd), Tier::Verified),
    ] {
        let attestation = verify(&tree, NAME, VERSION, &store).unwrap();
        assert_eq!(attestation.tier, tier);
        let signer = attestation.signed.unwrap();
        assert_eq!(signer.role, role);
        assert_eq!((signer.key_id, signer.publisher), (key(7).key_id(), "acme".to_owned()));
        assert_eq!(attestation.signatures.len(), 1);
    }
    let nothing = verify(&golden(), NAME, VERSION, &believing(Role::Amd)).unwrap();
    assert_eq!(nothing, Attestation::default());
}

#[test]
fn key_is_limited_to_its_names() {
    let mut entry = trusted(key(7).public_key(), Role::Amd);
    entry.namespaces = Some(vec!["acme-*".into()]);
    let store: TrustStore = [entry].into_iter().collect();
    let attestation = verify(&signed(), NAME, VERSION, &store).unwrap();
    assert_eq!(attestation.tier, Tier::Experimental);
    let signer = attestation.signed.unwrap();
    assert_eq!(signer.role, None);
    assert_eq!(signer.trusted_for, ["acme-*"]);
}

#[test]
fn record_matches_shipped_product() {
    let theirs = data("shipped-SIGNATURE.json");
    let tree = with(&golden(), "SIGNATURE.json", theirs.as_str());
    let attestation = verify(&tree, NAME, VERSION, &believing(Role::Publisher)).unwrap();
    assert_eq!(attestation.tier, Tier::Community);
    let ours: Value =
        serde_json::from_slice(&sign(&golden(), NAME, VERSION, "acme", &key(7))).unwrap();
    assert_eq!(ours, serde_json::from_str::<Value>(&theirs).unwrap());
}

#[test]
fn signature_record_format_is_stable() {
    let record = String::from_utf8(sign(&golden(), NAME, VERSION, "acme", &key(7))).unwrap();
    assert_eq!(record, data("signature.json"));
    let bytes = signed_bytes(record.as_bytes()).unwrap();
    assert_eq!(String::from_utf8(bytes).unwrap(), data("signed-bytes.json"));
}

#[test]
fn second_record_file_is_rejected() {
    let mut tree = signed();
    assert_eq!(file_name(&tree), Some("signature.json"));
    assert_eq!(file_name(&golden()), None);
    let error = tree.add("SIGNATURE.json".into(), crate::File::default()).unwrap_err();
    assert_eq!(error.code(), "path_collision");
}

#[test]
fn each_invalid_record_has_its_own_error() {
    let (tree, store) = (signed(), believing(Role::Amd));
    for text in ["", "[]", "null", "{", "{\"name\":1,\"name\":1}"] {
        assert_eq!(code(&with(&tree, "signature.json", text), &store), "signature_json");
    }
    for (field, value, expected) in [
        ("algorithm", json!("none"), "signature_algorithm"),
        ("algorithm", json!(null), "signature_algorithm"),
        ("algorithm", json!("Ed25519"), "signature_algorithm"),
        ("signature_version", json!(2), "signature_version"),
        ("signature_version", json!("1"), "signature_version"),
        ("signature_version", json!(1.0), "signature_version"),
        ("name", json!("other"), "signature_name"),
        ("name", json!(["golden-skill"]), "signature_name"),
        ("version", json!("1.1.0"), "signature_skill_version"),
        ("files", json!([]), "signature_files"),
        ("files", json!({"SKILL.md": "x"}), "signature_files"),
        ("files", json!({"SKILL.md": "A".repeat(64)}), "signature_files"),
        ("files", json!({}), "signature_wrong"),
        ("public_key", json!("x"), "signature_field"),
        ("public_key", json!("AAAA"), "signature_field"),
        ("public_key", json!(1), "signature_field"),
        ("public_key", json!(key(8).public_key().to_base64()), "signature_key_id"),
        ("signature", json!("AAAA"), "signature_field"),
        ("signature", json!(STANDARD.encode([0; 64])), "signature_wrong"),
        ("key_id", json!(key(8).key_id()), "signature_key_id"),
        ("publisher", json!("a\u{1b}[2J"), "signature_field"),
        ("publisher", json!("a\nb"), "signature_field"),
        ("signatures", json!({}), "signature_field"),
        ("signatures", json!([1]), "signature_json"),
        ("signatures", json!([{}]), "signature_field"),
        ("signatures", json!([{"type": "sshsig", "sig": ""}]), "signature_ssh"),
        ("signatures", json!([{"type": "oms", "bundle": {}}]), "oms_malformed"),
        ("signatures", json!([{"type": "openpgp", "sig": ""}]), "signature_openpgp"),
        ("signatures", json!(vec![json!({"type": "x"}); 17]), "signature_field"),
    ] {
        let changed = edited(&tree, |record| record[field] = value.clone());
        assert_eq!(code(&changed, &store), expected, "{field}: {value}");
    }
    assert_eq!(code(&with(&tree, "SKILL.md", "x"), &store), "file_changed");
    assert_eq!(code(&with(&tree, "more.md", "x"), &store), "file_additional");
    assert_eq!(code(&without(&tree, "SKILL.md"), &store), "file_missing");
    let error = verify(&tree, NAME, VERSION, &revoking(&key(7).key_id())).unwrap_err();
    assert_eq!(error.code(), "key_revoked");
    assert!(error.to_string().contains("it was lost"), "{error}");
    assert_eq!(verify(&tree, "other", VERSION, &store).unwrap_err().code(), "signature_name");
    let newer = verify(&tree, NAME, "1.3.0", &store).unwrap_err();
    assert_eq!(newer.code(), "signature_skill_version", "a rollback");
}

#[test]
fn wrong_record_of_unknown_key_is_rejected_at_install() {
    let no_keys = TrustStore::default();
    let tree = signed();
    for (field, value, expected) in [
        ("algorithm", json!("rsa"), "signature_algorithm"),
        ("key_id", json!("0".repeat(32)), "signature_key_id"),
        ("name", json!("other"), "signature_name"),
        ("version", json!("9.0.0"), "signature_skill_version"),
        ("signature", json!(STANDARD.encode([0; 64])), "signature_wrong"),
    ] {
        let wrong = edited(&tree, |record| record[field] = value.clone());
        let error = attest_for_install(&wrong, NAME, VERSION, &no_keys).unwrap_err();
        assert_eq!(error.code(), expected);
        // Elsewhere it attests nothing, but the skill is not reported as unsigned.
        let attestation = attest(&wrong, NAME, VERSION, &no_keys).unwrap();
        assert!(attestation.signed.is_none() && !attestation.unchecked.is_empty(), "{field}");
    }
    let changed = with(&tree, "SKILL.md", "x");
    let error = attest_for_install(&changed, NAME, VERSION, &no_keys).unwrap_err();
    assert_eq!(error.code(), "file_changed");
    for other in ["{}", "not JSON", "{\"font\": \"Sans\", \"name\": \"Ada\"}"] {
        let other = with(&golden(), "signature.json", other);
        let attestation = attest_for_install(&other, NAME, VERSION, &no_keys).unwrap();
        assert_eq!(attestation, Attestation::default(), "a file that is not a record");
    }
    assert!(attest_for_install(&tree, NAME, VERSION, &no_keys).unwrap().signed.is_some());
}

#[test]
fn signature_of_another_skill_is_rejected() {
    let other = with(&golden(), "SKILL.md", "---\nname: golden-skill\n---\n");
    let record = sign(&other, NAME, VERSION, "acme", &key(7));
    let mixed = with(&golden(), "signature.json", record);
    assert_eq!(code(&mixed, &believing(Role::Amd)), "file_changed");
    // The list of files of one record and the signature of the other.
    let record = sign(&other, NAME, VERSION, "acme", &key(7));
    let record: Value = serde_json::from_slice(&record).unwrap();
    let mixed = edited(&signed(), |mine| mine["signature"] = record["signature"].clone());
    assert_eq!(code(&mixed, &believing(Role::Amd)), "signature_wrong");
    // Another key with the identifier of a trusted one.
    let record = sign(&golden(), NAME, VERSION, "acme", &key(8));
    let mut record: Value = serde_json::from_slice(&record).unwrap();
    record["key_id"] = key(7).key_id().into();
    let mixed = with(&golden(), "signature.json", record.to_string());
    assert_eq!(code(&mixed, &believing(Role::Amd)), "signature_key_id");
}

#[test]
fn any_changed_byte_is_detected() {
    let store = believing(Role::Amd);
    let mut tree = signed();
    let record = tree.get("signature.json").unwrap().bytes.clone();
    let sshsig = ssh::sign_with(&key(9), &signed_bytes(&record).unwrap());
    let record = countersign(&record, FurtherSignature::SshSig(sshsig)).unwrap();
    tree = with(&tree, "signature.json", record.clone());
    let good = verify(&tree, NAME, VERSION, &store).unwrap();
    assert_eq!(good.signatures.len(), 2);
    for n in 0..record.len() {
        for flip in [0x01, 0x20, 0x80] {
            let mut changed = record.clone();
            changed[n] ^= flip;
            let changed = with(&tree, "signature.json", changed);
            let Ok(after) = verify(&changed, NAME, VERSION, &store) else { continue };
            assert_eq!(after.signed, good.signed, "byte {n}");
            assert_eq!(after.tier, good.tier, "byte {n}");
            let known = |signer| good.signatures.contains(signer);
            assert!(after.signatures.iter().all(known), "byte {n}: {after:?}");
        }
    }
    for (path, file) in tree.files().filter(|(path, _)| *path != "signature.json") {
        for n in 0..file.bytes.len() {
            let mut bytes = file.bytes.clone();
            bytes[n] ^= 1;
            assert_eq!(code(&with(&tree, path, bytes), &store), "file_changed", "{path}");
        }
    }
}

#[test]
fn openssh_signatures_count() {
    for kind in ["ed25519", "ecdsa", "rsa"] {
        let key = PublicKey::parse(&data(&format!("{kind}.pub"))).unwrap();
        let sshsig = data(&format!("{kind}.sshsig"));
        let record = signed().get("signature.json").unwrap().bytes.clone();
        let record = countersign(&record, FurtherSignature::SshSig(sshsig)).unwrap();
        let tree = with(&golden(), "signature.json", record);
        let store = [trusted(key.clone(), Role::Amd)].into_iter().collect();
        let attestation = verify(&tree, NAME, VERSION, &store).unwrap();
        assert_eq!(attestation.tier, Tier::Verified, "{kind}");
        let signer = attestation.signed.unwrap();
        assert_eq!((signer.kind, &signer.key_id), (SignatureKind::SshSig, &key.key_id()));
        assert_eq!(attestation.signatures.len(), 2);
        assert_eq!(
            verify(&tree, NAME, VERSION, &TrustStore::default()).unwrap().tier,
            Tier::Experimental
        );
        assert_eq!(code(&tree, &revoking(&key.key_id())), "key_revoked");
        let changed = edited(&tree, |record| record["signatures"][0]["keyid"] = "SHA256:x".into());
        assert_eq!(code(&changed, &store), "signature_key_id");
    }
    let other = FurtherSignature::SshSig(data("other-namespace.sshsig"));
    let record = countersign(&signed().get("signature.json").unwrap().bytes, other).unwrap();
    let tree = with(&golden(), "signature.json", record);
    assert_eq!(code(&tree, &TrustStore::default()), "signature_ssh");
}

#[test]
fn record_without_own_signature_is_valid() {
    let record = unsigned(&golden(), NAME, VERSION);
    let tree = with(&golden(), "signature.json", record.clone());
    assert_eq!(code(&tree, &TrustStore::default()), "signature_field", "nobody signed it");
    let sshsig = ssh::sign_with(&key(9), &signed_bytes(&record).unwrap());
    let public = ssh::signer(&sshsig).unwrap();
    let record = countersign(&record, FurtherSignature::SshSig(sshsig)).unwrap();
    let tree = with(&golden(), "signature.json", record);
    let store = [trusted(public, Role::Publisher)].into_iter().collect();
    assert_eq!(verify(&tree, NAME, VERSION, &store).unwrap().tier, Tier::Community);
    // The record states that it has no signature of its own, so that removing one is detected.
    let stripped = edited(&tree, |record| record["algorithm"] = "ed25519".into());
    assert_eq!(code(&stripped, &store), "signature_field");
}

#[test]
fn unknown_signatures_are_ignored() {
    let tree = edited(&signed(), |record| {
        record["signatures"] = json!([{"type": "minisign", "keyid": "x", "sig": "y"}]);
        record["note"] = json!({"anything": 1});
    });
    let attestation = verify(&tree, NAME, VERSION, &believing(Role::Publisher)).unwrap();
    assert_eq!(attestation.tier, Tier::Community);
    let unchecked = UncheckedSignature { key_id: Some("x".into()), kind: "minisign".into() };
    assert_eq!(attestation.unchecked, [unchecked]);
    assert_eq!(code(&tree, &revoking("x")), "key_revoked");
}

#[test]
fn every_difference_is_named() {
    let tree = signed();
    assert_eq!(differences(&tree).unwrap(), []);
    assert_eq!(differences(&golden()).unwrap(), [], "nothing was signed");
    let path = golden().files().map(|(path, _)| path.to_owned()).find(|path| path != "SKILL.md");
    let path = path.unwrap();
    let changed = with(&with(&without(&tree, &path), "SKILL.md", "x"), "a.md", "x");
    let mut expected = [
        Difference::Changed("SKILL.md".into()),
        Difference::Additional("a.md".into()),
        Difference::Missing(path),
    ];
    expected.sort_by(|a, b| a.path().cmp(b.path()));
    assert_eq!(differences(&changed).unwrap(), expected);
    let key = oms::BundleKey::from_pem(&oms::BundleKey::generate().unwrap()).unwrap();
    let bundle = oms::sign(&golden(), NAME, VERSION, "acme", &key).unwrap();
    let bundled = with(&golden(), BUNDLE_FILE, bundle.to_string());
    assert_eq!(differences(&bundled).unwrap(), []);
    let changed = with(&bundled, "SKILL.md", "x");
    assert_eq!(differences(&changed).unwrap(), [Difference::Changed("SKILL.md".into())]);
}

fn as_value(record: &[u8]) -> Value {
    serde_json::from_slice(record).unwrap()
}

fn trusting(seeds: &[u8]) -> TrustStore {
    seeds.iter().map(|seed| trusted(key(*seed).public_key(), Role::Publisher)).collect()
}

#[test]
fn registry_signatures_count_like_those_in_files() {
    let tree = golden();
    let record = sign(&tree, NAME, VERSION, "Ada", &key(1));
    let signed = attach(&tree, &[as_value(&record)]).unwrap();
    assert_eq!(signed.integrity(), tree.integrity());
    assert_eq!(signed.get("signature.json").unwrap().bytes, record, "the record as it was made");
    assert_eq!(verify(&signed, NAME, VERSION, &trusting(&[1])).unwrap().tier, Tier::Community);
    let unknown = verify(&signed, NAME, VERSION, &TrustStore::default()).unwrap();
    assert_eq!((unknown.tier, unknown.signed.unwrap().role), (Tier::Experimental, None));
    assert_eq!(attach(&tree, &[]).unwrap(), tree);
}

#[test]
fn further_records_are_added_to_the_first() {
    let own = with(&golden(), "signature.json", sign(&golden(), NAME, VERSION, "Ada", &key(1)));
    let auditor = as_value(&sign(&golden(), NAME, VERSION, "Audits", &key(2)));
    let bytes = signed_bytes(&unsigned(&golden(), NAME, VERSION)).unwrap();
    let ssh = FurtherSignature::SshSig(ssh::sign_with(&key(3), &bytes));
    let ssh = as_value(&countersign(&unsigned(&golden(), NAME, VERSION), ssh).unwrap());
    let all = attach(&own, &[auditor.clone(), ssh.clone(), auditor.clone()]).unwrap();
    let attestation = verify(&all, NAME, VERSION, &trusting(&[2])).unwrap();
    assert_eq!(attestation.tier, Tier::Community);
    assert_eq!(attestation.signatures.len(), 3, "the same one counts once");
    assert_eq!(records(&all).unwrap().len(), 3);
    assert_eq!(attach(&all, &[ssh, auditor.clone()]).unwrap(), all);
    // A signature of other files is an error, also if the registry provides it.
    let mut other = auditor.clone();
    other["version"] = "9.9.9".into();
    other["signature"] = "AA==".into();
    let wrong = attach(&own, &[other]).unwrap();
    assert_eq!(
        verify(&wrong, NAME, VERSION, &trusting(&[1])).unwrap_err().code(),
        "signature_skill_version"
    );
    let changed = with(&all, "SKILL.md", "x");
    assert_eq!(
        verify(&changed, NAME, VERSION, &trusting(&[2])).unwrap_err().code(),
        "file_changed"
    );
    // No program nests records twice.
    let mut nested = auditor.clone();
    nested["signatures"] = json!([{"type": "record", "record": auditor}]);
    let nested = attach(&own, &[nested]).unwrap();
    let attestation = verify(&nested, NAME, VERSION, &trusting(&[2])).unwrap();
    assert_eq!(attestation.unchecked.len(), 1);
}

#[test]
fn missing_version_is_not_compared() {
    let signed = with(&golden(), "signature.json", sign(&golden(), NAME, "3.0.0", "Ada", &key(1)));
    assert_eq!(verify(&signed, NAME, "", &trusting(&[1])).unwrap().tier, Tier::Community);
    assert_eq!(
        verify(&signed, NAME, "1.0.0", &trusting(&[1])).unwrap_err().code(),
        "signature_skill_version"
    );
}

#[test]
fn record_without_name_or_version_is_rejected() {
    let code = |signed: (&str, &str), expected: (&str, &str)| {
        let record = sign(&golden(), signed.0, signed.1, "Ada", &key(1));
        let signed = with(&golden(), "signature.json", record);
        verify(&signed, expected.0, expected.1, &trusting(&[1])).unwrap_err().code()
    };
    assert_eq!(code((NAME, ""), (NAME, "")), "signature_skill_version");
    assert_eq!(code(("", VERSION), ("", VERSION)), "signature_name");
    assert_eq!(code((NAME, VERSION), ("", VERSION)), "signature_name");
}
