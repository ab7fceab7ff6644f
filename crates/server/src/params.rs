//! Extractors for path parameters and queries.

use std::convert::Infallible;

use axum::{
    extract::{FromRequestParts, Request, path::ErrorKind, rejection::PathRejection},
    http::request::Parts,
};
use serde::de::DeserializeOwned;
use serde_json::Value;
use utoipa::IntoParams;

use crate::{
    app::App,
    auth::FromBody,
    body::ShapeError,
    error::{ApiError, ApiResult},
};

/// Path parameters, like axum's `Path`, but with errors in the formats of the API.
#[derive(Debug)]
pub(crate) struct Path<T>(pub(crate) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Path<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> ApiResult<Self> {
        match axum::extract::Path::from_request_parts(parts, state).await {
            Ok(axum::extract::Path(value)) => Ok(Self(value)),
            Err(PathRejection::FailedToDeserializePathParams(error)) => match error.kind() {
                ErrorKind::InvalidUtf8InPathParam { .. } => {
                    Err(ApiError::bad_request("The path is not valid UTF-8"))
                }
                ErrorKind::WrongNumberOfParameters { .. } | ErrorKind::UnsupportedType { .. } => {
                    Err(ApiError::internal("Internal server error", &error))
                }
                _ => Err(ApiError::not_found("Not Found")),
            },
            Err(error) => Err(ApiError::internal("Internal server error", &error)),
        }
    }
}

/// Validated query parameters. They are read where a body would be: after authentication.
#[derive(Debug)]
pub(crate) struct Query<T>(pub(crate) T);

/// A type that can be read from query parameters.
pub(crate) trait Params: Sized + Send {
    /// Reads the parameters. Missing or wrong ones are recorded in `pairs`; the placeholder values
    /// in the result are never used then.
    fn read(pairs: &mut QueryPairs) -> Self;
}

impl<T: Params> FromBody for Query<T> {
    async fn from_body(request: Request, _: &App) -> ApiResult<Self> {
        read(request.uri().query().unwrap_or_default()).map(Self).map_err(ApiError::shape)
    }
}

/// The owner of a skill, if several users have one of the same name.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct OwnerQuery {
    /// The owner of the skill, if several users have one of this name: the id of an account, or
    /// `shared` for the skill without an owner.
    #[param(required = false)]
    pub(crate) owner: Option<String>,
}

impl<S: Send + Sync> FromRequestParts<S> for OwnerQuery {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let query = parts.uri.query().unwrap_or_default();
        let mut pairs = url::form_urlencoded::parse(query.as_bytes());
        let owner = pairs.find(|(name, _)| name == "owner");
        Ok(Self { owner: owner.map(|(_, value)| value.into_owned()) })
    }
}

/// A part of a list. Without a limit, the whole list.
#[derive(Clone, Copy, Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Page {
    /// Maximum number of items.
    #[param(minimum = 1, maximum = 1000, required = false, value_type = Option<i64>)]
    limit: i64,
    /// Number of items to skip.
    #[param(minimum = 0, required = false, value_type = Option<i64>)]
    offset: i64,
}

impl Params for Page {
    fn read(pairs: &mut QueryPairs) -> Self {
        Self {
            limit: pairs.integer("limit", i64::MAX, 1, 1000),
            offset: pairs.integer("offset", 0, 0, i64::MAX),
        }
    }
}

impl Page {
    /// The part of a list.
    pub(crate) fn of<T>(self, all: &[T]) -> &[T] {
        let start = self.offset().min(all.len());
        let end = start.saturating_add(self.limit()).min(all.len());
        &all[start..end]
    }

    pub(crate) fn limit(self) -> usize {
        usize::try_from(self.limit).unwrap_or(usize::MAX)
    }

    pub(crate) fn offset(self) -> usize {
        usize::try_from(self.offset).unwrap_or(usize::MAX)
    }
}

/// The parameters of a query, and the errors found so far.
#[derive(Debug)]
pub(crate) struct QueryPairs {
    all: Vec<(String, String)>,
    errors: Vec<ShapeError>,
}

impl QueryPairs {
    /// A required text.
    pub(crate) fn text(&mut self, name: &'static str) -> String {
        if let Some(text) = self.last(name) {
            return text.to_owned();
        }
        self.reject("missing", name, "Field required", Value::Null);
        String::new()
    }

    /// An optional text.
    pub(crate) fn optional_text(&self, name: &str) -> Option<String> {
        self.last(name).map(str::to_owned)
    }

    /// An integer, or a default if it is missing.
    pub(crate) fn integer(&mut self, name: &'static str, default: i64, min: i64, max: i64) -> i64 {
        let Some(text) = self.last(name).map(str::to_owned) else { return default };
        let (kind, message) = match text.trim().parse::<i64>() {
            Ok(number) if number < min => {
                let message = format!("Input should be greater than or equal to {min}");
                ("greater_than_equal", message)
            }
            Ok(number) if number > max => {
                ("less_than_equal", format!("Input should be less than or equal to {max}"))
            }
            Ok(number) => return number,
            Err(_) => {
                let message =
                    "Input should be a valid integer, unable to parse string as an integer";
                ("int_parsing", message.to_owned())
            }
        };
        self.reject(kind, name, message, text.into());
        default
    }

    /// A number, or a default if it is missing.
    pub(crate) fn number(&mut self, name: &'static str, default: f64, min: f64, max: f64) -> f64 {
        let Some(text) = self.last(name).map(str::to_owned) else { return default };
        match text.trim().parse::<f64>() {
            Ok(number) if (min..=max).contains(&number) => return number,
            _ => {
                let message = format!("Input should be a number from {min} to {max}");
                self.reject("float_parsing", name, message, text.into());
            }
        }
        default
    }

    fn last(&self, name: &str) -> Option<&str> {
        self.all.iter().rfind(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    fn reject(&mut self, kind: &'static str, name: &str, message: impl Into<String>, input: Value) {
        let place = vec!["query".into(), name.into()];
        self.errors.push(ShapeError::new(kind, place, message, input));
    }
}

fn read<T: Params>(query: &str) -> Result<T, Vec<ShapeError>> {
    let all = url::form_urlencoded::parse(query.as_bytes()).into_owned().collect();
    let mut pairs = QueryPairs { all, errors: Vec::new() };
    let value = T::read(&mut pairs);
    if pairs.errors.is_empty() { Ok(value) } else { Err(pairs.errors) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[derive(Debug, PartialEq)]
    struct Sample(String, i64);

    impl Params for Sample {
        fn read(pairs: &mut QueryPairs) -> Self {
            Self(pairs.text("query"), pairs.integer("top_k", 5, 1, 20))
        }
    }

    #[test]
    fn queries() {
        assert_eq!(read::<Sample>("query=a%20b+c"), Ok(Sample("a b c".into(), 5)));
        assert_eq!(read::<Sample>("query=&top_k=20&x=1"), Ok(Sample(String::new(), 20)));
        let errors = |query| serde_json::to_value(read::<Sample>(query).unwrap_err()).unwrap();
        assert_eq!(
            errors("top_k=x"),
            json!([
                {"type": "missing", "loc": ["query", "query"], "msg": "Field required",
                 "input": null},
                {"type": "int_parsing", "loc": ["query", "top_k"],
                 "msg": "Input should be a valid integer, unable to parse string as an integer",
                 "input": "x"},
            ])
        );
        assert_eq!(errors("query=a&top_k=0")[0]["type"], "greater_than_equal");
        assert_eq!(errors("query=a&top_k=21")[0]["msg"], {
            "Input should be less than or equal to 20"
        });
    }
}
