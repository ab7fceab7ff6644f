//! Variables of a run: those that lead to a granted Python environment, and those of the user that a script
//! names and does not get, which is the likely reason when it fails.

use std::{collections::BTreeSet, fs::File, io::Read as _, path::PathBuf};

use savoir_sandbox::{Policy, Variable};

use super::Action;
use crate::{approval::Widening, ground::Ground, subject::Subject};

/// Bytes of a script in which names are looked for.
const MOST_BYTES: u64 = 256 << 10;

/// Names that every shell sets, and that say nothing.
const OF_THE_SHELL: [&str; 9] =
    ["PATH", "PWD", "OLDPWD", "SHLVL", "SHELL", "HOSTNAME", "LOGNAME", "HOME", "USER"];

/// Lets programs find the packages and programs of a Python environment that a person granted.
pub(super) fn use_environment(extra: &Widening, policy: &mut Policy) {
    let is_environment = |path: &&PathBuf| path.join("pyvenv.cfg").is_file();
    let granted: Vec<PathBuf> = extra.read.iter().chain(&extra.write).map(PathBuf::from).collect();
    let Some(root) = granted.iter().find(is_environment) else { return };
    let versions = std::fs::read_dir(root.join("lib")).into_iter().flatten().flatten();
    let packages = versions.map(|version| version.path().join("site-packages"));
    let packages: Vec<String> = packages
        .filter(|path| path.is_dir())
        .map(|path| path.to_string_lossy().into_owned())
        .collect();
    let programs = root.join("bin").to_string_lossy().into_owned();
    let path = match policy.environment.get("PATH") {
        Some(Variable::Plain(path)) => format!("{programs}:{path}"),
        _ => programs,
    };
    let root = root.to_string_lossy().into_owned();
    for (name, value) in [("PATH", path), ("VIRTUAL_ENV", root), ("PYTHONPATH", packages.join(":"))]
    {
        policy.environment.insert(name.to_owned(), Variable::Plain(value));
    }
}

/// The variables of the user that a script of the skill names and that the policy does not pass on.
pub(super) fn unpassed(
    subject: &Subject,
    action: &Action,
    ground: &Ground,
    policy: &Policy,
) -> Vec<String> {
    let mut names = BTreeSet::new();
    for path in scripts(subject, action) {
        let Some(text) = head(&path) else { continue };
        names.extend(named(&text).map(str::to_owned));
    }
    let is_set = |name: &String| ground.variables.iter().any(|(known, _)| known == name);
    let is_unpassed = |name: &String| {
        !policy.environment.contains_key(name) && !OF_THE_SHELL.contains(&name.as_str())
    };
    names.into_iter().filter(is_unpassed).filter(is_set).collect()
}

/// Files of the skill that an action executes.
fn scripts(subject: &Subject, action: &Action) -> Vec<PathBuf> {
    let Action::Command { program, arguments, .. } = action else { return Vec::new() };
    let words = arguments.iter().map(PathBuf::from).chain([program.path.clone()]);
    let Some(folder) = &subject.folder else { return Vec::new() };
    words.filter(|path| path.starts_with(folder) && path.is_file()).collect()
}

fn head(path: &PathBuf) -> Option<String> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(MOST_BYTES).read_to_end(&mut bytes).ok()?;
    String::from_utf8(bytes).ok()
}

/// Names as variables are written: `$NAME`, `${NAME}`, `environ["NAME"]`, `env.NAME`.
fn named(text: &str) -> impl Iterator<Item = &str> {
    let is_part = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    let words = text.split(move |c: char| !is_part(c)).filter(|word| {
        word.len() > 2 && word.starts_with(|c: char| c.is_ascii_uppercase() || c == '_')
    });
    words.filter(move |word| {
        let start = word.as_ptr() as usize - text.as_ptr() as usize;
        text[..start].ends_with(['$', '{', '"', '\'', '.'])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_as_languages_write_them() {
        let text = "echo $ONE ${TWO:?} ; os.environ['THREE']; process.env.FOUR; FIVE=1; $x";
        assert_eq!(named(text).collect::<Vec<_>>(), ["ONE", "TWO", "THREE", "FOUR"]);
    }
}
