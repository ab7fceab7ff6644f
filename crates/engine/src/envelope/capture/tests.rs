use std::fmt::Write as _;

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn captured(pieces: &[(Stream, &[u8])]) -> Captured {
    let mut capture = Capture::default();
    for (stream, bytes) in pieces {
        capture.push(*stream, bytes);
    }
    capture.finish()
}

fn stdout(bytes: &[u8]) -> Captured {
    captured(&[(Stream::Stdout, bytes)])
}

#[test]
fn both_streams_in_order_of_arrival() {
    let got = captured(&[(Stream::Stdout, b"out\n"), (Stream::Stderr, b"err\n")]);
    assert_eq!((got.output.as_str(), got.truncated, got.total), ("out\nerr", 0, 8));
    assert_eq!(stdout(b"a \r\n\n").output, "a ");
    assert_eq!(stdout(b"").output, "");
}

#[test]
fn seq_matches_the_contract_vector() {
    let mut text = String::new();
    for number in 1..=3000 {
        let _ = writeln!(text, "{number}");
    }
    assert_eq!(text.len(), 13_893);
    let got = stdout(text.as_bytes());
    assert!(got.output.starts_with("1\n2\n3\n4\n"));
    assert!(got.output.contains("\n\n... [truncated 9797 bytes] ...\n\n"));
    assert!(got.output.ends_with("\n2999\n3000"));
    assert_eq!((got.output.len(), got.truncated, got.total), (4129, 9797, 13_893));
}

#[test]
fn the_limit_is_exact() {
    let whole = stdout(&[b'x'; HEAD_SIZE + TAIL_SIZE]);
    assert_eq!((whole.output.len(), whole.truncated), (4096, 0));
    let cut = stdout(&[b'x'; HEAD_SIZE + TAIL_SIZE + 1]);
    assert_eq!(cut.truncated, 1);
    assert!(cut.output.contains("x\n\n... [truncated 1 bytes] ...\n\nx"));
}

#[test]
fn characters_are_not_cut() {
    // 2048 is not a multiple of 3, so one whole character is left out at each edge.
    let got = stdout("€".repeat(2000).as_bytes());
    assert_eq!(got.truncated, 6000 - 2046 - 2046);
    assert!(!got.output.contains('\u{fffd}'));
    assert!(got.output.starts_with('€') && got.output.ends_with('€'));
    // Text after a character that did not fit must not come before it.
    let text = format!("{}€{}", "a".repeat(2047), "b".repeat(3000));
    let got = stdout(text.as_bytes());
    let (head, rest) = got.output.split_once("\n\n").unwrap();
    assert_eq!((head.len(), head.contains('b')), (2047, false));
    assert!(rest.starts_with("... [truncated 955 bytes]"), "{rest}");
}

#[test]
fn a_character_may_arrive_in_pieces() {
    let euro = "€".as_bytes();
    let got = captured(&[
        (Stream::Stdout, &euro[..1]),
        (Stream::Stderr, b"!"),
        (Stream::Stdout, &euro[1..2]),
        (Stream::Stdout, &euro[2..]),
    ]);
    assert_eq!((got.output.as_str(), got.total), ("!€", 4));
    let got = captured(&[(Stream::Stdout, &euro[..2])]);
    assert_eq!((got.output.as_str(), got.total), ("\u{fffd}", 2));
    assert_eq!(stdout(b"a\xffb").output, "a\u{fffd}b");
}

#[test]
fn bytes_that_are_no_text_count_as_bytes() {
    let got = stdout(&[0xff; 10_000]);
    let kept = got.output.matches('\u{fffd}').count() as u64;
    assert_eq!((kept, got.truncated), (682 * 2, 10_000 - 682 * 2));
}

