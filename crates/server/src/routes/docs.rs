//! Error responses that many routes share, for the OpenAPI document.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::{
    IntoResponses, PartialSchema as _, ToSchema,
    openapi::{Components, ContentBuilder, Ref, RefOr, Response, ResponseBuilder},
};

/// An error message.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Detail {
    detail: String,
}

/// The error of a field.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct FieldDetail {
    detail: FieldProblem,
}

/// A field and what is wrong with it.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct FieldProblem {
    field: String,
    message: String,
}

/// The validation errors of a request body.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ShapeDetail {
    detail: Vec<ShapeProblem>,
}

/// One validation error.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ShapeProblem {
    #[serde(rename = "type")]
    kind: String,
    loc: Vec<serde_json::Value>,
    msg: String,
    input: serde_json::Value,
}

/// An exceeded limit.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct LimitDetail {
    error: String,
}

/// An exceeded limit of requests, or too many failed logins.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "describes an answer for the OpenAPI document")]
pub(super) enum LimitOrGuesses {
    Limit(LimitDetail),
    Guesses(Detail),
}

/// An exceeded limit of requests, or too many waiting documents.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "describes an answer for the OpenAPI document")]
pub(super) enum LimitOrWaiting {
    Limit(LimitDetail),
    Waiting(Detail),
}

/// A request body that is invalid, or has an unsupported version.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "describes an answer for the OpenAPI document")]
pub(super) enum ShapeOrVersion {
    Shape(ShapeDetail),
    Version(Detail),
}

/// One event of a stream.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct StreamEvent {
    /// The name of the event.
    event: String,
    /// The data of the event: a JSON object.
    data: String,
}

/// Adds the schemas of the shared responses to a document.
pub(super) fn describe(components: &mut Components) {
    macro_rules! describe {
        ($($schema:ty)*) => {$(
            components.schemas.insert(<$schema>::name().into_owned(), <$schema>::schema());
        )*};
    }
    describe!(Detail FieldDetail FieldProblem ShapeDetail ShapeProblem LimitDetail);
    describe!(LimitOrGuesses LimitOrWaiting ShapeOrVersion StreamEvent);
}

/// Declares a response: its name, its status, the schema of its body, and a description.
macro_rules! answers {
    ($($name:ident $status:literal $schema:ty : $about:literal)*) => {$(
        #[doc = $about]
        #[derive(Debug)]
        pub(super) struct $name;

        impl IntoResponses for $name {
            fn responses() -> BTreeMap<String, RefOr<Response>> {
                let schema = Ref::from_schema_name(<$schema>::name());
                let content = ContentBuilder::new().schema(Some(schema)).build();
                let response = ResponseBuilder::new()
                    .description($about)
                    .content("application/json", content)
                    .build();
                BTreeMap::from([($status.to_owned(), response.into())])
            }
        }
    )*};
}

answers! {
    BadRequest "400" Detail: "The request is invalid."
    BadRequestField "400" FieldDetail: "A field is invalid."
    Unauthorized "401" Detail: "Authentication is missing or invalid."
    Forbidden "403" Detail: "The caller is not allowed to do this."
    ForbiddenField "403" FieldDetail: "The caller is not allowed to do this."
    NotFound "404" Detail: "Not found, or it belongs to another user."
    NotFoundField "404" FieldDetail: "The skill does not exist, or it belongs to another user."
    Conflict "409" Detail: "Not possible in the current state."
    ConflictingField "409" FieldDetail: "A skill of this name exists, or it was changed at the same time."
    Changed "412" Detail: "It was changed since it was read."
    TooLarge "413" Detail: "The body is too large."
    InvalidBody "422" ShapeDetail: "The body is invalid."
    InvalidBodyOrVersion "422" ShapeOrVersion: "The body is invalid or has an unsupported version."
    TooManyWrongPasswords "429" LimitOrGuesses: "Too many requests, or too many wrong passwords; `Retry-After` says how long to wait."
    TooManyQueuedDocuments "429" LimitOrWaiting: "Too many requests, or too many documents in the queue; `Retry-After` says how long to wait."
    TooManyRequests "429" LimitDetail: "Too many requests; `Retry-After` says how long to wait."
}
