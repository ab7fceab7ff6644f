//! Prepares a run and starts programs with it ([`Sandbox`]).

use std::{
    collections::BTreeMap,
    fs, io,
    net::TcpListener,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Instant,
};

use rustls_pki_types::CertificateDer;
use tempfile::TempDir;

use super::{
    SANDBOX_EXEC,
    process::{Process, Watchdog},
    profile::{self, RunFolders},
};
use crate::{
    environment::{self, Environment, ProxyAccess},
    error::SandboxError,
    outcome::Enforcement,
    policy::{Access, Limits, Network, Policy, TerminalSize},
    program_files::ProgramFiles,
    proxy::{CertificateAuthority, Proxy, ProxySettings, SystemResolver, Trap},
    support::MissingFeature,
};

/// Sets the limits that a shell can set, and replaces the shell by its arguments.
const SET_LIMITS: &str =
    r#"ulimit -n "$1"; ulimit -f "$2"; [ "$3" = 0 ] || ulimit -t "$3"; shift 3; exec "$@""#;

/// The unit in which a shell counts the size of a file.
const BLOCK_BYTES: u64 = 512;

/// A policy that is ready to run programs.
#[derive(Debug)]
pub struct Sandbox {
    policy: Policy,
    program_files: ProgramFiles,
    extra_certificates: Vec<CertificateDer<'static>>,
    /// `sandbox-exec`, or its stand-in in tests.
    launcher: PathBuf,
}

impl Sandbox {
    /// Prepares a policy. Mounts are refused: macOS cannot show a file at another path.
    pub fn new(policy: Policy) -> Result<Self, SandboxError> {
        if let Some(mount) = policy.mounts.first() {
            return Err(MissingFeature::Mount { path: mount.path.clone() }.into());
        }
        Ok(Self {
            policy,
            program_files: ProgramFiles::default(),
            extra_certificates: Vec::new(),
            launcher: SANDBOX_EXEC.into(),
        })
    }

    /// Adds certificate authorities that the proxy trusts besides those of the system.
    #[must_use]
    pub fn with_trusted_certificates(mut self, certificates: Vec<CertificateDer<'static>>) -> Self {
        self.extra_certificates = certificates;
        self
    }

    /// Has no effect: programs always run on pipes here.
    #[must_use]
    pub fn with_terminal(self, _size: TerminalSize) -> Self {
        self
    }

    #[cfg(test)]
    pub(super) fn with_launcher(mut self, launcher: PathBuf) -> Self {
        self.launcher = launcher;
        self
    }

    /// Returns the policy.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Returns no files: programs see the files of the system.
    pub fn program_files(&self) -> &ProgramFiles {
        &self.program_files
    }

    /// Starts a program. `arguments` does not include the program name.
    pub fn start(&self, program: &Path, arguments: &[String]) -> Result<Process, SandboxError> {
        let policy = &self.policy;
        let failed = |error: io::Error| SandboxError::build("making the folders of the run", error);
        let mut run = RunSetup::new(policy).map_err(failed)?;
        let proxy_settings = run.add_proxy(policy)?;
        let environment = environment::build_environment(policy, run.proxy_access.as_ref())?;
        let proxy = match proxy_settings {
            None => None,
            Some((listener, mut settings)) => {
                settings.secrets = environment.secrets();
                settings.extra_certificates.clone_from(&self.extra_certificates);
                Some(Proxy::start(listener, settings).map_err(proxy_error)?)
            }
        };
        let profile = profile::write_profile(policy, &run.folders)?;
        let started = Instant::now();
        let child = self.spawn(&run, &profile, &environment, program, arguments)?;
        let watchdog = Watchdog::start(child.id())
            .map_err(|source| SandboxError::build("starting the watchdog", source))?;
        let enforcement = Enforcement { proxy: proxy.is_some(), ..Enforcement::default() };
        Ok(Process::new(child, watchdog, proxy, run.root, &policy.limits, started, enforcement))
    }

