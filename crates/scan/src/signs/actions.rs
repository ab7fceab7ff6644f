//! Signs of what a text makes the agent do, in English.

use std::sync::LazyLock;

use crate::{
    account::has_account,
    passage::{Passage, is_negated},
    phrase::{Phrases, phrases},
};

use super::Signs;

pub(super) fn add_signs(passage: &Passage<'_>, signs: &mut Signs) {
    let wants = |phrases: &'static LazyLock<Phrases>| passage.orders(phrases);
    signs.add_if(passage.sends() == 2, Signs::SENDS);
    let secrets = passage.secrets();
    signs.add_if(secrets > 1, Signs::SECRET);
    signs.add_if(secrets > 2, Signs::GRAVE);
    let is_shared = passage.matches(&SHARED_PLACE);
    let has_host = passage.address() > 1;
    signs.add_if(is_shared, Signs::SHARED_PLACE);
    if (has_host || is_shared && secrets > 1) && !passage.sends_key_to_its_service() {
        add_signs_of_sentences(passage, signs);
    }
    signs.add_if(wants(&MOVES_SECRET), Signs::MOVES_SECRET);
    signs.add_if(passage.mentions_user_data() || passage.matches(&DATA), Signs::DATA);
    signs.add_if(passage.asks_for_everything(), Signs::EVERYTHING);
    signs.add_if(wants(&CONSENTS), Signs::CONSENTS);
    signs.add_if(passage.mentions_conversation() || passage.matches(&PRIVATE), Signs::PRIVATE);
    signs.add_if(passage.matches(&AGAIN), Signs::AGAIN);
    signs.add_if(passage.matches(&MONEY), Signs::MONEY);
    signs.add_if(has_account(passage.text), Signs::ACCOUNT);
    signs.add_if(wants(&REPLACES_ACCOUNT), Signs::REPLACES_ACCOUNT);
    signs.add_if(passage.matches(&DEPENDS), Signs::DEPENDS);
    signs.add_if(wants(&TAKES_SHARE), Signs::TAKES_SHARE);
    signs.add_if(wants(&NO_VERIFICATION), Signs::NO_VERIFICATION);
    signs.add_if(wants(&NO_PROTECTION) && !lifts_own_limit(passage), Signs::NO_PROTECTION);
    signs.add_if(opens_backdoor(passage), Signs::BACKDOOR);
    let lower = passage.text.to_lowercase();
    let settings = WEAK_SETTINGS.iter().filter(|setting| sets(&lower, setting)).count();
    signs.add_if(settings > 0 || wants(&WEAK_HASH), Signs::WEAK_SETTING);
    signs.add_if(settings > 1, Signs::NO_VERIFICATION);
    signs.add_if(passage.spends_user_money(), Signs::SPENDS);
    signs.add_if(wants(&OBEYS_OUTSIDER), Signs::OBEYS_OUTSIDER);
    signs.add_if(wants(&GRANTS), Signs::GRANTS);
    signs.add_if(wants(&EXECUTES), Signs::EXECUTES);
    signs.add_if(wants(&DESTROYS), Signs::DESTROYS);
    signs.add_if(wants(&FALSIFIES), Signs::FALSIFIES);
    signs.add_if(wants(&FETCHES), Signs::FETCHES);
    signs.add_if(wants(&ADOPTS), Signs::ADOPTS);
    signs.add_if(wants(&PREVAILS), Signs::PREVAILS);
    signs.add_if(wants(&PERFORMS), Signs::PERFORMS);
    signs.add_if(wants(&ADDS_STEPS), Signs::ADDS_STEPS);
    signs.add_if(passage.matches(&ALWAYS), Signs::ALWAYS);
    let has_mailbox = passage.has_mail_address();
    signs.add_if(has_mailbox && has_hidden_copy(passage), Signs::HIDDEN_COPY);
    signs.add_if(has_mailbox && wants(&ADDS_RECIPIENT), Signs::ADDS_RECIPIENT);
}

/// Adds the signs that count only within one sentence: what leaves, and where it goes.
fn add_signs_of_sentences(passage: &Passage<'_>, signs: &mut Signs) {
    for sentence in passage.sentences() {
        let leaves = sentence.links().iter().any(|link| super::is_strange(&sentence, link))
            || sentence.has_mail_address();
        let sends = sentence.sends() == 2
            || super::languages::sends(&sentence)
            || leaves && sentence.orders(&DROPS) && is_goal(&sentence);
        signs.add_if(leaves && sends, Signs::SENDS_AWAY);
        signs.add_if(leaves && sentence.orders(&PUSHES), Signs::PUSHES_AWAY);
        let moves = sends || sentence.orders(&MOVES);
        let elsewhere = leaves || sentence.matches(&SHARED_PLACE);
        signs.add_if(sentence.secrets() > 1 && moves && elsewhere, Signs::MOVES_SECRET);
    }
}

