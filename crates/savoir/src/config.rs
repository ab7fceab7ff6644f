//! Settings: `savoir.toml` of the project, the user's file, environment variables, and flags; later
//! ones take precedence.
//!
//! A project can set how its skills are checked. Storage of the server, models and their keys can
//! only be set by the user: a cloned repository must not be able to send keys elsewhere.

#[cfg_attr(not(feature = "server"), path = "config/without_server.rs")]
mod serve;

use std::{
    collections::BTreeMap,
    env, fs,
    ops::Range,
    path::{Path, PathBuf},
};

use savoir_model::{EmbeddingSettings, ProviderSettings};
use savoir_package::policy::{Policy, PolicyFile};
use savoir_skill::{
    Dialect,
    check::{self, Target},
};
use serde::{Deserialize, Serialize, de::IgnoredAny};
use serde_json::{Value, json};

pub(crate) use self::serve::ServeLayer;
#[cfg(feature = "server")]
pub(crate) use self::serve::{
    DEFAULT_ADDRESS, DEFAULT_GRACE_SECONDS, DEFAULT_KEEP_RUNS_DAYS, LogFormat, LogLevel, Quota,
    RateLimit, Readers, Registration,
};
use crate::error::CommandError;

/// Name of the settings file of a project.
pub(crate) const PROJECT_FILE: &str = "savoir.toml";

/// The policy of an organization, which applies to every user of the machine.
const ORGANIZATION_POLICY: &str = "/etc/savoir/policy.toml";

/// Environment variable with the path of another policy file.
const POLICY_VARIABLE: &str = "SAVOIR_POLICY";

#[derive(Debug, Default)]
pub(crate) struct Config {
    pub(crate) check: CheckConfig,
    /// Settings of the server, without flags.
    pub(crate) serve: ServeLayer,
    /// Settings of models in the user's file.
    pub(crate) models: ModelTables,
    policy: Policy,
    /// Dotted name, value and source of each setting.
    origins: Vec<(String, Value, String)>,
}

/// Settings of `savoir check`.
#[derive(Debug, Default)]
pub(crate) struct CheckConfig {
    pub(crate) select: Vec<String>,
    pub(crate) ignore: Vec<String>,
    pub(crate) strict: bool,
    pub(crate) target: Vec<Target>,
    pub(crate) dialect: Option<Dialect>,
}

/// The content of one settings file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct File {
    #[serde(default)]
    check: CheckFile,
    serve: Option<ServeLayer>,
    model: Option<String>,
    models: Option<BTreeMap<String, ProviderSettings>>,
    embedding: Option<EmbeddingSettings>,
    /// Which skills a project uses, and in which agents: `savoir_package::manifest` reads them.
    skills: Option<IgnoredAny>,
    agents: Option<IgnoredAny>,
    /// Registries, in the file of a project or of the user: `savoir_package::manifest` reads them.
    #[expect(dead_code, reason = "it is allowed here and read elsewhere")]
    registries: Option<IgnoredAny>,
    /// Which skills may be installed and run: `savoir_package::policy` reads it.
    #[expect(dead_code, reason = "it is allowed here and read elsewhere")]
    policy: Option<IgnoredAny>,
}

/// Settings of models in a file: `model`, the tables `[models.NAME]`, and `[embedding]`.
#[derive(Clone, Debug, Default)]
pub(crate) struct ModelTables {
    /// Default `provider:model`.
    pub(crate) default: Option<String>,
    pub(crate) providers: BTreeMap<String, ProviderSettings>,
    pub(crate) embedding: Option<EmbeddingSettings>,
}

/// Whether a file belongs to the project or to the user.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    Project,
    User,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct CheckFile {
    #[serde(skip_serializing_if = "Option::is_none")]
    select: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ignore: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    strict: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dialect: Option<String>,
}

impl CheckConfig {
    /// The options of a check without arguments.
    pub(crate) fn options(&self) -> check::Options {
        check::Options {
            dialect: self.dialect,
            select: self.select.clone(),
            ignore: self.ignore.clone(),
            targets: self.target.clone(),
            strict: self.strict,
            programs: savoir_engine::grant::search_path(),
        }
    }
}

