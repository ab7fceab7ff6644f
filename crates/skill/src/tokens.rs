//! Estimates how many tokens a text costs a model.

/// About how many tokens a text has: four ASCII characters make one, two letters of a neighbouring
/// script, one sign of a script without spaces, and half an emoji.
pub fn estimate_tokens(text: &str) -> usize {
    if text.is_ascii() {
        return text.len() / 4;
    }
    let mut ascii = 0usize;
    let mut two = 0usize;
    let mut three = 0usize;
    let mut four = 0usize;
    // So few at a time that the counts of each part fit a byte, which the compiler turns into
    // vector instructions.
    for part in text.as_bytes().chunks(128) {
        let count = |test: fn(u8) -> bool| {
            usize::from(part.iter().fold(0u8, |sum, byte| sum + u8::from(test(*byte))))
        };
        ascii += count(|byte| byte < 0x80);
        two += count(|byte| (byte & 0xE0) == 0xC0);
        three += count(|byte| (byte & 0xF0) == 0xE0);
        four += count(|byte| byte >= 0xF0);
    }
    ascii / 4 + two / 2 + three + four * 2
}
