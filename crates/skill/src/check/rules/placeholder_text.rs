//! Finds bodies that are not written yet, vague descriptions, and files that are not skills.

use savoir_lint::{Diagnostic, Span};

use crate::{
    check::{Context, rule::rule},
    convert::is_converted_to_prose,
    dialect::{BodyUse, Dialect, is_template_line},
    document::State,
};

rule! {
    /// The body is only a note that it still has to be written, or still has sentences of the
    /// template that `savoir new` writes.
    ///
    /// ## Why
    ///
    /// An agent that loads the skill gets no instructions, although the description promises some.
    ///
    /// ## Bad
    ///
    /// ````markdown
    /// ---
    /// name: invoices
    /// description: Lists open invoices. Use when someone asks what is due.
    /// ---
    /// # Invoices
    ///
    /// TODO: write me
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown
    /// ---
    /// name: invoices
    /// description: Lists open invoices. Use when someone asks what is due.
    /// ---
    /// # Invoices
    ///
    /// Open the ledger and list what is not paid.
    /// ````
    PLACEHOLDER_BODY = "placeholder-body", Warning, run placeholder_body
}

/// A body of more lines has something to say beside its notes.
const MAX_PLACEHOLDER_LINES: usize = 8;

fn placeholder_body(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    let document = &context.reading.document;
    if document.state() == State::Unreadable || context.conventions().body == BodyUse::Tools {
        return;
    }
    let body = document.body_span();
    let mut notes: Option<Span> = None;
    let mut has_text = false;
    let mut at = body.start;
    for (count, line) in body.slice(document.text()).split_inclusive('\n').enumerate() {
        let text = line.trim();
        let span = Span::new(at, at + line.trim_end().len());
        at += line.len();
        if is_template_line(text) {
            found.push(
                Diagnostic::warning(
                    PLACEHOLDER_BODY.code,
                    span,
                    "the body still has text of the template",
                )
                .help("write your own instructions in its place"),
            );
            return;
        }
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        has_text |= count > MAX_PLACEHOLDER_LINES || !is_note(text);
        notes.get_or_insert(span);
    }
    if has_text {
        return;
    }
    if let Some(span) = notes {
        found.push(
            Diagnostic::warning(
                PLACEHOLDER_BODY.code,
                span,
                "the instructions are not written yet",
            )
            .help("write what the agent should do, step by step"),
        );
    }
}

/// Whether a line only says that something is to be written.
pub(super) fn is_note(line: &str) -> bool {
    const TODO_MARKS: [&str; 5] = ["todo", "tbd", "fixme", "xxx", "wip"];
    const NOTE_SENTENCES: [&str; 6] = [
        "lorem ipsum", "coming soon", "to be written", "to be done", "write me", "work in progress",
    ];
    const NOTE_PREFIXES: [&str; 9] =
        ["add", "insert", "write", "put", "your", "describe", "instructions", "content", "text"];
    let edges = |c: char| c.is_whitespace() || "-*_<>[](){}\"'`.!…".contains(c);
    let text = line.trim_matches(edges).to_lowercase();
    let first = text.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    let marked = TODO_MARKS.contains(&first) && is_mark(&text[first.len()..]);
    let begins = NOTE_PREFIXES.contains(&first) && text.ends_with(" here");
    text.is_empty() || marked || begins || NOTE_SENTENCES.iter().any(|note| text.starts_with(note))
}

/// `TODO`, `TODO: …`, `TODO - …` and `TODO write it`, but not `Todo lists are …`.
fn is_mark(rest: &str) -> bool {
    const VAGUE_VERBS: [&str; 9] = [
        "write", "add", "fill", "describe", "document", "complete", "finish", "implement",
        "replace",
    ];
    let rest = rest.trim_start();
    let verb = rest.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    rest.is_empty() || rest.starts_with([':', '-', '–', '—', '(']) || VAGUE_VERBS.contains(&verb)
}

rule! {
    /// The description does not say what the skill does or when to use it.
    ///
    /// ## Why
    ///
    /// Agents choose a skill by its description. A description that fits any skill is chosen by
    /// chance, or never.
    ///
    /// ## Bad
    ///
    /// ````markdown
    /// ---
    /// name: invoices
    /// description: Helps with stuff
    /// ---
    /// # Invoices
    ///
    /// Open the ledger and list what is not paid.
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown
    /// ---
    /// name: invoices
    /// description: Lists open invoices. Use when someone asks what is due.
    /// ---
    /// # Invoices
    ///
    /// Open the ledger and list what is not paid.
    /// ````
    VAGUE_DESCRIPTION = "vague-description", Warning, run vague_description
}

/// Words of which a description may have any number and still say nothing.
const VAGUE_WORDS: [&str; 60] = [
    "a", "an", "the", "this", "my", "your", "some", "all", "any", "various", "many", "of", "with",
    "for", "to", "and", "or", "that", "which", "it", "you", "me", "us", "users", "user", "people",
    "skill", "skills", "tool", "helper", "agent", "useful", "general", "misc", "good", "help",
    "helps", "helping", "assist", "assists", "do", "does", "doing", "handle", "handles", "work",
    "works", "manage", "manages", "process", "processes", "stuff", "things", "thing", "something",
    "anything", "everything", "tasks", "task", "etc",
];

