//! Finds decoy secrets in bytes: plain, encoded or compressed.

use std::{
    collections::{BTreeSet, HashMap},
    io::Read as _,
};

use base64::{
    Engine as _, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};

/// Maximum number of nested encodings that are decoded.
const MAX_DEPTH: usize = 4;

/// Maximum bytes that are searched for one request, including all decoded forms.
const MAX_DECODED_BYTES: usize = 8 << 20;

/// Length of a decoy secret in hexadecimal digits; shorter runs cannot contain one.
const MIN_ENCODED_BYTES: usize = 32;

/// Accepts Base64 with or without padding, and any trailing bits.
const LENIENT_BASE64: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_allow_trailing_bits(true)
    .with_decode_padding_mode(DecodePaddingMode::Indifferent);

/// The indices of the secrets that occur in the bytes. All secrets have [`MIN_ENCODED_BYTES`]
/// digits in lower case.
pub(super) fn contains_secret(bytes: &[u8], cores: &[&str]) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    let mut budget = MAX_DECODED_BYTES;
    let mut known = HashMap::new();
    for (index, core) in cores.iter().enumerate() {
        known.insert(core.as_bytes().to_vec(), index);
        known.insert(core.bytes().rev().collect(), index);
    }
    search_layers(bytes, &known, MAX_DEPTH, &mut budget, &mut found);
    found
}

fn search_layers(
    bytes: &[u8],
    cores: &HashMap<Vec<u8>, usize>,
    depth: usize,
    budget: &mut usize,
    found: &mut BTreeSet<usize>,
) {
    if bytes.len() > *budget {
        return;
    }
    *budget -= bytes.len();
    let lower = bytes.to_ascii_lowercase();
    let windows = find_runs(&lower, is_hexadecimal).flat_map(|run| run.windows(MIN_ENCODED_BYTES));
    found.extend(windows.filter_map(|window| cores.get(window)));
    if depth > 0 {
        for layer in decode_layers(bytes) {
            search_layers(&layer, cores, depth - 1, budget, found);
        }
    }
}

/// All results of decoding the bytes once.
fn decode_layers(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut layers: Vec<Vec<u8>> = unpacked(bytes).into_iter().collect();
    if bytes.contains(&b'%') {
        layers.push(percent_decoded(bytes));
    }
    // Long encodings are split into lines, which JSON writes as escapes.
    let joined = join_lines(bytes);
    for text in [Some(bytes), joined.as_deref()].into_iter().flatten() {
        layers.extend(find_runs(text, is_hexadecimal).filter_map(hexadecimal));
        for engine in [alphabet::STANDARD, alphabet::URL_SAFE] {
            let word = |byte: u8| engine.as_str().as_bytes().contains(&byte);
            let engine = GeneralPurpose::new(&engine, LENIENT_BASE64);
            layers.extend(find_runs(text, word).filter_map(|run| base64(&engine, run)));
        }
    }
    layers
}

/// Decompressed bytes, up to the limit.
fn unpacked(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let most = MAX_DECODED_BYTES as u64 / 4;
    // Bytes before an error count: the body may be truncated.
    let _ = match bytes {
        [0x1f, 0x8b, ..] => {
            flate2::read::MultiGzDecoder::new(bytes).take(most).read_to_end(&mut out)
        }
        [0x78, ..] => flate2::read::ZlibDecoder::new(bytes).take(most).read_to_end(&mut out),
        _ => return None,
    };
    Some(out)
}

fn percent_decoded(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let [first, tail @ ..] = rest {
        let digits = tail.get(..2).and_then(|pair| std::str::from_utf8(pair).ok());
        match digits.and_then(|pair| u8::from_str_radix(pair, 16).ok()) {
            Some(byte) if *first == b'%' => {
                out.push(byte);
                rest = &tail[2..];
            }
            _ => {
                out.push(*first);
                rest = tail;
            }
        }
    }
    out
}

