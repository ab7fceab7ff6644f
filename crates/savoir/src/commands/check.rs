//! `savoir check`: checks skills and fixes problems.

use std::{
    collections::BTreeMap,
    io::{self, IsTerminal as _, Write as _},
    path::{Path, PathBuf},
    process::ExitCode,
    sync::{Mutex, mpsc},
    thread,
    time::{Duration, Instant},
};

use anstream::{eprint, eprintln};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap_complete::engine::{ArgValueCandidates, ArgValueCompleter};
use savoir_eval::formats::EvalFile;
use savoir_lint::render::{FileReport, Format, Renderer, Summary, TextStyle};
use savoir_package::archive;
use savoir_skill::{
    Diagnostic, Dialect, Safety, Source, Span,
    check::{self, Options, Target},
    folder::is_skill_file,
};

use crate::{
    completion,
    config::{self, Config},
    discover::{self, Candidate},
    error::CommandError,
    eval_files,
    load::{self, Origin},
    locked_copies::LockedCopies,
    lookup, output, skill_archive, write,
};

/// Check skills and fix problems
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a command line flag")]
#[command(after_help = "\
Examples:
  savoir check                           check all skills below this folder
  savoir check --fix                     apply safe fixes
  savoir check --diff --unsafe           show what all fixes would change
  savoir check --target claude-ai x/     report what claude.ai would reject
  savoir check downloads/pdf.zip         check an archive without unpacking it
  savoir check pdf                       check an installed skill by name
  savoir check --format sarif > out.sarif

Aliases: lint, and validate (the name in GAIA).")]
pub(crate) struct Args {
    /// Skill folders, their parent folders, files, archives, or names of installed skills
    #[arg(default_value = ".", add = ArgValueCompleter::new(completion::skills_and_paths))]
    paths: Vec<PathBuf>,
    /// Output format
    #[arg(long, value_name = "FORMAT", value_parser = formats(), default_value = "text")]
    format: Format,
    /// Print JSON, same as --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Apply safe fixes
    #[arg(long)]
    fix: bool,
    /// With --fix or --diff: include fixes that need review
    #[arg(long = "unsafe")]
    risky: bool,
    /// Show what fixes would change without changing it
    #[arg(long, conflicts_with_all = ["fix", "json", "format"])]
    diff: bool,
    /// Fail on warnings, and check style, unmentioned files and links out of the skill
    #[arg(long)]
    strict: bool,
    /// Check only these rules
    #[arg(long, value_name = "CODE", value_delimiter = ',', add = ArgValueCandidates::new(completion::rules))]
    select: Vec<String>,
    /// Skip these rules
    #[arg(long, value_name = "CODE", value_delimiter = ',', add = ArgValueCandidates::new(completion::rules))]
    ignore: Vec<String>,
    /// Also report what this host rejects, truncates or ignores
    #[arg(long, value_name = "HOST", value_delimiter = ',', value_parser = targets())]
    target: Vec<Target>,
    /// Read every file in this dialect instead of detecting it
    #[arg(long, value_name = "DIALECT", value_parser = super::dialects())]
    dialect: Option<Dialect>,
}

fn formats() -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(Format::ALL.map(Format::id)).try_map(|word| word.parse::<Format>())
}

fn targets() -> impl TypedValueParser<Value = Target> {
    PossibleValuesParser::new(Target::ALL.map(Target::id)).try_map(|word| word.parse::<Target>())
}

/// The arguments combined with the settings.
struct CheckPlan {
    format: Format,
    fixes: Option<Safety>,
    diff: bool,
    options: Options,
    /// Hints for names that match no skill.
    hints: Hints,
    /// The private folders of fetched skills, and their sources as typed.
    fetched: Vec<(String, String)>,
}

/// Hints by the path as typed.
type Hints = BTreeMap<PathBuf, String>;

