//! Tests settings from files and from the environment.

use std::{collections::BTreeMap, fs, path::Path, time::Duration};

use savoir_model::{
    EmbeddingSettings, ModelError, Models, ProviderKind, ProviderSettings, Secret, Settings,
};

fn environment(variables: &[(&str, &str)]) -> impl Fn(&str) -> Option<String> {
    let variables: BTreeMap<_, _> =
        variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    move |name| variables.get(name).cloned()
}

fn from(variables: &[(&str, &str)]) -> Settings {
    Settings::from_environment(environment(variables)).unwrap()
}

fn file(text: &str) -> Settings {
    let tables: BTreeMap<String, ProviderSettings> = toml::from_str(text).unwrap();
    Settings::from_tables(tables, None, None)
}

fn refused(settings: &Settings) -> String {
    Models::from_settings(settings).unwrap_err().to_string()
}

/// The name, URL, key and model of each provider.
fn summary(settings: &Settings) -> Vec<String> {
    let parts = settings.providers.iter().map(|provider| {
        let url = provider.base_url.as_deref().unwrap_or("-");
        let key = provider.key.as_ref().map_or("-", Secret::reveal);
        let model = provider.model.as_deref().unwrap_or("-");
        format!("{} {url} {key} {model}", provider.name)
    });
    parts.collect()
}

#[test]
fn an_empty_environment_configures_nothing() {
    for variables in
        [&[][..], &[("OPENAI_API_KEY", " "), ("OLLAMA_HOST", "")], &[("OPENAI_MODEL", "m")]]
    {
        let settings = from(variables);
        assert!(settings.providers.is_empty());
        assert!(Models::from_settings(&settings).unwrap().is_empty());
    }
}

#[test]
fn variables_configure_providers() {
    for (variables, expected) in [
        (&[("OPENAI_API_KEY", "k\n")][..], &["openai - k -"][..]),
        (&[("OPENAI_BASE_URL", "http://h/v1")], &["openai http://h/v1 - -"]),
        (
            &[("OPENAI_API_KEY", "k"), ("OPENAI_BASE_URL", "http://h"), ("OPENAI_MODEL", "m")],
            &["openai http://h k m"],
        ),
        (&[("ANTHROPIC_API_KEY", "k"), ("ANTHROPIC_MODEL", "m")], &["anthropic - k m"]),
        (&[("ANTHROPIC_BASE_URL", "http://h")], &["anthropic http://h - -"]),
        (
            &[("OLLAMA_HOST", "h"), ("OLLAMA_MODEL", "m:8b"), ("ANTHROPIC_API_KEY", "k")],
            &["anthropic - k -", "ollama http://h:11434/ - m:8b"],
        ),
    ] {
        let settings = from(variables);
        assert_eq!(summary(&settings), expected);
        assert!(!Models::from_settings(&settings).unwrap().is_empty());
    }
}

#[test]
fn hosts_of_ollama_are_taken_as_people_write_them() {
    for (host, expected) in [
        ("localhost", "http://localhost:11434/"),
        ("localhost:8080", "http://localhost:8080/"),
        ("localhost:80", "http://localhost/"),
        (":8080", "http://127.0.0.1:8080/"),
        ("0.0.0.0", "http://127.0.0.1:11434/"),
        ("0.0.0.0:8080", "http://127.0.0.1:8080/"),
        ("http://0.0.0.0:8080", "http://127.0.0.1:8080/"),
        ("http://h", "http://h/"),
        ("https://h/below/", "https://h/below"),
        ("::1", "http://[::1]:11434/"),
        ("[::]:8080", "http://[::1]:8080/"),
    ] {
        let settings = from(&[("OLLAMA_HOST", host)]);
        assert_eq!(settings.providers[0].base_url.as_deref(), Some(expected), "{host}");
    }
    for host in ["ftp://h", "a b", "h:99999"] {
        let error = Settings::from_environment(environment(&[("OLLAMA_HOST", host)])).unwrap_err();
        assert!(error.to_string().contains("OLLAMA_HOST"), "{error}");
    }
}

#[test]
fn invalid_addresses_are_rejected_with_the_setting_name() {
    let error = refused(&from(&[("OPENAI_BASE_URL", "localhost:8080")]));
    assert!(error.starts_with("OPENAI_BASE_URL is not a valid URL"), "{error}");
    let error = refused(&file("[a]\nkind = 'anthropic'\nbase-url = 'x'"));
    assert!(error.starts_with("`base-url` of [models.a] is not a valid URL"), "{error}");
}

#[test]
fn the_default_names_provider_and_model() {
    let settings = from(&[("OPENAI_API_KEY", "k"), ("SAVOIR_MODEL", "openai:m")]);
    assert_eq!(settings.default.as_deref(), Some("openai:m"));
    let settings = from(&[("OPENAI_API_KEY", "k"), ("SAVOIR_MODEL", "ollama:m")]);
    let error = Models::from_settings(&settings).unwrap_err();
    assert!(matches!(&error, ModelError::UnknownProvider { name, .. } if name == "ollama"));
    assert!(error.help().unwrap().contains("OLLAMA_HOST"));
}

#[test]
fn embeddings_are_a_folder_or_a_model() {
    let settings = from(&[("OPENAI_API_KEY", "k"), ("SAVOIR_EMBEDDING_MODEL", "openai:e:1")]);
    let expected =
        EmbeddingSettings::Provider { provider: "openai".to_owned(), model: "e:1".to_owned() };
    assert_eq!(settings.embedding, Some(expected));
    assert_eq!(
        Models::from_settings(&settings).unwrap().embedder().unwrap().identity(),
        "openai:e:1"
    );
    let settings = from(&[("SAVOIR_EMBEDDING_MODEL", "C:\\models")]);
    assert_eq!(settings.embedding, Some(EmbeddingSettings::Folder("C:\\models".into())));
    let error = Settings::from_environment(environment(&[("SAVOIR_EMBEDDING_MODEL", "openai:e")]));
    assert!(error.unwrap_err().to_string().contains("openai, which is not configured"));
    let settings = from(&[("ANTHROPIC_API_KEY", "k"), ("SAVOIR_EMBEDDING_MODEL", "anthropic:e")]);
    assert!(refused(&settings).contains("has no embeddings"));
}

