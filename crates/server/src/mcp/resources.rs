//! Offers files of skills as MCP resources, and whole skills with the skills extension of the
//! protocol: with the digest and the size of every file.

use std::sync::Arc;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use rmcp::{
    ErrorData,
    model::{
        CacheScope, JsonObject, ListResourcesResult, MetaObject, ReadResourceResult, Resource,
        ResourceContents, ResourceTemplate,
    },
};
use savoir_agent::library::{Library, LibraryError, MAX_SERVED_FILE_BYTES};
use savoir_skill::{Source, digest::sha256_hex, name::shorten_name, read};
use serde_json::{Value, json};

use super::{
    files::{MAX_SKILL_BYTES, SkillFiles, address, fits, mime_type, parse},
    session::invalid,
};

/// The name of the skills extension.
pub(super) const SKILLS_EXTENSION: &str = "io.modelcontextprotocol/skills";
/// How long a client may cache a result, in milliseconds.
pub(super) const RESULT_TTL_MS: u64 = 60_000;
/// Maximum files in a page, and skills in one.
const FILES_PER_PAGE: usize = 200;
const SKILLS_PER_PAGE: usize = 25;
/// The main file of a skill.
const SKILL_FILE: &str = "SKILL.md";

/// The skills with their files.
#[derive(Clone, Debug)]
pub(super) struct SkillResources {
    pub(super) library: Arc<dyn Library>,
    pub(super) files: Arc<dyn SkillFiles>,
}

impl SkillResources {
    /// The names of the skills, sorted.
    async fn names(&self) -> Result<Vec<String>, ErrorData> {
        let skills = self.library.skills().await.map_err(|error| failed(&error))?;
        let mut names: Vec<String> = skills.iter().map(|skill| skill.name.clone()).collect();
        names.sort_unstable();
        Ok(names)
    }

