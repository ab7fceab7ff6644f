//! Implements the dialect of gibb.eri.sh: the body declares command tools, each in an H3 section
//! with a table and a command.

pub(crate) mod tools;

use savoir_lint::{Diagnostic, Edit, Fix, Severity};
use serde_json::Value;

use super::{
    BodyUse, Clues, Conventions, DefaultFileAccess, Evidence, FolderNameRule, Language,
    NetworkDefault, NewFile, Reader, StartFolder, ToolExecution, VariableContent, scaffold::title,
};
use crate::{
    convert::Fields,
    document::Document,
    frontmatter::{Fences, Unclosed},
    name::NameGrammar,
    permission::{self, Domain, Level, Permission},
    shape::{Field, Limit, Shape, UnknownFields},
    skill::Skill,
    version,
    yaml::{Node, write::write_scalar},
};

#[derive(Debug)]
pub(super) struct Gibberish;

/// Modes of the user in which a skill can be offered.
const MODES: [&str; 4] = ["Global", "Dev", "Meeting", "Writer"];

const TIMEOUT: std::ops::RangeInclusive<i64> = 1..=300;
const DEFAULT_TIMEOUT: u32 = 30;
const DESCRIPTION_CHARS: usize = 256;

const FIELDS: &[Field] = &[
    Field::required(
        "name",
        Shape::Name(NameGrammar::Ascii, Severity::Error),
        "Lower-case letters, digits and single hyphens; the same as the folder.",
    ),
    Field::required("version", Shape::Version, "Three numbers, such as `1.0.0` (SemVer 2.0.0)."),
    Field::required(
        "description",
        Shape::Text(&[Limit::warning(DESCRIPTION_CHARS, "description-truncated")]),
        "What the skill does and when to use it; cut at 256 characters.",
    ),
    Field::optional("author", Shape::Text(&[]), "Who wrote it."),
    Field::optional(
        "modes",
        Shape::List(&Shape::Word(&MODES)),
        "Situations in which it is offered.",
    ),
    Field::optional("read_only", Shape::Bool, "Changes nothing, so it may run without asking."),
    Field::optional("always_ask", Shape::Bool, "Asks before every run."),
    Field::optional(
        "timeout",
        Shape::Clamped(*TIMEOUT.start(), *TIMEOUT.end()),
        "Seconds, from 1 to 300.",
    ),
    Field::optional("network", Shape::Bool, "Needs the network."),
];

