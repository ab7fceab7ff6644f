use std::os::unix::fs::{PermissionsExt as _, symlink};

use Tier::{Community, Experimental, Verified};
use savoir_package::trust::{KeyStore, Role, SigningKey, TrustedKey};
use tempfile::TempDir;

use super::*;
use crate::error::Fault;

/// A GAIA skill in a temporary folder that claims a tier, and a key that is not trusted yet.
struct Place {
    dir: TempDir,
    key: SigningKey,
}

impl Place {
    fn new(claim: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let key = KeyStore::new(dir.path().join("keys")).create("ada").unwrap();
        let place = Self { dir, key };
        place.write("SKILL.md", &text("1.0.0", claim));
        place.write("tools.py", "def greet() -> dict:\n    return {}\n");
        place
    }

    fn folder(&self) -> PathBuf {
        self.dir.path().join("demo")
    }

    fn write(&self, path: &str, text: &str) -> PathBuf {
        let path = self.folder().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    fn sign(&self, version: &str) {
        let tree = Tree::read(&self.folder()).unwrap();
        let record = trust::sign(&tree, "demo", version, "somebody", &self.key);
        fs::write(self.folder().join("signature.json"), record).unwrap();
    }

    fn list(&self) -> PathBuf {
        self.dir.path().join("trusted-keys.json")
    }

    fn trust(&self, role: Role, namespaces: Option<&str>) {
        let key = TrustedKey {
            key: self.key.public_key(),
            publisher: "Ada".to_owned(),
            role,
            namespaces: namespaces.map(|one| vec![one.to_owned()]),
        };
        TrustStore::trust(&self.list(), &key).unwrap();
    }

    fn reading(&self) -> Reading {
        let bytes = fs::read(self.folder().join("SKILL.md")).unwrap();
        savoir_skill::read(savoir_skill::Source::from_bytes(bytes).unwrap(), None)
    }

    fn loaded_skill(&self) -> Result<LoadedSkill, LoadSkillError> {
        self.subject_of(&self.reading())
    }

    fn subject_of(&self, reading: &Reading) -> Result<LoadedSkill, LoadSkillError> {
        let (folder, store) = (self.folder(), TrustStore::read(&self.list()).unwrap());
        LoadedSkill::new(reading, &folder.join("SKILL.md"), Some(&folder), Trust::User, &store)
    }

    fn tier(&self) -> Tier {
        self.loaded_skill().unwrap().tier
    }

    /// Loads the skill, which must fail with this code and kind; returns the message.
    #[track_caller]
    fn fails(&self, code: &str, fault: Fault) -> String {
        let error = self.loaded_skill().expect_err(code);
        assert_eq!(error.code(), code, "{error}");
        let error = RunError::from(error);
        assert_eq!((&*error.code, error.fault), (code, fault), "{error}");
        error.to_string()
    }
}

fn text(version: &str, claim: &str) -> String {
    format!(
        "---\nname: demo\nversion: {version}\ndescription: Says hello. Use when greeting.\nauthor: Ada\n\
         license: MIT\npermissions: []\ntools:\n  - name: greet\n    description: Greet\n\
         security_tier: {claim}\n---\n\n# Demo\n"
    )
}

/// A signed skill whose key is trusted.
fn verified() -> Place {
    let place = Place::new("verified");
    place.trust(Role::Amd, None);
    place.sign("1.0.0");
    assert_eq!(place.tier(), Verified);
    place
}

#[test]
fn tier_is_the_lower_of_claim_and_signature() {
    for (claim, as_publisher, as_vendor) in [
        ("experimental", Experimental, Experimental),
        ("community", Community, Community),
        ("verified", Community, Verified),
    ] {
        let place = Place::new(claim);
        assert_eq!(place.tier(), Experimental, "{claim}, not signed");
        place.sign("1.0.0");
        assert_eq!(place.tier(), Experimental, "{claim}, by a stranger");
        place.trust(Role::Publisher, None);
        assert_eq!(place.tier(), as_publisher, "{claim}");
        place.trust(Role::Amd, None);
        assert_eq!(place.tier(), as_vendor, "{claim}");
        place.trust(Role::Amd, Some("other-*"));
        assert_eq!(place.tier(), Experimental, "{claim}, trusted for other skills");
        TrustStore::distrust(&place.list(), &place.key.key_id()).unwrap();
        assert_eq!(place.tier(), Experimental, "{claim}, trusted no more");
    }
}

#[test]
fn signer_phrase_uses_no_text_of_the_key() {
    let place = Place::new("verified");
    let signed = || place.loaded_skill().unwrap().signers.signed();
    let id = place.key.key_id();
    assert_eq!(signed(), None);
    place.sign("1.0.0");
    // The name that the untrusted key claims is not shown.
    let stranger = format!("by the key {id}, which is not trusted for it here");
    assert_eq!(signed(), Some(stranger));
    place.trust(Role::Publisher, None);
    assert_eq!(signed(), Some(format!("by Ada (publisher), key {id}")));
}

#[test]
fn changed_signed_files_are_refused() {
    let place = verified();
    let tools = fs::read_to_string(place.folder().join("tools.py")).unwrap();
    place.write("tools.py", "def greet() -> dict:\n    return {'evil': 1}\n");
    let said = place.fails("file_changed", Fault::Refused);
    assert!(said.contains("`tools.py` is not what was signed"), "{said}");
    fs::remove_file(place.folder().join("tools.py")).unwrap();
    place.fails("file_missing", Fault::Refused);
    place.write("tools.py", &tools);
    place.write("lib/more.py", "");
    place.fails("file_additional", Fault::Refused);
    fs::remove_file(place.folder().join("lib/more.py")).unwrap();
    assert_eq!(place.tier(), Verified);
    // An invalid signature by an untrusted key counts as no signature: anyone could remove it.
    TrustStore::distrust(&place.list(), &place.key.key_id()).unwrap();
    place.write("tools.py", "");
    assert_eq!(place.tier(), Experimental);
    place.write("signature.json", "{");
    assert_eq!(place.tier(), Experimental);
    fs::remove_file(place.folder().join("signature.json")).unwrap();
    assert_eq!(place.tier(), Experimental, "without a signature it is anybody's");
}

#[test]
fn signature_is_valid_for_one_version_and_key() {
    let place = verified();
    place.write("SKILL.md", &text("1.0.1", "verified"));
    place.fails("signature_skill_version", Fault::Refused);
    // The signature is for another version than the one that SKILL.md declares.
    place.sign("1.0.0");
    place.fails("signature_skill_version", Fault::Refused);
    place.sign("1.0.1");
    assert_eq!(place.tier(), Verified);
    TrustStore::revoke(&place.list(), &place.key.key_id(), "the laptop was stolen").unwrap();
    let said = place.fails("key_revoked", Fault::Refused);
    assert!(said.contains("the laptop was stolen"), "{said}");
}

#[test]
fn unsigned_files_make_a_skill_experimental() {
    for path in [
        "node_modules/x/index.js",
        "__pycache__/tools.cpython-312.pyc",
        "fast.pyc",
        "lib/.venv/bin/activate",
        "lib/.git/run.py",
        ".savoir/run.py",
        ".pytest_cache/x",
    ] {
        let place = verified();
        place.write(path, "x");
        let loaded_skill = place.loaded_skill().unwrap();
        assert_eq!(loaded_skill.tier, Experimental, "{path}");
        assert_eq!(loaded_skill.signers.uncovered, [path]);
        assert_eq!(loaded_skill.signers.attestation.tier, Verified, "{path}");
    }
    // Notes of Savoir and the system, and version control folders, which a run does not see.
    let place = verified();
    for path in [".savoir/observed.json", ".DS_Store", "lib/Thumbs.db", ".git/hooks/x"] {
        place.write(path, "x");
        assert_eq!(place.tier(), Verified, "{path}");
    }
    let note = place.write(".DS_Store", "#!/bin/sh\n");
    fs::set_permissions(note, fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(place.tier(), Experimental, "a note that can be started");
}

#[test]
fn signature_covers_link_targets() {
    let place = Place::new("verified");
    place.trust(Role::Amd, None);
    symlink("tools.py", place.folder().join("again.py")).unwrap();
    place.sign("1.0.0");
    assert_eq!(place.tier(), Verified);
    // The two files have the same content now, but a later change of the unsigned one would go
    // unnoticed.
    place.write(".git/real.py", &fs::read_to_string(place.folder().join("tools.py")).unwrap());
    fs::remove_file(place.folder().join("again.py")).unwrap();
    symlink(".git/real.py", place.folder().join("again.py")).unwrap();
    place.fails("link", Fault::CannotStart);
    fs::remove_file(place.folder().join("again.py")).unwrap();
    symlink("/etc/hostname", place.folder().join("again.py")).unwrap();
    place.fails("link", Fault::CannotStart);
    fs::remove_file(place.folder().join("signature.json")).unwrap();
    assert_eq!(place.tier(), Experimental, "who claims nothing need not be fit to be signed");
}

#[test]
fn file_changed_during_loading_is_an_error() {
    let place = verified();
    let reading = place.reading();
    place.write(
        "SKILL.md",
        &text("1.0.0", "verified").replace("permissions: []", "permissions: ['network:read']"),
    );
    place.sign("1.0.0");
    let changed = place.subject_of(&reading).unwrap_err();
    assert_eq!(changed.code(), "skill-changed", "{changed}");
    assert_eq!(RunError::from(changed).fault, Fault::Refused);
    fs::remove_file(place.folder().join("signature.json")).unwrap();
    let changed = place.subject_of(&reading).unwrap_err();
    assert_eq!(changed.code(), "skill-changed", "signed or not: {changed}");
}

#[test]
fn change_after_approval_is_refused() {
    let place = verified();
    let loaded_skill = place.loaded_skill().unwrap();
    assert_eq!(loaded_skill.refuse_changed(), Ok(()));
    let tools = fs::read_to_string(place.folder().join("tools.py")).unwrap();
    for path in ["tools.py", "__pycache__/tools.pyc", "SKILL.md", "signature.json"] {
        let before = fs::read(place.folder().join(path)).ok();
        place.write(path, "x");
        let error = loaded_skill.refuse_changed().unwrap_err();
        assert_eq!((&*error.code, error.fault), ("skill-changed", Fault::Refused), "{path}");
        match before {
            Some(bytes) => fs::write(place.folder().join(path), bytes).unwrap(),
            None => fs::remove_dir_all(place.folder().join("__pycache__")).unwrap(),
        }
        assert_eq!(loaded_skill.refuse_changed(), Ok(()), "{path}");
    }
    assert_eq!(fs::read_to_string(place.folder().join("tools.py")).unwrap(), tools);
    fs::remove_dir_all(place.folder()).unwrap();
    assert!(loaded_skill.refuse_changed().is_err());
}

#[test]
fn skill_inside_version_control_data_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    fs::create_dir(root.join(".git")).unwrap();
    fs::write(root.join(".git/real.md"), "text").unwrap();
    symlink(".git/real.md", root.join("SKILL.md")).unwrap();
    let source = savoir_skill::Source::from_bytes(b"text".to_vec()).unwrap();
    let reading = savoir_skill::read(source, None);
    let (file, store) = (root.join("SKILL.md"), TrustStore::default());
    let found = LoadedSkill::new(&reading, &file, Some(root), Trust::User, &store);
    assert!(matches!(found, Err(LoadSkillError::History { .. })), "{found:?}");
}
