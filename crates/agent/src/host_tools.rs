//! Implements the host tools of an agent: files of the workspace, sandboxed commands, and public
//! web pages.
//!
//! The allow-lists of skills apply to these tools like to all others. The user is asked before an
//! action that changes something or leaves the machine, unless the user said that work inside the
//! workspace needs no question.

mod command;
mod files;
mod workspace;

use std::{
    collections::HashSet,
    io,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures::future::BoxFuture;
use savoir_engine::{grant::ProtectedPaths, protection::Baseline, run_environment::RunEnvironment};
use savoir_flow::workflow::{HttpPolicy, read_page};
use savoir_knowledge::extract::html::to_markdown_with_links;
use savoir_skill::allow_list::NotAllowed;
use serde_json::{Map, Value, json};
use thiserror::Error;
use tokio::sync::RwLock;

pub use self::command::CommandEnd;
use self::workspace::Workspace;
use super::{
    allowed_tools::CallGuard,
    consent::{Asker, Consent, HostAction, HostQuestion},
    library::MAX_SERVED_FILE_BYTES,
    toolset::{Origin, ToolAnswer, ToolSpec, Toolset},
};

/// The time limit for a web page.
const FETCH_TIME: Duration = Duration::from_secs(30);

/// The actions that the user is asked about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Autonomy {
    /// All actions that change something or leave the machine.
    #[default]
    Asks,
    /// Only actions that leave the workspace. Allow-lists of skills, the sandbox and approvals of
    /// skills still apply.
    InWorkspace,
}

/// The tools for one workspace folder.
#[derive(Debug)]
pub struct HostTools {
    workspace: Arc<Workspace>,
    run_env: RunEnvironment,
    asker: Arc<dyn Asker>,
    autonomy: Autonomy,
    http: HttpPolicy,
    /// Actions that the user approved for the whole conversation.
    agreed: Mutex<HashSet<String>>,
    /// Each command holds a read lock until the workspace is searched after it.
    commands: Arc<RwLock<()>>,
    /// The protected files that existed before the commands that run now.
    baseline: Arc<Baseline>,
    /// Held from the last check of a file until it is written.
    writes: tokio::sync::Mutex<()>,
}

/// Why a folder cannot be a workspace.
#[derive(Debug, Error)]
pub enum WorkspaceError {
    /// The path does not exist, or is not a folder.
    #[error("{path} cannot be worked in: {source}")]
    Unusable { path: String, source: io::Error },
    /// The folder is the root or contains the home.
    #[error("{path} holds all of your files")]
    TooMuch { path: String },
}

impl WorkspaceError {
    /// The stable error code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unusable { .. } => "workspace-unusable",
            Self::TooMuch { .. } => "workspace-too-large",
        }
    }

    /// A hint for the user.
    pub fn help(&self) -> &'static str {
        "name the folder of a project with --workspace"
    }
}

