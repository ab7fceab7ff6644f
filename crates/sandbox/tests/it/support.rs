//! Sets up the environment of checks (files, sockets and processes) and runs this binary in it,
//! outside or inside the sandbox.

use std::{
    env, fs,
    io::{Read as _, Write as _},
    net::{TcpListener, UdpSocket},
    os::{
        fd::{AsRawFd as _, OwnedFd},
        linux::net::SocketAddrExt as _,
        unix::{
            fs::{MetadataExt as _, PermissionsExt as _, symlink},
            net::{SocketAddr, UnixDatagram, UnixListener},
        },
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Once, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use savoir_sandbox::{
    Limits, MissingFeature, Outcome, PathGrant, Policy, Process, Sandbox, SandboxError, Stream,
    Variable,
};
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use crate::check::calls;

/// The content that must not be visible inside.
pub(crate) const SECRET: &str = "savoir-private-content";

/// The variable with the name of the check, role or case to run.
pub(crate) const NAME: &str = "SAVOIR_TEST_NAME";

/// The variable with the [`Setup`] as JSON.
pub(crate) const SETUP: &str = "SAVOIR_TEST_SETUP";

/// The variable with the path of a setuid program that root created for tests as an ordinary user.
pub(crate) const SET_UID: &str = "SAVOIR_TEST_SET_UID";

/// Limits of the program inside, small enough to be reached quickly.
pub(crate) const PROCESSES: u64 = 64;
pub(crate) const OPEN_FILES: u64 = 128;
pub(crate) const FILE_SIZE: u64 = 8 << 20;
pub(crate) const SCRATCH: u64 = 4 << 20;
pub(crate) const MEMORY: u64 = 1 << 30;

/// The paths, ports and processes that a check uses.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Setup {
    pub(crate) binary: PathBuf,
    /// The folder that is granted for reading.
    pub(crate) read: PathBuf,
    /// The folder that is granted for writing, with protected paths in it.
    pub(crate) write: PathBuf,
    /// The folder that is granted as a scratch folder.
    pub(crate) scratch: PathBuf,
    /// A folder that is not granted; it contains `file` with the secret.
    pub(crate) secret: PathBuf,
    pub(crate) tcp: u16,
    pub(crate) tcp6: Option<u16>,
    pub(crate) udp: u16,
    pub(crate) abstract_name: String,
    /// A process of the test: `sleep`, with the secret in its environment.
    pub(crate) sleeper: i32,
    /// Open in the test without close-on-exec: the secret file and its folder.
    pub(crate) file_descriptor: i32,
    pub(crate) folder_descriptor: i32,
    pub(crate) set_uid: Option<PathBuf>,
}

/// Creates everything that a [`Setup`] names; dropping it removes everything.
pub(crate) struct CheckEnvironment {
    pub(crate) setup: Setup,
    folder: TempDir,
    sleeper: Child,
    _held: Vec<OwnedFd>,
}

impl CheckEnvironment {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let folder = tempdir();
        let root = folder.path();
        let [read, write, scratch, secret] =
            ["read", "write", "scratch", "secret"].map(|name| root.join(name));
        for folder in [
            &read,
            &read.join("inner"),
            &scratch,
            &secret,
            &write.join("kept/inner"),
            &write.join("deep/inner"),
            &write.join("closed/deep/inner"),
        ] {
            fs::create_dir_all(folder).unwrap();
        }
        for file in [
            "read/file", "read/inner/file", "write/file", "write/guarded", "write/kept/file",
            "write/deep/inner/file", "write/closed/deep/inner/file",
        ] {
            fs::write(root.join(file), "as it was\n").unwrap();
        }
        fs::write(secret.join("file"), SECRET).unwrap();
        symlink(secret.join("file"), read.join("link")).unwrap();
        symlink(&secret, write.join("link")).unwrap();
        fs::copy("/usr/bin/true", read.join("tool")).unwrap();
        let mut held: Vec<OwnedFd> = Vec::new();
        for pipe in [read.join("pipe"), write.join("kept/pipe")] {
            calls::make_pipe(&pipe).unwrap();
            // Keeps the pipe open for reading, so that a writer does not block.
            held.push(fs::File::options().read(true).write(true).open(pipe).unwrap().into());
        }
        let stream = UnixListener::bind(read.join("stream")).unwrap();
        let datagram = UnixDatagram::bind(read.join("datagram")).unwrap();
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let abstract_name = format!("savoir-{}-{number}", std::process::id());
        let address = SocketAddr::from_abstract_name(&abstract_name).unwrap();
        let hidden = UnixListener::bind_addr(&address).unwrap();
        held.extend([OwnedFd::from(stream), datagram.into(), hidden.into()]);
        let (tcp, tcp6, udp) = servers();
        let sleeper = Command::new("/bin/sleep")
            .arg("600")
            .env(NAME, SECRET)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let file: OwnedFd = fs::File::open(secret.join("file")).unwrap().into();
        let open_folder: OwnedFd = fs::File::open(&secret).unwrap().into();
        calls::keep_on_execute(&file);
        calls::keep_on_execute(&open_folder);
        let setup = Setup {
            binary: binary(),
            read,
            write,
            scratch,
            secret,
            tcp,
            tcp6,
            udp,
            abstract_name,
            sleeper: sleeper.id().cast_signed(),
            file_descriptor: file.as_raw_fd(),
            folder_descriptor: open_folder.as_raw_fd(),
            set_uid: env::var_os(SET_UID).map(PathBuf::from),
        };
        held.extend([file, open_folder]);
        // Nobody can look up paths in this folder until its owner changes the permissions.
        mode(&setup.write.join("closed"), 0o000);
        Self { setup, folder, sleeper, _held: held }
    }

    /// The policy of the program inside.
    pub(crate) fn policy(&self) -> Policy {
        let Setup { read, write, scratch, binary, set_uid, .. } = &self.setup;
        let mut policy = Policy {
            paths: vec![
                PathGrant::read(read),
                PathGrant::write(write),
                PathGrant::scratch(scratch),
            ],
            programs: std::iter::once(binary.clone()).chain(set_uid.clone()).collect(),
            limits: Limits {
                wall: Some(Duration::from_secs(20)),
                memory: MEMORY,
                processes: PROCESSES,
                open_files: OPEN_FILES,
                file_size: FILE_SIZE,
                scratch: SCRATCH,
                ..Limits::default()
            },
            directory: write.clone(),
            ..Policy::default()
        };
        for path in ["kept", "guarded", "missing", "deep/inner", "closed/deep/inner", "far/missing"]
        {
            policy.paths.push(PathGrant::protected(write.join(path)));
        }
        policy
    }

    pub(crate) fn setup_text(&self) -> String {
        serde_json::to_string(&self.setup).unwrap()
    }
}

