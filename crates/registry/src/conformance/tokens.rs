//! Creates forged tokens, which a registry must reject.

/// Base64 for URLs, without padding.
fn encoded(bytes: &[u8]) -> String {
    const BASE64URL_ALPHABET: &[u8; 64] =
        b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().fold(0_u32, |word, byte| word << 8 | u32::from(*byte));
        let word = word << (8 * (3 - chunk.len()));
        for at in 0..=chunk.len() {
            let index = (word >> (18 - 6 * at)) & 63;
            text.push(char::from(BASE64URL_ALPHABET[index as usize]));
        }
    }
    text
}

fn token(header: &str, claims: &str, signature: &[u8]) -> String {
    format!("{}.{}.{}", encoded(header.as_bytes()), encoded(claims.as_bytes()), encoded(signature))
}

/// They expire in the year 2100.
const ADMIN_CLAIMS: &str = r#"{"sub":"1","role":"admin","scope":"admin","exp":4102444800,"iat":1}"#;

/// Forged tokens, each with a description.
pub(super) fn forged() -> Vec<(&'static str, String)> {
    let junk = [7; 64];
    let expired = r#"{"sub":"1","exp":1}"#;
    vec![
        ("garbage", "garbage".to_owned()),
        ("escaped bytes", "%00%ff".to_owned()),
        ("an unknown token of a program", format!("sv_{}", "a".repeat(43))),
        ("alg none", token(r#"{"alg":"none","typ":"JWT"}"#, ADMIN_CLAIMS, b"")),
        ("alg nOnE", token(r#"{"alg":"nOnE","typ":"JWT"}"#, ADMIN_CLAIMS, b"")),
        ("HS256 with junk", token(r#"{"alg":"HS256","typ":"JWT"}"#, ADMIN_CLAIMS, &junk[..32])),
        (
            "a kid that is a path",
            token(r#"{"alg":"HS256","kid":"../../dev/null"}"#, ADMIN_CLAIMS, b""),
        ),
        (
            "a jku elsewhere",
            token(r#"{"alg":"EdDSA","jku":"http://127.0.0.1:9/"}"#, ADMIN_CLAIMS, &junk),
        ),
        ("EdDSA with junk", token(r#"{"alg":"EdDSA","typ":"JWT"}"#, ADMIN_CLAIMS, &junk)),
        ("expired, with junk", token(r#"{"alg":"EdDSA","typ":"JWT"}"#, expired, &junk)),
        ("no claims", token(r#"{"alg":"EdDSA"}"#, "", &junk)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_url_safe() {
        for (text, expected) in
            [("", ""), ("f", "Zg"), ("fo", "Zm8"), ("foo", "Zm9v"), ("foob", "Zm9vYg")]
        {
            assert_eq!(encoded(text.as_bytes()), expected);
        }
        assert_eq!(encoded(&[0xfb, 0xff]), "-_8");
    }
}
