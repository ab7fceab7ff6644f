//! Checks skills in parallel, and fixes their texts.

use std::{
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError, mpsc},
    thread,
};

use pyo3::prelude::*;
use savoir_package::{
    discover::{self, Candidate},
    skill_file::{self, Origin},
};
use savoir_skill::{
    Diagnostic, Safety, Source, Span,
    check::{Options, Target, nearest_rule, rule},
};

use crate::{
    diagnostic::PyDiagnostic,
    errors::Failure,
    input::{self, Paths, Subject, wrong_subject},
};

/// The findings of one file.
#[pyclass(frozen, get_all, module = "savoir_skills")]
#[derive(Debug)]
pub(crate) struct CheckedFile {
    /// `None` for a text without a file.
    path: Option<String>,
    dialect: Option<&'static str>,
    diagnostics: Vec<Py<PyDiagnostic>>,
}

#[pymethods]
impl CheckedFile {
    /// Whether no error was found.
    #[getter]
    fn ok(&self) -> bool {
        !self.diagnostics.iter().any(|found| found.get().is_error())
    }

    fn __repr__(&self) -> String {
        let path = self.path.as_deref().unwrap_or("<text>");
        format!("<CheckedFile {path}: {} findings>", self.diagnostics.len())
    }
}

/// The result of a check, file by file.
#[pyclass(frozen, get_all, module = "savoir_skills")]
#[derive(Debug)]
pub(crate) struct CheckReport {
    files: Vec<Py<CheckedFile>>,
    errors: usize,
    warnings: usize,
}

#[pymethods]
impl CheckReport {
    /// Whether no error was found.
    #[getter]
    fn ok(&self) -> bool {
        self.errors == 0
    }

    /// The findings of all files.
    #[getter]
    fn diagnostics(&self, py: Python<'_>) -> Vec<Py<PyDiagnostic>> {
        let files = self.files.iter().flat_map(|file| &file.get().diagnostics);
        files.map(|found| found.clone_ref(py)).collect()
    }

    /// Raises `InvalidSkillError` with all findings if one of them is an error.
    fn raise_for_errors(&self, py: Python<'_>) -> PyResult<()> {
        let found = self.diagnostics(py);
        let mut errors = found.iter().filter(|found| found.get().is_error());
        let Some(first) = errors.next() else { return Ok(()) };
        let more = match errors.count() {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        let message = format!("{}{more}", first.get().message());
        let found = found.iter().map(|found| found.get().clone()).collect();
        Err(Failure::invalid(message, found).raise(py))
    }

    fn __len__(&self) -> usize {
        self.files.len()
    }

    /// A report is true whatever it found: `report.ok` is the answer.
    #[expect(clippy::unused_self, reason = "Python calls it as a method")]
    fn __bool__(&self) -> bool {
        true
    }

    fn __repr__(&self) -> String {
        let Self { files, errors, warnings } = self;
        format!("<CheckReport {} files, {errors} errors, {warnings} warnings>", files.len())
    }
}

/// The result of checking one file, before it is an object of Python.
#[derive(Debug)]
struct FileOutcome {
    path: Option<String>,
    dialect: Option<&'static str>,
    diagnostics: Vec<PyDiagnostic>,
}

/// Checks skills: a folder, a file, several of them, or a text.
#[pyfunction]
#[pyo3(signature = (paths=None, *, text=None, dialect=None, select=vec![], ignore=vec![],
    targets=vec![], strict=false))]
#[expect(
    clippy::too_many_arguments,
    clippy::needless_pass_by_value,
    reason = "the caller names them, and PyO3 passes values"
)]
pub(crate) fn check(
    py: Python<'_>,
    paths: Option<Paths>,
    text: Option<String>,
    dialect: Option<&str>,
    select: Vec<String>,
    ignore: Vec<String>,
    targets: Vec<String>,
    strict: bool,
) -> PyResult<CheckReport> {
    let options = options(dialect, select, ignore, &targets, strict);
    let options = options.map_err(|failure| failure.raise(py))?;
    let outcomes = py.detach(|| match (paths, text) {
        (Some(paths), None) => Ok(check_paths(&paths.into_vec(), &options)),
        (None, Some(text)) => {
            let subject = Subject::open(None, Some(text))?;
            Ok(vec![check_source(None, None, subject.source, &options)])
        }
        _ => Err(wrong_subject()),
    });
    report(py, outcomes.map_err(|failure| failure.raise(py))?)
}

