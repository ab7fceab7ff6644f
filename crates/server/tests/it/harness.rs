//! Starts test servers, and sends requests to them.

use std::{net::SocketAddr, path::PathBuf, sync::Arc};

use reqwest::{
    Method, RequestBuilder, StatusCode,
    header::{HeaderMap, HeaderName},
};
use savoir_model::{LanguageModel, Models};
use savoir_server::{App, Config, RateLimits, serve};
use savoir_store::{Database, Storage};
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection as _};
use tempfile::TempDir;
use tokio::{net::TcpListener, sync::oneshot};

use crate::model::Scripted;

/// The email address that gets the role of administrator.
pub(crate) const ADMIN: &str = "admin@example.org";

/// The password of all test accounts.
pub(crate) const PASSWORD: &str = "correct horse";

/// A server that runs until it is dropped.
#[derive(Debug)]
pub(crate) struct TestServer {
    config: Config,
    pub(crate) storage: Storage,
    models: Models,
    pub(crate) address: SocketAddr,
    pub(crate) app: App,
    pub(crate) database: Database,
    http: reqwest::Client,
    stop: oneshot::Sender<()>,
    folder: Arc<TempDir>,
    /// The URL of the database, unless it is a file in the folder.
    url: Option<String>,
}

/// Runs a test with a server on each kind of database, and deletes the data afterwards.
pub(crate) async fn for_each_server(change: impl Fn(&mut Config), test: impl AsyncFn(&TestServer)) {
    let without_limits = |config: &mut Config| {
        config.limits = RateLimits { runs: 0, routes: 0, all: 0 };
        change(config);
    };
    test(&TestServer::with(without_limits).await).await;
    let variable = "SAVOIR_TEST_POSTGRES";
    let Some(server) = std::env::var(variable).ok().filter(|value| !value.is_empty()) else {
        eprintln!("=== SKIPPED: PostgreSQL, since {variable} is not set ===");
        return;
    };
    let name = format!("test_{}", uuid::Uuid::new_v4().simple());
    execute(&server, &format!("CREATE DATABASE {name}")).await;
    let (head, _) = server.rsplit_once('/').unwrap();
    test(&TestServer::at(format!("{head}/{name}"), without_limits).await).await;
    execute(&server, &format!("DROP DATABASE {name} WITH (FORCE)")).await;
}

async fn execute(server: &str, statement: &str) {
    let mut connection = sqlx::PgConnection::connect(server).await.unwrap();
    let statement = sqlx::raw_sql(AssertSqlSafe(statement.to_owned()));
    statement.execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}

impl TestServer {
    pub(crate) async fn start() -> Self {
        Self::with(|_| {}).await
    }

    /// Starts a server with a changed configuration.
    pub(crate) async fn with(change: impl FnOnce(&mut Config)) -> Self {
        Self::with_model(Arc::new(Scripted::default()), change).await
    }

    /// Starts a server whose model is scripted.
    pub(crate) async fn with_model(
        model: Arc<dyn LanguageModel>,
        change: impl FnOnce(&mut Config),
    ) -> Self {
        let mut models = Models::default();
        models.add("stub", model, Some("stub-1".to_owned()));
        Self::with_models(models, change).await
    }

    /// Starts a server with these models.
    pub(crate) async fn with_models(models: Models, change: impl FnOnce(&mut Config)) -> Self {
        let folder = Arc::new(TempDir::new().unwrap());
        let mut config = Config { admin_email: Some(ADMIN.to_owned()), ..Config::default() };
        change(&mut config);
        let storage = Storage::folder(&folder.path().join("files")).unwrap();
        Self::on(config, storage, models, folder, None).await
    }

    /// Starts a server with another database.
    async fn at(url: String, change: impl FnOnce(&mut Config)) -> Self {
        let folder = Arc::new(TempDir::new().unwrap());
        let mut config = Config { admin_email: Some(ADMIN.to_owned()), ..Config::default() };
        change(&mut config);
        let storage = Storage::folder(&folder.path().join("files")).unwrap();
        Self::on(config, storage, Models::default(), folder, Some(url)).await
    }

    /// Starts another process on the same database and files.
    pub(crate) async fn beside(&self) -> Self {
        self.beside_with(self.models.clone()).await
    }

    /// Starts another process on the same database and files, with other models.
    pub(crate) async fn beside_with(&self, models: Models) -> Self {
        let (config, storage) = (self.config.clone(), self.storage.clone());
        Self::on(config, storage, models, self.folder.clone(), self.url.clone()).await
    }

    async fn on(
        config: Config,
        storage: Storage,
        models: Models,
        folder: Arc<TempDir>,
        url: Option<String>,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let config = Config { public_url: format!("http://{address}"), ..config };
        let database = match &url {
            None => Database::open_folder(folder.path()).await.unwrap(),
            Some(url) => Database::open(url).await.unwrap(),
        };
        let app = App::new(config.clone(), database.clone(), storage.clone(), models.clone());
        let app = app.await.unwrap();
        let (stop, stopped) = oneshot::channel();
        tokio::spawn(serve(app.clone(), listener, async move {
            let _ = stopped.await;
        }));
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        Self { config, storage, models, address, app, database, http, stop, folder, url }
    }

    /// Changes the database without the server's knowledge.
    pub(crate) async fn behind_its_back(&self, statement: &'static str) {
        if let Some(url) = &self.url {
            return execute(url, statement).await;
        }
        let url = format!("sqlite://{}", self.folder.path().join("savoir.sqlite").display());
        let mut connection = sqlx::SqliteConnection::connect(&url).await.unwrap();
        sqlx::raw_sql(statement).execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
    }

