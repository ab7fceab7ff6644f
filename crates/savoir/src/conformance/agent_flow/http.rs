//! Runs HTTP vectors against a server in this process with an empty folder and a silent model.

use std::{collections::BTreeMap, fmt::Display, sync::Arc};

use reqwest::{Client, Method};
use savoir_model::Models;
use savoir_server::{App, Config, serve};
use savoir_store::{Database, Storage};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;

use super::{
    super::{OperationError, OperationResult, parse_input},
    events::ScriptedModel,
};

#[derive(Deserialize)]
struct Exchange {
    #[serde(default)]
    setup: Vec<Request>,
    #[serde(default)]
    repeat_before: usize,
    request: Request,
}

#[derive(Deserialize)]
struct Request {
    method: String,
    path: String,
    json: Option<Value>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    auth: Option<bool>,
}

/// Sends several requests and returns the answer to the last one.
pub(super) fn run_http_operation(input: &Value) -> OperationResult {
    let exchange: Exchange = parse_input(input)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(bad_input)?.block_on(run_exchange(exchange))
}

async fn run_exchange(exchange: Exchange) -> OperationResult {
    let folder = tempfile::tempdir().map_err(bad_input)?;
    let database = Database::open_folder(folder.path()).await.map_err(bad_input)?;
    let storage = Storage::folder(&folder.path().join("files")).map_err(bad_input)?;
    let mut models = Models::default();
    models.add("stub", Arc::new(ScriptedModel::default()), None);
    let app = App::new(Config::default(), database, storage, models).await.map_err(bad_input)?;
    let listener = TcpListener::bind("127.0.0.1:0").await.map_err(bad_input)?;
    let url = format!("http://{}", listener.local_addr().map_err(bad_input)?);
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let serving = tokio::spawn(serve(app, listener, async {
        let _ = stopped.await;
    }));
    let answer = exchange.send_requests(url).await;
    // The answer is complete, so errors on shutdown do not matter.
    let _ = stop.send(());
    serving.abort();
    answer
}

impl Exchange {
    async fn send_requests(&self, url: String) -> OperationResult {
        let http = Client::builder().no_proxy().build().map_err(bad_input)?;
        let mut client = HttpClient { http, url, token: None };
        client.register().await?;
        for request in &self.setup {
            let answer = client.send(request).await?;
            if !answer["status"].as_u64().is_some_and(|status| (200..300).contains(&status)) {
                return Err(OperationError::BadInput(format!(
                    "a request of the setup failed: {answer}"
                )));
            }
        }
        for _ in 0..self.repeat_before {
            client.send(&self.request).await?;
        }
        client.send(&self.request).await
    }
}

/// An HTTP client that is signed in as the only user.
struct HttpClient {
    http: Client,
    url: String,
    token: Option<String>,
}

impl HttpClient {
    async fn register(&mut self) -> Result<(), OperationError> {
        let answer = self
            .send(&Request {
                method: "POST".to_owned(),
                path: "/api/v1/auth/register".to_owned(),
                json: Some(json!({"email": "user@example.org", "password": "correct horse"})),
                headers: BTreeMap::new(),
                auth: Some(false),
            })
            .await?;
        self.token = answer["json"]["token"].as_str().map(str::to_owned);
        Ok(())
    }

    async fn send(&self, request: &Request) -> OperationResult {
        let method = Method::from_bytes(request.method.as_bytes()).map_err(bad_input)?;
        let mut http_request = self.http.request(method, format!("{}{}", self.url, request.path));
        for (name, value) in &request.headers {
            http_request = http_request.header(name, value);
        }
        if let Some(body) = &request.json {
            http_request = http_request.json(body);
        }
        if let Some(token) = self.token.as_ref().filter(|_| request.auth != Some(false)) {
            http_request = http_request.bearer_auth(token);
        }
        let response = http_request.send().await.map_err(bad_input)?;
        let status = response.status().as_u16();
        let headers: Map<String, Value> = response
            .headers()
            .iter()
            .map(|(name, value)| {
                (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into())
            })
            .collect();
        let body = response.text().await.map_err(bad_input)?;
        let mut answer = json!({"status": status, "headers": headers});
        if let Ok(value) = serde_json::from_str::<Value>(&body) {
            answer["json"] = value;
        }
        answer["body"] = body.into();
        Ok(answer)
    }
}

fn bad_input(error: impl Display) -> OperationError {
    OperationError::BadInput(error.to_string())
}