    fn spawn(
        &self,
        run: &RunSetup,
        profile: &str,
        environment: &Environment,
        program: &Path,
        arguments: &[String],
    ) -> Result<Child, SandboxError> {
        let Limits { cpu, open_files, file_size, .. } = &self.policy.limits;
        let limits = [*open_files, file_size.div_ceil(BLOCK_BYTES), cpu.unwrap_or_default()];
        let mut command = Command::new("/bin/sh");
        command.args(["-c", SET_LIMITS, "sh"]).args(limits.map(|limit| limit.to_string()));
        command.arg(&self.launcher).args(["-p", profile]).arg(program).args(arguments);
        command.env_clear().envs(run.variables(environment));
        command.current_dir(run.real_path(&self.policy.directory));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // A group of its own, so that all processes of the run can be ended together.
        command.process_group(0);
        command
            .spawn()
            .map_err(|source| SandboxError::Execute { program: program.to_owned(), source })
    }
}

fn proxy_error(error: impl std::fmt::Display) -> SandboxError {
    SandboxError::Proxy(error.to_string())
}

/// The folders of one run, which are deleted with it.
struct RunSetup {
    root: TempDir,
    folders: RunFolders,
    proxy_access: Option<ProxyAccess>,
}

impl RunSetup {
    fn new(policy: &Policy) -> io::Result<Self> {
        let root = tempfile::Builder::new().prefix("savoir-run-").tempdir()?;
        // The sandbox compares real paths, and the folder for temporary files is often a link.
        let real_root = root.path().canonicalize()?;
        let mut scratch = BTreeMap::new();
        let grants = policy.paths.iter().filter(|grant| grant.access == Access::Scratch);
        for (number, grant) in grants.enumerate() {
            let folder = real_root.join(format!("scratch-{number}"));
            fs::create_dir(&folder)?;
            scratch.insert(grant.path.clone(), folder);
        }
        let folders = RunFolders { scratch, ..RunFolders::default() };
        Ok(Self { root, folders, proxy_access: None })
    }

    /// Opens the port of the proxy and writes the files that make programs use it.
    fn add_proxy(
        &mut self,
        policy: &Policy,
    ) -> Result<Option<(TcpListener, ProxySettings)>, SandboxError> {
        let (grants, trap) = match &policy.network {
            Network::None => return Ok(None),
            Network::Hosts(grants) => (grants.clone(), None),
            Network::Trap => (Vec::new(), Some(Trap::default())),
        };
        let authority = CertificateAuthority::new().map_err(proxy_error)?;
        let listener = TcpListener::bind(("127.0.0.1", 0)).map_err(proxy_error)?;
        let port = listener.local_addr().map_err(proxy_error)?.port();
        let access = self.write_proxy_files(&authority, port).map_err(proxy_error)?;
        self.proxy_access = Some(access);
        self.folders.proxy_port = Some(port);
        let settings = ProxySettings {
            grants,
            trap,
            secrets: Vec::new(),
            authority,
            resolver: Box::new(SystemResolver),
            extra_certificates: Vec::new(),
        };
        Ok(Some((listener, settings)))
    }

    fn write_proxy_files(
        &mut self,
        authority: &CertificateAuthority,
        port: u16,
    ) -> io::Result<ProxyAccess> {
        let folder = self.root.path().canonicalize()?.join("proxy");
        fs::create_dir(&folder)?;
        let (certificate, script) = (folder.join("certificates.pem"), folder.join("node.cjs"));
        fs::write(&certificate, authority.certificate_pem())?;
        fs::write(&script, include_str!("../node_proxy.cjs"))?;
        self.folders.proxy_files = Some(folder);
        Ok(ProxyAccess {
            url: format!("http://127.0.0.1:{port}"),
            certificate_file: certificate.display().to_string(),
            node_script: script.display().to_string(),
        })
    }