    /// A page of the files of all skills. The cursor is the address of the last file of the page
    /// before.
    pub(super) async fn page(
        &self,
        cursor: Option<&str>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let cursor = cursor.map(|cursor| parse(cursor).ok_or_else(unknown_cursor)).transpose()?;
        let names = self.names().await?;
        let from = match &cursor {
            Some((skill, _)) => position_of(&names, skill)?,
            None => 0,
        };
        let (mut resources, mut next) = (Vec::new(), None);
        'skills: for name in &names[from..] {
            // Skip skills that cannot be read.
            let files = self.files.list(name).await.unwrap_or_default();
            for (path, size) in files.iter().filter(|_| fits(&files)) {
                let seen = |(skill, last): &(String, String)| skill == name && path <= last;
                if cursor.as_ref().is_some_and(seen) {
                    continue;
                }
                if resources.len() == FILES_PER_PAGE {
                    next = resources.last().map(|last: &Resource| last.uri.clone());
                    break 'skills;
                }
                resources.push(self.resource(name, path, *size).await);
            }
        }
        let mut page = ListResourcesResult::with_all_items(resources)
            .with_ttl_ms(RESULT_TTL_MS)
            .with_cache_scope(CacheScope::Private);
        page.next_cursor = next;
        Ok(page)
    }

    /// The content of a file.
    pub(super) async fn contents(&self, uri: &str) -> Result<ReadResourceResult, ErrorData> {
        let missing =
            |why: &dyn std::fmt::Display| ErrorData::resource_not_found(why.to_string(), None);
        let Some((skill, path)) = parse(uri).filter(|(_, path)| !path.is_empty()) else {
            return Err(missing(&format!(
                "`{}` is not the URI of a skill file",
                shorten_name(uri)
            )));
        };
        let files = self.files.list(&skill).await.map_err(|error| missing(&error))?;
        if !fits(&files) {
            return Err(missing(&too_large(&skill)));
        }
        let path = self.display_path(&skill, path, &files).await;
        let most = usize::try_from(MAX_SKILL_BYTES).unwrap_or(usize::MAX);
        let bytes = self.files.bytes(&skill, &path, most).await.map_err(|error| missing(&error))?;
        let contents = match String::from_utf8(bytes) {
            Ok(text) if is_too_long(&text) => return Err(invalid(too_long(&path, &text))),
            Ok(text) => ResourceContents::text(text, uri).with_mime_type(mime_type(&path, true)),
            Err(error) => ResourceContents::blob(BASE64_STANDARD.encode(error.as_bytes()), uri)
                .with_mime_type(mime_type(&path, false)),
        };
        let contents = contents.with_meta(meta(&skill));
        Ok(ReadResourceResult::new(vec![contents]))
    }

    /// The direct children of a folder.
    pub(super) async fn children(&self, params: Option<&Value>) -> Result<Value, ErrorData> {
        let uri = text(params, "uri")?;
        let no_folder = || invalid(format!("`{}` is not a folder of a skill", shorten_name(uri)));
        let (skill, folder) = parse(uri).ok_or_else(no_folder)?;
        let files = self.files.list(&skill).await.map_err(invalid)?;
        if !fits(&files) {
            return Err(invalid(too_large(&skill)));
        }
        let requested_folder = folder.clone();
        let folder = self.display_path(&skill, folder, &files).await;
        // The returned addresses start like the requested one.
        let before = match requested_folder.split('/').next() {
            Some(own) if requested_folder != folder => format!("{own}/"),
            _ => String::new(),
        };
        let mut children: Vec<Resource> = Vec::new();
        for (path, size) in &files {
            let inside = if folder.is_empty() {
                Some(path.as_str())
            } else {
                path.strip_prefix(&folder).and_then(|rest| rest.strip_prefix('/'))
            };
            let Some(inside) = inside else { continue };
            let child = match inside.split_once('/') {
                None => {
                    let mut found = self.resource(&skill, path, *size).await;
                    found.uri = address(&skill, &format!("{before}{path}"));
                    found
                }
                Some((first, _)) => {
                    let path = format!("{requested_folder}/{first}");
                    Resource::new(address(&skill, &path), first).with_mime_type("inode/directory")
                }
            };
            if children.last().is_none_or(|last| last.uri != child.uri) {
                children.push(child);
            }
        }
        if children.is_empty() {
            return Err(no_folder());
        }
        Ok(json!({
            "resultType": "complete", "resources": children,
            "ttlMs": RESULT_TTL_MS, "cacheScope": "private",
        }))
    }

    /// A page of whole skills.
    pub(super) async fn skills(&self, params: Option<&Value>) -> Result<Value, ErrorData> {
        let cursor = params.and_then(|params| params.get("cursor"));
        let cursor = match cursor {
            None | Some(Value::Null) => None,
            Some(cursor) => Some(cursor.as_str().ok_or_else(unknown_cursor)?),
        };
        let names = self.names().await?;
        let names = page_after(&names, cursor)?;
        let mut skills = Vec::new();
        let page = names.get(..SKILLS_PER_PAGE).unwrap_or(names);
        for name in page {
            match self.describe_skill(name).await {
                Ok(skill) => skills.push(skill),
                Err(reason) => tracing::debug!(skill = %name, %reason, "a skill is not handed on"),
            }
        }
        let mut answer = json!({
            "resultType": "complete", "skills": skills, "ttlMs": RESULT_TTL_MS, "cacheScope": "private",
        });
        if page.len() < names.len() {
            answer["nextCursor"] = json!(page.last());
        }
        Ok(answer)
    }

    /// One whole skill.
    pub(super) async fn skill(&self, params: Option<&Value>) -> Result<Value, ErrorData> {
        let uri = text(params, "uri")?;
        let is_first = |path: &str| path.rsplit('/').next() == Some(SKILL_FILE);
        let of_skill = parse(uri).filter(|(_, path)| is_first(path));
        let no_skill = || invalid(format!("`{}` is no SKILL.md", shorten_name(uri)));
        let (name, _) = of_skill.ok_or_else(no_skill)?;
        let skill = self.describe_skill(&name).await.map_err(invalid)?;
        if let Some(own) = skill["uri"].as_str().filter(|own| *own != uri) {
            let shown = shorten_name(uri);
            return Err(invalid(format!("there is no skill at `{shown}`; ask for `{own}`")));
        }
        Ok(json!({
            "resultType": "complete", "skill": skill, "ttlMs": RESULT_TTL_MS, "cacheScope": "private",
        }))
    }

    /// A skill in the format of the extension; an error message if that is not possible.
    async fn describe_skill(&self, name: &str) -> Result<Value, String> {
        let files = self.files.list(name).await.map_err(|error| error.to_string())?;
        if !fits(&files) {
            return Err(too_large(name));
        }
        let frontmatter = self.frontmatter(name).await?;
        let frontmatter = frontmatter.ok_or_else(|| format!("`{name}` has no frontmatter"))?;
        // The last part of the address must be the name in the frontmatter of the skill.
        let before = match frontmatter.get("name").and_then(Value::as_str) {
            Some(own) if own == name => String::new(),
            Some(own) if is_part(own) && !has_below(&files, own) => format!("{own}/"),
            _ => return Err(format!("the skill `{name}` has a different name in its frontmatter")),
        };
        let mut resources = Vec::with_capacity(files.len());
        for (path, _) in &files {
            let bytes = self.bytes(name, path).await?;
            let uri = address(name, &format!("{before}{path}"));
            resources.push(json!({"uri": uri, "digest": digest(&bytes), "size": bytes.len()}));
        }
        let uri = address(name, &format!("{before}{SKILL_FILE}"));
        Ok(json!({"uri": uri, "frontmatter": frontmatter, "resources": resources}))
    }

    /// A file as a resource. A SKILL.md has the name and the description of its skill.
    async fn resource(&self, skill: &str, path: &str, size: u64) -> Resource {
        let frontmatter = match path {
            SKILL_FILE => self.frontmatter(skill).await.ok().flatten(),
            _ => None,
        };
        let field = |key: &str| Some(frontmatter.as_ref()?.get(key)?.as_str()?.to_owned());
        let name = field("name").unwrap_or_else(|| format!("{skill}/{path}"));
        let found = Resource::new(address(skill, path), name)
            .with_mime_type(mime_type(path, true))
            .with_size(size)
            .with_meta(meta(skill));
        match field("description") {
            Some(description) => found.with_description(description),
            None => found,
        }
    }

    async fn bytes(&self, name: &str, path: &str) -> Result<Vec<u8>, String> {
        let most = usize::try_from(MAX_SKILL_BYTES).unwrap_or(usize::MAX);
        let bytes = self.files.bytes(name, path, most).await;
        bytes.map_err(|error| error.to_string())
    }

    async fn frontmatter(&self, name: &str) -> Result<Option<JsonObject>, String> {
        Ok(fields(self.bytes(name, SKILL_FILE).await?))
    }

    /// Removes the frontmatter name from a path inside a skill: if the folder has another name, the
    /// extension uses `skill://FOLDER/NAME/SKILL.md`.
    async fn display_path(&self, skill: &str, path: String, files: &[(String, u64)]) -> String {
        let (first, rest) = path.split_once('/').unwrap_or((&path, ""));
        if first == skill || !is_part(first) || has_below(files, first) {
            return path;
        }
        let own = self.frontmatter(skill).await.ok().flatten();
        let own = own.as_ref().and_then(|fields| fields.get("name")?.as_str());
        if own == Some(first) { rest.to_owned() } else { path }
    }
}

