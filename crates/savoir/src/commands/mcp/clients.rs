//! The settings files in which agents configure MCP servers.

use std::{
    collections::BTreeSet,
    env, fs,
    path::{Path, PathBuf},
};

use clap::ValueEnum;
use savoir_package::Agent;
use serde_json::{Value, json};
use toml_edit::{Array, DocumentMut, Item, Table, TableLike, value};

use crate::agent_settings::{SettingsFileError, jsonc, lines};

/// The keys of an entry that say how the server is started.
const OWN_KEYS: [&str; 2] = ["command", "args"];

/// An agent whose MCP settings Savoir can change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Client {
    ClaudeCode,
    Codex,
    Cursor,
    Gemini,
    Opencode,
    Qwen,
    /// Visual Studio Code, in which GitHub Copilot reads the servers.
    Vscode,
    Windsurf,
}

/// Which settings to change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ConfigScope {
    #[value(help = "Your settings, for every project")]
    User,
    #[value(help = "The settings of this project, for everyone who works on it")]
    Project,
}

impl Client {
    /// The ids of these agents in the table of agents.
    pub(super) const AGENTS: [&'static str; 8] = [
        "claude-code", "codex", "cursor", "gemini-cli", "opencode", "qwen-code", "github-copilot",
        "windsurf",
    ];

    /// The client for an agent, if Savoir can change its settings.
    pub(super) fn of(agent: &Agent) -> Option<Self> {
        Some(match agent.id {
            "claude-code" => Self::ClaudeCode,
            "codex" => Self::Codex,
            "cursor" => Self::Cursor,
            "gemini-cli" => Self::Gemini,
            "opencode" => Self::Opencode,
            "qwen-code" => Self::Qwen,
            "github-copilot" => Self::Vscode,
            "windsurf" => Self::Windsurf,
            _ => return None,
        })
    }

    /// Part of the file names of stored changes, so it must not change.
    pub(super) fn id(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::Cursor => "cursor",
            Self::Gemini => "gemini",
            Self::Opencode => "opencode",
            Self::Qwen => "qwen",
            Self::Vscode => "vscode",
            Self::Windsurf => "windsurf",
        }
    }

    /// The settings file; `None` if the agent has none for projects.
    pub(super) fn file(self, scope: ConfigScope, home: &Path, project: &Path) -> Option<PathBuf> {
        if scope == ConfigScope::Project {
            let inside = match self {
                Self::ClaudeCode => ".mcp.json",
                Self::Codex => ".codex/config.toml",
                Self::Cursor => ".cursor/mcp.json",
                Self::Gemini => ".gemini/settings.json",
                Self::Opencode => "opencode.json",
                Self::Qwen => ".qwen/settings.json",
                Self::Vscode => ".vscode/mcp.json",
                Self::Windsurf => return None,
            };
            return Some(project.join(inside));
        }
        let set =
            |name: &str| env::var_os(name).map(PathBuf::from).filter(|folder| folder.is_absolute());
        let settings = || set("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config"));
        Some(match self {
            Self::ClaudeCode => match set("CLAUDE_CONFIG_DIR") {
                Some(folder) => folder.join(".claude.json"),
                None => home.join(".claude.json"),
            },
            Self::Codex => {
                set("CODEX_HOME").unwrap_or_else(|| home.join(".codex")).join("config.toml")
            }
            Self::Cursor => home.join(".cursor/mcp.json"),
            Self::Gemini => home.join(".gemini/settings.json"),
            Self::Opencode => settings().join("opencode/opencode.json"),
            Self::Qwen => home.join(".qwen/settings.json"),
            Self::Vscode if cfg!(target_os = "macos") => {
                home.join("Library/Application Support/Code/User/mcp.json")
            }
            Self::Vscode => settings().join("Code/User/mcp.json"),
            Self::Windsurf => home.join(".codeium/windsurf/mcp_config.json"),
        })
    }

    /// The key of the table with all servers.
    fn servers(self) -> &'static str {
        match self {
            Self::Codex => "mcp_servers",
            Self::Opencode => "mcp",
            Self::Vscode => "servers",
            _ => "mcpServers",
        }
    }

    /// The entry of a server in the format of the agent.
    fn entry(self, command: &str, args: &[String]) -> Value {
        match self {
            Self::Opencode => {
                let words: Vec<&str> =
                    std::iter::once(command).chain(args.iter().map(String::as_str)).collect();
                json!({"type": "local", "command": words, "enabled": true})
            }
            Self::ClaudeCode | Self::Vscode => {
                json!({"type": "stdio", "command": command, "args": args})
            }
            _ => json!({"command": command, "args": args}),
        }
    }

    /// The settings with a server added. If it exists, only its command and arguments change.
    pub(super) fn with_server(
        self,
        text: &str,
        name: &str,
        command: &str,
        args: &[String],
    ) -> Result<String, SettingsFileError> {
        let entry = self.entry(command, args);
        if self != Self::Codex {
            return Ok(jsonc::set(text, self.servers(), name, &entry, &OWN_KEYS)?);
        }
        let mut document: DocumentMut = lines::with_plain_line_ends(text).parse()?;
        let servers = document.entry(self.servers()).or_insert_with(|| {
            let mut table = Table::new();
            table.set_implicit(true);
            Item::Table(table)
        });
        let Some(servers) = servers.as_table_like_mut() else {
            return Err(SettingsFileError {
                line: None,
                message: "`mcp_servers` is not a table".to_owned(),
            });
        };
        let known = servers.get_mut(name).and_then(Item::as_table_like_mut);
        let known = known.filter(|table| table.contains_key("command"));
        let args = args.iter().collect::<Array>();
        if let Some(known) = known {
            put(known, "command", command.into());
            put(known, "args", args.into());
        } else {
            let mut table = Table::new();
            table.insert("command", value(command));
            table.insert("args", value(args));
            servers.insert(name, Item::Table(table));
        }
        Ok(lines::with_line_ends_of(text, &document.to_string()))
    }

    /// The settings with a server removed.
    pub(super) fn without_server(
        self,
        text: &str,
        name: &str,
    ) -> Result<String, SettingsFileError> {
        if self != Self::Codex {
            return Ok(jsonc::remove(text, self.servers(), name)?);
        }
        let mut document: DocumentMut = lines::with_plain_line_ends(text).parse()?;
        let servers = document.get_mut(self.servers()).and_then(Item::as_table_like_mut);
        if let Some(servers) = servers {
            servers.remove(name);
        }
        Ok(lines::with_line_ends_of(text, &document.to_string()))
    }

    /// The command and arguments of a server, if it exists.
    pub(super) fn command(
        self,
        text: &str,
        name: &str,
    ) -> Result<Option<Vec<String>>, SettingsFileError> {
        let entry = if self == Self::Codex {
            let document: DocumentMut = lines::with_plain_line_ends(text).parse()?;
            let entry = document.get(self.servers()).and_then(|servers| servers.get(name));
            entry.map(|entry| {
                let args = entry.get("args").and_then(Item::as_array).into_iter().flatten();
                let args: Vec<&str> = args.filter_map(toml_edit::Value::as_str).collect();
                json!({"command": entry.get("command").and_then(Item::as_str), "args": args})
            })
        } else if text.trim().is_empty() {
            None
        } else {
            jsonc::get(text, self.servers(), name)?
        };
        Ok(entry.map(|entry| words(&entry)))
    }
}

