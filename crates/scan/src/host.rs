//! Rates hosts: public data drops, sources of installers, bare IP addresses.

use std::net::{IpAddr, Ipv4Addr};

/// Services where anyone can store or fetch data anonymously.
const DATA_DROP_HOSTS: &[&str] = &[
    "webhook.site", "requestbin", "pipedream.net", "ngrok.io", "ngrok.app", "ngrok-free.app",
    "pastebin.com", "paste.ee", "hastebin", "transfer.sh", "file.io", "0x0.st", "interact.sh",
    "interactsh", ".oast.", "oastify.com", "burpcollaborator.net", "beeceptor.com",
    "discord.com/api/webhooks", "discordapp.com/api/webhooks", "api.telegram.org/bot", "glot.io",
    "rentry.co", "rentry.org", "termbin.com", "requestcatcher.com", "hookbin.com", "dnslog.cn",
    "trycloudflare.com", "serveo.net", "loca.lt", "ix.io", "bashupload.com", "anonfiles.com",
    "gofile.io", "catbox.moe", "ghostbin", "dpaste.com", "controlc.com", "privatebin", "paste.rs",
    "sprunge.us", "tmpfiles.org", "temp.sh", "oshi.at", "mockbin",
];

/// URL shorteners and hosts where anyone can get a subdomain in a minute.
const DISPOSABLE_HOSTS: &[&str] = &[
    "bit.ly", "tinyurl.com", "t.co", "is.gd", "cutt.ly", "rb.gy", "shorturl.at", "goo.gl",
    "vercel.app", "netlify.app", "pages.dev", "workers.dev", "onrender.com", "herokuapp.com",
    "glitch.me", "replit.dev", "repl.co", "surge.sh", "firebaseapp.com", "web.app", "duckdns.org",
    "no-ip.org", "ddns.net", "hopto.org", "gist.githubusercontent.com", "000webhostapp.com",
];

/// Top-level domains that are free or mostly used for abuse.
const DISPOSABLE_DOMAIN_SUFFIXES: &[&str] = &[
    "tk", "ml", "ga", "cf", "gq", "xyz", "top", "click", "zip", "mov", "icu", "buzz", "rest", "cam",
];

/// Hosts whose installers many people pipe into a shell.
const INSTALLER_HOSTS: &[&str] = &[
    "astral.sh",
    "sh.rustup.rs",
    "rustup.rs",
    "bun.sh",
    "deno.land",
    "get.docker.com",
    "brew.sh",
    "install.python-poetry.org",
    "get.pnpm.io",
    "fnm.vercel.app",
    "claude.ai",
    "get.helm.sh",
    "fly.io",
    "ollama.com",
    "ollama.ai",
    "tailscale.com",
    "get.k3s.io",
    "starship.rs",
    "deb.nodesource.com",
    "rpm.nodesource.com",
    "cli.github.com",
    "sdk.cloud.google.com",
    "aka.ms",
    "get.sdkman.io",
    "bootstrap.pypa.io",
    "wasmtime.dev",
    "dl.google.com",
    "get.volta.sh",
    "nixos.org",
    "install.determinate.systems",
    "mise.run",
    "cursor.com",
    "opencode.ai",
    "railway.app",
    "railway.com",
    "cli.doppler.com",
    "pixi.sh",
    "micro.mamba.pm",
    "raw.githubusercontent.com/homebrew",
    "raw.githubusercontent.com/nvm-sh",
    "raw.githubusercontent.com/ohmyzsh",
    "raw.githubusercontent.com/helm",
    "raw.githubusercontent.com/astral-sh",
    "raw.githubusercontent.com/anchore",
    "raw.githubusercontent.com/aquasecurity",
    "raw.githubusercontent.com/k3d-io",
    "raw.githubusercontent.com/asdf-vm",
    "sentry.io",
    "cli.sentry.dev",
    "foundry.paradigm.xyz",
    "release.solana.com",
    "release.anza.xyz",
    "wandb.ai",
    "apt.llvm.org",
    "get.rvm.io",
    "cli.run.nu",
    "setup.atuin.sh",
    "dot.net",
    "get.microsoft.com",
    "install.julialang.org",
    "get.trunk.io",
    "raw.githubusercontent.com/golangci",
    "get.scala-cli.org",
    "taskfile.dev",
    "just.systems",
    "semgrep.dev",
    "get.anchore.io",
    "pulumi.com",
    "get.pulumi.com",
    "cli.codecov.io",
    "download.pytorch.org",
    "get.chezmoi.io",
    "install.duckdb.org",
    "get.nextflow.io",
    "get.modular.com",
    "install.lean-lang.org",
    "chezmoi.io",
    "zed.dev",
    "pkgx.sh",
    "get.opentofu.org",
    "get.jetify.com",
    "webi.sh",
    "run.linkerd.io",
    "dl.dagger.io",
    "get.tur.so",
    "sh.install.meteor.com",
    "developer.download.nvidia.com",
    "repo.download.nvidia.com",
    "github.com/conda-forge/miniforge",
    "dl.min.io",
];

