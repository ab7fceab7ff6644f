//! Checks whether a host rejects the file, truncates values, or ignores fields.

use savoir_lint::{Diagnostic, Span};

use crate::{
    check::{Context, Target, rule::rule},
    dialect::Dialect,
    document::{Document, State},
    name::{self, NameGrammar},
    yaml::{Entry, Node, NodeData},
};

rule! {
    /// A host that the skill is meant for rejects it.
    ///
    /// ## Why
    ///
    /// The skill works where it was written, but not on this host. `--target` selects the hosts.
    ///
    /// ## Bad
    ///
    /// ````markdown target=claude-ai
    /// ---
    /// name: claude-helper
    /// description: Shows a rule. Use when learning.
    /// ---
    /// # Demo
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown target=claude-ai
    /// ---
    /// name: demo
    /// description: Shows a rule. Use when learning.
    /// ---
    /// # Demo
    /// ````
    TARGET_REJECTS = "target-rejects", Error, run targets
}

rule! {
    /// A host that the skill is meant for cuts a value short.
    ///
    /// ## Why
    ///
    /// The model sees only the beginning and may miss when to use the skill. `--target` selects
    /// the hosts.
    ///
    /// ## Bad
    ///
    /// ````markdown target=agentskills
    /// ---
    /// name: demo
    /// description: Shows a rule --- use when learning.
    /// ---
    /// # Demo
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown target=agentskills
    /// ---
    /// name: demo
    /// description: Shows a rule. Use when learning.
    /// ---
    /// # Demo
    /// ````
    TARGET_TRUNCATES = "target-truncates", Warning
}

rule! {
    /// A host that the skill is meant for ignores a field.
    ///
    /// ## Why
    ///
    /// The field has no effect there: tools are not limited, a model is not chosen. Fields that
    /// are only informative, such as a license, are not reported. `--target` selects the hosts.
    ///
    /// ## Bad
    ///
    /// ````markdown target=codex
    /// ---
    /// name: demo
    /// description: Shows a rule. Use when learning.
    /// allowed-tools: Read Grep
    /// ---
    /// # Demo
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown target=codex
    /// ---
    /// name: demo
    /// description: Shows a rule. Use when learning.
    /// ---
    /// # Demo
    /// ````
    TARGET_IGNORES = "target-ignores", Warning
}

/// Longest description in the catalog of Codex.
const CODEX_DESCRIPTION: usize = 1024;

/// Longest description and `when_to_use` in the catalog of Claude Code.
const CLAUDE_DESCRIPTION: usize = 1536;

/// Longest description and compatibility of the base format.
const BASE_DESCRIPTION: usize = 1024;
const BASE_COMPATIBILITY: usize = 500;

/// Fields that inform people and change nothing, so that no host can be said to ignore them.
const INFORMATIVE_FIELDS: [&str; 12] = [
    "license", "compatibility", "metadata", "version", "author", "authors", "tags", "category",
    "homepage", "repository", "source", "registry",
];

/// Systems and installers that OpenClaw knows.
const OPENCLAW_SYSTEMS: [&str; 3] = ["darwin", "linux", "win32"];
const OPENCLAW_INSTALLERS: [&str; 5] = ["brew", "node", "go", "uv", "download"];

/// All three rules, for each host that was named.
fn targets(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    for target in &context.options.targets {
        let mut host =
            Host { target: *target, context, document: &context.reading.document, found };
        match target {
            Target::AgentSkills => host.agentskills(),
            Target::ClaudeCode => host.claude_code(),
            Target::ClaudeAi => host.claude_ai(),
            Target::Codex => host.codex(),
            Target::OpenClaw => host.openclaw(),
        }
    }
}

struct Host<'a, 'f> {
    target: Target,
    context: &'a Context<'a>,
    document: &'a Document,
    found: &'f mut Vec<Diagnostic>,
}

