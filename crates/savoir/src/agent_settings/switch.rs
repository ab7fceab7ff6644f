//! The setting that disables a skill in each agent, as documented by the agent.
//!
//! | agent | file | setting |
//! |---|---|---|
//! | Claude Code | `settings.json` | `permissions.deny` has `Skill(name)` |
//! | Codex | `config.toml` of the user | `[[skills.config]]` with `path` and `enabled = false` |
//! | Gemini CLI | `settings.json` | `skills.disabled` has the name |
//! | OpenCode | `opencode.json` | `permission.skill.NAME` is `deny` |
//! | OpenClaw | `openclaw.json` of the user | `skills.entries.NAME.enabled` is false |

use std::{
    collections::BTreeSet,
    env,
    path::{Path, PathBuf},
};

use savoir_package::Agent;
use serde_json::{Value, json};
use toml_edit::{ArrayOfTables, DocumentMut, Item, Table, value};

use super::{SettingsFileError, jsonc, lines, read};

/// An agent with a setting that disables a skill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DisableSetting {
    ClaudeCode,
    Codex,
    Gemini,
    OpenCode,
    OpenClaw,
}

/// Which settings are changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SettingsScope {
    User,
    Project,
}

/// A skill that is disabled or enabled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Skill<'a> {
    pub(crate) name: &'a str,
    /// Folders of the skill, as the agent sees them.
    pub(crate) folders: &'a [PathBuf],
}

/// The disabled skills of an agent.
#[derive(Debug, Default)]
pub(crate) struct DisableRules {
    names: BTreeSet<String>,
    files: BTreeSet<PathBuf>,
}

impl DisableRules {
    /// Whether a skill is disabled: by its name, or in one of its folders.
    pub(crate) fn has(&self, name: &str, mut folders: impl Iterator<Item = PathBuf>) -> bool {
        self.names.contains(name) || !self.files.is_empty() && folders.any(|f| self.has_file(&f))
    }

    fn has_file(&self, folder: &Path) -> bool {
        let file = skill_file(folder);
        self.files.contains(&file) || self.files.contains(folder)
    }
}

/// The file by which Codex identifies a skill.
fn skill_file(folder: &Path) -> PathBuf {
    let lower = folder.join("skill.md");
    let file = folder.join("SKILL.md");
    if !file.exists() && lower.exists() { lower } else { file }
}

