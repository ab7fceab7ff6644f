//! Tests environments, with the package index if it can be reached.

use std::{
    env,
    ffi::OsString,
    fs,
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    sync::OnceLock,
    thread,
};

use savoir_engine::python::{
    environment::{
        Builds, Environment, EnvironmentError, EnvironmentSpec, Installer, prepare, variables,
    },
    requirement::{DirectReferences, Requirement, requirements},
};

use super::python;

fn six() -> Vec<Requirement> {
    requirements(&["six>=1.16,<2"], DirectReferences::Forbid).expect("a requirement")
}

fn make(
    cache: &Path,
    python: &Path,
    wanted: &[Requirement],
    installer: &Installer,
) -> Result<Environment, EnvironmentError> {
    let mut variables = variables(env::vars_os());
    // Tests must not use the user's own cache.
    for name in ["PIP_CACHE_DIR", "UV_CACHE_DIR"] {
        variables.retain(|(known, _)| known != name);
        variables.push((name.into(), cache.join(name).into()));
    }
    let builds = Builds::Refused;
    let wanted = EnvironmentSpec {
        python,
        requirements: wanted,
        builds,
        installer: installer.clone(),
        variables,
    };
    prepare(cache, &wanted, &mut |_| {})
}

/// Variables that point to an index of the test, without the user's settings and caches.
fn with_index(address: &str, folder: &Path) -> Vec<(OsString, OsString)> {
    let mut variables = variables(env::vars_os());
    let is_setting = |name: &OsString| {
        ["PIP_", "UV_", "XDG_"].iter().any(|prefix| name.to_string_lossy().starts_with(prefix))
    };
    variables.retain(|(name, _)| !is_setting(name) && name != "HOME" && name != "NO_PROXY");
    let (home, nothing) = (folder.join("home"), folder.join("nothing"));
    let own: [(&str, OsString); 8] = [
        ("PIP_INDEX_URL", address.into()),
        ("UV_DEFAULT_INDEX", address.into()),
        ("PIP_RETRIES", "1".into()),
        ("UV_HTTP_RETRIES", "0".into()),
        ("PIP_CONFIG_FILE", "/dev/null".into()),
        ("UV_CACHE_DIR", nothing.into()),
        ("HOME", home.into()),
        ("NO_PROXY", "127.0.0.1".into()),
    ];
    variables.extend(own.map(|(name, value)| (name.into(), value)));
    variables
}

/// Whether packages can be installed on this machine; checked once.
fn has_index() -> bool {
    static FOUND: OnceLock<bool> = OnceLock::new();
    let found = || {
        let Some(python) = python() else { return false };
        let dir = tempfile::tempdir().expect("a temporary folder");
        let mut pip = Command::new(python);
        pip.args([
            "-m", "pip", "download", "--quiet", "--no-deps", "--retries", "1", "--timeout", "5",
        ]);
        pip.arg("--dest").arg(dir.path()).arg("six");
        pip.output().is_ok_and(|output| output.status.success())
    };
    let found = *FOUND.get_or_init(found);
    if !found {
        eprintln!("note: no package index can be reached, so this test checks nothing here");
    }
    found
}

/// The names of the environments in a cache, without lock files.
fn made_in(cache: &Path) -> Vec<String> {
    let entries = fs::read_dir(cache.join("environments")).expect("a folder");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let others = paths.filter(|path| path.extension().is_none_or(|extension| extension != "lock"));
    others.map(|path| path.display().to_string()).collect()
}

fn installers() -> Vec<Installer> {
    let path = env::var_os("PATH").unwrap_or_default();
    let mut files = env::split_paths(&path).map(|folder| folder.join("uv"));
    let Some(uv) = files.find(|file| file.is_file()) else {
        eprintln!("note: there is no uv on PATH, so only pip is tested");
        return vec![Installer::Pip];
    };
    vec![Installer::Pip, Installer::Uv(uv)]
}

#[test]
fn an_environment_is_made_once_and_verified() {
    let Some(python) = python().filter(|_| has_index()) else { return };
    for installer in installers() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let make = || make(dir.path(), &python, &six(), &installer).expect("an environment");
        let first = make();
        assert!(first.root.starts_with(dir.path().join("environments")));
        assert_eq!(first.record.tool, installer.as_str());
        let package = first.record.packages.iter().find(|package| package.name == "six");
        assert!(package.is_some_and(|package| package.version.starts_with("1.")), "{first:?}");
        let output = Command::new(first.python())
            .args(["-I", "-c", "import six, sys; print(six.__version__, sys.prefix)"])
            .output()
            .expect("the interpreter");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(said.contains(first.root.to_str().expect("UTF-8")), "{said}{output:?}");
        // No file contains the temporary path of the installation.
        let config = fs::read_to_string(first.root.join("pyvenv.cfg")).expect("pyvenv.cfg");
        assert!(!config.contains(".new"), "{config}");

        assert_eq!(make().record, first.record, "it is used again");
        let site =
            fs::read_dir(first.root.join("lib")).expect("lib").next().expect("one").expect("one");
        let site = site.path().join("site-packages");
        let extra = site.join("extra-1.0.dist-info");
        fs::create_dir(&extra).expect("a folder");
        fs::write(extra.join("METADATA"), "Name: extra\nVersion: 1.0\n").expect("a file");
        fs::write(extra.join("RECORD"), "").expect("a file");
        make();
        assert!(!extra.exists(), "what was added by others is gone");
        assert_eq!(made_in(dir.path()).len(), 1);
    }
}

