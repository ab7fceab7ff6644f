//! The policy of a detonation: everything that a harmful tool looks for is there, and none of it is
//! real. What it does is noted; whether it may is judged afterwards.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use savoir_sandbox::{
    Counted, Limits, Network, PathGrant, Policy, TRUSTED_PATH, Userland, Variable, Watch,
};

use super::{arguments, honey, stage::Stage};

/// The largest file that a tool may write here.
const FILE_SIZE: u64 = 16 << 20;
const SCRATCH: u64 = 32 << 20;
const OPEN_FILES: u64 = 256;

/// The policy for one program of a skill.
pub(super) fn policy(
    stage: &Stage,
    limits: &super::Limits,
    program: PathBuf,
    more: &[(String, String)],
) -> Policy {
    let support = stage.witness.parent().map(PathGrant::read);
    let paths = [
        PathGrant::private("/tmp"),
        PathGrant::read(stage.home()),
        PathGrant::read(&stage.folder),
        PathGrant::write(stage.work()),
    ];
    Policy {
        paths: paths.into_iter().chain(support).collect(),
        programs: vec![program],
        mounts: Vec::new(),
        userland: Userland::System,
        network: Network::Trap,
        environment: environment(stage, more),
        limits: self::limits(limits),
        directory: stage.work().to_owned(),
        watch: Watch::On,
    }
}

fn environment(stage: &Stage, more: &[(String, String)]) -> BTreeMap<String, Variable> {
    let host = arguments::declared_host(&stage.skill.permissions);
    let required = stage.skill.requirements.env_vars.iter().filter(|name| !honey::is_secret(name));
    let places = required.map(|name| (name.clone(), arguments::text(name, &host, stage.work())));
    let own = [
        ("PATH", TRUSTED_PATH.join(":")),
        ("HOME", stage.home().to_string_lossy().into_owned()),
        ("USER", "sam".to_owned()),
        ("LANG", "C.UTF-8".to_owned()),
        ("TMPDIR", "/tmp".to_owned()),
        // Git does not write where it only reads.
        ("GIT_OPTIONAL_LOCKS", "0".to_owned()),
    ];
    let own = own.map(|(name, value)| (name.to_owned(), value));
    let all = places.chain(stage.honey.variables.iter().cloned()).chain(more.iter().cloned());
    all.chain(own).map(|(name, value)| (name, Variable::Plain(value))).collect()
}

fn limits(limits: &super::Limits) -> Limits {
    Limits {
        // A guard ends it, without the grace that a tool of a user has.
        wall: None,
        cpu: Some((limits.skill + Duration::from_secs(5)).as_secs()),
        memory: limits.memory,
        counted: Counted::Data,
        processes: limits.processes,
        open_files: OPEN_FILES,
        file_size: FILE_SIZE,
        scratch: SCRATCH,
        output: limits.output,
    }
}
