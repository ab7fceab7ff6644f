/// Attributes of the next entry that come from an extension record.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct EntryOverrides {
    pub(super) path: Option<Vec<u8>>,
    pub(super) size: Option<u64>,
}

/// Keys that change the meaning of an entry and are not supported.
const UNSUPPORTED_KEYS: [&[u8]; 5] =
    [b"hdrcharset", b"SCHILY.realsize", b"SCHILY.filetype", b"SUN.holesdata", b"GNU.sparse"];

const TWO_NAMES_MESSAGE: &str = "it has two long names";

impl EntryOverrides {
    /// Reads a long name in the format of GNU.
    pub(super) fn read_long_name(&mut self, mut record: Vec<u8>) -> Result<(), &'static str> {
        if record.last() == Some(&0) {
            record.pop();
        }
        set_once(&mut self.path, record, TWO_NAMES_MESSAGE)
    }

    /// Reads an extended header in the format of POSIX.
    pub(super) fn read_extended_header(&mut self, record: &[u8]) -> Result<(), &'static str> {
        for field in fields(record) {
            let (key, value) = field?;
            match key {
                b"path" => set_once(&mut self.path, value.to_owned(), TWO_NAMES_MESSAGE)?,
                b"size" => {
                    let size = str::from_utf8(value).ok().and_then(|size| size.parse().ok());
                    set_once(
                        &mut self.size,
                        size.ok_or("its size is not a number")?,
                        "it has two sizes",
                    )?;
                }
                key => check_supported(key)?,
            }
        }
        Ok(())
    }
}

/// Rejects a global header that changes the paths, sizes or types of entries. Other global headers,
/// for example with the commit, are ignored.
pub(super) fn check_global(record: &[u8]) -> Result<(), &'static str> {
    for field in fields(record) {
        match field?.0 {
            b"path" | b"linkpath" | b"size" => {
                return Err("it gives all entries the same name or size");
            }
            key => check_supported(key)?,
        }
    }
    Ok(())
}

fn check_supported(key: &[u8]) -> Result<(), &'static str> {
    if UNSUPPORTED_KEYS.iter().any(|unsupported| key.starts_with(unsupported)) {
        return Err("it is described by an extension of tar that is not read");
    }
    Ok(())
}

fn set_once<T>(place: &mut Option<T>, value: T, twice: &'static str) -> Result<(), &'static str> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(twice),
    }
}

/// A key and its value.
type Field<'a> = (&'a [u8], &'a [u8]);

/// Parses lines of the form `<length> <key>=<value>`, where the length covers the whole line.
/// Values may contain line breaks.
fn fields(mut record: &[u8]) -> impl Iterator<Item = Result<Field<'_>, &'static str>> {
    std::iter::from_fn(move || {
        if record.is_empty() {
            return None;
        }
        let field = take_field(&mut record);
        if field.is_none() {
            record = &[];
        }
        Some(field.ok_or("it is described by a broken record"))
    })
}

fn take_field<'a>(record: &mut &'a [u8]) -> Option<Field<'a>> {
    let blank = record.iter().position(|byte| *byte == b' ')?;
    let length: usize = str::from_utf8(&record[..blank]).ok()?.parse().ok()?;
    let line = record.split_off(..length)?;
    let field = line.get(blank + 1..)?.strip_suffix(b"\n")?;
    let equals = field.iter().position(|byte| *byte == b'=')?;
    Some((&field[..equals], &field[equals + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extended_headers() {
        let read = |record: &[u8]| {
            let mut described = EntryOverrides::default();
            described.read_extended_header(record).map(|()| described)
        };
        let described = read(b"12 path=a/b\n11 size=12\n16 x=\nany\nthing\n").unwrap();
        assert_eq!(described, EntryOverrides { path: Some(b"a/b".into()), size: Some(12) });
        for bad in [
            &b"x"[..],
            b"99 path=a\n",
            b"0 path=a\n",
            b"10 path=a\n10 path=b\n",
            b"11 size=-1\n",
            b"24 GNU.sparse.name=evil\n",
            b"9 path=a",
        ] {
            assert!(read(bad).is_err(), "{}", bad.escape_ascii());
        }
        assert!(check_global(b"11 comment=\n").is_err(), "its length is wrong");
        assert!(check_global(b"12 comment=\n").is_ok());
        assert!(check_global(b"10 path=a\n").is_err());
    }
}