impl<'a> Host<'a, '_> {
    fn agentskills(&mut self) {
        let layout = *self.document.layout();
        let head = self.document.head_span();
        if layout.bom > 0 || !layout.blank.is_empty() || layout.block.is_none() {
            self.rejects(
                head,
                "the file does not start with `---`",
                "put `---` first, without a byte order mark or a blank line before it",
            );
            return;
        }
        self.strict_yaml();
        self.inner_fence();
        self.only_base_fields();
        self.base_values();
        self.folder_name();
        let nested = |entry: &&Entry| entry.value.text().is_none();
        let metadata = self.node("metadata").and_then(Node::entries).unwrap_or_default();
        if let Some(entry) = metadata.iter().find(nested) {
            let message = format!("`metadata.{}` becomes text, its structure is lost", entry.key);
            self.ignores(entry.key_span, &message, "keep `metadata` a map from text to text");
        }
    }

    fn claude_code(&mut self) {
        if self.is_broken() {
            self.rejects(
                self.document.head_span(),
                "the frontmatter is not valid YAML, so the skill is missing from the catalog",
                "fix the YAML; `--fix` can do most of it",
            );
        }
        self.unread_fields(Dialect::CLAUDE_CODE);
        let length = |key: &str| self.text(key).map_or(0, |text| text.chars().count());
        let shown = length("description") + length("when_to_use");
        if shown > CLAUDE_DESCRIPTION {
            let span = self.span("description");
            let message = format!(
                "the catalog shows {CLAUDE_DESCRIPTION} of {shown} characters of description and `when_to_use`"
            );
            self.truncates(span, &message, "put the most important part first, or shorten them");
        }
        let folder = self.context.folder.and_then(|folder| folder.name());
        if let (Some(folder), Some(name)) = (folder, self.text("name"))
            && name.trim() != folder
        {
            let message = format!("the command is `/{folder}`, after the folder, not `/{name}`");
            self.ignores(self.span("name"), &message, "give both the same name");
        }
    }

    fn claude_ai(&mut self) {
        if self.is_broken() || self.document.fields().is_none() {
            self.rejects(
                self.document.head_span(),
                "the frontmatter is missing or not valid YAML",
                "start the file with `---`, valid fields, and `---`",
            );
            return;
        }
        self.only_base_fields();
        self.base_values();
        if let Some(name) = self.text("name") {
            let lower = name.to_lowercase();
            if let Some(word) = ["anthropic", "claude"].iter().find(|word| lower.contains(*word)) {
                let message = format!("the name contains the reserved word `{word}`");
                self.rejects(self.span("name"), &message, "choose a name without it");
            }
        }
        for key in ["name", "description"] {
            if let Some(tag) = self.text(key).and_then(xml_tag) {
                let message = format!("`{key}` has the XML tag `{tag}`");
                self.rejects(self.span(key), &message, "write it without angle brackets");
            }
        }
    }

    fn codex(&mut self) {
        let head = self.document.head_span();
        if self.document.state() == State::Unreadable {
            let help = "fix the YAML; `--fix` can do most of it";
            self.rejects(head, "the frontmatter cannot be read", help);
        }
        let description = self.text("description").unwrap_or_default();
        if description.trim().is_empty() {
            let help = "say what the skill does and when to use it";
            self.rejects(head, "the description is missing", help);
        }
        let length = description.chars().count();
        if length > CODEX_DESCRIPTION {
            let message = format!(
                "the catalog shows {CODEX_DESCRIPTION} of {length} characters of the description"
            );
            self.truncates(
                self.span("description"),
                &message,
                "put the most important part first, or shorten it",
            );
        }
        if let Some(name) = self.text("name")
            && name.chars().count() > name::MAX_NAME_CHARS
        {
            let message = format!("the name has more than {} characters", name::MAX_NAME_CHARS);
            self.rejects(self.span("name"), &message, "choose a shorter name");
        }
        for entry in self.document.entries() {
            let key = entry.key.as_str();
            if !matches!(key, "name" | "description") && !INFORMATIVE_FIELDS.contains(&key) {
                let help =
                    "Codex reads name and description; policy belongs in `agents/openai.yaml`";
                self.ignores(entry.key_span, &format!("`{key}` is not read"), help);
            }
        }
    }

    fn openclaw(&mut self) {
        let head = self.document.head_span();
        if self.is_broken() {
            let message = "the frontmatter is not valid YAML and is read line by line, so lists, maps and longer values are lost";
            self.truncates(head, message, "fix the YAML; `--fix` can do most of it");
        }
        if self.text("description").is_none_or(|text| text.trim().is_empty()) {
            let help = "say what the skill does and when to use it";
            self.rejects(head, "the description is missing", help);
        }
        self.unread_fields(Dialect::OPENCLAW);
        if self.document.field("allowed-tools").is_some() {
            let span = self.span("allowed-tools");
            self.ignores(span, "`allowed-tools` limits nothing", "do not rely on it there");
        }
        let blocks = ["metadata.openclaw", "metadata.clawdbot", "metadata.clawdis"];
        let Some(block) = blocks.iter().find_map(|path| self.node(path)) else { return };
        let systems = block.get("os");
        let single = systems.filter(|node| node.text().is_some()).map(std::slice::from_ref);
        let systems = single.or_else(|| systems.and_then(Node::items)).unwrap_or_default();
        for node in systems {
            let word = node.text().unwrap_or_default();
            if !OPENCLAW_SYSTEMS.contains(&word) {
                let message = format!("`{word}` is not an operating system");
                self.ignores(node.span, &message, "use darwin, linux or win32");
            }
        }
        for node in block.get("install").and_then(Node::items).unwrap_or_default() {
            let Some(kind) = node.get("kind") else { continue };
            let word = kind.text().unwrap_or_default();
            if !OPENCLAW_INSTALLERS.contains(&word) {
                let message = format!("an installer of kind `{word}` is dropped");
                self.ignores(kind.span, &message, "use brew, node, go, uv or download");
            }
        }
    }

    /// Reports what a strict YAML reader rejects: repairs, flow style, duplicates, anchors, tags.
    fn strict_yaml(&mut self) {
        if self.is_broken() {
            let help = "fix the YAML; `--fix` can do most of it";
            self.rejects(self.document.head_span(), "the frontmatter is not valid YAML", help);
            return;
        }
        for problem in self.document.problems() {
            let what = match problem.code {
                "duplicate-key" => "a duplicate field",
                "yaml-alias" => "an anchor or alias",
                "yaml-tag" => "a tag",
                _ => continue,
            };
            self.rejects(
                problem.span,
                &format!("the frontmatter has {what}"),
                "write it out plainly",
            );
        }
        if let Some(flow) = self.document.fields().and_then(first_flow) {
            self.rejects(
                flow.span,
                "the frontmatter has a list or map in brackets",
                "write it in block style, one entry to a line",
            );
        }
    }

    /// The reference validator ends the frontmatter at the next `---`, wherever it is.
    fn inner_fence(&mut self) {
        let Some(block) = self.document.layout().closed_block() else { return };
        let yaml = block.yaml.slice(self.document.text());
        if let Some(at) = memchr::memmem::find(yaml.as_bytes(), b"---") {
            let start = block.yaml.start + at;
            self.truncates(
                Span::new(start, start + 3),
                "`---` inside a value ends the frontmatter, the rest is lost",
                "use a dash or other words",
            );
        }
    }

    fn only_base_fields(&mut self) {
        let fields = Dialect::AGENTSKILLS.language().fields(None);
        let unknown: Vec<&Entry> = self
            .document
            .entries()
            .iter()
            .filter(|entry| fields.iter().all(|field| field.key != entry.key))
            .collect();
        let Some(first) = unknown.first() else { return };
        let names = unknown.iter().map(|entry| format!("`{}`", entry.key)).collect::<Vec<_>>();
        let message = format!("unexpected fields: {}", names.join(", "));
        self.rejects(first.key_span, &message, "remove them, or keep them under `metadata`");
    }

    fn base_values(&mut self) {
        let head = self.document.head_span();
        for key in ["name", "description"] {
            if self.text(key).is_none_or(|text| text.trim().is_empty()) {
                let help = "add it; the base format requires a name and a description";
                self.rejects(head, &format!("the field `{key}` is missing or empty"), help);
            }
        }
        if let Some(name) = self.text("name").filter(|name| !name.trim().is_empty())
            && let Err(problem) = NameGrammar::AgentSkills.check(name)
        {
            let help = "use lower-case letters, digits and single hyphens, 64 at most";
            self.rejects(self.span("name"), &format!("the name is invalid: {problem}"), help);
        }
        for (key, most) in
            [("description", BASE_DESCRIPTION), ("compatibility", BASE_COMPATIBILITY)]
        {
            let length = self.text(key).map_or(0, |text| text.chars().count());
            if length > most {
                let message = format!("`{key}` has {length} characters, the limit is {most}");
                self.rejects(self.span(key), &message, "shorten it; details belong in the body");
            }
        }
    }

    fn folder_name(&mut self) {
        let folder = self.context.folder.and_then(|folder| folder.name());
        if let (Some(folder), Some(name)) = (folder, self.text("name"))
            && name::canonical(name) != name::canonical(folder)
        {
            let message = format!("the folder `{folder}` has another name than the skill `{name}`");
            self.rejects(self.span("name"), &message, "give both the same name");
        }
    }

    /// Fields with an effect elsewhere that the dialect of this host does not have.
    fn unread_fields(&mut self, dialect: Dialect) {
        let fields = dialect.language().fields(None);
        for entry in self.document.entries() {
            let key = entry.key.as_str();
            let read =
                fields.iter().any(|field| field.key == key) || INFORMATIVE_FIELDS.contains(&key);
            if !read {
                let help = "remove it, or keep it for other hosts";
                self.ignores(entry.key_span, &format!("`{key}` is not read"), help);
            }
        }
    }

    fn is_broken(&self) -> bool {
        matches!(self.document.state(), State::Repaired | State::Unreadable)
    }

    fn node(&self, path: &str) -> Option<&'a Node> {
        self.document.fields()?.path(path)
    }

    fn text(&self, key: &str) -> Option<&'a str> {
        self.document.field(key)?.text()
    }

    fn span(&self, key: &str) -> Span {
        self.document.field(key).map_or(self.document.head_span(), |node| node.span)
    }

    fn title(&self) -> &'static str {
        match self.target {
            Target::AgentSkills => "skills-ref",
            Target::ClaudeCode => "Claude Code",
            Target::ClaudeAi => "claude.ai",
            Target::Codex => "Codex",
            Target::OpenClaw => "OpenClaw",
        }
    }

    fn rejects(&mut self, span: Span, message: &str, help: &str) {
        let message = format!("{} rejects the skill: {message}", self.title());
        self.found.push(Diagnostic::error(TARGET_REJECTS.code, span, message).help(help));
    }

    fn truncates(&mut self, span: Span, message: &str, help: &str) {
        let message = format!("{} cuts a value: {message}", self.title());
        self.found.push(Diagnostic::warning(TARGET_TRUNCATES.code, span, message).help(help));
    }

    fn ignores(&mut self, span: Span, message: &str, help: &str) {
        let message = format!("{} ignores a part: {message}", self.title());
        self.found.push(Diagnostic::warning(TARGET_IGNORES.code, span, message).help(help));
    }
}

