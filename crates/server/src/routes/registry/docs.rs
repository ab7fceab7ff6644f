//! Responses that many registry routes share, for the OpenAPI document.

use std::collections::BTreeMap;

use savoir_package::registry::wire;
use savoir_skill::version::SEMVER_PATTERN;
use serde::Serialize;
use utoipa::{
    IntoResponses, PartialSchema, ToSchema,
    openapi::{
        Components, ContentBuilder, KnownFormat, ObjectBuilder, OpenApi, Ref, RefOr, Response,
        ResponseBuilder, Schema, SchemaFormat, Type, path::ParameterIn,
    },
};

use super::{error::Problem, skills::DescribedVersion};

/// A skill, or a version of one.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "describes an answer for the OpenAPI document")]
pub(super) enum PackageOrVersion {
    Package(Box<wire::PackageDetail>),
    Version(Box<DescribedVersion>),
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
    /// A copy of the SKILL.md in the archive.
    skill: Option<String>,
    /// The namespace. Default: the default namespace, or `anon` for prose.
    namespace: Option<String>,
    /// The name of a text without a SKILL.md.
    name: Option<String>,
    /// The version, if SKILL.md has none; it must not differ from the one in SKILL.md.
    version: Option<String>,
    /// The changes in this version.
    changelog: Option<String>,
    /// The report of the publisher's scan, as JSON.
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
    NotFound "404" : "Not found."
    TooSlow "408" : "The body did not arrive in time."
    Conflict "409" : "It already exists; published versions never change."
    TooLarge "413" : "The request is too large."
    Unsupported "415" : "The content type is not supported."
    TooManyRequests "429" : "Too many requests; `Retry-After` says how long to wait."
    Unavailable "503" : "The database or the storage is unavailable."
}

/// Declares a response that is not JSON: its name, its media type, and a description.
macro_rules! texts {
    ($($name:ident $kind:literal $format:expr, $about:literal)*) => {$(
        #[doc = $about]
        #[derive(Debug)]
        pub(super) struct $name;

        impl IntoResponses for $name {
            fn responses() -> BTreeMap<String, RefOr<Response>> {
                let schema = ObjectBuilder::new().schema_type(Type::String).format($format);
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
    Lines "application/x-ndjson" None, "A line of JSON for each version."
    Archive "application/zip" Some(SchemaFormat::KnownFormat(KnownFormat::Binary)), "A zip."
    Markdown "text/markdown" None, "The text of the skill."
}

/// The patterns of path parameters.
const PATTERNS: [(&str, &str); 4] = [
    ("namespace", "^(_|[a-z0-9][a-z0-9]*(-[a-z0-9]+)*)$"),
    ("name", "^[a-z][a-z0-9]*(-[a-z0-9]+)*$"),
    ("version", SEMVER_PATTERN),
    ("sha256", "^[0-9a-f]{64}$"),
];

/// The path whose parameters are a name and a version, or a namespace and a name.
const EITHER_PATH: &str = "/api/v1/skills/{name}/{version}";

/// Adds the patterns of names, versions and digests to all paths.
pub(super) fn add_patterns(document: &mut OpenApi) {
    for (path, item) in &mut document.paths.paths {
        if path == EITHER_PATH {
            continue;
        }
        let methods = [&mut item.get, &mut item.put, &mut item.post, &mut item.delete];
        for operation in methods.into_iter().flatten() {
            let parameters = operation.parameters.iter_mut().flatten();
            for parameter in parameters.filter_map(|parameter| match parameter {
                RefOr::T(parameter) if matches!(parameter.parameter_in, ParameterIn::Path) => {
                    Some(parameter)
                }
                _ => None,
            }) {
                let pattern = PATTERNS.iter().find(|(name, _)| *name == parameter.name);
                if let (Some((_, pattern)), Some(RefOr::T(Schema::Object(schema)))) =
                    (pattern, &mut parameter.schema)
                {
                    schema.pattern = Some((*pattern).to_owned());
                }
            }
        }
    }
}
