//! [`DecoyEnvironment`]: a temporary copy of a package, with a home folder and a working folder in
//! which every secret is a decoy. Everything is deleted afterwards.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use savoir_engine::{
    python::host::{self, InstallError},
    run_environment::RunEnvironment,
};
use savoir_package::Tree;
use savoir_skill::{Reading, Skill, Source, folder::is_skill_file, read};
use tempfile::TempDir;
use uuid::Uuid;

use super::decoy_secrets::DecoySecrets;

/// The Python program that reports which line of a skill opens, starts or looks up something.
const TRACER_SCRIPT: &str = include_str!("../../../../python/savoir_vetting.py");

/// Files for tools that need an input file.
const SAMPLE_FILES: [(&str, &str); 4] = [
    ("sample.csv", "name,value\nfirst,1\nsecond,2\n"),
    ("sample.json", "{\"name\": \"first\", \"value\": 1}\n"),
    ("sample.md", "# Sample\n\nOne paragraph of text.\n"),
    ("sample.txt", "One line of text.\nAnother line of text.\n"),
];

/// A temporary copy of a package, with a decoy home and working folder.
#[derive(Debug)]
pub(super) struct DecoyEnvironment {
    /// Removes everything when it is dropped.
    _root: TempDir,
    pub(super) skill: Skill,
    /// The copy of the package.
    pub(super) folder: PathBuf,
    pub(super) run_env: RunEnvironment,
    /// The path of the host program that loads Python tools.
    pub(super) host: PathBuf,
    pub(super) tracer_script: PathBuf,
    /// A random word of this run that marks the lines of the tracer.
    pub(super) trace_mark: String,
    pub(super) decoy_secrets: DecoySecrets,
}

impl DecoyEnvironment {
    /// Creates the environment for a skill.
    pub(super) fn build(tree: &Tree, skill: &Skill) -> io::Result<Self> {
        let root = tempfile::Builder::new().prefix("savoir-vetting-").tempdir()?;
        let real = root.path().canonicalize()?;
        let [folder, home, work, support] =
            ["skill", "home", "work", "support"].map(|name| real.join(name));
        tree.write(&folder).map_err(io::Error::other)?;
        for made in [&home, &work, &support] {
            fs::create_dir(made)?;
        }
        for (name, text) in SAMPLE_FILES {
            fs::write(work.join(name), text)?;
        }
        repository(&work)?;
        let tracer_script = support.join("savoir_vetting.py");
        fs::write(&tracer_script, TRACER_SCRIPT)?;
        let installed = host::install(&support);
        let host = installed.map_err(|error: InstallError| error.source)?;
        let decoy_secrets = DecoySecrets::create(skill, &home, &work)?;
        let run_env = RunEnvironment::at(&work, &home);
        let trace_mark = Uuid::new_v4().simple().to_string();
        let skill = skill.clone();
        Ok(Self {
            _root: root,
            skill,
            folder,
            run_env,
            host,
            tracer_script,
            trace_mark,
            decoy_secrets,
        })
    }

    pub(super) fn home(&self) -> &Path {
        &self.run_env.home
    }

    pub(super) fn work(&self) -> &Path {
        &self.run_env.directory
    }
}

/// Makes a folder the root of a Git repository: some tools expect one.
fn repository(work: &Path) -> io::Result<()> {
    let git = work.join(".git");
    for folder in ["objects", "refs/heads"] {
        fs::create_dir_all(git.join(folder))?;
    }
    fs::write(git.join("HEAD"), "ref: refs/heads/main\n")?;
    fs::write(git.join("config"), "[core]\n\trepositoryformatversion = 0\n")
}

/// Parses the SKILL.md of a package.
pub(super) fn reading(tree: &Tree) -> Result<Reading, String> {
    let file = tree.files().find(|(path, _)| is_skill_file(path));
    let (path, file) = file.ok_or("the package has no SKILL.md")?;
    let source = Source::from_bytes(file.bytes.clone());
    Ok(read(source.map_err(|error| format!("{path} cannot be read: {error}"))?, None))
}
