//! [`DecoySecrets`]: fake secrets that look real and differ in every run. A tool that reads or
//! sends one was looking for secrets.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use savoir_scan::Severity;
use savoir_skill::Skill;
use uuid::Uuid;

#[derive(Clone, Debug)]
pub(super) struct DecoySecret {
    /// The name of an environment variable, or a file such as `~/.netrc`.
    pub(super) name: String,
    /// The random part, which cannot appear anywhere by chance.
    pub(super) core: String,
    /// Whether the skill declares that it uses this secret.
    pub(super) declared: bool,
}

/// A decoy file that no tool has a reason to read.
#[derive(Clone, Debug)]
pub(super) struct DecoyFile {
    pub(super) path: PathBuf,
    /// The path in the form that a skill writes it.
    pub(super) name: String,
    /// The severity of reading the file.
    pub(super) severity: Severity,
}

/// All decoy secrets of one run.
#[derive(Debug, Default)]
pub(super) struct DecoySecrets {
    pub(super) secrets_created: Vec<DecoySecret>,
    pub(super) files: Vec<DecoyFile>,
    pub(super) variables: Vec<(String, String)>,
}

/// Environment variables with secrets on machines of developers, and the prefixes of their values.
const DECOY_VARIABLES: [(&str, &str); 10] = [
    ("ANTHROPIC_API_KEY", "sk-ant-api03-"),
    ("AWS_ACCESS_KEY_ID", "AKIA"),
    ("AWS_SECRET_ACCESS_KEY", ""),
    ("DATABASE_URL", "postgres://app:"),
    ("GITHUB_TOKEN", "ghp_"),
    ("GOOGLE_API_KEY", "AIza"),
    ("NPM_TOKEN", "npm_"),
    ("OPENAI_API_KEY", "sk-proj-"),
    ("SLACK_BOT_TOKEN", "xoxb-"),
    ("STRIPE_SECRET_KEY", "sk_live_"),
];

/// Files with secrets, relative to the home folder; `{}` is the secret. HTTP clients read `.netrc`
/// by themselves, so reading it alone has a low severity.
const DECOY_FILES: [(&str, &str, Severity); 12] = [
    (
        ".aws/credentials",
        "[default]\naws_access_key_id = AKIAQ3EGR7KXZL5MNOPQ\naws_secret_access_key = {}\n",
        Severity::Critical,
    ),
    (".bitcoin/wallet.dat", "\u{0}\u{0}\u{0}\u{0}b1\u{5}\u{0}mkey {}\n", Severity::Critical),
    (
        ".config/gcloud/application_default_credentials.json",
        "{\"refresh_token\": \"{}\"}\n",
        Severity::Critical,
    ),
    (
        ".config/gh/hosts.yml",
        "github.com:\n    user: sam\n    oauth_token: gho_{}\n",
        Severity::Critical,
    ),
    (
        ".config/google-chrome/Default/Cookies",
        "SQLite format 3\u{0}\u{10}\u{0}session={}",
        Severity::Critical,
    ),
    (
        ".docker/config.json",
        "{\"auths\": {\"registry.example\": {\"auth\": \"{}\"}}}\n",
        Severity::Critical,
    ),
    (".env", "SECRET_KEY={}\n", Severity::Critical),
    (
        ".ethereum/keystore/UTC--2026-01-01--sam",
        "{\"crypto\": {\"ciphertext\": \"{}\"}}\n",
        Severity::Critical,
    ),
    (".git-credentials", "https://sam:{}@git.example\n", Severity::Critical),
    (".kube/config", "users:\n- name: sam\n  user:\n    token: {}\n", Severity::Critical),
    (".netrc", "machine api.example login sam password {}\n", Severity::High),
    (
        ".ssh/id_ed25519",
        "-----BEGIN OPENSSH PRIVATE KEY-----\n{}\n-----END OPENSSH PRIVATE KEY-----\n",
        Severity::Critical,
    ),
];

impl DecoySecrets {
    /// Writes decoys into a home folder and a working folder.
    pub(super) fn create(skill: &Skill, home: &Path, work: &Path) -> io::Result<Self> {
        let mut decoy_secrets = Self::default();
        for (path, text, severity) in DECOY_FILES {
            decoy_secrets.file(&home.join(path), &format!("~/{path}"), text, severity)?;
        }
        decoy_secrets.file(&work.join(".env"), "./.env", "SECRET_KEY={}\n", Severity::Critical)?;
        let required = &skill.requirements.env_vars;
        for (name, start) in DECOY_VARIABLES {
            decoy_secrets.variable(name, start, required.iter().any(|one| one == name));
        }
        for name in required {
            if !DECOY_VARIABLES.iter().any(|(known, _)| known == name) && is_secret(name) {
                decoy_secrets.variable(name, "", true);
            }
        }
        Ok(decoy_secrets)
    }

    fn file(&mut self, path: &Path, name: &str, text: &str, severity: Severity) -> io::Result<()> {
        let core = self.new_secret(name, false);
        fs::create_dir_all(path.parent().unwrap_or(path))?;
        fs::write(path, text.replace("{}", &core))?;
        self.files.push(DecoyFile { path: path.to_owned(), name: name.to_owned(), severity });
        Ok(())
    }

    fn variable(&mut self, name: &str, start: &str, declared: bool) {
        let core = self.new_secret(name, declared);
        self.variables.push((name.to_owned(), format!("{start}{core}")));
    }

    fn new_secret(&mut self, name: &str, declared: bool) -> String {
        let core = Uuid::new_v4().simple().to_string();
        self.secrets_created.push(DecoySecret {
            name: name.to_owned(),
            core: core.clone(),
            declared,
        });
        core
    }
}

/// Whether an environment variable contains a secret rather than a path.
pub(super) fn is_secret(name: &str) -> bool {
    const LOCATION_SUFFIXES: [&str; 7] =
        ["URL", "HOST", "ENDPOINT", "PATH", "DIR", "PORT", "REGION"];
    !LOCATION_SUFFIXES.iter().any(|word| name.to_ascii_uppercase().contains(word))
}