fn options(
    dialect: Option<&str>,
    select: Vec<String>,
    ignore: Vec<String>,
    targets: &[String],
    strict: bool,
) -> Result<Options, Failure> {
    let wrong = |code, message: String| Failure::new("WrongCallError", code, message);
    if let Some(code) = select.iter().chain(&ignore).find(|code| rule(code).is_none()) {
        let near = nearest_rule(code).map(|near| format!("did you mean `{near}`?"));
        return Err(wrong("unknown-rule", format!("there is no rule `{code}`")).hints(near));
    }
    let targets: Result<Vec<Target>, _> = targets.iter().map(|id| id.parse()).collect();
    Ok(Options {
        dialect: input::dialect(dialect)?,
        select,
        ignore,
        targets: targets.map_err(|error| wrong("unknown-target", error.to_string()))?,
        strict,
        programs: savoir_engine::grant::search_path(),
    })
}

fn report(py: Python<'_>, outcomes: Vec<FileOutcome>) -> PyResult<CheckReport> {
    let mut files = Vec::with_capacity(outcomes.len());
    let (mut errors, mut warnings) = (0, 0);
    for FileOutcome { path, dialect, diagnostics } in outcomes {
        let errors_here = diagnostics.iter().filter(|found| found.is_error()).count();
        errors += errors_here;
        warnings += diagnostics.len() - errors_here;
        let diagnostics: PyResult<_> =
            diagnostics.into_iter().map(|found| Py::new(py, found)).collect();
        files.push(Py::new(py, CheckedFile { path, dialect, diagnostics: diagnostics? })?);
    }
    Ok(CheckReport { files, errors, warnings })
}

/// Candidates per batch; batches reduce the number of messages between threads.
const SKILLS_PER_BATCH: usize = 64;

/// Candidates with the number of their batch.
type Batch = (usize, Vec<Candidate>);

/// One thread walks the folders and several check skills. The result is in the order of the walk.
fn check_paths(paths: &[PathBuf], options: &Options) -> Vec<FileOutcome> {
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let (to_work, jobs) = mpsc::sync_channel::<Batch>(workers * 8);
    let jobs = Mutex::new(jobs);
    let mut done: Vec<(usize, Vec<FileOutcome>)> = thread::scope(|scope| {
        let work = || {
            let mut done = Vec::new();
            loop {
                let next = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
                let Ok((number, batch)) = next else { return done };
                let check = |candidate| check_candidate(candidate, options);
                done.push((number, batch.into_iter().map(check).collect()));
            }
        };
        let running: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        walk(paths, &to_work);
        drop(to_work);
        running.into_iter().filter_map(|worker| worker.join().ok()).flatten().collect()
    });
    done.sort_by_key(|(number, _)| *number);
    done.into_iter().flat_map(|(_, outcomes)| outcomes).collect()
}

fn walk(paths: &[PathBuf], to_work: &mpsc::SyncSender<Batch>) {
    let (mut batch, mut number) = (Vec::with_capacity(SKILLS_PER_BATCH), 0);
    discover::walk(paths, &mut |candidate| {
        batch.push(candidate);
        if batch.len() < SKILLS_PER_BATCH {
            return true;
        }
        number += 1;
        to_work.send((number, std::mem::take(&mut batch))).is_ok()
    });
    // It fails only if all workers ended.
    let _ = to_work.send((number + 1, batch));
}

