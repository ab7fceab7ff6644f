use super::*;

fn kept(request: &Request) -> Approval {
    Approval::new(request, "me")
}

/// `run`, `ask`, `warn` or `refuse`.
fn outcome(request: &Request, kept: Option<&Approval>) -> &'static str {
    match decide(request, kept) {
        Verdict::Run { .. } => "run",
        Verdict::Ask { warnings, .. } if warnings.is_empty() => "ask",
        Verdict::Ask { .. } => "warn",
        Verdict::Refuse { .. } => "refuse",
    }
}

fn reasons(request: &Request, kept: Option<&Approval>) -> Vec<String> {
    match decide(request, kept) {
        Verdict::Ask { reasons, .. } => reasons,
        other => panic!("{other:?}"),
    }
}

/// Columns: trust, tier, read-only, always ask, permission; then the outcome without a stored
/// approval, and with one.
#[test]
fn decision_table() {
    use Tier::{Community, Experimental, Verified};
    use Trust::{Bundled, Downloaded, Untrusted, User};

    let (git, web) = ("shell:execute:git", "network:read:example.com");
    for (trust, tier, read_only, always_ask, permission, first, later) in [
        (User, Experimental, false, false, git, "ask", "run"),
        (User, Experimental, true, false, git, "ask", "run"),
        (User, Experimental, true, false, web, "ask", "run"),
        (User, Experimental, false, true, git, "ask", "ask"),
        (User, Experimental, true, true, git, "ask", "ask"),
        (Bundled, Experimental, true, false, git, "run", "run"),
        (Bundled, Experimental, false, false, git, "ask", "run"),
        (Bundled, Experimental, true, true, git, "ask", "ask"),
        (Bundled, Community, false, false, git, "ask", "run"),
        (Bundled, Community, true, false, git, "run", "run"),
        (User, Community, false, false, git, "ask", "run"),
        (User, Community, false, false, web, "run", "run"),
        (User, Community, false, false, "shell:none", "run", "run"),
        (User, Community, false, true, web, "ask", "ask"),
        (User, Community, false, false, "env:read:TOKEN", "ask", "run"),
        (User, Community, false, false, "filesystem:write:./out/**", "ask", "run"),
        (User, Verified, false, false, git, "run", "run"),
        (User, Verified, false, true, git, "ask", "ask"),
        (Downloaded, Experimental, true, false, web, "warn", "run"),
        (Downloaded, Experimental, true, true, web, "ask", "ask"),
        (Untrusted, Experimental, true, false, web, "warn", "warn"),
        (Untrusted, Community, true, false, web, "warn", "warn"),
        (Untrusted, Verified, true, false, web, "warn", "warn"),
        (Untrusted, Verified, true, true, web, "warn", "warn"),
    ] {
        let permissions = permissions(&[permission]);
        let request = Request { permissions, trust, tier, read_only, always_ask, ..request() };
        let case = format!("{trust:?} {tier} {read_only} {always_ask} {permission}");
        assert_eq!(outcome(&request, None), first, "{case}");
        assert_eq!(outcome(&request, Some(&kept(&request))), later, "{case}");
        // An approval of other content has the same effect as no approval.
        let other = Request { digest: "00".repeat(32), ..request.clone() };
        assert_eq!(outcome(&request, Some(&kept(&other))), first, "{case}");
    }
}

#[test]
fn added_permissions_always_need_approval() {
    let extra = ExtraGrants { hosts: vec!["example.com".to_owned()], ..ExtraGrants::default() };
    let permissions = permissions(&["network:read:example.org"]);
    for (trust, tier) in [
        (Trust::User, Tier::Verified),
        (Trust::User, Tier::Community),
        (Trust::Bundled, Tier::Experimental),
    ] {
        let (extra, permissions) = (extra.clone(), permissions.clone());
        let wide = Request { trust, tier, read_only: true, extra, permissions, ..request() };
        assert_eq!(outcome(&wide, None), "ask", "{trust:?} {tier}");
        assert_eq!(outcome(&wide, Some(&kept(&wide))), "run", "{trust:?} {tier}");
        let narrow = Request { extra: ExtraGrants::default(), ..wide.clone() };
        assert_eq!(outcome(&wide, Some(&kept(&narrow))), "ask", "{trust:?} {tier}");
        assert_eq!(reasons(&wide, Some(&kept(&narrow))), ["you add: --allow-host example.com"]);
    }
}

