//! Tests requests without TLS.

use super::{origin::HELLO, *};

fn get(host: &str, port: u16, path: &str) -> String {
    format!("GET http://{host}:{port}{path} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n")
}

#[test]
fn granted_get_is_forwarded() {
    let origin = Origin::plain(HELLO);
    let run = Run::new(vec![grant(MethodGroup::Read, "a.example", origin.port)]);
    let answer = run.talk(get("a.example", origin.port, "/x?y=z"));
    assert_eq!(status(&answer), "200");
    assert!(answer.ends_with("\r\nConnection: close\r\n\r\nhello"), "{answer}");
    let port = origin.port;
    assert_eq!(
        origin.received(),
        [format!("GET /x?y=z HTTP/1.1\r\nHost: a.example:{port}\r\nConnection: close\r\n\r\n")]
    );
    assert_eq!(run.facts(), ["a.example"]);
    assert_eq!(run.events(), ["GET a.example/x allowed 1"]);
}

#[test]
fn large_response_is_slowed_down() {
    // Three quarters of what the rate permits in a second, and a third of that is the burst.
    let body = "x".repeat(24 << 20);
    let length = body.len();
    let origin =
        Origin::plain(format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}"));
    let run = Run::new(vec![grant(MethodGroup::Read, "a.example", origin.port)]);
    let start = Instant::now();
    let answer = run.talk(get("a.example", origin.port, "/"));
    assert!(answer.ends_with(&body));
    assert!(start.elapsed() >= Duration::from_millis(500), "{:?}", start.elapsed());
}

#[test]
fn long_get_counts_as_writing() {
    let origin = Origin::plain(HELLO);
    let port = origin.port;
    let run = Run::new(vec![grant(MethodGroup::Read, "a.example", port)]);
    let facts = |path: usize, header: usize| {
        let (path, data) = ("p".repeat(path), "d".repeat(header));
        let head = format!("GET http://a.example:{port}/{path} HTTP/1.1\r\nHost: a.example:{port}");
        run.talk(format!("{head}\r\nX-Data: {data}\r\n\r\n"))
    };
    assert_eq!(status(&facts(100, 4_000)), "200");
    assert_eq!(status(&facts(4_000, 4_000)), "200");
    for (path, header) in [(1, 8_192), (1, 60_000), (4_200, 4_200), (8_200, 1)] {
        let answer = facts(path, header);
        assert_eq!(status(&answer), "403", "{path} {header}: {answer}");
        assert!(answer.contains("so long a URL or headers it counts as writing"), "{answer}");
    }
    assert_eq!(origin.received().len(), 2);
}

#[test]
fn refused_hosts_are_not_resolved() {
    let origin = Origin::plain(HELLO);
    let port = origin.port;
    let run = Run::new(vec![grant(MethodGroup::Read, "*.brave.com", port)]);
    for (request, expected) in [
        (get("evil.com", port, "/"), "403"),
        (get("evilbrave.com", port, "/"), "403"),
        (get("brave.com.evil.com", port, "/"), "403"),
        (get("127.0.0.1", port, "/"), "403"),
        (get("api.brave.com", 1, "/"), "403"),
        (
            format!("POST http://brave.com:{port}/ HTTP/1.1\r\nHost: brave.com:{port}\r\n\r\n"),
            "403",
        ),
        (
            format!(
                "GET http://brave.com:{port}/ HTTP/1.1\r\nHost: brave.com:{port}\r\n\
                 Transfer-Encoding: chunked\r\n\r\n4\r\ndata\r\n0\r\n\r\n"
            ),
            "403",
        ),
        (
            format!(
                "GET http://brave.com:{port}/ HTTP/1.1\r\nHost: brave.com:{port}\r\n\
                 Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
            ),
            "403",
        ),
        (format!("GET http://brave.com:{port}/ HTTP/1.1\r\nHost: evil.com:{port}\r\n\r\n"), "421"),
        (format!("GET / HTTP/1.1\r\nHost: brave.com:{port}\r\n\r\n"), "400"),
        ("CONNECT brave.com:22 HTTP/1.1\r\nHost: brave.com:22\r\n\r\n".to_owned(), "403"),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(), "400"),
    ] {
        let answer = run.talk(&request);
        assert_eq!(status(&answer), expected, "{request}: {answer}");
        assert!(answer.contains("\r\n\r\nsavoir: "), "{answer}");
    }
    assert!(run.facts().is_empty());
    assert!(origin.received().is_empty());
    assert_eq!(
        run.events(),
        [
            "GET evil.com/ host-not-granted 1",
            "GET evilbrave.com/ host-not-granted 1",
            "GET brave.com.evil.com/ host-not-granted 1",
            "GET 127.0.0.1/ host-not-granted 1",
            "GET api.brave.com/ port-not-granted 1",
            "POST brave.com/ method-not-granted 1",
            "GET brave.com/ method-not-granted 1",
            "GET brave.com/ upgrade 1",
            "GET brave.com/ host-mismatch 1",
            "GET / bad-request 1",
            "CONNECT brave.com port-not-granted 1",
            "  bad-request 1",
        ]
    );
}

