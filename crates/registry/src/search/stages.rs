//! Builds index queries, from the strictest match to the loosest.
//!
//! A stage is one way to match a query ([`MatchKind`]). A stage runs only when the stages before it
//! found too few skills, so that good matches come first and slow queries are rare.

use std::{cmp::Reverse, collections::BTreeMap};

use tantivy::{
    Searcher, TantivyError, Term,
    query::{
        AllQuery, BooleanQuery, BoostQuery, ConstScoreQuery, FuzzyTermQuery, Occur, PhraseQuery,
        Query, TermQuery,
    },
    schema::{Field, IndexRecordOption},
};

use super::{
    MatchKind,
    fields::Fields,
    query::ParsedQuery,
    synonyms::{corrected, is_verb, synonyms},
    words::{PREFIX_CHARS, Word, is_common, stem},
};

/// How much more a word counts in a name, in tags and in a description than in a body.
const NAME_BOOST: f32 = 12.0;
const TAGS_BOOST: f32 = 6.0;
const DESCRIPTION_BOOST: f32 = 2.0;
/// The boost of a match with the beginning of a word of the name.
const PREFIX_BOOST: f32 = 8.0;
/// The boost of a word that is similar to a word of the query.
const SIMILAR_BOOST: f32 = 4.0;

/// Maximum words of one query that are corrected.
const MAX_CORRECTED_WORDS: usize = 4;
/// Maximum corrections of one word.
const MAX_CORRECTIONS_PER_WORD: usize = 8;
/// Minimum characters of a word that may have one typo, and two.
const MIN_CHARS_FOR_ONE_TYPO: usize = 4;
const MIN_CHARS_FOR_TWO_TYPOS: usize = 8;
/// Minimum characters of a word that may have one typo and stand in a description.
const MIN_CHARS_IN_DESCRIPTION: usize = 5;
/// How much more a synonym in a name and in a description counts than in a body.
const SYNONYM_NAME_BOOST: f32 = 6.0;

type Clause = (Occur, Box<dyn Query>);

/// Builds index queries from one parsed query, for one state of the index.
pub(super) struct QueryBuilder<'a> {
    pub(super) fields: &'a Fields,
    pub(super) searcher: &'a Searcher,
    pub(super) wanted: &'a ParsedQuery,
}