/// The bytes without line breaks and dots, if they have any: host names are split by dots.
fn join_lines(bytes: &[u8]) -> Option<Vec<u8>> {
    let text: Vec<u8> =
        bytes.iter().copied().filter(|byte| !matches!(byte, b'\n' | b'\r' | b'.')).collect();
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_slice();
    while let [first, tail @ ..] = rest {
        if *first == b'\\' && matches!(tail.first(), Some(b'n' | b'r')) {
            rest = &tail[1..];
        } else {
            out.push(*first);
            rest = tail;
        }
    }
    (out.len() < bytes.len()).then_some(out)
}

fn find_runs(bytes: &[u8], of: impl Fn(u8) -> bool) -> impl Iterator<Item = &[u8]> {
    bytes.split(move |byte| !of(*byte)).filter(|run| run.len() >= MIN_ENCODED_BYTES)
}

fn is_hexadecimal(byte: u8) -> bool {
    byte.is_ascii_hexdigit()
}

fn hexadecimal(run: &[u8]) -> Option<Vec<u8>> {
    let pairs = run.chunks_exact(2).map(|pair| {
        let text = std::str::from_utf8(pair).ok()?;
        u8::from_str_radix(text, 16).ok()
    });
    pairs.collect()
}

/// Decodes Base64. A truncated run may end in the middle of a group.
fn base64(engine: &GeneralPurpose, run: &[u8]) -> Option<Vec<u8>> {
    let whole = run.len() - usize::from(run.len() % 4 == 1);
    engine.decode(&run[..whole]).ok()
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

    use super::*;
    use savoir_skill::digest::hex;

    const SECRET: &str = "0f3c7a51d2e84b96a1c05e7d93b2f648";

    fn found(bytes: &[u8]) -> bool {
        let other = "ffffffffffffffffffffffffffffffff";
        let found = contains_secret(bytes, &[other, SECRET]);
        assert!(!found.contains(&0));
        found.contains(&1)
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn encoded_secrets_are_found() {
        let value = format!("ghp_{SECRET}");
        let base64 = STANDARD.encode(&value);
        let lines: Vec<&str> =
            base64.as_bytes().chunks(20).map(|line| std::str::from_utf8(line).unwrap()).collect();
        let label = hex(value.as_bytes());
        for (what, bytes) in [
            ("plain", value.clone().into_bytes()),
            ("capitals", value.to_uppercase().into_bytes()),
            ("backwards", value.chars().rev().collect::<String>().into_bytes()),
            ("base64", format!("x={base64}&y").into_bytes()),
            ("base64 of a URL", URL_SAFE_NO_PAD.encode(&value).into_bytes()),
            ("twice", STANDARD.encode(&base64).into_bytes()),
            ("lines", lines.join("\n").into_bytes()),
            ("lines in JSON", lines.join("\\n").into_bytes()),
            ("hexadecimal", hex(value.as_bytes()).to_uppercase().into_bytes()),
            ("labels", format!("{}.{}.evil.example", &label[..40], &label[40..]).into_bytes()),
            ("gzip", gzip(value.as_bytes())),
            ("gzip in base64", STANDARD.encode(gzip(value.as_bytes())).into_bytes()),
            (
                "percent",
                value.bytes().flat_map(|byte| format!("%{byte:02X}").into_bytes()).collect(),
            ),
            ("percent of base64", format!("d={}", base64.replace('=', "%3D")).into_bytes()),
        ] {
            assert!(found(&bytes), "{what}");
        }
        for bytes in [&b""[..], b"%", b"%zz", &[0x1f, 0x8b, 0], &SECRET.as_bytes()[..31]] {
            assert!(!found(bytes), "{bytes:?}");
        }
    }

    #[test]
    fn decompression_bomb_is_limited() {
        // A secret behind the limit is not decompressed.
        let mut text = vec![b'A'; 64 << 20];
        text.extend_from_slice(SECRET.as_bytes());
        assert!(!found(&gzip(&gzip(&text))));
    }
}
