//! Tests that any server response is handled: nothing panics, and an answer is complete or an
//! error.

use proptest::{collection::vec, prelude::*, sample::select};
use savoir_model::{Chunk, ProviderKind};

use crate::support::{answering, ask, models, ok, provider, question};

/// Delimiters of frames, which are inserted at wrong positions.
const FRAMES: [&str; 9] =
    ["data: ", "data", "event: x\n", ": \n", "\n", "\n\n", "\r\n", "\u{feff}", "[[[[[[[["];

const OPENAI: [&str; 11] = [
    r#"{"choices":[{"delta":{"content":"x"}}]}"#,
    r#"{"choices":[{"delta":{"tool_calls":[{"index":18446744073709551615,"id":"a","function":{"name":"f","arguments":"{"}}]}}]}"#,
    r#"{"choices":[{"delta":{"tool_calls":[{"id":"b","function":{"arguments":"}"}}]}}]}"#,
    r#"{"choices":[{"delta":{"tool_calls":[{"index":3,"function":{"name":"h","arguments":{}}}]}}]}"#,
    r#"{"choices":[{"delta":{"tool_calls":[{"id":"b","function":{"arguments":[]}}]}}]}"#,
    r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#,
    r#"{"choices":[{"delta":null,"finish_reason":"tool_calls"}],"usage":{}}"#,
    r#"{"choices":[{"delta":{},"finish_reason":"length"}]}"#,
    r#"{"choices":null}"#,
    r#"{"error":7}"#,
    "[DONE]",
];

const ANTHROPIC: [&str; 11] = [
    r#"{"type":"message_start","message":{"usage":{"input_tokens":18446744073709551615,"cache_read_input_tokens":1}}}"#,
    r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"","name":""}}"#,
    r#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"","name":"f"}}"#,
    r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{}"}}"#,
    r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"x"}}"#,
    r#"{"type":"content_block_stop","index":1}"#,
    r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"}}"#,
    r#"{"type":"message_delta","delta":{"stop_reason":"max_tokens"},"usage":{"output_tokens":1}}"#,
    r#"{"type":"message_stop"}"#,
    r#"{"type":"ping"}"#,
    r#"{"type":7}"#,
];

const OLLAMA: [&str; 6] = [
    r#"{"message":{"content":"x"}}"#,
    r#"{"message":{"content":null,"tool_calls":[{"function":{"name":"f","arguments":{}}}]}}"#,
    r#"{"message":{"tool_calls":[{"function":{"name":"f","arguments":[]}}]}}"#,
    r#"{"done":true}"#,
    r#"{"done":true,"done_reason":"load","eval_count":-1}"#,
    "null",
];

fn pieces(kind: ProviderKind) -> &'static [&'static str] {
    match kind {
        ProviderKind::OpenAi => &OPENAI,
        ProviderKind::Anthropic => &ANTHROPIC,
        ProviderKind::Ollama => &OLLAMA,
    }
}

/// Valid frames in a random order.
fn framed(kind: ProviderKind) -> impl Strategy<Value = Vec<u8>> {
    let (before, after) = match kind {
        ProviderKind::Ollama => ("", "\n"),
        _ => ("data: ", "\n\n"),
    };
    vec(select(pieces(kind)), 0..10).prop_map(move |pieces| {
        pieces.iter().flat_map(|piece| [before, piece, after]).collect::<String>().into_bytes()
    })
}

fn stream(kind: ProviderKind) -> impl Strategy<Value = (ProviderKind, Vec<u8>)> {
    let all = [&FRAMES[..], pieces(kind)].concat();
    let shuffled = vec(select(all), 0..24).prop_map(|pieces| pieces.concat().into_bytes());
    let broken = (framed(kind), any::<prop::sample::Index>(), any::<u8>()).prop_map(
        |(mut bytes, place, byte)| {
            if !bytes.is_empty() {
                let place = place.index(bytes.len());
                bytes[place] = byte;
            }
            bytes
        },
    );
    let bytes = vec(any::<u8>(), 0..512);
    (Just(kind), prop_oneof![1 => bytes, 1 => shuffled, 3 => framed(kind), 2 => broken])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn garbage_never_panics((kind, bytes) in select(&ProviderKind::ALL[..]).prop_flat_map(stream)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let whole = runtime.block_on(async {
            let server = answering(ok(&bytes)).await;
            ask(&models(provider(kind, &server.uri())), question("hi")).await
        });
        let ended = matches!(whole.chunks.last(), Some(Chunk::End(_)));
        prop_assert_eq!(ended, whole.error.is_none());
        if whole.error.is_some() {
            whole.error();
        }
        prop_assert!(whole.chunks.iter().all(|chunk| *chunk != Chunk::Text(String::new())));
    }
}
