//! Defines the fields of a skill in the search index, and fills them from a [`Document`].

use std::borrow::Cow;

use savoir_skill::permission::Tier;
use tantivy::{
    Index, IndexSettings, IndexSortByField, Order, TantivyDocument, Term,
    schema::{FAST, Field, IndexRecordOption, Schema, TextFieldIndexing, TextOptions},
    store::Compressor,
    tokenizer::RAW_TOKENIZER_NAME,
};

use super::{
    Document,
    words::{Splitter, fold, joined},
};

/// Maximum indexed bytes of a body. A skill says what it is about before that.
const MAX_BODY_BYTES: usize = 64 * 1024;
/// Maximum indexed bytes of each other text.
const MAX_TEXT_BYTES: usize = 4 * 1024;
/// Maximum indexed tags of a skill.
const MAX_TAGS: usize = 64;

/// The column that skills are sorted by.
pub(super) const WEIGHT_FIELD: &str = "weight";
/// The column with the day of the last change, as days since 1970.
pub(super) const DAY_FIELD: &str = "day";
/// The column with the key.
pub(super) const KEY_FIELD: &str = "key";

/// The value of the field `evaluated`.
pub(super) const EVALUATED: &str = "yes";

/// Weights are stored as integers: a weight of 1.0 is stored as 1000.
pub(super) const WEIGHT_SCALE: f32 = 1000.0;

/// The fields of the index.
#[derive(Clone, Debug)]
pub(super) struct Fields {
    pub(super) key: Field,
    /// Full names: as written with `=` before them, and joined into one word.
    pub(super) exact: Field,
    /// Words of the name, and the name as one word.
    pub(super) name: Field,
    /// Beginnings of the words of the name, for matches while the user is typing.
    pub(super) typed: Field,
    pub(super) tags: Field,
    pub(super) description: Field,
    /// All text, with positions. Every word of a skill is in this field, so one posting list says
    /// which skills have a word.
    pub(super) all: Field,
    pub(super) tag: Field,
    pub(super) author: Field,
    pub(super) tier: Field,
    /// `yes`, if the skill has a signed evaluation.
    pub(super) evaluated: Field,
    /// The namespace; for a skill without one, `_/` and the name.
    pub(super) owner: Field,
    weight: Field,
    day: Field,
}

fn text(splitter: &str, option: IndexRecordOption) -> TextOptions {
    let norms = option != IndexRecordOption::Basic;
    let indexing = TextFieldIndexing::default().set_tokenizer(splitter);
    TextOptions::default()
        .set_indexing_options(indexing.set_index_option(option).set_fieldnorms(norms))
}

impl Fields {
    /// Creates the schema and the fields in it.
    pub(super) fn new() -> (Self, Schema) {
        let mut schema = Schema::builder();
        let whole = text(RAW_TOKENIZER_NAME, IndexRecordOption::Basic);
        let names = text(Splitter::Words.name(), IndexRecordOption::WithFreqs);
        let prose = text(Splitter::Stems.name(), IndexRecordOption::WithFreqs);
        let phrases = text(Splitter::Stems.name(), IndexRecordOption::WithFreqsAndPositions);
        let typed = text(Splitter::Beginnings.name(), IndexRecordOption::Basic);
        let fields = Self {
            key: schema.add_text_field(KEY_FIELD, whole.clone().set_fast(RAW_TOKENIZER_NAME)),
            exact: schema.add_text_field("exact", whole.clone()),
            name: schema.add_text_field("name", names),
            typed: schema.add_text_field("typed", typed),
            tags: schema.add_text_field("tags", prose.clone()),
            description: schema.add_text_field("description", prose),
            all: schema.add_text_field("all", phrases),
            tag: schema.add_text_field("tag", whole.clone()),
            author: schema.add_text_field("author", whole.clone()),
            tier: schema.add_text_field("tier", whole.clone()),
            evaluated: schema.add_text_field("evaluated", whole.clone()),
            owner: schema.add_text_field("owner", whole),
            weight: schema.add_u64_field(WEIGHT_FIELD, FAST),
            day: schema.add_u64_field(DAY_FIELD, FAST),
        };
        (fields, schema.build())
    }

    /// The term that finds a document by its key.
    pub(super) fn key_term(&self, key: &str) -> Term {
        Term::from_field_text(self.key, key)
    }