impl CheckPlan {
    fn new(args: &Args, config: &Config) -> Result<Self, CommandError> {
        let most = if args.risky { Safety::Unsafe } else { Safety::Safe };
        if args.risky && !args.fix && !args.diff {
            return Err(CommandError::input("--unsafe has no effect without --fix or --diff")
                .hint("add --fix, or --diff to see what would change"));
        }
        let or = |own: &[String], other: &[String]| {
            if own.is_empty() { other.to_vec() } else { own.to_vec() }
        };
        let set = config.check.options();
        let options = Options {
            dialect: args.dialect.or(set.dialect),
            select: or(&args.select, &set.select),
            ignore: [args.ignore.as_slice(), set.ignore.as_slice()].concat(),
            targets: if args.target.is_empty() { set.targets } else { args.target.clone() },
            strict: args.strict || set.strict,
            programs: set.programs,
        };
        config::known_codes("--select and --ignore", options.select.iter().chain(&options.ignore))?;
        Ok(Self {
            format: if args.json { Format::Json } else { args.format },
            fixes: (args.fix || args.diff).then_some(most),
            diff: args.diff,
            options,
            hints: Hints::new(),
            fetched: Vec::new(),
        })
    }
}

/// The result of checking one file.
struct CheckOutcome {
    path: String,
    source: Option<Source>,
    dialect: Option<Dialect>,
    diagnostics: Vec<Diagnostic>,
    diff: Option<String>,
    fixed: usize,
    /// The user passed a path that does not exist or cannot be read.
    input_error: bool,
    /// The evaluation files of the skill that have mistakes.
    evals: Vec<Self>,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    let config = Config::load(Path::new("."))?;
    let mut plan = CheckPlan::new(args, &config)?;
    let found = lookup::find_all(&args.paths)?;
    let paths: Vec<PathBuf> = found.iter().map(|(found, _)| found.to_path_buf()).collect();
    for ((path, unknown), typed) in found.iter().zip(&args.paths) {
        // A name with an extension is a file, to which hints about installed skills do not apply.
        let unknown = unknown.as_ref().filter(|_| path.extension().is_none());
        let hint = unknown.and_then(|error| error.hints().first());
        if path.fetched.is_some() || path.folder.is_some() {
            plan.fetched.push((display_path(path), typed.to_string_lossy().into_owned()));
        }
        plan.hints.extend(hint.map(|hint| (path.to_path_buf(), hint.clone())));
    }
    let plan = plan;
    let mut report = Report::new(&plan);
    report.start()?;
    let single = matches!(paths.as_slice(), [path] if path.is_file());
    if single {
        let mut outcomes = Vec::new();
        discover::walk(&paths, &mut |candidate| {
            outcomes.push(check_candidate(candidate, &plan));
            true
        });
        for outcome in outcomes {
            report.file(outcome)?;
        }
    } else {
        in_parallel(&paths, &plan, &mut report)?;
    }
    report.finish()
}

const NAME_A_SKILL: &str = "pass a skill's folder, a folder above it, or a file";

/// Candidates per batch; batches reduce the number of messages between threads.
const SKILLS_PER_BATCH: usize = 128;

/// A batch for a worker, and the channel for its outcomes.
type Job = (Vec<Candidate>, mpsc::Sender<Vec<CheckOutcome>>);

/// One thread walks the folders, several check skills, and this one prints in the order of the
/// walk. The walker may be only some batches ahead of the printer, so memory does not grow with the
/// number of skills. When printing fails, the queue closes and all threads end.
fn in_parallel(
    paths: &[PathBuf],
    plan: &CheckPlan,
    report: &mut Report<'_>,
) -> Result<(), CommandError> {
    // The thread that walks the folders keeps one core busy.
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let workers = (cores - 1).max(1);
    let (to_work, jobs) = mpsc::channel::<Job>();
    let (to_print, in_order) = mpsc::sync_channel::<mpsc::Receiver<Vec<CheckOutcome>>>(workers * 8);
    let jobs = Mutex::new(jobs);
    // A fix must be applied to every copy.
    let checks_copies = plan.fixes.is_some();
    thread::scope(|scope| {
        scope.spawn(move || walk_in_batches(paths, checks_copies, &to_work, &to_print));
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let next = jobs.lock().map(|jobs| jobs.recv());
                    let Ok(Ok((batch, outcomes))) = next else { return };
                    let done = batch
                        .into_iter()
                        .map(|candidate| check_candidate(candidate, plan))
                        .collect();
                    // Sending fails only if printing failed.
                    let _ = outcomes.send(done);
                }
            });
        }
        for outcomes in in_order {
            for outcome in outcomes.recv().unwrap_or_default() {
                report.file(outcome)?;
            }
        }
        Ok(())
    })
}

