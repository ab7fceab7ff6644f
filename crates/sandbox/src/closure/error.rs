//! Why it cannot be said what a program needs.

use std::path::PathBuf;

use thiserror::Error;

/// Why it cannot be said what a program needs.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ClosureError {
    /// The path does not begin at the root.
    #[error("`{}` is not an absolute path: name the program from `/` on", path.display())]
    NotAbsolute {
        /// What was asked for.
        path: PathBuf,
    },
    /// Nothing is there, or nothing that this user can see.
    #[error("no program at `{}`: install it or correct the path", path.display())]
    NotFound {
        /// What was asked for.
        path: PathBuf,
    },
    /// The sandbox makes this part of the tree itself.
    #[error("`{}` lies in a folder that every sandbox has of its own: name the file on disk", path.display())]
    Reserved {
        /// What was asked for.
        path: PathBuf,
    },
    /// No regular file, or no right to execute it.
    #[error("`{}` cannot be executed by this user: it has to be a regular file, see `chmod +x`", path.display())]
    NotExecutable {
        /// What was asked for.
        path: PathBuf,
    },
    /// Neither a program for this machine nor a script.
    #[error("`{}` is neither a program for this machine nor a script that begins with `#!`", path.display())]
    NotAProgram {
        /// What was asked for.
        path: PathBuf,
    },
    /// The file says that it is a program and then contradicts itself.
    #[error("`{}` is damaged: {reason}; install it again", path.display())]
    UnreadableElf {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A library is nowhere where the loader would look.
    #[error("`{}` needs the library `{library}`, which is not installed", needed_by.display())]
    MissingLibrary {
        /// Its name as the file has it.
        library: String,
        /// The program or library that names it.
        needed_by: PathBuf,
    },
    /// What a script or a program says it is started by does not exist.
    #[error("`{}` is started by `{interpreter}`, which is not installed", script.display())]
    MissingInterpreter {
        /// The script or program.
        script: PathBuf,
        /// What its first line or its header names.
        interpreter: String,
    },
    /// What a program names as its loader is a program in its own right.
    #[error("`{}` names `{}` as its loader, which is none", program.display(), loader.display())]
    NotALoader {
        /// The program.
        program: PathBuf,
        /// What it names.
        loader: PathBuf,
    },
    /// Scripts interpret scripts without end.
    #[error("`{}` is a script of a script of a script: name the last interpreter itself", path.display())]
    TooDeep {
        /// What was asked for.
        path: PathBuf,
    },
    /// Links lead in a circle.
    #[error("the links at `{}` lead in a circle: name the file that they were meant for", path.display())]
    LinkLoop {
        /// Where it begins.
        path: PathBuf,
    },
    /// More than any honest program needs.
    #[error("`{}` needs more than {limit} {what}: it cannot be put into a sandbox", program.display())]
    TooMany {
        /// What was asked for.
        program: PathBuf,
        /// What there is too much of.
        what: &'static str,
        /// How many there may be.
        limit: usize,
    },
}
