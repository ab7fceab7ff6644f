//! Tests versions, ranges and resolution.

use super::*;

fn version(text: &str) -> Version {
    parse_version(text).unwrap()
}

fn matches(text: &str, range: &str) -> bool {
    VersionRange::parse(range).unwrap().matches(&version(text))
}

fn resolve(versions: &[&str], range: &str) -> Option<String> {
    let versions: Vec<_> = versions.iter().map(|text| version(text)).collect();
    VersionRange::parse(range).unwrap().resolve(&versions).map(ToString::to_string)
}

#[test]
fn versions_are_strict() {
    for text in ["0.0.0", "1.2.3-rc.1", "1.2.3--", "1.2.3-0a+007", "10.20.30+x.y"] {
        assert!(parse_version(text).is_ok(), "{text}");
    }
    for text in
        ["", "1", "1.2", "1.2.3.4", "V1.2.3", " 1.2.3", "1.02.3", "1.2.3-", "1.2.3-01", "1.2.3+"]
    {
        assert!(parse_version(text).is_err(), "{text:?}");
    }
}

#[test]
fn any_is_spelled_four_ways() {
    for range in ["", "  ", "*", "LATEST", "Any", ",", " , ,"] {
        assert!(matches("7.8.9", range), "{range:?}");
        assert!(VersionRange::parse(range).unwrap().is_any());
    }
}

#[test]
fn table_of_clauses() {
    for (range, inside, outside) in [
        ("1.2.3", vec!["1.2.3", "1.2.3+b"], vec!["1.2.4", "1.2.2"]),
        ("1.2", vec!["1.2.0", "1.2.9"], vec!["1.1.9", "1.3.0"]),
        ("1", vec!["1.0.0", "1.9.9"], vec!["0.9.9", "2.0.0"]),
        ("==1.2", vec!["1.2.0"], vec!["1.2.1"]),
        ("==1.2.3+x", vec!["1.2.3", "1.2.3+y"], vec!["1.2.4"]),
        ("!=1.2", vec!["1.2.1"], vec!["1.2.0"]),
        (">1", vec!["1.0.1", "2.0.0"], vec!["1.0.0"]),
        (">=1.2", vec!["1.2.0"], vec!["1.1.9"]),
        ("<1.2", vec!["1.1.9"], vec!["1.2.0"]),
        ("<=1.2", vec!["1.2.0"], vec!["1.2.1"]),
        ("^1.2.3", vec!["1.2.3", "1.99.0"], vec!["1.2.2", "2.0.0"]),
        ("^0.2.3", vec!["0.2.3", "0.2.9"], vec!["0.3.0", "0.2.2"]),
        ("^0.0.3", vec!["0.0.3"], vec!["0.0.4", "0.0.2"]),
        ("^1", vec!["1.0.0", "1.9.0"], vec!["2.0.0"]),
        ("^0", vec!["0.0.1", "0.9.0"], vec!["1.0.0"]),
        ("^0.0", vec!["0.0.0", "0.0.9"], vec!["0.1.0"]),
        ("~1.2.3", vec!["1.2.3", "1.2.9"], vec!["1.2.2", "1.3.0"]),
        ("~1.2", vec!["1.2.0", "1.2.9"], vec!["1.3.0"]),
        ("~1", vec!["1.0.0", "1.9.0"], vec!["2.0.0"]),
        ("~=1.2", vec!["1.2.0", "1.9.0"], vec!["1.1.0", "2.0.0"]),
        ("~=1.2.3", vec!["1.2.3", "1.2.9"], vec!["1.3.0", "1.2.2"]),
        (" >= 1.2 ,, < 2 ", vec!["1.2.0", "1.9.9"], vec!["1.1.0", "2.0.0"]),
    ] {
        for text in inside {
            assert!(matches(text, range), "{text} should be in {range}");
        }
        for text in outside {
            assert!(!matches(text, range), "{text} should not be in {range}");
        }
    }
}