fn walk_in_batches(
    paths: &[PathBuf],
    checks_copies: bool,
    to_work: &mpsc::Sender<Job>,
    to_print: &mpsc::SyncSender<mpsc::Receiver<Vec<CheckOutcome>>>,
) {
    let send = |batch: Vec<Candidate>| {
        let (done, outcomes) = mpsc::channel();
        to_print.send(outcomes).is_ok() && to_work.send((batch, done)).is_ok()
    };
    let mut batch = Vec::with_capacity(SKILLS_PER_BATCH);
    let mut copies = LockedCopies::default();
    discover::walk(paths, &mut |candidate| {
        if let Candidate::Skill { folder: Some(folder), named: false, .. } = &candidate
            && !checks_copies
            && !paths.iter().any(|path| path == folder.root())
            && copies.is_another_copy(folder.root())
        {
            return true;
        }
        batch.push(candidate);
        batch.len() < SKILLS_PER_BATCH || send(std::mem::take(&mut batch))
    });
    send(batch);
}

fn check_candidate(candidate: Candidate, plan: &CheckPlan) -> CheckOutcome {
    match candidate {
        Candidate::Skill { path, folder: None, named: true, .. }
            if skill_archive::is_archive(&path) =>
        {
            check_archive(&path, plan)
        }
        Candidate::Skill { path, folder, root, named } => {
            let origin = match (&root, named) {
                (Some(root), _) => Origin::Link(root),
                (None, true) => Origin::Named,
                (None, false) => Origin::Walked,
            };
            match load::source(&path, origin) {
                Ok(source) => check_one(&path, folder.as_ref(), source, plan),
                Err(problem) => failed_outcome(&path, *problem, false),
            }
        }
        Candidate::Unreadable { path, problem } => {
            let hint = plan.hints.get(&path).map_or(NAME_A_SKILL, String::as_str);
            let found = Diagnostic::error("unreadable-file", Span::default(), problem).help(hint);
            failed_outcome(&path, found, true)
        }
        Candidate::Empty { path } => {
            let message = "no SKILL.md below this folder";
            let found = Diagnostic::error("unreadable-file", Span::default(), message)
                .help("pass a folder with skills, or create one with: savoir new NAME");
            failed_outcome(&path, found, true)
        }
    }
}

/// Checks the skill in an archive as an installation would read it. Nothing is unpacked, and
/// fixes are not applied.
fn check_archive(path: &Path, plan: &CheckPlan) -> CheckOutcome {
    let refused = |code, message: String| {
        failed_outcome(path, Diagnostic::error(code, Span::default(), message), false)
    };
    let bytes = match skill_archive::bytes(path) {
        Ok(bytes) => bytes,
        Err(error) => return refused("unreadable-file", error.to_string()),
    };
    let (folder, tree) = match archive::unpack(&bytes).and_then(archive::one_skill) {
        Ok(unpacked) => unpacked,
        Err(error) => return refused(error.code(), error.to_string()),
    };
    let Some((name, file)) = tree.files().find(|(path, _)| is_skill_file(path)) else {
        return refused("layout", "it has no SKILL.md".to_owned());
    };
    let inside = PathBuf::from(format!("{}!{name}", path.display()));
    let source = match Source::from_bytes(file.bytes.clone()) {
        Ok(source) => source,
        Err(error) => {
            let found = Diagnostic::error(error.code(), Span::default(), error.to_string());
            return failed_outcome(&inside, found.help(error.help()), false);
        }
    };
    let (options, hints) = (plan.options.clone(), Hints::new());
    let only_looks = CheckPlan { fixes: None, options, hints, fetched: Vec::new(), ..*plan };
    check_one(&inside, Some(&tree.as_folder(folder.as_deref())), source, &only_looks)
}

