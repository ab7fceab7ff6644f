//! Rules about obfuscated code.

use std::collections::HashSet;

use savoir_skill::Span;

use crate::{
    Confidence, Severity,
    action::{Action, CodeOrigin},
    context::{Context, FindingDraft, confidence_that_code_runs},
    decode,
    fragment::{Language, Role, TextFragment},
    host::host_of_url,
    rule::rule,
};

use super::exfiltration::is_unknown_host;

rule! {
    /// Code is assembled at run time.
    ///
    /// ## Why
    ///
    /// People and scanners cannot read beforehand what `eval` and `exec` will run.
    ///
    /// ## Fix
    ///
    /// Call the function directly. Parse data with a parser.
    ///
    /// ## Bad
    ///
    /// ````python file=scripts/calc.py
    /// print(eval(input()))
    /// ````
    ///
    /// ## Good
    ///
    /// ````python file=scripts/calc.py
    /// import ast
    /// print(ast.literal_eval(input()))
    /// ````
    DYNAMIC_CODE = "dynamic-code", Medium, run dynamic_code
}

fn dynamic_code(context: &mut Context<'_>) {
    context.for_each_action(&DYNAMIC_CODE, |fragment, action, _| {
        let severity = if fragment.hidden_in.is_some() { Severity::High } else { Severity::Medium };
        (*action == Action::ExecutesCode(CodeOrigin::Computed)).then(|| {
            FindingDraft::new(
                severity,
                confidence_that_code_runs(fragment),
                "it executes code that is put together while it runs",
            )
        })
    });
}

rule! {
    /// The code is obfuscated.
    ///
    /// ## Why
    ///
    /// Function names that are assembled from pieces, names like `_0x3fa2`, and long encoded
    /// strings have one purpose: to hide from readers what the code does.
    ///
    /// ## Fix
    ///
    /// Ship the source.
    ///
    /// ## Bad
    ///
    /// ````python file=scripts/run.py
    /// import os
    /// getattr(os, name_of(3))("id")
    /// ````
    ///
    /// ## Good
    ///
    /// ````python file=scripts/run.py
    /// import os
    /// print(os.getcwd())
    /// ````
    OBFUSCATION = "obfuscation", High, run obfuscation
}

/// Maximum line length of a program that a person wrote.
const MAX_LINE_BYTES: usize = 5_000;
/// Bits per byte. Source code that a person wrote has less; encoded or encrypted data has more.
const MAX_SOURCE_ENTROPY: f64 = 5.7;

/// How many hosts are looked for in the files of a skill, and how much of the files is searched.
const MAX_HOSTS: usize = 32;
const MAX_SEARCHED_BYTES: usize = 4 * 1024 * 1024;

/// Returns the hosts to which scripts connect although no file contains their names.
fn assembled_hosts(context: &Context<'_>) -> HashSet<String> {
    let scripts = context.fragments.iter().filter(|one| is_script_file(&one.fragment));
    let actions = scripts.flat_map(|one| &one.actions.located);
    let hosts = actions.filter_map(|seen| match &seen.action {
        Action::Connects { to, .. } if to.contains("://") && is_unknown_host(to) => host_of_url(to),
        _ => None,
    });
    let mut hosts: HashSet<String> = hosts.take(MAX_HOSTS).collect();
    if hosts.is_empty() {
        return hosts;
    }
    let mut searched = 0;
    for (_, bytes) in context.files.iter() {
        searched += bytes.len();
        if searched > MAX_SEARCHED_BYTES {
            return HashSet::new();
        }
        let text = bytes.to_ascii_lowercase();
        hosts.retain(|host| !is_written(host, &text));
    }
    hosts
}

/// Whether a text contains the name that somebody registered, as a part of an address.
fn is_written(host: &str, text: &[u8]) -> bool {
    let mut labels = host.rsplit('.');
    let (Some(ending), Some(label)) = (labels.next(), labels.next()) else { return true };
    let is_address = ending.bytes().all(|byte| byte.is_ascii_digit());
    is_address || memchr::memmem::find(text, format!("{label}.").as_bytes()).is_some()
}

fn is_script_file(fragment: &TextFragment<'_>) -> bool {
    fragment.role == Role::Script && fragment.depth == 0 && !fragment.is_evaluation
}

fn obfuscation(context: &mut Context<'_>) {
    let hidden = assembled_hosts(context);
    context.for_each_action(&OBFUSCATION, |fragment, action, _| {
        let Action::Connects { to, .. } = action else { return None };
        let host =
            host_of_url(to).filter(|host| is_script_file(fragment) && hidden.contains(host))?;
        let message = format!("the address of `{host}` is put together of pieces");
        Some(FindingDraft::new(Severity::High, Confidence::Medium, message))
    });
    context.for_each_action(&OBFUSCATION, |fragment, action, _| {
        let Action::Obfuscates(how) = action else { return None };
        let confidence =
            if fragment.is_shown_in_document { Confidence::Low } else { Confidence::Medium };
        Some(FindingDraft::new(Severity::High, confidence, *how))
    });
    context.for_each_fragment(&OBFUSCATION, |fragment| {
        let code =
            matches!(fragment.language, Language::Python | Language::JavaScript | Language::Shell);
        if !code || fragment.is_shown_in_document || fragment.role != Role::Script {
            return Vec::new();
        }
        let names = fragment.text.match_indices("_0x").take(20).count();
        let mut found = Vec::new();
        if names >= 10 {
            let at = fragment.text.find("_0x").unwrap_or(0);
            let draft = FindingDraft::new(
                Severity::High,
                Confidence::High,
                "the names were made unreadable by a program",
            );
            found.push((Span::new(at, (at + 40).min(fragment.text.len())), draft));
        }
        let mut at = 0;
        for line in fragment.text.split_inclusive('\n') {
            if line.len() > MAX_LINE_BYTES && decode::entropy(line.as_bytes()) > MAX_SOURCE_ENTROPY
            {
                let draft = FindingDraft::new(
                    Severity::High,
                    Confidence::Medium,
                    "a very long line is noise to a reader",
                );
                found.push((Span::at(at), draft));
                break;
            }
            at += line.len();
        }
        found
    });
}