/// A stable error code and a message.
type ToolFailure = (&'static str, String);

/// Rewrites an error about a folder for a workspace.
fn unusable((code, why): ToolFailure) -> ToolFailure {
    let code = match code {
        "folder-too-large" => "workspace-too-large",
        _ => "workspace-unusable",
    };
    (code, format!("{why}; name a smaller folder with --workspace"))
}

impl HostTools {
    /// Creates the tools for a folder. `run_env` names the paths that are protected even inside the
    /// folder.
    pub fn new(
        folder: &Path,
        run_env: &RunEnvironment,
        asker: Arc<dyn Asker>,
        autonomy: Autonomy,
    ) -> Result<Self, WorkspaceError> {
        let path = || folder.display().to_string();
        let unusable = |source| WorkspaceError::Unusable { path: path(), source };
        let root = folder.canonicalize().map_err(unusable)?;
        if root.parent().is_none() || run_env.home.starts_with(&root) {
            return Err(WorkspaceError::TooMuch { path: path() });
        }
        let here = RunEnvironment::at(&root, &run_env.home);
        let RunEnvironment { directory, repository, worktree, .. } = here;
        let run_env = RunEnvironment { directory, repository, worktree, ..run_env.clone() };
        let workspace = Arc::new(Workspace::open(root).map_err(unusable)?);
        let (http, agreed, commands) = (HttpPolicy::default(), Mutex::default(), Arc::default());
        let (baseline, writes) = (Arc::default(), tokio::sync::Mutex::default());
        Ok(Self { workspace, run_env, asker, autonomy, http, agreed, commands, baseline, writes })
    }

    /// Protects further folders, even if they are inside the workspace.
    #[must_use]
    pub fn protecting<'a>(mut self, folders: impl IntoIterator<Item = &'a Path>) -> Self {
        let keep = |run_env: RunEnvironment, folder: &Path| run_env.keeping_folder(folder);
        self.run_env = folders.into_iter().fold(self.run_env, keep);
        self
    }

    /// The environment of the workspace, which the tools of skills should use, too.
    pub fn run_env(&self) -> &RunEnvironment {
        &self.run_env
    }

    /// Waits until every command has ended, also cancelled ones, and the workspace is searched
    /// after it. Must be called before the program exits.
    pub async fn wait_for_commands(&self) {
        drop(self.commands.write().await);
    }

    fn protected(&self) -> ProtectedPaths {
        ProtectedPaths::of(&self.run_env)
    }

    /// Replaces the rule that only public servers may be fetched.
    #[must_use]
    pub fn with_http_policy(self, http: HttpPolicy) -> Self {
        Self { http, ..self }
    }

    async fn answer(
        &self,
        name: &str,
        given: &Map<String, Value>,
        call_guard: CallGuard<'_>,
    ) -> Result<ToolAnswer, ToolFailure> {
        match name {
            "read_file" => self.read_file(text(given, "path")?),
            "list_dir" => self.list_dir(given.get("path").and_then(Value::as_str).unwrap_or(".")),
            "write_file" => {
                self.write_file(text(given, "path")?, text(given, "content")?, call_guard).await
            }
            "edit_file" => {
                let (old, new) = (text(given, "old_text")?, text(given, "new_text")?);
                self.edit_file(text(given, "path")?, old, new, call_guard).await
            }
            "run_command" => {
                let seconds = given.get("seconds").and_then(Value::as_u64);
                self.run_command(text(given, "command")?, seconds, call_guard).await
            }
            "web_fetch" => self.web_fetch(text(given, "url")?, call_guard).await,
            name => Err(("unknown-tool", format!("there is no tool `{name}`"))),
        }
    }

    /// Asks the user if necessary. The allow-lists are checked again afterwards, because they may
    /// have changed during the question.
    async fn ask_consent(
        &self,
        action: HostAction,
        call_guard: CallGuard<'_>,
    ) -> Result<(), ToolFailure> {
        let refused = |refused: NotAllowed| (refused.code(), refused.to_string());
        let doubt = call_guard.find_doubt().map_err(refused)?;
        self.ask(action, doubt.as_ref()).await?;
        match call_guard.find_doubt().map_err(refused)? {
            // The doubt changed during the question, so the user has not agreed to this one.
            Some(other) if Some(&other) != doubt.as_ref() => Err(refused(other)),
            _ => Ok(()),
        }
    }

    async fn ask(&self, action: HostAction, doubt: Option<&NotAllowed>) -> Result<(), ToolFailure> {
        let is_inside = !matches!(action, HostAction::Fetch { .. });
        let doubt = doubt.map(ToString::to_string);
        // Approving a command does not approve the same command when an allow-list objects.
        let scope = match &doubt {
            Some(doubt) => format!("{} although {doubt}", action.scope()),
            None => action.scope(),
        };
        let agreed = || self.agreed.lock().unwrap_or_else(PoisonError::into_inner);
        let is_free = is_inside && doubt.is_none() && self.autonomy == Autonomy::InWorkspace;
        if is_free || agreed().contains(&scope) {
            return Ok(());
        }
        let workspace = self.workspace.root().to_owned();
        match self.asker.ask_host(&HostQuestion { action, workspace, doubt: doubt.clone() }).await {
            Consent::Once => Ok(()),
            Consent::Always => {
                agreed().insert(scope);
                Ok(())
            }
            Consent::Declined => {
                let message = "the user declined; ask what they want instead, or do without it";
                Err(("declined", message.to_owned()))
            }
            Consent::Unanswered => {
                let message = "nobody answered whether this may be done; do without it, and tell \
                    what you would have done";
                Err(("declined", message.to_owned()))
            }
            Consent::Nobody => {
                // A doubt says that a person must agree.
                let why = doubt.unwrap_or_else(|| "a person must agree to this".to_owned());
                let message = format!(
                    "{why}; nobody can be asked here, so otherwise do without it, and tell what you \
                     would have done"
                );
                Err(("approval-needed", message))
            }
        }
    }

    async fn web_fetch(
        &self,
        address: &str,
        call_guard: CallGuard<'_>,
    ) -> Result<ToolAnswer, ToolFailure> {
        let refused = |message: String| ("not-fetched", message);
        let url = url::Url::parse(address).map_err(|error| {
            refused(format!("`{address}` is not a URL: {error}; write https://HOST/PATH"))
        })?;
        if !matches!(url.scheme(), "http" | "https") || !url.username().is_empty() {
            return Err(refused("only http:// and https:// without a user can be read".to_owned()));
        }
        self.ask_consent(HostAction::Fetch { url: url.to_string() }, call_guard).await?;
        let page = read_page(&url, &self.http, FETCH_TIME).await.map_err(refused)?;
        if let Some(location) = page.location.filter(|_| (300..400).contains(&page.status)) {
            let location = url.join(&location).map_or(location, |url| url.to_string());
            let message = format!("it is at {location} now; fetch that if it is what you want");
            return Err(("redirected", message));
        }
        // HTML is converted to Markdown.
        let said = if page.is_html { to_markdown_with_links(&page.text, &url) } else { page.text };
        let end = said.floor_char_boundary(MAX_SERVED_FILE_BYTES as usize);
        let more = if end < said.len() { "\n[cut here]" } else { "" };
        let text = format!("HTTP {}\n\n{}{more}", page.status, &said[..end]);
        let failure = (page.status >= 400).then(|| "http-status".to_owned());
        Ok(ToolAnswer { failure, ..ToolAnswer::text(text) })
    }
}

