//! Finds out which sandbox features this machine supports, by running a small program with each.

use std::path::{Path, PathBuf};

use super::{cgroup, launch::Sandbox, sys};
use crate::{
    outcome::{Outcome, ProcessEnd},
    policy::{HostGrant, MethodGroup, Network, PathGrant, Policy, RecordOpenedFiles},
    program_files::{TRUSTED_PATH, find_program},
    support::{FeatureStatus, SandboxSupport},
};

/// Tries each feature once.
pub(crate) fn detect_support() -> SandboxSupport {
    let landlock = sys::landlock_version().ok();
    let folders: Vec<PathBuf> = TRUSTED_PATH.iter().map(PathBuf::from).collect();
    let Some(program) = find_program("true", &folders) else {
        let absent = FeatureStatus::unavailable(
            "there is no program `true` to try with",
            "install coreutils",
        );
        return SandboxSupport {
            sandbox: absent.clone(),
            landlock,
            proxy: absent.clone(),
            watch: absent,
            control_groups: false,
        };
    };
    SandboxSupport {
        sandbox: try_feature(&program, Network::None, RecordOpenedFiles::Off),
        landlock,
        proxy: try_feature(
            &program,
            Network::Hosts(unreachable_host_grant()),
            RecordOpenedFiles::Off,
        ),
        watch: try_feature(&program, Network::None, RecordOpenedFiles::On),
        control_groups: cgroup::ControlGroup::new(&crate::policy::Limits::default()).is_some(),
    }
}

fn unreachable_host_grant() -> Vec<HostGrant> {
    let host = "savoir.invalid".parse().ok();
    let grant = |host| HostGrant {
        host,
        scheme: None,
        port: None,
        path: String::new(),
        methods: MethodGroup::Read,
        allow_private_addresses: false,
    };
    host.into_iter().map(grant).collect()
}

fn try_feature(
    program: &Path,
    network: Network,
    record_opened_files: RecordOpenedFiles,
) -> FeatureStatus {
    let policy = Policy {
        paths: vec![PathGrant::scratch("/tmp")],
        programs: vec![program.to_owned()],
        directory: "/tmp".into(),
        network,
        record_opened_files,
        ..Policy::default()
    };
    let outcome = Sandbox::new(policy)
        .and_then(|sandbox| sandbox.start(program, &[]))
        .map(|process| process.communicate(&[], |_, _| {}));
    match outcome {
        Ok(Outcome { end: ProcessEnd::Exited(0), .. }) => FeatureStatus::Available,
        Ok(outcome) => {
            FeatureStatus::unavailable(format!("a trial ended with {:?}", outcome.end), "")
        }
        Err(error) => FeatureStatus::unavailable(error.to_string(), ""),
    }
}
