//! Reads skills from sites that list them at `/.well-known/agent-skills/index.json`.

use serde::Deserialize;
use url::Url;

use super::{
    Digest, Fetcher, OfferedSkill, PinnedSource, SourceError, artifact,
    artifact::{is_page, text_skill},
    http::{LoadedFile, Reach, shown},
    summary::{description, is_name},
};
use crate::{
    File, Tree, TreeError, archive,
    limits::{MAX_FILE_BYTES, MAX_FILES, MAX_INDEX_BYTES},
    path,
};

/// The schema of version 0.2.0. Lists of version 0.1 have no schema.
const SCHEMA: &str = "https://schemas.agentskills.io/discovery/0.2.0/schema.json";

/// The folders of the list, the newer one first.
const FOLDERS: [&str; 2] = ["agent-skills", "skills"];

#[derive(Deserialize)]
struct SkillIndex {
    #[serde(rename = "$schema")]
    schema: Option<String>,
    skills: Vec<IndexEntry>,
}

/// An entry of either version, not validated.
#[derive(Deserialize)]
struct IndexEntry {
    name: String,
    #[serde(default)]
    description: String,
    #[serde(rename = "type")]
    kind: Option<String>,
    url: Option<String>,
    digest: Option<String>,
    files: Option<Vec<String>>,
}

/// How to download the files of an entry.
enum Artifact {
    Manifest(Url, Digest),
    Archive(Url, Digest),
    /// Version 0.1: one URL per file.
    Files(Vec<(String, Url)>),
}

/// A downloaded list.
struct LoadedIndex {
    index: SkillIndex,
    url: Url,
    reach: Reach,
}

/// Returns the skills that a site lists.
pub(super) async fn offers(
    fetcher: &Fetcher,
    site: &Url,
) -> Result<Vec<OfferedSkill>, SourceError> {
    let list = find(fetcher, site).await?;
    let mut offers = Vec::new();
    for entry in &list.index.skills {
        match list.artifact(entry) {
            Ok(artifact) => offers.push(list.offer(entry, &artifact)),
            Err(why) => fetcher.skipped(&entry.name, why),
        }
    }
    if offers.is_empty() {
        let why = "none of its entries can be used".to_owned();
        return Err(SourceError::Index { address: shown(&list.url), why });
    }
    Ok(offers)
}

/// Downloads the files of an entry. If the digest is known, the list must still have it.
pub(super) async fn tree(
    fetcher: &Fetcher,
    index: &Url,
    name: &str,
    digest: Option<&Digest>,
) -> Result<Tree, SourceError> {
    let list = load(fetcher, index).await?;
    let entry = list.index.skills.iter().find(|entry| entry.name == name);
    let entry = entry
        .ok_or_else(|| SourceError::NotListed { address: shown(index), name: name.to_owned() })?;
    let artifact =
        list.artifact(entry).map_err(|why| SourceError::Index { address: shown(index), why })?;
    match &artifact {
        Artifact::Manifest(url, now) | Artifact::Archive(url, now) => {
            if let Some(expected) = digest.filter(|expected| *expected != now) {
                let (expected, found) = (expected.clone(), now.clone());
                return Err(SourceError::Digest { place: shown(url), expected, found });
            }
            let bytes = fetcher.load_exactly(url, list.reach, now).await?;
            match artifact {
                Artifact::Archive(..) => unpack(&bytes, url),
                _ => manifest(bytes, url),
            }
        }
        Artifact::Files(files) => load_files(fetcher, files, list.reach).await,
    }
}

fn manifest(bytes: Vec<u8>, url: &Url) -> Result<Tree, SourceError> {
    if is_page(&bytes) { Err(SourceError::Page { place: shown(url) }) } else { text_skill(bytes) }
}

fn unpack(bytes: &[u8], url: &Url) -> Result<Tree, SourceError> {
    let skill = archive::unpack(bytes).and_then(archive::one_skill);
    let skill = skill.map_err(|error| SourceError::Archive { place: shown(url), error })?;
    Ok(skill.1)
}

async fn load_files(
    fetcher: &Fetcher,
    files: &[(String, Url)],
    reach: Reach,
) -> Result<Tree, SourceError> {
    let mut tree = Tree::default();
    for (path, url) in files {
        let LoadedFile { bytes, .. } = fetcher.load(url, reach, MAX_FILE_BYTES).await?;
        if path == "SKILL.md" && artifact::is_page(&bytes) {
            return Err(SourceError::Page { place: shown(url) });
        }
        tree.add(path.clone(), File { bytes, executable: false })?;
    }
    Ok(tree)
}

/// Finds the list of a site: below the address, or else at the root.
async fn find(fetcher: &Fetcher, site: &Url) -> Result<LoadedIndex, SourceError> {
    if site.path().ends_with("/index.json") {
        return load(fetcher, site).await;
    }
    for candidate in candidates(site) {
        match load(fetcher, &candidate).await {
            Err(SourceError::Status { status: 400..=499, .. } | SourceError::Page { .. }) => {}
            other => return other,
        }
    }
    Err(SourceError::NoIndex(shown(site)))
}

