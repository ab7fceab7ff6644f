use super::*;

fn git(address: &str) -> LockedSource {
    let commit = "0123456789abcdef0123456789abcdef01234567".to_owned();
    LockedSource::Git { url: address.to_owned(), commit, path: Some("skills/pdf".into()) }
}

fn rule(text: &str) -> SourceRule {
    text.parse().unwrap()
}

#[test]
fn owner_on_github_covers_its_repositories_in_every_spelling() {
    for text in ["github:anthropics", "github:Anthropics", "github:anthropics/skills"] {
        for address in [
            "https://github.com/anthropics/skills",
            "https://github.com/anthropics/skills.git",
            "https://github.com/Anthropics/Skills",
            "https://GitHub.com/anthropics/skills",
            "https://github.com:443/anthropics/skills",
            "https://github.com/anthropics/skills?branch=main",
            "https://github.com/anthropics/skills?tag=v1",
            "git@github.com:anthropics/skills.git",
            "ssh://git@github.com/anthropics/skills.git",
            "ssh://git@github.com:22/anthropics/skills",
        ] {
            assert!(rule(text).covers(&git(address)), "{text} {address}");
        }
    }
}

#[test]
fn similar_addresses_are_not_covered() {
    let owner = rule("github:anthropics");
    for address in [
        "https://github.com.evil.org/anthropics/skills",
        "https://evil.org/github.com/anthropics",
        "https://evil.org/anthropics/skills",
        "https://github.com@evil.org/anthropics/skills",
        "https://anthropics@github.com/anthropics/skills",
        "https://github.com/evil/anthropics",
        "https://github.com/anthropics-evil/skills",
        "https://github.com/anthropicsx/skills",
        "https://github.com/anthropics/../evil/skills",
        "https://github.com/evil/../anthropics/skills",
        "https://github.com/anthropics%2f..%2fevil/skills",
        "https://github.com/%61nthropics/skills",
        "https://github.com//anthropics/skills",
        "https://github.com/anthropics",
        "https://github.com/anthropics/skills.wiki.git",
        "https://github.com:8443/anthropics/skills",
        "https://gist.github.com/anthropics/skills",
        "https://raw.githubusercontent.com/anthropics/skills",
        "http://github.com/anthropics/skills",
        "git://github.com/anthropics/skills",
        "file:///github.com/anthropics/skills",
        "file://github.com/anthropics/skills",
        "git@evil.org:github.com/anthropics/skills",
        "git@github.com.evil.org:anthropics/skills",
        "git@github.com:evil/../anthropics/skills",
        "git@github.com:anthropics/../evil/skills",
        "evil@github.com:anthropics/skills",
        "ssh://evil@github.com/anthropics/skills",
        "ssh://github.com/anthropics/skills",
        "ssh://git@github.com:2222/anthropics/skills",
        "https://gitlab.com/anthropics/skills",
        // Hosts serve commits of forks under the address of the original.
        "https://github.com/anthropics/skills?rev=0123456789abcdef0123456789abcdef01234567",
        "../github.com/anthropics/skills",
    ] {
        assert!(!owner.covers(&git(address)), "{address}");
    }
    for text in [
        "path+./github.com/anthropics/skills",
        "adopted+./skills/pdf#git+https://github.com/anthropics/skills#pdf",
        "url+https://github.com/anthropics/skills/archive/main.zip",
        "url+https://github.com/anthropics/skills/files/1/pdf.zip",
        "well-known+https://github.com/anthropics/skills",
        "registry+https://github.com/anthropics/skills",
    ] {
        assert!(!owner.covers(&text.parse().unwrap()), "{text}");
    }
    assert!(!rule("github:anthropics/skills").covers(&git("https://github.com/anthropics/other")));
}

#[test]
fn other_hosts() {
    let group = rule("gitlab:acme/tools");
    assert!(group.covers(&git("https://gitlab.com/acme/tools/skills.git")));
    assert!(group.covers(&git("https://gitlab.com/Acme/tools")));
    assert!(!group.covers(&git("https://gitlab.com/acme/toolset")));
    assert!(!group.covers(&git("https://github.com/acme/tools")));
    let own = rule("git:Git.Acme.example/Team");
    assert_eq!(own.to_string(), "git:git.acme.example/Team");
    assert!(own.covers(&git("https://git.acme.example/Team/skills")));
    assert!(own.covers(&git("git@git.acme.example:Team/skills.git")));
    assert!(!own.covers(&git("https://git.acme.example/team/skills")), "its case may count");
    assert!(!own.covers(&git("https://git.acme.example/Teams/skills")));
    assert!(!own.covers(&git("https://git.acme.example:8443/Team/skills")));
    assert!(!own.covers(&git("mallory@git.acme.example:Team/skills")));
    assert!(rule("git:git.acme.example").covers(&git("https://git.acme.example/a/b/c")));
    assert!(rule("git:git.acme.example:8443").covers(&git("https://git.acme.example:8443/a")));
    assert_eq!(rule("git:github.com/anthropics"), rule("github:Anthropics"));
}