impl QueryBuilder<'_> {
    /// The index query of a stage; `None` if the stage does not apply to the query.
    pub(super) fn stage(&self, stage: MatchKind) -> Result<Option<Box<dyn Query>>, TantivyError> {
        let name = self.wanted.name.as_ref();
        let query = match stage {
            MatchKind::Name => name.map(|name| Self::constant(self.fields.exact, &name.exact, 1.0)),
            MatchKind::JoinedName => {
                name.map(|name| Self::constant(self.fields.exact, &name.joined, 1.0))
            }
            MatchKind::AllWords => Some(self.all_words()),
            MatchKind::Beginning => self.prefix_query(),
            MatchKind::Synonyms => self.synonym_query(),
            MatchKind::Similar => self.typo_query()?,
            MatchKind::SomeWords => self.some_words(),
        };
        Ok(query.map(|query| self.filtered(query)))
    }

    fn term(field: Field, text: &str) -> Box<dyn Query> {
        let term = Term::from_field_text(field, text);
        Box::new(TermQuery::new(term, IndexRecordOption::WithFreqs))
    }

    fn constant(field: Field, text: &str, score: f32) -> Box<dyn Query> {
        let term = TermQuery::new(Term::from_field_text(field, text), IndexRecordOption::Basic);
        Box::new(ConstScoreQuery::new(Box::new(term), score))
    }

    /// Adds the filters to a query.
    fn filtered(&self, query: Box<dyn Query>) -> Box<dyn Query> {
        let filters = &self.wanted.filters;
        let fields = self.fields;
        let lists = [
            (fields.tag, &filters.tags),
            (fields.author, &filters.authors),
            (fields.tier, &filters.tiers),
            (fields.evaluated, &filters.evaluated),
        ];
        let terms = lists.iter().flat_map(|(field, texts)| texts.iter().map(|text| (*field, text)));
        let mut clauses: Vec<Clause> =
            terms.map(|(field, text)| (Occur::Must, Self::constant(field, text, 0.0))).collect();
        if !filters.namespaces.is_empty() {
            let one = filters.namespaces.iter();
            let one = one.map(|text| (Occur::Should, Self::constant(fields.owner, text, 0.0)));
            clauses.push((Occur::Must, Box::new(BooleanQuery::new(one.collect()))));
        }
        if clauses.is_empty() {
            return query;
        }
        clauses.push((Occur::Must, query));
        Box::new(BooleanQuery::new(clauses))
    }

    /// Boosts for the fields that contain a word, besides the match in the text. A tag counts in
    /// full, regardless of the number of other tags.
    fn field_boosts(&self, word: &str) -> Vec<Clause> {
        let stem = stem(word);
        let fields = self.fields;
        let name = BoostQuery::new(Self::term(fields.name, word), NAME_BOOST);
        let tag = Self::constant(fields.tags, &stem, TAGS_BOOST * self.rarity(&stem));
        let description = BoostQuery::new(Self::term(fields.description, &stem), DESCRIPTION_BOOST);
        let clauses: [Box<dyn Query>; 3] = [Box::new(name), tag, Box::new(description)];
        clauses.into_iter().map(|query| (Occur::Should, query)).collect()
    }

    /// The boost of a tag: higher if few skills have it.
    #[expect(clippy::cast_precision_loss, reason = "only the order of magnitude counts")]
    fn rarity(&self, stem: &str) -> f32 {
        let term = Term::from_field_text(self.fields.tags, stem);
        let having = self.searcher.doc_freq(&term).unwrap_or_default() as f32;
        let others = (self.searcher.num_docs() as f32 - having).max(0.0);
        ((others + 0.5) / (having + 0.5)).ln_1p()
    }

    fn all_words(&self) -> Box<dyn Query> {
        if self.wanted.is_everything() {
            return Box::new(AllQuery);
        }
        let words = self.wanted.words.iter();
        let mut clauses: Vec<Clause> = words
            .clone()
            .map(|word| (Occur::Must, Self::term(self.fields.all, &stem(word))))
            .collect();
        clauses.extend(self.phrase_words());
        clauses.extend(words.flat_map(|word| self.field_boosts(word)));
        Box::new(BooleanQuery::new(clauses))
    }

    /// Requires each word of the phrases. Whether the words follow each other is checked only for
    /// the results: checking all skills that have the words would take too long.
    fn phrase_words(&self) -> impl Iterator<Item = Clause> {
        let words = self.wanted.phrases.iter().flat_map(|phrase| indexed_words(phrase));
        words.map(|word| (Occur::Must, Self::term(self.fields.all, &stem(&word.text))))
    }

    /// The checks for the results of a stage.
    pub(super) fn phrases(&self, stage: MatchKind) -> Vec<Box<dyn Query>> {
        if stage == MatchKind::SomeWords {
            return Vec::new();
        }
        let term = |word: &Word| Term::from_field_text(self.fields.all, &stem(&word.text));
        let phrases = self.wanted.phrases.iter().map(|phrase| {
            let terms = indexed_words(phrase).map(|word| (word.position, term(word)));
            terms.collect::<Vec<_>>()
        });
        let several = phrases.filter(|terms| terms.len() > 1);
        several
            .map(|terms| Box::new(PhraseQuery::new_with_offset(terms)) as Box<dyn Query>)
            .collect()
    }

    /// Matches skills that have all words but the last, and a word in the name that begins with the
    /// last one.
    fn prefix_query(&self) -> Option<Box<dyn Query>> {
        let unfinished = self.wanted.unfinished.as_deref()?;
        if !PREFIX_CHARS.contains(&unfinished.chars().count()) {
            return None;
        }
        let others = self.wanted.words.iter().filter(|word| *word != unfinished);
        let mut clauses: Vec<Clause> = others
            .clone()
            .map(|word| (Occur::Must, Self::term(self.fields.all, &stem(word))))
            .collect();
        clauses.push((Occur::Must, Self::constant(self.fields.typed, unfinished, PREFIX_BOOST)));
        clauses.extend(self.phrase_words());
        clauses.extend(others.flat_map(|word| self.field_boosts(word)));
        Some(Box::new(BooleanQuery::new(clauses)))
    }

    /// Matches skills that have each thing of the query, under this word or another one. Verbs are
    /// optional if the query also names a thing.
    fn synonym_query(&self) -> Option<Box<dyn Query>> {
        let (verbs, things): (Vec<&String>, Vec<&String>) =
            self.wanted.words.iter().partition(|word| is_verb(word));
        let has_synonym = things.iter().any(|word| !synonyms(word).is_empty());
        if things.is_empty() || !has_synonym && verbs.is_empty() {
            return None;
        }
        let mut clauses: Vec<Clause> = self.phrase_words().collect();
        for thing in things {
            let mut ways: Vec<Clause> =
                vec![(Occur::Should, Self::term(self.fields.all, &stem(thing)))];
            for synonym in synonyms(thing) {
                let stem = stem(synonym);
                // A body mentions many things in passing, so only these two fields count.
                let name =
                    BoostQuery::new(Self::term(self.fields.name, synonym), SYNONYM_NAME_BOOST);
                ways.push((Occur::Should, Box::new(name)));
                ways.push((Occur::Should, Self::term(self.fields.description, &stem)));
                ways.push((Occur::Should, Self::term(self.fields.tags, &stem)));
            }
            clauses.push((Occur::Must, Box::new(BooleanQuery::new(ways))));
            clauses.extend(self.field_boosts(thing));
        }
        clauses.extend(verbs.into_iter().flat_map(|word| self.field_boosts(word)));
        Some(Box::new(BooleanQuery::new(clauses)))
    }

    /// Matches skills that have, for each word of the query, this word or a similar word in the
    /// name or the description. At least one word must be only similar, because skills with all words were found
    /// before. Few names match, and only those are scored. The boosts for fields do not change
    /// which skills match.
    fn typo_query(&self) -> Result<Option<Box<dyn Query>>, TantivyError> {
        let mut clauses: Vec<Clause> = self.phrase_words().collect();
        let mut similar: Vec<Clause> = Vec::new();
        for (index, word) in self.wanted.words.iter().enumerate() {
            let mut ways: Vec<Clause> =
                vec![(Occur::Should, Self::term(self.fields.all, &stem(word)))];
            clauses.extend(self.field_boosts(word));
            let corrections =
                if index < MAX_CORRECTED_WORDS { self.corrections(word)? } else { Vec::new() };
            for (field, correction) in corrections {
                similar.push((Occur::Should, Self::constant(field, &correction, 0.0)));
                let term = Self::term(field, &correction);
                ways.push((Occur::Should, Box::new(BoostQuery::new(term, SIMILAR_BOOST))));
            }
            clauses.push((Occur::Must, Box::new(BooleanQuery::new(ways))));
        }
        if similar.is_empty() {
            return Ok(None);
        }
        clauses.push((Occur::Must, Box::new(BooleanQuery::new(similar))));
        Ok(Some(Box::new(BooleanQuery::new(clauses))))
    }

    /// Words of names that differ from a word in one character, or in two if there are none; the
    /// words of most names first. Then words of descriptions that differ in one character.
    fn corrections(&self, word: &str) -> Result<Vec<(Field, String)>, TantivyError> {
        let length = word.chars().count();
        let Fields { name, description, .. } = *self.fields;
        let mut found = self.name_corrections(word, length)?;
        let mut all: Vec<(Field, String)> = found.drain(..).map(|word| (name, word)).collect();
        if length >= MIN_CHARS_IN_DESCRIPTION {
            let known = self.similar_words(description, &stem(word), 1)?;
            all.extend(most_frequent(known).map(|word| (description, word)));
            all.extend(corrected(word).map(|word| (description, stem(word).into_owned())));
        }
        Ok(all)
    }

    fn name_corrections(&self, word: &str, length: usize) -> Result<Vec<String>, TantivyError> {
        let most = match length {
            MIN_CHARS_FOR_TWO_TYPOS.. => 2,
            MIN_CHARS_FOR_ONE_TYPO.. => 1,
            _ => 0,
        };
        for distance in 1..=most {
            let known = self.similar_words(self.fields.name, word, distance)?;
            if !known.is_empty() {
                return Ok(most_frequent(known).collect());
            }
        }
        Ok(Vec::new())
    }

    /// Words of a field within an edit distance of a word, and how many skills have them. With two
    /// typos the first letter must still match: comparing all other words would take many times as
    /// long.
    fn similar_words(
        &self,
        field: Field,
        word: &str,
        distance: u8,
    ) -> Result<BTreeMap<String, u64>, TantivyError> {
        let term = Term::from_field_text(field, word);
        let automaton = FuzzyTermQuery::new(term, distance, true).automaton()?;
        let letter = word.chars().next().filter(|_| distance > 1).map(String::from);
        let mut known = BTreeMap::new();
        for segment in self.searcher.segment_readers() {
            let index = segment.inverted_index(field)?;
            let mut search = index.terms().search(&automaton);
            if let Some(letter) = &letter {
                search = search.ge(letter).lt(end_of_prefix(letter));
            }
            let mut stream = search.into_stream()?;
            while stream.advance() {
                let names = u64::from(stream.value().doc_freq);
                match std::str::from_utf8(stream.key()) {
                    Ok(key) if key != word => *known.entry(key.to_owned()).or_default() += names,
                    _ => {}
                }
            }
        }
        Ok(known)
    }

    fn some_words(&self) -> Option<Box<dyn Query>> {
        let words = &self.wanted.words;
        if words.len() + self.wanted.phrases.len() < 2 {
            return None;
        }
        let mut clauses: Vec<Clause> = words
            .iter()
            .map(|word| (Occur::Should, Self::term(self.fields.all, &stem(word))))
            .collect();
        clauses.extend(words.iter().flat_map(|word| self.field_boosts(word)));
        let loose = self.phrase_words().map(|(_, word)| (Occur::Should, word));
        clauses.extend(loose);
        Some(Box::new(BooleanQuery::new(clauses)))
    }
}

/// The words that most skills have, first.
fn most_frequent(known: BTreeMap<String, u64>) -> impl Iterator<Item = String> {
    let mut known: Vec<_> = known.into_iter().collect();
    known.sort_by_key(|(_, count)| Reverse(*count));
    known.into_iter().take(MAX_CORRECTIONS_PER_WORD).map(|(word, _)| word)
}

/// The first key after all keys that begin with a text.
fn end_of_prefix(beginning: &str) -> Vec<u8> {
    let mut bytes = beginning.as_bytes().to_owned();
    // Adding 1 cannot overflow: no byte of UTF-8 text is 255.
    if let Some(last) = bytes.last_mut() {
        *last += 1;
    }
    bytes
}

/// The words of a phrase that are in the index. Common words are not indexed, but their positions
/// are counted.
fn indexed_words(phrase: &[Word]) -> impl Iterator<Item = &Word> {
    let only_common = phrase.iter().all(|word| is_common(&word.text));
    phrase.iter().filter(move |word| only_common || !is_common(&word.text))
}
