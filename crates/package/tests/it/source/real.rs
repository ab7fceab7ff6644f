//! Tests with real repositories: `SAVOIR_TEST_REPOSITORIES` names a folder with clones, bare or
//! not, at `*/repo` or `*`. Nothing in them is run or written.

use std::{env, fmt::Write as _, fs, path::PathBuf, time::Instant};

use savoir_package::source::OfferedSkill;

use super::TestFetcher;

/// The errors that real skills may have.
const REFUSALS: [&str; 9] = [
    "link", "submodule", "git_lfs", "too_large", "file-too-large", "forbidden_path",
    "path_characters", "path_collision", "path_length",
];

fn repositories() -> Vec<PathBuf> {
    let Some(folder) = env::var_os("SAVOIR_TEST_REPOSITORIES") else { return Vec::new() };
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let inner = |path: PathBuf| if path.join("repo").is_dir() { path.join("repo") } else { path };
    let is_hidden = |path: &PathBuf| path.file_name().unwrap().as_encoded_bytes()[0] == b'.';
    let folders = entries.filter(|path| path.is_dir() && !is_hidden(path));
    let mut found: Vec<PathBuf> = folders.map(inner).collect();
    found.sort();
    found
}

#[tokio::test]
async fn real_repositories_are_listed_and_fetched() {
    let mut report = String::new();
    for repository in repositories() {
        let test = TestFetcher::new();
        let start = Instant::now();
        let offers = match test.offers(&repository.display().to_string()).await {
            Ok(offers) => offers,
            Err(error) if error.code() == "no_skill" => {
                writeln!(report, "{}: no skills", repository.display()).unwrap();
                continue;
            }
            Err(error) => panic!("{}: {error}", repository.display()),
        };
        let listed = start.elapsed();
        let trees = test.fetcher.fetch_all(&offers).await;
        let good = trees.iter().filter(|tree| tree.is_ok()).count();
        writeln!(
            report,
            "{}: {} skills listed in {listed:?}, {good} fetched after {:?}",
            repository.display(),
            offers.len(),
            start.elapsed(),
        )
        .unwrap();
        for (OfferedSkill { name, .. }, tree) in offers.iter().zip(&trees) {
            if let Err(error) = tree {
                writeln!(report, "  {name}: {error}").unwrap();
                assert!(REFUSALS.contains(&error.code()), "{report}");
            }
        }
    }
    if let Some(path) = env::var_os("SAVOIR_TEST_REPORT") {
        fs::write(path, &report).unwrap();
    }
}
