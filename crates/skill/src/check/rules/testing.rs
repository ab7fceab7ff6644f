//! What the tests beside the rules share.

use crate::{
    check::{self, Options},
    diagnostic::Diagnostic,
    dialect::Dialect,
    folder::{File, Folder},
    source::Source,
};

/// A skill whose body is `body`.
pub(super) fn skill(body: &str) -> String {
    format!("---\nname: demo\ndescription: Shows a rule. Use when learning.\n---\n{body}")
}

/// A folder of this name with SKILL.md and these files.
pub(super) fn folder(name: &str, files: &[&str]) -> Folder {
    let paths = std::iter::once("SKILL.md").chain(files.iter().copied());
    let files = paths.map(|path| File { path: path.to_owned(), link: false }).collect();
    Folder::from_parts(name.into(), files)
}

/// What one rule finds.
pub(super) fn find(code: &str, text: &str) -> Vec<Diagnostic> {
    find_with(code, text, None, &Options::default())
}

/// What one rule finds when the dialect is known.
pub(super) fn find_as(code: &str, text: &str, dialect: Dialect) -> Vec<Diagnostic> {
    find_with(code, text, None, &Options { dialect: Some(dialect), ..Options::default() })
}

/// What one rule finds in a folder.
pub(super) fn find_in(code: &str, text: &str, folder: &Folder) -> Vec<Diagnostic> {
    find_with(code, text, Some(folder), &Options::default())
}

/// What one rule finds.
pub(super) fn find_with(
    code: &str,
    text: &str,
    folder: Option<&Folder>,
    options: &Options,
) -> Vec<Diagnostic> {
    let mut found = check::check(Source::new(text.to_owned()), folder, options).diagnostics;
    found.retain(|found| found.code == code);
    found
}

/// The text under each finding of a rule.
pub(super) fn places<'a>(code: &str, text: &'a str) -> Vec<&'a str> {
    find(code, text).iter().map(|found| found.span.slice(text)).collect()
}

/// The text after the fix of the only finding of a rule.
pub(super) fn fixed(code: &str, text: &str) -> Option<String> {
    let found = find(code, text);
    assert_eq!(found.len(), 1, "{found:?}");
    let fix = found[0].fix.as_ref()?;
    Some(crate::edit::apply(text, &fix.edits))
}

#[test]
#[ignore]
fn zz_time_rules() {
    use crate::{check::{Context, rules::ALL}, read};
    fn walk(p: &std::path::Path, out: &mut Vec<std::path::PathBuf>) {
        for e in std::fs::read_dir(p).unwrap() { let p = e.unwrap().path();
            if p.is_dir() { walk(&p, out) } else if p.file_name().unwrap() == "SKILL.md" { out.push(p) } }
    }
    let mut files = vec![]; walk(std::path::Path::new("/work/shared/corpus"), &mut files);
    let options = Options::default();
    let loaded: Vec<_> = files.iter().filter_map(|f| { let s = Source::from_bytes(std::fs::read(f).ok()?).ok()?; let folder = Folder::open(f.parent().unwrap()).unwrap(); Some((read(s, Some(&folder)), folder)) }).collect();
    let mut total = 0.0;
    let mut rows = vec![];
    for rule in ALL { if let Some(run) = rule.run {
        let mut best = f64::MAX;
        for _ in 0..5 { let t = std::time::Instant::now();
            for _ in 0..5 { for (r, f) in &loaded { let c = Context { reading: r, folder: Some(f), options: &options }; let mut v = vec![]; run(&c, &mut v); std::hint::black_box(v); } }
            best = best.min(t.elapsed().as_secs_f64() / 5.0 / loaded.len() as f64 * 1e6); }
        total += best; rows.push((best, rule.code));
    } }
    rows.sort_by(|a, b| b.0.total_cmp(&a.0));
    for (b, c) in rows { println!("{b:8.3} us {c}"); }
    println!("{total:.2} us total");
    let mut best = [f64::MAX; 2];
    for _ in 0..5 { let t = std::time::Instant::now(); for (r, _) in &loaded { std::hint::black_box(r.clone()); } best[0] = best[0].min(t.elapsed().as_secs_f64() / loaded.len() as f64 * 1e6);
      let t = std::time::Instant::now(); for (r, _) in &loaded { let d = &r.document; std::hint::black_box(crate::markdown::Outline::new(d.text(), d.body_span())); } best[1] = best[1].min(t.elapsed().as_secs_f64() / loaded.len() as f64 * 1e6); }
    println!("clone {:.2} outline {:.2}", best[0], best[1]);
}