/// The first list or map in brackets.
fn first_flow(node: &Node) -> Option<&Node> {
    if node.is_flow() {
        return Some(node);
    }
    match &node.data {
        NodeData::Scalar { .. } => None,
        NodeData::Sequence { items, .. } => items.iter().find_map(first_flow),
        NodeData::Mapping { entries, .. } => {
            entries.iter().find_map(|entry| first_flow(&entry.value))
        }
    }
}

/// `<word>` or `</word>`, not a comparison.
fn xml_tag(text: &str) -> Option<&str> {
    memchr::memchr_iter(b'<', text.as_bytes()).find_map(|open| {
        let inside = text[open + 1..].trim_start_matches('/');
        let close = open + text[open..].find('>')?;
        inside.starts_with(|c: char| c.is_ascii_alphabetic()).then(|| &text[open..=close])
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{
        Options,
        rules::testing::{find_with, folder, skill},
    };

    fn messages(target: Target, text: &str) -> Vec<(&'static str, String)> {
        let options = Options { targets: vec![target], ..Options::default() };
        let mut all = Vec::new();
        for code in [TARGET_REJECTS.code, TARGET_TRUNCATES.code, TARGET_IGNORES.code] {
            let found = find_with(code, text, Some(&folder("demo", &[])), &options);
            all.extend(found.into_iter().map(|found| (code, found.message)));
        }
        all
    }

    fn codes(target: Target, text: &str) -> Vec<&'static str> {
        messages(target, text).into_iter().map(|(code, _)| code).collect()
    }

    fn with(fields: &str) -> String {
        format!(
            "---\nname: demo\ndescription: Shows a rule. Use when learning.\n{fields}---\n# x\n"
        )
    }

    #[test]
    fn plain_skill_passes_every_target() {
        for target in Target::ALL {
            assert!(codes(target, &skill("# x\n")).is_empty(), "{target}");
        }
        assert!(find_with(TARGET_REJECTS.code, "x", None, &Options::default()).is_empty());
    }

    #[test]
    fn the_reference_validator() {
        let target = Target::AgentSkills;
        for text in [
            format!("\u{feff}{}", skill("x")),
            format!("\n{}", skill("x")),
            with("metadata: {a: b}\n"),
            with("author: x\ntags: y\n"),
            with("license: &a MIT\n"),
            with("license: MIT\nlicense: MIT\n"),
            with(&format!("compatibility: {}\n", "x".repeat(501))),
            skill("x").replace("demo", "Demo"),
            skill("x").replace("demo", "other"),
            skill("x").replace("name: demo\n", ""),
            skill("x").replace("rule. Use", "rule: use"),
        ] {
            assert!(codes(target, &text).contains(&TARGET_REJECTS.code), "{text}");
        }
        let cut = skill("x").replace("rule. Use", "rule --- use");
        assert_eq!(codes(target, &cut), [TARGET_TRUNCATES.code]);
        assert_eq!(codes(target, &with("metadata:\n  a:\n    b: c\n")), [TARGET_IGNORES.code]);
        assert!(codes(target, &with("allowed-tools:\n  - Read\n")).is_empty());
    }

    #[test]
    fn claude_ai_and_claude_code_differ() {
        let web = |text: &str| codes(Target::ClaudeAi, text);
        assert_eq!(web(&skill("x").replace("demo", "my-claude-demo")), [TARGET_REJECTS.code]);
        assert_eq!(web(&skill("x").replace("rule", "<b>rule</b>")), [TARGET_REJECTS.code]);
        assert!(web(&skill("x").replace("rule", "rule <3 and a > b")).is_empty());
        assert_eq!(web(&with("model: x\n")), [TARGET_REJECTS.code]);
        let claude_code_finds = |text: &str| codes(Target::ClaudeCode, text);
        assert!(claude_code_finds(&with("model: x\nauthor: y\n")).is_empty());
        assert_eq!(claude_code_finds(&with("triggers: x\n")), [TARGET_IGNORES.code]);
        assert_eq!(claude_code_finds(&skill("x").replace("demo", "other")), [TARGET_IGNORES.code]);
        let long = with(&format!("when_to_use: {}\n", "x".repeat(1600)));
        assert_eq!(claude_code_finds(&long), [TARGET_TRUNCATES.code]);
    }

    #[test]
    fn codex_and_openclaw() {
        let codex = |text: &str| codes(Target::Codex, text);
        assert_eq!(
            codex(&with("allowed-tools: Read\nmodel: x\nlicense: MIT\n")),
            [TARGET_IGNORES.code; 2]
        );
        assert_eq!(codex("# x\n"), [TARGET_REJECTS.code]);
        let long = format!("---\nname: demo\ndescription: {}\n---\n# x\n", "x".repeat(1025));
        assert_eq!(codex(&long), [TARGET_TRUNCATES.code]);
        let claw = |text: &str| codes(Target::OpenClaw, text);
        assert_eq!(
            claw(&with(
                "metadata: {openclaw: {os: [macos, linux], install: [{kind: apt}, {kind: brew}]}}\n"
            )),
            [TARGET_IGNORES.code; 2]
        );
    }

    #[test]
    fn the_host_is_named() {
        let found = messages(Target::Codex, &with("allowed-tools: Read\n"));
        assert_eq!(found[0].1, "Codex ignores a part: `allowed-tools` is not read");
    }
}
