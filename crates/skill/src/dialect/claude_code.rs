//! Implements the dialect of Claude Code: the base format with fields for invoking, forking and
//! restricting a skill.

use savoir_lint::{Diagnostic, Edit, Fix, Severity};

use super::{
    Clues, Conventions, Evidence, FolderNameRule, Language, NewFile, Reader,
    agentskills::{FENCES, TOOLS, tools_text, write_base},
    scaffold::title,
};
use crate::{
    allowed_tools,
    convert::Fields,
    document::{Document, State},
    frontmatter::Fences,
    name::{self, NameGrammar},
    render::Placeholders,
    shape::{Field, Limit, Shape},
    skill::{Input, InputKind, Mode, Skill},
    yaml::write::write_scalar,
};

#[derive(Debug)]
pub(super) struct ClaudeCode;

/// Maximum length of description and `when_to_use` together in the catalog.
const CATALOG_CHARS: usize = 1536;

/// Fields that no other dialect has.
const OWN_KEYS: [&str; 11] = [
    "disable-model-invocation", "user-invocable", "argument-hint", "arguments", "disallowed-tools",
    "effort", "agent", "background", "hooks", "paths", "shell",
];

/// Fields that the host uses and that the model stores unchanged.
const HOST_KEYS: [&str; 10] = [
    "argument-hint", "effort", "agent", "background", "hooks", "paths", "shell", "display-name",
    "default-enabled", "fallback",
];

const FIELDS: &[Field] = &[
    Field::optional(
        "name",
        Shape::Name(NameGrammar::AgentSkills, Severity::Warning),
        "Defaults to the folder's name, which is the command.",
    ),
    Field::advised(
        "description",
        Shape::Scalar(&[Limit::warning(1024, "description-truncated")]),
        "What the skill does and when to use it.",
    ),
    Field::optional("when_to_use", Shape::Scalar(&[]), "Added to the description in the catalog."),
    Field::optional("argument-hint", Shape::Any, "Shown while the user types the command."),
    Field::optional(
        "arguments",
        Shape::Either(&[Shape::List(&Shape::Scalar(&[])), Shape::Scalar(&[])]),
        "Names of positional arguments.",
    ),
    Field::optional("disable-model-invocation", Shape::Bool, "Only the user can start it."),
    Field::optional("user-invocable", Shape::Bool, "`false` hides it from the `/` menu."),
    Field::optional("allowed-tools", TOOLS, "Tools that may be used without asking."),
    Field::optional("disallowed-tools", TOOLS, "Tools that may not be used."),
    Field::optional("model", Shape::Text(&[]), "Name of the model."),
    Field::optional(
        "effort",
        Shape::Choice(&["low", "medium", "high", "xhigh", "max"]),
        "How hard the model thinks.",
    ),
    Field::optional("context", Shape::Choice(&["fork"]), "`fork` runs it in a sub-agent."),
    Field::optional("agent", Shape::Scalar(&[]), "Type of the sub-agent."),
    Field::optional("background", Shape::Bool, "Runs in the background."),
    Field::optional("hooks", Shape::Map, "Commands on life-cycle events."),
    Field::optional(
        "paths",
        Shape::Either(&[Shape::List(&Shape::Scalar(&[])), Shape::Scalar(&[])]),
        "Globs that limit activation.",
    ),
    Field::optional("shell", Shape::Choice(&["bash", "powershell"]), "Shell of `` !`cmd` ``."),
    Field::optional("display-name", Shape::Scalar(&[]), "Name for people."),
    Field::optional("default-enabled", Shape::Bool, "Whether it starts enabled."),
    Field::optional("fallback", Shape::Any, "Used when nothing else fits."),
    Field::optional("license", Shape::Scalar(&[]), "License name or bundled license file."),
    Field::optional(
        "compatibility",
        Shape::Scalar(&[Limit::warning(500, "too-long")]),
        "What the skill needs from its environment.",
    ),
    Field::optional("metadata", Shape::Map, "Any further fields."),
];

