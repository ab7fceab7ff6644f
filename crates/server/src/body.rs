//! Validates JSON bodies and reports all their errors in one response.

use std::time::Duration;

use axum::{body::Body, extract::Request};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use serde::Serialize;
use serde_json::{Map, Value, json};
use tokio::time::timeout;

use crate::{
    error::{ApiError, ApiResult},
    limits::{
        BODY_TIMEOUT_SECONDS, DRAIN_SECONDS, MAX_DRAINED_BYTES, MAX_ECHO_BYTES, MAX_JSON_BYTES,
        MAX_SHAPE_ERRORS,
    },
};

/// One validation error of a body.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct ShapeError {
    #[serde(rename = "type")]
    kind: &'static str,
    loc: Vec<Value>,
    msg: String,
    input: Value,
}

impl ShapeError {
    pub(crate) fn new(
        kind: &'static str,
        loc: Vec<Value>,
        msg: impl Into<String>,
        input: Value,
    ) -> Self {
        Self { kind, loc, msg: msg.into(), input: redact_and_shorten(input) }
    }

    /// The error as a sentence, with the name of the field.
    pub(crate) fn sentence(&self) -> String {
        let part = |part: &Value| part.as_str().map_or_else(|| part.to_string(), str::to_owned);
        let place: Vec<String> = self.loc.iter().skip(1).map(part).collect();
        if place.is_empty() {
            return format!("the body: {}", self.msg);
        }
        format!("`{}`: {}", place.join("."), self.msg)
    }
}

/// Fields whose values are not repeated in errors.
const SECRET_FIELDS: &[&str] = &["password", "current", "new", "token", "api_key"];

/// The part of a value that is repeated in an error: no secrets, and not megabytes.
fn redact_and_shorten(mut input: Value) -> Value {
    if let Value::Object(members) = &mut input {
        for key in SECRET_FIELDS {
            if let Some(secret) = members.get_mut(*key) {
                *secret = "***".into();
            }
        }
    }
    let small = match &input {
        Value::String(text) => text.len() <= MAX_ECHO_BYTES,
        Value::Array(_) | Value::Object(_) => input.to_string().len() <= MAX_ECHO_BYTES,
        _ => true,
    };
    if small { input } else { "…".into() }
}

/// A type that can be read from a JSON object.
pub(crate) trait Shape: Sized + Send {
    /// Reads the fields. Missing or wrong fields are recorded in `members`; the placeholder values
    /// in the result are never used then.
    fn read(members: &mut Members) -> Self;
}

/// The fields of an object, and the errors found so far.
#[derive(Debug)]
pub(crate) struct Members {
    all: Map<String, Value>,
    path: Vec<Value>,
    errors: Vec<ShapeError>,
}

/// Limits for a text.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Text {
    /// Minimum characters.
    pub(crate) min: usize,
    /// Maximum characters; 0 means unlimited.
    pub(crate) max: usize,
}

impl Text {
    pub(crate) const ANY: Self = Self { min: 0, max: 0 };
    pub(crate) const SOME: Self = Self { min: 1, max: 0 };

    pub(crate) const fn between(min: usize, max: usize) -> Self {
        Self { min, max }
    }
}

impl Members {
    /// Records an error that only the route can detect, at a place below the body.
    pub(crate) fn reject(&mut self, error: ShapeError) {
        // A body may have a million errors.
        if self.errors.len() < MAX_SHAPE_ERRORS {
            self.errors.push(error);
        }
    }

    /// The path of a field, for errors.
    pub(crate) fn location_of(&self, key: &str) -> Vec<Value> {
        let mut place = self.path.clone();
        place.push(key.into());
        place
    }

    /// A field without validation.
    pub(crate) fn value(&self, key: &str) -> Option<&Value> {
        self.all.get(key).filter(|value| !value.is_null())
    }

    /// A required value of any type.
    pub(crate) fn any(&mut self, key: &str) -> Value {
        let value = self.all.get(key).cloned();
        value.unwrap_or_else(|| {
            self.missing(key);
            Value::Null
        })
    }

    /// A required text.
    pub(crate) fn text(&mut self, key: &str, rule: Text) -> String {
        match self.all.get(key).cloned() {
            None => {
                self.missing(key);
                String::new()
            }
            Some(value) => self.check_text(key, value, rule),
        }
    }

    /// An optional text: missing or null is `None`.
    pub(crate) fn optional_text(&mut self, key: &str, rule: Text) -> Option<String> {
        let value = self.value(key)?.clone();
        Some(self.check_text(key, value, rule))
    }

    /// A required text that must match a pattern.
    pub(crate) fn pattern(
        &mut self,
        key: &str,
        pattern: &str,
        fits: impl Fn(&str) -> bool,
    ) -> String {
        let text = self.text(key, Text::ANY);
        if self.all.get(key).is_some_and(Value::is_string) && !fits(&text) {
            let message = format!("String should match pattern '{pattern}'");
            self.error("string_pattern_mismatch", key, message);
        }
        text
    }