/// Checks the text of a project's settings as [`Config::load`] does. Returns the problem, and its
/// bytes if they are known.
pub(crate) fn check_project_text(
    path: &Path,
    text: &str,
) -> Result<(), (Option<Range<usize>>, CommandError)> {
    let file: File = toml::from_str(text)
        .map_err(|error| (error.span(), CommandError::input(error.message())))?;
    let checked =
        file.require_shared(path).and_then(|()| Config::default().layer(file.check, PROJECT_FILE));
    checked.map_err(|error| (None, error))
}

impl Config {
    /// Reads every layer that applies in `start`.
    pub(crate) fn load(start: &Path) -> Result<Self, CommandError> {
        let mut config = Self::default();
        if let Some(path) = project_file(start) {
            config.file(&path, Owner::Project)?;
        }
        if let Some(path) = user_file().filter(|path| path.is_file()) {
            config.file(&path, Owner::User)?;
        }
        config.environment()?;
        config.policy = policy(project_file(start).as_deref())?;
        Ok(config)
    }

    /// Every setting with its value and source.
    pub(crate) fn effective(&self) -> Vec<(String, Value, String)> {
        let check = [
            ("check.dialect", Value::Null),
            ("check.ignore", json!([])),
            ("check.select", json!([])),
            ("check.strict", json!(false)),
            ("check.target", json!([])),
        ];
        let check = check.into_iter().map(|(name, value)| (name.to_owned(), value));
        let serve = ServeLayer::defaults().into_iter();
        let serve = serve.map(|(name, value)| (format!("serve.{name}"), value));
        let set = |name: &str| self.origins.iter().find(|(known, ..)| known == name).cloned();
        let known = check
            .chain(serve)
            .map(|(name, value)| set(&name).unwrap_or_else(|| (name, value, "default".to_owned())));
        let of_models = |name: &str| !name.starts_with("check.") && !name.starts_with("serve.");
        let models = self.origins.iter().filter(|(name, ..)| of_models(name)).cloned();
        let policy = self.policy.settings().into_iter();
        let policy =
            policy.map(|(name, value, place)| (format!("policy.{name}"), value, place.to_string()));
        known.chain(models).chain(policy).collect()
    }

    fn file(&mut self, path: &Path, owner: Owner) -> Result<(), CommandError> {
        let shown = path.display();
        let text = fs::read_to_string(path)
            .map_err(|error| CommandError::input(format!("{shown} cannot be read: {error}")))?;
        let file: File = toml::from_str(&text).map_err(|error| {
            CommandError::input(format!("{shown}: {}", error.to_string().trim_end()))
                .hint("`savoir config` shows every setting; docs/reference/configuration.md explains them")
        })?;
        match owner {
            Owner::Project => file.require_shared(path)?,
            Owner::User => file.require_personal(path)?,
        }
        let origin = shown.to_string();
        let File { check, serve, model, models, embedding, .. } = file;
        self.serve_layer(serve.unwrap_or_default(), &origin);
        let providers = models.unwrap_or_default();
        self.model_tables(ModelTables { default: model, providers, embedding }, &origin);
        self.layer(check, &origin)
    }

    /// Applies the server settings of a layer.
    fn serve_layer(&mut self, layer: ServeLayer, origin: &str) {
        if let Ok(Value::Object(set)) = serde_json::to_value(&layer) {
            for (key, value) in set {
                let value = match (key.as_str(), value) {
                    ("database" | "storage" | "public-url", Value::String(url)) => {
                        mask_password(&url).into()
                    }
                    ("oidc-client-secret", _) => "***".into(),
                    (_, value) => value,
                };
                self.note(format!("serve.{key}"), value, origin);
            }
        }
        self.serve = layer.merge_over(std::mem::take(&mut self.serve));
    }

    /// Applies the model settings of a file. It cannot contain keys, so everything can be shown.
    fn model_tables(&mut self, tables: ModelTables, origin: &str) {
        if let Some(default) = &tables.default {
            self.note("model".to_owned(), default.as_str().into(), origin);
        }
        for (name, provider) in &tables.providers {
            self.note_members(&format!("models.{name}"), provider, origin);
        }
        if let Some(embedding) = &tables.embedding {
            self.note_members("embedding", embedding, origin);
        }
        self.models = tables;
    }

