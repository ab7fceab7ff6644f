//! Writes the page that the browser opens first. Other users of the machine can read command-line
//! arguments, so the link is in a file that only its owner can read.

use std::{
    env, io,
    io::Write as _,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

use tempfile::NamedTempFile;

/// A file that redirects to the link. It is deleted when this is dropped.
#[derive(Debug)]
pub(super) struct LaunchPage {
    url: String,
    _file: NamedTempFile,
}

impl LaunchPage {
    pub(super) fn write(link: &str) -> io::Result<Self> {
        let runtime = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        let folder = runtime.filter(|folder| folder.is_absolute() && folder.is_dir());
        let folder = folder.unwrap_or_else(env::temp_dir);
        // Temporary files have the mode 0600 and a random name.
        let mut file =
            tempfile::Builder::new().prefix("savoir-ui-").suffix(".html").tempfile_in(folder)?;
        write!(
            file,
            "<!doctype html>\n<meta charset=\"utf-8\">\n<title>Savoir</title>\n<meta \
             name=\"referrer\" content=\"no-referrer\">\n<meta http-equiv=\"refresh\" \
             content=\"0; url={link}\">\n<p><a href=\"{link}\">Open Savoir</a></p>\n"
        )?;
        file.flush()?;
        Ok(Self { url: file_url(&file.path().canonicalize()?), _file: file })
    }

    /// The URL of the file.
    pub(super) fn url(&self) -> &str {
        &self.url
    }
}

/// The URL of a file, in which all bytes except unreserved characters are percent-encoded.
fn file_url(path: &Path) -> String {
    let encode = |byte: &u8| match byte {
        b'/' | b'-' | b'.' | b'_' => char::from(*byte).to_string(),
        byte if byte.is_ascii_alphanumeric() => char::from(*byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    let path: String = path.as_os_str().as_bytes().iter().map(encode).collect();
    format!("file://{path}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_is_encoded() {
        let url = file_url(Path::new("/tmp/a b/ü#?.html"));
        assert_eq!(url, "file:///tmp/a%20b/%C3%BC%23%3F.html");
    }
}
