//! Weighs the signs of neighboring paragraphs: deeds that the user is not meant to notice, copies for
//! strangers, replaced accounts, removed protections, and texts of others that are obeyed.

use savoir_skill::Span;

use crate::{
    Confidence, Severity,
    context::FindingDraft,
    fragment::TextFragment,
    signs::{Signs, Window, windows},
};

/// How strongly each sign shows that something is meant to stay unnoticed.
const CONCEALMENT: [(Signs, u32); 12] = [
    (Signs::HIDES, 2),
    (Signs::LIES, 2),
    (Signs::UNSPOKEN, 2),
    (Signs::DIFFERS, 2),
    (Signs::NO_TRACE, 2),
    (Signs::NEUTRAL_NAME, 2),
    (Signs::PREPARED, 2),
    (Signs::REASSURES, 1),
    (Signs::TIDIES, 1),
    (Signs::UNASKED, 1),
    (Signs::UNATTENDED, 1),
    (Signs::PRESSES, 1),
];

/// How grave what is done is.
const DEEDS: [(Signs, u32); 17] = [
    (Signs::MOVES_SECRET, 2),
    (Signs::GRAVE, 1),
    (Signs::SHADY, 1),
    (Signs::ACCOUNT, 1),
    (Signs::REPLACES_ACCOUNT, 2),
    (Signs::TAKES_SHARE, 2),
    (Signs::NO_VERIFICATION, 2),
    (Signs::NO_PROTECTION, 2),
    (Signs::BACKDOOR, 3),
    (Signs::HIDDEN_COPY, 3),
    (Signs::ADDS_RECIPIENT, 2),
    (Signs::FALSIFIES, 2),
    (Signs::WEAK_SETTING, 2),
    (Signs::SPENDS, 2),
    (Signs::DESTROYS, 2),
    (Signs::OBEYS_OUTSIDER, 2),
    (Signs::PERFORMS, 1),
];

/// Whether the window is about something that the user agrees to or is warned about.
fn is_open(signs: Signs) -> bool {
    signs.has(Signs::CONSENTS) || signs.has(Signs::WARNS)
}

/// The weight of data that leaves the machine.
fn departure(signs: Signs) -> u32 {
    let what = [(Signs::DATA, 1), (Signs::EVERYTHING, 1), (Signs::PRIVATE, 1)];
    if signs.has(Signs::SENDS_AWAY) {
        2 + signs.weigh(&what)
    } else {
        u32::from(signs.has(Signs::SENDS) && signs.has(Signs::STRANGER))
    }
}

fn is_covert(signs: Signs) -> bool {
    // What is hidden is not spoken of either.
    let twice = signs.has(Signs::HIDES) && signs.has(Signs::UNSPOKEN);
    let concealment = signs.weigh(&CONCEALMENT) - if twice { 2 } else { 0 };
    let shared = u32::from(signs.has(Signs::MOVES_SECRET) && signs.has(Signs::SHARED_PLACE));
    let deeds = signs.weigh(&DEEDS) + departure(signs) + shared;
    concealment > 1 && deeds > 1 && (deeds > 2 || concealment > 3) && concealment + deeds > 5
}

fn has_fixed_recipient(signs: Signs) -> bool {
    let reasons = [
        (Signs::ALWAYS, 1),
        (Signs::UNASKED, 1),
        (Signs::UNSPOKEN, 1),
        (Signs::HIDES, 1),
        (Signs::NO_TRACE, 1),
        (Signs::EVERYTHING, 1),
    ];
    signs.has(Signs::HIDDEN_COPY) && signs.weigh(&reasons) > 0
        || signs.has(Signs::ADDS_RECIPIENT) && signs.weigh(&reasons) > 1
}

fn replaces_account(signs: Signs) -> bool {
    let reasons = [
        (Signs::ACCOUNT, 2),
        (Signs::DEPENDS, 1),
        (Signs::DIFFERS, 2),
        (Signs::PREPARED, 1),
        (Signs::REASSURES, 1),
        (Signs::UNASKED, 1),
        (Signs::UNSPOKEN, 1),
        (Signs::HIDES, 1),
        (Signs::MONEY, 1),
    ];
    (signs.has(Signs::REPLACES_ACCOUNT) || signs.has(Signs::TAKES_SHARE))
        && (signs.has(Signs::ACCOUNT) || signs.has(Signs::DIFFERS))
        && signs.weigh(&reasons) > 3
}

