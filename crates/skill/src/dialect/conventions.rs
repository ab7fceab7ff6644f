//! Defines the conventions of a dialect beyond the shape of its fields.

use std::borrow::Cow;

use savoir_lint::Severity;

/// The conventions of a dialect. Rules read them instead of testing for a dialect by name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conventions {
    /// How the name is compared with the folder name; `None` if the folder name is irrelevant.
    pub(crate) folder_name: Option<FolderNameRule>,
    /// How the model uses the body.
    pub(crate) body: BodyUse,
    /// Which YAML the reference parser of the system accepts.
    pub(crate) strictness: Strictness,
    /// Top-level folders of the skill whose files the system finds without a reference.
    pub(crate) known_folders: &'static [&'static str],
}

impl Conventions {
    /// The conventions of most systems.
    pub(crate) const COMMON: Self = Self {
        folder_name: None,
        body: BodyUse::Instructions,
        strictness: Strictness::Plain,
        known_folders: &[],
    };
}

/// How the name in the frontmatter is compared with the name of the folder.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FolderNameRule {
    /// The severity if they differ.
    pub(crate) severity: Severity,
    /// Normalizes both names before they are compared.
    pub(crate) form: fn(&str) -> Cow<'_, str>,
    /// Makes the message for a name and a folder name that differ.
    pub(crate) message: fn(&str, &str) -> String,
}

impl FolderNameRule {
    /// Both names must be equal.
    pub(crate) const EQUAL: Self = Self {
        severity: Severity::Error,
        form: |name| Cow::Borrowed(name),
        message: |name, folder| format!("the skill is called `{name}`, its folder `{folder}`"),
    };
}

/// How the model uses the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyUse {
    /// The model reads the body.
    Instructions,
    /// The body declares tools, and only the tools reach the model.
    Tools,
}

/// Which YAML the reference parser of a system accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strictness {
    /// Any YAML, with types.
    Plain,
    /// Strict: every value is text, braces are rejected, and lists of tools are one text.
    TextOnly,
}
