//! Runs the vectors of AMD GAIA: manifests, permissions, versions and digests.

use savoir_skill::{
    Dialect,
    dialect::gaia::ManifestShape,
    digest,
    name::{self, NameGrammar},
    permission::{self, Permission, Tier},
    version::{self, VersionRange},
    yaml::{YamlVersion, resolve::resolve_plain},
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{OperationError, OperationResult, parse_input, parse_result};

#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum DigestInput {
    Manifest { text: String },
}

pub(super) fn run_operation(op: &str, input: &Value) -> OperationResult {
    Ok(match op {
        "permission" => grant(&parse_input::<String>(input)?),
        "semver_match" => {
            let (version, range): (String, String) = parse_input(input)?;
            let version = version::parse_version(&version).ok();
            let range = VersionRange::parse(&range).ok();
            version.zip(range).is_some_and(|(version, range)| range.matches(&version)).into()
        }
        "semver_spec" => json!({"ok": VersionRange::parse(&parse_input::<String>(input)?).is_ok()}),
        "resolve" => resolve(parse_input(input)?),
        "effective_tier" => {
            let (claimed, attested): (Tier, Tier) = parse_input(input)?;
            permission::effective(claimed, attested).as_str().into()
        }
        "name" => {
            let name: String = parse_input(input)?;
            let warnings: Vec<_> =
                name::gaia_warnings(&name).into_iter().map(parse_result::vector_code).collect();
            json!({"ok": NameGrammar::Gaia.check(&name).is_ok(), "warnings": warnings})
        }
        "version" => json!({"ok": version::parse_version(&parse_input::<String>(input)?).is_ok()}),
        "parse" => parse(&parse_input::<String>(input)?)?,
        "digest" => {
            let DigestInput::Manifest { text } = parse_input(input)?;
            digest::manifest(&text).into()
        }
        "yaml11_scalar" => resolve_plain(&parse_input::<String>(input)?, YamlVersion::V1_1),
        _ => return Err(OperationError::Unsupported),
    })
}

fn grant(text: &str) -> Value {
    match Permission::parse(text) {
        Ok(grant) => json!({
            "ok": true,
            "domain": grant.domain.as_str(),
            "level": grant.level.as_str(),
            "scope": grant.scope,
        }),
        Err(error) => {
            json!({"ok": false, "error": parse_result::vector_code(error.code()), "message": error.to_string()})
        }
    }
}

fn resolve((versions, range): (Vec<String>, String)) -> Value {
    let versions: Vec<_> =
        versions.iter().filter_map(|text| version::parse_version(text).ok()).collect();
    let range = VersionRange::parse(&range).ok();
    let chosen = range.as_ref().and_then(|range| range.resolve(&versions));
    chosen.map(ToString::to_string).into()
}

fn parse(text: &str) -> OperationResult {
    let reading = parse_result::read_skill(text, Dialect::GAIA)?;
    if let Some(failure) = parse_result::first_error(&reading) {
        return Ok(failure);
    }
    let skill = &reading.skill;
    let tools: Vec<_> = skill.tools.iter().map(|tool| tool.name.as_str()).collect();
    Ok(json!({
        "ok": true,
        "shape": ManifestShape::of(&reading.document).as_str(),
        "name": skill.name,
        "version": skill.version,
        "security_tier": skill.policy.tier,
        "permissions": skill.permissions,
        "tools": tools,
        "warnings": parse_result::warning_codes(&reading),
    }))
}
