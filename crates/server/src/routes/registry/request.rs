//! Extractors for request bodies and names of packages and versions.

use axum::{
    Json,
    extract::{FromRequest, FromRequestParts, RawPathParams, Request},
    http::{HeaderMap, HeaderValue, StatusCode, header, request::Parts},
    response::{IntoResponse as _, Response},
};
use savoir_store::registry::{Namespace, OwnerScope, PackageName};
use semver::Version;
use serde::Serialize;
use serde_json::Value;
use utoipa::openapi::{
    Object, RefOr, Required, Type,
    path::{Operation, Parameter, ParameterBuilder, ParameterIn},
};
use utoipa_axum::router::OpenApiRouter;

use super::{
    error::{RegistryApiError, RegistryResult},
    extract::{parse_package, parse_version},
};
use crate::{
    app::App,
    body::{self, Shape},
};

/// Default maximum bytes of a request body.
pub(super) const DEFAULT_MAX_BODY_BYTES: usize = 64 * 1024;

/// A JSON body that is validated as `T`, with a maximum size.
#[derive(Debug)]
pub(super) struct Body<T, const MAX_BYTES: usize = DEFAULT_MAX_BODY_BYTES>(pub(super) T);

impl<T: Shape, const MAX_BYTES: usize> FromRequest<App> for Body<T, MAX_BYTES> {
    type Rejection = RegistryApiError;

    async fn from_request(request: Request, _: &App) -> RegistryResult<Self> {
        check_json(request.headers())?;
        let bytes =
            body::bytes(request, MAX_BYTES).await.map_err(|error| match error.status() {
                status @ StatusCode::PAYLOAD_TOO_LARGE => {
                    let message = format!("the body has more than {MAX_BYTES} bytes; send less");
                    RegistryApiError::new(status, "body_too_large", message)
                }
                _ => error.into(),
            })?;
        let value: Value = serde_json::from_slice(&bytes)
            .map_err(|error| RegistryApiError::invalid(format!("the body is not JSON: {error}")))?;
        let said = |errors: Vec<body::ShapeError>| {
            errors.iter().map(body::ShapeError::sentence).collect::<Vec<_>>().join("; ")
        };
        body::read(value).map(Self).map_err(|errors| RegistryApiError::invalid(said(errors)))
    }
}

fn check_json(headers: &HeaderMap) -> RegistryResult<()> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let kind = kind.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    if kind.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    let message = "send JSON, with `Content-Type: application/json`";
    Err(RegistryApiError::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "unsupported_media_type",
        message,
    ))
}

/// A response that only the caller may see, and no shared cache may store.
pub(super) fn respond(status: StatusCode, value: &impl Serialize) -> Response {
    let mut response = (status, Json(value)).into_response();
    let private = HeaderValue::from_static("no-store");
    response.headers_mut().insert(header::CACHE_CONTROL, private);
    response
}

/// The path parameters by name. Not every path has all of them.
#[derive(Debug, Default)]
struct PathNames {
    namespace: Option<String>,
    name: Option<String>,
    version: Option<String>,
}

impl PathNames {
    async fn read(parts: &mut Parts, app: &App) -> RegistryResult<Self> {
        let wrong = |_| {
            RegistryApiError::invalid("the path is not valid UTF-8; check its percent-encoding")
        };
        let found = RawPathParams::from_request_parts(parts, app).await.map_err(wrong)?;
        let mut named = Self::default();
        for (name, value) in &found {
            match name {
                "namespace" => named.namespace = Some(value.to_owned()),
                "name" => named.name = Some(value.to_owned()),
                "version" => named.version = Some(value.to_owned()),
                _ => {}
            }
        }
        Ok(named)
    }

    fn package(&self) -> RegistryResult<PackageName> {
        parse_package(self.namespace.as_deref(), self.name.as_deref().unwrap_or_default())
    }
}

/// The version in a path.
#[derive(Debug)]
pub(super) struct VersionPath {
    pub(super) package: PackageName,
    pub(super) version: Version,
}

