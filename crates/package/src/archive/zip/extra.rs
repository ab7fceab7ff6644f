use flate2::Crc;

use super::fields::Fields;

const ZIP64_ID: u16 = 0x0001;
const UNICODE_PATH_ID: u16 = 0x7075;
const AES_ID: u16 = 0x9901;

/// The extra fields of an entry that affect its content. Times and owners are ignored.
#[derive(Default)]
pub(super) struct Extra<'a> {
    large: Option<Fields<'a>>,
    unicode_path: Option<&'a [u8]>,
    /// Whether the entry is encrypted.
    pub(super) encrypted: bool,
}

impl<'a> Extra<'a> {
    /// Parses all fields; fails if they are malformed or a field occurs twice.
    pub(super) fn read(bytes: &'a [u8]) -> Option<Self> {
        let mut extra = Self::default();
        let mut fields = Fields(bytes);
        while !fields.is_empty() {
            let (kind, length) = (fields.u16()?, fields.u16()?);
            let value = fields.take(length.into())?;
            let twice = match kind {
                ZIP64_ID => extra.large.replace(Fields(value)).is_some(),
                UNICODE_PATH_ID => extra.unicode_path.replace(value).is_some(),
                AES_ID => std::mem::replace(&mut extra.encrypted, true),
                _ => false,
            };
            if twice {
                return None;
            }
        }
        Some(extra)
    }

    /// Returns a value from the zip64 field if `number` is the placeholder for a large value.
    pub(super) fn read_zip64_field(&mut self, number: u32) -> Option<u64> {
        match &mut self.large {
            Some(large) if number == u32::MAX => large.u64(),
            _ => Some(number.into()),
        }
    }

    /// Whether every zip64 value was read.
    pub(super) fn is_consumed(&self) -> bool {
        self.large.is_none_or(Fields::is_empty)
    }

    /// Whether a Unicode name in the extra fields, if any, equals the name.
    pub(super) fn matches_name(&self, name: &[u8]) -> bool {
        self.unicode_path.is_none_or(|value| {
            let mut crc = Crc::new();
            crc.update(name);
            let head = [&[1], &crc.sum().to_le_bytes()[..]].concat();
            value.strip_prefix(head.as_slice()) == Some(name)
        })
    }
}
