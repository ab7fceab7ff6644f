use std::{fs, path::Path, thread};

use super::*;
use crate::{Home, StoreError};

fn store() -> (tempfile::TempDir, Approvals) {
    let dir = tempfile::tempdir().unwrap();
    let approvals = Approvals::new(&Home::at(dir.path()));
    (dir, approvals)
}

fn at(path: &str) -> Approval {
    let skill = path.rsplit('/').next().unwrap().to_owned();
    Approval::new(&Request { path: path.into(), skill, ..request() }, "me")
}

#[test]
fn saved_approvals_are_read_back() {
    let (dir, approvals) = store();
    assert_eq!(approvals.list().unwrap(), []);
    assert_eq!(approvals.extra_for(Path::new("/a")).unwrap(), ExtraGrants::default());
    assert!(!dir.path().join("data").exists(), "reading makes nothing");

    let extra = ExtraGrants { hosts: vec!["example.com".to_owned()], ..ExtraGrants::default() };
    let wide = Approval::new(&Request { extra: extra.clone(), ..request() }, "me");
    for approval in [at("/z/one"), at("/a/two"), wide.clone()] {
        approvals.save(approval).unwrap();
    }
    let paths: Vec<_> = approvals.list().unwrap().into_iter().map(|kept| kept.path).collect();
    assert_eq!(paths, ["/a/two", "/home/me/skills/git-helper", "/z/one"].map(PathBuf::from));
    assert_eq!(approvals.get(&wide.path).unwrap(), Some(wide.clone()));
    assert_eq!(approvals.extra_for(&wide.path).unwrap(), extra);

    // A second approval of the same path replaces the first.
    let narrow = Approval::new(&request(), "you");
    approvals.save(narrow.clone()).unwrap();
    assert_eq!(approvals.get(&wide.path).unwrap(), Some(narrow));
    assert_eq!(approvals.list().unwrap().len(), 3);
}

/// Does what a run does: adds the stored extra permissions to the request, then compares the
/// request with the approval.
#[test]
fn added_permissions_are_valid_until_the_skill_changes() {
    let (_dir, approvals) = store();
    let extra = ExtraGrants { write: vec!["/tmp/out".to_owned()], ..ExtraGrants::default() };
    let approved = Request { extra, ..request() };
    approvals.save(Approval::new(&approved, "me")).unwrap();

    let again = Request { extra: approvals.extra_for(&approved.path).unwrap(), ..request() };
    let kept = approvals.get(&again.path).unwrap();
    assert!(matches!(decide(&again, kept.as_ref()), Verdict::Run { .. }));
    let changed = Request { digest: "00".repeat(32), ..again };
    assert!(matches!(decide(&changed, kept.as_ref()), Verdict::Ask { .. }));
}

#[test]
fn revoking_by_path_by_name_and_all() {
    let (dir, approvals) = store();
    let real = dir.path().canonicalize().unwrap().join("skills/here");
    fs::create_dir_all(&real).unwrap();
    fs::write(real.join("SKILL.md"), "").unwrap();
    let real = real.to_str().unwrap();
    let keep_all = || {
        for path in [real, "/gone/x", "/a/twin", "/b/twin", "/c/rest"] {
            approvals.save(at(path)).unwrap();
        }
    };
    keep_all();
    for (what, count) in [
        ("nothing-such", 0),
        ("", 0),
        ("twin", 2),
        ("/gone/x/", 1),
        ("/gone/x", 0),
        (&format!("{real}/../here/SKILL.md"), 1),
        ("rest", 1),
    ] {
        assert_eq!(approvals.revoke(what).unwrap().len(), count, "{what}");
    }
    assert_eq!(approvals.list().unwrap(), []);
    keep_all();
    assert_eq!(approvals.revoke_all().unwrap().len(), 5);
    assert_eq!(approvals.revoke_all().unwrap().len(), 0);
}

#[test]
fn a_damaged_file_is_named_and_stays() {
    let (_dir, approvals) = store();
    approvals.save(at("/a")).unwrap();
    for text in ["", "{\"version\": 1", "[]", "{\"version\":1,\"approvals\":[{\"path\":7}]}"] {
        fs::write(approvals.file(), text).unwrap();
        let errors = [
            approvals.list().unwrap_err(),
            approvals.save(at("/b")).unwrap_err(),
            approvals.revoke_all().unwrap_err(),
        ];
        for error in errors {
            assert!(matches!(&error, StoreError::Corrupt { .. }), "{error}");
            assert!(error.to_string().contains("approvals.json is damaged: "), "{error}");
            assert!(error.help().contains("move it away"), "{}", error.help());
        }
        assert_eq!(fs::read_to_string(approvals.file()).unwrap(), text);
    }
    fs::write(approvals.file(), "{\"version\": 2, \"whatever\": 1}").unwrap();
    assert!(matches!(approvals.save(at("/b")), Err(StoreError::Newer { found: 2, .. })));
}

#[test]
fn concurrent_writers_lose_nothing() {
    let (dir, approvals) = store();
    thread::scope(|scope| {
        for writer in 0..8 {
            let approvals = &approvals;
            scope.spawn(move || {
                for n in 0..10 {
                    approvals.save(at(&format!("/{writer}/{n}"))).unwrap();
                    // A concurrent reader never sees a partly written file.
                    approvals.list().unwrap();
                }
            });
        }
    });
    assert_eq!(approvals.list().unwrap().len(), 80);
    let mut left: Vec<_> = fs::read_dir(dir.path().join("data"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    assert_eq!(left, ["approvals.json", "approvals.lock"]);
}

#[cfg(unix)]
#[test]
fn file_writable_by_others_is_refused() {
    use std::os::unix::fs::PermissionsExt as _;

    let (_dir, approvals) = store();
    approvals.save(at("/a")).unwrap();
    let file = approvals.file();
    let folder = file.parent().unwrap();
    for (path, open, closed) in
        [(folder, 0o777, 0o700), (folder, 0o720, 0o700), (&file, 0o602, 0o644)]
    {
        fs::set_permissions(path, fs::Permissions::from_mode(open)).unwrap();
        for error in [approvals.list().unwrap_err(), approvals.save(at("/b")).unwrap_err()] {
            assert!(matches!(&error, StoreError::Exposed { path: found } if found == path));
        }
        fs::set_permissions(path, fs::Permissions::from_mode(closed)).unwrap();
        assert_eq!(approvals.list().unwrap().len(), 1);
    }
}

#[cfg(unix)]
#[test]
fn file_is_readable_by_its_owner_only() {
    use std::os::unix::fs::PermissionsExt as _;

    let (_dir, approvals) = store();
    approvals.save(at("/a")).unwrap();
    for file in [approvals.file(), approvals.file().with_extension("lock")] {
        assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
