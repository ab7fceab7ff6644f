use super::*;

type Change = fn(&mut Request);

#[test]
fn every_input_changes_the_fingerprint() {
    let changes: [(&str, Change); 15] = [
        ("path", |r| r.path = "/home/me/skills/git-helper2".into()),
        ("digest", |r| r.digest = "ce".repeat(32)),
        ("new permission", |r| r.permissions.push("network:read".parse().unwrap())),
        ("lost permission", |r| r.permissions.truncate(1)),
        ("scope", |r| r.permissions = permissions(&["shell:execute:git,sh"])),
        ("new program", |r| r.programs.push(program("less"))),
        ("lost program", |r| r.programs.clear()),
        ("program's name", |r| r.programs[0].name = "got".to_owned()),
        ("program's path", |r| r.programs[0].path = "/opt/bin/git".into()),
        ("program's content", |r| r.programs[0].sha256 = "ac".repeat(32)),
        ("read", |r| r.extra.read = vec!["/x".to_owned()]),
        ("write", |r| r.extra.write = vec!["/x".to_owned()]),
        ("host", |r| r.extra.hosts = vec!["x.org".to_owned()]),
        ("private host", |r| r.extra.private_hosts = vec!["x.org".to_owned()]),
        ("env", |r| r.extra.env = vec!["X".to_owned()]),
    ];
    let mut seen = vec![Fingerprint::of(&request())];
    for (what, change) in changes {
        let mut other = request();
        change(&mut other);
        let fingerprint = Fingerprint::of(&other);
        assert!(!seen.contains(&fingerprint), "{what}");
        seen.push(fingerprint);
    }
}

#[test]
fn order_duplicates_and_call_do_not_change_the_fingerprint() {
    let same: [(&str, Change); 5] = [
        ("order", |r| r.permissions.reverse()),
        ("repetition", |r| r.permissions.push(r.permissions[0].clone())),
        ("call", |r| r.command = vec!["git".to_owned(), "status".to_owned()]),
        ("tool", |r| r.tool = None),
        ("words", |r| r.description = "Other words, which the digest covers.".to_owned()),
    ];
    for (what, change) in same {
        let mut other = request();
        change(&mut other);
        assert_eq!(Fingerprint::of(&other), Fingerprint::of(&request()), "{what}");
    }
    let with = |read: &[&str]| {
        let read = read.iter().map(|path| (*path).to_owned()).collect();
        let extra = ExtraGrants { read, ..ExtraGrants::default() };
        Fingerprint::of(&Request { extra, ..request() })
    };
    assert_eq!(with(&["/a", "/b"]), with(&["/b", "/a", "/a"]));
}

/// Approvals on disk contain this fingerprint. If this test fails, every user has to approve every
/// skill again.
#[test]
fn the_digits_stay_the_same_between_versions() {
    assert_eq!(
        Fingerprint::of(&request()).as_str(),
        "1e75e218ae5f96d20d9e4677eb0c9bbf8f719c583713f91315375c8d7211649c"
    );
}

#[test]
fn a_short_form_has_at_least_twelve_digits() {
    let fingerprint = Fingerprint::of(&request());
    let all = fingerprint.as_str();
    assert_eq!((all.len(), fingerprint.short().len()), (64, 12));
    for length in 0..=64 {
        assert_eq!(matches_confirmation(&fingerprint, &all[..length]), length >= 32, "{length}");
    }
    assert!(matches_confirmation(&fingerprint, &all[..40].to_uppercase()));
    assert!(!matches_confirmation(&fingerprint, &format!("{all}0")));
    assert!(!matches_confirmation(&fingerprint, &all[1..40]));
    assert!(!matches_confirmation(&fingerprint, "ééééééééé"));
}