impl Language for ClaudeCode {
    fn id(&self) -> &'static str {
        "claude-code"
    }

    fn title(&self) -> &'static str {
        "Claude Code"
    }

    fn about(&self) -> &'static str {
        "Claude Code's skills: the base format with fields for starting, forking and limiting."
    }

    fn placeholders(&self) -> Placeholders {
        Placeholders::Claude
    }

    fn fences(&self) -> Fences {
        FENCES
    }

    fn repairs(&self) -> bool {
        true
    }

    /// Claude Code uses the folder name and the first lines of the text instead.
    fn without_frontmatter(&self) -> Severity {
        Severity::Warning
    }

    fn evidence(&self, clues: &Clues<'_>) -> Option<Evidence> {
        if let Some(key) = clues.first_of(&OWN_KEYS) {
            return Some(Evidence::strong(10, format!("only Claude Code has `{key}`")));
        }
        if clues.text("model").is_some_and(|model| !model.is_empty()) {
            return Some(Evidence::strong(10, "`model` names a model"));
        }
        if clues.has("when_to_use") {
            return Some(Evidence::strong(11, "it has `when_to_use`"));
        }
        (clues.text("context") == Some("fork"))
            .then(|| Evidence::strong(11, "it has `context: fork`"))
    }

    fn fields(&self, _: Option<&Document>) -> &'static [Field] {
        FIELDS
    }

    fn read(&self, reader: &Reader<'_>, skill: &mut Skill) {
        if skill.mode == Mode::Prose && reader.document.state() == State::Absent {
            super::prose::Prose.read(reader, skill);
            return;
        }
        reader.identity(skill);
        reader.base_metadata(skill);
        skill.when_to_use = reader.text("when_to_use");
        let policy = &mut skill.policy;
        policy.allowed_tools = reader.tools("allowed-tools");
        policy.disallowed_tools = reader.tools("disallowed-tools").unwrap_or_default();
        policy.model_invocable = reader.boolean("disable-model-invocation").map(|off| !off);
        policy.user_invocable = reader.boolean("user-invocable");
        policy.context_fork = reader.text("context").as_deref() == Some("fork");
        policy.model = reader.text("model");
        policy.arguments = reader
            .strings("arguments")
            .iter()
            .flat_map(|names| names.split([' ', ',']).filter(|name| !name.is_empty()))
            .map(str::to_owned)
            .collect();
        policy.host = reader.host(&HOST_KEYS);
        skill.inputs = skill.policy.arguments.iter().map(|name| input(name)).collect();
    }

    fn check(&self, reader: &Reader<'_>, skill: &Skill, found: &mut Vec<Diagnostic>) {
        let shown = skill.description.chars().count()
            + skill.when_to_use.as_deref().map_or(0, |hint| hint.chars().count());
        if let Some(hint) = reader.node("when_to_use").filter(|_| shown > CATALOG_CHARS) {
            let message = format!(
                "description and `when_to_use` have {shown} characters, the catalog shows {CATALOG_CHARS}"
            );
            found.push(
                Diagnostic::warning("description-truncated", hint.span, message)
                    .field("when_to_use")
                    .help("shorten them; details belong in the body"),
            );
        }
        argument_hint(reader, found);
    }

    fn conventions(&self) -> Conventions {
        let folder_name = FolderNameRule {
            severity: Severity::Warning,
            form: name::canonical,
            ..FolderNameRule::EQUAL
        };
        Conventions { folder_name: Some(folder_name), ..Conventions::COMMON }
    }

    fn write(&self, skill: &Skill, fields: &mut Fields) {
        write_base(skill, fields);
        let policy = &skill.policy;
        fields.put("when_to_use", "when_to_use", skill.when_to_use.clone());
        fields.put("policy.allowed_tools", "allowed-tools", tools_text(skill));
        let denied = allowed_tools::join(&policy.disallowed_tools);
        fields.put("policy.disallowed_tools", "disallowed-tools", denied);
        let disabled = policy.model_invocable.map(|on| !on);
        fields.put("policy.model_invocable", "disable-model-invocation", disabled);
        fields.put("policy.user_invocable", "user-invocable", policy.user_invocable);
        if policy.context_fork {
            fields.put("policy.context_fork", "context", "fork");
        }
        fields.put("policy.model", "model", policy.model.clone());
        let names: Vec<String> = skill.inputs.iter().map(|input| input.name.clone()).collect();
        let plain = skill.inputs.iter().all(|given| *given == input(&given.name));
        if plain {
            fields.put("inputs", "arguments", names);
        } else {
            fields.put_approximate(
                "inputs",
                "arguments",
                names,
                "arguments have names only: no types, defaults or descriptions",
            );
        }
        for key in HOST_KEYS {
            if let Some(value) = policy.host.get(key) {
                fields.put("policy.host", key, value.clone());
            }
        }
        fields.put("version", "metadata.version", skill.version.clone());
        fields.put("authors", "metadata.author", skill.authors.join(", "));
    }

    fn scaffold(&self, name: &str, description: &str) -> Vec<NewFile> {
        vec![NewFile::new(
            "SKILL.md",
            format!(
                "---\nname: {name}\ndescription: {}\nargument-hint: \"[topic]\"\narguments: [topic]\n\
                 allowed-tools: Read Grep Glob\n---\n\n# {}\n\nWork on $topic.\n\n\
                 1. Say what to look at first.\n2. Say what to do with it.\n3. Say how to check the result.\n",
                write_scalar(description, self.yaml()),
                title(name)
            ),
        )]
    }
}

fn input(name: &str) -> Input {
    Input { name: name.to_owned(), kind: InputKind::String, ..Input::default() }
}

/// Reports `argument-hint: [file]`, which is a list in YAML but is meant as text.
fn argument_hint(reader: &Reader<'_>, found: &mut Vec<Diagnostic>) {
    let Some(hint) = reader.node("argument-hint").filter(|hint| hint.text().is_none()) else {
        return;
    };
    let source = hint.span.slice(reader.document.text());
    let mut problem =
        Diagnostic::warning("argument-hint-list", hint.span, "`argument-hint` is a list, not text")
            .field("argument-hint")
            .help("put the hint in quotes");
    if hint.is_flow() && !source.contains(['\n', '"']) {
        let fix = Edit::replace(hint.span, format!("\"{source}\""));
        problem = problem.fix(Fix::unsafe_edits(vec![fix]));
    }
    found.push(problem);
}