#[test]
fn only_objects_and_arrays_on_stdout_are_parsed() {
    assert_eq!(stdout(b" {\"a\": 1}\n").parsed, Some(json!({"a": 1})));
    assert_eq!(stdout(b"[1]").parsed, Some(json!([1])));
    for text in [&b"42"[..], b"\"x\"", b"null", b"{} {}", b"{", b"", b"x {}"] {
        assert_eq!(stdout(text).parsed, None, "{}", String::from_utf8_lossy(text));
    }
    let mixed = captured(&[
        (Stream::Stdout, b"\n "),
        (Stream::Stdout, b"{\"a\""),
        (Stream::Stderr, b"warning\n"),
        (Stream::Stdout, b":2}"),
    ]);
    assert_eq!(mixed.parsed, Some(json!({"a": 2})));
    assert_eq!(captured(&[(Stream::Stderr, b"{}")]).parsed, None);
}

#[test]
fn json_is_parsed_before_the_output_is_cut_but_not_without_end() {
    let list = |items: usize| format!("[{}1]", "1,".repeat(items));
    let long = stdout(list(10_000).as_bytes());
    assert!(long.truncated > 0);
    assert_eq!(long.parsed.unwrap().as_array().unwrap().len(), 10_001);
    assert_eq!(stdout(list(PARSED_SIZE).as_bytes()).parsed, None);
    let deep = "[".repeat(100_000) + &"]".repeat(100_000);
    assert_eq!(stdout(deep.as_bytes()).parsed, None);
}

/// Generates valid text, invalid UTF-8, and arbitrary bytes.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..600),
        "[a€😀\n]{0,400}".prop_map(String::into_bytes),
        Just(vec![0xe2, 0x82]),
        Just(b"x".repeat(5000)),
    ]
}

fn stream() -> impl Strategy<Value = Stream> {
    prop_oneof![Just(Stream::Stdout), Just(Stream::Stderr)]
}

proptest! {
    #[test]
    fn output_below_the_limit_is_complete_and_memory_is_bounded(
        pieces in proptest::collection::vec((stream(), bytes()), 0..20)
    ) {
        let mut capture = Capture::default();
        for (stream, bytes) in &pieces {
            capture.push(*stream, bytes);
            prop_assert!(capture.text.tail.len() <= 5 * TAIL_SIZE);
        }
        let arrived: usize = pieces.iter().map(|(_, bytes)| bytes.len()).sum();
        let mut ends = capture.clone();
        let got = capture.finish();
        prop_assert_eq!(got.total, arrived as u64);
        let marker = format!("\n\n... [truncated {} bytes] ...\n\n", got.truncated);
        prop_assert!(got.output.len() <= HEAD_SIZE + TAIL_SIZE + marker.len());
        prop_assert_eq!(got.truncated > 0, got.output.contains(&marker) && got.truncated > 0);
        // Counts each part separately: head, tail and omitted bytes must add up to the total.
        for decoder in [&mut ends.stdout, &mut ends.stderr] {
            let text = &mut ends.text;
            decoder.end(&mut |piece| text.push(piece));
        }
        ends.text.joined();
        if got.truncated > 0 {
            let saved: u64 = ends.text.shorter.iter().map(|(_, saved)| u64::from(*saved)).sum();
            let kept = ends.text.in_head + ends.text.tail.len() as u64 - saved;
            prop_assert_eq!(kept + got.truncated, arrived as u64);
        }
    }

    /// Compares the capture of text that arrives in arbitrary pieces with a simple implementation
    /// that has the whole text.
    #[test]
    fn text_is_cut_as_if_it_had_arrived_whole(
        text in "[a€😀\n]{0,3000}", sizes in proptest::collection::vec(1..700_usize, 1..40)
    ) {
        let mut capture = Capture::default();
        let mut rest = text.as_bytes();
        for size in sizes.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (piece, after) = rest.split_at(rest.len().min(*size));
            capture.push(Stream::Stdout, piece);
            rest = after;
        }
        let expected = if text.len() <= HEAD_SIZE + TAIL_SIZE {
            text.clone()
        } else {
            let head = &text[..text.floor_char_boundary(HEAD_SIZE)];
            let tail = &text[text.ceil_char_boundary(text.len() - TAIL_SIZE)..];
            let left_out = text.len() - head.len() - tail.len();
            format!("{head}\n\n... [truncated {left_out} bytes] ...\n\n{tail}")
        };
        prop_assert_eq!(capture.finish().output, expected.trim_end_matches('\n'));
    }
}
