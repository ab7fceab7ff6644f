//! The record of one trial: everything that graders need, so that it can be graded again offline.

use std::{
    fs,
    io::{self, Read as _},
    path::Path,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use savoir_skill::digest::sha256_hex;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::limits::{
    MAX_RECORDED_BYTES, MAX_RECORDED_FILE_BYTES, MAX_RECORDED_FILES, MAX_TRACE_BYTES,
};

/// The format of recorded trials.
pub const TRACE_FORMAT: u32 = 1;

/// What an agent had at its disposal in a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arm {
    /// The skill alone.
    WithSkill,
    /// No skill.
    WithoutSkill,
    /// Another version of the skill alone.
    Previous,
    /// The skill among other skills.
    WithDecoys,
}

impl Arm {
    pub const ALL: [Self; 4] =
        [Self::WithSkill, Self::WithoutSkill, Self::Previous, Self::WithDecoys];

    /// The name in files, as agentskills.io writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::WithSkill => "with_skill",
            Self::WithoutSkill => "without_skill",
            Self::Previous => "previous",
            Self::WithDecoys => "with_decoys",
        }
    }

    /// The name for readers.
    pub fn title(self) -> &'static str {
        match self {
            Self::WithSkill => "with",
            Self::WithoutSkill => "without",
            Self::Previous => "previous",
            Self::WithDecoys => "with decoys",
        }
    }
}

/// The agent and the model of a trial.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct HostRecord {
    /// The agent.
    pub name: String,
    pub version: String,
    /// `provider:model`
    pub model: String,
}

/// The record of a trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trace {
    pub format: u32,
    /// The digest of everything that the trial depends on.
    pub key: String,
    /// The machine on which it ran.
    #[serde(default)]
    pub machine: String,
    pub case: String,
    pub arm: Arm,
    /// The number of the trial, from 0.
    pub trial: u32,
    pub host: HostRecord,
    pub prompt: String,
    /// The last message of the agent.
    pub answer: String,
    pub messages: Vec<TraceMessage>,
    pub calls: Vec<TraceCall>,
    /// The names of all tools that the agent could call; empty if they are not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// The skills that the agent loaded.
    pub skills_used: Vec<String>,
    /// The files of the workspace after the trial.
    pub files: Vec<RecordedFile>,
    /// Files that were not recorded because of a limit.
    #[serde(default)]
    pub files_left_out: usize,
    pub usage: TokenUsage,
    /// Requests to the model.
    pub requests: u32,
    pub duration_ms: u64,
    /// The limit that ended the trial before the agent was done.
    pub limit: Option<String>,
}

/// A message between the user, the model and the tools.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceMessage {
    pub role: Role,
    pub text: String,
}

/// Who wrote a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    System,
    User,
    Assistant,
    /// A call of a tool, or its answer.
    Tool,
}

impl Role {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
        }
    }
}

/// A call of a tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TraceCall {
    pub tool: String,
    pub arguments: Value,
    /// The code of its failure.
    pub failure: Option<String>,
}

/// The tokens of a trial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenUsage {
    pub input: u64,
    pub output: u64,
    /// Whether the provider did not report some of them.
    #[serde(default)]
    pub incomplete: bool,
}

impl TokenUsage {
    pub fn total(self) -> u64 {
        self.input.saturating_add(self.output)
    }
}

impl std::ops::AddAssign for TokenUsage {
    fn add_assign(&mut self, other: Self) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.incomplete = self.incomplete || other.incomplete;
    }
}

/// A file of the workspace after a trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedFile {
    /// The path in the workspace, with `/`.
    pub path: String,
    pub size: u64,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub executable: bool,
    pub content: Content,
}

/// The content of a recorded file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Content {
    Text(String),
    Base64(String),
    /// It was too large to be recorded.
    Omitted,
}

impl RecordedFile {
    /// The bytes, unless they were not recorded.
    pub fn bytes(&self) -> Option<Vec<u8>> {
        match &self.content {
            Content::Text(text) => Some(text.clone().into_bytes()),
            Content::Base64(text) => STANDARD.decode(text).ok(),
            Content::Omitted => None,
        }
    }
}

impl Trace {
    /// The recorded file at a path.
    pub fn file(&self, path: &str) -> Option<&RecordedFile> {
        self.files.iter().find(|file| file.path == path)
    }

    /// Whether the agent loaded a skill.
    pub fn used(&self, skill: &str) -> bool {
        self.skills_used.iter().any(|used| used == skill)
    }

    /// The digest of what graders see.
    pub fn digest(&self) -> String {
        // A trace has no map with other keys than strings, so it can be written.
        sha256_hex(&serde_json::to_vec(self).unwrap_or_default())
    }

