//! Handles two kinds of variables of a run: those that point to a Python environment that the user
//! granted, and those of the user that a script names but does not get, which is a likely reason if
//! it fails.

use std::{collections::BTreeSet, fs::File, io::Read as _, path::PathBuf};

use savoir_sandbox::Policy;
use savoir_skill::{
    skill::{Runner, Tool},
    variable_name::changes_programs,
};

use super::{Action, Call, CallInput};
use crate::{
    approval::ExtraGrants, envelope::Envelope, loaded_skill::LoadedSkill,
    run_environment::RunEnvironment,
};

/// Bytes of a script in which names are searched.
const MAX_BYTES: u64 = 256 << 10;

/// Names that every shell sets, so they are not reported.
const OF_THE_SHELL: [&str; 9] =
    ["PATH", "PWD", "OLDPWD", "SHLVL", "SHELL", "HOSTNAME", "LOGNAME", "HOME", "USER"];

/// Sets the variables by which programs find the packages and programs of a Python environment that
/// the user granted.
pub(super) fn use_environment(extra: &ExtraGrants, policy: &mut Policy) {
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
        Some(savoir_sandbox::Variable::Plain(path)) => format!("{programs}:{path}"),
        _ => programs,
    };
    let root = root.to_string_lossy().into_owned();
    for (name, value) in [("PATH", path), ("VIRTUAL_ENV", root), ("PYTHONPATH", packages.join(":"))]
    {
        policy.environment.insert(name.to_owned(), savoir_sandbox::Variable::Plain(value));
    }
}

/// Variables that have a value, in the environment or stored, but that a run does not get.
#[derive(Clone, Debug, Default)]
pub(super) struct Unseen(Vec<Variable>);

#[derive(Clone, Debug)]
pub(super) struct Variable {
    pub(super) name: String,
    /// Whether the value is a stored secret, not a variable of the environment.
    pub(super) is_stored: bool,
    is_in_script: bool,
}

impl Unseen {
    pub(super) fn of(texts: &[String], run_env: &RunEnvironment, policy: &Policy) -> Self {
        let in_scripts: BTreeSet<&str> = texts.iter().flat_map(|text| named(text)).collect();
        let set = run_env.variables.iter().filter(|(_, value)| !value.is_empty());
        let set = set.map(|(name, _)| (name, false));
        let stored = run_env.secrets.iter().map(|secret| (&secret.name, true));
        let is_unseen = |name: &str| {
            let is_ordinary = !OF_THE_SHELL.contains(&name) && changes_programs(name).is_none();
            is_ordinary && !policy.environment.contains_key(name)
        };
        let unseen = set.chain(stored).filter(|(name, _)| is_unseen(name));
        let unseen = unseen.map(|(name, is_stored)| Variable {
            name: name.clone(),
            is_stored,
            is_in_script: in_scripts.contains(name.as_str()),
        });
        Self(unseen.collect())
    }

    /// The variables that the script or its output names, which are a likely reason if it fails.
    pub(super) fn named(&self, envelope: &Envelope) -> Vec<&Variable> {
        let said = [Some(&envelope.output), envelope.error.as_ref()];
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let is_said = |name: &str| {
            let mut words = said.iter().flatten().flat_map(|text| text.split(|c| !is_part(c)));
            // A name without an underscore is too often an ordinary word.
            name.contains('_') && words.any(|word| word == name)
        };
        self.0.iter().filter(|one| one.is_in_script || is_said(&one.name)).collect()
    }
}

/// What the author of a skill wrote for a call: the words of the command or the code block, and the
/// scripts that it starts. Values of the caller are left out.
pub(super) fn author_texts(call: &Call<'_>, tool: Option<&Tool>, action: &Action) -> Vec<String> {
    let mut texts: Vec<String> =
        scripts(call.loaded_skill, action).iter().filter_map(head).collect();
    match (&call.input, tool.map(|tool| &tool.runner)) {
        (CallInput::Code { fence, .. }, _) => texts.push(fence.code.clone()),
        (_, Some(Runner::Command(template))) => {
            texts.extend(template.args.iter().map(|word| word.text().to_owned()));
        }
        _ => {}
    }
    texts
}

/// Files of the skill that an action executes.
fn scripts(loaded_skill: &LoadedSkill, action: &Action) -> Vec<PathBuf> {
    let Action::Command { program, arguments, .. } = action else { return Vec::new() };
    let words = arguments.iter().map(PathBuf::from).chain([program.path.clone()]);
    let Some(folder) = &loaded_skill.folder else { return Vec::new() };
    words.filter(|path| path.starts_with(folder) && path.is_file()).collect()
}

fn head(path: &PathBuf) -> Option<String> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(MAX_BYTES).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Names in a text that are written like variables: `$NAME`, `${NAME}`, `environ["NAME"]`,
/// `env.NAME`.
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
