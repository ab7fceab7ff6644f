//! Converts byte offsets into offsets in UTF-16 code units, which editors in browsers use.

/// The text of a file, for converting offsets.
#[derive(Clone, Copy, Debug)]
pub struct Utf16Text<'a>(&'a str);

impl<'a> Utf16Text<'a> {
    /// Wraps a text.
    pub fn new(text: &'a str) -> Self {
        Self(text)
    }

    /// Returns the offset of a byte in UTF-16 code units from the start of the text. An offset
    /// inside a character counts as its start, an offset past the end as the end.
    pub fn offset(self, byte: usize) -> usize {
        let mut end = byte.min(self.0.len());
        while !self.0.is_char_boundary(end) {
            end -= 1;
        }
        self.0[..end].chars().map(char::len_utf16).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_count_code_units() {
        let text = Utf16Text::new("aä😀b");
        assert_eq!([0, 1, 2, 3, 7, 8, 99].map(|byte| text.offset(byte)), [0, 1, 1, 2, 4, 5, 5]);
    }
}
