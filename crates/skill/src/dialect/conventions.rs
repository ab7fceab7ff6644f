//! Conventions of a dialect beyond the shape of its fields.

use std::borrow::Cow;

use savoir_lint::Severity;

/// Conventions of a dialect. Rules use them, so that none depends on a dialect by name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conventions {
    /// How the name is compared with the folder's; `None` where the folder means nothing.
    pub(crate) folder_name: Option<FolderNameRule>,
    /// What the body is to the model.
    pub(crate) body: BodyUse,
    /// Which YAML the reference reader of the system takes.
    pub(crate) strictness: Strictness,
    /// Folders at the top of the skill whose files the system finds without being told.
    pub(crate) known_folders: &'static [&'static str],
}

impl Conventions {
    /// Those of most systems.
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
    /// How bad it is when they differ.
    pub(crate) severity: Severity,
    /// The form in which they are compared.
    pub(crate) form: fn(&str) -> Cow<'_, str>,
    /// What to say of a name and a folder that differ.
    pub(crate) message: fn(&str, &str) -> String,
}

impl FolderNameRule {
    /// They must be equal, letter by letter.
    pub(crate) const EQUAL: Self = Self {
        severity: Severity::Error,
        form: |name| Cow::Borrowed(name),
        message: |name, folder| format!("the skill is called `{name}`, its folder `{folder}`"),
    };
}

/// What the body is to the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyUse {
    /// The model reads it.
    Instructions,
    /// It declares tools, and only these reach the model.
    Tools,
}

/// Which YAML the reference reader of a system takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strictness {
    /// Any, with types.
    Plain,
    /// Strict: every value is text, braces are refused, and lists of tools are one text.
    TextOnly,
}
