//! Creates skills to publish.

use std::fmt::Write as _;

use savoir_package::{File, Tree, archive};
use savoir_skill::digest::sha256_hex;
use serde_json::Value;

use super::{
    CheckFailure, TestedRegistry, fail,
    tested_registry::{TestRequest, TestResponse, short},
};

/// A word that no other skill has.
pub(super) const RARE_WORD: &str = "quetzalflugelhorn";

/// A skill that can be published.
#[derive(Clone, Debug)]
pub(super) struct TestSkill {
    /// Name with the namespace.
    pub(super) full: String,
    /// Name without the namespace.
    pub(super) last: String,
    pub(super) version: String,
    pub(super) text: String,
    pub(super) zip: Vec<u8>,
}

/// A skill that is in the registry.
#[derive(Clone, Debug)]
pub(super) struct PublishedSample {
    pub(super) name: String,
    /// Lines of its index, the highest version first.
    pub(super) lines: Vec<Value>,
}

/// The text of a SKILL.md.
pub(super) fn text(name: &str, version: &str, words: &str) -> String {
    format!(
        "---\nname: {name}\nversion: \"{version}\"\ndescription: Made to check a registry. Nobody \
         needs it.\nlicense: MIT\ntags: [conformance]\nmetadata:\n  gaia:\n    security_tier: \
         experimental\n---\n\n# {name}\n\n{words}\n"
    )
}

/// A zip with one folder.
pub(super) fn zip(name: &str, text: &str) -> Result<Vec<u8>, CheckFailure> {
    let mut tree = Tree::default();
    let bytes = text.as_bytes().to_vec();
    tree.add("SKILL.md".to_owned(), File { bytes, executable: false })
        .map_err(|error| fail(error.to_string()))?;
    archive::pack(name, &tree).map_err(|error| fail(error.to_string()))
}

impl TestedRegistry {
    /// A unique name for this run.
    pub(super) fn name(&self, what: &str) -> String {
        format!("{}{what}", self.prefix())
    }

    /// A name with the namespace.
    pub(super) fn full_name(&self, last: &str) -> String {
        match self.namespace() {
            Some(namespace) => format!("{namespace}/{last}"),
            None => last.to_owned(),
        }
    }

    /// A skill with a unique name for this run.
    pub(super) fn skill(
        &self,
        what: &str,
        version: &str,
        words: &str,
    ) -> Result<TestSkill, CheckFailure> {
        let last = self.name(what);
        let text = text(&last, version, words);
        let zip = zip(&last, &text)?;
        Ok(TestSkill { full: self.full_name(&last), last, version: version.to_owned(), text, zip })
    }