#[test]
fn unreadable_ranges_are_errors() {
    for range in [
        "1.x", "1.*", "x", "v1.0.0", "^v1", "1.2.3.4", "1 || 2", "1.0.0 - 2.0.0", "=1.0", "=>1",
        "1.0 2.0", ">=1 <2", "~=1", ">=", "^", "01.2.3", "1.02", "1.", ".1", "1..2", "1.0-",
        "1.0+", "*, 1.0", "9.0.0, nonsense", "===1.0", "> =1", "latest-1", "-1",
    ] {
        assert!(VersionRange::parse(range).is_err(), "{range:?}");
    }
    assert_eq!(VersionRange::parse("1||2"), Err(RangeError::Alternatives));
    assert!(matches!(
        VersionRange::parse("~= 1"),
        Err(RangeError::CompatibleNeedsTwoNumbers { .. })
    ));
}

#[test]
fn pre_releases_must_be_named() {
    assert!(!matches("1.0.0-rc.1", "*"));
    assert!(!matches("1.1.0-rc.1", "^1.0.0"));
    assert!(matches("1.0.0-rc.2", ">=1.0.0-rc.1"));
    assert!(matches("1.5.0-beta", ">=1.0.0-rc.1, <2.0.0"));
    assert!(matches("1.0.0-rc.1", "1.0.0-rc.1"));
    assert!(!matches("2.0.0-rc.1", "^1.0.0-rc.1"));
    assert!(!matches("2.0.0-rc.1", ">=1.0.0-rc.1, <2.0.0"));
    assert!(matches("2.0.0-alpha", "<2.0.0-rc.1"));
}

#[test]
fn resolution_has_two_phases() {
    assert_eq!(resolve(&["1.0.0", "1.1.0-rc.1"], "^1"), Some("1.0.0".into()));
    assert_eq!(resolve(&["0.9.0", "1.1.0-rc.1", "1.1.0-rc.2"], "^1"), Some("1.1.0-rc.2".into()));
    assert_eq!(resolve(&["2.0.0-rc.1"], "<2.0.0"), None);
    assert_eq!(resolve(&["2.0.0-rc.1"], "<=2.0.0"), Some("2.0.0-rc.1".into()));
    assert_eq!(resolve(&["1.2.0-rc.1"], "1.2"), Some("1.2.0-rc.1".into()));
    assert_eq!(resolve(&["1.2.0-rc.1", "1.3.0-rc.1"], "*"), Some("1.3.0-rc.1".into()));
    assert_eq!(resolve(&["1.10.0", "1.9.0"], "1"), Some("1.10.0".into()));
    assert_eq!(resolve(&["1.0.0"], ">1"), None);
    assert_eq!(resolve(&[], "*"), None);
}

#[test]
fn largest_numbers_do_not_overflow() {
    let largest = format!("{0}.{0}.{0}", u64::MAX);
    for op in ["^", "~", "~=", ""] {
        assert!(matches(&largest, &format!("{op}{largest}")));
    }
    assert!(matches(&largest, &format!("{}", u64::MAX)));
    assert!(VersionRange::parse("99999999999999999999").is_err());
}

#[test]
fn range_keeps_its_clauses_and_source_text() {
    let range = VersionRange::parse(" >=1.2, <2 ").unwrap();
    assert_eq!(range.to_string(), " >=1.2, <2 ");
    assert_eq!(range.clauses().len(), 2);
    assert_eq!(range.clauses()[0].op, Op::AtLeast);
    assert_eq!(
        range.clauses()[1].bounds(),
        (Bound::Unbounded, Bound::Excluded(Version::new(2, 0, 0)))
    );
    assert_eq!(range.clauses()[0].version.patch, None);
}

#[test]
fn references() {
    let reference = SkillRef::parse("web-search@^1.2").unwrap();
    assert_eq!(
        (reference.name.as_str(), reference.range.to_string()),
        ("web-search", "^1.2".into())
    );
    assert_eq!(reference.to_string(), "web-search@^1.2");
    assert!(SkillRef::parse("web-search").unwrap().range.is_any());
    assert_eq!(SkillRef::parse("web-search@").unwrap().to_string(), "web-search");
    assert!(matches!(SkillRef::parse("@1.0"), Err(SkillRefError::NoName(_))));
    assert!(matches!(SkillRef::parse("a@b"), Err(SkillRefError::Range(_))));
}