/// How much code from a host can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HostReputation {
    /// This machine.
    Local,
    /// Many people run the installer of this host.
    KnownInstaller,
    /// The host has its own domain name.
    OwnDomain,
    /// The host has no name, or one that anyone can get.
    Suspicious,
    /// Nothing is known about it.
    Unknown,
}

/// How much of a path is compared with known addresses.
const MAX_PATH_BYTES: usize = 256;

/// Shortens a URL to its host and the start of its path. Addresses can contain each other, so that
/// a text full of them would be read again and again.
fn shorten(url: &str) -> &str {
    let host = url.find("://").map_or(0, |at| at + 3);
    let path = url[host..].find(['/', '?', '#']).map_or(url.len(), |at| host + at);
    let end = url.len().min(path + MAX_PATH_BYTES);
    &url[..(path..=end).rev().find(|end| url.is_char_boundary(*end)).unwrap_or(path)]
}

/// Returns the host of a URL with its path, in lower case.
fn host_and_path(url: &str) -> Option<(String, bool)> {
    let lower = shorten(url.trim().trim_matches(['"', '\'', '<', '>', '`'])).to_lowercase();
    let plain = lower.starts_with("http://");
    let rest = lower.split_once("://").map_or(lower.as_str(), |(_, rest)| rest);
    let rest =
        rest.rsplit_once('@').filter(|(user, _)| !user.contains('/')).map_or(rest, |(_, r)| r);
    let host = host_part(rest);
    (host.contains('.') || host == "localhost" || host.parse::<u32>().is_ok() && host.len() > 6)
        .then(|| (rest.to_owned(), plain))
}

fn host_part(rest: &str) -> &str {
    let end = rest.find(['/', ':', '?', '#']).unwrap_or(rest.len());
    &rest[..end]
}

/// Returns the host of a URL in lower case.
pub(super) fn host_of_url(url: &str) -> Option<String> {
    host_and_path(url).map(|(rest, _)| host_part(&rest).to_owned())
}

/// Whether anyone can fetch data that is sent to this address.
pub(super) fn is_data_drop(url: &str) -> bool {
    let lower = shorten(url.trim()).to_lowercase();
    DATA_DROP_HOSTS.iter().any(|drop| contains_name(&lower, drop)) || has_bare_ip(url)
}

/// Whether a URL names a public address instead of a host.
pub(super) fn has_bare_ip(url: &str) -> bool {
    let Some(host) = host_of_url(url) else { return false };
    if let Ok(number) = host.parse::<u32>() {
        return is_public(Ipv4Addr::from(number));
    }
    matches!(host.parse::<IpAddr>(), Ok(IpAddr::V4(address)) if is_public(address))
}

fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            address.is_private() || address.is_loopback() || address.is_link_local()
        }
        IpAddr::V6(address) => address.is_loopback() || address.is_unique_local(),
    }
}

fn is_public(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    !(address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_unspecified()
        || address.is_multicast()
        || address.is_broadcast()
        || (a == 100 && (64..128).contains(&b))
        || a == 0
        || matches!((a, b, c), (1, 1, 1) | (8, 8, 8 | 4) | (1, 0, 0) | (9, 9, 9)))
        && a < 240
}

/// Whether a URL contains `part` as a whole name: `t.co` is not in `reddit.com`.
fn contains_name(url: &str, part: &str) -> bool {
    url.match_indices(part).any(|(at, _)| {
        let before = url[..at].chars().next_back();
        part.starts_with('.') || before.is_none_or(|c| !c.is_alphanumeric() && c != '-')
    })
}

