//! [`Skill`]: the one model that every dialect is read into. Everything after reading knows only this.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    allowed_tools::ToolGrant,
    command::CommandTemplate,
    dialect::Dialect,
    permission::{Permission, Tier},
};

/// What a SKILL.md says, whatever its dialect.
#[derive(Clone, Debug, Serialize)]
pub struct Skill {
    /// The dialect it was read in.
    pub dialect: Dialect,
    /// Whether it has fields or is a text for an agent to interpret.
    pub mode: Mode,
    /// Its name; the folder's name where the dialect allows to leave it out.
    pub name: String,
    /// SemVer, or free text where the dialect does not care.
    pub version: Option<String>,
    /// What it does and when to use it.
    pub description: String,
    /// A richer hint for when to use it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub when_to_use: Option<String>,
    /// Who wrote it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub authors: Vec<String>,
    /// Licence name or SPDX expression.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub license: Option<String>,
    /// What it needs from its environment, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compatibility: Option<String>,
    /// Words to find it by.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Addresses: `homepage`, `repository`, `registry`.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub links: Map<String, Value>,
    /// Values that are put into the body.
    pub inputs: Vec<Input>,
    /// What it answers with.
    pub outputs: Option<Output>,
    /// Programs and functions that it brings.
    pub tools: Vec<Tool>,
    /// What it may do.
    pub permissions: Vec<Permission>,
    /// What must be there before it runs.
    pub requirements: Requirements,
    /// How it may be started and what holds while it runs.
    pub policy: Policy,
    /// Files beside SKILL.md, relative to its folder.
    pub resources: Vec<String>,
    /// Top-level fields that the dialect does not define.
    pub extra: Map<String, Value>,
    /// The instructions, as they stand in the file.
    pub body: String,
}

/// The two shapes of a SKILL.md.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// With frontmatter.
    #[default]
    Structured,
    /// Without.
    Prose,
}

/// A value that is put into the body.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Input {
    /// The word in the placeholder.
    pub name: String,
    /// The word for people.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub label: Option<String>,
    /// What it accepts.
    #[serde(rename = "type", default)]
    pub kind: InputKind,
    /// Whether a run without it fails.
    #[serde(default)]
    pub required: bool,
    /// The value when none is given.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub default: Option<Value>,
    /// What it means.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub description: Option<String>,
}

/// Types of inputs in all dialects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum InputKind {
    /// One line of text (Agent Flow).
    #[default]
    Text,
    /// Several lines of text (Agent Flow).
    Textarea,
    /// Any text.
    String,
    /// A JSON number.
    Number,
    /// `true` or `false`.
    Boolean,
    /// A file that can be read.
    File,
    /// An absolute URL.
    Url,
    /// Any JSON.
    Json,
}

impl InputKind {
    /// The word in the file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Textarea => "textarea",
            Self::String => "string",
            Self::Number => "number",
            Self::Boolean => "boolean",
            Self::File => "file",
            Self::Url => "url",
            Self::Json => "json",
        }
    }

    /// Reads the word in the file.
    pub fn parse(word: &str) -> Option<Self> {
        [
            Self::Text,
            Self::Textarea,
            Self::String,
            Self::Number,
            Self::Boolean,
            Self::File,
            Self::Url,
            Self::Json,
        ]
        .into_iter()
        .find(|kind| kind.as_str() == word)
    }
}

/// What a skill answers with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Output {
    /// `text`, `json` or `file`.
    #[serde(rename = "type")]
    pub kind: String,
    /// JSON Schema of the answer.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub schema: Option<Value>,
}

impl Output {
    /// Whether an answer can be wrong, which shows once all of it is there.
    pub fn is_checked(&self) -> bool {
        self.kind == "json" || self.schema.as_ref().is_some_and(|schema| !schema.is_null())
    }
}

/// Something a skill brings that can be called.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tool {
    /// Its name within the skill.
    pub name: String,
    /// What it does.
    pub description: String,
    /// What it takes.
    pub parameters: Vec<Parameter>,
    /// Type of what it gives back, if declared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub returns: Option<Value>,
    /// Whether it must run alone.
    pub atomic: bool,
    /// What runs when it is called.
    pub runner: Runner,
}

/// What runs when a tool is called.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "lowercase", tag = "kind")]
pub enum Runner {
    /// A program with arguments, never a shell.
    Command(CommandTemplate),
    /// A decorated function in `tools.py`.
    Python {
        /// Name of the function.
        function: String,
    },
    /// A handler of the skill, `path` or `path:function`.
    Handler {
        /// As written.
        path: String,
    },
}

