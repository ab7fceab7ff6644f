//! Signs that something is meant to stay unnoticed, in English.

use std::sync::LazyLock;

use crate::{
    lexicon::Lexicon,
    passage::{Passage, is_negated},
    phrase::phrases,
};

use super::Signs;

static TELLS: LazyLock<Lexicon> = LazyLock::new(|| {
    Lexicon::new(
        "tell telling told mention* speak spoken spoke talk talked discuss* explain* disclos* reveal* announc* inform \
         informed notif* surface surfaced comment commented describ* acknowledg* justif* advertis* narrate* report \
         reported said say refer reference bring brought raise raised relay relayed",
    )
});

static ASKERS: LazyLock<Lexicon> = LazyLock::new(|| {
    Lexicon::new(
        "ask asks asked asking inquir* enquir* wonder* question questions questioned complain* object objects objected \
         hesitat* notic* suspect* protest* doubt* curious confront* spot spots spotted discover* stumble* finds puzzled \
         surprised worried",
    )
});

static ANSWERS: LazyLock<Lexicon> = LazyLock::new(|| {
    Lexicon::new(
        "say answer answered answers reply replied respond responded explain explained describe described claim attribute \
         blame reassure assure tell told present presented call insist hear hears met argue stress",
    )
});

/// Words that make a question one about a deed of the agent.
static ABOUT_DEED: LazyLock<Lexicon> = LazyLock::new(|| {
    Lexicon::new(
        "why block request requests account step file files it this that change line charge entry message copy person colleague somebody someone anyone they user customer reviewer",
    )
});

static NEGATIONS: LazyLock<Lexicon> = LazyLock::new(|| {
    Lexicon::new(
        "not never no nothing without nor neither nobody none cannot can't don't doesn't isn't aren't won't shouldn't \
         mustn't needn't didn't hasn't haven't avoid refrain silent",
    )
});

/// What is not told: it keeps advice about style and secrets apart.
static HARMLESS_OBJECTS: LazyLock<Lexicon> = LazyLock::new(|| {
    Lexicon::new(
        "token tokens password passwords secret secrets key keys credential credentials obvious opinion opinions jargon \
         count number numbers names name version versions test tests bug bugs issue issues error errors failure failures \
         duplicate duplicates feature features",
    )
});

pub(super) fn add_signs(passage: &Passage<'_>, signs: &mut Signs) {
    let advice = passage.says(&["style", "tone", "jargon", "emoji"]);
    signs.add_if(passage.hides(), Signs::HIDES);
    signs.add_if(passage.find_lie().is_some(), Signs::LIES);
    signs.add_if(
        !advice && (keeps_quiet(passage) || passage.matches(&STAYS_SILENT)),
        Signs::UNSPOKEN,
    );
    signs.add_if(prepares_answer(passage), Signs::PREPARED);
    signs.add_if(passage.matches(&REASSURES), Signs::REASSURES);
    signs.add_if(passage.matches(&DIFFERS), Signs::DIFFERS);
    signs.add_if(passage.wants(&NO_TRACE) || passage.matches(&WITHOUT_TRACE), Signs::NO_TRACE);
    signs.add_if(passage.wants(&TIDIES), Signs::TIDIES);
    signs.add_if(passage.matches(&NEUTRAL_NAME), Signs::NEUTRAL_NAME);
    signs.add_if(passage.matches(&UNASKED), Signs::UNASKED);
    signs.add_if(passage.matches(&UNATTENDED), Signs::UNATTENDED);
    signs.add_if(passage.demands_no_questions(), Signs::PRESSES);
}

/// Whether a verb of telling is negated, and its object is not something that nobody needs to hear.
fn keeps_quiet(passage: &Passage<'_>) -> bool {
    let words = &passage.words;
    TELLS.places(words).into_iter().any(|at| {
        let near = at.saturating_sub(5)..at;
        let denied = near.clone().rev().find(|one| NEGATIONS.contains(&words[*one].text));
        let Some(denied) = denied else { return false };
        let between = &passage.text[words[denied].span.end..words[at].span.start];
        let harmless = words[at + 1..].iter().take(5).chain(&words[denied..at]);
        let said = words[denied..=at].iter().map(|word| word.text.as_str()).collect::<Vec<_>>();
        let is_purpose = said.contains(&"only") || said.contains(&"just") || said.contains(&"if");
        !between.contains(['.', ',', ';', ':', '\n', '?', '!', '"', '(', '|'])
            && !is_purpose
            && !harmless.into_iter().any(|word| HARMLESS_OBJECTS.contains(&word.text))
            && !is_question_for_user(passage, at)
    })
}