    /// Reads a recorded trial.
    pub fn read(path: &Path) -> io::Result<Self> {
        let mut bytes = Vec::new();
        fs::File::open(path)?.take(MAX_TRACE_BYTES + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > MAX_TRACE_BYTES {
            return Err(io::Error::new(
                io::ErrorKind::FileTooLarge,
                "the recorded trial is too large",
            ));
        }
        let trace: Self = serde_json::from_slice(&bytes).map_err(io::Error::from)?;
        if trace.format != TRACE_FORMAT {
            let message = format!("it has the format {}, expected {TRACE_FORMAT}", trace.format);
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        Ok(trace)
    }
}

/// Records the files below a folder, without following links. Returns them and the number of files
/// that were left out.
pub fn record_files(
    root: &Path,
    is_skipped: &dyn Fn(&str) -> bool,
) -> io::Result<(Vec<RecordedFile>, usize)> {
    let mut recorder = FileRecorder { root, is_skipped, files: Vec::new(), left_out: 0, bytes: 0 };
    recorder.folder("", 0)?;
    recorder.files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok((recorder.files, recorder.left_out))
}

/// Deepest folder that is recorded.
const MAX_DEPTH: usize = 32;

struct FileRecorder<'a> {
    root: &'a Path,
    is_skipped: &'a dyn Fn(&str) -> bool,
    files: Vec<RecordedFile>,
    left_out: usize,
    bytes: u64,
}

impl FileRecorder<'_> {
    fn folder(&mut self, prefix: &str, depth: usize) -> io::Result<()> {
        let mut entries: Vec<fs::DirEntry> =
            fs::read_dir(self.root.join(prefix))?.collect::<io::Result<_>>()?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let Ok(name) = entry.file_name().into_string() else {
                self.left_out += 1;
                continue;
            };
            let path = if prefix.is_empty() { name } else { format!("{prefix}/{name}") };
            if (self.is_skipped)(&path) {
                continue;
            }
            let metadata = fs::symlink_metadata(entry.path())?;
            if metadata.is_dir() && depth < MAX_DEPTH {
                self.folder(&path, depth + 1)?;
            } else if metadata.is_file() && self.files.len() < MAX_RECORDED_FILES {
                self.file(path, &metadata)?;
            } else {
                self.left_out += 1;
            }
        }
        Ok(())
    }

    fn file(&mut self, path: String, metadata: &fs::Metadata) -> io::Result<()> {
        let size = metadata.len();
        let executable = is_executable(metadata);
        let fits = size <= MAX_RECORDED_FILE_BYTES && self.bytes + size <= MAX_RECORDED_BYTES;
        let content = if fits {
            let mut bytes = Vec::new();
            let file = fs::File::open(self.root.join(&path))?;
            file.take(MAX_RECORDED_FILE_BYTES).read_to_end(&mut bytes)?;
            self.bytes += bytes.len() as u64;
            match String::from_utf8(bytes) {
                Ok(text) => Content::Text(text),
                Err(error) => Content::Base64(STANDARD.encode(error.as_bytes())),
            }
        } else {
            Content::Omitted
        };
        self.files.push(RecordedFile { path, size, executable, content });
        Ok(())
    }
}

#[cfg(unix)]
fn is_executable(metadata: &fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    metadata.permissions().mode() & 0o111 != 0
}

#[cfg(not(unix))]
fn is_executable(_: &fs::Metadata) -> bool {
    false
}

/// Writes recorded files into an empty folder. Files whose content was not recorded are an error,
/// because a command would see another workspace.
pub fn restore_files(files: &[RecordedFile], root: &Path) -> io::Result<()> {
    for file in files {
        let is_inside = !file.path.starts_with('/')
            && file.path.split('/').all(|part| !matches!(part, "" | "." | ".."));
        if !is_inside {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "a path leads out of the workspace",
            ));
        }
        let Some(bytes) = file.bytes() else {
            let message = format!("{} was too large to be recorded", file.path);
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        };
        let path = root.join(&file.path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(&path, bytes)?;
        if file.executable {
            make_executable(&path)?;
        }
    }
    Ok(())
}

#[cfg(unix)]
fn make_executable(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
}

#[cfg(not(unix))]
fn make_executable(_: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_recorded_without_following_links_and_restored() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("w");
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::create_dir_all(root.join(".agents/skills")).unwrap();
        fs::write(dir.path().join("secret"), "s").unwrap();
        fs::write(root.join("a/b/x.txt"), "é").unwrap();
        fs::write(root.join("raw.bin"), [0xff, 0xfe]).unwrap();
        fs::write(root.join(".agents/skills/SKILL.md"), "x").unwrap();
        fs::write(root.join("big"), vec![b'x'; (1 << 20) + 1]).unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink(dir.path().join("secret"), root.join("link")).unwrap();
        let (files, left_out) = record_files(&root, &|path| path == ".agents").unwrap();
        let paths: Vec<_> = files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, ["a/b/x.txt", "big", "raw.bin"]);
        assert_eq!(left_out, usize::from(cfg!(unix)));
        assert_eq!(files[1].content, Content::Omitted);
        let again = dir.path().join("again");
        fs::create_dir(&again).unwrap();
        let small: Vec<_> = files.iter().filter(|file| file.path != "big").cloned().collect();
        restore_files(&small, &again).unwrap();
        assert_eq!(fs::read(again.join("raw.bin")).unwrap(), [0xff, 0xfe]);
        assert!(restore_files(&files, &again).is_err(), "a file without content");
        let outside = RecordedFile { path: "../x".into(), ..files[0].clone() };
        assert!(restore_files(&[outside], &again).is_err());
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    /// A trial in which nothing happened.
    pub(crate) fn trace() -> Trace {
        Trace {
            format: TRACE_FORMAT,
            key: "key".to_owned(),
            machine: String::new(),
            case: "1".to_owned(),
            arm: Arm::WithSkill,
            trial: 0,
            host: HostRecord::default(),
            prompt: "Do it.".to_owned(),
            answer: String::new(),
            messages: Vec::new(),
            calls: Vec::new(),
            tools: Vec::new(),
            skills_used: Vec::new(),
            files: Vec::new(),
            files_left_out: 0,
            usage: TokenUsage::default(),
            requests: 1,
            duration_ms: 10,
            limit: None,
        }
    }
}