impl DisableSetting {
    /// The agents with such a setting.
    pub(crate) const AGENTS: [&'static str; 5] =
        ["claude-code", "codex", "gemini-cli", "opencode", "openclaw"];

    /// The setting of an agent, if it is known.
    pub(crate) fn of(agent: &Agent) -> Option<Self> {
        Some(match agent.id {
            "claude-code" => Self::ClaudeCode,
            "codex" => Self::Codex,
            "gemini-cli" => Self::Gemini,
            "opencode" => Self::OpenCode,
            "openclaw" => Self::OpenClaw,
            _ => return None,
        })
    }

    /// The file to change; `None` if the agent has no settings file for projects.
    pub(crate) fn file(self, scope: SettingsScope, home: &Path, project: &Path) -> Option<PathBuf> {
        let set =
            |name: &str| env::var_os(name).map(PathBuf::from).filter(|folder| folder.is_absolute());
        let folder =
            |name: &str, otherwise: &str| set(name).unwrap_or_else(|| home.join(otherwise));
        Some(match (self, scope) {
            (Self::ClaudeCode, SettingsScope::User) => {
                folder("CLAUDE_CONFIG_DIR", ".claude").join("settings.json")
            }
            (Self::ClaudeCode, SettingsScope::Project) => project.join(".claude/settings.json"),
            (Self::Codex, SettingsScope::User) => {
                folder("CODEX_HOME", ".codex").join("config.toml")
            }
            (Self::Gemini, SettingsScope::User) => home.join(".gemini/settings.json"),
            (Self::Gemini, SettingsScope::Project) => project.join(".gemini/settings.json"),
            (Self::OpenCode, SettingsScope::User) => {
                with_comments(&folder("XDG_CONFIG_HOME", ".config").join("opencode"))
            }
            (Self::OpenCode, SettingsScope::Project) => with_comments(project),
            (Self::OpenClaw, SettingsScope::User) => home.join(".openclaw/openclaw.json"),
            (Self::Codex | Self::OpenClaw, SettingsScope::Project) => return None,
        })
    }

    /// All files in which a skill can be disabled.
    fn files(self, home: &Path, project: &Path) -> Vec<PathBuf> {
        let both = [SettingsScope::User, SettingsScope::Project]
            .map(|scope| self.file(scope, home, project));
        let personal = project.join(".claude/settings.local.json");
        let personal = (self == Self::ClaudeCode).then_some(personal);
        both.into_iter().flatten().chain(personal).collect()
    }

    /// The disabled skills of the agent. Unreadable files are ignored.
    pub(crate) fn rules(self, home: &Path, project: &Path) -> DisableRules {
        let mut rules = DisableRules::default();
        for file in self.files(home, project) {
            let Ok(Some(text)) = read(&file) else { continue };
            // The agent itself reports a broken file.
            let _ = self.read_rules(&text, &mut rules);
        }
        rules
    }

    fn read_rules(self, text: &str, rules: &mut DisableRules) -> Result<(), SettingsFileError> {
        let texts = |value: Option<Value>| -> Vec<String> {
            let items = value.as_ref().and_then(Value::as_array).cloned().unwrap_or_default();
            items.iter().filter_map(|item| item.as_str().map(str::to_owned)).collect()
        };
        match self {
            Self::ClaudeCode => {
                let denied = texts(jsonc::get_at(text, &["permissions", "deny"])?);
                let name = |rule: &String| {
                    let name = rule.strip_prefix("Skill(")?.strip_suffix(')')?;
                    Some(name.to_owned())
                };
                rules.names.extend(denied.iter().filter_map(name));
            }
            Self::Gemini => {
                rules.names.extend(texts(jsonc::get_at(text, &["skills", "disabled"])?));
            }
            Self::OpenCode => {
                let skills = jsonc::get_at(text, &["permission", "skill"])?;
                let skills = skills.as_ref().and_then(Value::as_object).into_iter().flatten();
                let denied = skills.filter(|(_, rule)| *rule == "deny");
                rules.names.extend(denied.map(|(name, _)| name.clone()));
            }
            Self::OpenClaw => {
                let skills = jsonc::get_at(text, &["skills", "entries"])?;
                let skills = skills.as_ref().and_then(Value::as_object).into_iter().flatten();
                let off = skills.filter(|(_, entry)| entry["enabled"] == json!(false));
                rules.names.extend(off.map(|(name, _)| name.clone()));
            }
            Self::Codex => {
                let document: DocumentMut = lines::with_plain_line_ends(text).parse()?;
                let entries = document.get("skills").and_then(|skills| skills.get("config"));
                let entries = entries.and_then(Item::as_array_of_tables).into_iter().flatten();
                for entry in entries.filter(|entry| is_off(entry)) {
                    let text = |key: &str| entry.get(key).and_then(Item::as_str);
                    rules.files.extend(text("path").map(PathBuf::from));
                    rules.names.extend(text("name").map(str::to_owned));
                }
            }
        }
        Ok(())
    }

    /// Adds the setting that disables a skill.
    pub(crate) fn disable(self, text: &str, skill: Skill<'_>) -> Result<String, SettingsFileError> {
        let name = skill.name;
        Ok(match self {
            Self::ClaudeCode => jsonc::add_item(text, &["permissions", "deny"], &deny_rule(name))?,
            Self::Gemini => jsonc::add_item(text, &["skills", "disabled"], name)?,
            Self::OpenCode => jsonc::set_at(text, &["permission", "skill", name], &json!("deny"))?,
            Self::OpenClaw => {
                jsonc::set_at(text, &["skills", "entries", name, "enabled"], &json!(false))?
            }
            Self::Codex => codex(text, skill, DesiredState::Off)?,
        })
    }

    /// Removes the setting that disables a skill.
    pub(crate) fn enable(self, text: &str, skill: Skill<'_>) -> Result<String, SettingsFileError> {
        let name = skill.name;
        Ok(match self {
            Self::ClaudeCode => {
                jsonc::remove_item(text, &["permissions", "deny"], &deny_rule(name))?
            }
            Self::Gemini => jsonc::remove_item(text, &["skills", "disabled"], name)?,
            Self::OpenCode => {
                let path = ["permission", "skill", name];
                match jsonc::get_at(text, &path)? {
                    Some(rule) if rule == "deny" => jsonc::remove_at(text, &path)?,
                    _ => text.to_owned(),
                }
            }
            Self::OpenClaw => {
                let path = ["skills", "entries", name, "enabled"];
                match jsonc::get_at(text, &path)? {
                    Some(Value::Bool(false)) => jsonc::remove_at(text, &path)?,
                    _ => text.to_owned(),
                }
            }
            Self::Codex => codex(text, skill, DesiredState::On)?,
        })
    }
}

/// `opencode.jsonc` in a folder if it exists, otherwise `opencode.json`.
fn with_comments(folder: &Path) -> PathBuf {
    let file = folder.join("opencode.jsonc");
    if file.exists() { file } else { folder.join("opencode.json") }
}

/// The rule of Claude Code that denies a skill.
fn deny_rule(name: &str) -> String {
    format!("Skill({name})")
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum DesiredState {
    On,
    Off,
}

fn is_off(entry: &Table) -> bool {
    entry.get("enabled").and_then(Item::as_bool) == Some(false)
}

/// The entry of Codex that disables the skill with this file.
fn codex_entry(file: &Path) -> Result<Table, SettingsFileError> {
    let path = file.to_str().ok_or_else(|| {
        let message = format!("{} is not UTF-8", file.display());
        SettingsFileError { line: None, message }
    })?;
    let mut entry = Table::new();
    entry.insert("path", value(path));
    entry.insert("enabled", value(false));
    Ok(entry)
}

/// Adds or removes the entries of Codex for the folders of a skill.
fn codex(text: &str, skill: Skill<'_>, wanted: DesiredState) -> Result<String, SettingsFileError> {
    let wrong =
        |what: &str| SettingsFileError { line: None, message: format!("`{what}` is not a table") };
    let mut document: DocumentMut = lines::with_plain_line_ends(text).parse()?;
    let before = document.to_string();
    let skills = document.entry("skills").or_insert_with(|| {
        let mut table = Table::new();
        table.set_implicit(true);
        Item::Table(table)
    });
    let skills = skills.as_table_mut().ok_or_else(|| wrong("skills"))?;
    let entries = skills.entry("config").or_insert(Item::ArrayOfTables(ArrayOfTables::new()));
    let entries = entries.as_array_of_tables_mut().ok_or_else(|| wrong("skills.config"))?;
    for folder in skill.folders {
        let file = skill_file(folder);
        let is_it = |entry: &Table| {
            let path = entry.get("path").and_then(Item::as_str).map(Path::new);
            path == Some(&file) || path == Some(folder)
        };
        match wanted {
            DesiredState::On => entries.retain(|entry| !(is_it(entry) && is_off(entry))),
            DesiredState::Off => {
                let known = entries.iter().position(is_it);
                match known.and_then(|at| entries.get_mut(at)) {
                    Some(entry) if is_off(entry) => {}
                    Some(entry) => drop(entry.insert("enabled", value(false))),
                    None => entries.push(codex_entry(&file)?),
                }
            }
        }
    }
    if wanted == DesiredState::On {
        let is_named = |entry: &Table| entry.get("name").and_then(Item::as_str) == Some(skill.name);
        entries.retain(|entry| !(is_named(entry) && is_off(entry)));
    }
    if entries.is_empty() {
        skills.remove("config");
    }
    if skills.is_empty() && skills.is_implicit() {
        document.remove("skills");
    }
    let after = document.to_string();
    Ok(if before == after { text.to_owned() } else { lines::with_line_ends_of(text, &after) })
}

#[cfg(test)]
mod tests {
    use super::*;

    const JSON: &str = "{\n  // mine\n  \"model\": \"x\",\n  \"permissions\": {\n    \"deny\": [\n      \"Bash(rm *)\" // never\n    ]\n  }\n}\n";
    const TOML: &str = "# mine\nmodel = \"x\" # fast\n\n[mcp_servers.a]\ncommand = \"a\"\n";

    fn skill(folders: &[PathBuf]) -> Skill<'_> {
        Skill { name: "pdf", folders }
    }

    fn has(switch: DisableSetting, text: &str, folders: &[PathBuf]) -> bool {
        let mut rules = DisableRules::default();
        switch.read_rules(text, &mut rules).expect("settings");
        rules.has("pdf", folders.iter().cloned())
    }

    #[test]
    fn disabling_is_idempotent_and_enabling_restores_every_byte() {
        let folders = [PathBuf::from("/home/ada/.agents/skills/pdf")];
        for (switch, texts) in [
            (
                DisableSetting::ClaudeCode,
                ["{}", JSON, "{\"permissions\": {\"allow\": [\"Read\"]}}\n"],
            ),
            (
                DisableSetting::Gemini,
                ["{}", JSON, "{\r\n\t\"skills\": {\"disabled\": [\"a\", \"b\"]}\r\n}\r\n"],
            ),
            (
                DisableSetting::OpenCode,
                ["{}", JSON, "{\"permission\": {\"skill\": {\"*\": \"allow\"}}}"],
            ),
            (
                DisableSetting::OpenClaw,
                ["{}", JSON, "{\"skills\": {\"entries\": {\"pdf\": {\"apiKey\": 1}}}}"],
            ),
            (
                DisableSetting::Codex,
                ["", TOML, "[[skills.config]]\npath = \"/x/SKILL.md\"\nenabled = false\n"],
            ),
        ] {
            for text in texts {
                assert!(!has(switch, text, &folders), "{switch:?} {text}");
                let off = switch.disable(text, skill(&folders)).expect("settings");
                assert!(has(switch, &off, &folders), "{switch:?} {off}");
                let again = switch.disable(&off, skill(&folders)).expect("settings");
                assert_eq!(again, off, "{switch:?}");
                let on = switch.enable(&off, skill(&folders)).expect("settings");
                assert_eq!(on, text, "{switch:?} {off}");
                assert_eq!(switch.enable(text, skill(&folders)).expect("settings"), text);
            }
        }
    }

    #[test]
    fn written_settings_match_the_documentation() {
        let folders = [PathBuf::from("/s/pdf")];
        let off = |switch: DisableSetting, text: &str| {
            switch.disable(text, skill(&folders)).expect("settings")
        };
        assert_eq!(
            off(DisableSetting::ClaudeCode, ""),
            "{\n  \"permissions\": {\n    \"deny\": [\n      \"Skill(pdf)\"\n    ]\n  }\n}\n"
        );
        assert_eq!(
            off(DisableSetting::Codex, ""),
            "[[skills.config]]\npath = \"/s/pdf/SKILL.md\"\nenabled = false\n"
        );
        assert_eq!(
            off(
                DisableSetting::OpenClaw,
                "{\"skills\": {\"entries\": {\"pdf\": {\"apiKey\": 1}}}}"
            ),
            "{\"skills\": {\"entries\": {\"pdf\": {\"apiKey\": 1, \"enabled\": false}}}}"
        );
    }

    #[test]
    fn settings_of_another_shape_are_left_alone() {
        let folders: [PathBuf; 0] = [];
        for (switch, text) in [
            (DisableSetting::ClaudeCode, "{\"permissions\": \"all\"}"),
            (DisableSetting::ClaudeCode, "{\"permissions\": {\"deny\": {}}}"),
            (DisableSetting::OpenCode, "{\"permission\": []}"),
            (DisableSetting::OpenClaw, "{skills: {}}"),
            (DisableSetting::Codex, "skills = 1"),
        ] {
            assert!(switch.disable(text, skill(&folders)).is_err(), "{switch:?} {text}");
        }
    }
}
