//! Tests programs that attack the proxy itself.

use super::{origin::HELLO, *};

#[test]
fn too_many_connections_are_refused() {
    let origin = Origin::plain(HELLO);
    let port = origin.port;
    let run = Run::new(vec![grant(MethodGroup::Read, "a.example", port)]);
    let idle: Vec<_> = (0..limits::MAX_CONNECTIONS).map(|_| run.connect()).collect();
    let answer = read_all(&mut run.connect());
    assert_eq!(status(&answer), "503", "{answer}");
    drop(idle);
    // After the connections are closed, new ones are accepted.
    let request =
        format!("GET http://a.example:{port}/ HTTP/1.1\r\nHost: a.example:{port}\r\n\r\n");
    let deadline = Instant::now() + Duration::from_secs(5);
    while status(&run.talk(&request)) != "200" {
        assert!(Instant::now() < deadline);
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(run.events().iter().any(|event| event.contains("too-many-connections")));
}

#[test]
fn endless_heads_are_refused() {
    let run = Run::new(Vec::new());
    let mut stream = run.connect();
    stream.write_all(b"GET http://a.example/ HTTP/1.1\r\n").unwrap();
    let filler = format!("X: {}\r\n", "y".repeat(1000));
    while stream.write_all(filler.as_bytes()).is_ok() {}
    assert!(run.events().iter().any(|event| event.contains("bad-request")));
}

#[test]
fn half_closed_connections_get_a_response() {
    let origin = Origin::plain(HELLO);
    let port = origin.port;
    let run = Run::new(vec![grant(MethodGroup::Read, "a.example", port)]);
    let mut stream = run.connect();
    write!(stream, "GET http://a.example:{port}/ HTTP/1.1\r\nHost: a.example:{port}\r\n\r\n")
        .unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    assert!(read_all(&mut stream).ends_with("hello"));
}

#[test]
fn slow_heads_are_refused_at_the_deadline() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut slow = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (stream, _) = listener.accept().unwrap();
    let mut line = stream::TimedSocket::new(Arc::new(stream), Duration::from_mins(1));
    line.set_deadline(Duration::from_millis(200));
    let drip = std::thread::spawn(move || {
        while slow.write_all(b"x").is_ok() {
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    let start = Instant::now();
    let error = head::read(&mut io::BufReader::new(line), |_| Ok(())).unwrap_err();
    assert!(matches!(error, head::HeadError::Slow), "{error:?}");
    assert!(start.elapsed() < Duration::from_secs(2));
    drip.join().unwrap();
}

#[test]
fn an_answer_arrives_before_a_large_body_is_refused() {
    let run = Run::new(Vec::new());
    let body = "x".repeat(200_000);
    let answer = run.talk(format!(
        "POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    ));
    assert_eq!(status(&answer), "403", "{answer}");
}

#[test]
fn many_requests_at_once() {
    let origin = Origin::plain(HELLO);
    let port = origin.port;
    let run = Run::new(vec![grant(MethodGroup::Read, "a.example", port)]);
    let request =
        format!("GET http://a.example:{port}/ HTTP/1.1\r\nHost: a.example:{port}\r\n\r\n");
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..25 {
                    assert!(run.talk(&request).ends_with("hello"));
                }
            });
        }
    });
    assert_eq!(run.events(), ["GET a.example/ allowed 200"]);
}
