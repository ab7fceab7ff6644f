//! What an expression is, as far as one can tell without running it.

use savoir_skill::Span;

use super::{
    act::{Act, Acts, Code, Taint},
    host,
    piece::Language,
    place, shell,
};

/// What stands for what is not known in a text.
pub(super) const UNKNOWN: &str = "{}";

/// Most items of a list that are followed.
pub(super) const MOST_ITEMS: usize = 4096;

/// Longest text that is put together.
const LONGEST: usize = 256 * 1024;

/// A value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Value {
    /// The text, with [`UNKNOWN`] for what is not known of it.
    pub(super) text: Option<String>,
    /// The dotted name of a module, a function or what a function gave.
    pub(super) name: Option<String>,
    /// The items of a list.
    pub(super) items: Vec<Self>,
    pub(super) taint: Taint,
}

impl Value {
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self { text: Some(text.into()), ..Self::default() }
    }

    pub(super) fn named(name: impl Into<String>) -> Self {
        Self { name: Some(name.into()), ..Self::default() }
    }

    pub(super) fn tainted(taint: Taint) -> Self {
        Self { taint, ..Self::default() }
    }

    /// The text, or what stands for it.
    pub(super) fn shown(&self) -> &str {
        self.text.as_deref().unwrap_or(UNKNOWN)
    }

    /// The text when all of it is known.
    pub(super) fn known(&self) -> Option<&str> {
        self.text.as_deref().filter(|text| !text.contains(UNKNOWN))
    }

    pub(super) fn number(&self) -> Option<i64> {
        self.text.as_deref()?.parse().ok()
    }

    /// Everything that it is made of, its items included.
    pub(super) fn all_taint(&self) -> Taint {
        let mut taint = self.taint.clone();
        self.items.iter().take(MOST_ITEMS).for_each(|item| taint.add(&item.all_taint()));
        taint
    }

    /// One text after the other.
    pub(super) fn joined(values: &[Self], between: &str) -> Self {
        let mut taint = Taint::default();
        for value in values {
            taint.add(&value.all_taint());
        }
        let some = values.iter().any(|value| value.text.is_some());
        let texts: Vec<&str> = values.iter().map(Self::shown).collect();
        let text = some.then(|| texts.join(between)).filter(|text| text.len() <= LONGEST);
        Self { text, taint, ..Self::default() }
    }

    /// What it says once decoded.
    pub(super) fn decoded(&self, decode: impl Fn(&str) -> Option<String>) -> Self {
        let mut taint = self.taint.clone();
        taint.decoded = true;
        Self { text: self.known().and_then(decode), taint, ..Self::default() }
    }

    /// The numbers of a list as characters.
    pub(super) fn characters(&self) -> Option<String> {
        let numbers = self.items.iter().take(MOST_ITEMS);
        let text: Option<String> =
            numbers.map(|item| char::from_u32(u32::try_from(item.number()?).ok()?)).collect();
        text.filter(|text| !text.is_empty())
    }
}

/// Code in a value is executed.
pub(super) fn execute(value: &Value, language: Language, span: Span, acts: &mut Acts) {
    let taint = value.all_taint();
    if let Some(from) = taint.fetched {
        acts.push(Act::Executes(Code::Fetched(from)), span);
    } else if taint.decoded {
        acts.push(Act::Executes(Code::Decoded), span);
    } else if value.known().is_none() {
        acts.push(Act::Executes(Code::Computed), span);
    }
    if let Some(text) = value.known() {
        let cloak = taint.decoded.then_some("an encoded text");
        acts.inner(text.to_owned(), cloak, Some(language), span);
    }
}

/// A command in a value is run by a shell, or by itself when it is a list.
pub(super) fn run(value: &Value, span: Span, acts: &mut Acts) {
    let taint = value.all_taint();
    let text = if value.items.is_empty() {
        value.shown().to_owned()
    } else {
        let words: Vec<String> = value.items.iter().map(|item| item.shown().to_owned()).collect();
        let found = shell::read_words(&words, span);
        found.seen.into_iter().for_each(|seen| acts.push(seen.act, span));
        acts.inner.extend(found.inner.into_iter().map(|mut inner| {
            inner.span = span;
            inner
        }));
        words.join(" ")
    };
    if value.items.is_empty() && value.text.is_some() {
        let cloak = taint.decoded.then_some("an encoded text");
        acts.inner(text.clone(), cloak, Some(Language::Shell), span);
    }
    if let Some(from) = &taint.fetched
        && value.text.as_deref().is_none_or(|text| text.starts_with(UNKNOWN))
    {
        acts.push(Act::Executes(Code::Fetched(from.clone())), span);
    }
    if taint.decoded {
        acts.push(Act::Executes(Code::Decoded), span);
    }
    if taint.is_secret() && ["curl", "wget", "nc ", "ncat"].iter().any(|name| text.contains(name)) {
        let to = host::urls(&text).first().map(|(_, url)| (*url).to_owned()).unwrap_or_default();
        acts.push(Act::Network { to, sends: taint }, span);
    }
}

/// A file is read.
pub(super) fn read(path: &Value, span: Span, acts: &mut Acts) -> Value {
    let mut taint = path.taint.clone();
    let text = path.shown();
    if let Some(what) = place::credential(text) {
        acts.push(Act::Secret(what), span);
        taint.add(&Taint::credential(what));
    } else if text != UNKNOWN {
        acts.push(Act::Reads(text.to_owned()), span);
        if text == ".env" || text.ends_with("/.env") {
            taint.tokens.push(".env".into());
        }
    }
    Value::tainted(taint)
}

/// Something is sent to a host; `log_in` is what only proves who sends it.
pub(super) fn send(
    to: &Value,
    parts: &[&Value],
    log_in: &[&Value],
    span: Span,
    acts: &mut Acts,
) -> Value {
    let mut sends = to.taint.clone();
    for part in parts {
        sends.add(&part.all_taint());
    }
    for part in log_in {
        let taint = part.all_taint();
        sends.add(&Taint { tokens: Vec::new(), ..taint });
    }
    sends.fetched = None;
    let url = to.shown().to_owned();
    acts.push(Act::Network { to: url.clone(), sends }, span);
    if let Some(what) = place::credential(&url) {
        acts.push(Act::Secret(what), span);
        return Value { taint: Taint::credential(what), ..Value::default() };
    }
    Value::tainted(Taint::fetched(&url))
}