fn failed_outcome(path: &Path, problem: Diagnostic, input_error: bool) -> CheckOutcome {
    CheckOutcome {
        path: display_path(path),
        source: None,
        dialect: None,
        diagnostics: vec![problem],
        diff: None,
        fixed: 0,
        input_error,
        evals: Vec::new(),
    }
}

fn check_one(
    path: &Path,
    folder: Option<&savoir_skill::Folder>,
    source: Source,
    plan: &CheckPlan,
) -> CheckOutcome {
    let before = plan.fixes.map(|_| source.text().to_owned());
    let mut checked = check::check(source, folder, &plan.options);
    let mut outcome = CheckOutcome {
        path: display_path(path),
        source: None,
        dialect: Some(checked.reading.detection.dialect),
        diagnostics: Vec::new(),
        diff: None,
        fixed: 0,
        input_error: false,
        evals: Vec::new(),
    };
    if let (Some(most), Some(before)) = (plan.fixes, before) {
        let fixed = check::fix(&before, folder, &plan.options, most);
        if fixed.text != before {
            outcome.fixed = fixed.fixed.len();
            if plan.diff {
                outcome.diff = Some(diff(&outcome.path, &before, &fixed.text));
            } else if let Err(reason) = write::replace(path, &fixed.text) {
                outcome.fixed = 0;
                let message = format!("the fixed text cannot be written: {reason}");
                let found = Diagnostic::error("unwritable-file", Span::default(), message)
                    .help("check the permissions of the file and its folder, and the space left");
                checked.diagnostics.insert(0, found);
            } else if let Ok(source) = Source::from_bytes(fixed.text.into_bytes()) {
                checked = check::check(source, folder, &plan.options);
            }
        }
    }
    outcome.dialect = Some(checked.reading.detection.dialect);
    outcome.diagnostics = checked.diagnostics;
    if let Some(folder) = folder
        && plan.options.select.is_empty()
    {
        let files = eval_files::find_invalid_eval_files(folder, &checked.reading.skill.name);
        outcome.evals = files.into_iter().map(|file| eval_outcome(folder, file)).collect();
    }
    if !outcome.diagnostics.is_empty() {
        outcome.source = Some(checked.reading.document.into_source());
    }
    outcome
}

fn eval_outcome(folder: &savoir_skill::Folder, file: EvalFile) -> CheckOutcome {
    CheckOutcome {
        path: display_path(&folder.root().join(&file.path)),
        source: file.source,
        dialect: None,
        diagnostics: file.diagnostics,
        diff: None,
        fixed: 0,
        input_error: false,
        evals: Vec::new(),
    }
}

/// The path with `/` as separator and without a leading `./`.
fn display_path(path: &Path) -> String {
    let text = path.to_string_lossy().replace('\\', "/");
    text.strip_prefix("./").unwrap_or(&text).to_owned()
}

fn diff(path: &str, before: &str, after: &str) -> String {
    similar::TextDiff::from_lines(before, after)
        .unified_diff()
        .context_radius(2)
        .header(
            &format!("a/{}", path.trim_start_matches('/')),
            &format!("b/{}", path.trim_start_matches('/')),
        )
        .to_string()
}

/// Prints outcomes and determines the exit code.
struct Report<'a> {
    plan: &'a CheckPlan,
    out: Box<dyn std::io::Write>,
    renderer: Box<dyn Renderer>,
    summary: Summary,
    fixed: (usize, usize),
    input_error: bool,
    progress: Progress,
}

impl<'a> Report<'a> {
    fn new(plan: &'a CheckPlan) -> Self {
        let style = TextStyle { color: output::wants_color(), ..TextStyle::default() };
        Self {
            plan,
            out: Box::new(output::stdout()),
            renderer: check::renderer(plan.format, style),
            summary: Summary::default(),
            fixed: (0, 0),
            input_error: false,
            progress: Progress::new(),
        }
    }

    fn start(&mut self) -> Result<(), CommandError> {
        if !self.plan.diff {
            self.renderer.start(&mut self.out)?;
        }
        Ok(())
    }