    /// A required boolean.
    pub(crate) fn boolean(&mut self, key: &str) -> bool {
        match self.all.get(key) {
            None => self.missing(key),
            Some(Value::Bool(value)) => return *value,
            Some(_) => self.error("bool_type", key, "Input should be a valid boolean"),
        }
        false
    }

    /// An optional boolean; false if it is missing or null.
    pub(crate) fn optional_boolean(&mut self, key: &str) -> bool {
        self.value(key).is_some() && self.boolean(key)
    }

    /// An optional integer.
    pub(crate) fn optional_integer(&mut self, key: &str, min: i64, max: i64) -> Option<i64> {
        let value = self.value(key)?;
        match integer(value) {
            Some(number) if (min..=max).contains(&number) => return Some(number),
            Some(number) if number < min => {
                let message = format!("Input should be greater than or equal to {min}");
                self.error("greater_than_equal", key, message);
            }
            Some(_) => {
                let message = format!("Input should be less than or equal to {max}");
                self.error("less_than_equal", key, message);
            }
            None => self.error("int_type", key, "Input should be a valid integer"),
        }
        None
    }

    /// An optional list of texts.
    pub(crate) fn optional_texts(&mut self, key: &str) -> Option<Vec<String>> {
        let value = self.value(key)?.clone();
        let Value::Array(items) = value else {
            self.error("list_type", key, "Input should be a valid list");
            return None;
        };
        let mut texts = Vec::with_capacity(items.len());
        for (at, item) in items.into_iter().enumerate() {
            match item {
                Value::String(text) => texts.push(text),
                other => {
                    let mut place = self.location_of(key);
                    place.push(at.into());
                    let message = "Input should be a valid string";
                    self.reject(ShapeError::new("string_type", place, message, other));
                }
            }
        }
        Some(texts)
    }

    /// An optional map of texts.
    pub(crate) fn text_map(&mut self, key: &str) -> Map<String, Value> {
        let Some(value) = self.value(key).cloned() else { return Map::new() };
        let Value::Object(map) = value else {
            self.error("dict_type", key, "Input should be a valid dictionary");
            return Map::new();
        };
        for (name, value) in &map {
            if !value.is_string() {
                let mut place = self.location_of(key);
                place.push(name.as_str().into());
                let message = "Input should be a valid string";
                self.reject(ShapeError::new("string_type", place, message, value.clone()));
            }
        }
        map
    }

    /// An optional object with any members.
    pub(crate) fn object(&mut self, key: &str) -> Map<String, Value> {
        match self.value(key).cloned() {
            None => Map::new(),
            Some(Value::Object(map)) => map,
            Some(_) => {
                self.error("dict_type", key, "Input should be a valid dictionary");
                Map::new()
            }
        }
    }

    /// A required nested object.
    pub(crate) fn nested<T: Shape>(&mut self, key: &str) -> Option<T> {
        match self.all.get(key).cloned() {
            None => self.missing(key),
            Some(Value::Object(all)) => {
                let mut inner = Self { all, path: self.location_of(key), errors: Vec::new() };
                let value = T::read(&mut inner);
                self.errors.append(&mut inner.errors);
                return Some(value);
            }
            Some(_) => {
                let message = "Input should be a valid dictionary or object to extract fields from";
                self.error("model_attributes_type", key, message);
            }
        }
        None
    }

    fn check_text(&mut self, key: &str, value: Value, rule: Text) -> String {
        let Value::String(text) = value else {
            self.error("string_type", key, "Input should be a valid string");
            return String::new();
        };
        let count = text.chars().count();
        let plural = |number: usize| if number == 1 { "" } else { "s" };
        if count < rule.min {
            let (min, s) = (rule.min, plural(rule.min));
            let message = format!("String should have at least {min} character{s}");
            self.error("string_too_short", key, message);
        } else if rule.max > 0 && count > rule.max {
            let (max, s) = (rule.max, plural(rule.max));
            let message = format!("String should have at most {max} character{s}");
            self.error("string_too_long", key, message);
        }
        text
    }

    fn missing(&mut self, key: &str) {
        let input = Value::Object(self.all.clone());
        let place = self.location_of(key);
        self.reject(ShapeError::new("missing", place, "Field required", input));
    }

    fn error(&mut self, kind: &'static str, key: &str, message: impl Into<String>) {
        let input = self.all.get(key).cloned().unwrap_or_default();
        let place = self.location_of(key);
        self.reject(ShapeError::new(kind, place, message, input));
    }
}

/// An integer in any notation: `1.0` is 1.
pub(crate) fn integer(value: &Value) -> Option<i64> {
    let written = || {
        let number = value.as_f64().filter(|number| number.fract() == 0.0)?;
        format!("{number:.0}").parse().ok()
    };
    value.as_i64().or_else(written)
}

