//! Grades trials: deterministic assertions first, then commands in the sandbox, then the judge.

use std::{fmt, sync::Arc};

use savoir_engine::run_environment::RunEnvironment;
use savoir_flow::{
    event::Emitter,
    services::{Question, Services, TimeLimits},
};
use savoir_model::{ChosenModel, Message, Models};

use super::{
    budget::Spending,
    cache::{self, Cache},
    savoir::{host_tools, only, usage_of},
    workspace::TrialFolder,
};
use crate::{
    grade::{AssertionResult, Grading, Outcome, grade},
    judge::{INSTRUCTIONS, MAX_VOTES, Order, Vote, majority, question, read_vote},
    limits::COMMAND_SECONDS,
    results::JudgeRecord,
    set::{Assertion, Case, Grader},
    trace::{TokenUsage, Trace, restore_files},
};

/// Tokens of one verdict.
const MAX_VERDICT_TOKENS: u32 = 1_000;

/// A model that judges assertions in prose.
pub struct Judge {
    models: Arc<Models>,
    model: String,
}

impl fmt::Debug for Judge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Judge").field(&self.model).finish()
    }
}

impl Judge {
    pub fn new(chosen: ChosenModel) -> Self {
        let model = format!("{}:{}", chosen.provider, chosen.model);
        Self { models: Arc::new(only(chosen)), model }
    }

    pub fn record(&self) -> JudgeRecord {
        JudgeRecord { model: self.model.clone(), prompt: INSTRUCTIONS.to_owned() }
    }

    async fn ask(&self, system: String, text: String) -> (Result<String, String>, TokenUsage) {
        let services = Services {
            models: Arc::clone(&self.models),
            knowledge: None,
            database: None,
            limits: TimeLimits::default(),
        };
        let (out, mut events) = Emitter::channel();
        let calls = out.model_calls();
        let question = Question {
            model: None,
            messages: vec![Message::System(system), Message::User(text)],
            temperature: Some(0.0),
            max_tokens: Some(MAX_VERDICT_TOKENS),
            user: None,
            skill: None,
        };
        let limit = services.limits.answer;
        let listening = async { while events.recv().await.is_some() {} };
        let asking = async {
            let answer = tokio::time::timeout(limit, services.ask(question, &out)).await;
            drop(out);
            answer
        };
        let (answer, ()) = tokio::join!(asking, listening);
        let answer = match answer {
            Ok(Ok(answer)) => match answer.error {
                None => Ok(answer.text),
                Some(error) => Err(error.to_string()),
            },
            Ok(Err(gone)) => Err(gone.to_string()),
            Err(_) => Err(format!("it did not answer within {} s", limit.as_secs())),
        };
        (answer, usage_of(&calls.take()))
    }
}

/// Everything that grades.
#[derive(Debug)]
pub struct Graders {
    /// `None` if no model may be asked: assertions in prose are invalid then.
    pub judge: Option<Judge>,
    pub run_env: RunEnvironment,
    pub cache: Option<Cache>,
}

/// A grading and what it cost.
#[derive(Debug, Default)]
pub(super) struct Graded {
    pub(super) grading: Grading,
    /// Tokens of all votes, with those that were taken from the cache.
    pub(super) usage: TokenUsage,
}

impl Graders {
    /// Grades a trial. `before` are the results of an earlier grading, whose votes are reused when no
    /// judge is available.
    pub(super) async fn grade(
        &self,
        case: &Case,
        trace: &Trace,
        before: Option<&Grading>,
        spending: &Spending,
    ) -> Graded {
        let mut graded = Graded::default();
        for assertion in case.graded() {
            let result = match grade(&assertion, trace) {
                Some(result) => result,
                None => match &assertion.grader {
                    Grader::Command { command, exit_code } => {
                        self.run_command(&assertion, command, *exit_code, trace).await
                    }
                    _ => self.judge(case, &assertion, trace, before, spending, &mut graded).await,
                },
            };
            graded.grading.results.push(result);
        }
        graded
    }

