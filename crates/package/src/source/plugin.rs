//! Lists the items of plugins besides skills, which are not installed.

use std::collections::BTreeSet;

use serde_json::Value;

use super::layout::{below, is_markdown, join, last_part};
use crate::source::summary::stem;

/// Folders that contain a plugin manifest.
const PLUGIN_FILES: [&str; 5] =
    [".claude-plugin", ".codex-plugin", ".cursor-plugin", ".agents-plugin", ".github/plugin"];

/// Maximum plugin files that are read.
pub(super) const MAX_FILES_READ: usize = 500;

/// The kind of an item of a plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ExtraKind {
    /// A command that runs on an event.
    Hook,
    /// A slash command.
    Command,
    /// A subagent.
    Agent,
    McpServer,
    /// A language server.
    LspServer,
    /// A plugin from another repository.
    Plugin,
}

impl ExtraKind {
    /// Formats a count, such as `2 hooks`.
    pub fn count(self, count: usize) -> String {
        let noun = match self {
            Self::Hook => "hook",
            Self::Command => "command",
            Self::Agent => "agent",
            Self::McpServer => "MCP server",
            Self::LspServer => "LSP server",
            Self::Plugin => "plugin of another repository",
        };
        match (self, count) {
            (_, 1) => format!("1 {noun}"),
            (Self::Plugin, _) => format!("{count} plugins of other repositories"),
            _ => format!("{count} {noun}s"),
        }
    }
}

/// An item of a plugin that is not installed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PluginExtra {
    pub kind: ExtraKind,
    /// The name; for a hook, its event.
    pub name: String,
    /// The file in the repository that declares it.
    pub path: String,
    /// The name of the plugin.
    pub plugin: String,
}

/// Access to the files of plugins.
pub(super) trait Files {
    /// Returns the paths of all files, sorted.
    fn paths(&self) -> Vec<&str>;

    /// Reads a JSON file.
    fn json(&self, path: &str) -> Option<Value>;
}

/// Returns the files that must be read to list the items of plugins.
pub(super) fn files_to_read<'a>(paths: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let is_wanted = |path: &&str| {
        let is_mark = PLUGIN_FILES.iter().any(|mark| {
            path.strip_suffix("/plugin.json")
                .or_else(|| path.strip_suffix("/marketplace.json"))
                .is_some_and(|folder| folder == *mark || folder.ends_with(&format!("/{mark}")))
        });
        let name = last_part(path);
        let is_json = std::path::Path::new(name).extension().is_some_and(|end| end == "json");
        let in_hooks = is_json && path.split('/').rev().nth(1) == Some("hooks");
        is_mark || in_hooks || matches!(name, ".mcp.json" | "mcp.json" | ".lsp.json" | "hooks.json")
    };
    paths.filter(is_wanted).take(MAX_FILES_READ).collect()
}

/// Returns the items of all plugins of a repository besides skills.
pub(super) fn extras(files: &impl Files) -> Vec<PluginExtra> {
    let paths = files.paths();
    let mut plugins: BTreeSet<(String, String)> = BTreeSet::new();
    let mut found = BTreeSet::new();
    for path in &paths {
        let Some((root, file)) = plugin_file(path) else { continue };
        let Some(value) = files.json(path) else { continue };
        if file == "plugin.json" {
            let name = name_of(&value, root);
            declared_extras(&value, path, root, &name, files, &mut found);
            plugins.insert((root.to_owned(), name));
            continue;
        }
        for plugin in value.get("plugins").and_then(Value::as_array).into_iter().flatten() {
            let name = name_of(plugin, root);
            let source = plugin.get("source").and_then(Value::as_str);
            if let Some(folder) = source.and_then(|at| inside(root, at)) {
                declared_extras(plugin, path, &folder, &name, files, &mut found);
                plugins.insert((folder, name));
            } else {
                found.insert(extra(ExtraKind::Plugin, &name, path, &name));
            }
        }
    }
    for (root, plugin) in &plugins {
        extras_in_folders(&paths, root, plugin, files, &mut found);
    }
    // A plugin may be listed in a marketplace and have its own manifest, too.
    let mut seen = BTreeSet::new();
    found.retain(|extra| seen.insert((extra.kind, extra.name.clone(), extra.path.clone())));
    found.into_iter().collect()
}

