use savoir_package::{
    File, Tree,
    scan::{Verdict, scan},
};
use std::{
    env, fs,
    path::{Path, PathBuf},
    time::Instant,
};
fn samples(text: &str) -> Vec<(String, Tree)> {
    let mut found = Vec::new();
    for sample in text.split("\n%%% ").map(|p| p.strip_prefix("%%% ").unwrap_or(p)) {
        let (n, files) = sample.split_once('\n').unwrap_or((sample, ""));
        let mut tree = Tree::default();
        for file in format!("\n{files}").split("\n%% ").skip(1) {
            let (path, text) = file.split_once('\n').unwrap_or((file, ""));
            let _ = tree.add(
                path.trim().to_owned(),
                File { bytes: format!("{text}\n").into(), executable: false },
            );
        }
        found.push((n.to_owned(), tree));
    }
    found
}
fn skills(folder: &Path, found: &mut Vec<PathBuf>) {
    let entries: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|e| e.path()).collect();
    if entries
        .iter()
        .any(|p| p.is_file() && p.file_name().is_some_and(|n| n.eq_ignore_ascii_case("skill.md")))
    {
        found.push(folder.to_owned());
    }
    entries.iter().filter(|p| p.is_dir()).for_each(|p| skills(p, found));
}
fn main() {
    let args: Vec<String> = env::args().skip(1).collect();
    for arg in &args {
        let (mut held, mut total) = (0, 0);
        let mut names: Vec<_> = fs::read_dir(arg).unwrap().flatten().map(|e| e.path()).collect();
        names.sort();
        if !names.iter().any(|p| p.extension().is_some_and(|e| e == "txt")) {
            let mut all = Vec::new();
            skills(Path::new(arg), &mut all);
            let mut worst = (0.0f64, String::new());
            let mut sum = 0.0;
            for f in all {
                let Ok(tree) = Tree::read(&f) else { continue };
                total += 1;
                let start = Instant::now();
                let r = scan(&tree);
                let t = start.elapsed().as_secs_f64() * 1e3;
                sum += t;
                if t > worst.0 {
                    worst = (t, f.display().to_string());
                }
                if r.verdict != Verdict::Allow {
                    held += 1;
                    println!(
                        "{:?} {}: {}",
                        r.verdict,
                        f.display(),
                        r.reason()
                            .map(|f| format!("{} {} [{}]", f.rule.id, f.message, f.excerpt))
                            .unwrap_or_default()
                    );
                }
            }
            println!(
                "== {arg}: {held} of {total}, mean {:.1} ms, worst {:.0} ms {}",
                sum / total as f64,
                worst.0,
                worst.1
            );
            continue;
        }
        for file in names {
            let fam = file.file_stem().unwrap().to_string_lossy().into_owned();
            let (mut h, mut t) = (0, 0);
            for (name, tree) in samples(&fs::read_to_string(&file).unwrap()) {
                t += 1;
                let r = scan(&tree);
                if r.verdict != Verdict::Allow {
                    h += 1;
                    if arg.contains("benign") {
                        println!(
                            "  {:?} {fam}/{name}: {}",
                            r.verdict,
                            r.reason()
                                .map(|f| format!("{} {} [{}]", f.rule.id, f.message, f.excerpt))
                                .unwrap_or_default()
                        );
                    }
                } else if !arg.contains("benign") && env::var("Q").is_err() {
                    println!("  missed {fam}/{name}");
                    if env::var("V").is_ok() {
                        for f in &r.findings {
                            println!(
                                "      {:?} {:?} {} {} [{}]",
                                f.severity, f.confidence, f.rule.id, f.message, f.excerpt
                            );
                        }
                    }
                }
            }
            println!("{fam}: {h} of {t}");
            held += h;
            total += t;
        }
        println!("== {arg}: {held} of {total} ({:.0} %)", held as f64 * 100.0 / total as f64);
    }
}