    /// Converts a document to the form in which it is indexed.
    pub(super) fn index(&self, document: &Document) -> TantivyDocument {
        let mut kept = TantivyDocument::new();
        kept.add_text(self.key, &document.key);
        kept.add_u64(self.weight, weight(document));
        kept.add_u64(self.day, document.updated_at.max(0).unsigned_abs() / 86_400);
        kept.add_text(self.author, fold(truncate(&document.author, MAX_TEXT_BYTES)));
        kept.add_text(self.tier, document.tier.as_str());
        if document.evaluated {
            kept.add_text(self.evaluated, EVALUATED);
        }
        kept.add_text(self.owner, owner(document));
        let tags = || document.tags.iter().take(MAX_TAGS).map(|tag| truncate(tag, MAX_TEXT_BYTES));
        for tag in tags() {
            kept.add_text(self.tag, fold(tag));
        }
        self.index_names(document, &mut kept);
        if document.yanked_all {
            return kept;
        }
        self.index_words(document, tags(), &mut kept);
        kept
    }

    /// Adds the fields that find a skill by its exact name. They work for yanked skills, too.
    fn index_names(&self, document: &Document, kept: &mut TantivyDocument) {
        let name = truncate(&document.name, MAX_TEXT_BYTES);
        kept.add_text(self.exact, exact_form(name));
        kept.add_text(self.exact, joined(name));
        if let Some(namespace) = &document.namespace {
            let full = format!("{}/{name}", truncate(namespace, MAX_TEXT_BYTES));
            kept.add_text(self.exact, exact_form(&full));
            kept.add_text(self.exact, joined(&full));
        }
    }

    fn index_words<'a>(
        &self,
        document: &Document,
        tags: impl Iterator<Item = &'a str>,
        kept: &mut TantivyDocument,
    ) {
        let name = truncate(&document.name, MAX_TEXT_BYTES);
        let joined = joined(name);
        let has_parts = joined != fold(name);
        for field in [self.name, self.typed, self.all] {
            kept.add_text(field, name);
            if has_parts {
                kept.add_text(field, &joined);
            }
        }
        if let Some(namespace) = &document.namespace {
            kept.add_text(self.all, truncate(namespace, MAX_TEXT_BYTES));
        }
        for tag in tags {
            kept.add_text(self.tags, tag);
            kept.add_text(self.all, tag);
        }
        let description = truncate(&document.description, MAX_TEXT_BYTES);
        kept.add_text(self.description, description);
        kept.add_text(self.all, description);
        kept.add_text(self.all, truncate(&document.body, MAX_BODY_BYTES));
    }
}

fn owner(document: &Document) -> Cow<'_, str> {
    match &document.namespace {
        Some(namespace) => truncate(namespace, MAX_TEXT_BYTES).into(),
        None => format!("_/{}", truncate(&document.name, MAX_TEXT_BYTES)).into(),
    }
}

/// A full name in the form that the field `exact` contains.
pub(super) fn exact_form(name: &str) -> String {
    format!("={}", fold(name))
}

/// Settings of the index files. Documents are sorted by weight, so that a query that cannot look at
/// all matches looks at those with the most weight. The document store is empty: only the key can
/// be read back, from its column.
pub(super) fn settings() -> IndexSettings {
    IndexSettings {
        sort_by_field: Some(IndexSortByField {
            field: WEIGHT_FIELD.to_owned(),
            order: Order::Desc,
        }),
        docstore_compression: Compressor::None,
        docstore_compress_dedicated_thread: false,
        ..IndexSettings::default()
    }
}

/// Registers the tokenizers in an opened index.
pub(super) fn register_tokenizers(index: &Index) {
    for splitter in [Splitter::Words, Splitter::Stems, Splitter::Beginnings] {
        index.tokenizers().register(splitter.name(), splitter);
    }
}

/// The factor of the relevance: depends on the tier and on the number of digits of the download
/// count.
#[expect(clippy::cast_precision_loss, reason = "only the order of magnitude counts")]
#[expect(clippy::cast_sign_loss, reason = "no factor is negative")]
fn weight(document: &Document) -> u64 {
    if document.yanked_all {
        return 0;
    }
    let tier = match document.tier {
        Tier::Verified => 1.5,
        Tier::Community => 1.0,
        Tier::Experimental => 0.7,
    };
    let downloads = 1.0 + 0.15 * (document.downloads as f32 + 1.0).log10();
    (tier * downloads * WEIGHT_SCALE) as u64
}

/// The beginning of a text, at most `most` bytes.
fn truncate(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}