/// Whether secrets go to the repository of a stranger.
fn pushes_secrets(signs: Signs) -> bool {
    signs.has(Signs::PUSHES_AWAY) && signs.has(Signs::SECRET)
}

fn weakens_security(signs: Signs) -> bool {
    let reasons = [
        (Signs::NO_VERIFICATION, 2),
        (Signs::NO_PROTECTION, 2),
        (Signs::BACKDOOR, 3),
        (Signs::WEAK_SETTING, 1),
    ];
    signs.weigh(&reasons) > 2
}

fn obeys_remote_text(signs: Signs) -> bool {
    let reasons = [
        (Signs::FETCHES, 1),
        (Signs::ADOPTS, 2),
        (Signs::PREVAILS, 2),
        (Signs::PERFORMS, 1),
        (Signs::ADDS_STEPS, 1),
        (Signs::AGAIN, 1),
        (Signs::UNASKED, 1),
        (Signs::PRESSES, 1),
    ];
    let rules =
        signs.has(Signs::ADOPTS) || signs.has(Signs::PREVAILS) || signs.has(Signs::PERFORMS);
    signs.has(Signs::STRANGER) && signs.has(Signs::FETCHES) && rules && signs.weigh(&reasons) > 3
}

/// Judges the windows of a document and reports each finding at the first window that has it.
fn judge(
    fragment: &TextFragment<'_>,
    is_found: impl Fn(&Window) -> bool,
    message: impl Fn(&Window) -> String,
) -> Vec<(Span, FindingDraft)> {
    let mut found: Vec<(Span, FindingDraft)> = Vec::new();
    for window in windows(fragment).iter().filter(|one| !is_open(one.signs) && is_found(one)) {
        let is_known = found.last().is_some_and(|(span, _)| span.end > window.span.start);
        if !is_known {
            let draft = FindingDraft::new(Severity::High, Confidence::Medium, message(window));
            found.push((window.span, draft));
        }
    }
    found
}

fn to_address(window: &Window) -> String {
    window.address.as_ref().map(|url| format!(", to `{url}`")).unwrap_or_default()
}

/// Deeds that the text wants to stay unnoticed.
pub(super) fn find_covert_deeds(fragment: &TextFragment<'_>) -> Vec<(Span, FindingDraft)> {
    judge(
        fragment,
        |one| is_covert(one.signs),
        |one| format!("the text describes a deed and keeps it from the user{}", to_address(one)),
    )
}

/// Copies and rights for an address that the user did not choose.
pub(super) fn find_fixed_recipients(fragment: &TextFragment<'_>) -> Vec<(Span, FindingDraft)> {
    judge(
        fragment,
        |one| has_fixed_recipient(one.signs),
        |_| "a fixed address gets what the user sends or shares".to_owned(),
    )
}

/// Secrets that are pushed to the repository of a stranger.
pub(super) fn find_pushed_secrets(fragment: &TextFragment<'_>) -> Vec<(Span, FindingDraft)> {
    judge(
        fragment,
        |one| pushes_secrets(one.signs),
        |one| format!("secrets are pushed to a repository of someone else{}", to_address(one)),
    )
}

/// People who are asked for secrets, in languages other than English.
pub(super) fn find_secret_questions(fragment: &TextFragment<'_>) -> Vec<(Span, FindingDraft)> {
    let asks = |signs: Signs| {
        signs.has(Signs::ASKS_SECRET) && (signs.has(Signs::HOST) || signs.has(Signs::REASSURES))
    };
    judge(
        fragment,
        |one| asks(one.signs),
        |one| format!("the text makes the user hand over a secret{}", to_address(one)),
    )
}

/// Accounts that replace the given one.
pub(super) fn find_replaced_accounts(fragment: &TextFragment<'_>) -> Vec<(Span, FindingDraft)> {
    judge(
        fragment,
        |one| replaces_account(one.signs),
        |_| "another account takes the place of the one that the user gave".to_owned(),
    )
}

/// Protections of the user's product that are removed.
pub(super) fn find_weakened_security(fragment: &TextFragment<'_>) -> Vec<(Span, FindingDraft)> {
    judge(
        fragment,
        |one| weakens_security(one.signs),
        |_| "the agent is told to remove protections of the user's product".to_owned(),
    )
}

/// Texts from a host that the agent obeys.
pub(super) fn find_obeyed_texts(fragment: &TextFragment<'_>) -> Vec<(Span, FindingDraft)> {
    judge(
        fragment,
        |one| obeys_remote_text(one.signs),
        |one| format!("a text from a host becomes instructions{}", to_address(one)),
    )
}
