//! Defines [`ProgramFilesError`].

use std::path::PathBuf;

use thiserror::Error;

/// Why the list of files that a program needs cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ProgramFilesError {
    /// The path is not absolute.
    #[error("`{}` is not an absolute path: start the path with `/`", path.display())]
    NotAbsolute {
        /// The requested path.
        path: PathBuf,
    },
    /// The file does not exist, or this user cannot see it.
    #[error("no program at `{}`: install it or correct the path", path.display())]
    NotFound {
        /// The requested path.
        path: PathBuf,
    },
    /// The path is in a folder that the sandbox replaces with its own.
    #[error("`{}` is in a folder that the sandbox replaces with its own: use the path of the file on disk", path.display())]
    Reserved {
        /// The requested path.
        path: PathBuf,
    },
    /// The path is not a regular file, or this user may not execute it.
    #[error("`{}` cannot be executed by this user: it has to be a regular file, see `chmod +x`", path.display())]
    NotExecutable {
        /// The requested path.
        path: PathBuf,
    },
    /// The file is neither a program for this machine nor a script.
    #[error("`{}` is neither a program for this machine nor a script that begins with `#!`", path.display())]
    NotAProgram {
        /// The requested path.
        path: PathBuf,
    },
    /// The file has an ELF header but its data is contradictory or cannot be read.
    #[error("`{}` is damaged: {reason}; install it again", path.display())]
    UnreadableElf {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A library is in none of the folders that the loader searches.
    #[error("`{}` needs the library `{library}`, which is not installed", needed_by.display())]
    MissingLibrary {
        /// The library's name as written in the file.
        library: String,
        /// The program or library that names it.
        needed_by: PathBuf,
    },
    /// The interpreter of a script or the loader of a program does not exist.
    #[error("`{}` is started by `{interpreter}`, which is not installed", script.display())]
    MissingInterpreter {
        /// The script or program.
        script: PathBuf,
        /// The name in the script's first line or in the program's header.
        interpreter: String,
    },
    /// The file that a program names as its loader is not a loader.
    #[error("`{}` names `{}` as its loader, which is not a loader", program.display(), loader.display())]
    NotALoader {
        /// The program.
        program: PathBuf,
        /// The path that it names.
        loader: PathBuf,
    },
    /// The interpreters of a script are scripts themselves, nested too deeply.
    #[error("`{}` is a script whose interpreters are nested scripts: use the last interpreter directly", path.display())]
    TooDeep {
        /// The requested path.
        path: PathBuf,
    },
    /// The symbolic links form a loop.
    #[error("the links at `{}` form a loop: use the path of the file itself", path.display())]
    LinkLoop {
        /// The path that was followed.
        path: PathBuf,
    },
    /// The program needs more files than the limit allows.
    #[error("`{}` needs more than {limit} {what}: it cannot run in a sandbox", program.display())]
    TooMany {
        /// The requested program.
        program: PathBuf,
        /// The kind of items that exceed the limit.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
}