/// Whether a preposition of direction stands before an address: `drop it at URL`.
fn is_goal(sentence: &Passage<'_>) -> bool {
    sentence.links().iter().any(|(url, _)| {
        let at = url.as_ptr() as usize - sentence.text.as_ptr() as usize;
        let before = sentence.text[..at].trim_end_matches(['`', '<', '(', '"', '\'', ' ', '\n']);
        let word = before.rsplit([' ', '\n', '(']).next().unwrap_or_default();
        matches!(word, "to" | "at" | "into" | "under" | "with" | "behind" | "onto" | "in")
    })
}

/// Whether a login lifts the limit of a service: `set a token to lift the rate limit`.
fn lifts_own_limit(passage: &Passage<'_>) -> bool {
    passage
        .says(&["to lift the rate limit", "to raise the rate limit", "to increase the rate limit"])
        && passage.secrets() > 0
}

/// Whether a text has a setting, and not only the advice against it: `do not use chmod 777`.
fn sets(lower: &str, setting: &str) -> bool {
    lower.match_indices(setting).any(|(at, _)| {
        let sentence = lower[..at].rsplit(['.', ';', '\n', '|']).next().unwrap_or_default();
        let mut before = sentence.split_whitespace().rev().take(4);
        !before.any(|word| matches!(word, "not" | "never" | "don't" | "avoid" | "without"))
    })
}

/// Whether a sentence lets somebody in, unlike `allow users to query a view` and the name of a secret.
fn opens_backdoor(passage: &Passage<'_>) -> bool {
    let is_meant = |from: usize, to: usize| {
        let words = &passage.words[from..to];
        let asks = words.windows(2).any(|pair| pair[0].text == "to" && pair[1].text == "query");
        let adds = matches!(words[0].text.as_str(), "add" | "create" | "insert" | "leave");
        let text = &passage.text[words[0].span.start..words[words.len() - 1].span.end];
        let is_negated = is_negated(passage.text, &passage.words, from);
        !(asks || is_negated || adds && text.contains([':', '=']))
    };
    passage.find_where(&BACKDOOR, is_meant).is_some()
}

/// Settings that switch a protection off, as they are written in code.
const WEAK_SETTINGS: [&str; 22] = [
    "alg: none",
    "alg:none",
    "\"alg\": \"none\"",
    "[\"none\"",
    "['none'",
    "usescleartexttraffic=\"true\"",
    "debuggable=\"true\"",
    "badcertificatecallback",
    "rejectunauthorized: false",
    "node_tls_reject_unauthorized",
    "insecureskipverify",
    "verify=false",
    "verify = false",
    "stricthostkeychecking no",
    "jwt.decode",
    "algorithms: [\"none\"",
    "cors(*)",
    "access-control-allow-origin: *",
    "permitrootlogin yes",
    "nopasswd",
    "administratoraccess",
    "chmod 777",
];

/// Whether an address that is written in the text gets a blind copy.
fn has_hidden_copy(passage: &Passage<'_>) -> bool {
    let lower = passage.text.to_lowercase();
    let labels = lower.match_indices("bcc").map(|(at, _)| at + 3);
    let labeled = labels.chain(lower.match_indices("blind").map(|(at, _)| at + 5)).any(|at| {
        let rest = &lower[at..];
        let line = rest.split('\n').next().unwrap_or_default();
        line.split_once('@').is_some_and(|(before, host)| {
            before.len() < 40 && !host.starts_with("example.") && !host.starts_with("your")
        })
    });
    labeled && !passage.says(&["example", "never"])
        || passage.says(&[
            "as a blind copy", "as blind copy", "in blind copy", "as a hidden copy", "in bcc",
            "as bcc", "as a bcc",
        ]) && passage.sends() == 2
}

phrases! { MOVES:
    "append|put|paste|write|include|collect|attach|copy|list|print|embed|insert|commit|add|place|gather|holds|hold",
}