    fn file(&mut self, mut outcome: CheckOutcome) -> Result<(), CommandError> {
        let evals = std::mem::take(&mut outcome.evals);
        self.summary.files += 1;
        self.progress.tick(self.summary.files);
        self.one_file(outcome)?;
        evals.into_iter().try_for_each(|outcome| self.one_file(outcome))
    }

    fn one_file(&mut self, mut outcome: CheckOutcome) -> Result<(), CommandError> {
        let fetched = self.plan.fetched.iter().find_map(|(folder, typed)| {
            Some(format!("{typed}{}", outcome.path.strip_prefix(folder.as_str())?))
        });
        outcome.path = fetched.unwrap_or(outcome.path);
        let errors = outcome.diagnostics.iter().filter(|found| found.is_error()).count();
        self.summary.errors += errors;
        self.summary.warnings += outcome.diagnostics.len() - errors;
        self.input_error |= outcome.input_error;
        if outcome.fixed > 0 {
            self.fixed.0 += outcome.fixed;
            self.fixed.1 += 1;
        }
        let with_fix = |safety| {
            let fixes = outcome.diagnostics.iter().filter_map(|found| found.fix.as_ref());
            fixes.filter(|fix| fix.safety == safety).count()
        };
        self.summary.fixable += with_fix(Safety::Safe);
        self.summary.fixable_unsafe += with_fix(Safety::Unsafe);
        if self.plan.diff {
            if let Some(diff) = outcome.diff {
                self.out.write_all(output::sanitize(&diff).as_bytes())?;
            }
            if outcome.input_error {
                for found in &outcome.diagnostics {
                    eprintln!("error: {}: {}", output::sanitize(&outcome.path), found.message);
                    if let Some(help) = &found.help {
                        eprintln!("hint: {help}");
                    }
                }
            }
            return Ok(());
        }
        let report = FileReport {
            path: &outcome.path,
            source: outcome.source.as_ref(),
            dialect: outcome.dialect.map(Dialect::id),
            diagnostics: &outcome.diagnostics,
        };
        self.renderer.file(&mut self.out, &report)?;
        Ok(())
    }

    fn finish(mut self) -> Result<ExitCode, CommandError> {
        if !self.plan.diff {
            self.renderer.finish(&mut self.out, &self.summary)?;
        }
        self.progress.clear();
        output::flush(&mut self.out)?;
        let (count, files) = self.fixed;
        if count > 0 {
            let verb = if self.plan.diff { "would fix" } else { "fixed" };
            eprintln!(
                "{verb} {} in {}",
                output::plural(count, "finding"),
                output::plural(files, "file")
            );
        }
        if self.plan.options.strict && self.summary.errors == 0 && self.summary.warnings > 0 {
            output::note("failed: --strict does not allow warnings");
        }
        let changes = self.plan.diff && count > 0;
        let stops =
            self.summary.errors > 0 || self.plan.options.strict && self.summary.warnings > 0;
        Ok(ExitCode::from(match (self.input_error, stops || changes) {
            (true, _) => 2,
            (false, true) => 1,
            (false, false) => 0,
        }))
    }
}

/// A counter on the terminal, shown only if the work takes some time.
struct Progress {
    terminal: bool,
    next: Instant,
    shown: bool,
}

impl Progress {
    const REDRAW_INTERVAL: Duration = Duration::from_millis(200);

    fn new() -> Self {
        // If findings go to the same terminal, a counter would clutter them.
        let terminal = io::stderr().is_terminal() && !io::stdout().is_terminal();
        Self { terminal, next: Instant::now() + Self::REDRAW_INTERVAL, shown: false }
    }

    fn tick(&mut self, count: usize) {
        if self.terminal && count.is_multiple_of(64) && Instant::now() >= self.next {
            self.next = Instant::now() + Self::REDRAW_INTERVAL;
            self.shown = true;
            eprint!("\rchecked {count} skills");
        }
    }

    fn clear(&self) {
        if self.shown {
            eprint!("\r{:30}\r", "");
        }
    }
}
