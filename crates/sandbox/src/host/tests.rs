use super::*;

fn host(text: &str) -> Host {
    Host::parse(text).unwrap()
}

#[test]
fn hosts_have_one_canonical_spelling() {
    for (text, expected) in [
        ("example.com", "example.com"),
        ("EXAMPLE.Com", "example.com"),
        ("example.com.", "example.com"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("BÜCHER.example", "xn--bcher-kva.example"),
        ("XN--BCHER-KVA.example", "xn--bcher-kva.example"),
        ("ｅｘａｍｐｌｅ。com", "example.com"),
        ("r3---sn.example.com", "r3---sn.example.com"),
        ("_dmarc.example.com", "_dmarc.example.com"),
        ("localhost", "localhost"),
        ("1password.com", "1password.com"),
        ("0x7f.example", "0x7f.example"),
        ("127.0.0.1", "127.0.0.1"),
        ("[::1]", "[::1]"),
        ("[2606:4700::6810:84E5]", "[2606:4700::6810:84e5]"),
    ] {
        assert_eq!(host(text).to_string(), expected, "{text}");
        assert_eq!(host(expected), host(text), "{text} is not stable");
    }
}

#[test]
fn ambiguous_hosts_are_rejected() {
    for text in [
        "", ".", "example.com..", ".example.com", "a..b", "evil.com\0.example.com",
        "example.com\n", "exa mple.com", " example.com", "example.com\t", "user@example.com",
        "example.com%00", "example%2ecom", "example.com\\.evil.com", "example.com/evil.com",
        "example.com:80", "example.com#evil", "-example.com", "example-.com", "xn--a.example",
        "xn--.example", "a\u{2100}b.com", "0x7f.1", "0x7f000001", "0x", "017700000001",
        "2130706433", "127.1", "127.0.0.1.", "127.0.0.01", "127.0.0.256", "1.2.3.4.5", "example.1",
        "１２７.0.0.1", "127。0。0。1", "::1", "[::1", "::1]", "[0:0:0:0:0:0:0:1]", "[::0001]",
        "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[fe80::1%eth0]", "[127.0.0.1]", "[]",
    ] {
        assert!(Host::parse(text).is_err(), "{text:?} was read as {:?}", Host::parse(text));
    }
    assert!(Host::parse(&"a".repeat(64)).is_err());
    assert!(Host::parse(&"a".repeat(63)).is_ok());
    assert!(Host::parse(&["a"; 127].join(".")).is_ok());
    assert!(Host::parse(&["a"; 128].join(".")).is_err());
}

#[test]
fn errors_explain_what_to_write() {
    let error = |text: &str| Host::parse(text).unwrap_err().to_string();
    assert_eq!(
        error("evil\0.com"),
        "`\\u{0}` is not allowed in a host: only letters, digits, hyphens, underscores and dots are"
    );
    assert_eq!(
        error("0x7f.1"),
        "`0x7f.1` looks like an address; write an IPv4 address as four decimal numbers"
    );
    assert_eq!(error("[::ffff:10.0.0.1]"), "write the IPv4 address itself, `10.0.0.1`");
    assert_eq!(
        "*.com".parse::<HostPattern>().unwrap_err().to_string(),
        "`*.com` is too wide: name at least two labels, as in `*.example.com`"
    );
}

#[test]
fn patterns() {
    let pattern = |text: &str| text.parse::<HostPattern>().unwrap();
    for (text, name, expected) in [
        ("*", "example.com", true),
        ("*", "127.0.0.1", false),
        ("*", "[2606:4700::1]", false),
        ("brave.com", "brave.com", true),
        ("BRAVE.com.", "brave.com", true),
        ("brave.com", "api.brave.com", false),
        ("*.brave.com", "brave.com", true),
        ("*.brave.com", "api.brave.com", true),
        ("*.brave.com", "a.b.c.brave.com", true),
        ("*.brave.com", "evilbrave.com", false),
        ("*.brave.com", "brave.com.evil.com", false),
        ("*.brave.com", "brave.co", false),
        ("*.bücher.example", "www.xn--bcher-kva.example", true),
        ("127.0.0.1", "127.0.0.1", true),
        ("[::1]", "[::1]", true),
    ] {
        assert_eq!(pattern(text).matches(&host(name)), expected, "{text} and {name}");
        assert_eq!(pattern(&pattern(text).to_string()), pattern(text));
    }
    for text in
        ["*.com", "*.", "**", "*.*.com", "a.*.com", "*example.com", "*.127.0.0.1", "*.[::1]", "*.1"]
    {
        assert!(text.parse::<HostPattern>().is_err(), "{text}");
    }
    assert_eq!(serde_json::to_string(&pattern("*.Brave.com")).unwrap(), r#""*.brave.com""#);
}

#[test]
fn public_addresses() {
    for text in [
        "1.1.1.1", "8.8.8.8", "100.63.255.255", "100.128.0.1", "172.15.0.1", "172.32.0.1",
        "192.0.1.1", "198.17.0.1", "198.20.0.1", "223.255.255.255", "2606:4700::1",
        "2001:4860:4860::8888", "64:ff9b::101:101", "2002:101:101::1",
    ] {
        assert!(is_public(text.parse().unwrap()), "{text}");
    }
    for text in [
        "0.0.0.0",
        "0.1.2.3",
        "10.0.0.1",
        "100.64.0.1",
        "100.127.255.255",
        "127.0.0.1",
        "127.255.255.255",
        "169.254.169.254",
        "172.16.0.1",
        "172.31.255.255",
        "168.63.129.16",
        "192.0.0.1",
        "192.0.2.1",
        "192.88.99.1",
        "192.168.1.1",
        "198.18.0.1",
        "198.19.255.255",
        "198.51.100.1",
        "203.0.113.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::ffff:1.1.1.1",
        "::1.1.1.1",
        "64:ff9b::7f00:1",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::101:101",
        "100::1",
        "2001::1",
        "2001:0:4136:e378:8000:63bf:3fff:fdd2",
        "2001:2::1",
        "2001:10::1",
        "2001:db8::1",
        "2002:7f00:1::",
        "2002:a00:1::1",
        "3fff::1",
        "fc00::1",
        "fd00:ec2::254",
        "fe80::1",
        "fec0::1",
        "ff02::1",
    ] {
        assert!(!is_public(text.parse().unwrap()), "{text}");
    }
}

proptest::proptest! {
    /// A parsed host, printed and parsed again, is the same host, and contains only safe
    /// characters.
    #[test]
    fn parsing_is_stable(text in "\\PC{0,40}|[a-z0-9.x-]{1,20}|[0-9a-f:\\[\\]]{1,30}") {
        if let Ok(host) = Host::parse(&text) {
            let again = host.to_string();
            proptest::prop_assert_eq!(Host::parse(&again), Ok(host));
            proptest::prop_assert!(again.bytes().all(|b| b.is_ascii_lowercase()
                || b.is_ascii_digit() || b"-_.[]:".contains(&b)));
        }
    }
}