impl Language for Gibberish {
    fn id(&self) -> &'static str {
        "gibberish"
    }

    fn title(&self) -> &'static str {
        "gibb.eri.sh"
    }

    fn about(&self) -> &'static str {
        "gibb.eri.sh's command tools, each a section of the body with parameters and a command."
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["gibb", "gibb.eri.sh"]
    }

    fn fences(&self) -> Fences {
        Fences { skip_blank_lines: true, exact: false, unclosed: Unclosed::Error, optional: false }
    }

    fn evidence(&self, clues: &Clues<'_>) -> Option<Evidence> {
        clues.document.fields()?;
        if let Some(key) = clues.first_of(&["modes", "read_only", "always_ask"]) {
            return Some(Evidence::strong(5, format!("only gibb.eri.sh has `{key}`")));
        }
        // A file that was converted from gibberish still has the sections, but is another dialect.
        if clues.text("metadata.savoir-from") == Some("gibberish") {
            return None;
        }
        let tool = tools::first_command_tool(clues.document)?;
        Some(Evidence::strong(5, format!("the section `### {tool}` has a `#### Command`")))
    }

    fn fields(&self, _: Option<&Document>) -> &'static [Field] {
        FIELDS
    }

    fn unknown_fields(&self) -> UnknownFields {
        UnknownFields::Closed
    }

    fn read(&self, reader: &Reader<'_>, skill: &mut Skill) {
        reader.identity(skill);
        skill.version = reader.text("version");
        skill.authors = reader.strings("author");
        let known = |mode: &String| MODES.contains(&mode.as_str());
        let policy = &mut skill.policy;
        policy.modes = reader.strings("modes").into_iter().filter(known).collect();
        if policy.modes.is_empty() {
            policy.modes.push("Global".into());
        }
        policy.read_only = reader.boolean("read_only");
        policy.always_ask = reader.boolean("always_ask");
        policy.timeout = Some(timeout(reader));
        if reader.boolean("network") == Some(true) {
            skill.permissions.extend(permission::any_network());
        }
        skill.tools = tools::read(reader.document).0;
    }

    fn check(&self, reader: &Reader<'_>, _: &Skill, found: &mut Vec<Diagnostic>) {
        if has_gibberish_metadata(reader) {
            found.retain(|found| {
                found.code != "unknown-field" || found.field.as_deref() != Some("metadata")
            });
        }
        modes(reader, found);
        clamped_timeout(reader, found);
        found.extend(tools::read(reader.document).1);
    }

    fn conventions(&self) -> Conventions {
        Conventions {
            folder_name: Some(FolderNameRule::EQUAL),
            body: BodyUse::Tools,
            ..Conventions::COMMON
        }
    }

    fn declare(&self, _document: &Document, permissions: &[Permission]) -> Vec<(String, Value)> {
        let uses = |domain, level| {
            permissions.iter().any(|one| one.domain == domain && one.level == level)
        };
        let writes = uses(Domain::Filesystem, Level::Write);
        let network = uses(Domain::Network, Level::Read) || uses(Domain::Network, Level::Write);
        vec![
            ("read_only".to_owned(), Value::Bool(!writes)),
            ("network".to_owned(), Value::Bool(network)),
        ]
    }

    fn running(&self) -> ToolExecution {
        ToolExecution {
            place: StartFolder::Repository,
            files: DefaultFileAccess::Repository,
            network: NetworkDefault::Off,
            seconds: 30,
            variables: &[
                ("GIBBERISH_SKILL_NAME", VariableContent::Name),
                ("GIBBERISH_SKILL_DIR", VariableContent::Folder),
                ("GIBBERISH_MODE", VariableContent::Mode),
            ],
            ..ToolExecution::COMMON
        }
    }

    fn write(&self, skill: &Skill, fields: &mut Fields) {
        let policy = &skill.policy;
        fields.put("name", "name", skill.name.clone());
        let semver = skill.version.as_deref().filter(|text| version::parse_version(text).is_ok());
        match semver {
            Some(version) => fields.put("version", "version", version),
            None => {
                fields.put_approximate(
                    "version",
                    "version",
                    "0.0.0",
                    "gibb.eri.sh needs a SemVer version",
                );
            }
        }
        fields.put("description", "description", skill.description.clone());
        fields.put("authors", "author", skill.authors.join(", "));
        if policy.modes != ["Global"] {
            fields.put("policy.modes", "modes", policy.modes.clone());
        }
        fields.put("policy.read_only", "read_only", policy.read_only);
        fields.put("policy.always_ask", "always_ask", policy.always_ask);
        fields.put(
            "policy.timeout",
            "timeout",
            policy.timeout.filter(|seconds| *seconds != DEFAULT_TIMEOUT),
        );
        let any_network = permission::any_network();
        let network = skill.permissions.iter().any(|grant| {
            grant.domain == any_network[0].domain && grant.level != permission::Level::None
        });
        if network {
            if skill.permissions == any_network {
                fields.put("permissions", "network", true);
            } else {
                let why = "`network` is only yes or no, and does not cover files and programs";
                fields.put_approximate("permissions", "network", true, why);
            }
        }
    }

    fn description_limit(&self) -> Option<usize> {
        Some(DESCRIPTION_CHARS)
    }

    fn scaffold(&self, name: &str, description: &str) -> Vec<NewFile> {
        let text = format!(
            "---\nname: {name}\nversion: 0.1.0\ndescription: {}\nread_only: true\ntimeout: 10\n---\n\n# {}\n\n\
             ### list_files\n\nList the files of a folder.\n\n#### Parameters\n\n\
             | Name | Type | Required | Description |\n|------|------|----------|-------------|\n\
             | folder | string | no | The folder to list (default: .) |\n\
             | hidden | boolean | no | Show hidden files too |\n\n\
             #### Command\n\n```bash\nls -1 {{{{hidden:-A}}}} -- {{{{folder}}}}\n```\n",
            write_scalar(description, self.yaml()),
            title(name)
        );
        vec![NewFile::new("SKILL.md", text)]
    }
}

/// Whether `metadata` contains only the stash of a conversion.
fn has_gibberish_metadata(reader: &Reader<'_>) -> bool {
    let entries = reader.node("metadata").and_then(Node::entries).unwrap_or_default();
    !entries.is_empty() && entries.iter().all(|entry| entry.key.starts_with("savoir-"))
}

fn timeout(reader: &Reader<'_>) -> u32 {
    let seconds = reader.node("timeout").and_then(|node| node.clamped_integer(reader.version));
    let clamped = seconds.map(|seconds| seconds.clamp(*TIMEOUT.start(), *TIMEOUT.end()));
    clamped.and_then(|seconds| u32::try_from(seconds).ok()).unwrap_or(DEFAULT_TIMEOUT)
}

fn clamped_timeout(reader: &Reader<'_>, found: &mut Vec<Diagnostic>) {
    let Some(node) = reader.node("timeout") else { return };
    let Some(seconds) = node.clamped_integer(reader.version) else { return };
    if !TIMEOUT.contains(&seconds) {
        let used = timeout(reader);
        let written = node.text().unwrap_or_default();
        let message = format!("a timeout of {written} seconds is read as {used}");
        found.push(
            Diagnostic::warning("timeout-clamped", node.span, message)
                .field("timeout")
                .help("use 1 to 300 seconds")
                .fix(Fix::unsafe_edits(vec![Edit::replace(node.span, used.to_string())])),
        );
    }
}