impl Drop for CheckEnvironment {
    fn drop(&mut self) {
        let _ = self.sleeper.kill();
        let _ = self.sleeper.wait();
        let closed = self.folder.path().join("write/closed");
        if closed.exists() {
            mode(&closed, 0o755);
        }
    }
}

/// A temporary folder that every user can enter.
pub(crate) fn tempdir() -> TempDir {
    let folder = tempfile::Builder::new().prefix("savoir-test-").tempdir_in("/tmp").unwrap();
    mode(folder.path(), 0o755);
    folder
}

pub(crate) fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// This binary, by its real path.
pub(crate) fn binary() -> PathBuf {
    env::current_exe().unwrap().canonicalize().unwrap()
}

pub(crate) fn is_root() -> bool {
    fs::metadata("/proc/self").unwrap().uid() == 0
}

/// Starts servers on the loopback interface of the host that answer with the secret.
fn servers() -> (u16, Option<u16>, u16) {
    static PORTS: OnceLock<(u16, Option<u16>, u16)> = OnceLock::new();
    *PORTS.get_or_init(|| {
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let tcp6 = TcpListener::bind("[::1]:0").ok();
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = |listener: &TcpListener| listener.local_addr().unwrap().port();
        let ports = (port(&tcp), tcp6.as_ref().map(port), udp.local_addr().unwrap().port());
        for listener in std::iter::once(tcp).chain(tcp6) {
            thread::spawn(move || {
                for stream in listener.incoming().flatten() {
                    let _ = (&stream).write_all(SECRET.as_bytes());
                }
            });
        }
        thread::spawn(move || {
            let mut buffer = [0; 64];
            while let Ok((_, from)) = udp.recv_from(&mut buffer) {
                let _ = udp.send_to(SECRET.as_bytes(), from);
            }
        });
        ports
    })
}

