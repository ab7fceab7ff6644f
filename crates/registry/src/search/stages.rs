//! Builds index queries, from the strictest match to the loosest.
//!
//! The next reading is tried only when those before it found too few, so that what fits well comes
//! first, and what is slow is rare.

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
    words::{PREFIX_CHARS, Word, is_common, stem},
};

/// How much more a word counts in a name, in tags and in a description than in a body.
const NAME_BOOST: f32 = 12.0;
const TAGS_BOOST: f32 = 6.0;
const DESCRIPTION_BOOST: f32 = 2.0;
/// What a beginning of a name counts.
const PREFIX_BOOST: f32 = 8.0;
/// What a word counts that is similar to the one that was asked for.
const SIMILAR_BOOST: f32 = 4.0;

/// Words that are corrected in one question.
const MAX_CORRECTED_WORDS: usize = 4;
/// Corrections of one word.
const MAX_CORRECTIONS_PER_WORD: usize = 8;
/// The least characters of a word that may have one error, and two.
const MIN_CHARS_FOR_ONE_TYPO: usize = 4;
const MIN_CHARS_FOR_TWO_TYPOS: usize = 8;

type Clause = (Occur, Box<dyn Query>);

/// A question for one state of the index.
pub(super) struct QueryBuilder<'a> {
    pub(super) fields: &'a Fields,
    pub(super) searcher: &'a Searcher,
    pub(super) wanted: &'a ParsedQuery,
}