#[test]
fn embedding_settings_exclude_each_other() {
    let read = |text: &str| toml::from_str::<EmbeddingSettings>(text);
    assert!(matches!(read("folder = '/x'"), Ok(EmbeddingSettings::Folder(_))));
    let written = "provider = 'p'\nmodel = 'm'";
    let settings = read(written).unwrap();
    assert_eq!(read(&toml::to_string(&settings).unwrap()).unwrap(), settings);
    for wrong in ["", "folder = '/x'\nmodel = 'm'", "provider = 'p'", "path = '/x'"] {
        assert!(read(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn files_are_read_strictly() {
    let settings = file(
        "[local]\nkind = 'openai'\nbase-url = 'http://h'\nmodel = 'm'\n\
         first-byte-timeout = 2.5\nidle-timeout = 7",
    );
    let provider = &settings.providers[0];
    assert_eq!((provider.name.as_str(), provider.kind), ("local", ProviderKind::OpenAi));
    assert_eq!(provider.first_byte_timeout, Some(Duration::from_millis(2500)));
    assert_eq!(provider.idle_timeout, Some(Duration::from_secs(7)));
    for wrong in [
        "kind = 'x'",
        "model = 'm'",
        "kind = 'openai'\nkey = 'k'",
        "kind = 'openai'\nidle-timeout = 0",
    ] {
        assert!(toml::from_str::<ProviderSettings>(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn environment_overrides_files() {
    let settings =
        file("[openai]\nkind = 'openai'\nbase-url = 'http://file'\nmodel = 'm'\nidle-timeout = 7")
            .with_environment(environment(&[("OPENAI_API_KEY", "k")]))
            .unwrap();
    // A key from the environment is not sent to a URL from a file.
    assert_eq!(summary(&settings), ["openai - k m"]);
    assert_eq!(settings.providers[0].idle_timeout, Some(Duration::from_secs(7)));
    let settings = file("[openai]\nkind = 'openai'\nbase-url = 'http://file'\nmodel = 'm'")
        .with_environment(environment(&[("OPENAI_MODEL", "n"), ("OLLAMA_HOST", "h")]))
        .unwrap();
    assert_eq!(summary(&settings), ["openai http://file - n", "ollama http://h:11434/ - -"]);
}

#[test]
fn keys_come_from_variables_that_files_name() {
    let text = "[a]\nkind = 'anthropic'\nkey-env = 'MY_KEY'";
    let settings = file(text).with_environment(environment(&[("MY_KEY", "k")])).unwrap();
    assert_eq!(summary(&settings), ["a - k -"]);
    let error = file(text).with_environment(environment(&[])).unwrap_err().to_string();
    assert!(error.contains("MY_KEY") && error.contains("[models.a]"), "{error}");
    assert!(refused(&file("[a]\nkind = 'openai'")).contains("needs an API key"));
    let both = file("[a]\nkind = 'openai'\nkey-env = 'X'\nkey-file = '/x'");
    assert!(refused(&both).contains("both"));
}

fn with_key_file(path: &Path) -> Settings {
    let mut provider = ProviderSettings::new("a", ProviderKind::OpenAi);
    provider.key_file = Some(path.to_owned());
    Settings { providers: vec![provider], ..Settings::default() }
}

#[cfg(unix)]
#[test]
fn key_files_belong_to_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt as _;

    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("key");
    fs::write(&path, " k \n").unwrap();
    let set = |mode| fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    for mode in [0o644, 0o640, 0o604, 0o620] {
        set(mode);
        let error = refused(&with_key_file(&path));
        assert!(error.contains(&format!("{mode:o}")), "{error}");
        assert!(error.ends_with(&format!("chmod 600 {}", path.display())), "{error}");
    }
    for mode in [0o600, 0o400] {
        set(mode);
        Models::from_settings(&with_key_file(&path)).unwrap();
    }
    set(0o600);
    fs::write(&path, "\n").unwrap();
    assert!(refused(&with_key_file(&path)).contains("empty"));
    fs::write(&path, "k".repeat(20_000)).unwrap();
    assert!(refused(&with_key_file(&path)).contains("too long"));
    fs::write(&path, "two\nlines").unwrap();
    let error = refused(&with_key_file(&path));
    assert!(error.contains("line breaks") && !error.contains("lines\n"), "{error}");
    assert!(refused(&with_key_file(&dir.path().join("none"))).contains("cannot be read from"));
}

#[test]
fn keys_are_never_printed() {
    let settings = from(&[("OPENAI_API_KEY", "sk-secret")]);
    let models = Models::from_settings(&settings).unwrap();
    let shown = format!("{settings:?} {models:?}");
    assert!(shown.contains("***") && !shown.contains("sk-secret"), "{shown}");
    assert!(!toml::to_string(&settings.providers[0]).unwrap().contains("sk-secret"));
}

#[test]
fn invalid_provider_names_are_rejected() {
    for name in ["", "a:b", "a b"] {
        let provider = ProviderSettings::new(name, ProviderKind::Ollama);
        let settings = Settings { providers: vec![provider], ..Settings::default() };
        assert!(refused(&settings).contains("name of a provider"));
    }
}
