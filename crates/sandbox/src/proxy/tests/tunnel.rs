//! Tests requests inside TLS.

use super::{origin::HELLO, *};

fn https(methods: MethodGroup, host: &str) -> (Origin, Run, String) {
    let origin = Origin::tls(&[host.trim_matches(['[', ']'])], HELLO);
    let run = Run::with(vec![grant(methods, host, origin.port)], Vec::new(), origin.trust());
    let endpoint = format!("{host}:{}", origin.port);
    (origin, run, endpoint)
}

#[test]
fn get_passes_and_post_does_not() {
    let (origin, run, endpoint) = https(MethodGroup::Read, "a.example");
    let get = format!("GET /x?y HTTP/1.1\r\nHost: {endpoint}\r\n\r\n");
    assert!(run.talk_inside(&endpoint, get).ends_with("hello"));
    let post = format!("POST /x HTTP/1.1\r\nHost: {endpoint}\r\nContent-Length: 4\r\n\r\nbody");
    let answer = run.talk_inside(&endpoint, post);
    assert!(answer.contains("network:write:a.example would be"), "{answer}");
    assert_eq!(origin.received().len(), 1);
    assert_eq!(
        run.events(),
        ["GET a.example/x allowed 1", "POST a.example/x method-not-granted 1"]
    );
}

#[test]
fn requests_in_a_tunnel_must_name_its_host() {
    let (origin, run, endpoint) = https(MethodGroup::Read, "a.example");
    let port = origin.port;
    for (request, expected) in [
        ("GET / HTTP/1.1\r\nHost: evil.com\r\n\r\n".to_owned(), "421"),
        (format!("GET / HTTP/1.1\r\nHost: evil.com:{port}\r\n\r\n"), "421"),
        ("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n".to_owned(), "421"),
        (format!("GET http://evil.com:{port}/ HTTP/1.1\r\nHost: {endpoint}\r\n\r\n"), "400"),
        ("GET / HTTP/1.1\r\n\r\n".to_owned(), "400"),
        (format!("CONNECT {endpoint} HTTP/1.1\r\nHost: {endpoint}\r\n\r\n"), "400"),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(), "400"),
        (format!("GET / HTTP/1.1\r\nHost: {endpoint}\r\nUpgrade: websocket\r\n\r\n"), "403"),
        (format!("TRACE / HTTP/1.1\r\nHost: {endpoint}\r\n\r\n"), "403"),
    ] {
        let answer = run.talk_inside(&endpoint, &request);
        assert_eq!(status(&answer), expected, "{request}: {answer}");
    }
    assert!(origin.received().is_empty());
}

#[test]
fn server_name_must_match_the_tunnel() {
    let (origin, run, endpoint) = https(MethodGroup::Read, "a.example");
    let mut stream = run.tunnel(&endpoint, "evil.com");
    let request = format!("GET / HTTP/1.1\r\nHost: {endpoint}\r\n\r\n");
    let error = stream.write_all(request.as_bytes()).unwrap_err();
    assert!(error.to_string().contains("certificate not valid for name"), "{error}");
    drop(stream);
    // A client that does not verify certificates receives the refusal.
    if let Some(answer) = clients::curl(&[
        "-sk",
        "--proxy",
        &format!("http://{}", run.address),
        "--connect-to",
        &format!("evil.com:{}:{endpoint}", origin.port),
        &format!("https://evil.com:{}/", origin.port),
    ]) {
        assert!(answer.contains("its TLS is for another name"), "{answer}");
    }
    assert!(origin.received().is_empty());
    assert!(run.events().iter().all(|event| event.contains("host-mismatch")));
}

#[test]
fn tunnels_without_tls_are_refused() {
    let (origin, run, endpoint) = https(MethodGroup::Write, "a.example");
    for inside in ["SSH-2.0-OpenSSH_9.6\r\n", "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n", "\0"] {
        let connect = format!("CONNECT {endpoint} HTTP/1.1\r\nHost: {endpoint}\r\n\r\n{inside}");
        let answer = run.talk(connect);
        assert!(answer.contains("only TLS is allowed in the tunnel"), "{answer}");
    }
    // Bytes that begin like a TLS handshake.
    let odd = format!("CONNECT {endpoint} HTTP/1.1\r\nHost: {endpoint}\r\n\r\n\x16GARBAGE");
    run.talk(odd);
    assert!(origin.received().is_empty());
    assert_eq!(run.events(), ["CONNECT a.example opaque-tunnel 4"]);
}

#[test]
fn addresses_need_no_server_name() {
    let (origin, run, endpoint) = https(MethodGroup::Read, "127.0.0.1");
    let request = format!("GET / HTTP/1.1\r\nHost: {endpoint}\r\n\r\n");
    assert!(run.talk_inside(&endpoint, request).ends_with("hello"));
    assert_eq!(origin.received().len(), 1);
    assert!(run.facts().is_empty());
}

#[test]
fn hosts_with_untrusted_certificates_are_refused() {
    let origin = Origin::tls(&["other.example"], HELLO);
    let endpoint = format!("a.example:{}", origin.port);
    let request = format!("GET / HTTP/1.1\r\nHost: {endpoint}\r\n\r\n");
    let grants = vec![grant(MethodGroup::Read, "a.example", origin.port)];
    for trust in [origin.trust(), Vec::new()] {
        let run = Run::with(grants.clone(), secret(), trust);
        let answer = run.talk_inside(&endpoint, &request);
        assert_eq!(status(&answer), "502", "{answer}");
        assert!(answer.contains("invalid peer certificate"), "{answer}");
        assert_eq!(run.events(), ["GET a.example/ unreachable 1"]);
    }
    assert!(origin.received().iter().all(|request| request == "nothing"));
}

#[test]
fn client_that_distrusts_the_authority_is_recorded() {
    let (_, run, endpoint) = https(MethodGroup::Read, "a.example");
    let other = Run::new(Vec::new());
    let stranger = Run { pem: other.pem.clone(), ..run };
    let mut stream = stranger.tunnel(&endpoint, "a.example");
    assert!(stream.write_all(b"GET").is_err());
    drop(stream);
    let deadline = Instant::now() + Duration::from_secs(5);
    while Instant::now() < deadline && stranger.proxy.state.events.lock().unwrap().is_empty() {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(stranger.events(), ["CONNECT a.example tls-failed 1"]);
}
