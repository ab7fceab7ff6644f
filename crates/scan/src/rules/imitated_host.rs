//! Hosts that carry the name of a service that they are not.

use savoir_skill::Span;

use crate::{
    Confidence, Severity,
    act::Act,
    context::{Context, Told, sureness},
    host::{host, urls},
    piece::{Language, Piece, Role},
    rule::rule,
    service,
};

rule! {
    /// A host imitates a well-known service.
    ///
    /// ## Why
    ///
    /// `slack-edge.example` is not Slack. Anyone can register such a name, and tokens that are sent
    /// there belong to its owner.
    ///
    /// ## Fix
    ///
    /// Use the address that the documentation of the service gives.
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
    context.each_act(&IMITATED_HOST, |piece, act, _| {
        let Act::Network { to, .. } = act else { return None };
        let example = piece.shown && piece.role == Role::Document;
        let severity = if example { Severity::Medium } else { Severity::High };
        Some(Told::new(severity, sureness(piece), message(to)?))
    });
    context.each_piece(&IMITATED_HOST, settings);
}

/// Addresses in settings of the skill, which its scripts talk to.
fn settings(piece: &Piece<'_>) -> Vec<(Span, Told)> {
    const ENDINGS: [&str; 6] = [".toml", ".yaml", ".yml", ".json", ".ini", ".env"];
    let is_settings = ENDINGS.iter().any(|ending| piece.path.ends_with(ending));
    if piece.language != Language::Other || piece.depth > 0 || !is_settings {
        return Vec::new();
    }
    let found = urls(&piece.text).into_iter().filter_map(|(at, url)| {
        let told = Told::new(Severity::High, Confidence::Medium, message(url)?);
        Some((Span::new(at, at + url.len()), told))
    });
    found.collect()
}

fn message(url: &str) -> Option<String> {
    let name = service::imitated(url)?.to_lowercase();
    Some(format!("`{}` has the name of {name} and is not {name}'s", host(url)?))
}
