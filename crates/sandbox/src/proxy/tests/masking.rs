//! Tests secrets in requests and responses.

use base64::{Engine, engine::general_purpose::STANDARD};

use super::{origin::HELLO, *};

#[test]
fn secrets_reach_granted_hosts_over_tls() {
    let origin = Origin::tls(&["a.example"], HELLO);
    let endpoint = format!("a.example:{}", origin.port);
    let grants = vec![
        grant(MethodGroup::Read, "a.example", origin.port),
        grant(MethodGroup::Write, "a.example", origin.port),
    ];
    let run = Run::with(grants, secret(), origin.trust());
    let basic = STANDARD.encode(format!("user:{MARK}"));
    run.talk_inside(
        &endpoint,
        format!(
            "GET /?key={MARK} HTTP/1.1\r\nHost: {endpoint}\r\nX-Key: Bearer {MARK}\r\n\
             Authorization: Basic {basic}\r\nAccept-Encoding: gzip\r\n\r\n"
        ),
    );
    let received = origin.received().pop().unwrap();
    assert!(received.starts_with("GET /?key=the-real%2Fvalue%2B1 HTTP/1.1\r\n"), "{received}");
    assert!(received.contains(&format!("X-Key: Bearer {VALUE}\r\n")));
    let basic = STANDARD.encode(format!("user:{VALUE}"));
    assert!(received.contains(&format!("Authorization: Basic {basic}\r\n")));
    assert!(received.contains("Accept-Encoding: identity\r\n"));
    assert!(!received.contains("gzip"));

    let body = format!("{{\"key\": \"{MARK}\"}}");
    run.talk_inside(
        &endpoint,
        format!(
            "POST / HTTP/1.1\r\nHost: {endpoint}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        ),
    );
    let received = origin.received().pop().unwrap();
    assert!(
        received.ends_with("\r\nContent-Length: 27\r\n\r\n{\"key\": \"the-real/value+1\"}"),
        "{received}"
    );
    let events = run.proxy.stop().0;
    assert!(!serde_json::to_string(&events).unwrap().contains("real"));
}

#[test]
fn secrets_are_not_sent_in_refused_requests() {
    let origin = Origin::tls(&["a.example", "b.example"], HELLO);
    let grants = vec![grant(MethodGroup::Read, "a.example", origin.port)];
    let run = Run::with(grants, secret(), origin.trust());
    let port = origin.port;
    let endpoint = format!("a.example:{port}");
    let answer = run.talk_inside(
        &endpoint,
        format!("POST /{MARK} HTTP/1.1\r\nHost: {endpoint}\r\nX-Key: {MARK}\r\n\r\n"),
    );
    assert_eq!(status(&answer), "403");
    assert!(!answer.contains(VALUE));
    let answer = run.talk(format!(
        "CONNECT b.example:{port} HTTP/1.1\r\nHost: b.example:{port}\r\nX-Key: {MARK}\r\n\r\n"
    ));
    assert_eq!(status(&answer), "403");
    assert!(origin.received().is_empty());
    let debug = format!("{:?}", run.proxy);
    assert!(!debug.contains(VALUE) && !debug.contains(&format!("{:?}", VALUE.as_bytes())));
}

#[test]
fn secrets_need_tls_or_an_http_grant_or_loopback() {
    // Plain HTTP to the loopback address may contain secrets.
    let origin = Origin::plain(HELLO);
    let port = origin.port;
    let run = Run::with(vec![grant(MethodGroup::Read, "a.example", port)], secret(), Vec::new());
    run.talk(format!(
        "GET http://a.example:{port}/ HTTP/1.1\r\nHost: a.example:{port}\r\nX-Key: {MARK}\r\n\r\n"
    ));
    assert!(origin.received()[0].contains(VALUE));
    // Tests cannot connect to other addresses, so the check is called directly.
    let permit =
        |plain| super::super::grant_check::Permit { allow_private_addresses: false, plain };
    let may = super::super::forward::may_see_secrets;
    let far: IpAddr = "1.1.1.1".parse().unwrap();
    assert!(may(far, Scheme::Https, permit(false)));
    assert!(may(far, Scheme::Http, permit(true)));
    assert!(!may(far, Scheme::Http, permit(false)));
    assert!(!may("192.168.1.1".parse().unwrap(), Scheme::Http, permit(false)));
    assert!(may("127.0.0.1".parse().unwrap(), Scheme::Http, permit(false)));
}

#[test]
fn secrets_in_responses_are_replaced() {
    let long = "x".repeat(40_000);
    let bodies = [
        format!("Content-Length: {}\r\n\r\n{VALUE}{long}{VALUE}", 40_000 + 2 * VALUE.len()),
        format!("\r\n{VALUE}{long}{VALUE}"),
        format!(
            "Transfer-Encoding: chunked\r\n\r\n8\r\n{}\r\n8\r\n{}\r\n0\r\n\r\n",
            &VALUE[..8],
            &VALUE[8..]
        ),
    ];
    for rest in bodies {
        let origin = Origin::plain(format!("HTTP/1.1 200 {VALUE}\r\nX-Echo: <{VALUE}>\r\n{rest}"));
        let port = origin.port;
        let run =
            Run::with(vec![grant(MethodGroup::Read, "a.example", port)], secret(), Vec::new());
        let answer = run.talk(format!(
            "GET http://a.example:{port}/ HTTP/1.0\r\nHost: a.example:{port}\r\n\r\n"
        ));
        assert_eq!(status(&answer), "200", "{rest}");
        assert!(!answer.contains(VALUE));
        assert!(answer.contains(&format!("X-Echo: <{MARK}>\r\n")));
        assert!(answer.ends_with(MARK));
        // The response is chunked, because replacing secrets changes its length.
        let answer = run.talk(format!(
            "GET http://a.example:{port}/ HTTP/1.1\r\nHost: a.example:{port}\r\n\r\n"
        ));
        assert!(answer.contains("Transfer-Encoding: chunked\r\n"));
        assert!(!answer.contains("Content-Length"));
        assert!(!answer.contains(VALUE));
    }
}

#[test]
fn large_and_chunked_bodies_are_not_changed() {
    let origin = Origin::plain(HELLO);
    let port = origin.port;
    let run = Run::with(vec![grant(MethodGroup::Write, "a.example", port)], secret(), Vec::new());
    let head = format!("POST http://a.example:{port}/ HTTP/1.1\r\nHost: a.example:{port}\r\n");
    run.talk(format!(
        "{head}Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{MARK}\r\n0\r\n\r\n",
        MARK.len()
    ));
    assert!(origin.received()[0].ends_with(MARK));
    let long = "x".repeat(usize::try_from(limits::MAX_MASKED_BODY_BYTES).unwrap());
    let body = format!("{MARK}{long}");
    run.talk(format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()));
    assert!(origin.received()[1].ends_with(&body));
}

#[test]
fn secrets_are_not_recorded() {
    let run = Run::with(Vec::new(), secret(), Vec::new());
    run.talk(format!("GET http://a.example/{VALUE}/x HTTP/1.1\r\nHost: a.example\r\n\r\n"));
    assert_eq!(run.events(), [format!("GET a.example/{MARK}/x host-not-granted 1")]);
}
