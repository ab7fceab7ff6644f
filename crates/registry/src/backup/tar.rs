//! The part of tar that a backup needs: plain files in a fixed order, without timestamps.

use std::io::{self, Read, Write};

/// Block size of tar, in bytes.
pub(super) const TAR_BLOCK_BYTES: usize = 512;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum TarHeader {
    /// Path and size of a file.
    File(String, u64),
    BackupTrailer,
}

/// Writes the header of a file.
pub(super) fn header(path: &str, size: u64) -> io::Result<[u8; TAR_BLOCK_BYTES]> {
    let mut block = [0; TAR_BLOCK_BYTES];
    // The largest number of eleven octal digits.
    if path.len() >= 100 || size >= 1 << 33 {
        return Err(io::Error::other("a file of the backup has 8 GiB or more"));
    }
    let mut put =
        |at: usize, text: &str| block[at..at + text.len()].copy_from_slice(text.as_bytes());
    put(0, path);
    put(100, "0000644\0");
    put(108, "0000000\0");
    put(116, "0000000\0");
    put(124, &format!("{size:011o}\0"));
    put(136, "00000000000\0");
    put(148, "        ");
    put(156, "0");
    put(257, "ustar\x0000");
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    Ok(block)
}

/// Number of bytes that fill the last block of a file.
pub(super) fn padding(size: u64) -> usize {
    (TAR_BLOCK_BYTES - (size % TAR_BLOCK_BYTES as u64) as usize) % TAR_BLOCK_BYTES
}

/// Writes a file of bytes.
pub(super) fn append(out: &mut impl Write, path: &str, bytes: &[u8]) -> io::Result<()> {
    let size = bytes.len() as u64;
    out.write_all(&header(path, size)?)?;
    out.write_all(bytes)?;
    out.write_all(&[0; TAR_BLOCK_BYTES][..padding(size)])
}

/// Ends the archive.
pub(super) fn finish(out: &mut impl Write) -> io::Result<()> {
    out.write_all(&[0; 2 * TAR_BLOCK_BYTES])
}

/// Reads a header; an error message if [`header`] did not write it.
pub(super) fn read_header(input: &mut impl Read) -> io::Result<Result<TarHeader, &'static str>> {
    let mut block = [0; TAR_BLOCK_BYTES];
    input.read_exact(&mut block)?;
    if block == [0; TAR_BLOCK_BYTES] {
        return Ok(Ok(TarHeader::BackupTrailer));
    }
    Ok(understand(&block))
}

fn understand(block: &[u8; TAR_BLOCK_BYTES]) -> Result<TarHeader, &'static str> {
    let path: Vec<u8> = block[..100].iter().copied().take_while(|byte| *byte != 0).collect();
    let path = String::from_utf8(path).map_err(|_| "the name of a file is not UTF-8")?;
    let digits = str::from_utf8(&block[124..135]).unwrap_or_default();
    let size = u64::from_str_radix(digits, 8).map_err(|_| "a header is invalid")?;
    match header(&path, size) {
        Ok(expected) if expected == *block => Ok(TarHeader::File(path, size)),
        _ => Err("a header was changed"),
    }
}

/// Skips the padding of the last block of a file; returns whether it is all zero.
pub(super) fn skip_padding(input: &mut impl Read, size: u64) -> io::Result<bool> {
    let mut rest = [0; TAR_BLOCK_BYTES];
    let rest = &mut rest[..padding(size)];
    input.read_exact(rest)?;
    Ok(rest.iter().all(|byte| *byte == 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backup_tar_round_trips_and_tar_reads_it() {
        let mut bytes = Vec::new();
        append(&mut bytes, "a/b", b"hello").unwrap();
        append(&mut bytes, "a/c", &[7; TAR_BLOCK_BYTES]).unwrap();
        finish(&mut bytes).unwrap();
        assert_eq!(bytes.len(), 6 * TAR_BLOCK_BYTES);
        let mut input = bytes.as_slice();
        for (path, size) in [("a/b", 5), ("a/c", TAR_BLOCK_BYTES as u64)] {
            let found = read_header(&mut input).unwrap().unwrap();
            assert_eq!(found, TarHeader::File(path.to_owned(), size));
            input = &input[size as usize..];
            assert!(skip_padding(&mut input, size).unwrap());
        }
        assert_eq!(read_header(&mut input).unwrap().unwrap(), TarHeader::BackupTrailer);
        // Other readers understand it as well.
        let tree = savoir_package::archive::unpack(&bytes).unwrap();
        assert_eq!(tree.get("a/b").unwrap().bytes, b"hello");
    }

    #[test]
    fn changed_header_byte_is_detected() {
        let good = header("a/b", 5).unwrap();
        for at in 0..TAR_BLOCK_BYTES {
            let mut bad = good;
            bad[at] ^= 0x41;
            let read = read_header(&mut bad.as_slice()).unwrap();
            assert_ne!(read, Ok(TarHeader::File("a/b".to_owned(), 5)), "byte {at}");
        }
        assert!(header("a", 1 << 33).is_err());
    }
}