/// The names of the MCP servers that the user configured for an agent, here or for every project.
pub(crate) fn known_servers(home: &Path, project: &Path) -> BTreeSet<String> {
    let clients = Client::AGENTS.iter().filter_map(|id| Client::of(Agent::by_id(id).ok()?));
    let files = clients.flat_map(|client| {
        [ConfigScope::User, ConfigScope::Project]
            .into_iter()
            .filter_map(move |scope| Some((client, client.file(scope, home, project)?)))
    });
    let mut names = BTreeSet::new();
    for (client, file) in files {
        // A missing or invalid file contains no servers.
        let Ok(text) = fs::read_to_string(file) else { continue };
        names.extend(client.server_names(&text));
    }
    names
}

impl Client {
    fn server_names(self, text: &str) -> Vec<String> {
        if self == Self::Codex {
            let document = lines::with_plain_line_ends(text).parse::<DocumentMut>().ok();
            let servers = document.as_ref().and_then(|found| found.get(self.servers()));
            let table = servers.and_then(Item::as_table_like);
            return table
                .into_iter()
                .flat_map(|all| all.iter())
                .map(|(key, _)| key.to_owned())
                .collect();
        }
        let servers = jsonc::get_at(text, &[self.servers()]).ok().flatten();
        let servers = servers.as_ref().and_then(Value::as_object);
        servers.into_iter().flat_map(|all| all.keys().cloned()).collect()
    }
}

/// Replaces a value if it differs, and keeps its whitespace and comments.
fn put(table: &mut dyn TableLike, key: &str, mut new: toml_edit::Value) {
    let texts = |value: &toml_edit::Value| match value {
        toml_edit::Value::Array(all) => {
            all.iter().filter_map(|one| one.as_str().map(str::to_owned)).collect()
        }
        one => Vec::from_iter(one.as_str().map(str::to_owned)),
    };
    match table.get_mut(key).and_then(Item::as_value_mut) {
        Some(old) if texts(old) == texts(&new) => {}
        Some(old) => {
            *new.decor_mut() = old.decor().clone();
            *old = new;
        }
        None => drop(table.insert(key, Item::Value(new))),
    }
}

fn words(entry: &Value) -> Vec<String> {
    let texts = |value: &Value| match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(all) => all.iter().filter_map(|one| one.as_str().map(str::to_owned)).collect(),
        _ => Vec::new(),
    };
    texts(&entry["command"]).into_iter().chain(texts(&entry["args"])).collect()
}