    /// Runs a command in a copy of the workspace, so that no grader sees the effects of another.
    async fn run_command(
        &self,
        assertion: &Assertion,
        command: &str,
        exit_code: i32,
        trace: &Trace,
    ) -> AssertionResult {
        let invalid = |reason: String| AssertionResult::new(assertion, Outcome::Invalid, reason);
        if trace.files_left_out > 0 {
            let count = trace.files_left_out;
            return invalid(format!("{count} files of the workspace were not recorded"));
        }
        let prepared = TrialFolder::new().and_then(|folder| {
            restore_files(&trace.files, &folder.workspace())?;
            Ok(folder)
        });
        let folder = match prepared {
            Ok(folder) => folder,
            Err(error) => return invalid(format!("the workspace cannot be restored: {error}")),
        };
        let tools = match host_tools(&folder.workspace(), &self.run_env) {
            Ok(tools) => tools,
            Err(error) => return invalid(error),
        };
        let ended = tools.run_watched(command, COMMAND_SECONDS).await;
        tools.wait_for_commands().await;
        let end = match ended {
            Ok(end) => end,
            Err((_, message)) => return invalid(message),
        };
        if let Some(moved) = end.moved_files.first() {
            return invalid(format!("the command wrote a protected file: {moved}"));
        }
        if let Some(path) = end.denied_writes.first() {
            let path = path.display();
            return invalid(format!("the command tried to write outside of the workspace: {path}"));
        }
        // Without the file, nobody knows what it would have found.
        if let Some(path) = end.denied.first()
            && end.exit_code != Some(exit_code)
        {
            let path = path.display();
            return invalid(format!("the command tried to read outside of the workspace: {path}"));
        }
        let output = end.output.trim();
        match end.exit_code {
            // 126 and 127 are the codes of a shell for programs that cannot be started.
            Some(code @ (126 | 127)) if code != exit_code => {
                invalid(format!("a program is missing: {output}"))
            }
            Some(code) => {
                let outcome = if code == exit_code { Outcome::Passed } else { Outcome::Failed };
                AssertionResult::new(assertion, outcome, format!("exit code {code}: {output}"))
            }
            None => invalid(end.ended),
        }
    }

    async fn judge(
        &self,
        case: &Case,
        assertion: &Assertion,
        trace: &Trace,
        before: Option<&Grading>,
        spending: &Spending,
        graded: &mut Graded,
    ) -> AssertionResult {
        let result = |outcome, evidence: String| AssertionResult {
            judged: true,
            ..AssertionResult::new(assertion, outcome, evidence)
        };
        let Some(judge) = &self.judge else {
            let same = |one: &&AssertionResult| one.judged && one.text == assertion.text;
            let known = before.and_then(|before| before.results.iter().find(same));
            return known.cloned().unwrap_or_else(|| {
                result(
                    Outcome::Invalid,
                    "no model judged it when the trial was recorded".to_owned(),
                )
            });
        };
        let mut votes: Vec<Option<Vote>> = Vec::new();
        let mut problem = String::new();
        while votes.len() < MAX_VOTES && majority(&votes).is_none() {
            if let Some(reason) = spending.exhausted() {
                return result(Outcome::Invalid, reason);
            }
            let vote = votes.len();
            match self.vote(judge, case, assertion, trace, vote, spending, graded).await {
                Ok(answer) => {
                    let read = read_vote(&answer);
                    if read.is_none() {
                        problem = format!("the judge answered no verdict: {answer}");
                    }
                    votes.push(read);
                }
                Err(error) => {
                    problem = format!("the judge failed: {error}");
                    votes.push(None);
                }
            }
        }
        match majority(&votes) {
            Some(vote) => {
                let outcome = if vote.passed { Outcome::Passed } else { Outcome::Failed };
                let all = votes.iter().flatten().count();
                let agreed = votes.iter().flatten().filter(|one| one.passed == vote.passed).count();
                result(outcome, format!("{agreed} of {all} votes: {}", vote.evidence))
            }
            None if problem.is_empty() => {
                result(Outcome::Invalid, "the judge contradicts itself".to_owned())
            }
            None => result(Outcome::Invalid, problem),
        }
    }

    #[expect(clippy::too_many_arguments, reason = "they are the parts of one question")]
    async fn vote(
        &self,
        judge: &Judge,
        case: &Case,
        assertion: &Assertion,
        trace: &Trace,
        vote: usize,
        spending: &Spending,
        graded: &mut Graded,
    ) -> Result<String, String> {
        // The mark depends on the trial, so that no agent can write it.
        let mark = cache::key(&[&trace.key, &trace.digest(), &assertion.text]);
        let mark = &mark[..12];
        let (system, text) = question(case, assertion, trace, Order::of_vote(vote), mark);
        let key = cache::key(&["vote", &judge.model, &vote.to_string(), &system, &text]);
        if let Some(cache) = &self.cache
            && let Some(answer) = cache.vote(&key)?
        {
            return Ok(answer);
        }
        let (answer, usage) = judge.ask(system, text).await;
        graded.usage += usage;
        spending.add(usage);
        if let (Ok(answer), Some(cache)) = (&answer, &self.cache)
            && read_vote(answer).is_some()
        {
            cache.store_vote(&key, answer);
        }
        answer
    }
}