/// A parameter of a tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// What it accepts.
    #[serde(rename = "type", default)]
    pub kind: ParameterKind,
    /// Whether a call without it fails.
    #[serde(default)]
    pub required: bool,
    /// What it means.
    #[serde(default)]
    pub description: String,
    /// The value when none is given.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub default: Option<Value>,
}

/// Types of tool parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ParameterKind {
    /// Text.
    #[default]
    String,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// `true` or `false`.
    Boolean,
    /// A list of strings.
    Array,
    /// A map.
    Object,
}

impl ParameterKind {
    /// The word in the file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
            Self::Array => "array",
            Self::Object => "object",
        }
    }

    /// Reads the word in the file.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::String, Self::Integer, Self::Number, Self::Boolean, Self::Array, Self::Object]
            .into_iter()
            .find(|kind| kind.as_str() == word)
    }
}

/// What must be there before a skill runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Requirements {
    /// Programs that must be on `PATH`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<String>,
    /// Programs of which one must be on `PATH`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub any_programs: Vec<String>,
    /// Environment variables that must be set; they are granted, too.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env_vars: Vec<String>,
    /// Settings of the host that must be on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub config: Vec<String>,
    /// Operating systems it works on; empty means all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub os: Vec<String>,
    /// Other skills, as `name` or `name@range`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<String>,
    /// MCP servers by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mcp_servers: Vec<String>,
    /// Tools of the host.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub host_tools: Vec<String>,
    /// Python version range.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub python: Option<String>,
    /// Python packages.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub python_packages: Vec<String>,
    /// Node packages.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub node_packages: Vec<String>,
    /// Smallest model, such as `>=7B`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Smallest context window, such as `>=8K`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// Hardware hints, as written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hardware: Option<Value>,
    /// Runtime family and its smallest version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime: Option<Value>,
    /// How missing programs can be installed, as written.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub install: Vec<Value>,
}

/// How a skill may be started and what holds while it runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Policy {
    /// Tools that are allowed while it runs; `None` is no restriction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_tools: Option<Vec<ToolGrant>>,
    /// Tools that are forbidden while it runs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub disallowed_tools: Vec<ToolGrant>,
    /// Claimed trust tier.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tier: Option<Tier>,
    /// Whether the model may start it; `None` is the host's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_invocable: Option<bool>,
    /// Whether the user may start it; `None` is the host's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_invocable: Option<bool>,
    /// Runs in a sub-agent of its own.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub context_fork: bool,
    /// Changes nothing, so it may run without asking.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// Asks before every run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub always_ask: Option<bool>,
    /// Seconds that a tool may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<u32>,
    /// Situations in which it is offered.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub modes: Vec<String>,
    /// Sampling temperature.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Most tokens of an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// Name of the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Knowledge base to search before answering.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub knowledge_base: Option<String>,
    /// Who owns it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Named positional arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<String>,
    /// Whatever else the host obeys, by its name in the file.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub host: Map<String, Value>,
}

impl Skill {
    /// The description, cut as the skill's own system cuts it: gibb.eri.sh and Personal Agent have
    /// a limit.
    ///
    /// ```
    /// use savoir_skill::{Dialect, Source, read_as};
    ///
    /// let text = format!("---\nname: a\nversion: 1.0.0\ndescription: {}\n---\n", "é".repeat(300));
    /// let skill = read_as(Source::from_bytes(text.into())?, Dialect::GIBBERISH, None).skill;
    /// assert_eq!(skill.truncated_description().chars().count(), 256);
    /// assert_eq!(skill.description.chars().count(), 300);
    /// # Ok::<(), savoir_skill::SourceError>(())
    /// ```
    pub fn truncated_description(&self) -> &str {
        let limit = self.dialect.language().description_limit();
        let cut = limit.and_then(|limit| self.description.char_indices().nth(limit));
        cut.map_or(&self.description, |(end, _)| &self.description[..end])
    }

    /// A skill of which nothing is known but its dialect.
    pub(crate) fn new(dialect: Dialect) -> Self {
        Self {
            dialect,
            mode: Mode::Structured,
            name: String::new(),
            version: None,
            description: String::new(),
            when_to_use: None,
            authors: Vec::new(),
            license: None,
            compatibility: None,
            tags: Vec::new(),
            links: Map::new(),
            inputs: Vec::new(),
            outputs: None,
            tools: Vec::new(),
            permissions: Vec::new(),
            requirements: Requirements::default(),
            policy: Policy::default(),
            resources: Vec::new(),
            extra: Map::new(),
            body: String::new(),
        }
    }
}