    fn note_members(&mut self, table: &str, members: &impl Serialize, origin: &str) {
        if let Ok(Value::Object(members)) = serde_json::to_value(members) {
            for (key, value) in members {
                let value = value.as_str().map(|text| mask_password(text).into()).unwrap_or(value);
                self.note(format!("{table}.{key}"), value, origin);
            }
        }
    }

    fn note(&mut self, name: String, value: Value, origin: &str) {
        self.origins.retain(|(known, ..)| *known != name);
        self.origins.push((name, value, origin.to_owned()));
    }

    fn environment(&mut self) -> Result<(), CommandError> {
        for (name, value) in env::vars() {
            let Some(setting) = name.strip_prefix("SAVOIR_CHECK_") else { continue };
            let words = || Some(split_list(&value));
            let mut file = CheckFile::default();
            match setting {
                "SELECT" => file.select = words(),
                "IGNORE" => file.ignore = words(),
                "TARGET" => file.target = words(),
                "DIALECT" => file.dialect = Some(value).filter(|word| !word.is_empty()),
                "STRICT" => file.strict = Some(parse_bool(&name, &value)?),
                _ => {
                    return Err(CommandError::input(format!("there is no setting `{name}`")).hint(
                        "SAVOIR_CHECK_ is followed by SELECT, IGNORE, STRICT, TARGET or DIALECT",
                    ));
                }
            }
            self.layer(file, &name)?;
        }
        for (name, layer) in ServeLayer::environment()? {
            self.serve_layer(layer, &name);
        }
        Ok(())
    }

    fn layer(&mut self, file: CheckFile, origin: &str) -> Result<(), CommandError> {
        let wrong =
            |problem: &dyn std::fmt::Display| CommandError::input(format!("{origin}: {problem}"));
        if let Ok(Value::Object(set)) = serde_json::to_value(&file) {
            for (key, value) in set {
                self.note(format!("check.{key}"), value, origin);
            }
        }
        known_codes(origin, file.select.iter().flatten().chain(file.ignore.iter().flatten()))?;
        if let Some(select) = file.select {
            self.check.select = select;
        }
        if let Some(ignore) = file.ignore {
            self.check.ignore = ignore;
        }
        if let Some(strict) = file.strict {
            self.check.strict = strict;
        }
        if let Some(words) = file.target {
            let targets: Result<Vec<Target>, _> = words.iter().map(|word| word.parse()).collect();
            self.check.target = targets.map_err(|error| wrong(&error))?;
        }
        if let Some(word) = file.dialect {
            self.check.dialect = Some(word.parse().map_err(|error| wrong(&error))?);
        }
        Ok(())
    }
}

impl File {
    /// Rejects user settings in a project file.
    fn require_shared(&self, path: &Path) -> Result<(), CommandError> {
        let personal = [
            ("[serve]", self.serve.is_some()),
            ("model", self.model.is_some()),
            ("[models]", self.models.is_some()),
            ("[embedding]", self.embedding.is_some()),
        ];
        let Some((name, _)) = personal.into_iter().find(|(_, said)| *said) else { return Ok(()) };
        let file = path.display();
        let user = user_file().unwrap_or_default();
        Err(CommandError::input(format!(
            "{file}: `{name}` is not allowed in the settings of a project"
        ))
        .hint(format!("move it to {}", user.display())))
    }

    /// Rejects project settings in the user's file, where they would have no effect.
    fn require_personal(&self, path: &Path) -> Result<(), CommandError> {
        let shared = [("[skills]", self.skills.is_some()), ("[agents]", self.agents.is_some())];
        let Some((name, _)) = shared.into_iter().find(|(_, said)| *said) else { return Ok(()) };
        let file = path.display();
        Err(CommandError::input(format!(
            "{file}: `{name}` is not allowed in the settings of the user"
        ))
        .hint(format!("move it to the {PROJECT_FILE} of the project")))
    }
}

/// Splits a list at commas.
fn split_list(value: &str) -> Vec<String> {
    let words = value.split(',').map(str::trim).filter(|word| !word.is_empty());
    words.map(str::to_owned).collect()
}

fn parse_bool(name: &str, value: &str) -> Result<bool, CommandError> {
    match value {
        "1" | "true" | "yes" => Ok(true),
        "" | "0" | "false" | "no" => Ok(false),
        other => Err(CommandError::input(format!("{name} is `{other}`, it must be true or false"))),
    }
}

