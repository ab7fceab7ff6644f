use super::{
    super::{
        FurtherSignature, PublicKey, Role, SignatureKind, Tier, countersign, sign, signed_bytes,
        testing::{NAME, VERSION, data, golden, key, trusted, with},
        verify,
    },
    *,
};

/// Whether `gpgv` is installed; if not, prints that the test is skipped.
#[expect(clippy::print_stderr, reason = "a test that was skipped must be seen")]
fn has_gpgv() -> bool {
    let there = Command::new("gpgv").arg("--version").output().is_ok();
    if !there {
        eprintln!("SKIPPED: gpgv is not installed");
    }
    there
}

fn public() -> PublicKey {
    PublicKey::parse(&data("openpgp.asc")).unwrap()
}

fn store() -> TrustStore {
    [trusted(public(), Role::Publisher)].into_iter().collect()
}

fn message() -> Vec<u8> {
    signed_bytes(&sign(&golden(), NAME, VERSION, "", &key(7))).unwrap()
}

#[test]
fn gnupg_signature_is_valid() {
    if !has_gpgv() {
        return;
    }
    let (signature, message) = (data("openpgp.sig.asc"), message());
    for program in ["gpgv", "gpg"] {
        if Command::new(program).arg("--version").output().is_err() {
            continue;
        }
        let store = store();
        let checked = check_with(&[program], &signature, &message, &store).unwrap();
        assert!(matches!(checked, CheckedSignature::By(_)), "{program}: {checked:?}");
        let changed = check_with(&[program], &signature, b"other", &store).unwrap_err();
        assert_eq!(changed.code(), "signature_openpgp", "{program}");
    }
    let error = check_with(&["no-such-gpgv"], &signature, &message, &store()).unwrap_err();
    assert_eq!(error.code(), "gpgv_missing");
    assert!(error.to_string().contains("install GnuPG"));
}

#[test]
fn signature_counts_in_record_and_as_file() {
    if !has_gpgv() {
        return;
    }
    let fingerprint = public().key_id().replace("openpgp:", "");
    let record = sign(&golden(), NAME, VERSION, "", &key(7));
    let further = FurtherSignature::OpenPgp { fingerprint, armoured: data("openpgp.sig.asc") };
    let both = countersign(&record, further).unwrap();
    let inside = with(&golden(), "signature.json", both);
    let beside = with(&golden(), "signature.json", record);
    let beside = with(&beside, "signature.asc", data("openpgp.sig.asc"));
    for tree in [inside, beside] {
        let attestation = verify(&tree, NAME, VERSION, &store()).unwrap();
        assert_eq!(attestation.tier, Tier::Community);
        assert_eq!(attestation.signed.unwrap().kind, SignatureKind::OpenPgp);
        let unknown = verify(&tree, NAME, VERSION, &TrustStore::default()).unwrap();
        assert_eq!(unknown.tier, Tier::Experimental);
        assert_eq!(unknown.unchecked.len(), 1);
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("trusted-keys.json");
        TrustStore::revoke(&path, &public().key_id(), "lost").unwrap();
        let revoked = TrustStore::read(&path).unwrap();
        assert_eq!(verify(&tree, NAME, VERSION, &revoked).unwrap_err().code(), "key_revoked");
    }
}

#[test]
fn any_changed_byte_is_rejected() {
    if !has_gpgv() {
        return;
    }
    let (message, store) = (message(), store());
    let bytes = dearmour(data("openpgp.sig.asc").trim(), SIGNATURE).unwrap();
    for n in (0..bytes.len()).step_by(7) {
        let mut changed = bytes.clone();
        changed[n] ^= 1;
        let body = STANDARD.encode(&changed);
        let armoured = format!("-----BEGIN {SIGNATURE}-----\n\n{body}\n-----END {SIGNATURE}-----");
        let checked = check(&armoured, &message, &store);
        assert!(
            !matches!(checked, Ok(CheckedSignature::By(_))) || is_unhashed(&bytes, n),
            "byte {n}: {checked:?}"
        );
    }
}

/// Whether a byte is in an unsigned hint, which only helps to find the key or to detect a wrong
/// signature early.
fn is_unhashed(bytes: &[u8], n: usize) -> bool {
    let (_, body) = first_packet(bytes).unwrap();
    let start = bytes.len() - body.len();
    let hashed = usize::from(u16::from_be_bytes([body[4], body[5]]));
    let unhashed_at = 6 + hashed;
    let unhashed = usize::from(u16::from_be_bytes([body[unhashed_at], body[unhashed_at + 1]]));
    (start + unhashed_at..start + unhashed_at + 2 + unhashed + 2).contains(&n)
}

#[test]
fn gpgv_output_is_parsed_strictly() {
    let store = store();
    let fingerprint = public().key_id().replace("openpgp:", "").to_uppercase();
    let valid = |class: &str| {
        format!(
            "[GNUPG:] NEWSIG\n[GNUPG:] GOODSIG X golden\n[GNUPG:] VALIDSIG {fingerprint} 2026-11-15 1 0 4 0 22 10 {class} {fingerprint}\n"
        )
    };
    assert!(matches!(read_report(&valid("00"), &store), Ok(CheckedSignature::By(_))));
    for report in [
        String::new(),
        valid("01"),
        valid("00").replace("GOODSIG", "TRUST_NEVER"),
        valid("00").replace("GOODSIG", "EXPKEYSIG"),
        valid("00") + "[GNUPG:] REVKEYSIG X\n",
        valid("00") + &valid("00"),
        valid("00").replace("[GNUPG:] ", "gpgv: "),
        "[GNUPG:] ERRSIG X 22 10 00 1 4 -\n".to_owned(),
    ] {
        assert!(matches!(read_report(&report, &store), Err(OpenPgpError::Wrong(_))), "{report}");
    }
    let unknown = read_report("[GNUPG:] ERRSIG X 22 10 00 1 9 -\n", &store);
    assert!(matches!(unknown, Ok(CheckedSignature::Unknown(None))));
}

#[test]
fn invalid_armour_is_rejected() {
    for text in ["", "x", "-----BEGIN PGP SIGNATURE-----\n-----END PGP SIGNATURE-----"] {
        assert_eq!(dearmour(text, SIGNATURE), None);
    }
    assert!(PublicKey::parse(&data("openpgp.sig.asc")).is_err());
    assert_eq!(public().kind(), KeyKind::OpenPgp);
}
