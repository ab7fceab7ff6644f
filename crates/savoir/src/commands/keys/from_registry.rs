//! `savoir keys trust --from-registry`: trusts keys that a registry lists.

use std::{fmt::Write as _, process::ExitCode};

use savoir_engine::approval::printable;
use savoir_package::{
    registry::{Client, Name, wire::KeyInfo},
    trust::{PublicKey, Role, TrustStore, TrustedKey},
};
use serde_json::{Value, json};

use super::{Trust, as_json, line};
use crate::{ask, error::CommandError, output, runtime, trust::Keyring};

/// The keys that a registry lists for a namespace.
struct ListedKey {
    address: String,
    keys: Vec<KeyInfo>,
    /// Whether the name is that of a skill without a namespace.
    is_skill: bool,
}

/// A key to trust.
struct NewTrust {
    trusted: TrustedKey,
    /// The current trust in the key, if it is limited to other skills.
    before: Option<TrustedKey>,
}

impl NewTrust {
    fn text(&self) -> String {
        let before = self.before.as_ref().and_then(|before| before.namespaces.as_ref());
        let before = before.map(|names| format!("; until now only for {}", names.join(", ")));
        line(&self.trusted) + &printable(&before.unwrap_or_default())
    }
}

pub(super) fn run(namespace: &str, args: &Trust) -> Result<ExitCode, CommandError> {
    trust(namespace, args)
}

fn trust(namespace: &str, args: &Trust) -> Result<ExitCode, CommandError> {
    let name = Name::parse(namespace).map_err(|error| {
        CommandError::input(format!("`{namespace}` is not a namespace")).with_code(error.code())
    })?;
    let client = args.remote.client_of(&name)?;
    let offered = runtime::block_on(ask_registry(&client, &name, namespace))?;
    let keyring = Keyring::of_user()?;
    let store = keyring.trusted()?;
    let namespaces = limits(namespace, args, &offered);
    let (mut fresh, mut known) = (Vec::new(), Vec::new());
    for info in offered.keys.iter().filter(|key| key.revoked_at.is_none()) {
        let key = parse_key(info, &offered.address)?;
        let Some(before) = store.get(&key.key_id()) else {
            // One key may sign several skills, so the name of one of them is not a publisher.
            let publisher = args.publisher.clone().unwrap_or_else(|| {
                let skill = offered.is_skill.then(|| format!("the publisher of {namespace}"));
                skill.unwrap_or_else(|| namespace.to_owned())
            });
            let (role, namespaces) = (Role::Publisher, namespaces.clone());
            let trusted = TrustedKey { key, publisher, role, namespaces };
            fresh.push(NewTrust { trusted, before: None });
            continue;
        };
        // The earlier decision of the user is kept, except that more skills are added.
        match widened(before, namespaces.as_deref()) {
            Some(trusted) => fresh.push(NewTrust { trusted, before: Some(before.clone()) }),
            None => known.push(before.clone()),
        }
    }
    if fresh.is_empty() && known.is_empty() {
        let message = format!("no keys for `{namespace}` in {}", offered.address);
        return Err(CommandError::findings(message).with_code("no_keys"));
    }
    if !fresh.is_empty() {
        confirm_keys(namespace, args, &offered, &fresh)?;
        for key in &fresh {
            TrustStore::trust(&keyring.list(), &key.trusted)?;
        }
    }
    print(args, &fresh, &known)
}

async fn ask_registry(
    client: &Client,
    name: &Name,
    namespace: &str,
) -> Result<ListedKey, CommandError> {
    let address = client.address();
    if client.index(name).await?.is_some() {
        let keys = client.keys_of(name).await?;
        if !keys.is_empty() {
            return Ok(ListedKey { address, keys, is_skill: true });
        }
    }
    let keys = client.keys(namespace).await?;
    Ok(ListedKey { address, keys, is_skill: false })
}

/// The skills that the trust is limited to. A signature contains the name of a skill, but not its
/// namespace.
fn limits(namespace: &str, args: &Trust, offered: &ListedKey) -> Option<Vec<String>> {
    if !args.namespaces.is_empty() {
        return Some(args.namespaces.clone());
    }
    offered.is_skill.then(|| vec![namespace.to_owned()])
}

/// The key with trust in more skills; `None` if it is already trusted for all of these. Without
/// `namespaces`, it is trusted for every skill.
fn widened(trusted: &TrustedKey, namespaces: Option<&[String]>) -> Option<TrustedKey> {
    let names = trusted.namespaces.as_ref()?;
    let Some(namespaces) = namespaces else {
        return Some(TrustedKey { namespaces: None, ..trusted.clone() });
    };
    let is_covered = |pattern: &&String| {
        names.contains(*pattern) || !pattern.ends_with('*') && trusted.covers(pattern)
    };
    let added: Vec<String> = namespaces.iter().filter(|name| !is_covered(name)).cloned().collect();
    let namespaces = Some([names.as_slice(), &added].concat());
    (!added.is_empty()).then(|| TrustedKey { namespaces, ..trusted.clone() })
}

/// Parses a key and checks that it has the announced id, because the user confirms the id.
fn parse_key(info: &KeyInfo, address: &str) -> Result<PublicKey, CommandError> {
    let wrong = |why: &dyn std::fmt::Display| {
        CommandError::refused(format!("{address} returned an invalid key: {why}"))
            .with_code("public_key")
            .hint("nothing was changed; report this to the operator of the registry")
    };
    let key = PublicKey::parse(&info.public_key).map_err(|error| wrong(&error))?;
    if key.key_id() != info.key_id {
        return Err(wrong(&format!("`{}` is the id of another key", printable(&info.key_id))));
    }
    Ok(key)
}

fn confirm_keys(
    namespace: &str,
    args: &Trust,
    offered: &ListedKey,
    fresh: &[NewTrust],
) -> Result<(), CommandError> {
    if args.yes {
        return Ok(());
    }
    let mut page = format!("{} lists these keys for {namespace}:\n", offered.address);
    for key in fresh {
        // Writing to a string cannot fail.
        let _ = writeln!(page, "  {}", key.text());
    }
    if fresh.iter().any(|key| key.trusted.namespaces.is_none()) {
        page.push_str(
            "Any skill that they sign gets the tier community; to limit them to some skills: \
             --namespace NAME\n",
        );
    }
    output::print_to_stderr(&page);
    if !ask::can_ask() {
        return Err(CommandError::refused(
            "cannot ask whether to trust these keys without a terminal",
        )
        .with_code("not_agreed")
        .hint("compare the ids with those that the publisher lists elsewhere, then add --yes"));
    }
    let question =
        "Trust them? Compare the ids with those that the publisher lists elsewhere. [y]es, [N]o: ";
    if ask::line(question, &ask::yes_or_no)? == Some(true) {
        return Ok(());
    }
    Err(CommandError::refused("nothing was changed").with_code("not_agreed"))
}

fn print(args: &Trust, fresh: &[NewTrust], known: &[TrustedKey]) -> Result<ExitCode, CommandError> {
    if args.json {
        let fresh: Vec<Value> = fresh.iter().map(|key| as_json(&key.trusted)).collect();
        let known: Vec<Value> = known.iter().map(as_json).collect();
        output::json(&json!({ "trusted": fresh, "known": known }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = String::new();
    for key in fresh {
        let _ = writeln!(text, "trusted {}", key.text());
    }
    for key in known {
        let _ = writeln!(text, "already trusted, unchanged: {}", line(key));
    }
    output::text(&text)?;
    Ok(ExitCode::SUCCESS)
}