/// Whether a name can be one part of an address without encoding.
fn is_part(name: &str) -> bool {
    let parsed = parse(&address("skill", name));
    !name.is_empty() && !name.contains('/') && parsed.is_some_and(|(_, path)| path == name)
}

/// Whether a skill has a file or a folder with this name.
fn has_below(files: &[(String, u64)], name: &str) -> bool {
    files.iter().any(|(path, _)| path.split('/').next() == Some(name))
}

/// The frontmatter of a file.
fn fields(bytes: Vec<u8>) -> Option<JsonObject> {
    let reading = read(Source::from_bytes(bytes).ok()?, None);
    let version = reading.detection.dialect.yaml();
    match reading.document.fields()?.to_value(version) {
        Value::Object(fields) => Some(fields),
        _ => None,
    }
}

fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", sha256_hex(bytes))
}

/// Marks text as that of a skill, with keys of the skills extension.
fn meta(skill: &str) -> MetaObject {
    let mut meta = JsonObject::new();
    meta.insert("io.modelcontextprotocol.skills/origin".to_owned(), json!("skill"));
    meta.insert("io.modelcontextprotocol.skills/skill".to_owned(), json!(skill));
    MetaObject(meta)
}

/// The URI template of skill files.
pub(super) fn template() -> ResourceTemplate {
    ResourceTemplate::new("skill://{name}/{+path}", "skill-file")
        .with_title("A file of a skill")
        .with_description("Names are found with search_skills, paths with use_skill.")
}

/// Whether a text is too long for a model.
fn is_too_long(text: &str) -> bool {
    text.len() as u64 > MAX_SERVED_FILE_BYTES
}

fn too_long(path: &str, text: &str) -> LibraryError {
    LibraryError::TooLarge { path: path.to_owned(), size: text.len() as u64 }
}

fn too_large(skill: &str) -> String {
    format!("the skill `{skill}` is too large; read its files with read_skill_file")
}

/// The index of a skill in sorted names. If the skill of a cursor was removed, paging fails with an
/// error instead of returning another list.
fn position_of(names: &[String], name: &str) -> Result<usize, ErrorData> {
    names.binary_search_by(|known| known.as_str().cmp(name)).map_err(|_| unknown_cursor())
}

/// The names after the one in a cursor.
pub(super) fn page_after<'a>(
    names: &'a [String],
    cursor: Option<&str>,
) -> Result<&'a [String], ErrorData> {
    match cursor {
        Some(cursor) => Ok(&names[position_of(names, cursor)? + 1..]),
        None => Ok(names),
    }
}

pub(super) fn unknown_cursor() -> ErrorData {
    invalid("the cursor is not valid for this list; start without a cursor")
}

fn text<'a>(params: Option<&'a Value>, name: &str) -> Result<&'a str, ErrorData> {
    let found = params.and_then(|params| params.get(name)?.as_str());
    found.ok_or_else(|| invalid(format!("`{name}` is missing or not a string")))
}

/// The response for an error of the library.
pub(super) fn failed(error: &LibraryError) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}