fn modes(reader: &Reader<'_>, found: &mut Vec<Diagnostic>) {
    let items = reader.node("modes").and_then(Node::items).unwrap_or_default();
    let unknown: Vec<&Node> =
        items.iter().filter(|node| node.text().is_none_or(|mode| !MODES.contains(&mode))).collect();
    for node in &unknown {
        let word = node.text().unwrap_or_default();
        let none_is_left = unknown.len() == items.len();
        let effect = if none_is_left { ", and no mode is left" } else { " and is ignored" };
        let message = format!("`{word}` is not a mode{effect}");
        let mut problem = Diagnostic::warning("unknown-mode", node.span, message).field("modes");
        if none_is_left {
            problem.severity = Severity::Error;
        }
        let near = MODES.iter().find(|mode| mode.eq_ignore_ascii_case(word));
        problem = match near {
            Some(near) => problem
                .help(format!("did you mean `{near}`?"))
                .fix(Fix::unsafe_edits(vec![Edit::replace(node.span, *near)])),
            None => problem.help(format!("there are {}", MODES.join(", "))),
        };
        found.push(problem);
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        dialect::{Dialect, detect},
        document::Document,
        reading::read_as,
    };
    use savoir_lint::Source;

    #[test]
    fn converted_files_are_another_dialect() {
        let found = |metadata: &str| {
            let text = format!(
                "---\nname: x\ndescription: d\n{metadata}---\n\n### go\n\nGo.\n\n\
                 #### Command\n\n```bash\ntrue\n```\n"
            );
            detect(&Document::parse(Source::new(text)), None).map(|found| found.dialect)
        };
        assert_eq!(found(""), Some(Dialect::GIBBERISH));
        assert_eq!(found("metadata:\n  savoir-from: skillrt\n"), Some(Dialect::GIBBERISH));
        assert_eq!(found("metadata:\n  savoir-from: gibberish\n"), Some(Dialect::AGENTSKILLS));
    }

    #[test]
    fn unknown_fields_are_not_moved_to_metadata() {
        let text = "---\nname: x\nversion: 1.0.0\ndescription: d\nmetadata: {a: b}\n---\n# x\n";
        let reading = read_as(Source::new(text.to_owned()), Dialect::GIBBERISH, None);
        let unknown = reading.diagnostics.iter().find(|found| found.code == "unknown-field");
        let help = unknown.and_then(|found| found.help.as_deref());
        assert_eq!(help, Some("remove it: no reader uses it"));
    }

    /// The code and message of each finding.
    fn findings(fields: &str) -> Vec<(&'static str, bool, String)> {
        let text = format!(
            "---\nname: x\nversion: 1.0.0\ndescription: d\n{fields}---\n### t\n\nDoes.\n\n\
             #### Parameters\n\nNone.\n\n#### Command\n\n```bash\ntrue\n```\n"
        );
        let reading = read_as(Source::new(text), Dialect::GIBBERISH, None);
        let found = reading.diagnostics.iter();
        found.map(|found| (found.code, found.is_error(), found.message.clone())).collect()
    }

    #[test]
    fn unknown_modes_are_errors_only_if_no_mode_is_left() {
        let ignored = "`dev` is not a mode and is ignored".to_owned();
        assert_eq!(findings("modes: [dev, Global]\n"), [("unknown-mode", false, ignored)]);
        let none = "`dev` is not a mode, and no mode is left".to_owned();
        assert_eq!(findings("modes: [dev]\n"), [("unknown-mode", true, none)]);
    }

    #[test]
    fn timeouts_of_any_size_are_clamped() {
        for (timeout, used) in
            [("301", 300), ("99999999999999999999", 300), ("-99999999999999999999", 1), ("0", 1)]
        {
            let message = format!("a timeout of {timeout} seconds is read as {used}");
            let expected = [("timeout-clamped", false, message)];
            assert_eq!(findings(&format!("timeout: {timeout}\n")), expected);
        }
        assert_eq!(findings("timeout: \"30\"\n")[0].0, "wrong-type");
        assert_eq!(findings("timeout: \"99999999999999999999\"\n")[0].0, "wrong-type");
    }

    #[test]
    fn only_savoir_metadata_is_not_reported() {
        let unknown = |metadata: &str| {
            let text = format!(
                "---\nname: x\nversion: 1.0.0\ndescription: d\nmetadata: {metadata}\n---\n# x\n"
            );
            let reading = read_as(Source::new(text), Dialect::GIBBERISH, None);
            reading.diagnostics.iter().filter(|found| found.code == "unknown-field").count()
        };
        assert_eq!(unknown("{savoir-from: skillrt}"), 0);
        assert_eq!(unknown("{savoir-from: skillrt, other: x}"), 1);
        assert_eq!(unknown("{}"), 1);
    }
}