fn vague_description(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    let document = &context.reading.document;
    if document.state() == State::Unreadable {
        return;
    }
    let Some(node) = document.field("description") else { return };
    if node.text().is_some_and(is_vague) {
        found.push(
            Diagnostic::warning(
                VAGUE_DESCRIPTION.code,
                node.span,
                "the description would fit any skill",
            )
            .field("description")
            .help("say what the skill does, and when to use it: `Use when …`"),
        );
    }
}

fn is_vague(description: &str) -> bool {
    let lower = description.to_lowercase();
    let words: Vec<&str> =
        lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let only_vague = !words.is_empty() && words.iter().all(|word| VAGUE_WORDS.contains(word));
    // `Helps with documents` names a thing, and says nothing about it.
    let one_thing = words.len() == 3 && lower.starts_with("helps with ");
    only_vague || one_thing
}

rule! {
    /// The file is plain text: it has no frontmatter and no heading.
    ///
    /// ## Why
    ///
    /// It is read as prose, as skillrt defines it: `savoir run`, `install` and `publish` accept it.
    /// Most agents list only files with frontmatter, and a note that is not meant for agents looks
    /// the same.
    ///
    /// ## Bad
    ///
    /// ````markdown
    /// Remember the milk. Call Ada on Monday.
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown
    /// ---
    /// name: demo
    /// description: Keeps the shopping list. Use when someone runs out of something.
    /// ---
    /// # Shopping
    ///
    /// Add what is missing to `list.md`.
    /// ````
    NOT_A_SKILL = "not-a-skill", Warning, run not_a_skill
}

fn not_a_skill(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    let document = &context.reading.document;
    let guessed = context.options.dialect.is_none() && context.dialect() == Dialect::PROSE;
    let is_stub = document.text().trim_start().starts_with('@');
    // Savoir itself wrote a text that stores the frontmatter of its original.
    if !guessed || is_stub || is_converted_to_prose(document) {
        return;
    }
    if document.outline().headings.is_empty() {
        let message = "this is plain text without frontmatter and heading, and is read as prose";
        found.push(
            Diagnostic::warning(NOT_A_SKILL.code, document.head_span(), message)
                .help("for agents that list only files with frontmatter, start the file with `---`, `name`, `description` and `---`; if it is meant to have none, name the dialect: `--dialect prose`"),
        );
    } else {
        let message = "there is no frontmatter, so most agents do not list this skill";
        found.push(Diagnostic::warning("missing-frontmatter", document.head_span(), message).help(
            "start the file with `---`, `name`, `description` and `---`; if it is meant to have \
                 none, name the dialect: `--dialect prose`",
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::rules::testing::{find, skill};

    #[test]
    fn notes_are_not_instructions() {
        let count = |body: &str| find(PLACEHOLDER_BODY.code, &skill(body)).len();
        for body in [
            "TODO: write me\n",
            "# Demo\n\nTODO\n",
            "- TBD\n- fixme: more\n",
            "Lorem ipsum dolor sit amet.\n",
            "<!-- TODO -->\n",
            "[Your instructions here]\n",
            "# Demo\n\nWork on it.\n\n1. Say what to look at first.\n2. Say what to do with it.\n",
            "Coming soon...\n",
        ] {
            assert_eq!(count(body), 1, "{body}");
        }
        for body in [
            "Describe the picture.\n",
            "Todo lists are kept in `todo.md`.\n",
            "# Demo\n\nTODO: more\n\nRead the file.\n",
            "Write the result to stdout.\n",
            "Add the file to the index.\n",
            "",
        ] {
            assert_eq!(count(body), 0, "{body}");
        }
    }

    #[test]
    fn descriptions_that_fit_any_skill() {
        for vague in
            ["Helps with stuff", "A skill that does things.", "Helps with documents", "helper"]
        {
            assert!(is_vague(vague), "{vague}");
        }
        for good in [
            "Helps with PDF forms",
            "Lists invoices",
            "Todo manager",
            "处理文件",
            "Processes refunds",
            "Shows a rule. Use when learning.",
        ] {
            assert!(!is_vague(good), "{good}");
        }
    }

    #[test]
    fn text_without_frontmatter_is_reported() {
        let count = |text: &str| find(NOT_A_SKILL.code, text).len();
        assert_eq!(count("Remember the milk.\n"), 1);
        let page = "# Shopping\n\nRemember the milk.\n";
        assert_eq!(count(page), 0);
        assert_eq!(find("missing-frontmatter", page).len(), 1);
        assert_eq!(count("@../other/SKILL.md\n"), 0);
        assert_eq!(count(&skill("Remember the milk.\n")), 0);
    }
}