impl FromRequestParts<App> for VersionPath {
    type Rejection = RegistryApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> RegistryResult<Self> {
        let named = PathNames::read(parts, app).await?;
        let version = parse_version(named.version.as_deref().unwrap_or_default())?;
        Ok(Self { package: named.package()?, version })
    }
}

/// The version in a path, or all versions of a skill.
#[derive(Debug)]
pub(super) struct PackageOrVersionPath {
    pub(super) package: PackageName,
    pub(super) version: Option<Version>,
}

impl FromRequestParts<App> for PackageOrVersionPath {
    type Rejection = RegistryApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> RegistryResult<Self> {
        let named = PathNames::read(parts, app).await?;
        match &named {
            // A version begins with a digit, a name does not: `acme/tool` is a skill, `tool/1.0.0`
            // a version.
            PathNames { namespace: None, name: Some(first), version: Some(second) }
                if !second.starts_with(|c: char| c.is_ascii_digit()) =>
            {
                Ok(Self { package: parse_package(Some(first), second)?, version: None })
            }
            PathNames { version: text, .. } => Ok(Self {
                package: named.package()?,
                version: text.as_deref().map(parse_version).transpose()?,
            }),
        }
    }
}

/// An [`OwnerScope`] in a path: a namespace, a skill without a namespace, or the auditors.
#[derive(Debug)]
pub(super) struct OwnerScopePath(pub(super) OwnerScope);

impl FromRequestParts<App> for OwnerScopePath {
    type Rejection = RegistryApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> RegistryResult<Self> {
        let named = PathNames::read(parts, app).await?;
        let owner_scope = match (&named.namespace, &named.name) {
            (_, Some(_)) => named.package()?.owner_scope(),
            (Some(namespace), None) => OwnerScope::of_namespace(&Namespace::parse(namespace)?)?,
            (None, None) => OwnerScope::auditors(),
        };
        Ok(Self(owner_scope))
    }
}

/// A path prefix for routes, with the descriptions of its parameters.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoutePrefix {
    pub(super) prefix: &'static str,
    /// A suffix that makes operation ids unique.
    pub(super) suffix: &'static str,
    pub(super) parameters: &'static [(&'static str, &'static str)],
}

impl RoutePrefix {
    /// Routes for a version of a skill in the default namespace.
    pub(super) const FLAT: Self = Self {
        prefix: "/api/v1/skills/{name}/{version}",
        suffix: "",
        parameters: &[("name", "The skill"), ("version", "The version")],
    };

    /// Routes for a version of a skill in another namespace.
    pub(super) const IN_NAMESPACE: Self = Self {
        prefix: "/api/v1/skills/{namespace}/{name}/{version}",
        suffix: "_in",
        parameters: &[
            ("namespace", "The namespace"),
            ("name", "The skill"),
            ("version", "The version"),
        ],
    };

    pub(super) fn mount(self, mut routes: OpenApiRouter<App>) -> OpenApiRouter<App> {
        for path in routes.get_openapi_mut().paths.paths.values_mut() {
            let methods = [&mut path.get, &mut path.put, &mut path.post, &mut path.delete];
            methods.into_iter().flatten().for_each(|operation| self.describe(operation));
        }
        OpenApiRouter::new().nest(self.prefix, routes)
    }

    fn describe(self, operation: &mut Operation) {
        if let Some(id) = &mut operation.operation_id {
            id.push_str(self.suffix);
        }
        let own = self.parameters.iter().copied().map(|about| RefOr::T(path_parameter(about)));
        let mut parameters: Vec<RefOr<Parameter>> = own.collect();
        parameters.append(operation.parameters.get_or_insert_default());
        operation.parameters = Some(parameters);
    }
}

fn path_parameter((name, about): (&str, &str)) -> Parameter {
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Path)
        .required(Required::True)
        .description(Some(about))
        .schema(Some(Object::with_type(Type::String)))
        .build()
}