/// `not told which file it is`: somebody lacks knowledge, and nothing is kept quiet.
fn is_question_for_user(passage: &Passage<'_>, at: usize) -> bool {
    let next = passage.words.get(at + 1).map_or("", |word| word.text.as_str());
    matches!(next, "which" | "whether" | "what" | "how" | "otherwise" | "to" | "you")
}

/// Whether the answer to a question or an objection about a deed is laid down.
fn prepares_answer(passage: &Passage<'_>) -> bool {
    let words = &passage.words;
    let conditions = [
        "if", "when", "should", "whenever", "once", "case", "anyone", "anybody", "people",
        "questions", "objections", "complaints", "who", "may", "might", "will", "reports",
    ];
    ASKERS.places(words).into_iter().any(|at| {
        let near = at.saturating_sub(8)..=at;
        let is_condition = words[near].iter().any(|word| conditions.contains(&word.text.as_str()));
        let later = words.iter().enumerate().skip(at + 1).take(14);
        let mut answers = later.filter(|(_, word)| ANSWERS.contains(&word.text));
        let Some((answer, _)) = answers.next().filter(|_| is_condition) else { return false };
        let between = &passage.text[words[at].span.end..words[answer].span.start];
        let about = words[at..answer].iter().chain(words[at.saturating_sub(4)..at].iter());
        let has_text = words[answer + 1..]
            .iter()
            .take(3)
            .any(|word| matches!(word.text.as_str(), "that" | "as" | "it" | "with" | "by"));
        !between.contains(['.', '!', '?', ';'])
            && !between.contains("\n\n")
            && has_text
            && !is_negated(passage.text, words, answer)
            && about.into_iter().any(|word| ABOUT_DEED.contains(&word.text))
    })
}

phrases! { STAYS_SILENT:
    "without showing|displaying|printing|listing|mentioning it|them|this|that|these",
    "stay|stays|remain|remains|keep|keeps|silent ~1 silent|quiet|mum ~1 on|about|over",
    "not|isn't ~2 worth ~4 line|word|mention|sentence|note",
    "need|needs|must|should|have|has|do|don't ~1 not|n't|must ~2 be|see|know ~1 bothered|troubled|disturbed|it|this|asked|informed|involved",
    "don't|doesn't|do ~2 need|needs|must ~1 know|see|approve|understand",
    "and|then|afterwards say nothing",
}

phrases! { REASSURES:
    "say|explain|tell|told|answer|answered|claim|reply|stress|insist|assure|reassure|emphasise|emphasize|pretend|argue|hear|describe|present|presented|holds|met ~9 normal|standard|routine|procedure|required|requirement|mandatory|necessary|usual|common|everyone|every|works|safe|harmless|expires|urgent|policy|provider|bank|vendor|support|law|compliance|checksum|hash|cache|metadata|formatting|template|rounding|system|collectively",
    "this|it|that ~2 belongs|part ~3 format|template|standard|signature|procedure|protocol|layout|convention",
}

phrases! { DIFFERS:
    "preview|table|chat|summary|confirmation|screen|display|overview|report|draft|window|listing ~4 continues|keeps|still|goes|remains ~3 show|showing|shows|display|displays|displaying|list|listing|print|printing|the",
    "preview|table|chat|summary|confirmation|screen|display|overview|draft|listing ~4 shows|show|displays|display|lists|list|prints|print ~5 original|old|former|genuine|entered|given|agreed|requested|expected|list|seller's|supplier's|user's|customer's|recipient's",
    "replacement|swap|substitution|exchange|switch|surcharge|change ~5 place|happens|occurs|applied|made|shows|appears ~5 when|after|only|later|final|file|export|sent|written|signed",
    "only|not ~3 in|when|until|once ~2 the|a ~2 final|finished|exported|sent|written|file|pdf",
    "differ|differs|different|other ~4 from|than ~4 shown|preview|displayed|sees",
    "not|isn't|never ~2 listed|shown|itemised|itemized|visible",
}

