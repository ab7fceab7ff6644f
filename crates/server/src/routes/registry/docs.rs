//! Responses that many registry routes share, for the OpenAPI document.

use std::collections::BTreeMap;

use savoir_package::registry::wire;
use serde::Serialize;
use utoipa::{
    IntoResponses, PartialSchema, ToSchema,
    openapi::{Components, ContentBuilder, Object, Ref, RefOr, Response, ResponseBuilder, Type},
};

use super::error::Problem;

/// A skill, or a version of one.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "describes an answer for the OpenAPI document")]
pub(super) enum PackageOrVersion {
    Package(Box<wire::PackageDetail>),
    Version(Box<wire::VersionDetail>),
}

/// The archive alone.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RegistryZip, value_type = String, format = Binary)]
pub(super) struct Zip(Vec<u8>);

/// The form of a publish request.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct PublishForm {
    /// The archive: a zip with SKILL.md, or with one folder that has it.
    #[schema(value_type = String, format = Binary)]
    artifact: Vec<u8>,
    /// The SKILL.md of the archive, once more.
    skill: Option<String>,
    /// The namespace; none for the default one, `anon` for prose.
    namespace: Option<String>,
    /// The name of a text without a SKILL.md.
    name: Option<String>,
    /// The version, if SKILL.md has none; it must not differ from the one in SKILL.md.
    version: Option<String>,
    /// What changed.
    changelog: Option<String>,
    /// The report of a scan, as JSON.
    audit: Option<String>,
}

/// Adds the schemas of the shared responses to a document.
pub(in crate::routes) fn describe(components: &mut Components) {
    components.schemas.insert("RegistryProblem".to_owned(), Problem::schema());
    let mut more = Vec::new();
    Problem::schemas(&mut more);
    components.schemas.extend(more);
}

/// Declares an error response: its name, its status, and a description.
macro_rules! refusals {
    ($($name:ident $status:literal : $about:literal)*) => {$(
        #[doc = $about]
        #[derive(Debug)]
        pub(super) struct $name;

        impl IntoResponses for $name {
            fn responses() -> BTreeMap<String, RefOr<Response>> {
                let schema = Ref::from_schema_name("RegistryProblem");
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

refusals! {
    Invalid "400" : "The request is invalid."
    Unauthorized "401" : "Authentication is missing or invalid."
    Forbidden "403" : "The caller is not allowed to do this, or the skill was rejected."
    Missing "404" : "Not found."
    TooSlow "408" : "The body did not arrive in time."
    Conflict "409" : "It already exists; published versions never change."
    TooLarge "413" : "The request is too large."
    Unsupported "415" : "The content type is not supported."
    TooMany "429" : "Too many requests; `Retry-After` says how long to wait."
    Unavailable "503" : "The database or the storage is unavailable. Nothing was changed."
}

/// Declares a response that is not JSON: its name, its media type, and a description.
macro_rules! texts {
    ($($name:ident $kind:literal : $about:literal)*) => {$(
        #[doc = $about]
        #[derive(Debug)]
        pub(super) struct $name;

        impl IntoResponses for $name {
            fn responses() -> BTreeMap<String, RefOr<Response>> {
                let schema = Object::with_type(Type::String);
                let content = ContentBuilder::new().schema(Some(schema)).build();
                let response = ResponseBuilder::new().description($about).content($kind, content);
                let requested_range = ResponseBuilder::new().description("The requested range.").build();
                let same = ResponseBuilder::new().description("Not modified.").build();
                let none = ResponseBuilder::new().description("The range is outside of the file.").build();
                BTreeMap::from([
                    ("200".to_owned(), response.build().into()),
                    ("206".to_owned(), requested_range.into()),
                    ("304".to_owned(), same.into()),
                    ("416".to_owned(), none.into()),
                ])
            }
        }
    )*};
}

texts! {
    Lines "application/x-ndjson" : "A line of JSON for each version."
    Archive "application/zip" : "A zip."
    Markdown "text/markdown" : "The text of the skill."
}
