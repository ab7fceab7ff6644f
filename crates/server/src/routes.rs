//! Registers all routes. Each resource has one file.

mod admin;
mod auth;
mod catalog;
mod catalog_preview;
mod chat;
mod docs;
mod health;
mod inspect;
mod knowledge;
mod knowledge_settings;
mod oidc;
mod personal;
mod providers;
mod publish;
mod reference;
mod registry;
mod runs;
mod server_info;
mod session;
mod sessions;
pub(crate) mod settings;
mod setup;
mod skill_tools;
mod skill_versions;
mod skills;
mod tokens;
mod usage;
mod workflows;

pub(crate) use registry::{scan_backlog, serve_fresh_cached};
pub use setup::setup_link;

use axum::{
    Router,
    extract::Request,
    http::{HeaderName, HeaderValue, Method, StatusCode, Uri, header},
    middleware,
    response::{IntoResponse as _, Response},
};
use tower_http::{
    catch_panic::CatchPanicLayer,
    cors::{AllowOrigin, CorsLayer},
};
use utoipa::openapi::{
    Info, OpenApi, OpenApiBuilder, RefOr,
    path::Operation,
    security::{HttpAuthScheme, HttpBuilder, SecurityScheme},
};
use utoipa_axum::router::OpenApiRouter;

use crate::{
    app::App,
    error::ApiError,
    middleware::{REQUEST_ID_HEADER, limit_all, observe},
    stream::RUN_HEADER,
    web,
};

/// The router of a server, with all routes and middleware.
pub fn router(app: App) -> Router {
    let (routes, _) = documented().split_for_parts();
    let routes = routes
        .merge(health::router())
        .merge(reference::router())
        .merge(web::web_app())
        .merge(crate::mcp::router())
        .merge(registry::files());
    layered(routes, app)
}

/// Adds the middleware. The layer that is added last sees a request first.
fn layered(routes: Router<App>, app: App) -> Router {
    routes
        .fallback(not_found)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(middleware::from_fn_with_state(app.clone(), limit_all))
        .layer(cors(&app))
        .layer(CatchPanicLayer::custom(panicked))
        .layer(middleware::from_fn_with_state(app.clone(), observe))
        .layer(middleware::from_fn_with_state(app.clone(), registry::serve_cached))
        .with_state(app)
}

/// The OpenAPI document of all routes.
pub fn openapi() -> OpenApi {
    let mut document = documented().split_for_parts().1;
    for path in document.paths.paths.values_mut() {
        let methods =
            [&mut path.get, &mut path.put, &mut path.post, &mut path.patch, &mut path.delete];
        methods.into_iter().flatten().for_each(complete);
    }
    document
}

/// Makes operation ids unique in the whole document, and gives every response a description.
fn complete(operation: &mut Operation) {
    let tag = operation.tags.as_ref().and_then(|tags| tags.first());
    if let (Some(tag), Some(id)) = (tag, &operation.operation_id) {
        operation.operation_id = Some(format!("{tag}_{id}"));
    }
    for answer in operation.responses.responses.values_mut() {
        if let RefOr::T(answer) = answer
            && answer.description.is_empty()
        {
            "Done.".clone_into(&mut answer.description);
        }
    }
}

fn documented() -> OpenApiRouter<App> {
    OpenApiRouter::with_openapi(document())
        .nest("/api/v1", api())
        .merge(registry::router())
        .merge(registry::at_root())
}

fn api() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .merge(auth::router())
        .merge(session::router())
        .merge(oidc::router())
        .merge(setup::router())
        .merge(tokens::router())
        .merge(admin::router())
        .merge(providers::router())
        .merge(usage::router())
        .merge(server_info::router())
        .merge(settings::router())
        .merge(publish::router())
        .merge(skills::router())
        .merge(skill_versions::router())
        .merge(skill_tools::router())
        .merge(inspect::router())
        .merge(personal::router())
        .merge(catalog::router())
        .merge(catalog_preview::router())
        .merge(chat::router())
        .merge(sessions::router())
        .merge(knowledge::router())
        .merge(knowledge_settings::router())
        .merge(workflows::router())
        .merge(runs::router())
}

fn document() -> OpenApi {
    let mut info = Info::new("Savoir", env!("CARGO_PKG_VERSION"));
    info.description =
        Some("Skills, chat, knowledge, workflows and a registry of skills over HTTP.".to_owned());
    let mut document = OpenApiBuilder::new().info(info).build();
    let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
    let components = document.components.get_or_insert_default();
    docs::describe(components);
    registry::describe(components);
    components.add_security_scheme("bearer", SecurityScheme::Http(bearer));
    document
}

async fn not_found(request: Request) -> Response {
    web::fallback(&request).unwrap_or_else(|| ApiError::not_found("Not Found").into_response())
}

async fn method_not_allowed(uri: Uri) -> Response {
    registry::method_not_allowed(&uri).unwrap_or_else(|| {
        ApiError::plain(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed").into_response()
    })
}

#[expect(clippy::needless_pass_by_value, reason = "the layer hands it over")]
fn panicked(cause: Box<dyn std::any::Any + Send + 'static>) -> Response {
    let cause = cause
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| cause.downcast_ref::<&str>().copied())
        .unwrap_or("a panic without words");
    ApiError::internal("Internal server error", &cause).into_response()
}

fn cors(app: &App) -> CorsLayer {
    let origins = app.config.cors_origins.iter();
    let origins = origins.filter_map(|origin| HeaderValue::from_str(origin).ok());
    CorsLayer::new()
        .allow_origin(AllowOrigin::list(origins))
        .allow_credentials(true)
        .allow_methods([
            Method::GET,
            Method::POST,
            Method::PUT,
            Method::PATCH,
            Method::DELETE,
            Method::OPTIONS,
        ])
        .allow_headers([
            header::AUTHORIZATION,
            header::CONTENT_TYPE,
            header::IF_MATCH,
            HeaderName::from_static("last-event-id"),
            HeaderName::from_static("x-template-name"),
        ])
        .expose_headers([
            header::ETAG,
            header::RETRY_AFTER,
            RUN_HEADER,
            REQUEST_ID_HEADER,
            HeaderName::from_static("x-ratelimit-limit"),
            HeaderName::from_static("x-ratelimit-remaining"),
            HeaderName::from_static("x-ratelimit-reset"),
        ])
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use axum::routing::get;
    use savoir_model::Models;
    use savoir_store::{Database, Storage};
    use tokio::net::TcpListener;

    use super::*;
    use crate::Config;

    async fn broken() -> &'static str {
        panic!("a secret")
    }

    #[tokio::test]
    async fn panic_becomes_error_with_request_id() {
        let folder = tempfile::tempdir().unwrap();
        let database = Database::open_folder(folder.path()).await.unwrap();
        let storage = Storage::folder(folder.path()).unwrap();
        let app = App::new(Config::default(), database, storage, Models::default()).await.unwrap();
        let routes = layered(Router::new().route("/api/broken", get(broken)), app);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/api/broken", listener.local_addr().unwrap());
        let service = routes.into_make_service_with_connect_info::<SocketAddr>();
        tokio::spawn(axum::serve(listener, service).into_future());
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let answer = client.get(url).send().await.unwrap();
        assert_eq!(answer.status(), 500);
        assert!(answer.headers().contains_key("x-request-id"));
        assert_eq!(answer.text().await.unwrap(), r#"{"detail":"Internal server error"}"#);
    }
}