#[test]
fn concurrent_preparations_create_one_environment() {
    let Some(python) = python().filter(|_| has_index()) else { return };
    let installer = installers().pop().expect("one");
    let dir = tempfile::tempdir().expect("a temporary folder");
    let (one, other) = thread::scope(|scope| {
        let make = || make(dir.path(), &python, &six(), &installer).expect("an environment");
        let (one, other) = (scope.spawn(make), scope.spawn(make));
        (one.join().expect("no panic"), other.join().expect("no panic"))
    });
    assert_eq!(one.root, other.root);
    assert_eq!(one.record, other.record);
}

#[test]
fn failures_include_the_installer_output() {
    let Some(python) = python() else { return };
    for installer in installers() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let requirements = six();
        let wanted = EnvironmentSpec {
            python: &python,
            requirements: &requirements,
            builds: Builds::Refused,
            installer,
            // No server listens at this address.
            variables: with_index("http://127.0.0.1:9/simple", dir.path()),
        };
        let mut lines = Vec::new();
        let error = prepare(dir.path(), &wanted, &mut |line| lines.push(line.to_owned()))
            .expect_err("offline");
        assert!(error.to_string().contains("could not install the packages:\n  "), "{error}");
        let hint = error.hint().unwrap_or_default();
        assert!(hint.contains("cannot be reached"), "{error} {hint}");
        assert!(!lines.is_empty());
        assert_eq!(made_in(dir.path()), [""; 0]);
    }
}

/// A package index on this machine, so that no test asks the real one for made-up names.
struct Index {
    server: Child,
    address: String,
}

impl Index {
    fn serve(python: &Path, folder: &Path) -> Self {
        let mut server = Command::new(python)
            .args(["-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "--directory"])
            .arg(folder)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("a server");
        let mut line = String::new();
        let output = server.stdout.take().expect("a pipe");
        BufReader::new(output).read_line(&mut line).expect("a line");
        let port = line.split_whitespace().skip_while(|word| *word != "port").nth(1);
        let address = format!("http://127.0.0.1:{}", port.expect("a port"));
        Self { server, address }
    }
}

impl Drop for Index {
    fn drop(&mut self) {
        // The server is our own child process; it may have ended already.
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

#[test]
fn a_source_distribution_is_refused() {
    let Some(python) = python() else { return };
    // The package only has a source distribution. Building it would create the file `trace`.
    let dir = tempfile::tempdir().expect("a temporary folder");
    let trace = dir.path().join("trace");
    let package = dir.path().join("sneaky-1.0");
    let listed = dir.path().join("index/simple/sneaky");
    fs::create_dir_all(&package).expect("a folder");
    fs::create_dir_all(&listed).expect("a folder");
    let setup = format!(
        "open({}, 'w')\nfrom setuptools import setup\nsetup(name='sneaky', version='1.0')\n",
        serde_json::json!(trace)
    );
    fs::write(package.join("setup.py"), setup).expect("a file");
    let metadata = "Metadata-Version: 2.1\nName: sneaky\nVersion: 1.0\n";
    fs::write(package.join("PKG-INFO"), metadata).expect("a file");
    let page = "<a href=\"sneaky-1.0.tar.gz\">sneaky-1.0.tar.gz</a>";
    fs::write(listed.join("index.html"), page).expect("a file");
    let mut tar = Command::new("tar");
    tar.arg("-czf").arg(listed.join("sneaky-1.0.tar.gz")).arg("-C").arg(dir.path());
    assert!(tar.arg("sneaky-1.0").status().expect("tar").success());
    let index = Index::serve(&python, &dir.path().join("index"));
    let requirements = requirements(&["sneaky"], DirectReferences::Forbid).expect("a requirement");
    for installer in installers() {
        let wanted = EnvironmentSpec {
            python: &python,
            requirements: &requirements,
            builds: Builds::Refused,
            installer,
            variables: with_index(&format!("{}/simple", index.address), dir.path()),
        };
        let error = prepare(dir.path(), &wanted, &mut |_| {}).expect_err("no wheel");
        let hint = error.hint().unwrap_or_default();
        assert!(hint.contains("only wheels"), "{error}\n{hint}");
        assert!(error.to_string().contains("sneaky"), "{error}");
        assert!(!trace.exists(), "its code ran");
    }
}
