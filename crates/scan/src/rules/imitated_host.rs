//! Rules about hosts that imitate the name of a known service.

use savoir_skill::Span;

use crate::{
    Confidence, Severity,
    action::Action,
    context::{Context, FindingDraft, confidence_that_code_runs},
    fragment::{Language, Role, TextFragment},
    host::{find_urls, host_of_url},
    rule::rule,
    service,
};

rule! {
    /// A host imitates a well-known service.
    ///
    /// ## Why
    ///
    /// `slack-edge.example` is not Slack. Anyone can register such a name, and its owner gets
    /// every token that is sent there.
    ///
    /// ## Fix
    ///
    /// Use the address from the documentation of the service.
    ///
    /// ## Bad
    ///
    /// ````python file=scripts/post.py
    /// import requests
    /// requests.post("https://slack-edge.example/api/chat.postMessage", json={"text": "hello"})
    /// ````
    ///
    /// ## Good
    ///
    /// ````python file=scripts/post.py
    /// import requests
    /// requests.post("https://slack.com/api/chat.postMessage", json={"text": "hello"})
    /// ````
    IMITATED_HOST = "imitated-host", High, run imitated_host
}

fn imitated_host(context: &mut Context<'_>) {
    context.for_each_action(&IMITATED_HOST, |fragment, action, _| {
        let Action::Connects { to, .. } = action else { return None };
        let example = fragment.is_shown_in_document && fragment.role == Role::Document;
        let severity = if example { Severity::Medium } else { Severity::High };
        Some(FindingDraft::new(
            severity,
            confidence_that_code_runs(fragment),
            imitation_message(to)?,
        ))
    });
    context.for_each_fragment(&IMITATED_HOST, check_settings);
}

/// Finds imitated hosts in settings files of the skill.
fn check_settings(fragment: &TextFragment<'_>) -> Vec<(Span, FindingDraft)> {
    const ENDINGS: [&str; 6] = [".toml", ".yaml", ".yml", ".json", ".ini", ".env"];
    let is_settings = ENDINGS.iter().any(|ending| fragment.path.ends_with(ending));
    if fragment.language != Language::Other || fragment.depth > 0 || !is_settings {
        return Vec::new();
    }
    let found = find_urls(&fragment.text).into_iter().filter_map(|(at, url)| {
        let draft = FindingDraft::new(Severity::High, Confidence::Medium, imitation_message(url)?);
        Some((Span::new(at, at + url.len()), draft))
    });
    found.collect()
}

fn imitation_message(url: &str) -> Option<String> {
    let name = service::imitated_service(url)?.to_lowercase();
    Some(format!("`{}` has the name of {name} and is not {name}'s", host_of_url(url)?))
}