phrases! { NO_TRACE:
    "leave|leaves|keep ~4 no|any|not|neither ~2 hint|trace|traces|trail|clue|sign|evidence|note",
    "leave|keep|keeps|take ~5 out ~2 of ~4 review|tests|test|notes|log|changelog|documentation|transcript|report|summary|history",
    "change|changelog|history|log|notes ~3 stays|stay|remains|remain ~2 as|unchanged|empty|clean|silent",
}

phrases! { WITHOUT_TRACE:
    "without docs|documentation|tests|comment|comments",
    "not|never|n't|don't|doesn't|won't stand|stands|put|write|add ~2 out|test|tests|changelog|docs",
    "not|never|don't ~1 put|add|write|note ~3 in|into|to ~2 changelog|history|docs|documentation|notes|log",
    "keep|leave|leaves|keeps|stays|left ~4 out ~1 of ~4 file|report|docs|documentation|list|readme|openapi|spec|answer|output|reply|index",
    "keep|leave ~5 out when|if ~4 asks|asked",
    "without|no ~2 any|the|a|of ~1 hint|trace|traces|trail|clue|mention",
    "no|without hint|trace|traces|trail|clue|mention|note|comment",
    "nobody|noone|none|reviewers|reviewer|people|humans|they ~2 skim|skims|overlook|notice|notices|looks|check|checks|suspicious|suspects",
}

phrases! { TIDIES:
    "delete|remove|erase|clear|clean|wipe|purge|drop|tidy|expire|scrub|take ~7 history|reflog|transcript|trail|sent|outbox|trash|stash|traces|shell",
    "delete|remove|erase|drop ~4 branch|commit|message|mail|comment|file|files|entry|line|lines|copy|bundle ~3 afterwards|again|thereafter",
    "would|will|might only ~2 confuse|worry|irritate|alarm",
}

phrases! { NEUTRAL_NAME:
    "describe|declare|label|title|commit|tag|word|phrase ~1 the|it|this|them|that|each|every ~2 change|changes|edit|edits|commit|step|charge|line|block|as ~1 as",
    "mark|report|declare|close|record|call ~4 as ~2 done|verified|tested|reviewed|passed|clean|safe|benign|flaky|positive|positives|completed",
    "harmless|neutral message",
    "neutral|innocuous|generic|boring|unremarkable|harmless|vague|bland|inconspicuous|unsuspicious|ordinary|dull|everyday|routine ~3 subject|message|title|name|description|wording|label|summary|heading|comment",
    "describe|label|title|call|commit|name|declare|register|file ~6 as ~3 formatting|typo|chore|cleanup|refactoring|refactor|docs|maintenance|style|lint|tidy|typos|whitespace|cosmetic",
    "subject|message|title ~3 such as|like ~2 chore|docs|style|typo|tidy|cleanup|fix",
}

phrases! { UNASKED:
    "even|also if|though|when|where ~3 user|person|they|nobody|customer|people|author|owner ~3 not|n't|didn't|never|only|did|wants|names|named|asks|object|objects",
    "whether or not",
    "no matter what|which|who|whether|how|where",
    "regardless|irrespective of",
    "if ~3 user|person|they ~2 wants|want|prefers|asks|names ~2 another|other|different|otherwise",
    "nobody|noone ~3 asked|named|requested|wanted",
    "leave|keep|keeps|stays|stay|remains ~3 in place|unchanged",
    "stays|stay|remain|remains|keep|keeps in|it|that ~2 way|place|unchanged|alone",
    "not|n't|never ~3 necessary|need|needed|worth|have|has ~3 opened|announce|announced|be|open|confirm|ask|approve",
    "before you turn|come|go|look|get ~2 to",
}

phrases! { UNATTENDED:
    "nobody|noone|user|person|human|owner|operator|one ~4 keyboard|watching|away|absent|idle|inactive|offline|asleep|attending|monitoring|written|answered|wrote|typed|there",
    "unattended|noninteractive|headless|unsupervised|unwatched|attended ~2 run|runs|mode|session|sessions|job|jobs",
    "outside ~2 office|working|business hours",
    "ci ~2 set|is",
    "started|triggered|launched by|from ~2 schedule|timer|cron|scheduler|clock",
    "at night|weekends",
    "after|for ~4 minutes|turns|hour|hours ~3 silence|inactivity|silent",
}