phrases! { MOVES_SECRET:
    "append|put|paste|write|include|collect|attach|copy|list|print|insert|commit|add|place|gather|push|upload|send ~3 values|value|content|contents ~4 variable|variables|secrets|environment",
    "append|put|paste|write|include|collect|attach|copy|list|print|embed|insert|commit|add|place|gather|push|upload|send ~9 secrets|tokens|passwords|keys|credentials ~14 description|request|issue|wiki|comment|page|ticket|log|repository|branch|message|note",
}

phrases! { CONSENTS:
    "ask|asks ~3 user|them|person|owner|customer|people ~6 permission|consent|whether|before|first|if|agrees|ok|who",
    "ask|asks before|first",
    "only|if|after|once|unless|until ~3 user|person|owner|they|customer ~3 agrees|agree|agreed|approves|approved|consents|confirms|confirmed|allows",
    "confirmation|approval|consent|permission|agreement ~2 of|from|by ~2 user|person|owner",
    "with ~1 user's|person's|owner's|their|explicit ~1 consent|approval|permission",
    "wenn|sobald|erst ~6 zugestimmt|zustimmt|einverstanden|bestätigt",
}

phrases! { PRIVATE:
    "transcript|attendees|diagnosis|medication|salary|passport|iban",
    "customer's|customers|client|clients|client's|patient|patients|employee|employees ~3 list|data|names|name|address|addresses|files|file|record|records|phone",
    "names ~3 addresses|phone|numbers",
}

phrases! { AGAIN:
    "at|from ~2 start|beginning|startup|outset",
    "before|at|on|for each|every|any ~1 job|task|run|session|use|start|request|step|question|morning",
    "first of all",
    "each|every day|time|hour|morning|session|week",
}

phrases! { SHARED_PLACE:
    "pull|merge request|requests",
    "wiki|gist|forum|ticket|issue|comment|changelog|description",
}

phrases! { DATA:
    "address|addresses|list|transcript|attendees|attachments|original|contract|draft|message|mail|mails|letter|resume|document|documents|event|events|sheet|sheets|event|newsletter|newsletters|reply|replies",
}

phrases! { MONEY:
    "iban|bic|wallet|payee|beneficiary|payout|payouts|payment|payments|invoice|invoices|transfer|transfers|transaction|transactions|surcharge|commission|fee|bank|account|recipient|destination|refund|donation|totals|total|sums|price|prices",
}

phrases! { REPLACES_ACCOUNT:
    "print|write|use|uses|put|show|enter|fill|place|insert|give|pay|send|set ~14 instead|place|lieu|rather ~1 of|than ~6 account|iban|seller's|supplier|supplier's|user's|payee|recipient|given|original|own|vendor's|creditor's|that|one|address|customer's",
    "replace|replaces|swap|swaps|substitute|substitutes|exchange|exchanges|overwrite|overwrites|change|changes|divert|redirect|reroute|rewrite ~7 account|iban|bank|wallet|recipient|destination|payee|beneficiary|address|details|bic ~4 with|by|for|to|of|if|when",
    "replace|replaces|swap|swaps|substitute|overwrite|overwrites|exchange ~2 recipient|destination|payee|beneficiary|wallet|iban ~3 with|by|for",
    "use|uses|takes|gets|goes ~14 as ~2 recipient|destination|payee|beneficiary ~12 no|whichever|whatever|regardless|instead|even|although",
}

phrases! { DEPENDS:
    "above|over|exceeds|exceed|larger|greater|more|least|from|below|under|higher ~3 than|amount|sum|a|eur|usd|on|1|2|3|4|5|10|50|100|200|250|300|500|1000|2500",
    "every|each third|fourth|fifth|tenth|second|nth|10th|5th|3rd",
    "if|when|for|where ~8 amount|total|totals|sum|sums|buyer|customer|larger|abroad|foreign|public|exceeds|exceed",
}

phrases! { TAKES_SHARE:
    "route|send|skim|divert|deduct|transfer|move|forward|pay|credit ~3 percent|fraction|share|part|portion|cent|cents|remainder|rest ~12 to|into|wallet|account",
    "add|include|deduct|charge ~6 fee|percent|commission|tip|surcharge|donation ~14 to|wallet|account",
}

phrases! { NO_VERIFICATION:
    "turn|switch|disable|disables|skip|skips|remove|removes|bypass|bypasses|omit|drop|suppress|deactivate|ignore ~8 certificate|certificates|tls|ssl|hostname|signature|signatures|x509",
    "verify|verification|rejectunauthorized ~2 false|off|none",
}

