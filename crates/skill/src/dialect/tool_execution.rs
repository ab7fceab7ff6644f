//! How the tools of a dialect run: start folder, default access, limits and variables. The tool
//! runner uses this, so that it does not depend on a dialect by name.

/// How tools of a dialect run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolExecution {
    /// Where a tool starts.
    pub place: StartFolder,
    /// Files that it gets unasked.
    pub files: DefaultFileAccess,
    /// Whether tools may start the programs of the system without a permission.
    pub runs_programs: bool,
    /// What a skill has that says nothing about the network.
    pub network: NetworkDefault,
    /// Whether programs that the skill requires may be run by it.
    pub requirements_grant: bool,
    /// Seconds that a tool may take if the skill does not say.
    pub seconds: u32,
    /// Whether a signature can make it more than experimental.
    pub attestable: bool,
    /// Variables that tell a tool about its skill.
    pub variables: &'static [(&'static str, VariableContent)],
}

/// Where a tool starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartFolder {
    /// In the folder that the user is in.
    Directory,
    /// In the root of the repository around it, else in the folder that the user is in.
    Repository,
}

/// Files that a tool gets unasked, beside its own folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefaultFileAccess {
    /// None.
    Nothing,
    /// It reads the folder that the user is in.
    Directory,
    /// It reads the repository, and changes it unless the skill says that it only reads.
    Repository,
}

/// What a skill has that says nothing about the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkDefault {
    /// Not even sockets.
    Off,
    /// Nobody is reached, and each host that it wanted can be granted.
    Asks,
}

/// What a variable tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VariableContent {
    /// The name of the skill.
    Name,
    /// The folder of the skill.
    Folder,
    /// The situation that the user is in.
    Mode,
}

impl ToolExecution {
    /// As most systems do it: scripts that an agent starts in the user's folder.
    pub const COMMON: Self = Self {
        place: StartFolder::Directory,
        files: DefaultFileAccess::Directory,
        runs_programs: true,
        network: NetworkDefault::Asks,
        requirements_grant: false,
        // What a person starts may take its time; Ctrl-C ends it.
        seconds: 600,
        attestable: true,
        variables: &[],
    };

    /// Only what is declared.
    pub const DECLARED: Self = Self { files: DefaultFileAccess::Nothing, ..Self::COMMON };
}
