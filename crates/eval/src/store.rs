//! Writes and reads the folder with the results of an evaluation, in the layout of agentskills.io:
//! `benchmark.json` for all cases, and `grading.json`, `timing.json` and the record for each trial.

use std::{
    fs,
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
};

use serde_json::Value;

use crate::{
    limits::MAX_RESULTS_BYTES,
    report::{agentskills, html, junit, markdown},
    results::{RESULTS_FORMAT, Results},
    trace::{Arm, Trace},
};

/// The file with all results.
pub const RESULTS_FILE: &str = "results.json";
/// The record of a trial.
pub const TRACE_FILE: &str = "trace.json";
/// The report for a browser.
pub const HTML_FILE: &str = "report.html";
/// The report for a pull request.
pub const MARKDOWN_FILE: &str = "report.md";
/// The report for CI systems.
pub const JUNIT_FILE: &str = "junit.xml";
/// The results in the format of agentskills.io.
pub const BENCHMARK_FILE: &str = "benchmark.json";

/// The folder of a trial below the folder of the results.
pub fn trial_folder(root: &Path, results: &Results, case: &str, arm: Arm, trial: u32) -> PathBuf {
    // Two cases may have names that differ only in characters that are not used in paths.
    let index = results.cases.iter().position(|known| known.id == case).unwrap_or_default();
    let name: String = case
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || c == '-' { c.to_ascii_lowercase() } else { '-' })
        .take(40)
        .collect();
    root.join(format!("eval-{:03}-{}", index + 1, name.trim_matches('-')))
        .join(arm.as_str())
        .join(format!("run-{}", trial + 1))
}

/// Writes everything into a folder, which is created.
pub fn write_results(root: &Path, results: &Results, traces: &[Trace]) -> io::Result<()> {
    fs::create_dir_all(root)?;
    write_json(&root.join(RESULTS_FILE), &serde_json::to_value(results)?)?;
    write_reports(root, results, traces)?;
    for trace in traces {
        let folder = trial_folder(root, results, &trace.case, trace.arm, trace.trial);
        fs::create_dir_all(&folder)?;
        replace(&folder.join(TRACE_FILE), &serde_json::to_vec(trace)?)?;
    }
    Ok(())
}

/// Writes the reports alone, after recorded trials were graded again.
pub fn write_reports(root: &Path, results: &Results, traces: &[Trace]) -> io::Result<()> {
    write_json(&root.join(BENCHMARK_FILE), &agentskills::benchmark(results))?;
    replace(&root.join(JUNIT_FILE), junit::render(results).as_bytes())?;
    replace(&root.join(MARKDOWN_FILE), markdown::render(results).as_bytes())?;
    replace(&root.join(HTML_FILE), html::render(results, traces).as_bytes())?;
    for case in &results.cases {
        for (arm, trials) in &case.arms {
            for trial in trials {
                let folder = trial_folder(root, results, &case.id, *arm, trial.trial);
                fs::create_dir_all(&folder)?;
                write_json(&folder.join("grading.json"), &agentskills::grading(trial))?;
                write_json(&folder.join("timing.json"), &agentskills::timing(trial))?;
            }
        }
    }
    Ok(())
}

/// Reads the results in a folder, or in a file.
pub fn read_results(path: &Path) -> io::Result<Results> {
    let path = if path.is_dir() { path.join(RESULTS_FILE) } else { path.to_owned() };
    let in_file =
        |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    let mut bytes = Vec::new();
    let file = fs::File::open(&path).map_err(in_file)?;
    file.take(MAX_RESULTS_BYTES + 1).read_to_end(&mut bytes).map_err(in_file)?;
    if bytes.len() as u64 > MAX_RESULTS_BYTES {
        return Err(in_file(io::Error::new(io::ErrorKind::FileTooLarge, "it is too large")));
    }
    let results: Results =
        serde_json::from_slice(&bytes).map_err(|error| in_file(io::Error::from(error)))?;
    if results.format != RESULTS_FORMAT {
        let message = format!("it has the format {}, expected {RESULTS_FORMAT}", results.format);
        return Err(in_file(io::Error::new(io::ErrorKind::InvalidData, message)));
    }
    Ok(results)
}

fn write_json(path: &Path, value: &Value) -> io::Result<()> {
    let text = serde_json::to_string_pretty(value)? + "\n";
    replace(path, text.as_bytes())
}

/// Replaces a file, completely or not at all.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = tempfile::NamedTempFile::new_in(path.parent().unwrap_or(Path::new(".")))?;
    file.write_all(bytes)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        file.as_file().set_permissions(fs::Permissions::from_mode(0o644))?;
    }
    file.persist(path)?;
    Ok(())
}
