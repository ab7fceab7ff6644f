use std::os::unix::fs::PermissionsExt as _;

use super::*;

const MESSAGE: &[u8] = b"{\"algorithm\":\"ed25519\"}";

/// Whether OpenSSH is installed; if not, prints that the test is skipped.
#[expect(clippy::print_stderr, reason = "a test that was skipped must be seen")]
fn has_openssh() -> bool {
    let there = Command::new("ssh-keygen").arg("-?").output().is_ok();
    if !there {
        eprintln!("SKIPPED: ssh-keygen is not installed");
    }
    there
}

fn keygen(arguments: &[&str], stdin: &[u8]) -> std::process::Output {
    let mut child = Command::new("ssh-keygen")
        .args(arguments)
        .env_remove("SSH_AUTH_SOCK")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(stdin).unwrap();
    child.wait_with_output().unwrap()
}

struct Made {
    place: tempfile::TempDir,
}

impl Made {
    fn new(kind: &[&str], passphrase: &str) -> Self {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("id");
        let mut arguments = vec!["-q", "-N", passphrase, "-C", "me", "-f", file.to_str().unwrap()];
        arguments.extend(kind);
        let output = keygen(&arguments, b"");
        assert!(output.status.success(), "{output:?}");
        Self { place }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    fn public(&self) -> String {
        fs::read_to_string(self.path("id.pub")).unwrap()
    }

    fn sign(&self, namespace: &str) -> String {
        let file = self.path("id");
        let arguments = ["-Y", "sign", "-q", "-n", namespace, "-f", file.to_str().unwrap()];
        String::from_utf8(keygen(&arguments, MESSAGE).stdout).unwrap()
    }

    /// Whether OpenSSH accepts a signature.
    fn verify(&self, signature: &str, message: &[u8]) -> bool {
        fs::write(self.path("allowed"), format!("me {}", self.public())).unwrap();
        fs::write(self.path("sig"), signature).unwrap();
        let (allowed, sig) = (self.path("allowed"), self.path("sig"));
        let (allowed, sig) = (allowed.to_str().unwrap(), sig.to_str().unwrap());
        let arguments = ["-Y", "verify", "-n", NAMESPACE, "-I", "me", "-f", allowed, "-s", sig];
        keygen(&arguments, message).status.success()
    }
}

#[test]
fn openssh_signature_is_valid() {
    if !has_openssh() {
        return;
    }
    let kinds: [&[&str]; 3] = [&["-t", "ed25519"], &["-t", "ecdsa"], &["-t", "rsa", "-b", "2048"]];
    for kind in kinds {
        let made = Made::new(kind, "");
        let signature = made.sign(NAMESPACE);
        let key = PublicKey::parse(&made.public()).unwrap();
        assert_eq!(check(&signature, MESSAGE).unwrap(), key, "{kind:?}");
        assert_eq!(signer(&signature).unwrap(), key);
        let listed = keygen(&["-l", "-f", made.path("id.pub").to_str().unwrap()], b"");
        assert!(String::from_utf8(listed.stdout).unwrap().contains(&key.key_id()));
        assert!(matches!(check(&signature, b"other"), Err(SshError::Wrong(_))), "{kind:?}");
        assert!(matches!(check(&made.sign("git"), MESSAGE), Err(SshError::Namespace(_))));
        // The key file and `ssh-keygen` make equivalent signatures.
        let again = sign(&made.path("id"), MESSAGE).unwrap();
        assert_eq!(check(&again, MESSAGE).unwrap(), key);
        assert!(made.verify(&again, MESSAGE), "{kind:?}");
        assert!(!made.verify(&again, b"other"));
    }
}

#[test]
fn own_ssh_signature_equals_openssh() {
    if !has_openssh() {
        return;
    }
    let made = Made::new(&["-t", "ed25519"], "");
    assert_eq!(sign(&made.path("id"), MESSAGE).unwrap(), made.sign(NAMESPACE));
    fs::set_permissions(made.path("id"), fs::Permissions::from_mode(0o644)).unwrap();
    let error = sign(&made.path("id"), MESSAGE).unwrap_err();
    assert!(error.to_string().contains("chmod 600"), "{error}");
    assert!(sign(&made.path("nothing"), MESSAGE).is_err());
}

#[test]
fn key_with_passphrase_is_used_by_openssh() {
    if !has_openssh() {
        return;
    }
    let made = Made::new(&["-t", "ed25519"], "a secret");
    let text = fs::read_to_string(made.path("id")).unwrap();
    assert!(plain_key(&text).is_none(), "it is not read here");
}

#[test]
fn savoir_key_makes_openssh_signature() {
    if !has_openssh() {
        return;
    }
    let made = Made::new(&["-t", "ed25519"], "");
    let key = SigningKey::generate().unwrap();
    let mut public = Vec::new();
    push_string(&mut public, SSH_ED25519);
    push_string(&mut public, &key.public_bytes());
    let line = format!("ssh-ed25519 {} me\n", STANDARD.encode(&public));
    fs::write(made.path("id.pub"), &line).unwrap();
    let signature = sign_with(&key, MESSAGE);
    assert!(made.verify(&signature, MESSAGE));
    assert_eq!(check(&signature, MESSAGE).unwrap(), PublicKey::parse(&line).unwrap());
}

#[test]
fn changed_signature_is_rejected() {
    let key = SigningKey::from_seed(&[7; 32]).unwrap();
    let signature = sign_with(&key, MESSAGE);
    let blob = dearmour(&signature).unwrap();
    let good = check(&signature, MESSAGE).unwrap();
    for n in 0..blob.len() {
        for bit in 0..8 {
            let mut changed = blob.clone();
            changed[n] ^= 1 << bit;
            assert!(check(&armour(&changed), MESSAGE).is_err(), "byte {n}, bit {bit}");
        }
        assert!(check(&armour(&blob[..n]), MESSAGE).is_err());
    }
    let longer = [&blob[..], b"x"].concat();
    assert!(check(&armour(&longer), MESSAGE).is_err());
    assert_eq!(check(&signature.replace('\n', "\r\n"), MESSAGE).unwrap(), good);
}

#[test]
fn security_key_requires_touch() {
    let key = SigningKey::from_seed(&[7; 32]).unwrap();
    let application = b"ssh:savoir";
    let mut public = Vec::new();
    push_string(&mut public, SSH_TOKEN);
    push_string(&mut public, &key.public_bytes());
    push_string(&mut public, application);
    let made = |flags: u8| {
        let data = signed_data(b"sha512", &Sha512::digest(MESSAGE));
        let mut message = Sha256::digest(application).to_vec();
        message.push(flags);
        message.extend(9_u32.to_be_bytes());
        message.extend_from_slice(&Sha256::digest(&data));
        let mut signature = Vec::new();
        push_string(&mut signature, SSH_TOKEN);
        push_string(&mut signature, &key.sign(&message));
        signature.push(flags);
        signature.extend(9_u32.to_be_bytes());
        let mut blob = MAGIC.to_vec();
        blob.extend(1_u32.to_be_bytes());
        for part in [&public[..], NAMESPACE.as_bytes(), b"", b"sha512", &signature] {
            push_string(&mut blob, part);
        }
        armour(&blob)
    };
    assert!(check(&made(1), MESSAGE).is_ok());
    assert!(check(&made(5), MESSAGE).is_ok());
    assert!(matches!(check(&made(0), MESSAGE), Err(SshError::Wrong(_))));
}

#[test]
fn text_of_a_public_key_is_parsed_again() {
    let line = public_key_text(&SigningKey::from_seed(&[7; 32]).unwrap());
    let key = PublicKey::parse(&format!("{line} me@example.com")).unwrap();
    assert_eq!(key.to_text(), line);
    assert_eq!(PublicKey::parse(&key.to_text()), Ok(key));
    let own = SigningKey::from_seed(&[7; 32]).unwrap().public_key();
    assert_eq!(PublicKey::parse(&own.to_text()), Ok(own));
}

#[test]
fn invalid_openssh_keys_are_rejected() {
    for line in ["ssh-ed25519", "ssh-ed25519 AAAA", "ssh-rsa AAAAC3NzaC1lZDI1NTE5AAAAIA== x", ""] {
        assert_eq!(public_key_line(line), None, "{line}");
    }
    let mut short = Vec::new();
    push_string(&mut short, SSH_RSA);
    push_string(&mut short, &[1, 0, 1]);
    push_string(&mut short, &[0x7f; 128]);
    assert!(key_id(&short).is_err(), "1024 bits are too few");
}

proptest::proptest! {
    #[test]
    fn arbitrary_input_does_not_panic(mut bytes: Vec<u8>, text: String) {
        let _ = check(&text, MESSAGE);
        let _ = plain_key(&text);
        let _ = fixed_ecdsa(&bytes);
        let _ = read_key(&bytes);
        bytes.splice(0..0, [MAGIC, &[0, 0, 0, 1]].concat());
        let _ = check(&armour(&bytes), MESSAGE);
    }
}
