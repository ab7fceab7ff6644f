//! Builds the sandbox policy of a detonation. Everything that a malicious tool looks for exists,
//! and all of it is fake. Actions are recorded; `behavior_check` decides afterwards whether they
//! are allowed.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use savoir_sandbox::{
    CountedMemory, ExtraPrograms, Limits, Network, PathGrant, Policy, RecordOpenedFiles,
    TRUSTED_PATH, Variable,
};

use super::{decoy_environment::DecoyEnvironment, decoy_secrets, sample_arguments};

/// Maximum size of a file that a tool may write.
const MAX_FILE_BYTES: u64 = 16 << 20;
const MAX_SCRATCH_BYTES: u64 = 32 << 20;
const MAX_OPEN_FILES: u64 = 256;

/// The policy for one program of a skill.
pub(super) fn policy(
    decoy_env: &DecoyEnvironment,
    limits: &super::Limits,
    program: PathBuf,
    more: &[(String, String)],
) -> Policy {
    let support = decoy_env.tracer_script.parent().map(PathGrant::read);
    let paths = [
        PathGrant::scratch("/tmp"),
        PathGrant::read(decoy_env.home()),
        PathGrant::read(&decoy_env.folder),
        PathGrant::write(decoy_env.work()),
    ];
    Policy {
        paths: paths.into_iter().chain(support).collect(),
        programs: vec![program],
        mounts: Vec::new(),
        extra_programs: ExtraPrograms::System,
        network: Network::Trap,
        environment: environment(decoy_env, more),
        limits: self::limits(limits),
        directory: decoy_env.work().to_owned(),
        record_opened_files: RecordOpenedFiles::On,
    }
}

fn environment(
    decoy_env: &DecoyEnvironment,
    more: &[(String, String)],
) -> BTreeMap<String, Variable> {
    let host = sample_arguments::declared_host_or_placeholder(&decoy_env.skill.permissions);
    let required =
        decoy_env.skill.requirements.env_vars.iter().filter(|name| !decoy_secrets::is_secret(name));
    let places = required
        .map(|name| (name.clone(), sample_arguments::sample_text(name, &host, decoy_env.work())));
    let own = [
        ("PATH", TRUSTED_PATH.join(":")),
        ("HOME", decoy_env.home().to_string_lossy().into_owned()),
        ("USER", "sam".to_owned()),
        ("LANG", "C.UTF-8".to_owned()),
        ("TMPDIR", "/tmp".to_owned()),
        // Git does not write to repositories that it only reads.
        ("GIT_OPTIONAL_LOCKS", "0".to_owned()),
    ];
    let own = own.map(|(name, value)| (name.to_owned(), value));
    let all =
        places.chain(decoy_env.decoy_secrets.variables.iter().cloned()).chain(more.iter().cloned());
    all.chain(own).map(|(name, value)| (name, Variable::Plain(value))).collect()
}

fn limits(limits: &super::Limits) -> Limits {
    Limits {
        // The `RunLimiter` enforces the time, without the grace period of normal tool runs.
        wall: None,
        cpu: Some((limits.skill + Duration::from_secs(5)).as_secs()),
        memory: limits.memory,
        counted_memory: CountedMemory::Data,
        processes: limits.processes,
        open_files: MAX_OPEN_FILES,
        file_size: MAX_FILE_BYTES,
        scratch: MAX_SCRATCH_BYTES,
        output: limits.output,
    }
}
