//! Defines [`Skill`], the model that every dialect is read into. All code after the reader uses
//! only this model.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    allowed_tools::ToolGrant,
    command::CommandTemplate,
    dialect::Dialect,
    permission::{Permission, Tier},
};

/// A skill as described by a SKILL.md, independent of the dialect.
#[derive(Clone, Debug, Serialize)]
pub struct Skill {
    /// The dialect that the file was read in.
    pub dialect: Dialect,
    /// Whether the file has frontmatter.
    pub mode: Mode,
    /// The name; the folder name if the dialect allows omitting the field.
    pub name: String,
    /// The version: SemVer, or free text if the dialect does not require SemVer.
    pub version: Option<String>,
    /// What the skill does and when to use it.
    pub description: String,
    /// A more detailed hint for when to use the skill.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub when_to_use: Option<String>,
    /// The authors.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub authors: Vec<String>,
    /// License name or SPDX expression.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub license: Option<String>,
    /// Requirements on the environment, as free text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compatibility: Option<String>,
    /// Search keywords.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Addresses: `homepage`, `repository`, `registry`.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub links: Map<String, Value>,
    /// Values that are inserted into the body.
    pub inputs: Vec<Input>,
    /// The format of the answer.
    pub outputs: Option<Output>,
    /// Programs and functions that the skill provides.
    pub tools: Vec<Tool>,
    /// The permissions of the skill.
    pub permissions: Vec<Permission>,
    /// The conditions for running the skill.
    pub requirements: Requirements,
    /// How the skill may be started, and the restrictions while it runs.
    pub policy: Policy,
    /// Other files of the skill, relative to its folder.
    pub resources: Vec<String>,
    /// Top-level fields that the dialect does not define.
    pub extra: Map<String, Value>,
    /// The instructions, unchanged.
    pub body: String,
}

/// Whether a SKILL.md has frontmatter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// With frontmatter.
    #[default]
    Structured,
    /// Without frontmatter.
    Prose,
}

/// A value that is inserted into the body.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Input {
    /// The name in the placeholder.
    pub name: String,
    /// The name that users see.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub label: Option<String>,
    /// The type of the value.
    #[serde(rename = "type", default)]
    pub kind: InputKind,
    /// Whether a run without it fails.
    #[serde(default)]
    pub required: bool,
    /// The value if the user supplies none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub default: Option<Value>,
    /// A description for users.
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
    /// The name of the type in the file.
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

    /// Parses the name of a type.
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

/// The format of a skill's answer.
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
    /// Whether the answer is validated, which is possible only once it is complete.
    pub fn is_checked(&self) -> bool {
        self.kind == "json" || self.schema.as_ref().is_some_and(|schema| !schema.is_null())
    }
}

/// A tool that a skill provides.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tool {
    /// The name within the skill.
    pub name: String,
    /// A description for the model.
    pub description: String,
    /// The parameters.
    pub parameters: Vec<Parameter>,
    /// Type of the return value, if declared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub returns: Option<Value>,
    /// Whether the tool must not run in parallel with others.
    pub atomic: bool,
    /// Example calls for a model, in the notation of gibb.eri.sh.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<String>,
    /// The code that runs when the tool is called.
    pub runner: Runner,
}

/// The code that runs when a tool is called.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "lowercase", tag = "kind")]
pub enum Runner {
    /// A program with arguments, run without a shell.
    Command(CommandTemplate),
    /// A decorated function in `tools.py`.
    Python {
        /// Name of the function.
        function: String,
    },
    /// A handler of the skill, `path` or `path:function`.
    Handler {
        /// The handler as written.
        path: String,
    },
}

/// A parameter of a tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// The type of the value.
    #[serde(rename = "type", default)]
    pub kind: ParameterKind,
    /// Whether a call without it fails.
    #[serde(default)]
    pub required: bool,
    /// A description for the model.
    #[serde(default)]
    pub description: String,
    /// The value if the call supplies none.
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
    /// The name of the type in the file.
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

    /// Parses the name of a type.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::String, Self::Integer, Self::Number, Self::Boolean, Self::Array, Self::Object]
            .into_iter()
            .find(|kind| kind.as_str() == word)
    }
}

/// The conditions for running a skill.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Requirements {
    /// Programs that must be on `PATH`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<String>,
    /// Programs of which one must be on `PATH`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub any_programs: Vec<String>,
    /// Environment variables that must be set; the skill may read them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env_vars: Vec<String>,
    /// Settings of the host that must be enabled.
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
    /// Minimum model size, such as `>=7B`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Minimum context window, such as `>=8K`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// Hardware hints, as written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hardware: Option<Value>,
    /// Runtime family and its minimum version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime: Option<Value>,
    /// How missing programs can be installed, as written.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub install: Vec<Value>,
}

/// How a skill may be started, and the restrictions while it runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Policy {
    /// Tools that are allowed while the skill runs; `None` allows all.
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
    /// Whether the skill runs in a separate sub-agent.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub context_fork: bool,
    /// Whether the skill changes nothing, so that it may run without asking.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// Whether the user is asked before every run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub always_ask: Option<bool>,
    /// Time limit of a tool, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<u32>,
    /// Modes of the user in which the skill is offered.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub modes: Vec<String>,
    /// Sampling temperature.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Maximum number of tokens of an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// Name of the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Knowledge base to search before answering.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub knowledge_base: Option<String>,
    /// The owner of the skill.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Named positional arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<String>,
    /// Other fields that the host uses, by their names in the file.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub host: Map<String, Value>,
}

impl Skill {
    /// The description, truncated as the skill's own system does: gibb.eri.sh and Personal Agent
    /// have a limit.
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
        self.dialect.truncate_description(&self.description)
    }

    /// Makes an empty skill of a dialect.
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