#[test]
fn reasons_list_the_changes() {
    let then = kept(&request());
    let after = |change: fn(&mut Request)| {
        let mut now = request();
        change(&mut now);
        reasons(&now, Some(&then))
    };
    assert_eq!(reasons(&request(), None), ["it has not been approved yet"]);
    assert_eq!(after(|r| r.digest = "00".repeat(32)), ["SKILL.md or a file of the skill changed"]);
    assert_eq!(
        after(|r| r.permissions.push("network:write:api.example.com".parse().unwrap())),
        ["new permission: network:write:api.example.com"]
    );
    assert_eq!(
        after(|r| r.permissions.truncate(1)),
        ["no longer wants: filesystem:read:~/data/**"]
    );
    assert_eq!(
        after(|r| r.programs[0].path = "/opt/git".into()),
        ["git is now another file: /opt/git, it was /usr/bin/git"]
    );
    assert_eq!(
        after(|r| r.programs[0].sha256 = "00".repeat(32)),
        ["the content of git changed: /usr/bin/git"]
    );
    assert_eq!(
        after(|r| r.programs.push(program("less"))),
        ["runs another program: less, which is /usr/bin/less"]
    );
    assert_eq!(after(|r| r.programs.clear()), ["no longer runs, or no longer finds: git"]);
    assert_eq!(
        after(|r| r.path = "/elsewhere".into()),
        ["the answer that was kept is for another place: /home/me/skills/git-helper"]
    );
    // Severe changes come first, and the list is limited.
    let warn_about_many_permissions = after(|r| {
        r.digest = "00".repeat(32);
        r.permissions =
            (0..500).map(|n| format!("network:read:h{n}.example").parse().unwrap()).collect();
    });
    assert_eq!(warn_about_many_permissions.len(), 10, "{warn_about_many_permissions:?}");
    assert_eq!(warn_about_many_permissions[0], "SKILL.md or a file of the skill changed");
    assert!(
        warn_about_many_permissions[1].starts_with("new permission"),
        "{warn_about_many_permissions:?}"
    );
    assert_eq!(warn_about_many_permissions[7], "and 494 more new permissions, all of them below");
    // The limit does not hide a severe change after many harmless ones.
    let hidden = after(|r| {
        r.permissions =
            (0..500).map(|n| format!("network:read:h{n}.example").parse().unwrap()).collect();
        r.permissions.extend(permissions(&["filesystem:read:~/.ssh/**"]));
    });
    assert_eq!(hidden[0], "new permission: filesystem:read:~/.ssh/**");
    // A stored approval whose fingerprint was changed by hand, or has an older format.
    let mut odd = then.clone();
    odd.fingerprint = Fingerprint::of(&Request { path: "/".into(), ..request() });
    assert_eq!(reasons(&request(), Some(&odd)), ["the answer that was kept is of another format"]);
}

#[test]
fn changed_files_are_listed() {
    let with = |files: &[(&str, &str)], digest: &str| Request {
        files: files.iter().map(|(path, hash)| ((*path).into(), (*hash).into())).collect(),
        digest: digest.repeat(32),
        ..request()
    };
    let then = kept(&with(&[("SKILL.md", "1"), ("a.sh", "1"), ("old.sh", "1")], "aa"));
    let now = with(&[("SKILL.md", "1"), ("a.sh", "2"), ("new.sh", "1")], "bb");
    assert_eq!(
        reasons(&now, Some(&then)),
        ["files of the skill changed: a.sh, new.sh (new), old.sh (removed)"]
    );
}

#[test]
fn control_characters_in_reasons_are_escaped() {
    let mut now = request();
    now.permissions.push(Permission {
        domain: Domain::Database,
        level: Level::Read,
        scope: Some(format!("./{}", "x\u{202e}y".repeat(500))),
    });
    let reasons = reasons(&now, Some(&kept(&request())));
    assert!(reasons[0].contains("\\u{202e}"), "{reasons:?}");
    assert!(reasons[0].chars().count() < 300, "{reasons:?}");
}

#[test]
fn unenforceable_permissions_are_refused() {
    let with = |entries: &[&str]| Request { permissions: permissions(entries), ..request() };
    for bad in [
        with(&["filesystem:read:../x"]),
        with(&["network:read:*"]),
        with(&["shell:none", "shell:execute:git"]),
        with(&["desktop:control"]),
        with(&["mcp:connect:files"]),
        with(&["database:read:db.example.com"]),
        with(&["database:write"]),
    ] {
        assert_eq!(outcome(&bad, None), "refuse", "{:?}", bad.permissions);
        assert_eq!(outcome(&bad, Some(&kept(&bad))), "refuse", "{:?}", bad.permissions);
    }
    let one = |entry: &str| vec![entry.to_owned()];
    let none = ExtraGrants::default;
    for extra in [
        ExtraGrants { hosts: one("*"), ..none() },
        ExtraGrants { hosts: one("*:443"), ..none() },
        ExtraGrants { hosts: one("ftp://example.com/"), ..none() },
        ExtraGrants { hosts: one("example.com/x"), ..none() },
        ExtraGrants { hosts: one("example.com:99999"), ..none() },
        ExtraGrants { hosts: one("https://user@example.com"), ..none() },
        ExtraGrants { private_hosts: one("10.0.0.1/8"), ..none() },
        ExtraGrants { read: one("/a/../b"), ..none() },
        ExtraGrants { write: one(" "), ..none() },
        ExtraGrants { write: one("/a\u{1b}"), ..none() },
        ExtraGrants { programs: one("/usr/bin/git"), ..none() },
        ExtraGrants { programs: one("git,sh"), ..none() },
        ExtraGrants { env: one("A B"), ..none() },
    ] {
        let case = format!("{extra:?}");
        assert_eq!(outcome(&Request { extra, ..request() }, None), "refuse", "{case}");
    }
    let extra = ExtraGrants {
        hosts: one("*.example.com"),
        private_hosts: one("192.168.1.7"),
        read: one("~/x"),
        write: one("/tmp/x"),
        programs: one("gh"),
        env: one("GH_TOKEN"),
    };
    assert_eq!(outcome(&Request { extra, ..request() }, None), "ask");
    for host in ["127.0.0.1:8080", "[::1]:80", "*.example.com:8443", "https://example.com/x"] {
        let extra = ExtraGrants { hosts: one(host), private_hosts: one(host), ..none() };
        assert_eq!(outcome(&Request { extra, ..request() }, None), "ask", "{host}");
    }
}

#[cfg(unix)]
#[test]
fn non_utf8_path_is_refused() {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt as _};

    let odd = |byte: u8| Request { path: OsStr::from_bytes(&[b'/', byte]).into(), ..request() };
    assert_eq!(outcome(&odd(0xff), None), "refuse");
    assert_ne!(Fingerprint::of(&odd(0xff)), Fingerprint::of(&odd(0xfe)));
}