/// Validates a value.
pub(crate) fn read<T: Shape>(value: Value) -> Result<T, Vec<ShapeError>> {
    let Value::Object(all) = value else {
        let message = "Input should be a valid dictionary or object to extract fields from";
        let place = vec!["body".into()];
        return Err(vec![ShapeError::new("model_attributes_type", place, message, value)]);
    };
    let mut members = Members { all, path: vec!["body".into()], errors: Vec::new() };
    let body = T::read(&mut members);
    if members.errors.is_empty() { Ok(body) } else { Err(members.errors) }
}

/// Reads and validates the JSON body of a request.
pub(crate) async fn from_request<T: Shape>(request: Request) -> ApiResult<T> {
    let bytes = bytes(request, MAX_JSON_BYTES).await?;
    let value = if bytes.is_empty() {
        let place = vec!["body".into()];
        let missing = ShapeError::new("missing", place, "Field required", Value::Null);
        return Err(ApiError::shape(vec![missing]));
    } else {
        serde_json::from_slice(&bytes).map_err(|error| {
            let place = vec!["body".into(), error.column().into()];
            let invalid = ShapeError::new("json_invalid", place, "JSON decode error", json!({}));
            ApiError::shape(vec![invalid])
        })?
    };
    read(value).map_err(ApiError::shape)
}

/// The bytes of a request body, up to a limit.
pub(crate) async fn bytes(request: Request, limit: usize) -> ApiResult<Bytes> {
    let length = request.headers().get(axum::http::header::CONTENT_LENGTH);
    let length = length.and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    // A client that waits for `100 Continue` has sent no body yet, so it gets the response
    // immediately.
    let waits = request.headers().contains_key(axum::http::header::EXPECT);
    let mut body = request.into_body();
    let whole = async {
        match length {
            Some(length) if length > limit => Ok(None),
            _ => collect(&mut body, limit).await,
        }
    };
    let whole = timeout(Duration::from_secs(BODY_TIMEOUT_SECONDS), whole).await;
    match whole.map_err(|_| ApiError::too_slow())? {
        Ok(Some(bytes)) => Ok(bytes),
        Ok(None) => {
            if !waits {
                drain(body).await;
            }
            Err(ApiError::too_large(limit))
        }
        Err(_) => Err(ApiError::bad_request("The request ended before its body was complete")),
    }
}

/// The bytes of a body; `None` if there are more than the limit.
async fn collect(body: &mut Body, limit: usize) -> Result<Option<Bytes>, axum::Error> {
    let mut all = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        if all.len() + data.len() > limit {
            return Ok(None);
        }
        all.extend_from_slice(&data);
    }
    Ok(Some(all.freeze()))
}

/// Reads and drops more of a body that is too large: many clients read the response only when they
/// have sent the whole body, and get no response if the connection is closed before.
async fn drain(mut body: Body) {
    let read = async {
        let mut left = MAX_DRAINED_BYTES;
        while let Some(Ok(frame)) = body.frame().await {
            let size = frame.data_ref().map_or(0, Bytes::len);
            let Some(rest) = left.checked_sub(size) else { break };
            left = rest;
        }
    };
    // A slow client gets its response without having sent everything.
    let _ = timeout(Duration::from_secs(DRAIN_SECONDS), read).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq)]
    struct Sample {
        name: String,
        note: Option<String>,
        on: bool,
    }

    impl Shape for Sample {
        fn read(members: &mut Members) -> Self {
            Self {
                name: members.text("name", Text::between(1, 3)),
                note: members.optional_text("note", Text::ANY),
                on: members.boolean("on"),
            }
        }
    }

    #[test]
    fn every_shape_error_is_reported() {
        let errors = read::<Sample>(json!({"name": "", "note": 5})).unwrap_err();
        assert_eq!(
            serde_json::to_value(errors).unwrap(),
            json!([
                {"type": "string_too_short", "loc": ["body", "name"],
                 "msg": "String should have at least 1 character", "input": ""},
                {"type": "string_type", "loc": ["body", "note"],
                 "msg": "Input should be a valid string", "input": 5},
                {"type": "missing", "loc": ["body", "on"], "msg": "Field required",
                 "input": {"name": "", "note": 5}},
            ])
        );
        let errors = read::<Sample>(json!({"name": "a"})).unwrap_err();
        assert_eq!(errors[0].sentence(), "`on`: Field required");
        let good = read::<Sample>(json!({"name": "a", "note": null, "on": true, "x": 1}));
        assert_eq!(good, Ok(Sample { name: "a".into(), note: None, on: true }));
        assert_eq!(read::<Sample>(json!([])).unwrap_err()[0].kind, "model_attributes_type");
    }

    #[test]
    fn whole_numbers() {
        for (value, number) in [
            (json!(7), Some(7)),
            (json!(7.0), Some(7)),
            (json!(-2e3), Some(-2000)),
            (json!(7.5), None),
            (json!(1e300), None),
            (json!("7"), None),
        ] {
            assert_eq!(integer(&value), number, "{value}");
        }
    }
}