/// The arguments with which this binary runs only one entry.
pub(crate) fn entry_arguments(entry: &str) -> Vec<String> {
    [entry, "--exact", "--ignored", "--nocapture", "--test-threads=1"].map(str::to_owned).to_vec()
}

/// Adds the variables that an entry reads.
pub(crate) fn set_check_variables(policy: &mut Policy, name: &str, setup: &str) {
    for (key, value) in [(NAME, name), (SETUP, setup)] {
        policy.environment.insert(key.to_owned(), Variable::Plain(value.to_owned()));
    }
}

/// The output and the outcome of a run.
pub(crate) struct Run {
    pub(crate) outcome: Outcome,
    pub(crate) output: Vec<u8>,
    pub(crate) error: Vec<u8>,
}

impl Run {
    pub(crate) fn of(process: Process, input: &[u8]) -> Self {
        let (mut output, mut error) = (Vec::new(), Vec::new());
        let outcome = process.communicate(input, |stream, bytes| match stream {
            Stream::Output => output.extend_from_slice(bytes),
            Stream::Error => error.extend_from_slice(bytes),
        });
        Self { outcome, output, error }
    }
}

/// Runs an entry in the sandbox.
pub(crate) fn run_inside(policy: Policy, entry: &str) -> Result<Run, SandboxError> {
    let sandbox = Sandbox::new(policy)?;
    let process = sandbox.start(&binary(), &entry_arguments(entry))?;
    Ok(Run::of(process, b""))
}

/// Runs an entry outside the sandbox, with everything that this process can access; returns its
/// output.
pub(crate) fn run_outside(entry: &str, name: &str, setup: &str, directory: &Path) -> String {
    let mut child = Command::new(binary())
        .args(entry_arguments(entry))
        .env(NAME, name)
        .env(SETUP, setup)
        .current_dir(directory)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut bytes = Vec::new();
    child.stdout.take().unwrap().read_to_end(&mut bytes).unwrap();
    child.wait().unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Prints the result of an entry, bypassing the output capture of the test harness.
pub(crate) fn print_result(text: &str) {
    let mut output = std::io::stdout();
    output.write_all(format!("\n{text}\n").as_bytes()).unwrap();
    output.flush().unwrap();
}

/// Whether this machine supports the sandbox. If it does not, that is an error, unless a variable
/// says that this is expected.
pub(crate) fn sandbox_is_supported() -> bool {
    static SKIP_NOTICE: Once = Once::new();
    static CAN: OnceLock<bool> = OnceLock::new();
    *CAN.get_or_init(|| {
        let program = Path::new("/usr/bin/true");
        let policy = Policy {
            programs: vec![program.to_owned()],
            directory: "/".into(),
            ..Policy::default()
        };
        match Sandbox::new(policy).and_then(|sandbox| sandbox.start(program, &[])) {
            Ok(process) => {
                process.stop();
                true
            }
            Err(SandboxError::Unsupported(
                missing @ (MissingFeature::Namespaces { .. } | MissingFeature::System),
            )) if env::var_os("SAVOIR_ALLOW_NO_SANDBOX").is_some_and(|value| value == "1") => {
                SKIP_NOTICE.call_once(|| print_skipped(&format!("not tested: {missing}")));
                false
            }
            Err(error) => panic!(
                "{error}\nThe sandbox cannot be tested here; \
                 SAVOIR_ALLOW_NO_SANDBOX=1 leaves these tests out."
            ),
        }
    })
}

/// Prints a note for the reader of the test output.
pub(crate) fn print_skipped(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Processes whose command line contains a text.
pub(crate) fn processes_with(marker: &str) -> Vec<i32> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if line.windows(marker.len()).any(|window| window == marker.as_bytes()) {
            found.push(pid);
        }
    }
    found
}