fn candidates(site: &Url) -> Vec<Url> {
    let path = site.path().split("/.well-known").next().unwrap_or_default();
    let path = path.trim_end_matches('/');
    let mut found: Vec<Url> = Vec::new();
    for folder in FOLDERS {
        for start in [path, ""] {
            let mut url = site.clone();
            url.set_query(None);
            url.set_fragment(None);
            url.set_path(&format!("{start}/.well-known/{folder}/index.json"));
            if !found.contains(&url) {
                found.push(url);
            }
        }
    }
    found
}

async fn load(fetcher: &Fetcher, url: &Url) -> Result<LoadedIndex, SourceError> {
    let loaded = fetcher.load(url, Reach::Anywhere, MAX_INDEX_BYTES).await?;
    if is_page(&loaded.bytes) {
        // Sites that return a page for every URL return one here, too, if they have no list.
        return Err(SourceError::Page { place: shown(url) });
    }
    let index = parse(&loaded.bytes, url)?;
    Ok(LoadedIndex { index, url: loaded.url, reach: loaded.reach })
}

fn parse(bytes: &[u8], url: &Url) -> Result<SkillIndex, SourceError> {
    let wrong = |error: serde_json::Error| SourceError::Index {
        address: shown(url),
        why: error.to_string(),
    };
    let value: serde_json::Value = serde_json::from_slice(bytes).map_err(wrong)?;
    // Check the schema first: entries of an unknown schema may be unreadable.
    match value.get("$schema").map(|schema| schema.as_str().unwrap_or_default()) {
        None | Some(SCHEMA) => serde_json::from_value(value).map_err(wrong),
        Some(schema) => Err(SourceError::Schema { address: shown(url), schema: schema.to_owned() }),
    }
}

impl LoadedIndex {
    fn offer(&self, entry: &IndexEntry, artifact: &Artifact) -> OfferedSkill {
        let digest = match artifact {
            Artifact::Manifest(_, digest) | Artifact::Archive(_, digest) => Some(digest.clone()),
            Artifact::Files(_) => None,
        };
        let description = description(&entry.description);
        let (index, name) = (self.url.clone(), entry.name.clone());
        let place = PinnedSource::WellKnown { index, name: name.clone(), digest };
        OfferedSkill { name, description, source: place, content: None }
    }

    fn artifact(&self, entry: &IndexEntry) -> Result<Artifact, String> {
        if !is_name(&entry.name) {
            return Err("its name is not valid for a skill".to_owned());
        }
        if self.index.schema.is_none() {
            return self.files(entry).map(Artifact::Files);
        }
        let url = entry.url.as_ref().ok_or("it has no `url`")?;
        let url = self.url.join(url).map_err(|error| format!("its `url`: {error}"))?;
        super::http::check(&url).map_err(|error| error.to_string())?;
        let digest =
            entry.digest.as_ref().ok_or("it has no `digest`, which clients must verify")?;
        let digest: Digest = digest.parse().map_err(|error| format!("{error}"))?;
        match entry.kind.as_deref() {
            Some("skill-md") => Ok(Artifact::Manifest(url, digest)),
            Some("archive") => Ok(Artifact::Archive(url, digest)),
            other => Err(format!("its type `{}` is not known", other.unwrap_or_default())),
        }
    }

    /// Returns the file URLs of an entry of version 0.1, in the folder of its name beside the list.
    fn files(&self, entry: &IndexEntry) -> Result<Vec<(String, Url)>, String> {
        let files = entry.files.as_ref().ok_or("it has no `files`")?;
        if files.len() > MAX_FILES {
            return Err(format!("it has more than {MAX_FILES} files"));
        }
        if !files.iter().any(|file| file == "SKILL.md") {
            return Err("it has no SKILL.md".to_owned());
        }
        files.iter().map(|file| Ok((file.clone(), self.file(&entry.name, file)?))).collect()
    }

    fn file(&self, name: &str, file: &str) -> Result<Url, String> {
        path::check(file)
            .map_err(|problem| TreeError::Path { path: file.to_owned(), problem }.to_string())?;
        let mut url = self.url.clone();
        let mut parts = url.path_segments_mut().map_err(|()| "its address has no path")?;
        parts.pop().push(name).extend(file.split('/'));
        drop(parts);
        Ok(url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn index_candidates_of_site() {
        let found = |site: &str| {
            let found = candidates(&Url::parse(site).unwrap());
            found.iter().map(|url| url.path().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(
            found("https://x.example/docs/?a=b"),
            [
                "/docs/.well-known/agent-skills/index.json",
                "/.well-known/agent-skills/index.json",
                "/docs/.well-known/skills/index.json",
                "/.well-known/skills/index.json",
            ]
        );
        assert_eq!(found("https://x.example").len(), 2);
        assert_eq!(found("https://x.example/.well-known/skills").len(), 2);
    }
}
