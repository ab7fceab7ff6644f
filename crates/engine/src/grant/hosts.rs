//! Turns permissions for hosts into the network part of the policy: `network:read`,
//! `network:write`.

use savoir_sandbox::{HostGrant, HostPattern, MethodGroup, Network, Scheme};
use savoir_skill::permission::{Domain, Level, Permission};

use super::Refusal;
use crate::approval::ExtraGrants;

/// The hosts that a run may connect to.
pub(super) fn network(permissions: &[Permission], extra: &ExtraGrants) -> Result<Network, Refusal> {
    let mut hosts = Vec::new();
    for permission in permissions.iter().filter(|p| p.domain == Domain::Network) {
        let methods = match permission.level {
            Level::Read => MethodGroup::Read,
            Level::Write => MethodGroup::Write,
            _ => continue,
        };
        let scope = permission.scope.as_deref().unwrap_or("*");
        hosts.push(grant(scope, methods, Address::Public).map_err(|reason| {
            Refusal::new(permission, reason, "name a host, *.host or a URL in the skill")
        })?);
    }
    for (list, address) in
        [(&extra.hosts, Address::Public), (&extra.private_hosts, Address::Private)]
    {
        for scope in list {
            for methods in [MethodGroup::Read, MethodGroup::Write] {
                hosts.push(grant(scope, methods, address).map_err(|reason| {
                    Refusal::new(scope, reason, "name a host, *.host or a URL")
                })?);
            }
        }
    }
    Ok(if hosts.is_empty() { Network::None } else { Network::Hosts(hosts) })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Address {
    Public,
    Private,
}

fn grant(scope: &str, methods: MethodGroup, address: Address) -> Result<HostGrant, String> {
    let (scheme, rest) = match scope.split_once("://") {
        Some(("http", rest)) => (Some(Scheme::Http), rest),
        Some(("https", rest)) => (Some(Scheme::Https), rest),
        Some((other, _)) => return Err(format!("the proxy does not speak `{other}`")),
        None => (None, scope),
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => {
            let port = port.parse().map_err(|_| format!("`{port}` is not a port"))?;
            (host, Some(port))
        }
        _ => (authority, None),
    };
    let pattern: HostPattern = host.parse().map_err(|error| format!("{error}"))?;
    // An IP address or `localhost` in a scope is explicit, so it may be private; a host name may
    // resolve to any address, so it may not.
    let named = host.eq_ignore_ascii_case("localhost") || is_address(host);
    let path = path.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/').to_owned();
    let allow_private_addresses = named || address == Address::Private;
    Ok(HostGrant { host: pattern, scheme, port, path, methods, allow_private_addresses })
}

fn is_address(host: &str) -> bool {
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    bare.parse::<std::net::IpAddr>().is_ok()
}