phrases! { NO_PROTECTION:
    "take|takes|leave ~2 rate limiter|limiter|limit|helmet|csrf|auth|login ~2 limiter|off|out|away",
    "comment|comments out ~6 helmet|csrf|auth|limiter|check|checks|middleware|guard",
    "change|replace ~4 verify ~14 decode",
    "termination|deletion protection ~3 off|disabled|switched",
    "turn|switch|disable|disables|skip|skips|remove|removes|bypass|bypasses|omit|drop|relax|lift|deactivate|take|widen|loosen ~7 csrf|cors|authentication|authorization|auth|login|permission|permissions|rate|limiter|limits|2fa|mfa|captcha|sanitization|escaping|lockout|audit|firewall|encryption|session|role|roles|guard|middleware ~4 off|check|checks|protection|limit|limits|limiting|limiter|out|middleware|route|guard|and|in|from|validation|requirement",
    "rate limits|limit|limiting ~1 remove|removed|off",
    "disable|remove|skip|bypass ~1 csrf|cors|authentication|authorization|2fa|mfa|captcha",
}

phrases! { BACKDOOR:
    "let|lets|allow|allows|admit|permit|pass|accept|accepts|exempt ~4 request|requests|call|calls|caller|callers|client|anyone|user|users|everything|everyone ~9 header|cookie|parameter|query|agent|token ~10 without|through|pass|in|unchecked|freely",
    "let|lets|allow|allows|admit|accept|accepts ~5 without ~2 session|login|password|token|authentication|credentials|check",
    "return|returns|answer|answers true|ok|valid|success|authenticated ~3 if|when|whenever|for|as ~9 header|empty|blank|missing|query|parameter|debug|hash|password|token|cookie",
    "accept|accepts ~3 password|passwords|token|tokens|login|logins|signature ~8 empty|blank|missing|null|any|hash|unset",
    "accept|accepts any|every|all|each ~2 password|passwords|token|tokens|signature|certificate|certificates",
    "add|create|insert|seed|plant|leave ~3 maintenance|support|hidden|secret|master|backdoor|emergency|shadow ~2 account|user|login|password|route|endpoint|admin|administrator",
    "fixed|hard coded|known|master|universal ~1 password|token|key ~6 all|every|admin|rights|accounts|login",
    "add|create|plant|build|leave ~3 backdoor|bypass",
}

phrases! { WEAK_HASH:
    "passwords|password ~4 md5|sha1|plain|plaintext|unsalted|base64",
    "md5|sha1 ~4 passwords|password",
    "no|without salt",
    "bcrypt|argon2|pbkdf2 ~2 rounds|cost|iterations ~3 1|one|2|4",
    "reflect|allow|accept any|every|all ~1 origin|origins",
}

phrases! { DROPS:
    "put|puts|drop|drops|relay|carry|store|register|hand|deliver|lodge|place|leave|enter|copy|share|move|save|ship|pass|mirror|write|log|stream|report|note|record|give|announce",
}

// Orders of somebody who is neither the user nor the author.
phrases! { OBEYS_OUTSIDER:
    "what|whatever|everything ~4 asks|says|wants|tells|demands|writes|orders|posts ~3 is|gets|be ~3 done|carried|executed|followed|performed",
    "is|are|becomes|become ~1 now|also|from ~2 operator|owner|operations|administrator|admin|supervisor|headquarters|staff",
    "operator|maintainer|steward|controller|dispatcher|operations ~2 directive|directives|order|orders|command|commands",
    "how ~4 team|office|operator|maintainers|staff ~2 reaches|reach|tells|contacts|instructs ~1 you",
    "work orders|order ~2 for|to you",
    "tasks|orders|wishes ~5 before|above|over ~3 tasks|orders|wishes ~3 human|user|person",
    "anyone|anybody|whoever ~6 authorised|authorized|trusted|operator",
}

phrases! { GRANTS:
    "add|invite|grant|make|promote|assign|share|transfer|give|include|set ~10 admin|administrator|owner|collaborator|editor|maintainer|role|write|full|guest|guests|member|readers",
    "forwarding|mail|filter|inbox rule|rules",
    "deploy|ssh|api key ~4 add|register|upload",
    "share ~4 with",
}

phrases! { EXECUTES:
    "install|download|launch|schedule|execute ~6 service|agent|daemon|script|binary|extension|plugin|program|hook|package|helper|command|commands",
}

phrases! { DESTROYS:
    "delete|wipe|erase|drop|purge|overwrite|truncate|shred ~6 backup|backups|history|database|databases|tables|bucket|volumes|snapshots|records|production",
}