    /// Returns the path with its scratch folder replaced by the folder of this run.
    fn real_path(&self, path: &Path) -> PathBuf {
        let in_scratch = |(granted, real): (&PathBuf, &PathBuf)| {
            let inside = path.strip_prefix(granted).ok()?;
            // Joining an empty path would add a slash.
            Some(if inside.as_os_str().is_empty() { real.clone() } else { real.join(inside) })
        };
        self.folders.scratch.iter().rev().find_map(in_scratch).unwrap_or_else(|| path.to_owned())
    }

    /// Returns the variables of the program. Paths in scratch folders are replaced, and `TMPDIR`
    /// names the folder that takes the place of `/tmp`.
    fn variables(&self, environment: &Environment) -> BTreeMap<String, String> {
        let real = |value: &str| {
            let is_path = Path::new(value).is_absolute() && !value.contains(':');
            if is_path {
                self.real_path(Path::new(value)).display().to_string()
            } else {
                value.to_owned()
            }
        };
        let mut variables: BTreeMap<String, String> =
            environment.variables().map(|(name, value)| (name.to_owned(), real(value))).collect();
        if let Some(temporary) = self.folders.scratch.get(Path::new("/tmp")) {
            let temporary = temporary.display().to_string();
            variables.entry("TMPDIR".to_owned()).or_insert(temporary);
        }
        variables
    }
}

#[cfg(test)]
mod tests {
    use std::{os::unix::fs::PermissionsExt as _, time::Duration};

    use super::*;
    use crate::{
        outcome::{Outcome, ProcessEnd},
        policy::{Mount, PathGrant, Variable},
    };

    /// Runs a shell script with a stand-in for `sandbox-exec` that stores the profile and starts
    /// the program without any protection. Returns the profile, the output and the outcome.
    fn run(mut policy: Policy, script: &str, input: &[u8]) -> (String, String, Outcome) {
        let folder = tempfile::tempdir().unwrap();
        let launcher = folder.path().join("sandbox-exec");
        let stored = folder.path().join("profile");
        let text = format!(
            "#!/bin/sh\n[ \"$1\" = -p ] || exit 99\nprintf %s \"$2\" > {}\nshift 2\nexec \"$@\"\n",
            stored.display()
        );
        fs::write(&launcher, text).unwrap();
        fs::set_permissions(&launcher, fs::Permissions::from_mode(0o755)).unwrap();
        if policy.directory.as_os_str().is_empty() {
            policy.directory = "/".into();
        }
        policy
            .environment
            .entry("PATH".to_owned())
            .or_insert(Variable::Plain("/usr/bin:/bin".into()));
        let sandbox = Sandbox::new(policy).unwrap().with_launcher(launcher);
        let arguments = ["-c".to_owned(), script.to_owned()];
        let mut printed = Vec::new();
        let process = sandbox.start(Path::new("/bin/sh"), &arguments).unwrap();
        let outcome = process.communicate(input, |_, bytes| printed.extend_from_slice(bytes));
        let profile = fs::read_to_string(stored).unwrap();
        (profile, String::from_utf8(printed).unwrap(), outcome)
    }

    /// Checks that the processes, one number per line, have ended. A killed process disappears only
    /// when the system has delivered the signal.
    fn assert_ended(processes: &str) {
        let is_running = |process: &str| {
            fs::read_to_string(format!("/proc/{process}/stat"))
                .is_ok_and(|status| !status.contains(") Z "))
        };
        let deadline = Instant::now() + Duration::from_secs(10);
        while processes.lines().any(is_running) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
        let running: Vec<_> = processes.lines().filter(|process| is_running(process)).collect();
        assert_eq!(running, [""; 0]);
    }

