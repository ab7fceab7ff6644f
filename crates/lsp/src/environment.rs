//! Defines what the server needs from the program around it: settings, folders, and checks of other
//! crates.

use std::{
    ops::Range,
    path::{Path, PathBuf},
};

use savoir_skill::{Folder, check::Options};

/// The program around the server. It uses the same functions as the command line, so that the
/// editor and `savoir check` report the same.
pub trait Environment: Send + Sync {
    /// The settings of checks that apply in a folder, or why they cannot be read.
    fn check_options(&self, folder: &Path) -> Result<Options, String>;

    /// Calls `found` with every SKILL.md below a folder, until it returns `false`.
    fn find_skills(&self, root: &Path, found: &mut dyn FnMut(PathBuf) -> bool);

    /// Checks the settings of a project.
    fn check_settings(&self, path: &Path, text: &str) -> Vec<FileProblem>;

    fn check_workflow(&self, text: &str) -> Vec<FileProblem>;

    /// Checks an evaluation file of a skill, by its path in the folder. `skill` is the name of the
    /// skill.
    fn check_evals(&self, folder: &Folder, skill: &str, path: &str) -> Vec<FileProblem>;

    /// How agents show a skill in the list for their model.
    fn listings(&self, skill: &ListedSkill<'_>) -> Vec<Listing>;

    /// Models that the user can name, as `provider:model`.
    fn models(&self) -> Vec<String>;
}

/// A problem of a file other than SKILL.md.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileProblem {
    /// The bytes that the problem is about.
    pub span: Range<usize>,
    pub message: String,
    pub hint: Option<String>,
    pub is_error: bool,
}

/// A skill as agents find it.
#[derive(Clone, Copy, Debug)]
pub struct ListedSkill<'a> {
    pub folder: &'a Path,
    pub path: &'a Path,
    pub text: &'a str,
}

/// How one agent shows a skill to its model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// The name of the agent.
    pub agent: String,
    /// The text that is shown for the description.
    pub description: String,
    /// Whether the text is cut.
    pub is_cut: bool,
    /// Why the skill is not listed.
    pub hidden: Option<String>,
}