fn check_candidate(candidate: Candidate, options: &Options) -> FileOutcome {
    let (path, folder, root, named) = match candidate {
        Candidate::Skill { path, folder, root, named } => (path, folder, root, named),
        Candidate::Unreadable { path, problem } => {
            let hint = "pass a skill's folder, a folder above it, or a file";
            return failed(&path, unreadable(problem).help(hint));
        }
        Candidate::Empty { path } => {
            let found = unreadable("no SKILL.md below this folder".to_owned());
            return failed(&path, found.help("pass a folder with skills"));
        }
    };
    let origin = match (&root, named) {
        (Some(root), _) => Origin::Link(root),
        (None, true) => Origin::Named,
        (None, false) => Origin::Walked,
    };
    match skill_file::source(&path, origin) {
        Ok(source) => check_source(Some(&path), folder.as_ref(), source, options),
        Err(problem) => failed(&path, *problem),
    }
}

fn unreadable(message: String) -> Diagnostic {
    Diagnostic::error("unreadable-file", Span::default(), message)
}

fn failed(path: &Path, found: Diagnostic) -> FileOutcome {
    let path = path.to_string_lossy().into_owned();
    let found = PyDiagnostic::new(Some(&path), None, found);
    FileOutcome { path: Some(path), dialect: None, diagnostics: vec![found] }
}

fn check_source(
    path: Option<&Path>,
    folder: Option<&savoir_skill::Folder>,
    source: Source,
    options: &Options,
) -> FileOutcome {
    let checked = savoir_skill::check::check(source, folder, options);
    let path = path.map(|path| path.to_string_lossy().into_owned());
    let source = checked.reading.document.source();
    FileOutcome {
        dialect: Some(checked.reading.detection.dialect.id()),
        diagnostics: PyDiagnostic::all(path.as_deref(), source, checked.diagnostics),
        path,
    }
}

/// A fixed text.
#[pyclass(frozen, get_all, module = "savoir_skills")]
#[derive(Debug)]
pub(crate) struct FixedSkill {
    path: Option<PathBuf>,
    /// The text after all fixes.
    text: String,
    /// Whether the text differs from the one before.
    changed: bool,
    /// The codes of what was fixed.
    fixed: Vec<&'static str>,
    /// The findings that are left.
    remaining: Vec<PyDiagnostic>,
}

#[pymethods]
impl FixedSkill {
    fn __repr__(&self) -> String {
        format!("<FixedSkill {} fixed, {} left>", self.fixed.len(), self.remaining.len())
    }
}

/// Fixes the text of one skill. The file is not written.
#[pyfunction]
#[pyo3(signature = (path=None, *, text=None, unsafe_fixes=false, dialect=None, select=vec![],
    ignore=vec![], targets=vec![], strict=false))]
#[expect(
    clippy::too_many_arguments,
    clippy::needless_pass_by_value,
    reason = "the caller names them, and PyO3 passes values"
)]
pub(crate) fn fix(
    py: Python<'_>,
    path: Option<PathBuf>,
    text: Option<String>,
    unsafe_fixes: bool,
    dialect: Option<&str>,
    select: Vec<String>,
    ignore: Vec<String>,
    targets: Vec<String>,
    strict: bool,
) -> PyResult<FixedSkill> {
    let options = options(dialect, select, ignore, &targets, strict);
    let options = options.map_err(|failure| failure.raise(py))?;
    let most = if unsafe_fixes { Safety::Unsafe } else { Safety::Safe };
    let fixed = py.detach(|| {
        let subject = Subject::open(path, text)?;
        let before = subject.source.text();
        let fixed = savoir_skill::check::fix(before, subject.folder.as_ref(), &options, most);
        let changed = fixed.text != before;
        let after = Source::new(fixed.text.clone());
        let remaining = PyDiagnostic::all(subject.shown().as_deref(), &after, fixed.remaining);
        let (text, fixed) = (fixed.text, fixed.fixed);
        Ok(FixedSkill { path: subject.path, text, changed, fixed, remaining })
    });
    fixed.map_err(|failure: Failure| failure.raise(py))
}