    /// Asks the server to stop.
    pub(crate) fn stop(self) {
        let _ = self.stop.send(());
    }

    /// The folder with the stored files of the server.
    pub(crate) fn files(&self) -> PathBuf {
        self.folder.path().join("files")
    }

    /// The path of a skill's SKILL.md.
    pub(crate) fn skill_file(&self, name: &str) -> PathBuf {
        self.skills_folder().join(name).join("SKILL.md")
    }

    /// The folder with all skills.
    pub(crate) fn skills_folder(&self) -> PathBuf {
        self.folder.path().join("files/skills")
    }

    /// Writes a skill's SKILL.md by hand.
    pub(crate) fn write_skill(&self, name: &str, text: &str) {
        let path = self.skill_file(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// A client without a token.
    pub(crate) fn stranger(&self) -> Client {
        self.client("")
    }

    /// A client with a token.
    pub(crate) fn client(&self, token: &str) -> Client {
        let url = format!("http://{}", self.address);
        let token = token.to_owned();
        Client { http: self.http.clone(), url, token, user: Value::Null, headers: HeaderMap::new() }
    }

    /// A client with a new account.
    pub(crate) async fn register(&self, email: &str) -> Client {
        let body = json!({"email": email, "password": PASSWORD});
        let reply = self.stranger().post("/api/v1/auth/register", &body).await;
        assert_eq!(reply.status, 200, "{}", reply.text);
        let body = reply.json();
        let mut client = self.client(body["token"].as_str().unwrap());
        client.user = body["user"].clone();
        client
    }

    pub(crate) async fn login(&self, email: &str, password: &str) -> Reply {
        let body = json!({"email": email, "password": password});
        self.stranger().post("/api/v1/auth/login", &body).await
    }
}

/// An HTTP client with the token or cookie of one user.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    http: reqwest::Client,
    pub(crate) url: String,
    pub(crate) token: String,
    /// The account, as returned by the registration.
    pub(crate) user: Value,
    headers: HeaderMap,
}

impl Client {
    /// A copy that sends an additional header.
    pub(crate) fn header(&self, name: &'static str, value: &str) -> Self {
        let mut client = self.clone();
        client.headers.insert(HeaderName::from_static(name), value.parse().unwrap());
        client
    }

    /// The cookie that the client sends.
    pub(crate) fn cookie(&self) -> &str {
        self.headers["cookie"].to_str().unwrap()
    }

    pub(crate) fn id(&self) -> i64 {
        self.user["id"].as_i64().unwrap()
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.url));
        let request = request.headers(self.headers.clone());
        if self.token.is_empty() { request } else { request.bearer_auth(&self.token) }
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        Reply::of(self.request(Method::GET, path)).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Reply {
        Reply::of(self.request(Method::POST, path).json(body)).await
    }

    /// Sends a POST request without a body.
    pub(crate) async fn call(&self, path: &str) -> Reply {
        Reply::of(self.request(Method::POST, path)).await
    }

    pub(crate) async fn put(&self, path: &str, body: &Value) -> Reply {
        Reply::of(self.request(Method::PUT, path).json(body)).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Reply {
        Reply::of(self.request(Method::DELETE, path)).await
    }

    /// Posts a form.
    pub(crate) async fn form(&self, path: &str, body: String) -> Reply {
        let request = self.request(Method::POST, path);
        let kind = ("content-type", "application/x-www-form-urlencoded");
        Reply::of(request.header(kind.0, kind.1).body(body)).await
    }
}

/// A response.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Reply {
    pub(crate) async fn of(request: RequestBuilder) -> Self {
        let response = request.send().await.unwrap();
        let (status, headers) = (response.status(), response.headers().clone());
        Self { status, headers, text: response.text().await.unwrap() }
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("no JSON: {}", self.text))
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// Checks that the response is exactly this, including the order of keys.
    #[track_caller]
    pub(crate) fn is(&self, status: u16, body: &Value) {
        assert_eq!((self.status.as_u16(), self.text.as_str()), (status, body.to_string().as_str()));
        assert_eq!(self.header("content-type"), "application/json");
    }

    /// Checks that the response is an error with only a `detail`.
    #[track_caller]
    pub(crate) fn refuses(&self, status: u16, detail: &str) {
        self.is(status, &json!({"detail": detail}));
        if status == 401 {
            assert_eq!(self.header("www-authenticate"), "Bearer");
        }
    }

    /// Checks that the response is an error about a field.
    #[track_caller]
    pub(crate) fn blames(&self, status: u16, field: &str, message: &str) {
        self.is(status, &json!({"detail": {"field": field, "message": message}}));
    }

    /// Checks that the response is a stream of exactly these events, byte for byte.
    #[track_caller]
    pub(crate) fn streams(&self, events: &[(&str, &str)]) {
        assert_eq!(self.status, 200, "{}", self.text);
        for (name, value) in [
            ("content-type", "text/event-stream; charset=utf-8"),
            ("cache-control", "no-cache"),
            ("connection", "keep-alive"),
            ("x-accel-buffering", "no"),
        ] {
            assert_eq!(self.header(name), value, "{name}");
        }
        let frame = |(name, data): &(&str, &str)| format!("event: {name}\ndata: {data}\n\n");
        let expected: String = events.iter().map(frame).collect();
        assert_eq!(self.text, expected);
    }

    /// Checks that the response has exactly this validation error.
    #[track_caller]
    pub(crate) fn differs(&self, kind: &str, place: &Value, message: &str, input: &Value) {
        self.is(
            422,
            &json!({"detail": [
                {"type": kind, "loc": place, "msg": message, "input": input}
            ]}),
        );
    }
}
