//! Signs of harm in the paragraphs of a document, as sets that are united over neighboring paragraphs.
//!
//! A sign is what a sentence is about, not how it is worded: something stays unspoken, an answer is
//! prepared, a copy goes to a stranger, an account takes the place of another. No sign is harmful
//! alone. The rules weigh the signs of a few paragraphs under one heading together.

mod actions;
mod concealment;
mod languages;

use savoir_skill::Span;

use super::{
    fragment::TextFragment,
    host::HostReputation,
    passage::{Passage, passages},
    service,
};

/// A set of signs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Signs(u64);

macro_rules! signs {
    ($($(#[doc = $doc:literal])+ $name:ident = $bit:literal),+ $(,)?) => {
        impl Signs {
            $($(#[doc = $doc])+ pub(super) const $name: Self = Self(1 << $bit);)+
        }
    };
}

signs! {
    /// The text tells the agent to keep the user uninformed.
    HIDES = 0,
    /// People are lied to.
    LIES = 1,
    /// Something is not spoken of.
    UNSPOKEN = 2,
    /// There is a prepared answer to a question or an objection.
    PREPARED = 3,
    /// Something is called normal, required or urgent.
    REASSURES = 4,
    /// What is shown differs from what is done.
    DIFFERS = 5,
    /// No trace of something is left.
    NO_TRACE = 6,
    /// Something is deleted afterwards.
    TIDIES = 7,
    /// A change gets a harmless name.
    NEUTRAL_NAME = 8,
    /// Something is done although nobody asked for it.
    UNASKED = 9,
    /// Something is done while nobody watches.
    UNATTENDED = 10,
    /// Something is done without a question.
    PRESSES = 11,
    /// Something is sent.
    SENDS = 12,
    /// A host or a mail address is named.
    HOST = 13,
    /// The host has no name or a throw-away one.
    SHADY = 14,
    /// A host that belongs to no known service.
    STRANGER = 15,
    /// Secrets.
    SECRET = 16,
    /// Secrets that open accounts, machines or wallets.
    GRAVE = 17,
    /// Data of the user or of other people.
    DATA = 18,
    /// All of something.
    EVERYTHING = 19,
    /// Payments, accounts, prices.
    MONEY = 20,
    /// The number of an account or the address of a wallet.
    ACCOUNT = 21,
    /// An account or recipient takes the place of another one.
    REPLACES_ACCOUNT = 22,
    /// Something depends on an amount, a count or a kind of customer.
    DEPENDS = 23,
    /// A part of a payment is diverted.
    TAKES_SHARE = 24,
    /// A check of certificates or signatures is removed.
    NO_VERIFICATION = 25,
    /// A login, a permission or a limit is removed.
    NO_PROTECTION = 26,
    /// Somebody gets in without a valid login.
    BACKDOOR = 27,
    /// Somebody gets rights.
    GRANTS = 28,
    /// A program is installed or executed.
    EXECUTES = 29,
    /// Something is destroyed.
    DESTROYS = 30,
    /// Figures, results or sources are changed.
    FALSIFIES = 31,
    /// The user is asked for consent.
    CONSENTS = 32,
    /// The text describes attacks.
    WARNS = 33,
    /// A text is fetched.
    FETCHES = 34,
    /// A text becomes instructions.
    ADOPTS = 35,
    /// A text prevails over others.
    PREVAILS = 36,
    /// The content of a text is carried out.
    PERFORMS = 37,
    /// A text can add steps or commands.
    ADDS_STEPS = 38,
    /// A fixed address gets a hidden copy.
    HIDDEN_COPY = 39,
    /// A fixed address is added to the recipients, guests or readers.
    ADDS_RECIPIENT = 40,
    /// It happens every time, or belongs to a template.
    ALWAYS = 41,
    /// A person is asked for a grave secret in another language than English.
    ASKS_SECRET = 42,
    /// A change goes to the repository of a stranger.
    PUSHES_AWAY = 43,
    /// Secrets are put somewhere.
    MOVES_SECRET = 44,
    /// A place that others read: a description, a wiki, a comment.
    SHARED_PLACE = 45,
    /// Data about people, or what was said in the conversation.
    PRIVATE = 46,
    /// Something is done again and again, or first of all.
    AGAIN = 47,
    /// One sentence says to send something and names a strange address.
    SENDS_AWAY = 48,
    /// A setting of a program switches a protection off.
    WEAK_SETTING = 49,
    /// Money of the user is spent.
    SPENDS = 50,
    /// Somebody who is neither the user nor the author gives orders.
    OBEYS_OUTSIDER = 51,
}

impl Signs {
    pub(super) fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    pub(super) fn add_if(&mut self, holds: bool, sign: Self) {
        if holds {
            self.0 |= sign.0;
        }
    }

    fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The sum of the weights of the signs that are in the set.
    pub(super) fn weigh(self, weights: &[(Self, u32)]) -> u32 {
        weights.iter().filter(|(sign, _)| self.has(*sign)).map(|(_, weight)| weight).sum()
    }
}

/// The signs of neighboring paragraphs under one heading.
#[derive(Debug)]
pub(super) struct Window {
    pub(super) signs: Signs,
    pub(super) span: Span,
    /// The first address in the paragraphs.
    pub(super) address: Option<String>,
}

/// How many paragraphs are weighed together, and how long they can be.
const MAX_JOINED_PASSAGES: usize = 4;
const MAX_WINDOW_BYTES: usize = 1_800;

/// Returns the windows of a document. Each paragraph begins one.
pub(super) fn windows<'f>(fragment: &'f TextFragment<'_>) -> &'f [Window] {
    fragment.prose().map_or(&[], |prose| prose.windows.get_or_init(|| read_windows(&prose.text)))
}

fn read_windows(text: &str) -> Vec<Window> {
    let all = passages(text);
    let signs: Vec<Signs> = all.iter().map(signs_of).collect();
    let window = |first: usize| {
        let start = all[first].span.start;
        let last = (first..all.len().min(first + MAX_JOINED_PASSAGES))
            .take_while(|at| {
                all[*at].heading() == all[first].heading()
                    && (*at == first || all[*at].span.end - start <= MAX_WINDOW_BYTES)
            })
            .last()
            .unwrap_or(first);
        let mut links = all[first..=last].iter().flat_map(super::passage::Passage::links);
        Window {
            signs: signs[first..=last].iter().fold(Signs::default(), |sum, one| sum.with(*one)),
            span: Span::new(start, all[last].span.end),
            address: links.next().map(|(url, _)| (*url).to_owned()),
        }
    };
    (0..all.len()).map(window).collect()
}

fn signs_of(passage: &Passage<'_>) -> Signs {
    let mut signs = Signs::default();
    let links = passage.links();
    signs.add_if(passage.address() > 1, Signs::HOST);
    signs.add_if(links.iter().any(|(_, one)| *one == HostReputation::Suspicious), Signs::SHADY);
    signs.add_if(links.iter().any(|link| is_strange(passage, link)), Signs::STRANGER);
    signs.add_if(passage.warns(), Signs::WARNS);
    concealment::add_signs(passage, &mut signs);
    actions::add_signs(passage, &mut signs);
    languages::add_signs(passage, &mut signs);
    signs
}

/// Whether an address belongs to nobody known, and is neither documentation nor a link for readers.
fn is_strange(passage: &Passage<'_>, (url, reputation): &(&str, HostReputation)) -> bool {
    const DOCUMENTATION: [&str; 10] = [
        "://docs.", "://developer.", "://developers.", "://help.", "/docs/", "nvcr.io", "ghcr.io",
        "quay.io", "gcr.io", "docker.io",
    ];
    let at = url.as_ptr() as usize - passage.text.as_ptr() as usize;
    matches!(reputation, HostReputation::OwnDomain | HostReputation::Suspicious)
        && !service::is_known_host(url)
        && !passage.text[..at].ends_with("](")
        && !url.starts_with("docs.")
        && !url.contains("...")
        && !DOCUMENTATION.iter().any(|part| url.contains(part))
}