/// Returns the root of the plugin that a file belongs to, and the name of the file.
fn plugin_file(path: &str) -> Option<(&str, &str)> {
    let (folder, file) = path.rsplit_once('/')?;
    if !matches!(file, "plugin.json" | "marketplace.json") {
        return None;
    }
    let root = |mark: &&str| {
        let root = folder.strip_suffix(*mark)?;
        root.is_empty().then_some("").or_else(|| root.strip_suffix('/'))
    };
    Some((PLUGIN_FILES.iter().find_map(root)?, file))
}

fn name_of(value: &Value, root: &str) -> String {
    let named = value.get("name").and_then(Value::as_str).map(str::to_owned);
    named.unwrap_or_else(|| last_part(root).to_owned())
}

/// Joins the root of a plugin and a path; returns `None` if it leads out of the repository.
fn inside(root: &str, path: &str) -> Option<String> {
    if path.starts_with('/') || path.contains(':') {
        return None;
    }
    let mut parts: Vec<&str> = root.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// Returns the items that a plugin manifest lists.
fn declared_extras(
    value: &Value,
    path: &str,
    root: &str,
    plugin: &str,
    files: &impl Files,
    found: &mut BTreeSet<PluginExtra>,
) {
    for (field, kind) in [
        ("hooks", ExtraKind::Hook),
        ("mcpServers", ExtraKind::McpServer),
        ("lspServers", ExtraKind::LspServer),
    ] {
        match value.get(field) {
            Some(Value::String(at)) => {
                let Some(at) = inside(root, at) else { continue };
                if let Some(value) = files.json(&at) {
                    found.extend(listed(kind, &value, &at, plugin));
                }
            }
            Some(value) => found.extend(listed(kind, value, path, plugin)),
            None => {}
        }
    }
    for (field, kind) in [("commands", ExtraKind::Command), ("agents", ExtraKind::Agent)] {
        let Some(value) = value.get(field) else { continue };
        let listed = match value {
            Value::Array(items) => items.iter().filter_map(Value::as_str).collect(),
            Value::String(one) => vec![one.as_str()],
            _ => Vec::new(),
        };
        for at in listed.into_iter().filter_map(|at| inside(root, at)) {
            let texts = files
                .paths()
                .into_iter()
                .filter(|file| is_markdown(file) && (*file == at || below(file, &at).is_some()));
            found.extend(texts.map(|text| extra(kind, stem(last_part(text)), text, plugin)));
        }
    }
}

/// Returns the items in the default folders of a plugin.
fn extras_in_folders(
    paths: &[&str],
    root: &str,
    plugin: &str,
    files: &impl Files,
    found: &mut BTreeSet<PluginExtra>,
) {
    for (file, kind) in [
        ("hooks/hooks.json", ExtraKind::Hook),
        ("hooks.json", ExtraKind::Hook),
        (".mcp.json", ExtraKind::McpServer),
        (".lsp.json", ExtraKind::LspServer),
    ] {
        let path = join(root, file);
        if let Some(value) = files.json(&path) {
            found.extend(listed(kind, &value, &path, plugin));
        }
    }
    for (folder, kind) in [("commands", ExtraKind::Command), ("agents", ExtraKind::Agent)] {
        let folder = join(root, folder);
        let texts = paths.iter().filter(|path| {
            is_markdown(path) && below(path, &folder).is_some() && !path.ends_with("README.md")
        });
        found.extend(texts.map(|text| extra(kind, stem(last_part(text)), text, plugin)));
    }
}

fn extra(kind: ExtraKind, name: &str, path: &str, plugin: &str) -> PluginExtra {
    let [name, path, plugin] = [name, path, plugin].map(str::to_owned);
    PluginExtra { kind, name, path, plugin }
}

/// Returns the hooks or servers of an object, which may be inside a field of the same name.
fn listed(kind: ExtraKind, value: &Value, path: &str, plugin: &str) -> Vec<PluginExtra> {
    let wrapper = match kind {
        ExtraKind::Hook => "hooks",
        ExtraKind::LspServer => "lspServers",
        _ => "mcpServers",
    };
    let inner = value.get(wrapper).filter(|inner| inner.is_object()).unwrap_or(value);
    let Some(members) = inner.as_object() else { return Vec::new() };
    let mut found = Vec::new();
    for (name, value) in members {
        // Each hook group of an event has a list of commands.
        let groups = value.as_array().map(Vec::as_slice).unwrap_or_default();
        let commands =
            |group: &Value| group.get("hooks").and_then(Value::as_array).map_or(1, Vec::len);
        let count = match kind {
            ExtraKind::Hook => groups.iter().map(commands).sum::<usize>(),
            _ => usize::from(value.is_object()),
        };
        for number in 1..=count {
            let name = if number == 1 { name.clone() } else { format!("{name} ({number})") };
            found.push(extra(kind, &name, path, plugin));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Memory(Vec<(&'static str, &'static str)>);

    impl Files for Memory {
        fn paths(&self) -> Vec<&str> {
            self.0.iter().map(|(path, _)| *path).collect()
        }

        fn json(&self, path: &str) -> Option<Value> {
            let (_, text) = self.0.iter().find(|(known, _)| *known == path)?;
            serde_json::from_str(text).ok()
        }
    }

    fn shown(files: &[(&'static str, &'static str)]) -> Vec<String> {
        let shown = |extra: PluginExtra| {
            format!("{:?} {} {} {}", extra.kind, extra.name, extra.path, extra.plugin)
        };
        extras(&Memory(files.to_vec())).into_iter().map(shown).collect()
    }

    #[test]
    fn plugin_extras_are_listed() {
        let found = shown(&[
            (".claude-plugin/plugin.json", r#"{"name": "p", "mcpServers": {"db": {}}}"#),
            (".mcp.json", r#"{"mcpServers": {"files": {"command": "x"}}}"#),
            ("agents/reviewer.md", ""),
            ("commands/deploy.md", ""),
            ("commands/README.md", ""),
            (
                "hooks/hooks.json",
                r#"{"hooks": {"Stop": [{"hooks": [{}, {}]}], "PreToolUse": [{"hooks": [{}]}]}}"#,
            ),
            ("skills/a/SKILL.md", ""),
        ]);
        assert_eq!(
            found,
            [
                "Hook PreToolUse hooks/hooks.json p",
                "Hook Stop hooks/hooks.json p",
                "Hook Stop (2) hooks/hooks.json p",
                "Command deploy commands/deploy.md p",
                "Agent reviewer agents/reviewer.md p",
                "McpServer db .claude-plugin/plugin.json p",
                "McpServer files .mcp.json p",
            ]
        );
    }

    #[test]
    fn marketplace_plugins_are_listed() {
        let marketplace = r#"{"plugins": [
            {"name": "a", "source": "./plugins/a", "commands": ["./cmd/x.md"]},
            {"name": "far", "source": {"source": "github", "repo": "o/r"}},
            {"name": "out", "source": "../elsewhere"}
        ]}"#;
        let found = shown(&[
            (".claude-plugin/marketplace.json", marketplace),
            ("commands/not-of-a-plugin.md", ""),
            ("plugins/a/agents/b.md", ""),
            ("plugins/a/cmd/x.md", ""),
            ("plugins/a/.mcp.json", r#"{"one": {}}"#),
        ]);
        assert_eq!(
            found,
            [
                "Command x plugins/a/cmd/x.md a",
                "Agent b plugins/a/agents/b.md a",
                "McpServer one plugins/a/.mcp.json a",
                "Plugin far .claude-plugin/marketplace.json far",
                "Plugin out .claude-plugin/marketplace.json out",
            ]
        );
        assert_eq!(shown(&[("hooks/hooks.json", "{}"), ("commands/x.md", "")]), [""; 0]);
        assert_eq!(shown(&[(".claude-plugin/plugin.json", "[")]), [""; 0]);
    }

    #[test]
    fn counts_have_plural_forms() {
        assert_eq!(ExtraKind::Hook.count(3), "3 hooks");
        assert_eq!(ExtraKind::McpServer.count(1), "1 MCP server");
        assert_eq!(ExtraKind::Plugin.count(2), "2 plugins of other repositories");
    }

    #[test]
    fn only_needed_plugin_files_are_read() {
        let paths = [
            ".claude-plugin/plugin.json", "a/.codex-plugin/plugin.json", "plugin.json",
            "x/hooks/pre.json", ".mcp.json", "package.json",
        ];
        let wanted = files_to_read(paths.into_iter());
        assert_eq!(wanted, [paths[0], paths[1], paths[3], paths[4]]);
    }
}