    /// A request that publishes a form with the namespace and further parts.
    pub(super) fn publish(&self, zip: &[u8], more: &[(&str, &str)]) -> TestRequest<'_> {
        let mut parts = vec![("artifact", zip)];
        parts.extend(self.namespace().map(|namespace| ("namespace", namespace.as_bytes())));
        parts.extend(more.iter().map(|(name, text)| (*name, text.as_bytes())));
        let (kind, bytes) = form(&parts);
        self.post("api/v1/skills").body(&kind, bytes)
    }

    /// A request that publishes a bare zip.
    pub(super) fn publish_bare(&self, zip: &[u8]) -> TestRequest<'_> {
        let ask = self.post("api/v1/skills").body("application/zip", zip.to_vec());
        match self.namespace() {
            Some(namespace) => ask.query("namespace", namespace),
            None => ask,
        }
    }

    /// Publishes a skill; fails if it is refused.
    pub(super) async fn put(&self, skill: &TestSkill) -> Result<TestResponse, CheckFailure> {
        self.publish(&skill.zip, &[]).with_publisher_token().send().await?.is(&[201])
    }

    /// Creates and publishes a skill; fails if it is refused.
    pub(super) async fn put_new(
        &self,
        what: &str,
        version: &str,
        words: &str,
    ) -> Result<TestSkill, CheckFailure> {
        let skill = self.skill(what, version, words)?;
        self.put(&skill).await?;
        Ok(skill)
    }

    pub(super) async fn index(&self, name: &str) -> Result<TestResponse, CheckFailure> {
        self.get(&index_path(name)).send().await
    }

    /// One line of an index.
    pub(super) async fn line(&self, name: &str, version: &str) -> Result<Value, CheckFailure> {
        let lines = self.index(name).await?.is(&[200])?.lines()?;
        let found = lines.into_iter().find(|line| line["version"] == version);
        found.ok_or_else(|| fail(format!("the index of {name} has no version {version}")))
    }

    /// Downloads the artifact of an index line.
    pub(super) async fn artifact(&self, line: &Value) -> Result<TestResponse, CheckFailure> {
        self.get(&artifact_path(line)?).send().await?.is(&[200])
    }

    /// A skill to download: a published one if publishing is allowed, else the first listed one.
    pub(super) async fn sample(&self) -> Result<&PublishedSample, CheckFailure> {
        let made = self.sample.get_or_init(|| async {
            if self.publishes() { self.own_sample().await } else { self.any_sample().await }
        });
        made.await.as_ref().map_err(Clone::clone)
    }

    async fn own_sample(&self) -> Result<PublishedSample, CheckFailure> {
        let words = format!("It has the words {RARE_WORD} and {}.", self.rare_word());
        for version in ["1.0.0", "1.1.0", "2.0.0-rc.1"] {
            self.put_new("sample", version, &words).await?;
        }
        let name = self.full_name(&self.name("sample"));
        let lines = self.index(&name).await?.is(&[200])?.lines()?;
        Ok(PublishedSample::new(name, lines))
    }

    async fn any_sample(&self) -> Result<PublishedSample, CheckFailure> {
        let name = match self.named() {
            Some(name) => name.to_string(),
            None => self.first_listed().await?,
        };
        let lines = self.index(&name).await?.is(&[200])?.lines()?;
        let sample = PublishedSample::new(name, lines);
        if sample.line().is_err() {
            return Err(CheckFailure::Skipped(format!(
                "no version of {} is available",
                sample.name
            )));
        }
        Ok(sample)
    }

    async fn first_listed(&self) -> Result<String, CheckFailure> {
        if self.is_files() {
            let why = "a mirror has no list; name one of its skills: --skill NAME";
            return Err(CheckFailure::Skipped(why.to_owned()));
        }
        let list = self.get("api/v1/skills").query("per_page", "1").send().await?;
        let list = list.is(&[200])?.value()?;
        let empty =
            || CheckFailure::Skipped("the registry is empty, and nothing is published".into());
        list["items"][0]["name"].as_str().map(str::to_owned).ok_or_else(empty)
    }

    /// A word that is unique for this run.
    pub(super) fn rare_word(&self) -> String {
        format!("zyx{}", self.run)
    }
}

impl PublishedSample {
    /// Leaves out versions that were taken down.
    fn new(name: String, mut lines: Vec<Value>) -> Self {
        lines.retain(|line| line["withdrawn"] != Value::Bool(true));
        Self { name, lines }
    }

    /// The newest line that was not yanked.
    pub(super) fn line(&self) -> Result<&Value, CheckFailure> {
        let is_live = |line: &&Value| line["yanked"] != Value::Bool(true);
        let found = self.lines.iter().rfind(is_live);
        found.ok_or_else(|| fail(format!("the index of {} has no version", self.name)))
    }
}

/// Path of the index of a name.
pub(super) fn index_path(name: &str) -> String {
    let letters = |part: &str| part.chars().take(2).collect::<String>();
    match name.split_once('/') {
        Some((namespace, last)) if letters(namespace) == letters(last) => {
            format!("index/v1/{}_/{name}", letters(last))
        }
        Some((_, last)) => format!("index/v1/{}/{name}", letters(last)),
        None => format!("index/v1/{}/{name}", letters(name)),
    }
}

/// Path of the artifact of an index line.
pub(super) fn artifact_path(line: &Value) -> Result<String, CheckFailure> {
    let (sha256, filename) = (text_of(line, "sha256")?, text_of(line, "filename")?);
    Ok(format!("artifacts/{sha256}/{filename}"))
}

/// A string field that is required.
pub(super) fn text_of<'a>(object: &'a Value, key: &str) -> Result<&'a str, CheckFailure> {
    let text = object[key].as_str().filter(|text| !text.is_empty());
    text.ok_or_else(|| {
        fail(format!("`{key}` is not a string in {}", short(&object.to_string(), 150)))
    })
}

/// A multipart form: its content type and its body.
fn form(parts: &[(&str, &[u8])]) -> (String, Vec<u8>) {
    let all: Vec<u8> = parts.iter().flat_map(|(_, bytes)| bytes.iter().copied()).collect();
    let boundary = sha256_hex(&all);
    let mut body = Vec::new();
    for (name, bytes) in parts {
        let mut head = format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"");
        if *name == "artifact" {
            // Writing to a string cannot fail.
            let _ = write!(head, "; filename=\"skill.zip\"\r\nContent-Type: application/zip");
        }
        body.extend(head.as_bytes());
        body.extend(b"\r\n\r\n");
        body.extend(*bytes);
        body.extend(b"\r\n");
    }
    body.extend(format!("--{boundary}--\r\n").as_bytes());
    (format!("multipart/form-data; boundary={boundary}"), body)
}