/// Rejects unknown rule codes, because a typo must not disable a check.
pub(crate) fn known_codes<'a>(
    origin: &str,
    codes: impl Iterator<Item = &'a String>,
) -> Result<(), CommandError> {
    for code in codes {
        if check::rule(code).is_none() {
            let error = CommandError::input(format!("{origin}: there is no rule `{code}`"));
            return Err(match check::nearest_rule(code) {
                Some(near) => error.hint(format!("did you mean `{near}`?")),
                None => error.hint("list all rules with: savoir rules"),
            });
        }
    }
    Ok(())
}

/// Combines the policies of the organization, the user and the project. Each can forbid more, and
/// none can allow what another one forbids.
pub(crate) fn policy(project_file: Option<&Path>) -> Result<Policy, CommandError> {
    let mut policy = Policy::default();
    policy.add_file(Path::new(ORGANIZATION_POLICY), PolicyFile::Alone)?;
    if let Some(path) = env::var_os(POLICY_VARIABLE).filter(|path| !path.is_empty()) {
        let path = PathBuf::from(path);
        // A missing file must not silently mean no policy.
        if !policy.add_file(&path, PolicyFile::Alone)? {
            let message =
                format!("{POLICY_VARIABLE} is set to {}, which does not exist", path.display());
            return Err(CommandError::input(message)
                .with_code("no_policy")
                .hint(format!("create the file, or unset {POLICY_VARIABLE}")));
        }
    }
    for path in user_file().as_deref().into_iter().chain(project_file) {
        policy.add_file(path, PolicyFile::Shared)?;
    }
    Ok(policy)
}

/// The policy for the current folder.
pub(crate) fn policy_here() -> Result<Policy, CommandError> {
    policy(env::current_dir().ok().and_then(|here| project_file(&here)).as_deref())
}

fn project_file(start: &Path) -> Option<PathBuf> {
    let start = start.canonicalize().ok()?;
    start.ancestors().map(|dir| dir.join(PROJECT_FILE)).find(|path| path.is_file())
}

fn user_file() -> Option<PathBuf> {
    Some(user_folder()?.join("config.toml"))
}

/// The path of the user's settings file, with `~` for the home folder.
pub(crate) fn shown_user_file() -> String {
    let Some(file) = user_file() else { return "~/.config/savoir/config.toml".to_owned() };
    let home = env::home_dir().filter(|home| !home.as_os_str().is_empty());
    match home.and_then(|home| file.strip_prefix(home).ok().map(Path::to_owned)) {
        Some(below) => format!("~/{}", below.display()),
        None => file.display().to_string(),
    }
}

/// The folder with the settings and keys of the user.
pub(crate) fn user_folder() -> Option<PathBuf> {
    let base = env::var_os("XDG_CONFIG_HOME").filter(|dir| !dir.is_empty()).map(PathBuf::from);
    let base = base.or_else(|| env::home_dir().map(|home| home.join(".config")))?;
    Some(base.join("savoir"))
}
/// A URL without its password.
pub(crate) fn mask_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let (main, query) = rest.split_once('?').unwrap_or((rest, ""));
    // A password may contain unencoded slashes; it ends at the last `@`.
    let main = match main.rsplit_once('@') {
        Some((user, host)) => match user.split_once(':') {
            Some((user, _)) => format!("{user}:***@{host}"),
            None => format!("{user}@{host}"),
        },
        None => main.to_owned(),
    };
    if query.is_empty() {
        return format!("{scheme}://{main}");
    }
    let hide = |pair: &str| match pair.split_once('=') {
        Some((key, _)) if key.contains("password") => format!("{key}=***"),
        _ => pair.to_owned(),
    };
    let query: Vec<String> = query.split('&').map(hide).collect();
    format!("{scheme}://{main}?{}", query.join("&"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_masked() {
        for (url, shown) in [
            ("postgres://ada:secret@db/x", "postgres://ada:***@db/x"),
            (
                "postgres://ada:a/b@c@db/x?sslmode=require",
                "postgres://ada:***@db/x?sslmode=require",
            ),
            ("postgres://ada@db/x?a=1&password=s", "postgres://ada@db/x?a=1&password=***"),
            ("sqlite:///var/lib/x.sqlite", "sqlite:///var/lib/x.sqlite"),
            ("nonsense", "nonsense"),
        ] {
            assert_eq!(mask_password(url), shown);
        }
    }
}