#[test]
fn one_connection_one_request() {
    let origin = Origin::plain(HELLO);
    let run = Run::new(vec![grant(MethodGroup::Read, "a.example", origin.port)]);
    let twice = get("a.example", origin.port, "/1") + &get("evil.com", origin.port, "/2");
    let answer = run.talk(twice);
    assert_eq!(answer.matches("HTTP/1.1").count(), 1, "{answer}");
    assert_eq!(origin.received().len(), 1);
}

#[test]
fn hop_by_hop_headers_are_removed() {
    let origin = Origin::plain(
        "HTTP/1.1 200 OK\r\nConnection: X-Hop\r\nX-Hop: 1\r\nKeep-Alive: 5\r\nX-End: 2\r\n\
         Proxy-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n",
    );
    let port = origin.port;
    let run = Run::new(vec![grant(MethodGroup::Read, "a.example", port)]);
    let answer = run.talk(format!(
        "GET http://a.example:{port}/ HTTP/1.1\r\nHost: a.example:{port}\r\n\
         Proxy-Connection: keep-alive\r\nProxy-Authorization: Basic YTpi\r\nTE: trailers\r\n\
         Connection: keep-alive, X-Mine, host\r\nX-Mine: 1\r\nX-End: 2\r\nKeep-Alive: 1\r\n\r\n"
    ));
    assert_eq!(
        answer,
        "HTTP/1.1 200 OK\r\nX-End: 2\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    );
    assert_eq!(
        origin.received(),
        [format!(
            "GET / HTTP/1.1\r\nHost: a.example:{port}\r\nX-End: 2\r\nConnection: close\r\n\r\n"
        )]
    );
}

#[test]
fn bodies_are_forwarded() {
    let origin = Origin::plain(HELLO);
    let port = origin.port;
    let run = Run::new(vec![grant(MethodGroup::Write, "a.example", port)]);
    let head = format!("POST http://a.example:{port}/ HTTP/1.1\r\nHost: a.example:{port}\r\n");
    let big = "x".repeat(100_000);
    for (rest, expected) in [
        ("Content-Length: 4\r\n\r\nbody".to_owned(), "Content-Length: 4\r\n\r\nbody".to_owned()),
        (
            "Transfer-Encoding: chunked\r\n\r\n2;a=b\r\nbo\r\n2\r\ndy\r\n0\r\nX: y\r\n\r\n".into(),
            "Transfer-Encoding: chunked\r\n\r\nbody".into(),
        ),
        (
            format!("Content-Length: 100000\r\n\r\n{big}"),
            format!("Content-Length: 100000\r\n\r\n{big}"),
        ),
        ("Content-Length: 0\r\n\r\n".into(), "Content-Length: 0\r\n\r\n".into()),
    ] {
        let answer = run.talk(format!("{head}{rest}"));
        assert_eq!(status(&answer), "200", "{answer}");
        let received = origin.received().pop().unwrap();
        assert!(received.ends_with(&expected), "{received}");
    }
    let answer = run.talk(format!("{head}Transfer-Encoding: chunked\r\n\r\nzz\r\n"));
    assert_eq!(status(&answer), "400", "{answer}");
    assert_eq!(run.events(), ["POST a.example/ allowed 5"]);
}

#[test]
fn expect_continue_is_answered() {
    let origin = Origin::plain(HELLO);
    let port = origin.port;
    let run = Run::new(vec![grant(MethodGroup::Write, "a.example", port)]);
    let mut stream = run.connect();
    write!(
        stream,
        "PUT http://a.example:{port}/ HTTP/1.1\r\nHost: a.example:{port}\r\n\
         Expect: 100-continue\r\nContent-Length: 4\r\n\r\n"
    )
    .unwrap();
    let mut interim = [0; 25];
    stream.read_exact(&mut interim).unwrap();
    assert_eq!(interim.as_slice(), b"HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(b"body").unwrap();
    assert_eq!(status(&read_all(&mut stream)), "200");
    assert!(!origin.received()[0].contains("Expect"));
}

#[test]
fn responses_of_all_framings_are_forwarded() {
    for (method, answer, expected) in [
        (
            "GET",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
            "\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n",
        ),
        ("GET", "HTTP/1.0 200 OK\r\n\r\nhello", "\r\n5\r\nhello\r\n0\r\n\r\n"),
        (
            "GET",
            "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
            "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n",
        ),
        (
            "GET",
            "HTTP/1.1 304 Not Modified\r\nContent-Length: 99\r\n\r\n",
            "HTTP/1.1 304 Not Modified\r\nContent-Length: 99\r\nConnection: close\r\n\r\n",
        ),
        (
            "HEAD",
            "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 99\r\nConnection: close\r\n\r\n",
        ),
        ("GET", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", "502 Bad Gateway"),
        ("GET", "SSH-2.0-OpenSSH\r\n", "502 Bad Gateway"),
        ("GET", "", "502 Bad Gateway"),
        ("GET", "HTTP/1.1 200 OK\nContent-Length: 0\n\n", "502 Bad Gateway"),
        ("GET", "HTTP/2 200\r\n\r\n", "502 Bad Gateway"),
        ("GET", "HTTP/1.1 999 No\r\n\r\n", "502 Bad Gateway"),
        (
            "GET",
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
            "502 Bad Gateway",
        ),
        (
            "GET",
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            "502 Bad Gateway",
        ),
        ("GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", "502 Bad Gateway"),
    ] {
        let origin = Origin::plain(answer);
        let port = origin.port;
        let run = Run::new(vec![grant(MethodGroup::Read, "a.example", port)]);
        let got = run.talk(get("a.example", port, "/").replace("GET", method));
        assert!(got.contains(expected), "{method} {answer:?}: {got}");
    }
}

#[test]
fn http_1_0_clients_get_no_chunks() {
    let origin = Origin::plain(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    );
    let run = Run::new(vec![grant(MethodGroup::Read, "a.example", origin.port)]);
    let answer = run.talk(get("a.example", origin.port, "/").replace("HTTP/1.1", "HTTP/1.0"));
    assert!(answer.ends_with("Connection: close\r\n\r\nhello"), "{answer}");
}

#[test]
fn incomplete_response_stays_incomplete() {
    let origin = Origin::plain("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel");
    let run = Run::new(vec![grant(MethodGroup::Read, "a.example", origin.port)]);
    let answer = run.talk(get("a.example", origin.port, "/"));
    assert!(answer.ends_with("3\r\nhel\r\n"), "{answer}");
}

#[test]
fn private_addresses_need_a_private_grant() {
    let origin = Origin::plain(HELLO);
    let port = origin.port;
    let public = |host: &str| HostGrant {
        allow_private_addresses: false,
        ..grant(MethodGroup::Read, host, port)
    };
    let any = grant(MethodGroup::Read, "*", port);
    let run = Run::new(vec![public("a.example"), public("127.0.0.1"), any]);
    for host in ["a.example", "127.0.0.1", "other.example"] {
        let answer = run.talk(get(host, port, "/"));
        assert_eq!(status(&answer), "403", "{answer}");
        assert!(answer.contains("private address"), "{answer}");
    }
    assert!(origin.received().is_empty());
    assert_eq!(
        run.events(),
        [
            "GET a.example/ private-address 1",
            "GET 127.0.0.1/ private-address 1",
            "GET other.example/ private-address 1"
        ]
    );
}

#[test]
fn name_is_resolved_once_per_connection() {
    let origin = Origin::plain(HELLO);
    let port = origin.port;
    let spy = TcpListener::bind((Ipv4Addr::new(127, 0, 0, 2), port)).unwrap();
    spy.set_nonblocking(true).unwrap();
    let run = Run::new(vec![grant(MethodGroup::Read, "rebind.example", port)]);
    let answers = [[127, 0, 0, 1], [127, 0, 0, 2]].map(|octets| vec![IpAddr::from(octets)]);
    run.names.prepared.lock().unwrap().insert("rebind.example".into(), answers.into());
    assert_eq!(status(&run.talk(get("rebind.example", port, "/"))), "200");
    assert_eq!(run.facts(), ["rebind.example"], "asked once");
    assert_eq!(origin.received().len(), 1);
    assert!(spy.accept().is_err(), "the later address was not dialled");
}

#[test]
fn name_that_resolves_to_private_address_is_refused() {
    let origin = Origin::plain(HELLO);
    let port = origin.port;
    let public = HostGrant {
        allow_private_addresses: false,
        ..grant(MethodGroup::Read, "rebind.example", port)
    };
    let run = Run::new(vec![public]);
    let forms = ["127.0.0.1", "::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::"];
    let answers = forms.map(|text| vec![text.parse().unwrap()]);
    run.names.prepared.lock().unwrap().insert("rebind.example".into(), answers.into());
    for _ in forms {
        assert_eq!(status(&run.talk(get("rebind.example", port, "/"))), "403");
    }
    assert!(origin.received().is_empty());
    assert_eq!(run.events(), ["GET rebind.example/ private-address 5"]);
}

#[test]
fn unreachable_hosts_are_reported() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let run = Run::new(vec![grant(MethodGroup::Read, "a.example", closed)]);
    let answer = run.talk(get("a.example", closed, "/"));
    assert_eq!(status(&answer), "502");
    assert!(answer.contains("savoir: a.example cannot be reached: Connection refused"), "{answer}");
    assert_eq!(run.events(), ["GET a.example/ unreachable 1"]);
}

#[test]
fn paths_are_prefixes_of_segments() {
    let origin = Origin::plain(HELLO);
    let port = origin.port;
    let run = Run::new(vec![HostGrant {
        path: "/v1".into(),
        scheme: Some(Scheme::Http),
        ..grant(MethodGroup::Read, "a.example", port)
    }]);
    assert_eq!(status(&run.talk(get("a.example", port, "/v1/x"))), "200");
    assert_eq!(status(&run.talk(get("a.example", port, "/v1/../x"))), "403");
    assert_eq!(status(&run.talk(get("a.example", port, "/v2"))), "403");
}