impl QueryBuilder<'_> {
    /// The query of a stage, if the question can be read in that way.
    pub(super) fn stage(&self, stage: MatchKind) -> Result<Option<Box<dyn Query>>, TantivyError> {
        let name = self.wanted.name.as_ref();
        let query = match stage {
            MatchKind::Name => name.map(|name| Self::constant(self.fields.exact, &name.exact, 1.0)),
            MatchKind::JoinedName => {
                name.map(|name| Self::constant(self.fields.exact, &name.joined, 1.0))
            }
            MatchKind::AllWords => Some(self.all_words()),
            MatchKind::Beginning => self.beginning(),
            MatchKind::Similar => self.similar()?,
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

    /// Adds what must hold besides the words.
    fn filtered(&self, query: Box<dyn Query>) -> Box<dyn Query> {
        let filters = &self.wanted.filters;
        let fields = self.fields;
        let lists = [
            (fields.tag, &filters.tags),
            (fields.author, &filters.authors),
            (fields.tier, &filters.tiers),
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

    /// What a word counts for where it stands, besides being there at all. A tag is there or not: how
    /// many others there are says nothing.
    fn favours(&self, word: &str) -> Vec<Clause> {
        let stem = stem(word);
        let fields = self.fields;
        let name = BoostQuery::new(Self::term(fields.name, word), NAME_BOOST);
        let tag = Self::constant(fields.tags, &stem, TAGS_BOOST * self.rarity(&stem));
        let description = BoostQuery::new(Self::term(fields.description, &stem), DESCRIPTION_BOOST);
        let clauses: [Box<dyn Query>; 3] = [Box::new(name), tag, Box::new(description)];
        clauses.into_iter().map(|query| (Occur::Should, query)).collect()
    }

    /// What a tag tells: more if few skills have it.
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
        clauses.extend(words.flat_map(|word| self.favours(word)));
        Box::new(BooleanQuery::new(clauses))
    }

    /// The words of phrases, each of which must be there. Whether they follow each other is looked up
    /// in what is found: finding out for all skills that have them would take too long.
    fn phrase_words(&self) -> impl Iterator<Item = Clause> {
        let words = self.wanted.phrases.iter().flat_map(|phrase| kept(phrase));
        words.map(|word| (Occur::Must, Self::term(self.fields.all, &stem(&word.text))))
    }

    /// What must hold of the skills that a stage finds.
    pub(super) fn phrases(&self, stage: MatchKind) -> Vec<Box<dyn Query>> {
        if stage == MatchKind::SomeWords {
            return Vec::new();
        }
        let term = |word: &Word| Term::from_field_text(self.fields.all, &stem(&word.text));
        let phrases = self.wanted.phrases.iter().map(|phrase| {
            let terms = kept(phrase).map(|word| (word.position, term(word)));
            terms.collect::<Vec<_>>()
        });
        let several = phrases.filter(|terms| terms.len() > 1);
        several
            .map(|terms| Box::new(PhraseQuery::new_with_offset(terms)) as Box<dyn Query>)
            .collect()
    }

    /// All words but the last, and a name in which a word begins as the last one does.
    fn beginning(&self) -> Option<Box<dyn Query>> {
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
        clauses.extend(others.flat_map(|word| self.favours(word)));
        Some(Box::new(BooleanQuery::new(clauses)))
    }

    /// All words, or words of names that are similar to them: at least one is only similar, for what has
    /// all words was found before. There are few such names, and only they are looked at. Where a word
    /// stands counts besides: it says nothing about which skills are found.
    fn similar(&self) -> Result<Option<Box<dyn Query>>, TantivyError> {
        let mut clauses: Vec<Clause> = self.phrase_words().collect();
        let mut similar: Vec<Clause> = Vec::new();
        for (index, word) in self.wanted.words.iter().enumerate() {
            let mut ways: Vec<Clause> =
                vec![(Occur::Should, Self::term(self.fields.all, &stem(word)))];
            clauses.extend(self.favours(word));
            let corrections =
                if index < MAX_CORRECTED_WORDS { self.corrections(word)? } else { Vec::new() };
            for correction in corrections {
                let name = self.fields.name;
                similar.push((Occur::Should, Self::constant(name, &correction, 0.0)));
                let term = Self::term(name, &correction);
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

    /// Words of names that differ from a word in one character, or in two if there are none, those
    /// first that most names have.
    fn corrections(&self, word: &str) -> Result<Vec<String>, TantivyError> {
        let length = word.chars().count();
        let most = match length {
            MIN_CHARS_FOR_TWO_TYPOS.. => 2,
            MIN_CHARS_FOR_ONE_TYPO.. => 1,
            _ => 0,
        };
        for distance in 1..=most {
            let mut known: Vec<_> = self.similar_words(word, distance)?.into_iter().collect();
            if !known.is_empty() {
                known.sort_by_key(|(_, names)| Reverse(*names));
                known.truncate(MAX_CORRECTIONS_PER_WORD);
                return Ok(known.into_iter().map(|(word, _)| word).collect());
            }
        }
        Ok(Vec::new())
    }

    /// Words of names within a distance of a word, and how many names have them. Who makes two errors
    /// knows the first letter at least: looking at all other words would take many times as long.
    fn similar_words(
        &self,
        word: &str,
        distance: u8,
    ) -> Result<BTreeMap<String, u64>, TantivyError> {
        let term = Term::from_field_text(self.fields.name, word);
        let automaton = FuzzyTermQuery::new(term, distance, true).automaton()?;
        let letter = word.chars().next().filter(|_| distance > 1).map(String::from);
        let mut known = BTreeMap::new();
        for segment in self.searcher.segment_readers() {
            let index = segment.inverted_index(self.fields.name)?;
            let mut search = index.terms().search(&automaton);
            if let Some(letter) = &letter {
                search = search.ge(letter).lt(after(letter));
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
        clauses.extend(words.iter().flat_map(|word| self.favours(word)));
        let loose = self.phrase_words().map(|(_, word)| (Occur::Should, word));
        clauses.extend(loose);
        Some(Box::new(BooleanQuery::new(clauses)))
    }
}

/// What comes after everything that begins with a text.
fn after(beginning: &str) -> Vec<u8> {
    let mut bytes = beginning.as_bytes().to_owned();
    // No byte of a text is the highest.
    if let Some(last) = bytes.last_mut() {
        *last += 1;
    }
    bytes
}

/// The words of a phrase that are in the index: those that nearly every text has are not, but their
/// places are.
fn kept(phrase: &[Word]) -> impl Iterator<Item = &Word> {
    let only_common = phrase.iter().all(|word| is_common(&word.text));
    phrase.iter().filter(move |word| only_common || !is_common(&word.text))
}
