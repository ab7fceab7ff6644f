//! Defines how the tools of a dialect run: start folder, default access, limits and variables.
//!
//! The tool runner reads these settings instead of testing for a dialect by name.

/// The settings for running tools of a dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolExecution {
    /// The folder in which a tool starts.
    pub place: StartFolder,
    /// The files that a tool can access without a permission.
    pub files: DefaultFileAccess,
    /// Whether tools may start programs of the system without a permission.
    pub runs_programs: bool,
    /// The network access of a skill that does not declare any.
    pub network: NetworkDefault,
    /// Whether a skill may run the programs that it lists as requirements.
    pub requirements_grant: bool,
    /// Default time limit of a tool, in seconds.
    pub seconds: u32,
    /// Whether a signature can raise the skill above the experimental tier.
    pub attestable: bool,
    /// Environment variables that describe the skill to the tool.
    pub variables: &'static [(&'static str, VariableContent)],
}

/// The folder in which a tool starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartFolder {
    /// The current folder of the user.
    Directory,
    /// The root of the enclosing repository, or the current folder if there is none.
    Repository,
}

/// The files that a tool can access without a permission, besides the skill's own folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefaultFileAccess {
    /// No files.
    Nothing,
    /// Read access to the current folder of the user.
    Directory,
    /// Read access to the repository, and write access unless the skill declares itself read-only.
    Repository,
}

/// The network access of a skill that does not declare any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkDefault {
    /// No network; sockets cannot be created.
    Off,
    /// No host is reachable, and the user can grant each host that the tool tried to reach.
    Asks,
}

/// The content of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VariableContent {
    /// The name of the skill.
    Name,
    /// The folder of the skill.
    Folder,
    /// The current mode of the user.
    Mode,
}

impl ToolExecution {
    /// The settings of most systems: scripts that an agent starts in the user's folder.
    pub const COMMON: Self = Self {
        place: StartFolder::Directory,
        files: DefaultFileAccess::Directory,
        runs_programs: true,
        network: NetworkDefault::Asks,
        requirements_grant: false,
        // Programs that a person starts may run long; Ctrl-C ends them.
        seconds: 600,
        attestable: true,
        variables: &[],
    };

    /// Access only to declared files.
    pub const DECLARED: Self = Self { files: DefaultFileAccess::Nothing, ..Self::COMMON };
}