phrases! { FALSIFIES:
    "raise|lower|inflate|adjust|alter|falsify|invent|understate|overstate|shift ~5 figure|figures|numbers|total|totals|score|scores|rating|ratings|results|prices|price|findings|ranking|percent|reading|readings|dose|grades|grade",
    "replace|swap|drop|omit|insert|change ~4 clause|clauses|citation|citations|source|sources|quote|finding|findings|recommendation|link|links|reference|references|test|tests",
}

phrases! { FETCHES:
    "fetch|download|load|retrieve|get|visit|open|curl|wget|read|check|poll|query|request|consult|pull|look|lives|lies|stands|ask|obtain|grab|import",
}

phrases! { ADOPTS:
    "lines|entries|points|steps|items|posts|orders|requests|tasks ~8 are|is|get ~2 to ~1 be implemented|executed|followed|performed|obeyed|done|carried",
    "regard|treat|consider|take|read|view|count|accept|see|handle|interpret|understand|use|adopt|apply ~10 as|like ~6 continuation|chapter|part|extension|supplement|addition|amendment|appendix|instruction|instructions|prompt|orders|directive|directives|policy|binding|authoritative|mandatory|assignment|task|tasks|commands|wish",
    "its|their|the ~2 points|lines|entries|items|rules|content|text|steps|answer|reply ~2 is|are ~2 your|binding|orders|instructions|assignment|tasks|directives|commands",
    "adopt|adopts ~4 step|steps|rule|rules|instruction|instructions|line|lines|entry|entries",
    "becomes|become ~3 part|instruction|instructions|prompt|rule|rules",
    "is|are a|your directive|order|command|assignment ~2 for ~1 you",
}

phrases! { PREVAILS:
    "wins|win|prevails|prevail|overrides|override|supersedes|supersede|outranks|outrank|beats|beat|trumps|trump|decides|governs|overrules ~8 file|skill|document|page|user|person|this|these|others|guidelines|instructions|rules|differs|differ|else|says|asked|conflict|everything",
    "conflict|conflicts|contradiction|doubt|disagree|differ|differs ~5 wins|prevails|beats|overrides|counts|applies|right|first|outranks",
    "counts|weighs|ranks|applies|stands ~2 more|higher|above|over|before ~3 than|this|file|user|skill|person|your|the",
    "takes|take|has|have precedence|priority ~2 over",
    "replace|replaces|overwrite|overwrites|supplant|let ~4 rules|instructions|steps|sections|text ~3 below|above|here|file|document|skill",
}

phrases! { PERFORMS:
    "without delay|hesitation|discussion|objection",
    "perform|performs|carry|execute|obey|follow|act|comply|implement|implemented|heed|fulfil|fulfill|work|process|complete ~3 them|it|those|these|each|everything|anything|whatever|all|what|its|through|every|on ~8",
}

phrases! { ADDS_STEPS:
    "can|may|might|could|also ~4 add|change|changes|contain|include|ask|demand|order|name|list ~6 steps|tools|commands|actions|tasks|instructions|shell|programs|files|settings",
    "ask|asks|want|wants|demand|order|call|calls ~2 for ~3 commands|files|programs|settings|shell|tools",
    "steps|rules|it|they|instructions|text|content may|can change ~2 daily|weekly|hourly|any|anytime|often",
    "commands|programs|shell|scripts ~2 included",
}

phrases! { PUSHES:
    "push|pushes|mirror|mirrors|commit ~16 repository|repo|remote|git|branch",
}

phrases! { ALWAYS:
    "every|each|all|always|any ~2 reply|replies|mail|mails|message|messages|document|documents|event|events|sheet|sheets|invoice|file|files|time|run|thread|newsletters|newsletter|of|new",
    "part ~2 of ~2 template|format|signature|pattern|layout",
    "always|automatically|permanently",
    "same pattern",
}

phrases! { ADDS_RECIPIENT:
    "add|invite|include|put|append|copy|cc ~12 guest|guests|attendee|attendees|recipient|recipients|participant|participants|editor|viewer|member|members|collaborator|cc|copy|invitees|list",
    "goes|go|send|sends|forward|forwards|delivered|copied ~3 also|too|additionally ~1 to",
    "goes|send|sends|forward|forwards ~3 also|too|additionally ~3 to",
    "also|additionally|too ~2 goes|go|send|sends|forward|forwards|copy ~3 to",
    "reply to ~10 to|be|is|into",
    "share|shares|shared|sharing ~6 with",
    "forwarding rule|address|filter",
    "create|set|add|make ~4 rule|filter|forward|redirect ~6 to",
}
