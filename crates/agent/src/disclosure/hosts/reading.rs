//! Reads skill files by the rules of other agents instead of Savoir's own checks.

use savoir_skill::{
    frontmatter::{Fences, Layout, Unclosed},
    yaml::{Node, Tree, YamlVersion},
};

use super::{
    BrokenYaml, HostRules, InstalledSkill, MissingDescription, ModelInvocationField, NameSource,
};

/// A line `---` opens the frontmatter at the start of the file, and another one closes it.
const FRONTMATTER_FENCES: Fences =
    Fences { skip_blank_lines: false, exact: false, unclosed: Unclosed::Body, optional: true };
const YAML_VERSION: YamlVersion = YamlVersion::V1_2;
/// No value can begin with these unless it is in quotes, or is a list, a map or an alias.
const YAML_SPECIAL_STARTS: [char; 8] = ['@', '`', '[', '{', '%', '&', '*', '!'];

/// The files of a skill that a host reads.
#[derive(Clone, Copy, Debug)]
pub struct SkillFiles<'a> {
    /// The name of the folder.
    pub folder: &'a str,
    /// The path of SKILL.md.
    pub path: &'a str,
    /// The content of SKILL.md.
    pub text: &'a str,
    /// The content of the side file of the host, if the skill has it.
    pub side: Option<&'a str>,
}

impl HostRules {
    /// The file beside SKILL.md that the host reads.
    pub fn side_file(&self) -> Option<&'static str> {
        match self.disables_model_invocation {
            ModelInvocationField::Field(_) => None,
            ModelInvocationField::SideFile { file, .. } => Some(file),
        }
    }

    /// Reads a skill as the host does.
    pub fn read(&self, files: SkillFiles<'_>) -> InstalledSkill {
        let mut installed = InstalledSkill {
            name: one_line(files.folder),
            path: files.path.to_owned(),
            model_invocable: true,
            ..InstalledSkill::default()
        };
        let layout = Layout::new(files.text, FRONTMATTER_FENCES);
        let yaml = layout.closed_block().map(|block| block.yaml.slice(files.text));
        let Ok(fields) = self.fields(yaml.unwrap_or_default()) else {
            let why = "its frontmatter is no YAML that this agent reads; see savoir check";
            installed.broken = Some(why.to_owned());
            return installed;
        };
        let text = |key: &str| fields.as_ref().and_then(|fields| words(fields.get(key)?));
        if self.takes_name == NameSource::Field
            && let Some(name) = text("name")
        {
            installed.name = name;
        }
        installed.when_to_use = text("when_to_use");
        match (text("description"), self.no_description) {
            (Some(description), _) => installed.description = description,
            (None, MissingDescription::FirstParagraph) => {
                installed.description = first_paragraph(layout.body.slice(files.text));
            }
            (None, MissingDescription::NotLoaded) => {
                let why = "it has no description, and this agent loads none without";
                installed.broken = Some(why.to_owned());
            }
        }
        installed.model_invocable = !self.disables_model_invocation(fields.as_ref(), files.side);
        installed
    }

    /// The fields of a frontmatter; nothing if it is empty.
    fn fields(&self, yaml: &str) -> Result<Option<Node>, ()> {
        let tree = match (Tree::parse(yaml), self.broken_yaml) {
            (Ok(tree), _) => tree,
            (Err(_), BrokenYaml::Quoted) => Tree::parse(&quoted(yaml)).map_err(|_| ())?,
            (Err(_), BrokenYaml::NotListed) => return Err(()),
        };
        match tree.root {
            Some(root) if root.entries().is_none() && !root.is_null(YAML_VERSION) => Err(()),
            root => Ok(root),
        }
    }

    fn disables_model_invocation(&self, fields: Option<&Node>, side: Option<&str>) -> bool {
        match self.disables_model_invocation {
            ModelInvocationField::Field(key) => {
                fields.and_then(|fields| fields.get(key)?.boolean(YAML_VERSION)) == Some(true)
            }
            // Errors in the side file are ignored.
            ModelInvocationField::SideFile { path, .. } => {
                let side = side.and_then(|text| Tree::parse(text).ok()?.root);
                side.and_then(|side| side.path(path)?.boolean(YAML_VERSION)) == Some(false)
            }
        }
    }
}

/// Puts values in quotes that break YAML, line by line.
fn quoted(yaml: &str) -> String {
    yaml.lines().map(|line| quoted_line(line).unwrap_or_else(|| line.to_owned()) + "\n").collect()
}

fn quoted_line(line: &str) -> Option<String> {
    let (key, value) = line.split_once(": ")?;
    let value = value.trim();
    let broken =
        value.contains(": ") || value.ends_with(':') || value.starts_with(YAML_SPECIAL_STARTS);
    let plain = !value.starts_with(['"', '\'']);
    (broken && plain).then(|| format!("{key}: '{}'", value.replace('\'', "''")))
}

/// The text of a value in one line; nothing if it has none.
fn words(node: &Node) -> Option<String> {
    let text = node.text().filter(|_| !node.is_null(YAML_VERSION)).map(one_line)?;
    (!text.is_empty()).then_some(text)
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the first paragraph that is not a heading.
fn first_paragraph(body: &str) -> String {
    let lines = body.lines().map(str::trim);
    let text = lines.skip_while(|line| line.is_empty() || line.starts_with('#'));
    text.take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn installed(agent: &str, text: &str, side: Option<&str>) -> InstalledSkill {
        let files = SkillFiles { folder: "folder", path: "/folder/SKILL.md", text, side };
        HostRules::of(agent).unwrap().read(files)
    }

    #[test]
    fn values_are_quoted_only_where_needed() {
        let text = "a: b\nc: d: e\nf: 'g: h'\ni: @j\nk: it's: l\n";
        assert_eq!(quoted(text), "a: b\nc: 'd: e'\nf: 'g: h'\ni: '@j'\nk: 'it''s: l'\n");
    }

    #[test]
    fn field_without_a_value_is_ignored() {
        let text = "---\nname:\ndescription: ~\n---\n\n# Title\n\nDoes\n  it.\n\nMore.\n";
        let claude = installed("claude-code", text, None);
        assert_eq!((claude.name.as_str(), claude.description.as_str()), ("folder", "Does it."));
        let codex = installed("codex", text, None);
        assert_eq!(codex.name, "folder");
        assert!(codex.broken.unwrap().contains("description"));
    }

    #[test]
    fn invalid_side_file_is_ignored() {
        let text = "---\nname: a\ndescription: b\n---\n";
        let no = "policy: {allow_implicit_invocation: false}";
        for (side, seen) in [(None, true), (Some("policy: ["), true), (Some(no), false)] {
            assert_eq!(installed("codex", text, side).model_invocable, seen, "{side:?}");
        }
        assert!(installed("claude-code", text, Some(no)).model_invocable);
    }

    #[test]
    fn frontmatter_that_is_not_a_map_is_rejected() {
        for agent in ["claude-code", "codex"] {
            for text in ["---\n- a\n---\nb\n", "---\nname: {\n---\nb\n", "---\nwords\n---\nb\n"] {
                assert!(installed(agent, text, None).broken.is_some(), "{agent} {text:?}");
            }
        }
    }
}
