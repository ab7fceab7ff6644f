//! Finds empty bodies and bodies that are too long.

use memchr::memchr_iter;
use savoir_lint::{Diagnostic, Span};

use crate::{
    check::{Context, rule::rule},
    dialect::BodyUse,
    document::State,
    limits::{ADVISED_BODY_LINES, ADVISED_BODY_TOKENS},
    tokens::estimate_tokens,
};

rule! {
    /// There is no text after the frontmatter.
    ///
    /// ## Why
    ///
    /// An agent that starts the skill gets no instructions.
    ///
    /// ## Bad
    ///
    /// ````markdown
    /// ---
    /// name: demo
    /// description: Shows a rule. Use when learning.
    /// ---
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown
    /// ---
    /// name: demo
    /// description: Shows a rule. Use when learning.
    /// ---
    /// Say hello in the language of the user.
    /// ````
    EMPTY_BODY = "empty-body", Warning, run empty_body
}

fn empty_body(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    let document = &context.reading.document;
    // Without tools such a file is an error already.
    let already_reported =
        document.state() == State::Unreadable || context.conventions().body == BodyUse::Tools;
    let Some(close) = document.layout().closed_block().and_then(|block| block.close) else {
        return;
    };
    if !already_reported && document.body().trim_start().is_empty() {
        found.push(
            Diagnostic::warning(EMPTY_BODY.code, close, "nothing follows the frontmatter")
                .help("add the instructions that the agent is to follow"),
        );
    }
}

rule! {
    /// The body is longer than an agent should load at once.
    ///
    /// ## Why
    ///
    /// When a skill is started, its whole body is added to the context. The base format advises at
    /// most 500 lines and 5,000 tokens; put details that are rarely needed into a file that the
    /// body links to. `--strict` reports every longer body; without it, only bodies of more than
    /// 10,000 tokens are reported.
    ///
    /// ## Bad
    ///
    /// ````markdown strict repeat=501
    /// ---
    /// name: demo
    /// description: Shows a rule. Use when learning.
    /// ---
    /// One more line.
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown with=references/details.md
    /// ---
    /// name: demo
    /// description: Shows a rule. Use when learning.
    /// ---
    /// Read [the details](references/details.md) when the user asks for them.
    /// ````
    LONG_BODY = "long-body", Warning, run long_body
}

/// No text has more tokens than one for two bytes, by our estimate.
const MIN_BYTES_PER_TOKEN: usize = 2;

/// A body of so many times the advised tokens is reported also by a check that is not strict.
const NON_STRICT_FACTOR: usize = 2;

fn long_body(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    if context.conventions().body == BodyUse::Tools {
        return;
    }
    let document = &context.reading.document;
    let body = document.body();
    // A line has at least its end.
    let short = body.len() <= ADVISED_BODY_TOKENS * MIN_BYTES_PER_TOKEN;
    if short && body.len() <= ADVISED_BODY_LINES {
        return;
    }
    let lines = document.outline().lines;
    let tokens = if short { 0 } else { estimate_tokens(body) };
    if lines <= ADVISED_BODY_LINES && tokens <= ADVISED_BODY_TOKENS {
        return;
    }
    let tokens = estimate_tokens(body);
    // A little more is a matter of style.
    if tokens <= NON_STRICT_FACTOR * ADVISED_BODY_TOKENS
        && !context.options.is_strict(LONG_BODY.code)
    {
        return;
    }
    let message = format!(
        "the body has {lines} lines and about {tokens} tokens, \
         the advice is {ADVISED_BODY_LINES} lines and {ADVISED_BODY_TOKENS} tokens"
    );
    let start = document.body_span().start;
    let over = memchr_iter(b'\n', body.as_bytes()).nth(ADVISED_BODY_LINES - 1);
    let at = over.map_or(start, |newline| start + newline + 1);
    found.push(
        Diagnostic::warning(LONG_BODY.code, Span::at(at), message)
            .help("move details that are rarely needed into `references/` and link to them"),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        check::rules::testing::{find, find_as, skill},
        dialect::Dialect,
    };

    #[test]
    fn blank_body_is_empty() {
        assert_eq!(find(EMPTY_BODY.code, &skill("\n \n")).len(), 1);
        assert_eq!(find(EMPTY_BODY.code, &skill("x")).len(), 0);
        assert_eq!(find(EMPTY_BODY.code, "").len(), 0);
        assert_eq!(find(EMPTY_BODY.code, "---\nname: x\n").len(), 0);
    }

    #[test]
    fn lines_and_tokens_count() {
        let count = |body: &str| find(LONG_BODY.code, &skill(body)).len();
        assert_eq!(count(&"x\n".repeat(500)), 0);
        assert_eq!(count(&"\n".repeat(501)), 1);
        assert_eq!(count(&"four".repeat(5000)), 0);
        assert_eq!(count(&"four".repeat(5001)), 1);
        assert_eq!(count(&"日".repeat(5001)), 1);
        assert_eq!(count(&"ж".repeat(9000)), 0);
        let text = skill(&"x\n".repeat(501));
        assert!(find_as(LONG_BODY.code, &text, Dialect::GIBBERISH).is_empty());
        let found = find(LONG_BODY.code, &text);
        assert!(found[0].message.contains("501 lines and about 250 tokens"), "{found:?}");
        assert_eq!(&text[found[0].span.start..], "x\n");
    }

    #[test]
    fn token_estimate_is_an_upper_bound() {
        for text in ["abcd", "ж", "日", "🙂", "a", "é日🙂"] {
            let text = text.repeat(100);
            assert!(estimate_tokens(&text) * MIN_BYTES_PER_TOKEN <= text.len(), "{text}");
        }
    }
}