#[test]
fn namespaces_of_a_registry() {
    let acme = rule("registry:https://Skills.example.com/registry/#acme");
    assert_eq!(acme.to_string(), "registry:https://skills.example.com/registry#acme");
    let covers = |rule: &SourceRule, text: &str| rule.covers(&text.parse().unwrap());
    assert!(covers(&acme, "registry+https://skills.example.com/registry#acme/pdf"));
    for text in [
        "registry+https://skills.example.com/registry#acme-evil/pdf",
        "registry+https://skills.example.com/registry#pdf/acme",
        "registry+https://skills.example.com/registry",
        "registry+https://skills.example.com/registry/deeper#acme/pdf",
        "registry+https://skills.example.com.evil.org/registry#acme/pdf",
        "registry+http://skills.example.com/registry#acme/pdf",
        "git+https://skills.example.com/registry#0123456789abcdef0123456789abcdef01234567",
    ] {
        assert!(!covers(&acme, text), "{text}");
    }
    let all = rule("registry:https://skills.example.com/registry");
    assert!(covers(&all, "registry+https://skills.example.com/registry"));
    assert!(covers(&all, "registry+https://skills.example.com/registry#acme/pdf"));
}

#[test]
fn invalid_rules_are_rejected() {
    for text in [
        "",
        "anthropics",
        "acme/*",
        "github:",
        "github:/",
        "github:*",
        "github:a/b/c",
        "github:a/../b",
        "github:https://github.com/anthropics",
        "git:",
        "git:github.com",
        "git:https://github.com/anthropics",
        "git:me@host.example/x",
        "git:host.example/../x",
        "registry:skills.example.com",
        "registry:https://skills.example.com#Acme!",
        "ftp:host.example",
    ] {
        assert!(text.parse::<SourceRule>().is_err(), "{text}");
    }
    assert!(SourceRule::parse_trusted("local").is_err());
    assert!(rule("local").covers(&"path+./x".parse().unwrap()));
}

#[test]
fn editing_sources_keeps_comments() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("deep").join(TrustedSources::FILE);
    assert_eq!(TrustedSources::read(&path).unwrap(), TrustedSources::default());
    assert!(!TrustedSources::remove(&path, &rule("github:acme")).unwrap());
    assert!(!path.exists(), "nothing is written for nothing");
    assert!(TrustedSources::add(&path, &rule("github:anthropics")).unwrap());
    assert!(TrustedSources::add(&path, &rule("gitlab:acme")).unwrap());
    assert!(!TrustedSources::add(&path, &rule("github:Anthropics")).unwrap());
    let text = fs::read_to_string(&path).unwrap();
    let list = "sources = [\n    \"github:anthropics\",\n    \"gitlab:acme\",\n]\n";
    assert_eq!(text, HEADER.replace("sources = []\n", list));
    let noted = text.replace("    \"gitlab", "    # colleagues\n    \"gitlab");
    fs::write(&path, &noted).unwrap();
    assert!(TrustedSources::add(&path, &rule("git:host.example/x")).unwrap());
    assert!(TrustedSources::remove(&path, &rule("github:anthropics")).unwrap());
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains("# colleagues\n    \"gitlab:acme\",\n    \"git:host.example/x\",\n]"));
    let sources = TrustedSources::read(&path).unwrap();
    assert_eq!(sources.rules().len(), 2);
    let found = sources.covers(&git("https://gitlab.com/acme/x"));
    assert_eq!(found.map(ToString::to_string).as_deref(), Some("gitlab:acme"));
    assert_eq!(sources.covers(&git("https://github.com/anthropics/skills")), None);
}

#[test]
fn errors_in_trusted_sources_have_position() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join(TrustedSources::FILE);
    for (text, end) in [
        ("sources = [\"github:a\",\n  \"nonsense\"]\n", ":2:3: "),
        ("source = []\n", ":1:1: there is no setting `source`"),
        ("sources = 1\n", ":1:11: "),
        ("sources = [\"local\"]\n", ":1:12: "),
    ] {
        fs::write(&path, text).unwrap();
        let error = TrustedSources::read(&path).unwrap_err().to_string();
        assert!(error.contains(end), "{error}");
        assert!(TrustedSources::add(&path, &rule("github:b")).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
}
