//! `savoir keys trust --from-registry`.

use std::{fmt::Write as _, process::ExitCode};

use savoir_engine::approval::shown;
use savoir_package::{
    registry::{Client, Name, wire::KeyInfo},
    trust::{PublicKey, Role, TrustStore, TrustedKey},
};
use serde_json::json;

use super::{Trust, as_json, line};
use crate::{ask, error::CommandError, output, runtime, shelf::told, trust::Keyring};

/// What a registry says of a namespace.
struct Offered {
    address: String,
    keys: Vec<KeyInfo>,
    /// Whether a skill is called so that stands alone.
    is_skill: bool,
}

pub(super) fn run(namespace: &str, args: &Trust) -> Result<ExitCode, CommandError> {
    told(args.json, || trust(namespace, args))
}

fn trust(namespace: &str, args: &Trust) -> Result<ExitCode, CommandError> {
    let name = Name::parse(namespace).map_err(|error| {
        CommandError::input(format!("`{namespace}` is no namespace")).named(error.code())
    })?;
    let client = args.remote.client_of(&name)?;
    let offered = runtime::block_on(ask_registry(&client, &name, namespace))?;
    let keyring = Keyring::of_user()?;
    let store = keyring.trusted()?;
    let namespaces = limits(namespace, args, &offered);
    let (mut fresh, mut known) = (Vec::new(), Vec::new());
    for info in offered.keys.iter().filter(|key| key.revoked_at.is_none()) {
        let key = parsed(info, &offered.address)?;
        match store.get(&key.key_id()) {
            // What a person decided about it stays.
            Some(trusted) => known.push(trusted.clone()),
            None => fresh.push(TrustedKey {
                key,
                publisher: args.publisher.clone().unwrap_or_else(|| namespace.to_owned()),
                role: Role::Publisher,
                namespaces: namespaces.clone(),
            }),
        }
    }
    if fresh.is_empty() && known.is_empty() {
        let message = format!("no key signs for `{namespace}` in {}", offered.address);
        return Err(CommandError::findings(message).named("no_keys"));
    }
    if !fresh.is_empty() {
        agree(namespace, args, &offered, &fresh)?;
        for key in &fresh {
            TrustStore::trust(&keyring.list(), key)?;
        }
    }
    print(args, &fresh, &known)
}

async fn ask_registry(
    client: &Client,
    name: &Name,
    namespace: &str,
) -> Result<Offered, CommandError> {
    let address = client.address();
    if client.index(name).await?.is_some() {
        let keys = client.keys_of(name).await?;
        if !keys.is_empty() {
            return Ok(Offered { address, keys, is_skill: true });
        }
    }
    let keys = client.keys(namespace).await?;
    Ok(Offered { address, keys, is_skill: false })
}

/// For which skills the keys count: signatures have the name of a skill, and not its namespace.
fn limits(namespace: &str, args: &Trust, offered: &Offered) -> Option<Vec<String>> {
    if !args.namespaces.is_empty() {
        return Some(args.namespaces.clone());
    }
    offered.is_skill.then(|| vec![namespace.to_owned()])
}

/// The key itself; an identifier that belongs to another key would be shown and not believed.
fn parsed(info: &KeyInfo, address: &str) -> Result<PublicKey, CommandError> {
    let wrong = |why: &dyn std::fmt::Display| {
        CommandError::refused(format!("{address} has a key that is none: {why}"))
            .named("public_key")
            .hint("nothing was changed; tell who runs the registry")
    };
    let key = PublicKey::parse(&info.public_key).map_err(|error| wrong(&error))?;
    if key.key_id() != info.key_id {
        return Err(wrong(&format!("`{}` is the id of another one", shown(&info.key_id))));
    }
    Ok(key)
}

fn agree(
    namespace: &str,
    args: &Trust,
    offered: &Offered,
    fresh: &[TrustedKey],
) -> Result<(), CommandError> {
    if args.yes {
        return Ok(());
    }
    let mut page = format!("{} says that these keys sign for {namespace}:\n", offered.address);
    for key in fresh {
        // Writing to a string cannot fail.
        let _ = writeln!(page, "  {}", line(key));
    }
    if fresh.iter().any(|key| key.namespaces.is_none()) {
        page.push_str(
            "Skills that they sign are community then, whatever their name; --namespace NAME limits \
             them.\n",
        );
    }
    output::aside(&page);
    if !ask::can_ask() {
        return Err(CommandError::refused("nobody can be asked whether to trust these keys")
            .named("not_agreed")
            .hint("compare the identifiers with what the publisher says elsewhere, then: --yes"));
    }
    let question = "Trust them? Compare them with what the publisher says elsewhere. [y]es, [N]o: ";
    if ask::line(question, &ask::yes_or_no)? == Some(true) {
        return Ok(());
    }
    Err(CommandError::refused("nothing was changed").named("not_agreed"))
}

fn print(
    args: &Trust,
    fresh: &[TrustedKey],
    known: &[TrustedKey],
) -> Result<ExitCode, CommandError> {
    if args.json {
        let all = |keys: &[TrustedKey]| keys.iter().map(as_json).collect::<Vec<_>>();
        output::json(&json!({ "trusted": all(fresh), "known": all(known) }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = String::new();
    for key in fresh {
        let _ = writeln!(text, "trusted {}", line(key));
    }
    for key in known {
        let _ = writeln!(text, "trusted already, and left as it is: {}", line(key));
    }
    output::text(&text)?;
    Ok(ExitCode::SUCCESS)
}
