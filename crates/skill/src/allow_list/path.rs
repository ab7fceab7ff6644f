//! Matches paths against patterns such as `Read(docs/**)`, and URLs against
//! `WebFetch(domain:example.com)`.

use std::borrow::Cow;

type PatternCheck = Result<(), Cow<'static, str>>;

/// Checks a path against a pattern. `*` matches within a path component, `**` matches any
/// components, and a folder matches everything below it. Both are relative to the working
/// directory. A pattern that begins with `/` also means an absolute path, and one with `//` nothing
/// else, as in Claude Code.
pub(super) fn check_path(pattern: &str, path: &str) -> PatternCheck {
    check_path_syntax(path)?;
    let is_comparable =
        if path.starts_with('/') { pattern.starts_with('/') } else { !pattern.starts_with("//") };
    if is_comparable && matches_pattern(&read_pattern(pattern)?, &split_path(path)) {
        return Ok(());
    }
    Err(format!("the path must fit `{pattern}`").into())
}

/// Whether a relative or absolute path fits a pattern that begins in the same way.
pub(super) fn is_below(pattern: &str, path: &str) -> bool {
    path.starts_with('/') == pattern.starts_with('/') && check_path(pattern, path).is_ok()
}

/// Whether a path matches a denied pattern; an error if this cannot be determined.
pub(super) fn is_ruled_out(pattern: &str, path: &str) -> Result<bool, Cow<'static, str>> {
    check_path_syntax(path)?;
    let wanted = read_pattern(pattern)?;
    match (pattern.starts_with('/'), path.starts_with('/')) {
        // The working directory of the author may be any folder above.
        (true, true) if !pattern.starts_with("//") => {
            let anywhere: Vec<&str> = ["**"].into_iter().chain(wanted).collect();
            Ok(matches_pattern(&anywhere, &split_path(path)))
        }
        (true, false) if pattern.starts_with("//") => {
            Err(format!("the path must start like `{pattern}` to be compared").into())
        }
        (false, true) => Err(format!("the path must start like `{pattern}` to be compared").into()),
        _ => Ok(matches_pattern(&wanted, &split_path(path))),
    }
}

fn check_path_syntax(path: &str) -> PatternCheck {
    if path.contains(['\\', '\0']) || path.split('/').any(|part| part == "..") {
        return Err("the path must not have `..` or backslashes".into());
    }
    Ok(())
}

/// Splits a pattern into path components.
pub(super) fn read_pattern(pattern: &str) -> Result<Vec<&str>, Cow<'static, str>> {
    let wanted = split_path(pattern);
    if wanted.contains(&"..") || wanted.is_empty() || pattern.contains(['[', '{', '!']) {
        return Err("the pattern is not understood".into());
    }
    Ok(wanted)
}

fn split_path(path: &str) -> Vec<&str> {
    path.split('/').filter(|part| !part.is_empty() && *part != ".").collect()
}

/// Compares component by component. The table makes the time linear per component of the pattern.
fn matches_pattern(pattern: &[&str], path: &[&str]) -> bool {
    // reached[i]: the pattern so far matches the first i components.
    let mut reached = vec![false; path.len() + 1];
    reached[0] = true;
    for part in pattern {
        let mut next = vec![false; path.len() + 1];
        for i in 0..=path.len() {
            if *part == "**" {
                next[i] = reached[i] || (i > 0 && next[i - 1]);
            } else {
                next[i] = i > 0 && reached[i - 1] && matches_part(part, path[i - 1]);
            }
        }
        reached = next;
    }
    // Everything below a matching folder matches.
    reached[1..].contains(&true) || (path.is_empty() && reached[0])
}

fn matches_part(pattern: &str, text: &str) -> bool {
    let mut pieces = pattern.split('*');
    let Some(mut rest) = pieces.next().and_then(|first| text.strip_prefix(first)) else {
        return false;
    };
    if !pattern.contains('*') {
        return rest.is_empty();
    }
    let pieces: Vec<&str> = pieces.collect();
    let (last, middle) = match pieces.split_last() {
        Some((last, middle)) => (*last, middle),
        None => return rest.is_empty(),
    };
    for piece in middle {
        match rest.find(piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// Checks the host of a URL: `domain:example.com` matches that host, `domain:*.example.com` its
/// subdomains.
pub(super) fn check_host(pattern: &str, url: &str) -> PatternCheck {
    let domain = read_domain(pattern)?;
    if is_host_in_domain(parse_host(url)?, domain) {
        Ok(())
    } else {
        Err(format!("the host must be {domain}").into())
    }
}

/// Whether the host of a URL matches a denied pattern; an error if this cannot be determined.
pub(super) fn is_host_ruled_out(pattern: &str, url: &str) -> Result<bool, Cow<'static, str>> {
    let domain = read_domain(pattern)?;
    // A trailing dot names the same host.
    Ok(is_host_in_domain(parse_host(url)?.trim_end_matches('.'), domain.trim_end_matches('.')))
}

/// Returns the domain of a pattern.
pub(super) fn read_domain(pattern: &str) -> Result<&str, Cow<'static, str>> {
    let domain = pattern.strip_prefix("domain:").map(str::trim);
    let domain = domain.filter(|domain| !domain.is_empty());
    domain.ok_or_else(|| "the pattern is not understood; write domain:HOST".into())
}

fn is_host_in_domain(host: &str, domain: &str) -> bool {
    match domain.strip_prefix("*.") {
        Some(parent) => host.len().checked_sub(parent.len() + 1).is_some_and(|at| {
            host.is_char_boundary(at)
                && host[at..].starts_with('.')
                && host[at + 1..].eq_ignore_ascii_case(parent)
                && at > 0
        }),
        None => host.eq_ignore_ascii_case(domain),
    }
}

/// Returns the host of a URL, if every program parses the URL in the same way.
fn parse_host(url: &str) -> Result<&str, Cow<'static, str>> {
    let host = find_host(url);
    host.ok_or_else(|| "the address must be http:// or https:// with a plain host".into())
}

fn find_host(url: &str) -> Option<&str> {
    let rest = ["https://", "http://"].iter().find_map(|scheme| {
        url.get(..scheme.len())?.eq_ignore_ascii_case(scheme).then(|| &url[scheme.len()..])
    })?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        Some(_) => return None,
        None => authority,
    };
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-');
    (!host.is_empty() && host.bytes().all(plain)).then_some(host)
}