/// The names of the tools for the workspace and the web.
pub const HOST_TOOL_NAMES: [&str; 6] =
    ["read_file", "list_dir", "write_file", "edit_file", "run_command", "web_fetch"];

fn text<'a>(given: &'a Map<String, Value>, name: &str) -> Result<&'a str, ToolFailure> {
    let found = given.get(name).and_then(Value::as_str);
    let missing = || format!("the argument `{name}` is missing or not a string");
    found.ok_or_else(|| ("missing-argument", missing()))
}

impl Toolset for HostTools {
    fn tools(&self) -> Vec<ToolSpec> {
        let text = |description: &str| json!({"type": "string", "description": description});
        let path = text("A path inside the workspace, relative to it");
        let seconds = json!({
            "type": "integer", "minimum": 1, "maximum": command::MAX_SECONDS,
            "description": "How long it may take, 60 if nothing is said",
        });
        let command = text("A command for a shell, which starts in the workspace");
        [
            ("read_file", "Read a text file.", json!({"path": path}), &["path"][..]),
            ("list_dir", "List a folder; folders end with a slash.", json!({"path": path}), &[]),
            (
                "write_file",
                "Write a text file, whole. Folders are made.",
                json!({"path": path, "content": text("The whole text")}),
                &["path", "content"],
            ),
            (
                "edit_file",
                "Replace a passage of a text file by another. It must be there exactly once.",
                json!({
                    "path": path, "old_text": text("The passage as it is"),
                    "new_text": text("What stands there instead"),
                }),
                &["path", "old_text", "new_text"],
            ),
            (
                "run_command",
                "Run a command in a sandbox: only the workspace can be changed, without network.",
                json!({"command": command, "seconds": seconds}),
                &["command"],
            ),
            (
                "web_fetch",
                "Read a page of a public server.",
                json!({"url": text("https://…")}),
                &["url"],
            ),
        ]
        .map(|(name, description, properties, required)| {
            ToolSpec::new(name, description, properties, required, Origin::Host)
        })
        .into()
    }

    fn call<'a>(
        &'a self,
        name: &'a str,
        arguments: &'a Map<String, Value>,
        call_guard: CallGuard<'a>,
    ) -> BoxFuture<'a, ToolAnswer> {
        Box::pin(async move {
            let answer = self.answer(name, arguments, call_guard).await;
            answer.unwrap_or_else(|(code, message)| ToolAnswer::failed(code, message))
        })
    }

    fn asks_about_doubts(&self) -> bool {
        true
    }
}
