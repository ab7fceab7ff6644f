//! Tests the trap: nothing is sent, and all requests are stored.

use super::*;

#[test]
fn trapped_requests_are_stored_and_answered() {
    let run = Run::trap();
    let facts = run.talk(
        "POST http://a.example/x?key=1 HTTP/1.1\r\nHost: a.example\r\nX-Key: secret\r\n\
         Content-Length: 4\r\n\r\nbody",
    );
    assert!(facts.starts_with("HTTP/1.1 200 OK\r\n") && facts.ends_with("\r\n\r\n{}"), "{facts}");
    let inside =
        run.talk_inside("b.example:443", "GET /y HTTP/1.1\r\nHost: b.example\r\nX-Key: z\r\n\r\n");
    assert_eq!(status(&inside), "200");
    let head = run.talk("HEAD http://c.example/ HTTP/1.1\r\nHost: c.example\r\n\r\n");
    assert!(head.ends_with("\r\n\r\n"), "{head}");
    assert_eq!(run.facts(), Vec::<String>::new(), "names alone can carry data away");
    let (events, trapped) = run.proxy.stop();
    assert!(events.iter().all(|event| event.verdict == Verdict::Trapped), "{events:?}");
    let hosts: Vec<_> = trapped.iter().map(|one| (one.host.as_str(), one.port)).collect();
    assert_eq!(hosts, [("a.example", 80), ("b.example", 443), ("c.example", 80)]);
    assert_eq!((trapped[0].method.as_str(), trapped[0].target.as_str()), ("POST", "/x?key=1"));
    assert_eq!((trapped[0].body.as_slice(), trapped[0].cut), (b"body".as_slice(), false));
    assert!(String::from_utf8_lossy(&trapped[1].headers).contains("X-Key: z"));
}

#[test]
fn stored_requests_are_limited() {
    let run = Run::trap();
    let long = "a".repeat(limits::MAX_TRAPPED_BODY_BYTES + 1);
    let request = format!(
        "POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nContent-Length: {}\r\n\r\n{long}",
        long.len()
    );
    for _ in 0..limits::MAX_TRAPPED_BYTES / limits::MAX_TRAPPED_BODY_BYTES + 2 {
        assert_eq!(status(&run.talk(&request)), "200");
    }
    let (events, trapped) = run.proxy.stop();
    assert!(trapped.iter().all(|one| one.cut && one.body.len() == limits::MAX_TRAPPED_BODY_BYTES));
    assert!(trapped.len() < events[0].count as usize, "{}", trapped.len());
}

#[test]
fn incomplete_body_is_stored() {
    let run = Run::trap();
    let mut stream = run.connect();
    let half =
        "POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nContent-Length: 9\r\n\r\nhalf";
    stream.write_all(half.as_bytes()).unwrap();
    stream.shutdown(std::net::Shutdown::Both).unwrap();
    std::thread::sleep(Duration::from_millis(100));
    let (_, trapped) = run.proxy.stop();
    assert_eq!(trapped[0].body, b"half");
}
