//! Determines the name and version of a submission.

use savoir_skill::{
    name::{is_reserved_namespace, is_reserved_skill_name, slugify},
    version::parse_version,
};
use semver::Version;

use super::{PublishOptions, Rejection, checked::CheckedManifest};
use crate::registry::{Name, NameError, is_namespace};

/// The namespace of texts without frontmatter and without a chosen namespace.
const ANONYMOUS: &str = "anon";

/// Returns the name to publish under; fails if it is not a valid registry name.
pub(super) fn name(checked: &CheckedManifest, asked: &PublishOptions) -> Result<Name, Rejection> {
    let name = requested_name(checked, asked)?;
    let needs = name.namespace().is_some_and(is_reserved_namespace)
        || is_reserved_skill_name(name.namespace(), name.last());
    if needs { Err(NameError::needed(&name).into()) } else { Ok(name) }
}

fn requested_name(checked: &CheckedManifest, asked: &PublishOptions) -> Result<Name, Rejection> {
    if let Some(namespace) = asked.namespace.as_ref().filter(|asked| !is_namespace(asked)) {
        return Err(Rejection::NoNamespace(namespace.clone()));
    }
    if checked.is_prose() {
        let namespace = asked.namespace.as_deref().ok_or(Rejection::Prose)?;
        return name_of_text(checked, namespace, asked);
    }
    if asked.namespace.as_deref() == Some(ANONYMOUS) {
        return Err(Rejection::NotProse);
    }
    let written = &checked.skill().name;
    if written.is_empty() {
        return Err(Rejection::NoName);
    }
    match (&asked.namespace, written.split_once('/')) {
        (Some(asked), Some((own, _))) if asked != own => {
            Err(Rejection::Namespace { asked: asked.clone(), written: written.clone() })
        }
        (Some(asked), None) => Ok(Name::new(Some(asked), written)?),
        _ => Ok(Name::parse(written)?),
    }
}

/// Returns the name of a text without frontmatter: the requested one, else its first heading.
fn name_of_text(
    checked: &CheckedManifest,
    namespace: &str,
    asked: &PublishOptions,
) -> Result<Name, Rejection> {
    if let Some(name) = &asked.name {
        return Ok(Name::new(Some(namespace), name)?);
    }
    let slug = checked.heading().and_then(slugify).or_else(|| checked.folder.clone());
    let name = slug.and_then(|slug| Name::new(Some(namespace), &slug).ok());
    name.ok_or(Rejection::NoName)
}

/// Returns the version of SKILL.md, or the requested one if SKILL.md has none. For texts without
/// frontmatter, the registry assigns it.
pub(super) fn version(
    checked: &CheckedManifest,
    asked: &PublishOptions,
) -> Result<Option<Version>, Rejection> {
    let asked = asked.version.as_deref().map(parse_version).transpose();
    let asked = asked.map_err(Rejection::Version)?;
    if checked.is_prose() {
        return if asked.is_some() { Err(Rejection::CountedVersion) } else { Ok(None) };
    }
    let written = checked.skill().version.as_deref().filter(|written| !written.is_empty());
    let written = written.map(parse_version).transpose().map_err(Rejection::Version)?;
    let version = match (written, asked) {
        (Some(written), Some(asked)) if written != asked => {
            return Err(Rejection::VersionDiffers { asked, written });
        }
        (Some(version), _) | (None, Some(version)) => version,
        (None, None) => return Err(Rejection::NoVersion),
    };
    if version == Version::new(0, 0, 0) {
        return Err(Rejection::VersionZero);
    }
    Ok(Some(version))
}