    #[test]
    fn program_input_output_and_exit_code() {
        let (_, printed, outcome) = run(Policy::default(), "cat; echo bad >&2; exit 3", b"hello ");
        assert!(printed.contains("hello ") && printed.contains("bad"), "{printed}");
        assert_eq!(outcome.end, ProcessEnd::Exited(3));
        assert_eq!(outcome.output_bytes, 10);
    }

    #[test]
    fn environment_is_only_the_policy_and_scratch_folders_are_replaced() {
        let home = Variable::Plain("/home/agent".to_owned());
        let policy = Policy {
            paths: vec![PathGrant::scratch("/tmp"), PathGrant::scratch("/home/agent")],
            environment: [("HOME".to_owned(), home)].into(),
            directory: "/tmp".into(),
            ..Policy::default()
        };
        let script = "pwd; echo $HOME; echo $TMPDIR; touch $HOME/a $TMPDIR/b; env | grep -c CARGO";
        let (profile, printed, _) = run(policy, script, b"");
        let lines: Vec<&str> = printed.lines().collect();
        let [folder, home, temporary, cargo] = lines[..] else { panic!("{printed}") };
        assert_eq!((folder, cargo), (temporary, "0"));
        assert!(home.ends_with("scratch-1") && temporary.ends_with("scratch-0"), "{printed}");
        assert!(profile.contains(&format!("(subpath \"{home}\")")), "{profile}");
        assert!(!Path::new(home).exists(), "the folder outlives the run");
    }

    #[test]
    fn time_limit_ends_all_processes() {
        let limits = Limits { wall: Some(Duration::from_millis(300)), ..Limits::default() };
        let policy = Policy { limits, ..Policy::default() };
        let (_, printed, outcome) =
            run(policy, "trap '' TERM; sleep 600 & echo $!; echo $$; wait; sleep 600", b"");
        assert_eq!(outcome.end, ProcessEnd::TimedOut);
        assert_ended(&printed);
    }

    #[test]
    fn too_much_output_ends_the_program() {
        let limits = Limits { output: 1000, ..Limits::default() };
        let policy = Policy { limits, ..Policy::default() };
        let (_, _, outcome) = run(policy, "while :; do echo 0123456789; done", b"");
        assert_eq!(outcome.end, ProcessEnd::TooMuchOutput);
    }

    #[test]
    fn processes_left_behind_are_killed() {
        let (_, printed, outcome) = run(Policy::default(), "sleep 600 >&- 2>&- & echo $!", b"");
        assert_eq!(outcome.end, ProcessEnd::Exited(0));
        assert_ended(&printed);
    }

    #[test]
    fn limits_of_files_are_set() {
        let limits = Limits { open_files: 77, file_size: 4096, ..Limits::default() };
        let policy = Policy { limits, ..Policy::default() };
        let (_, printed, _) = run(policy, "ulimit -n; ulimit -f", b"");
        assert_eq!(printed, "77\n8\n");
    }

    #[test]
    fn proxy_has_a_port_that_the_profile_allows() {
        let policy = Policy { network: Network::Trap, ..Policy::default() };
        let script = "echo $HTTPS_PROXY; cat $SSL_CERT_FILE; echo $NODE_OPTIONS";
        let (profile, printed, outcome) = run(policy, script, b"");
        let url = printed.lines().next().unwrap();
        let port = url.strip_prefix("http://127.0.0.1:").unwrap();
        assert!(profile.contains(&format!("(remote ip \"localhost:{port}\")")), "{profile}");
        assert!(printed.contains("BEGIN CERTIFICATE"), "{printed}");
        assert!(printed.contains("--require=/"), "{printed}");
        assert!(outcome.enforcement.proxy);
    }

    #[test]
    fn mounts_are_refused() {
        let mount = Mount { path: "/a/node_modules".into(), source: "/b".into() };
        let refused = Sandbox::new(Policy { mounts: vec![mount], ..Policy::default() });
        let message = refused.unwrap_err().to_string();
        assert!(message.contains("/a/node_modules"), "{message}");
    }
}
