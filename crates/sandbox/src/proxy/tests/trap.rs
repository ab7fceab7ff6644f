//! Nothing leaves a trap, and everything is kept.

use super::*;

#[test]
fn requests_are_kept_and_answered() {
    let run = Run::trap();
    let asked = run.talk(
        "POST http://a.example/x?key=1 HTTP/1.1\r\nHost: a.example\r\nX-Key: secret\r\n\
         Content-Length: 4\r\n\r\nbody",
    );
    assert!(asked.starts_with("HTTP/1.1 200 OK\r\n") && asked.ends_with("\r\n\r\n{}"), "{asked}");
    let inside =
        run.talk_inside("b.example:443", "GET /y HTTP/1.1\r\nHost: b.example\r\nX-Key: z\r\n\r\n");
    assert_eq!(status(&inside), "200");
    let head = run.talk("HEAD http://c.example/ HTTP/1.1\r\nHost: c.example\r\n\r\n");
    assert!(head.ends_with("\r\n\r\n"), "{head}");
    assert_eq!(run.asked(), Vec::<String>::new(), "names alone can carry data away");
    let (events, caught) = run.proxy.stop();
    assert!(events.iter().all(|event| event.verdict == Verdict::Caught), "{events:?}");
    let hosts: Vec<_> = caught.iter().map(|one| (one.host.as_str(), one.port)).collect();
    assert_eq!(hosts, [("a.example", 80), ("b.example", 443), ("c.example", 80)]);
    assert_eq!((caught[0].method.as_str(), caught[0].target.as_str()), ("POST", "/x?key=1"));
    assert_eq!((caught[0].body.as_slice(), caught[0].cut), (b"body".as_slice(), false));
    assert!(String::from_utf8_lossy(&caught[1].headers).contains("X-Key: z"));
}

#[test]
fn what_is_kept_is_bounded() {
    let run = Run::trap();
    let long = "a".repeat(limits::CAUGHT_BODY + 1);
    let request = format!(
        "POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nContent-Length: {}\r\n\r\n{long}",
        long.len()
    );
    for _ in 0..limits::CAUGHT_BYTES / limits::CAUGHT_BODY + 2 {
        assert_eq!(status(&run.talk(&request)), "200");
    }
    let (events, caught) = run.proxy.stop();
    assert!(caught.iter().all(|one| one.cut && one.body.len() == limits::CAUGHT_BODY));
    assert!(caught.len() < events[0].count as usize, "{}", caught.len());
}

#[test]
fn a_body_that_ends_early_is_kept_as_far_as_it_came() {
    let run = Run::trap();
    let mut stream = run.connect();
    let half =
        "POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nContent-Length: 9\r\n\r\nhalf";
    stream.write_all(half.as_bytes()).unwrap();
    stream.shutdown(std::net::Shutdown::Both).unwrap();
    std::thread::sleep(Duration::from_millis(100));
    let (_, caught) = run.proxy.stop();
    assert_eq!(caught[0].body, b"half");
}