/// How much code from the host of a URL can be trusted.
pub(super) fn reputation(url: &str) -> HostReputation {
    let Some((rest, plain)) = host_and_path(url) else { return HostReputation::Unknown };
    let host = host_part(&rest);
    let own = |address: IpAddr| is_private(address) || address.is_unspecified();
    let near = [".local", ".lan", ".internal", ".home.arpa", ".localdomain"];
    if host == "localhost"
        || near.iter().any(|ending| host.ends_with(ending))
        || host.parse::<IpAddr>().is_ok_and(own)
    {
        return HostReputation::Local;
    }
    if matches!(host, "example.com" | "example.org" | "your-domain.com")
        || host.ends_with(".example.com")
        || is_placeholder(host)
    {
        return HostReputation::Unknown;
    }
    if is_data_drop(url) || host.parse::<IpAddr>().is_ok_and(|address| !is_private(address)) {
        return HostReputation::Suspicious;
    }
    if !plain && INSTALLER_HOSTS.iter().any(|known| is_at(&rest, host, known)) {
        return HostReputation::KnownInstaller;
    }
    let ending = host.rsplit('.').next().unwrap_or(host);
    let cheap = DISPOSABLE_HOSTS.iter().any(|cheap| is_at(&rest, host, cheap))
        || DISPOSABLE_DOMAIN_SUFFIXES.contains(&ending);
    if cheap || plain || host.starts_with("xn--") || host.contains(".xn--") {
        return HostReputation::Suspicious;
    }
    HostReputation::OwnDomain
}

/// Whether a host is a placeholder such as `api.your-domain.com` or `git.mycompany.com`.
fn is_placeholder(host: &str) -> bool {
    let names = [
        "your-domain", "yourdomain", "your-company", "yourcompany", "my-company", "mycompany",
        "your-app", "your-site", "your-server", "your-host", "your-api", "yourapp", "yoursite",
    ];
    let mut labels = host.rsplit('.');
    let ending = labels.next().unwrap_or_default();
    let label = labels.next().unwrap_or_default();
    matches!(
        ending,
        "com" | "org" | "net" | "io" | "dev" | "app" | "ai" | "co" | "local" | "internal"
    ) && names.contains(&label)
}

/// Whether an address is at a host, or below one, or below a path of it.
fn is_at(rest: &str, host: &str, known: &str) -> bool {
    if known.len() > rest.len() {
        return false;
    }
    if known.contains('/') {
        return rest.starts_with(known);
    }
    host == known || host.strip_suffix(known).is_some_and(|before| before.ends_with('.'))
}

/// Returns the web addresses in a text with their offsets.
pub(super) fn find_urls(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut end = 0;
    for at in memchr::memmem::find_iter(text.as_bytes(), b"://") {
        let scheme = text[..at].bytes().rev().take_while(u8::is_ascii_alphanumeric).count();
        let start = at - scheme;
        let stop =
            |c: char| c.is_whitespace() || c.is_control() || "\"'`<>()[]{}|\\^;,".contains(c);
        // An address in the path of another one ends with it.
        if at + 3 > end {
            end = text[at + 3..].find(stop).map_or(text.len(), |end| at + 3 + end);
        }
        if scheme > 0 && end > at + 3 {
            found.push((start, text[start..end].trim_end_matches(['.', '!', '?', '*', '_'])));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reputations_of_hosts() {
        for (url, expected) in [
            ("https://astral.sh/uv/install.sh", HostReputation::KnownInstaller),
            ("http://astral.sh/uv/install.sh", HostReputation::Suspicious),
            ("https://evilastral.sh/x", HostReputation::OwnDomain),
            ("https://91.92.242.30/x", HostReputation::Suspicious),
            ("http://3232235777/x", HostReputation::Suspicious),
            ("http://localhost:3000", HostReputation::Local),
            ("https://glot.io/snippets/x", HostReputation::Suspicious),
            ("https://reddit.com/x", HostReputation::OwnDomain),
            ("https://user@bit.ly/x", HostReputation::Suspicious),
            ("$URL", HostReputation::Unknown),
        ] {
            assert_eq!(reputation(url), expected, "{url}");
        }
        assert!(has_bare_ip("http://1540092446/a"), "an address as one number");
        assert!(!has_bare_ip("http://10.0.0.1/a"));
        assert!(is_data_drop("https://discord.com/api/webhooks/1/x"));
        assert!(!is_data_drop("https://discord.com/developers"));
    }

    #[test]
    fn urls_end_before_punctuation() {
        let found =
            find_urls("see <https://a.example/x>, http://b.example/y. and (ftp://c.example)");
        let texts: Vec<&str> = found.iter().map(|(_, url)| *url).collect();
        assert_eq!(texts, ["https://a.example/x", "http://b.example/y", "ftp://c.example"]);
    }
}
